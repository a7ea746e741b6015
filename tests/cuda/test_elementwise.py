"""Elementwise operators: every kernel against the reference body, for ordinary values and for strange ones."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.testing.ways import kernels_reached, reference_bodies
from mxcore_cuda.bindings import elementwise

OPS = sorted(elementwise.MEANINGS)
TOLERANCE = {"float16": 4e-3, "float32": 3e-6, "float64": 1e-12}
STRANGE = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 0.3, 3.0, np.inf, -np.inf, np.nan, 200.0, -200.0, 1e-4]


def computed(op, ctx, dtype, values, scalar):
    _, n, number = elementwise.MEANINGS[op]
    arrays = [mx.nd.array(v, ctx=ctx, dtype=dtype) for v in values[:n]]
    return getattr(mx.nd, op, None) or getattr(mx.nd._internal, op), arrays, {"scalar": scalar} if number else {}


def run(*given):
    fn, arrays, params = computed(*given)
    return fn(*arrays, **params).asnumpy().astype("float64")


def inputs(size, seed=0):
    rs = np.random.RandomState(seed)
    return [rs.uniform(0.1, 0.9, size).astype("float16") for _ in range(3)]


def compare(op, dtype, values, scalar=0.75):
    with kernels_reached() as reached:
        found = run(op, mx.gpu(0), dtype, values, scalar)
    assert op in reached
    with reference_bodies(), np.errstate(all="ignore"):
        expected = run(op, mx.cpu(), "float64", values, scalar)
        expected = expected.astype(dtype).astype("float64")
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_the_operators_are_there(gpus):
    assert {"elemwise_add", "broadcast_add", "_plus_scalar", "relu", "sigmoid", "exp", "_mul_scalar"} <= {*OPS}
    assert len(OPS) > 90
    assert not {"_power_scalar", "Cast", "sum", "where", "Reshape"} & {*OPS}  # their meaning depends on more


@pytest.mark.parametrize("op", OPS)
def test_ordinary_values(gpus, op):
    for dtype in TOLERANCE:
        compare(op, dtype, inputs((3, 171)))


@pytest.mark.parametrize("op", OPS)
def test_sizes(gpus, op):
    for size in ((0,), (1,), (257, 5)):
        compare(op, "float32", inputs(size))


#: Near a pole, at the edge of a domain, or where float16 has other neighbours, a last place of an input is not one of
#: the output.
TOUCHY = {"gamma", "gammaln", "_digamma", "erfinv", "tan", "_mod", "broadcast_mod", "_mod_scalar", "_rmod_scalar"}


@pytest.mark.parametrize(
    "op, scalar",
    [
        (op, scalar)
        for op in OPS
        if op not in TOUCHY
        for scalar in ((0.5, -2.0, 0.0) if elementwise.MEANINGS[op][2] else (None,))
    ],
)
def test_strange_values(gpus, op, scalar):
    a, b = (g.ravel().astype("float16") for g in np.meshgrid(STRANGE, STRANGE))
    values = [a, b, np.abs(a)]
    for dtype in ("float32", "float64"):
        found = run(op, mx.gpu(0), dtype, values, scalar)
        with reference_bodies(), np.errstate(all="ignore"):
            expected = run(op, mx.cpu(), dtype, values, scalar)
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE[dtype] * 4, atol=TOLERANCE[dtype])


def test_numbers_beyond_the_dtype(gpus):
    x = mx.nd.ones((2,), ctx=gpus[0])
    assert (x * 1e300).asnumpy().tolist() == [np.inf] * 2
    assert (x.astype("float16") + 1 / 3).asnumpy().tolist() == [np.float16(1) + np.float16(1 / 3)] * 2


def test_other_shapes_and_layouts(gpus):
    a, b = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    x, y = mx.nd.array(a, ctx=gpus[0]), mx.nd.array(b, ctx=gpus[0])
    np.testing.assert_array_equal(mx.nd.broadcast_add(x, y).asnumpy(), a + b)
    np.testing.assert_array_equal((x.T + x.T).asnumpy(), a.T + a.T)
    np.testing.assert_array_equal((x[:, 1:] * 2).asnumpy(), a[:, 1:] * 2)
    x += x
    np.testing.assert_array_equal(x.asnumpy(), a * 2)
