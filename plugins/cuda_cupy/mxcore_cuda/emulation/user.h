// What users' sources have beyond the plugin's own: CUDA's words for where things are, and more of its functions.
#pragma once
#include "emulate.h"
#include <algorithm>

namespace emulate {
// `extern __shared__ T name[]`: memory of the block, as much as the launch says.
template <class T> struct Dynamic {
    operator T*() const { return (T*)block_now->dynamic; }
};
template <class... P> constexpr int count(void (*)(P...)) { return sizeof...(P); }
}  // namespace emulate

#define MX_EXPORT(i, ...)                                                                                       \
    extern "C" int mx_count_##i() { return emulate::count(&__VA_ARGS__); }                                      \
    extern "C" void mx_run_##i(const unsigned* grid, const unsigned* block, unsigned dynamic, void** a) {       \
        emulate::run([](void** p) { emulate::spread(&__VA_ARGS__, p); }, true, grid, block, dynamic, a);        \
    }

// One block runs at a time, and its threads see what is static.
#define __shared__ static
#define __constant__ static
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __ldg(p) (*(p))
#define __threadfence_block()

template <class V> static V atomicSub(V* p, V v) { V old = *p; *p = old - v; return old; }
template <class V> static V atomicAnd(V* p, V v) { V old = *p; *p = old & v; return old; }
template <class V> static V atomicOr(V* p, V v) { V old = *p; *p = old | v; return old; }
template <class V> static V atomicXor(V* p, V v) { V old = *p; *p = old ^ v; return old; }

using std::max; using std::min;
static inline float rsqrtf(float v) { return 1 / std::sqrt(v); }
static inline double rsqrt(double v) { return 1 / std::sqrt(v); }
static inline float __fdividef(float a, float b) { return a / b; }
static inline int __float2int_rd(float v) { return int(std::floor(v)); }
static inline int __float2int_rn(float v) { return int(std::rint(v)); }
// glibc has these names for itself.
#define __expf(v) std::exp(float(v))
#define __logf(v) std::log(float(v))
#define __sinf(v) std::sin(float(v))
#define __cosf(v) std::cos(float(v))
#define __powf(a, b) std::pow(float(a), float(b))

#define MX_VECTOR(type, name)                                                            \
    struct name##2 { type x, y; };                                                       \
    struct name##3 { type x, y, z; };                                                    \
    struct alignas(4 * sizeof(type)) name##4 { type x, y, z, w; };                       \
    static inline name##2 make_##name##2(type x, type y) { return {x, y}; }              \
    static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }   \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
MX_VECTOR(float, float)
MX_VECTOR(int, int)
MX_VECTOR(unsigned, uint)

typedef _Float16 __half;
typedef _Float16 half;
static inline float __half2float(__half v) { return v; }
static inline __half __float2half(float v) { return v; }
static inline __half __hadd(__half a, __half b) { return a + b; }
static inline __half __hmul(__half a, __half b) { return a * b; }
