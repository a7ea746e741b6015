// Windows over one to three dimensions, those that there are not of length 1: which place has which coordinates, and
// which window sees a place.
#pragma once
#include "mx.cuh"

// The places of planes, `size` of them in each: planes along y, places along x, so that nothing of 64 bits is divided.
#define FOR_EACH_PLACE(plane, place, planes, size)                                                               \
    for (int plane = blockIdx.y * blockDim.y + threadIdx.y; plane < (planes); plane += gridDim.y * blockDim.y) \
        for (int place = blockIdx.x * blockDim.x + threadIdx.x; place < (size); place += gridDim.x * blockDim.x)

// The coordinates of a place in (.., h, w).
struct Spot {
    int z, y, x;
};
DEVICE Spot spot_of(int place, int h, int w) { return {place / w / h, place / w % h, place % w}; }

// From a place in the first of many planes to the one some places further, in the same or a later plane; each step
// divides nothing.
struct Walk {
    i64 plane, place, size, planes, places;
    __device__ Walk(int first, int step, i64 length)
        : plane(first / length), place(first % length), size(length), planes(step / length), places(step % length) {}
    __device__ void go() {
        plane += planes;
        place += places;
        if (place >= size) place -= size, plane++;
    }
};

// The window whose element `k` is place i, along one axis; below 0 if there is none.
DEVICE int window_at(int i, int k, int stride, int pad, int dilate, int count) {
    int reach = i + pad - k * dilate;
    if (stride == 1) return reach < 0 || reach >= count ? -1 : reach;  // nothing is divided
    int o = reach / stride;
    return reach < 0 || reach % stride || o >= count ? -1 : o;
}

// Whether a spot lies in an image.
DEVICE bool inside(Spot s, int d, int h, int w) {
    return s.z >= 0 && s.z < d && s.y >= 0 && s.y < h && s.x >= 0 && s.x < w;
}
