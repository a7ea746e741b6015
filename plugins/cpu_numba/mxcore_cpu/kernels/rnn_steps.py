"""The steps of recurrent layers: one kernel for all time steps of a layer, forward and backward, per kind of cell.

The items of these kernels are sequences: those of the first direction, then those of the second one. Sequences do not
meet in a recurrence, so every thread runs all time steps of its own ones and none waits for another between steps.

The products of the inputs with the weights, over all time steps at once, are in `gates` (in `hidden` for simple cells)
before the forward kernels run; the backward kernels leave the gradients of the gates to products over all time steps.
All arrays are flat: (direction, time, batch, units) those of every step, (direction, batch, units) states. `at` holds,
per direction, where the weights of the state, of the projection, and the biases of inputs and state begin in `weights`.
`lengths` tells how many steps each sequence has; after its end a sequence keeps its state. `back` has what states are
multiplied by, of each direction from `back_at` on: a matrix, or, where `packed` is the address of their product, a
packed one.

Loops go over few arrays at a time, since LLVM gives up vectorising where it would have to compare many addresses.
"""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..math import sigmoid, tanh
from ..typing import Array, Scalar
from .columns import clear, copy
from .gemm import multiply
from .packed import multiply_packed

__all__ = ["gru", "gru_backward", "lstm", "lstm_backward", "simple", "simple_backward"]

#: Products and sums of a layer that are worth more than one thread.
_WORK = 1 << 22


# -- rows
# ---------------------------------------------------------------------------------------------------------------
@helper(inline=False)
def _sigmoids(z: Array, z0: int, n: int, b: Array, b0: int, b1: int) -> None:
    y, p, q = z[z0 : z0 + n], b[b0 : b0 + n], b[b1 : b1 + n]
    for i in range(n):
        y[i] = sigmoid(y[i] + p[i] + q[i])


@helper(inline=False)
def _tanhs(z: Array, z0: int, n: int, b: Array, b0: int, b1: int) -> None:
    y, p, q = z[z0 : z0 + n], b[b0 : b0 + n], b[b1 : b1 + n]
    for i in range(n):
        y[i] = tanh(y[i] + p[i] + q[i])


@helper(inline=False)
def _relus(z: Array, z0: int, n: int, b: Array, b0: int, b1: int) -> None:
    y, p, q = z[z0 : z0 + n], b[b0 : b0 + n], b[b1 : b1 + n]
    zero = z.dtype.type(0)
    for i in range(n):
        v = y[i] + p[i] + q[i]
        y[i] = zero if v < zero else v


@helper(inline=False)
def _add(x: Array, x0: int, n: int, y: Array, y0: int) -> None:
    """y += x"""
    a, b = x[x0 : x0 + n], y[y0 : y0 + n]
    for i in range(n):
        b[i] += a[i]


@helper(inline=False)
def _of_states(
    blas: int, packed: int, m: int, n: int, k: int, a: Array, ao: int, b: Array, bo: int, add: int, c: Array, co: int
) -> None:
    """c = a @ b, or c += a @ b with `add`: (m, k), (k, n); by the product with packed matrices at `packed`, if b is."""
    if packed != 0:
        multiply_packed(packed, m, n, k, a, ao, b, bo, add, c, co)
    else:
        multiply(blas, False, False, m, n, k, a, ao, k, b, bo, n, add, c, co, n)


@helper(inline=False)
def _through(gates: Array, g0: int, n: int, cells: Array, c0: int, out: Array, o0: int) -> None:
    """The state: output gate times tanh(cell)."""
    o, c, y = gates[g0 + 3 * n : g0 + 4 * n], cells[c0 : c0 + n], out[o0 : o0 + n]
    for i in range(n):
        y[i] = o[i] * tanh(c[i])


@helper(inline=False)
def _cell(
    gates: Array,
    g0: int,
    n: int,
    before: Array,
    b0: int,
    cells: Array,
    c0: int,
    clip: bool,
    low: Scalar,
    high: Scalar,
    clip_nan: bool,
) -> None:
    i, f, g = gates[g0 : g0 + n], gates[g0 + n : g0 + 2 * n], gates[g0 + 2 * n : g0 + 3 * n]
    old, c = before[b0 : b0 + n], cells[c0 : c0 + n]
    for u in range(n):
        c[u] = f[u] * old[u] + i[u] * g[u]
    if clip:
        for u in range(n):
            v = c[u]
            v = low if v < low else high if v > high else v
            c[u] = low if clip_nan and v != v else v


@helper(inline=False)
def _cell_backward(
    gates: Array,
    g0: int,
    n: int,
    cells: Array,
    c0: int,
    before: Array,
    b0: int,
    dh: Array,
    h0: int,
    dc: Array,
    d0: int,
    dz: Array,
    z0: int,
    clip: bool,
    low: Scalar,
    high: Scalar,
) -> None:
    """The gradients of the gates; `dc` becomes that of the cell before."""
    one, zero = dz.dtype.type(1), dz.dtype.type(0)
    i, f = gates[g0 : g0 + n], gates[g0 + n : g0 + 2 * n]
    g, o = gates[g0 + 2 * n : g0 + 3 * n], gates[g0 + 3 * n : g0 + 4 * n]
    di, df = dz[z0 : z0 + n], dz[z0 + n : z0 + 2 * n]
    dg, do = dz[z0 + 2 * n : z0 + 3 * n], dz[z0 + 3 * n : z0 + 4 * n]
    c, old, d, s = cells[c0 : c0 + n], before[b0 : b0 + n], dc[d0 : d0 + n], dh[h0 : h0 + n]
    for u in range(n):
        do[u] = tanh(c[u])
    for u in range(n):
        d[u] += s[u] * o[u] * (one - do[u] * do[u])
    if clip:
        for u in range(n):
            d[u] *= one if (c[u] > low) & (c[u] < high) else zero
    for u in range(n):
        do[u] = s[u] * do[u] * o[u] * (one - o[u])
    for u in range(n):
        di[u] = d[u] * g[u] * i[u] * (one - i[u])
    for u in range(n):
        df[u] = d[u] * old[u] * f[u] * (one - f[u])
    for u in range(n):
        dg[u] = d[u] * i[u] * (one - g[u] * g[u])
    for u in range(n):
        d[u] *= f[u]


# -- LSTM
# ---------------------------------------------------------------------------------------------------------------
@kernel(threshold=_WORK, blas=True)
def lstm(
    first: int,
    last: int,
    blas: int,
    steps: int,
    batch: int,
    n: int,
    width: int,
    lengths: Array,
    weights: Array,
    at: Array,
    packed: int,
    back: Array,
    back_at: Array,
    first_h: Array,
    first_c: Array,
    gates: Array,
    cells: Array,
    hidden: Array,
    projected: bool,
    clip: bool,
    low: Scalar,
    high: Scalar,
    clip_nan: bool,
) -> None:
    """Fill gates, cells and hidden; `back` are the transposed weights of the state."""
    full = np.empty((last - first) * n if projected else 0, hidden.dtype)
    for d in range(first // batch, (last + batch - 1) // batch):
        a, b = max(first - d * batch, 0), min(last - d * batch, batch)
        h, ho, c, co = first_h, d * batch * width, first_c, d * batch * n
        for j in range(steps):
            t = steps - 1 - j if d else j
            now = (d * steps + t) * batch
            _of_states(
                blas, packed, b - a, 4 * n, width, h, ho + a * width, back, back_at[d], True, gates, (now + a) * 4 * n
            )
            for r in range(a, b):
                g0, c0 = (now + r) * 4 * n, (now + r) * n
                _sigmoids(gates, g0, 2 * n, weights, at[4 * d + 2], at[4 * d + 3])
                _tanhs(gates, g0 + 2 * n, n, weights, at[4 * d + 2] + 2 * n, at[4 * d + 3] + 2 * n)
                _sigmoids(gates, g0 + 3 * n, n, weights, at[4 * d + 2] + 3 * n, at[4 * d + 3] + 3 * n)
                _cell(gates, g0, n, c, co + r * n, cells, c0, clip, low, high, clip_nan)
                if projected:
                    _through(gates, g0, n, cells, c0, full, (r - a) * n)
                else:
                    _through(gates, g0, n, cells, c0, hidden, (now + r) * n)
            if projected:
                multiply(
                    blas,
                    False,
                    True,
                    b - a,
                    width,
                    n,
                    full,
                    0,
                    n,
                    weights,
                    at[4 * d + 1],
                    n,
                    False,
                    hidden,
                    (now + a) * width,
                    width,
                )
            for r in range(a, b):
                if t >= lengths[r]:
                    copy(h, ho + r * width, width, hidden, (now + r) * width)
                    copy(c, co + r * n, n, cells, (now + r) * n)
            h, ho, c, co = hidden, now * width, cells, now * n


@kernel(threshold=_WORK, blas=True)
def lstm_backward(
    first: int,
    last: int,
    blas: int,
    steps: int,
    batch: int,
    n: int,
    width: int,
    lengths: Array,
    masked: int,
    weights: Array,
    at: Array,
    packed: int,
    back: Array,
    back_at: Array,
    first_c: Array,
    gates: Array,
    cells: Array,
    dy: Array,
    dy_width: int,
    dh: Array,
    dc: Array,
    dz: Array,
    projected: bool,
    d_state: Array,
    full: Array,
    clip: bool,
    low: Scalar,
    high: Scalar,
) -> None:
    """From the gradients of outputs (`dy`) and last states (`dh`, `dc`) to those of gates (`dz`) and first states.

    With a projection also `d_state`, the gradients of its results, and `full`, the states before it.
    """
    part = np.empty((last - first) * n if projected else 0, dz.dtype)
    for d in range(first // batch, (last + batch - 1) // batch):
        a, b = max(first - d * batch, 0), min(last - d * batch, batch)
        for j in range(steps - 1, -1, -1):
            t = steps - 1 - j if d else j
            now = (d * steps + t) * batch
            c, co = cells, (now + (batch if d else -batch)) * n
            if j == 0:
                c, co = first_c, d * batch * n
            for r in range(a, b):
                h0 = (d * batch + r) * width
                if t < lengths[r]:
                    _add(dy, (t * batch + r) * dy_width + d * width, width, dh, h0)
                    if projected:
                        copy(dh, h0, width, d_state, (now + r) * width)
                        _through(gates, (now + r) * 4 * n, n, cells, (now + r) * n, full, (now + r) * n)
                elif projected:
                    clear(d_state, (now + r) * width, width)
                    clear(full, (now + r) * n, n)
            if projected:
                multiply(
                    blas,
                    False,
                    False,
                    b - a,
                    n,
                    width,
                    d_state,
                    (now + a) * width,
                    width,
                    weights,
                    at[4 * d + 1],
                    n,
                    False,
                    part,
                    0,
                    n,
                )
            for r in range(a, b):
                h0, z0, c0 = (d * batch + r) * width, (now + r) * 4 * n, (now + r) * n
                if t >= lengths[r]:
                    clear(dz, z0, 4 * n)
                    continue
                s, s0 = dh, h0
                if projected:
                    s, s0 = part, (r - a) * n
                _cell_backward(
                    gates, z0, n, cells, c0, c, co + r * n, s, s0, dc, (d * batch + r) * n, dz, z0, clip, low, high
                )
                if masked:
                    clear(dh, h0, width)
            _of_states(
                blas,
                packed,
                b - a,
                width,
                4 * n,
                dz,
                (now + a) * 4 * n,
                back,
                back_at[d],
                masked,
                dh,
                (d * batch + a) * width,
            )


# -- GRU
# ----------------------------------------------------------------------------------------------------------------
@helper(inline=False)
def _new_state(
    gates: Array,
    g0: int,
    n: int,
    b: Array,
    b0: int,
    b1: int,
    before: Array,
    h0: int,
    out: Array,
    o0: int,
    state: Array,
    s0: int,
) -> None:
    """The gates new and update (the latter is ready), the state's part in new, and the state that follows."""
    reset, update = gates[g0 : g0 + n], gates[g0 + n : g0 + 2 * n]
    new, part = gates[g0 + 2 * n : g0 + 3 * n], gates[g0 + 3 * n : g0 + 4 * n]
    p, q, s, old, y = b[b0 : b0 + n], b[b1 : b1 + n], state[s0 : s0 + n], before[h0 : h0 + n], out[o0 : o0 + n]
    for u in range(n):
        part[u] = s[u] + q[u]
    for u in range(n):
        new[u] = new[u] + p[u] + reset[u] * part[u]
    for u in range(n):
        new[u] = tanh(new[u])
    for u in range(n):
        y[u] = new[u] + update[u] * (old[u] - new[u])


@kernel(threshold=_WORK, blas=True)
def gru(
    first: int,
    last: int,
    blas: int,
    steps: int,
    batch: int,
    n: int,
    lengths: Array,
    weights: Array,
    at: Array,
    packed: int,
    back: Array,
    back_at: Array,
    first_h: Array,
    gates: Array,
    hidden: Array,
) -> None:
    """Fill gates and hidden; `back` are the transposed weights of the state."""
    state = np.empty((last - first) * 3 * n, hidden.dtype)
    for d in range(first // batch, (last + batch - 1) // batch):
        a, b = max(first - d * batch, 0), min(last - d * batch, batch)
        h, ho = first_h, d * batch * n
        for j in range(steps):
            t = steps - 1 - j if d else j
            now = (d * steps + t) * batch
            _of_states(blas, packed, b - a, 3 * n, n, h, ho + a * n, back, back_at[d], False, state, 0)
            for r in range(a, b):
                g0, s0, y0 = (now + r) * 4 * n, (r - a) * 3 * n, (now + r) * n
                _add(state, s0, 2 * n, gates, g0)
                _sigmoids(gates, g0, 2 * n, weights, at[4 * d + 2], at[4 * d + 3])
                _new_state(
                    gates,
                    g0,
                    n,
                    weights,
                    at[4 * d + 2] + 2 * n,
                    at[4 * d + 3] + 2 * n,
                    h,
                    ho + r * n,
                    hidden,
                    y0,
                    state,
                    s0 + 2 * n,
                )
                if t >= lengths[r]:
                    copy(h, ho + r * n, n, hidden, y0)
            h, ho = hidden, now * n


@helper(inline=False)
def _new_state_backward(
    gates: Array, g0: int, n: int, before: Array, b0: int, dh: Array, h0: int, dx: Array, dz: Array, z0: int
) -> None:
    """The gradients of the gates as the input (`dx`) and as the state sees them (`dz`); `dh` keeps the rest."""
    one = dx.dtype.type(1)
    reset, update = gates[g0 : g0 + n], gates[g0 + n : g0 + 2 * n]
    new, part = gates[g0 + 2 * n : g0 + 3 * n], gates[g0 + 3 * n : g0 + 4 * n]
    xr, xu, xn = dx[z0 : z0 + n], dx[z0 + n : z0 + 2 * n], dx[z0 + 2 * n : z0 + 3 * n]
    zn = dz[z0 + 2 * n : z0 + 3 * n]
    old, g = before[b0 : b0 + n], dh[h0 : h0 + n]
    for u in range(n):
        xn[u] = g[u] * (one - update[u]) * (one - new[u] * new[u])
    for u in range(n):
        xu[u] = g[u] * (old[u] - new[u])
    for u in range(n):
        xu[u] *= update[u] * (one - update[u])
    for u in range(n):
        xr[u] = xn[u] * part[u]
    for u in range(n):
        xr[u] *= reset[u] * (one - reset[u])
    for u in range(n):
        zn[u] = xn[u] * reset[u]
    for u in range(n):
        g[u] *= update[u]
    copy(dx, z0, 2 * n, dz, z0)


@kernel(threshold=_WORK, blas=True)
def gru_backward(
    first: int,
    last: int,
    blas: int,
    steps: int,
    batch: int,
    n: int,
    lengths: Array,
    weights: Array,
    at: Array,
    packed: int,
    back: Array,
    back_at: Array,
    first_h: Array,
    gates: Array,
    hidden: Array,
    dy: Array,
    dy_width: int,
    dh: Array,
    dx: Array,
    dz: Array,
) -> None:
    """From the gradients of outputs (`dy`) and last states (`dh`) to those of gates (`dx`, `dz`) and first states."""
    for d in range(first // batch, (last + batch - 1) // batch):
        a, b = max(first - d * batch, 0), min(last - d * batch, batch)
        for j in range(steps - 1, -1, -1):
            t = steps - 1 - j if d else j
            now = (d * steps + t) * batch
            h, ho = hidden, (now + (batch if d else -batch)) * n
            if j == 0:
                h, ho = first_h, d * batch * n
            for r in range(a, b):
                h0, z0 = (d * batch + r) * n, (now + r) * 3 * n
                if t < lengths[r]:
                    _add(dy, (t * batch + r) * dy_width + d * n, n, dh, h0)
                    _new_state_backward(gates, (now + r) * 4 * n, n, h, ho + r * n, dh, h0, dx, dz, z0)
                else:
                    clear(dx, z0, 3 * n)
                    clear(dz, z0, 3 * n)
            _of_states(
                blas, packed, b - a, n, 3 * n, dz, (now + a) * 3 * n, back, back_at[d], True, dh, (d * batch + a) * n
            )


# -- simple cells
# -------------------------------------------------------------------------------------------------------
@kernel(threshold=_WORK, blas=True)
def simple(
    first: int,
    last: int,
    blas: int,
    steps: int,
    batch: int,
    n: int,
    lengths: Array,
    weights: Array,
    at: Array,
    packed: int,
    back: Array,
    back_at: Array,
    first_h: Array,
    hidden: Array,
    relu: bool,
) -> None:
    """Fill hidden; `back` are the transposed weights of the state."""
    for d in range(first // batch, (last + batch - 1) // batch):
        a, b = max(first - d * batch, 0), min(last - d * batch, batch)
        h, ho = first_h, d * batch * n
        for j in range(steps):
            t = steps - 1 - j if d else j
            now = (d * steps + t) * batch
            _of_states(blas, packed, b - a, n, n, h, ho + a * n, back, back_at[d], True, hidden, (now + a) * n)
            for r in range(a, b):
                if t >= lengths[r]:
                    copy(h, ho + r * n, n, hidden, (now + r) * n)
                elif relu:
                    _relus(hidden, (now + r) * n, n, weights, at[4 * d + 2], at[4 * d + 3])
                else:
                    _tanhs(hidden, (now + r) * n, n, weights, at[4 * d + 2], at[4 * d + 3])
            h, ho = hidden, now * n


@helper(inline=False)
def _slope(hidden: Array, y0: int, n: int, dh: Array, h0: int, dz: Array, z0: int, relu: bool) -> None:
    y, g, z = hidden[y0 : y0 + n], dh[h0 : h0 + n], dz[z0 : z0 + n]
    one, zero = dz.dtype.type(1), dz.dtype.type(0)
    if relu:
        for u in range(n):
            z[u] = g[u] if y[u] > zero else zero
    else:
        for u in range(n):
            z[u] = g[u] * (one - y[u] * y[u])


@kernel(threshold=_WORK, blas=True)
def simple_backward(
    first: int,
    last: int,
    blas: int,
    steps: int,
    batch: int,
    n: int,
    lengths: Array,
    masked: int,
    weights: Array,
    at: Array,
    packed: int,
    back: Array,
    back_at: Array,
    hidden: Array,
    dy: Array,
    dy_width: int,
    dh: Array,
    dz: Array,
    relu: bool,
) -> None:
    """From gradients of outputs (`dy`) and last states (`dh`) to those before activation (`dz`) and of first states."""
    for d in range(first // batch, (last + batch - 1) // batch):
        a, b = max(first - d * batch, 0), min(last - d * batch, batch)
        for j in range(steps - 1, -1, -1):
            t = steps - 1 - j if d else j
            now = (d * steps + t) * batch
            for r in range(a, b):
                h0, z0 = (d * batch + r) * n, (now + r) * n
                if t >= lengths[r]:
                    clear(dz, z0, n)
                    continue
                _add(dy, (t * batch + r) * dy_width + d * n, n, dh, h0)
                _slope(hidden, z0, n, dh, h0, dz, z0, relu)
                if masked:
                    clear(dh, h0, n)
            _of_states(blas, packed, b - a, n, n, dz, (now + a) * n, back, back_at[d], masked, dh, (d * batch + a) * n)
