"""Every name in the table of borrowed names can be had, and C's helpers do what they say."""
import array
import ctypes
import importlib

import numpy as np
import pytest

import mxcore as mx
from mxcore import _ctext
from mxcore._borrowed import BORROWED, sources


@pytest.mark.parametrize("module, name", [(m, n) for m in BORROWED for n in sources(m) if (m, n) != ("gluon.block", "np_array")])
def test_borrowed_names_are_there(module, name):
    assert getattr(importlib.import_module("mxcore." + module), name) is not None


def test_others_are_not():
    with pytest.raises(AttributeError, match="module 'mxcore.operator' has no attribute 'nothing'"):
        mx.operator.nothing  # noqa: B018


def test_helpers_of_c():
    assert _ctext.c_str("ä").value == "ä".encode() and list(_ctext.c_str_array(["a", "b"])) == [b"a", b"b"]
    assert list(_ctext.c_array(ctypes.c_int, [1, 2])) == [1, 2]
    numbers = array.array("i", [1, 2])
    shared = _ctext.c_array_buf(ctypes.c_int, numbers)
    shared[0] = 5
    assert numbers[0] == 5
    floats = (ctypes.c_float * 6)(*range(6))
    view = _ctext.ctypes2numpy_shared(ctypes.cast(floats, _ctext.mx_float_p), (2, 3))
    view[1, 2] = 9
    assert view.shape == (2, 3) and floats[5] == 9 and view.dtype == np.float32
    text = ctypes.create_string_buffer(b"abc")
    assert _ctext.ctypes2buffer(ctypes.cast(text, ctypes.POINTER(ctypes.c_char)), 2) == bytearray(b"ab")
    for wrong in (lambda: _ctext.ctypes2numpy_shared(3, (1,)), lambda: _ctext.ctypes2buffer(3, 1)):
        with pytest.raises(TypeError, match="pointer"):
            wrong()
    assert _ctext.check_call(0) is None
    with pytest.raises(mx.MXNetError, match="returned 3"):
        _ctext.check_call(3)


def test_bases_with_a_metaclass():
    class Meta(type):
        pass

    class Base:
        pass

    class Made(mx.base.with_metaclass(Meta, Base)):
        depth = mx.base.classproperty(lambda cls: cls.__name__)

    assert isinstance(Made, Meta) and issubclass(Made, Base) and Made.depth == "Made"
