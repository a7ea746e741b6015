"""Ctrl-C right behind a write: what is kept of an array must learn that it has changed."""

import contextlib
import sys
from pathlib import Path

import numpy as np
import pytest

import mxcore as mx
from mxcore import gluon, nd
from mxcore.kvstore import together

CORE = str(Path(mx.__file__).parent)
SHAPE = 6, 4


def value(seed=1):
    return nd.array(np.random.RandomState(seed).rand(*SHAPE))


def pulled(w):
    kv = mx.kv.create("local")
    kv.init(0, value())
    return lambda: kv.pull(0, out=w)


def stepped(w, name="sgd"):
    """The second step, whose arrays and kernels are known already."""
    updater = mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.5))
    for _ in range(3):
        updater([0], [value()], [w])
    return lambda: updater([0], [value()], [w])


def several(w):
    """The update of many weights at once."""
    weights, grads = [value(i) for i in range(3)] + [w], [value(i) for i in range(4)]
    updater = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=0.5))
    for _ in range(3):
        updater([0, 1, 2, 3], grads, weights)
    return lambda: updater([0, 1, 2, 3], grads, weights)


def backward(w):
    """The gradient of a program."""
    x = mx.sym.Variable("x")
    bound = mx.sym.square(x).bind(mx.cpu(), {"x": value()}, args_grad={"x": w})

    def run():
        bound.forward(is_train=True)
        bound.backward(value())

    return run


def launched(w):
    """What is launched on the queues of several devices."""
    a = value()
    return lambda: together.launch(lambda: a.context.device.copy(a._data, w._data), [a], [w], [a.context])


WRITES = {
    "x[:] = array": lambda w: lambda: w.__setitem__(slice(None), value()),
    "x[:] = number": lambda w: lambda: w.__setitem__(slice(None), 3),
    "x[:] = numpy": lambda w: lambda: w.__setitem__(slice(None), np.full(SHAPE, 7.0)),
    "x[1:3] = array": lambda w: lambda: w.__setitem__(slice(1, 3), value()[1:3]),
    "x[array] = array": lambda w: lambda: w.__setitem__(nd.array([0, 2]), value()[:2]),
    "x += array": lambda w: lambda: w.__iadd__(value()),
    "copyto": lambda w: lambda: value().copyto(w),
    "out=": lambda w: lambda: nd.broadcast_add(value(), value(), out=w),
    "a body's out=": lambda w: lambda: nd.sort(value(), out=w),
    "sgd_update": lambda w: lambda: nd.sgd_update(w, value(), lr=0.5, out=w),
    "multi_sgd_update": lambda w: lambda: nd.multi_sgd_update(w, value(), lrs=(0.5,), wds=(0,), num_weights=1, out=w),
    "pull": pulled,
    "launch": launched,
    "a program": backward,
    "an update": stepped,
    "an update of many": several,
    "an update with states": lambda w: stepped(w, "adam"),
    "np x[...] = array": lambda w: lambda: w.as_np_ndarray().__setitem__(..., value().as_np_ndarray()),
    "np x[1:3] = number": lambda w: lambda: w.as_np_ndarray().__setitem__(slice(1, 3), 5),
    "np x[array] = number": lambda w: lambda: w.as_np_ndarray().__setitem__(mx.np.array([0, 2], dtype="int64"), 5),
    "np out=": lambda w: lambda: mx.np.add(value().as_np_ndarray(), 1, out=w.as_np_ndarray()),
}


@contextlib.contextmanager
def interrupted_once(written):
    """An interrupt as soon as the library's next line is reached behind a write."""
    left = [1]

    def trace(frame, event, arg):
        if not frame.f_code.co_filename.startswith(CORE):
            return None
        if left and written():
            left.clear()
            raise KeyboardInterrupt
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        sys.settrace(old)


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_counted_wherever_the_interrupt_comes_behind_it(name):
    w = nd.array(np.random.RandomState(0).rand(*SHAPE))
    write = WRITES[name](w)
    before, version = w.asnumpy(), w._st.version
    with interrupted_once(lambda: not np.array_equal(w.asnumpy(), before)):
        write()
    assert not np.array_equal(w.asnumpy(), before) and w._st.version > version


@pytest.mark.parametrize("name", WRITES)
def test_what_is_kept_while_a_write_goes_on_is_not_taken_for_what_it_wrote(name):
    """Another thread may read between the count before a write and its end."""
    w = nd.array(np.random.RandomState(0).rand(*SHAPE))
    write, before, kept = WRITES[name](w), w.asnumpy(), {}

    def keep(frame, event, arg):
        if not frame.f_code.co_filename.startswith(CORE):
            return None
        kept.setdefault(w._st.version, w.asnumpy())
        return keep

    old = sys.gettrace()
    sys.settrace(keep)
    try:
        write()
    finally:
        sys.settrace(old)
    found = w.asnumpy()
    assert not np.array_equal(found, before) and len(kept) > 1
    np.testing.assert_array_equal(kept.get(w._st.version, found), found)


def test_predictions_follow_weights_whose_write_was_interrupted():
    net = gluon.nn.Conv2D(8, 3, padding=1, in_channels=3)
    net.initialize()
    net.hybridize(static_alloc=True, static_shape=True)
    x, new = nd.array(np.random.RandomState(0).rand(2, 3, 9, 9)), nd.ones((8, 3, 3, 3))
    for _ in range(4):
        net(x).wait_to_read()
    w = net.weight.data()
    with interrupted_once(lambda: (w.asnumpy() == 1).all()):
        net.weight.set_data(new)
    found = net(x).asnumpy()
    net.hybridize(False)
    np.testing.assert_allclose(found, net(x).asnumpy(), rtol=1e-4, atol=1e-5)
