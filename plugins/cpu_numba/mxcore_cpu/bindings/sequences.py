"""Recurrent networks, attention, point processes, masks of steps."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mxcore.plugin import Call, Params, Spec

from ..kernels import attention, hawkes, rnn, sequence
from ..typing import Array, Outs
from .common import FLOATS, cpu, helpers, inputs_by_name, outputs_by_name


@functools.lru_cache(64)
def _layers(
    mode: str, inputs: int, units: int, layers: int, both: bool, projected: int | None, clip: Any
) -> rnn.Network:
    directions = 2 if both else 1
    parts = helpers("RNN").layout(mode, inputs, units, layers, directions, projected or 0).parts
    return rnn.Network(mode, units, projected or units, layers, directions, tuple(map(tuple, parts)), clip)


def _network(p: Params, data: Array) -> rnn.Network:
    return _layers(
        p.mode, data.shape[2], p.state_size, p.num_layers, p.bidirectional, p.projection_size, helpers("RNN").limits(p)
    )


def _of_one_float(op: str) -> Callable[..., bool]:
    """A condition on the inputs of an operator: of one dtype, float32 or float64, but for the lengths; not empty."""

    def fits(p: Params, *specs: Spec) -> bool:
        arrays = [s for name, s in inputs_by_name(op, p, specs).items() if name != "sequence_length"]
        first = arrays[0].dtype
        return first in (np.float32, np.float64) and all(s.dtype == first and s.size for s in arrays)

    return fits


@cpu.kernel("RNN", when=_of_one_float("RNN"), out=True)
def _rnn(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
    given, made = inputs_by_name("RNN", p, ins), outputs_by_name("RNN", p, outs)
    data, net = given["data"], _network(p, given["data"])
    helpers("RNN").check_lengths(k, data.shape[0], given.get("sequence_length"))
    shape = (*data.shape[:2], net.directions * net.width)
    drop = None
    if p.p > 0 and p.num_layers > 1:
        drop, kept = helpers("RNN").dropout(k, p, (p.num_layers - 1, *shape), data.dtype), made["mask"]
        if kept is not None:
            kept[...] = drop
        drop = drop if k.is_train else None
    out = np.empty(shape, data.dtype) if made["output"] is None else made["output"]
    rnn.forward(
        net,
        data,
        given["parameters"],
        given["state"],
        given.get("state_cell"),
        given.get("sequence_length"),
        drop,
        out,
        *(made.get(name) for name in ("state_output", "statecell_output", "gates", "cells", "hidden")),
    )


@cpu.kernel("_backward_RNN", when=_of_one_float("_backward_RNN"), out=True)
def _backward_rnn(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
    given, made = inputs_by_name("_backward_RNN", p, ins), outputs_by_name("_backward_RNN", p, outs)
    names = "dy d_state d_cell data parameters state state_cell sequence_length gates cells hidden mask".split()
    arrays: list[Any] = [given.get(name) for name in names]
    grads = [made.get(name) for name in ("data", "parameters", "state", "state_cell")]
    rnn.backward(_network(p, given["data"]), *arrays, *grads)


@cpu.kernel("_attention_scores", dtypes=FLOATS, out=True)
def _attention_scores(k: Call, p: Params, outs: Outs, a: Array, b: Array) -> None:
    attention.scores(a, b, outs[0], p.heads, p.a_slot, p.b_slot, p.scaled)


@cpu.kernel("_attention_sum", dtypes=FLOATS, out=True)
def _attention_sum(k: Call, p: Params, outs: Outs, weights: Array, values: Array) -> None:
    attention.weighted_sum(weights, values, outs[0], p.heads, p.slot, p.out_slot, p.transpose, p.scaled)


#: Which of how many projections of their first and last input the operators multiply; whose values they sum up.
for _name, _slots in {"selfatt_qk": ((0, 3), (1, 3)), "encdec_qk": ((0, 1), (0, 2))}.items():

    @cpu.kernel(f"_contrib_interleaved_matmul_{_name}", dtypes=FLOATS, out=True)
    def _interleaved_scores(
        k: Call, p: Params, outs: Outs, *ins: Array, slots: tuple[tuple[int, int], tuple[int, int]] = _slots
    ) -> None:
        attention.scores(ins[0], ins[-1], outs[0], p.heads, *slots, True)


for _name, _slot in {"selfatt_valatt": (2, 3), "encdec_valatt": (1, 2)}.items():

    @cpu.kernel(f"_contrib_interleaved_matmul_{_name}", dtypes=FLOATS, out=True)
    def _interleaved_sum(
        k: Call, p: Params, outs: Outs, values: Array, weights: Array, slot: tuple[int, int] = _slot
    ) -> None:
        attention.weighted_sum(weights, values, outs[0], p.heads, slot, (0, 1), False, False)


@cpu.kernel("_backward_interleaved_matmul_selfatt_qk", dtypes=FLOATS, out=True)
def _backward_selfatt_qk(k: Call, p: Params, outs: Outs, dy: Array, data: Array) -> None:
    attention.selfatt_qk_backward(dy, data, outs[0], p.heads)


def _hawkes_types(p: Params, *specs: Spec) -> bool:
    return all(s.dtype.str[1:] in ("f4", "f8", "i4") and s.size for s in specs)


@cpu.kernel("_contrib_hawkesll", when=_hawkes_types, out=True)
def _hawkesll(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
    loglike, state = (np.empty(s, ins[0].dtype) if o is None else o for o, s in zip(outs, (ins[7].shape, ins[0].shape)))
    if not hawkes.hawkes(*[*ins, loglike, state]):
        helpers("_contrib_hawkesll").check_events(k, ins[1].size, *ins[5:7])


@cpu.kernel("_contrib_backward_hawkesll", when=_hawkes_types, out=True)
def _backward_hawkesll(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
    given: list[Any] = [*ins, outs]
    hawkes.hawkes_backward(*given)


@cpu.kernel(
    "SequenceMask",
    when=lambda p, data, *lengths: p.use_sequence_length and data.dtype in (np.float32, np.float64),
    out=True,
)
def _sequence_mask(k: Call, p: Params, outs: Outs, data: Array, lengths: Array) -> None:
    sequence.mask_steps(data, lengths, outs[0], axis=p.axis, value=p.value)
