"""Counts of right and wrong answers to yes-or-no questions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import error
from ._averaged import AveragedMetric
from .base import check_label_shapes, host


@dataclass
class Counts:
    """How often class 1 was predicted and true."""

    tp: int = 0
    fp: int = 0
    fn: int = 0
    tn: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn, self.tn + other.tn)

    @property
    def total(self) -> int:
        """Number of answers."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 where it has no meaning."""
        precision = self.tp / (self.tp + self.fp) if self.tp + self.fp else 0.0
        recall = self.tp / (self.tp + self.fn) if self.tp + self.fn else 0.0
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0

    @property
    def mcc(self) -> float:
        """Matthews correlation; empty rows and columns of the table count as one."""
        sides = (self.tp + self.fp, self.tp + self.fn, self.tn + self.fp, self.tn + self.fn)
        return (self.tp * self.tn - self.fp * self.fn) / math.sqrt(math.prod(float(s) for s in sides if s))


def count(label: Any, pred: Any) -> Counts:
    """Count the answers in `pred` (n × 2 scores) to the questions with answers `label` (n numbers 0 or 1)."""
    label, scores = host(label, "int32").ravel(), host(pred)
    check_label_shapes(label, scores)
    if len(np.unique(label)) > 2:
        raise error(ValueError, f"this metric is for two classes, not {np.unique(label)[:5].tolist()}")
    yes, true = scores.argmax(axis=1) == 1, label == 1
    tp, fp, fn = (int(np.count_nonzero(x)) for x in (yes & true, yes & ~true, ~yes & true))
    return Counts(tp, fp, fn, len(label) - tp - fp - fn)


class BinaryMetric(AveragedMetric):
    """A metric on `Counts`, by their `score`."""

    def score(self, counts: Counts) -> float:
        """Return the figure that `counts` amount to."""
        raise error(NotImplementedError, f"metric {type(self).__name__} does not define score(counts)")

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        counts = sum((count(label, pred) for label, pred in zip(labels, preds)), Counts())
        if self.average == "macro":
            self._tally(self.score(counts), 1)
            return
        self._local += counts
        self._global += counts
        self.num_inst, self.global_num_inst = self._local.total, self._global.total
        self.sum_metric = self.score(self._local) * self.num_inst
        self.global_sum_metric = self.score(self._global) * self.global_num_inst

    def reset(self) -> None:
        super().reset()
        self._local, self._global = Counts(), Counts()

    def reset_local(self) -> None:
        super().reset_local()
        self._local = Counts()
