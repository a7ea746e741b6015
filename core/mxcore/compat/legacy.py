"""Names that newer Python and NumPy removed and MXNet-era scripts use, put back for one process.

What belongs to a module that is loaded is put back at once, the rest when that module is imported: a script pays for
what it uses.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def _add(owner: Any, names: dict[str, Any]) -> list[str]:
    """Set what `owner` lacks and say what was set."""
    # Looks into the namespace, since asking NumPy for a lost name warns.
    missing = {k: v for k, v in names.items() if k not in vars(owner)}
    for name, value in missing.items():
        setattr(owner, name, value)
    label = owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__name__}"
    return [f"{label}.{name}" for name in missing]


def _numpy(np: Any) -> list[str]:
    from . import numpy1

    put_back = [n for owner, names in numpy1.names() for n in _add(owner, names)] + numpy1.methods()
    for name, function in numpy1.replaced().items():
        setattr(np, name, function)
    np.set_printoptions(legacy="1.25")  # numbers in lists print as numbers
    return put_back


def _asnumpy(module: Any) -> list[str]:
    from .numpy1 import with_old_arrays

    # Asking would look for an operator.
    for kind in (vars(module)[n] for n in ("Array", "BaseSparseNDArray") if n in vars(module)):
        kind.asnumpy = with_old_arrays(kind.asnumpy)
    return []


def _inspect(module: Any) -> list[str]:
    from . import argspec

    return _add(module, {"getargspec": argspec.getargspec, "ArgSpec": argspec.ArgSpec})


#: Module -> what puts its names back.
_AFTER: dict[str, Callable[[Any], list[str]]] = {
    "collections": lambda m: _add(
        m, {n: getattr(importlib.import_module("collections.abc"), n) for n in m.abc.__all__}
    ),
    "inspect": _inspect,
    "fractions": lambda m: _add(m, {"gcd": importlib.import_module("math").gcd}),
    "time": lambda m: _add(m, {"clock": m.perf_counter}),
    "os": lambda m: _add(m, {"errno": importlib.import_module("errno")}),
    "base64": lambda m: _add(m, {"encodestring": m.encodebytes, "decodestring": m.decodebytes}),
    "configparser": lambda m: _add(m, {"SafeConfigParser": m.ConfigParser}),
    "threading": lambda m: _add(m.Thread, {"isAlive": m.Thread.is_alive}),
    "numpy": _numpy,
    "mxcore._core.array": _asnumpy,
    "mxcore.ndarray.sparse": _asnumpy,
}


class _After:
    """Meta-path finder, asked first, that adds to modules once they are loaded."""

    def __init__(self) -> None:
        self._here = threading.local()

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec that the others find, with a loader that does more."""
        if name not in _AFTER or getattr(self._here, "finding", "") == name:
            return None
        self._here.finding = name
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._here.finding = ""
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            _AFTER[name](module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


#: Modules that the standard library no longer has; `stdlib.MODULES` makes what they hold.
_LOST = {
    "distutils",
    "distutils.version",
    "distutils.util",
    "distutils.dir_util",
    "distutils.spawn",
    "distutils.sysconfig",
    "imp",
    "pipes",
    "xml.etree.cElementTree",
}
#: Modules of NumPy that are gone -> where their functions are.
_MOVED = {
    **{
        f"numpy.lib.{n}": "numpy"
        for n in (
            "arraysetops function_base index_tricks nanfunctions polynomial shape_base twodim_base type_check"
        ).split()
    },
    "numpy.linalg.linalg": "numpy.linalg",
    "numpy.testing.utils": "numpy.testing",
}


class _LostModules:
    """Meta-path finder, asked last, for modules that the standard library and NumPy no longer have."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return a spec for a lost module, else None."""
        if name not in _LOST and name not in _MOVED:
            return None
        return ModuleSpec(name, self, is_package=any(m.startswith(name + ".") for m in _LOST))  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import system make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module from the tables."""
        from . import stdlib

        moved = _MOVED.get(module.__name__)
        vars(module).update(vars(importlib.import_module(moved)) if moved else stdlib.MODULES[module.__name__]())


def legacy_names() -> list[str]:
    """Put back what newer Python and NumPy removed, where it is missing, for this process.

    Covers NumPy's aliases (``np.float``, ``np.int``, ``np.NaN``, ``np.product``, ``np.in1d`` …), methods of arrays
    (``tostring``, ``itemset``), binary ``np.fromstring``, ragged ``np.array`` and its ``copy=False``; the conversion to
    a number of arrays with one element that come from `NDArray.asnumpy`; the abstract classes in `collections`,
    ``inspect.getargspec``, ``fractions.gcd``, ``time.clock``, ``os.errno`` and the modules `distutils`, `imp`, `pipes`
    and ``xml.etree.cElementTree`` as far as scripts (not installers) use them. Names that exist are left alone.

    Returns
    -------
    list of str
        The names put back at once, as ``'numpy.float'``. Modules that are not loaded get theirs when they are imported,
        lost modules are given when they are.

    Notes
    -----
    It changes modules that the whole process shares, so libraries should not call it; ``mxcore run`` does, for a
    script.

    Examples
    --------
    >>> from mxcore.compat import legacy_names
    >>> names = legacy_names()
    >>> import numpy as np
    >>> np.float is float
    True
    """
    if not any(isinstance(f, _After) for f in sys.meta_path):
        sys.meta_path.insert(0, _After())
        sys.meta_path.append(_LostModules())
        importlib.invalidate_caches()
    return [
        name for module, put_back in _AFTER.items() if module in sys.modules for name in put_back(sys.modules[module])
    ]
