"""Operators of detection beside MXNet 1.9.1's."""

from __future__ import annotations

import numpy as np
import pytest

import mxcore as mx

from . import detection


@pytest.mark.parametrize("case", detection.CASES)
def test_detection(beside, ctx, case):
    with ctx:
        run = detection.runner(mx, case)
        assert np.isfinite(run().asnumpy()).all()
        beside(case, run, detection, (case,), 2, rounds=4, at_most=1)
