"""Loops over a sub-graph: some of its heads are collected, the others become its inputs at the next step."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core.errors import error
from ..._core.graph import Graph
from ..._core.state import state
from .steps import steps_for

__all__ = ["Loop", "loop_of", "new_zeros"]


class Loop:
    """One loop of one owner; a program keeps its loops, with the memory of their steps.

    Parameters
    ----------
    graph : Graph
    n_out : int
        The first heads: collected along a new first axis.
    data, carried : sequence of int
        Inputs of the sub-graph that take one step's part of an array, and those that the other heads become.
    label : str
        What errors call it.
    """

    def __init__(self, graph: Graph, n_out: int, data: Sequence[int], carried: Sequence[int], label: str) -> None:
        self.graph, self.n_out, self.data, self.carried, self.label = graph, n_out, list(data), list(carried), label
        self.n_in = len(graph.variables())
        #: Training mode -> inputs whose gradients were asked for the last time.
        self.wrt: dict[bool, tuple[int, ...]] = {}
        self._kinds: dict[Any, Any] = {}
        self._slices: dict[int, tuple[Any, list[Any]]] = {}
        self._memory: dict[Any, list[Any]] = {}
        self._outputs: dict[Any, list[Any]] = {}

    def forward(self, k: Any, inputs: Sequence[Any], rows: int, more: Callable[[int, Sequence[Any]], bool],
                pad: bool) -> tuple[list[Any], list[Any], Run]:
        """Run while `more(step, inputs of the step)`.

        Parameters
        ----------
        k : K
        inputs : sequence of device arrays
            Of the sub-graph at the first step; those at `data` whole.
        rows : int
            Most steps; the length of what is collected.
        more : callable
        pad : bool
            Rows that no step fills are zero.

        Returns
        -------
        (collected, carried, run)
            Device arrays, and what `backward` needs.
        """
        wrt = self.wrt.get(k.is_train)
        run = Run(self, k, inputs)
        if wrt is None and (state.record or k.is_train):
            wrt = ()
        run.steps = self._steps(k, run, wrt, rows)
        outs, last = run.forward(rows, more)
        if pad:
            for y in outs:
                y[run.n:] = 0
        return outs, last, run

    def _steps(self, k: Any, run: Run, wrt: tuple[int, ...] | None, rows: int) -> Any:
        """Steps that fit; those of an earlier run if it is over."""
        key = (k.ctx, k.is_train, wrt, tuple([(x.shape, x.dtype) for x in run.inputs]))
        kept = self._kinds.get(key) if k.shapes is not None else None
        if kept is not None:
            return kept.renew()
        first = run.parts(0, rows)
        found = steps_for(self.graph, first, k, wrt)
        if found.specs is not None:
            changed = any(found.specs[self.n_out + j].shape != first[i].shape for j, i in enumerate(self.carried))
            if changed:  # every step has its own shapes
                from .steps import EagerSteps

                found = EagerSteps(self.graph, k.ctx, k.is_train, wrt)
        return found
