"""Whole models of every family are as in MXNet 1.9.1: files byte for byte, names, shapes, types, numbers.

``model_cases.py`` holds the models, ``make_model_golden.py`` ran them in MXNet.
"""

import functools
import io
import json
import pathlib
import pickle

import numpy as np
import pytest

import mxcore as mx
from mxcore.testing.pack import Pack

from . import model_cases

DATA = pathlib.Path(__file__).resolve().parent / "data" / "scripts"
NAMES = [m.__name__ for m in model_cases.MODELS]


@functools.cache
def pack():
    return Pack.load(str(DATA / "models.npz"))


def golden(kind):
    """Name -> entry, of one kind: 'model', 'legacy' or 'graph'."""
    return {e[kind]: e for e in pack().entries if kind in e}


@functools.cache
def built(name):
    """(symbol, shapes); loops are named after how often they were made, so each is made once."""
    return model_cases.build(mx, getattr(model_cases, name))


@pytest.mark.parametrize("name", NAMES)
def test_composed_here_it_is_mxnets_file(name):
    assert built(name)[0].tojson() == golden("model")[name]["json"]


@pytest.mark.parametrize("name", NAMES)
def test_loaded_and_saved_it_is_the_same_file(name, tmp_path):
    text = golden("model")[name]["json"]
    mx.sym.load_json(text).save(tmp_path / "model-symbol.json")
    assert (tmp_path / "model-symbol.json").read_text() == text
    assert mx.sym.load(tmp_path / "model-symbol.json").tojson() == text


@pytest.mark.parametrize("source", ["composed", "loaded"])
@pytest.mark.parametrize("name", NAMES)
def test_lists_shapes_and_types(name, source):
    entry = golden("model")[name]
    symbol, shapes = built(name) if source == "composed" else (mx.sym.load_json(entry["json"]), built(name)[1])
    found = json.loads(json.dumps(model_cases.described(mx, symbol, shapes)))
    for key, want in entry["facts"].items():
        assert found[key] == want, key


@pytest.mark.parametrize("source", ["composed", "loaded"])
@pytest.mark.parametrize("name", [n for n in NAMES if n != "attributes"])
def test_outputs_gradients_and_states(name, source):
    entry = golden("model")[name]
    symbol, shapes = built(name) if source == "composed" else (mx.sym.load_json(entry["json"]), built(name)[1])
    found = model_cases.run(mx, name, symbol, shapes)
    assert set(found) == set(entry["arrays"])
    for key, number in entry["arrays"].items():
        want = pack().get(number).astype("float64")
        np.testing.assert_allclose(found[key], want, rtol=2e-4, atol=2e-5 * max(1.0, np.abs(want).max()), err_msg=key)


@pytest.mark.parametrize("name", model_cases.LEGACY)
def test_files_of_old_versions(name):
    """Loaded they are what MXNet makes of them, but for the counts of writes, which it lacks for old files."""

    def plain(text):
        graph = json.loads(text)
        for n in graph["nodes"]:
            n["inputs"] = [e[:2] for e in n["inputs"]]
        return graph

    found = mx.sym.load_json(model_cases.LEGACY[name])
    assert plain(found.tojson()) == plain(golden("legacy")[name]["json"])
    assert mx.sym.load_json(found.tojson()).tojson() == found.tojson()


def test_names_of_outputs_and_states_of_every_operator():
    graphs, texts = golden("graph"), [e["json"] for e in Pack.load(str(DATA / "symbols.npz")).entries]
    assert len(texts) > 1000
    for text in texts:
        assert model_cases.key(text) in graphs, "symbols.npz was made anew: make models.npz anew too"
        e, symbol = graphs[model_cases.key(text)], mx.sym.load_json(text)
        found = symbol.list_outputs(), symbol.list_auxiliary_states(), symbol.get_internals().list_outputs()
        assert found == (e["outputs"], e["states"], e["internals"]), text


@pytest.mark.parametrize("name", NAMES)
def test_mxnets_pickles(name):
    class AsMxnet(pickle.Unpickler):
        def find_class(self, module, name):
            return super().find_class(module.replace("mxnet", "mxcore"), name)

    entry = golden("model")[name]
    assert AsMxnet(io.BytesIO(entry["pickle"].encode("latin-1"))).load().tojson() == entry["json"]
