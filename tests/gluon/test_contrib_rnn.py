"""Cells of ``gluon.contrib.rnn``: what golden files do not show."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, nd
from mxcore.base import MXNetError
from mxcore.gluon import rnn
from mxcore.gluon.contrib import rnn as contrib
from mxcore.gluon.contrib.rnn.rnn_cell import dynamic_unroll


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("share", ["drop_inputs", "drop_states", "drop_outputs"])
def test_the_same_mask_in_every_step(share, merge):
    cell = contrib.VariationalDropoutCell(rnn.RNNCell(40), **{share: 0.5})
    cell.initialize(mx.init.One())
    x = nd.ones((3, 6, 40))
    plain = cell.unroll(6, x, merge_outputs=True)[0].asnumpy()
    found = []
    with autograd.train_mode():
        for _ in range(2):
            y = cell.unroll(6, x, merge_outputs=merge)[0]
            found.append((y if merge else nd.stack(*y, axis=1)).asnumpy())
    assert (found[0] != found[1]).any() or share != "drop_outputs"
    if share == "drop_outputs":
        gone = found[0] == 0
        assert (gone.all(1) | ~gone.any(1)).all() and 0.3 < gone.mean() < 0.7
        np.testing.assert_allclose(found[0][~gone], 2 * plain[~gone], rtol=1e-6)


def test_dropped_states_are_the_same_units():
    """A cell that gives its state: what is dropped once is dropped for ever."""

    class Keep(rnn.HybridRecurrentCell):
        def state_info(self, batch_size=0):
            return [{"shape": (batch_size, 50), "__layout__": "NC"}]

        def hybrid_forward(self, F, inputs, states):
            return states[0], [F.ones_like(states[0])]

    cell = contrib.VariationalDropoutCell(Keep(), drop_states=0.5)
    with autograd.train_mode():
        outputs = [y.asnumpy() for y in cell.unroll(4, nd.ones((2, 4, 1)), [nd.ones((2, 50))], merge_outputs=False)[0]]
    assert 0.2 < (outputs[0] == 0).mean() < 0.8
    for y in outputs[1:]:
        np.testing.assert_array_equal(y, outputs[0])


@pytest.mark.parametrize("dims, layout", [(2, "NHWC"), (3, "NDHWC")])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_channels_last(kind, dims, layout):
    """As channels first, with weights turned; MXNet computes these on GPUs only."""
    sizes = (6, 5, 4)[:dims]
    make = getattr(contrib, f"Conv{dims}D{kind}Cell")
    first = make((2, *sizes), 3, 3, 3, i2h_pad=1)
    last = make((*sizes, 2), 3, 3, 3, i2h_pad=1, conv_layout=layout)
    first.initialize(mx.init.Uniform(0.5))
    last.initialize()
    for a, b in zip(first.collect_params().values(), last.collect_params().values()):
        value = a.data().asnumpy()
        b.set_data(nd.array(np.moveaxis(value, 1, -1) if value.ndim > 1 else value))
    x = np.random.RandomState(0).randn(2, 3, 2, *sizes).astype("float32")
    for hybrid in (False, True):
        if hybrid:
            last.hybridize()
        y, states = last.unroll(3, nd.array(np.moveaxis(x, 2, -1)), merge_outputs=True)
        want, wanted = first.unroll(3, nd.array(x), merge_outputs=True)
        np.testing.assert_allclose(np.moveaxis(y.asnumpy(), -1, 2), want.asnumpy(), rtol=1e-4, atol=1e-5)
        for a, b in zip(states, wanted):
            np.testing.assert_allclose(np.moveaxis(a.asnumpy(), -1, 1), b.asnumpy(), rtol=1e-4, atol=1e-5)


def test_a_projected_cell_is_a_projected_layer():
    layer = rnn.LSTM(4, projection_size=2, input_size=3, prefix="p_")
    layer.initialize(mx.init.Uniform(0.5))
    cell = contrib.LSTMPCell(4, 2, input_size=3)
    cell.initialize()
    for name in ("i2h_weight", "h2h_weight", "h2r_weight", "i2h_bias", "h2h_bias"):
        getattr(cell, name).set_data(getattr(layer, f"l0_{name}").data())
    x = nd.random.normal(shape=(5, 2, 3))
    np.testing.assert_allclose(
        cell.unroll(5, x, layout="TNC", merge_outputs=True)[0].asnumpy(), layer(x).asnumpy(), rtol=1e-5, atol=1e-6
    )


def test_a_loop_in_a_graph_takes_any_length():
    cell = rnn.GRUCell(3, input_size=2)
    cell.initialize(mx.init.Uniform(0.5))
    outputs, states = dynamic_unroll(cell, mx.sym.var("x"), [mx.sym.var("s")])
    for steps in (1, 4, 9):
        x = nd.random.normal(shape=(steps, 2, 2))
        want = cell.unroll(steps, x, [nd.ones((2, 3))], layout="TNC", merge_outputs=True)[0]
        given = {"x": x, "s": nd.ones((2, 3)), **{n: p.data() for n, p in cell.collect_params().items()}}
        np.testing.assert_allclose(outputs.eval(**given)[0].asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: contrib.Conv2DLSTMCell((2, 6, 5), 3, 3, 2), "h2h_kernel must be odd"),
        (lambda: contrib.Conv2DLSTMCell((2, 6), 3, 3, 3), "input_shape must be CHW"),
        (lambda: contrib.Conv2DGRUCell((2, 6, 5), 3, (3, 3, 3), 3), "i2h_kernel must be a number or 2 of them"),
        (lambda: contrib.Conv1DRNNCell((2, 6), 3, 3, 3, conv_layout="NCHW"), "conv_layout must be one of NCW, got"),
        (lambda: contrib.Conv1DRNNCell((2, 6), 3, 9, 3), "leaves nothing"),
        (
            lambda: contrib.VariationalDropoutCell(
                rnn.BidirectionalCell(rnn.RNNCell(2), rnn.RNNCell(2)), drop_states=0.1
            ),
            "BidirectionalCell has no steps",
        ),
        (
            lambda: contrib.LSTMPCell(4, 2, prefix="c_")(nd.ones((2, 3)), [nd.ones((2, 4))] * 2),
            r"LSTMPCell 'c': state 0 must be \(batch, 2\)",
        ),
        (
            lambda: contrib.Conv2DLSTMCell((2, 6, 6), 3, 3, 3, prefix="c_")(
                nd.ones((2, 2, 5, 5)), [nd.ones((2, 3, 4, 4))] * 2
            ),
            r"Conv2DLSTMCell 'c': inputs must be \(batch, 2, 6, 6\), as input_shape says, got \(2, 2, 5, 5\)",
        ),
        (
            lambda: contrib.Conv1DRNNCell((2, 6), 3, 3, 3, prefix="c_")(nd.ones((3, 2, 6)), [nd.ones((2, 3, 4))]),
            r"Conv1DRNNCell 'c': state 0 must be \(batch, 3, 4\) with the batch of the inputs, 3, got \(2, 3, 4\)",
        ),
        (
            lambda: contrib.LSTMPCell(4, 2, prefix="c_")(nd.ones((3, 3)), [nd.ones((2, 2)), nd.ones((2, 4))]),
            r"LSTMPCell 'c': state 0 .* inputs, 3, got \(2, 2\)",
        ),
        (
            lambda: contrib.Conv1DRNNCell((2, 6), 3, 3, 3, prefix="c_")(nd.ones((2, 2, 6)), [nd.ones((2, 3, 6))]),
            r"Conv1DRNNCell 'c': state 0 must be \(batch, 3, 4\)",
        ),
        (
            lambda: contrib.LSTMPCell(4, 2, input_size=3, prefix="c_")(
                nd.ones((2, 5)), [nd.ones((2, 2)), nd.ones((2, 4))]
            ),
            r"LSTMPCell 'c': inputs \(2, 5\) have 5 features, the cell was made for 3",
        ),
        (lambda: contrib.LSTMPCell(4, 2.5), "LSTMPCell: projection_size must be a whole number from 1, got 2.5"),
        (lambda: contrib.Conv1DRNNCell((2, 6), "a", 3, 3), "hidden_channels must be a whole number from 1, got 'a'"),
        (lambda: dynamic_unroll(rnn.GRUCell(3), nd.ones((2, 2, 2)), None), "begin_state must be given"),
    ],
)
def test_what_does_not_fit_is_refused(call, text):
    with pytest.raises(MXNetError, match=text):
        call()


@pytest.mark.parametrize(
    "cell, inputs, states",
    [
        (lambda: contrib.LSTMPCell(4, 2), (5,), [(2,), (4,)]),
        (lambda: contrib.Conv1DRNNCell((2, 6), 3, 3, 3), (2, 6), [(3, 4)]),
        (lambda: contrib.Conv2DLSTMCell((2, 6, 5), 3, 3, 3, 1), (2, 6, 5), [(3, 6, 5)] * 2),
        (lambda: contrib.Conv1DGRUCell((2, 6), 3, 3, 3), (2, 6), [(3, 4)]),
    ],
)
def test_a_state_of_batch_1_serves_all_rows(cell, inputs, states):
    """Sums of these cells broadcast in MXNet, those of other cells do not."""
    cell = cell()
    cell.initialize()
    found = []
    for n in (1, 3):
        begin = [nd.full((n, *s), 0.5) for s in states]
        for s in begin:
            s.attach_grad()
        with autograd.record():
            output, _ = cell(nd.ones((3, *inputs)), begin)
        output.backward()
        found.append([output.asnumpy(), *(s.grad.asnumpy().sum(axis=0) for s in begin)])
    for one, all_ in zip(*found):
        np.testing.assert_allclose(one, all_, rtol=1e-5, atol=1e-6)
