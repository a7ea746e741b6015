"""Fusion patterns: where they fit, what takes their place, and what their authors do wrong."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import symbol as S
from mxcore.base import MXNetError
from mxcore.executor import passes_off
from mxcore.patterns import fused
from mxcore.plugin import GraphPass, Pattern, fusing

X, Y = np.random.RandomState(0).randn(2, 4, 6).astype("float32")


def minus(F, m):
    """Tells the place of a sum behind a product: it subtracts."""
    return F.broadcast_sub(F.broadcast_mul(m.x, m.y), m.z)


SUM = "elemwise_add(elemwise_mul(x, y), z)"
a, b = S.Variable("a"), S.Variable("b")


def values(symbol, wrt=()):
    arrays = {n: mx.nd.array({"a": X, "b": Y}[n]) for n in symbol.list_arguments()}
    bound = symbol.bind(mx.cpu(), arrays, {n: mx.nd.zeros((4, 6)) for n in wrt} or None, "write" if wrt else "null")
    outs = [y.asnumpy() for y in bound.forward(is_train=bool(wrt))]
    if wrt:
        bound.backward([mx.nd.ones(y.shape) for y in outs])
        outs += [bound.grad_dict[n].asnumpy() for n in wrt]
    return outs


def test_what_fits_is_replaced(passes):
    passes(fusing("patterns", [Pattern(SUM, minus)]))
    np.testing.assert_allclose(values(a * b + a)[0], X * Y - X, 1e-6)
    np.testing.assert_allclose(values(S.tanh(S.tanh(a) * b + b))[0], np.tanh(np.tanh(X) * Y - Y), 1e-5)
    np.testing.assert_allclose(values((a * b + a) * b + b)[0], (X * Y - X) * Y - Y, 1e-5)
    with passes_off("patterns"):
        np.testing.assert_allclose(values(a * b + a)[0], X * Y + X, 1e-6)


def test_what_others_read_as_well_stays(passes):
    tanhs = Pattern("sin(tanh(x))", lambda F, m: F.cos(m.x))
    passes(fusing("patterns", [Pattern(SUM, minus)]), fusing("tanhs", [tanhs]))
    product = a * b
    for found, want in zip(values(S.Group([product + a, product])), (X * Y + X, X * Y)):
        np.testing.assert_allclose(found, want, 1e-6)
    np.testing.assert_allclose(values((product + a) / product)[0], (X * Y + X) / (X * Y), 1e-5)
    # The gradient of tanh reads its result.
    assert np.allclose(values(S.tanh(a) * b + b, ["a"])[0], np.tanh(X) * Y - Y, 1e-5)
    assert np.allclose(values(S.sin(S.tanh(a)))[0], np.cos(X), 1e-5)
    assert np.allclose(values(S.sin(S.tanh(a)), ["a"])[0], np.sin(np.tanh(X)), 1e-5)


def test_a_value_that_stands_twice_is_one(passes):
    passes(fusing("patterns", [Pattern("elemwise_add(elemwise_mul(x, x), x)", lambda F, m: F.negative(m.x))]))
    np.testing.assert_allclose(values(a * a + a)[0], -X)
    np.testing.assert_allclose(values(a * b + a)[0], X * Y + X, 1e-6)
    np.testing.assert_allclose(values(a * a + b)[0], X * X + Y, 1e-6)


def test_the_first_that_fits_is_taken_and_asked_before(passes):
    asked = []

    def wide(m):
        asked.append(
            (m.shape("x"), m.dtype("x"), m.trains(m.act), m.act.params.act_type, [n.op.name for n in m.readers])
        )
        return m.act.params.act_type == "relu"

    text = "(act := Activation(elemwise_add(x, y)))"
    passes(fusing("patterns", [Pattern(text, lambda F, m: m.x, wide), Pattern(text, lambda F, m: m.y)]))
    np.testing.assert_array_equal(values(S.Activation(a + b, act_type="relu"))[0], X)
    np.testing.assert_array_equal(values(S.Activation(a + b, act_type="tanh"))[0], Y)
    np.testing.assert_array_equal(values(S.negative(S.Activation(a + b, act_type="tanh")))[0], -Y)
    f4 = np.dtype("float32")
    assert asked == [
        ((4, 6), f4, False, "relu", []),
        ((4, 6), f4, False, "tanh", []),
        ((4, 6), f4, False, "tanh", ["negative"]),
    ]


def test_other_devices_and_other_contexts(passes):
    passes(
        fusing("far", [Pattern(SUM, minus)], devices=["gpu"]), fusing("here", [Pattern(SUM, minus)], devices=["cpu"])
    )
    np.testing.assert_allclose(values(a * b + a)[0], X * Y - X, 1e-6)
    with passes_off("here"):
        np.testing.assert_allclose(values(a * b + a)[0], X * Y + X, 1e-6)
    with mx.AttrScope(ctx_group="far"):
        product = a * b
    bound = (product + a).bind(
        mx.cpu(), {"a": mx.nd.array(X), "b": mx.nd.array(Y, mx.cpu(1))}, group2ctx={"far": mx.cpu(1)}
    )
    np.testing.assert_allclose(bound.forward()[0].asnumpy(), X * Y + X, 1e-6)


@pytest.mark.parametrize(
    "text, says",
    [
        ("tanh(", "is no expression"),
        ("x", "has no operator"),
        ("x + y", "'x \\+ y' is neither a name nor an operator's call"),
        ("tanh(x=1)", "'tanh\\(x=1\\)' is neither"),
        ("tanh(3)", "'3' is neither"),
        ("(t := x)", "'x' is neither"),
        ("sin(t := tanh(x), t := tanh(y))", "two are called 't'"),
        ("sin(t := tanh(x), t)", "'t' is an operator, and cannot be a value"),
        ("sin(x, x := tanh(y))", "two are called 'x'"),
        ("sin(root)", "nothing can be called 'root'"),
        ("(_t := sin(x))", "nothing can be called '_t'"),
        ("f(" * 5000 + "x" + ")" * 5000, "is no expression"),
    ],
)
def test_texts_that_are_none(text, says):
    with pytest.raises(ValueError, match=says) as told:
        Pattern(text, minus)
    assert isinstance(told.value, MXNetError)


def test_patterns_that_are_none(passes):
    with pytest.raises(TypeError, match="fusing\\('mine'\\): 'tanh\\(x\\)' is no Pattern"):
        fusing("mine", ["tanh(x)"])
    passes(
        fusing("wrong", [Pattern("tanh(x)", lambda F, m: m.nonsense)]),
        fusing("shaped", [Pattern("exp(act := relu(x))", lambda F, m: m.x if m.shape("act") else None)]),
        fusing("typed", [Pattern("log(x)", lambda F, m: m.x if m.dtype("y") else None)]),
        fusing("more", [Pattern("sin(x)", lambda F, m: 3)]),
        fusing("unknown", [Pattern("cos(cosin(x))", lambda F, m: m.x)]),
    )
    for f, says in (
        (S.tanh, "'wrong' of .* the pattern has no name 'nonsense'; its values are x"),
        (lambda x: S.exp(S.relu(x)), "'shaped' of .* the pattern has no name 'act'; its values are x"),
        (S.log, "'typed' of .* the pattern has no name 'y'; its values are x"),
        (S.sin, "'more' of .*Pattern\\('sin\\(x\\)'\\): make must return a Value, got 3"),
        (S.cos, "'unknown' of .*no operator is named 'cosin'"),
    ):
        with pytest.raises(MXNetError, match=f"graph pass {says}"):
            values(f(a))


def test_a_pass_of_its_own_may_use_them(passes):
    passes(GraphPass("own", 0, lambda graph: fused(graph, [Pattern(SUM, minus)]), late=True))
    np.testing.assert_allclose(values(a * b + a)[0], X * Y - X, 1e-6)
