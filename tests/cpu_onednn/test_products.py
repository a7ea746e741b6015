"""Products of matrices and fully connected layers, in float32 and in bfloat16."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mxcore as mx
from mxcore import autograd
from mxcore._core.call import op_context
from mxcore.executor import CachedOp
from mxcore_onednn import calls, plan, products, rules
from mxcore_onednn.library import ISA_AVX2, ISA_AVX512, ISA_BFLOAT16, Refused, library
from tests.cpu_onednn.support import (
    BFLOAT16,
    HYPOTHESIS,
    bfloat16,
    check_close,
    check_halves,
    check_rounded,
    computed,
    halves,
    numbers,
    reference,
    run,
    strided,
    taken,
    watch_kept,
)

TURNS = [(False, False), (True, False), (False, True), (True, True)]


def turned(arrays, turns):
    return [np.ascontiguousarray(a.swapaxes(-1, -2)) if t else a for a, t in zip(arrays, turns)]


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("turns", TURNS)
def test_products(turns):
    params = dict(zip(("transpose_a", "transpose_b"), turns))
    for name, shapes in (("batch_dot", ((3, 40, 24), (3, 24, 56))), ("dot", ((40, 24), (24, 56)))):
        lhs, rhs = turned(numbers(0, *shapes), turns)
        shape = (*shapes[0][:-1], 56)
        y = np.full(shape, np.nan, np.float32)
        check_close([y], run(name, params, [lhs, rhs], [y]))
        y = np.full((*shape[:-1], 112), np.nan, np.float32)[..., ::2]
        strided = np.repeat(lhs, 2, axis=-1)[..., ::2]
        check_close([y], run(name, params, [strided, rhs], [y]))


#: Few, and some that fill vectors and blocks.
SIZES = st.one_of(st.integers(1, 9), st.sampled_from([16, 31, 33, 64, 70]))
DTYPES = st.sampled_from(["float32"] + ["bfloat16"] * (library().isa & ISA_BFLOAT16 == ISA_BFLOAT16))


def made(dtype, seed, *shapes):
    """Numbers, and how results of such are compared."""
    if dtype == "float32":
        return numbers(seed, *shapes), run, check_close
    return halves(seed, *shapes), computed, check_halves


@pytest.fixture
def any_dtype(always, monkeypatch):
    """The library multiplies all that it has code for."""
    monkeypatch.setattr(products, "multiplies", lambda isa, *facts: True)


@pytest.mark.usefixtures("any_dtype")
@HYPOTHESIS
@given(
    dtype=DTYPES,
    batch=st.integers(1, 5),
    m=SIZES,
    n=SIZES,
    inner=SIZES,
    turns=st.sampled_from(TURNS),
    seed=st.integers(0, 99),
    apart=st.booleans(),
)
def test_products_of_any_size(dtype, batch, m, n, inner, turns, seed, apart):
    params = dict(zip(("transpose_a", "transpose_b"), turns))
    for name, first in (("batch_dot", (batch,)), ("dot", ())):
        arrays, compute, check = made(dtype, seed, (*first, m, inner), (*first, inner, n))
        lhs, rhs = turned(arrays, turns)
        if apart:
            rhs = strided(rhs)
        y = np.full((*first, m, n), 7, lhs.dtype)
        if first == (1,):
            assert not taken(name, params, [lhs, rhs])  # that is a product of two matrices
        else:
            check([y], compute(name, params, [lhs, rhs], [y]))


@pytest.mark.usefixtures("any_dtype")
@HYPOTHESIS
@given(
    dtype=DTYPES,
    first=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    inner=SIZES,
    hidden=SIZES,
    biased=st.booleans(),
    flatten=st.booleans(),
    seed=st.integers(0, 99),
    apart=st.booleans(),
)
def test_fully_connected_of_any_size(dtype, first, inner, hidden, biased, flatten, seed, apart):
    data, out = (*first, inner), (*first, hidden)
    if flatten:
        data, out = (first[0], *first[1:], inner), (first[0], hidden)
    size = inner * (int(np.prod(first[1:])) if flatten else 1)
    (x, w, b, dy), compute, check = made(dtype, seed, data, (hidden, size), (hidden,), out)
    params = dict(num_hidden=hidden, flatten=flatten, no_bias=not biased)
    ins, y = [strided(x) if apart else x, w, b][: 2 + biased], np.full(out, 7, x.dtype)
    check([y], compute("FullyConnected", params, ins, [y]))
    outs = [np.full_like(a, 7) for a in (x, w, b)[: 2 + biased]]
    check(outs, compute("_backward_FullyConnected", params, [dy, x, w], outs))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("data, flatten", [((5, 4, 6), True), ((5, 3, 24), False), ((1, 24), True)])
def test_fully_connected(data, flatten, biased):
    x, w, b = numbers(1, data, (7, 24), (7,))
    out = (*data[:-1], 7) if not flatten else (data[0], 7)
    params = dict(num_hidden=7, flatten=flatten, no_bias=not biased)
    ins = [x, w, b] if biased else [x, w]
    y = np.full((*out[:-1], 14), np.nan, np.float32)[..., ::2]
    check_close([y], run("FullyConnected", params, ins, [y]))
    (dy,) = numbers(2, out)
    for wanted in ((True, True, True), (True, False, True), (False, True, False)):
        outs = [np.full_like(a, np.nan) if want else None for a, want in zip((x, w, b), wanted)][: len(ins)]
        check_close(outs, run("_backward_FullyConnected", params, [dy, x, w], outs))


@pytest.mark.usefixtures("always")
def test_where_the_library_fails_others_multiply(monkeypatch):
    def fails(self, *arrays, **further):
        raise Refused("oneDNN: out of memory")

    monkeypatch.setattr(plan.Plan, "run", fails)
    monkeypatch.setattr(calls, "_told", set())
    x, w, dy = numbers(3, (5, 2, 12), (7, 24), (5, 7))
    params = dict(num_hidden=7, no_bias=True)
    y = np.zeros((5, 14), np.float32)[:, ::2]
    check_close([y], run("FullyConnected", params, [x, w], [y]))
    outs = [np.zeros((5, 2, 24), np.float32)[..., ::2], np.zeros_like(w)]
    check_close(outs, run("_backward_FullyConnected", params, [dy, x, w], outs))


@pytest.mark.usefixtures("provider", "always")
def test_weights_are_kept_until_somebody_writes(monkeypatch):
    seen = watch_kept(monkeypatch)
    x, w, b = (mx.nd.array(a) for a in numbers(4, (5, 300), (64, 300), (64,)))
    symbol = mx.sym.FullyConnected(*map(mx.sym.Variable, "xwb"), num_hidden=64)
    op = CachedOp(symbol)
    for _ in range(2):
        want = reference("FullyConnected", dict(num_hidden=64), *(a.asnumpy() for a in (x, w, b)))
        del seen[:]
        for _ in range(4):
            check_close([op(x, w, b).asnumpy()], want)
        assert not seen[0] and seen[2:] == [plan_reorders()] * 2
        w *= 0.5


def plan_reorders():
    """Whether the library likes the weight in another layout."""
    made = products._plan((5, 300), (64, 300), (False, True), "float32", True, True)
    return bool(made.keeps)


# -- bfloat16 -------------------------------------------------------------------------------------------------------
@BFLOAT16
@pytest.mark.parametrize("biased", [False, True])
def test_bfloat16(monkeypatch, biased):
    monkeypatch.setattr(products, "multiplies", lambda *facts: True)
    t = bfloat16()
    x, w, b, dy = (a.astype(t) for a in numbers(5, (33, 70), (20, 70), (20,), (33, 20)))
    params, ins = dict(num_hidden=20, no_bias=not biased), [x, w, b] if biased else [x, w]
    y = np.zeros((33, 20), t)
    check_halves([y], computed("FullyConnected", params, ins, [y]))
    outs = [np.zeros_like(a) for a in ins]
    check_halves(outs, computed("_backward_FullyConnected", params, [dy, x, w], outs))
    for turns in TURNS:
        y = np.zeros((33, 20), t)
        lhs, rhs = turned([x, np.ascontiguousarray(w.T)], turns)
        check_halves([y], computed("dot", dict(zip(("transpose_a", "transpose_b"), turns)), [lhs, rhs], [y]))


@BFLOAT16
def test_biases_of_many_rows(monkeypatch):
    """Their gradients are added up in float32, whoever computes the others."""
    monkeypatch.setattr(products, "multiplies", lambda *facts: True)
    dy, x, w = halves(7, (9000, 5), (9000, 3), (5, 3))
    dy = np.abs(dy)  # in bfloat16 the sum would stop at 256
    out = np.zeros(5, bfloat16())
    want = computed("_backward_FullyConnected", dict(num_hidden=5), [dy, x, w], [None, None, out])
    check_rounded([out], want[2:])


def test_dtypes_that_are_not_alike(monkeypatch):
    monkeypatch.setattr(products, "multiplies", lambda *facts: True)
    t = bfloat16()
    for one, two in ((t, "f4"), ("f4", t), ("f2", "f2"), ("f8", "f8")):
        assert not taken("dot", {}, [np.zeros((9, 9), one), np.zeros((9, 9), two)])


@BFLOAT16
@pytest.mark.usefixtures("provider")
def test_a_layer_in_bfloat16_learns(monkeypatch):
    """Eager and compiled, with gradients, beside float32."""
    monkeypatch.setattr(products, "multiplies", lambda *facts: True)
    net = mx.gluon.nn.Dense(16, in_units=24)
    net.initialize(mx.init.Normal(0.3))
    x = mx.nd.array(numbers(6, (8, 24))[0])

    def step(dtype):
        net.cast(dtype)
        with autograd.record():
            y = net(x.astype(dtype))
        y.backward()
        return [a.astype("float32").asnumpy() for a in (y, net.weight.grad(), net.bias.grad())]

    for hybrid in (False, True):
        net.hybridize(hybrid)
        for a, b in zip(step("bfloat16"), step("float32")):
            np.testing.assert_allclose(a, b, rtol=0.03, atol=0.03)


# -- rules ----------------------------------------------------------------------------------------------------------
def test_the_rules():
    for isa, dtype, rows, columns, wins in (
        (ISA_AVX2, "float32", 64, 64, False),
        (ISA_AVX512, "float32", 64, 64, True),
        (ISA_AVX512, "float32", 8, 8, False),
        (ISA_AVX512, "float32", 1, 10000, False),
        (ISA_AVX512, "float32", 10000, 1, False),
        (ISA_AVX512, "bfloat16", 64, 64, False),
        (ISA_BFLOAT16, "bfloat16", 1, 10000, True),
        (ISA_BFLOAT16, "bfloat16", 8, 8, False),
    ):
        assert rules.multiplies(isa, dtype, rows, columns, 64) is wins
    for products_, work, narrow, wide in (
        (1000, 1 << 10, False, True),
        (2, 1 << 10, False, False),
        (8, 1 << 20, True, True),
        (8, 1 << 27, False, True),
    ):
        found = [rules.worth(isa, "float32", products_, work) for isa in (ISA_AVX2, ISA_AVX512)]
        assert found == [narrow, wide]
        assert not rules.worth(ISA_AVX512, "bfloat16", products_, work)
        assert rules.worth(ISA_BFLOAT16, "bfloat16", products_, work) is wide


@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("turned", [(False, True), (False, False), (True, False)])
def test_a_product_for_a_step(monkeypatch, ours, turned):
    """By the library where that pays, else by other kernels; with the arrays of each call."""
    monkeypatch.setattr(products, "_pays", lambda *args: ours)
    shapes = ((90, 33), (33, 70)) if not turned[0] else ((33, 90), (33, 70))
    lhs, rhs = shapes[0], shapes[1][::-1] if turned[1] else shapes[1]
    times = products.Times(op_context(mx.cpu(), False), lhs, rhs, turned, "float32")
    out = np.empty((90, 70), np.float32)
    for seed in (1, 1, 2):
        a, b = numbers(seed, lhs, rhs)
        times(a, b, out)
        want = (a.T if turned[0] else a).astype(float) @ (b.T if turned[1] else b)
        np.testing.assert_allclose(out, want, 1e-4, 1e-4)


ALONE = """
import os, sys
import numpy as np
here = f"/proc/{os.getpid()}/task"
blas = {t for t in os.listdir(here) if t != str(os.getpid())}
def used(threads):
    return sum(int(open(f"{here}/{t}/schedstat").read().split()[0]) for t in threads)
import mxcore as mx
from mxcore import autograd
from mxcore.gluon import nn
from mxcore import channels_last
channels_last._worth = lambda turned, spared: True
net = nn.HybridSequential()
for stride in (1, 2, 1):
    for filters, window, step in ((64, 1, stride), (64, 3, 1), (256, 1, 1)):
        net.add(nn.Conv2D(filters, window, step, window // 2, use_bias=False), nn.BatchNorm(), nn.Activation("relu"))
net.initialize()
net.hybridize()
x = mx.nd.random.uniform(shape=(1, 256, 28, 28))
x.attach_grad()
def step():
    with autograd.record():
        y = net(x)
    y.backward()
    mx.nd.waitall()
for _ in range(3):
    step()
before, all_before = used(blas), used(os.listdir(here))
for _ in range(200):
    step()
assert any(s.op and s.op.name == "_onednn_convolution" for s in net._cached_op.op._last.program.steps)
print(len(blas), used(blas) - before, used(os.listdir(here)) - all_before)
"""


@pytest.mark.usefixtures("provider")
@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the system tells nothing of threads")
def test_no_thread_of_blas_spins_beside_ours():
    """Behind each product of NumPy's they would keep a core for some 30 ms, and all other kernels wait for it."""
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    threads, blas, everything = map(int, done.stdout.split())
    if not threads:
        pytest.skip("this BLAS has no threads of its own")
    assert blas < 0.05 * everything
