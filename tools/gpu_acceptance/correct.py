"""Whether the numbers are right; all of it runs emulated, too."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import mxcore as mx
from mxcore.testing.conformance import Failures, check_op, operators

from . import Report, Skipped
from .plugin import cudnn as cudnn_
from .plugin import gpu

__all__ = [
    "bfloat16",
    "cudnn",
    "graphs",
    "kit",
    "library",
    "memory",
    "random",
    "sanitizer",
    "stores",
    "training",
    "ways",
]

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # for the cases of tests/cuda

#: Operators that show most, for rehearsals.
FEW = "broadcast_add sum FullyConnected softmax Convolution Embedding sgd_mom_update take".split()
#: Operators for the sanitizer, a kernel or two each, what is checked of them, and how many seconds that may take.
FIRST, WATCHED = ("value", "grad_req"), 45
CHECKED = "Convolution Pooling BatchNorm LayerNorm softmax Embedding sgd_mom_update _random_normal sum RNN".split()
#: Folders of tests that run with a GPU in the place of the CPU.
FOLDERS = "contrib executor gluon initializer kvstore metric module monitor ndarray optimizer ops rnn symbol".split()


def kit(report: Report) -> None:
    """Each operator by each check, on as many processes as there are cores for."""
    from tests.cuda.test_kit import OTHERWISE

    gpu()
    names = FEW if report.emulate else [op.name for op in operators()]
    passed = 0
    with _pool(report) as pool:
        for name, problem in pool.map(_failure, names):
            if name in OTHERWISE:
                report.tell(name, "told", note=f"{OTHERWISE[name]}: {problem or 'not seen'}")
            elif problem:
                report.check(name, False, problem[:500])
            else:
                passed += 1
    report.check(f"{passed} of {len(names)} operators", passed > 0)


def _pool(report: Report) -> ProcessPoolExecutor:
    """Processes, as many as the GPU's memory and the cores have room for."""
    workers = 1 if report.emulate else max(1, (os.cpu_count() or 2) // 2)
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))


def _failure(name: str, checks: Sequence[str] | None = None) -> tuple[str, str]:
    """An operator and what it fails, of all checks or of some; in a process of the pool."""
    try:
        check_op(name, gpu(), checks)
    except Failures as e:
        return name, str(e)
    except Exception as e:  # a broken operator is a line of the report, not the end of the stage
        return name, f"{type(e).__name__}: {e}"
    return name, ""


def bfloat16(report: Report) -> None:
    """Each kernel's uses, one rounding from the reference body in float64, on as many processes as there are cores."""
    from tests.cuda.test_kernels import CASES, name_of

    gpu()
    cases = range(0, len(CASES), 40) if report.emulate else range(len(CASES))
    with _pool(report) as pool:
        for i, problem in zip(cases, pool.map(_bfloat16_failure, cases)):
            if problem:
                report.check(name_of(i), False, problem[:500])
    report.check(f"{len(cases)} uses were compared", True)


def _bfloat16_failure(i: int) -> str:
    """What is wrong with a use of a kernel; in a process of the pool."""
    from tests.cuda.test_bfloat16 import check, watching

    gpu()
    try:
        with watching() as beside:
            check(beside, i)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return ""


def cudnn(report: Report) -> None:
    """Random convolutions of one to three dimensions, forward and backward, with and without NaN."""
    from tests.cuda.test_cudnn import FAR, far, random_cases

    os.environ["MXCORE_CUDNN"] = "2"  # wherever it can
    dnn = cudnn_(report.emulate)
    if dnn is None:
        raise Skipped("cuDNN is not there")
    cases = list(random_cases(6 if report.emulate else 40, large=not report.emulate))
    for dtype, bound in FAR.items():
        found, many = [(*far(case, gpu(), dtype), case) for case in cases], len(cases)
        worst, *_, case = max(found, key=lambda f: f[0])
        report.check(f"{many} shapes, {dtype}", worst <= bound, f"differ by {worst:.3g}, wanted {bound:.3g}: {case}")
        unlike = [case for *_, same, case in found if not same]
        report.check(f"the same again, {dtype}", not unlike, f"{len(unlike)} are not, as {unlike[0]}" if unlike else "")
        report.tell(f"further NaN, {dtype}", figure=f"{sum(f[1] for f in found)} places")
        report.tell(f"NaN that it has not, {dtype}", figure=f"{sum(f[2] for f in found)} places")
        ways = Counter((kind, a) for kind, _, d, a, _ in dnn.chosen() if d == dtype)
        report.tell(f"ways, {dtype}", note=", ".join(f"{k} {a}: {n}" for (k, a), n in sorted(ways.items(), key=str)))


def ways(report: Report) -> None:
    """Each of cuDNN's algorithms and engines for a few convolutions, not only those that are chosen."""
    from tests.cuda.test_cudnn import FAR, far, random_cases

    os.environ["MXCORE_CUDNN"] = "2"  # wherever it can
    dnn = cudnn_(report.emulate)
    if dnn is None:
        raise Skipped("cuDNN is not there")
    dnn._WORTH = 0
    cases = [c for c in random_cases(17, large=not report.emulate) if len(c["kernel"]) == 2]
    cases = [cases[-1], next(c for c in cases if c["op"] == "Deconvolution")]
    for dtype, bound in FAR.items():
        tried: set[str] = set()
        worst = 0.0, ""
        for case in cases:
            for number in range(20):
                now, more = _take(dnn, number)
                worst = max(worst, (float(far(case, gpu(), dtype, [False])[0]), f"{sorted(now)} {case}"))
                tried |= now
                if not more:
                    break
        report.check(f"{len(tried)} ways, {dtype}", worst[0] <= bound, f"differ by {worst[0]:.3g}: {worst[1]}")
        report.tell(f"they are, {dtype}", note=", ".join(sorted(tried)))


def _take(dnn: Any, number: int) -> tuple[set[str], list[bool]]:
    """Let the way of a number be chosen from now on: (those that are, whether there are later ones)."""
    now: set[str] = set()
    more: list[bool] = []

    def choose(plan: Any, device: Any, handle: Any, ours: Any, *operands: Any) -> Any:
        found = plan.ways(handle)
        if number + 1 < len(found):
            more.append(True)
        if number >= len(found) or not plan.fits(handle, found[number]):
            return None
        now.add(f"{plan.key.kind.call.removeprefix('cudnnConvolution')} {found[number].name}")
        return found[number]

    dnn._chosen = choose
    dnn._plans.clear()
    return now, more


def random(report: Report) -> None:
    """Draws with the same seed on both."""
    from tests.cuda.test_random import DRAWS, DTYPES, drawn

    for draw in DRAWS:
        for dtype in DTYPES:
            pairs = zip(drawn(draw, gpu(), dtype), drawn(draw, mx.cpu(), dtype), strict=True)
            far = max(float(np.max(np.abs(a.astype("f8") - b.astype("f8")), initial=0)) for a, b in pairs)
            bound = draw[3] * float(ml_dtypes.finfo(dtype).eps) * 2
            if far > bound:
                report.check(f"{draw[0]} {draw[2]} {dtype}", False, f"differs by {far:.3g}, wanted {bound:.3g}")
    report.check(f"{len(DRAWS) * len(DTYPES)} draws were compared", True)


def training(report: Report) -> None:
    """Six steps of three networks."""
    from tests.cuda.test_training import lenet, losses, lstm, mlp

    for make in (mlp, lenet, lstm):
        for hybridise in (False, True):
            there, here = losses(make, [gpu()], hybridise, "adam"), losses(make, [mx.cpu()], hybridise, "adam")
            far = max(abs(a / b - 1) for a, b in zip(there, here, strict=True))
            name = f"{make.__name__}{', hybridised' * hybridise}"
            report.check(name, far < 1e-4, f"relative difference of losses {far:.2g}, wanted 1e-4")


def stores(report: Report) -> None:
    """Keys that are pushed together: sums of each kind, and what comes back, by 'device' and, where NCCL is, by it."""
    from mxcore_cuda import nccl

    gpu()
    gpus = [mx.gpu(i) for i in range(mx.num_gpus())]
    report.tell("NCCL", figure=nccl.describe())
    rs = np.random.RandomState(0)
    sizes = [int(rs.randint(1, 9000)) for _ in range(20 if report.emulate else 60)]
    keys = list(range(len(sizes)))
    for name in ("device", "nccl") if nccl.library() is not None else ("device",):
        # A GPU has one part in NCCL's sums; in those of 'device' there may be more.
        homes = gpus if name == "nccl" else [gpus[i % len(gpus)] for i in range(3)]
        for dtype in ("float32", "float64", "float16", "int8", "uint8", "int32", "int64"):
            store = mx.kv.create(name)
            store.init(keys, [mx.nd.zeros((n,), ctx=gpus[0], dtype=dtype) for n in sizes])
            values = [[rs.uniform(0, 30, n).astype(dtype) for _ in homes] for n in sizes]
            parts = [[mx.nd.array(v, ctx=c, dtype=dtype) for v, c in zip(some, homes)] for some in values]
            outs = [[mx.nd.zeros((n,), ctx=c, dtype=dtype) for c in homes] for n in sizes]
            store.pushpull(keys, parts, out=outs)
            sums = [reduce(np.add, some) for some in values]
            # The order of NCCL's sums is its own where there are three and more.
            holds = all(
                (out.asnumpy() == total).all()
                if len(homes) < 3 or name == "device"
                else np.allclose(out.asnumpy(), total)
                for some, total in zip(outs, sums)
                for out in some
            )
            report.check(f"{len(keys)} keys over {len(homes)} parts, {name}, {dtype}", holds)


def graphs(report: Report) -> None:
    """Twenty steps replayed, and launched one by one; random numbers of replays beside the CPU's."""
    from tests.cuda.test_graphs import replaying
    from tests.cuda.test_recorded_draws import BLOCKS, dropping, steps
    from tests.cuda.test_training import lenet, lstm, mlp

    for make in (mlp, lenet, lstm, dropping):
        found = []
        for on in (True, False):
            with replaying(gpu().device, on):
                found.append(_weights(make))
        same = all(np.array_equal(a, b) for a, b in zip(*found, strict=True))
        report.check(make.__name__, same, "" if same else "weights differ after 20 steps")
    for name, (fn, bound) in BLOCKS.items():
        pairs = zip(steps(fn, gpu()), steps(fn, mx.cpu()), strict=True)
        far = max(float(np.max(np.abs(a - b) / (1 + np.abs(b)))) for a, b in pairs)
        report.check(f"draws: {name}", far <= bound, f"differs by {far:.3g}, wanted {bound:.3g}")


def _weights(make: Any) -> list[Any]:
    """The weights of a network after twenty steps on gpu(0)."""
    mx.random.seed(0)
    np.random.seed(0)
    net, shape = make()
    net.initialize(mx.init.Xavier(), ctx=gpu())
    net.hybridize()
    rs = np.random.RandomState(1)
    trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    for _ in range(20):
        x = mx.nd.array(rs.randn(*shape), ctx=gpu())
        with mx.autograd.record():
            y = (net(x) ** 2).sum()
        y.backward()
        trainer.step(shape[0])
    return [p.data().asnumpy() for p in net.collect_params().values()]


def memory(report: Report) -> None:
    """Too large a batch is an error that names the operator; the model trains on with a smaller one."""
    ctx = gpu()
    if report.emulate:
        from mxcore_cuda.emulation import memory as room

        os.environ["MXCORE_CUDA_EMULATE_MEMORY"] = str(room.used(0) + 2**27)
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(64, activation="tanh", in_units=64), mx.gluon.nn.Dense(1))
    net.initialize(ctx=ctx)
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "adam")

    def step(rows: int) -> float:
        x = mx.nd.ones((rows, 64), ctx=ctx)
        with mx.autograd.record():
            y = (net(x) ** 2).mean()
        y.backward()
        trainer.step(1)
        return float(y.asscalar())

    step(16)
    before = step(16)
    fits = ctx.device.memory(ctx.device_id)[0] // (64 * 4)
    try:
        step(int(fits * 0.7))  # the data have room, what is computed of them has none
    except MemoryError as e:
        report.check("the error says who wanted how much", "bytes" in str(e), str(e)[:300])
    else:
        report.check("there is an error", False)
    after = step(16)
    report.check("a smaller batch trains on", after < before, f"loss {before:.6g}, then {after:.6g}")


def sanitizer(report: Report) -> None:
    """A few operators under compute-sanitizer."""
    tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if report.emulate:
        raise Skipped("it watches a real GPU; emulated kernels have sanitizers of their own in tests/cuda")
    if tool is None:
        raise Skipped("compute-sanitizer is not installed")
    each = f"for n in {CHECKED}:\n    print(*_failure(n, {FIRST}), flush=True)"
    code = f"from gpu_acceptance.correct import _failure\n{each}"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=False)  # all is compiled
    for kind in ("memcheck", "racecheck"):
        command = [tool, "--tool", kind, "--error-exitcode", "9", "--launch-timeout", "90", sys.executable, "-c", code]
        try:
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=WATCHED, check=False)
        except subprocess.TimeoutExpired as e:
            said = (e.stdout or b"").decode()[-300:]
            report.tell(kind, "skipped", note=f"it was not done within {WATCHED} s; until then {said!r}")
            continue
        said = (done.stdout + done.stderr)[-500:]
        if done.returncode not in (0, 9):
            report.tell(kind, "skipped", note=f"it ended with status {done.returncode}: {said}")
        else:
            report.check(kind, done.returncode == 0, said)


def library(report: Report) -> None:
    """The library's own tests with gpu(0) in the place of the CPU: a process for each file."""
    if report.emulate:
        raise Skipped("tests/cuda runs them on emulated GPUs")
    missing = [name for name in ("hypothesis", "pytest") if importlib.util.find_spec(name) is None]
    if missing:
        raise Skipped(f"{', '.join(missing)} is not installed")
    gpu()
    root = Path(__file__).resolve().parents[2]
    files = [f for folder in FOLDERS for f in (root / "tests" / folder).rglob("test_*.py")]
    files.sort(key=lambda f: -f.stat().st_size)  # long ones first
    env = {**os.environ, "MXCORE_CUDA_TESTS": "real", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    env["COLUMNS"] = "300"  # for the reasons of failures
    env |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    plain = "-q -p tests.cuda.library -p no:cacheprovider --benchmark-disable --tb=line -rfE".split()

    def run(file: Path) -> str:
        command = [sys.executable, "-m", "pytest", *plain, str(file.relative_to(root))]
        done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr if done.stdout.strip() else f"ERROR {file.name}: {done.stderr[-300:]}"

    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) - 2)) as pool:
        for said in pool.map(run, files):
            for line in said.splitlines():
                if line.startswith(("FAILED", "ERROR", "INTERNALERROR")):
                    report.tell(line[:400], "failed")
            for n, what in re.findall(r"(\d+) (passed|failed|errors?|xfailed|skipped)", said.splitlines()[-1]):
                counts[what] += int(n)
    told = ", ".join(f"{n} {what}" for what, n in counts.items())
    report.check(f"{len(files)} files of tests", not counts.keys() & {"failed", "error", "errors"}, told)


@contextmanager
def _set(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
