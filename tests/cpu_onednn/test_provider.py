"""What users see of the provider: the kit, results with it and without, workers that load data, what goes wrong."""

import logging
import os
import subprocess
import sys
import types

import numpy as np
import pytest

import mxcore as mx
import mxcore_onednn
from mxcore import autograd
from mxcore._core.manager import manager
from mxcore.executor import CachedOp
from mxcore.plugin import find_op
from mxcore.testing.case import Case, cases
from mxcore.testing.conformance import check_op
from mxcore_cpu import threads
from mxcore_onednn import bindings, calls, library, plan, rooms, teams
from mxcore_onednn.library import NoMemory
from tests.cpu_onednn.support import bfloat16, check_close, forget, numbers

SERVED = """
    Convolution Convolution_v1 Deconvolution FullyConnected LRN Pooling RNN batch_dot dot
    """.split()
BACKWARD = [f"_backward_{name}" for name in ("Convolution", "Deconvolution", "FullyConnected")]


@pytest.mark.usefixtures("provider", "always")
@pytest.mark.parametrize("name", [*SERVED, *BACKWARD])
def test_the_kit(name):
    check_op(name, mx.cpu())


def results(case):
    """Outputs and gradients of a sample, eager and compiled."""
    arrays = [mx.nd.array(a, dtype=a.dtype) for a in case.host]
    op = getattr(mx.nd, case.op.name)
    symbol = getattr(mx.sym, case.op.name)(*[mx.sym.Variable(f"x{i}") for i in range(len(arrays))], **case.kwargs)
    found = []
    for call in (lambda *xs: op(*xs, **case.kwargs), CachedOp(symbol)):
        mx.random.seed(0)  # for dropout
        for x in arrays:
            x.attach_grad()
        with autograd.record():
            ys = several(call(*arrays))
        autograd.backward(ys, [mx.nd.ones_like(y) * 0.5 for y in ys])
        found += [a.asnumpy() for a in (*ys, *[x.grad for x in arrays], *several(call(*arrays)))]
    return found


def several(found):
    return found if isinstance(found, list) else [found]


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("name", SERVED)
def test_with_and_without(name):
    """Every sample of the kit, eager and compiled, with gradients."""
    for case in [c for c in cases(find_op(name), mx.cpu()) if c.dtype == "float32" and c.sample.grad]:
        manager.load()
        known = "cpu_onednn" in manager.origin
        if known:
            manager.unregister("cpu_onednn")
        without = results(case)
        manager.register(mxcore_onednn, "cpu_onednn")
        try:
            check_close(results(case), without)
        finally:
            if not known:
                manager.unregister("cpu_onednn")


@pytest.mark.usefixtures("provider", "always")
@pytest.mark.parametrize("shape", [(0, 3, 5, 5), (2, 3, 5, 5)])
def test_nothing_to_compute(shape):
    x, w = mx.nd.array(np.zeros(shape)), mx.nd.ones((4, 3, 3, 3))
    for v in (x, w):
        v.attach_grad()
    with autograd.record():
        y = mx.nd.Convolution(x, w, kernel=(3, 3), num_filter=4, no_bias=True)
    y.backward()
    assert y.shape == (shape[0], 4, 3, 3) and not y.asnumpy().any() and not w.grad.asnumpy().any()


class Images(mx.gluon.data.Dataset):
    """Each is convolved by the worker that loads it."""

    weight = numbers(0, (8, 3, 3, 3))[0]

    def __len__(self):
        return 6

    def __getitem__(self, i):
        x, w = mx.nd.array(np.full((1, 3, 9, 9), i, np.float32)), mx.nd.array(self.weight)
        y = mx.nd.Convolution(x, w, kernel=(3, 3), num_filter=8, no_bias=True)
        return y.asnumpy()[0], teams.workers(1e9)


@pytest.mark.usefixtures("provider", "always")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_that_load_data(monkeypatch):
    """They are forked from a process whose threads have computed; each computes alone."""
    monkeypatch.setattr(threads, "count", lambda: 3)
    monkeypatch.setattr(teams, "_LITTLE", 0)
    images = Images()
    want = np.stack([images[i][0] for i in range(6)])
    assert images[0][1] == 3
    found = list(mx.gluon.data.DataLoader(images, 3, num_workers=2))
    check_close([np.concatenate([y.asnumpy() for y, _ in found])], [want])
    assert {int(n) for _, of in found for n in of.asnumpy()} == {1}


@pytest.mark.usefixtures("provider", "always")
def test_the_limit_of_threads_holds(monkeypatch):
    """Whoever computes under a limit gets a plan for so many threads, and its own numbers of threads back."""
    seen = []
    real = plan.Threads.__enter__
    monkeypatch.setattr(teams, "_LITTLE", 0)
    monkeypatch.setattr(threads, "maximum", lambda: 4)
    monkeypatch.setattr(plan.Threads, "__enter__", lambda self: (seen.append(self.n), real(self))[1])
    x, w = (mx.nd.array(a) for a in numbers(0, (2, 8, 9, 9), (8, 8, 3, 3)))
    before = library.library().openmp.omp_get_max_threads()
    for n in (1, 2, 4):
        with threads.limit(n):
            del seen[:]
            mx.nd.Convolution(x, w, kernel=(3, 3), num_filter=8, no_bias=True).wait_to_read()
            assert set(seen) == {n}
    assert library.library().openmp.omp_get_max_threads() == before


# -- what goes wrong ------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("provider", "always")
@pytest.mark.parametrize("where", ["make", "scratch", "memories"])
def test_without_memory_others_compute(monkeypatch, caplog, where):
    """At any point: the same numbers, one line in the log for each operator, and the library is asked again later."""

    def fails(*args, **kw):
        raise NoMemory("oneDNN: out of memory")

    x, w, dy = (mx.nd.array(a) for a in numbers(1, (3, 8, 10, 10), (8, 8, 3, 3), (3, 8, 8, 8)))
    kw = dict(kernel=(3, 3), num_filter=8, no_bias=True)

    def compute():
        w.attach_grad()
        with autograd.record():
            y = mx.nd.Convolution(x, w, **kw)
        y.backward(dy)
        return [y.asnumpy(), w.grad.asnumpy()]

    want = compute()
    monkeypatch.setattr(calls, "_told", set())
    forget()
    with monkeypatch.context() as patch:
        if where == "make":
            patch.setattr(plan.Plan, "add", fails)
        elif where == "scratch":
            patch.setattr(rooms.Room, "at", fails)
        else:
            patch.setattr(plan, "Bound", fails)
        with caplog.at_level(logging.WARNING, "mxcore"):
            for _ in range(2):
                check_close(compute(), want)
    told = [r.getMessage() for r in caplog.records]
    assert len(told) == 2 and all("runs without oneDNN" in t for t in told)
    runs = []
    monkeypatch.setattr(
        plan.Plan, "run", lambda self, *a, run=plan.Plan.run, **kw: (runs.append(1), run(self, *a, **kw))
    )
    check_close(compute(), want)
    assert len(caplog.records) == 2 and len(runs) == 2


PARAMS = {
    "FullyConnected": {"num_hidden": 4, "no_bias": True},
    "RNN": {"state_size": 5, "num_layers": 1, "mode": "gru"},
    "_backward_Convolution": {"kernel": (3, 3), "num_filter": 4, "no_bias": True},
    "_backward_Deconvolution": {"kernel": (3, 3), "num_filter": 4, "no_bias": True},
}


def test_what_is_no_array_never_reaches_the_library():
    """Kernels say no to what the library could not take, whatever the parameters."""
    every = [e for e in bindings.kernels.entries if not e.op.startswith("_contrib_quantized")]
    assert len(every) > len({e.op for e in every}) > 40
    for kernel in every:
        op, name = find_op(kernel.op), kernel.op.removeprefix("_backward_")
        p = op.parse(PARAMS.get(kernel.op) or PARAMS.get(name) or Case(op, op.samples[0], "float32", mx.cpu()).kwargs)
        for shape, dtype, stype in (
            ((2, 4, 5, 5), "f8", "default"),
            ((2, 4, 5, 5), "f2", "default"),
            ((2, 4, 5, 5), "f4", "row_sparse"),
            ((2, 4, 5, 5), bfloat16(), "row_sparse"),
            ((0, 4, 5, 5), "f4", "default"),
            ((0, 4, 5, 5), bfloat16(), "default"),
            ((1 << 16, 4, 1 << 8, 1 << 8), "f4", "default"),
            ((1 << 16, 4, 1 << 8, 1 << 8), bfloat16(), "default"),
        ):
            spec = types.SimpleNamespace(
                shape=shape, dtype=np.dtype(dtype), stype=stype, ndim=4, size=int(np.prod(shape, dtype=np.int64))
            )
            n = len(op.signature(p).inputs)
            assert not kernel.when(p, *[spec] * n), (kernel.op, shape, dtype, stype)


PROGRAM = """
import numpy as np, mxcore as mx
from mxcore._core.manager import manager
import mxcore_onednn
manager.load()
if "cpu_onednn" not in manager.origin:
    manager.register(mxcore_onednn, "cpu_onednn")
x = mx.nd.array(np.arange(32).reshape(1, 2, 4, 4))
y = mx.nd.Convolution(x, mx.nd.ones((3, 2, 3, 3)), kernel=(3, 3), num_filter=3, no_bias=True)
print(y.asnumpy()[0, 0].tolist(), "|", mxcore_onednn.mxcore_report()[0])
"""


@pytest.mark.parametrize(
    "variable, value, report",
    [("MXCORE_ONEDNN", "0", "MXCORE_ONEDNN is 0"), ("ONEDNN_MAX_CPU_ISA", "SSE41", "this processor has no AVX2")],
)
def test_where_the_library_is_of_no_use(monkeypatch, variable, value, report):
    monkeypatch.setenv(variable, value)
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[[234.0, 252.0], [306.0, 324.0]] | oneDNN: not used") and report in done.stdout


def test_code_for_amx_is_left_alone():
    """In a process of its own: the library is told before it is first used."""
    program = "from mxcore_onednn.library import library; print(library().isa >> 9)"
    kept = {n: v for n, v in os.environ.items() if not n.endswith("_MAX_CPU_ISA")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=kept)
    assert done.stdout == "0\n", done.stderr
