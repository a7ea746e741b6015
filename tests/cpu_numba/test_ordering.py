"""The first few of rows against a stable sort."""
import numpy as np
import pytest

from mxcore_cpu.kernels import ordering

rng = np.random.default_rng(0)


def stable(rows, k, ascend):
    """Places of the first k; NaN counts as the greatest, equal values keep their order."""
    if ascend:
        return np.argsort(rows, 1, kind="stable")[:, :k]
    return (rows.shape[1] - 1 - np.argsort(rows[:, ::-1], 1, kind="stable")[:, ::-1])[:, :k]


DATA = {
    "numbers": rng.standard_normal((5, 300)),
    "ties": rng.integers(0, 4, (5, 300)).astype("f8"),
    "nan": np.where(rng.random((5, 300)) < 0.1, np.nan, rng.standard_normal((5, 300))),
    "all nan": np.full((2, 50), np.nan),
    "infinities": np.where(rng.random((5, 300)) < 0.1, np.inf, -np.inf),
    "falling": np.arange(100.0)[None, ::-1],
}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("ascend", [False, True])
@pytest.mark.parametrize("k", [1, 2, 7, 12])
@pytest.mark.parametrize("kind", DATA)
def test_rows(kind, k, ascend, workers, monkeypatch):
    monkeypatch.setattr(ordering._select, "workers", lambda work: workers)
    rows = DATA[kind].astype("f4")
    values, places, lead = ordering.first_in_order(rows, k, -1, ascend)
    assert lead == rows.shape[:1]
    np.testing.assert_array_equal(places, stable(rows, k, ascend))
    np.testing.assert_array_equal(values, np.take_along_axis(rows, places, 1))


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_axes(axis):
    x = rng.standard_normal((9, 11, 10))
    values, _, lead = ordering.first_in_order(x, 2, axis, False)
    rows = x.reshape(1, -1) if axis is None else np.moveaxis(x, axis, -1)
    assert lead == rows.shape[:-1]
    np.testing.assert_array_equal(values.reshape(*lead, 2), -np.sort(-rows, -1)[..., :2])
