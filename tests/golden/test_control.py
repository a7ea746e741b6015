"""Operators in Python and loops give what they gave in MXNet 1.9.1: over arrays, bound, loaded from its files.

``control_cases.py`` holds the cases, ``make_control_golden.py`` ran them in MXNet.
"""

import functools
import json
import pathlib

import pytest

import mxcore as mx
from mxcore.symbol import contrib
from mxcore.testing.pack import Pack
from mxcore.testing.tolerance import GOLDEN, compare

from . import control_cases

#: In MXNet's file the variables inside count the writes that the loop's own inputs got; a file does not tell that they
#: are the same.
NOT_WRITTEN_AGAIN = {"loop_normal"}


#: Some result is an input: over arrays the very same one, which has no gradient of its own.
PASSED_ON = {"copies", "swap", "lists", "one_side"}


@functools.cache
def golden():
    """Case -> (arrays by name, the text of the symbol)."""
    pack = Pack.load(str(pathlib.Path(__file__).resolve().parent / "data" / "scripts" / "control.npz"))
    return {
        e["case"]: ({k: pack.get(i).astype(t) for k, (i, t) in e["arrays"].items()}, e["json"]) for e in pack.entries
    }


@functools.cache
def results():
    """What the cases give here; loops are named after how often they were made, so all run once, in MXNet's order."""
    contrib._counts.clear()
    return {name: control_cases.run(mx, name) for name in control_cases.CASES}


def result(name):
    return results()[name]


@pytest.fixture(scope="module", autouse=True)
def operators():
    control_cases.register(mx)


def check(arrays, name):
    """All arrays are MXNet's, in value and dtype."""
    want = golden()[name][0]
    assert set(arrays) == set(want)
    for key, value in arrays.items():
        assert value.dtype == want[key].dtype, f"{name}: {key} is {value.dtype}, in MXNet {want[key].dtype}"
        compare(value, want[key], str(want[key].dtype), f"{name}, {key}", 1.0, GOLDEN)


@pytest.mark.parametrize("name", control_cases.CASES)
def test_numbers(name):
    check(result(name)[0], name)


@pytest.mark.parametrize("name", [n for n, (_, text) in golden().items() if text])
def test_symbols(name):
    assert result(name)[1] == golden()[name][1]


@pytest.mark.parametrize("name", [n for n in control_cases.CASES if n.startswith("loop_bound")])
def test_loops_from_files(name):
    loaded = mx.sym.load_json(golden()[name][1])
    check(control_cases.run_bound(mx, loaded, **control_cases.loop_symbol(mx, name[len("loop_bound_") :])[1]), name)


@pytest.mark.parametrize("name", [n for n in control_cases.CASES if n.startswith(("while_bound", "cond_bound"))])
def test_flow_from_files(name):
    kind, _, case = name.split("_", 2)
    loaded = mx.sym.load_json(golden()[name][1])
    shapes = control_cases.flow_symbol(mx, kind, case)[1]
    check(control_cases.flow_run(mx, loaded, shapes, case not in control_cases.UNTRAINED, kind == "while"), name)


@pytest.mark.parametrize(
    "kind, case",
    [
        (kind, name)
        for kind, table in (("while", control_cases.WHILES), ("cond", control_cases.CONDS))
        for name in table
        if name not in PASSED_ON
    ],
)
def test_gradients_are_those_of_arrays(kind, case):
    """Operators have gradients where MXNet cannot bind them, or leaves some undefined: those of its arrays."""
    result(f"{kind}_bound_{case}")
    s, shapes = control_cases.flow_symbol(mx, kind, case)
    found = control_cases.flow_run(mx, s, shapes)
    arrays = golden()[f"{kind}_arrays_{case}"][0]
    wanted = {k: v for k, v in arrays.items() if k.startswith("grad")}
    assert len(wanted) == len(shapes)
    for i in range(len(shapes)):
        compare(found[f"1.grad{i}"], wanted[f"grad{i}"], "float32", f"{kind} {case}, gradient {i}", 1.0, GOLDEN)


def test_files_are_written_again_as_they_were():
    texts = {name: text for name, (_, text) in golden().items() if text}
    assert len(texts) > 15
    for name, text in texts.items():
        again = mx.sym.load_json(text).tojson()
        assert again == text or name in NOT_WRITTEN_AGAIN and json.loads(again)["heads"] == json.loads(text)["heads"], (
            name
        )


def test_no_case_is_left_out():
    assert set(golden()) == set(control_cases.CASES)
