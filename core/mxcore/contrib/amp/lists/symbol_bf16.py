"""Which operators compute in what with bfloat16."""

from __future__ import annotations

from . import table

__all__ = [
    "BF16_FP32_FUNCS",
    "BF16_FUNCS",
    "BF16_USE_FP32_PARAMS",
    "CONDITIONAL_FP32_FUNCS",
    "FP32_FUNCS",
    "LOSS_OUTPUT_FUNCTIONS",
    "WIDEST_TYPE_CASTS",
]

#: Compute in bfloat16.
BF16_FUNCS = ["Convolution", "FullyConnected"]
#: Compute in the dtype of their inputs.
BF16_FP32_FUNCS = list(table.BF16_EITHER)
#: Operator -> inputs that stay float32 where it computes in bfloat16.
BF16_USE_FP32_PARAMS = dict(table.USE_FP32_PARAMS)
#: (operator, parameter, values for which it computes in float32).
CONDITIONAL_FP32_FUNCS = list(table.CONDITIONAL)
_BOXES = ["_contrib_MultiBoxDetection", "_contrib_MultiBoxPrior", "_contrib_MultiBoxTarget"]
_NO_WIDEST = {"broadcast_mul", "Concat", "concat", *table.BF16_UNLISTED}
#: Compute in the widest dtype of their inputs.
WIDEST_TYPE_CASTS = [n for n in table.WIDEST if n not in _NO_WIDEST] + _BOXES
_ELSEWHERE = {*BF16_FUNCS, *BF16_FP32_FUNCS, *WIDEST_TYPE_CASTS, *table.BF16_UNLISTED}
#: Compute in float32.
FP32_FUNCS = [n for n in (*table.NARROW, *table.EITHER, *table.WIDE, *table.WIDEST) if n not in _ELSEWHERE]
#: Have gradients of their own, which are scaled as the loss is.
LOSS_OUTPUT_FUNCTIONS = list(table.LOSSES)
