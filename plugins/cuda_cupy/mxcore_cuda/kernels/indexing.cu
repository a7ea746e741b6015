// Elements and rows by index, and the gradients of that. Elements are counted in 32 bits.
#include "indices.cuh"

// (lead, n, tail) -> (lead, count, tail)
KERNEL(256) take(const T* x, const void* index, int kind, T* y, u32 size, u32 count, int n, u32 tail, int wraps) {
    FOR_EACH_OF_FEW(i, size) {
        u32 row = i / tail, l = row / count;
        int place = place_at(index, kind, row - l * count, n, wraps);
        y[i] = x[(l * (i64)n + place) * tail + (i - row * tail)];
    }
}
EACH(take)

// The places of coordinates along one axis of length n; after the first axis, added to those along the axes before.
KERNEL(256) find_places(const void* index, int kind, int* places, u32 count, int n, int wraps, int first) {
    FOR_EACH_OF_FEW(i, count) places[i] = (first ? 0 : places[i] * n) + place_at(index, kind, i, n, wraps);
}
EACH(find_places)

// -- sums of the rows of a place -------------------------------------------------------------------------------------
// Rows are put in the order of their places, `order`, so that those of one place follow each other: `sorted` are the
// places in that order. These runs are cut at the multiples of SHARE, and a thread sums up a column of each piece. What
// is not a whole run is kept in `parts`, (shares, 2, columns): a share may begin with the end of a run, and end with the
// beginning of one.
const u32 SHARE = 128;

#define ROWS u32 count, u32 n, u32 lead, u32 tail

// Element `column` of a row, of `rows` in each of `lead`.
DEVICE i64 element(u32 row, u32 column, u32 rows, u32 tail) {
    u32 l = column / tail;
    return (l * (i64)rows + row) * tail + (column - l * tail);
}

// What thread `e` sums up: values(row, column) of the rows of a piece; without `order` the rows are in that of their
// places.
template <class F>
DEVICE void sum_piece(u32 e, F values, const int* sorted, const i64* order, T* y, A* parts, ROWS) {
    u32 columns = lead * tail, i = e / columns, column = e - i * columns, share = i / SHARE;
    int place = sorted[i];
    bool begins = i == 0 || sorted[i - 1] != place, ends;
    if (!begins && i % SHARE) return;
    A total = 0;
    do {
        total += values(order ? u32(order[i]) : i, column);
        i++;
        ends = i == count || sorted[i] != place;
    } while (!ends && i % SHARE);
    if (begins && ends)
        y[element(place, column, n, tail)] = T(total);
    else
        parts[(share * 2 + begins) * (i64)columns + column] = total;
}

// (lead, count, tail) -> (lead, n, tail)
KERNEL(256) sum_pieces(const T* x, const int* sorted, const i64* order, T* y, A* parts, ROWS) {
    FOR_EACH_OF_FEW(e, count * lead * tail)
        sum_piece(e, [=](u32 row, u32 column) { return A(x[element(row, column, count, tail)]); }, sorted, order, y,
                  parts, count, n, lead, tail);
}
EACH(sum_pieces)

// Each row is one of a matrix, times a value.
KERNEL(256) sum_products(const T* factors, const void* which, int kind, const T* matrix, const int* sorted,
                         const i64* order, T* y, A* parts, ROWS) {
    FOR_EACH_OF_FEW(e, count * lead * tail)
        sum_piece(
            e,
            [=](u32 row, u32 column) {
                return A(factors[row]) * A(matrix[index_at(which, kind, row) * tail + column]);
            },
            sorted, order, y, parts, count, n, lead, tail);
}
EACH(sum_products)

// The runs that go on in a share of which they are not the beginning: by the first such.
KERNEL(256) sum_parts(const int* sorted, const A* parts, T* y, ROWS) {
    u32 columns = lead * tail, shares = (count + SHARE - 1) / SHARE;
    FOR_EACH_OF_FEW(e, shares * columns) {
        u32 share = e / columns, column = e - share * columns;
        if (share == 0) continue;
        int place = sorted[share * SHARE];
        if (sorted[share * SHARE - 1] != place || share > 1 && sorted[(share - 1) * SHARE - 1] == place) continue;
        A total = parts[(share * 2 - 1) * (i64)columns + column];
        for (; share < shares && sorted[share * SHARE] == place; share++)
            total += parts[share * 2 * (i64)columns + column];
        y[element(place, column, n, tail)] = T(total);
    }
}
EACH(sum_parts)

// Of the rows of a place the last.
KERNEL(256) set_last(const T* x, const int* sorted, const i64* order, T* y, u32 count, u32 tail) {
    FOR_EACH_OF_FEW(e, count * tail) {
        u32 i = e / tail, column = e - i * tail;
        if (i + 1 < count && sorted[i + 1] == sorted[i]) continue;
        y[sorted[i] * (i64)tail + column] = x[order[i] * tail + column];
    }
}
EACH(set_last)

// The row of each stored value of a matrix: of `n` rows, which begin at `start`.
KERNEL(256) rows_of(const i64* start, int* rows, u32 count, u32 n) {
    FOR_EACH_OF_FEW(i, count) {
        u32 low = 0, high = n;  // the first row that ends behind i
        while (low < high) {
            u32 middle = low + (high - low) / 2;
            if (start[middle + 1] > i)
                high = middle;
            else
                low = middle + 1;
        }
        rows[i] = low;
    }
}
EACH(rows_of)

// -- one element of each row -----------------------------------------------------------------------------------------
// (outer, n, inner) -> (outer, inner)
KERNEL(256) pick(const T* x, const void* index, int kind, T* y, u32 size, int n, u32 inner, int wraps) {
    FOR_EACH_OF_FEW(i, size) {
        u32 outer = i / inner;
        y[i] = x[(outer * (i64)n + place_at(index, kind, i, n, wraps)) * inner + (i - outer * inner)];
    }
}
EACH(pick)

KERNEL(256) pick_backward(const T* dy, const void* index, int kind, T* dx, u32 size, int n, u32 inner, int wraps) {
    FOR_EACH_OF_FEW(i, size) {
        u32 row = i / inner, outer = row / n, from = outer * inner + (i - row * inner);
        dx[i] = place_at(index, kind, from, n, wraps) == int(row - outer * n) ? dy[from] : T(0);
    }
}
EACH(pick_backward)

KERNEL(256) one_hot(const void* index, int kind, T* y, u32 size, u32 depth, double on, double off) {
    FOR_EACH_OF_FEW(i, size) {
        u32 row = i / depth;
        bool set = index_at(index, kind, row) == i64(i - row * depth) && !is_nan_at(index, kind, row);
        y[i] = T(set ? on : off);
    }
}
EACH(one_hot)
