"""CTC against the operators' bodies, which sum over the same alignments with NumPy."""
import types

import numpy as np
import pytest

from mxcore._core import registry
from mxcore_cpu.kernels import ctc

TIMES, SAMPLES, CLASSES, WIDTH = 9, 6, 5, 4


def problem(dtype, first, data_lengths, label_lengths):
    rng = np.random.default_rng(0)
    data = (rng.standard_normal((TIMES, SAMPLES, CLASSES)) * 3).astype(dtype)
    label = rng.integers(1, CLASSES, (SAMPLES, WIDTH)) - (not first)
    label[0] = label[0, 0]  # needs blanks between
    label[2, 2:] = label[3] = 0 if first else -1
    steps = np.array([9, 1, 0, 5, 3, 8]) if data_lengths else None
    counts = np.array([4, 0, 2, 3, 1, 9]) if label_lengths else None
    if label_lengths:
        label = np.where(label < 1, 1, label)
    return data, label, steps, counts, rng.standard_normal(SAMPLES).astype(dtype)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("label_lengths", [False, True])
@pytest.mark.parametrize("data_lengths", [False, True])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_as_the_body(dtype, first, data_lengths, label_lengths, workers, monkeypatch):
    for kernel in (ctc._losses, ctc._gradients):
        monkeypatch.setattr(kernel, "workers", lambda work: workers)
    data, label, steps, counts, dy = problem(dtype, first, data_lengths, label_lengths)
    params = {"use_data_lengths": data_lengths, "use_label_lengths": label_lengths, "blank_label": "first" if first else "last"}
    given = [data, label, *(v for v in (steps, counts) if v is not None)]
    forward, backward = registry.ops.get("CTCLoss"), registry.ops.get("_backward_ctc_loss")
    k, close = types.SimpleNamespace(xp=np), dict(rtol=1e-4, atol=2e-5) if dtype == "f4" else dict(rtol=1e-11, atol=1e-12)
    loss, gradient = np.full(SAMPLES, np.nan, dtype), np.full_like(data, np.nan)
    ctc.loss(data, label, steps, counts, first, loss)
    np.testing.assert_allclose(loss, forward.body(k, forward.parser(params), *given), **close)
    assert (loss == 0).any() == data_lengths, "only labels that do not fit cost nothing"
    ctc.loss_backward(dy, data, label, steps, counts, first, gradient)
    np.testing.assert_allclose(gradient, backward.body(k, backward.parser(params), dy, *given), **close)


def test_a_class_that_is_none():
    data, label, *_ = problem("f4", True, False, False)
    label[1, 0] = CLASSES
    with pytest.raises(IndexError, match="label 5 is not one of the 5 classes"):
        ctc.loss(data, label, None, None, True, np.empty(SAMPLES, "f4"))
