"""Descriptions, batches, the base classes and the iterators around others."""

import json
import os
import pickle
import signal
import sys
import threading
import time

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import mxcore as mx
from mxcore._workers import Job
from mxcore.base import MXNetError
from mxcore.io import BatchCursor, DataBatch, DataDesc, DataIter, MXDataIter


def seven(size=3, name="data", label="softmax_label"):
    return mx.io.NDArrayIter({name: np.arange(7)}, {label: np.arange(7)}, size)


def labels(it):
    return [b.label[0].asnumpy().tolist() for b in it]


def test_descriptions():
    desc = DataDesc("x", (2, 3), "int32", "TN")
    assert desc == ("x", (2, 3)) and (desc.dtype, desc.layout) == ("int32", "TN")
    assert repr(DataDesc("d", (1, 2))) == "DataDesc[d,(1, 2),<class 'numpy.float32'>,NCHW]"
    copy = pickle.loads(pickle.dumps(desc))
    assert copy == desc and (copy.dtype, copy.layout) == ("int32", "TN")
    assert [DataDesc.get_batch_axis(layout) for layout in ("NTC", "TNC", None, "TC")] == [0, 1, 0, -1]
    assert DataDesc.get_list([("a", (1,))], [("a", "int32")])[0].dtype == "int32"
    assert DataDesc.get_list([("a", (1,))], None)[0].dtype is np.float32
    with pytest.raises(KeyError, match="no type for \\['a'\\]"):
        DataDesc.get_list([("a", (1,))], [("b", "int32")])


def test_batches():
    batch = DataBatch([mx.nd.ones((2, 3))], [mx.nd.ones(2)], pad=1)
    assert str(batch) == "DataBatch: data shapes: [(2, 3)] label shapes: [(2,)]"
    assert str(DataBatch((mx.nd.ones((2, 3)),))).endswith("label shapes: None")
    for arguments in ((mx.nd.ones(2),), ([mx.nd.ones(2)], mx.nd.ones(2))):
        with pytest.raises(AssertionError, match="must be a list of NDArray, not one NDArray"):
            DataBatch(*arguments)


def test_the_bases():
    base = DataIter(4)
    assert iter(base) is base and base.batch_size == 4
    assert (base.reset(), base.getdata(), base.getindex(), base.getpad()) == (None,) * 4
    with pytest.raises(StopIteration):
        base.next()
    with pytest.raises(StopIteration):
        MXDataIter(4).next()
    with pytest.raises(RuntimeError, match="no current batch"):
        MXDataIter(4).getdata()


def test_debug_skip_load_repeats_the_first_batch(tmp_path):
    (tmp_path / "a.csv").write_text("1\n2\n3\n")
    it = mx.io.CSVIter(data_csv=tmp_path / "a.csv", data_shape=(1,), batch_size=1)
    it.debug_skip_load()
    assert [it.next().data[0].asnumpy().item() for _ in range(5)] == [1] * 5


def test_resize_as_mxnet_does():
    it = mx.io.ResizeIter(seven(), 5)
    for _ in range(2):
        assert labels(it) == [[0, 1, 2], [3, 4, 5], [6, 0, 1], [0, 1, 2], [3, 4, 5]]
        it.reset()
    it = mx.io.ResizeIter(seven(), 2, reset_internal=False)
    found = []
    for _ in range(3):
        found += labels(it)
        it.reset()
    assert found == [[0, 1, 2], [3, 4, 5], [6, 0, 1], [0, 1, 2], [3, 4, 5], [6, 0, 1]]
    assert it.provide_data == [("data", (3,))] and it.batch_size == 3
    assert it.iter_next() and it.getpad() == 0 and it.getindex() is None
    assert it.getdata()[0].shape == it.getlabel()[0].shape == (3,)
    with pytest.raises(ValueError, match="no batch"):
        mx.io.ResizeIter(DataIterWithoutBatch(), 2).next()


class DataIterWithoutBatch(DataIter):
    provide_data = provide_label = ()

    def next(self):
        raise StopIteration


def test_prefetching_joins_and_renames():
    it = mx.io.PrefetchingIter(
        [seven(), seven(label="l")], rename_data=[{"data": "a"}, {"data": "b"}], rename_label=[{}, {"l": "m"}]
    )
    assert [d.name for d in it.provide_data] == ["a", "b"] and it.batch_size == 3
    assert [d.name for d in it.provide_label] == ["softmax_label", "m"]
    for _ in range(2):
        batches = list(it)
        assert [b.pad for b in batches] == [0, 0, 2]
        assert all(len(b.data) == len(b.label) == 2 for b in batches)
        assert [b.data[1].asnumpy().tolist() for b in batches] == [[0, 1, 2], [3, 4, 5], [6, 0, 1]]
        with pytest.raises(StopIteration):
            it.next()
        it.reset()
    assert it.iter_next() and it.getpad() == 0 and it.getindex() is None
    assert len(it.getdata()) == len(it.getlabel()) == 2
    it.reset()  # with a batch under way
    assert len(list(it)) == 3
    it.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("PrefetchingIter")]


def test_prefetching_raises_what_its_threads_met():
    class Broken(DataIter):
        provide_data, provide_label, calls = [DataDesc("x", (2,))], [], 0

        def next(self):
            self.calls += 1
            if self.calls == 2:
                raise KeyError("from the thread")
            return DataBatch([mx.nd.ones(2)], pad=0)

    it = mx.io.PrefetchingIter(Broken(2))
    assert it.next().pad == 0
    with pytest.raises(KeyError, match="from the thread"):
        it.next()
    it.reset()
    assert it.next().pad == 0
    it.close()


def test_prefetching_ends_when_it_is_closed():
    it = mx.io.PrefetchingIter(seven())
    it.next()
    it.close()
    it.close()
    for use in (it.next, it.reset):
        with pytest.raises(MXNetError, match="it is closed"):
            use()


def test_prefetching_that_is_closed_tells_who_waits():
    class Held(DataIter):
        provide_data, provide_label = [DataDesc("x", (2,))], []
        gate = threading.Event()

        def next(self):
            self.gate.wait(10)
            return DataBatch([mx.nd.ones(2)], pad=0)

    inner = Held(2)
    it, met = mx.io.PrefetchingIter(inner), []

    def consume():
        try:
            it.next()
        except BaseException as e:
            met.append(e)

    waiter, closer = threading.Thread(target=consume), threading.Thread(target=it.close)
    for t in (waiter, closer):
        t.start()
        time.sleep(0.1)
    inner.gate.set()
    for t in (waiter, closer):
        t.join(10)
    (problem,) = met
    assert isinstance(problem, MXNetError) and "it is closed" in str(problem)


def in_a_fork(function):
    """What a function of numbers, or the text of its error, gives in a fork of this process."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        signal.alarm(20)
        try:
            found = function()
        except MXNetError as e:
            found = str(e)
        os.write(theirs, json.dumps(found).encode())
        os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as answer:
        found = json.load(answer)
    os.waitpid(pid, 0)
    return found


def firsts(it):
    return [float(b.data[0].asnumpy()[0]) for b in it]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_goes_on_with_what_was_fetched_ahead():
    it = mx.io.PrefetchingIter(mx.io.NDArrayIter(np.arange(8.0), batch_size=2))
    it.next()
    for job in it._coming:
        assert job.error() is None

    def both_epochs():
        found = firsts(it)
        it.reset()
        return [found, firsts(it)]

    assert in_a_fork(both_epochs) == [[2, 4, 6], [0, 2, 4, 6]]
    assert firsts(it) == [2, 4, 6]
    it.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_makes_what_no_thread_has_begun():
    it, go = mx.io.PrefetchingIter(mx.io.NDArrayIter(np.arange(8.0), batch_size=2)), threading.Event()
    busy = Job(go.wait)
    it._workers.put(busy)
    while not busy.begun:
        time.sleep(0.001)
    it.next()
    assert not any(job.begun for job in it._coming)
    assert in_a_fork(lambda: firsts(it)) == [2, 4, 6]
    go.set()
    assert firsts(it) == [2, 4, 6]
    it.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_in_the_midst_of_a_batch_says_so():
    asked, go = threading.Event(), threading.Event()

    class Waiting(mx.io.NDArrayIter):
        def next(self):
            asked.set()
            go.wait()
            return super().next()

    it = mx.io.PrefetchingIter(Waiting(np.arange(8.0), batch_size=2))
    asked.wait()
    for use in (it.next, it.reset):
        assert f"process {os.getpid()} was forked while a thread made a batch" in in_a_fork(use)
    go.set()
    assert firsts(it) == [0, 2, 4, 6]
    it.close()


def test_an_interrupt_while_a_batch_is_asked_for_loses_none_of_the_next_epoch(monkeypatch):
    it, left = mx.io.PrefetchingIter(mx.io.NDArrayIter(np.arange(8.0), batch_size=2)), []
    put = it._workers.put

    def interrupted(*jobs):
        put(*jobs)
        if left:
            left.clear()
            raise KeyboardInterrupt

    monkeypatch.setattr(it._workers, "put", interrupted)
    for n in range(4):
        for _ in range(n):
            it.next()
        left.append(1)
        with pytest.raises(KeyboardInterrupt):
            it.reset()
        it.reset()
        assert firsts(it) == [0, 2, 4, 6]
        it.reset()
    it.close()


@pytest.mark.parametrize("returned", [None, 7, [mx.nd.ones(2)]])
def test_prefetching_what_is_no_batch(returned):
    class Odd(DataIter):
        provide_data, provide_label = [DataDesc("x", (2,))], []

        def next(self):
            return returned

    it = mx.io.PrefetchingIter(Odd(2))
    with pytest.raises(
        MXNetError, match=r"next\(\) of Odd of .* must return a DataBatch, or raise StopIteration; it returned"
    ):
        it.next()
    it.close()


def test_prefetching_what_does_not_fit_together():
    with pytest.raises(ValueError, match="at least one"):
        mx.io.PrefetchingIter([])
    with pytest.raises(ValueError, match="rename_data has 1 entries for 2"):
        mx.io.PrefetchingIter([seven(), seven()], rename_data=[{}])
    it = mx.io.PrefetchingIter([seven(), mx.io.NDArrayIter(np.zeros(3), None, 3)])
    it.next()
    with pytest.raises(ValueError, match="different numbers of batches"):
        it.next()
    it.close()
    it = mx.io.PrefetchingIter([mx.io.NDArrayIter(np.zeros(n), None, 3) for n in (1, 2)])
    with pytest.raises(ValueError, match="pads differ: \\[2, 1\\]"):
        it.next()
    it.close()


# -- the cursor --------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 30), st.integers(1, 12), st.lists(st.booleans(), min_size=1, max_size=30))
def test_rounded_batches_are_one_stream_of_examples(length, size, moves):
    """All batches end to end are all epochs end to end, whatever the sizes."""
    cursor, stream = BatchCursor(length, size), []
    for _ in moves:
        try:
            while True:
                spans, pad = cursor.next()
                assert sum(end - begin for _, begin, end in spans) == size and 0 <= pad < size
                stream += [(epoch, i) for epoch, begin, end in spans for i in range(begin, end)]
        except StopIteration:
            cursor.reset()
    assert stream == [(i // length, i % length) for i in range(len(stream))]
    assert len(stream) >= length


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 30), st.integers(1, 12), st.booleans(), st.integers(0, 20), st.integers(0, 5))
def test_a_cursor_goes_on_where_another_stood(length, size, round_batch, steps, known):
    def walk(cursor, steps):
        found = []
        for _ in range(steps):
            try:
                found.append(cursor.next())
            except StopIteration:
                found.append("end")
                cursor.reset()
        return found

    first = BatchCursor(lambda upto: min(length, upto + known), size, round_batch)
    walk(first, steps)
    second = BatchCursor(length, size, round_batch)
    second.load_state_dict(first.state_dict())
    assert walk(first, 10) == walk(second, 10)


@pytest.mark.parametrize(
    "damage",
    [
        {"epoch": [0]},
        {"position": [4]},
        {"ended": [1]},
        {"taken": [0, 2**61]},
        {"taken": [0]},
        {"taken": [[0], 0]},
        {"taken": 0},
        {"position": 11},
        {"position": 2**61},
        {"epoch": -1},
        {"started": None},
    ],
    ids=str,
)
def test_a_place_that_is_none_is_refused(damage):
    cursor = BatchCursor(10, 4)
    cursor.next()
    place = cursor.state_dict()
    with pytest.raises(ValueError, match="no place of an iterator of these examples"):
        cursor.load_state_dict({**place, **damage})
    assert cursor.state_dict() == place
    cursor.load_state_dict(json.loads(json.dumps(place)))
    assert cursor.next() == ([(0, 4, 8)], 0)


def test_absurd_batch_sizes():
    with pytest.raises(ValueError, match=r"less than 2\*\*31, got 100000000000000"):
        BatchCursor(5, 10**14)
    with pytest.raises(ValueError, match=r"a batch of 2000000000 has each of the 5 example\(s\) 400000000 times"):
        BatchCursor(5, 2 * 10**9).next()


def test_without_rounding_every_epoch_is_whole():
    cursor = BatchCursor(5, 3, round_batch=False)
    assert [cursor.next() for _ in range(2)] == [([(0, 0, 3)], 0), ([(0, 3, 5), (0, 0, 1)], 1)]
    cursor.reset()
    assert cursor.next() == ([(1, 0, 3)], 0)
    with pytest.raises(ValueError, match="batch_size") as caught:
        BatchCursor(5, 0)
    assert isinstance(caught.value, MXNetError)


def test_names_that_are_not_there():
    with pytest.raises(AttributeError, match="'ImageRecordItr', did you mean 'ImageRecordIter'"):
        mx.io.ImageRecordItr  # noqa: B018
    assert {"NDArrayIter", "ImageRecordIter"} <= set(dir(mx.io))


class Unhurried(mx.io.NDArrayIter):
    """Takes its time for a batch."""

    def next(self):
        time.sleep(0.02)
        return super().next()


def test_threads_share_a_prefetching_iter():
    """Each batch goes to one of them."""
    it, found = mx.io.PrefetchingIter(Unhurried(np.arange(12.0), batch_size=2)), []
    threads = [threading.Thread(target=lambda: found.extend(b.data[0].asnumpy()[0] for b in it)) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found) == [0, 2, 4, 6, 8, 10]


class Late(mx.io.NDArrayIter):
    """Takes its time between moving on and giving."""

    def getdata(self):
        time.sleep(0.002)
        return super().getdata()


def _image_iter():
    class Images(mx.image.ImageIter):
        def next_sample(self):
            if self.cur >= 12:
                raise StopIteration
            self.cur += 1
            time.sleep(0.001)
            return float(self.cur - 1), np.full((4, 4, 3), self.cur, np.uint8)

        def imdecode(self, s):
            return mx.nd.array(s)

    return Images(2, (3, 4, 4), imglist=[[0.0, "none"]], path_root=".")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Late(np.zeros(12), np.arange(12.0), batch_size=2),
        lambda: mx.io.ResizeIter(Late(np.zeros(12), np.arange(12.0), batch_size=2), 6),
        _image_iter,
    ],
    ids=["NDArrayIter", "ResizeIter", "ImageIter"],
)
def test_threads_share_an_iterator(make):
    """Each batch goes to one of them, and none is lost."""
    it, found = make(), []
    threads = [
        threading.Thread(target=lambda: found.extend(x for b in it for x in b.label[0].asnumpy())) for _ in range(3)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join(20)
    assert sorted(found) == [*range(12)]


def test_an_interrupt_leaves_an_iterator_to_other_threads():
    """Ctrl-C may come behind every call, also that of the lock."""
    it, found = mx.io.NDArrayIter(np.arange(4.0), batch_size=2), []

    def interrupting(frame, event, arg):
        if event == "return" and frame.f_code.co_name == "__enter__":
            raise KeyboardInterrupt
        return interrupting

    old = sys.gettrace()
    sys.settrace(interrupting)
    try:
        it.reset()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(old)
    t = threading.Thread(target=lambda: found.append(next(it).data[0].asnumpy().tolist()), daemon=True)
    t.start()
    t.join(20)
    assert found == [[0, 1]]


def test_copies_of_an_iterator_do_not_wait_for_it():
    it = mx.io.NDArrayIter(np.arange(4.0), batch_size=2)
    twin = pickle.loads(pickle.dumps(it))
    with it._object_lock:
        t = threading.Thread(target=lambda: found.append(next(twin).data[0].asnumpy().tolist()))
        found = []
        t.start()
        t.join(20)
    assert found == [[0, 1]]


@pytest.mark.parametrize("told", [None, "data", [3], 5])
def test_descriptions_that_are_none_are_named(told):
    class Odd(mx.io.DataIter):
        provide_data = provide_label = told

        def next(self):
            raise StopIteration

    with pytest.raises(TypeError, match="provide_data of Odd must be a list of DataDesc") as caught:
        mx.io.PrefetchingIter(Odd())
    assert isinstance(caught.value, MXNetError)
