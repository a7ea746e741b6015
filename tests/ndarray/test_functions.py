"""The functions over arrays and symbols: what may be given where, and what they return."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, nd, sym

X = nd.array([[1, 2], [3, -4]])


@pytest.mark.parametrize(
    "call",
    [
        lambda y: nd.clip(X, -1, 1, y),
        lambda y: nd.abs(X, y),
        lambda y: nd.broadcast_add(X, X, y),
        lambda y: nd.sum(X, 1, True, False, y),
        lambda y: nd.clip(X, -1, 1, y, "a name"),
        lambda y: X.clip(-1, 1, y),
        lambda y: X.abs(y),
        lambda y: nd.random_uniform(1, 2, (2, 2), "cpu(0)", "float32", y),
        lambda y: nd.random.multinomial(X.abs() / 10, 1, False, y),
        lambda y: nd.contrib.adamw_update(X, X, X.copy(), X.abs(), 1, 0.1, 1, 0.9, 0.99, 1e-8, 0, -1, y),
        lambda y: nd.contrib.mp_adamw_update(
            X.astype("float16"), X.astype("float16"), X.copy(), X.abs(), X.copy(), 1, 0.1, 1, 0.9, 0.99, 1e-8, 0, -1, y
        ),
    ],
)
def test_out_is_given_by_position(call):
    shown = call(None)
    y = nd.full(shown.shape, 7, dtype=shown.dtype)
    assert call(y) is y and (y.asnumpy() != 7).any()


def test_what_comes_last_is_given_once():
    with pytest.raises(mx.MXNetError, match=r"clip takes at most 5 arguments \(data, a_min, a_max, out, name\), got 6"):
        nd.clip(X, 0, 1, None, "a", 1)
    with pytest.raises(mx.MXNetError, match="clip: 'out' is given twice"):
        nd.clip(X, 0, 1, X.copy(), out=X.copy())


def test_symbols_take_name_and_attributes_last():
    x = sym.var("x")
    y = sym.clip(x, 0, 1, "foo", {"__lr_mult__": "2"})
    assert y.name == "foo" and y.attr("__lr_mult__") == "2" and x.clip(0, 1, "bar").name == "bar"
    with pytest.raises(
        mx.MXNetError, match=r"clip takes at most 6 arguments \(data, a_min, a_max, name, attr, out\), got 7"
    ):
        sym.clip(x, 0, 1, "foo", None, None, 3)


def test_a_list_given_as_out_comes_back():
    out = [nd.zeros((1, 2)), nd.zeros((1, 2))]
    assert nd.split(X, num_outputs=2, axis=0, out=out) is out and (out[1].asnumpy() == [[3, -4]]).all()
    weights = [nd.ones((2,))]
    assert nd.multi_sgd_update(weights[0], nd.ones((2,)), lrs=(0.5,), wds=(0,), num_weights=1, out=weights) is weights
    assert (weights[0].asnumpy() == 0.5).all()


def test_no_dtype_is_the_default():
    i = nd.array([1, 0])
    for call, dtype in (
        (lambda: nd.topk(X, dtype=None), np.float32),
        (lambda: nd.argsort(X, dtype=None), np.float32),
        (lambda: nd.one_hot(i, 2, dtype=None), np.float32),
        (lambda: nd.Embedding(i, X, 2, 2, dtype=None), np.float32),
        (lambda: nd.random.multinomial(X.abs() / 10, dtype=None), np.int32),
        (lambda: nd.random.uniform(dtype=None), np.float32),
    ):
        assert call().dtype == dtype
    with pytest.raises(mx.MXNetError, match="Cast"):
        nd.cast(X, dtype=None)


def test_arrays_for_parameters_and_misnamed_inputs():
    with pytest.raises(
        mx.MXNetError, match=r"clip takes 1 input\(s\) \(data\), got 2; its parameters \(a_min, a_max\) take no arrays"
    ):
        nd.clip(X, nd.array([1.0]), 2)
    with pytest.raises(mx.MXNetError, match="sum has no parameter 'x'; its inputs: data; its parameters: axis"):
        nd.sum(x=X)


def test_numbers_that_come_again_and_change():
    x = nd.array([1, -2])
    x.attach_grad()
    for number in (2, 2, 2.0, 3, 2, 0.0, -0.0, 0, 0, -0.0, np.inf, 2, 1e40, 1e40, 2):
        with mx.autograd.record():
            y = x * number
        y.backward()
        with np.errstate(over="ignore", invalid="ignore"):
            wanted = np.array([1, -2], np.float32) * np.float32(number)
            assert (x.grad.asnumpy() == np.float32(number)).all()
        np.testing.assert_array_equal(y.asnumpy(), wanted)
        assert (np.signbit(y.asnumpy()) == np.signbit(wanted)).all() and y.dtype == np.float32
    for number in (np.nan, np.nan):
        assert np.isnan((x * number).asnumpy()).all()


@pytest.mark.parametrize(
    "call, names",
    [
        (lambda x: nd.zeros_like(x, dtype="int32"), "zeros_like .*: 'dtype'"),
        (lambda x: nd.broadcast_maximum(x, x, axis=1), "broadcast_maximum .*: 'axis'"),
        (lambda x: x.exp(axis=1, keepdims=np.ones(2)), "exp .*: 'axis', 'keepdims'"),
        (lambda x: nd.relu(x, out=x, a=None), "relu .*: 'a'"),
    ],
)
def test_operators_without_parameters_ignore_keywords_as_in_mxnet(call, names):
    with pytest.warns(UserWarning, match=f"^operator {names}$") as told:
        assert call(nd.ones((2,))).dtype == np.float32
    assert len(told) == 1 and told[0].filename == __file__
    with pytest.raises(mx.MXNetError, match="exp has no parameter 'y'"):
        nd.exp(nd.ones((2,)), y=nd.ones((2,)))  # an array is no parameter


def test_functions_of_numpy_compute_on_copies():
    x = nd.array([[1, 2], [3, 4]])
    host = x.asnumpy()
    for fn in (
        np.sqrt,
        np.isnan,
        np.mean,
        np.std,
        np.sign,
        np.cumsum,
        np.sort,
        np.argsort,
        np.unique,
        np.transpose,
        lambda v: np.all(v == 3),
        lambda v: np.any(v > 3),
        lambda v: np.mean(v, axis=0, keepdims=True),
        lambda v: np.round(v, 1),
        lambda v: np.add(v, 1),
        lambda v: np.add(v, v),
        lambda v: np.add.reduce(v),
        lambda v: np.maximum(v, 2),
        lambda v: np.stack([v, v]),
        lambda v: np.where(v > 2, v, 0),
        lambda v: np.take(v, [1]),
        lambda v: np.repeat(v, 2),
        lambda v: np.ones((2, 2)) @ v,
        lambda v: np.multiply.outer(v, v),
        lambda v: np.exp(v, out=np.zeros((2, 2))),
    ):
        np.testing.assert_array_equal(fn(x), fn(host))
    assert type(np.sqrt(x)) is np.ndarray and type(np.sqrt(x.tostype("csr"))) is np.ndarray
    total = np.zeros((2, 2))
    total += x
    assert total.tolist() == host.tolist()
    assert (np.shape(x), np.ndim(x), np.size(x)) == ((2, 2), 2, 4)


def test_what_numpy_leaves_to_arrays_stays_ours():
    x = nd.array([[1, 2], [3, 4]])
    with autograd.record():
        x.attach_grad()
        y = np.float32(2) * x - np.int64(1)
        z = np.sum(np.float64(1) / y)
    z.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), -2 / (2 * x.asnumpy() - 1) ** 2, rtol=1e-6)
    for got in (
        np.float32(2) < x,
        np.float32(2) == x,
        np.float32(2) ** x,
        np.int32(3) % x,
        np.array(3.0) * x,
        np.max(x, axis=0),
        np.argmax(x, 1),
        np.clip(x, 2, 3),
        np.round(x),
    ):
        assert type(got) is nd.NDArray and got.dtype == np.float32
    assert (np.float32(2) < x).asnumpy().tolist() == [[0, 0], [1, 1]] and (np.float32(2) >= x).asnumpy().tolist() == [
        [1, 1],
        [0, 0],
    ]
    with pytest.raises(TypeError, match="cannot be combined with ndarray"):
        np.ones((2, 2)) * x
    for write in (
        lambda: np.exp(np.ones((2, 2)), out=x),
        lambda: np.copyto(x, 3),
        lambda: np.add.at(x, 0, 1),
        lambda: np.fill_diagonal(x, 0),
        lambda: np.concatenate([x, x], out=x),
    ):
        with pytest.raises(TypeError, match="cannot write to an NDArray"):
            write()


def test_numbers_make_arrays_without_dimensions():
    for value in (5, 5.0, np.float32(5), np.array(5), np.array(5, "int64")):
        x = nd.array(value)
        assert x.shape == () and x.dtype == np.float32 and float(x) == 5 and x.asscalar() == 5
    assert repr(x) == "\n5.0\n<NDArray  @cpu(0)>"
    assert (
        (x + 1).asscalar() == 6
        and (x * x).shape == ()
        and (x * nd.ones((2,))).asnumpy().tolist() == [5, 5]
        and x.sum().shape == (1,)
    )
    x.attach_grad()
    with autograd.record():
        y = nd.exp(x) * 2
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * np.exp(5), rtol=1e-6)
    with pytest.raises(TypeError, match="without dimensions"):
        len(x)


@pytest.mark.parametrize(
    "source, destination", [((0, 0), (1, 2)), ((0, 1), (1, 1)), ((0, -3), (1, 2)), ((0, 1), (-1, 2))]
)
def test_moveaxis_refuses_repeated_axes(source, destination):
    with pytest.raises(ValueError, match="moveaxis: an axis is repeated"):
        nd.moveaxis(nd.zeros((2, 3, 4)), source, destination)


def test_copies_of_arrays_go_to_the_current_context():
    x = nd.ones((2,), ctx=mx.cpu(0))
    with mx.cpu(1):
        assert nd.array(x).context == mx.cpu(1) and nd.array(x, ctx=mx.cpu(0)).context == mx.cpu(0)


def test_lengths_that_are_unknown_outside_of_np_shape():
    for make in (
        lambda: nd.zeros(()),
        lambda: nd.ones((0, 3)),
        lambda: nd.zeros(0),
        lambda: nd.zeros([2, 0]),
        lambda: nd.full((), 1),
    ):
        with pytest.raises(ValueError, match=r"holds an unknown length; nd.empty makes an empty array"):
            make()
        with mx.util.np_shape():
            assert make().size in (0, 1)
    assert nd.empty((0, 3)).shape == (0, 3) and nd.full((0, 3), 1).shape == (0, 3)
