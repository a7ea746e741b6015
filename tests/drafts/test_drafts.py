"""`mxcore.drafts`: what a draft keeps, whom it waits for, what it leaves."""

import contextlib
import errno
import functools
import gc
import io
import os
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import mxcore as mx
from mxcore import drafts
from mxcore._io_files import open_read, write_atomic
from mxcore.base import MXNetError
from mxcore.drafts import Draft, atomic_writer, atomic_writers, blocks, commit, pairs, places, read_pair, settle, sweep
from mxcore.drafts.names import prefix_of, waits_at

posix = pytest.mark.skipif(os.name == "nt", reason="links, modes and descriptors are POSIX")


def left(folder):
    return sorted(name for name in os.listdir(folder) if name.startswith(".mxcore-"))


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "f.bin"
    path.write_bytes(b"old")
    return path


def test_a_draft_is_seen_when_it_is_committed(old):
    draft = Draft(old)
    draft.write(b"new")
    draft.flush()
    assert old.read_bytes() == b"old" and draft.position == 3 and not draft.failed
    draft.commit()
    assert old.read_bytes() == b"new" and left(old.parent) == []
    draft.commit()
    draft.discard()
    assert old.read_bytes() == b"new"


def test_the_draft_of_a_dead_writer_is_removed_and_that_of_a_living_one_is_not(old):
    script = "import os, sys\nfrom mxcore.drafts import Draft\nDraft(sys.argv[1]).write(b'x')\nos._exit(0)"
    subprocess.run([sys.executable, "-c", script, str(old)], check=True)
    [dead] = left(old.parent)
    first, second = Draft(old), Draft(old)
    assert len(left(old.parent)) == 2 and dead not in left(old.parent)
    second.write(b"second")
    second.commit()
    first.write(b"first")
    first.commit()
    assert old.read_bytes() == b"first" and left(old.parent) == []


def days_old(path):
    os.utime(path, (os.stat(path).st_mtime - 2 * 86400,) * 2)
    return path


def write(path):
    with atomic_writer(path) as file:
        file.write(b"new")


DEAD = {
    "it exits": "Draft(sys.argv[1]).write(b'x')\nos._exit(0)",
    "a thread is cut off at the end": "import threading\n"
    "def work():\n    draft = Draft(sys.argv[1])\n    begun.set()\n    while True:\n        draft.write(b'x')\n"
    "begun = threading.Event()\nthreading.Thread(target=work, daemon=True).start()\nbegun.wait()",
}


@pytest.mark.parametrize("way", DEAD)
def test_a_dead_writers_draft_goes_after_an_hour_where_its_name_is_never_written_again(old, way):
    script = f"import os, sys\nfrom mxcore.drafts import Draft\n{DEAD[way]}"
    subprocess.run([sys.executable, "-c", script, str(old.parent / "net-0001.params")], check=True, timeout=120)
    [dead] = left(old.parent)
    write(old)
    assert left(old.parent) == [dead], "some file systems do not show that its writer lives"
    days_old(old.parent / dead)
    write(old)
    assert left(old.parent) == []


@posix
def test_a_living_writers_draft_stays_however_old(old):
    draft = Draft(old.parent / "other")
    [name] = left(old.parent)
    days_old(old.parent / name)
    write(old)
    assert left(old.parent) == [name]
    draft.write(b"other")
    draft.commit()
    assert (old.parent / "other").read_bytes() == b"other"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_draft_that_a_child_of_its_writer_has_stays(old):
    """As with every lock of a file: whoever has the draft open holds it."""
    script = (
        "import os, sys\nfrom mxcore.drafts import Draft\ndraft = Draft(sys.argv[1])\n"
        "if os.fork():\n    os._exit(0)\nprint(flush=True)\nsys.stdin.read()\nos._exit(0)"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", script, str(old.parent / "other")], **pipes) as writer:
        writer.stdout.readline()
        assert writer.wait(60) == 0
        [name] = left(old.parent)
        days_old(old.parent / name)
        write(old)
        assert left(old.parent) == [name]
        writer.stdin.close()
        writer.stdout.read()  # until the child ends
    for _ in range(100):
        write(old)
        if not left(old.parent):
            break
        time.sleep(0.05)
    assert left(old.parent) == []


@posix
def test_only_drafts_are_swept(old):
    draft = f"{prefix_of('g.bin')}{'0' * 16}.tmp"
    names = [".mxcore-x.tmp", draft[:-4], f"{draft}~", draft.upper().replace(".MXCORE", ".mxcore"), f"a{draft}"]
    for name in names:
        (old.parent / name).write_bytes(b"")
        days_old(old.parent / name)
    link = old.parent / f"{draft[:-5]}1.tmp"
    link.symlink_to(old)
    os.utime(link, (0, 0), follow_symlinks=False)
    (old.parent / f"{draft[:-5]}2.tmp").mkdir()
    days_old(old.parent / f"{draft[:-5]}2.tmp")
    os.mkfifo(old.parent / f"{draft[:-5]}3.tmp")
    days_old(old.parent / f"{draft[:-5]}3.tmp")
    days_old(old)
    before = sorted(os.listdir(old.parent))
    write(old)
    assert sorted(os.listdir(old.parent)) == before


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_waits_for_a_file_that_is_complete_stays(tmp_path, elsewhere):
    """Whoever reads the pair completes it, however late; its first file may be in another folder."""
    (tmp_path / "folder").mkdir()
    owner, index = tmp_path / ("folder" if elsewhere else ".") / "a.rec", tmp_path / "a.idx"
    owner.write_bytes(b"newer")
    index.write_bytes(b"old")
    waiting = Path(waits_at(str(index), days_old(owner).stat()))
    waiting.write_bytes(b"newer")
    days_old(waiting)
    write(tmp_path / "other")
    assert settle(index, owner) == str(index) and index.read_bytes() == b"newer" and left(tmp_path) == []


@pytest.mark.parametrize("order", [1, -1])
def test_what_waits_for_a_file_that_was_never_completed_goes_with_it(tmp_path, monkeypatch, order):
    first = tmp_path / f"{prefix_of('a.rec')}{'0' * 16}.tmp"
    first.write_bytes(b"records")
    waiting = Path(waits_at(str(tmp_path / "a.idx"), days_old(first).stat()))
    waiting.write_bytes(b"")
    days_old(waiting)
    names = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: sorted(names(folder))[::order])
    write(tmp_path / "other")
    assert os.listdir(tmp_path) == ["other"]


def test_a_writer_looks_at_few_drafts(old, monkeypatch):
    monkeypatch.setattr(sweep, "_LOOKED_AT", 3)
    for i in range(8):
        path = old.parent / f"{prefix_of('g.bin')}{i:016x}.tmp"
        path.write_bytes(b"")
        days_old(path)
    for n in (5, 2, 0):
        write(old)
        assert len(left(old.parent)) == n


def test_a_pair_that_waits_is_completed_before_its_second_file_is_written_anew(tmp_path):
    """However often the folder was looked through before, and however many files it has."""
    for i in range(2000):
        (tmp_path / str(i)).write_bytes(b"")
    owner, index = tmp_path / "a.rec", tmp_path / "a.idx"
    for n in range(3):
        write(tmp_path / "other")
        owner.write_bytes(b"records of one that is dead")
        waiting = Path(waits_at(str(index), owner.stat()))
        waiting.write_bytes(b"their index")
        write(index)
        assert settle(index, owner) == str(index) and index.read_bytes() == b"new" and not waiting.exists(), n


def test_what_came_to_wait_while_a_draft_was_written_does_not_come_behind_it(tmp_path):
    owner, index = tmp_path / "a.rec", tmp_path / "a.idx"
    owner.write_bytes(b"records of one that is dead")
    with atomic_writer(index) as file:
        waiting = Path(waits_at(str(index), owner.stat()))
        waiting.write_bytes(b"their index")
        file.write(b"new")
    assert not waiting.exists()
    assert settle(index, owner) == str(index) and index.read_bytes() == b"new"


def test_drafts_of_other_files_are_left_alone(old):
    other = old.parent / prefix_of(str(old.parent / "g.bin"))
    other = other.with_name(other.name + "x.tmp")
    other.write_bytes(b"")
    with atomic_writer(old) as file:
        file.write(b"new")
    assert left(old.parent) == [other.name]


def test_names_of_one_checksum_do_not_meet(tmp_path):
    """CRC-32 is the same for both: what waits as one's index would be taken for the other's."""
    one, other = tmp_path / "plumless", tmp_path / "buckeroo"
    assert prefix_of(str(one)) != prefix_of(str(other))


def test_many_writers_at_once(old):
    def write(i):
        for _ in range(20):
            with atomic_writer(old) as file:
                file.write(b"%d" % i * 1000)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    content = old.read_bytes()
    assert len(content) == 1000 and len(set(content)) == 1 and left(old.parent) == []


@posix
def test_an_old_files_mode_holds_from_the_first_moment(old):
    old.chmod(0o600)
    draft = Draft(old)
    [name] = left(old.parent)
    assert stat.S_IMODE((old.parent / name).stat().st_mode) == 0o600
    draft.discard()


@posix
def test_an_old_files_owner_is_kept(old, monkeypatch):
    if os.getuid() != 0:
        pytest.skip("only root may give files away")
    os.chown(old, 1234, 4321)
    before = old.stat().st_ino
    with atomic_writer(old) as file:
        file.write(b"new")
    assert (old.stat().st_uid, old.stat().st_gid) == (1234, 4321) and old.stat().st_ino != before


@posix
def test_a_file_that_may_not_be_written_is_refused(old, monkeypatch):
    def refused(opens):
        def refuse(path, *args, **kwargs):
            if path == str(old):
                raise PermissionError(errno.EACCES, "no", path)
            return opens(path, *args, **kwargs)

        return refuse

    monkeypatch.setattr(io, "FileIO", refused(io.FileIO))
    Draft(old).discard()  # a file that may be written and not read
    monkeypatch.setattr(os, "open", refused(os.open))
    with pytest.raises(PermissionError, match="cannot write '.*f.bin'") as caught:
        Draft(old)
    assert isinstance(caught.value, MXNetError) and left(old.parent) == []


@posix
def test_a_file_that_is_removed_while_it_is_looked_at_is_written(old, monkeypatch):
    os_stat = os.stat

    def stat_then_remove(path, *args, **kwargs):
        found = os_stat(path, *args, **kwargs)
        if path == str(old):
            old.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(os, "stat", stat_then_remove)
    with atomic_writer(old) as file:
        file.write(b"new")
    monkeypatch.undo()
    assert old.read_bytes() == b"new"


@posix
def test_where_the_folder_takes_no_file_an_old_one_is_written_in_place(old, monkeypatch):
    os_open = os.open

    def refuse(path, flags, *args, **kwargs):
        if flags & os.O_EXCL:
            raise PermissionError(errno.EACCES, "no")
        return os_open(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)
    inode = old.stat().st_ino
    with atomic_writer(old) as file:
        file.write(b"new")
    assert old.read_bytes() == b"new" and old.stat().st_ino == inode
    with pytest.raises(PermissionError):
        Draft(old.parent / "fresh")


@posix
def test_links_are_written_through(old):
    folder = old.parent / "elsewhere"
    folder.mkdir()
    (folder / "link").symlink_to("../f.bin")
    (folder / "dangling").symlink_to(old.parent / "made")
    for name, target in (("link", old), ("dangling", old.parent / "made")):
        with atomic_writer(folder / name) as file:
            file.write(b"new")
        assert (folder / name).is_symlink() and target.read_bytes() == b"new"
    (folder / "ring").symlink_to("ring")
    with pytest.raises(OSError, match="ring"):
        Draft(folder / "ring")


@posix
@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_standard_output_is_written_not_replaced(kind, tmp_path):
    if not os.path.exists("/dev/stdout"):
        pytest.skip("needs /dev/stdout")
    script = (
        "import sys\nfrom mxcore.drafts import atomic_writer\nprint('a', flush=True)\n"
        "with atomic_writer('/dev/stdout') as f:\n    f.write(b'b')\n"
    )
    if kind == "pipe":
        out = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout
    else:
        with open(tmp_path / "out", "ab") as file:
            inode = os.fstat(file.fileno()).st_ino
            subprocess.run([sys.executable, "-c", script], stdout=file, check=True)
        assert (tmp_path / "out").stat().st_ino == inode and os.listdir(tmp_path) == ["out"]
        out = (tmp_path / "out").read_bytes()
    assert out.endswith(b"b")


@posix
def test_a_named_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    with atomic_writer(tmp_path / "pipe") as file:
        file.write(b"through")
    reader.join()
    assert got == [b"through"] and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_neither_writes_nor_completes(old):
    draft = Draft(old)
    draft.write(b"parent")
    pid = os.fork()
    if pid == 0:
        try:
            draft.write(b"child" * 100000)
            draft.commit()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert old.read_bytes() == b"old" and len(left(old.parent)) == 1
    draft.commit()
    assert old.read_bytes() == b"parent" and left(old.parent) == []


def test_a_draft_that_failed_is_not_committed(old, monkeypatch):
    draft = Draft(old)
    monkeypatch.setattr(draft._place._raw, "problem", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert draft.failed
    with pytest.raises(MXNetError, match="cannot write '.*f.bin'.*No space left") as caught:
        draft.commit()
    assert isinstance(caught.value, OSError) and old.read_bytes() == b"old" and left(old.parent) == []


# -- two files that belong together -------------------------------------------------------------------


def pair(folder, content):
    both = Draft(folder / "a.rec"), Draft(folder / "a.idx")
    for draft in both:
        draft.write(content)
    return both


def read(folder):
    return (folder / "a.rec").read_bytes(), Path(settle(folder / "a.idx", folder / "a.rec")).read_bytes()


def test_two_files_are_completed_together(tmp_path, monkeypatch):
    commit(*pair(tmp_path, b"one"))
    assert read(tmp_path) == (b"one", b"one")
    replace, done = os.replace, []

    def stuck(a, b):
        """The disk fails after the first file has been renamed."""
        if str(b).endswith((".rec", ".idx")):
            done.append(b)
        if len(done) == 2:
            raise OSError(errno.EIO, "no more")
        replace(a, b)

    with monkeypatch.context() as m:
        m.setattr(os, "replace", stuck)
        with pytest.raises(OSError, match="a.idx"):
            commit(*pair(tmp_path, b"two"))
        assert (tmp_path / "a.idx").read_bytes() == b"one"
        assert read(tmp_path) == (b"two", b"two")  # from where it waits
    assert read(tmp_path) == (b"two", b"two") and (tmp_path / "a.idx").read_bytes() == b"two"
    assert left(tmp_path) == []


def dies_between(monkeypatch, folder, content):
    """A writer is killed between the two renames; here its disk fails."""
    replace = os.replace

    def stuck(a, b):
        if str(b).endswith(".idx"):
            raise OSError(errno.EIO, "no more")
        replace(a, b)

    with monkeypatch.context() as m:
        m.setattr(os, "replace", stuck)
        with pytest.raises(OSError):
            commit(*pair(folder, content))


@pytest.mark.parametrize("first", ["a.rec", "b.rec"])
def test_a_writer_that_fails_leaves_the_pair_of_the_one_before_it_whole(tmp_path, monkeypatch, first):
    commit(*pair(tmp_path, b"one"))
    dies_between(monkeypatch, tmp_path, b"two")
    with pytest.raises(ZeroDivisionError), atomic_writers(tmp_path / first, tmp_path / "a.idx"):
        raise ZeroDivisionError
    assert read(tmp_path) == (b"two", b"two") and left(tmp_path) == []


@pytest.mark.parametrize("order", [1, -1])
def test_a_pair_that_is_replaced_while_it_is_read_is_read_again(tmp_path, order):
    commit(*pair(tmp_path, b"one"))
    files, writers = [lambda index: index, lambda index: tmp_path / "a.rec"], [b"two", b"three"]

    def both(index):
        found = []
        for which in files[::order]:
            found.append(Path(which(index)).read_bytes())
            if writers and not found[1:]:
                commit(*pair(tmp_path, writers.pop(0)))
        return found

    assert read_pair(tmp_path / "a.idx", tmp_path / "a.rec", both) == [b"three", b"three"]


def test_a_pair_whose_second_file_moves_while_it_is_read(tmp_path, monkeypatch):
    commit(*pair(tmp_path, b"one"))
    dies_between(monkeypatch, tmp_path, b"two")
    waiting = waits_at(str(tmp_path / "a.idx"), os.stat(tmp_path / "a.rec"))
    monkeypatch.setattr(pairs, "unless_alive", lambda path, action: False)  # its writer lives
    seen = []

    def both(index):
        seen.append(index)
        if len(seen) == 1:
            os.rename(waiting, tmp_path / "a.idx")
        return Path(index).read_bytes()

    assert read_pair(tmp_path / "a.idx", tmp_path / "a.rec", both) == b"two"
    assert seen == [waiting, str(tmp_path / "a.idx")]


def test_errors_of_reading_a_pair(tmp_path):
    def fails(index):
        raise FileNotFoundError(index)

    with pytest.raises(FileNotFoundError, match="a.idx"):
        read_pair(tmp_path / "a.idx", tmp_path / "a.rec", fails)
    commit(*pair(tmp_path, b""))

    def restless(index):
        commit(*pair(tmp_path, b"x" * (1 + os.path.getsize(tmp_path / "a.rec"))))

    with pytest.raises(MXNetError, match="a.rec' is replaced again and again"):
        read_pair(tmp_path / "a.idx", tmp_path / "a.rec", restless)


@posix
def test_two_writers_of_two_files_do_not_mix_them(tmp_path, monkeypatch):
    other, replace, begun = pair(tmp_path, b"other"), os.replace, []

    def meanwhile(a, b):
        """Another writer comes when the first of the two files has been renamed."""
        replace(a, b)
        if str(b).endswith(".rec") and not begun:
            begun.append(threading.Thread(target=commit, args=other))
            begun[0].start()
            begun[0].join(0.2)

    mine = pair(tmp_path, b"mine")
    monkeypatch.setattr(os, "replace", meanwhile)
    commit(*mine)
    begun[0].join()
    assert read(tmp_path) == (b"other", b"other") and left(tmp_path) == []


@posix
def test_a_reader_that_sees_no_locks_may_settle_first(tmp_path, monkeypatch):
    both, replace = pair(tmp_path, b"new"), os.replace

    def meanwhile(a, b):
        replace(a, b)
        if str(b).endswith(".rec"):
            replace(waits_at(str(tmp_path / "a.idx"), os.stat(b)), tmp_path / "a.idx")

    monkeypatch.setattr(os, "replace", meanwhile)
    commit(*both)
    assert read(tmp_path) == (b"new", b"new") and left(tmp_path) == [] and both[1].done


@pytest.mark.parametrize("nth", [1, 2])
def test_two_files_of_which_one_cannot_be_completed(nth, tmp_path, monkeypatch):
    commit(*pair(tmp_path, b"one"))
    both, calls = pair(tmp_path, b"two"), []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) == nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        commit(*both)
    assert read(tmp_path) == (b"one", b"one") and left(tmp_path) == []


def test_what_waits_for_another_file_is_not_taken(tmp_path):
    commit(*pair(tmp_path, b"one"))
    waiting = waits_at(str(tmp_path / "a.idx"), os.stat(tmp_path / "a.rec"))
    with open(waiting, "wb") as file:
        file.write(b"waited")
    (tmp_path / "a.rec").write_bytes(b"rewritten")
    assert read(tmp_path)[1] == b"one"
    with atomic_writer(tmp_path / "a.idx") as file:
        file.write(b"new")
    assert left(tmp_path) == []


def test_in_stores():
    commit(*(both := (Draft("memory://drafts/a"), Draft("memory://drafts/b"))))
    assert all(draft.done for draft in both)
    with pytest.raises(ZeroDivisionError), atomic_writer("memory://drafts/a") as file:
        file.write(b"new")
        raise ZeroDivisionError
    import fsspec

    fs = fsspec.filesystem("memory")
    assert sorted(os.path.basename(p) for p in fs.ls("/drafts", detail=False)) == ["a", "b"]
    assert fs.cat_file("/drafts/a") == b""


def test_in_stores_all_are_written_before_one_takes_its_place(monkeypatch):
    from fsspec.implementations.memory import MemoryFile

    names = ["memory://drafts/pair.rec", "memory://drafts/pair.idx"]
    for name in names:
        with atomic_writer(name) as file:
            file.write(b"old")
    close, closed = MemoryFile.close, []

    def refused(self):
        closed.append(self)
        if len(closed) == 2:
            raise TimeoutError("no answer")
        close(self)

    with pytest.raises(OSError, match="cannot write 'memory://drafts/pair.idx': no answer"):  # noqa: SIM117
        with atomic_writers(*names) as drafts:
            for draft in drafts:
                draft.write(b"new")
            monkeypatch.setattr(MemoryFile, "close", refused)
    monkeypatch.undo()
    import fsspec

    fs = fsspec.filesystem("memory")
    assert [fs.cat_file(name.split("//")[1]) for name in names] == [b"old", b"old"]
    assert not [p for p in fs.ls("/drafts", detail=False) if ".mxcore-" in p]


@pytest.mark.parametrize("url", ["memory://drafts/folder", "memory://drafts/folder/", "memory://drafts/new/"])
def test_a_folder_of_a_store_is_not_written(url):
    import fsspec

    with atomic_writer("memory://drafts/folder/a") as file:
        file.write(b"old")
    before = fsspec.filesystem("memory").find("/")
    with pytest.raises(IsADirectoryError, match=f"cannot write '{url}'") as caught:
        Draft(url)
    assert isinstance(caught.value, MXNetError) and fsspec.filesystem("memory").find("/") == before
    fsspec.filesystem("memory").rm("/drafts/folder", recursive=True)


def test_an_interrupt_behind_the_first_renaming_leaves_what_belongs_together(tmp_path, monkeypatch):
    commit(*pair(tmp_path, b"one"))
    replace = os.replace

    def interrupted(a, b):
        replace(a, b)
        if str(b).endswith(".rec"):
            raise KeyboardInterrupt

    with monkeypatch.context() as m:
        m.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            commit(*pair(tmp_path, b"two"))
    assert read(tmp_path) == (b"two", b"two") and left(tmp_path) == []


@posix
def test_bits_that_every_write_clears_are_not_kept(old):
    old.chmod(0o6755)
    with atomic_writer(old) as file:
        file.write(b"new")
    assert stat.S_IMODE(old.stat().st_mode) == 0o755


@posix
def test_a_draft_of_an_old_file_is_closed_to_others_from_its_first_moment(old, monkeypatch):
    old.chmod(0o600)
    made, create = [], os.open

    def seen(path, flags, mode=0o777, **more):
        descriptor = create(path, flags, mode, **more)
        if flags & os.O_CREAT:
            made.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return descriptor

    monkeypatch.setattr(os, "open", seen)
    Draft(old).discard()
    assert made == [0o600]


def test_a_name_that_ends_like_a_folders_is_no_file(tmp_path):
    with pytest.raises(IsADirectoryError, match="Is a directory") as caught:
        Draft(f"{tmp_path}{os.sep}new{os.sep}")
    assert isinstance(caught.value, MXNetError) and os.listdir(tmp_path) == []


def test_a_position_is_counted_in_bytes(old):
    import numpy as np

    with atomic_writer(old) as file:
        file.write(np.ones(3))
        assert file.position == 24


def test_an_error_holds_nothing_that_its_callers_have_open(tmp_path):
    import gc
    import weakref

    class Opened:
        """What a caller has open when its next file fails."""

    def fails():
        opened = Opened()
        seen.append(weakref.ref(opened))
        Draft(tmp_path / "missing" / "f.bin")

    seen: list = []
    gc.disable()
    try:
        with pytest.raises(FileNotFoundError) as caught:
            fails()
        del caught
        assert seen[0]() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("name", ["f.bin", "memory://drafts/closed"])
@pytest.mark.parametrize("end", [Draft.commit, Draft.discard])
def test_what_has_ended_takes_no_more(tmp_path, monkeypatch, name, end):
    monkeypatch.chdir(tmp_path)
    draft = Draft(name)
    end(draft)
    for action in (lambda: draft.write(b"late"), draft.flush):
        with pytest.raises(ValueError, match=f"cannot write '{name}': its draft was committed or discarded") as e:
            action()
        assert isinstance(e.value, MXNetError)


def test_a_draft_takes_bytes(old):
    draft = Draft(old)
    with pytest.raises(MXNetError, match=r"cannot write '.*f\.bin': bytes are needed, not str"):
        draft.write("text")
    draft.commit()
    assert old.read_bytes() == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device without room")
def test_a_draft_that_failed_holds_nothing_that_its_callers_have_open(old):
    import gc
    import weakref

    class Opened:
        """What a caller has open when the disk is full."""

    def fails(draft):
        opened = Opened()
        seen.append(weakref.ref(opened))
        draft.write(b"x" * (1 << 20))

    seen: list = []
    draft = Draft(old)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, draft.file.fileno())
    os.close(full)
    with pytest.raises(MXNetError, match="No space left"):
        fails(draft)
    gc.collect()
    assert seen[0]() is None and draft.failed
    draft.discard()


@posix
@pytest.mark.parametrize("kind", ["link", "other user's"])
def test_what_others_put_where_an_index_would_wait_is_not_read(tmp_path, monkeypatch, kind):
    records, index = tmp_path / "a.rec", tmp_path / "a.idx"
    records.write_bytes(b"records")
    index.write_bytes(b"right")
    waiting = Path(waits_at(str(index), os.stat(records)))
    planted = tmp_path / "planted"
    planted.write_bytes(b"wrong")
    if kind == "link":
        waiting.symlink_to(planted)
    else:
        planted.rename(waiting)
        real, stranger = os.lstat, os.geteuid() + 1

        def owned(path):
            found = real(path)
            return os.stat_result((*found[:4], stranger, *found[5:])) if os.fspath(path) == str(waiting) else found

        monkeypatch.setattr(os, "lstat", owned)
    assert settle(index, records) == str(index) and index.read_bytes() == b"right"


def test_files_of_several_writers_take_their_places_together(tmp_path):
    names = [tmp_path / n for n in "abc"]

    def write(text):
        for name in names:
            with drafts.atomic_writer(name) as file:
                file.write(text)

    write(b"old")
    with drafts.together(*names):
        with drafts.together(*names[1:]):  # as where one writer is made of others
            write(b"new")
        assert [n.read_bytes() for n in names] == [b"old"] * 3
    assert [n.read_bytes() for n in names] == [b"new"] * 3
    with pytest.raises(KeyError), drafts.together(names[0], *names[1:]):
        write(b"newer")
        raise KeyError
    assert [n.read_bytes() for n in names] == [b"new"] * 3 and len(list(tmp_path.iterdir())) == 3
    write(b"alone")
    assert [n.read_bytes() for n in names] == [b"alone"] * 3


@posix
@pytest.mark.parametrize("same", [False, True], ids=["another file", "a file of the block"])
@pytest.mark.parametrize("ends", [False, True], ids=["it goes on", "it exits"])
@pytest.mark.parametrize("moment", ["before", "open", "between", "after"])
@pytest.mark.parametrize("method", [False, True])
def test_what_a_signal_handler_saves_does_not_wait(moment, ends, same, method, tmp_path, monkeypatch):
    names, other = [tmp_path / n for n in "ab"], tmp_path / "c"
    place = names[0] if same else other

    class Saving:
        def handle(self, *args):
            with drafts.together(place):
                write_atomic(place, b"emergency")
            assert place.read_bytes() == b"emergency"
            if ends:
                raise SystemExit

    def handler(number, frame):
        Saving().handle()

    def at(now):
        if now == moment:
            os.kill(os.getpid(), signal.SIGUSR1)

    monkeypatch.chdir(tmp_path)
    old = signal.signal(signal.SIGUSR1, Saving().handle if method else handler)
    try:
        with contextlib.suppress(SystemExit), drafts.together(*(name.name for name in names)):
            at("before")
            with drafts.atomic_writer(names[0]) as file:
                file.write(b"block")
                at("open")
            at("between")
            write_atomic(names[1], b"block")
            at("after")
    finally:
        signal.signal(signal.SIGUSR1, old)
    if not same:
        assert other.read_bytes() == b"emergency"
    if ends:
        assert not names[1].exists() and names[0].exists() is same
    else:
        assert [n.read_bytes() for n in names] == [b"block"] * 2
    assert left(tmp_path) == []


def test_what_a_finalizer_saves_does_not_wait(tmp_path):
    class Saving:
        def __del__(self):
            write_atomic(tmp_path / "c", b"last")

    with pytest.raises(KeyError), drafts.together(tmp_path / "a"):
        write_atomic(tmp_path / "a", b"block")
        Saving()
        assert (tmp_path / "c").read_bytes() == b"last" and not (tmp_path / "a").exists()
        raise KeyError
    assert (tmp_path / "c").exists() and not (tmp_path / "a").exists()


@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5])
def test_of_files_that_are_written_together_none_is_of_another_time(nth, tmp_path, monkeypatch):
    """Of five renames, the third is that of the first file: from there on the others belong to it."""
    owner, *others = names = [tmp_path / n for n in "abc"]

    def write(text):
        with drafts.together(*names):
            for name in names:
                with drafts.atomic_writer(name) as file:
                    file.write(text)

    write(b"old")
    count, replace = 0, os.replace

    def failing(*args):
        nonlocal count
        count += 1
        if count == nth:
            raise OSError(errno.EIO, "the disk is gone")
        replace(*args)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", failing)
        with pytest.raises(OSError, match="the disk is gone"):
            write(b"new")
    expected = b"old" if nth <= 3 else b"new"
    assert owner.read_bytes() == expected
    for other in others:
        with open(drafts.settle(other, owner), "rb") as file:
            assert file.read() == expected
    assert sorted(tmp_path.iterdir()) == names


class Handling:
    """Signal handlers that do not keep the frame that they get."""

    def __init__(self, save):
        self.save = save

    def __call__(self, number, frame):
        frame = None  # noqa: F841
        self.save()

    def drop(self, number, frame):
        del number, frame
        self.save()

    def follow(self, number, frame):
        while frame is not None:
            frame = frame.f_back
        self.save()

    @property
    def partial(self):
        return functools.partial(Handling.drop, self)

    @property
    def wrapped(self):
        @functools.wraps(self.drop)
        def handler(*args):
            del args
            self.save()

        return handler


@posix
@pytest.mark.parametrize("way", ["__call__", "drop", "follow", "partial", "wrapped"])
def test_a_signal_handler_need_not_keep_its_frame(way, tmp_path):
    handling = Handling(lambda: write_atomic(tmp_path / "a", b"emergency"))
    old = signal.signal(signal.SIGUSR1, handling if way == "__call__" else getattr(handling, way))
    try:
        with pytest.raises(KeyError), drafts.together(tmp_path / "a"):
            write_atomic(tmp_path / "a", b"block")
            os.kill(os.getpid(), signal.SIGUSR1)
            raise KeyError
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert (tmp_path / "a").read_bytes() == b"emergency"


def test_arrays_among_the_arguments_of_who_writes(tmp_path):
    """They are compared with nothing."""

    def save(*arrays):
        mx.nd.save(str(tmp_path / "a"), [mx.nd.array(a) for a in arrays])

    with drafts.together(tmp_path / "a"):
        mx.nd.save(str(tmp_path / "a"), (mx.nd.ones((2,)), mx.nd.ones(3)))
        save(np.ones(2), np.ones(3))
        save(mx.nd.ones(2), mx.np.ones(3))
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").exists()


def test_a_block_that_an_interrupt_ended_unseen(tmp_path, monkeypatch):
    """Between two instructions, as one is entered: what is saved next does not wait for it."""

    def interrupted():
        block = drafts.together(tmp_path / "a", tmp_path / "b")
        block.__enter__()
        write_atomic(tmp_path / "a", b"lost")
        raise KeyboardInterrupt

    for save in (lambda: write_atomic(tmp_path / "a", b"next"), lambda: together_once(tmp_path / "a", b"next")):
        with pytest.raises(KeyboardInterrupt):
            interrupted()
        save()
        assert (tmp_path / "a").read_bytes() == b"next"
        (tmp_path / "a").unlink()
    together_once(tmp_path / "a", b"last")
    gc.collect()
    assert left(tmp_path) == []


def together_once(path, data):
    with drafts.together(path):
        write_atomic(path, data)


@posix
@pytest.mark.parametrize("moment", [1, 2, 3, 4, 5, 6])
def test_what_a_handler_saves_in_the_middle_of_a_commit_is_the_newer(moment, tmp_path, monkeypatch):
    names, replace, count = [tmp_path / n for n in "ab"], os.replace, []

    def save(data):
        with drafts.together(*names):
            for name in names:
                write_atomic(name, data)

    def replacing(*args):
        count.append(args)
        if len(count) == moment:
            os.kill(os.getpid(), signal.SIGUSR1)
        replace(*args)
        if len(count) == moment - 3:
            os.kill(os.getpid(), signal.SIGUSR1)

    monkeypatch.setattr(os, "replace", replacing)
    old = signal.signal(signal.SIGUSR1, lambda *args: (count.extend("12345678"), save(b"newer")))
    try:
        save(b"older")
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert [name.read_bytes() for name in names] == [b"newer"] * 2
    assert left(tmp_path) == []


@posix
def test_what_a_handler_saves_before_anything_has_its_place_is_the_newer(tmp_path, monkeypatch):
    sync, names = os.fsync, [tmp_path / n for n in "ab"]

    def save(data):
        with drafts.together(*names):
            for name in names:
                write_atomic(name, data)

    def syncing(*args):
        monkeypatch.setattr(os, "fsync", sync)
        os.kill(os.getpid(), signal.SIGUSR1)
        sync(*args)

    monkeypatch.setattr(os, "fsync", syncing)
    old = signal.signal(signal.SIGUSR1, lambda *args: save(b"newer"))
    try:
        save(b"older")
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert [name.read_bytes() for name in names] == [b"newer"] * 2
    assert left(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
def test_a_file_that_a_sticky_folder_does_not_let_us_replace_is_written_in_place(tmp_path):
    """Such as /tmp is: others may write to a file of mode 666, but rename nothing over it."""
    program = """
import os, sys
from mxcore._io_files import write_atomic
write_atomic(sys.argv[2], b"")  # all modules that this imports, as others may not read where they lie
os.setgroups([]), os.setgid(65534), os.setuid(65534)
write_atomic(sys.argv[1], b"new")
"""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "theirs").write_bytes(b"old and longer")
        (folder / "theirs").chmod(0o666)
        folder.chmod(0o1777)
        before = (folder / "theirs").stat().st_ino
        rule = Path("/proc/sys/fs/protected_regular")  # which refuses that, too
        arguments = [folder / "theirs", tmp_path / "first"]
        done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
        if not rule.exists() or rule.read_text().strip() == "0":
            assert done.returncode == 0, done.stderr
            assert (folder / "theirs").read_bytes() == b"new" and (folder / "theirs").stat().st_ino == before
        assert os.listdir(folder) == ["theirs"]


@pytest.mark.parametrize("do", [open_read, lambda name: write_atomic(name, b"")], ids=["read", "write"])
def test_where_the_working_folder_is_gone_errors_say_so(tmp_path, monkeypatch, do):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(FileNotFoundError, match="'x': .*the folder in which this process works does not exist") as told:
        do("x")
    assert isinstance(told.value, MXNetError)


class _Held:
    """A file in which a thread stays until it is told to go on."""

    def __init__(self, file):
        self.file, self.there, self.go_on = file, threading.Event(), threading.Event()

    def write(self, data):
        self.there.set()
        assert self.go_on.wait(60)
        return self.file.write(data)


@pytest.mark.parametrize("end", [Draft.commit, Draft.discard])
def test_who_ends_a_draft_waits_for_who_is_in_the_middle_of_a_write(end, old):
    draft = Draft(old)
    draft.file = held = _Held(draft.file)
    writing = threading.Thread(target=draft.write, args=(b"new",))
    writing.start()
    assert held.there.wait(60)
    ending = threading.Thread(target=end, args=(draft,))
    ending.start()
    ending.join(0.2)
    assert ending.is_alive() and old.read_bytes() == b"old"
    held.go_on.set()
    ending.join(60)
    writing.join(60)
    assert old.read_bytes() == (b"new" if end is Draft.commit else b"old") and left(old.parent) == []


def test_a_draft_that_is_being_completed_takes_no_more(old, monkeypatch):
    draft, said, plain = Draft(old), [], places._Beside.seal
    draft.write(b"new")

    def seal(place):
        plain(place)
        for call in (lambda: draft.write(b"late"), draft.flush):
            with pytest.raises(MXNetError, match="committed or discarded") as caught:
                call()
            said.append(caught.type)

    monkeypatch.setattr(places._Beside, "seal", seal)
    with drafts.together(old):
        draft.commit()  # it waits for the end of the block, and takes no more while it does
        with pytest.raises(MXNetError, match="committed or discarded"):
            draft.write(b"late")
    assert len(said) == 2 and all(issubclass(kind, ValueError) for kind in said)
    assert old.read_bytes() == b"new"


only_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else"
)
#: Numbers that no machine knows, and a user whom every one does.
ALICE, BOB, BOBS, PROJECT = 54321, 54322, 54323, 54324
KNOWN = "daemon"


@pytest.fixture
def shared():
    """A folder in which everybody may do everything; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def rights(path):
    """What must stay: who owns a file, and who may do what."""
    found = os.stat(path)
    names = os.listxattr(path) if hasattr(os, "listxattr") else ()
    lists = {name: os.getxattr(path, name) for name in names if name.startswith("system.")}
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode), lists


def bob_saves(path, *groups):
    """Write a file as Bob, who is in some groups beside his own; all modules are there before."""
    program = f"""
import os, pwd, sys
from mxcore._io_files import write_atomic
write_atomic(sys.argv[1] + "-first", b"")
write_atomic(sys.argv[1] + "-first", b"")
os.remove(sys.argv[1] + "-first")
os.setgroups({list(groups)}), os.setgid({BOBS}), os.setuid({BOB})
write_atomic(sys.argv[1], b"new")
"""
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == b"new" and os.listdir(path.parent) == [path.name]


def known():
    """The number and the group of a user whom the machine knows."""
    import pwd

    try:
        return pwd.getpwnam(KNOWN)[2:4]
    except KeyError:
        pytest.skip(f"no user {KNOWN}")


def theirs(folder, uid, gid, mode):
    path = folder / "f.bin"
    path.write_bytes(b"old and longer")
    try:
        os.chown(path, uid, gid)
    except OSError as e:
        pytest.skip(f"a container that has few users: {e}")
    path.chmod(mode)
    return path


@only_root
@pytest.mark.parametrize(
    "owner, group, mode, groups, whole",
    [
        pytest.param(BOB, BOBS, 0o640, [], True, id="his own"),
        pytest.param(BOB, PROJECT, 0o660, [PROJECT], True, id="his own, of another group of his"),
        pytest.param(BOB, PROJECT, 0o660, [], False, id="his own, of a group of others"),
        pytest.param(ALICE, PROJECT, 0o660, [PROJECT], False, id="of a user whose groups are not known"),
        pytest.param(KNOWN, None, 0o664, [None], True, id="of another member of the group"),
        pytest.param(KNOWN, None, 0o764, [None], False, id="whose owner may do more than the group"),
        pytest.param(KNOWN, None, 0o666, [], False, id="of a group of which he is none"),
        pytest.param(KNOWN, PROJECT, 0o664, [PROJECT], False, id="of a group of which the owner is none"),
    ],
)
def test_who_may_do_what_with_a_file_stays_whoever_saves_it(shared, owner, group, mode, groups, whole):
    """MXNet writes in place; here a new file takes its place as long as nobody loses or gains anything by it."""
    if owner == KNOWN:
        owner, own = known()
        group, groups = own if group is None else group, [own if g is None else g for g in groups]
    path = theirs(shared, owner, group, mode)
    before = path.stat().st_ino
    bob_saves(path, *groups)
    assert rights(path)[:3] == (BOB if whole else owner, group, mode)
    assert (path.stat().st_ino != before) is whole


@only_root
def test_who_is_not_in_a_files_group_does_not_become_its_owner(shared):
    """Also where the folder gives its group to all new files: he might only write, and could read as the owner."""
    owner, group = known()
    os.chown(shared, 0, group)
    shared.chmod(0o2777)
    path = theirs(shared, owner, group, 0o662)
    before, inode = rights(path), path.stat().st_ino
    bob_saves(path)
    assert rights(path) == before and path.stat().st_ino == inode


@only_root
@pytest.mark.parametrize("call", ["fchown", "chmod"])
def test_what_a_file_system_only_says_that_it_did_is_seen(old, monkeypatch, call):
    theirs(old.parent, ALICE, PROJECT, 0o660)
    before, inode = rights(old), old.stat().st_ino
    monkeypatch.setattr(os, call, lambda *args: None)
    write(old)
    assert rights(old) == before and old.stat().st_ino == inode and old.read_bytes() == b"new"


@only_root
def test_a_draft_never_gives_rights_to_another_group(old, monkeypatch):
    theirs(old.parent, ALICE, PROJECT, 0o660)
    seen = []
    for name in ("fchown", "chmod"):

        def call(file, *args, real=getattr(os, name)):
            real(file, *args)
            seen.append((os.stat(file).st_gid, stat.S_IMODE(os.stat(file).st_mode)))

        monkeypatch.setattr(os, name, call)
    write(old)
    assert seen == [(PROJECT, 0o600), (PROJECT, 0o660)]


def acl(named, group=0, mask=6):
    """Of a file that its owner and one user whom it names may write: entries of tag, rights and number."""
    nobody = 0xFFFFFFFF
    entries = [(1, 6, nobody), (2, 6, named), (4, group, nobody), (0x10, mask, nobody), (0x20, 0, nobody)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def give(path, name, value):
    try:
        os.setxattr(path, name, value)
    except (AttributeError, OSError) as e:
        pytest.skip(f"the file system takes no {name}: {e}")


LIST = "system.posix_acl_access"


def test_an_access_control_list_and_attributes_are_kept(old):
    give(old, "user.note", b"best so far")
    give(old, LIST, acl(ALICE))
    before, inode = rights(old), old.stat().st_ino
    write(old)
    assert rights(old) == before and LIST in before[3] and os.getxattr(old, "user.note") == b"best so far"
    assert old.stat().st_ino != inode and left(old.parent) == []


@pytest.mark.parametrize("call", ["setxattr", "removexattr"])
@pytest.mark.parametrize("says", [True, False])
def test_where_an_access_control_list_cannot_be_kept_a_file_is_written_in_place(old, monkeypatch, call, says):
    if call == "setxattr":
        give(old, LIST, acl(ALICE))
    else:  # new files of the folder have one
        old.chmod(0o660)
        give(old.parent, "system.posix_acl_default", acl(ALICE))

    def refuse(*args):
        if not says:
            raise OSError(errno.EOPNOTSUPP, "no")

    before, inode = rights(old), old.stat().st_ino
    monkeypatch.setattr(os, call, refuse)
    write(old)
    assert rights(old) == before and old.stat().st_ino == inode and left(old.parent) == []


def test_the_access_control_list_of_a_folder_is_for_new_files(old):
    old.chmod(0o660)
    give(old.parent, "system.posix_acl_default", acl(ALICE))
    before, inode = rights(old), old.stat().st_ino
    write(old)
    assert rights(old) == before and old.stat().st_ino != inode
    write(old.parent / "fresh")
    assert LIST in os.listxattr(old.parent / "fresh")


@only_root
def test_a_file_with_an_access_control_list_does_not_become_another_users(shared):
    owner, group = known()
    path = theirs(shared, owner, group, 0o660)
    give(path, LIST, acl(ALICE, group=6))
    before, inode = rights(path), path.stat().st_ino
    bob_saves(path, group)
    assert rights(path) == before and path.stat().st_ino == inode


def test_what_a_file_system_tells_of_a_file_as_attributes_is_not_its_own(old, monkeypatch):
    """ntfs-3g has the times of a file there, and the places on the disk."""
    count = iter(range(100))
    monkeypatch.setattr(os, "listxattr", lambda file: ["system.times"], raising=False)
    monkeypatch.setattr(os, "getxattr", lambda file, name: b"%d" % next(count), raising=False)
    inode = old.stat().st_ino
    write(old)
    assert old.stat().st_ino != inode


@pytest.mark.filterwarnings("ignore:unclosed file")
@pytest.mark.filterwarnings("ignore:unclosed scandir iterator")
@pytest.mark.parametrize("pair", [False, True])
def test_ctrl_c_anywhere_leaves_no_descriptor_and_no_locked_draft(without_descriptors_left, tmp_path, pair):
    """It would be open, and its draft locked, as long as the process lives."""
    names = [tmp_path / "a", tmp_path / "b"][: 1 + pair]

    def work():
        with atomic_writers(*names) as found:
            for draft in found:
                draft.write(b"new")

    def is_whole():
        return not blocks.thread.commits and all(name.read_bytes() == b"new" for name in names)

    files = (*map(str, Path(drafts.__file__).parent.glob("*.py")), __file__)
    assert without_descriptors_left(files, work, is_whole) > 100
    assert sorted(tmp_path.iterdir()) == names
