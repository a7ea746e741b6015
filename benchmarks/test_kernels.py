"""The CPU plugin's kernels beside NumPy, one row each at a size where they are meant to be used."""

from __future__ import annotations

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import tables
from mxcore._core.call import OpContext

jit = pytest.importorskip("mxcore_cpu.jit")
if not jit.available():
    pytest.skip(jit.reason(), allow_module_level=True)

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def softmax_case():
    from mxcore_cpu.kernels.softmax import softmax

    x, out = normal(2000, 1000), np.empty((2000, 1000), "f4")

    def reference():
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    return lambda: softmax(x, out), reference


def tanh_case():
    from mxcore_cpu.kernels.elementwise import unary

    x, out = normal(2_000_000), np.empty(2_000_000, "f4")
    return lambda: unary("tanh", x, out), lambda: np.tanh(x)


def batch_norm_case():
    from mxcore_cpu.kernels.batch_norm import batch_norm

    x, gamma, beta = normal(32, 64, 28, 28), normal(64), normal(64)
    out, mean, var = np.empty_like(x), np.empty_like(gamma), np.empty_like(gamma)

    def reference():
        m, v = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
        return (x - m) / np.sqrt(v + np.float32(1e-3)) * gamma.reshape(-1, 1, 1) + beta.reshape(-1, 1, 1)

    return lambda: batch_norm(x, gamma, beta, out, mean, var, eps=1e-3), reference


def max_pool_case():
    from mxcore_cpu.kernels.pooling import max_pool

    x, out = normal(64, 20, 24, 24), np.empty((64, 20, 12, 12), "f4")
    corners = [x[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)]

    def reference():
        return np.maximum(np.maximum(corners[0], corners[1]), np.maximum(corners[2], corners[3]))

    return lambda: max_pool(x, out, window=(2, 2), stride=(2, 2), pad=(0, 0)), reference


def convolution_case():
    from mxcore_cpu.kernels.convolution import convolution

    x, weight = normal(64, 20, 12, 12), normal(50, 20, 5, 5)
    out = np.empty((64, 50, 8, 8), "f4")
    windows = np.lib.stride_tricks.sliding_window_view(x, (5, 5), (2, 3))

    def reference():
        columns = windows.transpose(0, 1, 4, 5, 2, 3).reshape(64, 500, 64)
        return weight.reshape(50, 500) @ columns

    return lambda: convolution(x, weight, None, out, stride=(1, 1), pad=(0, 0), dilate=(1, 1)), reference


def adam_case():
    from mxcore_cpu.kernels.optimizer import update

    w, g, m, v = normal(400_000), normal(400_000), normal(400_000), abs(normal(400_000))
    f = np.float32

    def reference():
        m[:] = f(0.9) * m + f(0.1) * g
        v[:] = f(0.999) * v + f(0.001) * g * g
        w[:] -= f(1e-3) * m / (np.sqrt(v) + f(1e-8))

    return lambda: update("adam_update", w, g, m, v, lr=1e-3), reference


def embedding_case():
    from mxcore_cpu.kernels.embedding import add_rows

    index, dy, table = rng.integers(0, 10_000, 2000), normal(2000, 128), np.empty((10_000, 128), "f4")

    def reference():
        table[...] = 0
        np.add.at(table, index, dy)

    return lambda: add_rows(dy, index, table), reference


def depthwise_case():
    from mxcore_cpu.kernels.convolution import convolution

    x, weight, out = normal(8, 512, 7, 7), normal(512, 1, 3, 3), np.empty((8, 512, 7, 7), "f4")
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))

    def reference():
        return sum(
            padded[:, :, i : i + 7, j : j + 7] * weight[:, 0, i, j, None, None] for i in range(3) for j in range(3)
        )

    return lambda: convolution(x, weight, None, out, stride=(1, 1), pad=(1, 1), dilate=(1, 1), groups=512), reference


def grouped_case():
    from mxcore_cpu.kernels.convolution import convolution

    x, weight, out = normal(8, 512, 14, 14), normal(512, 16, 3, 3), np.empty((8, 512, 14, 14), "f4")
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))

    def reference():
        columns = windows.transpose(0, 1, 4, 5, 2, 3).reshape(8, 32, 144, 196)
        return weight.reshape(32, 16, 144) @ columns

    return lambda: convolution(x, weight, None, out, stride=(1, 1), pad=(1, 1), dilate=(1, 1), groups=32), reference


def topk_case():
    from mxcore_cpu.kernels.ordering import first_in_order

    x = normal(64, 10_000)

    def reference():
        places = np.argpartition(x, -10, 1)[:, -10:]
        order = np.argsort(-np.take_along_axis(x, places, 1), 1, kind="stable")
        return np.take_along_axis(places, order, 1)

    return lambda: first_in_order(x, 10, -1, False), reference


def sort_case():
    from mxcore_cpu.kernels.ordering import order

    x = normal(2000, 1000)
    return lambda: order(x, -1, True), lambda: np.take_along_axis(x, np.argsort(x, 1, kind="stable"), 1)


def lengths_case():
    from mxcore_cpu.kernels.softmax import softmax_of_lengths

    x, lengths, out = normal(2000, 1000), rng.integers(1, 1000, 2000), np.empty((2000, 1000), "f4")
    outside = np.arange(1000) >= lengths[:, None]

    def reference():
        low = np.where(outside, -np.inf, x)
        e = np.exp(low - low.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    return lambda: softmax_of_lengths(x, lengths, out), reference


def group_norm_case():
    from mxcore_cpu.kernels.normalization import group_norm

    x, gamma, beta = normal(8, 64, 56, 56), normal(8), normal(8)
    out, mean, std = np.empty_like(x), np.empty((8, 8), "f4"), np.empty((8, 8), "f4")

    def reference():
        rows = x.reshape(8, 8, -1)
        d = rows - rows.mean(2, keepdims=True)
        return d / np.sqrt((d * d).mean(2, keepdims=True) + np.float32(1e-5)) * gamma[:, None] + beta[:, None]

    return lambda: group_norm(x, gamma, beta, out, mean, std, eps=1e-5), reference


def _beside_its_body(name, params, *arrays):
    """A kernel beside the operator's body, which is what it replaces."""
    op = tables.ops.get(name)
    p = op.parser(params)
    return lambda: op.body(OpContext(mx.cpu(), True, None, (0, 0, 0)), p, *arrays)


def ctc_case():
    from mxcore.plugin import find_op
    from mxcore_cpu.kernels.ctc import loss_backward

    x, label, dy = normal(100, 32, 80), rng.integers(1, 80, (32, 30)), normal(32)
    out, read = np.empty_like(x), find_op("CTCLoss").facet("helpers").read_labels
    return lambda: loss_backward(dy, x, read(np, x.shape, label, None, None, True), out), _beside_its_body(
        "_backward_ctc_loss", {}, dy, x, label
    )


def gamma_case():
    from mxcore_cpu.device import CPU
    from mxcore_cpu.kernels.variates import gamma

    alpha = rng.random(1000) * 3
    return lambda: gamma(CPU().rng((0, 0, 0), 0), alpha, 1000), _beside_its_body(
        "_sample_gamma", {"shape": 1000}, alpha, np.ones(1000)
    )


def erfinv_case():
    from mxcore_cpu.kernels.elementwise import unary

    x, out = np.tanh(normal(1_000_000)), np.empty(1_000_000, "f4")
    return lambda: unary("erfinv", x, out), _beside_its_body("erfinv", {}, x)


def gelu_case():
    from mxcore_cpu.kernels.elementwise import activation

    x, out = normal(512, 1024), np.empty((512, 1024), "f4")
    return lambda: activation("gelu", x, out), _beside_its_body("LeakyReLU", {"act_type": "gelu"}, x)


def gelu_gradient_case():
    from mxcore_cpu.kernels.elementwise import activation_backward

    x, dy, out = normal(512, 1024), normal(512, 1024), np.empty((512, 1024), "f4")
    return lambda: activation_backward("gelu", dy, x, out), _beside_its_body(
        "_backward_LeakyReLU", {"act_type": "gelu"}, dy, x
    )


def triangular_case():
    from mxcore_cpu.kernels.triangular import solve

    a, b = np.tril(normal(2000, 8, 8)) + 8 * np.eye(8, dtype="f4"), normal(2000, 8, 8)
    out = np.empty_like(b)
    return lambda: solve(a, b, out), _beside_its_body("_linalg_trsm", {}, a, b)


def transpose_case():
    from mxcore_cpu.kernels.layout import transpose

    x, out = normal(1500, 1000), np.empty((1000, 1500), "f4")
    return lambda: transpose(x, (1, 0), out), lambda: np.ascontiguousarray(x.T)


def response_case():
    from mxcore_cpu.kernels.response import local_response

    x, out = normal(32, 64, 28, 28), np.empty((32, 64, 28, 28), "f4")

    def reference():
        square = np.pad(x * x, ((0, 0), (2, 2), (0, 0), (0, 0)))
        near = sum(square[:, i : i + 64] for i in range(5))
        return x * (2 + np.float32(2e-5) * near) ** np.float32(-0.75)

    return lambda: local_response(x, out, nsize=5, alpha=1e-4, beta=0.75, knorm=2.0), reference


def many_case():
    from mxcore_cpu.kernels.many import move

    shapes = [(64, 3, 7, 7), *[(64,), (64,), (64, 64, 3, 3)] * 4, *[(256,), (256,), (256, 256, 3, 3)] * 4]
    groups = [[normal(*s) for _ in range(3)] for s in shapes]
    rates, f = {"lr": [0.1] * len(groups), "wd": [1e-4] * len(groups)}, np.float32

    def reference():
        for w, g, m in groups:
            m[:] = f(0.9) * m - f(0.1) * (g + f(1e-4) * w)
            w += m

    return lambda: move(
        "sgd_mom", groups, rates, nesterov=False, momentum=0.9, rescale_grad=1.0, clip_gradient=-1.0
    ), reference


CASES = (
    softmax_case,
    tanh_case,
    batch_norm_case,
    max_pool_case,
    convolution_case,
    adam_case,
    embedding_case,
    depthwise_case,
    grouped_case,
    topk_case,
    sort_case,
    lengths_case,
    group_norm_case,
    ctc_case,
    gamma_case,
    erfinv_case,
    gelu_case,
    gelu_gradient_case,
    triangular_case,
    transpose_case,
    response_case,
    many_case,
)


@pytest.mark.parametrize("case", CASES, ids=lambda f: f.__name__.removesuffix("_case"))
@pytest.mark.backends("cpu")
def test_kernel(compare, ctx, case):
    ours, reference = case()
    name = case.__name__.removesuffix("_case").replace("_", " ")
    assert compare(f"kernel: {name}", ours, reference, rounds=7, at_most=1.0) > 0
