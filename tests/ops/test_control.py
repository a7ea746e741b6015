"""Loops, beyond what the golden numbers of MXNet show."""

import json

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import tables


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
        lambda d, s: (mx.sym.SliceChannel(d, num_outputs=2, axis=0), [s[0] + d, s[1] * d]), X, parts
    )
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


def test_graphs_within_graphs_are_inferred_once():
    """Each level asks twice: a small file would take for ever."""
    g = {"nodes": [{"op": "null", "name": "d", "inputs": []}], "arg_nodes": [0], "heads": [[0, 0, 0]]}
    attrs = dict(num_args="2", num_outputs="1", num_out_data="1")
    attrs |= dict(in_data_locs="(0,)", in_state_locs="()", remain_locs="()")
    inner = g["nodes"][0]
    for i in range(40):
        loop = {"op": "_foreach", "name": f"f{i}", "attrs": attrs, "inputs": [[0, 0, 0]], "subgraphs": [g]}
        g = {"nodes": [inner, loop], "arg_nodes": [0], "heads": [[1, 0, 0]]}
    graph = mx.sym.load_json(json.dumps(g))
    assert graph.infer_type(d="float16")[1] == [np.float16] and graph.infer_type(d="int32")[1] == [np.int32]
    shape = (1,) * 30 + (2,) * 11
    with mx.util.np_shape():
        assert graph.infer_shape(d=shape)[1] == [shape]


def test_a_file_without_its_sub_graph_is_refused():
    out, _ = mx.sym.contrib.foreach(lambda d, s: (d, s), X, S)
    text = out.tojson()
    assert mx.sym.load_json(text).tojson() == text
    with pytest.raises(
        mx.MXNetError, match="node 2 '_foreach.*': operator _foreach holds 1 sub-graphs, the file gives 0"
    ):
        mx.sym.load_json(text.replace('"subgraphs"', '"nothing"'))


I = mx.sym.Variable("i")


def steps(cond=lambda i, s: i < 3, func=lambda i, s: (s, [i + 1, s]), variables=(I, S), **kwargs):
    """A while loop over symbols."""
    return mx.sym.contrib.while_loop(cond, func, list(variables), **{"max_iterations": 4, **kwargs})


def test_what_a_while_loop_must_not_do_is_told():
    for bad, kind, text in [
        (dict(max_iterations=None), ValueError, "max_iterations must be given"),
        (dict(max_iterations="x"), ValueError, "max_iterations must be an int, got 'x'"),
        (dict(max_iterations=0), ValueError, "max_iterations"),
        (dict(variables=()), ValueError, "loop_vars must hold at least one Symbol"),
        (dict(cond=lambda i, s: True), TypeError, "cond must return a Symbol of one output, got bool"),
        (dict(cond=lambda i, s: mx.sym.SliceChannel(s, num_outputs=2)), TypeError, "got Symbol of 2"),
        (dict(func=lambda i, s: (s, [i])), ValueError, "func returned 1 loop variables, it was given 2"),
        (
            dict(func=lambda i, s: (3, [i, s])),
            TypeError,
            "while_loop: outputs must be Symbols or nested lists of them, got int",
        ),
        (dict(func=lambda i, s: s), ValueError, r"func must return \(outputs, loop_vars\), got Symbol"),
        (dict(func=lambda i, s: (s, [s + 1, s])), ValueError, "func does not use i; leave it out of loop_vars"),
    ]:
        with pytest.raises(kind, match=text):
            steps(**bad)
    out, _ = steps(cond=lambda i, s: s)
    with pytest.raises(
        ValueError, match=r"node '_while_loop.*cond must give one number, it gave an array of shape \(2,\)"
    ):
        run([out], i=mx.nd.array([0]), s=START)
    _, last = steps(func=lambda i, s: ([], [i + 1, mx.sym.cast(s, dtype="float64")]))
    with pytest.raises(TypeError, match="float32 and float64 differ"):
        last[1].infer_type(i="float32", s="float32")


def test_what_a_while_loop_over_arrays_must_not_do_is_told():
    i, s = mx.nd.array([0]), mx.nd.array([1, 2])

    def loop(func=lambda i, s: (s, [i + 1, s]), cond=lambda i, s: i < 3, variables=(i, s), most=4):
        return mx.nd.contrib.while_loop(cond, func, list(variables), max_iterations=most)

    for bad, kind, text in [
        (dict(most=None), ValueError, "max_iterations must be given"),
        (dict(variables=()), ValueError, "at least one NDArray"),
        (dict(cond=lambda i, s: s), ValueError, r"what cond returns must be one number, got an array of shape \(2,\)"),
        (dict(func=lambda i, s: (s, [i])), ValueError, "func returned 1 loop variables, it was given 2"),
        (dict(func=lambda i, s: (s, [i, 3])), TypeError, "loop_vars must be NDArrays or nested lists of them, got int"),
        (
            dict(func=lambda i, s: (s, [i + 1, mx.nd.concat(s, s, dim=0)])),
            ValueError,
            r"outputs of step 1 have shapes \[\(4,\)\]",
        ),
        (dict(func=lambda i, s: ([s] if i.asscalar() else [s, s], [i + 1, s])), ValueError, "outputs of step 1"),
        (dict(func=lambda i, s: (s, i, s)), ValueError, "got 3 values"),
    ]:
        with pytest.raises(kind, match=text):
            loop(**bad)
    with pytest.raises(ValueError, match="pred must be one number"):
        mx.nd.contrib.cond(s, lambda: s, lambda: s)


def test_what_branches_must_not_do_is_told():
    cond = mx.sym.contrib.cond
    for args, kind, text in [
        ((True, lambda: X, lambda: X), TypeError, "pred must be a Symbol of one output, got bool"),
        ((I, lambda: [X, X], lambda: X), ValueError, "then_func returned 2 outputs, else_func 1"),
        ((I, list, list), ValueError, "the then-branch returned nothing"),
        (
            (I, lambda: X, lambda: 3),
            TypeError,
            "outputs of the else-branch must be Symbols or nested lists of them, got int",
        ),
    ]:
        with pytest.raises(kind, match=text):
            cond(*args)
    y = cond(I, lambda: mx.sym.cast(X, dtype="float64"), lambda: mx.sym.cast(X, dtype="int32"))
    with pytest.raises(
        TypeError, match="node '_cond.*output 0 is float64 in the then-branch and int32 in the else-branch"
    ):
        y.infer_type(x="float32", i="float32")
    with pytest.raises(ValueError, match="pred must give one number, it gave an array of shape"):
        run([cond(S, lambda: X, lambda: X * 2)], s=START, x=DATA)


@pytest.mark.parametrize("name", ["_foreach", "_while_loop", "_cond"])
def test_a_graph_without_outputs_is_refused(name):
    sample = tables.ops.get(name).samples[0]
    arrays = [mx.nd.array(a) for a in sample.arrays("float32")]
    with pytest.raises(ValueError, match=f"{name}: parameter 'num_outputs'.*1"):
        getattr(mx.nd._internal, name)(*arrays, **{**sample.params, "num_outputs": 0})


def test_shapes_and_dtypes_pass_through_both_ways():
    out, last = steps(func=lambda i, s: (mx.sym.FullyConnected(s, num_hidden=3, name="fc"), [i + 1, s * 2]))
    args, outs, _ = mx.sym.Group([out, *last]).infer_shape(i=(1,), s=(5, 2))
    assert args == [(1,), (5, 2), (3, 2), (3,)] and outs == [(4, 5, 3), (1,), (5, 2)]
    y = mx.sym.contrib.cond(I, lambda: X + S, lambda: X * S)
    assert y.infer_shape(i=(1,), x=(2, 3)) == ([(1,), (2, 3), (2, 3)], [(2, 3)], [])
    assert y.infer_type(i="int32", x="float64")[1] == [np.float64]
    ex = y.simple_bind(mx.cpu(), i=(1,), x=(2, 3), type_dict={"i": "int32"}, grad_req="null")
    assert ex.forward()[0].shape == (2, 3)


def test_no_step_gives_zeros_and_the_gradients_of_the_variables():
    out, (_, last) = steps(func=lambda i, s: (s * 2, [i + 1, s * s]))
    ex = mx.sym.Group([out, last]).simple_bind(mx.cpu(), i=(1,), s=(2,))
    ex.arg_dict["i"][:], ex.arg_dict["s"][:] = 5, 3
    ys = ex.forward(is_train=True)
    assert ys[0].asnumpy().tolist() == [[0, 0]] * 4 and ys[1].asnumpy().tolist() == [3, 3]
    ex.backward([mx.nd.ones((4, 2)), mx.nd.array([7, 8])])
    assert ex.grad_dict["s"].asnumpy().tolist() == [7, 8]
    data = mx.nd.empty((0, 2))
    out, last = mx.sym.contrib.foreach(lambda d, s: (d + s, s * 2), X, S)
    found = run([out, last], x=data, s=START)
    assert found[0].shape == (0, 2) and found[1].tolist() == [1, 2]


def test_rows_of_a_longer_loop_before_do_not_stay():
    out, _ = steps(func=lambda i, s: (s + i, [i + 1, s]), variables=(I, S))
    ex = mx.sym.BlockGrad(mx.sym.broadcast_add(out, mx.sym.Variable("z"))).simple_bind(
        mx.cpu(), i=(1,), s=(1,), z=(1,), grad_req="null"
    )
    for start, rows in ((0, [0, 1, 2, 0]), (2, [2, 0, 0, 0])):
        ex.arg_dict["i"][:] = start
        assert ex.forward()[0].asnumpy().ravel().tolist() == rows


class Loops(mx.gluon.HybridBlock):
    """A loop in a loop beside branches, with a layer inside."""

    def __init__(self, rate=0.0, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.dense = mx.gluon.nn.Dense(3, in_units=3, flatten=False)
            self.norm = mx.gluon.nn.BatchNorm(in_channels=3)
            self.rate = rate

    def hybrid_forward(self, F, x, s):
        def body(d, t):
            h = F.tanh(self.dense(d) + t)
            h = F.Dropout(F.contrib.cond(F.sum(h) > 0, lambda: h * 2, lambda: h * t), p=self.rate)
            return self.norm(h), h

        out, last = F.contrib.foreach(body, x, s)
        more, (_, end) = F.contrib.while_loop(
            lambda i, v: i < 2, lambda i, v: (v * last, [i + 1, self.dense(v)]), [F.zeros((1,)), last], max_iterations=3
        )
        return F.sum(out, axis=0) + F.sum(more, axis=0) + end


@pytest.mark.parametrize("train_mode", [True, False])
def test_hybridised_loops_are_the_same_as_eager_ones(train_mode):
    mx.random.seed(3)
    net = Loops()
    net.initialize(mx.init.Uniform(0.5))
    start = {k: p.data().copy() for k, p in net.collect_params().items()}
    x, s = (mx.nd.array(np.random.RandomState(1).uniform(-1, 1, shape)) for shape in ((4, 2, 3), (2, 3)))
    x.attach_grad("add")
    s.attach_grad()
    found = []
    for hybrid in (False, True):
        x.grad[:] = 0
        for k, p in net.collect_params().items():
            p.set_data(start[k])
        if hybrid:
            net.hybridize()
        ys = []
        for _ in range(3):  # the first learns what is wanted
            with mx.autograd.record(train_mode=train_mode):
                y = net(x, s)
            y.backward(train_mode=train_mode)
            ys.append(y.asnumpy())
        params = net.collect_params()
        found.append(
            [
                *ys,
                x.grad.asnumpy(),
                s.grad.asnumpy(),
                *[p.grad().asnumpy() for p in params.values() if p.grad_req != "null"],
                *[p.data().asnumpy() for k, p in params.items() if "running" in k],
            ]
        )
    assert len(found[0]) == 11
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_a_gradient_finds_the_numbers_that_its_forward_drew():
    out, last = mx.sym.contrib.foreach(lambda d, s: (mx.sym.Dropout(d, p=0.5) * s, s * 1), X, S)
    for _ in range(2):  # another binding of the same graph knows beforehand what to keep
        ex = out.simple_bind(mx.cpu(), x=(4, 50), s=(50,))
        ex.arg_dict["x"][:], ex.arg_dict["s"][:] = 1, 3
        for _ in range(2):
            y = ex.forward(is_train=True)[0].asnumpy()
            ex.backward(mx.nd.ones((4, 50)))
            assert set(y.ravel().tolist()) == {0, 6}
            assert (
                ex.grad_dict["x"].asnumpy().tolist() == y.tolist()
                and ex.grad_dict["s"].asnumpy().tolist() == (y / 3).sum(0).tolist()
            )


def test_gradients_of_gradients():
    """Through the eager form and the hybridised one."""

    class Cube(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            out, _ = F.contrib.foreach(
                lambda d, s: (d * s, s * d), F.Concat(x, x, dim=0), F.ones_like(F.slice_axis(x, axis=0, begin=0, end=1))
            )
            _, last = F.contrib.while_loop(
                lambda i, v: i < 1, lambda i, v: ([], [i + 1, v * v]), [F.zeros((1,)), F.sum(out)], max_iterations=2
            )
            return F.contrib.cond(last[0] > 0, lambda: last[1] * x, lambda: x)

    results = []
    for hybrid in (False, True):
        net = Cube()
        if hybrid:
            net.hybridize()
        x = mx.nd.array([2])
        x.attach_grad()
        with mx.autograd.record():
            y = net(x)  # (x + x²)² x
            (first,) = mx.autograd.grad([y], [x], create_graph=True)
        first.backward()
        results.append([y.asscalar().item(), first.asscalar().item(), x.grad.asscalar().item()])
    assert results[0] == results[1] == [72, 36 + 2 * 2 * 6 * 5, 60 + 60 + 100 + 48]


def test_an_operator_in_python_inside_a_loop_runs_step_by_step():
    calls = []

    class Note(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            calls.append(in_data[0].asnumpy().tolist())
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    @mx.operator.register("t_note_inside")
    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Note()

    out, last = mx.sym.contrib.foreach(lambda d, s: (mx.sym.Custom(d, op_type="t_note_inside") + s, s * d), X, S)
    ex = mx.sym.Group([out, last]).simple_bind(mx.cpu(), x=(3, 2), s=(2,))
    DATA.copyto(ex.arg_dict["x"])
    START.copyto(ex.arg_dict["s"])
    for _ in range(2):
        ex.forward(is_train=True)
        ex.backward([mx.nd.ones((3, 2)), mx.nd.zeros((2,))])
        assert ex.grad_dict["x"].asnumpy()[2].tolist() == [2, 2] and calls == DATA.asnumpy().tolist()
        calls.clear()


def test_long_loops():
    """Longer than what stays bound."""
    out, last = mx.sym.contrib.foreach(lambda d, s: (s * 1, s + d * S2), X, S)
    n = 600
    ex = mx.sym.Group([out, last]).simple_bind(mx.cpu(), x=(n, 1), s=(1,), z=(1,))
    ex.arg_dict["x"][:], ex.arg_dict["z"][:] = 1, 2
    for _ in range(3):
        ys = ex.forward(is_train=True)
        assert ys[0].asnumpy().ravel().tolist() == list(range(0, 2 * n, 2)) and ys[1].asscalar() == 2 * n
        ex.backward([mx.nd.zeros((n, 1)), mx.nd.ones((1,))])
        assert ex.grad_dict["z"].asscalar() == n and (ex.grad_dict["x"].asnumpy() == 2).all()


S2 = mx.sym.Variable("z")


def test_zipfian_candidates():
    mx.random.seed(1)
    for F in (mx.nd, mx.sym):
        found = F.contrib.rand_zipfian(mx.nd.array([0, 9]) if F is mx.nd else X, 20000, 10)
        if F is mx.sym:
            found = mx.sym.Group(list(found)).eval(x=mx.nd.array([0, 9]))
        drawn, true, sampled = found
        counts = np.bincount(drawn.asnumpy(), minlength=10)
        expected = 20000 * np.diff(np.log(np.arange(1, 12))) / np.log(11)
        assert drawn.dtype == np.int64 and counts.sum() == 20000
        assert np.abs(counts - expected).max() < 5 * np.sqrt(expected.max())
        np.testing.assert_allclose(true.asnumpy(), expected[[0, 9]])
        np.testing.assert_allclose(sampled.asnumpy(), expected[drawn.asnumpy()])
