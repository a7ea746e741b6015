"""The first versions of convolution, pooling and batch normalization, which old models still name."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Enum, Shape
from ...typing import Array, Call
from ..common.bodies import wide
from ..common.gradients import given, linear_grad
from ..common.rules import floating, size_of
from ..convolution.operators import convolution
from ..convolution.windows import Geometry, geometry, padded, windows
from ..normalization.sync_batch_norm import PLAIN, batch_family

__all__ = ["POOLING_PARAMS", "padded_data", "pooling_geometry", "pooling_v1"]


# -- batch normalization ----------------------------------------------------------------------------------------------

BATCH_NORM_V1 = batch_family(
    "BatchNorm_v1",
    PLAIN,
    """Normalize each channel by its mean and variance over the batch, then scale and shift it.

    The first version of `BatchNorm`: channels are on the second axis, and the variance is returned itself.

    Parameters
    ----------
    data : array
        Shape (N, C, ...).
    gamma, beta : array
        Shape (C,): scale and shift. Float32 where the data is float16, as the moving statistics.
    moving_mean, moving_var : array
        Shape (C,), auxiliary states; they follow in the backward pass of training.
    eps : float
        Added to the variance.
    momentum : float
        Share of the old value in an update of the moving statistics.
    fix_gamma : bool
        Take gamma as 1; its gradient is 0.
    use_global_stats : bool
        Use the moving statistics in training too, and leave them as they are.
    output_mean_var : bool
        Also return the mean and the variance that were used, each of shape (C,).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``BatchNorm_v1``, except that `gamma` itself is never overwritten with ones.
    """,
)

# -- convolution ------------------------------------------------------------------------------------------------------

_CONV = {**convolution.params, "layout": Enum("NCDHW NCHW NDHWC NHWC", None)}


@op(
    "Convolution_v1",
    inputs="data weight bias[not no_bias]",
    labels="outputs",
    **_CONV,
    grad=linear_grad("Convolution", _CONV),
)
def convolution_v1(k: Call, p: Params, data: Array, weight: Array, bias: Array = None) -> Array:
    """Convolve over two or three spatial dimensions: the first version of `Convolution`.

    Parameters
    ----------
    data : array
        Shape (N, C, \\*spatial), or as `layout` says.
    weight : array
        Shape (num_filter, C / num_group, \\*kernel); with channels last (num_filter, \\*kernel, C / num_group).
    bias : array
        Shape (num_filter,); absent with `no_bias`.
    kernel, stride, dilate, pad, num_filter, num_group, workspace, no_bias, cudnn_tune, cudnn_off, layout
        As in `Convolution`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``Convolution_v1``.
    """
    return convolution.body(k, p, data, weight, bias)  # type: ignore[misc]


@convolution_v1.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if len(p.kernel) not in (2, 3):
        raise ValueError(f"kernel {p.kernel} must have 2 or 3 numbers; Convolution also takes 1")
    found: tuple[list[Any], list[Any]] = convolution.shape_rule(p, ins, outs)
    return found


convolution_v1.dtype(floating())
convolution_v1.cost(convolution.cost_rule)
convolution_v1.attach(flops=True)

# -- pooling ----------------------------------------------------------------------------------------------------------

POOLING_PARAMS = dict(
    kernel=Shape(()),
    pool_type=Enum("avg max sum", "max"),
    global_pool=Bool(False),
    pooling_convention=Enum("full valid", "valid"),
    stride=Shape(()),
    pad=Shape(()),
)


def pooling_geometry(p: Params, shape: tuple[int, ...]) -> tuple[Geometry, tuple[int, ...]]:
    """How windows lie on data of this shape, and how many there are along each axis; -1 stays unknown."""
    spatial = tuple(shape[2:])
    if len(shape) not in (4, 5):
        raise ValueError(f"data {shape} must have batch, channels and 2 or 3 spatial dimensions")
    if p.global_pool:
        return geometry(tuple(max(n, 1) for n in spatial), (), (), ()), (1,) * len(spatial)
    if len(p.kernel) != len(spatial):
        raise ValueError(f"kernel {p.kernel} must have {len(spatial)} numbers for data {shape}")
    g = geometry(p.kernel, p.stride, (), p.pad)
    found = list(g.out(spatial))  # refuses windows larger than the data
    if p.pooling_convention == "full":
        for i, (n, k, s, q) in enumerate(zip(spatial, g.kernel, g.stride, g.pad)):
            if n != -1:
                found[i] = (n + 2 * q - k + s - 1) // s + 1
    return g, tuple(found)


def _whole(g: Geometry, size: tuple[int, ...], spatial: tuple[int, ...]) -> tuple[int, ...]:
    """Elements beyond the padding that the last windows reach over."""
    return tuple(max((o - 1) * s + k - n - 2 * q, 0) for n, o, k, s, q in zip(spatial, size, g.kernel, g.stride, g.pad))


def padded_data(xp: Any, p: Params, x: Any, g: Geometry, size: tuple[int, ...], beyond: Any) -> Any:
    """The data as the windows see it: zeros as padding, `beyond` where there is not even that."""
    return padded(xp, padded(xp, x, g.pad, g.pad), (0,) * len(g.pad), _whole(g, size, x.shape[2:]), beyond)


@op(
    "Pooling_v1",
    inputs="data",
    labels="inputs outputs",
    **POOLING_PARAMS,
    grad=lambda F, p, dy, data, y: F._backward_Pooling_v1(dy, data, y, **given(p, POOLING_PARAMS)),
)
def pooling_v1(k: Call, p: Params, data: Array) -> Array:
    """Reduce windows of two or three spatial dimensions to one value each: the first version of `Pooling`.

    Padding is zeros, which take part: in averages, and in maxima too. Averages always divide by the size of the kernel.

    Parameters
    ----------
    data : array
        Shape (N, C, \\*spatial).
    kernel : tuple of int
        Lengths of the window, one per spatial dimension; not needed with `global_pool`.
    pool_type : {'max', 'avg', 'sum'}
        What to compute.
    global_pool : bool
        One window over everything; kernel, stride and pad are ignored.
    pooling_convention : {'valid', 'full'}
        The number of windows in n padded elements: ``floor((n - k) / s) + 1`` or ``ceil((n - k) / s) + 1``.
    stride, pad : tuple of int
        Step between windows (1), zeros at both ends (0).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``Pooling_v1``. Its gradient of ``max`` goes to all of several equal maxima.
    """
    xp, x = k.xp, wide(data)
    g, size = pooling_geometry(p, x.shape)
    if not x.size:
        return xp.zeros((*x.shape[:2], *size), x.dtype)
    most = p.pool_type == "max"
    full = padded_data(xp, p, x, g, size, -xp.inf if most else 0)
    total: Any = None
    for _, see in windows(g, size):
        part = full[(slice(None),) * 2 + see]
        if total is None:
            total = part.copy()
        elif most:
            xp.maximum(total, part, out=total)
        else:
            total += part
    if p.pool_type == "avg":
        total /= total.dtype.type(size_of(g.kernel))
    return total


@pooling_v1.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data, out = ins[0], outs[0]
    if data is None:
        return ins, outs
    size = pooling_geometry(p, data)[1]
    if out is not None and len(out) == len(data):
        data = (*(n if d == -1 else d for d, n in zip(data[:2], out)), *data[2:])
    return [data], [(*data[:2], *size)]


pooling_v1.dtype(floating())

for _op in (pooling_v1,):
    _op.cost(lambda p, ins, outs: size_of(ins[0]) * (size_of(p.kernel) + 1))
