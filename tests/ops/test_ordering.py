"""topk, sort and argsort against NumPy, with ties, NaNs, and rows long enough for selection by partition."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, nd
from mxcore.testing.gradcheck import check_grads

RS = np.random.RandomState(3)
#: Many ties, and rows both shorter and longer than the threshold of selection by partition.
TABLES = [RS.randint(0, 4, (3, 7)).astype("f4"), RS.randint(0, 6, (4, 90)).astype("f4"), RS.rand(2, 200).astype("f4")]


def order(a, axis, ascend):
    """Places in order; of equal elements the earlier one comes first."""
    return np.argsort(a if ascend else -a, axis, kind="stable")


@pytest.mark.parametrize("a", TABLES, ids=lambda a: str(a.shape))
@pytest.mark.parametrize("ascend", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("k", [1, 3, 0])
def test_topk(a, ascend, axis, k):
    places = np.take(order(a, axis, ascend), np.arange(min(k or 9999, a.shape[axis])), axis)
    kw = {"axis": axis, "k": min(k, a.shape[axis]), "is_ascend": ascend}
    x = nd.array(a)
    values, at = nd.topk(x, ret_typ="both", **kw)
    np.testing.assert_array_equal(at.asnumpy(), places)
    np.testing.assert_array_equal(values.asnumpy(), np.take_along_axis(a, places, axis))
    np.testing.assert_array_equal(nd.topk(x, ret_typ="indices", dtype="int32", **kw).asnumpy(), places)
    mask = np.zeros_like(a)
    np.put_along_axis(mask, places, 1, axis)
    np.testing.assert_array_equal(nd.topk(x, ret_typ="mask", **kw).asnumpy(), mask)


def test_topk_of_the_flattened_array():
    x = nd.array([[3, 1, 3, 2], [5, 5, 5, 1]])
    values, at = nd.topk(x, axis=None, k=4, ret_typ="both")
    assert values.asnumpy().tolist() == [5, 5, 5, 3] and at.asnumpy().tolist() == [4, 5, 6, 0]
    assert nd.topk(x, axis=None, k=2, ret_typ="mask").asnumpy().tolist() == [[0, 0, 0, 0], [1, 1, 0, 0]]


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64", "float16", "float64"])
def test_dtypes(dtype):
    x = nd.array([[3, 1, 2, 0] * 20], dtype=dtype)
    values, at = nd.topk(x, k=2, ret_typ="both")
    assert values.dtype == np.dtype(dtype) and at.dtype == np.float32
    assert values.asnumpy().tolist() == [[3, 3]] and at.asnumpy().tolist() == [[0, 4]]
    assert nd.sort(x, is_ascend=False).asnumpy()[0, :20].tolist() == [3] * 20


def test_nan_does_not_break_selection():
    a = RS.rand(1, 100).astype("f4")
    a[0, 17] = np.nan
    at = nd.topk(nd.array(a), k=3, is_ascend=True).asnumpy()
    np.testing.assert_array_equal(at, np.argsort(a, 1, kind="stable")[:, :3])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [5, 100])
def test_nan_is_the_greatest(n, dtype):
    a = np.arange(n, dtype=dtype)
    a[[1, 3]] = np.nan
    x, rest = nd.array(a, dtype=dtype), np.delete(np.arange(n), [1, 3]).tolist()
    up, down = [*rest, 1, 3], [1, 3, *rest[::-1]]
    for ascend, want in ((True, up), (False, down)):
        assert nd.argsort(x, is_ascend=ascend).asnumpy().tolist() == want
        np.testing.assert_array_equal(nd.sort(x, is_ascend=ascend).asnumpy(), a[want])
        for k in (1, 3, n):
            assert nd.topk(x, k=k, is_ascend=ascend).asnumpy().tolist() == want[:k]
    assert np.isnan(nd.max(x).asscalar())
    np.testing.assert_array_equal(mx.np.sort(mx.np.array(a)).asnumpy(), np.sort(a))
    assert mx.np.argsort(mx.np.array(a)).asnumpy().tolist() == np.argsort(a, kind="stable").tolist()


@pytest.mark.parametrize(
    "kw, words",
    [({"k": 5}, "k=5 is more than the 4 elements"), ({"axis": 2}, "axis 2"), ({"axis": None, "k": 9}, "8 elements")],
)
def test_bad_topk(kw, words):
    with pytest.raises(ValueError, match=words):
        nd.topk(nd.ones((2, 4)), **kw)
    with pytest.raises(ValueError, match="must be one of both, indices, mask, value"):
        nd.topk(nd.ones((2, 4)), ret_typ="values")


@pytest.mark.parametrize("a", TABLES, ids=lambda a: str(a.shape))
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("ascend", [False, True])
def test_sort_and_argsort(a, axis, ascend):
    flat = a if axis is not None else a.reshape(-1)
    places = order(flat, axis or 0 if axis is None else axis, ascend)
    np.testing.assert_array_equal(nd.argsort(nd.array(a), axis=axis, is_ascend=ascend).asnumpy(), places)
    got = nd.sort(nd.array(a), axis=axis, is_ascend=ascend)
    np.testing.assert_array_equal(got.asnumpy(), np.take_along_axis(flat, places, 0 if axis is None else axis))


@pytest.mark.parametrize("axis", [0, -1, None])
def test_gradients(axis):
    a = RS.permutation(12).reshape(3, 4).astype("f8")
    check_grads(lambda x: nd.sort(x, axis=axis), [a], order=(1, 2))
    check_grads(lambda x: nd.topk(x, axis=axis, k=2, ret_typ="value"), [a], order=(1, 2))
    check_grads(lambda x: nd.topk(x, axis=axis, k=2, ret_typ="both")[0], [a])


def test_places_have_no_gradient():
    x = nd.array([[2, 1, 3]])
    x.attach_grad()
    x.grad[:] = 9
    with autograd.record():
        values, at = nd.topk(x, k=2, ret_typ="both")
        total = values.sum() + (at * x[:, :2]).sum() + nd.topk(x, k=1, ret_typ="mask").sum() + nd.argsort(x).sum()
    total.backward()
    assert x.grad.asnumpy().tolist() == [[3, 0, 1]]
