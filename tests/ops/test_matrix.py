"""Matrix products of arrays and of sparse matrices, linear algebra, and storage types."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, nd
from mxcore.base import MXNetError
from mxcore.testing.gradcheck import check_grads

RS = np.random.RandomState(5)
L = nd.linalg


def random(*shape):
    return RS.uniform(-1, 1, shape)


def f64(a):
    return nd.array(a, dtype="float64")


def close(got, want, tol=1e-10):
    assert got.shape == want.shape
    np.testing.assert_allclose(got.asnumpy(), want, rtol=tol, atol=tol)


@pytest.mark.parametrize(
    "a, b", [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3, 4), (4, 2, 3)), ((2, 0), (0, 3))]
)
def test_dot_contracts_last_with_first(a, b):
    a, b = random(*a), random(*b)
    want = np.tensordot(a, b, 1)
    close(nd.dot(f64(a), f64(b)), want.reshape(want.shape or (1,)))
    if a.size:
        check_grads(nd.dot, [a, b], order=(1, 2))


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_dot_flags(ta, tb):
    a, b = random(3, 2, 4), random(4, 5, 3)
    if ta:
        a = a.transpose(2, 0, 1)
    if tb:
        b = b.transpose(1, 2, 0)
    want = np.tensordot(a, b, axes=(0 if ta else -1, -1 if tb else 0))
    close(nd.dot(f64(a), f64(b), transpose_a=ta, transpose_b=tb), want)
    check_grads(lambda x, y: nd.dot(x, y, transpose_a=ta, transpose_b=tb), [a, b], order=(1, 2))


@pytest.mark.parametrize(
    "a, b, kw, words",
    [
        ((2, 3), (2, 3), {}, "lengths that differ, 3 and 2"),
        ((3,), (3,), {"transpose_a": True}, "vectors cannot be transposed"),
        ((2, 3), (4, 2), {"transpose_b": True}, "3 and 2"),
    ],
)
def test_bad_dot(a, b, kw, words):
    with pytest.raises(ValueError, match=f"operator dot.*{words}.*lhs"):
        nd.dot(nd.ones(a), nd.ones(b), **kw)


def test_dot_of_halves_is_summed_in_float32():
    x = nd.ones((1, 4096), dtype="float16")
    y = nd.dot(x, x, transpose_b=True)
    assert y.dtype == np.float16 and y.asscalar() == 4096
    with pytest.raises(TypeError, match="float16.*float32|float32.*float16"):
        nd.dot(x, x.astype("float32"), transpose_b=True)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_batch_dot(ta, tb):
    a, b = random(2, 3, 4), random(2, 4, 5)
    want = a @ b
    a, b = (a.swapaxes(1, 2) if ta else a), (b.swapaxes(1, 2) if tb else b)
    close(nd.batch_dot(f64(a), f64(b), transpose_a=ta, transpose_b=tb), want)
    check_grads(lambda x, y: nd.batch_dot(x, y, transpose_a=ta, transpose_b=tb), [a, b], order=(1, 2))


def test_bad_batch_dot():
    for a, b in (((3, 4), (4, 5)), ((2, 3, 4), (3, 4, 5)), ((2, 3, 4), (2, 3, 4))):
        with pytest.raises(ValueError, match="batch_dot"):
            nd.batch_dot(nd.ones(a), nd.ones(b))


def test_khatri_rao():
    a, b = random(2, 3), random(4, 3)
    close(nd.khatri_rao(f64(a), f64(b)), np.einsum("ik,jk->ijk", a, b).reshape(8, 3))
    with pytest.raises(ValueError, match="same number of columns"):
        nd.khatri_rao(nd.ones((2, 3)), nd.ones((2, 2)))
    x = nd.ones((2, 2))
    x.attach_grad()
    with autograd.record():
        y = nd.khatri_rao(x, x)
    with pytest.raises(MXNetError, match="khatri_rao is not differentiable"):
        y.backward()


HOLES = np.where(RS.rand(5, 4) < 0.6, 0, random(5, 4)).astype("f4")


def test_dot_of_sparse_matrices():
    x, w, v = nd.array(HOLES).tostype("csr"), random(4, 3).astype("f4"), random(5, 3).astype("f4")
    y = nd.dot(x, nd.array(w))
    assert y.stype == "default"
    close(y, HOLES @ w, 1e-6)
    y = nd.dot(x, nd.array(v), transpose_a=True)
    assert y.stype == "row_sparse" and y.indices.asnumpy().tolist() == np.flatnonzero(HOLES.any(0)).tolist()
    close(y, HOLES.T @ v, 1e-6)
    assert nd.dot(x, nd.array(v), transpose_a=True, forward_stype="default").stype == "default"
    y = nd.dot(nd.array(v.T), x)
    assert y.stype == "csr"
    close(y, v.T @ HOLES, 1e-6)
    close(nd.dot(x, x, transpose_b=True), HOLES @ HOLES.T, 1e-6)
    close(nd.dot(x, nd.array(w[:, 0])), HOLES @ w[:, 0], 1e-6)
    close(nd.dot(x, nd.array(w.T), transpose_b=True), HOLES @ w, 1e-6)
    close(nd.dot(x, nd.array(w).tostype("row_sparse")), HOLES @ w, 1e-6)


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
@pytest.mark.parametrize(
    "flags", [{}, {"transpose_a": True, "forward_stype": "default"}, {"transpose_b": True}], ids=str
)
def test_gradient_for_weights_of_sparse_data(stype, flags):
    data = HOLES.T if "transpose_a" in flags else HOLES
    w = random(3, 4).astype("f4") if "transpose_b" in flags else random(4, 3).astype("f4")
    weight = nd.array(w)
    weight.attach_grad(stype=stype)
    head = random(5, 3).astype("f4")
    with autograd.record():
        y = nd.dot(nd.array(data).tostype("csr"), weight, **flags)
    y.backward(nd.array(head))
    want = HOLES.T @ head
    close(weight.grad, want.T if "transpose_b" in flags else want, 1e-5)
    assert weight.grad.stype == stype


def test_storage_casts():
    x = nd.array(HOLES)
    for stype in ("csr", "row_sparse", "default"):
        for source in (x, x.tostype("csr"), x.tostype("row_sparse")):
            y = nd.cast_storage(source, stype)
            assert y.stype == stype
            np.testing.assert_array_equal(y.asnumpy(), HOLES)
    rows = x.tostype("row_sparse")
    kept = nd.sparse.retain(rows, nd.array([3, 1]))
    assert kept.stype == "row_sparse" and set(kept.indices.asnumpy()) <= {1, 3}
    want = np.zeros_like(HOLES)
    want[[1, 3]] = HOLES[[1, 3]]
    np.testing.assert_array_equal(kept.asnumpy(), want)
    assert nd.contrib.getnnz(x.tostype("csr")).asscalar() == np.count_nonzero(HOLES)
    assert nd.contrib.getnnz(x.tostype("csr"), axis=1).asnumpy().tolist() == np.count_nonzero(HOLES, 1).tolist()
    with pytest.raises(ValueError, match="csr holds matrices"):
        nd.ones((2, 2, 2)).tostype("csr")


def test_storage_of_zeros():
    x = nd.zeros((3, 4))
    assert x.tostype("row_sparse").indices.shape == (0,) and x.tostype("csr").data.shape == (0,)
    close(nd.dot(x.tostype("csr"), nd.ones((4, 2))), np.zeros((3, 2)))
    assert nd.dot(x.tostype("csr"), nd.ones((3, 2)), transpose_a=True).asnumpy().tolist() == np.zeros((4, 2)).tolist()


# ---- linear algebra -------------------------------------------------------------------------------------------
FULL = random(2, 3, 3) + 2 * np.eye(3)
SPD = FULL @ FULL.swapaxes(-1, -2)


def t(a):
    return a.swapaxes(-1, -2)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_gemm(ta, tb):
    a, b, c = random(2, 3, 4), random(2, 4, 5), random(2, 3, 5)
    want = a @ b
    a, b = (t(a) if ta else a), (t(b) if tb else b)
    kw = {"transpose_a": ta, "transpose_b": tb, "alpha": 0.5}
    close(L.gemm2(f64(a), f64(b), **kw), 0.5 * want)
    close(L.gemm(f64(a), f64(b), f64(c), beta=2, **kw), 0.5 * want + 2 * c)
    check_grads(lambda *x: L.gemm(*x, beta=2, **kw), [a, b, c], order=(1, 2))


def test_gemm_with_rows_on_another_axis():
    a, b = random(2, 5, 3), random(3, 5, 4)
    close(L.gemm2(f64(a), f64(b), axis=0), np.einsum("mbn,nbr->mbr", a, b))
    with pytest.raises(ValueError, match="last axis holds the columns"):
        L.gemm2(f64(a), f64(b), axis=2)
    with pytest.raises(ValueError, match="one rank"):
        L.gemm2(nd.ones((2, 3)), nd.ones((1, 3, 2)))


@pytest.mark.parametrize("name", ["trmm", "trsm"])
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_triangular(name, right, transpose, lower):
    a, b = FULL, random(2, 4, 3) if right else random(2, 3, 4)
    m = np.tril(a) if lower else np.triu(a)
    m = t(m) if transpose else m
    m = m if name == "trmm" else np.linalg.inv(m)
    kw = {"rightside": right, "transpose": transpose, "lower": lower, "alpha": 0.7}
    op = getattr(L, name)
    close(op(f64(a), f64(b), **kw), 0.7 * (b @ m if right else m @ b))
    check_grads(lambda x, y: op(x, y, **kw), [a, b], order=(1, 2))


def test_factors():
    low = np.linalg.cholesky(SPD)
    close(L.potrf(f64(SPD)), low)
    close(L.potrf(f64(SPD), lower=False), t(low))
    close(L.potri(f64(low)), np.linalg.inv(SPD))
    close(L.potri(f64(t(low)), lower=False), np.linalg.inv(SPD))
    q, lq = L.gelqf(f64(FULL[:, :2]))
    close(L.gemm2(lq, q), FULL[:, :2])
    close(L.syrk(q), np.broadcast_to(np.eye(2), (2, 2, 2)))
    u, values = L.syevd(f64(SPD))
    close(L.gemm2(u, nd.expand_dims(values, axis=-1) * u, transpose_a=True), SPD)
    largest = np.take_along_axis(u.asnumpy(), np.abs(u.asnumpy()).argmax(-1)[..., None], -1)
    assert (largest > 0).all()


def symmetric(f):
    """A function of a symmetric matrix, as one of any matrix."""
    return lambda x: f((x + nd.SwapAxis(x, dim1=-1, dim2=-2)) * 0.5)


@pytest.mark.parametrize(
    "f",
    [
        symmetric(L.potrf),
        symmetric(lambda x: L.potrf(x, lower=False)),
        symmetric(lambda x: L.syevd(x)[0]),
        symmetric(lambda x: L.syevd(x)[1]),
        L.potri,
        lambda x: L.potri(x, lower=False),
        L.inverse,
        L.det,
        lambda x: L.slogdet(x)[1],
        L.sumlogdiag,
        lambda x: L.gelqf(x[:, :2])[0],
        lambda x: L.gelqf(x[:, :2])[1],
    ],
)
def test_gradients_of_factors(f):
    check_grads(f, [SPD], order=(1, 2), rtol=1e-4)


def test_determinants():
    close(L.det(f64(FULL)), np.linalg.det(FULL))
    sign, log = L.slogdet(f64(-FULL))
    close(sign, np.linalg.slogdet(-FULL)[0])
    close(log, np.linalg.slogdet(FULL)[1])
    assert L.det(f64(FULL[0])).shape == (1,)
    close(L.sumlogdiag(f64(SPD)), np.log(np.diagonal(SPD, 0, 1, 2)).sum(-1))


@pytest.mark.parametrize("f, want", [(L.det, [[2, 0], [0, 2]]), (lambda x: L.slogdet(x)[1], [[0.5, 0], [0, 0.5]])])
@pytest.mark.parametrize("others", [[np.ones((2, 2))], [[[1, 2], [2, 4]], np.zeros((2, 2))], []])
def test_singular_matrices_have_no_gradient(f, want, others):
    x = f64([np.eye(2) * 2, *others])
    zeros = np.zeros((len(others), 2, 2)).tolist()
    x.attach_grad()
    with autograd.record():
        y = f(x)
    y.backward()
    assert x.grad.asnumpy().tolist() == [want, *zeros]
    with autograd.record():
        (g,) = autograd.grad(f(x), x, create_graph=True)
        (g * g).sum().backward()
    assert x.grad.asnumpy()[1:].tolist() == zeros and x.grad.asnumpy()[0].any()
    alone = f64(np.ones((2, 2)))
    alone.attach_grad()
    with autograd.record():
        y = f(alone)
    y.backward()
    assert alone.grad.asnumpy().tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 2])
@pytest.mark.parametrize("lower", [False, True])
def test_triangles_and_diagonals_come_back(offset, lower):
    a = f64(random(2, 4, 4))
    diagonal = L.extractdiag(a, offset=offset)
    close(diagonal, np.diagonal(a.asnumpy(), offset, 1, 2))
    close(L.extractdiag(L.makediag(diagonal, offset=offset), offset=offset), diagonal.asnumpy())
    part = L.extracttrian(a, offset=offset, lower=lower)
    below = lower if offset == 0 else offset < 0
    want = np.tril(a.asnumpy(), offset) if below else np.triu(a.asnumpy(), offset)
    close(L.maketrian(part, offset=offset, lower=lower), want)


def test_upper_triangles_go_column_by_column():
    x = nd.array([[0, 1, 2], [3, 4, 5], [6, 7, 8]])
    assert L.extracttrian(x).asnumpy().tolist() == [0, 3, 4, 6, 7, 8]
    assert L.extracttrian(x, lower=False).asnumpy().tolist() == [0, 1, 4, 2, 5, 8]


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: L.potrf(-nd.array(SPD)), "_linalg_potrf.*positive definite"),
        (lambda: L.inverse(nd.zeros((2, 2))), "_linalg_inverse.*[Ss]ingular"),
        (lambda: L.inverse(nd.ones((2, 3))), "square matrices"),
        (lambda: L.maketrian(nd.ones((2,))), "2 elements fill no triangle"),
        (lambda: L.extractdiag(nd.ones((2, 2)), offset=2), "no diagonal with offset 2"),
        (lambda: L.gelqf(nd.ones((3, 2))), "no more rows than columns"),
        (lambda: L.trsm(nd.ones((3, 3)), nd.ones((2, 3))), "do not fit"),
    ],
)
def test_bad_matrices(call, words):
    with pytest.raises(ValueError, match=words) as e:
        call()
    assert isinstance(e.value, mx.base.MXNetError)
