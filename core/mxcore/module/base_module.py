"""`BaseModule`: what all modules have in common, above all `fit`, `score` and `predict`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .. import metric, ndarray
from .._locks import ObjectLock, locked
from ..base import error
from ..initializer import Uniform
from ..io import DataBatch, DataIter
from ..model import BatchEndParam
from ..ndarray import NDArray
from . import arguments
from .names import check_input_names as _check_input_names  # noqa: F401 (what derived modules import from here)
from .names import check_names_match as _check_names_match  # noqa: F401
from .names import parse_data_desc as _parse_data_desc  # noqa: F401

__all__ = ["BaseModule", "BatchEndParam", "Uniform"]


class BaseModule:
    """A computation with data, labels, outputs and perhaps parameters.

    A module is *bound* to shapes (`bind`), its parameters are *initialised* (`init_params`) and so is its optimizer
    (`init_optimizer`); `fit` does all three. Then `forward`, `backward` and `update` are the steps of training.

    Parameters
    ----------
    logger : Logger

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.mod.BaseModule``. Subclasses define what is said to be theirs below.

    Examples
    --------
    The steps that `fit` takes, one by one:

    >>> import mxcore as mx
    >>> net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2), name="softmax")
    >>> mod = mx.mod.Module(net)
    >>> isinstance(mod, mx.mod.BaseModule)
    True
    >>> mod.bind([("data", (4, 3))], [("softmax_label", (4,))])
    >>> mod.init_params()
    >>> mod.init_optimizer(optimizer="sgd")
    >>> mod.forward_backward(mx.io.DataBatch([mx.nd.ones((4, 3))], [mx.nd.zeros(4)]))
    >>> mod.update()
    >>> mod.get_outputs()[0].shape
    (4, 2)
    """

    def __init__(self, logger: Any = logging) -> None:
        self.logger = logger
        self.binded = False
        self.for_training = False
        self.inputs_need_grad = False
        self.params_initialized = False
        self.optimizer_initialized = False
        self._symbol: Any = None
        self._total_exec_bytes = 0
        #: Held while a batch goes through: threads may share a module to predict, score or fit.
        self._object_lock = ObjectLock()

    @locked
    def _require(self, what: str, *, params: bool = False, optimizer: Any = False, input_grads: bool = False) -> None:
        """Refuse `what` in a state where it makes no sense, saying what to call first."""
        for needed, there, call in (
            (True, self.binded, "bind()"),
            (params, self.params_initialized, "init_params() or set_params()"),
            (optimizer, self.optimizer_initialized, "init_optimizer()"),
            (input_grads, self.inputs_need_grad, "bind(inputs_need_grad=True)"),
        ):
            if needed and not there:
                raise error(AssertionError, f"{type(self).__name__}.{what}: call {call} before")

    # -- the high-level interface ------------------------------------------------------------------------------
    @locked
    def forward_backward(self, data_batch: Any) -> None:
        """Run `forward` for training and `backward`.

        Parameters
        ----------
        data_batch : DataBatch
        """
        self.forward(data_batch, is_train=True)
        self.backward()

    def score(
        self,
        eval_data: Any,
        eval_metric: Any,
        num_batch: int | None = None,
        batch_end_callback: Any = None,
        score_end_callback: Any = None,
        reset: bool = True,
        epoch: int = 0,
        sparse_row_id_fn: Callable[[Any], dict[str, Any]] | None = None,
    ) -> list[tuple[str, float]]:
        """Measure the outputs on a data set.

        Parameters
        ----------
        eval_data : DataIter
        eval_metric : EvalMetric, str or list
            What to measure.
        num_batch : int, optional
            Take so many batches only.
        batch_end_callback, score_end_callback : callable or list of callable, optional
            Called with a `BatchEndParam`, after each batch and at the end.
        reset : bool
            Reset `eval_data` first.
        epoch : int
            For the callbacks.
        sparse_row_id_fn : callable, optional
            See `prepare`.

        Returns
        -------
        list of (str, float)

        Raises
        ------
        MXNetError
            (also ValueError) if the metric does not fit the outputs and labels; it names both.
        """
        self._require("score", params=True)
        arguments.data_source(eval_data, "eval_data", *["reset"] * reset)
        batch_end_callback = arguments.callbacks(batch_end_callback, "batch_end_callback")
        score_end_callback = arguments.callbacks(score_end_callback, "score_end_callback")
        if reset:
            eval_data.reset()
        if not isinstance(eval_metric, metric.EvalMetric):
            eval_metric = metric.create(eval_metric)
        eval_metric.reset()
        actual_num_batch = 0
        for nbatch, eval_batch in enumerate(eval_data):
            if num_batch is not None and nbatch == num_batch:
                break
            with self._object_lock:
                self.prepare(eval_batch, sparse_row_id_fn=sparse_row_id_fn)
                self.forward(eval_batch, is_train=False)
                self._measure(eval_metric, eval_batch)
            if batch_end_callback:
                batch_end_params = BatchEndParam(epoch=epoch, nbatch=nbatch, eval_metric=eval_metric, locals=locals())
                for callback in batch_end_callback:
                    callback(batch_end_params)
            actual_num_batch += 1
        if score_end_callback:
            params = BatchEndParam(epoch=epoch, nbatch=actual_num_batch, eval_metric=eval_metric, locals=locals())
            for callback in score_end_callback:
                callback(params)
        found: list[tuple[str, float]] = eval_metric.get_global_name_value()
        return found

    def _measure(self, eval_metric: Any, batch: Any) -> None:
        if isinstance(batch, list):
            self.update_metric(eval_metric, [b.label for b in batch], pre_sliced=True)
        else:
            self.update_metric(eval_metric, batch.label)

    def iter_predict(
        self,
        eval_data: Any,
        num_batch: int | None = None,
        reset: bool = True,
        sparse_row_id_fn: Callable[[Any], dict[str, Any]] | None = None,
    ) -> Iterator[tuple[list[NDArray], int, Any]]:
        """Predict batch by batch.

        Parameters
        ----------
        eval_data : DataIter
        num_batch : int, optional
            Take so many batches only.
        reset : bool
            Reset `eval_data` first.
        sparse_row_id_fn : callable, optional
            See `prepare`.

        Yields
        ------
        outputs : list of NDArray
            Without padding.
        nbatch : int
        batch : DataBatch
        """
        self._require("iter_predict", params=True)
        arguments.data_source(eval_data, "eval_data", *["reset"] * reset)
        if reset:
            eval_data.reset()
        for nbatch, eval_batch in enumerate(eval_data):
            if num_batch is not None and nbatch == num_batch:
                break
            with self._object_lock:
                self.prepare(eval_batch, sparse_row_id_fn=sparse_row_id_fn)
                self.forward(eval_batch, is_train=False)
                pad = eval_batch.pad or 0
                outputs = [out[: out.shape[0] - pad].copy() for out in self.get_outputs()]
            yield outputs, nbatch, eval_batch

    def predict(
        self,
        eval_data: Any,
        num_batch: int | None = None,
        merge_batches: bool = True,
        reset: bool = True,
        always_output_list: bool = False,
        sparse_row_id_fn: Callable[[Any], dict[str, Any]] | None = None,
    ) -> Any:
        """Predict a data set, or one batch given as an array.

        Parameters
        ----------
        eval_data : DataIter, NDArray or numpy.ndarray
        num_batch : int, optional
            Take so many batches only.
        merge_batches : bool
            Put the outputs of all batches together; else return a list of lists.
        reset : bool
            Reset `eval_data` first.
        always_output_list : bool
            Return a list also of a single output.
        sparse_row_id_fn : callable, optional
            See `prepare`.

        Returns
        -------
        NDArray, list of NDArray, or list of list of NDArray

        Raises
        ------
        MXNetError
            (also ValueError) if batches differ in their number of outputs and are to be merged.
        """
        self._require("predict", params=True)
        if isinstance(eval_data, (ndarray.NDArray, np.ndarray)):
            if isinstance(eval_data, np.ndarray):
                eval_data = ndarray.array(eval_data)
            with self._object_lock:
                self.forward(DataBatch([eval_data]), is_train=False)
                return self.get_outputs()[0].copy()
        if not isinstance(eval_data, DataIter):
            raise error(
                ValueError, f"predict takes a DataIter, an NDArray or a numpy.ndarray, got {type(eval_data).__name__}"
            )
        batches = [outputs for outputs, _, _ in self.iter_predict(eval_data, num_batch, reset, sparse_row_id_fn)]
        if not batches or not merge_batches:
            return batches
        counts = {len(outputs) for outputs in batches}
        if len(counts) > 1:
            raise error(
                ValueError,
                f"predict: batches have {sorted(counts)} outputs and cannot be merged; pass merge_batches=False",
            )
        merged = [ndarray.concatenate(parts) for parts in zip(*batches)]
        return merged[0] if len(merged) == 1 and not always_output_list else merged

    def fit(
        self,
        train_data: Any,
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Any = None,
        batch_end_callback: Any = None,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        eval_end_callback: Any = None,
        eval_batch_end_callback: Any = None,
        initializer: Any = Uniform(0.01),
        arg_params: Mapping[str, Any] | None = None,
        aux_params: Mapping[str, Any] | None = None,
        allow_missing: bool = False,
        force_rebind: bool = False,
        force_init: bool = False,
        begin_epoch: int = 0,
        num_epoch: int | None = None,
        validation_metric: Any = None,
        monitor: Any = None,
        sparse_row_id_fn: Callable[[Any], dict[str, Any]] | None = None,
    ) -> None:
        """Bind, initialise and train.

        Parameters
        ----------
        train_data : DataIter
        eval_data : DataIter, optional
            Scored after each epoch.
        eval_metric, validation_metric : EvalMetric, str or list
            Measured on `train_data` and on `eval_data`; the same unless told.
        epoch_end_callback : callable or list of callable, optional
            Called after each epoch with (epoch, symbol, arg_params, aux_params).
        batch_end_callback, eval_end_callback, eval_batch_end_callback : callable or list of callable, optional
            Called with a `BatchEndParam`.
        kvstore, optimizer, optimizer_params
            See `init_optimizer`.
        initializer, arg_params, aux_params, allow_missing, force_init
            See `init_params`.
        force_rebind : bool
            Bind anew where the module is bound already.
        begin_epoch, num_epoch : int
            From which epoch to which; `num_epoch` is needed.
        monitor : Monitor, optional
        sparse_row_id_fn : callable, optional
            See `prepare`.

        Raises
        ------
        MXNetError
            (also ValueError, TypeError, …) if data, labels, metric, parameters and network do not fit. What a callback
            raises is passed on; the module can be used on from where it was.

        Examples
        --------
        >>> import mxcore as mx
        >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1)
        >>> net = mx.sym.LinearRegressionOutput(net, name="lin")
        >>> it = mx.io.NDArrayIter(mx.nd.ones((4, 1)), mx.nd.ones((4, 1)), 4, label_name="lin_label")
        >>> mod = mx.mod.Module(net, label_names=["lin_label"])
        >>> mod.fit(it, num_epoch=50, eval_metric="mse", optimizer_params={"learning_rate": 0.3})
        >>> mod.score(it, "mse")[0][1] < 1e-6
        True
        """
        arguments.epochs(begin_epoch, num_epoch)
        arguments.data_source(train_data, "train_data", "provide_data", "provide_label", "reset")
        if eval_data is not None:
            arguments.data_source(eval_data, "eval_data", "reset")
        batch_end_callback = arguments.callbacks(batch_end_callback, "batch_end_callback")
        epoch_end_callback = arguments.callbacks(epoch_end_callback, "epoch_end_callback")
        eval_end_callback = arguments.callbacks(eval_end_callback, "eval_end_callback")
        eval_batch_end_callback = arguments.callbacks(eval_batch_end_callback, "eval_batch_end_callback")
        self.bind(
            data_shapes=train_data.provide_data,
            label_shapes=train_data.provide_label,
            for_training=True,
            force_rebind=force_rebind,
        )
        if monitor is not None:
            self.install_monitor(monitor)
        if force_init or not self.params_initialized or arg_params or aux_params:
            self.init_params(
                initializer=initializer,
                arg_params=arg_params,
                aux_params=aux_params,
                allow_missing=allow_missing,
                force_init=force_init,
            )
        self.init_optimizer(kvstore=kvstore, optimizer=optimizer, optimizer_params=optimizer_params)
        if validation_metric is None:
            validation_metric = eval_metric
        if not isinstance(eval_metric, metric.EvalMetric):
            eval_metric = metric.create(eval_metric)

        for epoch in arguments.epochs(begin_epoch, num_epoch):
            tic = time.time()
            eval_metric.reset()
            nbatch = 0
            data_iter = iter(train_data)
            end_of_batch = False
            next_data_batch = next(data_iter, None)
            if next_data_batch is None:  # left at its end by whoever used it before
                train_data.reset()
                data_iter = iter(train_data)
                next_data_batch = next(data_iter, None)
            if next_data_batch is None:
                raise error(ValueError, f"fit: train_data has no batch for epoch {epoch}, nor after reset()")
            while not end_of_batch:
                data_batch = next_data_batch
                if monitor is not None:
                    monitor.tic()
                with self._object_lock:
                    self.forward_backward(data_batch)
                    self.update()
                    self._measure(eval_metric, data_batch)
                next_data_batch = next(data_iter, None)
                end_of_batch = next_data_batch is None
                if not end_of_batch:
                    with self._object_lock:
                        self.prepare(next_data_batch, sparse_row_id_fn=sparse_row_id_fn)
                if monitor is not None:
                    monitor.toc_print()
                if end_of_batch:
                    eval_name_vals = eval_metric.get_global_name_value()
                if batch_end_callback:
                    batch_end_params = BatchEndParam(
                        epoch=epoch, nbatch=nbatch, eval_metric=eval_metric, locals=locals()
                    )
                    for callback in batch_end_callback:
                        callback(batch_end_params)
                nbatch += 1

            for name, val in eval_name_vals:
                self.logger.info("Epoch[%d] Train-%s=%f", epoch, name, val)
            toc = time.time()
            self.logger.info("Epoch[%d] Time cost=%.3f", epoch, toc - tic)
            # Contexts may have drifted apart (batch statistics); all go on from the means.
            with self._object_lock:
                arg_params, aux_params = self._merge_contexts()
            for callback in epoch_end_callback:
                callback(epoch, self.symbol, arg_params, aux_params)
            if eval_data is not None:
                res = self.score(
                    eval_data,
                    validation_metric,
                    score_end_callback=eval_end_callback,
                    batch_end_callback=eval_batch_end_callback,
                    epoch=epoch,
                )
                for name, val in res:
                    self.logger.info("Epoch[%d] Validation-%s=%f", epoch, name, val)
            train_data.reset()

    def _merge_contexts(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Let all contexts go on from the means of what they have; these are returned."""
        arg_params, aux_params = self.get_params()
        self.set_params(arg_params, aux_params)
        return arg_params, aux_params

    # -- what subclasses tell ----------------------------------------------------------------------------------
    def _absent(self, what: str) -> Exception:
        return error(NotImplementedError, f"{type(self).__name__} does not define {what}, which every module must")

    @property
    def data_names(self) -> list[str]:
        """Names of the data, list of str."""
        raise self._absent("data_names")

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs, list of str."""
        raise self._absent("output_names")

    @property
    def data_shapes(self) -> Any:
        """Descriptions of the data, list of DataDesc or (str, tuple)."""
        raise self._absent("data_shapes")

    @property
    def label_shapes(self) -> Any:
        """Descriptions of the labels, or None."""
        raise self._absent("label_shapes")

    @property
    def output_shapes(self) -> Any:
        """Names and shapes of the outputs, list of (str, tuple of int)."""
        raise self._absent("output_shapes")

    @property
    def symbol(self) -> Any:
        """The symbol, or None for a module that has none."""
        return self._symbol

    # -- parameters --------------------------------------------------------------------------------------------
    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Parameters and auxiliary states: two dicts of str to NDArray."""
        raise self._absent("get_params()")

    def init_params(
        self,
        initializer: Any = Uniform(0.01),
        arg_params: Mapping[str, Any] | None = None,
        aux_params: Mapping[str, Any] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Give parameters their first values.

        Parameters
        ----------
        initializer : Initializer, optional
            For parameters that are not given.
        arg_params, aux_params : dict of str to NDArray, optional
            Given ones.
        allow_missing : bool
            Initialise what `arg_params` lacks; else that is an error.
        force_init : bool
            Also where they have values already; else the call is ignored with a warning.
        allow_extra : bool
            Leave out what the network does not have.

        Raises
        ------
        MXNetError
            (also RuntimeError for missing ones, ValueError for shapes) with all names and shapes that differ.
        """
        raise self._absent("init_params()")

    def set_params(
        self,
        arg_params: Mapping[str, Any] | None,
        aux_params: Mapping[str, Any] | None,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Give parameters new values.

        Parameters
        ----------
        arg_params, aux_params : dict of str to NDArray
        allow_missing : bool
            Leave as they are what the dicts lack; else that is an error.
        force_init : bool
            Also where they have values already, which is the rule here.
        allow_extra : bool
            With `allow_missing`: leave out what the network does not have; else that is an error.

        Raises
        ------
        MXNetError
            As `init_params`.
        """
        self.init_params(
            initializer=None,
            arg_params=arg_params,
            aux_params=aux_params,
            allow_missing=allow_missing,
            force_init=force_init,
            allow_extra=allow_extra,
        )

    @locked
    def save_params(self, fname: str) -> None:
        """Write parameters to a file, whole or not at all.

        Parameters
        ----------
        fname : str
        """
        ndarray.save(fname, self._named_params())

    def _named_params(self) -> dict[str, NDArray]:
        """The parameters under the names that they have in files."""
        arg_params, aux_params = self.get_params()
        return {**{f"arg:{k}": v for k, v in arg_params.items()}, **{f"aux:{k}": v for k, v in aux_params.items()}}

    @locked
    def load_params(self, fname: str) -> None:
        """Read parameters from a file.

        Parameters
        ----------
        fname : str

        Raises
        ------
        MXNetError
            If the file holds something else, or they are not of this network: then with the names and shapes that
            differ.
        """
        from ..model import read_params

        arg_params, aux_params = read_params(fname)
        self.set_params(arg_params, aux_params)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """States; none unless a subclass has them.

        Parameters
        ----------
        merge_multi_context : bool
            Put the parts of all contexts together; else give for each state a list of them.

        Returns
        -------
        list of NDArray, or of list of NDArray
        """
        self._require("get_states", params=True)
        return []

    def set_states(self, states: Any = None, value: float | None = None) -> None:
        """Set the states to arrays, or all to a number; one of the two is needed.

        Parameters
        ----------
        states : list of list of NDArray, optional
            As `get_states` or `get_outputs` give them, merged or not.
        value : float, optional
        """
        self._require("set_states", params=True)
        if states or value:
            raise error(ValueError, f"{type(self).__name__} has no states to set")

    def install_monitor(self, mon: Any) -> None:
        """Let a monitor watch the executors.

        Parameters
        ----------
        mon : Monitor
        """
        raise self._absent("install_monitor()")

    # -- computing ---------------------------------------------------------------------------------------------
    def prepare(self, data_batch: Any, sparse_row_id_fn: Callable[[Any], dict[str, Any]] | None = None) -> None:
        """Make ready for a batch, before `forward`.

        Parameters
        ----------
        data_batch : DataBatch
        sparse_row_id_fn : callable, optional
            Batch -> dict of parameter name to row numbers: the rows of sparse parameters that `forward` will read.
        """
        if sparse_row_id_fn is not None:
            from .._core.errors import warn

            warn(f"{type(self).__name__} has no sparse parameters; sparse_row_id_fn is not called")

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs.

        Parameters
        ----------
        data_batch : DataBatch
            Of any shape that the network can take; the module adapts.
        is_train : bool, optional
            As bound unless told.
        """
        raise self._absent("forward()")

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients.

        Parameters
        ----------
        out_grads : NDArray or list of NDArray, optional
            Gradients of the outputs; only losses do without.
        """
        raise self._absent("backward()")

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Outputs of the last `forward`; good until the next.

        Parameters
        ----------
        merge_multi_context : bool
            Put the parts of all contexts together; else give for each output a list of them.

        Returns
        -------
        list of NDArray, or of list of NDArray
        """
        raise self._absent("get_outputs()")

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Gradients of the data, after `backward` of a module bound with ``inputs_need_grad=True``.

        Parameters
        ----------
        merge_multi_context : bool
            As in `get_outputs`.

        Returns
        -------
        list of NDArray, or of list of NDArray
        """
        raise self._absent("get_input_grads()")

    def update(self) -> None:
        """Move the parameters by the optimizer and the gradients."""
        raise self._absent("update()")

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Take the last outputs into a metric.

        Parameters
        ----------
        eval_metric : EvalMetric
        labels : list of NDArray
            With `pre_sliced` a list of them for each context.
        pre_sliced : bool
        """
        raise self._absent("update_metric()")

    # -- preparing ---------------------------------------------------------------------------------------------
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
        """Make the executors for shapes of data.

        Parameters
        ----------
        data_shapes, label_shapes : list of DataDesc or of (str, tuple of int)
            As iterators' `provide_data` and `provide_label`.
        for_training : bool
            Whether gradients will be asked for.
        inputs_need_grad : bool
            Whether those of the data, too.
        force_rebind : bool
            Also where the module is bound already; else the call is ignored with a warning.
        shared_module : BaseModule, optional
            One whose parameters and memory this one shares.
        grad_req : str, list or dict
            'write', 'add' or 'null', for all parameters or by argument.
        """
        raise self._absent("bind()")

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Choose who moves the parameters, and how.

        Parameters
        ----------
        kvstore : str, KVStore or None
            Who adds up gradients of several contexts or machines.
        optimizer : str or Optimizer
        optimizer_params : dict or sequence of pairs
            Arguments of the optimizer, if that is a name. `rescale_grad` is 1 / batch size unless told.
        force_init : bool
            Also where there is an optimizer already; else the call is ignored with a warning.
        """
        raise self._absent("init_optimizer()")
