"""Samples: given where an operator is declared, or in a table that is imported when somebody asks."""

import sys
from types import ModuleType

import pytest

from mxcore.plugin import Sample, declarations, op


def declared(**samples):
    return op("sampled", **samples)(lambda k, p, data: data)


@pytest.fixture
def table(monkeypatch):
    """A module with a table of samples, and the list of what was asked of it."""
    asked = []

    class Table(dict):
        def get(self, name, default=None):
            asked.append(name)
            return super().get(name, default)

    module = ModuleType("some_samples")
    module.SAMPLES = Table(sampled=[Sample((2, 3))])
    monkeypatch.setitem(sys.modules, "some_samples", module)
    return asked


def test_samples_stand_in_the_declaration():
    sample = Sample((2,))
    assert declared().samples == [] and declared(samples=[sample]).samples == [sample]


def test_samples_are_asked_for_once():
    calls = []
    made = declared(samples=lambda: calls.append("asked") or (Sample((2,)),))
    assert calls == []
    assert made.samples is made.samples and len(made.samples) == 1
    assert calls == ["asked"]


def test_samples_stand_in_a_table(table):
    module = ModuleType("some_operators")
    module.plain, module.others = declared(), [declared(samples=[Sample((7,))])]
    module.forgotten = op("forgotten")(lambda k, p, data: data)
    plain, other, forgotten = declarations(module, samples="some_samples:SAMPLES")
    assert table == []
    assert [s.inputs for s in plain.samples] == [((2, 3),)]
    assert [s.inputs for s in other.samples] == [((7,),)]  # its own come first
    assert forgotten.samples == []
    assert table == ["sampled", "forgotten"]
