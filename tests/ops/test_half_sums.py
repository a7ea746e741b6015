"""Sums of half precision are added up in float32: one of bfloat16 would stop at 256, one of float16 at 2048."""

import numpy as np
import pytest

import mxcore as mx

N = 5000
DTYPES = ["float16", "bfloat16"]


def array(shape, dtype, value=1.0):
    return mx.nd.full(shape, value, dtype=dtype) if dtype == "float16" else mx.nd.full(shape, value).astype(dtype)


def number(a):
    return a.astype("float32").asnumpy()


SUMS = {
    "sum": (lambda x: mx.nd.sum(x, axis=0), N),
    "sum of all": (lambda x: mx.nd.sum(x), 2 * N),
    "nansum": (lambda x: mx.nd.nansum(x, axis=0), N),
    "mean": (lambda x: mx.nd.mean(x, axis=0), 1),
    "norm 1": (lambda x: mx.nd.norm(x, ord=1, axis=0), N),
    "norm 2": (lambda x: mx.nd.norm(x, ord=2, axis=0), N**0.5),
    "moments": (lambda x: mx.nd.moments(x, axes=(0,))[0], 1),
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
