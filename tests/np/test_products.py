"""Products of mx.np against NumPy: dtypes, shapes, notation; their gradients, graphs and errors."""

import numpy as onp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore import autograd
from mxcore.base import MXNetError
from mxcore.ndarray.numpy import arrays as np
from mxcore.ops.elementwise.numpy_operators import common_dtype
from mxcore.symbol.numpy import _Symbol, symbols
from mxcore.testing.gradcheck import check_grads

DTYPES = "float32 float64 float16 int32 int64 uint8 bool".split()
rs = onp.random.RandomState(5)


def drawn(shape, dtype="float32"):
    a = onp.asarray(rs.uniform(-2, 2, shape))
    if dtype == "bool":
        return a > 0
    return (abs(a * 2) if dtype == "uint8" else a * 2 if "int" in dtype else a).astype(dtype)


def made(a):
    return mx.nd.array(a, dtype=a.dtype).reshape(a.shape).as_np_ndarray() if a.shape else scalar(a)


def scalar(a):
    """An array of no dimensions."""
    return np.call("_npi_einsum", made(a.reshape(1)), num_args=1, subscripts="i->")


def check(got, want):
    assert got.shape == want.shape
    tol = {"float16": 2e-2, "float32": 2e-5}.get(str(want.dtype), 1e-10)
    onp.testing.assert_allclose(got.asnumpy().astype("float64"), want.astype("float64"), rtol=tol, atol=tol)


SHAPES = {
    "dot": [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (5, 3, 4)), ((4, 2, 3), (5, 3, 2)),
            ((), (2, 3)), ((2, 3), ()), ((), ()), ((2, 0), (0, 3)), ((0, 2), (2, 3)), ((0,), (0,))],
    "matmul": [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (5, 3, 4)),
               ((6, 1, 2, 3), (5, 3, 4)), ((5, 2, 3), (3,)), ((3,), (5, 3, 2)), ((2, 0), (0, 3)), ((0, 2, 3), (3, 2))],
    "inner": [((2, 3), (4, 3)), ((3,), (3,)), ((2, 4, 3), (3,)), ((), (2, 3)), ((2, 0), (3, 0))],
}  # fmt: skip


@pytest.mark.parametrize("name, a, b", [(n, *s) for n, shapes in SHAPES.items() for s in shapes])
@pytest.mark.parametrize("dtype", DTYPES)
def test_products(name, a, b, dtype):
    x, y = drawn(a, dtype), drawn(b, dtype)
    got = getattr(np, name)(made(x), made(y))
    assert onp.dtype(got.dtype) == dtype
    check(got, onp.asarray(getattr(onp, name)(x, y)))


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_mixed_dtypes(a, b):
    x, y = drawn((2, 3), a), drawn((3, 2), b)
    t = common_dtype(x.dtype, y.dtype)
    for fn in (np.dot, np.matmul, lambda x, y: np.einsum("ij,jk", x, y)):
        got = fn(made(x), made(y))
        assert onp.dtype(got.dtype) == t
        check(got, (x.astype(t) @ y.astype(t)).astype(t))


def test_gradients_have_the_dtypes_of_their_inputs():
    x, y = made(drawn((2, 3), "float64")), made(drawn((3, 2), "float32"))
    x.attach_grad(), y.attach_grad()
    with autograd.record():
        z = np.matmul(x, y)
    z.backward()
    assert (onp.dtype(x.grad.dtype), onp.dtype(y.grad.dtype)) == ("float64", "float32")
    ones = onp.ones((2, 2))
    check(x.grad, ones @ y.asnumpy().T.astype("float64"))
    check(y.grad, (x.asnumpy().T @ ones).astype("float32"))


@pytest.mark.parametrize(
    "a, b, axes",
    [
        ((2, 3, 4), (3, 4, 5), 2),
        ((2, 3), (4,), 0),
        ((2, 3), (3, 2), 1),
        ((2, 3, 4), (4, 3, 5), ([1, 2], [1, 0])),
        ((2, 3), (3, 2), (1, 0)),
        ((2, 3), (3, 2), ((0, 1), (-1, -2))),
        ((2, 0), (0, 3), 1),
    ],
)
def test_tensordot(a, b, axes):
    x, y = drawn(a), drawn(b)
    check(np.tensordot(made(x), made(y), axes), onp.tensordot(x, y, axes))


#: Notations, and the shapes of arrays.
NOTATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ba,c", (2, 3), (4,)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iii", (3, 3, 3)),
    ("ijij->ji", (2, 3, 2, 3)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("...j->...", (2, 3, 4)),
    ("...ij->...ji", (2, 3, 4)),
    ("i...->...", (2, 3)),
    ("b...i,bij->b...j", (2, 5, 6, 3), (2, 3, 4)),
    ("i,j,k", (2,), (3,), (4,)),
    ("iij,jk->ik", (3, 3, 2), (2, 4)),
    ("ij,ij,ij->", (2, 3), (2, 3), (2, 3)),
    ("...,...", (2, 1), (1, 3)),
    ("...i,i->...", (2, 3), (3,)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ij,jk,kl,lm", (2, 3), (3, 4), (4, 5), (5, 2)),
    ("ij, jk -> i k", (2, 3), (3, 4)),
    ("ij,jk", (2, 0), (0, 3)),
    ("i,i->i", (1,), (4,)),
    ("i,i", (4,), (1,)),
    ("ij,kj->ik", (2, 4), (2, 1)),
    ("ij,jk->ik", (2, 1), (4, 3)),
    ("ij,ij,ij->i", (2, 1), (1, 4), (2, 1)),
    ("ij,jk,kl->il", (2, 1), (3, 4), (1, 5)),
    ("iij,j->i", (2, 2, 1), (3,)),
    (",", (), ()),
    ("...->...", ()),
    ("a,ab,abc->abc", (2,), (2, 3), (2, 3, 4)),
]


@pytest.mark.parametrize("notation, shapes", [(n, s) for n, *s in NOTATIONS])
@pytest.mark.parametrize("optimize", [False, True, "greedy", "optimal"])
def test_einsum(notation, shapes, optimize):
    xs = [drawn(s) for s in shapes]
    check(np.einsum(notation, *map(made, xs), optimize=optimize), onp.asarray(onp.einsum(notation, *xs)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_einsum_of_dtypes(dtype):
    x, y = drawn((2, 3), dtype), drawn((3, 4), dtype)
    check(np.einsum("ij,jk", made(x), made(y)), onp.einsum("ij,jk", x, y))
    check(np.einsum("ij->i", made(x)), onp.einsum("ij->i", x))


def test_einsum_takes_lists_of_labels_and_paths():
    x, y, z = drawn((2, 3)), drawn((3, 4)), drawn((4, 2))
    a, b, c = map(made, (x, y, z))
    check(np.einsum(a, [0, 1], b, [1, 2]), onp.einsum(x, [0, 1], y, [1, 2]))
    check(np.einsum(a, [0, 1], b, [1, 2], [2, 0]), onp.einsum(x, [0, 1], y, [1, 2], [2, 0]))
    check(np.einsum(a, [Ellipsis, 40], [40, Ellipsis]), onp.einsum(x, [Ellipsis, 40], [40, Ellipsis]))
    want = onp.einsum("ij,jk,kl", x, y, z)
    path = onp.einsum_path("ij,jk,kl", x, y, z, optimize="optimal")[0]
    for optimize in (path, ["einsum_path", (1, 2), (0, 1)], ["einsum_path", (0, 1)], ("greedy", 1000)):
        check(np.einsum("ij,jk,kl", a, b, c, optimize=optimize), want)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)  # a busy machine
@given(st.data())
def test_any_einsum(data):
    lengths = {c: data.draw(st.integers(0, 3)) for c in "abcd"}
    texts = data.draw(st.lists(st.text("abcd", max_size=3), min_size=1, max_size=4))
    letters = sorted({c for t in texts for c in t})
    result = data.draw(st.permutations(letters).map(lambda x: x[: len(x) // 2]))
    repeated = [data.draw(st.sets(st.sampled_from("abcd"), max_size=1)) for _ in texts]
    shapes = [tuple(1 if c in one else lengths[c] for c in t) for t, one in zip(texts, repeated)]
    notation = ",".join(texts) + "->" + "".join(result)
    xs = [onp.asarray(rs.uniform(-1, 1, s)) for s in shapes]
    got = np.call(
        "_npi_einsum", *map(made, xs), num_args=len(xs), subscripts=notation, optimize=data.draw(st.integers(0, 1))
    )
    check(got, onp.asarray(onp.einsum(notation, *xs)))


def test_outer_and_vdot():
    x, y = drawn((2, 3)), drawn((3, 2))
    if not hasattr(np, "reshape"):
        pytest.skip("np.reshape is needed")
    check(np.outer(made(x), made(y)), onp.outer(x, y))
    check(np.vdot(made(x), made(y)), onp.asarray(onp.vdot(x, y)))


def _calls():
    def einsum(notation):
        return lambda F, *xs: F.einsum(notation, *xs)

    yield from (("dot", lambda F, a, b: F.dot(a, b), s) for s in SHAPES["dot"])
    yield from (("matmul", lambda F, a, b: F.matmul(a, b), s) for s in SHAPES["matmul"])
    yield "tensordot", lambda F, a, b: F.tensordot(a, b, ([1, 2], [1, 0])), ((2, 3, 4), (4, 3, 5))
    yield "tensordot", lambda F, a, b: F.tensordot(a, b, 0), ((2, 3), (4,))
    yield from ((n, einsum(n), s) for n, *s in NOTATIONS)


CALLS = [c for c in _calls() if all(c[2]) and not any(0 in s for s in c[2])]


@pytest.mark.parametrize("fn, shapes", [pytest.param(f, s, id=f"{n}-{s}") for n, f, s in CALLS])
def test_gradients(fn, shapes):
    def of(*xs):
        return fn(np, *[x.as_np_ndarray() for x in xs]).as_nd_ndarray()

    check_grads(of, [drawn(s, "float64") for s in shapes], order=(1, 2))


@pytest.mark.parametrize("fn, shapes", [pytest.param(f, s, id=f"{n}-{s}") for n, f, s in CALLS])
def test_graphs(fn, shapes):
    xs = [made(drawn(s)) for s in shapes]
    names = [f"x{i}" for i in range(len(xs))]
    symbol = fn(symbols, *[_Symbol(mx.sym.Variable(n)._heads) for n in names])
    given_, grads = ([x.as_nd_ndarray() for x in xs] for _ in range(2))
    grads = [mx.nd.zeros_like(x) for x in grads]
    bound = symbol.as_nd_ndarray().bind(mx.cpu(), dict(zip(names, given_)), dict(zip(names, grads)))
    (out,) = bound.forward(is_train=True)
    bound.backward(mx.nd.ones_like(out))
    for x in xs:
        x.attach_grad()
    with autograd.record():
        y = fn(np, *xs)
    y.backward()
    check(out, y.asnumpy())
    for g, x in zip(grads, xs):
        check(g, x.grad.asnumpy())


def test_out():
    a, b = made(drawn((2, 3))), made(drawn((3, 4)))
    out = made(onp.zeros((2, 4), "float32"))
    for fn in (np.dot, np.matmul, lambda x, y, out: np.einsum("ij,jk", x, y, out=out)):
        assert fn(a, b, out=out) is out
        check(out, a.asnumpy() @ b.asnumpy())


ERRORS = {
    "dot lengths": (lambda a: np.dot(a, a), ValueError, "lengths that differ"),
    "matmul lengths": (lambda a: np.matmul(a, a), ValueError, "lengths that differ"),
    "matmul of a number": (lambda a: np.matmul(a, scalar(onp.ones(()))), ValueError, "must have a dimension"),
    "matmul stacks": (lambda a: np.matmul(made(drawn((2, 3, 3))), made(drawn((4, 3, 3)))), ValueError, "do not fit"),
    "matmul options": (lambda a: np.matmul(a, a, casting="no"), NotImplementedError, "casting='no'"),
    "outer of numbers": (lambda a: np.outer(a, [1.0]), TypeError, "b must be an array"),
    "mixed faces": (lambda a: np.dot(a, a.as_nd_ndarray()), TypeError, "as_np_ndarray"),
    "tensordot axes": (lambda a: np.tensordot(a, a, 3), ValueError, "axes is 3"),
    "tensordot pair": (lambda a: np.tensordot(a, a, 1.5), TypeError, "axes must be a number"),
    "tensordot range": (lambda a: np.tensordot(a, a, (5, 0)), ValueError, "out of range"),
    "tensordot counts": (lambda a: np.tensordot(a, a, ([0, 1], [0])), ValueError, "as many"),
    "einsum nothing": (lambda a: np.einsum(), ValueError, "got nothing"),
    "einsum no arrays": (lambda a: np.einsum("i"), ValueError, "no arrays"),
    "einsum counts": (lambda a: np.einsum("ij,jk", a), ValueError, "are of 2 arrays"),
    "einsum dimensions": (lambda a: np.einsum("ijk", a), ValueError, "do not fit its 2 dimensions"),
    "einsum character": (lambda a: np.einsum("i%", a), ValueError, "is no letter"),
    "einsum twice": (lambda a: np.einsum("ij->ii", a), ValueError, "stands there twice"),
    "einsum unknown": (lambda a: np.einsum("ij->k", a), ValueError, "no array has an axis"),
    "einsum ellipsis": (lambda a: np.einsum("i...->i", a), ValueError, "must have ..."),
    "einsum lengths": (lambda a: np.einsum("ij,ij", a, made(drawn((2, 4)))), ValueError, "lengths 3 and 4"),
    "einsum diagonal": (lambda a: np.einsum("ii", a), ValueError, "do not fit"),
    "einsum labels": (lambda a: np.einsum(a, [0, 60]), TypeError, "from 0 to 51"),
    "einsum option": (lambda a: np.einsum("ij", a, dtype="float64"), NotImplementedError, "dtype"),
    "einsum argument": (lambda a: np.einsum("ij", a, nonsense=1), TypeError, "no argument 'nonsense'"),
    "einsum optimize": (lambda a: np.einsum("ij", a, optimize="fast"), ValueError, "optimize must be"),
    "einsum path": (
        lambda a: np.einsum("ij,ij,ij", a, a, a, optimize=["einsum_path", (0, 7)]),
        ValueError,
        "does not fit 3 arrays",
    ),
}


@pytest.mark.parametrize("fn, kind, words", ERRORS.values(), ids=ERRORS)
def test_errors(fn, kind, words):
    with pytest.raises(kind, match=words) as e:
        fn(made(drawn((2, 3))))
    assert isinstance(e.value, MXNetError)
