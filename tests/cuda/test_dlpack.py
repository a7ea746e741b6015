"""DLPack: memory of GPUs goes to others and comes back, in the order of both sides' streams."""

import ctypes
import gc

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore_cuda.emulation import devices, memory


class Consumer:
    """Somebody else's array library, with a stream of its own on a device."""

    def __init__(self, ctx):
        self.xp, self.stream = ctx.device.xp, devices.queues(ctx.device_id).outgoing

    def take(self, x):
        return self.xp.from_dlpack(Offered(x, x.__dlpack__(stream=id(self.stream), max_version=(1, 0))))

    def read(self, a):
        found = np.empty(a.shape, a.dtype)
        self.stream.launch(lambda: np.copyto(found, a.values))
        self.stream.run()
        return found


class Offered:
    def __init__(self, x, capsule):
        self.x, self.capsule = x, capsule

    def __dlpack__(self, **kw):
        return self.capsule

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def test_the_consumers_stream_waits_for_ours(gpus):
    consumer = Consumer(gpus[1])
    x = mx.nd.arange(1000, ctx=gpus[1]) * 2  # launched only
    a = consumer.take(x)
    np.testing.assert_array_equal(consumer.read(a), np.arange(1000) * 2)
    late = mx.nd.arange(1000, ctx=gpus[1]) + 1
    unordered = gpus[1].device.xp.from_dlpack(Offered(late, late.__dlpack__(stream=-1, max_version=(1, 0))))
    assert np.isnan(consumer.read(unordered)).all()  # -1: the consumer wants no order


@pytest.mark.parametrize("index", [0, 1])
def test_arrays_share_memory_both_ways(gpus, index):
    x = mx.nd.array([[1, 2, 3], [4, 5, 6]], ctx=gpus[index])
    assert x.__dlpack_device__() == (2, index)
    y = mx.nd.from_dlpack(x)
    assert y.context == gpus[index] and y.dtype == x.dtype
    x[:] = 7  # a write after the export is seen
    assert (y.asnumpy() == 7).all()
    y[0] = 3
    assert x.asnumpy().tolist() == [[3, 3, 3], [7, 7, 7]]
    part = mx.nd.from_dlpack(x[1:2])
    part += 1
    assert x.asnumpy().tolist() == [[3, 3, 3], [8, 8, 8]]
    z = mx.nd.broadcast_add(y, y)  # and computes as any other
    assert z.asnumpy().tolist() == [[6, 6, 6], [16, 16, 16]]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "int8", "int32", "int64", "bool"])
@pytest.mark.parametrize("verb", ["read", "write"])
def test_capsules_go_both_ways(gpus, dtype, verb):
    x = mx.nd.array([0, 1, 1], ctx=gpus[1], dtype=dtype)
    capsule = getattr(mx.nd, f"to_dlpack_for_{verb}")(x)
    assert type(capsule).__name__ == "PyCapsule"
    assert ctypes.pythonapi.PyCapsule_IsValid(ctypes.py_object(capsule), b"dltensor")  # as MXNet's are
    y = mx.nd.from_dlpack(capsule)
    assert y.context == gpus[1] and y.dtype == x.dtype and y.asnumpy().tolist() == x.asnumpy().tolist()
    x[:] = 1
    assert y.asnumpy().all()
    with pytest.raises(MXNetError, match="a capsule can be taken only once"):
        mx.nd.from_dlpack(capsule)


def test_memory_lives_as_long_as_its_consumer(gpus):
    gc.collect()
    gpus[0].empty_cache()
    before = memory.used(0)
    x = mx.nd.full((1000,), 5, ctx=gpus[0])
    capsule = x.to_dlpack_for_read()
    del x
    y = mx.nd.from_dlpack(capsule)
    del capsule
    gpus[0].empty_cache()
    assert (y.asnumpy() == 5).all()
    del y
    gc.collect()
    gpus[0].empty_cache()
    assert memory.used(0) == before


def test_what_nobody_takes_is_given_back(gpus):
    gc.collect()
    gpus[0].empty_cache()
    before = memory.used(0)
    capsule = mx.nd.ones(1000, ctx=gpus[0]).to_dlpack_for_read()
    assert memory.used(0) > before
    del capsule
    gc.collect()
    gpus[0].empty_cache()
    assert memory.used(0) == before


def test_numpy_is_told_to_copy(gpus):
    x = mx.nd.ones(3, ctx=gpus[0])
    for take in (lambda: np.from_dlpack(x), lambda: x.__dlpack__(stream=1, dl_device=(1, 0))):
        with pytest.raises(BufferError, match=r"an array on gpu\(0\) shares no memory.*x.asnumpy\(\)") as caught:
            take()
        assert isinstance(caught.value, MXNetError)


def test_an_array_of_the_graph_is_kept_from_writes(gpus):
    x = mx.nd.ones(3, ctx=gpus[0])
    x.attach_grad()
    with mx.autograd.record():
        y = x * 2
        shared = mx.nd.from_dlpack(y)
    y.backward()
    assert (shared.asnumpy() == 2).all() and (x.grad.asnumpy() == 2).all()
