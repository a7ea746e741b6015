"""Ten steps of training with every optimizer, beside MXNet 1.9.1.

The file is made by `tests/golden/make_module_golden.py`.
"""

import pathlib

import numpy as np
import pytest

import mxcore as mx

from ..golden import module_cases as cases

with np.load(pathlib.Path(__file__).parents[1] / "golden" / "data" / "modules.npz") as _file:
    GOLDEN = dict(_file)


def test_every_optimizer_has_a_case():
    ours = {name for name, made in mx.optimizer.Optimizer.opt_registry.items() if made.__module__.startswith("mxcore.")}
    assert {name for name, *_ in cases.CASES.values()} == ours - {"sgld"}


@pytest.mark.parametrize("key", cases.CASES)
def test_runs_follow(key):
    found = np.array(cases.train(mx, GOLDEN, cases.CASES[key]))
    expected = GOLDEN["run." + key]
    assert np.isfinite(expected).all() and np.abs(expected[0] - expected[1]).max() > 1e-4
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)
