"""Image to columns and back: what turns a convolution into a matrix product.

Geometry of a convolution, everywhere in this package: ``g = (c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw,
dd, dh, dw, od, oh, ow)``, that is the channels and size of one image, the kernel, the strides, the padding
before each axis, the dilation, the output size. One- and two-dimensional convolutions have leading axes of
length 1.

The columns of an image are a matrix of ``c*kd*kh*kw`` rows, one per weight, and one column per output
position; both functions handle a range of rows and a range of columns, so that a block of it stays in the
cache.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ..jit import helper, intrinsic
from ..typing import Array, Scalar
from .vectors import add, window

__all__ = ["Geometry", "clear", "copy", "fill", "gather", "inside", "move", "pack", "prefetch", "same", "scatter"]

#: What `g` holds.
Geometry: TypeAlias = tuple[int, ...]

U = np.uint64  # an index that cannot be negative spares the check for indices that count from the end


@helper
def inside(offset: int, stride: int, size: int, count: int) -> tuple[int, int]:
    """Return the range of z in [0, count) with 0 <= z * stride + offset < size."""
    if stride == 1:  # divisions would cost more than the copy they are for
        first, last = -offset, size - offset
    else:
        first = 0 if offset >= 0 else (stride - 1 - offset) // stride
        last = 0 if offset >= size else (size - 1 - offset) // stride + 1
    first = min(max(first, 0), count)
    return first, max(first, min(last, count))


@intrinsic
def copy(typingctx: Any, x: Any, x0: Any, n: Any, y: Any, y0: Any) -> Any:
    """Copy n elements from x[x0] on to y[y0]: libc's copy is faster than a loop of a few elements."""
    from numba import types
    from numba.core import cgutils

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, target = (context.make_array(signature.args[k])(context, builder, args[k]) for k in (0, 3))
        cgutils.raw_memcpy(
            builder,
            builder.gep(target.data, [args[4]]),
            builder.gep(source.data, [args[1]]),
            args[2],
            context.get_abi_sizeof(source.data.type.pointee),
        )
        return context.get_dummy_value()

    return types.void(x, types.int64, types.int64, y, types.int64), codegen


@intrinsic
def clear(typingctx: Any, y: Any, y0: Any, n: Any) -> Any:
    """Set n elements from y[y0] on to zero."""
    from numba import types
    from numba.core import cgutils

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = context.make_array(signature.args[0])(context, builder, args[0]).data
        size = context.get_abi_sizeof(target.type.pointee)
        cgutils.memset(builder, builder.gep(target, [args[1]]), builder.mul(args[2], args[2].type(size)), 0)
        return context.get_dummy_value()

    return types.void(y, types.int64, types.int64), codegen


@intrinsic
def same(typingctx: Any, x: Any, y: Any) -> Any:
    """Tell whether two arrays begin at one address: vector loops give way where input and output overlap."""
    from numba import types

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a, b = (context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 1))
        return builder.icmp_unsigned("==", a, b)

    return types.boolean(x, y), codegen


@intrinsic
def _fetch(typingctx: Any, x: Any, i: Any) -> Any:
    """Ask for the cache line of x[i]; no address is wrong."""
    from numba import types

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        i8p, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        f = builder.module.declare_intrinsic(
            "llvm.prefetch.p0", (), ir.FunctionType(ir.VoidType(), [i8p, i32, i32, i32])
        )
        # The numbers: to be read, to be kept, data.
        builder.call(f, [builder.bitcast(builder.gep(data, [args[1]]), i8p), i32(0), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(x, types.int64), codegen


@helper
def prefetch(x: Array, x0: int, n: int) -> None:
    """Bring n elements from x[x0] on into the cache while something else is computed."""
    for i in range(x0, x0 + n, 64 // x.itemsize):
        _fetch(x, i)


@helper(inline=False)
def fill(y: Array, y0: int, n: int, value: Scalar) -> None:
    """Set n elements from y[y0] on."""
    for i in range(U(y0), U(y0 + n)):
        y[i] = value


@helper(inline=False)
def move(x: Array, x0: int, n: int, y: Array, y0: int, value: Scalar) -> None:
    """Write n elements from x[x0] on, plus a value, to y[y0]."""
    a, b = U(x0), U(y0)
    for i in range(U(n)):
        y[b + i] = x[a + i] + value


@helper(inline=False)
def pack(x: Array, channels: int, n0: int, n1: int, f0: int, count: int, positions: int, y: Array) -> None:
    """Put channels f0:f0+count of images n0:n1 side by side: y is (count, images * positions)."""
    zero = x.dtype.type(0)
    for f in range(count):
        for i in range(n0, n1):
            move(x, (i * channels + f0 + f) * positions, positions, y, (f * (n1 - n0) + i - n0) * positions, zero)


@helper
def _next_row(ch: int, a: int, b: int, e: int, kd: int, kh: int, kw: int) -> tuple[int, int, int, int]:
    e += 1
    if e == kw:
        e, b = 0, b + 1
        if b == kh:
            b, a = 0, a + 1
            if a == kd:
                a, ch = 0, ch + 1
    return ch, a, b, e


@helper(inline=False)
def gather(x: Array, x0: int, g: Geometry, r0: int, r1: int, p0: int, p1: int, cols: Array, c0: int, ld: int) -> None:
    """Copy rows r0:r1, columns p0:p1 of the image at x[x0:] to cols[c0:], rows `ld` apart; padding is zero."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    ch, a, b, e = r0 // (kd * kh * kw), r0 // (kh * kw) % kd, r0 // kw % kh, r0 % kw
    line0, line1 = p0 // ow, (p1 - 1) // ow
    i0, j0 = line0 // oh, line0 % oh
    for r in range(r0, r1):
        offset = e * dw - pw
        left, right = inside(offset, sw, w, ow)
        i, j = i0, j0
        at = c0 + (r - r0) * ld - p0  # where column 0 would be
        for line in range(line0, line1 + 1):
            z0, z1 = max(0, p0 - line * ow), min(ow, p1 - line * ow)
            q = at + line * ow
            iz, iy = i * sd - pd + a * dd, j * sh - ph + b * dh
            if not (0 <= iz < d and 0 <= iy < h):
                clear(cols, q + z0, z1 - z0)
            elif sw == 1:
                window(x, x0 + ((ch * d + iz) * h + iy) * w + offset + z0, z1 - z0, left - z0, right - z0, cols, q + z0)
            else:
                m0 = min(max(left, z0), z1)
                m1 = max(m0, min(right, z1))
                s = U(x0 + ((ch * d + iz) * h + iy) * w + offset)
                if z0 < m0:
                    clear(cols, q + z0, m0 - z0)
                for z in range(U(m0), U(m1)):
                    cols[U(q) + z] = x[s + z * U(sw)]
                if m1 < z1:
                    clear(cols, q + m1, z1 - m1)
            j += 1
            if j == oh:
                i, j = i + 1, 0
        ch, a, b, e = _next_row(ch, a, b, e, kd, kh, kw)


@helper(inline=False)
def scatter(cols: Array, c0: int, ld: int, g: Geometry, r0: int, r1: int, p0: int, p1: int, x: Array, x0: int) -> None:
    """Add cols[c0:] into the image at x[x0:], each element to where :func:`gather` takes it from."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    ch, a, b, e = r0 // (kd * kh * kw), r0 // (kh * kw) % kd, r0 // kw % kh, r0 % kw
    line0, line1 = p0 // ow, (p1 - 1) // ow
    i0, j0 = line0 // oh, line0 % oh
    for r in range(r0, r1):
        offset = e * dw - pw
        left, right = inside(offset, sw, w, ow)
        i, j = i0, j0
        at = c0 + (r - r0) * ld - p0
        for line in range(line0, line1 + 1):
            iz, iy = i * sd - pd + a * dd, j * sh - ph + b * dh
            if 0 <= iz < d and 0 <= iy < h:
                m0 = max(left, p0 - line * ow)
                m1 = max(m0, min(right, p1 - line * ow))
                q, s = at + line * ow, x0 + ((ch * d + iz) * h + iy) * w + offset
                if sw == 1:
                    add(cols, q + m0, m1 - m0, x, s + m0)
                else:
                    for z in range(U(m0), U(m1)):
                        x[U(s) + z * U(sw)] += cols[U(q) + z]
            j += 1
            if j == oh:
                i, j = i + 1, 0
        ch, a, b, e = _next_row(ch, a, b, e, kd, kh, kw)
