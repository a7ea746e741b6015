"""The device 'late': two indices, each with queues for computing and copies, that run as late as waits allow.

Every array has two buffers of one structure. `now` holds what the program means, computed at once in the order of the
program; it gives shapes, and nothing else is read of it. `late` holds poison until a queue gets to the work: a queue
runs only as far as somebody waits, the host or another queue. Who forgets to wait reads poison, or what was there
before. Arrays refuse to become NumPy's, work on an index that is not the active one is refused, and so are NumPy arrays
among arguments.
"""

from __future__ import annotations

import operator
import threading
import time
import weakref

import numpy as np

from mxcore.plugin import Device, hookimpl

API_VERSION = 1

VIEWS = frozenset(
    "__getitem__ reshape transpose ravel view swapaxes squeeze broadcast_to expand_dims moveaxis diagonal asarray "
    "real T".split()
)
#: Functions whose shapes depend on values: the host waits, as it must on any device.
READERS = frozenset("nonzero unique argwhere flatnonzero item tolist array_equal allclose".split())
here = threading.local()
#: Weak references to the pinned arrays.
PINNED = []
lock = threading.RLock()


class Queue:
    """Work in order of launch; `run` goes on to a position, or to the end."""

    def __init__(self):
        self.work, self.at, self.failed = [], 0, None

    def launch(self, fn):
        with lock:
            self.work.append(fn)

    def run(self, upto=None):
        with lock:
            upto = len(self.work) if upto is None else upto
            while self.at < upto:
                fn, self.work[self.at] = self.work[self.at], None
                self.at += 1
                try:
                    with np.errstate(all="ignore"):
                        fn()
                except Exception as e:
                    self.failed = self.failed or e
            if self.failed is not None:
                failed, self.failed = self.failed, None
                raise failed

    def event(self):
        with lock:
            return Event(self, len(self.work))


class Event:
    """A position in a queue."""

    def __init__(self, queue, at):
        self.queue, self.at = queue, at

    def reach(self):
        """Let its queue run so far."""
        if self.queue.at < self.at:
            self.queue.run(self.at)


class Mark:
    """The time when a queue gets here."""

    time = None

    def set(self):
        self.time = time.perf_counter()


class Index:
    """One device: its queues."""

    def __init__(self):
        self.compute, self.incoming, self.outgoing = Queue(), Queue(), Queue()


INDICES = [Index(), Index()]


def active():
    return getattr(here, "index", 0)


def poison(shape, dtype):
    a = np.empty(shape, dtype)
    a.view(np.uint8).fill(0xA5) if a.ndim and a.size and a.flags.c_contiguous else a.fill(
        77
    ) if a.dtype.kind != "V" else None
    return a


class LateArray:
    """An array of the device."""

    def __init__(self, now, late, index):
        self.now, self.late, self.index = now, late, index

    shape = property(lambda self: self.now.shape)
    dtype = property(lambda self: self.now.dtype)
    ndim = property(lambda self: self.now.ndim)
    size = property(lambda self: self.now.size)
    nbytes = property(lambda self: self.now.nbytes)
    itemsize = property(lambda self: self.now.itemsize)
    flags = property(lambda self: self.now.flags)
    base = property(lambda self: self.now.base)
    T = property(lambda self: LateArray(self.now.T, self.late.T, self.index))

    def __getattr__(self, name):
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(name)
        return lambda *a, **kw: call(name, getattr(np.ndarray, name), (self, *a), kw)

    def __setitem__(self, key, value):
        update(operator.setitem, (self, key, value), {})

    def refuse(self, *args, **kwargs):
        raise TypeError("an array of device 'late' does not become a host value by itself")

    __array__ = __bool__ = __float__ = __int__ = __len__ = __iter__ = __index__ = refuse


def pick(x, which):
    """An argument with arrays replaced by one of their buffers."""
    if isinstance(x, LateArray):
        return getattr(x, which)
    if isinstance(x, np.ndarray) and x.ndim:
        raise TypeError("a NumPy array among the arguments of a function of device 'late'")
    if isinstance(x, slice):
        return slice(*[pick(v, which) for v in (x.start, x.stop, x.step)])
    if isinstance(x, dict):
        return {k: pick(v, which) for k, v in x.items()}
    return type(x)(pick(v, which) for v in x) if type(x) in (list, tuple) else x


def indices_of(x):
    if isinstance(x, LateArray):
        yield x.index
    elif isinstance(x, (list, tuple)):
        for v in x:
            yield from indices_of(v)


def check(args, kwargs):
    """Refuse a launch on another index than that of its arrays."""
    for index in (*indices_of(args), *indices_of([*kwargs.values()])):
        if index != active():
            raise RuntimeError(f"work launched on late({active()}) touches an array of late({index})")


def update(fn, args, kwargs):
    """Launch what writes into one of its arguments."""
    check(args, kwargs)
    with lock, np.errstate(all="ignore"):
        late, kw = pick(args, "late"), pick(kwargs, "late")
        fn(*pick(args, "now"), **pick(kwargs, "now"))
        INDICES[active()].compute.launch(lambda: fn(*late, **kw))


def call(name, fn, args, kwargs):
    """Launch a function; returns arrays that will hold its results."""
    # An upload, as anybody who says so means it.
    if name in ("array", "asarray") and args and isinstance(args[0], np.ndarray):
        return upload(fn(*args, **kwargs), active())
    if kwargs.get("out") is not None:
        out = kwargs["out"]
        update(fn, args, kwargs)
        return out[0] if isinstance(out, tuple) else out
    if name in READERS:
        check(args, kwargs)
        INDICES[active()].compute.run()
        return wrapped(fn(*pick(args, "late"), **pick(kwargs, "late")))
    with lock, np.errstate(all="ignore"):
        late, kw = pick(args, "late"), pick(kwargs, "late")
        now = fn(*pick(args, "now"), **pick(kwargs, "now"))
        if (
            name in VIEWS
            and isinstance(now, np.ndarray)
            and any(np.may_share_memory(now, a) for a in arrays_of(pick(args, "now")))
        ):
            return LateArray(now, fn(*late, **kw), args[0].index)
        check(args, kwargs)
        if not isinstance(now, (np.ndarray, np.generic, list, tuple)):
            return now
        results = [np.asarray(v) for v in (now if isinstance(now, (list, tuple)) else [now])]
        results = [
            v.copy() if any(np.may_share_memory(v, a) for a in arrays_of(pick(args, "now"))) else v for v in results
        ]
        places = [poison(v.shape, v.dtype) for v in results]

        def work():
            got = fn(*late, **kw)
            for place, v in zip(places, got if isinstance(got, (list, tuple)) else [got]):
                place[...] = v

        INDICES[active()].compute.launch(work)
        made = [LateArray(v, place, active()) for v, place in zip(results, places)]
        return tuple(made) if isinstance(now, (list, tuple)) else made[0]


def arrays_of(x):
    if isinstance(x, np.ndarray):
        yield x
    elif isinstance(x, (list, tuple)):
        for v in x:
            yield from arrays_of(v)


def wrapped(v):
    if isinstance(v, tuple):
        return tuple(map(wrapped, v))
    return LateArray(v, v.copy(), active()) if isinstance(v, np.ndarray) else v


def _operator(name, fn, swapped=False):
    def method(self, *args):
        return call(name, fn, (*args, self) if swapped else (self, *args), {})

    return method


for _name in "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split():
    _fn = getattr(operator, f"__{_name}__")
    setattr(LateArray, f"__{_name}__", _operator(_name, _fn))
    setattr(LateArray, f"__r{_name}__", _operator(_name, _fn, True))

    def _inplace(self, other, fn=getattr(operator, f"__i{_name}__")):
        update(fn, (self, other), {})
        return self

    setattr(LateArray, f"__i{_name}__", _inplace)
for _name in "lt le eq ne gt ge neg abs invert".split():
    setattr(LateArray, f"__{_name}__", _operator(_name, getattr(operator, f"__{_name}__")))
LateArray.__getitem__ = _operator("__getitem__", operator.getitem)


class Namespace:
    """NumPy's functions, launched."""

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        got = getattr(self._module, name)
        if name in ("linalg", "fft") and not callable(got):
            return Namespace(got)
        if isinstance(got, type) or not callable(got):
            return got

        def fn(*args, **kwargs):
            if name in ("copyto", "put", "put_along_axis", "place", "fill_diagonal"):
                return update(got, args, kwargs)
            return call(name, got, args, kwargs)

        if hasattr(got, "at"):
            fn.at = lambda *args: update(got.at, args, {})
            fn.nin, fn.nout = got.nin, got.nout
        self.__dict__[name] = fn
        return fn


def empty(shape, dtype, index):
    return LateArray(np.empty(shape, dtype), poison(shape, dtype), index)


def upload(a, index):
    """A host array, copied by the queue."""
    a = np.array(a, order="C")
    dst = empty(a.shape, a.dtype, index)
    dst.now[...] = a
    INDICES[index].compute.launch(lambda: np.copyto(dst.late, a))
    return dst


class Late(Device):
    """Two devices whose queues run as late as they may."""

    type, type_id, async_, transfers, pins, array_type = "late", 1100811026, True, True, True, LateArray
    xp = Namespace(np)

    def count(self):
        return 2

    def activate(self, index):
        here.index = index

    def empty(self, shape, dtype, index):
        return empty(shape, dtype, index)

    def empty_pinned(self, shape, dtype):
        a = np.empty(shape, dtype)
        PINNED.append(weakref.ref(a))
        return a

    def from_host(self, a, index):
        return upload(a, index)

    def to_host(self, a):
        INDICES[a.index].compute.run()
        return np.array(a.late, order="C")

    def copy(self, a, dst):
        if dst.index != active():
            raise RuntimeError(f"copy to late({dst.index}) while late({active()}) is active")
        with lock, np.errstate(all="ignore"):
            # Of vectors of different strides in one memory NumPy's copy reads what it has just written.
            np.copyto(dst.now, a.now.copy(), casting="unsafe")
            INDICES[dst.index].compute.launch(lambda: np.copyto(dst.late, a.late.copy(), casting="unsafe"))

    def send(self, a, dst):
        queue, compute = INDICES[dst.index].incoming, INDICES[dst.index].compute
        before = compute.event()
        queue.launch(before.reach)
        dst.now[...] = a
        queue.launch(lambda: np.copyto(dst.late, a))
        return queue.event()

    def fetch(self, a, dst):
        queue, compute = INDICES[a.index].outgoing, INDICES[a.index].compute
        before = compute.event()
        queue.launch(before.reach)
        queue.launch(lambda: np.copyto(dst, a.late))
        return queue.event()

    def record(self, index):
        return INDICES[index].compute.event()

    def wait(self, index, event):
        INDICES[index].compute.launch(event.reach)

    def finish(self, event):
        event.reach()

    def synchronize(self, index):
        for queue in (INDICES[index].incoming, INDICES[index].compute, INDICES[index].outgoing):
            queue.run()

    def mark(self, index):
        found = Mark()
        INDICES[index].compute.launch(found.set)
        return found

    def elapsed(self, begin, end):
        return end.time - begin.time

    def shares(self, a, b):
        return a is b or np.may_share_memory(a.now, b.now)

    def owns(self, a):
        return a.now.base is None and a.now.flags.c_contiguous

    def writable(self, a):
        return a.now.flags.writeable


@hookimpl
def mxcore_devices():
    """Bring the device: this module is a plugin."""
    return [Late()]
