"""The class SVRGModule."""

from __future__ import annotations

import logging
import numbers
from collections.abc import Callable, Iterator
from typing import Any

from ..._locks import locked
from ...base import error
from ...initializer import Uniform
from ...module import Module

__all__ = ["SVRGModule"]


class SVRGModule(Module):
    """A module trained with variance reduced gradients.

    Every `update_freq` epochs the weights are kept as an anchor, and the mean gradient of all batches there is
    computed. From then on a step uses ``gradient - gradient at the anchor + mean gradient at the anchor``, both on the
    same batch, whose variance vanishes near the optimum.

    Parameters
    ----------
    symbol, data_names, label_names, logger, context, work_load_list, fixed_param_names, state_names, group2ctxs,
    compression_params
        As for :class:`mxcore.module.Module`.
    update_freq : int
        Epochs from anchor to anchor.

    Raises
    ------
    MXNetError
        (also TypeError or ValueError) if `update_freq` is no whole number from 1.

    Notes
    -----
    Johnson and Zhang, "Accelerating Stochastic Gradient Descent using Predictive Variance Reduction" (NIPS 2013). In a
    distributed run each worker has the mean gradient of its own part of the data; the sum over workers is that of all
    data.

    Examples
    --------
    >>> import mxcore as mx
    >>> out = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="fc")
    >>> net = mx.sym.LinearRegressionOutput(out, mx.sym.Variable("label"))
    >>> it = mx.io.NDArrayIter(mx.nd.ones((8, 2)), mx.nd.ones(8), 4, label_name="label")
    >>> mod = SVRGModule(net, label_names=["label"], update_freq=2)
    >>> mod.fit(it, num_epoch=40, eval_metric="mse", optimizer_params={"learning_rate": 0.1})
    >>> mod.score(it, "mse")[0][1] < 1e-6
    True
    """

    def __init__(
        self,
        symbol: Any,
        data_names: Any = ("data",),
        label_names: Any = ("softmax_label",),
        logger: Any = logging,
        context: Any = None,
        work_load_list: Any = None,
        fixed_param_names: Any = None,
        state_names: Any = None,
        group2ctxs: Any = None,
        compression_params: Any = None,
        update_freq: Any = None,
    ) -> None:
        if not isinstance(update_freq, numbers.Integral) or isinstance(update_freq, bool):
            raise error(
                TypeError, f"SVRGModule: update_freq must be a number of epochs, such as 2, got {update_freq!r}"
            )
        if update_freq < 1:
            raise error(ValueError, f"SVRGModule: update_freq must be 1 or more epochs, got {update_freq}")
        given = dict(
            data_names=data_names,
            label_names=label_names,
            logger=logger,
            context=context,
            work_load_list=work_load_list,
            fixed_param_names=fixed_param_names,
            state_names=state_names,
            group2ctxs=group2ctxs,
            compression_params=compression_params,
        )
        super().__init__(symbol, **given)
        self.update_freq: int = int(update_freq)
        self._mod_aux = Module(symbol, **given)
        #: Mean gradients at the anchor: one list of arrays, one a context, for each parameter; None before the first
        #: anchor.
        self._full: Any = None

    @locked
    def bind(
        self,
        data_shapes: Any,
        label_shapes: Any = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Any = None,
        grad_req: Any = "write",
    ) -> None:
        """Bind this module and, for training, the one at the anchor; see :meth:`mxcore.module.Module.bind`."""
        super().bind(data_shapes, label_shapes, for_training, inputs_need_grad, force_rebind, shared_module, grad_req)
        if for_training:
            self._mod_aux.bind(data_shapes, label_shapes, for_training, inputs_need_grad, force_rebind, None, grad_req)

    @locked
    def reshape(self, data_shapes: Any, label_shapes: Any = None) -> None:
        """Bind both modules for other shapes; see :meth:`mxcore.module.Module.reshape`."""
        super().reshape(data_shapes, label_shapes)
        if self._mod_aux.binded:
            self._mod_aux.reshape(data_shapes, label_shapes)

    @locked
    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs, in training those at the anchor too; see :meth:`mxcore.module.Module.forward`."""
        super().forward(data_batch, is_train)
        if self._full is not None and (self.for_training if is_train is None else is_train):
            self._mod_aux.forward(data_batch, True)

    @locked
    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients, here and at the anchor; see :meth:`mxcore.module.Module.backward`."""
        super().backward(out_grads)
        if self._full is not None:
            self._mod_aux.backward(out_grads)

    @locked
    def update(self) -> None:
        """Update the parameters with variance reduced gradients; with plain ones before `update_full_grads`."""
        if self._full is not None:
            rows = zip(self._exec_group.grad_arrays or (), self._mod_aux._exec_group.grad_arrays or (), self._full)
            for grads, anchors, means in rows:
                for g, anchor, mean in zip(grads, anchors, means):
                    if g is not None:
                        g[:] = g - anchor + mean
        super().update()

    @locked
    def update_full_grads(self, train_data: Any) -> None:
        """Make the present weights the anchor, and compute the mean gradient over all batches there.

        Parameters
        ----------
        train_data : DataIter
            Reset before and after.

        Raises
        ------
        MXNetError
            (also ValueError) if it has no batches, or an AssertionError before `init_params`.

        Notes
        -----
        The mean is that over batches, whose rows may be fewer than their size at the end (``pad``): with these the
        steps of an epoch add up to plain ones. MXNet divides by a number of batches that leaves the repeated rows out,
        and adds to the mean of the anchor before.
        """
        self._require("update_full_grads", params=True)
        arg, aux = self.get_params()
        self._mod_aux.init_params(arg_params=arg, aux_params=aux, force_init=True)
        group = self._mod_aux._exec_group
        total: Any = None
        count = 0
        train_data.reset()
        for batch in train_data:
            self._mod_aux.forward(batch, is_train=True)
            self._mod_aux.backward()
            rows = [[None if g is None else g.copy() for g in grads] for grads in group.grad_arrays or ()]
            if total is None:
                total = rows
            else:
                for sums, grads in zip(total, rows):
                    for s, g in zip(sums, grads):
                        if s is not None:
                            s += g
            count += 1
        train_data.reset()
        if not count:
            raise error(ValueError, "update_full_grads: train_data has no batches")
        self._full = [[None if s is None else s / count for s in sums] for sums in total]

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
        arg_params: Any = None,
        aux_params: Any = None,
        allow_missing: bool = False,
        force_rebind: bool = False,
        force_init: bool = False,
        begin_epoch: int = 0,
        num_epoch: int | None = None,
        validation_metric: Any = None,
        monitor: Any = None,
        sparse_row_id_fn: Any = None,
    ) -> None:
        """As :meth:`mxcore.module.BaseModule.fit`, with a new anchor at the beginning of each `update_freq` epochs."""
        epochs = _Epochs(train_data, self.update_freq, lambda: self.update_full_grads(train_data))
        super().fit(
            epochs,
            eval_data,
            eval_metric,
            epoch_end_callback,
            batch_end_callback,
            kvstore,
            optimizer,
            optimizer_params,
            eval_end_callback,
            eval_batch_end_callback,
            initializer,
            arg_params,
            aux_params,
            allow_missing,
            force_rebind,
            force_init,
            begin_epoch,
            num_epoch,
            validation_metric,
            monitor,
            sparse_row_id_fn,
        )

    @locked
    def prepare(self, data_batch: Any, sparse_row_id_fn: Any = None) -> None:
        """Make both modules ready for a batch; see :meth:`mxcore.module.Module.prepare`."""
        super().prepare(data_batch, sparse_row_id_fn=sparse_row_id_fn)
        self._mod_aux.prepare(data_batch)


class _Epochs:
    """A data set that calls `begin` before the first batch of every `period`-th epoch."""

    def __init__(self, data: Any, period: int, begin: Callable[[], None]) -> None:
        self._data, self._period, self._begin = data, period, begin
        self._epoch, self._started, self._delivered = 0, False, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._data, name)

    def __iter__(self) -> Iterator[Any]:
        if not self._started:
            self._started = True
            if self._epoch % self._period == 0:
                self._begin()
        for batch in self._data:
            self._delivered = True
            yield batch

    def reset(self) -> None:
        """Back to the first batch; after some were taken it is another epoch."""
        self._data.reset()
        if self._delivered:
            self._epoch, self._started, self._delivered = self._epoch + 1, False, False
