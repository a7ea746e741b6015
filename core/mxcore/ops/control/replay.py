"""Control flow operator by operator on recorded arrays, for gradients of gradients; runs that are repeated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..._core import tables
from ..._core.params import Params
from ..._core.state import state
from .interpret import interpret
from .steps import input_names

__all__ = ["cond_on_arrays", "foreach_on_arrays", "repeatable", "while_on_arrays"]


@contextmanager
def repeatable(keys: list[Any]) -> Iterator[None]:
    """Add the random keys that are drawn inside to `keys`; if there are some, draw these again."""
    again, before = [*keys], (state.keys, state.drawn)
    state.keys, state.drawn = again or state.keys, []
    try:
        yield
    finally:
        if not keys:
            keys += state.drawn
        if before[1] is not None:  # whoever runs this may be repeated, too
            before[1].extend(state.drawn)
        state.keys, state.drawn = before


def _part(x: Any, t: int) -> Any:
    whole = ("s", None, None, None)
    index = (t, *[whole] * (len(x.shape) - 1)) if len(x.shape) > 1 else (("s", t, t + 1, None),)
    return tables.ops.get("_basic_index")(x, index=index)


def _stacked(rows: Sequence[Any], length: int) -> Any:
    stack = tables.ops.get("stack")(*rows, axis=0)
    if len(rows) == length:
        return stack
    zeros = tables.ops.get("zeros_like")(_part(stack, 0) if len(stack.shape) > 1 else stack)
    rest = tables.ops.get("stack")(*[zeros] * (length - len(rows)), axis=0)
    return tables.ops.get("Concat")(stack, rest, dim=0)


def foreach_on_arrays(p: Params, inputs: Sequence[Any], ctx: Any) -> list[Any]:
    """``_foreach``."""
    names, n_d, n_s = input_names(p.fn), len(p.in_data_locs), len(p.in_state_locs)
    now = {names[i]: x for i, x in zip((*p.in_state_locs, *p.remain_locs), inputs[n_d:])}
    rows = []
    for t in range(inputs[0].shape[0] if n_d else 0):
        now.update({names[i]: _part(x, t) for i, x in zip(p.in_data_locs, inputs)})
        heads = interpret(p.fn.heads, now, ctx)
        rows.append(heads[: p.num_out_data])
        now.update({names[i]: y for i, y in zip(p.in_state_locs, heads[p.num_out_data :])})
    return [_stacked(column, len(rows)) for column in zip(*rows)] + [now[names[i]] for i in p.in_state_locs][:n_s]


def while_on_arrays(p: Params, inputs: Sequence[Any], ctx: Any) -> list[Any]:
    """``_while_loop``; after no step at all it has nothing to stack, and gives zeros."""
    names, asked = input_names(p.func), input_names(p.cond)
    now = {names[i]: inputs[j] for i, j in enumerate(p.func_input_locs)}
    at = {p.func_input_locs[i]: names[i] for i in p.func_var_locs}
    rows: list[Any] = []
    while len(rows) < p.max_iterations:
        given = {name: now[at[j]] if j in at else inputs[j] for name, j in zip(asked, p.cond_input_locs)}
        if not interpret(p.cond.heads, given, ctx)[0].asnumpy().item():
            break
        heads = interpret(p.func.heads, now, ctx)
        rows.append(heads[: p.num_out_data])
        now.update({names[i]: y for i, y in zip(p.func_var_locs, heads[p.num_out_data :])})
    if not rows:  # only shapes are asked of these: nothing flows through them
        rows = [interpret(p.func.heads, now, ctx)[: p.num_out_data]]
        outs = [tables.ops.get("zeros_like")(_stacked(c, p.max_iterations)) for c in zip(*rows)]
    else:
        outs = [_stacked(c, p.max_iterations) for c in zip(*rows)]
    return outs + [now[names[i]] for i in p.func_var_locs]


def cond_on_arrays(p: Params, inputs: Sequence[Any], ctx: Any) -> list[Any]:
    """``_cond``."""

    def run(graph: Any, locs: Sequence[int]) -> list[Any]:
        return interpret(graph.heads, {name: inputs[j] for name, j in zip(input_names(graph), locs)}, ctx)

    if run(p.cond, p.cond_input_locs)[0].asnumpy().item():
        return run(p.then_branch, p.then_input_locs)
    return run(p.else_branch, p.else_input_locs)
