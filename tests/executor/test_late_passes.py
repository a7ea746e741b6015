"""Late graph passes: over programs, with all that is known of them, and operators that bind themselves."""

import types

import numpy as np
import pytest

import mxcore as mx
from mxcore._core.call import op_context
from mxcore._core.manager import manager
from mxcore.base import MXNetError
from mxcore.executor import CachedOp, passes_off
from mxcore.plugin import API_VERSION, Graph, GraphF, GraphPass, Node, Op, Value, compute, find_op, hookimpl, rewrite

S = mx.sym
A, B = np.float32([[1, -2], [3, -4]]), np.float32([[5, 6], [-7, 8]])


def twice(seen=None, binds=True):
    """A pass that computes tanh by an operator of its own, which doubles instead."""

    def bind(k, p, ins, outs):
        def call():
            if seen is not None:
                seen.append(ins[0].copy())
            np.multiply(ins[0], 2, out=outs[0])

        return call

    op = Op("_twice", lambda k, p, data: data * 2, grad=None)
    if binds:
        op.bind = bind

    def visit(node, inputs, fact):
        return Node(op, op.parse({}), inputs, node.name) if node.op.name == "tanh" else None

    return GraphPass("twice", 0, lambda g: rewrite(g, visit), late=True)


def test_what_a_pass_is_told(passes):
    seen = []

    def look(g):
        seen.append((dict(g.info), {n.name: g.shapes[n, 0] for n in g.nodes}, len(g.heads)))
        return g

    passes(GraphPass("look", 0, look, late=True))
    a = S.Variable("a")
    y = S.tanh(S.tanh(a * 1, name="t"), name="u")
    executor = y.simple_bind(mx.cpu(), a=(2, 3))
    executor.forward(is_train=False)
    info, shapes, heads = seen.pop()
    assert (info["ctx"], info["is_train"], info["n_first"], heads) == (mx.cpu(), False, 1, 1)
    assert shapes["t"] == shapes["u"] == (2, 3)
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((2, 3)))
    info, _, heads = seen.pop()
    assert info["is_train"] and info["n_first"] == 1 and heads == 2


@pytest.mark.parametrize("binds", [True, False])
def test_an_operator_of_its_own(passes, binds):
    passes(twice(binds=binds))
    op = CachedOp(S.tanh(S.Variable("a") + 1) - 3)
    arrays = [mx.nd.array(A), mx.nd.array(B), mx.nd.array(A * 3)]
    found = [op(a) for a in arrays]  # other arrays take the places of the first
    for a, y in zip(arrays, found):
        np.testing.assert_array_equal(y.asnumpy(), (a.asnumpy() + 1) * 2 - 3)


def test_an_operator_that_reads_and_writes_arrays_of_the_caller(passes):
    seen = []
    passes(twice(seen))
    a = mx.nd.array(A)
    executor = S.tanh(S.Variable("a")).bind(mx.cpu(), {"a": a}, grad_req="null")
    first = executor.forward()[0].asnumpy()
    a[:] = B
    np.testing.assert_array_equal(executor.forward()[0].asnumpy(), B * 2)
    np.testing.assert_array_equal(first, A * 2)
    other = executor.reshape(a=(3, 2), partial_shaping=True, allow_up_sizing=True)
    other.arg_dict["a"][:] = 4
    np.testing.assert_array_equal(other.forward()[0].asnumpy(), np.full((3, 2), 8))
    assert len(seen) == 3


def test_it_is_switched_off_by_name(passes, monkeypatch):
    passes(twice())
    op, a = CachedOp(S.tanh(S.Variable("a"))), mx.nd.array(A)
    assert op(a).asnumpy()[0, 0] == 2
    bound = S.tanh(S.Variable("a"))
    with passes_off("twice"):
        np.testing.assert_allclose(bound.bind(mx.cpu(), {"a": a}).forward()[0].asnumpy(), np.tanh(A), rtol=1e-6)
    assert bound.bind(mx.cpu(), {"a": a}).forward()[0].asnumpy()[0, 0] == 2
    monkeypatch.setenv("MXCORE_DISABLE_PASSES", "twice")
    assert bound.bind(mx.cpu(), {"a": a}).forward()[0].asnumpy()[0, 0] < 1


def test_it_is_no_backend(passes):
    passes(twice())
    with pytest.raises(MXNetError, match="no graph pass is named 'twice'"):
        S.tanh(S.Variable("a")).optimize_for("twice")


@pytest.mark.parametrize("order", [(1, 0, 0), (0, 0, 1)])
def test_the_order_is_looked_at_where_an_output_stands_twice(passes, order):
    passes(GraphPass("turned", 0, lambda g: ordered(g, order, False), late=True))
    x = S.Variable("x")
    t, s = S.tanh(x, name="t"), S.sigmoid(x, name="s")
    with pytest.raises(ValueError, match="graph pass 'turned' of passing changed the order of the outputs"):
        S.Group([t, s, t]).bind(mx.cpu(), {"x": mx.nd.array(A)}).forward()


def test_a_bad_one_is_named(passes):
    passes(GraphPass("bad", 0, lambda g: Graph([]), late=True))
    with pytest.raises(TypeError, match="graph pass 'bad' of passing must return a Graph with 1 heads"):
        S.tanh(S.Variable("a")).bind(mx.cpu(), {"a": mx.nd.array(A)}).forward()


def ordered(g, order, remade):
    """A graph with its heads in another order, the nodes the same or made anew."""
    if remade:
        g = rewrite(g, lambda n, ins, fact: Node(n.op, n.params, ins, n.name, n.attrs, n.forward))
    found = Graph([g.heads[i] for i in order] + g.heads[len(order) :])
    found.info = g.info
    return found


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("remade", [False, True])
@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_one_that_changes_the_order_of_outputs_is_named(passes, order, remade, late):
    passes(GraphPass("turned", 0, lambda g: ordered(g, order, remade), late=late))
    x = S.Variable("x")
    group = S.Group([S.tanh(x, name="t"), S.sigmoid(x, name="s"), S.sin(x, name="u")])
    with pytest.raises(
        ValueError, match="graph pass 'turned' of passing changed the order of the outputs: in the place of output 0"
    ):
        group.bind(mx.cpu(), {"x": mx.nd.array(A)}, grad_req="null").forward()


@pytest.mark.parametrize("late", [False, True])
def test_one_that_takes_one_output_for_two_may_know_that_they_are_equal(passes, late):
    passes(GraphPass("once", 0, lambda g: ordered(g, (0, 0), False), late=late))
    x = S.Variable("x")
    group = S.Group([S.tanh(x, name="t"), S.identity(S.tanh(x), name="s")])
    with passes_off("simplify"):
        found = group.bind(mx.cpu(), {"x": mx.nd.array(A)}, grad_req="null").forward()
    np.testing.assert_array_equal(found[0].asnumpy(), found[1].asnumpy())


def test_one_that_mixes_outputs_and_gradients_is_named(passes):
    passes(GraphPass("turned", 0, lambda g: ordered(g, range(len(g.heads))[::-1], False), late=True))
    bound = S.tanh(S.Variable("x"), name="t").simple_bind(mx.cpu(), x=(2, 2))
    with pytest.raises(ValueError, match="graph pass 'turned' of passing changed the order of the outputs"):
        bound.forward(is_train=True)
        bound.backward(mx.nd.ones((2, 2)))


def test_its_node_is_named_in_errors(passes):
    def bind(k, p, ins, outs):
        def call():
            raise ValueError("no luck")

        return call

    op = Op("_unlucky", lambda k, p, data: data, grad=None)
    op.bind = bind
    passes(
        GraphPass(
            "unlucky", 0, lambda g: rewrite(g, lambda n, ins, fact: Node(op, op.parse({}), ins, n.name)), late=True
        )
    )
    with pytest.raises(ValueError, match=r"operator _unlucky \[node 'here'.*no luck"):
        S.tanh(S.Variable("a"), name="here").bind(mx.cpu(), {"a": mx.nd.array(A)}).forward()[0].asnumpy()


def test_compute_leaves_inputs_alone():
    """Also those that an operator moves."""
    op = find_op("BatchNorm")
    p = op.parse({"fix_gamma": False})
    arrays = [A, *np.float32([[1, 2], [0, 1], [0.5, 0.5], [1, 1]])]
    before = [a.copy() for a in arrays]
    outs = compute("BatchNorm", op_context(mx.cpu(), True), p, *arrays)
    mean = A.mean(0)
    np.testing.assert_allclose(
        outs[0], (A - mean) / np.sqrt(A.var(0) + 1e-3) * arrays[1] + arrays[2], rtol=1e-5, atol=1e-6
    )
    for a, b in zip(arrays, before):
        np.testing.assert_array_equal(a, b)


def _two(g):
    """Two new nodes in the place of one, of which the first has facts from nobody."""
    relu = find_op("relu")

    def visit(n, ins, fact):
        if n.op.name != "tanh":
            return None
        inner = Node(relu, relu.parse({}), ins, "inner")
        return Node(relu, relu.parse({}), [(inner, 0)], n.name)

    return rewrite(g, visit)


def _with(**attributes):
    def change(g):
        found = _two(g)
        for name, value in attributes.items():
            setattr(found, name, value)
        return found

    return change


def _claims(kind, value):
    def change(g):
        found = _two(g)
        getattr(found, kind).update(dict.fromkeys([(n, 0) for n in found.nodes], value))
        return found

    return change


@pytest.mark.parametrize(
    "change",
    [
        _two,
        lambda g: Graph(_two(g).heads),
        _with(info=None, shapes=None, dtypes=5, stypes=[]),
        _with(info={"ctx": None, "n_first": 9, "order": "x", "is_train": True}),
        _claims("shapes", (7, 7)),
        _claims("shapes", (10**12, 10**3)),
        _claims("dtypes", np.dtype("int8")),
        _claims("stypes", "csr"),
    ],
    ids=["new", "bare", "none", "info", "shapes", "huge", "dtypes", "stypes"],
)
@pytest.mark.parametrize("train", [False, True])
def test_what_is_known_is_inferred_anew(passes, change, train):
    passes(GraphPass("odd", 0, change, late=True), twice())  # `twice` is told all again
    executor = S.tanh(S.Variable("a") * 0.5).simple_bind(mx.cpu(), a=(2, 2))
    executor.arg_dict["a"][:] = A
    y = executor.forward(is_train=train)[0]
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y.asnumpy(), np.maximum(A * 0.5, 0))


@pytest.mark.parametrize("contexts", [5, "elsewhere"])
def test_contexts_that_are_none(passes, contexts):
    def change(g):
        g.info["contexts"] = 5 if contexts == 5 else dict.fromkeys(map(id, g.nodes), contexts)
        return g

    passes(GraphPass("odd", 0, change, late=True))
    with pytest.raises(TypeError, match=f"graph pass 'odd' of passing must .* context.*, got '?{contexts}"):
        S.tanh(S.Variable("a")).bind(mx.cpu(), {"a": mx.nd.array(A)}).forward()


def test_a_storage_type_stays(passes):
    def change(g):
        op = find_op("cast_storage")
        return rewrite(
            g, lambda n, ins, fact: Node(op, op.parse({"stype": "csr"}), ins, n.name) if n.op.name == "tanh" else None
        )

    passes(GraphPass("odd", 0, change, late=True))
    with pytest.raises(
        ValueError, match="graph pass 'odd' of passing changed the storage type of output 0 of node 't'"
    ):
        S.tanh(S.Variable("a"), name="t").bind(mx.cpu(), {"a": mx.nd.array(A)}).forward()


@pytest.mark.parametrize("bind", [5, lambda k, p, ins, outs: None])
def test_bind_must_make_a_call(passes, bind):
    op = Op("_odd", lambda k, p, data: data, grad=None)
    op.bind = bind
    passes(
        GraphPass("odd", 0, lambda g: rewrite(g, lambda n, ins, fact: Node(op, op.parse({}), ins, n.name)), late=True)
    )
    with pytest.raises(TypeError, match=r"operator _odd \[node 'here'.*its `bind`, .*, made no call but (5|None)"):
        S.tanh(S.Variable("a"), name="here").bind(mx.cpu(), {"a": mx.nd.array(A)}).forward()[0].asnumpy()


def _opaque(shape):
    """A pass that puts an operator in the place of additions, which says of what shape it is, and of no input."""
    op = Op("_opaque", lambda k, p, a, b: a + b, inputs="a b", grad=None)
    op.shape(lambda p, ins: [shape])
    return lambda g: rewrite(
        g, lambda n, ins, fact: Node(op, op.parse({}), ins, n.name) if n.op.name == "elemwise_add" else None
    )


@pytest.mark.parametrize("train", [False, True])
def test_what_consumers_decided_stays_known(passes, train):
    passes(GraphPass("odd", 0, _opaque((2, 2)), late=True), twice())
    y = S.tanh(S.Variable("a") + S.zeros((0, 2))) * S.ones((0, 2))
    executor = y.simple_bind(mx.cpu(), a=(2, 2))
    executor.arg_dict["a"][:] = A
    np.testing.assert_array_equal(executor.forward(is_train=train)[0].asnumpy(), A * 2)


def test_a_pass_that_wants_another_shape_of_what_it_left(passes):
    op = Op("_halves", lambda k, p, a, b: a, inputs="a b", grad=None)
    op.shape(lambda p, ins, outs: ([ins[0], (1, 2)], [ins[0]]))
    passes(
        GraphPass(
            "odd",
            0,
            lambda g: rewrite(
                g, lambda n, ins, fact: Node(op, op.parse({}), ins, n.name) if n.op.name == "elemwise_add" else None
            ),
            late=True,
        )
    )
    y = S.elemwise_add(S.Variable("a"), S.zeros((0, 2)), name="here")
    with pytest.raises(ValueError, match=r"node 'here'.*\(2, 2\) .*\(1, 2\).*graph pass 'odd' of passing made this"):
        y.simple_bind(mx.cpu(), a=(2, 2)).forward(is_train=False)


def bounded():
    """Its state tells where gradients pass."""
    found = Op("test_bounded", lambda k, p, data: ([data * (data > 4)], data > 4), stateful=True)
    found.backward(lambda k, p, mask, dys, ins, outs: [dys[0] * mx.nd.array(mask, dtype="float32")])
    return found


def one_more(entry, node):
    return [(Value(entry, GraphF(node.name)) * 1.0).entry]


STATEFUL = {
    "as it is": lambda node, inputs: None,
    "behind": lambda node, inputs: one_more((Node(node.op, node.params, inputs, node.name), 0), node),
    "gone": lambda node, inputs: one_more(inputs[0], node),
}


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("what", STATEFUL)
def test_what_a_pass_puts_behind_a_stateful_operator_is_not_taken_for_it(what, n):
    """Its gradient has the state of the node that took its place, or the pass is named that left none."""
    op = bounded()

    def run(graph):
        return rewrite(graph, lambda node, inputs, fact: STATEFUL[what](node, inputs) if node.op is op else None)

    plugin = types.SimpleNamespace(
        API_VERSION=API_VERSION,
        mxcore_ops=hookimpl(lambda: [op], specname="mxcore_ops"),
        mxcore_graph_passes=hookimpl(
            lambda: [GraphPass("changing", 1, run, late=True)], specname="mxcore_graph_passes"
        ),
    )
    manager.register(plugin, "changing")
    try:
        net = mx.gluon.nn.HybridLambda("test_bounded")
        net.hybridize()
        x = mx.nd.arange(1, n + 1) * 3
        x.attach_grad()
        with mx.autograd.record():
            if what == "gone":
                with pytest.raises(MXNetError, match="pass 'changing' of changing failed: .*keeps what its gradient"):
                    net(x)
                return
            y = net(x) * 2
        y.backward(mx.nd.arange(5, 5 + n))
        assert x.grad.asnumpy().tolist() == [0, 12, 14][:n]
    finally:
        manager.unregister("changing")
