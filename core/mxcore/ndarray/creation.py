"""Functions that make arrays: `array`, `zeros`, `arange`, `save`, `load` and others of ``mx.nd``."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from .._core import tables
from .._core.array import Array, Storage
from .._core.context import Context, current_context
from .._core.engine import engine
from .._core.errors import error
from .._core.params import Parser, as_dtype
from .._core.state import state
from .._interrupts import suppress
from .._locks import fork_safe_lock
from ..elementwise import true_bools
from ..parameters import DType, Shape
from .checks import arrays as only_arrays
from .checks import place
from .ndarray import NDArray, invoke, recorded_copy, run
from .splitting import split_v2
from .windows import storage_over

__all__ = [
    "array",
    "zeros",
    "ones",
    "full",
    "empty",
    "arange",
    "linspace",
    "eye",
    "concatenate",
    "stack_arrays",
    "moveaxis",
    "waitall",
    "onehot_encode",
    "split_v2",
    "histogram",
    "from_numpy",
    "from_dlpack",
    "to_dlpack_for_read",
    "to_dlpack_for_write",
]


def _put(host: np.ndarray[Any, Any], ctx: Context, cls: type[NDArray] = NDArray) -> NDArray:
    # C has two integers of 64 bits: here they are one.
    flat = np.ascontiguousarray(true_bools(host), as_dtype(host.dtype))
    return cls(ctx.device.from_host(flat.reshape(host.shape), ctx.device_id), Storage(ctx))


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """Make an array from anything NumPy understands; of a sparse array or a SciPy matrix a sparse one.

    While recording, gradients flow through the copy of an array.

    Parameters
    ----------
    source_array : array_like, NDArray or scipy.sparse.csr_matrix
    ctx : Context, optional
        Where to put it; the current context unless told.
    dtype : dtype, optional
        That of an NDArray given as the source, else float32.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.nd.array([1, 2]).dtype.__name__
    'float32'
    """
    if getattr(source_array, "stype", "default") != "default" or hasattr(source_array, "toarray"):
        from . import sparse

        return sparse.array(source_array, ctx, dtype)
    if isinstance(source_array, Array):
        ctx = place("array", ctx)
        wanted = source_array._data.dtype if dtype is None else _dtype(dtype)
        recorded = recorded_copy(source_array, ctx, wanted, "default")
        if recorded is not None:
            return recorded
        return _put(source_array.asnumpy().astype(wanted, copy=False), ctx)
    ctx, wanted = current_context() if ctx is None else place("array", ctx), _dtype(dtype)
    try:
        host = np.array(source_array, dtype=wanted)
    except (TypeError, ValueError) as e:
        raise error(
            TypeError, f"nd.array cannot make a {wanted} array of a {type(source_array).__name__}: {e}"
        ) from None
    return _put(host, ctx)


#: What functions that are no operators read their parameters with.
_EMPTY = Parser("empty", {"shape": Shape(), "dtype": DType(np.dtype("float32"))})


_MOVE = Parser("moveaxis", {"source": Shape(), "destination": Shape()})


def _dtype(dtype: Any) -> np.dtype[Any]:
    try:
        return as_dtype(dtype)
    except TypeError as e:
        raise error(TypeError, f"operator array: parameter 'dtype' must be a dtype: {e}") from None


def _read(parser: Parser, **given: Any) -> Any:
    """The parameters of a function, checked; a dtype of None is the default."""
    if given["dtype"] is None:
        del given["dtype"]
    return parser(given)


def _made(op: str, params: dict[str, Any], ctx: Any, dtype: Any, out: Any = None) -> NDArray:
    """What an operator without inputs makes; its own parameters say what is wrong with them."""
    o = tables.ops.get(op)
    return invoke(o, (), _read(o.parser, **params, dtype=dtype), out, cls=NDArray, ctx=place(op, ctx, out))


def empty(shape: Any, ctx: Context | None = None, dtype: Any = None, stype: str | None = None) -> NDArray:
    """An array whose values are undefined.

    Parameters
    ----------
    shape : int or tuple of int
    ctx : Context, optional
    dtype : dtype, optional
        float32 unless told.
    stype : str, optional
        Storage type.
    """
    if stype not in (None, "default"):
        return zeros(shape, ctx, dtype, stype)
    p, where = _read(_EMPTY, shape=shape, dtype=dtype), place("empty", ctx)
    if min(p.shape, default=0) < 0:
        raise error(ValueError, f"operator empty: parameter 'shape' {p.shape} holds a length below 0")
    try:
        return NDArray(where.device.empty(p.shape, p.dtype, where.device_id), Storage(where))
    except (MemoryError, ValueError) as e:
        kind = MemoryError if isinstance(e, MemoryError) else ValueError
        raise error(
            kind, f"operator empty with shape {str(p.shape)[:200]} and dtype {np.dtype(p.dtype).name}: {e}"
        ) from None


def _filled(op: str, shape: Any, ctx: Any, dtype: Any, out: Any, **params: Any) -> NDArray:
    """What `_made` gives; outside of ``np_shape`` no length may be unknown, as MXNet has it."""
    lengths = (shape,) if isinstance(shape, numbers.Integral) else shape
    if not state.np_shape and isinstance(lengths, (tuple, list)) and (not lengths or op != "_full" and 0 in lengths):
        raise error(
            ValueError,
            f"nd.{op[1:]}: shape {shape} holds an unknown length; nd.empty makes an empty array, and under "
            "`with mx.util.np_shape():` 0 is a length like others",
        )
    return _made(op, {"shape": shape, **params}, ctx, dtype, out)


def zeros(
    shape: Any, ctx: Context | None = None, dtype: Any = None, stype: str | None = None, out: Any = None, **kwargs: Any
) -> NDArray:
    """An array of zeros; parameters as in `empty`."""
    if stype not in (None, "default"):
        from . import sparse

        return sparse.zeros(stype, shape, ctx=ctx, dtype=dtype)
    return _filled("_zeros", shape, ctx, dtype, out)


def ones(shape: Any, ctx: Context | None = None, dtype: Any = None, out: Any = None, **kwargs: Any) -> NDArray:
    """An array of ones; parameters as in `empty`."""
    return _filled("_ones", shape, ctx, dtype, out)


def full(shape: Any, val: float, ctx: Context | None = None, dtype: Any = np.float32, out: Any = None) -> NDArray:
    """An array filled with `val`; further parameters as in `empty`."""
    return _filled("_full", shape, ctx, dtype, out, value=val)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: Any = None,
    ctx: Context | None = None,
    dtype: Any = np.float32,
) -> NDArray:
    """Evenly spaced values from `start` up to but without `stop`, each repeated `repeat` times.

    >>> import mxcore as mx
    >>> mx.nd.arange(3).asnumpy().tolist()
    [0.0, 1.0, 2.0]
    """
    if stop is None:
        start, stop = 0, start
    return _made("_arange", {"start": start, "stop": stop, "step": step, "repeat": repeat}, ctx, dtype)


def linspace(
    start: float, stop: float, num: int, endpoint: bool = True, ctx: Context | None = None, dtype: Any = np.float32
) -> NDArray:
    """`num` evenly spaced values from `start` to `stop`."""
    return _made("_linspace", {"start": start, "stop": stop, "num": num, "endpoint": endpoint}, ctx, dtype)


def eye(N: int, M: int = 0, k: int = 0, ctx: Context | None = None, dtype: Any = None, **kwargs: Any) -> NDArray:
    """A matrix of N rows and M (N if 0) columns with ones on the `k`-th diagonal."""
    return _made("_eye", {"N": N, "M": M, "k": k}, ctx, dtype)


def concatenate(arrays: Sequence[NDArray], axis: int = 0, always_copy: bool = True) -> NDArray:
    """Join arrays along an existing axis; one array is returned as it is if `always_copy` is off."""
    if not isinstance(arrays, (list, tuple)):
        raise error(TypeError, f"concatenate: arrays must be a list of NDArrays, got {type(arrays).__name__}")
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    return run(tables.ops.get("Concat"), *arrays, dim=axis)


def stack_arrays(arrays: Sequence[NDArray], axis: int = 0) -> NDArray:
    """Join arrays along a new axis."""
    return run(tables.ops.get("stack"), *arrays, axis=axis)


def moveaxis(tensor: NDArray, source: Any, destination: Any) -> NDArray:
    """Move axes to other places; the rest keep their order."""
    only_arrays("moveaxis", tensor=tensor)
    p: Any = _MOVE({"source": source, "destination": destination})
    src, dst = list(p.source), list(p.destination)
    if len(src) != len(dst):
        raise error(ValueError, f"moveaxis: {len(src)} source axes, {len(dst)} destinations")
    n = tensor.ndim
    for a in (*src, *dst):
        if not -n <= a < n:
            raise error(ValueError, f"moveaxis: axis {a} is out of range for {n} dimensions")
    src, dst = [a % n for a in src], [a % n for a in dst]
    if len({*src}) < len(src) or len({*dst}) < len(dst):
        raise error(ValueError, f"moveaxis: an axis is repeated in source {p.source} or destination {p.destination}")
    order = [a for a in range(n) if a not in src]
    for d, s in sorted(zip(dst, src)):
        order.insert(d, s)
    return tensor.transpose(order)


def waitall() -> None:
    """Wait for all pending work; raises the first failure that nobody has seen."""
    engine.it.wait_all()


def onehot_encode(indices: NDArray, out: NDArray) -> NDArray:
    """Write one-hot rows of `indices` into `out`."""
    only_arrays("onehot_encode", indices=indices, out=out)
    if len(out.shape) != 2:
        raise error(ValueError, f"onehot_encode: out must be a matrix, (indices, classes), got shape {out.shape}")
    return run(tables.ops.get("one_hot"), indices, depth=out.shape[1], dtype=out.dtype, out=out)


def histogram(a: NDArray, bins: Any = 10, range: tuple[float, float] | None = None) -> Any:
    """Counts of values in bins, and the edges of the bins.

    Parameters
    ----------
    a : NDArray
    bins : int or NDArray
        Number of equal bins over `range`, or the edges.
    range : (float, float), optional
        First and last edge; those of the values unless told.

    Returns
    -------
    [NDArray, NDArray]
        Counts as int64 and edges with the dtype of `a`; without a `range` both are float32 and the edges NumPy's, as in
        MXNet.

    Examples
    --------
    >>> import mxcore as mx
    >>> count, edges = mx.nd.histogram(mx.nd.array([1, 2, 2, 4]), bins=3, range=(0, 3))
    >>> count.asnumpy().tolist(), edges.asnumpy().tolist()
    ([0, 1, 2], [0.0, 1.0, 2.0, 3.0])
    """
    only_arrays("histogram", a=a)
    op = tables.ops.get("_histogram")
    if isinstance(bins, NDArray):
        return op(a, bins)
    if not isinstance(bins, numbers.Integral):
        raise error(ValueError, f"histogram: bins must be an int or an NDArray of edges, got {type(bins).__name__}")
    if range is not None or bins < 1:
        return op(a, bin_cnt=int(bins), range=range)
    if np.dtype(a.dtype).kind != "f":
        a = a.astype("float64")
    values = a.asnumpy().astype("float64")
    if not np.isfinite(values).all():
        raise error(
            ValueError,
            f"histogram: the values go from {values.min()} to {values.max()}, "
            "which are no edges; give range=(first, last)",
        )
    return [
        y.astype("float32") for y in op(a, array(np.histogram_bin_edges(values, int(bins)), ctx=a.ctx, dtype=a.dtype))
    ]


def from_numpy(ndarray: np.ndarray[Any, Any], zero_copy: bool = True, array_cls: type[NDArray] = NDArray) -> NDArray:
    """An array over a NumPy array: with `zero_copy` over its memory, which becomes read-only for NumPy.

    Raises
    ------
    MXNetError
        If the memory cannot be shared: it must be C-contiguous.
    """
    if not isinstance(ndarray, np.ndarray):
        raise error(TypeError, f"from_numpy: a NumPy array is needed, got {type(ndarray).__name__}")
    dtype = as_dtype(ndarray.dtype)  # an error for what an array cannot hold
    ctx = Context("cpu", 0)
    if not zero_copy:
        return _put(np.array(ndarray, ndarray.dtype.newbyteorder("=")), ctx, array_cls)
    if not ndarray.flags.c_contiguous:
        raise error(ValueError, "from_numpy: only a C-contiguous array can be shared; pass zero_copy=False")
    if not ndarray.dtype.isnative:
        raise error(
            TypeError,
            f"from_numpy: an array of {ndarray.dtype.str} is in another "
            "byte order than this machine's; pass zero_copy=False",
        )
    with _sharing:
        whole: Any = ndarray.base
        ours: list[Any] = [whole] if isinstance(whole, np.ndarray) and _shared.get(id(whole)) is whole else []
        for a in (*ours, ndarray):  # it may have been shared before, or what it is a part of
            with suppress(ValueError):  # which the memory itself may refuse
                a.flags.writeable = True
        view = ndarray.view(dtype, np.ndarray)  # whose subclasses have rules of their own
        for a in (ndarray, *ours):
            a.flags.writeable = False
        _shared[id(ndarray)] = ndarray
    return array_cls(view, storage_over(view, ctx))


#: The arrays that are read-only since they share their memory.
_shared: WeakValueDictionary[int, np.ndarray[Any, Any]] = WeakValueDictionary()
#: Held while they are writable for a moment; a handler of the holder's may share others.
_sharing = fork_safe_lock()


def from_dlpack(dlpack: Any) -> NDArray:
    """An array over memory offered through DLPack (an object with ``__dlpack__``, or a capsule)."""
    from . import dlpack as door

    return door.from_dlpack(dlpack)


def to_dlpack_for_read(data: NDArray) -> Any:
    """A DLPack capsule of the memory of `data`."""
    only_arrays("to_dlpack_for_read", data=data)
    return data.to_dlpack_for_read()


def to_dlpack_for_write(data: NDArray) -> Any:
    """A DLPack capsule of the memory of `data`, for writing."""
    only_arrays("to_dlpack_for_write", data=data)
    return data.to_dlpack_for_write()
