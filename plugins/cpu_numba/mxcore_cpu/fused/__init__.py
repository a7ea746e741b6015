"""Fused elementwise chains: Numba source printed from expressions, written to a module file and compiled once.

Numba caches compiled code for modules only, never for text given to exec, so the source goes to a file named by its hash
in the cache folder and is imported from there.
"""
from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import sys
import threading
import warnings
from pathlib import Path

from .. import jit
from .bound import Code, Compiled
from .source import print_source

__all__ = ["compile_chain"]

_lock = threading.RLock()
_codes: dict = {}
_compiled: dict = {}


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def compile_chain(chain):
    """The code of a :class:`mxcore.plugin.Fused`, or None if it cannot be compiled.

    A chain with a pattern is compiled here, one without when it meets arrays. One warning says why a chain cannot be compiled.
    """
    key = (chain.key, chain.dims)
    with _lock:
        if key not in _compiled:
            _compiled[key] = _make(chain)
        return _compiled[key]


def _make(chain):
    if not jit.available() or chain.dtype not in ("float32", "float64"):
        return None
    if chain.pattern is None:
        return Compiled(chain, None, _code)
    if 0 in chain.dims:
        return None
    try:
        return Compiled(chain, _code(chain), _code)
    except Exception as e:
        if chain.key not in _failed:
            _failed.add(chain.key)
            warnings.warn(f"a fused chain could not be compiled and runs in parts: {type(e).__name__}: {e}", stacklevel=4)
        return None


_failed: set = set()


def _code(chain) -> Code:
    with _lock:
        code = _codes.get(chain.key)
        if code is None:
            code = _codes[chain.key] = _build(chain)
        return code


@functools.cache
def _version() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _module(text: str):
    """The text as a module from the cache folder, or, where nothing can be written there, from memory."""
    name = "mxcore_fused_" + hashlib.sha256((_version() + text).encode()).hexdigest()[:20]
    module = sys.modules.get(name)
    if module is not None:
        return module
    folder = jit.cache_dir() / "fused"
    path = folder / f"{name}.py"
    try:
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}.tmp")
            part.write_text(text, encoding="utf-8")
            part.replace(path)  # another process may be writing the same text
    except OSError:
        import types

        module = types.ModuleType(name)
        exec(compile(text, name, "exec"), module.__dict__)
        sys.modules[name] = module
        return module
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _build(chain) -> Code:
    module = _module(print_source(chain))
    nb = jit.numba()
    compiled = jit._with_cache(nb.njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, fastmath=set(jit.CONTRACT))(module.body))
    compiled.compile((nb.int64,) * 3)
    [result] = compiled.overloads.values()
    return Code(chain, result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name), compiled)
