"""Layers of bfloat16 that normalize, and gradients of softmax, against the bodies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mxcore as mx
from mxcore._core.call import op_context
from mxcore.plugin import find_op
from mxcore_onednn import calls, plan
from mxcore_onednn.library import Refused
from tests.cpu_onednn.support import (
    BFLOAT16,
    HYPOTHESIS,
    KERNELS,
    bfloat16,
    check_rounded,
    computed,
    halves,
    numbers,
    reference,
    strided,
    taken,
    wide,
)

pytestmark = [BFLOAT16, pytest.mark.usefixtures("always")]
SHAPES = st.lists(st.integers(1, 9), min_size=2, max_size=5).map(tuple)


def vectors(seed, n):
    """Scale, shift, mean and variance."""
    found = numbers(seed, *[(n,)] * 4)
    return [*found[:3], np.abs(found[3]) + 0.1]


def outputs(shape, n):
    return [np.full(shape, 7, bfloat16()), np.full(n, 7, np.float32), np.full(n, 7, np.float32)]


@HYPOTHESIS
@given(shape=SHAPES, axis=st.integers(-5, 4), plain=st.booleans(), seed=st.integers(0, 99), apart=st.booleans())
def test_known_statistics(shape, axis, plain, seed, apart):
    axis %= len(shape)
    params = dict(axis=axis, fix_gamma=plain, eps=0.01)
    ins = [halves(seed, shape)[0], *vectors(seed, shape[axis])]
    if apart:
        ins[0] = strided(ins[0])
    outs = outputs(shape, shape[axis])
    want = computed("BatchNorm", params, ins, outs)
    check_rounded(outs[:1], want[:1])
    for found, value in zip(outs[1:], want[1:]):
        np.testing.assert_allclose(found, value, 1e-5)


@pytest.mark.parametrize("size", [(4, 5, 6), (4, 5, 8000)])
@pytest.mark.parametrize("train, fixed", [(True, False), (True, True)])
def test_batches(size, train, fixed):
    """In training the statistics are the batch's, unless they are fixed."""
    params, op, k = dict(fix_gamma=False, use_global_stats=fixed), find_op("BatchNorm"), op_context(mx.cpu(), train)
    p, ins, outs = op.parse(params), [halves(1, size)[0], *vectors(1, 5)], outputs(size, 5)
    assert taken("BatchNorm", params, ins)
    KERNELS["BatchNorm"].fn(k, p, outs, *ins)
    want = op.body(k, p, *[a.astype(np.float64) for a in ins])
    check_rounded(outs[:1], want[:1])
    np.testing.assert_allclose(outs[1], want[1], 1e-4, 1e-5)


@HYPOTHESIS
@given(shape=SHAPES, seed=st.integers(0, 99), apart=st.booleans(), read=st.integers(0, 7))
def test_rows(shape, seed, apart, read):
    x, gamma, beta = halves(seed, shape, shape[-1:], shape[-1:])
    ins, stats = [strided(a) if apart else a for a in (x, gamma, beta)], (*shape[:-1], 1)
    outs = [np.full(s, 7, bfloat16()) if read >> i & 1 else None for i, s in enumerate((shape, stats, stats))]
    check_rounded(outs, computed("LayerNorm", dict(eps=0.01), ins, outs))


def test_where_the_library_fails_others_normalize(monkeypatch):
    def fails(self, *arrays, **further):
        raise Refused("oneDNN: out of memory")

    monkeypatch.setattr(plan.Plan, "run", fails)
    monkeypatch.setattr(calls, "_told", set())
    x, gamma, beta = halves(2, (6, 8), (8,), (8,))
    outs = [np.zeros((6, n), bfloat16()) for n in (8, 1, 1)]
    check_rounded(outs, computed("LayerNorm", {}, [x, gamma, beta], outs))
    outs = outputs((6, 8), 8)
    check_rounded(outs[:1], computed("BatchNorm", {}, [x, *vectors(2, 8)], outs)[:1])


@HYPOTHESIS
@given(shape=SHAPES, seed=st.integers(0, 99), apart=st.booleans())
def test_gradients_of_softmax(shape, seed, apart):
    x, dy = halves(seed, shape, shape)
    out = reference("softmax", {}, *wide([x]))[0].astype(bfloat16())
    ins, dx = [strided(dy), out] if apart else [dy, out], np.full(shape, 7, bfloat16())
    check_rounded([dx], computed("_backward_softmax", {}, ins, [dx]))


def test_what_is_left_to_others():
    x, v, dy = halves(3, (6, 8), (6,), (6, 8))
    assert not taken("LayerNorm", {"axis": 0}, [x, v, v])
    assert not taken("LayerNorm", {}, [a.astype(np.float32) for a in (x, v, v)])
    assert not taken("BatchNorm", {}, [x, *[np.zeros(8)] * 4])
    assert not taken("_backward_softmax", {"temperature": 2.0}, [dy, x])
    assert not taken("_backward_softmax", {"axis": 0}, [dy, x])
