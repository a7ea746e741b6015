"""Arrays of emulated devices: CuPy's class over NumPy's memory, and how functions of them are launched.

A function is launched: it runs when its stream gets there. What its result looks like is known before, from the same
function over stand-ins of the same shapes and dtypes; functions whose shapes depend on values wait, as CuPy's do.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from mxcore.array_api.contract import METHODS

from . import exchange
from .devices import active, new_block, queues
from .memory import Block
from .semantics import OVERRIDES, check_method

__all__ = ["EmulatedArray", "empty", "from_dlpack", "launch", "needs", "note", "update", "upload"]

#: Functions and methods that give views where the memory allows it; they read nothing, so nothing is launched.
VIEWS = frozenset(
    "__getitem__ reshape transpose ravel view swapaxes squeeze broadcast_to broadcast_arrays expand_dims moveaxis "
    "diagonal asarray ascontiguousarray atleast_1d split array_split flip real imag".split()
)
#: Those whose results depend on values in their shapes: they wait for the stream.
READERS = frozenset(
    "nonzero unique argwhere flatnonzero item tolist array_equal allclose bincount histogram repeat __bool__ __float__ "
    "__int__ __index__ __complex__".split()
)

#: Functions -> NVIDIA's library that CuPy calls for them.
LIBRARIES = {
    **dict.fromkeys("dot matmul __matmul__ inner vdot tensordot einsum".split(), "cuBLAS"),
    **{f"linalg.{name}": "cuSOLVER" for name in "cholesky det eigh eigvalsh inv qr slogdet solve svd".split()},
    **{f"fft.{name}": "cuFFT" for name in ("fft", "ifft")},
}
#: Whose calls CuPy lets be captured.
_CAPTURED = ("cuFFT",)
#: What the functions that are called need, for who asks.
_needed: list[set[str]] = []


@contextmanager
def needs() -> Iterator[set[str]]:
    """What is needed of what is called inside: libraries by their names, and "waits" for the GPU."""
    found: set[str] = set()
    _needed.append(found)
    try:
        yield found
    finally:
        _needed.remove(found)


def note(what: str) -> None:
    """Tell who asks that something is needed."""
    for found in _needed:
        found.add(what)


class EmulatedArray:
    """An array of an emulated device.

    Attributes
    ----------
    values : numpy.ndarray
        Its memory, as it is once the stream got there.
    index : int
        Of its device.
    block : Block
    base : EmulatedArray or None
        Of a view, the array that it looks into.
    """

    __slots__ = ("values", "index", "block", "base", "ptr", "shape", "dtype", "size", "flags", "__weakref__")
    __array_ufunc__ = None
    __array_priority__ = 100
    __hash__ = object.__hash__

    def __init__(
        self, values: np.ndarray[Any, Any], block: Block, base: EmulatedArray | None = None, ptr: int | None = None
    ) -> None:
        self.values, self.index, self.block, self.base = values, block.index, block, base
        self.shape, self.dtype, self.size, self.flags = values.shape, values.dtype, values.size, values.flags
        if ptr is None:  # who allocates knows it: asking NumPy takes longer than all the rest
            ptr = values.__array_interface__["data"][0]
        self.ptr: int = ptr if self.size else 0

    ndim = property(lambda self: self.values.ndim)
    nbytes = property(lambda self: self.values.nbytes)
    itemsize = property(lambda self: self.values.itemsize)
    strides = property(lambda self: self.values.strides)
    T = property(lambda self: view_of(self, self.values.T))
    real = property(lambda self: launch("real", np.real, (self,), {}))
    imag = property(lambda self: launch("imag", np.imag, (self,), {}))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in METHODS and name != "get":
            raise AttributeError(f"'cupy.ndarray' object has no attribute {name!r}")
        fn = OVERRIDES.get(f"ndarray.{name}") or OVERRIDES.get(name) or getattr(np.ndarray, name)

        def method(*args: Any, **kwargs: Any) -> Any:
            check_method(name, args, kwargs)
            if name == "fill":
                return update(fn, (self, *args), kwargs)
            return launch(name, fn, (self, *args), kwargs)

        return method

    def __getitem__(self, key: Any) -> Any:
        return launch("__getitem__", OVERRIDES["__getitem__"], (self, key), {})

    def __setitem__(self, key: Any, value: Any) -> None:
        update(OVERRIDES["__setitem__"], (self, key, value), {})

    def __len__(self) -> int:
        return len(self.values)

    def get(self) -> np.ndarray[Any, Any]:
        """A copy in the host's memory."""
        note("waits")
        queues(self.index).compute.run()
        return np.array(self.values, order="C")

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array "
            "explicitly."
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return exchange.KIND, self.index

    def __dlpack__(
        self, *, stream: int | None = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        queues(active()).order(stream)
        return exchange.capsule(self, self.values, self.index, max_version)

    def __repr__(self) -> str:
        return f"<emulated array {self.dtype} {self.shape} of gpu({self.index})>"


def _operator(name: str, swapped: bool = False) -> Callable[..., Any]:
    fn = OVERRIDES.get(name) or getattr(operator, name)

    def method(self: EmulatedArray, *others: Any) -> Any:
        if any(isinstance(o, np.ndarray) and o.ndim for o in others):
            raise TypeError(f"Unsupported type {type(others[0])}")
        return launch(name, fn, (*others, self) if swapped else (self, *others), {})

    return method


def _inplace(name: str) -> Callable[..., Any]:
    fn = getattr(operator, name)

    def method(self: EmulatedArray, other: Any) -> EmulatedArray:
        update(fn, (self, other), {})
        return self

    return method


for _name in "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split():
    setattr(EmulatedArray, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(EmulatedArray, f"__r{_name}__", _operator(f"__{_name}__", True))
    setattr(EmulatedArray, f"__i{_name}__", _inplace(f"__i{_name}__"))
for _name in "lt le eq ne gt ge neg pos abs invert".split():
    setattr(EmulatedArray, f"__{_name}__", _operator(f"__{_name}__"))


def _asked(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: launch(name, fn, (self,), {})


_ASKED: dict[str, Callable[..., Any]] = {
    "__bool__": bool,
    "__float__": float,
    "__int__": int,
    "__index__": operator.index,
}
for _name, _fn in _ASKED.items():
    setattr(EmulatedArray, _name, _asked(_name, _fn))


# -- making ----------------------------------------------------------------------------------------------------------
def empty(shape: tuple[int, ...], dtype: Any, index: int) -> EmulatedArray:
    """A new array, poisoned."""
    block = new_block(shape, dtype, index)
    return EmulatedArray(block.array(shape, dtype), block, ptr=block.start)


def upload(a: np.ndarray[Any, Any], index: int) -> EmulatedArray:
    """A copy of a host array, which its stream makes."""
    queues(index).compute.refuse_capture("a copy from the host")
    a = np.array(a, order="C")
    dst = empty(a.shape, a.dtype, index)
    queues(index).compute.launch(lambda: np.copyto(dst.values, a))
    return dst


def from_dlpack(source: Any) -> EmulatedArray:
    """An array over memory of an emulated device that somebody offers."""
    capsule = source.__dlpack__(stream=id(queues(active()).compute), max_version=(1, 0))
    return EmulatedArray(*exchange.taken(capsule))


def view_of(a: EmulatedArray, values: np.ndarray[Any, Any]) -> EmulatedArray:
    """An array that looks into the memory of another."""
    return EmulatedArray(values, a.block, a if a.base is None else a.base)


# -- launching -------------------------------------------------------------------------------------------------------
#: What a call gives, by function, shapes and dtypes: (shape, dtype) of each array, and whether they come as several.
_known: dict[Any, tuple[tuple[tuple[tuple[int, ...], Any], ...], bool]] = {}
_MOST = 1 << 14


def _replaced(x: Any, by: Callable[[EmulatedArray], Any]) -> Any:
    cls = x.__class__
    if cls is EmulatedArray:
        return by(x)
    if cls is tuple or cls is list:
        return cls([_replaced(v, by) for v in x])
    if cls is dict:
        return {k: _replaced(v, by) for k, v in x.items()}
    if cls is np.ndarray and x.ndim:
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    return x


def _stand_in(a: EmulatedArray) -> np.ndarray[Any, Any]:
    # Zeros are indices of everything; a square matrix of ones would have no inverse.
    if a.dtype.kind in "fc" and a.ndim >= 2 and a.shape[-1] == a.shape[-2]:
        return np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    return np.broadcast_to(np.zeros((), a.dtype) if a.dtype.kind in "iub" else np.ones((), a.dtype), a.shape)


def _read(x: Any, arrays: list[EmulatedArray], key: list[Any]) -> Any:
    """An argument with arrays replaced by their memory; notes the arrays, and what the result's look depends on."""
    cls = x.__class__
    if cls is EmulatedArray:
        arrays.append(x)
        key += (x.shape, x.dtype)
        return x.values
    if cls is tuple or cls is list:
        key.append(cls)
        return cls([_read(v, arrays, key) for v in x])
    if cls is np.ndarray and x.ndim:
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    key.append((cls, repr(x) if cls in (slice, np.dtype) or cls is float else x))
    return x


def _prepared(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any], list[EmulatedArray], tuple[Any, ...]]:
    """Memory of the arguments, their arrays, and a key of all but their values."""
    arrays: list[EmulatedArray] = []
    key: list[Any] = [name]
    values = [_read(v, arrays, key) for v in args]
    keywords = {k: _read(v, arrays, key) for k, v in kwargs.items()} if kwargs else kwargs
    key += kwargs
    return values, keywords, arrays, tuple(key)


def _check_places(arrays: list[EmulatedArray]) -> None:
    """Refuse to launch on another device than that of the arrays; looking into them is allowed anywhere."""
    here = active()
    for a in arrays:
        if a.index != here:
            raise ValueError(
                f"Array device must be same as the current device: array device = {a.index} while current = {here}"
            )


def _look(key: Any, fn: Callable[..., Any], args: Any, kwargs: Any, written: bool = False) -> Any:
    """What the result of a call looks like, by calling it with stand-ins; None if it is no array."""
    try:
        found = _known.get(key)
    except TypeError:  # something among the arguments cannot be hashed
        found, key = None, None
    if found is not None:
        return found
    by = (lambda a: np.array(_stand_in(a))) if written else _stand_in
    with np.errstate(all="ignore"):
        shown = fn(*_replaced(args, by), **_replaced(kwargs, by))
    several = isinstance(shown, (list, tuple))
    if written:
        look: Any = ((), False)
    elif several or isinstance(shown, (np.ndarray, np.generic)):
        look = tuple((np.shape(v), v.dtype) for v in (shown if several else [shown])), several
    else:
        return None
    if key is not None:
        if len(_known) > _MOST:
            _known.clear()
        _known[key] = look
    return look


def update(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Launch what writes into one of its arguments; what CuPy refuses at the call is refused there."""
    values, keywords, arrays, key = _prepared("update", args, kwargs)
    _check_places(arrays)
    _look((fn, *key), fn, args, kwargs, True)

    def work() -> None:
        fn(*values, **keywords)

    queues(active()).compute.launch(work)


def launch(name: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Launch a function; returns arrays that will hold its results."""
    library = LIBRARIES.get(name)
    if library is not None:
        note(library)
        if library not in _CAPTURED:
            queues(active()).compute.refuse_capture(f"{name} calls {library}")
    out = kwargs.get("out")
    if out is not None:
        update(fn, args, kwargs)
        return out[0] if isinstance(out, tuple) else out
    values, keywords, arrays, key = _prepared(name, args, kwargs)
    if name in READERS or name == "__getitem__" and any(a.dtype.kind == "b" for a in arrays[1:]):
        _check_places(arrays)
        note("waits")
        queues(active()).compute.run()
        with np.errstate(all="ignore"):
            return _stored(fn(*values, **keywords))
    if name in VIEWS and arrays:
        found = _viewed(fn(*values, **keywords), arrays)
        if found is not None:
            return found
    _check_places(arrays)
    look = _look(key, fn, args, kwargs)
    if look is None:
        return fn(*values, **keywords)
    specs, several = look
    made = [empty(shape, dtype, active()) for shape, dtype in specs]
    places = [a.values for a in made]

    def work() -> None:
        got = fn(*values, **keywords)
        for place, v in zip(places, got if several else [got]):
            place[...] = v

    queues(active()).compute.launch(work)
    return tuple(made) if several else made[0]


def _viewed(found: Any, arrays: list[EmulatedArray]) -> Any:
    """A result that lies in the memory of an argument, as a view of it; None if it does not."""
    if isinstance(found, (list, tuple)):
        if all(np.may_share_memory(v, arrays[0].values) for v in found):
            return type(found)(view_of(arrays[min(i, len(arrays) - 1)], v) for i, v in enumerate(found))
    elif isinstance(found, np.ndarray):
        for a in arrays:
            if found is a.values:
                return a
            if found.size == 0 or np.may_share_memory(found, a.values):
                return view_of(a, found)
    return None


def _stored(v: Any) -> Any:
    if isinstance(v, (list, tuple)):
        return tuple(map(_stored, v))
    return upload(np.asarray(v), active()) if isinstance(v, (np.ndarray, np.generic)) else v
