"""Windows of signal processing: sums of a few cosines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core.op import Op
from ..._core.params import Params
from ...parameters import DType, Int, Str
from ...typing import Call

__all__ = ["WINDOWS"]


def _window(name: str, *parts: float) -> Op:
    """A window from what each cosine contributes, the constant one first."""

    def body(k: Call, p: Params) -> Any:
        xp, n = k.xp, max(p.M, 0)
        if n < 2:
            return xp.ones((n,), p.dtype)
        turn = xp.arange(n).astype(np.float64) * (2 * math.pi / (n - 1))
        found = parts[0] - parts[1] * xp.cos(turn)
        return found + parts[2] * xp.cos(2 * turn) if len(parts) > 2 else found

    made = Op(
        f"_npi_{name}",
        body,
        inputs="",
        params={"M": Int(), "ctx": Str(None), "dtype": DType(np.dtype("float32"))},
        grad=None,
        doc=f"""The {name.capitalize()} window.

    Parameters
    ----------
    M : int
        Number of points; none below 1.
    ctx : str
    dtype : dtype
    """,
    )
    made.shape(lambda p, ins, outs: (ins, [(max(p.M, 0),)]))
    made.dtype(lambda p, ins, outs: (ins, [p.dtype]))
    return made


WINDOWS = [_window("blackman", 0.42, 0.5, 0.08), _window("hamming", 0.54, 0.46), _window("hanning", 0.5, 0.5)]
