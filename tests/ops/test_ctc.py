"""CTCLoss: against the sum over all alignments, lengths, refusals."""

from itertools import product

import numpy as np
import pytest

import mxcore as mx
from mxcore.testing.gradcheck import check_grads

from .golden.corners import wave


def brute_force(x, label, blank):
    """Minus the log of the summed probability of every path that collapses to the label."""
    p = np.exp(x.astype(np.float64))
    p /= p.sum(1, keepdims=True)
    total = 0.0
    for path in product(range(x.shape[1]), repeat=x.shape[0]):
        collapsed = [c for i, c in enumerate(path) if c != blank and (i == 0 or path[i - 1] != c)]
        if collapsed == label:
            total += np.prod([p[t, c] for t, c in enumerate(path)])
    return -np.log(total)


@pytest.mark.parametrize(
    ("blank_label", "label", "padded"),
    [
        ("first", [1, 2], [1, 2, 0]),
        ("first", [2, 2], [2, 2, 0]),
        ("first", [], [0, 0, 0]),
        ("last", [0, 1], [0, 1, -1]),
        ("last", [0, 0, 1], [0, 0, 1]),
    ],
)
def test_all_alignments(blank_label, label, padded):
    x = wave((5, 1, 3), 1)
    found = mx.nd.CTCLoss(mx.nd.array(x), mx.nd.array([padded]), blank_label=blank_label).asnumpy()
    assert found[0] == pytest.approx(brute_force(x[:, 0], label, 0 if blank_label == "first" else 2), rel=1e-5)


def test_lengths():
    x = wave((6, 2, 3), 1)
    found = mx.nd.CTCLoss(
        mx.nd.array(x),
        mx.nd.array([[1, 2], [2, 1]]),
        mx.nd.array([6, 4]),
        mx.nd.array([1, 2]),
        use_data_lengths=True,
        use_label_lengths=True,
    ).asnumpy()
    np.testing.assert_allclose(found, [brute_force(x[:, 0], [1], 0), brute_force(x[:4, 1], [2, 1], 0)], rtol=1e-5)


def test_gradient():
    label, data_lengths = mx.nd.array([[1, 2], [1, 1]]), mx.nd.array([5, 4])
    check_grads(lambda x: mx.nd.CTCLoss(x, label, data_lengths, use_data_lengths=True), [wave((5, 2, 3), 1)])


def loss_and_gradient(x, label, dtype):
    x = mx.nd.array(x, dtype=dtype)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.CTCLoss(x, mx.nd.array(label))
    y.backward()
    return y.asnumpy(), x.grad.asnumpy()


@pytest.mark.parametrize("dtype", ["float32", "float16"])  # by a kernel, by the body
def test_a_class_that_cannot_be(dtype):
    """Its logit is minus infinity: all is as if it were not there, and a label that holds it is impossible."""
    x = wave((4, 2, 3), 1)
    loss, gradient = loss_and_gradient(np.insert(x, 2, -np.inf, axis=2), [[1, 3], [2, 1]], dtype)
    expected_loss, expected = loss_and_gradient(x, [[1, 2], [0, 0]], dtype)
    np.testing.assert_allclose(loss, [expected_loss[0], np.inf], rtol=2e-3)
    np.testing.assert_allclose(gradient[:, 0], np.insert(expected[:, 0], 2, 0, axis=1), atol=2e-3)
    chance = np.exp(x[:, 1]) / np.exp(x[:, 1]).sum(1, keepdims=True)
    np.testing.assert_allclose(gradient[:, 1], np.insert(chance, 2, 0, axis=1), atol=2e-3)


def test_shapes(shapes):
    assert shapes("CTCLoss", [(5, -1, 3), (2, 4)]) == ([(5, 2, 3), (2, 4)], [(2,)])
    with pytest.raises(ValueError, match="labels of length 4 are longer than the 3 time steps"):
        shapes("CTCLoss", [(3, 2, 3), (2, 4)])
    with pytest.raises(ValueError, match=r"data \(time, N, C\) must have 3 dimensions"):
        shapes("CTCLoss", [(3, 2), (2, 4)])


def test_labels_out_of_range():
    for dtype in ("float32", "float16"):  # by a kernel, by the body
        for bad, words in (
            (7, "from 1 to 7"),
            (-3, "from -3 to 1"),
            (np.nan, "that are NaN"),
            (np.inf, "from 1 to inf"),
        ):
            with pytest.raises(
                IndexError, match=f"operator CTCLoss.*: labels {words} are given, there are classes from 0 to 2"
            ):
                mx.nd.CTCLoss(mx.nd.ones((5, 1, 3), dtype=dtype), mx.nd.array([[bad, 1]])).wait_to_read()


def test_labels_that_do_not_fit():
    """Two equal classes need a blank between them: with too few steps the loss is 0 and there is no gradient."""
    x = mx.nd.array(wave((3, 3, 4), 1))
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.CTCLoss(x, mx.nd.array([[1, 1, 0], [1, 1, 2], [2, 2, 2]]))
    y.backward()
    assert y.asnumpy()[0] > 0 and y.asnumpy()[1:].tolist() == [0, 0]
    assert x.grad.asnumpy()[:, 0].any() and not x.grad.asnumpy()[:, 1:].any()
    none = mx.nd.CTCLoss(x, mx.nd.array([[1, 0, 0]] * 3), mx.nd.array([0, 1, 3]), use_data_lengths=True).asnumpy()
    assert none[0] == 0 and none[1] > 0 and none[2] > 0
