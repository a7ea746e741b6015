"""The loader: batches, workers, and everything that can go wrong with them."""

import copy
import gc
import json
import multiprocessing
import os
import pickle
import random
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import mxcore as mx
from mxcore._interrupts import Uninterrupted
from mxcore.gluon.data import ArrayDataset, BatchSampler, DataLoader, Dataset, SequentialSampler, SimpleDataset
from mxcore.gluon.data.workers import transport
from tests.descriptors import not_there, open_descriptors
from tests.marks import slow

X = np.random.RandomState(0).rand(20, 3, 5).astype("float32")
Y = np.arange(20)
WORKERS = [{}, {"num_workers": 2}, {"num_workers": 2, "thread_pool": True}]
PARALLEL = WORKERS[1:]


def workers():
    return [p for p in multiprocessing.active_children() if p.name.startswith("DataLoader")]


@pytest.fixture(autouse=True)
def nothing_stays_behind(monkeypatch, tmp_path_factory):
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    gc.collect()
    before = open_descriptors()
    yield
    gc.collect()
    assert workers() == []
    end = time.monotonic() + 5
    while len(open_descriptors()) > len(before) and time.monotonic() < end:  # others have one open for a moment
        time.sleep(0.01)
    assert len(open_descriptors()) <= len(before), not_there(before)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("kw", WORKERS)
@pytest.mark.parametrize("wrap", [lambda x: x, mx.nd.array])
def test_all_samples_come_in_order(kw, wrap):
    loader = DataLoader(ArrayDataset(wrap(X), Y), 8, **kw)
    assert len(loader) == 3
    for _ in range(2):
        batches = list(loader)
        assert [x.shape[0] for x, y in batches] == [8, 8, 4]
        assert all(isinstance(a, mx.nd.NDArray) for pair in batches for a in pair)
        assert (np.concatenate([x.asnumpy() for x, y in batches]) == X).all()
        assert (np.concatenate([y.asnumpy() for x, y in batches]) == Y).all()
        assert batches[0][0].dtype == np.float32 and batches[0][1].dtype == np.int64


@pytest.mark.parametrize("kw", WORKERS)
@pytest.mark.parametrize("last, sizes", [("keep", [8, 8, 4]), ("discard", [8, 8]), ("rollover", [8, 8])])
def test_last_batch(kw, last, sizes):
    loader = DataLoader(Y, 8, last_batch=last, **kw)
    assert [b.shape[0] for b in loader] == sizes
    assert [b.shape[0] for b in loader] == (sizes if last != "rollover" else [8, 8, 8])


@pytest.mark.parametrize("kw", WORKERS)
def test_shuffle_follows_the_seed(kw):
    def order():
        np.random.seed(3)
        return np.concatenate([b.asnumpy() for b in DataLoader(Y, 8, shuffle=True, **kw)]).tolist()

    assert order() == order() != Y.tolist() and sorted(order()) == Y.tolist()


@pytest.mark.parametrize("kw", WORKERS)
def test_big_batches_and_views_of_them(kw):
    big = np.random.RandomState(0).rand(6, 100, 100).astype("float32")
    for i, batch in enumerate(DataLoader(big, 2, **kw)):
        # Memory handed over belongs to the loader's process: it may be written to.
        batch += 1
        assert (batch.asnumpy() == big[2 * i : 2 * i + 2] + 1).all()


def mixed(samples):
    return {
        "host": np.stack([x for x, y in samples]),
        "device": mx.nd.array([y for x, y in samples]),
        "text": ("a", len(samples)),
        "big": np.full((3000,), samples[0][1]),
    }


@pytest.mark.parametrize("kw", WORKERS)
def test_own_batchify_keeps_types(kw):
    first, *_ = DataLoader(ArrayDataset(X, Y), 10, batchify_fn=mixed, **kw)
    assert isinstance(first["host"], np.ndarray) and isinstance(first["device"], mx.nd.NDArray)
    assert first["text"] == ("a", 10) and (first["host"] == X[:10]).all() and first["device"].shape == (10,)
    first["big"][:] = 7
    assert (first["big"] == 7).all()


@pytest.mark.parametrize("kw", WORKERS)
def test_batch_sampler(kw):
    sampler = BatchSampler(SequentialSampler(6), 4)
    assert [b.shape for b in DataLoader(Y, batch_sampler=sampler, **kw)] == [(4,), (2,)]


@pytest.mark.parametrize(
    "kw, kind, text",
    [
        ({}, ValueError, "batch_size must be specified"),
        ({"batch_size": 2, "shuffle": True, "sampler": SequentialSampler(3)}, ValueError, "shuffle must not"),
        ({"batch_size": 2, "batch_sampler": BatchSampler(SequentialSampler(3), 2)}, ValueError, "batch_sampler"),
        ({"batch_size": 2, "last_batch": "half"}, ValueError, "half"),
        ({"batch_size": 2, "timeout": 0}, AssertionError, "timeout must be positive"),
        ({"batch_size": "2"}, ValueError, "batch_size must be 1 or more, got '2'"),
        ({"batch_size": 2, "num_workers": "2"}, TypeError, "num_workers must be a whole number, got '2'"),
    ],
)
def test_bad_arguments(kw, kind, text):
    with pytest.raises(kind, match=text) as e:
        DataLoader(Y, **kw)
    assert isinstance(e.value, mx.base.MXNetError)


@pytest.mark.parametrize("kw", WORKERS)
@pytest.mark.parametrize("more", [{"pin_memory": True}, {"prefetch": 0}, {"prefetch": 50}, {"num_workers": -1}])
def test_accepted_arguments(kw, more):
    assert sum(b.shape[0] for b in DataLoader(Y, 3, **{**kw, **more})) == 20


@pytest.mark.parametrize("kw", PARALLEL)
def test_several_rounds_at_once(kw):
    loader = DataLoader(Y, 8, **kw)
    pairs = [(a.asnumpy()[0], b.asnumpy()[0]) for a, b in zip(loader, loader)]
    assert pairs == [(0, 0), (8, 8), (16, 16)]


@pytest.mark.parametrize("kw", PARALLEL)
def test_refresh_works_ahead(kw):
    loader = DataLoader(Y, 8, auto_reload=True, **kw)
    assert loader._ready is not None
    for _ in range(2):
        assert [b.shape[0] for b in loader] == [8, 8, 4]
        assert loader._ready is not None
    loader.clean()
    assert loader._ready is None and [b.shape[0] for b in loader] == [8, 8, 4]
    loader.clean()


def test_workers_are_reused_and_end_with_the_loader():
    loader = DataLoader(Y, 8, num_workers=2)
    assert workers() == []
    list(loader)
    first = sorted(p.pid for p in workers())
    list(loader)
    assert len(first) == 2 and sorted(p.pid for p in workers()) == first
    del loader
    assert workers() == []


def test_a_dropped_iterator_ends_its_workers():
    loader = DataLoader(Y, 2, num_workers=2)
    batches = iter(loader)
    next(batches)
    assert len(workers()) == 2
    del batches
    assert workers() == []
    for _ in loader:
        break
    assert workers() == [] and len(list(loader)) == 10


# -- what goes wrong -----------------------------------------------------------------------------------------


class Trouble(Dataset):
    """Sample 0 is well; the others misbehave in their own way."""

    def __len__(self):
        return 6

    def __getitem__(self, i):
        if i == 1:
            raise KeyError("sample one")
        if i == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if i == 3:
            time.sleep(3)
        if i == 4:
            os._exit(3)
        if i == 5:
            raise Local("not picklable")
        return i


class Local(Exception):
    def __init__(self, text):
        super().__init__(text, lambda: None)


def load(i, **kw):
    return list(DataLoader(Trouble(), batch_sampler=[[0], [0, i]], **kw))


@pytest.mark.parametrize("kw", WORKERS)
def test_exceptions_pass_with_their_traceback(kw):
    with pytest.raises(KeyError, match="sample one") as e:
        load(1, **kw)
    cause = str(e.value.__cause__)
    if kw == WORKERS[1]:
        assert 'raise KeyError("sample one")' in cause and "while reading sample 1" in cause and "worker" in cause
    else:
        assert any(entry.name == "__getitem__" for entry in e.traceback)


class Raising(Dataset):
    def __init__(self, kind):
        self.kind = kind

    def __len__(self):
        return 2

    def __getitem__(self, i):
        raise self.kind("the dataset's own")


@pytest.mark.parametrize("kw", WORKERS)
@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_a_dataset_that_wants_to_end_the_program_does(kw, kind):
    with pytest.raises(kind, match="the dataset's own"):
        list(DataLoader(Raising(kind), 1, **kw))


def test_exceptions_that_cannot_be_pickled():
    with pytest.raises(RuntimeError, match="Local in a DataLoader worker") as e:
        load(5, num_workers=1)
    assert "not picklable" in str(e.value.__cause__)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_killed_worker_is_named():
    start = time.monotonic()
    with pytest.raises(
        RuntimeError, match=r"worker 1 \(process \d+\) of 2 was killed by signal 9 .*while making batch 1.*memory"
    ):
        load(2, num_workers=2)
    assert time.monotonic() - start < 5


def test_a_worker_that_exits_is_named():
    with pytest.raises(RuntimeError, match=r"worker 1 \(process \d+\) of 2 ended with exit code 3"):
        load(4, num_workers=2)


@pytest.mark.parametrize("kw", PARALLEL)
def test_timeout(kw):
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"within timeout=0.3 s.*batch"):
        load(3, timeout=0.3, **kw)
    assert time.monotonic() - start < 2.5


def _pairs():
    host, device = np.ones(2, "float32"), mx.nd.ones((2,))
    return {
        "an array of NumPy": (device, host),
        "a number": (device, 1.0),
        "in tuples": ((device, host), (host, device)),
        "shapes": (device, mx.nd.ones((3,))),
        "dtypes": (device, mx.nd.ones((2,), dtype="int32")),
        "a number first": (1.0, device),
        "numbers and arrays": (host, 1.0),
    }


@pytest.mark.parametrize("kw", WORKERS)
@pytest.mark.parametrize("pair", _pairs())
def test_samples_that_do_not_fit_together(kw, pair):
    with pytest.raises(ValueError, match="cannot make a batch of samples of ") as e:
        list(DataLoader(SimpleDataset(list(_pairs()[pair])), 2, **kw))
    assert isinstance(e.value, mx.base.MXNetError)


@pytest.mark.parametrize("kw", WORKERS)
@pytest.mark.parametrize(
    "sample, words",
    [
        ("ab", "of str; give"),
        ((1.0, "ab"), r"of str \(element 1 of each\); give the DataLoader a batchify_fn"),
        ((1.0, (2, np.array("ab"))), r"of <U2 \(element 1 of element 1 of each\)"),
        ((1j, 2), r"of complex \(element 0 of each\)"),
        ((1, {"a": 3}), r"of dict \(element 1 of each\)"),
        ((0, (mx.nd.ones(1), 1)), None),
    ],
)
def test_samples_that_no_array_holds(kw, sample, words):
    batches = DataLoader(SimpleDataset([sample] * 2), 2, **kw)
    if words is None:
        assert [x.shape for x in next(iter(batches))[1]] == [(2, 1), (2,)]
        return
    with pytest.raises(ValueError, match="cannot make a batch of samples " + words):
        list(batches)


class Bad:
    """The sample that fails is the first to be ready."""

    def __init__(self, kind):
        self.kind = kind

    def __len__(self):
        return 24

    def __getitem__(self, i):
        if i == 13:
            raise self.kind("bad sample")
        time.sleep(0.02)
        return np.float32(i)


@pytest.mark.parametrize("kw", WORKERS)
@pytest.mark.parametrize("kind", [ValueError, StopIteration])
def test_good_batches_before_a_bad_one_come_first(kw, kind):
    # The failing batch is the short one, so that it overtakes those before it.
    batches = iter(DataLoader(Bad(kind), batch_sampler=[[0, 1, 2], [3, 4, 5], [6, 7, 8], [13], [14]], **kw))
    assert [next(batches)[0].asscalar() for _ in range(3)] == [0, 3, 6]
    with pytest.raises(RuntimeError if kind is StopIteration else ValueError) as e:
        next(batches)
    assert "bad sample" in str(e.value if kind is ValueError else e.value.__cause__)
    assert next(batches, None) is None


@pytest.mark.parametrize("kw", PARALLEL)
def test_a_broken_sampler(kw):
    def indices():
        yield [0]
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        list(DataLoader(Y, batch_sampler=indices(), **kw))


# -- how batches travel --------------------------------------------------------------------------------------


def values(**kw):
    big = np.arange(12)[:, None] * np.ones((12, 3000), "int64")
    return [b.asnumpy()[:, 0].tolist() for b in DataLoader(big, 5, num_workers=2, **kw)]


WANTED = [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]


@pytest.mark.parametrize("missing", [None, "memfd", "descriptors"])
def test_without_memory_files(missing, monkeypatch):
    if missing == "memfd":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    elif missing == "descriptors":
        monkeypatch.setattr(transport, "_CAN_HAND_OVER", False)
    assert values() == WANTED


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs files in memory")
def test_without_a_temporary_folder(monkeypatch):
    """Files in memory need none."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere"])
    assert values() == WANTED


def test_full_memory_goes_to_disk(monkeypatch):
    write, made = os.write, []

    def full(fd, data):
        if os.path.exists(f"/proc/self/fd/{fd}") and "memfd" in os.readlink(f"/proc/self/fd/{fd}"):
            raise OSError(28, "No space left on device")
        return write(fd, data)

    monkeypatch.setattr(os, "write", full)
    left, right = multiprocessing.Pipe()
    parts = transport.pack(np.arange(5000))
    with left, right:
        transport.send(left, (1, False), parts, "unused", "a batch")
        made.append(transport.receive(right))
    assert made[0][0] == (1, False) and (made[0][1] == np.arange(5000)).all()


@pytest.mark.parametrize("where", ["worker", "loader"])
def test_what_no_file_takes_is_told(where):
    """Files in memory are bounded by `ulimit -f`, too."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    n = 8 if where == "worker" else 4000  # indices, of which a few need no file
    data = np.ones((64, 40, 40) if where == "worker" else (4000, 1), "float32")
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
        loader = DataLoader(ArrayDataset(data), n, shuffle=True, num_workers=2)
        with pytest.raises(OSError, match=r"no file takes its \d+ bytes.*File too large.*ulimit -f") as caught:
            list(loader)
        rows = sum(len(batch) for batch in DataLoader(ArrayDataset(data), n, num_workers=2, thread_pool=True))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    text = str(caught.value)
    taken = int(text.partition("takes its ")[2].partition(" ")[0])
    assert isinstance(caught.value, mx.MXNetError) and rows == len(data)
    if where == "worker":
        assert "the batch of DataLoader worker " in text and data[:8].nbytes < taken < data[:8].nbytes + 1000
    else:
        assert "the list of samples for DataLoader worker " in text and taken > transport.INLINE


def test_a_full_disk_is_told(monkeypatch):
    left, right = multiprocessing.Pipe()

    def full(fd, data):
        raise OSError(28, "No space left on device")

    parts = transport.pack(np.arange(5000))
    with left, right:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(mx.MXNetError, match="a batch cannot be handed over: no file takes its 40.* No space left"):
            transport.send(left, (1, False), parts, "unused", "a batch")
        monkeypatch.undo()
        transport.send(left, (1, False), parts, "unused", "a batch")
        assert (transport.receive(right)[1] == np.arange(5000)).all()


def test_small_messages_fit_the_socket():
    # Eight answers of the largest inline size must not block a worker whose loader is busy.
    left, right = socket.socketpair()
    with left, right:
        left.setblocking(False)
        for _ in range(8):
            assert left.send(bytes(transport.INLINE + 300)) == transport.INLINE + 300


class Ragged(Dataset):
    def __len__(self):
        return 300_000

    def __getitem__(self, i):
        return np.full(i % 3, i)


@pytest.mark.parametrize("missing", [None, *slow("descriptors")])
def test_batches_of_very_many_samples(missing, monkeypatch):
    """Neither the indices of such a batch nor its parts fit into a socket's buffer."""
    if missing == "descriptors":
        monkeypatch.setattr(transport, "_CAN_HAND_OVER", False)
    loader = DataLoader(Ragged(), 75_000, num_workers=1, prefetch=4, batchify_fn=list, timeout=60)
    assert [(len(batch), batch[1].tolist()) for batch in loader] == [
        (75_000, [first + 1]) for first in range(0, 300_000, 75_000)
    ]


def test_indices_that_are_arrays():
    names = [[np.array([i, i + 1])] for i in range(3)] + [[mx.nd.array([3, 4])]]

    class Pairs(Dataset):
        def __getitem__(self, pair):
            return [type(pair).__name__, *(int(i) for i in pair)]

    loader = DataLoader(Pairs(), batch_sampler=names, num_workers=1, batchify_fn=list)
    assert [batch[0] for batch in loader] == [
        ["ndarray", 0, 1],
        ["ndarray", 1, 2],
        ["ndarray", 2, 3],
        ["NDArray", 3, 4],
    ]


class Kinds(Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, i):
        return type(i), int(i)


@pytest.mark.parametrize("kw", WORKERS)
@pytest.mark.parametrize("kind", [int, np.int32, np.int64])
def test_the_dataset_gets_what_the_sampler_gives(kw, kind):
    loader = DataLoader(Kinds(), 2, sampler=[kind(2), kind(0), kind(1)], batchify_fn=list, **kw)
    assert [*loader] == [[(kind, 2), (kind, 0)], [(kind, 1)]]


@pytest.mark.parametrize("kw", WORKERS)
def test_what_arrays_mean_decides_what_batches_are(kw):
    for mode, kind in ((False, mx.nd.NDArray), (True, mx.np.ndarray)):
        with mx.util.np_array(mode):
            for sample in (mx.nd.ones((2,)), mx.np.ones((2,)), np.ones(2)):
                assert [type(b) for b in DataLoader([sample], 1, **kw)] == [kind]


@pytest.mark.parametrize("kw", WORKERS)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_a_loader_that_is_used_have_workers_of_their_own(kw, copied):
    loader = DataLoader([1, 2, 3], 2, auto_reload=True, **kw)
    batches = iter(loader)
    next(batches)
    other = copied(loader)
    assert [b.asnumpy().tolist() for b in other] == [[1, 2], [3]]
    assert [b.asnumpy().tolist() for b in batches] == [[3]] and len(list(loader)) == 2
    loader.clean(), other.clean()


class Drawn(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return np.array([random.random(), np.random.rand(), mx.nd.random.uniform(shape=(1,)).asscalar()])


def test_random_numbers_depend_on_the_seed_only(monkeypatch):
    from mxcore.gluon.data import dataloader

    def drawn(n):
        monkeypatch.setattr(dataloader, "_rounds", iter(range(5)))
        random.seed(1)
        np.random.seed(2)
        loader = DataLoader(Drawn(), 3, num_workers=n)
        return np.concatenate([b.asnumpy() for _ in range(2) for b in loader])

    one, three = drawn(1), drawn(3)
    assert (one == three).all() and len(np.unique(one)) == one.size


def in_fresh_python(tmp_path, code, *args):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    return subprocess.Popen(
        [sys.executable, str(script), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_spawned_workers(tmp_path):
    code = """
        import multiprocessing
        import numpy as np
        from mxcore.gluon.data import ArrayDataset, DataLoader

        if __name__ == "__main__":
            multiprocessing.set_start_method("spawn")
            data = ArrayDataset(np.arange(20000).reshape(4, 5000), np.arange(4))
            print([y.asnumpy().tolist() for x, y in DataLoader(data, 2, num_workers=1)])
            try:
                list(DataLoader(data.transform(lambda x, y: y), 2, num_workers=1))
            except TypeError as e:
                print(e)
    """
    out, err = in_fresh_python(tmp_path, code).communicate(timeout=60)
    assert "[[0, 1], [2, 3]]" in out, err
    assert "'spawn'" in out and "pickle" in out and "thread_pool" in out


@pytest.mark.parametrize("first, told", [("True", True), ("i", False)])
def test_a_hint_at_the_main_module_is_for_workers_that_never_worked(tmp_path, first, told):
    code = f"""
        import multiprocessing, os
        from mxcore.gluon.data import DataLoader

        class Ending(list):
            def __getitem__(self, i):
                return os._exit(1) if {first} else i

        if __name__ == "__main__":
            multiprocessing.set_start_method("spawn")
            try:
                list(DataLoader(Ending(range(2)), 1, num_workers=1))
            except RuntimeError as e:
                print("exit code 1" in str(e), "__main__" in str(e))
    """
    out, err = in_fresh_python(tmp_path, code).communicate(timeout=60)
    assert out.split() == ["True", str(told)], err


def test_spawned_workers_that_cannot_take_over_the_dataset(tmp_path):
    """The loader raises what was raised there, with the worker's traceback, and hangs for nobody."""
    code = """
        import multiprocessing
        from mxcore.gluon.data import DataLoader

        class Picky(list):
            def __setstate__(self, state):
                raise KeyError("not here")

        if __name__ == "__main__":
            multiprocessing.set_start_method("spawn")
            data = Picky(range(4))
            data.note = 1
            for _ in range(2):
                try:
                    list(DataLoader(data, 2, num_workers=2))
                except KeyError as e:
                    print(e, "took over" in str(e.__cause__), "__setstate__" in str(e.__cause__))
    """
    out, err = in_fresh_python(tmp_path, code).communicate(timeout=60)
    assert out.splitlines() == ["'not here' True True"] * 2, err


@pytest.fixture
def folder():
    """Of a short name: the address of a fork server's socket, which lies in it, has 107 bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        yield Path(name)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_workers_wait_for_a_slow_loader_and_leave_with_a_killed_one(tmp_path, folder, monkeypatch, method):
    """Also under a fork server, whose children they are."""
    code = """
        import multiprocessing, sys, time
        import numpy as np
        from mxcore.gluon.data import DataLoader

        if __name__ == "__main__":
            multiprocessing.set_start_method(sys.argv[1])
            batches = iter(DataLoader(np.arange(2000 * 20).reshape(20, 2000), 2, num_workers=2))
            next(batches)
            time.sleep(5)
            read = sum(1 for _ in zip(range(8), batches))
            print(read, *(p.pid for p in multiprocessing.active_children()), flush=True)
            time.sleep(60)
    """
    monkeypatch.setenv("TMPDIR", str(folder))
    process = in_fresh_python(tmp_path, code, method)
    with process:
        read, *pids = process.stdout.readline().split() or [""]
        process.kill()
        err = process.stderr.read()
    assert read == "8" and len(pids) == 2, err

    def running(pid):
        try:
            with open(f"/proc/{pid}/stat") as f:
                return f.read().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    deadline = time.monotonic() + 10
    while any(map(running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(running, pids))
    assert not [f.name for f in folder.iterdir() if not f.name.startswith("pymp-")]  # sockets of multiprocessing itself


class Ending(Dataset):
    """Its data end earlier than its length says."""

    def __len__(self):
        return 12

    def __getitem__(self, i):
        return next(iter([] if i == 7 else [i]))


@pytest.mark.parametrize("kw", WORKERS)
def test_a_dataset_that_ends_early_is_an_error(kw):
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        list(DataLoader(Ending(), 2, **kw))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_want_of_descriptors_is_told(tmp_path):
    code = """
        import os, resource
        import numpy as np
        from mxcore.gluon.data import DataLoader

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

        def limit(number):
            resource.setrlimit(resource.RLIMIT_NOFILE, (number, most))

        def attempt(batches):
            try:
                list(batches)
            except OSError as e:
                print(e)

        loader = DataLoader(np.ones((20, 5000)), 2, num_workers=2)
        list(DataLoader(np.ones((2, 2)), 2, num_workers=2))  # whatever is imported late
        limit(len(os.listdir("/proc/self/fd")) - 1)
        attempt(loader)
        limit(100)
        batches = iter(loader)
        next(batches)
        limit(len(os.listdir("/proc/self/fd")) - 1)
        attempt(batches)
        limit(100)
        print(len(list(loader)))
    """
    out, err = in_fresh_python(tmp_path, code).communicate(timeout=60)
    first, second, last = out.splitlines()
    assert "DataLoader: cannot start worker 0 of 2" in first and "ulimit -n" in first, err
    assert "cannot take a batch from DataLoader worker" in second and last == "10", err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_loaders_start_in_many_threads(tmp_path):
    code = """
        import sys, threading
        import numpy as np
        from mxcore.gluon.data import DataLoader

        sys.setswitchinterval(1e-6)
        found = []

        def load():
            for _ in range(3):
                found.append(sum(float(b.sum().asscalar()) for b in DataLoader(np.arange(12), 2, num_workers=2)))

        threads = [threading.Thread(target=load) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        print(found == [66.0] * 12)
    """
    out, err = in_fresh_python(tmp_path, code).communicate(timeout=60)
    assert out == "True\n", err


def test_threads_share_a_round():
    """Each batch goes to one of them."""

    class Unhurried(Dataset):
        def __len__(self):
            return 12

        def __getitem__(self, i):
            time.sleep(0.01)
            return i

    batches, found = iter(DataLoader(Unhurried(), 2, num_workers=2, thread_pool=True)), []
    threads = [threading.Thread(target=lambda: found.extend(b.asnumpy()[0] for b in batches)) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found) == [0, 2, 4, 6, 8, 10]


class Slow(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, i):
        time.sleep(0.1)
        return i


@pytest.mark.parametrize("kw", WORKERS)
def test_closing_ends_the_round_of_threads_that_wait(kw):
    """They get its end, whichever of them was waiting for the workers, and as soon as it is closed."""
    for _ in range(4):
        batches, ends = iter(DataLoader(Slow(), 3, **kw)), []

        def consume(batches=batches, ends=ends):
            try:
                for _ in batches:
                    pass
                ends.append("the end")
            except BaseException as e:
                ends.append(repr(e))

        threads = [threading.Thread(target=consume) for _ in range(2)]
        for t in threads:
            t.start()
        time.sleep(0.15)
        batches.close()
        for t in threads:
            t.join(10)
        assert ends == ["the end"] * 2


class Deaf(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, i):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(60)


def test_closing_does_not_wait_for_workers_that_hang():
    batches = iter(DataLoader(Deaf(), 1, num_workers=1))
    waiter = threading.Thread(target=lambda: list(batches))
    waiter.start()
    time.sleep(0.3)
    batches.close()
    waiter.join(10)
    assert not waiter.is_alive()


def test_threads_share_a_loader_without_workers():
    """Each batch goes to one of those that ask."""

    class Slow:
        def __len__(self):
            return 12

        def __getitem__(self, i):
            time.sleep(0.002)
            return float(i)

    batches, found = iter(DataLoader(Slow(), batch_size=2)), []
    threads = [threading.Thread(target=lambda: found.extend(b.asnumpy()[0] for b in batches)) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found) == [0, 2, 4, 6, 8, 10]


# -- forks of a process that has a loader --------------------------------------------------------------------

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")


def forked(function):
    """Call a function in a fork of this process and here at once: (found there, found here)."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        signal.alarm(30)
        try:
            found = function()
        except BaseException as e:
            found = [isinstance(e, mx.base.MXNetError), str(e)]
        os.write(theirs, json.dumps(found).encode())
        os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as answer:
        here = function()
        there = json.load(answer)
    os.waitpid(pid, 0)
    return there, here


def numbers(batches):
    return [b.asnumpy().tolist() for b in batches]


@forks
@pytest.mark.parametrize("kw", PARALLEL)
def test_a_fork_has_workers_of_its_own(kw):
    loader, parent = DataLoader(Y, 2, shuffle=True, timeout=5, **kw), os.getpid()
    list(loader)

    def rounds():
        np.random.seed(os.getpid() == parent)  # another order in each process
        found = [sorted(sum(numbers(loader), [])) for _ in range(3)]
        loader._spare_pool.close()
        return found

    assert forked(rounds) == (wanted := [Y.tolist()] * 3, wanted)


@forks
@pytest.mark.parametrize("kw", PARALLEL)
def test_a_fork_cannot_go_on_with_a_round(kw):
    loader = DataLoader(Y, 8, timeout=5, **kw)
    batches = iter(loader)
    next(batches)
    (known, text), here = forked(lambda: numbers(batches))
    assert known and f"belong to process {os.getpid()}" in text and "iter(loader)" in text
    assert here == [Y[8:16].tolist(), Y[16:].tolist()]


@forks
@pytest.mark.parametrize("kw", PARALLEL)
def test_a_fork_makes_anew_what_was_made_ahead(kw):
    loader = DataLoader(Y, 8, auto_reload=True, timeout=5, **kw)

    def rounds():
        found = numbers(loader)
        loader.clean()
        return found

    wanted = [Y[:8].tolist(), Y[8:16].tolist(), Y[16:].tolist()]
    assert forked(rounds) == (wanted, wanted)


@forks
def test_workers_leave_though_a_fork_lives():
    loader = DataLoader(Y, 8, num_workers=2)
    list(loader)
    pid = os.fork()
    if not pid:
        time.sleep(30)
        os._exit(0)
    start = time.monotonic()
    del loader
    assert workers() == [] and time.monotonic() - start < 0.9
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


@forks
def test_a_fork_that_exits_leaves_the_workers_alone(tmp_path):
    code = """
        import os, sys
        import numpy as np
        from mxcore.gluon.data import DataLoader

        loader = DataLoader(np.arange(8), 4, num_workers=2)
        list(loader)
        pid = os.fork()
        if not pid:
            sys.exit(0)
        os.waitpid(pid, 0)
        print([b.asnumpy().tolist() for b in loader])
    """
    out, err = in_fresh_python(tmp_path, code).communicate(timeout=60)
    assert out == "[[0, 1, 2, 3], [4, 5, 6, 7]]\n", err


@pytest.mark.parametrize("used", [False, True])
def test_workers_in_a_worker(used):
    inner = DataLoader(Y, 8, num_workers=1)
    if used:
        list(inner)

    class Outer(Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return len(list(inner))

    with pytest.raises(mx.base.MXNetError, match="a worker process cannot start workers of its own"):
        list(DataLoader(Outer(), 1, num_workers=1))
    assert numbers(inner) == [Y[:8].tolist(), Y[8:16].tolist(), Y[16:].tolist()]
    inner = DataLoader(Y, 8, num_workers=1, thread_pool=True)
    if used:
        list(inner)
    assert numbers(DataLoader(Outer(), 1, num_workers=1)) == [[3], [3]]


class Importing(Dataset):
    """Needs a module."""

    def __len__(self):
        return 4

    def __getitem__(self, i):
        import late_for_workers

        return np.float32(late_for_workers.found + i)


def test_workers_start_while_a_thread_imports(monkeypatch, tmp_path):
    """A forked child would wait for ever for a module that its parent was importing."""
    from mxcore import _importing

    (tmp_path / "late_for_workers.py").write_text(
        "import sys, time\nsys.begun_by_test.set()\ntime.sleep(0.5)\nfound = 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    begun = threading.Event()
    monkeypatch.setattr(sys, "begun_by_test", begun, raising=False)
    thread = threading.Thread(target=_importing.load, args=("late_for_workers",))
    thread.start()
    try:
        assert begun.wait(20)
        got = [b.asnumpy().tolist() for b in DataLoader(Importing(), 2, num_workers=2, timeout=20)]
    finally:
        thread.join()
        sys.modules.pop("late_for_workers", None)
    assert got == [[1, 2], [3, 4]]


@pytest.mark.parametrize("kw", PARALLEL)
def test_interrupted_before_it_begins(monkeypatch, kw):
    """What is collected then says nothing."""
    from mxcore.gluon.data import dataloader

    def interrupted():
        raise KeyboardInterrupt

    said = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    monkeypatch.setattr(dataloader, "_entropy", interrupted)
    loader = DataLoader(ArrayDataset(X, Y), 4, **kw)
    with pytest.raises(KeyboardInterrupt):
        iter(loader)
    gc.collect()
    assert said == []
    monkeypatch.undo()
    assert len(list(loader)) == 5


class Pictures(Dataset):
    """Batches that are too large for a message."""

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return np.full((4, 32, 32), i, "float32")


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files cannot be counted")
@pytest.mark.parametrize("first", [1, *slow(2, 3)])
def test_ctrl_c_anywhere_leaves_no_files_or_processes_behind(interrupted, first, monkeypatch):
    # One at the first lines of a finalizer is lost there; workers leave once nobody holds their connections.
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)
    files = ("process_pool.py", "transport.py", "_interrupts.py", "popen_fork.py", "connection.py", "process.py")

    def work():
        assert len(list(DataLoader(Pictures(), 4, num_workers=1))) == 2

    lines = interrupted(0, files, work)
    assert lines > 100
    gc.collect()
    before = open_descriptors()
    for n in range(first, lines, 29):
        interrupted(n, files, work)
        gc.collect()
        end = time.monotonic() + 20  # also for what other threads have open for a moment
        while (len(open_descriptors()), workers()) != (len(before), []) and time.monotonic() < end:
            time.sleep(0.001)
        assert (len(open_descriptors()), workers()) == (len(before), []), (n, not_there(before))


def test_ctrl_c_waits_for_the_end_of_a_region(ctrl_c):
    done = []
    with pytest.raises(KeyboardInterrupt), Uninterrupted() as outer:
        with Uninterrupted() as inner:
            signal.raise_signal(signal.SIGINT)
            done.append((inner.came, outer.came))
        done.append((inner.came, outer.came))
    assert done == [(True, False), (True, True)]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt) as told, Uninterrupted():
        signal.raise_signal(signal.SIGINT)
        raise OSError("meanwhile")
    assert isinstance(told.value.__context__, OSError)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Uninterrupted() as region:
        signal.raise_signal(signal.SIGINT)
    assert not region.came


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork is POSIX's")
def test_a_child_that_another_thread_forks_in_a_region_is_deaf_to_nothing(ctrl_c):
    found = []

    def fork():
        pid = os.fork()
        if not pid:
            os._exit(0 if signal.getsignal(signal.SIGINT) is signal.default_int_handler else 1)
        found.append(os.waitpid(pid, 0)[1])

    with Uninterrupted(), Uninterrupted():
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join(20)
    assert found == [0] and signal.getsignal(signal.SIGINT) is signal.default_int_handler


#: Work on a second context that asks for a module when it first runs, and a round that begins meanwhile.
PENDING = """
import numpy as np
import mxcore as mx
y = mx.nd.dot(mx.nd.ones((1024, 1024), ctx=mx.cpu(1)), mx.nd.ones((1024, 1024), ctx=mx.cpu(1)))
noise = mx.nd.random.normal(shape=y.shape, ctx=mx.cpu(1)) + y
data = mx.gluon.data.ArrayDataset(np.zeros((64, 3), "f4"))
print(len(list(mx.gluon.data.DataLoader(data, 16, num_workers=2))), noise.shape)
"""


def test_a_round_begins_while_another_context_has_work_that_imports():
    done = subprocess.run([sys.executable, "-c", PENDING], capture_output=True, text=True, timeout=100)
    assert done.stdout.split() == ["4", "(1024,", "1024)"], done.stderr


BESIDE_FORKS = """
import os, threading, time
from mxcore.gluon.data import DataLoader, SimpleDataset
stop, worst = threading.Event(), []

def fork():
    while not stop.is_set():
        start = time.monotonic()
        pid = os.fork()
        if not pid:
            os._exit(0)
        worst.append(time.monotonic() - start)
        os.waitpid(pid, 0)

thread = threading.Thread(target=fork)
thread.start()
try:
    found = [len(list(DataLoader(SimpleDataset(list(range(8))), 4, num_workers=2))) for _ in range(10)]
finally:
    stop.set()
    thread.join(60)
print(found == [2] * 10, 0 < max(worst) < 20)  # not until somebody's patience ends
"""


def test_rounds_begin_while_another_thread_forks():
    """In a process of its own: where filelock is loaded, as Ray does, it refuses a fork beside another thread's."""
    done = subprocess.run([sys.executable, "-c", BESIDE_FORKS], capture_output=True, text=True, timeout=300)
    assert done.stdout == "True True\n", done.stderr


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="what a process does cannot be seen")
def test_who_waits_for_the_end_of_workers_may_hurry(ctrl_c):
    """A worker that does not leave is killed once the user has pressed Ctrl-C, not seconds later."""
    loader = iter(DataLoader(Pictures(), 1, num_workers=1))
    next(loader)
    pool = loader._pool
    main, stopped = threading.get_ident(), []

    def press():
        """Once the loader waits: a collection of garbage before it may take longer than any time that is told."""
        frame, end = None, time.monotonic() + 30
        while frame is None and time.monotonic() < end:
            time.sleep(0.01)
            frame = sys._current_frames()[main]
            while frame is not None and not frame.f_code.co_filename.endswith("process_pool.py"):
                frame = frame.f_back
        del frame
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    killer = threading.Thread(target=press)
    (worker,) = pool._workers
    kill = worker.process.kill
    worker.process.kill = lambda: (stopped.append(worker.process.exitcode), kill())
    os.kill(worker.process.pid, signal.SIGSTOP)
    # Of two signals that have not been heard yet the lower number comes first, which would end it.
    while Path(f"/proc/{worker.process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.001)
    killer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            loader.close()
    finally:
        killer.join()
        if stopped == []:
            kill()  # nobody else ends it
    assert stopped == [None] and workers() == []


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("before", [False, True])  # the library is imported, so that its own handlers run later
def test_exit_handlers_read_batches(threads, before):
    """Pools end with the process: what they have not brought is made by who asks for it."""
    program = f"""
import atexit
def last():
    print(*(float(b.sum().asscalar()) for b in rest), *(float(b.sum().asscalar()) for b in loader), len(list(fresh)))
{"import mxcore as mx" if before else ""}
atexit.register(last)
{"" if before else "import mxcore as mx"}
make = lambda n: mx.gluon.data.DataLoader(
    mx.gluon.data.ArrayDataset(mx.nd.arange(n)), 2, num_workers=2, thread_pool={threads}, timeout=20)
loader, other, fresh = make(6), make(8), make(4)
list(loader)
rest = iter(other)
next(rest)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "5.0 9.0 13.0 1.0 5.0 9.0 2\n"


def test_threads_that_cannot_be_started_end_those_that_were(monkeypatch):
    start, started = threading.Thread.start, []

    def limited(thread):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    loader = DataLoader(list(range(4)), 2, num_workers=2, thread_pool=True)
    with monkeypatch.context() as m:
        m.setattr(threading.Thread, "start", limited)
        with pytest.raises(mx.MXNetError, match="^DataLoader: thread 1 of 2 cannot be started: .*; use fewer"):
            list(loader)
    started[0].join(10)
    assert not started[0].is_alive() and len(list(loader)) == 2


@pytest.mark.parametrize("collected", [False, True])
def test_threads_end_where_nobody_could_tell_them(monkeypatch, collected):
    """Ctrl-C, or a deadline, may come amid what ends a pool, which is not called again."""
    from mxcore.gluon.data.workers import thread_pool

    def interrupted(jobs, count):
        raise KeyboardInterrupt

    monkeypatch.setattr(thread_pool, "_LOOK", 0.05)
    monkeypatch.setattr(thread_pool, "_stop", interrupted)
    before = set(threading.enumerate())
    pool = thread_pool.ThreadPool(2, list(range(4)), list)
    threads = set(threading.enumerate()) - before
    pool.submit(0, 0, [1, 2])
    assert pool.collect(20, 20) == (0, False, [1, 2])
    time.sleep(0.2)
    pool.submit(1, 0, [3])  # they wait on
    assert len(threads) == 2 and pool.collect(20, 20)[2] == [3]
    if collected:
        with monkeypatch.context() as quiet:
            quiet.setattr(sys, "unraisablehook", lambda told: None)
            del pool
            gc.collect()
    else:
        with pytest.raises(KeyboardInterrupt):
            pool.close()
    for t in threads:
        t.join(20)
        assert not t.is_alive()
