"""FullyConnected: shapes in both directions, dtypes, higher order gradients, what is computed."""

import numpy as np
import pytest

import mxcore as mx
from mxcore._core.frontend import eager
from mxcore.testing.gradcheck import check_grads

from .golden.corners import wave


def test_shapes_forward(shapes):
    assert shapes("FullyConnected", [(2, 3, 4), None, None], num_hidden=5) == ([(2, 3, 4), (5, 12), (5,)], [(2, 5)])
    assert shapes("FullyConnected", [(2, 3, 4), None], num_hidden=5, flatten=False, no_bias=True) == (
        [(2, 3, 4), (5, 4)],
        [(2, 3, 5)],
    )


def test_shapes_from_output_and_weight(shapes):
    assert shapes("FullyConnected", [(-1, 3), None, None], [(7, 5)], num_hidden=5)[0][0] == (7, 3)
    assert shapes("FullyConnected", [None, (5, 4), None], [(2, 3, 5)], num_hidden=5, flatten=False)[0][0] == (2, 3, 4)
    assert shapes("FullyConnected", [(2, -1), (5, 4), None], num_hidden=5)[0][0] == (2, 4)
    assert shapes("FullyConnected", [(-1, 3, 4), None, None], num_hidden=5)[1] == [(-1, 5)]


@pytest.mark.parametrize(
    ("ins", "outs", "say"),
    [
        ([(3, 5), (4, 6), None], None, r"weight is \(4, 6\) where \(4, 5\) is expected"),
        ([(3, 5), None, (3,)], None, r"bias is \(3,\) where \(4,\) is expected"),
        ([(3, 5), None, None], [(3, 7)], r"output is \(3, 7\) where \(3, 4\) is expected"),
    ],
)
def test_contradictions(shapes, ins, outs, say):
    with pytest.raises(ValueError, match=f"operator FullyConnected: .*{say}"):
        shapes("FullyConnected", ins, outs, num_hidden=4)


def test_half_precision_sums_in_single():
    x, w = mx.nd.ones((1, 4096), dtype="float16"), mx.nd.ones((1, 4096), dtype="float16")
    y = mx.nd.FullyConnected(x, w, num_hidden=1, no_bias=True)
    assert y.dtype == np.float16 and y.asscalar() == 4096


def test_mixed_dtypes_are_refused():
    with pytest.raises(TypeError, match="weight is float64 where float32 is expected"):
        mx.nd.FullyConnected(mx.nd.ones((1, 2)), mx.nd.ones((1, 2), dtype="float64"), num_hidden=1, no_bias=True)


@pytest.mark.parametrize("flatten", [True, False])
def test_second_order(flatten):
    w = wave((4, 15 if flatten else 5), 2)
    check_grads(
        lambda x, w, b: mx.nd.FullyConnected(x, w, b, num_hidden=4, flatten=flatten) ** 2,
        [wave((2, 3, 5), 1), w, wave((4,), 3)],
        order=2,
    )


def test_only_wanted_gradients_are_computed():
    found = eager._backward_FullyConnected(
        mx.nd.ones((2, 4)), mx.nd.ones((2, 3)), mx.nd.ones((4, 3)), num_hidden=4, wanted=(False, True, False)
    )
    assert found[0] is None and found[2] is None and found[1].shape == (4, 3)
