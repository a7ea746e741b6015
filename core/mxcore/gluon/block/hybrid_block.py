"""`HybridBlock`: a block that runs eagerly and as a graph from the same code."""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ... import ndarray as nd
from ..._core import tables
from ..._core.state import state
from ..._locks import ObjectLock
from ...autograd import pause
from ...base import error
from ...context import current_context
from ...executor.recent import Recent
from ...model import write_checkpoint
from ..parameter import DeferredInitializationError
from ..parameter.parameter import changes, is_of_parameter
from ..utils import is_np_array, shape_is_known
from .block import Block
from .cached_call import check_contexts, check_kinds
from .deferred import Outside, trace_arrays, tracing
from .seen import as_seen_by
from .structure import arrays_in, flatten
from .tracing import Traced, build, first_call, input_names, trace

if TYPE_CHECKING:
    from ...context import Context
    from ...ndarray import NDArray
    from ..parameter import Parameter, ParameterDict
    from .cached_call import CachedCall

__all__ = ["HybridBlock"]

#: So many graphs are kept of a block whose graph is noted on arrays.
_NOTED = 64


def _traced(forward: Callable[..., Any]) -> Callable[..., Any]:
    """A ``forward`` that runs as a graph where its block is hybridised and arrays are those of ``mx.np``."""

    @functools.wraps(forward)
    def run(self: HybridBlock, *args: Any) -> Any:
        if self._active and is_np_array() and not tracing():
            found = arrays_in(args, [])
            if found and isinstance(found[0], nd.NDArray):
                return self._call_noted(args)
        return forward(self, *args)

    return run


def _found_on_arrays(block: Block) -> bool:
    """Whether the graph of a block is found by running it on arrays, as that of no other way is known."""
    return is_np_array() and _any_by_arrays(block)


def _any_by_arrays(block: Block) -> bool:
    """Whether the graph of a block can be found on arrays only: it, or a block inside, has a ``forward`` of its own."""
    return getattr(block, "_by_arrays", False) or any(map(_any_by_arrays, block._children.values()))


class HybridBlock(Block):
    """Base of layers that run eagerly and as a graph.

    Write ``hybrid_forward(self, F, x, ..., weight, ...)``, where F is `mxcore.ndarray` or `mxcore.symbol`
    and the block's own parameters come as keywords. Children must be hybrid blocks too.

    Parameters
    ----------
    prefix : str, optional
        Goes before the names of all parameters inside.
    params : ParameterDict, optional
        Parameters to share.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.HybridBlock``. A parameter whose shape is not known is initialised
    at the first call: a layer says what it needs in `infer_shape`; any other block is traced to a graph and
    asked there.

    Examples
    --------
    >>> import mxcore as mx
    >>> class Scale(mx.gluon.HybridBlock):
    ...     def __init__(self, **kwargs):
    ...         super().__init__(**kwargs)
    ...         self.factor = self.params.get('factor', shape=(1,), init='ones')
    ...     def hybrid_forward(self, F, x, factor):
    ...         return F.broadcast_mul(x, factor)
    >>> net = Scale()
    >>> net.initialize()
    >>> net.hybridize()
    >>> net(mx.nd.ones((2,))).shape
    (2,)
    """

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._active = False
        self._flags: dict[str, Any] = {}
        self._backend: str | None = None
        self._backend_opts: dict[str, Any] = {}
        self._op_hook: tuple[Callable[..., Any], bool] | None = None
        self._forget_graph()

    #: Whether a first call has begun; until then nobody traces it.
    _begun = False
    #: Whether ``forward`` says what it computes, so that its graph is noted while it runs on arrays of ``mx.np``.
    _by_arrays = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("forward")
        if (
            own is not None
            and inspect.unwrap(cls.hybrid_forward) is HybridBlock.hybrid_forward
            and not cls.__module__.startswith("mxcore.")
        ):
            cls._by_arrays = True
            cls.forward = _traced(own)  # type: ignore[method-assign]

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, Block):
            self._clear_cached_op()

    def __getstate__(self) -> dict[str, Any]:
        # A graph is found again by tracing.
        graph = self._traced_graph
        told = self._told_format if graph is None else graph.in_format
        kept = {"_traced_graph": None, "_told_format": told, "_cached_op": None, "_noted": Recent(_NOTED)}
        return {**self.__dict__, **kept}

    def _clear_cached_op(self) -> None:
        """Forget the graph: what it was traced from has changed. A thread that is tracing ends first."""
        # Who makes a block waits for nobody: he may be within the import of what the one that traces waits for.
        with first_call if self._begun else contextlib.nullcontext():
            self._forget_graph()

    def _forget_graph(self) -> None:
        #: All that is known of the graph, for whoever drops it waits for no signal handler; None before the first call.
        self._traced_graph: Traced | None = None
        #: Structure of the inputs of what this is a copy of.
        self._told_format: Any = None
        #: What runs the graph.
        self._cached_op: CachedCall | None = None
        #: Whether graphs that were noted read parameters of others, which may have other arrays one day.
        self._outside = False
        #: What runs the graphs that were noted on arrays, by what they depend on.
        self._noted = Recent(_NOTED)

    def _alone(self, args: Any) -> ObjectLock:
        """`first_call`, once the kernels for arguments like these are there: their import may want that lock, too."""
        self._begun = True
        found = [x for x in arrays_in(args, []) if isinstance(x, nd.NDArray)]
        for device in {"cpu": None, **{x.context.device_type: None for x in found}}:
            tables.kernels.open(device)
        return first_call

    def _graph_now(self) -> Traced | None:
        """The graph, if there is one; who is about to make it anew ends first."""
        graph = self._traced_graph
        if graph is None and self._begun:
            with first_call:
                graph = self._traced_graph
        return graph

    # What others read of a block, and set: GluonTS writes the formats beside an exported graph, and gives them to the
    # `SymbolBlock` that it reads.
    @property
    def _cached_graph(self) -> Any:
        """The inputs, as a list of symbols, and the outputs, as one; empty before the first call."""
        graph = self._traced_graph
        return () if graph is None else graph[:2]

    @_cached_graph.setter
    def _cached_graph(self, value: Any) -> None:
        if value:
            raise error(TypeError, f"the graph of {type(self).__name__} '{self.name}' can be emptied, not be set")
        self._clear_cached_op()

    @property
    def _in_format(self) -> Any:
        """The structure of the inputs; None before the first call."""
        graph = self._traced_graph
        return self._told_format if graph is None else graph.in_format

    @_in_format.setter
    def _in_format(self, value: Any) -> None:
        self._told_format = value
        self._take_formats(in_format=value)

    @property
    def _out_format(self) -> Any:
        """The structure of the outputs; None before the first call."""
        graph = self._traced_graph
        return None if graph is None else graph.out_format

    @_out_format.setter
    def _out_format(self, value: Any) -> None:
        self._take_formats(out_format=value)

    def _take_formats(self, **formats: Any) -> None:
        """Let a graph that there is have other structures of inputs or outputs."""
        graph, op = self._traced_graph, self._cached_op
        if graph is not None:
            self._traced_graph = graph = graph._replace(**formats)
            if op is not None:
                op.take_formats(graph.in_format, graph.out_format)

    # -- settings --------------------------------------------------------------------------------------------

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Make a hybrid block a child: its parameters become part of this block's."""
        if not isinstance(block, HybridBlock):
            raise error(
                ValueError,
                f"Children of HybridBlock must also be HybridBlock, but {block} has type {type(block)}. "
                "If you are using Sequential, please try HybridSequential instead.",
            )
        super().register_child(block, name)
        self._clear_cached_op()

    def hybridize(
        self,
        active: bool = True,
        backend: str | None = None,
        clear: bool = True,
        static_alloc: bool = False,
        static_shape: bool = False,
        inline_limit: int = 2,
        forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Run this block and everything inside as one graph, or eagerly again.

        Parameters
        ----------
        active : bool, default True
        backend : str, optional
            Name of a graph backend.
        clear : bool, default True
            Forget the graph traced so far.
        static_alloc : bool, default False
            Keep the memory of intermediate results between calls.
        static_shape : bool, default False
            Promise that input shapes do not change; needs `static_alloc`.
        inline_limit, forward_bulk_size, backward_bulk_size : int, optional
            Checked at the first call, for MXNet's sake: the graph compiler groups operators by itself.
        **kwargs
            Options of the backend.
        """
        if static_shape and not static_alloc:
            raise error(ValueError, "hybridize: static_shape=True needs static_alloc=True")
        self._active = bool(active)
        self._backend, self._backend_opts = backend, kwargs
        flags = {
            "static_alloc": static_alloc,
            "static_shape": static_shape,
            "inline_limit": inline_limit,
            "forward_bulk_size": forward_bulk_size,
            "backward_bulk_size": backward_bulk_size,
        }
        self._flags = {name: value for name, value in flags.items() if value is not None}
        if clear:
            self._clear_cached_op()
        if active and (self._forward_hooks or self._forward_pre_hooks):
            warnings.warn(
                f'"{self}" is being hybridized while still having forward hook/pre-hook. If "{self}" is a '
                "child of HybridBlock, the hooks will not take effect.",
                UserWarning,
                stacklevel=2,
            )
        super().hybridize(
            active,
            clear=clear,
            static_alloc=static_alloc,
            static_shape=static_shape,
            inline_limit=inline_limit,
            forward_bulk_size=forward_bulk_size,
            backward_bulk_size=backward_bulk_size,
        )

    def cast(self, dtype: Any) -> None:
        super().cast(dtype)
        self._clear_cached_op()

    def register_op_hook(self, callback: Callable[..., Any], monitor_all: bool = False) -> None:
        """Watch every operator of this block once it is hybridised; see `Block.register_op_hook`."""
        self._op_hook = (callback, monitor_all)
        for made in (self._cached_op, *self._noted.values()):
            if made is not None:
                made.op.register_op_hook(callback, monitor_all)
        super().register_op_hook(callback, monitor_all)

    # -- running ---------------------------------------------------------------------------------------------

    def forward(self, x: Any, *args: Any) -> Any:
        """Run `hybrid_forward` on arrays, or compose it onto symbols."""
        op = self._cached_op  # another thread may drop it
        if op is not None and self._active and isinstance(x, nd.NDArray) and not tracing():
            try:
                return op((x, *args))
            except DeferredInitializationError:  # of parameters that have been initialised anew
                pass
        ctx = self._context_of((x, *args))
        if ctx is None:
            return self._forward_symbol(x, *args)
        if self._active and not tracing():
            return self._call_cached_op(x, *args)
        if ctx is current_context():
            return self._forward_eager(ctx, x, *args)
        with ctx:
            return self._forward_eager(ctx, x, *args)

    def _context_of(self, args: tuple[Any, ...]) -> Context | None:
        """Context of the first array in mixed or nested arguments, None if they are symbols."""
        found = arrays_in(args, [])
        owner = f"{type(self).__name__} '{self.name}'"
        if not found:
            raise error(
                ValueError,
                f"In HybridBlock, there must be one NDArray or one Symbol in the input of {owner}, but it got "
                f"{', '.join(type(a).__name__ for a in args)}. Please check the type of the args.",
            )
        check_kinds(found, owner)
        return found[0].context if isinstance(found[0], nd.NDArray) else None

    def _forward_eager(self, ctx: Context, x: Any, *args: Any) -> Any:
        F = as_seen_by(type(self), nd)
        if not self._reg_params:
            return self.hybrid_forward(F, x, *args)
        try:
            params = {name: p.data(ctx) for name, p in self._reg_params.items()}
        except DeferredInitializationError:
            self._finish_deferred(self._reg_params.values(), x, *args)
            params = {name: p.data(ctx) for name, p in self._reg_params.items()}
        return self.hybrid_forward(F, x, *args, **params)

    def _forward_symbol(self, x: Any, *args: Any) -> Any:
        from ... import symbol

        params = {name: p.var() for name, p in self._reg_params.items()}
        with self.name_scope():
            return self.hybrid_forward(as_seen_by(type(self), symbol), x, *args, **params)

    def _call_cached_op(self, *args: Any) -> Any:
        """Run the graph, which the first call traces."""
        op = self._cached_op
        if op is None and _found_on_arrays(self):
            return self._call_noted(args)
        if op is None:
            with self._alone(args):
                op = self._cached_op or self._build_cache(*args)
        try:
            return op(args)
        except DeferredInitializationError:
            self._finish_deferred(self.collect_params().values(), *args)
            return op(args)

    def _run_plain(self, *args: Any) -> Any:
        """Run on arrays, whatever the settings."""
        return self.forward(*args)

    def _note(self, args: tuple[Any, ...]) -> tuple[CachedCall, list[Any]]:
        """The graph for arrays like these, in this mode, and the keys that were drawn if it is noted only now."""
        leaves: list[Any] = []
        in_format = flatten(args, leaves)
        check_kinds(leaves, f"{type(self).__name__} '{self.name}'")
        check_contexts(leaves)
        mode = state.train, bool(state.record)
        now = changes.last
        outside = now if self._outside else None
        key = (leaves[0].context, mode, str(in_format), tuple((x.shape, x.dtype) for x in leaves), outside)

        keys: list[Any] = []

        def make() -> CachedCall:
            with self._alone(args):
                before, names = self._traced_graph, input_names(len(leaves))
                inputs, out, out_format, added, drawn = trace_arrays(self, args, names)
                keys.extend(drawn)
                self._outside |= any(isinstance(p, Outside) and is_of_parameter(p.data()) for p in added.values())
                made = self._built(Traced(inputs, out, in_format, out_format, added), args)
                if not state.train or before is None:  # what is exported is for prediction, if there is such a graph
                    self._traced_graph = made[0]
                return made[1]

        found = self._noted.find(key, make)
        if self._outside and outside is None:  # as is known only now
            self._noted.find((*key[:-1], now), lambda: found)
        return found, keys

    def _call_noted(self, args: tuple[Any, ...]) -> Any:
        """Run the graph that was noted for arrays like these, in this mode; note it if there is none."""
        found, keys = self._note(args)
        if not keys:
            return found(args)
        # The first run draws no more than the one that it was noted on: seeds give what they give eagerly.
        before, state.keys = state.keys, [*keys, *state.keys]
        try:
            return found(args)
        finally:
            state.keys = before

    def _build_cache(self, *args: Any) -> CachedCall:
        """Make what runs the graph, through the backend if there is one."""
        traced = self._get_graph(*args)
        if self._backend is not None:
            self._finish_deferred(self.collect_params().values(), *args)
        made, op = self._built(traced, args)
        if self._traced_graph is traced:  # else somebody has dropped it meanwhile
            self._traced_graph, self._cached_op = made, op
        return op

    def _built(self, traced: Traced, args: tuple[Any, ...]) -> tuple[Traced, CachedCall]:
        """A graph as it runs, and what runs it, with what was asked for: a backend, a watcher of its operators."""
        if self._backend is not None:
            from .backend import partition

            traced = partition(self, self._backend, traced, args)
        made = build(self, traced, self._flags)
        if self._op_hook is not None:
            made.op.register_op_hook(*self._op_hook)
        return traced, made

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the output from operators of `F`. Every hybrid block defines its own.

        Parameters
        ----------
        F : module
            `mxcore.ndarray` or `mxcore.symbol`.
        x, *args : NDArray or Symbol
            The inputs.
        **kwargs : NDArray or Symbol
            The block's own parameters, by attribute name.
        """
        raise error(
            NotImplementedError,
            f"{type(self).__name__} does not say what it computes: define hybrid_forward(self, F, x, ...).",
        )

    # -- graphs ----------------------------------------------------------------------------------------------

    def _get_graph(self, *args: Any) -> Traced:
        """The block as a graph, traced by what it is called with unless it was before."""
        with self._alone(args):
            traced = self._traced_graph
            if traced is None:
                leaves: list[Any] = []
                in_format = flatten(args, leaves)
                check_contexts(leaves)
                self._traced_graph = traced = trace(self, in_format)
            return traced

    def _infer_attrs(self, method: str, attribute: str, *args: Any) -> list[Parameter]:
        """Ask the graph about its parameters; returns the parameters that it has."""
        if _found_on_arrays(self) and (getattr(self, "_by_arrays", False) or not self._reg_params):
            with pause():
                self._run_plain(*args)  # what its layers are called with is known to Python only
            return [*self.collect_params().values()]
        traced = self._get_graph(*args)
        inputs, out, leaves = traced.inputs, traced.out, list[Any]()
        flatten(args, leaves)
        names = set(out.list_inputs())
        known = {i.name: getattr(leaf, attribute) for i, leaf in zip(inputs, leaves) if i.name in names}
        found_args, _, found_aux = getattr(out, method)(**known)
        found = dict(zip(out.list_arguments(), found_args))
        found.update(zip(out.list_auxiliary_states(), found_aux))
        params = [p for p in self.collect_params().values() if p.name in found]
        for p in params:
            if found[p.name]:
                setattr(p, attribute, found[p.name])
        return params

    def infer_shape(self, *args: Any) -> None:
        """Fill in the shapes of all parameters inside from inputs.

        Parameters
        ----------
        *args : NDArray
            What the block would be called with; only shapes matter.

        Raises
        ------
        MXNetError (ValueError)
            If shapes contradict each other, or those of some parameters stay open.
        """
        params = self._infer_attrs("infer_shape_partial", "shape", *args)
        open_ = [f"{p.name} {p.shape}" for p in params if not shape_is_known(p.shape)]
        if open_:
            raise error(ValueError, f"the graph leaves open the shape of {', '.join(open_)}; say more where it is made")

    def infer_type(self, *args: Any) -> None:
        """Set the dtypes of all parameters inside from inputs."""
        self._infer_attrs("infer_type_partial", "dtype", *args)

    def _finish_deferred(self, params: Iterable[Parameter], *args: Any) -> None:
        """Find the shapes that the first batch tells, and initialise the parameters that wait for them."""
        with self._alone(args):
            waiting = [p for p in params if p._deferred_init]
            try:
                if waiting:
                    self.infer_shape(*args)
                if not all(shape_is_known(p.shape) for p in waiting):
                    # A layer's own rule does not know the parameters of its children, or those that a subclass added.
                    HybridBlock.infer_shape(self, *args)
            except Exception as e:
                raise error(
                    ValueError,
                    f"Deferred initialization of {type(self).__name__} '{self.name}' failed because shape cannot "
                    f"be inferred. {type(e).__name__}: {e}",
                ) from e
            for p in waiting:
                p._finish_deferred_init()

    def optimize_for(
        self,
        x: NDArray,
        *args: Any,
        backend: str | None = None,
        clear: bool = False,
        static_alloc: bool = False,
        static_shape: bool = False,
        inline_limit: int = 2,
        forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Hybridise for inputs like these, through a graph backend if one is named, without running anything.

        Parameters
        ----------
        x, *args : NDArray
            Inputs; only shapes matter.
        backend : str, optional
            Name of a graph backend: a graph pass of a plugin.
        clear : bool, default False
            Trace anew even if the block is hybridised already.
        **kwargs
            Options of the backend; the others as for `hybridize`.

        Raises
        ------
        MXNetError
            If nobody provides the backend.
        """
        if clear or not self._active:
            self.hybridize(
                True,
                backend,
                clear,
                static_alloc,
                static_shape,
                inline_limit,
                forward_bulk_size,
                backward_bulk_size,
                **kwargs,
            )
        self._backend, self._backend_opts = backend, kwargs
        if self._context_of((x, *args)) is None:
            raise error(ValueError, f"optimize_for of {self.name} needs arrays, it was called with symbols")
        with self._alone((x, *args)):
            self._finish_deferred(self.collect_params().values(), x, *args)
            if _found_on_arrays(self):
                self._note((x, *args))
            else:
                self._build_cache(x, *args)

    def export(self, path: str, epoch: int = 0, remove_amp_cast: bool = True) -> None:
        """Write the graph and the parameters as ``path-symbol.json`` and ``path-0000.params``.

        `SymbolBlock.imports`, `mxcore.model.load_checkpoint` and MXNet read them.

        Parameters
        ----------
        path : str
            Where, without the endings.
        epoch : int, default 0
            Number in the name of the parameter file.
        remove_amp_cast : bool, default True
            Leave casts of automatic mixed precision out.

        Raises
        ------
        MXNetError (RuntimeError)
            If the block was not hybridised and called before.
        """
        traced, in_format = self._graph_now(), self._told_format  # another thread may drop them
        if traced is None and self._active and in_format is not None:
            with self._alone(()):
                self._traced_graph = traced = trace(self, in_format)
        if traced is None:
            raise error(
                RuntimeError,
                "Please first call block.hybridize() and then run forward "
                "with this block at least once before calling export.",
            )
        out = traced.out
        kinds = dict.fromkeys(out.list_arguments(), "arg")
        kinds.update((name, "aux") for name in out.list_auxiliary_states())
        params = [*self.collect_params().values(), *traced.params.values()]
        write_checkpoint(
            path,
            epoch,
            out,
            {f"{kinds[p.name]}:{p.name}": p._reduce() for p in params if p.name in kinds},
            remove_amp_cast,
        )
