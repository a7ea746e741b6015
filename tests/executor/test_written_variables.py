"""Operators whose results depend on what they write to: a forward that is repeated takes what that held before."""

import types

import numpy as np
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


def queues():
    """Operators whose states become one another's old values."""

    @op("toy_swaps", inputs="data s t", mutates="s t", aux="s t")
    def swaps(k, p, data, s, t):
        return data + s - t, t, s

    @op("toy_queue", inputs="data s t u", mutates="s t u", aux="s t u")
    def queue(k, p, data, s, t, u):
        return s, s + data, s, t[::-1][::-1]  # a view, too

    return swaps, queue


@pytest.fixture(scope="module", autouse=True)
def operators():
    manager.load()
    found = [counted("toy_counted", aux="state"), counted("toy_counted_argument"), *queues()]
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


@pytest.mark.parametrize(("name", "wanted"), [("toy_swaps", [5, 3]), ("toy_queue", [4, 3, 5])])
@pytest.mark.parametrize("way", ["eager", "hybridised", "bound"])
def test_states_become_old_values_of_others(way, name, wanted):
    x, states = nd.ones((4,)), [nd.ones((4,)) * v for v in (3, 5, 7)[: len(wanted)]]
    with autograd.train_mode():
        if way == "eager":
            getattr(nd, name)(x, *states)
        else:
            y = getattr(sym, name)(*[sym.Variable(f"v{i}") for i in range(len(states) + 1)])
            if way == "hybridised":
                CachedOp(y)(x, *states)
            else:
                y.bind(mx.cpu(), [x], aux_states=states).forward(is_train=True)
    assert [s.asnumpy().tolist() for s in states] == [[v] * 4 for v in wanted]


def listed(found):
    return found if isinstance(found, list) else [found]


#: Operator -> its parameters, how many inputs it has, and of which the second, a state, lies over the first.
MOVES = {
    "sgd_mom_update": ({"lr": 0.1, "momentum": 0.9}, 3, [(1, 2), (0, 2)]),
    "adam_update": ({"lr": 0.1}, 4, [(1, 2), (1, 3), (0, 3)]),
    "multi_sgd_mom_update": (
        {"lrs": (0.1, 0.2), "wds": (0, 0), "momentum": 0.9, "num_weights": 2},
        6,
        [(1, 2), (3, 2), (4, 5), (1, 5)],
    ),
    "toy_queue": ({}, 4, [(0, 1), (0, 3)]),
}


@pytest.mark.parametrize("how", ["views", "buffers", "one"])
@pytest.mark.parametrize(("name", "pair"), [(n, pair) for n in MOVES for pair in MOVES[n][2]])
@pytest.mark.parametrize("train", [False, True])
def test_states_over_other_inputs_are_moved_when_all_is_read(name, pair, how, train):
    """As an eager call does it, which has found what they become before it writes."""
    params, n, _ = MOVES[name]
    graph = CachedOp(getattr(sym, name)(*[sym.Variable(f"x{i}") for i in range(n)], **params))

    def arrays():
        found = [nd.array(np.random.RandomState(i).uniform(0.5, 1.5, 3)) for i in range(n)]
        buffer = np.arange(1, 5, dtype="float32")
        whole = nd.array(buffer)
        for i, at in zip(pair, (slice(0, 3), slice(0, 3) if how == "one" else slice(1, 4))):
            found[i] = nd.from_numpy(buffer[at], zero_copy=True) if how == "buffers" else whole[at]
        if how == "one":
            found[pair[0]] = found[pair[1]]
        return found

    eager, given = arrays(), arrays()
    with autograd.train_mode() if train else autograd.predict_mode():
        want, got = getattr(nd, name)(*eager, **params), graph(*given)
    for a, b in zip([*listed(got), *given], [*listed(want), *eager]):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-6)
