"""Recurrent layers and cells: hybridised as eager, layers as cells, lengths, contexts, errors that name the cell."""

import copy
import threading

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, gluon, nd
from mxcore.base import MXNetError
from mxcore.compat.names import find
from mxcore.gluon import rnn

from ..golden import rnn_cases

LAYERS = [rnn.RNN, rnn.LSTM, rnn.GRU]


def made(block):
    block.initialize(mx.init.Uniform(0.5))
    return block


def data(steps=5, batch=2, size=3):
    return nd.array(np.random.RandomState(1).randn(steps, batch, size))


def close(a, b, tol=1e-5):
    np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=tol, atol=tol)


class Through(gluon.HybridBlock):
    """A cell unrolled, or a layer, between dense layers."""

    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner, self.out = inner, gluon.nn.Dense(2, flatten=False)

    def hybrid_forward(self, F, x):
        if isinstance(self.inner, rnn.RecurrentCell):
            x = self.inner.unroll(5, x, layout="TNC", merge_outputs=True)[0]
        else:
            x = self.inner(x)
        return self.out(x)


@pytest.mark.parametrize(
    "name",
    [n for n in rnn_cases.CELLS if n not in ("stack", "zoneout", "dropout", "variational", "variational outside")]
    + [c.__name__ for c in LAYERS],
)
def test_hybridised_as_eager(name):
    inner = (
        rnn_cases.CELLS[name](mx)
        if name in rnn_cases.CELLS
        else getattr(rnn, name)(3, num_layers=2, bidirectional=True)
    )
    net, x = made(Through(inner)), data()
    x.attach_grad()
    found = []
    for hybrid in (False, True):
        if hybrid:
            net.hybridize()
        for _ in range(2):
            with autograd.record():
                y = net(x)
                loss = (y * y).sum()
            loss.backward()
            found.append([y, x.grad.copy(), *(p.grad().copy() for p in net.collect_params().values())])
    for other in found[1:]:
        for a, b in zip(found[0], other):
            close(a, b)


@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("layer", LAYERS)
def test_calls_with_and_without_states_take_turns(layer, states):
    """MXNet's hybridised layer goes on as its first call was."""
    net, x = made(layer(4)), data()
    plain, (outputs, after) = net(x), net(x, net.begin_state(2))
    net.hybridize()
    for given in (states, not states, states):
        if given:
            y, s = net(x, net.begin_state(2))
            close(y, outputs)
            for a, b in zip(s, after):
                close(a, b)
        else:
            close(net(x), plain)


@pytest.mark.parametrize(
    "kwargs", [{}, {"num_layers": 2, "dropout": 0.3}, {"bidirectional": True}, {"num_layers": 2, "bidirectional": True}]
)
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_and_cells_share_weights(layer, kwargs, tmp_path):
    net, x = made(layer(4, input_size=3, prefix="p_", **kwargs)), data()
    cells = net._unfuse()
    close(net(x), cells.unroll(5, x, layout="TNC", merge_outputs=True)[0])
    assert list(cells.collect_params()) == list(net.collect_params())
    path = str(tmp_path / "a.params")
    net.save_parameters(path)
    other = layer(4, **kwargs)
    other.load_parameters(path)
    close(net(x), other(x))
    wrapped = gluon.nn.HybridSequential()
    wrapped.add(net)
    wrapped.save_parameters(path)
    assert all(k.startswith(("0._unfused.0.", "0._unfused.1.")) for k in nd.load(path))


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layer", LAYERS)
def test_lengths(layer, bidirectional, hybrid):
    """Each item as if it were alone and as long as it is; zeros behind."""
    net, x, lengths = made(layer(4, use_sequence_length=True, bidirectional=bidirectional)), data(), [3, 5]
    alone = layer(4, params=net.collect_params(), prefix=net.prefix, bidirectional=bidirectional)
    if hybrid:
        net.hybridize()
    y, states = net(x, net.begin_state(2), nd.array(lengths))
    close(net(x, sequence_length=nd.array(lengths)), y)
    for i, n in enumerate(lengths):
        one, after = alone(x[:n, i : i + 1], alone.begin_state(1))
        close(y[:n, i : i + 1], one)
        assert not y[n:, i].asnumpy().any()
        for a, b in zip(states, after):
            close(a[:, i : i + 1], b)


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru", "both ways", "deep both ways", "residual", "hybrid stack"])
@pytest.mark.parametrize("merge", [True, False])
def test_unrolled_lengths(name, merge):
    cell, x, lengths = rnn_cases.filled(mx, rnn_cases.CELLS[name](mx)), rnn_cases.inputs(mx), [3, 5]
    y, states = cell.unroll(5, x, valid_length=nd.array(lengths), merge_outputs=merge)
    y = y if merge else nd.stack(*y, axis=1)
    for i, n in enumerate(lengths):
        one, after = cell.unroll(n, x[i : i + 1, :n], merge_outputs=True)
        close(y[i : i + 1, :n], one)
        assert not y[i, n:].asnumpy().any()
        for a, b in zip(states, after):
            close(a[i : i + 1], b)


def test_projection_and_clipping_train():
    net, x = made(rnn.LSTM(4, projection_size=2, state_clip_min=-0.05, state_clip_max=0.05)), data()
    y, (_, memory) = net(x, net.begin_state(2))
    assert y.shape == (5, 2, 2) and memory.shape == (1, 2, 4) and abs(memory.asnumpy()).max() <= np.float32(0.05)
    net = made(rnn.LSTM(4, projection_size=2))
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
    losses = []
    for _ in range(30):
        with autograd.record():
            loss = ((net(x) - 0.3) ** 2).mean()
        loss.backward()
        trainer.step(1)
        losses.append(loss.asscalar())
    assert losses[-1] < losses[0] / 5


def test_states_to_begin_with():
    layer, cell = rnn.LSTM(4, prefix="p_"), rnn.GRUCell(4, prefix="c_")
    assert [s.sum().asscalar() for s in layer.begin_state(2, func=nd.ones)] == [8, 8]
    assert layer.begin_state(2, dtype="float64")[0].dtype == np.float64
    assert [s.name for s in layer.begin_state(func=mx.sym.var)] == ["p_h0_0", "p_h0_1"]
    assert [s.name for s in cell.begin_state(func=mx.sym.var) + cell.begin_state(func=mx.sym.var)] == [
        "c_begin_state_0",
        "c_begin_state_1",
    ]
    assert cell.begin_state(3, ctx=mx.cpu(1))[0].context == mx.cpu(1)


@pytest.mark.parametrize("hybrid", [False, True])
def test_several_contexts(hybrid):
    contexts = [mx.cpu(0), mx.cpu(1)]
    nets = [rnn.LSTM(4), rnn_cases.stack(mx, True, lambda r: r.LSTMCell(4), lambda r: r.GRUCell(3))]
    for net in nets:
        net.initialize(mx.init.Uniform(0.5), ctx=contexts)
        if hybrid:
            net.hybridize()
        found = []
        for ctx in contexts:
            x = data().as_in_context(ctx)
            y = net(x) if isinstance(net, rnn.LSTM) else net.unroll(5, x, layout="TNC", merge_outputs=True)[0]
            assert y.context == ctx
            found.append(y.as_in_context(mx.cpu()))
        close(*found)


@pytest.mark.parametrize("dtype, tol", [("float64", 1e-6), ("float16", 0.02)])
def test_cast(dtype, tol):
    for net in (made(rnn.GRU(4, input_size=3)), made(rnn.GRUCell(4, input_size=3))):
        x = data() if isinstance(net, rnn.GRU) else data()[0]
        states = net.begin_state(2)
        want = net(x, states)[0]
        net.cast(dtype)
        got = net(x.astype(dtype), [s.astype(dtype) for s in states])[0]
        assert got.dtype == np.dtype(dtype)
        close(got.astype("float32"), want, tol)


def test_graphs_are_exported(tmp_path):
    net, x = made(Through(rnn.LSTM(4, num_layers=2))), data()
    net.hybridize()
    y = net(x)
    net.export(str(tmp_path / "lstm"))
    again = gluon.SymbolBlock.imports(str(tmp_path / "lstm-symbol.json"), ["data"], str(tmp_path / "lstm-0000.params"))
    close(again(x), y)
    longer = data(7)
    close(again(longer), net(longer))


def test_zoneout_keeps_some_values():
    cell = made(rnn.ZoneoutCell(rnn.RNNCell(200), zoneout_outputs=0.3, zoneout_states=0.5))
    x = nd.random.normal(shape=(20, 2, 3))
    with autograd.train_mode():
        y = cell.unroll(2, x, merge_outputs=True)[0]
    kept = (y[:, 0] == 0).asnumpy()  # the step before the first is zero
    assert 0.25 < kept.mean() < 0.35
    plain = cell.unroll(2, x, merge_outputs=True)[0]
    assert (plain != 0).asnumpy().all()
    cell.hybridize()
    close(cell.unroll(2, x, merge_outputs=True)[0], plain)


@pytest.mark.parametrize("merged", [False, True])
def test_dropout_between_cells(merged):
    cell, x = rnn.DropoutCell(0.5), nd.ones((50, 4, 10))
    with autograd.train_mode():
        y, states = cell.unroll(4, x if merged else [x[:, i] for i in range(4)], merge_outputs=True)
    assert states == [] and 0.4 < (y == 0).asnumpy().mean() < 0.6
    with autograd.train_mode():
        y = rnn.DropoutCell(0.5, axes=(1,))(nd.ones((50, 10)), [])[0].asnumpy()
    assert (y.min(1) == y.max(1)).all() and len(np.unique(y)) == 2


def test_learning_from_batch_to_batch():
    """A state carried over, detached, trains as in every language model."""
    net = made(rnn.GRU(8))
    out = made(gluon.nn.Dense(1, flatten=False))
    trainer = gluon.Trainer({**net.collect_params(), **out.collect_params()}, "adam", {"learning_rate": 0.02})
    wave = nd.array(np.sin(np.arange(400) * 0.3)).reshape((400, 1, 1))
    losses = []
    for _ in range(6):
        states, total = net.begin_state(1), 0.0
        for i in range(0, 380, 20):
            states = [s.detach() for s in states]
            with autograd.record():
                y, states = net(wave[i : i + 20], states)
                loss = ((out(y) - wave[i + 1 : i + 21]) ** 2).mean()
            loss.backward()
            trainer.step(1)
            total += loss.asscalar()
        losses.append(total)
    assert losses[-1] < losses[0] / 5


def test_graphs_have_the_names_of_mxnet():
    with mx.name.NameManager():
        steps, _ = rnn.RNNCell(4, prefix="c_").unroll(
            2, mx.sym.var("data"), merge_outputs=False, valid_length=mx.sym.var("lengths")
        )
    assert [s.list_outputs() for s in steps] == [["split1_output0"], ["split1_output1"]]


@pytest.mark.parametrize("hybrid", [False, True])
def test_hooks_see_what_the_call_gives(hybrid):
    layer, seen = made(rnn.LSTM(4)), []
    layer.hybridize(hybrid)
    layer.register_forward_hook(lambda block, inputs, outputs: seen.append(outputs))
    outputs = layer(data())
    both = layer(data(), layer.begin_state(2))
    assert seen[0] is outputs and seen[1] is both and len(both) == 2


def test_activations_may_be_blocks():
    cell = made(
        rnn.LSTMCell(
            4, activation=gluon.nn.LeakyReLU(0.5), recurrent_activation=gluon.nn.Activation("sigmoid"), input_size=3
        )
    )
    eager = cell.unroll(5, data(), layout="TNC", merge_outputs=True)[0].asnumpy()
    cell.hybridize()
    np.testing.assert_allclose(cell.unroll(5, data(), layout="TNC", merge_outputs=True)[0].asnumpy(), eager, rtol=1e-5)


def test_cells_of_others_use_what_ours_use():
    class Gate(rnn.HybridRecurrentCell):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.dense = gluon.nn.Dense(3, in_units=3)

        def state_info(self, batch_size=0):
            return [{"shape": (batch_size, 3), "__layout__": "NC"}]

        def hybrid_forward(self, F, inputs, states):
            out = self._get_activation(F, self.dense(inputs + states[0]), "softsign", name=f"t{self._counter}_out")
            return self._get_activation(F, out, gluon.nn.LeakyReLU(0.5)), [out]

        def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None, valid_length=None):
            self.reset()
            inputs, axis, F, batch = find("mxnet.gluon.rnn.rnn_cell", "_format_sequence")(length, inputs, layout, False)
            states, outputs = (
                find("mxnet.gluon.rnn.rnn_cell", "_get_begin_state")(self, F, begin_state, inputs, batch),
                [],
            )
            for x in inputs:
                output, states = self(x, states)
                outputs.append(output)
            return find("mxnet.gluon.rnn.rnn_cell", "_mask_sequence_variable_length")(
                F, outputs, length, valid_length, axis, True
            ), states

    cell = made(Gate(prefix="g_"))
    lengths = nd.array([2, 5])
    outputs, _ = cell.unroll(5, data(), layout="TNC", valid_length=lengths)
    usual, _ = rnn.HybridRecurrentCell.unroll(cell, 5, data(), layout="TNC", valid_length=lengths, merge_outputs=True)
    np.testing.assert_array_equal(outputs.asnumpy(), usual.asnumpy())
    x = data()[0]
    y = cell.dense(x).asnumpy()
    y /= 1 + abs(y)
    np.testing.assert_allclose(cell(x, cell.begin_state(2))[0].asnumpy(), np.where(y < 0, y / 2, y), rtol=1e-6)
    assert "(dense): Dense(3 -> 3, linear)" in repr(cell)
    assert isinstance(rnn.GRU(3), find("mxnet.gluon.rnn.rnn_layer", "_RNNLayer"))


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (
            lambda: rnn.LSTM(4, prefix="p_")(nd.ones((5, 2))),
            ValueError,
            r"LSTM 'p': inputs must have three axes \(TNC\), got \(5, 2\)",
        ),
        (
            lambda: made(rnn.LSTM(4, prefix="p_", input_size=4))(data()),
            ValueError,
            r"LSTM 'p': inputs \(5, 2, 3\) have 3 "
            r"channels, the layer was made for 4",
        ),
        (
            lambda: rnn.LSTM(4, prefix="p_")(data(), [nd.ones((1, 3, 4))] * 2),
            ValueError,
            r"LSTM 'p': states must be \(1, 2, 4\), \(1, 2, 4\) for a batch of 2",
        ),
        (
            lambda: rnn.LSTM(4, prefix="p_")(data(), nd.ones((1, 2, 4))),
            ValueError,
            r"got \(1, 2, 4\); begin_state\(2\)",
        ),
        (lambda: rnn.GRU(4, layout="TCN"), ValueError, "layout must be one of TNC and NTC"),
        (lambda: rnn.RNN(4, activation="sig"), ValueError, "'relu' or 'tanh'"),
        (lambda: rnn.GRU(4, projection_size=2), TypeError, "GRU: only an LSTM takes projection_size"),
        (lambda: rnn.GRU(4, prefix="g_")(data(), None, nd.ones(2)), ValueError, "GRU 'g' takes no sequence_length"),
        (lambda: rnn.GRU(4, prefix="g_", use_sequence_length=True)(data()), ValueError, "sequence_length is missing"),
        (
            lambda: rnn.LSTMCell(4, prefix="c_")(data()[0], [nd.ones((2, 4))]),
            ValueError,
            r"LSTMCell 'c' has 2 state\(s\), got 1",
        ),
        (
            lambda: rnn.GRUCell(4, prefix="c_")(nd.ones((3, 5)), nd.ones((2, 4))),
            ValueError,
            r"GRUCell 'c': state 0 must be \(batch, 4\) with the batch of the inputs, 3",
        ),
        (
            lambda: rnn.LSTMCell(4, prefix="c_")(data()[0], [nd.ones((2, 5))] * 2),
            ValueError,
            r"LSTMCell 'c': state 0 must be \(batch, 4\), got \(2, 5\)",
        ),
        (
            lambda: rnn.RNNCell(4).unroll(4, data(), layout="TNC"),
            AssertionError,
            r"\(5, 2, 3\) have 5 steps in axis 0, length is 4",
        ),
        (lambda: rnn.RNNCell(4).unroll(4, [data()[0]]), ValueError, "inputs are 1 steps, length is 4"),
        (lambda: rnn.RNNCell(4).unroll(4, data(), layout="CC"), ValueError, "layout 'CC' must have the axes T"),
        (
            lambda: rnn.RNNCell(4).unroll(1, [3]),
            TypeError,
            "inputs must be an array or symbol, or a list of them, got int",
        ),
        (lambda: rnn.RNNCell(4).unroll(None, mx.sym.var("x")), ValueError, "give length"),
        (lambda: both()(data()[0], []), NotImplementedError, "cannot be stepped"),
        (lambda: rnn.ZoneoutCell(both()), ValueError, "no steps to change"),
        (
            lambda: rnn.ResidualCell(rnn.ResidualCell(rnn.GRUCell(3, prefix="c_")).base_cell),
            AssertionError,
            "GRUCell 'c' is used by a modifier cell already",
        ),
        (
            lambda: rnn.ResidualCell(rnn.GRUCell(3, prefix="c_")).base_cell.begin_state(),
            AssertionError,
            "call that instead",
        ),
        (lambda: rnn.LSTMCell("a"), ValueError, "LSTMCell: hidden_size must be a whole number from 1, got 'a'"),
        (
            lambda: rnn.GRUCell(4, input_size=3, prefix="c_")(nd.ones((2, 5)), nd.ones((2, 4))),
            ValueError,
            r"GRUCell 'c': inputs \(2, 5\) have 5 features, the cell was made for 3",
        ),
        (
            lambda: made(residual())(nd.ones((2, 4)), nd.ones((2, 3))),
            ValueError,
            r"ResidualCell 'c_residualcell' adds .* GRUCell\(4 -> 9\): inputs \(2, 4\), outputs \(2, 3\)",
        ),
        (
            lambda: made(residual()).unroll(3, nd.ones((2, 3, 4)), merge_outputs=True),
            ValueError,
            r"'c_residualcell' .* \(2, 3, 4\), outputs \(2, 3, 3\)",
        ),
        (
            lambda: made(residual()).unroll(3, nd.ones((2, 3, 4)), merge_outputs=False),
            ValueError,
            r"'c_residualcell' .* \(2, 4\), outputs \(2, 3\)",
        ),
        (lambda: rnn.DropoutCell("a"), AssertionError, "rate must be a number, got str"),
        (
            lambda: rnn.ResidualCell(5),
            TypeError,
            "ResidualCell goes around a cell: base_cell must be a RecurrentCell, got int",
        ),
        (lambda: rnn.ZoneoutCell(5), TypeError, "base_cell must be a RecurrentCell, got int"),
        (lambda: rnn.LSTM(4, 0), ValueError, "LSTM: num_layers must be a whole number from 1, got 0"),
        (lambda: rnn.GRU(2.5), ValueError, "GRU: hidden_size must be a whole number from 1, got 2.5"),
        (lambda: rnn.LSTMCell(3).unroll(0, []), ValueError, "inputs are an empty list"),
        (
            lambda: stacked().unroll(5, data(), [nd.ones((2, 3))], layout="TNC"),
            ValueError,
            "HybridSequentialRNNCell 's' has 3 states, got 1",
        ),
        (lambda: rnn.LSTM(4, projection_size=2)._unfuse(), NotImplementedError, "LSTMPCell"),
    ],
)
def test_what_does_not_fit_is_refused(call, kind, text):
    with pytest.raises(kind, match=text) as caught:
        call()
    assert isinstance(caught.value, MXNetError)


def both():
    return rnn_cases.both(rnn)


def residual():
    return rnn.ResidualCell(rnn.GRUCell(3, prefix="c_"))


def stacked():
    return rnn_cases.CELLS["hybrid stack"](mx)


@pytest.mark.parametrize(
    "kwargs",
    [{}, {"num_layers": 2}, {"bidirectional": True}, {"num_layers": 2, "bidirectional": True}, {"layout": "NTC"}],
)
@pytest.mark.parametrize("layer", LAYERS)
def test_graphs_find_the_size_of_the_input(layer, kwargs):
    net = layer(4, prefix="p_", **kwargs)
    symbol = net(mx.sym.var("data"))
    shapes = dict(zip(symbol.list_arguments(), symbol.infer_shape(data=(5, 2, 3))[0]))
    made(net)(nd.ones((5, 2, 3)))
    assert {n: shapes[n] for n in net.collect_params()} == {n: p.shape for n, p in net.collect_params().items()}
    outer = gluon.nn.HybridSequential()
    outer.add(layer(4, **kwargs))
    made(outer).hybridize()
    assert outer(nd.ones((5, 2, 3))).shape == (5, 2, 4 * (1 + kwargs.get("bidirectional", False)))


def test_cells_written_elsewhere_find_the_helpers():
    info, begin, backwards = (
        find("mxnet.gluon.rnn.rnn_cell", n) for n in ("_cells_state_info", "_cells_begin_state", "_reverse_sequences")
    )
    cells = [rnn.LSTMCell(3, input_size=2), rnn.GRUCell(4, input_size=2)]
    assert [i["shape"] for i in info(cells, 5)] == [(5, 3), (5, 3), (5, 4)]
    assert [s.shape for s in begin(cells, batch_size=5)] == [(5, 3), (5, 3), (5, 4)]
    steps = [nd.array([[i, 10 + i]]).T for i in range(3)]
    assert [s.asnumpy()[:, 0].tolist() for s in backwards(steps, 3)] == [[2, 12], [1, 11], [0, 10]]
    ends = backwards(steps, 3, nd.array([3, 2]))
    assert [s.asnumpy()[:, 0].tolist() for s in ends] == [[2, 11], [1, 10], [0, 12]]


def test_an_empty_batch_begins_with_empty_states():
    layer = made(rnn.LSTM(4, input_size=3))
    assert layer(nd.empty((5, 0, 3))).shape == (5, 0, 4)


def test_threads_share_a_cell_that_keeps_what_was_before():
    """A sequence that another thread begins leaves this one's alone; a copy has none."""
    cell = rnn.ZoneoutCell(rnn.RNNCell(2, input_size=2), zoneout_outputs=1.0)
    cell.initialize()
    x, states = mx.nd.ones((1, 2)), cell.begin_state(batch_size=1)

    def elsewhere(run):
        t = threading.Thread(target=run)
        t.start()
        t.join()

    cell._own.output = x * 3
    elsewhere(cell.reset)
    with mx.autograd.record():
        assert cell(x, states)[0].asnumpy().tolist() == [[3, 3]]
    twin = copy.deepcopy(cell)
    with mx.autograd.record():
        assert twin(x, states)[0].asnumpy().tolist() == [[0, 0]]


def test_threads_call_a_cell_that_a_modifier_uses():
    from mxcore.gluon.rnn.modifiers import Unwrapped

    base = rnn.RNNCell(2, input_size=2)
    cell = rnn.ResidualCell(base)

    def use():
        with Unwrapped(base):
            pass

    with Unwrapped(base):
        t = threading.Thread(target=use)
        t.start()
        t.join()
        assert len(base.begin_state(batch_size=1)) == 1
    assert cell.begin_state(batch_size=1)[0].shape == (1, 2)
    with pytest.raises(MXNetError, match="is used by a modifier cell"):
        base.begin_state(batch_size=1)
