"""The array face: printing, views, assignment, scalars, exchange with NumPy and DLPack."""

import copy
import ctypes
import os
import pickle
import sys
import threading
import warnings

import numpy as np
import pytest

import mxcore as mx
from mxcore import nd
from mxcore._core import tables
from mxcore._core.engine import ThreadedEnginePerDevice, engine
from mxcore.base import MXNetError
from mxcore.ndarray import dlpack, operators
from mxcore.testing.engines import use_engine


def test_printing_is_mxnets():
    assert repr(nd.array([[1, 2], [3, 4.5]])) == "\n[[1.  2. ]\n [3.  4.5]]\n<NDArray 2x2 @cpu(0)>"
    assert str(nd.ones((1,), ctx=mx.cpu(1))) == "\n[1.]\n<NDArray 1 @cpu(1)>"


def test_views_share_memory_where_mxnet_shares_it():
    a = nd.arange(12).reshape((3, 4))
    for view in (a[1], a[1:3], a.reshape((4, 3)), a[1:2, 0:3], a.expand_dims(0, inplace=True)):
        before = a.asnumpy()
        view[:] = -1
        assert (a.asnumpy() != before).any()
        a[:] = before
    for copied in (a[:, 1:3], a[::2], a[[0, 1]], a.T, nd.Reshape(a, shape=(4, 3)), a.copy(), a.astype("float32")):
        before = a.asnumpy()
        copied[:] = -1
        assert (a.asnumpy() == before).all()
    assert a.astype("float32", copy=False) is a


def test_reshape_codes():
    a = nd.zeros((2, 3, 4))
    assert a.reshape(0, -1).shape == (2, 12) and a.reshape((-3, 0)).shape == (6, 4)
    assert a.reshape((0, -4, -1, 3, -2)).shape == (2, 1, 3, 4)
    assert a.reshape((-1, 0), reverse=True).shape == (6, 4)
    with pytest.raises(ValueError, match="cannot be reshaped") as e:
        a.reshape((7,))
    assert isinstance(e.value, MXNetError)


def test_in_place_operators_keep_the_array():
    a = nd.array([1, 2, 3])
    view, before = a[0:2], a
    a += 1
    a *= nd.array([2, 2, 2])
    a /= 2
    a -= 1
    assert a is before and view.asnumpy().tolist() == [1, 2]
    a **= 2  # not so in MXNet
    assert view.asnumpy().tolist() == before[:2].asnumpy().tolist() == [1, 2] and a.asnumpy().tolist() == [1, 4, 9]


def test_overlapping_writes():
    a = nd.arange(6)
    a[1:6] = a[0:5]
    assert a.asnumpy().tolist() == [0, 0, 1, 2, 3, 4]


#: Where a view of 24 elements is written, and the view that is written there.
OVERLAPPING = [
    ((24,), slice(None, None, 2), slice(None, 12)),
    ((24,), slice(None, None, 2), slice(12, None)),
    ((24,), slice(None, None, 2), slice(5, 17)),
    ((24,), slice(1, None, 3), slice(2, 10)),
    ((24,), slice(None, None, -2), slice(3, 15)),
    ((24,), slice(None, 12), slice(6, 18)),
    ((24,), [0, 5, 7, 2, 11], slice(4, 9)),
    ((24,), np.arange(24) % 3 == 1, slice(1, 9)),
    ((4, 6), (slice(None), 2), (1, slice(1, 5))),
    ((4, 6), (slice(None, None, -1), -1), (2, slice(2, None))),
    ((4, 6), (slice(None), slice(1, None)), (slice(0, 1), slice(None, -1))),
    ((12, 2), (slice(None), 0), (slice(0, 12), 1)),
    ((2, 3, 4), (1, slice(None), 1), (1, 0, slice(0, 3))),
]


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("face", [nd, mx.np], ids=["nd", "np"])
@pytest.mark.parametrize("shape, place, part", OVERLAPPING)
def test_a_view_is_written_as_it_was_before(shape, place, part, face, dtype):
    w = np.arange(24, dtype=dtype).reshape(shape)
    x = face.array(w, dtype=dtype)
    x[place] = x[part]
    w[place] = w[part].copy()
    assert (x.asnumpy() == w).all()


@pytest.mark.parametrize("places, values", [((0, 2), (0, 1)), ((1, 1), (0, 2)), ((3, 3), (0, 2)), ((20, -2), (19, -1))])
def test_views_of_numpys_memory_are_copied_as_they_were_before(places, values):
    def view(a, first, step):
        return np.lib.stride_tricks.as_strided(a[first:], (9,), (step * a.itemsize,))

    w = np.arange(28, dtype="f")
    want = view(w, *values).copy()
    source, target = (nd.from_dlpack(view(w, *p)) for p in (values, places))
    source.copyto(target)
    nd.waitall()
    assert (view(w, *places) == want).all()
    w[:] = np.arange(28)
    nd.identity(source, out=target)
    nd.waitall()
    assert (view(w, *places) == want).all()


MASK = np.array([[True, False], [False, True], [True, True]])
ROW = np.array([True, False, True, False])


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(
    "shape, key",
    [
        ((3, 2, 4, 3), (MASK, -1)),
        ((3, 2, 4, 3), (MASK, 3, 2)),
        ((3, 2, 4, 3), (MASK, slice(None), -1)),
        ((3, 2, 4, 3), (MASK, np.array([0, -1, 2, -3]), -1)),
        ((3, 2, 4, 3), (MASK, None, ..., 1)),
        ((3, 2, 4, 3), (MASK, slice(-3, None, 2))),
        ((3, 2, 4, 3), (MASK.tolist(), -2)),
        ((3, 2, 4, 3), MASK.tolist()),
        ((5, 3, 2, 3), (-1, MASK, -1)),
        ((5, 3, 2, 3), (slice(None), MASK, 2)),
        ((1, 2, 2, 3), (np.array([[False, True]]), np.array([[0], [1]]), -1)),
        ((2, 1, 4, 4), (np.array([[True], [True]]), 3, np.array([[0], [-2]]))),
        ((4, 4, 3), (np.eye(4, dtype=bool), -1)),
        ((4, 3), (ROW, -1)),
        ((4, 3), (ROW, ..., [0, 2])),
        ((3, 4), True),
        ((3, 4), False),
        ((3, 4), np.bool_(True)),
        ((3, 4), np.array(False)),
        ((3, 4), (np.array(True), 1)),
        ((3, 4), (1, np.True_, ROW)),
        ((3, 4), (slice(None), False, -1)),
    ],
)
def test_masks_in_indices_are_numpys(shape, key, own):
    """Read, written, and the gradient of each, by keys of NumPy's arrays and by keys of MXNet's."""
    w = np.arange(1, np.prod(shape) + 1, dtype="f").reshape(shape)

    def mine(k):
        return nd.array(k, dtype=k.dtype) if own and isinstance(k, np.ndarray) and k.ndim else k

    ours = tuple(map(mine, key)) if isinstance(key, tuple) else mine(key)
    x = nd.array(w)
    want = w[key]
    got = x[ours]
    assert got.shape == want.shape and (got.asnumpy() == want).all()
    value = -np.arange(1, want.size + 1, dtype="f").reshape(want.shape)
    for v in (-5, value, nd.array(value)):
        x, changed = nd.array(w), w.copy()
        changed[key] = value if isinstance(v, nd.NDArray) else v
        x[ours] = v
        assert (x.asnumpy() == changed).all()
    if not want.size:
        return
    x = nd.array(w)
    x.attach_grad()
    with mx.autograd.record():
        y = (x[ours] * nd.array(value)).sum()
    y.backward()
    d = np.zeros_like(w)
    d[key] = value
    assert (x.grad.asnumpy() == d).all()
    v = nd.array(value)
    v.attach_grad()
    z = nd.array(w)
    with mx.autograd.record():
        z[ours] = v * 3
        y = (z * nd.array(w)).sum()
    y.backward()
    changed[key] = value * 3
    assert (z.asnumpy() == changed).all() and (v.grad.asnumpy() == 3 * want).all()


def test_a_mask_of_another_shape_is_refused():
    x = nd.zeros((3, 2, 4))
    for key in (MASK.T, (slice(None), MASK), (0, [[True, False]])):
        with pytest.raises(IndexError, match="a mask of shape"):
            x[key]
        with pytest.raises(IndexError, match="a mask of shape"):
            x[key] = 1


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "uint8", "int8", "int32", "int64", "bool", "bfloat16"]
)
def test_every_dtype_survives(dtype):
    a = nd.array([0, 1, 1], dtype=dtype)
    twin = pickle.loads(pickle.dumps(a))
    assert twin.dtype == a.dtype and twin.asnumpy().tolist() == a.asnumpy().tolist()
    assert copy.deepcopy(a).asnumpy().tolist() == a.asnumpy().tolist()
    nd.save("memory://arrays/x.params", {"a": a})
    assert nd.load("memory://arrays/x.params")["a"].dtype == a.dtype


def test_numbers_are_cast_to_the_dtype_as_c_does():
    a = nd.zeros((2,), dtype="uint8")
    a += -1
    assert a.asnumpy().tolist() == [255, 255] and (a + 300).asnumpy().tolist() == [43, 43]
    a[0] = 300
    assert a.asnumpy().tolist() == [44, 255] and nd.full((1,), 300, dtype="uint8").asscalar() == 44
    assert (nd.array([5, -5], dtype="int32") * 2.5).asnumpy().tolist() == [10, -10]
    assert (nd.array([5, -5], dtype="int32") / 2).asnumpy().tolist() == [2, -2]
    assert (nd.array([5], dtype="bfloat16") / 2).astype("float32").asscalar() == 2.5


def test_overflow_and_division_by_zero_are_silent():
    code = (
        "import warnings; warnings.simplefilter('default'); import mxcore as mx; nd = mx.nd\n"
        "print(nd.exp(nd.array([1000.])).asscalar(), "
        "nd.log(nd.array([0.])).asscalar(), (nd.array([1.]) / 0).asscalar())"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["inf", "-inf", "inf"] and done.stderr == ""


def test_numpy_and_dlpack():
    a = nd.array([[1, 2], [3, 4]])
    assert np.asarray(a).tolist() == [[1, 2], [3, 4]] and np.array(a, dtype="int64").dtype == np.int64
    with pytest.raises(ValueError, match="without a copy"):
        np.array(a, copy=False)
    shared = np.from_dlpack(a)
    a[0, 0] = 9
    assert shared[0, 0] == 9
    back = nd.from_dlpack(np.arange(3.0))
    assert back.asnumpy().tolist() == [0, 1, 2]
    assert nd.from_dlpack(a.to_dlpack_for_read()).asnumpy()[0, 0] == 9
    host = np.ones(3, "float32")
    mine = nd.from_numpy(host)
    assert not host.flags.writeable and mine.asnumpy().tolist() == [1, 1, 1]
    again = nd.from_numpy(host)
    again += 1
    assert not host.flags.writeable and mine.asnumpy().tolist() == [2, 2, 2]
    with pytest.raises(mx.MXNetError, match="from_numpy: an array of >f4 is in another byte order"):
        nd.from_numpy(np.ones(3, ">f4"))
    for bad in ("complex64", "U3", object):
        with pytest.raises(mx.MXNetError, match="dtype .* cannot be held by an array"):
            nd.from_numpy(np.ones(3).astype(bad))
    for kind, one in ((np.longlong, np.int64), (np.ulonglong, np.uint64)):  # C has two integers of these bits
        host = np.ones(3, kind)
        for x in (nd.from_numpy(host), nd.array(host, dtype=kind), nd.array(host, dtype=host.dtype)):
            assert x.dtype is one and mx.gluon.data.DataLoader([x.asnumpy()], 1)._batchify_fn([host]).dtype is one
    assert (nd.from_numpy(np.ones(3, ">f4"), zero_copy=False) + nd.ones(3)).asnumpy().tolist() == [2, 2, 2]
    of_a_subclass = np.ones(3, "float32").view(type("Mine", (np.ndarray,), {}))
    assert nd.from_numpy(of_a_subclass).sum().asscalar() == 3 and not of_a_subclass.flags.writeable


class _Older:
    """What offers its memory without a version, as libraries did before there was one."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


def test_memory_offered_without_a_version_is_written_to():
    for offer in (
        lambda x: x.to_dlpack_for_write(),
        lambda x: x.to_dlpack_for_read(),
        lambda x: _Older(np.from_dlpack(x)),
        lambda x: x,
    ):
        x = nd.arange(12).reshape((3, 4))
        y = nd.from_dlpack(offer(x[1:]))
        y[:] = y * 2
        assert x.asnumpy().ravel().tolist() == [0, 1, 2, 3, *range(8, 24, 2)]
        del x
        assert y.asnumpy()[1, 3] == 22


@pytest.mark.parametrize(
    "offer",
    [
        lambda x: np.from_dlpack(x),
        lambda x: np.from_dlpack(x[1:]),
        lambda x: nd.from_dlpack(x),
        lambda x: np.from_dlpack(_Older(x)),
        lambda x: nd.from_dlpack(x.to_dlpack_for_write()),
    ],
    ids=["numpy", "view", "mxcore", "older", "capsule"],
)
def test_who_takes_memory_writes_behind_those_who_read_it(offer):
    x, seen, gate = nd.ones((3, 2)), [], threading.Event()
    old = use_engine(ThreadedEnginePerDevice())
    try:
        engine.it.push(mx.cpu(), lambda: (gate.wait(20), seen.append(x._data.copy())), (x._st,), (), "reading")
        threading.Timer(0.05, gate.set).start()
        taken = offer(x)
        if isinstance(taken, nd.NDArray) or taken.flags.writeable:  # by the older protocol NumPy only reads
            taken[:] = 0
        engine.it.drain()
    finally:
        gate.set()
        use_engine(old)
    assert seen[0].tolist() == [[1, 1]] * 3


def test_who_takes_a_copy_or_what_is_read_only_waits_for_no_reader():
    only = nd.from_numpy(np.frombuffer(np.ones(3, "float32").tobytes(), "float32"))
    x, gate = nd.ones((3,)), threading.Event()
    old = use_engine(ThreadedEnginePerDevice())
    try:
        engine.it.push(mx.cpu(), lambda: gate.wait(20), (x._st, only._st), (), "reading")
        copied = x.__dlpack__(max_version=(1, 0), copy=True), np.from_dlpack(only)
        assert not gate.is_set() and x._st.reads and copied[1].tolist() == [1, 1, 1]
    finally:
        gate.set()
        engine.it.drain()
        use_engine(old)


def test_a_look_through_dlpack_is_no_write():
    x = nd.array([2, 3])
    x.attach_grad()
    with mx.autograd.record():
        y = x * x
    assert np.from_dlpack(x).tolist() == [2, 3]
    y.backward()
    assert x.grad.asnumpy().tolist() == [4, 6]


def test_read_only_memory_is_offered_as_such():
    x = nd.from_numpy(np.frombuffer(np.ones(3, "float32").tobytes(), "float32"))
    with pytest.raises(mx.MXNetError, match="to_dlpack_for_write: the array's memory is read-only"):
        x.to_dlpack_for_write()
    for y in (nd.from_dlpack(x.to_dlpack_for_read()), nd.from_dlpack(x)):
        with pytest.raises(mx.MXNetError, match="read-only"):
            y[:] = 2
        assert y.asnumpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize("told", [None, "x", (1,), (1, 0, 0), (1, "0"), (1.5, 0), ([], 0)])
def test_what_is_no_device_says_so(told):
    class Told(_Older):
        def __dlpack_device__(self):
            return told

    with pytest.raises(mx.MXNetError, match=r"Told.__dlpack_device__\(\) must give two whole numbers") as e:
        nd.from_dlpack(Told(np.ones(3, "f")))
    assert isinstance(e.value, TypeError)


@pytest.mark.parametrize(
    "change, word",
    [
        ({"data": None}, "no memory"),
        ({"shape": None}, "2 dimensions and no shape"),
        ({"ndim": 10**6}, "1000000 dimensions"),
        ({"ndim": -1}, "dimensions"),
        ({"shape": (-2, -3)}, r"shape \(-2, -3\)"),
        ({"shape": (0, 2), "data": None}, None),
    ],
)
@pytest.mark.parametrize("versioned", [False, True])
def test_capsules_without_memory_are_not_read(change, word, versioned):
    kw = {"max_version": (1, 0)} if versioned else {}
    capsule = np.ones((2, 3), "f").__dlpack__(**kw)
    tensor = dlpack._tensor_of(capsule)
    places = (ctypes.c_int64 * 2)(*(change.get("shape") or (2, 3)))
    was = tensor.data, tensor.shape, tensor.ndim
    if "data" in change:
        tensor.data = None
    if "shape" in change:
        tensor.shape = None if change["shape"] is None else ctypes.addressof(places)
    tensor.ndim = change.get("ndim", 2)
    if word is None:
        assert nd.from_dlpack(capsule).shape == (0, 2)
        return
    with pytest.raises(mx.MXNetError, match=f"offers nothing that an array can lie over: .*{word}"):
        nd.from_dlpack(capsule)
    tensor.data, tensor.shape, tensor.ndim = was


@pytest.mark.parametrize("state", [None, {}, (), []])
def test_states_that_no_array_has(state):
    with pytest.raises(mx.MXNetError, match="is a dict with 'handle'") as e:
        nd.NDArray.__new__(nd.NDArray).__setstate__(state)
    assert isinstance(e.value, TypeError)


def test_what_dlpack_cannot_bring_says_so():
    capsule = nd.ones((3,)).to_dlpack_for_read()
    nd.from_dlpack(capsule)
    with pytest.raises(
        mx.MXNetError, match="from_dlpack: PyCapsule offers nothing .* a capsule can be taken only once"
    ):
        nd.from_dlpack(capsule)
    with pytest.raises(mx.MXNetError, match="from_dlpack: ndarray offers nothing"):
        nd.from_dlpack(np.ones(3, "datetime64[s]"))
    with pytest.raises(mx.MXNetError, match="dtype complex64 cannot be held by an array"):
        nd.from_dlpack(np.ones(3, "complex64"))
    with pytest.raises(mx.MXNetError, match="to_dlpack_for_read: an array of .*bfloat16.* cannot be offered"):
        nd.ones((3,)).astype("bfloat16").to_dlpack_for_read()


def test_in_compares_elements():
    assert 1 in nd.array([1, 2]) and 3 not in nd.array([1, 2]) and nd.array([2]) in nd.array([1, 2])


def test_an_array_copied_to_itself_is_a_warning_and_false():
    x = nd.array([1, 2])
    with pytest.warns(UserWarning, match="source and target are the same array"):
        assert x.copyto(x) is False


def test_conversions_and_refusals():
    assert (
        float(nd.array([2.5])) == 2.5 and int(nd.array([2])) == 2 and bool(nd.array([1])) and len(nd.zeros((3, 2))) == 3
    )
    assert [x.asnumpy().tolist() for x in nd.array([[1], [2]])] == [[1], [2]]
    for wrong in (
        lambda: bool(nd.ones((2,))),
        lambda: nd.ones((2,)).asscalar(),
        lambda: 1 in nd.ones((2, 2)),
        lambda: nd.ones((2,))[5],
        lambda: nd.ones((2,))[0, 0],
        lambda: nd.ones((2,)).copyto(nd.ones((3,))),
        lambda: nd.array(["a"]),
    ):
        with pytest.raises(MXNetError):
            wrong()


def test_mark_variables():
    x, g = nd.array([3.0]), nd.zeros((1,))
    mx.autograd.mark_variables(x, g)
    with mx.autograd.record():
        y = x * x
    y.backward()
    assert g.asscalar() == 6 and x.grad is g


def test_attach_grad_null_gives_zeros_that_no_backward_writes():
    x, z = nd.array([3.0]), nd.array([2.0])
    x.attach_grad("null")
    z.attach_grad()
    assert x.grad.asnumpy().tolist() == [0]
    with mx.autograd.record():
        y = x * z
    y.backward(retain_graph=True)
    assert x.grad.asnumpy().tolist() == [0] and z.grad.asnumpy().tolist() == [3]


def test_histogram_has_the_dtypes_of_mxnet():
    def told(*args, **kwargs):
        return [
            (np.dtype(y.dtype).name, np.round(y.asnumpy().astype(float), 4).tolist())
            for y in nd.histogram(*args, **kwargs)
        ]

    # The numbers are MXNet 1.9.1's. With a range the edges have the dtype of the data, without one all is float32.
    assert told(nd.array([1, 2, 3, 4], dtype="int32"), bins=3, range=(0, 4)) == [
        ("int64", [0, 1, 3]),
        ("int32", [0, 1, 2, 4]),
    ]
    assert told(nd.array([0, 0, 1, 2, 5, 6, 8, 8, 9], dtype="uint8"), bins=4, range=(0.5, 8.5)) == [
        ("int64", [1, 1, 1, 3]),
        ("uint8", [0, 2, 4, 6, 8]),
    ]
    assert told(nd.array([-3, -2, -1, 0, 1, 2], dtype="int64"), bins=3, range=(-2.5, 2)) == [
        ("int64", [1, 1, 3]),
        ("int64", [-2, -1, 0, 2]),
    ]
    assert told(nd.array([1, 2, 2, 4], dtype="int32"), bins=2) == [("float32", [3, 1]), ("float32", [1, 2.5, 4])]
    assert told(nd.array([1, 2, 2, 4.5], dtype="float64"), bins=3) == [
        ("float32", [3, 0, 1]),
        ("float32", [1, 2.1667, 3.3333, 4.5]),
    ]
    assert told(nd.array([3, 3]), bins=2) == [("float32", [0, 2]), ("float32", [2.5, 3, 3.5])]
    assert told(nd.array([3, 3]), bins=nd.array([2, 3, 4])) == [("int64", [0, 2]), ("float32", [2, 3, 4])]
    with pytest.raises(ValueError, match="bins must be an int or an NDArray"):
        nd.histogram(nd.ones((2,)), bins=[1, 2])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_is_told_with_the_name_of_the_file():
    with pytest.raises(OSError, match="/dev/full") as e:
        nd.save("/dev/full", nd.zeros((100000,)))
    assert isinstance(e.value, MXNetError)


def test_everything_public_can_be_imported():
    space = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec("from mxcore import *", space)
    assert {"nd", "gluon", "autograd", "cpu"} <= set(space) and "annotations" not in dir(mx)


@pytest.mark.parametrize(
    "change",
    [
        lambda x, one: x.__iadd__(1),
        lambda x, one: x.__iadd__(one),
        lambda x, one: x[1:].__iadd__(1),
        lambda x, one: nd.elemwise_add(x, one, out=x),
        lambda x, one: nd.elemwise_add(x, one, out=[x]),
        lambda x, one: nd.sgd_update(x, one, lr=-1.0, out=x),
    ],
    ids=["number", "array", "view", "out", "outs", "update"],
)
def test_threads_add_to_one_array(change, in_threads):
    """Who reads an array to write it does so at once: nothing is lost."""
    x, one = nd.zeros((3,)), nd.ones((3,))

    def run():
        for _ in range(150):
            change(x, one)

    in_threads(run, [()] * 4)
    assert x.asnumpy().tolist()[1:] == [600, 600]


@pytest.mark.parametrize(
    "change",
    [
        lambda x, one: mx.np.add(x, one, out=x),
        lambda x, one: np.add(x, one, out=x),
        lambda x, one: mx.np.add(x, 1, out=(x,)),
        lambda x, one: x.__imatmul__(mx.np.array([[1.0, 1], [0, 1]])),
    ],
    ids=["out", "NumPy's", "tuple", "product"],
)
def test_threads_add_to_one_array_of_numpy(change, in_threads):
    x, one = mx.np.array([[1.0, 0], [0, 1]]), mx.np.array([[0.0, 1], [0, 0]])

    def run():
        for _ in range(100):
            change(x, one)

    in_threads(run, [()] * 4)
    assert x[0, 1].item() == 400


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_threads_add_to_one_sparse_array(stype, in_threads):
    x, one = (nd.array([[0, a]]).tostype(stype) for a in (0.0, 1.0))

    def run():
        y = x
        for _ in range(50):
            y += one

    in_threads(run, [()] * 4)
    assert x.asnumpy().tolist() == [[0, 200]]


def test_the_short_way_of_operators_is_looked_up_once(monkeypatch):
    """Also where there is none, and for arrays that are too large for it."""
    found = []
    of_body = operators._of_body
    monkeypatch.setattr(operators, "_of_body", lambda *args: found.append(args[1].name) or of_body(*args))
    tables.changed()  # all is forgotten
    whole, small, large = (
        mx.nd.ones(n, dtype=t) for n, t in ((3, "int32"), (3, "float64"), (operators.SMALL + 1, "float32"))
    )
    for _ in range(3):
        assert (whole * 2).asnumpy().tolist() == [2, 2, 2] and (small - small).asnumpy().tolist() == [0.0] * 3
        assert (large + large).asnumpy().sum() == 2 * large.size
    assert sorted(found) == ["_mul_scalar", "elemwise_add", "elemwise_sub"]


@pytest.mark.parametrize("part", [lambda b: b[0], lambda b: b.reshape(3, 2), lambda b: b[1:], lambda b: b])
def test_parts_of_what_is_shared_can_be_shared_and_written(part):
    whole = np.zeros((2, 3), "float32")
    x = nd.from_numpy(whole)
    y = nd.from_numpy(part(whole))
    y += 1
    x *= 2
    expected = np.zeros((2, 3), "float32")
    part(expected)[...] = 2
    assert np.array_equal(x.asnumpy(), expected) and np.array_equal(y.asnumpy(), part(expected))
    assert not whole.flags.writeable


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_sparse_arrays_are_not_offered(stype):
    x = nd.ones((2, 2)).tostype(stype)
    for take in (lambda: x.to_dlpack_for_read(), lambda: x.to_dlpack_for_write(), lambda: np.from_dlpack(x)):
        with pytest.raises(
            (ValueError, BufferError), match=f"a {stype} array does not lie in one memory: offer x.tostype"
        ):
            take()
