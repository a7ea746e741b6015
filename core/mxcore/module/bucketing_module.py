"""`BucketingModule`: one module for each length of input, all with the same parameters and memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import ndarray
from .. import symbol as _symbol
from .._io_files import remove
from .._locks import locked
from ..base import error
from ..drafts import read_pair, settle, together
from ..initializer import Uniform
from ..model import checkpoint_file, load_params
from ..name import NameManager
from ..ndarray import NDArray
from ..symbol import Symbol
from ..urls import appended
from . import arguments
from .base_module import BaseModule
from .module import Module
from .names import as_list, check_input_names

__all__ = ["BucketingModule"]


def _read_keys(path: str) -> list[int]:
    """The bucket keys of a checkpoint; none where it has no file of them."""
    try:
        arrays = ndarray.load(path)
    except FileNotFoundError:
        return []
    keys = arrays[0].asnumpy() if arrays and isinstance(arrays, list) else np.empty(())
    if keys.ndim != 1 or not np.isfinite(keys).all() or (keys % 1).any():
        raise error(
            ValueError, f"{path!r} holds no bucket keys: an array of one dimension, of whole numbers, is needed"
        )
    return [int(k) for k in keys]


class BucketingModule(BaseModule):
    """A module whose symbol depends on the batch: a *bucket key*, such as the length of its sentences.

    Parameters
    ----------
    sym_gen : callable
        Bucket key -> (symbol, data_names, label_names).
    default_bucket_key : object
        The key whose symbol is bound first: the largest, whose memory then serves all.
    logger, context, work_load_list, fixed_param_names, state_names, group2ctxs, compression_params
        As for `Module`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.mod.BucketingModule``. Bucket keys of checkpoints may also be tuples or strings;
    a batch without `provide_data` is described by its arrays.

    Examples
    --------
    >>> import mxcore as mx
    >>> def sym_gen(length):
    ...     net = mx.sym.sum(mx.sym.Variable("data"), axis=1, keepdims=True)
    ...     net = mx.sym.FullyConnected(net, num_hidden=2, name="fc")
    ...     return mx.sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)
    >>> mod = mx.mod.BucketingModule(sym_gen, default_bucket_key=10)
    >>> mod.bind([("data", (4, 10))], [("softmax_label", (4,))])
    >>> mod.init_params()
    >>> mod.forward(mx.io.DataBatch([mx.nd.ones((4, 7))], [mx.nd.ones(4)], bucket_key=7))
    >>> mod.get_outputs()[0].shape
    (4, 2)
    """

    def __init__(
        self,
        sym_gen: Callable[[Any], tuple[Any, Any, Any]],
        default_bucket_key: Any = None,
        logger: Any = logging,
        context: Any = None,
        work_load_list: Any = None,
        fixed_param_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
        compression_params: Any = None,
    ) -> None:
        super().__init__(logger)
        if default_bucket_key is None:
            raise error(AssertionError, "BucketingModule needs a default_bucket_key: the one of the largest bucket")
        if not callable(sym_gen) or isinstance(sym_gen, _symbol.Symbol):
            raise error(
                TypeError,
                "sym_gen must be a function of the bucket key that returns (symbol, data_names, label_names), got "
                f"{type(sym_gen).__name__}",
            )
        self._sym_gen, self._default_bucket_key = sym_gen, default_bucket_key
        self._fixed_param_names, self._state_names = (
            arguments.names(n, what)
            for n, what in ((fixed_param_names, "fixed_param_names"), (state_names, "state_names"))
        )
        self._options = dict(
            logger=logger,
            context=context,
            work_load_list=work_load_list,
            group2ctxs=group2ctxs,
            compression_params=compression_params,
            fixed_param_names=self._fixed_param_names,
            state_names=self._state_names,
        )
        symbol, data, labels = self._call_sym_gen(default_bucket_key)
        for names, kind, throw in (
            (data, "data", True),
            (labels, "label", False),
            (self._state_names, "state", True),
            (self._fixed_param_names, "fixed_param", True),
        ):
            check_input_names(symbol, list(names or ()), kind, throw)
        self._reserved: set[bool] = set()  # modes of running for which the default bucket has its memory
        self._curr_module: Module
        self._curr_bucket_key: Any
        self._reset_bind()
        self._params_dirty = False
        self._monitors: list[Any] = []
        self._grad_req: Any = None

    def _call_sym_gen(self, bucket_key: Any) -> tuple[Symbol, Any, Any]:
        with NameManager():  # what has no name is called alike in every bucket
            made = self._sym_gen(bucket_key)
        if not isinstance(made, (list, tuple)) or len(made) != 3:
            raise error(
                TypeError, f"sym_gen({bucket_key!r}) must return (symbol, data_names, label_names), got {made!r}"
            )
        return made

    def _make(self, bucket_key: Any) -> Module:
        symbol, data_names, label_names = self._call_sym_gen(bucket_key)
        return Module(symbol, data_names, label_names, **self._options)

    # -- checkpoints -------------------------------------------------------------------------------------------
    @locked
    def save_checkpoint(self, prefix: str, epoch: int, remove_amp_cast: bool = False) -> None:
        """Write the parameters, and the symbol of each bucket that was used; all are replaced together.

        Parameters
        ----------
        prefix : str
        epoch : int
        remove_amp_cast : bool
            Leave out the casts of automatic mixed precision.
        """
        if not self._buckets:
            raise error(AssertionError, "save_checkpoint: no bucket was bound yet; call bind() before")
        keys = list(self._buckets)
        params, numbers = checkpoint_file(prefix, epoch), appended(prefix, ".buckets")
        graphs = {key: appended(prefix, f"-{key}-symbol.json") for key in keys}
        whole = all(isinstance(k, (int, np.integer)) for k in keys)  # MXNet's file has room for integers only
        with together(params, *graphs.values(), numbers):
            self.save_params(params)
            for key, graph in graphs.items():
                self._buckets[key].symbol.save(graph, remove_amp_cast=remove_amp_cast)
            if whole:
                ndarray.save(numbers, ndarray.array(np.array(keys, np.int32), dtype="int32"))
        if not whole:
            remove(numbers)  # of an older checkpoint, whose graphs are not these

    @staticmethod
    def load(
        prefix: str,
        epoch: int,
        sym_gen: Callable[[Any], tuple[Any, Any, Any]] | None = None,
        default_bucket_key: Any = None,
        **kwargs: Any,
    ) -> BucketingModule:
        """Make a module of a checkpoint.

        Parameters
        ----------
        prefix : str
        epoch : int
        sym_gen : callable
        default_bucket_key : object
        **kwargs
            Further arguments of `BucketingModule`.

        Returns
        -------
        BucketingModule
            Not bound yet.
        """
        if sym_gen is None:
            raise error(AssertionError, "sym_gen is required for loading BucketingModule")
        mod = BucketingModule(sym_gen, default_bucket_key, **kwargs)
        arrays = checkpoint_file(prefix, epoch)

        def read(buckets: str) -> tuple[Any, ...]:
            graphs = {k: settle(appended(prefix, f"-{k}-symbol.json"), arrays) for k in _read_keys(buckets)}
            return {k: _symbol.load(graph) for k, graph in graphs.items()}, *load_params(prefix, epoch)

        mod._adopt(*read_pair(appended(prefix, ".buckets"), arrays, read))
        return mod

    @staticmethod
    def load_dict(
        sym_dict: Mapping[Any, Symbol] | None = None,
        sym_gen: Callable[[Any], tuple[Any, Any, Any]] | None = None,
        default_bucket_key: Any = None,
        arg_params: Mapping[str, Any] | None = None,
        aux_params: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> BucketingModule:
        """Make a module of symbols and parameters.

        Parameters
        ----------
        sym_dict : dict of bucket key to Symbol
        sym_gen : callable
        default_bucket_key : object
        arg_params, aux_params : dict of str to NDArray
        **kwargs
            Further arguments of `BucketingModule`.

        Returns
        -------
        BucketingModule
            Not bound yet.
        """
        for name, value in (("sym_dict", sym_dict), ("arg_params", arg_params), ("aux_params", aux_params)):
            if value is None:
                raise error(AssertionError, f"{name} is required for loading BucketingModule")
        if sym_gen is None:
            raise error(AssertionError, "sym_gen is required for loading BucketingModule")
        mod = BucketingModule(sym_gen, default_bucket_key, **kwargs)
        mod._adopt(sym_dict, arg_params, aux_params)
        return mod

    def _adopt(self, symbols: Any, arg_params: Any, aux_params: Any) -> None:
        """Take over symbols by bucket key, in the place of what sym_gen would make, and parameters."""
        own = self._sym_gen

        def sym_gen(key: Any) -> tuple[Symbol, Any, Any]:
            symbol, data_names, label_names = own(key)
            return symbols.get(key, symbol), data_names, label_names

        self._sym_gen = sym_gen
        for key in {*symbols, self._default_bucket_key}:
            self._buckets[key] = self._make(key)
        self._curr_module, self._curr_bucket_key = self._buckets[self._default_bucket_key], self._default_bucket_key
        self._curr_module._arg_params, self._curr_module._aux_params = arg_params, aux_params
        self._curr_module.params_initialized = True
        self.params_initialized = True

    # -- descriptions ------------------------------------------------------------------------------------------
    @property
    def data_names(self) -> Any:
        return self._curr_module.data_names if self.binded else self._call_sym_gen(self._default_bucket_key)[1]

    @property
    def output_names(self) -> Any:
        return (
            self._curr_module.output_names
            if self.binded
            else self._call_sym_gen(self._default_bucket_key)[0].list_outputs()
        )

    @property
    def data_shapes(self) -> Any:
        self._require("data_shapes")
        return self._curr_module.data_shapes

    @property
    def label_shapes(self) -> Any:
        self._require("label_shapes")
        return self._curr_module.label_shapes

    @property
    def output_shapes(self) -> Any:
        self._require("output_shapes")
        return self._curr_module.output_shapes

    @property
    def symbol(self) -> Any:
        self._require("symbol")
        return self._curr_module.symbol

    # -- parameters: those of the default bucket, whose arrays the others use ----------------------------------
    @property
    def _default(self) -> Module:
        return self._buckets[self._default_bucket_key]

    @locked
    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        if not self.params_initialized:
            self._require("get_params", params=True)
        self._default._params_dirty = self._params_dirty
        found: tuple[dict[str, NDArray], dict[str, NDArray]] = self._default.get_params()
        self._params_dirty = False
        return found

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
            self._default.init_params(force_init=False)  # which warns
            return
        self._require("init_params")
        self._default.init_params(
            initializer=initializer,
            arg_params=arg_params,
            aux_params=aux_params,
            allow_missing=allow_missing,
            force_init=force_init,
            allow_extra=allow_extra,
        )
        self._params_dirty = False
        self.params_initialized = True

    @locked
    def set_params(
        self,
        arg_params: Mapping[str, Any] | None,
        aux_params: Mapping[str, Any] | None,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        self._require("set_params")
        was = self.params_initialized
        self._default.set_params(
            arg_params, aux_params, allow_missing=allow_missing, force_init=force_init, allow_extra=allow_extra
        )
        if force_init or not was:
            self._params_dirty = self._default._params_dirty
        self.params_initialized = True

    def _merge_contexts(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        arg_params, aux_params = self.get_params()
        self._default._merge_contexts()
        return arg_params, aux_params

    @locked
    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        self._require("get_states", params=True)
        return self._curr_module.get_states(merge_multi_context=merge_multi_context)

    @locked
    def set_states(self, states: Any = None, value: float | None = None) -> None:
        self._require("set_states", params=True)
        self._curr_module.set_states(states, value)

    # -- binding -----------------------------------------------------------------------------------------------
    def _reset_bind(self) -> None:
        self.binded = False
        self._buckets: dict[Any, Module] = {}
        self._curr_module = None  # type: ignore[assignment]  # until bound, for which `_require` asks
        self._curr_bucket_key = None

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
        if shared_module is not None:
            raise error(AssertionError, "bind: a BucketingModule shares among its buckets, not with another module")
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        kept = self.get_params() if self.params_initialized else None
        old = self._default if self.optimizer_initialized else None
        if force_rebind:
            self._reset_bind()
        module = self._make(self._default_bucket_key)
        module.bind(
            data_shapes,
            label_shapes,
            for_training,
            inputs_need_grad,
            force_rebind=False,
            shared_module=None,
            grad_req=grad_req,
        )
        if kept is not None:
            module.set_params(*kept)
        for mon in self._monitors:
            module.install_monitor(mon)
        self._curr_module, self._curr_bucket_key = module, self._default_bucket_key
        self._buckets = {self._default_bucket_key: module}
        self._reserved = set()
        self.for_training, self.inputs_need_grad, self._grad_req = for_training, inputs_need_grad, grad_req
        self._params_dirty = False
        self.binded = True
        if old is not None:
            module.borrow_optimizer(old)

    @locked
    def switch_bucket(self, bucket_key: Any, data_shapes: Any, label_shapes: Any = None) -> None:
        """Go on with the module of a bucket, which is made if it is new.

        Parameters
        ----------
        bucket_key : object
        data_shapes, label_shapes : list of DataDesc or of (str, tuple of int)
        """
        self._require("switch_bucket", params=True)
        module = self._buckets.get(bucket_key)
        if module is None:
            module = self._make(bucket_key)
            module.bind(
                data_shapes,
                label_shapes,
                self.for_training,
                self.inputs_need_grad,
                force_rebind=False,
                shared_module=self._default,
                grad_req=self._grad_req,
            )
            for mon in self._monitors:
                module.install_monitor(mon)
            self._buckets[bucket_key] = module
        self._curr_module, self._curr_bucket_key = module, bucket_key

    def _switch_for(self, data_batch: Any) -> None:
        key = getattr(data_batch, "bucket_key", None)
        key = self._default_bucket_key if key is None else key
        default = self._default
        data, labels = getattr(data_batch, "provide_data", None), getattr(data_batch, "provide_label", None)
        if data is None:
            data = [(d.name, a.shape, d.dtype, d.layout) for d, a in zip(default.data_shapes, data_batch.data)]
            given = getattr(data_batch, "label", None)
            if given and default.label_shapes:
                labels = [(d.name, a.shape, d.dtype, d.layout) for d, a in zip(default.label_shapes, given)]
        self.switch_bucket(key, data, labels)

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
            self.logger.warning("optimizer already initialized, ignoring.")
            return
        default = self._default
        default._params_dirty = self._params_dirty
        default.init_optimizer(kvstore, optimizer, optimizer_params, force_init=force_init)
        self._params_dirty = default._params_dirty
        for module in self._buckets.values():
            if module is not default:
                module.borrow_optimizer(default)
        self.optimizer_initialized = True

    # -- computing ---------------------------------------------------------------------------------------------
    @locked
    def prepare(self, data_batch: Any, sparse_row_id_fn: Callable[[Any], dict[str, Any]] | None = None) -> None:
        self._require("prepare", params=True)
        before = self._curr_module, self._curr_bucket_key
        self._switch_for(data_batch)
        try:
            self._curr_module.prepare(data_batch, sparse_row_id_fn=sparse_row_id_fn)
        finally:  # the outputs of the last batch may still be asked for
            self._curr_module, self._curr_bucket_key = before

    @locked
    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        self._require("forward", params=True)
        self._switch_for(data_batch)
        train = self.for_training if is_train is None else bool(is_train)
        if train not in self._reserved:  # the largest bucket first, or each larger one would make memory of its own
            self._default._exec_group.reserve(train)
            self._reserved.add(train)
        self._curr_module.forward(data_batch, is_train=is_train)

    @locked
    def backward(self, out_grads: Any = None) -> None:
        self._require("backward", params=True)
        self._curr_module.backward(out_grads=out_grads)

    @locked
    def update(self) -> None:
        self._require("update", params=True, optimizer=True)
        self._params_dirty = True
        self._curr_module.update()

    @locked
    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        self._require("get_outputs", params=True)
        return self._curr_module.get_outputs(merge_multi_context=merge_multi_context)

    @locked
    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        self._require("get_input_grads", params=True, input_grads=True)
        return self._curr_module.get_input_grads(merge_multi_context=merge_multi_context)

    @locked
    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        self._require("update_metric", params=True)
        self._curr_module.update_metric(eval_metric, labels, pre_sliced)

    @locked
    def install_monitor(self, mon: Any) -> None:
        self._require("install_monitor")
        for one in as_list(mon):
            self._monitors.append(one)
            for module in self._buckets.values():
                module.install_monitor(one)
