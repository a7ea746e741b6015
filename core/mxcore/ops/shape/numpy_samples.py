"""Samples of the operators of ``mx.np`` that shape, join, split and pad arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...testing.sample import Distinct, Ints, Sample, Values

__all__ = ["SAMPLES"]

_ALL = "float32 float64 float16 int32 int64 uint8 int8 bool"
_FLOATS = "float32 float64"


def _of(shapes: Any, *params: dict[str, Any], dtypes: str = _FLOATS, **facts: Any) -> list[Sample]:
    """One sample for each shape (or group of shapes) and set of parameters."""
    return [
        Sample(*(s if s and isinstance(s[0], tuple) else (s,)), params=p, dtypes=dtypes, **facts)
        for s in shapes
        for p in params or ({},)
    ]


def _joined(groups: Any, *params: dict[str, Any], **facts: Any) -> list[Sample]:
    """Arrays joined; `num_args` counts them."""
    return [Sample(*g, params={"num_args": len(g), **p}, **facts) for g in groups for p in params or ({},)]


_MIXED = (Values((2, 3), dtype="float32"), Values((2, 3), dtype="float64"))
_VECTORS, _MATRICES = ((3,), (3,)), ((2, 3), (2, 3))
_PLACES = np.array([0, 2], np.int64)
_ALIKE = {"num_args": 2}
_NO_GRADIENT = "forward only: it has no gradient there"
_TURNED = "forward only: its gradient is turned the wrong way"

SAMPLES = {
    "_np_copy": _of([(2, 3), (), (0, 3)], dtypes=_ALL),
    "_np_reshape": [
        *_of([(2, 3, 4)], {"newshape": (4, 6)}, {"newshape": (-1,)}, {"newshape": "(2, -1)", "order": "C"}),
        *_of([(0, 3)], {"newshape": (3, 0)}, {"newshape": (0,)}),
        *_of([(), (1,)], {"newshape": (1, 1)}, {"newshape": ()}, dtypes=_ALL),
    ],
    "_npx_reshape": [
        *_of(
            [(2, 3, 4)],
            {"newshape": (-2, -1)},
            {"newshape": (-4,)},
            {"newshape": (-5, -2)},
            {"newshape": (-1, -2), "reverse": True},
            {"newshape": (-2, -6, 3, -1, -4)},
            {"newshape": (-6, -1, 2, -5)},
        ),
        *_of([(1, 3, 1)], {"newshape": (-3, -4)}, {"newshape": (-3, -2, -3)}),
        *_of([(0, 3)], {"newshape": (0, -4)}, {"newshape": (-2, 3)}),
    ],
    "_np_transpose": [
        *_of([(2, 3, 4)], {}, {"axes": (1, 0, 2)}, {"axes": (0, -1, 1)}, {"axes": "None"}),
        *_of([(2, 3), (3,), (), (0, 2)], dtypes=_ALL),
    ],
    "_np_moveaxis": _of(
        [(2, 3, 4)],
        {"source": 0, "destination": -1},
        {"source": (0, 1), "destination": (-1, -2)},
        {"source": (2,), "destination": (0,)},
        {"source": (), "destination": ()},
    ),
    "_np_squeeze": [
        *_of([(1, 2, 1)], {}, {"axis": 0}, {"axis": (0, -1)}, {"axis": ()}),
        *_of([(1, 1), (2, 3), ()], dtypes=_ALL),
    ],
    "_npi_broadcast_to": [
        *_of([(3,), (1, 3), (2, 1), (), (1,)], {"shape": (2, 3)}),
        *_of([(1, 0), (0,)], {"shape": (2, 0)}),
        *_of([(3,)], {"shape": (3,)}, dtypes=_ALL),
    ],
    "_np_roll": [
        *_of(
            [(2, 3)],
            {"shift": 1},
            {"shift": -4, "axis": 1},
            {"shift": (1, 2), "axis": (0, 1)},
            {"shift": (1, 2)},
            {"shift": 1, "axis": (0, 1)},
            {"shift": (1, 1), "axis": 1},
        ),
        *_of([(), (0, 2), (5,)], {"shift": 2}, dtypes=_ALL),
    ],
    "_npi_flip": [
        *_of([(2, 3, 2)], {}, {"axis": 1}, {"axis": (0, -1)}, {"axis": ()}),
        *_of([(), (0, 2), (5,)], {"axis": None}, dtypes=_ALL),
    ],
    "_npi_rot90": [
        *_of([(2, 3)], *[{"k": k} for k in (0, 2, 4)]),
        *_of([(2, 3)], *[{"k": k} for k in (-1, 1, 3)], mxnet=_TURNED),
        *_of([(2, 3, 4)], {"axes": (1, 2)}, {"axes": (2, 0), "k": 3}, mxnet=_TURNED),
        *_of([(0, 2)], dtypes=_ALL),
    ],
    **{
        f"_np_atleast_{n}d": _joined(
            [((),), ((3,),), ((2, 3),), ((2, 1, 3, 2),), ((), (3,), (2, 3)), ((0, 2),)], mxnet=_NO_GRADIENT
        )
        for n in (1, 2, 3)
    },
    # -- diagonals
    "_np_diagonal": [
        *_of([(3, 4), (4, 3)], {}, {"offset": 1}, {"offset": -2}, {"offset": 7}),
        *_of([(2, 3, 4)], {"axis1": 1, "axis2": 2}, {"axis1": -1, "axis2": 0, "offset": 1}),
        *_of([(2, 3), (0, 3)], dtypes=_ALL),
    ],
    "_np_diagonal_spread": [
        Sample((3,), (3, 4)),
        Sample((2, 2), (2, 3, 2), params={"axis1": 1, "axis2": 2}),
        Sample((2,), (3, 4), params={"offset": -1}),
        Sample((0,), (2, 2), params={"offset": 5}),
    ],
    "_np_trace": [
        *_of([(3, 4), (4, 3)], {}, {"offset": 1}, {"offset": -2}, {"offset": 7}),
        *_of([(2, 3, 4)], {"axis1": 1, "axis2": 2}),
        *[Sample(Ints((2, 3), 0, 3), dtypes="int32 int64 uint8 bool"), Sample((0, 3))],
    ],
    "_np_trace_spread": [
        Sample((), (3, 4)),
        Sample((2,), (2, 3, 2), params={"axis1": 1, "axis2": 2}),
        Sample((), (3, 4), params={"offset": -1}),
    ],
    "_np_diag": _of([(3,), (3, 4), (0,)], {}, {"k": 1}, {"k": -2}) + _of([(2, 3), (2,)], {"k": 7}, dtypes=_ALL),
    "_np_diag_spread": [
        Sample((3, 3), (3,)),
        Sample((4, 4), (3,), params={"k": -1}),
        Sample((3,), (3, 4)),
        Sample((2,), (3, 4), params={"k": 2}),
    ],
    "_np_diagflat": _of([(3,), (2, 2), (), (0,)], {}, {"k": 1}, {"k": -2}),
    **{
        name: [*_of([(3, 4), (2, 3, 3), (3,)], {}, {"k": 1}, {"k": -1}), *_of([(2, 3), (0, 3)], dtypes=_ALL)]
        for name in ("_npi_tril", "_npi_triu")
    },
    "_npi_diag_indices_from": [Sample((2, 2), grad=False), Sample((3, 3, 3), grad=False, dtypes="int32")],
    # -- joins
    "_npi_concatenate": [
        *_joined([_MATRICES, _MIXED], {}, {"axis": 1}, {"axis": "None"}, {"axis": -1}),
        *_joined([((2, 3), (1, 3), (0, 3)), ((4,),)]),
    ],
    "_npi_stack": [
        *_joined([_MATRICES, _MIXED], {}, {"axis": 1}, {"axis": -1}),
        *_joined([((), (), ()), ((0, 2), (0, 2))]),
    ],
    "_npi_vstack": _joined([_VECTORS, _MATRICES, ((2, 3), (3,)), ((), ()), _MIXED]),
    "_npi_hstack": _joined([((3,), (2,)), _MATRICES, ((2, 3), (2, 1)), ((), ()), _MIXED]),
    "_npi_dstack": _joined([_VECTORS, _MATRICES, ((2, 3, 1), (2, 3, 2)), ((), ()), _MIXED]),
    "_npi_column_stack": _joined([_VECTORS, _MATRICES, ((2,), (2, 3)), ((), ()), _MIXED]),
    "_npi_unjoin": [
        Sample((4, 3), (2, 3), (2, 3), params={**_ALIKE, "of": "_npi_concatenate", "axis": 0}),
        Sample((5,), (2,), (3, 1), params={**_ALIKE, "of": "_npi_concatenate"}),
        Sample((2, 3), (3,), (3,), params={**_ALIKE, "of": "_npi_stack", "axis": 0}),
        Sample((3, 3), (2, 3), (3,), params={**_ALIKE, "of": "_npi_vstack"}),
        Sample((2, 4), (2, 3), (2, 1), params={**_ALIKE, "of": "_npi_hstack"}),
        Sample((1, 3, 2), (3,), (3,), params={**_ALIKE, "of": "_npi_dstack"}),
        Sample((2, 4), (2,), (2, 3), params={**_ALIKE, "of": "_npi_column_stack"}),
    ],
    "_npi_hsplit": _of([(2, 4)], {"indices": (), "sections": 2}, {"indices": (0, 1, 3)}),
    "_npi_dsplit": _of([(2, 2, 4)], {"indices": (), "sections": 2, "axis": 2}, {"indices": (0, 1, 3), "axis": 2}),
    "_npi_pad": [
        *[
            Sample(Distinct((3, 4)), params={"pad_width": w, "mode": m})
            for m in ("constant", "edge", "reflect", "symmetric", "maximum", "minimum", "wrap")
            for w in (((1, 2), (0, 1)), "((0, 0), (2, 2))")
        ],
        Sample((3,), params={"pad_width": ((5, 4),), "mode": "symmetric"}),
        Sample((2,), params={"pad_width": ((1, 1),), "constant_value": 2.0}, dtypes=_ALL),
        Sample((0, 2), params={"pad_width": ((1, 0), (0, 1))}),
        Sample((), params={"pad_width": ()}),
    ],
    "_npi_unpad": [
        Sample((6, 5), (3, 4), params={"pad_width": ((1, 2), (0, 1)), "mode": m}, grad=(True, False))
        for m in ("constant", "edge", "reflect", "symmetric", "wrap", "maximum")
    ],
    "_npi_pad_as": [
        Sample((3, 4), Distinct((3, 4)), params={"pad_width": ((1, 2), (0, 1)), "mode": m}, grad=(True, False))
        for m in ("maximum", "minimum")
    ],
    # -- edits
    "_npi_delete": [
        *_of(
            [(4,), (4, 3)],
            {"int_ind": 1},
            {"int_ind": -1, "axis": 0},
            {"start": 0, "stop": 3, "step": 2, "axis": 0},
            {"step": 2},
        ),
        Sample((4, 3), _PLACES, params={"axis": 1}, grad=(True, False)),
        Sample((4, 3), _PLACES, grad=(True, False)),
    ],
    "_npi_delete_spread": [
        Sample((3, 3), (4, 3), params={"int_ind": 1, "axis": 0}),
        Sample((10,), (4, 3), _PLACES, grad=(True, False, False)),
    ],
    "_npi_insert_scalar": [
        Sample((3,), params={"int_ind": 1, "val": 9.0}),
        Sample((3, 4), params={"int_ind": 1, "val": 9.0, "axis": 1}),
        Sample((3, 4), (4,), params={"int_ind": -1, "axis": 0}),
        Sample((3, 4), (2, 4), params={"int_ind": 1, "axis": 0}),
        Sample((3, 4), (2, 3), params={"int_ind": 1, "axis": 1}),
        Sample((3, 4), (2,), params={"int_ind": 5}),
        Sample((3,), (), params={"int_ind": 3}),
    ],
    "_npi_insert_slice": [
        Sample((4,), params={"start": 0, "stop": 2, "step": 1, "val": 9.0}),
        Sample((4, 3), (2, 3), params={"stop": 2, "axis": 0}),
        Sample((4, 3), (1,), params={"step": 2, "axis": 1}),
        Sample((4, 3), (4, 2), params={"start": 1, "stop": 3, "axis": 1}),
        Sample((4, 3), (2, 3), params={"start": 1, "stop": 2, "axis": 0}),
    ],
    "_npi_insert_tensor": [
        Sample((4,), (2,), _PLACES, grad=(True, True, False)),
        Sample((4, 3), (2, 3), _PLACES, params={"axis": 0}, grad=(True, True, False)),
        Sample((4, 3), (1,), np.array([1], np.int64), params={"axis": 1}, grad=(True, True, False)),
        Sample((4, 3), _PLACES, params={"axis": 1, "val": 2.0}, grad=(True, False)),
    ],
    "_npi_insert_parts": [
        Sample((4,), (3,), params={"int_ind": 1, "val": 9.0, "of": "_npi_insert_scalar"}),
        Sample((6, 3), (4, 3), (2, 3), params={"stop": 2, "axis": 0, "of": "_npi_insert_slice"}),
        Sample((6,), (4,), (2,), _PLACES, params={"of": "_npi_insert_tensor"}),
    ],
}
