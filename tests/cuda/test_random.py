"""Random numbers on a GPU are the host's, and no word of them comes from there."""

import ml_dtypes
import numpy as np
import pytest

import mxcore as mx
from mxcore.philox import Rng
from mxcore.testing.ways import kernels_reached, reference_bodies
from mxcore_cuda.rng import Philox

#: Operator, shapes of its inputs, parameters, units in the last place that numbers may be off: logarithms and cosines.
DRAWS = [
    ("_random_uniform", [], {"shape": (1,)}, 0),
    ("_random_uniform", [], {"shape": (3, 701), "low": -3.7, "high": 1.1}, 0),
    ("_random_uniform_like", [(2, 13)], {"low": 2, "high": 2.001}, 0),
    ("_random_normal", [], {"shape": (1,)}, 8),
    ("_random_normal", [], {"shape": (41, 51), "loc": 0.3, "scale": 1.7}, 8),
    ("_random_normal_like", [(2, 6)], {}, 8),
    ("_random_randint", [], {"shape": (1001,), "low": -5, "high": 40}, 0),
    ("_random_randint", [], {"shape": (37,), "low": -(2**40), "high": 2**62, "dtype": "int64"}, 0),
    ("_random_randint", [], {"shape": (9001,), "low": 0, "high": 3 * 2**61, "dtype": "int64"}, 0),
    ("Dropout", [(3, 333)], {"p": 0.3}, 0),
    ("Dropout", [(3, 5, 7)], {"p": 0.5, "axes": (1,)}, 0),
    ("Dropout", [(19,)], {"p": 1.0}, 0),
]
DTYPES = "float16", "bfloat16", "float32", "float64"


def drawn(draw, ctx, dtype):
    """Outputs and gradients of a draw."""
    op, shapes, params, _ = draw
    rs = np.random.RandomState(0)
    arrays = [mx.nd.array(rs.uniform(-1, 1, shape), ctx=ctx, dtype=dtype) for shape in shapes]
    if not shapes:
        params = {"dtype": dtype if "randint" not in op else "int32", **params, "ctx": ctx}
    mx.random.seed(1234567890123456789)
    if op != "Dropout":
        return [getattr(mx.nd, op)(*arrays, **params).asnumpy()]
    arrays[0].attach_grad()
    with mx.autograd.record():
        y = mx.nd.Dropout(*arrays, **params)
    y.backward()
    with mx.autograd.record(train_mode=False):
        same = mx.nd.Dropout(*arrays, **params)
    return [y.asnumpy(), arrays[0].grad.asnumpy(), same.asnumpy()]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("draw", DRAWS, ids=lambda draw: f"{draw[0]}-{draw[2].get('shape', draw[1])}")
def test_numbers_are_the_hosts(gpus, draw, dtype):
    found = drawn(draw, gpus[0], dtype)
    with reference_bodies():
        wanted = drawn(draw, mx.cpu(), dtype)
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=0, atol=draw[3] * float(ml_dtypes.finfo(dtype).eps) * 2 if draw[3] else 0)


def test_no_kernel_is_left_out(gpus):
    with kernels_reached() as reached:
        for draw in DRAWS:
            drawn(draw, gpus[0], "float32")
    assert reached >= {draw[0] for draw in DRAWS}


def test_draws_go_on_where_the_one_before_ended(gpus):
    key = 2**64 - 5, 1, 3
    host, device = Rng(mx.cpu().device, key, 0), Philox(gpus[0].device, key, 0)
    for method, *args in [
        ("bits", 3), ("uniform", (5,)), ("bits", 1), ("uniform", (2, 7), np.float64), ("normal", (4,)),
        ("uniform", (0,)), ("bits", 4), ("normal", (7,), np.float64), ("uniform", (33,), np.float16), ("normal", (3,)),
    ]:  # fmt: skip
        a, b = getattr(device, method)(*args), getattr(host, method)(*args)
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(gpus[0].device.to_host(a), b, rtol=0, atol=1e-6 if method == "normal" else 0)


def test_no_word_comes_from_the_host(gpus, monkeypatch):
    sent = []
    monkeypatch.setattr(Rng, "host_bits", lambda rng, n: sent.append(n))
    monkeypatch.setattr(type(gpus[0].device), "from_host", lambda device, a, index: sent.append(a))
    x = mx.nd.random.uniform(shape=(9,), ctx=gpus[0])
    mx.nd.random.gamma(2, 3, shape=(9,), ctx=gpus[0])
    mx.nd.random.shuffle(x)
    with mx.autograd.record():
        mx.nd.Dropout(x)
    mx.nd.waitall()
    assert not sent
