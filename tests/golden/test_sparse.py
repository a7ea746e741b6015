"""Operators on sparse arrays keep the storage types of the real MXNet 1.9.1, and give its values and gradients.

``sparse_cases.py`` holds the calls, ``make_sparse_golden.py`` ran them in MXNet.
"""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import mxcore as mx

from . import sparse_cases

GOLDEN = json.loads((pathlib.Path(__file__).resolve().parent / "data" / "sparse.json").read_text())
CASES = dict(sparse_cases.cases(mx))
#: What differs on purpose, and why.
OURS = {
    "d(nd.dot(x, d))/dx csr to default": "MXNet leaves the gradient of a csr operand zero",
    "d(nd.dot(x, d, transpose_a=True))/dx csr to default": "the same",
    "d(nd.dot(d, x))/dx csr to default": "the same",
    "put(x, slice(None), 0)  row_sparse": "MXNet stores all rows of an array that is filled with zeros",
}
GROUPS = {"d(": "gradients", "nd.dot": "products", "nd.": "functions", "x ": "operators", "put": "writes"}


def group_of(name):
    return next((group for start, group in GROUPS.items() if name.startswith(start)), "others")


def differences(name):
    """What is not as in MXNet, if anything."""
    try:
        found, want = sparse_cases.facts(CASES[name]()), GOLDEN[name]
    except Exception as e:
        return f"{name}: {e!r}"
    if found[:3] + found[4:] != want[:3] + want[4:]:
        return f"{name}: {found}, MXNet {want}"
    values = [np.array([np.nan if v is None else v for v in facts[3]]) for facts in (found, want)]
    return None if np.allclose(*values, rtol=1e-5, atol=1e-6, equal_nan=True) else f"{name}: {values}"


def test_the_file_holds_these_cases():
    assert set(GOLDEN) == set(CASES) > set(OURS)


@pytest.mark.parametrize("group", [*GROUPS.values(), "others"])
def test_as_mxnet(group):
    names = [n for n, v in GOLDEN.items() if v is not None and group_of(n) == group and n not in OURS]
    assert names and not list(filter(None, map(differences, names)))


def test_the_page_of_storage_types_is_up_to_date():
    root = pathlib.Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "tools/make_sparse_reference.py", "--check"], cwd=root)
    assert done.returncode == 0, "run tools/make_sparse_reference.py"


@pytest.mark.parametrize("name", OURS)
def test_what_differs_still_does(name):
    assert differences(name)
