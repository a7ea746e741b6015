"""Graphs are converted to mixed precision as by MXNet 1.9.1, byte for byte, and the lists are its own."""

import functools
import json
import pathlib

import pytest

import mxcore as mx
from mxcore.contrib import amp
from mxcore.testing.pack import Pack

from . import amp_cases


@functools.cache
def golden():
    """All entries of the golden file."""
    return Pack.load(str(pathlib.Path(__file__).resolve().parent / "data" / "scripts" / "amp.npz")).entries


@pytest.mark.parametrize("graph", amp_cases.GRAPHS)
def test_conversions(graph):
    want = {e["case"]: e["json"] for e in golden() if "case" in e}
    ours = {name: convert for name, convert in amp_cases.cases(mx, amp.convert_symbol) if name.split()[0] == graph}
    # None: MXNet cannot infer dtypes.
    assert len(ours) == len(amp_cases.WAYS) and sum(want[n] is not None for n in ours) >= 6
    for name, convert in ours.items():
        text = convert()
        assert want[name] in (None, text), name


@pytest.mark.parametrize("module", ["symbol_fp16", "symbol_bf16"])
def test_lists(module):
    (want,) = [json.loads(e["json"]) for e in golden() if e.get("lists") == module]
    ours = {k: v for k, v in vars(getattr(amp.lists, module)).items() if k.isupper() and not k.startswith("_")}
    assert set(ours) == set(want)
    for name, values in want.items():
        if isinstance(values, dict):
            assert ours[name] == values
        else:
            assert sorted(map(str, ours[name])) == sorted(
                str(tuple(v) if isinstance(v, list) else v) for v in values
            ), name
