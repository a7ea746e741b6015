// What convolutions need beside products of matrices. A column holds what a window sees, channel by channel.
#include "reduce.cuh"
#include "windows.cuh"

// d, h, w: of the image; o…: of windows; k…, s…, p…, d…: kernel, stride, padding and dilation along each.
#define WINDOWS                                                                                                       \
    int d, int h, int w, int od, int oh, int ow, int kd, int kh, int kw, int sd, int sh, int sw, int pd, int ph,      \
        int pw, int dd, int dh, int dw

// Rows of columns: (channel, place in the window), `row` elements each, in which an image's windows begin `beside` elements
// after those of the one before. A thread writes all that one window sees of one channel, so that it divides once for all.
KERNEL(256) to_columns(const T* __restrict__ images, T* __restrict__ columns, int planes, int channels, i64 image_step,
                       i64 row, i64 beside, WINDOWS) {
    int windows = od * oh * ow;
    FOR_EACH_PLACE(channel, window, planes, windows) {
        Spot o = spot_of(window, oh, ow);
        Spot first = {o.z * sd - pd, o.y * sh - ph, o.x * sw - pw};
        int image = channel / channels, c = channel % channels;
        const T* plane = images + image * image_step + (i64)c * (d * h * w);
        T* column = columns + image * beside + c * (kd * kh * kw) * row + window;
        for (int k0 = 0; k0 < kd; k0++)
            for (int k1 = 0; k1 < kh; k1++) {
                int z = first.z + k0 * dd, y = first.y + k1 * dh, line = (z * h + y) * w;
                bool there = (u32)z < (u32)d && (u32)y < (u32)h;
#pragma unroll 4
                for (int k2 = 0; k2 < kw; k2++) {
                    int x = first.x + k2 * dw;
                    *column = there && (u32)x < (u32)w ? plane[line + x] : T(0);
                    column += row;
                }
            }
    }
}
EACH(to_columns)

// The sum of what the windows that see an element hold for it: each element collects, so that sums are in one order.
KERNEL(256) from_columns(const T* __restrict__ columns, T* __restrict__ x, int planes, int channels, i64 image_step,
                         i64 row, i64 beside, WINDOWS) {
    FOR_EACH_PLACE(channel, place, planes, d * h * w) {
        Spot i = spot_of(place, h, w);
        int image = channel / channels, c = channel % channels;
        const T* column = columns + image * beside + c * (kd * kh * kw) * row;
        A total = 0;
        for (int k0 = 0; k0 < kd; k0++) {
            int o0 = window_at(i.z, k0, sd, pd, dd, od);
            if (o0 < 0) continue;
            for (int k1 = 0; k1 < kh; k1++) {
                int o1 = window_at(i.y, k1, sh, ph, dh, oh);
                if (o1 < 0) continue;
#pragma unroll 4
                for (int k2 = 0; k2 < kw; k2++) {
                    int o2 = window_at(i.x, k2, sw, pw, dw, ow);
                    total += o2 < 0 ? A(0) : A(column[((k0 * kh + k1) * kw + k2) * row + (o0 * oh + o1) * ow + o2]);
                }
            }
        }
        x[image * image_step + (i64)c * (d * h * w) + place] = T(total);
    }
}
EACH(from_columns)

// Images' planes, channel by channel, and back again; `planes` of a size, of so many channels each.
KERNEL(256) by_channels(const T* images, T* y, int planes, int channels, i64 image_step, int size) {
    int n = planes / channels;
    FOR_EACH_PLACE(plane, place, planes, size) {
        int image = plane / channels, c = plane % channels;
        y[((i64)c * n + image) * size + place] = images[image * image_step + (i64)c * size + place];
    }
}
EACH(by_channels)

KERNEL(256) by_images(const T* x, const T* bias, T* images, int planes, int channels, i64 image_step, int size) {
    int n = planes / channels;
    FOR_EACH_PLACE(plane, place, planes, size) {
        int image = plane / channels, c = plane % channels;
        T v = x[((i64)c * n + image) * size + place];
        images[image * image_step + (i64)c * size + place] = bias ? T(A(v) + A(bias[c])) : v;
    }
}
EACH(by_images)

// -- a filter for each channel -----------------------------------------------------------------------------------------
KERNEL(256) depthwise(const T* x, const T* weight, const T* bias, T* out, int planes, int filters, int each, WINDOWS) {
    FOR_EACH_PLACE(plane, place, planes, od * oh * ow) {
        Spot o = spot_of(place, oh, ow);
        int f = plane % filters, channel = plane / filters * (filters / each) + f / each;
        const T* image = x + (i64)channel * (d * h * w);
        const T* filter = weight + (i64)f * kd * kh * kw;
        A total = bias ? A(bias[f]) : A(0);
        for (int k0 = 0; k0 < kd; k0++)
            for (int k1 = 0; k1 < kh; k1++)
                for (int k2 = 0; k2 < kw; k2++) {
                    Spot i = {o.z * sd - pd + k0 * dd, o.y * sh - ph + k1 * dh, o.x * sw - pw + k2 * dw};
                    if (inside(i, d, h, w))
                        total += A(image[(i.z * h + i.y) * w + i.x]) * A(filter[(k0 * kh + k1) * kw + k2]);
                }
        out[(i64)plane * (od * oh * ow) + place] = T(total);
    }
}
EACH(depthwise)

KERNEL(256) depthwise_data(const T* dy, const T* weight, T* dx, int planes, int filters, int each, WINDOWS) {
    int channels = filters / each;
    FOR_EACH_PLACE(plane, place, planes, d * h * w) {
        int image = plane / channels, c = plane % channels;
        Spot i = spot_of(place, h, w);
        A total = 0;
        for (int f = c * each; f < (c + 1) * each; f++) {
            const T* grad = dy + ((i64)image * filters + f) * ((i64)od * oh * ow);
            const T* filter = weight + (i64)f * kd * kh * kw;
            for (int k0 = 0; k0 < kd; k0++) {
                int o0 = window_at(i.z, k0, sd, pd, dd, od);
                if (o0 < 0) continue;
                for (int k1 = 0; k1 < kh; k1++) {
                    int o1 = window_at(i.y, k1, sh, ph, dh, oh);
                    if (o1 < 0) continue;
                    for (int k2 = 0; k2 < kw; k2++) {
                        int o2 = window_at(i.x, k2, sw, pw, dw, ow);
                        if (o2 < 0) continue;
                        total += A(grad[(o0 * oh + o1) * ow + o2]) * A(filter[(k0 * kh + k1) * kw + k2]);
                    }
                }
            }
        }
        dx[(i64)plane * (d * h * w) + place] = T(total);
    }
}
EACH(depthwise_data)

// A block for each number of a filter.
KERNEL(256) depthwise_weight(const T* dy, const T* x, T* d_weight, int images, int filters, int each, WINDOWS) {
    int size = kd * kh * kw, f = blockIdx.x / size, c = f / each;
    Spot k = spot_of(blockIdx.x % size, kh, kw);
    i64 windows = (i64)od * oh * ow, elements = (i64)d * h * w;
    A total = 0;
    for (Walk at(threadIdx.x, blockDim.x, windows); at.plane < images; at.go()) {
        i64 image = at.plane, window = at.place;
        Spot o = spot_of(int(window), oh, ow);
        Spot i = {o.z * sd - pd + k.z * dd, o.y * sh - ph + k.y * dh, o.x * sw - pw + k.x * dw};
        if (inside(i, d, h, w))
            total += A(dy[(image * filters + f) * windows + window]) *
                     A(x[(image * (filters / each) + c) * elements + (i.z * h + i.y) * w + i.x]);
    }
    total = reduce_row(total, Sum());
    if (threadIdx.x == 0) d_weight[blockIdx.x] = T(total);
}
BLOCKS(depthwise_weight)

// -- bias ----------------------------------------------------------------------------------------------------------------
KERNEL(256) fill_channels(const T* bias, T* y, int planes, int channels, int size) {
    FOR_EACH_PLACE(plane, place, planes, size) y[plane * (i64)size + place] = bias[plane % channels];
}
EACH(fill_channels)

KERNEL(256) add_channels(const T* bias, T* y, int planes, int channels, int size) {
    FOR_EACH_PLACE(plane, place, planes, size) {
        i64 at = plane * (i64)size + place;
        y[at] = T(A(y[at]) + A(bias[plane % channels]));
    }
}
EACH(add_channels)

// A block for each channel.
KERNEL(256) sum_channels(const T* __restrict__ dy, T* d_bias, i64 images, int channels, i64 plane) {
    A total = 0;
#pragma unroll 4
    for (Walk at(threadIdx.x, blockDim.x, plane); at.plane < images; at.go())
        total += A(dy[(at.plane * channels + blockIdx.x) * plane + at.place]);
    total = reduce_row(total, Sum());
    if (threadIdx.x == 0) d_bias[blockIdx.x] = T(total);
}
BLOCKS(sum_channels)
