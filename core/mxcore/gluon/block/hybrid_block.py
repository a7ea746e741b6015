"""`HybridBlock`: a block that runs eagerly and as a graph from the same code."""

from __future__ import annotations

import threading
import warnings

from ... import ndarray as nd
from ...base import error
from ..parameter import DeferredInitializationError
from .block import Block
from .structure import arrays_in, flatten, regroup

__all__ = ["HybridBlock"]

#: Whether a hybridised block runs in this thread: those inside are parts of its graph.
_running = threading.local()


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

    def __init__(self, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        self._active = False
        self._flags = {}
        self._op_hook = None
        self._clear_cached_op()

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if isinstance(value, Block):
            self._clear_cached_op()

    def __getstate__(self):
        # A graph is found again by tracing.
        return {**self.__dict__, "_graph": None, "_interpreter": None}

    def _clear_cached_op(self):
        """Forget the graph: what it was traced from has changed."""
        self._graph = None
        self._interpreter = None
        self._in_format = None

    # -- settings --------------------------------------------------------------------------------------------

    def register_child(self, block, name=None):
        """Make a hybrid block a child: its parameters become part of this block's."""
        if not isinstance(block, HybridBlock):
            raise error(
                ValueError,
                f"Children of HybridBlock must also be HybridBlock, but {block} has type {type(block)}. "
                "If you are using Sequential, please try HybridSequential instead.",
            )
        super().register_child(block, name)
        self._clear_cached_op()

    def hybridize(self, active=True, backend=None, clear=True, static_alloc=False, static_shape=False,
                  inline_limit=2, forward_bulk_size=None, backward_bulk_size=None, **kwargs):  # fmt: skip
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
            Accepted for MXNet's sake: the graph compiler groups operators by itself.
        **kwargs
            Options of the backend.
        """
        if static_shape and not static_alloc:
            raise error(ValueError, "hybridize: static_shape=True needs static_alloc=True")
        self._active = bool(active)
        self._flags = {
            "static_alloc": static_alloc,
            "static_shape": static_shape,
            "backend": backend,
            **kwargs,
        }
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
            active, clear=clear, static_alloc=static_alloc, static_shape=static_shape,
            inline_limit=inline_limit, forward_bulk_size=forward_bulk_size,
            backward_bulk_size=backward_bulk_size,
        )  # fmt: skip

    def cast(self, dtype):
        self._clear_cached_op()
        super().cast(dtype)

    def register_op_hook(self, callback, monitor_all=False):
        """Watch every operator of this block once it is hybridised; see `Block.register_op_hook`."""
        self._op_hook = (callback, monitor_all)
        super().register_op_hook(callback, monitor_all)

    # -- running ---------------------------------------------------------------------------------------------

    def forward(self, x, *args):
        """Run `hybrid_forward` on arrays, or compose it onto symbols."""
        if isinstance(x, nd.NDArray) and (not args or all(isinstance(a, nd.NDArray) for a in args)):
            ctx = x.context
        else:
            ctx = self._context_of((x, *args))
        if ctx is None:
            return self._forward_symbol(x, *args)
        if self._active:
            return self._call_cached(ctx, x, *args)
        return self._forward_eager(ctx, x, *args)

    def _context_of(self, args):
        """Context of the first array in mixed or nested arguments, None if they are symbols."""
        found = arrays_in(args, [])
        arrays = [a for a in found if isinstance(a, nd.NDArray)]
        if not found:
            raise error(
                ValueError,
                "In HybridBlock, there must be one NDArray or one Symbol in the input of "
                f"{type(self).__name__} '{self.name}', but it got "
                f"{', '.join(type(a).__name__ for a in args)}. Please check the type of the args.",
            )
        if arrays and len(arrays) != len(found):
            raise error(
                ValueError,
                f"In HybridBlock, we do not support mixed NDArrays and Symbols types for the input of "
                f"{type(self).__name__} '{self.name}'. Please check the type of the args.",
            )
        return arrays[0].context if arrays else None

    def _forward_eager(self, ctx, x, *args):
        if not self._reg_params:
            return self.hybrid_forward(nd, x, *args)
        try:
            params = {name: p.data(ctx) for name, p in self._reg_params.items()}
        except DeferredInitializationError:
            self._deferred_infer_shape(x, *args)
            params = {name: p.data(ctx) for name, p in self._reg_params.items()}
        return self.hybrid_forward(nd, x, *args, **params)

    def _forward_symbol(self, x, *args):
        from ... import symbol

        params = {name: p.var() for name, p in self._reg_params.items()}
        with self.name_scope():
            return self.hybrid_forward(symbol, x, *args, **params)

    def _call_cached(self, ctx, x, *args):
        """Run the hybridised block: here a compiled graph takes the place of eager execution."""
        if getattr(_running, "graph", False):
            # A part of the block that runs already; what it is called with is that block's own affair.
            return self._forward_eager(ctx, x, *args)
        _running.graph = True
        try:
            if self._in_format is None:
                self._record_format(x, *args)
            if self._op_hook is None:
                return self._forward_eager(ctx, x, *args)
            self._finish_all(x, *args)
            return self._interpret(ctx, x, *args)
        finally:
            _running.graph = False

    def _record_format(self, x, *args):
        """Note the structure of the inputs, and check what a graph asks of them."""
        leaves = []
        structure = flatten((x, *args), leaves)
        contexts = {str(a.context) for a in leaves}
        if len(contexts) > 1:
            raise error(
                ValueError,
                "Find multiple contexts in the input, After hybridized, the HybridBlock only supports one "
                f"input context. Find all contexts = {', '.join(sorted(contexts))}",
            )
        self._in_format = structure

    def _interpret(self, ctx, *args):
        """Run the traced graph operator by operator, showing each to the hook."""
        from .interpreter import Interpreter

        inputs, out, structure = self._get_graph(*args)
        if self._interpreter is None:
            self._interpreter = Interpreter(out)
        leaves = []
        flatten(args, leaves)
        values = {p.name: p.data(ctx) for p in self.collect_params().values()}
        values.update((i.name, leaf) for i, leaf in zip(inputs, leaves))
        callback, monitor_all = self._op_hook or (None, False)
        return regroup(iter(self._interpreter(values, callback, monitor_all)), structure)

    def hybrid_forward(self, F, x, *args, **kwargs):
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

    def _get_graph(self, *args):
        """The block as a graph: its input variables, its outputs as one symbol, and their structure."""
        if self._graph is None:
            if args:
                self._record_format(*args)
            self._graph = self._trace(self._in_format)
        return self._graph

    def _trace(self, in_format):
        from ... import symbol

        count = _count(in_format)
        names = ["data"] if count == 1 else [f"data{i}" for i in range(count)]
        inputs = [symbol.var(name) for name in names]
        grouped = regroup(iter(inputs), in_format)
        leaves = []
        structure = flatten(self._forward_symbol(*grouped), leaves, "output")
        return inputs, leaves[0] if structure == 0 else symbol.Group(leaves), structure

    def _infer_attrs(self, method, attribute, *args):
        inputs, out, _ = self._get_graph(*args)
        leaves = []
        flatten(args, leaves)
        known = {i.name: getattr(leaf, attribute) for i, leaf in zip(inputs, leaves)}
        found_args, _, found_aux = getattr(out, method)(**known)
        if found_args is None:
            raise error(ValueError, f"the graph of {self.name} leaves it open for inputs {known}")
        found = dict(zip(out.list_arguments(), found_args))
        found.update(zip(out.list_auxiliary_states(), found_aux))
        for p in self.collect_params().values():
            if p.name in found:
                setattr(p, attribute, found[p.name])

    def infer_shape(self, *args):
        """Fill in the shapes of all parameters inside from inputs.

        Parameters
        ----------
        *args : NDArray
            What the block would be called with; only shapes matter.
        """
        self._infer_attrs("infer_shape", "shape", *args)

    def infer_type(self, *args):
        """Set the dtypes of all parameters inside from inputs."""
        self._infer_attrs("infer_type", "dtype", *args)

    def _deferred_infer_shape(self, *args):
        """Find the shapes that the first batch tells, and initialise this block's own parameters."""
        try:
            self.infer_shape(*args)
            if any(_unknown(p) for p in self._reg_params.values()):
                # A subclass added parameters that its layer's own rule does not know.
                HybridBlock.infer_shape(self, *args)
        except Exception as e:
            raise error(
                ValueError,
                f"Deferred initialization of {type(self).__name__} '{self.name}' failed because shape cannot "
                f"be inferred. {type(e).__name__}: {e}",
            ) from e
        for p in self._reg_params.values():
            p._finish_deferred_init()

    def _finish_all(self, *args):
        """Initialise all parameters inside that wait for shapes, from the graph."""
        waiting = [p for p in self.collect_params().values() if p._deferred_init]
        if waiting:
            HybridBlock.infer_shape(self, *args)
        for p in waiting:
            p._finish_deferred_init()

    def optimize_for(self, x, *args, backend=None, clear=False, static_alloc=False, static_shape=False,
                     inline_limit=2, forward_bulk_size=None, backward_bulk_size=None, **kwargs):  # fmt: skip
        """Hybridise for inputs like these, through a graph backend if one is named, without running anything.

        Parameters
        ----------
        x, *args : NDArray
            Inputs; only shapes matter.
        backend : str, optional
            Name of a graph backend.
        **kwargs
            Options of the backend; the others as for `hybridize`.
        """
        self.hybridize(True, backend, clear, static_alloc, static_shape, inline_limit, forward_bulk_size,
                       backward_bulk_size, **kwargs)  # fmt: skip
        self._finish_all(x, *args)
        if backend is not None:
            inputs, out, structure = self._get_graph(x, *args)
            self._graph = inputs, out.optimize_for(backend, **kwargs), structure

    def export(self, path, epoch=0, remove_amp_cast=True):
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
        if self._graph is None and (not self._active or self._in_format is None):
            raise error(
                RuntimeError,
                "Please first call block.hybridize() and then run forward with this block at least once "
                "before calling export.",
            )
        _, out, _ = self._get_graph()
        out.save(f"{path}-symbol.json", remove_amp_cast=remove_amp_cast)
        kinds = dict.fromkeys(out.list_arguments(), "arg")
        kinds.update((name, "aux") for name in out.list_auxiliary_states())
        arrays = {
            f"{kinds[p.name]}:{p.name}": p._reduce()
            for p in self.collect_params().values()
            if p.name in kinds
        }
        nd.save(f"{path}-{epoch:04d}.params", arrays)


def _count(structure):
    """How many leaves a structure has."""
    return sum(map(_count, structure)) if isinstance(structure, list) else int(structure == 0)


def _unknown(parameter):
    shape = parameter.shape
    return shape is None or any(d < 1 for d in shape)
