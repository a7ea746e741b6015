"""LeakyReLU, Dropout and the softmax family: modes, masks, randomness, extremes, refusals."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.testing.gradcheck import check_grads

from .golden.corners import wave


def recorded(fn, x, train=True):
    x.attach_grad()
    with mx.autograd.record(train_mode=train):
        y = fn(x)
    y = y[0] if isinstance(y, list) else y
    mx.autograd.backward([y], train_mode=train)
    return y.asnumpy(), x.grad.asnumpy()


def test_dropout_in_training():
    x = mx.nd.full((200, 50), 3.0)
    y, g = recorded(lambda a: mx.nd.Dropout(a, p=0.25), x)
    assert set(np.unique(y)) == {0.0, 4.0} and 0.7 < (y > 0).mean() < 0.8
    np.testing.assert_array_equal(g, y / 3)


def test_dropout_in_prediction():
    x = mx.nd.full((20, 5), 3.0)
    y, g = recorded(lambda a: mx.nd.Dropout(a, p=0.25), x, train=False)
    assert (y == 3).all() and (g == 1).all()
    assert (mx.nd.Dropout(x, p=0.5, mode="always").asnumpy() == 0).any()


def test_dropout_shares_decisions_along_axes():
    y = mx.nd.Dropout(mx.nd.ones((50, 4, 6)), mode="always", axes=(1,)).asnumpy()
    assert (y == y[:, :1]).all() and (y[:, 0] != y[:1, 0]).any()
    with pytest.raises(ValueError, match=r"axes \(3,\) must lie in \[0, 3\)"):
        mx.nd.Dropout(mx.nd.ones((2, 3, 4)), axes=(3,))


def test_dropout_of_everything_and_nothing():
    x = mx.nd.ones((3, 4))
    assert not recorded(lambda a: mx.nd.Dropout(a, p=1), x)[0].any()
    assert recorded(lambda a: mx.nd.Dropout(a, p=0), x)[1].all()
    with pytest.raises(ValueError, match="operator Dropout: parameter 'p' must be float between 0 and 1, got 1.5"):
        mx.nd.Dropout(x, p=1.5)


def test_dropout_follows_the_seed():
    def draw():
        return mx.nd.Dropout(mx.nd.ones((8, 8)), mode="always").asnumpy()

    mx.random.seed(3)
    a, b = draw(), draw()
    mx.random.seed(3)
    assert (draw() == a).all() and (b != a).any()


def test_random_slopes():
    x = mx.nd.array(wave((40, 30), 1))
    x.attach_grad()
    with mx.autograd.record():
        y, mask = mx.nd.LeakyReLU(x, act_type="rrelu", lower_bound=0.2, upper_bound=0.4)
    y.backward()
    m, g, below = mask.asnumpy(), x.grad.asnumpy(), x.asnumpy() <= 0
    assert 0.2 <= m.min() < 0.22 and 0.38 < m.max() <= 0.4
    np.testing.assert_array_equal(g, np.where(below, m, 1))
    y, _ = mx.nd.LeakyReLU(x, act_type="rrelu", lower_bound=0.2, upper_bound=0.4)
    np.testing.assert_allclose(y.asnumpy(), np.where(below, x.asnumpy() * 0.3, x.asnumpy()), rtol=1e-6)
    assert mx.sym.LeakyReLU(mx.sym.var("x"), act_type="rrelu", name="r").list_outputs() == ["r_output", "r_mask"]


@pytest.mark.parametrize(("act_type", "slope"), [("leaky", 0.25), ("elu", 0.25), ("selu", 0.25), ("gelu", 0.25)])
def test_gradients_of_gradients(act_type, slope):
    check_grads(lambda x: mx.nd.LeakyReLU(x, act_type=act_type, slope=slope) ** 2, [[-1.5, -0.4, 0.6, 1.7]], order=2)


@pytest.mark.parametrize(
    ("act_type", "slope"),
    [
        ("leaky", 0.25),
        ("leaky", 0.0),
        ("leaky", -0.5),
        ("leaky", 1.5),
        ("elu", 0.25),
        ("elu", 2.0),
        ("selu", 0.25),
        ("gelu", 0.25),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_arrays_are_as_small_ones(act_type, slope, dtype):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1e30, -1e30, *np.linspace(-8, 8, 55)], dtype)
    dy = np.linspace(-2, 2, x.size).astype(dtype)

    def both(times):
        a = mx.nd.array(np.tile(x, times), dtype=dtype)
        a.attach_grad()
        with mx.autograd.record():
            y = mx.nd.LeakyReLU(a, act_type=act_type, slope=slope)
        y.backward(mx.nd.array(np.tile(dy, times), dtype=dtype))
        return [v.asnumpy().reshape(times, -1) for v in (y, a.grad)]

    for few, many in zip(both(1), both(200)):
        assert (np.signbit(few) == np.signbit(many))[~np.isnan(many)].all()
        # 1 + erf(x) cancels far below zero.
        np.testing.assert_allclose(few, many[:1], *((2e-6, 5e-7) if dtype == "float32" else (1e-13, 1e-15)))
        np.testing.assert_array_equal(many, many[:1].repeat(200, 0))


@pytest.mark.parametrize("slope", [0.0, 0.25, 1.0])
def test_infinity_stays(slope):
    y = mx.nd.LeakyReLU(mx.nd.array([np.inf, -1.0]), slope=slope)
    np.testing.assert_array_equal(y.asnumpy(), [np.inf, -slope])


@pytest.mark.parametrize("gamma", [(3,), (1,)])
def test_learned_slopes(gamma):
    check_grads(
        lambda x, g: mx.nd.LeakyReLU(x, g, act_type="prelu") ** 2, [wave((2, 3, 2), 1), wave(gamma, 2)], order=2
    )


def test_gamma_is_for_learned_slopes_only(shapes):
    assert mx.sym.LeakyReLU(mx.sym.var("x"), name="a").list_arguments() == ["x"]
    assert mx.sym.LeakyReLU(mx.sym.var("x"), act_type="prelu", name="a").list_arguments() == ["x", "a_gamma"]
    assert shapes("LeakyReLU", [(2, 3, 4), None], act_type="prelu")[0] == [(2, 3, 4), (3,)]
    assert shapes("LeakyReLU", [(2, 3, 4), (1,)], act_type="prelu")[0] == [(2, 3, 4), (1,)]
    assert shapes("LeakyReLU", [(5,), None], act_type="prelu")[0] == [(5,), (5,)]
    with pytest.raises(ValueError, match=r"gamma \(4,\) must have shape \(3,\) or \(1,\)"):
        shapes("LeakyReLU", [(2, 3, 4), (4,)], act_type="prelu")
    with pytest.raises(TypeError, match="takes no input 'gamma'|takes 1 input"):
        mx.nd.LeakyReLU(mx.nd.ones((2, 3)), gamma=mx.nd.ones((3,)))


def test_large_logits():
    x = mx.nd.array([[1e4, 0.0, -1e4], [-3e38, -3e38, -3e38]])
    np.testing.assert_allclose(mx.nd.softmax(x).asnumpy(), [[1, 0, 0], [1 / 3] * 3], rtol=1e-6)
    np.testing.assert_allclose(mx.nd.log_softmax(x).asnumpy(), [[0, -1e4, -2e4], [-np.log(3)] * 3], rtol=1e-6)
    np.testing.assert_allclose(mx.nd.softmin(x).asnumpy()[0], [0, 0, 1], rtol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "softmin", "log_softmax"])
def test_softmax_family_second_order(name):
    op = getattr(mx.nd, name)
    check_grads(lambda x: op(x, axis=1, temperature=1.5) ** 2, [wave((2, 4, 3), 1)], order=2)


def test_softmax_lengths_of_extremes():
    x = mx.nd.array([[1e4, 0, -1e4, 3e4], [-1e4, -1e4, 2, 1e4]])
    y = mx.nd.softmax(x, mx.nd.array([3, 2], dtype="int32"), axis=1, use_length=True)
    np.testing.assert_allclose(y.asnumpy(), [[1, 0, 0, 0], [0.5, 0.5, 0, 0]], rtol=1e-6)


@pytest.mark.parametrize("temperature", [0.5, 2, 3])
@pytest.mark.parametrize("name", ["softmax", "softmin", "log_softmax"])
def test_softmax_temperature(name, temperature):
    x = wave((3, 4), 1)
    got = getattr(mx.nd, name)(mx.nd.array(x), temperature=temperature)
    np.testing.assert_allclose(
        got.asnumpy(), getattr(mx.nd, name)(mx.nd.array(x / temperature)).asnumpy(), rtol=1e-5, atol=1e-6
    )


def test_softmax_lengths():
    length = mx.nd.array([[1, 3, 0]], dtype="int64")
    x = mx.nd.array(wave((1, 4, 3), 1))
    y, g = recorded(lambda a: mx.nd.softmax(a, length, axis=1, use_length=True) ** 2, x)
    assert (
        (y[0, 1:, 0] == 0).all() and y[0, 0, 0] == 1 and not y[0, :, 2].any() and not y[0, 3, 1] and y[0, :3, 1].all()
    )
    assert not g[0, 3].any() and not g[0, :, 2].any()


def test_softmax_dtypes(dtypes):
    assert dtypes("softmax", ["float16"], dtype="float32") == (["float16"], ["float32"])
    x = mx.nd.array([[1, 2], [3, 4]], dtype="int32")
    assert mx.nd.softmax(x, dtype="float64").dtype == np.float64
    with pytest.raises(TypeError, match="data of dtype int32 needs parameter dtype"):
        mx.nd.softmax(x)
    with pytest.raises(TypeError, match="length must be of an integer dtype, got float32"):
        mx.nd.softmax(mx.nd.ones((2, 3)), mx.nd.ones((2,)), use_length=True)
    with pytest.raises(ValueError, match="use_length is for softmax"):
        mx.nd.log_softmax(mx.nd.ones((2, 3)), use_length=True)
    half = mx.nd.array([[1, 2]], dtype="float16")
    half.attach_grad()
    with mx.autograd.record():
        y = mx.nd.softmax(half, dtype="float32") ** 2
    y.backward()
    assert half.grad.dtype == np.float16 and half.grad.asnumpy().any()


def test_softmax_shapes(shapes):
    assert shapes("softmax", [(2, 3, 4), None], axis=1, use_length=True) == ([(2, 3, 4), (2, 4)], [(2, 3, 4)])
    assert shapes("softmax", [None], [(2, 3)]) == ([(2, 3)], [(2, 3)])
    with pytest.raises(ValueError, match="axis 2 is out of range for 2 dimensions"):
        shapes("softmax", [(2, 3)], axis=2)


def test_softmax_activation():
    x = wave((2, 3, 4), 1)
    for mode, axis in (("instance", -1), ("channel", 1)):
        y, g = recorded(lambda a, m=mode: mx.nd.SoftmaxActivation(a, mode=m), mx.nd.array(x))
        np.testing.assert_allclose(y.sum(axis), 1, rtol=1e-6)
        np.testing.assert_allclose(g, 0, atol=1e-6)


@pytest.mark.parametrize("size", [3, 100_000])
def test_relu_hands_nan_back(size):
    x = mx.nd.array(np.resize([-1.0, np.nan, 2.0], size))
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Activation(x, act_type="relu")
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy()[:3], [0, np.nan, 1])
