"""Samples of the operators of :mod:`mxcore.ops.convolution`."""

from __future__ import annotations

from typing import Any

from ..._core.op import Op
from ...testing.sample import Sample, Values
from .deformable import deformable_convolution, deformable_shapes, modulated_deformable_convolution
from .operators import convolution, deconvolution

__all__ = ["SAMPLES"]


_LAYOUTS = "NCW NCHW NCDHW NHWC NDHWC"


def _convolution_use(**params: Any) -> dict[str, Any]:
    return params


_CONV_SAMPLES: list[tuple[list[Any], dict[str, Any]]] = [
    ([(2, 3, 7), (4, 3, 3), (4,)], _convolution_use(kernel=(3,), num_filter=4)),
    (
        [(2, 4, 5, 6), (6, 2, 3, 2), (6,)],
        _convolution_use(kernel=(3, 2), stride=(2, 1), pad=(1, 1), num_filter=6, num_group=2),
    ),
    ([(2, 2, 7, 5), (3, 2, 3, 3)], _convolution_use(kernel=(3, 3), dilate=(2, 1), num_filter=3, no_bias=True)),
    (
        [(1, 2, 4, 5, 3), (2, 2, 2, 3, 1), (2,)],
        _convolution_use(kernel=(2, 3, 1), pad=(0, 1, 0), stride=(2, 2, 1), num_filter=2),
    ),
    ([(2, 3, 4, 4), (3, 1, 1, 1), (3,)], _convolution_use(kernel=(1, 1), num_filter=3, num_group=3)),
    ([(0, 3, 4, 4), (2, 3, 3, 3), (2,)], _convolution_use(kernel=(3, 3), num_filter=2)),
    ([(2, 5, 4, 3), (2, 3, 2, 3), (2,)], _convolution_use(kernel=(3, 2), pad=(1, 0), num_filter=2, layout="NHWC")),
    (
        [(1, 4, 8), (2, 2, 2)],
        _convolution_use(
            kernel="(2,)",
            stride="(3,)",
            pad="[2]",
            dilate="(2,)",
            num_filter="2",
            num_group="2",
            no_bias="True",
            layout="NCW",
        ),
    ),
    ([(2, 3, 5), (3, 1, 3), (3,)], _convolution_use(kernel=3, pad=1, num_filter=3, num_group=3, workspace=256)),
    ([(1, 2, 1), (1, 2, 1), (1,)], _convolution_use(kernel=(1,), num_filter=1, dilate=(3,))),
    (
        [(2, 2, 5, 4), (4, 1, 3, 3), (4,)],
        _convolution_use(kernel=(3, 3), pad=(1, 1), num_filter=4, num_group=2, layout="NCHW", cudnn_tune="off"),
    ),
    (
        [(1, 3, 6, 5), (3, 1, 3, 2)],
        _convolution_use(
            kernel=(3, 2),
            stride=(2, 3),
            dilate=(1, 2),
            pad=(3, 1),
            num_filter=3,
            num_group=3,
            no_bias=True,
            cudnn_tune="fastest",
        ),
    ),
    (
        [(2, 3, 5, 4), (2, 3, 1, 1), (2,)],
        _convolution_use(kernel=(1, 1), stride=(2, 2), num_filter=2, cudnn_off=True, cudnn_tune="limited_workspace"),
    ),
    ([(1, 2, 3, 3), (2, 2, 5, 5), (2,)], _convolution_use(kernel=(5, 5), pad=(2, 1), num_filter=2)),
    ([(2, 1, 4, 3), (1, 1, 4, 3), (1,)], _convolution_use(kernel=(4, 3), num_filter=1)),
    (
        [(1, 4, 3, 4, 3), (2, 2, 2, 2, 2)],
        _convolution_use(
            kernel=(2, 2, 2),
            pad=(1, 0, 1),
            dilate=(2, 1, 1),
            stride=(1, 2, 1),
            num_filter=2,
            num_group=2,
            no_bias=True,
            layout="NCDHW",
        ),
    ),
    (
        [(1, 2, 3, 3, 2), (2, 1, 1, 3, 2), (2,)],
        _convolution_use(kernel=(1, 3, 2), pad=(0, 1, 0), num_filter=2, num_group=2),
    ),
    (
        [(1, 3, 4, 2, 2), (4, 2, 2, 1, 1), (4,)],
        _convolution_use(kernel=(2, 2, 1), num_filter=4, num_group=2, layout="NDHWC"),
    ),
]


def _reason(params: dict[str, Any]) -> Any:
    return "MXNet runs channels last on the GPU only" if params.get("layout", "NCW")[-1] == "C" else True


def _gradient_samples(samples: list[Any], out: Any) -> list[Sample]:
    return [Sample(out(ins, q), *ins[:2], params=q, mxnet="internal") for ins, q in samples]


def _conv_out(ins: list[Any], q: dict[str, Any]) -> tuple[int, ...]:
    p = convolution.parse(dict(q))
    found: tuple[int, ...] = convolution.shape_rule(p, list(ins), [None])[1][0]
    return found


_DECONV_SAMPLES: list[tuple[list[Any], dict[str, Any]]] = [
    ([(2, 3, 5), (3, 4, 3), (4,)], _convolution_use(kernel=(3,), num_filter=4, stride=(2,), adj=(1,), no_bias=False)),
    (
        [(2, 4, 3, 4), (4, 3, 3, 2)],
        _convolution_use(kernel=(3, 2), stride=(2, 2), pad=(1, 0), num_filter=6, num_group=2),
    ),
    ([(1, 2, 3, 4), (2, 2, 3, 3)], _convolution_use(kernel=(3, 3), stride=(2, 2), num_filter=2, target_shape=(6, 8))),
    ([(1, 2, 3, 2, 3), (2, 2, 2, 2, 1)], _convolution_use(kernel=(2, 2, 1), stride=(1, 2, 1), num_filter=2)),
    (
        [(2, 3, 4, 2), (2, 3, 3, 3), (3,)],
        _convolution_use(kernel=(3, 3), dilate=(2, 1), num_filter=3, no_bias=False, layout="NHWC"),
    ),
    (
        [(2, 2, 4), (2, 3, 2)],
        _convolution_use(kernel="(2,)", stride="(3,)", pad="(1,)", adj="(2,)", num_filter="3", layout="NCW"),
    ),
    (
        [(1, 4, 3), (4, 1, 3), (4,)],
        _convolution_use(kernel=(3,), stride=(1,), num_filter=4, num_group=4, no_bias=False, workspace=128),
    ),
    (
        [(1, 2, 4), (2, 1, 4)],
        _convolution_use(kernel=(4,), stride=(2,), num_filter=1, target_shape=(9,), pad=(1,), adj=(1,)),
    ),
    ([(1, 3, 5), (3, 2, 3)], _convolution_use(kernel=(3,), dilate=(2,), num_filter=2)),
    (
        [(1, 2, 3, 2), (2, 2, 2, 3), (2,)],
        _convolution_use(
            kernel=(2, 3), stride=(3, 2), pad=(0, 1), adj=(2, 1), num_filter=2, no_bias=False, layout="NCHW"
        ),
    ),
    (
        [(2, 2, 2, 3), (2, 3, 1, 1)],
        _convolution_use(kernel=(1, 1), stride=(2, 2), num_filter=3, cudnn_tune="off", cudnn_off=True),
    ),
    (
        [(1, 4, 3, 3), (4, 1, 3, 3), (2,)],
        _convolution_use(
            kernel=(3, 3), stride=(2, 1), pad=(1, 1), dilate=(1, 2), num_filter=2, num_group=2, no_bias=False
        ),
    ),
    (
        [(1, 2, 3, 3), (2, 2, 3, 3)],
        _convolution_use(kernel=(3, 3), stride=(2, 2), num_filter=2, target_shape=(0, 0), pad=(1, 1)),
    ),
    ([(0, 2, 3, 3), (2, 2, 3, 3)], _convolution_use(kernel=(3, 3), num_filter=2)),
    (
        [(1, 2, 2, 3, 2), (2, 1, 2, 1, 3), (2,)],
        _convolution_use(
            kernel=(2, 1, 3),
            stride=(2, 1, 2),
            pad=(0, 0, 1),
            adj=(1, 0, 1),
            num_filter=2,
            num_group=2,
            no_bias=False,
            layout="NCDHW",
        ),
    ),
    ([(1, 2, 3, 2, 2), (2, 2, 2, 2, 2)], _convolution_use(kernel=(2, 2, 2), num_filter=2, layout="NDHWC")),
]


def _deconv_out(ins: list[Any], q: dict[str, Any]) -> tuple[int, ...]:
    p = deconvolution.parse(dict(q))
    found: tuple[int, ...] = deconvolution.shape_rule(p, list(ins), [None])[1][0]
    return found


_P = {"kernel": (2, 3), "stride": (2, 1), "pad": (1, 1)}


def _deformable_use(data: Any, kernel: Any, filters: int, **params: Any) -> tuple[list[Any], dict[str, Any]]:
    """Inputs (data, offset, mask, weight and bias) for these parameters, and the parameters."""
    q = {"kernel": kernel, "num_filter": filters, **params}
    p = deformable_convolution.parse(dict(q))
    shapes, _ = deformable_shapes(p, [data, *(None,) * (3 if p.no_bias else 4)], [None])
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
        out = deformable_shapes(forward.parse(dict(q)), [_shape(x) for x in ins], [None])[1][0]
        return Sample(out, *ins[: 3 + modulated], params=q, grad=False, mxnet="internal")

    return [use(_masked(ins, modulated), q) for ins, q in (*_USES, _EMPTY)]


def _masked(ins: list[Any], modulated: bool) -> list[Any]:
    """The inputs, with the mask where there is one."""
    return [x for i, x in enumerate(ins) if modulated or i != 2]


SAMPLES = {
    "Convolution": [
        *(Sample(*ins, params=q, mxnet=_reason(q)) for ins, q in _CONV_SAMPLES),
        *(Sample(*ins, params=q, dtypes="float16") for ins, q in _CONV_SAMPLES[:2]),
    ],
    "_backward_Convolution": _gradient_samples(_CONV_SAMPLES, _conv_out),
    "Deconvolution": [Sample(*ins, params=q, mxnet=_reason(q)) for ins, q in _DECONV_SAMPLES],
    "_backward_Deconvolution": _gradient_samples(_DECONV_SAMPLES, _deconv_out),
    "im2col": [
        Sample((2, 3, 4, 5), params=_P, dtypes="float16 float32 float64"),
        Sample((2, 2, 4, 3), params={"kernel": (2, 2)}, dtypes="int32 uint8"),
    ]
    + [
        Sample(s, params=params)
        for s, params in (
            ((1, 1, 5, 5), {"kernel": (2, 2), "dilate": (2, 2)}),
            ((1, 2, 3, 3), {"kernel": (1, 1)}),
            ((1, 2, 3, 4), {"kernel": (3, 4)}),
            ((1, 1, 2, 3), {"kernel": (2, 2), "pad": (2, 1)}),
            ((1, 1, 5, 4), {"kernel": (3, 2), "stride": (3, 3)}),
            ((1, 2, 6, 5), {"kernel": (3, 2), "stride": (2, 1), "dilate": (2, 3), "pad": (1, 2)}),
            ((2, 1, 4, 4), {"kernel": "(2, 2)", "stride": "(2, 2)"}),
            ((0, 2, 4, 3), {"kernel": (2, 2)}),
        )
    ]
    + [
        Sample((1, 2, 5), params={"kernel": (2,), "stride": (2,), "pad": (1,)}),
        Sample((1, 1, 3, 2, 3), params={"kernel": (2, 1, 2), "dilate": (2, 1, 1)}),
    ],
    "_col2im_like": [Sample((1, 4, 9), (1, 1, 4, 4), params={"kernel": (2, 2)}, mxnet="internal")],
    "col2im": [Sample((1, 4, 9), params={"output_size": (4, 4), "kernel": (2, 2)}, dtypes="float16 float32 float64")]
    + [
        Sample(s, params=params)
        for s, params in (
            ((2, 6, 15), {"output_size": (4, 5), **_P}),
            ((1, 8, 9), {"output_size": (5, 5), "kernel": (2, 2), "dilate": (2, 2)}),
            ((1, 2, 6), {"output_size": (2, 3), "kernel": (1, 1)}),
            ((1, 12, 2), {"output_size": (3, 5), "kernel": (3, 4)}),
            ((1, 6, 1), {"output_size": (5, 4), "kernel": (3, 2), "stride": (3, 3)}),
            ((1, 12, 12), {"output_size": (6, 5), "kernel": (3, 2), "stride": (2, 1), "dilate": (2, 3), "pad": (1, 2)}),
            ((1, 4, 4), {"output_size": "(4, 4)", "kernel": "(2, 2)", "stride": "(2, 2)"}),
            ((0, 4, 9), {"output_size": (4, 4), "kernel": (2, 2)}),
        )
    ]
    + [
        Sample((1, 4, 4), params={"output_size": (4, 4), "kernel": (2, 2), "stride": (2, 2)}, dtypes="int32 uint8"),
        Sample((1, 4, 3), params={"output_size": (5,), "kernel": (2,), "stride": (2,), "pad": (1,)}),
    ],
    "_contrib_DeformableConvolution": _forward_uses(False),
    "_contrib_ModulatedDeformableConvolution": _forward_uses(True),
    "_backward_DeformableConvolution": _backward_uses(deformable_convolution, False),
    "_backward_ModulatedDeformableConvolution": _backward_uses(modulated_deformable_convolution, True),
}
