"""What tests of several parts use."""

import gc
import itertools
import linecache
import os
import random
import signal
import sys
import threading
import types
import zlib

import numpy as np
import pytest

import mxcore as mx
from mxcore._core.engine import ThreadedEnginePerDevice
from mxcore._core.manager import manager
from mxcore.plugin import API_VERSION, hookimpl
from mxcore.testing.engines import use_engine
from mxcore.testing.ways import both_ways
from tests.descriptors import TOLD, not_there, open_descriptors

# The pytest that a test starts is no worker of this run (`pytest -n`): it would refuse to measure anything.
for _name in [n for n in os.environ if n.startswith("PYTEST_XDIST")]:
    del os.environ[_name]

os.environ["MXCORE_COMPILE"] = "wait"


def _settle():
    """What is there now stays: later collections of garbage do not look through it, for minutes in all."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser):
    parser.addoption(
        "--share", metavar="HEX", help="of the slow tests marked `in_turn`, run the third that follows from this number"
    )


def of_share(nodeid, share):
    """Whether a test belongs to the third of a run."""
    return (zlib.crc32(nodeid.encode()) + int(share, 16)) % 3 == 0


def leave_to_others(config, items, in_turn):
    """Of those tests for which `in_turn` holds, leave out what is not of this run's share."""
    share = config.getoption("--share")
    left = [i for i in items if share and in_turn(i) and not of_share(i.nodeid, share)]
    config.hook.pytest_deselected(items=left)
    away = set(left)
    items[:] = [i for i in items if i not in away]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    leave_to_others(config, items, lambda item: all(map(item.get_closest_marker, ("in_turn", "slow"))))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    _settle()  # tens of thousands of tests


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    if nextitem is not None and nextitem.path != item.path:
        _settle()  # what modules, kernels and reports have left


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Chance follows from the test's name: alone, or behind others, it draws the same numbers."""
    seed = zlib.crc32(item.nodeid.encode())
    random.seed(seed)
    np.random.seed(seed)
    mx.random.seed(seed)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """What is marked ``both_ways`` runs once more over the reference bodies, where it chose a kernel."""
    if pyfuncitem.get_closest_marker("both_ways") is None:
        return None
    args = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    both_ways(lambda: pyfuncitem.obj(**args))
    return True


@pytest.fixture
def restless():
    """Threads take turns as often as the interpreter lets them."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture
def in_threads(restless):
    """Run a function in several threads at once, each with arguments of its own, to their ends."""

    def run(function, arguments):
        threads = [threading.Thread(target=function, args=each) for each in arguments]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    return run


@pytest.fixture
def threaded():
    """A fresh threaded engine that pushes everything it may."""
    new = ThreadedEnginePerDevice()
    new.work_limit = -1.0
    new.note(mx.cpu(0))
    new.note(mx.cpu(1))
    old = use_engine(new)
    yield new
    use_engine(old)


@pytest.fixture
def ctrl_c():
    """Ctrl-C raises KeyboardInterrupt, whatever other tests have made of it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def interrupted(ctrl_c):
    """Do something, with a Ctrl-C at the n-th place in some files; gives how many were met (n = 0: in a second run).

    Places are lines, and where a function that is not written in Python has returned: nobody has its result then. Where
    a with-block or a try begins or ends the interpreter does not look at signals.
    """

    def run(n, files, work):
        count = 0
        if not n:
            work()  # what is imported, compiled or tidied up once is no place of the runs that follow

        def at(frame, event, arg):
            nonlocal count
            if event in ("line", "c_return") and (name := frame.f_code.co_filename).endswith(files):
                line = linecache.getline(name, frame.f_lineno).split() if event == "line" else ()
                if not line or line[0] not in ("with", "try:"):
                    count += 1
                    if count == n:
                        signal.raise_signal(signal.SIGINT)
            return at

        before = sys.gettrace(), sys.getprofile()
        sys.settrace(lambda frame, *_: at if frame.f_code.co_filename.endswith(files) else None)
        sys.setprofile(at)
        try:
            work()
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(before[1])
            sys.settrace(before[0])
        return count

    return run


@pytest.fixture
def handled_anywhere():
    """Do something, with a signal's handler that does something else before each line in some files in turn.

    Gives how many lines there are.
    """
    if not hasattr(signal, "SIGALRM"):
        pytest.skip("a signal that nobody else uses")

    def run(files, work, other):
        before, traced = signal.signal(signal.SIGALRM, lambda *_: other()), sys.gettrace()
        try:
            for n in itertools.count(1):
                met = 0

                def at(frame, event, arg, n=n):
                    nonlocal met
                    if not frame.f_code.co_filename.endswith(files):
                        return None
                    met += event == "line"
                    if met == n and event == "line":
                        sys.settrace(None)  # what it does is its own
                        signal.raise_signal(signal.SIGALRM)
                    return at

                sys.settrace(at)
                try:
                    work()
                finally:
                    sys.settrace(traced)
                if met < n:
                    return n - 1
        finally:
            signal.signal(signal.SIGALRM, before)

    return run


@pytest.fixture
def without_descriptors_left(interrupted):
    """Do something with a Ctrl-C at each place in some files in turn; gives how many there are.

    No descriptor may be left open behind one, and what is `asked` then must hold.
    """
    if not TOLD:
        pytest.skip("the system does not tell which descriptors are open")

    def run(files, work, asked=lambda: True):
        places = interrupted(0, files, work)
        gc.collect()
        before = open_descriptors()
        for n in range(1, places):
            interrupted(n, files, work)
            gc.collect()
            assert open_descriptors() == before, (n, not_there(before))
            assert asked(), n
        work()
        return places

    return run


@pytest.fixture
def passes():
    """Register graph passes of a plugin named 'passing'."""

    def register(*found):
        plugin = types.SimpleNamespace(
            API_VERSION=API_VERSION, mxcore_graph_passes=hookimpl(lambda: found, specname="mxcore_graph_passes")
        )
        manager.load()
        manager.register(plugin, "passing")

    yield register
    if "passing" in manager.origin:
        manager.unregister("passing")
