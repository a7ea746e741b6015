// Recurrent networks: what a step does besides its product of matrices. Arrays of all steps are (directions, steps,
// batch, width), those of one step (directions, batch, width); the second direction takes the steps backwards. A thread
// has one unit of one sequence in one direction. Gates lie side by side in cuDNN's order.
#include "math.cuh"

// Of a step: how many units there are, which step it is in the order of their taking, how wide rows are; steps of each
// sequence, if not all.
#define STEP u32 count, int j, int steps, int batch, int n, const int* lengths

struct Unit {
    int d, t, sequence, u;
    i64 own, now, before;  // rows: in arrays of one step, in those of all steps, and there one step before
    bool ended;
};

DEVICE Unit unit_of(u32 i, int j, int steps, int batch, int n, const int* lengths) {
    Unit s;
    u32 row = i / n;
    s.own = row;
    s.u = i - row * n;
    s.d = row / batch;
    s.sequence = row - s.d * batch;
    s.t = s.d ? steps - 1 - j : j;
    s.now = (s.d * (i64)steps + s.t) * batch + s.sequence;
    s.before = s.now + (s.d ? batch : -batch);
    s.ended = lengths && s.t >= lengths[s.sequence];
    return s;
}

// What all steps have of the step before this one; `first` where it is the first one.
DEVICE A before(const Unit& s, int j, int n, const T* first, const T* all) {
    return A(j ? all[s.before * n + s.u] : first[s.own * n + s.u]);
}
// The gradient of a state: of what comes later, and of the output.
DEVICE A gradient(const Unit& s, int batch, int n, int width, const T* dh, const T* dy) {
    return A(dh[s.own * n + s.u]) + A(dy[(s.t * (i64)batch + s.sequence) * width + s.d * n + s.u]);
}
// Biases lie in pairs, of the input and of the state, for each direction.
DEVICE A bias_of(const T* bias, int d, int gates, int which, int k) { return A(bias[(d * 2 + which) * (i64)gates + k]); }

// -- forward: `gates`, or `hidden` of simple cells, hold the products of inputs, and of states ------------------------
KERNEL(256) lstm_step(STEP, const T* bias, const T* first_c, const T* first_h, T* gates, T* cells, T* hidden, T* full,
                      int clips, A low, A high, int clips_nan) {
    FOR_EACH_OF_FEW(i, count) {
        Unit s = unit_of(i, j, steps, batch, n, lengths);
        T* gate = gates + s.now * 4 * n + s.u;
        A v[4];
        for (int g = 0; g < 4; g++) {
            v[g] = A(gate[g * n]) + (bias_of(bias, s.d, 4 * n, 0, g * n + s.u) + bias_of(bias, s.d, 4 * n, 1, g * n + s.u));
            v[g] = g == 2 ? m::tanh(v[g]) : m::sigmoid(v[g]);
            gate[g * n] = T(v[g]);
        }
        A old = before(s, j, n, first_c, cells), c = v[1] * old + v[0] * v[2];
        if (clips) c = c < low ? low : c > high ? high : clips_nan && c != c ? low : c;
        cells[s.now * n + s.u] = T(s.ended ? old : c);
        A h = v[3] * m::tanh(c);
        if (full)
            full[s.own * n + s.u] = T(h);  // to be projected
        else
            hidden[s.now * n + s.u] = T(s.ended ? before(s, j, n, first_h, hidden) : h);
    }
}
EACH(lstm_step)

// The projected states of sequences that have ended.
KERNEL(256) keep_ended(STEP, const T* first_h, T* hidden) {
    FOR_EACH_OF_FEW(i, count) {
        Unit s = unit_of(i, j, steps, batch, n, lengths);
        if (s.ended) hidden[s.now * n + s.u] = T(before(s, j, n, first_h, hidden));
    }
}
EACH(keep_ended)

// `state` are the products of the states alone; of `gates` the last is that of the new state, with its bias.
KERNEL(256) gru_step(STEP, const T* bias, const T* state, const T* first_h, T* gates, T* hidden) {
    FOR_EACH_OF_FEW(i, count) {
        Unit s = unit_of(i, j, steps, batch, n, lengths);
        T* gate = gates + s.now * 4 * n + s.u;
        const T* back = state + s.own * 3 * n + s.u;
        A x[3], z[3];
        for (int g = 0; g < 3; g++) {
            x[g] = A(gate[g * n]) + bias_of(bias, s.d, 3 * n, 0, g * n + s.u);
            z[g] = A(back[g * n]) + bias_of(bias, s.d, 3 * n, 1, g * n + s.u);
        }
        A reset = m::sigmoid(x[0] + z[0]), update = m::sigmoid(x[1] + z[1]), fresh = m::tanh(x[2] + reset * z[2]);
        gate[0] = T(reset);
        gate[n] = T(update);
        gate[2 * n] = T(fresh);
        gate[3 * n] = T(z[2]);
        A old = before(s, j, n, first_h, hidden);
        hidden[s.now * n + s.u] = T(s.ended ? old : fresh + update * (old - fresh));
    }
}
EACH(gru_step)

KERNEL(256) simple_step(STEP, const T* bias, const T* first_h, T* hidden, int relu) {
    FOR_EACH_OF_FEW(i, count) {
        Unit s = unit_of(i, j, steps, batch, n, lengths);
        A v = A(hidden[s.now * n + s.u]) + (bias_of(bias, s.d, n, 0, s.u) + bias_of(bias, s.d, n, 1, s.u));
        v = relu ? m::maximum(v, A(0)) : m::tanh(v);
        hidden[s.now * n + s.u] = T(s.ended ? before(s, j, n, first_h, hidden) : v);
    }
}
EACH(simple_step)

// A layer's output: the states of its directions side by side, zero after the end of a sequence, times `drop`.
KERNEL(256) join(u32 count, int directions, int steps, int batch, int n, const int* lengths, const T* hidden,
                 const T* drop, T* y) {
    FOR_EACH_OF_FEW(i, count) {
        u32 row = i / (directions * n), column = i - row * (directions * n), d = column / n, t = row / batch;
        bool ended = lengths && int(t) >= lengths[row - t * batch];
        A v = ended ? A(0) : A(hidden[(d * (i64)steps * batch + row) * n + (column - d * n)]);
        y[i] = T(drop ? v * A(drop[i]) : v);
    }
}
EACH(join)

// -- backward: `dh` and `dc` are the gradients of the states after this step; `dh` is left without what the product of
// `dz` will give. Sequences that have ended hand both on ---------------------------------------------------------------

// Through the projection: `d_state` is the gradient of its result.
KERNEL(256) projection_backward(STEP, const T* dy, int width, T* dh, T* d_state) {
    FOR_EACH_OF_FEW(i, count) {
        Unit s = unit_of(i, j, steps, batch, n, lengths);
        d_state[s.now * n + s.u] = T(s.ended ? A(0) : gradient(s, batch, n, width, dh, dy));
        if (lengths && !s.ended) dh[s.own * n + s.u] = T(0);
    }
}
EACH(projection_backward)

// With a projection `d_full` is the gradient of what it was given, which is written to `full` once more.
KERNEL(256) lstm_backward(STEP, const T* first_c, const T* gates, const T* cells, const T* dy, int width, T* dh, A* dc,
                          T* dz, const T* d_full, T* full, int clips, A low, A high) {
    FOR_EACH_OF_FEW(i, count) {
        Unit s = unit_of(i, j, steps, batch, n, lengths);
        const T* gate = gates + s.now * 4 * n + s.u;
        T* d_gate = dz + s.now * 4 * n + s.u;
        i64 at = s.now * n + s.u, own = s.own * n + s.u;
        if (s.ended) {
            for (int g = 0; g < 4; g++) d_gate[g * n] = T(0);
            if (full) full[at] = T(0);
            continue;
        }
        A in = A(gate[0]), forget = A(gate[n]), fresh = A(gate[2 * n]), out = A(gate[3 * n]);
        A c = A(cells[at]), curved = m::tanh(c);
        A g = d_full ? A(d_full[own]) : gradient(s, batch, n, width, dh, dy);
        A d = dc[own] + g * out * (1 - curved * curved);
        if (clips) d *= c > A(T(low)) && c < A(T(high)) ? A(1) : A(0);  // as limited states are kept
        d_gate[0] = T(d * fresh * in * (1 - in));
        d_gate[n] = T(d * before(s, j, n, first_c, cells) * forget * (1 - forget));
        d_gate[2 * n] = T(d * in * (1 - fresh * fresh));
        d_gate[3 * n] = T(g * curved * out * (1 - out));
        dc[own] = d * forget;
        if (full)
            full[at] = T(out * curved);
        else if (lengths)
            dh[own] = T(0);
    }
}
EACH(lstm_backward)

// The gradients of the gates as the input sees them, `dx`, and the state, `dz`.
KERNEL(256) gru_backward(STEP, const T* first_h, const T* gates, const T* hidden, const T* dy, int width, T* dh, T* dx,
                         T* dz) {
    FOR_EACH_OF_FEW(i, count) {
        Unit s = unit_of(i, j, steps, batch, n, lengths);
        const T* gate = gates + s.now * 4 * n + s.u;
        T *to_input = dx + s.now * 3 * n + s.u, *to_state = dz + s.now * 3 * n + s.u;
        A reset = A(gate[0]), update = A(gate[n]), fresh = A(gate[2 * n]), part = A(gate[3 * n]);
        A g = s.ended ? A(0) : gradient(s, batch, n, width, dh, dy);
        A d_new = g * (1 - update) * (1 - fresh * fresh), d_reset = d_new * part * reset * (1 - reset);
        A d_update = s.ended ? A(0) : g * (before(s, j, n, first_h, hidden) - fresh) * update * (1 - update);
        to_input[0] = to_state[0] = T(d_reset);
        to_input[n] = to_state[n] = T(d_update);
        to_input[2 * n] = T(d_new);
        to_state[2 * n] = T(d_new * reset);
        if (!s.ended) dh[s.own * n + s.u] = T(g * update);
    }
}
EACH(gru_backward)

KERNEL(256) simple_backward(STEP, const T* hidden, const T* dy, int width, T* dh, T* dz, int relu) {
    FOR_EACH_OF_FEW(i, count) {
        Unit s = unit_of(i, j, steps, batch, n, lengths);
        A y = A(hidden[s.now * n + s.u]), g = s.ended ? A(0) : gradient(s, batch, n, width, dh, dy);
        dz[s.now * n + s.u] = T(relu ? (y > 0 ? g : A(0)) : g * (1 - y * y));
        if (lengths && !s.ended) dh[s.own * n + s.u] = T(0);
    }
}
EACH(simple_backward)
