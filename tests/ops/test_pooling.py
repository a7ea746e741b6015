"""Pooling: window counts, what averages count, ties, layouts, refusals."""

import numpy as np
import pytest

import mxcore as mx

from .golden.corners import wave


def gradient(x, dy, **params):
    x = mx.nd.array(x)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Pooling(x, **params)
    y.backward(mx.nd.array(dy))
    return y.asnumpy(), x.grad.asnumpy()


@pytest.mark.parametrize(("convention", "count"), [("valid", 3), ("full", 4), ("same", 4)])
def test_conventions(shapes, convention, count):
    params = dict(kernel=(2,), stride=(2,), pooling_convention=convention)
    assert shapes("Pooling", [(2, 3, 7)], **params) == ([(2, 3, 7)], [(2, 3, count)])
    assert mx.nd.Pooling(mx.nd.ones((2, 3, 7)), **params).shape == (2, 3, count)


def test_convention_same_over_everything_ignores_the_pad():
    assert mx.nd.Pooling(
        mx.nd.ones((1, 1, 4)), global_pool=True, pooling_convention="same", kernel=(2,), pad=(1,)
    ).asnumpy().tolist() == [[[1]]]


def test_shapes(shapes):
    assert shapes("Pooling", [(-1, 3, 7, -1)], [(2, 3, 3, 4)], kernel=(3, 3), stride=(2, 2))[0] == [(2, 3, 7, -1)]
    assert shapes("Pooling", [(2, 7, 6, 3)], kernel=(3, 3), layout="NHWC")[1] == [(2, 5, 4, 3)]
    assert shapes("Pooling", [(2, 3, 7, 6)], global_pool=True)[1] == [(2, 3, 1, 1)]
    assert shapes("Pooling", [None], kernel=(2,)) == ([None], [None])


def test_what_averages_count():
    x = mx.nd.ones((1, 1, 4))
    params = dict(kernel=(3,), stride=(2,), pad=(1,), pool_type="avg", pooling_convention="full")
    third = 2 / 3
    # The last window reaches one beyond the padding, which no average counts.
    np.testing.assert_allclose(mx.nd.Pooling(x, **params).asnumpy()[0, 0], [third, 1, 0.5])
    np.testing.assert_allclose(mx.nd.Pooling(x, count_include_pad=False, **params).asnumpy()[0, 0], [1, 1, 1])


@pytest.mark.parametrize("global_pool", [False, True])
def test_the_first_of_equal_maxima_gets_the_gradient(global_pool):
    x = np.array([[[[1, 5, 5], [5, 2, 5]]]], np.float32)
    _, g = gradient(x, np.array([[[[3.0]]]], np.float32), kernel=(2, 3), global_pool=global_pool)
    assert g.tolist() == [[[[0, 3, 0], [0, 0, 0]]]]


def test_padding_never_wins():
    y, g = gradient(-np.ones((1, 1, 3), np.float32), np.ones((1, 1, 3), np.float32), kernel=(3,), pad=(1,))
    assert y.tolist() == [[[-1, -1, -1]]] and g.sum() == 3


@pytest.mark.parametrize("pool_type", ["max", "avg", "sum", "lp"])
def test_channels_last(pool_type):
    params = dict(kernel=(3, 2), stride=(2, 1), pad=(1, 0), pool_type=pool_type, p_value=2)
    x, dy = wave((2, 3, 6, 5), 1), wave((2, 3, 3, 4), 2)
    first = gradient(x, dy, **params)
    last = gradient(x.transpose(0, 2, 3, 1), dy.transpose(0, 2, 3, 1), layout="NHWC", **params)
    for a, b in zip(first, last):
        np.testing.assert_allclose(a, b.transpose(0, 3, 1, 2), rtol=1e-6, atol=1e-6)


def test_gradient_where_windows_leave_a_rest():
    _, g = gradient(wave((1, 1, 6), 1), np.ones((1, 1, 2), np.float32), kernel=(2,), stride=(3,), pool_type="sum")
    assert g.tolist() == [[[1, 1, 0, 1, 1, 0]]]


def test_norm_of_zeros_has_gradient_zero():
    _, g = gradient(
        np.zeros((1, 1, 4), np.float32),
        np.ones((1, 1, 2), np.float32),
        kernel=(2,),
        stride=(2,),
        pool_type="lp",
        p_value=2,
    )
    assert g.tolist() == [[[0, 0, 0, 0]]]


@pytest.mark.parametrize(
    ("data", "params", "say"),
    [
        ((2, 3, 8), dict(kernel=(3,), pad=(3,)), r"pad \(3,\) must be smaller than kernel \(3,\)"),
        ((2, 3, 8), dict(kernel=(9,)), "covers 9 in spatial dimension 0"),
        ((2, 3, 8), dict(kernel=(3, 3)), r"kernel \(3, 3\) must have 1 numbers"),
        ((2, 3), dict(kernel=(3,)), "must have batch, channels and 1, 2 or 3 spatial dimensions"),
        ((2, 3, 8), dict(kernel=(3,), layout="NHWC"), "layout NHWC does not fit data"),
        (
            (1, 1, 3, 3),
            dict(kernel=(2, 2), pad=(1, 1), pooling_convention="same"),
            r"pad \(1, 1\) must be \(0, 0\) with pooling_convention same",
        ),
        ((1, 1, 9), dict(kernel=(3,), stride=(2,), pad=(1,), pooling_convention="same"), r"pad \(1,\) must be \(0,\)"),
        ((2, 3, 8, 8), {}, r"kernel \(\) must have 2 numbers"),
    ],
)
def test_refusals(shapes, data, params, say):
    with pytest.raises(ValueError, match=f"operator Pooling: .*{say}"):
        shapes("Pooling", [data], **params)


def test_the_power_is_required():
    with pytest.raises(ValueError, match="pool_type lp needs p_value"):
        mx.nd.Pooling(mx.nd.ones((1, 1, 4)), kernel=(2,), pool_type="lp")


def test_norms_of_negative_numbers():
    """MXNet takes no absolute values: the 1-norm is the sum."""
    x = mx.nd.array([[[-1.0, 2.0, -3.0]]])
    x.attach_grad()
    for p, want, slope in (
        (1, -2.0, [1, 1, 1]),
        (2, 14**0.5, [-1 / 14**0.5, 2 / 14**0.5, -3 / 14**0.5]),
        (3, -(20 ** (1 / 3)), None),
    ):
        for how in ({"kernel": (3,)}, {"global_pool": True}):
            with mx.autograd.record():
                y = mx.nd.Pooling(x, pool_type="lp", p_value=p, **how)
            y.backward()
            np.testing.assert_allclose(y.asnumpy(), [[[want]]], rtol=1e-6)
            if slope:
                np.testing.assert_allclose(x.grad.asnumpy(), [[slope]], rtol=1e-5)


def test_a_nan_is_no_maximum():
    x = mx.nd.array([[[1.0, np.nan, np.nan, -2.0, np.nan, np.nan]]])
    y = mx.nd.Pooling(x, kernel=(2,), stride=(2,)).asnumpy().ravel()
    assert y.tolist() == [1, -2, np.finfo(np.float32).min]
    assert mx.nd.Pooling(x, global_pool=True).asnumpy().ravel().tolist() == [1]


@pytest.mark.parametrize("value", [-np.inf, np.nan])
@pytest.mark.parametrize(
    "how, grad",
    [  # MXNet's
        ({"kernel": (2, 2), "stride": (2, 2)}, [1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4, 0, 0, 0, 0, 0]),
        ({"kernel": (3, 3), "stride": (1, 1), "pad": (1, 1)}, [6, 7, 8, 0, 10, 11, 12, 0, 14, 15, 16, 0, 0, 0, 0, 0]),
        ({"kernel": (2, 2), "stride": (2, 2), "pad": (1, 1)}, [0, 0, 0, 0, 0, 5, 0, 6, 0, 0, 0, 0, 0, 8, 0, 9]),
        ({"global_pool": True}, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (
            {"kernel": (3, 3), "stride": (2, 2), "pooling_convention": "full"},
            [1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4, 0, 0, 0, 0, 0],
        ),
    ],
)
def test_the_first_place_takes_the_gradient_where_there_is_no_maximum(how, grad, value):
    x = mx.nd.full((1, 1, 4, 4), value)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Pooling(x, **how)
    y.backward(mx.nd.arange(1, y.size + 1).reshape(y.shape))
    assert (y.asnumpy() == np.finfo("f4").min).all()
    assert x.grad.asnumpy().ravel().tolist() == grad


def test_a_nan_beside_the_maximum_takes_no_gradient():
    x = mx.nd.array([[[np.nan, 1.0, np.nan, -2.0]]])
    x.attach_grad()
    for how, grad in (({"kernel": (2,), "stride": (2,)}, [0, 1, 0, 1]), ({"global_pool": True}, [0, 1, 0, 0])):
        with mx.autograd.record():
            y = mx.nd.Pooling(x, **how)
        y.backward()
        assert x.grad.asnumpy().ravel().tolist() == grad
