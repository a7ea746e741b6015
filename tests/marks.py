"""Values of a parametrized test that are tried among the slow ones only; `pyproject.toml` says what the marks mean."""

import pytest

_SLOW, _IN_TURN = pytest.mark.slow, pytest.mark.in_turn


def slow(*values):
    """Each of them with `pytest -m slow`."""
    return [pytest.param(v, marks=_SLOW) for v in values]


def in_turn(*values):
    """The same; of all such tests a run with ``--share`` does a third."""
    return [pytest.param(v, marks=[_SLOW, _IN_TURN]) for v in values]
