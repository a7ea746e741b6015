// What every kernel includes. One source, two compilers: NVRTC makes device code of it, g++ (with MX_EMULATE) code
// that runs the threads of a block one after the other.
//
//   KERNEL(256) name(const T* x, T* y, i64 n) { ... }    a kernel of blocks of at most 256 threads
//   KERNEL(256, 2) name(...) { ... }                     of which a multiprocessor can run two blocks at least
//   EACH(name)                                           behind it: its threads never wait for each other
//   BLOCKS(name)                                         or: they do (barriers, warp operations)
//   SHARED(A, tile, [16][17]);                           memory of a block
//   DYNAMIC_SHARED(A, scratch);                          the same, as much as the launch says
//
// T is the dtype of the arrays, A that in which is computed: float for all but double. What only moves elements takes
// whole numbers, too. Indices are i64 where arrays may have more than 2^31 elements.
#pragma once

#ifdef MX_EMULATE
#include "emulate.h"
#else
#define KERNEL(...) MX_KERNEL(__VA_ARGS__, 1, 0)
#define MX_KERNEL(threads, blocks, ...) extern "C" __global__ void __launch_bounds__(threads, blocks)
#define EACH(name)
#define BLOCKS(name)
#define DEVICE static __device__ __forceinline__
#define SHARED(type, name, dims) __shared__ type name dims
#define DYNAMIC_SHARED(type, name)                      \
    extern __shared__ __align__(16) char mx_dynamic[]; \
    type* name = (type*)mx_dynamic
#if defined(MX_float16) || defined(MX_HALF)
#include <cuda_fp16.h>
typedef __half mx_half;
#endif
#if defined(MX_bfloat16) || defined(MX_BFLOAT16)
#include <cuda_bf16.h>
typedef __nv_bfloat16 mx_bfloat16;
#endif
#define INFINITY __longlong_as_double(0x7ff0000000000000LL)
#define NAN __longlong_as_double(0x7ff8000000000000LL)
#endif

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;

#if defined(MX_float64)
typedef double T;
typedef double A;
#elif defined(MX_float16)
typedef mx_half T;
typedef float A;
#elif defined(MX_bfloat16)
typedef mx_bfloat16 T;
typedef float A;
#else
#if defined(MX_int8)
typedef signed char T;
#elif defined(MX_uint8)
typedef unsigned char T;
#elif defined(MX_int32)
typedef int T;
#elif defined(MX_int64)
typedef i64 T;
#else
typedef float T;
#endif
typedef float A;
#endif

// The elements of a thread: the launch covers as many as fit into the grid, and goes on from there.
#define FOR_EACH(i, n) \
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < (n); i += (i64)gridDim.x * blockDim.x)
// The same where there are fewer than 2^31, in 32 bits, which are divided fast.
#define FOR_EACH_OF_FEW(i, n) \
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < (u32)(n); i += gridDim.x * blockDim.x)
