"""Tables and pictures of graphs, beside those of the real MXNet 1.9.1."""

import builtins
import json
import pathlib

import pytest

import mxcore as mx

from . import cases

GOLDEN = json.loads((pathlib.Path(__file__).resolve().parent / "golden.json").read_text())


@pytest.mark.parametrize("name", cases.TABLES)
def test_table(name):
    assert cases.table(mx, name) == GOLDEN["tables"][name]


@pytest.mark.parametrize("name", cases.PLOTS)
def test_plot(name):
    def lines(text):
        return [" ".join(line.split()) for line in text.strip().splitlines()]

    assert lines(cases.plot(mx, name)) == lines(GOLDEN["plots"][name])


def test_all_learnt_numbers_are_counted_once(capsys):
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w_weight")
    net = mx.sym.Deconvolution(mx.sym.LeakyReLU(x, act_type="prelu", name="p"), kernel=(2, 2), num_filter=3, name="d")
    net = mx.sym.Group(
        [
            net,
            mx.sym.FullyConnected(x, w, num_hidden=4, no_bias=True),
            mx.sym.FullyConnected(x, w, num_hidden=4, no_bias=True),
        ]
    )
    mx.viz.print_summary(net, {"x": (1, 2, 5, 5)})
    assert f"Total params: {2 + 2 * 3 * 4 + 4 * 50}" in capsys.readouterr().out


def test_without_shapes_what_is_known_is_shown(capsys):
    mx.viz.print_summary(cases.net(mx))
    assert "em(Embedding)" in capsys.readouterr().out


def test_graph_of_several_heads(capsys):
    x = mx.sym.Variable("x")
    mx.viz.print_summary(mx.sym.Group([mx.sym.exp(x, name="e"), mx.sym.sqrt(x, name="s")]), {"x": (2, 3)})
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines() if "(" in line][1:] == [
        "x(null)",
        "e(exp)",
        "s(sqrt)",
    ]


def test_nodes_of_one_name_are_told():
    x = mx.sym.FullyConnected(
        mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=2, name="f"), num_hidden=2, name="f"
    )
    with pytest.warns(RuntimeWarning, match="have one name.*: f, f_bias, f_weight"):
        mx.viz.plot_network(x)


def test_what_lends_its_size_has_no_arrow():
    x = mx.sym.contrib.BilinearResize2D(mx.sym.Variable("x"), mx.sym.Variable("y"), mode="like", name="r")
    assert [e[:2] for e in mx.viz.drawn_edges(x)] == [("r", "x")]


def test_edges_from_outputs_that_are_not_visible():
    graph = json.loads(mx.sym.exp(mx.sym.BatchNorm(mx.sym.Variable("x"), name="bn"), name="e").tojson())
    graph["nodes"][-1]["inputs"] = [[len(graph["nodes"]) - 2, 1, 0]]  # the mean
    net = mx.sym.load_json(json.dumps(graph))
    assert [e for e in mx.viz.drawn_edges(net, {"x": (2, 3, 4)}, {"x": "float32"}) if e[0] == "e"] == [
        ("e", "bn", "(float32)")
    ]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_dtypes_that_leave_some_open():
    net = mx.sym.Group([mx.sym.exp(mx.sym.Variable("x")), mx.sym.exp(mx.sym.Variable("y"))])
    with pytest.raises(
        mx.base.MXNetError, match=r"the dtypes given \(x=float32\) do not decide all others; the variables are x, y"
    ):
        mx.viz.drawn_edges(net, None, {"x": "float32"})


NET = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
BAD = {
    "table of a number": (lambda: mx.viz.print_summary(3), TypeError, "must be a Symbol, got int"),
    "plot of a number": (lambda: mx.viz.plot_network(3), TypeError, "must be a Symbol, got int"),
    "name": (lambda: mx.viz.print_summary(NET, {"dat": (2, 3)}), ValueError, "'dat'.*'data'"),
    "name in a plot": (lambda: mx.viz.plot_network(NET, shape={"dat": (2, 3)}), ValueError, "'dat'.*'data'"),
    "shape": (lambda: mx.viz.print_summary(NET, {"fc_bias": (3,)}), ValueError, "fc"),
    "positions": (lambda: mx.viz.print_summary(NET, positions=[0.5, 1]), ValueError, "4 numbers"),
    "attributes": (lambda: mx.viz.plot_network(NET, node_attrs=3), TypeError, "node_attrs must be a dict"),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_arguments(name):
    what, kind, text = BAD[name]
    with pytest.raises(mx.MXNetError, match=text) as e:
        what()
    assert isinstance(e.value, kind)


def test_graphviz_is_missing(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == "graphviz":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match="pip install graphviz"):
        mx.viz.plot_network(NET)
