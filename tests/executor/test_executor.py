"""Executors: bound graphs give what eager execution gives, and plugins' passes run."""

import numpy as np
import pytest

import mxcore as mx
from mxcore._core.graph import Node, variable
from mxcore._core.manager import manager
from mxcore.base import MXNetError
from mxcore.executor import CachedOp
from mxcore.plugin import Graph, GraphF, GraphPass, Value, rewrite


def graph():
    return mx.sym.tanh(mx.sym.Variable("x") * mx.sym.Variable("w"), name="t")


def values():
    return {"x": mx.nd.array([0.5, -1.0]), "w": mx.nd.array([2.0, 3.0])}


def test_forward_backward_and_requests():
    v = values()
    grads = {"x": mx.nd.ones((2,)), "w": mx.nd.ones((2,))}
    ex = graph().bind(mx.cpu(), v, grads, {"x": "add", "w": "write"})
    (y,) = ex.forward(is_train=True)
    ex.backward(mx.nd.array([1.0, 2.0]))
    slope = np.array([1.0, 2.0]) * (1 - np.tanh([1.0, -3.0]) ** 2)
    np.testing.assert_allclose(y.asnumpy(), np.tanh([1.0, -3.0]), rtol=1e-6)
    np.testing.assert_allclose(grads["x"].asnumpy(), 1 + slope * [2.0, 3.0], rtol=1e-5)
    np.testing.assert_allclose(grads["w"].asnumpy(), slope * [0.5, -1.0], rtol=1e-4)
    with pytest.raises(MXNetError, match="t_output is no loss and needs a gradient"):
        ex.backward()
    ex.backward(mx.nd.array([1.0, 2.0]))  # a second one: adds to x, writes w
    np.testing.assert_allclose(grads["x"].asnumpy(), 1 + 2 * slope * [2.0, 3.0], rtol=1e-5)
    np.testing.assert_allclose(grads["w"].asnumpy(), slope * [0.5, -1.0], rtol=1e-4)
    ex.forward(x=mx.nd.array([0.0, 0.0]))
    assert ex.outputs[0] is y and y.asnumpy().tolist() == [0, 0]


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda s: s.bind(mx.cpu(), {"x": mx.nd.ones((2,))}), r"args lacks 'w'"),
        (lambda s: s.bind(mx.cpu(), [mx.nd.ones((2,))]), "args has 1 arrays, the symbol 2"),
        (lambda s: s.bind(mx.cpu(1), values()), r"lives on cpu\(0\), the executor on cpu\(1\)"),
        (lambda s: s.bind(mx.cpu(), values(), grad_req="sum"), "must be 'write', 'add' or 'null'"),
        (lambda s: s.bind(mx.cpu(), values()).forward(y=1), "no argument is named 'y'"),
        (lambda s: s.bind(mx.cpu(), values()).forward(x=mx.nd.ones((3,))), "'x' has shape"),
        (lambda s: s.bind(mx.cpu(), {"x": mx.nd.ones((2,)), "w": mx.nd.ones((3,))}), "inconsistent shapes"),
    ],
)
def test_wrong_arrays_are_explained(call, text):
    with pytest.raises(MXNetError, match=text):
        call(graph())


def test_a_pass_changes_what_runs(passes):
    def without_tanh(g):
        return Graph([n.inputs[0] if n.op is not None and n.op.name == "tanh" else (n, i) for n, i in g.heads])

    order = []
    passes(
        GraphPass("later", 200, lambda g: (order.append("later"), g)[1]),
        GraphPass("sooner", 100, lambda g: (order.append("sooner"), without_tanh(g))[1]),
    )
    ex = graph().bind(mx.cpu(), values(), {"x": mx.nd.zeros((2,))})
    assert ex.forward(is_train=True)[0].asnumpy().tolist() == [1.0, -3.0] and order == ["sooner", "later"]
    ex.backward(mx.nd.ones((2,)))
    assert ex.grad_dict["x"].asnumpy().tolist() == [2.0, 3.0]


def test_a_pass_without_an_order_runs_by_name_only(passes):
    def twice(g):
        return Graph([(mx.sym.identity(mx.sym.Symbol([h])) * 2)._heads[0] for h in g.heads])

    passes(GraphPass("twice", None, twice))
    assert graph().bind(mx.cpu(), values()).forward()[0].asnumpy()[0] < 1
    assert graph().optimize_for("twice").bind(mx.cpu(), values()).forward()[0].asnumpy()[0] > 1


def test_a_bad_pass_is_named(passes):
    passes(GraphPass("broken", 1, lambda g: 1 / 0))
    with pytest.raises(MXNetError, match="graph pass 'broken' of passing failed: ZeroDivisionError"):
        graph().bind(mx.cpu(), values())
    manager.unregister("passing")
    passes(GraphPass("forgetful", 1, lambda g: None))
    with pytest.raises(MXNetError, match="graph pass 'forgetful' of passing must return a Graph with 1 heads"):
        graph().bind(mx.cpu(), values())
    manager.unregister("passing")
    passes(GraphPass("unknown", 1, lambda g: rewrite(g, lambda n, ins, fact: [GraphF(n.name).softsgn(ins[0]).entry])))
    with pytest.raises(KeyError, match="graph pass 'unknown' of passing failed: no operator is named 'softsgn'"):
        graph().bind(mx.cpu(), values())


@pytest.mark.parametrize("give", [lambda value: value, lambda value: [value], lambda value: 3])
def test_a_pass_gives_entries(passes, give):
    def visit(node, inputs, fact):
        F = GraphF(node.name)
        return give(F.softsign(Value(inputs[0], F)))

    passes(GraphPass("wrong", 1, lambda g: rewrite(g, visit)))
    with pytest.raises(
        TypeError, match="graph pass 'wrong' of passing failed: in the place of node .* a list of entri"
    ):
        graph().bind(mx.cpu(), values())


def test_the_value_of_a_graph_does_not_pretend_to_be_a_sequence():
    F = GraphF("x")
    with pytest.raises(TypeError, match="not iterable"):
        list(F._zeros(shape=(2,)))


def test_a_monitor_may_take_itself_away():
    ex, seen = graph().bind(mx.cpu(), values()), []

    def once(name, value):
        seen.append(name)
        ex.set_monitor_callback(None)

    ex.set_monitor_callback(once, monitor_all=True)
    ex.forward()
    ex.forward()
    assert len(seen) == 1


@pytest.mark.parametrize(
    "heads, text",
    [
        (lambda n: [(n, 1)], "there is no output 1 of node 'y'"),
        (lambda n: [(n, -1)], "there is no output -1 of node 'y'"),
        (lambda n: [(Node(n.op, n.params, [], "bare"), 0)], "node 'bare' has 0 inputs, it takes lhs, rhs"),
        (lambda n: [(variable("new"), 0)], "variable 'new' is none of the graph"),
        (lambda n: [(variable("x"), 0)], "variable 'x' is none of the graph"),
        (lambda n: [None], "failed: TypeError"),
        (lambda n: [("n", 0)], "failed: AttributeError"),
    ],
)
@pytest.mark.parametrize("hybrid", [False, True])
def test_a_pass_that_breaks_the_graph_is_named(passes, heads, text, hybrid):
    passes(GraphPass("careless", 1, lambda g: Graph(heads(g.heads[0][0]))))
    x = mx.nd.ones((2,))
    with pytest.raises(MXNetError, match=f"graph pass 'careless' of passing .*{text}"):
        if hybrid:
            net = mx.gluon.nn.HybridLambda(lambda F, x: F.broadcast_add(x, x, name="y"), prefix="")
            net.hybridize()
            net(x)
        else:
            mx.sym.broadcast_add(mx.sym.var("x"), mx.sym.var("z"), name="y").bind(mx.cpu(), {"x": x, "z": x})


def test_a_pass_whose_graph_runs_in_a_circle_is_named(passes):
    def turning(g):
        n = g.heads[0][0]
        new = Node(n.op, n.params, n.inputs, "turning")
        new.inputs = ((new, 0),)
        return Graph([(new, 0)])

    passes(GraphPass("turning", 1, turning))
    with pytest.raises(MXNetError, match="graph pass 'turning' of passing .* node 'turning' depends on itself"):
        mx.sym.tanh(mx.sym.var("x")).bind(mx.cpu(), {"x": mx.nd.ones((2,))})


class _Scale(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], mx.nd.array(in_data[0].asnumpy() * 3))
        aux[0][:] = aux[0] + 1

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 3)


@mx.operator.register("test_executor_scale")
class _ScaleProp(mx.operator.CustomOpProp):
    def list_auxiliary_states(self):
        return ["count"]

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0]], [[1]]

    def create_operator(self, ctx, shapes, dtypes):
        return _Scale()


def test_custom_operators_eager_and_bound():
    x, count = mx.nd.array([1.0, 2.0]), mx.nd.zeros((1,))
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Custom(x, count, op_type="test_executor_scale")
    y.backward()
    assert y.asnumpy().tolist() == [3, 6] and x.grad.asnumpy().tolist() == [3, 3] and count.asscalar() == 1
    s = mx.sym.Custom(mx.sym.Variable("x"), op_type="test_executor_scale", name="c")
    assert s.list_auxiliary_states() == ["c_count"]
    ex = s.simple_bind(mx.cpu(), x=(2,))
    ex.arg_dict["x"][:] = x
    assert ex.forward(is_train=True)[0].asnumpy().tolist() == [3, 6] and ex.aux_dict["c_count"].asscalar() == 1
    ex.backward(mx.nd.ones((2,)))
    assert ex.grad_dict["x"].asnumpy().tolist() == [3, 3]
    with pytest.raises(MXNetError, match="no operator is registered as 'nowhere'"):
        mx.nd.Custom(x, op_type="nowhere")


def test_a_custom_operator_that_raises_is_named_and_work_goes_on():
    class Broken(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            raise ValueError("no luck")

    @mx.operator.register("test_executor_broken")
    class BrokenProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Broken()

    with pytest.raises(ValueError, match="operator Custom with .*no luck"):
        mx.nd.Custom(mx.nd.ones((2,)), op_type="test_executor_broken")
    assert (mx.nd.ones((2,)) + 1).asnumpy().tolist() == [2, 2]


def test_foreach_eager_and_bound_agree():
    data, start, w = mx.nd.array(np.arange(6).reshape(3, 2)), mx.nd.ones((2,)), mx.nd.array([2.0, 3.0])
    for a in (data, start, w):
        a.attach_grad()
    with mx.autograd.record():
        out, last = mx.nd.contrib.foreach(lambda d, s: (d * w + s, d * w + s), data, start)
    mx.autograd.backward([out, last])
    x, s, v = (mx.sym.Variable(n) for n in "xsw")
    sym_out, sym_last = mx.sym.contrib.foreach(lambda d, st: (d * v + st, d * v + st), x, s)
    g = mx.sym.Group([sym_out, sym_last])
    assert g.infer_shape(x=(3, 2)) == ([(3, 2), (2,), (2,)], [(3, 2), (2,)], [])
    ex = g.bind(
        mx.cpu(),
        {"x": data, "s": start, "w": w},
        {n: mx.nd.zeros(a.shape) for n, a in (("x", data), ("s", start), ("w", w))},
    )
    outs = ex.forward(is_train=True)
    ex.backward([mx.nd.ones(y.shape) for y in outs])
    assert outs[0].asnumpy().tolist() == out.asnumpy().tolist() == [[1, 4], [5, 13], [13, 28]]
    for n, a in (("x", data), ("s", start), ("w", w)):
        assert ex.grad_dict[n].asnumpy().tolist() == a.grad.asnumpy().tolist()
    with pytest.raises(MXNetError, match="the body does not use"):
        mx.sym.contrib.foreach(lambda d, st: (d, d), x, s)


def test_backward_belongs_to_the_last_forward():
    x = mx.sym.Variable("x")
    net = mx.sym.tanh(x) * mx.sym.exp(x) * x

    def slope(v):
        t, e = np.tanh(v), np.exp(v)
        return (1 - t * t) * e * v + t * e * v + t * e

    grad = mx.nd.zeros((1,))
    ex = net.bind(mx.cpu(), [mx.nd.array([1.0])], [grad])
    ex.backward(mx.nd.ones((1,)))  # no forward at all
    np.testing.assert_allclose(grad.asnumpy(), [slope(1)], rtol=1e-5)
    ex.forward(is_train=True)
    ex.forward(is_train=False, x=mx.nd.array([2.0]))
    ex.backward(mx.nd.ones((1,)))
    np.testing.assert_allclose(grad.asnumpy(), [slope(2)], rtol=1e-5)
    drop = mx.sym.Dropout(x, p=0.5).bind(mx.cpu(), [mx.nd.ones((50,))], [mx.nd.zeros((50,))])
    drop.forward()
    drop.backward(mx.nd.ones((50,)))
    assert (drop.grad_arrays[0].asnumpy() == 1).all()  # as in predict mode


@pytest.mark.parametrize("drop", [0.0, 0.5])
def test_backward_after_a_forward_that_failed_computes_it_again(drop):
    fails = []

    class Fails(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            if fails:
                raise fails.pop()
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    @mx.operator.register("test_executor_fails")
    class FailsProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Fails()

    x = mx.sym.Variable("x")
    net = mx.sym.square(mx.sym.Custom(mx.sym.Dropout(mx.sym.tanh(x), p=drop), op_type="test_executor_fails"))
    ex = net.simple_bind(mx.cpu(), x=(40,))
    ex.forward(is_train=True, x=mx.nd.ones((40,)) * 3)
    fails.append(KeyboardInterrupt() if drop else ValueError("no luck"))
    with pytest.raises((KeyboardInterrupt, ValueError)):
        ex.forward(is_train=True, x=mx.nd.ones((40,)) * 0.5)
    ex.backward(mx.nd.ones((40,)))
    t = np.tanh(0.5)
    kept = (ex.outputs[0].asnumpy() > 0) / (1 - drop)
    assert bool(drop) == (0 in kept)
    np.testing.assert_allclose(ex.outputs[0].asnumpy(), (2 * t * kept) ** 2, rtol=1e-5)
    np.testing.assert_allclose(ex.grad_dict["x"].asnumpy(), 8 * kept**2 * t * (1 - t * t), rtol=1e-5)


@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize("backward", [False, True])
def test_backward_has_a_training_mode_of_its_own(forward, backward):
    e = mx.sym.BatchNorm(mx.sym.Variable("x"), fix_gamma=False, name="bn").simple_bind(mx.cpu(), x=(4, 2))
    x = mx.nd.array(np.random.RandomState(0).uniform(-1, 1, (4, 2)))
    dy = mx.nd.arange(8).reshape((4, 2))
    e.copy_params_from(
        {"x": x, "bn_gamma": mx.nd.ones(2), "bn_beta": mx.nd.zeros(2)},
        {"bn_moving_mean": mx.nd.array([0.1, 0.2]), "bn_moving_var": mx.nd.array([0.5, 2.0])},
    )
    values = [
        e.arg_dict["x"].copy(),
        *[e.arg_dict[n].copy() for n in ("bn_gamma", "bn_beta")],
        *[a.copy() for a in e.aux_arrays],
    ]
    for v in values[:3]:
        v.attach_grad()
    with mx.autograd.record(train_mode=forward):
        y = mx.nd.BatchNorm(*values, fix_gamma=False)
    y.backward(dy, train_mode=backward)
    e.forward(is_train=forward)
    e.backward(dy, is_train=backward)
    for name, v in zip(("x", "bn_gamma", "bn_beta"), values):
        np.testing.assert_allclose(e.grad_dict[name].asnumpy(), v.grad.asnumpy(), rtol=1e-5, atol=1e-6)
    for a, v in zip(e.aux_arrays, values[3:]):
        np.testing.assert_allclose(a.asnumpy(), v.asnumpy(), rtol=1e-6)


def test_storage_types_are_those_asked_for():
    ex = mx.sym.dot(mx.sym.Variable("x", stype="csr"), mx.sym.Variable("w")).simple_bind(
        mx.cpu(), x=(3, 4), w=(4, 2), grad_req="null"
    )
    assert ex.arg_dict["x"].stype == "csr" and ex.arg_dict["w"].stype == "default"
    ex.arg_dict["x"][:] = mx.nd.sparse.csr_matrix(np.eye(3, 4, dtype=np.float32))
    ex.arg_dict["w"][:] = 2
    assert ex.forward()[0].asnumpy().tolist() == [[2, 2]] * 3


def test_wrong_values_are_refused_where_they_come_in():
    ex = graph().bind(mx.cpu(), values())
    with pytest.raises(MXNetError, match=r"argument 'w' has shape \(2,\), the value given \(1,\)"):
        ex.copy_params_from({"w": mx.nd.ones((1,))})
    with pytest.raises(MXNetError, match=r"gradient of 'x' has shape \(3,\), the argument \(2,\)"):
        graph().bind(mx.cpu(), values(), {"x": mx.nd.zeros((3,))})


def test_a_gradient_that_forward_has_computed():
    """A head of the second part may be a value of the first."""
    from mxcore.executor.instance import Instance
    from mxcore.executor.program import Program, infer_all

    x = mx.sym.Variable("x")
    y = mx.sym.exp(x)
    graph = Graph([(y * 2)._heads[0], y._heads[0]])
    graph.shapes, graph.dtypes, graph.stypes = infer_all(graph.heads, {"x": (3,)}, {"x": np.dtype("float32")}, {})
    program = Program(graph, mx.cpu(), False, n_first=1)
    instance = Instance(program)
    data, outs = np.array([0, 1, 2], np.float32), np.zeros((2, 3), np.float32)
    for part in (0, 1):
        instance.bind(part, [(program.variables["x"], data)], [(part, outs[part])])
        instance.run(part, [])
    np.testing.assert_allclose(outs, [2 * np.exp(data), np.exp(data)], rtol=1e-6)


@pytest.mark.parametrize("req, times", [("write", 1), ("add", 2)])
@pytest.mark.parametrize("stype", ["row_sparse", "csr"])
def test_dense_gradients_go_into_sparse_arrays(stype, req, times):
    a = mx.sym.Variable("a")
    values = np.array([[1, 2], [0, 0], [3, 4]], np.float32)
    ex = (a * a).bind(mx.cpu(), {"a": mx.nd.array(values)}, {"a": mx.nd.sparse.zeros(stype, (3, 2))}, req)
    for _ in range(2):
        ex.forward(is_train=True)
        ex.backward(mx.nd.ones((3, 2)))
    grad = ex.grad_dict["a"]
    assert grad.stype == stype and grad.data.shape[0] == (2 if stype == "row_sparse" else 4)
    np.testing.assert_array_equal(grad.asnumpy(), 2 * times * values)


@pytest.mark.parametrize("rows", [2, 5])
def test_reshape_of_sparse_arguments(rows):
    x, w = mx.sym.Variable("x", stype="csr"), mx.sym.Variable("w")
    ex = mx.sym.dot(x, w).simple_bind(mx.cpu(), x=(3, 4), w=(4, 2), grad_req={"x": "null", "w": "write"})
    ex.arg_dict["w"][:] = mx.nd.ones((4, 2))
    values = np.arange(rows * 4).reshape(rows, 4) % 3
    other = ex.reshape(x=(rows, 4), w=(4, 2))
    assert other.arg_dict["x"].stype == "csr"
    y = other.forward(is_train=True, x=mx.nd.array(values).tostype("csr"))[0]
    other.backward(mx.nd.ones((rows, 2)))
    assert y.asnumpy().tolist() == (values @ np.ones((4, 2))).tolist()
    assert other.grad_dict["w"].asnumpy().tolist() == (values.T @ np.ones((rows, 2))).tolist()


def test_simple_bind_knows_where_gradients_are_sparse():
    net = mx.sym.sparse.dot(mx.sym.Variable("x", stype="csr"), mx.sym.Variable("w", stype="row_sparse"))
    ex = net.simple_bind(mx.cpu(), x=(3, 4), w=(4, 2))
    assert ex.grad_dict["w"].stype == "row_sparse"


def test_executors_that_share_share_their_outputs():
    net = mx.sym.exp(mx.sym.Variable("x"))
    large = net.simple_bind(mx.cpu(), x=(8, 4))
    small = net.simple_bind(mx.cpu(), x=(3, 4), shared_exec=large)
    other = net.simple_bind(mx.cpu(), x=(3, 4))
    assert np.shares_memory(small.outputs[0]._data, large.outputs[0]._data) and not np.shares_memory(
        other.outputs[0]._data, large.outputs[0]._data
    )
    for ex in (large, small, large):
        ex.arg_dict["x"][:] = 0
        assert (ex.forward()[0].asnumpy() == 1).all() and ex.outputs[0].shape == ex.arg_dict["x"].shape


def test_a_gradient_that_is_bound_but_not_wanted_is_shown_and_left_alone():
    grad = mx.nd.ones((2,)) * 7
    ex = (mx.sym.Variable("x") * 2).bind(
        mx.cpu(), {"x": mx.nd.ones((2,))}, args_grad={"x": grad}, grad_req={"x": "null"}
    )
    ex.forward(is_train=True)
    ex.backward([mx.nd.ones((2,))])
    assert ex.grad_dict["x"] is grad and grad.asnumpy().tolist() == [7, 7]


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("where", ["same", "others", "views", "parts"])
def test_gradients_may_lie_in_the_memory_of_arguments(where, req):
    """Each is computed from the arguments as they were, and the memory has the gradients in the end."""
    net = mx.sym.make_loss(mx.sym.dot(mx.sym.dot(mx.sym.var("x"), mx.sym.var("y")), mx.sym.var("z")))
    block = np.float32([1.5, 2, -0.5, 3, 0.5, -1, 0.25, 2, 0.75, 1, -2, 0.5])

    def lie(first):
        return mx.nd.from_numpy(block[first : first + 4].reshape(2, 2))

    a, b, c = (block[i : i + 4].reshape(2, 2).copy() for i in (0, 4, 8))
    args = {"x": lie(0), "y": lie(4), "z": lie(8)}
    grads = {
        "same": args,
        "others": {"x": args["z"], "y": args["x"], "z": args["y"]},
        "views": {"x": lie(0), "y": lie(8), "z": lie(4)},
        "parts": {"x": lie(2), "y": mx.nd.zeros((2, 2)), "z": lie(6)},
    }[where]
    before = {n: g.asnumpy() * (req == "add") for n, g in grads.items()}
    bound = net.bind(mx.cpu(), args, args_grad=grads, grad_req=req)
    bound.forward(is_train=True)
    bound.backward()
    ones = np.ones((2, 2), "f4")
    for name, wanted in {"x": ones @ (b @ c).T, "y": a.T @ ones @ c.T, "z": (a @ b).T @ ones}.items():
        np.testing.assert_allclose(grads[name].asnumpy(), before[name] + wanted, rtol=1e-5)


def test_head_gradients_may_lie_in_the_memory_of_gradients():
    x, y = mx.sym.var("x"), mx.sym.var("y")
    args = {"x": mx.nd.array([1.5, 2, 3]), "y": mx.nd.array([0.5, -1, 0.25])}
    grads = {"x": mx.nd.array([2, 3, 5]), "y": mx.nd.zeros(3)}
    net = (x * mx.sym.tanh(y)).bind(mx.cpu(), args, args_grad=grads)
    a, b, g = args["x"].asnumpy(), args["y"].asnumpy(), grads["x"].asnumpy()
    net.forward(is_train=True)
    net.backward(grads["x"])
    np.testing.assert_allclose(grads["x"].asnumpy(), g * np.tanh(b), rtol=1e-6)
    np.testing.assert_allclose(grads["y"].asnumpy(), g * a * (1 - np.tanh(b) ** 2), rtol=1e-6)


@pytest.mark.parametrize(
    "net, text",
    [
        (lambda x: mx.sym.FullyConnected(x, num_hidden=10**12, name="fc"), "no memory for argument 'fc_weight': "),
        (lambda x: mx.sym.tile(x, reps=(10**6, 10**7), name="wide"), "no memory for output 0 of node 'wide': "),
    ],
)
def test_where_memory_ends_it_is_told_for_what(net, text):
    with pytest.raises(MemoryError, match=text) as caught:
        net(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(2, 3))
    assert isinstance(caught.value, mx.MXNetError)


def _gradient(y, x, out_grads):
    exe = y.bind(mx.cpu(), {"x": x}, {"x": mx.nd.zeros(x.shape, dtype=x.dtype)})
    exe.forward(is_train=True)
    exe.backward(out_grads)
    return exe.grad_dict["x"].asnumpy().tolist()


def test_head_gradients_are_asked_for_and_compared_where_they_are_read():
    v, x = mx.sym.Variable("x"), mx.nd.array([[1.0, 2], [3, 4]])
    one = mx.nd.ones((2, 2))
    for y in (mx.sym.shape_array(v), mx.sym.argmax(v, axis=1), mx.sym.zeros_like(v)):
        for g in (None, [], mx.nd.ones((7,)), [mx.nd.ones((1,), dtype="int64")]):
            assert _gradient(y, x, g) == [[0, 0], [0, 0]]
    assert _gradient(mx.sym.MakeLoss(v), x, [mx.nd.ones((3,))]) == [[1, 1], [1, 1]]
    hidden = mx.sym.Dropout(v, p=0.0)  # its mask is an output, too
    assert _gradient(hidden, x, [one, one]) == _gradient(hidden, x, one) == [[1, 1], [1, 1]]
    both = mx.sym.Group([v * 2, mx.sym.make_loss(v)])
    assert _gradient(both, x, [one]) == [[3, 3], [3, 3]]
    for g, words in (
        ([], "output _mulscalar.*_output is no loss"),
        ([one.asnumpy()], "must be an NDArray, got ndarray"),
        (one.asnumpy(), "must be an NDArray"),
        ([mx.nd.ones((3,))], r"has shape \(3,\), the output \(2, 2\)"),
    ):
        with pytest.raises(mx.MXNetError, match=words):
            _gradient(both, x, g)


@pytest.mark.parametrize("way", ["executor", "hybridised", "foreach"])
def test_head_gradients_may_be_row_sparse(way):
    """Given by who calls backward, or by ``sparse.dot`` behind the graph; the same as dense ones."""
    x = mx.nd.array([[1.0, 2], [3, 4], [5, 6]])
    g = mx.nd.sparse.row_sparse_array(([[3.0, 4]], [1]), shape=(3, 2))
    if way == "executor":
        assert _gradient(mx.sym.exp(mx.sym.Variable("x")) * 2, x, g)[::2] == [[0, 0], [0, 0]]
        assert _gradient(mx.sym.Variable("x") * 2, x, g) == [[0, 0], [6, 8], [0, 0]]
        return
    net = mx.gluon.nn.HybridLambda(lambda F, x: x * 2)
    if way == "foreach":
        net = mx.gluon.nn.HybridLambda(lambda F, x: F.contrib.foreach(lambda d, s: (d * 2, s), x, F.zeros((1,)))[0])
    net.hybridize()
    x.attach_grad()
    with mx.autograd.record():
        y = net(x)
    y.backward(g)
    assert x.grad.asnumpy().tolist() == [[0, 0], [6, 8], [0, 0]]
    rows = mx.nd.array([[1, 0, 2], [0, 0, 3]]).tostype("csr")
    with mx.autograd.record():
        y = mx.nd.sparse.dot(rows, net(x))
    y.backward()
    assert x.grad.asnumpy().tolist() == [[2, 2], [0, 0], [10, 10]]


@pytest.mark.parametrize(
    "dtype, other", [("float32", "float16"), ("float64", "float32"), ("float32", "float64"), ("float16", "float64")]
)
def test_head_gradients_of_another_dtype_are_cast(dtype, other):
    v, x = mx.sym.Variable("x"), mx.nd.array([[1.0, 2], [3, 4]], dtype=dtype)
    for y in (mx.sym.softmax(v), mx.sym.tanh(v * 2) + v, mx.sym.where(mx.sym.cast(v > 2, "int32"), mx.sym.tanh(v), v)):
        g = mx.nd.array([[1.0, 2], [3, 4]], dtype=dtype)
        assert _gradient(y, x, g.astype(other)) == _gradient(y, x, g)


@pytest.mark.parametrize("way", ["executor", "hybridised"])
def test_a_head_gradient_whose_reader_a_pass_removes(way):
    """Of what copysign takes the sign the gradient is zero: its rule only looks at the shape of what comes in."""
    a, b = mx.nd.array([1, 2]), mx.nd.array([-1, 3])
    b.attach_grad()
    b.grad[:] = 7
    y = mx.sym.np.copysign(*[mx.sym.Variable(n).as_np_ndarray() for n in "ab"]).as_nd_ndarray()
    if way == "executor":
        bound = y.bind(mx.cpu(), {"a": a, "b": b}, {"b": b.grad})
        bound.forward(is_train=True)
        bound.backward(mx.nd.ones(2))
    else:
        with mx.autograd.record():
            y = CachedOp(y)(a, b)
        y.backward()
    assert b.grad.asnumpy().tolist() == [0, 0]


def _of_dlpack(values, how):
    """An array over NumPy's memory whose elements do not lie one behind the other."""
    room = {
        "backwards": lambda a: np.zeros_like(a)[::-1],
        "apart": lambda a: np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)[..., ::2],
        "turned": lambda a: np.zeros(a.shape[::-1], a.dtype).T,
    }[how](values)
    room[...] = values
    return mx.nd.from_dlpack(room)


SCATTERED = {
    "connected": (
        lambda v: mx.sym.FullyConnected(v("x"), v("w"), v("b"), num_hidden=5, flatten=False),
        {"x": (2, 3, 4), "w": (5, 4), "b": (5,)},
    ),
    "many": (
        lambda v: mx.sym.FullyConnected(v("x"), v("w"), num_hidden=70, no_bias=True, flatten=False),
        {"x": (30, 3, 128), "w": (70, 128)},
    ),
    "recurrent": (
        lambda v: mx.sym.RNN(v("x"), v("p"), v("s"), v("c"), state_size=4, num_layers=1, mode="lstm"),
        {"x": (5, 2, 3), "p": (4 * 4 * (3 + 4 + 2),), "s": (1, 2, 4), "c": (1, 2, 4)},
    ),
    "normalized": (
        lambda v: mx.sym.BatchNorm(v("x"), v("g"), v("b"), v("m"), v("v"), fix_gamma=False),
        {"x": (4, 6, 3), "g": (6,), "b": (6,), "m": (6,), "v": (6,)},
    ),
    "convolved": (
        lambda v: mx.sym.Pooling(
            mx.sym.Convolution(v("x"), v("w"), v("b"), kernel=(3, 3), num_filter=8), kernel=(2, 2), stride=(2, 2)
        ),
        {"x": (2, 3, 8, 8), "w": (8, 3, 3, 3), "b": (8,)},
    ),
}


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("how", ["backwards", "apart", "turned"])
@pytest.mark.parametrize("what", SCATTERED)
def test_gradients_and_states_whose_elements_lie_apart(what, how, req):
    make, shapes = SCATTERED[what]
    y, rng, found = make(mx.sym.Variable), np.random.RandomState(0), []
    values = {n: rng.uniform(0.1, 1, s).astype("f4") for n, s in shapes.items()}
    aux = y.list_auxiliary_states()
    with mx.Context("cpu"):
        for place in (mx.nd.array, lambda a: _of_dlpack(a, how)):
            grads = {n: place(np.full(s, 2, "f4")) for n, s in shapes.items() if n not in aux}
            states = {n: place(values[n]) for n in aux}
            args = {n: place(v) for n, v in values.items() if n not in aux}
            bound = y.bind(mx.Context("cpu"), args, args_grad=grads, grad_req=req, aux_states=states)
            for _ in range(3):
                out = bound.forward(is_train=True)[0]
                bound.backward(mx.nd.ones(out.shape))
            found.append([out.asnumpy(), *(a.asnumpy() for a in (*grads.values(), *states.values()))])
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
@pytest.mark.parametrize("name", ["reshape_like", "slice_like", "_identity_with_attr_like_rhs"])
def test_dense_values_shaped_like_sparse_ones(name, stype):
    y, x = mx.sym.Variable("y"), mx.sym.Variable("x", stype=stype)
    graph = getattr(mx.sym, name)(y * 2, x) + 1
    values = mx.nd.array(np.arange(6).reshape((3, 2) if name == "reshape_like" else (2, 3)))
    like = mx.nd.ones((2, 3)).tostype(stype)
    wanted = (values.asnumpy().reshape(2, 3) * 2 + 1).tolist()
    op = CachedOp(graph)
    for _ in range(2):
        assert op(values, like).asnumpy().tolist() == wanted
    bound = graph.bind(mx.cpu(), {"y": values, "x": like}, grad_req="null")
    assert [bound.forward()[0].asnumpy().tolist() for _ in range(2)] == [wanted] * 2


STORED = {
    "sum": lambda F, x: F.sum(x + 1),
    "mean": lambda F, x: F.mean(x - 1),
    "compared": lambda F, x: (x + 2) <= 3,
    "root": lambda F, x: F.sqrt(x + 1) + F.sqrt(x + 1),
    "as it was": lambda F, x: F.sqrt(x + 0) * 2,
    "equal": lambda F, x: F.sum(x == 0.5),
}


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
@pytest.mark.parametrize("what", STORED)
def test_sparse_values_and_a_number_in_graphs(what, stype, dtype):
    """Where zeros do not stay zeros the result is dense, as in calls."""
    f = STORED[what]
    x = mx.nd.array([[0, 1, 2], [0, 3, 0]], dtype=dtype).tostype(stype)
    eager, op = f(mx.nd, x), CachedOp(f(mx.sym, mx.sym.Variable("x", stype=stype, dtype=dtype)))
    for _ in range(2):
        found = op(x)
        assert (found.stype, found.dtype) == (eager.stype, eager.dtype)
        np.testing.assert_array_equal(found.asnumpy(), eager.asnumpy())


def test_thousands_of_gradients_are_added_up():
    n = 4500
    total = mx.sym.add_n(*[mx.sym.Variable(f"x{i}") for i in range(n)])
    args = {f"x{i}": mx.nd.ones((2,)) for i in range(n)}
    grads = {f"x{i}": mx.nd.ones((2,)) for i in range(n)}
    bound = total.bind(mx.cpu(), args, args_grad=grads, grad_req="add")
    bound.forward(is_train=True)
    bound.backward(mx.nd.ones((2,)))
    assert all((g.asnumpy() == 2).all() for g in grads.values())
