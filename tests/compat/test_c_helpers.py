"""C's helpers do what they say."""

import array
import ctypes

import numpy as np
import pytest

import mxcore as mx
from mxcore.compat import c_helpers


def test_helpers_of_c():
    assert c_helpers.c_str("ä").value == "ä".encode() and list(c_helpers.c_str_array(["a", "b"])) == [b"a", b"b"]
    assert list(c_helpers.c_array(ctypes.c_int, [1, 2])) == [1, 2]
    numbers = array.array("i", [1, 2])
    shared = c_helpers.c_array_buf(ctypes.c_int, numbers)
    shared[0] = 5
    assert numbers[0] == 5
    floats = (ctypes.c_float * 6)(*range(6))
    view = c_helpers.ctypes2numpy_shared(ctypes.cast(floats, c_helpers.mx_float_p), (2, 3))
    view[1, 2] = 9
    assert view.shape == (2, 3) and floats[5] == 9 and view.dtype == np.float32
    text = ctypes.create_string_buffer(b"abc")
    assert c_helpers.ctypes2buffer(ctypes.cast(text, ctypes.POINTER(ctypes.c_char)), 2) == bytearray(b"ab")
    for wrong in (lambda: c_helpers.ctypes2numpy_shared(3, (1,)), lambda: c_helpers.ctypes2buffer(3, 1)):
        with pytest.raises(TypeError, match="pointer"):
            wrong()
    assert c_helpers.check_call(0) is None
    with pytest.raises(mx.MXNetError, match="returned 3"):
        c_helpers.check_call(3)


def test_bases_with_a_metaclass():
    class Meta(type):
        pass

    class Base:
        pass

    class Made(mx.base.with_metaclass(Meta, Base)):
        depth = mx.base.classproperty(lambda cls: cls.__name__)

    assert isinstance(Made, Meta) and issubclass(Made, Base) and Made.depth == "Made"
