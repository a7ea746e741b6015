"""Compiled code on disk: what is damaged, foreign or in the way costs a compilation, and stays as it is."""

import errno
import importlib
import os
import platform
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import mxcore_cpu
from mxcore import codecache
from mxcore_cpu import cache
from mxcore_cpu.cache import CODE

PROGRAM = """
import numpy as np
from mxcore_cpu import cache
from mxcore_cpu.kernels import elementwise
from mxcore_cpu.native import COUNTS
relu = elementwise.UNARY["relu"]
for dtype in ("f4", "f8"):
    x = np.array([-1.0, 2.0], dtype)
    y = np.empty_like(x)
    relu(2, x, y, 0.0)
    assert y.tolist() == [0, 2], y
print(COUNTS["loaded"], cache.CODE.places.write)
"""


def run(folder, **environment):
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "MXCORE_CACHE_DIR": str(folder),
        **environment,
    }
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    hits, write = done.stdout.split()
    return int(hits), Path(write), done.stderr


def fresh():
    """One that has not looked for its folder."""
    return codecache.CodeCache("numba", list)


def test_code_of_an_image_is_found_under_another_kernel(monkeypatch):
    cache.versions.cache_clear()
    before = cache.versions()
    monkeypatch.setattr(platform, "release", lambda: "6.1.0-another")
    monkeypatch.setattr(platform, "platform", lambda *args, **kwargs: "Linux-6.1.0-another")
    cache.versions.cache_clear()
    assert cache.versions() == before and platform.machine() in before


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder that is used in this process."""
    monkeypatch.setitem(vars(CODE), "places", codecache.Places((tmp_path,), tmp_path))
    monkeypatch.setattr(codecache.CodeCache, "unkept", {})
    return tmp_path


def test_an_entry_is_given_back_as_it_was_written(here):
    assert CODE.load("a.code") is None
    CODE.save("a.code", b"one")
    CODE.save("a.code", b"two" * 1000)
    assert CODE.load("a.code") == b"two" * 1000
    assert [p.name for p in here.iterdir()] == ["a.code"]


def test_a_flipped_bit_or_a_missing_end_is_seen(here):
    content = bytes(range(256)) * 4
    CODE.save("a.code", content)
    whole = (here / "a.code").read_bytes()
    rng = random.Random(0)
    for at in [*range(60), *rng.sample(range(60, len(whole)), 60)]:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.randrange(8)
        (here / "a.code").write_bytes(damaged)
        assert CODE.load("a.code") is None, at
    for end in (0, 1, 13, 14, 40, 46, 47, len(whole) - 1):
        (here / "a.code").write_bytes(whole[:end])
        assert CODE.load("a.code") is None, end
    (here / "a.code").write_bytes(whole + b"\0")
    assert CODE.load("a.code") is None
    (here / "b.code").write_bytes(whole)  # the code of another kernel
    assert CODE.load("b.code") is None
    (here / "a.code").write_bytes(whole)
    assert CODE.load("a.code") == content


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_file_that_others_may_have_written_is_not_read(here):
    CODE.save("a.code", b"x")
    assert CODE.load("a.code") == b"x"
    os.chmod(here / "a.code", 0o666)
    assert CODE.load("a.code") is None


def test_writers_of_one_entry_do_not_disturb_each_other(here):
    contents = [bytes([i]) * 100_000 for i in range(4)]
    seen = set()

    def work(content):
        for _ in range(20):
            CODE.save("a.code", content)
            seen.add(CODE.load("a.code"))

    workers = [threading.Thread(target=work, args=(c,)) for c in contents]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert seen <= {*contents}
    assert [p.name for p in here.iterdir()] == ["a.code"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_was_forked_meanwhile_lets_nobody_wait(here):
    """It has the lock's file open, as long as it lives."""
    fcntl = pytest.importorskip("fcntl")
    with CODE.making("a.code"):
        waiting = os.open(here / ".a.code.lock", os.O_RDWR)
        pid = os.fork()
        if not pid:
            time.sleep(60)
            os._exit(0)
        with pytest.raises(BlockingIOError):
            fcntl.flock(waiting, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        fcntl.flock(waiting, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(waiting)
        os.kill(pid, 9)
        os.waitpid(pid, 0)


@pytest.mark.filterwarnings("ignore:unclosed file")
def test_ctrl_c_anywhere_leaves_no_descriptor(here, without_descriptors_left):
    def work():
        for path in here.glob("*.code"):
            path.unlink()
        assert CODE.made("a.code", lambda: b"abc") == b"abc"

    assert without_descriptors_left("codecache.py", work) > 30


def test_who_was_stopped_in_the_midst_is_not_waited_for(here, monkeypatch):
    """By Ctrl-Z or a debugger; its lock stays its own."""
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(codecache, "_PATIENCE", 0.3)
    lock = here / ".a.code.lock"
    with open(lock, "w") as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        assert CODE.made("a.code", lambda: b"abc") == b"abc" and CODE.load("a.code") == b"abc"
        assert lock.exists()
        begin = time.monotonic()
        assert CODE.made("a.code", lambda: b"other") == b"abc" and time.monotonic() < begin + 0.3


def test_what_several_threads_want_is_made_once(here):
    made = []

    def make():
        made.append(1)
        time.sleep(0.05)
        return b"abc"

    threads = [threading.Thread(target=CODE.made, args=("b.code", make)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert CODE.load("b.code") == b"abc" and len(made) == 1


def test_what_killed_writers_left_is_removed(here):
    old, new = here / ".0.tmp", here / ".1.tmp"
    old.touch()
    new.touch()
    os.utime(old, (time.time() - 7200,) * 2)
    CODE.save("a.code", b"x")
    assert {p.name for p in here.iterdir()} == {".1.tmp", "a.code"}


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_what_nobody_has_used_for_long_is_removed(tmp_path, monkeypatch):
    mine, old, empty, used, foreign = (
        tmp_path / name
        for name in ("numba-" + "0" * 16, "numba-" + "1" * 16, "numba-" + "2" * 16, "numba-" + "3" * 16, "numba-mine")
    )
    monkeypatch.setitem(vars(CODE), "places", codecache.Places((mine,), mine))
    long_ago = time.time() - 100 * 86400
    for place in (mine, old, empty, used, foreign):
        place.mkdir()
    for path in (
        mine / "gone.code",
        old / "a.code",
        used / "a.code",
        used / "b.code",
        foreign / "a.code",
        tmp_path / "notes.code",
        old / "b.code",
    ):
        path.write_bytes(b"x")
        os.utime(path, (long_ago, long_ago))
    os.utime(used / "b.code")
    CODE.save("kept.code", b"here")
    os.utime(mine / "kept.code", (long_ago, long_ago))
    assert CODE.load("kept.code") == b"here"  # so it is in use
    CODE._written.clear()
    CODE.save("new.code", b"here")
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.code")) == sorted(
        ["notes.code", "numba-mine/a.code", f"{used.name}/b.code", f"{mine.name}/kept.code", f"{mine.name}/new.code"]
    )
    assert not old.exists() and empty.exists()


def entries(folder):
    return {p.name for p in folder.glob("*.code")}


def aged(folder, sizes, hours=2):
    """Entries of these sizes, of which each was used so many hours before the next."""
    now = time.time()
    for i, size in enumerate(sizes):
        CODE.save(f"{i}.code", b"x" * size)
        at = now - hours * 3600 * (len(sizes) - i)
        os.utime(folder / f"{i}.code", (at, at))
    CODE._written.clear()


def test_of_too_many_bytes_the_longest_unused_go(here, monkeypatch):
    aged(here, [10_000] * 9)
    assert CODE.load("0.code") is not None  # used again
    monkeypatch.setenv("MXCORE_CACHE_BYTES", "60000")
    CODE.save("new.code", b"y")
    assert entries(here) == {"0.code", "6.code", "7.code", "8.code", "new.code"}
    monkeypatch.setenv("MXCORE_CACHE_BYTES", "30000")
    CODE.save("newer.code", b"y")
    assert len(entries(here)) == 6  # nobody looks each time
    CODE.save("large.code", b"y" * 7_000)
    assert entries(here) == {"0.code", "8.code", "new.code", "newer.code", "large.code"}
    monkeypatch.setenv("MXCORE_CACHE_BYTES", "0")
    CODE._written.clear()
    for i in range(20):
        CODE.save(f"more{i}.code", b"y" * 10_000)
    assert len(entries(here)) == 25


def test_what_the_process_wrote_itself_and_cannot_stay_is_counted(here, monkeypatch):
    """`mxcore warm` says then that it is not ready."""
    aged(here, [10_000] * 3)
    CODE._saved.clear()  # another process wrote these
    monkeypatch.setenv("MXCORE_CACHE_BYTES", "20000")
    CODE.save("a.code", b"y" * 9_000)
    assert entries(here) == {"2.code", "a.code"} and not CODE.unkept
    for name in "bcd":
        CODE.save(f"{name}.code", b"y" * 9_000)
    gone = {f"{name}.code" for name in "abcd"} - entries(here)
    assert gone and {*CODE.unkept} == {here / name for name in gone}
    assert "MXCORE_CACHE_BYTES" in CODE.unkept[here / "a.code"]


def test_bytes_of_other_versions_count(tmp_path, monkeypatch):
    mine, other = tmp_path / f"numba-{'0' * 16}", tmp_path / f"numba-{'1' * 16}"
    other.mkdir()
    mine.mkdir()
    monkeypatch.setitem(vars(CODE), "places", codecache.Places((other,), other))
    aged(other, [10_000] * 3)
    monkeypatch.setitem(vars(CODE), "places", codecache.Places((mine,), mine))
    monkeypatch.setenv("MXCORE_CACHE_BYTES", "20000")
    CODE.save("a.code", b"y")
    assert entries(other) == {"2.code"} and entries(mine) == {"a.code"}
    os.utime(mine / "a.code")
    monkeypatch.setenv("MXCORE_CACHE_BYTES", "1000")
    CODE._written.clear()
    CODE.save("b.code", b"y")
    assert not entries(other) and entries(mine) == {"a.code", "b.code"}


@pytest.mark.parametrize("value", ["1 GiB", "-1", ""])
def test_a_limit_that_is_no_number_stops_nobody(here, monkeypatch, value):
    aged(here, [100])
    monkeypatch.setenv("MXCORE_CACHE_BYTES", value)
    codecache._warn_once.cache_clear()
    with pytest.warns(UserWarning, match="MXCORE_CACHE_BYTES must be a whole number.*1073741824 counts"):
        CODE.save("a.code", b"y")
    CODE._written.clear()
    CODE.save("b.code", b"y")  # said once
    assert entries(here) == {"0.code", "a.code", "b.code"}


def test_what_cannot_be_removed_stays_and_nobody_fails(here, monkeypatch):
    aged(here, [10_000] * 5)
    unlink = Path.unlink

    def locked(self, *args, **kwargs):
        if self.name in ("0.code", "2.code"):  # somebody has it open on Windows, or the folder is not to be written
            raise PermissionError(13, "in use", str(self))
        if self.name == "1.code":
            unlink(self)  # another process was faster
        unlink(self, *args, **kwargs)

    monkeypatch.setattr(Path, "unlink", locked)
    monkeypatch.setenv("MXCORE_CACHE_BYTES", "25000")
    CODE.save("new.code", b"y")
    assert entries(here) == {"0.code", "2.code", "4.code", "new.code"}
    monkeypatch.setattr(os, "scandir", lambda path: (_ for _ in ()).throw(PermissionError(13, "closed")))
    CODE._written.clear()
    CODE.save("newer.code", b"y")
    assert CODE.load("newer.code") == b"y"


@pytest.mark.skipif(os.name != "posix", reason="what is open cannot be removed on Windows")
def test_who_reads_an_entry_that_goes_reads_on(here, monkeypatch):
    aged(here, [10_000] * 3)
    with open(here / "0.code", "rb") as reader:
        reader.read(10)
        monkeypatch.setenv("MXCORE_CACHE_BYTES", "10000")
        CODE.save("new.code", b"y")
        assert "0.code" not in entries(here) and len(reader.read()) > 10_000


_WRITER = """
import os, pathlib, random, sys
from mxcore import codecache
folder = pathlib.Path(sys.argv[1])
cache = codecache.CodeCache("numba", list)
vars(cache)["places"] = codecache.Places((folder,), folder)
rng = random.Random(int(sys.argv[2]))
print("begun", flush=True)
while sys.argv[3] == "0" or (written := globals().get("written", 0) + 1) <= int(sys.argv[3]):
    name = f"{rng.randrange(60)}.code"
    want = name.encode() * 2000
    assert cache.made(name, lambda: want) == want
    if rng.random() < 0.2:
        cache.save(f"{os.getpid()}-{rng.random()}.code", b"x" * 5000)
"""


def test_several_processes_keep_to_the_limit_at_once(tmp_path):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "MXCORE_CACHE_BYTES": "200000"}

    def start(seed, number):
        command = [sys.executable, "-c", _WRITER, str(tmp_path), str(seed), str(number)]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    killed = start(0, 0)
    assert killed.stdout.readline() == "begun\n"
    others = [start(seed, 300) for seed in (1, 2, 3)]
    time.sleep(0.1)
    killed.kill()
    killed.communicate()
    for process in others:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    slack = 4 * 0.2 * 200_000  # of each process, what it may write before it looks again
    assert 0 < sum(p.stat().st_size for p in tmp_path.glob("*.code")) <= 200_000 + slack


def test_a_folder_of_ones_own_is_closed_to_others(tmp_path):
    made = tmp_path / "made"
    assert codecache._unfit(made / "inner") is None and made.stat().st_mode & 0o777 == 0o700
    os.chmod(made, 0o777)
    assert codecache._unfit(made) is None and made.stat().st_mode & 0o022 == 0


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_folder_of_somebody_else_is_not_used(tmp_path, monkeypatch):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    if os.geteuid() == 0:
        os.chown(theirs, 12345, -1)
    else:
        uid = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    assert "another user" in codecache._unfit(theirs)


def test_damaged_code_is_compiled_again(tmp_path):
    assert run(tmp_path)[0] == 0
    hits, write, _ = run(tmp_path)
    files = sorted(write.glob("*.code"))
    assert hits == 2 and len(files) == 2 and write.parent == tmp_path
    damaged = bytearray(files[0].read_bytes())
    for at in range(100, len(damaged), 97):
        damaged[at] ^= 16
    files[0].write_bytes(damaged)
    whole_and_wrong = b"not a pickle"
    files[1].write_bytes(codecache._MAGIC + codecache._digest(files[1].name, whole_and_wrong) + whole_and_wrong)
    assert run(tmp_path)[0] == 0
    assert run(tmp_path)[0] == 2
    assert sorted(write.glob("*")) == files


def test_a_folder_that_cannot_be_written_is_replaced_by_a_private_one_and_said_once(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    (tmp_path / "temporary").mkdir()
    hits, write, said = run(blocked, TMPDIR=str(tmp_path / "temporary"))
    assert hits == 0 and said.count("MXCORE_CACHE_DIR") == 1 and str(blocked) in said
    assert tmp_path / "temporary" in write.parents and len(list(write.glob("*.code"))) == 2
    assert run(blocked, TMPDIR=str(tmp_path / "temporary"))[0] == 2
    package = Path(mxcore_cpu.__file__).parent
    assert not [p for p in package.rglob("*") if p.suffix in (".nbi", ".nbc", ".code")]


def test_what_finds_no_folder_is_counted(monkeypatch):
    monkeypatch.setattr(codecache.CodeCache, "unkept", {})
    monkeypatch.setitem(vars(CODE), "places", codecache.Places((), None))
    CODE.save("a.code", b"new")
    assert CODE.unkept == {CODE.folder / "a.code": "no folder can be written"}


def test_what_finds_no_room_is_told_once(here, monkeypatch):
    codecache._warn_once.cache_clear()

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    CODE.save("a.code", b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.warns(UserWarning, match=rf"cannot be kept in {here}: No space left.*set MXCORE_CACHE_DIR"):
            CODE.save("b.code", b"new")
        CODE.save("c.code", b"new")  # says nothing any more
        CODE.save("a.code", b"new")  # is there
    assert CODE.unkept == dict.fromkeys([here / "b.code", here / "c.code"], "No space left on device")
    assert [CODE.load(f"{n}.code") for n in "abc"] == [b"old", None, None]
    assert [p.name for p in here.iterdir()] == ["a.code"]


@pytest.mark.skipif(os.name == "nt", reason="pipes with a name are POSIX")
def test_an_entry_that_is_no_file_is_not_waited_for(here):
    os.mkfifo(here / "a.code")
    (here / "b.code").mkdir()
    (here / "c.code").symlink_to("c.code")
    assert [CODE.load(f"{name}.code") for name in "abc"] == [None] * 3
    CODE.save("a.code", b"new")
    assert CODE.load("a.code") == b"new"


def test_without_home_and_temporary_files_code_is_kept_in_memory(tmp_path, monkeypatch):
    def none():
        raise FileNotFoundError("no usable temporary folder")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a user whom the system does not know
    monkeypatch.delenv("MXCORE_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(codecache.tempfile, "gettempdir", none)
    monkeypatch.setattr(codecache.tempfile, "mkdtemp", lambda prefix: none())
    monkeypatch.setattr(codecache.sys, "platform", "linux")
    with pytest.warns(UserWarning, match="in memory only.*no home folder"):
        assert fresh().places == codecache.Places((), None)
    assert list(tmp_path.iterdir()) == []


def test_a_relative_folder_stays_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MXCORE_CACHE_DIR", "here")
    assert fresh().folder.parent == tmp_path / "here"


FACTORY = """
import sys
import numpy as np
from mxcore_cpu.jit import kernel
from mxcore_cpu.native import COUNTS
from helpers import shifted

def scaled(factor, **options):
    @kernel(**options)
    def body(first, last, x, y):
        for i in range(first, last):
            y[i] = shifted(x[i]) * factor
    return body

def results():
    found, hits, x = [], [], np.ones(2)
    kernels = [scaled(2.0), scaled(3.0), scaled(3.0, fastmath=frozenset(("contract", "reassoc")))]
    for body in kernels:
        y, before = np.empty(2), COUNTS["loaded"]
        body(2, x, y)
        found.append(y[0])
        hits.append(COUNTS["loaded"] - before)
    return found, hits
"""
HELPER = "from mxcore_cpu.jit import helper\nSHIFT = {shift}\n@helper\ndef shifted(x):\n    return x + SHIFT\n"


def test_kernels_of_one_source_and_changed_helpers_are_told_apart(tmp_path):
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(tmp_path), *filter(None, sys.path))),
        "MXCORE_CACHE_DIR": str(tmp_path / "cache"),
    }
    (tmp_path / "factory.py").write_text(FACTORY)

    def run_factory(shift):
        (tmp_path / "helpers.py").write_text(HELPER.format(shift=shift))
        done = subprocess.run(
            [sys.executable, "-c", "import factory; print(factory.results())"],
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return eval(done.stdout, {"np": __import__("numpy")})

    assert run_factory(0.0) == ([2, 3, 3], [0, 0, 0])
    assert run_factory(0.0) == ([2, 3, 3], [1, 1, 1])
    assert run_factory(10.0) == ([22, 33, 33], [0, 0, 0])


_UPDATES = """
import sys, mxcore as mx
rules = {"sgd": mx.optimizer.SGD(learning_rate=0.5, momentum=0.9), "adagrad": mx.optimizer.AdaGrad(learning_rate=0.5)}
for name in sys.argv[1:]:
    w = mx.nd.ones((4, 2))
    g = mx.nd.sparse.row_sparse_array(([[2.0, 2.0]], [1]), shape=(4, 2))
    mx.optimizer.get_updater(rules[name])(0, g, w)
    print(name, w.asnumpy()[1].tolist())
"""


def test_functions_of_one_name_from_several_processes(tmp_path):
    """Kernels that one function has made in a row, with the same types: linked by name, one would run for all."""
    env = {**os.environ, "MXCORE_CACHE_DIR": str(tmp_path)}
    right = {"sgd": "sgd [0.0, 0.0]", "adagrad": "adagrad [0.5, 0.5]"}
    for names in (["sgd"], ["adagrad"], ["sgd", "adagrad"], ["adagrad", "sgd"]):
        done = subprocess.run(
            [sys.executable, "-c", _UPDATES, *names], env=env, capture_output=True, text=True, timeout=120, check=True
        )
        assert done.stdout.split("\n")[:-1] == [right[n] for n in names]


def test_the_code_of_every_kernel_can_be_kept():
    """What a kernel names has to say what it is: a lock, say, has no name but its address, and nothing is kept."""
    import pkgutil

    from mxcore_cpu import cache, kernels
    from mxcore_cpu.jit import Kernel

    unkept, count = [], 0
    for info in pkgutil.iter_modules(kernels.__path__):
        module = importlib.import_module(f"{kernels.__name__}.{info.name}")
        for name, value in vars(module).items():
            if isinstance(value, Kernel):
                count += 1
                if cache.source_stamp(value.function) is None:
                    unkept.append(f"{info.name}.{name}")
    assert count > 80 and not unkept
