"""Normalization within samples: over layers, groups and instances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Float, Int
from ...typing import Array, Call, Operand, Operators
from ..common.bodies import is_half, silent, wide
from ..common.gradients import given, standardized_gradients
from ..common.rules import axis_of, fits, floating, size_of
from .batch_norm import with_statistics

__all__: list[str] = []


def _standard(xp: Any, x: Any, axes: Any, eps: float) -> tuple[Any, Any, Any]:
    """Standardized values, mean and standard deviation over `axes`, which are kept with length 1."""
    n = max(size_of(x.shape[a] for a in axes), 1)
    mean = x.sum(axes, keepdims=True) / n
    d = x - mean
    std = xp.sqrt(xp.square(d).sum(axes, keepdims=True) / n + eps)
    d /= std
    return d, mean, std


def _through(g: Any, z: Any, std: Any, axes: Any) -> Any:
    """Gradient through :func:`_standard`: `g` arrives at the standardized values `z`."""
    n = max(size_of(z.shape[a] for a in axes), 1)
    return (g - g.sum(axes, keepdims=True) / n - z * ((g * z).sum(axes, keepdims=True) / n)) / std


class _Form:
    """How one of these operators sees its data: as an array to normalize over `axes`, with parameters along `along`."""

    __slots__ = ("view", "axes", "along", "stats")

    def __init__(self, view: tuple[int, ...], axes: tuple[int, ...], along: int, stats: tuple[int, ...]) -> None:
        self.view, self.axes, self.along, self.stats = view, axes, along, stats

    def vector(self, v: Any) -> Any:
        """Parameters, to be broadcast over the view."""
        return wide(v).reshape(tuple(-1 if i == self.along else 1 for i in range(len(self.view))))

    @property
    def others(self) -> tuple[int, ...]:
        return tuple(i for i in range(len(self.view)) if i != self.along)


def _layer(p: Params, shape: Any) -> _Form:
    axis = axis_of(p.axis, len(shape))
    return _Form(shape, (axis,), axis, shape[:axis] + (1,) + shape[axis + 1 :])


def _group(p: Params, shape: Any) -> _Form:
    if len(shape) < 2:
        raise ValueError(f"data {shape} must have batch and channels")
    if shape[1] != -1 and shape[1] % p.num_groups:
        raise ValueError(f"{shape[1]} channels are no multiple of num_groups={p.num_groups}")
    rest = shape[1] // p.num_groups * size_of(shape[2:])
    return _Form((shape[0], p.num_groups, rest), (2,), 1, (shape[0], p.num_groups))


def _instance(p: Params, shape: Any) -> _Form:
    if len(shape) < 3:
        raise ValueError(f"data {shape} must have batch, channels and spatial dimensions")
    return _Form((*shape[:2], size_of(shape[2:])), (2,), 1, shape[:2])


def _forward(form: Any) -> Any:
    @silent
    def body(k: Call, p: Params, data: Array, gamma: Array, beta: Array) -> Any:
        f = form(p, data.shape)
        z, mean, std = _standard(k.xp, wide(data).reshape(f.view), f.axes, p.eps)
        z *= f.vector(gamma)
        z += f.vector(beta)
        return z.reshape(data.shape), mean.reshape(f.stats), std.reshape(f.stats)

    return body


def _backward(form: Any) -> Any:
    @silent
    def body(k: Call, p: Params, dy_: Array, data: Array, gamma: Array, mean: Array, std: Array) -> Any:
        wanted = k.wanted or (True,) * 3
        f = form(p, data.shape)
        ones = tuple(1 if i in f.axes else n for i, n in enumerate(f.view))
        dy, x = wide(dy_).reshape(f.view), wide(data).reshape(f.view)
        if is_half(mean.dtype):  # what was handed out is rounded: a mean may be as far off as the values differ
            z, _, std = _standard(k.xp, x, f.axes, p.eps)
        else:
            std = std.reshape(ones)
            z = (x - mean.reshape(ones)) / std
        return (
            _through(dy * f.vector(gamma), z, std, f.axes).reshape(data.shape) if wanted[0] else None,
            (dy * z).sum(f.others) if wanted[1] else None,
            dy.sum(f.others) if wanted[2] else None,
        )

    return body


def _forward_shape(form: Any, length: Any) -> Any:
    def rule(p: Params, ins: list[Any], outs: list[Any]) -> Any:
        data = merge_shape(ins[0], outs[0])
        if data is None:
            return ins, outs
        stats = form(p, data).stats  # of unknown lengths only these make sense
        return [data, *[(length(p, data),)] * 2], [data, stats, stats]

    return rule


def _backward_shape(form: Any, length: Any) -> Any:
    def rule(p: Params, ins: list[Any]) -> Any:
        data, gamma, stats = ins[1], (length(p, ins[1]),), form(p, ins[1]).stats
        fits("dy gamma mean std", (ins[0], *ins[2:]), (data, gamma, stats, stats))
        return [data, gamma, gamma]

    return rule


def _family(name: str, form: Any, length: Any, visible: Any, params: dict[str, Any], doc: str) -> tuple[Any, Any]:
    """An operator that normalizes within each sample, and its backward."""

    def rule(
        F: Operators,
        p: Params,
        dy: Operand,
        data: Operand,
        gamma: Operand,
        out_mean: Operand,
        out_std: Operand,
        needs: Sequence[bool],
    ) -> Any:
        return getattr(F, f"_backward_{name}")(
            dy, data, gamma, out_mean, out_std, wanted=tuple(needs), **given(p, params)
        )

    forward = op(
        name,
        inputs="data gamma beta",
        outputs="output mean std",
        visible=visible,
        labels="outputs",
        grad=rule,
        doc=doc,
        **params,
    )(_forward(form))
    forward.higher(lambda F, p, dy, data, gamma: standardized_gradients(F, dy, data, gamma, form(p, data.shape), p.eps))
    forward.shape(_forward_shape(form, length))
    forward.dtype(floating())
    forward.cost(lambda p, ins, outs: 5 * size_of(ins[0]))
    backward = op(
        f"_backward_{name}",
        inputs="dy data gamma mean std",
        outputs="data gamma beta",
        doc=_BACKWARD_DOC.format(name, ", ".join(params)),
        **params,
    )(_backward(form))
    backward.shape(_backward_shape(form, length))
    backward.cost(lambda p, ins, outs: 8 * size_of(ins[1]))
    return forward, backward


_BACKWARD_DOC = """Gradients of `{0}` with respect to data, gamma and beta.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data, gamma : array
        The inputs.
    mean, std : array
        What the forward pass found; of half precision they are rounded, and computed again.
    {1}
        As in `{0}`.
    """


LAYER_NORM = _family(
    "LayerNorm",
    _layer,
    lambda p, s: s[axis_of(p.axis, len(s))],
    with_statistics,
    dict(axis=Int(-1), eps=Float(1e-5, ge=0), output_mean_var=Bool(False)),
    """Normalize along one axis by its mean and variance, then scale and shift.

    Parameters
    ----------
    data : array
        Any shape.
    gamma, beta : array
        Scale and shift, as long as the axis.
    axis : int
        The axis to normalize over.
    eps : float
        Added to the variance.
    output_mean_var : bool
        Also return mean and standard deviation, with the axis kept as length 1.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``LayerNorm``. Source: Ba, Kiros, Hinton, "Layer normalization", 2016.
    """,
)

GROUP_NORM = _family(
    "GroupNorm",
    _group,
    lambda p, s: p.num_groups,
    with_statistics,
    dict(num_groups=Int(1, ge=1), eps=Float(1e-5, ge=0), output_mean_var=Bool(False)),
    """Normalize groups of channels of each sample, then scale and shift each group.

    Parameters
    ----------
    data : array
        Shape (N, C, ...).
    gamma, beta : array
        Shape (num_groups,): scale and shift.
    num_groups : int
        Number of groups; divides C.
    eps : float
        Added to the variance.
    output_mean_var : bool
        Also return mean and standard deviation, each of shape (N, num_groups).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``GroupNorm`` (its parameters are per group). Source: Wu and He, "Group
    normalization", 2018.
    """,
)

INSTANCE_NORM = _family(
    "InstanceNorm",
    _instance,
    lambda p, s: s[1] if len(s) > 1 else -1,
    1,
    dict(eps=Float(1e-3, ge=0)),
    """Normalize each channel of each sample over its spatial dimensions, then scale and shift.

    Parameters
    ----------
    data : array
        Shape (N, C, \\*spatial).
    gamma, beta : array
        Shape (C,): scale and shift.
    eps : float
        Added to the variance.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``InstanceNorm``. Source: Ulyanov et al., "Instance normalization", 2016.
    """,
)
INSTANCE_NORM[0].attach(labels="gradients outputs")
