"""The option ``pytest --benchmark`` and its table."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.table import Row, lines, seconds

ROOT = Path(__file__).resolve().parents[2]


def collected(*args):
    """The tests that pytest would run with these arguments."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", *args]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout


def test_benchmarks_run_only_when_asked_for():
    out = collected("--benchmark")
    assert "benchmarks/test_eager.py::test_add[cpu(0)]" in out and "benchmarks/test_train.py::test_train" in out
    assert "tests/" not in out.replace("benchmarks/test", "")
    assert "test_train.py" not in collected("--benchmark", "-m", "not slow")
    assert "test_add" not in collected("benchmarks")


@pytest.mark.parametrize("s, text", [(2, "2 s"), (0.0123, "12.3 ms"), (4.56e-6, "4.56 µs"), (7e-9, "7 ns")])
def test_durations_are_readable(s, text):
    assert seconds(s) == text


def test_the_table_judges_figures_and_puts_them_first():
    rows = [
        Row("plain", seconds=1e-3, against="x", ratio=2.0),
        Row("good", ratio=1.5, at_most=2),
        Row("bad", ratio=2.5, at_most=2),
        Row("said", value="0 MB", wanted="none", met=True),
    ]
    head, rule, *body = lines(rows)
    assert head.split() == ["benchmark", "backend", "ours", "against", "result", "wanted", "met"] and set(rule) == {"-", " "}
    assert [line.split()[0] for line in body] == ["good", "bad", "said", "plain"]
    assert [line.split()[-1] for line in body] == ["yes", "NO", "yes", "x"]
    assert "at most 2 x" in body[1] and "2.50 x" in body[1]
