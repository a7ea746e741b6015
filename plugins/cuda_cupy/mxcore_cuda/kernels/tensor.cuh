// What tiles of matrix products are made of: copies into shared memory that go on beside the arithmetic, and the words of
// tensor cores, which a whole warp says together. `emulation/tensor.h` has the same for the host.
//
//   copy_async(to, from, there);   16 bytes of global memory, or zeros where there are none
//   copy_commit();                 ends a group of copies
//   copy_wait<n>();                until all but the last n groups of this thread are in place
//   load_matrices(r, row)          four 8 x 8 matrices of 16 bits, lane i telling where row i % 8 of matrix i / 8 lies;
//                                  a lane gets elements 2 * (lane % 4) and the next of row lane / 4 of each
//   load_transposed(r, row)        the same of the transposed matrices
//   multiply_add<T>(d, a, b)       d (16 x 8, float) += a (16 x 16) * b (16 x 8)
#pragma once
#include "mx.cuh"

// 16 bytes.
struct __align__(16) Chunk {
    u32 words[4];
};

#ifndef MX_EMULATE
DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

DEVICE void copy_async(void* to, const void* from, bool there) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
                 "r"(there ? 16 : 0)
                 : "memory");
}
DEVICE void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

DEVICE void load_matrices(u32 (&r)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}
DEVICE void load_transposed(u32 (&r)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

#ifdef MX_bfloat16
#define MX_HALVES "bf16"
#else
#define MX_HALVES "f16"
#endif
template <class H> DEVICE void multiply_add(float (&d)[4], const u32 (&a)[4], const u32* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." MX_HALVES "." MX_HALVES ".f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#undef MX_HALVES
#else
#include "tensor.h"
#endif
