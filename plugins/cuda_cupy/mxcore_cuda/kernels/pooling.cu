// Pooling over one to three dimensions. Every place collects what it needs, so that results are the same at each run.
#include "windows.cuh"

#define WINDOWS                                                                                                       \
    int d, int h, int w, int od, int oh, int ow, int kd, int kh, int kw, int sd, int sh, int sw, int pd, int ph, int pw

// The part of window o that lies in the data, along one axis.
DEVICE int begin_of(int o, int stride, int pad) { return o * stride - pad > 0 ? o * stride - pad : 0; }
DEVICE int end_of(int o, int stride, int pad, int window, int size) {
    int end = o * stride - pad + window;
    return end < size ? end : size;
}
// The windows that see place i.
DEVICE int first_window(int i, int stride, int pad, int window) {
    int reach = i + pad - window;
    return reach < 0 ? 0 : reach / stride + 1;
}
DEVICE int last_window(int i, int stride, int pad, int count) {
    int last = (i + pad) / stride;
    return last < count - 1 ? last : count - 1;
}
// How many places an average counts along one axis.
DEVICE int places(int o, int stride, int pad, int window, int size, int include_pad) {
    int start = o * stride - pad, end = start + window;
    if (include_pad) return (end < size + pad ? end : size + pad) - start;
    int n = (end < size ? end : size) - (start > 0 ? start : 0);
    return n > 0 ? n : 0;
}

// The first place of a window that begins at o * stride - pad along each axis; -1 if that is padding.
DEVICE int first_place(Spot o, int d, int h, int w, int sd, int sh, int sw, int pd, int ph, int pw) {
    Spot s = {o.z * sd - pd, o.y * sh - ph, o.x * sw - pw};
    return inside(s, d, h, w) ? (s.z * h + s.y) * w + s.x : -1;
}

// The largest, `lowest` at least; where it is, the window's first place if nothing is above that. Either may be left out.
KERNEL(256) max_pool(const T* x, T* y, int* where, int planes, A lowest, WINDOWS) {
    FOR_EACH_PLACE(plane, place, planes, od * oh * ow) {
        i64 at = plane * (i64)(od * oh * ow) + place;
        Spot o = spot_of(place, oh, ow);
        const T* image = x + plane * (i64)(d * h * w);
        int end0 = end_of(o.z, sd, pd, kd, d), end1 = end_of(o.y, sh, ph, kh, h), end2 = end_of(o.x, sw, pw, kw, w);
        A best = lowest;
        int found = first_place(o, d, h, w, sd, sh, sw, pd, ph, pw);
        for (int i0 = begin_of(o.z, sd, pd); i0 < end0; i0++)
            for (int i1 = begin_of(o.y, sh, ph); i1 < end1; i1++)
                for (int i2 = begin_of(o.x, sw, pw); i2 < end2; i2++) {
                    int i = (i0 * h + i1) * w + i2;
                    A v = A(image[i]);
                    if (v > best) best = v, found = i;
                }
        if (y) y[at] = T(best);
        if (where) where[at] = found;
    }
}
EACH(max_pool)

KERNEL(256) max_pool_backward(const T* dy, const int* where, T* dx, int planes, WINDOWS) {
    FOR_EACH_PLACE(plane, place, planes, d * h * w) {
        Spot s = spot_of(place, h, w);
        i64 first = plane * (i64)(od * oh * ow);
        int end0 = last_window(s.z, sd, pd, od), end1 = last_window(s.y, sh, ph, oh), end2 = last_window(s.x, sw, pw, ow);
        A total = 0;
        for (int o0 = first_window(s.z, sd, pd, kd); o0 <= end0; o0++)
            for (int o1 = first_window(s.y, sh, ph, kh); o1 <= end1; o1++)
                for (int o2 = first_window(s.x, sw, pw, kw); o2 <= end2; o2++) {
                    i64 o = first + (o0 * oh + o1) * ow + o2;
                    if (where[o] == place) total += A(dy[o]);
                }
        dx[plane * (i64)(d * h * w) + place] = T(total);
    }
}
EACH(max_pool_backward)

// Power 1: the sum, or with `average` the mean; 2 and 3: the norms of that order.
KERNEL(256) sum_pool(const T* x, T* y, int planes, int power, int average, int include_pad, WINDOWS) {
    FOR_EACH_PLACE(plane, place, planes, od * oh * ow) {
        i64 at = plane * (i64)(od * oh * ow) + place;
        Spot o = spot_of(place, oh, ow);
        const T* image = x + plane * (i64)(d * h * w);
        int end0 = end_of(o.z, sd, pd, kd, d), end1 = end_of(o.y, sh, ph, kh, h), end2 = end_of(o.x, sw, pw, kw, w);
        A total = 0;
        for (int i0 = begin_of(o.z, sd, pd); i0 < end0; i0++)
            for (int i1 = begin_of(o.y, sh, ph); i1 < end1; i1++)
                for (int i2 = begin_of(o.x, sw, pw); i2 < end2; i2++) {
                    A v = A(image[(i0 * h + i1) * w + i2]);
                    total += power == 1 ? v : power == 2 ? v * v : v * v * v;
                }
        if (average) {
            int n = places(o.z, sd, pd, kd, d, include_pad) * places(o.y, sh, ph, kh, h, include_pad) *
                    places(o.x, sw, pw, kw, w, include_pad);
            total /= n > 1 ? n : 1;
        }
        y[at] = T(power == 1 ? total : power == 2 ? sqrt(total) : cbrt(total));
    }
}
EACH(sum_pool)

KERNEL(256) sum_pool_backward(const T* dy, const T* x, const T* y, T* dx, int planes, int power, int average,
                              int include_pad, WINDOWS) {
    FOR_EACH_PLACE(plane, place, planes, d * h * w) {
        i64 at = plane * (i64)(d * h * w) + place;
        Spot s = spot_of(place, h, w);
        i64 first = plane * (i64)(od * oh * ow);
        int end0 = last_window(s.z, sd, pd, od), end1 = last_window(s.y, sh, ph, oh), end2 = last_window(s.x, sw, pw, ow);
        A total = 0;
        for (int o0 = first_window(s.z, sd, pd, kd); o0 <= end0; o0++)
            for (int o1 = first_window(s.y, sh, ph, kh); o1 <= end1; o1++)
                for (int o2 = first_window(s.x, sw, pw, kw); o2 <= end2; o2++) {
                    i64 o = first + (o0 * oh + o1) * ow + o2;
                    A share = A(dy[o]);
                    if (average) {
                        int n = places(o0, sd, pd, kd, d, include_pad) * places(o1, sh, ph, kh, h, include_pad) *
                                places(o2, sw, pw, kw, w, include_pad);
                        share /= n > 1 ? n : 1;
                    } else if (power > 1) {
                        A norm = power == 2 ? A(y[o]) : A(y[o]) * A(y[o]);
                        share = norm == 0 ? A(0) : share / norm;
                    }
                    total += share;
                }
        A v = power > 1 ? A(x[at]) : A(1);
        dx[at] = T(power == 3 ? total * v * v : total * v);
    }
}
EACH(sum_pool_backward)
