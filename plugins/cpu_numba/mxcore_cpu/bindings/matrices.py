"""Linear algebra on stacks of matrices."""
from __future__ import annotations

import numpy as np

from ..kernels import triangular
from .common import FLOATS, cpu


@cpu.kernel("_linalg_trsm", dtypes=FLOATS, out=True)
def _trsm(k, p, outs, A, B):
    with np.errstate(all="ignore"):  # infinity and NaN are results
        triangular.solve(A, B, outs[0], transpose=p.transpose, right=p.rightside, lower=p.lower, alpha=p.alpha)
