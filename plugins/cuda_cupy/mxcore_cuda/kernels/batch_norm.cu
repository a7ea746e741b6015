// Batch normalization over (outer, channels, inner). Statistics are kept in A. Each channel's elements are shared by
// several blocks, whose results are put together in one order. A plane is what lies in one of `outer`; 32 bits count
// the elements of a channel and of a plane. Where WIDE divides `inner` (`by_parts`), threads have parts of so many
// elements of a channel.
#include "rows.cuh"

#define CHUNK 16  // elements that a thread reads before it works on them

// How elements lie: of `inner` also what divides by it.
#define SIZES int channels, int inner, u32 magic, u32 shift

// n / inner, for n below 2^31 (Granlund and Montgomery, 1994).
DEVICE u32 quotient(u32 n, u32 magic, u32 shift) { return (u32)(((u64)n * magic >> 32) + n) >> shift; }

// Call f(place of a part in the array, which of V * U elements it begins with) for those of U parts of a thread, from
// the `at`-th element of a channel on, that lie before the `end`.
template <int V, int U, class F>
DEVICE void for_chunk(u32 at, u32 end, u32 channel, u32 channels, u32 inner, u32 magic, u32 shift, F f) {
#pragma unroll
    for (int j = 0; j < U; j++) {
        u32 i = at + j * blockDim.x * V;
        if (i < end) {
            u32 o = quotient(i, magic, shift);
            f((o * (i64)channels + channel) * inner + (i - o * inner), j * V);
        }
    }
}

// How many numbers, their mean, the sum of their squared differences from it.
struct Moments {
    A n, mean, square;
};
// Of both together (Chan, Golub and LeVeque, 1979).
DEVICE Moments merged(Moments a, Moments b) {
    A n = a.n + b.n;
    if (n == 0) return a;
    A d = b.mean - a.mean, part = b.n / n;
    return {n, a.mean + d * part, a.square + b.square + d * d * a.n * part};
}
DEVICE Moments of_warp(Moments m) {
    for (int d = 16; d; d /= 2)
        m = merged(m, {__shfl_xor_sync(0xffffffffu, m.n, d), __shfl_xor_sync(0xffffffffu, m.mean, d),
                       __shfl_xor_sync(0xffffffffu, m.square, d)});
    return m;
}

template <int V> DEVICE Moments moments_of_share(const T* x, int first, int end, SIZES) {
    Moments all = {0, 0, 0};
    bool wide = aligned(x, inner);
    for (int i = first + threadIdx.x * V; i < end; i += blockDim.x * CHUNK) {
        A v[CHUNK], mean = 0, square = 0;
        int n = 0;
        for_chunk<V, CHUNK / V>(i, end, blockIdx.x, channels, inner, magic, shift, [&](i64 place, int at) {
            read_part<V>(v + at, x + place, V, wide);
            n = at + V;
        });
#pragma unroll
        for (int u = 0; u < CHUNK; u++)
            if (u < n) mean += v[u];
        mean /= A(n);
#pragma unroll
        for (int u = 0; u < CHUNK; u++)
            if (u < n) square += (v[u] - mean) * (v[u] - mean);
        all = merged(all, {A(n), mean, square});
    }
    return all;
}

// Mean, and sum of squared differences from it, of each share of a channel, which is read once.
KERNEL(256) channel_moments(const T* x, A* means, A* squares, int n, int share, SIZES, int by_parts) {
    int first = blockIdx.y * share, end = first + share < n ? first + share : n;
    Moments m = of_warp(by_parts ? moments_of_share<WIDE>(x, first, end, channels, inner, magic, shift)
                                 : moments_of_share<1>(x, first, end, channels, inner, magic, shift));
    SHARED(A, part, [3][8]);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) {
        part[0][warp] = m.n;
        part[1][warp] = m.mean;
        part[2][warp] = m.square;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < blockDim.x / 32; w++) m = merged(m, {part[0][w], part[1][w], part[2][w]});
        means[blockIdx.y * channels + blockIdx.x] = m.mean;
        squares[blockIdx.y * channels + blockIdx.x] = m.square;
    }
}
BLOCKS(channel_moments)

// Of all shares of a channel, by a warp.
KERNEL(256) finish_moments(const A* means, const A* squares, A* mean, A* inv, int n, int channels, int share, int parts,
                           A eps) {
    i64 c = this_row();
    if (c >= channels) return;
    Moments m = {0, 0, 0};
    for (int i = threadIdx.x; i < parts; i += 32) {
        int count = i < parts - 1 ? share : n - i * share;
        m = merged(m, {A(count), means[i * (i64)channels + c], squares[i * (i64)channels + c]});
    }
    m = of_warp(m);
    if (threadIdx.x) return;
    mean[c] = m.mean;
    inv[c] = 1 / sqrt(m.square / A(n) + eps);
}
BLOCKS(finish_moments)

// The moving statistics as those that are used.
KERNEL(256) moving_moments(const A* moving_mean, const A* moving_var, A* mean, A* inv, int channels, A eps) {
    FOR_EACH(c, channels) {
        mean[c] = moving_mean[c];
        inv[c] = 1 / sqrt(moving_var[c] + eps);
    }
}
EACH(moving_moments)

#define COLUMN int outer, int channels, int inner

// A thread has V elements beside each other of a plane, and those in the same places of further planes: which channels
// they are in is found once. Call f(first element) for each plane.
template <int V, class F> DEVICE void for_column(i64 first, int outer, i64 plane, F f) {
#pragma unroll 4
    for (int o = blockIdx.y; o < outer; o += gridDim.y) f(o * plane + first);
}

// What `f` finds of the channels of V elements: they are one channel, or several.
template <int V, class F> DEVICE void of_channels(i64 first, int inner, F f) {
    bool same = inner % V == 0;
    int c = first / inner;
#pragma unroll
    for (int u = 0; u < V; u++) f(u, same ? c : int((first + u) / inner));
}

template <int V>
DEVICE void normalize_column(const T* x, const A* gamma, const A* beta, const A* mean, const A* inv, T* y, COLUMN,
                             int positive) {
    i64 first = (blockIdx.x * (i64)blockDim.x + threadIdx.x) * V, plane = (i64)channels * inner;
    if (first >= plane) return;
    bool wide = aligned(x, plane) && aligned(y, plane);
    A middle[V], scale[V], shift[V];
    of_channels<V>(first, inner, [&](int u, int c) {
        middle[u] = mean[c];
        scale[u] = gamma ? inv[c] * gamma[c] : inv[c];
        shift[u] = beta[c];
    });
    for_column<V>(first, outer, plane, [&](i64 i) {
        A v[V];
        read_part<V>(v, x + i, V, wide);
#pragma unroll
        for (int u = 0; u < V; u++) {
            v[u] = (v[u] - middle[u]) * scale[u] + shift[u];
            if (positive && v[u] < 0) v[u] = 0;
        }
        write_part<V>(y + i, v, V, wide);
    });
}

KERNEL(256) normalize(const T* x, const A* gamma, const A* beta, const A* mean, const A* inv, T* y, COLUMN,
                      int positive) {
    if ((i64)channels * inner % WIDE == 0)
        normalize_column<WIDE>(x, gamma, beta, mean, inv, y, outer, channels, inner, positive);
    else
        normalize_column<1>(x, gamma, beta, mean, inv, y, outer, channels, inner, positive);
}
EACH(normalize)

// Gradients of V elements; with the results `y` of a positive part behind the normalization, 0 where that was 0.
template <int V> DEVICE void gradients_of(A* g, const T* dy, const T* y, i64 i, bool wide) {
    read_part<V>(g, dy + i, V, wide);
    if (!y) return;
    A v[V];
    read_part<V>(v, y + i, V, wide);
#pragma unroll
    for (int u = 0; u < V; u++) g[u] = v[u] > 0 ? g[u] : v[u] <= 0 ? A(0) : v[u];
}

template <int V>
DEVICE void products_of_share(const T* dy, const T* y, const T* x, A middle, int first, int end, A* total, A* product,
                              SIZES) {
    bool wide = aligned(x, inner) && aligned(dy, inner) && (!y || aligned(y, inner));
    A sum = 0, by = 0;
    for (int i = first + threadIdx.x * V; i < end; i += blockDim.x * CHUNK) {
        A g[CHUNK], v[CHUNK];
        int n = 0;
        for_chunk<V, CHUNK / V>(i, end, blockIdx.x, channels, inner, magic, shift, [&](i64 place, int at) {
            gradients_of<V>(g + at, dy, y, place, wide);
            read_part<V>(v + at, x + place, V, wide);
            n = at + V;
        });
#pragma unroll
        for (int u = 0; u < CHUNK; u++)
            if (u < n) {
                sum += g[u];
                by += g[u] * (v[u] - middle);
            }
    }
    *total = sum;
    *product = by;
}

// Sums of the gradient, and of its products with the normalized data, of each share of a channel.
KERNEL(256) channel_products(const T* dy, const T* y, const T* x, const A* mean, const A* inv, A* sums, A* products,
                             int n, int share, SIZES, int by_parts) {
    int first = blockIdx.y * share, end = first + share < n ? first + share : n;
    A total = 0, product = 0, middle = mean[blockIdx.x];
    if (by_parts)
        products_of_share<WIDE>(dy, y, x, middle, first, end, &total, &product, channels, inner, magic, shift);
    else
        products_of_share<1>(dy, y, x, middle, first, end, &total, &product, channels, inner, magic, shift);
    reduce_both(&total, &product);
    product *= inv[blockIdx.x];
    if (threadIdx.x == 0) {
        sums[blockIdx.y * channels + blockIdx.x] = total;
        products[blockIdx.y * channels + blockIdx.x] = product;
    }
}
BLOCKS(channel_products)

// All shares of a channel, by a warp; the gradients of gamma, 0 where it is fixed, and of beta, where they are wanted.
// The moving statistics follow those of the data, where they are given.
KERNEL(256) finish_products(A* sums, A* products, A* d_gamma, A* d_beta, int channels, int parts, int fixed,
                            A* moving_mean, A* moving_var, const A* mean, const A* inv, A momentum, A eps) {
    i64 c = this_row();
    if (c >= channels) return;
    A total = 0, product = 0;
    for (int i = threadIdx.x; i < parts; i += 32) {
        total += sums[i * (i64)channels + c];
        product += products[i * (i64)channels + c];
    }
    reduce_both(&total, &product);
    if (threadIdx.x) return;
    sums[c] = total;
    products[c] = product;
    if (d_gamma) d_gamma[c] = fixed ? A(0) : product;
    if (d_beta) d_beta[c] = total;
    if (!moving_mean) return;
    moving_mean[c] = moving_mean[c] * momentum + mean[c] * (1 - momentum);
    moving_var[c] = moving_var[c] * momentum + (1 / (inv[c] * inv[c]) - eps) * (1 - momentum);
}
BLOCKS(finish_products)

template <int V>
DEVICE void gradient_column(const T* dy, const T* y, const T* x, const A* gamma, const A* mean, const A* inv,
                            const A* sums, const A* products, T* dx, COLUMN, A share) {
    i64 first = (blockIdx.x * (i64)blockDim.x + threadIdx.x) * V, plane = (i64)channels * inner;
    if (first >= plane) return;
    bool wide = aligned(x, plane) && aligned(dy, plane) && aligned(dx, plane) && (!y || aligned(y, plane));
    A middle[V], scale[V], rest[V], slope[V];
    of_channels<V>(first, inner, [&](int u, int c) {
        middle[u] = mean[c];
        scale[u] = gamma ? inv[c] * gamma[c] : inv[c];
        rest[u] = share * sums[c];
        slope[u] = share * products[c] * inv[c];
    });
    for_column<V>(first, outer, plane, [&](i64 i) {
        A g[V], v[V];
        gradients_of<V>(g, dy, y, i, wide);
        read_part<V>(v, x + i, V, wide);
#pragma unroll
        for (int u = 0; u < V; u++) g[u] = (g[u] - (rest[u] + (v[u] - middle[u]) * slope[u])) * scale[u];
        write_part<V>(dx + i, g, V, wide);
    });
}

// `share` is 1 / n, or 0 where the statistics did not come from the data.
KERNEL(256) data_gradient(const T* dy, const T* y, const T* x, const A* gamma, const A* mean, const A* inv,
                          const A* sums, const A* products, T* dx, COLUMN, A share) {
    if ((i64)channels * inner % WIDE == 0)
        gradient_column<WIDE>(dy, y, x, gamma, mean, inv, sums, products, dx, outer, channels, inner, share);
    else
        gradient_column<1>(dy, y, x, gamma, mean, inv, sums, products, dx, outer, channels, inner, share);
}
EACH(data_gradient)

// -- statistics of channels whose planes are small, or single elements: a block has `parts` parts of WIDE elements
// beside each other, which are whole channels, of as many planes at once as it has threads for -----------------------
#define COLUMNS int outer, int channels, int inner, int parts, int share

// Where a thread's elements are: in which of the planes that a block takes at once, of which there are `rows`. `n` is
// how many planes this thread has.
struct Column {
    int channels, inner, parts, rows, begin, n;
    i64 first, plane;
    bool active;

    // Of a channel, the i-th element in what a block's threads have found, WIDE each, if its first one is there.
    __device__ int place(int first_place, int i) const {
        int row = i / inner;
        return row * parts * WIDE + first_place + (i - row * inner);
    }
};
DEVICE Column column_of(COLUMNS) {
    Column c = {channels, inner, parts, 256 / parts};
    int row = threadIdx.x / parts, end = blockIdx.y * share + share;
    if (end > outer) end = outer;
    c.plane = (i64)channels * inner;
    c.first = (blockIdx.x * (i64)parts + threadIdx.x % parts) * WIDE;
    c.active = row < c.rows && c.first < c.plane;
    c.begin = blockIdx.y * share + row;
    c.n = c.active && c.begin < end ? (end - c.begin + c.rows - 1) / c.rows : 0;
    return c;
}
// Call f(channel, place of its first element, lane) by a warp for each channel of a block.
template <class F> DEVICE void for_channels(const Column& at, F f) {
    int most = at.parts * WIDE / at.inner, begin = blockIdx.x * most;
    for (int c = threadIdx.x / 32; c < most && begin + c < at.channels; c += 8)
        f(begin + c, c * at.inner, int(threadIdx.x % 32));
}

// As `channel_moments`, of shares of so many planes.
KERNEL(256) column_moments(const T* x, A* means, A* squares, COLUMNS) {
    SHARED(A, middle, [256 * WIDE]);
    SHARED(A, square, [256 * WIDE]);
    SHARED(int, count, [256]);
    Column at = column_of(outer, channels, inner, parts, share);
    bool wide = aligned(x, at.plane);
    A mean[WIDE], m2[WIDE];
#pragma unroll
    for (int u = 0; u < WIDE; u++) mean[u] = m2[u] = 0;
#pragma unroll 4
    for (int j = 0; j < at.n; j++) {  // Welford, 1962
        A v[WIDE], part = A(1) / A(j + 1);
        read_part(v, x + (at.begin + j * at.rows) * at.plane + at.first, WIDE, wide);
#pragma unroll
        for (int u = 0; u < WIDE; u++) {
            A d = v[u] - mean[u];
            mean[u] += d * part;
            m2[u] += d * (v[u] - mean[u]);
        }
    }
    count[threadIdx.x] = at.n;
#pragma unroll
    for (int u = 0; u < WIDE; u++) {
        middle[threadIdx.x * WIDE + u] = mean[u];
        square[threadIdx.x * WIDE + u] = m2[u];
    }
    __syncthreads();
    for_channels(at, [&](int c, int first, int lane) {
        Moments m = {0, 0, 0};
        for (int i = lane; i < inner * at.rows; i += 32) {
            int place = at.place(first, i);
            m = merged(m, {A(count[place / WIDE]), middle[place], square[place]});
        }
        m = of_warp(m);
        if (lane == 0) {
            means[blockIdx.y * channels + c] = m.mean;
            squares[blockIdx.y * channels + c] = m.square;
        }
    });
}
BLOCKS(column_moments)

// As `channel_products`.
KERNEL(256) column_products(const T* dy, const T* y, const T* x, const A* mean, const A* inv, A* sums, A* products,
                            COLUMNS) {
    SHARED(A, total, [256 * WIDE]);
    SHARED(A, product, [256 * WIDE]);
    Column at = column_of(outer, channels, inner, parts, share);
    bool wide = aligned(x, at.plane) && aligned(dy, at.plane) && (!y || aligned(y, at.plane));
    A sum[WIDE], by[WIDE], middle[WIDE];
#pragma unroll
    for (int u = 0; u < WIDE; u++) sum[u] = by[u] = middle[u] = 0;
    if (at.active) of_channels<WIDE>(at.first, inner, [&](int u, int c) { middle[u] = mean[c]; });
#pragma unroll 4
    for (int j = 0; j < at.n; j++) {
        A g[WIDE], v[WIDE];
        i64 i = (at.begin + j * at.rows) * at.plane + at.first;
        gradients_of<WIDE>(g, dy, y, i, wide);
        read_part(v, x + i, WIDE, wide);
#pragma unroll
        for (int u = 0; u < WIDE; u++) {
            sum[u] += g[u];
            by[u] += g[u] * (v[u] - middle[u]);
        }
    }
#pragma unroll
    for (int u = 0; u < WIDE; u++) {
        total[threadIdx.x * WIDE + u] = sum[u];
        product[threadIdx.x * WIDE + u] = by[u];
    }
    __syncthreads();
    for_channels(at, [&](int c, int first, int lane) {
        A a = 0, b = 0;
        for (int i = lane; i < inner * at.rows; i += 32) {
            int place = at.place(first, i);
            a += total[place];
            b += product[place];
        }
        warp_both(&a, &b);
        if (lane == 0) {
            sums[blockIdx.y * channels + c] = a;
            products[blockIdx.y * channels + c] = b * inv[c];
        }
    });
}
BLOCKS(column_products)
