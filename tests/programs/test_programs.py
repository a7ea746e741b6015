"""Programs of the kind that people have, unchanged under ``mxcore run``: they print what they print on MXNet 1.9.1."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "golden.json").read_text())
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")


def alike(line, wanted):
    """Whether two lines say the same, numbers within rounding, whatever the blanks."""
    words, numbers = zip(
        *((re.sub(r"\s", "", NUMBER.sub("#", text)), [*map(float, NUMBER.findall(text))]) for text in (line, wanted))
    )
    return words[0] == words[1] and numbers[0] == pytest.approx(numbers[1], rel=2e-3, abs=2e-3)


def whole(lines):
    """Lines with the arrays in them, which NumPy breaks where their last digits take them."""
    found, depth = [], 0
    for line in filter(None, map(str.rstrip, lines)):
        found[len(found) - (depth > 0) :] = [f"{found[-1]} {line}" if depth > 0 else line]
        depth += line.count("[") - line.count("]")
    return found


def test_arrays_are_one_line_wherever_they_break():
    assert whole(["a [[1 2", " 3]", " [4]]", "", "b [5]", "c"]) == ["a [[1 2  3]  [4]]", "b [5]", "c"]


def test_every_program_has_its_golden_lines():
    assert {p.stem for p in (HERE / "scripts").glob("*.py")} == set(GOLDEN)


@pytest.mark.slow
@pytest.mark.parametrize("name", GOLDEN)
def test_program(name, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mxcore", "run", str(HERE / "scripts" / f"{name}.py")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    lines, golden = whole(done.stdout.splitlines()), whole(GOLDEN[name])
    wrong = [(i, line, wanted) for i, (line, wanted) in enumerate(zip(lines, golden)) if not alike(line, wanted)]
    assert len(lines) == len(golden) and not wrong
