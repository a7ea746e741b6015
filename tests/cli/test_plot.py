"""``mxcore plot``: pictures of graphs."""

import shutil
import xml.etree.ElementTree as ET

import pytest

import mxcore as mx
from mxcore.cli import main
from mxcore.cli.plot.layout import layered

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)  # with graphviz's program the picture is graphviz's
    x = mx.sym.Activation(
        mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=10, name="fc1"), act_type="relu", name="act<1>"
    )
    y = mx.sym.FullyConnected(x, num_hidden=10, name="fc2")
    mx.sym.SoftmaxOutput(x + y, name="softmax").save(f"{tmp_path}/m-symbol.json")
    monkeypatch.chdir(tmp_path)
    return "m-symbol.json"


def test_svg(model, tmp_path, capsys):
    assert main(["plot", model, "-o", "net.svg", "--shape", "data=4,7"]) == 0
    root = ET.parse(tmp_path / "net.svg").getroot()
    texts = [t.text for t in root.iter(SVG + "text")]
    assert {"data", "FullyConnected", "10", "relu", "softmax", "softmax_label", "7"} <= set(texts)
    names = [g.find(SVG + "title").text for g in root.iter(SVG + "g")]
    assert "act<1>" in names and not any("weight" in n for n in names)
    assert len(list(root.iter(SVG + "ellipse"))) == 2 and root.find(SVG + "title").text == "net"
    assert "7 nodes and 7 arrows in net.svg" in capsys.readouterr().out
    boxes = [(float(r.get("x")), float(r.get("y"))) for g in root.iter(SVG + "g") for r in g.iter(SVG + "rect")]
    assert len(set(boxes)) == len(boxes) and min(min(b) for b in boxes) >= 0


def test_weights_are_drawn_on_request(model, tmp_path, capsys):
    assert main(["plot", model, "-o", "net.svg", "--weights"]) == 0
    root = ET.parse(tmp_path / "net.svg").getroot()
    names = [g.find(SVG + "title").text for g in root.iter(SVG + "g")]
    assert {"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"} <= set(names) and len(names) == 11
    assert len([p for p in root.iter(SVG + "path") if p.get("marker-end")]) == 11
    assert "11 nodes and 11 arrows" in capsys.readouterr().out


def test_nodes_of_one_name_stay_apart(model, tmp_path):
    x = mx.sym.FullyConnected(
        mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, name="f"), num_hidden=3, name="f"
    )
    x.save(f"{tmp_path}/twice-symbol.json")
    assert main(["plot", "twice-symbol.json", "-o", "twice.svg"]) == 0
    names = [g.find(SVG + "title").text for g in ET.parse(tmp_path / "twice.svg").getroot().iter(SVG + "g")]
    assert sorted(names) == ["f", "f (2)", "x"]


def test_graphviz_text(model, tmp_path):
    assert main(["plot", model, "-o", "net.dot", "--title", "mine", "--weights"]) == 0
    text = (tmp_path / "net.dot").read_text()
    assert text.startswith("digraph mine") and "fc1 -> fc1_weight" in text


def test_other_formats_need_the_program_dot(model, capsys):
    assert main(["plot", model, "-o", "net.pdf"]) == 1
    assert "needs the program dot" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz's program dot is not installed")
def test_with_the_program_dot(model, tmp_path, monkeypatch):
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert main(["plot", model, "-o", "net.png"]) == 0
    assert (tmp_path / "net.png").read_bytes().startswith(b"\x89PNG")


def test_wrong_arguments(model, capsys):
    assert main(["plot", "nothing.json"]) == 1 and "nothing.json" in capsys.readouterr().err
    assert main(["plot", model, "--shape", "dat=1,2"]) == 1 and "did you mean 'data'" in capsys.readouterr().err
    assert main(["plot", model, "-o", "nowhere/x.svg"]) == 1 and "does not exist" in capsys.readouterr().err


def test_layers_go_up_and_inputs_stand_below_their_users():
    edges = [("b", "a"), ("c", "b"), ("d", "c"), ("d", "label")]
    assert layered(["a", "b", "c", "label", "d"], edges) == [["a"], ["b"], ["c", "label"], ["d"]]
    assert layered([], []) == [] and layered(["a"], [("x", "y")]) == [["a"]]
    names = [f"{k}{i}" for k in "xy" for i in range(4)]
    crossed = layered(names, [(f"y{i}", f"x{3 - i}") for i in range(4)])
    assert [n[1] for n in crossed[1]] == [str(3 - int(n[1])) for n in crossed[0]]
