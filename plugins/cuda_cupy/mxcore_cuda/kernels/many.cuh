// Many weights in one launch. A table, given by value, has a row for each weight, and each block takes a part of one.
#pragma once
#include "mx.cuh"

// As `mxcore_cuda.tables` packs it; all arguments of a launch have 4096 bytes at most. The words of a row: its first
// block, how many elements it has, numbers (of doubles), addresses.
struct Table {
    int rows, width;  // width: words of a row
    u64 word[499];
};

const int PART = 2048;  // elements that a block takes

// An element of a weight. What moves (S) is the weight itself or, where it is `low`, its master copy.
template <class S> struct Element {
    S* moving;
    const T* grad;
    T* low;
    const u64* other;
    i64 i;

    A weight() const { return A(moving[i]); }
    A gradient() const { return A(grad[i]); }
    A state(int k) const { return A(((const S*)other[k])[i]); }
    A alone(const void* p) const { return A(*(const S*)p); }
    void keep(int k, A v) const { ((S*)other[k])[i] = S(v); }
    void move(A v) const {
        moving[i] = S(v);
        if (low) low[i] = T(v);
    }
};

// What a block takes: a part of a weight, in whose row are `numbers` numbers.
template <int numbers> struct Part {
    const u64* word;
    i64 begin, end;
    int weight;

    explicit Part(const Table& table) {
        int low = 0, high = table.rows;
        while (high - low > 1) {  // the last row whose first block is not behind this one
            int middle = (low + high) / 2;
            if (table.word[middle * table.width] <= blockIdx.x)
                low = middle;
            else
                high = middle;
        }
        weight = low;
        word = table.word + low * table.width;
        i64 size = (i64)word[1];
        begin = (blockIdx.x - (i64)word[0]) * PART;
        end = begin + PART < size ? begin + PART : size;
    }
    A number(int k) const { return A(((const double*)word)[2 + k]); }
    // Of single precision, in memory; or else a number of the row.
    A number_at(int array, int k) const {
        const float* at = (const float*)word[2 + numbers + 3 + array];
        return at ? A(*at) : number(k);
    }
    template <class S, class F> void each_of(F f) const {
        const u64* at = word + 2 + numbers;
        Element<S> e = {(S*)at[0], (const T*)at[1], (T*)at[2], at + 3, 0};
        for (e.i = begin + threadIdx.x; e.i < end; e.i += blockDim.x) f(e);
    }
    // Calls a function for each element of a thread.
    template <class F> void each(int mixed, F f) const {
#if defined(MX_float16) || defined(MX_bfloat16)
        if (mixed) return each_of<float>(f);
#endif
        each_of<T>(f);
    }
};
