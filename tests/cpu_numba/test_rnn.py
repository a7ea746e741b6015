"""Kernels of recurrent networks against the reference body of the operator."""

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import tables
from mxcore.plugin import Spec, find_op
from mxcore.testing.case import Call, Host
from mxcore_cpu.kernels import rnn, rnn_steps

KERNELS = [
    rnn_steps.lstm,
    rnn_steps.lstm_backward,
    rnn_steps.gru,
    rnn_steps.gru_backward,
    rnn_steps.simple,
    rnn_steps.simple_backward,
]
layout = find_op("RNN").facet("helpers").layout
TOLERANCE = {"f4": 2e-5, "f8": 1e-12}


@pytest.fixture(autouse=True, params=[True, False], ids=["packed", "blas"])
def products(request, monkeypatch):
    """With weights that are packed once, and with BLAS."""
    if not request.param:
        monkeypatch.setattr(rnn, "address_packed", lambda dtype: 0)
        monkeypatch.setattr(rnn, "pays", lambda *args: False)
    elif not rnn.address_packed(np.dtype("f4")):
        pytest.skip("this processor has not enough for it")
    else:
        monkeypatch.setattr(rnn, "pays", lambda dtype, m, n, k: m * n * k > 0)


def setting(mode="lstm", sizes=(6, 9, 5, 7), layers=2, dtype="f8", seed=0, **params):
    """(operator, parsed parameters, inputs) for sizes (time, batch, inputs, units)."""
    steps, batch, inputs, units = sizes
    op = tables.ops.get("RNN")
    params = {"state_size": units, "num_layers": layers, "mode": mode, **params}
    p = op.parse(params)
    directions, projected = 2 if p.bidirectional else 1, p.projection_size or 0
    rng = np.random.default_rng(seed)

    def array(*shape):
        return (rng.standard_normal(shape) * 0.3).astype(dtype)

    ins = [
        array(steps, batch, inputs),
        array(layout(mode, inputs, units, layers, directions, projected).size),
        array(layers * directions, batch, projected or units),
    ]
    if mode == "lstm":
        ins.append(array(layers * directions, batch, units))
    if p.use_sequence_length:
        ins.append(rng.integers(0, steps + 1, batch).astype("i4"))
    return op, p, ins, array


def kernel_of(op, p, ins):
    return tables.kernels.resolve(op, mx.cpu().device, p, [Spec(a.shape, a.dtype) for a in ins])


def both(op, p, ins, train=True, wanted=None):
    """What the body returns, and what the kernel writes."""
    calls = [Call(device, train, (1, 2, 3)) for device in (Host(), mx.cpu().device)]
    expected = op.body(calls[0], p, *ins)
    fn, out, _ = kernel_of(op, p, ins)
    assert out and fn is not op.body
    calls[1].wanted = wanted
    outs = [np.full(a.shape, np.nan, a.dtype) if wanted is None or wanted[i] else None for i, a in enumerate(expected)]
    given = [a.copy() for a in ins]
    fn(calls[1], p, outs, *given)
    for a, b in zip(ins, given):
        np.testing.assert_array_equal(a, b)  # inputs are only read
    return expected, outs


def agree(names, expected, found, tolerance):
    for name, a, b in zip(names, expected, found):
        if b is not None:
            np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance, err_msg=name)


def gradients(p, ins, made, array, wanted=None):
    """Check the backward kernel on what the forward pass made."""
    op = tables.ops.get("_backward_RNN")
    names = p._sig.outputs
    kept = next(i for i, n in enumerate(names) if n in ("gates", "hidden"))
    back = [array(*made[i].shape) for i in range(kept if p.state_outputs else 1)] + ins + made[kept:]
    p = op.parse({n: getattr(p, n) for n in op.params if n != "wanted"})
    return p._sig.outputs, *both(op, p, back, wanted=wanted)


MORE = {
    "plain": {},
    "both": {"bidirectional": True},
    "states": {"bidirectional": True, "state_outputs": True},
    "lengths": {"bidirectional": True, "state_outputs": True, "use_sequence_length": True},
    "dropout": {"p": 0.4, "layers": 3},
}
LSTM = {
    "projection": {"projection_size": 3, "state_outputs": True, "bidirectional": True},
    "wide projection": {"projection_size": 7},
    "projection, lengths": {"projection_size": 3, "use_sequence_length": True},
    "clip": {
        "lstm_state_clip_min": -0.05,
        "lstm_state_clip_max": 0.1,
        "use_sequence_length": True,
        "state_outputs": True,
    },
}
ALL = [(mode, name, more) for mode in ("lstm", "gru", "rnn_tanh", "rnn_relu") for name, more in MORE.items()] + [
    ("lstm", name, more) for name, more in LSTM.items()
]


@pytest.mark.parametrize("mode, more", [(m, x) for m, _, x in ALL], ids=[f"{m}-{n}" for m, n, _ in ALL])
@pytest.mark.parametrize("dtype, workers", [("f4", 1), ("f8", 3)])
def test_agrees_with_the_body(mode, more, dtype, workers, monkeypatch):
    for kernel in KERNELS:
        monkeypatch.setattr(kernel, "workers", lambda work: workers)
    for sizes in ((6, 25, 5, 7), (1, 1, 1, 7)):
        op, p, ins, array = setting(mode, sizes, dtype=dtype, **more)
        expected, found = both(op, p, ins)
        agree(p._sig.outputs, expected, found, TOLERANCE[dtype])
        agree(*gradients(p, ins, expected, array), 5 * TOLERANCE[dtype])


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh"])
def test_what_nobody_reads_is_not_kept(mode):
    for more in ({}, {"bidirectional": True, "use_sequence_length": True}, {"p": 0.5}):
        op, p, ins, array = setting(mode, layers=4, **more)
        names = p._sig.outputs
        expected, found = both(op, p, ins, train=False, wanted=[n == "output" for n in names])
        agree(names, expected, found, 1e-12)
        for wanted in np.eye(4 if mode == "lstm" else 3, dtype=bool):
            agree(*gradients(p, ins, expected, array, wanted=tuple(wanted)), 1e-11)


def test_nan_in_cells_is_limited():
    more = dict(lstm_state_clip_min=-0.5, lstm_state_clip_max=0.5)
    for nan in (False, True):
        op, p, ins, _ = setting(layers=1, lstm_state_clip_nan=nan, state_outputs=True, **more)
        ins[3][0, 0] = np.nan
        expected, found = both(op, p, ins)
        assert np.isnan(expected[0]).any() != nan
        agree(p._sig.outputs, expected, found, 1e-12)


@pytest.mark.parametrize("sizes, dtype", [((3, 2, 4, 5), "f2"), ((0, 2, 4, 5), "f4"), ((3, 0, 4, 5), "f4")])
def test_the_body_takes_the_rest(sizes, dtype):
    op, p, ins, _ = setting(sizes=sizes, dtype=dtype)
    assert kernel_of(op, p, ins)[0] is op.body


def test_bound_and_eager_agree_and_learn():
    steps, batch, units = 5, 12, 16
    size = layout("lstm", 4, units, 2, 1, 0).size
    rng = np.random.default_rng(0)
    values = {
        "data": rng.standard_normal((steps, batch, 4)),
        "w": rng.standard_normal(size) * 0.2,
        "h": np.zeros((2, batch, units)),
        "c": np.zeros((2, batch, units)),
    }
    arrays = {n: mx.nd.array(v, dtype="float64") for n, v in values.items()}
    grads = {n: mx.nd.zeros_like(a) for n, a in arrays.items()}
    net = mx.sym.RNN(*[mx.sym.Variable(n) for n in values], state_size=units, num_layers=2, mode="lstm")
    bound = net.bind(mx.cpu(), arrays, grads)
    bound.forward(is_train=True)
    out = bound.outputs[0].asnumpy()
    bound.backward([2 * bound.outputs[0]])
    arrays["w"].attach_grad()
    with mx.autograd.record():
        y = mx.nd.RNN(*arrays.values(), state_size=units, num_layers=2, mode="lstm")
        loss = (y * y).sum()
    loss.backward()
    np.testing.assert_allclose(y.asnumpy(), out, rtol=1e-12)
    np.testing.assert_allclose(arrays["w"].grad.asnumpy(), grads["w"].asnumpy(), rtol=1e-9, atol=1e-12)
    arrays["w"] -= 0.01 * grads["w"]
    assert (bound.forward(is_train=False)[0] ** 2).sum().asscalar() < loss.asscalar()
