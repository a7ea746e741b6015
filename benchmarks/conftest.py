"""What only our own benchmarks use: a workload here and in MXNet. The rest is `mxcore.testing.measure`."""

from __future__ import annotations

import pytest

from mxcore.testing.measure import FEW
from mxcore.testing.table import seconds

from .peer import VARIABLE, fastest, peer


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

            # In turns, so that both meet the same machine.
            benchmark.pedantic(run_ours, setup=run_theirs, rounds=rounds, iterations=1)
        if not other:
            row(name, seconds=min(mine), value=f"set {VARIABLE} to compare")
            return
        ratio = min(mine) / min(other)
        benchmark.extra_info.update(ratio=ratio, at_most=at_most, reference_s=min(other))
        row(name, seconds=min(mine), against=f"MXNet {seconds(min(other))}", ratio=ratio, at_most=at_most)

    return measure
