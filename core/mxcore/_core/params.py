"""Operator parameters: parsed from Python values and from MXNet's strings."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._values import plain, text, told
from .errors import error, in_a_line, said, suggest

if TYPE_CHECKING:
    from .op import Signature

__all__ = ["REQUIRED", "Int", "Number", "Param", "Params", "Parser", "as_dtype", "literal", "more_dtypes", "number"]

REQUIRED: Any = type("Required", (), {"__repr__": lambda s: "required", "__bool__": lambda s: False})()

#: Names that a NumPy of today no longer resolves by itself, or resolves to something else than MXNet did.
_DTYPES: dict[Any, np.dtype[Any]] = {None: np.dtype("float32")} | {
    n: np.dtype(n)
    for n in (
        "float16",
        "float32",
        "float64",
        "uint8",
        "int8",
        "int32",
        "int64",
        "bool",
        "uint16",
        "uint32",
        "uint64",
        "int16",
    )
}
_NAMES = sorted(filter(None, _DTYPES))
#: Names of dtypes of other libraries -> what gives them when they are first asked for; outer modules enter theirs.
more_dtypes: dict[str, Callable[[], Any]] = {}


def as_dtype(value: Any) -> np.dtype[Any]:
    """The NumPy dtype for a name, a NumPy type, a dtype or an array, which stands for its own; ``None`` is float32."""
    try:
        found = _DTYPES.get(value)
    except TypeError:
        found = None
    if found is None:
        if value.__class__ is str and value in more_dtypes:
            value = more_dtypes[value]()
        elif hasattr(value, "asscalar"):
            value = value.dtype
        try:
            found = _DTYPES.get((read := np.dtype(value)).name, read)  # 'q' and '>i8' are int64
        except (TypeError, ValueError, SyntaxError):
            raise error(
                TypeError, f"unknown dtype {value!r}; use one of {', '.join((*_NAMES, *more_dtypes))}"
            ) from None
        if found.kind not in "biufV" or found.type is np.void or found.itemsize > 8:
            raise error(
                TypeError, f"dtype {found} cannot be held by an array; use one of {', '.join((*_NAMES, *more_dtypes))}"
            )
        if len(_DTYPES) < 256:
            _DTYPES[value] = found
    return found


class Param:
    """One parameter of an operator: how it is read, checked and printed.

    Parameters
    ----------
    default : object
        Value when the caller gives none; leave it out to make the parameter required. ``None`` as the default also
        lets the caller give None.
    optional : bool
        Lets the caller give None although the default is something else.
    dynamic : bool
        A scalar that may change on every call (``lr``, ``scalar``): never part of a cache key, passed at run time.
    doc : str
        One line for ``help()``.
    """

    # free: every float may be taken as it is; rest: it takes the keywords that nobody knows
    kind, free, rest = "any", False, False

    def __init__(
        self, default: Any = REQUIRED, *, dynamic: bool = False, optional: bool = False, doc: str = ""
    ) -> None:
        self.default, self.dynamic, self.optional, self.doc = default, dynamic, optional or default is None, doc

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    def parse(self, value: Any) -> Any:
        """The checked Python value; raises ValueError or TypeError with what is allowed."""
        if value is None or isinstance(value, str) and value == "None":
            if self.optional:
                return None
            raise TypeError(f"must be {self.allowed()}, not None")
        return self.convert(value)

    def convert(self, value: Any) -> Any:
        return value

    def format(self, value: Any) -> str:
        """The string that MXNet's files hold for a parsed value."""
        return str(plain(value))

    def allowed(self) -> str:
        return self.kind

    def __repr__(self) -> str:
        return self.allowed() + ("" if self.required else f", default {self.default!r}")


def literal(text: str) -> Any:
    """The value that a text writes in Python; raises ValueError if it writes none, or is too long."""
    try:
        return ast.literal_eval(text if len(text) <= 1 << 20 else "")  # a tuple of over 100,000 numbers
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # the last two from texts that are nested too deep
        raise ValueError(f"{text[:60]!r} is no number, tuple or text of Python") from None
    except SystemError:  # CPython counts how deep trees are for all threads together, and at times miscounts
        return literal(text)


def number(value: Any) -> Any:
    """A number given as text or as an array of one element; anything else as it is."""
    if isinstance(value, str):
        try:
            return literal(value.strip().rstrip("LlFf") if value.strip()[:1] in "-+.0123456789" else value)
        except ValueError:
            return value
    elif getattr(value, "size", 0) == 1 and not isinstance(value, np.generic):
        return value.item() if isinstance(value, np.ndarray) else value.asscalar()
    return value


class Number(Param):
    """A number with optional bounds `ge` and `le`."""

    def __init__(self, default: Any = REQUIRED, *, ge: float | None = None, le: float | None = None, **kw: Any) -> None:
        super().__init__(default, **kw)
        self.ge, self.le, self.free = ge, le, self.kind == "float" and ge is None is le

    def allowed(self) -> str:
        return self.kind + (
            f" between {self.ge} and {self.le}"
            if None not in (self.ge, self.le)
            else ("" if self.ge is None else f" >= {self.ge}") + ("" if self.le is None else f" <= {self.le}")
        )

    def check(self, x: Any) -> Any:
        """The number, if it is within the bounds (a NaN is not)."""
        if (self.ge is not None and not x >= self.ge) or (self.le is not None and not x <= self.le):
            raise ValueError(f"must be {self.allowed()}, got {x}")
        return x


class Int(Number):
    """A whole number, with optional bounds `ge` and `le`; `default` and the rest as for `Param`."""

    kind = "int"

    def convert(self, value: Any) -> int:
        try:
            n = number(value)
            if isinstance(n, (bool, np.bool_)):
                raise TypeError  # True is no number, as in MXNet
            n = operator.index(int(n) if isinstance(n, (float, np.floating)) and float(n).is_integer() else n)
        except (TypeError, ValueError):
            raise TypeError(f"must be {self.allowed()}, got {value!r}") from None
        return int(self.check(n))


class Params:
    """Parsed parameters of one call; attributes are the values.

    `_key` identifies the static ones (equal keys mean equal values), `_given` is what the caller gave by name (an
    ellipsis for per-call scalars, which are in `_scalars`), `_sig` the input and output names these parameters select.
    """

    _key: int
    _given: dict[str, Any]
    _scalars: Mapping[str, Any] = {}
    _sig: Signature

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # a parameter

    def __repr__(self) -> str:
        return "Params(" + ", ".join(f"{k}={v!r}" for k, v in self.__dict__.items() if k[0] != "_") + ")"

    def with_dynamic(self, values: Mapping[str, Any]) -> Params:
        """A copy that differs in dynamic scalars only (same `_key`)."""
        new = Params.__new__(Params)
        object.__setattr__(new, "__dict__", {**self.__dict__, **values})
        return new

    def __setattr__(self, name: str, value: Any) -> None:
        if "_sig" in self.__dict__ and name[0] != "_":
            raise error(
                AttributeError,
                f"parameter {name!r} cannot be set to {value!r}: all calls with these parameters share them; "
                "compute with a variable of its own",
            )
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)  # which says why not


class Parser:
    """Reads an operator's keyword arguments into :class:`Params`, with a bounded cache keyed on type and value."""

    LIMIT = 1024
    _serial = iter(range(1, 1 << 62))

    def __init__(
        self,
        op: str,
        specs: Mapping[str, Param],
        finish: Callable[[Params], None] | None = None,
        inputs: Iterable[str] = (),
    ) -> None:
        self.op, self.specs, self.finish, self.inputs = op, dict(specs), finish, [*inputs]
        self.dynamic = frozenset(n for n, s in self.specs.items() if s.dynamic)
        self.rest = next((n for n, s in self.specs.items() if s.rest), None)
        self.cache: dict[Any, Params] = {}

    def __call__(self, kwargs: dict[str, Any]) -> Params:
        dyn = {n: kwargs.pop(n) for n in self.dynamic if n in kwargs} if self.dynamic and kwargs else {}
        base = self._static(kwargs, dyn)
        if not dyn:
            return base
        values: dict[str, Any] = {
            n: v if type(v) is float and self.specs[n].free else self._read(n, v) for n, v in dyn.items()
        }
        values["_scalars"] = dyn
        return base.with_dynamic(values)

    def _static(self, kwargs: dict[str, Any], dyn: Mapping[str, Any]) -> Params:
        key: Any = tuple(dyn)
        if kwargs:
            values = [tuple(v) if v.__class__ is list else v for v in kwargs.values()]
            key = tuple(kwargs), tuple(values), tuple(map(type, kwargs.values())), key, told(values)
        try:
            found = self.cache.get(key)
        except TypeError:  # an unhashable value: parsed anew on every call
            return self._parse(kwargs, dyn)
        if found is None:
            found = self._parse(kwargs, dyn)
            if len(self.cache) >= self.LIMIT:
                self.cache.clear()
            # An array may have another value next time; a graph does not come again, and would be kept alive with its
            # programs.
            if not any(hasattr(v, "asscalar") or hasattr(v, "variables") for v in kwargs.values()):
                self.cache[key] = found
        return found

    def _parse(self, kwargs: Mapping[str, Any], dyn: Mapping[str, Any]) -> Params:
        p = Params()
        p._key = next(Parser._serial)
        p._given = {n: [*v] if v.__class__ is list else v for n, v in kwargs.items()} | dict.fromkeys(dyn, ...)
        if self.rest is not None:
            more = tuple((n, text(v)) for n, v in kwargs.items() if n not in self.specs)
            kwargs = {**{n: v for n, v in kwargs.items() if n in self.specs}, self.rest: more}
        for name in kwargs:
            if name not in self.specs:
                raise error(
                    TypeError,
                    f"operator {self.op} has no parameter '{name}'{suggest(name, [*self.specs, *self.inputs])}; "
                    f"its inputs: {', '.join(self.inputs) or 'none'}; "
                    f"its parameters: {', '.join(self.specs) or 'none'}",
                )
        for name, spec in self.specs.items():
            if spec.required and not (name in kwargs or name in dyn):
                raise error(TypeError, f"operator {self.op} needs parameter '{name}' ({spec.allowed()})")
            setattr(p, name, self._read(name, kwargs[name]) if name in kwargs else spec.default)
        if self.finish is not None:
            self.finish(p)
        return p

    def _read(self, name: str, value: Any) -> Any:
        try:
            return self.specs[name].parse(value)
        except Exception as e:  # what a plugin's parameter raises else says its class
            words = (said if isinstance(e, (TypeError, ValueError)) else in_a_line)(e)[:1000]
            kind = TypeError if isinstance(e, TypeError) else ValueError
            raise error(kind, f"operator {self.op}: parameter '{name}' {words}") from None
