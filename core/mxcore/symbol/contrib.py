"""Contributed operators over symbols (``mx.sym.contrib``), and control flow as operators with sub-graphs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import attribute
from .._core.errors import error
from .._core.graph import Graph, Node, topo, variable
from .._op_functions import namespace
from ..attribute import AttrScope
from ..base import asserted
from ..ndarray import checks
from ..ndarray.contrib import flattened, iterations, loop_values, zipfian
from .creation import full
from .function import symbol_function
from .random import uniform
from .symbol import Entry, Symbol, compose, output_name
from .variable import Variable

__all__ = ["AttrScope", "adamw_update", "cond", "foreach", "mp_adamw_update", "rand_zipfian", "uniform", "while_loop"]

#: The attribute that marks what was composed in the body of a loop; its value is unique to the loop.
_MARK = "__subgraph_name__"
_counts: dict[str, Iterator[int]] = {}


def _unique(name: str) -> str:
    """A name for a sub-graph: numbered, and after that of the loop around it."""
    around = attribute.current().get(None).get(_MARK)
    name = f"{around}${name}" if around else name
    return f"{name}{next(_counts.setdefault(name, itertools.count()))}"


def _symbols(x: Any, what: str) -> tuple[list[Symbol], Callable[[list[Any]], Any]]:
    """Nested lists of symbols as a flat list of single outputs, and the way back; `what` begins with the function."""

    def single(s: Any) -> Any:
        if isinstance(s, (list, tuple)):
            return [single(v) for v in s]
        if not isinstance(s, Symbol):
            raise error(
                TypeError, f"sym.contrib.{what} must be Symbols or nested lists of them, got {type(s).__name__}"
            )
        return s if s.num_outputs == 1 else list(s)

    return flattened(single(x), what)


def _inside(symbols: Sequence[Symbol], taken: set[str]) -> list[Symbol]:
    """Variables that stand for symbols in the body of a loop."""
    found = []
    for s in symbols:
        n, i = s._heads[0]
        name = f"{n.name}-{i}"
        while name in taken:
            name += "-"
        taken.add(name)
        found.append(Variable(name))
    return found


def _own(outs: Sequence[Symbol], states: Sequence[Symbol], mark: str, apart: bool = True) -> list[Entry]:
    """The heads of a sub-graph, operators inside it: others, and with `apart` states that are outputs, are copied."""
    inputs = set(Graph([s._entry() for s in (*outs, *states)]).variables())
    before = {s.name for s in outs}
    heads = []
    for i, s in enumerate((*outs, *states)):
        n = s._heads[0][0]
        copied = n in inputs or n.attrs.get(_MARK) != mark or apart and i >= len(outs) and n.name in before
        heads.append((compose("identity", (s,), {}) if copied else s)._entry())
    return heads


def _cut(heads: Sequence[Entry], mark: str) -> tuple[Graph, dict[str, Entry]]:
    """The part of a graph that bears the mark, and what its variables stand for outside, by name."""
    outside: dict[str, Entry] = {}
    cut: dict[Entry, Node] = {}
    done: dict[int, Node] = {}

    def entry(e: Entry) -> Entry:
        n, i = e
        if n.attrs.get(_MARK) == mark:
            return done.get(id(n), n), i
        if e not in cut:
            cut[e] = variable(output_name(e))
            outside[cut[e].name] = e
        return cut[e], 0

    for n in topo(heads):
        if n.op is not None and n.attrs.get(_MARK) == mark:
            inputs = [entry(e) for e in n.inputs]
            if inputs != list(n.inputs):
                done[id(n)] = Node(n.op, n.params, inputs, n.name, n.attrs)
    graph = Graph([entry(e) for e in heads])
    for n in graph.variables():
        outside.setdefault(n.name, (n, 0))
    return graph, outside


def foreach(
    body: Callable[[Any, Any], tuple[Any, Any]], data: Any, init_states: Any, name: str = "foreach"
) -> tuple[Any, Any]:
    """Run ``body(data_t, states) -> (outputs, states)`` over the first axis of `data`, as one operator.

    What the body uses from outside is computed once, before the loop.

    Parameters
    ----------
    body : callable
        Called once, with symbols.
    data, init_states : Symbol or nested list of Symbol
        Each must be used in the body. A symbol of several outputs counts as the list of them.
    name : str
        Marks the sub-graph in files.

    Returns
    -------
    (outputs, states)
        Outputs stacked along a new first axis; the final states.

    Raises
    ------
    MXNetError
        If the body returns other states than it was given or leaves some input unused.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``sym.contrib.foreach``, names and files included.
    """
    checks.callables("foreach", body=body)
    arrays, data_back = _symbols(data, "foreach: data")
    states, states_back = _symbols(init_states, "foreach: states")
    mark, taken = _unique(name), set[str]()
    with attribute.AttrScope(**{_MARK: mark}):
        ins = _inside([*arrays, *states], taken)
        outs, new_states = checks.two(
            "foreach: body", "(outputs, states)", body(data_back(ins[: len(arrays)]), states_back(ins[len(arrays) :]))
        )
        flat_outs, outs_back = _symbols(outs, "foreach: outputs")
        flat_states, _ = _symbols(new_states, "foreach: states")
        if len(flat_states) != len(states):
            raise error(ValueError, f"foreach: the body returned {len(flat_states)} states, it was given {len(states)}")
        heads = _own(flat_outs, flat_states, mark)
    graph, outside = _cut(heads, mark)
    names = _names(graph, "foreach: two inputs of the body")
    unused = [str(s.name) for s, v in zip((*arrays, *states), ins) if v.name not in names]
    if unused:
        raise asserted(ValueError, f"foreach: the body does not use {', '.join(unused)}; leave it out")
    rest = [n for n in names if n not in taken]
    result = list(
        compose(
            "_foreach",
            (*arrays, *states, *[Symbol([outside[n]]) for n in rest]),
            dict(
                fn=graph,
                num_outputs=len(heads),
                num_out_data=len(flat_outs),
                in_data_locs=[names.index(str(s.name)) for s in ins[: len(arrays)]],
                in_state_locs=[names.index(str(s.name)) for s in ins[len(arrays) :]],
                remain_locs=[names.index(n) for n in rest],
            ),
        )
    )
    return outs_back(result[: len(flat_outs)]), states_back(result[len(flat_outs) :])


def _names(graph: Graph, what: str) -> list[str]:
    """Names of a sub-graph's inputs, which must differ."""
    names = [n.name for n in graph.variables()]
    twice = next((n for n, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise error(ValueError, f"{what} are named {twice!r}; name the symbols it uses differently")
    return names


class _Inputs:
    """The inputs of an operator with several sub-graphs, in order of first use; equal keys make them the same."""

    def __init__(self) -> None:
        self.symbols: list[Symbol] = []
        self._at: dict[Any, int] = {}

    def at(self, key: Any, symbol: Symbol) -> int:
        """The place of a symbol."""
        if key not in self._at:
            self._at[key] = len(self.symbols)
            self.symbols.append(symbol)
        return self._at[key]


def while_loop(
    cond: Callable[..., Any],
    func: Callable[..., tuple[Any, Any]],
    loop_vars: Any,
    max_iterations: Any = None,
    name: str = "while_loop",
) -> tuple[Any, Any]:
    """Run ``func(*loop_vars) -> (outputs, new loop_vars)`` while ``cond(*loop_vars)`` holds, as one operator.

    What the functions use from outside is computed once, before the loop.

    Parameters
    ----------
    cond : callable
        Called once, with symbols; returns a symbol of one number.
    func : callable
        Called once, with symbols.
    loop_vars : Symbol or nested list of Symbol
        Each must be used in `func`. A symbol of several outputs counts as the list of them.
    max_iterations : int
        Most steps.
    name : str
        Marks the sub-graphs in files.

    Returns
    -------
    (outputs, loop_vars)
        Outputs stacked along a new first axis of length `max_iterations`, zeros after the last step; the final loop
        variables.

    Raises
    ------
    MXNetError
        If `max_iterations` is missing, `cond` returns no symbol, or `func` other loop variables than it was given, or
        does not use one.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``sym.contrib.while_loop``, names and files included; what it leaves undefined after
    the last step is zero, and shapes are inferred.
    """
    checks.callables("while_loop", cond=cond, func=func)
    most = iterations(max_iterations)
    states, states_back = _symbols(loop_vars, "while_loop: loop_vars")
    if not states:
        raise error(ValueError, "while_loop: loop_vars must hold at least one Symbol")
    inputs, graphs, locs = _Inputs(), [], []
    flat_outs: list[Symbol] = []
    outs_back: Any = None
    var_locs: list[int] = []
    for kind in ("cond", "func"):
        mark, taken = _unique(f"{name}_{kind}"), set[str]()
        with attribute.AttrScope(**{_MARK: mark}):
            ins = _inside(states, taken)
            given = states_back(ins)
            given = given if isinstance(given, list) else [given]
            if kind == "cond":
                answer = cond(*given)
                if not isinstance(answer, Symbol) or len(answer) != 1:
                    raise error(
                        TypeError,
                        f"while_loop: cond must return a Symbol of one output, got {type(answer).__name__}"
                        + (f" of {len(answer)}" if isinstance(answer, Symbol) else ""),
                    )
                heads = _own([], [answer], mark)
            else:
                outs, new_vars = loop_values(func(*given))
                flat_outs, outs_back = _symbols(outs, "while_loop: outputs")
                flat_vars, _ = _symbols(new_vars, "while_loop: loop_vars")
                if len(flat_vars) != len(states):
                    raise error(
                        ValueError,
                        f"while_loop: func returned {len(flat_vars)} loop variables, it was given {len(states)}",
                    )
                heads = _own(flat_outs, flat_vars, mark, False)
        graph, outside = _cut(heads, mark)
        names = _names(graph, f"while_loop: two inputs of {kind}")
        own = {str(v.name): s for v, s in zip(ins, states)}
        graphs.append(graph)
        locs.append(
            [inputs.at(("var", n), own[n]) if n in own else inputs.at((kind, n), Symbol([outside[n]])) for n in names]
        )
        if kind == "func":
            unused = [str(s.name) for n, s in own.items() if n not in names]
            if unused:
                raise error(ValueError, f"while_loop: func does not use {', '.join(unused)}; leave it out of loop_vars")
            var_locs = [names.index(n) for n in own]
    result = list(
        compose(
            "_while_loop",
            inputs.symbols,
            dict(
                cond=graphs[0],
                func=graphs[1],
                num_outputs=len(flat_outs) + len(states),
                num_out_data=len(flat_outs),
                max_iterations=most,
                cond_input_locs=locs[0],
                func_input_locs=locs[1],
                func_var_locs=var_locs,
            ),
        )
    )
    return outs_back(result[: len(flat_outs)]), states_back(result[len(flat_outs) :])


def cond(pred: Any, then_func: Callable[[], Any], else_func: Callable[[], Any], name: str = "cond") -> Any:
    """What ``then_func()`` returns if `pred` is true, else what ``else_func()`` returns, as one operator.

    What the functions use from outside is computed before, whatever `pred` says.

    Parameters
    ----------
    pred : Symbol
        One number.
    then_func, else_func : callable
        Called once; both return as many symbols, nested as they like.
    name : str
        Marks the sub-graphs in files.

    Returns
    -------
    Symbol or nested list of Symbol
        Nested like the result of `then_func`.

    Raises
    ------
    MXNetError
        If the branches return different numbers of symbols, or none; at binding, if their dtypes differ.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``sym.contrib.cond``, names and files included; `pred` may have any dtype.
    """
    if not isinstance(pred, Symbol) or len(pred) != 1:
        raise error(TypeError, f"cond: pred must be a Symbol of one output, got {type(pred).__name__}")
    checks.callables("cond", then_func=then_func, else_func=else_func)
    inputs, graphs, locs, backs = _Inputs(), [], [], []
    for kind, make in (("pred", lambda: pred), ("then", then_func), ("else", else_func)):
        mark = _unique(f"{name}_{kind}")
        with attribute.AttrScope(**{_MARK: mark}):
            flat, back = _symbols(make(), f"cond: outputs of the {kind}-branch")
            if not flat:
                raise error(
                    ValueError, f"cond: the {kind}-branch returned nothing; a branch returns at least one Symbol"
                )
            heads = _own(flat, [], mark)
        graph, outside = _cut(heads, mark)
        names = _names(graph, f"cond: two inputs of the {kind}-branch")
        graphs.append(graph)
        backs.append(back)
        # Variables of one name are one input; what is computed outside is an input of each branch.
        locs.append([inputs.at(n if outside[n][0].op is None else (kind, n), Symbol([outside[n]])) for n in names])
    counts = [len(g.heads) for g in graphs[1:]]
    if counts[0] != counts[1]:
        raise error(
            ValueError, f"cond: then_func returned {counts[0]} outputs, else_func {counts[1]}; both must return as many"
        )
    result = list(
        compose(
            "_cond",
            inputs.symbols,
            dict(
                cond=graphs[0],
                then_branch=graphs[1],
                else_branch=graphs[2],
                num_outputs=counts[0],
                cond_input_locs=locs[0],
                then_input_locs=locs[1],
                else_input_locs=locs[2],
            ),
        )
    )
    return backs[1](result)


def rand_zipfian(true_classes: Symbol, num_sampled: int, range_max: int) -> tuple[Symbol, Symbol, Symbol]:
    """Candidates for sampled softmax, from a Zipfian distribution; see ``mx.nd.contrib.rand_zipfian``."""
    from . import random

    return zipfian(random, true_classes, num_sampled, range_max, {})


def _scale(rescale_grad: Any) -> Symbol:
    """The factor on the gradient as a symbol."""
    return rescale_grad if isinstance(rescale_grad, Symbol) else full((1,), float(rescale_grad))


def adamw_update(
    weight: Symbol,
    grad: Symbol,
    mean: Symbol,
    var: Symbol,
    rescale_grad: Any,
    lr: float,
    eta: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0,
    clip_gradient: float = -1,
    out: Any = None,
    name: str | None = None,
    **kwargs: Any,
) -> Symbol:
    """A step of AdamW as a node; see ``mx.nd.contrib.adamw_update``.

    Parameters
    ----------
    weight, grad, mean, var : Symbol
        The weight, its gradient, and the two states, which are written.
    rescale_grad : Symbol or float
        Factor on the gradient; the step is left out where it is zero or not finite.
    lr, eta, beta1, beta2, epsilon, wd, clip_gradient : float
        Parameters of ``_adamw_update``.
    out
        Has no effect on symbols.
    name : str, optional
        Of the node.
    """
    return compose(
        "_adamw_update",
        [weight, grad, mean, var, _scale(rescale_grad)],
        dict(
            lr=lr,
            eta=eta,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            wd=wd,
            clip_gradient=clip_gradient,
            name=name,
            **kwargs,
        ),
    )


def mp_adamw_update(
    weight: Symbol,
    grad: Symbol,
    mean: Symbol,
    var: Symbol,
    weight32: Symbol,
    rescale_grad: Any,
    lr: float,
    eta: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0,
    clip_gradient: float = -1,
    out: Any = None,
    name: str | None = None,
    **kwargs: Any,
) -> Symbol:
    """`adamw_update` for a weight with a float32 master copy, `weight32`."""
    return compose(
        "_mp_adamw_update",
        [weight, grad, mean, var, weight32, _scale(rescale_grad)],
        dict(
            lr=lr,
            eta=eta,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            wd=wd,
            clip_gradient=clip_gradient,
            name=name,
            **kwargs,
        ),
    )


__getattr__, __dir__ = namespace(globals(), "contrib", symbol_function)
