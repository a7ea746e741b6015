"""Random matrices with known properties; NumPy's global generator decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import error

__all__ = [
    "new_matrix_with_real_eigvals_2d",
    "new_matrix_with_real_eigvals_nd",
    "new_orthonormal_matrix_2d",
    "new_sym_matrix_with_real_eigvals_2d",
    "new_sym_matrix_with_real_eigvals_nd",
]


def new_orthonormal_matrix_2d(n: int) -> np.ndarray[Any, Any]:
    """A random orthogonal matrix (n, n), uniform over all of them.

    >>> q = new_orthonormal_matrix_2d(3)
    >>> bool(np.allclose(q @ q.T, np.eye(3)))
    True
    """
    q, r = np.linalg.qr(np.random.normal(size=(n, n)))
    return q * np.where(np.diagonal(r) < 0, -1.0, 1.0)


def _eigenvalues(n: int) -> np.ndarray[Any, Any]:
    """Values in [-10, 10) away from zero and from each other: derivatives of eigenvectors divide by their distances."""
    middles = (np.arange(n) + 0.5) * (20.0 / n) - 10.0
    values = middles + np.random.uniform(-0.3, 0.3, size=n) * (20.0 / n)
    small = np.abs(values) < 2.0 / max(n, 1)
    values[small] = np.copysign(2.0 / max(n, 1), values[small])
    return np.random.permutation(values)


def new_sym_matrix_with_real_eigvals_2d(n: int) -> np.ndarray[Any, Any]:
    """A random symmetric matrix (n, n) with eigenvalues in [-10, 10).

    >>> a = new_sym_matrix_with_real_eigvals_2d(3)
    >>> bool((a == a.T).all())
    True
    """
    q = new_orthonormal_matrix_2d(n)
    a: np.ndarray[Any, Any] = (q * _eigenvalues(n)) @ q.T
    return np.asarray((a + a.T) / 2)


def new_matrix_with_real_eigvals_2d(n: int) -> np.ndarray[Any, Any]:
    """A random well-conditioned matrix (n, n) with real eigenvalues in [-10, 10).

    >>> a = new_matrix_with_real_eigvals_2d(3)
    >>> bool(np.isreal(np.linalg.eigvals(a)).all())
    True
    """
    # An orthogonal basis, mildly sheared: its inverse is well-conditioned, and so are the eigenvalues.
    shear = np.eye(n) + np.triu(np.random.uniform(-0.5, 0.5, size=(n, n)), 1) / max(n - 1, 1)
    basis = new_orthonormal_matrix_2d(n) @ shear
    return np.asarray((basis * _eigenvalues(n)) @ np.linalg.inv(basis))


def _stack(make: Callable[[int], Any], shape: Sequence[int]) -> np.ndarray[Any, Any]:
    shape = tuple(shape)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise error(ValueError, f"the last two dimensions of shape must be equal, got {shape}")
    count = int(np.prod(shape[:-2]))
    return np.array([make(shape[-1]) for _ in range(count)]).reshape(shape)


def new_sym_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Random matrices as of `new_sym_matrix_with_real_eigvals_2d` in an array (..., n, n).

    >>> new_sym_matrix_with_real_eigvals_nd((2, 3, 3)).shape
    (2, 3, 3)
    """
    return _stack(new_sym_matrix_with_real_eigvals_2d, shape)


def new_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Random matrices as of `new_matrix_with_real_eigvals_2d` in an array (..., n, n).

    >>> new_matrix_with_real_eigvals_nd((2, 3, 3)).shape
    (2, 3, 3)
    """
    return _stack(new_matrix_with_real_eigvals_2d, shape)
