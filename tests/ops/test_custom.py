"""Operators written in Python, beyond what the golden numbers of MXNet show."""

import pickle
import threading

import numpy as np
import pytest

import mxcore as mx
from mxcore.testing.engines import use_engine


def declare(name, forward, backward=None, **methods):
    """Register an operator around two functions."""

    class Worker(mx.operator.CustomOp):
        pass

    Worker.forward = forward
    if backward is not None:
        Worker.backward = backward
    made = []

    def create_operator(self, ctx, shapes, dtypes):
        made.append((shapes, dtypes))
        return Worker()

    mx.operator.register(name)(
        type("Prop", (mx.operator.CustomOpProp,), {"create_operator": create_operator, **methods})
    )
    return made


def times(n):
    """A forward that multiplies."""

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * n)

    return forward


def test_a_new_class_takes_the_place_of_an_old_one():
    for n in (1, 2):
        declare("t_again", times(n))
        assert mx.nd.Custom(mx.nd.ones((2,)), op_type="t_again").asnumpy().tolist() == [n, n]


def test_two_dtypes_pass_the_default_rule():
    declare(
        "t_pick",
        lambda self, is_train, req, in_data, out_data, aux: self.assign(out_data[0], req[0], mx.nd.pick(*in_data)),
        list_arguments=lambda self: ["data", "label"],
        infer_shape=lambda self, s: (s, [s[0][:1]], []),
    )
    y = mx.nd.Custom(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([1, 0], dtype="int32"), op_type="t_pick")
    assert y.asnumpy().tolist() == [2, 3] and y.dtype == np.float32


def test_create_operator_hears_of_states_too():
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] + aux[0])

    made = declare(
        "t_state", forward, list_auxiliary_states=lambda self: ["s"], infer_shape=lambda self, s: (s, s, [[1]])
    )
    mx.nd.Custom(mx.nd.ones((2, 3)), mx.nd.ones((1,)), op_type="t_state")
    assert made == [([[2, 3], [1]], [np.float32, np.float32])]


def test_a_bound_operator_is_told_which_gradients_nobody_wants():
    told = []

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        told.append((list(req), mx.autograd.is_training(), mx.autograd.is_recording()))
        for i in range(2):
            self.assign(in_grad[i], req[i], out_grad[0] * (i + 2))

    declare("t_req", times(1), backward, list_arguments=lambda self: ["a", "b"])
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    ex = mx.sym.Custom(a, b, op_type="t_req").simple_bind(mx.cpu(), a=(2,), b=(2,), grad_req={"a": "null", "b": "add"})
    for _ in range(2):
        ex.forward(is_train=True)
        ex.backward(mx.nd.ones((2,)))
    assert told == [(["null", "write"], True, False)] * 2
    assert ex.grad_dict["a"] is None and ex.grad_dict["b"].asnumpy().tolist() == [6, 6]


def test_shapes_go_through_a_rule_that_needs_to_know_more():
    def infer_shape(self, shapes):
        n, c = shapes[0]  # fails for an unknown shape
        return [(n, c), (c,)], [(n,)], []

    declare(
        "t_more",
        lambda self, is_train, req, in_data, out_data, aux: self.assign(out_data[0], req[0], mx.nd.dot(*in_data)),
        list_arguments=lambda self: ["data", "w"],
        infer_shape=infer_shape,
    )
    s = mx.sym.Custom(mx.sym.Variable("x") * 2, op_type="t_more", name="m")
    assert s.infer_shape(x=(4, 3)) == ([(4, 3), (3,)], [(4,)], [])
    with pytest.raises(ValueError, match="to unpack"):
        s.infer_shape(x=(4, 3, 2), m_w=(3,))


def test_rules_that_count_wrongly_are_named():
    declare("t_count", times(1), infer_shape=lambda self, s: (s, [s[0], s[0]], []))
    with pytest.raises(
        ValueError, match=r"infer_shape of Prop returned 2 shapes of outputs, there are 1: \['output'\]"
    ):
        mx.nd.Custom(mx.nd.ones((2,)), op_type="t_count")
    declare("t_types", times(1), infer_type=lambda self, t: ([], t, []))
    with pytest.raises(ValueError, match="infer_type of Prop returned 0 types of arguments"):
        mx.nd.Custom(mx.nd.ones((2,)), op_type="t_types")


def boom(self, *args, **kwargs):
    """A method of a user that raises."""
    raise LookupError("my own trouble")


def copy_back(self, req, out_grad, in_data, out_data, in_grad, aux):
    self.assign(in_grad[0], req[0], out_grad[0])


BROKEN = {
    "forward": (boom, copy_back, {}),
    "backward": (times(1), boom, {}),
    "create_operator": (times(1), copy_back, {"create_operator": boom}),
    "infer_shape": (times(1), copy_back, {"infer_shape": boom}),
    "infer_type": (times(1), copy_back, {"infer_type": boom}),
}


@pytest.mark.parametrize("engine", ["NaiveEngine", "ThreadedEnginePerDevice"])
@pytest.mark.parametrize("broken", BROKEN)
def test_an_operator_that_raises_says_where_and_the_next_call_works(broken, engine):
    forward, backward, methods = BROKEN[broken]
    declare("t_broken", forward, backward, **methods)
    declare("t_whole", times(2), copy_back)
    x = mx.nd.ones((2,))
    x.attach_grad()

    def eager(op_type):
        with mx.autograd.record():
            y = mx.nd.Custom(x, op_type=op_type)
        y.backward()
        return y.asnumpy().tolist()

    def bound(op_type):
        s = mx.sym.Custom(mx.sym.Variable("x") * 1, op_type=op_type, name="node7")
        ex = s.simple_bind(mx.cpu(), x=(2,))
        ex.arg_dict["x"][:] = 1
        y = ex.forward(is_train=True)[0].asnumpy().tolist()
        ex.backward(mx.nd.ones((2,)))
        return y

    old = use_engine(engine)
    try:
        for run in (eager, bound):
            with pytest.raises(
                mx.MXNetError,
                match=rf"{broken} of the custom operator 't_broken' \(Prop\) raised "
                "LookupError: my own trouble",
            ) as e:
                run("t_broken")
            assert "test_custom.py" in str(e.value) and "in boom" in str(e.value)
            assert run is eager or "node7" in str(e.value)
            assert run("t_whole") == [2, 2]
    finally:
        use_engine(old)


def test_an_operator_may_run_a_whole_net_and_autograd_of_its_own():
    net = mx.gluon.nn.Dense(3, in_units=2)
    net.initialize(mx.init.One())
    net.hybridize()
    seen = []

    def forward(self, is_train, req, in_data, out_data, aux):
        w = in_data[0].copy()
        w.attach_grad()
        with mx.autograd.record():
            y = (net(w) * w.sum()).sum()
        y.backward()
        seen.append((mx.autograd.is_recording(), mx.autograd.is_training()))
        self.assign(out_data[0], req[0], mx.nd.array(w.grad.asnumpy()))
        out_data[0].wait_to_read()

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * out_data[0].asnumpy().sum().item())

    declare("t_net", forward, backward)

    class Block(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.Custom(x * 2, op_type="t_net") + 1

    block, found = Block(), []
    x = mx.nd.array([[1.0, 2.0]])
    x.attach_grad()
    for hybrid in (False, True):
        if hybrid:
            block.hybridize()
        with mx.autograd.record():
            y = block(x)
        y.backward()
        found.append((y.asnumpy().tolist(), x.grad.asnumpy().tolist()))
    # (3 (a + b)) (a + b) has the gradient 6 (a + b) in both.
    assert found[0] == found[1] == ([[37.0, 37.0]], [[144.0, 144.0]])
    assert seen == [(False, True)] * 2


@pytest.mark.parametrize("engine", ["NaiveEngine", "ThreadedEnginePerDevice"])
def test_operators_that_wait_never_block_each_other(engine):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], mx.nd.array(in_data[0].asnumpy() * 2, ctx=in_data[0].context))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], mx.nd.array(out_grad[0].asnumpy() * 2, ctx=in_data[0].context))

    declare("t_waits", forward, backward)
    v = mx.sym.Variable("x")
    s = mx.sym.make_loss(mx.sym.sum(mx.sym.Custom(mx.sym.dot(v, v), op_type="t_waits")))
    results = {}

    def work(i):
        ctx = mx.cpu(i % 2)
        with ctx:
            x = mx.nd.ones((200, 200), ctx=ctx)  # heavy enough for a worker of the engine
            x.attach_grad()
            ex = s.bind(ctx, {"x": x}, args_grad={"x": mx.nd.zeros((200, 200), ctx=ctx)})
            for _ in range(5):
                with mx.autograd.record():
                    y = mx.nd.Custom(mx.nd.dot(x, x), op_type="t_waits").sum()
                y.backward()
                z = ex.forward(is_train=True)[0]
                ex.backward()
            results[i] = (
                y.asscalar().item(),
                x.grad.asnumpy().sum().item(),
                z.asscalar().item(),
                ex.grad_dict["x"].asnumpy().sum().item(),
            )

    old = use_engine(engine)
    try:
        threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        assert not any(t.is_alive() for t in threads)
    finally:
        use_engine(old)
    total = 2 * 200.0**3
    assert results == dict.fromkeys(range(4), (total, 2 * total, total, 2 * total))


def test_unwanted_gradients_are_told_over_arrays_too():
    told = []

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        told.append(list(req))
        for i in range(2):
            self.assign(in_grad[i], req[i], out_grad[0] * (i + 2))

    declare("t_req_arrays", times(1), backward, list_arguments=lambda self: ["a", "b"])
    a, b = mx.nd.ones((2,)), mx.nd.ones((2,))
    b.attach_grad("add")
    for _ in range(2):
        with mx.autograd.record():
            y = mx.nd.Custom(a, b, op_type="t_req_arrays")
        y.backward()
    assert told == [["null", "write"]] * 2 and b.grad.asnumpy().tolist() == [6, 6]


def test_storage_types_other_than_dense_are_refused():
    declare("t_sparse", times(1), infer_storage_type=lambda self, s: (["csr"], ["csr"], []))
    with pytest.raises(ValueError, match="infer_storage_type of the custom operator 't_sparse' asks for csr"):
        mx.nd.Custom(mx.nd.ones((2, 2)), op_type="t_sparse")
    prop = mx.operator.CustomOpProp()
    assert prop.infer_storage_type(["default"]) == (["default"], ["default"], [])
    assert prop.infer_storage_type_backward(["default"], ["default"], ["default"], ["default"], []) == tuple(
        [["default"]] * 4 + [[]]
    )


def test_what_backward_needs_can_be_declared():
    assert mx.operator.CustomOpProp().declare_backward_dependency([0], [1, 2], [3]) == [0, 1, 2, 3]
    assert mx.operator.CustomOpProp(need_top_grad=False).declare_backward_dependency([0], [1, 2], [3]) == [1, 2, 3]


def test_symbols_are_pickled():
    declare("t_pickled", times(3), __init__=lambda self, scale="1": mx.operator.CustomOpProp.__init__(self))
    s = pickle.loads(pickle.dumps(mx.sym.Custom(mx.sym.Variable("x"), op_type="t_pickled", scale=2, name="c")))
    assert s.attr("scale") == "2" and s.eval(x=mx.nd.ones((2,)))[0].asnumpy().tolist() == [3, 3]


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize(
    "method, value, word",
    [
        ("list_arguments", 5, "must return a list of names, got 5"),
        ("list_outputs", [1], "must return a list of names"),
        ("declare_backward_dependency", [99], r"must return some of the numbers \[0\] of gradients"),
        ("declare_backward_dependency", ["a"], "must return some of the numbers"),
        ("declare_backward_dependency", None, "NoneType"),
    ],
)
def test_what_a_property_tells_is_checked(method, value, word, hybrid):
    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    @mx.operator.register("told_wrongly")
    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Twice()

    setattr(Prop, method, lambda self, *args: value)
    x = mx.nd.ones((2,))
    x.attach_grad()
    net = mx.gluon.nn.HybridLambda(lambda F, x: F.Custom(x, op_type="told_wrongly"))
    net.hybridize(hybrid)
    with pytest.raises(mx.MXNetError, match=f"{method} of the custom operator 'told_wrongly' .*(\\n|.)*{word}"):
        with mx.autograd.record():
            y = net(x)
        y.backward()


class Putting(mx.operator.CustomOp):
    """Puts other arrays into its lists."""

    def forward(self, is_train, req, in_data, out_data, aux):
        out_data[0] = (in_data[0] * 2).tostype("row_sparse")

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        if out_data[0].asnumpy().max() > 50:
            del in_grad[0]
        else:
            in_grad[0] = (out_grad[0] * 2).tostype("row_sparse")


@mx.operator.register("test_putting")
class PuttingProp(mx.operator.CustomOpProp):
    def create_operator(self, *args):
        return Putting()


@pytest.mark.parametrize("hybridize", [True, False])
def test_sparse_arrays_that_are_put_into_lists(hybridize):
    net = mx.gluon.nn.HybridLambda(lambda F, x: F.Custom(x * 1, op_type="test_putting") + 0)
    net.hybridize(hybridize)
    x = mx.nd.array([[1, 2], [3, 4]])
    x.attach_grad()
    with mx.autograd.record():
        y = net(x)
    y.backward()
    assert y.asnumpy().tolist() == [[2, 4], [6, 8]] and x.grad.asnumpy().tolist() == [[2, 2], [2, 2]]
    x[:] = 30
    with mx.autograd.record():
        y = net(x)
    with pytest.raises(mx.MXNetError, match="test_putting.*in_grad must stay a list of 1 arrays, it holds"):
        y.backward()
