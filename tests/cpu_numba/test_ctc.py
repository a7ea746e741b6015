"""CTC against the operators' bodies, which sum over the same alignments with NumPy."""

import types

import numpy as np
import pytest

import mxcore as mx
from mxcore.plugin import find_op
from mxcore_cpu.kernels import ctc

TIMES, SAMPLES, CLASSES, WIDTH = 9, 6, 5, 4


#: What the operators make of labels, for bodies and kernels alike.
read_labels = find_op("CTCLoss").facet("helpers").read_labels


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
    params = {
        "use_data_lengths": data_lengths,
        "use_label_lengths": label_lengths,
        "blank_label": "first" if first else "last",
    }
    given = [data, label, *(v for v in (steps, counts) if v is not None)]
    forward, backward = find_op("CTCLoss"), find_op("_backward_ctc_loss")
    k, close = (
        types.SimpleNamespace(xp=np),
        dict(rtol=1e-4, atol=2e-5) if dtype == "f4" else dict(rtol=1e-11, atol=1e-12),
    )
    loss, gradient = np.full(SAMPLES, np.nan, dtype), np.full_like(data, np.nan)
    labels = read_labels(np, data.shape, label, steps, counts, first)
    ctc.loss(data, labels, loss)
    np.testing.assert_allclose(loss, forward.body(k, forward.parser(params), *given), **close)
    assert (loss == 0).any() == data_lengths, "only labels that do not fit cost nothing"
    ctc.loss_backward(dy, data, labels, gradient)
    np.testing.assert_allclose(gradient, backward.body(k, backward.parser(params), dy, *given), **close)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_minus_infinity_as_the_body(dtype):
    """Logits of classes that cannot be, on the path of the label and beside it, and labels that cannot be at all."""
    data, label, *_, dy = problem(dtype, True, False, False)
    data[0, 0], data[2, 2, label[2, 0]], data[:4, 3, 0], data[:, 4, label[4, 1]], data[3:5, 5, 0] = (
        0,
        -np.inf,
        -np.inf,
        -np.inf,
        -np.inf,
    )
    data[:, 1, label[1, 0]] = -1e31
    backward, k, gradient, loss = (
        find_op("_backward_ctc_loss"),
        types.SimpleNamespace(xp=np),
        np.empty_like(data),
        np.empty(SAMPLES, dtype),
    )
    labels = read_labels(np, data.shape, label, None, None, True)
    ctc.loss(data, labels, loss)
    # Label 3 is empty: blanks only.
    assert np.isinf(loss).tolist() == [i in (3, 4) for i in range(SAMPLES)] and loss[1] >= 1e30
    ctc.loss_backward(dy, data, labels, gradient)
    expected = backward.body(k, backward.parser({}), dy, data, label)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=2e-5)
    chance = np.exp(data[:, 4] - np.logaddexp.reduce(data[:, 4], axis=1, keepdims=True))
    np.testing.assert_allclose(
        gradient[:, 4], chance * dy[4], rtol=1e-4, err_msg="no alignment is left: only the chances of the classes"
    )


def test_a_class_that_is_none():
    data, label, *_ = problem("f4", True, False, False)
    label[1, 0] = CLASSES
    with pytest.raises(IndexError, match="labels from 1 to 5 are given, there are classes from 0 to 4"):
        mx.nd.CTCLoss(mx.nd.array(data), mx.nd.array(label)).wait_to_read()
