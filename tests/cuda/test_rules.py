"""The rules of CuPy that the emulation enforces: they are CuPy's, and they are enforced."""

import importlib.util

import numpy as np
import pytest

from mxcore_cuda.emulation.namespace import Namespace
from mxcore_cuda.emulation.rules import from_cupy, rules

xp = Namespace()


@pytest.fixture
def a(gpus):
    return xp.arange(6, dtype="float32").reshape(2, 3)


@pytest.mark.libraries
@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed")
def test_the_table_is_what_cupy_says():
    found, kept = from_cupy(), dict(rules())
    if found["cupy"] != kept["cupy"]:
        pytest.skip(f"the table is of CuPy {kept['cupy']}, {found['cupy']} is installed")
    assert found == kept


def test_functions_take_what_cupys_take(a):
    with pytest.raises(TypeError, match="unexpected keyword"):
        xp.amax(a, where=True)
    with pytest.raises(TypeError):
        a.copy(order="C", subok=True)
    with pytest.raises(TypeError, match="wrong keyword 'where'"):
        xp.add(a, a, where=True)
    with pytest.raises(AttributeError, match="not in the emulation's table"):
        xp.einsum("ij->ji", a)


def test_dtypes_without_a_loop_are_refused(a):
    with pytest.raises(TypeError, match=r"cupy.bitwise_and: no loop for float32, float32"):
        xp.bitwise_and(a, a)
    with pytest.raises(TypeError, match=r"cupy.add.at does not support int8"):
        xp.add.at(xp.zeros(3, dtype="int8"), xp.zeros(1, dtype="int64"), 1)


def test_arrays_of_numpy_and_of_other_devices_are_refused(a, gpus):
    with pytest.raises(TypeError, match="Unsupported type"):
        xp.add(a, np.ones(3, "float32"))
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(a)
    gpus[0].device.activate(1)
    with pytest.raises(ValueError, match="array device = 0 while current = 1"):
        a + a


def test_indices_wrap_around(a):
    assert a[xp.array([2, -3])].get().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert xp.take(a, xp.array([4]), axis=1).get().tolist() == [[1], [4]]


def test_casts_saturate(gpus):
    x = xp.array([np.nan, np.inf, -np.inf, 3e9, -1.5], dtype="float32")
    assert x.astype("int32").get().tolist() == [0, 2**31 - 1, -(2**31), 2**31 - 1, -1]


def test_linear_algebra_raises_nothing(gpus):
    singular = xp.zeros((2, 2), dtype="float64")
    assert np.isnan(xp.linalg.inv(singular).get()).all()


def test_views_look_into_their_base(a):
    row = a[1]
    assert row.base is not None and row.ptr == a.ptr + 12
    row[:] = 9
    assert a.get().tolist() == [[0, 1, 2], [9, 9, 9]]
