// Reductions over the threads of a block. The order of sums depends on nothing but the shape of the block.
#pragma once
#include "mx.cuh"

struct Sum {
    static __device__ A none() { return 0; }
    __device__ A operator()(A a, A b) const { return a + b; }
};
// NaN if one is, as NumPy has it.
struct Largest {
    static __device__ A none() { return -INFINITY; }
    __device__ A operator()(A a, A b) const { return a > b || a != a ? a : b; }
};

// What `f` makes of the values of a row's threads, for all of them: blockDim.x threads, a multiple of 32. Blocks of 32
// wide rows may have several, along y; others have one, and all threads must get here.
template <class F> DEVICE A reduce_row(A v, F f) {
    for (int d = 16; d; d /= 2) v = f(v, __shfl_xor_sync(0xffffffffu, v, d));
    if (blockDim.x == 32) return v;
    SHARED(A, part, [32]);
    int lane = threadIdx.x % 32;
    if (lane == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = lane < blockDim.x / 32 ? part[lane] : F::none();
    for (int d = 16; d; d /= 2) v = f(v, __shfl_xor_sync(0xffffffffu, v, d));
    __syncthreads();  // before anybody writes to `part` again
    return v;
}

// Two sums at once over a warp.
DEVICE void warp_both(A* a, A* b) {
    for (int d = 16; d; d /= 2) {
        *a += __shfl_xor_sync(0xffffffffu, *a, d);
        *b += __shfl_xor_sync(0xffffffffu, *b, d);
    }
}

// Over a row, as `reduce_row`; once in a kernel, whose threads do not wait before they write to `part`.
DEVICE void reduce_both(A* a, A* b) {
    warp_both(a, b);
    if (blockDim.x == 32) return;
    SHARED(A, part, [2][32]);
    int lane = threadIdx.x % 32;
    if (lane == 0) {
        part[0][threadIdx.x / 32] = *a;
        part[1][threadIdx.x / 32] = *b;
    }
    __syncthreads();
    *a = lane < blockDim.x / 32 ? part[0][lane] : A(0);
    *b = lane < blockDim.x / 32 ? part[1][lane] : A(0);
    warp_both(a, b);
}

// The row of a thread, where blocks have one or, of 32 threads each, several.
DEVICE i64 this_row() { return blockIdx.x * (i64)blockDim.y + threadIdx.y; }
