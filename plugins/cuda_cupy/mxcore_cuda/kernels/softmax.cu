// Softmax along the middle one of three dimensions (outer, n, inner). A row each.
#include "indices.cuh"
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

// A row of numbers that lie apart, by the threads of a block or by one that is alone.
template <bool alone> struct Apart {
    i64 first, n, inner;

    template <class F> __device__ void each(F f) const {
        for (i64 i = alone ? 0 : threadIdx.x; i < n; i += alone ? 1 : blockDim.x) f(first + i * inner);
    }
    template <class F> __device__ A over(A v, F f) const {
        if constexpr (alone)
            return v;
        else
            return reduce_row(v, f);
    }
};

template <bool alone>
DEVICE void softmax_apart(Apart<alone> row, const T* x, T* y, A temperature, int logarithm) {
    A largest = Largest::none(), total = 0;
    row.each([&](i64 at) { largest = Largest()(cooled(A(x[at]), temperature), largest); });
    largest = row.over(largest, Largest());
    row.each([&](i64 at) { total += exp(cooled(A(x[at]), temperature) - largest); });
    total = row.over(total, Sum());
    A shift = logarithm ? log(total) : 0;
    row.each([&](i64 at) {
        A z = cooled(A(x[at]), temperature) - largest;
        y[at] = T(logarithm ? z - shift : exp(z) / total);
    });
}

// How many numbers of a row count: its first ones, where `lengths` are given.
DEVICE i64 counting(const void* lengths, int kind, i64 row, i64 n) {
    if (!lengths) return n;
    i64 given = index_at(lengths, kind, row);
    return given < 0 ? 0 : given < n ? given : n;
}

KERNEL(256) softmax(const T* x, T* y, const void* lengths, int kind, i64 rows, i64 n, i64 inner, A temperature,
                    int logarithm) {
    i64 row = this_row();
    if (row >= rows) return;
    i64 first = first_of(row, n, inner), some = counting(lengths, kind, row, n);
    for (i64 i = some + threadIdx.x; i < n; i += blockDim.x) y[first + i * inner] = T(0);
    if (inner > 1)
        softmax_apart(Apart<false>{first, some, inner}, x, y, temperature, logarithm);
    else if (some <= KEPT(1) * (i64)blockDim.x)
        kept_softmax<KEPT(1)>(x + first, y + first, some, temperature, logarithm);
    else
        long_softmax(x + first, y + first, some, temperature, logarithm);
}
BLOCKS(softmax)

// A thread for each row: of many short ones, of which those side by side are read together.
KERNEL(256) softmax_columns(const T* x, T* y, const void* lengths, int kind, i64 rows, i64 n, i64 inner,
                            A temperature, int logarithm) {
    FOR_EACH(row, rows) {
        i64 first = first_of(row, n, inner), some = counting(lengths, kind, row, n);
        softmax_apart(Apart<true>{first, some, inner}, x, y, temperature, logarithm);
        for (i64 i = some; i < n; i++) y[first + i * inner] = T(0);
    }
}
EACH(softmax_columns)

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

template <bool alone>
DEVICE void apart_backward(Apart<alone> row, const T* dy, const T* y, T* dx, A temperature, int logarithm) {
    A total = 0;
    row.each([&](i64 at) { total += logarithm ? A(dy[at]) : A(dy[at]) * A(y[at]); });
    total = row.over(total, Sum());
    row.each([&](i64 at) {
        A g = logarithm ? A(dy[at]) - exp(A(y[at])) * total : (A(dy[at]) - total) * A(y[at]);
        dx[at] = T(cooled(g, temperature));
    });
}

KERNEL(256) softmax_backward(const T* dy, const T* y, T* dx, i64 rows, i64 n, i64 inner, A temperature, int logarithm) {
    i64 row = this_row();
    if (row >= rows) return;
    i64 first = first_of(row, n, inner);
    if (inner > 1)
        apart_backward(Apart<false>{first, n, inner}, dy, y, dx, temperature, logarithm);
    else
        BY_LENGTH(n, 2, dense_backward, dy + first, y + first, dx + first, n, temperature, logarithm);
}
BLOCKS(softmax_backward)

KERNEL(256) softmax_columns_backward(const T* dy, const T* y, T* dx, i64 rows, i64 n, i64 inner, A temperature,
                                     int logarithm) {
    FOR_EACH(row, rows) {
        i64 first = first_of(row, n, inner);
        apart_backward(Apart<true>{first, n, inner}, dy, y, dx, temperature, logarithm);
    }
}
EACH(softmax_columns_backward)
