"""A process is forked while a thread of it writes: the child, where that thread is not, writes to the array, too."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import mxcore as mx

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

N = 1 << 18


def in_place():
    w = mx.nd.zeros(N)

    def step():
        x = w
        x += 1

    return step


def slices():
    w = mx.nd.zeros(N)
    return lambda: w.__setitem__(slice(None), 3)


def updates():
    w, g, rule = mx.nd.zeros(N), mx.nd.ones(N), mx.optimizer.Updater(mx.optimizer.SGD(learning_rate=1))
    return lambda: rule(0, g, w)


def gradients():
    x = mx.nd.ones(N)
    x.attach_grad("add")

    def step():
        with mx.autograd.record():
            y = x * 2
        y.backward()

    return step


def batches():
    it = mx.io.NDArrayIter(np.zeros((2000, 100), "f"), batch_size=1000)
    return lambda: (it.reset(), it.next())


def pushes():
    store = mx.kv.create("local")
    store.init("a", mx.nd.zeros(N))
    return lambda: store.push("a", mx.nd.ones(N))


def to_a_worker():
    """Tasks pushed without end, faster than the worker gets through them."""
    from mxcore._core.engine import engine

    ctx = mx.cpu()
    return lambda: engine.it.push(ctx, lambda: time.sleep(1e-3), [], [])


@pytest.mark.parametrize("make", [in_place, slices, updates, gradients, batches, pushes, to_a_worker])
def test_no_lock_is_held_by_a_thread_that_is_not_there(make):
    step, stop = make(), threading.Event()
    step()

    def write():
        while not stop.is_set():
            step()
            time.sleep(1e-4)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(6):
            time.sleep(0.005)
            pid = os.fork()
            if not pid:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(20)
                try:
                    step()
                    os._exit(0)
                except mx.MXNetError:  # what a worker of the parent was to write is not there
                    os._exit(3)
                finally:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) in (0, 3)
    finally:
        stop.set()
        thread.join()
        mx.nd.waitall()
