"""Which operators compute in what with float16."""

from __future__ import annotations

from . import table

__all__ = [
    "CONDITIONAL_FP32_FUNCS",
    "FP16_FP32_FUNCS",
    "FP16_FUNCS",
    "FP32_FUNCS",
    "LOSS_OUTPUT_FUNCTIONS",
    "WIDEST_TYPE_CASTS",
]

#: Compute in float16.
FP16_FUNCS = list(table.NARROW)
#: Compute in the dtype of their inputs.
FP16_FP32_FUNCS = list(table.EITHER)
#: Compute in float32.
FP32_FUNCS = list(table.WIDE)
#: (operator, parameter, values for which it computes in float32).
CONDITIONAL_FP32_FUNCS = list(table.CONDITIONAL)
#: Compute in the widest dtype of their inputs.
WIDEST_TYPE_CASTS = list(table.WIDEST)
#: Have gradients of their own, which are scaled as the loss is.
LOSS_OUTPUT_FUNCTIONS = list(table.LOSSES)
