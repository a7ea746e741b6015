// The words of `tensor.cuh` on the host, with what `emulate.h` has of threads.
#pragma once
#include "emulate.h"

namespace emulate {

// Asynchronous copies are done as late as they are waited for.
static void aligned(const void* p) {
    if ((uintptr_t)p % 16) fault("an address of 16 bytes that is not a multiple of 16");
}

static void copy_async(void* to, const void* from, bool there) {
    Fiber& f = *fiber;
    if (!block_now->waits) fault("an asynchronous copy in a kernel whose threads never wait for each other (EACH)");
    if (f.copies == COPIES) fault("too many copies that nobody waits for");
    aligned(to), aligned(from);
    f.copy[f.copies++] = {to, there ? from : nullptr, f.group};
}

static void copy_commit() { fiber->group++; }

template <int N> static void copy_wait() {
    Fiber& f = *fiber;
    int left = 0;
    for (int i = 0; i < f.copies; i++) {
        Copy c = f.copy[i];
        if (c.group >= f.group - N)
            f.copy[left++] = c;
        else if (c.from)
            memcpy(c.to, c.from, 16);
        else
            memset(c.to, 0, 16);
    }
    f.copies = left;
}

// Bring something, and get what `read` finds by `of(lane)`: what the others have brought.
template <class V, class R> static void together(V& brought, R read) {
    int there = block_now->count - (fiber->linear & ~31);
    exchange(0xffffffffu, (uint64_t)&brought, [&] {
        for (int i = 0; i < 32; i++)
            if (i >= there || warp()[i].state == DONE) fault("an operation of whole warps, of which a thread is missing");
        read([](int lane) -> V& { return *(V*)warp()[lane].given; });
        return 0;
    });
}

template <bool TRANSPOSED> static void load(uint32_t (&r)[4], const void* row) {
    aligned(row);
    const uint16_t* mine = (const uint16_t*)row;
    int line = fiber->lane / 4, pair = fiber->lane % 4 * 2;
    together(mine, [&](auto of) {
        for (int i = 0; i < 4; i++) {
            uint16_t a = TRANSPOSED ? of(8 * i + pair)[line] : of(8 * i + line)[pair];
            uint16_t b = TRANSPOSED ? of(8 * i + pair + 1)[line] : of(8 * i + line)[pair + 1];
            r[i] = a | (uint32_t)b << 16;
        }
    });
}

static void load_matrices(uint32_t (&r)[4], const void* row) { load<false>(r, row); }
static void load_transposed(uint32_t (&r)[4], const void* row) { load<true>(r, row); }

template <class H> static void multiply_add(float (&d)[4], const uint32_t (&a)[4], const uint32_t* b) {
    struct { float a[8], b[4]; } mine;
    for (int i = 0; i < 12; i++) {
        H h;
        memcpy(&h, (i < 8 ? (const char*)a + 2 * i : (const char*)b + 2 * (i - 8)), 2);
        (i < 8 ? mine.a[i] : mine.b[i - 8]) = float(h);
    }
    int row = fiber->lane / 4 * 4, column = fiber->lane % 4 * 8;
    together(mine, [&](auto of) {
        for (int i = 0; i < 4; i++)
            for (int k = 0; k < 16; k++) {
                int at = k % 8 / 2, odd = k % 2, late = k / 8;
                d[i] += of(row + at).a[4 * late + 2 * (i / 2) + odd] * of(column + 4 * (i % 2) + at).b[2 * late + odd];
            }
    });
}

}  // namespace emulate

using emulate::copy_async; using emulate::copy_commit; using emulate::copy_wait;
using emulate::load_matrices; using emulate::load_transposed; using emulate::multiply_add;
