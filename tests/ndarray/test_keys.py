"""Readings of keys, as MXNet 1.9.1 gives them."""

import numpy as np
import pytest

import mxcore as mx

ALL = slice(None)
INDICES = mx.nd.array([0, 1])


@pytest.mark.parametrize(
    "key, code",
    [
        ((1,), 0),
        ((ALL, 1), 0),
        ((None,), 0),
        ((True,), 0),
        ((slice(None, None, 2),), 0),
        ((INDICES,), 1),
        ((INDICES, 1), 1),
        (([0, 1],), 1),
        ((np.array([1]),), 1),
        ((slice(0, 2), INDICES), 1),
        ((np.array([True]),), 1),
    ],
)
def test_codes(key, code):
    assert mx.nd.get_indexing_dispatch_code(key) == code


@pytest.mark.parametrize("part", ["a", 1.5, ...])
def test_what_is_no_key(part):
    with pytest.raises(ValueError, match="does not support slicing with key"):
        mx.nd.get_indexing_dispatch_code((part,))


@pytest.mark.parametrize(
    "data, indices, out", [((2, 3, 4), (2, 5), (5, 4)), ((2, 3, 4), (1,), (3, 4)), ((2, 3), (2, 5, 6), (5, 6))]
)
def test_shapes_of_gather_nd(data, indices, out):
    assert mx.nd.get_oshape_of_gather_nd_op(data, indices) == out
    with pytest.raises(ValueError, match="name 3 axes"):
        mx.nd.get_oshape_of_gather_nd_op((2, 3), (3,))


@pytest.mark.parametrize(
    "key, shape, full, code",
    [
        ((1,), (2, 3), (1, ALL), -1),
        ((..., 1), (2, 3, 4), (ALL, ALL, 1), -1),
        (1, (2, 3), (1, ALL), -1),
        ((None, 1), (2, 3), (None, 1, ALL), -1),
        ((1, 1, 1), (2, 3), (1, 1, 1), -1),
        ([0, 1], (2, 3), ([0, 1], ALL), -1),
        ((True,), (2, 3), (ALL, ALL), 1),
        ((False, True), (2, 3), (ALL, ALL), 0),
    ],
)
def test_implicit_axes(key, shape, full, code):
    assert mx.nd.indexing_key_expand_implicit_axes(key, shape) == (full, code)


def test_one_ellipsis_only():
    with pytest.raises(IndexError, match="more than one ellipsis"):
        mx.nd.indexing_key_expand_implicit_axes((..., ...), (2, 3))
