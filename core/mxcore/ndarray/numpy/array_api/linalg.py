"""Linear algebra: the extension of the standard, over stacks of matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...._core.errors import error
from ..face import arrays as F
from ..multiarray import ndarray
from .arguments import Axis, axes_of, check, common, in_numpys_shapes, number, summed, whole_number
from .products import matmul, matrix_transpose, tensordot, vecdot, vectors_axis

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class EighResult(NamedTuple):
    """What `eigh` gives."""

    eigenvalues: ndarray
    eigenvectors: ndarray


class QRResult(NamedTuple):
    """What `qr` gives."""

    Q: ndarray
    R: ndarray


class SlogdetResult(NamedTuple):
    """What `slogdet` gives."""

    sign: ndarray
    logabsdet: ndarray


class SVDResult(NamedTuple):
    """What `svd` gives."""

    U: ndarray
    S: ndarray
    Vh: ndarray


def _matrices(name: str, x: Any, square: bool = False, category: str = "floating-point") -> Any:
    check(name, category, x)
    if x.ndim < 2 or square and x.shape[-1] != x.shape[-2]:
        raise error(ValueError, f"{name}: {'square ' * square}matrices are needed, got shape {x.shape}")
    return x


def cholesky(x: ndarray, /, *, upper: bool = False) -> Any:
    """The triangular factors of symmetric positive definite matrices.

    Parameters
    ----------
    x : ndarray, (..., n, n)
        Only its lower triangle is read.
    upper : bool
        Give the upper factor U of ``x = U.mT @ U`` in the place of the lower one of ``x = L @ L.mT``.

    Returns
    -------
    ndarray, (..., n, n)

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 5.0]]))
    array([[2., 0.],
           [1., 2.]])
    """
    found = F.linalg.cholesky(_matrices("cholesky", x, True))
    return F.swapaxes(found, -2, -1) if upper else found


def cross(x1: ndarray, x2: ndarray, /, *, axis: int = -1) -> Any:
    """The vector products of vectors of three elements.

    Parameters
    ----------
    x1, x2 : ndarray
        Shapes that broadcast; the dtypes must be numeric.
    axis : int
        That of the vectors, below 0.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))
    array([0, 0, 1], dtype=int64)
    """
    check("cross", "numeric", x1, x2)
    a, b = common("cross", x1, x2)
    d = vectors_axis("cross", axis, a, b)
    if a.shape[d] != 3 or b.shape[d] != 3:
        raise error(ValueError, f"cross: vectors of three elements are needed, got shapes {a.shape} and {b.shape}")
    (a1, a2), (b1, b2) = ([F.roll(x, -n, d) for n in (1, 2)] for x in (a, b))
    return a1 * b2 - a2 * b1


def det(x: ndarray, /) -> Any:
    """The determinants of square matrices.

    Parameters
    ----------
    x : ndarray, (..., n, n)

    Returns
    -------
    ndarray, (...)

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.det(xp.asarray([[2.0, 0.0], [1.0, 3.0]]))
    array(6.)
    """
    return F.linalg.det(_matrices("det", x, True))


def diagonal(x: ndarray, /, *, offset: int = 0) -> Any:
    """Diagonals of matrices.

    Parameters
    ----------
    x : ndarray, (..., m, n)
    offset : int
        Which: above the main one, or below for numbers below 0.

    Returns
    -------
    ndarray, (..., k)

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]]))
    array([1, 4], dtype=int64)
    """
    _matrices("diagonal", x, category="all")
    return F.diagonal(x, whole_number("diagonal", "offset", offset), -2, -1)


def eigh(x: ndarray, /) -> EighResult:
    """The eigenvalues of symmetric matrices, in rising order, and the eigenvectors, as columns.

    Parameters
    ----------
    x : ndarray, (..., n, n)
        Only its lower triangle is read.

    Returns
    -------
    (eigenvalues, eigenvectors) : tuple of ndarray, (..., n) and (..., n, n)

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.eigh(xp.asarray([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    array([1., 3.])
    """
    return EighResult(*F.linalg.eigh(_matrices("eigh", x, True)))


def eigvalsh(x: ndarray, /) -> Any:
    """The eigenvalues of symmetric matrices, in rising order.

    Parameters
    ----------
    x : ndarray, (..., n, n)
        Only its lower triangle is read.

    Returns
    -------
    ndarray, (..., n)

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.eigvalsh(xp.asarray([[2.0, 1.0], [1.0, 2.0]]))
    array([1., 3.])
    """
    return F.linalg.eigvalsh(_matrices("eigvalsh", x, True))


def inv(x: ndarray, /) -> Any:
    """The inverses of square matrices.

    Parameters
    ----------
    x : ndarray, (..., n, n)

    Returns
    -------
    ndarray, (..., n, n)

    Raises
    ------
    MXNetError
        (also ValueError) for a singular matrix.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return F.linalg.inv(_matrices("inv", x, True))


def matrix_norm(x: ndarray, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Norms of matrices.

    Parameters
    ----------
    x : ndarray, (..., m, n)
    keepdims : bool
        Keep the last two axes, with length 1.
    ord : {'fro', 'nuc', 1, -1, 2, -2, inf, -inf} or None
        The root of the sum of squares, the sum of the singular values, the largest or least sum of a column, singular
        value, or sum of a row. None is 'fro'.

    Returns
    -------
    ndarray, (...)

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.matrix_norm(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
    array(5.)
    """
    return F.linalg.norm(_matrices("matrix_norm", x), ord, (-2, -1), keepdims)


def matrix_power(x: ndarray, n: int, /) -> Any:
    """Powers of square matrices.

    Parameters
    ----------
    x : ndarray, (..., m, m)
    n : int
        Below 0: of the inverse.

    Returns
    -------
    ndarray, (..., m, m)

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 3)
    array([[1., 3.],
           [0., 1.]])
    """
    return F.linalg.matrix_power(_matrices("matrix_power", x, True), whole_number("matrix_power", "n", n))


def _tolerance(name: str, x: Any, rtol: Any) -> Any:
    """Which part of the largest singular value counts as zero, as a number or an array."""
    if rtol is None:
        return max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)
    if isinstance(rtol, ndarray):
        check(name, "real floating-point", rtol)
        return rtol
    return number(name, float(rtol), x.dtype, x.ctx).item()


def matrix_rank(x: ndarray, /, *, rtol: Any = None) -> Any:
    """The ranks of matrices: how many singular values are not zero.

    Parameters
    ----------
    x : ndarray, (..., m, n)
    rtol : float or ndarray, optional
        Singular values up to this part of the largest one count as zero. Unless told, the larger one of m and n times
        the distance from 1 to the next number.

    Returns
    -------
    ndarray, (...)
        Of dtype int64.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.matrix_rank(xp.ones((3, 3)))
    array(1, dtype=int64)
    """
    s = svdvals(_matrices("matrix_rank", x)).detach()
    if not s.shape[-1]:
        return F.zeros(s.shape[:-1], dtype="int64", ctx=x.ctx)
    rtol = _tolerance("matrix_rank", x, rtol)
    least = F.max(s, axis=-1, keepdims=True) * (F.expand_dims(rtol, -1) if isinstance(rtol, ndarray) else rtol)
    return F.sum(s > least, axis=-1, dtype="int64")


def outer(x1: ndarray, x2: ndarray, /) -> Any:
    """The product of each element of a vector with each of another one.

    Parameters
    ----------
    x1, x2 : ndarray
        1-D; the dtypes must be numeric.

    Returns
    -------
    ndarray, (m, n)

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.outer(xp.asarray([1.0, 2.0]), xp.asarray([3.0, 4.0]))
    array([[3., 4.],
           [6., 8.]])
    """
    check("outer", "numeric", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise error(ValueError, f"outer: vectors are needed, got shapes {x1.shape} and {x2.shape}")
    a, b = common("outer", x1, x2)
    return F.expand_dims(a, 1) * b


def pinv(x: ndarray, /, *, rtol: Any = None) -> Any:
    """The pseudo-inverses of matrices.

    Parameters
    ----------
    x : ndarray, (..., m, n)
    rtol : float or ndarray, optional
        As for `matrix_rank`.

    Returns
    -------
    ndarray, (..., n, m)

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.pinv(xp.asarray([[2.0, 0.0], [0.0, 0.0]]))
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    _matrices("pinv", x)
    return F.linalg.pinv(x, _tolerance("pinv", x, rtol))


def _completed(basis: Any) -> Any:
    """Orthonormal columns (..., m, k) that go on to a basis (..., m, m); the new ones have no gradient."""
    m, k = basis.shape[-2:]
    fixed = basis.detach()
    unit = F.broadcast_to(F.eye(m, dtype=basis.dtype, ctx=basis.ctx), (*basis.shape[:-2], m, m))
    new = F.linalg.qr(F.concatenate([fixed, unit], -1))[0][..., k:]
    return F.concatenate([basis, new], -1)


def qr(x: ndarray, /, *, mode: str = "reduced") -> QRResult:
    """The factors of matrices ``x = Q @ R``: Q has orthonormal columns, R is upper triangular.

    Parameters
    ----------
    x : ndarray, (..., m, n)
    mode : {'reduced', 'complete'}
        'complete': Q is (..., m, m); the columns that are added have no gradient.

    Returns
    -------
    (Q, R) : tuple of ndarray, (..., m, k) and (..., k, n)
        With k the smaller one of m and n.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> [y.shape for y in xp.linalg.qr(xp.ones((3, 2)), mode="complete")]
    [(3, 3), (3, 2)]
    """
    m, n = _matrices("qr", x).shape[-2:]
    if mode not in ("reduced", "complete"):
        raise error(ValueError, f"qr: mode must be 'reduced' or 'complete', got {mode!r}")
    q, r = F.linalg.qr(x)
    if mode == "complete" and m > n:
        below = F.zeros((*x.shape[:-2], m - n, n), dtype=x.dtype, ctx=x.ctx)
        q, r = _completed(q), F.concatenate([r, below], -2)
    return QRResult(q, r)


def slogdet(x: ndarray, /) -> SlogdetResult:
    """The signs of the determinants of square matrices, and the logarithms of their absolute values.

    Parameters
    ----------
    x : ndarray, (..., n, n)

    Returns
    -------
    (sign, logabsdet) : tuple of ndarray, (...)

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.slogdet(xp.eye(2)).sign
    array(1.)
    """
    return SlogdetResult(*F.linalg.slogdet(_matrices("slogdet", x, True)))


def solve(x1: ndarray, x2: ndarray, /) -> Any:
    """The solution of linear equations ``x1 @ x = x2``.

    Parameters
    ----------
    x1 : ndarray, (..., n, n)
    x2 : ndarray, (..., n, m) or (n,)
        One vector if it has one dimension, else matrices.

    Returns
    -------
    ndarray, (..., n, m) or (..., n)

    Raises
    ------
    MXNetError
        (also ValueError) for a singular matrix.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 2.0]))
    array([1. , 0.5])
    """
    _matrices("solve", x1, True)
    check("solve", "floating-point", x2)
    a, b = common("solve", x1, x2)
    vector = b.ndim == 1
    b = F.expand_dims(b, -1) if vector else b
    n = max(a.ndim, b.ndim)
    a, b = (F.reshape(x, (1,) * (n - x.ndim) + x.shape) if x.ndim < n else x for x in (a, b))
    found = F.linalg.solve(a, b)
    return F.squeeze(found, -1) if vector else found


def svd(x: ndarray, /, *, full_matrices: bool = True) -> SVDResult:
    """The factors of matrices ``x = (U * S) @ Vh``: U has orthonormal columns, Vh orthonormal rows, S falls.

    Parameters
    ----------
    x : ndarray, (..., m, n)
    full_matrices : bool
        U is (..., m, m) and Vh (..., n, n); what goes beyond the singular values has no gradient.

    Returns
    -------
    (U, S, Vh) : tuple of ndarray, (..., m, k), (..., k) and (..., k, n)
        With k the smaller one of m and n.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.svd(xp.asarray([[0.0, 2.0], [3.0, 0.0]])).S
    array([3., 2.])
    """
    m, n = _matrices("svd", x).shape[-2:]
    u, s, v = F.linalg.svd(x)
    if full_matrices and m > n:
        u = _completed(u)
    elif full_matrices and n > m:
        v = F.swapaxes(_completed(F.swapaxes(v, -2, -1)), -2, -1)
    return SVDResult(u, s, v)


def svdvals(x: ndarray, /) -> Any:
    """The singular values of matrices, the largest first.

    Parameters
    ----------
    x : ndarray, (..., m, n)

    Returns
    -------
    ndarray, (..., k)
        With k the smaller one of m and n.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.svdvals(xp.asarray([[0.0, 2.0], [3.0, 0.0]]))
    array([3., 2.])
    """
    return F.linalg.svd(_matrices("svdvals", x))[1]


def trace(x: ndarray, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Sums of diagonals of matrices.

    Parameters
    ----------
    x : ndarray, (..., m, n)
        The dtype must be numeric.
    offset : int
        Which: above the main one, or below for numbers below 0.
    dtype : dtype, optional
        Of the result, and to add up in: that of `x` for floats, else int64 or uint64.

    Returns
    -------
    ndarray, (...)

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.trace(xp.asarray([[1.0, 2.0], [3.0, 4.0]]))
    array(5.)
    """
    _matrices("trace", x, category="numeric")
    return F.sum(diagonal(x, offset=offset), axis=-1, dtype=summed("trace", x, dtype))


def vector_norm(x: ndarray, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Any:
    """Norms of vectors.

    Parameters
    ----------
    x : ndarray
    axis : int or tuple of int, optional
        Along which the elements of a vector lie; all unless told.
    keepdims : bool
        Keep these axes, with length 1.
    ord : float
        Which norm: the sum of powers of this number, then the root; ``inf`` the largest absolute value, ``-inf`` the
        least, 0 the count of what is not zero.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0]))
    array(5.)
    """
    check("vector_norm", "floating-point", x)
    axes = axes_of("vector_norm", x.ndim, axis)
    rest = tuple(d for d in range(x.ndim) if d not in axes)
    flat = F.transpose(x, (*rest, *axes)) if x.ndim > 1 else x
    flat = F.reshape(flat, (*(x.shape[d] for d in rest), int(np.prod([x.shape[d] for d in axes], dtype=int))))
    found = F.linalg.norm(flat, ord, -1)
    if not keepdims:
        return found
    return F.reshape(found, tuple(1 if d in axes else n for d, n in enumerate(x.shape)))


for _name in __all__:
    globals()[_name] = in_numpys_shapes(globals()[_name])
