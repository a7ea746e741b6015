"""Operators over eight bits: exact sums, rounding within half a step, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore._core import tables

from . import bad_input
from .bad_input import eager

C = mx.nd.contrib
seeds = st.integers(0, 2**31)


def ends(*values):
    return [mx.nd.array([v]) for v in values]


def drawn(rs, dtype, shape):
    info = np.iinfo(dtype)
    # Ends are where sums overflow what is too narrow.
    a = rs.randint(info.min, info.max + 1, shape)
    return np.where(rs.rand(*shape) < 0.5, info.max, a).astype(dtype)


@settings(max_examples=25, deadline=None)
@given(seeds, st.sampled_from(["int8", "uint8"]), st.integers(1, 3), st.integers(1, 1500), st.integers(1, 5))
def test_products_are_exact(seed, dtype, n, width, units):
    rs = np.random.RandomState(seed)
    x, w = drawn(rs, dtype, (n, width)), drawn(rs, "int8", (units, width))
    arrays = [mx.nd.array(a, dtype=a.dtype) for a in (x, w)]
    y = C.quantized_fully_connected(*arrays, *ends(-1, 1, -1, 1), num_hidden=units, no_bias=True)[0]
    np.testing.assert_array_equal(y.asnumpy(), x.astype(np.int64) @ w.astype(np.int64).T)


@settings(max_examples=15, deadline=None)
@given(seeds, st.sampled_from(["int8", "uint8"]), st.integers(1, 80), st.integers(1, 4), st.integers(0, 2))
def test_convolutions_are_exact(seed, dtype, channels, filters, pad):
    rs = np.random.RandomState(seed)
    x, w = drawn(rs, dtype, (2, channels, 6, 5)), drawn(rs, "int8", (filters, channels, 3, 2))
    arrays = [mx.nd.array(a, dtype=a.dtype) for a in (x, w)]
    params = dict(kernel=(3, 2), num_filter=filters, pad=(pad, pad), stride=(1, 2), no_bias=True)
    y = C.quantized_conv(*arrays, *ends(-1, 1, -1, 1), **params)[0]
    want = mx.nd.Convolution(*(mx.nd.array(a, dtype="float64") for a in (x, w)), **params)
    np.testing.assert_array_equal(y.asnumpy(), want.asnumpy())


@settings(max_examples=25, deadline=None)
@given(seeds, st.sampled_from(["int8", "uint8"]), st.floats(1e-6, 1e6), st.sampled_from([(7,), (130, 130)]))
def test_there_and_back(seed, dtype, size, shape):
    rs = np.random.RandomState(seed)
    x = (rs.uniform(0 if dtype == "uint8" else -1, 1, shape) * size).astype("float32")
    y = C.dequantize(*C.quantize_v2(mx.nd.array(x), out_type=dtype))
    step = np.abs(x).max() / (255.5 if dtype == "uint8" else 127.5)
    assert np.abs(y.asnumpy() - x).max() <= step * 0.5001


def test_what_is_no_number_is_the_last_one():
    x = mx.nd.array([np.nan, np.inf, -np.inf, 0.5])
    q = C.quantize_v2(x, min_calib_range=-1, max_calib_range=1)[0]
    assert q.asnumpy().tolist() == [127, 127, -128, 64]
    big = mx.nd.tile(x, reps=(1 << 13,))
    assert C.quantize_v2(big, min_calib_range=-1, max_calib_range=1)[0][-4:].asnumpy().tolist() == [127, 127, -128, 64]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_eight_bits_pass_as_they_are(dtype):
    ends = np.iinfo(dtype)
    x = mx.nd.array([ends.min, 0, 1, ends.max], dtype=dtype)
    for out_type in (dtype, "auto"):
        for params in ({}, {"min_calib_range": 0, "max_calib_range": 1}, {"min_calib_range": -1, "max_calib_range": 1}):
            q, low, high = C.quantize_v2(x, out_type=out_type, **params)
            assert q.dtype == np.dtype(dtype) and q.asnumpy().tolist() == x.asnumpy().tolist()
            own = (-127.5, 127.5) if dtype == "int8" else (0, 255.5)
            assert (low.asscalar(), high.asscalar()) == (tuple(params.values()) or own)


def test_zeros_stay_zeros():
    for shape in ((3,), (200, 200)):
        q, low, high = C.quantize_v2(mx.nd.zeros(shape))
        assert not q.asnumpy().any() and not C.dequantize(q, low, high).asnumpy().any()
        q, low, high = C.requantize(mx.nd.zeros(shape, dtype="int32"), *ends(-1, 1))
        assert not q.asnumpy().any() and high.asscalar() == 0


def test_a_bias_beside_zeros():
    """An array of zeros has no range; the bias of the layer is right all the same."""
    x = C.quantize_v2(mx.nd.zeros((2, 3)))
    w, b = C.quantize_v2(mx.nd.ones((4, 3))), C.quantize_v2(mx.nd.array([1, -1, 0.5, 0]))
    y = C.quantized_fully_connected(x[0], w[0], b[0], *x[1:], *w[1:], *b[1:], num_hidden=4)
    y = C.dequantize(*C.requantize(*y))
    np.testing.assert_allclose(y.asnumpy(), [[1, -1, 0.5, 0]] * 2, atol=0.01)


I8, U8, F4, I4 = (mx.nd.ones((1, 2, 3, 3), dtype=t) for t in ("int8", "uint8", "float32", "int32"))
ONE = mx.nd.ones(1)
W = mx.nd.ones((2, 2, 2, 2), dtype="int8")
CONV = dict(kernel=(2, 2), num_filter=2, no_bias=True)

BAD = [
    ("_contrib_quantize", [I8, ONE, ONE], {}, "data is int8 where float32 is needed"),
    ("_contrib_quantize", [F4, ONE, ONE.astype("float64")], {}, "max_range is float64 where float32 is needed"),
    ("_contrib_quantize_v2", [F4.astype("float64")], {}, "data is float64 where float32 or int8 or uint8 is needed"),
    ("_contrib_quantize_v2", [F4], {"out_type": "int4"}, "one of"),
    (
        "_contrib_quantize_v2",
        [I8],
        {"out_type": "uint8"},
        "data is int8 where float32 or uint8 is needed; eight bits pass as they are: out_type 'int8', or 'auto'",
    ),
    ("_contrib_quantize_v2", [U8], {}, "data is uint8 where float32 or int8 is needed"),
    ("_contrib_quantize_asym", [I8], {}, "data is int8 where float32 is needed"),
    ("_contrib_dequantize", [I4, ONE, ONE], {}, "data is int32 where int8 or uint8 is needed"),
    ("_contrib_dequantize", [I8, ONE, mx.nd.ones(2)], {}, "max_range"),
    ("_contrib_requantize", [I8, ONE, ONE], {}, "data is int8 where int32 is needed"),
    ("_contrib_quantized_conv", [F4, W, *[ONE] * 4], CONV, "data is float32 where int8 or uint8 is needed"),
    ("_contrib_quantized_conv", [I8, W.astype("uint8"), *[ONE] * 4], CONV, "weight is uint8 where int8 is needed"),
    ("_contrib_quantized_conv", [I8, W, *[ONE] * 4], {**CONV, "num_group": 2}, "num_group is 2; over eight bits"),
    ("_contrib_quantized_conv", [I8, W, *[ONE] * 4], {**CONV, "layout": "NHWC"}, "layout is NHWC"),
    ("_contrib_quantized_conv", [I8, W, *[ONE] * 4], {**CONV, "kernel": (2,)}, "has 1 dimensions"),
    ("_contrib_quantized_fully_connected", [I8, W, *[ONE] * 4], dict(num_hidden=2, no_bias=True), "weight"),
    ("_contrib_quantized_pooling", [I8, ONE, ONE], dict(kernel=(2, 2), pool_type="sum"), "pool_type is sum"),
    ("_contrib_quantized_pooling", [I4, ONE, ONE], dict(kernel=(2, 2)), "data is int32 where int8 or uint8"),
    (
        "_contrib_quantized_act",
        [I8, ONE, ONE],
        dict(act_type="tanh"),
        "act_type is tanh; over eight bits there is relu",
    ),
    ("_contrib_quantized_elemwise_mul", [I8, U8, *[ONE] * 4], {}, "rhs is uint8 where int8 is needed"),
    ("_contrib_quantized_elemwise_add", [I8, W, *[ONE] * 4], {}, "rhs"),
    ("_contrib_quantized_concat", [I8, I4, *[ONE] * 4], {"num_args": 2}, "arg1 is int32 where int8 or uint8"),
    (
        "_contrib_quantized_batch_norm",
        [I8, *[mx.nd.ones(2)] * 4, ONE, ONE],
        {},
        "min_calib_range and max_calib_range are needed",
    ),
    ("_contrib_quantized_batch_norm", [I8, *[mx.nd.ones(3)] * 4, ONE, ONE], {"axis": 3}, "channels are on axis 1"),
    (
        "_contrib_quantized_rnn",
        [mx.nd.ones((1, 1, 1), dtype="uint8"), mx.nd.ones(6), *[mx.nd.ones((1, 1, 1))] * 2, ONE, ONE],
        dict(state_size=1, num_layers=1, mode="gru"),
        "mode is gru; over eight bits there is lstm",
    ),
    ("_contrib_calibrate_entropy", [mx.nd.ones(9), mx.nd.ones(9)], {}, "one edge more than bins"),
    ("_contrib_calibrate_entropy", [mx.nd.ones(101), mx.nd.ones(102)], {}, "at least num_quantized_bins=255"),
]


@pytest.mark.parametrize(("name", "arrays", "params", "text"), BAD)
def test_refusals(name, arrays, params, text):
    bad_input.check_refused(eager, tables.ops.get(name), arrays, params, text)


def test_shapes(shapes):
    found = shapes("_contrib_quantized_conv", [(2, 3, 8, 8), *[None] * 8], kernel=(3, 3), num_filter=4)
    assert found == ([(2, 3, 8, 8), (4, 3, 3, 3), (4,), *[(1,)] * 6], [(2, 4, 6, 6), (1,), (1,)])
    found = shapes("_contrib_quantized_concat", [(2, 3), (2, 5), *[None] * 4], num_args=2)
    assert found == ([(2, 3), (2, 5), *[(1,)] * 4], [(2, 8), (1,), (1,)])
    found = shapes("_contrib_quantized_embedding", [(2, 3), *[None] * 3], input_dim=7, output_dim=4)
    assert found == ([(2, 3), (7, 4), (1,), (1,)], [(2, 3, 4), (1,), (1,)])
