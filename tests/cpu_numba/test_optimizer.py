"""Optimizer updates against formulas that were checked with MXNet 1.9.1 (to 1e-6, with and without clipping)."""

from types import SimpleNamespace

import numpy as np
import pytest

import mxcore as mx
from mxcore.plugin import RowSparse, find_op
from mxcore_cpu.kernels.optimizer import UPDATES, update

rng = np.random.default_rng(0)
N = 300
LR, MOMENTUM, BETA1, BETA2, EPS, T = 0.05, 0.9, 0.9, 0.99, 1e-3, 3


def clip(x, c):
    return np.clip(x, -c, c) if c >= 0 else x


def sgd(w, g, wd, rescale, c):
    return [w - LR * (clip(rescale * g, c) + wd * w)]


def sgd_mom(w, g, m, wd, rescale, c):
    m = MOMENTUM * m - LR * (clip(rescale * g, c) + wd * w)
    return [w + m, m]


def nag_mom(w, g, m, wd, rescale, c):
    g = clip(rescale * g, c)
    step = MOMENTUM * m - LR * (g + wd * w)
    new = w + MOMENTUM * step - LR * (g + wd * w)
    return [new, MOMENTUM * m - LR * (g + wd * new)]


def adam(w, g, m, v, wd, rescale, c):
    g = clip(rescale * g + wd * w, c)
    m, v = BETA1 * m + (1 - BETA1) * g, BETA2 * v + (1 - BETA2) * g * g
    return [w - LR * m / (np.sqrt(v) + EPS), m, v]


def adamw(w, g, m, v, wd, rescale, c):
    g = clip(rescale * g, c)
    m, v = BETA1 * m + (1 - BETA1) * g, BETA2 * v + (1 - BETA2) * g * g
    return [w - 0.7 * (LR * m / (np.sqrt(v) + EPS) + wd * w), m, v]


def rmsprop(w, g, n, wd, rescale, c):
    g = clip(rescale * g + wd * w, c)
    n = BETA1 * n + (1 - BETA1) * g * g
    return [clip(w - LR * g / np.sqrt(n + EPS), 0.5), n]


def rmspropalex(w, g, n, a, d, wd, rescale, c):
    g = clip(rescale * g + wd * w, c)
    n, a = BETA1 * n + (1 - BETA1) * g * g, BETA1 * a + (1 - BETA1) * g
    d = MOMENTUM * d - LR * g / np.sqrt(n - a * a + EPS)
    return [w + d, n, a, d]


def ftrl(w, g, z, n, wd, rescale, c):
    g = clip(rescale * g, c)
    z = z + g - (np.sqrt(n + g * g) - np.sqrt(n)) * w / LR
    n = n + g * g
    return [(np.sign(z) * 0.3 - z) / ((1.5 + np.sqrt(n)) / LR + wd) * (abs(z) > 0.3), z, n]


def ftml(w, g, d, v, z, wd, rescale, c):
    g = clip(rescale * g + wd * w, c)
    v = BETA2 * v + (1 - BETA2) * g * g
    now = (1 - BETA1**T) / LR * (np.sqrt(v / (1 - BETA2**T)) + EPS)
    z = BETA1 * z + (1 - BETA1) * g - (now - BETA1 * d) * w
    return [-z / now, now, v, z]


def signsgd(w, g, wd, rescale, c):
    return [(1 - LR * wd) * w - LR * np.sign(g)]


def signum(w, g, m, wd, rescale, c):
    m = MOMENTUM * m - (1 - MOMENTUM) * (clip(rescale * g, c) + wd * w)
    return [(1 - LR * 0.2) * w + LR * np.sign(m), m]


def adagrad(w, g, h, wd, rescale, c):
    g = clip(rescale * g, c)
    return [w - LR * (g / np.sqrt(h + g * g + EPS) + wd * w), h + g * g]


BETAS = {"lr": LR, "beta1": BETA1, "beta2": BETA2, "epsilon": EPS}
CASES = {
    "sgd_update": (sgd, {"lr": LR}),
    "sgd_mom_update": (sgd_mom, {"lr": LR, "momentum": MOMENTUM}),
    "nag_mom_update": (nag_mom, {"lr": LR, "momentum": MOMENTUM}),
    "adam_update": (adam, BETAS),
    "_adamw_update": (adamw, {**BETAS, "eta": 0.7}),
    "rmsprop_update": (rmsprop, {"lr": LR, "gamma1": BETA1, "epsilon": EPS, "clip_weights": 0.5}),
    "rmspropalex_update": (rmspropalex, {"lr": LR, "gamma1": BETA1, "gamma2": MOMENTUM, "epsilon": EPS}),
    "ftrl_update": (ftrl, {"lr": LR, "lamda1": 0.3, "beta": 1.5}),
    "ftml_update": (ftml, {**BETAS, "t": T}),
    "signsgd_update": (signsgd, {"lr": LR}),
    "signum_update": (signum, {"lr": LR, "momentum": MOMENTUM, "wd_lh": 0.2}),
    "_sparse_adagrad_update": (adagrad, {"lr": LR, "epsilon": EPS}),
}


def test_every_update_is_tested():
    assert set(CASES) | {"lamb_update_phase1"} == set(UPDATES)


@pytest.mark.parametrize("clipping", [-1.0, 0.8])
@pytest.mark.parametrize("name", CASES)
def test_update(name, clipping):
    formula, numbers = CASES[name]
    states = len(UPDATES[name].arrays.split()) - 2
    w, g = rng.standard_normal(N), rng.standard_normal(N) * 3
    s = [rng.uniform(1, 2, N), rng.uniform(0.1, 0.5, N), rng.standard_normal(N)][:states]
    expected = formula(w, g, *s, 0.1, 0.5, clipping)
    key = "clip_grad" if name == "ftml_update" else "clip_gradient"
    decay = {} if "wd" not in UPDATES[name].numbers else {"wd": 0.1}
    for parts in (1, 3):
        kernel = UPDATES[name].kernel
        kernel.threshold, before = (1 if parts > 1 else 1 << 40), kernel.threshold
        arrays = [w.copy(), g, *(a.copy() for a in s)]
        update(name, *arrays, **numbers, **decay, rescale_grad=0.5, **{key: clipping})
        kernel.threshold = before
        for got, want in zip([arrays[0], *arrays[2:]], expected):
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("correction", [0.0, 1.0])
def test_lamb_phase1(correction):
    w, g, m = (rng.standard_normal(N) * scale for scale in (1, 3, 1))
    v = rng.uniform(1, 2, N)
    q = clip(0.5 * g, 0.8)
    mean, var = BETA1 * m + (1 - BETA1) * q, BETA2 * v + (1 - BETA2) * q * q
    c1, c2 = (1 - BETA1**T, 1 - BETA2**T) if correction else (1, 1)
    out = np.empty(N)
    update(
        "lamb_update_phase1",
        out,
        g,
        m,
        v,
        w,
        beta1=BETA1,
        beta2=BETA2,
        epsilon=EPS,
        t=T,
        bias_correction=correction,
        wd=0.1,
        rescale_grad=0.5,
        clip_gradient=0.8,
    )
    np.testing.assert_allclose(out, mean / c1 / (np.sqrt(var / c2) + EPS) + 0.1 * w)
    np.testing.assert_allclose(m, mean)
    np.testing.assert_allclose(v, var)


def test_nan_and_infinity_in_a_clipped_gradient():
    w = np.ones(3, "f4")
    update("sgd_update", w, np.array([np.nan, np.inf, -np.inf], "f4"), lr=1.0, clip_gradient=1.0)
    assert np.isnan(w[0]) and w[1:].tolist() == [0, 2]


def test_a_missing_number_is_named_and_views_are_updated():
    w, g = np.zeros((4, 3)).T, np.ones((3, 4))
    update("sgd_update", w, g, lr=1.0)
    assert (w == -1).all()
    with pytest.raises(TypeError, match="lr"):
        update("sgd_update", w, g)


@pytest.mark.parametrize("rows", [[], [0], [1, 4, 5]])
@pytest.mark.parametrize("name, states", [("sgd_update", 0), ("sgd_mom_update", 1), ("adam_update", 2)])
def test_rows_of_a_gradient_move_rows_of_a_dense_weight(name, states, rows):
    rng, shape = np.random.default_rng(0), (6, 3)
    dense = [np.abs(rng.standard_normal(shape)).astype("f4") for _ in range(states + 1)]
    values = rng.standard_normal((len(rows), 3)).astype("f4")
    numbers = {"lr": 0.1, "wd": 0.01, "rescale_grad": 0.5, "clip_gradient": 0.4}
    moved = [a[rows] for a in dense]
    update(name, moved[0], values, *moved[1:], **numbers)
    weight, *kept = arrays = [mx.nd.array(a) for a in dense]
    grad = mx.nd.sparse.row_sparse_array((values, rows), shape=shape)
    fresh = getattr(mx.nd, name)(weight, grad, *[k.copy() for k in kept], **numbers)
    getattr(mx.nd, name)(weight, grad, *kept, out=weight, **numbers)
    for got, old, new in zip((fresh, *arrays), (dense[0], *dense), (moved[0], *moved)):
        old = old.copy()
        old[rows] = new
        np.testing.assert_allclose(got.asnumpy(), old, rtol=1e-6)


LAZY = {
    "sgd_update": {"wd": 0.1},
    "sgd_mom_update": {"wd": 0.1, "momentum": 0.9},
    "adam_update": {"wd": 0.1},
    "ftrl_update": {"wd": 0.1},
    "_sparse_adagrad_update": {"wd": 0.1},
    "_contrib_group_adagrad_update": {},
}


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
@pytest.mark.parametrize("clipping", [-1.0, 0.8])
@pytest.mark.parametrize("name", LAZY)
def test_row_sparse_gradients_move_their_rows_in_place(name, clipping, stype):
    """As the rule does that is written in array functions; only the first step copies a row-sparse weight."""
    if (name, stype) == ("ftrl_update", "default"):
        pytest.skip("as in MXNet, it moves all rows of a dense weight")
    op = find_op(name)
    states = len(op.mutates)
    rows, first = np.array([0, 3, 4]), [rng.uniform(0.5, 2, (6, 4)) for _ in range(1 + states)]
    if "group" in name:
        first[1] = first[1][:, :1]
    arrays = [mx.nd.array(a, dtype="float64").tostype(stype) for a in first]
    want = [RowSparse(a.shape, np.arange(6), a.copy()) for a in first]
    found = [a._data for a in arrays]
    for step in range(3):
        values = rng.standard_normal((3, 4))
        grad = mx.nd.sparse.row_sparse_array((mx.nd.array(values, dtype="float64"), rows), shape=(6, 4))
        call = {"lr": 0.1 / (step + 1), "rescale_grad": 0.5, "clip_gradient": clipping, **LAZY[name]}
        mx.nd._internal.__getattr__(name)(arrays[0], grad, *arrays[1:], out=arrays[0], **call)
        want = op.body(SimpleNamespace(xp=np), op.parse(call), want[0], grad._data, *want[1:])
        for a, b in zip(arrays, want):
            np.testing.assert_allclose(a.asnumpy(), b.todense(np), rtol=1e-10)
        if step == 0:
            found = [getattr(a._data, "memory", a._data) for a in arrays]
        assert all(getattr(a._data, "memory", a._data) is b for a, b in zip(arrays, found))


def test_a_held_weight_is_read_without_a_copy_and_written_as_any_other():
    w = mx.nd.array(np.eye(3)).tostype("row_sparse")
    grad = mx.nd.sparse.row_sparse_array((mx.nd.ones((1, 3)), [1]), shape=(3, 3))
    mx.nd.sparse.sgd_update(w, grad, lr=0.5, out=w)
    x = mx.nd.sparse.csr_matrix(mx.nd.array([[0, 2, 0]]))
    assert mx.nd.dot(x, w).asnumpy().tolist() == [[-1, 1, -1]]
    assert mx.nd.Embedding(mx.nd.array([1]), w, input_dim=3, output_dim=3).asnumpy().tolist() == [[-0.5, 0.5, -0.5]]
    w[:] = 7
    assert w.asnumpy().min() == 7 and w.indices.asnumpy().tolist() == [0, 1, 2]
    mx.nd.sparse.sgd_update(w, grad, lr=0.5, out=w)
    assert w.asnumpy()[:, 0].tolist() == [7, 6.5, 7]
