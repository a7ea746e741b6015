// Softmax along the middle one of three dimensions (outer, n, inner), and the losses after it. A row each.
#include "reduce.cuh"

DEVICE i64 first_of(i64 row, i64 n, i64 inner) { return row / inner * n * inner + row % inner; }

KERNEL(256) softmax(const T* x, T* y, i64 rows, i64 n, i64 inner, A temperature, int logarithm) {
    i64 row = this_row();
    if (row >= rows) return;
    i64 first = first_of(row, n, inner);
    A largest = Largest::none(), total = 0;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) largest = Largest()(A(x[first + i * inner]) / temperature, largest);
    largest = reduce_row(largest, Largest());
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) total += exp(A(x[first + i * inner]) / temperature - largest);
    total = reduce_row(total, Sum());
    A shift = logarithm ? log(total) : 0;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        A z = A(x[first + i * inner]) / temperature - largest;
        y[first + i * inner] = T(logarithm ? z - shift : exp(z) / total);
    }
}
BLOCKS(softmax)

KERNEL(256) softmax_backward(const T* dy, const T* y, T* dx, i64 rows, i64 n, i64 inner, A temperature, int logarithm) {
    i64 row = this_row();
    if (row >= rows) return;
    i64 first = first_of(row, n, inner);
    A total = 0;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        i64 at = first + i * inner;
        total += logarithm ? A(dy[at]) : A(dy[at]) * A(y[at]);
    }
    total = reduce_row(total, Sum());
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        i64 at = first + i * inner;
        A g = logarithm ? A(dy[at]) - exp(A(y[at])) * total : (A(dy[at]) - total) * A(y[at]);
        dx[at] = T(g / temperature);
    }
}
BLOCKS(softmax_backward)

// How many labels are not `ignored`, 1 at least.
KERNEL(256) count_labels(const T* label, A* count, i64 rows, A ignored) {
    A found = 0;
    for (i64 i = threadIdx.x; i < rows; i += blockDim.x) found += A(label[i]) != ignored;
    found = reduce_row(found, Sum());
    if (threadIdx.x == 0) count[0] = found > 1 ? found : 1;
}
BLOCKS(count_labels)

// The softmax minus the label's one-hot row, scaled, and divided by `count` where it is given.
KERNEL(256) softmax_output_backward(const T* y, const T* label, const A* count, T* dx, i64 size, i64 n, A scale,
                                    int ignores, A ignored, A smooth) {
    FOR_EACH(at, size) {
        i64 row = at / n, i = at - row * n;
        A wanted = A(label[row]), divisor = count ? count[0] : A(1);
        bool hit = i == (i64)wanted;
        A target = hit ? 1 - smooth : smooth / (n - 1);
        A g = smooth == 0 ? A(y[at]) - (hit ? A(1) : A(0)) : A(y[at]) - target;
        dx[at] = T(ignores && wanted == ignored ? A(0) : g * (scale / divisor));
    }
}
EACH(softmax_output_backward)
