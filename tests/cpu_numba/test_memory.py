"""Large arrays get the memory of those that are gone, and only theirs."""
import os

import numpy as np
import pytest

import mxcore as mx
from mxcore_cpu import memory


@pytest.fixture(autouse=True)
def clean():
    memory.clear()
    yield
    memory.clear()


def address(a):
    return a.__array_interface__["data"][0]


def test_what_is_dropped_is_used_again():
    a = memory.empty((1 << 19,), "float32")
    where = address(a)
    part = a[100:].reshape(-1, 4)
    del a
    b = memory.empty((1 << 19,), np.float32)
    assert address(b) != where, "a view still uses it"
    assert memory.held() == 0
    del part
    assert memory.held() == 1 << 21
    c = memory.empty((1 << 18,), np.int64)  # of the same size
    assert address(c) == where and c.dtype == np.int64 and c.flags.carray and memory.held() == 0


def test_small_and_odd_arrays_are_plain():
    for shape, dtype in (((10,), "f4"), ((0, 3), "f4"), ((1 << 18,), "U1")):
        a = memory.empty(shape, dtype)
        assert a.shape == shape and a.dtype == np.dtype(dtype) and a.base is None


def test_the_reserve_is_limited(monkeypatch):
    monkeypatch.setattr(memory, "LIMIT", 5 << 20)
    arrays = [memory.empty((n << 20,), np.uint8) for n in (1, 2, 2, 1)]
    while arrays:
        del arrays[0]
        assert memory.held() <= 5 << 20
    assert memory.held() == 5 << 20, "the first one left"
    mx.cpu().empty_cache()
    assert memory.held() == 0


def test_operators_keep_their_values():
    x = mx.nd.ones((1024, 1024))
    kept = x + 1
    for i in range(5):
        y = x * i
        assert (y.asnumpy() == i).all()
    assert (kept.asnumpy() == 2).all() and (x.asnumpy() == 1).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_child_allocates():
    with memory._reserve.lock:
        pid = os.fork()
        if not pid:
            a = memory.empty((1 << 21,), np.uint8)
            del a
            os._exit(memory.held() != 1 << 21)
    assert os.waitpid(pid, 0)[1] == 0
