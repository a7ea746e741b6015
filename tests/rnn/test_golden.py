"""Cells, sentences and buckets are what they are in the real MXNet 1.9.1; ``make_golden.py`` ran the cases there."""

import functools
import pathlib
import warnings

import numpy as np
import pytest

import mxcore as mx
from mxcore.testing.pack import Pack

from . import cases

NAMES = list(cases.cells(mx))


@functools.cache
def pack():
    return Pack.load(str(pathlib.Path(__file__).resolve().parent / "golden" / "rnn.npz"))


def golden(kind, *key):
    """The entry of a case."""
    return next(e for e in pack().entries if kind in e and (e[kind], *filter(None, [e.get("way")])) == key)


@pytest.fixture(autouse=True)
def no_advice():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "FusedRNNCell: layout 'NTC'")
        yield


@pytest.mark.parametrize("way", cases.WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_the_graph_is_mxnets_file(name, way):
    assert cases.graph(mx, name, way)[1].tojson() == golden("cell", name, way)["json"]


@pytest.mark.parametrize("way", cases.WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_outputs_and_gradients(name, way):
    want, found = golden("cell", name, way)["arrays"], cases.run(mx, name, way)
    assert set(found) == set(want)
    for key, number in want.items():
        np.testing.assert_allclose(found[key], pack().get(number), rtol=2e-5, atol=2e-6, err_msg=key)


@pytest.mark.parametrize("name", NAMES)
def test_weights_packed_and_unpacked(name):
    want, found = golden("weights", name)["arrays"], cases.weights(mx, name)
    assert sorted(found) == sorted(want)
    for key, number in want.items():
        assert found[key].shape == pack().get(number).shape and found[key].tobytes() == pack().get(number).tobytes(), (
            key
        )


@pytest.mark.parametrize("name", cases.ITERATORS)
def test_buckets(name):
    entry = golden("iterator", name)
    facts, arrays = cases.batches(mx, name)
    assert facts == entry["facts"]
    assert len(arrays) == len(entry["arrays"])
    for a, number in zip(arrays, entry["arrays"]):
        np.testing.assert_array_equal(a, pack().get(number))


@pytest.mark.parametrize("name", cases.CODINGS)
def test_sentences_as_numbers(name):
    assert cases.coded(mx, name) == golden("coding", name)["found"]


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("mode", ["rnn_relu", "rnn_tanh", "lstm", "gru"])
def test_fused_and_unfused_compute_the_same(mode, both):
    fused = mx.rnn.FusedRNNCell(3, 2, mode, both, prefix="net_")
    single = fused.unfuse()
    results = []
    for cell in (fused, single):
        out, _ = cell.unroll(4, mx.sym.Variable("x"), layout="TNC", merge_outputs=True)
        exe = out.simple_bind(mx.cpu(), x=(4, 2, 5))
        if cell is fused:
            whole = mx.nd.array(cases.numbers("vector", exe.arg_dict["net_parameters"].shape))
            exe.arg_dict["net_parameters"][:] = whole
            args = single.pack_weights(fused.unpack_weights({"net_parameters": whole}))
            exe.arg_dict["x"][:] = args["x"] = mx.nd.array(cases.numbers("x", (4, 2, 5)))
        else:
            exe.copy_params_from(args)
        (y,) = exe.forward(is_train=True)
        exe.backward(mx.nd.array(cases.numbers("dy", y.shape)))
        results.append((y.asnumpy(), exe.grad_dict["x"].asnumpy(), exe.grad_dict))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-4, atol=1e-5)
    grads = fused.pack_weights(single.unpack_weights({n: g for n, g in results[1][2].items() if n != "x"}))
    np.testing.assert_allclose(
        grads["net_parameters"].asnumpy(), results[0][2]["net_parameters"].asnumpy(), rtol=1e-4, atol=1e-5
    )
