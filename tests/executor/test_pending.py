"""Values that a worker computes or will read: backward waits for those, and who would overwrite these waits."""

import threading
import time
import warnings

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, gluon, nd
from mxcore._core import dispatch, tables, transfer
from mxcore._core.engine import engine
from mxcore.testing.case import cases
from mxcore.testing.engines import use_engine


@pytest.fixture(autouse=True)
def threaded():
    old = use_engine("ThreadedEnginePerDevice")
    yield
    use_engine(old)


@mx.operator.register("test_pending_square")
class SquareProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        class Square(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.assign(out_data[0], req[0], in_data[0] * in_data[0])

            def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])

        return Square()


class Squares(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return F.sqrt(F.square(x) + 0) * x


def hybridised():
    net = Squares()
    net.hybridize()
    return net


WAYS = {
    "eager": lambda: Squares(),
    "hybridised": hybridised,
    "custom": lambda: lambda x: nd.Custom(x, op_type="test_pending_square"),
    "foreach": lambda: lambda x: nd.contrib.foreach(lambda d, s: (d * d, s), x, nd.zeros(1))[0],
    "while_loop": lambda: (
        lambda x: nd.contrib.while_loop(
            lambda i, s: i < 1, lambda i, s: (s * s, (i + 1, s)), (nd.zeros(1), x), max_iterations=1
        )[0][0]
    ),
    "cond": lambda: lambda x: nd.contrib.cond(nd.ones(1), lambda: x * x, lambda: x),
}


def later(x, value):
    """Hand the engine a write to an array that does not end before the returned event is set."""
    gate, data = threading.Event(), x._data

    def write():
        assert gate.wait(60)
        if value is not None:
            data[...] = value

    engine.it.push(x.context, write, (), (x._st,), "a slow write")
    x._st.version += 1
    return gate


def recorded(way, again):
    x = nd.array([1.0, 2.0, 3.0])
    x.attach_grad()
    f = WAYS[way]()
    with autograd.record():
        y = f(x)
    if again:
        y.backward(retain_graph=True)
    return x, y


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_head_gradient_that_is_being_computed(way, again):
    x, y = recorded(way, again)
    dy = nd.zeros(y.shape)
    gate = later(dy, 1.0)
    threading.Timer(0.05, gate.set).start()
    y.backward(dy)
    np.testing.assert_allclose(x.grad.asnumpy(), [2, 4, 6], rtol=1e-6)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_an_input_that_is_written_after_backward(way, again):
    """The next batch comes into the same array while a worker still computes the gradients of this one."""
    x, y = recorded(way, again)
    dy = nd.ones(y.shape)
    gate = later(dy, None)
    threading.Timer(0.05, gate.set).start()
    y.backward(dy)
    x[:] = 50
    np.testing.assert_allclose(x.grad.asnumpy(), [2, 4, 6], rtol=1e-6)


@pytest.mark.parametrize("way", [w for w in WAYS if w != "eager"])
def test_an_input_that_is_being_written(way):
    """Backward sees a write of before it: both sides of the product, or, where the forward kept its result, one."""
    x, y = recorded(way, False)
    gate = later(x, 2.0)
    threading.Timer(0.05, gate.set).start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mx.base.MXNetWarning)
        y.backward(nd.ones(y.shape))
    gate.wait(60)
    assert x.asnumpy().tolist() == [2, 2, 2]
    if way != "hybridised":  # there, what the first part kept counts
        np.testing.assert_allclose(x.grad.asnumpy(), [4, 4, 4], rtol=1e-6)


def late(arrays):
    """Their values come a little later, from a worker; until then they hold zeros."""
    for x in arrays:
        data = x._data
        values = data.copy()
        data[...] = 0
        engine.it.push(
            x.context,
            lambda data=data, values=values: (time.sleep(0.0005), np.copyto(data, values)),
            (),
            (x._st,),
            "a late value",
        )


def agree(found, wanted, case):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=str(case))


def ways_to_call():
    """A few samples of every operator that takes dense arrays and gives what can be told beforehand."""
    for op in {id(o): o for o in map(tables.ops.get, tables.ops.names())}.values():
        if not op.random:
            yield from [c for c in cases(op, mx.cpu()) if c.host][:3]


def outputs(case, arrays, share):
    found = dispatch.invoke(case.op, arrays, case.p, None, None, share)
    return [y for y in (found if isinstance(found, (list, tuple)) else [found]) if y is not None]


def test_every_operator_waits_for_what_it_reads():
    """Also view operators that compute: those of gradients share memory, as `_sum_like` does for equal shapes."""
    tried = 0
    for case in ways_to_call():
        for share in {False, case.op.view}:
            arrays = case.arrays()
            wanted = [y.asnumpy() for y in outputs(case, arrays, share)]
            arrays = case.arrays()
            late(arrays)
            agree([y.asnumpy() for y in outputs(case, arrays, share)], wanted, case)
            tried += 1
    assert tried > 1000


def gradients(case, head_grads):
    arrays = case.arrays()
    leaves = [x for x in arrays if x.dtype in (np.float32, np.float64)]
    for x in leaves:
        x.attach_grad()
    with autograd.record():
        ys = [y for y in outputs(case, arrays, False) if y._entry is not None]
    if not ys:
        return []
    dys = [nd.array(np.linspace(0.5, 1, y.size).reshape(y.shape), dtype=y.dtype) for y in ys]
    head_grads(dys)
    autograd.backward(ys, dys)
    return [x.grad.asnumpy() for x in leaves]


def test_every_gradient_waits_for_what_it_reads():
    tried = 0
    for case in ways_to_call():
        try:
            wanted = gradients(case, list)
        except mx.MXNetError:  # it has none
            continue
        if wanted:
            agree(gradients(case, late), wanted, case)
            tried += 1
    assert tried > 500


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.reshape((-1,)),
        lambda x: x[1:3],
        lambda x: x.T,
        lambda x: x.flatten(),
        lambda x: x.expand_dims(0),
        lambda x: x[1],
    ],
)
def test_methods_of_strided_memory_wait_for_it(f):
    """What is a view of other arrays has to be copied here."""
    memory = np.arange(24, dtype=np.float32).reshape(4, 6)[:, ::2]
    wanted = f(nd.array(memory)).asnumpy()
    x = transfer.wrap(memory, mx.cpu(), nd.NDArray)
    late([x])
    np.testing.assert_array_equal(f(x).asnumpy(), wanted)


def push_all():
    """As with several contexts and heavy operators: the engine gets whatever may go to it."""
    for i in range(2):
        engine.it.note(mx.cpu(i))
    engine.it.work_limit = -1.0


def test_a_gradient_of_nothing_is_zero(monkeypatch):
    """The worker that runs a program hands over the zeros itself."""
    push_all()
    x, grad, dy = mx.sym.Variable("x"), nd.full((3, 4), 5), nd.full((3, 4), 7)
    # New memory holds anything.
    monkeypatch.setattr(mx.cpu().device, "empty", lambda shape, dtype, index: np.full(shape, 9, dtype))
    exe = mx.sym.broadcast_lesser_equal(x, x).bind(mx.cpu(), {"x": nd.ones((3, 4))}, args_grad={"x": grad})
    exe.forward(is_train=True)
    exe.backward([dy])
    np.testing.assert_array_equal(grad.asnumpy(), np.zeros((3, 4)))


class Loop(gluon.HybridBlock):
    """A loop whose steps share weights."""

    def __init__(self, normalised):
        super().__init__()
        self.normalised = normalised
        self.weight = self.params.get("weight", shape=(6, 6))
        self.bias = self.params.get("bias", shape=(6,))
        self.mean = self.params.get("mean", shape=(6,), grad_req="null", init="zeros")
        self.var = self.params.get("var", shape=(6,), grad_req="null", init="ones")

    def hybrid_forward(self, F, x, weight, bias, mean, var):
        def step(d, state):
            y = F.FullyConnected(d + state, weight, bias, num_hidden=6)
            if self.normalised:  # an operator that keeps the body from being compiled
                y = F.BatchNorm(y, bias, bias, mean, var, fix_gamma=False)
            return F.tanh(y), state + d

        y, _ = F.contrib.foreach(step, x, F.zeros((4, 6)))
        return F.broadcast_add(y, 0 * (mean + var).reshape((1, 1, 6)))


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("normalised", [False, True])
def test_gradients_of_a_loop_wait_for_what_its_steps_handed_to_the_engine(normalised, hybrid):
    def results():
        net = Loop(normalised)
        net.initialize()
        rs = np.random.RandomState(3)
        for name in ("weight", "bias"):
            p = getattr(net, name)
            p.set_data(nd.array(rs.uniform(-1, 1, p.shape)))
        net.hybridize(hybrid)
        x = nd.array(rs.uniform(-1, 1, (5, 4, 6)))
        x.attach_grad()
        for _ in range(3):
            with autograd.record():
                y = net(x)
            y.backward(nd.array(rs.uniform(-1, 1, y.shape)))
        return [y, x.grad, net.weight.grad(), net.bias.grad(), net.mean.data(), net.var.data()]

    want = [a.asnumpy() for a in results()]
    push_all()
    for a, b in zip(results(), want):
        np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "use",
    [
        lambda g: g.tostype("default"),
        lambda g: g * 2 / 2,
        lambda g: -nd.sgd_update(nd.zeros(g.shape), g, lr=1),
        lambda g: g.data.sum(),
    ],
)
def test_a_sparse_gradient_is_there_after_backward(use):
    """Whoever reads a sparse array takes its parts at the call."""
    a, dy = mx.sym.Variable("a"), nd.ones((3, 2))
    exe = (a * a).bind(
        mx.cpu(), {"a": nd.array([[1, 2], [0, 0], [3, 4]])}, {"a": nd.sparse.zeros("row_sparse", (3, 2))}
    )
    exe.forward(is_train=True)
    gate = later(dy, 1.0)
    threading.Timer(0.05, gate.set).start()
    exe.backward(dy)
    assert use(exe.grad_dict["a"]).asnumpy().sum() == 20


def test_a_run_of_an_executor_does_not_overtake_the_one_before():
    """Backward waits for its head gradient, while all that the next forward reads is there."""
    x, grad, dy = mx.sym.Variable("x"), nd.zeros(1), nd.zeros(1)
    net = mx.sym.exp(x) * x
    exe = net.bind(mx.cpu(), [nd.array([1.0])], [grad])
    push_all()
    y = exe.forward(is_train=True)[0].asscalar()
    gate = later(dy, 1.0)
    threading.Timer(0.05, gate.set).start()
    exe.backward(dy)
    other = net.bind(mx.cpu(), [nd.array([5.0])], [nd.zeros(1)], shared_exec=exe)
    other.forward(is_train=True)
    np.testing.assert_allclose(grad.asscalar(), 2 * y, rtol=1e-5)


@pytest.mark.parametrize("hybrid", [False, True])
def test_gradients_behind_a_forward_that_failed_on_a_worker_are_errors(hybrid):
    """Its operators fail forward only, so that backward would go on with what was in memory."""

    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, a):
            return F.square(F.linalg.potrf(F.tanh(a)))

    good, bad = nd.array([[1, 0.1], [0.1, 1]]), nd.array([[1, 0.1], [0.1, -1]])
    a, net = good.copy(), Net()
    a.attach_grad()
    net.hybridize()
    exe = net(mx.sym.Variable("a")).bind(mx.cpu(), [a], [a.grad])

    def gradient(value):
        a[:] = value
        if hybrid:
            with autograd.record():
                y = net(a)
            y.backward()
        else:
            exe.forward(is_train=True)
            exe.backward(nd.ones((2, 2)))
        return a.grad.asnumpy()

    want = gradient(good)
    push_all()
    np.testing.assert_array_equal(gradient(good), want)
    with pytest.raises(ValueError, match="potrf.*not positive definite"):
        gradient(bad)
    np.testing.assert_array_equal(gradient(good), want)
    with pytest.raises(ValueError, match="not positive definite"):
        gradient(bad)
