"""The class of arrays of mx.np: facts, conversions, printing, methods, pickling, gradients, other libraries."""

import copy
import pickle

import numpy as onp
import pytest

import mxcore as mx
from mxcore import autograd, np
from mxcore.base import MXNetError

from .numbers import DTYPES, check, drawn

pytestmark = pytest.mark.usefixtures("numpy_mode")


def test_facts():
    x = np.zeros((2, 3), dtype="int32")
    assert x.shape == (2, 3) and x.ndim == 2 and x.size == 6 and len(x) == 2 and x.dtype == onp.int32
    assert x.itemsize == 4 and x.nbytes == 24 and x.T.shape == (3, 2) and x.stype == "default"
    assert x.ctx == x.context == x.device == mx.cpu()
    assert [y.item() for y in np.array([[1, 2], [3, 4]]).flat] == [1, 2, 3, 4]
    assert {x: 1}[x] == 1  # an array is a key by itself


@pytest.mark.parametrize(
    "given, text",
    [
        (onp.array([1.5, 2], "f"), "array([1.5, 2. ])"),
        (onp.array([1.5]), "array([1.5], dtype=float64)"),
        (onp.arange(2), "array([0, 1], dtype=int64)"),
        (onp.arange(2, dtype="int8"), "array([0, 1], dtype=int8)"),
        (onp.array([True]), "array([ True])"),
        (onp.array(1.5, "f"), "array(1.5)"),
        (onp.zeros((2, 0), "f"), "array([], shape=(2, 0))"),
        (onp.zeros((0,), "float16"), "array([], dtype=float16)"),
    ],
    ids=str,
)
def test_printing(given, text):
    x = np.array(given)
    assert repr(x) == text and str(x) == str(given)


def test_formats():
    assert f"{np.array(1.5):.2f}" == "1.50" and f"{np.array([1])}" == "[1.]"
    with pytest.raises(TypeError, match="formatted"):
        f"{np.array([1, 2]):.2f}"


def test_numbers_of_python():
    x = np.array(2.5)
    assert float(x) == 2.5 and int(x) == 2 and complex(x) == 2.5 and bool(x) and x.item() == 2.5
    assert isinstance(x.item(), float) and isinstance(np.array(3, dtype="int8").item(), int)
    assert [10, 11, 12][np.array(1, dtype="int32")] == 11
    assert np.array([[1, 2], [3, 4]]).item(3) == np.array([[1, 2], [3, 4]]).item(1, 1) == 4
    assert np.array([[1, 2]]).tolist() == [[1.0, 2.0]] and np.array(1).tolist() == 1.0
    assert not np.zeros((0,)) and np.array(7).asscalar() == 7


def test_iteration_and_membership():
    x = np.array([[1, 2], [3, 4]])
    assert [r.tolist() for r in x] == [[1, 2], [3, 4]]
    a, b = x
    b[:] = 0
    assert x.tolist() == [[1, 2], [0, 0]] and 2 in x and 7 not in x
    assert [type(v) for v in np.arange(2)] == [np.ndarray] * 2


@pytest.mark.parametrize("dtype", DTYPES)
def test_casts(dtype):
    a = drawn((2, 3), dtype)
    x = np.array(a)
    for to in DTYPES:
        check(x.astype(to), a.astype(to), to)
    assert x.astype(dtype, copy=False) is x and x.astype(dtype) is not x
    check(x.astype("float64", casting="same_kind"), a.astype("float64"), "float64")


def test_copies():
    x = np.array([1, 2])
    for y in (x.copy(), copy.copy(x), copy.deepcopy(x), x.copyto(mx.cpu()), pickle.loads(pickle.dumps(x))):
        assert type(y) is np.ndarray
        y[:] = 0
    check(x, [1, 2], "float32")
    out = np.zeros((2, 2), dtype="int32")
    assert x.copyto(out) is out
    check(out, [[1, 2], [1, 2]], "int32")
    y = x.to_device(mx.cpu(1))
    assert y.ctx == mx.cpu(1) and x.to_device("cpu") is x and x.as_in_ctx(mx.cpu(1)).ctx == mx.cpu(1)
    for shape in ((), (0, 2)):
        z = pickle.loads(pickle.dumps(np.zeros(shape)))
        assert z.shape == shape


def test_faces_share_memory():
    x = np.array([1, 2])
    y = x.as_nd_ndarray()
    assert type(y) is mx.nd.NDArray and type(y.as_np_ndarray()) is np.ndarray and x.as_np_ndarray() is x
    y[:] = 5
    check(x, [5, 5], "float32")
    x.attach_grad()
    with autograd.record():
        z = x.as_nd_ndarray() * 2
        w = z.as_np_ndarray() * 3
    w.backward()
    assert type(x.grad) is np.ndarray
    check(x.grad, [6, 6], "float32")


def test_gradients():
    x = np.array([1, 2])
    assert x.grad is None
    x.attach_grad("add")
    for _ in range(2):
        with autograd.record():
            y = x * x
            z = y.detach() * x
        y.backward(np.array([1, 10]))
        z.backward()
    check(x.grad, [2 * 2 + 2 * 1, 2 * 40 + 2 * 4], "float32")
    view = x.grad[0:1]
    x.grad[:] = 0
    assert view.item() == 0


def test_dlpack_both_ways():
    x = np.array([1, 2])
    a = onp.from_dlpack(x)
    x[:] = 5
    assert a.tolist() == [5, 5]
    y = mx.nd.from_dlpack(x).as_np_ndarray()
    y[0] = 7
    assert x.tolist() == [7, 5] and mx.nd.from_dlpack(x.to_dlpack_for_read()).asnumpy().tolist() == [7, 5]
    assert onp.asarray(x).tolist() == [7, 5]


_A = onp.array([[3.0, 1, 2], [6, 5, 4]], "f")


@pytest.mark.parametrize(
    "name, args",
    [
        ("reshape", (3, 2)),
        ("reshape", ((3, -1),)),
        ("transpose", ()),
        ("transpose", (1, 0)),
        ("transpose", ((1, 0),)),
        ("transpose", (None,)),
        ("flatten", ()),
        ("ravel", ()),
        ("squeeze", ()),
        ("swapaxes", (0, 1)),
        ("repeat", (2, 1)),
        ("take", ([0, 1], 1)),
        ("diagonal", ()),
        ("trace", ()),
        ("compress", ([True, False], 0)),
    ],
    ids=repr,
)
def test_methods_are_numpys(name, args):
    check(getattr(np.array(_A), name)(*args), getattr(_A, name)(*args), "float32")


@pytest.mark.parametrize(
    "name, args",
    [
        ("expand_dims", (0,)),
        ("tile", (2,)),
        ("flip", (0,)),
        ("pad", (1,)),
        ("split", (3, 1)),
        ("broadcast_to", ((2, 2, 3),)),
        ("ones_like", ()),
        ("zeros_like", ()),
        ("diag", ()),
    ],
    ids=repr,
)
def test_methods_of_functions(name, args):
    got, want = getattr(np.array(_A), name)(*args), getattr(onp, name)(_A, *args)
    for g, w in zip(got, want, strict=True) if isinstance(want, list) else [(got, want)]:
        check(g, w, "float32")


def test_clip_names_its_limits_as_numpys_method_does():
    x = np.array([-1.0, 2, 5])
    assert x.clip(min=0).tolist() == [0, 2, 5] and x.clip(max=3).tolist() == [-1, 2, 3]
    assert x.clip(0, 3).tolist() == x.clip(min=0, max=3, out=x).tolist() == x.tolist() == [0, 2, 3]
    with pytest.raises(TypeError, match="a_min"):
        x.clip(a_min=0, a_max=3)
    s = mx.sym.var("x").as_np_ndarray()
    assert s.clip(min=0).list_arguments() == s.clip(0, 1).list_arguments() == ["x"]
    with pytest.raises(TypeError, match="a_min"):
        s.clip(a_min=0, a_max=3)


def test_places_have_mxnets_argument_names():
    x = np.array([1.0])
    assert x.as_in_ctx(ctx=mx.cpu(0)) is x
    assert x.as_in_ctx(ctx=mx.cpu(1)).ctx == mx.cpu(1)


def test_methods_of_mxnet():
    x = np.array(_A)
    check(x.broadcast_like(np.zeros((2, 2, 3))), onp.broadcast_to(_A, (2, 2, 3)), "float32")
    check(x.slice_axis(axis=1, begin=0, end=2), _A[:, :2], "float32")
    check(x.rsqrt(), 1 / onp.sqrt(_A), "float32")
    check(x.split_v2(2)[0], _A[:1], "float32")
    assert type(x.slice_assign(np.zeros((1, 3)), (0, 0), (1, 3), ())) is np.ndarray and x[0].asnumpy().sum() == 0
    check(x.flatten(inplace=True), x.asnumpy().ravel(), "float32")
    assert x.tostype("default") is x


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda x: bool(x), ValueError, "x.any"),
        (lambda x: float(x), TypeError, "one element"),
        (lambda x: [1, 2][x[0, 0]], TypeError, "integer"),
        (lambda x: iter(np.array(1)), TypeError, "iterated"),
        (lambda x: len(np.array(1)), TypeError, "without dimensions"),
        (lambda x: x.item(), ValueError, "item"),
        (lambda x: x.item(9), IndexError, "item"),
        (lambda x: x.astype("int32", casting="safe"), TypeError, "safe"),
        (lambda x: x.astype("int32", casting="other"), ValueError, "casting"),
        (lambda x: x.astype("int32", order="F"), NotImplementedError, "order='F'"),
        (lambda x: x.astype("int32", subok=False), NotImplementedError, "subok"),
        (lambda x: x.copy("F"), NotImplementedError, "order='F'"),
        (lambda x: x.copyto(5), TypeError, "Context"),
        (lambda x: x.copyto(np.zeros(3)), ValueError, "shape"),
        (lambda x: x.attach_grad(stype="csr"), ValueError, "dense"),
        (lambda x: x.tostype("csr"), ValueError, "dense"),
        (lambda x: x.to_device("cpu", stream=1), NotImplementedError, "stream"),
        (lambda x: onp.array(x, copy=False), ValueError, "copy"),
    ],
    ids=range(18),
)
def test_bad_input_says_what_is_wrong(call, kind, text):
    with pytest.raises(kind, match=text) as e:
        call(np.zeros((2, 2)))
    assert isinstance(e.value, MXNetError)


def test_as_in_context_gives_another_array_over_the_memory():
    """As in MXNet: one taken before `attach_grad` is no variable; `as_in_ctx` gives the array itself."""
    x = np.array([1.0, 2, 3])
    for other, wanted in ((x.as_in_context(context=mx.cpu()), [1, 2, 3]), (x.as_in_ctx(mx.cpu()), [2, 4, 6])):
        x.attach_grad()
        with mx.autograd.record():
            loss = (other * x).sum()
        loss.backward()
        assert x.grad.tolist() == wanted
    with mx.autograd.record():
        loss = (x.as_in_context(mx.cpu()) * x).sum()  # with its place on the tape
    loss.backward()
    assert x.grad.tolist() == [2, 4, 6]
    x.as_in_context(mx.cpu())[0] = 7
    assert x.tolist() == [7, 2, 3] and x.as_in_context(mx.cpu(1)).tolist() == [7, 2, 3]
