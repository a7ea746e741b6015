"""Inference: single rules, and graphs to a fixpoint in both directions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mxcore as mx
from mxcore._core import infer
from mxcore.plugin import MXNetError, broadcast_shapes, op


@given(st.lists(st.integers(0, 5), max_size=4), st.data())
def test_merge_is_symmetric_and_finds_contradictions(dims, data):
    hide = data.draw(st.lists(st.booleans(), min_size=len(dims), max_size=len(dims)))
    a = tuple(-1 if h else d for d, h in zip(dims, hide))
    b = tuple(d if h else -1 for d, h in zip(dims, hide))
    assert infer.merge_shape(a, b) == infer.merge_shape(b, a) == tuple(dims)
    assert infer.merge_shape(None, a) == a
    if dims:
        with pytest.raises(ValueError):
            infer.merge_shape(tuple(dims), (dims[0] + 1, *dims[1:]))
    with pytest.raises(ValueError):
        infer.merge_shape(tuple(dims), (*dims, 1))


@given(st.lists(st.sampled_from([1, 3]), max_size=3), st.lists(st.sampled_from([1, 3]), max_size=3))
def test_broadcast_is_numpys(a, b):
    assert broadcast_shapes(tuple(a), tuple(b)) == np.broadcast_shapes(tuple(a), tuple(b))


def test_a_consumer_decides_unknown_dimensions():
    d = mx.sym.Variable("d")
    z = mx.sym._internal._zeros(shape=(0, 5)) + d
    assert z.infer_shape(d=(3, 5)) == ([(3, 5)], [(3, 5)], [])
    ex = z.simple_bind(mx.cpu(), d=(3, 5))
    ex.arg_dict["d"][:] = 2
    assert ex.forward()[0].asnumpy().tolist() == [[2] * 5] * 3
    assert mx.nd.empty((0, 5)).shape == (0, 5)


def test_backwards_through_a_chain():
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    c = mx.sym.tanh(mx.sym.transpose(a)) + b
    assert c.infer_shape(b=(4, 3))[0] == [(3, 4), (4, 3)]
    assert c.infer_type(b="float64")[0] == [np.float64, np.float64]


def test_partial_knowledge():
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    c = a + b
    with pytest.warns(UserWarning, match=r"cannot decide the shapes of a \(\), b \(\)"):
        assert c.infer_shape() == (None, None, None)
    assert c.infer_shape_partial(a=(2, 0)) == ([(2, 0), (2, 0)], [(2, 0)], [])
    assert c.infer_shape(a=(2, 0), b=(0, 3)) == ([(2, 3), (2, 3)], [(2, 3)], [])


def test_contradictions_name_node_and_inputs():
    s = mx.sym.elemwise_add(mx.sym.Variable("a"), mx.sym.Variable("b"), name="joined")
    with pytest.raises(
        ValueError, match=r"operator elemwise_add of node 'joined': inconsistent shapes: .*lhs \(2, 3\), rhs \(4, 5\)"
    ):
        s.infer_shape(a=(2, 3), b=(4, 5))
    with pytest.raises(TypeError, match="node 'joined': inconsistent dtypes: float32 and int32 differ"):
        s.infer_type(a="float32", b="int32")


def test_mixed_dtypes_are_an_error_that_names_both():
    with pytest.raises(TypeError, match="float32 and int32 differ; inputs: lhs float32, rhs int32"):
        mx.nd.ones((2,)) + mx.nd.ones((2,), dtype="int32")


def test_unknown_arguments_of_infer_shape_are_pointed_out():
    a = mx.sym.tanh(mx.sym.Variable("data"))
    with pytest.raises(ValueError, match="no argument is named 'dta', did you mean 'data'"):
        a.infer_shape(dta=(2,))


def test_simple_bind_names_what_it_cannot_infer():
    s = mx.sym.Variable("a") * 2 + mx.sym.Variable("b") * 3
    with pytest.raises(MXNetError, match=r"shapes of \['a', 'b'\] cannot be inferred"):
        s.simple_bind(mx.cpu())


def lost(*arguments):
    raise KeyError("lost")


@pytest.mark.parametrize(
    "rule, wrong, text",
    [
        ("shape", lost, "its rule failed: KeyError: 'lost'; inputs: data"),
        ("dtype", lost, "its rule failed: KeyError: 'lost'; inputs: data"),
        ("storage", lost, "its storage rule failed: KeyError: 'lost'; storage types of inputs: default"),
        ("storage", lambda p, s: None, "its storage rule failed: TypeError"),
        ("storage", lambda p, s: ["dense"], r"its storage rule returned \['dense'\]; one of default"),
        ("storage", lambda p, s: ["default"] * 2, r"its storage rule returned .* for each of 1 output"),
    ],
)
def test_a_rule_that_fails_names_its_operator(plug, rule, wrong, text):
    @op("test_ruled")
    def body(k, p, data):
        """Return the data."""
        return data

    getattr(body, rule)(wrong)
    plug("ruler", mxcore_ops=[body])
    for call in (
        lambda: mx.nd.test_ruled(mx.nd.ones(3)),
        lambda: mx.sym.test_ruled(mx.sym.var("x")).simple_bind(mx.cpu(), x=(3,), grad_req="null").forward(),
    ):
        with pytest.raises(MXNetError, match=f"operator test_ruled.*: {text}"):
            call()


@pytest.mark.parametrize("wrong", [lost, lambda F, dy: "zero"])
def test_a_gradient_rule_that_fails_is_told(plug, wrong):
    @op("test_ruled")
    def body(k, p, data):
        """Return the data."""
        return data

    body.grad(lambda F, dy: wrong(F, dy))
    plug("ruler", mxcore_ops=[body])
    with pytest.raises(
        MXNetError,
        match=r"operator test_ruled \[gradient of node 'it'\].*(lost|its rule returned 'zero' for input data)",
    ):
        mx.sym.test_ruled(mx.sym.var("x"), name="it").simple_bind(mx.cpu(), x=(3,)).forward(is_train=True)
    x = mx.nd.ones(3)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.test_ruled(x)
    with pytest.raises(
        MXNetError,
        match="operator test_ruled .gradient.*lost|rule of operator test_ruled: the gradient of input 'data' is 'zero'",
    ):
        y.backward()
