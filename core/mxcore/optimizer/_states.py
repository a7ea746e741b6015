"""Optimizer states as MXNet pickles them, and a reader of such pickles that runs nothing in them.

MXNet's file is a pickle of ``{index: state}`` or ``({index: state}, optimizer)``; an array in it is an
object of class ``mxnet.ndarray.ndarray.NDArray`` whose state is ``{"handle": bytes}``, the bytes of one
array of a ``.params`` file. Reading and writing go through NumPy, so that states travel between MXNet,
mxcore and devices.
"""

from __future__ import annotations

import importlib
import io
import pickle
import sys
from typing import Any

import numpy as np

from .. import ndarray as nd
from .._core.errors import said
from ..base import MXNetError, error
from ..lr_scheduler import LRScheduler
from ..ndarray import NDArray
from ..ndarray.files import from_record, to_record
from ..ndarray.serialization import dump_record, load_record
from ._pickle import INSTRUCTIONS, Named, Pending, read
from ._whole import check
from .base import Optimizer

#: Storage type, or "np" for arrays of ``mx.np`` -> where MXNet has the class of such arrays.
ARRAYS = {
    "np": ("mxnet.numpy", "ndarray"),
    "default": ("mxnet.ndarray.ndarray", "NDArray"),
    "row_sparse": ("mxnet.ndarray.sparse", "RowSparseNDArray"),
    "csr": ("mxnet.ndarray.sparse", "CSRNDArray"),
}

#: MXNet's modules of other classes -> ours. Our classes lie in modules below these.
MODULES = {
    "mxnet.optimizer.optimizer": "mxcore.optimizer",
    "mxnet.optimizer.contrib": "mxcore.optimizer.contrib",
    "mxnet.lr_scheduler": "mxcore.lr_scheduler",
}

#: Where MXNet had these before 1.4.
OLD_MODULES = {"mxnet.ndarray": "mxnet.ndarray.ndarray", "mxnet.optimizer": "mxnet.optimizer.optimizer"}

#: Modules of optimizers and schedulers, ours; they are imported if a file names them.
_OURS = ("mxcore.optimizer", "mxcore.lr_scheduler")
_THEIRS = {ours: theirs for theirs, ours in MODULES.items()}
#: How deep a state may be, and how many values all of them may hold.
DEEPEST, MOST_VALUES = 64, 1 << 20

#: In Python: the one in C refuses names that it cannot import.
_Base: Any = pickle._Pickler


class _Array:
    """Stands for the class of an array while it is written; the classes below are one for each kind."""


_STAND_INS = {kind: type(name, (_Array,), {}) for kind, (_, name) in ARRAYS.items()}
_GLOBALS = {_STAND_INS[kind]: place for kind, place in ARRAYS.items()}


def _stand_in(array: NDArray) -> type[_Array]:
    return _STAND_INS[array.stype if array.rules is None else "np"]


def dumps(states: Any) -> bytes:
    """Return states (with or without an optimizer) as bytes that MXNet reads, too."""
    return _written(_Pickler, states)


def check_readable(states: Any, home: str) -> None:
    """Refuse states that `loads`, with the same `home`, could not read again."""
    try:
        _read(_written(_Outline, states), home)
    except Exception as e:  # pickling raises anything
        raise error(
            TypeError,
            "optimizer states cannot be saved, since they could not be read again: "
            f"{said(e)}; keep numbers, arrays and objects of the optimizer's own module in states "
            "and attributes, or let __getstate__ leave them out",
        ) from None


def _written(pickler: Any, states: Any) -> bytes:
    out = io.BytesIO()
    pickler(out, 4).dump(states)
    return out.getvalue()


def loads(data: Any, home: str) -> tuple[dict[Any, Any], Optimizer | None]:
    """Read (states, optimizer or None); classes of `home`, the module of the present optimizer, may occur."""
    try:
        data = data if isinstance(data, bytes) else bytes(memoryview(data))
    except TypeError:
        raise error(TypeError, f"optimizer states are bytes, not a {type(data).__name__}") from None
    try:
        return _read(data, home)
    except MXNetError as e:
        raise error(type(e), f"these {len(data)} bytes are no optimizer states: {e}") from None


def _read(data: bytes, home: str) -> tuple[dict[Any, Any], Optimizer | None]:
    found = read(data, lambda module, name: _found(module, name, home), _build)
    states, optimizer = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
    if not isinstance(states, dict):
        raise error(TypeError, f"they must be a dictionary, not a {type(states).__name__}")
    if not isinstance(optimizer, (Optimizer, type(None))):
        raise error(TypeError, f"an optimizer must stand beside the states, not a {type(optimizer).__name__}")
    _check_depth(states)
    if optimizer is not None:
        check(optimizer)
    return states, optimizer


def is_pickle(first: bytes) -> bool:
    """Whether a file that begins so may hold states."""
    return first[:1] in INSTRUCTIONS


class _Pickler(_Base):  # type: ignore[misc]  # its types leave out what it offers to override
    def reducer_override(self, obj: Any) -> Any:
        """Write arrays by MXNet's class and bytes."""
        if not isinstance(obj, nd.NDArray):
            return NotImplemented
        return _stand_in(obj), (None,), {"handle": bytearray(dump_record(to_record(obj)))}

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write our classes under MXNet's names."""
        place = _GLOBALS.get(obj) or _mxnet_place(obj)
        if place is None:
            super().save_global(obj, name)
            return
        for part in place:
            self.save(part)
        self.write(pickle.STACK_GLOBAL)
        self.memoize(obj)


class _Outline(_Pickler):
    """Writes all that the other writes, but two elements of each array; who reads takes a single one for a number."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, nd.NDArray):
            return _stand_in(obj), (None,), {"handle": _ELEMENTS[obj.size != 1]}
        return np.zeros(1 + (obj.size != 1), obj.dtype).__reduce__() if type(obj) is np.ndarray else NotImplemented


_ELEMENTS = [bytearray(dump_record(np.zeros(n, np.float32))) for n in (1, 2)]


def _mxnet_place(obj: Any) -> tuple[str, str] | None:
    module = getattr(obj, "__module__", "") or ""
    if module.startswith("numpy._core."):  # NumPy 1 calls it otherwise, and both know that
        return module.replace("._core.", ".core."), obj.__qualname__
    theirs = _THEIRS.get(module) or _THEIRS.get(module.rpartition(".")[0])
    return (theirs, obj.__qualname__) if theirs else None


def _found(module: str, name: str, home: str) -> Named:
    """What a file means by a name: an array, or a class of optimizers or schedulers."""
    module = OLD_MODULES.get(module, module)
    if (module, name) in ARRAYS.values():
        make = _np_array if (module, name) == ARRAYS["np"] else _array
        return Named(f"{module}.{name}", call=lambda handle=None: Pending("an array", make))
    module = MODULES.get(module, module)
    # Nothing is imported for a file, except from here.
    if module in _OURS or module.startswith(tuple(f"{m}." for m in _OURS)):
        try:
            found = getattr(importlib.import_module(module), name, None)
        except ImportError:
            found = None
    else:
        found = vars(sys.modules.get(module, object)).get(name)
    if isinstance(found, type) and (found.__module__ == home or issubclass(found, (Optimizer, LRScheduler))):
        return Named(f"{module}.{name}", found, new=lambda *args: _empty(found, *args))
    raise error(
        TypeError,
        f"they name {module[:80]}.{name[:80]}, but hold only arrays, optimizers, schedulers and plain data; "
        "import a module of own optimizers first",
    )


def _array(state: Any) -> NDArray | None:
    handle = state.get("handle") if isinstance(state, dict) else None
    if not isinstance(handle, (bytes, bytearray, str)):
        raise error(ValueError, "an array lacks its bytes")
    return from_record(load_record(handle.encode("latin-1") if isinstance(handle, str) else handle))


def _np_array(state: Any) -> NDArray | None:
    found = _array(state)
    return None if found is None else found.as_np_ndarray()


def _empty(cls: Any, *args: Any) -> Any:
    """An object without its state; only named tuples are made of arguments."""
    if issubclass(cls, tuple):
        return tuple.__new__(
            cls, args[0] if len(args) == 1 and isinstance(args[0], tuple) and len(args[0]) == len(cls._fields) else args
        )
    if args:
        raise error(TypeError, f"a {cls.__name__} is made of its attributes, not of {len(args)} arguments")
    return cls.__new__(cls)


def _build(target: Any, state: Any) -> None:
    if isinstance(state, tuple) and len(state) == 2:  # __dict__ and __slots__
        state = {**(state[0] or {}), **(state[1] or {})}
    if not isinstance(state, dict) or not all(isinstance(k, str) for k in state):
        raise error(
            TypeError, f"the attributes of a {type(target).__name__} must be a dictionary, not a {type(state).__name__}"
        )
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
    else:
        for name, value in state.items():
            object.__setattr__(target, name, value)


def _check_depth(states: Any) -> None:
    """Refuse values that hold themselves, or one another without end."""
    left, seen = [(states, 0)], 0
    while left:
        value, depth = left.pop()
        seen += 1
        if depth > DEEPEST or seen > MOST_VALUES:
            raise error(
                ValueError, f"the states are nested deeper than {DEEPEST}, or hold more than {MOST_VALUES} values"
            )
        if isinstance(value, (list, tuple)):
            left += [(v, depth + 1) for v in value]
        elif isinstance(value, dict):
            left += [(v, depth + 1) for v in value.values()]
