"""Taking rows of a table and adding gradients into them."""

import numpy as np
import pytest

import mxcore as mx
from mxcore_cpu.kernels import embedding, reduction

rng = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u1"])
@pytest.mark.parametrize("workers", [1, 4])
def test_take_and_add(dtype, workers, monkeypatch):
    for kernel in (embedding._take, embedding._add):
        monkeypatch.setattr(kernel, "workers", lambda work: workers)
    table, index = rng.standard_normal((11, 3, 2)), rng.integers(0, 11, (5, 7)).astype(dtype)
    out = np.empty((5, 7, 3, 2))
    embedding.take_rows(table, index, out)
    np.testing.assert_array_equal(out, table[index.astype(int)])
    expected = np.zeros_like(table)
    np.add.at(expected, index.astype(int), out)
    got = np.full_like(table, np.nan)
    embedding.add_rows(out, index, got)
    np.testing.assert_allclose(got, expected, atol=1e-14)


def test_what_is_out_of_range_is_clipped():
    table, index = np.array([[1.0], [2.0], [3.0]]), np.array([-1, 0, 5, 2.7, np.nan, np.inf, 1e30], "f4")
    out = np.empty((7, 1))
    embedding.take_rows(table, index, out)
    assert out.ravel().tolist() == [1, 1, 3, 3, 1, 3, 3]
    embedding.add_rows(np.array([[1.0], [10], [100], [1000], [0], [0], [0]]), index, table)
    assert table.ravel().tolist() == [11, 0, 1100]


@pytest.mark.parametrize("n", [3, 11, 10**6])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u1"])
def test_rows_that_are_named_and_their_sums(n, dtype):
    """Of tables that are looked through, and of long ones, for which indices are sorted."""
    index, d_out = rng.integers(0, min(n, 200), 300).astype(dtype), rng.standard_normal((300, 4))
    rows, values = embedding.merged_rows(d_out, index, n)
    want, place = np.unique(index.astype(int), return_inverse=True)
    sums = np.zeros((len(want), 4))
    np.add.at(sums, place, d_out)
    assert rows.dtype == np.int64 and rows.tolist() == want.tolist()
    np.testing.assert_allclose(values, sums, atol=1e-12)


@pytest.mark.parametrize("n", [3, 1000])
def test_named_rows_that_are_out_of_range_are_clipped(n):
    index = np.array([-1, 0, 5e6, 2, np.nan, np.inf, 1e30], "f4")
    rows, values = embedding.merged_rows(np.arange(7.0).reshape(7, 1), index, n)
    assert (rows.tolist(), values.ravel().tolist()) == {3: ([0, 2], [5, 16]), 1000: ([0, 2, 999], [5, 3, 13])}[n]
    assert [a.shape for a in embedding.merged_rows(np.ones((0, 2)), np.zeros(0), n)] == [(0,), (0, 2)]


@pytest.mark.parametrize("n", [2**25, 2**25 + 2])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_the_last_row_of_a_long_table_is_named_by_what_is_beyond(n, dtype):
    index = np.array([np.inf, -np.inf, np.nan, 5], dtype)
    rows, values = embedding.merged_rows(np.arange(1.0, 5).reshape(4, 1), index, n)
    assert rows.tolist() == [0, 5, n - 1] and values.ravel().tolist() == [5, 4, 1]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("sparse", [False, True])
def test_each_gradient_goes_to_the_row_that_was_taken(dtype, sparse):
    """By kernels, which take over from 4096 elements on, as by the bodies."""
    further = [3e4] if dtype == "float16" else [3e9, 1e19, -1e19]
    far = np.array([-1, 0, 2.7, 2.2, 3, np.nan, np.inf, -np.inf, *further])
    rows = {}
    for times in (1, 64):
        weight = mx.nd.array(np.arange(4.0)[:, None] + np.zeros((4, 40)))
        weight.attach_grad(stype="row_sparse" if sparse else "default")
        with mx.autograd.record():
            y = mx.nd.Embedding(
                mx.nd.array(np.tile(far, times), dtype=dtype), weight, input_dim=4, output_dim=40, sparse_grad=sparse
            )
        y.backward()
        rows[times] = y.asnumpy()[: len(far), 0].tolist()
        taken = np.bincount(np.array(rows[times], int), minlength=4) * times
        assert weight.grad.asnumpy()[:, 0].tolist() == taken.tolist()
    assert rows[1] == rows[64] == [0, 0, 2, 2, 3, 0, 3, 0, *[3, 3, 0][: len(further)]]


def test_nothing():
    embedding.take_rows(np.ones((3, 2)), np.empty(0), np.empty((0, 2)))
    table = np.ones((3, 2))
    embedding.add_rows(np.empty((0, 2)), np.empty(0), table)
    assert not table.any()


@pytest.mark.parametrize("shape, axes", [((5, 7), 1), ((3, 4, 5000), 2), ((4,), 1), ((2, 0), 1), ((0, 3), 1)])
def test_sums_over_last_axes(shape, axes):
    x = rng.standard_normal(shape)
    out = np.empty(shape[: len(shape) - axes])
    reduction.sum_last(x, axes, out)
    np.testing.assert_allclose(out, x.sum(tuple(range(len(shape) - axes, len(shape)))), atol=1e-12)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 128, 1000, 4097])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("width", [3, 400])
def test_rows_that_are_named_are_merged_in_order(n, dtype, width):
    """By one thread and by several; sums begin with zero, so that none is -0.0."""
    rng = np.random.default_rng(n)
    index = np.concatenate([rng.integers(-3, n + 3, 200), [0, n - 1, n - 1, 63, 64]]).astype(dtype)
    d_out = rng.standard_normal((len(index), width))
    d_out[:, 1] = -0.0
    rows, sums = embedding.merged_rows(d_out, index, n)
    near = np.clip(index.astype("i8"), 0, n - 1)
    expected = np.zeros((n, width))
    np.add.at(expected, near, d_out)
    assert rows.dtype == np.int64 and rows.tolist() == sorted(set(near.tolist()))
    np.testing.assert_array_equal(sums, expected[rows])
    assert not np.signbit(sums[:, 1]).any()


def test_long_tables_sort_the_indices(monkeypatch):
    index, d_out = np.array([70, 3, 70, 99, 0]), np.arange(10.0).reshape(5, 2)
    seen = embedding.merged_rows(d_out, index, 100)
    monkeypatch.setattr(embedding, "_SPARSE", 0)
    for a, b in zip(seen, embedding.merged_rows(d_out, index, 100)):
        np.testing.assert_array_equal(a, b)
