"""Operators of detection beside MXNet 1.9.1's."""

from __future__ import annotations

import numpy as np
import pytest

import mxcore as mx

from . import detection

#: How many times MXNet's time a case may take; anything else no longer than MXNet.
MOST = {"MultiBoxDetection": 2.5}


@pytest.mark.parametrize("case", detection.CASES)
def test_detection(beside, ctx, case):
    with ctx:
        run = detection.runner(mx, case)
        assert np.isfinite(run().asnumpy()).all()
        beside(case, run, detection, (case,), 2, rounds=4, at_most=MOST.get(case.partition(",")[0], 1))
