"""Metrics against the values of MXNet 1.9.1 (`tests/golden/make_metric_golden.py`)."""

import json
import math
import pathlib

import pytest

import mxcore as mx

GOLDEN = json.loads((pathlib.Path(__file__).parents[1] / "golden" / "data" / "metrics.json").read_text())


def same(value, expected):
    return math.isnan(value) if expected is None else value == pytest.approx(expected, rel=2e-6, abs=1e-7)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda c: "-".join([c["class"], c["batches"]]))
def test_values(case):
    metric = getattr(mx.metric, case["class"])(**case["arguments"])
    has_global = case["arguments"] != {"average": "micro"} or case["class"] != "PearsonCorrelation"
    for i, (label, pred) in enumerate(GOLDEN["batches"][case["batches"]]):
        how = GOLDEN["resets"].get(str(i))
        if how:
            getattr(metric, how)()
        metric.update([mx.nd.array(label)], [mx.nd.array(pred)])
        local, overall = case["values"][i]
        assert same(metric.get()[1], local)
        # MXNet's global account of the micro correlation is always 0; here it is that since the last reset.
        assert same(metric.get_global()[1], overall if has_global else local)
