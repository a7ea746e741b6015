"""Sparse arrays: classes over row-sparse and CSR values, and their construction (``mx.nd.sparse``)."""

from __future__ import annotations

import math
import operator
from numbers import Integral
from typing import Any

import numpy as np

from .. import _importing
from .._core import tables, transfer
from .._core.array import Storage, faces
from .._core.context import Context
from .._core.errors import error
from .._core.params import Parser, as_dtype
from .._core.state import state
from .._locks import writing
from .._op_functions import eager_function, namespace
from ..base import plain
from ..ops.common.python_operators import OPERATORS
from ..ops.sparse.operators import to_csr, to_rows
from ..parameters import Shape
from ..stypes import CSR, RowSparse
from . import checks, indexing, operators
from .ndarray import NDArray, recorded_copy, run
from .serialization import in_order, sparse_problem, starts

__all__ = [
    "BaseSparseNDArray",
    "RowSparseNDArray",
    "CSRNDArray",
    "row_sparse_array",
    "csr_matrix",
    "zeros",
    "array",
    "empty",
    "from_scipy",
    "add",
    "subtract",
    "multiply",
    "divide",
]


class BaseSparseNDArray(NDArray):
    """What sparse arrays share: they are written as a whole, and become dense through ``tostype('default')``."""

    __slots__ = ()

    #: How many arrays tell where the values stand.
    _num_aux: int

    def _ready(self) -> Context:
        """The array's context, for array functions to run on, once its parts are there."""
        ctx = self._st.ctx
        self._st.wait()
        ctx.activate()
        return ctx

    def _part(self, name: str) -> NDArray:
        """A part to read, over the array's own memory: writes to the array replace it."""
        ctx = self._ready()
        return NDArray(getattr(self._data, name), Storage(ctx))

    def _copied(self, name: str) -> NDArray:
        """A copy of a part, as it is now."""
        ctx = self._ready()
        return NDArray(self._data.copied(name), Storage(ctx))

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """The full array as a NumPy array."""
        device = self._ready().device
        return device.to_host(self._data.todense(device.xp))

    def __getitem__(self, key: Any) -> NDArray:
        if indexing.is_all(key):
            return self
        raise error(IndexError, f"a {self.stype} array can only be read as a whole, x[:]; use tostype('default')[...]")

    def __setitem__(self, key: Any, value: Any) -> None:
        if not indexing.is_all(key):
            raise error(IndexError, f"a {self.stype} array can only be written as a whole, x[:] = another array")
        transfer.guard_write(self, "x[:] = value")
        if state.record and isinstance(value, NDArray) and value._entry is not None and value.shape == self.shape:
            value.copyto(self)  # gradients flow through it
        else:
            indexing.write(self, value)

    @property
    def _what(self) -> str:
        return f"{self.stype} array of shape {self.shape}"

    def check_format(self, full_check: bool = True) -> None:
        """Check that the parts fit together.

        Parameters
        ----------
        full_check : bool
            Look at all indices as well, not only at the sizes.

        Raises
        ------
        MXNetError
            A ValueError that says what is wrong.
        """
        raise error(TypeError, f"check_format: {type(self).__name__} does not say how it is built")

    def __repr__(self) -> str:
        return f"\n<{type(self).__name__} {'x'.join(map(str, self.shape))} @{self.context}>"

    def reshape(self, *shape: Any, **kwargs: Any) -> NDArray:
        raise error(TypeError, f"a {self.stype} array cannot be reshaped; use tostype('default') first")

    def as_np_ndarray(self) -> NDArray:
        raise error(ValueError, f"a {self.stype} array has no form in mx.np; use tostype('default') first")

    def copy(self) -> NDArray:
        """A new array with the same values."""
        if state.record and self._entry is not None:
            return super().copy()
        ctx = self._ready()
        return self.__class__(self._data.copy(), Storage(ctx))

    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """The values in another dtype; with ``copy=False`` the array itself if it has that dtype."""
        if not copy and as_dtype(dtype) == self._data.dtype:
            return self
        if state.record and self._entry is not None:
            return super().astype(dtype).tostype(self.stype)
        ctx = self._ready()
        return self.__class__(self._data.astype(as_dtype(dtype)), Storage(ctx))

    @property
    def indices(self) -> NDArray:
        """A copy of the stored indices (int64)."""
        return self._copied("indices")

    @property
    def data(self) -> NDArray:
        """A copy of the stored values."""
        return self._copied("values")

    def __reduce__(self) -> tuple[Any, ...]:
        device = self._ready().device
        return (_unpickle, (self.stype, self.shape, [device.to_host(p) for p in self._data.parts], self.context))

    @classmethod
    def _zeros(cls, shape: tuple[int, ...], ctx: Context, dtype: Any) -> NDArray:
        return zeros(cls.stype, shape, ctx, dtype)


class RowSparseNDArray(BaseSparseNDArray):
    """Rows `indices` (sorted) hold `data`, all other rows are zero."""

    __slots__ = ()
    stype = "row_sparse"
    _num_aux = 1
    packed = staticmethod(to_rows)

    def check_format(self, full_check: bool = True) -> None:
        """Check that the parts fit together: see `BaseSparseNDArray.check_format`."""
        rows, data = self._part("indices").asnumpy(), self._part("values")
        if rows.ndim != 1 or data.shape != (len(rows), *self.shape[1:]):
            raise error(ValueError, f"check_format: {self._what} with indices {rows.shape} and data {data.shape}")
        if full_check and len(rows) and (rows[0] < 0 or rows[-1] >= self.shape[0] or (rows[1:] <= rows[:-1]).any()):
            raise error(
                ValueError,
                f"check_format: {self._what}: indices must rise "
                f"and lie in [0, {self.shape[0]}), got {rows.tolist()[:10]}",
            )

    def retain(self, indices: NDArray) -> NDArray:
        """The rows in `indices` only."""
        return run(tables.ops.get("_sparse_retain"), self, indices)


class CSRNDArray(BaseSparseNDArray):
    """A matrix in compressed rows: row i holds ``data[indptr[i]:indptr[i+1]]`` at columns ``indices[...]``."""

    __slots__ = ()
    stype = "csr"
    _num_aux = 2
    packed = staticmethod(to_csr)

    def __getitem__(self, key: Any) -> NDArray:
        """A row, as a matrix of one row, or a range of rows; both are copies in csr storage.

        >>> import mxcore as mx
        >>> mx.nd.sparse.csr_matrix([[0, 1], [2, 0], [0, 3]])[1:].asnumpy().tolist()
        [[2.0, 0.0], [0.0, 3.0]]
        """
        if indexing.is_all(key):
            return self
        rows = indexing.row_range(key, self.shape[0], self._what)
        return run(tables.ops.get("slice"), self, begin=(rows.start,), end=(rows.stop,))

    def asscipy(self) -> Any:
        """A ``scipy.sparse.csr_matrix`` (needs SciPy)."""
        sparse = _importing.load("scipy.sparse")
        parts = (self._part(name).asnumpy() for name in ("values", "indices", "indptr"))
        return sparse.csr_matrix(tuple(parts), self.shape)

    def check_format(self, full_check: bool = True) -> None:
        """Check that the parts fit together: see `BaseSparseNDArray.check_format`."""
        (start, cols), data = (self._part(name).asnumpy() for name in ("indptr", "indices")), self._part("values")
        if start.shape != (self.shape[0] + 1,) or start[0] != 0 or start[-1] != len(cols) or data.shape != cols.shape:
            raise error(
                ValueError,
                f"check_format: {self._what}: indptr {start.tolist()[:10]} does not fit {len(cols)} indices "
                f"and {data.shape[0]} values",
            )
        if full_check:
            if (start[1:] < start[:-1]).any():
                raise error(ValueError, f"check_format: {self._what}: indptr must not fall, got {start.tolist()[:10]}")
            if len(cols) and (cols.min() < 0 or cols.max() >= self.shape[1]):
                raise error(ValueError, f"check_format: {self._what}: indices must lie in [0, {self.shape[1]})")
            rows = np.repeat(np.arange(self.shape[0]), np.diff(start))
            if ((cols[1:] <= cols[:-1]) & (rows[1:] == rows[:-1])).any():
                raise error(ValueError, f"check_format: {self._what}: the indices of a row must rise")

    @property
    def indptr(self) -> NDArray:
        """Where each row begins in `data` and `indices`, as a copy."""
        return self._copied("indptr")


def _unpickle(stype: str, shape: tuple[int, ...], parts: list[np.ndarray[Any, Any]], ctx: Context) -> Any:
    ctx = checks.present(ctx)
    if stype == "csr":
        ptr, cols, data = parts
        data, cols, ptr = in_order(shape, data, cols, ptr)
        parts = [ptr, cols, data]
    put = [ctx.device.from_host(p, ctx.device_id) for p in parts]
    return faces[stype]({"row_sparse": RowSparse, "csr": CSR}[stype](shape, *put), Storage(ctx))


def _host(x: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    try:
        a = x.asnumpy() if hasattr(x, "asnumpy") else np.asarray(x)
        return np.ascontiguousarray(a, dtype=dtype)
    except (TypeError, ValueError) as e:
        raise error(TypeError, f"an array of numbers is needed, got {type(x).__name__}: {e}") from None


def _plain_dtype(given: Any, dtype: Any) -> Any:
    if dtype is not None:
        return as_dtype(dtype)
    return given.dtype if isinstance(given, np.ndarray) else as_dtype(getattr(given, "dtype", None))


def _check_shape(what: str, told: Any, full: Any) -> None:
    if told is not None and plain(tuple(told)) != tuple(full):
        raise error(ValueError, f"{what}: shape {tuple(told)} is told, the array has {tuple(full)}")


def _full(what: str, shape: Any, stype: str) -> tuple[int, ...]:
    """The shape of a sparse array, if there is such an array: places are counted in an int64."""
    full: tuple[int, ...] = plain(tuple(shape))
    if not full or stype == "csr" and len(full) != 2:
        needed = "two dimensions" if stype == "csr" else "a dimension or more"
        raise error(ValueError, f"{what}: a {stype} array has {needed}, got shape {full}")
    if any(d < 0 for d in full) or math.prod(d for d in full if d) >= 2**59:
        raise error(ValueError, f"{what}: there is no array of shape {full}")
    return full


def row_sparse_array(arg1: Any, shape: Any = None, ctx: Context | None = None, dtype: Any = None) -> RowSparseNDArray:
    """Make a row-sparse array.

    Parameters
    ----------
    arg1 : (data, indices), array_like, NDArray or tuple of int
        The rows and which they are; a full array; or a shape, for an array of zeros.
    shape : tuple of int, optional
        Needed with (data, indices) unless the last index is in the last row; of a full array the one it has.

    Examples
    --------
    >>> import mxcore as mx
    >>> a = mx.nd.sparse.row_sparse_array(([[1, 2]], [1]), shape=(3, 2))
    >>> a.asnumpy().tolist()
    [[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]
    """
    what = "row_sparse_array"
    ctx = checks.place(what, ctx)
    recorded = recorded_copy(arg1, ctx, None if dtype is None else as_dtype(dtype), "row_sparse")
    if recorded is not None:
        _check_shape(what, shape, recorded.shape)
        return recorded  # type: ignore[return-value]  # an array of this class
    if isinstance(arg1, RowSparseNDArray):
        full = arg1.shape
        data, rows = _host(arg1._part("values"), _plain_dtype(arg1, dtype)), _host(arg1._part("indices"), np.int64)
    elif isinstance(arg1, tuple) and len(arg1) == 2 and not all(isinstance(d, Integral) for d in arg1):
        dt = _plain_dtype(arg1[0], dtype)
        data, rows = _host(arg1[0], dt), _host(arg1[1], np.int64)
        if rows.ndim != 1 or len(rows) != len(data):
            raise error(ValueError, f"{what}: data {data.shape} needs as many indices as rows, got {rows.shape}")
        least = (int(rows.max()) + 1 if len(rows) else 0, *data.shape[1:])
        full = least if shape is None else _full(what, shape, "row_sparse")
        order = np.argsort(rows, kind="stable")
        rows, data = rows[order], data[order]
        if len(rows) and (not full or rows[0] < 0 or rows[-1] >= full[0] or (rows[1:] == rows[:-1]).any()):
            raise error(ValueError, f"{what}: indices must be distinct and in [0, {full[0]}), got {rows.tolist()[:10]}")
    elif isinstance(arg1, tuple) and all(isinstance(d, Integral) for d in arg1):
        full = _full(what, arg1, "row_sparse")
        data, rows = np.zeros((0, *full[1:]), as_dtype(dtype)), np.zeros(0, np.int64)
    else:
        dense = _host(arg1, _plain_dtype(arg1, dtype))
        full = dense.shape
        if not full:
            raise error(ValueError, f"{what}: an array without dimensions has no rows")
        rows, data = to_rows(np, dense).parts
    _check_shape(what, shape, full)
    if data.shape[1:] != tuple(full[1:]):
        raise error(ValueError, f"{what}: rows of shape {data.shape[1:]} in an array of shape {full}")
    put = ctx.device.from_host
    return RowSparseNDArray(RowSparse(full, put(rows, ctx.device_id), put(data, ctx.device_id)), Storage(ctx))


def csr_matrix(arg1: Any, shape: Any = None, ctx: Context | None = None, dtype: Any = None) -> CSRNDArray:
    """Make a CSR matrix.

    Parameters
    ----------
    arg1 : (data, indices, indptr), (data, (row, col)), array_like, NDArray, SciPy matrix or tuple of int
        The compressed parts; coordinates; a full matrix; or a shape, for a matrix of zeros. Columns of a row may come
        in any order, and repeated: they are sorted, and the values of one place added up.
    shape : tuple of int, optional
        Of parts or coordinates that do not reach the last row and column; of a full matrix the one it has.
    ctx : Context, optional
    dtype : dtype, optional
        That of an array; float32 for anything else.

    Raises
    ------
    MXNetError
        (also ValueError) if the parts do not fit together, or places lie outside.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.nd.sparse.csr_matrix(([1, 2, 3], [2, 0, 2], [0, 3])).asnumpy().tolist()
    [[2.0, 0.0, 4.0]]
    """
    what = "csr_matrix"
    ctx = checks.place(what, ctx)
    recorded = recorded_copy(arg1, ctx, None if dtype is None else as_dtype(dtype), "csr")
    if recorded is not None:
        _check_shape(what, shape, recorded.shape)
        return recorded  # type: ignore[return-value]  # an array of this class
    if isinstance(arg1, CSRNDArray) or hasattr(arg1, "tocsr"):
        full, (data, cols, ptr) = tuple(arg1.shape), _parts_of(arg1, dtype)
    elif isinstance(arg1, tuple) and len(arg1) == 3:
        data = _host(arg1[0], _plain_dtype(arg1[0], dtype))
        cols, ptr = (_host(x, np.int64) for x in arg1[1:])
        full = (len(ptr) - 1, int(cols.max()) + 1 if len(cols) else 0) if shape is None else _full(what, shape, "csr")
    elif isinstance(arg1, tuple) and all(isinstance(d, Integral) for d in arg1):
        full = _full(what, arg1, "csr")
        try:
            ptr = np.zeros(full[0] + 1, np.int64)
        except MemoryError as e:
            raise error(MemoryError, f"{what}: where {full[0]} rows begin does not fit into memory: {e}") from e
        data, cols = np.zeros(0, as_dtype(dtype)), np.zeros(0, np.int64)
    elif isinstance(arg1, tuple) and len(arg1) == 2:
        full, data, cols, ptr = _from_coordinates(arg1[0], arg1[1], shape, dtype)
    else:
        dense = _host(arg1, _plain_dtype(arg1, dtype))
        full = dense.shape
        if len(full) != 2:
            raise error(ValueError, f"{what}: a matrix is needed, got shape {full}")
        ptr, cols, data = to_csr(np, dense).parts
    _check_shape(what, shape, full)
    if problem := sparse_problem("csr", full, data, (ptr, cols)):
        raise error(ValueError, f"{what}: {problem}")
    data, cols, ptr = in_order(full, data, cols, ptr)
    put = ctx.device.from_host
    return CSRNDArray(
        CSR(full, put(ptr, ctx.device_id), put(cols, ctx.device_id), put(data, ctx.device_id)), Storage(ctx)
    )


def _parts_of(matrix: Any, dtype: Any) -> tuple[np.ndarray[Any, Any], ...]:
    """Values, columns and starts of a csr array or a SciPy matrix of any format."""
    if isinstance(matrix, CSRNDArray):
        values, cols, ptr = (matrix._part(name) for name in ("values", "indices", "indptr"))
    else:
        _check_scipy(matrix)
        given = matrix.tocsr()
        values, cols, ptr = given.data, given.indices, given.indptr
    return _host(values, _plain_dtype(matrix, dtype)), _host(cols, np.int64), _host(ptr, np.int64)


def _check_scipy(matrix: Any) -> None:
    """Refuse a SciPy matrix with places outside of it, over which SciPy's conversions would write."""
    try:
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        elif hasattr(matrix, "row"):
            for at, n in zip((matrix.row, matrix.col), matrix.shape):
                if len(at) and (at.min() < 0 or at.max() >= n):
                    raise ValueError(f"places must lie in [0, {n}), got {at.min()} to {at.max()}")
    except ValueError as e:
        raise error(ValueError, f"csr_matrix: the {type(matrix).__name__} is damaged: {e}") from e


def _from_coordinates(values: Any, places: Any, shape: Any, dtype: Any) -> tuple[Any, ...]:
    data, (rows, cols) = _host(values, _plain_dtype(values, dtype)), (_host(x, np.int64) for x in places)
    if not data.ndim == rows.ndim == cols.ndim == 1 or not len(data) == len(rows) == len(cols):
        raise error(
            ValueError,
            f"csr_matrix: each value needs a row and a column; got {data.shape} values, {rows.shape} rows "
            f"and {cols.shape} columns",
        )
    if shape is None and not len(rows):
        raise error(ValueError, "csr_matrix: without values, a shape is needed")
    full = (int(rows.max()) + 1, int(cols.max()) + 1) if shape is None else _full("csr_matrix", shape, "csr")
    if len(rows) and (rows.min() < 0 or rows.max() >= full[0]):
        raise error(ValueError, f"csr_matrix: rows must lie in [0, {full[0]}), got {rows.tolist()[:10]}")
    order = np.argsort(rows, kind="stable")
    return full, data[order], cols[order], starts(rows, full[0])


def from_scipy(matrix: Any, ctx: Context | None = None, dtype: Any = None) -> CSRNDArray:
    """A csr matrix with the values of a SciPy sparse matrix or array of any format; `asscipy` goes the other way.

    Parameters
    ----------
    matrix : scipy.sparse matrix or array
        Of two dimensions. Repeated places are added up.
    ctx : Context, optional
    dtype : dtype, optional
        That of the matrix unless told.

    Examples
    --------
    >>> import mxcore as mx
    >>> scipy = __import__("pytest").importorskip("scipy.sparse")
    >>> mx.nd.sparse.from_scipy(scipy.coo_matrix(([2.0], ([0], [1])), shape=(1, 2))).asnumpy().tolist()
    [[0.0, 2.0]]
    """
    if not hasattr(matrix, "tocsr"):
        raise error(TypeError, f"from_scipy: a SciPy sparse matrix is needed, got {type(matrix).__name__}")
    return csr_matrix(matrix, ctx=ctx, dtype=dtype)


_ZEROS = Parser("zeros", {"shape": Shape()})


def zeros(stype: str, shape: Any, ctx: Context | None = None, dtype: Any = None, **kwargs: Any) -> NDArray:
    """An array of zeros of a storage type."""
    if stype == "default":
        from .creation import zeros as dense

        return dense(shape, ctx, dtype)
    make = {"row_sparse": row_sparse_array, "csr": csr_matrix}.get(stype)
    if make is None:
        raise error(ValueError, f"unknown storage type {stype!r}; use 'default', 'row_sparse' or 'csr'")
    p: Any = _ZEROS({"shape": shape})
    return make(_full("nd.sparse.zeros", p.shape, stype), ctx=ctx, dtype=dtype)


def empty(stype: str, shape: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """Same as `zeros`: a sparse array is born without values."""
    return zeros(stype, shape, ctx, dtype)


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """A sparse array from another one or from a scipy.sparse matrix."""
    if isinstance(source_array, RowSparseNDArray):
        return row_sparse_array(source_array, ctx=ctx, dtype=dtype or source_array.dtype)
    if isinstance(source_array, CSRNDArray) or hasattr(source_array, "tocsr"):
        return csr_matrix(source_array, ctx=ctx, dtype=dtype or source_array.dtype)
    raise error(
        TypeError,
        f"nd.sparse.array takes a sparse array, got {type(source_array).__name__}; use row_sparse_array or csr_matrix",
    )


def _two(python: str, what: str) -> Any:
    elementwise = OPERATORS[python][0]

    def function(lhs: Any, rhs: Any) -> Any:
        if not any(isinstance(x, NDArray) for x in (lhs, rhs)):
            raise error(
                TypeError,
                f"nd.sparse.{what}: one of the two must be an array, got {type(lhs).__name__} and {type(rhs).__name__}",
            )
        beside = isinstance(lhs, NDArray) and isinstance(rhs, BaseSparseNDArray) and lhs.rules is rhs.rules
        if beside and lhs.shape == rhs.shape:
            return run(tables.ops.get(elementwise), lhs, rhs)  # a dense `lhs` would choose the one that broadcasts
        return getattr(operator, python)(lhs, rhs)

    function.__name__ = function.__qualname__ = what
    function.__doc__ = f"""The elementwise ``{what}`` of two arrays that broadcast, or of an array and a number.

    Sparse storage is kept where zeros stay zeros: of two arrays of one storage type, or of a product with a dense array
    or a number.

    Parameters
    ----------
    lhs, rhs : NDArray or float
    """
    return function


add, subtract, multiply, divide = (
    _two(*names) for names in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "divide"))
)
operators.install(BaseSparseNDArray, fast=False)


def _in_place(python: str) -> Any:
    plain = getattr(BaseSparseNDArray, f"__{python}__")

    def put(self: BaseSparseNDArray, other: Any) -> Any:
        result = plain(self, other)
        if result is NotImplemented:
            return result
        if python not in ("add", "sub"):
            operators.guard_factor(self, other, f"__i{python}__")
        self[:] = result
        return self

    def method(self: BaseSparseNDArray, other: Any) -> Any:
        return writing(self, put, self, other)

    method.__name__ = method.__qualname__ = f"__i{python}__"
    return method


for _name in OPERATORS:
    setattr(BaseSparseNDArray, f"__i{_name}__", _in_place(_name))
for _cls in (RowSparseNDArray, CSRNDArray):
    _cls.dense = NDArray
    faces[_cls.stype] = _cls
__getattr__, __dir__ = namespace(globals(), "sparse", eager_function)
