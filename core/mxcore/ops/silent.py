"""Bodies of operators without NumPy's warnings: infinities and NaN are results, as in MXNet."""

from __future__ import annotations

import numpy as np

__all__ = ["silent"]

#: Decorates a body that sums, factorises or transforms: such calls warn in NumPy's own name, which the filter that
#: `mx.nd` sets for mxcore's modules does not reach. (Programs are silent as a whole.)
silent = np.errstate(all="ignore")
