"""Random arrays, sparse arrays, matrices and helpers."""

import numpy as np
import pytest

import mxcore as mx

t = mx.test_utils


@pytest.fixture(autouse=True)
def seed():
    np.random.seed(5)


def test_random_arrays():
    a, b = t.random_arrays((2, 3), (4,))
    assert (a.shape, b.shape, a.dtype) == ((2, 3), (4,), np.float32)
    assert isinstance(t.random_arrays((2,)), np.ndarray) and t.random_arrays() == []
    (u,) = t.random_uniform_arrays((1000,), low=2, high=3, dtype="float64")
    assert u.dtype == np.float64 and 2 <= u.min() < 2.1 and 2.9 < u.max() < 3
    with pytest.raises(TypeError, match="foo"):
        t.random_uniform_arrays((2,), foo=1)


def test_random_sample():
    assert sorted(t.random_sample(range(4), 4)) == [0, 1, 2, 3]
    assert len(set(t.random_sample(range(100), 50))) == 50
    np.random.seed(3)
    assert t.random_sample([1, 2, 3, 4], 4) == np.random.RandomState(3).permutation([1, 2, 3, 4]).tolist()
    with pytest.raises(AssertionError, match="from 0 to the 2"):
        t.random_sample([1, 2], 3)


def test_full_arrays():
    x = t.rand_ndarray((300, 40), ctx=mx.cpu(1))
    assert (x.shape, x.dtype, x.context) == ((300, 40), np.float32, mx.cpu(1))
    assert abs(float(x.mean().asscalar())) < 0.05 and 0.9 < x.asnumpy().std() < 1.1


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_sparse_arrays(stype, dtype):
    x, parts = t.rand_sparse_ndarray((40, 50), stype, density=0.5, dtype=dtype)
    assert (x.stype, x.shape, np.dtype(x.dtype)) == (stype, (40, 50), np.dtype(dtype))
    x.check_format()
    dense = x.asnumpy()
    if stype == "csr":
        indptr, indices, data = (p.asnumpy() for p in parts)
        assert len(data) == len(indices) == indptr[-1] == 1000
    else:
        data, rows = parts
        np.testing.assert_array_equal(dense[rows], data)
        assert 10 <= len(rows) <= 30
    assert dense.min() >= 0 and (dense.max() < 1 or dtype == "int32")


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_density_of_nothing_and_of_all(stype):
    assert t.rand_ndarray((6, 7), stype, density=0).indices.shape == (0,)
    assert t.rand_ndarray((6, 7), stype, density=1).data.size == 42
    counts = {t.rand_ndarray((6, 7), stype).data.size for _ in range(20)}
    assert len(counts) > 3


def test_values_that_are_asked_for():
    for stype in ("csr", "row_sparse"):
        stored = t.create_sparse_array((8, 9), stype, data_init=3, density=1).data.asnumpy()
        assert (stored == 3).all()
        stored = t.create_sparse_array((8, 9), stype, modifier_func=lambda v: v + 10, density=1).data.asnumpy()
        assert ((stored >= 10) & (stored < 11.001)).all()
    x = t.create_sparse_array((4, 2), "row_sparse", rsp_indices=[3, 1])
    assert x.indices.asnumpy().tolist() == [1, 3]


def test_zero_density_form():
    assert t.create_sparse_array_zd((4, 5), "row_sparse", 0.5).indices.shape == (0,)
    assert t.create_sparse_array_zd((4, 5), "row_sparse", 0.0, rsp_indices=[2]).indices.asnumpy().tolist() == [2]
    assert t.create_sparse_array_zd((4, 5), "csr", 0.5).data.shape == (10,)


def test_shuffled_columns():
    """An array keeps its places in order: the values move, each within its row."""
    x = t.create_sparse_array((3, 40), "csr", density=1, data_init=1)
    x[:] = np.arange(1, 121).reshape(3, 40)
    t.shuffle_csr_column_indices(x)
    x.check_format()
    found = x.asnumpy()
    assert not (np.diff(found) > 0).all() and x.dtype == np.float32
    np.testing.assert_array_equal(np.sort(found), np.arange(1, 121).reshape(3, 40))
    t.create_sparse_array((3, 40), "csr", density=1, shuffle_csr_indices=True).check_format()


def test_shuffling_a_scipy_matrix():
    sparse = pytest.importorskip("scipy.sparse")
    m = sparse.csr_matrix(np.ones((2, 30)))
    t.shuffle_csr_column_indices(m)
    assert sorted(m.indices[:30]) == list(range(30)) != m.indices[:30].tolist()


@pytest.mark.parametrize(
    ("kind", "match", "arguments"),
    [
        (AssertionError, "'foo'", {"stype": "foo"}),
        (AssertionError, "'uniform' or 'powerlaw'", {"stype": "csr", "distribution": "foo"}),
        (AssertionError, "not supported for row_sparse", {"stype": "row_sparse", "distribution": "powerlaw"}),
        (ValueError, "between 0 and 1, got 2", {"stype": "csr", "density": 2}),
        (ValueError, "between 0 and 1", {"stype": "row_sparse", "density": -0.1}),
        (AssertionError, "two dimensions", {"stype": "csr", "shape": (2, 3, 4)}),
        (ValueError, "two a row", {"stype": "csr", "density": 0.1, "distribution": "powerlaw"}),
    ],
)
def test_bad_sparse_arrays(kind, match, arguments):
    with pytest.raises(kind, match=match):
        t.rand_sparse_ndarray(**{"shape": (5, 10), **arguments})


def test_matrices():
    q = t.new_orthonormal_matrix_2d(5)
    np.testing.assert_allclose(q @ q.T, np.eye(5), atol=1e-12)
    s = t.new_sym_matrix_with_real_eigvals_nd((2, 5, 5))
    np.testing.assert_array_equal(s, s.transpose(0, 2, 1))
    assert np.abs(np.linalg.eigvalsh(s)).max() <= 10
    for a in t.new_matrix_with_real_eigvals_nd((4, 5, 6, 6)).reshape(-1, 6, 6):
        values = np.linalg.eigvals(a)
        assert np.isreal(values).all() and np.abs(values).max() <= 10 + 1e-9 and np.linalg.cond(a) < 100
        assert np.diff(np.sort(values.real)).min() > 0.1 and np.abs(a - a.T).max() > 1e-3
    assert t.new_orthonormal_matrix_2d(1).shape == t.new_matrix_with_real_eigvals_2d(1).shape == (1, 1)
    with pytest.raises(ValueError, match=r"equal, got \(2, 3\)"):
        t.new_sym_matrix_with_real_eigvals_nd((2, 3))


def test_collapse_sum_like_refuses_what_does_not_broadcast():
    for shape in ((2,), (2, 2, 3), (3, 3)):
        with pytest.raises(AssertionError, match="cannot be broadcast"):
            t.collapse_sum_like(np.ones((2, 3)), shape)


def test_assign_each_without_a_function_copies():
    x = np.arange(3)
    y = t.assign_each(x, None)
    assert y is not x and (y == x).all()
    assert t.assign_each(mx.nd.arange(3), lambda v: v * 2).tolist() == [0, 2, 4]
    assert t.assign_each2(x, x, None).tolist() == [0, 1, 2] and t.assign_each(np.zeros((0, 2)), abs).shape == (0, 2)
