"""The operators of ``mx.np.linalg``: those of ``mx.nd`` with NumPy's shapes and dtypes, and what only NumPy has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.op import Op, op
from ..._core.params import Params
from ...parameters import Bool, Enum, Float, Int, Shape
from ...twins import twin
from ...typing import Array, Call, Operators
from ..common.bodies import silent, sum_over
from ..common.rules import axes_of, size_of
from .factorizations import det, factorization_cost, for_each_matrix, potrf, product, slogdet, syevd
from .triangles import square

__all__: list[str] = []

_FLOAT64, _INT64 = np.dtype("float64"), np.dtype("int64")
_UPLO = Enum("L U", "L")


def numpy_floats(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """The dtype rule of factorisations: whole numbers are computed in float64, inputs may differ."""
    known = [_FLOAT64 if t.kind in "iub" else t for t in ins if t is not None]
    t = np.result_type(*known) if known else next((t for t in outs if t is not None), None)
    if t is not None and t.itemsize < 4:
        raise TypeError(f"{t.name} is too narrow for linear algebra; cast to float32 or float64")
    return [t if x is None else x for x in ins], [t] * len(outs)


def _floats(body: Callable[..., Any]) -> Callable[..., Any]:
    """A body that gets whole numbers as float64, and all its arrays in one dtype."""

    @silent
    def computed(k: Call, p: Params, *arrays: Array) -> Any:
        kinds = {x.dtype for x in arrays}
        if len(kinds) > 1 or kinds.pop().kind in "iub":
            t = np.result_type(*[_FLOAT64 if x.dtype.kind in "iub" else x.dtype for x in arrays])
            arrays = tuple([x.astype(t) for x in arrays])
        return body(k, p, *arrays)

    computed.__doc__ = body.__doc__
    return computed


def _is_float(p: Params, *specs: Any) -> bool:
    return all(s.dtype.kind == "f" for s in specs)


def _t(F: Operators, x: Any) -> Any:
    return F.SwapAxis(x, dim1=-1, dim2=-2)


def _of_matrix(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a result that has one number for each matrix."""
    square(shape)
    return shape[:-2]


def _twin(name: str, of: Op) -> Op:
    made = twin(name, of, when=_is_float, body=_floats(of.body))  # type: ignore[arg-type]
    made.dtype(numpy_floats)
    return made


cholesky = _twin("_npi_cholesky", potrf)
np_det = _twin("_npi_det", det)
np_slogdet = _twin("_npi_slogdet", slogdet)
np_det.shape(lambda p, ins: [_of_matrix(ins[0])])
np_slogdet.shape(lambda p, ins: [_of_matrix(ins[0])] * 2)


def _positive(xp: Any, vectors: Any) -> Any:
    """Signs that make the largest element of each row positive; as rows of one."""
    largest = xp.take_along_axis(vectors, xp.expand_dims(xp.argmax(xp.abs(vectors), -1), -1), -1)
    return xp.where(largest < 0, -1, 1).astype(vectors.dtype)


def _gap(F: Operators, values: Any) -> Any:
    """1 / (value j - value i), and zeros where they are equal: such vectors exchange nothing."""
    gap = F.broadcast_sub(F.expand_dims(values, axis=-2), F.expand_dims(values, axis=-1))
    return (gap != 0) / (gap + (gap == 0))


def _columns(F: Operators, matrices: Any, by: Any) -> Any:
    """Each column times a number."""
    return F.broadcast_mul(matrices, F.expand_dims(by, axis=-2))


def _reciprocal(values: Any) -> Any:
    """1 / value, and 0 for 0."""
    return (values != 0) / (values + (values == 0))


def _svd_grad(F: Operators, d_UT: Any, d_L: Any, d_V: Any, u: Any, s: Any, vt: Any) -> Any:
    """Townsend, "Differentiating the singular value decomposition", 2016; equal singular values exchange nothing."""
    squares = _gap(F, s * s)

    def turned(vectors: Any, g: Any) -> Any:
        m = product(F, vectors, g, ta=True)
        return (m - _t(F, m)) * squares

    v, dv, inv_s = _t(F, vt), _t(F, d_V), _reciprocal(s)
    inner = _columns(F, turned(u, d_UT), s) + F._linalg_makediag(d_L)
    inner = inner + _t(F, _columns(F, _t(F, turned(v, dv)), s))
    beyond_u = _columns(F, d_UT - product(F, u, product(F, u, d_UT, ta=True)), inv_s)
    beyond_v = _columns(F, dv - product(F, v, product(F, v, dv, ta=True)), inv_s)
    return product(F, product(F, u, inner) + beyond_u, vt) + product(F, u, beyond_v, tb=True)


@op(
    "_npi_svd",
    inputs="A",
    labels="numbers",
    outputs="UT L V",
    grad=lambda F, d_UT, d_L, d_V, out_UT, out_L, out_V: _svd_grad(F, d_UT, d_L, d_V, out_UT, out_L, out_V),
)
@_floats
def svd(k: Call, p: Params, A: Array) -> Any:
    """The factors of matrices A = U diag(L) V: U has orthonormal columns, V orthonormal rows, L falls.

    Of the two signs of a pair of vectors, that one is chosen which makes the largest element of the row of V positive.

    Parameters
    ----------
    A : array, (..., m, n)
        U is (..., m, k), L (..., k) and V (..., k, n), with k the smaller one of m and n.
    """
    xp = k.xp
    if not A.size:
        return [xp.zeros(s, A.dtype) for s in _svd_shape(p, [A.shape])]
    u, s, v = for_each_matrix(lambda a: xp.linalg.svd(a, full_matrices=False), A, "without singular values")
    signs = _positive(xp, v)
    return u * xp.swapaxes(signs, -1, -2), s, v * signs


def matrices(shape: tuple[int, ...], name: str = "A") -> tuple[int, int]:
    """(rows, columns) of matrices; raises ValueError for fewer dimensions."""
    if len(shape) < 2:
        raise ValueError(f"{name} {shape} must be matrices in its last two dimensions")
    return shape[-2], shape[-1]


@svd.shape
def _svd_shape(p: Params, ins: list[Any]) -> list[Any]:
    m, n = matrices(ins[0])
    batch, k = ins[0][:-2], min(m, n)
    return [(*batch, m, k), (*batch, k), (*batch, k, n)]


def _eigh_grad(F: Operators, d_w: Any, d_v: Any, w: Any, v: Any) -> Any:
    """Giles, "Collected matrix derivative results", 2008, section 3.1; equal eigenvalues exchange nothing."""
    turn = product(F, v, d_v, ta=True) * _gap(F, w)
    inner = (turn + _t(F, turn)) * 0.5 + F._linalg_makediag(d_w)
    return product(F, product(F, v, inner), v, tb=True)


def _symmetric(xp: Any, A: Any, uplo: str) -> Any:
    low = xp.tril(A) if uplo == "L" else xp.swapaxes(xp.triu(A), -1, -2)
    return low + xp.swapaxes(xp.tril(low, -1), -1, -2)


@op(
    "_npi_eigh",
    inputs="A",
    labels="numbers",
    outputs="w v",
    UPLO=_UPLO,
    grad=lambda F, d_w, d_v, out_w, out_v: _eigh_grad(F, d_w, d_v, out_w, out_v),
)
@_floats
def eigh(k: Call, p: Params, A: Array) -> Any:
    """The eigenvalues of symmetric matrices, in rising order, and the eigenvectors, as columns.

    Of the two signs of an eigenvector, that one is chosen which makes its largest element positive. The gradient is
    that by a symmetric matrix.

    Parameters
    ----------
    A : array, (..., n, n)
    UPLO : {'L', 'U'}
        Which triangle is read.
    """
    u, w = syevd.body(k, p, _symmetric(k.xp, A, p.UPLO))  # type: ignore[misc]
    return w, k.xp.swapaxes(u, -1, -2)


def _values_grad(F: Operators, d_w: Any, v: Any) -> Any:
    return product(F, _columns(F, v, d_w), v, tb=True)


@op(
    "_npi_eigvalsh",
    inputs="A",
    labels="numbers",
    outputs="w",
    UPLO=_UPLO,
    grad=lambda F, p, dy, A: _values_grad(F, dy, F._npi_eigh(A, UPLO=p.UPLO)[1]),
)
@_floats
def eigvalsh(k: Call, p: Params, A: Array) -> Array:
    """The eigenvalues of symmetric matrices, in rising order; the gradient is that by a symmetric matrix.

    Parameters
    ----------
    A : array, (..., n, n)
    UPLO : {'L', 'U'}
        Which triangle is read.
    """
    return k.xp.linalg.eigvalsh(_symmetric(k.xp, A, p.UPLO))


def _at_host(fn: Callable[[Any], Any], k: Call, *arrays: Any) -> Any:
    """What NumPy gives, in the host's memory, for arrays of a device whose library may not have it."""
    return [k.xp.asarray(np.ascontiguousarray(x)) for x in fn(*[k.device.to_host(a) for a in arrays])]


def _real(matrices: Any) -> Any:
    w, v = np.linalg.eig(matrices)
    if np.iscomplexobj(w):
        if (w.imag != 0).any():
            at = np.argwhere((w.imag != 0).any(-1))[0]
            raise ValueError(
                f"the matrix A{list(map(int, at)) if at.size else ''} has complex eigenvalues, and arrays are real; "
                "compute with NumPy: onp.linalg.eig(x.asnumpy())"
            )
        w, v = w.real, v.real
    return w, v


def _eig_grad(F: Operators, d_w: Any, d_v: Any, w: Any, v: Any) -> Any:
    """Boeddeker et al., "On the computation of complex-valued gradients", 2017, for real values."""
    m = product(F, v, d_v, ta=True)
    along = F._linalg_extractdiag(m)
    inner = (m - _columns(F, product(F, v, v, ta=True), along)) * _gap(F, w) + F._linalg_makediag(d_w)
    return F._npi_solve(_t(F, v), product(F, inner, v, tb=True))


@op(
    "_npi_eig",
    inputs="A",
    labels="numbers",
    outputs="w v",
    grad=lambda F, d_w, d_v, out_w, out_v: _eig_grad(F, d_w, d_v, out_w, out_v),
)
@_floats
def eig(k: Call, p: Params, A: Array) -> Any:
    """The eigenvalues of matrices, and the eigenvectors, of length 1, as columns; they must be real.

    It is computed by the host, whatever the device.

    Parameters
    ----------
    A : array, (..., n, n)
    """
    return _at_host(lambda a: for_each_matrix(_real, a, "without eigenvalues"), k, A)


def _eigvals_grad(F: Operators, d_w: Any, w: Any, v: Any) -> Any:
    return F._npi_solve(_t(F, v), product(F, F._linalg_makediag(d_w), v, tb=True))


@op("_npi_eigvals", inputs="A", grad=lambda F, dy, A: _eigvals_grad(F, dy, *F._npi_eig(A)))
@_floats
def eigvals(k: Call, p: Params, A: Array) -> Array:
    """The eigenvalues of matrices, which must be real.

    It is computed by the host, whatever the device.

    Parameters
    ----------
    A : array, (..., n, n)
    """
    return _at_host(lambda a: for_each_matrix(_real, a, "without eigenvalues"), k, A)[0]


def _square_shape(*outs: str) -> Callable[..., Any]:
    def rule(p: Params, ins: list[Any]) -> list[Any]:
        square(ins[0])
        return [ins[0][:-1] if o == "w" else ins[0] for o in outs]

    return rule


eigh.shape(_square_shape("w", "v"))
eig.shape(_square_shape("w", "v"))
eigvalsh.shape(_square_shape("w"))
eigvals.shape(_square_shape("w"))


# -- Linear equations ---------------------------------------------------------------------------------------------


def is_vectors(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether right-hand sides are vectors, one for each matrix, rather than matrices."""
    return len(b) == 1 or len(b) == len(a) - 1 and b == a[:-1]


def _broadcast(what: str, *batches: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*batches)
    except ValueError:
        raise ValueError(f"{what}: stacks of shapes {' and '.join(map(str, batches))} cannot be broadcast") from None


def _solve_grads(F: Operators, dy: Any, A: Any, B: Any, y: Any, needs: Any) -> Any:
    db = F._npi_solve(_t(F, A), dy)
    return (F._solve_back(db, y, A) if needs[0] else None, F._sum_like(F._cast_like(db, B), B) if needs[1] else None)


@op("_npi_solve", inputs="A B", grad=lambda F, dy, A, B, y, needs: _solve_grads(F, dy, A, B, y, needs))
@_floats
def solve(k: Call, p: Params, A: Array, B: Array) -> Array:
    """The solution X of linear equations A X = B.

    Parameters
    ----------
    A : array, (..., n, n)
    B : array, (..., n, m), or (..., n)
        Vectors if it has one dimension, or the shape of `A` but for the last dimension.
    """
    xp, vectors = k.xp, is_vectors(A.shape, B.shape)
    (shape,) = _solve_shape(p, [tuple(A.shape), tuple(B.shape)])
    right = B[..., None] if vectors else B
    batch = shape[: -1 if vectors else -2]
    if not size_of(shape):
        return xp.zeros(shape, A.dtype)
    left = xp.broadcast_to(A, (*batch, *A.shape[-2:]))
    right = xp.broadcast_to(right, (*batch, *right.shape[-2:]))
    try:
        found = xp.linalg.solve(left, right)
    except np.linalg.LinAlgError:
        for_each_matrix(xp.linalg.inv, A, "singular")
        raise
    return found[..., 0] if vectors else found


@solve.shape
def _solve_shape(p: Params, ins: list[Any]) -> list[Any]:
    a, b = ins
    n = square(a)
    vectors = is_vectors(a, b)
    if not b or b[-1 if vectors else -2] != n:
        raise ValueError(f"B {b} does not fit A {a}: it must be (..., {n}, m), or vectors of {n}")
    rest = b[:-1] if vectors else b[:-2]
    return [(*_broadcast(f"A {a} and B {b}", a[:-2], rest), *b[len(rest) :])]


@op("_solve_back", inputs="db y like~", grad=lambda F, dy, db, y_, needs: _solve_back_grads(F, dy, db, y_, needs))
@silent
def solve_back(k: Call, p: Params, db: Array, y: Array, like: Array) -> Array:
    """The gradient of `solve` for its matrices.

    Parameters
    ----------
    db : array
        The gradient for the right-hand sides, in the shape of the solutions.
    y : array
        The solutions.
    like : array
        The matrices; only their shape and dtype are used.
    """
    shape = tuple(like.shape)
    if is_vectors(shape, tuple(y.shape)):
        db, y = db[..., None], y[..., None]
    g = -k.xp.matmul(db, k.xp.swapaxes(y, -1, -2))
    lead = g.ndim - len(shape)
    axes = (*range(lead), *(i + lead for i, d in enumerate(shape[:-2]) if d == 1 != g.shape[i + lead]))
    return sum_over(g, axes).reshape(shape) if axes else g


solve_back.shape(lambda p, ins: [(*ins[2][:-1], square(ins[2]))])
solve_back.dtype(lambda p, ins, outs: (ins, [ins[2]]))


def _solve_back_grads(F: Operators, g: Any, db: Any, y: Any, needs: Any) -> Any:
    return (
        -F._sum_like(F._solve_apply(g, y), db) if needs[0] else None,
        -F._sum_like(F._solve_apply(_t(F, g), db), y) if needs[1] else None,
        None,
    )


@op(
    "_solve_apply",
    inputs="A x",
    grad=lambda F, dy, A, x: (-F._solve_back(dy, x, A), F._sum_like(F._solve_apply(_t(F, A), dy), x)),
)
@silent
def solve_apply(k: Call, p: Params, A: Array, x: Array) -> Array:
    """The products of matrices with vectors or matrices, which are told apart as by `solve`.

    Parameters
    ----------
    A : array, (..., n, n)
    x : array, (..., n, m), or (..., n)
    """
    if is_vectors(tuple(A.shape), tuple(x.shape)):
        return k.xp.matmul(A, x[..., None])[..., 0]
    return k.xp.matmul(A, x)


solve_apply.shape(_solve_shape)


def _tensor_axes(a: tuple[int, ...], axes: tuple[int, ...] | None) -> tuple[int, ...]:
    """The order of axes in which `tensorsolve` reads its first operand."""
    last = axes_of(axes, len(a)) if axes else ()
    if axes:
        last = tuple(i % len(a) for i in axes)
    return (*(i for i in range(len(a)) if i not in last), *last)


def _tensor_split(p: Params, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """(order of axes, shape of the solution, order of the matrix)."""
    order = _tensor_axes(a, p.a_axes)
    moved = tuple(a[i] for i in order)
    rest = moved[len(b) :]
    n = size_of(rest)
    if size_of(b) != n or size_of(moved[: len(b)]) != n:
        raise ValueError(f"a {a} is no square system for b {b}: a solution of shape {rest} must have as many elements")
    return order, rest, n


@op(
    "_tensor_matrix",
    inputs="a b~",
    a_axes=Shape(None),
    grad=lambda F, p, dy, like_a, like_b: (F._tensor_matrix_back(dy, like_a, like_b, a_axes=p.a_axes), None),
)
def tensor_matrix(k: Call, p: Params, a: Array, b: Array) -> Array:
    """The matrix that `tensorsolve` solves for.

    Parameters
    ----------
    a, b : array
        As there; of `b` only the shape is used.
    a_axes : tuple of int
        As there.
    """
    order, _, n = _tensor_split(p, tuple(a.shape), tuple(b.shape))
    return a.transpose(order).reshape(n, n).copy()


@tensor_matrix.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    return [(_tensor_split(p, *ins)[2],) * 2]


tensor_matrix.dtype(lambda p, ins, outs: (ins, [ins[0]]))


@op(
    "_tensor_matrix_back",
    inputs="dy a~ b~",
    a_axes=Shape(None),
    grad=lambda F, p, dys, like_a, like_b: (F._tensor_matrix(dys[0], like_b, a_axes=p.a_axes), None, None),
)
def tensor_matrix_back(k: Call, p: Params, dy: Array, a: Array, b: Array) -> Array:
    """The gradient of that matrix, in the shape of the first operand.

    Parameters
    ----------
    dy : array
    a, b : array
        Only their shapes are used.
    a_axes : tuple of int
        As in `tensorsolve`.
    """
    order, _, _ = _tensor_split(p, tuple(a.shape), tuple(b.shape))
    moved = dy.reshape([a.shape[i] for i in order])
    return moved.transpose([order.index(i) for i in range(len(order))]).copy()


tensor_matrix_back.shape(lambda p, ins: [ins[1]])
tensor_matrix_back.dtype(lambda p, ins, outs: (ins, [ins[1]]))


def _tensorsolve_grads(F: Operators, p: Params, dy: Any, a: Any, b: Any, y: Any) -> Any:
    m = F._tensor_matrix(a, b, a_axes=p.a_axes)
    db = F._npi_solve(_t(F, m), F.Reshape(dy, shape=(-1,)))
    dm = F._solve_back(db, F.Reshape(y, shape=(-1,)), m)
    return F._tensor_matrix_back(dm, a, b, a_axes=p.a_axes), F.reshape_like(F._cast_like(db, b), b)


@op(
    "_npi_tensorsolve",
    inputs="a b",
    a_axes=Shape((), optional=True),
    grad=lambda F, p, dy, a, b, y: _tensorsolve_grads(F, p, dy, a, b, y),
)
@_floats
def tensorsolve(k: Call, p: Params, a: Array, b: Array) -> Array:
    """The solution x of linear equations whose unknowns are an array: ``tensordot(a, x, x.ndim) == b``.

    Parameters
    ----------
    a : array
        Its last axes are those of `x`, the others have as many elements as `b`.
    b : array
    a_axes : tuple of int
        Axes of `a` that are moved to the end first.
    """
    order, rest, n = _tensor_split(p, tuple(a.shape), tuple(b.shape))
    found = solve.body(k, p, a.transpose(order).reshape(n, n), b.reshape(n))  # type: ignore[misc]
    return found.reshape(rest)


tensorsolve.shape(lambda p, ins: [_tensor_split(p, *ins)[1]])


def _as_matrix(p: Params, shape: tuple[int, ...]) -> tuple[int, int]:
    return size_of(shape[: p.ind]), size_of(shape[p.ind :])


def _tensorinv_grad(F: Operators, p: Params, dy: Any, y: Any, A: Any) -> Any:
    m, g = (F._flat_matrix(x, ind=-p.ind) for x in (y, dy))
    return F.reshape_like(-product(F, product(F, m, g, ta=True), m, tb=True), A)


@op("_flat_matrix", inputs="data", ind=Int(), grad=lambda F, dy, like_data: F.reshape_like(dy, like_data))
def flat_matrix(k: Call, p: Params, data: Array) -> Array:
    """An array as a matrix.

    Parameters
    ----------
    data : array
    ind : int
        The first axis of the columns.
    """
    return data.reshape(_as_matrix(p, tuple(data.shape)))


flat_matrix.shape(lambda p, ins: [_as_matrix(p, ins[0])])
flat_matrix.view = True


@op("_npi_tensorinv", inputs="a", ind=Int(2), grad=lambda F, p, dy, y, like_a: _tensorinv_grad(F, p, dy, y, like_a))
@_floats
def tensorinv(k: Call, p: Params, a: Array) -> Array:
    """The inverse of an array as a linear map: ``tensordot(inverse, b, ind)`` solves ``tensordot(a, x) == b``.

    Parameters
    ----------
    a : array
        Its first `ind` axes have as many elements as the others.
    ind : int
    """
    (shape,) = _tensorinv_shape(p, [tuple(a.shape)])
    return for_each_matrix(k.xp.linalg.inv, a.reshape(_as_matrix(p, tuple(a.shape))), "singular").reshape(shape)


@tensorinv.shape
def _tensorinv_shape(p: Params, ins: list[Any]) -> list[Any]:
    if p.ind < 1:
        raise ValueError(f"ind must be 1 or more, got {p.ind}")
    m, n = _as_matrix(p, ins[0])
    if m != n:
        raise ValueError(f"a {ins[0]} is no square map: its first {p.ind} axes have {m} elements, the others {n}")
    return [(*ins[0][p.ind :], *ins[0][: p.ind])]


# -- Matrices that are not square, and numbers of matrices ----------------------------------------------------------


def _pinv_grad(F: Operators, dy: Any, A: Any, y: Any) -> Any:
    """Golub & Pereyra, 1973, for matrices that keep their rank."""

    def orthogonal(x: Any, left: Any, right: Any) -> Any:
        """x - left right x."""
        return x - product(F, left, product(F, right, x))

    g = _t(F, dy)
    own = product(F, product(F, y, dy, ta=True), y, tb=True)
    rows = orthogonal(product(F, g, product(F, y, y, tb=True)), A, y)
    columns = _t(F, orthogonal(_t(F, product(F, product(F, y, y, ta=True), g)), _t(F, A), _t(F, y)))
    return rows + columns - own


def _pinv(k: Call, p: Params, A: Any, rcond: Any) -> Any:
    xp = k.xp
    if not A.size:
        return xp.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]), A.dtype)
    if p.hermitian:
        w, v = xp.linalg.eigh(A)
        sizes, left, right = xp.abs(w), v, xp.swapaxes(v, -1, -2)
    else:
        u, w, right = xp.linalg.svd(A, full_matrices=False)
        sizes, left = w, u
    kept = sizes > xp.max(sizes, axis=-1, keepdims=True) * rcond
    inverse = xp.where(kept, 1 / xp.where(kept, w, xp.ones_like(w)), xp.zeros_like(w))
    return xp.matmul(xp.swapaxes(right, -1, -2) * inverse[..., None, :], xp.swapaxes(left, -1, -2))


def _pinv_shape(p: Params, ins: list[Any]) -> list[Any]:
    a, *rcond = ins
    m, n = matrices(a)
    if p.hermitian:
        square(a)
    batch = _broadcast(f"A {a} and rcond", a[:-2], *rcond)
    if batch != a[:-2]:
        raise ValueError(f"rcond {rcond[0]} does not fit A {a}: it must be broadcast to {a[:-2]}")
    return [(*batch, n, m)]


@op(
    "_npi_pinv_scalar_rcond",
    inputs="A",
    rcond=Float(1e-15),
    hermitian=Bool(False),
    grad=lambda F, dy, A, y: _pinv_grad(F, dy, A, y),
)
@_floats
def pinv_scalar_rcond(k: Call, p: Params, A: Array) -> Array:
    """The pseudo-inverse of matrices, by their singular values; the gradient is that at a constant rank.

    Parameters
    ----------
    A : array, (..., m, n)
    rcond : float
        Singular values below this, relative to the largest one, count as zero.
    hermitian : bool
        The matrices are symmetric, which makes it faster.
    """
    return _pinv(k, p, A, p.rcond)


@op("_npi_pinv", inputs="A rcond", hermitian=Bool(False), grad=lambda F, dy, A, y: (_pinv_grad(F, dy, A, y), None))
@_floats
def pinv(k: Call, p: Params, A: Array, rcond: Array) -> Array:
    """The pseudo-inverse of matrices, by their singular values; the gradient is that at a constant rank.

    Parameters
    ----------
    A : array, (..., m, n)
    rcond : array, (...)
        Singular values below this, relative to the largest one, count as zero.
    hermitian : bool
        The matrices are symmetric, which makes it faster.
    """
    return _pinv(k, p, A, rcond[..., None])


pinv.shape(_pinv_shape)
pinv_scalar_rcond.shape(_pinv_shape)


@op("_npi_matrix_rank", inputs="M tol[has_tol]", has_tol=Bool(False), hermitian=Bool(False), grad=None)
@_floats
def matrix_rank(k: Call, p: Params, M: Array, tol: Any = None) -> Array:
    """The rank of matrices: how many singular values are above a limit.

    Parameters
    ----------
    M : array, (..., m, n)
    tol : array (...), optional
        The limit. Unless given, the largest singular value times the larger one of m and n, times the dtype's epsilon.
    has_tol : bool
        Whether it is given.
    hermitian : bool
        The matrices are symmetric, which makes it faster.
    """
    xp = k.xp
    if not M.size:
        return xp.zeros(_rank_shape(p, [tuple(M.shape)])[0], _INT64)
    s = xp.abs(xp.linalg.eigvalsh(M)) if p.hermitian else xp.linalg.svd(M, full_matrices=False)[1]
    limit = (
        s.max(-1, keepdims=True) * (max(M.shape[-2:]) * float(np.finfo(M.dtype).eps)) if tol is None else tol[..., None]
    )
    return (s > limit).sum(-1)


@matrix_rank.shape
def _rank_shape(p: Params, ins: list[Any]) -> list[Any]:
    matrices(ins[0], "M")
    if p.hermitian:
        square(ins[0])
    return [_broadcast(f"M {ins[0]} and tol", ins[0][:-2], *ins[1:])]


@op(
    "_npi_qr",
    inputs="A",
    labels="numbers",
    outputs="Q R",
    grad=lambda F, d_Q, d_R, A, out_Q, out_R: F._qr_back(d_Q, d_R, A, out_Q, out_R),
)
@_floats
def qr(k: Call, p: Params, A: Array) -> Any:
    """The factors of matrices A = Q R: Q has orthonormal columns, R is upper triangular.

    Parameters
    ----------
    A : array, (..., m, n)
        Q is (..., m, k) and R (..., k, n), with k the smaller one of m and n.
    """
    if not A.size:
        return [k.xp.zeros(s, A.dtype) for s in _qr_shape(p, [tuple(A.shape)])]
    q, r = k.xp.linalg.qr(A)
    return q, r


@qr.shape
def _qr_shape(p: Params, ins: list[Any]) -> list[Any]:
    m, n = matrices(ins[0])
    return [(*ins[0][:-1], min(m, n)), (*ins[0][:-2], min(m, n), n)]


for _op in (cholesky, np_det, np_slogdet, svd, eigh, eig, eigvalsh, eigvals, solve, solve_apply):
    _op.cost(factorization_cost)
for _op in (svd, eigh, eig, eigvalsh, eigvals, solve, solve_apply, tensorsolve, tensorinv, pinv, pinv_scalar_rcond, qr):
    _op.dtype(numpy_floats)


@matrix_rank.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    return numpy_floats(p, ins, [None])[0], [_INT64]
