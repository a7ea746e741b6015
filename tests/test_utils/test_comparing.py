"""Comparisons: what passes, what fails, and the message."""

import numpy as np
import pytest

import mxcore as mx

t = mx.test_utils


def fails(f, *args, **kwargs):
    """The text of the failure that a check must report."""
    with pytest.raises(AssertionError) as e:
        f(*args, **kwargs)
    return str(e.value)


def test_message_has_the_largest_error_its_place_and_both_values():
    a = np.zeros((2, 3))
    b = a.copy()
    b[1, 2], b[0, 1] = 0.5, 0.1
    text = fails(t.assert_almost_equal, a, b, rtol=0, atol=0.01, names=("mine", "theirs"))
    assert "Location of maximum error: (1, 2), mine=0.00000000, theirs=0.50000000" in text
    assert "Error 50.000000 exceeds tolerance rtol=0.000000e+00, atol=1.000000e-02 (mismatch 33.333333%)" in text


def test_largest_errors_are_printed(capsys):
    fails(t.assert_almost_equal, np.zeros(5), np.arange(5.0), rtol=0, atol=0.5, mismatches=(3, 2))
    lines = [line for line in capsys.readouterr().out.splitlines() if "Location" in line]
    assert [line.split("b=")[1] for line in lines] == ["4.00000000", "3.00000000"]


def test_arrays_of_all_kinds():
    dense = mx.nd.array([[0, 1], [2, 0]])
    for x in (dense, dense.tostype("csr"), dense.tostype("row_sparse"), dense.asnumpy(), [[0, 1], [2, 0]]):
        t.assert_almost_equal(x, dense)
        fails(t.assert_almost_equal, x, dense + 1)
    with pytest.raises(TypeError, match="no array of numbers"):
        t.assert_almost_equal(None, dense)


def test_large_integers_are_compared_exactly():
    big = np.array([2**62])
    t.assert_almost_equal(big, big)
    fails(t.assert_almost_equal, big, big + 1)
    fails(t.assert_almost_equal, np.array([0], "uint8"), np.array([255], "uint8"))


def test_bfloat16():
    x = mx.nd.ones((3,)).astype("bfloat16")
    t.assert_almost_equal(x, np.ones(3))
    fails(t.assert_almost_equal, x, np.full(3, 1.5))


@pytest.mark.parametrize("f", [t.assert_almost_equal, t.almost_equal])
def test_shapes_that_do_not_fit(f):
    for kind in (AssertionError, ValueError):
        with pytest.raises(kind, match=r"\(3, 4\).*\(4, 3\)"):
            f(np.zeros((3, 4)), np.zeros((4, 3)))
    with pytest.raises(AssertionError, match="shape"):
        f(np.zeros((3, 4)), np.zeros((1, 4)), use_broadcast=False)


def test_almost_equal_says_it():
    one = np.ones(2)
    assert t.almost_equal(one, one + 1e-9) is True
    assert t.almost_equal(one, one + 1e-3) is False
    assert not t.almost_equal(np.array([np.nan]), np.array([np.nan]))
    assert t.almost_equal(np.array([np.nan]), np.array([np.nan]), equal_nan=True)
    assert t.almost_equal(mx.nd.ones((2,)), one)


def test_a_share_of_errors_is_allowed():
    a, b = np.zeros(10), np.array([0.0] * 8 + [1.0] * 2)
    t.assert_almost_equal_with_err(a, b, etol=0.2)
    assert "mismatch 20" in fails(t.assert_almost_equal_with_err, a, b, etol=0.1)
    fails(t.assert_almost_equal_with_err, a, b)


def test_nan_is_ignored_where_asked():
    a, b = np.array([np.nan, 1.0]), np.array([5.0, 1.0])
    t.assert_almost_equal_ignore_nan(a, b)
    assert np.isnan(a[0]) and b[0] == 5
    fails(t.assert_almost_equal_ignore_nan, a, b + 1)


def test_assert_allclose_has_numpys_defaults():
    t.assert_allclose([1.0, np.nan], [1.0, np.nan])
    fails(t.assert_allclose, [1.0], [1.0 + 1e-6])


def test_same():
    assert t.same(np.ones(2), mx.nd.ones((2,))) is True
    assert not t.same(np.ones(2), np.ones(3)) and not t.same(np.array([np.nan]), np.array([np.nan]))


def test_same_array_is_about_memory():
    x = mx.nd.array([1, np.nan, 3, 4])
    assert t.same_array(x, x) and t.same_array(x, x[0:4])
    assert not t.same_array(x, x.copy()) and not t.same_array(x, x[0:2])
    assert not t.same_array(mx.nd.ones((2,)), mx.nd.ones((2,))) and not t.same_array(
        mx.nd.zeros((2,)), mx.nd.zeros((2,))
    )
    np.testing.assert_array_equal(x.asnumpy(), [1, np.nan, 3, 4])


def test_tuples():
    one, zero = mx.nd.ones((2,)), mx.nd.zeros((2,))
    t.compare_ndarray_tuple((one, None, (one, zero)), (one, None, (one, zero)))
    fails(t.compare_ndarray_tuple, (one, None, (one, zero)), (one, None, (one, one)))
    assert "2 items" in fails(t.compare_ndarray_tuple, (one,), (one, one))
    t.compare_ndarray_tuple(None, (one,))


def test_assert_exception():
    t.assert_exception(int, ValueError, "x")
    assert "int raised nothing" in fails(t.assert_exception, int, ValueError, "1")
    with pytest.raises(ValueError):
        t.assert_exception(int, KeyError, "x")


def test_check_shapes():
    t.checkShapes(np.ones((2, 1)), np.zeros((2, 1)))
    assert "(2,)" in fails(t.checkShapes, np.ones(2), np.ones((1, 2)))
