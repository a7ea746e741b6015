"""Checkpoints, and `FeedForward`, the oldest way to train; as ``mxnet.model``.

A checkpoint is a graph as ``prefix-symbol.json`` and its arrays as ``prefix-0001.params``.
"""

from __future__ import annotations

import copy
import logging
import time
import warnings
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import context, initializer, io, metric
from . import ndarray as nd
from . import optimizer as opt
from . import symbol as sym
from ._io_files import checked
from ._locks import ObjectLock
from ._reexports import reexports
from .base import asserted, error
from .drafts import atomic_writers, read_pair
from .ndarray.files import chunks
from .urls import appended

if TYPE_CHECKING:
    from .executor import Executor
    from .executor_manager import DataParallelExecutorManager
    from .ndarray import NDArray

__all__ = [
    "BatchEndParam",
    "FeedForward",
    "checkpoint_file",
    "load_checkpoint",
    "load_params",
    "read_params",
    "save_checkpoint",
    "write_checkpoint",
]

#: What callbacks at the end of a batch, and of a score, get: numbers of epoch and batch, the metric, and the variables
#: of the loop.
BatchEndParam = namedtuple("BatchEndParams", ["epoch", "nbatch", "eval_metric", "locals"])  # type: ignore[name-match]  # as MXNet names it

__getattr__ = reexports(__name__)


# -- checkpoints ---------------------------------------------------------------------------------------------------
def checkpoint_file(prefix: str, epoch: int, ending: str = "params") -> str:
    """The name of a file of a checkpoint: ``<prefix>-<epoch, four digits>.<ending>``.

    Parameters
    ----------
    prefix : str
    epoch : int
    ending : str

    Raises
    ------
    MXNetError
        (also TypeError) if the prefix is neither a string nor a path, or the epoch no whole number.

    Examples
    --------
    >>> checkpoint_file("net", 3), checkpoint_file("net", 3, "states")
    ('net-0003.params', 'net-0003.states')
    """
    prefix = checked(prefix, "the prefix of a checkpoint", empty=True)
    try:
        number = int(epoch)
    except (TypeError, ValueError):
        number = None
    if number is None or number != epoch:
        raise error(TypeError, f"the epoch of checkpoint {prefix!r} must be a whole number, got {epoch!r}")
    return appended(prefix, f"-{number:04d}.{ending}")


def save_checkpoint(
    prefix: str,
    epoch: int,
    symbol: Any,
    arg_params: dict[str, Any],
    aux_params: dict[str, Any],
    remove_amp_cast: bool = True,
) -> None:
    """Write ``<prefix>-symbol.json`` (unless `symbol` is None) and ``<prefix>-<epoch>.params``.

    Both are replaced or none: an interrupted checkpoint leaves the old one, as far as `load_checkpoint` reads it.

    Parameters
    ----------
    prefix : str
        Path or URL without the endings.
    epoch : int
    symbol : Symbol or None
    arg_params, aux_params : dict of str to NDArray
    remove_amp_cast : bool
        Leave out the casts of automatic mixed precision.

    Raises
    ------
    MXNetError
        (also TypeError) for arguments of other types; nothing is written then.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.model.save_checkpoint("memory://doc/s", 1, mx.sym.Variable("x"), {"w": mx.nd.ones(2)}, {})
    >>> list(mx.nd.load("memory://doc/s-0001.params"))
    ['arg:w']
    """
    for what, given in (("arg_params", arg_params), ("aux_params", aux_params)):
        if not isinstance(given, Mapping):
            raise error(
                TypeError,
                f"save_checkpoint: {what} must be a dict of names to NDArray, "
                f"got {type(given).__name__}; {{}} for none",
            )
    if symbol is not None and not isinstance(symbol, sym.Symbol):
        raise error(TypeError, f"save_checkpoint: symbol must be a Symbol or None, got {type(symbol).__name__}")
    named = {f"arg:{k}": v for k, v in arg_params.items()}
    named.update({f"aux:{k}": v for k, v in aux_params.items()})
    logging.info('Saved checkpoint to "%s"', write_checkpoint(prefix, epoch, symbol, named, remove_amp_cast))


def write_checkpoint(prefix: str, epoch: int, symbol: Any, named: dict[str, Any], remove_amp_cast: bool = True) -> str:
    """Write graph and arrays together, for `load_checkpoint`; returns the name of the file of arrays.

    Examples
    --------
    >>> import mxcore as mx
    >>> write_checkpoint("memory://doc/t", 1, mx.sym.Variable("x"), {"arg:w": mx.nd.ones(2)})
    'memory://doc/t-0001.params'
    """
    name = checkpoint_file(prefix, epoch)
    if symbol is None:
        nd.save(name, named)
        return name
    text = symbol.tojson(remove_amp_cast).encode()
    # Of the two the graph comes second: it stands beside the arrays of several epochs, and belongs to those written
    # last.
    with atomic_writers(name, appended(prefix, "-symbol.json")) as (arrays, graph):
        for piece in chunks(named):
            arrays.write(piece)
        graph.write(text)
    return name


def read_params(fname: str, strict: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a file of parameters: (arguments, auxiliary states).

    Parameters
    ----------
    fname : str
    strict : bool
        Refuse an entry ``<kind>:<name>`` of another kind than 'arg' and 'aux'; else leave it out.

    Raises
    ------
    MXNetError
        (also ValueError) if the arrays have no such names; (also FileNotFoundError) without the file.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.nd.save("memory://doc/r", {"arg:w": mx.nd.ones(2), "aux:m": mx.nd.ones(1)})
    >>> [sorted(part) for part in read_params("memory://doc/r")]
    [['w'], ['m']]
    """
    loaded = nd.load(fname)
    if not loaded:
        logging.warning("Params file '%s' is empty", fname)
        return {}, {}
    if not isinstance(loaded, dict):
        raise error(ValueError, f"{fname} holds a list of arrays without names; a checkpoint holds 'arg:…' and 'aux:…'")
    parts: dict[str, dict[str, Any]] = {"arg": {}, "aux": {}}
    for key, value in loaded.items():
        kind, _, rest = key.partition(":")
        if kind in parts and rest:
            parts[kind][rest] = value
        elif strict or not rest:
            raise error(ValueError, f"{fname}: entry {key!r} is neither 'arg:<name>' nor 'aux:<name>'")
    return parts["arg"], parts["aux"]


def load_params(prefix: str, epoch: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the arrays of a checkpoint: (arguments, auxiliary states).

    Parameters
    ----------
    prefix : str
    epoch : int

    Returns
    -------
    arg_params, aux_params : dict of str to NDArray
        Both empty, with a warning in the log, if the file holds no arrays. Entries of other kinds are left out.

    Raises
    ------
    MXNetError
        (also FileNotFoundError) if there is no such file; (also ValueError) if its arrays are not named as a
        checkpoint's.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.model.save_checkpoint("memory://doc/p", 7, None, {"w": mx.nd.ones(2)}, {})
    >>> mx.model.load_params("memory://doc/p", 7)[0]["w"].shape
    (2,)
    """
    return read_params(checkpoint_file(prefix, epoch), strict=False)


def load_checkpoint(prefix: str, epoch: int) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Read a checkpoint: (symbol, arguments, auxiliary states).

    Parameters
    ----------
    prefix : str
    epoch : int

    Returns
    -------
    symbol : Symbol
    arg_params, aux_params : dict of str to NDArray

    Raises
    ------
    MXNetError
        As `load_params`; (also FileNotFoundError) without ``<prefix>-symbol.json``.

    Examples
    --------
    >>> import mxcore as mx
    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    >>> mx.model.save_checkpoint("memory://doc/m", 3, net, {"fc_weight": mx.nd.ones((2, 3))}, {})
    >>> symbol, arg, aux = mx.model.load_checkpoint("memory://doc/m", 3)
    >>> symbol.list_arguments(), list(arg)
    (['data', 'fc_weight', 'fc_bias'], ['fc_weight'])
    """
    name = checkpoint_file(prefix, epoch)
    return read_pair(
        appended(prefix, "-symbol.json"), name, lambda graph: (sym.load(graph), *load_params(prefix, epoch))
    )


# -- FeedForward ---------------------------------------------------------------------------------------------------
def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


class FeedForward:
    """Train and use a network in the manner of scikit-learn. Deprecated: use `Module`.

    Parameters
    ----------
    symbol : Symbol or callable
        With buckets a function: bucket key -> symbol.
    ctx : Context or list of Context, optional
        The current one unless told.
    num_epoch : int
        Until which epoch to train.
    epoch_size : int, optional
        Batches in an epoch; as many as the data have unless told.
    optimizer : str or Optimizer
    initializer : Initializer
    numpy_batch_size : int
        Batch size for NumPy data.
    arg_params, aux_params : dict of str to NDArray, optional
        First values.
    allow_extra_params : bool
        Leave out parameters that the network does not have.
    begin_epoch : int
        From which epoch to train.
    **kwargs
        Arguments of the optimizer.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.model.FeedForward``, its deprecation included.

    Examples
    --------
    >>> import warnings
    >>> import mxcore as mx
    >>> import numpy as np
    >>> warnings.simplefilter("ignore", DeprecationWarning)
    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="fc")
    >>> net = mx.sym.LinearRegressionOutput(net, mx.sym.Variable("softmax_label"))
    >>> x = np.linspace(-1, 1, 20)
    >>> model = mx.model.FeedForward(net, num_epoch=30, numpy_batch_size=5, learning_rate=0.5)
    >>> model.fit(x, 3 * x, eval_metric="mse")
    >>> bool(abs(model.predict(np.ones(5))[0, 0] - 3) < 0.1)
    True
    """

    def __init__(
        self,
        symbol: Any,
        ctx: Any = None,
        num_epoch: int | None = None,
        epoch_size: int | None = None,
        optimizer: Any = "sgd",
        initializer: Any = initializer.Uniform(0.01),
        numpy_batch_size: int = 128,
        arg_params: Mapping[str, Any] | None = None,
        aux_params: Mapping[str, Any] | None = None,
        allow_extra_params: bool = False,
        begin_epoch: int = 0,
        **kwargs: Any,
    ) -> None:
        warnings.warn(
            "mxnet.model.FeedForward has been deprecated. Please use mxnet.mod.Module instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        self.symbol: Any = symbol if isinstance(symbol, sym.Symbol) else None
        self.sym_gen: Any = None if isinstance(symbol, sym.Symbol) else symbol
        if self.symbol is None and not callable(symbol):
            raise asserted(TypeError, f"symbol must be a Symbol or a function that makes one, got {symbol!r}")
        self.arg_params: Any = arg_params
        self.aux_params: Any = aux_params
        self.allow_extra_params = allow_extra_params
        self.argument_checked = False
        if self.sym_gen is None:
            self._check_arguments()
        self.ctx = [context.current_context()] if ctx is None else _as_list(ctx)
        self.num_epoch: Any = num_epoch
        self.epoch_size = epoch_size
        self.kwargs = dict(kwargs)
        self.optimizer, self.initializer, self.numpy_batch_size = optimizer, initializer, numpy_batch_size
        self._pred_exec: Any = None
        self._object_lock = ObjectLock()
        self.begin_epoch = begin_epoch

    # -- scikit-learn's -----------------------------------------------------------------------------------------
    _OWN = (
        "symbol",
        "ctx",
        "num_epoch",
        "epoch_size",
        "optimizer",
        "initializer",
        "numpy_batch_size",
        "arg_params",
        "aux_params",
        "allow_extra_params",
        "begin_epoch",
    )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor, as scikit-learn's estimators give them.

        Parameters
        ----------
        deep : bool
            Without effect: nothing here is an estimator itself.

        Returns
        -------
        dict
        """
        found = {name: getattr(self, name) for name in self._OWN}
        found["symbol"] = self.symbol if self.sym_gen is None else self.sym_gen
        return found

    def set_params(self, **params: Any) -> FeedForward:
        """Set arguments of the constructor anew; returns this model.

        Parameters
        ----------
        **params
        """
        for name, value in params.items():
            if name not in self._OWN:
                raise error(ValueError, f"FeedForward has no parameter {name!r}; there are {', '.join(self._OWN)}")
            setattr(self, name, value)
        self.argument_checked = False
        return self

    # -- set-up -------------------------------------------------------------------------------------------------
    def _check_arguments(self) -> None:
        if self.argument_checked:
            return
        from .executor_manager import _check_arguments

        _check_arguments(self.symbol)
        self.argument_checked = True
        if self.allow_extra_params:
            for attr, names in (
                ("arg_params", self.symbol.list_arguments()),
                ("aux_params", self.symbol.list_auxiliary_states()),
            ):
                given = getattr(self, attr)
                if given:
                    setattr(self, attr, {k: v for k, v in given.items() if k in set(names)})

    def _init_params(self, inputs: Sequence[Any], overwrite: bool = False) -> tuple[list[str], list[str], list[str]]:
        """Complete the parameters for inputs of given shapes; returns names of arguments, parameters and states."""
        described = [d if isinstance(d, io.DataDesc) else io.DataDesc(*d) for d in inputs]
        shapes, _, aux_shapes = self.symbol.infer_shape(**{d.name: d.shape for d in described})
        if shapes is None:
            raise error(
                ValueError,
                f"the data {[(d.name, d.shape) for d in described]} do not determine all shapes of the network",
            )
        types, _, aux_types = self.symbol.infer_type(**{d.name: d.dtype for d in described})
        arg_names, aux_names = self.symbol.list_arguments(), self.symbol.list_auxiliary_states()
        names = {d.name for d in described}
        param_names = [n for n in arg_names if n not in names]
        attrs = self.symbol.attr_dict()

        def complete(wanted: Iterable[tuple[Any, Any, Any]], given: Mapping[str, Any] | None) -> dict[str, NDArray]:
            found = {}
            for name, shape, dtype in wanted:
                old = None if overwrite or not given else given.get(name)
                if old is not None:
                    if tuple(old.shape) != tuple(shape):
                        raise error(
                            ValueError,
                            f"parameter {name} has shape {tuple(old.shape)}, the network needs {tuple(shape)}",
                        )
                    found[name] = old.copy()
                    continue
                found[name] = nd.zeros(shape, dtype=dtype)
                self.initializer(initializer.InitDesc(name, attrs.get(name)), found[name])
            return found

        self.arg_params = complete(
            [row for row in zip(arg_names, shapes, types) if row[0] not in names], self.arg_params
        )
        self.aux_params = complete(zip(aux_names, aux_shapes, aux_types), self.aux_params)
        return arg_names, param_names, aux_names

    def _init_iter(self, X: Any, y: Any, is_train: bool) -> Any:
        """An iterator over what the user gave."""
        if isinstance(X, (np.ndarray, nd.NDArray)):
            if y is None:
                if is_train:
                    raise error(ValueError, "y must be specified when X is numpy.ndarray")
                y = np.zeros(X.shape[0])
            y = y.asnumpy() if isinstance(y, nd.NDArray) else np.asarray(y)
            if X.shape[0] != y.shape[0]:
                raise error(
                    ValueError, f"The numbers of data points and labels not equal: X has {X.shape[0]}, y {y.shape[0]}"
                )
            if y.ndim == 2 and y.shape[1] == 1:
                y = y.ravel()
            if y.ndim != 1:
                raise error(ValueError, f"Label must be 1D or 2D (with 2nd dimension being 1), not of shape {y.shape}")
            size = min(X.shape[0], self.numpy_batch_size)
            if is_train:
                return io.NDArrayIter(X, y, size, shuffle=True, last_batch_handle="roll_over")
            return io.NDArrayIter(X, y, size, shuffle=False)
        if not isinstance(X, io.DataIter):
            raise error(TypeError, f"X must be DataIter, NDArray or numpy.ndarray, not {type(X).__name__}")
        return X

    def _init_eval_iter(self, eval_data: Any) -> Any:
        if eval_data is None:
            return None
        if isinstance(eval_data, (tuple, list)) and len(eval_data) == 2:
            X, y = eval_data
            if X is None:
                raise error(ValueError, "Eval data is NONE")
            if y is None and isinstance(X, io.DataIter):
                return X
            X, y = (np.asarray(a) if isinstance(a, list) else a for a in (X, y))
            return self._init_iter(X, y, is_train=True)
        if not isinstance(eval_data, io.DataIter):
            raise error(
                TypeError,
                "Eval data must be DataIter, or NDArray/numpy.ndarray/list pair (i.e. tuple/list of length 2), "
                f"not {type(eval_data).__name__}",
            )
        return eval_data

    # -- use ----------------------------------------------------------------------------------------------------
    def _predictor(self, X: Any) -> Executor:
        """An executor for batches like those of `X`."""
        if self.arg_params is None:
            raise error(RuntimeError, "the model has no parameters yet; call fit(), or give arg_params")
        inputs = [d if isinstance(d, io.DataDesc) else io.DataDesc(*d) for d in X.provide_data]
        if self.sym_gen is not None and self.symbol is None:
            self.symbol = self.sym_gen(X.default_bucket_key)
            self._check_arguments()
        shapes = {d.name: d.shape for d in inputs}
        old: Executor | None = self._pred_exec
        if old is not None:
            given = old.arg_dict
            if all(n in given and given[n].shape == s for n, s in shapes.items()):
                return old
        made: Executor = self.symbol.simple_bind(
            self.ctx[0], grad_req="null", type_dict={d.name: d.dtype for d in inputs}, **shapes
        )
        made.copy_params_from(self.arg_params, self.aux_params or {}, allow_extra_params=self.allow_extra_params)
        lacking = [
            n for n in made.arg_dict if n not in shapes and n not in self.arg_params and n not in self._labels(X)
        ]
        if lacking:
            raise error(ValueError, f"the model has no values for {lacking}; the data are {sorted(shapes)}")
        self._pred_exec = made
        return made

    @staticmethod
    def _labels(X: Any) -> set[str]:
        """Names that may be labels, which prediction does not need."""
        return {*(d[0] for d in X.provide_label or ()), "softmax_label"}

    def _outputs(self, X: Any, num_batch: int | None, reset: bool) -> Iterator[tuple[int, list[NDArray], Any, int]]:
        """Outputs of batch after batch, without padding: (number, outputs, batch, rows that count)."""
        if reset:
            X.reset()
        names = [d[0] for d in X.provide_data]
        for i, batch in enumerate(X):
            if num_batch is not None and i == num_batch:
                return
            with self._object_lock:
                executor = self._predictor(X)
                for name, data in zip(names, batch.data):
                    executor.arg_dict[name][:] = data
                outputs = [out.copy() for out in executor.forward(is_train=False)]
            yield i, outputs, batch, batch.data[0].shape[0] - (batch.pad or 0)

    def predict(self, X: Any, num_batch: int | None = None, return_data: bool = False, reset: bool = True) -> Any:
        """Predict.

        Parameters
        ----------
        X : DataIter, NDArray or numpy.ndarray
        num_batch : int, optional
            Take so many batches only.
        return_data : bool
            Return data and labels, too.
        reset : bool
            Reset `X` first.

        Returns
        -------
        numpy.ndarray, or list of them for several outputs
            With `return_data` a tuple (outputs, data, labels).
        """
        X = self._init_iter(X, None, is_train=False)
        rows = []
        for _, outputs, batch, n in self._outputs(X, num_batch, reset):
            parts = [outputs, batch.data, batch.label or []] if return_data else [outputs]
            rows.append([[a[:n].asnumpy() for a in part] for part in parts])
        if not rows:
            raise error(ValueError, "predict: the data have no batch; call reset() on the iterator")
        found = []
        for part in zip(*rows):
            arrays = [np.concatenate(pieces) for pieces in zip(*part)]
            found.append(arrays[0] if len(arrays) == 1 else arrays)
        return tuple(found) if return_data else found[0]

    def score(
        self,
        X: Any,
        eval_metric: Any = "acc",
        num_batch: int | None = None,
        batch_end_callback: Any = None,
        reset: bool = True,
    ) -> Any:
        """Measure the outputs on a data set.

        Parameters
        ----------
        X : DataIter
        eval_metric : EvalMetric or str
        num_batch : int, optional
            Take so many batches only.
        batch_end_callback : callable or list of callable, optional
            Called with a `BatchEndParam` of epoch 0.
        reset : bool
            Reset `X` first.

        Returns
        -------
        float
        """
        from .module import arguments

        if not isinstance(eval_metric, metric.EvalMetric):
            eval_metric = metric.create(eval_metric)
        batch_end_callback = arguments.callbacks(batch_end_callback, "batch_end_callback")
        X = self._init_iter(X, None, is_train=False)
        eval_metric.reset()
        for i, outputs, batch, _ in self._outputs(X, num_batch, reset):
            eval_metric.update(batch.label, outputs)
            if batch_end_callback:
                batch_end_params = BatchEndParam(epoch=0, nbatch=i, eval_metric=eval_metric, locals=locals())
                for callback in batch_end_callback:
                    callback(batch_end_params)
        return eval_metric.get()[1]

    # -- training -----------------------------------------------------------------------------------------------
    def fit(
        self,
        X: Any,
        y: Any = None,
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Any = None,
        batch_end_callback: Any = None,
        kvstore: Any = "local",
        logger: Any = None,
        work_load_list: Any = None,
        monitor: Any = None,
        eval_end_callback: Any = None,
        eval_batch_end_callback: Any = None,
    ) -> None:
        """Train.

        Parameters
        ----------
        X : DataIter, NDArray or numpy.ndarray
            Data; vectors are batches of numbers.
        y : numpy.ndarray or NDArray, optional
            Labels; needed unless `X` is a DataIter.
        eval_data : DataIter or pair of arrays, optional
            Scored after each epoch.
        eval_metric : EvalMetric, str or callable
        epoch_end_callback, batch_end_callback, eval_end_callback, eval_batch_end_callback : callable or list, optional
            As for `Module.fit`; by default validation scores are logged.
        kvstore : str or KVStore
            As for `Module.init_optimizer`.
        logger : Logger, optional
        work_load_list : list of float, optional
            The share of each context.
        monitor : Monitor, optional

        Raises
        ------
        MXNetError
            (also ValueError or TypeError) if data, labels and network do not fit.
        """
        from .module import arguments
        from .module.updates import create_kvstore, names_of_indices

        if self.num_epoch is None:
            raise error(ValueError, "fit: FeedForward(num_epoch=…) is needed")
        arguments.epochs(self.begin_epoch, self.num_epoch)
        callbacks = [
            arguments.callbacks(given, what)
            for given, what in (
                (epoch_end_callback, "epoch_end_callback"),
                (batch_end_callback, "batch_end_callback"),
                (eval_end_callback, "eval_end_callback"),
                (eval_batch_end_callback, "eval_batch_end_callback"),
            )
        ]
        data = self._init_iter(X, y, is_train=True)
        eval_data = self._init_eval_iter(eval_data)
        if self.sym_gen is not None:
            self.symbol = self.sym_gen(data.default_bucket_key)
            self._check_arguments()
        self.kwargs["sym"] = self.symbol
        arg_names, param_names, aux_names = self._init_params([*data.provide_data, *(data.provide_label or ())])
        self._pred_exec = None
        if not isinstance(eval_metric, metric.EvalMetric):
            eval_metric = metric.create(eval_metric)
        kvstore, update_on_kvstore = create_kvstore(kvstore, len(self.ctx), self.arg_params)
        idx2name = names_of_indices(param_names, len(self.ctx), update_on_kvstore)
        self.kwargs["param_idx2name"] = idx2name
        if isinstance(self.optimizer, str):
            batch_size = data.batch_size
            if kvstore and "async" not in kvstore.type:
                batch_size *= kvstore.num_workers
            optimizer = opt.create(self.optimizer, **{"rescale_grad": 1.0 / batch_size, **self.kwargs})
        elif isinstance(self.optimizer, opt.Optimizer):
            optimizer = self.optimizer
            if not optimizer.idx2name:
                optimizer.idx2name = idx2name
        else:
            raise error(TypeError, f"optimizer must be a name or an Optimizer, got {self.optimizer!r}")
        if eval_end_callback is None:
            from .callback import LogValidationMetricsCallback

            callbacks[2] = [LogValidationMetricsCallback()]
        self._train(
            data,
            eval_data,
            arg_names,
            param_names,
            aux_names,
            optimizer,
            kvstore,
            update_on_kvstore,
            eval_metric,
            logger or logging,
            work_load_list,
            monitor,
            *callbacks,
        )

    def _train(
        self,
        train_data: Any,
        eval_data: Any,
        arg_names: Sequence[str],
        param_names: Sequence[str],
        aux_names: Sequence[str],
        optimizer: Any,
        kvstore: Any,
        update_on_kvstore: bool,
        eval_metric: Any,
        logger: Any,
        work_load_list: Any,
        monitor: Any,
        epoch_end_callback: Any,
        batch_end_callback: Any,
        eval_end_callback: Any,
        eval_batch_end_callback: Any,
    ) -> None:
        from .executor_manager import DataParallelExecutorManager
        from .module.updates import initialize_kvstore, update_params, update_params_on_kvstore

        # Callbacks see these names: what MXNet's loop has.
        symbol, sym_gen, ctx, arg_params, aux_params = (
            self.symbol,
            self.sym_gen,
            self.ctx,
            self.arg_params,
            self.aux_params,
        )
        begin_epoch, end_epoch, epoch_size = self.begin_epoch, self.num_epoch, self.epoch_size
        executor_manager = DataParallelExecutorManager(
            symbol, ctx, train_data, arg_names, param_names, aux_names, work_load_list, logger, sym_gen
        )
        if monitor:
            executor_manager.install_monitor(monitor)
        executor_manager.set_params(arg_params, aux_params)
        updater = None if update_on_kvstore else opt.get_updater(optimizer)
        if kvstore:
            if update_on_kvstore:
                kvstore.set_optimizer(optimizer)
            initialize_kvstore(kvstore, executor_manager.param_arrays, arg_params, param_names, update_on_kvstore)
        train_data.reset()
        for epoch in range(begin_epoch, end_epoch):
            tic = time.time()
            eval_metric.reset()
            nbatch = 0
            while True:
                do_reset = True
                before = nbatch
                for data_batch in train_data:
                    executor_manager.load_data_batch(data_batch)
                    if monitor is not None:
                        monitor.tic()
                    executor_manager.forward(is_train=True)
                    executor_manager.backward()
                    if update_on_kvstore:
                        update_params_on_kvstore(
                            executor_manager.param_arrays, executor_manager.grad_arrays, kvstore, param_names
                        )
                    else:
                        update_params(
                            executor_manager.param_arrays,
                            executor_manager.grad_arrays,
                            updater,
                            len(ctx),
                            kvstore,
                            param_names,
                        )
                    if monitor is not None:
                        monitor.toc_print()
                    executor_manager.update_metric(eval_metric, data_batch.label)
                    nbatch += 1
                    if batch_end_callback:
                        batch_end_params = BatchEndParam(
                            epoch=epoch, nbatch=nbatch, eval_metric=eval_metric, locals=locals()
                        )
                        for callback in batch_end_callback:
                            callback(batch_end_params)
                    if epoch_size is not None and nbatch >= epoch_size:
                        do_reset = False  # the next epoch goes on from here
                        break
                if do_reset:
                    logger.info("Epoch[%d] Resetting Data Iterator", epoch)
                    train_data.reset()
                if epoch_size is None or nbatch >= epoch_size:
                    break
                if nbatch == before:
                    raise error(ValueError, f"fit: train_data gives no batches, and an epoch is to have {epoch_size}")
            toc = time.time()
            logger.info("Epoch[%d] Time cost=%.3f", epoch, toc - tic)
            if epoch_end_callback or epoch + 1 == end_epoch:
                executor_manager.copy_to(arg_params, aux_params)
            for callback in epoch_end_callback:
                callback(epoch, symbol, arg_params, aux_params)
            if eval_data:
                self._validate(
                    locals(),
                    executor_manager,
                    eval_data,
                    eval_metric,
                    epoch,
                    eval_end_callback,
                    eval_batch_end_callback,
                )
                if eval_data is train_data:
                    train_data.reset()

    @staticmethod
    def _validate(
        training: dict[str, Any],
        executor_manager: DataParallelExecutorManager,
        eval_data: Any,
        eval_metric: Any,
        epoch: int,
        eval_end_callback: Any,
        eval_batch_end_callback: Any,
    ) -> None:
        eval_metric.reset()
        eval_data.reset()
        total_num_batch = 0
        for i, eval_batch in enumerate(eval_data):
            executor_manager.load_data_batch(eval_batch)
            executor_manager.forward(is_train=False)
            executor_manager.update_metric(eval_metric, eval_batch.label)
            if eval_batch_end_callback:
                batch_end_params = BatchEndParam(
                    epoch=epoch, nbatch=i, eval_metric=eval_metric, locals={**training, **locals()}
                )
                for callback in eval_batch_end_callback:
                    callback(batch_end_params)
            total_num_batch += 1
        if eval_end_callback:
            params = BatchEndParam(
                epoch=epoch, nbatch=total_num_batch, eval_metric=eval_metric, locals={**training, **locals()}
            )
            for callback in eval_end_callback:
                callback(params)

    # -- files --------------------------------------------------------------------------------------------------
    def save(self, prefix: str, epoch: int | None = None, remove_amp_cast: bool = True) -> None:
        """Write a checkpoint.

        Parameters
        ----------
        prefix : str
        epoch : int, optional
            `num_epoch` unless told.
        remove_amp_cast : bool
            Leave out the casts of automatic mixed precision.
        """
        if epoch is None:
            epoch = self.num_epoch
        if epoch is None:
            raise error(AssertionError, "save: give the epoch, or make the model with num_epoch")
        save_checkpoint(
            prefix, epoch, self.symbol, self.arg_params or {}, self.aux_params or {}, remove_amp_cast=remove_amp_cast
        )

    @staticmethod
    def load(prefix: str, epoch: int, ctx: Any = None, **kwargs: Any) -> FeedForward:
        """Make a model of a checkpoint.

        Parameters
        ----------
        prefix : str
        epoch : int
        ctx : Context or list of Context, optional
        **kwargs
            Further arguments of `FeedForward`.

        Returns
        -------
        FeedForward
        """
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        return FeedForward(symbol, ctx=ctx, arg_params=arg_params, aux_params=aux_params, begin_epoch=epoch, **kwargs)

    @staticmethod
    def create(
        symbol: Any,
        X: Any,
        y: Any = None,
        ctx: Any = None,
        num_epoch: int | None = None,
        epoch_size: int | None = None,
        optimizer: Any = "sgd",
        initializer: Any = initializer.Uniform(0.01),
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Any = None,
        batch_end_callback: Any = None,
        kvstore: Any = "local",
        logger: Any = None,
        work_load_list: Any = None,
        eval_end_callback: Any = None,
        eval_batch_end_callback: Any = None,
        **kwargs: Any,
    ) -> FeedForward:
        """Make a model and train it; the arguments are those of `FeedForward` and `fit`.

        Returns
        -------
        FeedForward
        """
        model = FeedForward(
            symbol,
            ctx=ctx,
            num_epoch=num_epoch,
            epoch_size=epoch_size,
            optimizer=optimizer,
            initializer=initializer,
            **kwargs,
        )
        model.fit(
            X,
            y,
            eval_data=eval_data,
            eval_metric=eval_metric,
            epoch_end_callback=epoch_end_callback,
            batch_end_callback=batch_end_callback,
            kvstore=kvstore,
            logger=logger,
            work_load_list=work_load_list,
            eval_end_callback=eval_end_callback,
            eval_batch_end_callback=eval_batch_end_callback,
        )
        return model

    # Executors and functions stay behind.
    def __getstate__(self) -> dict[str, Any]:
        return {**copy.copy(self.__dict__), "_pred_exec": None}
