"""Arrays over one buffer of somebody else's wait for what is pending in it, whichever of them it is of."""

import gc
import threading
import time
import types

import numpy as np
import pytest

import mxcore as mx
from mxcore._core.manager import manager
from mxcore.ndarray import windows
from mxcore.plugin import API_VERSION, hookimpl, op


@op("test_windows_slow", inputs="x")
def takes_its_time(k, p, x):
    time.sleep(0.03)
    return k.xp.asarray(x).copy()


@pytest.fixture
def slow():
    """An operator that takes its time."""
    plugin = types.SimpleNamespace(
        API_VERSION=API_VERSION, mxcore_ops=hookimpl(lambda: [takes_its_time], specname="mxcore_ops")
    )
    manager.load()
    manager.register(plugin, "slow")
    yield mx.nd.test_windows_slow
    manager.unregister("slow")


def numpys():
    buffer = np.zeros((4, 3), np.float32)
    one = mx.nd.from_numpy(buffer)
    buffer.flags.writeable = True
    return one, mx.nd.from_numpy(buffer[1:3])


def dlpacks():
    one = mx.nd.zeros((4, 3))
    return one, mx.nd.from_dlpack(one.to_dlpack_for_write())[1:3]


def parts_of_one():
    whole = mx.nd.zeros((8, 3))
    return mx.nd.from_dlpack(whole[4:].to_dlpack_for_write()), whole[5:7]


def another_librarys():
    buffer = bytearray(48)
    one, two = (mx.nd.from_dlpack(np.frombuffer(buffer, np.float32).reshape(4, 3)) for _ in range(2))
    return one, two[1:3]


@pytest.fixture(params=[numpys, dlpacks, parts_of_one, another_librarys])
def pair(request):
    """An array of four rows, and another one of the two in their midst."""
    return request.param()


def test_who_reads_waits_for_who_writes(pair, threaded, slow):
    one, two = pair
    for n in range(3):
        slow(mx.nd.full((4, 3), n, ctx=one.context), out=one)
        assert two.asnumpy().tolist() == [[n] * 3] * 2
        slow(mx.nd.full((2, 3), -n, ctx=two.context), out=two)
        assert (one + 0).asnumpy()[:, 0].tolist() == [n, -n, -n, n]


def test_who_writes_waits_for_who_reads(pair, threaded, slow):
    one, two = pair
    one[:] = 5
    found = slow(one)
    two[:] = 7
    assert found.asnumpy().tolist() == [[5] * 3] * 4 and one.asnumpy()[:, 0].tolist() == [5, 7, 7, 5]


def test_who_writes_waits_for_who_writes(pair, threaded, slow):
    one, two = pair
    slow(mx.nd.full((4, 3), 1, ctx=one.context), out=one)
    two += 1
    assert one.asnumpy()[:, 0].tolist() == [1, 2, 2, 1]


def test_threads_add_to_one_buffer(pair, in_threads):
    one, two = pair

    def add(x):
        for _ in range(300):
            x += 1

    in_threads(add, [(one,), (two,)])
    assert one.asnumpy()[:, 0].tolist() == [300, 600, 600, 300]


def test_threads_take_the_locks_of_two_buffers_in_one_order(restless):
    pairs = [numpys(), numpys()]
    first, second = [pairs[0][0], pairs[1][1]], [pairs[1][0], pairs[0][1]]
    done = []

    def work(outs):
        grads = [mx.nd.ones(out.shape, ctx=out.context) for out in outs]
        rates = {"lrs": (1, 1), "wds": (0, 0), "num_weights": 2}
        for _ in range(200):
            mx.nd.multi_sgd_update(outs[0], grads[0], outs[1], grads[1], out=outs, **rates)
        done.append(1)

    threads = [threading.Thread(target=work, args=(outs,), daemon=True) for outs in (first, second)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert done == [1, 1]


def test_a_gradient_does_not_care_for_what_is_written_elsewhere():
    buffer = np.ones((4, 3), np.float32)
    one = mx.nd.from_numpy(buffer)[:1]
    buffer.flags.writeable = True
    two = mx.nd.from_numpy(buffer[2:])
    one.attach_grad()
    with mx.autograd.record():
        y = one * one
    two[:] = 9
    y.backward()
    assert one.grad.asnumpy().tolist() == [[2, 2, 2]]


def test_buffers_that_are_gone_are_forgotten():
    gc.collect()
    windows._buffer(np.zeros(1), None)
    before = len(windows._starts)
    kept = [numpys() for _ in range(50)]
    assert len(windows._starts) >= before + 49  # that of the line before is gone
    del kept
    gc.collect()
    windows._buffer(np.zeros(1), None)
    assert len(windows._starts) <= before + 1
    assert windows._starts == sorted(windows._buffers)
