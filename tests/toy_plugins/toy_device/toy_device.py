"""A plugin for mxcore: the device 'toy_device'. It computes with NumPy, on a queue for each index."""

import operator
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from mxcore.plugin import Device, hookimpl

API_VERSION = 1
TUPLES = {"nonzero", "unique", "histogram", "split", "array_split", "broadcast_arrays", "meshgrid", "unravel_index"}
TUPLES |= {"slogdet", "eigh", "svd", "qr", "divmod"}
here = threading.local()
# Infinities and NaNs are results, and no warnings.
queues = [ThreadPoolExecutor(1, f"toy_device-{i}", lambda: np.seterr(all="ignore")) for i in range(2)]


def plain(x):
    """Arrays replaced by their values; runs on the queue, so the values are there."""
    if isinstance(x, ToyDeviceArray):
        return x.value.result()
    return type(x)(map(plain, x)) if isinstance(x, (list, tuple)) else x


def launch(fn, args, kwargs, index=None):
    """Queue a function of arrays; returns an array that will hold its result (a tuple of them for a tuple)."""
    if index is None:
        index = next((a.index for a in args if isinstance(a, ToyDeviceArray)), getattr(here, "index", 0))
    value = queues[index].submit(lambda: keep(fn(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()})))
    if getattr(fn, "__name__", "") in TUPLES and isinstance(value.result(), (tuple, list)):
        return tuple(ToyDeviceArray(done(v), index) for v in value.result())
    return ToyDeviceArray(value, index)


def keep(v):
    """NumPy's scalars stay arrays."""
    return np.asarray(v) if isinstance(v, np.generic) else v


def done(v):
    """A future that already has its value."""
    f = Future()
    f.set_result(keep(v))
    return f


class ToyDeviceArray:
    """An array that is still being computed. It never turns into a NumPy array by itself: that would hide a copy."""

    def __init__(self, value, index):
        self.value, self.index = value, index

    def __getattr__(self, name):
        if name in ("shape", "dtype", "ndim", "size", "itemsize", "nbytes", "T"):
            got = getattr(self.value.result(), name)
            return ToyDeviceArray(done(got), self.index) if name == "T" else got
        if name == "item":  # who asks for a number by this name knows that it waits
            return self.value.result().item
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(name)
        return lambda *a, **kw: launch(getattr(np.ndarray, name), (self, *a), kw, self.index)

    def __setitem__(self, key, v):
        launch(lambda a, k, x: a.__setitem__(k, x), (self, key, v), {}, self.index).value.result()

    def refuse(self, *args, **kwargs):
        raise TypeError("a toy_device array does not become a host value by itself")

    __array__ = __bool__ = __float__ = __int__ = __len__ = __iter__ = refuse


for op in "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split():
    fn = getattr(operator, f"__{op}__")
    setattr(ToyDeviceArray, f"__{op}__", lambda a, b, fn=fn: launch(fn, (a, b), {}))
    setattr(ToyDeviceArray, f"__r{op}__", lambda a, b, fn=fn: launch(fn, (b, a), {}))
    setattr(ToyDeviceArray, f"__i{op}__", lambda a, b, fn=getattr(operator, f"__i{op}__"): launch(fn, (a, b), {}))
for op in "lt le eq ne gt ge getitem neg abs invert".split():
    setattr(ToyDeviceArray, f"__{op}__", lambda *a, fn=getattr(operator, f"__{op}__"): launch(fn, a, {}))


class Namespace:
    """NumPy's functions, launched on the queue."""

    def __init__(self, module):
        self.module = module

    def __getattr__(self, name):
        got = getattr(self.module, name)
        if name in ("linalg", "fft") and not callable(got):
            return Namespace(got)
        if isinstance(got, type) or not callable(got):
            return got
        fn = lambda *args, **kw: launch(got, args, kw)  # noqa: E731
        fn.at = lambda *args: launch(got.at, args, {}).value.result()
        return fn


class ToyDevice(Device):
    """Two devices whose queues run while the caller goes on."""

    type, type_id, xp, async_ = "toy_device", 1100811025, Namespace(np), True

    def count(self):
        return 2

    def activate(self, index):
        here.index = index

    def to_host(self, a):
        return queues[a.index].submit(lambda: np.array(plain(a))).result()

    def from_host(self, a, index):
        return launch(np.array, (a,), {}, index)

    def copy(self, a, dst):
        launch(np.copyto, (dst, a.copy()), {"casting": "unsafe"}, dst.index)  # the two may overlap

    def synchronize(self, index):
        queues[index].submit(int).result()

    def shares(self, a, b):
        return a is b or np.may_share_memory(plain(a), plain(b))


@hookimpl
def mxcore_devices():
    """Bring the device."""
    return [ToyDevice()]
