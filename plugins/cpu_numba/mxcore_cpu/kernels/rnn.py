"""Recurrent networks of several layers: a product per layer for the inputs of all steps, a kernel for the steps.

The gradients of a layer's weights are again one product each over all time steps.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..blas import single
from ..jit import Kernel
from ..typing import Array
from ._arrays import dense, flat
from .gemm import address, matmul
from .packed import address as address_packed
from .packed import pack, packed_size, pays, product
from .rnn_steps import gru, gru_backward, lstm, lstm_backward, simple, simple_backward

__all__ = ["Network", "backward", "forward"]

#: Sequences that a thread must have to be worth its while: the products of its steps read all weights for them.
_ROWS = 8


class Network(NamedTuple):
    """What a network is, apart from its arrays.

    Attributes
    ----------
    mode : str
        ``'lstm'``, ``'gru'``, ``'rnn_tanh'`` or ``'rnn_relu'``.
    units, width : int
        Units of a layer; length of a state, which a projection makes another one.
    layers, directions : int
    parts : tuple
        Per layer and direction (start, shape) of W_x, W_h, W_projection (or None), b_x, b_h in the vector of weights.
    clip : tuple or None
        (lowest, highest, NaN too) of cell states.
    """

    mode: str
    units: int
    width: int
    layers: int
    directions: int
    parts: Any
    clip: tuple[float, float, bool] | None


class _Job:
    """What all layers of one call share."""

    def __init__(self, net: Network, shape: tuple[int, ...], vector: Array, lengths: Array | None) -> None:
        self.net, self.vector = net, flat(vector)
        self.steps, self.batch = shape[:2]
        self.dtype = vector.dtype
        self.blas = address(self.dtype)
        self.masked = lengths is not None
        self.lengths = _all(self.batch, self.steps) if lengths is None else np.ceil(lengths).astype(np.int64)
        self.dead = None if lengths is None else np.arange(self.steps)[:, None] >= self.lengths
        self.gates = {"lstm": 4, "gru": 3}.get(net.mode, 1)
        low, high, nan = net.clip or (0.0, 0.0, False)
        self.limits = net.clip is not None, self.dtype.type(low), self.dtype.type(high)
        self.clip_nan = bool(nan)

    def empty(self, *shape: int) -> Array:
        return np.empty(shape, self.dtype)

    def weights(self, i: int, which: int) -> Array:
        """One of the matrices and biases of a layer and direction, as a view."""
        return _view(self.vector, self.net.parts[i][which])

    def rows(self, layer: int) -> slice:
        """A layer's rows in what has a row for each layer and direction."""
        return slice(layer * self.net.directions, (layer + 1) * self.net.directions)

    def states_by(self, layer: int, transposed: bool) -> tuple[int, Array, Array]:
        """What the states of a layer are multiplied by, for kernels: the product's address, the factors, their begins.

        These are the weights, `transposed` in forward. Packed once they serve all steps; BLAS would pack them at each.
        Where it has to, it takes two thirds of the time for a few rows with the weights of the state transposed.
        """
        directions, width, n = self.net.directions, self.net.width, self.gates * self.net.units
        packed = address_packed(self.dtype)
        parts = [self.weights(layer * directions + d, 1) for d in range(directions)]
        if not packed and not transposed:
            starts = [self.net.parts[layer * directions + d][1][0] for d in range(directions)]
            return 0, self.vector, np.array(starts, np.int64)
        shape = (width, n) if transposed else (n, width)
        size = packed_size(*shape, self.dtype) if packed else width * n
        back = self.empty(directions, size)
        for w, place in zip(parts, back):
            if packed:
                pack(w.T if transposed else w, place)
            else:
                place.reshape(shape)[...] = w.T
        return packed, back.reshape(-1), np.arange(directions, dtype=np.int64) * size

    def run(self, kernel: Kernel, *args: Any) -> None:
        """Run a kernel over all sequences."""
        n = self.batch * self.net.directions
        workers = kernel.workers(n * self.steps * self.gates * self.net.units * self.net.width)
        kernel.run(min(workers, max(1, n // _ROWS)), n, self.blas, self.steps, self.batch, *args)

    def input(self, data: Array, hidden: Array, drop: Array | None, layer: int) -> Array:
        """What a layer works on: the data, or the states of the layer below."""
        if layer == 0:
            return dense(data)
        below = hidden[self.rows(layer - 1)]
        if self.net.directions == 1 and drop is None and not self.masked:
            first: Array = below[0]
            return first
        x = self.joined(below, self.empty(self.steps, self.batch, self.net.directions * self.net.width))
        return x if drop is None else np.multiply(x, drop[layer - 1], out=x)

    def joined(self, hidden: Array, out: Array) -> Array:
        """The states of a layer's directions side by side, zero after the end of a sequence."""
        for d, h in enumerate(hidden):
            out[..., d * self.net.width : (d + 1) * self.net.width] = h
        if self.dead is not None:
            out[self.dead] = 0
        return out


def _multiply(a: Array, b: Array, out: Array, add: bool = False) -> None:
    """Write, or add, a product of matrices, however those lie; rows of `out` may be longer than it needs."""
    (m, k), n = a.shape, b.shape[1]
    if pays(out.dtype, m, n, k):
        product(a, b, out[:, :n], add)
    else:
        matmul(a, b, out, add=add, columns=None if n == out.shape[1] else n)


def _view(vector: Array, place: Any) -> Array:
    start, shape = place
    n = shape[0] * shape[1] if len(shape) == 2 else shape[0]
    part: Array = vector[start : start + n].reshape(shape)
    return part


@lru_cache(64)
def _all(batch: int, steps: int) -> Array:
    return np.full(batch, steps, np.int64)


@lru_cache(256)
def _places(parts: tuple[Any, ...]) -> Array:
    """Where the weights of state and projection and both biases begin, of each direction of a layer."""
    return np.array(
        [[w_h[0], w_r[0] if w_r else 0, b_x[0], b_h[0]] for _, w_h, w_r, b_x, b_h in parts], np.int64
    ).reshape(-1)


@single
def forward(
    net: Network,
    data: Array,
    vector: Array,
    state: Array,
    cell: Array | None,
    lengths: Array | None,
    drop: Array | None,
    out: Array,
    last_state: Array | None,
    last_cell: Array | None,
    gates: Array | None,
    cells: Array | None,
    hidden: Array | None,
) -> None:
    """Run a recurrent network over sequences.

    Parameters
    ----------
    net : Network
    data : ndarray, (time, batch, inputs)
    vector : ndarray
        All weights.
    state, cell : ndarray, (rows, batch, width) and (rows, batch, units)
        First states; a row is a direction of a layer. Only LSTM has cells.
    lengths : ndarray, (batch,), optional
        Steps of each sequence.
    drop : ndarray, (layers - 1, time, batch, directions * width), optional
        What the inputs of the layers above the first one are multiplied by.
    out : ndarray, (time, batch, directions * width)
    last_state, last_cell : ndarray, optional
        Shaped as the first ones.
    gates, cells, hidden : ndarray, (rows, time, batch, …), optional
        What :func:`backward` needs; only LSTM and GRU have gates (4 * units wide).
    """
    job, units = _Job(net, data.shape, vector, lengths), net.units
    lead = (net.directions, job.steps, job.batch)
    state = dense(state)
    cell = None if cell is None else dense(cell)
    spare: dict[Any, Array] = {}

    def place(kept: Array | None, layer: int, width: int, turn: int = 0) -> Array:
        """A layer's part of what is kept, or space that all use (in turns, where one reads what the one below left)."""
        if kept is not None:
            return kept[job.rows(layer)]
        if (width, turn) not in spare:
            spare[width, turn] = job.empty(*lead, width)
        return spare[width, turn]

    x = dense(data)
    for layer in range(net.layers):
        rows, at = job.rows(layer), _places(tuple(net.parts[job.rows(layer)]))
        h = place(hidden, layer, net.width, layer % 2)
        g = place(gates, layer, 4 * units, 2) if job.gates > 1 else h
        for d in range(net.directions):
            i = layer * net.directions + d
            _multiply(x.reshape(-1, x.shape[2]), job.weights(i, 0).T, g[d].reshape(-1, g.shape[3]))
        both = job.lengths, job.vector, at, *job.states_by(layer, True), state[rows].reshape(-1)
        c = None
        if net.mode == "lstm":
            assert cell is not None
            c = place(cells, layer, units, 3)
            job.run(
                lstm,
                units,
                net.width,
                *both,
                cell[rows].reshape(-1),
                g.reshape(-1),
                c.reshape(-1),
                h.reshape(-1),
                net.parts[0][2] is not None,
                *job.limits,
                job.clip_nan,
            )
        elif net.mode == "gru":
            job.run(gru, units, *both, g.reshape(-1), h.reshape(-1))
        else:
            job.run(simple, units, *both, h.reshape(-1), net.mode == "rnn_relu")
        for last, of in ((last_state, h), (last_cell, c)):
            if last is not None and of is not None:
                for d in range(net.directions):
                    last[layer * net.directions + d] = of[d, 0 if d else -1]
        if layer == net.layers - 1:
            job.joined(h, out)
        elif net.directions == 1 and drop is None and not job.masked:
            x = h[0]
        else:
            x = job.joined(h, job.empty(*out.shape) if layer == 0 else x)
            if drop is not None:
                x *= drop[layer]


@single
def backward(
    net: Network,
    dy: Array,
    d_last: Array | None,
    d_last_cell: Array | None,
    data: Array,
    vector: Array,
    state: Array,
    cell: Array | None,
    lengths: Array | None,
    gates: Array | None,
    cells: Array | None,
    hidden: Array,
    drop: Array | None,
    d_data: Array | None,
    d_vector: Array | None,
    d_state: Array | None,
    d_cell: Array | None,
) -> None:
    """Write the gradients that are not None, from those of the outputs (`dy`) and of the last states.

    The other arguments are those of :func:`forward`, and what it left.
    """
    job = _Job(net, data.shape, vector, lengths)
    units, width, directions, steps, batch = net.units, net.width, net.directions, job.steps, job.batch
    lead = (directions, steps, batch)
    state, hidden = dense(state), dense(hidden)
    gates, cells, cell = (None if a is None else dense(a) for a in (gates, cells, cell))
    projected = net.parts[0][2] is not None
    dz = job.empty(*lead, job.gates * units)
    dx = job.empty(*lead, 3 * units) if net.mode == "gru" else dz
    to_state = job.empty(*lead, width) if projected else job.empty(0)
    full = job.empty(*lead, units) if projected else job.empty(0)
    dh_layer, dc_layer = job.empty(directions, batch, width), job.empty(directions, batch, units)
    dy, below = dense(dy), job.empty(steps, batch, directions * width if net.layers > 1 else 0)
    for layer in range(net.layers - 1, -1, -1):
        rows, at = job.rows(layer), _places(tuple(net.parts[job.rows(layer)]))
        dh = dh_layer if d_state is None else d_state[rows]
        dh[...] = 0 if d_last is None else d_last[rows]
        h = hidden[rows]
        common = job.vector, at, *job.states_by(layer, False)
        grads = dy.reshape(-1), dy.shape[2], dh.reshape(-1)
        if net.mode == "lstm":
            assert cell is not None and gates is not None and cells is not None
            dc = dc_layer if d_cell is None else d_cell[rows]
            dc[...] = 0 if d_last_cell is None else d_last_cell[rows]
            job.run(
                lstm_backward,
                units,
                width,
                job.lengths,
                job.masked,
                *common,
                cell[rows].reshape(-1),
                gates[rows].reshape(-1),
                cells[rows].reshape(-1),
                *grads,
                dc.reshape(-1),
                dz.reshape(-1),
                projected,
                to_state.reshape(-1),
                full.reshape(-1),
                *job.limits,
            )
        elif net.mode == "gru":
            assert gates is not None
            job.run(
                gru_backward,
                units,
                job.lengths,
                *common,
                state[rows].reshape(-1),
                gates[rows].reshape(-1),
                h.reshape(-1),
                *grads,
                dx.reshape(-1),
                dz.reshape(-1),
            )
        else:
            job.run(
                simple_backward,
                units,
                job.lengths,
                job.masked,
                *common,
                h.reshape(-1),
                *grads,
                dz.reshape(-1),
                net.mode == "rnn_relu",
            )
        d_input = below if layer else d_data
        x = job.input(data, hidden, drop, layer).reshape(steps * batch, -1) if d_vector is not None else None
        for d in range(directions):
            i = layer * directions + d
            at_input = dx[d].reshape(steps * batch, -1)
            if d_vector is not None and x is not None:
                _weight_gradients(job, i, x, h[d], state[i], at_input, dz[d], d_vector, d)
                if projected:
                    _multiply(
                        to_state[d].reshape(-1, width).T, full[d].reshape(-1, units), _view(d_vector, net.parts[i][2])
                    )
            if d_input is not None:
                _multiply(at_input, job.weights(i, 0), d_input.reshape(steps * batch, -1), add=d > 0)
        if layer:
            dy = below
            if drop is not None:
                dy *= drop[layer - 1]


def _weight_gradients(
    job: _Job, i: int, x: Array, h: Array, first: Array, at_input: Array, dz: Array, d_vector: Array, reverse: int
) -> None:
    """Of the matrices of input and state and of the biases, of one layer and direction."""
    input_, state, _, *biases = job.net.parts[i]
    d_x, d_h, b_x, b_h = (_view(d_vector, place) for place in (input_, state, *biases))
    _multiply(at_input.T, x, d_x)
    # A step's state before is the state after another step, but for the first one.
    later, before, start = (dz[:-1], h[1:], dz[-1]) if reverse else (dz[1:], h[:-1], dz[0])
    _multiply(later.reshape(-1, dz.shape[2]).T, before.reshape(-1, h.shape[2]), d_h)
    _multiply(start.T, first, d_h, add=True)
    np.add.reduce(at_input, 0, out=b_x)
    if job.net.mode == "gru":
        np.add.reduce(dz.reshape(at_input.shape), 0, out=b_h)
    else:
        b_h[...] = b_x
