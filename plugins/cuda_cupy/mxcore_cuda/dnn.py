"""cuDNN by its C interface, where its library is found: convolutions of one to three dimensions, and their gradients.

Each signature is described once. Its algorithm is chosen at the first call, by what cuDNN expects of each or by timing
them, and is the same from then on, in later processes too. What cuDNN does not support is told to the caller, who has
kernels of our own.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mxcore.codecache import CodeCache
from mxcore.plugin import Device, MXNetError, error

from .drivers import driver

__all__ = ["DATA", "FILTER", "FORWARD", "Convolution", "Kind", "chosen", "convolve", "describe"]

_TYPES = {"float32": 0, "float64": 1, "float16": 2}
_DEFAULT_MATH, _TENSOR_MATH, _FMA_MATH = 0, 1, 3
_CROSS_CORRELATION = 1
_FIRST, _LAST = 0, 1
#: Algorithms that are asked for, signatures that are remembered, and how often an algorithm is timed.
_MOST_WAYS, _MOST_PLANS, _RUNS = 32, 1024, 3
_MOST_BYTES = 1 << 40
#: Bytes that are filled, and how often, to keep a GPU at work for about a millisecond.
_BUSY, _OFTEN = 1 << 28, 12
#: The scalars of a call: once the result, and nothing of what was there.
_SCALARS = {t: (t(1), t(0)) for t in (ctypes.c_float, ctypes.c_double)}
#: The name of our own kernels among what can be chosen.
_OURS = b"ours"
#: What was chosen by timing, so that later processes need not, and choose the same.
CHOICES = CodeCache("cudnn", lambda: [Path(__file__)])

#: Hundreds of statuses -> what to do.
_ADVICE = {
    1: "install the cuDNN 9 of this CUDA: pip install 'mxcore-cuda[cudnn13]' (or [cudnn12])",
    4: "MXCORE_CUDNN=0, or cudnn_off=True of the layer, computes it without",
    5: "an earlier kernel may have failed; MXCORE_CUDNN=0 computes it without",
}


class Kind(NamedTuple):
    """What is computed: cuDNN's functions for it, parts of operands (the result's last), algorithms by tiles."""

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
    """A convolution of `x` by `w` to `y`, by their shapes, channels first; `last`: in memory they are the last."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    y: tuple[int, ...]
    pad: tuple[int, ...]
    stride: tuple[int, ...]
    dilate: tuple[int, ...]
    groups: int = 1
    last: bool = False


class _Key(NamedTuple):
    """All that a choice depends on, on one kind of GPU."""

    kind: Kind
    convolution: Convolution
    dtype: str
    math: int
    tune: str
    workspace: int
    deterministic: bool
    always: bool


class _Refused(MXNetError):
    """What cuDNN returned instead of doing it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


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


class _Way(NamedTuple):
    """An algorithm, the kind of arithmetic, and the bytes of its workspace."""

    algorithm: int
    math: int
    size: int


class _Handle:
    """cuDNN on a stream of a device: one call at a time prepares and launches."""

    def __init__(self, index: int, which: str) -> None:
        d = driver()
        d.activate(index)
        self.index, self.lock = index, threading.Lock()
        self.stream = d.stream(index, which)
        self.pointer = ctypes.c_void_p()
        _call("cudnnCreate", ctypes.byref(self.pointer))
        _call("cudnnSetStream", self.pointer, d.pointer_of(self.stream))


class _Plan:
    """A signature: its descriptors, and the way that was chosen."""

    def __init__(self, key: _Key) -> None:
        self.key = key
        self.owned: list[tuple[str, ctypes.c_void_p]] = []
        weakref.finalize(self, _destroy, _library(), self.owned).atexit = False
        c, kind = key.convolution, _TYPES[key.dtype]
        self.parts: dict[str, ctypes.c_void_p] = {}
        for part, shape in (("x", c.x), ("y", c.y)):
            shape = _wide(shape)
            made = self.parts[part] = self._made("Tensor")
            _call("cudnnSetTensorNdDescriptor", made, kind, len(shape), _ints(shape), _ints(_strides(shape, c.last)))
        shape, made = _wide(c.w), self._made("Filter")
        self.parts["w"] = made
        _call("cudnnSetFilterNdDescriptor", made, kind, _LAST if c.last else _FIRST, len(shape), _ints(shape))
        self._by_math: dict[int, ctypes.c_void_p] = {}
        self.way: _Way | None = None

    def _made(self, what: str) -> ctypes.c_void_p:
        """A new descriptor, destroyed with this."""
        made = ctypes.c_void_p()
        _call(f"cudnnCreate{what}Descriptor", ctypes.byref(made))
        self.owned.append((f"cudnnDestroy{what}Descriptor", made))
        return made

    def _convolution(self, math: int) -> ctypes.c_void_p:
        """The descriptor of the convolution, with a kind of arithmetic."""
        found = self._by_math.get(math)
        if found is None:
            c, n = self.key.convolution, max(2, len(self.key.convolution.pad))
            places = (_ints(_padded(v, n, fill)) for v, fill in ((c.pad, 0), (c.stride, 1), (c.dilate, 1)))
            compute = _TYPES["float64" if self.key.dtype == "float64" else "float32"]
            found = self._made("Convolution")
            _call("cudnnSetConvolutionNdDescriptor", found, n, *places, _CROSS_CORRELATION, compute)
            _call("cudnnSetConvolutionGroupCount", found, c.groups)
            _call("cudnnSetConvolutionMathType", found, math)
            self._by_math[math] = found
        return found

    def _described(self, math: int) -> tuple[ctypes.c_void_p, ...]:
        a, b, out = (self.parts[part] for part in self.key.kind.parts)
        return a, b, self._convolution(math), out

    def ways(self, handle: _Handle) -> list[_Way]:
        """What can compute it, that which cuDNN expects to be fastest first."""
        key, count, found = self.key, ctypes.c_int(), (_Perf * _MOST_WAYS)()
        with handle.lock:
            _call(key.kind.choose, handle.pointer, *self._described(key.math), _MOST_WAYS, ctypes.byref(count), found)
        ways: dict[tuple[int, int], _Way] = {}
        for perf in found[: count.value]:
            # What may not round its factors stays so, whatever cuDNN would like to.
            math = _FMA_MATH if key.math == _FMA_MATH else perf.math
            if perf.status or (perf.algorithm, math) in ways or key.deterministic and not perf.determinism:
                continue
            if key.dtype == "float16" and perf.algorithm in key.kind.transforms:
                continue  # sums of a tile are rounded to float16, or beyond it
            size = ctypes.c_size_t()
            try:
                with handle.lock:
                    described = self._described(math)
                    _call(key.kind.space, handle.pointer, *described, perf.algorithm, ctypes.byref(size))
            except _Refused:
                continue
            # Sizes that no GPU has are how it says that an algorithm does not fit.
            if size.value <= (_MOST_BYTES if key.tune == "fastest" else key.workspace << 20):
                ways[perf.algorithm, math] = _Way(perf.algorithm, math, size.value)
        return list(ways.values())

    def launch(self, device: Device, handle: _Handle, way: _Way, a: Any, b: Any, out: Any) -> None:
        """Compute it."""
        key, d = self.key, driver()
        # Its memory is used again by what the stream does later.
        space = device.empty((way.size,), np.uint8, handle.index) if way.size else None
        first, second, convolution, last = self._described(way.math)
        one, zero = _SCALARS[ctypes.c_double if key.dtype == "float64" else ctypes.c_float]
        at = [ctypes.c_void_p(d.address(x)) for x in (a, b, out)]
        place = ctypes.c_void_p(None if space is None else d.address(space))
        arguments = (
            *(handle.pointer, ctypes.byref(one), first, at[0], second, at[1], convolution, way.algorithm),
            *(place, ctypes.c_size_t(way.size), ctypes.byref(zero), last, at[2]),
        )

        def run(plan: _Plan = self) -> None:  # whose descriptors live until it is done
            with handle.lock:
                _call(plan.key.kind.call, *arguments)

        d.enqueue(handle.stream, run)


def _seconds(stream: Any, run: Callable[[], None], busy: Callable[[], None]) -> float:
    """How long something takes on a stream that is `busy` meanwhile; infinitely, if it is refused or has no room."""
    d, events = driver(), []
    try:
        run()  # loads what it needs
        busy()
        for _ in range(_RUNS):
            begin = d.record(stream, timed=True)
            run()
            events.append((begin, d.record(stream, timed=True)))
        d.finish(events[-1][1])
    except (_Refused, MemoryError):
        return float("inf")
    return min(d.elapsed(*both) for both in events)


def _destroy(library: Any, owned: list[tuple[str, ctypes.c_void_p]]) -> None:
    for name, pointer in owned:
        getattr(library, name)(pointer)


def _ints(values: Sequence[int]) -> Any:
    return (ctypes.c_int * len(values))(*values)


def _padded(values: tuple[int, ...], n: int, fill: int) -> tuple[int, ...]:
    """Numbers for one axis as those for two."""
    return (fill,) * (n - len(values)) + values


def _wide(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if len(shape) > 3 else (*shape[:2], 1, *shape[2:])


def _strides(shape: tuple[int, ...], last: bool) -> tuple[int, ...]:
    """Elements from one to the next along each axis."""
    order = [0, *range(2, len(shape)), 1] if last else list(range(len(shape)))
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def _told() -> str:
    """What MXCORE_CUDNN says: 0 never, 1 where it is faster than our own kernels, 2 wherever it can."""
    return os.environ.get("MXCORE_CUDNN", "1").strip()


# -- the library -------------------------------------------------------------------------------------------------------
@cache
def _library() -> Any:
    """cuDNN; None where there is none, or MXCORE_CUDNN=0."""
    if _told() == "0":
        return None
    found = driver().cudnn()
    if found is not None:
        found.cudnnGetVersion.restype = ctypes.c_size_t
        found.cudnnGetErrorString.restype = ctypes.c_char_p
        found.cudnnGetLastErrorString.restype = None
    return found


def _call(name: str, *arguments: Any) -> None:
    library = _library()
    status = getattr(library, name)(*arguments)
    if status:
        said = ctypes.create_string_buffer(512)
        library.cudnnGetLastErrorString(said, ctypes.c_size_t(len(said)))
        what = f"{name}: {library.cudnnGetErrorString(status).decode()} ({status})"
        details = " ".join(said.value.decode(errors="replace").split())
        raise _Refused(status, "; ".join(filter(None, (what, details, _ADVICE.get(status // 1000)))))


@cache
def _handles(index: int) -> dict[bool, _Handle]:
    """By whether the thread captures; made together, for in a capture none can be made."""
    return {False: _Handle(index, "compute"), True: _Handle(index, "capture")}


def describe() -> str:
    """A line for ``mxcore info``."""
    library = _library()
    if library is None:
        reason = (
            "MXCORE_CUDNN=0"
            if _told() == "0"
            else "pip install 'mxcore-cuda[cudnn13]' (or [cudnn12]) makes them faster"
        )
        return f"convolutions by kernels of our own, without cuDNN: {reason}"
    version = int(library.cudnnGetVersion())
    said = f"cuDNN {version // 10000}.{version // 100 % 100}.{version % 100} for convolutions"
    return said if _broken is None else f"{said}, which cannot be used: {_broken}"


# -- choosing ----------------------------------------------------------------------------------------------------------
_plans: dict[tuple[int, _Key], _Plan | None] = {}
_choosing = threading.Lock()
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
        Computes the same without cuDNN; it is timed beside cuDNN's algorithms.
    tune : {'off', 'limited_workspace', 'fastest'}, optional
        How an algorithm is chosen; as MXNET_CUDNN_AUTOTUNE_DEFAULT says if it is None.
    workspace : int
        MiB that an algorithm may use, but for 'fastest'.

    Raises
    ------
    MXNetError
        (also RuntimeError) with what cuDNN says, if it fails at what it supports.
    """
    if _library() is None or _broken is not None or max(a.size, b.size, out.size) >= 2**31:
        return False
    name = str(dtype)
    key = _Key(
        kind, convolution, name, _math(name), tune or _default_tune(), workspace, _deterministic(), _told() == "2"
    )
    try:
        plan = _plans[index, key]
    except KeyError:
        with _choosing:
            plan = _planned(device, index, key, a, b, out, ours)
    if plan is None:
        return False
    assert plan.way is not None
    try:
        plan.launch(device, _handles(index)[driver().capturing()], plan.way, a, b, out)
    except _Refused as e:
        if not 2000 <= e.status < 4000:
            raise error(RuntimeError, str(e)) from None
        _plans[index, key] = None  # it does not support it, though it said so
        return False
    return True


def chosen() -> list[tuple[str, Convolution, str, int | None, int]]:
    """What is remembered: (kind, convolution, dtype, algorithm or None if it is not supported, bytes of workspace)."""
    found = []
    for (_, key), plan in list(_plans.items()):
        way = plan.way if plan is not None else None
        said = (way.algorithm, way.size) if way else (None, 0)
        found.append((key.kind.call.removeprefix("cudnnConvolution"), key.convolution, key.dtype, *said))
    return found


def _planned(device: Device, index: int, key: _Key, a: Any, b: Any, out: Any, ours: Callable[[], None]) -> _Plan | None:
    """A plan for a signature, remembered; None where there is none."""
    global _broken
    if (index, key) in _plans:  # another thread was first
        return _plans[index, key]
    plan: _Plan | None = None
    try:
        handle = _handles(index)[driver().capturing()]
        plan = _Plan(key)
        plan.way = _chosen(plan, device, handle, a, b, out, ours)
        if plan.way is None:
            plan = None
    except _Refused as e:
        plan = None
        if e.status < 2000:
            _broken = str(e)
            warnings.warn(f"convolutions go without cuDNN, which cannot be used: {e}", stacklevel=2)
    while len(_plans) >= _MOST_PLANS:
        del _plans[next(iter(_plans))]
    _plans[index, key] = plan
    return plan


def _chosen(
    plan: _Plan, device: Device, handle: _Handle, a: Any, b: Any, out: Any, ours: Callable[[], None]
) -> _Way | None:
    """The way to compute a signature: the fastest, as it was found before, or is now, or as cuDNN expects.

    None stands for our own kernels, which are timed beside them unless MXCORE_CUDNN=2.
    """
    ways, d = plan.ways(handle), driver()
    if not ways or plan.key.tune == "off" or d.capturing():
        return ways[0] if ways else None
    said = repr((plan.key, d.name(handle.index), int(_library().cudnnGetVersion())))
    entry = f"{hashlib.sha256(said.encode()).hexdigest()[:32]}.code"
    names = {b"%d %d" % way[:2]: way for way in ways} | {_OURS: None}
    kept = CHOICES.load(entry)
    if kept in names:
        return names[kept]
    runs = [partial(plan.launch, device, handle, way, a, b, out) for way in ways]
    busy = _occupied(device, handle.index)
    times = [_seconds(handle.stream, run, busy) for run in (*runs, *([] if plan.key.always else [ours]))]
    name = [*names][times.index(min(times))]
    CHOICES.save(entry, name)
    return names[name]


def _occupied(device: Device, index: int) -> Callable[[], None]:
    """What keeps a GPU at work until calls behind it are launched, so that their times are not the host's."""
    try:
        some = device.empty((_BUSY,), np.uint8, index)
    except MemoryError:
        return lambda: None

    def busy() -> None:
        for _ in range(_OFTEN):
            some[...] = 0

    return busy


def _math(dtype: str) -> int:
    """The arithmetic: of float32 exact products, unless TF32 is allowed; of float16 exact ones added up in float32."""
    if dtype == "float16":
        return _TENSOR_MATH
    allowed = os.environ.get("MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION", "0") not in ("", "0")
    return _FMA_MATH if dtype == "float32" and not allowed else _DEFAULT_MATH


def _default_tune() -> str:
    told = os.environ.get("MXNET_CUDNN_AUTOTUNE_DEFAULT", "1").strip()
    return {"0": "off", "2": "fastest"}.get(told, "limited_workspace")


def _deterministic() -> bool:
    """Whether an algorithm must give the same at every run: always, unless MXNET_ENFORCE_DETERMINISM=0."""
    return os.environ.get("MXNET_ENFORCE_DETERMINISM", "1").strip() != "0"
