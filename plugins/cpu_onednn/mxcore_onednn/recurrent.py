"""Recurrent layers over whole sequences, in inference: a plan for each layer, both directions at once.

The library's LSTM has MXNet's gates in MXNet's order; its GRU that applies the reset gate after the product has update
and reset the other way round. Two biases of a gate are one to it, but that of a GRU's new state, which is reset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mxcore.plugin import Call, Params, Spec, find_op

from .calls import PRIORITY, keeping, kernels, otherwise, run, takes
from .descs import BIAS, DST, DST_ITER, DST_ITER_C, INFERENCE, SRC, SRC_ITER, SRC_ITER_C, WEIGHTS, WEIGHTS_ITER, Desc
from .keeping import Kept
from .library import Library, Refused, library
from .plan import Plan
from .plans import plan_for
from .rules import recurs

__all__ = ["Layer"]

_FORWARDS, _BOTH = 1, 3
#: Of the arrays of a plan.
_WEIGHTS = 1, 2
#: The library's axes of weights: layer, direction, input, gate, unit.
_TURNED = 0, 1, 4, 2, 3
_FEW_STEPS = 4


class Layer(NamedTuple):
    """What a plan is made for.

    Attributes
    ----------
    mode : str
        ``'lstm'`` or ``'gru'``.
    steps, batch, inputs, units, directions : int
    """

    mode: str
    steps: int
    batch: int
    inputs: int
    units: int
    directions: int

    @property
    def gates(self) -> int:
        return 4 if self.mode == "lstm" else 3

    @property
    def work(self) -> int:
        """Multiplications."""
        return self.steps * self.batch * self.directions * self.gates * self.units * (self.inputs + self.units)


def _layer(lib: Library, layer: Layer) -> Plan:
    """Of data, weights of inputs and of states, bias, first states; to the output and last states."""
    mode, steps, batch, inputs, units, both = layer
    states = [Desc.dense(lib, (1, both, batch, units)) for _ in range(2 if mode == "lstm" else 1)]
    given = [
        Desc.dense(lib, (steps, batch, inputs)),
        *(Desc.dense(lib, (1, both, layer.gates, units, n), order=_TURNED) for n in (inputs, units)),
        Desc.dense(lib, (1, both, 4, units)),
        *states,
    ]
    out = Desc.dense(lib, (steps, batch, both * units))
    plan = Plan(lib, [*given, out, *states], _WEIGHTS)
    liked = [Desc.any(lib, (1, both, n, layer.gates, units)) for n in (inputs, units)]
    direction, flags = _FORWARDS if both == 1 else _BOTH, 0
    ends, weights = ([d.handle for d in descs] for descs in (states, liked))
    head = lib.engine, INFERENCE, direction, given[0].handle, *ends, *weights
    tail = given[3].handle, out.handle, *ends, flags, lib.attr
    if mode == "lstm":
        made = lib.new("lstm_forward_primitive_desc_create", *head, None, None, *tail)
    else:
        made = lib.new("lbr_gru_forward_primitive_desc_create", *head, *tail)
    n = len(given)
    args = {SRC: 0, WEIGHTS: 1, WEIGHTS_ITER: 2, BIAS: 3, SRC_ITER: 4, DST: n, DST_ITER: n + 1}
    plan.add(made, {**args, **({SRC_ITER_C: 5, DST_ITER_C: n + 2} if mode == "lstm" else {})}, reference=True)
    return plan.done()


def _plan(layer: Layer) -> Plan | None:
    return plan_for(("recurrent", layer), lambda lib: _layer(lib, layer), layer.work)


def _layers(p: Params, data: Any) -> list[Layer]:
    steps, batch, inputs = data.shape
    both = 2 if p.bidirectional else 1
    widths = [inputs, *[both * p.state_size] * (p.num_layers - 1)]
    return [Layer(p.mode, steps, batch, width, p.state_size, both) for width in widths]


def _recurs(p: Params, *specs: Spec) -> bool:
    if p.mode not in ("lstm", "gru") or p.projection_size or p.use_sequence_length:
        return False
    if p.lstm_state_clip_min is not None or p.lstm_state_clip_max is not None or not takes(specs):
        return False
    lib, layers = library(), _layers(p, specs[0])
    return lib is not None and all(recurs(lib.isa, layer) and _plan(layer) is not None for layer in layers)


def _weights(where: Any, at: int, layer: Layer, parameters: Any) -> list[Any]:
    """Those of inputs, of states, and the bias, as the library takes them."""
    parts = [where.views(parameters, at * layer.directions + d) for d in range(layer.directions)]
    gates, units = layer.gates, layer.units
    found = []
    for i, columns in enumerate((layer.inputs, units)):
        sides = [side[i].reshape(gates, units, columns) for side in parts]
        if layer.mode == "gru":
            sides = [side[[1, 0, 2]] for side in sides]
        found.append(sides[0][None] if len(sides) == 1 else np.stack(sides))
    bias = np.empty((layer.directions, 4, units), np.float32)
    for one, (*_, b_x, b_h) in zip(bias, parts):
        x, h = b_x.reshape(gates, units), b_h.reshape(gates, units)
        if layer.mode == "gru":
            one[:2], one[2], one[3] = (x[:2] + h[:2])[::-1], x[2], h[2]
        else:
            np.add(x, h, out=one)
    return [*found, bias]


def _stamp(k: Call) -> Any:
    """Of the weights; None where they may change, as in a graph that joins them before."""
    return None if k.keep is None else k.keep.stamp(1)


def _held(k: Call, p: Params, layers: Sequence[Layer], parameters: Any) -> list[tuple[list[Any], Kept | None]]:
    """For each layer its weights, and what its plan has kept of them."""

    first = layers[0]
    where = find_op("RNN").facet("helpers").layout(p.mode, first.inputs, first.units, len(layers), first.directions, 0)

    def fresh() -> list[list[Any]]:
        return [_weights(where, i, layer, parameters) for i, layer in enumerate(layers)]

    stamp = _stamp(k)
    if k.keep is None or stamp is None:
        return [(weights, None) for weights in fresh()]
    values = k.keep.values
    if values.get("stamp") != stamp:
        values.clear()
        values["stamp"] = stamp
        return [(weights, None) for weights in fresh()]
    plans = [_plan(layer) for layer in layers]
    found = values.get("held")
    if found is None or any(kept is not None and kept.plan is not plan for (_, kept), plan in zip(found, plans)):
        try:
            found = [(w, plan and Kept(plan, dict.fromkeys(_WEIGHTS, stamp))) for w, plan in zip(fresh(), plans)]
        except Refused:
            return [(weights, None) for weights in fresh()]
        values["held"] = found
    return list(found)


def _short(k: Call, p: Params, data: Any) -> bool:
    """Whether weights of a GRU would take longer to be put in order than all steps take."""
    return p.mode == "gru" and data.shape[0] < _FEW_STEPS and _stamp(k) is None


@kernels.kernel("RNN", when=_recurs, priority=PRIORITY, out=True)
@keeping
def _rnn(k: Call, p: Params, outs: Sequence[Any], *ins: Any) -> None:
    made = dict(zip(p._sig.outputs, outs))
    other: Callable[[], None] = otherwise("RNN", k, p, outs, *ins)
    trains = any(made.get(name) is not None for name in ("gates", "cells", "hidden", "mask"))
    if trains or k.is_train and p.p > 0 and p.num_layers > 1 or _short(k, p, ins[0]):
        other()
        return
    data, parameters, *first = ins
    layers = _layers(p, data)
    last = [made.get(name) for name in ("state_output", "statecell_output")[: len(first)]]
    for i, (layer, (weights, kept)) in enumerate(zip(layers, _held(k, p, layers, parameters))):
        at = slice(i * layer.directions, (i + 1) * layer.directions)
        out = made["output"] if i == len(layers) - 1 else None
        if out is None:
            out = np.empty((layer.steps, layer.batch, layer.directions * layer.units), np.float32)
        ends = [np.empty(s[at].shape, np.float32) if e is None else e[at] for s, e in zip(first, last)]
        if not run("RNN", _plan(layer), [data, *weights, *(s[at] for s in first)], [out, *ends], other, kept):
            return
        data = out
