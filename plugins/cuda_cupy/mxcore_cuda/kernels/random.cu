// Random numbers: Philox4x64-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), the same bits
// as on the CPU. A thread makes a block of four words and what becomes of them. Where a result must have the CPU's bits,
// products and sums are rounded one by one.
#include "math.cuh"

// Blocks to be made, the key (where `at` is not null, it is there), and the first word of its stream that is used.
#define STREAM i64 blocks, const u64* at, u64 seed, u64 stream, u64 counter, u64 first

struct Key {
    u64 seed, stream, counter;
};

// The key of a launch. A recorded launch is told where each replay writes one (`write_keys`).
DEVICE Key key_of(const u64* at, u64 seed, u64 stream, u64 counter) {
    if (at) return {at[0], at[1], at[2]};
    return {seed, stream, counter};
}

struct Words {
    u64 w[4];
};

// Word i, where that is not known when the kernel is compiled: without an address, words stay in registers.
DEVICE u64 word(const Words& words, int i) {
    return i < 2 ? (i == 0 ? words.w[0] : words.w[1]) : i == 2 ? words.w[2] : words.w[3];
}

// Block i of a stream.
DEVICE Words words_of(Key key, u64 i) {
    const u64 m0 = 0xD2E7470EE14C6C93ull, m1 = 0xCA5A826395121157ull;
    Words c = {{i + 1, 0, key.counter, 0}};
    for (int round = 0; round < 10; round++) {
        u64 high0 = __umul64hi(m0, c.w[0]), low0 = m0 * c.w[0], high1 = __umul64hi(m1, c.w[2]), low1 = m1 * c.w[2];
        c = {{high1 ^ c.w[1] ^ key.seed, low1, high0 ^ c.w[3] ^ key.stream, low0}};
        key.seed += 0x9E3779B97F4A7C15ull;
        key.stream += 0xBB67AE8584CAA73Bull;
    }
    return c;
}

// Number j of a block in [0, 1): of 24 bits, eight of them, the lower half of a word first; or of 53, four.
DEVICE float short_number(const Words& words, int j) {
    return float(u32(word(words, j / 2) >> (j % 2 * 32)) >> 8) * 5.9604644775390625e-8f;
}
#ifdef MX_float64
const int NUMBERS = 4;
DEVICE A number(const Words& words, int j) { return A(word(words, j) >> 11) * 1.1102230246251565e-16; }
DEVICE A times(A a, A b) { return __dmul_rn(a, b); }
DEVICE A plus(A a, A b) { return __dadd_rn(a, b); }
#else
const int NUMBERS = 8;
DEVICE A number(const Words& words, int j) { return short_number(words, j); }
DEVICE A times(A a, A b) { return __fmul_rn(a, b); }
DEVICE A plus(A a, A b) { return __fadd_rn(a, b); }
#endif

// The first result of a block, of which there are `each` in one; below 0 where the block begins before the stream's part.
DEVICE i64 result_of(i64 block, u64 first, int each) { return block * each - i64(first % 4) * (each / 4); }

KERNEL(256) bits(i64 n, STREAM, u64* y) {
    Key key = key_of(at, seed, stream, counter);
    FOR_EACH(b, blocks) {
        Words words = words_of(key, first / 4 + b);
        i64 base = result_of(b, first, 4);
        for (int j = 0; j < 4; j++)
            if (base + j >= 0 && base + j < n) y[base + j] = words.w[j];
    }
}
EACH(bits)

// On [low, low + width), `most` at most.
KERNEL(256) uniform(i64 n, STREAM, T* y, A low, A width, A most) {
    Key key = key_of(at, seed, stream, counter);
    FOR_EACH(b, blocks) {
        Words words = words_of(key, first / 4 + b);
        i64 base = result_of(b, first, NUMBERS);
        for (int j = 0; j < NUMBERS; j++) {
            if (base + j < 0 || base + j >= n) continue;
            T v = T(plus(low, times(width, number(words, j))));
            y[base + j] = A(v) > most ? T(most) : v;
        }
    }
}
EACH(uniform)

// By the Box-Muller transform: numbers i and n / 2 + i give results i and n / 2 + i.
KERNEL(256) normal(i64 n, STREAM, T* y, A loc, A scale) {
    i64 half = (n + 1) / 2;
    Key key = key_of(at, seed, stream, counter);
    FOR_EACH(b, blocks) {
        i64 base = result_of(b, first, NUMBERS);
        if (base >= half) continue;
        u64 block = first / 4 + b, other = block + half / NUMBERS;
        Words words = words_of(key, block), second = words_of(key, other),
              third = words_of(key, other + 1);
        for (int j = 0; j < NUMBERS; j++) {
            i64 i = base + j;
            int k = j + int(half % NUMBERS);
            if (i < 0 || i >= half) continue;
            A radius = sqrt(-2 * m::log1p(-number(words, j)));
            A angle = times(k < NUMBERS ? number(second, k) : number(third, k - NUMBERS), A(6.283185307179586));
            y[i] = T(plus(loc, times(scale, times(radius, m::cos(angle)))));
            if (half + i < n) y[half + i] = T(plus(loc, times(scale, times(radius, m::sin(angle)))));
        }
    }
}
EACH(normal)

// Another random word in place of a rejected one: the finaliser of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014).
DEVICE u64 mixed(u64 z) {
    z += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// In [low, low + span). Of a wide span by the remainder of words below its last multiple.
KERNEL(256) integers(i64 n, STREAM, T* y, i64 low, u64 span) {
    bool narrow = span < 1ull << 31;
    u64 last = narrow ? ~0ull : ~((0 - span) % span);
    Key key = key_of(at, seed, stream, counter);
    FOR_EACH(b, blocks) {
        Words words = words_of(key, first / 4 + b);
        i64 base = result_of(b, first, 4);
        for (int j = 0; j < 4; j++) {
            if (base + j < 0 || base + j >= n) continue;
            u64 v = words.w[j];
            for (int i = 0; i < 64 && v > last; i++) v = mixed(v);
            v = narrow ? (v >> 32) * span >> 32 : v % span;
            y[base + j] = T(i64(v) + low);
        }
    }
}
EACH(integers)

// `scale` with probability `keep`, else zero; and the product of that and `x`. Either may be left out.
KERNEL(256) dropout(i64 n, STREAM, const T* x, T* y, T* mask, float keep, A scale) {
    Key key = key_of(at, seed, stream, counter);
    FOR_EACH(b, blocks) {
        Words words = words_of(key, first / 4 + b);
        i64 base = result_of(b, first, 8);
        for (int j = 0; j < 8; j++) {
            if (base + j < 0 || base + j >= n) continue;
            A v = short_number(words, j) < keep ? scale : A(0);
            if (mask) mask[base + j] = T(v);
            if (y) y[base + j] = T(A(x[base + j]) * v);
        }
    }
}
EACH(dropout)

// Keys, given by value: all arguments of a launch have 4096 bytes at most.
const int MOST_KEYS = 128;
struct Keys {
    u64 word[3 * MOST_KEYS];
};

// The first kernel of a recording that draws random numbers: `n` words of the keys that a replay is given.
KERNEL(128) write_keys(const __grid_constant__ Keys keys, i64 n, u64* y) {
    FOR_EACH(i, n) y[i] = keys.word[i];
}
EACH(write_keys)
