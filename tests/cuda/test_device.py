"""Device 'gpu': copies, streams, memory, and the ways to be absent."""

import gc
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

import mxcore as mx
from mxcore_cuda.launching import Kernel
from mxcore_cuda.sources import Code

SLOW = """
#include "mx.cuh"
KERNEL(256) scale(const T* x, T* y, A by, i64 n) { FOR_EACH(i, n) y[i] = T(A(x[i]) * by); }
EACH(scale)
"""


def child(program, **environment):
    """The last line that a program says, in a process of its own."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **environment}
    env.pop("MXCORE_CUDA_EMULATE", None) if "MXCORE_CUDA_EMULATE" not in environment else None
    begin = "import mxcore as mx, mxcore_cuda\nfrom mxcore._core.manager import manager\nmanager.load()\n"
    begin += "if 'cuda' not in manager.origin: manager.register(mxcore_cuda, 'cuda')\n"
    done = subprocess.run([sys.executable, "-c", begin + program], env=env, capture_output=True, text=True, timeout=120)
    return (done.stdout + done.stderr).strip().splitlines()[-1]


def test_values_come_back_as_they_went(gpus):
    for dtype in ("float16", "float32", "float64", "uint8", "int32", "int64", "bool"):
        x = (np.arange(24).reshape(2, 3, 4) % 2).astype(dtype)
        a = mx.nd.array(x, ctx=gpus[1], dtype=dtype)
        assert a.context == gpus[1] and a.asnumpy().dtype == x.dtype
        np.testing.assert_array_equal(a.asnumpy(), x)
    assert mx.nd.empty((0, 3), ctx=gpus[0]).asnumpy().shape == (0, 3)


def test_arrays_go_from_device_to_device(gpus):
    a = mx.nd.arange(1000, ctx=gpus[0]) * 2
    b = a.as_in_context(gpus[1])
    a[:] = -1  # what was copied stays
    c = (b + 1).copyto(gpus[0])
    assert b.context == gpus[1] and c.context == gpus[0]
    np.testing.assert_array_equal(c.asnumpy(), np.arange(1000) * 2 + 1)
    d = mx.nd.zeros(1000, ctx=gpus[1], dtype="float16")
    c.copyto(d)  # casts on the way
    np.testing.assert_array_equal(d.asnumpy(), (np.arange(1000) * 2 + 1).astype("float16"))


def test_work_on_two_devices_does_not_mix(gpus):
    with pytest.raises(ValueError, match=r"gpu\(0\).*gpu\(1\)"):
        mx.nd.ones(3, ctx=gpus[0]) + mx.nd.ones(3, ctx=gpus[1])
    with pytest.raises(ValueError, match=r"has 2 device\(s\); use an index below 2"):
        mx.nd.ones(3, ctx=mx.gpu(9))


def test_a_copy_waits_for_what_was_launched_before(gpus):
    device = gpus[0].device
    device.activate(0)
    x = device.from_host(np.ones(5000, "float32"), 0)
    y = device.empty((5000,), np.float32, 0)
    pinned = device.empty_pinned((5000,), np.float32)
    pinned[:] = -1
    kernel = Kernel(Code("mine.cu", SLOW), "scale", 0)
    kernel.each(5000, x, y, 3.0, 5000)
    done = device.fetch(y, pinned)
    assert (pinned == -1).all()  # nothing has run: nobody waits
    device.finish(done)
    assert (pinned == 3).all()


def test_what_is_sent_is_there_for_who_waits(gpus):
    device = gpus[0].device
    device.activate(0)
    pinned = device.empty_pinned((100,), np.float32)
    pinned[:] = 7
    dst = device.empty((100,), np.float32, 0)
    sent = device.send(pinned, dst)
    early = device.to_host(dst)  # the compute stream has not waited
    device.wait(0, sent)
    assert np.isnan(early).all() and (device.to_host(dst) == 7).all()


def test_pinned_contexts_hold_what_is_copied(gpus):
    a = mx.nd.arange(10, ctx=gpus[0])
    b = a.copyto(mx.cpu_pinned())
    assert b.context.device_type == "cpu_pinned" and b.asnumpy().tolist() == [*range(10)]


def test_memory_of_the_host_meets_and_that_of_gpus_does_not(gpus):
    host, pinned = mx.Context("cpu", 0), mx.Context("cpu_pinned", 0)
    x = {ctx: mx.nd.ones((2,), ctx=ctx) for ctx in (mx.gpu(0), mx.gpu(1), host, pinned)}
    assert (x[host] + x[pinned]).context is (x[pinned] + x[host]).context is (x[pinned] * 2).context is host
    assert mx.nd.relu(x[host], out=x[pinned]) is x[pinned] and x[pinned].copy().context is pinned
    for a, b in itertools.permutations(x, 2):
        if "gpu" in a.device_type + b.device_type:
            with pytest.raises(ValueError, match="inputs live on different devices"):
                x[a] + x[b]
            with pytest.raises(ValueError, match="out is on"):
                mx.nd.relu(x[a], out=x[b])


def test_memory_is_counted_and_given_back(gpus):
    gc.collect()
    gpus[0].device.synchronize(0)  # what was dropped before is given back
    free, total = mx.context.gpu_memory_info(0)
    a = mx.nd.zeros((1 << 20,), ctx=gpus[0])
    a.wait_to_read()
    assert abs(free - mx.context.gpu_memory_info(0)[0] - (4 << 20)) < 1 << 16 and total > free
    del a
    mx.nd.waitall()
    assert free - mx.context.gpu_memory_info(0)[0] < 1 << 20


def test_times_of_a_stream_are_told(gpus):
    device = gpus[0].device
    begin = device.mark(0)
    a = mx.nd.ones((100, 100), ctx=gpus[0])
    end = device.mark(0)
    a.wait_to_read()
    device.synchronize(0)
    assert 0 < device.elapsed(begin, end) < 10


SPLIT = """
import os
a = mx.nd.ones(3, ctx=mx.gpu(0))
pid = os.fork()
if not pid:
    try:
        mx.nd.ones(3, ctx=mx.gpu(0)).asnumpy()
    except mx.MXNetError as e:
        print(e, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_is_told_that_it_cannot():
    assert "forked after its first use" in child(SPLIT, MXCORE_CUDA_EMULATE="1")


@pytest.mark.parametrize(
    "environment, said",
    [
        ({"MXCORE_CUDA": "0"}, "MXCORE_CUDA=0 turns it off"),
        ({"CUDA_VISIBLE_DEVICES": ""}, "CUDA_VISIBLE_DEVICES='' hides all GPUs"),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, "hides all GPUs"),
    ],
)
def test_each_way_to_be_absent_has_its_sentence(environment, said):
    assert child("print(mx.num_gpus(), mx.gpu(0).device)", **environment).endswith(said)
    assert child("print(mx.num_gpus())", **environment) == "0"


def test_looking_whether_there_is_one_touches_no_driver():
    program = "import sys; mx.num_gpus(); print([m for m in ('cupy', 'cupyx', 'ctypes.cuda') if m in sys.modules])"
    assert child(program, CUDA_VISIBLE_DEVICES="") == "[]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_workers_of_a_loader_make_arrays_on_the_cpu(gpus):
    class Squares:
        def __len__(self):
            return 6

        def __getitem__(self, i):
            return mx.nd.full((2,), i) * mx.nd.array([i, i])

    with gpus[1]:
        mx.nd.ones(2).wait_to_read()  # forked after this, the workers cannot use a GPU
        batches = [*mx.gluon.data.DataLoader(Squares(), batch_size=3, num_workers=2)]
        assert mx.nd.ones(1).context == gpus[1]
    assert [b.context for b in batches] == [mx.cpu()] * 2
    assert np.concatenate([b.asnumpy() for b in batches]).tolist() == [[i * i] * 2 for i in range(6)]
