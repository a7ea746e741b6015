"""Loading of extensions by path, as ``mxnet.library``."""

from __future__ import annotations

import importlib.util
import os
import sys
from types import ModuleType

from ._core.errors import caught, in_a_line
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
        The plugin; its name is that of the file.

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
    spec = importlib.util.spec_from_file_location(stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(stem, module)
    what = "be imported"
    try:
        spec.loader.exec_module(module)
        what = "be registered"
        manager.register(module, stem, path)
    except BaseException as e:  # such as sys.exit() at import
        if sys.modules.get(stem) is module and stem not in manager.origin:
            del sys.modules[stem]
        if isinstance(e, MXNetError) and what == "be registered":
            raise
        raise error(ImportError, f"library.load: {path!r} cannot {what}: {in_a_line(caught(e))}") from e
    if verbose:
        print(f"library.load: plugin '{stem}' from {path}")
    return module


__getattr__ = reexports(__name__)
