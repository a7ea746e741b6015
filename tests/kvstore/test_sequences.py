"""Any sequence of operations, on stores of every type, gives what the model in plain NumPy gives."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from . import model
from .kinds import ALL, JOBS


def run(kind, examples, monkeypatch):
    monkeypatch.setenv("MXNET_KVSTORE_BIGARRAY_BOUND", "10")

    @settings(max_examples=examples, deadline=None)
    @given(st.data())
    def sequence(data):
        with tempfile.TemporaryDirectory() as folder:
            model.check(data.draw(model.cases(kind)), str(Path(folder) / "states"))

    sequence()


@pytest.mark.parametrize("kind", ALL)
def test_any_sequence(kind, monkeypatch):
    run(kind, 15 if kind in JOBS else 30, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL)
def test_any_sequence_of_many(kind, monkeypatch):
    run(kind, 60 if kind in JOBS else 200, monkeypatch)
