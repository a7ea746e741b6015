"""Arrays over one buffer of somebody else's wait for what is pending in it, whichever of them it is of."""

import gc
import os
import signal
import threading
import time
import types
import weakref
from collections import deque

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


def parts_first():
    buffer = np.zeros((4, 3), np.float32)
    early, late = (mx.nd.from_dlpack(buffer[part]) for part in (slice(2), slice(3, 4)))
    whole = mx.nd.from_dlpack(buffer)
    whole.wait_to_read()
    assert early._st.write is None and len(whole._st.parts) == 3
    return whole, mx.nd.from_dlpack(buffer[1:3])


def the_first_goes():
    buffer = np.zeros((4, 3), np.float32)
    early = mx.nd.from_dlpack(buffer[:1])
    whole = mx.nd.from_dlpack(buffer)
    del early
    gc.collect()
    return whole, mx.nd.from_dlpack(buffer[1:3])


def late_parts():
    buffer = np.zeros((4, 3), np.float32)
    late, whole = mx.nd.from_dlpack(buffer[2:]), mx.nd.from_dlpack(buffer)
    del late
    return whole, mx.nd.from_dlpack(buffer[1:3])


def parts_of_ours_first():
    whole = mx.nd.zeros((4, 3))
    late, early = (mx.nd.from_dlpack(whole[part].to_dlpack_for_write()) for part in (slice(2, 4), slice(2)))
    theirs = mx.nd.from_dlpack(whole.to_dlpack_for_write())
    del late, early
    return theirs, whole[1:3]


@pytest.fixture(
    params=[
        *(numpys, dlpacks, parts_of_one, another_librarys),
        *(parts_first, the_first_goes, late_parts, parts_of_ours_first),
    ]
)
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


def test_what_is_pending_where_parts_meet_is_waited_for(threaded, slow):
    """Writes of both, and a read of one, by tasks of before; and of a part by one of behind."""
    for _ in range(3):
        buffer = np.zeros((4, 3), np.float32)
        early, late = mx.nd.from_dlpack(buffer[:2]), mx.nd.from_dlpack(buffer[2:])
        slow(mx.nd.full((2, 3), 1, ctx=early.context), out=early)
        slow(mx.nd.full((2, 3), 2, ctx=late.context), out=late)
        read = slow(late)
        whole = mx.nd.from_dlpack(buffer)
        whole += 10
        slow(early * 2, out=early)
        assert whole.asnumpy()[:, 0].tolist() == [22, 22, 12, 12]
        assert read.asnumpy()[:, 0].tolist() == [2, 2]


def test_what_failed_in_a_part_has_failed_where_it_meets_another(threaded):
    buffer = np.zeros((4, 3), np.float32)
    early, late = mx.nd.from_dlpack(buffer[:2]), mx.nd.from_dlpack(buffer[2:])

    def fail():
        raise ValueError("no such value")

    for st in (early._st, late._st):
        threaded.push(early.context, fail, [], [st])
        whole = mx.nd.from_dlpack(buffer)
        with pytest.raises(ValueError, match="no such value"):
            whole.asnumpy()
        whole[:] = 3
        assert early.asnumpy().tolist() == [[3] * 3] * 2
        mx.nd.waitall()  # it was seen


def test_threads_add_to_parts_while_others_lay_arrays_over_them(in_threads):
    buffer = np.zeros((64, 3), np.float32)
    parts = [mx.nd.from_dlpack(buffer[i : i + 1]) for i in range(64)]

    def add(first):
        for _ in range(100):
            for x in parts[first::2]:
                x += 1
            whole = mx.nd.from_dlpack(buffer[first * 16 : 48])
            whole += 1

    in_threads(add, [(0,), (1,)])
    expected = np.full(64, 100) + 100 * (np.arange(64) < 48) + 100 * ((np.arange(64) >= 16) & (np.arange(64) < 48))
    assert buffer[:, 0].tolist() == expected.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_any_windows_in_any_order(threaded, slow, seed):
    """Against NumPy: parts that come and go, whose writes and reads are pending or done."""
    r = np.random.default_rng(seed)
    buffer, expected = np.zeros(16, np.float32), np.zeros(16, np.float32)
    live, reads = [], []
    for n in range(60):
        if len(live) < 2 or r.random() < 0.4:
            first = int(r.integers(15))
            part = slice(first, int(r.integers(first + 1, 17)))
            live.append((part, mx.nd.from_dlpack(buffer[part])))
        part, x = live[r.integers(len(live))]
        match r.integers(4):
            case 0:
                x += n
                expected[part] += n
            case 1:
                slow(x * 0.5, out=x)
                expected[part] *= np.float32(0.5)
            case 2:
                reads.append((slow(x), expected[part].copy()))
            case 3:
                live = [other for other in live if other[1] is not x]
        for part, x in live[:1]:
            assert np.array_equal(x.asnumpy(), expected[part])
    for found, wanted in reads:
        assert np.array_equal(found.asnumpy(), wanted)


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
    windows._tidy()
    before = len(windows._starts)
    kept = [numpys() for _ in range(50)]
    assert len(windows._starts) >= before + 49  # that of the line before is gone
    del kept
    gc.collect()
    windows._tidy()
    assert len(windows._starts) <= before + 1
    assert windows._starts == sorted(windows._buffers)


def test_memory_that_another_array_has_got_is_its_own_though_the_storage_of_the_one_before_is_kept(threaded, slow):
    """A recorded result keeps the storage of what it was computed from, but not its memory."""
    kept = []
    for n in range(20):
        buffer = np.ones((300, 300), np.float32)
        before = mx.nd.from_numpy(buffer)
        kept.append(before._st)
        place = buffer.ctypes.data
        del buffer, before
        ours = mx.nd.zeros((300, 300))
        again = ours._data.ctypes.data == place
        theirs = mx.nd.from_dlpack(ours.to_dlpack_for_write())
        slow(mx.nd.full((300, 300), n + 1, ctx=ours.context), out=ours)
        assert theirs.asnumpy()[0, 0] == n + 1, again


@pytest.mark.parametrize("told", [False, True])
def test_windows_that_slide_stay_few_and_meet_those_before(threaded, slow, told):
    ours, buffer = mx.nd.zeros((400,)), np.zeros(400, np.float32)
    live, expected = deque(maxlen=3), np.zeros(400, np.float32)
    for i in range(300):
        part = slice(i, i + 100)
        x = mx.nd.from_dlpack(ours[part].to_dlpack_for_write() if told else buffer[part])
        live.append((i, x))
        assert len(x._st.buffers) <= windows._MANY and len(x._st.parts) < 8 * windows._MANY
        if i % 29 == 0:
            slow(x + i, out=x)
            expected[i : i + 100] += i
        x += 1
        expected[i : i + 100] += 1
        at, first = live[0]
        assert np.array_equal(first.asnumpy(), expected[at : at + 100])
    assert np.array_equal(ours.asnumpy() if told else buffer, expected) and in_order()


@pytest.mark.parametrize("kept", [10, 3000])
def test_windows_that_slide_for_long_take_few_locks(kept):
    buffer, live = np.zeros(4000, np.float32), deque(maxlen=kept)
    for i in range(3000):
        live.append(mx.nd.from_dlpack(buffer[i : i + 30]))
        assert len(live[-1]._st.parts) < 3 * windows._MOST
    live[-1] += 1
    assert len(windows._starts) < (kept == 10) * 200 + (kept == 3000) * 4000 and in_order()


@pytest.mark.parametrize("parts", [8, 9, 30])
def test_parts_meet_as_before_when_an_array_over_them_all_has_gone(threaded, slow, in_threads, parts):
    buffer = np.zeros(4 * parts, np.float32)
    live = [mx.nd.from_dlpack(buffer[4 * i : 4 * i + 4]) for i in range(parts)]
    whole = mx.nd.from_dlpack(buffer)
    whole += 1
    del whole
    gc.collect()
    for n, i in enumerate((0, parts // 2, parts - 1)):
        slow(mx.nd.full((4,), n + 5, ctx=live[i].context), out=live[i])
        again = mx.nd.from_dlpack(buffer[4 * i : 4 * i + 4])
        assert again.asnumpy().tolist() == [n + 5] * 4 and in_order()
        in_threads(lambda x: [x.__iadd__(1) for _ in range(200)], [(live[i],), (again,)])
        assert again.asnumpy().tolist() == [n + 405] * 4


def test_threads_add_while_the_buffers_below_are_made_one(in_threads):
    buffer = np.zeros(400, np.float32)
    whole = mx.nd.from_dlpack(buffer[:50])

    def add(first):
        for i in range(first, 200):
            if first:
                x = mx.nd.from_dlpack(buffer[i : i + 60])
                x += 1
            else:
                whole.__iadd__(1)

    in_threads(add, [(0,), (1,)])
    expected = np.zeros(400, np.float32)
    expected[:50] += 200
    for i in range(1, 200):
        expected[i : i + 60] += 1
    assert np.array_equal(buffer, expected)


def laid_over(buffer):
    """Arrays over parts, then over the whole, of which all then wait for each other."""
    arrays = [mx.nd.from_dlpack(buffer[part]) for part in (slice(2), slice(3, 4), slice(None), slice(1, 3))]
    assert len({id(x._st.root) for x in arrays}) == 1
    return arrays


def in_order():
    """Whether buffers do not overlap, and lie in order."""
    windows._tidy()
    live = [ref() for ref in map(windows._buffers.get, windows._starts)]
    return all(a.last <= b.first for a, b in zip(live, live[1:]))


def test_a_handler_lays_arrays_over_the_buffer_amid_another(handled_anywhere):
    buffers = []

    def work():
        buffers.append(np.zeros((4, 3), np.float32))
        arrays = laid_over(buffers[-1])
        for x in arrays:
            x += 1
        assert buffers[-1][:, 0].tolist() == [2, 3, 2, 2] and in_order()

    def other():
        kept.append([mx.nd.from_dlpack(buffers[-1][part]) for part in (slice(1, 2), slice(1, 4))])

    kept = []
    assert handled_anywhere(("ndarray/windows.py", "mxcore/_workers.py"), work, other) > 20


def test_ctrl_c_amid_windows_leaves_buffers_in_order(interrupted):
    files = ("ndarray/windows.py",)
    buffers = [np.zeros((4, 3), np.float32) for _ in range(4)]
    kept = deque(maxlen=3)

    def work():
        kept.append(laid_over(buffers[len(kept)]))

    for n in range(1, interrupted(0, files, work)):
        interrupted(n, files, work)
        assert in_order()
        work()


@pytest.mark.parametrize("first", [False, True])
def test_a_finalizer_lays_an_array_over_memory_whose_last_one_goes_with_it(first):
    """The collector drops all references before it calls what they call."""
    buffer, made = np.zeros(64, np.float32), []

    class Node:
        pass

    node = Node()
    node.itself = node
    if first:
        weakref.finalize(node, lambda: made.append(mx.nd.from_dlpack(buffer)))
    node.array = mx.nd.from_dlpack(buffer)
    if not first:
        weakref.finalize(node, lambda: made.append(mx.nd.from_dlpack(buffer)))
    del node
    gc.collect()
    made[0][:] = 3
    assert buffer[0] == 3 and in_order()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system that forks")
def test_a_child_lays_arrays_over_memory_while_threads_of_its_parent_did():
    stop = threading.Event()

    def make():
        while not stop.is_set():
            laid_over(np.zeros((4, 3), np.float32))

    threads = [threading.Thread(target=make, daemon=True) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for _ in range(20):
            if (child := os.fork()) == 0:
                signal.alarm(20)  # ends it where it hangs
                laid_over(np.zeros((4, 3), np.float32))
                os._exit(0 if in_order() and gc.isenabled() else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for t in threads:
            t.join()
