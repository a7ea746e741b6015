"""`Parameter`: one array a network learns, with its gradient, on any number of contexts."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ... import autograd, initializer
from ... import ndarray as nd
from ..._core.transfer import together
from ...base import MXNetError, error, plain
from ...context import Context, contexts, cpu, current_context
from ...initializer.base import fill
from ..utils import is_np_array, is_np_shape, of_face, of_mode, shape_is_known
from .errors import DeferredInitializationError

if TYPE_CHECKING:
    from ...initializer import Initializer
    from ...ndarray import NDArray
    from ...symbol import Symbol
    from ..trainer import Trainer

__all__ = ["Parameter"]


class _Changes:
    """Tells of the events after which some parameter has other arrays than before.

    Who keeps arrays looks whether `last` is still the same object. (Threads that count can come to a number that was
    there before.)
    """

    last = object()


changes = _Changes()
#: The arrays of all parameters, by their ids.
_arrays: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def is_of_parameter(x: Any) -> bool:
    """Whether an array is a parameter's, which may have another one later: `changes` tells."""
    return _arrays.get(id(x)) is x


_STYPES = ("default", "row_sparse", "csr")
_GRAD_REQS = ("write", "add", "null")


def context_list(ctx: Context | Sequence[Context] | None) -> list[Context]:
    """The contexts meant by None, one context or a list of them."""
    return [current_context()] if ctx is None else contexts(ctx, "ctx")


def _same_device(ctx: Context, other: Any) -> bool:
    """Whether two contexts are memory of one device, with the same index, as `cpu` and `cpu_pinned` are."""
    return (
        isinstance(other, Context) and ctx.device_id == other.device_id and bool(other._device) and together(ctx, other)
    )


def dtype_name(dtype: Any) -> str:
    """``'float32'`` for any way to write that dtype, also if only an extension of NumPy knows it."""
    try:
        return str(np.dtype(dtype).name)
    except TypeError:
        return str(dtype)


def _one_of(what: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        listed = ", ".join(repr(a) for a in allowed[:-1])
        raise error(AssertionError, f"{what} must be one of {listed}, or {allowed[-1]!r}, but got {value!r}")


class Parameter:
    """An array that a `Block` learns.

    After ``initialize(ctx=[...])`` it holds one copy of the value and of the gradient a context. If its
    shape is not known by then, and deferring is allowed, it is initialised when the first batch tells the
    shape.

    Parameters
    ----------
    name : str
    grad_req : {'write', 'add', 'null'}, default 'write'
        Whether a backward pass overwrites the gradient, adds to it, or leaves the parameter alone.
    shape : int or tuple of int, optional
        A dimension of 0 or -1 is unknown.
    dtype : str or numpy dtype, default float32
    lr_mult, wd_mult : float, default 1.0
        Factors on the optimizer's learning rate and weight decay.
    init : Initializer or str, optional
        Goes before the initializer given to `initialize` of a whole network.
    allow_deferred_init : bool, default False
        Permit `initialize` while the shape is unknown.
    differentiable : bool, default True
        If False, `grad_req` is always 'null'.
    stype, grad_stype : {'default', 'row_sparse', 'csr'}
        Storage types of the value and of the gradient.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.Parameter``.

    Examples
    --------
    >>> import mxcore as mx
    >>> w = mx.gluon.Parameter('w', shape=(2, 3))
    >>> w.initialize(mx.init.One(), ctx=mx.cpu())
    >>> w.data().shape, w.grad().shape
    ((2, 3), (2, 3))
    """

    def __init__(
        self,
        name: str,
        grad_req: str = "write",
        shape: int | tuple[int, ...] | None = None,
        dtype: Any = np.float32,
        lr_mult: float = 1.0,
        wd_mult: float = 1.0,
        init: Initializer | str | None = None,
        allow_deferred_init: bool = False,
        differentiable: bool = True,
        stype: str = "default",
        grad_stype: str = "default",
    ) -> None:
        _one_of(f"stype for Parameter '{name}'", stype, _STYPES)
        _one_of(f"grad_stype for Parameter '{name}'", grad_stype, _STYPES)
        self.name = name
        self._var: Symbol | None = None
        self._data: list[NDArray] | None = None
        self._grad: list[NDArray] | None = None
        self._ctx_list: list[Context] = []
        self._trainer_ref: weakref.ref[Trainer] | None = None
        #: Initializer, contexts, initializer by default, value if it is known; empty unless that waits for a shape.
        self._deferred_init: Any = ()
        self._differentiable = differentiable
        self._allow_deferred_init = allow_deferred_init
        self._grad_req = ""
        self._shape: tuple[int, ...] | None = None
        if shape is not None:
            self._shape = plain((shape,) if isinstance(shape, (int, np.integer)) else tuple(shape))
        self._dtype = dtype
        self._stype = stype
        self._grad_stype = grad_stype
        self.lr_mult = lr_mult
        self.wd_mult = wd_mult
        self.init = init
        self.grad_req = grad_req

    def __repr__(self) -> str:
        return f"Parameter {self.name} (shape={self.shape}, dtype={self.dtype})"

    def __getstate__(self) -> dict[str, Any]:
        # The trainer and the symbol belong to the running program; gradients are attached again on arrival.
        return {**self.__dict__, "_trainer_ref": None, "_var": None, "_grad": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        changes.last = object()
        if self._data is not None:
            self._hold(self._data)

    # -- attributes ------------------------------------------------------------------------------------------

    @property
    def grad_req(self) -> str:
        """What a backward pass does with the gradient: 'write', 'add' or 'null'."""
        return self._grad_req

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        _one_of("grad_req", req, _GRAD_REQS)
        req = req if self._differentiable else "null"
        if self._grad_req == req:
            return
        self._grad_req = req
        if self._data is not None:
            self._hold(self._data)

    @property
    def dtype(self) -> Any:
        """Element type; setting it casts the value."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        self.cast(dtype)

    @property
    def shape(self) -> tuple[int, ...] | Any:
        """Shape, None if nothing is known of it; unknown dimensions may be filled in, known ones stay."""
        if self._shape is None or not is_np_shape():
            return self._shape
        return tuple(d if d > 0 else -1 for d in self._shape)

    @shape.setter
    def shape(self, new_shape: tuple[int, ...] | None) -> None:
        old = self._shape
        if old is not None and (
            new_shape is None or len(old) != len(new_shape) or any(a > 0 and a != b for a, b in zip(old, new_shape))
        ):
            raise error(
                AssertionError,
                f"Parameter '{self.name}': Expected shape {new_shape} is incompatible with given shape {old}.",
            )
        shape = None if new_shape is None else tuple(int(d) for d in new_shape)
        if shape != old:
            self._shape, self._var = shape, None

    @property
    def stype(self) -> str:
        """Storage type of the value."""
        return self._stype

    @property
    def grad_stype(self) -> str:
        """Storage type of the gradient."""
        return self._grad_stype

    # -- initialisation --------------------------------------------------------------------------------------

    def initialize(
        self,
        init: Initializer | str | None = None,
        ctx: Context | Sequence[Context] | None = None,
        default_init: Initializer | str | None = None,
        force_reinit: bool = False,
    ) -> None:
        """Fill the parameter on one or several contexts, or note what to do once the shape is known.

        Parameters
        ----------
        init : Initializer or str, optional
            By default the parameter's own `init`, else `default_init`.
        ctx : Context or list of Context, optional
            By default the current context.
        default_init : Initializer or str, optional
            By default ``Uniform()``.
        force_reinit : bool, default False
            Fill it again if it is filled already.

        Raises
        ------
        MXNetError (ValueError)
            If the shape is not known and deferring is not allowed.
        """
        if self._data is not None and not force_reinit:
            warnings.warn(
                f"Parameter '{self.name}' is already initialized, ignoring. Set force_reinit=True to re-initialize.",
                UserWarning,
                stacklevel=2,
            )
            return
        default_init = initializer.Uniform() if default_init is None else default_init
        if init is None:
            init = default_init if self.init is None else self.init
        task = (init, context_list(ctx), default_init, None)
        if shape_is_known(self.shape):
            self._initialize(task)  # other threads see the old value until the new one is there
            return
        if not self._allow_deferred_init:
            raise error(
                ValueError, f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {self.shape}."
            )
        self._data = self._grad = None
        changes.last = object()
        self._deferred_init = task

    def _finish_deferred_init(self) -> None:
        """Do what `initialize` put off, now that the shape is known."""
        task = self._deferred_init
        if task:  # no other thread was faster
            self._initialize(task)

    def _initialize(self, task: Any) -> None:
        """Fill the parameter as `initialize` was told."""
        if not shape_is_known(self.shape):
            raise error(
                ValueError,
                f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {self.shape}. "
                "Please specify in_units, in_channels, etc. for Blocks.",
            )
        init, ctx, default_init, data = task
        with autograd.off():
            if data is None:
                # Dense even for a sparse parameter: initializers write slices.
                data = of_mode(nd.zeros(self._shape, dtype=self._dtype, ctx=cpu()))
                description = initializer.InitDesc(self.name, {"__init__": init})
                fill(initializer.create(default_init), description, data)
                if self._stype != "default":
                    data = data.as_nd_ndarray().tostype(self._stype)
            self._init_impl(data, ctx)
        self._deferred_init = ()

    def _init_impl(self, data: NDArray, ctx: Sequence[Context]) -> None:
        """Take `data` over as the value on every context."""
        self._ctx_list = list(ctx)
        self._hold([of_mode(data.copyto(c)) for c in self._ctx_list])

    def _hold(self, data: list[NDArray], grad: list[NDArray] | None = None) -> None:
        """Have these arrays, with gradients as `grad_req` says, or zeros; other threads see all of it, or nothing."""
        if self._grad_req == "null":
            if self._grad is not None:
                # A marked array keeps its gradient for life: go on with an unmarked view of the same memory.
                data = [d.detach() for d in data]
            grad = None
        else:
            if grad is None:
                more = {} if self._grad_stype == "default" else {"stype": self._grad_stype}
                grad = [of_face(nd.zeros(d.shape, dtype=d.dtype, ctx=d.context, **more), d) for d in data]
            autograd.mark_variables(data, grad, self._grad_req)
        _arrays.update((id(d), d) for d in data)
        self._grad, self._data = grad, data
        changes.last = object()

    def _known_contexts(self) -> list[Context] | None:
        """Where it is, or will be; None if nobody has said so yet."""
        if self._data is not None:
            return self._ctx_list
        return self._deferred_init[1] if self._deferred_init else None

    def _misfit(
        self, data: NDArray | np.ndarray[Any, Any], ctx: Context | Sequence[Context] | None, cast_dtype: bool
    ) -> str | None:
        """Why a loaded array cannot be taken over, for messages; arguments as for `_load_init`."""
        if self._shape is not None and (
            len(self._shape) != len(data.shape) or any(a > 0 and a != b for a, b in zip(self._shape, data.shape))
        ):
            return f"shape incompatible expected {self._shape} vs saved {tuple(data.shape)}"
        if not cast_dtype and dtype_name(self._dtype) != dtype_name(data.dtype):
            return (
                f"dtype incompatible expected {dtype_name(self._dtype)} vs saved {dtype_name(data.dtype)}. "
                "Set cast_dtype=True to cast the dtype of saved params."
            )
        known = self._known_contexts()
        if known is not None and ctx is not None and set(ctx := context_list(ctx)) != set(known):
            return f"it cannot be put on {ctx} because it was previous initialized on {known}."
        return None

    def _load_init(
        self,
        data: NDArray | np.ndarray[Any, Any],
        ctx: Context | Sequence[Context] | None,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Take a loaded array over, initialising the parameter if need be.

        Parameters
        ----------
        data : NDArray or numpy.ndarray
        ctx : Context or list of Context or None
            Where to put it if the parameter is not initialised yet; otherwise None or the same contexts.
        cast_dtype : bool, default False
            Permit another dtype than the parameter's.
        dtype_source : {'current', 'saved'}
            Which of the two dtypes wins when casting.
        """
        if cast_dtype:
            _one_of("dtype_source", dtype_source, ("current", "saved"))
        ctx = None if ctx is None else context_list(ctx)
        failed = f"Failed loading Parameter '{self.name}' from saved params: "
        if wrong := self._misfit(data, ctx, cast_dtype):
            raise error(AssertionError, failed + wrong)
        known = self._known_contexts()
        self._shape = tuple(data.shape)
        if dtype_source == "saved" and dtype_name(self._dtype) != dtype_name(data.dtype):
            self.cast(data.dtype)
        value = data if isinstance(data, nd.NDArray) else nd.array(data, ctx=cpu(), dtype=data.dtype)
        if value.stype == "default":
            value = value.as_nd_ndarray()
        if dtype_name(self._dtype) != dtype_name(value.dtype):
            value = value.astype(self._dtype)
        try:
            if self._data is not None:
                self.set_data(value)
                return
            with autograd.off():
                self._init_impl(value, known or ctx or [cpu()])
        except MemoryError as e:  # of a file of a few bytes, if its rows are few and far between
            raise error(MemoryError, f"{failed}{e}") from e
        self._deferred_init = ()

    # -- values and gradients --------------------------------------------------------------------------------

    @overload
    def _check_and_get(self, which: str, ctx: type[list[Any]]) -> list[NDArray]: ...

    @overload
    def _check_and_get(self, which: str | list[NDArray] | None, ctx: Context | None) -> NDArray: ...

    def _check_and_get(self, which: str | list[NDArray] | None, ctx: Context | type[list[Any]] | None) -> Any:
        """The array on `ctx` of ``"_data"`` or ``"_grad"``, all if `ctx` is ``list``; tells why there is none.

        Parameters of other libraries, which inherit from these, give the arrays themselves.
        """
        deferred = self._deferred_init  # asked first: a thread that ends the waiting has the arrays before
        arrays = getattr(self, which) if isinstance(which, str) else which
        if arrays is not None:
            if ctx is list:
                return arrays
            if ctx is None:
                if len(arrays) == 1:
                    return arrays[0]
                ctx = current_context()
            for array in arrays:
                if array.context == ctx:
                    return array
            for array in arrays:  # other memory of the same device, as that of batches from a loader
                if _same_device(array.context, ctx):
                    return array
            raise error(
                RuntimeError,
                f"Parameter '{self.name}' was not initialized on context {ctx}. "
                f"It was only initialized on {self._ctx_list}.",
            )
        if deferred:
            raise DeferredInitializationError(
                f"Parameter '{self.name}' has not been initialized yet because initialization was deferred. "
                "Actual initialization happens during the first forward pass. Please pass one batch of data "
                "through the network before accessing Parameters. You can also avoid deferred initialization "
                "by specifying in_units, num_features, etc., for network layers."
            )
        raise error(
            RuntimeError,
            f"Parameter '{self.name}' has not been initialized. Note that you should initialize parameters "
            "and create Trainer with Block.collect_params() instead of Block.params because the later does "
            "not include Parameters of nested child Blocks",
        )

    def data(self, ctx: Context | None = None) -> NDArray:
        """The value on a context (by default the only one, else the current one).

        Returns
        -------
        NDArray
            The array itself, not a copy.

        Raises
        ------
        DeferredInitializationError
            If the first batch is still to come.
        MXNetError (RuntimeError)
            If the parameter is not initialised there, or not dense.
        """
        arrays = self._data
        if arrays is not None and len(arrays) == 1 and self._stype == "default":
            # The usual case, asked once a parameter and call.
            if ctx is None or ctx == arrays[0].context:
                return arrays[0]
        if self._stype != "default":
            raise error(
                RuntimeError,
                f"Cannot return a copy of Parameter '{self.name}' on ctx {ctx} via data() because its "
                f"storage type is {self._stype}. Please use row_sparse_data() instead.",
            )
        return self._check_and_get("_data", ctx)

    def list_data(self) -> list[NDArray]:
        """The values on all contexts, in the order of `list_ctx`."""
        if self._stype != "default":
            raise error(
                RuntimeError,
                f"Cannot return copies of Parameter '{self.name}' on all contexts via list_data() because "
                f"its storage type is {self._stype}. Please use row_sparse_data() instead.",
            )
        return self._check_and_get("_data", list)

    def _no_gradient(self) -> MXNetError:
        return error(
            RuntimeError, f"Cannot get gradient array for Parameter '{self.name}' because grad_req='{self.grad_req}'"
        )

    def grad(self, ctx: Context | None = None) -> NDArray:
        """The gradient on a context (by default the only one, else the current one).

        Raises
        ------
        MXNetError (RuntimeError)
            If the parameter has no gradient there.
        """
        if self._data is not None and self._grad is None:
            raise self._no_gradient()
        return self._check_and_get("_grad", ctx)

    def list_grad(self) -> list[NDArray]:
        """The gradients on all contexts, in the order of `list_ctx`."""
        if self._data is not None and self._grad is None:
            raise self._no_gradient()
        return self._check_and_get("_grad", list)

    def list_ctx(self) -> list[Context]:
        """The contexts on which the parameter is, or is about to be."""
        if self._data is not None:
            return self._ctx_list
        if self._deferred_init:
            waiting: list[Context] = self._deferred_init[1]
            return waiting
        raise error(RuntimeError, f"Parameter '{self.name}' has not been initialized")

    def zero_grad(self) -> None:
        """Set the gradient to zero on all contexts; nothing to do without one."""
        for g in self._grad or ():
            if g.stype == "default":
                g[:] = 0
            else:
                nd.zeros(g.shape, dtype=g.dtype, ctx=g.context, stype=g.stype).copyto(g)

    def set_data(self, data: NDArray | np.ndarray[Any, Any]) -> None:
        """Write a value on every context.

        Parameters
        ----------
        data : NDArray or array_like
        """
        self.shape = data.shape
        if self._data is None:
            if not self._deferred_init:
                raise error(AssertionError, f"Parameter '{self.name}' has not been initialized")
            if not isinstance(data, nd.NDArray):
                data = nd.array(data, ctx=cpu(), dtype=self._dtype)
            self._deferred_init = (*self._deferred_init[:3], data.astype(self._dtype))
            self._finish_deferred_init()
            return
        # A store that updates holds weights of its own: it must learn of the new value before the next pull.
        trainer = self._trainer
        if trainer is not None:
            trainer._forget_stored(self)
        for array in self._data:
            array[:] = of_face(data, array) if isinstance(data, nd.NDArray) else data

    def reset_ctx(self, ctx: Context | Sequence[Context]) -> None:
        """Move the parameter to other contexts, keeping its value.

        Parameters
        ----------
        ctx : Context or list of Context
        """
        ctx = context_list(ctx)
        if self._data is not None:
            data = self._reduce()
            with autograd.off():
                self._init_impl(data, ctx)
        elif self._deferred_init:
            init, _, default_init, data = self._deferred_init
            self._deferred_init = (init, ctx, default_init, data)
        else:
            raise error(
                ValueError, f"Cannot reset context for Parameter '{self.name}' because it has not been initialized."
            )

    def cast(self, dtype: Any) -> None:
        """Change the dtype of the value and of the gradient."""
        self._dtype = dtype
        self._var = None
        if self._data is None:
            return
        with autograd.off():
            grad = None if self._grad is None else [g.astype(dtype) for g in self._grad]
            self._hold([d.astype(dtype) for d in self._data], grad)

    def var(self) -> Symbol:
        """The symbol that stands for this parameter in a graph."""
        var = self._var  # another thread may drop it
        if var is None:
            from ... import symbol

            self._var = var = symbol.var(
                self.name,
                shape=self.shape,
                dtype=self.dtype,
                lr_mult=self.lr_mult,
                wd_mult=self.wd_mult,
                init=self.init,
                stype=self._stype,
            )
        return var.as_np_ndarray() if is_np_array() else var

    # -- many contexts and sparse values ---------------------------------------------------------------------

    def _reduce(self) -> NDArray:
        """One value on the CPU: the mean over all contexts, or the whole of a sparse parameter."""
        if self._stype != "default":
            shape = self._shape or ()
            rows = nd.arange(0, shape[0], dtype="int64", ctx=cpu())
            out: NDArray = nd.zeros(shape, dtype=self._dtype, ctx=cpu(), stype=self._stype)
            self._need_trainer()._row_sparse_pull(self, out, rows, full_idx=True)
            return out
        arrays = [a.copyto(cpu()) for a in self.list_data()]
        return arrays[0] if len(arrays) == 1 else nd.add_n(*arrays) / len(arrays)

    def _set_trainer(self, trainer: Trainer | None) -> None:
        """Note who holds the rows of a sparse parameter; there can be only one."""
        if self._stype != "default" and self._trainer is not None and trainer is not None:
            raise error(
                RuntimeError,
                f"Failed to set the trainer for Parameter '{self.name}' because it was already set. More "
                "than one trainers for a row_sparse Parameter is not supported.",
            )
        # Weak: a dropped trainer shall take its optimizer states with it.
        self._trainer = trainer

    # Parameters of other libraries, which inherit from these, take over what another one has.

    @property
    def _trainer(self) -> Trainer | None:
        return None if self._trainer_ref is None else self._trainer_ref()

    @_trainer.setter
    def _trainer(self, trainer: Trainer | None) -> None:
        self._trainer_ref = None if trainer is None else weakref.ref(trainer)

    @property
    def _ctx_map(self) -> list[list[int | None]]:
        """Which array is on a context: by the parity of its type's id, and its number."""
        found: list[list[int | None]] = [[], []]
        for i, ctx in enumerate(self._ctx_list):
            numbers = found[ctx.device_typeid & 1]
            numbers += [None] * (ctx.device_id + 1 - len(numbers))
            numbers[ctx.device_id] = i
        return found

    @_ctx_map.setter
    def _ctx_map(self, found: list[list[int | None]]) -> None:
        """The contexts tell it."""

    def _need_trainer(self) -> Trainer:
        trainer = self._trainer
        if trainer is None:
            raise error(
                RuntimeError,
                f"Cannot get row_sparse data for Parameter '{self.name}' when no Trainer is created with it.",
            )
        return trainer

    def _get_row_sparse(self, ctx: Any, row_id: NDArray) -> Any:
        if not isinstance(row_id, nd.NDArray):
            raise error(
                TypeError, f"Parameter '{self.name}': row_id must have NDArray type, but {type(row_id)} is given."
            )
        trainer = self._need_trainer()
        found = self._check_and_get("_data", ctx)
        trainer._row_sparse_pull(self, found, row_id)
        return found

    def row_sparse_data(self, row_id: NDArray) -> NDArray:
        """The rows `row_id` of a row_sparse parameter, on the context of `row_id`.

        Parameters
        ----------
        row_id : NDArray of int64
        """
        self._must_be_sparse("row_sparse_data")
        rows: NDArray = self._get_row_sparse(row_id.context, row_id)
        return rows

    def list_row_sparse_data(self, row_id: NDArray) -> list[NDArray]:
        """The rows `row_id` of a row_sparse parameter, on every context.

        Parameters
        ----------
        row_id : NDArray of int64
        """
        self._must_be_sparse("list_row_sparse_data")
        rows: list[NDArray] = self._get_row_sparse(list, row_id)
        return rows

    def _must_be_sparse(self, method: str) -> None:
        if self._stype != "row_sparse":
            raise error(
                RuntimeError,
                f"Cannot return a copy of Parameter {self.name} via {method}() because its storage type is "
                f"{self._stype}. Please use data() instead.",
            )
