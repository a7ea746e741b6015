"""Functions of mx.np that shape, join, split, pad and pick, against NumPy: all dtypes, no dimensions, no elements."""

import warnings

import numpy as onp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore import np, npx
from mxcore.base import MXNetError
from mxcore.symbol.numpy import _Symbol, symbols
from mxcore.testing.gradcheck import check_grads

from .numbers import DTYPES, check, drawn

pytestmark = pytest.mark.usefixtures("numpy_mode")

#: (function, shape, arguments): of one array, the dtype stays, and NumPy's function of the name gives the values.
ONE = [
    ("reshape", (2, 3), ((3, 2),)),
    ("reshape", (2, 3), (-1,)),
    ("reshape", (2, 3), ([1, -1, 2],)),
    ("reshape", (0, 3), ((3, 0),)),
    ("reshape", (), ((1, 1),)),
    ("reshape", (1,), ((),)),
    ("ravel", (2, 3), ()),
    ("ravel", (), ()),
    ("transpose", (2, 3, 4), ()),
    ("transpose", (2, 3, 4), ((1, 0, 2),)),
    ("transpose", (2, 3, 4), ((0, -1, 1),)),
    ("transpose", (), ()),
    ("transpose", (0, 2), ()),
    ("swapaxes", (2, 3, 4), (0, -1)),
    ("moveaxis", (2, 3, 4), (0, -1)),
    ("moveaxis", (2, 3, 4), ((0, 1), (-1, 0))),
    ("rollaxis", (2, 3, 4), (2,)),
    ("rollaxis", (2, 3, 4), (0, 3)),
    ("rollaxis", (2, 3, 4), (-2, -1)),
    ("expand_dims", (2, 3), (1,)),
    ("expand_dims", (), (0,)),
    ("expand_dims", (2, 3), ((0, -1),)),
    ("squeeze", (1, 2, 1), ()),
    ("squeeze", (1, 2, 1), (0,)),
    ("squeeze", (1, 1), ()),
    ("squeeze", (1, 2, 1), ((0, -1),)),
    ("squeeze", (), ()),
    ("broadcast_to", (3,), ((2, 3),)),
    ("broadcast_to", (2, 1), ((2, 0),)),
    ("broadcast_to", (), ((2, 2),)),
    ("flip", (2, 3), ()),
    ("flip", (2, 3), (1,)),
    ("flip", (2, 3), ((0, 1),)),
    ("flip", (), ()),
    ("fliplr", (2, 3), ()),
    ("flipud", (2,), ()),
    ("roll", (5,), (2,)),
    ("roll", (2, 3), (-1,)),
    ("roll", (2, 3), (1, 1)),
    ("roll", (2, 3), ((1, 2), (0, 1))),
    ("roll", (2, 3), (1, (0, 1))),
    ("roll", (0, 3), (1,)),
    ("rot90", (2, 3), ()),
    ("rot90", (2, 3), (2,)),
    ("rot90", (2, 3), (-1,)),
    ("rot90", (2, 3, 4), (3, (1, 2))),
    ("rot90", (2, 3, 4), (1, (2, 0))),
    ("resize", (3,), ((2, 2),)),
    ("resize", (2, 3), (4,)),
    ("resize", (2, 3), ((0, 2),)),
    ("atleast_1d", (), ()),
    ("atleast_2d", (3,), ()),
    ("atleast_3d", (3,), ()),
    ("atleast_3d", (2, 3), ()),
    ("atleast_3d", (), ()),
    ("repeat", (2, 3), (2,)),
    ("repeat", (2, 3), (2, 1)),
    ("repeat", (2, 3), ([1, 0, 2], 1)),
    ("repeat", (2, 3), (onp.array([3, 1]), 0)),
    ("repeat", (3,), ([2],)),
    ("repeat", (), (3,)),
    ("tile", (3,), (2,)),
    ("tile", (2, 3), ((2, 1, 2),)),
    ("tile", (), (2,)),
    ("tile", (0, 2), (2,)),
    ("split", (4, 2), (2,)),
    ("split", (4, 3), (3, 1)),
    ("split", (4,), ([1, 3],)),
    ("split", (4,), ([3, 1],)),
    ("split", (4,), ([-1, 9],)),
    ("split", (4, 3), ((1,), -1)),
    ("split", (4,), ([],)),
    ("array_split", (5,), (3,)),
    ("array_split", (2,), (3,)),
    ("array_split", (3, 5), (2, 1)),
    ("hsplit", (2, 4), (2,)),
    ("hsplit", (4,), ([1],)),
    ("vsplit", (4, 2), (2,)),
    ("dsplit", (1, 2, 4), ([1, 2],)),
    ("delete", (4,), (1,)),
    ("delete", (4,), (-1,)),
    ("delete", (3, 4), (slice(1, None, 2), 1)),
    ("delete", (3, 4), (slice(None), 1)),
    ("delete", (3, 4), ([0, 2], 0)),
    ("delete", (3, 4), ([0, 0, 5],)),
    ("delete", (4,), (onp.array([True, False, True, False]),)),
    ("delete", (4,), ([],)),
    ("insert", (4,), (1, 1)),
    ("insert", (4,), (-1, 1)),
    ("insert", (4,), (4, 1)),
    ("insert", (3, 4), (1, 1, 1)),
    ("insert", (3, 4), (1, [1, 0, 1], 1)),
    ("insert", (3, 4), (1, [[1, 1, 0, 1], [0, 0, 1, 0]], 0)),
    ("insert", (3, 4), ([1], [[1, 1, 0, 1]], 0)),
    ("insert", (3, 4), ([1], [[1], [0], [1]], 1)),
    ("insert", (4,), ([1, 1, 3], [1, 0, 1])),
    ("insert", (4,), ([3, 0], [1, 0])),
    ("insert", (3, 4), (slice(0, 2), 1, 0)),
    ("insert", (3, 4), ([0, -1], [[1, 0, 1, 1], [0, 0, 0, 1]], 0)),
    ("trim_zeros", (6,), ()),
    ("take", (3, 4), ([0, 2],)),
    ("take", (3, 4), ([[0, -1]], 1)),
    ("take", (3, 4), (-1, 0)),
    ("pad", (3,), (1,)),
    ("pad", (2, 3), ((1, 2),)),
    ("pad", (2, 3), (((1, 0), (0, 2)), "edge")),
    ("pad", (2, 3), (((1, 0), (0, 2)), "reflect")),
    ("pad", (2, 3), (5, "symmetric")),
    ("pad", (2, 3), (5, "reflect")),
    ("pad", (2, 3), (2, "wrap")),
    ("pad", (2, 3), (2, "maximum")),
    ("pad", (2, 3), (2, "minimum")),
    ("pad", (0, 2), (1,)),
]


@pytest.mark.parametrize("name, shape, args", ONE, ids=repr)
def test_functions_of_one_array(name, shape, args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy on arguments that it does not like
        for dtype in DTYPES:
            a = drawn(shape, dtype)
            if name == "pad" and args[1:] in (("maximum",), ("minimum",)) and dtype == "bool":
                continue  # NumPy's own fails
            want, got = getattr(onp, name)(a, *args), getattr(np, name)(np.array(a), *args)
            if not isinstance(want, (list, tuple)):
                want, got = [want], [got]
            assert len(want) == len(got)
            for g, w in zip(got, want, strict=True):
                check(g, w, dtype)


#: (function, shapes, arguments): of a sequence of arrays.
MANY = [
    ("concatenate", [(2, 3), (1, 3)], ()),
    ("concatenate", [(2, 3), (2, 1), (2, 0)], (1,)),
    ("concatenate", [(2, 3), (2,), ()], (None,)),
    ("concatenate", [(3,)], (-1,)),
    ("stack", [(2, 3), (2, 3)], ()),
    ("stack", [(2, 3), (2, 3)], (-1,)),
    ("stack", [(), ()], ()),
    ("vstack", [(3,), (2, 3)], ()),
    ("vstack", [(), ()], ()),
    ("hstack", [(3,), (2,)], ()),
    ("hstack", [(2, 3), (2, 1)], ()),
    ("hstack", [(), ()], ()),
    ("dstack", [(3,), (3,)], ()),
    ("dstack", [(2, 3), (2, 3)], ()),
    ("column_stack", [(3,), (3, 2)], ()),
]


@pytest.mark.parametrize("name, shapes, args", MANY, ids=repr)
def test_functions_of_several_arrays(name, shapes, args):
    for dtype in DTYPES:
        arrays = [drawn(s, dtype, i) for i, s in enumerate(shapes)]
        check(getattr(np, name)([*map(np.array, arrays)], *args), getattr(onp, name)(arrays, *args), dtype)
    mixed = [drawn(s, t, i) for i, (s, t) in enumerate(zip(shapes, ("int32", "float16", "int64"), strict=False))]
    want = getattr(onp, name)([x.astype("float16") for x in mixed], *args)
    check(getattr(np, name)([*map(np.array, mixed)], *args), want, "float16" if len(mixed) > 1 else "int32")


def test_row_stack_append_and_broadcast_arrays():
    x, y = np.array([1, 2, 3]), np.array([[4], [5]])
    check(np.row_stack([x, x]), [[1, 2, 3]] * 2, "float32")
    check(np.append(x, y), [1, 2, 3, 4, 5], "float32")
    check(np.append(y, y, axis=1), [[4, 4], [5, 5]], "float32")
    check(np.append(x, [4, 5]), [1, 2, 3, 4, 5], "float32")
    a, b = np.broadcast_arrays(x, y)
    check(a, [[1, 2, 3]] * 2, "float32")
    check(b, [[4] * 3, [5] * 3], "float32")
    check(np.atleast_2d(1), [[1]], "float32")
    one, two = np.atleast_1d(np.array(1), x)
    check(one, [1], "float32")
    check(two, [1, 2, 3], "float32")


def test_facts():
    x = np.zeros((2, 3))
    assert np.shape(x) == (2, 3) and np.ndim(x) == 2 and np.size(x) == 6 and np.size(x, 1) == 3
    assert np.shape([[1, 2]]) == (1, 2) and np.size(5) == 1
    assert np.shares_memory(x, x[1]) and np.may_share_memory(x, x) and not np.shares_memory(x, x.copy())
    assert not np.shares_memory(x[0], x[1])


def test_parts_and_shapes_are_copies():
    for make in (
        lambda x: x.reshape(-1),
        lambda x: np.split(x, 2)[0],
        lambda x: x.T,
        lambda x: np.squeeze(x),
        lambda x: np.expand_dims(x, 0),
        lambda x: np.ravel(x),
        lambda x: np.broadcast_to(x, (2, 2)),
    ):
        x = np.zeros((2, 2))
        make(x)[:] = 1
        check(x, onp.zeros((2, 2)), "float32")
    x = np.zeros((2, 2))
    x.reshape_view(-1)[0] = 1
    assert x[0, 0].item() == 1


@pytest.mark.parametrize(
    "shape, codes, reverse, want",
    [
        ((2, 3, 4), (-2, -2, 2, 2), False, (2, 3, 2, 2)),
        ((2, 3, 4), (-4,), False, (2, 3, 4)),
        ((2, 3, 4), (-5, -2), False, (6, 4)),
        ((8, 3, 4), (-6, 2, -1, -4), False, (2, 4, 3, 4)),
        ((1, 3, 4), (-3, -1), False, (12,)),
        ((2, 3, 4), (-1, -2), True, (6, 4)),
        ((2, 3, 4), 24, False, (24,)),
        ((0, 3), (0, -4), False, (0, 3)),
    ],
)
def test_codes_of_npx_reshape(shape, codes, reverse, want):
    a = drawn(shape, "float32")
    check(npx.reshape(np.array(a), codes, reverse), a.reshape(want), "float32")


@pytest.mark.parametrize("dtype", DTYPES)
def test_where(dtype):
    c, x, y = drawn((2, 1), "bool"), drawn((3,), dtype), drawn((2, 3), dtype, 1)
    mine = [*map(np.array, (c, x, y))]
    check(np.where(*mine), onp.where(c, x, y), dtype)
    check(np.where(mine[0], mine[1], 1), onp.where(c, x, onp.array(1, dtype)), dtype)
    check(np.where(mine[0], 1, mine[1]), onp.where(c, onp.array(1, dtype), x), dtype)
    check(np.where(np.array(y), mine[1], 0), onp.where(y, x, onp.array(0, dtype)), dtype)
    check(np.where(mine[0], 1, 2), onp.where(c, 1, 2), "float32")
    check(np.where(True, mine[1], mine[2]), onp.where(True, x, y), dtype)
    check(np.where(mine[0], mine[1], np.array(1.0, dtype="float32")), onp.where(c, x, 1), np.float32 if dtype in (
        "bool int32 int64 uint8 float16 float32".split()) else dtype)  # fmt: skip


def test_picking():
    a, i = onp.arange(12.0).reshape(3, 4).astype("f"), onp.array([[0], [2], [1]])
    x = np.array(a)
    check(np.take_along_axis(x, np.array(i), 1), onp.take_along_axis(a, i, 1), "float32")
    check(np.take_along_axis(x, np.array(i[:1]), 0), onp.take_along_axis(a, i[:1], 0), "float32")
    check(np.take_along_axis(x, np.array([1, 5]).astype("int64"), None), [1, 5], "float32")
    check(np.take(x, np.array([0, 2])), [0, 2], "float32")
    for mode in ("wrap", "clip"):
        check(np.take(x, [5, -9], 1, mode), onp.take(a, [5, -9], 1, mode=mode), "float32")
    for condition, axis in (([True, False, True], 0), ([0, 1, 1], None), ([True], 1)):
        check(np.compress(condition, x, axis), onp.compress(condition, a, axis), "float32")
    check(np.extract(onp.array(a > 8), x), onp.extract(a > 8, a), "float32")
    n = onp.array([0, 1, 1, 0])
    check(np.choose(np.array(n), [x[0], x[1]]), onp.choose(n, [a[0], a[1]]), "float32")
    check(
        np.choose(np.array(n + 1), [x[0], x[1]], mode="wrap"), onp.choose(n + 1, [a[0], a[1]], mode="wrap"), "float32"
    )
    check(
        np.choose(np.array(n + 1), [x[0], x[1]], mode="clip"), onp.choose(n + 1, [a[0], a[1]], mode="clip"), "float32"
    )
    conditions = [a < 3, a > 8]
    want = onp.select(conditions, [a, a * 10], -1)
    check(np.select([*map(np.array, conditions)], [x, np.array(a * 10)], -1), want, "float32")
    check(x[np.ix_([0, 2], onp.array([True, False, True, False]))], a[onp.ix_([0, 2], [0, 2])], "float32")
    assert np.unravel_index(5, (2, 3)) == (1, 2)
    for got, want in zip(np.unravel_index(np.array([5, 0]), (2, 3)), ([1, 0], [2, 0]), strict=True):
        check(got, want, "int64")


@settings(deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_axes_go_where_numpys_go(shape, rnd):
    mx.util.set_np()
    a = drawn(tuple(shape), "float32")
    x, n = np.array(a), len(shape)
    source, target = rnd.sample(range(n), k := rnd.randrange(n + 1)), rnd.sample(range(n), k)
    check(np.moveaxis(x, source, target), onp.moveaxis(a, source, target), "float32")
    order = rnd.sample(range(n), n)
    check(np.transpose(x, order), a.transpose(order), "float32")
    shift = [rnd.randrange(-4, 5) for _ in source]
    if source:
        check(np.roll(x, shift, source), onp.roll(a, shift, source), "float32")


def of(name, *args, **kw):
    return lambda *x: getattr(np, name)(*[v.as_np_ndarray() for v in x], *args, **kw)


_X = onp.random.RandomState(0).rand(3, 4)
#: Functions whose gradients go through several operators, or that index by what they are told.
GRADIENTS = {
    "repeat": (of("repeat", [1, 0, 2], 0), [_X]),
    "insert a row": (lambda a, b: np.insert(a.as_np_ndarray(), 1, b.as_np_ndarray(), 0), [_X, _X[0]]),
    "insert places": (lambda a, b: np.insert(a.as_np_ndarray(), [0, 2], b.as_np_ndarray(), 1), [_X, _X[:, :2]]),
    "insert flat": (lambda a: np.insert(a.as_np_ndarray(), 3, 2.0), [_X]),
    "delete": (of("delete", [0, 2], 1), [_X]),
    "pad both sides": (of("pad", 1, constant_values=(2, 3)), [_X]),
    "pad maximum": (of("pad", 2, "maximum"), [_X]),
    "take": (of("take", [[0, -1]], 1), [_X]),
    "take_along_axis": (lambda a: np.take_along_axis(a.as_np_ndarray(), np.array([[0], [2], [2]]), 1), [_X]),
    "choose": (lambda a, b: np.choose(np.array([0, 1, 1, 0]), [a.as_np_ndarray(), b.as_np_ndarray()]), [_X, _X + 1]),
    "where": (lambda a, b: np.where(np.array(_X > 0.5), a.as_np_ndarray(), b.as_np_ndarray()), [_X, _X[0]]),
    "resize": (of("resize", (5, 5)), [_X]),
    "split": (lambda a: sum(p * i for i, p in enumerate(np.split(a.as_np_ndarray(), [1, 3], 1)[::2])), [_X[:, :4]]),
    "stack": (lambda a, b: np.column_stack([a.as_np_ndarray(), b.as_np_ndarray()]), [_X, _X[:, 0]]),
    "tril of a vector": (of("tril"), [_X[0]]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    fn, inputs = GRADIENTS[name]
    check_grads(fn, inputs, order=(1, 2) if "insert" not in name else 1)


#: (function over a face, operator in the graph)
GRAPHS = [
    (lambda F, x: F.reshape(x, (2, -1)), "_np_reshape"),
    (lambda F, x: F.ravel(x), None),
    (lambda F, x: F.transpose(x), "_np_transpose"),
    (lambda F, x: F.moveaxis(x, 0, 1), "_np_moveaxis"),
    (lambda F, x: F.squeeze(F.expand_dims(x, (0, 2))), "_np_squeeze"),
    (lambda F, x: F.broadcast_to(x, (2, 3, 4)), "_npi_broadcast_to"),
    (lambda F, x: F.flip(F.roll(x, 1), 0), "_npi_flip"),
    (lambda F, x: F.rot90(x), "_npi_rot90"),
    (lambda F, x: F.concatenate([x, x], None), "_npi_concatenate"),
    (lambda F, x: F.hstack([x, x]), "_npi_hstack"),
    (lambda F, x: F.split(x, 2, axis=1)[1], "_split_v2"),
    (lambda F, x: F.pad(x, ((1, 1), (0, 2)), "edge"), "_npi_pad"),
    (lambda F, x: F.delete(x, slice(0, 2), 1), "_npi_delete"),
    (lambda F, x: F.insert(x, 1, 9, 1), "_npi_insert_scalar"),
    (lambda F, x: F.where(x, x, 2), "_npi_where_rscalar"),
    (lambda F, x: F.tile(F.repeat(x, 2), 2), "tile"),
    (lambda F, x: F.tril(x, -1), "_npi_tril"),
    (lambda F, x: F.diag(x), "_np_diag"),
    (lambda F, x: F.trace(x), "_np_trace"),
    (lambda F, x: F.full_like(x, 3), "_npi_full_like"),
    (lambda F, x: F.atleast_3d(x), "_np_atleast_3d"),
]


@pytest.mark.parametrize("fn, op", GRAPHS, ids=range(len(GRAPHS)))
def test_graphs_give_the_same(fn, op):
    y = fn(symbols, _Symbol(mx.sym.var("x")._heads))
    assert op is None or f'"{op}"' in y.tojson()
    (out,) = y.bind(mx.cpu(), {"x": mx.nd.array(_X, dtype="float32")}).forward()
    want = fn(np.arrays if hasattr(np, "arrays") else mx.nd.np.arrays, np.array(_X, dtype="float32"))
    onp.testing.assert_array_equal(out.asnumpy(), want.asnumpy())


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda x: x.reshape(4), ValueError, "cannot be reshaped"),
        (lambda x: x.reshape(-1, -1), ValueError, "one may be -1"),
        (lambda x: x.reshape(), TypeError, "needs a shape"),
        (lambda x: x.reshape(6, order="F"), NotImplementedError, "order='F'"),
        (lambda x: x.reshape(6, size=1), TypeError, "'size'"),
        (lambda x: npx.reshape(x, (-3, -1)), ValueError, "drops a dimension of length 1"),
        (lambda x: npx.reshape(x, (-7,)), ValueError, "no length or code"),
        (lambda x: np.transpose(x, (0, 0)), ValueError, "no permutation"),
        (lambda x: np.transpose(x, ()), ValueError, "do not match"),
        (lambda x: np.moveaxis(x, (0, 1), 0), ValueError, "as many axes"),
        (lambda x: np.moveaxis(x, (0, 0), (0, 1)), ValueError, "one axis twice"),
        (lambda x: np.rollaxis(x, 3), ValueError, "out of range"),
        (lambda x: np.expand_dims(x, (0, 0)), ValueError, "one axis twice"),
        (lambda x: np.squeeze(x, 0), ValueError, "only axes of length 1"),
        (lambda x: np.broadcast_to(x, (2, 4)), ValueError, "cannot be broadcast"),
        (lambda x: np.broadcast_arrays(x, np.zeros(2)), ValueError, "cannot be broadcast"),
        (lambda x: np.roll(x, (1, 2, 3), (0, 1)), ValueError, "as many items"),
        (lambda x: np.rot90(x, 1, (0, 0)), ValueError, "must differ"),
        (lambda x: np.size(x, 5), IndexError, "out of range"),
        (lambda x: np.concatenate([]), ValueError, "one array or more"),
        (lambda x: np.concatenate([x, [1]]), TypeError, "item 1"),
        (lambda x: np.concatenate([x, np.zeros((2, 2))]), ValueError, "must be like the first"),
        (lambda x: np.concatenate([x, mx.nd.zeros((2, 3))]), TypeError, "as_np_ndarray"),
        (lambda x: np.stack([x, x], 5), ValueError, "out of range"),
        (lambda x: np.split(x, 2, 1), ValueError, "equal parts"),
        (lambda x: np.split(x, 0), ValueError, "above 0"),
        (lambda x: np.split(x, 2, 7), ValueError, "axis 7"),
        (lambda x: np.vsplit(x[0], 1), ValueError, "axis 1"),
        (lambda x: np.repeat(x, [1, 2, 3], 0), ValueError, "repeat"),
        (lambda x: np.tile(x, "a"), TypeError, "reps"),
        (lambda x: np.pad(x), TypeError, "pad_width"),
        (lambda x: np.pad(x, (1, 2, 3)), ValueError, "pair for each axis"),
        (lambda x: np.pad(x, -1), ValueError, "negative"),
        (lambda x: np.pad(x, 1, "mean"), NotImplementedError, "mode='mean'"),
        (lambda x: np.pad(x, 1, "other"), ValueError, "'other'"),
        (lambda x: np.pad(x, 1, "reflect", reflect_type="odd"), NotImplementedError, "odd"),
        (lambda x: np.pad(x, 1, "edge", constant_values=2), TypeError, "constant_values"),
        (lambda x: np.delete(x, 9), IndexError, "out of bounds"),
        (lambda x: np.delete(x, [9]), IndexError, "out of bounds"),
        (lambda x: np.insert(x, 9, 1), IndexError, "out of bounds"),
        (lambda x: np.insert(x, [0.5], 1), TypeError, "whole numbers"),
        (lambda x: np.insert(x, 1, np.zeros((1, 1, 1)), 0), ValueError, "more dimensions"),
        (lambda x: np.take(x, [9]), IndexError, "out of bounds"),
        (lambda x: np.take(x, [0], 5), ValueError, "axis 5"),
        (lambda x: np.take(x, [0], mode="other"), ValueError, "mode"),
        (lambda x: np.take(x, ["a"]), TypeError, "whole numbers"),
        (lambda x: np.take_along_axis(x, np.zeros(2), 0), ValueError, "do not fit"),
        (lambda x: np.where(x, x), ValueError, "both x and y"),
        (lambda x: np.where(x, x, "a"), TypeError, "y must be"),
        (lambda x: np.where(x, x, onp.zeros(3)), TypeError, "np.array makes one"),
        (lambda x: np.choose(np.array([5]), [x]), ValueError, "1 choices"),
        (lambda x: np.compress(x, x), ValueError, "a vector"),
        (lambda x: np.select([x], []), ValueError, "one choice for each"),
        (lambda x: np.ix_(x), ValueError, "must be a vector"),
        (lambda x: np.unravel_index(9, (2, 3)), ValueError, "out of bounds"),
        (lambda x: np.unravel_index(1, (2, 3), "F"), NotImplementedError, "order='F'"),
        (lambda x: np.shares_memory(x, 1), TypeError, "int"),
        (lambda x: np.trim_zeros(x), ValueError, "a vector"),
    ],
    ids=range(58),
)
def test_bad_input_says_what_is_wrong(call, kind, text):
    with pytest.raises(kind, match=text) as e:
        call(np.zeros((2, 3)))
    assert isinstance(e.value, MXNetError)
