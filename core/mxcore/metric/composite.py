"""Several metrics as one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from ..base import error
from .base import EvalMetric, named


class CompositeEvalMetric(EvalMetric):
    """Several metrics that take in the same batches.

    Parameters
    ----------
    metrics : list of EvalMetric or whatever `mx.metric.create` takes, optional
        The children.
    name : str
        Name of the whole, not shown with the values.
    output_names, label_names
        As for `EvalMetric`; `update_dict` hands the children only these.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.CompositeEvalMetric``.

    Examples
    --------
    >>> CompositeEvalMetric(["acc", "f1"]).get()[0]
    ['accuracy', 'f1']
    """

    def __init__(
        self,
        metrics: Iterable[Any] | None = None,
        name: str = "composite",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
    ) -> None:
        from . import create

        self.metrics = [create(metric) for metric in metrics or ()]
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def add(self, metric: Any) -> None:
        """Append a child.

        Parameters
        ----------
        metric : EvalMetric or whatever `mx.metric.create` takes
            The new child.
        """
        from . import create

        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        """Return a child.

        Parameters
        ----------
        index : int
            Its position.

        Returns
        -------
        EvalMetric

        Raises
        ------
        MXNetError
            (also ValueError) if there are fewer children.
        """
        try:
            return self.metrics[index]
        except IndexError:
            raise error(ValueError, f"metric {index} of {len(self.metrics)} does not exist") from None

    def update_dict(self, labels: Mapping[str, Any], preds: Mapping[str, Any]) -> None:
        if self.label_names is not None:
            labels = OrderedDict(item for item in labels.items() if item[0] in self.label_names)
        if self.output_names is not None:
            preds = OrderedDict(item for item in preds.items() if item[0] in self.output_names)
        for metric in self.metrics:
            metric.update_dict(labels, preds)

    def update(self, labels: Any, preds: Any) -> None:
        for metric in self.metrics:
            metric.update(labels, preds)

    def reset(self) -> None:
        for metric in self.metrics:
            metric.reset()

    def reset_local(self) -> None:
        for metric in self.metrics:
            metric.reset_local()

    def get(self) -> tuple[Any, Any]:
        return self._gathered(named(metric, "get") for metric in self.metrics)

    def get_global(self) -> tuple[Any, Any]:
        return self._gathered(named(metric, "get_global") for metric in self.metrics)

    @staticmethod
    def _gathered(found: Iterable[tuple[Any, Any]]) -> tuple[list[str], list[float]]:
        names, values = [], []
        for name, value in found:
            names += name if isinstance(name, list) else [name]
            values += value if isinstance(value, list) else [value]
        return names, values

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "metrics": [metric.get_config() for metric in self.metrics]}
