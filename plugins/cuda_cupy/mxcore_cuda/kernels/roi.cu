// Maxima over the bins of regions of images, and where the gradient of each goes.
#include "indices.cuh"

struct Bin {
    int begin, end;
};
// Bin i of `count` from `first` to `last`, whole numbers, cut at an image of `size`.
DEVICE Bin bin_of(A first, A last, int i, int count, int size) {
    A length = last - first + 1 > 1 ? (last - first + 1) / count : A(1) / count;
    A begin = floor(length * A(i)) + first, end = ceil(length * A(i + 1)) + first;
    return {int(begin > 0 ? (begin < size ? begin : A(size)) : 0), int(end > 0 ? (end < size ? end : A(size)) : 0)};
}

// (n, c, h, w), regions of (image, x1, y1, x2, y2) -> (regions, c, ph, pw), and which element of its image each maximum
// is, -1 for none; of equal ones the first. Either may be left out.
KERNEL(256) roi_pool(const T* x, const T* regions, T* y, i64* where, u32 size, int n, u32 c, int h, int w, u32 ph,
                     u32 pw, A scale) {
    FOR_EACH_OF_FEW(e, size) {
        u32 j = e % pw, i = e / pw % ph, plane = e / pw / ph, region = plane / c;
        const T* r = regions + region * 5ll;
        A image = A(r[0]), best = -INFINITY;
        i64 found = -1;
        A nothing = 0;  // NaN if a corner is not finite
        for (int k = 1; k < 5; k++) nothing += A(r[k]) - A(r[k]);
        if (nothing == 0 && image >= 0 && image < n) {
            // Halves are rounded away from zero; where a bin ends on a whole number, this decides.
            Bin rows = bin_of(round(A(r[2]) * scale), round(A(r[4]) * scale), i, ph, h);
            Bin columns = bin_of(round(A(r[1]) * scale), round(A(r[3]) * scale), j, pw, w);
            const T* pixels = x + (i64(image) * c + (plane - region * c)) * h * w;
            for (int row = rows.begin; row < rows.end; row++)
                for (int column = columns.begin; column < columns.end; column++) {
                    A v = A(pixels[row * (i64)w + column]);
                    if (v > best) best = v, found = row * (i64)w + column;
                }
        }
        if (y) y[e] = T(found < 0 ? A(0) : best);
        if (where) where[e] = found;
    }
}
EACH(roi_pool)

// The place among all images' elements that the gradient of each bin goes to; where there is none, 0 goes to the first.
KERNEL(256) roi_places(const T* dy, const i64* where, const T* regions, int* places, T* given, u32 size, int n, u32 c,
                       u32 bins, u32 pixels) {
    FOR_EACH_OF_FEW(e, size) {
        u32 plane = e / bins, region = plane / c;
        A image = A(regions[region * 5ll]);
        i64 at = where[e];
        bool there = image >= 0 && image < n && at >= 0 && at < pixels;
        places[e] = there ? int((u32(image) * c + (plane - region * c)) * pixels + u32(at)) : 0;
        given[e] = there ? dy[e] : T(0);
    }
}
EACH(roi_places)
