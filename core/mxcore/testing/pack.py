"""Many small arrays and plain entries in a compressed file: what mxcore asks another program, and its answers.

NumPy only, of any version, and nothing else of mxcore, so that the other program can load this file by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["ASKED", "GRAIN", "Pack", "drawn"]

#: Drawn numbers are multiples of 1/256, so that they compress, and are the same in every dtype.
GRAIN = 256
#: What an answer repeats of the question about a sample; a golden file is stale once these differ from the catalogue.
ASKED = ("params", "dtypes", "train", "grad_train", "np_shape", "random", "mutates", "variables")


def drawn(seed: int, shapes: Iterable[Any]) -> list[np.ndarray[Any, Any]]:
    """Numbers between -1 and 1 for arrays of these shapes, the same wherever they are drawn."""
    rs = np.random.RandomState(seed)
    return [np.round(rs.uniform(-1, 1, s) * GRAIN) / GRAIN for s in shapes]


class Pack:
    """Entries (plain dicts) that name arrays by number.

    Attributes
    ----------
    entries : list of dict
        Anything that JSON holds.
    """

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self._arrays: list[np.ndarray[Any, Any]] = []
        self._known: dict[Any, int] = {}

    def add(self, a: Any) -> int:
        """Keep an array; returns its number. Equal arrays are kept once, floats in the narrowest exact dtype."""
        a = np.ascontiguousarray(a) if np.ndim(a) else np.asarray(a)
        narrow = np.dtype({"f": "float32", "i": "int32", "u": "int32"}.get(a.dtype.kind, a.dtype))
        if narrow != a.dtype and a.dtype.kind in "fiu":
            with np.errstate(all="ignore"):
                small = a.astype(narrow)
            if np.array_equal(small.astype(a.dtype), a, equal_nan=a.dtype.kind == "f"):
                a = small
        key = (str(a.dtype), a.shape, a.tobytes())
        if key not in self._known:
            self._known[key] = len(self._arrays)
            self._arrays.append(a)
        return self._known[key]

    def get(self, number: int) -> np.ndarray[Any, Any]:
        """The array of a number."""
        return self._arrays[number]

    def save(self, path: str) -> None:
        """Write one flat array per dtype, and the entries as JSON."""
        flat: dict[str, list[np.ndarray[Any, Any]]] = {}
        for a in self._arrays:
            flat.setdefault(str(a.dtype), []).append(a.ravel())
        index = {"entries": self.entries, "arrays": [[str(a.dtype), list(a.shape)] for a in self._arrays]}
        text = np.frombuffer(json.dumps(index, separators=(",", ":"), sort_keys=True).encode(), np.uint8)
        arrays: dict[str, Any] = {k: np.concatenate(v) for k, v in flat.items()}
        np.savez_compressed(path, index=text, **arrays)

    @classmethod
    def load(cls, path: str) -> Pack:
        """Read what `save` wrote."""
        pack = cls()
        with np.load(path) as file:
            index = json.loads(bytes(file["index"]).decode())
            flat = {k: file[k] for k in file.files if k != "index"}
        pack.entries = index["entries"]
        at = dict.fromkeys(flat, 0)
        for dtype, shape in index["arrays"]:
            n = int(np.prod(shape, dtype=np.int64))
            pack._arrays.append(
                flat[dtype][at[dtype] : at[dtype] + n].reshape(shape) if dtype in flat else np.zeros(shape, dtype)
            )
            at[dtype] = at.get(dtype, 0) + n
        return pack
