"""Samples of the operators in :mod:`mxcore.ops.conv`."""

from __future__ import annotations

from typing import Any

from ...testing.sample import Sample
from ..conv import convolution, deconvolution

__all__ = ["SAMPLES"]

_LAYOUTS = "NCW NCHW NCDHW NHWC NDHWC"


def _use(**params: Any) -> dict[str, Any]:
    return params


_CONV_SAMPLES = [
    ([(2, 3, 7), (4, 3, 3), (4,)], _use(kernel=(3,), num_filter=4)),
    ([(2, 4, 5, 6), (6, 2, 3, 2), (6,)], _use(kernel=(3, 2), stride=(2, 1), pad=(1, 1), num_filter=6, num_group=2)),
    ([(2, 2, 7, 5), (3, 2, 3, 3)], _use(kernel=(3, 3), dilate=(2, 1), num_filter=3, no_bias=True)),
    ([(1, 2, 4, 5, 3), (2, 2, 2, 3, 1), (2,)], _use(kernel=(2, 3, 1), pad=(0, 1, 0), stride=(2, 2, 1), num_filter=2)),
    ([(2, 3, 4, 4), (3, 1, 1, 1), (3,)], _use(kernel=(1, 1), num_filter=3, num_group=3)),
    ([(0, 3, 4, 4), (2, 3, 3, 3), (2,)], _use(kernel=(3, 3), num_filter=2)),
    ([(2, 5, 4, 3), (2, 3, 2, 3), (2,)], _use(kernel=(3, 2), pad=(1, 0), num_filter=2, layout="NHWC")),
    (
        [(1, 4, 8), (2, 2, 2)],
        _use(
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
    ([(2, 3, 5), (3, 1, 3), (3,)], _use(kernel=3, pad=1, num_filter=3, num_group=3, workspace=256)),
    ([(1, 2, 1), (1, 2, 1), (1,)], _use(kernel=(1,), num_filter=1, dilate=(3,))),
    (
        [(2, 2, 5, 4), (4, 1, 3, 3), (4,)],
        _use(kernel=(3, 3), pad=(1, 1), num_filter=4, num_group=2, layout="NCHW", cudnn_tune="off"),
    ),
    (
        [(1, 3, 6, 5), (3, 1, 3, 2)],
        _use(
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
        _use(kernel=(1, 1), stride=(2, 2), num_filter=2, cudnn_off=True, cudnn_tune="limited_workspace"),
    ),
    ([(1, 2, 3, 3), (2, 2, 5, 5), (2,)], _use(kernel=(5, 5), pad=(2, 1), num_filter=2)),
    ([(2, 1, 4, 3), (1, 1, 4, 3), (1,)], _use(kernel=(4, 3), num_filter=1)),
    (
        [(1, 4, 3, 4, 3), (2, 2, 2, 2, 2)],
        _use(
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
    ([(1, 2, 3, 3, 2), (2, 1, 1, 3, 2), (2,)], _use(kernel=(1, 3, 2), pad=(0, 1, 0), num_filter=2, num_group=2)),
    ([(1, 3, 4, 2, 2), (4, 2, 2, 1, 1), (4,)], _use(kernel=(2, 2, 1), num_filter=4, num_group=2, layout="NDHWC")),
]


def _why(params: dict[str, Any]) -> Any:
    return "MXNet runs channels last on the GPU only" if params.get("layout", "NCW")[-1] == "C" else True


def _gradient_samples(samples: list[Any], out: Any) -> list[Sample]:
    return [Sample(out(ins, q), *ins[:2], params=q, mxnet="internal") for ins, q in samples]


def _conv_out(ins: list[Any], q: dict[str, Any]) -> tuple[int, ...]:
    p = convolution.parse(dict(q))
    return convolution.shape_rule(p, list(ins), [None])[1][0]


_DECONV_SAMPLES = [
    ([(2, 3, 5), (3, 4, 3), (4,)], _use(kernel=(3,), num_filter=4, stride=(2,), adj=(1,), no_bias=False)),
    ([(2, 4, 3, 4), (4, 3, 3, 2)], _use(kernel=(3, 2), stride=(2, 2), pad=(1, 0), num_filter=6, num_group=2)),
    ([(1, 2, 3, 4), (2, 2, 3, 3)], _use(kernel=(3, 3), stride=(2, 2), num_filter=2, target_shape=(6, 8))),
    ([(1, 2, 3, 2, 3), (2, 2, 2, 2, 1)], _use(kernel=(2, 2, 1), stride=(1, 2, 1), num_filter=2)),
    (
        [(2, 3, 4, 2), (2, 3, 3, 3), (3,)],
        _use(kernel=(3, 3), dilate=(2, 1), num_filter=3, no_bias=False, layout="NHWC"),
    ),
    ([(2, 2, 4), (2, 3, 2)], _use(kernel="(2,)", stride="(3,)", pad="(1,)", adj="(2,)", num_filter="3", layout="NCW")),
    (
        [(1, 4, 3), (4, 1, 3), (4,)],
        _use(kernel=(3,), stride=(1,), num_filter=4, num_group=4, no_bias=False, workspace=128),
    ),
    ([(1, 2, 4), (2, 1, 4)], _use(kernel=(4,), stride=(2,), num_filter=1, target_shape=(9,), pad=(1,), adj=(1,))),
    ([(1, 3, 5), (3, 2, 3)], _use(kernel=(3,), dilate=(2,), num_filter=2)),
    (
        [(1, 2, 3, 2), (2, 2, 2, 3), (2,)],
        _use(kernel=(2, 3), stride=(3, 2), pad=(0, 1), adj=(2, 1), num_filter=2, no_bias=False, layout="NCHW"),
    ),
    ([(2, 2, 2, 3), (2, 3, 1, 1)], _use(kernel=(1, 1), stride=(2, 2), num_filter=3, cudnn_tune="off", cudnn_off=True)),
    (
        [(1, 4, 3, 3), (4, 1, 3, 3), (2,)],
        _use(kernel=(3, 3), stride=(2, 1), pad=(1, 1), dilate=(1, 2), num_filter=2, num_group=2, no_bias=False),
    ),
    ([(1, 2, 3, 3), (2, 2, 3, 3)], _use(kernel=(3, 3), stride=(2, 2), num_filter=2, target_shape=(0, 0), pad=(1, 1))),
    ([(0, 2, 3, 3), (2, 2, 3, 3)], _use(kernel=(3, 3), num_filter=2)),
    (
        [(1, 2, 2, 3, 2), (2, 1, 2, 1, 3), (2,)],
        _use(
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
    ([(1, 2, 3, 2, 2), (2, 2, 2, 2, 2)], _use(kernel=(2, 2, 2), num_filter=2, layout="NDHWC")),
]


def _deconv_out(ins: list[Any], q: dict[str, Any]) -> tuple[int, ...]:
    p = deconvolution.parse(dict(q))
    return deconvolution.shape_rule(p, list(ins), [None])[1][0]


SAMPLES = {
    "Convolution": [
        *(Sample(*ins, params=q, mxnet=_why(q)) for ins, q in _CONV_SAMPLES),
        *(Sample(*ins, params=q, dtypes="float16") for ins, q in _CONV_SAMPLES[:2]),
    ],
    "_backward_Convolution": _gradient_samples(_CONV_SAMPLES, _conv_out),
    "Deconvolution": [Sample(*ins, params=q, mxnet=_why(q)) for ins, q in _DECONV_SAMPLES],
    "_backward_Deconvolution": _gradient_samples(_DECONV_SAMPLES, _deconv_out),
}
