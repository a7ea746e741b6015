"""optimize_for: graph passes of plugins by name."""

import contextlib
import sys

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore.plugin import Graph, GraphF, GraphPass, Value, rewrite
from mxcore.rewriting import pass_named, run_pass

S = mx.sym


def without(name):
    """A pass that takes operators out of the heads."""
    return lambda g: Graph([n.inputs[0] if n.op is not None and n.op.name == name else (n, i) for n, i in g.heads])


def test_a_pass_is_run_by_its_name(a, passes):
    passes(GraphPass("blunt", 100, without("tanh")), GraphPass("other", 50, lambda g: 1 / 0))
    s = S.tanh(a * 2, name="t")
    assert (
        s.optimize_for("blunt").list_outputs() == ["_mulscalar0_output"] == s.get_backend_symbol("blunt").list_outputs()
    )
    assert s.list_outputs() == ["t_output"]


def test_a_pass_sees_shapes_parameters_and_options(fc, passes):
    seen = {}

    def look(g):
        seen.update(
            g.info,
            shapes={n.name: g.shapes.get((n, 0)) for n in g.nodes},
            dtypes={n.name: g.dtypes.get((n, 0)) for n in g.nodes},
        )
        return g

    passes(GraphPass("look", 100, look))
    args = {"fc_weight": mx.nd.ones((3, 5))}
    fc.optimize_for(
        "look", args=args, ctx=mx.cpu(), shape_dict={"data": (2, 0)}, type_dict={"data": "float32"}, level=3
    )
    assert seen["shapes"] == {"data": (2, 5), "fc_weight": (3, 5), "fc_bias": (3,), "fc": (2, 3)}
    assert set(seen["dtypes"].values()) == {np.dtype("float32")}
    assert seen["args"] is args and seen["ctx"] == mx.cpu() and seen["options"] == {"level": 3}
    fc.optimize_for("look", args=[None, mx.nd.ones((3, 7)), None])
    assert seen["shapes"]["fc_weight"] == (3, 7) and seen["shapes"]["data"] is None
    fc.optimize_for("look", args=args, skip_infer=True)
    assert set(seen["shapes"].values()) == {None}


@pytest.mark.parametrize(
    "fn, kind, text",
    [
        (lambda g: 1 / 0, RuntimeError, "graph pass 'bad' of passing failed: ZeroDivisionError"),
        (lambda g: sys.exit(3), RuntimeError, "graph pass 'bad' of passing failed: it ended with SystemExit: 3"),
        (lambda g: None, TypeError, "must return a Graph with 1 heads, got None"),
        (lambda g: Graph([]), TypeError, "must return a Graph with 1 heads"),
    ],
)
def test_a_bad_pass_is_named(a, passes, fn, kind, text):
    passes(GraphPass("bad", 100, fn))
    with pytest.raises(kind, match=text):
        a.optimize_for("bad")


@pytest.mark.parametrize("heads", [lambda h: h[::-1], lambda h: h[:1], lambda h: [*h, h[0]]])
def test_a_backend_leaves_the_outputs_where_they_are(passes, heads):
    passes(GraphPass("turned", None, lambda g: Graph(heads(g.heads))))
    x = mx.sym.Variable("x")
    both = mx.sym.Group([mx.sym.tanh(x, name="t"), mx.sym.sigmoid(x, name="s")])
    with pytest.raises(
        MXNetError, match="graph pass 'turned' of passing (changed the order of|must return a Graph with 2)"
    ):
        both.optimize_for("turned")

    class Both(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.tanh(x), F.sigmoid(x)

    net = Both()
    net.hybridize(backend="turned")
    with pytest.raises(
        MXNetError, match="graph pass 'turned' of passing (changed the order of|must return a Graph with 2)"
    ):
        net(mx.nd.ones((2,)))


def test_an_unknown_backend_lists_those_there_are(a, passes):
    with pytest.raises(MXNetError, match="no graph pass is named 'nope'; registered: none"):
        a.optimize_for("nope")
    passes(GraphPass("one", 100, lambda g: g), GraphPass("two", 200, lambda g: g))
    with pytest.raises(MXNetError, match="no graph pass is named 'on', did you mean 'one'.; registered: one, two"):
        a.get_backend_symbol("on")


def replaced(make):
    """A pass that puts the entries that `make` gives, of F and the input, in the place of tanh."""

    def visit(node, inputs, fact):
        if node.op.name != "tanh":
            return None
        F = GraphF(node.name)
        return make(F, Value(inputs[0], F))

    return GraphPass("other", None, lambda g: rewrite(g, visit))


@pytest.mark.parametrize(
    "make, text",
    [
        (
            lambda F, x: [F.sum(x, axis=(1,)).entry],
            r"changed the shape of output 0 of node 'm' from \(2, 3\) to \(2,\)",
        ),
        (lambda F, x: [F.cast(x, dtype="float64").entry], "changed the dtype of output 0 .* from float32 to float64"),
        (
            lambda F, x: [F.sum(x, axis=(1,)).entry],
            r"left a node whose inputs do not fit: operator elemwise_add of node 'm': inconsistent shapes",
        ),
        (
            lambda F, x: [F.cast(x, dtype="float64").entry],
            "left a node whose inputs do not fit: operator elemwise_add of node 'm': inconsistent dtypes",
        ),
        (lambda F, x: [], r"in the place of node 't' \(tanh\), which has 1 output\(s\), 0 entries were given"),
        (lambda F, x: [x.entry, x.entry], "2 entries were given; one for each output is needed"),
    ],
)
def test_a_pass_keeps_what_users_see(a, passes, make, text):
    found = replaced(make)
    passes(found)
    t = S.tanh(a, name="t")
    s = S.elemwise_add(t, a, name="m") if "do not fit" in text else S.sqrt(t, name="m")
    x = mx.nd.ones((2, 3))
    with pytest.raises(ValueError, match=f"graph pass 'other' of .*{text}"):
        s.optimize_for("other", args={"a": x})
    found.order = 1
    with pytest.raises(ValueError, match=f"graph pass 'other' of .*{text}"):
        s.bind(mx.cpu(), {"a": x})
    net = mx.gluon.SymbolBlock(s, [a])
    net.hybridize()
    with pytest.raises(ValueError, match=f"graph pass 'other' of .*{text}"):
        net(x)


@pytest.mark.parametrize("by", ["environment", "block"])
def test_a_pass_that_is_switched_off_changes_nothing_where_it_is_asked_for(a, passes, monkeypatch, by):
    passes(GraphPass("gone", None, lambda g: 1 / 0))
    if by == "environment":
        monkeypatch.setenv("MXCORE_DISABLE_PASSES", "gone")
    net = mx.gluon.nn.HybridLambda("tanh")
    net.hybridize(backend="gone")
    x = mx.nd.array([0.5])
    with mx.executor.passes_off("gone") if by == "block" else contextlib.nullcontext():
        assert S.tanh(a, name="t").optimize_for("gone").list_outputs() == ["t_output"]
        np.testing.assert_array_equal(net(x).asnumpy(), x.tanh().asnumpy())


def test_a_graph_that_never_fitted_is_its_users_affair(passes):
    found = replaced(lambda F, x: [F.sigmoid(x).entry])
    found.order = 1
    passes(found)
    with pytest.raises(ValueError, match="operator elemwise_add of node 'm'") as e:
        S.elemwise_add(S.tanh(S.var("a")), S.var("b"), name="m").bind(
            mx.cpu(), {"a": mx.nd.ones((2,)), "b": mx.nd.ones((3,))}
        )
    assert "graph pass" not in str(e.value)


def test_a_pass_whose_graph_does_not_fit_shapes_that_come_later_is_named(a, passes):
    passes(replaced(lambda F, x: [F.sum(x, axis=(1,)).entry]))
    s = S.elemwise_add(S.tanh(a, name="t"), a, name="m").optimize_for("other")
    for bind in (lambda: s.bind(mx.cpu(), {"a": mx.nd.ones((2, 3))}), lambda: s.simple_bind(mx.cpu(), a=(2, 3))):
        with pytest.raises(
            ValueError, match="operator elemwise_add of node 'm': .*; graph pass 'other' of .* made this"
        ):
            bind()


def test_a_pass_whose_plugin_goes_meanwhile_changes_nothing():
    """Another thread has asked for it before."""
    graph = Graph(S.tanh(S.var("a"))._heads)
    assert run_pass("gone", graph) is graph
    assert pass_named("gone") == "graph pass 'gone' of a plugin that is gone"
