"""What benchmarks use: devices, interleaved measurement, the table. A pytest plugin, loaded by ``--benchmark``.

A benchmark is a test that takes the fixture `compare` (or `row`), and `ctx` to run on every device that is present::

    def test_exp(compare, ctx):
        x = mx.nd.ones((1000, 1000), ctx=ctx)
        compare("exp", lambda: x.exp(), lambda: x + x, against="a sum")
"""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

import pytest

from .._core import tables
from .._core.context import Context
from .conformance import context_of
from .options import given
from .table import Row, lines, seconds

__all__ = ["FEW", "backends"]

ROWS, BEGIN = pytest.StashKey[list[Row]](), pytest.StashKey[float]()
#: Seconds after which a quick run begins no further benchmark, and those of them that repetitions share: the rest is
#: for making and compiling things.
QUICK, REPEATING = 95, 30
#: A quick run repeats nothing more often.
FEW = 3


def backends(types: Iterable[str] = (), only: str | None = None) -> list[Context]:
    """The first context of each type of device that can be used; kinds of host memory count as the CPU.

    Parameters
    ----------
    types : iterable of str
        Of these types only; all unless told.
    only : str, optional
        This context alone, e.g. ``'gpu(1)'``, if it is of one of the types.
    """
    if only:
        return [c for c in (context_of(only),) if not types or c.device_type in types]
    names = [n for n in tables.devices.names() if n not in ("cpu_pinned", "cpu_shared") and (not types or n in types)]
    return [Context(n) for n in names if tables.devices.get(n).count()]


def pytest_configure(config: Any) -> None:
    """Begin."""
    config.stash.setdefault(ROWS, [])
    config.stash[BEGIN] = time.perf_counter()
    config.addinivalue_line("markers", "backends(*types): measure on devices of these types only")


def pytest_sessionstart(session: Any) -> None:
    """A limit on the time ends a run like Ctrl-C: with the table so far."""
    if threading.current_thread() is not threading.main_thread():
        return

    def stop(number: int, frame: Any) -> None:
        session.shouldstop = signal.Signals(number).name  # the exception is lost where it is raised in a `__del__`
        if frame is not None and frame.f_lineno is None:  # pytest cannot tell of a place without a line
            threading.Timer(0.01, os.kill, (os.getpid(), number)).start()
            return
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        session.config.add_cleanup(functools.partial(signal.signal, number, signal.signal(number, stop)))


def pytest_runtest_setup(item: Any) -> None:
    """Nothing begins when the time of a quick run is over."""
    if given(item.config, "--quick") and time.perf_counter() - item.config.stash[BEGIN] > QUICK:
        pytest.skip("the time of a quick run is over")


def pytest_generate_tests(metafunc: Any) -> None:
    """One benchmark for each device."""
    if "ctx" in metafunc.fixturenames:
        only = metafunc.definition.get_closest_marker("backends")
        metafunc.parametrize("ctx", backends(only.args if only else (), given(metafunc.config, "--device")), ids=str)


@pytest.fixture
def backend(request: Any) -> Context | None:
    """The context of the benchmark at hand; None where none takes part."""
    return request.node.callspec.params.get("ctx") if hasattr(request.node, "callspec") else None


@pytest.fixture
def finish(backend: Context | None) -> Callable[[], None]:
    """Wait for a device that computes behind the caller's back; nothing on others."""
    if backend is None or not backend.device.async_:
        return lambda: None
    return lambda: backend.device.synchronize(backend.device_id)


@pytest.fixture
def row(request: Any, backend: Context | None) -> Callable[..., None]:
    """Enter a row in the table: ``row(name, value, wanted=…, …)``, the fields of `Row`."""
    rows = request.config.stash.setdefault(ROWS, [])

    def enter(name: str, **fields: Any) -> None:
        rows.append(Row(name, backend=str(backend or "-"), **fields))

    return enter


@pytest.fixture
def few(request: Any, finish: Callable[[], None]) -> Callable[..., int]:
    """How often to do what is done so many times: ``few(number, run=None)``.

    As often as that; in a quick run three times at most, or, given a function to try, as often as fits into the share
    of one benchmark.
    """
    share = REPEATING / max(request.session.testscollected, 1)

    def allowed(number: int, run: Callable[[], Any] | None = None, most: int | None = None) -> int:
        if not given(request.config, "--quick"):
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
def compare(
    benchmark: Any, row: Callable[..., None], few: Callable[..., int], finish: Callable[[], None]
) -> Callable[..., float | None]:
    """Measure two functions in turns: ``compare(name, ours, reference, at_most=…)``; returns the ratio.

    Each round runs the reference `number` times, then ours; the fastest round of each counts, and the median is shown
    beside ours. Without a reference (None) there is no ratio. A figure that is not met shows in the table and fails
    nothing, since machines differ.
    """

    def measure(
        name: str,
        ours: Callable[[], Any],
        reference: Callable[[], Any] | None,
        number: int = 1,
        rounds: int = 30,
        at_most: float | None = None,
        against: str = "NumPy",
        **fields: Any,
    ) -> float | None:
        mine: list[float] = []
        other: list[float] = []

        def both() -> None:
            if reference is not None:
                reference()
            ours()

        if number > 1:
            number = few(number, both, most=-(-number // FEW))

        def timed(run: Callable[[], Any], times: list[float]) -> None:
            start = time.perf_counter()
            for _ in range(number):
                run()
            finish()
            times.append((time.perf_counter() - start) / number)

        def run_reference() -> None:
            if reference is not None:
                timed(reference, other)

        def run_ours() -> None:
            timed(ours, mine)

        def round_() -> None:
            run_reference()
            run_ours()

        rounds = few(rounds, round_, most=FEW)
        benchmark.pedantic(
            run_ours, setup=run_reference, rounds=rounds, iterations=1, warmup_rounds=2 if rounds > FEW else 0
        )
        fields |= {"seconds": min(mine), "median": median(mine)}
        if reference is None:
            row(name, **fields)
            return None
        ratio = min(mine) / min(other)
        benchmark.extra_info.update(ratio=ratio, at_most=at_most, reference_s=min(other))
        row(name, against=f"{against} {seconds(min(other))}", ratio=ratio, at_most=at_most, **fields)
        return ratio

    return measure


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    """Print the table."""
    rows = config.stash.get(ROWS, [])
    if rows:
        terminalreporter.section("benchmarks")
        for line in lines(rows):
            terminalreporter.write_line(line)
