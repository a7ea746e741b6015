// CUDA's threads on the host: each is a fiber with a stack of its own, or, where threads never wait for each other, a
// call. Blocks run one after the other; the order of threads is chosen by `mx_order`: what depends on it is a race.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <utility>
#ifndef __x86_64__
#include <ucontext.h>
#endif

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

namespace emulate {

enum State { READY, AT_BLOCK, AT_WARP, DONE };

// A copy into shared memory that nobody has waited for yet, and its group.
struct Copy {
    void* to;
    const void* from;  // none for zeros
    int group;
};
constexpr int COPIES = 64;

struct Fiber {
#ifdef __x86_64__
    void* sp;
#else
    ucontext_t context;
#endif
    State state;
    unsigned mask;   // of the warp operation it waits in
    uint64_t given;  // what it brings to that
    dim3 thread;
    int lane, linear;
    Copy copy[COPIES];
    int copies, group;
};

constexpr size_t STACK = 64 << 10;
constexpr int MOST = 1024, SLOTS = 64;

struct Block {
    Fiber fiber[MOST];
    Fiber main;
    char* stacks = nullptr;
    int count = 0;
    bool waits = false;  // whether threads are fibers
    void (*call)(void**) = nullptr;
    void** arguments = nullptr;
    struct { const void* key; void* memory; size_t size; } shared[SLOTS];
    int slots = 0;
    void* dynamic = nullptr;
    char error[256];
};

static thread_local Block* block_now = nullptr;
static thread_local Fiber* fiber = nullptr;
static thread_local dim3 grid_size, block_size, block_index;

#ifdef __x86_64__
// Saves what a call must preserve on the old stack, and goes on where the new one stopped.
__attribute__((naked, noinline)) static void change(void** save, void* to) {
    asm volatile(
        "push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        "mov %rsp, (%rdi)\n mov %rsi, %rsp\n"
        "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n");
}
static void go(Fiber& from, Fiber& to) { change(&from.sp, to.sp); }
#else
static void go(Fiber& from, Fiber& to) { swapcontext(&from.context, &to.context); }
#endif

static void wait(State state) {
    Fiber* me = fiber;
    me->state = state;
    go(*me, block_now->main);
    fiber = me;
}

static void body() {
    block_now->call(block_now->arguments);
    fiber->state = DONE;
    go(*fiber, block_now->main);
    abort();  // never resumed
}

static void start(Fiber& f, char* stack) {
#ifdef __x86_64__
    void** top = (void**)(stack + STACK);
    *--top = nullptr;
    *--top = (void*)&body;
    top -= 6;
    memset(top, 0, 6 * sizeof(void*));
    f.sp = top;
#else
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = stack;
    f.context.uc_stack.ss_size = STACK;
    f.context.uc_link = nullptr;
    makecontext(&f.context, body, 0);
#endif
    f.state = READY;
    f.copies = f.group = 0;
}

[[noreturn]] static void fault(const char* what) {
    fprintf(stderr, "emulated kernel: %s in block (%u, %u, %u)\n", what, block_index.x, block_index.y, block_index.z);
    abort();
}

// -- barriers and warp operations ------------------------------------------------------------------------------------
static void sync() {
    if (!block_now->waits) fault("a barrier in a kernel whose threads never wait for each other (EACH)");
    wait(AT_BLOCK);
}

template <class V> static uint64_t bits(V v) {
    uint64_t b = 0;
    memcpy(&b, &v, sizeof v);
    return b;
}

// Bring a value, wait for the lanes of the mask, and call `read` before any of them goes on.
template <class R> static auto exchange(unsigned mask, uint64_t given, R read) {
    if (!block_now->waits) fault("a warp operation in a kernel whose threads never wait for each other (EACH)");
    fiber->mask = mask;
    fiber->given = given;
    wait(AT_WARP);
    auto found = read();
    wait(AT_WARP);
    return found;
}

static Fiber* warp() { return block_now->fiber + (fiber->linear & ~31); }

template <class V> static V shuffle(unsigned mask, V v, int lane) {
    return exchange(mask, bits(v), [&] {
        int n = block_now->count - (fiber->linear & ~31);
        bool there = lane >= 0 && lane < 32 && lane < n && (mask >> lane & 1) && warp()[lane].state != DONE;
        V found;
        uint64_t b = there ? warp()[lane].given : bits(v);
        memcpy(&found, &b, sizeof found);
        return found;
    });
}

static unsigned ballot(unsigned mask, int predicate) {
    return exchange(mask, predicate != 0, [&] {
        unsigned found = 0;
        int n = block_now->count - (fiber->linear & ~31);
        for (int i = 0; i < 32 && i < n; i++)
            if (mask >> i & 1 && warp()[i].state != DONE && warp()[i].given) found |= 1u << i;
        return found;
    });
}

// -- shared memory: poisoned in each block ---------------------------------------------------------------------------
static void* shared(const void* key, size_t size) {
    Block& b = *block_now;
    for (int i = 0; i < b.slots; i++)
        if (b.shared[i].key == key) return b.shared[i].memory;
    if (b.slots == SLOTS) fault("too many shared arrays");
    void* memory = aligned_alloc(16, (size + 15) & ~size_t(15));
    memset(memory, 0xFF, size);
    b.shared[b.slots++] = {key, memory, size};
    return memory;
}

// -- running ---------------------------------------------------------------------------------------------------------
enum Order { FORWARD, BACKWARD, SHUFFLED };
static int order = FORWARD;
static uint32_t noise = 1;

static uint32_t draw() {
    noise ^= noise << 13;
    noise ^= noise >> 17;
    return noise ^= noise << 5;
}

static void arrange(int* which, int n) {
    for (int i = 0; i < n; i++) which[i] = order == BACKWARD ? n - 1 - i : i;
    if (order == SHUFFLED)
        for (int i = n - 1; i > 0; i--) std::swap(which[i], which[draw() % (i + 1)]);
}

static void place(Fiber& f, int i) {
    f.linear = i;
    f.lane = i & 31;
    f.thread = {i % block_size.x, i / block_size.x % block_size.y, i / (block_size.x * block_size.y)};
}

// Let the threads of a warp that wait for each other go on, if all of them have come; whether any does.
static bool release(Block& b, int first, int end) {
    bool freed = false;
    for (int i = first; i < end; i++) {
        if (b.fiber[i].state != AT_WARP) continue;
        unsigned mask = b.fiber[i].mask;
        bool all = true;
        for (int l = first; l < end; l++)
            if (mask >> (l - first) & 1 && b.fiber[l].state != DONE)
                all = all && b.fiber[l].state == AT_WARP && b.fiber[l].mask == mask;
        if (!all) continue;
        for (int l = first; l < end; l++)
            if (mask >> (l - first) & 1 && b.fiber[l].state == AT_WARP) b.fiber[l].state = READY;
        freed = true;
    }
    return freed;
}

// Each warp goes as far as it can before the next one moves: to a barrier of the block, or to its end.
static void run_waiting(Block& b, int* which) {
    int n = b.count, left = n, warps = (n + 31) / 32, turn[MOST / 32];
    for (int i = 0; i < n; i++) {
        place(b.fiber[i], i);
        start(b.fiber[i], b.stacks + i * STACK);
    }
    while (left) {
        bool ran = false;
        arrange(turn, warps);
        for (int t = 0; t < warps; t++) {
            int first = turn[t] * 32, end = first + 32 < n ? first + 32 : n;
            do {
                arrange(which, end - first);
                for (int j = 0; j < end - first; j++) {
                    Fiber& f = b.fiber[first + which[j]];
                    if (f.state != READY) continue;
                    ran = true;
                    fiber = &f;
                    go(b.main, f);
                    left -= f.state == DONE;
                }
            } while (release(b, first, end));
        }
        int at_block = 0;
        for (int i = 0; i < n; i++) at_block += b.fiber[i].state == AT_BLOCK;
        if (at_block && at_block == left) {
            for (int i = 0; i < n; i++)
                if (b.fiber[i].state == AT_BLOCK) b.fiber[i].state = READY;
        } else if (left && !ran) {
            fault("threads wait at different barriers");
        }
    }
}

static void run(void (*call)(void**), bool waits, const unsigned* grid, const unsigned* block, unsigned dynamic,
                void** arguments) {
    static thread_local Block* own = nullptr;
    if (!own) own = new Block;
    Block& b = *own;
    block_now = &b;
    b.call = call;
    b.arguments = arguments;
    b.waits = waits;
    grid_size = {grid[0], grid[1], grid[2]};
    block_size = {block[0], block[1], block[2]};
    b.count = block_size.x * block_size.y * block_size.z;
    if (b.count > MOST) fault("more than 1024 threads");
    if (waits && !b.stacks)
        b.stacks = (char*)mmap(nullptr, MOST * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int which[MOST];
    noise = 1;
    arrange(which, b.count);
    uint64_t blocks = (uint64_t)grid_size.x * grid_size.y * grid_size.z;
    for (uint64_t at = 0; at < blocks; at++) {
        uint64_t i = order == BACKWARD ? blocks - 1 - at : at;
        block_index = {unsigned(i % grid_size.x), unsigned(i / grid_size.x % grid_size.y),
                       unsigned(i / grid_size.x / grid_size.y)};
        if (dynamic) {
            b.dynamic = aligned_alloc(16, (dynamic + 15) & ~15u);
            memset(b.dynamic, 0xFF, dynamic);
        }
        if (waits)
            run_waiting(b, which);
        else
            for (int j = 0; j < b.count; j++) {
                place(b.fiber[0], which[j]);
                fiber = &b.fiber[0];
                call(arguments);
            }
        for (int j = 0; j < b.slots; j++) free(b.shared[j].memory);
        b.slots = 0;
        if (dynamic) free(b.dynamic);
        b.dynamic = nullptr;
    }
}

// Calls a kernel with arguments as cuLaunchKernel takes them: the address of each.
template <class... P, size_t... I> static void spread(void (*kernel)(P...), void** a, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_reference_t<P>*>(a[I])...);
}
template <class... P> static void spread(void (*kernel)(P...), void** a) {
    spread(kernel, a, std::index_sequence_for<P...>());
}

}  // namespace emulate

extern "C" void mx_order(int order) { emulate::order = order; }

#define MX_ENTRY(name, waits)                                                                                  \
    extern "C" void mx_run_##name(const unsigned* grid, const unsigned* block, unsigned dynamic, void** a) {   \
        emulate::run([](void** p) { emulate::spread(&name, p); }, waits, grid, block, dynamic, a);             \
    }
#define KERNEL(...) extern "C" void
#define EACH(name) MX_ENTRY(name, false)
#define BLOCKS(name) MX_ENTRY(name, true)
#define DEVICE static inline
#define SHARED(type, name, dims)     \
    typedef type name##_type dims;   \
    static const char name##_key = 0; \
    name##_type& name = *(name##_type*)emulate::shared(&name##_key, sizeof(name##_type))
#define DYNAMIC_SHARED(type, name) type* name = (type*)emulate::block_now->dynamic

#define threadIdx (emulate::fiber->thread)
#define blockIdx emulate::block_index
#define blockDim emulate::block_size
#define gridDim emulate::grid_size
#define warpSize 32
#define __restrict__ __restrict
#define __grid_constant__
#define __global__
#define __device__
#define __align__(n) alignas(n)
#define __syncthreads emulate::sync
#define __syncwarp(...) emulate::ballot(0xffffffffu, 0)
#define __threadfence()

template <class V> static V __shfl_sync(unsigned m, V v, int lane) { return emulate::shuffle(m, v, lane & 31); }
template <class V> static V __shfl_down_sync(unsigned m, V v, int d) { return emulate::shuffle(m, v, emulate::fiber->lane + d); }
template <class V> static V __shfl_up_sync(unsigned m, V v, int d) { return emulate::shuffle(m, v, emulate::fiber->lane - d); }
template <class V> static V __shfl_xor_sync(unsigned m, V v, int d) { return emulate::shuffle(m, v, emulate::fiber->lane ^ d); }
static inline unsigned __ballot_sync(unsigned m, int p) { return emulate::ballot(m, p); }
static inline int __any_sync(unsigned m, int p) { return emulate::ballot(m, p) != 0; }

// One thread runs at a time.
template <class V, class W> static V atomicAdd(V* p, W v) { V old = *p; *p = V(old + V(v)); return old; }
template <class V, class W> static V atomicMax(V* p, W v) { V old = *p; if (V(v) > old) *p = V(v); return old; }
template <class V, class W> static V atomicMin(V* p, W v) { V old = *p; if (V(v) < old) *p = V(v); return old; }
template <class V, class W> static V atomicExch(V* p, W v) { V old = *p; *p = V(v); return old; }
template <class V> static V atomicCAS(V* p, V compare, V v) { V old = *p; if (old == compare) *p = v; return old; }
static inline unsigned __umulhi(unsigned a, unsigned b) { return uint64_t(a) * b >> 32; }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned __int128)a * b >> 64;
}
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline float __uint_as_float(unsigned v) { float f; memcpy(&f, &v, 4); return f; }
static inline int __popc(unsigned v) { return __builtin_popcount(v); }

#if defined(MX_float16) || defined(MX_HALF)
typedef _Float16 mx_half;
#endif
#if defined(MX_bfloat16) || defined(MX_BFLOAT16)
struct mx_bfloat16 {
    uint16_t bits;
    mx_bfloat16() = default;
    mx_bfloat16(float v) {
        uint32_t b;
        memcpy(&b, &v, 4);
        bits = v != v ? 0x7fc0 : (b + 0x7fff + (b >> 16 & 1)) >> 16;  // to the nearest, halves to even
    }
    operator float() const {
        uint32_t b = uint32_t(bits) << 16;
        float v;
        memcpy(&v, &b, 4);
        return v;
    }
};
#endif
using std::acos; using std::acosh; using std::asin; using std::asinh; using std::atan; using std::atan2; using std::atanh;
using std::cbrt; using std::ceil; using std::copysign; using std::cos; using std::cosh; using std::erf; using std::erfc;
using std::expm1; using std::fmod; using std::hypot; using std::lgamma; using std::log10; using std::log2; using std::sin;
using std::sinh; using std::tan; using std::tgamma;
using std::exp; using std::fabs; using std::floor; using std::fmax; using std::fmin; using std::log;
using std::log1p; using std::pow; using std::rint; using std::sqrt; using std::tanh; using std::trunc;
