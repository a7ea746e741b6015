"""Signals' handlers that use a GPU, wherever in the main thread they come."""

import threading

import numpy as np
import pytest

import mxcore as mx


class Late(TimeoutError):
    pass


@pytest.mark.parametrize(
    "files, lines", [("mxcore_cuda/device.py", 20), ("emulation/driver.py", 30), ("memory.py", 20)]
)
def test_a_copy_amid_a_copy(gpus, handled_anywhere, files, lines):
    ctx, got = mx.gpu(0), []

    def copy():
        a = mx.nd.array([4, 5], ctx=ctx)
        got.append((a + 1).asnumpy().tolist())

    copy()
    assert handled_anywhere((files,), copy, copy) > lines
    assert all(found == [5, 6] for found in got)


def test_a_chain_amid_the_compilation_of_another(gpus, handled_anywhere):
    """Each has a number of its own, and so a kernel; the handler's is the same."""
    numbers, x = iter(range(2, 10**6)), mx.sym.Variable("x")

    def bound(n):
        run = mx.sym.tanh(x * x + n).bind(mx.gpu(0), {"x": mx.nd.ones((3,), ctx=mx.gpu(0))})
        np.testing.assert_allclose(run.forward()[0].asnumpy(), np.tanh(1.0 + n), rtol=1e-6)

    def work():
        nonlocal number
        number = next(numbers)
        bound(number)

    number = 1
    assert handled_anywhere(("mxcore_cuda/fused.py",), work, lambda: bound(number)) > 20


def recorded(runs=5):
    """A program that is recorded when it has run twice."""
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
    y = mx.sym.dot(mx.sym.tanh(mx.sym.dot(mx.sym.tanh(x), w)), w)
    arrays = {"x": mx.nd.ones((2, 6), ctx=mx.gpu(0)), "w": mx.nd.ones((6, 6), ctx=mx.gpu(0)) * 0.1}
    run = y.bind(mx.gpu(0), arrays)
    for _ in range(runs):
        out = run.forward()[0]
    np.testing.assert_allclose(out.asnumpy(), 0.6 * np.tanh(0.6 * np.tanh(1)), rtol=1e-5)


def test_what_a_handler_launches_is_no_part_of_a_recording(gpus, handled_anywhere):
    counter, came = mx.nd.zeros((4,), ctx=mx.gpu(0)), []

    def count():
        came.append(1)
        counter[:] = counter + 1
        assert counter.asnumpy().tolist() == [len(came)] * 4  # reading is no part of one either

    recorded()
    lines = handled_anywhere(("mxcore_cuda/graphs.py", "executor/replayed.py"), recorded, count)
    assert lines == len(came) > 50
    assert counter.asnumpy().tolist() == [lines] * 4


@pytest.mark.parametrize(
    "files", ["fused.py", "launching.py", "emulation/streams.py", "emulation/memory.py", "blas.py"]
)
def test_a_handler_records_amid_anything(gpus, handled_anywhere, files):
    """Recordings are made beside the main thread while there are handlers: they need no lock that it may have."""
    numbers = iter(range(2, 10**6))

    def work():
        x = mx.nd.ones((3, 3), ctx=mx.gpu(0))
        name = mx.sym.Variable("x")
        y = mx.sym.dot(mx.sym.tanh(name * next(numbers)), name)
        y.bind(mx.gpu(0), {"x": x}).forward()[0].asnumpy()

    def record(ctx=mx.gpu(0)):
        net = mx.gluon.nn.HybridSequential()
        net.add(mx.gluon.nn.Dropout(0.5), mx.gluon.nn.Dense(3, in_units=4))
        net.initialize(ctx=ctx)
        net.hybridize(static_alloc=True)
        for _ in range(4):
            with mx.autograd.train_mode():
                out = net(mx.nd.ones((2, 4), ctx=ctx))
        assert out.shape == (2, 3) and out.context == ctx
        out.wait_to_read()

    record(mx.gpu(1))
    assert handled_anywhere(("mxcore_cuda/nothing.py",), lambda: record(mx.gpu(1)), record) == 0  # but a handler is set
    assert handled_anywhere((files,), work, record) > 3


def test_deadlines_amid_recordings_are_not_lost(gpus, handled_anywhere):
    came = []

    def guarded():
        try:
            recorded()
        except Late:
            came.append(1)

    def late():
        raise Late

    recorded()
    lines = handled_anywhere(("mxcore_cuda/graphs.py",), guarded, late)
    assert lines == len(came) > 10
    recorded()


def test_handlers_amid_products(gpus, handled_anywhere):
    x = mx.nd.array(np.eye(3) * 2, ctx=mx.gpu(0))

    def multiply():
        assert mx.nd.dot(x, x).asnumpy()[0].tolist() == [4, 0, 0]

    multiply()
    before = set(threading.enumerate())
    assert handled_anywhere(("mxcore_cuda/blas.py",), multiply, multiply) > 5
    assert len(set(threading.enumerate()) - before) < 5  # and not one for each handler
