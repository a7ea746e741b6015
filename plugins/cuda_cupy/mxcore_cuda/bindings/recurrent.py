"""Recurrent networks: one product for the inputs of all steps, for each step one product and one kernel.

Both directions of a layer are computed at once: their matrices are stacks of two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mxcore.plugin import Call, Params, Spec, find_op

from ..blas import Matrix, multiply
from ..repeated import repeated
from .common import Array, Outs, binds, few, helpers, is_float, kernel_for, rng_of, wide

_X, _H, _PROJECTION, _BIAS_X, _BIAS_H = range(5)  # the parts of a layer's and direction's weights
_GATES = {"lstm": 4, "gru": 3, "rnn_relu": 1, "rnn_tanh": 1}


class _Network:
    """What all layers of one call share: sizes, weights, kernels."""

    def __init__(self, k: Call, p: Params, given: dict[str, Array]) -> None:
        data, lengths = given["data"], given.get("sequence_length")
        self.k, self.dtype, self.data, self.vector = k, data.dtype, data, given["parameters"]
        self.steps, self.batch, inputs = data.shape
        self.units, self.width = p.state_size, p.projection_size or p.state_size
        self.layers, self.directions, self.projected = p.num_layers, 1 + p.bidirectional, p.projection_size is not None
        self.gates, self.relu = _GATES[p.mode] * self.units, p.mode == "rnn_relu"
        layout = helpers("RNN").layout
        self.parts = layout(p.mode, inputs, self.units, self.layers, self.directions, p.projection_size or 0).parts
        limits = helpers("RNN").limits(p)
        low, high, nan = limits or (0.0, 0.0, False)
        with np.errstate(over="ignore"):
            self.clip = limits is not None, *map(float, np.array([low, high], wide(self.dtype))), nan
        self.lengths = None
        if lengths is not None:  # a fraction of a step is a step
            self.lengths = (k.xp.ceil(lengths) if is_float(lengths.dtype) else lengths).astype(np.int32)

    def room(self, *shape: int, dtype: Any = None) -> Array:
        return self.k.device.empty(shape, dtype or self.dtype, self.k.ctx.device_id)

    def all(self, width: int) -> Array:
        """A place for something of all steps of a layer."""
        return self.room(self.directions, self.steps, self.batch, width)

    def kept(self, a: Array | None, layer: int, width: int) -> Array:
        """A layer's part of what is kept for the backward pass; another place for it where it is not kept."""
        return self.all(width) if a is None else a[self.rows(layer)]

    def rows(self, layer: int) -> slice:
        """A layer's rows in what has a row for each layer and direction."""
        return slice(layer * self.directions, (layer + 1) * self.directions)

    # -- matrices, of both directions
    def weight(self, layer: int, part: int, vector: Array | None = None, transposed: bool = False) -> Matrix:
        """One of the matrices of a layer, in the vector of weights or in that of their gradients."""
        places = [parts[part] for parts in self.parts[self.rows(layer)]]
        start, shape = places[0]
        return Matrix(self.vector if vector is None else vector, shape[1], transposed, places[-1][0] - start, start)

    def step(self, a: Array, j: int, steps: int = 1) -> Matrix:
        """What an array of all steps has of the `j`-th that each direction takes, or of several from there on."""
        width = a.shape[-1]
        size, other = self.batch * width, 2 * self.steps - j - steps  # where they begin that are taken backwards
        return Matrix(a, width, step=(other - j) * size, offset=j * size)

    def before(self, hidden: Array, first: Array, j: int) -> Matrix:
        """The states that the `j`-th step begins with."""
        return self.step(hidden, j - 1) if j else self.stacked(first)

    def stacked(self, a: Array, transposed: bool = False) -> Matrix:
        """An array of one step, or of all."""
        return Matrix(a, a.shape[-1], transposed, a.size // self.directions)

    def multiply(self, m: int, n: int, k: int, a: Matrix, b: Matrix, c: Matrix, adds: bool = False) -> None:
        """Multiply matrices of both directions."""
        beta = 1.0 if adds else 0.0
        multiply(self.dtype, self.k.ctx.device_id, m, n, k, a, b, c, batch=self.directions, beta=beta)

    # -- kernels
    def run(self, name: str, j: int, n: int, *values: Any) -> None:
        """Launch a kernel over the units of a step."""
        count = self.directions * self.batch * n
        run = kernel_for(self.k, "rnn", name, self.dtype)
        run.each(count, count, j, self.steps, self.batch, n, self.lengths, *values)

    def bias(self, layer: int) -> Any:
        """Where the biases of a layer begin."""
        start, _ = self.parts[layer * self.directions][_BIAS_X]
        return kernel_for(self.k, "rnn", "simple_step", self.dtype).at(self.vector, start)

    def join(self, hidden: Array, drop: Array | None, out: Array) -> Array:
        """The output of a layer, times what is dropped of it."""
        run = kernel_for(self.k, "rnn", "join", self.dtype)
        sizes = self.directions, self.steps, self.batch, self.width
        run.each(out.size, out.size, *sizes, self.lengths, hidden, drop, out)
        return out

    def input(self, below: Array | None, drop: Array | None) -> Array:
        """What a layer works on: the data, or the states of the layer below."""
        if below is None:
            return self.data
        if self.directions == 1 and drop is None and self.lengths is None:
            return below[0]
        return self.join(below, drop, self.room(self.steps, self.batch, self.directions * self.width))


# -- forward -----------------------------------------------------------------------------------------------------------
def _forward_lstm(
    net: _Network, layer: int, first_h: Array, first_c: Array | None, hidden: Array, gates: Array, cells: Array
) -> None:
    n, width, bias = net.units, net.width, net.bias(layer)
    back = net.weight(layer, _H, transposed=True)
    full = net.room(net.directions, net.batch, n) if net.projected else None
    for j in range(net.steps):
        h = net.before(hidden, first_h, j)
        net.multiply(net.batch, net.gates, width, h, back, net.step(gates, j), adds=True)
        net.run("lstm_step", j, n, bias, first_c, first_h, gates, cells, hidden, full, *net.clip)
        if full is not None:
            projection = net.weight(layer, _PROJECTION, transposed=True)
            net.multiply(net.batch, width, n, net.stacked(full), projection, net.step(hidden, j))
            if net.lengths is not None:
                net.run("keep_ended", j, width, first_h, hidden)


def _forward_gru(
    net: _Network, layer: int, first_h: Array, first_c: Array | None, hidden: Array, gates: Array, cells: Array
) -> None:
    n, bias = net.units, net.bias(layer)
    back, state = net.weight(layer, _H, transposed=True), net.room(net.directions, net.batch, net.gates)
    for j in range(net.steps):
        h = net.before(hidden, first_h, j)
        net.multiply(net.batch, net.gates, n, h, back, net.stacked(state))
        net.run("gru_step", j, n, bias, state, first_h, gates, hidden)


def _forward_simple(
    net: _Network, layer: int, first_h: Array, first_c: Array | None, hidden: Array, gates: Array, cells: Array
) -> None:
    n, bias, back = net.units, net.bias(layer), net.weight(layer, _H, transposed=True)
    for j in range(net.steps):
        h = net.before(hidden, first_h, j)
        net.multiply(net.batch, n, n, h, back, net.step(hidden, j), adds=True)
        net.run("simple_step", j, n, bias, first_h, hidden, net.relu)


_FORWARD: dict[str, Callable[..., None]] = {"lstm": _forward_lstm, "gru": _forward_gru}


def _fits(op: str) -> Callable[..., bool]:
    """A condition on the inputs of an operator: of one dtype, but for the lengths; none is empty."""

    def fits(p: Params, *specs: Spec) -> bool:
        given = dict(zip(find_op(op).signature(p).inputs, specs))
        lengths, data = given.pop("sequence_length", None), given["data"]
        return (
            is_float(data.dtype)
            and all(s.dtype == data.dtype and s.size for s in given.values())
            and few(*specs)
            and data.shape[0] * data.shape[1] * p.state_size < 2**30
            and (lengths is None or is_float(lengths.dtype) or lengths.dtype.kind in "iu")
        )

    return fits


@binds("RNN", dtypes=None, when=_fits("RNN"))
def _rnn(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
    signature = find_op("RNN").signature(p)
    given, made = dict(zip(signature.inputs, ins)), dict(zip(signature.outputs, outs))
    drop = _dropped(k, p, given["data"], made.get("mask"))
    what = "RNN", p._key, k.is_train
    repeated(k, what, [*ins, *outs, drop], partial(_forward, k, p, given, made, drop))


def _forward(k: Call, p: Params, given: dict[str, Array], made: dict[str, Array], drop: Array | None) -> None:
    net, below = _Network(k, p, given), None
    for layer in range(net.layers):
        rows = net.rows(layer)
        hidden = net.kept(made["hidden"], layer, net.width)
        gates = net.kept(made.get("gates"), layer, 4 * net.units) if "gates" in made else hidden
        cells = net.kept(made["cells"], layer, net.units) if "cells" in made else None
        x = net.input(below, None if drop is None or layer == 0 else drop[layer - 1])
        inputs = Matrix(x, x.shape[2])
        whole, weight = net.steps * net.batch, net.weight(layer, _X, transposed=True)
        net.multiply(whole, net.gates, x.shape[2], inputs, weight, net.stacked(gates))
        first_c = given["state_cell"][rows] if "state_cell" in given else None
        _FORWARD.get(p.mode, _forward_simple)(net, layer, given["state"][rows], first_c, hidden, gates, cells)
        for name, of in (("state_output", hidden), ("statecell_output", cells)):
            if made.get(name) is not None and of is not None:
                for d, last in enumerate(made[name][rows]):
                    last[...] = of[d, 0 if d else -1]
        below = hidden
    if made["output"] is not None:
        net.join(below, None, made["output"])


def _dropped(k: Call, p: Params, data: Array, mask: Array | None) -> Array | None:
    """What the inputs of the layers above the first one are multiplied by; None where it is one."""
    if not p.p or p.num_layers == 1:
        return None
    if not k.is_train:
        if mask is not None:
            mask[...] = 1
        return None
    if mask is None:
        width = (1 + p.bidirectional) * (p.projection_size or p.state_size)
        mask = k.device.empty((p.num_layers - 1, *data.shape[:2], width), data.dtype, k.ctx.device_id)
    rng_of(k).dropout(1 - p.p, mask)
    return mask


# -- backward: each returns the gradients of the gates as the input and as the state see them --------------------------
def _backward_lstm(
    net: _Network, layer: int, given: dict[str, Array], d_vector: Array | None, dy: Array, dh: Array, dc: Array
) -> tuple[Array, Array]:
    n, width, rows, dz = net.units, net.width, net.rows(layer), net.all(net.gates)
    gates, cells, first_c = given["gates"][rows], given["cells"][rows], given["state_cell"][rows]
    d_full = d_state = full = None
    if net.projected:
        d_full = net.room(net.directions, net.batch, n)
        d_state, full = net.all(width), net.all(n)
    for j in range(net.steps - 1, -1, -1):
        if d_full is not None:
            net.run("projection_backward", j, width, dy, dy.shape[2], dh, d_state)
            weight = net.weight(layer, _PROJECTION)
            net.multiply(net.batch, n, width, net.step(d_state, j), weight, net.stacked(d_full))
        given_dy = dy, dy.shape[2], dh, dc
        net.run("lstm_backward", j, n, first_c, gates, cells, *given_dy, dz, d_full, full, *net.clip[:3])
        _to_state(net, layer, dz, dh, j, net.lengths is not None)
    if d_full is not None and d_vector is not None:
        whole, place = net.steps * net.batch, net.weight(layer, _PROJECTION, d_vector)
        net.multiply(width, n, whole, net.stacked(d_state, True), net.stacked(full), place)
    return dz, dz


def _backward_gru(
    net: _Network, layer: int, given: dict[str, Array], d_vector: Array | None, dy: Array, dh: Array, dc: Array
) -> tuple[Array, Array]:
    n, rows = net.units, net.rows(layer)
    dx, dz = net.all(net.gates), net.all(net.gates)
    kept = given["state"][rows], given["gates"][rows], given["hidden"][rows]
    for j in range(net.steps - 1, -1, -1):
        net.run("gru_backward", j, n, *kept, dy, dy.shape[2], dh, dx, dz)
        _to_state(net, layer, dz, dh, j, True)
    return dx, dz


def _backward_simple(
    net: _Network, layer: int, given: dict[str, Array], d_vector: Array | None, dy: Array, dh: Array, dc: Array
) -> tuple[Array, Array]:
    n, hidden, dz = net.units, given["hidden"][net.rows(layer)], net.all(net.gates)
    for j in range(net.steps - 1, -1, -1):
        net.run("simple_backward", j, n, hidden, dy, dy.shape[2], dh, dz, net.relu)
        _to_state(net, layer, dz, dh, j, net.lengths is not None)
    return dz, dz


def _to_state(net: _Network, layer: int, dz: Array, dh: Array, j: int, adds: bool) -> None:
    """The gradient of the state before a step."""
    before = net.step(dz, j), net.weight(layer, _H), net.stacked(dh)
    net.multiply(net.batch, net.width, net.gates, *before, adds=adds)


_BACKWARD: dict[str, Callable[..., tuple[Array, Array]]] = {"lstm": _backward_lstm, "gru": _backward_gru}


@binds("_backward_RNN", dtypes=None, when=_fits("_backward_RNN"))
def _backward_rnn(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
    signature = find_op("_backward_RNN").signature(p)
    given, made = dict(zip(signature.inputs, ins)), dict(zip(signature.outputs, outs))
    what = "_backward_RNN", p._key, k.is_train
    repeated(k, what, [*ins, *outs], partial(_backward, k, p, given, made))


def _backward(k: Call, p: Params, given: dict[str, Array], made: dict[str, Array]) -> None:
    net, d_vector, dy = _Network(k, p, given), made["parameters"], given["dy"]
    whole, drop = net.steps * net.batch, given.get("mask")
    for layer in range(net.layers - 1, -1, -1):
        rows = net.rows(layer)
        kept = (net.directions, net.batch)
        dh = net.room(*kept, net.width) if made["state"] is None else made["state"][rows]
        dh[...] = given["d_state"][rows] if "d_state" in given else 0
        dc = None
        if p.mode == "lstm":
            dc = net.room(*kept, net.units, dtype=wide(net.dtype))
            dc[...] = given["d_cell"][rows] if "d_cell" in given else 0
        dx, dz = _BACKWARD.get(p.mode, _backward_simple)(net, layer, given, d_vector, dy, dh, dc)
        if made.get("state_cell") is not None:
            made["state_cell"][rows] = dc
        dropped = drop[layer - 1] if layer and drop is not None else None
        if d_vector is not None:
            x = net.input(given["hidden"][net.rows(layer - 1)] if layer else None, dropped)
            _weight_gradients(net, layer, given, x, dx, dz, d_vector)
        width = net.directions * net.width if layer else net.data.shape[2]
        dy = net.room(net.steps, net.batch, width) if layer else made["data"]
        if dy is not None:
            for d in range(net.directions):
                at, weight = net.stacked(dx), net.weight(layer, _X)
                a, b = (m._replace(offset=m.offset + d * m.step) for m in (at, weight))
                beta = 1.0 if d else 0.0
                multiply(net.dtype, k.ctx.device_id, whole, width, net.gates, a, b, Matrix(dy, width), beta=beta)
            if dropped is not None:
                k.xp.multiply(dy, dropped, out=dy)


def _weight_gradients(
    net: _Network, layer: int, given: dict[str, Array], x: Array, dx: Array, dz: Array, d_vector: Array
) -> None:
    """Of the matrices of input and state, and of the biases."""
    gates, width, batch, rows = net.gates, net.width, net.batch, net.rows(layer)
    at_input, place = net.stacked(dx, True), net.weight(layer, _X, d_vector)
    net.multiply(gates, x.shape[2], net.steps * batch, at_input, Matrix(x, x.shape[2]), place)
    # The first step began with the first state, the others with that after the step before.
    begin, place = net.step(dz, 0)._replace(transposed=True), net.weight(layer, _H, d_vector)
    net.multiply(gates, width, batch, begin, net.stacked(given["state"][rows]), place)
    if net.steps > 1:
        later = net.step(dz, 1, net.steps - 1)._replace(transposed=True)
        before = net.step(given["hidden"][rows], 0, net.steps - 1)
        net.multiply(gates, width, (net.steps - 1) * batch, later, before, place, adds=True)
    total, whole = kernel_for(net.k, "rows", "sum_rows", net.dtype), net.steps * batch
    for d, parts in enumerate(net.parts[rows]):
        for a, part in ((dx, _BIAS_X), (dz, _BIAS_H)):
            start, _ = parts[part]
            total.columns(gates, total.at(a, d * whole * gates), total.at(d_vector, start), whole, gates, False)
