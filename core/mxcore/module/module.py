"""`Module`: a symbol bound on one or several contexts, with parameters and an optimizer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import context as _context
from .. import ndarray, optimizer
from .._core.errors import warn
from .._io_files import write_atomic
from .._locks import locked
from ..base import error
from ..context import contexts
from ..drafts import together
from ..initializer import InitDesc, Uniform
from ..initializer.base import fill
from ..io import DataDesc
from ..model import checkpoint_file, load_checkpoint, write_checkpoint
from ..ndarray import NDArray
from ..optimizer import Optimizer
from ..symbol import Symbol
from . import arguments
from .base_module import BaseModule
from .executor_group import DataParallelExecutorGroup, groups_per_context
from .names import check_input_names, check_params, labels_of, parse_data_desc
from .updates import create_kvstore, initialize_kvstore, names_of_indices, update_params, update_params_on_kvstore

__all__ = ["Module"]


class Module(BaseModule):
    """A symbol with its parameters, on any number of contexts.

    Parameters
    ----------
    symbol : Symbol
    data_names, label_names : list of str
        Arguments that batches bring. Labels need not be there for prediction.
    logger : Logger
    context : Context or list of Context
        Each context takes a slice of every batch.
    work_load_list : list of float, optional
        The share of each context; equal unless told.
    fixed_param_names : list of str, optional
        Parameters that are not trained.
    state_names : list of str, optional
        Arguments that neither batches nor the optimizer change; see `set_states`.
    group2ctxs : dict or list of dict, optional
        Where nodes with the attribute ``ctx_group`` run. A dict gives each group a context, or a list with one for each
        of the module's contexts; a list gives each of those a dict.
    compression_params : dict, optional
        Gradient compression, as for `KVStore.set_gradient_compression`.

    Raises
    ------
    MXNetError
        (also ValueError) if the symbol lacks an input; it names those that there are.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.mod.Module``.

    Examples
    --------
    >>> import mxcore as mx
    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    >>> mod = mx.mod.Module(net, label_names=None)
    >>> mod.bind([("data", (4, 3))], for_training=False)
    >>> mod.init_params(mx.init.One())
    >>> mod.predict(mx.nd.ones((1, 3))).asnumpy()
    array([[3., 3.]], dtype=float32)
    """

    def __init__(
        self,
        symbol: Symbol,
        data_names: Any = ("data",),
        label_names: Any = ("softmax_label",),
        logger: Any = logging,
        context: Any = None,
        work_load_list: Any = None,
        fixed_param_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
        compression_params: Any = None,
    ) -> None:
        super().__init__(logger)
        context = _context.cpu() if context is None else context
        if not isinstance(symbol, Symbol):
            raise error(TypeError, f"Module takes a Symbol, got {type(symbol).__name__}")
        self._context = contexts(context, "context")
        self._work_load_list = arguments.work_loads(work_load_list, len(self._context))
        groups_per_context(group2ctxs, len(self._context))
        self._group2ctxs = group2ctxs
        self._symbol = symbol
        data, labels, states, fixed = (
            arguments.names(n, what)
            for n, what in (
                (data_names, "data_names"),
                (label_names, "label_names"),
                (state_names, "state_names"),
                (fixed_param_names, "fixed_param_names"),
            )
        )
        if compression_params is not None:
            arguments.options(compression_params, "compression_params")
        for names, kind, throw in (
            (data, "data", True),
            (labels, "label", False),
            (states, "state", True),
            (fixed, "fixed_param", True),
        ):
            check_input_names(symbol, names, kind, throw)
        inputs = {*data, *labels, *states}
        self._param_names = [n for n in symbol.list_arguments() if n not in inputs]
        self._fixed_param_names, self._aux_names = fixed, symbol.list_auxiliary_states()
        self._data_names, self._label_names, self._state_names = data, labels, states
        self._output_names = symbol.list_outputs()
        self._arg_params: dict[str, NDArray] = None  # type: ignore[assignment]  # until bound, for which `_require` asks
        self._aux_params: dict[str, NDArray] = None  # type: ignore[assignment]  # until bound, for which `_require` asks
        self._params_dirty = False
        self._compression_params = compression_params
        self._optimizer: Any = None
        self._kvstore: Any = None
        self._update_on_kvstore: bool | None = None
        self._updater: Any = None
        self._numbered = self._param_names  # parameters in the order of the optimizer's numbers
        self._preload_opt_states: str | None = None
        self._grad_req: Any = None
        self._reset_bind()
        #: Descriptions of the labels as bound; later batches may come without.
        self._bound_labels: list[DataDesc] | None = None

    # -- checkpoints -------------------------------------------------------------------------------------------
    @staticmethod
    def load(prefix: str, epoch: int, load_optimizer_states: bool = False, **kwargs: Any) -> Module:
        """Make a module of a checkpoint.

        Parameters
        ----------
        prefix : str
        epoch : int
        load_optimizer_states : bool
            Take over ``<prefix>-<epoch>.states``, too, once there is an optimizer.
        **kwargs
            Further arguments of `Module`.

        Returns
        -------
        Module
            Not bound yet.
        """
        symbol, args, auxs = load_checkpoint(prefix, epoch)
        mod = Module(symbol=symbol, **kwargs)
        mod._arg_params, mod._aux_params = args, auxs
        mod.params_initialized = True
        if load_optimizer_states:
            mod._preload_opt_states = checkpoint_file(prefix, epoch, "states")
        return mod

    @locked
    def save_checkpoint(
        self, prefix: str, epoch: int, save_optimizer_states: bool = False, remove_amp_cast: bool = True
    ) -> None:
        """Write ``<prefix>-symbol.json``, ``<prefix>-<epoch>.params`` and, if wanted, ``<prefix>-<epoch>.states``.

        All are replaced together, and each is whole.

        Parameters
        ----------
        prefix : str
        epoch : int
        save_optimizer_states : bool
        remove_amp_cast : bool
            Leave out the casts of automatic mixed precision.
        """
        state_name = checkpoint_file(prefix, epoch, "states")
        with together(checkpoint_file(prefix, epoch), state_name):
            param_name = write_checkpoint(prefix, epoch, self._symbol, self._named_params(), remove_amp_cast)
            if save_optimizer_states:
                self.save_optimizer_states(state_name)
        self.logger.info('Saved checkpoint to "%s"', param_name)
        if save_optimizer_states:
            self.logger.info('Saved optimizer state to "%s"', state_name)

    @locked
    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Write the optimizer's states to a file.

        Parameters
        ----------
        fname : str
        dump_optimizer : bool
            Keep the optimizer, too, with its counts of updates (an addition to MXNet's): Adam goes on where it was, not
            from step 1.
        """
        self._require("save_optimizer_states", params=True, optimizer=True)
        if self._update_on_kvstore:
            self._kvstore.save_optimizer_states(fname, dump_optimizer)
        else:
            write_atomic(fname, self._updater.get_states(dump_optimizer))

    @locked
    def load_optimizer_states(self, fname: str) -> None:
        """Read the optimizer's states from a file.

        Parameters
        ----------
        fname : str
        """
        self._require("load_optimizer_states", params=True, optimizer=True)
        if self._update_on_kvstore:
            self._kvstore.load_optimizer_states(fname)
        else:
            self._updater.load(fname)
            # Each replica goes on from its own count, and one that the file does not know from the most.
            self._updater.optimizer._count_on(*(ctx.device_id for ctx in self._context), own=True)
        # A file may hold the optimizer, too, which then is the one that updates.
        updater = getattr(self._kvstore, "_updater", None) if self._update_on_kvstore else self._updater
        self._optimizer = getattr(updater, "optimizer", self._optimizer)

    # -- descriptions ------------------------------------------------------------------------------------------
    @property
    def data_names(self) -> list[str]:
        return self._data_names

    @property
    def label_names(self) -> list[str]:
        """Names of the labels, list of str."""
        return self._label_names

    @property
    def output_names(self) -> list[str]:
        return self._output_names

    @property
    def data_shapes(self) -> Any:
        self._require("data_shapes")
        return self._data_shapes

    @property
    def label_shapes(self) -> Any:
        self._require("label_shapes")
        return self._label_shapes

    @property
    def output_shapes(self) -> Any:
        self._require("output_shapes")
        return self._exec_group.get_output_shapes()

    # -- parameters --------------------------------------------------------------------------------------------
    @locked
    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        if not self.params_initialized:  # a loaded module has them before it is bound
            self._require("get_params", params=True)
        if self._params_dirty:
            self._sync_params_from_devices()
        return self._arg_params, self._aux_params

    @locked
    def init_params(
        self,
        initializer: Any = Uniform(0.01),
        arg_params: Mapping[str, Any] | None = None,
        aux_params: Mapping[str, Any] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        if self.params_initialized and not force_init:
            warn("Parameters already initialized and force_init=False. init_params call ignored.")
            return
        self._require("init_params")
        if initializer is not None:
            arguments.initializer_of(initializer)
        elif not allow_missing:
            # All must be given, then.
            arg_params, aux_params = ({} if given is None else given for given in (arg_params, aux_params))
        # What is given beyond the network is left out here, as in MXNet: fine-tuning scripts pass whole checkpoints.
        for needed, given, what in (
            (self._arg_params, arg_params, "arg_params"),
            (self._aux_params, aux_params, "aux_params"),
        ):
            if given is not None:
                check_params(needed, given, what, allow_missing, True)
        attrs = self._symbol.attr_dict()
        for needed, given in ((self._arg_params, arg_params), (self._aux_params, aux_params)):
            for name, target in sorted(needed.items()):
                value = None if given is None else given.get(name)
                if value is None:
                    if initializer is not None:
                        fill(initializer, InitDesc(name, attrs.get(name)), target)
                elif value is not target:
                    target[:] = value
        self.params_initialized = True
        self._params_dirty = False
        self._exec_group.set_params(self._arg_params, self._aux_params, allow_extra=allow_extra)
        self._tell_store(self._arg_params)

    @locked
    def set_params(
        self,
        arg_params: Mapping[str, Any] | None,
        aux_params: Mapping[str, Any] | None,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        if not allow_missing:
            super().set_params(arg_params, aux_params, allow_missing, force_init, allow_extra)
            return
        if self.params_initialized and not force_init:
            warn("Parameters already initialized and force_init=False. set_params call ignored.")
            return
        self._require("set_params")
        arg_params = self._without_inputs(arg_params)
        for needed, given, what in (
            (self._arg_params, arg_params, "arg_params"),
            (self._aux_params, aux_params, "aux_params"),
        ):
            check_params(needed, given, what, True, allow_extra)
        self._exec_group.set_params(arg_params or {}, aux_params or {}, allow_extra=allow_extra)
        self._tell_store(arg_params or {})
        self._params_dirty = True
        self.params_initialized = True

    def _without_inputs(self, given: Any) -> Any:
        """Parameters less arrays for inputs, which checkpoints of modules hold that did not name their labels."""
        inputs = {*self._data_names, *self._label_names, *self._state_names}
        return {n: a for n, a in given.items() if n not in inputs} if isinstance(given, Mapping) else given

    def _tell_store(self, given: Mapping[str, Any]) -> None:
        """Hand new values to a store that updates, else its next update would bring the old ones back."""
        values = [(n, given[n]) for n in self._param_names if n in given]
        if self._update_on_kvstore and values and hasattr(self._kvstore, "_replace"):
            self._kvstore._replace(values)

    def _merge_contexts(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        arg_params, aux_params = self.get_params()
        # A store that updates is not told: it has these values, or what other workers made of them since.
        self._exec_group.set_params(arg_params, aux_params)
        return arg_params, aux_params

    def _sync_params_from_devices(self) -> None:
        """Take the means over all contexts, and sparse parameters from the store, into the module's own copies."""
        self._exec_group.get_params(self._arg_params, self._aux_params)
        if self._kvstore is not None and self._update_on_kvstore:
            for name, value in sorted(self._arg_params.items()):
                if value.stype == "row_sparse":
                    rows = ndarray.arange(0, value.shape[0], dtype="int64")
                    self._kvstore.row_sparse_pull(name, value, row_ids=rows)
        self._params_dirty = False

    # -- binding -----------------------------------------------------------------------------------------------
    def _reset_bind(self) -> None:
        self.binded = False
        self._exec_group: DataParallelExecutorGroup = None  # type: ignore[assignment]  # until bound, for which `_require` asks
        self._data_shapes: list[DataDesc] = None  # type: ignore[assignment]  # until bound, for which `_require` asks
        self._label_shapes: list[DataDesc] | None = None

    @locked
    def bind(
        self,
        data_shapes: Any,
        label_shapes: Any = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: BaseModule | None = None,
        grad_req: Any = "write",
    ) -> None:
        if force_rebind:
            if self.binded and self._params_dirty:
                self._sync_params_from_devices()
            self._reset_bind()
        if self.binded:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if inputs_need_grad and not for_training:
            raise error(AssertionError, "bind: inputs_need_grad=True needs for_training=True")
        data, labels = parse_data_desc(self._data_names, self._label_names, data_shapes, label_shapes)
        shared = None
        if shared_module is not None:
            if not (isinstance(shared_module, Module) and shared_module.binded and shared_module.params_initialized):
                raise error(AssertionError, "bind: shared_module must be a Module that is bound and has parameters")
            shared = shared_module._exec_group
            if len(shared.execs) < len(self._context):
                raise error(
                    AssertionError,
                    f"bind: shared_module has {len(shared.execs)} contexts, this one {len(self._context)}",
                )
            alone = [n for n in self._param_names if n not in shared_module._arg_params]
            if alone:
                raise error(
                    ValueError,
                    f"bind: shared_module has no parameters {alone}; it has {sorted(shared_module._arg_params)}",
                )
        self._exec_group = DataParallelExecutorGroup(
            self._symbol,
            self._context,
            self._work_load_list,
            data,
            labels,
            self._param_names,
            for_training,
            inputs_need_grad,
            shared,
            logger=self.logger,
            fixed_param_names=self._fixed_param_names,
            grad_req=grad_req,
            state_names=self._state_names,
            group2ctxs=self._group2ctxs,
        )
        self.for_training, self.inputs_need_grad, self._grad_req = for_training, inputs_need_grad, grad_req
        self._data_shapes, self._label_shapes, self._bound_labels = data, labels, labels
        self.binded = True
        if shared_module is not None:
            self.params_initialized = True
            self._arg_params, self._aux_params = shared_module._arg_params, shared_module._aux_params
            self._object_lock = shared_module._object_lock  # in the memory of one there is place for one batch
        elif self.params_initialized:  # loaded, or bound before
            self._take_params()
        else:
            self._arg_params = self._own_copies(self._param_names, self._exec_group.param_arrays)
            self._aux_params = self._own_copies(self._aux_names, self._exec_group.aux_arrays)
        if shared_module is not None and shared_module.optimizer_initialized:
            self.borrow_optimizer(shared_module)

    def _take_params(self) -> None:
        """Bring in parameters that were there before binding."""
        group = self._exec_group
        # Whoever predicts may leave labels unnamed, which are then parameters that no checkpoint holds.
        labels = [] if self._label_names else labels_of(self._symbol)
        self._arg_params = self._without_inputs(self._arg_params)
        try:
            for names, arrays, given, what in (
                (self._param_names, group.param_arrays, self._arg_params, "arg_params"),
                (self._aux_names, group.aux_arrays, self._aux_params, "aux_params"),
            ):
                check_params(
                    {n: a[0] for n, a in zip(names, arrays) if n in given or n not in labels}, given, what, False, False
                )
            group.set_params(self._arg_params, self._aux_params)
        except BaseException:
            self._reset_bind()
            raise

    @staticmethod
    def _own_copies(names: Sequence[str], arrays: Sequence[Sequence[Any]]) -> dict[str, NDArray]:
        return {n: ndarray.zeros(a[0].shape, dtype=a[0].dtype, stype=a[0].stype) for n, a in zip(names, arrays)}

    @locked
    def reshape(self, data_shapes: Any, label_shapes: Any = None) -> None:
        """Prepare for batches of other shapes; parameters stay.

        Parameters
        ----------
        data_shapes, label_shapes : list of DataDesc or of (str, tuple of int)

        Raises
        ------
        MXNetError
            (also ValueError) if a parameter would change its shape; it names it. The module is then as before.
        """
        self._require("reshape")
        data, labels = parse_data_desc(self._data_names, self._label_names, data_shapes, label_shapes)
        self._adapt(data, labels)
        self._bound_labels = labels

    def _adapt(self, data: list[DataDesc], labels: list[DataDesc] | None) -> None:
        self._exec_group.reshape(data, labels)
        self._data_shapes, self._label_shapes = data, labels

    # -- the optimizer -----------------------------------------------------------------------------------------
    @locked
    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        self._require("init_optimizer", params=True)
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        if self._params_dirty:
            self._sync_params_from_devices()
        kvstore, update_on_kvstore = create_kvstore(kvstore, len(self._context), self._arg_params)
        batch_size = self._exec_group.batch_size
        if kvstore and "async" not in kvstore.type:
            batch_size *= kvstore.num_workers
        idx2name = names_of_indices(self._param_names, len(self._context), update_on_kvstore)
        optimizer = self._made_optimizer(
            optimizer, arguments.options(optimizer_params, "optimizer_params"), 1.0 / batch_size, idx2name
        )
        if kvstore:
            if self._compression_params:
                kvstore.set_gradient_compression(self._compression_params)
            if update_on_kvstore:
                kvstore.set_optimizer(optimizer)
            initialize_kvstore(
                kvstore, self._exec_group.param_arrays, self._arg_params, self._param_names, update_on_kvstore
            )
        self._optimizer, self._kvstore, self._update_on_kvstore = optimizer, kvstore, update_on_kvstore
        self._updater = None if update_on_kvstore else _updater_of(optimizer)
        self._numbered = self._param_names
        self.optimizer_initialized = True
        if self._preload_opt_states is not None:
            self.load_optimizer_states(self._preload_opt_states)
            self._preload_opt_states = None

    def _made_optimizer(
        self, given: Any, params: dict[str, Any], rescale_grad: float, idx2name: dict[int, str]
    ) -> Optimizer:
        if isinstance(given, optimizer.Optimizer):
            if given.rescale_grad != rescale_grad:
                warn(
                    "Optimizer created manually outside Module but rescale_grad is not normalized to "
                    "1.0/batch_size/num_workers "
                    f"({given.rescale_grad} vs. {rescale_grad}). Is this intended?"
                )
            if not given.idx2name:
                given.idx2name = dict(idx2name)
            return given
        if not isinstance(given, str):
            raise error(TypeError, f"optimizer must be a name or an Optimizer, got {given!r}")
        params.setdefault("rescale_grad", rescale_grad)
        made: Optimizer = optimizer.create(given, sym=self._symbol, param_idx2name=idx2name, **params)
        return made

    @locked
    def borrow_optimizer(self, shared_module: Module) -> None:
        """Use the optimizer of another module, as `bind(shared_module=…)` does.

        Parameters
        ----------
        shared_module : Module
        """
        if not isinstance(shared_module, Module):
            raise error(TypeError, f"borrow_optimizer takes a Module, got {type(shared_module).__name__}")
        if not shared_module.optimizer_initialized:
            raise error(
                AssertionError, "borrow_optimizer: the other module has no optimizer; call its init_optimizer() before"
            )
        self._optimizer, self._kvstore = shared_module._optimizer, shared_module._kvstore
        self._update_on_kvstore, self._updater = shared_module._update_on_kvstore, shared_module._updater
        # The other module's order counts: the optimizer keeps states by its numbers.
        names = shared_module._numbered
        unknown = [n for n in self._param_names if n not in names]
        if unknown:
            raise error(ValueError, f"borrow_optimizer: the other module has no parameters {unknown}; it has {names}")
        self._numbered = names
        self.optimizer_initialized = True

    # -- computing ---------------------------------------------------------------------------------------------
    @locked
    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        self._require("forward", params=True)
        self._adapt_to(data_batch)
        self._exec_group.forward(data_batch, is_train)

    def _adapt_to(self, data_batch: Any) -> None:
        """Reshape if the batch is of other shapes than the last one."""
        parts = arguments.parts_of(data_batch)
        if parts is not None:
            if not parts:
                raise error(ValueError, "forward: an empty list of batches")
            first = parts[0]
            if len(parts) != len(self._context):
                raise error(ValueError, f"forward: {len(parts)} batches for {len(self._context)} contexts")
            data = [_whole([b.data[i] for b in parts], d) for i, d in enumerate(self._data_shapes)]
            label = (
                [_whole(list(arrays), d) for arrays, d in zip(zip(*(b.label for b in parts)), self._label_shapes or ())]
                if all(b.label for b in parts)
                else None
            )
        else:
            first = data_batch
            given = getattr(data_batch, "label", None)
            for what, arrays in (("data", data_batch.data), ("label", given)):
                if lost := [a for a in arrays or () if not hasattr(a, "shape")]:
                    raise error(TypeError, f"forward: the batch has {lost[0]!r} in its {what}; arrays are needed")
            data = [tuple(a.shape) for a in data_batch.data]
            label = [tuple(a.shape) for a in given] if given else None
        if len(data) != len(self._data_shapes):
            raise error(
                ValueError,
                f"forward: the batch has {len(data)} data arrays, the module takes {len(self._data_shapes)}: "
                f"{[d.name for d in self._data_shapes]}",
            )
        now = [tuple(d.shape) for d in self._data_shapes]
        labels = self._label_shapes
        # A network bound without labels goes on without.
        bound = self._bound_labels if label is not None else None
        if now == data and not (bound and (labels is None or [tuple(d.shape) for d in labels] != label)):
            return
        if getattr(first, "provide_data", None):
            new_data = parse_data_desc(self._data_names, (), first.provide_data, ())[0]
        else:
            new_data = [_like(d, s) for d, s in zip(self._data_shapes, data)]
        new_labels = labels if now == data else None
        if bound and label is not None:
            if getattr(first, "provide_label", None):
                new_labels = parse_data_desc(
                    [d.name for d in new_data], self._label_names, new_data, first.provide_label
                )[1]
            elif len(label) != len(bound):
                raise error(
                    ValueError,
                    f"forward: the batch has {len(label)} labels, the module was bound with {[d.name for d in bound]}",
                )
            else:
                new_labels = [_like(d, s) for d, s in zip(bound, label)]
        self._adapt(new_data, new_labels)

    @locked
    def backward(self, out_grads: Any = None) -> None:
        self._require("backward", params=True)
        self._exec_group.backward(out_grads=out_grads)

    @locked
    def update(self) -> None:
        self._require("update", params=True, optimizer=True)
        group = self._exec_group
        if group.grad_arrays is None:
            raise error(
                AssertionError, "update: the module was bound with for_training=False; bind it again for training"
            )
        self._params_dirty = True
        if self._update_on_kvstore:
            update_params_on_kvstore(group.param_arrays, group.grad_arrays, self._kvstore, self._param_names)
        else:
            numbers = None
            if self._numbered is not self._param_names:
                number = {n: i for i, n in enumerate(self._numbered)}
                numbers = [number[n] for n in self._param_names]
            update_params(
                group.param_arrays,
                group.grad_arrays,
                self._updater,
                len(self._context),
                self._kvstore,
                self._param_names,
                numbers,
            )

    @locked
    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        self._require("get_outputs", params=True)
        return self._exec_group.get_outputs(merge_multi_context=merge_multi_context)

    @locked
    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        self._require("get_input_grads", params=True, input_grads=True)
        return self._exec_group.get_input_grads(merge_multi_context=merge_multi_context)

    @locked
    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        self._require("get_states", params=True)
        return self._exec_group.get_states(merge_multi_context=merge_multi_context)

    @locked
    def set_states(self, states: Any = None, value: float | None = None) -> None:
        self._require("set_states", params=True)
        self._exec_group.set_states(states, value)

    @locked
    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        self._require("update_metric", params=True)
        self._exec_group.update_metric(eval_metric, labels, pre_sliced)

    @locked
    def install_monitor(self, mon: Any) -> None:
        self._require("install_monitor")
        self._exec_group.install_monitor(mon)

    @locked
    def prepare(self, data_batch: Any, sparse_row_id_fn: Callable[[Any], dict[str, Any]] | None = None) -> None:
        self._require("prepare")
        if sparse_row_id_fn is None:
            return
        if not self._kvstore or not self._update_on_kvstore:
            warn("Parameters are not updated in the KVStore. No need to call sparse_row_id_fn.")
            return
        row_ids = sparse_row_id_fn(data_batch)
        if not isinstance(row_ids, dict):
            raise error(
                TypeError,
                f"sparse_row_id_fn must return a dict of parameter name to row numbers, got {type(row_ids).__name__}",
            )
        for name, rows in row_ids.items():
            if name not in self._param_names:
                raise error(
                    ValueError, f"sparse_row_id_fn names {name!r}, which is no parameter; there are {self._param_names}"
                )
            self._kvstore.row_sparse_pull(
                name, self._exec_group.param_arrays[self._param_names.index(name)], row_ids=rows
            )


#: Beside the module `optimizer`, whose name arguments take.
_updater_of = optimizer.get_updater


def _like(desc: DataDesc, shape: tuple[int, ...]) -> DataDesc:
    return DataDesc(desc.name, shape, desc.dtype, desc.layout)


def _whole(parts: Sequence[Any], desc: DataDesc) -> tuple[int, ...]:
    """The shape of an array that comes in parts."""
    shape, axis = list(parts[0].shape), DataDesc.get_batch_axis(desc.layout)
    if axis >= 0:
        shape[axis] = sum(p.shape[axis] for p in parts)
    return tuple(shape)
