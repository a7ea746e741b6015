"""``mxcore bench``: a model on this machine, operator by operator."""

import json
import os
from pathlib import Path
from time import sleep

import numpy as np
import pytest

import mxcore as mx
from mxcore.cli import main
from mxcore.cli.bench import inside, machine, show, timing
from mxcore.executor.costs import COMPILED, costs, program_of
from mxcore.looking import hearing, named, telling
from mxcore.plugin import GraphPass, Node, Op, Piece, hookimpl, rewrite

EXPORTED = Path(__file__).parents[1] / "gluon" / "golden" / "exported"
_SMALL = (EXPORTED, "--shape", "2,2,6,6", "--repeat", 1)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Nothing here needs good figures."""
    monkeypatch.setattr(machine, "SECONDS", 0)
    monkeypatch.setattr(machine, "SIDE", {False: 64, True: 64})
    monkeypatch.setattr(machine, "SIZE", {False: 1 << 14, True: 1 << 14})
    monkeypatch.setattr(timing, "SECONDS", 0)


@pytest.fixture
def bench(capsys):
    """Run the command; returns status, output and errors."""

    def run(*args):
        status = main(["bench", *map(str, args)])
        return (status, *capsys.readouterr())

    return run


@pytest.fixture
def found(bench):
    """What the command says as JSON."""

    def run(*args):
        status, out, err = bench(*args, "--json")
        assert status == 0, err
        return json.loads(out)

    return run


def test_a_checkpoint_by_its_prefix(found):
    told = found(EXPORTED, "--shape", "data=2,2,6,6", "--repeat", 4)
    assert told["run"]["runs"] == 4 and told["mode"] == "inference" and told["parameters"] == "of the file"
    assert 0 < told["run"]["best"] <= told["run"]["median"]
    assert told["run"]["samples_per_second"] == pytest.approx(2 / told["run"]["best"])
    nodes = {n["node"]: n for n in told["nodes"]}
    conv = nodes["net_conv0_fwd"]
    assert conv["op"].startswith("Convolution") and conv["calls"] == 1 and conv["seconds"] > 0
    assert conv["flops"] == 2 * (2 * 3 * 6 * 6) * (2 * 3 * 3)
    if conv["op"] == "Convolution":  # else it is computed together with what follows
        assert conv["bytes"] == 4 * (2 * 2 * 6 * 6 + 57 + 2 * 3 * 6 * 6)  # 57 with the bias
    assert conv["reached"] == pytest.approx(
        max(conv["flops"] / told["machine"]["flops"], conv["bytes"] / told["machine"]["bytes"]) / conv["seconds"]
    )
    seconds = [n["seconds"] for n in told["nodes"]]
    assert seconds == sorted(seconds, reverse=True)
    assert sum(o["seconds"] for o in told["operators"]) == pytest.approx(sum(seconds))
    assert sum(o["calls"] for o in told["operators"]) == sum(n["calls"] for n in told["nodes"])
    assert told["memory"]["arrays"] > 191 * 4 and told["memory"]["temporary"] > 0


def test_every_pass_and_every_provider_is_left_out_in_turn(found, monkeypatch):
    monkeypatch.setenv("MXCORE_KERNEL_ORDER", "nobody")
    told = found(EXPORTED, "--shape", "2,2,6,6", "--repeat", 1, "--train")
    what = {v["what"] for v in told["variants"]}
    assert what >= {f"without pass {n}" for n in ("simplify", "mirror", "fuse", "plan")}
    owners = {o for n in told["nodes"] for o in n["by"].split(", ")} - {"", "reference", COMPILED}
    assert what >= {f"without kernels of {o}" for o in owners}
    assert all(v["ratio"] > 0 for v in told["variants"])
    assert os.environ["MXCORE_KERNEL_ORDER"] == "nobody"
    assert found(EXPORTED, "--shape", "2,2,6,6", "--repeat", 1)["variants"][0]["what"] == "without pass simplify"


def test_training_has_the_gradients(found):
    told = found(EXPORTED, "--shape", "2,2,6,6", "--train", "--repeat", 1)
    names = {o["op"]: o for o in told["operators"]}
    [conv], [back] = (
        [o for n, o in names.items() if n.startswith(s)] for s in ("Convolution", "_backward_Convolution")
    )
    assert back["flops"] == 2 * conv["flops"]
    assert told["mode"] == "training (forward, backward, update by sgd)" and names["update (sgd)"]["seconds"] > 0
    assert "update (adam)" in {o["op"] for o in found(*_SMALL, "--train", "--optimizer", "adam")["operators"]}
    assert not any("update" in o["op"] for o in found(*_SMALL)["operators"])


def test_the_rows_are_those_of_the_run(found):
    told = found("resnet18_v1", "--shape", "1,3,64,64", "--repeat", 4)
    took = sum(n["seconds"] for n in told["nodes"])
    assert 0.5 * told["watched"] < took <= 1.01 * told["watched"]
    rows = {n["node"]: n for n in told["nodes"]}
    if "without pass onednn_layers" in {v["what"] for v in told["variants"]}:
        [last] = [n for name, n in rows.items() if "stage4_conv3" in name]
        assert last["op"] == "Convolution + BatchNorm + relu" and last["reached"] > 0
        assert last["flops"] == 2 * (512 * 2 * 2) * (512 * 9) and last["shapes"][0] == [1, 512, 2, 2]
        assert {n["op"] for n in told["nodes"]} >= {inside._AROUND, "FullyConnected"}
        assert not any(n["op"].startswith("_onednn") for n in told["nodes"])
        held = [line for line in told["reports"] if "of weights in its layouts" in line]
        assert held and float(held[0].split(", ")[1].split()[0]) > 40  # 11 million of them


def test_a_network_of_the_zoo(bench, found):
    told = found("mobilenet0.25", "--batch", 2, "--shape", "1,3,32,32", "--repeat", 1)
    assert told["inputs"] == {"data": [2, 3, 32, 32]} and told["parameters"] == "random"
    status, out, _ = bench("MobileNet0_25", "--shape", "1,3,32,32", "--repeat", 1)
    assert status == 0
    for part in ("a run", "GFLOP/s", "longest nodes", "Convolution", "without pass fuse", "compute thread(s)"):
        assert part in out


def test_a_graph_without_parameters_with_a_label_and_names_that_say_nothing(found, tmp_path):
    x, w, i = mx.sym.Variable("data"), mx.sym.Variable("something"), mx.sym.Variable("ids", dtype="int32")
    y = mx.sym.FullyConnected(x, w, num_hidden=4, no_bias=True) + mx.sym.Embedding(i, input_dim=5, output_dim=4)
    mx.sym.SoftmaxOutput(y, name="softmax").save(str(tmp_path / "net-symbol.json"))
    told = found(tmp_path / "net-symbol.json", "--shape", "data=3,5", "--shape", "ids=3", "--train", "--repeat", 1)
    assert told["inputs"] == {"data": [3, 5], "ids": [3]}
    assert {n["op"] for n in told["nodes"]} >= {"FullyConnected", "Embedding"}


def test_shapes_that_the_graph_notes(found, tmp_path):
    net = mx.sym.FullyConnected(mx.sym.Variable("data", shape=(2, 6)), num_hidden=3)
    net.save(str(tmp_path / "net.json"))
    assert found(tmp_path / "net.json", "--repeat", 1)["inputs"] == {"data": [2, 6]}
    assert found(tmp_path / "net.json", "--repeat", 1, "--batch", 7)["inputs"] == {"data": [7, 6]}


def test_a_shape_that_no_graph_can_note(tmp_path, capsys):
    net = mx.sym.relu(mx.sym.Variable("data", shape=(2, 6)))
    file = tmp_path / "net-symbol.json"
    file.write_text(net.tojson().replace("(2, 6)", f"({'9' * 5000},)"))
    assert main(["bench", str(file), "--repeat", "1"]) == 1
    assert "variable 'data': attribute __shape__='(999" in capsys.readouterr().err


@pytest.mark.parametrize(
    "args, status, problem",
    [
        (["resnet19_v1"], 1, "there is no model 'resnet19_v1': neither a file resnet19_v1-symbol.json nor a network"),
        (["resnet19_v1"], 1, "did you mean 'resnet18_v1'"),
        ([EXPORTED], 1, "does not say what shape its input 'data' has; give it: --shape data="),
        ([EXPORTED, "--shape", "2,3,6,6"], 1, "cannot take data=2,3,6,6; --shape NAME=N,C,H,W gives another shape"),
        ([EXPORTED, "--shape", "dat=2,2,6,6"], 1, "no input named 'dat', did you mean 'data'"),
        ([EXPORTED, "--shape", "0,2,6,6"], 1, "all sizes have to be known"),
        ([EXPORTED, "--params", "nothing.params", "--shape", "2,2,6,6"], 1, "nothing.params"),
        ([*_SMALL, "--train", "--optimizer", "sdg"], 1, "sdg"),
        (["resnet18_v1", "--repeat", "0"], 2, "--repeat"),
        (["resnet18_v1", "--batch", "x"], 2, "--batch"),
        (["resnet18_v1", "--device", "cpu(0),cpu(1)"], 2, "one context is measured"),
        (["resnet18_v1", "--device", "npu"], 1, "npu"),
    ],
)
def test_errors_that_help(bench, capsys, args, status, problem):
    try:
        code, _, err = bench(*args)
    except SystemExit as e:  # of argparse
        code, err = e.code, capsys.readouterr().err
    assert code == status and problem in err


def test_a_variant_that_fails_is_told(monkeypatch):
    row = {"what": "without kernels of x", "how": "-", "failed": "no body"}
    told = {
        "model": "m", "device": "cpu(0)", "mode": "inference", "inputs": {"data": (1,)}, "parameters": "random",
        "run": timing.summary([2.0, 1.0, 4.0], 8), "memory": {"arrays": 5, "temporary": 2e9},
        "machine": {"flops": 1e9, "bytes": 1e9}, "operators": [], "nodes": [], "variants": [row],
        "reports": ["a line of a plugin"], "watched": 3.0,
    }  # fmt: skip
    text = "\n".join(show.lines(told))
    assert "a line of a plugin" in text and "of the 3 s that a run takes" in text
    assert "fails" in text and "no body" in text and "2 GB" in text and "8 samples" in text and "median 2 s" in text


def test_the_longer_of_both_bounds():
    rates = {"flops": 100.0, "bytes": 10.0}
    assert machine.reached(50, 1, 1, rates) == 0.5 and machine.reached(50, 8, 1, rates) == 0.8
    assert machine.reached(50, 8, 2, rates) == 0.4


class _Pieces:
    """An operator as a graph pass of a plugin makes it, which tells of its insides where it is asked."""

    def __init__(self, tells):
        self.tells = tells

    def __call__(self, graph):
        def visit(node, inputs, fact):
            if node.op.name != "tanh":
                return None
            op = Op("_made", lambda k, p, x: k.xp.tanh(x), inputs="x", grad=None)
            op.shape(lambda p, ins: [ins[0]])
            op.consists = "tanh", "tanh", "exp"
            if self.tells:
                op.pieces = self.pieces
            return Node(op, op.parse({}), inputs, node.name)

        return rewrite(graph, visit)

    def pieces(self, call):
        call()
        return [
            Piece(("tanh",), "first", "toys", 0.25),
            Piece(("exp", "exp"), "second", "others", 0.5, 8.0, 4, ((3,),)),
        ]


@pytest.mark.parametrize("tells", [True, False])
def test_pieces_of_what_a_pass_made(found, tmp_path, toys, tells):
    toys(_Pieces(tells))
    mx.sym.tanh(mx.sym.Variable("data")).save(str(tmp_path / "net.json"))
    told = found(tmp_path / "net.json", "--shape", "3", "--repeat", 2)
    rows = {n["op"]: n for n in told["nodes"]}
    if tells:
        assert rows["tanh"]["by"] == "toys" and rows["tanh"]["node"] == "first" and rows["tanh"]["seconds"] == 0.25
        assert rows["exp × 2"]["flops"] == 8 and rows["exp × 2"]["shapes"] == [[3]]
        assert rows["exp × 2"]["reached"] == pytest.approx(
            max(8 / told["machine"]["flops"], 4 / told["machine"]["bytes"]) / 0.5
        )
        assert rows[inside._AROUND]["seconds"] == 0
    else:
        assert set(rows) == {"tanh × 2 + exp"}


@pytest.mark.parametrize(
    "attribute, value, problem",
    [
        ("consists", 3, "consists must be a tuple of names, got 3"),
        ("owner", None, "owner must be the name of a plugin, got None"),
        ("nbytes", "x", "nbytes must be a number of bytes, got 'x'"),
        ("scratch", -1, "scratch must be a number of bytes, got -1"),
        ("pieces", lambda call: [call()], "pieces must give a list of Piece, got "),
        ("pieces", lambda call: (call(), [Piece(("tanh",), "n", "me", float("nan"))])[1], "pieces must give a list"),
        ("pieces", lambda call: 1 / 0, "pieces failed: ZeroDivisionError: division by zero"),
    ],
)
def test_what_an_operator_of_a_pass_says_of_itself_is_looked_at(tmp_path, toys, capsys, attribute, value, problem):
    op = Op("_of_a_pass", lambda k, p, x: k.xp.tanh(x), inputs="x", grad=None)
    setattr(op, attribute, value)
    toys(lambda graph: rewrite(graph, lambda n, ins, fact: Node(op, op.parse({}), ins, n.name)))
    net = mx.sym.tanh(mx.sym.Variable("data", shape=(3,)))
    net.save(str(tmp_path / "net.json"))
    assert main(["bench", str(tmp_path / "net.json"), "--repeat", "1"]) == 1
    assert f"operator _of_a_pass: {problem}" in " ".join(capsys.readouterr().err.split())


@pytest.fixture
def toys():
    """A plugin with one late graph pass."""
    from mxcore._core.manager import manager

    def use(fn):
        class Plugin:
            API_VERSION = 1

            @hookimpl
            def mxcore_graph_passes(self):
                return [GraphPass("pieces", 0, fn, late=True)]

        manager.register(Plugin(), "toys")

    yield use
    manager.unregister("toys")


def test_who_computes_what_a_kernel_leaves_to_another(found, tmp_path):
    mx.sym.RNN(mx.sym.Variable("data"), state_size=128, num_layers=1, mode="lstm", name="rnn").save(
        str(tmp_path / "net.json")
    )
    shapes = [a for n in ("data=16,32,64", "rnn_state=1,32,128", "rnn_state_cell=1,32,128") for a in ("--shape", n)]
    told = found(tmp_path / "net.json", *shapes, "--train", "--repeat", 2)
    by = {n["op"]: n["by"] for n in told["nodes"]}
    assert by["RNN"] == "cpu_numba"  # also where cpu_onednn is the first to be asked


def test_what_is_left_to_others_is_heard_without_what_they_leave():
    with hearing() as heard:
        inner = telling("inner", lambda: sleep(0.02))
        outer = telling("outer", inner)
        outer()
    outer()
    assert heard["inner"] >= 0.02 > heard["outer"] and sum(heard.values()) < 0.2
    fn = len
    assert telling("nobody", fn) is fn


def test_names_of_operators_together():
    a, b = "Convolution", "relu"
    assert named([a, b]) == "Convolution + relu" and named([]) == "" and named([a]) == a
    assert named([a, b, a, b, a]) == "(Convolution + relu) × 2 + Convolution"
    assert show._short("x" * 60) == "x" * (show.WIDE - 2) + " …" and show._short("abc") == "abc"


D = mx.sym.Variable("d")
#: (graph over d, shape of d, floating-point operations of its first product)
PRODUCTS = {
    "grouped": (
        mx.sym.Convolution(D, kernel=(3, 3), num_filter=6, num_group=2, no_bias=True),
        (1, 4, 5, 5),
        2 * 54 * 18,
    ),
    "transposed": (mx.sym.Deconvolution(D, kernel=(2, 2), num_filter=3, no_bias=True), (1, 4, 5, 5), 2 * 100 * 12),
    "dense": (mx.sym.FullyConnected(D, num_hidden=7, flatten=False), (2, 3, 5), 2 * 6 * 5 * 7),
    "dot": (mx.sym.dot(D, D, transpose_a=True), (3, 4), 2 * 4 * 4 * 3),
    "batch_dot": (mx.sym.batch_dot(D, D, transpose_b=True), (2, 3, 4), 2 * 2 * 3 * 3 * 4),
    "gemm2": (mx.sym.linalg.gemm2(D, D, transpose_b=True), (2, 3, 4), 2 * 2 * 3 * 3 * 4),
    "scores": (mx.sym.contrib.interleaved_matmul_selfatt_qk(D, heads=2), (5, 3, 24), 2 * 3 * 2 * 5 * 5 * 4),
    "matmul": (mx.sym.np.matmul(D.as_np_ndarray(), D.as_np_ndarray()), (4, 4), 2 * 4 * 4 * 4),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_operations_of_products(name):
    net, shape, flops = PRODUCTS[name]
    bound = net.simple_bind(mx.cpu(), grad_req="null", d=shape)
    assert sum(c.flops for c in costs(program_of(bound, False))) == flops


def test_operations_of_a_layer_of_attention_and_of_lstm():
    d, w = mx.sym.Variable("d"), mx.sym.Variable("w")
    net = mx.sym.contrib.interleaved_matmul_selfatt_valatt(d, w, heads=2)
    bound = net.simple_bind(mx.cpu(), d=(5, 3, 24), w=(6, 5, 5))
    assert [c.flops for c in costs(program_of(bound, False))] == [2 * 6 * 5 * 5 * 4]
    cell = mx.sym.RNN(d, w, mx.sym.Variable("s"), mx.sym.Variable("c"), state_size=4, num_layers=1, mode="lstm")
    bound = cell.simple_bind(mx.cpu(), d=(5, 2, 3))
    size = int(np.prod(bound.arg_dict["w"].shape))
    assert next(c.flops for c in costs(program_of(bound, False)) if c.op == "RNN") == 2 * 5 * 2 * size
