"""Control flow as operators: loops over the first axis of arrays and while a condition holds, one of two branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core import infer
from ..._core.errors import error
from ..._core.graph import Graph
from ..._core.op import op
from ..._core.params import Params
from ...parameters import GraphParam, Int, Shape
from ...typing import Array, Call
from .inference import inner_facts, merged
from .loop import Loop, Predicate, Run, check_places, explained, gradients, output_names, owned
from .replay import cond_on_arrays, foreach_on_arrays, repeatable, while_on_arrays
from .states import held, states
from .unfold import unfolding

__all__ = ["cond", "foreach", "while_loop"]


@op(
    "_foreach",
    inputs="data*",
    fn=GraphParam(),
    num_args=Int(ge=0),
    num_outputs=Int(ge=1, le=2**16),
    num_out_data=Int(ge=0),
    in_state_locs=Shape(),
    in_data_locs=Shape(),
    remain_locs=Shape(),
    stateful=True,
    outputs=explained("_foreach", lambda p: _foreach_outputs(p)),
)
def foreach(k: Call, p: Params, *data: Array) -> Any:
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
    places = _foreach_places(p)
    lengths = {x.shape[0] for x in data[: len(p.in_data_locs)]}
    if len(lengths) > 1:
        raise error(ValueError, f"all data must have one length along axis 0, got {sorted(lengths)}")
    inputs: list[Any] = [None] * len(data)
    for x, i in zip(data, places):
        inputs[i] = x
    loop = owned(k, p, lambda: Loop(p.fn, p.num_out_data, p.in_data_locs, p.in_state_locs, "foreach"))
    run = Run(loop, k, inputs, lengths.pop() if lengths else 0)
    run.before = held(k, p, data)
    with repeatable(run.keys):
        outs, states = run.forward(lambda _: True)
    if len(outs) < p.num_out_data:
        raise error(ValueError, "the data has no elements, and the shapes of the outputs are known only by running")
    return [*outs, *states], run


def _foreach_places(p: Params) -> list[int]:
    """Input of the operator -> input of the sub-graph."""
    return [*p.in_data_locs, *p.in_state_locs, *p.remain_locs]


def _inverse(places: Sequence[int]) -> list[int]:
    return [places.index(i) for i in range(len(places))]


def _foreach_outputs(p: Params) -> list[str]:
    check_places(p, "fn", "in_data_locs", "in_state_locs", "remain_locs")
    return output_names(p, "fn", p.num_out_data + len(p.in_state_locs))


@foreach.backward
def _(k: Call, p: Params, run: Run, dys: list[Any], ins: list[Any], outs: list[Any]) -> Any:
    return gradients(run, dys, _foreach_places(p), k.wanted, ins)


foreach.replay_rule = unfolding(foreach_on_arrays, lambda run: run.keys, lambda run: run.before)
foreach.states_rule = states(fn=lambda p: _inverse(_foreach_places(p)))


def _foreach_facts(p: Params, ins: list[Any], what: str) -> tuple[list[Any], list[Any]]:
    places, n_d, shape = _foreach_places(p), len(p.in_data_locs), what == "shape"
    steps = max([v[0] for v in ins[:n_d] if v is not None], default=-1) if shape else -1
    # An array of one dimension comes in parts of one element.
    given = {
        i: (v[1:] or (1,)) if shape and j < n_d and v is not None else v for j, (i, v) in enumerate(zip(places, ins))
    }
    inner, heads = inner_facts(p.fn, given, what, [(p.num_out_data + j, i) for j, i in enumerate(p.in_state_locs)])
    back = [inner[i] for i in places]
    if shape:
        for j, v in enumerate(back[:n_d]):
            if v is not None:
                back[j] = ins[j] if ins[j] is not None and len(ins[j]) == 1 else (steps, *v)
        heads = [v if v is None or j >= p.num_out_data else (steps, *v) for j, v in enumerate(heads)]
    return back, heads


foreach.shape(lambda p, ins, outs: _foreach_facts(p, ins, "shape"))
foreach.dtype(lambda p, ins, outs: _foreach_facts(p, ins, "dtype"))


@op(
    "_while_loop",
    inputs="data*",
    cond=GraphParam(),
    func=GraphParam(),
    num_args=Int(ge=0),
    num_outputs=Int(ge=1, le=2**16),
    num_out_data=Int(ge=0),
    max_iterations=Int(ge=1),
    cond_input_locs=Shape(),
    func_input_locs=Shape(),
    func_var_locs=Shape(),
    stateful=True,
    outputs=explained("_while_loop", lambda p: _while_outputs(p)),
)
def while_loop(k: Call, p: Params, *data: Array) -> Any:
    """Run a sub-graph while another one says so, handing variables from step to step.

    Parameters
    ----------
    data : arrays
        Loop variables and free variables of the sub-graphs.
    num_args : int
        How many; counted for you.
    cond : graph
        Gives one number: whether to take another step.
    func : graph
        Gives outputs and new loop variables.
    num_outputs, num_out_data : int
        All outputs, and how many of them are stacked over the steps, with zeros after the last step; the rest are final
        variables.
    max_iterations : int
        Most steps; the length of what is stacked.
    cond_input_locs, func_input_locs : tuple of int
        Which of `data` the inputs of the two sub-graphs are.
    func_var_locs : tuple of int
        Which inputs of `func` the loop variables are.
    """
    graph, carried = p.func, list(p.func_var_locs)
    loop, ask = owned(
        k, p, lambda: (Loop(graph, p.num_out_data, (), carried, "while_loop"), Predicate(p.cond, "while_loop: cond"))
    )
    run = Run(loop, k, [data[j] for j in p.func_input_locs], p.max_iterations)
    run.before = held(k, p, data)
    at = {p.func_input_locs[i]: i for i in carried}
    with repeatable(run.keys):
        outs, last = run.forward(lambda now: ask(k, [now[at[j]] if j in at else data[j] for j in p.cond_input_locs]))
    if len(outs) < p.num_out_data:
        raise error(
            ValueError,
            "cond was false at once, and the shapes of the outputs are known only by running; "
            "start with variables for which it holds",
        )
    padded = []
    for y in outs:
        whole = k.xp.zeros((p.max_iterations, *y.shape[1:]), y.dtype)
        whole[: run.n] = y
        padded.append(whole)
    return [*padded, *last], run


def _while_places(p: Params) -> list[int]:
    """Input of the operator -> input of `func`; -1 for those that only `cond` reads."""
    at = {j: i for i, j in enumerate(p.func_input_locs)}
    return [at.get(j, -1) for j in range(p.num_args)]


def _while_outputs(p: Params) -> list[str]:
    check_places(p, "cond", "cond_input_locs", of=p.num_args)
    check_places(p, "func", "func_input_locs", of=p.num_args)
    n, places = len(p.func_input_locs), p.func_var_locs
    if len({*places}) != len(places) or not all(0 <= i < n for i in places):
        raise ValueError(f"func_var_locs must name different ones of the {n} inputs of func, got {places}")
    return output_names(p, "func", p.num_out_data + len(places))


@while_loop.backward
def _(k: Call, p: Params, run: Run, dys: list[Any], ins: list[Any], outs: list[Any]) -> Any:
    return gradients(run, dys, _while_places(p), k.wanted, ins)


while_loop.replay_rule = unfolding(while_on_arrays, lambda run: run.keys, lambda run: run.before)
while_loop.states_rule = states(func=lambda p: p.func_input_locs, cond=lambda p: p.cond_input_locs)


def _while_facts(p: Params, ins: list[Any], what: str) -> tuple[list[Any], list[Any]]:
    shape = what == "shape"
    carried = [(p.num_out_data + j, i) for j, i in enumerate(p.func_var_locs)]
    inner, heads = inner_facts(p.func, {i: ins[j] for i, j in enumerate(p.func_input_locs)}, what, carried)
    asked, _ = inner_facts(p.cond, {i: ins[j] for i, j in enumerate(p.cond_input_locs)}, what)
    told: list[list[Any]] = [[] for _ in ins]
    for found, places in ((inner, p.func_input_locs), (asked, p.cond_input_locs)):
        for v, j in zip(found, places):
            told[j].append(v)
    back = [merged(v, what) for v in told]
    if not shape:
        for head, i in carried:
            back[p.func_input_locs[i]] = heads[head] = merged([back[p.func_input_locs[i]], heads[head]], what)
        return back, heads
    # A variable that changes its shape makes all shapes after it unknown.
    if any(heads[head] is not None and inner[i] is not None and heads[head] != inner[i] for head, i in carried):
        return back, [None] * len(heads)
    return back, [v if v is None or j >= p.num_out_data else (p.max_iterations, *v) for j, v in enumerate(heads)]


while_loop.shape(lambda p, ins, outs: _while_facts(p, ins, "shape"))
while_loop.dtype(lambda p, ins, outs: _while_facts(p, ins, "dtype"))


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
    outputs=explained("_cond", lambda p: _cond_outputs(p)),
)
def cond(k: Call, p: Params, *data: Array) -> Any:
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
    keys: list[Any] = []
    before = held(k, p, data)
    with repeatable(keys):
        answer = ask(k, [data[j] for j in p.cond_input_locs])
        run = Run(
            then if answer else otherwise, k, [data[j] for j in (p.then_input_locs if answer else p.else_input_locs)], 1
        )
        outs, _ = run.forward(lambda _: True)
    run.keys, run.before = keys, before
    return [y.reshape(y.shape[1:]) for y in outs], (run, answer)


def _cond_outputs(p: Params) -> list[str]:
    for graph in ("cond", "then", "else"):
        check_places(p, graph if graph == "cond" else f"{graph}_branch", f"{graph}_input_locs", of=p.num_args)
    output_names(p, "else_branch", p.num_outputs)
    return output_names(p, "then_branch", p.num_outputs)


@cond.backward
def _(k: Call, p: Params, saved: Any, dys: list[Any], ins: list[Any], outs: list[Any]) -> Any:
    run, answer = saved
    at = {j: i for i, j in enumerate(p.then_input_locs if answer else p.else_input_locs)}
    whole = [type(g)(g._data.reshape((1, *g.shape)), g._st) for g in dys]
    return gradients(run, whole, [at.get(j, -1) for j in range(p.num_args)], k.wanted, ins)


cond.replay_rule = unfolding(cond_on_arrays, lambda saved: saved[0].keys, lambda saved: saved[0].before)
cond.states_rule = states(
    cond=lambda p: p.cond_input_locs, then_branch=lambda p: p.then_input_locs, else_branch=lambda p: p.else_input_locs
)


def _cond_facts(p: Params, ins: list[Any], what: str) -> tuple[list[Any], list[Any]]:
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
