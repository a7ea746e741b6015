// Arrays of indices, in the dtype that they have: `kind` is its number.
#pragma once
#define MX_HALF
#include "mx.cuh"

enum Kind { INT8, UINT8, INT32, INT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16 };

// A number of bfloat16, the upper half of a float.
DEVICE float upper_half(const void* index, i64 i) { return __uint_as_float(u32(((const unsigned short*)index)[i]) << 16); }

// A number without its fraction; what is too large for 64 bits becomes their end, NaN the lower one, as on the host.
template <class F> DEVICE i64 whole(F v) {
    const i64 lowest = -0x7fffffffffffffffll - 1;
    return v >= F(9223372036854775808.0) ? 0x7fffffffffffffffll : v > F(-9223372036854775808.0) ? i64(v) : lowest;
}

DEVICE i64 index_at(const void* index, int kind, i64 i) {
    switch (kind) {
        case INT8: return ((const signed char*)index)[i];
        case UINT8: return ((const unsigned char*)index)[i];
        case INT32: return ((const int*)index)[i];
        case INT64: return ((const i64*)index)[i];
        case FLOAT16: return whole(float(((const mx_half*)index)[i]));
        case FLOAT32: return whole(((const float*)index)[i]);
        case BFLOAT16: return whole(upper_half(index, i));
        default: return whole(((const double*)index)[i]);
    }
}

// Whether an index is NaN, which index_at takes for 0.
DEVICE bool is_nan_at(const void* index, int kind, i64 i) {
    if (kind == FLOAT16) return float(((const mx_half*)index)[i]) != float(((const mx_half*)index)[i]);
    if (kind == FLOAT32) return ((const float*)index)[i] != ((const float*)index)[i];
    if (kind == BFLOAT16) return upper_half(index, i) != upper_half(index, i);
    return kind == FLOAT64 && ((const double*)index)[i] != ((const double*)index)[i];
}

// A place in [0, n): what is out of range is the nearest one, or wraps around.
DEVICE int place_at(const void* index, int kind, i64 i, int n, int wraps) {
    i64 v = index_at(index, kind, i);
    if (v >= 0 && v < n) return int(v);
    if (!wraps) return v < 0 ? 0 : n - 1;
    v %= n;
    return int(v < 0 ? v + n : v);
}
