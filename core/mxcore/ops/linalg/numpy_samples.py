"""Samples of the operators of ``mx.np`` and ``mx.np.linalg`` in :mod:`mxcore.ops.linalg`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...testing.sample import Ints, Sample

__all__ = ["NUMPY_SAMPLES"]

_NARROW = "MXNet multiplies float32 and float64 only"
_BROADCAST = "MXNet does not broadcast there"
_INNER = "forward only: MXNet's gradient is zero"
_ADDED = "forward only: MXNet adds wrong gradients to others"
_ALIAS = "another name of _linalg_det there, and of _linalg_slogdet"
#: Of norms that are given beside the vectors, and held.
_HELD: dict[str, Any] = {"mxnet": "internal", "grad": False}
_WHOLE = "uint8 int32 int64"

#: Matrices for factorisations: symmetric positive definite, any, and with the eigenvalues apart.
_SPD = [[4.0, 1.0, -0.5], [1.0, 3.0, 0.75], [-0.5, 0.75, 2.0]]
_WIDE = [[9.0, -2.0, 0.5], [-2.0, 1.5, 0.25], [0.5, 0.25, 5.0]]
_FULL = [[3.0, 1.0, -0.5], [-1.0, 2.5, 0.75], [0.5, -0.25, 2.0]]
_TURNED = [[0.5, 1.0, -2.0], [-1.0, 0.25, 0.75], [3.0, -0.25, 0.5]]
_REAL = [[1.0, 0.25, -0.5], [0.5, 4.0, 0.75], [0.25, -0.25, 8.0]]
_OTHER = [[-3.0, 0.5, 0.25], [0.25, 1.0, 0.5], [-0.5, 0.25, 5.0]]
_LONG = [[1.0, 2.0, -0.5, 0.25], [0.5, -1.0, 3.0, 1.5], [2.0, 0.75, 1.25, -2.5]]
_TALL = np.transpose(_LONG).tolist()
_NOTHING = Sample((0, 2, 2))


def _mixed(*dtypes: str) -> Sample:
    """Two matrices of dtypes that differ."""
    a, b = dtypes
    return Sample(
        Ints((2, 3), 0, 3, dtype=a), Ints((3, 2), 0, 3, dtype=b), grad=False, dtypes="float32", mxnet="one dtype only"
    )


def _products(shapes: Iterable[Any], params: Any = None, mxnet: Any = True) -> list[Sample]:
    return [Sample(*s, params=params, mxnet=mxnet) for s in shapes]


_OTHERS = [
    Sample((2, 3), (3, 4), dtypes="float16", mxnet=_NARROW, grad=False),
    Sample(Ints((2, 3), 0, 4), Ints((3, 2), 0, 4), dtypes=_WHOLE, mxnet=_NARROW),
    Sample(Ints((2, 3), 0, 2), Ints((3, 2), 0, 2), dtypes="bool", mxnet=_NARROW),
    _mixed("float32", "float64"),
    _mixed("int32", "float32"),
    _mixed("uint8", "int64"),
]
_LATE = [(3, 4), (4, 2, 3), (5, 3)]


def _einsum(subscripts: str, *shapes: Any, mxnet: Any = True, **more: Any) -> Sample:
    return Sample(*shapes, params={"num_args": len(shapes), "subscripts": subscripts, **more}, mxnet=mxnet)


def _backs(a: Any, b: Any, out: Any, **params: Any) -> list[Sample]:
    return [
        Sample(out, b, a, params={**params, "which": 0}, mxnet="internal"),
        Sample(out, a, b, params={**params, "which": 1}, mxnet="internal"),
    ]


def _norms(mxnet: Any = _ADDED, tol: float = 1.0, **params: Any) -> list[Sample]:
    return [Sample(shape, params={"keepdims": False, **params}, mxnet=mxnet, tol=tol) for shape in ((3, 4), (2, 4, 3))]


NUMPY_SAMPLES = {
    "_np_dot": [
        *_products(
            [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((2, 3, 4), (4,)), ((2, 4), (3, 4, 2)), ((1, 1), (1, 1))]
        ),
        *_products([((), (2, 3)), ((2, 3), ()), ((), ())]),
        *_products([((3,), (3, 2)), ((2, 0), (0, 3)), ((0, 2), (2, 3)), ((0,), (0,))], mxnet="wrong or refused there"),
        *_OTHERS,
    ],
    "_np_dot_back": [*_backs((2, 3), (3, 4), (2, 4)), *_backs((3,), (3,), ()), *_backs((), (2, 3), (2, 3))],
    "_npi_matmul": [
        *_products([((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 2, 3), (2, 3, 4))]),
        *_products([((2, 3), (5, 3, 2)), ((5, 2, 3), (3,)), ((3,), (2, 3, 2))]),
        *_products([((6, 1, 2, 3), (5, 3, 4))], mxnet="forward only: wrong gradients where both are broadcast"),
        *_products([((2, 0), (0, 3)), ((0, 2, 3), (3, 2))], mxnet="refused there"),
        *_OTHERS,
    ],
    "_npi_matmul_back": [*_backs((2, 3), (5, 3, 2), (5, 2, 2)), *_backs((3,), (3,), ())],
    "_npi_tensordot": [
        *_products([((2, 3, 4), (4, 3, 5))], {"a_axes_summed": (1, 2), "b_axes_summed": (1, 0)}, _ADDED),
        *_products([((2, 3), (4, 3))], {"a_axes_summed": "(-1,)", "b_axes_summed": "(-1,)"}, _ADDED),
        *_products([((2, 3), (3, 2))], {"a_axes_summed": (0, 1), "b_axes_summed": (1, 0)}, _ADDED),
        Sample(
            Ints((2, 3), 0, 4),
            Ints((3, 2), 0, 4),
            params={"a_axes_summed": (1,), "b_axes_summed": (0,)},
            dtypes=_WHOLE,
            mxnet=_NARROW,
        ),
    ],
    "_npi_tensordot_back": _backs((2, 3, 4), (4, 3, 5), (2, 5), a_axes_summed=(1, 2), b_axes_summed=(1, 0)),
    "_npi_tensordot_int_axes": [
        *_products([((2, 3, 4), (4, 3, 5)), ((4,), (4,))], {"axes": 1}, _ADDED),
        *_products([((2, 3, 4), (3, 4, 5)), ((2, 3), (2, 3))], {"axes": 2}, _ADDED),
        *_products([((2, 3), (4,)), ((), (2,))], {"axes": 0}, _ADDED),
    ],
    "_npi_tensordot_int_axes_back": _backs((2, 3), (4,), (2, 3, 4), axes=0),
    "_matvec": [
        Sample((2, 3), (3,), mxnet="internal"),
        Sample((2, 1, 3, 4), (5, 4), mxnet="internal"),
        Sample((0, 2, 2), (2,), mxnet="internal"),
    ],
    "_matvec_back": _backs((2, 1, 3, 4), (5, 4), (2, 5, 3)),
    "_npi_einsum": [
        _einsum("ij,jk->ik", (2, 3), (3, 4)),
        _einsum("ij,jk", (2, 3), (3, 4), optimize=1),
        _einsum("ii", (3, 3)),
        _einsum("ii->i", (3, 3)),
        _einsum("ij->ji", (2, 3)),
        _einsum("...j->...", (2, 3, 4)),
        _einsum("b...i,bij->b...j", (2, 5, 6, 3), (2, 3, 4)),
        _einsum("i,j,k", (2,), (3,), (4,), optimize="1"),
        _einsum("iij,jk->ik", (3, 3, 2), (2, 4)),
        _einsum("ij,ij,ij->", (2, 3), (2, 3), (2, 3)),
        _einsum("...,...", (2, 1), (1, 3), mxnet="forward only: wrong gradients of what is broadcast"),
        _einsum("ij,jk,kl->il", (2, 3), (3, 4), (4, 5), optimize="greedy", mxnet="0 and 1 only"),
        _einsum("ij,jk,kl->il", (2, 3), (3, 4), (4, 5), optimize="optimal", mxnet="0 and 1 only"),
        _einsum("ij,jk,kl->il", (2, 3), (3, 4), (4, 5), optimize="((1, 2), (0, 1))", mxnet="0 and 1 only"),
        _einsum("ij,jk", (2, 0), (0, 3)),
        Sample(
            Ints((2, 3), 0, 3), Ints((3, 2), 0, 3), params={"num_args": 2, "subscripts": "ij,jk"}, dtypes="int32 int64"
        ),
        Sample(Ints((2, 3), 0, 2), Ints((3, 2), 0, 2), params={"num_args": 2, "subscripts": "ij,jk"}, dtypes="bool"),
        Sample((2, 3), (3, 2), params={"num_args": 2, "subscripts": "ij,jk"}, dtypes="float16", grad=False),
    ],
    "_npi_einsum_back": [
        Sample((2, 4), (2, 3), (3, 4), params={"num_args": 2, "subscripts": "ij,jk->ik", "which": k}, mxnet="internal")
        for k in (0, 1)
    ]
    + [
        Sample((3,), (3, 3), params={"num_args": 1, "subscripts": "ii->i", "which": 0}, mxnet="internal"),
        Sample((2, 3), (2, 3, 4), params={"num_args": 1, "subscripts": "...j->...", "which": 0}, mxnet="internal"),
    ],
    "_multi_dot": [
        Sample(*shapes, params={"num_args": len(shapes)}, mxnet="internal")
        for shapes in (((2, 3), (3, 4), (4, 5)), ((3,), (3, 4), (4,)), ((2, 3), (3, 4)), ((2, 0), (0, 3), (3,)))
    ],
    "_multi_dot_back": [
        Sample((2, 5), (2, 3), (3, 4), (4, 5), params={"num_args": 3, "which": k}, mxnet="internal") for k in (0, 1, 2)
    ],
    "_npi_cholesky": [
        Sample(_SPD, grad=False),
        Sample([_SPD, _WIDE], grad=False),
        Sample([[4.0]]),
        _NOTHING,
        Sample([[4, 2], [2, 5]], dtypes="int32", grad=False, mxnet="floats only"),
    ],
    "_npi_det": [
        *[Sample(a, mxnet=_ALIAS) for a in (_FULL, [_FULL, _TURNED], [[2.5]], (0, 2, 2), (1, 0, 0))],
        Sample([[4, 2], [2, 5]], dtypes="int32", mxnet=_ALIAS),
    ],
    "_npi_slogdet": [Sample(a, mxnet=_ALIAS) for a in (_FULL, [_FULL, _TURNED], [[-2.5]], (0, 2, 2))],
    "_npi_svd": [
        Sample(_LONG, tol=4),
        Sample([_FULL, _TURNED], tol=4),
        Sample(_TALL, mxnet="refused there", tol=4),
        Sample([[-2.0]]),
        Sample((0, 2, 3)),
        Sample((2, 0, 3), mxnet="not there"),
    ],
    "_npi_eigh": [
        Sample(_SPD, grad=False, mxnet=_INNER),
        Sample([_SPD, _WIDE], params={"UPLO": "U"}, grad=False, mxnet=_INNER),
        Sample(_TURNED, params={"UPLO": "U"}, grad=False, mxnet=_INNER),
        Sample([[-2.0]], mxnet=_INNER),
        _NOTHING,
        Sample([[2, 1], [1, 2]], dtypes="int32"),
    ],
    "_npi_eigvalsh": [
        Sample(_SPD, grad=False, mxnet=_INNER),
        Sample([_TURNED, _WIDE], params={"UPLO": "U"}, grad=False, mxnet=_INNER),
        Sample([[-2.0]], mxnet=_INNER),
        _NOTHING,
    ],
    **{
        name: [
            Sample(_REAL, mxnet=_INNER, tol=4),
            Sample([_REAL, _OTHER], mxnet=_INNER, tol=4),
            Sample([[-2.0]], mxnet=_INNER),
            _NOTHING,
        ]
        for name in ("_npi_eig", "_npi_eigvals")
    },
    "_npi_solve": [
        Sample(_FULL, (3, 2), mxnet=_ADDED),
        Sample(_FULL, (3,), mxnet=_ADDED),
        Sample([_FULL, _SPD], (2, 3, 4), mxnet=_ADDED),
        Sample([_FULL, _SPD], (2, 3), mxnet=_ADDED),
        Sample(_FULL, (2, 3, 4), mxnet=_BROADCAST),
        Sample([_FULL, _SPD], (3, 2), mxnet=_BROADCAST),
        Sample([_FULL, _SPD], (3,), mxnet=_BROADCAST),
        Sample((0, 2, 2), (0, 2, 3), mxnet=_ADDED),
    ],
    "_solve_back": [Sample((3, 2), (3, 2), _FULL, mxnet="internal"), Sample((3,), (3,), _FULL, mxnet="internal")],
    "_solve_apply": [Sample(_FULL, (3, 2), mxnet="internal"), Sample([_FULL, _SPD], (3,), mxnet="internal")],
    "_npi_tensorsolve": [
        Sample(np.reshape(_FULL, (3, 1, 3)).tolist(), (3, 1), mxnet=_ADDED),
        Sample(np.reshape(_FULL, (1, 3, 3)).tolist(), (3,), params={"a_axes": (0,)}, mxnet="other order"),
        Sample(_FULL, (3,), params={"a_axes": "None"}, mxnet=_ADDED),
    ],
    "_tensor_matrix": [Sample((3, 2, 6), (3, 2), mxnet="internal")],
    "_tensor_matrix_back": [Sample((6, 6), (2, 6, 3), (6,), params={"a_axes": (0, 2)}, mxnet="internal")],
    "_npi_tensorinv": [
        Sample(np.reshape(_FULL, (3, 1, 3)).tolist(), params={"ind": 2}, mxnet=_ADDED),
        Sample(_FULL, params={"ind": 1}, mxnet=_ADDED),
        Sample(np.reshape(_FULL, (3, 1, 3)).tolist(), params={"ind": "1"}, mxnet=_ADDED),
    ],
    "_flat_matrix": [
        Sample((2, 3, 4), params={"ind": 1}, mxnet="internal"),
        Sample((2, 3, 4), params={"ind": -1}, mxnet="internal"),
    ],
    "_npi_pinv_scalar_rcond": [
        Sample(_LONG, mxnet=_INNER, tol=4),
        Sample(_TALL, mxnet=_INNER, tol=4),
        Sample([_SPD, _WIDE], params={"hermitian": True}, mxnet=_INNER, tol=4, grad=False),
        Sample([[2.0, 0.0], [0.0, 1e-3]], params={"rcond": 0.01}, mxnet=_INNER, grad=False),
        Sample((0, 2, 3)),
    ],
    "_npi_pinv": [
        Sample(_LONG, 1e-4, grad=(True, False), mxnet=_INNER, tol=4),
        Sample([_FULL, _SPD], [1e-5, 1e-3], grad=(True, False), mxnet=_INNER, tol=4),
    ],
    "_npi_matrix_rank": [
        Sample(_FULL, mxnet="not there"),
        Sample([[[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 2.0]]], params={"hermitian": True}, mxnet="not there"),
        Sample([_FULL, _SPD], [1.0, 2.5], params={"has_tol": True}, mxnet="not there"),
        Sample((0, 2, 3), mxnet="not there"),
    ],
    "_npi_qr": [
        Sample(_TALL, mxnet="not there"),
        Sample([_FULL, _TURNED], mxnet="not there"),
        Sample(_LONG, mxnet="not there"),
        Sample((0, 2, 3), mxnet="not there"),
    ],
    "_qr_back": [
        Sample((4, 3), (3, 3), _TALL, *map(np.ndarray.tolist, np.linalg.qr(_TALL)), mxnet="internal", grad=False),
        Sample((3, 3), (3, 4), _LONG, *map(np.ndarray.tolist, np.linalg.qr(_LONG)), mxnet="internal", grad=False),
    ],
    "_npi_norm": [
        *_norms(flag=-2),
        *_norms(flag=1, axis=(0,)),
        *_norms(flag=1, axis=(0, 1), keepdims=True),
        *_norms(flag=-1, axis=(1,), ord=3),
        *_norms(flag=-1, axis="(0,)", ord=1),
        *_norms(flag=-1, axis=(0,), ord=0),
        *_norms(flag=-1, axis=(1,), ord=-1.5, tol=4),
        *_norms(flag=-1, axis=(1,), ord="inf", mxnet="refused there"),
        *_norms(flag=-1, axis=(-1,), ord="-inf", mxnet="refused there"),
        *_norms(flag=-1, axis=(0, 1), ord=1, mxnet="forward only: wrong there"),
        *_norms(flag=-1, axis=(1, 0), ord=-1, mxnet="refused there"),
        *_norms(flag=-1, axis=(0, 1), ord="inf", mxnet="forward only: wrong there"),
        *_norms(flag=-1, axis=(0, 1), ord="-inf", mxnet="forward only: wrong there"),
        *_norms(flag=0, axis=(0, 1), ord=2, tol=4),
        *_norms(flag=0, axis=(1, 0), ord=-2, tol=8),
        *_norms(flag=2, axis=(0, 1), tol=4),
        Sample((), params={"flag": -2}, mxnet=_ADDED),
        Sample((0, 3), params={"flag": 1, "axis": (1,)}, mxnet=_ADDED),
        Sample((3, 4), params={"flag": -2}, dtypes="float16", mxnet=_ADDED),
        Sample([[0.0, 0.0], [3.0, 4.0]], params={"flag": 1, "axis": (1,)}, grad=False, mxnet=_ADDED),
        Sample([[3, 4], [5, 12]], params={"flag": 1, "axis": (1,)}, dtypes="int32 uint8", mxnet="truncated there"),
    ],
    "_norm_back": [
        Sample(
            (2,), [[3.0, 4.0], [6.0, -8.0]], [5.0, 10.0], params={"flag": 1, "axis": (1,)}, mxnet="internal", grad=False
        ),
        Sample((), [[1.0, 2.0], [2.0, 4.0]], 5.0, params={"flag": -2}, **_HELD),
    ],
    "_matrices_last": [
        Sample((2, 3, 4), params={"axis": (0, 1)}, mxnet="internal"),
        Sample((2, 3, 4), params={"axis": (2, 0), "back": True}, mxnet="internal"),
    ],
}
