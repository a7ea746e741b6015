"""Operators of somebody else's that have facets are treated by passes as stock ones are."""

import importlib.util
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import mxcore as mx
from mxcore import nd
from mxcore._core.graph import Graph
from mxcore._core.manager import manager
from mxcore.executor.compile import compile_graph
from mxcore.executor.passes.fuse import fuse
from mxcore.executor.passes.mirror import mirror
from mxcore.executor.passes.simplify import simplify
from mxcore.executor.program import infer_all
from mxcore.plugin import Bool, Enum, Float, Int, MXNetError, op

TOYS = Path(__file__).parent.parent / "toy_plugins" / "toy_facets" / "toy_facets.py"
F32 = np.dtype("float32")


@pytest.fixture(scope="module", autouse=True)
def toys():
    manager.load()
    spec = importlib.util.spec_from_file_location("toy_facets", TOYS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    manager.register(module, "toy_facets")
    yield module
    manager.unregister("toy_facets")


def graph_of(net, **shapes):
    g = Graph(net._heads)
    g.shapes, g.dtypes, g.stypes = infer_all(
        g.heads, shapes, dict.fromkeys(shapes, F32), dict.fromkeys(shapes, "default")
    )
    return g


def names(graph):
    return [n.op.name for n in graph.nodes if n.op is not None]


def run(net, passes_off, **arrays):
    with mx.executor.passes_off(*passes_off) if passes_off else nullcontext():
        ex = net.bind(mx.cpu(), {k: nd.array(v) for k, v in arrays.items()})
        return [y.asnumpy() for y in ex.forward()]


def toy(op_name, *args, **kw):
    return getattr(mx.sym, op_name)(*args, **kw)


@pytest.mark.parametrize(
    "make, shapes",
    [
        (lambda x, s: toy("toy_gate", mx.sym.tanh(x)), dict(x=(8, 5))),
        (lambda x, s: toy("toy_gate", mx.sym.tanh(x), kind="hard") + 1, dict(x=(8, 5))),
        (lambda x, s: toy("toy_rows", mx.sym.tanh(x), s), dict(x=(8, 5), s=(8,))),
        (lambda x, s: toy("toy_total", mx.sym.tanh(x), axis=(1,)), dict(x=(8, 5))),
        (lambda x, s: mx.sym.tanh(x) * toy("toy_ones", x), dict(x=(8, 5))),
    ],
)
def test_chains_take_them_in(make, shapes):
    net = make(mx.sym.Variable("x"), mx.sym.Variable("s"))
    assert names(fuse(graph_of(net, **shapes), mx.cpu().device)) == ["_fused"]
    values = {n: np.random.default_rng(0).normal(size=s).astype("float32") for n, s in shapes.items()}
    for fused, plain in zip(run(net, (), **values), run(net, ("fuse", "simplify"), **values)):
        np.testing.assert_allclose(fused, plain, rtol=2e-6, atol=1e-6)


def test_a_meaning_that_parameters_take_away_is_none():
    net = toy("toy_gate", mx.sym.tanh(mx.sym.Variable("x")), kind="none")
    assert names(fuse(graph_of(net, x=(8, 5)), mx.cpu().device)) == ["tanh", "toy_gate"]


def test_a_bias_moves_into_the_chain():
    x = mx.sym.Variable("x")
    net = mx.sym.tanh(toy("toy_dense", x, width=4, name="d"))
    device = type("All", (type(mx.cpu().device),), {"fused_biases": frozenset({"toy_dense"})})()
    shapes = dict(x=(8, 5), d_weight=(4, 5), d_bias=(4,))
    fused = fuse(graph_of(net, **shapes), device)
    assert names(fused) == ["toy_dense", "_fused"] and [
        n.params.no_bias for n in fused.nodes if n.op and n.op.name == "toy_dense"
    ] == [True]
    assert names(fuse(graph_of(net, **shapes), mx.cpu().device)) == ["toy_dense", "tanh"], "the CPU names others"


def test_identities_vanish():
    x = mx.sym.Variable("x")
    assert names(simplify(graph_of(mx.sym.exp(toy("toy_times", x)), x=(2, 3)))) == ["exp"]
    assert names(simplify(graph_of(mx.sym.exp(toy("toy_times", x, factor=2)), x=(2, 3)))) == ["toy_times", "exp"]
    assert names(simplify(graph_of(mx.sym.exp(toy("toy_trim", x)), x=(2, 1)))) == ["Reshape", "exp"]
    assert names(simplify(graph_of(mx.sym.exp(toy("toy_trim", x)), x=(2, 3)))) == ["toy_trim", "exp"]


@pytest.mark.parametrize(
    "make, left",
    [(lambda x: x * 1, 0), (lambda x: x / 1, 0), (lambda x: x**1, 0), (lambda x: x * 2, 1), (lambda x: x + 0, 1)],
)
def test_stock_identities_follow_their_number(make, left):
    assert len(names(simplify(graph_of(make(mx.sym.Variable("x")), x=(2, 3))))) == left


@pytest.mark.parametrize("recompute", [True, False])
def test_what_is_cheap_is_computed_again(recompute):
    """Between two dear nodes a cheap one is mirrored, a dear one is not."""
    x = mx.sym.Variable("x")
    middle = (
        toy("toy_gate", x, kind="none", name="m") if recompute else toy("toy_dense", x, width=5, no_bias=True, name="m")
    )
    net = mx.sym.tanh(middle, name="t")
    args = {"x": (3, 5)} | ({} if recompute else {"m_weight": (5, 5)})
    g = graph_of(mx.sym.Group([net, mx.sym.exp(net) * middle]), **args)
    g.info.update(n_first=1, contexts={})
    again = {n.name for n in mirror(g, True).nodes if n.name.endswith("_mirror")}
    assert ("m_mirror" in again) == recompute


def test_rows_of_a_loop_are_one_product(toys, monkeypatch):
    from mxcore.executor import body

    made = []
    monkeypatch.setattr(body, "Body", lambda *a, plain=body.Body: made.append(plain(*a)) or made[-1])

    def states(x, s):
        new = nd.tanh(toys.toy_dense(x, w, b, width=4) + s)
        return new, new

    rng = np.random.default_rng(1)
    w, b, xs = nd.array(rng.normal(size=(4, 3))), nd.array(rng.normal(size=(4,))), nd.array(rng.normal(size=(5, 2, 3)))
    net = mx.sym.contrib.foreach(
        lambda x, s: (lambda n: (n, n))(
            mx.sym.tanh(toy("toy_dense", x, mx.sym.Variable("w"), mx.sym.Variable("b"), width=4) + s)
        ),
        mx.sym.Variable("xs"),
        mx.sym.Variable("s"),
    )[0]
    ex = net.bind(
        mx.cpu(),
        dict(xs=xs, s=nd.zeros((2, 4)), w=w, b=b),
        args_grad={n: nd.zeros(v.shape) for n, v in dict(w=w, b=b).items()},
        grad_req={"w": "write", "b": "write", "xs": "null", "s": "null"},
    )
    ex.forward(is_train=True)
    ex.backward(nd.ones((5, 2, 4)))
    assert any(made_body.late for made_body in made), "gradients of the weight wait for the last step"
    for v in (w, b):
        v.attach_grad()
    with mx.autograd.record():
        s, outs = nd.zeros((2, 4)), []
        for t in range(5):
            s, _ = states(xs[t], s)
            outs.append(s)
        total = nd.stack(*outs)
    total.backward(nd.ones((5, 2, 4)))
    np.testing.assert_allclose(ex.grad_dict["w"].asnumpy(), w.grad.asnumpy(), rtol=1e-5)
    np.testing.assert_allclose(ex.grad_dict["b"].asnumpy(), b.grad.asnumpy(), rtol=1e-5)


def told(net, grads, **arrays):
    """What a monitor of everything is told."""
    ex = net.bind(
        mx.cpu(),
        {k: nd.array(v) for k, v in arrays.items()},
        args_grad={n: nd.zeros(np.shape(arrays[n])) for n in grads},
    )
    seen = []
    ex.set_monitor_callback(lambda name, value: seen.append(name), monitor_all=True)
    ex.forward(is_train=True)
    ex.backward([nd.ones(y.shape) for y in ex.outputs])
    return seen


def test_values_have_the_names_that_they_ask_for():
    x = mx.sym.Variable("x")
    pair = toy("toy_pair", x, name="p")
    assert pair.list_outputs() == ["p_output0", "p_output1"]
    seen = told(mx.sym.Group([pair[0], pair[1]]), ["x"], x=[1.0, 2.0])
    assert "p_data" in seen and "p_backward_data" in seen
    seen = told(
        toy("toy_choice", mx.sym.Variable("f"), x, mx.sym.Variable("b"), name="c"),
        ["x", "b"],
        f=[1.0, 0.0],
        x=[1.0, 2.0],
        b=[3.0, 4.0],
    )
    assert {"c_backward_output0", "c_backward_output1"} <= {*seen} and "c_backward_output2" not in seen
    from mxcore.symbol.outputs import count
    from mxcore.symbol.outputs import told as name_told

    node = pair._heads[0][0]
    assert count(node) == 3 and name_told(node, 1) == "1"
    dense = toy("toy_dense", x, width=2, name="d")._heads[0][0]
    assert count(dense) == 1 and name_told(dense, 0) == "output"


@pytest.mark.parametrize(
    "options, problem",
    [
        (dict(expr="datum + 1"), "operator bad: expr: .*unknown name 'datum'"),
        (dict(expr="foo(data)"), "unknown function 'foo'"),
        (dict(expr=lambda p: "datum"), "operator bad: expr: .*unknown name 'datum'"),
        (dict(expr=lambda p: p.nothing), "operator bad: expr: .*nothing"),
        (dict(expr=lambda p: 3), "operator bad: expr: .*a text is needed, got 3"),
        (dict(identity="all"), "operator bad: identity: it must be one of True, False, 'elements'"),
        (dict(identity=lambda p: "all"), "it must be one of True"),
        (dict(recompute="yes"), "operator bad: recompute"),
        (dict(rowwise=3.5), "operator bad: rowwise"),
        (dict(reduces="sum"), "operator bad: reduces: it must be a pair"),
        (dict(reduces=("product", len)), "sum, mean, max, min"),
        (dict(reduces=("sum", lambda a, b, c, d: ())), r"a function \(p, data, out\)"),
        (dict(aligned=[1]), r"a function \(p, ins, out\)"),
        (dict(numbers=3), "a dict of names"),
        (dict(numbers={"factor": len}), "'factor' is an input or a parameter"),
        (dict(bias=lambda p, ndim: 1), "needs an input 'bias' and a parameter 'no_bias'"),
        (dict(backward_of="bad"), "the name of another operator"),
        (dict(labels="inputs outs"), "'outs' is none of inputs, gradients, outputs, numbers, nor -<input>"),
        (dict(mxnet_outputs=0), "a number above 0"),
        (dict(together="_multi_update"), "with a place %s for 'mp_'"),
        (dict(identiti=True), "neither an option nor a parameter declaration, did you mean 'identity'"),
        (dict(weighty=2.0), "weighty=2.0 is neither an option nor a parameter declaration, such as weighty=Float"),
        (dict(flops=3), r"operator bad: flops: it must be a function \(p, ins, outs\) -> number, or True"),
        (dict(helpers=[len]), "operator bad: helpers: it must be a dict of names to functions"),
        (dict(helpers={"layout": 3}), "a dict of names to functions"),
    ],
)
def test_wrong_facets_are_refused_at_declaration(options, problem):
    with pytest.raises(MXNetError, match=problem):
        op("bad", factor=Float(1.0), **options)(lambda k, p, data: data)


@pytest.mark.parametrize(
    "options, problem",
    [
        (dict(expr="data", aligned=lambda p, ins, out: 1 / 0), "operator bad_later: aligned failed: ZeroDivisionError"),
        (
            dict(expr="data * n", numbers={"n": lambda p, ins, out: ins[7]}),
            "operator bad_later: numbers failed: IndexError",
        ),
        (
            dict(expr="data", reduces=("sum", lambda p, data, out: p.nothing)),
            "operator bad_later: reduces failed: AttributeError",
        ),
        (dict(identity=lambda p: {1.0: True}[p.factor]), "operator bad_later: identity failed: KeyError"),
        (
            dict(expr=lambda p: "data" if p.factor == 1 else "datum"),
            "operator bad_later: expr failed: .*unknown name 'datum'",
        ),
    ],
)
def test_what_fails_later_names_operator_and_facet(options, problem):
    declared = op("bad_later", factor=Float(1.0), **options)(lambda k, p, data: data)
    x = mx.sym.Variable("x")
    net = mx.sym.Symbol(
        [mx.sym.tanh(mx.symbol.symbol.compose("bad_later", [mx.sym.exp(x)], {"factor": 2.0}, declared))._heads[0]]
    )
    with pytest.raises(MXNetError, match=problem):
        compile_graph(net._heads, ({"x": (64, 64)}, {"x": F32}, {"x": "default"}), mx.cpu(), False)


def test_a_parameter_may_have_the_name_of_a_facet():
    declared = op("fine", bias=Float(0.5), kind=Enum("a b", "a"), rowwise=Bool(False))(lambda k, p, data: data)
    assert [*declared.params] == ["bias", "kind", "rowwise"] and not declared.facets
    with pytest.raises(MXNetError, match="no option or facet is named 'identiti', did you mean 'identity'"):
        declared.attach(identiti=True)


def test_graphs_are_compiled_with_all_of_it():
    x = mx.sym.Variable("x")
    net = toy("toy_times", toy("toy_gate", x), factor=1)
    program = compile_graph(net._heads, ({"x": (64, 64)}, {"x": F32}, {"x": "default"}), mx.cpu(), False).program
    assert len(program.steps) == 1


def test_helpers_are_found_by_their_names():
    shared = op("with_helpers", helpers={"twice": lambda x: 2 * x})(lambda k, p, data: data)
    assert shared.facet("helpers").twice(4) == 8 and shared.facet("identity", shared.plain) is None


def test_every_facet_is_documented():
    from mxcore import facets
    from mxcore._core.op import FACETS
    from tests.house.files import ROOT

    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    for name in FACETS:
        assert f"\n{name} : " in facets.__doc__ and f"`{name}`" in op.__doc__ and f"`{name}`" in page, name


def test_texts_with_numbers_in_them_do_not_pile_up():
    many = op("many", factor=Float(1.0), expr=lambda p: f"data * {p.factor!r}")(lambda k, p, data: data * p.factor)
    for i in range(2000):
        assert many.facet("expr", many.parse({"factor": float(i)})).text == f"data * {float(i)!r}"
    assert len(many.facets["expr"].known) <= 256


@pytest.mark.parametrize("make", [lambda x: x * 1, lambda x: x / 1, lambda x: x**1])
def test_what_vanishes_still_gives_an_array_of_its_own(make):
    x = nd.array([1.0, -0.0, np.nan])
    ex = make(mx.sym.Variable("x")).bind(mx.cpu(), {"x": x}, args_grad={"x": nd.zeros((3,))})
    out = ex.forward(is_train=True)[0]
    assert np.signbit(out.asnumpy()).tolist()[:2] == [False, True] and np.isnan(out.asnumpy()[2])
    out[:] = 7
    ex.backward(nd.array([2.0, 3.0, 4.0]))
    assert x.asnumpy()[0] == 1 and ex.grad_dict["x"].asnumpy()[:2].tolist() == [2, 3]

    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return make(x)

    net = Net()
    net.hybridize()
    y = net(x)
    y[:] = 9
    assert x.asnumpy()[0] == 1


@pytest.mark.parametrize(
    "facets, ask, problem",
    [
        ({"flops": lambda p, ins, outs: "x"}, "flops", "it must give a number, 0 or more, got 'x'"),
        ({"flops": lambda p, ins, outs: None}, "flops", "it must give a number, 0 or more, got None"),
        ({"flops": lambda p, ins, outs: float("nan")}, "flops", "it must give a number, 0 or more, got nan"),
        ({"flops": lambda p, ins, outs: 10**400}, "flops", "it must give a number, 0 or more, got 1000"),
        ({"flops": lambda p, ins, outs: exit(3)}, "flops", "it ended with SystemExit: 3"),
        ({"mxnet_outputs": lambda p: p.n or "x"}, "mxnet_outputs", "it must give a number above 0, got 'x'"),
        ({"written_as": lambda p: ["x"]}, "written_as", "it must give a list of (name, dict of parameters), or None"),
        ({"written_as": lambda p: "exp"}, "written_as", "it must give a list of (name, dict of parameters), or None"),
    ],
)
def test_what_a_facet_answers_is_looked_at(facets, ask, problem):
    @op("_answers", params={"n": Int(1)}, grad=None, **facets)
    def answers(k, p, x):
        """Itself."""
        return x

    given = [answers.parse({"n": 0}), *[[(2,)], [(2,)]][: 2 if ask == "flops" else 0]]
    with pytest.raises(MXNetError) as told:
        answers.facet(ask, *given)
    assert str(told.value).startswith(f"operator _answers: {ask} failed: ") and problem in str(told.value)
