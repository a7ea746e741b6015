"""Control flow: operators that hold sub-graphs.

The loop runs its sub-graph eagerly, step by step, on a tape of its own if it is to be differentiated; the tape is the
operator's state. So one implementation serves arrays, graphs and every device.
"""
from __future__ import annotations

from typing import Any

from .._core import dispatch, infer, registry, tape
from .._core.array import Storage, faces
from .._core.graph import Graph, GraphF, Value, topo, variable
from .._core.op import op
from .._core.params import GraphParam, Int, Shape
from .._core.state import state
from ..testing.sample import Sample

__all__ = ["run_graph"]


def run_graph(graph: Graph, values: dict[str, Any], ctx: Any = None) -> list[Any]:
    """Run a graph on arrays, node by node; `values` are those of its variables, by name, `ctx` is where nodes without inputs run."""
    env: dict[Any, Any] = {}
    for n in topo(graph.heads):
        if n.op is None:
            env[n, 0] = values[n.name]
            continue
        out = dispatch.invoke(n.op, [env[e] for e in n.inputs], n.params, ctx=ctx)
        outs = out if isinstance(out, list) else [out]
        for i, y in enumerate(outs):
            env[n, i] = y
    return [env[e] for e in graph.heads]


def _inputs(graph: Graph) -> list[str]:
    return [n.name for n in graph.variables()]


def _places(p: Any) -> tuple[list[int], list[int], list[int]]:
    """For data, states and the rest: where each input of the operator goes among the inputs of the sub-graph."""
    return list(p.in_data_locs), list(p.in_state_locs), list(p.remain_locs)


class _RunningSum(Graph):
    """The sub-graph of the sample below, composed when it is first asked for: the operators must be registered by then."""

    def __init__(self) -> None:
        super().__init__([])

    @property
    def heads(self) -> Any:
        if not self._heads:
            F = GraphF("step")
            x, w, s = (Value((variable(n), 0), F) for n in "xws")
            y = x * w + s
            self._heads = [y.entry, y.entry]
        return self._heads

    @heads.setter
    def heads(self, value: Any) -> None:
        self._heads = list(value)

    def __repr__(self) -> str:
        return "a running sum"


_SAMPLE = Sample((3, 2), (2,), (2,), mxnet="holds a graph", params=dict(
    fn=_RunningSum(), num_args=3, num_outputs=2, num_out_data=1, in_data_locs=(0,), in_state_locs=(2,), remain_locs=(1,)))


@op("_foreach", inputs="data*", fn=GraphParam(), num_outputs=Int(), num_out_data=Int(), in_state_locs=Shape(()), in_data_locs=Shape(()),
    remain_locs=Shape(()), stateful=True, samples=[_SAMPLE],
    outputs=lambda p: ["output"] if p.num_outputs == 1 else [f"output{i}" for i in range(p.num_outputs)])
def foreach(k, p, *data):
    """Run a sub-graph over the first axis of arrays, handing states from step to step.

    Parameters
    ----------
    data : arrays
        Those to iterate over, then the initial states, then free variables of the sub-graph.
    num_args : int
        How many; counted for you.
    fn : graph
        Takes one step's data, states and free variables; gives outputs and new states.
    num_outputs, num_out_data : int
        All outputs, and how many of them are stacked over the steps; the rest are final states.
    in_data_locs, in_state_locs, remain_locs : tuple of int
        Which inputs of the sub-graph the three groups are.
    """
    graph = p.fn
    names = _inputs(graph)
    d_at, s_at, r_at = _places(p)
    recording = k.is_train or state.record
    leaves = [faces["default"](d, Storage(k.ctx)) for d in data]
    was = (state.record, state.train)
    state.record, state.train = recording, k.is_train
    try:
        if recording:
            for x in leaves:
                tape.mark(x, None, "write")
        stacked = leaves[:len(d_at)]
        states = list(leaves[len(d_at):len(d_at) + len(s_at)])
        fixed = {names[i]: x for i, x in zip(r_at, leaves[len(d_at) + len(s_at):])}
        collected: list[list[Any]] = [[] for _ in range(p.num_out_data)]
        pick = registry.ops.get("_basic_index")
        for t in range(data[0].shape[0] if d_at else 0):
            step = dict(fixed)
            for i, x in zip(d_at, stacked):
                step[names[i]] = pick(x, index=(t, *[("s", None, None, None)] * (len(x.shape) - 1)) if len(x.shape) > 1
                                      else (("s", t, t + 1, None),))
            for i, x in zip(s_at, states):
                step[names[i]] = x
            outs = run_graph(graph, step, k.ctx)
            for c, y in zip(collected, outs):
                c.append(y)
            states = outs[p.num_out_data:]
        results = [registry.ops.get("stack")(*c, axis=0) for c in collected] + states
    finally:
        state.record, state.train = was
    for y in results:
        y.wait_to_read()
    return [y._data for y in results], (leaves, results)


@foreach.backward
def _(k, p, saved, dys, ins, outs):
    leaves, results = saved
    pairs = [(y, g) for y, g in zip(results, dys) if y._entry is not None]
    return tape.backward([y for y, _ in pairs], [g for _, g in pairs], retain_graph=True, variables=leaves)


def _step_facts(p: Any, ins: list[Any], what: str) -> tuple[list[Any], list[Any]]:
    """Infer through one step of the sub-graph; returns what it says of the operator's inputs and outputs."""
    graph, names = p.fn, _inputs(p.fn)
    d_at, s_at, r_at = _places(p)
    n_d, n_s = len(d_at), len(s_at)
    shape = what == "shape"
    places = {n.name: n for n in graph.variables()}
    given: dict[Any, Any] = {}
    steps = -1
    for i, v in zip((*d_at, *s_at, *r_at), ins):
        if v is None:
            continue
        sliced = i in d_at and shape
        if sliced:
            steps = max(steps, v[0])
        given[places[names[i]], 0] = (v[1:] or (1,)) if sliced else v
    # A state has the shape it will be replaced by.
    heads = graph.heads
    for _ in range(2):
        found = infer.infer_graph(topo(heads), given, what)
        for j, i in enumerate(s_at):
            e, new = (places[names[i]], 0), found.get(heads[p.num_out_data + j])
            if given.get(e) is None and new is not None:
                given[e] = new
    back = []
    for j, i in enumerate((*d_at, *s_at, *r_at)):
        v = found.get((places[names[i]], 0))
        if v is not None and j < n_d and shape:
            v = ins[j] if ins[j] is not None and len(ins[j]) == 1 else (steps, *v)
        back.append(v)
    outs = []
    for j, e in enumerate(heads):
        v = found.get(e)
        outs.append(v if v is None or not shape or j >= p.num_out_data else (steps, *v))
    return back, outs[:p.num_out_data + n_s]


foreach.shape(lambda p, ins, outs: _step_facts(p, ins, "shape"))
foreach.dtype(lambda p, ins, outs: _step_facts(p, ins, "dtype"))
