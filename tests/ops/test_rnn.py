"""RNN: shapes both ways, lengths, projection, clipping, dropout, and what layers and directions are made of."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.ops.recurrent.cells import layout
from mxcore.testing.gradcheck import check_grads

from .golden.corners import wave


def network(mode, layers=1, directions=1, inputs=4, units=3, batch=2, steps=3, projected=0):
    """Inputs of the operator, and its parameters."""
    size = layout(mode, inputs, units, layers, directions, projected).size
    states = [wave((layers * directions, batch, projected or units), 3, 0.5)]
    if mode == "lstm":
        states.append(wave((layers * directions, batch, units), 4, 0.5))
    params = {
        "mode": mode,
        "num_layers": layers,
        "bidirectional": directions == 2,
        "state_size": units,
        "state_outputs": True,
    }
    if projected:
        params["projection_size"] = projected
    return [wave((steps, batch, inputs), 1), wave((size,), 2, 0.7), *states], params


def rnn(arrays, params):
    return [y.asnumpy() for y in mx.nd.RNN(*map(mx.nd.array, arrays), **params)]


@pytest.mark.parametrize(("mode", "rows"), [("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)])
@pytest.mark.parametrize(("layers", "directions"), [(1, 1), (2, 2)])
def test_shapes_both_ways(shapes, mode, rows, layers, directions):
    h, n, i, d = 5, 2, 4, directions
    size = sum(d * rows * h * ((d * h if layer else i) + h + 2) for layer in range(layers))
    state = (layers * d, n, h)
    states = [state] * (2 if mode == "lstm" else 1)
    params = dict(mode=mode, num_layers=layers, bidirectional=d == 2, state_size=h, state_outputs=True)
    unknown = [None] * len(states)
    ins, outs = shapes("RNN", [(3, n, i), None, *unknown], **params)
    assert ins == [(3, n, i), (size,), *states] and outs[: 1 + len(states)] == [(3, n, d * h), *states]
    # Number of inputs from the size of the parameters; the batch from a state.
    ins, outs = shapes("RNN", [(3, -1, -1), (size,), state, *unknown[1:]], **params)
    assert ins == [(3, n, i), (size,), *states] and outs[0] == (3, n, d * h)
    with pytest.raises(ValueError, match=f"{size + 1} parameters fit no number of inputs"):
        shapes("RNN", [(3, n, -1), (size + 1,), *unknown], **params)
    with pytest.raises(ValueError, match=r"parameters is \(\d+,\) where \(\d+,\) is expected"):
        shapes("RNN", [(3, n, i), (size + 1,), *unknown], **params)


def test_begin_states_of_unknown_batch():
    x = mx.sym.var("x")
    begin = mx.sym._internal._zeros(shape=(1, 0, 3))
    y = mx.sym.RNN(x, mx.sym.var("w"), begin, state_size=3, num_layers=1, mode="gru", name="r")
    args, outs, _ = y.infer_shape(x=(5, 2, 4))
    assert outs == [(5, 2, 3)] and args == [(5, 2, 4), (81,)]
    ex = y.simple_bind(mx.cpu(), x=(5, 2, 4))
    ex.arg_dict["x"][:] = 1
    ex.arg_dict["w"][:] = 0.1
    expected = mx.nd.RNN(
        mx.nd.ones((5, 2, 4)), mx.nd.full((81,), 0.1), mx.nd.zeros((1, 2, 3)), state_size=3, num_layers=1, mode="gru"
    )
    np.testing.assert_allclose(ex.forward()[0].asnumpy(), expected.asnumpy(), rtol=1e-5)


def test_names():
    s = mx.sym.RNN(
        mx.sym.var("x"), name="r", state_size=3, num_layers=1, mode="lstm", state_outputs=True, use_sequence_length=True
    )
    assert s.list_arguments() == ["x", "r_parameters", "r_state", "r_state_cell", "r_sequence_length"]
    assert s.list_outputs() == ["r_output", "r_state_output", "r_statecell_output"]
    assert mx.sym.RNN(mx.sym.var("x"), name="r", state_size=3, num_layers=1, mode="gru").list_outputs() == ["r_output"]


def test_backward_direction_is_forward_on_reversed_time():
    arrays, params = network("gru", directions=2)
    y, h = rnn(arrays, params)
    one = dict(params, bidirectional=False)
    plan, half = layout("gru", 4, 3, 1, 2, 0), layout("gru", 4, 3, 1, 1, 0)
    for d in (0, 1):
        w = np.concatenate([np.ravel(a) for a in plan.views(arrays[1], d) if a is not None])
        assert w.size == half.size
        x = arrays[0][::-1] if d else arrays[0]
        alone, last = rnn([x, w, arrays[2][d : d + 1]], one)
        np.testing.assert_allclose(y[..., 3 * d : 3 * d + 3], alone[::-1] if d else alone, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(h[d], last[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize("directions", [1, 2])
def test_lengths_are_shorter_sequences(mode, directions):
    arrays, params = network(mode, layers=2, directions=directions, steps=4)
    lengths = np.array([4, 2], np.int32)
    ragged = rnn([*arrays, lengths], dict(params, use_sequence_length=True))
    for i, n in enumerate(lengths):
        alone = rnn([arrays[0][:n, i : i + 1], arrays[1], *(s[:, i : i + 1] for s in arrays[2:])], params)
        np.testing.assert_allclose(ragged[0][:n, i], alone[0][:, 0], rtol=1e-5, atol=1e-6)
        assert not ragged[0][n:, i].any()
        for a, b in zip(ragged[1:], alone[1:]):
            np.testing.assert_allclose(a[:, i], b[:, 0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["lstm", "rnn_tanh"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])  # by the kernel and by the body
@pytest.mark.parametrize("bad", [99, 4, -1, float("nan")])
def test_lengths_that_no_sequence_has(mode, dtype, bad):
    arrays, params = network(mode)
    inputs = [mx.nd.array(a, dtype=dtype) for a in arrays]
    with pytest.raises(mx.MXNetError, match=f"RNN .*sequence_length holds {bad}.*; a length must lie between 0 and 3"):
        mx.nd.RNN(*inputs, mx.nd.array([3, bad]), **params, use_sequence_length=True)


def test_lengths_have_their_own_dtype(dtypes):
    params = dict(mode="gru", num_layers=1, state_size=3, use_sequence_length=True)
    assert dtypes("RNN", ["float64", None, None, "int32"], **params)[0] == ["float64", "float64", "float64", "int32"]
    assert dtypes("RNN", ["float64", None, None, None], **params)[0][3] == "float64"


@pytest.mark.parametrize(
    ("mode", "more"),
    [
        ("lstm", {"use_sequence_length": True, "bidirectional": True}),
        ("gru", {"use_sequence_length": True}),
        ("rnn_tanh", {"use_sequence_length": True}),
        ("rnn_relu", {"bidirectional": True}),
        ("lstm", {"projection_size": 2, "bidirectional": True}),
        ("lstm", {"lstm_state_clip_min": -0.2, "lstm_state_clip_max": 0.3}),
    ],
)
def test_gradients(mode, more):
    directions = 2 if more.get("bidirectional") else 1
    arrays, params = network(mode, layers=2, directions=directions, projected=more.get("projection_size", 0))
    lengths = [mx.nd.array([3, 1])] if more.get("use_sequence_length") else []
    check_grads(lambda *xs: mx.nd.RNN(*xs, *lengths, **{**params, **more}), arrays)


def test_projection_of_a_projected_state():
    """With an identity for the projection, a projected network is a plain one."""
    arrays, params = network("lstm", projected=3)
    x, w, h, c = arrays
    plan, plain = layout("lstm", 4, 3, 1, 1, 3), layout("lstm", 4, 3, 1, 1, 0)
    plan.views(w, 0)[2][...] = np.eye(3)
    same = np.concatenate([np.ravel(a) for i, a in enumerate(plan.views(w, 0)) if i != 2])
    assert same.size == plain.size
    del params["projection_size"]
    for a, b in zip(rnn(arrays, dict(params, projection_size=3)), rnn([x, same, h, c], params)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_clipped_cells():
    arrays, params = network("lstm", steps=5)
    y, h, c = rnn(arrays, dict(params, lstm_state_clip_min=-0.1, lstm_state_clip_max=0.2))
    assert c.min() >= -0.1 and c.max() <= 0.2 and (np.isclose(c, -0.1) | np.isclose(c, 0.2)).any()
    arrays[0][0, 0, 0] = np.nan
    told = dict(params, lstm_state_clip_min=-0.5, lstm_state_clip_max=1, lstm_state_clip_nan=True)
    assert np.isfinite(rnn(arrays, told)[2]).all()
    first = rnn([arrays[0][:1], *arrays[1:]], told)[2]
    assert (first[0, 0] == -0.5).all() and (first[0, 1] > -0.5).all()


def test_dropout_between_layers():
    arrays, params = network("lstm", layers=2, steps=4)
    params["p"] = 0.5
    xs = [mx.nd.array(a) for a in arrays]
    plain = rnn(arrays, dict(params, p=0))
    for a, b in zip(rnn(arrays, params), plain):
        np.testing.assert_array_equal(a, b)  # prediction
    xs[0].attach_grad()
    with mx.autograd.record():
        y = mx.nd.RNN(*xs, **params)[0]
    y.backward()
    assert np.abs(y.asnumpy() - plain[0]).max() > 1e-3 and np.isfinite(xs[0].grad.asnumpy()).all()
    check_grads(lambda *a: mx.nd.RNN(*a, **params), arrays)
    assert not np.array_equal(y.asnumpy(), mx.nd.RNN(*xs, **dict(params, p=0))[0].asnumpy())


def test_state_gradients_without_a_gradient_of_the_output():
    arrays, params = network("lstm")
    xs = [mx.nd.array(a) for a in arrays]
    xs[3].attach_grad()
    with mx.autograd.record():
        c = mx.nd.RNN(*xs, **params)[2]
    c.backward()
    assert xs[3].grad.asnumpy().all()


@pytest.mark.parametrize(
    ("params", "say"),
    [
        (dict(mode="gru", projection_size=2), "projection_size is for mode lstm, not gru"),
        (dict(mode="lstm", lstm_state_clip_min=1.0), "must both be given"),
    ],
)
def test_refusals(params, say):
    arrays, more = network(params["mode"])
    with pytest.raises(ValueError, match=say):
        mx.nd.RNN(*map(mx.nd.array, arrays), **{**more, **params})


def test_one_state_for_a_larger_batch_is_refused():
    arrays, params = network("gru")
    arrays[2] = arrays[2][:, :1]
    with pytest.raises(ValueError, match="operator RNN: inconsistent shapes: .*differ in dimension"):
        rnn(arrays, params)
