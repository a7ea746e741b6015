"""Casts of mixed precision training: they touch floating point numbers only."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._core.op import op
from .._core.params import Bool, DType, Int
from ..testing.sample import Sample, Values

__all__: list[str] = []


def _is_float(t: Any) -> bool:
    return t.kind == "f" or t.name == "bfloat16"


def _cast(x: Any, dtype: Any) -> Any:
    return x.astype(dtype) if x.dtype != dtype else x.copy()


@op("amp_cast", inputs="data", dtype=DType(), grad=lambda F, dy, like_data: F._cast_like(dy, like_data),
    samples=[Sample((2, 3), params={"dtype": "float64"}), Sample((2, 3), params={"dtype": "float16"}, grad=False),
             Sample(np.array([[1, 2]], np.int32), params={"dtype": "float16"}, grad=False)])
def amp_cast(k, p, data):
    """Convert floating point numbers to another dtype; other arrays stay as they are.

    Parameters
    ----------
    data : array
    dtype : dtype
    """
    return _cast(data, p.dtype) if _is_float(data.dtype) else data.copy()


@amp_cast.dtype
def _(p, ins, outs):
    return ins, [None if ins[0] is None else p.dtype if _is_float(ins[0]) else ins[0]]


@op("amp_multicast", inputs="data*", count="num_outputs", params={"num_outputs": Int(ge=1)}, cast_narrow=Bool(False),
    outputs=lambda p: [f"output{i}" for i in range(p.num_outputs)],
    grad=lambda F, dys, like_data: [[F._cast_like(g, x) for g, x in zip(dys, like_data)]],
    samples=[Sample(Values((2, 3), dtype="float16"), (2, 3), params={"num_outputs": 2, "cast_narrow": n}, mxnet="refused by its CPU backend")
             for n in (False, True)])
def amp_multicast(k, p, *data):
    """Convert floating point arrays to the widest dtype among them, or to the narrowest.

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


amp_multicast.shape(lambda p, ins, outs: (ins, ins))


@amp_multicast.dtype
def _(p, ins, outs):
    to = None if any(t is None for t in ins) else _common(p, ins)
    return ins, [to if t is not None and _is_float(t) else t for t in ins]
