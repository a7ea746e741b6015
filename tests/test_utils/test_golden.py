"""test_utils beside that of the real MXNet 1.9.1."""

import inspect
import json
import pathlib

import numpy as np
import pytest

import mxcore as mx

from . import cases

GOLDEN = json.loads((pathlib.Path(__file__).resolve().parent / "golden.json").read_text())


@pytest.mark.parametrize("name", cases.FACTS)
def test_facts(name):
    found = json.loads(json.dumps(cases.FACTS[name](mx)))
    if name == "signatures":
        assert set(found) - set(GOLDEN[name]) == {"use_np"}  # which MXNet has in another module
        found = {n: found[n] for n in GOLDEN[name]}
    assert found == GOLDEN[name]


@pytest.mark.parametrize("case", cases.COMPARED)
def test_what_is_almost_equal_and_what_the_text_says(case):
    found, expected = cases.comparison(mx, case), GOLDEN["comparisons"][case]
    if expected is None or expected[0] is None:
        assert found == expected
    else:
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
        assert found[1] == expected[1]


def test_chi_squares():
    for (p, seen, wanted), (p0, seen0, wanted0) in zip(cases.chi_squares(mx), GOLDEN["chi_squares"], strict=True):
        np.testing.assert_allclose(p, p0, rtol=1e-9)
        assert seen == seen0 and np.abs(np.subtract(wanted, wanted0)).max() <= 1


def test_every_name_is_documented():
    t = mx.test_utils
    for name in t.__all__:
        assert inspect.getdoc(getattr(t, name)), name
    assert len(set(t.__all__)) == len(t.__all__) == 92
