"""Parameter files and exported graphs: MXNet's are read, and what is written is what MXNet writes."""

import json
import os
import pathlib
import re
import shutil

import numpy as np
import pytest

import mxcore as mx
from mxcore.cli.model import load_params
from mxcore.gluon import SymbolBlock, nn
from mxcore.ndarray import serialization

from . import cases

GOLDEN = os.path.join(os.path.dirname(__file__), "golden")


def golden(name):
    return os.path.join(GOLDEN, name)


@pytest.fixture(scope="module")
def data():
    with np.load(golden("network.npz")) as f:
        return mx.nd.array(f["x"]), f["y"]


def filled(x):
    net = cases.network(nn)
    net.initialize()
    net(x)
    cases.fill(net, mx.nd)
    return net


def same(net, x, y):
    np.testing.assert_allclose(net(x).asnumpy(), y, rtol=1e-5, atol=1e-6)
    return True


@pytest.mark.parametrize("name", ["structural", "full", "stripped", "exported-0002", "saved-model"])
def test_mxnet_files_load(name, data):
    net = cases.network(nn)
    net.load_parameters(golden(name + ".params"))
    assert same(net, *data)
    net = cases.network(nn)
    net.load_parameters(golden(name + ".params"), ctx=[mx.cpu(0), mx.cpu(1)])
    assert net[0].weight.list_ctx() == [mx.cpu(0), mx.cpu(1)]


@pytest.mark.parametrize(
    "name, save",
    [
        ("structural", lambda net, f: net.save_parameters(f)),
        ("full", lambda net, f: net.collect_params().save(f)),
        ("stripped", lambda net, f: net.collect_params().save(f, strip_prefix=net.prefix)),
    ],
)
def test_files_are_mxnets_byte_for_byte(name, save, data, tmp_path):
    f = tmp_path / "p.params"
    save(filled(data[0]), str(f))
    assert f.read_bytes() == pathlib.Path(golden(name + ".params")).read_bytes()


def test_export_writes_what_mxnet_writes(data, tmp_path):
    net = filled(data[0])
    with pytest.raises(RuntimeError, match="hybridize"):
        net.export(str(tmp_path / "net"))
    net.hybridize()
    with pytest.raises(RuntimeError, match="run forward"):
        net.export(str(tmp_path / "net"))
    net(data[0])
    net.export(str(tmp_path / "net"), epoch=2)
    assert (tmp_path / "net-0002.params").read_bytes() == pathlib.Path(golden("exported-0002.params")).read_bytes()

    def nodes(path):
        # Shapes are notes that MXNet takes before the first batch and we take after it; the third number of
        # an input
        # counts how often MXNet traced.
        graph = json.loads(pathlib.Path(path).read_text())
        found = [
            (
                n["op"],
                n["name"],
                {k: v for k, v in n.get("attrs", {}).items() if k != "__shape__"},
                [i[:2] for i in n["inputs"]],
            )
            for n in graph["nodes"]
        ]
        return found, graph["heads"]

    assert nodes(tmp_path / "net-symbol.json") == nodes(golden("exported-symbol.json"))


def test_the_exported_graph_is_mxnets_byte_for_byte(data, tmp_path):
    net = cases.network(nn)
    net.initialize()
    net.hybridize()
    net(data[0])
    net.export(str(tmp_path / "net"))
    # That file is of a network that MXNet had traced twice, as the numbers behind the states tell.
    wanted = (
        pathlib.Path(golden("exported-symbol.json")).read_text().replace("[7, 0, 2], [8, 0, 2]", "[7, 0, 1], [8, 0, 1]")
    )
    assert (tmp_path / "net-symbol.json").read_text() == wanted


def test_mxnet_export_runs_as_symbol_block(data):
    x, y = data
    net = SymbolBlock.imports(golden("exported-symbol.json"), ["data"], golden("exported-0002.params"))
    assert same(net, x, y)
    assert re.fullmatch(r"SymbolBlock\(\n<Symbol net_dense1_fwd> : 1 -> 1\n\)", repr(net))
    net.hybridize()
    assert same(net, x, y)
    assert net.collect_params()["net_batchnorm0_running_mean"].grad_req == "null"


def test_symbol_block_learns(data):
    x, _ = data
    net = SymbolBlock.imports(golden("exported-symbol.json"), "data", golden("exported-0002.params"))
    plain = cases.network(nn)
    plain.load_parameters(golden("structural.params"))
    grads = []
    for n in (net, plain):
        mx.random.seed(3)
        with mx.autograd.record():
            loss = (n(x) ** 2).sum()
        loss.backward()
        grads.append({k: p.grad().asnumpy() for k, p in n.collect_params().items() if p.grad_req != "null"})
    assert grads[0].keys() == grads[1].keys()
    for k, g in grads[1].items():
        np.testing.assert_allclose(grads[0][k], g, rtol=1e-5, atol=1e-6)


def test_symbol_block_infers_shapes_and_composes():
    x = mx.sym.var("data")
    fc = mx.sym.FullyConnected(x, num_hidden=4, name="fc")
    net = SymbolBlock([fc, mx.sym.relu(fc, name="act")], x)
    net.initialize()
    a, b = net(mx.nd.ones((2, 3)))
    assert (np.maximum(a.asnumpy(), 0) == b.asnumpy()).all()
    assert net.collect_params()["fc_weight"].shape == (4, 3)
    whole = nn.HybridSequential()
    whole.add(nn.Dense(3), SymbolBlock(fc, x), nn.Dense(2))
    assert "fc_weight" in whole(mx.sym.var("x")).list_arguments()
    with pytest.raises(AssertionError, match="must be variable"):
        SymbolBlock(mx.sym.relu(fc), fc)
    with pytest.raises(ValueError, match="'nothing'"):
        SymbolBlock.imports(golden("exported-symbol.json"), ["nothing"])


def test_symbol_block_of_inner_layers(data):
    x, _ = data
    full = mx.sym.load(golden("exported-symbol.json"))
    inner = SymbolBlock(full.get_internals()["net_dense0_relu_fwd_output"], mx.sym.var("data"))
    inner.load_parameters(golden("exported-0002.params"), ignore_extra=True)
    net = cases.network(nn)
    net.load_parameters(golden("structural.params"))
    assert same(inner, x, net[:4](x).asnumpy())


def test_symbol_block_pickles(data):
    import pickle

    x, y = data
    net = SymbolBlock.imports(golden("exported-symbol.json"), ["data"], golden("exported-0002.params"))
    assert same(pickle.loads(pickle.dumps(net)), x, y)


def test_block_save_and_load(data, tmp_path):
    x, y = data
    for name in ("saved-model.json", "saved-model.params"):
        shutil.copy(golden(name), tmp_path)
    net = cases.network(nn)
    net.load(str(tmp_path / "saved"))
    assert same(net, x, y)
    net.hybridize()
    net(x)
    net.save(str(tmp_path / "again"))
    other = cases.network(nn)
    other.load(str(tmp_path / "again"))
    assert same(other, x, y) and other._active
    written = json.loads((tmp_path / "again-model.json").read_text())
    assert [*written] == ["hybridsequential0"]  # numbers count from above, and who has no graph is not hybridised
    entries = {key: e for key, e in written["hybridsequential0"].items() if isinstance(e, dict) and "hybridized" in e}
    assert [int(re.search(r"\d+$", key)[0]) for key in entries][0] == 1
    assert written["hybridsequential0"]["hybridized"] and not any(e["hybridized"] for e in entries.values())
    wrong = nn.HybridSequential()
    wrong.add(nn.Dense(2))
    with pytest.raises(ValueError, match="again-model.json.*children '0', '1'"):
        wrong.load(str(tmp_path / "again"))
    (tmp_path / "again-model.json").write_text("{")
    with pytest.raises(ValueError, match="again-model.json is no JSON"):
        other.load(str(tmp_path / "again"))


class Chain(mx.gluon.HybridBlock):
    """Layers under names of one's own."""

    def __init__(self, **layers):
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)

    def hybrid_forward(self, F, x):
        for layer in self._children.values():
            x = layer(x)
        return x


def test_block_load_matches_children_by_their_order(tmp_path):
    net = Chain(a=nn.Dense(3, in_units=4), b=nn.Dense(2, in_units=3))
    net.initialize(mx.init.Uniform())
    x = mx.nd.ones((2, 4))
    net.save(str(tmp_path / "net"))
    other = Chain(first=nn.Dense(3, in_units=4), second=nn.Dense(2, in_units=3))
    other.load(str(tmp_path / "net"))
    np.testing.assert_array_equal(other(x).asnumpy(), net(x).asnumpy())
    assert (
        list(other._collect_params_with_prefix()) == ["a.weight", "a.bias", "b.weight", "b.bias"]
        and other.first is other._children["a"]
    )
    with pytest.raises(AssertionError, match="shape incompatible"):  # the names fit, the places do not
        Chain(b=nn.Dense(2, in_units=3), a=nn.Dense(3, in_units=4)).load(str(tmp_path / "net"))


class Tied(mx.gluon.HybridBlock):
    def __init__(self, wide=4, **kw):
        super().__init__(**kw)
        self.a = nn.Dense(wide, in_units=3)
        self.b = nn.Dense(wide, in_units=3, params=self.a.params)
        self.c = nn.Dense(2, in_units=wide)

    def hybrid_forward(self, F, x):
        return self.c(self.a(x) + self.b(x))


@pytest.mark.parametrize(
    "text, match",
    [
        ("[]", "expected an object with the block by its name"),
        ("{}", "expected an object"),
        ('{"a": 3}', "must be an object"),
        ('{"a": {"children": 3}}', "must be an object"),
        ('{"a": {"children": {"x": [1]}}}', "has children"),
        ("[" * 100000, "is no JSON"),
        ("\xff", "is no JSON"),
        ('{"a": {"children": {"x": "\\ud800"}}}', "half of a character"),
    ],
)
def test_structure_files_that_are_none(text, match, tmp_path):
    net = nn.HybridSequential()
    net.add(nn.Dense(1, in_units=1))
    net.initialize()
    net.save(str(tmp_path / "a"))
    (tmp_path / "a-model.json").write_text(text, encoding="latin-1")
    with pytest.raises(mx.base.MXNetError, match=f"a-model.json.*{match}"):
        net.load(str(tmp_path / "a"))


def test_entries_without_array_are_named(tmp_path):
    net, path = nn.Dense(1, in_units=1), str(tmp_path / "a.params")
    serialization.save_file(path, [None, None], ["weight", "bias"])
    with pytest.raises(mx.base.MXNetError, match=r"a\.params' has no array under 'weight', 'bias'"):
        net.load_parameters(path)
    full = list(net.collect_params().keys())
    serialization.save_file(path, [None, None], full)
    with pytest.raises(mx.base.MXNetError, match=r"a\.params has no array under"):
        net.collect_params().load(path)


def test_a_network_without_parameters_is_saved_and_loaded(tmp_path):
    net, x = nn.HybridSequential(), mx.nd.array([[-1, 2]])
    net.add(nn.Activation("relu"))
    net.hybridize()
    y = net(x)
    net.export(str(tmp_path / "net"))
    found = SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"))
    assert found(x).asnumpy().tolist() == y.asnumpy().tolist()
    net.collect_params().save(str(tmp_path / "empty"))
    net.collect_params().load(str(tmp_path / "empty"))
    assert load_params(str(tmp_path / "empty")) == ({}, {})  # what `mxcore predict` reads
    with pytest.raises(AssertionError, match="is missing"):
        nn.Dense(1, in_units=1).collect_params().load(str(tmp_path / "empty"))


def test_shared_parameters_once_or_twice(tmp_path):
    f = str(tmp_path / "p.params")
    net = Tied()
    net.initialize()
    net.save_parameters(f)
    assert list(mx.nd.load(f)) == ["a.weight", "a.bias", "b.weight", "b.bias", "c.weight", "c.bias"]
    net.save_parameters(f, deduplicate=True)
    assert list(mx.nd.load(f)) == ["b.weight", "b.bias", "c.weight", "c.bias"]
    other = Tied()
    other.load_parameters(f)
    x = mx.nd.ones((1, 3))
    assert (other(x).asnumpy() == net(x).asnumpy()).all()


@pytest.mark.parametrize("load", ["load_parameters", "load", "load_dict"])
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (mx.nd.ones((2,)), r"'net_dense1_bias'.*: shape incompatible expected \(3,\) vs saved \(2,\)"),
        (
            mx.nd.ones((3,), dtype="float16"),
            "'net_dense1_bias'.*: dtype incompatible expected float32 vs saved float16.*cast",
        ),
    ],
)
def test_a_single_difference_leaves_the_network_as_it_was_and_names_the_file(tmp_path, load, bad, said):
    f = str(tmp_path / "p.params")
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(3, in_units=2), nn.Dense(3, in_units=3))
    net.initialize(mx.init.Constant(7))
    by_place = load == "load_parameters"
    params = net._collect_params_with_prefix() if by_place else dict(net.collect_params().items())
    last = "1.bias" if by_place else "net_dense1_bias"
    before = {n: p.data().asnumpy() for n, p in params.items()}
    values = {**{n: mx.nd.ones(p.shape) for n, p in params.items()}, last: bad}
    mx.nd.save(f, values)
    with pytest.raises(AssertionError, match=said) as e:
        if load == "load_dict":
            net.collect_params().load_dict(values)
        else:
            (net.load_parameters if by_place else net.collect_params().load)(f)
    assert load == "load_dict" or f in str(e.value)
    for n, p in params.items():
        np.testing.assert_array_equal(p.data().asnumpy(), before[n], err_msg=n)


def test_places_that_differ_leave_the_network_as_it_was(tmp_path):
    f = str(tmp_path / "p.params")
    net = nn.Dense(3, in_units=2)
    net.initialize(mx.init.Constant(7), ctx=mx.cpu(0))
    mx.nd.save(f, {"weight": mx.nd.ones((3, 2)), "bias": mx.nd.ones((3,))})
    with pytest.raises(AssertionError, match=r"(?s)p\.params.*weight: it cannot be put on .*because it was previous"):
        net.load_parameters(f, ctx=mx.cpu(1))
    assert (net.weight.data(mx.cpu(0)).asnumpy() == 7).all()


def test_differences_are_listed(tmp_path):
    f = str(tmp_path / "p.params")
    net = Tied(wide=5)
    net.initialize()
    net.save_parameters(f)
    before = Tied()
    before.initialize(mx.init.One())
    with pytest.raises(AssertionError) as e:
        before.load_parameters(f)
    for line in (
        "5 parameters of the network and file ",
        "a.weight: shape incompatible expected (4, 3) vs saved (5, 3)",
        "c.weight: shape incompatible expected (2, 4) vs saved (2, 5)",
    ):
        assert line in str(e.value)
    # Nothing was half loaded, not even what would have fitted.
    assert (before.c.bias.data().asnumpy() == 0).all() and (before.c.weight.data().asnumpy() == 1).all()

    mx.nd.save(f, {"c.weight": mx.nd.ones((2, 4)), "old.name": mx.nd.ones((1,))})
    net = Tied()
    with pytest.raises(AssertionError, match="'a.weight', 'a.bias'.*missing in file .*p.params.*Unknown.*'old.name'"):
        net.load_parameters(f)
    with pytest.raises(ValueError, match="'old.name'.*ignore_extra"):
        net.load_parameters(f, allow_missing=True)
    net.load_parameters(f, allow_missing=True, ignore_extra=True)
    assert (net.c.weight.data().asnumpy() == 1).all()
    mx.nd.save(f, [mx.nd.ones((2, 4))])
    with pytest.raises(ValueError, match="without names"):
        net.load_parameters(f)
    with pytest.raises(mx.base.MXNetError, match="nowhere.params"):
        net.load_parameters(str(tmp_path / "nowhere.params"))


def test_dtypes(tmp_path):
    f = str(tmp_path / "p.params")
    half = nn.Dense(2, in_units=3)
    half.cast("float16")
    half.initialize()
    half.save_parameters(f)
    net = nn.Dense(2, in_units=3)
    with pytest.raises(AssertionError, match="expected float32 vs saved float16"):
        net.load_parameters(f)
    net.load_parameters(f, cast_dtype=True)
    assert net.weight.data().dtype == np.float32
    net = nn.Dense(2, in_units=3)
    net.load_parameters(f, cast_dtype=True, dtype_source="saved")
    assert net.weight.data().dtype == np.float16


def test_uninitialised_networks_are_not_saved(tmp_path):
    with pytest.raises(RuntimeError, match="dense0_weight' has not been initialized"):
        nn.Dense(2, in_units=3).save_parameters(str(tmp_path / "p"))
    net = nn.Dense(2)
    net.initialize()
    with pytest.raises(mx.gluon.DeferredInitializationError, match="first forward"):
        net.save_parameters(str(tmp_path / "p"))


def test_deprecated_spellings(tmp_path):
    f = str(tmp_path / "p.params")
    net = nn.HybridSequential(prefix="n_")
    with net.name_scope():
        net.add(nn.Dense(2, in_units=3))
    net.initialize()
    with pytest.warns(DeprecationWarning, match="save_parameters"):
        net.save_params(f)
    assert sorted(mx.nd.load(f)) == ["dense0_bias", "dense0_weight"]
    with pytest.warns(DeprecationWarning, match="load_parameters"):
        net.load_params(f)
