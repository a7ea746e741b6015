// Rows of matrices: one for all, and their sum.
#include "reduce.cuh"

KERNEL(256) repeat_row(const T* row, T* y, i64 size, i64 n) {
    FOR_EACH(i, size) y[i] = row[i % n];
}
EACH(repeat_row)

// Blocks of 32 columns by 8 rows at a time.
KERNEL(256) sum_rows(const T* x, T* y, i64 rows, i64 n, int adds) {
    SHARED(A, part, [8][33]);
    i64 column = blockIdx.x * 32ll + threadIdx.x;
    A total = 0;
    if (column < n)
        for (i64 row = threadIdx.y; row < rows; row += 8) total += A(x[row * n + column]);
    part[threadIdx.y][threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.y == 0 && column < n) {
        for (int i = 1; i < 8; i++) total += part[i][threadIdx.x];
        y[column] = T(adds ? A(y[column]) + total : total);
    }
}
BLOCKS(sum_rows)
