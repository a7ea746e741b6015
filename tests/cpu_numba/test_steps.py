"""Steps of sequences, single elements of rows."""

import numpy as np
import pytest

from mxcore_cpu.kernels import pick, sequence


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_mask(axis, dtype, workers, monkeypatch):
    monkeypatch.setattr(sequence._mask, "workers", lambda work: workers)
    x = np.random.default_rng(0).standard_normal((7, 7, 3)).astype(dtype)
    lengths = np.array([0, 1, 2.5, 7, 9, -1, 6])
    out = np.empty_like(x)
    sequence.mask_steps(x, lengths, out, axis=axis, value=-2.0)
    steps = np.arange(7).reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
    inside = steps < lengths.astype("i8").reshape((1, -1, 1) if axis == 0 else (-1, 1, 1))
    np.testing.assert_array_equal(out, np.where(inside, x, -2.0).astype(dtype))


def test_mask_of_nothing(monkeypatch):
    monkeypatch.setattr(sequence._mask, "run", lambda *args: pytest.fail("there is nothing to run over"))
    out = np.empty((3, 0))
    sequence.mask_steps(np.empty((3, 0)), np.ones(0), out, axis=0, value=0.0)
    assert out.shape == (3, 0)


@pytest.mark.parametrize("dtype", ["f2", "f4", "i4", "i8", "u1"])
def test_one_hot(dtype):
    index = np.array([[0, 2.9], [-1, 3]])
    out = np.empty((2, 2, 3), dtype)
    pick.one_hot(index, out, 5, 1)
    np.testing.assert_array_equal(out, [[[5, 1, 1], [1, 1, 5]], [[1, 1, 1], [1, 1, 1]]])
