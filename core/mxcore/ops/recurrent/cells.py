"""One layer and direction of a recurrent network over a whole sequence, forward and backward, on any array namespace.

Arrays are (time, batch, units). `steps` are the time indices in the order of processing, `masks` (time, batch, 1) tell
where a sequence has not ended (None: nowhere); after its end a sequence keeps its state. Gates lie side by side in
cuDNN's order: LSTM input, forget, cell, output; GRU reset, update, new.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..._core.params import Params
from ...typing import Call

__all__ = ["CELLS", "GATES", "Layout", "dropout", "layout", "limits"]


#: mode -> number of gates
GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


class Layout:
    """Where the weights of each layer and direction lie in the packed parameter vector.

    All matrices come first, layer by layer and direction by direction (input to gates, state to gates, projection),
    then all biases in the same order (of the input, of the state).

    Attributes
    ----------
    size : int
        Length of the vector.
    parts : list
        Per layer and direction a list of (start, shape) or None: W_x, W_h, W_projection, b_x, b_h.
    """

    __slots__ = ("size", "parts")

    def __init__(self, mode: str, inputs: int, units: int, layers: int, directions: int, projected: int) -> None:
        rows, state = GATES[mode] * units, projected or units
        self.parts: list[list[Any]] = []
        at = 0

        def take(*shape: int) -> tuple[int, tuple[int, ...]]:
            nonlocal at
            start, n = at, 1
            for d in shape:
                n *= d
            at += n
            return start, shape

        for layer in range(layers):
            width = directions * state if layer else inputs
            for _ in range(directions):
                self.parts.append([take(rows, width), take(rows, state), take(state, units) if projected else None])
        for part in self.parts:
            part += [take(rows), take(rows)]
        self.size = at

    def views(self, vector: Any, i: int) -> list[Any]:
        """W_x, W_h, W_projection (or None), b_x, b_h of one layer and direction, as views of the vector."""
        found: list[Any] = []
        for place in self.parts[i]:
            if place is None:
                found.append(None)
            else:
                start, shape = place
                n = shape[0] * shape[1] if len(shape) == 2 else shape[0]
                found.append(vector[start : start + n].reshape(shape))
        return found


@lru_cache(128)
def layout(mode: str, inputs: int, units: int, layers: int, directions: int, projected: int) -> Layout:
    """The (cached) layout for these sizes."""
    return Layout(mode, inputs, units, layers, directions, projected)


def limits(p: Params) -> tuple[float, float, bool] | None:
    """(lowest, highest, NaN too) of cell states, None where they have no limits."""
    if p.lstm_state_clip_min is None and p.lstm_state_clip_max is None:
        return None
    if p.lstm_state_clip_min is None or p.lstm_state_clip_max is None or p.lstm_state_clip_min > p.lstm_state_clip_max:
        raise ValueError(
            f"lstm_state_clip_min={p.lstm_state_clip_min} "
            f"and lstm_state_clip_max={p.lstm_state_clip_max} must both be given, in order"
        )
    return p.lstm_state_clip_min, p.lstm_state_clip_max, p.lstm_state_clip_nan


def dropout(k: Call, p: Params, shape: tuple[int, ...], dtype: Any) -> Any:
    """What the inputs of the layers above the first one are multiplied by, (layers - 1, time, batch, width)."""
    xp = k.xp
    if not k.is_train:
        return xp.broadcast_to(xp.ones((1,) * len(shape), dtype), shape)
    keep = 1 - p.p
    return (k.rng.uniform(shape, np.float32) < keep) * dtype.type(1 / keep if keep else 0)


def _times(xp: Any, a: Any, w: Any) -> Any:
    """(T, N, A) times (B, A) transposed, as one matrix product."""
    return xp.matmul(a.reshape(-1, a.shape[2]), w.T).reshape(a.shape[0], a.shape[1], w.shape[0])


def _kept(xp: Any, mask: Any, new: Any, old: Any) -> Any:
    return new if mask is None else xp.where(mask, new, old)


class Cell:
    """A kind of recurrent cell. `saved` names what the forward pass leaves for the backward pass."""

    saved: tuple[str, ...] = ()

    def __init__(self, relu: bool = False) -> None:
        self.relu = relu

    def forward(
        self,
        xp: Any,
        x: Any,
        weights: list[Any],
        h: Any,
        c: Any,
        hidden: Any,
        gates: Any,
        cells: Any,
        steps: Any,
        masks: Any,
        clip: Any,
    ) -> tuple[Any, Any]:
        """Fill `hidden`, `gates` and `cells`; returns the last states."""
        w_x, w_h, _, b_x, b_h = weights
        z = _times(xp, x, w_x)
        z += b_x + b_h
        back = w_h.T
        for t in steps:
            a = z[t]
            a += xp.matmul(h, back)
            if self.relu:
                xp.maximum(a, a.dtype.type(0), out=a)
            else:
                xp.tanh(a, out=a)
            hidden[t] = _kept(xp, None if masks is None else masks[t], a, h)
            h = hidden[t]
        return h, c

    def backward(
        self,
        xp: Any,
        dy: Any,
        dh: Any,
        dc: Any,
        weights: list[Any],
        c: Any,
        hidden: Any,
        before: Any,
        gates: Any,
        cells: Any,
        steps: Any,
        masks: Any,
        clip: Any,
    ) -> tuple[Any, Any, Any, Any, Any]:
        """Gradients at the gates as the input and as the state see them, of the first states, and of the projection.

        `before` is the state that each step started from.
        """
        slope = (hidden > 0) if self.relu else 1 - hidden * hidden
        dz = dy * slope if masks is None else xp.where(masks, dy * slope, dy.dtype.type(0))
        for t in reversed(steps):
            a = dz[t]
            if masks is None:
                a += dh * slope[t]
                dh = xp.matmul(a, weights[1])
            else:
                a += xp.where(masks[t], dh * slope[t], dh.dtype.type(0))
                dh = xp.matmul(a, weights[1]) + xp.where(masks[t], dh.dtype.type(0), dh)
        return dz, dz, dh, dc, None


class LSTM(Cell):
    """Long short-term memory, also with a projected state (LSTMP)."""

    saved = ("gates", "cells")

    def forward(
        self,
        xp: Any,
        x: Any,
        weights: Any,
        h: Any,
        c: Any,
        hidden: Any,
        gates: Any,
        cells: Any,
        steps: Any,
        masks: Any,
        clip: Any,
    ) -> Any:
        w_x, w_h, w_r, b_x, b_h = weights
        n = w_x.shape[0] // 4
        # sigmoid(x) = tanh(x / 2) / 2 + 1 / 2: one tanh over all gates, with the half in the weights.
        half = xp.full(4 * n, 0.5, x.dtype)
        half[2 * n : 3 * n] = 1
        shift = 1 - half
        shift[2 * n : 3 * n] = 0
        gates[...] = _times(xp, x, w_x * half[:, None])
        gates += (b_x + b_h) * half
        back = (w_h * half[:, None]).T
        for t in steps:
            a, new_c = gates[t], cells[t]
            a += xp.matmul(h, back)
            xp.tanh(a, out=a)
            a *= half
            a += shift
            xp.multiply(a[:, n : 2 * n], c, out=new_c)
            new_c += a[:, :n] * a[:, 2 * n : 3 * n]
            if clip is not None:
                new_c[...] = _clipped(xp, new_c, clip)
            new_h = a[:, 3 * n :] * xp.tanh(new_c)
            if w_r is not None:
                new_h = xp.matmul(new_h, w_r.T)
            if masks is not None:
                new_h, new_c[...] = xp.where(masks[t], new_h, h), xp.where(masks[t], new_c, c)
            hidden[t] = new_h
            h, c = hidden[t], new_c
        return h, c

    def backward(
        self,
        xp: Any,
        dy: Any,
        dh: Any,
        dc: Any,
        weights: Any,
        c: Any,
        hidden: Any,
        before: Any,
        gates: Any,
        cells: Any,
        steps: Any,
        masks: Any,
        clip: Any,
    ) -> Any:
        _, w_h, w_r, _, _ = weights
        n = gates.shape[2] // 4
        curved = xp.tanh(cells)
        slope = gates * (1 - gates)
        slope[..., 2 * n : 3 * n] = 1 - xp.square(gates[..., 2 * n : 3 * n])
        out = gates[..., 3 * n :]
        down = out * (1 - curved * curved)
        inside = None if clip is None else (cells > clip[0]) & (cells < clip[1])
        dz = xp.empty(gates.shape, dy.dtype)
        d_state: Any = None if w_r is None else xp.empty(hidden.shape, dy.dtype)
        for j in range(len(steps) - 1, -1, -1):
            t = steps[j]
            c_before = cells[steps[j - 1]] if j else c
            gate, a = gates[t], dz[t]
            dh = dh + dy[t]
            new_h, new_c = dh, dc
            if masks is not None:
                new_h, new_c = xp.where(masks[t], dh, dh.dtype.type(0)), xp.where(masks[t], dc, dc.dtype.type(0))
            full = new_h
            if w_r is not None:
                d_state[t] = new_h
                full = xp.matmul(new_h, w_r)
            new_c = new_c + full * down[t]
            if inside is not None:
                new_c = new_c * inside[t]
            xp.multiply(new_c, gate[:, 2 * n : 3 * n], out=a[:, :n])
            xp.multiply(new_c, c_before, out=a[:, n : 2 * n])
            xp.multiply(new_c, gate[:, :n], out=a[:, 2 * n : 3 * n])
            xp.multiply(full, curved[t], out=a[:, 3 * n :])
            a *= slope[t]
            new_h, new_c = xp.matmul(a, w_h), new_c * gate[:, n : 2 * n]
            if masks is not None:
                new_h = new_h + xp.where(masks[t], dh.dtype.type(0), dh)
                new_c = new_c + xp.where(masks[t], dc.dtype.type(0), dc)
            dh, dc = new_h, new_c
        d_projection = None
        if w_r is not None:
            d_projection = xp.matmul(d_state.reshape(-1, d_state.shape[2]).T, (out * curved).reshape(-1, n))
        return dz, dz, dh, dc, d_projection


class GRU(Cell):
    """Gated recurrent unit, the reset gate applied after the state's matrix product. `gates` also hold that product."""

    saved = ("gates",)

    def forward(
        self,
        xp: Any,
        x: Any,
        weights: Any,
        h: Any,
        c: Any,
        hidden: Any,
        gates: Any,
        cells: Any,
        steps: Any,
        masks: Any,
        clip: Any,
    ) -> Any:
        w_x, w_h, _, b_x, b_h = weights
        n = w_x.shape[0] // 3
        z = _times(xp, x, w_x)
        z += b_x
        z[..., : 2 * n] += b_h[: 2 * n]
        back, b_n = w_h.T, b_h[2 * n :]
        for t in steps:
            a, state = gates[t], xp.matmul(h, back)
            both, new, from_state = a[:, : 2 * n], a[:, 2 * n : 3 * n], a[:, 3 * n :]
            xp.add(z[t, :, : 2 * n], state[:, : 2 * n], out=both)
            both *= 0.5
            xp.tanh(both, out=both)
            both *= 0.5
            both += 0.5
            xp.add(state[:, 2 * n :], b_n, out=from_state)
            xp.multiply(both[:, :n], from_state, out=new)
            new += z[t, :, 2 * n :]
            xp.tanh(new, out=new)
            hidden[t] = _kept(xp, None if masks is None else masks[t], new + both[:, n:] * (h - new), h)
            h = hidden[t]
        return h, c

    def backward(
        self,
        xp: Any,
        dy: Any,
        dh: Any,
        dc: Any,
        weights: Any,
        c: Any,
        hidden: Any,
        before: Any,
        gates: Any,
        cells: Any,
        steps: Any,
        masks: Any,
        clip: Any,
    ) -> Any:
        w_h = weights[1]
        n = gates.shape[2] // 4
        reset, update, new, from_state = (gates[..., i * n : (i + 1) * n] for i in range(4))
        to_new = (1 - update) * (1 - new * new)
        to_update = (before - new) * update * (1 - update)
        to_reset = from_state * reset * (1 - reset)
        dx = xp.empty((*gates.shape[:2], 3 * n), dy.dtype)
        dz = xp.empty((*gates.shape[:2], 3 * n), dy.dtype)
        for t in reversed(steps):
            dh = dh + dy[t]
            g = dh if masks is None else xp.where(masks[t], dh, dh.dtype.type(0))
            a, b = dx[t], dz[t]
            xp.multiply(g, to_new[t], out=a[:, 2 * n :])
            xp.multiply(g, to_update[t], out=a[:, n : 2 * n])
            xp.multiply(a[:, 2 * n :], to_reset[t], out=a[:, :n])
            b[:, : 2 * n] = a[:, : 2 * n]
            xp.multiply(a[:, 2 * n :], reset[t], out=b[:, 2 * n :])
            back = xp.matmul(b, w_h) + g * update[t]
            dh = back if masks is None else back + xp.where(masks[t], dh.dtype.type(0), dh)
        return dx, dz, dh, dc, None


def _clipped(xp: Any, c: Any, clip: Any) -> Any:
    """Cell states limited to an interval; NaN too, if so told."""
    limited = xp.clip(c, clip[0], clip[1])
    return xp.where(xp.isnan(c), c.dtype.type(clip[0]), limited) if clip[2] else limited


CELLS: dict[str, Cell] = {"rnn_relu": Cell(relu=True), "rnn_tanh": Cell(), "lstm": LSTM(), "gru": GRU()}
