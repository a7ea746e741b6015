"""Corners of the neural operators against values of the real MXNet 1.9.1 (made by ``golden/make_corners.py``)."""
from pathlib import Path

import numpy as np
import pytest

import mxcore as mx

from .golden.corners import CASES, run

FILE = Path(__file__).parent / "golden" / "corners.npz"


@pytest.fixture(scope="module")
def golden():
    with np.load(FILE) as f:
        return dict(f)


def test_file_holds_these_cases(golden):
    assert golden["names"].tolist() == [repr(c) for c in CASES]


@pytest.mark.parametrize("i", range(len(CASES)), ids=[repr(c) for c in CASES])
def test_corner(i, golden):
    found = run(mx, CASES[i])
    expected = [golden[f"{i}.{j}"] for j in range(len(found))]
    assert f"{i}.{len(found)}" not in golden
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
