"""The base of metrics and the check that labels and predictions fit."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from ..base import asserted, error
from ..halves import wide

Array: TypeAlias = np.ndarray[Any, Any]


def check_label_shapes(labels: Any, preds: Any, wrap: bool = False, shape: bool = False) -> tuple[Any, Any]:
    """Check that labels and predictions agree in number or in shape.

    Parameters
    ----------
    labels, preds : list of NDArray, or NDArray
        The true and the predicted values.
    wrap : bool
        Return a single array as a list of one.
    shape : bool
        Compare shapes instead of lengths.

    Returns
    -------
    labels, preds
        As given, or wrapped.

    Raises
    ------
    MXNetError
        (also ValueError) if they differ.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.check_label_shapes``.

    Examples
    --------
    >>> check_label_shapes([1, 2], [3, 4])
    ([1, 2], [3, 4])
    """
    ours, theirs = (labels.shape, preds.shape) if shape else (len(labels), len(preds))
    if ours != theirs:
        what = "shape" if shape else "number"
        raise error(ValueError, f"{what} of labels, {ours}, does not match that of predictions, {theirs}")
    if wrap:
        labels = labels if isinstance(labels, (list, tuple)) else [labels]
        preds = preds if isinstance(preds, (list, tuple)) else [preds]
    return labels, preds


def as_it_is(array: Any) -> Array:
    """Return an NDArray (or anything like an array) as a NumPy array."""
    found: Array = array.asnumpy() if hasattr(array, "asnumpy") else np.asarray(array)
    return found


def host(array: Any, dtype: Any = None) -> Array:
    """Return an array as a NumPy array of `dtype`; unless told of its own, or of float32 for half precision."""
    found = as_it_is(array)
    wider: Array = wide(found) if dtype is None else found.astype(dtype, copy=False)
    return wider


class EvalMetric:
    """A figure accumulated over batches: a total, and the number of things it is the mean of.

    Each metric keeps two accounts: the local one starts anew at each `reset_local` (a progress display),
    the global one at each `reset` (an epoch). Subclasses define `update`, which adds to `sum_metric` and `num_inst`,
    and, if they say ``has_global_stats=True``, to `global_sum_metric` and `global_num_inst`, too.

    Parameters
    ----------
    name : str
        Name shown with the value.
    output_names, label_names : list of str or None
        Which outputs and labels `update_dict` picks; all by default.
    has_global_stats : bool
        Whether the subclass fills the global account.
    **kwargs
        The subclass's own arguments, for `get_config`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.EvalMetric``.

    Examples
    --------
    >>> class Mean(EvalMetric):
    ...     def update(self, labels, preds):
    ...         self.sum_metric += sum(preds)
    ...         self.num_inst += len(preds)
    >>> m = Mean("mean")
    >>> m.update(None, [1, 2, 6])
    >>> m.get()
    ('mean', 3.0)
    """

    def __init__(
        self, name: str, output_names: list[str] | None = None, label_names: list[str] | None = None, **kwargs: Any
    ) -> None:
        self.name = str(name)
        self.output_names = output_names
        self.label_names = label_names
        self._has_global_stats = kwargs.pop("has_global_stats", False)
        self._kwargs = kwargs
        self.reset()

    def __str__(self) -> str:
        return f"EvalMetric: {dict(self.get_name_value())}"

    def get_config(self) -> dict[str, Any]:
        """Return the arguments as a dictionary that `mx.metric.create` takes.

        Returns
        -------
        dict
        """
        return {
            **self._kwargs,
            "metric": type(self).__name__,
            "name": self.name,
            "output_names": self.output_names,
            "label_names": self.label_names,
        }

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        """Take in one batch given by names.

        Parameters
        ----------
        label, pred : dict of str to NDArray
            True and predicted values; `label_names` and `output_names` say which count.
        """
        self.update(_picked(label, self.label_names, "label"), _picked(pred, self.output_names, "output"))

    def update(self, labels: Any, preds: Any) -> None:
        """Take in one batch.

        Parameters
        ----------
        labels : list of NDArray
            The true values.
        preds : list of NDArray
            The predicted values.
        """
        raise error(NotImplementedError, f"metric {type(self).__name__} does not define update()")

    def _tally(self, total: float, count: int) -> None:
        """Enter `total`, the sum over `count` things, in both accounts."""
        self.sum_metric += total
        self.num_inst += count
        self.global_sum_metric += total
        self.global_num_inst += count

    def reset(self) -> None:
        """Empty both accounts."""
        self.num_inst = 0
        self.sum_metric = 0.0
        self.global_num_inst = 0
        self.global_sum_metric = 0.0

    def reset_local(self) -> None:
        """Empty the local account."""
        self.num_inst = 0
        self.sum_metric = 0.0

    def _value(self, total: float, count: int) -> float:
        """Return the figure that an account of `count` things with sum `total` amounts to: their mean."""
        return total / count

    def get(self) -> tuple[Any, Any]:
        """Return the name and the value since the last reset of any kind.

        Returns
        -------
        name : str or list of str
        value : float or list of float
            NaN as long as nothing was taken in.
        """
        if self.num_inst == 0:
            return self.name, float("nan")
        return self.name, self._value(self.sum_metric, self.num_inst)

    def get_global(self) -> tuple[Any, Any]:
        """Return the name and the value since the last `reset`.

        Returns
        -------
        name : str or list of str
        value : float or list of float
        """
        if not self._has_global_stats:
            return self.get()
        if self.global_num_inst == 0:
            return self.name, float("nan")
        return self.name, self._value(self.global_sum_metric, self.global_num_inst)

    def get_name_value(self) -> list[tuple[str, float]]:
        """Return what `get` does as a list of pairs.

        Returns
        -------
        list of (str, float)
        """
        return _pairs(*named(self, "get"))

    def get_global_name_value(self) -> list[tuple[str, float]]:
        """Return what `get_global` does as a list of pairs.

        Returns
        -------
        list of (str, float)
        """
        return _pairs(*named(self, "get_global"))


class PairMetric(EvalMetric):
    """A metric that looks at one label and one prediction at a time, as NumPy arrays.

    Subclasses define `measure`. Parameters as for `EvalMetric`.

    Examples
    --------
    >>> class Bias(PairMetric):
    ...     def measure(self, label, pred):
    ...         return (pred - label).sum(), label.size
    >>> m = Bias("bias")
    >>> m.update([np.array([1.0, 2.0])], [np.array([2.0, 3.0])])
    >>> float(m.get()[1])
    1.0
    """

    def __init__(
        self, name: str, output_names: list[str] | None = None, label_names: list[str] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True, **kwargs)

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds):
            self._tally(*self.measure(host(label), host(pred)))

    def measure(self, label: Array, pred: Array) -> tuple[float, int]:
        """Return the sum of the figure over one label and one prediction, and the number of things summed.

        Parameters
        ----------
        label, pred : numpy.ndarray
            The true and the predicted values.

        Returns
        -------
        total : float
        count : int
        """
        raise error(NotImplementedError, f"metric {type(self).__name__} does not define measure()")


def same_length(label: Array, pred: Array) -> None:
    """Raise an error unless two arrays have the same number of rows."""
    if len(label) != len(pred):
        raise asserted(ValueError, f"labels of shape {label.shape} do not fit predictions of shape {pred.shape}")


def _picked(arrays: Mapping[str, Any], names: list[str] | None, kind: str) -> list[Any]:
    if names is None:
        return list(arrays.values())
    missing = [name for name in names if name not in arrays]
    if missing:
        raise error(KeyError, f"the metric wants {kind} {missing[0]!r}, but there are only {list(arrays)}")
    return [arrays[name] for name in names]


def named(metric: EvalMetric, method: str) -> tuple[Any, Any]:
    """What `get` or `get_global` of a metric gives: a name and a value, or lists of them."""
    found = getattr(metric, method)()
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        raise error(
            TypeError,
            f"metric {type(metric).__name__} of {type(metric).__module__}: {method}() returned {reprlib.repr(found)}; "
            "(name, value) is needed, or two lists of them",
        )
    return found[0], found[1]


def _pairs(name: Any, value: Any) -> list[tuple[str, float]]:
    names = name if isinstance(name, list) else [name]
    values = value if isinstance(value, list) else [value]
    return list(zip(names, values))
