"""Interleaved attention: against plain products, gradients of any order, refusals."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.testing.gradcheck import check_grads

from .golden.corners import wave

C = mx.nd.contrib


def heads_of(x, heads, slots, slot):
    """One projection as (batch * heads, length, d), as the documentation of the operators writes it."""
    n, b, _ = x.shape
    return x.reshape(n, b, heads, slots, -1)[:, :, :, slot].transpose(1, 2, 0, 3).reshape(b * heads, n, -1)


def joined(y, batch):
    """(batch * heads, length, d) as (length, batch, heads * d)."""
    rows, n, d = y.shape
    return y.reshape(batch, rows // batch, n, d).transpose(2, 0, 1, 3).reshape(n, batch, -1)


@pytest.mark.parametrize("dtype, tol", [("float16", 1e-2), ("float32", 1e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("n, m, batch, heads, d", [(5, 3, 2, 3, 4), (1, 7, 1, 1, 5), (33, 17, 3, 2, 8)])
def test_values(n, m, batch, heads, d, dtype, tol):
    qkv, q, kv = (
        wave(s, i).astype(dtype)
        for i, s in enumerate([(n, batch, heads * 3 * d), (n, batch, heads * d), (m, batch, heads * 2 * d)])
    )
    weights, cross = wave((batch * heads, n, n), 4).astype(dtype), wave((batch * heads, n, m), 5).astype(dtype)
    wide = [x.astype("float64") for x in (qkv, q, kv, weights, cross)]
    a = [mx.nd.array(x, dtype=dtype) for x in (qkv, q, kv, weights, cross)]
    part = heads_of
    cases = [
        (
            C.interleaved_matmul_selfatt_qk(a[0], heads=heads),
            part(wide[0], heads, 3, 0) @ part(wide[0], heads, 3, 1).transpose(0, 2, 1) / d**0.5,
        ),
        (
            C.interleaved_matmul_selfatt_valatt(a[0], a[3], heads=heads),
            joined(wide[3] @ part(wide[0], heads, 3, 2), batch),
        ),
        (
            C.interleaved_matmul_encdec_qk(a[1], a[2], heads=heads),
            part(wide[1], heads, 1, 0) @ part(wide[2], heads, 2, 0).transpose(0, 2, 1) / d**0.5,
        ),
        (
            C.interleaved_matmul_encdec_valatt(a[2], a[4], heads=heads),
            joined(wide[4] @ part(wide[2], heads, 2, 1), batch),
        ),
    ]
    for got, want in cases:
        assert got.dtype == np.dtype(dtype)
        np.testing.assert_allclose(got.asnumpy(), want, rtol=tol, atol=tol)


def test_gradients_through_a_whole_attention():
    def attend(x):
        scores = mx.nd.softmax(C.interleaved_matmul_selfatt_qk(x, heads=2))
        return C.interleaved_matmul_selfatt_valatt(x, scores, heads=2)

    def look(q, kv):
        scores = mx.nd.softmax(C.interleaved_matmul_encdec_qk(q, kv, heads=2))
        return C.interleaved_matmul_encdec_valatt(kv, scores, heads=2)

    check_grads(attend, [wave((4, 2, 12), 1)], order=2)
    check_grads(look, [wave((3, 2, 4), 1), wave((5, 2, 8), 2)], order=2)


def test_gradients_of_large_ones_agree_with_the_body():
    """A size at which several threads share the heads, views as inputs."""
    rs = np.random.RandomState(0)
    x, dy = rs.rand(40, 6, 8 * 3 * 16).astype("f"), rs.rand(48, 40, 40).astype("f")
    q, k = heads_of(x.astype("d"), 8, 3, 0), heads_of(x.astype("d"), 8, 3, 1)
    frame = mx.nd.array(np.concatenate([x, x], 0))
    a = frame[40:]
    a.attach_grad()
    with mx.autograd.record():
        y = C.interleaved_matmul_selfatt_qk(a, heads=8)
    y.backward(mx.nd.array(dy))
    got = a.grad.asnumpy()
    for slot, want in ((0, dy @ k / 4), (1, dy.transpose(0, 2, 1) @ q / 4), (2, 0 * q)):
        np.testing.assert_allclose(heads_of(got, 8, 3, slot), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "name, shapes_in, params, words",
    [
        (
            "selfatt_qk",
            [(3, 2)],
            {"heads": 1},
            r"queries_keys_values must be \(length, batch, 3 \* heads \* d\), got \(3, 2\)",
        ),
        ("selfatt_qk", [(3, 2, 24)], {"heads": 5}, r"multiple of 15 \(5 heads x 3 projections\)"),
        ("selfatt_qk", [(3, 2, 24)], {"heads": 0}, "'heads' must be int >= 1, got 0"),
        ("selfatt_qk", [(3, 2, 24)], {}, "needs parameter 'heads'"),
        ("selfatt_valatt", [(3, 2, 24), (4, 3, 2)], {"heads": 2}, r"attention must be .* \(4, n, 3\).*got \(4, 3, 2\)"),
        ("selfatt_valatt", [(3, 2, 24), (4, 3)], {"heads": 2}, r"attention must be"),
        (
            "encdec_qk",
            [(5, 3, 8), (3, 2, 16)],
            {"heads": 2},
            r"queries \(5, 3, 8\) and keys_values \(3, 2, 16\) differ in the batch",
        ),
        ("encdec_qk", [(5, 2, 8), (3, 2, 24)], {"heads": 2}, "length of a projection"),
        ("encdec_valatt", [(3, 2, 16), (2, 5, 3)], {"heads": 2}, r"attention must be .* \(4, n, 3\)"),
        ("encdec_valatt", [(3, 2, 16)], {"heads": 2}, "attention"),
    ],
)
def test_refusals(name, shapes_in, params, words):
    with pytest.raises(mx.MXNetError, match=words):
        getattr(C, "interleaved_matmul_" + name)(*[mx.nd.ones(s) for s in shapes_in], **params)


def test_integers_are_refused():
    with pytest.raises(TypeError, match="must be floats, got int32"):
        C.interleaved_matmul_selfatt_qk(mx.nd.ones((3, 2, 6), dtype="int32"), heads=1)
