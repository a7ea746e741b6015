"""Indexing of mx.np: all of NumPy's, read and written, recorded and not; MXNet's views; what is refused."""

import random

import numpy as onp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore import autograd, np
from mxcore.base import MXNetError

from .numbers import DTYPES, check, drawn

SHAPES = [(3, 4), (5,), (2, 3, 4), (0, 3), (), (2, 0, 2), (3, 1, 2)]


def item(rnd, shape, axis):
    """One item of an index, and how many axes it takes."""
    n, kind = shape[axis] if axis < len(shape) else 0, rnd.randrange(9)
    rs = onp.random.RandomState(rnd.randrange(1 << 30))
    if kind == 0 and n:
        return rnd.randrange(-n, n), 1
    if kind <= 2 and axis < len(shape):
        bounds = [None, None, *range(-n - 1, n + 2)]
        return slice(rnd.choice(bounds), rnd.choice(bounds), rnd.choice([None, None, 1, 2, -1, -2])), 1
    if kind == 4 and axis < len(shape):
        size = rnd.choice([(2,), (1,), (3, 1), ()])
        return (rs.randint(-n, n, size) if n else onp.zeros(0, int)), 1
    if kind == 5 and axis < len(shape):
        return rs.rand(n) > 0.5, 1
    if kind == 6 and axis + 1 < len(shape):
        return rs.rand(n, shape[axis + 1]) > 0.5, 2
    if kind == 7:
        return Ellipsis, 0
    if kind == 8:
        return rnd.choice([True, False, onp.array(True)]), 0
    return None, 0


def drawn_key(rnd, shape):
    items, axis = [], 0
    for _ in range(rnd.randrange(5)):
        one, takes = item(rnd, shape, axis)
        if one is Ellipsis and any(i is Ellipsis for i in items):
            continue
        items.append(one)
        axis += takes
    return tuple(items) if len(items) != 1 or rnd.random() < 0.5 else items[0]


def ours(rnd, key):
    """The same index with arrays of mx.np, or lists, in the place of some of NumPy's."""

    def one(k):
        if isinstance(k, onp.ndarray):
            return rnd.choice([lambda: k, lambda: np.array(k), lambda: k.tolist() if k.ndim == 1 else k])()
        return k

    return tuple(map(one, key)) if isinstance(key, tuple) else one(key)


def outcome(call):
    try:
        return call(), None
    except Exception as e:
        return None, e


@pytest.mark.usefixtures("numpy_mode")
@settings(max_examples=400, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(SHAPES))
def test_every_index_reads_and_writes_as_numpys(rnd, shape):
    mx.util.set_np()
    a = onp.arange(int(onp.prod(shape))).reshape(shape).astype("f")
    key = drawn_key(rnd, shape)
    want, failed = outcome(lambda: a[key])
    if failed is not None:
        with pytest.raises((MXNetError, IndexError)):
            np.array(a)[ours(rnd, key)]
        return
    mine = ours(rnd, key)
    if (
        shape
        and 0 in shape
        and any(getattr(k, "dtype", None) == onp.dtype(bool) for k in (mine if type(mine) is tuple else ()))
    ):
        return  # NumPy takes masks without elements for any dimension
    check(np.array(a)[mine], want, "float32")
    lengths = [d if rnd.random() < 0.7 else 1 for d in onp.shape(want)]
    value = onp.random.RandomState(0).uniform(size=lengths).astype("f")
    b, y = a.copy(), np.array(a)
    b[key], y[mine] = value, rnd.choice([value, np.array(value)])
    check(y, b, "float32")
    b[key], y[mine] = 7, 7
    check(y, b, "float32")
    if not a.size:
        return
    x = np.array(a)
    x.attach_grad()
    with autograd.record():
        y = x[mine] * 2
    y.backward()
    grad = onp.zeros_like(a)
    onp.add.at(grad, key, 2)
    check(x.grad, grad, "float32")


@pytest.mark.usefixtures("numpy_mode")
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_stay(dtype):
    a = drawn((3, 4), dtype)
    x = np.array(a)
    for key in (1, slice(1), (slice(None), 1), (0, 1), [0, 2], a > 1, None, ..., ()):
        check(x[key], a[key], dtype)
        x[key] = 1
        a[key] = 1
        check(x, a, dtype)


def aliases(key):
    x = np.array(onp.zeros((3, 4), "f"))
    x[key][...] = 1
    return bool(x.asnumpy().any())


@pytest.mark.usefixtures("numpy_mode")
def test_one_run_of_memory_is_a_view():
    for key in (1, -1, slice(1), slice(None), None, ..., (), (1, 2), (1, slice(1, 3)), (slice(1, 2), slice(1, 3))):
        assert aliases(key), key
    for key in (slice(None, None, 2), (slice(None), 1), [0, 1], True, onp.ones((3, 4), bool), (0, [1])):
        assert not aliases(key), key


def test_an_element_has_a_shape_outside_of_numpys_meaning():
    x = np.array([[1, 2], [3, 4]])
    assert x[0, 1].shape == x[0][1].shape == (1,)
    with mx.util.np_shape():
        assert x[0, 1].shape == x[0][1].shape == ()
    x[0, 1] = 5
    assert x[0][1].item() == 5


@pytest.mark.usefixtures("numpy_mode")
def test_recorded_writes_carry_gradients():
    for key in (
        1,
        (slice(None), 1),
        [0, 2],
        onp.arange(12).reshape(3, 4) > 5,
        (Ellipsis, [0, 1]),
        (True, 1),
        (0, True, [2, 3]),
    ):
        n = onp.zeros((3, 4))[key].shape
        v = np.array(onp.random.RandomState(0).rand(*n[-1:]).astype("f"))
        v.attach_grad()
        x = np.zeros((3, 4))
        with autograd.record():
            x[key] = v * 3
            y = (x * x).sum()
        y.backward()
        check(v.grad, 18 * v.asnumpy() * (onp.prod(n) / v.size), "float32")


@pytest.mark.usefixtures("numpy_mode")
def test_of_equal_places_the_last_written_value_gets_the_gradient():
    x, v = np.zeros((2, 2)), np.array([[5.0, 1.0], [7.0, 2.0], [9.0, 3.0]])
    v.attach_grad()
    with autograd.record():
        x[[0, 1, 0]] = v * 1
        y = (x * np.array([[3.0, 4.0], [6.0, 8.0]])).sum()
    y.backward()
    assert x.tolist() == [[9, 3], [7, 2]] and v.grad.tolist() == [[0, 0], [6, 8], [3, 4]]


@pytest.mark.usefixtures("numpy_mode")
def test_indices_may_be_floats_that_are_whole():
    x = np.arange(5)
    check(x[np.array([0, 4])], onp.array([0, 4]), "float32")
    check(x[onp.array([1.0])], onp.array([1]), "float32")


@pytest.mark.usefixtures("numpy_mode")
@pytest.mark.parametrize(
    "key, kind, text",
    [
        (5, IndexError, "out of bounds for axis 0 with size 3"),
        ((0, 9), IndexError, "out of bounds for axis 1 with size 4"),
        ((0, 0, 0), IndexError, "too many indices: 3"),
        ((..., ...), IndexError, "one Ellipsis"),
        ("a", IndexError, "got 'a'"),
        (1.5, IndexError, "got 1.5"),
        ([0.5], IndexError, "arrays of ints or truth values"),
        ([[5]], IndexError, "out of bounds"),
        (onp.ones(2, bool), IndexError, r"mask of shape \(2,\)"),
        (onp.ones((3, 3), bool), IndexError, r"mask of shape \(3, 3\)"),
        (slice(None, None, 0), ValueError, "step cannot be zero"),
        (slice(0.5), TypeError, "whole numbers"),
    ],
)
def test_bad_indices_say_what_is_wrong(key, kind, text):
    x = np.zeros((3, 4))
    for use in (lambda: x[key], lambda: x.__setitem__(key, 1)):
        with pytest.raises(kind, match=text) as e:
            use()
        assert isinstance(e.value, MXNetError)


@pytest.mark.usefixtures("numpy_mode")
def test_bad_values_say_what_is_wrong():
    x = np.zeros((3, 4))
    with pytest.raises(TypeError, match="as_np_ndarray"):
        x[0] = mx.nd.ones(4)
    with pytest.raises(ValueError, match=r"\(3,\)"):
        x[0] = np.ones(3)
    with pytest.raises(ValueError, match="shape"):
        x[[0, 1]] = np.ones(3)
    with pytest.raises((ValueError, TypeError), match="str"):
        x[0] = "a"
    x.attach_grad()
    with autograd.record(), pytest.raises(RuntimeError, match="not supported"):
        x[0] = 1


def test_rows_are_found_quickly(rows=random.Random(0).sample(range(100), 20)):
    x = np.array(onp.arange(300).reshape(100, 3))
    for i in rows:
        check(x[i], onp.arange(3 * i, 3 * i + 3), "int64")
        assert x[i]._st is x._st
