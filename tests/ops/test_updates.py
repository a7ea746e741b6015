"""Optimizer updates beyond their samples: row-sparse gradients, many weights, states, decaying rates."""

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import tables

nd = mx.nd
GRAD = np.array([[1, 2], [0, 0], [3, 4], [0, 0]], np.float32)
USUAL = dict(lr=0.5, rescale_grad=0.5, clip_gradient=1.5, wd=0.25)

#: operator, lazy, weight and states afterwards, from MXNet 1.9.1, from ones and `GRAD`
MXNET = [
    ("sgd_update", True, [[0.625, 0.375, 1, 1, 0.125, 0.125, 1, 1]]),
    ("sgd_update", False, [[0.625, 0.375, 0.875, 0.875, 0.125, 0.125, 0.875, 0.875]]),
    ("sgd_mom_update", True, [[0.625, 0.375, 1, 1, 0.125, 0.125, 1, 1], [-0.375, -0.625, 1, 1, -0.875, -0.875, 1, 1]]),
    (
        "sgd_mom_update",
        False,
        [
            [0.625, 0.375, 0.875, 0.875, 0.125, 0.125, 0.875, 0.875],
            [-0.375, -0.625, -0.125, -0.125, -0.875, -0.875, -0.125, -0.125],
        ],
    ),
    (
        "adam_update",
        True,
        [
            [0.5124, 0.4876, 1, 1, 0.4753, 0.4753, 1, 1],
            [0.975, 1.025, 1, 1, 1.05, 1.05, 1, 1],
            [1, 1.001, 1, 1, 1.001, 1.001, 1, 1],
        ],
    ),
    (
        "adam_update",
        False,
        [
            [0.5124, 0.4876, 0.5373, 0.5373, 0.4753, 0.4753, 0.5373, 0.5373],
            [0.975, 1.025, 0.925, 0.925, 1.05, 1.05, 0.925, 0.925],
            [1, 1.001, 0.999, 0.999, 1.001, 1.001, 0.999, 0.999],
        ],
    ),
]


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
@pytest.mark.parametrize("name, lazy, expected", MXNET)
def test_row_sparse_gradients(name, lazy, expected, stype):
    weight, *states = [nd.ones((4, 2)).tostype(stype) for _ in expected]
    getattr(nd, name)(weight, nd.array(GRAD).tostype("row_sparse"), *states, out=weight, lazy_update=lazy, **USUAL)
    assert weight.stype == stype and all(s.stype == stype for s in states)
    for got, want in zip([weight, *states], expected):
        np.testing.assert_allclose(got.asnumpy().ravel(), want, rtol=0, atol=6e-4)


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
@pytest.mark.parametrize("name, lazy, expected", MXNET)
def test_row_sparse_gradients_are_the_dense_ones_where_there_are_rows(name, lazy, expected, stype):
    """From weights and states that are all different."""
    starts = [np.random.RandomState(i).uniform(0.5, 2, (4, 2)) for i in range(len(expected))]
    weight, *states = [nd.array(a).tostype(stype) for a in starts]
    getattr(nd, name)(weight, nd.array(GRAD).tostype("row_sparse"), *states, out=weight, lazy_update=lazy, **USUAL)
    dense = [nd.array(a) for a in starts]
    getattr(nd, name)(dense[0], nd.array(GRAD), *dense[1:], out=dense[0], **USUAL)
    for got, want, start in zip([weight, *states], dense, starts):
        want = want.asnumpy()
        if lazy:
            want[[1, 3]] = start[[1, 3]]
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-6)


def test_row_sparse_adagrad():
    grad = nd.array(GRAD).tostype("row_sparse")
    common = dict(lr=0.5, rescale_grad=0.5, epsilon=0.25, clip_gradient=1.5)
    for stype in ("default", "row_sparse"):
        weight, history = nd.ones((4, 2)).tostype(stype), nd.ones((4, 2)).tostype(stype)
        nd.sparse.adagrad_update(weight, grad, history, out=weight, **common)
        np.testing.assert_allclose(
            weight.asnumpy(), [[0.795876, 0.666667], [1, 1], [0.599108, 0.599108], [1, 1]], rtol=1e-5
        )
        np.testing.assert_allclose(history.asnumpy(), [[1.25, 2], [1, 1], [3.25, 3.25], [1, 1]])
        weight, history = nd.ones((4, 2)).tostype(stype), nd.ones((4, 1)).tostype(stype)
        nd.contrib.group_adagrad_update(weight, grad, history, out=weight, **common)
        np.testing.assert_allclose(
            weight.asnumpy(), [[0.817426, 0.634852], [1, 1], [0.599108, 0.599108], [1, 1]], rtol=1e-5
        )
        np.testing.assert_allclose(history.asnumpy(), [[1.625], [1], [3.25], [1]])


def test_a_gradient_without_rows_changes_nothing():
    weight, mom = nd.ones((4, 2)), nd.ones((4, 2))
    nd.sgd_mom_update(weight, nd.sparse.zeros("row_sparse", (4, 2)), mom, out=weight, momentum=0.9, **USUAL)
    assert (weight.asnumpy() == 1).all() and (mom.asnumpy() == 1).all()


def test_many_weights_at_once_are_the_single_updates():
    rs = np.random.RandomState(0)
    shapes = [(3, 4), (5,), (2, 2, 2)]
    values = [[rs.randn(*s).astype(np.float32) for s in shapes] for _ in range(3)]
    weights, grads, moms = [[nd.array(a) for a in v] for v in values]
    lrs, wds = (0.1, 0.2, 0.3), (0.0, 0.1, 0.2)
    nd.multi_sgd_mom_update(
        *[x for xs in zip(weights, grads, moms) for x in xs],
        out=weights,
        lrs=lrs,
        wds=wds,
        momentum=0.9,
        rescale_grad=0.5,
        num_weights=3,
    )
    for i in range(3):
        w, g, m = (nd.array(v[i]) for v in values)
        nd.sgd_mom_update(w, g, m, out=w, lr=lrs[i], wd=wds[i], momentum=0.9, rescale_grad=0.5)
        np.testing.assert_allclose(weights[i].asnumpy(), w.asnumpy(), rtol=1e-6)
        np.testing.assert_allclose(moms[i].asnumpy(), m.asnumpy(), rtol=1e-6)


def test_one_weight_is_the_default():
    w = nd.ones((2,))
    nd.multi_sgd_update(w, nd.ones((2,)), out=w, lrs=(0.25,), wds=(0,))
    assert w.asnumpy().tolist() == [0.75, 0.75]


def test_too_few_rates():
    w = nd.ones((2,))
    with pytest.raises(mx.MXNetError, match="lrs must hold 2 numbers, one for each of num_weights, got 1"):
        nd.multi_sgd_update(w, w, w, w, lrs=(0.1,), wds=(0,), num_weights=2)


def test_a_missing_rate():
    with pytest.raises(mx.MXNetError, match="operator sgd_update needs parameter 'lr'"):
        nd.sgd_update(nd.ones((2,)), nd.ones((2,)))


def test_a_decaying_rate_fills_no_cache():
    op = tables.ops.get("adam_update")
    arrays = [nd.ones((2,)) for _ in range(4)]
    for i in range(50):
        nd.adam_update(*arrays, out=arrays[0], lr=0.1 / (i + 1), wd=1e-4 * i)
        if i == 0:
            before = len(op.parser.cache), len(op.bound)
    assert (len(op.parser.cache), len(op.bound)) == before


@pytest.mark.parametrize("factor", [0.0, float("inf"), float("nan")])
def test_adamw_leaves_a_bad_step_out(factor):
    weight, mean, var = nd.ones((3,)), nd.ones((3,)), nd.ones((3,))
    nd.contrib.adamw_update(weight, nd.ones((3,)), mean, var, factor, lr=0.1, eta=1.0, out=weight)
    assert all((x.asnumpy() == 1).all() for x in (weight, mean, var))


def test_lists_for_adamw_and_lamb():
    def make(dtype="float32"):
        return [nd.ones((3,), dtype=dtype), nd.ones((2, 2), dtype=dtype)]

    w, g, m, v = make(), make(), make(), make()
    nd.contrib.multi_adamw_update(w, g, m, v, 1.0, lrs=(0.1, 0.1), wds=(0, 0), etas=(1, 1), out=w)
    one = nd.ones((3,))
    nd.contrib.adamw_update(one, nd.ones((3,)), nd.ones((3,)), nd.ones((3,)), nd.ones((1,)), lr=0.1, eta=1.0, out=one)
    np.testing.assert_allclose(w[0].asnumpy(), one.asnumpy())
    w16, w32 = make("float16"), make()
    nd.contrib.multi_mp_lamb_update(
        w16, make("float16"), make(), make(), w32, (1, 2), lrs=(0.1, 0.1), wds=(0, 0), out=w16
    )
    w = make()
    nd.contrib.multi_lamb_update(w, make(), make(), make(), (1, 2), lrs=(0.1, 0.1), wds=(0, 0), out=w)
    for a, b, c in zip(w16, w32, w):
        np.testing.assert_allclose(b.asnumpy(), c.asnumpy(), rtol=1e-6)
        assert a.dtype == np.float16 and (a.asnumpy() == b.asnumpy().astype(np.float16)).all()
    with pytest.raises(mx.MXNetError, match=r"one length, got \[2, 1, 2, 2\]"):
        nd.contrib.multi_lamb_update(w, [w[0]], w, w, (1, 2), lrs=(0.1, 0.1), wds=(0, 0))


def test_mp_lamb_keeps_the_master_copy():
    w32 = nd.array([1.0, 2.0])
    w16 = w32.astype("float16")
    nd.mp_lamb_update_phase2(w16, nd.array([0.5, -0.25]), nd.array([2.0]), nd.array([4.0]), w32, lr=0.25, out=w16)
    np.testing.assert_allclose(w32.asnumpy(), [0.9375, 2.03125])
    assert w16.asnumpy().tolist() == [0.9375, 2.03125]


@pytest.mark.parametrize("n", [1, 2000])
@pytest.mark.parametrize("out", ["weight", "other", None])
def test_nesterov_does_not_depend_on_where_the_weight_goes(out, n):
    """The numbers are MXNet's with ``out=weight``."""
    weight, grad, mom, other = [nd.array([*v] * n) for v in ((1.0, 2), (3, 4), (5, 6), (0, 0))]
    y = nd.nag_mom_update(
        weight, grad, mom, lr=0.1, momentum=0.9, wd=0.1, out={"weight": weight, "other": other}.get(out)
    )
    np.testing.assert_allclose(y.asnumpy(), [4.461, 6.062] * n, rtol=1e-6)
    np.testing.assert_allclose(mom.asnumpy(), [4.15539, 4.93938] * n, rtol=1e-6)
    np.testing.assert_array_equal(weight.asnumpy(), y.asnumpy() if out == "weight" else [1, 2] * n)


def test_reset_arrays():
    a, b = nd.ones((2,)), nd.ones((3, 1))
    assert nd.reset_arrays(a, b, num_arrays=2) == []
    assert not a.asnumpy().any() and not b.asnumpy().any()
