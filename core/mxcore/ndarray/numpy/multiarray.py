"""The class ndarray: NumPy's array over the same storage, devices and tape as NDArray."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import numpy as np

from ..._core import call as calls
from ..._core import dispatch, tables
from ..._core.array import fresh
from ..._core.context import Context
from ..._core.errors import error
from ..._core.params import as_dtype
from ..._core.state import state
from ..._interrupts import let_through
from ..._locks import writing
from ..._op_functions import FACES
from ...np_functions.arguments import in_order
from ...np_functions.options import refuse
from ...ops.common.python_operators import NUMPY_COMPARISONS, NUMPY_OPERATORS, NUMPY_UNARY
from .. import operators
from ..indexing import is_itself
from ..ndarray import NDArray
from . import indexing
from .methods import METHODS, OPERATOR_METHODS, axes_of, method, shape_of, shown

__all__ = ["ndarray"]

#: The classes of basic indices, and what the quick way of indexing needs; names of the module are looked up fastest.
_QUICK = frozenset({int, slice, tuple, type(None), type(Ellipsis)})
_TUPLE, _HOST, _new = tuple, np.ndarray, object.__new__
_DOTS = (Ellipsis,)
_class = attrgetter("__class__")


class ndarray(NDArray):
    """An array of ``mx.np``: NumPy's semantics, on any device, on the tape of :mod:`mxcore.autograd`.

    Made by ``np.array`` and the other functions of ``mx.np``, and from an array of ``mx.nd`` by `as_np_ndarray`, which
    shares its memory. Basic indices of one run of memory, such as ``x[1]`` and ``x[2:5]``, share it, too; `reshape`,
    `transpose` and other indices copy.

    Examples
    --------
    >>> from mxcore import np
    >>> x = np.array([[1, 2], [3, 4]])
    >>> x[0] = 5
    >>> x[x > 3]
    array([5., 5., 4.])
    """

    __slots__ = ()
    rules = NDArray
    #: The namespace of the array API standard, which stands above this class.
    __array_namespace__: Callable[..., Any]

    # -- facts -------------------------------------------------------------------------------------------------
    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """The dtype of the elements, as NumPy's."""
        found: np.dtype[Any] = self._data.dtype
        return found

    @property
    def T(self) -> ndarray:
        """The array with its axes reversed."""
        return self.transpose()

    @property
    def mT(self) -> ndarray:
        """The matrices with rows and columns exchanged: the last two axes."""
        if len(self._data.shape) < 2:
            raise error(ValueError, f"mT: matrices are needed, got an array of shape {self.shape}")
        return self.swapaxes(-2, -1)  # type: ignore[no-any-return]

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self._data.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def flat(self) -> Iterator[Any]:
        """The elements one after the other, as arrays without dimensions."""
        return iter(self.reshape(-1))

    @property
    def device(self) -> Context:
        """Where the array lives; same as `ctx`."""
        return self._st.ctx

    def __bool__(self) -> bool:
        n = self.size
        if n == 1:
            return bool(self.item())
        if n:
            raise error(
                ValueError, f"the truth value of an array of shape {self.shape} is ambiguous; use x.any() or x.all()"
            )
        return False

    def _scalar(self, kind: Callable[[Any], Any]) -> Any:
        if self.size != 1:
            raise error(
                TypeError, f"only an array with one element can be converted to {kind.__name__}, got shape {self.shape}"
            )
        return kind(self.item())

    def __int__(self) -> int:
        found: int = self._scalar(int)
        return found

    def __float__(self) -> float:
        found: float = self._scalar(float)
        return found

    def __complex__(self) -> complex:
        found: complex = self._scalar(complex)
        return found

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).asnumpy().any())

    def __iter__(self) -> Iterator[ndarray]:
        if not self._data.shape:
            raise error(TypeError, "an array without dimensions cannot be iterated over; x.item() is its element")
        return map(self.__getitem__, range(self._data.shape[0]))

    # -- to and from the host ----------------------------------------------------------------------------------
    def item(self, *args: Any) -> Any:
        """An element as a number of Python's.

        Parameters
        ----------
        *args : int or ints, optional
            Which: its place in the flattened array, or an index for each dimension; may be left out where there is one
            element only.

        Examples
        --------
        >>> from mxcore import np
        >>> np.array([1.5, 2.5]).item(1)
        2.5
        """
        try:
            return self.asnumpy().item(*args)
        except (ValueError, IndexError, TypeError) as e:
            raise error(type(e), f"item{args} of an array of shape {self.shape}: {e}") from None

    def asscalar(self) -> Any:
        """The only element, as a number of NumPy's."""
        return self._scalar(self._data.dtype.type)

    def tolist(self) -> Any:
        """The elements as numbers of Python's, in nested lists."""
        return self.asnumpy().tolist()

    def __repr__(self) -> str:
        host = self.twin().asnumpy()
        if host.dtype == np.float32 or host.dtype == np.bool_:
            text = repr(host).replace(", dtype=float32", "")
        else:
            text = repr(host)
            if "dtype=" not in text:  # NumPy's own default goes without saying, ours is float32
                text = f"{text[:-1]}, dtype={host.dtype.name})"
        ctx = self._st.ctx
        return text if ctx.device_type == "cpu" else f"{text[:-1]}, ctx={ctx})"

    def __str__(self) -> str:
        ctx, text = self._st.ctx, str(self.twin().asnumpy())
        return text if ctx.device_type == "cpu" or not self.shape else f"{text} @{ctx}"

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if self.shape not in ((), (1,)):
            raise error(TypeError, f"an array of shape {self.shape} cannot be formatted by {spec!r}; its elements can")
        return format(self.item(), spec)

    # -- copies ------------------------------------------------------------------------------------------------
    def as_in_context(self, context: Context) -> ndarray:
        """Another array over the same memory, with its place on the tape, if it lives on `context`, else a copy there.

        `as_in_ctx` gives the array itself in the first case.
        """
        found: Any = super().as_in_context(context)
        return found.of(ndarray) if found is self else found  # type: ignore[no-any-return]

    def as_nd_ndarray(self) -> NDArray:
        """The same memory and place on the tape as an array of ``mx.nd``."""
        found: NDArray = self.of(NDArray)
        return found

    def as_np_ndarray(self) -> ndarray:
        """This array."""
        return self

    def astype(  # type: ignore[override]
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> ndarray:
        """The values in another dtype.

        Parameters
        ----------
        dtype : dtype
        order : {'K', 'C', 'A'}, optional
            Of the elements in memory.
        casting : {'unsafe', 'same_kind', 'safe', 'equiv', 'no'}, optional
            Which casts are an error, as in NumPy.
        subok : bool, optional
            Only True.
        copy : bool, optional
            With False the array itself if it has that dtype.

        Raises
        ------
        MXNetError
            (also TypeError) for a cast that `casting` does not allow; (also NotImplementedError) for another order.
        """
        in_order("astype", order, "K", "A")
        if not subok:
            raise refuse("astype", "subok", subok, True)
        try:
            wanted, legal = as_dtype(dtype), casting == "unsafe" or np.can_cast(self._data.dtype, dtype, casting)  # type: ignore[arg-type]
        except ValueError as e:
            raise error(ValueError, f"astype: {e}") from None
        if not legal:
            raise error(
                TypeError, f"astype: casting='{casting}' does not allow a cast from {self._data.dtype} to {wanted}"
            )
        if not copy and wanted == self._data.dtype:
            return self
        found: ndarray = dispatch.call(_op("Cast"), (self,), {"dtype": wanted})
        return found

    def copy(self, order: str = "C") -> ndarray:
        """A new array with the same values on the same context.

        Parameters
        ----------
        order : {'C', 'K', 'A'}, optional
            Of the elements in memory.
        """
        in_order("copy", order, "K", "A")
        found: ndarray = _functions().copy(self)
        return found.as_in_ctx(self._st.ctx)

    def copyto(self, other: Any) -> NDArray:
        """Copy the values to another array, which they are broadcast to, or to a new one on a context; returns it.

        Parameters
        ----------
        other : ndarray or Context
        """
        if isinstance(other, Context):
            return self.copy() if other is self._st.ctx else self.as_in_ctx(other)
        if not isinstance(other, NDArray):
            raise error(TypeError, f"copyto needs an array or a Context, got {type(other).__name__}")
        if other._data is not self._data:
            other[...] = self
        return other

    def to_device(self, device: Any, /, *, stream: None = None) -> ndarray:
        """The array itself if it lives on a context, else a copy there.

        Parameters
        ----------
        device : Context or str
            Such as ``mx.cpu(0)``, or 'cpu'.
        stream : None
            Only None.
        """
        if stream is not None:
            raise error(NotImplementedError, f"to_device: stream={stream!r} is not supported; leave it out")
        return self.as_in_ctx(Context(device))

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Make the array a variable with a zero gradient array; it leaves the graph that computed it.

        Parameters
        ----------
        grad_req : {'write', 'add', 'null'}
            Overwrite the gradient at each backward, add to it, or compute none.
        stype : str, optional
            Only 'default': arrays of ``mx.np`` are dense.
        """
        if stype not in (None, "default"):
            raise error(ValueError, f"arrays of mx.np are dense; attach_grad cannot give a gradient of stype {stype!r}")
        super().attach_grad(grad_req)

    def tostype(self, stype: str) -> NDArray:
        """This array: arrays of ``mx.np`` are dense, those of ``mx.nd`` have other storage types."""
        if stype != "default":
            raise error(
                ValueError, f"arrays of mx.np are dense; x.as_nd_ndarray().tostype({stype!r}) gives a sparse one"
            )
        return self

    def as_in_ctx(self, ctx: Context) -> ndarray:
        """The array itself if it lives on `ctx`, else a copy there."""
        found: Any = super().as_in_context(ctx)
        return found  # type: ignore[no-any-return]

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> ndarray:
        """The values limited to an interval, as ``np.clip`` does it."""
        found: ndarray = _functions().clip(self, min, max, out)
        return found

    # -- shape -------------------------------------------------------------------------------------------------
    def reshape(self, *shape: Any, **kwargs: Any) -> ndarray:
        """The elements in another shape, copied.

        Parameters
        ----------
        *shape : ints or tuple of int
            At most one may be -1, and is as long as it takes.
        **kwargs
            `order`, only 'C'; `shape` or `newshape`, in the place of positional ones.
        """
        found: ndarray = _functions().reshape(self, *shape_of(shape, kwargs))
        return found

    def reshape_view(self, *shape: Any, **kwargs: Any) -> ndarray:
        """A view with another shape of the same size; lengths mean what they do in `reshape`."""
        lengths = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        found: ndarray = dispatch.call(_op("_np_reshape"), (self,), {"newshape": lengths, **kwargs}, share=True)
        return found

    def flatten(self, order: str = "C", inplace: bool = False) -> ndarray:  # type: ignore[override]
        """A copy with one dimension.

        Parameters
        ----------
        order : {'C'}, optional
            In which the elements are read.
        inplace : bool, optional
            Give a view.
        """
        return self.reshape_view(-1) if inplace else self.reshape(-1, order=order)

    def transpose(self, *axes: Any, **kwargs: Any) -> ndarray:
        """Permute the axes; reverse them without an argument."""
        found: ndarray = _functions().transpose(self, axes_of(axes, kwargs))
        return found

    def squeeze(self, axis: Any = None, inplace: bool = False) -> ndarray:
        """Remove dimensions of length 1; `inplace` gives a view."""
        found: ndarray = dispatch.call(_op("_np_squeeze"), (self,), {"axis": axis}, share=inplace)
        return found

    def broadcast_to(self, shape: Any) -> ndarray:
        """Repeat along dimensions of length 1, or new leading ones, up to `shape`."""
        found: ndarray = _functions().broadcast_to(self, shape)
        return found

    def broadcast_like(self, other: NDArray) -> ndarray:
        """Repeat up to the shape of `other`."""
        return self.broadcast_to(other.shape)

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> ndarray:
        """The places along an axis where a condition holds; see ``np.compress``."""
        found: ndarray = _functions().compress(condition, self, axis, out)
        return found

    def split_v2(self, *args: Any, **kwargs: Any) -> Any:
        """Split at indices or into sections, which need not be equal; see ``np.array_split``."""
        return _functions().array_split(self, *args, **kwargs)

    def __getitem__(self, key: Any) -> ndarray:
        if self._entry is None or not state.record:
            kind = key.__class__
            none = key.start is None if kind is slice else kind is _TUPLE and not key
            if none and is_itself(key, self._data.shape):
                return self
            # The quick way: what NumPy gives for a basic index, copied if that is not one run of memory.
            part = None
            try:
                if kind is int:
                    part = self._data[key]
                    if part.__class__ is not _HOST:  # an element: its memory, without dimensions
                        part = _element(self._data[key, ...])
                elif kind in _QUICK and (kind is not _TUPLE or _QUICK.issuperset(map(_class, key))):
                    part = self._data[key + _DOTS if kind is _TUPLE else key]
                    if not part.flags.c_contiguous:
                        st = self._st
                        if part.__class__ is _HOST and st.write is None and not (calls.observers or state.record):
                            return fresh(ndarray, part.copy(), st.ctx)  # type: ignore[no-any-return]
                        part = None
                    elif not part.ndim:
                        part = _element(part)
            except Exception as e:
                let_through(e)
                part = None  # an error, which the long way explains, or a tuple that has its own dots
            if part.__class__ is _HOST:
                x: ndarray = _new(ndarray)
                x._data = part
                x._st = st = self._st
                st.views += 1
                x._entry = None
                return x
        return indexing.get_item(self, key)  # type: ignore[no-any-return]

    __setitem__ = indexing.set_item

    def __imatmul__(self, other: Any) -> ndarray:
        writing(self, self._put_product, other)
        return self

    def _put_product(self, other: Any) -> None:
        found = self @ other
        if found.shape != self.shape:
            raise error(ValueError, f"x @= y: a product of shape {found.shape} is not written to shape {self.shape}")
        operators.guard_factor(self, other, "x @= y")
        self[...] = found

    def slice_assign(self, rhs: NDArray, begin: Any, end: Any, step: Any) -> ndarray:
        """Write `rhs` into a slice of this array; returns this array."""
        super().slice_assign(rhs.as_nd_ndarray(), begin, end, step)
        return self


def _element(part: Any) -> Any:
    """An array without dimensions as it is called outside of NumPy's meaning of shapes: of one element."""
    return part if state.np_shape else part.reshape(1)


def _functions() -> Any:
    """The functions of ``mx.np`` over arrays, which are written over this class."""
    from .face import arrays

    return arrays


def _op(name: str) -> Any:
    return tables.ops.items.get(name) or tables.ops.get(name)


def _operator_method(name: str, op: str) -> Any:
    def call(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        return _op(op)(self, *args, **kwargs)

    return shown(call, name, f"Same as ``mx.nd.{op}`` of this array.")


for _name, _target in METHODS.items():
    setattr(ndarray, _name, method(_name, _target, _functions))
for _name, _target in OPERATOR_METHODS.items():
    setattr(ndarray, _name, _operator_method(_name, _target))

ndarray.dense = ndarray
FACES.add(ndarray)
operators.install(ndarray, True, NUMPY_OPERATORS, NUMPY_COMPARISONS, NUMPY_UNARY)
