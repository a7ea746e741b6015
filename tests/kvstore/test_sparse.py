"""Row-sparse values and gradients."""

import numpy as np
import pytest

import mxcore as mx


@pytest.fixture(params=("local", "device"))
def kv(request):
    return mx.kv.create(request.param)


def rows(numbers, value, ctx=None):
    data = np.full((len(numbers), 2), value, "float32")
    return mx.nd.sparse.row_sparse_array((data, numbers), shape=(4, 2), ctx=ctx)


def test_sparse_gradients_are_added_up_and_stay_sparse(kv):
    seen = []
    kv.init("w", mx.nd.ones((4, 2)))
    kv._set_updater(lambda key, pushed, stored: seen.append(pushed))
    kv.push("w", [rows([0, 1], 1), rows([1, 3], 2, mx.cpu(1))])
    assert seen[0].stype == "row_sparse"
    np.testing.assert_array_equal(seen[0].indices.asnumpy(), [0, 1, 3])
    np.testing.assert_array_equal(seen[0].asnumpy()[:, 0], [1, 3, 0, 2])


def test_sparse_and_dense_are_added_up(kv):
    kv.init("w", mx.nd.zeros((4, 2)))
    kv.push("w", [rows([0], 3), mx.nd.ones((4, 2), ctx=mx.cpu(1))])
    out = mx.nd.empty((4, 2))
    kv.pull("w", out=out)
    np.testing.assert_array_equal(out.asnumpy()[:, 0], [4, 1, 1, 1])


def test_row_sparse_pull_gives_the_rows_asked_for(kv):
    kv.init("w", rows([0, 1, 2, 3], 5))
    outs = [rows([], 0, mx.cpu(i)) for i in range(2)]
    kv.row_sparse_pull("w", out=outs, row_ids=[mx.nd.array([3, 1, 3]), mx.nd.array([0], dtype="int64")])
    assert [o.indices.asnumpy().tolist() for o in outs] == [[1, 3], [0]]
    assert [o.context for o in outs] == [mx.cpu(0), mx.cpu(1)] and outs[0].asnumpy().sum() == 20
    kv.row_sparse_pull(["w"], out=[outs], row_ids=mx.nd.array([2]))
    assert [o.indices.asnumpy().tolist() for o in outs] == [[2], [2]]


def test_rows_that_a_value_does_not_hold_are_zero(kv):
    kv.init("w", rows([0, 1, 2, 3], 5))
    kv.push("w", rows([1, 3], 2))  # replaces the value
    out = rows([], 0)
    kv.row_sparse_pull("w", out=out, row_ids=mx.nd.array([1, 2]))
    np.testing.assert_array_equal(out.indices.asnumpy(), [1, 2])
    np.testing.assert_array_equal(out.asnumpy()[:, 0], [0, 2, 0, 0])
    dense = mx.nd.ones((4, 2))
    kv.pull("w", out=dense)
    np.testing.assert_array_equal(dense.asnumpy()[:, 1], [0, 2, 0, 2])


def test_an_optimizer_with_sparse_gradients(kv):
    # Values made with MXNet 1.9.1.
    kv.init("w", mx.nd.ones((4, 2)))
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=1.0, lazy_update=True))
    out = mx.nd.empty((4, 2))
    for expected in (-2, -5):
        kv.pushpull("w", [rows([0], 3)], out=out)
        np.testing.assert_array_equal(out.asnumpy()[:, 0], [expected, 1, 1, 1])


def test_pull_leaves_sparse_arrays_with_a_warning(kv):
    kv.init("w", rows([0, 1, 2, 3], 5))
    out = rows([], 0)
    with pytest.warns(mx.base.MXNetWarning, match="row_sparse_pull"):
        kv.pull("w", out=out)
    assert out.indices.shape == (0,)
    kv.pull("w", out=out, ignore_sparse=False)
    assert (out.asnumpy() == 5).all()


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda kv: kv.row_sparse_pull("w", out=rows([], 0)), ValueError, "row_ids"),
        (lambda kv: kv.row_sparse_pull("w", row_ids=mx.nd.array([1])), ValueError, "out"),
        (lambda kv: kv.row_sparse_pull("w", out=rows([], 0), row_ids=mx.nd.array([4])), IndexError, "row 4 .* 4 rows"),
        (lambda kv: kv.row_sparse_pull("w", out=rows([], 0), row_ids=mx.nd.array([-1])), IndexError, "row -1"),
        (lambda kv: kv.row_sparse_pull("w", out=mx.nd.ones((4, 2)), row_ids=mx.nd.array([1])), TypeError, "'w'.*out"),
        (lambda kv: kv.row_sparse_pull("d", out=rows([], 0), row_ids=mx.nd.array([1])), TypeError, "'d'.*value"),
        (
            lambda kv: kv.row_sparse_pull("w", out=[rows([], 0)] * 3, row_ids=[mx.nd.array([1])] * 2),
            ValueError,
            "3 arrays",
        ),
        (lambda kv: kv.push("d", mx.nd.sparse.csr_matrix((4, 2))), TypeError, "'d'.*csr"),
    ],
)
def test_bad_input_is_named(kv, call, kind, words):
    kv.init(["w", "d"], [rows([0, 1, 2, 3], 5), mx.nd.ones((4, 2))])
    with pytest.raises(kind, match=words) as caught:
        call(kv)
    assert isinstance(caught.value, mx.MXNetError)
