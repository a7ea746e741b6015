"""The functions of ``mx.np.linalg``."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import numpy as np

from .._core.array import Array, Storage
from .._core.errors import error
from .._core.state import state

__all__ = [
    "cholesky",
    "cond",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "tensorinv",
    "tensorsolve",
]


def _real(a: Any) -> Any:
    """An array of whole numbers as float64; what dtype a symbol has is not known."""
    dtype = getattr(a, "dtype", None)
    return a if dtype is None or np.dtype(dtype).kind not in "iub" else a.astype("float64")


def cholesky(F: Any, a: Any) -> Any:
    """The lower triangular factors L of symmetric positive definite matrices: ``a = L @ L.T``.

    Parameters
    ----------
    a : ndarray, (..., n, n)
        Only its lower triangle is read. float32 or float64; whole numbers count as float64.

    Returns
    -------
    ndarray, (..., n, n)

    Raises
    ------
    MXNetError
        (also ValueError) for a matrix that is not positive definite.

    Examples
    --------
    >>> from mxcore import np
    >>> np.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]))
    array([[2., 0.],
           [1., 2.]])
    """
    return F.call("_npi_cholesky", a)


def det(F: Any, a: Any) -> Any:
    """The determinants of square matrices; the gradient is zero where the determinant is.

    Parameters
    ----------
    a : ndarray, (..., n, n)
        float32 or float64; whole numbers count as float64.

    Returns
    -------
    ndarray, (...)

    Examples
    --------
    >>> from mxcore import np
    >>> np.linalg.det(np.array([[2.0, 0.0], [1.0, 3.0]]))
    array(6.)
    """
    return F.call("_npi_det", a)


def slogdet(F: Any, a: Any) -> Any:
    """The signs of the determinants of square matrices, and the logarithms of their absolute values.

    Parameters
    ----------
    a : ndarray, (..., n, n)
        float32 or float64; whole numbers count as float64.

    Returns
    -------
    (sign, logdet) : tuple of ndarray, (...)

    Examples
    --------
    >>> from mxcore import np
    >>> np.linalg.slogdet(np.eye(2))
    (array(1.), array(0.))
    """
    return tuple(F.call("_npi_slogdet", a))


def inv(F: Any, a: Any) -> Any:
    """The inverses of square matrices.

    Parameters
    ----------
    a : ndarray, (..., n, n)
        float32 or float64; whole numbers count as float64.

    Returns
    -------
    ndarray, (..., n, n)

    Raises
    ------
    MXNetError
        (also ValueError) for a singular matrix.

    Examples
    --------
    >>> from mxcore import np
    >>> np.linalg.inv(np.array([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return F.call("_linalg_inverse", _real(a))


def svd(F: Any, a: Any) -> Any:
    """The factors of matrices ``a = (u * s) @ v``: u has orthonormal columns, v orthonormal rows, s falls.

    Parameters
    ----------
    a : ndarray, (..., m, n)
        float32 or float64; whole numbers count as float64.

    Returns
    -------
    (u, s, v) : tuple of ndarray, (..., m, k), (..., k) and (..., k, n)
        With k the smaller one of m and n. The largest element of each row of v is positive.

    Examples
    --------
    >>> from mxcore import np
    >>> u, s, v = np.linalg.svd(np.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> s
    array([3., 2.])
    """
    return tuple(F.call("_npi_svd", a))


def eigh(F: Any, a: Any, UPLO: str = "L") -> Any:
    """The eigenvalues of symmetric matrices, in rising order, and the eigenvectors, as columns.

    Parameters
    ----------
    a : ndarray, (..., n, n)
        float32 or float64; whole numbers count as float64.
    UPLO : {'L', 'U'}
        Which triangle of it is read.

    Returns
    -------
    (w, v) : tuple of ndarray, (..., n) and (..., n, n)
        The largest element of each eigenvector is positive.

    Examples
    --------
    >>> from mxcore import np
    >>> w, v = np.linalg.eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> w
    array([1., 3.])
    """
    return tuple(F.call("_npi_eigh", a, UPLO=UPLO))


def eigvalsh(F: Any, a: Any, UPLO: str = "L") -> Any:
    """The eigenvalues of symmetric matrices, in rising order.

    Parameters
    ----------
    a : ndarray, (..., n, n)
        float32 or float64; whole numbers count as float64.
    UPLO : {'L', 'U'}
        Which triangle of it is read.

    Returns
    -------
    ndarray, (..., n)

    Examples
    --------
    >>> from mxcore import np
    >>> np.linalg.eigvalsh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    array([1., 3.])
    """
    return F.call("_npi_eigvalsh", a, UPLO=UPLO)


def eig(F: Any, a: Any) -> Any:
    """The eigenvalues of square matrices, and the eigenvectors, of length 1, as columns.

    The host computes them, whatever the device.

    Parameters
    ----------
    a : ndarray, (..., n, n)
        float32 or float64; whole numbers count as float64.

    Returns
    -------
    (w, v) : tuple of ndarray, (..., n) and (..., n, n)

    Raises
    ------
    MXNetError
        (also ValueError) for complex eigenvalues, which no array can hold.

    Examples
    --------
    >>> from mxcore import np
    >>> np.linalg.eig(np.array([[2.0, 0.0], [0.0, 3.0]]))[0]
    array([2., 3.])
    """
    return tuple(F.call("_npi_eig", a))


def eigvals(F: Any, a: Any) -> Any:
    """The eigenvalues of square matrices; the host computes them, whatever the device.

    Parameters
    ----------
    a : ndarray, (..., n, n)
        float32 or float64; whole numbers count as float64.

    Returns
    -------
    ndarray, (..., n)

    Raises
    ------
    MXNetError
        (also ValueError) for complex eigenvalues, which no array can hold.

    Examples
    --------
    >>> from mxcore import np
    >>> np.linalg.eigvals(np.array([[2.0, 0.0], [0.0, 3.0]]))
    array([2., 3.])
    """
    return F.call("_npi_eigvals", a)


def solve(F: Any, a: Any, b: Any) -> Any:
    """The solution x of linear equations ``a @ x = b``.

    Parameters
    ----------
    a : ndarray, (..., n, n)
        float32 or float64; whole numbers count as float64. Stacks are broadcast.
    b : ndarray, (..., n, m) or (..., n)
        Vectors if it has one dimension, or the shape of `a` but for the last dimension.

    Returns
    -------
    ndarray
        (..., n, m) or (..., n).

    Raises
    ------
    MXNetError
        (also ValueError) for a singular matrix.

    Examples
    --------
    >>> from mxcore import np
    >>> np.linalg.solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0]))
    array([1. , 0.5])
    """
    return F.call("_npi_solve", a, b)


def tensorsolve(F: Any, a: Any, b: Any, axes: Any = None) -> Any:
    """The solution x of linear equations whose unknowns are an array: ``tensordot(a, x, x.ndim) == b``.

    Parameters
    ----------
    a : ndarray
        Its last axes are those of x, which has as many elements as `b`.
    b : ndarray
    axes : sequence of int, optional
        Axes of `a` that are moved to the end first.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> a = np.eye(6).reshape(2, 3, 6)
    >>> np.linalg.tensorsolve(a, np.ones((2, 3))).shape
    (6,)
    """
    return F.call("_npi_tensorsolve", a, b, a_axes="None" if axes is None else _axes("tensorsolve", axes))


def tensorinv(F: Any, a: Any, ind: int = 2) -> Any:
    """The inverse of an array as a linear map of arrays.

    Parameters
    ----------
    a : ndarray
        Its first `ind` axes have as many elements as the others.
    ind : int

    Returns
    -------
    ndarray
        Of shape ``a.shape[ind:] + a.shape[:ind]``: ``tensordot(it, b, ind)`` solves ``tensordot(a, x, x.ndim) == b``.

    Examples
    --------
    >>> from mxcore import np
    >>> np.linalg.tensorinv(np.eye(6).reshape(2, 3, 6), ind=2).shape
    (6, 2, 3)
    """
    return F.call("_npi_tensorinv", a, ind=ind)


def pinv(F: Any, a: Any, rcond: Any = 1e-15, hermitian: bool = False) -> Any:
    """The pseudo-inverses of matrices.

    Parameters
    ----------
    a : ndarray, (..., m, n)
        float32 or float64; whole numbers count as float64.
    rcond : float or ndarray (...)
        Singular values below this, relative to the largest one, count as zero.
    hermitian : bool
        The matrices are symmetric, which makes it faster.

    Returns
    -------
    ndarray, (..., n, m)
        Its gradient is that by matrices of the same rank.

    Examples
    --------
    >>> from mxcore import np
    >>> np.linalg.pinv(np.array([[2.0, 0.0], [0.0, 0.0]]))
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    if F.is_value(rcond):
        return F.call("_npi_pinv", a, rcond, hermitian=hermitian)
    return F.call("_npi_pinv_scalar_rcond", a, rcond=rcond, hermitian=hermitian)


def _axes(name: str, axis: Any) -> tuple[int, ...]:
    try:
        return tuple(int(i) for i in ((axis,) if isinstance(axis, numbers.Integral) else axis))
    except (TypeError, ValueError):
        raise error(TypeError, f"np.linalg.{name}: axes must be None, an int or ints, got {axis!r}") from None


def norm(F: Any, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Norms of vectors or matrices.

    Parameters
    ----------
    x : ndarray
        Whole numbers count as float64.
    ord : number, {'fro', 'nuc', 'inf', '-inf'}, optional
        Which norm: of vectors that of this power; ``inf`` the largest absolute value, ``-inf`` the least, 0 the count
        of what is not zero. Of matrices 'fro' the root of the sum of squares, 'nuc' the sum of the singular values, 2
        the largest of these, -2 the least, 1 and ``inf`` the largest sum of absolute values of a column and of a row,
        -1 and ``-inf`` the least. Unless told, the root of the sum of squares, without `axis` of all elements.
    axis : int or (int, int), optional
        The axis of the vectors, or those of the matrices. Unless told, `ord` is of the last two dimensions, or of the
        only one.
    keepdims : bool
        Keep these axes, with length 1.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for an `ord` that vectors or matrices do not have.

    Examples
    --------
    >>> from mxcore import np
    >>> np.linalg.norm(np.array([[3.0, 4.0], [6.0, 8.0]]), axis=1)
    array([ 5., 10.])
    """
    if isinstance(keepdims, numbers.Integral):
        keepdims = bool(keepdims)
    axes = None if axis is None else _axes("norm", axis)
    if ord is None:
        if axes is None:
            return F.call("_npi_norm", x, ord=2, axis="None", keepdims=keepdims, flag=-2)
        if len(axes) > 2:
            raise error(ValueError, f"np.linalg.norm: axis {axis} names {len(axes)} axes; of matrices, two are meant")
        return F.call("_npi_norm", x, ord=2, axis=axes, keepdims=keepdims, flag=1)
    flag, power = _norm_of(ord, axes)
    if flag == 1 and axes is None and getattr(x, "ndim", 3) <= 2:
        flag = -2  # which says the same, and does not leave open how many axes there are
    return F.call("_npi_norm", x, ord=power, axis="None" if axes is None else axes, keepdims=keepdims, flag=flag)


def _norm_of(ord: Any, axes: Any) -> tuple[int, Any]:
    """(flag, ord) of the operator."""
    if ord in ("fro", "f"):
        return 1, 2
    if ord == "nuc":
        return 2, 2
    if ord in ("inf", "-inf"):
        return -1, ord
    if not isinstance(ord, numbers.Real):
        raise error(ValueError, f"np.linalg.norm: ord must be a number, 'fro', 'nuc', 'inf' or '-inf', got {ord!r}")
    if axes is not None and len(axes) == 2 and ord in (2, -2):
        return 0, ord
    return -1, str(float(ord)) if math.isinf(ord) else ord


def matrix_power(F: Any, a: Any, n: int) -> Any:
    """Square matrices to a whole power; to a negative one, that of their inverses.

    Parameters
    ----------
    a : ndarray, (..., m, m)
    n : int

    Returns
    -------
    ndarray, (..., m, m)

    Examples
    --------
    >>> from mxcore import np
    >>> np.linalg.matrix_power(np.array([[1.0, 1.0], [0.0, 1.0]]), 3)
    array([[1., 3.],
           [0., 1.]])
    """
    if not isinstance(n, numbers.Integral):
        raise error(TypeError, f"np.linalg.matrix_power: n must be a whole number, got {n!r}")
    if n == 0:
        return F.call("_linalg_makediag", F.call("ones_like", F.call("_linalg_extractdiag", a)))
    if n < 0:
        a, n = F.call("_linalg_inverse", _real(a)), -n
    result = None
    square = a
    while n:
        if n % 2:
            result = square if result is None else F.call("_npi_matmul", result, square)
        n //= 2
        square = F.call("_npi_matmul", square, square) if n else square
    return F.call("_copy", result) if result is a else result


def multi_dot(F: Any, arrays: Any, *, out: Any = None) -> Any:
    """The product of several matrices, multiplied in the order that takes the least work.

    Parameters
    ----------
    arrays : sequence of ndarray
        Matrices; the first and the last one may be vectors.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.linalg.multi_dot([np.ones((2, 3)), np.ones((3, 4)), np.ones(4)])
    array([12., 12.])
    """
    arrays = [*arrays]
    if len(arrays) < 2:
        raise error(ValueError, f"np.linalg.multi_dot multiplies two arrays or more, got {len(arrays)}")
    return F.call("_multi_dot", *arrays, out=out, num_args=len(arrays))


def matrix_rank(F: Any, A: Any, tol: Any = None, hermitian: bool = False) -> Any:
    """The ranks of matrices: how many singular values are above a limit.

    Parameters
    ----------
    A : ndarray, (..., m, n)
        Fewer dimensions: 1 if an element is not zero, else 0.
    tol : float or ndarray (...), optional
        The limit. Unless told, the largest singular value times the larger one of m and n, times the dtype's epsilon.
    hermitian : bool
        The matrices are symmetric, which makes it faster.

    Returns
    -------
    ndarray, (...)
        int64, without a gradient.

    Examples
    --------
    >>> from mxcore import np
    >>> np.linalg.matrix_rank(np.ones((3, 3)))
    array(1, dtype=int64)
    """
    if getattr(A, "ndim", 2) < 2:
        return F.call("Cast", F.call("_npi_norm", A, ord="inf", axis="None", flag=-1) != 0, dtype="int64")
    if tol is None:
        return F.call("_npi_matrix_rank", A, hermitian=hermitian)
    if not F.is_value(tol):
        tol = F.call("_full", shape=(), value=float(tol), dtype="float64", **_place(A))
    return F.call("_npi_matrix_rank", A, tol, has_tol=True, hermitian=hermitian)


def _place(x: Any) -> dict[str, Any]:
    """Where arrays are made beside an array."""
    ctx = getattr(x, "ctx", None)
    return {} if ctx is None else {"ctx": ctx}


def cond(F: Any, x: Any, p: Any = None) -> Any:
    """The condition numbers of matrices: the norm times the norm of the inverse.

    Parameters
    ----------
    x : ndarray, (..., m, n)
        Square unless `p` is None, 2 or -2.
    p : {None, 2, -2, 1, -1, inf, -inf, 'fro', 'nuc'}
        Which norm; unless told, the largest singular value by the least one.

    Returns
    -------
    ndarray, (...)
        Infinite for singular matrices.

    Examples
    --------
    >>> from mxcore import np
    >>> np.linalg.cond(np.array([[4.0, 0.0], [0.0, 2.0]]))
    array(2.)
    """
    if p is None or p in (2, -2):
        most, least = (F.call("_npi_norm", x, ord=o, axis=(-2, -1), flag=0) for o in (2, -2))
        return F.call("broadcast_div", *((least, most) if p == -2 else (most, least)))
    singular = F.call("_npi_det", x)
    inverse = F.call("_inverse_or_zeros", x, singular)
    flag, power = _norm_of(p, (-2, -1))
    a, b = (F.call("_npi_norm", m, ord=power, axis=(-2, -1), flag=flag) for m in (x, inverse))
    # Infinite where the determinant is zero: (… + 1) / 0.
    found = F.call("broadcast_add", F.call("broadcast_mul", a, b), F.call("_equal_scalar", singular, scalar=0))
    return F.call("broadcast_div", found, F.call("_not_equal_scalar", singular, scalar=0))


def _host_only(name: str, *values: Any) -> None:
    """Refuse what NumPy, in the host's memory, cannot compute for us."""
    if state.record:
        raise error(
            ValueError,
            f"np.linalg.{name}: NumPy computes it, and gives no gradient; call it outside of autograd.record(), or "
            "within autograd.pause()",
        )
    for x in values:
        if not isinstance(x, Array):
            raise error(TypeError, f"np.linalg.{name} takes arrays of mx.np, got {type(x).__name__}")


def qr(F: Any, a: Any, mode: str = "reduced") -> Any:
    """The factors of matrices ``a = q @ r``: q has orthonormal columns, r is upper triangular.

    Parameters
    ----------
    a : ndarray, (..., m, n)
        float32 or float64; whole numbers count as float64.
    mode : {'reduced', 'r', 'complete', 'raw'}
        'reduced': q is (..., m, k) and r (..., k, n), with k the smaller one of m and n; 'r': r alone. The others are
        NumPy's, computed in the host's memory, without a gradient.

    Returns
    -------
    (q, r) : tuple of ndarray, or r

    Examples
    --------
    >>> from mxcore import np
    >>> q, r = np.linalg.qr(np.ones((3, 2)))
    >>> q.shape, r.shape
    ((3, 2), (2, 2))
    """
    if mode in ("reduced", "r"):
        q, r = F.call("_npi_qr", a)
        return r if mode == "r" else (q, r)
    if mode not in ("complete", "raw"):
        raise error(ValueError, f"np.linalg.qr: mode must be 'reduced', 'r', 'complete' or 'raw', got {mode!r}")
    _host_only("qr", a)
    return tuple(_array(F, x, a) for x in np.linalg.qr(a.asnumpy(), mode=mode))  # type: ignore[call-overload]


def _array(F: Any, value: Any, like: Any) -> Any:
    """What NumPy computed, as an array where another one is."""
    ctx = like.ctx
    return F.value(ctx.device.from_host(np.ascontiguousarray(value), ctx.device_id), Storage(ctx))


def lstsq(F: Any, a: Any, b: Any, rcond: Any = "warn") -> Any:
    """The least squares solution of linear equations; NumPy's, computed in the host's memory, without a gradient.

    Parameters
    ----------
    a : ndarray, (m, n)
    b : ndarray, (m,) or (m, k)
    rcond : float, optional
        Singular values below this, relative to the largest one, count as zero; None: the dtype's epsilon times the
        larger one of m and n; 'warn': the epsilon alone, and a warning that this is not what NumPy does today.

    Returns
    -------
    (x, residuals, rank, s) : tuple of ndarray, ndarray, int and ndarray

    Raises
    ------
    MXNetError
        (also ValueError) within ``autograd.record()``.

    Examples
    --------
    >>> from mxcore import np
    >>> x, residuals, rank, s = np.linalg.lstsq(np.array([[1.0], [1.0]]), np.array([1.0, 3.0]), rcond=None)
    >>> x
    array([2.])
    """
    _host_only("lstsq", a, b)
    if isinstance(rcond, str):
        if rcond != "warn":
            raise error(ValueError, f"np.linalg.lstsq: rcond must be a number, None or 'warn', got {rcond!r}")
        warnings.warn(
            "np.linalg.lstsq: rcond=None takes the limit that NumPy takes today; rcond=-1 keeps the old one, which is "
            "taken now",
            FutureWarning,
            stacklevel=2,
        )
        rcond = -1
    x, residuals, rank, s = np.linalg.lstsq(a.asnumpy(), b.asnumpy(), rcond=rcond)
    return _array(F, x, a), _array(F, residuals, a), int(rank), _array(F, s, a)
