"""mx.np.random and mx.npx.random: shapes, dtypes, statistics of fixed seeds, gradients through draws, errors."""

import math

import numpy as onp
import pytest

import mxcore as mx
from mxcore import autograd
from mxcore.base import MXNetError
from mxcore.ndarray.numpy import arrays as F
from mxcore.symbol.numpy import _Symbol, symbols

np, npx = F.random, F.npx_random


def made(a, dtype="float32"):
    return mx.nd.array(a, dtype=dtype).as_np_ndarray()


@pytest.fixture(autouse=True)
def seeded():
    mx.random.seed(11)


def near(x, mean, var):
    """Mean and variance lie within six standard errors."""
    x = onp.asarray(x, "float64").ravel()
    assert abs(x.mean() - mean) <= 6 * math.sqrt(var / x.size)
    spread = math.sqrt(max(((x - mean) ** 4).mean() - var**2, var**2) / x.size)
    assert abs(((x - mean) ** 2).mean() - var) <= 6 * spread


EULER = 0.5772156649015329
#: Function -> (names of its parameters, values, moments).
LAWS = {
    "normal": ("loc scale", (1.0, 2.0), lambda m, s: (m, s * s)),
    "uniform": ("low high", (1.0, 3.0), lambda a, b: ((a + b) / 2, (b - a) ** 2 / 12)),
    "gumbel": ("loc scale", (1.0, 2.0), lambda m, s: (m + EULER * s, (math.pi * s) ** 2 / 6)),
    "logistic": ("loc scale", (1.0, 2.0), lambda m, s: (m, (math.pi * s) ** 2 / 3)),
    "lognormal": (
        "mean sigma",
        (0.5, 0.25),
        lambda m, s: (math.exp(m + s * s / 2), math.expm1(s * s) * math.exp(2 * m + s * s)),
    ),
    "gamma": ("shape scale", (2.0, 0.5), lambda a, s: (a * s, a * s * s)),
    "beta": ("a b", (2.0, 3.0), lambda a, b: (a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1)))),
    "exponential": ("scale", (2.0,), lambda s: (s, s * s)),
    "rayleigh": ("scale", (2.0,), lambda s: (s * math.sqrt(math.pi / 2), (2 - math.pi / 2) * s * s)),
    "weibull": ("a", (2.0,), lambda a: (math.gamma(1 + 1 / a), math.gamma(1 + 2 / a) - math.gamma(1 + 1 / a) ** 2)),
    "pareto": ("a", (9.0,), lambda a: (1 / (a - 1), a / ((a - 1) ** 2 * (a - 2)))),
    "power": ("a", (3.0,), lambda a: (a / (a + 1), a / ((a + 1) ** 2 * (a + 2)))),
    "chisquare": ("df", (4.0,), lambda k: (k, 2 * k)),
}
TWO = [n for n, (names, *_) in LAWS.items() if " " in names]
#: Whose gradients flow.
FLOWS = "normal gumbel logistic lognormal exponential rayleigh weibull pareto".split()
TYPED = "normal uniform lognormal gamma beta chisquare".split()


@pytest.mark.parametrize("name", LAWS)
def test_moments(name):
    _, values, moments = LAWS[name]
    fn = getattr(np, name)
    near(fn(*values, size=20000).asnumpy(), *moments(*values))
    # An array of parameters: a column for each.
    others = [tuple(v * f for v in values) for f in (1.0, 1.25)]
    drawn = fn(*[made(v) for v in zip(*others)], size=(20000, 2)).asnumpy()
    for column, given in zip(drawn.T, others):
        near(column, *moments(*given))


@pytest.mark.parametrize("name", LAWS)
def test_shapes(name):
    _, values, _ = LAWS[name]
    fn = getattr(np, name)
    for size, shape in ((None, ()), ((), ()), (3, (3,)), ((2, 3), (2, 3)), ((0, 2), (0, 2))):
        found = fn(*values, size=size)
        assert found.shape == shape and onp.dtype(found.dtype) == "float32"
    arrays = [made([v, v]) for v in values]
    assert fn(*arrays).shape == (2,)
    assert fn(*arrays, size=(3, 2)).shape == (3, 2)
    with pytest.raises(ValueError, match="does not fit"):
        fn(*arrays, size=(3,))
    assert type(fn(*arrays)) is F.value


@pytest.mark.parametrize("name", TWO)
def test_parameters_are_broadcast(name):
    a, b = LAWS[name][1]
    fn = getattr(np, name)
    assert fn(made([a, a]), made([[b], [b], [b]])).shape == (3, 2)
    assert fn(made([a, a]), b).shape == fn(a, made([b, b])).shape == (2,)
    assert fn(made([a, a]), made([[b]]), size=(4, 1, 2)).shape == (4, 1, 2)
    with pytest.raises(ValueError, match="cannot be broadcast|inconsistent|broadcast"):
        fn(made([a, a]), made([b, b, b]))


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtypes(name, dtype):
    assert onp.dtype(getattr(np, name)(*LAWS[name][1], size=3, dtype=dtype).dtype) == dtype


@pytest.mark.parametrize("name", LAWS)
def test_seeds(name):
    _, values, _ = LAWS[name]
    first = getattr(np, name)(*values, size=5).asnumpy()
    assert (getattr(np, name)(*values, size=5).asnumpy() != first).any()
    npx.seed(11)
    assert (getattr(np, name)(*values, size=5).asnumpy() == first).all()


def drawn_again(name, values, size):
    """What a function draws for parameters, always of the same noise."""
    mx.random.seed(3)
    return getattr(np, name)(*values, size=size)


@pytest.mark.parametrize("name", FLOWS)
@pytest.mark.parametrize("size", [None, (4, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_flow(name, size, dtype):
    """They are derivatives of what is drawn, for the same noise, by the parameters."""
    values = [onp.array([v, v * 1.5]) for v in LAWS[name][1]]
    arrays = [made(v, dtype) for v in values]
    for x in arrays:
        x.attach_grad()
    with autograd.record():
        y = drawn_again(name, arrays, size)
    y.backward()
    step = 1e-2
    for i, x in enumerate(arrays):
        moved = [
            drawn_again(name, [made(v + s * (k == i)) for k, v in enumerate(values)], size).asnumpy().astype("float64")
            for s in (-step, step)
        ]
        want = ((moved[1] - moved[0]) / (2 * step)).reshape(-1, 2).sum(0)
        assert onp.dtype(x.grad.dtype) == dtype
        onp.testing.assert_allclose(x.grad.asnumpy(), want, rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("name", [n for n in LAWS if n not in FLOWS])
def test_gradients_that_mxnet_lacks_are_zero(name):
    arrays = [made([v, v]) for v in LAWS[name][1]]
    for x in arrays:
        x.attach_grad()
    with autograd.record():
        y = getattr(np, name)(*arrays)
    y.backward()
    assert all((x.grad.asnumpy() == 0).all() for x in arrays)


@pytest.mark.parametrize("name", LAWS)
def test_graphs(name):
    """A graph draws what arrays draw."""
    names, values, _ = LAWS[name]
    names = names.split()
    arrays = [made([v, v]) for v in values]
    symbol = getattr(symbols.random, name)(*[_Symbol(mx.sym.Variable(n)._heads) for n in names], size=(3, 2))
    bound = symbol.as_nd_ndarray().bind(mx.cpu(), dict(zip(names, [x.as_nd_ndarray() for x in arrays])))
    near_ = [drawn_again(name, arrays, (3, 2)).asnumpy()]
    mx.random.seed(3)
    near_.append(bound.forward()[0].asnumpy())
    assert near_[1].shape == (3, 2) and near_[1].dtype == near_[0].dtype
    if name != "beta":  # whose two draws a graph may take in another order
        onp.testing.assert_allclose(*near_, rtol=1e-6)
    with pytest.raises(ValueError):
        symbol.as_nd_ndarray().bind(mx.cpu(), {n: mx.nd.zeros((5,)) for n in names}).forward()[0].asnumpy()


def test_several_values_for_each_element():
    loc, scale = made([0.0, 100.0]), made([[1.0], [2.0]])
    found = npx.normal_n(loc, scale, batch_shape=(5000,))
    assert found.shape == (5000, 2, 2)
    near(found.asnumpy()[:, 1, 1], 100.0, 4.0)
    near(npx.uniform_n(loc, 101.0, batch_shape=(5000,)).asnumpy()[:, 1], 100.5, 1 / 12)
    assert npx.uniform_n().shape == () and npx.normal_n(loc, 1.0).shape == (2,)
    assert onp.dtype(npx.normal_n(0.0, 1.0, 3, "float64").dtype) == "float64"
    loc.attach_grad()
    with autograd.record():
        y = npx.normal_n(loc, scale, batch_shape=3)
    y.backward()
    assert loc.grad.asnumpy().tolist() == [6.0, 6.0]


def test_randint():
    x = np.randint(2, 5, size=30000)
    assert onp.dtype(x.dtype) == "int64"
    near(x.asnumpy(), 3.0, 2 / 3)
    assert {*np.randint(3, size=200).asnumpy().tolist()} == {0, 1, 2}
    assert np.randint(5).shape == () and onp.dtype(np.randint(5, dtype="int32").dtype) == "int32"
    assert abs(np.randint(-(2**40), 2**40, size=100).asnumpy()).max() > 2**35
    with pytest.raises(ValueError, match="high must be above low"):
        np.randint(5, 2)


def test_rand_and_randn():
    assert np.rand(2, 3).shape == np.randn(2, 3).shape == (2, 3)
    assert np.rand().shape == np.randn().shape == ()
    assert onp.dtype(np.rand(2, dtype="float64").dtype) == onp.dtype(np.randn(2, dtype="float64").dtype) == "float64"
    near(np.rand(20000).asnumpy(), 0.5, 1 / 12)
    near(np.randn(20000).asnumpy(), 0.0, 1.0)


def test_choice():
    x = np.choice(4, 20000, p=made([0.1, 0.2, 0.0, 0.7])).asnumpy()
    for i, c in enumerate((0.1, 0.2, 0.0, 0.7)):
        assert abs((x == i).mean() - c) <= 6 * math.sqrt(c * (1 - c) / x.size)
    assert onp.dtype(np.choice(4).dtype) == "int64" and np.choice(4).shape == ()
    assert sorted(np.choice(6, (2, 3), replace=False).asnumpy().ravel().tolist()) == [*range(6)]
    assert sorted(np.choice(4, 2, replace=False, p=made([0.5, 0.0, 0.0, 0.5])).asnumpy().tolist()) == [0, 3]
    # The first of two draws without replacement has the given probabilities.
    first = [np.choice(3, 2, False, made([0.2, 0.3, 0.5])).asnumpy()[0] for _ in range(600)]
    for i, c in enumerate((0.2, 0.3, 0.5)):
        assert abs((onp.array(first) == i).mean() - c) <= 5 * math.sqrt(c * (1 - c) / 600)


def test_choice_of_elements():
    a = made([10.0, 20.0, 30.0])
    a.attach_grad()
    with autograd.record():
        y = np.choice(a, 50)
    y.backward()
    found = y.asnumpy()
    assert {*found.tolist()} == {10.0, 20.0, 30.0}
    assert a.grad.asnumpy().tolist() == [(found == v).sum() for v in (10, 20, 30)]


def test_multinomial():
    chances = [0.2, 0.5, 0.3]
    for p in (chances, onp.array(chances), made(chances)):
        x = np.multinomial(20, p, size=3000)
        assert x.shape == (3000, 3) and onp.dtype(x.dtype) == "int64"
        assert (x.asnumpy().sum(1) == 20).all()
        for i, c in enumerate(chances):
            near(x.asnumpy()[:, i], 20 * c, 20 * c * (1 - c))
    assert np.multinomial(7, [0.0, 1.0]).asnumpy().tolist() == [0, 7]
    assert np.multinomial(7, [0.0, 0.0]).asnumpy().tolist() == [0, 7]  # what is missing goes to the last
    assert np.multinomial(0, chances, size=(2, 2)).shape == (2, 2, 3)


def test_multivariate_normal():
    mean, cov = made([1.0, -1.0]), made([[4.0, 1.0], [1.0, 2.0]])
    x = np.multivariate_normal(mean, cov, size=20000).asnumpy()
    near(x[:, 0], 1.0, 4.0)
    near(x[:, 1], -1.0, 2.0)
    assert abs(onp.cov(x.T)[0, 1] - 1.0) < 0.1
    assert np.multivariate_normal(made(onp.zeros((3, 2))), cov, size=(4,)).shape == (4, 3, 2)
    assert np.multivariate_normal(mean, cov).shape == (2,)
    mean.attach_grad(), cov.attach_grad()
    with autograd.record():
        y = np.multivariate_normal(mean, cov, size=5)
    y.backward()
    assert mean.grad.asnumpy().tolist() == [5.0, 5.0]
    assert (cov.grad.asnumpy() != 0).any()


def test_shuffle():
    x = made(onp.arange(40).reshape(20, 2))
    assert np.shuffle(x) is None
    rows = x.asnumpy()
    assert (rows[:, 1] == rows[:, 0] + 1).all()
    assert sorted(rows[:, 0].tolist()) == [*range(0, 40, 2)] and (rows[:, 0] != onp.arange(0, 40, 2)).any()


def test_bernoulli():
    near(npx.bernoulli(0.3, size=20000).asnumpy(), 0.3, 0.21)
    near(npx.bernoulli(logit=1.0, size=20000).asnumpy(), 1 / (1 + math.exp(-1)), 0.1966)
    x = npx.bernoulli(made([0.0, 1.0]), size=(50, 2), dtype="bool")
    assert onp.dtype(x.dtype) == "bool" and (x.asnumpy() == [False, True]).all()
    assert npx.bernoulli(logit=made([-1000.0, 1000.0])).asnumpy().tolist() == [0.0, 1.0]
    assert npx.bernoulli(0.5).shape == ()


def test_out():
    out = made([0.0, 0.0])
    for fn in (lambda: np.normal(5.0, 1e-3, 2, out=out), lambda: np.lognormal(math.log(5), 1e-4, 2, out=out)):
        assert fn() is out
        onp.testing.assert_allclose(out.asnumpy(), 5.0, atol=0.02)


ERRORS = {
    "scale": (lambda: np.normal(0, -1), ValueError, "scale must be 0 or more"),
    "array of scales": (lambda: np.normal(0.0, made([1.0, -1.0])), ValueError, r"got -1.0 \(element 1\)"),
    "gamma": (lambda: np.gamma(0.0), ValueError, "shape must be above 0"),
    "weibull": (lambda: np.weibull(-1.0), ValueError, "a must be above 0"),
    "list": (lambda: np.normal([0.0, 1.0]), TypeError, "np.array makes one"),
    "nd": (lambda: np.normal(mx.nd.ones(2)), TypeError, "as_np_ndarray"),
    "size": (lambda: np.normal(size="big"), TypeError, "size must be"),
    "size of a float": (lambda: np.normal(size=(2.5,)), TypeError, "size must be"),
    "negative size": (lambda: np.normal(size=(-2,)), ValueError, "not negative"),
    "dtype": (lambda: np.normal(dtype="int32"), TypeError, "one of the dtypes"),
    "choice of a list": (lambda: np.choice([1, 2]), TypeError, "a must be a vector"),
    "choice of a matrix": (lambda: np.choice(made([[1.0]])), ValueError, "must be vectors"),
    "choice p list": (lambda: np.choice(2, p=[0.5, 0.5]), TypeError, "p must be an array"),
    "choice p": (lambda: np.choice(3, p=made([0.5, 0.5])), ValueError, "2 probabilities for 3"),
    "choice p sum": (lambda: np.choice(2, p=made([0.5, 0.9])), ValueError, "the sum 1"),
    "choice too many": (lambda: np.choice(3, 4, replace=False), ValueError, "4 different"),
    "choice too few": (lambda: np.choice(3, 2, False, made([1.0, 0, 0])), ValueError, "1 have a probability"),
    "choice of nothing": (lambda: np.choice(0, 2), ValueError, "nothing can be drawn"),
    "multinomial": (lambda: np.multinomial(3, [0.7, 0.8, 0.1]), ValueError, "a sum of 1 at most"),
    "multinomial p": (lambda: np.multinomial(3, "ab"), TypeError, "pvals must be"),
    "multinomial option": (lambda: np.multinomial(3, [1.0], out=None), TypeError, "no argument 'out'"),
    "multivariate": (
        lambda: np.multivariate_normal(made([0.0]), made([[1.0, 0.0], [0.0, 1.0]])),
        ValueError,
        "must be",
    ),
    "multivariate options": (
        lambda: np.multivariate_normal(made([0.0]), made([[1.0]]), tol=1e-3),
        NotImplementedError,
        "tol=0.001",
    ),
    "not positive definite": (
        lambda: np.multivariate_normal(made([0.0]), made([[-1.0]])),
        ValueError,
        "positive definite",
    ),
    "shuffle": (lambda: np.shuffle(F.linalg.det(made([[1.0]]))), TypeError, "no dimensions"),
    "shuffle a list": (lambda: np.shuffle([1, 2]), TypeError, "takes an array"),
    "bernoulli": (lambda: npx.bernoulli(1.5), ValueError, "from 0 to 1"),
    "bernoulli both": (lambda: npx.bernoulli(0.5, 0.5), ValueError, "prob or logit"),
    "bernoulli dtype": (lambda: npx.bernoulli(0.5, dtype="int8"), TypeError, "one of the dtypes"),
    "seed": (lambda: npx.seed("a"), TypeError, "must be an int"),
}


@pytest.mark.parametrize("fn, kind, words", ERRORS.values(), ids=ERRORS)
def test_errors(fn, kind, words):
    with pytest.raises(kind, match=words) as e:
        fn()
    assert isinstance(e.value, MXNetError)


def test_what_is_drawn_for_arrays_is_where_they_are():
    mean = mx.np.zeros(2, ctx=mx.cpu(1))
    assert mx.np.random.normal(mean, 1, ctx=mx.cpu(1)).ctx == mx.cpu(1)
    for ctx in (mx.cpu(0), "nowhere"):
        with pytest.raises(ValueError, match=r"parameters are on cpu\(1\)"):
            mx.np.random.normal(mean, 1, ctx=ctx)
