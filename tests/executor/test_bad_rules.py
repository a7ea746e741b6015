"""Shape and dtype rules of plugins that are wrong: the error names the operator whose rule it is, whatever is fused."""

import types

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, nd, sym
from mxcore._core.manager import manager
from mxcore.executor import CachedOp
from mxcore.plugin import API_VERSION, hookimpl, op


def broken(name, **rules):
    @op(f"toy_bad_{name}", inputs="data", grad=lambda F, dy: dy * 1)
    def body(k, p, data):
        return data + 0

    for what, rule in rules.items():
        getattr(body, what)(rule)
    return body


def failing(p, ins, outs):
    raise KeyError("boom")


INT8 = np.dtype(np.int8)
#: Name -> rules, and whether an eager call shows that they are wrong.
RULES = {
    "raises": {"shape": failing},
    "dtype_raises": {"dtype": failing},
    "text": {"shape": lambda p, ins, outs: (["a"], ["b"])},
    "other_output": {"shape": lambda p, ins, outs: (ins, [(7, 7)])},
    "other_rank": {"shape": lambda p, ins, outs: (ins, [(7,)])},
    "part": {"shape": lambda p, ins, outs: (ins, [(-1, 4)])},
    "forward_only": {"shape": lambda p, ins: [(7,)]},
    "other_input": {"shape": lambda p, ins, outs: ([(7, 7)], [(7, 7)])},
    "other_dtype": {"dtype": lambda p, ins, outs: (ins, [INT8])},
    "open_dtype": {"dtype": lambda p, ins, outs: (ins, [None])},
}


#: Gradient rules of one input that are wrong.
GRADIENTS = {
    "one_number": lambda F, dy: F.sum(dy),
    "a_row": lambda F, dy: F.sum(dy, axis=0),
    "other_kind": lambda F, dy: F.Cast(dy, dtype="float64"),
    "two": lambda F, dy: (dy, dy),
    "none_at_all": lambda F, dy: (),
}
BACKWARDS = {
    "one_number": lambda dy: [nd.sum(dy)],
    "other_kind": lambda dy: [dy.astype("float64")],
    "two": lambda dy: [dy, dy],
    "none_at_all": lambda dy: [],
    "no_array": lambda dy: [dy.asnumpy()],
}


def with_gradient(name, rule):
    @op(f"toy_bad_gradient_{name}", grad=rule)
    def body(k, p, data):
        return data * 3

    return body


def with_backward(name, rule):
    @op(f"toy_bad_backward_{name}", stateful=True)
    def body(k, p, data):
        return (data * 3,), 7

    body.backward(lambda k, p, state, dys, ins, outs: rule(dys[0]))
    return body


@pytest.fixture(scope="module", autouse=True)
def operators():
    manager.load()
    found = [broken(name, **rules) for name, rules in RULES.items()]
    found += [with_gradient(*named) for named in GRADIENTS.items()]
    found += [with_backward(*named) for named in BACKWARDS.items()]
    manager.register(types.SimpleNamespace(API_VERSION=API_VERSION, mxcore_ops=hookimpl(lambda: found)), "toy_bad")
    yield
    manager.unregister("toy_bad")


@pytest.fixture(autouse=True)
def fuse_all(monkeypatch):
    monkeypatch.setattr(type(mx.cpu().device), "fused_from", 0)


def chained(F, x, name):
    y = F.tanh(x) * F.exp(x) + 1
    y = getattr(F, f"toy_bad_{name}")(y)
    return F.sigmoid(y) * F.exp(y) - 2


def negated(F, x, name):
    """Operators around it whose gradients take whatever comes."""
    return F.negative(getattr(F, f"toy_bad_{name}")(F.negative(x)))


def executor(net, train):
    bound = net.simple_bind(mx.cpu(), x=(4, 5), grad_req="write" if train else "null", type_dict={"x": "float32"})
    bound.forward(is_train=train)
    if train:
        bound.backward(nd.ones(bound.outputs[0].shape))
    bound.outputs[0].wait_to_read()


def cached(net, train):
    x = nd.ones((4, 5))
    x.attach_grad()
    with autograd.record() if train else autograd.pause():
        y = CachedOp(net)(x)
    if train:
        y.backward()
    y.wait_to_read()


#: What is right in predict mode, as only gradients show it, or what the consumers decide.
FINE = {("part", False), ("other_dtype", False)}


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("way", [executor, cached], ids=lambda f: f.__name__)
@pytest.mark.parametrize("net", [chained, negated], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", RULES)
def test_the_error_names_whose_rule_it_is(name, net, way, train):
    if (name, train) in FINE or (name, net) == ("part", negated) or (name, way, train) == ("open_dtype", cached, True):
        return
    with pytest.raises((ValueError, TypeError), match=rf"operator toy_bad_{name}\b"):
        way(net(sym, sym.Variable("x"), name), train)


def test_a_gradient_of_another_shape_is_described():
    with pytest.raises(
        ValueError,
        match=r"gradient of operator toy_bad_forward_only of node 'toy.*' with data float32 "
        r"\(4, 5\): the gradient of its input 'data' has shape \(7,\): its gradient rule is wrong, or",
    ):
        cached(chained(sym, sym.Variable("x"), "forward_only"), True)


@pytest.mark.parametrize(
    "name", [*(f"toy_bad_gradient_{n}" for n in GRADIENTS), *(f"toy_bad_backward_{n}" for n in BACKWARDS)]
)
@pytest.mark.parametrize("before", ["square", "negative", "softmax", "identity"])
@pytest.mark.parametrize("hybrid", [False, True])
def test_gradients_unlike_their_inputs_are_errors_of_their_rules_whatever_comes_before(name, before, hybrid):
    def net(F, x):
        return getattr(F, name)(getattr(F, before)(x)) * 2

    x = nd.array([[1.0, 2, 3], [4, 5, 6]])
    x.attach_grad()
    with pytest.raises((ValueError, TypeError, RuntimeError), match=rf"operator {name}\b.*gradient"):
        with autograd.record():
            y = CachedOp(net(sym, sym.Variable("x")))(x) if hybrid else net(nd, x)
        y.backward()
    assert x.grad.asnumpy().tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.fixture
def plugged():
    """Operators for a test."""
    with_names = []

    def add(*found):
        name = f"toy_bad_{len(with_names)}_more"
        manager.register(types.SimpleNamespace(API_VERSION=API_VERSION, mxcore_ops=hookimpl(lambda: [*found])), name)
        with_names.append(name)

    yield add
    for name in with_names:
        manager.unregister(name)


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_gradient_that_nobody_wants_may_be_anything(plugged, hybrid):
    @op("toy_bad_pair", inputs="data label", grad=lambda F, dy: (dy * 3, dy * 3))
    def pair(k, p, data, label):
        return data * 3

    @op("toy_bad_stateful_pair", inputs="data label", stateful=True)
    def stateful(k, p, data, label):
        return (data * 3,), None

    pair.shape(lambda p, ins, outs: (ins, [ins[0]]))
    pair.dtype(lambda p, ins, outs: (ins, [ins[0]]))
    stateful.shape(lambda p, ins, outs: (ins, [ins[0]]))
    stateful.dtype(lambda p, ins, outs: (ins, [ins[0]]))
    stateful.backward(lambda k, p, state, dys, ins, outs: [dys[0] * 3, nd.ones(1)])
    plugged(pair, stateful)
    for name in ("toy_bad_pair", "toy_bad_stateful_pair"):
        x, label = nd.ones((2, 3)), nd.array([1, 2], dtype="int32")
        x.attach_grad()
        with autograd.record():
            if hybrid:
                y = CachedOp(getattr(sym, name)(sym.var("x"), sym.var("label")))(x, label)
            else:
                y = getattr(nd, name)(x, label)
        y.backward()
        assert x.grad.asnumpy().tolist() == [[3, 3, 3], [3, 3, 3]]
