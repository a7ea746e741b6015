"""Sums that CuPy takes in any order are taken in one: ``add.at``, running sums, and what is made of them."""

import ml_dtypes  # noqa: F401  # NumPy knows bfloat16 by its name then
import numpy as np
import pytest

import mxcore as mx
from mxcore.plugin import merge_rows
from mxcore_cuda.dtypes import FLOATS
from mxcore_cuda.emulation import compiler
from mxcore_cuda.emulation.namespace import Universal

INDICES = {
    "some": lambda rs: rs.randint(0, 7, 500),
    "from the end": lambda rs: rs.randint(-7, 7, 300).astype("int32"),
    "of another width": lambda rs: rs.randint(0, 7, 40).astype("int16"),
    "none": lambda rs: np.zeros(0, "int64"),
}
PLACES = {
    "coordinates": lambda rs: (rs.randint(0, 5, (20, 9)), rs.randint(0, 4, (20, 9))),
    "rows": lambda rs: rs.randint(0, 5, 300),
    "columns": lambda rs: (slice(None), rs.randint(0, 4, 50)),
    "a mask": lambda rs: rs.rand(5, 4) < 0.5,
}

#: How far sums may be off that are rounded, of other dtypes than float32.
FAR = {"float16": 2e-3, "bfloat16": 1e-2}


def moved(xp, make, a, index, b):
    """`a` with `b` added at an index, in an array namespace; arrays are made by `make`."""
    a = make(a)
    index = tuple(map(make, index)) if isinstance(index, tuple) else make(index)
    xp.add.at(a, index, make(b))
    return a


@pytest.fixture
def xp(gpus):
    return gpus[0].device.xp


def to(xp):
    return lambda v: xp.asarray(v) if isinstance(v, np.ndarray) and v.ndim else v


@pytest.mark.parametrize("how, dtype", [(how, t) for how in (*INDICES, *PLACES) for t in FLOATS] + [("some", "int32")])
def test_add_at_is_numpys(xp, how, dtype):
    rs = np.random.RandomState(0)
    a = (rs.uniform(0, 9, 7) if how in INDICES else rs.uniform(0, 9, (5, 4))).astype(dtype)
    index = {**INDICES, **PLACES}[how](rs)
    b = rs.uniform(0, 3, a[index].shape).astype(dtype)
    for given in (b, b.dtype.type(2)):
        want = moved(np, lambda v: v.astype("float64") if getattr(v, "dtype", 0) == dtype else v, a, index, given)
        got = moved(xp, to(xp), a, index, given).get()
        assert got.dtype == dtype
        np.testing.assert_allclose(got.astype("float64"), want, rtol=FAR.get(dtype, 1e-6))


def test_running_sums_are_numpys(xp):
    a = np.random.RandomState(0).randn(30, 7)
    for axis in (None, 0, 1, -1):
        np.testing.assert_allclose(xp.cumsum(xp.asarray(a), axis).get(), np.cumsum(a, axis), rtol=1e-12)
    assert xp.cumsum(xp.asarray(a), dtype=np.float32).dtype == np.float32


def _deformed(ctx):
    x, w = mx.nd.random.normal(shape=(2, 4, 9, 9), ctx=ctx), mx.nd.random.normal(shape=(3, 4, 3, 3), ctx=ctx)
    offset = mx.nd.random.normal(shape=(2, 18, 7, 7), ctx=ctx)
    return [x, w], lambda: mx.nd.contrib.DeformableConvolution(x, offset, w, kernel=(3, 3), num_filter=3, no_bias=True)


def _sampled(ctx):
    x, grid = mx.nd.random.normal(shape=(2, 3, 5, 5), ctx=ctx), mx.nd.random.uniform(-1, 1, (2, 2, 30, 30), ctx=ctx)
    return [x], lambda: mx.nd.BilinearSampler(x, grid)


def _drawn(ctx):
    x = mx.nd.array([[0.2, 0.5, 0.3]], ctx=ctx)
    return [x], lambda: mx.nd.random.multinomial(x, shape=200, get_prob=True)[1]


def _embedded(ctx):
    x, w = mx.nd.array(np.arange(400) % 3, ctx=ctx), mx.nd.random.normal(shape=(3, 5), ctx=ctx)
    return [w], lambda: mx.nd.Embedding(x, w, input_dim=3, output_dim=5)


def _of_csr(ctx):
    a = mx.nd.random.normal(shape=(300, 9), ctx=ctx).tostype("csr")
    b = mx.nd.random.normal(shape=(9, 4), ctx=ctx)
    return [b], lambda: mx.nd.dot(a, b)


def _aligned(ctx):
    x = mx.nd.random.normal(shape=(40, 2, 4), ctx=ctx)
    label = mx.nd.array(np.arange(24).reshape(2, 12) % 3 + 1, ctx=ctx)
    return [x], lambda: mx.nd.CTCLoss(x, label)


def _pooled(ctx):
    x = mx.nd.random.normal(shape=(2, 3, 9, 9), ctx=ctx)
    regions = mx.nd.array([[i % 2, i % 3, i % 4, 8, 8] for i in range(40)], ctx=ctx)
    return [x], lambda: mx.nd.ROIPooling(x, regions, pooled_size=(3, 3), spatial_scale=1.0)


@pytest.mark.parametrize("make", [_deformed, _sampled, _drawn, _embedded, _of_csr, _aligned, _pooled])
def test_gradients_are_the_same_bits_in_every_order_of_threads(gpus, monkeypatch, make):
    """None asks CuPy to add up floats by atomic operations."""

    def refused(self, a, indices, b):
        raise AssertionError(f"{self.__name__}.at of {a.dtype}: in no order")

    monkeypatch.setattr(Universal, "at", refused)
    found = []
    try:
        for order in range(3):
            compiler.set_order(order)
            mx.random.seed(7)
            wanted, run = make(gpus[0])
            for x in wanted:
                x.attach_grad()
            with mx.autograd.record():
                y = run()
            y.backward()
            found.append([x.grad.asnumpy().tobytes() for x in wanted])
    finally:
        compiler.set_order(compiler.FORWARD)
    assert found[0] == found[1] == found[2]


def test_rows_that_are_merged_are_added_up_in_order(xp):
    rs = np.random.RandomState(0)
    index, rows = rs.randint(0, 9, 400), rs.randn(400, 33).astype("float32")
    merged = merge_rows(xp, (12, 33), xp.asarray(index), xp.asarray(rows))
    want = np.zeros((12, 33))
    np.add.at(want, index, rows.astype("float64"))
    np.testing.assert_allclose(merged.todense(xp).get(), want, atol=1e-4)
