"""Loops, beyond what the golden numbers of MXNet show."""
import numpy as np
import pytest

import mxcore as mx


def run(outputs, train=False, **arrays):
    """Bind and run; the outputs as NumPy arrays."""
    s = mx.sym.Group(outputs)
    ex = s.bind(mx.cpu(), {n: arrays[n] for n in s.list_arguments()}, grad_req="null")
    return [y.asnumpy() for y in ex.forward(is_train=train)]


X, S = mx.sym.Variable("x"), mx.sym.Variable("s")
DATA, START = mx.nd.array(np.arange(6).reshape(3, 2)), mx.nd.array([1.0, 2.0])


def test_what_lies_outside_the_body_is_computed_once():
    calls = []

    class Note(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            calls.append(1)
            self.assign(out_data[0], req[0], in_data[0] * 2)

    @mx.operator.register("t_note")
    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Note()

    outside = mx.sym.Custom(S, op_type="t_note")
    out, last = mx.sym.contrib.foreach(lambda d, s: (d * outside, s + outside), X, S)
    found = run([out, last], x=DATA, s=START)
    assert len(calls) == 1 and found[0].tolist() == [[0, 4], [4, 12], [8, 20]] and found[1].tolist() == [7, 14]


def test_a_symbol_of_several_outputs_is_the_list_of_them():
    parts = mx.sym.SliceChannel(S, num_outputs=2, axis=0, name="parts")
    out, last = mx.sym.contrib.foreach(
        lambda d, s: (mx.sym.SliceChannel(d, num_outputs=2, axis=0), [s[0] + d, s[1] * d]), X, parts)
    assert len(out) == len(last) == 2
    found = run([*out, *last], x=DATA, s=mx.nd.array([1, 2, 3, 4]))
    assert [f.tolist() for f in found] == [[[0], [2], [4]], [[1], [3], [5]], [7, 11], [0, 60]]


def test_one_symbol_may_be_data_and_state():
    out, last = mx.sym.contrib.foreach(lambda d, s: (mx.sym.broadcast_mul(d, mx.sym.sum(s)), s), X, X)
    assert run([out], x=DATA)[0].tolist() == (DATA.asnumpy() * 15).tolist() and last.list_arguments() == ["x"]


def test_what_a_body_must_not_do_is_told():
    def loop(body, states=S):
        return mx.sym.contrib.foreach(body, X, states)

    with pytest.raises(ValueError, match="the body does not use s;"):
        loop(lambda d, s: (d, d))
    with pytest.raises(ValueError, match="returned 2 states, it was given 1"):
        loop(lambda d, s: (d, [s, s]))
    with pytest.raises(TypeError, match="outputs must be Symbols or nested lists of them, got int"):
        loop(lambda d, s: (3, s))
    one, two = (mx.sym.exp(S * i, name="same") for i in (1, 2))
    with pytest.raises(ValueError, match="two inputs of the body are named 'same_output'"):
        loop(lambda d, s: (d * one + two, s))


def test_loops_train_when_their_executor_does():
    out, _ = mx.sym.contrib.foreach(lambda d, s: (mx.sym.Dropout(d, p=0.5), s), X, S)
    ones = mx.nd.ones((4, 200))
    assert run([out], x=ones, s=START)[0].min() == 1
    found = run([out], True, x=ones, s=START)[0]
    assert set(found.ravel().tolist()) == {0, 2} and (found[0] != found[1]).any()


def test_a_file_without_its_sub_graph_is_refused():
    out, _ = mx.sym.contrib.foreach(lambda d, s: (d, s), X, S)
    text = out.tojson()
    assert mx.sym.load_json(text).tojson() == text
    with pytest.raises(mx.MXNetError, match="node 2 '_foreach.*': operator _foreach holds 1 sub-graphs, the file gives 0"):
        mx.sym.load_json(text.replace('"subgraphs"', '"nothing"'))
