"""The door to Numba: one source in both forms, threads, forks, caches, and failures that stay harmless."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from mxcore_cpu import blas, jit, threads
from mxcore_cpu.jit import kernel
from mxcore_cpu.kernels import elementwise, gemm, softmax
from tests.marks import slow


@kernel(threshold=64)
def twice(first, last, x, y):
    for i in range(first, last):
        y[i] = x[i] + x[i]


@kernel
def needs(first, last, much, y):
    for i in range(first, last):
        y[i] = np.empty(much).size


def python(source, *args, **environment):
    """Run a script in a fresh interpreter and return what it printed."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **environment}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source), *map(str, args)],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_number_of_parts_does_not_matter():
    x = np.arange(1001.0)
    for parts in (1, 2, 3, 7, 2000):
        y = np.zeros_like(x)
        twice.run(parts, x.size, x, y)
        assert np.array_equal(y, 2 * x), parts
    twice.run(4, 0, x, y)  # no items: nothing happens
    assert np.array_equal(y, 2 * x)


def test_form_follows_size_and_limit(monkeypatch):
    asked = []

    class Spy(threads.parallel):
        def __init__(self, workers):
            asked.append(workers)
            super().__init__(workers)

    monkeypatch.setattr(threads, "parallel", Spy)
    monkeypatch.setattr(threads, "maximum", lambda: 2)
    x = np.ones(100)
    twice(10, x, x.copy())
    assert asked == []
    twice(100, x, x.copy())
    assert asked == [2]
    with threads.limit(1):
        twice(100, x, x.copy())
    assert asked == [2]


def test_no_memory_in_a_part_is_an_error():
    y = np.zeros(8)
    for parts in (1, 2):
        with pytest.raises(MemoryError):
            needs.run(parts, 8, 1 << 50, y)
    needs.run(2, 8, 3, y)
    assert (y == 3).all()


def test_concurrent_calls():
    x = np.random.default_rng(0).standard_normal((400, 300)).astype("f4")
    expected = np.exp(x - x.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    wrong = []

    def work():
        out, product = np.empty_like(x), np.empty((400, 400), "f4")
        for _ in range(20):
            softmax.softmax(x, out)
            gemm.matmul(x, x, product, transpose_b=True)
            if not np.allclose(out, expected, atol=1e-6) or not np.allclose(product, x @ x.T, atol=1e-3):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    assert wrong == []


WORK = """
    import os, threading
    import numpy as np
    from mxcore_cpu import threads
    from mxcore_cpu.kernels import elementwise
    x = np.ones(1 << 18, "f4")
    def check():
        y = np.empty_like(x)
        elementwise.UNARY["relu"].run(2, x.size, x, y, 0.0)
        assert (y == 1).all()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forked_child_runs_kernels():
    out = python(
        WORK
        + """
    check()
    pid = os.fork()
    if not pid:
        check()
        assert threads.count() == 1
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    check()
    """
    )
    assert out == "7"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_child_forked_before_the_first_parallel_kernel_may_use_threads():
    out = python(
        WORK
        + """
    pid = os.fork()
    if not pid:
        check()
        os._exit(7 if threads.count() == threads.maximum() else 8)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """,
        MXCORE_NUM_THREADS="2",
    )
    assert out == "7"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("which", ["setup", "compiler", "llvm"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_waits_for_what_other_threads_compile(which):
    """In the child nobody would end it."""
    from llvmlite.binding import ffi
    from numba.core.compiler_lock import global_compiler_lock

    lock = {"setup": threads.setup, "compiler": global_compiler_lock._lock, "llvm": ffi.lib._lock._lock}[which]
    inside = threading.Event()

    def work():
        with lock:
            inside.set()
            time.sleep(0.2)

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if lock.acquire(timeout=5) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    thread.join()
    assert lock.acquire(timeout=5)
    lock.release()


def test_workqueue_layer_survives_concurrent_calls():
    out = python(
        WORK
        + """
    check()
    many = [threading.Thread(target=lambda: [check() for _ in range(50)]) for _ in range(4)]
    [t.start() for t in many]
    [t.join() for t in many]
    import numba
    print(numba.threading_layer())
    """,
        NUMBA_THREADING_LAYER="workqueue",
    )
    assert out == "workqueue"


def test_without_numba_kernels_are_not_offered():
    out = python("""
    import sys
    sys.modules["numba"] = None
    from mxcore_cpu import jit
    from mxcore_cpu.kernels import convolution, optimizer
    print(jit.available(), "numba" in jit.reason())
    try:
        jit.numba()
    except ImportError as e:
        print(e)
    """)
    assert out.startswith("False True\nnumba cannot be imported: ")
    assert (
        python("from mxcore_cpu import jit; print(jit.available(), jit.reason())", NUMBA_DISABLE_JIT="1")
        == "False NUMBA_DISABLE_JIT is set"
    )


def test_where_numba_will_not_work_the_bodies_compute(monkeypatch):
    import mxcore_cpu
    from mxcore_cpu import loading

    assert (
        python(
            "import mxcore as mx; print(mx.nd.sort(mx.nd.array([3, "
            "1, 2])).asnumpy(), mx.nd.softmax(mx.nd.zeros((1, 2))).asnumpy())",
            NUMBA_DISABLE_JIT="1",
        )
        == "[1. 2. 3.] [[0.5 0.5]]"
    )
    assert (
        python(
            "import mxcore as mx; x = mx.nd.ones((64, 1, 28, 28)); w = mx.nd.ones((20, 1, 5, 5)); "
            "print(mx.nd.Convolution(x, w, kernel=(5, 5), num_filter=20, no_bias=True).sum().asscalar())",
            NUMBA_DISABLE_JIT="1",
        )
        == "1.8432e+07"
    ), "large products, too"
    assert mxcore_cpu.mxcore_kernels()
    monkeypatch.setattr(loading.importlib.metadata, "requires", lambda name: ["llvmlite<0.51", "numpy<1.24,>=1.22"])
    loading.compiles.cache_clear()
    assert mxcore_cpu.mxcore_kernels() == {}, "it refuses a newer NumPy"
    loading.compiles.cache_clear()


def test_half_an_import_leaves_nothing_behind():
    """Such as for want of memory: code that is there runs on one thread, and who imports Numba later gets it whole."""
    assert (
        python("""
    import sys
    import numpy as np
    from mxcore_cpu import loading, threads

    class Without:
        def find_spec(name, path=None, target=None):
            if name == "llvmlite.binding.dylib":
                raise OSError("failed to map segment from shared object")

    sys.meta_path.insert(0, Without)
    threads._own_driver = lambda: False
    with threads.parallel(2) as granted:
        print(granted, loading.available(), loading.reason())
    sys.meta_path.remove(Without)
    import numba
    print(numba.njit(lambda x: x + 1)(1))
    """)
        == "False False numba cannot be imported: OSError: failed to map segment from shared object\n2"
    )


def test_declaring_kernels_does_not_import_numba():
    assert (
        python("""
    import sys
    from mxcore_cpu.kernels import convolution, elementwise, embedding, normalization, optimizer, pooling
    print("numba" in sys.modules)
    """)
        == "False"
    )


def test_code_is_cached_and_a_bad_cache_is_harmless(tmp_path):
    script = (
        WORK
        + """
    check()
    from mxcore_cpu import jit
    import sys
    from mxcore_cpu.native import COUNTS
    print(COUNTS["loaded"], COUNTS["compiled"], "numba" in sys.modules)
    """
    )
    environment = {"MXCORE_CACHE_DIR": str(tmp_path / "cache"), "MXCORE_BODIES": "0"}
    assert python(script, **environment) == "0 2 True"  # a kernel and the driver of threads
    assert python(script, **environment) == "2 0 False"
    files = [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    assert files
    for path in files:  # damaged
        path.write_bytes(path.read_bytes()[:40])
    assert python(script, **environment) == "0 2 True"


def test_blas_count_is_held_and_given_back():
    found = blas.find()
    if found.get_threads is None:
        pytest.skip("no BLAS whose threads can be counted")
    before = found.get_threads()
    with threads.limit(1):
        assert found.get_threads() == 1
        with blas.single, threads.limit(3):  # a limit can only lower
            assert found.get_threads() == 1 and threads.count() == 1
        assert found.get_threads() == 1
    assert found.get_threads() == before


@pytest.mark.parametrize("value, expected", [("3", 3), ("2,1", 2), ("nonsense", None), ("0", None), ("", None)])
def test_threads_from_the_environment(monkeypatch, value, expected):
    monkeypatch.setenv("MXCORE_NUM_THREADS", value)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    threads.maximum.cache_clear()
    try:
        assert threads.maximum() == (threads.available_cores() if expected is None else expected)
    finally:
        threads.maximum.cache_clear()


def test_product_without_blas(monkeypatch):
    rng = np.random.default_rng(1)
    gemm.address.cache_clear()
    monkeypatch.setattr(blas, "find", lambda: blas.Blas(0, 0, False, None, None))
    try:
        a, b = rng.standard_normal((70, 150)), rng.standard_normal((150, 110))
        for ta in (False, True):
            for tb in (False, True):
                out = np.ones((70, 110))
                gemm.matmul(a.T.copy() if ta else a, b.T.copy() if tb else b, out, ta, tb, add=True)
                np.testing.assert_allclose(out, a @ b + 1, rtol=1e-12, atol=1e-12)
    finally:
        gemm.address.cache_clear()


def test_availability():
    assert jit.available() and jit.reason() is None
    assert elementwise.UNARY["relu"].workers(1) == 1


AMID_IMPORTS = """
import signal, sys, time
import mxcore as mx

x, said, left = mx.nd.ones((300, 300)), [], int(sys.argv[1])

def compute(*_):
    said.append(round(300 * float(mx.nd.softmax(x)[0, 0].asscalar())))

class Finder:
    def find_spec(self, name, path=None, target=None):
        global left
        if name.partition(".")[0] in ("llvmlite", "numba"):
            left -= 1
            if left == 0:
                signal.raise_signal(signal.SIGALRM)
                time.sleep(0.2)  # the handler runs in the main thread, wherever this is

signal.signal(signal.SIGALRM, compute)
sys.meta_path.insert(0, Finder())
for _ in range(3):
    compute()
print(left <= 0, said == [1] * (3 + (left <= 0)))
"""


@pytest.fixture
def asking(tmp_path):
    """An environment in which Numba is asked, whatever was compiled before."""
    return {"MXCORE_CACHE_DIR": str(tmp_path / "cache"), "MXCORE_BODIES": "0"}


@pytest.mark.parametrize("place", [1, 5, *slow(2, 9, 14)])
def test_a_handler_may_compute_amid_what_is_made_ready_once(place, asking):
    assert python(AMID_IMPORTS, place, **asking) == "True True"


AMID_CTRL_C = """
import signal, sys
import mxcore as mx

x, left = mx.nd.ones((300, 300)), int(sys.argv[1])

class Finder:
    def find_spec(self, name, path=None, target=None):
        global left
        if name.partition(".")[0] in ("llvmlite", "numba"):
            left -= 1
            if left == 0:
                signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Finder())
try:
    mx.nd.softmax(x).wait_to_read()
    if left <= 0:
        print("was not told of Ctrl-C")
except KeyboardInterrupt:
    pass
print([round(300 * float(mx.nd.softmax(x)[0, 0].asscalar())) for _ in range(2)], left <= 0)
from mxcore_cpu import loading
print(loading.reason())
"""


@pytest.mark.parametrize("place", [1, 5, *slow(2, 9, 14)])
def test_ctrl_c_amid_what_is_made_ready_once_breaks_nothing(place, asking):
    assert python(AMID_CTRL_C, place, **asking) == "[1, 1] True\nNone"


HELD = """
import os, signal, sys

if sys.argv[1] == "fork":  # the first that is done behind it
    os.register_at_fork(after_in_parent=lambda: signal.raise_signal(signal.SIGALRM))

import numpy as np
import mxcore as mx
from mxcore_cpu.locks import setup

x, said = mx.nd.ones((300, 300)), []

def compute(*_):
    said.append(float(mx.nd.dot(x, x)[0, 0].asscalar()))
    said.append(float(mx.nd.from_dlpack(np.ones(3, np.float32)).sum().asscalar()))

signal.signal(signal.SIGALRM, compute)
if sys.argv[1] == "fork":
    if not os.fork():
        os._exit(0)
    os.wait()
else:
    with setup:
        signal.raise_signal(signal.SIGALRM)
print(said)
"""


@pytest.mark.parametrize("who", ["fork", "holder"])
def test_a_handler_computes_where_its_thread_holds_the_lock(who):
    assert python(HELD, who) == "[300.0, 3.0]"
