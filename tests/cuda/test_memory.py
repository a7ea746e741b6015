"""No room in the middle of a step: what is not needed is given back, else an error says whose it was; all goes on."""

import gc

import numpy as np
import pytest

import mxcore as mx
from mxcore import gluon
from mxcore.base import MXNetError
from mxcore_cuda.emulation import memory

MB = 1 << 20


@pytest.fixture
def room(gpus, monkeypatch):
    """Leaves device 0 so many bytes."""

    def leave(size):
        gc.collect()
        mx.nd.waitall()
        gpus[0].empty_cache()
        monkeypatch.setenv("MXCORE_CUDA_EMULATE_MEMORY", str(memory.used(0) + size))

    return leave


def test_it_can_be_asked_for(gpus, room):
    room(10 * MB)
    free, total = mx.context.gpu_memory_info(0)
    assert free == 10 * MB <= total == memory.used(0) + free and mx.util.get_gpu_memory(0) == (free, total)
    assert mx.util.get_gpu_count() == mx.num_gpus() == 2
    with pytest.raises(ValueError, match=r"gpu\(2\) does not exist: 2 GPU"):
        mx.util.get_gpu_memory(2)


def test_what_was_dropped_is_given_back(gpus, room):
    room(3 * MB)
    for i in range(20):  # its memory is free only when the stream got there
        x = mx.nd.full((MB // 4,), i, ctx=gpus[0])
        x = x + 1
    assert x.asnumpy()[-1] == 20
    del x
    gpus[0].empty_cache()
    assert mx.context.gpu_memory_info(0)[0] == 3 * MB


def operators(ctx):
    a = mx.nd.ones((MB // 4,), ctx=ctx)
    return {
        "elemwise_add": lambda: a + a,
        "sort": lambda: mx.nd.sort(a),  # by CuPy's function
        "softmax": lambda: mx.nd.softmax(a.reshape((512, 512))),
        "Concat": lambda: mx.nd.concat(a, a, dim=0),
        "_copy|copy": lambda: a.copy(),
        "zeros|full": lambda: mx.nd.zeros((MB // 4,), ctx=ctx),
        "empty": lambda: mx.nd.empty((MB // 4,), ctx=ctx),
        "_random_uniform|uniform": lambda: mx.nd.random.uniform(shape=(MB // 4,), ctx=ctx),
    }


@pytest.mark.parametrize("names", [*operators(mx.cpu())])
def test_eager_operators_say_who_wanted_how_much(gpus, room, names):
    run = operators(gpus[0])[names]
    room(MB // 2)
    said = rf"({names}).*gpu\(0\) has no room for .*bytes.*: \d+ of \d+ bytes are free"
    with pytest.raises(MemoryError, match=said) as caught:
        run()
    assert isinstance(caught.value, MXNetError)
    del caught
    room(8 * MB)
    mx.nd.waitall()
    run().wait_to_read()


def test_copies_say_it_too(gpus, room):
    x = mx.nd.ones((MB // 4,), ctx=gpus[1])
    room(MB // 2)
    for copy in (lambda: x.as_in_context(gpus[0]), lambda: mx.nd.ones((MB // 4,)).copyto(gpus[0])):
        with pytest.raises(MemoryError, match=r"gpu\(0\) has no room for 1048576 bytes"):
            copy()
    room(4 * MB)
    assert x.as_in_context(gpus[0]).sum().asscalar() == MB // 4


def test_parameters_are_initialised_once_there_is_room(gpus, room):
    net = gluon.nn.Dense(512, in_units=1024)
    room(MB)
    with pytest.raises(MemoryError, match=r"has no room for .*2,?097,?152 bytes"):
        net.initialize(ctx=gpus[0])
    room(256 * MB)  # cuBLAS wants some, too
    net.initialize(ctx=gpus[0], force_reinit=True)
    assert net(mx.nd.ones((1, 1024), ctx=gpus[0])).shape == (1, 512)


@pytest.mark.parametrize("hybridise", [False, True, "static"], ids=["eager", "hybridised", "static"])
@pytest.mark.parametrize("left", [1, 3, 5, 7])
def test_a_smaller_batch_trains_on(gpus, room, hybridise, left):
    mx.random.seed(1)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(64, activation="relu"), gluon.nn.BatchNorm(), gluon.nn.Dense(64), gluon.nn.Dense(3))
    net.initialize(mx.init.Xavier(), ctx=gpus[0])
    if hybridise:
        net.hybridize(static_alloc=hybridise == "static", static_shape=hybridise == "static")
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    rs = np.random.RandomState(0)
    data, label = rs.randn(8192, 10).astype("float32"), rs.randint(0, 3, 8192)

    def step(n):
        x, y = mx.nd.array(data[:n], ctx=gpus[0]), mx.nd.array(label[:n], ctx=gpus[0])
        with mx.autograd.record():
            found = loss(net(x), y)
        found.backward()
        trainer.step(n)
        return found.mean().asscalar()

    first = step(64)
    room(left * MB)
    with pytest.raises(MemoryError, match=r"bytes are free") as caught:
        step(8192)
    assert isinstance(caught.value, MXNetError)
    del caught
    losses = [step(64) for _ in range(10)]
    assert np.isfinite(losses).all() and losses[-1] < first


def test_states_of_optimizers_are_made_once_there_is_room(gpus, room):
    net = gluon.nn.Dense(512, in_units=1024)
    net.initialize(ctx=gpus[0])
    trainer = gluon.Trainer(net.collect_params(), "adam")
    x = mx.nd.ones((2, 1024), ctx=gpus[0])

    def backward():
        with mx.autograd.record():
            y = net(x).sum()
        y.backward()

    backward()
    before = net.weight.data().asnumpy()
    room(3 * MB)
    with pytest.raises(MemoryError, match=r"has no room for .*2,?097,?152 bytes"):
        trainer.step(1)
    np.testing.assert_array_equal(net.weight.data().asnumpy(), before)
    room(20 * MB)
    backward()
    trainer.step(1)
    assert (net.weight.data().asnumpy() != before).any()


def test_a_bound_symbol_says_it(gpus, room):
    out = mx.sym.FullyConnected(mx.sym.relu(mx.sym.var("data")), num_hidden=1024, name="fc")
    room(MB)
    with pytest.raises(MemoryError, match=r"bytes are free"):
        out.simple_bind(gpus[0], data=(512, 1024))
    room(64 * MB)
    assert out.simple_bind(gpus[0], data=(512, 1024)).forward()[0].shape == (512, 1024)


def test_recordings_make_room_for_array_functions(gpus, monkeypatch):
    """Memory that a body's array functions want is what recurrent layers' recordings hold."""
    from mxcore_cuda.repeated import repeated

    gpus[0].empty_cache()
    steps, batch, units = 16, 64, 128
    rs = np.random.RandomState(0)
    shapes = (steps, batch, units), (3 * units * (2 * units + 2) * 2,), (2, batch, units)
    x, w, h = (mx.nd.array(rs.uniform(-1, 1, s), ctx=gpus[0]) for s in shapes)
    y = mx.nd.zeros(shapes[0], ctx=gpus[0])
    for _ in range(6):
        mx.nd.RNN(x, w, h, mode="gru", state_size=units, num_layers=2, out=y)
        expected = y.asnumpy()
    assert repeated.graphs
    a = mx.nd.ones((8, 1024), ctx=gpus[0])
    a.wait_to_read()
    gc.collect()
    mx.nd.waitall()
    monkeypatch.setenv("MXCORE_CUDA_EMULATE_MEMORY", str(memory.used(0) + MB // 16))
    assert mx.nd.tile(a, reps=(6, 1)).sum().asscalar() == 6 * 8 * 1024
    assert not repeated.graphs
    monkeypatch.delenv("MXCORE_CUDA_EMULATE_MEMORY")
    mx.nd.RNN(x, w, h, mode="gru", state_size=units, num_layers=2, out=y)
    np.testing.assert_array_equal(y.asnumpy(), expected)
