"""Models are quantised as by MXNet 1.9.1; what it saves is loaded and computes the same."""

import functools
import json
import pathlib

import numpy as np
import pytest

import mxcore as mx
from mxcore.contrib import quantization as api
from mxcore.testing.pack import Pack

from . import quantization_cases as cases


@functools.cache
def golden():
    """The golden file."""
    return Pack.load(str(pathlib.Path(__file__).resolve().parent / "data" / "scripts" / "quantization.npz"))


def entries(kind):
    return {str(e[kind]): e for e in golden().entries if kind in e}


def told(text, without=()):
    """A graph as (operator, name, parameters, inputs) by number, and its heads."""
    graph = json.loads(text)
    nodes = [
        (
            n["op"],
            n["name"],
            {k: v for k, v in n.get("attrs", {}).items() if k not in without} if n["op"] != "null" else None,
            [tuple(i[:2]) for i in n["inputs"]],
        )
        for n in graph["nodes"]
    ]
    return nodes, [tuple(h[:2]) for h in graph["heads"]]


def graph(number):
    model, options = cases.GRAPHS[number]
    symbol, shape = cases.build(mx, model)
    args, aux = cases.parameters(symbol, shape)
    args = {n: mx.nd.array(v) for n, v in args.items()}
    return api.quantize_graph(symbol, args, aux, calib_mode="naive", logger=Quiet(), **options)


class Quiet:
    """A logger that says nothing."""

    def info(self, *args):
        """Nothing."""

    debug = info


@pytest.mark.parametrize("number", range(len(cases.GRAPHS)))
def test_graphs(number):
    want = entries("graph")[str(number)]
    symbol, _, _, collector = graph(number)
    assert told(symbol.tojson()) == told(want["json"], without=("quantized",))
    assert sorted(collector.include_layer) == sorted(want["layers"])


@pytest.mark.parametrize("run", cases.RUNS)
def test_files_of_mxnet(run, tmp_path):
    want, pack = entries("run")[run], golden()
    for name, key in zip(("m-symbol.json", "m-0000.params"), want["files"]):
        (tmp_path / name).write_bytes(pack.get(key).astype(np.uint8).tobytes())
    symbol, args, aux = mx.model.load_checkpoint(str(tmp_path / "m"), 0)
    for ours, key in zip(cases.outputs(mx, run, symbol, args, aux), want["outputs"]):
        np.testing.assert_allclose(ours, pack.get(key), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("run", cases.RUNS)
def test_quantised_here(run, tmp_path):
    """Parameters and ranges are MXNet's; beyond that, what comes out of layers has the range that calibration saw."""
    entry, pack = entries("run")[run], golden()
    (tmp_path / "m-0000.params").write_bytes(pack.get(entry["files"][1]).astype(np.uint8).tobytes())
    theirs = json.loads(pack.get(entry["files"][0]).astype(np.uint8).tobytes())
    symbol, args, aux = cases.quantized(mx, run, api)
    ranges = ("min_calib_range", "max_calib_range", "quantized")
    assert told(symbol.tojson(), ranges) == told(json.dumps(theirs), ranges)
    for mine, their in zip(json.loads(symbol.tojson())["nodes"], theirs["nodes"]):
        for end in ranges[:2] if their["op"] != "null" and end_given(their) else ():
            assert float(mine["attrs"][end]) == pytest.approx(float(their["attrs"][end]), abs=1e-6)
    params = mx.nd.load(str(tmp_path / "m-0000.params"))
    assert {f"arg:{n}" for n in args} | {f"aux:{n}" for n in aux} == set(params)
    for name, value in args.items():
        np.testing.assert_array_equal(value.asnumpy(), params[f"arg:{name}"].asnumpy(), strict=True)
    for ours, key in zip(cases.outputs(mx, run, symbol, args, aux), entry["outputs"]):
        want = pack.get(key)
        # MXNet looks for the ranges of sums at every run; entropy leaves out what is far.
        assert np.abs(ours - want).max() <= (0.1 if "entropy" in run else 0.05) * np.ptp(want, axis=0).max()


def end_given(node):
    return "min_calib_range" in node.get("attrs", {})


def test_products():
    names = ("lhs", "rhs", "lhs_min", "lhs_max", "rhs_min", "rhs_max")
    want = [e for e in golden().entries if "product" in e]
    for (options, *arrays), e in zip(cases.products(), want, strict=True):
        inputs = {n: mx.nd.array(a, dtype=a.dtype) for n, a in zip(names, arrays)}
        symbol = mx.sym.contrib.quantized_elemwise_mul(*map(mx.sym.Variable, names), **options)
        for ours, key in zip(symbol.bind(mx.cpu(), inputs).forward(), e["outputs"], strict=True):
            found = golden().get(key)
            if ours.dtype == np.int8:  # MXNet wraps around where the range ends
                ends = np.abs(ours.asnumpy()) >= 127
                np.testing.assert_array_equal(ours.asnumpy()[~ends], found[~ends])
            else:
                np.testing.assert_allclose(ours.asnumpy(), found, rtol=1e-6)


def test_convolutions():
    """Sums are MXNet's, which adds the bias as it is; what they stand for is docs/differences.md's."""
    want = [e for e in golden().entries if "convolution" in e]
    for (params, *arrays), e in zip(cases.convolutions(), want, strict=True):
        assert {k: str(v) for k, v in params.items()} == e["convolution"]
        found = mx.nd.contrib.quantized_conv(*(mx.nd.array(a, dtype=a.dtype) for a in arrays), **params)
        assert [y.dtype for y in found] == [np.int32, np.float32, np.float32]
        np.testing.assert_array_equal(found[0].asnumpy(), golden().get(e["sums"]))
