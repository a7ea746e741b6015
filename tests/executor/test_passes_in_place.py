"""Graph passes of plugins that change nodes they are given: the user's symbol stays as it was, the pass is named."""

import pytest

import mxcore as mx
from mxcore import nd, sym
from mxcore.base import MXNetError
from mxcore.executor import CachedOp
from mxcore.plugin import GraphPass, find_op


def node(graph, name):
    return next(n for n in graph.nodes if n.name == name)


def loop(graph):
    return next(n.params.fn for n in graph.nodes if n.op is not None and n.op.name == "_foreach")


def operator(graph):
    n = node(graph, "act")
    n.op = find_op("sigmoid")
    n.params = n.op.parse({})


def parameters(graph):
    vars(node(graph, "fc").params)["num_hidden"] = 9


def more_parameters(graph):
    vars(node(graph, "fc").params)["more"] = 9


def inputs(graph):
    n = node(graph, "act")
    n.inputs = (node(graph, "x"), 0), *n.inputs[1:]


def name(graph):
    node(graph, "fc").name = "other"


def name_of_a_variable(graph):
    node(graph, "x").name = "other"


def attributes(graph):
    node(graph, "fc").attrs["__lr_mult__"] = "5"


def other_attributes(graph):
    node(graph, "x").attrs = {"__shape__": "(1, 2)"}


def inside_of_a_loop(graph):
    body = loop(graph)
    next(n for n in body.nodes if n.op is not None).attrs["__lr_mult__"] = "5"


def heads_of_a_loop(graph):
    body = loop(graph)
    body.heads[0] = body.heads[1]


CHANGES = {
    operator: "the operator and the parameters of node 'act'",
    parameters: "the parameters of node 'fc'",
    more_parameters: "the parameters of node 'fc'",
    inputs: "the inputs of node 'act'",
    name: "the name of node 'fc'",
    name_of_a_variable: "the name of node 'x'",
    attributes: "the attributes of node 'fc'",
    other_attributes: "the attributes of node 'x'",
    inside_of_a_loop: "the attributes of node",
    heads_of_a_loop: "the heads of a graph",
}


def build():
    x = sym.Variable("x")
    y = sym.Activation(sym.FullyConnected(x, num_hidden=3, name="fc"), act_type="tanh", name="act")
    outs, _ = sym.contrib.foreach(lambda d, s: (d + s, s * 2), y, sym.Variable("s"), name="loop")
    return outs


SHAPES = {"x": (2, 4), "s": (3,)}


def executor(y):
    y.simple_bind(mx.cpu(), **SHAPES).forward()


def cached(y):
    shapes, _, _ = y.infer_shape(**SHAPES)
    CachedOp(y)(*[nd.ones(s) for s in shapes])


def backend(y):
    y.optimize_for("spoiler")


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("way", [executor, cached, backend], ids=lambda f: f.__name__)
@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_a_symbol_stays_as_it_was(passes, change, way, raises):
    def spoil(graph):
        change(graph)
        if raises:
            raise KeyError("boom")
        return graph

    y = build()
    before = y.tojson(), y.infer_shape(**SHAPES), y.list_inputs(), y.attr_dict()
    passes(GraphPass("spoiler", None if way is backend else 0, spoil))
    wanted = "boom" if raises else rf"graph pass 'spoiler' of .*passing.* changed {CHANGES[change]}"
    with pytest.raises(MXNetError, match=wanted):
        way(y)
    assert (y.tojson(), y.infer_shape(**SHAPES), y.list_inputs(), y.attr_dict()) == before
    again = build()
    assert again.infer_shape(**SHAPES) == before[1]  # parsed parameters are kept for all


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_late_passes(passes, change):
    def spoil(graph):
        change(graph)
        return graph

    y = build()
    before = y.tojson()
    passes(GraphPass("spoiler", 0, spoil, late=True))
    with pytest.raises(MXNetError, match="graph pass 'spoiler' of .*passing.* changed"):
        executor(y)
    assert y.tojson() == before
