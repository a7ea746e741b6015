"""Casts of mixed precision training: they touch float32, float16 and bfloat16 only."""

from __future__ import annotations

from typing import Any

from .._core.infer import merge_shape
from .._core.op import op
from ..parameters import Bool, DType, Int

__all__: list[str] = []


def _is_float(t: Any) -> bool:
    """Whether mixed precision knows a dtype; it leaves float64 alone, as MXNet does."""
    return t.name in ("float32", "float16", "bfloat16")


def _cast(x: Any, dtype: Any) -> Any:
    return x.astype(dtype) if x.dtype != dtype else x.copy()


@op(
    "amp_cast",
    inputs="data",
    dtype=DType(),
    expr="data",
    identity=True,
    grad=lambda F, dy, like_data: F._cast_like(dy, like_data),
)
def amp_cast(k, p, data):
    """Convert float32, float16 or bfloat16 to another dtype; arrays of other dtypes stay as they are.

    Parameters
    ----------
    data : array
    dtype : dtype
    """
    return _cast(data, p.dtype) if _is_float(data.dtype) else data.copy()


@amp_cast.dtype
def _(p, ins, outs):
    return ins, [None if ins[0] is None else p.dtype if _is_float(ins[0]) else ins[0]]


@op(
    "amp_multicast",
    inputs="data*",
    count="num_outputs",
    arg_names=lambda p: [f"data_{i}" for i in range(p.num_outputs)],
    params={"num_outputs": Int(ge=1, le=1 << 16)},
    cast_narrow=Bool(False),
    outputs=lambda p: ["output"] if p.num_outputs == 1 else [f"output{i}" for i in range(p.num_outputs)],
    grad=lambda F, dys, like_data: [[F._cast_like(g, x) for g, x in zip(dys, like_data)]],
)
def amp_multicast(k, p, *data):
    """Convert float32, float16 and bfloat16 arrays to the widest dtype among them, or to the narrowest; others stay as
    they are.

    Parameters
    ----------
    data : arrays
    num_outputs : int
        How many; counted for you.
    cast_narrow : bool
        The narrowest.
    """
    to = _common(p, [x.dtype for x in data])
    return [_cast(x, to) if _is_float(x.dtype) else x.copy() for x in data]


def _common(p: Any, dtypes: list[Any]) -> Any:
    found = sorted({t for t in dtypes if t is not None and _is_float(t)}, key=lambda t: t.itemsize)
    return None if not found else found[0] if p.cast_narrow else found[-1]


@amp_multicast.shape
def _(p, ins, outs):
    shapes = [merge_shape(a, b) for a, b in zip(ins, outs)]
    return shapes, shapes


@amp_multicast.dtype
def _(p, ins, outs):
    to = None if any(t is None for t in ins) else _common(p, ins)
    return ins, [to if t is not None and _is_float(t) else t for t in ins]
