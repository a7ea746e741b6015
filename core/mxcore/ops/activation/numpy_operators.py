"""The operators of ``mx.npx`` that are activations under names of their own, and the check of a constraint."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Str
from ...twins import twin
from ...typing import Array, Call
from ..elementwise.functions import FUNCTIONS
from ..elementwise.numpy_rules import FLOAT32, cast_first, rule_of_one, truth_as

__all__ = ["ACTIVATIONS_OF_NUMPY", "constraint_check"]

_OF = {o.name: o for o in FUNCTIONS}
_sigmoid = twin("_npx_sigmoid", _OF["sigmoid"], body=cast_first(_OF["sigmoid"].body, truth_as(FLOAT32)))
_sigmoid.dtype(rule_of_one(truth_as(FLOAT32)))
ACTIVATIONS_OF_NUMPY = [twin("_npx_relu", _OF["relu"]), _sigmoid]


@op("_npx_constraint_check", inputs="input", msg=Str("Constraint violated."), grad=None)
def constraint_check(k: Call, p: Params, input: Array) -> Array:
    """True, if all elements are; else an error once somebody waits for it.

    Parameters
    ----------
    input : array of bool
        Any shape.
    msg : str
        What the error says.
    """
    if not k.xp.all(input).item():
        raise ValueError(p.msg)
    return k.xp.ones((), np.dtype("bool"))


@constraint_check.shape
def _shape(p: Params, ins: list[Any]) -> list[Any]:
    return [()]


@constraint_check.dtype
def _dtype(p: Params, ins: list[Any]) -> list[Any]:
    return [np.dtype("bool")]
