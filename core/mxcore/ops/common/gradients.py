"""Gradient rules that several operators share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core.op import Op
from ..._core.params import Params
from ...typing import Call, Operand, Operators
from .bodies import is_half

__all__ = [
    "given",
    "linear_grad",
    "linear_grad_grad",
    "narrow",
    "reshaped",
    "spread",
    "standardized_gradients",
    "summed",
    "widen",
]


def given(p: Params, names: Any) -> dict[str, Any]:
    """The values of the named parameters, to hand them to another operator."""
    return {n: getattr(p, n) for n in names}


def linear_grad(name: str, params: dict[str, Any]) -> Any:
    """The gradient rule of an operator that is linear in data and in weight: one call of ``_backward_<name>``."""

    def rule(F: Operators, p: Params, dy: Operand, data: Operand, weight: Operand, needs: Sequence[bool]) -> Any:
        return getattr(F, f"_backward_{name}")(dy, data, weight, wanted=tuple(needs), **given(p, params))

    return rule


def linear_grad_grad(name: str, params: dict[str, Any], bias_axis: Callable[[Params, int], int]) -> Any:
    """The gradient rule of ``_backward_<name>``: bilinearity makes it three more calls of the same two operators.

    `bias_axis` is the facet `bias` of the operator; asked for no dimensions, it counts the last one as -1.
    """

    def rule(F: Operators, p: Params, dys: Operand, dy_: Operand, data: Operand, weight: Operand) -> Any:
        forward, backward = getattr(F, name), getattr(F, f"_backward_{name}")
        kw = {**given(p, params), "no_bias": True}
        # None for what the first backward pass did not compute.
        g_data, g_weight, g_bias = (*dys, None)[:3]
        terms = [
            forward(g_data, weight, **kw) if g_data is not None else None,
            forward(data, g_weight, **kw) if g_weight is not None else None,
            F._bias_like(g_bias, dy_, axis=bias_axis(p, 0)) if g_bias is not None else None,
        ]
        return (
            _total(terms),
            None if g_weight is None else backward(dy_, data, g_weight, wanted=(True, False), **kw)[0],
            None if g_data is None else backward(dy_, g_data, weight, wanted=(False, True), **kw)[1],
        )

    return rule


def _total(terms: list[Any]) -> Any:
    found = None
    for x in terms:
        if x is not None:
            found = x if found is None else found + x
    return found


def spread(
    reader: str,
    params: dict[str, Any],
    place: Callable[[Any, tuple[int, ...]], Any],
    shape: Callable[..., Any],
    where: str,
) -> Op:
    """The gradient of an operator that reads a part of an array: zeros with the part in its place.

    Parameters
    ----------
    reader : str
        The operator, ``_<reader>_spread`` will be its gradient.
    params : dict of str to Param
        Its parameters.
    place : callable
        ``(p, shape of the array) -> index of the part``.
    shape : callable
        The shape rule.
    where : str
        The part, for the documentation.
    """

    def body(k: Call, p: Params, data: Any, like: Any) -> Any:
        out = k.xp.zeros(tuple(like.shape), data.dtype)
        out[place(p, out.shape)] = data
        return out

    made = Op(
        f"_{reader.lstrip('_')}_spread",
        body,
        inputs="data like~",
        params=params,
        grad=lambda F, p, dy: (getattr(F, reader)(dy, **given(p, params)), None),
        doc=f"""Zeros like `like` with `data` {where}: the gradient of `{reader}`.

    Parameters
    ----------
    data : array
        Of the shape of the part.
    like : array
        Only its shape is used.
    {", ".join(params)}
        As in `{reader}`.
    """,
    )
    made.shape(shape)
    return made


def standardized_gradients(F: Operators, dy: Any, data: Any, gamma: Any, f: Any, eps: float) -> tuple[Any, Any, Any]:
    """Gradients of a normalization, of differentiable operators: by data, gamma (None: it is fixed at 1) and beta.

    `f` tells how the data is seen: ``view``, the ``axes`` to normalize over, the axis ``along`` which gamma and beta
    lie.
    """
    x, dy = reshaped(F, data, f.view), reshaped(F, dy, f.view)
    d = F.broadcast_sub(x, F.mean(x, axis=f.axes, keepdims=True))
    inv = F.rsqrt(F.mean(F.square(d), axis=f.axes, keepdims=True) + eps)
    z = F.broadcast_mul(d, inv)
    g = (
        dy
        if gamma is None
        else F.broadcast_mul(dy, reshaped(F, gamma, [-1 if i == f.along else 1 for i in range(len(f.view))]))
    )
    along = F.broadcast_mul(z, F.mean(g * z, axis=f.axes, keepdims=True))
    dx = F.broadcast_mul(F.broadcast_sub(g, F.mean(g, axis=f.axes, keepdims=True)) - along, inv)
    others = tuple(i for i in range(len(f.view)) if i != f.along)
    d_gamma, d_beta = summed(F, dy * z, others), summed(F, dy, others)
    return F.Cast(F.Reshape(dx, shape=data.shape), dtype=data.dtype), d_gamma, d_beta


def summed(F: Operators, x: Any, axes: tuple[int, ...] | None, **kw: Any) -> Any:
    """The sum over axes, which may be none at all: those `sum` would take for all."""
    return x if axes == () else F.sum(x, axis=axes, **kw)


def reshaped(F: Operators, x: Any, shape: Any) -> Any:
    """The values in another shape, half precision as float32."""
    return F.Reshape(widen(F, x), shape=shape)


def _known_wide(x: Any) -> bool:
    """Whether a value is known to be of no half precision; of values of graphs nothing is known."""
    dtype = getattr(x, "dtype", None)
    return dtype is not None and not is_half(np.dtype(dtype))


def widen(F: Operators, x: Any) -> Any:
    """Half precision as float32, in a rule whose steps would otherwise be rounded one by one."""
    return x if _known_wide(x) else F.amp_cast(x, dtype="float32")


def narrow(F: Operators, x: Any, like: Any) -> Any:
    """What a rule computed from :func:`widen` values, in the dtype of `like`."""
    return x if _known_wide(like) else F._cast_like(x, like)
