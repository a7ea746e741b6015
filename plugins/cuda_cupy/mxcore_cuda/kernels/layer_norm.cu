// Normalization of rows: of layers, whose scale is one for each place of a row, and of groups and instances, whose scale
// is one for each row of a sample (`by_row`, of which there are `groups`).
#include "rows.cuh"

// The mean of a row, and its standard deviation.
template <int N> DEVICE void row_statistics(Row<N>& x, A eps, A* mean, A* std) {
    A total = 0, square = 0;
    x.each([&](A v) { total += v; });
    A middle = *mean = reduce_row(total, Sum()) / A(x.n);
    x.each([&](A v) { square += (v - middle) * (v - middle); });
    *std = sqrt(reduce_row(square, Sum()) / A(x.n) + eps);
}

template <int N>
DEVICE void normalize_row(const T* x, const T* gamma, const T* beta, T* y, T* means, T* stds, i64 row, i64 n,
                          int by_row, i64 groups, A eps) {
    Row<N> given(x + row * n, n);
    A mean, std;
    row_statistics(given, eps, &mean, &std);
    if (threadIdx.x == 0) {
        if (means) means[row] = T(mean);
        if (stds) stds[row] = T(std);
    }
    if (!y) return;
    bool places = aligned(gamma, n) && aligned(beta, n), wide = given.wide && aligned(y, n);
    y += row * n;
    A inv = 1 / std, scale = by_row ? A(gamma[row % groups]) : A(0), shift = by_row ? A(beta[row % groups]) : A(0);
    for_parts<N>(n, [&](auto i, int at, auto left) {
        A *v = given.part(i, at), g[WIDE], b[WIDE];
        if (!by_row) {
            read_part(g, gamma + i, left, places);
            read_part(b, beta + i, left, places);
        }
#pragma unroll
        for (int u = 0; u < WIDE; u++) v[u] = (v[u] - mean) * inv * (by_row ? scale : g[u]) + (by_row ? shift : b[u]);
        write_part(y + i, v, left, wide);
    });
}

KERNEL(256) normalize_rows(const T* x, const T* gamma, const T* beta, T* y, T* means, T* stds, i64 rows, i64 n,
                           int by_row, i64 groups, A eps) {
    i64 row = this_row();
    if (row >= rows) return;
    BY_LENGTH(n, 1, normalize_row, x, gamma, beta, y, means, stds, row, n, by_row, groups, eps);
}
BLOCKS(normalize_rows)

template <int N>
DEVICE void row_backward(const T* dy, const T* x, const T* gamma, A* means, A* stds, T* dx, A* sums, A* products,
                         i64 row, i64 n, int by_row, i64 groups, int again, A eps) {
    Row<N> grads(dy + row * n, n), given(x + row * n, n);
    A mean, std, total = 0, product = 0;
    if (again) {
        row_statistics(given, eps, &mean, &std);
        if (threadIdx.x == 0) {
            means[row] = mean;
            stds[row] = std;
        }
    } else {
        mean = means[row];
        std = stds[row];
    }
    A inv = 1 / std;
    bool places = aligned(gamma, n), wide = grads.wide && given.wide && aligned(dx, n);
    // The gradient of what is normalized, and that.
    auto both = [&](auto i, int at, auto left, auto f) {
        A *g = grads.part(i, at), *v = given.part(i, at), by[WIDE];
        if (!by_row) read_part(by, gamma + i, left, places);
#pragma unroll
        for (int u = 0; u < WIDE; u++)
            if (u < left) f(u, by_row ? g[u] : g[u] * by[u], (v[u] - mean) * inv);
    };
    for_parts<N>(n, [&](auto i, int at, auto left) {
        both(i, at, left, [&](int u, A g, A z) {
            total += g;
            product += g * z;
        });
    });
    reduce_both(&total, &product);
    if (by_row && threadIdx.x == 0) {
        sums[row] = total;
        products[row] = product;
    }
    if (!dx) return;
    A scale = (by_row ? A(gamma[row % groups]) : A(1)) * inv, share = total / A(n), slope = product / A(n);
    for_parts<N>(n, [&](auto i, int at, auto left) {
        A found[WIDE];
        both(i, at, left, [&](int u, A g, A z) { found[u] = scale * (g - share - z * slope); });
        write_part(dx + row * n + i, found, left, wide);
    });
}

// The gradient of the data and, of each row, the sums of the gradient and of its products with the normalized data.
// Statistics are found `again` where the forward pass rounded them to the type of the data.
KERNEL(256) rows_backward(const T* dy, const T* x, const T* gamma, A* means, A* stds, T* dx, A* sums, A* products,
                          i64 rows, i64 n, int by_row, i64 groups, int again, A eps) {
    i64 row = this_row();
    if (row >= rows) return;
    BY_LENGTH(n, 2, row_backward, dy, x, gamma, means, stds, dx, sums, products, row, n, by_row, groups, again, eps);
}
BLOCKS(rows_backward)

// Sums over the rows of each place: blocks of 32 parts of a row, 8 rows at a time, rows shared by the blocks along y.
KERNEL(256) places_backward(const T* dy, const T* x, const A* means, const A* stds, A* sums, A* products, i64 rows,
                            i64 n, i64 share) {
    SHARED(A, total, [8][32 * WIDE]);
    SHARED(A, product, [8][32 * WIDE]);
    i64 i = (blockIdx.x * 32ll + threadIdx.x) * WIDE, first = blockIdx.y * share;
    i64 end = first + share < rows ? first + share : rows;
    bool wide = aligned(dy, n) && aligned(x, n);
    A a[WIDE], b[WIDE];
#pragma unroll
    for (int u = 0; u < WIDE; u++) a[u] = b[u] = 0;
    if (i < n)
#pragma unroll 2
        for (i64 row = first + threadIdx.y; row < end; row += 8) {
            A g[WIDE], v[WIDE], mean = means[row], inv = 1 / stds[row];
            read_part(g, dy + row * n + i, n - i, wide);
            read_part(v, x + row * n + i, n - i, wide);
#pragma unroll
            for (int u = 0; u < WIDE; u++) {
                a[u] += g[u];
                b[u] += g[u] * ((v[u] - mean) * inv);
            }
        }
#pragma unroll
    for (int u = 0; u < WIDE; u++) {
        total[threadIdx.y][u * 32 + threadIdx.x] = a[u];  // beside each other, so that no two are in one bank
        product[threadIdx.y][u * 32 + threadIdx.x] = b[u];
    }
    __syncthreads();
    for (int at = threadIdx.y * 32 + threadIdx.x; at < 32 * WIDE; at += 256) {
        i64 place = (blockIdx.x * 32ll + at % 32) * WIDE + at / 32;
        if (place >= n) continue;
        A c = 0, d = 0;
        for (int j = 0; j < 8; j++) {
            c += total[j][at];
            d += product[j][at];
        }
        sums[blockIdx.y * n + place] = c;
        products[blockIdx.y * n + place] = d;
    }
}
BLOCKS(places_backward)

// What several found for each of n places, added up: blocks of 32 places, 8 parts at a time.
KERNEL(256) finish_places(const A* sums, const A* products, T* d_gamma, T* d_beta, i64 n, i64 parts) {
    SHARED(A, total, [8][33]);
    SHARED(A, product, [8][33]);
    i64 i = blockIdx.x * 32ll + threadIdx.x;
    A a = 0, b = 0;
    if (i < n)
#pragma unroll 4
        for (i64 j = threadIdx.y; j < parts; j += 8) {
            a += products[j * n + i];
            b += sums[j * n + i];
        }
    product[threadIdx.y][threadIdx.x] = a;
    total[threadIdx.y][threadIdx.x] = b;
    __syncthreads();
    if (threadIdx.y || i >= n) return;
    for (int j = 1; j < 8; j++) {
        a += product[j][threadIdx.x];
        b += total[j][threadIdx.x];
    }
    if (d_gamma) d_gamma[i] = T(a);
    if (d_beta) d_beta[i] = T(b);
}
BLOCKS(finish_places)
