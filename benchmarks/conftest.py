"""What benchmarks use: the devices that are present, interleaved measurement, and the table."""

from __future__ import annotations

import time

import pytest

import mxcore as mx

from .peer import VARIABLE, fastest, peer
from .table import Row, lines, seconds

ROWS, BEGIN = pytest.StashKey[list](), pytest.StashKey[float]()
#: Seconds after which a quick run begins no further benchmark, and those of them that repetitions share: the rest is for
#: making and compiling things.
QUICK, REPEATING = 95, 30
#: A quick run repeats nothing more often.
FEW = 3


def backends(types=()):
    """The first context of each type of device that can be used (or of some types); kinds of host memory count as the CPU."""
    from mxcore._core import registry

    names = [n for n in registry.devices.names() if n not in ("cpu_pinned", "cpu_shared") and (not types or n in types)]
    return [mx.Context(n) for n in names if registry.devices.get(n).count()]


def pytest_configure(config):
    config.stash.setdefault(ROWS, [])
    config.stash[BEGIN] = time.perf_counter()
    config.addinivalue_line("markers", "backends(*types): measure on devices of these types only")


def pytest_runtest_setup(item):
    if item.config.option.quick and time.perf_counter() - item.config.stash[BEGIN] > QUICK:
        pytest.skip("the time of a quick run is over")


def pytest_generate_tests(metafunc):
    if "ctx" in metafunc.fixturenames:
        only = metafunc.definition.get_closest_marker("backends")
        metafunc.parametrize("ctx", backends(only.args if only else ()), ids=str)


@pytest.fixture
def backend(request):
    """The context of the benchmark at hand; None where none takes part."""
    return request.node.callspec.params.get("ctx") if hasattr(request.node, "callspec") else None


@pytest.fixture
def finish(backend):
    """Wait for a device that computes behind the caller's back; nothing on others."""
    if backend is None or not backend.device.async_:
        return lambda: None
    return lambda: backend.device.synchronize(backend.device_id)


@pytest.fixture
def row(request, backend):
    """Enter a row in the table: ``row(name, value, wanted=…, …)``, the fields of `Row`."""
    rows = request.config.stash.setdefault(ROWS, [])

    def enter(name, **fields):
        rows.append(Row(name, backend=str(backend or "-"), **fields))

    return enter


@pytest.fixture
def few(request, finish):
    """How often to do what is done so many times: ``few(number, run=None)``.

    As often as that; in a quick run three times at most, or, given a function to try, as often as fits into the share of one benchmark.
    """
    share = REPEATING / max(request.session.testscollected, 1)

    def allowed(number, run=None, most=None):
        if not request.config.option.quick:
            return number
        if run is None:
            return min(number, FEW)
        for _ in range(2):  # the first call makes plans and compiles
            start = time.perf_counter()
            run()
            finish()
            took = time.perf_counter() - start
            if took > share:
                return 1
        return min(number, most or number, int(share / took))

    return allowed


@pytest.fixture
def compare(benchmark, row, few, finish):
    """Measure two functions in turns: ``compare(name, ours, reference, at_most=…)``; returns the ratio.

    Each round runs the reference `number` times, then ours; the fastest round of each counts. A figure that is not
    met shows in the table and fails nothing, since machines differ.
    """

    def measure(name, ours, reference, number=1, rounds=30, at_most=None, against="NumPy"):
        mine, other = [], []

        def both():
            reference(), ours()

        if number > 1:
            number = few(number, both, most=-(-number // FEW))

        def timed(run, times):
            start = time.perf_counter()
            for _ in range(number):
                run()
            finish()
            times.append((time.perf_counter() - start) / number)

        def run_reference():
            timed(reference, other)

        def run_ours():
            timed(ours, mine)

        rounds = few(rounds, lambda: (run_reference(), run_ours()), most=FEW)
        benchmark.pedantic(run_ours, setup=run_reference, rounds=rounds, iterations=1, warmup_rounds=2 if rounds > FEW else 0)
        ratio = min(mine) / min(other)
        benchmark.extra_info.update(ratio=ratio, at_most=at_most, reference_s=min(other))
        row(name, seconds=min(mine), against=f"{against} {seconds(min(other))}", ratio=ratio, at_most=at_most)
        return ratio

    return measure


@pytest.fixture
def beside(benchmark, row, few):
    """Measure a workload here and in MXNet in turns: ``beside(name, ours, workloads, case, number, at_most=…)``.

    Each round makes `number` calls on each side; the fastest call of all rounds counts. The workload waits for itself.
    """

    def measure(name, ours, workloads, case, number, rounds=8, at_most=None):
        mine, other = [], []
        number = few(number, ours, most=FEW)
        rounds = few(rounds, ours, most=FEW)

        def run_ours():
            mine.append(fastest(ours, number))

        with peer(workloads) as theirs:

            def run_theirs():
                if theirs is not None:
                    other.append(theirs(case, number))

            benchmark.pedantic(run_ours, setup=run_theirs, rounds=rounds, iterations=1)  # in turns, so that both meet the same machine
        if not other:
            row(name, seconds=min(mine), value=f"set {VARIABLE} to compare")
            return
        ratio = min(mine) / min(other)
        benchmark.extra_info.update(ratio=ratio, at_most=at_most, reference_s=min(other))
        row(name, seconds=min(mine), against=f"MXNet {seconds(min(other))}", ratio=ratio, at_most=at_most)

    return measure


def pytest_terminal_summary(terminalreporter, config):
    rows = config.stash.get(ROWS, [])
    if rows:
        terminalreporter.section("benchmarks")
        for line in lines(rows):
            terminalreporter.write_line(line)
