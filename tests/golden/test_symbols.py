"""Symbols are written byte for byte as the real MXNet 1.9.1 writes them, and read and written again as they were.

``symbol_cases.py`` holds the graphs, ``make_symbol_golden.py`` composed them in MXNet.
"""

import functools
import itertools
import pathlib

import pytest

import mxcore as mx
from mxcore._core import tables
from mxcore.testing.pack import Pack

from . import symbol_cases


@functools.cache
def golden():
    """All entries of the golden file."""
    return Pack.load(str(pathlib.Path(__file__).resolve().parent / "data" / "scripts" / "symbols.npz")).entries


def test_graphs():
    want = {e["case"]: e["json"] for e in golden() if "case" in e}
    found = dict(symbol_cases.cases(mx))
    assert set(found) == set(want)
    for name, symbol in found.items():
        assert symbol.tojson() == want[name], name


@pytest.mark.parametrize(
    "op, entries",
    [
        pytest.param(op, list(es), id=op)
        for op, es in itertools.groupby([e for e in golden() if "op" in e], lambda e: e["op"])
    ],
)
def test_operators(op, entries):
    declared = tables.ops.get(op)
    if op == "_contrib_quantized_rnn":  # MXNet's graphs call inputs otherwise than its documentation and its functions
        entries = [e for e in entries if e["inputs"]]
    for e in entries:
        inputs = [mx.sym.Variable(f"in{i}") for i in range(e["inputs"])]
        # MXNet adds this one by itself.
        own = {"quantized": "true"} if op == "_contrib_quantized_rnn" else {}
        found = mx.sym.compose(declared.name, inputs, {**e["params"], **own, "name": "node"}, declared)
        assert found.tojson() == e["json"], e["params"]


def test_files_are_written_again_as_they_were():
    assert len(golden()) > 1000
    for e in golden():
        again = mx.sym.load_json(e["json"]).tojson()
        assert again == e["json"], e.get("case") or (e["op"], e["params"])
