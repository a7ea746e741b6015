// Normalization of rows: of layers, whose scale is one for each place of a row, and of groups and instances, whose scale
// is one for each row of a sample (`by_row`, of which there are `groups`).
#include "reduce.cuh"

// The mean of a row, and its standard deviation.
DEVICE void row_statistics(const T* x, i64 n, A eps, A* mean, A* std) {
    A total = 0, square = 0;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) total += A(x[i]);
    *mean = reduce_row(total, Sum()) / A(n);
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) square += (A(x[i]) - *mean) * (A(x[i]) - *mean);
    *std = sqrt(reduce_row(square, Sum()) / A(n) + eps);
}

// Those of all rows as they are: what the forward pass gives is rounded to the type of the data.
KERNEL(256) statistics_of_rows(const T* x, A* means, A* stds, i64 rows, i64 n, A eps) {
    i64 row = this_row();
    if (row >= rows) return;
    A mean, std;
    row_statistics(x + row * n, n, eps, &mean, &std);
    if (threadIdx.x == 0) {
        means[row] = mean;
        stds[row] = std;
    }
}
BLOCKS(statistics_of_rows)

KERNEL(256) normalize_rows(const T* x, const T* gamma, const T* beta, T* y, T* means, T* stds, i64 rows, i64 n,
                           int by_row, i64 groups, A eps) {
    i64 row = this_row();
    if (row >= rows) return;
    x += row * n;
    A mean, std;
    row_statistics(x, n, eps, &mean, &std);
    if (y)
        for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
            i64 g = by_row ? row % groups : i;
            y[row * n + i] = T((A(x[i]) - mean) / std * A(gamma[g]) + A(beta[g]));
        }
    if (threadIdx.x == 0) {
        if (means) means[row] = T(mean);
        if (stds) stds[row] = T(std);
    }
}
BLOCKS(normalize_rows)

// The gradient of the data and, of each row, the sums of the gradient and of its products with the normalized data.
KERNEL(256) rows_backward(const T* dy, const T* x, const T* gamma, const A* means, const A* stds, T* dx, A* sums,
                          A* products, i64 rows, i64 n, int by_row, i64 groups) {
    i64 row = this_row();
    if (row >= rows) return;
    dy += row * n;
    x += row * n;
    A mean = means[row], std = stds[row], total = 0, product = 0;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        A g = by_row ? A(dy[i]) : A(dy[i]) * A(gamma[i]);
        total += g;
        product += g * ((A(x[i]) - mean) / std);
    }
    total = reduce_row(total, Sum());
    product = reduce_row(product, Sum());
    if (by_row && threadIdx.x == 0) {
        sums[row] = total;
        products[row] = product;
    }
    A scale = by_row ? A(gamma[row % groups]) : A(1);
    if (dx)
        for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
            A g = by_row ? A(dy[i]) : A(dy[i]) * A(gamma[i]), z = (A(x[i]) - mean) / std;
            dx[row * n + i] = T(scale * (g - total / A(n) - z * (product / A(n))) / std);
        }
}
BLOCKS(rows_backward)

// Sums over the rows of each place: blocks of 32 places, 8 rows at a time, rows shared by the blocks along y.
KERNEL(256) places_backward(const T* dy, const T* x, const A* means, const A* stds, A* sums, A* products, i64 rows,
                            i64 n, i64 share) {
    SHARED(A, total, [8][33]);
    SHARED(A, product, [8][33]);
    i64 i = blockIdx.x * 32ll + threadIdx.x, first = blockIdx.y * share;
    i64 end = first + share < rows ? first + share : rows;
    A a = 0, b = 0;
    if (i < n)
        for (i64 row = first + threadIdx.y; row < end; row += 8) {
            A g = A(dy[row * n + i]);
            a += g;
            b += g * ((A(x[row * n + i]) - means[row]) / stds[row]);
        }
    total[threadIdx.y][threadIdx.x] = a;
    product[threadIdx.y][threadIdx.x] = b;
    __syncthreads();
    if (threadIdx.y == 0 && i < n) {
        for (int j = 1; j < 8; j++) {
            a += total[j][threadIdx.x];
            b += product[j][threadIdx.x];
        }
        sums[blockIdx.y * n + i] = a;
        products[blockIdx.y * n + i] = b;
    }
}
BLOCKS(places_backward)

// What several found for each of n places, added up.
KERNEL(256) finish_places(const A* sums, const A* products, T* d_gamma, T* d_beta, i64 n, i64 parts) {
    FOR_EACH(i, n) {
        A a = 0, b = 0;
        for (i64 j = 0; j < parts; j++) {
            a += sums[j * n + i];
            b += products[j * n + i];
        }
        if (d_gamma) d_gamma[i] = T(b);
        if (d_beta) d_beta[i] = T(a);
    }
}
EACH(finish_places)
