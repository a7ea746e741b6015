"""What CuPy takes: its functions' signatures, the loops of its universal functions, the dtypes of `add.at`.

The table `rules.json` holds them, so that the emulation refuses what CuPy would refuse; ``python -m
mxcore_cuda.emulation.rules`` writes it anew from the CuPy that is installed.
"""

from __future__ import annotations

import inspect
import json
import re
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["PATH", "from_cupy", "rules"]

PATH = Path(__file__).with_name("rules.json")
#: Dtypes of NumPy, of which it is asked what CuPy does.
_DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
#: What CUDA says where there is no GPU: the driver is too old, or knows none.
_ABSENT = (35, 100)


@cache
def rules() -> dict[str, Any]:
    """The committed table: ``functions``, ``methods``, ``ufuncs`` and ``at``."""
    found: dict[str, Any] = json.loads(PATH.read_text())
    return found


def from_cupy() -> dict[str, Any]:
    """The table, from CuPy, which needs no GPU for it; of what the contract of array namespaces lists."""
    import cupy

    from mxcore.array_api.contract import METHODS, entries

    functions, ufuncs, at = {}, {}, {}
    for name in entries()[0]:
        owner, _, last = name.rpartition(".")
        if last == "at":
            at[owner] = _scatter_dtypes()
            continue
        try:
            fn = attrgetter(name)(cupy)
        except AttributeError:
            continue
        if isinstance(fn, cupy.ufunc):
            ufuncs[name] = {"nin": fn.nin, "nout": fn.nout, "loops": list(fn.types)}
        else:
            functions[name] = _signature(fn)
    methods = {name: _signature(getattr(cupy.ndarray, name)) for name in sorted(METHODS) if hasattr(cupy.ndarray, name)}
    return {"cupy": cupy.__version__, "functions": functions, "methods": methods, "ufuncs": ufuncs, "at": at}


def _signature(fn: Any) -> str | None:
    """The parameters of a function; of a compiled method, as the first line of its docstring shows them."""
    try:
        signature = inspect.signature(fn)
    except ValueError:
        found = re.match(r"[\w.]+\((.*?)\)(?: ->|\n)", fn.__doc__ or "")
        if found is None:
            return None
        names = re.sub(r"\w+ (?=\w+[,=)]|\w+$)", "", found[1])  # without the types of C
        signature = inspect.signature(eval(f"lambda {names}: None"))  # CuPy's own text
    shown = [
        p.replace(default=None if p.default is not p.empty else p.empty, annotation=p.empty)
        for p in signature.parameters.values()
        if p.name != "self"
    ]
    return str(inspect.Signature(shown))


def _scatter_dtypes() -> list[str]:
    """The dtypes for which CuPy has an atomic sum: those that `cupy.add.at` does not refuse."""
    return sorted(t for t in _DTYPES if _added(np.dtype(t)))


def _added(dtype: Any) -> bool:
    import cupy

    a, indices, values = (_array(np.zeros(1, t)) for t in (dtype, np.int32, dtype))
    try:
        cupy.add.at(a, indices, values)
    except TypeError as e:
        if "only supports" not in str(e):
            raise
        return False
    except cupy.cuda.runtime.CUDARuntimeError as e:
        if e.status not in _ABSENT:
            raise
    return True


def _array(a: Any) -> Any:
    """An array of CuPy; where there is no GPU one that lies in the host's memory, which nothing comes to read."""
    import cupy

    try:
        return cupy.asarray(a)
    except cupy.cuda.runtime.CUDARuntimeError:
        memory = cupy.cuda.UnownedMemory(a.ctypes.data, a.nbytes, a, 0)
        return cupy.ndarray(a.shape, a.dtype, cupy.cuda.MemoryPointer(memory, 0))


if __name__ == "__main__":
    PATH.write_text(json.dumps(from_cupy(), indent=1, sort_keys=True) + "\n")
