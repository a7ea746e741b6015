"""Python's operators over small arrays: the short way of the kernels gives what the operators' own way gives."""

import operator
from contextlib import ExitStack
from unittest import mock

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import dispatch
from mxcore.ndarray import operators
from mxcore.ndarray.operators import SHORT, SMALL
from mxcore.plugin import unwatch, watch

BINARY = [operator.add, operator.sub, operator.mul, operator.truediv]
COMPARING = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
NUMBERS = [2.5, -0.0, 0.0, 3, -1, float("inf"), float("nan"), 1e-9, 70000, 1e300]
DTYPES = ["float16", "float32", "float64"]


@pytest.fixture
def general(gpus):
    """A function's result where nothing takes the short way."""

    def run(fn):
        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(operators, "_learn"))
            for ways in SHORT.values():
                stack.enter_context(mock.patch.dict(ways, clear=True))
            return fn()

    return run


@pytest.fixture
def slowly():
    """How many calls took the operators' own way."""
    found = []

    def counted(op, *args, **kwargs):
        found.append(op.name)
        return dispatch.invoke(op, *args, **kwargs)

    dispatch.route(apply=counted)
    yield found
    dispatch.route()


def same(a, b):
    a, b = a.asnumpy(), b.asnumpy()
    assert a.dtype == b.dtype and a.shape == b.shape
    np.testing.assert_array_equal(a.view(f"u{a.itemsize}"), b.view(f"u{b.itemsize}"))


def pair(dtype, ctx, shape=(5, 7)):
    rs = np.random.RandomState(3)
    a, b = (rs.choice([0.0, -0.0, 1.5, -2.25, np.inf, np.nan, 0.3, 7.0], shape).astype(dtype) for _ in range(2))
    return mx.nd.array(a, ctx=ctx, dtype=dtype), mx.nd.array(b, ctx=ctx, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fn", BINARY + COMPARING, ids=lambda fn: fn.__name__)
def test_arrays(gpus, general, slowly, fn, dtype):
    a, b = pair(dtype, gpus[0])
    wanted = general(lambda: fn(a, b))
    slowly.clear()
    fn(a, b)
    assert len(slowly) == 1
    slowly.clear()
    same(fn(a, b), wanted)
    same(fn(a, b), wanted)
    assert not slowly


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("fn", BINARY, ids=lambda fn: fn.__name__)
def test_numbers(gpus, general, slowly, fn, turned, dtype):
    a, _ = pair(dtype, gpus[0])
    call = (lambda n: fn(n, a)) if turned else (lambda n: fn(a, n))
    call(2.5)
    for n in NUMBERS:
        wanted = general(lambda n=n: call(n))
        slowly.clear()
        for _ in range(3):  # a number that comes again is kept
            same(call(n), wanted)
        assert not slowly


def test_numbers_that_are_no_floats(gpus):
    for ctx in (mx.cpu(), gpus[0]):
        a = mx.nd.ones(3, ctx=ctx)
        a + 1
        for n in (10**400, -(10**400)):
            with pytest.raises(mx.MXNetError, match="parameter 'scalar' must be float"):
                a + n


@pytest.mark.parametrize("shape", [(0,), (3, 0), (1,), (255,), (256,), (257,), (SMALL,), (SMALL + 1,)])
def test_sizes(gpus, shape):
    x = np.random.RandomState(0).randn(*shape).astype("float32")
    a = mx.nd.array(x, ctx=gpus[0])
    for _ in range(3):
        np.testing.assert_array_equal((a * a).asnumpy(), x * x)
        np.testing.assert_array_equal((a - 3).asnumpy(), x - 3)


def test_what_is_not_dense(gpus):
    x = np.arange(12.0, dtype="float32").reshape(3, 4)
    a = mx.nd.array(x, ctx=gpus[0])
    a + a
    loose = mx.nd.ones((4, 3), ctx=gpus[0])
    loose._data = a._data.T
    assert not loose._data.flags.c_contiguous
    other = mx.nd.ones((4, 3), ctx=gpus[0])
    for fn, wanted in (
        (lambda: loose + other, x.T + 1),
        (lambda: other - loose, 1 - x.T),
        (lambda: loose * 3, x.T * 3),
    ):
        np.testing.assert_array_equal(fn().asnumpy(), wanted)


def test_the_other_device(gpus):
    a, b = (mx.nd.full((2, 2), n, ctx=gpus[1]) for n in (3, 4))
    a + b
    for ctx in (*gpus, *gpus):
        ctx.device.activate(0)
        found = a + b
        assert found.context == gpus[1] and found.asnumpy().tolist() == [[7, 7], [7, 7]]
    c = mx.nd.ones((2, 2), ctx=gpus[0])
    with pytest.raises(mx.MXNetError, match="different devices"):
        a + c


def test_results_are_their_own(gpus):
    a = mx.nd.ones((3,), ctx=gpus[0])
    kept = [a + i for i in range(50)]
    a[:] = 7
    assert [x.asnumpy().tolist() for x in kept] == [[1.0 + i] * 3 for i in range(50)]


def test_gradients(gpus, general, slowly):
    def grads():
        a, b = (mx.nd.array([1.5, -2.0, 3.0], ctx=gpus[0]) * n for n in (1, 2))
        for x in (a, b):
            x.attach_grad()
        with mx.autograd.record():
            y = (a * b + a / b) * 3 - 2 / a
        y.backward()
        return a.grad, b.grad

    expected = general(grads)
    grads()
    slowly.clear()
    for found, wanted in zip(grads(), expected, strict=True):
        same(found, wanted)
    assert {*slowly} == {"negative"}  # of one array, which has no short way


def test_threads(gpus, in_threads):
    arrays = [mx.nd.full((64,), i, ctx=gpus[i % 2]) for i in range(6)]
    wrong = []

    def work(a, n):
        for i in range(200):
            if (a + a - i).asnumpy().tolist() != [2 * n - i] * 64:
                wrong.append((n, i))

    in_threads(work, [(a, n) for n, a in enumerate(arrays)])
    assert not wrong


def test_who_watches_sees_them(gpus):
    a = mx.nd.ones((3,), ctx=gpus[0])
    a + a
    seen = []

    def observer(fn, name, ctx, ins, outs, node):
        def call(*args):
            seen.append(name)
            return fn(*args)

        return call

    watch(observer)
    try:
        for _ in range(3):
            a + a
        assert seen == ["elemwise_add"] * 3
    finally:
        unwatch(observer)
    a + a
    assert len(seen) == 3


def test_no_memory_is_left(gpus, monkeypatch):
    a = mx.nd.ones((64,), ctx=gpus[0])
    a + a
    monkeypatch.setenv("MXCORE_CUDA_EMULATE_MEMORY", "100")
    with pytest.raises(mx.MXNetError, match=r"gpu\(0\) has no room for 256 bytes"):
        a + a
    monkeypatch.undo()
    assert (a + a).asnumpy().tolist() == [2.0] * 64


def test_a_lost_gpu_refuses(gpus, monkeypatch):
    a = mx.nd.ones((4,), ctx=gpus[0])
    a + a
    monkeypatch.setattr(gpus[0].device.driver.faults, "refusal", "the GPU cannot be used any more")
    with pytest.raises(mx.MXNetError, match="cannot be used any more"):
        a + a
