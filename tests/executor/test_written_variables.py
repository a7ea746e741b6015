"""Operators whose results depend on what they write to: a forward that is repeated takes what that held before."""

import types

import pytest

import mxcore as mx
from mxcore import autograd, nd, sym
from mxcore._core.manager import manager
from mxcore.executor import CachedOp
from mxcore.plugin import API_VERSION, hookimpl, op


def counted(name, **kwargs):
    """An operator that gives the square less a counter, which it moves."""

    @op(name, inputs="data state", mutates="state", grad=lambda F, p, dy, data: (2 * dy * data, None), **kwargs)
    def body(k, p, data, state):
        return data * data - state, state + 1

    return body


@pytest.fixture(scope="module", autouse=True)
def operators():
    manager.load()
    found = [counted("toy_counted", aux="state"), counted("toy_counted_argument")]
    plugin = types.SimpleNamespace(API_VERSION=API_VERSION, mxcore_ops=hookimpl(lambda: found))
    manager.register(plugin, "toy_counted")
    yield
    manager.unregister("toy_counted")


class Counted(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * in_data[0] - aux[0])
        aux[0][:] += 1

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        # By the state that forward has left.
        self.assign(in_grad[0], req[0], 2 * out_grad[0] * in_data[0] * aux[0])


@mx.operator.register("toy_counted_custom")
class CountedProp(mx.operator.CustomOpProp):
    def list_auxiliary_states(self):
        return ["state"]

    def infer_shape(self, shapes):
        return shapes, shapes, [(1,)]

    def create_operator(self, ctx, shapes, dtypes):
        return Counted()


NETS = {
    "plugin": lambda F, x, s: F.toy_counted(x, s) ** 2,
    "argument": lambda F, x, s: F.toy_counted_argument(x, s) ** 2,
    "custom": lambda F, x, s: F.Custom(x, s, op_type="toy_counted_custom") ** 2,
    "twice": lambda F, x, s: F.toy_counted(F.toy_counted(x, s), s) ** 2,
}
#: Gradients at 3 with a state of 5, and the state after forward; squared and composed by hand.
WANTED = {
    "plugin": (2 * (9 - 5) * 6, 6),
    "argument": (2 * (9 - 5) * 6, 6),
    "custom": (2 * (9 - 5) * 6 * 6, 6),
    "twice": (2 * (16 - 6) * 2 * 4 * 6, 7),
}


def arrays():
    x, s = nd.array([3.0]), nd.array([5.0])
    x.attach_grad()
    return x, s


def backward_of(way, net, x, s, train):
    """Run forward; gives what runs backward, and the output."""
    build = NETS[net]
    if way == "executor":
        y = build(sym, sym.Variable("x"), sym.Variable("s"))
        names = y.list_auxiliary_states()
        args = {n: a for n, a in (("x", x), ("s", s)) if n not in names}
        bound = y.bind(mx.cpu(), args, {"x": x.grad}, aux_states=dict.fromkeys(names, s))
        (out,) = bound.forward(is_train=train)
        return lambda: bound.backward(nd.ones(x.shape), is_train=train), out
    if way == "cached":
        y = build(sym, sym.Variable("x"), sym.Variable("s"))
        call = CachedOp(y)
        f = lambda: call(*[{"x": x, "s": s}[n] for n in y.list_inputs()])  # noqa: E731
    else:
        f = lambda: build(nd, x, s)  # noqa: E731
    with autograd.record(train_mode=train):
        out = f()
    return lambda: out.backward(retain_graph=True, train_mode=train), out


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("way", ["eager", "cached", "executor"])
@pytest.mark.parametrize("net", NETS)
def test_each_backward_gives_the_same(net, way, train):
    x, s = arrays()
    gradient, moved = WANTED[net]
    for _ in range(2):  # the memory of the first call is used by the second
        s[:] = 5
        backward, out = backward_of(way, net, x, s, train)
        first = out.asscalar()
        for _ in range(3):
            x.grad[:] = 0
            backward()
            assert x.grad.asscalar() == gradient
            assert s.asscalar() == moved
            assert out.asscalar() == first
        del backward, out


@pytest.mark.parametrize("way", ["eager", "cached"])
@pytest.mark.parametrize("net", ["plugin", "argument"])
def test_gradients_of_gradients(net, way):
    x, s = arrays()
    build = NETS[net]
    with autograd.record():
        if way == "cached":
            y = build(sym, sym.Variable("x"), sym.Variable("s"))
            out = CachedOp(y)(*[{"x": x, "s": s}[n] for n in y.list_inputs()])
        else:
            out = build(nd, x, s)
        (dx,) = autograd.grad(out, x, create_graph=True)
    assert (dx.asscalar(), s.asscalar()) == (2 * (9 - 5) * 6, 6)
    dx.backward()
    assert x.grad.asscalar() == 4 * (3 * 9 - 5)
    assert s.asscalar() == 6


@pytest.mark.parametrize("way", ["eager", "cached", "executor"])
def test_a_state_that_backward_reads_is_the_arrays(way):
    """Whatever was written to it since forward."""
    x, s = arrays()
    backward, _ = backward_of(way, "custom", x, s, True)
    for value in (2, 7, 11):
        s[:] = value
        backward()
        assert x.grad.asscalar() == 2 * (9 - 5) * 6 * value
