"""Enlarging images: by repetition, or by a (learned) bilinear kernel."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Enum, Int
from ...typing import Array, Call
from ..common.bodies import wide
from ..common.rules import floating, size_of
from ..convolution.windows import conv_data, geometry

__all__ = ["UPSAMPLING_PARAMS", "bilinear_params", "up_sampling"]


UPSAMPLING_PARAMS = dict(
    scale=Int(ge=1),
    num_filter=Int(0, ge=0),
    sample_type=Enum("bilinear nearest"),
    multi_input_mode=Enum("concat sum", "concat"),
    num_args=Int(ge=1, le=1 << 16),
    workspace=Int(512, ge=0),
)


def bilinear_params(p: Params) -> dict[str, Any]:
    """The transposed convolution that a bilinear enlargement is."""
    if p.num_filter < 1:
        raise ValueError("sample_type bilinear needs num_filter, the number of channels")
    s = p.scale
    return {
        "kernel": (2 * s - s % 2,) * 2,
        "stride": (s, s),
        "pad": (s // 2,) * 2,
        "num_filter": p.num_filter,
        "num_group": p.num_filter,
        "no_bias": True,
    }


def _names(p: Params) -> list[str]:
    return ["data", "weight"] if p.sample_type == "bilinear" else [f"arg{i}" for i in range(p.num_args)]


@op("UpSampling", inputs="data*", labels="inputs outputs", arg_names=_names, **UPSAMPLING_PARAMS)
def up_sampling(k: Call, p: Params, *data: Array) -> Array:
    """Enlarge images.

    Parameters
    ----------
    data : arrays
        For ``nearest`` images (N, C, H, W), each enlarged to `scale` times the first one; for ``bilinear`` one image
        and a kernel of shape (C, 1, k, k) with ``k = 2 * scale - scale % 2``.
    scale : int
        How many times larger.
    num_filter : int
        For ``bilinear``: the number of channels.
    sample_type : {'nearest', 'bilinear'}
    multi_input_mode : {'concat', 'sum'}
        What to do with several images: join their channels or add them.
    num_args : int
        How many; counted for you.
    workspace
        A hint of MXNet's own backends; no effect.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``UpSampling``.
    """
    xp = k.xp
    if p.sample_type == "bilinear":
        g = bilinear_params(p)
        x, w = wide(data[0]), wide(data[1])
        return conv_data(
            xp,
            x,
            w,
            geometry(g["kernel"], g["stride"], (), g["pad"], g["num_group"]),
            tuple(n * p.scale for n in x.shape[2:]),
        )
    height = data[0].shape[2] * p.scale
    parts = [_repeated(xp, x, height // max(x.shape[2], 1)) for x in data]
    if p.multi_input_mode == "concat":
        return xp.concatenate(parts, 1) if len(parts) > 1 else parts[0]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _repeated(xp: Any, x: Any, times: int) -> Any:
    n, c, h, w = x.shape
    wide_rows = xp.empty((n, c, h, w, times), x.dtype)
    wide_rows[...] = x[..., None]
    out = xp.empty((n, c, h, times, w * times), x.dtype)
    out[...] = wide_rows.reshape(n, c, h, 1, w * times)
    return out.reshape(n, c, h * times, w * times)


@up_sampling.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    first = ins[0]
    if first is None:
        return ins, outs
    if len(first) != 4:
        raise ValueError(f"data must be (N, C, H, W), got {first}")
    n, _, h, w = first
    size = tuple(-1 if d == -1 else d * p.scale for d in (h, w))
    if p.sample_type == "bilinear":
        return [(n, p.num_filter, h, w), (p.num_filter, 1, *bilinear_params(p)["kernel"])], [(n, p.num_filter, *size)]
    for s in ins:
        _check_image(p, s, first, size)
    channels = [None if s is None else s[1] for s in ins]
    if p.multi_input_mode == "sum":
        total = first[1]
    else:
        total = -1 if any(c in (None, -1) for c in channels) else sum(channels)
    return ins, [(n, total, *size)]


_FLOATS = floating()


@up_sampling.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if p.sample_type == "bilinear":
        return _FLOATS(p, ins, outs)
    t = next((v for v in (*ins, *outs) if v is not None), None)
    return [t] * len(ins), [t]


def _check_image(p: Params, s: Any, first: Any, size: tuple[int, ...]) -> None:
    """Raise an error unless an image can join the first one, which is enlarged to `size`."""
    if s is None:
        return
    if len(s) != 4:
        raise ValueError(f"data must be (N, C, H, W), got {s}")
    if (
        -1 not in (s[0], first[0])
        and s[0] != first[0]
        or p.multi_input_mode == "sum"
        and -1 not in (s[1], first[1])
        and s[1] != first[1]
    ):
        raise ValueError(
            f"images {first} and {s} differ in {'batch' if s[0] != first[0] else 'channels, and are to be added'}"
        )
    if (
        -1 not in (*s[2:], *size)
        and 0 not in s
        and (any(t % d for d, t in zip(s[2:], size)) or size[0] * s[3] != size[1] * s[2])
    ):
        raise ValueError(f"{s} cannot be enlarged to {size} by one whole factor")


up_sampling.cost(lambda p, ins, outs: size_of(outs[0]) * (p.scale if p.sample_type == "bilinear" else 1))


#: MXNet marks the second input, whatever it is.
up_sampling.input_attrs = {n: {"__init__": '["bilinear", {}]'} for n in ("weight", "arg1")}
