"""Operators on sparse arrays of random patterns, empty rows, none and all values included, against dense ones."""

import itertools
import pathlib
import pickle
import tempfile
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore import autograd, nd
from mxcore.plugin import find_op
from mxcore.stypes import HeldRows, RowSparse
from mxcore.testing.ways import reference_bodies

QUICK = settings(max_examples=15, deadline=None, derandomize=True)
KINDS = ("csr", "row_sparse")


@st.composite
def matrices(draw, rows=None, cols=None, dtype=None):
    """Matrices of small whole numbers, with the pattern of zeros drawn by rows: empty, full or anything."""
    m = draw(st.integers(0 if rows is None else rows, 7 if rows is None else rows))
    n = draw(st.integers(0 if cols is None else cols, 6 if cols is None else cols))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shares = [draw(st.sampled_from([0.0, 0.3, 1.0])) for _ in range(m)]
    values = rng.integers(1, 5, (m, n)) * rng.choice([-1, 1], (m, n))
    kept = rng.random((m, n)) < np.reshape(shares, (m, 1))
    return (values * kept).astype(dtype or draw(st.sampled_from(["float32", "float64", "int32"])))


def same(found, want, stype=None):
    """Whether a result is well formed, and what the dense one is."""
    if found.stype != "default":
        found.check_format()
    assert stype is None or found.stype == stype
    assert found.dtype == want.dtype and found.shape == want.shape
    np.testing.assert_allclose(found.asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-5)


ONE = {
    "nd.abs(x)": True,
    "nd.sign(x)": True,
    "nd.square(x)": True,
    "-x": True,
    "x * 3": True,
    "x + 0": True,
    "x > 0": True,
    "x != 0": True,
    "x >= 0": False,
    "x + 2": False,
    "nd.clip(x, -2, 2)": True,
    "nd.clip(x, 1, 2)": False,
    "nd.zeros_like(x)": True,
    "x.copy()": True,
    "x.astype('float64')": True,
    "nd.sum(x)": False,
    "nd.sum(x, axis=0)": False,
    "nd.sum(x, axis=1)": False,
    "nd.sum(x, axis=1, keepdims=True)": False,
    "nd.sum(x, axis=0, exclude=True)": False,
    "nd.norm(x)": False,
    "nd.norm(x, axis=0)": False,
    "nd.norm(x, axis=1)": False,
    "nd.norm(x, ord=1, axis=1)": False,
    "nd.transpose(x)": False,
    "nd.cast_storage(x, stype='default')": False,
}


@QUICK
@given(matrices(), st.sampled_from(KINDS))
def test_of_one_array(a, kind):
    dense = nd.array(a, dtype=a.dtype)
    for text, keeps in ONE.items():
        found, want = (eval(text, {"nd": nd, "x": x}) for x in (dense.tostype(kind), dense))
        same(found, want, kind if keeps else "default")


@QUICK
@given(matrices(), st.sampled_from(KINDS))
def test_means_and_squares(a, kind):
    dense = nd.array(a.astype(np.float64), dtype="float64")
    for axis in (None, 0, 1) if a.size else ():
        x = dense.tostype(kind)
        same(nd.mean(x, axis=axis), nd.mean(dense, axis=axis))
        for keepdims in (False, True):
            found = nd._internal._square_sum(x, axis=axis, keepdims=keepdims)
            same(found, nd.sum(dense * dense, axis=axis, keepdims=keepdims))


@QUICK
@given(st.data())
def test_of_two_arrays(data):
    a = data.draw(matrices())
    b = data.draw(matrices(*a.shape, a.dtype))
    for x, y in itertools.product((*KINDS, "default"), repeat=2):
        left, right = nd.array(a, dtype=a.dtype), nd.array(b, dtype=a.dtype)
        for name in ("elemwise_add", "elemwise_sub", "elemwise_mul", "_internal._maximum", "add_n", "broadcast_mul"):
            f = eval(f"nd.{name}", {"nd": nd})
            same(f(left.tostype(x), right.tostype(y)), f(left, right), None)


@QUICK
@given(st.data(), st.booleans(), st.booleans(), st.sampled_from(["float32", "float64"]))
def test_products_and_their_gradients(data, ta, tb, dtype):
    a = data.draw(matrices(dtype=dtype))
    k = a.shape[0 if ta else 1]
    n = data.draw(st.integers(0, 4))
    b = data.draw(matrices(*((n, k) if tb else (k, n)), dtype))
    options = {"transpose_a": ta, "transpose_b": tb}
    want = nd.array((a.T if ta else a) @ (b.T if tb else b), dtype=dtype)
    for x, y in itertools.product((*KINDS, "default"), repeat=2):
        left, right = nd.array(a, dtype=dtype).tostype(x), nd.array(b, dtype=dtype).tostype(y)
        same(nd.dot(left, right, **options), want)
        for stype in (*KINDS, "default"):
            same(nd.dot(left, right, forward_stype=stype, **options), want, stype)
    for x, y in itertools.product(("csr", "default"), repeat=2):
        found = []
        for left, right in ((x, y), ("default", "default")):
            left, right = nd.array(a, dtype=dtype).tostype(left), nd.array(b, dtype=dtype).tostype(right)
            for z in (left, right):
                z.attach_grad(stype="row_sparse")
            with mx.autograd.record():
                y_ = nd.dot(left, right, **options)
            y_.backward(nd.array(np.arange(want.size).reshape(want.shape), dtype=dtype))
            found.append((left.grad, right.grad))
        for one, other in zip(*found):
            same(one, other.tostype("default"), "row_sparse")


@QUICK
@given(st.data(), st.sampled_from(KINDS))
def test_rows(data, kind):
    a = data.draw(matrices(rows=data.draw(st.integers(1, 7))))
    dense = nd.array(a, dtype=a.dtype)
    x, m = dense.tostype(kind), len(a)
    some = data.draw(st.lists(st.integers(0, m - 1), max_size=6))
    index = nd.array(some, dtype="int64")
    same(nd.take(x, index), nd.take(dense, index), "csr" if kind == "csr" else "default")
    for other in (-2, 0):  # of which MXNet keeps the storage for 0 only
        index2 = index.reshape((1, -1)) if other == 0 else index
        if some:
            same(nd.take(x, index2, axis=other), nd.take(dense, index2, axis=other), "default")
    begin, end = sorted(data.draw(st.tuples(st.integers(0, m), st.integers(0, m))))
    if kind == "csr":
        same(x[begin:end], nd.array(a[begin:end], dtype=a.dtype), "csr")
        same(nd.concat(x, x[begin:end], x, dim=0), nd.array(np.vstack([a, a[begin:end], a]), dtype=a.dtype), "csr")
        if a.shape[1] > 1:
            same(nd.slice(x, begin=(begin, 1), end=(m, a.shape[1])), nd.array(a[begin:, 1:], dtype=a.dtype), "csr")
        out = nd.where(x, dense, dense + 9)
        same(out, nd.array(np.where(a, a, a + 9), dtype=a.dtype))
    else:
        kept = nd.sparse.retain(x, index)
        assert kept.indices.asnumpy().tolist() == sorted({*some})
        same(kept, nd.array(np.where(np.isin(np.arange(m), some)[:, None], a, 0), dtype=a.dtype), "row_sparse")


@QUICK
@given(matrices(dtype="float32"))
def test_conversions_go_round(a):
    dense = nd.array(a)
    for kinds in itertools.product((*KINDS, "default"), repeat=2):
        x = dense
        for kind in kinds:
            x = x.tostype(kind)
            same(x, dense, kind)
    scipy = pytest.importorskip("scipy.sparse")
    found = nd.sparse.from_scipy(scipy.coo_matrix(a))
    same(found, dense, "csr")
    assert (found.asscipy() != scipy.csr_matrix(a)).nnz == 0


@QUICK
@given(st.data())
def test_parts_in_any_order_and_repeated(data):
    """Columns of a row are sorted, values of one place added up; coordinates likewise."""
    m, n = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    rows = sorted(data.draw(st.lists(st.integers(0, m - 1), max_size=12)))
    cols = [data.draw(st.integers(0, n - 1)) for _ in rows]
    values = np.arange(1.0, len(rows) + 1)
    want = np.zeros((m, n))
    np.add.at(want, (rows, cols), values)
    start = np.searchsorted(rows, np.arange(m + 1))
    for parts in ((values, np.array(cols, "int64"), start), (values[::-1], (rows[::-1], cols[::-1]))):
        same(nd.sparse.csr_matrix(parts, shape=(m, n), dtype="float64"), nd.array(want, dtype="float64"), "csr")


def test_large_matrices_are_never_made_dense():
    """What has 10**12 places takes the time and memory of what it stores."""
    m = n = 10**6
    rows, cols = np.array([0, 5, m - 1]), np.array([n - 1, 7, 0])
    x = nd.sparse.csr_matrix(([1.0, 2, 3], (rows, cols)), shape=(m, n))
    assert nd.sum(x).asscalar() == 6 and nd.norm(x).asscalar() == np.float32(14**0.5)
    assert nd.mean(x).asscalar() == np.float32(6e-12)
    for axis, at in ((0, cols), (1, rows)):
        assert nd.sum(x, axis=axis).asnumpy()[at].tolist() == [1, 2, 3]
    for y in (x + x, x * x, -x, x * 2, nd.take(x, nd.array(rows, dtype="int64")), nd.concat(x, x, dim=0), x[5:]):
        assert y.stype == "csr" and len(y.data) in (2, 3, 6)
    w = nd.ones((n, 2))
    w.attach_grad(stype="row_sparse")
    with mx.autograd.record():
        y = nd.dot(x, w)
    y.backward()
    assert y.asnumpy()[rows].tolist() == [[1, 1], [2, 2], [3, 3]]
    assert w.grad.indices.asnumpy().tolist() == sorted(cols) and w.grad.data.asnumpy().tolist() == [
        [3, 3],
        [2, 2],
        [1, 1],
    ]


USES = {
    "dot(x, d)": lambda x, d: nd.dot(x, d),
    "dot(x.T, d)": lambda x, d: nd.dot(x, d, transpose_a=True),
    "dot(d, x)": lambda x, d: nd.dot(d, x),
    "dot(x, x)": lambda x, d: nd.dot(x, x),
    "dot(x, rows)": lambda x, d: nd.dot(x, d.tostype("row_sparse")),
    "dense": lambda x, d: nd.cast_storage(x, stype="default"),
    "asnumpy": lambda x, d: x,
    "sum": lambda x, d: nd.sum(x, axis=0),
    "sum rows": lambda x, d: nd.sum(x, axis=1),
    "x + x": lambda x, d: x + x,
    "x * d": lambda x, d: x * d,
    "-x": lambda x, d: -x,
    "square": lambda x, d: nd.square(x),
    "slice": lambda x, d: x[0:4],
    "take": lambda x, d: nd.take(x, nd.arange(4, ctx=x.context)),
    "concat": lambda x, d: nd.concat(x, x, dim=0),
    "where": lambda x, d: nd.where(x, d, d * 0),
    "exp": lambda x, d: nd.exp(x),
    "copy": lambda x, d: x.copy(),
    "astype": lambda x, d: x.astype("float64"),
    "pickle": lambda x, d: pickle.loads(pickle.dumps(x)),
    "save": lambda x, d: nd.load_frombuffer(_saved(x))[0],
}


def _saved(x):
    with tempfile.TemporaryDirectory() as folder:
        nd.save(f"{folder}/x.nd", x)
        return pathlib.Path(f"{folder}/x.nd").read_bytes()


def test_places_that_come_twice_are_added_up():
    want = np.array([[0, 3, 0, 0], [0, 0, 0, 0], [7, 0, 0, 12], [0, 0, 5, 0]], "float32")
    x = nd.sparse.csr_matrix(([1, 2, 3, 4, 12, 5], [1, 1, 0, 0, 3, 2], [0, 2, 2, 5, 6]), shape=(4, 4))
    d = nd.array(np.arange(16.0).reshape(4, 4))
    for name, call in USES.items():
        found = call(x, d)
        np.testing.assert_array_equal(found.asnumpy(), call(nd.array(want).tostype("csr"), d).asnumpy(), name)
        if found.stype != "default":
            found.check_format()


READS = {
    "parts": lambda x: (x.data, x.indices, x._num_aux, getattr(x, "indptr", None)),
    "check_format": lambda x: x.check_format(),
    "a copy": lambda x: nd.sparse.array(x),
    "another dtype": lambda x: nd.sparse.array(x, dtype="float64"),
    "dense": lambda x: x.asnumpy(),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "a store": lambda x: mx.kv.create("local").init(0, x),
    "SciPy": lambda x: x.stype == "csr" and pytest.importorskip("scipy.sparse") and x.asscipy(),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("kind", [*KINDS, "held rows"])
def test_who_reads_an_array_leaves_it_as_it_was(kind, name):
    """What kernels have found out about its places stays known, and memory that updates move its own."""
    x = nd.array(np.eye(3)).tostype("csr" if kind == "csr" else "row_sparse")
    if kind == "held rows":
        nd.sgd_update(x, nd.sparse.row_sparse_array((np.ones((1, 3), "f4"), [1]), shape=(3, 3)), lr=0.5, out=x)
    value, want = x._data, x.asnumpy()
    READS[name](x)
    assert x._data is value
    for part in ("data", "indices"):
        getattr(x, part)[:] = 7
        np.testing.assert_array_equal(x.asnumpy(), want)


@pytest.mark.parametrize("name", ["data", "check_format"])
@pytest.mark.parametrize("held", [False, True])
def test_reading_rows_copies_them_once(held, name):
    x = nd.ones((16, 1 << 16)).tostype("row_sparse")
    if held:
        nd.sgd_update(x, nd.sparse.zeros("row_sparse", x.shape), lr=0.5, out=x)
    read = x.check_format if name == "check_format" else lambda: x.data
    read()  # what is imported is there
    tracemalloc.start()
    try:
        kept = read()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * x.size, kept


def test_rows_to_retain_that_there_are_not_are_refused():
    x = nd.ones((3, 2)).tostype("row_sparse")
    for row in (3, -1):
        with pytest.raises(IndexError):
            nd.sparse.retain(x, nd.array([0, row])).wait_to_read()


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_the_gradient_of_rows_taken_from_row_sparse_arrays(mode):
    """It holds those rows: the table of 10**8 rows is never made."""
    w = nd.sparse.row_sparse_array(([[1.0, 2], [3, 4]], [5, 10**8 - 1]), shape=(10**8, 2))
    w.attach_grad()
    with mx.autograd.record():
        y = nd.take(w, nd.array([[5, 0], [5, -1]], dtype="int64"), mode=mode)
    y.backward(nd.array(np.arange(8.0).reshape(2, 2, 2)))
    last = {"clip": ([0, 5], [[8, 10], [4, 6]]), "wrap": ([0, 5, 10**8 - 1], [[2, 3], [4, 6], [6, 7]])}[mode]
    assert w.grad.stype == "row_sparse" and w.grad.indices.asnumpy().tolist() == last[0]
    assert w.grad.data.asnumpy().tolist() == last[1] and y.asnumpy()[0].tolist() == [[1, 2], [0, 0]]


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_gradients_are_nobody_elses(stype):
    """Neither that of another variable, nor the head gradient."""
    dense = nd.array([[1.0, 0, 2], [0, 0, 3]])
    head, v, w = (dense.tostype(stype) for _ in range(3))
    for x in (v, w):
        x.attach_grad(stype=stype)
    with autograd.record():
        y = v + w
    y.backward(head)
    want = v.grad.asnumpy()
    for x in (w.grad, head):
        x._part("values")[:] = 9
    np.testing.assert_array_equal(v.grad.asnumpy(), want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
def test_parts_of_matrices_of_any_dtype(dtype):
    x = nd.array([[1, 0, 2], [0, 3, 0]], dtype=dtype).tostype("csr")
    taken, part = nd.take(x, nd.array([1, 0, 1])), nd.slice(x, begin=(0, 1), end=(2, 3))
    assert {taken.stype, part.stype} == {"csr"} and taken.dtype == part.dtype == x.dtype
    assert taken.astype("float32").asnumpy().tolist() == [[0, 3, 0], [1, 0, 2], [0, 3, 0]]
    assert part.astype("float32").asnumpy().tolist() == [[0, 2], [3, 0]]


def embedded(weight, **more):
    """Three rows of a table of two columns, recorded."""
    with autograd.record():
        return nd.Embedding(nd.array([2.0, 0, 2]), weight, input_dim=4, output_dim=2, sparse_grad=True, **more)


def test_a_gradient_that_a_rule_made_is_not_copied(monkeypatch):
    weight = nd.ones((4, 2))
    weight.attach_grad(stype="row_sparse")
    copies = []
    monkeypatch.setattr(RowSparse, "copy", lambda self: copies.append(self) or self)
    y, head = embedded(weight), nd.array([[1.0, 2], [3, 4], [5, 6]])
    y.backward(head, retain_graph=True)
    first, found = weight.grad._data, weight.grad.data
    y.backward(head)
    assert not copies and weight.grad._data is not first and weight.grad.indices.asnumpy().tolist() == [0, 2]
    assert weight.grad.data.asnumpy().tolist() == found.asnumpy().tolist() == [[3, 4], [6, 8]]


@pytest.mark.parametrize("way", ["backward", "grad"])
def test_a_gradient_whose_parts_are_somebody_elses_is_copied(monkeypatch, way):
    """Such as a body gives that has nothing to add up."""

    def gives_what_it_got(k, p, dy, data, weight):
        return RowSparse(weight.shape, k.xp.arange(3), dy)

    monkeypatch.setattr(find_op("_backward_Embedding"), "body", gives_what_it_got)
    weight, head = nd.ones((4, 2)), nd.array([[1.0, 2], [3, 4], [5, 6]])
    weight.attach_grad(stype="row_sparse")
    with reference_bodies():
        y = embedded(weight)
        if way == "grad":
            [found] = autograd.grad([y], [weight], head_grads=[head])
        else:
            y.backward(head)
            found = weight.grad
    assert found.data.asnumpy().tolist() == head.asnumpy().tolist()
    found._part("values")[:] = 9
    head[:] = 7
    assert head.asnumpy().min() == 7 and found.data.asnumpy().min() == found.data.asnumpy().max() == 9


def test_whose_memory_the_parts_of_a_value_are():
    def wrapped(value):
        return nd.sparse.RowSparseNDArray(value, nd.ones(1)._st)

    dense, rows = nd.ones((4, 2)), nd.array([0, 1, 2, 3], dtype="int64")
    device, whole, at = dense.context.device, dense._data, rows._data
    alone = RowSparse((4, 2), at, whole)
    assert alone.is_apart(device, [None, nd.ones((4, 2))])
    assert not alone.is_apart(device, [dense]) and not alone.is_apart(device, [dense[1:2]])
    assert not RowSparse((2, 2), at[:2], whole[:2].copy()).is_apart(device, [])
    assert not alone.is_apart(device, [wrapped(RowSparse((4, 2), at.copy(), whole))])
    assert not alone.is_apart(device, [wrapped(HeldRows(device.xp, whole.copy()))])
    assert not HeldRows(device.xp, whole).is_apart(device, [])


def test_an_update_without_out_leaves_the_weight():
    w = nd.ones((4, 2)).tostype("row_sparse")
    g = nd.sparse.row_sparse_array(([[1.0, 2]], [1]), shape=(4, 2))
    rule = mx.optimizer.SGD(learning_rate=1, wd=0)
    rule.update(0, w, g, None)
    rule.update(0, w, g, None)
    kept, before = w.copy(), w.asnumpy()
    y = nd.sgd_update(w, g, lr=1)
    np.testing.assert_array_equal(w.asnumpy(), before)
    want = y.asnumpy()
    np.testing.assert_array_equal(want[1], before[1] - [1, 2])
    rule.update(0, w, g, None)
    np.testing.assert_array_equal(y.asnumpy(), want)
    np.testing.assert_array_equal(kept.asnumpy(), before)


@pytest.mark.parametrize("to", ["another weight", "its state", "a dense array", "its own gradient"])
def test_an_update_written_elsewhere_leaves_the_weight(to):
    """Held weights are moved in their memory only where the result takes their place."""
    w, m = (nd.ones((4, 2)).tostype("row_sparse") for _ in range(2))
    g = nd.sparse.row_sparse_array(([[1.0, 2]], [1]), shape=(4, 2))
    call = dict(lr=1, momentum=0.5, wd=0)
    nd.sgd_mom_update(w, g, m, out=w, **call)
    before, state = w.asnumpy(), m.asnumpy()
    other = nd.ones((4, 2)).tostype("row_sparse")
    out = {"another weight": other, "its state": m, "a dense array": nd.zeros((4, 2)), "its own gradient": g}[to]
    nd.sgd_mom_update(w, g, m, out=out, **call)
    np.testing.assert_array_equal(w.asnumpy(), before)
    moved = 0.5 * state[1] - np.array([1, 2], "f4")
    np.testing.assert_array_equal(out.asnumpy()[1], before[1] + moved)
    if to != "its state":  # which is written over
        np.testing.assert_array_equal(m.asnumpy()[1], moved)


@pytest.mark.parametrize("way", [nd.elemwise_add, lambda a, b: nd.identity(a), lambda a, b: a])
def test_gradients_that_are_asked_for_are_the_callers(way):
    a, b, h = (nd.ones((4, 3)).tostype("row_sparse") for _ in range(3))
    for x in (a, b):
        x.attach_grad(stype="row_sparse")
    with autograd.record():
        y = way(a, b)
    wrt = [a, b] if way is nd.elemwise_add else [a]
    found = autograd.grad([y], wrt, head_grads=[h])
    found[0]._part("values")[:] = 99
    assert h.asnumpy().max() == 1 and all(g.asnumpy().max() == 1 for g in found[1:])


@pytest.mark.parametrize("way", ["identity", "itself", "twice", "block"])
def test_outputs_of_programs_are_not_their_inputs(way):
    """A lazy update moves its weight in place; what a program gave out before stays."""
    g = nd.sparse.row_sparse_array((np.ones((2, 3), "f4"), [0, 2]), shape=(4, 3))
    w = nd.ones((4, 3)).tostype("row_sparse")
    nd.sgd_update(w, g, out=w, lr=1)
    x = mx.sym.Variable("x", stype="row_sparse")
    if way == "block":
        net = mx.gluon.nn.HybridLambda(lambda F, x: F.identity(x))
        net.hybridize()
        outs = [net(w), net(w)]
    else:
        graph = {"identity": mx.sym.identity(x), "itself": x, "twice": mx.sym.Group([x, mx.sym.BlockGrad(x)])}[way]
        outs = graph.bind(mx.cpu(), {"x": w}).forward()
    before = w.asnumpy()
    nd.sgd_update(w, g, out=w, lr=1)
    for y in outs:
        np.testing.assert_array_equal(y.asnumpy(), before)
    outs[0]._part("values")[:] = 7
    np.testing.assert_array_equal(outs[-1].asnumpy(), before if len(outs) > 1 else np.full((4, 3), 7))
    assert w.asnumpy()[0, 0] == before[0, 0] - 1


def test_writes_between_record_and_backward_are_told():
    v = nd.ones((2, 2)).tostype("row_sparse")
    v.attach_grad(stype="row_sparse")
    with autograd.record():
        y = v * v
    with pytest.warns(UserWarning, match="written|in place"):
        v[:] = 0
        y.backward()
