"""One of two sub-graphs, as a third one decides."""

from __future__ import annotations

from typing import Any

from ..._core import infer
from ..._core.graph import Graph
from ..._core.op import op
from ...parameters import GraphParam, Int, Shape
from .facts import inner_facts, merged
from .loop import Loop, Predicate, Run, gradients, output_names, owned
from .replay import cond_on_arrays, replay

__all__ = ["cond"]


def _branch(graph: Graph) -> Loop:
    """A branch is a loop of one step, which collects all heads and carries none."""
    return Loop(graph, len(graph.heads), (), (), "cond")


@op(
    "_cond",
    inputs="data*",
    cond=GraphParam(),
    then_branch=GraphParam(),
    else_branch=GraphParam(),
    num_args=Int(ge=0),
    num_outputs=Int(ge=1, le=2**16),
    cond_input_locs=Shape(),
    then_input_locs=Shape(),
    else_input_locs=Shape(),
    stateful=True,
    outputs=output_names,
)
def cond(k, p, *data):
    """Run one of two sub-graphs, as a third one decides.

    Parameters
    ----------
    data : arrays
        Inputs of the sub-graphs.
    num_args : int
        How many; counted for you.
    cond : graph
        Gives one number: which of the branches to run.
    then_branch, else_branch : graph
        They give as many outputs, of the same dtypes.
    num_outputs : int
        How many.
    cond_input_locs, then_input_locs, else_input_locs : tuple of int
        Which of `data` the inputs of the three sub-graphs are.
    """
    ask, then, otherwise = owned(
        k, p, lambda: (Predicate(p.cond, "cond: pred"), _branch(p.then_branch), _branch(p.else_branch))
    )
    answer = ask(k, [data[j] for j in p.cond_input_locs])
    run = Run(
        then if answer else otherwise, k, [data[j] for j in (p.then_input_locs if answer else p.else_input_locs)], 1
    )
    outs, _ = run.forward(lambda _: True)
    return [y.reshape(y.shape[1:]) for y in outs], (run, answer)


@cond.backward
def _(k, p, saved, dys, ins, outs):
    run, answer = saved
    at = {j: i for i, j in enumerate(p.then_input_locs if answer else p.else_input_locs)}
    whole = [type(g)(g._data.reshape((1, *g.shape)), g._st) for g in dys]
    return gradients(run, whole, [at.get(j, -1) for j in range(p.num_args)], k.wanted, ins)


cond.replay_rule = replay(cond_on_arrays)


def _cond_facts(p: Any, ins: list[Any], what: str) -> tuple[list[Any], list[Any]]:
    told: list[list[Any]] = [[] for _ in ins]
    branches = []
    for graph, locs in (
        (p.cond, p.cond_input_locs),
        (p.then_branch, p.then_input_locs),
        (p.else_branch, p.else_input_locs),
    ):
        inner, heads = inner_facts(graph, {i: ins[j] for i, j in enumerate(locs)}, what)
        branches.append(heads)
        for v, j in zip(inner, locs):
            told[j].append(v)
    _, then, otherwise = branches
    if what == "shape":  # branches of different shapes make one that is known only by running
        outs = [a if a == b and infer.known(a) else None for a, b in zip(then, otherwise)]
    else:
        outs = [_one_dtype(i, a, b) for i, (a, b) in enumerate(zip(then, otherwise))]
    return [merged(v, what) for v in told], outs


def _one_dtype(i: int, a: Any, b: Any) -> Any:
    if a is not None and b is not None and a != b:
        raise TypeError(f"output {i} is {a.name} in the then-branch and {b.name} in the else-branch; cast one of them")
    return b if a is None else a


cond.shape(lambda p, ins, outs: _cond_facts(p, ins, "shape"))
cond.dtype(lambda p, ins, outs: _cond_facts(p, ins, "dtype"))
