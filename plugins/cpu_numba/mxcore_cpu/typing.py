"""What arrays and numbers are called in annotations."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

__all__ = ["Array", "Outs", "Scalar"]

Array: TypeAlias = np.ndarray[Any, Any]

#: A number of the type that a kernel is compiled for, or a NumPy scalar where its body runs in Python.
Scalar: TypeAlias = Any

#: What a kernel fills: an array for each output, None where nobody reads one.
Outs: TypeAlias = list[Any]
