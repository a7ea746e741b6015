"""Functions of mx.np that make arrays: NumPy's values, MXNet's dtypes, what is refused."""

import numpy as onp
import pytest

import mxcore as mx
from mxcore import np
from mxcore.base import MXNetError
from mxcore.symbol.numpy import symbols

from .numbers import DTYPES, check, drawn

#: What is given to np.array -> the dtype of the result.
GIVEN = [
    ([1, 2], "float32"),
    (5, "float32"),
    ([True, False], "float32"),
    (True, "float32"),
    ((1.5, 2), "float32"),
    ([], "float32"),
    (None, "float32"),
    (onp.arange(3), "int64"),
    (onp.arange(3.0), "float64"),
    (onp.float16(1), "float16"),
    (onp.array([True]), "bool"),
    (onp.zeros((0, 2), "uint8"), "uint8"),
    (range(3), "float32"),
    ([onp.float64(1), 2], "float32"),
]


@pytest.mark.parametrize("given, dtype", GIVEN, ids=repr)
def test_array_has_the_dtype_of_arrays_else_float32(given, dtype):
    check(np.array(given), onp.asarray(given, dtype), dtype)
    check(np.array(given, dtype="float64"), onp.asarray(given, "float64"), "float64")


def test_arrays_of_arrays():
    x = np.array([1, 2])
    check(np.array([x, x]), [[1, 2], [1, 2]], "float32")
    check(np.array([x[0].item(), 3]), [1, 3], "float32")
    y = np.array(x)
    y[:] = 0
    check(x, [1, 2], "float32")
    assert np.asarray(x) is x and np.asarray(x, dtype="int32").dtype == onp.int32


@pytest.mark.parametrize(
    "given, kind",
    [
        ("a", TypeError),
        ([1j], TypeError),
        ([[1, 2], [3]], TypeError),
        (object(), TypeError),
        (mx.nd.ones(2), ValueError),
    ],
    ids=["text", "complex", "ragged", "object", "mx.nd"],
)
def test_what_is_no_array_is_refused(given, kind):
    with pytest.raises(kind) as e:
        np.array(given)
    assert isinstance(e.value, MXNetError)


@pytest.mark.usefixtures("numpy_mode")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3), 4, (), (0, 2), [3, 1]], ids=repr)
def test_filled_arrays(shape, dtype):
    check(np.zeros(shape, dtype=dtype), onp.zeros(shape, dtype), dtype)
    check(np.ones(shape, dtype), onp.ones(shape, dtype), dtype)
    check(np.full(shape, 1, dtype), onp.full(shape, 1, dtype), dtype)
    x = np.array(drawn(onp.zeros(shape).shape, dtype))
    for name in ("zeros_like", "ones_like"):
        check(getattr(np, name)(x), getattr(onp, name)(x.asnumpy()), dtype)
        check(getattr(np, name)(x, dtype="float64"), getattr(onp, name)(x.asnumpy(), "float64"), "float64")
    check(np.full_like(x, 1), onp.full_like(x.asnumpy(), 1), dtype)
    assert np.empty(shape, dtype).shape == np.empty_like(x).shape == x.shape


def test_default_dtypes():
    check(np.zeros(2), [0, 0], "float32")
    check(np.full((2,), 7), [7, 7], "float32")
    check(np.full((2,), True), [True, True], "bool")
    check(np.full((2,), np.array([1, 2])), [1, 2], "float32")
    check(np.full_like(np.array([1, 2], dtype="int32"), 2.7), [2, 2], "int32")
    check(np.full_like(np.ones(2), True), [1, 1], "float32")
    check(np.zeros_like(5), 0, "float32")
    check(np.arange(3), [0, 1, 2], "float32")
    check(np.linspace(0, 1, 3), [0, 0.5, 1], "float32")
    check(np.eye(2), onp.eye(2), "float32")
    check(np.identity(2), onp.eye(2), "float32")
    check(np.indices((2, 2)), onp.indices((2, 2)), "int32")


@pytest.mark.usefixtures("numpy_mode")
@pytest.mark.parametrize(
    "name, args, kw",
    [
        ("arange", (5,), {}),
        ("arange", (1, 7, 2), {}),
        ("arange", (3, -2, -0.75), {}),
        ("arange", (3, 1), {}),
        ("arange", (2, 5, 0.5), {"dtype": "int32"}),
        ("arange", (5,), {"dtype": "int8"}),
        ("linspace", (0, 5, 4), {}),
        ("linspace", (0, 5, 4), {"endpoint": False}),
        ("linspace", (0, 5, 0), {}),
        ("linspace", (3, -1, 1), {}),
        ("linspace", (0, 5, 4), {"dtype": "int32"}),
        ("logspace", (0, 2, 5), {}),
        ("logspace", (0, 2, 5), {"base": 2, "endpoint": False}),
        ("eye", (2, 3, 1), {}),
        ("eye", (3,), {"k": -1, "dtype": "int8"}),
        ("eye", (2, 0), {}),
        ("identity", (0,), {}),
        ("indices", ((2, 0),), {}),
        ("indices", ((2, 1, 3),), {"dtype": "float32"}),
        ("tri", (2, 3), {}),
        ("tri", (3,), {"k": -1}),
    ],
    ids=repr,
)
def test_ranges_and_matrices(name, args, kw):
    dtype = kw.get("dtype", "int32" if name == "indices" else "float32")
    check(getattr(np, name)(*args, **kw), getattr(onp, name)(*args, **kw), dtype)


@pytest.mark.usefixtures("numpy_mode")
def test_linspace_of_arrays_and_its_distance():
    a, b = onp.array([0, 1], "f"), onp.array([1, 5], "f")
    check(np.linspace(np.array(a), np.array(b), 5), onp.linspace(a, b, 5), "float32")
    check(np.linspace(np.array(a), 3, 4, axis=1), onp.linspace(a, 3, 4, axis=1), "float32")
    found, step = np.linspace(0, 5, 4, retstep=True)
    assert step == onp.linspace(0, 5, 4, retstep=True)[1] and found.shape == (4,)


@pytest.mark.usefixtures("numpy_mode")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [0, 1, -2, 7])
def test_diagonals_and_triangles(dtype, k):
    for shape in [(3, 4), (4, 3), (3,), (0, 3)]:
        a = drawn(shape, dtype)
        x = np.array(a)
        for name in ("diag", "diagflat", "tril", "triu"):
            check(getattr(np, name)(x, k), getattr(onp, name)(a, k), dtype)
        if len(shape) == 2:
            check(np.diagonal(x, k), onp.diagonal(a, k), dtype)
            check(np.trace(x, k), onp.trace(a, k), "int64" if dtype == "bool" else dtype)
    a = drawn((2, 3, 4), dtype)
    check(np.diagonal(np.array(a), k, 1, -1), onp.diagonal(a, k, 1, -1), dtype)
    check(np.trace(np.array(a), k, 2, 0), onp.trace(a, k, 2, 0), "int64" if dtype == "bool" else dtype)


@pytest.mark.usefixtures("numpy_mode")
def test_the_trace_of_truth_values_counts_them():
    a = onp.ones((3, 4, 4), bool)
    a[:, 2, 2] = a[1] = False
    x = np.array(a)
    check(np.trace(x[0]), onp.int64(3), "int64")
    check(x.trace(1, 1, 2), onp.array([3, 0, 3]), "int64")


@pytest.mark.parametrize("k", [2**31 - 1, -(2**31)])
def test_diagonals_that_are_far_away_are_empty(k):
    x = np.ones((2, 3))
    x.attach_grad()
    with mx.autograd.record():
        parts = [np.diag(x, k), np.diagonal(x, k), np.trace(x, k)]
    assert [p.tolist() for p in parts] == [[], [], 0.0]
    parts[2].backward()
    assert not x.grad.asnumpy().any()


def test_indices_of_matrices():
    for got, want in [
        (np.tril_indices_from(np.ones((3, 4)), 1), onp.tril_indices(3, 1, 4)),
        (np.triu_indices_from(np.ones((3, 4))), onp.triu_indices(3, 0, 4)),
        (np.diag_indices_from(np.ones((2, 2, 2))), onp.diag_indices(2, 3)),
    ]:
        assert isinstance(got, tuple)
        for g, w in zip(got, want, strict=True):
            check(g, w, "int64")


@pytest.mark.usefixtures("numpy_mode")
@pytest.mark.parametrize("kw", [{}, {"indexing": "ij"}, {"sparse": True}, {"indexing": "ij", "sparse": True}], ids=repr)
def test_meshgrid(kw):
    lines = [onp.arange(3.0).astype("f"), onp.arange(2.0).astype("f"), onp.array(5.0, "f")]
    for n in (1, 2, 3):
        for got, want in zip(np.meshgrid(*map(np.array, lines[:n]), **kw), onp.meshgrid(*lines[:n], **kw), strict=True):
            check(got, want, "float32")


def test_vander():
    for kw in ({}, {"N": 2}, {"increasing": True}):
        check(np.vander(np.array([1, 2, 3]), **kw), onp.vander([1, 2, 3], **kw), "float32")


def test_copies_are_copies():
    x = np.ones(3)
    for y in (np.copy(x), x.copy(), np.array(x)):
        y[:] = 0
    check(x, [1, 1, 1], "float32")
    out = np.zeros(3)
    assert np.copy(x, out=out) is out
    check(out, [1, 1, 1], "float32")


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: np.zeros(()), ValueError, "npx.set_np"),
        (lambda: np.ones((2, 0)), ValueError, "npx.set_np"),
        (lambda: np.zeros((2, -1)), ValueError, "below 0"),
        (lambda: np.zeros(2.5), TypeError, "int or a tuple"),
        (lambda: np.zeros(2, order="F"), NotImplementedError, "order='F'"),
        (lambda: np.zeros(2, dtype="nothing"), TypeError, "nothing"),
        (lambda: np.full(2, "a"), TypeError, "fill_value"),
        (lambda: np.arange(0, 3, 0), ValueError, "step must not be 0"),
        (lambda: np.arange("a"), TypeError, "takes numbers"),
        (lambda: np.linspace(0, 1, -1), ValueError, "must not be negative"),
        (lambda: np.linspace(0, 1, 2.5), TypeError, "whole number"),
        (lambda: np.logspace(0, 1, 2, axis=1), NotImplementedError, "axis=1"),
        (lambda: np.eye(2, shape=3), TypeError, "'shape'"),
        (lambda: np.diag(np.ones((2, 2, 2))), ValueError, "one or two dimensions"),
        (lambda: np.diagonal(np.ones(2)), ValueError, "two dimensions"),
        (lambda: np.trace(np.ones((2, 2)), axis1=1), ValueError, "must differ"),
        (lambda: np.diag_indices_from(np.ones((2, 3))), ValueError, "one length"),
        (lambda: np.tril_indices_from(np.ones(3)), ValueError, "a matrix"),
        (lambda: np.meshgrid(np.ones(2), indexing="yx"), ValueError, "'xy' or 'ij'"),
        (lambda: np.meshgrid(np.ones(2), copy=False), NotImplementedError, "copy=False"),
        (lambda: np.empty_like(np.ones(2), subok=True), NotImplementedError, "subok"),
        (lambda: np.vander(np.ones((2, 2))), ValueError, "a vector"),
        (lambda: symbols.tril_indices_from(mx.sym.var("x").as_np_ndarray()), NotImplementedError, "arrays"),
        (lambda: symbols.array([1]), TypeError, "variables"),
    ],
    ids=range(24),
)
def test_bad_input_says_what_is_wrong(call, kind, text):
    with pytest.raises(kind, match=text) as e:
        call()
    assert isinstance(e.value, MXNetError)


def test_constants_and_dtypes():
    assert np.pi == onp.pi and np.e == onp.e and np.inf == np.PINF == -np.NINF == onp.inf
    assert np.nan != np.nan and np.newaxis is None and np.PZERO == np.NZERO == 0
    assert np.float32 is onp.float32 and np.bool_ is onp.bool_ and np.int8 is onp.int8 and np.bool is bool
    assert str(np.array([0.0]) + np.NZERO) == "[0.]"


def test_contexts():
    x = np.ones(2, ctx=mx.cpu(1))
    assert x.ctx == mx.cpu(1) and np.zeros_like(x).ctx == mx.cpu(1) and np.array(x, ctx=mx.cpu(0)).ctx == mx.cpu(0)
    with mx.cpu(1):
        assert np.arange(3).ctx == np.array([1]).ctx == mx.cpu(1)
