// Convolutions of images as products of matrices whose columns are never written: tiles of them are gathered where they
// are multiplied. Channels are last in memory, `depth` of them (a multiple of a step's, zeros behind those that there
// are), image by image and group by group. Two bytes go through tensor cores, others through fused multiply-adds.
#include "tensor.cuh"

constexpr int THREADS = sizeof(T) == 4 ? 128 : 256;
constexpr int ROW = 64;                    // bytes of a row that one step multiplies
constexpr int STEP = ROW / sizeof(T);      // numbers
constexpr int WIDE = 16 / sizeof(T);       // numbers of a chunk
constexpr bool TENSOR = sizeof(T) == 2;
constexpr int TOGETHER = TENSOR ? 2 : 1;   // blocks of a multiprocessor, as its registers allow; of fewer threads two

// h, w: of the image; o...: of windows; k..., s..., p..., d...: kernel, stride, padding and dilation along each axis.
#define WINDOWS int h, int w, int oh, int ow, int kh, int kw, int sh, int sw, int ph, int pw, int dh, int dw

// Where a chunk lies, so that the eight rows that are read at once lie in different banks: rows of four chunks, which a
// step multiplies, and rows of many.
DEVICE int along(int row, int chunk) { return row * 4 + (chunk ^ (row >> 1 & 3)); }
DEVICE int across(int chunks, int row, int chunk) { return row * chunks + (chunk ^ (row & 7)); }

struct __align__(16) Numbers {
    T v[WIDE];
};

struct __align__(2 * sizeof(T)) Pair {
    T a, b;
};

// Steps of a tile that are in shared memory at a time: as many as there may be.
constexpr int stages_of(int m, int n) { return (48 << 10) / ((m + n) * ROW); }

// A tile of sums, M by N, in the registers of a block, WM by WN of them in those of a warp. Each row begins with what
// `first` says. `along` adds the products of rows of a step's numbers, `across` those of a step's rows of numbers.
template <int M, int N, bool = TENSOR> struct Sums;

template <int M, int N> struct Sums<M, N, true> {
    static constexpr int ACROSS = 4, WM = M / (THREADS / 32 / ACROSS), WN = N / ACROSS, TALL = WM / 16, BROAD = WN / 8;
    float sums[TALL][BROAD][4];
    int lane, m, n;

    template <class F> __device__ Sums(F first) : lane(threadIdx.x % 32) {
        int warp = threadIdx.x / 32;
        m = warp / ACROSS * WM, n = warp % ACROSS * WN;
#pragma unroll
        for (int i = 0; i < TALL * 2; i++) {
            float v = first(m + i * 8 + lane / 4);
#pragma unroll
            for (int j = 0; j < BROAD * 2; j++) sums[i / 2][j / 2][i % 2 * 2 + j % 2] = v;
        }
    }

    __device__ void add(u32 (&a)[TALL][4], u32 (&b)[BROAD / 2][4]) {
#pragma unroll
        for (int i = 0; i < TALL; i++)
#pragma unroll
            for (int j = 0; j < BROAD; j++) multiply_add<T>(sums[i][j], a[i], &b[j / 2][j % 2 * 2]);
    }

    __device__ void along(const Chunk* left, const Chunk* right) {
#pragma unroll
        for (int k = 0; k < STEP / 16; k++) {
            u32 a[TALL][4], b[BROAD / 2][4];
#pragma unroll
            for (int i = 0; i < TALL; i++)
                load_matrices(a[i], left + ::along(m + i * 16 + lane % 16, k * 2 + lane / 16));
#pragma unroll
            for (int j = 0; j < BROAD / 2; j++)
                load_matrices(b[j], right + ::along(n + j * 16 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2));
            add(a, b);
        }
    }

    __device__ void across(const Chunk* left, const Chunk* right) {
#pragma unroll
        for (int k = 0; k < STEP / 16; k++) {
            u32 a[TALL][4], b[BROAD / 2][4];
#pragma unroll
            for (int i = 0; i < TALL; i++)
                load_transposed(a[i], left + ::across(M / WIDE, k * 16 + lane / 16 * 8 + lane % 8,
                                                      (m + i * 16) / WIDE + lane / 8 % 2));
#pragma unroll
            for (int j = 0; j < BROAD / 2; j++)
                load_transposed(b[j], right + ::across(N / WIDE, k * 16 + lane / 8 % 2 * 8 + lane % 8,
                                                       (n + j * 16) / WIDE + lane / 16));
            add(a, b);
        }
    }

    // Calls `f` with row, column and the sums there and in the next column.
    template <class F> __device__ void pairs(F f) const {
#pragma unroll
        for (int i = 0; i < TALL; i++)
#pragma unroll
            for (int j = 0; j < BROAD; j++)
#pragma unroll
                for (int l = 0; l < 4; l += 2)
                    f(m + i * 16 + l / 2 * 8 + lane / 4, n + j * 8 + lane % 4 * 2, sums[i][j][l], sums[i][j][l + 1]);
    }
};

// Without tensor cores: a warp's threads are 4 by 8, and neighbours have a row or a column in common, so that it reads
// few different chunks at a time.
template <int M, int N> struct Sums<M, N, false> {
    static constexpr int WN = THREADS == 128 ? 128 : 64, ACROSS = N / WN, WM = M / (THREADS / 32 / ACROSS);
    static constexpr int TALL = WM / 4, BROAD = WN / 8;
    A sums[TALL][BROAD];
    int m, n, y, x;  // where its warp begins, and where a thread lies in that

    template <class F> __device__ Sums(F first) {
        int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        m = warp / ACROSS * WM, n = warp % ACROSS * WN;
        y = (lane & 1) + lane / 8 % 2 * 2, x = lane / 2 % 4 + lane / 16 * 4;
#pragma unroll
        for (int i = 0; i < TALL; i++) {
            A v = first(m + i * 4 + y);
#pragma unroll
            for (int j = 0; j < BROAD; j++) sums[i][j] = v;
        }
    }

    __device__ void along(const Chunk* left, const Chunk* right) {
#pragma unroll 1  // more would need too many registers
        for (int k = 0; k < STEP / WIDE; k++) {
            Numbers a[TALL];
#pragma unroll
            for (int i = 0; i < TALL; i++) a[i] = *(const Numbers*)(left + ::along(m + i * 4 + y, k));
#pragma unroll
            for (int j = 0; j < BROAD; j++) {
                Numbers b = *(const Numbers*)(right + ::along(n + j * 8 + x, k));
#pragma unroll
                for (int l = 0; l < WIDE; l++)
#pragma unroll
                    for (int i = 0; i < TALL; i++) sums[i][j] += A(a[i].v[l]) * A(b.v[l]);
            }
        }
    }

    __device__ void across(const Chunk* left, const Chunk* right) {
#pragma unroll 4
        for (int k = 0; k < STEP; k++) {
            Numbers a[TALL / WIDE], b[BROAD / WIDE];
#pragma unroll
            for (int i = 0; i < TALL / WIDE; i++)
                a[i] = *(const Numbers*)(left + ::across(M / WIDE, k, m / WIDE + i * 4 + y));
#pragma unroll
            for (int j = 0; j < BROAD / WIDE; j++)
                b[j] = *(const Numbers*)(right + ::across(N / WIDE, k, n / WIDE + j * 8 + x));
#pragma unroll
            for (int i = 0; i < TALL; i++)
#pragma unroll
                for (int j = 0; j < BROAD; j++) sums[i][j] += A(a[i / WIDE].v[i % WIDE]) * A(b[j / WIDE].v[j % WIDE]);
        }
    }

    // Of what `along` has added up: a thread's columns lie apart.
    template <class F> __device__ void singles(F f) const {
#pragma unroll
        for (int j = 0; j < BROAD; j++)
#pragma unroll
            for (int i = 0; i < TALL; i++) f(m + i * 4 + y, n + j * 8 + x, sums[i][j]);
    }

    // Of what `across` has.
    template <class F> __device__ void pairs(F f) const {
#pragma unroll
        for (int i = 0; i < TALL; i++)
#pragma unroll
            for (int j = 0; j < BROAD; j += 2)
                f(m + (i / WIDE * 4 + y) * WIDE + i % WIDE, n + (j / WIDE * 8 + x) * WIDE + j % WIDE, sums[i][j],
                  sums[i][j + 1]);
    }
};

// -- forward, and the gradient of images ------------------------------------------------------------------------------
// One axis of a block's outputs: the first, how far they are apart, how many there are, and how far apart are the
// places of the input that they belong to. Backward, outputs that the same elements of the filter reach are done
// together: those a stride apart. Of these elements: the first, how far they are apart, how many there are; where the
// first output meets the input through the first, and how much further through the next.
struct Axis {
    int first, step, count, reach, from, apart, taken, meets, moves;
    __device__ Axis(bool back, int phase, int size, int kernel, int stride, int pad, int dilate)
        : first(back ? phase : 0), step(back ? stride : 1), reach(back ? 1 : stride), from(0), apart(1) {
        count = size > first ? (size - first + step - 1) / step : 0;
        auto takes = [&](int k) { return !back || (first + pad - k * dilate) % stride == 0; };
        while (from < kernel && !takes(from)) from++;
        while (from + apart < kernel && !takes(from + apart)) apart++;
        taken = (kernel - from + apart - 1) / apart;
        meets = back ? (first + pad - from * dilate) / stride : -pad;
        moves = back ? -apart * dilate / stride : dilate;
    }
};

// The image that an output lies in, and where in that.
struct Output {
    int image, y, x;
    __device__ Output(int q, const Axis& vertical, const Axis& horizontal) {
        int plane = vertical.count * horizontal.count;
        image = q / plane;
        y = q % plane / horizontal.count, x = q % plane % horizontal.count;
    }
};

template <int M, int N>
DEVICE void gather(const T* __restrict__ filters, const T* __restrict__ input, const T* __restrict__ bias,
                   T* __restrict__ out, int images, int groups, int m, int depth, int back, WINDOWS) {
    constexpr int stages = stages_of(M, N), TALL = M * 4 / THREADS, BROAD = N * 4 / THREADS, ROWS = THREADS / 4;
    int group = blockIdx.y % groups, phase = blockIdx.y / groups;
    int height = back ? h : oh, width = back ? w : ow, in_height = back ? oh : h, in_width = back ? ow : w;
    Axis vertical(back, phase / sw, height, kh, sh, ph, dh), horizontal(back, phase % sw, width, kw, sw, pw, dw);
    int total = images * vertical.count * horizontal.count;
    int tiles = (m + M - 1) / M, m0 = blockIdx.x % tiles * M, q0 = blockIdx.x / tiles * N;
    if (q0 >= total) return;

    SHARED(Chunk, memory, [stages][(M + N) * 4]);
    int row = threadIdx.x / 4, chunk = threadIdx.x % 4;
    int left[TALL], right[BROAD], image[BROAD], ys[BROAD], xs[BROAD];  // places, below 0 of what there is not
#pragma unroll
    for (int i = 0; i < TALL; i++) {
        int f = m0 + row + i * ROWS;
        left[i] = f < m ? (group * m + f) * (kh * kw) * depth + chunk * WIDE : -1;
    }
#pragma unroll
    for (int j = 0; j < BROAD; j++) {
        int q = q0 + row + j * ROWS;
        Output o(q < total ? q : 0, vertical, horizontal);
        ys[j] = q < total ? o.y * vertical.reach : -(1 << 30);
        xs[j] = o.x * horizontal.reach;
        image[j] = (o.image * groups + group) * in_height * in_width * depth + chunk * WIDE;
    }

    // What is loaded next: an element of the filter, and a part of its channels.
    int row_of = -1, column_of = horizontal.taken - 1, c = depth, place = 0;
    auto load = [&](int stage) {
        if (c == depth) {
            c = 0;
            if (++column_of == horizontal.taken) column_of = 0, row_of++;
            place = ((vertical.from + row_of * vertical.apart) * kw + horizontal.from + column_of * horizontal.apart) *
                    depth;
            int dy = vertical.meets + row_of * vertical.moves, dx = horizontal.meets + column_of * horizontal.moves;
#pragma unroll
            for (int j = 0; j < BROAD; j++) {
                int y = ys[j] + dy, x = xs[j] + dx;
                bool there = (u32)y < (u32)in_height && (u32)x < (u32)in_width;
                right[j] = there ? image[j] + (y * in_width + x) * depth : -1;
            }
        }
        Chunk* tile = memory[stage];
#pragma unroll
        for (int i = 0; i < TALL; i++)
            copy_async(tile + along(row + i * ROWS, chunk), filters + (left[i] < 0 ? 0 : left[i] + place + c),
                       left[i] >= 0);
#pragma unroll
        for (int j = 0; j < BROAD; j++)
            copy_async(tile + M * 4 + along(row + j * ROWS, chunk), input + (right[j] < 0 ? 0 : right[j] + c),
                       right[j] >= 0);
        c += STEP;
    };

    Sums<M, N> sums([&](int i) { return bias && m0 + i < m ? A(bias[group * m + m0 + i]) : A(0); });
    int steps = vertical.taken * horizontal.taken * (depth / STEP);
#pragma unroll
    for (int s = 0; s < stages - 1; s++) {
        if (s < steps) load(s);
        copy_commit();
    }
    for (int s = 0, stage = 0, next = stages - 1; s < steps; s++) {
        copy_wait<stages - 2>();
        __syncthreads();
        if (s + stages - 1 < steps) load(next);
        copy_commit();
        sums.along(memory[stage], memory[stage] + M * 4);
        stage = stage == stages - 1 ? 0 : stage + 1;
        next = next == stages - 1 ? 0 : next + 1;
    }

    int plane = height * width;
    auto place_of = [&](int q) -> T* {
        Output o(q, vertical, horizontal);
        int at = (vertical.first + o.y * vertical.step) * width + horizontal.first + o.x * horizontal.step;
        return out + (((i64)o.image * groups + group) * m + m0) * plane + at;
    };
    int left_over = m - m0 < M ? m - m0 : M;
    if constexpr (!TENSOR) {
        int q = -1;
        T* column = nullptr;
        sums.singles([&](int i, int j, A v) {
            if (q != q0 + j) q = q0 + j, column = place_of(q < total ? q : 0);
            if (i < left_over && q < total) column[(i64)i * plane] = T(v);
        });
    } else {
        // Through shared memory, so that neighbours are written together.
        constexpr int PITCH = N + 8;
        static_assert(M * PITCH * sizeof(T) <= sizeof(memory), "a tile of results is too large");
        T* tile = (T*)memory;
        __syncthreads();
        sums.pairs([&](int i, int j, A v, A next) { *(Pair*)(tile + i * PITCH + j) = {T(v), T(next)}; });
        __syncthreads();
        auto write = [&](auto of) {
            typedef decltype(of) V;
            constexpr int MANY = sizeof(V) / sizeof(T), WIDTH = N / MANY;
            int j = threadIdx.x % WIDTH * MANY;
            if (q0 + j >= total) return;
            T* column = place_of(q0 + j);
            for (int i = threadIdx.x / WIDTH; i < left_over; i += THREADS / WIDTH)
                *(V*)(column + (i64)i * plane) = *(const V*)(tile + i * PITCH + j);
        };
        // What lies side by side here does so there, but for strides and the ends of images; it may begin anywhere.
        u64 fits = vertical.step * horizontal.step == 1 ? (u64)out | (u64)plane * sizeof(T) : 1;
        if (fits % sizeof(Chunk) == 0) write(Chunk());
        else if (fits % sizeof(u64) == 0) write(u64());
        else write(T());
    }
}

KERNEL(256, TOGETHER) gather_64(const T* filters, const T* input, const T* bias, T* out, int images, int groups, int m,
                                int depth, int back, WINDOWS) {
    gather<64, TENSOR ? 256 : 128>(filters, input, bias, out, images, groups, m, depth, back, h, w, oh, ow, kh, kw, sh,
                                   sw, ph, pw, dh, dw);
}
BLOCKS(gather_64)

KERNEL(256, TOGETHER) gather_128(const T* filters, const T* input, const T* bias, T* out, int images, int groups, int m,
                                 int depth, int back, WINDOWS) {
    gather<128, 128>(filters, input, bias, out, images, groups, m, depth, back, h, w, oh, ow, kh, kw, sh, sw, ph, pw,
                     dh, dw);
}
BLOCKS(gather_128)

// -- the gradient of filters ------------------------------------------------------------------------------------------
// Sums over the windows of all images: a block adds up `share` of them for a tile of filters by (place, channel), and
// what blocks have found is added up afterwards, in their order.
template <int M, int N>
DEVICE void weigh(const T* __restrict__ dy, const T* __restrict__ x, A* __restrict__ parts, int images, int groups,
                  int m, int depth_m, int depth, int share, WINDOWS) {
    constexpr int stages = stages_of(M, N), CHUNKS = N / WIDE, ROWS = THREADS / CHUNKS, PASSES = STEP / ROWS;
    int group = blockIdx.y, columns = kh * kw * depth;
    int tiles = (m + M - 1) / M, m0 = blockIdx.x % tiles * M, n0 = blockIdx.x / tiles * N;
    int total = images * oh * ow, start = blockIdx.z * share, end = total - start < share ? total : start + share;

    SHARED(Chunk, memory, [stages][STEP * (M + N) / WIDE]);
    int row = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
    bool left_there = chunk < M / WIDE && m0 + chunk * WIDE < depth_m, right_there = n0 + chunk * WIDE < columns;
    int c = n0 + chunk * WIDE, place = right_there ? c / depth : 0;
    int y0 = place / kw * dh - ph, x0 = place % kw * dw - pw;
    int left = m0 + chunk * WIDE, right = c % depth;

    // The window of each of this thread's rows, and how far a step goes.
    int n_of[PASSES], y_of[PASSES], x_of[PASSES], window = start + row;
#pragma unroll
    for (int i = 0; i < PASSES; i++) {
        int q = start + row + i * ROWS;
        n_of[i] = q / (oh * ow), y_of[i] = q % (oh * ow) / ow, x_of[i] = q % ow;
    }
    int step_n = STEP / (oh * ow), step_y = STEP % (oh * ow) / ow, step_x = STEP % (oh * ow) % ow;
    auto load = [&](int stage) {
        Chunk* tile = memory[stage];
#pragma unroll
        for (int i = 0; i < PASSES; i++) {
            bool there = window + i * ROWS < end;
            int image = n_of[i] * groups + group, at = (image * (oh * ow) + y_of[i] * ow + x_of[i]) * depth_m + left;
            if (chunk < M / WIDE)
                copy_async(tile + across(M / WIDE, row + i * ROWS, chunk), dy + (there && left_there ? at : 0),
                           there && left_there);
            int yy = y_of[i] * sh + y0, xx = x_of[i] * sw + x0;
            there = there && right_there && (u32)yy < (u32)h && (u32)xx < (u32)w;
            copy_async(tile + STEP * M / WIDE + across(CHUNKS, row + i * ROWS, chunk),
                       x + (there ? right + (image * (h * w) + yy * w + xx) * depth : 0), there);
            x_of[i] += step_x, y_of[i] += step_y, n_of[i] += step_n;
            if (x_of[i] >= ow) x_of[i] -= ow, y_of[i]++;
            if (y_of[i] >= oh) y_of[i] -= oh, n_of[i]++;
        }
        window += STEP;
    };

    Sums<M, N> sums([](int) { return A(0); });
    int steps = (end - start + STEP - 1) / STEP;
#pragma unroll
    for (int s = 0; s < stages - 1; s++) {
        if (s < steps) load(s);
        copy_commit();
    }
    for (int s = 0, stage = 0, next = stages - 1; s < steps; s++) {
        copy_wait<stages - 2>();
        __syncthreads();
        if (s + stages - 1 < steps) load(next);
        copy_commit();
        sums.across(memory[stage], memory[stage] + STEP * M / WIDE);
        stage = stage == stages - 1 ? 0 : stage + 1;
        next = next == stages - 1 ? 0 : next + 1;
    }
    A* part = parts + (((i64)blockIdx.z * groups + group) * m + m0) * columns + n0;
    sums.pairs([&](int i, int j, A v, A next) {
        if (m0 + i < m && n0 + j < columns) {
            part[(i64)i * columns + j] = v;
            part[(i64)i * columns + j + 1] = next;
        }
    });
}

KERNEL(256, TOGETHER) weigh_64(const T* dy, const T* x, A* parts, int images, int groups, int m, int depth_m,
                               int depth, int share, WINDOWS) {
    weigh<64, 128>(dy, x, parts, images, groups, m, depth_m, depth, share, h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh,
                   dw);
}
BLOCKS(weigh_64)

KERNEL(256, TOGETHER) weigh_128(const T* dy, const T* x, A* parts, int images, int groups, int m, int depth_m,
                                int depth, int share, WINDOWS) {
    weigh<128, 128>(dy, x, parts, images, groups, m, depth_m, depth, share, h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh,
                    dw);
}
BLOCKS(weigh_128)

// The sum of the parts of each filter, which has `channels` of `places` elements.
KERNEL(256) add_parts(const A* parts, T* d_weight, int n, int filters, int channels, int places, int depth) {
    i64 size = (i64)filters * places * depth;
    FOR_EACH(i, (i64)filters * places * channels) {
        int c = int(i % channels), place = int(i / channels % places), f = int(i / channels / places);
        const A* part = parts + ((i64)f * places + place) * depth + c;
        A total = 0;
#pragma unroll 8
        for (int p = 0; p < n; p++) total += part[p * size];
        d_weight[((i64)f * channels + c) * places + place] = T(total);
    }
}
EACH(add_parts)

// -- channels last ----------------------------------------------------------------------------------------------------
// Images of (channels, places) to (places, depth), zeros behind the channels; a block moves 64 by 64.
KERNEL(256) to_last(const T* __restrict__ x, T* __restrict__ y, int channels, int places, int depth) {
    SHARED(T, tile, [64][65]);
    int tall = (depth + 63) / 64, broad = (places + 63) / 64;
    int c0 = blockIdx.x % tall * 64, p0 = blockIdx.x / tall % broad * 64;
    i64 image = blockIdx.x / tall / broad;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x += image * channels * places, y += image * places * depth;
#pragma unroll
    for (int i = 0; i < 64; i += 8)
#pragma unroll
        for (int j = 0; j < 64; j += 32) {
            int c = c0 + i + warp, p = p0 + j + lane;
            tile[i + warp][j + lane] = c < channels && p < places ? x[(i64)c * places + p] : T(0);
        }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; i += 8)
#pragma unroll
        for (int j = 0; j < 64; j += 32) {
            int p = p0 + i + warp, c = c0 + j + lane;
            if (p < places && c < depth) y[(i64)p * depth + c] = tile[j + lane][i + warp];
        }
}
BLOCKS(to_last)
