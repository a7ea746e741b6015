"""The error type of mxcore and the one way to raise it.

Every error is an :class:`MXNetError` *and* the matching built-in exception, so that both ``except MXNetError`` of MXNet
scripts and ``except ValueError`` of everybody else work.
"""

from __future__ import annotations

import difflib
import os
import reprlib
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from .._interrupts import let_through, passing, suppress

__all__ = [
    "MXNetError",
    "MXNetWarning",
    "error",
    "explain",
    "explained",
    "suggest",
    "describe",
    "asked",
    "raise_in_op",
    "user_line",
    "warn",
    "caught",
    "in_rule",
    "in_a_line",
    "said",
    "REFERENCE",
]


class MXNetError(RuntimeError):
    """Base of all errors that mxcore raises on purpose; a RuntimeError, as MXNet's is."""


class MXNetWarning(UserWarning):
    """Base of the warnings that mxcore gives where work can go on."""


#: Who the kernels belong to that are the operators' own bodies.
REFERENCE = "reference"

_CLASSES: dict[type[Exception], type[MXNetError]] = {}


def _class_for(kind: type[Exception]) -> type[MXNetError]:
    if issubclass(kind, MXNetError):
        return kind
    cls = _CLASSES.get(kind)
    if cls is None:
        cls = type("MXNet" + kind.__name__, (MXNetError, kind), {"__module__": "mxcore.base", "__doc__": kind.__doc__})
        # KeyError prints the repr of its argument; ours always prints the sentence.
        cls.__str__ = lambda self: str(self.args[0]) if self.args else ""  # type: ignore[method-assign]
        cls.__reduce__ = lambda self: (error, (kind, *self.args))  # type: ignore[method-assign, attr-defined]
        _CLASSES[kind] = cls
    return cls


def error(kind: type[Exception], text: str) -> MXNetError:
    """Make an error that is an `MXNetError` and a `kind` at once.

    In the place of what Ctrl-C or a signal's handler (a deadline) raised there is none: that goes on.

    Parameters
    ----------
    kind : type
        A built-in exception.
    text : str
        What was wrong, where, what was expected, what to do.

    >>> from mxcore.base import MXNetError, error
    >>> e = error(ValueError, "bad")
    >>> isinstance(e, MXNetError) and isinstance(e, ValueError)
    True
    """
    passing()
    return _class_for(kind)(text)


def suggest(name: str, known: Iterable[str]) -> str:
    """``", did you mean 'x' or 'y'?"`` for the nearest known names, else an empty string."""
    near = difflib.get_close_matches(str(name), list(known), n=3)
    return f", did you mean {' or '.join(repr(n) for n in near)}?" if near else ""


def describe(names: Sequence[str], values: Sequence[Any]) -> str:
    """``data float32 (2, 3), weight float32 (4, 3)`` for arrays or specs; a node of a graph may have hundreds."""
    facts = [(n, getattr(v, "dtype", ""), getattr(v, "shape", v)) for n, v in zip(names, values[:20])]
    facts += [("and", len(values) - 20, "others")] * (len(values) > 20)
    return ", ".join(f"{n} {t} {'unknown' if s is None else s}".replace("  ", " ") for n, t, s in facts) or "no inputs"


_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _user_frame() -> tuple[Any, int]:
    """The innermost frame outside mxcore, and its stack level for the caller's caller."""
    f, level = sys._getframe(2), 2
    while f is not None and f.f_code.co_filename.startswith((_HERE, "<frozen importlib")):
        level += f.f_code.co_filename[0] != "<"  # warnings do not count the frames of imports
        f = f.f_back  # type: ignore[assignment]
    return f, level


def user_line() -> str:
    """``file:line`` of the innermost frame outside mxcore, for errors that surface away from their cause."""
    return "?" if (f := _user_frame()[0]) is None else f"{f.f_code.co_filename}:{f.f_lineno}"


def warn(text: str) -> None:
    """Give an `MXNetWarning` at the user's line."""
    warnings.warn(text, MXNetWarning, stacklevel=_user_frame()[1])


def caught(exc: BaseException) -> Exception:
    """What a plugin's code raised, as an Exception: nothing in it may end the process, except the user by a signal."""
    let_through(exc)
    return exc if isinstance(exc, Exception) else error(RuntimeError, f"it ended with {in_a_line(exc)}")


def in_a_line(exc: BaseException) -> str:
    """``ValueError: what it says`` in a line, without the class if it is ours; also where it has no message."""
    text = said(exc).strip() or "no message"
    return f"{'' if isinstance(exc, MXNetError) else type(exc).__name__ + ': '}{text.splitlines()[0]}"


def said(exc: BaseException) -> str:
    """The message of an exception, also of one that cannot tell it.

    One by Ctrl-C or a signal's handler goes on as it is: it tells nothing of what it came in the midst of.
    """
    let_through(exc)
    with suppress(Exception):
        return str(exc)
    return "its message cannot be shown"


def asked(p: Any) -> str:
    """``; parameters: axis=1, k=2`` for the parameters that the caller gave, if there are any."""
    given = ", ".join(f"{n}={reprlib.repr(v)}" for n, v in {**p._given, **p._scalars}.items())
    return f"; parameters: {given}" if given else ""


_EXPLANATIONS: dict[type[BaseException], Callable[[Any], BaseException]] = {}


def explain(cls: type[BaseException], by: Callable[[Any], BaseException]) -> None:
    """Let a device say what an exception of its library means: `by` gives what users get in its place, or itself.

    Asked wherever an operator or a method of a device raised one of exactly this class.
    """
    _EXPLANATIONS[cls] = by


def explained(exc: BaseException) -> BaseException:
    """What users get in the place of an exception: itself, unless a device explains it."""
    return by(exc) if (by := _EXPLANATIONS.get(type(exc))) else exc


def in_rule(exc: MXNetError, op: str) -> MXNetError:
    """An error of ours that a gradient rule raised, which names the operator of the rule."""
    return exc if f"operator {op}" in said(exc) else error(type(exc), f"gradient of operator {op}: {said(exc)}")


def raise_in_op(
    exc: BaseException, op: str, p: Any, values: Sequence[Any], where: str = "", owner: str = REFERENCE
) -> NoReturn:
    """Raise again, once, what a kernel or rule raised, with operator, owner, and the inputs' shapes and dtypes."""
    if getattr(exc, "_in_op", False):
        raise exc
    exc = explained(exc)
    kinds = (ValueError, TypeError, IndexError, KeyError, MemoryError, ZeroDivisionError, NotImplementedError)
    kind = next((c for c in kinds if isinstance(exc, c)), RuntimeError)
    at = ", ".join(filter(None, (where, "" if owner == REFERENCE else f"kernel of {owner}")))
    new = error(
        kind,
        f"operator {op}{at and f' [{at}]'} with {describe(p._sig.inputs, values)}{asked(p)}: "
        f"{said(exc) or type(exc).__name__}",
    )
    new._in_op = True  # type: ignore[attr-defined]
    # An error of ours says all there is; of anything else the traceback helps.
    raise new from (exc.__cause__ if isinstance(exc, MXNetError) else exc)
