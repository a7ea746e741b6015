"""The first versions of convolution, pooling and batch normalization: where they differ from their successors."""

import json

import numpy as np
import pytest

import mxcore as mx
from mxcore.testing.gradcheck import check_grads

from .golden.corners import wave


def gradient(data, dy=None, **params):
    """Output and gradient of Pooling_v1."""
    x = mx.nd.array(data)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Pooling_v1(x, **params)
    y.backward(None if dy is None else mx.nd.array(dy))
    return y.asnumpy(), x.grad.asnumpy()


def test_padding_takes_part():
    x = -np.arange(1, 21).reshape(1, 1, 4, 5)
    how = {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)}
    y, dx = gradient(x, **how)
    assert y.ravel().tolist() == [0, 0, 0, 0, -7, 0] and np.argwhere(dx).tolist() == [[0, 0, 1, 1]]
    y, _ = gradient(x, pool_type="avg", **how)
    np.testing.assert_allclose(y.ravel() * 9, [-16, -33, -28, -69, -117, -87], rtol=1e-5)


def test_averages_divide_by_the_kernel():
    y, dx = gradient(np.ones((1, 1, 4, 5)), kernel=(3, 3), stride=(2, 2), pool_type="avg", pooling_convention="full")
    np.testing.assert_allclose(y[0, 0], [[1, 1], [2 / 3, 2 / 3]], rtol=1e-6)
    np.testing.assert_allclose(dx[0, 0, 0], [1 / 9, 1 / 9, 2 / 9, 1 / 9, 1 / 9], rtol=1e-6)


def test_all_equal_maxima_get_the_gradient():
    _, dx = gradient(np.ones((1, 1, 3, 3)), [[[[1, 2], [3, 4]]]], kernel=(2, 2))
    assert dx[0, 0].tolist() == [[1, 3, 2], [4, 10, 6], [3, 7, 4]]


def test_a_window_beyond_the_data():
    y, _ = gradient(np.ones((1, 1, 5, 6)), kernel=(3, 2), stride=(2, 3), pooling_convention="full")
    assert y.shape == (1, 1, 2, 3) and y[0, 0, 0].tolist() == [1, 1, -np.inf]
    y, _ = gradient(np.ones((1, 1, 5, 6)), kernel=(3, 2), stride=(2, 3), pooling_convention="full", pool_type="sum")
    assert y[0, 0, 0].tolist() == [6, 6, 0]


@pytest.mark.parametrize("kind", ["max", "avg", "sum"])
def test_everything_in_one_window(kind):
    x = wave((2, 3, 4, 5), 1)
    y, _ = gradient(x, global_pool=True, pool_type=kind, kernel=(2, 2), pad=(1, 1))
    np.testing.assert_allclose(
        y[:, :, 0, 0], {"max": x.max, "avg": x.mean, "sum": x.sum}[kind]((2, 3)), rtol=1e-4, atol=1e-5
    )


def test_convolution_agrees_with_its_successor():
    x, w, b = (mx.nd.array(wave(s, i)) for i, s in enumerate([(2, 4, 5, 6), (6, 2, 3, 2), (6,)]))
    how = {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 1), "num_filter": 6, "num_group": 2}
    np.testing.assert_allclose(
        mx.nd.Convolution_v1(x, w, b, **how).asnumpy(), mx.nd.Convolution(x, w, b, **how).asnumpy(), rtol=1e-5
    )
    check_grads(lambda x, w, b: mx.nd.Convolution_v1(x, w, b, **how), [a.asnumpy() for a in (x, w, b)])


def test_batch_statistics():
    x, gamma, beta = mx.nd.array(wave((4, 3, 2), 1)), mx.nd.array([0.5, 2, 1]), mx.nd.array([0.1, 0.2, 0.3])
    mean, var = mx.nd.zeros((3,)), mx.nd.ones((3,))
    gamma.attach_grad()
    with mx.autograd.record():
        y, m, v = mx.nd.BatchNorm_v1(
            x, gamma, beta, mean, var, fix_gamma=False, output_mean_var=True, momentum=0.75, eps=0.01
        )
    data = x.asnumpy()
    np.testing.assert_allclose(m.asnumpy(), data.mean((0, 2)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(v.asnumpy(), data.var((0, 2)), rtol=1e-5)
    assert not mean.asnumpy().any()
    z = (data - data.mean((0, 2), keepdims=True)) / np.sqrt(data.var((0, 2), keepdims=True) + 0.01)
    np.testing.assert_allclose(
        y.asnumpy(), z * np.array([[0.5], [2], [1]]) + np.array([[0.1], [0.2], [0.3]]), rtol=1e-4, atol=1e-5
    )
    y.backward(y)
    np.testing.assert_allclose(gamma.grad.asnumpy(), (z * y.asnumpy()).sum((0, 2)), rtol=1e-4)
    np.testing.assert_allclose(mean.asnumpy(), 0.25 * data.mean((0, 2)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(var.asnumpy(), 0.75 + 0.25 * data.var((0, 2)), rtol=1e-5)
    with mx.autograd.predict_mode():
        _, m, v = mx.nd.BatchNorm_v1(x, gamma, beta, mean, var, output_mean_var=True)
    assert m.asnumpy().tolist() == mean.asnumpy().tolist() and v.asnumpy().tolist() == var.asnumpy().tolist()


def test_shapes(shapes, dtypes):
    assert shapes("Pooling_v1", [(-1, 3, 8, 9)], [(2, 3, -1, -1)], kernel=(3, 2)) == ([(2, 3, 8, 9)], [(2, 3, 6, 8)])
    assert shapes("Pooling_v1", [(2, 3, 8, 9, 4)], kernel=(3, 2, 2), pooling_convention="full")[1] == [(2, 3, 6, 8, 3)]
    assert shapes("Pooling_v1", [(2, 3, 8, -1)], global_pool=True)[1] == [(2, 3, 1, 1)]
    how = {"kernel": (3, 2), "num_filter": 4}
    assert shapes("Convolution_v1", [(2, 3, 8, 9), None, None], **how) == (
        [(2, 3, 8, 9), (4, 3, 3, 2), (4,)],
        [(2, 4, 6, 8)],
    )
    data = (2, 3, 8, 9)
    assert shapes("BatchNorm_v1", [None] * 5, [data, None, None]) == ([data, *[(3,)] * 4], [data, (3,), (3,)])
    assert dtypes("BatchNorm_v1", ["float16", *[None] * 4])[1] == ["float16", "float32", "float32"]


@pytest.mark.parametrize(
    ("name", "ins", "params", "says"),
    [
        ("Pooling_v1", [(2, 3, 8)], {"kernel": (2,)}, "must have batch, channels and 2 or 3 spatial dimensions"),
        ("Pooling_v1", [(2, 3, 8, 9)], {"kernel": (2,)}, r"kernel \(2,\) must have 2 numbers"),
        (
            "Pooling_v1",
            [(2, 3, 4, 4)],
            {"kernel": (7, 7)},
            "the kernel covers 7 in spatial dimension 0, the padded data has only 4",
        ),
        (
            "Pooling_v1",
            [(2, 3, 4, 4)],
            {"kernel": (2, 2), "pool_type": "lp"},
            "'pool_type' must be one of avg, max, sum",
        ),
        (
            "Pooling_v1",
            [(2, 3, 4, 4)],
            {"kernel": (2, 2), "pooling_convention": "same"},
            "'pooling_convention' must be one of full, valid",
        ),
        (
            "Pooling_v1",
            [(2, 3, 4, 4)],
            {"kernel": (2, 2), "stride": (0, 1)},
            r"stride \(0, 1\) must be 2 numbers of at least 1",
        ),
        (
            "Convolution_v1",
            [(2, 3, 8), None, None],
            {"kernel": (3,), "num_filter": 4},
            "must have 2 or 3 numbers; Convolution also takes 1",
        ),
        (
            "Convolution_v1",
            [(2, 3, 8, 8), None, None],
            {"kernel": (3, 3), "num_filter": 4, "layout": "NCW"},
            "'layout' must be one of",
        ),
        ("Convolution_v1", [(2, 3, 8, 8), None, None], {"kernel": (3, 3)}, "needs parameter 'num_filter'"),
        ("BatchNorm_v1", [(4,), *[None] * 4], {}, "must have batch and channels"),
        ("BatchNorm_v1", [(4, 3), (2,), *[None] * 3], {}, r"gamma is \(2,\) where \(3,\) is expected"),
        ("BatchNorm_v1", [(4, 3), *[None] * 4], {"axis": 1}, "has no parameter 'axis'"),
    ],
)
def test_refusals(shapes, name, ins, params, says):
    with pytest.raises(mx.MXNetError, match=f"operator {name}.*{says}"):
        shapes(name, ins, **params)


def test_files_are_mxnets():
    s = mx.sym.BatchNorm_v1(mx.sym.var("x"), output_mean_var=True, name="b")
    assert s.list_arguments() == ["x", "b_gamma", "b_beta"] and s.list_auxiliary_states() == [
        "b_moving_mean",
        "b_moving_var",
    ]
    assert s.list_outputs() == ["b_output", "b_mean", "b_var"]
    given = {"output_mean_var": "True"}
    nodes = json.loads(s.tojson())["nodes"]
    assert [(n["op"], n["name"], n.get("attrs"), n["inputs"]) for n in nodes] == [
        ("null", "x", None, []),
        ("null", "b_gamma", given, []),
        ("null", "b_beta", given, []),
        ("null", "b_moving_mean", {"__init__": '["zero", {}]', **given}, []),
        ("null", "b_moving_var", {"__init__": '["one", {}]', **given}, []),
        ("BatchNorm_v1", "b", given, [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 1], [4, 0, 1]]),
    ]
    s = mx.sym.Convolution_v1(mx.sym.var("x"), kernel=(3, 2), num_filter=4, no_bias=True, name="c")
    assert s.list_arguments() == ["x", "c_weight"]


@pytest.mark.parametrize(
    ("name", "n", "params"),
    [
        ("BatchNorm_v1", 5, {}),
        ("Pooling_v1", 1, {"kernel": (2, 2)}),
        ("Convolution_v1", 3, {"kernel": (2, 2), "num_filter": 1}),
        ("_contrib_SyncBatchNorm", 5, {"key": "k"}),
        ("_contrib_BatchNormWithReLU", 5, {}),
        ("IdentityAttachKLSparseReg", 2, {}),
    ],
)
def test_whole_numbers_are_refused(dtypes, name, n, params):
    with pytest.raises(TypeError, match=f"operator {name}: int32 numbers are whole"):
        dtypes(name, ["int32", *[None] * (n - 1)], **params)
