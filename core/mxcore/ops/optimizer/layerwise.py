"""Optimizer updates of layers as wholes: LAMB, LARS, AdamW."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._core.op import Op, op
from ..._core.params import Params
from ...parameters import Bool, Float, Int, Shape
from ...typing import Array, Call
from .single import adam_moments, alike, clipped, docstring_of, master_dtypes, per_step, rescaled, weight_dtype

__all__ = [
    "ADAMW_PARAMS",
    "BETAS",
    "LAMB",
    "StepCounts",
    "adamw_step",
    "factor_shape",
    "lamb_direction",
    "norm",
    "scaled_by_norms",
]


_F32 = np.dtype("float32")


class StepCounts(Shape):
    """Numbers of steps, which are counted from 1."""

    element = staticmethod(Int(ge=1).convert)


# -- LAMB: the direction, then the step by the ratio of two norms -------------------------------------------------
def lamb_direction(xp: Any, p: Params, t: Any, wd: Any, w: Any, g: Any, mean: Any, var: Any) -> Any:
    """The direction of a LAMB step, and the new moments."""
    mean, var = adam_moments(p, rescaled(xp, p, g), mean, var)
    m, v = (mean / (1 - p.beta1**t), var / (1 - p.beta2**t)) if p.bias_correction else (mean, var)
    return m / (xp.sqrt(v) + p.epsilon) + wd * w, mean, var


def scaled_by_norms(xp: Any, p: Params, lr: Any, w: Any, g: Any, r1: Any, r2: Any) -> Any:
    """Scale the step by the ratio of the norms r1 (bounded) and r2; by 1 where one of them is 0."""
    if p.lower_bound >= 0:
        r1 = xp.maximum(r1, p.lower_bound)
    if p.upper_bound >= 0:
        r1 = xp.minimum(r1, p.upper_bound)
    bad = (r1 == 0) | (r2 == 0)
    return w - lr * xp.where(bad, 1.0, r1 / xp.where(bad, 1.0, r2)).astype(w.dtype) * g


def norm(xp: Any, x: Any) -> Any:
    """The Euclidean norm of all elements."""
    return xp.sqrt((x * x).sum())


BETAS = {"beta1": per_step(0.9), "beta2": per_step(0.999)}
_PHASE1 = {
    **BETAS,
    "epsilon": per_step(1e-6),
    "t": Int(ge=1, dynamic=True),
    "bias_correction": Bool(True),
    "wd": per_step(),
    "rescale_grad": per_step(1.0),
    "clip_gradient": per_step(-1.0),
}
_PHASE2 = {"lr": per_step(), "lower_bound": per_step(-1.0), "upper_bound": per_step(-1.0)}


def _phase1(k: Call, p: Params, weight: Array, grad: Array, mean: Array, var: Array, weight32: Array = None) -> Any:
    w = weight if weight32 is None else weight32
    return lamb_direction(k.xp, p, p.t, p.wd, w, grad.astype(w.dtype), mean, var)


def _phase2(k: Call, p: Params, weight: Array, g: Array, r1: Array, r2: Array) -> Any:
    return scaled_by_norms(k.xp, p, p.lr, weight, g, r1, r2)


def _phase2_mixed(k: Call, p: Params, weight: Array, g: Array, r1: Array, r2: Array, weight32: Array) -> Any:
    new = scaled_by_norms(k.xp, p, p.lr, weight32, g, r1, r2)
    return new.astype(weight.dtype), new


def _phases() -> Iterator[Any]:
    first = ["weight", "grad", "mean", "var"]
    head = "The direction of a step of LAMB; a second operator scales it. The output is the direction."
    for mixed in (False, True):
        names = [*first, "weight32"] if mixed else first
        o = Op(
            "mp_" * mixed + "lamb_update_phase1",
            _phase1,
            inputs=" ".join(names),
            mutates="mean var",
            params=_PHASE1,
            doc=docstring_of(head, names, _PHASE1),
        )
        if mixed:
            o.dtype(lambda p, ins, outs: (master_dtypes(p, ins, [])[0], [_F32]))
        else:
            o.dtype(alike)
        yield o
    second = ["weight", "g", "r1", "r2"]
    head = "A step of LAMB along `g`, scaled by the ratio of r1 (norm of the weight) to r2 (norm of `g`)."
    for mixed in (False, True):
        names = [*second, "weight32"] if mixed else second
        o = Op(
            "mp_" * mixed + "lamb_update_phase2",
            _phase2_mixed if mixed else _phase2,
            inputs=" ".join(names),
            params=_PHASE2,
            mutates="weight32" if mixed else "",
            alias="weight->output",
            doc=docstring_of(head, names, _PHASE2),
        )
        o.shape(_phase2_shape)
        if mixed:
            o.dtype(lambda p, ins, outs: ([weight_dtype(ins[0] or outs[0]), *[_F32] * 4], [ins[0] or outs[0]]))
        else:
            o.dtype(alike)
        yield o


def _phase2_shape(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    w = ins[0] or ins[1] or outs[0]
    return [w, w, (1,), (1,), *([w] if len(ins) > 4 else [])], [w]


LAMB = [*_phases()]


def adamw_step(xp: Any, p: Params, eta: Any, lr: Any, wd: Any, scale: Any, w: Any, g: Any, mean: Any, var: Any) -> Any:
    """`scale` multiplies the gradient; where it is zero or not finite, the step is left out."""
    scale = scale.reshape(-1)[:1]
    fine = xp.isfinite(scale) & (scale != 0)
    g = clipped(xp, p, xp.where(fine, scale, 1.0).astype(w.dtype) * g)
    new_mean, new_var = adam_moments(p, g, mean, var)
    new = w - eta * (lr * new_mean / (xp.sqrt(new_var) + p.epsilon) + wd * w)
    return xp.where(fine, new, w), xp.where(fine, new_mean, mean), xp.where(fine, new_var, var)


ADAMW_PARAMS = {
    "lr": per_step(),
    **BETAS,
    "epsilon": per_step(1e-8),
    "wd": per_step(0.0),
    "eta": per_step(),
    "clip_gradient": per_step(-1.0),
}


def _adamw_body(k: Call, p: Params, weight: Array, grad: Array, mean: Array, var: Array, rescale_grad: Array) -> Any:
    return adamw_step(k.xp, p, p.eta, p.lr, p.wd, rescale_grad, weight, grad, mean, var)


def _adamw_mixed(
    k: Call, p: Params, weight: Array, grad: Array, mean: Array, var: Array, weight32: Array, rescale_grad: Array
) -> Any:
    new, mean, var = adamw_step(k.xp, p, p.eta, p.lr, p.wd, rescale_grad, weight32, grad.astype(_F32), mean, var)
    return new.astype(weight.dtype), mean, var, new


def factor_shape(shape: Any) -> Any:
    """The shape of `rescale_grad` as it is given, from which the first number is taken.

    Raises
    ------
    ValueError
        Where there is none.
    """
    if shape is not None and 0 in shape:
        raise ValueError(f"rescale_grad must hold a number, got an array of shape {tuple(shape)}")
    return shape


def _adamw_shape(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    w = ins[0] or outs[0]
    return [w] * (len(ins) - 1) + [factor_shape(ins[-1])], [w]


def _adamw_ops() -> Iterator[Any]:
    for mixed in (False, True):
        names = ["weight", "grad", "mean", "var", *(["weight32"] if mixed else [])]
        o = Op(
            "_mp_adamw_update" if mixed else "_adamw_update",
            _adamw_mixed if mixed else _adamw_body,
            params=ADAMW_PARAMS,
            alias="weight->output",
            inputs=" ".join([*names, "rescale_grad"]),
            mutates=" ".join(names[2:]),
            doc=docstring_of(
                "A step of AdamW; left out where `rescale_grad` is zero or not finite.",
                [*names, "rescale_grad"],
                ADAMW_PARAMS,
            ),
        )
        o.shape(_adamw_shape)
        rule = master_dtypes if mixed else alike
        o.dtype(lambda p, ins, outs, rule=rule: _but_last(rule, p, ins, outs))
        yield o


def _but_last(rule: Any, p: Any, ins: list[Any], outs: list[Any]) -> Any:
    found, outs = rule(p, ins[:-1], outs)
    return [*found, _F32], outs


ADAMW = [*_adamw_ops()]


@op(
    "multi_lars",
    inputs="lrs weights_sum_sq grads_sum_sq wds",
    alias="lrs->output",
    eta=Float(),
    eps=Float(),
    rescale_grad=per_step(1.0),
)
def multi_lars(k: Call, p: Params, lrs: Array, weights_sum_sq: Array, grads_sum_sq: Array, wds: Array) -> Array:
    """Learning rates of LARS: scaled by the ratio of the norms of weights and gradients; as they are where one is zero.

    Parameters
    ----------
    lrs : array (n,)
        Learning rates of the layers.
    weights_sum_sq, grads_sum_sq : array (n,)
        Sums of squares of the weights and of the gradients.
    wds : array (n,)
        Weight decays.
    eta : float
        Factor on the ratio.
    eps : float
        Added to the divisor.
    rescale_grad : float
        Factor on the gradients.
    """
    xp = k.xp
    w, g = xp.sqrt(weights_sum_sq), xp.sqrt(grads_sum_sq) * p.rescale_grad
    return xp.where((w > 0) & (grads_sum_sq > 0), lrs * p.eta * w / (g + wds * w + p.eps), lrs)


multi_lars.dtype(alike)


@op(
    "multi_sum_sq",
    inputs="data*",
    count="num_arrays",
    num_arrays=Int(ge=1, le=1 << 16),
    arg_names=lambda p: [f"array_{i}" for i in range(p.num_arrays)],
)
def multi_sum_sq(k: Call, p: Params, *data: Array) -> Array:
    """The sum of squares of each array, in one float32 array.

    Parameters
    ----------
    data : arrays
    num_arrays : int
    """
    return k.xp.stack([(x.astype(_F32) * x.astype(_F32)).sum() for x in data])


multi_sum_sq.shape(lambda p, ins, outs: (ins, [(p.num_arrays,)]))
multi_sum_sq.dtype(lambda p, ins, outs: (alike(p, ins, [])[0], [_F32]))
