"""CachedOp: a graph called like an operator gives what its nodes give, call by call and thread by thread."""

import gc
import threading
from itertools import product

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, nd
from mxcore.base import MXNetError
from mxcore.executor import CachedOp
from mxcore.executor.instance import Instance
from mxcore.ops.control import interpret
from mxcore.testing.engines import use_engine

sym = mx.sym


def graph():
    x = sym.FullyConnected(sym.Variable("x"), sym.Variable("w"), sym.Variable("b"), num_hidden=3, name="fc")
    y = sym.BatchNorm(sym.tanh(x), name="bn", fix_gamma=False, momentum=0.5)
    return sym.Group([y * y, sym.sum(x, axis=1)])


def arrays(rows=4, seed=0):
    r = np.random.RandomState(seed)
    shapes = {
        "x": (rows, 5),
        "w": (3, 5),
        "b": (3,),
        "bn_gamma": (3,),
        "bn_beta": (3,),
        "bn_moving_mean": (3,),
        "bn_moving_var": (3,),
    }
    found = {n: nd.array(r.uniform(0.5, 1, s) if "var" in n else r.uniform(-1, 1, s)) for n, s in shapes.items()}
    for n, a in found.items():
        if "moving" not in n:
            a.attach_grad()
    return found


def call(f, values, head=1.0):
    with autograd.record():
        ys = f(values)
    autograd.backward(ys, [nd.ones(y.shape) * head for y in ys])
    return [y.asnumpy() for y in ys] + [
        a.grad.asnumpy() if "moving" not in n else a.asnumpy() for n, a in values.items()
    ]


def whole(net):
    names = net.list_inputs()
    op = CachedOp(net)
    return op, lambda values: op.outputs(*[values[n] for n in names])


def agree(a, b):
    for x, y in zip(a, b):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def test_forward_and_backward_give_what_nodes_give():
    net = graph()
    op, f = whole(net)
    for rows in (4, 6, 4):  # another shape, and back to the first
        agree(call(f, arrays(rows)), call(lambda v: interpret(net._heads, v), arrays(rows)))
    assert len(op._signatures) == 2


def test_backward_has_a_training_mode_of_its_own():
    net = graph()
    op = CachedOp(net)
    for modes in (False, True), (False, False), (True, False), (True, True), (False, True):  # one memory, bound anew
        found = []
        for f in (lambda v: op(*[v[n] for n in net.list_inputs()]), lambda v: interpret(net._heads, v, mx.cpu())):
            v = arrays()
            with autograd.record(train_mode=modes[0]):
                ys = f(v)
            autograd.backward(ys, [nd.arange(y.size).reshape(y.shape) for y in ys], train_mode=modes[1])
            found.append(
                [y.asnumpy() for y in ys] + [a.asnumpy() if a.grad is None else a.grad.asnumpy() for a in v.values()]
            )
        for one, other in zip(*found):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5, err_msg=f"record, backward: {modes}")


@pytest.mark.parametrize("modes", [(False, False), (True, False), (False, True)])
def test_gradients_to_be_differentiated_again_follow_backwards_mode(modes):
    net = graph()
    found = []
    for f in (
        lambda v: CachedOp(net)(*[v[n] for n in net.list_inputs()]),
        lambda v: interpret(net._heads, v, mx.cpu()),
    ):
        v = arrays()
        wanted = [v["x"], v["w"], v["bn_gamma"]]
        with autograd.record(train_mode=modes[0]):
            ys = f(v)
            found.append(
                autograd.grad(
                    ys, wanted, [nd.arange(y.size).reshape(y.shape) for y in ys], create_graph=True, train_mode=modes[1]
                )
            )
    for one, other in zip(*found):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-5, atol=1e-5)


def test_outputs_are_new_at_every_call():
    _, f = whole(graph())
    first = f(arrays(seed=1))
    kept = first[0].asnumpy()
    second = f(arrays(seed=2))
    np.testing.assert_array_equal(first[0].asnumpy(), kept)
    assert (second[0].asnumpy() != kept).any()


def test_two_calls_wait_for_one_backward():
    net = graph()
    op, f = whole(net)

    def twice(g, values):
        other = {**values, "x": arrays(seed=9)["x"]}
        with autograd.record():
            ys = [a + b for a, b in zip(g(values), g(other))]
        autograd.backward(ys)
        return [y.asnumpy() for y in ys] + [values["w"].grad.asnumpy(), other["x"].grad.asnumpy()]

    agree(twice(f, arrays()), twice(lambda v: interpret(net._heads, v), arrays()))
    signature = op._last
    assert len(signature.idle) == 2  # each had memory of its own, and gave it back
    call(f, arrays())
    assert len(signature.idle) == 2


def test_memory_comes_back_when_outputs_are_dropped():
    op, f = whole(graph())
    gc.disable()
    try:
        for _ in range(5):
            with autograd.record():
                f(arrays())
        assert len(op._last.idle) == 1
    finally:
        gc.enable()


def test_only_wanted_gradients_are_computed():
    op, f = whole(graph())
    values = arrays()
    values["x"] = values["x"].detach()
    with autograd.record():
        ys = f(values)
    autograd.backward(ys)
    assert "x" not in op._last.wrt and set(op._last.wrt) == {"w", "b", "bn_gamma", "bn_beta"}


def test_add_accumulates_and_retain_runs_again():
    _, f = whole(graph())
    values = arrays()
    values["w"].attach_grad("add")
    with autograd.record():
        ys = f(values)
    autograd.backward(ys, retain_graph=True)
    once = values["w"].grad.asnumpy()
    autograd.backward(ys)
    np.testing.assert_allclose(values["w"].grad.asnumpy(), 2 * once, rtol=1e-6)


def test_gradients_of_gradients():
    net = sym.tanh(sym.Variable("x")) * sym.Variable("w")
    op, f = whole(net)
    x, w = nd.array([0.3, -0.7]), nd.array([2.0, 3.0])
    for a in (x, w):
        a.attach_grad()
    with autograd.record():
        (y,) = f({"x": x, "w": w})
        (g,) = autograd.grad([y], [x], create_graph=True)
        z = (g * g).sum()
    z.backward()
    t = np.tanh([0.3, -0.7])
    slope = np.array([2.0, 3.0]) * (1 - t * t)
    np.testing.assert_allclose(g.asnumpy(), slope, rtol=1e-5)
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * slope * np.array([2.0, 3.0]) * -2 * t * (1 - t * t), rtol=1e-4)
    np.testing.assert_allclose(w.grad.asnumpy(), 2 * slope * (1 - t * t), rtol=1e-5)


def test_gradients_of_gradients_where_inputs_and_outputs_are_related():
    """An input that depends on another is no way around; an output nobody used has no gradient."""
    a, b = sym.Variable("a"), sym.Variable("b")
    _, product = whole(a * b)
    _, pair = whole(sym.Group([a * a, a * a * a * 5]))
    x = nd.array([2.0])
    x.attach_grad()
    for f, order in ((lambda: product({"a": x, "b": x * x})[0], (12, 12)), (lambda: pair({"a": x})[0], (4, 2))):
        with autograd.record():
            (g,) = autograd.grad([f()], [x], create_graph=True)
        g.backward()
        assert (g.asscalar(), x.grad.asscalar()) == order


def test_a_result_of_unknown_shape():
    net = sym.contrib.boolean_mask(sym.Variable("x"), sym.Variable("m")) * 2
    _, f = whole(net)
    for mask in ([1, 0, 1], [0, 0, 1]):
        x = nd.array([1.0, 2.0, 3.0])
        x.attach_grad()
        with autograd.record():
            (y,) = f({"x": x, "m": nd.array(mask)})
        y.backward()
        assert y.asnumpy().tolist() == [2 * v for v, m in zip([1, 2, 3], mask) if m]
        assert x.grad.asnumpy().tolist() == [2 * m for m in mask]


def test_random_nodes_draw_anew_and_follow_the_seed():
    _, f = whole(sym.Dropout(sym.Variable("x"), p=0.5, mode="always"))
    x = nd.ones((100,))
    mx.random.seed(3)
    a, b = f({"x": x})[0].asnumpy(), f({"x": x})[0].asnumpy()
    mx.random.seed(3)
    assert (a != b).any() and (f({"x": x})[0].asnumpy() == a).all()


class Noise(mx.operator.CustomOp):
    """Random numbers between 1 and 2 times the input."""

    def forward(self, is_train, req, in_data, out_data, aux):
        self.noise = nd.random.uniform(1, 2, shape=in_data[0].shape)
        self.assign(out_data[0], req[0], in_data[0] * self.noise)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * self.noise)


@mx.operator.register("test_noise")
class NoiseProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Noise()


def _drop(x):
    return sym.Dropout(x, p=0.5, mode="always")


def _steps(x):
    return sym.contrib.foreach(lambda row, state: (_drop(row) * state, state), sym.stack(x, x), sym.ones_like(x))[0]


def _while(x):
    (y,), _ = sym.contrib.while_loop(
        lambda i, s: i < 3, lambda i, s: (_drop(s), (i + 1, s)), (sym.zeros((1,)), x), max_iterations=3
    )
    return y


RANDOM_INSIDE = {
    "foreach": lambda x: sym.sum(_steps(x), axis=0),
    "while_loop": lambda x: sym.sum(_while(x), axis=0),
    "cond": lambda x: sym.contrib.cond(sym.sum(x) > -1, lambda: _drop(x), lambda: x * 1),
    "Custom": lambda x: sym.Custom(x, op_type="test_noise"),
    "among others": lambda x: _drop(sym.sum(_steps(_drop(x)), axis=0)) + _drop(x),
}


@pytest.mark.parametrize("kind", RANDOM_INSIDE)
@pytest.mark.parametrize("way", ["CachedOp", "create_graph", "Executor"])
def test_what_is_repeated_draws_the_same_inside_loops_and_python(kind, way):
    """All of it is linear: the output is the gradient times the input."""
    if kind == "Custom" and way == "create_graph":
        pytest.skip("Custom has no second gradient")
    x, net = nd.arange(1, 51), RANDOM_INSIDE[kind](sym.Variable("x"))
    x.attach_grad()
    if way == "Executor":
        bound = net.bind(mx.cpu(), {"x": x}, args_grad={"x": x.grad})
        (y,) = bound.forward(is_train=True)
        gradients = [(bound.backward(nd.ones(50)), x.grad.asnumpy())[1] for _ in range(3)]
    else:
        again = {"create_graph": True} if way == "create_graph" else {"retain_graph": True}
        with autograd.record():
            y = CachedOp(net)(x)
        gradients = [autograd.grad(y, x, **again)[0].asnumpy() for _ in range(3)]
    for g in gradients:
        np.testing.assert_allclose(g * x.asnumpy(), y.asnumpy(), rtol=1e-5)


COPIES = {
    "one": lambda y: sym.identity(y),
    "two": lambda y: sym.identity(sym.identity(y)),
    "cast": lambda y: sym.cast(sym.identity(y), dtype="float32"),
}


@pytest.mark.parametrize("wrap, grad", [*product(COPIES, ["sigmoid", "exp"]), ("one", "square"), ("two", "square")])
def test_who_writes_to_a_copy_that_was_taken_out_changes_no_gradient(wrap, grad):
    """What is handed out is the caller's, also where the program would hand out what its second part reads."""
    x = nd.array([0.1, 0.2, 0.3])
    x.attach_grad()
    found = []
    op = CachedOp(COPIES[wrap](getattr(sym, grad)(sym.Variable("x"))))
    for written in (False, True):
        with autograd.record():
            y = op(x)
        if written:
            y[:] = 7
        y.backward()
        found.append(x.grad.asnumpy())
    np.testing.assert_array_equal(*found)
    copies = [step for step in op._last.program.steps if step.op and step.op.name in ("_copy", "Cast")]
    assert grad != "square" or not copies, "a copy only where it is needed"


@pytest.mark.parametrize("wrap", COPIES)
def test_who_writes_to_an_output_changes_no_gradient_of_a_copy_of_it(wrap):
    y = sym.clip(sym.Variable("x"), -1, 1)  # whose own gradient does not read it
    op, found = CachedOp(sym.Group([y, sym.square(COPIES[wrap](y))])), []
    x = nd.array([0.1, 0.2, 0.3])
    x.attach_grad()
    for written in (False, True):
        with autograd.record():
            ys = op(x)
        if written:
            ys[0][:] = 7
        ys[1].backward()
        found.append(x.grad.asnumpy())
    np.testing.assert_array_equal(*found)


def test_a_call_that_fails_keeps_no_memory():
    """Its room goes, also from those to whom it had been known."""

    class Picky(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            if in_data[0].asnumpy()[0, 0] < 0:
                raise ValueError("negative")
            self.assign(out_data[0], req[0], in_data[0])

    @mx.operator.register("test_picky")
    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Picky()

    y = sym.Custom(sym.Variable("x"), op_type="test_picky")
    op = CachedOp(sym.sum(sym.dot(y, y, transpose_b=True)))
    known = [nd.ones((n, 2)) for n in (60, 50, 40)]
    for _ in range(3):
        for x in known:
            assert op(x).asscalar() == x.shape[0] ** 2 * 2
        with pytest.raises(MXNetError, match="negative"):
            op(-known[0]).wait_to_read()
        assert not any(s.memories for s in op._signatures.values()) and not op._rooms[mx.cpu()].idle


class Counted(mx.operator.CustomOp):
    """The input, and how often forward ran."""

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0])
        aux[0][:] += 1

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0])


@mx.operator.register("test_counted")
class CountedProp(mx.operator.CustomOpProp):
    def list_auxiliary_states(self):
        return ["count"]

    def infer_shape(self, shapes):
        return shapes, shapes, [(1,)]

    def create_operator(self, ctx, shapes, dtypes):
        return Counted()


@pytest.mark.parametrize("way", ["CachedOp", "Executor"])
def test_what_is_repeated_moves_auxiliary_states_once(way):
    net = sym.BatchNorm(sym.Custom(sym.Variable("x"), op_type="test_counted", name="c"), name="bn", momentum=0.5)
    shapes = {"x": (4, 3), "c_count": (1,), **{f"bn_{n}": (3,) for n in ("gamma", "beta", "moving_mean", "moving_var")}}
    v = {n: nd.ones(shape) for n, shape in shapes.items()}
    v["c_count"][:] = 0
    v["x"].attach_grad()
    if way == "Executor":
        aux = {n: v[n] for n in net.list_auxiliary_states()}
        bound = net.bind(mx.cpu(), {n: v[n] for n in net.list_arguments()}, {"x": v["x"].grad}, aux_states=aux)
        bound.forward(is_train=True)
        backward = lambda: bound.backward(nd.ones((4, 3)))  # noqa: E731
    else:
        with autograd.record():
            y = CachedOp(net)(*[v[n] for n in net.list_inputs()])
        backward = lambda: y.backward(retain_graph=True)  # noqa: E731
    for times in (1, 2, 3):
        backward()
        assert v["c_count"].asscalar() == 1
        assert v["bn_moving_var"].asnumpy().tolist() == [0.5**times] * 3  # which move in backward


def test_wrong_calls_are_explained():
    op, f = whole(graph())
    with pytest.raises(MXNetError, match="takes 7 arrays"):
        op(nd.ones((2, 5)))
    with pytest.raises(MXNetError, match=r"node 'fc': weight is \(3, 5\) where \(3, 6\) is expected"):
        f({**arrays(), "x": nd.ones((4, 6))})
    with pytest.raises(MXNetError, match="inputs live on different devices"):
        f({**arrays(), "b": nd.ones((3,), ctx=mx.cpu(1))})
    assert f(arrays())[0].shape == (4, 3)


def test_a_hook_sees_every_output():
    op, f = whole(graph())
    seen = []
    op.register_op_hook(lambda name, kind, array: seen.append((name, kind, array.shape)))
    f(arrays())
    assert ("fc_output", "FullyConnected", (4, 3)) in seen and len(seen) >= 5
    op.register_op_hook(None)
    seen.clear()
    f(arrays())
    assert not seen


def test_constants_inside_are_made_where_the_inputs_are():
    """In a program, and node by node under a hook."""
    op, f = whole(sym.Variable("x") + sym.ones(shape=(2,)))
    x = nd.array([1.0, 2.0], ctx=mx.cpu(1))
    for hook in (None, lambda name, kind, array: None):
        op.register_op_hook(hook)
        (y,) = f({"x": x})
        assert y.context is mx.cpu(1) and y.asnumpy().tolist() == [2, 3]


@pytest.mark.parametrize("engine", ["NaiveEngine", "ThreadedEnginePerDevice"])
def test_threads_and_contexts(engine):
    """Many threads call one CachedOp on two contexts while arrays are pending; each gets its own numbers."""
    old = use_engine(engine)
    try:
        net = graph()
        _, f = whole(net)
        wanted = {s: call(lambda v: interpret(net._heads, v), arrays(seed=s)) for s in range(4)}
        wrong = []

        def work(seed):
            try:
                ctx = mx.cpu(seed % 2)
                for _ in range(10):
                    values = {n: a.as_in_context(ctx) for n, a in arrays(seed=seed).items()}
                    for n, a in values.items():
                        if "moving" not in n:
                            a.attach_grad()
                    with ctx:
                        agree(call(f, values), wanted[seed])
            except Exception as e:  # shown by the assertion
                wrong.append(e)

        threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong, wrong[0]
    finally:
        use_engine(old)


def test_a_call_gives_what_mxnets_gives():
    x = mx.sym.Variable("x")
    one, two = CachedOp(x * 2), CachedOp(mx.sym.Group([x * 2, x + 1]))
    data, room = mx.nd.ones((2,)), [mx.nd.zeros((2,)), mx.nd.zeros((2,))]
    data.attach_grad()
    assert one(data).asnumpy().tolist() == [2, 2] and [y.asnumpy().tolist() for y in two(data)] == [[2, 2], [2, 2]]
    assert one(data, out=room[0]) is room[0] and two(data, out=room) is room and room[1].asnumpy().tolist() == [2, 2]
    with autograd.record():
        one(data, out=room[0])
    room[0].backward()
    assert data.grad.asnumpy().tolist() == [2, 2]
    with pytest.raises(mx.MXNetError, match="CachedOp has 2 outputs, got 1 arrays as out"):
        two(data, out=room[0])
    with pytest.raises(mx.MXNetError, match="out has shape"):
        one(data, out=mx.nd.zeros((3,)))
    zeros = CachedOp(mx.sym.zeros((2,)))
    assert zeros(default_ctx=mx.cpu(1)).context == mx.cpu(1)
    assert one.handle == one.handle != two.handle and not one.is_np_sym


def test_outputs_that_no_machine_holds_are_told():
    block = mx.gluon.SymbolBlock(mx.sym.tile(mx.sym.Variable("x"), reps=(10**6, 10**9)), [mx.sym.Variable("x")])
    with pytest.raises(
        MXNetError, match="no memory on cpu.0. for the outputs of a compiled block: .*2000000, 2000000000"
    ) as caught:
        block(mx.nd.ones((2, 2)))
    assert isinstance(caught.value, MemoryError)


def test_arrays_that_change_are_looked_up_and_nothing_is_bound_anew(monkeypatch):
    """What a call brings and what it makes: heads that are handed over, users of views, universal functions."""
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
    y = mx.sym.reshape(x, shape=(-1,))
    net = CachedOp(mx.sym.Group([mx.sym.dot(mx.sym.reshape(-y, shape=(2, 3)), w), y * 2, x]))
    data = [nd.array(np.random.RandomState(i).randn(2, 3)) for i in range(5)]
    weight = nd.array(np.random.RandomState(9).randn(3, 2))
    weight.attach_grad()
    built, build = [], Instance._build

    def counted(self, t, step):
        built.append(step)
        return build(self, t, step)

    monkeypatch.setattr(Instance, "_build", counted)
    kept = []
    for i, x in enumerate(data):
        if i == 3:
            built.clear()
        x.attach_grad()
        with mx.autograd.record():
            outs = net(x, weight)
        mx.autograd.backward(outs, [nd.full(o.shape, i + 1) for o in outs])
        kept.append(([o.detach() for o in outs], x.grad.copy(), weight.grad.copy()))
        del outs  # the tape, which holds the memory of the call
    assert [step for step in built if not step.view] == []
    for i, (x, (outs, dx, dw)) in enumerate(zip(data, kept)):
        a, b = x.asnumpy(), weight.asnumpy()
        for got, want in zip(outs, (-a @ b, a.ravel() * 2, a)):
            np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-5, atol=1e-6)
        head = np.full((2, 2), i + 1)
        np.testing.assert_allclose(dx.asnumpy(), -head @ b.T + 3 * (i + 1), rtol=1e-5)
        np.testing.assert_allclose(dw.asnumpy(), -a.T @ head, rtol=1e-5, atol=1e-6)
