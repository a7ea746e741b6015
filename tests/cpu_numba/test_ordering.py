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


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("ascend", [False, True])
@pytest.mark.parametrize("kind", DATA)
def test_whole_rows(kind, ascend, workers, monkeypatch):
    monkeypatch.setattr(ordering._keys, "workers", lambda work: workers)
    rows = DATA[kind].astype("f4")
    rows[:, ::7] *= -0.0 if kind == "ties" else 1  # zeros of both signs are equal
    values, places, lead = ordering.order(rows, -1, ascend)
    assert lead == rows.shape[:1]
    np.testing.assert_array_equal(places, stable(rows, rows.shape[1], ascend))
    np.testing.assert_array_equal(values, np.take_along_axis(rows, places, 1))
    assert ordering.order(rows, -1, ascend, False)[0].size == 0


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_whole_axes(axis):
    x = rng.standard_normal((30, 40, 20)).astype("f4")
    values, places, lead = ordering.order(x, axis, True)
    moved = x.reshape(1, -1) if axis is None else np.moveaxis(x, axis, -1)
    assert lead == moved.shape[:-1]
    np.testing.assert_array_equal(values.reshape(moved.shape), np.sort(moved, -1))
    np.testing.assert_array_equal(places.reshape(moved.shape), np.argsort(moved, -1, kind="stable"))


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("sort", {"axis": 0}),
        ("sort", {"is_ascend": False}),
        ("argsort", {"axis": None, "dtype": "int32"}),
        ("argsort", {"axis": 1}),
        ("topk", {"k": 25, "ret_typ": "both"}),
        ("topk", {"k": 0, "axis": 0, "ret_typ": "value"}),
        ("topk", {"k": 20, "ret_typ": "mask", "axis": None}),
    ],
)
def test_operators_as_their_bodies(name, params):
    import mxcore as mx

    x = np.round(rng.standard_normal((17, 40)), 1)
    # float64 has no kernel.
    got, expected = (getattr(mx.nd, name)(mx.nd.array(x, dtype=t), **params) for t in ("float32", "float64"))
    for a, b in zip(*(v if isinstance(v, list) else [v] for v in (got, expected))):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy().astype(a.dtype))
