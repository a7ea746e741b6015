"""The sparse examples reach, epoch by epoch, the losses of the same scripts on MXNet 1.9.1."""

import re

import pytest

#: What MXNet prints, with its name in the import.
LOSSES = {
    "factorization_machine": [0.69506, 0.42271, 0.20416, 0.07939, 0.02931],
    "wide_and_deep": [0.67233, 0.56520, 0.50996, 0.46191, 0.42011, 0.37768, 0.33719, 0.30169],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_those_of_mxnet(example, name):
    printed = example(name)
    found = [float(loss) for loss in re.findall(r"^epoch \d+: loss (\S+),", printed, re.M)]
    assert found == pytest.approx(LOSSES[name], rel=1e-3)
    assert name != "factorization_machine" or "storage of the weights: row_sparse row_sparse" in printed
