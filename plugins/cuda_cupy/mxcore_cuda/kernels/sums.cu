// Sums of arrays, of any number of groups in a launch; a group of one is copied.
#include "many.cuh"

// In what two elements are added up: whole numbers wrap around.
#if defined(MX_float64) || defined(MX_float32) || defined(MX_float16) || defined(MX_bfloat16)
typedef A S;
#elif defined(MX_int64)
typedef u64 S;
#else
typedef u32 S;
#endif

// In a row: where the sum goes, and `n` arrays.
KERNEL(256) sums(const __grid_constant__ Table table, int n) {
    const int AT_ONCE = 4;  // elements whose reads are on their way together
    Part<0> part(table);
    const u64* at = part.word + 2;
    T* out = (T*)at[0];
    for (i64 first = part.begin + threadIdx.x; first < part.end; first += AT_ONCE * blockDim.x) {
        T total[AT_ONCE];
        for (int k = 1; k <= n; k++) {
            const T* x = (const T*)at[k];
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) {
                i64 i = first + u * (i64)blockDim.x;
                if (i < part.end) total[u] = k == 1 ? x[i] : T(S(total[u]) + S(x[i]));
            }
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            i64 i = first + u * (i64)blockDim.x;
            if (i < part.end) out[i] = total[u];
        }
    }
}
EACH(sums)
