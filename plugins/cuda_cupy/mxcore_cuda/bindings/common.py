"""What all bindings share."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import repeat
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from mxcore.plugin import Call, KernelSet, Params, Spec, find_op

from ..dtypes import FLOATS, name_of
from ..launching import Kernel, kernel
from ..rng import Philox

__all__ = [
    "COMPUTED",
    "Array",
    "Outs",
    "binds",
    "countable",
    "few",
    "gpu",
    "helpers",
    "inputs_by_name",
    "is_float",
    "kernel_for",
    "rng_of",
    "three",
    "wide",
]

Array: TypeAlias = Any
Outs: TypeAlias = list[Any]

_F = TypeVar("_F", bound=Callable[..., None])
_T = TypeVar("_T")

gpu = KernelSet("gpu")
#: What kernels compute with, as declarations have it.
COMPUTED = " ".join(FLOATS)


def kernel_for(k: Call, source: str, name: str, dtype: Any) -> Kernel:
    """A kernel of a source for a dtype, on the device of a call."""
    return kernel(source, name, dtype, k.ctx.device_id)  # a dtype is found faster than its name


def rng_of(k: Call) -> Philox:
    """The random numbers of a call, which the device makes."""
    return cast(Philox, k.rng)


def is_float(dtype: Any) -> bool:
    """Whether kernels compute with numbers of a dtype."""
    return name_of(dtype) in FLOATS


def wide(dtype: Any) -> Any:
    """The dtype in which numbers of one are added up."""
    return np.promote_types(dtype, np.float32)


def countable(data: Spec) -> bool:
    """Whether an image has places, and 32 bits count them, padding included, and the images' channels; for kernels."""
    places = math.prod(s + 64 for s in data.shape[2:])
    return bool(0 not in data.shape[2:] and places < 2**31 and math.prod(data.shape[:2]) < 2**30)


def few(*specs: Spec) -> bool:
    """Whether 32 bits count the elements of every array."""
    return all(s.size < 2**31 for s in specs)


def three(values: tuple[int, ...], fill: int = 1) -> tuple[int, ...]:
    """Numbers for one to three axes as those for three; the missing ones come first."""
    return (fill,) * (3 - len(values)) + tuple(values)


def _loose(a: Any) -> bool:
    """Whether an array is not dense; an output that nobody reads and an input that is but a shape have no memory."""
    flags = getattr(a, "flags", None)
    return flags is not None and not flags.c_contiguous


def _stands(
    kernel: Callable[..., None], call: Callable[[], None], k: Call, p: Params, ins: list[Array], outs: Outs
) -> Callable[[], None]:
    """A step's call, where its arrays are dense: only those are looked at that were not there the last time."""
    last: list[Any] = []

    def run() -> None:
        now = [*ins, *outs]
        if len(last) != len(now):
            last[:] = repeat(_nothing, len(now))
        others = [i for i, (a, ref) in enumerate(zip(now, last)) if ref() is not a]
        if not _dense([now[i] for i in others]):
            kernel(k, p, [*outs], *ins)
            return
        for i in others:
            last[i] = weakref.ref(now[i])
        call()

    return run


def _nothing() -> None:
    """A reference to no array."""


def _dense(*some: Any) -> bool:
    """Whether no array is loose; there may be hundreds."""
    try:
        for arrays in some:
            for a in arrays:
                if not a.flags.c_contiguous:
                    return False
    except AttributeError:  # one of those without memory
        return not any(_loose(a) for arrays in some for a in arrays)
    return True


def helpers(op: str) -> Any:
    """What an operator's body shares with its kernels."""
    return find_op(op).facet("helpers")


def inputs_by_name(op: str, p: Params, ins: Sequence[_T]) -> dict[str, _T]:
    """What an operator gets, by the names that parameters decide on."""
    return dict(zip(find_op(op).signature(p).inputs, ins, strict=True))


def binds(
    op: str,
    *,
    dtypes: str | None = COMPUTED,
    when: Callable[..., bool] | None = None,
    short: Any = None,
    standing: Callable[..., Callable[[], None]] | None = None,
) -> Callable[[_F], _F]:
    """Declare a function ``(k, p, outs, *inputs)`` to be the kernel of an operator; it gets dense arrays only.

    `standing`, ``(k, p, ins, outs) -> call``, makes the call of a step that comes again, for dense arrays of these
    shapes; arrays in both lists, and numbers of `p`, may be others each time.
    """

    def declare(fn: _F) -> _F:
        @gpu.kernel(op, dtypes=dtypes, when=when, out=True, short=short)
        @wraps(fn)  # `mxcore info --kernels` tells where it stands
        def kernel(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
            if _dense(ins, outs):
                fn(k, p, outs, *ins)
                return
            places = [k.xp.ascontiguousarray(o) if _loose(o) else o for o in outs]
            fn(k, p, places, *[k.xp.ascontiguousarray(a) if _loose(a) else a for a in ins])
            for o, place in zip(outs, places):
                if place is not o:
                    o[...] = place

        if standing is not None:
            kernel.binds = lambda k, p, ins, outs: _stands(kernel, standing(k, p, ins, outs), k, p, ins, outs)  # type: ignore[attr-defined]
        return fn

    return declare
