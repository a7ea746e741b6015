"""The array functions that bodies get on the CPU: NumPy's results, without a fight for the cores."""

import time

import numpy as np
import pytest

import mxcore as mx
from mxcore_cpu import blas, threads
from mxcore_cpu.kernels import gemm
from mxcore_cpu.namespace import _held, namespace

rng = np.random.default_rng(0)


def test_the_rest_is_numpy():
    assert mx.cpu().device.xp is namespace
    assert namespace.tanh is np.tanh and namespace.pi == np.pi and namespace.linalg.LinAlgError is np.linalg.LinAlgError
    assert {"matmul", "tanh", "linalg"} <= set(dir(namespace))
    with pytest.raises(AttributeError, match="no_such"):
        namespace.no_such  # noqa: B018


SHAPES = [
    ((3, 4), (4, 5)),
    ((300, 200), (200, 150)),
    ((1, 900), (900, 1200)),
    ((3, 1200), (1200, 1100)),
    ((1200, 900), (900, 2)),
    ((6, 70, 90), (6, 90, 80)),
    ((70, 90), (6, 90, 80)),
    ((2, 3, 40, 50), (50, 60)),
    ((500,), (500, 300)),
    ((300, 500), (500,)),
    ((0, 3), (3, 2)),
]


CASES = [(t, *s) for t in ("f4", "f8") for s in SHAPES] + [(t, (90, 70), (70, 60)) for t in ("i4", "f2", "c16")]


@pytest.mark.parametrize("dtype, a, b", CASES, ids=str)
@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
def test_products(dtype, a, b, several, monkeypatch):
    if several:
        for kernel in (gemm._matmul, gemm._times_vector):
            monkeypatch.setattr(kernel, "workers", lambda work: 3)
    x, y = (np.round(rng.standard_normal(s) * 4).astype(dtype) for s in (a, b))
    tolerance = {"f2": 0.05, "f4": 1e-5}.get(dtype, 1e-12)
    for u in (x, np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2) if x.ndim > 1 else x):
        for v in (y, y[..., ::-1, :] if y.ndim > 1 else y):
            expected = np.matmul(u, v)
            found = namespace.matmul(u, v)
            assert found.dtype == expected.dtype and found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * 100)
            out = np.empty_like(expected)
            assert namespace.matmul(u, v, out=out) is out
            np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance * 100)
            np.testing.assert_allclose(namespace.dot(u, v), np.dot(u, v), rtol=tolerance, atol=tolerance * 100)


def test_errors_are_numpys():
    for a, b in (((300, 200), (300, 200)), ((2, 3), (2, 3)), ((), (3,))):
        with pytest.raises(ValueError, match="matmul"):
            namespace.matmul(np.ones(a), np.ones(b))
    with pytest.raises(ValueError, match="matmul"):
        namespace.matmul(np.ones((300, 200)), np.ones((200, 300)), out=np.empty((7, 7)))
    assert namespace.matmul([[1, 2]], [[3], [4]]) == [[11]]


def test_calls_hold_blas():
    count = blas.find().get_threads
    if count is None:
        pytest.skip("no BLAS whose threads can be counted")
    seen = _held(lambda a: count(), lambda a: a.size > 4)
    assert seen(np.ones(3)) == 1
    assert seen(np.ones(5)) == count()
    a = rng.standard_normal((5, 5)) + 5 * np.eye(5)
    np.testing.assert_array_equal(namespace.linalg.inv(a), np.linalg.inv(a))
    np.testing.assert_array_equal(namespace.einsum("ij,jk->ik", a, a), np.einsum("ij,jk->ik", a, a))
    np.testing.assert_array_equal(namespace.tensordot(a, a, 1), np.tensordot(a, a, 1))


def test_middling_products_wake_no_threads():
    a = np.ones((150, 150), np.float32)
    with threads.limit(1):  # ends the spinning of what ran before
        time.sleep(0.1)
    start, before = time.perf_counter(), time.process_time() - time.thread_time()
    while time.perf_counter() - start < 0.1:
        namespace.matmul(a, a)
    others = time.process_time() - time.thread_time() - before
    assert others < 0.02
