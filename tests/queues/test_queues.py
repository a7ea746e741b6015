"""Devices with queues of their own: order without the host, and every array where its context says."""

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, gluon, nd
from mxcore._core import call
from mxcore._core.engine import engine
from mxcore._core.errors import MXNetError
from mxcore._core.op import Op
from mxcore.ndarray.operators import SHORT

from .late import INDICES, PINNED, LateArray, poison

ROOT = Path(__file__).resolve().parents[2]
DATA = np.arange(12, dtype=np.float32).reshape(3, 4) / 4


# ---- the device itself: what nobody waits for shows ---------------------------------------------------------------
def test_results_are_poison_until_somebody_waits(late):
    y = nd.array(DATA, ctx=late[0]) * 2
    assert y._data.late.tobytes() == poison((3, 4), np.float32).tobytes()
    np.testing.assert_array_equal(y.asnumpy(), DATA * 2)


def test_a_copy_between_queues_without_a_wait_shows(late):
    x = nd.array(DATA, ctx=late[0]) * 2
    dst = late[1].device.empty((3, 4), np.float32, 1)
    late[1].device.activate(1)
    late[1].device.copy(x._data, dst)
    assert not np.array_equal(late[1].device.to_host(dst), DATA * 2)


def test_work_on_an_index_that_is_not_active_is_refused(late):
    a = late[1].device.from_host(DATA, 1)
    late[1].device.activate(0)
    with pytest.raises(RuntimeError, match=r"late\(0\) touches an array of late\(1\)"):
        late[1].device.xp.exp(a)


# ---- order between queues, and with the host ----------------------------------------------------------------------
def test_copies_between_indices_wait_for_the_source_and_hold_it(late):
    x = nd.array(DATA, ctx=late[0]) * 2
    y = x.as_in_context(late[1])
    x[:] = 0
    z = (y + 1).as_in_context(late[0])
    y[:] = 7
    assert INDICES[1].compute.at < len(INDICES[1].compute.work), "a copy between queues waited on the host"
    np.testing.assert_array_equal(z.asnumpy(), DATA * 2 + 1)


def test_what_is_sent_may_be_written_afterwards(late):
    h = nd.array(DATA)
    x = h.as_in_context(late[0])
    h[:] = -1
    y = x + 1
    np.testing.assert_array_equal(y.asnumpy(), DATA + 1)
    np.testing.assert_array_equal(h.asnumpy(), np.full((3, 4), -1))


def test_what_is_fetched_may_be_overwritten_by_the_queue(late):
    x = nd.array(DATA, ctx=late[0]) * 2
    h = x.as_in_context(mx.cpu())
    x[:] = 0
    x += 5
    np.testing.assert_array_equal((h + 1).asnumpy(), DATA * 2 + 1)
    np.testing.assert_array_equal(x.asnumpy(), np.full((3, 4), 5))


def test_transfers_do_not_hold_up_other_work(late):
    """The compute queue runs on while a copy has not begun."""
    other = nd.array(DATA, ctx=late[0])
    gate = threading.Event()
    incoming = INDICES[0].incoming
    incoming.launch(lambda: gate.wait(20))
    x = nd.array(DATA).as_in_context(late[0])
    done = []
    thread = threading.Thread(target=lambda: done.append((other * 3).asnumpy()))
    # Whoever runs a queue holds all of them; so the copy is looked at, not run.
    before = incoming.at
    thread.start()
    gate.set()
    thread.join(20)
    np.testing.assert_array_equal(done[0], DATA * 3)
    np.testing.assert_array_equal((x + 1).asnumpy(), DATA + 1)
    assert incoming.at >= before


def test_sending_what_a_worker_still_computes(late):
    h, gate = nd.array(DATA), threading.Event()
    engine.it.push(mx.cpu(), lambda: gate.wait(20) and None, [], [h._st], "what is sent")
    x = h.as_in_context(late[1])
    assert x._st.write is not None
    y = threading.Thread(target=gate.set)
    y.start()
    np.testing.assert_array_equal((x * 2).asnumpy(), DATA * 2)
    y.join()


def test_sending_what_failed_tells_why(late):
    h = nd.array(DATA)

    def fail():
        raise ValueError("the source failed")

    engine.it.push(mx.cpu(), fail, [], [h._st], "what is sent")
    x = h.as_in_context(late[1])
    with pytest.raises(ValueError, match="the source failed"):
        (x * 2).asnumpy()


def test_many_threads_send_compute_and_fetch(late):
    found, failed = {}, []

    def work(n):
        try:
            ctx = late[n % 2]
            for i in range(10):
                x = nd.array(DATA + i).as_in_context(ctx)
                y = (x * 2 + n).as_in_context(late[1 - n % 2]) - 1
                found[n, i] = y.as_in_context(mx.cpu()).asnumpy()
        except Exception as e:
            failed.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not failed, failed
    for (n, i), got in found.items():
        np.testing.assert_array_equal(got, (DATA + i) * 2 + n - 1)
    assert len(found) == 40


def test_dropped_arrays_end_what_is_in_flight(late):
    x = nd.array(DATA, ctx=late[0])
    h = x.as_in_context(mx.cpu())
    del x
    gc.collect()
    np.testing.assert_array_equal(h.asnumpy(), DATA)


# ---- arrays are where their context says, whatever is active ------------------------------------------------------
def net_and_data(ctx, seed=3):
    mx.random.seed(seed)
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(
            gluon.nn.Dense(5, activation="tanh", in_units=4),
            gluon.nn.BatchNorm(in_channels=5),
            gluon.nn.Dense(2, in_units=5),
        )
    net.initialize(mx.init.Xavier(), ctx=ctx)
    return net


@pytest.mark.parametrize("hybridize", [False, True])
def test_training_on_two_indices_is_training_on_the_host(late, hybridize):
    def train(contexts):
        net = net_and_data(contexts)
        if hybridize:
            net.hybridize()
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
        loss_of = gluon.loss.L2Loss()
        for step in range(3):
            xs = gluon.utils.split_and_load(nd.array(np.tile(DATA, (4, 1)) + step), contexts)
            ys = gluon.utils.split_and_load(nd.ones((12, 2)), contexts)
            with autograd.record():
                losses = [loss_of(net(x), y) for x, y in zip(xs, ys)]
            autograd.backward(losses)
            trainer.step(12)
        return [p.data(contexts[0]).asnumpy() for p in net.collect_params().values()], [v.asnumpy() for v in losses]

    want, losses = train([mx.cpu(0), mx.cpu(1)])
    got, losses_there = train(list(late))
    for a, b in zip([*want, *losses], [*got, *losses_there]):
        np.testing.assert_allclose(b, a, rtol=2e-5, atol=1e-6)


def test_a_module_over_two_indices(late):
    x, y = np.tile(DATA, (4, 1)), np.arange(12) % 3

    def train(contexts):
        data = mx.sym.Variable("data")
        out = mx.sym.SoftmaxOutput(
            mx.sym.FullyConnected(
                mx.sym.Activation(mx.sym.FullyConnected(data, num_hidden=6, name="a"), act_type="relu"),
                num_hidden=3,
                name="b",
            ),
            name="softmax",
        )
        mod = mx.mod.Module(out, context=contexts)
        it = mx.io.NDArrayIter(x, y, 6)
        mx.random.seed(1)
        mod.bind(it.provide_data, it.provide_label)
        mod.init_params(mx.init.Xavier())
        mod.init_optimizer(optimizer="adam")
        for _ in range(2):
            it.reset()
            for batch in it:
                mod.forward_backward(batch)
                mod.update()
        return {n: a.asnumpy() for n, a in mod.get_params()[0].items()}

    want, got = train([mx.cpu(0), mx.cpu(1)]), train(list(late))
    for n in want:
        np.testing.assert_allclose(got[n], want[n], rtol=2e-4, atol=1e-6, err_msg=n)


def test_a_program_over_two_indices(late):
    with mx.AttrScope(ctx_group="one"):
        x = mx.sym.Variable("x")
        h = mx.sym.tanh(mx.sym.FullyConnected(x, num_hidden=4, name="fc"))
    with mx.AttrScope(ctx_group="two"):
        y = mx.sym.MakeLoss(mx.sym.sum(mx.sym.square(h * 2)))

    def run(one, two):
        exe = y.simple_bind(one, x=(3, 4), group2ctx={"one": one, "two": two})
        for a in exe.arg_dict.values():
            a[:] = nd.array(np.linspace(-1, 1, a.size).reshape(a.shape))
        outs = []
        for i in range(3):
            exe.arg_dict["x"][:] = nd.array(DATA + i)
            exe.forward(is_train=True)
            exe.backward()
            outs += [exe.outputs[0].asnumpy(), exe.grad_dict["x"].asnumpy(), exe.grad_dict["fc_weight"].asnumpy()]
        return outs

    for a, b in zip(run(mx.cpu(0), mx.cpu(1)), run(*late)):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


def test_writes_indices_and_gradients_of_the_index_that_is_not_active(late):
    x = nd.array(DATA, ctx=late[1])
    for touch in (
        lambda: x.__setitem__(0, 1),
        lambda: x.__setitem__((slice(None), 1), nd.ones((3,), ctx=late[1])),
        lambda: x.__setitem__(nd.array([2], ctx=late[1]), np.full((1, 4), 9)),
        lambda: x.attach_grad(),
        lambda: x[nd.array([0, 2], ctx=late[1])].asnumpy(),
        lambda: x.copyto(late[0]),
        lambda: x.astype("float64"),
    ):
        late[0].device.activate(0)
        touch()
    late[0].device.activate(0)
    with autograd.record():
        y = x * x
        late[0].device.activate(0)
        z = y.sum() + y[1].sum()
    late[0].device.activate(0)
    z.backward()
    want = DATA.copy()
    want[0], want[:, 1], want[2] = 1, 1, 9
    np.testing.assert_array_equal(x.asnumpy(), want)
    np.testing.assert_array_equal(x.grad.asnumpy(), 2 * want * np.array([[1], [2], [1]]))


def test_random_numbers_are_those_of_the_host(late):
    mx.random.seed(5)
    want = nd.random.normal(shape=(3, 4)).asnumpy()
    mx.random.seed(5, ctx=late[0])
    mx.random.seed(5, ctx=mx.cpu())
    got = nd.random.normal(shape=(3, 4), ctx=late[0]).asnumpy()
    again = nd.random.normal(shape=(3, 4)).asnumpy()
    assert want.shape == got.shape
    np.testing.assert_array_equal(got, again)


def test_pinned_memory_is_asked_of_the_device_that_pins(late):
    pinned = mx.cpu_pinned()
    for make in (
        lambda: nd.array(DATA, ctx=pinned),
        lambda: nd.array(DATA).as_in_context(pinned),
        lambda: nd.array(DATA, ctx=late[0]).as_in_context(pinned),
    ):
        x = make()
        x.wait_to_read()
        assert any(ref() is x._data for ref in PINNED), "an array of cpu_pinned lies elsewhere"
    y = (x.as_in_context(late[1]) * 2).as_in_context(pinned)
    np.testing.assert_array_equal(y.asnumpy(), DATA * 2)


# ---- the short way ------------------------------------------------------------------------------------------------
def test_arithmetic_takes_the_short_way(late):
    a, b = nd.array(DATA, ctx=late[1]), nd.array(DATA + 1, ctx=late[1])
    a + b
    assert (late[1], np.dtype("float32")) in SHORT["elemwise_add"]
    late[0].device.activate(0)
    np.testing.assert_array_equal((a + b).asnumpy(), DATA * 2 + 1)
    late[0].device.activate(0)
    for _ in range(3):
        c = a * 3
    np.testing.assert_array_equal(c.asnumpy(), DATA * 3)


def test_kernels_that_write_take_the_short_way(late, monkeypatch):
    from mxcore._core import dispatch, tables

    op = tables.ops.get("tanh")

    def kernel(k, p, outs, data):
        k.xp.tanh(data, out=outs[0])

    monkeypatch.setattr(tables.kernels, "resolve", lambda *args: (kernel, True, "a test"))
    op.bound.clear()
    monkeypatch.setattr(dispatch, "_invoke", lambda *args: pytest.fail("the long way"))
    x = nd.array(DATA, ctx=late[1])
    late[0].device.activate(0)
    try:
        y = nd.tanh(x)
    finally:
        op.bound.clear()
    np.testing.assert_allclose(y.asnumpy(), np.tanh(DATA), rtol=1e-6)


# ---- errors -------------------------------------------------------------------------------------------------------
def failing():
    """An operator whose work fails when the queue gets to it."""

    def body(k, p, data):
        y = k.xp.exp(data)
        if isinstance(data, LateArray):
            INDICES[data.index].compute.launch(lambda: 1 // 0)
        return y

    return Op("_fails_late", body, inputs="data")


def test_failures_surface_where_somebody_waits(late):
    op = failing()
    y = Op.apply(op, (nd.array(DATA, ctx=late[0]),), op.parse({}))
    with pytest.raises(MXNetError, match="late.*division"):
        y.wait_to_read()
    np.testing.assert_array_equal(nd.array(DATA, ctx=late[0]).asnumpy(), DATA)  # the device goes on


NAIVE = """
import sys
sys.path.insert(0, {root!r})
import numpy as np
import mxcore as mx
from mxcore._core.manager import manager
from mxcore._core.op import Op
from mxcore.ndarray.operators import SHORT
from tests.queues import late
from tests.queues.test_queues import failing
manager.load()
manager.register(late, "late_device")
ctx = mx.Context("late", 1)
x = mx.nd.ones((2, 2), ctx=ctx)
op = failing()
try:
    Op.apply(op, (x,), op.parse({{}}))
except mx.MXNetError as e:
    assert "_fails_late" in str(e), e
else:
    raise SystemExit("no error at the call")
s = mx.sym.exp(mx.sym.Variable("x")) + 1
exe = s.bind(ctx, {{"x": x}})
exe.forward()
assert np.allclose((x + x).asnumpy(), 2) and np.allclose(exe.outputs[0].asnumpy(), np.exp(1) + 1)
print("fine")
"""


def test_the_naive_engine_names_the_operator():
    done = subprocess.run(
        [sys.executable, "-c", NAIVE.format(root=str(ROOT))],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "MXNET_ENGINE_TYPE": "NaiveEngine"},
    )
    assert done.stdout.strip() == "fine", done.stderr


# ---- priority -----------------------------------------------------------------------------------------------------
def test_what_waits_for_a_worker_goes_by_priority():
    from mxcore._core.state import state

    ctx, gate, order = mx.cpu(3), threading.Event(), []
    engine.it.push(ctx, lambda: gate.wait(20) and None, [], [], "gate")
    for priority in (0, -5, 3, 3, 1):
        state.priority = priority
        engine.it.push(ctx, lambda p=priority: order.append(p), [], [], "work")
    state.priority = 0
    gate.set()
    nd.waitall()
    assert order == [3, 3, 1, 0, -5]


# ---- the profiler -------------------------------------------------------------------------------------------------
def test_the_profiler_reads_marks_and_waits_for_nothing(late, tmp_path, monkeypatch):
    import json

    x = nd.array(DATA, ctx=late[0])
    nd.tanh(x)
    waits = []
    monkeypatch.setattr(
        type(late[0].device),
        "synchronize",
        lambda self, index, old=type(late[0].device).synchronize: (waits.append(index), old(self, index)),
    )
    mx.profiler.set_config(profile_imperative=True, profile_symbolic=True, filename=str(tmp_path / "p.json"))
    mx.profiler.set_state("run")
    try:
        nd.tanh(x)
        before = len(waits)  # the first look at the clock
        for _ in range(5):
            nd.tanh(x)
        x + x
        assert len(waits) == before
    finally:
        mx.profiler.set_state("stop")
    mx.profiler.dump()
    events = [
        e
        for e in json.loads((tmp_path / "p.json").read_text())["traceEvents"]
        if e.get("name") == "tanh" and e.get("ph") == "X"
    ]
    assert len(events) == 6 and all(e["dur"] >= 0 for e in events)
    assert call.observers == ()


def test_stores_push_and_pull_at_their_priority(monkeypatch):
    ctx, gate, order = mx.cpu(4), threading.Event(), []
    kv = mx.kv.create("local")
    outs = {}
    for key in "abc":
        kv.init(key, nd.ones((3,), ctx=ctx))
        outs[key] = nd.zeros((3,), ctx=ctx)
    push = type(engine.it).push
    monkeypatch.setattr(
        type(engine.it),
        "push",
        lambda self, ctx, fn, reads, writes, name="task": push(
            self, ctx, lambda: (order.append((name, tuple(writes)[0])), fn())[1], reads, writes, name
        ),
    )
    engine.it.push(ctx, lambda: gate.wait(20) and None, [], [o._st for o in outs.values()], "gate")
    for key, priority in zip("abc", (-2, 5, 1)):
        kv.pull(key, out=outs[key], priority=priority)
    gate.set()
    nd.waitall()
    names = {id(o._st): key for key, o in outs.items()}
    assert [names[id(st)] for name, st in order if name != "gate"] == ["b", "c", "a"]
