"""Record files appear whole: closed, collected, left open, failed, on a full disk."""

import gc
import os
import subprocess
import sys
import threading

import pytest

from mxcore import drafts as drafts_module
from mxcore.base import MXNetError, MXNetWarning, error
from mxcore.drafts.names import waits_at
from mxcore_io_rec import make_index, recordio, source
from mxcore_io_rec.recordio import MXIndexedRecordIO, MXRecordIO

posix = pytest.mark.skipif(os.name == "nt", reason="forks, pipes and file size limits are POSIX")


def records(path):
    return list(MXRecordIO(path, "r"))


def drafts(folder):
    return [name for name in os.listdir(folder) if name.startswith(".mxcore-")]


def run(script, *args):
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, args)], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def old(tmp_path):
    """A pair with one record."""
    with MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "w") as record:
        record.write_idx(0, b"old")
    return tmp_path


def pair(folder, flag="w"):
    return MXIndexedRecordIO(folder / "a.idx", folder / "a.rec", flag)


def test_the_old_file_is_read_while_the_new_one_is_written(old):
    record = pair(old)
    record.write_idx(7, b"new" * 200000)
    assert records(old / "a.rec") == [b"old"] and pair(old, "r").read_idx(0) == b"old"
    assert record.tell() == 600008
    record.close()
    assert pair(old, "r").read_idx(7) == b"new" * 200000 and drafts(old) == []


def test_a_writer_that_is_never_closed(old):
    record = pair(old)
    record.write_idx(1, b"collected")
    del record
    assert pair(old, "r").read_idx(1) == b"collected"
    circle = {"record": pair(old)}
    circle["self"] = circle
    circle["record"].write_idx(2, b"in a circle")
    del circle
    gc.collect()
    assert pair(old, "r").read_idx(2) == b"in a circle" and drafts(old) == []


SCRIPT = """
import multiprocessing, os, sys
from mxcore_io_rec.recordio import MXRecordIO
def work(path):
    global kept
    kept = MXRecordIO(path, "w")
    kept.write(b"left open")
    if {raises}: raise SystemExit("as told")
if __name__ == "__main__":
    if {forked}:
        child = multiprocessing.get_context("fork").Process(target=work, args=(sys.argv[1],))
        child.start(); child.join()
    else:
        work(sys.argv[1])
"""


@posix
@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("forked", [False, True])
def test_a_process_that_ends_with_an_open_writer(raises, forked, old):
    done = run(SCRIPT.format(raises=raises, forked=forked), old / "a.rec")
    assert records(old / "a.rec") == [b"left open"] and drafts(old) == [], done.stderr


@posix
def test_a_forked_childs_end_completes_nothing(old):
    script = (
        "import os, sys\nfrom mxcore_io_rec.recordio import MXRecordIO\nw = MXRecordIO(sys.argv[1], 'w')\n"
        "w.write(b'parent')\npid = os.fork()\nif pid == 0:\n    sys.exit()\nos.waitpid(pid, 0)\n"
        "assert MXRecordIO(sys.argv[1], 'r').read() == b'old'\n"
    )
    done = run(script, old / "a.rec")
    assert done.returncode == 0 and done.stderr == "" and records(old / "a.rec") == [b"parent"]


def test_reset_completes_and_begins_anew(old):
    record = pair(old)
    record.write_idx(1, b"first")
    record.reset()
    assert records(old / "a.rec") == [b"first"]
    assert record.keys == [] and record.tell() == 0
    record.write_idx(2, b"second")
    record.close()
    assert records(old / "a.rec") == [b"second"] and pair(old, "r").keys == [2]


def test_a_block_that_fails_keeps_the_old_files(old):
    with pytest.raises(ZeroDivisionError), pair(old) as record:
        record.write_idx(1, b"half")
        raise ZeroDivisionError
    assert not record.is_open and pair(old, "r").keys == [0] and drafts(old) == []


def test_discard(old):
    record = MXRecordIO(old / "a.rec", "w")
    record.write(b"half")
    record.discard()
    assert records(old / "a.rec") == [b"old"] and drafts(old) == []
    reader = MXRecordIO(old / "a.rec", "r")
    reader.discard()
    assert not reader.is_open


def test_an_index_that_cannot_be_written_keeps_the_records(old):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        MXIndexedRecordIO(old / "nowhere" / "a.idx", old / "a.rec", "w")
    gc.collect()
    assert records(old / "a.rec") == [b"old"] and drafts(old) == []


def test_a_reader_in_the_moment_between_the_two_renames(old, monkeypatch):
    """Both are new, or both old, also while the writer lives."""
    replace, seen = os.replace, []

    def look(a, b):
        replace(a, b)
        with monkeypatch.context() as m:
            m.setattr(os, "replace", replace)
            record = pair(old, "r")
            seen.append(record.read_idx(record.keys[0]))
            assert len(record.keys) == 1

    record = pair(old)
    record.write_idx(0, b"new")  # as long as the old one, under the same key
    monkeypatch.setattr(os, "replace", look)
    record.close()
    assert seen == [b"old", b"new", b"new"]


def test_a_file_that_is_replaced_while_it_is_opened(old, monkeypatch):
    from mxcore_io_rec import source

    read_all, times = source.read_all, []

    def slow(path):
        if not times:
            times.append(1)
            with pair(old) as record:
                record.write_idx(5, b"replaced")
        return read_all(path)

    monkeypatch.setattr(source, "read_all", slow)
    assert pair(old, "r").read_idx(5) == b"replaced"


@posix
def test_links_and_pipes(old):
    (old / "link.rec").symlink_to("a.rec")
    with MXRecordIO(old / "link.rec", "w") as record:
        record.write(b"through")
    assert (old / "link.rec").is_symlink() and records(old / "a.rec") == [b"through"]
    script = (
        "from mxcore_io_rec.recordio import MXRecordIO\nw = MXRecordIO('/dev/stdout', 'w')\nw.write(b'x')\nw.close()"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout
    (old / "b.rec").write_bytes(out)
    assert records(old / "b.rec") == [b"x"]


FULL = """
import resource, sys
from mxcore import drafts as drafts_module
from mxcore.base import MXNetError, MXNetWarning, error
import mxcore_io_rec, mxcore as mx
from mxcore_io_rec.recordio import MXIndexedRecordIO, MXRecordIO
folder, what = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
def write(record):
    for i in range(20000):
        record.write_idx(i, b"x" * 1000) if what == "pair" else record.write(b"x" * 1000)
def attempt(work):
    try:
        work()
    except MXNetError as e:
        assert isinstance(e, OSError) and "a." in str(e) and "File too large" in str(e), e
        print("told")
if what == "index":
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, 20000))
    attempt(lambda: mxcore_io_rec.make_index(folder + "/a.rec", folder + "/a.idx"))
else:
    path = folder + "/a.rec"
    pair = MXIndexedRecordIO(folder + "/a.idx", path, "w") if what == "pair" else MXRecordIO(path, "w")
    attempt(lambda: write(pair))
    if len(sys.argv) == 3 and what == "records":
        attempt(pair.close)
    del pair
"""


@posix
@pytest.mark.parametrize("what, told", [("records", 2), ("pair", 1), ("index", 1)])
def test_a_full_disk_keeps_the_old_files(what, told, old):
    if what == "index":
        (old / "a.rec").write_bytes((old / "a.rec").read_bytes() * 2)
    before = {name: (old / name).read_bytes() for name in os.listdir(old)}
    done = run(FULL, old, what)
    assert (done.stdout.split(), done.stderr) == (["told"] * told, "")
    assert {name: (old / name).read_bytes() for name in os.listdir(old)} == before


def test_a_full_disk_that_shows_only_at_the_end(old, monkeypatch):
    def full(descriptor):
        raise OSError(28, os.strerror(28))

    record = pair(old)
    record.write_idx(1, b"new")
    with monkeypatch.context() as m:
        m.setattr(os, "fsync", full)
        with pytest.raises(MXNetError, match=r"cannot write '.*a\.rec'.*No space"):
            record.close()
    assert pair(old, "r").keys == [0] and not record.is_open and drafts(old) == []


def test_a_new_index_takes_the_place_of_what_a_killed_writer_left(old):
    """An index that waits for these very records is read; one that is made anew counts more."""
    waiting = waits_at(str(old / "a.idx"), os.stat(old / "a.rec"))
    for make, key in ((lambda: None, 33), (lambda: make_index(old / "a.rec", old / "a.idx"), 0)):
        with open(waiting, "wb") as file:
            file.write(b"33\t0\n")
        make()
        assert pair(old, "r").keys == [key] and drafts(old) == []


@pytest.fixture
def in_the_middle(old, monkeypatch):
    """A pair, and a thread between a record and its line, until it is told to go on; what befell it."""
    record, there, go_on, said = pair(old), threading.Event(), threading.Event(), []
    plain = drafts_module.Draft.write

    def write(draft, data):
        if draft is record.fidx and not there.is_set():
            there.set()
            assert go_on.wait(60)
        plain(draft, data)

    def work():
        try:
            for key in (1, 2):
                record.write_idx(key, b"record %d" % key)
        except Exception as e:
            said.append(e)

    monkeypatch.setattr(drafts_module.Draft, "write", write)
    thread = threading.Thread(target=work)
    thread.start()
    assert there.wait(60)
    yield record, go_on, said, thread
    go_on.set()
    thread.join()
    for draft in record._drafts:
        draft.discard()


ENDS = {
    "close": lambda record: record.close(),
    "discard": lambda record: record.discard(),
    "end of the process": lambda record: record._unclosed(),
}


@pytest.mark.parametrize("way", ENDS)
def test_who_ends_waits_for_who_is_in_the_middle_of_a_record(way, old, in_the_middle):
    record, go_on, said, thread = in_the_middle
    ending = threading.Thread(target=ENDS[way], args=(record,))
    ending.start()
    ending.join(0.2)
    assert ending.is_alive() and records(old / "a.rec") == [b"old"]
    go_on.set()
    ending.join(60)
    thread.join(60)
    assert [type(e) for e in said] == [type(error(ValueError, ""))] and "a.rec' is closed" in str(said[0])
    with pytest.raises(MXNetError, match="is closed"):
        record.tell()
    with pair(old, "r") as found:
        assert [found.read_idx(k) for k in found.keys] == ([b"old"] if way == "discard" else [b"record 1"])
        assert list(found) == [] and records(old / "a.rec") == [found.read_idx(found.keys[0])]
    assert drafts(old) == []


def test_the_end_of_the_process_does_not_wait_for_ever(old, in_the_middle, monkeypatch):
    monkeypatch.setattr(recordio, "_PATIENCE", 0.05)
    with pytest.warns(MXNetWarning, match="comes to no end"):
        in_the_middle[0]._unclosed()
    assert records(old / "a.rec") == [b"old"] and pair(old, "r").read_idx(0) == b"old"


@pytest.mark.parametrize("amid", [False, True])
@pytest.mark.parametrize("indexed", [False, True])
def test_what_was_never_closed_does_not_come_behind_what_is_newer(old, monkeypatch, amid, indexed):
    """A traceback may hold a writer for long; the collector comes at any time, also while the newer one is closed."""

    def begin(what):
        record = pair(old) if indexed else MXRecordIO(str(old / "a.rec"), "w")
        record.write_idx(0, what) if indexed else record.write(what)
        return record

    left = [begin(b"older")]
    newer, plain = begin(b"newer"), recordio.commit

    def commit(*drafts):
        if amid:
            left.clear()
            gc.collect()
        plain(*drafts)

    monkeypatch.setattr(recordio, "commit", commit)
    newer._unclosed() if not amid and indexed else newer.close()
    left.clear()
    gc.collect()
    assert records(old / "a.rec") == [b"newer"] and drafts(old) == []
    if indexed:
        assert pair(old, "r").read_idx(0) == b"newer"


def test_the_last_that_was_never_closed_is_completed(old):
    """Whichever of them is collected first."""
    for order in (0, 1):
        left = []
        for what in (b"older", b"newer"):
            left.append(MXRecordIO(str(old / "a.rec"), "w"))
            left[-1].write(what)
        for i in (order, 0):
            del left[i]
            gc.collect()
        assert records(old / "a.rec") == [b"newer"] and drafts(old) == []


def test_a_writer_that_was_not_opened_to_the_end_leaves_all_as_it_was(old, monkeypatch):
    def interrupt(record):
        raise TimeoutError

    monkeypatch.setattr(MXRecordIO, "_begin", interrupt)
    with pytest.raises(TimeoutError):
        pair(old)
    monkeypatch.undo()
    gc.collect()
    assert records(old / "a.rec") == [b"old"] and drafts(old) == []
    assert pair(old, "r").read_idx(0) == b"old"


DAEMON = """
import sys, threading, time
from mxcore_io_rec.recordio import MXIndexedRecordIO
sys.setswitchinterval(1e-6)
record = MXIndexedRecordIO(sys.argv[2], sys.argv[1], "w")
def work():
    for key in range(1 << 60):
        record.write_idx(key, b"%d" % key)
threading.Thread(target=work, daemon=True).start()
time.sleep(float(sys.argv[3]))
"""


@pytest.mark.parametrize("seconds", [0, 0.02, 0.05])
def test_a_process_that_ends_while_a_daemon_thread_writes(seconds, old):
    found = run(DAEMON, old / "a.rec", old / "a.idx", seconds)
    assert found.returncode == 0, found.stderr
    with pair(old, "r") as record:
        assert [record.read_idx(key) for key in record.keys] == records(old / "a.rec")
    assert drafts(old) == []


def test_a_signal_handler_may_close_what_its_thread_writes(old, monkeypatch):
    record, plain = pair(old), drafts_module.Draft.write

    def write(draft, data):
        plain(draft, data)
        if draft is record.fidx:
            record.close()  # as a handler would, behind the line

    monkeypatch.setattr(drafts_module.Draft, "write", write)
    record.write_idx(3, b"last")
    assert pair(old, "r").read_idx(3) == b"last" and drafts(old) == []


def test_a_reader_that_is_closed_while_it_reads(old, monkeypatch):
    record = pair(old, "r")
    plain = source.LocalFile._read

    def read(file, position, n):
        record.close()
        return plain(file, position, n)

    monkeypatch.setattr(source.LocalFile, "_read", read)
    with pytest.raises(MXNetError, match="closed while another thread read it"):
        record.read_idx(0)
