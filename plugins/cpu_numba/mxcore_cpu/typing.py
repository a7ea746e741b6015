"""What arrays and numbers are called in annotations."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

__all__ = ["Array", "Outs", "Scalar"]

Array: TypeAlias = np.ndarray[Any, Any]

#: A number in a kernel, of the type that its arguments decide: a machine's where it is compiled, NumPy's in Python.
Scalar: TypeAlias = Any

#: What a kernel fills: an array for each output, None where nobody reads one.
Outs: TypeAlias = list[Any]
