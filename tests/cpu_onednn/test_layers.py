"""Local response normalization, and layers over eight bits, which take instructions that a processor may not have."""

import numpy as np
import pytest

import mxcore as mx
from mxcore._core.call import op_context
from mxcore.plugin import find_op
from mxcore_onednn import eight_bits, rules
from mxcore_onednn.convolution import Geometry
from mxcore_onednn.library import ISA_AVX2, ISA_AVX512, ISA_VNNI
from tests.cpu_onednn.support import KERNELS, check_close, numbers, run, taken


def test_local_response():
    x = numbers(0, (2, 16, 5, 6))[0]
    y = np.empty_like(x)
    check_close([y], run("LRN", {"nsize": 5, "alpha": 0.1, "beta": 0.75, "knorm": 2.0}, [x], [y]))
    assert not taken("LRN", {"nsize": 5}, [x[0]])  # of rank 3


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_products_of_many_matrices(turned):
    lhs, rhs = numbers(0, (3, 40, 24), (3, 24, 56))
    lhs, rhs = (np.ascontiguousarray(a.transpose(0, 2, 1)) if t else a for a, t in zip((lhs, rhs), turned))
    params = dict(zip(("transpose_a", "transpose_b"), turned))
    y = np.full((3, 40, 56), np.nan, np.float32)
    check_close([y], run("batch_dot", params, [lhs, rhs], [y]))
    y = np.full((3, 40, 112), np.nan, np.float32)[..., ::2]
    strided = np.repeat(lhs, 2, axis=2)[..., ::2]
    check_close([y], run("batch_dot", params, [strided, rhs], [y]))


def test_products_that_are_left_to_blas():
    small, large, one = (2, 8, 8), (2, 512, 512), (1, 64, 64)
    for shape, wanted in ((small, False), (large, False), (one, False), ((2, 64, 64), True)):
        assert taken("batch_dot", {}, [np.empty(shape, np.float32)] * 2) is wanted


LAYERS = [
    (
        "_contrib_quantized_conv",
        dict(kernel=(3, 2), num_filter=16, stride=(2, 1), pad=(1, 0)),
        (2, 24, 7, 6),
        (16, 24, 3, 2),
    ),
    ("_contrib_quantized_conv", dict(kernel=(1, 1), num_filter=8), (3, 8, 4, 4), (8, 8, 1, 1)),
    ("_contrib_quantized_conv", dict(kernel=(2, 2, 2), num_filter=8), (1, 16, 3, 4, 3), (8, 16, 2, 2, 2)),
    ("_contrib_quantized_fully_connected", dict(num_hidden=16), (4, 8, 3), (16, 24)),
    ("_contrib_quantized_fully_connected", dict(num_hidden=8, flatten=False), (4, 2, 64), (8, 64)),
]


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("name, params, data, weight", LAYERS)
def test_eight_bits_to_the_last_integer(monkeypatch, name, params, data, weight, biased):
    """Weights so small that sums of two products fit 16 bits, which is all that a processor without VNNI can do."""
    monkeypatch.setattr(eight_bits, "_sums", lambda: True)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, data).astype(np.uint8)
    w = rng.integers(-60, 61, weight).astype(np.int8)
    ends = [np.full(1, v, np.float32) for v in (0, 1, -2, 1, -0.3, 0.2)]
    ins = [
        x,
        w,
        *([rng.integers(-128, 128, weight[:1]).astype(np.int8)] if biased else []),
        *ends[: 6 if biased else 4],
    ]
    op, k = find_op(name), op_context(mx.cpu(), False)
    p = op.parse({**params, "no_bias": not biased})
    want = op.body(k, p, *ins)
    outs = [np.full(v.shape, 7, v.dtype) for v in want]
    assert taken(name, {**params, "no_bias": not biased}, ins)
    KERNELS[name].fn(k, p, outs, *ins)
    for found, v in zip(outs, want):
        np.testing.assert_array_equal(found, v)


def test_eight_bits_only_where_sums_are_exact(monkeypatch):
    ins = [np.zeros((2, 600), np.uint8), np.zeros((8, 600), np.int8), *[np.zeros(1, np.float32)] * 4]
    params = dict(num_hidden=8, no_bias=True)
    name = "_contrib_quantized_fully_connected"
    for vnni in (False, True):
        monkeypatch.setattr(eight_bits, "_sums", lambda vnni=vnni: vnni)
        assert not taken(name, params, ins)
        assert taken(name, params, [ins[0][:, :500].copy(), ins[1][:, :500].copy(), *ins[2:]]) is vnni
        assert taken(name, params, [ins[0].astype(np.int8), *ins[1:]]) is vnni


def test_instructions_that_sum_eight_bits(monkeypatch):
    class Library:
        def __init__(self, isa):
            self.isa = isa

    monkeypatch.setattr(eight_bits, "library", lambda: Library(ISA_VNNI[0]))
    monkeypatch.delenv("MXCORE_ONEDNN_INT8", raising=False)
    assert not eight_bits._sums()  # nobody asked for it
    monkeypatch.setenv("MXCORE_ONEDNN_INT8", "1")
    for isa, sums in ((ISA_AVX2, False), (ISA_AVX512, False), (ISA_VNNI[0], True), (ISA_VNNI[1], True)):
        monkeypatch.setattr(eight_bits, "library", lambda isa=isa: Library(isa))
        assert eight_bits._sums() is sums
    monkeypatch.setattr(eight_bits, "library", lambda: None)
    assert not eight_bits._sums()


def test_the_rules():
    """Rows of the measured table: which parts are the library's, by instructions."""

    def parts(isa, src, weight, dst, stride=1, groups=1):
        n = len(src) - 2
        g = Geometry(src, weight, dst, (stride,) * n, (0,) * n, (1,) * n, groups)
        return "".join(piece[0] for piece in ("forward", "data", "weight") if rules.pays(isa, piece, g))

    for src, weight, dst, stride, groups, narrow, wide in (
        ((16, 64, 56, 56), (64, 64, 3, 3), (16, 64, 54, 54), 1, 1, "fdw", "fdw"),
        ((16, 3, 224, 224), (64, 3, 7, 7), (16, 64, 112, 112), 2, 1, "fw", "fw"),
        ((16, 64, 56, 56), (128, 64, 3, 3), (16, 128, 28, 28), 2, 1, "fdw", "fdw"),
        ((16, 64, 56, 56), (256, 64, 1, 1), (16, 256, 56, 56), 1, 1, "", "fdw"),
        ((16, 512, 7, 7), (2048, 512, 1, 1), (16, 2048, 7, 7), 1, 1, "f", "fdw"),
        ((16, 512, 9, 9), (512, 512, 3, 3), (16, 512, 7, 7), 1, 1, "fd", "fdw"),
        ((16, 96, 56, 56), (96, 1, 3, 3), (16, 96, 54, 54), 1, 96, "fd", "fd"),
        ((64, 1, 28, 28), (20, 1, 5, 5), (64, 20, 24, 24), 1, 1, "f", "fw"),
    ):
        assert (
            parts(ISA_AVX2, src, weight, dst, stride, groups),
            parts(ISA_AVX512, src, weight, dst, stride, groups),
        ) == (narrow, wide)
