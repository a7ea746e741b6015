"""What shapes and arrays mean: switches, scopes and decorators, per thread."""

import threading

import pytest

import mxcore as mx
from mxcore import npx


def _both():
    return npx.is_np_shape(), npx.is_np_array()


def test_set_and_reset():
    assert _both() == (False, False)
    npx.set_np()
    assert _both() == (True, True)
    npx.reset_np()
    assert _both() == (False, False)
    npx.set_np(shape=True, array=False)
    assert _both() == (True, False)


def test_arrays_need_shapes():
    with pytest.raises(ValueError, match="shape=True"):
        npx.set_np(shape=False)
    npx.set_np()
    with pytest.raises(ValueError, match="reset_np"):
        mx.util.set_np_shape(False)
    assert _both() == (True, True)


def test_other_threads_are_not_touched():
    seen = []
    npx.set_np()
    thread = threading.Thread(target=lambda: seen.append(_both()))
    thread.start()
    thread.join()
    assert seen == [(False, False)]


def test_scopes_nest_and_end_where_something_fails():
    with mx.util.np_shape(), mx.util.np_array():
        assert _both() == (True, True)
        with mx.util.np_array(False), mx.util.np_shape(False):
            assert _both() == (False, False)
        assert _both() == (True, True)
    with pytest.raises(KeyError), mx.util.np_shape():
        raise KeyError
    assert _both() == (False, False)


def test_decorators_of_functions_and_classes():
    assert npx.use_np(_both)() == (True, True)
    assert npx.use_np_shape(_both)() == (True, False)
    assert mx.util.use_np_array(npx.use_np_shape(_both))() == (True, True)

    @npx.use_np
    class Both:
        def __init__(self):
            self.made = _both()

        def now(self):
            return _both()

    assert Both().made == Both().now() == (True, True)
    assert _both() == (False, False)
    with pytest.raises(TypeError, match="functions and classes"):
        npx.use_np(3)
