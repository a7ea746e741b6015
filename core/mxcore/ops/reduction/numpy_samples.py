"""Samples of the reductions of ``mx.np`` and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...testing.sample import Distinct, Ints, Sample, Values

__all__ = ["SAMPLES"]

_HALVES, _WHOLE = "float16 float32 float64", "uint8 int8 int32 int64"
_INF, _NAN = float("inf"), float("nan")
_AXES: list[dict[str, Any]] = [
    {},
    {"axis": 1},
    {"axis": (0, -1), "keepdims": True},
    {"axis": "(-2,)", "keepdims": "True"},
    {"keepdims": True},
    {"axis": "()"},
]
_HERE = "mxcore's own: MXNet has no such operator"
_FIRST = "MXNet refuses `initial`"


def _over_axes(data: Any, **more: Any) -> list[Sample]:
    return [
        *(Sample(data((2, 3, 4)), params=q, dtypes=_HALVES if not q else "float32 float64", **more) for q in _AXES),
        Sample(data((7,)), params={"axis": 0}, **more),
        Sample(data(()), **more),
        Sample(data(()), params={"axis": 0}, **more),
        Sample(data((3, 0, 2)), params={"axis": 0}, **more),
    ]


def _plain(shape: tuple[int, ...]) -> Values:
    return Values(shape)


_COUNTED = [
    Sample(Ints((3, 4), 0, 4), params=q, dtypes=_WHOLE) for q in ({}, {"axis": 1}, {"axis": 0, "keepdims": True})
]
_TRUE = [Sample(Ints((3, 4), 0, 2), params=q, dtypes="bool") for q in ({}, {"axis": 1})]
_CAST = [
    Sample((2, 3), params={"dtype": "float64"}, dtypes="float32"),
    Sample((2, 3), params={"dtype": "float32", "axis": 1}, dtypes="float16", grad=False),
    Sample(Ints((2, 3), 0, 9), params={"dtype": "float32"}, dtypes="int32 int64"),
]
_NOTHING = [Sample((0, 3), params={"axis": 0}), Sample((0, 3), params={"keepdims": True})]


def _edges(mxnet: bool | str = True) -> list[Sample]:
    values = [[-_INF, 1.0, 2.0], [_INF, 0.5, -1.5], [_NAN, 0.0, 1.0]]
    return [Sample(values, params={"axis": 1}, grad=False, mxnet=mxnet)]


#: MXNet keeps what rounding loses, which is NaN beside an infinite sum.
_LOST = "MXNet's infinite sums are NaN"
_ZERO = "forward only: MXNet's gradient is zero"


def _initial(mxnet: str = _FIRST) -> list[Sample]:
    return [
        Sample(Distinct((2, 3)), params=q, mxnet=mxnet) for q in ({"initial": 1.5}, {"initial": -0.3, "axis": (1,)})
    ] + [Sample(Ints((2, 3), 0, 9), params={"initial": 5, "axis": 0}, dtypes="int32 int64", mxnet=mxnet)]


def _spread() -> list[Sample]:
    return [
        *_over_axes(_plain, mxnet=_ZERO),
        Sample((2, 3, 4), params={"axis": 2, "ddof": 1}, mxnet=_ZERO),
        Sample((2, 3, 4), params={"ddof": 2}, mxnet=_ZERO),
        Sample((9,), params={"axis": 0}, domain=(1e3, 1e3 + 1), mxnet=_ZERO),
        Sample((2, 3), params={"dtype": "float64"}, dtypes="float32", mxnet="MXNet adds the elements up wrongly"),
        *(
            Sample(s.inputs[0], params=s.params, dtypes=" ".join(s.dtypes), mxnet="MXNet cuts off the fractions")
            for s in (*_COUNTED, *_TRUE)
        ),
        *(Sample(s.inputs[0], params=s.params, grad=False, mxnet="MXNet gives 0 of nothing") for s in _NOTHING),
        Sample([[3.0, 3.0, 3.0], [0.0, 1.0, 2.0]], params={"axis": 1}, grad=False, mxnet=_ZERO),
    ]


_PLACES = [
    *(
        Sample(Distinct((2, 3, 4)), params=q, grad=False, dtypes=_HALVES)
        for q in ({}, {"axis": 1}, {"axis": "-1", "keepdims": "True"}, {"keepdims": True})
    ),
    Sample(Distinct(()), grad=False),
    Sample([[1.0, 3.0, 3.0], [0.0, 0.0, -1.0], [1.0, _NAN, _NAN]], params={"axis": 1}, grad=False),
    Sample(Ints((3, 5), 0, 9), params={"axis": 1}, dtypes=_WHOLE),
    Sample(Ints((3, 5), 0, 2), params={"axis": 0}, dtypes="bool", mxnet="MXNet takes no bools"),
    Sample((0, 3), params={"axis": 1}, grad=False),
]
_TRUTH = [
    *(Sample(Ints((2, 3, 4), 0, 2), params=q, dtypes=f"bool {_WHOLE} {_HALVES}") for q in ({}, {"axis": 1})),
    Sample(Ints((2, 3, 4), 0, 2), params={"axis": "(0, -1)", "keepdims": "True"}, dtypes="float32"),
    Sample(Ints((2, 3), 0, 2), params={"axis": "()"}, dtypes="int32 bool"),
    Sample(Ints((), 0, 2), dtypes="int32 bool"),
    Sample((0, 3), params={"axis": 0}, grad=False),
    Sample((0, 3), grad=False),
    Sample([[_NAN, 0.0], [0.0, -0.0]], params={"axis": 1}, grad=False),
]

_POSITIVE = Values((2, 3, 4), 0.5, 2.0)
_AVERAGE = [
    *(Sample((2, 3, 4), _POSITIVE, params=q) for q in ({}, {"axis": 1}, {"axis": "(0, -1)"})),
    Sample((2, 3, 4), Values((3,), 0.5, 2.0), params={"axis": 1}, dtypes=_HALVES),
    Sample((2, 3, 4), Values((4,), 0.5, 2.0), params={"axis": "(-1,)"}),
    *(Sample((2, 3, 4), params={"weighted": False, **q}) for q in ({}, {"axis": (0, 2)}, {"axis": 0})),
    Sample(
        (2, 3, 4),
        _POSITIVE,
        params={"axis": 1, "returned": True},
        mxnet="forward only: MXNet forgets the gradient of the sums",
    ),
    Sample((2, 3), Values((3,), 0.5, 2.0), params={"axis": 1, "returned": True}, mxnet="MXNet gives one number"),
    Sample((2, 3), params={"axis": 1, "returned": True, "weighted": False}, mxnet="MXNet gives one number"),
    Sample((2, 3), Values((3,), 0.5, 2.0, "float64"), params={"axis": 1}, dtypes="float32", mxnet="one dtype only"),
    Sample(Ints((2, 3), 0, 9), Ints((2, 3), 1, 3), dtypes="int32 int64 uint8", mxnet="MXNet cuts off the fractions"),
    Sample((0, 3), params={"axis": 1, "weighted": False}),
]

_KINDS = ("higher", "linear", "lower", "midpoint", "nearest")
_Q = np.array([0.0, 12.5, 50.0, 80.0, 100.0])
_PERCENT = [
    *(Sample(Distinct((3, 7)), _Q, params={"axis": 1, "interpolation": t}, grad=(True, False)) for t in _KINDS),
    *(
        Sample(Distinct((2, 3, 4)), params={"q_scalar": 30.0, "axis": (0, 2), "keepdims": keep}, dtypes=_HALVES)
        for keep in (False, True)
    ),
    Sample(Distinct((2, 3, 4)), params={"q_scalar": "60.0", "axis": "None"}),
    Sample(Distinct((5,)), params={"q_scalar": 100, "axis": 0}),
    Sample(
        Distinct((2, 3)), [[10.0, 20.0], [30.0, 99.0]], params={"axis": 0}, mxnet="MXNet takes one axis", grad=False
    ),
    Sample(Ints((3, 5), 0, 9), params={"q_scalar": 30.0, "axis": 1}, dtypes=_WHOLE),
    Sample(Ints((3, 5), 0, 2), params={"q_scalar": 30.0, "axis": 1}, dtypes="bool", mxnet="MXNet takes no bools"),
    Sample(Distinct(()), params={"q_scalar": 30.0}, mxnet="MXNet needs an axis"),
    Sample([[1.0, _NAN, 2.0], [_INF, _INF, 1.0]], _Q, params={"axis": 1}, grad=False, mxnet="MXNet sorts NaN anywhere"),
    Sample((0, 3), params={"q_scalar": 30.0, "axis": 1}, mxnet="MXNet aborts"),
]
#: MXNet's gradient of percentiles is zero.
_PERCENTILES = [
    Sample(
        *s.inputs, params=s.params, dtypes=" ".join(s.dtypes), grad=s.grad, mxnet=_ZERO if s.mxnet is True else s.mxnet
    )
    for s in _PERCENT
]


def _beside(*first: Any) -> list[Sample]:
    """Samples of percentiles' gradients: what they read, then the data."""
    return [
        Sample(first[0](*q), Distinct((2, 5)), *q, params={"axis": 1, "interpolation": t, **more}, mxnet="internal")
        for t in _KINDS
        for q, more in (((), {"q_scalar": 37.0}), ((np.array([0.0, 37.0, 100.0]),), {}))
    ]


def _fixed(s: Sample, places: tuple[bool, ...]) -> Sample:
    return Sample(*s.inputs, params=s.params, grad=places[: len(s.inputs)], mxnet=s.mxnet)


SAMPLES: dict[str, list[Sample]] = {
    "_np_sum": [*_over_axes(_plain), *_COUNTED, *_TRUE, *_CAST, *_NOTHING, *_edges(_LOST), *_initial()],
    "_npi_mean": [
        *_over_axes(_plain),
        *_COUNTED,
        *_TRUE,
        *_CAST,
        *_edges(_LOST),
        Sample((0, 3), params={"axis": 0}, grad=False, mxnet="MXNet gives 0 of nothing"),
    ],
    "_np_prod": [
        *_over_axes(_plain),
        *_COUNTED,
        *_TRUE,
        *_CAST,
        *(Sample(*s.inputs, params=s.params, mxnet="MXNet gives 0 of nothing") for s in _NOTHING),
        *_initial(),
        Sample(
            [[2.0, 0.0, 3.0], [0.0, 4.0, 0.0]],
            params={"axis": 1},
            mxnet="forward only: MXNet's gradient at zeros is NaN",
        ),
    ],
    "_npi_nansum": [
        Sample(*s.inputs, params=s.params, dtypes=" ".join(s.dtypes), grad=s.grad, mxnet=_HERE)
        for s in (*_over_axes(_plain), *_COUNTED, *_TRUE, *_CAST, *_NOTHING, *_edges())
    ],
    "_np_max": [*_over_axes(Distinct), *_COUNTED, *_TRUE, *_edges(), *_initial()],
    "_np_min": [*_over_axes(Distinct), *_COUNTED, *_TRUE, *_edges(), *_initial()],
    "_np_all": _TRUTH,
    "_np_any": _TRUTH,
    "_npi_argmax": _PLACES,
    "_npi_argmin": _PLACES,
    "_npi_var": _spread(),
    "_npi_std": _spread(),
    "_npi_average": _AVERAGE,
    "_weights_like": [
        Sample((3,), (2, 3, 2), params={"axis": 1}, mxnet="internal"),
        Sample((2, 3), (2, 3), mxnet="internal"),
    ],
    "_weights_sum": [
        Sample((2, 3, 2), (3,), params={"axis": 1}, mxnet="internal"),
        Sample((2, 3), (2, 3), mxnet="internal"),
    ],
    "_npi_percentile": _PERCENTILES,
    "_backward_percentile": [_fixed(s, (True, False, False)) for s in _beside(lambda *q: (*(len(x) for x in q), 2))],
    "_percentile_of": [_fixed(s, (True, False, False)) for s in _beside(lambda *q: (2, 5))],
    "_npi_bincount": [
        Sample(Ints((9,), 0, 5), dtypes="int32 int64"),
        Sample(Ints((9,), 0, 5), dtypes="uint8 int8", mxnet="MXNet's counts do not fit"),
        Sample(Ints((9,), 0, 5), params={"minlength": "8"}, dtypes="int32"),
        Sample(Ints((0,), 0, 5), params={"minlength": 2}, dtypes="int32"),
        Sample(
            np.array([0, 4, 1, 1, 0], np.int32),
            (5,),
            params={"has_weights": True},
            dtypes="float32 float64",
            mxnet=_ZERO,
        ),
        Sample(Ints((6,), 0, 5), Ints((6,), 0, 5), params={"has_weights": True, "minlength": 7}, dtypes="int32 int64"),
    ],
    "_npi_diff": [
        *(Sample((2, 5), params=q, dtypes=_HALVES) for q in ({}, {"n": 2}, {"axis": 0}, {"n": "0"})),
        Sample((3, 4, 2), params={"n": 3, "axis": "-2"}),
        Sample((2, 3), params={"n": 9}),
        Sample(Ints((2, 5), 0, 9), dtypes="int32 int64 int8"),
        Sample(Ints((2, 5), 0, 2), dtypes="bool", mxnet="MXNet takes no bools"),
    ],
    "_backward_diff": [
        Sample((2, 3), (2, 5), params={"n": 2}, mxnet="internal"),
        Sample((0, 3), (2, 3), params={"n": 2, "axis": 0}, mxnet="internal"),
    ],
    "_npi_ediff1d": [
        Sample((2, 3), dtypes=_HALVES),
        Sample((5,), params={"to_begin_scalar": -9.5, "to_end_scalar": "2.0"}),
        Sample((5,), (2, 2), params={"to_begin_arr_given": True, "to_end_scalar": 2.0}),
        Sample((5,), (3,), params={"to_end_arr_given": "True"}),
        Sample((4,), (1,), (2,), params={"to_begin_arr_given": True, "to_end_arr_given": True}),
        Sample((1,), (2,), params={"to_begin_arr_given": True}),
        Sample(Ints((5,), 0, 9), dtypes="int32 int64"),
    ],
    "_npi_backward_ediff1d": [
        Sample((5,), (2, 3), mxnet="internal"),
        Sample((6,), (3,), (1,), (3,), params={"to_begin_arr_given": True, "to_end_arr_given": True}, mxnet="internal"),
        Sample((4,), (1,), (3,), params={"to_end_arr_given": True, "to_begin_scalar": 1.0}, mxnet="internal"),
    ],
    "_npi_polyval": [
        Sample((4,), (2, 3), dtypes=_HALVES),
        Sample((1,), (5,)),
        Sample((3,), ()),
        Sample((0,), (2,)),
        Sample((3,), (0, 2)),
        Sample((3,), Values((2, 2), dtype="float64"), dtypes="float32", mxnet="one dtype only"),
        Sample(Ints((3,), 0, 4), Ints((2, 3), 0, 4), dtypes="int32 int64"),
    ],
    "_polyder": [Sample((4,), params={"turned": turned}, mxnet="internal") for turned in (False, True)]
    + [Sample((1,), mxnet="internal"), Sample((0,), mxnet="internal")],
    "_polyval_sums": [Sample((2, 3), (2, 3), (4,), mxnet="internal"), Sample((3,), (3,), (0,), mxnet="internal")],
}
