"""How near two results must be: one table by dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["TOLERANCES", "GOLDEN", "compare"]

#: dtype -> (relative, absolute) tolerance against a float64 reference from the same inputs.
TOLERANCES: dict[str, tuple[float, float]] = {
    "float64": (1e-9, 1e-10),
    "float32": (3e-5, 3e-6),
    "float16": (5e-3, 5e-3),
    "bfloat16": (2e-2, 2e-2),
}
#: The same against numbers that another program computed in that dtype.
GOLDEN: dict[str, tuple[float, float]] = {
    "float64": (1e-6, 1e-7),
    "float32": (1e-4, 1e-5),
    "float16": (1e-2, 1e-2),
    "bfloat16": (4e-2, 4e-2),
}


def compare(
    got: Any,
    want: Any,
    dtype: Any,
    what: str,
    factor: float = 1.0,
    table: dict[str, tuple[float, float]] = TOLERANCES,
    step: int = 0,
) -> None:
    """Raise AssertionError unless `got` is `want` within the tolerance of `dtype`.

    Parameters
    ----------
    got, want : array_like
        Integers and bools must agree exactly, or up to `step`; NaN equals NaN.
    dtype : dtype
        What it was computed in; this or the dtype of `got`, whichever is coarser, picks the tolerance.
    what : str
        Head of the message.
    factor : float
        Widens the tolerance.
    table : dict
        :data:`TOLERANCES` or :data:`GOLDEN`.
    step : int
        How far integers may be off.
    """
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        raise AssertionError(f"{what}: shape {got.shape}, expected {want.shape}")
    if got.dtype.kind in "iub" and want.dtype.kind in "iub":
        bad = got != want if not step else np.abs(got.astype(np.int64) - want.astype(np.int64)) > step
    else:
        rtol, atol = max(table.get(np.dtype(t).name, (0.0, 0.0)) for t in (dtype, got.dtype))
        a, b = got.astype(np.float64), want.astype(np.float64)
        with np.errstate(invalid="ignore"):
            near = np.abs(a - b) <= factor * (atol + rtol * np.abs(b))
            bad = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        raise AssertionError(
            f"{what}: {int(bad.sum())} of {bad.size} elements differ, first at {at}: {got[at]!r}, expected {want[at]!r}"
        )
