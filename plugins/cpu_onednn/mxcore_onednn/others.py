"""Another plugin's kernels for convolutions over channels last, by what is known of those over channels first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mxcore.plugin import Call, Params, Prepared, Spec, find_op, given_params, kernel_without, owner_without

from . import DEVICES
from .convolution import Geometry

__all__ = ["PreparedLast", "kernel_last", "prepared_last", "turned"]

_FLOAT32 = np.dtype(np.float32)


def _last(p: Params) -> Params:
    """The parameters of a convolution, for channels last."""
    found: Params = find_op("Convolution").parse({**given_params(p), "layout": "NHWC"})
    return found


def turned(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of images with their channels last."""
    return (shape[0], *shape[2:], shape[1])


def _filters_last(a: Any) -> Any:
    """A weight as convolutions over channels last have it, in the memory where it lies."""
    return np.moveaxis(a, 1, -1)


def kernel_last(name: str, k: Call, p: Params, ins: Sequence[Any]) -> Callable[..., None] | None:
    """A kernel for images with channels last, whose weights are those of channels first.

    Parameters
    ----------
    name : str
        Of the operator.
    k, p
        As a kernel gets them.
    ins : sequence of ndarray
        Its inputs.

    Returns
    -------
    callable or None
        ``(outs, *ins)``; of gradients those that are None are left out.
    """
    *images, weight = ins[:2] if name == "Convolution" else ins
    bias, last = ins[2:] if name == "Convolution" else (), _last(p)
    specs = [*(Spec(a.shape, a.dtype) for a in images), Spec(turned(weight.shape), weight.dtype)]
    specs += [Spec(b.shape, b.dtype) for b in bias]
    found = kernel_without("cpu_onednn", name, k.device.type, last, *specs)
    if found is None:
        return None
    if name == "Convolution":

        def forward(outs: Sequence[Any], data: Any, weight: Any, *bias: Any) -> None:
            found(k, last, outs, data, _filters_last(weight), *bias)

        return forward

    def backward(outs: Sequence[Any], dy: Any, data: Any, weight: Any) -> None:
        d_data, d_weight, *rest = outs
        d_weight = None if d_weight is None else _filters_last(d_weight)
        found(k, last, [d_data, d_weight, *rest], dy, data, _filters_last(weight))

    return backward


class PreparedLast(NamedTuple):
    """A kernel in two parts, for images with channels last; equal for those that compute the same.

    Attributes
    ----------
    size : int
        Numbers that the weight becomes.
    kernel : Prepared
    p : Params
    owner : str
        Whose it is.
    """

    size: int
    kernel: Prepared
    p: Params
    owner: str

    def make(self, weight: Any, out: Any) -> None:
        """Make these numbers of a weight of channels first."""
        self.kernel.make(self.p, _filters_last(weight), out)

    def run(self, *args: Any) -> None:
        """As `Prepared.run`, without `p`."""
        self.kernel.run(self.p, *args)


def prepared_last(g: Geometry, p: Params) -> PreparedLast | None:
    """The kernel of a convolution, in two parts, if another plugin has one."""
    last, specs = _last(p), [Spec(turned(shape), _FLOAT32) for shape in (g.src, g.weight)]
    bias = [] if p.no_bias else [Spec(g.dst[1:2], _FLOAT32)]
    found = kernel_without("cpu_onednn", "Convolution", DEVICES[0], last, *specs, *bias)
    prepared: Prepared | None = getattr(found, "prepared", None)
    if prepared is None:
        return None
    owner = owner_without("cpu_onednn", "Convolution", DEVICES[0], last, *specs, *bias)
    return PreparedLast(prepared.size(last, *specs), prepared, last, owner)
