"""Symbols in files: round trips, mixed precision, and files that are no good."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore.base import MXNetError

S = mx.sym


def graph(**changes):
    """A sound file, with changes."""
    return {
        "nodes": [{"op": "null", "name": "data", "inputs": []}, {"op": "relu", "name": "bent", "inputs": [[0, 0, 0]]}],
        "arg_nodes": [0],
        "node_row_ptr": [0, 1, 2],
        "heads": [[1, 0, 0]],
        "attrs": {"mxnet_version": ["int", 10901]},
        **changes,
    }


def second(**changes):
    """The same with changes in its second node."""
    found = graph()
    found["nodes"][1] = {k: v for k, v in {**found["nodes"][1], **changes}.items() if v is not ...}
    return found


def test_the_sound_file_is_read():
    assert S.load_json(json.dumps(graph())).list_outputs() == ["bent_output"]
    assert S.fromjson(json.dumps(second(attrs={"__lr_mult__": "2"}, extra=1))).attr("lr_mult") == "2"


@pytest.mark.parametrize(
    "content, text",
    [
        ("{", "is no JSON: Expecting"),
        ("[1]", "is no graph: expected an object, got list"),
        ("{}", "it has no 'nodes'"),
        (graph(nodes={}), "no list is its 'nodes'"),
        (graph(heads=3), "no list is its 'heads'"),
        (graph(nodes=[3]), "node 0: a node is an object, got 3"),
        (graph(heads=[]), "heads is empty"),
        (second(name=...), "node 1: it has no 'name'"),
        (second(name=7), "node 1: 'name' must be a string, got 7"),
        (second(op=...), "node 1 'bent': it has no 'op'"),
        (second(op="rleu"), "node 1 'bent': no operator is named 'rleu', did you mean 'relu'.*plugin"),
        (second(inputs=3), "'inputs' must be a list, got 3"),
        (
            second(inputs=[[1, 0, 0]]),
            r"node 1 'bent': input \[1, 0, 0\] points to node 1, which is not among the 1 nodes before it.*cycle",
        ),
        (second(inputs=[[9, 0, 0]]), "points to node 9"),
        (second(inputs=[[-1, 0, 0]]), "points to node -1"),
        (second(inputs=[["0", 0]]), r"input \['0', 0\] must be a list"),
        (second(inputs=[[0, 1, 0]]), "asks for output 1 of 'data', which has 1"),
        (second(inputs=[0]), "input 0 must be a list"),
        (
            second(inputs=[[0, 0, 0]] * 2),
            r"operator relu takes 1 inputs \(data\) with these parameters, the file gives 2",
        ),
        (second(attrs=[1]), r"'attrs' must be an object of strings, got \[1\]"),
        (second(attrs={"x": {}}), "'x' must be a string"),
        (second(op="FullyConnected", attrs={}), "node 1 'bent': operator FullyConnected needs parameter 'num_hidden'"),
        (second(op="FullyConnected", attrs={"num_hidden": "many"}), "node 1 'bent': .*parameter 'num_hidden'"),
        (
            second(op="BatchNorm", inputs=[[0, 0, 0]], subgraphs=[graph()]),
            "operator BatchNorm holds 0 sub-graphs, the file gives 1",
        ),
        (second(op="null"), "a variable has no inputs"),
        (graph(heads=[[2, 0, 0]]), r"heads: \[2, 0, 0\] points to node 2"),
        (graph(heads=[[1, 1, 0]]), "heads: .*asks for output 1 of 'bent'"),
        (graph(arg_nodes=True), "'arg_nodes' must be a list of numbers of nodes, got True"),
        (graph(arg_nodes=[10**30]), "arg_nodes lists 1000"),
        (second(subgraphs=True), "'subgraphs' must be a list of graphs, got True"),
        (graph(heads=[[10**30, 0, 0]]), "points to node 1000"),
        (second(op="sum", attrs={"axis": "-" * 300000}), "parameter 'axis' must be a tuple of ints"),
        (second(op="sum", attrs={"axis": "(" * 300}), "parameter 'axis'"),
        (second(op="clip", attrs={"a_min": "1" + "0" * 400, "a_max": "1"}), "parameter 'a_min'"),
        ("[" * 100000, "is no JSON"),
        (second(name="\ud800"), "half of a character"),
        (graph(arg_nodes=[1]), "arg_nodes lists 1, which is no variable among its 2 nodes"),
        (graph(arg_nodes=[5]), "arg_nodes lists 5"),
    ],
)
def test_bad_files_are_explained(tmp_path, content, text):
    path = tmp_path / "bad-symbol.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(MXNetError, match=f"bad-symbol.json.*{text}"):
        S.load(path)
    with pytest.raises(MXNetError, match=f"the JSON text.*{text}"):
        S.load_json(path.read_text())


def test_a_bad_sub_graph_is_found():
    def body(x, state):
        return x + state, state * 2

    out, _ = S.contrib.foreach(body, S.Variable("x"), S.Variable("s"), name="bad_sub_graph")
    data = json.loads(out.tojson())
    loop = next(n for n in data["nodes"] if "subgraphs" in n)
    loop["subgraphs"][0]["nodes"][-1]["op"] = "nope"
    with pytest.raises(MXNetError, match="node 2 '_foreach0', sub-graph 0, node .*: no operator is named 'nope'"):
        S.load_json(json.dumps(data))
    loop["subgraphs"] = []
    with pytest.raises(MXNetError, match="operator _foreach holds 1 sub-graphs, the file gives 0"):
        S.load_json(json.dumps(data))


@pytest.mark.parametrize(
    "op, params",
    [("Concat", {"num_args": "65536"}), ("UpSampling", {"num_args": "3", "scale": "2", "sample_type": "nearest"})],
)
def test_inputs_that_a_number_tells_of_are_not_made_up(op, params):
    text = json.dumps(second(op=op, inputs=[[0, 0, 0]] * 2, attrs=params))
    with pytest.raises(
        MXNetError, match=f"node 1 .*: num_args of operator {op} is {params['num_args']}, the file gives 2 inputs"
    ):
        mx.sym.load_json(text)


def test_the_outputs_that_numbers_tell_of_have_room():
    """Each would take some hundred bytes."""
    cut = [
        {"op": "SliceChannel", "name": f"s{i}", "inputs": [[i, 0, 0]], "attrs": {"num_outputs": str(50000 + i)}}
        for i in range(9)
    ]
    with pytest.raises(MXNetError, match="node 6 's5': the operators up to here have 262144 outputs and more"):
        mx.sym.load_json(
            json.dumps(
                {"nodes": [{"op": "null", "name": "x", "inputs": []}, *cut], "arg_nodes": [0], "heads": [[9, 0, 0]]}
            )
        )


def test_a_state_must_be_a_variable():
    data = json.loads(S.BatchNorm(S.Variable("data"), name="bn").tojson())
    data["nodes"].insert(1, {"op": "relu", "name": "r", "inputs": [[0, 0, 0]]})
    data["nodes"][-1]["inputs"] = [[0, 0, 0], [2, 0, 0], [3, 0, 0], [1, 0, 0], [5, 0, 0]]
    data.update(heads=[[6, 0, 0]], arg_nodes=[0])
    with pytest.raises(
        MXNetError,
        match="node 6 'bn': operator BatchNorm writes its input 'moving_mean', "
        "which must be a variable; it is an output of 'r'",
    ):
        S.load_json(json.dumps(data))


@pytest.mark.parametrize(
    "call, kind",
    [
        (lambda p: S.load(p / "none.json"), FileNotFoundError),
        (lambda p: S.load(3), TypeError),
        (lambda p: S.load_json(3), TypeError),
        (lambda p: S.Variable("x").save(3), TypeError),
    ],
)
def test_what_is_no_file(tmp_path, call, kind):
    with pytest.raises(kind) as e:
        call(tmp_path)
    assert isinstance(e.value, MXNetError)


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "x.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="x.json is no JSON text"):
        S.load(tmp_path / "x.json")


def test_plugins_that_are_switched_off_are_named():
    code = (
        "import mxcore as mx, json; "
        "mx.sym.load_json(json.dumps(dict(nodes=[dict(op='nope', name='x', inputs=[])], heads=[[0, 0]])))"
    )
    env = {**os.environ, "MXCORE_DISABLE_PLUGINS": "io_rec,kvstore_local"}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120)
    assert (
        "no operator is named 'nope'" in out.stderr
        and "installed but switched off by MXCORE_DISABLE_PLUGINS: io_rec, kvstore_local" in out.stderr
    ), out.stderr


def test_casts_of_mixed_precision_are_left_out(a, b, tmp_path):
    x = S.amp_cast(a, dtype="float16")
    z = S.amp_multicast(x, b, num_outputs=2, name="mc")
    out = S.amp_cast(z[0] * z[1], dtype="float32")

    def names(text):
        return [n["name"] for n in json.loads(text)["nodes"]]

    assert names(out.tojson()) == ["a", "b", "_mul0", "amp_cast1"]  # an output stays
    assert names(out.tojson(remove_amp_cast=False)) == ["a", "amp_cast0", "b", "mc", "_mul0", "amp_cast1"]
    out.save(tmp_path / "x.json", remove_amp_cast=False)
    assert S.load(tmp_path / "x.json").tojson(False) == out.tojson(False)
    assert S.load_json(out.tojson(False)).get_internals().list_outputs() == out.get_internals().list_outputs()


def test_saving_replaces_a_file_whole(fc, tmp_path):
    path = tmp_path / "net-symbol.json"
    fc.save(path)
    (fc * 2).save(str(path))
    assert S.load(path).list_outputs() == ["_mulscalar0_output"] and os.listdir(tmp_path) == ["net-symbol.json"]


UNARY = ["tanh", "Flatten", "BlockGrad", "BatchNorm", "Dropout"]
PARAMETERS = {
    "FullyConnected": {"num_hidden": 3, "no_bias": True},
    "SliceChannel": {"num_outputs": 2},
    "LeakyReLU": {"act_type": "prelu"},
    "sum": {"axis": (0, 1)},
}


@st.composite
def graphs(draw):
    """A random graph: operators of any inputs and several outputs, attributes, shared parts, one or more heads."""
    values = [S.Variable(f"v{i}") for i in range(draw(st.integers(1, 3)))]
    with mx.name.NameManager():
        for _ in range(draw(st.integers(0, 8))):
            pick = st.sampled_from(values)
            attr = {
                f"__{k}__": v
                for k, v in draw(
                    st.dictionaries(st.sampled_from(["note", "lr_mult", "ctx_group"]), st.text(max_size=4), max_size=2)
                ).items()
            }
            kind = draw(st.sampled_from(["unary", "with parameters", "binary", "scalar", "many"]))
            if kind == "unary":
                values += list(getattr(S, draw(st.sampled_from(UNARY)))(draw(pick), attr=attr))
            elif kind == "with parameters":
                op = draw(st.sampled_from(sorted(PARAMETERS)))
                values += list(getattr(S, op)(draw(pick), attr=attr, **PARAMETERS[op]))
            elif kind == "binary":
                values.append(draw(pick) + draw(pick))
            elif kind == "scalar":
                values.append(draw(pick) * draw(st.floats(allow_nan=False, allow_infinity=False)))
            else:
                values.append(S.Concat(*draw(st.lists(pick, min_size=1, max_size=4)), dim=draw(st.integers(-2, 2))))
    return S.Group(draw(st.lists(st.sampled_from(values), min_size=1, max_size=3)))


def structure(symbol):
    """Everything that a file must keep."""
    from mxcore._core.graph import topo

    nodes = topo(symbol._heads)
    place = {id(n): i for i, n in enumerate(nodes)}
    listed = [
        (
            None if n.op is None else n.op.name,
            n.name,
            n.attrs,
            {} if n.op is None else {k: getattr(n.params, k) for k in n.op.params},
            [(place[id(m)], i) for m, i in n.inputs],
        )
        for n in nodes
    ]
    return listed, [(place[id(n)], i) for n, i in symbol._heads]


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_files_keep_all_of_any_graph(symbol):
    text = symbol.tojson()
    back = S.load_json(text)
    assert structure(back) == structure(symbol) and back.tojson() == text
    assert structure(S.load_json(json.dumps(json.loads(text, strict=False)))) == structure(
        symbol
    )  # whatever the layout


@settings(max_examples=150, deadline=None)
@given(graphs(), st.data())
def test_damaged_files_are_errors_of_ours_or_other_graphs(symbol, data):
    text = symbol.tojson()
    start = data.draw(st.integers(0, len(text)))
    damaged = (
        text[:start]
        + data.draw(st.text(alphabet='[]{}",:0123456789abc- ', max_size=6))
        + text[start + data.draw(st.integers(0, 12)) :]
    )
    try:
        assert S.load_json(damaged).list_outputs()
    except MXNetError as e:
        assert "the JSON text" in str(e)


def test_names_beyond_ascii_are_written_as_they_are():
    """MXNet's reader knows no escapes of characters."""
    net = mx.sym.tanh(mx.sym.Variable("höhe"), name="größe")
    text = net.tojson()
    assert '"höhe"' in text and "\\u" not in text
    assert mx.sym.load_json(text).list_outputs() == ["größe_output"]


def test_a_misspelt_parameter_in_a_file_is_refused():
    text = (
        mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, name="f")
        .tojson()
        .replace('"num_hidden": "3"', '"num_hidden": "3", "no_bais": "1"')
    )
    with pytest.raises(mx.base.MXNetError, match="'f': operator FullyConnected takes no attribute 'no_bais'"):
        mx.sym.load_json(text)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    "make",
    [
        lambda x, c: x * c,
        lambda x, c: c - x,
        lambda x, c: x > c,
        lambda x, c: mx.sym.clip(x, a_min=-c, a_max=c),
        lambda x, c: mx.sym.LeakyReLU(-x, slope=c),
        lambda x, c: mx.sym.maximum(x, c),
    ],
)
def test_a_file_holds_the_number_that_its_graph_computes_with(make, dtype):
    """NumPy writes 0.1 of the float16 next to it, which is 0.0999755859375."""
    c = mx.nd.array([0.1]).astype(dtype).asscalar()
    graph, x = make(mx.sym.var("x"), c), mx.nd.array([1000, 0.1, 0.09997559])
    found = [s.bind(mx.cpu(), {"x": x}).forward()[0].asnumpy() for s in (graph, mx.sym.load_json(graph.tojson()))]
    assert np.array_equal(*found)
    if dtype != "float64":
        assert str(float(c)) in graph.tojson() or str(-float(c)) in graph.tojson()


def test_numbers_of_the_other_face_are_any_of_numpys():
    x = mx.sym.var("x").as_np_ndarray()
    for dtype in ("float16", "bfloat16"):
        c = mx.nd.array([0.5]).astype(dtype).asscalar()
        for y in (x * c, mx.sym.np.add(x, c)):
            assert "0.5" in y.tojson()


def test_control_characters_stand_as_they_are():
    text = "".join(map(chr, range(1, 32))) + '"\\'
    x = mx.sym.var("x", attr={"__note__": text})
    written = mx.sym.relu(x).tojson()
    assert "\x1b" in written and "\\u00" not in written and "\\b" not in written.replace("\\\\", "")
    assert mx.sym.load_json(written).attr_dict()["x"]["__note__"] == text


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda x: mx.sym.FullyConnected(x, num_hidden=8.0), '"num_hidden": "8"'),
        (lambda x: mx.sym.sum(x, axis=1.0), '"axis": "(1,)"'),
        (lambda x: mx.sym.Pooling(x, kernel=(2, True)), '"kernel": "(2, 1)"'),
        (lambda x: mx.sym.clip(x, a_min=np.False_, a_max=np.True_), '"a_max": "1.0"'),
        (lambda x: mx.sym.clip(x, a_min=0, a_max=2), '"a_max": "2"'),
        (lambda x: mx.sym.Pooling(x, kernel=[3, 3]), '"kernel": "[3, 3]"'),
        (lambda x: mx.sym.Pooling(x, kernel=(np.int64(3), 3)), '"kernel": "(3, 3)"'),
    ],
)
def test_parameters_are_written_as_mxnet_reads_them(make, text):
    assert text in make(mx.sym.var("x")).tojson()


@pytest.mark.parametrize("dtype", ["int16", "uint16", "uint32", "uint64"])
def test_variables_of_dtypes_without_a_number(dtype):
    x = mx.sym.var("x", dtype=dtype, shape=(2,))
    again = mx.sym.load_json((x + x).tojson())
    assert again.infer_type()[1] == [np.dtype(dtype).type]
    assert again.simple_bind(mx.cpu()).forward(x=mx.nd.array([1, 2], dtype=dtype))[0].asnumpy().tolist() == [2, 4]


class Times(mx.operator.CustomOp):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * self.by)


@mx.operator.register("test_files_times")
class TimesProp(mx.operator.CustomOpProp):
    def __init__(self, **given):
        super().__init__()
        self.by = float(given["__by"])

    def create_operator(self, ctx, shapes, dtypes):
        return Times(self.by)


def test_keywords_that_begin_with_two_underscores():
    graph = mx.sym.Custom(mx.sym.var("x"), op_type="test_files_times", __by=3)
    for symbol in (graph, mx.sym.load_json(graph.tojson())):
        assert symbol.bind(mx.cpu(), {"x": mx.nd.ones((2,))}).forward()[0].asnumpy().tolist() == [3, 3]
