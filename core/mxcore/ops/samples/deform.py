"""Samples of the operators in :mod:`mxcore.ops.deform`."""

from __future__ import annotations

from typing import Any

from ..._core.op import Op
from ...testing.sample import Sample, Values
from ..deform import _shapes, deformable_convolution, modulated_deformable_convolution

__all__ = ["SAMPLES"]


def _deformable_use(data: Any, kernel: Any, filters: int, **params: Any) -> tuple[list[Any], dict[str, Any]]:
    """Inputs (data, offset, mask, weight and bias) for these parameters, and the parameters."""
    q = {"kernel": kernel, "num_filter": filters, **params}
    p = deformable_convolution.parse(dict(q))
    shapes, _ = _shapes(p, [data, *(None,) * (3 if p.no_bias else 4)], [None])
    return [Values(s, -2.3, 2.3) if i == 1 else s for i, s in enumerate(shapes)], q


_USES = [
    _deformable_use((2, 4, 5, 6), (3, 3), 6, pad=(1, 1), num_group=2, num_deformable_group=2),
    _deformable_use((1, 2, 6, 5), (3, 2), 3, stride=(2, 1), dilate=(1, 2), no_bias=True),
    _deformable_use((2, 3, 4, 4), (1, 1), 2),
    _deformable_use(
        (1, 4, 7, 4), (2, 3), 4, pad=(0, 2), dilate=(2, 1), stride=(1, 2), num_deformable_group=4, layout="NCHW"
    ),
    _deformable_use((3, 2, 3, 3), (3, 3), 2, pad=(2, 2), num_group=2, no_bias=True, workspace=256),
    _deformable_use((1, 1, 8, 3), (4, 1), 1, stride=(3, 1), pad=(2, 0)),
    _deformable_use((1, 6, 2, 5), (2, 2), 6, num_group=3, num_deformable_group=2),
    _deformable_use((2, 2, 5, 5), (3, 3), 1, no_bias=True),
]


_EMPTY = _deformable_use((0, 2, 4, 4), (3, 3), 2)


def _shape(x: Any) -> Any:
    return x.shape if isinstance(x, Values) else x


def _forward_uses(modulated: bool) -> list[Sample]:
    told = "forward only: MXNet has the gradients on GPUs only" if modulated else True
    return [
        *(
            Sample(*_masked(ins, modulated), params=q, mxnet="MXNet knows no empty batches" if q is _EMPTY[1] else told)
            for ins, q in (*_USES, _EMPTY)
        ),
        Sample(
            *_masked(_USES[1][0], modulated),
            params=_USES[1][1],
            dtypes="float16",
            grad=False,
            mxnet="MXNet has no float16 products on the CPU",
        ),
    ]


def _backward_uses(forward: Op, modulated: bool) -> list[Sample]:
    def use(ins: list[Any], q: dict[str, Any]) -> Sample:
        out = _shapes(forward.parse(dict(q)), [_shape(x) for x in ins], [None])[1][0]
        return Sample(out, *ins[: 3 + modulated], params=q, grad=False, mxnet="internal")

    return [use(_masked(ins, modulated), q) for ins, q in (*_USES, _EMPTY)]


def _masked(ins: list[Any], modulated: bool) -> list[Any]:
    """The inputs, with the mask where there is one."""
    return [x for i, x in enumerate(ins) if modulated or i != 2]


SAMPLES = {
    "_contrib_DeformableConvolution": _forward_uses(False),
    "_contrib_ModulatedDeformableConvolution": _forward_uses(True),
    "_backward_DeformableConvolution": _backward_uses(deformable_convolution, False),
    "_backward_ModulatedDeformableConvolution": _backward_uses(modulated_deformable_convolution, True),
}
