"""What golden numbers do not show: checkpoints, chance, and what is said about wrong arguments."""

import numpy as np
import pytest

import mxcore as mx

rnn = mx.rnn


def x(name="x"):
    return mx.sym.Variable(name)


def test_a_checkpoint_of_a_fused_network_serves_single_cells(tmp_path):
    fused = rnn.FusedRNNCell(3, 2, "lstm", prefix="n_")
    out, _ = fused.unroll(2, x(), layout="TNC")
    vector = mx.nd.array(np.arange(out.infer_shape(x=(2, 1, 4))[0][1][0], dtype="float32"))
    rnn.save_rnn_checkpoint(fused, f"{tmp_path}/m", 7, out, {"n_parameters": vector}, {})
    assert set(mx.nd.load(f"{tmp_path}/m-0007.params")) >= {"arg:n_l0_i2h_i_weight", "arg:n_l1_h2h_o_bias"}
    symbol, arg, aux = rnn.load_rnn_checkpoint([fused], f"{tmp_path}/m", 7)
    assert symbol.tojson() == out.tojson() and aux == {}
    assert arg["n_parameters"].asnumpy().tolist() == vector.asnumpy().tolist()
    _, apart, _ = rnn.load_rnn_checkpoint(fused.unfuse(), f"{tmp_path}/m", 7)
    assert apart["n_l0_i2h_weight"].shape == (12, 4) and apart["n_l1_i2h_weight"].shape == (12, 3)


def test_checkpoints_every_second_epoch(tmp_path):
    cell = rnn.GRUCell(3)
    out = mx.sym.Group(cell.unroll(2, x())[0])
    arg = {n: mx.nd.ones(s) for n, s in zip(out.list_arguments(), out.infer_shape(x=(1, 2, 4))[0]) if n != "x"}
    save = rnn.do_rnn_checkpoint(cell, f"{tmp_path}/m", period=2)
    for epoch in range(4):
        save(epoch, out, arg, {})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m-0002.params", "m-0004.params", "m-symbol.json"]


def test_zoneout_keeps_shares_of_the_step_before():
    cell = rnn.ZoneoutCell(rnn.RNNCell(2000, activation=lambda v, name: v), zoneout_outputs=0.25)
    outputs, _ = cell.unroll(2, x())
    exe = mx.sym.Group(outputs).simple_bind(mx.cpu(), x=(1, 2, 1))
    exe.arg_dict["rnn_i2h_weight"][:] = 1
    exe.arg_dict["x"][:] = mx.nd.array([[[1], [2]]])
    mx.random.seed(1)
    first, second = (y.asnumpy() for y in exe.forward(is_train=True))
    assert set(np.unique(first)) == {0, 1} and set(np.unique(second)) == {0, 1, 2}
    assert abs((first == 0).mean() - 0.25) < 0.04 and abs((second == 2).mean() - 0.75) < 0.04
    assert set(np.unique(second[(second != 2) & (first == 0)])) == {0}  # what stays is the step before
    assert exe.forward(is_train=False)[0].asnumpy().min() == 1


def test_cells_share_weights_by_their_params():
    a = rnn.LSTMCell(3, prefix="l_")
    b = rnn.LSTMCell(3, prefix="l_", params=a.params)
    out = mx.sym.Group(a.unroll(1, x("a"))[0] + b.unroll(1, x("b"))[0])
    assert sorted(set(out.list_arguments())) == ["a", "b", "l_h2h_bias", "l_h2h_weight", "l_i2h_bias", "l_i2h_weight"]


def test_params_of_a_stack_reach_its_cells():
    params = rnn.RNNParams("all_")
    params.get("w")
    stack = rnn.SequentialRNNCell(params=params)
    cell = rnn.RNNCell(2)
    stack.add(cell)
    assert "all_w" in cell.params._params and "rnn_i2h_weight" in stack.params._params


def test_channels_last_convolutional_cells():
    for kind in (rnn.ConvRNNCell, rnn.ConvLSTMCell, rnn.ConvGRUCell):
        out, _ = kind((1, 6, 5, 2), 4, conv_layout="NHWC").unroll(2, x(), merge_outputs=True)
        exe = out.simple_bind(mx.cpu(), x=(3, 2, 6, 5, 2))
        assert exe.forward()[0].shape == (3, 2, 6, 5, 4)


def test_rnn_unroll_is_old_and_works():
    with pytest.warns(DeprecationWarning, match="cell.unroll"):
        outputs, _ = rnn.rnn_unroll(rnn.RNNCell(2), 2, input_prefix="s_")
    assert [n for n in mx.sym.Group(outputs).list_arguments() if "data" in n] == ["s_t0_data", "s_t1_data"]


def test_unknown_words_share_one_number():
    """MXNet 1.9.1 gives each of them the next one, and rewrites the number that the vocabulary had."""
    vocab = {"a": 5, "<unk>": 0}
    assert rnn.encode_sentences([["z", "a"], ["y"]], vocab=vocab, unknown_token="<unk>") == (
        [[0, 5], [0]],
        {"a": 5, "<unk>": 0},
    )
    found, vocab = rnn.encode_sentences([["z", "a"], ["y"]], vocab={"a": 5}, unknown_token="?", start_label=7)
    assert found == [[7, 5], [7]] and vocab == {"a": 5, "?": 7}


def test_fused_cell_asks_for_time_major():
    with pytest.warns(UserWarning, match="TNC"):
        rnn.FusedRNNCell(2).unroll(2, x())


def _wrapped():
    cell = rnn.LSTMCell(2)
    rnn.ResidualCell(cell)
    return cell


def _shared():
    cell = rnn.RNNCell(2)
    assert cell.params is not None
    return cell


BAD = {
    "no axis T": (lambda: rnn.RNNCell(2).unroll(2, x(), layout="NC"), ValueError, "layout 'NC' has no axis T"),
    "too few inputs": (lambda: rnn.RNNCell(2).unroll(3, [x(), x()]), ValueError, "2 inputs for 3 steps"),
    "no symbols": (lambda: rnn.RNNCell(2).unroll(1, [1.0]), TypeError, "a list with float"),
    "a group": (lambda: rnn.RNNCell(2).unroll(2, mx.sym.Group([x("a"), x("b")])), ValueError, "group of 2 symbols"),
    "states": (lambda: rnn.LSTMCell(2)(x(), [x("h")]), ValueError, "LSTMCell has 2 state.s., got 1"),
    "states of a stack": (
        lambda: rnn.FusedRNNCell(2).unfuse().unroll(1, x(), begin_state=[x("h")]),
        ValueError,
        "has 2 state",
    ),
    "hidden": (lambda: rnn.GRUCell(0), ValueError, "num_hidden must be a whole number from 1, got 0"),
    "mode": (lambda: rnn.FusedRNNCell(2, mode="LSTM"), ValueError, "one of rnn_relu, rnn_tanh, lstm, gru, not 'LSTM'"),
    "fused step": (lambda: rnn.FusedRNNCell(2)(x(), []), NotImplementedError, "unroll.*unfuse"),
    "both step": (
        lambda: rnn.BidirectionalCell(rnn.RNNCell(2), rnn.RNNCell(2))(x(), []),
        NotImplementedError,
        "call unroll",
    ),
    "both step in a stack": (
        lambda: rnn.FusedRNNCell(2, bidirectional=True, mode="gru").unfuse()(x(), [x("a"), x("b")]),
        ValueError,
        "needs the whole sequence",
    ),
    "wrapped": (lambda: _wrapped().begin_state(), ValueError, "wrapped by another cell"),
    "zoneout of fused": (lambda: rnn.ZoneoutCell(rnn.FusedRNNCell(2)), ValueError, "unfuse"),
    "zoneout of both": (
        lambda: rnn.ZoneoutCell(rnn.FusedRNNCell(2, bidirectional=True).unfuse()),
        AssertionError,
        "around the cells in it",
    ),
    "dropout": (lambda: rnn.DropoutCell("a lot"), AssertionError, "from 0 to below 1, got 'a lot'"),
    "no cell": (lambda: rnn.SequentialRNNCell().add(mx.sym.tanh), TypeError, "a cell of mx.rnn"),
    "params twice": (
        lambda: rnn.SequentialRNNCell(params=rnn.RNNParams()).add(_shared()),
        AssertionError,
        "not to both",
    ),
    "even kernel": (lambda: rnn.ConvRNNCell((1, 2, 5, 5), 3, h2h_kernel=(2, 2)), AssertionError, "odd sizes"),
    "unpack nothing": (
        lambda: rnn.LSTMCell(2).unpack_weights({"lstm_x": 1}),
        ValueError,
        "needs 'lstm_i2h_weight'.*'lstm_x'",
    ),
    "unpack another": (
        lambda: rnn.FusedRNNCell(2).unpack_weights({"lstm_parameters": mx.nd.ones(7)}),
        AssertionError,
        "7 numbers .* fit no lstm",
    ),
    "pack another": (
        lambda: rnn.FusedRNNCell(2, mode="rnn_tanh").pack_weights(
            {"rnn_tanh_l0_i2h_weight": mx.nd.ones((2, 3)), "rnn_tanh_l0_h2h_weight": mx.nd.ones((2, 3))}
        ),
        ValueError,
        r"\(2, 2\) is needed",
    ),
    "step of the base": (lambda: rnn.BaseRNNCell()(x(), []), NotImplementedError, "defines __call__"),
    "states of the base": (lambda: rnn.BaseRNNCell().begin_state(), NotImplementedError, "defines state_info"),
    "unknown word": (lambda: rnn.encode_sentences([["z"]], vocab={"a": 1}), KeyError, "no word 'z'"),
    "layout of batches": (lambda: rnn.BucketSentenceIter([[1]], 1, layout="NTC"), ValueError, "'NT' or 'TN'"),
    "no bucket": (lambda: rnn.BucketSentenceIter([[1], [1, 2]], 2), ValueError, "no 2 sentences of one length"),
    "empty buckets": (
        lambda: rnn.BucketSentenceIter([[1], [1, 2]], 2, buckets=[1, 2]),
        ValueError,
        r"there are \[1, 1\]",
    ),
    "cells": (lambda: rnn.save_rnn_checkpoint("lstm", "p", 0, None, {}, {}), TypeError, "cell of mx.rnn or a list"),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_arguments(name):
    what, kind, text = BAD[name]
    with pytest.raises(mx.MXNetError, match=text) as e:
        what()
    assert isinstance(e.value, kind)


def test_buckets_without_a_sentence_are_none(capsys):
    it = rnn.BucketSentenceIter([[1], [2], [1, 2, 3]], 1, buckets=[9, 1, 3, 5])
    assert (it.buckets, it.default_bucket_key, it.provide_data[0].shape) == ([1, 3], 3, (1, 3))
    assert capsys.readouterr().out == "WARNING: discarded 0 sentences longer than the largest bucket.\n"


def test_cells_of_ones_own_use_what_mxnets_have():
    class Mine(mx.rnn.BaseRNNCell):
        state_info = [{"shape": (0, 4), "__layout__": "NC"}]

        def __call__(self, inputs, states):
            self._counter += 1
            out = self._get_activation(inputs + states[0], "tanh", name=f"{self._prefix}t{self._counter}_out")
            return out, [self._get_activation(out, lambda x, **kw: x * 2)]

    outputs, _ = Mine("my_").unroll(2, mx.sym.Variable("x"))
    assert mx.sym.Group(outputs).list_outputs() == ["my_t0_out_output", "my_t1_out_output"]

    class Loud(mx.rnn.LSTMCell):
        def _get_activation(self, inputs, activation, **kwargs):
            return super()._get_activation(inputs, "relu" if activation == "tanh" else activation, **kwargs)

    nodes = mx.sym.Group(Loud(3).unroll(2, mx.sym.Variable("x"))[0]).tojson()
    assert '"relu"' in nodes and '"tanh"' not in nodes

    class Seen(mx.rnn.ConvLSTMCell):
        def convolved(self):
            return self._conv_forward(mx.sym.Variable("x"), self.begin_state(), "c_")

    assert [s.name for s in Seen((1, 2, 5, 5), 3).convolved()] == ["c_i2h", "c_h2h"]


def test_parts_of_a_fused_vector_are_views():
    cell = mx.rnn.FusedRNNCell(4, num_layers=2, mode="lstm", prefix="f_")
    vector = mx.nd.arange(4 * (3 + 4 + 2) * 4 + 4 * (4 + 4 + 2) * 4)
    parts = cell._slice_weights(vector, 3, 4)
    assert parts["f_l0_i2h_f_weight"].shape == (4, 3) and parts["f_l0_i2h_f_weight"][0, 0].asscalar() == 12
    assert parts["f_l1_h2h_o_bias"].asnumpy().tolist() == [300, 301, 302, 303]
    parts["f_l1_h2h_o_bias"][:] = -1
    assert vector[-1].asscalar() == -1
