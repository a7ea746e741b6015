"""Local response normalization, and layers over eight bits, which take instructions that a processor may not have."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore._core.call import op_context
from mxcore.executor import CachedOp
from mxcore.plugin import find_op
from mxcore_onednn import calls, eight_bits, plan, rules
from mxcore_onednn.convolution import Geometry
from mxcore_onednn.library import ISA_AVX2, ISA_AVX512, ISA_BFLOAT16, ISA_VNNI, Refused, library
from tests.cpu_onednn.support import (
    HYPOTHESIS,
    KERNELS,
    bfloat16,
    check_close,
    check_rounded,
    computed,
    numbers,
    run,
    strided,
    taken,
)


def test_local_response():
    x = numbers(0, (2, 16, 5, 6))[0]
    y = np.empty_like(x)
    check_close([y], run("LRN", {"nsize": 5, "alpha": 0.1, "beta": 0.75, "knorm": 2.0}, [x], [y]))
    assert not taken("LRN", {"nsize": 5}, [x[0]])  # of rank 3


@pytest.mark.usefixtures("always")
@HYPOTHESIS
@given(
    shape=st.tuples(st.integers(1, 3), st.sampled_from([16, 24, 32, 40]), st.integers(1, 7), st.integers(1, 7)),
    alpha=st.sampled_from([1e-4, 0.1, 1.0]),
    knorm=st.sampled_from([1.0, 2.0]),
    apart=st.booleans(),
    seed=st.integers(0, 99),
)
def test_local_response_of_any_size(shape, alpha, knorm, apart, seed):
    params = dict(nsize=5, alpha=alpha, beta=0.75, knorm=knorm)
    (x,) = numbers(seed, shape)
    y = np.full(shape, np.nan, np.float32)
    check_close([y], run("LRN", params, [strided(x) if apart else x], [y]))
    if library().isa & ISA_BFLOAT16 == ISA_BFLOAT16:
        half = x.astype(bfloat16())
        z = np.full_like(half, 7)
        check_rounded([z], computed("LRN", params, [strided(half) if apart else half], [z]))


EIGHT_BITS = pytest.mark.skipif(not eight_bits._sums(), reason="this processor sums no products of eight bits")
CONVOLUTION, DENSE = "_contrib_quantized_conv", "_contrib_quantized_fully_connected"
LAYERS = [
    (CONVOLUTION, dict(kernel=(3, 2), num_filter=16, stride=(2, 1), pad=(1, 0)), (2, 24, 7, 6), (16, 24, 3, 2)),
    (CONVOLUTION, dict(kernel=(1, 1), num_filter=8), (3, 8, 4, 4), (8, 8, 1, 1)),
    (CONVOLUTION, dict(kernel=(2, 2, 2), num_filter=8), (1, 16, 3, 4, 3), (8, 16, 2, 2, 2)),
    (CONVOLUTION, dict(kernel=(5, 5), num_filter=20), (4, 1, 28, 28), (20, 1, 5, 5)),
    (CONVOLUTION, dict(kernel=(3, 3), num_filter=24, pad=(2, 1), dilate=(2, 1)), (2, 512, 7, 5), (24, 512, 3, 3)),
    (CONVOLUTION, dict(kernel=(1, 1), num_filter=33, stride=(2, 2)), (1, 2050, 3, 3), (33, 2050, 1, 1)),
    (CONVOLUTION, dict(kernel=(2, 2, 2), num_filter=9, pad=(1, 1, 1)), (1, 130, 2, 3, 2), (9, 130, 2, 2, 2)),
    (DENSE, dict(num_hidden=16), (4, 8, 3), (16, 24)),
    (DENSE, dict(num_hidden=8, flatten=False), (4, 2, 64), (8, 64)),
    (DENSE, dict(num_hidden=10), (3, 4099), (10, 4099)),
    (DENSE, dict(num_hidden=17), (70, 2048), (17, 2048)),
    (DENSE, dict(num_hidden=3), (1, 140000), (3, 140000)),  # sums wrap around
]
#: What arrays of eight bits are drawn from: the last number alone, the first, both, all.
NUMBERS = {
    "last": lambda rng, ends, shape: np.full(shape, ends.max),
    "first": lambda rng, ends, shape: np.full(shape, ends.min or 1),
    "ends": lambda rng, ends, shape: rng.choice([ends.min, ends.max], shape),
    "large": lambda rng, ends, shape: rng.integers(ends.max - 30, ends.max, shape, endpoint=True),
    "all": lambda rng, ends, shape: rng.integers(ends.min, ends.max, shape, endpoint=True),
}


def eight(rng, kind, dtype, shape):
    return NUMBERS[kind](rng, np.iinfo(dtype), shape).astype(dtype)


def check_exact(name, params, ins, outs=None, k=None):
    """All outputs of the kernel are the body's, to the last bit."""
    op, plain = find_op(name), op_context(mx.cpu(), False)
    p = op.parse(params)
    want = op.body(plain, p, *ins)
    outs = outs or [np.full(v.shape, 7, v.dtype) for v in want]
    assert taken(name, params, ins)
    KERNELS[name].fn(k or plain, p, outs, *ins)
    for found, v in zip(outs, want):
        np.testing.assert_array_equal(found, v)


def ranges(n):
    return [np.full(1, v, np.float32) for v in (0, 1, -2, 1, -0.3, 0.2)[:n]]


@EIGHT_BITS
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("name, params, data, weight", LAYERS)
def test_eight_bits_to_the_last_integer(name, params, data, weight, dtype):
    """Also where sums are beyond what float32 holds, and where data are signed and padded."""
    rng = np.random.default_rng(0)
    for kinds in itertools.product(NUMBERS, NUMBERS):
        x, w = (eight(rng, kind, t, shape) for kind, t, shape in zip(kinds, (dtype, "int8"), (data, weight)))
        check_exact(name, {**params, "no_bias": True}, [x, w, *ranges(4)])
    bias = rng.integers(-128, 128, weight[:1]).astype(np.int8)
    check_exact(name, {**params, "no_bias": False}, [x, w, bias, *ranges(6)])


@st.composite
def quantised(draw):
    """A convolution over eight bits: its parameters, shapes, dtype, and what its numbers are drawn from."""
    n = draw(st.sampled_from([2, 2, 2, 3]))
    kernel, stride, dilate = (tuple(draw(st.integers(1, most)) for _ in range(n)) for most in (4, 3, 2))
    pad = tuple(draw(st.integers(0, 3)) for _ in range(n))
    size = tuple(max(1, d * (w - 1) + 1 - 2 * b) + draw(st.integers(0, 5)) for w, d, b in zip(kernel, dilate, pad))
    channels, filters = draw(st.sampled_from([1, 3, 4, 17, 64, 200, 513])), draw(st.sampled_from([1, 5, 16, 20, 64]))
    params = dict(kernel=kernel, stride=stride, dilate=dilate, pad=pad, num_filter=filters)
    kinds = [draw(st.sampled_from(sorted(NUMBERS))) for _ in range(2)]
    dtype, least = draw(st.sampled_from(["int8", "uint8"])), draw(st.sampled_from([1e-6, 1e-3, 1.0]))
    return params, (draw(st.integers(1, 3)), channels, *size), (filters, channels, *kernel), dtype, kinds, least


@EIGHT_BITS
@settings(max_examples=80, deadline=None)
@given(case=quantised(), biased=st.booleans(), seed=st.integers(0, 99))
def test_convolutions_over_eight_bits(case, biased, seed):
    """Biases, too, small and so large that no float32 holds a sum with them."""
    params, data, weight, dtype, kinds, least = case
    rng = np.random.default_rng(seed)
    x, w = (eight(rng, kind, t, shape) for kind, t, shape in zip(kinds, (dtype, "int8"), (data, weight)))
    ins = [x, w, *([eight(rng, "all", "int8", weight[:1])] if biased else []), *ranges(6 if biased else 4)]
    ins[-1 if biased else 3] = np.full(1, 1 / least, np.float32)  # a wide range of the bias: many steps
    check_exact(CONVOLUTION, {**params, "no_bias": not biased}, ins)


@EIGHT_BITS
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_eight_bits_of_any_layout(dtype):
    rng = np.random.default_rng(1)
    x, w = eight(rng, "all", dtype, (6, 3, 20)), eight(rng, "all", "int8", (20, 24))
    outs = [np.zeros((6, 3, 48), np.int32)[..., ::2], *(np.zeros(1, np.float32) for _ in range(2))]
    ins = [x[::2], w.T, *ranges(4)]
    check_exact(DENSE, dict(num_hidden=24, flatten=False, no_bias=True), ins, [outs[0][:3], *outs[1:]])
    x, w = eight(rng, "all", dtype, (2, 5, 6, 600)), eight(rng, "all", "int8", (8, 600, 3, 3))
    outs[0] = np.zeros((2, 8, 5, 12), np.int32)[..., ::2]
    ins = [x.transpose(0, 3, 1, 2), w[:, :, ::-1], *ranges(4)]
    check_exact(CONVOLUTION, dict(kernel=(3, 3), pad=(1, 1), num_filter=8, no_bias=True), ins, outs)


@EIGHT_BITS
def test_weights_of_eight_bits_are_kept_until_somebody_writes(provider):
    """With what signed data need of them."""
    rng = np.random.default_rng(2)
    sym = mx.sym.contrib.quantized_fully_connected(
        *map(mx.sym.Variable, ("x", "w", "low", "high", "least", "most")), num_hidden=8, no_bias=True
    )
    op = CachedOp(sym)
    x, w = (mx.nd.array(eight(rng, "all", "int8", shape), dtype="int8") for shape in ((5, 600), (8, 600)))
    for _ in range(2):
        for _ in range(4):
            found = op(x, w, *(mx.nd.array(a) for a in ranges(4)))[0].asnumpy()
            np.testing.assert_array_equal(found, x.asnumpy().astype(np.int32) @ w.asnumpy().astype(np.int32).T)
        w[:] = mx.nd.array(eight(rng, "all", "int8", (8, 600)), dtype="int8")


@EIGHT_BITS
def test_where_the_library_has_no_memory_sums_are_others(monkeypatch):
    def fails(self, *arrays, **further):
        raise Refused("oneDNN: out of memory")

    rng = np.random.default_rng(3)
    monkeypatch.setattr(calls, "_told", set())
    for name, params, data, weight in LAYERS[:1] + LAYERS[7:8]:
        x, w, b = (eight(rng, "all", "int8", s) for s in (data, weight, weight[:1]))
        assert taken(name, params, [x, w, b, *ranges(6)])
        with monkeypatch.context() as patch:
            patch.setattr(plan.Plan, "run", fails)
            check_exact(name, params, [x, w, b, *ranges(6)])


def test_a_library_whose_sums_are_not_whole_gets_none(monkeypatch):
    """One that puts sums through float32 before they are written is found out."""

    class Rounding:
        def run(self, data, weight, found):
            found[...] = (data.reshape(2, -1).astype(np.float32) @ weight.reshape(16, -1).T.astype(np.float32)) // 2 * 2

    monkeypatch.setattr(eight_bits, "_dense_plan", lambda *shape: Rounding())
    assert not eight_bits._whole.__wrapped__()


def test_instructions_that_sum_eight_bits(monkeypatch):
    class Library:
        def __init__(self, isa):
            self.isa = isa

    monkeypatch.setattr(eight_bits, "_whole", lambda: True)
    monkeypatch.delenv("MXCORE_ONEDNN_INT8", raising=False)
    for isa, sums in ((ISA_AVX2, False), (ISA_AVX512, False), (ISA_VNNI[0], True), (ISA_VNNI[1], True)):
        monkeypatch.setattr(eight_bits, "library", lambda isa=isa: Library(isa))
        assert eight_bits._sums() is sums
    monkeypatch.setenv("MXCORE_ONEDNN_INT8", "0")
    assert not eight_bits._sums()  # nobody wants it
    monkeypatch.delenv("MXCORE_ONEDNN_INT8")
    monkeypatch.setattr(eight_bits, "library", lambda: None)
    assert not eight_bits._sums()


def test_the_rules(monkeypatch):
    """Rows of the measured tables: which parts are the library's, by its instructions, and those of BLAS."""

    def parts(isa, core, src, weight, dst, stride=1, groups=1):
        monkeypatch.setattr(rules, "blas_core", lambda: core)
        n = len(src) - 2
        g = Geometry(src, weight, dst, (stride,) * n, (0,) * n, (1,) * n, groups)
        return "".join(piece[0] for piece in ("forward", "data", "weight") if rules.pays(isa, piece, g))

    for src, weight, dst, stride, groups, *wanted in (
        ((16, 64, 56, 56), (64, 64, 3, 3), (16, 64, 54, 54), 1, 1, "fdw", "fdw", "fdw"),
        ((16, 3, 224, 224), (64, 3, 7, 7), (16, 64, 112, 112), 2, 1, "fw", "fw", "fw"),
        ((16, 64, 56, 56), (128, 64, 3, 3), (16, 128, 28, 28), 2, 1, "fdw", "fdw", "fdw"),
        ((16, 64, 56, 56), (256, 64, 1, 1), (16, 256, 56, 56), 1, 1, "", "dw", ""),
        ((1, 64, 56, 56), (256, 64, 1, 1), (1, 256, 56, 56), 1, 1, "", "fdw", "w"),
        ((16, 144, 56, 56), (24, 144, 1, 1), (16, 24, 56, 56), 1, 1, "", "", ""),
        ((1, 144, 56, 56), (24, 144, 1, 1), (1, 24, 56, 56), 1, 1, "", "dw", "w"),
        ((16, 512, 7, 7), (2048, 512, 1, 1), (16, 2048, 7, 7), 1, 1, "f", "fdw", "fdw"),
        ((1, 2048, 7, 7), (512, 2048, 1, 1), (1, 512, 7, 7), 1, 1, "f", "fd", "fd"),
        ((16, 512, 9, 9), (512, 512, 3, 3), (16, 512, 7, 7), 1, 1, "fd", "fdw", "fdw"),
        ((1, 512, 9, 9), (512, 512, 3, 3), (1, 512, 7, 7), 1, 1, "fd", "fd", "fd"),
        ((16, 96, 56, 56), (96, 1, 3, 3), (16, 96, 54, 54), 1, 96, "fd", "", ""),
        ((1, 96, 56, 56), (96, 1, 3, 3), (1, 96, 54, 54), 1, 96, "fd", "dw", "dw"),
        ((1, 96, 56, 56), (96, 1, 5, 5), (1, 96, 52, 52), 1, 96, "fd", "d", "d"),
        ((16, 960, 7, 7), (960, 1, 3, 3), (16, 960, 7, 7), 1, 960, "fd", "fdw", "fdw"),
        ((16, 256, 14, 14), (256, 8, 3, 3), (16, 256, 14, 14), 1, 32, "fdw", "", ""),
        ((16, 512, 14, 14), (512, 16, 3, 3), (16, 512, 14, 14), 1, 32, "fdw", "fdw", "fdw"),
        ((64, 1, 28, 28), (20, 1, 5, 5), (64, 20, 24, 24), 1, 1, "f", "fw", "w"),
    ):
        found = [
            parts(isa, core, src, weight, dst, stride, groups)
            for isa, core in (
                (ISA_AVX2, "Haswell"),
                (ISA_AVX512, "Haswell"),
                (ISA_AVX512, "SkylakeX"),
                (ISA_AVX512, ""),
            )
        ]
        assert found == [*wanted, wanted[-1]]
