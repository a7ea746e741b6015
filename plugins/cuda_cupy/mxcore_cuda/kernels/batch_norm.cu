// Batch normalization over (outer, channels, inner). Statistics are kept in A. Each channel's elements are shared by
// several blocks, whose results are put together in one order. A plane is what lies in one of `outer`; 32 bits count the
// elements of a channel and of a plane.
#include "reduce.cuh"
#include "windows.cuh"

// Element n of a channel.
DEVICE i64 place_of(u32 n, u32 channel, u32 channels, u32 inner) {
    u32 o = n / inner;
    return (o * (i64)channels + channel) * inner + (n - o * inner);
}

// Mean, and sum of squared differences from it, of each share of a channel: in two passes, as exact as it gets.
KERNEL(256) channel_moments(const T* x, A* means, A* squares, int n, int channels, int inner, int share) {
    int first = blockIdx.y * share, end = first + share < n ? first + share : n;
    A total = 0, square = 0;
    for (int i = first + threadIdx.x; i < end; i += blockDim.x) total += A(x[place_of(i, blockIdx.x, channels, inner)]);
    A mean = reduce_row(total, Sum()) / A(end - first);
    for (int i = first + threadIdx.x; i < end; i += blockDim.x) {
        A d = A(x[place_of(i, blockIdx.x, channels, inner)]) - mean;
        square += d * d;
    }
    square = reduce_row(square, Sum());
    if (threadIdx.x == 0) {
        means[blockIdx.y * channels + blockIdx.x] = mean;
        squares[blockIdx.y * channels + blockIdx.x] = square;
    }
}
BLOCKS(channel_moments)

KERNEL(256) finish_moments(const A* means, const A* squares, A* mean, A* inv, int n, int channels, int share, int parts,
                           A eps) {
    FOR_EACH(c, channels) {
        A total = 0, square = 0;
        for (int i = 0; i < parts; i++) {
            int count = i < parts - 1 ? share : n - i * share;
            total += means[i * (i64)channels + c] * (A(count) / A(n));
        }
        for (int i = 0; i < parts; i++) {
            int count = i < parts - 1 ? share : n - i * share;
            A d = means[i * (i64)channels + c] - total;
            square += squares[i * (i64)channels + c] + d * d * A(count);
        }
        mean[c] = total;
        inv[c] = 1 / sqrt(square / A(n) + eps);
    }
}
EACH(finish_moments)

// The moving statistics as those that are used.
KERNEL(256) moving_moments(const A* moving_mean, const A* moving_var, A* mean, A* inv, int channels, A eps) {
    FOR_EACH(c, channels) {
        mean[c] = moving_mean[c];
        inv[c] = 1 / sqrt(moving_var[c] + eps);
    }
}
EACH(moving_moments)

KERNEL(256) normalize(const T* x, const A* gamma, const A* beta, const A* mean, const A* inv, T* y, int outer,
                      int channels, int inner, int positive) {
    FOR_EACH_PLACE(plane, place, outer, channels * inner) {
        i64 i = plane * (i64)(channels * inner) + place;
        int c = place / inner;
        A v = (A(x[i]) - mean[c]) * (gamma ? inv[c] * gamma[c] : inv[c]) + beta[c];
        y[i] = T(positive && v < 0 ? A(0) : v);
    }
}
EACH(normalize)

// The gradient of an element; with the result `y` of a positive part behind the normalization, 0 where that was 0.
DEVICE A gradient_of(const T* dy, const T* y, i64 i) {
    if (!y) return A(dy[i]);
    A v = A(y[i]);
    return v > 0 ? A(dy[i]) : v <= 0 ? A(0) : v;
}

// Sums of the gradient, and of its products with the normalized data, of each share of a channel.
KERNEL(256) channel_products(const T* dy, const T* y, const T* x, const A* mean, const A* inv, A* sums, A* products,
                             int n, int channels, int inner, int share) {
    int first = blockIdx.y * share, end = first + share < n ? first + share : n;
    A total = 0, product = 0;
    for (int i = first + threadIdx.x; i < end; i += blockDim.x) {
        i64 at = place_of(i, blockIdx.x, channels, inner);
        A g = gradient_of(dy, y, at);
        total += g;
        product += g * (A(x[at]) - mean[blockIdx.x]);
    }
    total = reduce_row(total, Sum());
    product = reduce_row(product, Sum()) * inv[blockIdx.x];
    if (threadIdx.x == 0) {
        sums[blockIdx.y * channels + blockIdx.x] = total;
        products[blockIdx.y * channels + blockIdx.x] = product;
    }
}
BLOCKS(channel_products)

// All shares of a channel; the gradients of gamma, 0 where it is fixed, and of beta, where they are wanted.
KERNEL(256) finish_products(A* sums, A* products, A* d_gamma, A* d_beta, int channels, int parts, int fixed) {
    FOR_EACH(c, channels) {
        A total = 0, product = 0;
        for (int i = 0; i < parts; i++) {
            total += sums[i * (i64)channels + c];
            product += products[i * (i64)channels + c];
        }
        sums[c] = total;
        products[c] = product;
        if (d_gamma) d_gamma[c] = fixed ? A(0) : product;
        if (d_beta) d_beta[c] = total;
    }
}
EACH(finish_products)

// `share` is 1 / n, or 0 where the statistics did not come from the data.
KERNEL(256) data_gradient(const T* dy, const T* y, const T* x, const A* gamma, const A* mean, const A* inv,
                          const A* sums, const A* products, T* dx, int outer, int channels, int inner, A share) {
    FOR_EACH_PLACE(plane, place, outer, channels * inner) {
        i64 i = plane * (i64)(channels * inner) + place;
        int c = place / inner;
        A xhat = (A(x[i]) - mean[c]) * inv[c];
        A g = gradient_of(dy, y, i) - share * (sums[c] + xhat * products[c]);
        dx[i] = T(g * (gamma ? inv[c] * gamma[c] : inv[c]));
    }
}
EACH(data_gradient)

KERNEL(256) follow(A* moving_mean, A* moving_var, const A* mean, const A* inv, int channels, A momentum, A eps) {
    FOR_EACH(c, channels) {
        moving_mean[c] = moving_mean[c] * momentum + mean[c] * (1 - momentum);
        moving_var[c] = moving_var[c] * momentum + (1 / (inv[c] * inv[c]) - eps) * (1 - momentum);
    }
}
EACH(follow)
