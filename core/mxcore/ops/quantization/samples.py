"""Samples of the operators of :mod:`mxcore.ops.quantization`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...testing.sample import Ints, Sample, Values

__all__ = ["SAMPLES"]

_MIXED = "int8 and uint8 together: MXNet loses the uint8 array"


#: Sums in int32 are computed in float32.
_LAST_BITS = 512


#: Why MXNet is not asked: the file of its answers stays small.
_LARGE = "large, so that threads share the work"


def _sample(*inputs: Any, params: dict[str, Any] | None = None, mxnet: bool | str = True, step: int = 0) -> Sample:
    """A use in float32, where there is anything to choose, without gradients."""
    return Sample(*inputs, params=params, mxnet=mxnet, dtypes="float32", grad=False, step=step)


def _end(*values: float) -> list[np.ndarray]:
    """Numbers as ends of ranges."""
    return [np.array([v], np.float32) for v in values]


def _int8(*shape: int) -> Ints:
    return Ints(shape, -128, 128, dtype="int8")


def _uint8(*shape: int) -> Ints:
    return Ints(shape, 0, 256, dtype="uint8")


def _sparse(*shape: int) -> np.ndarray:
    """A weight with every other column zero.

    MXNet's sums of two products are cut to 16 bits on processors without VNNI; then none is so large.
    """
    w = np.random.RandomState(len(shape)).randint(-128, 128, shape).astype(np.int8)
    w[:, 1::2] = 0
    return w


#: Halves of steps, ends, and what is beyond them.
_EDGES = np.array(
    [[-3, -1, -0.996, -0.5, -1.5 / 127, -0.5 / 127, 0], [0.5 / 255, 1.5 / 255, 0.3, 0.7, 0.996, 1, 3]], np.float32
)


def _quantize() -> Iterator[Sample]:
    for out_type in ("int8", "uint8"):
        for low, high in ((-1.0, 1.0), (-0.25, 1.5), (0.0, 2.0)):
            yield _sample(_EDGES, *_end(low, high), params={"out_type": out_type}, step=1)
    yield _sample((2, 3, 4, 5), *_end(-2, 1))
    yield _sample(np.zeros((2, 3)), *_end(0, 0), params={"out_type": "int8"}, mxnet="divides by zero")


def _quantize_v2() -> Iterator[Sample]:
    params: dict[str, Any]
    for params in (
        {},
        {"out_type": "uint8"},
        {"out_type": "auto"},
        {"min_calib_range": -1.0, "max_calib_range": 0.5},
        {"out_type": "uint8", "min_calib_range": 0.0, "max_calib_range": 0.75},
        {"out_type": "auto", "min_calib_range": "0", "max_calib_range": "1.5"},
    ):
        yield _sample(_EDGES, params=params, step=1)
    yield _sample(_int8(2, 3))
    yield _sample(_uint8(5), params={"out_type": "uint8", "min_calib_range": 0.0, "max_calib_range": 1.0})
    yield _sample(np.zeros(3), mxnet="divides by zero")
    yield _sample((64, 3, 32, 32), params={"min_calib_range": -1.0, "max_calib_range": 1.0}, mxnet=_LARGE)


def _requantize() -> Iterator[Sample]:
    data = np.array([[-(2**31) + 128, -(2**30), -12345678, -8454660, 0], [5, 8454660, 8454659, 2**30, 2**31 - 256]])
    data = data.astype(np.int32)
    params: dict[str, Any]
    for params in (
        {"min_calib_range": -0.5, "max_calib_range": 0.25},
        {"out_type": "uint8", "min_calib_range": 0.0, "max_calib_range": 0.5},
        {"out_type": "auto", "min_calib_range": 0.0, "max_calib_range": 0.5},
        {"out_type": "auto", "min_calib_range": -0.1, "max_calib_range": 0.5},
    ):
        yield _sample(data, *_end(-1, 1), params=params)
    for out_type in ("int8", "uint8", "auto"):
        params = {"out_type": out_type}
        yield _sample(Ints((2, 3, 4), -10000, 10000, dtype="int32"), *_end(-3, 2), params=params)
    yield _sample(np.zeros(3, np.int32), *_end(-1, 1), mxnet="divides by zero")


#: `quantized` MXNet writes into each graph.
_RNN = dict(state_size=3, num_layers=1, mode="lstm", quantized="true")


def _rnn(params: dict[str, Any], inputs: int = 4) -> Sample:
    """A network whose weights MXNet's sums are exact for."""
    directions, layers, n = 1 + ("bidirectional" in params), params["num_layers"], params["state_size"]
    rs = np.random.RandomState(layers + directions)
    parts = []
    for layer in range(layers):
        for _ in range(directions):
            for width in (inputs if layer == 0 else directions * n, n):
                w = rs.uniform(-1, 1, (4 * n, width))
                w[:, 1::2] = 0
                parts.append(w.ravel())
    parts.append(rs.uniform(-1, 1, layers * directions * 8 * n))
    state = (layers * directions, 2, n)
    return _sample(
        _uint8(3, 2, inputs),
        np.concatenate(parts).astype(np.float32),
        Values(state, -0.9, 0.9),
        Values(state, -2, 2),
        *_end(120, 128),
        params=params,
    )


_POOL = dict(kernel=(2, 2))
_ENDS = _end(-1, 0.5)

SAMPLES = {
    "_contrib_quantize": [*_quantize()],
    "_contrib_quantize_v2": [*_quantize_v2()],
    "_contrib_quantize_asym": [
        _sample(_EDGES[None]),
        _sample(_EDGES[None], params={"min_calib_range": -1.0, "max_calib_range": 0.75}),
        _sample((2, 3), mxnet="takes three dimensions only"),
        _sample(np.ones((1, 2, 2)), mxnet="divides by zero"),
    ],
    "_contrib_dequantize": [
        _sample(_int8(2, 3, 4), *_end(-1.5, 0.5)),
        _sample(_uint8(7), *_end(0, 3)),
        _sample(_uint8(2, 2), *_end(-2, 1)),
        _sample(_int8(64, 64, 64), *_end(-1, 1), mxnet=_LARGE),
    ],
    "_contrib_requantize": [*_requantize()],
    "_contrib_quantized_fully_connected": [
        _sample(_int8(3, 6), _sparse(4, 6), *_ENDS, *_end(-2, 1), params={"num_hidden": 4, "no_bias": True}),
        _sample(_int8(3, 2, 3), _sparse(4, 6), _int8(4), *_ENDS, *_end(-2, 1, -0.3, 0.2), params={"num_hidden": 4}),
        _sample(_uint8(3, 6), _sparse(4, 6), _int8(4), *_end(0, 2, -2, 1, -0.3, 0.2), params={"num_hidden": 4}),
        _sample(
            _uint8(2, 3, 4),
            _sparse(5, 4),
            *_end(0, 2, -2, 1),
            params={"num_hidden": 5, "no_bias": True, "flatten": False},
        ),
        _sample(
            np.full((2, 600), 127, np.int8),
            np.full((3, 600), -128, np.int8),
            *_end(-1, 1, -1, 1),
            params={"num_hidden": 3, "no_bias": True},
            mxnet="cuts sums of two products to 16 bits where there is no VNNI",
        ),
        _sample(
            _uint8(3, 1300),
            _int8(4, 1300),
            _int8(4),
            *_end(0, 2, -2, 1, -0.3, 0.2),
            params={"num_hidden": 4},
            mxnet="cuts sums of two products to 16 bits where there is no VNNI",
        ),
        _sample(
            np.zeros((2, 3), np.int8),
            _int8(4, 3),
            _int8(4),
            *_end(0, 0, -2, 1, -0.3, 0.2),
            params={"num_hidden": 4},
            mxnet="divides by zero",
        ),
    ],
    "_contrib_quantized_conv": [
        _sample(x, w, *b, *ends, params=params, mxnet="its ranges fit int8 only, which it refuses")
        for x, w, b, ends, params in (
            (
                _int8(2, 3, 5, 4),
                _int8(4, 3, 3, 2),
                [_int8(4)],
                _end(-1, 1, -2, 1, -0.3, 0.2),
                dict(kernel=(3, 2), num_filter=4, stride=(2, 1), pad=(1, 0)),
            ),
            (
                _uint8(2, 3, 5, 5),
                _int8(4, 3, 3, 3),
                [],
                _end(0, 1, -2, 1),
                dict(kernel=(3, 3), num_filter=4, no_bias=True, dilate=(2, 2)),
            ),
            (
                _uint8(1, 70, 4, 4),
                _int8(3, 70, 3, 3),
                [_int8(3)],
                _end(0, 1, -2, 1, -0.3, 0.2),
                dict(kernel=(3, 3), num_filter=3, layout="NCHW"),
            ),
            (
                _int8(1, 2, 3, 3, 3),
                _int8(2, 2, 2, 2, 2),
                [],
                _end(-1, 1, -1, 1),
                dict(kernel=(2, 2, 2), num_filter=2, no_bias=True),
            ),
        )
    ],
    "_contrib_quantized_pooling": [
        _sample(_int8(2, 3, 5, 4), *_ENDS, params={**_POOL, "stride": (2, 2)}),
        _sample(_uint8(2, 3, 5, 5), *_end(0, 1), params={"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)}),
        _sample(_int8(2, 3, 5, 4), *_ENDS, params={**_POOL, "pool_type": "avg", "pad": (1, 1)}),
        _sample(
            _uint8(2, 3, 5, 4),
            *_ENDS,
            params={**_POOL, "pool_type": "avg", "pad": (1, 1), "stride": (2, 2), "count_include_pad": False},
        ),
        _sample(_int8(2, 3, 4, 4), *_ENDS, params={**_POOL, "global_pool": True, "pool_type": "avg"}),
        _sample(_int8(1, 2, 5, 5), *_ENDS, params={**_POOL, "stride": (2, 2), "pooling_convention": "full"}),
        _sample(_uint8(1, 2, 3, 4, 5), *_ENDS, params={"kernel": (2, 2, 2), "layout": "NCDHW"}),
        _sample(_int8(1, 2, 3, 4, 5), *_ENDS, params={"kernel": (2, 2, 2), "pool_type": "avg", "stride": (1, 2, 2)}),
    ],
    "_contrib_quantized_act": [
        _sample(_int8(2, 3, 4), *_ENDS, params={"act_type": "relu"}),
        _sample(_uint8(5), *_end(0, 1), params={"act_type": "relu"}, mxnet="reads the result as int8"),
    ],
    "_contrib_quantized_flatten": [_sample(_int8(2, 3, 4), *_ENDS), _sample(_uint8(5, 1), *_end(0, 1))],
    "_contrib_quantized_concat": [
        _sample(_int8(2, 3), _int8(2, 2), *_end(-1, 0.5, -0.25, 0.75), params={"num_args": 2}),
        _sample(_uint8(2, 3, 2), _uint8(2, 1, 2), *_end(0, 0.5, 0.2, 0.75), params={"num_args": 2}),
        _sample(_int8(2, 3), _uint8(2, 3), *_end(-1, 0.5, 0, 0.75), params={"num_args": 2, "dim": 1}),
        _sample(_uint8(2, 3), _int8(1, 3), *_end(0, 1, -3, 0.75), params={"num_args": 2, "dim": 0}),
        _sample(
            _int8(2, 3),
            _int8(2, 1),
            _int8(2, 2),
            *_end(-1, 1, -1, 1, -2, 1),
            params={"num_args": 3, "dim": -1},
            mxnet="oneDNN refuses a negative axis",
        ),
        _sample(_int8(2, 3), *_end(-1, 0.5), params={"num_args": 1}),
    ],
    "_contrib_quantized_elemwise_add": [
        _sample(_int8(2, 3, 4), _int8(2, 3, 4), *_end(-1, 0.5, -0.25, 0.75), step=_LAST_BITS),
        _sample(_uint8(2, 3), _uint8(2, 3), *_end(0, 0.5, 0, 0.75), step=_LAST_BITS),
        *(
            _sample(a, b, *_end(-1, 0.5, -0.25, 0.75), params={"min_calib_range": -1.0, "max_calib_range": 0.9})
            for a, b in (
                (_int8(3, 4), _int8(3, 4)),
                (_uint8(3, 4), _uint8(3, 4)),
                (_int8(3, 4), _uint8(3, 4)),
                (_uint8(3, 4), _int8(3, 4)),
            )
        ),
        _sample(_int8(3, 4), _uint8(3, 4), *_end(-1, 0.5, 0, 0.75), mxnet=_MIXED, step=_LAST_BITS),
        _sample(np.zeros(3, np.int8), np.zeros(3, np.int8), *_end(0, 0, 0, 0), mxnet="divides by zero"),
    ],
    "_contrib_quantized_elemwise_mul": [
        _sample(
            _int8(2, 5),
            _int8(2, 5),
            *_end(-1, 0.5, -0.25, 0.75),
            params=params,
            mxnet="runs in graphs only; compared there",
        )
        for params in ({}, {"enable_float_output": True}, {"min_calib_range": -1.0, "max_calib_range": 0.5})
    ],
    "_contrib_quantized_embedding": [
        _sample(np.array([[0, 3], [5, -1]], np.float32), _int8(4, 3), *_ENDS, params={"input_dim": 4, "output_dim": 3}),
        _sample(np.array([1, 2], np.int32), _int8(4, 3), *_ENDS, params={"input_dim": 4, "output_dim": 3}),
    ],
    "_contrib_quantized_batch_norm": [
        _sample(x, Values((3,), 0.5, 1.5), (3,), (3,), Values((3,), 0.5, 1.5), *_end(-1, 0.5), params=params)
        for x, params in (
            (_int8(2, 3, 4, 5), {"min_calib_range": -2.0, "max_calib_range": 2.0}),
            (_uint8(2, 3, 4, 5), {"min_calib_range": -2.0, "max_calib_range": 1.0, "eps": 0.01, "fix_gamma": False}),
            (_int8(7, 3), {"min_calib_range": 0.0, "max_calib_range": 1.0, "eps": 1e-5, "axis": 1}),
        )
    ],
    "_contrib_quantized_rnn": [
        _rnn(_RNN),
        _rnn({**_RNN, "state_outputs": True}),
        _rnn({**_RNN, "bidirectional": True, "state_outputs": True}),
    ],
    "_contrib_calibrate_entropy": [
        _sample(
            np.histogram(np.random.RandomState(0).standard_normal(4000) ** power, 301, (-5, 5))[0].astype(np.float32),
            np.linspace(-5, 5, 302),
            params=params,
        )
        for power, params in ((3, {}), (3, {"num_quantized_bins": 31}), (2, {"num_quantized_bins": 63}))
    ]
    + [_sample(np.zeros(301), np.linspace(-1, 1, 302))],
}
