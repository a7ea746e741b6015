"""Normalization: over layers, groups and instances, to unit length, and across neighbouring channels."""

from __future__ import annotations

from typing import Any

from .._core.infer import merge_shape
from .._core.op import op
from ..parameters import Bool, Enum, Float, Int
from .batch_norm import standardized_gradients, with_statistics
from .dense import given, wide
from .floating import floating
from .rules import axis_of, fits, size_of
from .silent import silent

# -- over axes of each sample --------------------------------------------------------------------------------------


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


def _layer(p: Any, shape: Any) -> _Form:
    axis = axis_of(p.axis, len(shape))
    return _Form(shape, (axis,), axis, shape[:axis] + (1,) + shape[axis + 1 :])


def _group(p: Any, shape: Any) -> _Form:
    if len(shape) < 2:
        raise ValueError(f"data {shape} must have batch and channels")
    if shape[1] != -1 and shape[1] % p.num_groups:
        raise ValueError(f"{shape[1]} channels are no multiple of num_groups={p.num_groups}")
    rest = shape[1] // p.num_groups * size_of(shape[2:])
    return _Form((shape[0], p.num_groups, rest), (2,), 1, (shape[0], p.num_groups))


def _instance(p: Any, shape: Any) -> _Form:
    if len(shape) < 3:
        raise ValueError(f"data {shape} must have batch, channels and spatial dimensions")
    return _Form((*shape[:2], size_of(shape[2:])), (2,), 1, shape[:2])


def _forward(form: Any) -> Any:
    @silent
    def body(k, p, data, gamma, beta):
        f = form(p, data.shape)
        z, mean, std = _standard(k.xp, wide(data).reshape(f.view), f.axes, p.eps)
        z *= f.vector(gamma)
        z += f.vector(beta)
        return z.reshape(data.shape), mean.reshape(f.stats), std.reshape(f.stats)

    return body


def _backward(form: Any) -> Any:
    @silent
    def body(k, p, dy_, data, gamma, mean, std):
        wanted = k.wanted or (True,) * 3
        f = form(p, data.shape)
        ones = tuple(1 if i in f.axes else n for i, n in enumerate(f.view))
        dy, std = wide(dy_).reshape(f.view), wide(std).reshape(ones)
        z = (wide(data).reshape(f.view) - wide(mean).reshape(ones)) / std
        return (
            _through(dy * f.vector(gamma), z, std, f.axes).reshape(data.shape) if wanted[0] else None,
            (dy * z).sum(f.others) if wanted[1] else None,
            dy.sum(f.others) if wanted[2] else None,
        )

    return body


def _forward_shape(form: Any, length: Any) -> Any:
    def rule(p, ins, outs):
        data = merge_shape(ins[0], outs[0])
        if data is None:
            return ins, outs
        stats = form(p, data).stats  # of unknown lengths only these make sense
        return [data, *[(length(p, data),)] * 2], [data, stats, stats]

    return rule


def _backward_shape(form: Any, length: Any) -> Any:
    def rule(p, ins):
        data, gamma, stats = ins[1], (length(p, ins[1]),), form(p, ins[1]).stats
        fits("dy gamma mean std", (ins[0], *ins[2:]), (data, gamma, stats, stats))
        return [data, gamma, gamma]

    return rule


def _family(name: str, form: Any, length: Any, visible: Any, params: dict[str, Any], doc: str) -> tuple[Any, Any]:
    """An operator that normalizes within each sample, and its backward."""

    def rule(F, p, dy, data, gamma, out_mean, out_std, needs):
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
        What the forward pass found.
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
    Behaviour matched: MXNet 1.9.1 ``GroupNorm`` (its parameters are per group). Source: Wu and He, "Group normalization", 2018.
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


# -- to unit length, and across channels ---------------------------------------------------------------------------

#: mode -> the axes to sum over, as parameters of `sum`.
_MODES: dict[str, dict[str, Any]] = {
    "instance": {"axis": (0,), "exclude": True},
    "channel": {"axis": (1,), "exclude": False},
    "spatial": {"axis": (0, 1), "exclude": True},
}


def _unit_grad(F: Any, p: Any, dy: Any, data: Any) -> Any:
    along = {**_MODES[p.mode], "keepdims": True}
    inv = F.rsqrt(F.sum(F.square(data), **along) + p.eps)
    y = F.broadcast_mul(data, inv)
    return F.broadcast_mul(dy - F.broadcast_mul(y, F.sum(dy * y, **along)), inv)


@op(
    "L2Normalization",
    inputs="data",
    labels="inputs gradients outputs",
    mxnet_outputs=2,
    eps=Float(1e-10, ge=0),
    mode=Enum("channel instance spatial", "instance"),
    grad=_unit_grad,
)
@silent
def l2_normalization(k, p, data):
    """Divide by the Euclidean length.

    Parameters
    ----------
    data : array
        Shape (N, C, ...).
    eps : float
        Added to the sum of squares.
    mode : {'instance', 'channel', 'spatial'}
        Lengths are taken over each sample, over axis 1, or over all axes after the second.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``L2Normalization``.
    """
    x = wide(data)
    axes = {"instance": tuple(range(1, x.ndim)), "channel": (1,), "spatial": tuple(range(2, x.ndim))}[p.mode]
    return x / k.xp.sqrt((k.xp.square(x).sum(axes, keepdims=True) if axes else k.xp.square(x)) + p.eps)


def _of_rank(least: int, who: str, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """The shape rule of an output like the input, which has at least so many dimensions."""
    data = merge_shape(ins[0], outs[0])
    if data is not None and len(data) < least:
        raise ValueError(f"{who} needs data of at least {least} dimensions, got {data}")
    return [data], [data]


l2_normalization.shape(
    lambda p, ins, outs: _of_rank({"instance": 1, "channel": 2, "spatial": 3}[p.mode], f"mode {p.mode}", ins, outs)
)


def _near(xp: Any, x: Any, n: int) -> Any:
    """Sums over `n` neighbouring channels around each."""
    half, c = n // 2, x.shape[1]
    total = x.copy()
    for i in range(1, min(half, c - 1) + 1):
        total[:, i:] += x[:, :-i]
        total[:, :-i] += x[:, i:]
    return total


_LRN = dict(alpha=Float(1e-4), beta=Float(0.75), knorm=Float(2.0), nsize=Int(ge=1))


@op(
    "LRN",
    inputs="data",
    labels="inputs outputs",
    mxnet_outputs=2,
    recompute=False,
    **_LRN,
    grad=lambda F, p, dy, data: F._backward_LRN(dy, data, **given(p, _LRN)),
)
def lrn(k, p, data):
    """Local response normalization: divide by a power of the sum of squares of neighbouring channels.

    Parameters
    ----------
    data : array
        Shape (N, C, ...).
    alpha, beta, knorm : float
        ``y = x * (knorm + alpha / nsize * sum(x**2)) ** -beta``.
    nsize : int
        Number of channels in the sum, odd.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``LRN``. Source: Krizhevsky, Sutskever, Hinton, "ImageNet classification", 2012.
    """
    x = wide(data)
    return x * _lrn_base(k.xp, p, x) ** -p.beta


@lrn.shape
def _(p, ins, outs):
    if p.nsize % 2 == 0:
        raise ValueError(f"nsize must be odd, got {p.nsize}")
    return _of_rank(2, "the sum over channels", ins, outs)


@lrn.higher
def _(F, p, dy, data):
    base, x = _near_again(F, p, data * data) * (p.alpha / p.nsize) + p.knorm, data
    power = base**-p.beta
    return dy * power - x * _near_again(F, p, dy * x * power / base) * (2 * p.alpha * p.beta / p.nsize)


def _near_again(F: Any, p: Any, x: Any) -> Any:
    """`_near` by differentiable operators."""
    parts = [x]
    for i in range(1, min(p.nsize // 2, x.shape[1] - 1) + 1):
        edge = F.zeros_like(F.slice_axis(x, axis=1, begin=0, end=i))
        parts += [
            F.concat(edge, F.slice_axis(x, axis=1, begin=0, end=-i), dim=1),
            F.concat(F.slice_axis(x, axis=1, begin=i, end=None), edge, dim=1),
        ]
    return F.add_n(*parts)


def _lrn_base(xp: Any, p: Any, x: Any) -> Any:
    return p.knorm + (p.alpha / p.nsize) * _near(xp, xp.square(x), p.nsize)


@op("_backward_LRN", inputs="dy data", **_LRN)
def backward_lrn(k, p, dy_, data):
    """Gradient of `LRN` with respect to its data.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data : array
        The input.
    alpha, beta, knorm, nsize
        As in `LRN`.
    """
    x, dy = wide(data), wide(dy_)
    base = _lrn_base(k.xp, p, x)
    power = base**-p.beta
    return dy * power - (2 * p.alpha * p.beta / p.nsize) * x * _near(k.xp, dy * x * power / base, p.nsize)


for _op in (l2_normalization, lrn):
    _op.dtype(floating())
for _op in (lrn, backward_lrn):
    _op.cost(lambda p, ins, outs: (p.nsize + 10) * size_of(ins[0]))
