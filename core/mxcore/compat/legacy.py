"""Names that newer Python and NumPy removed and MXNet-era scripts use, put back for one process."""
from __future__ import annotations

import base64
import collections
import collections.abc
import configparser
import errno
import fractions
import importlib
import inspect
import math
import os
import sys
import threading
import time
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np

from . import stdlib


def _asfarray(a: Any, dtype: Any = np.float64) -> Any:
    return np.asarray(a, dtype if np.issubdtype(dtype, np.inexact) else np.float64)


def _in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    return np.isin(np.ravel(ar1), ar2, assume_unique=assume_unique, invert=invert)


# Text names another member of NumPy. Methods that ndarray lost (tostring, itemset, newbyteorder) cannot be
# put back: the type is closed.
_NUMPY: dict[str, Any] = {
    # builtins (NumPy 2 has types named bool and long again)
    "int": int, "float": float, "complex": complex, "object": object, "str": str, "unicode": str,
    # scalar types
    "bool8": "bool_", "int0": "intp", "uint0": "uintp", "float_": "float64", "cfloat": "complex128",
    "complex_": "complex128", "singlecomplex": "complex64", "longfloat": "longdouble",
    "longcomplex": "clongdouble", "clongfloat": "clongdouble", "string_": "bytes_", "bytes0": "bytes_",
    "unicode_": "str_", "str0": "str_", "object0": "object_", "void0": "void", "typeDict": "sctypeDict",
    # constants
    "Inf": "inf", "Infinity": "inf", "infty": "inf", "PINF": "inf", "NINF": -np.inf, "NaN": "nan",
    "NAN": "nan", "PZERO": 0.0, "NZERO": -0.0,
    # functions
    "product": "prod", "cumproduct": "cumprod", "sometrue": "any", "alltrue": "all", "round_": "round",
    "rank": "ndim", "mat": "asmatrix", "row_stack": "vstack", "trapz": "trapezoid",
    "asscalar": lambda a: np.asarray(a).item(),
    "asfarray": _asfarray,
    "in1d": _in1d,
    "msort": lambda a: np.sort(a, axis=0),
    "issubclass_": lambda a, b: isinstance(a, type) and issubclass(a, b),
}  # fmt: skip

_ATTRIBUTES: list[tuple[Any, dict[str, Any]]] = [
    (collections, {name: getattr(collections.abc, name) for name in collections.abc.__all__}),
    (inspect, {"getargspec": stdlib.getargspec, "ArgSpec": stdlib.ArgSpec}),
    (fractions, {"gcd": math.gcd}),
    (time, {"clock": time.perf_counter}),
    (os, {"errno": errno}),
    (base64, {"encodestring": base64.encodebytes, "decodestring": base64.decodebytes}),
    (configparser, {"SafeConfigParser": configparser.ConfigParser}),
    (threading.Thread, {"isAlive": threading.Thread.is_alive}),
]


def _add(owner: Any, names: dict[str, Any]) -> list[str]:
    """Set what `owner` lacks and say what was set."""
    # Looks into the namespace, since asking NumPy for a lost name warns.
    missing = {k: v for k, v in names.items() if k not in vars(owner)}
    for name, value in missing.items():
        setattr(owner, name, value)
    label = owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__name__}"
    return [f"{label}.{name}" for name in missing]


class _LostModules:
    """Meta-path finder, asked last, for modules that the standard library no longer has."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return a spec for a lost module, else None."""
        if name not in stdlib.MODULES:
            return None
        return ModuleSpec(name, self, is_package=any(m.startswith(name + ".") for m in stdlib.MODULES))  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import system make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module from the table."""
        vars(module).update(stdlib.MODULES[module.__name__])


def legacy_names() -> list[str]:
    """Put back names that newer Python and NumPy removed, where they are missing, for this process.

    Covers NumPy's aliases (``np.float``, ``np.int``, ``np.float_``, ``np.product``, ``np.in1d`` …), the
    abstract classes in `collections`, ``inspect.getargspec``, ``fractions.gcd``, ``time.clock``, ``os.errno``
    and the modules `distutils`, `imp`, `pipes` and ``xml.etree.cElementTree`` as far as scripts (not
    installers) use them. What exists is left alone.

    Returns
    -------
    list of str
        The names put back, as ``'numpy.float'``. Missing modules are given when imported and are not listed.

    Notes
    -----
    It changes modules that the whole process shares, so libraries should not call it; ``mxcore run`` does,
    for a script.

    Examples
    --------
    >>> from mxcore.compat import legacy_names
    >>> names = legacy_names()
    >>> import numpy as np
    >>> np.float is float
    True
    """
    numpy_names = {}
    for name, value in _NUMPY.items():
        if not isinstance(value, str):
            numpy_names[name] = value
        elif hasattr(np, value):
            numpy_names[name] = getattr(np, value)
    put_back = _add(np, numpy_names)
    for owner, names in _ATTRIBUTES:
        put_back += _add(owner, names)
    if not any(isinstance(f, _LostModules) for f in sys.meta_path):
        sys.meta_path.append(_LostModules())  # type: ignore[arg-type]
        importlib.invalidate_caches()
    return put_back
