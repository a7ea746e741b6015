"""Functions whose gradient is another function's: straight-through estimators, a factor on the gradient alone."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...elementwise import scalar, unary
from ...parameters import Bool, Float
from ...typing import Array, Call, Operators

__all__ = ["ESTIMATORS"]


def _rounded(xp: Any, x: Any) -> Any:
    """Halves away from zero, in as few passes as can be."""
    if x.dtype.kind in "iub":
        return x.copy()
    y = xp.sign(x)
    y *= x.dtype.type(0.5)
    y += x
    return xp.trunc(y)


def _straight(F: Operators, dy: Any) -> Any:
    return dy


#: Straight-through estimators, and the multiplier's backward, which is public in MXNet.
ESTIMATORS = [
    unary(
        "_contrib_round_ste",
        _rounded,
        grad=_straight,
        doc="Round to the nearest integer, halves away from zero; the gradient passes unchanged.\n\n"
        'Source: Bengio et al., "Estimating or propagating gradients through stochastic neurons", 2013.',
    ),
    unary(
        "_contrib_sign_ste",
        "sign",
        grad=_straight,
        expr="sign(x)",
        doc="The sign, -1, 0 or 1; the gradient passes unchanged.\n\n"
        'Source: Bengio et al., "Estimating or propagating gradients through stochastic neurons", 2013.',
    ),
    scalar(
        "_contrib_backward_gradientmultiplier",
        "multiply",
        expr="x * s",
        grad=lambda F, p, dy: F._contrib_backward_gradientmultiplier(dy, scalar=p.scalar),
        doc="The backward of `gradientmultiplier`: its input times a number.",
    ),
]


@op(
    "_contrib_gradientmultiplier",
    inputs="data",
    params={"scalar": Float(1.0, dynamic=True), "is_int": Bool(True)},
    alias="data->output",
    grad=lambda F, p, dy: F._contrib_backward_gradientmultiplier(dy, scalar=p.scalar),
)
def gradient_multiplier(k: Call, p: Params, data: Array) -> Array:
    """A copy, whose gradient is multiplied by a number: -1 reverses it, 0.1 slows the layers below down.

    Parameters
    ----------
    data : array
    scalar : float
        The factor on the gradient.
    is_int : bool
        Whether the number was given as an int; has no effect.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gradientmultiplier``. Source: Ganin and Lempitsky, "Unsupervised domain adaptation
    by backpropagation", 2015.
    """
    return data.copy()
