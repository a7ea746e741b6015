"""Automatic mixed precision, as ``mxnet.contrib.amp``: what gains from a narrow dtype computes in it.

`init` casts all that runs after it, for training; `convert_model` and its kin put casts into a network that is trained
already.
"""

from __future__ import annotations

from typing import Any

from ..._core.params import as_dtype
from . import lists, loss_scaler
from .casting import STATE, init
from .convert import convert_bucketing_module, convert_hybrid_block, convert_model, convert_symbol
from .loss_scaler import LossScaler
from .rules import lists_of, target_of
from .scaling import init_trainer, scale_loss, unscale

__all__ = [
    "LossScaler",
    "convert_bucketing_module",
    "convert_hybrid_block",
    "convert_model",
    "convert_symbol",
    "init",
    "init_trainer",
    "list_conditional_fp32_ops",
    "list_fp16_ops",
    "list_fp32_ops",
    "list_loss_output_functions",
    "list_lp16_fp32_ops",
    "list_lp16_ops",
    "list_lp16_use_fp32_params",
    "list_widest_type_cast",
    "lists",
    "loss_scaler",
    "scale_loss",
    "unscale",
]


def _list(name: str, key: str, what: str) -> Any:
    def fn(target_dtype: Any) -> Any:
        return lists_of(target_of(name, target_dtype))[key]

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"""{what}

    Parameters
    ----------
    target_dtype : {{'float16', 'bfloat16'}}

    Raises
    ------
    MXNetError
        (also AssertionError) for another dtype.
    """
    return fn


list_lp16_ops = _list("list_lp16_ops", "narrow", "Names of operators that compute in the narrow dtype.")
list_fp32_ops = _list("list_fp32_ops", "float32", "Names of operators that compute in float32.")
list_lp16_fp32_ops = _list(
    "list_lp16_fp32_ops", "either", "Names of operators that compute in the dtype of their inputs."
)
list_conditional_fp32_ops = _list(
    "list_conditional_fp32_ops",
    "conditional",
    "(operator, parameter, values): operators that compute in float32 where a parameter has one of the values.",
)
list_widest_type_cast = _list(
    "list_widest_type_cast", "widest", "Names of operators that compute in the widest dtype of their inputs."
)
list_loss_output_functions = _list(
    "list_loss_output_functions", "losses", "Names of output operators whose gradients are scaled as the loss is."
)
list_lp16_use_fp32_params = _list(
    "list_lp16_use_fp32_params", "keep", "Operator -> inputs that stay float32 in the narrow dtype; None for float16."
)
#: The older name.
list_fp16_ops = list_lp16_ops


def __getattr__(name: str) -> Any:
    if name == "bfloat16":  # what MXNet's module calls the dtype; it needs ml_dtypes
        return as_dtype("bfloat16")
    if name in STATE:
        return STATE[name]()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
