// Connectionist temporal classification: sums over all ways to align a label with the time steps, a block for each
// sample. The path of a label is blank, first class, blank, second class … blank: `room` places where labels have `width`
// classes. alpha is the logarithm of the probability of arriving at a place at a time, beta of reaching the end from
// there, what is emitted then included in both.
#include "reduce.cuh"

#define LABELS                                                                                                      \
    const i64* classes, const i64* lengths, const i64* steps, const bool* possible, i64 times, int c, int width, \
        int blank

// The logarithm of the sum of what three are logarithms of; minus infinity is that of zero.
DEVICE A log_sum(A a, A b, A c) {
    A top = Largest()(a, Largest()(b, c));
    if (top == -INFINITY) top = 0;
    return top + log(exp(a - top) + exp(b - top) + exp(c - top));
}
DEVICE i64 class_at(const i64* label, int s, int blank) { return s % 2 ? label[s / 2] : i64(blank); }
// Whether a path may get to a place from two places before.
DEVICE bool skips(const i64* label, int s, int blank) {
    return s > 1 && s % 2 && label[s / 2] != blank && label[s / 2] != label[s / 2 - 1];
}

// logs (times, n, c) -> alpha (n, times, room), and the logarithm of each label's probability.
KERNEL(256) ctc_forward(const T* logs, T* alpha, T* totals, T* losses, LABELS) {
    i64 i = blockIdx.x, n = gridDim.x;
    int room = 2 * width + 1, ends = 2 * int(lengths[i]) + 1;
    const i64* label = classes + i * width;
    alpha += i * times * room;
    if (!possible[i]) {
        if (threadIdx.x == 0 && losses) losses[i] = T(0);
        return;
    }
    for (i64 t = 0; t < steps[i]; t++) {
        const T* emitted = logs + (t * n + i) * c;
        const T* before = alpha + (t - 1) * room;
        for (int s = threadIdx.x; s < ends; s += blockDim.x) {
            A v = s < 2 ? A(0) : -INFINITY;
            if (t > 0)
                v = log_sum(A(before[s]), s > 0 ? A(before[s - 1]) : -INFINITY,
                            skips(label, s, blank) ? A(before[s - 2]) : -INFINITY);
            alpha[t * room + s] = T(v + A(emitted[class_at(label, s, blank)]));
        }
        __syncthreads();
    }
    if (threadIdx.x) return;
    const T* last = alpha + (steps[i] - 1) * room + ends - 1;
    A total = log_sum(A(*last), ends > 1 ? A(last[-1]) : -INFINITY, -INFINITY);
    if (totals) totals[i] = T(total);
    if (losses) losses[i] = T(-total);
}
BLOCKS(ctc_forward)

// alpha becomes the probability of being at each place at each time, given the label; beta is (n, 2, room).
KERNEL(256) ctc_shares(const T* logs, T* alpha, const T* totals, T* beta, LABELS) {
    i64 i = blockIdx.x, n = gridDim.x;
    int room = 2 * width + 1, ends = 2 * int(lengths[i]) + 1;
    const i64* label = classes + i * width;
    if (!possible[i]) return;
    alpha += i * times * room;
    beta += i * 2 * room;
    A total = A(totals[i]) == -INFINITY ? A(0) : A(totals[i]);
    for (i64 t = steps[i] - 1; t >= 0; t--) {
        const T* row = logs + (t * n + i) * c;
        const T* after = beta + (t + 1) % 2 * room;
        for (int s = threadIdx.x; s < ends; s += blockDim.x) {
            A emitted = A(row[class_at(label, s, blank)]), v = s >= ends - 2 ? A(0) : -INFINITY;
            if (t < steps[i] - 1)
                v = log_sum(A(after[s]), s + 1 < ends ? A(after[s + 1]) : -INFINITY,
                            s + 2 < ends && skips(label, s + 2, blank) ? A(after[s + 2]) : -INFINITY);
            v += emitted;
            beta[t % 2 * room + s] = T(v);
            A a = A(alpha[t * room + s]);
            alpha[t * room + s] = T(a == -INFINITY || v == -INFINITY ? A(0) : exp(a + v - emitted - total));
        }
        __syncthreads();
    }
}
BLOCKS(ctc_shares)

// The gradient of a class: its probability minus how often it is expected, once at most, whatever rounding adds.
DEVICE A beside(A logarithm, A expected, A factor) { return (exp(logarithm) - (expected > 1 ? A(1) : expected)) * factor; }

// A block of 64 threads or more for each row of classes, those of all samples at one time after the other: the barriers
// of its reduction come between what is written to all classes and what to those of the label.
KERNEL(256) ctc_backward(const T* logs, const T* shares, const T* dy, T* dx, int n, LABELS) {
    i64 t = blockIdx.x / n, i = blockIdx.x % n;
    const i64* label = classes + i * width;
    logs += blockIdx.x * (i64)c;
    dx += blockIdx.x * (i64)c;
    shares += (i * times + t) * (2 * width + 1);
    bool runs = possible[i] && t < steps[i];
    A factor = runs ? A(dy[i]) : A(0), blanks = 0;
    for (int k = threadIdx.x; k < c; k += blockDim.x) dx[k] = runs ? T(beside(A(logs[k]), 0, factor)) : T(0);
    if (!runs) return;
    int count = int(lengths[i]);
    for (int s = threadIdx.x; s < 2 * count + 1; s += blockDim.x)
        if (class_at(label, s, blank) == blank) blanks += A(shares[s]);
    blanks = reduce_row(blanks, Sum());
    if (threadIdx.x == 0) dx[blank] = T(beside(A(logs[blank]), blanks, factor));
    for (int j = threadIdx.x; j < count; j += blockDim.x) {
        i64 k = label[j];
        bool first = k != blank;  // the first place of a class has the sum
        for (int before = 0; before < j && first; before++) first = label[before] != k;
        if (!first) continue;
        A expected = 0;
        for (int m = j; m < count; m++)
            if (label[m] == k) expected += A(shares[2 * m + 1]);
        dx[k] = T(beside(A(logs[k]), expected, factor));
    }
}
BLOCKS(ctc_backward)
