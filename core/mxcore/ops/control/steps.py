"""Runs of a sub-graph, one after the other, each with its gradient.

Whoever runs a sub-graph asks :func:`steps_for`. Where executors are loaded they compile it, once for each kind of
inputs; what cannot be compiled (operators that keep states, results of unknown shape) runs operator by operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._core import reverse, tape
from ..._core.array import Storage, faces
from ..._core.graph import Graph
from ..._core.state import state
from .interpret import interpret
from .unfold import recorded

__all__ = ["EagerSteps", "hooks", "input_names", "steps_for"]

#: ``hooks["compile"]``, set by the executor: ``(graph, names, inputs, ctx, is_train, wrt, carried, shared) -> steps or
#: None``.
hooks: dict[str, Callable[..., Any]] = {}


def input_names(graph: Graph) -> list[str]:
    """The inputs of a sub-graph: its variables in order of first use."""
    found = graph.info.get("inputs")
    if found is None:
        found = graph.info["inputs"] = [n.name for n in graph.variables()]
    return found


def steps_for(
    graph: Graph,
    inputs: Sequence[Any],
    k: Any,
    wrt: tuple[int, ...] | None,
    record: bool,
    carried: Sequence[tuple[int, int]] = (),
    shared: frozenset[int] = frozenset(),
) -> Any:
    """What runs a sub-graph on inputs like these device arrays.

    Parameters
    ----------
    graph : Graph
    inputs : sequence of device arrays
        In the order of :func:`input_names`.
    k : OpContext
        Where and in which mode.
    wrt : tuple of int, optional
        Inputs whose gradients are known to be wanted; without any, what is compiled keeps nothing for them.
    record : bool
        Gradients may be wanted: what cannot be run again is recorded.
    carried : sequence of (int, int)
        Heads that become inputs at the next step, and must be like them in what is compiled: (head, input).
    shared : frozenset of int
        Inputs that are the same at every step of several, whose gradients add up.

    Returns
    -------
    EagerSteps, or something with the same methods
    """
    compile = hooks.get("compile")
    found = (
        None if compile is None else compile(graph, input_names(graph), inputs, k.ctx, k.is_train, wrt, carried, shared)
    )
    return EagerSteps(graph, k.ctx, k.is_train, record or wrt is not None) if found is None else found


def _finish(results: Sequence[Any], leaves: Sequence[Any]) -> None:
    """Wait for what a run computed and moves: only memory goes out, of which the engine knows nothing."""
    for x in (*results, *leaves):
        x.wait_to_read()


class EagerSteps:
    """Runs a sub-graph operator by operator, each run on a tape of its own.

    Attributes
    ----------
    specs : None
        Shapes and dtypes of the heads: not known beforehand.
    recorded : bool
        Gradients can be asked for.
    """

    specs = None
    keys: tuple[Any, ...] = ()

    def __init__(self, graph: Graph, ctx: Any, is_train: bool, recorded: bool) -> None:
        self.graph, self.ctx, self.is_train, self.recorded = graph, ctx, is_train, recorded
        self._names = input_names(graph)
        self._runs: dict[int, tuple[list[Any], list[Any]]] = {}

    def renew(self) -> EagerSteps:
        """Ready for another sequence of runs, while somebody may still ask for gradients of this one."""
        return EagerSteps(self.graph, self.ctx, self.is_train, self.recorded)

    def covers(self, wanted: Sequence[int]) -> bool:
        """Whether the gradients of these inputs can be asked for."""
        return self.recorded or not wanted

    def forward(self, t: int, inputs: Sequence[Any], places: Sequence[Any], again: Any = None) -> list[Any]:
        """Run for the `t`-th time; the heads are new device arrays (places are for steps whose shapes are known)."""
        leaves = [faces["default"](d, Storage(self.ctx)) for d in inputs]
        was = (state.record, state.train)
        state.record, state.train = self.recorded, self.is_train
        try:
            if self.recorded:
                for x in leaves:
                    tape.mark(x, None, "write")
            heads = interpret(self.graph.heads, dict(zip(self._names, leaves)), self.ctx)
        finally:
            state.record, state.train = was
        _finish(heads, leaves)
        if self.recorded:
            self._runs[t] = leaves, heads
        return [y._data for y in heads]

    def backward(self, t: int, dys: Sequence[Any], wanted: Sequence[int]) -> list[Any]:
        """Gradients of the inputs `wanted` of the `t`-th run, given those of its heads; None is zero."""
        leaves, heads = self._runs[t]
        pairs = [(y, g) for y, g in zip(heads, dys) if g is not None and y._entry is not None and y._entry[0].flows]
        reached = {id(e[0]) for n in recorded([y for y, _ in pairs]) for e in n.parents if e is not None}
        reached.update(id(y._entry[0]) for y, _ in pairs)
        asked = [i for i in wanted if id(leaves[i]._entry[0]) in reached]
        if not asked:
            return [None] * len(wanted)
        face = faces["default"]
        found = (
            reverse.backward(
                [y for y, _ in pairs],
                [face(g, Storage(self.ctx)) for _, g in pairs],
                retain_graph=True,
                train_mode=self.is_train,
                variables=[leaves[i] for i in asked],
            )
            or ()
        )
        _finish(found, leaves)
        grads = {i: g._data for i, g in zip(asked, found)}
        return [grads.get(i) for i in wanted]

    def finish(self) -> dict[int, Any]:
        """Gradients that `backward` left for the end: none."""
        return {}
