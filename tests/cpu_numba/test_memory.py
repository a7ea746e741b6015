"""Large arrays get the memory of those that are gone, and only theirs."""

import os
import subprocess
import sys

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


def test_sizes_that_differ_a_little_use_the_same_memory():
    """The reserve of a program whose arrays always have another shape is bounded by what is in use at once."""
    r = np.random.RandomState(0)
    for n in r.randint(1 << 20, 1 << 23, 600):
        a = memory.empty((n,), np.uint8)
        a[-1] = 1
        del a
    # Each of eight sizes an octave once.
    assert memory.held() <= sum((8 + i) << 17 << octave for octave in range(3) for i in range(1, 9))


def test_what_nobody_asks_for_any_more_goes_back():
    del_ = [memory.empty((n << 20,), np.uint8) for n in (1, 3, 5)]
    del del_
    assert memory.held() == 9 << 20
    for _ in range(memory.PATIENCE + 3):
        memory.empty((2 << 20,), np.uint8)
    assert memory.held() == 2 << 20


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


@pytest.mark.parametrize("done", ["cleared", "made"])
def test_a_handler_in_the_midst_of_an_allocation(done, handled_anywhere):
    """It gives the reserve back, or makes arrays and drops them: whoever it came amid finds what there is then."""
    sizes = [n << 20 for n in (1, 2, 3, 1, 2)]

    def handler():
        if done == "cleared":
            memory.clear()
        else:
            del_ = [memory.empty((n << 20,), np.uint8) for n in (60, 100, 120)]  # which leave no room for others
            del del_

    def allocate():
        several = [memory.empty((n,), np.uint8) for n in sizes]
        for i, a in enumerate(several):
            a[:] = i
        assert [int(a[-1]) for a in several] == [0, 1, 2, 3, 4]

    allocate()
    assert handled_anywhere(("mxcore_cpu/memory.py",), allocate, handler) > 20
    assert memory.held() <= memory.LIMIT


def test_operators_keep_their_values():
    x = mx.nd.ones((1024, 1024))
    kept = x + 1
    for i in range(5):
        y = x * i
        assert (y.asnumpy() == i).all()
    assert (kept.asnumpy() == 2).all() and (x.asnumpy() == 1).all()


def test_an_exception_amid_a_drop_breaks_nothing():
    """A signal's handler may raise in `__del__`, anywhere between two instructions."""

    class Interrupted(dict):
        def __setitem__(self, n, item):
            super().__setitem__(n, item)
            raise KeyboardInterrupt

    reserve = memory._Reserve()
    reserve.free = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        reserve.put(np.empty(1 << 20, np.uint8))
    reserve.free = dict(reserve.free)
    assert reserve.bytes == 1 << 20
    assert reserve.take(1 << 20).size == 1 << 20 and reserve.bytes == 0
    reserve.put(np.empty(1 << 21, np.uint8))
    assert reserve.bytes == 1 << 21


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


PROGRAM = """
import os
import subprocess
import sys
import numpy as np, mxcore as mx

def rss():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

mx.cpu().empty_cache()
arrays = [np.ones(12_000) for _ in range(1500)]  # 140 MB in pieces of the C library's heap
pin = arrays[-1]
del arrays
before = rss()
mx.cpu().empty_cache()
print(before - rss())
"""


@pytest.mark.skipif(
    memory._trim() is None or not os.path.exists("/proc/self/statm"), reason="a C library that gives memory back"
)
def test_freed_pieces_between_blocks_in_use_go_back_to_the_system():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=100)
    assert int(done.stdout) > 100, done.stderr
