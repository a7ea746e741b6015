"""The class NDArray: MXNet's array, a view over storage that the engine orders."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core import dispatch, reverse, tables, tape, transfer
from .._core.array import Array, Storage, faces
from .._core.context import Context
from .._core.errors import error, warn
from .._core.op import Op
from .._core.state import state
from .._core.stream import commit
from .._heads import check_arrays
from .._noting import check_not_noted, check_readable, noted
from .._op_functions import take_last
from ..crossing import to_context
from ..ops.shape.reshape_codes import resolve_shape
from . import checks, indexing, operators, protocols
from .methods import OP_METHODS
from .splitting import split_v2

__all__ = ["NDArray"]

#: MXNet's number of each dtype, as its files and its callers know them.
_DTYPE_NP_TO_MX: dict[Any, int] = {
    None: -1,
    np.float32: 0,
    np.float64: 1,
    np.float16: 2,
    np.uint8: 3,
    np.int32: 4,
    np.int8: 5,
    np.int64: 6,
    np.bool_: 7,
}
_DTYPE_MX_TO_NP = {n: t for t, n in _DTYPE_NP_TO_MX.items()}

#: Operators called from Python, and by their inputs and parameters, where what they give is one array.
run: Callable[..., NDArray] = Op.__call__
call: Callable[..., NDArray] = dispatch.call
invoke: Callable[..., NDArray] = dispatch.invoke


class NDArray(Array):
    """A multi-dimensional array on a device.

    Made by the functions of ``mx.nd`` (`array`, `zeros`, …) and by operators; the constructor is not public. Slices
    along axis 0, contiguous basic indexing and `reshape` share memory with their source.

    Examples
    --------
    >>> import mxcore as mx
    >>> a = mx.nd.array([[1, 2], [3, 4]])
    >>> a[0][:] = 5
    >>> a
    <BLANKLINE>
    [[5. 5.]
     [3. 4.]]
    <NDArray 2x2 @cpu(0)>
    """

    __slots__ = ()
    __array_priority__ = 1000.0
    __array_ufunc__ = protocols.array_ufunc
    __array_function__ = protocols.array_function

    # -- facts -------------------------------------------------------------------------------------------------
    @property
    def dtype(self) -> type:
        """NumPy scalar type of the elements, e.g. ``numpy.float32``."""
        found: type = self._data.dtype.type
        return found

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._data.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        n = 1
        for d in self._data.shape:
            n *= d
        return n

    @property
    def ctx(self) -> Context:
        """Where the array lives; same as `context`."""
        return self._st.ctx

    @property
    def writable(self) -> bool:
        """Whether the array may be written to: always, unless it lies over read-only memory."""
        d = self._data
        return d.flags.writeable if d.__class__ is np.ndarray else bool(self._st.ctx.device.writable(d))

    @property
    def handle(self) -> int:
        """An integer that identifies the storage, for code that compares handles."""
        return id(self._st)

    @property
    def T(self) -> NDArray:
        """The array with its axes reversed."""
        return self if self.ndim < 2 else run(_op("transpose"), self)

    def __len__(self) -> int:
        shape = self._data.shape
        if not shape:
            raise error(TypeError, "len() of an array without dimensions")
        return int(shape[0])

    def __bool__(self) -> bool:
        if self.size == 0:
            return False
        if self.size == 1:
            return bool(self.asscalar())
        raise error(
            ValueError, f"the truth value of an array of shape {self.shape} is ambiguous; compare its asnumpy()"
        )

    def __int__(self) -> int:
        return int(self.asscalar())

    def __float__(self) -> float:
        return float(self.asscalar())

    def __index__(self) -> int:
        if self._data.dtype.kind not in "iub" or self.size != 1:
            raise error(TypeError, "only integer arrays with one element can be used as an index")
        return int(self.asscalar())

    def __contains__(self, value: Any) -> bool:
        return any(bool(x == value) for x in self)  # of a matrix, the truth of a row is ambiguous, as in MXNet

    # -- to and from the host ----------------------------------------------------------------------------------
    def asscalar(self) -> Any:
        """The only element, as a NumPy scalar.

        Raises
        ------
        MXNetError
            If there is more than one element.
        """
        if self.size != 1:
            raise error(ValueError, f"asscalar needs an array with one element, got shape {self.shape}")
        return self.asnumpy().reshape(-1)[0]

    item = asscalar

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """Copy to a NumPy array, after waiting for the value."""
        if self._entry is not None:
            check_readable(self)
        return super().asnumpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise error(
                ValueError,
                "an NDArray cannot become a NumPy array without a copy; "
                "np.from_dlpack(a) shares the memory of a CPU array",
            )
        a = self.asnumpy()
        return a if dtype is None else a.astype(dtype, copy=False)

    def __dlpack__(self, **kw: Any) -> Any:
        from .dlpack import offer

        return offer(self, kw)

    def __dlpack_device__(self) -> tuple[int, int]:
        found: tuple[int, int] = self._data.__dlpack_device__()
        return found

    def to_dlpack_for_read(self) -> Any:
        """A DLPack capsule of the memory, once it can be read."""
        from .dlpack import to_capsule

        self.wait_to_read()
        return to_capsule(self, "read")

    def to_dlpack_for_write(self) -> Any:
        """A DLPack capsule of the memory, once nobody reads or writes it."""
        from .dlpack import to_capsule

        transfer.check_writable(self, "to_dlpack_for_write")
        self._st.wait_free()
        commit((self._st,))
        return to_capsule(self, "write")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_from_pickle, (type(self), self.asnumpy(), self.context))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what a pickle of MXNet's holds: the bytes of the array as its files have them, or None."""
        from .files import from_record
        from .serialization import load_record

        if not isinstance(state, dict) or "handle" not in state:
            raise error(
                TypeError, f"the state of an array is a dict with 'handle', bytes or None, got {type(state).__name__}"
            )
        if (handle := state["handle"]) is not None:
            record = load_record(handle)
            x = from_record(record, checks.present(Context(*record.device)))
            if x is not None:
                self._data, self._st, self._entry = x._data, x._st, None

    def __repr__(self) -> str:
        return f"\n{self.twin().asnumpy()!s}\n<{type(self).__name__} {'x'.join(map(str, self.shape))} @{self.context}>"

    def __str__(self) -> str:
        return self.__repr__()

    # -- copies ------------------------------------------------------------------------------------------------
    def copy(self) -> NDArray:
        """A new array with the same values on the same context."""
        found: NDArray = run(_op("_copy"), self)
        return found.as_in_context(self._st.ctx)

    def __copy__(self) -> NDArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> NDArray:
        return self.copy()

    def copyto(self, other: Any) -> NDArray:
        """Copy the values to another array, cast to its dtype, or to a new array on a context; returns that array.

        While recording, gradients flow through the copy.

        Parameters
        ----------
        other : NDArray or Context
        """
        if isinstance(other, Context):
            return _copy_to(self, other)
        if not isinstance(other, NDArray):
            raise error(TypeError, f"copyto needs an NDArray or a Context, got {type(other).__name__}")
        if other is self or other._data is self._data:
            warn("copyto: source and target are the same array; nothing is copied")
            return False  # type: ignore[return-value]
        if other.shape != self.shape:
            raise error(ValueError, f"copyto: source has shape {self.shape}, target {other.shape}")
        if state.record and (self._entry is not None or other._entry is not None):
            transfer.guard_write(other, "copyto")
        if state.record and self._entry is not None:  # gradients flow through what is written
            value = _converted(self, other._st.ctx, other._data.dtype, other.stype, copy=False)
            run(_op("_copyto"), value, out=other)
        else:
            indexing.write(other, self)
        return other

    def as_in_context(self, context: Context) -> NDArray:
        """The array itself if it lives on `context`, else a copy there."""
        return self if self._st.ctx is context else _copy_to(self, context)

    as_in_ctx = as_in_context

    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """The values in another dtype; with ``copy=False`` the array itself if it has that dtype."""
        op = _op("Cast")
        p = op.parse({"dtype": "float32" if dtype is None else dtype})
        if not copy and p.dtype == self._data.dtype:
            return self
        return invoke(op, (self,), p)

    def as_nd_ndarray(self) -> NDArray:
        """This array (the form of the legacy namespace)."""
        return self

    def as_np_ndarray(self) -> NDArray:
        """The same memory and place on the tape as an array of ``mx.np``."""
        # By its name, for it derives from this class.
        found: NDArray = self.of(import_module(f"{__package__}.numpy.multiarray").ndarray)
        return found

    def tostype(self, stype: str) -> NDArray:
        """A copy of the values in a storage type: 'default', 'row_sparse' or 'csr'."""
        return run(_op("cast_storage"), self, stype=stype)

    # -- shape -------------------------------------------------------------------------------------------------
    def reshape(self, *shape: Any, **kwargs: Any) -> NDArray:
        """A view with another shape of the same size.

        Parameters
        ----------
        shape : ints or tuple
            Beside lengths: 0 copies a dimension, -1 is inferred, -2 copies all that remain, -3 merges two, -4 splits
            one into the next two.
        reverse : bool
            Read the special values from right to left.
        """
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        elif not shape:
            shape = kwargs.get("shape")  # type: ignore[assignment]
            if shape is None:
                raise error(TypeError, "reshape needs a shape")
        unknown = set(kwargs) - {"shape", "reverse"}
        if unknown:
            raise error(TypeError, f"reshape has no argument '{sorted(unknown)[0]}'; it takes shape and reverse")
        reverse = bool(kwargs.get("reverse", False))
        if not state.record or self._entry is None:
            try:
                target = resolve_shape(self._data.shape, shape, reverse)
            except ValueError as e:
                raise error(ValueError, f"reshape of an array of shape {self.shape}: {e}") from None
            except TypeError:
                raise error(
                    TypeError, f"reshape of an array of shape {self.shape}: a tuple of ints is needed, got {shape!r}"
                ) from None
            return self.__class__(self._data.reshape(target), self._st)
        return call(_op("Reshape"), (self,), {"shape": shape, "reverse": reverse}, share=True)

    def reshape_view(self, *shape: Any, **kwargs: Any) -> NDArray:
        """Same as `reshape`."""
        return self.reshape(*shape, **kwargs)

    def flatten(self, inplace: bool = False) -> NDArray:
        """Collapse all dimensions but the first; `inplace` gives a view."""
        return self.reshape((0, -1)) if inplace else run(_op("Flatten"), self)

    def expand_dims(self, axis: int, inplace: bool = False) -> NDArray:
        """Insert a dimension of length 1; `inplace` gives a view."""
        return call(_op("expand_dims"), (self,), {"axis": axis}, share=inplace)

    def squeeze(self, axis: Any = None, inplace: bool = False) -> NDArray:
        """Remove dimensions of length 1; `inplace` gives a view."""
        return call(_op("squeeze"), (self,), {"axis": axis}, share=inplace)

    def broadcast_to(self, shape: Any) -> NDArray:
        """Repeat along dimensions of length 1 (or new leading ones) up to `shape`; 0 keeps a length."""
        shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        lead = len(shape) - self.ndim
        x = self if lead <= 0 else self.reshape((1,) * lead + self.shape)
        return run(_op("broadcast_to"), x, shape=shape)

    def broadcast_like(self, other: NDArray) -> NDArray:
        """Repeat up to the shape of `other`."""
        if not isinstance(other, NDArray):
            raise error(TypeError, f"broadcast_like: other must be an NDArray, got {type(other).__name__}")
        return self.broadcast_to(other.shape)

    def transpose(self, *axes: Any, **kwargs: Any) -> NDArray:
        """Permute the axes; reverse them without an argument."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            axes = tuple(axes[0] or ())
        return run(_op("transpose"), self, axes=axes or kwargs.get("axes") or ())

    def split(self, *args: Any, **kwargs: Any) -> Any:
        """Split along an axis; see ``mx.nd.split``."""
        return _op("SliceChannel")(self, *args, **kwargs)

    def split_v2(self, *args: Any, **kwargs: Any) -> Any:
        """Split at indices or into sections; see ``mx.nd.split_v2``."""
        return split_v2(self, *args, **kwargs)

    def diag(self, k: int = 0, **kwargs: Any) -> NDArray:
        """The `k`-th diagonal, or a matrix with the values on it."""
        return run(_op("diag"), self, k, **kwargs)

    def slice_assign(self, rhs: NDArray, begin: Any, end: Any, step: Any) -> NDArray:
        """Write `rhs` into a slice of this array; returns this array."""
        indexing.set_item(self, indexing.slices(begin, end, step), rhs)
        return self

    def slice_assign_scalar(self, value: float, begin: Any, end: Any, step: Any) -> NDArray:
        """Write a number into a slice of this array; returns this array."""
        indexing.set_item(self, indexing.slices(begin, end, step), value)
        return self

    def __getitem__(self, key: Any) -> NDArray:
        found: NDArray = indexing.get_item(self, key)
        return found

    __setitem__ = indexing.set_item

    def __iter__(self) -> Any:
        for i in range(len(self)):
            yield self[i]

    # -- autograd ----------------------------------------------------------------------------------------------
    @property
    def grad(self) -> NDArray | None:
        """The gradient array, after `attach_grad`; else None."""
        entry = self._entry
        return entry[0].grad if entry is not None and entry[0].op is None else None

    @property
    def _fresh_grad(self) -> bool:
        """Whether a backward has written the gradient since this was set to False (Gluon's stale-gradient check)."""
        entry = self._entry
        return entry is not None and entry[0].op is None and entry[0].fresh

    @_fresh_grad.setter
    def _fresh_grad(self, value: bool) -> None:
        if self._entry is not None and self._entry[0].op is None:
            self._entry[0].fresh = bool(value)

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Make the array a variable with a zero gradient array; it leaves the graph that computed it.

        Parameters
        ----------
        grad_req : {'write', 'add', 'null'}
            Overwrite the gradient at each backward, add to it, or compute none.
        stype : str, optional
            Storage type of the gradient: that of the array unless told.
        """
        check_not_noted("attach_grad is called")
        stype = stype or self.stype
        if stype == "default":
            ctx = self._st.ctx
            grad = self.dense(ctx.device.full(self.shape, 0, self._data.dtype, ctx.device_id), Storage(ctx))
        else:
            if stype not in faces:
                raise error(ValueError, f"unknown storage type {stype!r}; use {', '.join(map(repr, faces))}")
            grad = faces[stype]._zeros(self.shape, self.context, self._data.dtype)  # type: ignore[attr-defined]
        tape.mark(self, grad, grad_req)

    def detach(self) -> NDArray:
        """The same memory, outside any graph."""
        if noted(self):
            found: NDArray = call(_op("BlockGrad"), (self,), {})
            return found
        return self.__class__(self._data, self._st)

    def backward(self, out_grad: NDArray | None = None, retain_graph: bool = False, train_mode: bool = True) -> None:
        """Compute the gradients of this array; see ``mx.autograd.backward``."""
        check_not_noted("backward is called")
        grads = None
        if out_grad is not None:
            check_arrays("head gradient", grads := [out_grad], optional=True)
        reverse.backward([self], grads, retain_graph=retain_graph, train_mode=train_mode)

    def sum(self, *args: Any, **kwargs: Any) -> NDArray:
        """Sum over axes; see ``mx.nd.sum``."""
        op = _op("sum")
        if not args and not kwargs:
            found: NDArray = Op.apply(op, (self,), op.plain)
            return found
        return run(op, self, *args, **kwargs)

    if TYPE_CHECKING:  # `operators.install` and `OP_METHODS` make these

        def _infix(self, other: Any) -> NDArray: ...

        __add__ = __radd__ = __iadd__ = __sub__ = __rsub__ = __isub__ = __mul__ = __rmul__ = __imul__ = _infix
        __truediv__ = __rtruediv__ = __itruediv__ = __mod__ = __rmod__ = __imod__ = _infix
        __pow__ = __rpow__ = __ipow__ = __lt__ = __le__ = __gt__ = __ge__ = _infix
        __eq__ = __ne__ = _infix  # type: ignore[assignment]  # of each element

        def __neg__(self) -> NDArray: ...
        def __abs__(self) -> NDArray: ...
        def __getattr__(self, name: str) -> Any: ...


def _from_pickle(cls: type[NDArray], host: np.ndarray[Any, Any], ctx: Context) -> NDArray:
    ctx = checks.present(ctx)
    return cls(ctx.device.from_host(np.ascontiguousarray(host).reshape(host.shape), ctx.device_id), Storage(ctx))


def _op(name: str) -> Op:
    return tables.ops.items.get(name) or tables.ops.get(name)


def recorded_copy(x: Any, ctx: Context, dtype: Any, stype: str) -> NDArray | None:
    """A copy that gradients flow through, of an array of the graph while recording; None of anything else.

    In its own dtype where `dtype` is None.
    """
    if not (state.record and isinstance(x, NDArray) and x._entry is not None):
        return None
    return _converted(x.as_nd_ndarray(), ctx, x._data.dtype if dtype is None else dtype, stype, copy=True)


def _converted(x: NDArray, ctx: Context, dtype: Any, stype: str, copy: bool) -> NDArray:
    """The values in another dtype, place and storage type, by operators; `copy` as that of `astype`."""
    there = x.astype(dtype, copy).as_in_context(ctx)
    return there if there.stype == stype else there.tostype(stype)


def _copy_to(x: NDArray, ctx: Context) -> NDArray:
    if ctx is x._st.ctx:
        return x.copy()
    if not isinstance(ctx, Context):
        raise error(TypeError, f"as_in_context needs a Context such as mx.cpu(0), got {ctx!r}")
    return to_context(x, ctx)  # type: ignore[return-value]  # an array of the same class


def _method(name: str, op_name: str) -> Any:
    def method(self: NDArray, *args: Any, **kwargs: Any) -> Any:
        op = _op(op_name)
        return Op.run(op, take_last(op, (self, *args), kwargs), kwargs)

    method.__name__, method.__qualname__ = name, f"NDArray.{name}"
    method.__doc__ = f"Same as ``mx.nd.{op_name}`` of this array; the arguments follow."
    return method


for _name, _target in OP_METHODS.items():
    if _name not in NDArray.__dict__:
        setattr(NDArray, _name, _method(_name, _target))

NDArray.dense = NDArray
faces["default"] = NDArray
operators.install(NDArray)
