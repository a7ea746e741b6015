"""Loading of extensions by path, as ``mxnet.library``."""

from __future__ import annotations

import importlib.util
import os
import sys
import zlib
from importlib import _bootstrap
from types import ModuleType
from typing import Any

from ._core.errors import caught, in_a_line
from ._core.plugins import plugins
from ._interrupts import let_through
from ._io_files import checked
from ._reexports import reexports
from .base import MXNetError, error

__all__ = ["MXNetError", "load"]


def load(path: str, verbose: bool = True) -> ModuleType:
    """Load a plugin from a Python file: its operators, kernels and whatever else it brings appear at once.

    Parameters
    ----------
    path : str
        A Python file with ``API_VERSION`` and hooks, as docs/plugins.md describes it.
    verbose : bool
        Say what was loaded.

    Returns
    -------
    module
        The plugin; its name is that of the file, or ends so, where another module has that name.

    Raises
    ------
    MXNetError
        (also FileNotFoundError) without such a file; (also ImportError) if it cannot be imported; (also ValueError) if
        it brings a name that somebody else has, and for a library compiled for MXNet: its interface is that of MXNet's
        C++ code, which is not here.

    Examples
    --------
    >>> import mxcore as mx
    >>> with open("/tmp/mxcore_doc_twice.py", "w") as file:
    ...     n = file.write('''
    ... from mxcore.plugin import hookimpl, op
    ... API_VERSION = 1
    ... @op("doc_twice")
    ... def twice(k, p, data):
    ...     "Twice data."
    ...     return data * 2
    ... @hookimpl
    ... def mxcore_ops():
    ...     return [twice]
    ... ''')
    >>> plugin = mx.library.load("/tmp/mxcore_doc_twice.py", verbose=False)
    >>> mx.nd.doc_twice(mx.nd.ones((2,))).asnumpy().tolist()
    [2.0, 2.0]
    """
    from ._core.manager import manager

    manager.load()  # first those that are installed: where two bring one name, it is this one that is refused
    path = checked(path, "library.load: path")
    if not os.path.isfile(path):
        raise error(FileNotFoundError, f"library.load: there is no file {path!r}")
    stem, ending = os.path.splitext(os.path.basename(path))
    if ending != ".py":
        raise error(
            ValueError,
            f"library.load: {path!r} is no Python file. Libraries compiled for MXNet (.so, .dll) "
            "speak to its C++ code; write the operator as a Python plugin (docs/plugins.md, `mxcore plugins new`)",
        )
    # One thread at a time, and no fork meanwhile: else another would find half of it.
    found = plugins.in_turn(f"library.load of {path}", lambda: _load(stem, path))
    if found is None:
        raise error(ImportError, f"library.load: {path!r} loads itself while it is imported")
    if verbose:
        print(f"library.load: plugin '{stem}' from {path}")
    return found


def _load(stem: str, path: str) -> ModuleType:
    from ._core.manager import manager

    name = _name(stem, path)
    _bootstrap._lock_unlock_module(name)  # type: ignore[attr-defined]  # whoever imports it now comes to an end first
    before = sys.modules.get(name)
    known = None if before is _loaded.get(name) else before  # imported by somebody: its classes are these
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    what, outside = "be imported", plugins.busy
    plugins.busy = stem
    try:
        # By Python's own way, which locks the module, so that forks see it being imported.
        module: ModuleType = known or _bootstrap._load(spec)  # type: ignore[attr-defined]
        what = "be registered"
        manager.register(module, stem, path)
    except BaseException as e:  # such as sys.exit() at import
        if before is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = before
        if isinstance(e, MXNetError) and what == "be registered":
            raise
        raise error(ImportError, f"library.load: {path!r} cannot {what}: {in_a_line(caught(e))}") from e
    finally:
        plugins.busy = outside
    if known is None:
        _loaded[name] = module
    return module


#: What was imported here, by its name in `sys.modules`; else a file is not imported again.
_loaded: dict[str, ModuleType] = {}


def _name(stem: str, path: str) -> str:
    """What a module is called, by which pickles and dataclasses find it: as its file, where nobody else's is."""
    names = stem, f"mxcore_library_{stem}"
    return next(
        (n for n in names if _is_free(n, path)), f"{names[1]}_{zlib.crc32(os.path.realpath(path).encode()):08x}"
    )


def _is_free(name: str, path: str) -> bool:
    """Whether nobody else's module, which may be imported later on, has the name of a file."""
    there = getattr(sys.modules.get(name), "__file__", None)
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError) as e:
        let_through(e)
        return name not in sys.modules or bool(there) and _same(there, path)  # no name that one could import
    return spec is None or bool(spec.origin) and _same(spec.origin, path)


def _same(one: Any, other: str) -> bool:
    return os.path.realpath(str(one)) == os.path.realpath(other)


__getattr__ = reexports(__name__)
