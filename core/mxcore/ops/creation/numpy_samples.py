"""Samples of the operators of ``mx.np`` that make arrays."""

from __future__ import annotations

from typing import Any

from ...testing.sample import Sample

__all__ = ["SAMPLES"]

_SHAPES = ((2, 3), (), (0, 2))
_DTYPES = ("float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool")


def _made(*params: dict[str, Any]) -> list[Sample]:
    return [Sample(params=p, grad=False) for p in params]


SAMPLES = {
    **{
        name: _made(*[{"shape": s} for s in _SHAPES], *[{"shape": (2,), "dtype": t} for t in _DTYPES])
        for name in ("_npi_zeros", "_npi_ones")
    },
    "_npi_identity": _made({"shape": (3, 3)}, {"shape": (2, 2), "dtype": "bool"}, {"shape": (0, 0)}),
    "_npi_arange": _made(
        {"start": 0, "stop": 5},
        {"start": 1, "stop": 7, "step": 2, "dtype": "int64"},
        {"start": 3, "stop": -2, "step": -0.75, "dtype": "float64"},
        {"start": 2, "stop": 5, "step": 0.5, "dtype": "int32"},
        {"start": 3, "stop": 1},
    ),
    "_npi_eye": _made(
        {"N": 3},
        {"N": 2, "M": 4, "k": 1, "dtype": "int32"},
        {"N": 4, "M": 2, "k": -2, "dtype": "float64"},
        {"N": 2, "M": 0},
        {"N": 2, "M": "None", "k": 5},
    ),
    "_npi_indices": _made(
        {"dimensions": (2, 3)},
        {"dimensions": (4,), "dtype": "float32"},
        {"dimensions": (2, 0)},
        {"dimensions": (2, 1, 2), "dtype": "int64"},
    ),
    "_npi_logspace": _made(
        {"start": 0, "stop": 2, "num": 5},
        {"start": 1, "stop": 3, "num": 4, "endpoint": False, "base": 2.0, "dtype": "float64"},
        {"start": 0, "stop": 2, "num": 3, "dtype": "int32"},
        {"start": 0, "stop": 1, "num": 0},
    ),
    "_npi_full_like": [
        Sample(shape, params={"fill_value": 2.5, **more}, grad=False, dtypes="float32 float16 int32 uint8 bool")
        for shape in _SHAPES
        for more in ({}, {"dtype": "float64"}, {"dtype": "bool"})
    ],
}
