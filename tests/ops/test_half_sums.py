"""Sums of half precision are added up in float32: one of bfloat16 would stop at 256, one of float16 at 2048."""

import numpy as np
import pytest

import mxcore as mx

N = 5000
DTYPES = ["float16", "bfloat16"]
#: What one unit in the last place is of a number.
UNIT = {"float16": 2.0**-10, "bfloat16": 2.0**-7}


def array(shape, dtype, value=1.0):
    return mx.nd.full(shape, value, dtype=dtype) if dtype == "float16" else mx.nd.full(shape, value).astype(dtype)


def number(a):
    return a.astype("float32").asnumpy()


def _ndarrays(fn):
    """A function of ``mx.np`` as one of arrays of ``mx.nd``."""
    return lambda *xs: fn(*[x.as_np_ndarray() for x in xs]).as_nd_ndarray()


SUMS = {
    "sum": (lambda x: mx.nd.sum(x, axis=0), N),
    "sum of all": (lambda x: mx.nd.sum(x), 2 * N),
    "nansum": (lambda x: mx.nd.nansum(x, axis=0), N),
    "mean": (lambda x: mx.nd.mean(x, axis=0), 1),
    "norm 1": (lambda x: mx.nd.norm(x, ord=1, axis=0), N),
    "norm 2": (lambda x: mx.nd.norm(x, ord=2, axis=0), N**0.5),
    "moments": (lambda x: mx.nd.moments(x, axes=(0,))[0], 1),
    "add_n of rows": (lambda x: mx.nd.add_n(*[x[:2].tostype("row_sparse")] * 600).tostype("default"), 600),
    "np.sum": (lambda x: mx.np.sum(x.as_np_ndarray(), axis=0), N),
    "np.mean": (lambda x: mx.np.mean(x.as_np_ndarray(), axis=0), 1),
    "np.var": (lambda x: mx.np.var(x.as_np_ndarray(), axis=0), 0),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SUMS)
def test_sums(name, dtype):
    fn, wanted = SUMS[name]
    found = fn(array((N, 2), dtype))
    assert str(np.dtype(found.dtype)) == dtype
    np.testing.assert_allclose(number(found), wanted, rtol=2**-7, atol=1e-3)


#: name -> function of [1, NaN, 3e30, 4e30], of bfloat16, and what it gives.
WIDE_RANGE = {
    "nansum": (mx.nd.nansum, [7e30]),
    "np.nansum": (_ndarrays(lambda x: mx.np.nansum(x, keepdims=True)), [7e30]),
    "nanprod": (lambda x: mx.nd.nanprod(x[:3]), [3e30]),
    "np.nan_to_num": (_ndarrays(mx.np.nan_to_num), [1, 0, 3e30, 4e30]),
    "np.nan_to_num of infinity": (_ndarrays(lambda x: mx.np.nan_to_num(x[2:] * -1e30)), [-3.3895e38] * 2),
    "norm": (lambda x: mx.nd.norm(x[2:]), [5e30]),
    "sort": (mx.nd.sort, [1, 3e30, 4e30, np.nan]),
    "argsort": (lambda x: mx.nd.argsort(x, is_ascend=False), [1, 3, 2, 0]),
    "topk": (lambda x: mx.nd.topk(x, k=2), [1, 3]),
    "topk of few": (lambda x: mx.nd.topk(mx.nd.tile(x, reps=(10,)), k=2), [1, 5]),
    "round_ste": (lambda x: mx.nd.contrib.round_ste(x[:1] * 2.5), [3]),
    "np.percentile": (_ndarrays(lambda x: mx.np.percentile(x, 50, keepdims=True)), [np.nan]),
}


@pytest.mark.parametrize("name", WIDE_RANGE)
def test_what_numpy_does_not_know_of_bfloat16(name):
    fn, wanted = WIDE_RANGE[name]
    found = fn(mx.nd.array([1, np.nan, 3e30, 4e30]).astype("bfloat16"))
    np.testing.assert_allclose(number(found), wanted, rtol=2**-7)


GRADIENTS = {
    "broadcast_add": ((1, 3), lambda x: mx.nd.broadcast_add(mx.nd.ones((N, 3)).astype(x.dtype), x)),
    "broadcast_mul": ((1, 3), lambda x: mx.nd.broadcast_mul(mx.nd.ones((N, 3)).astype(x.dtype), x)),
    "broadcast_to": ((1, 3), lambda x: mx.nd.broadcast_to(x, shape=(N, 3))),
    "tile": ((1, 3), lambda x: mx.nd.tile(x, reps=(N, 1))),
    "repeat": ((1, 3), lambda x: mx.nd.repeat(x, repeats=N, axis=0)),
    "add of mx.np": ((3,), lambda x: (mx.np.ones((N, 3)).astype(x.dtype) + x.as_np_ndarray()).as_nd_ndarray()),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("hybrid", [False, True])
def test_gradients_of_what_is_repeated(name, dtype, hybrid):
    shape, fn = GRADIENTS[name]
    x = array(shape, dtype)
    x.attach_grad()
    if hybrid:
        if name == "add of mx.np":
            return
        operator = name.partition(" ")[0]
        rest = {"tile": {"reps": (N, 1)}, "repeat": {"repeats": N, "axis": 0}, "broadcast_to": {"shape": (N, 3)}}
        a, w = mx.sym.Variable("a"), mx.sym.Variable("w")
        inputs = [a, w] if operator in ("broadcast_add", "broadcast_mul") else [w]
        symbol = getattr(mx.sym, operator)(*inputs, **rest.get(operator, {}))
        arrays = {"a": array((N, 3), dtype), "w": x}
        args = {n: arrays[n] for n in symbol.list_arguments()}
        grads = {"w": array(shape, dtype, 0)}
        executor = symbol.bind(mx.cpu(), args, grads, {n: "write" if n == "w" else "null" for n in args})
        executor.forward(is_train=True)
        executor.backward(array((N, 3), dtype))
        found = grads["w"]
    else:
        with mx.autograd.record():
            y = fn(x)
        y.backward()
        found = x.grad
    np.testing.assert_allclose(number(found), N, rtol=2**-7)


PRODUCTS = {
    "prod": lambda F, x: F.prod(x, axis=0),
    "nanprod": lambda F, x: F.nanprod(x, axis=0),
    "np.prod": lambda F, x: F._np_prod(x, axis=0),
}


class Product(mx.gluon.HybridBlock):
    """A product over the first axis."""

    def __init__(self, name):
        super().__init__()
        self.of = PRODUCTS[name]

    def hybrid_forward(self, F, x):
        return self.of(F if hasattr(F, "_np_prod") else F._internal, x)


@pytest.mark.both_ways
@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize(
    "factors",
    [
        1 + np.random.RandomState(0).randn(1000, 3) / 50,  # rounded at each factor they would be 30 last places off
        np.array([[300.0, 1e-4], [300, 1e-4]]),  # the product is out of the range of float16, the others are not
        np.array([[300.0, 1e-3], [200, 0], [100, 1e-4]]) / 8,
    ],
    ids=["many", "far", "zero"],
)
def test_products_and_their_gradients(name, dtype, hybrid, factors):
    x = mx.nd.array(factors).astype(dtype)
    exact = x.astype("float64").asnumpy()
    others = np.stack([np.delete(exact, i, 0).prod(0) for i in range(len(exact))])
    net = Product(name)
    if hybrid:
        net.hybridize()
    x.attach_grad()
    with mx.autograd.record():
        y = net(x)
    y.backward()
    assert str(np.dtype(y.dtype)) == str(np.dtype(x.grad.dtype)) == dtype
    for found, wanted in ((y, exact.prod(0)), (x.grad, others)):
        with np.errstate(over="ignore"):
            wanted = number(mx.nd.array(wanted.astype("float32")).astype(dtype))
        np.testing.assert_allclose(number(found), wanted, rtol=1.01 * UNIT[dtype], atol=2.0**-24)


def _values(*shape, seed=0):
    """Numbers from 0.5 to 1."""
    return 0.5 + np.random.RandomState(seed).rand(*shape) / 2


def _all(*shape):
    return np.zeros(shape)


def _padded(mode):
    return _ndarrays(lambda x: mx.np.pad(x, ((0, N),), mode=mode))


def _assigned(x, value):
    return mx.nd._internal._npi_boolean_mask_assign_tensor(x, mx.nd.ones((N, 2), dtype="bool"), value)


#: name -> function, and its inputs: of those that are no whole numbers the gradients are looked at, as well.
CALLS = {
    "take": (lambda w, i: mx.nd.take(w, i), _values(4, 3), _all(N).astype(int)),
    "take of the second axis": (lambda w, i: mx.nd.take(w, i, axis=1), _values(2, 4), _all(N).astype(int)),
    "Embedding": (lambda i, w: mx.nd.Embedding(i, w, input_dim=4, output_dim=3), _all(N).astype(int), _values(4, 3)),
    "Embedding of a large table": (
        lambda i, w: mx.nd.Embedding(i, w, input_dim=2 * N, output_dim=1),
        _all(N).astype(int) + 3,
        _values(2 * N, 1),
    ),
    "Embedding, sparse": (
        lambda i, w: mx.nd.Embedding(i, w, input_dim=4, output_dim=3, sparse_grad=True),
        _all(N).astype(int),
        _values(4, 3),
    ),
    "gather_nd": (lambda x, i: mx.nd.gather_nd(x, i), _values(4, 3), _all(1, N).astype(int)),
    "index by arrays": (lambda x, i: x[i, i], _values(4, 3), _all(N).astype(int)),
    "assignment by a mask": (_assigned, _values(N, 2), _values(1)),
    "Pad edge": (lambda x: mx.nd.Pad(x, mode="edge", pad_width=(0, 0, 0, 0, N, 0, 0, 1)), _values(1, 1, 2, 2)),
    "np.pad edge": (_padded("edge"), _values(3)),
    "np.pad maximum": (_padded("maximum"), _values(3)),
    "np.trace": (_ndarrays(mx.np.trace), np.broadcast_to(_values(600), (600, 600))),
    "np.bincount": (_ndarrays(lambda i, w: mx.np.bincount(i.astype("int64"), w)), _all(N).astype(int), _values(N)),
    "np.polyval": (_ndarrays(mx.np.polyval), _values(4), _values(N)),
    "np.average": (_ndarrays(lambda x, w: mx.np.average(x, axis=0, weights=w)), _values(N, 2) ** 4, _values(N)),
    "np.var": (_ndarrays(lambda x: mx.np.var(x, axis=0)), _values(N, 2)),
    "np.std": (_ndarrays(lambda x: mx.np.std(x, axis=0)), _values(N, 2)),
    "np.linalg.norm": (_ndarrays(lambda x: mx.np.linalg.norm(x, axis=0)), _values(N, 2)),
    "np.nansum": (_ndarrays(lambda x: mx.np.nansum(x, axis=0)), _values(N, 2)),
    "cumsum": (lambda x: mx.nd.cumsum(x, axis=0), _values(N, 2)),
    "L2Normalization": (mx.nd.L2Normalization, 8 * _values(2, N)),
    "L2Normalization of channels": (lambda x: mx.nd.L2Normalization(x, mode="channel"), 8 * _values(1, N, 2)),
    "LayerNorm": (mx.nd.LayerNorm, 4 + _values(3, N), _values(N), _values(N)),
    "LayerNorm of many rows": (mx.nd.LayerNorm, 4 + _values(N, 3), _values(3), _values(3)),
    "GroupNorm": (lambda *x: mx.nd.GroupNorm(*x, num_groups=2), 4 + _values(2, 4, N), _values(2), _values(2)),
    "InstanceNorm": (mx.nd.InstanceNorm, 4 + _values(2, 2, N), _values(2), _values(2)),
    "SpatialTransformer": (
        lambda x, at: mx.nd.SpatialTransformer(
            x, at, target_shape=(3, 40), transform_type="affine", sampler_type="bilinear"
        ),
        _values(1, 1, 3, N) ** 3,
        np.array([[0.9, 0.01, 0.02, 0.01, 0.9, 0.01]]),
    ),
    "add_n": (lambda x: mx.nd.add_n(*[x] * 600), _values(3)),
    "MakeLoss": (lambda x: mx.nd.MakeLoss(x, normalization="valid"), _values(70000)),
    "random_pdf_normal": (lambda x, m, s: mx.nd.random_pdf_normal(x, m, s), _values(2, N), _values(2), _values(2)),
    "random_pdf_dirichlet": (
        lambda x, a: mx.nd.random_pdf_dirichlet(x, a, is_log=True),
        _values(N, 3) / 3,
        3 * _values(3),
    ),
}
#: Which dtype those have that do not have both; whose gradients are added up one by one, or made of rounded steps.
ONLY = {"random_pdf_normal": "float16", "random_pdf_dirichlet": "float16"}
FORWARD_ONLY = {"add_n", "np.average"}


def _run(fn, arrays, dtype, half):
    """Output and gradients, as float64."""
    xs = [mx.nd.array(a, dtype="int64" if a.dtype == int else "float32") for a in arrays]
    floats = [i for i, a in enumerate(arrays) if a.dtype != int]
    for i in floats:
        xs[i] = xs[i].astype(half).astype(dtype)
        xs[i].attach_grad()
    with mx.autograd.record():
        y = fn(*xs)
    y.backward(mx.nd.array(_values(*y.shape, seed=1)).astype(half).astype(y.dtype))
    return [number(a.tostype("default")).astype("float64") for a in (y, *[xs[i].grad for i in floats])]


def units(fn, arrays, dtype, count=None):
    """How far results, so many if told, and gradients are from those of the same numbers in float32, in last places."""
    found, wanted = (_run(fn, arrays, t, dtype) for t in (dtype, "float32"))
    off = [
        # Below 2**-14 float16 has fewer digits.
        (np.abs(a - b) / (np.abs(b) + 0.05 * np.abs(b).max() + 2.0**-14)).max() / UNIT[dtype]
        for a, b in zip(found, wanted)
    ]
    return np.max(off[:count])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_calls_lose_nothing_but_one_rounding(name, dtype):
    fn, *arrays = CALLS[name]
    if ONLY.get(name, dtype) != dtype:
        return
    assert units(fn, arrays, dtype, 1 if name in FORWARD_ONLY else None) < 2


#: name -> function over F: rules of gradients are told dtypes in eager calls only.
BLOCKS = {
    "L2Normalization": (lambda F, x: F.L2Normalization(8 * x), _values(2, N)),
    "SpatialTransformer": (
        lambda F, x, at: F.SpatialTransformer(
            x, at, target_shape=(3, 40), transform_type="affine", sampler_type="bilinear"
        ),
        *CALLS["SpatialTransformer"][1:],
    ),
    "_npi_std": (lambda F, x: F._internal._npi_std(x, axis=0), _values(N, 2)),
}


class _Block(mx.gluon.HybridBlock):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def hybrid_forward(self, F, *xs):
        return self.fn(F, *xs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BLOCKS)
def test_graphs_lose_nothing_either(name, dtype):
    fn, *arrays = BLOCKS[name]
    block = _Block(fn)
    block.hybridize()
    assert units(block, arrays, dtype) < 2
