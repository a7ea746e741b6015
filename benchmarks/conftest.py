"""What benchmarks use: the devices that are present, interleaved measurement, and the table."""

from __future__ import annotations

import time

import pytest

import mxcore as mx

from .peer import VARIABLE, fastest, peer
from .table import Row, lines, seconds

ROWS = pytest.StashKey[list]()


def backends():
    """The first context of each type of device that can be used; kinds of host memory count as the CPU."""
    from mxcore._core import registry

    names = [n for n in registry.devices.names() if n not in ("cpu_pinned", "cpu_shared")]
    return [mx.Context(n) for n in names if registry.devices.get(n).count()]


def pytest_configure(config):
    config.stash.setdefault(ROWS, [])


def pytest_generate_tests(metafunc):
    if "ctx" in metafunc.fixturenames:
        metafunc.parametrize("ctx", backends(), ids=str)


@pytest.fixture
def row(request):
    """Enter a row in the table: ``row(name, value, wanted=…, …)``, the fields of `Row`."""
    rows = request.config.stash.setdefault(ROWS, [])

    def enter(name, **fields):
        ctx = request.node.callspec.params.get("ctx") if hasattr(request.node, "callspec") else None
        rows.append(Row(name, backend=str(ctx or "cpu(0)"), **fields))

    return enter


@pytest.fixture
def compare(benchmark, row):
    """Measure two functions in turns: ``compare(name, ours, reference, at_most=…)``; returns the ratio.

    Each round runs the reference `number` times, then ours; the fastest round of each counts. A figure that is not
    met shows in the table and fails nothing, since machines differ.
    """

    def measure(name, ours, reference, number=1, rounds=30, at_most=None, against="NumPy"):
        times = []

        def run_reference():
            start = time.perf_counter()
            for _ in range(number):
                reference()
            times.append(time.perf_counter() - start)

        def run_ours():
            for _ in range(number):
                ours()

        benchmark.pedantic(run_ours, setup=run_reference, rounds=rounds, iterations=1, warmup_rounds=2)
        mine, other = benchmark.stats.stats.min / number, min(times) / number
        ratio = mine / other
        benchmark.extra_info.update(ratio=ratio, at_most=at_most, reference_s=other)
        row(name, seconds=mine, against=f"{against} {seconds(other)}", ratio=ratio, at_most=at_most)
        return ratio

    return measure


@pytest.fixture
def beside(row):
    """Measure a workload here and in MXNet in turns: ``beside(name, ours, workloads, case, number, at_most=…)``.

    Each round makes `number` calls on each side; the fastest call of all rounds counts.
    """

    def measure(name, ours, workloads, case, number, rounds=8, at_most=None):
        mine, other = [], []
        with peer(workloads) as theirs:
            for _ in range(rounds):  # in turns, so that both meet the same machine
                if theirs is not None:
                    other.append(theirs(case, number))
                mine.append(fastest(ours, number))
        if not other:
            row(name, seconds=min(mine), value=f"set {VARIABLE} to compare")
        else:
            row(name, seconds=min(mine), against=f"MXNet {seconds(min(other))}", ratio=min(mine) / min(other), at_most=at_most)

    return measure


def pytest_terminal_summary(terminalreporter, config):
    rows = config.stash.get(ROWS, [])
    if rows:
        terminalreporter.section("benchmarks")
        for line in lines(rows):
            terminalreporter.write_line(line)
