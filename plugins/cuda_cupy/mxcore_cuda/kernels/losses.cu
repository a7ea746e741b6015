// Losses: what their layers predict, and the gradients of what they tell.
#include "indices.cuh"
#include "math.cuh"
#include "rows.cuh"

// -- sums -----------------------------------------------------------------------------------------------------------
// The sum of what a block's threads find, `least` at least.
template <class F> DEVICE void sum_share(A* y, T* narrow, i64 n, A least, F f) {
    A found = 0;
    FOR_EACH(i, n) found += f(i);
    found = reduce_row(found, Sum());
    if (threadIdx.x) return;
    if (found < least) found = least;
    if (y) y[blockIdx.x] = found;
    if (narrow) narrow[blockIdx.x] = T(found);
}

KERNEL(256) add_up(const A* x, A* y, T* narrow, i64 n, A least) {
    sum_share(y, narrow, n, least, [=](i64 i) { return x[i]; });
}
BLOCKS(add_up)

// How many labels are not `ignored`.
KERNEL(256) count_labels(const T* label, A* y, i64 n, A least, A ignored) {
    sum_share(y, nullptr, n, least, [=](i64 i) { return A(label[i]) != ignored ? A(1) : A(0); });
}
BLOCKS(count_labels)

// -- one logarithm of the softmax of each row -----------------------------------------------------------------------
// What there is one of for each row: of T or, `inner`, of A.
DEVICE A read_at(const void* x, int inner, i64 i) { return inner ? ((const A*)x)[i] : A(((const T*)x)[i]); }
DEVICE void write_at(void* y, int inner, i64 i, A v) {
    if (!y) return;
    if (inner)
        ((A*)y)[i] = v;
    else
        ((T*)y)[i] = T(v);
}

// The largest number, and the logarithm of the sum of exponentials above it.
template <int N> DEVICE void exponents(const T* x, i64 n, A* largest, A* total) {
    Row<N> row(x, n);
    A top = Largest::none(), sum = 0;
    row.each([&](A& v) { top = Largest()(v, top); });
    top = reduce_row(top, Largest());
    row.each([&](A& v) { sum += exp(v - top); });
    *largest = top;
    *total = log(reduce_row(sum, Sum()));
}

// Outputs may be null; picked logarithms are `least` at least.
KERNEL(256) pick_softmax(const T* x, const void* index, int kind, void* y, void* largest, void* total, int inner,
                         i64 rows, i64 n, A scalar, A least) {
    i64 row = this_row();
    if (row >= rows) return;
    A top, sum;
    BY_LENGTH(n, 1, exponents, x + row * n, n, &top, &sum);
    if (threadIdx.x) return;
    A picked = A(x[row * n + place_at(index, kind, row, int(n), 0)]) - top - sum;
    write_at(y, inner, row, Largest()(picked, least) * scalar);
    write_at(largest, inner, row, top);
    write_at(total, inner, row, sum);
}
BLOCKS(pick_softmax)

// Of a cross entropy, `whole`, there is one gradient that comes in, and an index out of range picks nothing.
KERNEL(256) pick_softmax_backward(const T* x, const void* index, int kind, const T* dy, const void* largest,
                                  const void* total, T* dx, int whole, i64 rows, i64 n, A scalar) {
    i64 row = this_row();
    if (row >= rows) return;
    i64 hit = whole ? index_at(index, kind, row) : place_at(index, kind, row, int(n), 0);
    A d = A(dy[whole ? 0 : row]) * scalar, top = read_at(largest, whole, row), sum = read_at(total, whole, row);
    x += row * n, dx += row * n;
    bool wide = aligned(x, n) && aligned(dx, n);
    for_parts<0>(n, [&](i64 i, int, i64 left) {
        A v[WIDE];
        read_part(v, x + i, left, wide);
#pragma unroll
        for (int u = 0; u < WIDE; u++) v[u] = (i + u == hit ? d : A(0)) - exp(v[u] - top - sum) * d;
        write_part(dx + i, v, left, wide);
    });
}
EACH(pick_softmax_backward)

// -- layers whose gradient is that of a loss ------------------------------------------------------------------------
// Counted in 32 bits where they do, which are divided fast.
template <class I, class F> DEVICE void each_class(I size, I n, I inner, F f) {
    I step = I(gridDim.x) * blockDim.x;
    for (I at = I(blockIdx.x) * blockDim.x + threadIdx.x; at < size; at += step) {
        I row = at / inner, outer = row / n;
        f(at, i64(outer) * inner + (at - row * inner), row - outer * n);
    }
}
// Call f(place, label's place, class) for each number of (outer, n, inner).
template <class F> DEVICE void of_classes(i64 size, i64 n, i64 inner, F f) {
    if (size < 0x7fffffff)
        each_class<u32>(size, n, inner, f);
    else
        each_class<i64>(size, n, inner, f);
}

// The softmax minus the label's one-hot row, scaled, divided by `count` and times `dy` where they are given.
KERNEL(256) softmax_output_backward(const T* y, const T* label, const A* count, const T* dy, T* dx, i64 size, i64 n,
                                    i64 inner, A scale, int ignores, A ignored, A smooth) {
    A rest = n > 1 ? smooth / A(n - 1) : A(0);
    if (count) scale /= count[0];
    of_classes(size, n, inner, [=](i64 at, i64 place, i64 i) {
        A wanted = A(label[place]), g = A(y[at]) - (whole(wanted) == i ? 1 - smooth : rest);
        g = ignores && wanted == ignored ? A(0) : g * scale;
        dx[at] = T(dy ? g * A(dy[at]) : g);
    });
}
EACH(softmax_output_backward)

KERNEL(256) svm_backward(const T* x, const T* label, T* dx, i64 size, i64 n, A margin, A scale, int linear) {
    of_classes(size, n, 1, [=](i64 at, i64 place, i64 i) {
        A sign = whole(A(label[place])) == i ? -1 : 1, gap = margin + sign * A(x[at]);
        A far = linear ? (gap > 0 ? A(1) : A(0)) : 2 * Largest()(gap, A(0));
        dx[at] = T(sign * far * scale);
    });
}
EACH(svm_backward)

// The numbers themselves, or their sigmoids.
KERNEL(256) predict(const T* x, T* y, i64 size, int logistic) {
    FOR_EACH(i, size) y[i] = logistic ? T(m::sigmoid(A(x[i]))) : x[i];
}
EACH(predict)

// What is predicted minus the label, or its sign, -1 where there is none.
KERNEL(256) regression_backward(const T* y, const T* label, const T* dy, T* dx, i64 size, A scale, int sign) {
    FOR_EACH(i, size) {
        A a = A(y[i]), b = A(label[i]), g = (sign ? (a > b ? A(1) : A(-1)) : a - b) * scale;
        dx[i] = T(dy ? g * A(dy[i]) : g);
    }
}
EACH(regression_backward)
