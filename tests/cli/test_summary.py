"""``mxcore summary``: the table of a saved model."""

import re
from pathlib import Path

import pytest

import mxcore as mx
from mxcore import visualization as viz
from mxcore.cli import main, summary
from mxcore.gluon import nn

EXPORTED = Path(__file__).parents[1] / "gluon" / "golden"


@pytest.fixture
def show(capsys):
    """Run the command; returns status, the lines of the table and errors."""

    def run(*args):
        status = main(["summary", *map(str, args)])
        out, err = capsys.readouterr()
        return status, out.splitlines(), err

    return run


@pytest.fixture(scope="module")
def net():
    """A graph with a shared parameter, two inputs of one layer, and a label."""
    x, w = mx.sym.var("data"), mx.sym.var("w_weight")
    a = mx.sym.FullyConnected(x, w, num_hidden=4, name="a")
    b = mx.sym.FullyConnected(mx.sym.relu(a, name="r"), w, num_hidden=4, no_bias=True, name="b")
    return mx.sym.SoftmaxOutput(mx.sym.BatchNorm(a + b, name="bn"), name="softmax")


def cells(line):
    return re.split(r"\s{2,}", line.strip())


def test_the_model_of_a_file_written_by_mxnet(show):
    status, lines, _ = show(EXPORTED / "exported-symbol.json", "--shape", "data=2,2,6,6")
    assert status == 0
    assert cells(lines[1]) == ["Layer (type)", "Output Shape", "Param #", "Previous Layer"]
    rows = [cells(line) for line in lines[3:12]]
    # As MXNet's print_summary, except that it counts half of BatchNorm's arrays and takes net_dense0 for 16.
    assert rows == [
        ["data(null)", "(2, 2, 6, 6)", "0"],
        ["net_conv0_fwd(Convolution)", "(2, 3, 6, 6)", "57", "data"],
        ["net_conv0_relu_fwd(Activation)", "(2, 3, 6, 6)", "0", "net_conv0_fwd"],
        ["net_batchnorm0_fwd(BatchNorm)", "(2, 3, 6, 6)", "12", "net_conv0_relu_fwd"],
        ["net_pool0_fwd(Pooling)", "(2, 3, 3, 3)", "0", "net_batchnorm0_fwd"],
        ["net_dense0_fwd(FullyConnected)", "(2, 4)", "112", "net_pool0_fwd"],
        ["net_dense0_relu_fwd(Activation)", "(2, 4)", "0", "net_dense0_fwd"],
        ["net_dropout0_fwd(Dropout)", "(2, 4)", "0", "net_dense0_relu_fwd"],
        ["net_dense1_fwd(FullyConnected)", "(2, 2)", "10", "net_dropout0_fwd"],
    ]
    assert lines[13:16] == ["Total params: 191", "  learnt: 185", "  auxiliary states: 6"]


def test_without_shapes(show):
    status, lines, _ = show(EXPORTED / "exported-symbol.json")
    assert status == 0
    assert cells(lines[4]) == ["net_conv0_fwd(Convolution)", "?", "?", "data"]
    assert any("not counted: 4 layer(s)" in line for line in lines)
    status, lines, _ = show(EXPORTED / "exported-symbol.json", "--params", EXPORTED / "exported-0002.params")
    assert cells(lines[4]) == ["net_conv0_fwd(Convolution)", "?", "57", "data"]
    assert lines[13] == "Total params: 191"


def test_shapes_in_the_graph_are_used():
    x = mx.sym.var("data", shape=(0, 6))
    (first, second) = viz.layers(mx.sym.FullyConnected(x, num_hidden=2, name="fc"))
    assert first.shapes == [(0, 6)] and (second.params, second.shapes) == (14, [(0, 2)])
    assert "(?, 2)" in "\n".join(summary.table([first, second]))


def test_shared_parameters_count_once_and_inputs_are_told_apart(net):
    found = {x.name: x for x in viz.layers(net, {"data": (2, 4)})}
    assert viz.inputs_of(net) == ["data", "softmax_label"]
    assert (found["a"].params, found["b"].params, found["bn"].params, found["bn"].states) == (20, 0, 8, 8)
    assert found["softmax"].before == ["bn", "softmax_label"] and found["softmax_label"].shapes == [(2,)]
    (plus,) = [x for x in found.values() if x.kind == "elemwise_add"]
    assert plus.before == ["a", "b"]
    lines = summary.table(list(found.values()))
    at = next(i for i, line in enumerate(lines) if "elemwise_add" in line)
    assert cells(lines[at])[-1] == "a" and cells(lines[at + 1]) == ["b"]


def test_parameters_of_gluon_are_no_inputs():
    class Scale(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.s = self.params.get("s", shape=(3,))

        def hybrid_forward(self, F, x, s):
            return F.broadcast_mul(x, s)

    net = nn.HybridSequential()
    net.add(Scale())
    (x, scale) = viz.layers(net(mx.sym.var("data")))
    assert (x.name, scale.params, scale.before) == ("data", 3, ["data"])


def test_several_outputs():
    found = viz.layers(mx.sym.split(mx.sym.var("x"), num_outputs=2, name="s"), {"x": (2, 4)})
    assert found[1].shapes == [(2, 2), (2, 2)]


@pytest.mark.parametrize(
    "args, words",
    [
        (["nowhere-symbol.json"], ["nowhere-symbol.json", "No such file"]),
        ([EXPORTED / "exported-0002.params"], ["exported-0002.params", "no JSON"]),
        ([EXPORTED / "exported-symbol.json", "--shape", "dat=1,3,8,8"], ["'dat'", "did you mean 'data'"]),
        ([EXPORTED / "exported-symbol.json", "--shape", "1,3"], ["net_conv0_fwd", "data (1, 3)"]),
        ([EXPORTED / "exported-symbol.json", "--params", EXPORTED / "full.params"], []),
    ],
)
def test_bad_input(show, args, words):
    status, lines, err = show(*args)
    if words:
        assert status == 1 and not lines and all(w in err for w in words), err
    else:  # the same names, without kinds: fine
        assert status == 0 and "Total params: 191" in lines


def test_parameters_of_another_model(show, tmp_path):
    mx.nd.save(str(tmp_path / "p"), {"arg:other_weight": mx.nd.ones((1,))})
    status, _, err = show(EXPORTED / "exported-symbol.json", "--params", tmp_path / "p")
    assert status == 1 and "none of the parameters" in err and "other_weight" in err
    mx.nd.save(str(tmp_path / "p"), [mx.nd.ones((1,))])
    status, _, err = show(EXPORTED / "exported-symbol.json", "--params", tmp_path / "p")
    assert status == 1 and "without names" in err


def test_bad_shapes_are_explained(show, capsys):
    with pytest.raises(SystemExit) as e:
        show(EXPORTED / "exported-symbol.json", "--shape", "data=1,a")
    assert e.value.code == 2 and "'data=1,a' is no shape" in capsys.readouterr().err
