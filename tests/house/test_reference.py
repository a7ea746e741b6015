"""The table of operators is what declarations, kernels and golden files give."""

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import tables
from mxcore.testing.case import Case
from mxcore.testing.catalogue import stock_operators

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool():
    """What the tool defines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MXCORE_PLUGINS", "cpu_numba")
        patch.setenv("MXCORE_DISABLE_PLUGINS", "cpu_onednn")
        return runpy.run_path(str(ROOT / "tools" / "make_reference.py"), run_name="tool")


def test_the_table_is_fresh():
    done = subprocess.run(
        [sys.executable, "tools/make_reference.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, f"run tools/make_reference.py; stale: {done.stdout}{done.stderr}"


def test_cells(tool):
    def cells(name):
        return [c.strip() for c in tool["row"](tables.ops.get(name), {name: (3, 3)}).strip("|").split(" | ")]

    assert cells("tanh")[2:] == [
        "second order",
        "kernel (float32, float64)" if tables.kernels.of("cpu", tables.ops.get("tanh")) else "reference",
        "array namespace",
        "`tanh(data)`",
        "3",
    ]
    assert cells("argmax")[2] == "zero" and cells("khatri_rao")[2] == "none"
    assert cells("_random_normal")[:2] == ["`_random_normal` (`normal`, `random_normal`)", "yes, random"]
    assert cells("sgd_mom_update")[1] == "yes, writes mom, sparse"
    assert cells("Convolution")[3] == "kernel (float32, float64)"
    assert cells("pick")[3] == "kernel (float32, float64)"  # which its kernel says by `when` alone
    assert cells("one_hot")[3] == "kernel (all dtypes)"
    assert cells("Embedding")[3] == "kernel (float32, float64)"  # for large tables
    assert cells("prod")[3] == "reference"
    assert tool["row"](tables.ops.get("tanh"), {"tanh": (2, 5)}).endswith("| 2 of 5 |")
    assert tool["row"](tables.ops.get("tanh"), {}).endswith("| 0 |")


def test_what_is_not_compared_is_listed(tool):
    found = tool["compared_not"]({"RNN", "gather_nd", "tanh"})
    assert found["MXNet uses lengths on the GPU only"] == {"RNN": 4} and found["forward only: its gradient aborts"] == {
        "gather_nd": 1
    }
    assert not any("tanh" in ops for ops in found.values())


def test_every_left_out_name_has_a_reason(tool, monkeypatch):
    assert sum(len(names) for _, names in tool["missing"]()) > 100
    monkeypatch.setitem(tool["missing"].__globals__, "LEFT_OUT", {"x": "_backward"})
    with pytest.raises(KeyError, match="add a reason"):
        list(tool["missing"]())


def differentiated_twice(op):
    """Whether every use of an operator among its samples has a second gradient; None if there is no use to try."""
    done = None
    for sample in op.samples:
        arrays = sample.arrays(sample.dtypes[-1])
        wanted = Case(op, sample, sample.dtypes[-1], mx.cpu()).wants()
        if not any(wanted) or 0 in [d for a in arrays for d in a.shape]:
            continue
        xs = [mx.nd.array(a, dtype=a.dtype) for a in arrays]
        variables = [x for x, w in zip(xs, wanted) if w]
        for x in variables:
            x.attach_grad()
        with mx.autograd.record(sample.train):
            ys = op(*xs, **sample.params)
            ys = [y for y in (ys if isinstance(ys, list) else [ys]) if np.dtype(y.dtype).kind == "f"]
            if not ys:
                continue
            try:
                slopes = mx.autograd.grad(ys, variables, create_graph=True, train_mode=sample.train)
                if heads := [s for s in slopes if s._entry is not None]:
                    mx.autograd.backward(heads)
            except NotImplementedError:
                return False
        done = True
    return done


@pytest.mark.slow
def test_second_orders_are_what_the_tape_does(tool):
    """What the table concludes from the graph of gradients is so when it is tried."""
    wrong = {}
    for _, op in stock_operators():
        said = tool["slope"](op)
        if said in ("yes", "second order") and not op.stateful and differentiated_twice(op) is (said != "second order"):
            wrong[op.name] = said
    assert not wrong
