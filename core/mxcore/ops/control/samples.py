"""Sub-graphs for the samples of control flow, composed when they are first asked for: the operators must be registered
by then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._core.graph import Graph, GraphF, Value, variable

__all__ = ["SampleGraph"]


class SampleGraph(Graph):
    """A sub-graph over variables.

    Parameters
    ----------
    names : str
        One letter for each variable, in the order in which the heads come upon them.
    compose : callable
        Values of the variables -> values of the heads.
    """

    def __init__(self, names: str, compose: Callable[..., list[Any]]) -> None:
        super().__init__([])
        self._names, self._compose = names, compose

    @property
    def heads(self) -> Any:
        if not self._heads:
            F = GraphF("step")
            self._heads = [y.entry for y in self._compose(*[Value((variable(n), 0), F) for n in self._names])]
        return self._heads

    @heads.setter
    def heads(self, value: Any) -> None:
        self._heads = list(value)

    def __repr__(self) -> str:
        return f"a graph over {', '.join(self._names)}"
