"""Correlation of several classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Array, EvalMetric, check_label_shapes, host


class PCC(EvalMetric):
    """The Pearson correlation of k classes, the Matthews correlation for k = 2.

    Parameters
    ----------
    name, output_names, label_names
        As for `EvalMetric`.
    has_global_stats : bool
        Whether `get_global` has an account of its own.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.PCC``; J. Gorodkin, Comput. Biol. Chem. 28 (2004), 367-374.
    The table of counts grows with the classes seen.

    Examples
    --------
    >>> m = PCC()
    >>> m.update([np.array([0, 1, 2])], [np.array([0, 1, 2])])
    >>> float(m.get()[1])
    1.0
    """

    _local: Array
    _global: Array

    def __init__(
        self,
        name: str = "pcc",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
        has_global_stats: bool = True,
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=has_global_stats)

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds):
            label, pred = host(label, "int32"), host(pred)
            if pred.shape != label.shape:
                pred = pred.argmax(axis=1)
            label, pred = label.ravel(), pred.astype("int32").ravel()
            check_label_shapes(label, pred)
            table = _table(pred, label)
            self._local, self._global = _sum(self._local, table), _sum(self._global, table)
            self.num_inst += 1
            self.global_num_inst += 1

    def reset(self) -> None:
        self.global_num_inst = 0
        self._global = np.zeros((2, 2))
        self.reset_local()

    def reset_local(self) -> None:
        self.num_inst = 0
        self._local = np.zeros((2, 2))

    @property
    def sum_metric(self) -> float:  # type: ignore[override]  # it follows from the table
        """Correlation of the local account, times its number of batches."""
        return _correlation(self._local) * self.num_inst

    @property
    def global_sum_metric(self) -> float:  # type: ignore[override]  # it follows from the table
        """Correlation of the global account, times its number of batches."""
        return _correlation(self._global) * self.global_num_inst


def _table(pred: Array, label: Array) -> Array:
    """Count the pairs: rows predicted, columns true."""
    k = max(2, int(pred.max(initial=0)) + 1, int(label.max(initial=0)) + 1)
    table = np.zeros((k, k))
    np.add.at(table, (pred, label), 1)
    return table


def _sum(a: Array, b: Array) -> Array:
    if len(a) < len(b):
        a, b = b, a
    a = a.copy()
    a[: len(b), : len(b)] += b
    return a


def _correlation(table: Array) -> float:
    n, rows, columns = table.sum(), table.sum(axis=1), table.sum(axis=0)
    var_rows, var_columns = (rows * (n - rows)).sum(), (columns * (n - columns)).sum()
    if var_rows == 0 or var_columns == 0:
        return float("nan")
    return float((table.diagonal() * n - rows * columns).sum() / (var_rows * var_columns) ** 0.5)
