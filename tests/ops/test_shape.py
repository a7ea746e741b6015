"""Shapes and layouts against NumPy, and their corners: zero sizes, negative steps, -1 codes, shared memory, errors."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, nd
from mxcore.testing.gradcheck import check_grads

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
X = nd.array(A)
PIXELS = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)


def same(got, want):
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.asnumpy(), want)


@pytest.mark.parametrize(
    "begin, end, step",
    [
        ((0, 1), (2, 3), ()),
        ((None, None, 3), (None, None, 0), (1, 1, -2)),
        ((-1,), (None,), ()),
        ((1, -2), (5, None), (None, 1)),
        ((1,), (0,), (-1,)),
        ((1,), (1,), ()),
        ((None, 2, None), (None, None, None), (None, -1, 2)),
    ],
)
def test_slice(begin, end, step):
    key = tuple(slice(*t) for t in zip(begin, end, step or (None,) * len(begin)))
    same(nd.slice(X, begin=begin, end=end, step=step), A[key])
    check_grads(lambda x: nd.slice(x, begin=begin, end=end, step=step), [A.astype("f8")], order=(1, 2))


@pytest.mark.parametrize(
    "kw, words",
    [
        ({"begin": (0,), "end": (1, 2)}, "different lengths"),
        ({"begin": (0,) * 4, "end": (1,) * 4}, "more items than the 3 dimensions"),
        ({"begin": (0,), "end": (1,), "step": (0,)}, "zero"),
    ],
)
def test_bad_slice(kw, words):
    with pytest.raises(ValueError, match=f"operator slice: .*{words}"):
        nd.slice(X, **kw)


def test_slice_axis():
    same(nd.slice_axis(X, axis=1, begin=-2, end=None), A[:, -2:])
    same(nd.slice_axis(X, axis=-1, begin=1, end=-1), A[..., 1:-1])
    for begin, end in ((2, 1), (0, 9), (-9, 2)):
        with pytest.raises(ValueError, match="on axis 1 of length 3"):
            nd.slice_axis(X, axis=1, begin=begin, end=end)


def test_slice_like():
    same(nd.slice_like(X, nd.zeros((1, 2, 3))), A[:1, :2, :3])
    same(nd.slice_like(X, nd.zeros((9, 2)), axes=(1,)), A[:, :2])
    same(nd.slice_like(X, nd.zeros((9, 9, 1, 7)), axes=(-1,)), A[:, :, :1])  # counted in the first array
    with pytest.raises(ValueError, match="different ranks"):
        nd.slice_like(X, nd.zeros((1, 2)))
    with pytest.raises(ValueError, match="less than the 9"):
        nd.slice_like(X, nd.zeros((9, 3, 4)))


def test_slice_assign():
    part = nd.array(-np.ones((2, 2, 4)))
    want = A.copy()
    want[:, 2:0:-1] = -1
    same(nd._internal._slice_assign(X, part, begin=(None, 2), end=(None, 0), step=(None, -1)), want)
    same(X, np.arange(24, dtype=np.float32).reshape(2, 3, 4))  # the input stays
    want[0, 0] = 9
    same(nd._internal._slice_assign_scalar(nd.array(want), scalar=9, begin=(0, 0), end=(1, 1)), want)
    with pytest.raises(ValueError, match="_slice_assign"):
        nd._internal._slice_assign(X, nd.ones((2,)), begin=(0, 0), end=(2, 1))


@pytest.mark.parametrize("where, parts", [(3, 3), ((1, 2), 3), ((2,), 2), ((0, 2), 3)])
def test_split_v2(where, parts):
    got = nd.split_v2(X, where, axis=1)
    got = got if isinstance(got, list) else [got]
    want = np.split(A, where, axis=1)
    assert len(got) == parts == len(want)
    for g, w in zip(got, want):
        same(g, w)


def test_split_v2_corners():
    assert [y.shape for y in nd._internal._split_v2(X, indices=(), sections=2, axis=1)] == [(2, 2, 4), (2, 1, 4)]
    assert [y.shape for y in nd.split_v2(X, 3, axis=1, squeeze_axis=True)] == [(2, 4)] * 3
    with pytest.raises(ValueError, match="rise"):
        nd.split_v2(X, (2, 1), axis=1)
    with pytest.raises(ValueError, match="parts of length 1"):
        nd.split_v2(X, (1,), axis=1, squeeze_axis=True)


def test_split_gradient_where_one_part_is_unused():
    x = nd.array(A)
    x.attach_grad()
    with autograd.record():
        _, middle, _ = nd.split_v2(x, (1, 2), axis=1)
        total = middle.sum()
    total.backward()
    assert x.grad.asnumpy().sum((0, 2)).tolist() == [0, 8, 0]


def test_crop():
    image = nd.array(np.arange(16).reshape(1, 1, 4, 4))
    assert nd.Crop(image, num_args=1, offset=(1, 2), h_w=(2, 2)).asnumpy().ravel().tolist() == [6, 7, 10, 11]
    assert nd.Crop(image, nd.ones((1, 1, 2, 2)), num_args=2, center_crop=True).asnumpy().ravel().tolist() == [
        5,
        6,
        9,
        10,
    ]
    with pytest.raises(ValueError, match="does not lie in an image of 4 x 4"):
        nd.Crop(image, num_args=1, offset=(3, 1), h_w=(2, 2))


def test_transposes():
    same(nd.SwapAxis(X, dim1=0, dim2=-1), A.swapaxes(0, 2))
    same(nd.swapaxes(X, 0, 1), A.swapaxes(0, 1))
    same(X.transpose((2, 0, 1)), A.transpose(2, 0, 1))
    with pytest.raises(ValueError, match="axis 3"):
        nd.SwapAxis(X, dim1=3, dim2=0)


def test_squeeze():
    one = nd.array(A.reshape(1, 6, 1, 4))
    same(nd.squeeze(one), A.reshape(6, 4))
    same(nd.squeeze(one, axis=2), A.reshape(1, 6, 4))
    same(nd.squeeze(one, axis=(0, -2)), A.reshape(6, 4))
    assert nd.squeeze(nd.ones((1, 1))).shape == (1,)
    with pytest.raises(ValueError, match="axis 1 has length 6"):
        nd.squeeze(one, axis=1)


def test_squeeze_in_place_shares():
    x = nd.ones((1, 3))
    x.squeeze(inplace=True)[:] = 5
    assert x.asnumpy().tolist() == [[5, 5, 5]]
    x.squeeze()[:] = 6
    assert x.asnumpy().tolist() == [[5, 5, 5]]


@pytest.mark.parametrize("axis", [0, -1, (0, 2), ()], ids=str)
def test_reverse(axis):
    same(nd.reverse(X, axis=axis), np.flip(A, axis) if axis != () else A)
    same(nd.flip(X, axis=axis), np.flip(A, axis) if axis != () else A)


@pytest.mark.parametrize("repeats, axis", [(2, None), (3, 0), (2, -1), (0, 1)])
def test_repeat(repeats, axis):
    same(nd.repeat(X, repeats=repeats, axis=axis), np.repeat(A, repeats, axis))
    if repeats:
        check_grads(lambda x: nd.repeat(x, repeats=repeats, axis=axis), [A.astype("f8")])


@pytest.mark.parametrize("reps", [(2,), (2, 1, 2), (2, 1, 1, 3), (), (0, 1)], ids=str)
def test_tile(reps):
    same(nd.tile(X, reps=reps), np.tile(A, reps))
    if 0 not in reps:
        check_grads(lambda x: nd.tile(x, reps=reps), [A.astype("f8")])


WIDTHS = (0, 0, 0, 0, 1, 0, 2, 1)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pad(mode):
    pairs = list(zip(WIDTHS[::2], WIDTHS[1::2]))
    kw = {"constant_values": 5} if mode == "constant" else {}
    same(nd.Pad(nd.array(PIXELS), mode=mode, pad_width=WIDTHS, constant_value=5), np.pad(PIXELS, pairs, mode, **kw))
    check_grads(lambda x: nd.Pad(x, mode=mode, pad_width=WIDTHS), [PIXELS.astype("f8")], order=(1, 2))


@pytest.mark.parametrize(
    "kw, words",
    [
        ({"mode": "edge", "pad_width": (1, 1)}, "two numbers for each of the 4 dimensions"),
        ({"mode": "reflect", "pad_width": (0,) * 4 + (2, 0, 0, 0)}, "cannot pad axis 2 of length 2"),
        ({"mode": "constant", "pad_width": (0,) * 7 + (-1,)}, "negative"),
    ],
)
def test_bad_pad(kw, words):
    with pytest.raises(ValueError, match=words):
        nd.Pad(nd.array(PIXELS), **kw)
    with pytest.raises(ValueError, match="must be one of constant, edge, reflect"):
        nd.Pad(nd.array(PIXELS), mode="wrap", pad_width=WIDTHS)


def test_depth_and_space():
    deep = nd.array(np.arange(24).reshape(1, 8, 1, 3))
    wide = nd.depth_to_space(deep, 2)
    assert wide.shape == (1, 2, 2, 6) and wide.asnumpy()[0, 0, 0].tolist() == [0, 6, 1, 7, 2, 8]
    same(nd.space_to_depth(wide, 2), deep.asnumpy())
    with pytest.raises(ValueError, match=r"no multiple of block_size\*\*2 = 9"):
        nd.depth_to_space(deep, 3)
    with pytest.raises(ValueError, match="multiples of block_size = 4"):
        nd.space_to_depth(wide, 4)


@pytest.mark.parametrize("k", [-2, -1, 0, 1, 3])
def test_diag(k):
    same(nd.diag(nd.array(A[0]), k=k), np.diag(A[0], k))
    same(nd.diag(nd.array([1, 2]), k=k), np.diag(np.array([1, 2], "f4"), k))
    check_grads(lambda x: nd.diag(x, k=k), [A[0].astype("f8")])


def test_diag_of_stacks():
    same(nd.diag(X, axis1=2, axis2=0, k=-1), np.diagonal(A, -1, 2, 0))
    same(nd.diag(X, k=3), np.zeros((4, 0), "f4"))
    with pytest.raises(ValueError, match="no diagonal k=5"):
        nd.diag(X, k=5)
    with pytest.raises(ValueError, match="must differ"):
        nd.diag(X, axis1=1, axis2=-2)


def test_broadcast_axis():
    x = nd.array(A[:, :1, :1])
    same(nd.broadcast_axis(x, axis=(1, 2), size=(3, 2)), np.broadcast_to(A[:, :1, :1], (2, 3, 2)))
    same(nd.broadcast_axes(x, axis=1, size=0), np.zeros((2, 0, 1), "f4"))
    with pytest.raises(ValueError, match="axis 0 has length 2"):
        nd.broadcast_axis(x, axis=0, size=3)
    with pytest.raises(ValueError, match="different lengths"):
        nd.broadcast_axis(x, axis=(1, 2), size=3)


def test_add_n():
    x = nd.array(A)
    same(nd.add_n(x, x, x), 3 * A)
    same(nd.ElementWiseSum(x), A)
    total = nd.add_n(x)
    total[:] = 0
    same(x, A)  # even a single array is copied
    with pytest.raises(TypeError, match="add_n needs at least one input"):
        nd.add_n()
    with pytest.raises(ValueError, match="add_n.*differ"):
        nd.add_n(x, nd.ones((2, 3, 1)))


def test_facts():
    assert nd.shape_array(X).asnumpy().tolist() == [2, 3, 4] and nd.shape_array(X).dtype == np.int64
    assert nd.size_array(X).asnumpy().tolist() == [24]
    bad = nd.array([1, np.inf])
    assert nd.all_finite(X).asscalar() == 1 and nd.all_finite(bad).asscalar() == 0
    assert nd.multi_all_finite(X, bad, num_arrays=2).asscalar() == 0
    counts, edges = nd._internal._histogram(nd.array([0.5, 1, 2, 2, 3, 9, -1]), bin_cnt=3, range=(0, 3))
    assert counts.asnumpy().tolist() == [1, 1, 3] and edges.asnumpy().tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="rising edges"):
        nd._internal._histogram(X, bin_cnt=3)


def test_amp_casts_touch_floats_only():
    ints = nd.array([1, 2], dtype="int32")
    assert nd.amp_cast(X, dtype="float16").dtype == np.float16 and nd.amp_cast(ints, dtype="float16").dtype == np.int32
    half = nd.ones((2,), dtype="float16")
    assert [y.dtype for y in nd.amp_multicast(half, X, ints, num_outputs=3)] == [np.float32, np.float32, np.int32]
    assert [y.dtype for y in nd.amp_multicast(half, X, num_outputs=2, cast_narrow=True)] == [np.float16, np.float16]
    half.attach_grad()
    with autograd.record():
        y, _ = nd.amp_multicast(half, nd.ones((2,)), num_outputs=2)
    y.backward()
    assert half.grad.dtype == np.float16 and half.grad.asnumpy().tolist() == [1, 1]


def test_arange_like_and_eye():
    assert nd.contrib.arange_like(X, axis=-1, start=1, step=0.5).asnumpy().tolist() == [1, 1.5, 2, 2.5]
    assert nd.contrib.arange_like(nd.ones((2, 2)), repeat=2).asnumpy().tolist() == [[0, 0], [1, 1]]
    assert nd._internal._eye(N=2, M=3, k=-1).asnumpy().tolist() == [[0, 0, 0], [1, 0, 0]]
    assert nd._internal._linspace(start=0, stop=1, num=4, endpoint=False).asnumpy().tolist() == [0, 0.25, 0.5, 0.75]


LENGTHS = [1, 3, 0]


@pytest.mark.parametrize("axis", [0, 1])
def test_sequences_of_different_lengths(axis):
    data = np.arange(1, 25, dtype=np.float32).reshape(4, 3, 2)  # time, batch
    x = nd.array(data if axis == 0 else data.swapaxes(0, 1))
    kw = {"use_sequence_length": True, "axis": axis}
    n = nd.array(LENGTHS)

    def back(y):
        return y.asnumpy() if axis == 0 else y.asnumpy().swapaxes(0, 1)

    masked, turned = data.copy(), data.copy()
    for b, length in enumerate(LENGTHS):
        masked[length:, b] = -1
        turned[:length, b] = data[:length, b][::-1]
    np.testing.assert_array_equal(back(nd.SequenceMask(x, n, value=-1, **kw)), masked)
    np.testing.assert_array_equal(back(nd.SequenceReverse(x, n, **kw)), turned)
    n = nd.array([max(length, 1) for length in LENGTHS])  # nothing has no last step
    np.testing.assert_array_equal(nd.SequenceLast(x, n, **kw).asnumpy(), data[n.asnumpy().astype(int) - 1, [0, 1, 2]])
    for op in (nd.SequenceMask, nd.SequenceReverse, nd.SequenceLast):
        check_grads(lambda v, op=op: op(v, n.astype("float64"), **kw), [x.asnumpy().astype("f8")], order=(1, 2))


def test_sequences_without_lengths():
    x = nd.array(A)
    same(nd.SequenceMask(x), A)
    same(nd.SequenceReverse(x), A[::-1])
    same(nd.SequenceLast(x, axis=1), A[:, -1])
    with pytest.raises(ValueError, match="one length for each sequence of data"):
        nd.SequenceMask(x, nd.array([1, 2]), use_sequence_length=True)
    with pytest.raises(ValueError, match="at least two dimensions"):
        nd.SequenceLast(nd.ones((3,)))


def test_patches():
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    cols = nd.im2col(nd.array(x), kernel=(2, 2), stride=(2, 2))
    assert cols.shape == (1, 4, 4) and cols.asnumpy()[0, 0].tolist() == [0, 2, 8, 10]
    ones = nd.col2im(nd.ones((1, 4, 9)), output_size=(4, 4), kernel=(2, 2))
    assert ones.asnumpy()[0, 0, 1].tolist() == [2, 4, 4, 2]
    with pytest.raises(ValueError, match="does not hold the patches"):
        nd.col2im(nd.ones((1, 4, 8)), output_size=(4, 4), kernel=(2, 2))


@pytest.mark.parametrize(
    "call, shape",
    [
        (lambda x: nd.SwapAxis(x, dim1=0, dim2=1), (3, 0)),
        (lambda x: nd.reverse(x, axis=0), (0, 3)),
        (lambda x: nd.tile(x, reps=(2, 2)), (0, 6)),
        (lambda x: nd.repeat(x, repeats=2, axis=1), (0, 6)),
        (lambda x: nd.slice(x, begin=(0, 1), end=(0, 2)), (0, 1)),
        (lambda x: nd.Flatten(x), (0, 3)),
        (lambda x: nd.expand_dims(x, axis=1), (0, 1, 3)),
        (lambda x: nd.add_n(x, x), (0, 3)),
        (lambda x: nd.concat(x, x, dim=0), (0, 3)),
        (lambda x: nd.stack(x, x), (2, 0, 3)),
        (lambda x: nd.one_hot(x, 2), (0, 3, 2)),
        (lambda x: nd.Pad(x, mode="constant", pad_width=(1, 0, 0, 0)), (1, 3)),
        (lambda x: nd.where(x, x, x), (0, 3)),
        (lambda x: nd.sort(x, axis=1), (0, 3)),
        (lambda x: nd.contrib.div_sqrt_dim(x), (0, 3)),
    ],
)
def test_without_elements(call, shape):
    x = nd.array(np.zeros((0, 3)), ctx=mx.cpu(1))
    y = call(x)
    assert y.shape == shape and y.context == mx.cpu(1)


@pytest.mark.parametrize(
    "dtype, low, high, bins, data, want",
    [  # MXNet's counts
        ("float64", 0, 1, 10, np.arange(11) / 10.0, [1, 1, 1, 1, 1, 1, 1, 1, 1, 2]),
        ("float64", -1, 1, 7, np.linspace(-1, 1, 29), [4, 5, 4, 4, 4, 4, 4]),
        ("float32", -0.3, 0.7, 10, np.linspace(-0.3, 0.7, 41), [3, 4, 4, 4, 4, 4, 4, 4, 4, 5]),
        ("int32", 0.5, 10.7, 5, np.arange(12), [1, 2, 2, 2, 3]),
        ("int8", 0, 11, 5, np.arange(12), [2, 2, 2, 2, 4]),
    ],
)
def test_round_numbers_fall_into_the_bins_of_mxnet(dtype, low, high, bins, data, want):
    counts, edges = nd.histogram(nd.array(data, dtype=dtype), bins=bins, range=(low, high))
    assert counts.asnumpy().tolist() == want
    assert edges.asnumpy().tolist() == [
        np.dtype(dtype).type((low * (bins - i) + high * i) / bins) for i in range(bins + 1)
    ]


def test_the_ends_of_a_histogram_are_not_rounded_to_the_dtype_of_the_data():
    high = 8.976636599379372
    over = np.float32(high)
    assert np.float64(over) > high
    counts, edges = nd.histogram(nd.array([1, np.nextafter(over, np.float32(0)), over]), bins=1, range=(0.0, high))
    assert counts.asnumpy().tolist() == [2] and edges.asnumpy()[1] == over
    low, high, n = 451.1470682029788, 653.7232060973898, 37
    counts, edges = nd.histogram(nd.array([low, high], dtype="float64"), bins=n, range=(low, high))
    assert np.float64(edges.asnumpy()[0]) > low and counts.asnumpy().tolist() == [1, *[0] * (n - 2), 1]


@pytest.mark.parametrize(
    "edges, words",
    [
        ([3, 2, 1], "got 3.0 and 2.0 as edges 0 and 1"),
        ([0, 2, 1], "got 2.0 and 1.0 as edges 1 and 2"),
        ([0, np.nan, 1], "got 0.0 and nan as edges 0 and 1"),
    ],
)
def test_edges_must_rise(edges, words):
    with pytest.raises(mx.MXNetError, match=f"_histogram.*must rise and not be NaN, {words}"):
        nd.histogram(nd.array([1, 2]), bins=nd.array(edges))
    assert nd.histogram(nd.array([0, 1, 2]), bins=nd.array([1, 1, 2]))[0].asnumpy().tolist() == [0, 2]


def test_without_a_range_the_edges_are_those_of_numpy():
    x = np.random.default_rng(3).normal(size=200).round(1)
    for bins in (3, 10, 18):
        counts, edges = nd.histogram(nd.array(x, dtype="float64"), bins=bins)
        wanted = np.histogram(x, bins)
        np.testing.assert_array_equal(counts.asnumpy(), wanted[0])
        np.testing.assert_array_equal(edges.asnumpy(), wanted[1].astype("f4"))
    with pytest.raises(mx.MXNetError, match="the values go from 1.0 to inf"):
        nd.histogram(nd.array([1, np.inf]))
    with pytest.raises(mx.MXNetError, match="bin_cnt.*0"):
        nd.histogram(nd.array([1, 2]), bins=0)
