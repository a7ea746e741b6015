"""Metrics that say how what batches give becomes one figure."""

from __future__ import annotations

from ..base import error
from .base import EvalMetric


class AveragedMetric(EvalMetric):
    """A metric whose figure is that of everything together (micro), or the mean of those of batches (macro)."""

    def __init__(
        self,
        name: str = "averaged",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
        average: str = "macro",
    ) -> None:
        if average not in ("macro", "micro"):
            raise error(ValueError, f"average must be 'macro' or 'micro', not {average!r}")
        self.average = average
        super().__init__(name, output_names, label_names, has_global_stats=True)
