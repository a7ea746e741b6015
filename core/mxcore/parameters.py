"""The kinds of parameters that operators declare: what values and MXNet's strings they take, what they print."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from . import _importing
from ._core.errors import error, suggest
from ._core.op import Op
from ._core.params import REQUIRED, Int, Number, Param, Params, as_dtype, literal, more_dtypes, number
from ._values import text

__all__ = [
    "Any_",
    "Bool",
    "DType",
    "Enum",
    "Float",
    "Floats",
    "GraphParam",
    "Int",
    "Rest",
    "Shape",
    "Str",
    "dtype_name",
    "given_params",
    "strings",
    "unwritten",
]


class Float(Number):
    """A real number, with optional bounds `ge` and `le`; ``dynamic=True`` for per-step scalars; else as `Param`."""

    kind = "float"

    def convert(self, value: Any) -> float:
        try:
            x = float(number(value))
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"must be {self.allowed()}, got {value!r}") from None
        return float(self.check(x))


class Bool(Param):
    """A truth value; MXNet's files write ``True``/``False``, old ones ``1``/``0``."""

    kind = "bool"
    _WORDS: dict[Any, bool] = {
        "true": True,
        "1": True,
        1: True,
        "yes": True,
        "false": False,
        "0": False,
        0: False,
        "no": False,
    }

    def convert(self, value: Any) -> bool:
        word = (
            value.strip().lower()
            if isinstance(value, str)
            else value
            if isinstance(value, (int, np.integer, np.bool_))
            else None
        )
        if word not in self._WORDS:
            raise TypeError(f"must be True or False, got {value!r}")
        return self._WORDS[word]


class Str(Param):
    """Any text."""

    kind = "str"

    def convert(self, value: Any) -> str:
        return text(value)


class Enum(Param):
    """One of a few words.

    Parameters
    ----------
    choices : str or iterable of str
        The words; in a text they are separated by blanks.
    default
        As for `Param`.
    """

    def __init__(self, choices: Iterable[str], default: Any = REQUIRED, **kw: Any) -> None:
        super().__init__(default, **kw)
        self.choices = tuple(choices.split()) if isinstance(choices, str) else tuple(choices)

    def convert(self, value: Any) -> str:
        if str(value) in self.choices:
            return str(value)
        raise ValueError(f"must be one of {', '.join(self.choices)}; got {value!r}" + suggest(str(value), self.choices))

    def allowed(self) -> str:
        return "one of " + ", ".join(self.choices)


class Shape(Param):
    """A tuple of ints, or one for a tuple of one; ``none=True`` allows None as an element; else as `Param`."""

    kind = "shape"
    # (2, True) == (2, 1), which the cache cannot tell apart.
    element: Any = staticmethod(lambda v: Int().convert(+v if v.__class__ is bool else v))

    def __init__(self, default: Any = REQUIRED, *, none: bool = False, **kw: Any) -> None:
        super().__init__(default, **kw)
        self.none = none

    def convert(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, str):
            try:
                value = literal(value.strip().replace("L", "") or "()")
            except ValueError:
                raise TypeError(f"must be a {self.allowed()}, got {value!r}") from None
        if isinstance(value, (int, float, np.integer, np.floating)):
            value = (value,)
        try:
            return tuple(None if v is None and self.none else type(self).element(v) for v in value)
        except TypeError:
            raise TypeError(f"must be a {self.allowed()}, got {value!r}") from None

    def allowed(self) -> str:
        return "tuple of ints" if self.kind == "shape" else "tuple of floats"


#: Of a stripped text; each place of it fits in one way only, so that none takes long.
_NOT_FINITE = re.compile(r"[(\[]?(?:[-+\d.e\s,]|inf|nan)*[)\]]?", re.IGNORECASE)


class Floats(Shape):
    """A tuple of floats."""

    kind = "floats"
    element = staticmethod(lambda v: Float().convert(v))

    def convert(self, value: Any) -> tuple[Any, ...]:
        try:
            return super().convert(value)
        except TypeError:
            if not (isinstance(value, str) and _NOT_FINITE.fullmatch(value.strip())):
                raise
        # Python writes infinity so in a tuple, and does not read it.
        return super().convert([word for word in value.strip().strip("()[]").split(",") if word.strip()])


def _bfloat16() -> Any:
    try:
        ml_dtypes = _importing.load("ml_dtypes")
    except ImportError:
        raise error(TypeError, "dtype bfloat16 needs the package ml_dtypes: pip install ml_dtypes") from None
    return ml_dtypes.bfloat16


more_dtypes["bfloat16"] = _bfloat16


def dtype_name(dtype: Any) -> str:
    """MXNet's name of a dtype, e.g. ``'float32'``."""
    return str(np.dtype(dtype).name)


class DType(Param):
    """A dtype, by name or NumPy type; None means the default."""

    kind = "dtype"

    def parse(self, value: Any) -> Any:
        return super().parse(self.default if value is None and not self.required else value)

    def convert(self, value: Any) -> np.dtype[Any]:
        try:
            return as_dtype(value)
        except TypeError as e:
            raise TypeError(f"must be a dtype: {e}") from None

    def format(self, value: Any) -> str:
        return "None" if value is None else dtype_name(value)


class GraphParam(Param):
    """A sub-graph (:class:`mxcore._core.graph.Graph`), as control flow operators hold."""

    kind = "graph"

    def convert(self, value: Any) -> Any:
        if not hasattr(value, "variables"):
            raise TypeError(f"must be a graph, got {value!r}")
        return value


class Any_(Param):
    """Any hashable Python object; kept as it is.

    Graph files hold what Python writes as a literal: its own finite numbers, truth values, texts, None, and tuples of
    such. A graph with anything else is not written.

    Examples
    --------
    >>> flag = Any_()
    >>> flag.format("fast"), flag.format(False), flag.parse("python:False")
    ('fast', 'python:False', False)
    """

    #: How the text of what is no text begins.
    _LITERAL = "python:"

    def parse(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith(self._LITERAL):
            return literal(value[len(self._LITERAL) :])
        return super().parse(value)

    def format(self, value: Any) -> str:
        plain = isinstance(value, str) and value != "None" and not value.startswith(self._LITERAL)
        return value if plain else f"{self._LITERAL}{value!r}"

    def is_literal(self, value: Any) -> bool:
        """Whether a file can hold a value.

        Parameters
        ----------
        value : object
        """
        try:
            return repr(literal(repr(value))) == repr(value)
        except ValueError:
            return False


class Rest(Param):
    """Takes every keyword that the operator does not know, as a tuple of (name, string): what ``Custom`` hands on."""

    kind, rest = "further keywords", True

    def __init__(self, **kw: Any) -> None:
        super().__init__((), **kw)


def given_params(p: Params) -> dict[str, Any]:
    """The parameters that somebody has given, as they were understood, by name: what a graph pass hands on.

    Parameters
    ----------
    p : Params
        ``op.parse(given_params(p))`` is their equal.

    Examples
    --------
    >>> from mxcore.plugin import find_op
    >>> given_params(find_op("Pooling").parse({"kernel": "(2, 2)", "pool_type": "avg"}))
    {'kernel': (2, 2), 'pool_type': 'avg'}
    """
    return {name: getattr(p, name) for name in p._given}


def strings(op: Op, p: Params) -> dict[str, str]:
    """The given parameters as MXNet's JSON holds them: as they were written, ``'[3, 3]'`` or ``'2'`` for a float."""
    written, rest = {**p._given, **p._scalars}, op.parser.rest
    found = {n: _string(op.params[n], v, getattr(p, n)) for n, v in written.items() if n in op.params and n != rest}
    return {**found, **dict(getattr(p, rest))} if rest else found


def unwritten(op: Op, p: Params) -> dict[str, Any]:
    """The given parameters that no file can hold."""
    given = {n: getattr(p, n) for n, param in op.params.items() if type(param) is Any_ and n in p._given}
    return {n: v for n, v in given.items() if not Any_().is_literal(v)}


#: Kind of a parameter -> classes of what is written as it was given, alone or in a tuple: MXNet reads no others.
_WRITTEN = {
    "int": (int,),
    "shape": (int, type(None)),
    "float": (int, float),
    "floats": (int, float),
    "bool": (bool, int),
}


def _string(param: Param, given: Any, value: Any) -> str:
    if type(param) is Any_:
        return param.format(value)
    # What NumPy writes of a number need not be more than what tells it from others of its dtype.
    exact = (
        isinstance(given, np.integer) and param.kind == "int" or isinstance(given, np.number) and param.kind == "float"
    )
    kept = exact and param.parse(str(given)) == value or _plain(given, param.kind)
    # A dtype has one name; a scalar may have been set since.
    kept = kept and param.kind != "dtype" and (not param.dynamic or param.parse(given) == value)
    return str(given) if kept else param.format(value)


def _plain(v: Any, kind: str) -> bool:
    if v is None or v.__class__ is str:
        return True
    if v.__class__ in (tuple, list):
        return all(_plain(w, kind) for w in v)
    return v.__class__ in _WRITTEN.get(kind, (int, float))
