"""Convolutions of one to three dimensions by cuDNN, and their gradients.

Each signature is described once. What computes it is chosen at the first call, by what cuDNN expects of each way or by
timing them, and is the same from then on, in later processes too. What cuDNN does not support, or computes more slowly
than kernels of our own, is told to the caller, who has these.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mxcore.codecache import CodeCache
from mxcore.plugin import Alone, Device, error

from . import engines
from .cudnn import TYPES, Handle, Refused, call, handles, library, told, version
from .drivers import driver, emulated
from .dtypes import name_of

__all__ = ["DATA", "FILTER", "FORWARD", "Convolution", "Kind", "chosen", "convolve", "describe"]

_DEFAULT_MATH, _TENSOR_MATH, _FMA_MATH = 0, 1, 3
_CROSS_CORRELATION = 1
#: Algorithms that are asked for, signatures that are remembered, and how often a way is timed.
_MOST_WAYS, _MOST_PLANS, _RUNS = 32, 1024, 3
_MOST_BYTES = 1 << 40
#: Products and sums from which on a convolution is worth looking for engines.
_WORTH = 10**8
#: Bytes that are filled, and how often, to keep a GPU at work for about a millisecond; an emulated one needs nothing.
_BUSY, _OFTEN = 1 << 28, 12
#: The name of our own kernels among what can be chosen.
_OURS = "ours"
#: The scalars of a call: once the result, and nothing of what was there.
_SCALARS = {t: (t(1), t(0)) for t in (ctypes.c_float, ctypes.c_double)}
#: What was chosen by timing, so that later processes need not, and choose the same.
CHOICES = CodeCache("cudnn", lambda: [Path(__file__), Path(engines.__file__)])


class Kind(NamedTuple):
    """What is computed.

    Attributes
    ----------
    call, choose, space : str
        cuDNN's functions for it.
    parts : str
        What operands are; the result's is the last.
    transforms : tuple of int
        Algorithms that transform tiles.
    """

    call: str
    choose: str
    space: str
    parts: str
    transforms: tuple[int, ...]


FORWARD, DATA, FILTER = (
    Kind(
        f"cudnnConvolution{name}",
        f"cudnnGetConvolution{name}Algorithm_v7",
        f"cudnnGetConvolution{name}WorkspaceSize",
        parts,
        transforms,
    )
    for name, parts, transforms in (
        ("Forward", "xwy", (4, 5, 6, 7)),
        ("BackwardData", "wyx", (2, 3, 4, 5)),
        ("BackwardFilter", "xyw", (2, 4, 5, 6)),
    )
)


class Convolution(NamedTuple):
    """A convolution of `x` by `w` to `y`, by their shapes, channels first."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    y: tuple[int, ...]
    pad: tuple[int, ...]
    stride: tuple[int, ...]
    dilate: tuple[int, ...]
    groups: int = 1

    def wide(self) -> Convolution:
        """The same, of two axes where there is one."""
        if len(self.pad) > 1:
            return self
        x, w, y = ((*s[:2], 1, *s[2:]) for s in (self.x, self.w, self.y))
        return Convolution(x, w, y, (0, *self.pad), (1, *self.stride), (1, *self.dilate), self.groups)


class _Key(NamedTuple):
    """All that a choice depends on, on one kind of GPU."""

    kind: Kind
    convolution: Convolution
    dtype: str
    math: int
    tune: str
    workspace: int
    deterministic: bool
    aligned: bool
    always: bool


class _Algorithm:
    """One of the algorithms that cuDNN's older functions have, with a kind of arithmetic."""

    def __init__(self, plan: _Plan, number: int, arithmetic: int) -> None:
        self.name, self.size = f"algorithm {number}, {arithmetic}", 0
        self._kind, self._number = plan.key.kind, number
        self._described = plan.described(arithmetic)
        self._scalars = _SCALARS[ctypes.c_double if plan.key.dtype == "float64" else ctypes.c_float]

    def prepare(self, handle: Handle) -> None:
        """Find out the size of its workspace."""
        size = ctypes.c_size_t()
        call(self._kind.space, handle.pointer, *self._described, self._number, ctypes.byref(size))
        self.size = size.value

    def run(self, handle: Handle, places: Sequence[int], space: int) -> None:
        """Launch it on operands at these addresses."""
        first, second, convolution, last = self._described
        (one, zero), at = self._scalars, [ctypes.c_void_p(place) for place in places]
        call(
            self._kind.call,
            *(handle.pointer, ctypes.byref(one), first, at[0], second, at[1], convolution, self._number),
            *(ctypes.c_void_p(space), ctypes.c_size_t(self.size), ctypes.byref(zero), last, at[2]),
        )


class _Plan:
    """A signature: its descriptors, and the way that was chosen."""

    def __init__(self, key: _Key) -> None:
        self.key = key
        self.owned: list[tuple[str, ctypes.c_void_p]] = []
        weakref.finalize(self, _destroy, library(), self.owned).atexit = False
        self.parts: dict[str, ctypes.c_void_p] = {}
        self._by_arithmetic: dict[int, ctypes.c_void_p] = {}
        self.way: Any = None
        c, kind = key.convolution.wide(), TYPES[key.dtype]
        for part, shape in (("x", c.x), ("y", c.y)):
            made = self.parts[part] = self._made("Tensor")
            call("cudnnSetTensorNdDescriptor", made, kind, len(shape), _ints(shape), _ints(_strides(shape)))
        made = self.parts["w"] = self._made("Filter")
        call("cudnnSetFilterNdDescriptor", made, kind, 0, len(c.w), _ints(c.w))

    def _made(self, what: str) -> ctypes.c_void_p:
        """A new descriptor, destroyed with this."""
        made = ctypes.c_void_p()
        call(f"cudnnCreate{what}Descriptor", ctypes.byref(made))
        self.owned.append((f"cudnnDestroy{what}Descriptor", made))
        return made

    def described(self, arithmetic: int) -> tuple[ctypes.c_void_p, ...]:
        """The descriptors as functions take them, with a kind of arithmetic."""
        found = self._by_arithmetic.get(arithmetic)
        if found is None:
            c, found = self.key.convolution.wide(), self._made("Convolution")
            places = (_ints(c.pad), _ints(c.stride), _ints(c.dilate))
            compute = TYPES["float64" if self.key.dtype == "float64" else "float32"]
            call("cudnnSetConvolutionNdDescriptor", found, len(c.pad), *places, _CROSS_CORRELATION, compute)
            call("cudnnSetConvolutionGroupCount", found, c.groups)
            call("cudnnSetConvolutionMathType", found, arithmetic)
            self._by_arithmetic[arithmetic] = found
        a, b, out = (self.parts[part] for part in self.key.kind.parts)
        return a, b, found, out

    def ways(self, handle: Handle) -> list[Any]:
        """What may compute it: algorithms, then engines, each in the order of speed that cuDNN expects."""
        found: list[Any] = [*self._algorithms(handle), *self._engines(handle)]
        return list({way.name: way for way in reversed(found)}.values())[::-1]  # of equal ones the first

    def _algorithms(self, handle: Handle) -> list[_Algorithm]:
        key, count, found = self.key, ctypes.c_int(), (_Perf * _MOST_WAYS)()
        with handle.lock:
            call(key.kind.choose, handle.pointer, *self.described(key.math), _MOST_WAYS, ctypes.byref(count), found)
        return [
            # What may not round its factors stays so, whatever cuDNN would like to.
            _Algorithm(self, perf.algorithm, _FMA_MATH if key.math == _FMA_MATH else perf.math)
            for perf in found[: count.value]
            if not perf.status
            and (perf.determinism or not key.deterministic)
            # Of float16 the sums of a tile would be rounded, or be too large.
            and not (key.dtype == "float16" and perf.algorithm in key.kind.transforms)
        ]

    def _engines(self, handle: Handle) -> list[engines.Engine]:
        key, c = self.key, self.key.convolution.wide()
        if not key.aligned or 2 * math.prod(c.y) * math.prod(c.w[1:]) < _WORTH:
            return []
        refused = {engines.DOWN_CONVERT, engines.REDUCED_SUMS}
        if key.deterministic:
            refused.add(engines.NONDETERMINISTIC)
        if key.math == _FMA_MATH:
            refused.add(engines.TENSOR_CORE)
        if key.dtype == "float16":
            refused |= {engines.FFT, engines.WINOGRAD}
        shapes = {part: (shape, _strides(shape)) for part, shape in zip("xwy", c[:3])}
        places = c.pad, c.stride, c.dilate
        try:
            with handle.lock:
                return engines.engines(key.kind.parts, shapes, *places, key.dtype, frozenset(refused), handle)
        except Refused:
            return []

    def fits(self, handle: Handle, way: Any) -> bool:
        """Make a way ready; whether cuDNN can, and it keeps to the workspace."""
        try:
            with handle.lock:
                way.prepare(handle)
        except Refused as e:
            if e.status < 2000:
                raise
            return False
        # Sizes that no GPU has are how it says that an algorithm does not fit.
        return bool(way.size <= (_MOST_BYTES if self.key.tune == "fastest" else self.key.workspace << 20))

    def launch(self, device: Device, handle: Handle, way: Any, *operands: Any) -> None:
        """Compute it."""
        d = driver()
        # Its memory is used again by what the stream does later.
        space = device.empty((way.size,), np.uint8, handle.index) if way.size else None
        places, at = [d.address(x) for x in operands], 0 if space is None else d.address(space)

        def run(plan: _Plan = self) -> None:  # whose descriptors live until it is done
            with handle.lock:
                way.run(handle, places, at)

        d.enqueue(handle.stream, run)

    def seconds(self, device: Device, handle: Handle, way: Any, *operands: Any) -> float:
        """How long a way takes; infinitely, if it refuses or has no room."""
        return _seconds(device, handle, partial(self.launch, device, handle, way, *operands))


def _seconds(device: Device, handle: Handle, run: Callable[[], None]) -> float:
    """How long something takes that launches on a handle's stream, the GPU's time and the host's together.

    The host launches nothing else meanwhile. The GPU is kept at work, so that its time has nothing of the host's.
    Infinitely, as above.
    """
    d, events, host = driver(), [], float("inf")
    try:
        run()  # loads what it needs
        some = device.empty((1 if emulated() else _BUSY,), np.uint8, handle.index)
        for _ in range(_OFTEN):
            some[...] = 0
        for _ in range(_RUNS):
            begin, start = d.record(handle.stream, timed=True), time.perf_counter()
            run()
            host = min(host, time.perf_counter() - start)
            events.append((begin, d.record(handle.stream, timed=True)))
        d.finish(events[-1][1])
    except (Refused, MemoryError):
        return float("inf")
    return host + min(d.elapsed(*both) for both in events)


class _Perf(ctypes.Structure):
    """What cuDNN says of an algorithm."""

    _fields_ = (
        ("algorithm", ctypes.c_int),
        ("status", ctypes.c_int),
        ("time", ctypes.c_float),
        ("memory", ctypes.c_size_t),
        ("determinism", ctypes.c_int),
        ("math", ctypes.c_int),
        ("reserved", ctypes.c_int * 3),
    )


def _destroy(found: Any, owned: list[tuple[str, ctypes.c_void_p]]) -> None:
    for name, pointer in owned:
        getattr(found, name)(pointer)


def _ints(values: Sequence[int]) -> Any:
    return (ctypes.c_int * len(values))(*values)


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Elements from one to the next along each axis."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def describe() -> str:
    """A line for ``mxcore info``."""
    if library() is None:
        reason = (
            "MXCORE_CUDNN=0" if told() == "0" else "pip install 'mxcore-cuda[cudnn13]' (or [cudnn12]) makes them faster"
        )
        return f"convolutions by kernels of our own, without cuDNN: {reason}"
    n = version()
    said = f"cuDNN {n // 10000}.{n // 100 % 100}.{n % 100} for convolutions"
    return said if _broken is None else f"{said}, which cannot be used: {_broken}"


# -- choosing ----------------------------------------------------------------------------------------------------------
_plans: dict[tuple[int, _Key], _Plan | None] = {}
_choosing = Alone()
#: Why cuDNN cannot be used at all.
_broken: str | None = None


def convolve(
    device: Device,
    index: int,
    kind: Kind,
    convolution: Convolution,
    dtype: Any,
    a: Any,
    b: Any,
    out: Any,
    ours: Callable[[], None],
    *,
    tune: str | None,
    workspace: int,
) -> bool:
    """Compute a convolution, or a gradient of one, into `out`; False where cuDNN cannot, or was slower when timed.

    Parameters
    ----------
    device : Device
        Of the arrays.
    index : int
    kind : Kind
        `FORWARD`: of `x` and `w`; `DATA`: of `w` and the gradient of `y`; `FILTER`: of `x` and the gradient of `y`.
    convolution : Convolution
    dtype : numpy.dtype
        Of all three.
    a, b, out : array
        Dense.
    ours : callable
        Computes the same without cuDNN; it is timed beside cuDNN's ways.
    tune : {'off', 'limited_workspace', 'fastest'}, optional
        How a way is chosen; as MXNET_CUDNN_AUTOTUNE_DEFAULT says if it is None.
    workspace : int
        MiB that a way may use, but for 'fastest'.

    Raises
    ------
    MXNetError
        (also RuntimeError) with what cuDNN says, if it fails at what it supports.
    """
    name = name_of(dtype)
    if library() is None or _broken is not None or name not in TYPES or max(a.size, b.size, out.size) >= 2**31:
        return False
    d, says = driver(), _told()
    aligned = not (d.address(a) | d.address(b) | d.address(out)) % 16
    arithmetic = says.arithmetic[name]
    key = _Key(
        kind, convolution, name, arithmetic, tune or says.tune, workspace, says.deterministic, aligned, says.always
    )
    try:
        plan = _plans[index, key]
    except KeyError:
        plan = _choosing.do(_planned, device, index, key, ours, a, b, out)
    if plan is None:
        return False
    try:
        plan.launch(device, handles(index)[d.capturing()], plan.way, a, b, out)
    except Refused as e:
        if not 2000 <= e.status < 4000:
            raise error(RuntimeError, str(e)) from None
        _plans[index, key] = None  # it does not support it, though it said so
        return False
    return True


def chosen() -> list[tuple[str, Convolution, str, str | None, int]]:
    """What is remembered: (kind, convolution, dtype, the way or None if it is not supported, bytes of workspace)."""
    found = []
    for (_, key), plan in list(_plans.items()):
        way = plan.way if plan is not None else None
        said = (way.name, way.size) if way else (None, 0)
        found.append((key.kind.call.removeprefix("cudnnConvolution"), key.convolution, key.dtype, *said))
    return found


def _planned(device: Device, index: int, key: _Key, ours: Callable[[], None], *operands: Any) -> _Plan | None:
    """A plan for a signature, remembered; None where there is none."""
    global _broken
    if (index, key) in _plans:  # another thread was first
        return _plans[index, key]
    driver().activate(index)  # the thread may be a new one
    plan: _Plan | None = None
    try:
        handle = handles(index)[driver().capturing()]
        plan = _Plan(key)
        plan.way = _chosen(plan, device, handle, ours, *operands)
        if plan.way is None:
            plan = None
    except Refused as e:
        plan = None
        if e.status < 2000:
            _broken = str(e)
            warnings.warn(f"convolutions go without cuDNN, which cannot be used: {e}", stacklevel=2)
    while len(_plans) >= _MOST_PLANS:
        del _plans[next(iter(_plans))]
    _plans[index, key] = plan
    return plan


def _chosen(plan: _Plan, device: Device, handle: Handle, ours: Callable[[], None], *operands: Any) -> Any:
    """The way to compute a signature: the fastest, as it was found before, or is now, or as cuDNN expects.

    None stands for our own kernels, which are timed with the others unless MXCORE_CUDNN=2.
    """
    ways = plan.ways(handle)
    if plan.key.tune == "off" or driver().capturing():
        return next((way for way in ways if plan.fits(handle, way)), None)
    said = repr((plan.key, driver().name(handle.index), version()))
    entry = f"{hashlib.sha256(said.encode()).hexdigest()[:32]}.code"
    kept = CHOICES.load(entry)
    if kept == _OURS.encode():
        return None
    for way in ways:
        if kept == way.name.encode() and plan.fits(handle, way):
            return way
    fit = [way for way in ways if plan.fits(handle, way)]
    times = [plan.seconds(device, handle, way, *operands) for way in fit]
    best = min(times, default=float("inf"))
    if not plan.key.always and _seconds(device, handle, ours) < best:
        CHOICES.save(entry, _OURS.encode())
        return None
    if best == float("inf"):
        return None
    way = fit[times.index(best)]
    CHOICES.save(entry, way.name.encode())
    return way


class _Told(NamedTuple):
    """What the environment says: the arithmetic of each dtype, how to choose, whether every run must give the same.

    Also whether cuDNN computes whatever it can.
    """

    arithmetic: dict[str, int]
    tune: str
    deterministic: bool
    always: bool


@cache
def _told() -> _Told:
    rounds = os.environ.get("MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION", "0") not in ("", "0")
    tune = os.environ.get("MXNET_CUDNN_AUTOTUNE_DEFAULT", "1").strip()
    return _Told(
        # Of float16 exact products, added up in float32.
        {"float16": _TENSOR_MATH, "float32": _DEFAULT_MATH if rounds else _FMA_MATH, "float64": _DEFAULT_MATH},
        {"0": "off", "2": "fastest"}.get(tune, "limited_workspace"),
        os.environ.get("MXNET_ENFORCE_DETERMINISM", "1").strip() != "0",
        told() == "2",
    )
