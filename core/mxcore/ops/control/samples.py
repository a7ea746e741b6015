"""Sub-graphs for the samples of control flow, composed when first asked for, after registration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._core.graph import Graph, variable
from ...composing import GraphF, Value
from ...testing.sample import Sample

__all__ = ["SAMPLES", "SampleGraph"]


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
        """Composed when they are first asked for."""
        if not self._heads:  # type: ignore[has-type]
            F = GraphF("step")
            self._heads = [y.entry for y in self._compose(*[Value((variable(n), 0), F) for n in self._names])]
        return self._heads

    @heads.setter
    def heads(self, value: Any) -> None:
        self._heads = list(value)

    def __repr__(self) -> str:
        return f"a graph over {', '.join(self._names)}"


_TWICE_OR_SQUARE = [
    Sample(
        [i],
        (2,),
        grad=(0, 1),
        mxnet="holds graphs",
        params=dict(
            cond=SampleGraph("i", lambda i: [i > 0]),
            then_branch=SampleGraph("x", lambda x: [x * 2]),
            else_branch=SampleGraph("x", lambda x: [x * x]),
            num_args=2,
            num_outputs=1,
            cond_input_locs=(0,),
            then_input_locs=(1,),
            else_input_locs=(1,),
        ),
    )
    for i in (1.0, -1.0)
]

#: Two outputs, and inputs that one branch alone reads.
_SUM_OR_PRODUCT = Sample(
    [0.0],
    (2, 3),
    (2, 3),
    grad=(0, 1, 1),
    mxnet="holds graphs",
    params=dict(
        cond=SampleGraph("i", lambda i: [i > 0]),
        then_branch=SampleGraph("x", lambda x: [x + x, x * x]),
        else_branch=SampleGraph("xy", lambda x, y: [x * y, y - x]),
        num_args=3,
        num_outputs=2,
        cond_input_locs=(0,),
        then_input_locs=(1,),
        else_input_locs=(1, 2),
    ),
)


def _steps(names: str, body: Any, shapes: Any, data: Any, states: Any, free: Any, outs: int) -> Sample:
    """A use of `foreach`: inputs of the body by letter, and what they are; its first `outs` results are stacked."""
    return Sample(
        *shapes,
        mxnet="holds a graph",
        params=dict(
            fn=SampleGraph(names, body),
            num_args=len(names),
            num_outputs=outs + len(states),
            num_out_data=outs,
            in_data_locs=data,
            in_state_locs=states,
            remain_locs=free,
        ),
    )


_FOREACH = [
    _steps("xws", lambda x, w, s: [x * w + s] * 2, [(3, 2), (2,), (2,)], (0,), (2,), (1,), 1),  # a running sum
    _steps("xy", lambda x, y: [x * y, x + y], [(3, 2), (3, 2)], (0, 1), (), (), 2),  # no states
    _steps("sxt", lambda s, x, t: [s * x, t + s], [(4, 2), (2,), (2,)], (1,), (0, 2), (), 0),  # states only
    _steps("xs", lambda x, s: [x * s, x + s], [(3,), (1,)], (0,), (1,), (), 1),  # numbers
    _steps("xs", lambda x, s: [x * s, s], [(1, 2, 2), (2, 2)], (0,), (1,), (), 1),  # a state that passes through
]

_WHILE = [
    Sample(
        (1,),
        (2,),
        mxnet="holds graphs",
        params=dict(
            cond=SampleGraph("i", lambda i: [i * i < 50]),
            func=SampleGraph("ix", lambda i, x: [i * x, i + 1, x * x]),
            num_args=2,
            num_outputs=3,
            num_out_data=1,
            max_iterations=3,
            cond_input_locs=(0,),
            func_input_locs=(0, 1),
            func_var_locs=(0, 1),
        ),
    ),
    # it ends before the most steps; a bound that only the condition reads, a factor that only the step reads
    Sample(
        [0.5],
        [2.0],
        (2,),
        (2,),
        mxnet="holds graphs",
        params=dict(
            cond=SampleGraph("in", lambda i, n: [i < n]),
            func=SampleGraph("xwi", lambda x, w, i: [x * w, i + 1, x + w]),
            num_args=4,
            num_outputs=3,
            num_out_data=1,
            max_iterations=5,
            cond_input_locs=(0, 1),
            func_input_locs=(2, 3, 0),
            func_var_locs=(2, 0),
        ),
    ),
    # nothing is stacked
    Sample(
        [0.75],
        [[1.5, -0.5]],
        mxnet="holds graphs",
        params=dict(
            cond=SampleGraph("i", lambda i: [i < 4]),
            func=SampleGraph("ix", lambda i, x: [i + 1, x * i]),
            num_args=2,
            num_outputs=2,
            num_out_data=0,
            max_iterations=9,
            cond_input_locs=(0,),
            func_input_locs=(0, 1),
            func_var_locs=(0, 1),
        ),
    ),
]

SAMPLES = {"_cond": [*_TWICE_OR_SQUARE, _SUM_OR_PRODUCT], "_foreach": _FOREACH, "_while_loop": _WHILE}
