"""The operators of ``mx.np`` that make arrays from nothing: those of ``mx.nd`` where they mean the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, DType, Float, Int, Shape, Str
from ...twins import twin
from ...typing import Array, Call
from ..common.bodies import silent
from . import operators as nd

__all__: list[str] = []

_F32, _I32 = np.dtype("float32"), np.dtype("int32")
_WHERE = dict(ctx=Str(None), dtype=DType(_F32))


def _asked(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    return ins, [p.dtype]


def _of_shape(name: str, of: Any) -> Any:
    made = twin(name, of)
    made.shape(lambda p, ins, outs: (ins, [p.shape]))  # a zero is a length
    return made


zeros = _of_shape("_npi_zeros", nd.zeros)
ones = _of_shape("_npi_ones", nd.ones)
arange = twin("_npi_arange", nd.arange)


@op("_npi_identity", inputs="", shape=Shape(()), **_WHERE, grad=None)
def identity(k: Call, p: Params) -> Array:
    """The identity matrix.

    Parameters
    ----------
    shape : (n, n)
    ctx : str
    dtype : dtype
    """
    return k.xp.eye(p.shape[0], dtype=p.dtype)


@identity.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    if len(p.shape) != 2 or p.shape[0] != p.shape[1]:
        raise ValueError(f"shape {p.shape} must be (n, n)")
    return ins, [p.shape]


identity.dtype(_asked)


@op("_npi_eye", inputs="", N=Int(ge=0), M=Int(None, ge=0), k=Int(0), **_WHERE, grad=None)
def eye(k: Call, p: Params) -> Array:
    """A matrix with ones on a diagonal.

    Parameters
    ----------
    N, M : int
        Rows and columns; as many columns as rows unless told.
    k : int
        Which diagonal: above the main one if positive.
    ctx : str
    dtype : dtype
    """
    return k.xp.eye(p.N, p.N if p.M is None else p.M, p.k, dtype=p.dtype)


eye.shape(lambda p, ins, outs: (ins, [(p.N, p.N if p.M is None else p.M)]))
eye.dtype(_asked)


@op("_npi_indices", inputs="", dimensions=Shape(), dtype=DType(_I32), ctx=Str(None), grad=None)
def indices(k: Call, p: Params) -> Array:
    """The indices of a grid: along the first axis one array for each dimension.

    Parameters
    ----------
    dimensions : tuple of int
        The shape of the grid.
    dtype : dtype
    ctx : str
    """
    n, dims = len(p.dimensions), p.dimensions
    if not n:
        return k.xp.empty((0,), p.dtype)
    lines = [
        k.xp.arange(d, dtype=p.dtype).reshape(tuple(d if i == j else 1 for j in range(n))) for i, d in enumerate(dims)
    ]
    return k.xp.stack([k.xp.broadcast_to(x, dims) for x in lines], 0)


indices.shape(lambda p, ins, outs: (ins, [(len(p.dimensions), *p.dimensions)]))
indices.dtype(_asked)


@op(
    "_npi_logspace",
    inputs="",
    start=Float(),
    stop=Float(),
    num=Int(ge=0),
    endpoint=Bool(True),
    base=Float(10.0),
    **_WHERE,
    grad=None,
)
@silent
def logspace(k: Call, p: Params) -> Array:
    """Values whose logarithms are evenly spaced.

    Parameters
    ----------
    start, stop : float
        Exponents of the first and the last value.
    num : int
    endpoint : bool
        Whether ``base**stop`` is the last value.
    base : float
    ctx : str
    dtype : dtype
    """
    return k.xp.power(p.base, k.xp.linspace(p.start, p.stop, p.num, endpoint=p.endpoint))


logspace.shape(lambda p, ins, outs: (ins, [(p.num,)]))
logspace.dtype(_asked)


@op("_npi_full_like", inputs="a~", fill_value=Float(), ctx=Str(None), dtype=DType(None), grad=None)
def full_like(k: Call, p: Params, a: Array) -> Array:
    """An array of one value, of the shape of another one.

    Parameters
    ----------
    a : array
        Only its shape and dtype are used.
    fill_value : float
    ctx : str
        Has no effect: it is where `a` is.
    dtype : dtype, optional
        That of `a` unless told.
    """
    dtype = a.dtype if p.dtype is None else p.dtype
    value = int(p.fill_value) if dtype.kind in "iu" and abs(p.fill_value) < np.inf else p.fill_value
    if dtype.kind in "iu":
        value = int(np.array(value).astype(np.int64).astype(dtype))
    return k.xp.full(a.shape, value, dtype)


full_like.dtype(lambda p, ins, outs: (ins, [ins[0] if p.dtype is None else p.dtype]))
