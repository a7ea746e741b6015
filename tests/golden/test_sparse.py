"""Operators on sparse arrays keep the storage types of the real MXNet 1.9.1, and give its values.

``sparse_cases.py`` holds the calls, ``make_sparse_golden.py`` ran them in MXNet.
"""

import json
import pathlib

import numpy as np
import pytest

import mxcore as mx

from . import sparse_cases

GOLDEN = json.loads((pathlib.Path(__file__).resolve().parent / "data" / "sparse.json").read_text())
CASES = dict(sparse_cases.cases(mx))


def test_the_file_holds_these_cases():
    assert set(GOLDEN) == set(CASES)


@pytest.mark.parametrize("name", [n for n, v in GOLDEN.items() if v is not None])
def test_as_mxnet(name):
    found, want = sparse_cases.facts(CASES[name]()), GOLDEN[name]
    assert found[:3] == want[:3]
    np.testing.assert_allclose(
        *[[np.nan if v is None else v for v in facts[3]] for facts in (found, want)], rtol=1e-5, atol=1e-6
    )
