"""Random operators beyond their samples: seeds, shapes, bad parameters, gradients of log-probabilities, laws."""

import math

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import tables
from mxcore.context import cpu
from mxcore.ops.random import variates
from mxcore.philox import Rng

nd = mx.nd


def draw(seed, fn):
    """What a function draws after a seed."""
    mx.random.seed(seed)
    return fn().asnumpy()


@pytest.mark.parametrize(
    "fn",
    [
        lambda: nd.random.uniform(shape=(50,)),
        lambda: nd.random.normal(shape=(50,)),
        lambda: nd.random.gamma(2, 1, shape=(50,)),
        lambda: nd.random.poisson(40, shape=(50,)),
        lambda: nd.random.negative_binomial(3, 0.4, shape=(50,)),
        lambda: nd.random.randint(0, 1000, shape=(50,)),
        lambda: nd.shuffle(nd.arange(50)),
    ],
)
def test_the_seed_decides(fn):
    assert (draw(1, fn) == draw(1, fn)).all()
    assert (draw(1, fn) != draw(2, fn)).any()
    mx.random.seed(1)
    assert (fn().asnumpy() != fn().asnumpy()).any()


def law(seed=3):
    """Numbers of one key."""
    return Rng(cpu(0).device, (seed, 0, 0), 0)


def chi_square(draws, probabilities, first):
    """Pearson's statistic against given probabilities of first, first + 1 …, divided by its degrees of freedom."""
    counts = np.array([(draws == first + i).sum() for i in range(len(probabilities))])
    expected = draws.size * np.array(probabilities)
    return float(((counts - expected) ** 2 / expected).sum() / (len(probabilities) - 1))


@pytest.mark.parametrize("rate", [0.7, 9.0, 12.0, 60.0])
def test_poisson_numbers_follow_the_law(rate):
    draws = variates.poisson(law(), np.full(40_000, rate))
    near = range(max(int(rate - 3 * rate**0.5), 0), int(rate + 3 * rate**0.5) + 2)
    p = [math.exp(i * math.log(rate) - rate - math.lgamma(i + 1)) for i in near]
    assert chi_square(draws, p, near[0]) < 2.5


@pytest.mark.parametrize("n, q", [(5, 0.3), (40, 0.4), (40, 0.9), (1000, 0.02), (3000, 0.5)])
def test_binomial_numbers_follow_the_law(n, q):
    draws = variates.binomial(law(), np.full(40_000, float(n)), np.full(40_000, q))
    mean, sd = n * q, (n * q * (1 - q)) ** 0.5
    near = range(max(int(mean - 2.5 * sd), 0), min(int(mean + 2.5 * sd) + 1, n) + 1)
    p = [
        math.exp(
            math.lgamma(n + 1)
            - math.lgamma(i + 1)
            - math.lgamma(n - i + 1)
            + i * math.log(q)
            + (n - i) * math.log(1 - q)
        )
        for i in near
    ]
    assert chi_square(draws, p, near[0]) < 2.5


@pytest.mark.parametrize("shape", [0.1, 1.0, 7.5])
def test_gamma_numbers_follow_the_law(shape):
    """Its cumulative function, by numerical integration, at the deciles."""
    draws = np.sort(variates.gamma(law(), np.full(20_000, shape)))
    x = np.concatenate([np.zeros(1), np.geomspace(1e-12, shape + 12 * shape**0.5 + 12, 40_000)])
    middle = (x[1:] + x[:-1]) / 2
    total = np.cumsum(np.exp((shape - 1) * np.log(middle) - middle - math.lgamma(shape)) * np.diff(x))
    total += 1 - total[-1]
    for i in range(1, 10):
        at = draws[len(draws) * i // 10]
        assert abs(np.interp(at, x[1:], total) - i / 10) < 0.02


def test_laws_of_bad_parameters_are_nan():
    assert np.isnan(variates.gamma(law(), np.array([-1.0, np.nan]))).all()
    assert np.isnan(variates.poisson(law(), np.array([-1.0, np.nan]))).all()
    assert np.isnan(variates.binomial(law(), np.array([-1.0, 3.0]), np.array([0.5, 1.5]))).all()
    assert variates.gamma(law(), np.zeros(2)).tolist() == [0, 0] and variates.poisson(law(), np.zeros(2)).tolist() == [
        0,
        0,
    ]
    assert variates.binomial(law(), np.array([4.0, 4.0]), np.array([0.0, 1.0])).tolist() == [0, 4]


def test_the_draw_of_one_element_does_not_depend_on_the_others():
    a = variates.gamma(law(), np.array([0.5, 2.0, 2.0]))
    b = variates.gamma(law(), np.array([0.5, 2.0, 9.0]))
    assert (a[:2] == b[:2]).all() and a[2] != b[2]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nd.random.normal(scale=-1, shape=2), "scale must be above 0, got -1.0"),
        (lambda: nd.random.gamma(-1, 1, shape=2), "alpha must be above 0"),
        (lambda: nd.random.poisson(-1, shape=2), "lam must be 0 or more"),
        (lambda: nd.random.randint(5, 5, shape=2), "high must be above low"),
        (
            lambda: nd.random_uniform(shape=2, dtype="int32"),
            "dtype must be float16, bfloat16, float32 or float64, got int32",
        ),
        (lambda: nd.random_uniform(), "the shape is unknown"),
        (lambda: nd.random.multinomial(nd.empty((2, 0))), r"data must hold a probability at least, got shape \(2, 0\)"),
        (
            lambda: nd._internal._sample_unique_zipfian(range_max=3, shape=(1, 4)),
            "4 different numbers cannot be drawn below range_max 3",
        ),
    ],
)
def test_bad_parameters(call, message):
    with pytest.raises(mx.MXNetError, match=message):
        call().wait_to_read()


def test_shapes():
    assert nd.random_uniform(shape=3).shape == (3,)
    assert nd.random_normal(shape=(0, 2)).shape == (0, 2)
    assert (
        nd.random.exponential(nd.array([1, 5]), shape=4).shape
        == mx.random.exponential(nd.array([1, 5]), shape=4).shape
        == (2, 4)
    )
    assert nd.sample_normal(nd.array([1, 2]), nd.array([1, 1]), shape=(4,)).shape == (2, 4)
    assert nd.sample_multinomial(nd.array([0.5, 0.5])).shape == (1,)
    assert nd.sample_multinomial(nd.array([[0.5, 0.5]]), shape=(2, 3)).shape == (1, 2, 3)
    x = nd.zeros((2, 3))
    nd.random_uniform(out=x, shape=(2, 3), low=1, high=2)
    assert (x.asnumpy() >= 1).all()


def test_a_graph_gives_the_shape_that_is_left_open():
    s = mx.sym.random_uniform(low=2, high=3) + mx.sym.Variable("a")
    out = s.bind(mx.cpu(), {"a": nd.zeros((2, 5))}).forward()[0]
    assert out.shape == (2, 5) and (out.asnumpy() >= 2).all()


def test_gradient_of_log_probabilities():
    data = nd.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])
    data.attach_grad()
    with mx.autograd.record():
        drawn, logs = nd.sample_multinomial(data, shape=(50,), get_prob=True)
    logs.backward()
    counts = np.array([[(row == i).sum() for i in range(3)] for row in drawn.asnumpy()])
    np.testing.assert_allclose(data.grad.asnumpy(), counts / data.asnumpy(), rtol=1e-5)
    np.testing.assert_allclose(
        logs.asnumpy(), np.log(np.take_along_axis(data.asnumpy(), drawn.asnumpy(), 1)), rtol=1e-5
    )


def test_an_impossible_outcome_never_comes():
    drawn = nd.sample_multinomial(nd.array([0.5, 0.0, 0.5, 0.0]), shape=(5000,)).asnumpy()
    assert set(drawn.tolist()) == {0, 2}


def test_generalized_negative_binomial_without_dispersion_is_poisson():
    x = nd.random.generalized_negative_binomial(mu=3, alpha=0, shape=(20_000,)).asnumpy()
    assert abs(x.mean() - 3) < 0.08 and abs(x.var() - 3) < 0.25


def test_densities_are_those_of_the_samplers():
    """Mean log density of the draws against its own expectation over a grid."""
    mu, alpha = nd.array([4.0]), nd.array([0.5])
    x = nd.arange(0, 80).reshape((1, 80))
    p = nd.random_pdf_generalized_negative_binomial(x, mu, alpha).asnumpy()[0]
    assert abs(p.sum() - 1) < 1e-5
    draws = nd.sample_generalized_negative_binomial(mu, alpha, shape=(20_000,)).asnumpy()[0]
    assert chi_square(draws, p[:15], 0) < 2.5


def test_only_what_draws_takes_a_key():
    def draws(name, **params):
        return tables.ops.get(name).parse(params)._sig.random

    assert draws("LeakyReLU", act_type="rrelu") and draws("Dropout") and draws("_random_uniform")
    assert not draws("LeakyReLU") and not draws("Dropout", p=0) and not draws("relu")
    rnn = {"mode": "gru", "state_size": 2}
    assert draws("RNN", p=0.5, num_layers=2, **rnn)
    assert not draws("RNN", num_layers=2, **rnn) and not draws("RNN", p=0.5, num_layers=1, **rnn)


def test_a_graph_draws_for_its_random_nodes_only():
    def after(symbol):
        mx.random.seed(3)
        symbol.bind(mx.cpu(), {"x": mx.nd.ones((2, 2))}).forward(is_train=True)
        return mx.nd.random.uniform(shape=(3,)).asnumpy().tolist()

    x = mx.sym.Variable("x")
    assert after(x + 1) == after(mx.sym.Dropout(mx.sym.LeakyReLU(x, act_type="elu"), p=0)) != after(mx.sym.Dropout(x))


def test_multinomial_without_a_shape_draws_one_of_each_row():
    p = mx.nd.array([[0.0, 1.0], [1.0, 0.0]])
    assert mx.nd.random.multinomial(p).asnumpy().tolist() == [1, 0]
    drawn, prob = mx.nd.random.multinomial(p, get_prob=True)
    assert drawn.shape == prob.shape == (2,) and prob.asnumpy().tolist() == [0, 0]
    assert mx.nd.random.multinomial(p, shape=1).shape == (2, 1) and mx.nd.random.multinomial(p[0]).shape == (1,)


def test_random_values_take_the_dtype_of_out():
    out = mx.nd.zeros((3,), dtype="float64")
    assert mx.nd.random.uniform(out=out) is out and (out.asnumpy() != out.asnumpy().astype("float32")).any()
    assert mx.nd.random.randint(0, 5, out=mx.nd.zeros((2,), dtype="int64")).dtype.__name__ == "int64"


def test_a_signal_handler_draws_keys_of_its_own():
    """Right after the number of a key was looked up, too."""
    from mxcore._core import rng

    ctx, inside, busy = mx.cpu(), [], []
    nested = type("Nested", (dict,), {"setdefault": lambda self, k, v: (look(), dict.setdefault(self, k, v))[1]})

    def look():
        if not busy:
            busy.append(True)
            inside.append(rng.next_key(ctx))
            busy.clear()

    before = rng.standing["counters"]
    rng.standing["counters"] = nested(before)
    try:
        outside = [rng.next_key(ctx) for _ in range(4)]
    finally:
        rng.standing["counters"] = before
    assert len(inside) == 4 and len({*outside, *inside}) == 8


def test_keys_are_drawn_again_from_where_they_stood():
    from mxcore.testing.keys import get_state, set_state

    mx.random.seed(5)
    mx.nd.random.uniform(shape=(2,))
    saved = get_state()
    first = [mx.nd.random.uniform(shape=(2,)).asnumpy().tolist() for _ in range(2)]
    for _ in range(2):
        set_state(saved)
        assert [mx.nd.random.uniform(shape=(2,)).asnumpy().tolist() for _ in range(2)] == first
