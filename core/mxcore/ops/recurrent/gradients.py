"""Gradients of the operators of :mod:`mxcore.ops.recurrent`."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...typing import Array, Call, Operators
from ..common.bodies import wide
from ..common.gradients import given
from ..common.rules import fits
from .cells import CELLS, limits
from .operators import (
    RESERVE,
    RNN_INPUTS,
    RNN_PARAMS,
    Sizes,
    free_lengths,
    joined,
    named_shapes,
    rnn,
    step_masks,
    step_order,
)

__all__: list[str] = []


def _grad(
    F: Operators,
    p: Params,
    dy: Any,
    d_state_output: Any,
    d_statecell_output: Any,
    data: Any,
    parameters: Any,
    state: Any,
    state_cell: Any,
    sequence_length: Any,
    out_gates: Any,
    out_cells: Any,
    out_hidden: Any,
    out_mask: Any,
    needs: Any,
) -> Any:
    # What the parameters switch off is None here, and so it is left out there.
    grads = F._backward_RNN(
        dy,
        d_state_output,
        d_statecell_output,
        data,
        parameters,
        state,
        state_cell,
        sequence_length,
        out_gates,
        out_cells,
        out_hidden,
        out_mask,
        wanted=tuple(needs[: 4 if p.mode == "lstm" else 3]),
        **given(p, RNN_PARAMS),
    )
    return [*grads, None] if p.use_sequence_length else grads


rnn.grad(_grad)


@op(
    "_backward_RNN",
    outputs="data parameters state state_cell[mode=='lstm']",
    **RNN_PARAMS,
    inputs="dy d_state[state_outputs] d_cell[state_outputs and mode=='lstm'] " + RNN_INPUTS + " " + RESERVE,
)
def backward_rnn(k: Call, p: Params, *arrays: Array) -> Any:
    """Gradients of `RNN` with respect to data, parameters and first states.

    Parameters
    ----------
    dy, d_state, d_cell : array
        The incoming gradients of the outputs.
    data, parameters, state, state_cell, sequence_length : array
        The inputs.
    gates, cells, hidden, mask : array
        What the forward pass left: activated gates, cell states and states of every step, dropout between layers.
    state_size, num_layers, bidirectional, mode, p, state_outputs, projection_size, lstm_state_clip_min,
    lstm_state_clip_max, \
lstm_state_clip_nan, use_sequence_length
        As in `RNN`.
    """
    xp, sizes = k.xp, Sizes(p)
    ins = {name: a if name == "sequence_length" else wide(a) for name, a in zip(p._sig.inputs, arrays)}
    lstm, directions = p.mode == "lstm", sizes.directions
    wanted = k.wanted or (True,) * 4
    data, vector, state, hidden = ins["data"], ins["parameters"], ins["state"], ins["hidden"]
    gates, cells, drop = ins.get("gates"), ins.get("cells"), ins.get("mask")
    steps, n = data.shape[:2]
    masks, clip = step_masks(xp, p, steps, ins.get("sequence_length")), limits(p)
    plan, cell = sizes.layout(p, data.shape[2]), CELLS[p.mode]
    d_vector = xp.empty(vector.shape, vector.dtype) if wanted[1] else None
    d_first = xp.empty(state.shape, state.dtype)
    d_cells: Any = xp.empty(ins["state_cell"].shape, state.dtype) if lstm else None
    dy = ins["dy"]
    for layer in range(p.num_layers - 1, -1, -1):
        if masks is not None:
            dy = xp.where(masks, dy, dy.dtype.type(0))
        x = data if layer == 0 else joined(xp, hidden, layer - 1, directions, masks)
        if layer and drop is not None:
            x *= drop[layer - 1]
        dx = None
        for d in range(directions):
            i = layer * directions + d
            order = step_order(steps, d)
            weights = plan.views(vector, i)
            first = state[i][None]
            before = xp.concatenate([hidden[i, 1:], first] if d else [first, hidden[i, :-1]])
            dh = ins["d_state"][i] if p.state_outputs else xp.zeros(state.shape[1:], state.dtype)
            dc = c = None
            if lstm:
                c = ins["state_cell"][i]
                dc = ins["d_cell"][i] if p.state_outputs else xp.zeros(c.shape, c.dtype)
            own = dy[..., d * sizes.state : (d + 1) * sizes.state]
            at_input, at_state, dh, dc, d_projection = cell.backward(
                xp,
                own,
                dh,
                dc,
                weights,
                c,
                hidden[i],
                before,
                gates[i] if gates is not None else None,
                cells[i] if cells is not None else None,
                order,
                masks,
                clip,
            )
            d_first[i] = dh
            if lstm:
                d_cells[i] = dc
            flat, flat_state, flat_x, flat_before = (
                a.reshape(steps * n, a.shape[-1]) for a in (at_input, at_state, x, before)
            )
            if d_vector is not None:
                d_x, d_h, d_r, d_bx, d_bh = plan.views(d_vector, i)
                d_x[...] = xp.matmul(flat.T, flat_x)
                d_h[...] = xp.matmul(flat_state.T, flat_before)
                d_bx[...] = flat.sum(0)
                d_bh[...] = flat_state.sum(0)
                if d_r is not None:
                    d_r[...] = d_projection
            if layer or wanted[0]:
                part = xp.matmul(flat, weights[0]).reshape(x.shape)
                dx = part if dx is None else dx + part
        dy = dx
        if layer and drop is not None:
            dy = dy * drop[layer - 1]
    return [dy, d_vector, d_first, d_cells][: 4 if lstm else 3]


@backward_rnn.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    given = dict(zip(p._sig.inputs, ins))
    if len(given["data"]) != 3:
        raise ValueError(f"data {given['data']} must be (time, batch, inputs)")
    shapes = named_shapes(p, Sizes(p), *given["data"])
    shapes.update(dy=shapes["output"], d_state=shapes["state_output"], d_cell=shapes["statecell_output"])
    fits(" ".join(given), ins, [shapes[name] for name in given])
    return [given[name] for name in p._sig.outputs]


backward_rnn.dtype(lambda p, ins, outs: free_lengths(p._sig.inputs, ins, outs))


backward_rnn.attach(flops=lambda p, ins, outs: 4 * ins[0][0] * ins[0][1] * outs[1][0])


@backward_rnn.cost
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    steps, n = ins[0][:2]
    return steps * n * outs[1][0] / 5 + 6e4 * steps
