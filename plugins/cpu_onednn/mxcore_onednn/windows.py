"""Pooling: maxima and averages of windows, forward."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from mxcore.layouts import axes, channels_first
from mxcore.plugin import Call, Params, Spec

from .calls import PRIORITY, kernels, otherwise, run, takes
from .library import Library, library
from .plan import DST, INFERENCE, SRC, Desc, Plan, dims, plan_for
from .rules import pools

__all__ = ["Windows", "forward"]

#: dnnl_pooling_max and others, by what an average is divided by.
_MAX, _AVERAGE, _AVERAGE_INSIDE = 0x1FF, 0x2FF, 0x3FF


class Windows(NamedTuple):
    """What a plan is made for: shapes, windows and their steps, and what is computed of each.

    Attributes
    ----------
    kind : int
        In the library's numbers.
    src, dst, window, stride, pad, end : tuple of int
        `pad` and `end` are what is put before and behind each axis of size.
    """

    kind: int
    src: tuple[int, ...]
    dst: tuple[int, ...]
    window: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    end: tuple[int, ...]

    @classmethod
    def of(cls, p: Params, src: tuple[int, ...], dst: tuple[int, ...]) -> Windows | None:
        """Those of an operator; None where they lie so that the library has none like them."""
        n = len(src) - 2
        if p.pool_type not in ("max", "avg"):
            return None
        window, stride, pad = (tuple(axes(v, n, d)) for v, d in ((p.kernel, 1), (p.stride, 1), (p.pad, 0)))
        if p.global_pool:
            window, stride, pad = src[2:], (1,) * n, (0,) * n
        needed = [(o - 1) * s + w - m - b for o, s, w, m, b in zip(dst[2:], stride, window, src[2:], pad)]
        end = tuple(map(max, needed, pad))
        # A window that is nothing but padding has no largest value; MXNet's mean does not count what `full` adds.
        if any(max(pads) >= size for size, *pads in zip(window, pad, end)):
            return None
        average = _AVERAGE_INSIDE if p.count_include_pad is False else _AVERAGE
        if p.pool_type == "avg" and average == _AVERAGE and end != pad:
            return None
        return cls(_MAX if p.pool_type == "max" else average, src, dst, window, stride, pad, end)

    def desc(self, lib: Library, src: Desc, dst: Desc) -> int:
        """The descriptor of the primitive, from images of one layout to such of another."""
        none = dims([0] * len(self.pad))
        return lib.new(
            "pooling_forward_primitive_desc_create",
            *(lib.engine, INFERENCE, self.kind, src.handle, dst.handle),
            *(dims(self.stride), dims(self.window), none, dims(self.pad), dims(self.end), lib.attr),
        )


def forward(lib: Library, w: Windows) -> Plan:
    """Of images (n, c, *size), to the like."""
    src, dst = Desc.dense(lib, w.src), Desc.dense(lib, w.dst)
    plan = Plan(lib, [src, dst])
    plan.add(w.desc(lib, src, dst), {SRC: 0, DST: 1})
    return plan.done()


@lru_cache(512)
def _windows(p: Params, src: tuple[int, ...]) -> Windows | None:
    n = len(src) - 2
    if p.global_pool:
        return Windows.of(p, src, (*src[:2], *[1] * n))
    if p.pooling_convention != "valid":
        return None
    window, stride, pad = (axes(v, n, d) for v, d in ((p.kernel, 1), (p.stride, 1), (p.pad, 0)))
    size = [(m + 2 * b - w) // s + 1 for m, w, s, b in zip(src[2:], window, stride, pad)]
    return Windows.of(p, src, (*src[:2], *size))


def _plan(w: Windows) -> Plan | None:
    return plan_for(("pooling", w), lambda lib: forward(lib, w), prod(w.dst) * prod(w.window))


def _pools(p: Params, data: Spec) -> bool:
    if not (channels_first(p) and takes([data]) and 4 <= data.ndim <= 5):
        return False
    lib, w = library(), _windows(p, data.shape)
    if lib is None or w is None or min(w.dst) < 1 or not pools(lib.isa, p.pool_type, w.window, w.stride):
        return False
    return _plan(w) is not None


@kernels.kernel("Pooling", when=_pools, priority=PRIORITY, out=True)
def _pool(k: Call, p: Params, outs: Sequence[Any], data: Any) -> None:
    w = _windows(p, data.shape)
    plan = None if w is None else _plan(w)
    run("Pooling", plan, [data], outs[:1], otherwise("Pooling", k, p, outs, data))
