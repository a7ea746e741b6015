"""`DataParallelExecutorManager`: what `FeedForward` trains with; as ``mxnet.executor_manager``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .base import error
from .context import cpu
from .io import DataDesc
from .module import executor_group, slicing
from .module.slicing import split_rows as _split_input_slice

if TYPE_CHECKING:
    from .context import Context
    from .symbol import Symbol

__all__ = ["DataDesc", "DataParallelExecutorGroup", "DataParallelExecutorManager", "cpu"]


def _check_arguments(symbol: Symbol) -> None:
    """Refuse a symbol with two arguments, or two auxiliary states, of one name."""
    for kind, names in (("argument", symbol.list_arguments()), ("auxiliary state", symbol.list_auxiliary_states())):
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice:
            raise error(ValueError, f"two {kind}s of the symbol are named {twice!r}; names must differ: {names}")


class DataParallelExecutorGroup:
    """Executors of one symbol on several contexts, for batches like those of an iterator.

    Parameters
    ----------
    sym : Symbol
    arg_names : list of str
        Arguments of the symbol.
    param_names : list of str
        Those that are trained.
    ctx : list of Context
    slices : list of slice
        The part of the batch that each context takes.
    train_data : DataIter or DataBatch
        Whoever has `provide_data` and `provide_label`.
    shared_group : DataParallelExecutorGroup, optional
        One whose parameters and memory this one uses.

    Attributes
    ----------
    train_execs : list of Executor
    data_arrays, label_arrays : list of list of (slice, NDArray)
    param_arrays, grad_arrays, aux_arrays : list of list of NDArray
        For each name one array a context.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.executor_manager.DataParallelExecutorGroup``. Modules have one of their own.

    Examples
    --------
    >>> import mxcore as mx
    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    >>> net = mx.sym.SoftmaxOutput(net, name="softmax")
    >>> data = mx.io.NDArrayIter(mx.nd.ones((4, 3)), mx.nd.zeros(4), 4)
    >>> names, params = net.list_arguments(), ["fc_weight", "fc_bias"]
    >>> group = DataParallelExecutorGroup(net, names, params, [mx.cpu()], [slice(0, 4)], data)
    >>> group.load_data_batch(next(data))
    >>> group.forward()
    >>> group.train_execs[0].outputs[0].shape
    (4, 2)
    """

    _group: executor_group.DataParallelExecutorGroup

    def __init__(
        self,
        sym: Symbol,
        arg_names: Sequence[str],
        param_names: Sequence[str],
        ctx: Sequence[Context],
        slices: Sequence[slice],
        train_data: Any,
        shared_group: DataParallelExecutorGroup | None = None,
    ) -> None:
        _check_arguments(sym)
        data, labels = (
            [d if isinstance(d, DataDesc) else DataDesc(*d) for d in shapes or ()]
            for shapes in (train_data.provide_data, train_data.provide_label)
        )
        inputs = {d.name for d in (*data, *labels)}
        fixed = [n for n in arg_names if n not in inputs and n not in param_names]
        every = [n for n in arg_names if n not in inputs]
        self._group = group = executor_group.DataParallelExecutorGroup(
            sym,
            ctx,
            [s.stop - s.start for s in slices],
            data,
            labels,
            every,
            for_training=True,
            inputs_need_grad=False,
            shared_group=None if shared_group is None else shared_group._group,
            fixed_param_names=fixed,
        )
        self.data_names, self.label_names, self.aux_names = group.data_names, group.label_names, group.aux_names
        self.param_names = list(param_names)
        self.param_idx = [i for i, n in enumerate(arg_names) if n in param_names]
        self.train_execs, self.slices = group.execs, list(slices)
        self.data_arrays, self.label_arrays, self.aux_arrays = group.data_arrays, group.label_arrays, group.aux_arrays
        at = [group.param_names.index(n) for n in self.param_names]
        self.param_arrays = [group.param_arrays[i] for i in at]
        grads = group.grad_arrays or []  # bound for training: there are
        self.grad_arrays = [grads[i] for i in at]

    def load_data_batch(self, data_batch: Any) -> None:
        """Copy a batch to the executors.

        Parameters
        ----------
        data_batch : DataBatch
        """
        group = self._group
        slicing.load(data_batch.data, group.data_arrays, group.data_layouts, group.data_names)
        if group.label_arrays:
            slicing.load(data_batch.label or (), group.label_arrays, group.label_layouts, group.label_names)

    def forward(self, is_train: bool = False) -> None:
        """Compute the outputs of the loaded batch.

        Parameters
        ----------
        is_train : bool
            Whether gradients will be asked for.
        """
        for e in self.train_execs:
            e.forward(is_train=is_train)

    def backward(self) -> None:
        """Compute the gradients."""
        for e in self.train_execs:
            e.backward()

    def update_metric(self, metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Take the outputs into a metric.

        Parameters
        ----------
        metric : EvalMetric
        labels : list of NDArray
            With `pre_sliced` a list of them for each context.
        pre_sliced : bool
        """
        self._group.update_metric(metric, labels, pre_sliced)


class DataParallelExecutorManager:
    """Executors over several contexts and, with `sym_gen`, for several buckets.

    Parameters
    ----------
    symbol : Symbol
    ctx : list of Context
    train_data : DataIter
    arg_names, param_names, aux_names : list of str
        Arguments, those that are trained, and auxiliary states.
    work_load_list : list of float, optional
        The share of each context; equal unless told.
    logger : Logger, optional
    sym_gen : callable, optional
        Bucket key -> symbol.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.executor_manager.DataParallelExecutorManager``.

    Examples
    --------
    >>> import mxcore as mx
    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    >>> net = mx.sym.SoftmaxOutput(net, name="softmax")
    >>> data = mx.io.NDArrayIter(mx.nd.ones((4, 3)), mx.nd.zeros(4), 4)
    >>> both = [mx.cpu(0), mx.cpu(1)]
    >>> manager = DataParallelExecutorManager(net, both, data, net.list_arguments(), ["fc_weight", "fc_bias"], [])
    >>> manager.load_data_batch(next(data))
    >>> manager.forward(is_train=True)
    >>> manager.backward()
    >>> [g.shape for g in manager.grad_arrays[0]]
    [(2, 3), (2, 3)]
    """

    def __init__(
        self,
        symbol: Any,
        ctx: Sequence[Context],
        train_data: Any,
        arg_names: Sequence[str],
        param_names: Sequence[str],
        aux_names: Sequence[str],
        work_load_list: Any = None,
        logger: Any = None,
        sym_gen: Callable[[Any], Any] | None = None,
    ) -> None:
        self.logger = logging if logger is None else logger
        if work_load_list is None:
            work_load_list = [1] * len(ctx)
        if not isinstance(work_load_list, (list, tuple)) or len(work_load_list) != len(ctx):
            raise error(
                AssertionError,
                f"work_load_list must have one number for each of {len(ctx)} contexts, got {work_load_list!r}",
            )
        self.logger.info("Start training with %s", str(ctx))
        self.slices = _split_input_slice(train_data.batch_size, work_load_list)
        self.arg_names, self.param_names, self.aux_names, self.ctx = arg_names, param_names, aux_names, ctx
        self.sym_gen = sym_gen
        self.execgrp = DataParallelExecutorGroup(symbol, arg_names, param_names, ctx, self.slices, train_data)
        self.symbol = symbol
        self.curr_execgrp: DataParallelExecutorGroup | None = None  # the one of the last batch loaded
        self.execgrp_bucket = {} if sym_gen is None else {train_data.default_bucket_key: self.execgrp}

    def install_monitor(self, monitor: Any) -> None:
        """Let a monitor watch the executors; not with buckets.

        Parameters
        ----------
        monitor : Monitor
        """
        if self.sym_gen is not None:
            raise error(
                NotImplementedError,
                "a monitor cannot watch FeedForward with buckets; use BucketingModule, which allows it",
            )
        for e in self.execgrp.train_execs:
            monitor.install(e)

    def set_params(self, arg_params: Mapping[str, Any], aux_params: Mapping[str, Any]) -> None:
        """Copy parameters to all contexts.

        Parameters
        ----------
        arg_params, aux_params : dict of str to NDArray
        """
        for e in self.execgrp.train_execs:
            e.copy_params_from(arg_params, aux_params)

    def copy_to(self, arg_params: Mapping[str, Any], aux_params: Mapping[str, Any]) -> None:
        """Write the means over all contexts into the arrays of two dicts.

        Parameters
        ----------
        arg_params, aux_params : dict of str to NDArray
        """
        pairs = [
            *((arg_params[n], a) for n, a in zip(self.param_names, self.param_arrays)),
            *((aux_params[n], a) for n, a in zip(self.aux_names, self.aux_arrays)),
        ]
        for target, copies in pairs:
            whole = copies[0]
            if len(copies) > 1:
                whole = sum(c.as_in_context(target.context) for c in copies) / len(copies)
            whole.copyto(target)

    @property
    def param_arrays(self) -> list[list[Any]]:
        """For each parameter its array on each context."""
        return self.execgrp.param_arrays

    @property
    def grad_arrays(self) -> list[list[Any]]:
        """For each parameter its gradient on each context."""
        return self.execgrp.grad_arrays

    @property
    def aux_arrays(self) -> list[list[Any]]:
        """For each auxiliary state its array on each context."""
        return self.execgrp.aux_arrays

    def load_data_batch(self, data_batch: Any) -> None:
        """Copy a batch to the executors of its bucket.

        Parameters
        ----------
        data_batch : DataBatch
        """
        group = self.execgrp
        if self.sym_gen is not None:
            key = data_batch.bucket_key
            group = self.execgrp_bucket.get(key)  # type: ignore[assignment]  # made below
            if group is None:
                group = self.execgrp_bucket[key] = DataParallelExecutorGroup(
                    self.sym_gen(key),
                    self.arg_names,
                    self.param_names,
                    self.ctx,
                    self.slices,
                    data_batch,
                    shared_group=self.execgrp,
                )
        self.curr_execgrp = group
        group.load_data_batch(data_batch)

    def _current(self, what: str) -> DataParallelExecutorGroup:
        if self.curr_execgrp is None:
            raise error(RuntimeError, f"{what}: call load_data_batch() before")
        return self.curr_execgrp

    def forward(self, is_train: bool = False) -> None:
        """Compute the outputs of the loaded batch.

        Parameters
        ----------
        is_train : bool
            Whether gradients will be asked for.
        """
        self._current("forward").forward(is_train=is_train)

    def backward(self) -> None:
        """Compute the gradients."""
        self._current("backward").backward()

    def update_metric(self, metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Take the outputs into a metric.

        Parameters
        ----------
        metric : EvalMetric
        labels : list of NDArray
            With `pre_sliced` a list of them for each context.
        pre_sliced : bool
        """
        self._current("update_metric").update_metric(metric, labels, pre_sliced)
