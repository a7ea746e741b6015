"""How long everyday programs wait for compiled code, in a container whose cache is empty."""

from __future__ import annotations

import pytest

from . import cold


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] if case.slow else []) for case in cold.CASES]
)
def test_first_process(row, few, case):
    first, again = cold.measure(case, 1 if few(3) > 3 or case.slow else few(2))
    row(
        f"{case.name}, empty cache",
        seconds=first.wall,
        against=f"filled {again.wall:.2f} s",
        ratio=first.wall / again.wall,
        at_most=case.ratio,
        wanted="" if case.most is None else "{} s, {} s filled".format(*case.most),
        met=None if case.most is None else first.wall <= case.most[0] and again.wall <= case.most[1],
    )
    assert first.wall > 0
