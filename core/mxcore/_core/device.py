"""The device contract; `mxcore.array_api.contract` lists the array functions that reference bodies may use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial, wraps
from types import FunctionType
from typing import Any

import numpy as np

from .checks import CHECKS
from .errors import MXNetError, error, explained, in_a_line

__all__ = ["Device"]

#: Methods whose failures users meet.
_METHODS = frozenset(
    "count to_host from_host copy copy_each add_each empty full activate synchronize memory empty_cache rng shares "
    "writable owns record wait finish wait_for send fetch compile_source mark elapsed".split()
)


def _naming(name: str, method: Any) -> Any:
    """A method of a device, whose exceptions become errors that name both, or the getter of an attribute."""
    check = CHECKS.get(f"{name} of a device")  # of what it returns, where that would show elsewhere only

    @wraps(method)
    def call(self: Any, *args: Any, **kw: Any) -> Any:
        try:
            found = method(self, *args, **kw)
            return found if check is None else check(self, args, found)
        except MXNetError:
            raise
        except Exception as e:
            if isinstance(told := explained(e), MXNetError):
                raise told from e
            raise error(
                MemoryError if isinstance(e, MemoryError) else RuntimeError,
                f"device {self.type!r} of {type(self).__module__}: {name}{'()' * (name in _METHODS)} raised "
                f"{in_a_line(e)}",
            ) from e

    return call


class Device:
    """A kind of device. Plugins subclass it and return instances from ``mxcore_devices``; making one opens nothing.

    What a method of a subclass raises reaches users as an `MXNetError` that names device and method.

    Attributes
    ----------
    type : str
        Name used in contexts, e.g. ``'cpu'``.
    type_id : int
        Number in MXNet's files. Third parties choose one above 100 (and below 2**31) that no other device has; `mxcore
        plugins new` derives one from the name. Two devices with one number are an error that names both, so that one of
        them takes another.
    xp : module
        The array namespace, with what docs/arrays.md lists of NumPy's; may be a lazy property.
        :class:`mxcore.plugin.ArrayAPINamespace` makes one of any library of the Python array API standard.
    host : bool
        Its arrays are NumPy's, whose own exceptions users get.
    computes_as : str
        The type of device on which operators on its arrays compute, and have their results, if any index of it reads
        and writes arrays of all types that say the same: arrays of several of their contexts meet in operators. Empty
        (the default): operators compute where their arrays are, which must be one context.
    dtypes : collection of numpy.dtype or None
        The dtypes that it has, if not all (None); may be a lazy property. Operators on others are errors, the
        conformance kit leaves them out, and random numbers without uint64 are made of the host's words.
    async_ : bool
        The device has its own queue: operators are launched by the calling thread and run in order of launch. A device
        with several indices has a queue for each; `record` and `wait` order them.
    pins : bool
        `empty_pinned` gives memory of the host that this device copies from and to fastest: contexts `cpu_pinned` lie
        in it.
    transfers : bool
        `send` and `fetch` copy beside what the queue computes, and return events.
    captures : bool
        `capture` records launches, to be launched again at once; may be a lazy property.
    add_each, copy_each : callable or None
        What a device may have that adds up, or copies, many arrays by few launches; None where it has not.
        ``add_each(groups, outs)`` writes the sum of each group of arrays to its array of `outs`. All live on the active
        device; those of a group and its sum have one shape and dtype. They are added up from the first to the last,
        each sum rounded to the dtype. ``copy_each(arrays, outs)`` does for each array what `copy` does; `arrays` are of
        one index, and so are `outs`. Nothing that is written lies in memory that is read.
    fused_from : int
        Elements from which operators are fused: from where what a chain saves at each call pays for compiling it; any
        number unless the device says more.
    array_type : type or None
        The class of its arrays, if their `base` is None exactly where nobody else has their memory, as NumPy's is (the
        default): results of this class need no further look. None if there is no such class; it may be a lazy property.

    Notes
    -----
    A device of the host may have `threads`, with ``count()`` and ``patient()``, and `blas_core`, for kernels of other
    plugins that bring threads or leave products to its BLAS (docs/plugins.md); they do without.
    """

    type: str = ""
    type_id: int = 0
    host: bool = False
    computes_as: str = ""
    async_: bool = False
    pins: bool = False
    transfers: bool = False
    captures: Any = False
    add_each: Any = None
    copy_each: Any = None
    #: No plain attribute, for `help` would show all that the class has.
    array_type: Any = cached_property(lambda self: np.ndarray)
    fused_from: int = 0
    xp: Any = None
    dtypes: Any = None
    #: Makes the random numbers of a key, ``(device, key, index)``; :mod:`mxcore.philox` enters it.
    numbers: Any = None

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        if cls.host:
            return
        for name in (_METHODS | {"xp", "dtypes"}) & vars(cls).keys():
            found = vars(cls)[name]
            if isinstance(found, FunctionType):
                setattr(cls, name, _naming(name, found))
            elif isinstance(found, cached_property):
                found.func = _naming(name, found.func)
            elif isinstance(found, property):
                setattr(cls, name, property(_naming(name, found.fget)))

    def count(self) -> int:
        """How many devices of this type there are; 0 if none can be used (never raises)."""
        raise error(NotImplementedError, f"device {self.type!r} must define count()")

    def absence(self) -> str:
        """Why there is none, in a few words, where `count` is 0."""
        return "its count() is 0"

    def to_host(self, a: Any) -> np.ndarray[Any, Any]:
        """Copy to a new NumPy array, after all queued work on it."""
        raise error(NotImplementedError, f"device {self.type!r} must define to_host()")

    def from_host(self, a: np.ndarray[Any, Any], index: int) -> Any:
        """Copy a NumPy array to a new array on device `index`."""
        raise error(NotImplementedError, f"device {self.type!r} must define from_host()")

    def copy(self, a: Any, dst: Any) -> None:
        """Write `a` (same type of device, any index) into the array `dst`, casting if dtypes differ.

        On the queue of the active device, which is that of `dst`; the queue of `a` is ordered around it by who calls.
        The two may be views of one memory that overlap: `dst` gets what `a` was before.
        """
        dst[...] = a.copy() if a is not dst and self.shares(a, dst) else a

    @partial(_naming, "empty")
    def empty(self, shape: tuple[int, ...], dtype: Any, index: int) -> Any:
        """A new uninitialised array on device `index`."""
        if self.async_:
            self.activate(index)
        return self.xp.empty(shape, dtype)

    @partial(_naming, "full")
    def full(self, shape: tuple[int, ...], value: float, dtype: Any, index: int) -> Any:
        """A new array on device `index`, filled with a number."""
        if self.async_:
            self.activate(index)
        return self.xp.full(shape, value, dtype)

    def activate(self, index: int) -> None:
        """Make `index` the device that the calling thread allocates and computes on.

        Called before launches on a device with a queue of its own, else by the engine's workers only.
        """

    def synchronize(self, index: int) -> None:
        """Wait until all work queued on device `index` is done; raise what failed in it.

        By default for an event, where the device has events of its own.
        """
        if type(self).record is not Device.record:
            self.finish(self.record(index))

    def empty_pinned(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        """A new uninitialised NumPy array in memory that the system does not move, for a device that `pins`."""
        raise error(NotImplementedError, f"device {self.type!r} says that it pins, so it must define empty_pinned()")

    # -- queues ------------------------------------------------------------------------------------------------
    def record(self, index: int) -> Any:
        """An event: reached when all that was launched on device `index` before is done.

        Without events (None) the device is waited for here, in the caller's time.
        """
        if type(self).synchronize is not Device.synchronize:
            self.synchronize(index)

    def wait(self, index: int, event: Any) -> None:
        """Let what is launched on device `index` from now on wait for an event of this type; the caller goes on."""
        if event is not None:
            self.finish(event)

    def finish(self, event: Any) -> None:
        """Block until an event is reached; raise what failed before it."""

    def wait_for(self, a: Any, index: int) -> None:
        """Block until an array of device `index` holds its value; raise what failed in computing it."""
        self.finish(self.record(index))

    def mark(self, index: int) -> Any:
        """A mark in the queue of device `index` whose time can be asked for later; None if it has no clock."""
        return None

    def elapsed(self, begin: Any, end: Any) -> float:
        """Seconds from one mark to another of the same device, both reached."""
        raise error(NotImplementedError, f"device {self.type!r} gives marks, so it must define elapsed()")

    def send(self, a: np.ndarray[Any, Any], dst: Any) -> Any:
        """Begin to copy a NumPy array to one of this device, of its shape and dtype; returns the event of its end.

        `dst` is new, from `empty`. Whether what was launched before still uses its memory, only the device knows, and
        waits for it if so. Nobody writes to `a` before the event.
        """
        raise error(NotImplementedError, f"device {self.type!r} says transfers, so it must define send()")

    def fetch(self, a: Any, dst: np.ndarray[Any, Any]) -> Any:
        """Begin to copy an array of this device to one of NumPy, of its shape and dtype; returns the event of its end.

        It begins when what was launched on the queue of `a` before is done; nobody writes to `a` before the event.
        """
        raise error(NotImplementedError, f"device {self.type!r} says transfers, so it must define fetch()")

    def memory(self, index: int) -> tuple[int, int]:
        """(free, total) bytes of device `index`."""
        return (0, 0)

    def empty_cache(self, index: int) -> None:
        """Give memory held in reserve back to the system."""

    def rng(self, key: tuple[int, int, int], index: int) -> Any:
        """The random numbers of a key; equal on every device."""
        return self.numbers(self, key, index)

    def capture(self, index: int, calls: Sequence[Callable[[], Any]]) -> tuple[Any, int]:
        """Record what calls launch on device `index`, which is active, without doing it.

        Returns ``(captured, n)``: of the first `n` calls, all unless ``calls[n]`` does what cannot be recorded.
        ``captured.launches`` is their number of launches; ``captured.replay(takes, gives)`` gives a function
        ``f(sources, targets, keys)`` that in one launch copies `sources` into the arrays `takes`, does what was
        recorded, on the memory it was recorded with, and copies the arrays `gives` to `targets`; all of them dense and
        alike.

        Calls may draw random numbers of a :class:`mxcore.plugin.LaterKey`: :meth:`rng` gives those of ``keys[number]``
        of the replay that draws them, however soon another follows it; or it fails, and the call cannot be recorded.
        """
        raise error(NotImplementedError, f"device {self.type!r} says captures, so it must define capture()")

    def compile_fused(self, chain: Any) -> Any:
        """Compile an elementwise chain (:class:`mxcore.plugin.Fused`); None if its parts are to run one by one.

        The result is called as ``f(outs, *inputs, *scalars)``, or bound to arrays beforehand: ``f.bind(outs, inputs,
        scalars)`` gives a function without arguments.
        """
        return None

    def compile_source(self, source: str, options: Sequence[str], exports: Sequence[str], index: int) -> Any:
        """Compile a text in the device's own language, for device `index` (``mx.rtc``).

        Parameters
        ----------
        source : str
        options : sequence of str
            For the compiler.
        exports : sequence of str
            Names of kernels beside those that have C linkage.
        index : int

        Returns
        -------
        callable
            ``find(name, arguments)``, where `arguments` is a dtype and whether it is an array of each, gives ``launch(
            grid, block, shared, values)``: two times three numbers, bytes of shared memory, and dense arrays of device
            `index` and NumPy's numbers.
        """
        raise error(NotImplementedError, f"device {self.type!r} compiles no sources")

    def shares(self, a: Any, b: Any) -> bool:
        """Whether two arrays of this device may have memory in common.

        It is asked wherever one of them is written to, or handed out. Override it where arrays are neither NumPy's nor
        have a `base`, or where two of them can meet in memory that neither made.
        """
        if a is b:
            return True
        base_a, base_b = getattr(a, "base", None), getattr(b, "base", None)
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            return (base_a is not None or base_b is not None) and np.may_share_memory(a, b)
        return base_a is b or (base_b is not None and (base_b is a or base_b is base_a))

    def writable(self, a: Any) -> bool:
        """Whether an array of this device may be written to."""
        return bool(getattr(getattr(a, "flags", None), "writeable", True))

    def owns(self, a: Any) -> bool:
        """Whether an array's memory, in C order, is its own and its views', and another NDArray may take it over."""
        return getattr(a, "base", a) is None and bool(getattr(getattr(a, "flags", None), "c_contiguous", False))

    def __repr__(self) -> str:
        return f"<Device {self.type}>"
