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


@pytest.mark.parametrize(("blank_label", "label", "padded"), [
    ("first", [1, 2], [1, 2, 0]), ("first", [2, 2], [2, 2, 0]), ("first", [], [0, 0, 0]), ("last", [0, 1], [0, 1, -1]), ("last", [0, 0, 1], [0, 0, 1]),
])
def test_all_alignments(blank_label, label, padded):
    x = wave((5, 1, 3), 1)
    found = mx.nd.CTCLoss(mx.nd.array(x), mx.nd.array([padded]), blank_label=blank_label).asnumpy()
    assert found[0] == pytest.approx(brute_force(x[:, 0], label, 0 if blank_label == "first" else 2), rel=1e-5)


def test_lengths():
    x = wave((6, 2, 3), 1)
    found = mx.nd.CTCLoss(mx.nd.array(x), mx.nd.array([[1, 2], [2, 1]]), mx.nd.array([6, 4]), mx.nd.array([1, 2]),
                          use_data_lengths=True, use_label_lengths=True).asnumpy()
    np.testing.assert_allclose(found, [brute_force(x[:, 0], [1], 0), brute_force(x[:4, 1], [2, 1], 0)], rtol=1e-5)


def test_gradient():
    label, data_lengths = mx.nd.array([[1, 2], [1, 1]]), mx.nd.array([5, 4])
    check_grads(lambda x: mx.nd.CTCLoss(x, label, data_lengths, use_data_lengths=True), [wave((5, 2, 3), 1)])


def test_shapes(shapes):
    assert shapes("CTCLoss", [(5, -1, 3), (2, 4)]) == ([(5, 2, 3), (2, 4)], [(2,)])
    with pytest.raises(ValueError, match="labels of length 4 are longer than the 3 time steps"):
        shapes("CTCLoss", [(3, 2, 3), (2, 4)])
    with pytest.raises(ValueError, match=r"data \(time, N, C\) must have 3 dimensions"):
        shapes("CTCLoss", [(3, 2), (2, 4)])


def test_labels_out_of_range():
    for bad in (7, -3):
        with pytest.raises(IndexError, match="operator CTCLoss"):
            mx.nd.CTCLoss(mx.nd.ones((5, 1, 3)), mx.nd.array([[bad, 1]]))


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
