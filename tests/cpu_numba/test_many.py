"""Updates of many weights in one call against the rules for one weight, which have tests of their own."""

import weakref

import numpy as np
import pytest

import mxcore as mx
from mxcore_cpu.kernels import many
from mxcore_cpu.kernels.optimizer import update

rng = np.random.default_rng(0)
SHAPES = [(3, 5), (1,), (0, 4), (many._BLOCK * 2 + 7,), (many._BLOCK,)]
LRS, WDS, ETAS = [0.1, 0.2, 0.3, 0.05, 0.25], [0.0, 0.1, 0.2, 0.01, 0.5], [1.0, 0.5, 2.0, 0.25, 0.75]
COMMON = {"rescale_grad": 0.5, "clip_gradient": 0.4}


@pytest.fixture(params=[1, 3], autouse=True)
def workers(request, monkeypatch):
    monkeypatch.setattr(many._LEAST, "workers", lambda work: request.param)


def weights(states, dtype, mixed=False):
    """For each shape: weight, gradient, states and, if mixed, the master copy."""
    groups = []
    for shape in SHAPES:
        weight = rng.standard_normal(shape)
        group = [weight, rng.standard_normal(shape), *(rng.random(shape) + 0.1 for _ in range(states))]
        if mixed:
            groups.append([a.astype("f2") for a in group[:2]] + [a.astype("f4") for a in [*group[2:], weight]])
        else:
            groups.append([a.astype(dtype) for a in group])
    return groups


#: rule -> (states, operator for one weight, numbers of its own)
ONE = {
    "sgd": (0, "sgd_update", {}),
    "sgd_mom": (1, "sgd_mom_update", {"momentum": 0.9}),
    "nag_mom": (1, "nag_mom_update", {"momentum": 0.9}),
    "adam": (2, "adam_update", {"beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3}),
    "adamw": (2, "_adamw_update", {"beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3}),
}


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
@pytest.mark.parametrize("rule", ONE)
def test_one_by_one(rule, dtype):
    states, one, numbers = ONE[rule]
    mixed = dtype == "f2"
    groups = weights(states, dtype, mixed)
    expected = [[a.copy() for a in g] for g in groups]
    for g, lr, wd, eta in zip(expected, LRS, WDS, ETAS):
        arrays = [g[-1], g[1].astype("f4"), *g[2:-1]] if mixed else g
        update(one, *arrays, lr=lr, wd=wd, eta=eta, **numbers, **COMMON)
        if mixed:
            g[0] = g[-1].astype("f2")
    more = {} if rule in ("sgd", "adamw") else {"nesterov": rule == "nag_mom"}
    name = "sgd_mom" if rule == "nag_mom" else rule
    many.move(name, groups, {"lr": LRS, "wd": WDS, "eta": ETAS}, **numbers, **COMMON, **more)
    for got, wanted in zip(groups, expected):
        for a, b in zip(got, wanted):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("bounds", [(-1.0, -1.0), (0.5, 1.5)])
def test_lamb(mixed, bounds):
    groups = weights(2, "f4", mixed)
    groups[1][-1 if mixed else 0][:] = 0  # a weight without a norm moves by the plain rate
    steps, low, high = [1, 2, 3, 4, 5], *bounds
    numbers = {"beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3}
    expected = [[a.astype("f8") for a in (g[-1] if mixed else g[0], *g[1:4])] for g in groups]
    for (w, g, mean, var), lr, wd, t in zip(expected, LRS, WDS, steps):
        way = np.empty_like(w)
        update("lamb_update_phase1", way, g, mean, var, w, t=t, wd=wd, **numbers, **COMMON)
        r1, r2 = np.linalg.norm(w), np.linalg.norm(way)
        r1 = min(max(r1, low), high) if low >= 0 else r1
        w -= lr * (r1 / r2 if r1 and r2 else 1.0) * way
    many.lamb(groups, LRS, WDS, steps, **numbers, **COMMON, bias_correction=True, lower_bound=low, upper_bound=high)
    for got, wanted in zip(groups, expected):
        np.testing.assert_allclose(got[-1] if mixed else got[0], wanted[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got[3], wanted[3], rtol=1e-5)
        if mixed:
            np.testing.assert_array_equal(got[0], got[-1].astype("f2"))


def test_float16_is_rounded_as_numpy_rounds_it():
    every = np.arange(1 << 16, dtype=np.uint16).view("f2")
    every = every[~np.isnan(every)]
    weight, master = np.empty(every.size, "f2"), np.zeros(every.size, "f4")
    with np.errstate(invalid="ignore"):  # 0 * inf
        many.move("sgd", [(weight, every, master)], {"lr": [-1.0], "wd": [0.0]}, rescale_grad=1.0, clip_gradient=-1.0)
    np.testing.assert_array_equal(weight, every)
    between = (rng.standard_normal(20000) * 10.0 ** rng.integers(-9, 6, 20000)).astype("f4")
    weight, master = np.empty(between.size, "f2"), between.copy()
    many.move(
        "sgd",
        [(weight, np.zeros(between.size, "f2"), master)],
        {"lr": [0.0], "wd": [0.0]},
        rescale_grad=1.0,
        clip_gradient=-1.0,
    )
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(weight, between.astype("f2"))


def test_scattered_arrays():
    base = rng.standard_normal((3, 40))
    weight, mom, grad = base[0, ::2], base[1, ::2], base[2, 1::2]
    expected = [weight.copy(), grad.copy(), mom.copy()]
    update("sgd_mom_update", *expected, lr=0.1, momentum=0.9)
    many.move(
        "sgd_mom",
        [(weight, grad, mom)],
        {"lr": [0.1], "wd": [0.0]},
        nesterov=False,
        momentum=0.9,
        rescale_grad=1.0,
        clip_gradient=-1.0,
    )
    for a, b in zip((weight, grad, mom), expected):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "name, given",
    [
        ("multi_sgd_update", {"lrs": [0.1], "wds": [0.0, 0.0]}),
        ("multi_sgd_mom_update", {"lrs": [0.1, 0.1], "wds": [0.0]}),
    ],
)
def test_too_few_rates(name, given):
    move, arrays = getattr(mx.nd, name), [mx.nd.ones(3) for _ in range(4 if name == "multi_sgd_update" else 6)]
    move(*arrays, num_weights=2, lrs=[0.1, 0.1], wds=[0.0, 0.0])  # rates are not part of what is planned for the arrays
    with pytest.raises(mx.MXNetError, match=f"{name}.*must hold 2 numbers.*got 1"):
        move(*arrays, num_weights=2, **given)


@pytest.mark.parametrize("factor", [0.0, np.nan, np.inf])
def test_a_step_of_adamw_is_left_out(factor):
    arrays = [mx.nd.array([1.0, 2.0]) for _ in range(4)]
    out = mx.nd._internal._adamw_update(*arrays, mx.nd.array([factor]), lr=0.1, eta=1.0)
    assert [a.asnumpy().tolist() for a in (out, *arrays)] == [[1.0, 2.0]] * 5


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_of_squares(dtype):
    arrays = [np.random.default_rng(i).standard_normal(n).astype(dtype) for i, n in enumerate((3, 0, 20_000, 1, 0))] + [
        np.ones((300, 200), dtype).T
    ]
    out = np.full(len(arrays), np.nan)
    many.sums_of_squares(arrays, out)
    np.testing.assert_allclose(out, [(a.astype("f8") ** 2).sum() for a in arrays], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("size", [0, 7, many._TOTAL_FROM, many._total.threshold + 5])
@pytest.mark.parametrize("terms", [1, 2, 3, 7])
def test_sums_of_arrays_are_those_of_adding_one_by_one(terms, size, dtype):
    arrays = [(rng.standard_normal(size) * 10**i).astype(dtype) for i in range(terms)]
    out = np.full(size, np.nan, dtype)
    many.total(arrays, out)
    np.testing.assert_array_equal(out, sum(arrays[1:], arrays[0]))


def test_a_sum_of_scattered_arrays():
    wide = rng.standard_normal((300, 400))
    out = np.zeros((400, 600))
    many.total([wide.T, wide.T], out[:, ::2])
    np.testing.assert_array_equal(out[:, ::2], 2 * wide.T)
    assert not out[:, 1::2].any()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("rule", ["sgd", "sgd_mom", "nag_mom", "adam"])
def test_what_stands_moves_as_what_is_made_anew(rule, dtype):
    """Gradients stay, are exchanged, and go, so that others lie where they were; rates change and come back."""
    states, _, numbers = ONE[rule]
    more = numbers
    name = {"nag_mom": "sgd_mom"}.get(rule, rule)
    fixed = {"nesterov": rule == "nag_mom"} if name == "sgd_mom" else {}
    groups, others = weights(states, dtype), None
    others = [[a.copy() for a in group] for group in groups]
    standing = many.Standing(name, groups, **fixed)
    grads = [group[1] for group in groups]
    for group in groups:
        group[1] = None  # nobody else has them
    for step in range(12):
        if step % 3:
            i = step % len(SHAPES)
            grads[i] = None
            grads[i] = rng.standard_normal(SHAPES[i]).astype(dtype)
        elif step:
            for g in grads:
                g *= 0.5
        lrs = tuple(LRS) if step % 4 else tuple(2 * lr for lr in LRS)
        assert standing.take(grads)
        standing.move({"lrs": lrs, "wds": tuple(WDS), **COMMON, **more})
        for other, g in zip(others, grads):
            other[1] = g.copy()
        many.move(name, others, {"lr": lrs, "wd": WDS}, **COMMON, **more, **fixed)
        for group, other in zip(groups, others):
            for a, b in zip([group[0], *group[2:]], [other[0], *other[2:]]):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "wrong", [lambda g: g.astype("f8"), lambda g: g[:-1], lambda g: np.repeat(g, 2)[::2]], ids=["type", "size", "gaps"]
)
def test_what_stands_refuses_other_gradients(wrong):
    groups = weights(0, "f4")
    standing, grads = many.Standing("sgd", groups), [group[1] for group in groups]
    grads[-1] = wrong(grads[-1])
    assert not standing.take(grads)


def test_what_stands_keeps_no_gradient():
    groups = weights(0, "f4")
    standing, grads = many.Standing("sgd", groups), [group[1] for group in groups]
    refs = [weakref.ref(g) for g in grads]
    assert standing.take(grads)
    del groups, grads
    assert [ref() for ref in refs] == [None] * len(refs)
