// Softmax along the middle one of three dimensions (outer, n, inner), and the losses after it. A row each.
#include "rows.cuh"

DEVICE i64 first_of(i64 row, i64 n, i64 inner) { return row / inner * n * inner + row % inner; }

// What is normalized: numbers divided by a temperature.
DEVICE A cooled(A v, A temperature) { return temperature == 1 ? v : v / temperature; }

// A row whose numbers lie side by side and are kept.
template <int N> DEVICE void kept_softmax(const T* x, T* y, i64 n, A temperature, int logarithm) {
    Row<N> row(x, n);
    A largest = Largest::none(), total = 0;
    row.each([&](A& v) {
        v = cooled(v, temperature);
        largest = Largest()(v, largest);
    });
    largest = reduce_row(largest, Largest());
    row.each([&](A& v) {
        v -= largest;
        A e = exp(v);
        total += e;
        if (!logarithm) v = e;
    });
    total = reduce_row(total, Sum());
    A share = 1 / total, shift = logarithm ? log(total) : 0;
    bool wide = row.wide && aligned(y, n);
    for_parts<N>(n, [&](int i, int at, int left) {
        A* v = row.part(i, at);
#pragma unroll
        for (int u = 0; u < WIDE; u++) v[u] = logarithm ? v[u] - shift : v[u] * share;
        write_part(y + i, v, left, wide);
    });
}

// A longer one: the sum follows the largest number so far, so that it is read twice.
DEVICE void long_softmax(const T* x, T* y, i64 n, A temperature, int logarithm) {
    Row<0> row(x, n);
    A largest = Largest::none(), total = 0;
    for_parts<0>(n, [&](i64 i, int at, i64 left) {
        A *v = row.part(i, at), now = largest;
#pragma unroll
        for (int u = 0; u < WIDE; u++)
            if (u < left) now = Largest()(v[u] = cooled(v[u], temperature), now);
        if (now == Largest::none()) return;  // of nothing but -infinity
        if (now != largest) total *= exp(largest - now);
        largest = now;
#pragma unroll
        for (int u = 0; u < WIDE; u++)
            if (u < left) total += exp(v[u] - largest);
    });
    A all = reduce_row(largest, Largest());
    total = reduce_row(largest == Largest::none() ? A(0) : total * exp(largest - all), Sum());
    A shift = logarithm ? log(total) : 0;
    bool wide = row.wide && aligned(y, n);
    for_parts<0>(n, [&](i64 i, int at, i64 left) {
        A* v = row.part(i, at);
#pragma unroll
        for (int u = 0; u < WIDE; u++) {
            A z = cooled(v[u], temperature) - all;
            v[u] = logarithm ? z - shift : exp(z) / total;
        }
        write_part(y + i, v, left, wide);
    });
}

KERNEL(256) softmax(const T* x, T* y, i64 rows, i64 n, i64 inner, A temperature, int logarithm) {
    i64 row = this_row();
    if (row >= rows) return;
    if (inner == 1) {
        if (n <= KEPT(1) * (i64)blockDim.x)
            kept_softmax<KEPT(1)>(x + row * n, y + row * n, n, temperature, logarithm);
        else
            long_softmax(x + row * n, y + row * n, n, temperature, logarithm);
        return;
    }
    i64 first = first_of(row, n, inner);
    A largest = Largest::none(), total = 0;
    auto number = [&](i64 i) { return cooled(A(x[first + i * inner]), temperature); };
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) largest = Largest()(number(i), largest);
    largest = reduce_row(largest, Largest());
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) total += exp(number(i) - largest);
    total = reduce_row(total, Sum());
    A shift = logarithm ? log(total) : 0;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        A z = number(i) - largest;
        y[first + i * inner] = T(logarithm ? z - shift : exp(z) / total);
    }
}
BLOCKS(softmax)

template <int N> DEVICE void dense_backward(const T* dy, const T* y, T* dx, i64 n, A temperature, int logarithm) {
    Row<N> grads(dy, n), given(y, n);
    A total = 0;
    for_parts<N>(n, [&](auto i, int at, auto left) {
        A *g = grads.part(i, at), *v = given.part(i, at);
#pragma unroll
        for (int u = 0; u < WIDE; u++)
            if (u < left) total += logarithm ? g[u] : g[u] * v[u];
    });
    total = reduce_row(total, Sum());
    bool wide = grads.wide && given.wide && aligned(dx, n);
    for_parts<N>(n, [&](auto i, int at, auto left) {
        A *g = grads.part(i, at), *v = given.part(i, at);
#pragma unroll
        for (int u = 0; u < WIDE; u++)
            g[u] = cooled(logarithm ? g[u] - exp(v[u]) * total : (g[u] - total) * v[u], temperature);
        write_part(dx + i, g, left, wide);
    });
}

KERNEL(256) softmax_backward(const T* dy, const T* y, T* dx, i64 rows, i64 n, i64 inner, A temperature, int logarithm) {
    i64 row = this_row();
    if (row >= rows) return;
    if (inner == 1) {
        BY_LENGTH(n, 2, dense_backward, dy + row * n, y + row * n, dx + row * n, n, temperature, logarithm);
        return;
    }
    i64 first = first_of(row, n, inner);
    A total = 0;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        i64 at = first + i * inner;
        total += logarithm ? A(dy[at]) : A(dy[at]) * A(y[at]);
    }
    total = reduce_row(total, Sum());
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        i64 at = first + i * inner;
        A g = logarithm ? A(dy[at]) - exp(A(y[at])) * total : (A(dy[at]) - total) * A(y[at]);
        dx[at] = T(g / temperature);
    }
}
BLOCKS(softmax_backward)

// How many labels are not `ignored`, 1 at least.
KERNEL(256) count_labels(const T* label, A* count, i64 rows, A ignored) {
    A found = 0;
    for (i64 i = threadIdx.x; i < rows; i += blockDim.x) found += A(label[i]) != ignored;
    found = reduce_row(found, Sum());
    if (threadIdx.x == 0) count[0] = found > 1 ? found : 1;
}
BLOCKS(count_labels)

// The softmax minus the label's one-hot row, scaled, and divided by `count` where it is given.
KERNEL(256) softmax_output_backward(const T* y, const T* label, const A* count, T* dx, i64 size, i64 n, A scale,
                                    int ignores, A ignored, A smooth) {
    FOR_EACH(at, size) {
        i64 row = at / n, i = at - row * n;
        A wanted = A(label[row]), divisor = count ? count[0] : A(1);
        bool hit = i == (i64)wanted;
        A target = hit ? 1 - smooth : smooth / (n - 1);
        A g = smooth == 0 ? A(y[at]) - (hit ? A(1) : A(0)) : A(y[at]) - target;
        dx[at] = T(ignores && wanted == ignored ? A(0) : g * (scale / divisor));
    }
}
EACH(softmax_output_backward)
