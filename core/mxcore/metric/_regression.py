"""What the metrics of real-valued predictions share."""

from ..base import error
from .base import PairMetric


class RegressionMetric(PairMetric):
    """A mean over batches of a figure of ``label - prediction``; vectors count as columns."""

    def measure(self, label, pred):
        label, pred = (a.reshape(-1, 1) if a.ndim == 1 else a for a in (label, pred))
        return float(self.reduce(label - pred)), 1

    def reduce(self, difference):
        """Return the figure of one batch from its differences."""
        raise error(NotImplementedError, f"metric {type(self).__name__} does not define reduce(difference)")
