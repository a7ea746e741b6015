"""Samples of the operators in :mod:`mxcore.ops.indexing`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...testing.sample import Ints, Sample

__all__ = ["SAMPLES"]

_PART = ("s", 1, 3, None)


_BACK = ("s", None, None, -2)


_ALL = ("s", None, None, None)


def _internal(*inputs: Any, index: Any) -> Sample:
    n = sum(isinstance(k, tuple) and k[0] == "a" for k in index)
    return Sample(*inputs, params={"index": index, **({"num_args": n} if n else {})}, mxnet="internal")


_I = np.array([[0, 2], [2, 0]])


_J = np.array([1, 3])


SAMPLES = {
    "_basic_index": [
        _internal((4, 5), index=(_PART, 2)),
        _internal((4, 5), index=(None, 1, _BACK)),
        _internal((4, 0), index=(_PART,)),
        _internal((4, 5), index=()),
        _internal((4, 5, 2), index=(-1, _BACK, -2)),
        _internal((4, 5), index=(("s", -3, -1, None), None, ("s", 4, 0, -3))),
        _internal((3,), index=(None, 0, None)),
    ],
    "_basic_index_spread": [
        _internal((2,), (4, 5), index=(_PART, 2)),
        _internal((1, 2), (4, 3), index=(None, -1, _BACK)),
        _internal((4, 5), (4, 5), index=()),
    ],
    "_advanced_index": [
        _internal((3, 4), _I, index=(("a", 0),)),
        _internal((3, 2, 4), _I, _J, index=(("a", 0), ("s", None, None, -1), ("a", 1))),
        _internal((5,), np.array([-1, 0, -1]), index=(("a", 0),)),
        _internal((3, 4), Ints((2,), 0, 3), index=(("a", 0), 1)),
        _internal((3, 4), np.array([[1], [2]]), _J, index=(("a", 0), ("a", 1))),
        _internal((2, 3, 4), _J, index=(1, None, _BACK, ("a", 0))),
        _internal((3, 4), np.zeros((0, 2), np.int64), index=(("a", 0),)),
    ],
    "_advanced_index_spread": [
        _internal((2, 2, 4), (3, 4), _I, index=(("a", 0),)),
        _internal((3,), (5,), np.array([-1, 0, -1]), index=(("a", 0),)),
        _internal((2, 2), (3, 4), np.array([[1], [2]]), _J, index=(("a", 0), ("a", 1))),
    ],
    "_slice_set": [
        _internal((4, 5), (2, 5), index=(_PART,)),
        _internal((4, 5), (1,), index=(_BACK, 3)),
        _internal((4, 5), (4, 1), index=()),
        _internal((4, 5), (1, 5), index=(-1,)),
        _internal((4, 5, 2), (2, 1, 2), index=(("s", -2, None, None), ("s", 0, 2, None))),
    ],
    "_advanced_set": [
        _internal((3, 4), (2, 4), np.array([0, 2]), index=(("a", 0),)),
        _internal((3, 4), (1,), np.array([0, 2]), np.array([3, 1]), index=(("a", 0), ("a", 1))),
        _internal((3, 4), (3, 2), _J, index=(_ALL, ("a", 0))),
        _internal((3, 4), (2,), np.array([-1, 0]), index=(("a", 0), 2)),
    ],
}
