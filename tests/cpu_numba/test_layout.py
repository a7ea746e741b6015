"""Transposition by tiles."""

import numpy as np
import pytest

import mxcore as mx
from mxcore_cpu import threads
from mxcore_cpu.kernels import layout

rng = np.random.default_rng(0)


@pytest.mark.parametrize(
    "shape, axes",
    [
        ((1, 1), (1, 0)),
        ((64, 64), (1, 0)),
        ((65, 130), (1, 0)),
        ((3, 7, 70), (0, 2, 1)),
        ((2, 3, 5, 4), (0, 2, 3, 1)),
        ((2, 3, 5, 4), (0, 3, 1, 2)),
        ((2, 3, 5, 4), (2, 3, 0, 1)),
        ((0, 4), (1, 0)),
    ],
)
@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8", "?"])
@pytest.mark.parametrize("workers", [1, 3])
def test_transpose(shape, axes, dtype, workers, monkeypatch):
    monkeypatch.setattr(threads, "maximum", lambda: workers)
    monkeypatch.setattr(layout._transpose, "threshold", 1)
    x = rng.integers(0, 200, shape).astype(dtype)
    out = np.empty([shape[a] for a in axes], dtype)
    layout.transpose(x, axes, out)
    np.testing.assert_array_equal(out, x.transpose(axes))
    layout.transpose(x[..., ::-1], axes, out.T[...].T)
    scattered = np.empty(out.shape[::-1], dtype).T
    layout.transpose(x[::-1], axes, scattered)
    np.testing.assert_array_equal(scattered, x[::-1].transpose(axes))


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_what_is_no_stack_of_matrices(axes):
    found = layout.as_matrices((2, 3, 4), axes)
    assert found is None
    with pytest.raises(ValueError, match="no transposition of matrices"):
        layout.transpose(np.empty((2, 3, 4)), axes, np.empty((2, 3, 4)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "int64"])
def test_operators(dtype, monkeypatch):
    used = []
    transpose = layout.transpose
    monkeypatch.setattr(layout, "transpose", lambda *a: (used.append(a), transpose(*a)))
    x = rng.integers(0, 100, (6, 130, 150)).astype(dtype)
    a = mx.nd.array(x, dtype=dtype)
    for found, axes in (
        (mx.nd.transpose(a, axes=(0, 2, 1)), (0, 2, 1)),
        (mx.nd.swapaxes(a, 1, -1), (0, 2, 1)),
        (mx.nd.transpose(a, axes=(-2, -1, 0)), (1, 2, 0)),
        (mx.nd.reshape(a, (0, -1)).T, None),
    ):
        expected = x.transpose(axes) if axes else x.reshape(6, -1).T
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found.asnumpy(), expected)
    assert len(used) == 4
    mx.nd.transpose(a), mx.nd.transpose(a[:1, :20, :20]), mx.nd.swapaxes(a, 1, 1)
    assert len(used) == 4
