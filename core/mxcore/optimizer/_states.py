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

from .. import ndarray as nd
from ..base import MXNetError, error
from ..lr_scheduler import LRScheduler
from ..ndarray.files import from_record, to_record
from ..ndarray.serialization import dump_record, load_record
from .base import Optimizer

#: Storage type -> where MXNet has the class of such arrays.
ARRAYS = {
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

#: What a state may name besides arrays, optimizers and schedulers: plain data only.
PLAIN = {
    "builtins": {"bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list",
                 "object", "range", "set", "slice", "str", "tuple"},
    "collections": {"OrderedDict", "defaultdict", "deque"},
    "copyreg": {"_reconstructor"},
    "_codecs": {"encode"},
    "numpy": {"bool_", "dtype", "float16", "float32", "float64", "int32", "int64", "int8", "ndarray",
              "uint8"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy.core.numeric": {"_frombuffer"},
    "numpy._core.numeric": {"_frombuffer"},
}
_THEIRS = {ours: theirs for theirs, ours in MODULES.items()}
_OBJECTS = (Optimizer, LRScheduler, nd.NDArray)
_PYTHON2 = {"__builtin__": "builtins", "copy_reg": "copyreg"}


class _Array:
    """Stands for an array while it is read or written; the classes below are one for each storage type."""

    def __init__(self, _=None):
        self.handle = None

    def __setstate__(self, state):
        self.handle = state["handle"]


_STAND_INS = {stype: type(name, (_Array,), {}) for stype, (_, name) in ARRAYS.items()}
_GLOBALS = {_STAND_INS[stype]: place for stype, place in ARRAYS.items()}


def dumps(states):
    """Return states (with or without an optimizer) as bytes that MXNet reads, too."""
    out = io.BytesIO()
    _Pickler(out, 4).dump(states)
    return out.getvalue()


def loads(data, home):
    """Read (states, optimizer or None); classes of `home`, the module of the present optimizer, may occur."""
    try:
        found = _restored(_Unpickler(io.BytesIO(data), home).load())
    except MXNetError:
        raise
    except Exception as problem:    # damaged pickles raise anything
        raise error(ValueError, f"these {len(data)} bytes are no optimizer states: {problem}") from problem
    states, optimizer = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
    if not isinstance(states, dict) or not isinstance(optimizer, (Optimizer, type(None))):
        raise error(TypeError, f"optimizer states are a dictionary, not a {type(states).__name__}")
    return states, optimizer


class _Pickler(pickle._Pickler):        # the one in C refuses names that it cannot import
    def reducer_override(self, obj):
        """Write arrays by MXNet's class and bytes."""
        if not isinstance(obj, nd.NDArray):
            return NotImplemented
        return _STAND_INS[obj.stype], (None,), {"handle": bytearray(dump_record(to_record(obj)))}

    def save_global(self, obj, name=None):
        """Write our classes under MXNet's names."""
        place = _GLOBALS.get(obj) or _mxnet_place(obj)
        if place is None:
            super().save_global(obj, name)
            return
        for part in place:
            self.save(part)
        self.write(pickle.STACK_GLOBAL)
        self.memoize(obj)


def _mxnet_place(obj):
    module = getattr(obj, "__module__", "")
    theirs = _THEIRS.get(module) or _THEIRS.get(module.rpartition(".")[0])
    return theirs and (theirs, obj.__qualname__)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, home):
        super().__init__(file, encoding="latin1")
        self.home = home

    def find_class(self, module, name):
        """Resolve a name to a stand-in, to plain data, or to a class of optimizers or schedulers."""
        for cls, place in _GLOBALS.items():
            if (module, name) == place:
                return cls
        module = _PYTHON2.get(module, module)
        if name in PLAIN.get(module, ()):
            return super().find_class(module, name)
        module = MODULES.get(module, module)
        # Nothing is imported for a file, except from here.
        own = importlib.import_module(module) if module.startswith("mxcore.") else sys.modules.get(module)
        found = getattr(own, name, None)
        if isinstance(found, type) and (found.__module__ == self.home or issubclass(found, _OBJECTS)):
            return found
        raise error(TypeError, f"optimizer states name {module}.{name}, but hold only arrays, optimizers, "
                               "schedulers and plain data; import a module of own optimizers first")


def _restored(found):
    """Put arrays in the place of their stand-ins."""
    if isinstance(found, _Array):
        return from_record(load_record(found.handle))
    if isinstance(found, dict):
        for key, value in found.items():
            found[key] = _restored(value)
    elif type(found) in (list, tuple):
        return type(found)(_restored(value) for value in found)
    elif isinstance(found, Optimizer):
        _restored(found.__dict__)
    return found
