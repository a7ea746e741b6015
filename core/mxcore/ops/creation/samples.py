"""Samples of the operators of :mod:`mxcore.ops.creation`."""

from __future__ import annotations

from typing import Any

from ...testing.sample import Ints, Sample
from . import numpy_samples

__all__ = ["SAMPLES"]


def _filled(**value: Any) -> Any:
    """Uses of an operator that makes arrays of one value; `value`, if that is a parameter."""
    return [
        Sample(params={**q, **value}, grad=False)
        for q in (
            {"shape": (2, 3)},
            {"shape": (5,), "dtype": "float64"},
            {"shape": "(2, 1, 3)", "dtype": "int32"},
            {"shape": 3, "dtype": "float16"},
            {"shape": (2, 2), "dtype": "uint8"},
            {"shape": [3, 1], "dtype": "int64"},
            {"shape": (4,), "dtype": "int8"},
        )
    ]


SAMPLES = {
    "_arange": [
        Sample(params={"start": 1.0, "stop": 6.0, "step": 1.5}, grad=False),
        Sample(params={"start": 0.0, "stop": 3.0, "repeat": 2}, grad=False),
        Sample(params={"start": 0.7, "stop": 5.0, "step": 1.5, "dtype": "int32"}, grad=False),
    ]
    + [
        Sample(params=q, grad=False)
        for q in (
            {"start": 5},
            {"start": "5", "stop": "None", "dtype": "float64"},
            {"start": 3.0, "stop": -2.0, "step": -0.75},
            {"start": 0, "stop": 4, "dtype": "int64"},
            {"start": 0, "stop": 2, "step": 0.1},
            {"start": -1, "stop": 5, "step": 2, "dtype": "float16"},
            {"start": 1, "stop": 4, "dtype": "uint8"},
            {"start": 2, "stop": 7, "step": 2, "repeat": 3, "dtype": "int32"},
            {"start": 0, "stop": 1, "step": 5},
            {"start": 1, "stop": 4, "infer_range": False},
        )
    ]
    + [
        Sample(
            params={"start": -1.5, "stop": 1.5, "step": 0.5, "dtype": "float16"},
            grad=False,
            mxnet="float16 is counted in whole numbers",
        )
    ],
    "_eye": [Sample(params={"N": 3}, grad=False), Sample(params={"N": 2, "M": 4, "k": 1, "dtype": "int32"}, grad=False)]
    + [
        Sample(params=q, grad=False)
        for q in (
            {"N": 4, "M": 2, "k": -2, "dtype": "float64"},
            {"N": "3", "M": "3", "k": "-1"},
            {"N": 2, "M": 3, "k": 5, "dtype": "uint8"},
            {"N": 3, "k": -7, "dtype": "float16"},
            {"N": 1, "M": 5, "k": 4, "dtype": "int64"},
        )
    ],
    "_linspace": [
        Sample(params={"start": 0.0, "stop": 1.0, "num": 5}, grad=False),
        Sample(params={"start": 1.0, "stop": 2.0, "num": 4, "endpoint": False}, grad=False),
    ]
    + [
        Sample(params=q, grad=False)
        for q in (
            {"start": 3, "stop": -1, "num": 9, "dtype": "float64"},
            {"start": 2.5, "stop": 9, "num": 1},
            {"start": "0", "stop": "7", "num": "3", "dtype": "int32"},
            {"start": -2, "stop": 2, "num": 7, "dtype": "float16", "endpoint": "0"},
            {"start": 1, "stop": 1, "num": 3},
            {"start": 1, "stop": 9.5, "num": 4, "dtype": "int64"},
        )
    ],
    "_contrib_arange_like": [
        Sample((2, 3), grad=False),
        Sample((2, 3), params={"axis": 1, "start": 2.0, "step": 0.5}, grad=False),
        Sample((2, 3), params={"repeat": 2}, grad=False),
        Sample((2, 3), params={"axis": -1, "repeat": 1}, grad=False),
        Sample((4, 3), params={"axis": 0, "repeat": 2}, grad=False),
        Sample((7,), params={"step": -0.5, "start": "3", "axis": "None"}, grad=False),
        Sample((7,), params={"step": 2}, grad=False, dtypes="float16"),
        Sample(Ints((2, 3), 0, 9), params={"start": 1.9, "step": 2.5}, dtypes="int32 int64"),
        Sample((2, 1, 3), params={"axis": 1}, grad=False),
        Sample((0, 3), grad=False),
        Sample((0, 3), params={"axis": 1}, grad=False),
    ],
    "_zeros_without_dtype": [Sample(params={"shape": (2, 3)}, grad=False, mxnet="inside graphs only")],
    "_zeros": _filled(),
    "_ones": _filled(),
    "_full": [
        *_filled(value=2.5),
        *[
            Sample(params={"shape": (2,), "dtype": t, "value": v}, grad=False)
            for v in (-3, "1e10", float("inf"))
            for t in ("float32", "int64")[: 1 + (v != float("inf"))]
        ],
    ],
    **numpy_samples.SAMPLES,
}
