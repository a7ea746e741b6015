"""Elementwise operators, declared in a line each: unary, binary, broadcasting binary, array with scalar."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ._core.infer import merge_dtype, show
from ._core.op import MISSING, Op
from ._core.params import Params
from .parameters import Bool, Float

__all__ = [
    "binary",
    "broadcast",
    "broadcast_shapes",
    "held",
    "number_dtype",
    "scalar",
    "true_bools",
    "unary",
    "with_number",
    "wrapped",
]

Fn = str | Callable[..., Any]
_INT64, _FLOAT64 = np.dtype("int64"), np.dtype("float64")


def _doc(text: str, name: str, lines: Sequence[str]) -> str:
    return "\n".join([text or f"Apply {name} to each element.", "", "Parameters", "----------", *lines])


def _named(fn: Fn) -> tuple[Callable[..., Any], str | None]:
    """A function over (xp, *arrays), and the name of the array function if it is no more than that."""
    if isinstance(fn, str):
        name, _, order = fn.partition(":")
        if order == "swap":
            return (lambda xp, a, b: getattr(xp, name)(b, a)), fn
        return (lambda xp, *a: getattr(xp, name)(*a)), fn
    return fn, getattr(fn, "direct", None)


def unary(
    name: str,
    fn: Fn,
    *,
    grad: Any = MISSING,
    expr: str | Callable[[Params], str | None] | None = None,
    aliases: Iterable[str] = (),
    doc: str = "",
    samples: Sequence[Any] = (),
    view: bool = False,
    **facets: Any,
) -> Op:
    """Declare an elementwise operator of one input `data`.

    Parameters
    ----------
    name : str
    fn : str or callable
        ``(xp, x) -> array``, or the name of a function of the array namespace.
    grad : callable or None
        Gradient rule, e.g. ``lambda F, dy, y: dy * (1 - y * y)``; None: zero.
    expr : str or callable
        The meaning over the name ``x``, for fusion.
    aliases : iterable of str
        Further names.
    doc : str
        Documentation in front of that of the inputs.
    samples : sequence of Sample
        What the conformance kit runs.
    view : bool
        It returns its input's memory.
    **facets
        Further options of :func:`op`.
    """
    f, direct = _named(fn)
    return Op(
        name,
        lambda k, p, data: f(k.xp, data),
        inputs="data",
        grad=grad,
        **_meaning(expr, {"x": "data"}),
        aliases=aliases,
        samples=samples,
        direct=direct,
        alias="data->output",
        view=view,
        **facets,
        doc=_doc(doc, name, ["data : array", "    Any shape."]),
    )


def binary(
    name: str,
    fn: Fn,
    *,
    grad: Any = MISSING,
    expr: str | Callable[[Params], str | None] | None = None,
    aliases: Iterable[str] = (),
    doc: str = "",
    samples: Sequence[Any] = (),
    **facets: Any,
) -> Op:
    """Declare an elementwise operator of two inputs of one shape, `lhs` and `rhs`.

    Parameters
    ----------
    name : str
    fn : str or callable
        ``(xp, a, b) -> array``, or the name of a function of the array namespace.
    grad : callable or None
        Gradient rule, e.g. ``lambda F, dy, lhs, rhs: (dy * rhs, dy * lhs)``; None: zero.
    expr : str or callable
        The meaning over ``a`` and ``b``, for fusion.
    aliases : iterable of str
        Further names.
    doc : str
        Documentation in front of that of the inputs.
    samples : sequence of Sample
        What the conformance kit runs.
    **facets
        Further options of :func:`op`.
    """
    doc = _doc(doc, name, ["lhs, rhs : array", "    Of one shape and dtype."])
    return _of_two(name, fn, expr, doc=doc, grad=grad, aliases=aliases, samples=samples, **facets)


def _of_two(name: str, fn: Fn, expr: str | Callable[[Params], str | None] | None, **options: Any) -> Op:
    f, direct = _named(fn)
    return Op(
        name,
        lambda k, p, lhs, rhs: f(k.xp, lhs, rhs),
        inputs="lhs rhs",
        **_meaning(expr, {"a": "lhs", "b": "rhs"}),
        direct=direct,
        alias="lhs->output",
        **options,
    )


def broadcast(
    name: str,
    fn: Fn,
    *,
    grad: Any = MISSING,
    expr: str | Callable[[Params], str | None] | None = None,
    aliases: Iterable[str] = (),
    doc: str = "",
    samples: Sequence[Any] = (),
    **facets: Any,
) -> Op:
    """Declare a broadcasting operator of two inputs, `lhs` and `rhs`.

    Parameters
    ----------
    name : str
    fn : str or callable
        ``(xp, a, b) -> array``, or the name of a function of the array namespace.
    grad : callable or None
        Gradient rule, over `lhs` and `rhs`, whose gradients have their shapes; None: zero.
    expr : str or callable
        The meaning over ``a`` and ``b``, for fusion.
    aliases : iterable of str
        Further names.
    doc : str
        Documentation in front of that of the inputs.
    samples : sequence of Sample
        What the conformance kit runs.
    **facets
        Further options of :func:`op`.
    """
    doc = _doc(doc, name, ["lhs, rhs : array", "    Shapes that broadcast, one dtype."])
    op = _of_two(name, fn, expr, doc=doc, grad=grad, aliases=aliases, samples=samples, **facets)
    op.shape(_broadcast_rule)
    return op


def _broadcast_rule(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Shapes of a broadcasting operator; an unknown input is filled from the output where nothing else can fit."""
    a, b = ins
    if a is not None and b is not None:
        return ins, [broadcast_shapes(a, b)]
    return ins, outs


def scalar(
    name: str,
    fn: Fn,
    *,
    grad: Any = MISSING,
    expr: str | Callable[[Params], str | None] | None = None,
    aliases: Iterable[str] = (),
    doc: str = "",
    samples: Sequence[Any] = (),
    **facets: Any,
) -> Op:
    """Declare an operator of an array and a number.

    The number is cast to the array's dtype first, so an int32 array times 2.5 is a multiplication by 2; with
    ``is_int=False`` an array of whole numbers becomes float64 instead. Truth values count as int64.

    Parameters
    ----------
    name : str
    fn : str or callable
        ``(xp, x, s) -> array``, or the name of a function of the array namespace.
    grad : callable or None
        Gradient rule, e.g. ``lambda F, p, dy: dy * p.scalar``; None: zero.
    expr : str or callable
        The meaning over ``x`` and ``s``, for fusion.
    aliases : iterable of str
        Further names.
    doc : str
        Documentation in front of that of the inputs.
    samples : sequence of Sample
        What the conformance kit runs.
    **facets
        Further options of :func:`op`.
    """
    f, direct = _named(fn)

    def body(k: Any, p: Params, data: Any) -> Any:
        return f(k.xp, *with_number(p, data))

    op = Op(
        name,
        body,
        inputs="data",
        params={"scalar": Float(1.0, dynamic=True), "is_int": Bool(True)},
        grad=grad,
        aliases=aliases,
        samples=samples,
        direct=direct,
        alias="data->output",
        **facets,
        **_meaning(expr, {"x": "data", "s": "scalar"}),
        doc=_doc(
            doc,
            name,
            [
                "data : array",
                "    Any shape.",
                "scalar : float",
                "    Cast to the dtype of `data`.",
                "is_int : bool",
                "    False makes whole numbers float64.",
            ],
        ),
    )
    op.dtype(number_dtype)
    return op


def number_dtype(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Dtypes of an operator of array and number: alike, but for bools, and integers where `is_int` is false."""
    t = ins[0]
    if t is None or t.kind not in "iub":
        t = merge_dtype(t, outs[0])
        return [t], [t]
    return ins, [_FLOAT64 if not p.is_int else _INT64 if t.kind == "b" else t]


def with_number(p: Params, data: Any) -> tuple[Any, Any]:
    """The array and its number, both as :func:`number_dtype` says."""
    s: float = p.scalar
    if data.dtype.kind not in "iub":
        return data, s
    to = number_dtype(p, [data.dtype], [None])[1][0]
    return data.astype(to), s if to == _FLOAT64 else wrapped(s, to)


def wrapped(value: float, dtype: Any) -> Any:
    """A number as an integer dtype holds it: cut towards zero, and wrapped around as C does."""
    with np.errstate(invalid="ignore"):  # NaN, infinity
        return (
            np.int64(value)
            if isinstance(value, int) and -(2**63) <= value < 2**63
            else np.float64(value).astype(np.int64)
        ).astype(dtype)


def true_bools(host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of NumPy's as it is, or with new bools: bytes other than 0 and 1, as damaged files have, count as True.

    Examples
    --------
    >>> import numpy as np
    >>> true_bools(np.array([0, 1, 255], np.uint8).view(np.bool_)).view(np.uint8).tolist()
    [0, 1, 1]
    """
    return np.asarray(host.view(np.uint8) != 0) if host.dtype == np.bool_ else host


def held(value: float, dtype: Any) -> Any:
    """A number as a dtype holds it: an integer wraps, and a float that is too large is infinity.

    Parameters
    ----------
    value : float
    dtype : numpy.dtype

    Examples
    --------
    >>> import numpy as np
    >>> int(held(-1.0, np.dtype("uint8"))), held(0.5, np.dtype("float16"))
    (255, 0.5)
    """
    if dtype.kind in "iub":
        return wrapped(value, dtype)
    with np.errstate(over="ignore"):
        return float(np.asarray(value).astype(dtype))


def _meaning(expr: Any, names: dict[str, str]) -> dict[str, Any]:
    """The facet `expr` with whole-word names exchanged, if there is one."""

    def renamed(text: str | None) -> str | None:
        return None if text is None else re.sub(r"[A-Za-z_]\w*", lambda m: names.get(m.group(), m.group()), text)

    return {} if expr is None else {"expr": (lambda p: renamed(expr(p))) if callable(expr) else renamed(expr)}


def broadcast_shapes(a: Any, b: Any) -> Any:
    """NumPy's broadcast of two shapes `a` and `b` with unknown dimensions; raises ValueError if they do not fit."""
    if a is None or b is None:
        return None
    if a == b:
        return a
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + tuple(a), (1,) * (n - len(b)) + tuple(b)
    out = []
    for x, y in zip(a, b):
        if x == y or y == 1:
            out.append(x)
        elif x == 1:
            out.append(y)
        elif -1 in (x, y):
            out.append(max(x, y))  # the known one: 1 was ruled out above
        else:
            raise ValueError(f"{show(a)} and {show(b)} cannot be broadcast together")
    return tuple(out)
