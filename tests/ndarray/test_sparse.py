"""Sparse arrays: reading by rows, writing, checks, which operators keep their storage. Numbers are MXNet's."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import nd
from mxcore.base import MXNetError

X = np.array([[0, 1, 0], [0, 0, 0], [2, 0, -3], [0, 0, 4]], np.float32)
Y = np.array([[0, 2, 0], [1, 0, 0], [0, 0, 0], [0, 0, 4]], np.float32)
KINDS = ["csr", "row_sparse"]


def sparse(values, stype):
    return nd.array(values).tostype(stype)


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        (slice(1, 3), [1, 2]),
        (0, [0]),
        (-1, [3]),
        (slice(2, 2), []),
        (slice(0, 9), [0, 1, 2, 3]),
        (slice(3, 1), []),
        (np.int64(2), [2]),
    ],
)
def test_csr_is_read_by_rows(key, rows):
    part = sparse(X, "csr")[key]
    assert isinstance(part, nd.sparse.CSRNDArray) and part.shape == (len(rows), 3)
    part.check_format()
    assert np.array_equal(part.asnumpy(), X[rows])


def test_reading_does_not_depend_on_which_operators_were_looked_up():
    """Functions of ``nd.sparse`` are kept in it once they were asked for, also those named like built-ins."""
    for name in dir(nd.sparse):
        getattr(nd.sparse, name)
    c, r = sparse(X, "csr"), sparse(X, "row_sparse")
    assert np.array_equal(c[1:3].asnumpy(), X[1:3]) and c[:] is c and c[1].shape == (1, 3)
    c[:], r[:] = Y, 1
    for x in (c, r):
        x += x
        x.check_format()
        repr(x)
    assert np.array_equal(c.asnumpy(), 2 * Y) and np.array_equal(nd.sparse.csr_matrix(X).asnumpy(), X)
    assert np.array_equal(nd.sparse.row_sparse_array(X).retain(nd.array([2])).asnumpy()[2], X[2])


def test_what_sparse_arrays_are_not_read_by():
    c, r = sparse(X, "csr"), sparse(X, "row_sparse")
    assert c[:] is c and r[:] is r
    for key in (4, -5, slice(None, None, 2), (0, 1), None, [0, 1], True):
        with pytest.raises(IndexError, match="csr array"):
            c[key]
    with pytest.raises(IndexError, match="only be read as a whole"):
        r[0]
    with pytest.raises(IndexError, match="only be written as a whole"):
        r[0] = 1
    for x in (c, r):
        with pytest.raises(ValueError, match="has no form in mx.np; use tostype"):
            x.as_np_ndarray()


def test_csr_feeds_an_iterator():
    batches = list(mx.io.NDArrayIter(sparse(X, "csr"), nd.arange(4), 3, last_batch_handle="discard"))
    assert len(batches) == 1 and batches[0].data[0].stype == "csr"
    assert np.array_equal(batches[0].data[0].asnumpy(), X[:3])


@pytest.mark.parametrize("stype", KINDS)
@pytest.mark.parametrize("value", [nd.array(Y), Y, sparse(Y, "csr"), sparse(Y, "row_sparse"), Y.astype(np.float64), 0])
def test_writing_keeps_dtype_and_storage_and_shares_nothing(stype, value):
    a = nd.array(X, dtype="float64").tostype(stype)
    a[:] = value
    a.check_format()
    assert a.dtype == np.float64 and a.stype == stype
    assert np.array_equal(a.asnumpy(), np.zeros_like(X) if isinstance(value, int) else Y)
    if getattr(value, "stype", "") == stype:
        value._part("values")[:] = 9
        assert np.array_equal(a.asnumpy(), Y)
        value[:] = Y


def test_filling_and_shapes():
    r, c = sparse(X, "row_sparse"), sparse(X, "csr")
    r[:] = 2
    assert r.asnumpy().tolist() == [[2] * 3] * 4
    with pytest.raises(ValueError, match="filled with a number"):
        c[:] = 2
    for a in (r, c):
        with pytest.raises(ValueError, match=r"shape \(2, 3\) into a .* array of shape \(4, 3\)"):
            a[:] = nd.ones((2, 3))


@pytest.mark.parametrize("stype", KINDS)
def test_copies(stype):
    a = sparse(X, stype)
    for target in (nd.zeros((4, 3)), nd.sparse.zeros(stype, (4, 3))):
        assert np.array_equal(a.copyto(target).asnumpy(), X) and np.array_equal(nd.array(X).copyto(target).asnumpy(), X)
    twin = a.tostype(stype)
    twin._part("values")[:] = 7
    assert twin is not a and np.array_equal(a.asnumpy(), X)
    assert nd.array(a).stype == stype and nd.array(a, dtype="float64").dtype == np.float64


@pytest.mark.parametrize("stype", KINDS)
def test_parts_are_copies(stype):
    """As in MXNet: what is written to them changes neither the array nor those that are handed out next."""
    a = sparse(X, stype)
    parts = ["data", "indices", "indptr"][: 3 if stype == "csr" else 2]
    before = [getattr(a, part).asnumpy() for part in parts]
    for part in parts:
        got = getattr(a, part)
        got[:] = 0
        assert got.asnumpy().any() == 0 and got.stype == "default"
    assert np.array_equal(a.asnumpy(), X)
    assert all(np.array_equal(getattr(a, part).asnumpy(), b) for part, b in zip(parts, before))
    if stype == "csr":
        a[0:1].data[:] = 9
        assert np.array_equal(a[0:1].asnumpy(), X[:1])
    kept = a.data
    a[:] = sparse(Y, stype)
    assert np.array_equal(kept.asnumpy(), before[0])
    x = sparse(X, stype)
    x.attach_grad(stype=stype)
    with mx.autograd.record():
        y = nd.square(x)
    y.backward()
    x.grad.data[:] = 9
    assert np.array_equal(x.grad.asnumpy(), 2 * X)


def test_tostype_default_is_a_copy():
    a = nd.ones((2,))
    a.tostype("default")[:] = 4
    assert a.asnumpy().tolist() == [1, 1]


def csr_of(data, indices, indptr, shape):
    c = nd.sparse.csr_matrix(([1.0] * 3, [0, 1, 2], [0, 1, 3]), shape=(2, 3))
    c._data = type(c._data)(shape, np.array(indptr), np.array(indices), np.array(data, np.float32))
    return c


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (([1, 2], [0, 1], [0, 1, 3], (2, 3)), "does not fit"),
        (([1, 2], [0, 1], [0, 3, 2], (2, 3)), "must not fall"),
        (([1, 2], [0, 1], [0, 2**63 - 1, -2, 2], (3, 3)), "must not fall"),
        (([1, 2], [0, 3], [0, 1, 2], (2, 3)), r"lie in \[0, 3\)"),
        (([1, 2], [1, 0], [0, 2, 2], (2, 3)), "of a row must rise"),
        (([1], [0, 1], [0, 1, 2], (2, 3)), "does not fit"),
    ],
)
def test_check_format_of_csr(parts, text):
    with pytest.raises(ValueError, match=text):
        csr_of(*parts).check_format()


def test_check_format():
    sparse(X, "csr").check_format()
    sparse(X, "row_sparse").check_format()
    csr_of([1, 2], [0, 3], [0, 1, 2], (2, 3)).check_format(full_check=False)
    r = sparse(X, "row_sparse")
    r._data = type(r._data)((4, 3), np.array([2, 1]), np.ones((2, 3), np.float32))
    r.check_format(full_check=False)
    with pytest.raises(MXNetError, match="must rise"):
        r.check_format()


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (([1.0, 2], [0, 1], [0, 2**63 - 1, -2, 2]), "does not rise"),
        (([1.0, 2], [0, 1], [0, 3, 2, 2]), "does not rise"),
        (([1.0, 2], [0, 1], [1, 1, 2, 2]), "does not rise"),
        (([1.0, 2], [0, 4], [0, 1, 2, 2]), r"out of range \[0, 4\)"),
        (([1.0, 2], [0, -1], [0, 1, 2, 2]), r"out of range \[0, 4\)"),
        (([1.0, 2], [0, 1], [0, 1, 2]), "3 entries for 3 rows"),
        (([1.0, 2], [0], [0, 1, 2, 2]), "1 indices"),
    ],
)
def test_parts_of_a_csr_matrix_fit_together(parts, text):
    with pytest.raises(ValueError, match=f"csr_matrix: .*{text}"):
        nd.sparse.csr_matrix(parts, shape=(3, 4))


def values(stype):
    return {"a": sparse(X, stype), "b": sparse(Y, stype), "d": nd.array(X), "v": nd.array([1.0, 2, 3]), "nd": nd}


def dense():
    return {"a": nd.array(X), "b": nd.array(Y), "d": nd.array(X), "v": nd.array([1.0, 2, 3]), "nd": nd}


KEPT = [
    "-a",
    "abs(a)",
    "a * 2",
    "3 * a",
    "a / 2",
    "nd.square(a)",
    "nd.clip(a, -1, 2)",
    "nd.sin(a)",
    "nd.sqrt(a.abs())",
    "nd.relu(a)",
    "nd.sign(a)",
    "nd.round(a)",
    "nd.stop_gradient(a)",
    "nd.identity(a)",
    "nd.zeros_like(a)",
    "a + b",
    "a - b",
    "a * b",
    "a * d",
    "nd.elemwise_mul(d, a)",
    "nd._internal._maximum(a, b)",
    "nd._internal._minimum(a, b)",
    "nd.sparse.add(a, b)",
    "nd.sparse.subtract(a, b)",
    "nd.sparse.multiply(a, 2)",
    "nd.sparse.multiply(a, d)",
    "nd.sparse.multiply(d, a)",
]
ONE = {
    "csr": [
        "nd.concat(a, b, a, dim=0)",
        "nd.slice(a, begin=(1, 0), end=(3, 2))",
        "nd.slice(a, begin=(None, 1), end=(None, 3))",
        "nd.broadcast_mul(a, v)",
        "nd.broadcast_div(a, v)",
        "a.slice(begin=(1,), end=(3,))",
    ],
    "row_sparse": ["nd.add_n(a, b, a)"],
}
LOST = [
    "a + 1",
    "1 - a",
    "a ** 2",
    "nd.exp(a)",
    "a + d",
    "d - a",
    "d * a",
    "a == b",
    "nd.clip(a, 1, 2)",
    "nd.sum(a)",
    "nd.sparse.divide(2, abs(a) + 1)",
    "nd.sparse.subtract(2, a)",
    "nd.concat(a, b, dim=1)",
    "nd.slice(a, begin=(0, 0), end=(4, 3), step=(2, 1))",
]


@pytest.mark.parametrize("stype", KINDS)
@pytest.mark.parametrize("text", KEPT + ONE["csr"] + ONE["row_sparse"] + LOST)
def test_results_keep_the_storage_where_mxnet_keeps_it(stype, text):
    found, want = eval(text, values(stype)), eval(text, dense())
    other = ONE["row_sparse" if stype == "csr" else "csr"]
    assert found.stype == ("default" if text in LOST or text in other else stype)
    np.testing.assert_allclose(found.asnumpy(), want.asnumpy(), rtol=1e-6)
    if found.stype != "default":
        found.check_format()


def test_where_values_are_stored():
    c = sparse(X, "csr") - sparse(Y, "csr")
    # 4 - 4 is not stored.
    assert c.indices.asnumpy().tolist() == [1, 0, 0, 2] and c.indptr.asnumpy().tolist() == [0, 1, 2, 4, 4]
    r = sparse(X, "row_sparse") - sparse(Y, "row_sparse")
    assert r.indices.asnumpy().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("stype", KINDS)
def test_in_place_arithmetic(stype):
    a = same = sparse(X, stype)
    a += sparse(Y, stype)
    a *= 2
    a -= nd.array(X)
    a /= 2
    assert a is same and a.stype == stype and np.array_equal(a.asnumpy(), (X + Y) - X / 2)


@pytest.mark.parametrize("stype", KINDS)
@pytest.mark.parametrize(
    "text",
    [
        "nd.square(x)",
        "x * 3 + x * x",
        "nd.concat(x, x, dim=0)",
        "nd.slice(x, begin=(1, 0), end=(3, 3))",
        "nd.clip(x, -2, 2)",
    ],
)
def test_gradients_through_stored_values(stype, text):
    grads = []
    for x in (sparse(X, stype), nd.array(X)):
        x.attach_grad()
        with mx.autograd.record():
            y = (eval(text, {"x": x, "nd": nd}) * 2).sum()
        y.backward()
        assert x.grad.stype == x.stype
        grads.append(x.grad.asnumpy())
    assert np.array_equal(*grads)


@pytest.mark.parametrize(
    "text", ["mx.sym.abs(s) * 2", "mx.sym.concat(s, s, dim=0)", "mx.sym.clip(s, a_min=1, a_max=2)", "s + s * 2"]
)
def test_graphs_keep_it_too(text):
    s = mx.sym.Variable("s")
    y = eval(text, {"mx": mx, "s": s})
    got, want = (y.bind(mx.cpu(), {"s": x}, grad_req="null").forward()[0] for x in (sparse(X, "csr"), nd.array(X)))
    assert got.stype == ("default" if "clip" in text else "csr") and np.array_equal(got.asnumpy(), want.asnumpy())


@pytest.mark.parametrize("out", [*KINDS, "default"])
@pytest.mark.parametrize("given", [*KINDS, "default"])
def test_results_are_written_into_any_storage(given, out):
    x, dense = sparse(X, given) if given != "default" else nd.array(X), nd.array(Y + 1)
    for operator, want in (
        (lambda o: nd.exp(x, out=o), np.exp(X)),
        (lambda o: nd.elemwise_add(x, x, out=o), X + X),
        (lambda o: nd.broadcast_mul(dense, nd.ones((1, 3)), out=o), Y + 1),
        (lambda o: nd.square(x, out=o), X * X),
        (lambda o: nd.add_n(dense, x, out=o), X + Y + 1),
        (lambda o: nd.zeros((4, 3), out=o), 0 * X),
        (lambda o: nd._internal._mul_scalar(x, scalar=2, out=o), 2 * X),
    ):
        o = nd.zeros((4, 3), stype=out)
        assert operator(o) is o and o.stype == out
        if out != "default":
            o.check_format()
        np.testing.assert_allclose(o.asnumpy(), want, rtol=1e-6)


@pytest.mark.parametrize("stype", KINDS)
def test_a_sparse_result_of_long_work_is_whole(stype):
    x, o = nd.ones((700, 700)), nd.zeros((700, 700), stype=stype)
    for _ in range(3):
        nd.dot(x, x, out=o)
    assert (o.asnumpy() == 700).all() and o.stype == stype


@pytest.mark.parametrize("grad", KINDS)
@pytest.mark.parametrize("weight", [*KINDS, "default"])
@pytest.mark.parametrize("name", ["sgd", "adam", "nag", "rmsprop"])
def test_weights_and_gradients_of_any_storage_are_updated(name, weight, grad):
    found = []
    for w, g in ((weight, grad), ("default", "default")):
        options = {"lazy_update": False} if name in ("sgd", "adam") else {}
        update = mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.1, wd=0, **options))
        array = nd.array(Y).tostype(w)
        for scale in (1, 2):
            update(0, nd.array(X * scale).tostype(g), array)
        assert array.stype == w
        found.append(array.asnumpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-6)


def test_rows_are_added_to_a_dense_gradient_where_they_are(monkeypatch):
    dense, rows = nd.array(Y), sparse(X, "row_sparse")
    monkeypatch.setattr("mxcore.stypes.RowSparse.todense", None)  # all of it may not fit into memory
    for pair in ((dense, rows), (rows, dense)):
        np.testing.assert_allclose(nd._internal._grad_add(*pair).asnumpy(), X + Y, rtol=1e-6)
    assert dense.asnumpy().tolist() == Y.tolist()


def test_rows_without_gradient_are_left_alone_where_mxnet_does():
    for w, moved in (("default", False), ("row_sparse", False), ("csr", True)):
        for name in ("sgd", "adam", "lbsgd"):
            update, array = (
                mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.1, wd=0.1)),
                nd.array(X + 1).tostype(w),
            )
            update(0, sparse(np.eye(4, 3, dtype="f"), "row_sparse"), array)
            assert (array.asnumpy()[3] != X[3] + 1).all() == moved, (name, w)


def test_products_whose_shape_is_not_that_of_the_sparse_factor():
    column = sparse(np.array([[1], [0], [2]], np.float32), "csr")
    wide = nd.broadcast_mul(column, nd.array([[1, 2]]))
    assert wide.stype == "csr" and wide.asnumpy().tolist() == [[1, 2], [0, 0], [2, 4]]
    vector = nd.dot(nd.array([1, 2, 3]), column)
    assert vector.stype == "default" and vector.asnumpy().tolist() == [7]
    whole = nd.array([[3, 0], [0, 5]], dtype="int8").tostype("csr")
    other = nd.array([[4, 0], [0, 12]], dtype="int8").tostype("csr")
    assert nd._internal._hypot(whole, other).asnumpy().tolist() == [[5, 0], [0, 13]]
    assert nd._internal._hypot(whole, whole).dtype == np.int8 and nd._internal._hypot(whole, whole).asnumpy()[0, 0] == 4


def test_subclasses_know_how_many_arrays_tell_the_places():
    assert sparse(X, "csr")._num_aux == 2 and sparse(X, "row_sparse")._num_aux == 1


def test_zeros_of_the_dense_type_are_those_of_nd_zeros():
    x = nd.sparse.zeros("default", (2, 3), ctx=mx.cpu(0), dtype="float64")
    assert x.stype == "default" and x.dtype == np.float64 and x.asnumpy().tolist() == [[0] * 3] * 2
    with pytest.raises(mx.MXNetError, match="holds an unknown length"):
        nd.sparse.zeros("default", (0, 5))


@pytest.mark.parametrize("make", [nd.sparse.csr_matrix, nd.sparse.row_sparse_array])
def test_a_shape_that_the_array_has_not_is_refused(make):
    kind = "csr" if make is nd.sparse.csr_matrix else "row_sparse"
    for given in (np.eye(2), nd.ones((2, 2)), sparse(np.ones((2, 2)), kind), (2, 2)):
        assert make(given, shape=(2, 2)).shape == (2, 2)
        with pytest.raises(ValueError, match=r"\(3, 4\)"):
            make(given, shape=(3, 4))


def test_zeros_that_no_array_could_hold_are_refused():
    for stype, shape, word in (
        ("row_sparse", (2**62, 2**62), "there is no array of shape"),
        ("row_sparse", (-1, 2), "there is no array of shape"),
        ("csr", (2**40, 2**30), "there is no array of shape"),
        ("csr", (2,), "a csr array has two dimensions"),
    ):
        with pytest.raises(mx.MXNetError, match=f"nd.sparse.zeros: {word}"):
            mx.nd.sparse.zeros(stype, shape)
    with pytest.raises(mx.MXNetError, match="row_sparse_array: there is no array of shape"):
        mx.nd.sparse.row_sparse_array((np.ones((1, 2)), [2**61]), shape=(2**62, 2))
    with pytest.raises(mx.MXNetError, match="csr_matrix: where .* rows begin does not fit into memory"):
        mx.nd.sparse.csr_matrix((2**50, 1))


@pytest.mark.parametrize("shape", [(2, 2**58), (2, 2**62)])
def test_a_matrix_whose_places_cannot_be_counted_is_refused(shape):
    with pytest.raises(mx.MXNetError, match="csr_matrix: there is no array of shape"):
        mx.nd.sparse.csr_matrix(shape)
    wide = mx.nd.sparse.csr_matrix(([1.0, 2, 4], ([0, 1, 1], [2**57, 5, 2**57 - 1])), shape=(2, 2**58 - 1))
    assert (wide + wide).indices.asnumpy().tolist() == [2**57, 5, 2**57 - 1]


@pytest.mark.parametrize("way", ["x[:] = w", "copyto", "copy"])
def test_what_is_still_being_computed_is_waited_for(way):
    nd.relu(nd.ones((3,), ctx=mx.cpu(1))).wait_to_read()  # two contexts: the engine goes on behind
    a = nd.ones((700, 700))
    w, x = nd.dot(a, a).tostype("row_sparse"), nd.sparse.zeros("row_sparse", (700, 700))
    if way == "x[:] = w":
        x[:] = w
    elif way == "copyto":
        w.copyto(x)
    else:
        x = w.copy()
    assert x.asnumpy()[0, 0] == 700


def test_scipy_gives_places_that_are_there():
    """It believes what it is told."""
    scipy = pytest.importorskip("scipy.sparse")
    x = nd.sparse.csr_matrix(([1.0, 2], [2, 0], [0, 2, 2]), shape=(2, 3)).asscipy()
    assert x.toarray().tolist() == [[2, 0, 1], [0, 0, 0]] and x.has_sorted_indices
    coo, csc = scipy.coo_matrix(([1.0], ([0], [1])), shape=(2, 3)), scipy.csc_matrix(np.eye(2))
    coo.col[0] = 10**7
    csc.indices[0] = 10**7
    for damaged in (coo, csc):
        with pytest.raises(mx.MXNetError, match="csr_matrix: the .* is damaged"):
            nd.sparse.csr_matrix(damaged)
