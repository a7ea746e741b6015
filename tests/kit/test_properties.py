"""Every stock operator stands up to uses that nobody meant: the answer of its rules, or an error that names it.

A failing use is made small by hypothesis; `repr(use)` in the message is a call that can be typed in.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mxcore.testing.catalogue import stock_operators
from mxcore.testing.mutate import mutated
from mxcore.testing.robust import bounded_memory, check_use

OPS = [pytest.param(op, id=f"{family}-{op.name}") for family, op in stock_operators() if op.samples]
#: The same uses in every run; no example is too slow by itself, `check_use` has its own clock.
SAME = {"derandomize": True, "database": None, "deadline": None, "suppress_health_check": list(HealthCheck)}
CHOICES = st.randoms(use_true_random=False)


@pytest.fixture(autouse=True)
def limits(monkeypatch):
    """Parameters of any size meet a limit, not the machine's last byte; nobody waits for contexts for long."""
    monkeypatch.setenv("MXCORE_SYNC_TIMEOUT", "0.1")
    with bounded_memory():
        yield


@pytest.mark.parametrize("op", OPS)
@settings(max_examples=8, **SAME)
@given(rnd=CHOICES)
def test_one_change(op, rnd):
    check_use(mutated(op, rnd, most=1))


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.parametrize("op", OPS)
@settings(max_examples=40, **SAME)
@given(rnd=CHOICES)
def test_some_changes(op, rnd):
    check_use(mutated(op, rnd, most=3))
