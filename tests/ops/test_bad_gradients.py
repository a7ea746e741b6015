"""The operators that gradients are made of say which of their inputs does not fit the others."""

import numpy as np
import pytest

from mxcore._core import tables

from .bad_input import BOTH, check_refused

_POOL = {"kernel": (2, 2), "stride": (2, 2), "pool_type": "avg"}
_ROWS, _PART = (("a", 0),), (("s", 1, 3, None), 2)

#: operator, shapes of inputs, parameters, what the message says
CASES = [
    ("_backward_image_to_tensor", [(3, 4, 6), (4, 5, 3)], {}, "dy is (3, 4, 6) where (3, 4, 5) is expected"),
    (
        "_backward_image_crop",
        [(2, 2, 3), (5, 6, 3)],
        {"x": 0, "y": 0, "width": 3, "height": 2},
        "dy is (2, 2, 3) where (2, 3, 3) is expected",
    ),
    ("_backward_image_resize", [(3, 3, 3), (5, 6, 3)], {"size": (4, 3)}, "dy is (3, 3, 3) where (3, 4, 3) is expected"),
    ("_backward_ctc_loss", [(3,), (5, 2, 4), (2, 2)], {}, "dy is (3,) where (2,) is expected"),
    ("_backward_IdentityAttachKLSparseReg", [(4, 2), (4, 3), (3,)], {}, "dy is (4, 2) where (4, 3) is expected"),
    ("_backward_IdentityAttachKLSparseReg", [(4, 3), (4, 3), (4,)], {}, "moving_avg is (4,) where (3,) is expected"),
    ("_backward_softmax_cross_entropy", [(2,), (4, 3), (4,)], {}, "dy is (2,) where (1,) is expected"),
    ("_backward_softmax_cross_entropy", [(1,), (4, 3), (3,)], {}, "differ in dimension 0"),
    ("_sum_like", [(2, 3, 4), (2, 1)], {}, "like (2, 1) cannot be broadcast to (2, 3, 4)"),
    ("_sum_like", [(3,), (2, 3)], {}, "like (2, 3) cannot be broadcast to (3,)"),
    ("_broadcast_back", [(3, 2), (2, 3, 4)], {}, "data (3, 2) cannot be broadcast to (2, 3, 4)"),
    ("_slice_spread", [(2, 3), (4, 5)], {"begin": (1, 0), "end": (3, 4)}, "data is (2, 3) where (2, 4) is expected"),
    (
        "_backward_Pooling",
        [(1, 1, 2, 3), (1, 1, 4, 4), (1, 1, 2, 2)],
        _POOL,
        "dy is (1, 1, 2, 3) where (1, 1, 2, 2) is expected",
    ),
    (
        "_backward_Pooling",
        [(1, 1, 2, 2), (1, 1, 4, 4), (1, 1, 3, 2)],
        _POOL,
        "out is (1, 1, 3, 2) where (1, 1, 2, 2) is expected",
    ),
    (
        "_backward_Pooling_v1",
        [(1, 1, 2, 3), (1, 1, 4, 4), (1, 1, 2, 2)],
        _POOL,
        "dy is (1, 1, 2, 3) where (1, 1, 2, 2) is expected",
    ),
    ("_basic_index_spread", [(3,), (4, 5)], {"index": _PART}, "data is (3,) where (2,) is expected"),
    (
        "_advanced_index_spread",
        [(3, 5), (4, 5), (2,)],
        {"index": _ROWS, "num_args": 1},
        "data is (3, 5) where (2, 5) is expected",
    ),
    (
        "_bias_like",
        [(4,), (2, 3, 4)],
        {},
        "the bias (4,) must have one element, or one for each place on axis 1 of (2, 3, 4)",
    ),
    (
        "_bias_sum",
        [(2, 3, 4), (2,)],
        {"axis": -1},
        "the bias (2,) must have one element, or one for each place on axis -1 of (2, 3, 4)",
    ),
    ("_backward_sample_multinomial", [(2, 3), (2, 3), (2, 4)], {}, "dy is (2, 3) where (2, 4) is expected"),
    (
        "_backward_sample_multinomial",
        [(3, 4), (2, 3), (3, 4)],
        {},
        "sample (3, 4) must begin with the shape of the distributions, (2,)",
    ),
    ("_order_pick", [(2, 4), (3, 2)], {"axis": 1}, "places is (3,) where (2,) is expected"),
    ("_order_spread", [(2, 3), (2, 2), (2, 4)], {"axis": 1}, "data is (2, 3) where (2, 2) is expected"),
    ("_order_spread", [(3, 2), (3, 2), (2, 4)], {"axis": 1}, "places is (3,) where (2,) is expected"),
    ("_trailing_like", [(3,), (2, 3)], {}, "like (2, 3) does not begin with data (3,)"),
    ("_trailing_sum", [(2, 3), (3,)], {}, "data (2, 3) does not begin with like (3,)"),
    ("_middle_like", [(2, 3), (2, 3, 4)], {}, "(2, 3, 4) must be (2, 3) with further dimensions before the last"),
    ("_middle_sum", [(2, 3, 4), (3, 4)], {}, "(2, 3, 4) must be (3, 4) with further dimensions before the last"),
    ("_backward_FullyConnected", [(2, 5), (2, 3), (4, 3)], {"num_hidden": 4}, "dy is (2, 5) where (2, 4) is expected"),
    (
        "_backward_FullyConnected",
        [(2, 4), (2, 3, 2), (4, 3)],
        {"num_hidden": 4},
        "weight is (4, 3) where (4, 6) is expected",
    ),
    ("_backward_LayerNorm", [(3, 4), (3, 5), (5,), (3, 1), (3, 1)], {}, "dy is (3, 4) where (3, 5) is expected"),
    ("_backward_LayerNorm", [(3, 5), (3, 5), (4,), (3, 1), (3, 1)], {}, "gamma is (4,) where (5,) is expected"),
    (
        "_backward_GroupNorm",
        [(3, 4, 2), (3, 4, 2), (2,), (3, 4), (3, 2)],
        {"num_groups": 2},
        "mean is (3, 4) where (3, 2) is expected",
    ),
    (
        "_backward_InstanceNorm",
        [(3, 4, 2), (3, 4, 2), (4,), (3, 4), (3, 1)],
        {},
        "std is (3, 1) where (3, 4) is expected",
    ),
    ("_backward_SoftmaxOutput", [(3, 4), (2,)], {}, "label is (2,) where (3,) is expected"),
    ("_backward_SoftmaxOutput", [(3, 4), (3,), (3, 2)], {"out_grad": True}, "dy is (3, 2) where (3, 4) is expected"),
    ("_backward_take", [(4, 2, 3), (2, 2), (4, 3)], {}, "dy is (4, 2, 3) where (2, 2, 3) is expected"),
    ("_backward_boolean_mask", [(2, 2), (4, 3), (4,)], {}, "dy is (2, 2) where (2, 3) is expected"),
    ("_backward_boolean_mask", [(2, 3), (4, 3), (3,)], {}, "index is (3,) where (4,) is expected"),
]


@BOTH
@pytest.mark.parametrize("name, shapes, params, words", CASES, ids=[f"{i}-{row[0]}" for i, row in enumerate(CASES)])
def test_inputs_that_do_not_fit(name, shapes, params, words, call):
    arrays = [np.ones(s, np.float32) for s in shapes]
    check_refused(call, tables.ops.get(name), arrays, params, words, kind=ValueError)
