"""Recurrent layers in inference: against the body, what is kept of weights, what is left to others."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore import autograd
from mxcore._core.call import op_context
from mxcore.executor import CachedOp
from mxcore.plugin import find_op
from mxcore_onednn import calls, plan, recurrent, rules
from mxcore_onednn.library import ISA_AVX2, ISA_AVX512, Refused
from tests.cpu_onednn.support import KERNELS, check_close, numbers, reference, strided, taken, watch_kept

pytestmark = pytest.mark.usefixtures("provider", "always")
STATES = "state_output", "statecell_output"


def arrays(mode, steps, batch, inputs, units, layers=1, both=False):
    """Parameters of the operator and its inputs, weights as small as those of a network that has been trained."""
    params = dict(mode=mode, state_size=units, num_layers=layers, bidirectional=both, state_outputs=True)
    rows = layers * (1 + both)
    size = find_op("RNN").facet("helpers").layout(mode, inputs, units, layers, 1 + both, 0).size
    states = [(rows, batch, units)] * (2 if mode == "lstm" else 1)
    data, weights, *states = numbers(units, (steps, batch, inputs), (size,), *states)
    return params, [data, weights / np.sqrt(units).astype(np.float32), *states]


def compute(params, ins, k=None):
    """What the kernel gives: the output, and the last states."""
    op = find_op("RNN")
    p = op.parse(params)
    want = reference("RNN", params, *ins)
    names = p._sig.outputs
    outs = [np.full(v.shape, np.nan, np.float32) if n in ("output", *STATES) else None for n, v in zip(names, want)]
    assert taken("RNN", params, ins)
    KERNELS["RNN"].fn(k or op_context(mx.cpu(), False), p, outs, *ins)
    return outs, want


@pytest.mark.parametrize("mode", ["lstm", "gru"])
@pytest.mark.parametrize(
    "sizes",
    [(1, 1, 3, 5), (7, 3, 8, 16), (4, 2, 33, 17), (3, 20, 64, 64, 2), (5, 2, 6, 9, 3, True), (6, 1, 4, 8, 1, True)],
)
def test_as_the_body(mode, sizes):
    check_close(*compute(*arrays(mode, *sizes)))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    mode=st.sampled_from(["lstm", "gru"]),
    steps=st.integers(1, 5),
    batch=st.integers(1, 5),
    inputs=st.integers(1, 20),
    units=st.integers(1, 20),
    layers=st.integers(1, 3),
    both=st.booleans(),
    apart=st.booleans(),
)
def test_of_any_size(mode, steps, batch, inputs, units, layers, both, apart):
    params, ins = arrays(mode, steps, batch, inputs, units, layers, both)
    if apart:
        ins = [strided(a) for a in ins]
    check_close(*compute(params, ins))


def test_arrays_of_any_layout_and_no_states():
    params, ins = arrays("lstm", 4, 3, 6, 5)
    ins[0] = ins[0].transpose(1, 0, 2).copy().transpose(1, 0, 2)
    ins[1] = np.repeat(ins[1], 2)[::2]
    p = {**params, "state_outputs": False}
    check_close(*compute(p, ins))
    extreme = [ins[0] * 1e6, ins[1], *ins[2:]]
    check_close(*compute(params, extreme))


@pytest.mark.parametrize(
    "more, why",
    [
        ({"mode": "rnn_tanh"}, "no gates"),
        ({"mode": "lstm", "projection_size": 2}, "projections"),
        ({"mode": "lstm", "lstm_state_clip_min": -1, "lstm_state_clip_max": 1}, "limits"),
    ],
)
def test_what_is_left_to_others(more, why):
    assert not taken("RNN", {"state_size": 4, "num_layers": 1, **more}, [np.zeros((2, 2, 2), np.float32)] * 4), why


def layer(mode, **kw):
    net = {"lstm": mx.gluon.rnn.LSTM, "gru": mx.gluon.rnn.GRU}[mode](8, input_size=6, **kw)
    net.initialize(mx.init.Normal(0.4))
    net.hybridize()
    return net


@pytest.mark.parametrize("mode", ["lstm", "gru"])
@pytest.mark.parametrize("both", [False, True])
def test_weights_are_kept_until_somebody_writes(monkeypatch, mode, both):
    seen = watch_kept(monkeypatch)
    params, ins = arrays(mode, 5, 3, 6, 8, 2, both)
    names = ["data", "parameters", *["state", "state_cell"][: len(ins) - 2]]
    op, given = CachedOp(mx.sym.RNN(*map(mx.sym.Variable, names), **params)), [mx.nd.array(a) for a in ins]
    for _ in range(2):
        want = reference("RNN", params, *[a.asnumpy() for a in given])
        del seen[:]
        for _ in range(4):
            check_close([y.asnumpy() for y in op(*given)], want)
        assert seen == [False] * 4 + [True] * 4  # two layers
        given[1] *= 0.5


def fails(self, *ins, **further):
    raise Refused("oneDNN: primitive_execute: out of memory")


def test_where_the_library_fails_others_compute(monkeypatch, caplog):
    monkeypatch.setattr(plan.Plan, "run", fails)
    monkeypatch.setattr(calls, "_told", set())
    check_close(*compute(*arrays("gru", 6, 2, 3, 4, 2)))
    assert "operator RNN runs without oneDNN" in caplog.text


@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_training_is_not_the_librarys(mode):
    """What backward needs is made by the kernel that has it; dropout between layers is applied while training."""
    net, x = layer(mode, num_layers=2, dropout=0.5), mx.nd.array(numbers(1, (5, 3, 6))[0])
    plain = net(x).asnumpy()
    x.attach_grad()
    with autograd.record(train_mode=False):
        y = net(x)
    y.backward()
    check_close([y.asnumpy()], [plain])
    assert np.abs(x.grad.asnumpy()).max() > 0
    with autograd.train_mode():
        assert np.abs(net(x).asnumpy() - plain).max() > 1e-3


def test_the_rules():
    def wins(isa, *sizes):
        return rules.recurs(isa, recurrent.Layer("lstm", *sizes, 1))

    for sizes, narrow in (
        ((1, 64, 32, 32), True),
        ((35, 1, 100, 100), True),
        ((35, 4, 100, 100), False),
        ((35, 4, 200, 200), True),
        ((35, 16, 256, 256), True),
        ((35, 32, 650, 650), False),
    ):
        assert (wins(ISA_AVX2, *sizes), wins(ISA_AVX512, *sizes)) == (narrow, True)
