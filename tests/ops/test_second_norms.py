"""Gradients of gradients, as for a gradient penalty, of normalizations, pooling and hybridised blocks."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, nd

NORMS = [
    ("BatchNorm", (4, 3, 2), 3, {"fix_gamma": False}),
    ("BatchNorm", (3, 2, 2, 2), 2, {"eps": 1e-2}),
    ("BatchNorm", (5, 3), 3, {"axis": -1, "fix_gamma": False}),
    ("BatchNorm", (4, 3), 3, {"use_global_stats": True, "fix_gamma": False}),
    ("BatchNormWithReLU", (4, 3, 2), 3, {"fix_gamma": False}),
    ("LayerNorm", (3, 5), 5, {}),
    ("LayerNorm", (2, 3, 4), 3, {"axis": 1}),
    ("GroupNorm", (2, 4, 3), 2, {"num_groups": 2}),
    ("InstanceNorm", (2, 3, 4), 3, {}),
]
POOLS = [
    ((2, 2, 7), {"kernel": (3,), "stride": (2,)}),
    ((2, 2, 5, 6), {"kernel": (3, 2), "stride": (2, 2), "pad": (1, 1), "pooling_convention": "full"}),
    ((1, 2, 5, 6), {"kernel": (2, 3), "pad": (1, 1)}),
    ((1, 2, 4, 4), {"global_pool": True}),
    ((1, 3, 4, 2), {"kernel": (2, 2), "layout": "NHWC"}),
    ((1, 2, 3, 4, 3), {"kernel": (2, 2, 2)}),
]


def penalty(f, x, others=()):
    """The sum of squares of a gradient by x, weighted, and its own gradients."""
    for a in (x, *others):
        a.attach_grad()
    with autograd.record():
        y = f(x)
        (g,) = autograd.grad((y * nd.arange(y.size, dtype=y.dtype).reshape(y.shape)).sum(), [x], create_graph=True)
        p = (nd.sin(nd.arange(1, g.size + 1, dtype=g.dtype)).reshape(g.shape) * g * g).sum() + (g * g * g).sum()
    p.backward()
    return float(p.asscalar())


def check(f, x, others=()):
    """Compare the gradients of a penalty with difference quotients along one direction each."""
    penalty(f, x, others)
    slopes = [a.grad.asnumpy() for a in (x, *others)]
    rng = np.random.default_rng(0)
    for a, slope in zip((x, *others), slopes):
        at, to = a.asnumpy(), rng.normal(size=a.shape)
        found = []
        for step in (1e-5, -1e-5):
            a[:] = nd.array(at + step * to, dtype="float64")
            found.append(penalty(f, x, others))
        a[:] = nd.array(at, dtype="float64")
        np.testing.assert_allclose((slope * to).sum(), (found[0] - found[1]) / 2e-5, rtol=1e-5, atol=1e-6)


def block(f, inputs):
    """The function as a hybridised block over its inputs."""
    names = [mx.sym.Variable(f"v{i}") for i in range(len(inputs))]
    net = mx.gluon.SymbolBlock(f(mx.sym, *names), names)
    net.hybridize()
    return net


def values(*shape, seed=1):
    return nd.array(np.random.default_rng(seed).permutation(np.prod(shape)).reshape(shape) / 7 - 0.9, dtype="float64")


@pytest.mark.parametrize(
    "name, shape, c, params, hybrid",
    [(*case, hybrid) for case in NORMS for hybrid in (False, True) if not (hybrid and "Batch" in case[0])],
)
def test_normalizations(name, shape, c, params, hybrid):
    gamma, beta, moving = (
        nd.array(np.linspace(0.5, 1.5, c), dtype="float64"),
        nd.array(np.linspace(-1, 1, c), dtype="float64"),
        [],
    )
    if name.startswith("Batch"):
        moving = [
            nd.array(np.linspace(-0.2, 0.3, c), dtype="float64"),
            nd.array(np.linspace(0.5, 2, c), dtype="float64"),
        ]

    def fn(F, *v):
        return getattr(F.contrib if name.endswith("ReLU") else F, name)(*v, **params)

    inputs = [values(*shape), gamma, beta]
    call = block(fn, inputs) if hybrid else lambda *v: fn(nd, *v)
    check(lambda v: call(v, gamma, beta, *[m.copy() for m in moving]), inputs[0], [gamma, beta])


@pytest.mark.parametrize("create_graph", [False, True])
def test_parameters_of_a_layer_of_one_dimension(create_graph):
    x, gamma, beta = values(4), nd.array([1, 0.5, 2, 1], dtype="float64"), nd.zeros(4, dtype="float64")
    for a in (x, gamma, beta):
        a.attach_grad()
    with autograd.record():
        y = nd.LayerNorm(x, gamma, beta)
        g_gamma, g_beta = autograd.grad(y, [gamma, beta], nd.arange(4, dtype="float64"), create_graph=create_graph)
    np.testing.assert_allclose(g_gamma.asnumpy(), np.arange(4) * y.asnumpy() / gamma.asnumpy())
    np.testing.assert_allclose(g_beta.asnumpy(), np.arange(4))


def test_norms_over_no_axes():
    x = mx.np.array([[1.0, -2], [3, 4]])
    x.attach_grad()
    with autograd.record():
        (g,) = autograd.grad((mx.np.linalg.norm(x, axis=()) ** 2).sum(), [x], create_graph=True)
    g.backward(g)
    np.testing.assert_allclose(x.grad.asnumpy(), 4 * x.asnumpy())


def test_batch_norm_in_predict_mode():
    c = nd.array([0.5, 2], dtype="float64")
    x = values(3, 2, 2)
    x.attach_grad()
    with autograd.record(train_mode=False):
        y = nd.BatchNorm(x, c, c, c, c, fix_gamma=False)
        (g,) = autograd.grad(y * y, [x], create_graph=True, train_mode=False)
        g.sum().backward(train_mode=False)
    inv = c.asnumpy() / np.sqrt(c.asnumpy() + 1e-3)
    np.testing.assert_allclose(x.grad.asnumpy(), np.broadcast_to(2 * (inv**2)[:, None], x.shape))


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("kind", ["max", "avg", "sum", "lp1", "lp2", "lp3"])
@pytest.mark.parametrize("shape, params", POOLS)
def test_pooling(shape, params, kind, hybrid):
    params = {
        **params,
        "pool_type": kind[:2] if kind[0] == "l" else kind,
        **({"p_value": kind[2]} if kind[0] == "l" else {}),
    }
    x = values(*shape)
    if kind[0] == "l":
        x = x * x + 0.5

    def fn(F, v):
        return F.Pooling(v * v, **params)

    net = block(fn, [x]) if hybrid else lambda v: fn(nd, v)
    check(net, x)


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize(
    "name, shapes, params",
    [
        ("LRN", [(2, 5, 2)], {"nsize": 3, "alpha": 0.5}),
        ("LRN", [(1, 2, 2, 3)], {"nsize": 7, "alpha": 1.0, "beta": 0.5, "knorm": 1.0}),
        ("UpSampling", [(1, 2, 2, 3)], {"scale": 2, "sample_type": "nearest"}),
        ("UpSampling", [(1, 2, 1, 2), (1, 1, 2, 4)], {"scale": 4, "sample_type": "nearest", "num_args": 2}),
        (
            "UpSampling",
            [(1, 2, 1, 2), (1, 2, 2, 4)],
            {"scale": 4, "sample_type": "nearest", "num_args": 2, "multi_input_mode": "sum"},
        ),
    ],
)
def test_of_images(name, shapes, params, hybrid):
    x, *others = [values(*shape, seed=i) for i, shape in enumerate(shapes)]

    def fn(F, v, *more):
        return getattr(F, name)(v * v, *more, **params) ** 2

    net = block(fn, [x, *others]) if hybrid else lambda *inputs: fn(nd, *inputs)
    check(lambda v: net(v, *others), x, others)


def test_third_order():
    x, one = values(2, 4), nd.ones((4,), dtype="float64")

    def f(v):
        return nd.LayerNorm(v, one, one) ** 2

    x.attach_grad()
    with autograd.record():
        (g,) = autograd.grad(f(x) * values(2, 4, seed=2), [x], create_graph=True)
        (h,) = autograd.grad(g * g, [x], create_graph=True)
        s = (h * h).sum()
    s.backward()
    assert np.isfinite(x.grad.asnumpy()).all() and np.abs(x.grad.asnumpy()).max() > 0


def test_a_hybridised_block_is_differentiated_again_with_the_same_random_numbers():
    net = mx.gluon.nn.HybridSequential()
    net.add(
        mx.gluon.nn.Dense(8, activation="tanh", in_units=4),
        mx.gluon.nn.Dropout(0.5),
        mx.gluon.nn.Dense(3, activation="tanh", in_units=8),
        mx.gluon.nn.Dropout(0.5),
    )
    net.initialize(mx.init.Xavier())
    found = []
    for hybrid in (False, True):
        net.hybridize(hybrid)
        x = nd.ones((2, 4))
        x.attach_grad()
        mx.random.seed(3)
        with autograd.record():
            y = net(x)
            (g,) = autograd.grad(y * y, [x], create_graph=True)
            p = (g * g).sum()
        p.backward()
        found.append([y.asnumpy(), g.asnumpy(), net[0].weight.grad().asnumpy()])
    for eager, hybrid in zip(*found):
        np.testing.assert_allclose(eager, hybrid, rtol=1e-5, atol=1e-6)
    assert np.abs(found[0][2]).max() > 0
