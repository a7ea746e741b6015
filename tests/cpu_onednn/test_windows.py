"""Pooling by oneDNN against the body: windows in the data, at its edges, and what is left to others."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore._core.call import op_context
from mxcore.plugin import find_op
from mxcore_onednn import rules
from mxcore_onednn.library import ISA_AVX2, ISA_AVX512, library
from tests.cpu_onednn.support import (
    BFLOAT16,
    check_close,
    check_rounded,
    computed,
    halves,
    numbers,
    run,
    strided,
    taken,
)

pytestmark = pytest.mark.usefixtures("always")
WIDE = pytest.mark.skipif(
    library().isa & ISA_AVX512 != ISA_AVX512, reason="the library has no code for channels first here"
)


@st.composite
def windows(draw):
    n = draw(st.sampled_from([2, 2, 3]))
    kernel = tuple(draw(st.integers(1, 4)) for _ in range(n))
    pad = tuple(draw(st.integers(0, w - 1)) for w in kernel)
    stride = tuple(draw(st.integers(1, 3)) for _ in range(n))
    size = tuple(max(1, w - 2 * b) + draw(st.integers(0, 9)) for w, b in zip(kernel, pad))
    shape = draw(st.integers(1, 3)), draw(st.sampled_from([1, 3, 16, 20])), *size
    kind, inside = draw(st.sampled_from(["max", "avg"])), draw(st.booleans())
    params = dict(kernel=kernel, pad=pad, stride=stride, pool_type=kind, count_include_pad=inside)
    if draw(st.booleans()):
        return dict(global_pool=True, pool_type=kind, kernel=kernel), shape, (*shape[:2], *[1] * n)
    return params, shape, (*shape[:2], *((m + 2 * b - w) // s + 1 for m, w, b, s in zip(size, kernel, pad, stride)))


@WIDE
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=windows(), seed=st.integers(0, 99))
def test_as_the_body(case, seed):
    params, shape, out = case
    (x,) = numbers(seed, shape)
    y = np.full(out, np.nan, np.float32)
    check_close([y], run("Pooling", params, [x], [y]))


@WIDE
def test_nan_loses_and_nothing_gives_the_lowest_number():
    x = np.full((1, 16, 4, 4), np.nan, np.float32)
    x[0, 0, 1, 1] = 5
    x[0, 1] = -np.inf
    x[0, 2, 0, 0] = np.inf
    y = np.zeros((1, 16, 2, 2), np.float32)
    want = run("Pooling", dict(kernel=(3, 3), stride=(1, 1), pool_type="max"), [x.copy()], [y])[0]
    lowest = np.finfo(np.float32).min
    assert (y[0, 0] == 5).all() and (y[0, 3:] == lowest).all() and (y[0, 1] == lowest).all()
    assert y[0, 2].ravel().tolist() == [np.inf, lowest, lowest, lowest]
    assert want.shape == y.shape


@BFLOAT16
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=windows(), seed=st.integers(0, 99), last=st.booleans(), apart=st.booleans())
def test_bfloat16_with_gradients(case, seed, last, apart):
    """Rounded once: sums of gradients, too, where windows overlap."""
    params, shape, out = case
    x, dy = halves(seed, shape, out)
    if last:
        params = {**params, "layout": "NHWC" if len(shape) == 4 else "NDHWC"}
        x, dy = turned(x), turned(dy)
    ins = [strided(x)] if apart else [x]
    y, dx = np.full_like(dy, 7), np.full_like(x, 7)
    check_rounded([y], computed("Pooling", params, ins, [y]))
    check_rounded([dx], computed("_backward_Pooling", params, [dy, *ins, y], [dx]))


@pytest.mark.parametrize(
    "more",
    [
        {"pool_type": "sum"},
        {"pool_type": "lp", "p_value": 2},
        {"pooling_convention": "full", "pool_type": "avg", "kernel": (3, 3), "stride": (2, 2)},
        {"pooling_convention": "same"},
        {"pad": (3, 3)},
    ],
)
def test_what_is_left_to_others(more):
    assert not taken("Pooling", {"kernel": (3, 3), **more}, [np.zeros((2, 3, 8, 8), np.float32)])


def test_the_rules():
    for kind, window, stride, wins in (
        ("max", (3, 3), (2, 2), True),
        ("max", (2, 2), (2, 2), False),
        ("max", (2, 2), (1, 1), True),
        ("avg", (2, 2), (2, 2), True),
    ):
        assert not rules.pools(ISA_AVX2, kind, window, stride)
        assert rules.pools(ISA_AVX512, kind, window, stride) is wins


def turned(a):
    return np.ascontiguousarray(np.moveaxis(a, 1, -1))


@pytest.mark.usefixtures("provider")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=windows(), seed=st.integers(0, 99), kind=st.sampled_from(["numbers", "whole", "infinite"]))
def test_channels_last_with_gradients(case, seed, kind):
    """Of equal numbers the first one counts; where nothing is above the lowest number, the first place does."""
    params, shape, out = case
    params = {**params, "layout": "NHWC" if len(shape) == 4 else "NDHWC"}
    x, dy = numbers(seed, shape, out)
    if kind == "whole":
        x = np.round(x)
    elif kind == "infinite" and params["pool_type"] == "max":
        x = np.where(x < 0.5, -np.inf, x).astype(np.float32)
    x, dy = turned(x), turned(dy)
    y, dx = np.full(dy.shape, np.nan, np.float32), np.full(x.shape, np.nan, np.float32)
    want = run("Pooling", params, [x], [y])[0]
    check_close([y], [np.maximum(want, np.finfo(np.float32).min)])  # float64 has a lower one
    op, k = find_op("_backward_Pooling"), op_context(mx.cpu(), False)
    run("_backward_Pooling", params, [dy, x, y], [dx])
    check_close([dx], [op.body(k, op.parse(params), dy, x, y)])
