"""Sums, products and activations of bfloat16, against the bodies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mxcore as mx
from mxcore._core.call import op_context
from mxcore.plugin import find_op
from mxcore_onednn import calls, plan, plans, pointwise, rules
from mxcore_onednn.library import ISA_AVX512, ISA_BFLOAT16, Refused
from tests.cpu_onednn.support import (
    BFLOAT16,
    HYPOTHESIS,
    KERNELS,
    bfloat16,
    check_rounded,
    computed,
    halves,
    reference,
    strided,
    taken,
    wide,
)

pytestmark = [BFLOAT16, pytest.mark.usefixtures("always")]

ACTIVATIONS = [
    ("Activation", {"act_type": "relu"}),
    ("Activation", {"act_type": "sigmoid"}),
    ("Activation", {"act_type": "tanh"}),
    ("LeakyReLU", {"act_type": "leaky", "slope": 0.3}),
    ("LeakyReLU", {"act_type": "elu", "slope": 0.7}),
    ("relu", {}),
    ("sigmoid", {}),
    ("tanh", {}),
]
#: Sizes at which relu, which is computed part by part, has none, one, and two parts that overlap.
SIZES = st.one_of(st.integers(1, 99), st.integers(16380, 16390), st.integers(40000, 40010))


@HYPOTHESIS
@given(case=st.sampled_from(ACTIVATIONS), size=SIZES, seed=st.integers(0, 99), apart=st.booleans())
def test_activations(case, size, seed, apart):
    x = halves(seed, (size,))[0]
    x[::7] *= 100
    if apart:
        x = strided(x)
    y = np.full(2 * size, 7, bfloat16())[::2] if apart else np.full(size, 7, bfloat16())
    check_rounded([y], computed(*case, [x], [y]))


@pytest.mark.parametrize("name, params", ACTIVATIONS)
def test_what_is_no_number(name, params):
    """It is handed on, whatever its sign."""
    x = np.resize(np.float32([np.nan, -np.nan, np.inf, -np.inf, 0, -0.0, 2, -2]), 1 << 14).astype(bfloat16())
    y = np.zeros_like(x)
    with np.errstate(all="ignore"):
        want = computed(name, params, [x], [y])[0]
    assert np.isnan(y[:2].astype(np.float32)).all()
    np.testing.assert_allclose(y.astype(np.float64)[2:8], want[2:8], rtol=2**-8)


@pytest.mark.parametrize("name, params", [c for c in ACTIVATIONS if c[0] in ("Activation", "LeakyReLU")])
def test_gradients(name, params):
    dy, x = halves(1, (33, 50), (33, 50))
    kind = params["act_type"]
    if name == "Activation":
        x = np.tanh(x.astype(np.float32)).astype(bfloat16())
    backward = f"_backward_{name}"
    if kind in ("relu", "elu"):  # their NaN would be lost
        assert not taken(backward, params, [dy, x])
        return
    x[0, :3] = np.inf, -np.inf, np.nan
    for ins in ([dy, x], [strided(dy), x]):
        dx = np.full_like(x, 7)
        with np.errstate(all="ignore"):
            want = computed(backward, params, ins, [dx])
        check_rounded([dx[1:]], [want[0][1:]])
        np.testing.assert_array_equal(np.isnan(dx[0].astype(np.float32)), np.isnan(want[0][0]))


@pytest.mark.parametrize(
    "name, params, number, place",
    [
        ("Activation", {"act_type": "relu"}, 1, 0),
        ("Activation", {"act_type": "tanh"}, 1, 0),
        ("_backward_Activation", {"act_type": "tanh"}, 2, 0),
        ("LeakyReLU", {}, 1, 0),
        ("elemwise_sub", {}, 2, 0),
        ("elemwise_sub", {}, 2, 1),
        ("_div_scalar", {"scalar": 3.0}, 1, 0),
    ],
)
def test_results_may_lie_where_the_data_do(name, params, number, place):
    ins = halves(2, *[(40001,)] * number)
    op, k, wide_ins = find_op(name), op_context(mx.cpu(), False), [a.astype(np.float64) for a in ins]
    assert taken(name, params, ins)
    KERNELS[name].fn(k, op.parse({**params}), [ins[place]], *ins)
    check_rounded([ins[place]], [op.body(k, op.parse({**params}), *wide_ins)])


@pytest.mark.parametrize(
    "name, params, shapes",
    [
        ("LeakyReLU", {"act_type": "gelu"}, [(9, 9)]),  # of infinity it would be no number
        ("LeakyReLU", {"act_type": "leaky", "slope": 0.0}, [(9, 9)]),  # infinity times 0 is no number
        ("LeakyReLU", {"act_type": "prelu"}, [(9, 9), (9,)]),
        ("Activation", {"act_type": "softsign"}, [(9, 9)]),
        ("elemwise_sub", {}, [(9,), (2, 9)]),
        ("broadcast_sub", {}, [(1, 9), (2, 9)]),
        ("broadcast_add", {}, [(2, 1), (1, 9)]),
    ],
)
def test_what_is_left_to_others(monkeypatch, name, params, shapes):
    arrays = halves(3, *shapes)
    k = {e.op: e for e in pointwise.kernels.entries if e.priority == calls.PRIORITY}[name]
    monkeypatch.setitem(KERNELS, name, k)
    assert not taken(name, params, arrays)
    assert not taken("elemwise_add", {}, [a.astype(np.float32) for a in halves(3, (9,), (9,))])
    assert not taken("elemwise_add", {}, [halves(3, (9,))[0], np.zeros(9, np.float32)])


@st.composite
def pairs(draw):
    """Two shapes, of which one may be repeated along the other."""
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    other = [n if draw(st.booleans()) else 1 for n in shape]
    if draw(st.booleans()):
        other = shape
    return tuple(shape), tuple(other)


@HYPOTHESIS
@given(
    name=st.sampled_from(["add", "sub", "mul", "div"]),
    shapes=pairs(),
    turned=st.booleans(),
    seed=st.integers(0, 99),
    apart=st.booleans(),
)
def test_pairs(name, shapes, turned, seed, apart):
    turned = turned and name in ("add", "mul")
    a, b = halves(seed, *shapes)
    out = np.full(shapes[0], 7, bfloat16())
    names = [f"broadcast_{name}"] + ([f"elemwise_{name}"] if shapes[0] == shapes[1] else [])
    ins = [strided(a), b] if apart else [a, b]
    for each in names:
        params, given_ = {}, ins[::-1] if turned else ins
        if not taken(each, params, given_):  # the library has code for some ways to repeat only
            assert shapes[0] != shapes[1]
            continue
        with np.errstate(all="ignore"):
            check_rounded([out], computed(each, params, given_, [out]))


def test_rows_and_columns_are_repeated():
    """What biases and factors of channels need."""
    a, row, column, one = halves(4, (3, 8, 5, 6), (1, 1, 1, 6), (1, 8, 1, 1), (1, 1, 1, 1))
    for b in (row, column, one):
        out = np.zeros_like(a)
        check_rounded([out], computed("broadcast_mul", {}, [a, b], [out]))
        check_rounded([out], computed("broadcast_add", {}, [b, a], [out]))


@HYPOTHESIS
@given(
    name=st.sampled_from(["plus", "minus", "mul", "div"]),
    number=st.one_of(
        st.floats(-100, 100, width=32, allow_subnormal=False), st.sampled_from([0.1, np.inf, np.nan, 3e38, 0.0])
    ),
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple),
    seed=st.integers(0, 99),
    apart=st.booleans(),
)
def test_with_a_number(name, number, shape, seed, apart):
    """It is not rounded before, as the body does not."""
    (x,) = halves(seed, shape)
    y = np.full_like(x, 7)
    with np.errstate(all="ignore"):
        computed(f"_{name}_scalar", {"scalar": number}, [strided(x) if apart else x], [y])
        want = reference(f"_{name}_scalar", {"scalar": number}, *wide([x]))
    found = [np.clip(a.astype(np.float64), -1e38, 1e38) for a in (y, want[0])]  # beyond is infinity in bfloat16
    found = [np.where(abs(a) < 1e-37, 0, a) for a in found]  # the library makes 0 of denormal numbers
    np.testing.assert_allclose(*found, rtol=1.01 * 2**-8)


def test_numbers_need_no_plans_of_their_own():
    """A rate that decays is another number at each step."""
    x = halves(6, (300, 300))[0]
    plans._plans.clear()
    for i in range(9):
        computed("_mul_scalar", {"scalar": 0.5**i}, [x], [np.zeros_like(x)])
    assert len(plans._plans) == 1


def test_where_the_library_fails_others_compute(monkeypatch):
    def fails(self, *arrays, **further):
        raise Refused("oneDNN: out of memory")

    monkeypatch.setattr(plan.Plan, "run", fails)
    monkeypatch.setattr(calls, "_told", set())
    x, y = halves(5, (200, 100), (200, 100))
    for name, params, ins in (
        ("Activation", {"act_type": "relu"}, [x]),
        ("Activation", {"act_type": "tanh"}, [x]),
        ("elemwise_add", {}, [x, y]),
    ):
        out = np.zeros_like(x)
        want = computed(name, params, ins, [out])[0]
        np.testing.assert_allclose(out.astype(np.float64), want, rtol=2**-6, atol=2**-6)


def test_the_rules():
    for isa, work, wins in (
        (ISA_AVX512, 1 << 20, False),
        (ISA_BFLOAT16, 1 << 20, True),
        (ISA_BFLOAT16, (1 << 14) - 1, False),
    ):
        assert rules.narrows(isa, work) is wins
