"""Pooling: maxima and averages of windows, and with channels last their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from operator import le
from typing import Any, NamedTuple

from mxcore.layouts import axes, channels_first
from mxcore.plugin import Call, Params, Spec

from .calls import PRIORITY, alike, kernels, otherwise, run
from .descs import DIFF_DST, DIFF_SRC, DST, INFERENCE, SRC, TRAINING, WORKSPACE, Desc, dims
from .library import Library, Refused, library
from .plan import Plan, Tensor
from .plans import plan_for
from .rules import narrows, pools

__all__ = ["Windows", "backward", "forward", "pools_last"]

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
    last : bool
        Arrays have the channels of a place side by side.
    dtype : str
    """

    kind: int
    src: tuple[int, ...]
    dst: tuple[int, ...]
    window: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    end: tuple[int, ...]
    last: bool = False
    dtype: str = "float32"

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

    @property
    def _steps(self) -> tuple[Any, ...]:
        none = dims([0] * len(self.pad))
        return dims(self.stride), dims(self.window), none, dims(self.pad), dims(self.end)

    def desc(self, lib: Library, src: Desc, dst: Desc, use: int = INFERENCE) -> int:
        """The descriptor of the primitive, from images of one layout to such of another."""
        return lib.new(
            "pooling_forward_primitive_desc_create",
            *(lib.engine, use, self.kind, src.handle, dst.handle, *self._steps, lib.attr),
        )

    def gradient(self, lib: Library, src: Desc, dst: Desc, hint: int) -> int:
        """The descriptor of the gradient of what another one, for training, describes."""
        return lib.new(
            "pooling_backward_primitive_desc_create",
            *(lib.engine, self.kind, src.handle, dst.handle, *self._steps, hint, lib.attr),
        )


def forward(lib: Library, w: Windows) -> Plan:
    """Of images, to the like."""
    src, dst = (Desc.image(lib, shape, w.last, w.dtype) for shape in (w.src, w.dst))
    plan = Plan(lib, [src, dst])
    plan.add(w.desc(lib, src, dst), {SRC: 0, DST: 1})
    return plan.done()


def backward(lib: Library, w: Windows) -> Plan:
    """Of the gradient of the result, and of the images where their largest values have to be found, to theirs."""
    # With channels last the library adds up gradients of windows that overlap in bfloat16.
    alone = not w.last or all(map(le, w.window, w.stride))
    given = [Desc.image(lib, shape, w.last, w.dtype) for shape in (w.src, w.dst)]
    src, dst = given if alone else [Desc.image(lib, shape, w.last) for shape in (w.src, w.dst)]
    largest = w.kind == _MAX
    plan = Plan(lib, [given[1], *given[:largest], given[0]])
    hint = w.desc(lib, src, dst, TRAINING)
    try:
        desc = w.gradient(lib, src, dst, hint)
    except Refused:
        lib.primitive_desc_destroy(hint)
        raise
    places: dict[int, int | Tensor | None] = {DIFF_DST: 0, DIFF_SRC: 2 if largest else 1}
    if largest:
        places[WORKSPACE] = plan.add(hint, {SRC: 1, DST: None, WORKSPACE: None})[WORKSPACE]
    else:
        lib.primitive_desc_destroy(hint)
    plan.add(desc, places)
    return plan.done()


@lru_cache(512)
def _windows(p: Params, data: tuple[int, ...], dtype: str = "float32") -> Windows | None:
    last = not channels_first(p)
    src = (data[0], data[-1], *data[1:-1]) if last else data
    n = len(src) - 2
    if p.global_pool:
        size = [1] * n
    elif p.pooling_convention in ("valid", "full"):
        window, stride, pad = (axes(v, n, d) for v, d in ((p.kernel, 1), (p.stride, 1), (p.pad, 0)))
        more = [s - 1 if p.pooling_convention == "full" else 0 for s in stride]
        size = [(m + 2 * b - w + e) // s + 1 for m, w, s, b, e in zip(src[2:], window, stride, pad, more)]
    else:
        return None
    found = Windows.of(p, src, (*src[:2], *size))
    return None if found is None else found._replace(last=last, dtype=dtype)


def pools_last(p: Params, data: tuple[int, ...], gradient: bool) -> bool:
    """Whether the library pools images (n, c, *size), or computes the gradient, if their channels are last.

    Parameters
    ----------
    p : Params
        With the layout that arrays will have.
    """
    w = _windows(p, (data[0], *data[2:], data[1])) if 4 <= len(data) <= 5 else None
    return w is not None and min(w.dst) > 0 and (_backward_plan if gradient else _plan)(w) is not None


def _work(w: Windows) -> float:
    return prod(w.dst) * prod(w.window)


def _plan(w: Windows) -> Plan | None:
    return plan_for(("pooling", w), lambda lib: forward(lib, w), _work(w))


def _backward_plan(w: Windows) -> Plan | None:
    return plan_for(("gradient of pooling", w), lambda lib: backward(lib, w), _work(w))


def _taken(p: Params, specs: Sequence[Spec], gradient: bool = False) -> Windows | None:
    """The windows, where the library is the faster one at them."""
    data, dtype, lib = specs[-1], alike(*specs), library()
    if (
        lib is None
        or not dtype
        or not 4 <= data.ndim <= 5
        or dtype == "bfloat16"
        and not narrows(lib.isa, 4 * data.size)
    ):
        return None
    w = _windows(p, data.shape, dtype)
    if w is None or min(w.dst) < 1:
        return None
    first = pools(lib.isa, p.pool_type, w.window, w.stride) and (dtype == "bfloat16" or not gradient)
    return w if w.last or first else None


def _pools(p: Params, data: Spec) -> bool:
    w = _taken(p, [data])
    return w is not None and _plan(w) is not None


@kernels.kernel("Pooling", when=_pools, priority=PRIORITY, out=True)
def _pool(k: Call, p: Params, outs: Sequence[Any], data: Any) -> None:
    w = _windows(p, data.shape, data.dtype.name)
    plan = None if w is None else _plan(w)
    run("Pooling", plan, [data], outs[:1], otherwise("Pooling", k, p, outs, data))


def _differentiates(p: Params, dy: Spec, data: Spec, out: Spec) -> bool:
    w = _taken(p, [dy, data], True)
    return w is not None and _backward_plan(w) is not None


@kernels.kernel("_backward_Pooling", when=_differentiates, priority=PRIORITY, out=True)
def _backward_pool(k: Call, p: Params, outs: Sequence[Any], dy: Any, data: Any, out: Any) -> None:
    w = _windows(p, data.shape, data.dtype.name)
    plan = None if w is None else _backward_plan(w)
    ins = [dy, data] if w is not None and w.kind == _MAX else [dy]
    run("_backward_Pooling", plan, ins, outs, otherwise("_backward_Pooling", k, p, outs, dy, data, out))
