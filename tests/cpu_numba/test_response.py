"""Local response normalization against the formula and a finite difference."""

import numpy as np
import pytest

from mxcore_cpu.kernels import response

rng = np.random.default_rng(0)
HOW = {"alpha": 0.3, "beta": 0.75, "knorm": 2.0}


def reference(x, nsize, alpha, beta, knorm):
    half, square = nsize // 2, x * x
    near = np.stack([square[:, max(0, c - half) : c + half + 1].sum(1) for c in range(x.shape[1])], 1)
    return x * (knorm + alpha / nsize * near) ** -beta


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("shape, nsize", [((2, 5, 3, 2), 3), ((1, 3, 700), 5), ((3, 4), 1), ((2, 2, 1, 3, 2), 9)])
def test_values_and_gradients(shape, nsize, workers, monkeypatch):
    for kernel in (response._forward, response._backward):
        monkeypatch.setattr(kernel, "workers", lambda work: workers)
    x, dy, v = (rng.standard_normal(shape) for _ in range(3))
    out, dx = np.empty(shape), np.empty(shape)
    response.local_response(x, out, nsize=nsize, **HOW)
    np.testing.assert_allclose(out, reference(x, nsize, **HOW), rtol=1e-12)
    response.local_response_backward(dy, x, dx, nsize=nsize, **HOW)
    slope = (reference(x + 1e-6 * v, nsize, **HOW) - reference(x - 1e-6 * v, nsize, **HOW)) / 2e-6
    np.testing.assert_allclose((dx * v).sum(), (dy * slope).sum(), rtol=1e-6)


def test_single_precision():
    x = rng.standard_normal((2, 7, 5, 5)).astype("f4")
    out = np.empty_like(x)
    response.local_response(x, out, nsize=5, **HOW)
    np.testing.assert_allclose(out, reference(x.astype("f8"), 5, **HOW), rtol=2e-6)
