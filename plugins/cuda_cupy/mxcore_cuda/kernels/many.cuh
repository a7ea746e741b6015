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

// An element of a weight, read before anything is written. What moves (S) is the weight itself or, where it is `low`, its
// master copy.
template <class S, int states> struct Element {
    S* moving;
    const T* grad;
    T* low;
    const u64* other;
    i64 i;
    A of_moving, of_grad, of_state[states ? states : 1];

    void read() {
        if (moving) of_moving = A(moving[i]);
        if (grad) of_grad = A(grad[i]);
        for (int k = 0; k < states; k++) of_state[k] = A(((const S*)other[k])[i]);
    }
    A weight() const { return of_moving; }
    A gradient() const { return of_grad; }
    A state(int k) const { return of_state[k]; }
    A alone(const void* p) const { return A(*(const S*)p); }
    void keep(int k, A v) const { ((S*)other[k])[i] = S(v); }
    void move(A v) const {
        moving[i] = S(v);
        if (low) low[i] = T(v);
    }
};

// Four elements side by side, read and written at once where they may be.
template <class S> struct alignas(4 * sizeof(S) < 16 ? 4 * sizeof(S) : 16) Four { S v[4]; };

// Four elements of a weight, of which all states are read and written.
template <class S, int states> struct Fours {
    Four<S> moving, state[states ? states : 1];
    Four<T> grad, low;

    void read(const u64* at, i64 i) {
        moving = *(const Four<S>*)((S*)at[0] + i), grad = *(const Four<T>*)((T*)at[1] + i);
#pragma unroll
        for (int k = 0; k < states; k++) state[k] = *(const Four<S>*)((S*)at[3 + k] + i);
    }
    void write(const u64* at, i64 i) const {
        *(Four<S>*)((S*)at[0] + i) = moving;
        if (at[2]) *(Four<T>*)((T*)at[2] + i) = low;
#pragma unroll
        for (int k = 0; k < states; k++) *(Four<S>*)((S*)at[3 + k] + i) = state[k];
    }
};

// One of four, as Element.
template <class S, int states> struct OfFour {
    Fours<S, states>& of;
    int u;

    A weight() const { return A(of.moving.v[u]); }
    A gradient() const { return A(of.grad.v[u]); }
    A state(int k) const { return A(of.state[k].v[u]); }
    void keep(int k, A v) const { of.state[k].v[u] = S(v); }
    void move(A v) const { of.moving.v[u] = S(v), of.low.v[u] = T(v); }
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
    template <class S, int states, class F> void each_of(F f, i64 from) const {
        const int AT_ONCE = 4;  // elements whose reads are on their way together
        const u64* at = word + 2 + numbers;
        for (i64 first = from + threadIdx.x; first < end; first += AT_ONCE * blockDim.x) {
            Element<S, states> e[AT_ONCE];
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) {
                e[u].moving = (S*)at[0], e[u].grad = (const T*)at[1], e[u].low = (T*)at[2], e[u].other = at + 3;
                e[u].i = first + u * (i64)blockDim.x;
                if (e[u].i < end) e[u].read();
            }
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++)
                if (e[u].i < end) f(e[u]);
        }
    }
    // Calls a function for each element of a thread, which has so many states that are read.
    template <int states, class F> void each(int mixed, F f) const {
#if defined(MX_float16) || defined(MX_bfloat16)
        if (mixed) return each_of<float, states>(f, begin);
#endif
        each_of<T, states>(f, begin);
    }
    template <class S, int states, class F> void all_of(F f) const {
        const u64* at = word + 2 + numbers;
        u64 places = 0;
#pragma unroll
        for (int k = 0; k < 3 + states; k++) places |= at[k];
        i64 rest = places & 15 ? begin : begin + (end - begin) / 4 * 4;
        for (i64 i = begin + 4 * threadIdx.x; i < rest; i += 4 * blockDim.x) {
            Fours<S, states> x;
            x.read(at, i);
#pragma unroll
            for (int u = 0; u < 4; u++) f(OfFour<S, states>{x, u});
            x.write(at, i);
        }
        each_of<S, states>(f, rest);
    }
    // The same for a function that moves each element and keeps all its states, and nothing else.
    template <int states, class F> void all(int mixed, F f) const {
#if defined(MX_float16) || defined(MX_bfloat16)
        if (mixed) return all_of<float, states>(f);
#endif
        all_of<T, states>(f);
    }
};
