"""Shape and dtype rules that several operators share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core.infer import known, show
from ..._core.params import Params

__all__ = [
    "along",
    "axes_of",
    "axis_of",
    "cut_along",
    "first_dtype",
    "fits",
    "floating",
    "gradient_of",
    "one",
    "partly",
    "reduced",
    "size_of",
    "spread_from",
    "times",
    "undoing",
    "whole",
    "within_limits",
]


#: Legacy arrays have no scalars: a full reduction has this shape.
one = (1,)


def axis_of(axis: int, ndim: int, of: str = "") -> int:
    """An axis counted from the front; raises ValueError if it is out of range `of` something."""
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"axis {axis} is out of range for {ndim} dimension{'s' * (ndim != 1)}{of}"
            + (f"; use {-ndim} to {ndim - 1}" if ndim else "")
        )
    return axis + ndim if axis < 0 else axis


def axes_of(axis: Any, ndim: int, exclude: bool = False) -> tuple[int, ...]:
    """The axes of a reduction, counted from the front; None and () stand for all, 0 for those of a number."""
    if axis is None or axis == () or ndim == 0 and axis in (0, -1, (0,), (-1,)):
        chosen = tuple(range(ndim))
    else:
        chosen = tuple(axis_of(a, ndim) for a in ((axis,) if isinstance(axis, int) else axis))
        if len(set(chosen)) != len(chosen):
            raise ValueError(f"axis {axis} names one axis twice")
    if exclude and axis not in (None, ()):
        return tuple(a for a in range(ndim) if a not in chosen)
    return tuple(sorted(chosen))


def reduced(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """The shape after a reduction; () becomes (1,)."""
    if keepdims:
        return tuple(1 if i in axes else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in axes) or one


def first_dtype(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """First input and all outputs have one dtype; other inputs are left alone."""
    t = ins[0] if ins[0] is not None else outs[0]
    return [t, *ins[1:]], [t] * len(outs)


def size_of(shape: Any) -> int:
    """Number of elements of a known shape."""
    n = 1
    for d in shape:
        n *= d
    return n


def undoing(forward: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The shape rule of ``data like~ ...``: `data` has the shape ``forward(p, like)``, the result that of `like`."""

    def rule(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        like = outs[0] if ins[1] is None else ins[1]
        return [forward(p, like) if known(like) else None, like, *ins[2:]], [like]

    return rule


def fits(names: str, given: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Raise ValueError for the first of some inputs that has another shape than it must have."""
    for name, a, b in zip(names.split(), given, wanted):
        if a != b:
            raise ValueError(f"{name} is {show(a)} where {show(b)} is expected")


def within_limits(
    name: str, values: Any, low: float, high: float, what: str, kind: type[Exception] = ValueError
) -> None:
    """Raise an error unless all numbers of an array lie between two, as NaN does not; it says `what` they are."""
    if size_of(values.shape):
        least, most = values.min().item(), values.max().item()
        if not (least >= low and most <= high):
            raise kind(f"{name} holds {most if least >= low else least}; {what} must lie between {low} and {high}")


def whole(xp: Any, numbers: Any) -> Any:
    """Numbers as int64: fractions are cut, what is beyond goes to an end far beyond any axis, NaN is 0."""
    dtype = numbers.dtype
    if dtype == np.uint64:
        numbers = xp.minimum(numbers, dtype.type(2**62))
    elif dtype.kind not in "iub":
        x = numbers if dtype in (np.float32, np.float64) else numbers.astype(np.float32)
        numbers = xp.clip(xp.where(x == x, x, x.dtype.type(0)), -(2.0**62), 2.0**62)
    return numbers.astype(np.int64)


def gradient_of(forward: Callable[[Any, list[Any]], Any]) -> Callable[..., Any]:
    """The shape rule of ``dy data ...``: `dy` has the shape ``forward(p, [data, ...])``, the result `data`'s."""

    def rule(p: Params, ins: list[Any]) -> list[Any]:
        fits(p._sig.inputs[0], ins, [forward(p, ins[1:])])
        return [ins[1]]

    return rule


def spread_from(whole: tuple[int, ...], part: tuple[int, ...], name: str) -> None:
    """Raise ValueError unless `part`, but for leading ones, can be broadcast to `whole`; `name` is that of the part."""
    n = max(len(part) - len(whole), 0)
    if any(d != 1 for d in part[:n]) or any(d not in (1, w) for d, w in zip(part[n:][::-1], whole[::-1])):
        raise ValueError(f"{name} {part} cannot be broadcast to {whole}")


def partly(forward: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The shape rule of an operator of one input from ``forward(p, shape)``, which takes -1 for unknown."""

    def rule(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        if ins[0] is None:
            return ins, outs
        found = forward(p, ins[0])
        return ins, found if isinstance(found, list) else [found]

    return rule


def times(n: int, d: int) -> int:
    """A number times a length, which may be unknown (-1)."""
    return -1 if d == -1 else n * d


def floating(rule: Callable[..., Any] | None = None) -> Callable[..., tuple[list[Any], list[Any]]]:
    """The given two-way dtype rule (all alike unless told), for floating point data only.

    Raises
    ------
    TypeError
        From the rule: if the first input is of whole numbers.
    """

    def checked(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        t = next((t for t in (ins[0], outs[0], *ins) if t is not None), None)
        if t is not None and t.kind in "biu":
            raise TypeError(f"{t.name} numbers are whole; the operator works on float16, float32 and float64")
        return rule(p, ins, outs) if rule else ([t] * len(ins), [t] * len(outs))

    return checked


def along(vector: Any, axis: int, ndim: int) -> tuple[int, ...]:
    """The shape in which a vector lies along an axis."""
    return tuple(vector[0] if i == axis else 1 for i in range(ndim))


def cut_along(ndim: int, axis: int, part: slice) -> tuple[slice, ...]:
    """The index that takes a part of one axis, and all of the others."""
    return (slice(None),) * axis + (part,) + (slice(None),) * (ndim - axis - 1)
