"""Fused elementwise chains: Numba source printed from expressions, written to a module file and compiled once.

Numba caches compiled code for modules only, never for text given to exec, so the source goes to a file named by its hash
in the cache folder and is imported from there.
"""
from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import threading
import warnings

import numpy as np

from mxcore.plugin import print_numba

from . import jit

__all__ = ["compile_chain"]

_lock = threading.Lock()
_compiled: dict = {}

_SOURCE = '''"""A fused elementwise chain: {text}"""
from numpy import {dtype}

from mxcore_cpu import math as m
from mxcore_cpu.jit import kernel


@kernel(threshold=1 << 15)
def chain(first, last, {arrays}):
    {views} = {slices}
    for i in range(o0.size):
{lines}
'''


def compile_chain(chain):
    """A function ``f(outs, *inputs)`` for a :class:`mxcore.plugin.Fused`, or None if it cannot be compiled."""
    key = chain.key
    with _lock:
        if key not in _compiled:
            try:
                _compiled[key] = _build(chain)
            except Exception as e:
                warnings.warn(f"a fused chain could not be compiled and runs in parts: {type(e).__name__}: {e}", stacklevel=3)
                _compiled[key] = None
        return _compiled[key]


def _source(chain) -> str:
    ins, outs = [f"a{i}" for i in range(len(chain.inputs))], [f"o{i}" for i in range(len(chain.outputs))]
    names = {name: f"v{i}" for i, name in enumerate(chain.inputs)}
    lines = [f"        v{i} = a{i}[i]" for i in range(len(ins))]
    lines += [f"        o{i}[i] = {chain.dtype}({print_numba(e, names, chain.dtype)})" for i, e in enumerate(chain.outputs)]
    return _SOURCE.format(
        text="; ".join(e.text for e in chain.outputs), dtype=chain.dtype, arrays=", ".join([*ins, *outs]), views=", ".join([*ins, *outs]),
        slices=", ".join(f"{a}[first:last]" for a in [*ins, *outs]), lines="\n".join(lines))


def _build(chain):
    if not jit.available() or chain.dtype not in ("float32", "float64"):
        return None
    source = _source(chain)
    name = "mxcore_fused_" + hashlib.sha256(source.encode()).hexdigest()[:20]
    module = sys.modules.get(name)
    if module is None:
        folder = jit.cache_dir() / "fused"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.py"
        if not path.exists():
            part = path.with_suffix(f".{os.getpid()}.tmp")
            part.write_text(source, encoding="utf-8")
            part.replace(path)  # another process may be writing the same text
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    kernel = module.chain

    def run(outs, *inputs):
        shape, size = outs[0].shape, outs[0].size
        flat = [(a if a.shape == shape else np.broadcast_to(a, shape)).reshape(-1) for a in inputs]
        places = [o if o.flags.c_contiguous else np.empty(shape, o.dtype) for o in outs]
        kernel(size, *flat, *[o.reshape(-1) for o in places])
        for o, place in zip(outs, places):
            if place is not o:
                o[...] = place

    return run
