"""Multi-head attention over projections that lie interleaved in one array: scores of pairs, and their weighted sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.op import Op, op
from ..._core.params import Params
from ...parameters import Bool, Int, Shape
from ...typing import Array, Call, Operators
from ..common.bodies import wide
from ..common.rules import size_of

__all__ = [
    "HEADS",
    "attention_scores",
    "attention_sum",
    "encdec_qk",
    "flattened",
    "float_dtypes",
    "selfatt_qk",
    "weighted_sum",
    "width",
]


@op("_contrib_div_sqrt_dim", inputs="data", grad=lambda F, dy: F._contrib_div_sqrt_dim(dy))
def div_sqrt_dim(k: Call, p: Params, data: Array) -> Array:
    """Divide by the square root of the length of the last axis.

    Parameters
    ----------
    data : array
    """
    return data / data.dtype.type(np.sqrt(data.shape[-1]))


@div_sqrt_dim.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    shape = ins[0] if ins[0] is not None else outs[0]
    if shape == ():
        raise ValueError("data must have at least one dimension")
    return [shape], [shape]


HEADS = {"heads": Int(ge=1)}
_ONE = (0, 1)  # a slot is (its place, how many there are)
_FLOAT_ONLY = "the projections must be floats"


def width(shape: tuple[int, ...], heads: int, slots: int) -> int:
    """The length of one projection of one head."""
    return shape[2] // (heads * slots)


def _matrices(x: Any, heads: int, slot: tuple[int, ...]) -> Any:
    """One slot as matrices (batch * heads, length, d): a view."""
    n, b = x.shape[:2]
    d = width(x.shape, heads, slot[1])
    return x.reshape(n, b * heads, slot[1], d)[:, :, slot[0]].transpose(1, 0, 2)


def _scores(xp: Any, a: Any, b: Any, heads: int, a_slot: tuple[int, ...], b_slot: tuple[int, ...], scaled: bool) -> Any:
    x, y = _matrices(wide(a), heads, a_slot), _matrices(wide(b), heads, b_slot)
    out = xp.matmul(x, xp.swapaxes(y, -1, -2))
    return out * out.dtype.type(x.shape[2] ** -0.5) if scaled and x.shape[2] else out


def _put(out: Any, part: Any, heads: int, slot: tuple[int, ...]) -> None:
    """Write matrices (batch * heads, length, d) into a slot of an array (length, batch * heads, slots, d)."""
    out[:, :, slot[0]] = part.transpose(1, 0, 2)


def weighted_sum(
    xp: Any,
    weights: Any,
    values: Any,
    heads: int,
    slot: tuple[int, ...],
    out_slot: tuple[int, ...],
    transpose: bool,
    scaled: bool,
    out: Any = None,
) -> Any:
    """Sums of values by weights, written into their slot of the interleaved output."""
    w, v = wide(weights), _matrices(wide(values), heads, slot)
    y = xp.matmul(xp.swapaxes(w, -1, -2) if transpose else w, v)
    if scaled and v.shape[2]:
        y = y * y.dtype.type(v.shape[2] ** -0.5)
    if out is None:
        out = xp.zeros((y.shape[1], y.shape[0], out_slot[1], y.shape[2]), y.dtype)
    _put(out, y, heads, out_slot)
    return out


def flattened(out: Any, batch: int, heads: int) -> Any:
    """An array (length, batch * heads, slots, d) as (length, batch, heads * slots * d)."""
    n, _, slots, d = out.shape
    return out.reshape(n, batch, heads * slots * d)


# -- shapes ---------------------------------------------------------------------------------------------------------


def _projected(name: str, shape: tuple[int, ...], heads: int, slots: int) -> None:
    """Raise ValueError for a shape that is not (length, batch, heads * slots * d)."""
    if len(shape) != 3:
        raise ValueError(
            f"{name} must be (length, batch, "
            f"{slots if slots > 1 else ''}{' * ' if slots > 1 else ''}heads * d), got {shape}"
        )
    if shape[2] % (heads * slots):
        what = f"{heads} heads" + (f" x {slots} projections" if slots > 1 else "")
        raise ValueError(f"{name} {shape}: the last axis must be a multiple of {heads * slots} ({what})")


def _slots(**slots: tuple[int, ...]) -> None:
    """Raise ValueError for what is no place and number of slots."""
    for name, slot in slots.items():
        if len(slot) != 2 or not 0 <= slot[0] < slot[1]:
            raise ValueError(f"{name} {slot} must be a place and a number of places that is larger")


def _pair_shape(names: tuple[str, str], p: Any, a: Any, b: Any, a_slots: int, b_slots: int) -> list[Any]:
    _projected(names[0], a, p.heads, a_slots)
    _projected(names[1], b, p.heads, b_slots)
    if a[1] != b[1] or a[2] // a_slots != b[2] // b_slots:
        raise ValueError(f"{names[0]} {a} and {names[1]} {b} differ in the batch or in the length of a projection")
    return [(a[1] * p.heads, a[0], b[0])]


def _weighted_shape(
    names: tuple[str, str], p: Any, values: Any, weights: Any, slots: int, out_slots: int, transpose: bool = False
) -> list[Any]:
    _projected(names[0], values, p.heads, slots)
    n, m = (
        (weights[-1], weights[-2]) if transpose and len(weights) == 3 else weights[-2:] if len(weights) == 3 else (0, 0)
    )
    if len(weights) != 3 or weights[0] != values[1] * p.heads or m != values[0]:
        wanted = (values[1] * p.heads, *((values[0], "n") if transpose else ("n", values[0])))
        raise ValueError(
            f"{names[1]} must be (batch * heads, ...) = "
            f"({', '.join(map(str, wanted))}) for {names[0]} {values}, got {weights}"
        )
    return [(n, values[1], values[2] // slots * out_slots)]


def float_dtypes(p: Params, ins: Any, outs: Any) -> Any:
    """One dtype for all, which must be a float."""
    known = next((t for t in (*ins, *outs) if t is not None), None)
    if known is not None and known.kind not in "fV":
        raise TypeError(f"{_FLOAT_ONLY}, got {known.name}")
    return [known] * len(ins), [known] * len(outs)


@op("_attention_scores", inputs="a b", **HEADS, a_slot=Shape(_ONE), b_slot=Shape(_ONE), scaled=Bool(True))
def attention_scores(k: Call, p: Params, a: Array, b: Array) -> Array:
    """The products of all positions of two projections, a matrix for every head.

    Parameters
    ----------
    a, b : array, (length, batch, heads * slots * d)
    heads : int
    a_slot, b_slot : (int, int)
        Which projection of how many.
    scaled : bool
        Divide by the square root of d.
    """
    return _scores(k.xp, a, b, p.heads, p.a_slot, p.b_slot, p.scaled)


@attention_scores.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    _slots(a_slot=p.a_slot, b_slot=p.b_slot)
    return _pair_shape(("a", "b"), p, ins[0], ins[1], p.a_slot[1], p.b_slot[1])


@op(
    "_attention_sum",
    inputs="weights values",
    **HEADS,
    slot=Shape(_ONE),
    out_slot=Shape(_ONE),
    transpose=Bool(False),
    scaled=Bool(False),
)
def attention_sum(k: Call, p: Params, weights: Array, values: Array) -> Array:
    """Sums of a projection's positions, weighted by a matrix for every head; the other slots of the result are zero.

    Parameters
    ----------
    weights : array, (batch * heads, n, length)
    values : array, (length, batch, heads * slots * d)
    heads : int
    slot, out_slot : (int, int)
        Which projection of how many: of `values`, of the result.
    transpose : bool
        Transpose the matrices of `weights` first.
    scaled : bool
        Divide by the square root of d.
    """
    return flattened(
        weighted_sum(k.xp, weights, values, p.heads, p.slot, p.out_slot, p.transpose, p.scaled),
        values.shape[1],
        p.heads,
    )


@attention_sum.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    _slots(slot=p.slot, out_slot=p.out_slot)
    return _weighted_shape(("values", "weights"), p, ins[1], ins[0], p.slot[1], p.out_slot[1], p.transpose)


# -- MXNet's four ---------------------------------------------------------------------------------------------------

_QKV = "queries_keys_values"


@op(
    "_contrib_interleaved_matmul_selfatt_qk",
    inputs=_QKV,
    labels="outputs",
    **HEADS,
    grad=lambda F, p, dy, queries_keys_values: F._backward_interleaved_matmul_selfatt_qk(
        dy, queries_keys_values, heads=p.heads
    ),
)
def selfatt_qk(k: Call, p: Params, queries_keys_values: Array) -> Array:
    """The scores of self-attention: queries times keys, divided by the square root of their length.

    Parameters
    ----------
    queries_keys_values : array, (length, batch, heads * 3 * d)
        For every head its query, key and value.
    heads : int

    Returns
    -------
    array, (batch * heads, length, length)

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``interleaved_matmul_selfatt_qk``. MXNet takes float32 only on the CPU, and cuts off
    what `heads` does not divide, which is an error here. Source: Vaswani et al., "Attention is all you need", 2017.
    """
    x = queries_keys_values
    return _scores(k.xp, x, x, p.heads, (0, 3), (1, 3), True)


selfatt_qk.shape(lambda p, ins: _pair_shape((_QKV, _QKV), p, ins[0], ins[0], 3, 3))


def _valatt_grads(
    F: Operators, p: Params, dy: Any, values: Any, attention: Any, needs: Any, slot: tuple[int, int]
) -> Any:
    return (
        F._attention_sum(attention, dy, heads=p.heads, out_slot=slot, transpose=True) if needs[0] else None,
        F._attention_scores(dy, values, heads=p.heads, b_slot=slot, scaled=False) if needs[1] else None,
    )


@op(
    "_contrib_interleaved_matmul_selfatt_valatt",
    inputs="queries_keys_values attention",
    labels="outputs",
    **HEADS,
    grad=lambda F, p, dy, queries_keys_values, attention, needs: _valatt_grads(
        F, p, dy, queries_keys_values, attention, needs, (2, 3)
    ),
)
def selfatt_valatt(k: Call, p: Params, queries_keys_values: Array, attention: Array) -> Array:
    """The output of self-attention: sums of the values, weighted by the attention.

    Parameters
    ----------
    queries_keys_values : array, (length, batch, heads * 3 * d)
        For every head its query, key and value.
    attention : array, (batch * heads, length, length)
    heads : int

    Returns
    -------
    array, (length, batch, heads * d)

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``interleaved_matmul_selfatt_valatt``.
    """
    return flattened(
        weighted_sum(k.xp, attention, queries_keys_values, p.heads, (2, 3), _ONE, False, False),
        queries_keys_values.shape[1],
        p.heads,
    )


selfatt_valatt.shape(lambda p, ins: _weighted_shape((_QKV, "attention"), p, ins[0], ins[1], 3, 1))


@op("_contrib_interleaved_matmul_encdec_qk", inputs="queries keys_values", labels="outputs", **HEADS)
def encdec_qk(k: Call, p: Params, queries: Array, keys_values: Array) -> Array:
    """The scores of attention between two sequences: queries times keys, divided by the square root of their length.

    Parameters
    ----------
    queries : array, (n, batch, heads * d)
    keys_values : array, (m, batch, heads * 2 * d)
        For every head its key and value.
    heads : int

    Returns
    -------
    array, (batch * heads, n, m)

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``interleaved_matmul_encdec_qk``.
    """
    return _scores(k.xp, queries, keys_values, p.heads, _ONE, (0, 2), True)


encdec_qk.shape(lambda p, ins: _pair_shape(("queries", "keys_values"), p, ins[0], ins[1], 1, 2))


@op(
    "_contrib_interleaved_matmul_encdec_valatt",
    inputs="keys_values attention",
    labels="outputs",
    **HEADS,
    grad=lambda F, p, dy, keys_values, attention, needs: _valatt_grads(F, p, dy, keys_values, attention, needs, (1, 2)),
)
def encdec_valatt(k: Call, p: Params, keys_values: Array, attention: Array) -> Array:
    """The output of attention between two sequences: sums of the values, weighted by the attention.

    Parameters
    ----------
    keys_values : array, (m, batch, heads * 2 * d)
        For every head its key and value.
    attention : array, (batch * heads, n, m)
    heads : int

    Returns
    -------
    array, (n, batch, heads * d)

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``interleaved_matmul_encdec_valatt``.
    """
    return flattened(
        weighted_sum(k.xp, attention, keys_values, p.heads, (1, 2), _ONE, False, False), keys_values.shape[1], p.heads
    )


encdec_valatt.shape(lambda p, ins: _weighted_shape(("keys_values", "attention"), p, ins[0], ins[1], 2, 1))

#: Operator -> (which of inputs and outputs holds the scores, which input the projections, in how many slots)
_PRODUCTS: dict[Op, tuple[int, int, Callable[[Params], int]]] = {
    attention_scores: (-1, 0, lambda p: p.a_slot[1]),
    attention_sum: (0, 1, lambda p: p.slot[1]),
    selfatt_qk: (-1, 0, lambda p: 3),
    selfatt_valatt: (1, 0, lambda p: 3),
    encdec_qk: (-1, 0, lambda p: 1),
    encdec_valatt: (1, 0, lambda p: 2),
}


def _flops(scores: int, projections: int, slots: Callable[[Params], int]) -> Callable[..., Any]:
    def count(p: Params, ins: list[Any], outs: list[Any]) -> Any:
        return 2 * size_of([*ins, *outs][scores]) * width(ins[projections], p.heads, slots(p))

    return count


for _op in _PRODUCTS:
    _op.attach(flops=_flops(*_PRODUCTS[_op]))
    _op.dtype(float_dtypes)
    # A product counts a tenth of a plain operation, as elsewhere.
    _op.cost(lambda p, ins, outs: sum(map(size_of, ins)) + size_of(outs[0]) * 6)
