"""What who looks inside a program is told: the pieces of a step, and who computes what a kernel leaves to another."""

from __future__ import annotations

import contextlib
import math
import numbers
import reprlib
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from time import perf_counter
from typing import Any, NamedTuple

from ._core.errors import error, in_a_line
from ._core.op import Op

__all__ = ["Piece", "amount", "attribute", "hearing", "named", "pieces", "telling"]


class Piece(NamedTuple):
    """A part of a step that computes several operators at once, with what it took in one run.

    Attributes
    ----------
    operators : tuple of str
        What it computes, in words.
    node : str
        Name of the node that it is for.
    owner : str
        The plugin whose code it is.
    seconds : float
    flops : float
        Floating-point operations of its products.
    bytes : int
        What it reads and writes once, at least.
    shapes : tuple
        Of its inputs.
    """

    operators: tuple[str, ...]
    node: str
    owner: str
    seconds: float
    flops: float = 0.0
    bytes: int = 0
    shapes: tuple[Any, ...] = ()


def amount(n: Any) -> bool:
    """Whether something is a number that can count work, a finite one that is not below 0."""
    try:
        return isinstance(n, numbers.Real) and 0 <= float(n) < math.inf
    except OverflowError:  # a whole one with more digits than floats have
        return False


def _words(found: Any) -> bool:
    return isinstance(found, (tuple, list)) and all(isinstance(word, str) for word in found)


#: What an operator of a late pass may say of itself: attribute -> whether a value fits, and what is wanted.
_ATTRIBUTES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "consists": (_words, "a tuple of names"),
    "owner": (lambda found: isinstance(found, str), "the name of a plugin"),
    "nbytes": (amount, "a number of bytes"),
    "scratch": (amount, "a number of bytes"),
}


def attribute(op: Op, name: str, default: Any) -> Any:
    """What an operator of a late pass says of itself.

    Raises
    ------
    MXNetError
        (also TypeError) if that is something else than it should be.
    """
    if not hasattr(op, name):
        return default
    found = getattr(op, name)
    fits, wanted = _ATTRIBUTES[name]
    if not fits(found):
        raise error(TypeError, f"operator {op.name}: {name} must be {wanted}, got {reprlib.repr(found)}")
    return found


def pieces(op: Op, call: Callable[[], object]) -> list[Piece]:
    """Run a call of an operator that tells its pieces.

    Raises
    ------
    MXNetError
        (also RuntimeError or TypeError) if that fails, or tells something else.
    """
    try:
        found = list(op.pieces(call))  # type: ignore[attr-defined]
    except Exception as e:
        raise error(RuntimeError, f"operator {op.name}: pieces failed: {in_a_line(e)}") from e
    for piece in found:
        numbered = isinstance(piece, Piece) and all(map(amount, (piece.seconds, piece.flops, piece.bytes)))
        if not numbered or not _words(piece.operators) or not isinstance(piece.owner, str):
            raise error(TypeError, f"operator {op.name}: pieces must give a list of Piece, got {reprlib.repr(piece)}")
    return found


# -- who computes ------------------------------------------------------------------------------------------------------
_heard: dict[str, float] | None = None
#: Of each call that was left to another and goes on: the seconds of those within.
_within: list[float] = []


@contextlib.contextmanager
def hearing() -> Iterator[dict[str, float]]:
    """Inside, the given dictionary says how many seconds whose kernels took for what others left to them.

    What was bound before is not heard of.

    Examples
    --------
    >>> from mxcore.looking import hearing, telling
    >>> with hearing() as found:
    ...     double = telling("somebody", lambda x: 2 * x)
    ...     double(4)
    8
    >>> [*found]
    ['somebody']
    """
    global _heard
    before, _heard = _heard, {}
    try:
        yield _heard
    finally:
        _heard = before


def telling(owner: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that computes what a kernel has left to it: as it is, unless somebody hears.

    Parameters
    ----------
    owner : str
        Whose it is.
    fn : callable
    """
    if _heard is None:
        return fn

    @wraps(fn)
    def timed(*args: Any, **kwargs: Any) -> Any:
        _within.append(0.0)
        start = perf_counter()
        try:
            return fn(*args, **kwargs)
        finally:
            took, inner = perf_counter() - start, _within.pop()
            if _within:
                _within[-1] += took
            if _heard is not None:
                _heard[owner] = _heard.get(owner, 0.0) + took - inner

    return timed


# -- names -------------------------------------------------------------------------------------------------------------
#: So many operators at most are looked for again behind themselves.
_LONGEST = 8


def named(operators: Sequence[str]) -> str:
    """The name of several operators that are computed at once.

    Parameters
    ----------
    operators : sequence of str

    Examples
    --------
    >>> named(["Convolution", "relu", "Convolution", "relu", "Pooling"])
    '(Convolution + relu) × 2 + Pooling'
    >>> named(["tanh", "tanh", "exp"])
    'tanh × 2 + exp'
    """
    parts, i = [], 0
    while i < len(operators):
        size, times = max(((n, _times(operators, i, n)) for n in range(1, _LONGEST + 1)), key=_shortened)
        what = " + ".join(operators[i : i + size])
        parts.append(what if times == 1 else f"({what}) × {times}" if size > 1 else f"{what} × {times}")
        i += size * times
    return " + ".join(parts)


def _times(operators: Sequence[str], i: int, n: int) -> int:
    """How often the same `n` operators stand one behind the other."""
    times, first = 1, operators[i : i + n]
    while len(first) == n and operators[i + times * n : i + (times + 1) * n] == first:
        times += 1
    return times


def _shortened(found: tuple[int, int]) -> tuple[int, int]:
    """How many names fewer that is; of equally good ways the one of the fewest."""
    size, times = found
    return size * (times - 1), -size
