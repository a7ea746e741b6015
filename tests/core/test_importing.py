"""What is imported at first use, by several threads at once.

Where two threads import different modules of one package at once, each may have what the other wants, and Python gives
one of them a module that is not complete.
"""

import errno
import importlib
import importlib.metadata
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import mxcore as mx
from mxcore import _importing
from mxcore._installed import installed


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Write modules by name and text; `seen` is a list that their texts may use."""
    monkeypatch.syspath_prepend(tmp_path)
    seen, made = [], []
    monkeypatch.setattr(sys, "seen_by_test", seen, raising=False)

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text("import sys, time\nseen = sys.seen_by_test\n" + text)
            made.append(name)
        importlib.invalidate_caches()

    write.seen = seen
    yield write
    for name in made:
        sys.modules.pop(name, None)


def in_threads(*calls):
    """Make the calls at once; their errors, and whether one did not come back."""
    found, ready = [], threading.Barrier(len(calls))

    def run(fn, *args):
        ready.wait(20)
        try:
            fn(*args)
        except BaseException as e:
            found.append(e)

    threads = [threading.Thread(target=run, args=c, daemon=True) for c in calls]
    for t in threads:
        t.start()
    for t in threads:
        t.join(20)
    return found + ["no end" for t in threads if t.is_alive()]


def test_one_thread_at_a_time(modules, monkeypatch):
    body = "seen.append(0)\ntime.sleep(0.2)\nseen.append(1)\n"
    modules(late_first=body, late_second=body)
    monkeypatch.setitem(mx._LAZY, "late_first", "late_first")
    monkeypatch.setitem(mx._LAZY, "late_second", "late_second")
    try:
        assert in_threads((getattr, mx, "late_first"), (getattr, mx, "late_second")) == []
        assert modules.seen == [0, 1, 0, 1]
    finally:
        for name in ("late_first", "late_second"):
            vars(mx).pop(name, None)


def test_who_is_importing_does_not_wait(modules):
    """A thread within an import asks for another module while somebody waits for what it imports."""
    modules(
        late_outer="time.sleep(0.3)\nfrom mxcore import _importing\n_importing.load('late_third')\n",
        late_third="",
        late_fourth="time.sleep(0.1)\nimport late_outer\n",
    )
    assert in_threads((importlib.import_module, "late_outer"), (_importing.load, "late_fourth")) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork is POSIX's")
@pytest.mark.parametrize("by", [_importing.load, importlib.import_module])
def test_a_fork_waits_for_an_import(modules, by):
    """A child that is forked in the midst of it would wait for ever for the thread that imports."""
    modules(late_slow="seen.append(0)\ntime.sleep(0.5)\nvalue = 7\n")
    thread = threading.Thread(target=by, args=("late_slow",))
    thread.start()
    while not modules.seen:
        time.sleep(0.001)
    pid = os.fork()
    if not pid:
        try:
            os._exit(importlib.import_module("late_slow").value)
        finally:
            os._exit(1)
    end, status = time.monotonic() + 20, None
    while status is None and time.monotonic() < end:
        done, code = os.waitpid(pid, os.WNOHANG)
        status = os.waitstatus_to_exitcode(code) if done else None
        time.sleep(0.01)
    thread.join(20)
    if status is None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert status == 7


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork is POSIX's")
def test_a_fork_waits_once_for_an_import_that_does_not_end(modules, monkeypatch):
    """Such as that of a whole program, one of whose threads forks."""
    monkeypatch.setattr(_importing, "_PATIENCE_ONCE", 0.05)
    monkeypatch.setattr(_importing, "_endless", set())
    modules(
        late_program="import os, threading\ndef fork():\n    pid = os.fork()\n    if not pid: os._exit(0)\n"
        "    seen.append(os.waitpid(pid, 0)[1])\n"
        "for _ in range(2):\n    t = threading.Thread(target=fork)\n    t.start()\n    t.join()\n"
    )
    assert in_threads((importlib.import_module, "late_program")) == [] and modules.seen == [0, 0]
    assert _importing._endless == {"late_program"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork is POSIX's")
def test_an_import_may_fork_itself(modules):
    modules(late_forking="import os\npid = os.fork()\nif not pid: os._exit(0)\nos.waitpid(pid, 0)\nseen.append(1)\n")
    assert in_threads((_importing.load, "late_forking")) == [] and modules.seen == [1]


@pytest.mark.parametrize("module", ["cv2", "ml_dtypes", "fsspec", "numpy.random"])
def test_packages_that_are_needed_late_are_imported_alone(module):
    """Each by who needs it, while nobody else imports or forks."""
    uses = {
        "cv2": "mx.image.imresize(mx.nd.ones((8, 8, 3), dtype='uint8'), 4, 4).asnumpy()",
        "ml_dtypes": "mx.nd.ones(3).astype('bfloat16').asnumpy()",
        "fsspec": "mx.nd.save('memory://x.params', mx.nd.ones(2))",
        "numpy.random": "mx.nd.random.uniform(shape=(2,)).asnumpy()",
    }
    program = f"""
import importlib.abc, sys
import mxcore as mx
from mxcore import _importing
from mxcore._installed import installed
held = []
class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            held.append(_importing.alone._is_owned())
sys.meta_path.insert(0, Watch())
assert {module!r} not in sys.modules
{uses[module]}
print(held)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() in ("[True]", "[True, True]"), done.stdout + done.stderr  # cv2 looks for itself again


def chained(*errors, handled=False):
    """The first of some errors, each raised from the next or, if so, while that was handled."""
    for first, second in zip(errors, errors[1:]):
        setattr(first, "__context__" if handled else "__cause__", second)
    return errors[0]


CIRCLE = [ImportError("one"), ValueError("another")]


@pytest.mark.parametrize("handled", [False, True])
@pytest.mark.parametrize(
    "errors, kind",
    [
        ([OSError(errno.ENFILE, "full")], OSError),
        ([OSError(errno.ENOENT, "not there")], None),
        ([OSError("libit.so: cannot allocate"), ValueError()], None),
        ([OSError("libit.so: failed to map: Cannot allocate memory")], OSError),
        ([ValueError("no it"), KeyError("x"), MemoryError()], MemoryError),
        ([RuntimeError("can't start new thread")], RuntimeError),
        ([RuntimeError("can't start")], None),
        ([*CIRCLE, CIRCLE[0]], None),
    ],
)
def test_what_is_short(errors, kind, handled):
    outside, e = MemoryError(), chained(*errors, handled=handled)
    try:
        _importing.short("it", e, outside)
    except mx.MXNetError as found:
        assert kind is not None and isinstance(found, kind) and found.again and found.__cause__ is e
        with pytest.raises(kind) as nested:
            _importing.short("what needs it", chained(ImportError("no"), found))
        assert nested.value is found  # it is told once
    else:
        assert kind is None


def test_what_is_handled_by_who_asks_is_no_fault_of_an_import(modules):
    modules(fails_by_itself="raise ImportError('no libmagic here')")
    try:
        raise MemoryError
    except MemoryError:
        with pytest.raises(ImportError, match="^no libmagic here$"):
            _importing.whole("fails_by_itself", lambda: importlib.import_module("fails_by_itself"))


def full(*args, **kwargs):
    raise OSError(errno.EMFILE, "Too many open files")


@pytest.mark.parametrize("where, what", [(os, "scandir"), (importlib.metadata, "entry_points")])
def test_installed_plugins_are_not_taken_for_damaged_without_descriptors(monkeypatch, where, what):
    damaged = {}
    with monkeypatch.context() as m:
        m.setattr(where, what, full)
        with pytest.raises(mx.MXNetError, match="^the list of installed plugins cannot be loaded now: OSError"):
            installed(damaged)
    assert not damaged and len(installed(damaged)) > 3
