"""Samples of the operators of ``mx.np`` that choose and replace elements."""

from __future__ import annotations

import numpy as np

from ...testing.sample import Ints, Sample, Values

__all__ = ["SAMPLES"]

_OTHERS = "forward only: its gradient is that of the elements that were not chosen"
_ROWS, _ALL = np.array([[True], [False]]), np.array([[True, False, True], [False, False, True]])

SAMPLES = {
    "_npi_where": [
        Sample(_ALL, (2, 3), (2, 3), grad=(0, 1, 1)),
        Sample(_ROWS, (3,), (2, 1), grad=(0, 1, 1)),
        Sample(Ints((2, 3), 0, 2), (3,), (), grad=(0, 1, 1)),
        Sample(_ALL, Values((2, 3), dtype="float32"), Values((2, 3), dtype="float64"), grad=(0, 1, 1)),
        Sample(Ints((2, 3), 0, 2), Ints((2, 3), 0, 9), Ints((3,), 0, 9), dtypes="int32 uint8 bool", grad=False),
        Sample(Ints((0, 3), 0, 2), (0, 3), (3,), grad=(0, 1, 1)),
    ],
    **{
        name: [
            Sample(_ALL, (2, 3), params={"scalar": 2.5}, grad=(0, 1), mxnet=_OTHERS),
            Sample(_ROWS, (3,), params={"scalar": -1}, grad=(0, 1), mxnet=_OTHERS),
            Sample(Ints((3,), 0, 2), (), grad=(0, 1), mxnet=_OTHERS),
            Sample(Ints((2, 3), 0, 2), Ints((3,), 0, 9), params={"scalar": 2}, dtypes="int32 uint8", grad=False),
        ]
        for name in ("_npi_where_lscalar", "_npi_where_rscalar")
    },
    "_npi_where_scalar2": [
        Sample(Ints(shape, 0, 2), params={"x": 1.5, "y": -2}, grad=False, dtypes="float32 int32 bool")
        for shape in ((2, 3), (), (0, 2))
    ],
    "_npi_boolean_mask_assign_scalar": [
        Sample((2, 3), _ALL, params={"value": 2.5, "start_axis": 0}, grad=(1, 0)),
        Sample((3, 2), np.array([True, False]), params={"value": 1, "start_axis": 1}, grad=(1, 0)),
        Sample((2, 3, 2), np.array([True, False]), params={"value": 1}, grad=(1, 0)),
    ],
    "_npi_boolean_mask_assign_tensor": [
        Sample((2, 3), _ALL, (3,), params={"start_axis": 0}, grad=(1, 0, 1)),
        Sample((2, 3), _ALL, (), grad=(1, 0, 1)),
        Sample((3, 2), np.array([True, False]), (3, 1), params={"start_axis": 1}, grad=(1, 0, 1)),
        Sample((2, 3), np.array([True, True]), (3,), grad=(1, 0, 1)),
    ],
    "_backward_npi_boolean_mask_assign": [
        Sample((2, 3), _ALL, (3,)),
        Sample((2, 3), _ALL, ()),
        Sample((2, 3), np.array([True, True]), (1, 3)),
    ],
    "_npi_share_memory": [Sample((2, 3), (2,), grad=False)],
}
