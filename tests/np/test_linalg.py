"""mx.np.linalg against NumPy: stacks, dtypes, nothing; gradients, graphs and errors."""

import numpy as onp
import pytest

import mxcore as mx
from mxcore import autograd
from mxcore.base import MXNetError
from mxcore.ndarray.numpy import arrays as np
from mxcore.symbol.numpy import _Symbol, symbols
from mxcore.testing.gradcheck import check_grads

rs = onp.random.RandomState(3)
INF = onp.inf


def drawn(*shape):
    return onp.asarray(rs.uniform(-2, 2, shape))


def full(*shape):
    """Matrices that are far from singular."""
    return drawn(*shape) + 6 * onp.eye(shape[-1])


def positive(*shape):
    a = drawn(*shape)
    return a @ a.swapaxes(-1, -2) + onp.eye(shape[-1])


def apart(*shape):
    """Matrices with real eigenvalues that are apart."""
    return drawn(*shape) * 0.2 + onp.diag(onp.arange(shape[-1]) * 3.0 + 1)


def made(a):
    return mx.nd.array(a, dtype=onp.asarray(a).dtype).as_np_ndarray()


def check(got, want, tol=1e-9):
    want = onp.asarray(want)
    assert got.shape == want.shape
    onp.testing.assert_allclose(got.asnumpy(), want, rtol=tol, atol=tol)


#: Function of the face -> that of NumPy, over some matrices: (name, ours, NumPy's, inputs).
CALLS = [
    *[("inv", lambda F, a: F.linalg.inv(a), onp.linalg.inv, [full(*s)]) for s in ((3, 3), (2, 1, 3, 3), (1, 1))],
    *[("det", lambda F, a: F.linalg.det(a), onp.linalg.det, [full(*s)]) for s in ((3, 3), (2, 3, 3), (1, 1))],
    *[("slogdet", lambda F, a: F.linalg.slogdet(a), onp.linalg.slogdet, [s * full(3, 3)]) for s in (1.0, -1.0)],
    ("slogdet", lambda F, a: F.linalg.slogdet(a), onp.linalg.slogdet, [full(2, 2, 3, 3)]),
    *[
        ("cholesky", lambda F, a: F.linalg.cholesky(a), onp.linalg.cholesky, [positive(*s)])
        for s in ((3, 3), (2, 2, 2))
    ],
    *[
        ("solve", lambda F, a, b: F.linalg.solve(a, b), onp.linalg.solve, [full(*a), drawn(*b)])
        for a, b in (((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 4)), ((3, 3), (2, 3, 4)), ((2, 3, 3), (3, 2)))
    ],
    (
        "solve",
        lambda F, a, b: F.linalg.solve(a, b),
        lambda a, b: onp.linalg.solve(a, b[..., None])[..., 0],
        [full(2, 3, 3), drawn(2, 3)],
    ),
    ("tensorinv", lambda F, a: F.linalg.tensorinv(a), onp.linalg.tensorinv, [full(6, 6).reshape(2, 3, 3, 2)]),
    (
        "tensorinv",
        lambda F, a: F.linalg.tensorinv(a, ind=1),
        lambda a: onp.linalg.tensorinv(a, ind=1),
        [full(6, 6).reshape(6, 2, 3)],
    ),
    (
        "tensorsolve",
        lambda F, a, b: F.linalg.tensorsolve(a, b),
        onp.linalg.tensorsolve,
        [full(6, 6).reshape(2, 3, 6), drawn(2, 3)],
    ),
    (
        "tensorsolve",
        lambda F, a, b: F.linalg.tensorsolve(a, b, axes=(0, 2)),
        lambda a, b: onp.linalg.tensorsolve(a, b, axes=(0, 2)),
        [full(6, 6).reshape(2, 6, 3), drawn(6)],
    ),
    *[("pinv", lambda F, a: F.linalg.pinv(a), onp.linalg.pinv, [drawn(*s)]) for s in ((3, 4), (2, 4, 3), (3, 3))],
    (
        "pinv",
        lambda F, a: F.linalg.pinv(a, hermitian=True),
        lambda a: onp.linalg.pinv(a, hermitian=True),
        [positive(2, 3, 3)],
    ),
    *[("qr", lambda F, a: F.linalg.qr(a), onp.linalg.qr, [drawn(*s)]) for s in ((4, 3), (3, 3), (3, 5), (2, 4, 3))],
    ("qr r", lambda F, a: F.linalg.qr(a, mode="r"), lambda a: onp.linalg.qr(a, mode="r"), [drawn(4, 3)]),
    *[
        (
            f"matrix_power {n}",
            lambda F, a, n=n: F.linalg.matrix_power(a, n),
            lambda a, n=n: onp.linalg.matrix_power(a, n),
            [full(2, 3, 3) / 5],
        )
        for n in (-3, -1, 0, 1, 2, 3, 5)
    ],
    *[
        (
            "multi_dot",
            lambda F, *a: F.linalg.multi_dot(a),
            lambda *a: onp.linalg.multi_dot(a),
            [drawn(*s) for s in shapes],
        )
        for shapes in (((2, 3), (3, 4)), ((3,), (3, 4), (4,)), ((2, 9), (9, 3), (3, 8), (8, 2)), ((4,), (4, 3)))
    ],
    *[
        ("cond", lambda F, a, p=p: F.linalg.cond(a, p), lambda a, p=p: onp.linalg.cond(a, p), [full(2, 3, 3)])
        for p in (None, 2, -2, 1, -1, INF, -INF, "fro", "nuc")
    ],
    ("cond", lambda F, a: F.linalg.cond(a), onp.linalg.cond, [drawn(4, 3)]),
]
NORMS = [
    *[((3, 4), o, None) for o in (None, "fro", "nuc", 1, -1, 2, -2, INF, -INF)],
    *[((5,), o, None) for o in (None, 0, 1, -1, 2, 3, 2.5, -1.5, INF, -INF)],
    *[((2, 3, 4), o, a) for a in (0, -1, (1,)) for o in (None, 0, 1, 2, 3, INF, -INF)],
    *[((2, 3, 4), o, a) for a in ((0, 1), (2, 0), (-1, -2)) for o in (None, "fro", "nuc", 1, -1, 2, -2, INF, -INF)],
    ((2, 3, 4), None, None),
]
IDS = [f"{n}-{'-'.join(str(x.shape) for x in xs)}" for n, _, _, xs in CALLS]


def outputs(found):
    return [*found] if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("ours, theirs, xs", [c[1:] for c in CALLS], ids=IDS)
def test_values(ours, theirs, xs):
    want = outputs(theirs(*xs))
    for dtype, tol in (("float64", 1e-8), ("float32", 2e-3)):
        got = outputs(ours(np, *[made(x.astype(dtype)) for x in xs]))
        for g, w in zip(got, want, strict=True):
            assert onp.dtype(g.dtype) == dtype
            check(g, w, tol)


@pytest.mark.parametrize("ours, theirs, xs", [c[1:] for c in CALLS], ids=IDS)
def test_gradients(ours, theirs, xs):
    def of(*arrays):
        found = ours(np, *[x.as_np_ndarray() for x in arrays])
        return [x.as_nd_ndarray() for x in outputs(found)]

    once = ours.__code__.co_consts and "qr" in ours.__code__.co_names  # its gradient has no rule of its own
    symmetric = "cholesky" in ours.__code__.co_names or "hermitian" in str(ours.__code__.co_consts)

    def of_symmetric(a):
        return of((a + mx.nd.SwapAxis(a, dim1=-1, dim2=-2)) / 2)

    check_grads(of_symmetric if symmetric else of, xs, order=1 if once else (1, 2))


@pytest.mark.parametrize("ours, theirs, xs", [c[1:] for c in CALLS], ids=IDS)
def test_graphs(ours, theirs, xs):
    names = [f"x{i}" for i in range(len(xs))]
    found = ours(symbols, *[_Symbol(mx.sym.Variable(n)._heads) for n in names])
    arrays = [made(x) for x in xs]
    for s, want in zip(outputs(found), outputs(ours(np, *arrays)), strict=True):
        bound = s.as_nd_ndarray().bind(mx.cpu(), dict(zip(names, [x.as_nd_ndarray() for x in arrays])))
        check(bound.forward()[0], want.asnumpy())


@pytest.mark.parametrize("shape, ord, axis", NORMS)
@pytest.mark.parametrize("keepdims", [False, True])
def test_norms(shape, ord, axis, keepdims):
    x = drawn(*shape)
    want = onp.linalg.norm(x, ord, axis[0] if axis == (1,) else axis, keepdims)
    check(np.linalg.norm(made(x), ord, axis, keepdims), want, 1e-8)
    if ord in (INF, -INF):
        check(np.linalg.norm(made(x), str(ord), axis, keepdims), want)
    x32 = made(x.astype("float32"))
    check(np.linalg.norm(x32, ord, axis, keepdims), want, 1e-4)


@pytest.mark.parametrize("shape, ord, axis", NORMS)
def test_gradients_of_norms(shape, ord, axis):
    unknown = axis is None and ord in (-1, 2, -2, 3, 2.5, -1.5)  # of vectors or matrices, rules do not know
    check_grads(
        lambda x: np.linalg.norm(x.as_np_ndarray(), ord, axis).as_nd_ndarray(),
        [drawn(*shape)],
        order=1 if unknown else (1, 2),
    )


@pytest.mark.parametrize("ord", [1, -INF, 2, "nuc", "fro"])
def test_norms_of_stacks_without_axes_are_of_the_last_two(ord):
    x = drawn(2, 3, 4)
    check(np.linalg.norm(made(x), ord), onp.linalg.norm(x, ord, (1, 2)), 1e-8)


def test_norms_of_extremes():
    onp.testing.assert_allclose(np.linalg.norm(made(onp.array([3e200, 4e200]))).asnumpy(), 5e200)
    assert np.linalg.norm(made(onp.array([1.0, INF]))).asnumpy() == INF
    assert onp.isnan(np.linalg.norm(made(onp.array([1.0, onp.nan]))).asnumpy())
    check(np.linalg.norm(made(onp.zeros((0, 3)))), 0.0)
    x = made(onp.zeros(3))
    x.attach_grad()
    with autograd.record():
        y = np.linalg.norm(x)
    y.backward()
    check(x.grad, onp.zeros(3))
    whole = np.linalg.norm(made(onp.array([3, 4], "int32")))
    assert onp.dtype(whole.dtype) == "float64"
    check(whole, 5.0)


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (2, 3, 3), (0, 2, 3), (2, 0, 3), (1, 1)])
def test_svd(shape):
    a = drawn(*shape)
    u, s, v = np.linalg.svd(made(a))
    if a.size:
        check(s, onp.linalg.svd(a, compute_uv=False))
    k = min(shape[-2:])
    assert (u.shape, s.shape, v.shape) == ((*shape[:-1], k), (*shape[:-2], k), (*shape[:-2], k, shape[-1]))
    un, sn, vn = (x.asnumpy() for x in (u, s, v))
    onp.testing.assert_allclose((un * sn[..., None, :]) @ vn, a, atol=1e-10)
    onp.testing.assert_allclose(un.swapaxes(-1, -2) @ un, onp.broadcast_to(onp.eye(k), (*shape[:-2], k, k)), atol=1e-10)
    if a.size:
        largest = onp.take_along_axis(vn, abs(vn).argmax(-1)[..., None], -1)
        assert (largest > 0).all()
        check_grads(lambda x: [y.as_nd_ndarray() for y in np.linalg.svd(x.as_np_ndarray())], [a], order=(1, 2))


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 2, 2), (1, 1)])
def test_eigh(shape, uplo):
    a = apart(*shape)
    w, v = np.linalg.eigh(made(a), uplo)
    check(w, onp.linalg.eigvalsh(a, uplo))
    check(np.linalg.eigvalsh(made(a), UPLO=uplo), onp.linalg.eigvalsh(a, uplo))
    low = onp.tril(a) if uplo == "L" else onp.triu(a).swapaxes(-1, -2)
    s = low + onp.tril(low, -1).swapaxes(-1, -2)
    check(np.matmul(made(s), v), v.asnumpy() * w.asnumpy()[..., None, :])
    if a.size:

        def symmetric(fn):
            return lambda x: [
                y.as_nd_ndarray() for y in fn(((x + mx.nd.SwapAxis(x, dim1=-1, dim2=-2)) / 2).as_np_ndarray())
            ]

        check_grads(symmetric(lambda x: np.linalg.eigh(x, uplo)), [a], order=(1, 2))
        check_grads(symmetric(lambda x: [np.linalg.eigvalsh(x, uplo)]), [a], order=(1, 2))


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 2, 2), (1, 1)])
def test_eig(shape):
    a = apart(*shape)
    w, v = np.linalg.eig(made(a))
    check(w, onp.linalg.eigvals(a))
    check(np.linalg.eigvals(made(a)), onp.linalg.eigvals(a))
    check(np.matmul(made(a), v), v.asnumpy() * w.asnumpy()[..., None, :])
    if a.size:
        check_grads(lambda x: [y.as_nd_ndarray() for y in np.linalg.eig(x.as_np_ndarray())], [a], order=(1, 2))
        check_grads(lambda x: np.linalg.eigvals(x.as_np_ndarray()).as_nd_ndarray(), [a], order=(1, 2))


def test_matrix_rank():
    a = onp.stack([onp.eye(3), onp.diag([1.0, 0, 0]), onp.zeros((3, 3))])
    for x in (a, a.astype("float32")):
        got = np.linalg.matrix_rank(made(x))
        assert onp.dtype(got.dtype) == "int64"
        check(got, [3, 1, 0])
    check(np.linalg.matrix_rank(made(a), hermitian=True), [3, 1, 0])
    check(np.linalg.matrix_rank(made(onp.diag([4.0, 2.0])), tol=3), 1)
    check(np.linalg.matrix_rank(made(a * 4), made(onp.array([5.0, 3.0, 3.0]))), [0, 1, 0])
    check(np.linalg.matrix_rank(made(onp.zeros(3))), 0)
    check(np.linalg.matrix_rank(made(onp.array([0.0, 1.0]))), 1)


def test_pinv_with_limits():
    a = onp.stack([onp.diag([1.0, 1e-3]), onp.diag([1.0, 1e-3])])
    check(np.linalg.pinv(made(a[0]), rcond=0.01), onp.diag([1.0, 0.0]))
    check(np.linalg.pinv(made(a), made(onp.array([0.01, 1e-6]))), onp.linalg.pinv(a, onp.array([0.01, 1e-6])))


def test_cond_of_singular_matrices():
    a = made(onp.ones((2, 2)))
    for p in (1, INF, "fro"):
        assert np.linalg.cond(a, p).asnumpy() == INF


@pytest.mark.parametrize("name", "inv det cholesky svd eigh eigvalsh eig eigvals pinv qr slogdet".split())
def test_whole_numbers_count_as_float64(name):
    a = onp.array([[2, 1], [1, 3]], "int32")
    got, want = (outputs(getattr(np.linalg, name)(made(x))) for x in (a, a.astype("float64")))
    for g, w in zip(got, want):
        assert onp.dtype(g.dtype) == "float64"
        check(g, w.asnumpy())


@pytest.mark.parametrize("name", "inv det cholesky svd eigh eigvalsh eig eigvals pinv qr slogdet matrix_rank".split())
def test_half_precision_is_refused(name):
    with pytest.raises(TypeError, match="too narrow"):
        getattr(np.linalg, name)(made(onp.eye(2, dtype="float16")))


def test_nothing():
    none = made(onp.zeros((0, 3, 3)))
    check(np.linalg.inv(none), onp.zeros((0, 3, 3)))
    check(np.linalg.det(none), onp.zeros(0))
    check(np.linalg.det(made(onp.zeros((2, 0, 0)))), onp.ones(2))
    check(np.linalg.solve(none, made(onp.zeros((0, 3, 2)))), onp.zeros((0, 3, 2)))
    check(np.linalg.matrix_rank(none), onp.zeros(0))
    check(np.linalg.pinv(made(onp.zeros((0, 2, 3)))), onp.zeros((0, 3, 2)))


def test_lstsq():
    a, b = drawn(5, 3), drawn(5, 2)
    x, residuals, rank, s = np.linalg.lstsq(made(a), made(b), rcond=None)
    want = onp.linalg.lstsq(a, b, rcond=None)
    for got, w in zip((x, residuals, s), (want[0], want[1], want[3])):
        check(got, w)
    assert rank == want[2]
    with pytest.warns(FutureWarning, match="rcond=None"):
        np.linalg.lstsq(made(a), made(b))


def test_what_numpy_computes_is_refused_under_record():
    a = made(drawn(3, 3))
    for fn in (lambda: np.linalg.lstsq(a, a, rcond=None), lambda: np.linalg.qr(a, mode="complete")):
        fn()
        with autograd.record(), pytest.raises(ValueError, match="autograd.pause"):
            fn()
        with autograd.record(), autograd.pause():
            fn()
    q, r = np.linalg.qr(made(drawn(4, 2)), mode="complete")
    assert (q.shape, r.shape) == ((4, 4), (4, 2))


ERRORS = {
    "singular": (lambda a: np.linalg.inv(made(onp.zeros((2, 2)))), ValueError, "singular"),
    "which is singular": (
        lambda a: np.linalg.solve(made(onp.stack([onp.eye(2), onp.zeros((2, 2))])), made(onp.ones((2, 2)))),
        ValueError,
        r"A\[1\] is singular",
    ),
    "not positive": (lambda a: np.linalg.cholesky(made(-onp.eye(2))), ValueError, "not positive definite"),
    "not square": (lambda a: np.linalg.inv(a), ValueError, "square"),
    "det of a vector": (lambda a: np.linalg.det(made(onp.ones(3))), ValueError, "square"),
    "svd of a vector": (lambda a: np.linalg.svd(made(onp.ones(3))), ValueError, "matrices"),
    "complex": (lambda a: np.linalg.eig(made(onp.array([[0.0, 1], [-1, 0]]))), ValueError, "complex eigenvalues"),
    "UPLO": (lambda a: np.linalg.eigh(made(onp.eye(2)), UPLO="X"), ValueError, "one of L, U"),
    "solve": (lambda a: np.linalg.solve(made(onp.eye(3)), made(onp.ones(2))), ValueError, "does not fit"),
    "solve stacks": (
        lambda a: np.linalg.solve(made(full(2, 3, 3)), made(drawn(4, 3, 2))),
        ValueError,
        "cannot be broadcast",
    ),
    "tensorsolve": (lambda a: np.linalg.tensorsolve(a, a), ValueError, "no square system"),
    "tensorinv": (lambda a: np.linalg.tensorinv(a, 1), ValueError, "no square map"),
    "tensorinv ind": (lambda a: np.linalg.tensorinv(a, 0), ValueError, "ind must be 1"),
    "norm word": (lambda a: np.linalg.norm(a, "big"), ValueError, "ord must be"),
    "norm of matrices": (lambda a: np.linalg.norm(a, 3), ValueError, "no norm of matrices"),
    "norm axes": (lambda a: np.linalg.norm(a, axis=(0, 1, 2)), ValueError, "3 axes"),
    "norm axis": (lambda a: np.linalg.norm(a, axis=5), ValueError, "out of range"),
    "norm axis twice": (lambda a: np.linalg.norm(a, axis=(0, 0)), ValueError, "twice"),
    "norm axis word": (lambda a: np.linalg.norm(a, axis="a"), TypeError, "axes must be"),
    "nuc of a vector": (lambda a: np.linalg.norm(a, "nuc", 0), ValueError, "of matrices over two"),
    "power": (lambda a: np.linalg.matrix_power(made(onp.eye(2)), 0.5), TypeError, "whole number"),
    "multi_dot one": (lambda a: np.linalg.multi_dot([a]), ValueError, "two arrays"),
    "multi_dot lengths": (lambda a: np.linalg.multi_dot([a, a]), ValueError, "lengths that differ"),
    "multi_dot dimensions": (lambda a: np.linalg.multi_dot([a, made(onp.ones(3)), a]), ValueError, "must be a matrix"),
    "qr mode": (lambda a: np.linalg.qr(a, mode="big"), ValueError, "mode must be"),
    "lstsq rcond": (lambda a: np.linalg.lstsq(a, a, rcond="no"), ValueError, "rcond must be"),
    "lstsq arrays": (lambda a: np.linalg.lstsq(a, [1.0]), TypeError, "takes arrays of mx.np"),
    "pinv rcond": (lambda a: np.linalg.pinv(made(full(2, 3, 3)), made(onp.ones(5))), ValueError, "cannot be broadcast"),
}


@pytest.mark.parametrize("fn, kind, words", ERRORS.values(), ids=ERRORS)
def test_errors(fn, kind, words):
    with pytest.raises(kind, match=words) as e:
        fn(made(drawn(2, 3)))
    assert isinstance(e.value, MXNetError)
