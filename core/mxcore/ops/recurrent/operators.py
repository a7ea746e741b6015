"""Recurrent networks of several layers, in one or both directions, with all weights packed in one vector."""

from __future__ import annotations

from typing import Any

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Enum, Float, Int
from ...typing import Array, Call
from ..common.bodies import wide
from ..common.rules import size_of, within_limits
from .cells import CELLS, GATES, dropout, layout, limits

__all__ = [
    "RESERVE",
    "RNN_INPUTS",
    "RNN_PARAMS",
    "Sizes",
    "check_lengths",
    "free_lengths",
    "joined",
    "named_shapes",
    "rnn",
    "step_masks",
    "step_order",
]


RNN_PARAMS = dict(
    state_size=Int(ge=1),
    num_layers=Int(ge=1, le=4096),
    bidirectional=Bool(False),
    mode=Enum("gru lstm rnn_relu rnn_tanh"),
    p=Float(0.0, ge=0, le=1),
    state_outputs=Bool(False),
    projection_size=Int(None, ge=1),
    lstm_state_clip_min=Float(None),
    lstm_state_clip_max=Float(None),
    lstm_state_clip_nan=Bool(False),
    use_sequence_length=Bool(False),
)

RNN_INPUTS = "data parameters state state_cell[mode=='lstm'] sequence_length[use_sequence_length]"
#: Outputs that the backward pass needs: activated gates, cell states, states of every step, dropout between layers.
RESERVE = "gates[mode in ('lstm', 'gru')] cells[mode=='lstm'] hidden mask[p > 0 and num_layers > 1]"


class Sizes:
    """The lengths that parameters and data decide."""

    __slots__ = ("directions", "units", "state", "rows")

    def __init__(self, p: Params) -> None:
        if p.projection_size is not None and p.mode != "lstm":
            raise ValueError(f"projection_size is for mode lstm, not {p.mode}")
        self.directions = 2 if p.bidirectional else 1
        self.units, self.state = p.state_size, p.projection_size or p.state_size
        #: Layers times directions.
        self.rows = p.num_layers * self.directions

    def layout(self, p: Params, inputs: int) -> Any:
        """What the vector of parameters holds, part by part, for inputs of this length."""
        return layout(p.mode, inputs, self.units, p.num_layers, self.directions, p.projection_size or 0)


def step_masks(xp: Any, p: Params, steps: int, lengths: Any) -> Any:
    """Which steps each sequence has, (steps, batch, 1); None if all have all."""
    if not p.use_sequence_length:
        return None
    return (xp.arange(steps)[:, None] < lengths[None, :])[:, :, None]


def check_lengths(k: Any, steps: int, lengths: Any) -> None:
    """Raise ValueError for lengths that no sequence of so many steps has, where values may be looked at."""
    if lengths is not None and not k.device.async_:
        within_limits("sequence_length", lengths, 0, steps, "a length")


def step_order(n: int, direction: int) -> range:
    """The steps as a direction takes them."""
    return range(n - 1, -1, -1) if direction else range(n)


def joined(xp: Any, hidden: Any, layer: int, directions: int, masks: Any) -> Any:
    """The output of a layer: the states of its directions side by side, zero after the end of a sequence."""
    parts = [hidden[layer * directions + d] for d in range(directions)]
    y = parts[0].copy() if directions == 1 else xp.concatenate(parts, 2)
    return y if masks is None else xp.where(masks, y, y.dtype.type(0))


@op(
    "RNN",
    inputs=RNN_INPUTS,
    labels="outputs",
    mxnet_outputs=lambda p: int(p._sig.visible),
    recompute=False,
    outputs="output state_output[state_outputs] statecell_output[state_outputs and mode=='lstm'] " + RESERVE,
    visible=lambda p: 1 if not p.state_outputs else 3 if p.mode == "lstm" else 2,
    random=lambda p: p.p > 0 and p.num_layers > 1,
    **RNN_PARAMS,
    helpers={"layout": layout, "limits": limits, "dropout": dropout, "check_lengths": check_lengths},
)
def rnn(k: Call, p: Params, *arrays: Array) -> Any:
    """Run a recurrent network over sequences.

    Parameters
    ----------
    data : array
        Shape (time, N, inputs).
    parameters : array
        All weights in cuDNN's order: first the matrices of each layer and direction (input to gates, state to gates,
        with `projection_size` the projection), then their biases (of the input, of the state). Gates are ordered
        input, forget, cell, output for ``lstm``; reset, update, new for ``gru``.
    state : array
        First states, (num_layers * directions, N, state_size), or projection_size instead of state_size.
    state_cell : array
        For ``lstm``: first cell states, (num_layers * directions, N, state_size).
    sequence_length : array
        With `use_sequence_length`: how many steps each sequence has, (N,), from 0 to all of them. After them the output
        is zero and the state stays.
    state_size : int
        Units of a layer.
    num_layers : int
    bidirectional : bool
        Also run backwards over time; outputs are side by side.
    mode : {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'}
    p : float
        Dropout between layers, in training.
    state_outputs : bool
        Also return the last states, shaped as the first ones.
    projection_size : int, optional
        For ``lstm``: project the state to this size.
    lstm_state_clip_min, lstm_state_clip_max : float, optional
        Limit the cell states.
    lstm_state_clip_nan : bool
        Limit NaN as well, to the minimum.
    use_sequence_length : bool
        There is an input `sequence_length`.

    Returns
    -------
    array, or list of arrays
        Outputs of shape (time, N, directions * state_size), and the last states.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``RNN``; what that does on GPUs only (training projections, lengths, clipping) works
    everywhere.
    """
    xp, sizes = k.xp, Sizes(p)
    ins = dict(zip(p._sig.inputs, arrays))
    data = ins["data"]
    x, vector, state = wide(data), wide(ins["parameters"]), wide(ins["state"])
    lstm = p.mode == "lstm"
    steps, n = x.shape[:2]
    check_lengths(k, steps, ins.get("sequence_length"))
    masks, clip = step_masks(xp, p, steps, ins.get("sequence_length")), limits(p)
    plan, cell = sizes.layout(p, x.shape[2]), CELLS[p.mode]

    def reserve(width: int) -> Any:
        return xp.empty((sizes.rows, steps, n, width), x.dtype)

    hidden = reserve(sizes.state)
    gates = reserve(4 * sizes.units) if "gates" in cell.saved else None
    cells = reserve(sizes.units) if "cells" in cell.saved else None
    last_h = xp.empty((sizes.rows, n, sizes.state), x.dtype)
    last_c: Any = xp.empty((sizes.rows, n, sizes.units), x.dtype) if lstm else None
    drop = None
    if p.p > 0 and p.num_layers > 1:
        drop = dropout(k, p, (p.num_layers - 1, steps, n, sizes.directions * sizes.state), x.dtype)
    for layer in range(p.num_layers):
        for d in range(sizes.directions):
            i = layer * sizes.directions + d
            c = wide(ins["state_cell"])[i] if lstm else None
            h, c = cell.forward(
                xp,
                x,
                plan.views(vector, i),
                state[i],
                c,
                hidden[i],
                gates[i] if gates is not None else None,
                cells[i] if cells is not None else None,
                step_order(steps, d),
                masks,
                clip,
            )
            last_h[i] = h
            if lstm:
                last_c[i] = c
        x = joined(xp, hidden, layer, sizes.directions, masks)
        if drop is not None and layer < p.num_layers - 1:
            x *= drop[layer]
    found = {
        "output": x,
        "state_output": last_h,
        "statecell_output": last_c,
        "gates": gates,
        "cells": cells,
        "hidden": hidden,
        "mask": drop,
    }
    return [found[name] for name in p._sig.outputs]


def _solve_inputs(p: Params, sizes: Sizes, size: int) -> Any:
    """Number of inputs that parameters of this size are for."""
    rest = size - sizes.layout(p, 0).size
    each = sizes.directions * GATES[p.mode] * sizes.units
    if rest <= 0 or rest % each:
        raise ValueError(
            f"{size} parameters fit no number of inputs; they are {sizes.layout(p, 0).size} plus a multiple of {each}"
        )
    return rest // each


@rnn.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    s = Sizes(p)
    at = {name: i for i, name in enumerate(p._sig.inputs)}
    out = {name: i for i, name in enumerate(p._sig.outputs)}
    data, vector = merge_shape(ins[0], (-1, -1, -1)), ins[1]
    y = merge_shape(outs[0], (data[0], data[1], s.directions * s.state))
    states = (s.rows, -1, s.state)
    for shape in (ins[2], outs[out["state_output"]] if p.state_outputs else None):
        states = merge_shape(states, shape)
    cells = (s.rows, -1, s.units)
    if p.mode == "lstm":
        for shape in (ins[3], outs[out["statecell_output"]] if p.state_outputs else None):
            cells = merge_shape(cells, shape)
    batch = (-1,)
    for shape in ((y[1],), (states[1],), (cells[1],), ins[at["sequence_length"]] if p.use_sequence_length else None):
        batch = merge_shape(batch, shape)
    n = batch[0]
    steps, inputs = y[0], data[2]
    if vector is not None and len(vector) == 1 and vector[0] != -1 and inputs == -1:
        inputs = _solve_inputs(p, s, vector[0])
    shapes = named_shapes(p, s, steps, n, inputs)
    return [shapes[name] for name in at], [shapes[name] for name in out]


def named_shapes(p: Params, s: Any, steps: int, n: int, inputs: int) -> dict[str, tuple[int, ...]]:
    """The shapes of all inputs and outputs by name."""
    return {
        "data": (steps, n, inputs),
        "parameters": (-1 if inputs == -1 else s.layout(p, inputs).size,),
        "state": (s.rows, n, s.state),
        "state_cell": (s.rows, n, s.units),
        "sequence_length": (n,),
        "output": (steps, n, s.directions * s.state),
        "state_output": (s.rows, n, s.state),
        "statecell_output": (s.rows, n, s.units),
        "gates": (s.rows, steps, n, 4 * s.units),
        "cells": (s.rows, steps, n, s.units),
        "hidden": (s.rows, steps, n, s.state),
        "mask": (p.num_layers - 1, steps, n, s.directions * s.state),
    }


def free_lengths(names: Any, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """One dtype for all, but the lengths may have their own."""
    t = None
    for name, given_ in zip(names, ins):
        if name != "sequence_length":
            t = t or given_
    t = t or outs[0]
    return [(v or t) if name == "sequence_length" else t for name, v in zip(names, ins)], [t] * len(outs)


rnn.dtype(lambda p, ins, outs: free_lengths(p._sig.inputs, ins, outs))


#: One product with the weights a step and sample.
rnn.attach(flops=lambda p, ins, outs: 2 * size_of(ins[0][:2]) * ins[1][0])


@rnn.cost
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    return size_of(ins[0][:2]) * ins[1][0] / 10 + 3e4 * ins[0][0]
