// Rows of numbers that lie side by side. A row's threads have parts of WIDE numbers, one after the other: these are
// read and written at once where the memory is aligned, and kept where there are at most N numbers for each thread;
// longer rows are read again. Which thread has which numbers depends on the length of a row only.
#pragma once
#include "reduce.cuh"

#define WIDE (16 / (int)sizeof(T))
// Numbers that a thread keeps of each of so many rows (`KEPT_BYTES` in launching.py).
#define KEPT(rows) (128 / (int)sizeof(A) / (rows))

struct alignas(16) Wide {
    T of[WIDE];
};

// Whether rows of a length can be read and written by parts.
DEVICE bool aligned(const T* x, i64 n) { return (u64)x % 16 == 0 && n % WIDE == 0; }

// Of V numbers the first n, others are 0.
template <int V = WIDE> DEVICE void read_part(A* v, const T* x, i64 n, bool wide) {
    if (V == WIDE && wide) {
        Wide w = *(const Wide*)x;
#pragma unroll
        for (int u = 0; u < V; u++) v[u] = A(w.of[u]);
    } else {
#pragma unroll
        for (int u = 0; u < V; u++) v[u] = u < n ? A(x[u]) : A(0);
    }
}

template <int V = WIDE> DEVICE void write_part(T* y, const A* v, i64 n, bool wide) {
    if (V == WIDE && wide) {
        Wide w;
#pragma unroll
        for (int u = 0; u < V; u++) w.of[u] = T(v[u]);
        *(Wide*)y = w;
    } else {
#pragma unroll
        for (int u = 0; u < V; u++)
            if (u < n) y[u] = T(v[u]);
    }
}

// Call f(first number, place where it is kept, how many numbers there are from it on) for each part of this thread.
template <int N, class F> DEVICE void for_parts(i64 n, F f) {
    if constexpr (N > 0) {
#pragma unroll
        for (int j = 0; j < N / WIDE; j++) {
            int i = (j * blockDim.x + threadIdx.x) * WIDE;
            if (i < (int)n) f(i, j * WIDE, (int)n - i);
        }
    } else {
        for (i64 i = threadIdx.x * WIDE; i < n; i += blockDim.x * WIDE) f(i, 0, n - i);
    }
}

template <int N> struct Row {
    const T* x;
    i64 n;
    bool wide;
    A v[N > 0 ? N : WIDE];

    // All parts are asked for before anything is done with the first one.
    __device__ Row(const T* row, i64 length) : x(row), n(length), wide(aligned(row, length)) {
        if constexpr (N > 0) for_parts<N>(n, [&](int i, int at, int left) { read_part(v + at, x + i, left, wide); });
    }
    // The numbers from i on; if they are not kept, until the next part is asked for.
    __device__ A* part(i64 i, int at) {
        if constexpr (N > 0) return v + at;
        read_part(v, x + i, n - i, wide);
        return v;
    }
    template <class F> __device__ void each(F f) {
        for_parts<N>(n, [&](auto i, int at, auto left) {
            A* p = part(i, at);
#pragma unroll
            for (int u = 0; u < WIDE; u++)
                if (u < left) f(p[u]);
        });
    }
};

// Call f<N>(...), where each thread of the row keeps what it has of `rows` of them if it can.
#define BY_LENGTH(n, rows, f, ...)           \
    if ((n) <= KEPT(rows) * (i64)blockDim.x) \
        f<KEPT(rows)>(__VA_ARGS__);          \
    else                                     \
        f<0>(__VA_ARGS__)
