"""Reading and writing parts of arrays, picking by index arrays: views, negative steps, empty parts, ties, errors."""

import warnings

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, nd
from mxcore.base import MXNetError

SHAPE = (4, 3, 5)


def numbers(shape=SHAPE, dtype="float32"):
    """An NDArray and a NumPy array of 1, 2, 3, ..."""
    a = np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    return nd.array(a, dtype=dtype), a


def legacy(a):
    """What a legacy array makes of a scalar: one element."""
    return a.reshape(1) if a.shape == () else a


#: Keys that NumPy and MXNet read alike.
BASIC = [
    1,
    -1,
    slice(1, 3),
    slice(None, None, 2),
    slice(None, None, -1),
    slice(3, 0, -2),
    Ellipsis,
    None,
    (1, 2),
    (1, 2, 3),
    (-1, ..., 2),
    (slice(1, 3), 0),
    (0, slice(0, 2)),
    (0, slice(0, 2), slice(None)),
    (None, 1),
    (1, None, 2),
    (slice(None), None, slice(0, 1)),
    (slice(None, None, -2), 1),
    (0, 0, slice(4, 0, -1)),
    (slice(1, 1),),
    (slice(5, 9),),
    np.int64(2),
    (np.int32(1), slice(0, np.int64(2))),
    (-1, -1, -1),
    slice(-3, -1),
    (slice(-3, None), slice(None, -1)),
    (..., None),
    (),
]
ADVANCED = [
    [0, 2],
    [[0, 1], [2, 3]],
    ([0, 1], [1, 2]),
    ([0, 1], slice(None), [1, 2]),
    (slice(None), [0, 2]),
    (slice(None), [0, 2], slice(0, 4, 2)),
    (1, [0, 2]),
    ([0, 2], 1),
    (1, slice(None), [0, 2]),
    (None, [0, 2]),
    ([0, 2], None, [1, 0]),
    (slice(None), [[0], [1]], [0, 4]),
    np.array([3, -1]),
    (slice(None), np.array([-1, 0])),
    (..., [0, 1]),
    ([0, 2], ..., 1),
    range(2),
    [],
    (slice(None, None, -1), [2, 0]),
    np.array([True, False, True, True]),
    (slice(None), np.array([False, True, True])),
]


def ids(key):
    return str(key).replace(" ", "")


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=ids)
def test_read_and_write_as_numpy(key):
    x, a = numbers()
    want = legacy(np.asarray(a[key if not isinstance(key, range) else list(key)]))
    got = x[key]
    assert got.shape == want.shape and got.dtype == np.float32
    np.testing.assert_array_equal(got.asnumpy(), want)
    where = list(key) if isinstance(key, range) else key
    for value in (7.0, np.arange(want.size, dtype=np.float32).reshape(want.shape)):
        x, a = numbers()
        x[key] = value
        a[where] = value if isinstance(value, float) else value.reshape(a[where].shape)
        np.testing.assert_array_equal(x.asnumpy(), a)
    x, a = numbers()
    x[key] = nd.array(value)
    a[where] = value.reshape(a[where].shape)
    np.testing.assert_array_equal(x.asnumpy(), a)


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=ids)
def test_gradient_of_reading(key):
    x, a = numbers()
    x.attach_grad()
    with autograd.record():
        y = x * 2
        part = y[key]
        total = (part * part).sum() + y.sum()
    total.backward()
    key = list(key) if isinstance(key, range) else key
    want = np.full(SHAPE, 2.0)
    np.add.at(want, ... if isinstance(key, tuple) and not key else key, 8 * np.asarray(a[key], np.float64))
    np.testing.assert_allclose(x.grad.asnumpy(), want, rtol=1e-5)


@pytest.mark.parametrize(
    "key, shared",
    [
        (1, True),
        (slice(1, 3), True),
        ((slice(1, 2), slice(0, 2)), True),
        ((2, 1), True),
        ((2, 1, 3), True),
        ((1, slice(1, 3), slice(None)), True),
        (slice(None, None, 2), False),
        ((slice(None), 0), False),
        ((slice(0, 2), slice(0, 2)), False),
        (slice(None, None, -1), False),
        ([0, 1], False),
        ((None, 1), True),
        ((slice(3, 4), 1, slice(2, 4)), True),
    ],
)
def test_one_run_of_memory_is_shared(key, shared):
    x, a = numbers()
    part = x[key]
    part[:] = -5
    if shared:
        a[key] = -5
    np.testing.assert_array_equal(x.asnumpy(), a)


def test_views_of_views_see_each_other():
    x, a = numbers()
    rows = x[1:3]
    row = rows[0]
    flat = row.reshape((15,))
    flat[4:6] = 0
    a[1].reshape(-1)[4:6] = 0
    np.testing.assert_array_equal(x.asnumpy(), a)
    x += 1
    np.testing.assert_array_equal(rows.asnumpy(), a[1:3] + 1)


def test_view_of_a_gradient_sees_the_next_backward():
    x, _ = numbers((4,))
    x.attach_grad()
    first = x.grad[0:1]
    with autograd.record():
        y = (x * 3).sum()
    y.backward()
    assert first.asnumpy().tolist() == [3]


def test_view_under_record_is_differentiable_and_shared():
    x, _ = numbers((3, 2))
    x.attach_grad()
    with autograd.record():
        y = x[1:3]
        z = (y * y).sum()
    z.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [[0, 0], [6, 8], [10, 12]])
    x[1] = 100
    assert y.asnumpy()[0].tolist() == [100, 100]


@pytest.mark.parametrize(
    "key", [1, (slice(None), 0), (slice(None, None, -2), slice(1, 3)), [0, 2], ([0, 1], [1, 2]), (0, 1, 2)], ids=ids
)
def test_gradient_of_writing(key):
    x, a = numbers()
    value = nd.array(np.arange(1, 1 + a[key].size).reshape(a[key].shape or (1,)))
    value.attach_grad()
    with autograd.record():
        x[key] = value * 2
        total = (x * x).sum()
    total.backward()
    np.testing.assert_allclose(value.grad.asnumpy(), 8 * value.asnumpy())
    a[key] = 2 * value.asnumpy().reshape(a[key].shape)
    np.testing.assert_array_equal(x.asnumpy(), a)


def test_gradient_of_a_broadcast_write():
    x, _ = numbers()
    value = nd.array([[2.0]])
    value.attach_grad()
    with autograd.record():
        x[1:3, [0, 2]] = value
        total = x.sum()
    total.backward()
    assert value.grad.asnumpy().tolist() == [[20]]


def test_write_to_an_array_of_the_graph_is_refused():
    x, _ = numbers()
    x.attach_grad()
    with autograd.record():
        y = x * 2
        with pytest.raises(MXNetError, match="not supported on an array of the graph"):
            y[0] = 1


@pytest.mark.parametrize(
    "key, kind, words",
    [
        (7, IndexError, "index 7 is out of bounds for axis 0 with size 4"),
        ((0, 3), IndexError, "axis 1 with size 3"),
        ((0, 0, 0, 0), IndexError, "too many indices"),
        (slice(None, None, 0), ValueError, "step cannot be zero"),
        ((..., ...), IndexError, "one Ellipsis"),
        ("a", IndexError, "an index must be"),
        (1.5, IndexError, "an index must be"),
        ([0, 9], IndexError, "out of bounds"),
    ],
)
def test_bad_keys(key, kind, words):
    x, _ = numbers()
    with pytest.raises(kind, match=words) as e:
        x[key]
    assert isinstance(e.value, MXNetError)
    with pytest.raises(kind, match=words):
        x[key] = 1


def test_bad_values():
    x, _ = numbers()
    with pytest.raises(ValueError, match=r"shape \(3, 5\)"):
        x[0] = np.ones((2, 2))
    with pytest.raises(ValueError):
        x[[0, 1]] = nd.ones((3, 5, 5))


def test_take_modes():
    x, a = numbers((2, 3))
    outside = nd.array([-1, 0, 5], dtype="int32")
    np.testing.assert_array_equal(nd.take(x, outside, axis=1).asnumpy(), a[:, [0, 0, 2]])
    np.testing.assert_array_equal(nd.take(x, outside, axis=1, mode="wrap").asnumpy(), a[:, [2, 0, 2]])
    with pytest.raises(IndexError, match=r"range \[0, 3\)"):
        nd.take(x, outside, axis=1, mode="raise")
    with pytest.raises(ValueError, match="axis 2"):
        nd.take(x, outside, axis=2)
    assert nd.take(x, nd.array([1.9])).asnumpy().tolist() == [a[1].tolist()]  # fractions are cut off


def test_embedding_gradients_dense_and_sparse():
    rs = np.random.RandomState(0)
    index = np.array([[1, 4], [1, 0]])
    head = rs.rand(2, 2, 3).astype(np.float32)
    want = np.zeros((5, 3), np.float64)
    np.add.at(want, index, head)
    for stype in ("default", "row_sparse"):
        w = nd.array(rs.rand(5, 3))
        w.attach_grad(stype=stype)
        with autograd.record():
            y = nd.Embedding(nd.array(index), w, input_dim=5, output_dim=3, sparse_grad=stype == "row_sparse")
        y.backward(nd.array(head))
        np.testing.assert_array_equal(y.asnumpy(), w.asnumpy()[index])
        np.testing.assert_allclose(w.grad.asnumpy(), want, rtol=1e-6)
        assert w.grad.stype == stype
    assert w.grad.indices.asnumpy().tolist() == [0, 1, 4]


def test_embedding_clips_and_checks_its_weight():
    w = nd.array([[0.0], [1.0]])
    assert nd.Embedding(nd.array([-3, 7]), w, input_dim=2, output_dim=1).asnumpy().ravel().tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"Embedding.*\(2, 1\)"):
        nd.Embedding(nd.array([0]), w, input_dim=3, output_dim=1)


def test_boolean_mask_has_a_shape_of_its_own():
    x, a = numbers((3, 2))
    assert nd.contrib.boolean_mask(x, nd.array([0, 0, 0])).shape == (0, 2)
    assert nd.contrib.boolean_mask(x, nd.array([1, 0, 2])).asnumpy().tolist() == a[[0, 2]].tolist()
    assert nd.contrib.boolean_mask(x, nd.array([0, 1]), axis=1).asnumpy().tolist() == a[:, 1:].tolist()
    with pytest.raises(ValueError, match="as long as axis 0"):
        nd.contrib.boolean_mask(x, nd.array([1, 0]))
    x.attach_grad()
    with autograd.record():
        total = nd.contrib.boolean_mask(x, nd.array([1, 0, 2])).sum()
    total.backward()
    assert x.grad.asnumpy().tolist() == [[1, 1], [0, 0], [1, 1]]


def test_where_by_element_and_by_row():
    x, a = numbers((2, 3))
    np.testing.assert_array_equal(
        nd.where(nd.array([[0, 1, 2], [0, 0, -1]]), x, -x).asnumpy(), [[-1, 2, 3], [-4, -5, 6]]
    )
    np.testing.assert_array_equal(nd.where(nd.array([0, 1], dtype="int32"), x, -x).asnumpy(), [[-1, -2, -3], [4, 5, 6]])
    with pytest.raises(ValueError, match="differ"):
        nd.where(x, x, nd.ones((2, 1)))
    with pytest.raises(TypeError, match="float64"):
        nd.where(x, x, x.astype("float64"))


def test_gather_and_scatter():
    x, a = numbers((2, 3))
    at = nd.array([[0, -1, 1], [1, 2, 0]])
    assert nd.gather_nd(x, at).asnumpy().tolist() == [2, 6, 4]
    with pytest.raises(IndexError, match="gather_nd.*out of bounds"):
        nd.gather_nd(x, nd.array([[2], [0]]))
    with pytest.raises(ValueError, match="3 coordinates"):
        nd.gather_nd(x, nd.zeros((3, 1)))
    placed = nd.scatter_nd(nd.array([5, 6]), nd.array([[0, 0], [1, 1]]), shape=(1, 2))
    assert placed.asnumpy().tolist() == [[0, 6]]  # of equal places the last wins
    with pytest.raises(ValueError, match=r"need \(2,\)"):
        nd.scatter_nd(nd.array([5, 6, 7]), nd.array([[0, 0], [1, 1]]), shape=(1, 2))
    x.attach_grad()
    with autograd.record():
        total = nd.gather_nd(x, nd.array([[0, 0], [1, 1]])).sum()
    total.backward()
    assert x.grad.asnumpy().tolist() == [[0, 2, 0], [0, 0, 0]]  # equal places add up


def test_pick_and_its_kin():
    x, a = numbers((2, 3))
    assert nd.pick(x, nd.array([0, 5])).asnumpy().tolist() == [1, 6]
    assert nd.pick(x, nd.array([-1, 4]), mode="wrap").asnumpy().tolist() == [3, 5]
    assert nd.pick(x, nd.array([0, 1]), keepdims=True).shape == (2, 1)
    with pytest.raises(ValueError, match="must have the shape of data"):
        nd.pick(x, nd.array([0, 1, 1]))
    assert nd.choose_element_0index(x, nd.array([2, 0])).asnumpy().tolist() == [3, 4]
    assert nd.fill_element_0index(x, nd.array([8, 9]), nd.array([1, 7])).asnumpy().tolist() == [[1, 8, 3], [4, 5, 6]]
    assert nd.batch_take(x, nd.array([2, 0], dtype="int32")).asnumpy().tolist() == [3, 4]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_one_hot_of_no_number_is_none(dtype):
    got = nd.one_hot(nd.array([np.nan, 0.9, np.inf, -0.5], dtype=dtype), depth=3)
    assert got.asnumpy().tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("kind", ["row_sparse", "csr"])
@pytest.mark.parametrize("sparse", [False, True])
def test_embedding_takes_sparse_gradients(kind, sparse):
    weight = nd.ones((4, 2))
    weight.attach_grad(stype="row_sparse" if sparse else "default")
    with mx.autograd.record():
        y = nd.Embedding(nd.array([2, 0, 2]), weight, input_dim=4, output_dim=2, sparse_grad=sparse)
    y.backward(nd.array([[1, 2], [0, 0], [3, 4]]).tostype(kind))
    assert weight.grad.asnumpy().tolist() == [[0, 0], [0, 0], [4, 6], [0, 0]]


@pytest.mark.parametrize(
    "dtype, on, off, want",
    [
        ("uint8", 300, -1, [44, 255]),
        ("uint8", -3.9, 1e19, [253, 0]),
        ("int8", 200.7, -129, [-56, 127]),
        ("int32", 3, 2**31, [3, -(2**31)]),
        ("int64", 2**62, -1e19, [2**62, -(2**63)]),
        ("float16", 1e9, 2**24 + 1, [np.inf, np.inf]),
        ("float32", 1e39, 0.5, [np.inf, 0.5]),
    ],
)
@pytest.mark.parametrize("n", [1, 70_000])
def test_one_hot_wraps_what_its_dtype_does_not_hold(dtype, on, off, want, n):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = nd.one_hot(nd.zeros(n, dtype="int32"), 2, on_value=on, off_value=off, dtype=dtype)
        full = nd.full(1, on, dtype=dtype)
    assert got.dtype == np.dtype(dtype) and got.asnumpy()[[0, -1]].tolist() == [want] * 2
    assert full.asnumpy().tolist() == want[:1]


def test_one_hot_ignores_what_is_out_of_range():
    got = nd.one_hot(nd.array([1, -1, 3]), depth=3, on_value=2, off_value=-1, dtype="int32")
    assert got.dtype == np.int32 and got.asnumpy().tolist() == [[-1, 2, -1], [-1, -1, -1], [-1, -1, -1]]


def test_index_arithmetic():
    at = nd.array([[1, 0], [2, 1]])
    flat = nd.ravel_multi_index(at, shape=(2, 3))
    assert flat.asnumpy().tolist() == [5, 1]
    assert nd.unravel_index(flat, shape=(2, 3)).asnumpy().tolist() == at.asnumpy().tolist()
    assert nd.unravel_index(nd.array([[5, 1]]), shape=(-1, 3)).asnumpy().tolist() == [[[1, 0]], [[2, 1]]]
    assert nd.contrib.index_array(nd.ones((1, 2))).asnumpy().tolist() == [[[0, 0], [0, 1]]]
    assert nd.contrib.index_copy(
        nd.zeros((3, 1)), nd.array([2, 0]), nd.array([[7], [8]])
    ).asnumpy().ravel().tolist() == [8, 0, 7]


def test_indexing_keeps_dtype_and_context():
    for dtype in ("float16", "uint8", "int64", "bool"):
        x = nd.array([[0, 1], [1, 0]], dtype=dtype, ctx=mx.cpu(1))
        for part in (x[0], x[:, 1], x[[1, 0]], nd.take(x, nd.array([1], ctx=mx.cpu(1)))):
            assert part.dtype == np.dtype(dtype) and part.context == mx.cpu(1)


@pytest.mark.both_ways
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_numbers_beyond_all_rows_name_the_last_one(dtype):
    """The same row forward and backward, with kernels and without: nothing is wrapped on the way to an integer."""
    table = np.arange(8, dtype="f").reshape(4, 2)
    for number, row in ((np.inf, 3), (-np.inf, 0), (np.nan, 0), (1e30, 3), (2.0**63, 3), (-1e30, 0), (6e4, 3)):
        i = nd.array([number], dtype=dtype)
        for op in (lambda x, i: nd.take(x, i, axis=0), lambda x, i: nd.Embedding(i, x, input_dim=4, output_dim=2)):
            x = nd.array(table)
            x.attach_grad()
            with autograd.record():
                y = op(x, i)
            y.backward()
            assert y.asnumpy().tolist() == [table[row].tolist()], (number, dtype)
            assert x.grad.asnumpy()[row].tolist() == [1, 1] and x.grad.asnumpy().sum() == 2, (number, dtype)
        columns = nd.array([number] * 4, dtype=dtype)
        column = min(row, 1)
        for pick in (nd.pick, nd.choose_element_0index):
            assert pick(nd.array(table), columns).asnumpy().tolist() == table[:, column].tolist(), (number, dtype)
        assert not nd.one_hot(i, 4).asnumpy()[0].any() or row == 0
