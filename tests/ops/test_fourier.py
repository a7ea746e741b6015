"""Fourier transforms and count sketches against NumPy: MXNet runs them on GPUs only."""

import numpy as np
import pytest

import mxcore as mx

from .golden.corners import wave

C = mx.nd.contrib


def pairs(z):
    """Complex numbers as interleaved reals."""
    return np.stack([z.real, z.imag], -1).reshape(*z.shape[:-1], -1)


@pytest.mark.parametrize("dtype, tol", [("float16", 2e-2), ("float32", 1e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("shape", [(3, 8), (2, 7), (1, 1), (2, 1, 3, 6)])
def test_transforms(shape, dtype, tol):
    x = wave(shape, 1).astype(dtype)
    a = mx.nd.array(x, dtype=dtype)
    y = C.fft(a, compute_size=3)
    assert y.dtype == np.dtype(dtype)
    np.testing.assert_allclose(y.asnumpy(), pairs(np.fft.fft(x.astype("d"))), rtol=tol, atol=tol * 4)
    np.testing.assert_allclose(C.ifft(y).asnumpy() / shape[-1], x, rtol=tol, atol=tol * 4)
    z = wave((*shape[:-1], 2 * shape[-1]), 2).astype(dtype)
    want = np.fft.ifft(z[..., ::2].astype("d") + 1j * z[..., 1::2].astype("d")).real * shape[-1]
    np.testing.assert_allclose(C.ifft(mx.nd.array(z, dtype=dtype)).asnumpy(), want, rtol=tol, atol=tol * 4)


def test_the_gradient_is_the_transpose():
    x = mx.nd.array(wave((2, 5), 1), dtype="float64")
    head = wave((2, 10), 2).astype("d")
    x.attach_grad()
    with mx.autograd.record():
        y = C.fft(x)
    y.backward(mx.nd.array(head, dtype="float64"))
    matrix = pairs(np.fft.fft(np.eye(5)))
    np.testing.assert_allclose(x.grad.asnumpy(), head @ matrix.T, rtol=1e-10, atol=1e-12)


def test_count_sketch_of_the_documentation():
    x = mx.nd.array([[1.2, 2.5, 3.4], [3.2, 5.7, 6.6]])
    y = C.count_sketch(data=x, h=mx.nd.array([[0, 3, 4]]), s=mx.nd.array([[1, -1, 1]]), out_dim=5)
    np.testing.assert_allclose(y.asnumpy(), [[1.2, 0, 0, -2.5, 3.4], [3.2, 0, 0, -5.7, 6.6]], rtol=1e-6)


@pytest.mark.parametrize("hash_dtype", ["float32", "int32"])
def test_count_sketch(hash_dtype):
    rs = np.random.RandomState(0)
    x, h, s = rs.rand(6, 20), rs.randint(0, 7, 20), rs.choice([-1, 1], 20)
    want = np.zeros((6, 7))
    for i in range(20):
        want[:, h[i]] += s[i] * x[:, i]
    a = mx.nd.array(x, dtype="float64")
    a.attach_grad()
    with mx.autograd.record():
        y = C.count_sketch(
            a, mx.nd.array(h, dtype=hash_dtype), mx.nd.array(s, dtype=hash_dtype), out_dim=7, processing_batch_size=4
        )
    y.backward(mx.nd.array(rs.rand(6, 7), dtype="float64"))
    np.testing.assert_allclose(y.asnumpy(), want, rtol=1e-12)
    head = np.random.RandomState(0)
    head.rand(6, 20), head.randint(0, 7, 20), head.choice([-1, 1], 20)
    np.testing.assert_allclose(a.grad.asnumpy(), head.rand(6, 7)[:, h] * s, rtol=1e-12)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: C.fft(mx.nd.ones((2, 3, 4))), r"data must be \(n, d\) or \(n1, n2, n3, d\), got \(2, 3, 4\)"),
        (lambda: C.ifft(mx.nd.ones((2, 3))), r"\(2, 3\) must have an even last axis"),
        (lambda: C.fft(mx.nd.ones((2, 4), dtype="int32")), "must be float16, float32 or float64, got int32"),
        (lambda: C.fft(mx.nd.ones((2, 4)), compute_size=0), "'compute_size' must be int >= 1"),
        (
            lambda: C.count_sketch(mx.nd.ones((2, 3, 1)), mx.nd.ones((1, 3)), mx.nd.ones((1, 3)), out_dim=2),
            r"data must be \(n, d\)",
        ),
        (
            lambda: C.count_sketch(mx.nd.ones((2, 3)), mx.nd.ones((1, 4)), mx.nd.ones((1, 3)), out_dim=2),
            r"h must be \(1, 3\).*got \(1, 4\)",
        ),
        (
            lambda: C.count_sketch(mx.nd.ones((2, 3)), mx.nd.ones((1, 3)), mx.nd.ones((2, 3)), out_dim=2),
            r"s must be \(1, 3\).*got \(2, 3\)",
        ),
        (
            lambda: C.count_sketch(mx.nd.ones((2, 3)), mx.nd.ones((1, 3)), mx.nd.ones((1, 3))),
            "needs parameter 'out_dim'",
        ),
        (
            lambda: C.count_sketch(mx.nd.ones((2, 3)), mx.nd.ones((1, 3)), mx.nd.ones((1, 3)), out_dim=0),
            "'out_dim' must be int >= 1",
        ),
        *[
            (
                lambda h=h: C.count_sketch(mx.nd.ones((1, 2)), mx.nd.array([[0, h]]), mx.nd.ones((1, 2)), out_dim=3),
                "count_sketch .*h holds .*; a column must lie between 0 and 2",
            )
            for h in (9, 3, -1, float("nan"))
        ],
    ],
)
def test_refusals(call, words):
    with pytest.raises(mx.MXNetError, match=words):
        call()
