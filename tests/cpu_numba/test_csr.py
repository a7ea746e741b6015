"""Kernels over csr, large enough for threads, against dense NumPy, by one thread and by two; bad parts are refused."""

import numpy as np
import pytest

from mxcore.plugin import CSR, RowSparse
from mxcore_cpu import threads
from mxcore_cpu.kernels import csr, rows
from tests.marks import slow

rng = np.random.default_rng(0)


def made(m, n, dtype=np.float32):
    """A matrix with empty rows, a full one, and others, dense and csr."""
    x = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.2)
    x[::7], x[1] = 0, 1
    x = x.astype(dtype)
    return x, csr.pack(x)


def dense(a):
    x = np.zeros(a.shape, a.dtype)
    x[np.repeat(np.arange(a.shape[0]), np.diff(a.indptr)), a.indices] = a.values
    return x


@pytest.mark.parametrize("dtype", [np.float32, *slow(np.float64)])
def test_against_dense(dtype):
    x, a = made(400, 300, dtype)
    y, b = made(400, 300, dtype)
    w, v = rng.normal(size=(300, 33)).astype(dtype), rng.normal(size=(300, 1)).astype(dtype)
    rows = np.flatnonzero(np.diff(a.indptr))
    close = {"rtol": 1e-4, "atol": 1e-4}
    for workers in (1, 2):
        with threads.limit(workers):
            np.testing.assert_array_equal(dense(a), x)
            np.testing.assert_array_equal(csr.unpack(a), x)
            np.testing.assert_array_equal(dense(csr.transposed(a)), x.T)
            for matrix in (w, v):
                np.testing.assert_allclose(csr.times(a, matrix), x @ matrix, **close)
                np.testing.assert_allclose(csr.times(a, matrix, rows), (x @ matrix)[rows], **close)
            np.testing.assert_allclose(csr.by_csr(a, csr.transposed(b)), x @ y.T, **close)
            for name, want in (("elemwise_add", x + y), ("elemwise_sub", x - y), ("elemwise_mul", x * y)):
                found = csr.merged(name, a, b)
                np.testing.assert_allclose(dense(found), want, rtol=1e-6)
                assert (found.values != 0).all()
            assert not len(csr.merged("elemwise_sub", a, a).values)
            for axis in (0, 1):
                np.testing.assert_allclose(csr.sums(a, a.values, axis), x.astype("f8").sum(axis), **close)
            some = rng.integers(0, 400, 500)
            np.testing.assert_array_equal(dense(csr.take(a, some)), x[some])
            for r, c in ((slice(3, 390), slice(0, 300)), (slice(0, 400), slice(17, 251)), (slice(9, 9), slice(5, 7))):
                found = csr.part(a, range(400)[r], range(300)[c])
                np.testing.assert_array_equal(dense(found), x[r, c])
                assert found.indptr[0] == 0 and found.indices.flags.owndata


def test_work_is_dealt_by_what_is_stored():
    """A full row beside empty ones, and columns of which one holds nearly everything."""
    start = np.array([0, 0, 0, 100, 100, 120, 140, 160, 180, 200])
    assert csr._cuts(start, 2, 0).tolist() == [0, 3, 9]
    assert csr._cuts(np.zeros(9, int), 4).tolist() == [0, 2, 4, 6, 8]
    x = np.zeros((3000, 50), "f4")
    x[:, 0] = np.arange(3000) + 1
    x[::100] = 7
    for workers in (1, 2):
        with threads.limit(workers):
            np.testing.assert_array_equal(dense(csr.transposed(csr.pack(x))), x.T)


def test_of_nothing():
    for shape in ((0, 3), (3, 0), (2, 2)):
        a = csr.pack(np.zeros(shape))
        assert csr.times(a, np.ones((shape[1], 2))).tolist() == [[0, 0]] * shape[0]
        assert csr.transposed(a).shape == shape[::-1] and not len(csr.merged("elemwise_add", a, a).values)
        assert csr.by_csr(a, csr.transposed(a)).shape == (shape[0],) * 2
        assert [csr.sums(a, a.values, i).tolist() for i in (0, 1)] == [[0] * shape[1], [0] * shape[0]]
        assert csr.take(a, np.zeros(0, int)).shape == (0, shape[1])
        assert csr.part(a, range(0), range(1, 1)).shape == (0, 0)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (([0, 1, 2], [0, 3], [1, 1]), r"lie in \[0, 3\)"),
        (([0, 1, 2], [0, -1], [1, 1]), r"lie in \[0, 3\)"),
        (([0, 2, 1], [0, 1], [1, 1]), "must rise"),
        (([0, 1], [0], [1]), "must rise"),
        (([0, 1, 3], [0, 1], [1, 1]), "must rise"),
        (([1, 1, 2], [0, 1], [1, 1]), "must rise"),
        (([0, 1, 2], [0, 1], [1]), "must rise"),
    ],
)
def test_bad_parts_are_refused(parts, text):
    a = CSR((2, 3), *(np.array(p) for p in parts[:2]), np.array(parts[2], np.float32))
    for call in (lambda: csr.times(a, np.ones((3, 2), np.float32)), lambda: csr.transposed(a), lambda: csr.unpack(a)):
        with pytest.raises(IndexError, match=text):
            call()


def test_columns_that_do_not_rise_are_refused():
    for columns in ([2, 0], [1, 1]):
        a = CSR((1, 3), np.array([0, 2]), np.array(columns), np.ones(2, np.float32))
        with pytest.raises(IndexError, match="must rise"):
            csr.merged("elemwise_add", a, a)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("workers", [1, 3])
def test_places_and_rows_that_are_asked_for(dtype, workers, monkeypatch):
    """Of edges and of rows to retain: those that there are, others, the first and the last, none at all."""
    for one in (csr._at, rows._retain):
        monkeypatch.setattr(one, "workers", lambda work: workers)
    for m, n in ((2, 1), (7, 5), (40, 60)):
        a = made(m, n)[1]
        a = a.with_parts(*a.parts[:2], a.values.astype(dtype) + 3)
        full = np.full((m, n + 2), -1, dtype)
        starts = a.parts[0]
        for i in range(m):
            full[i, a.indices[starts[i] : starts[i + 1]]] = a.values[starts[i] : starts[i + 1]]
        u, v = (x.reshape(-1) for x in np.mgrid[:m, -1 : n + 1])
        np.testing.assert_array_equal(csr.at(a, u, v, -1), full[u, v])
        assert csr.at(a, u[:0], v[:0], -1).shape == (0,)
        kept = np.flatnonzero(rng.random(m) < 0.5)
        x = RowSparse((m, 3), kept, rng.integers(1, 9, (len(kept), 3)).astype(dtype))
        for wanted in (np.arange(m), np.flatnonzero(rng.random(m) < 0.5), kept, kept[:0]):
            found = rows.retained(x, wanted)
            assert found.indices.tolist() == wanted.tolist() and found.dtype == dtype
            np.testing.assert_array_equal(found.values, x.todense(np)[wanted])
