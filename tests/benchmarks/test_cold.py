"""Fresh processes with an empty cache and with a filled one, as `benchmarks.cold` measures them."""

import ast

import pytest

from benchmarks import cold

_PROGRAM = """
import os, time
from pathlib import Path
folder = Path(os.environ["MXCORE_CACHE_DIR"])
cold = not folder.exists()
folder.mkdir(exist_ok=True)
print(3 if cold else 1)
"""


def test_the_second_process_finds_what_the_first_has_left(capsys, monkeypatch):
    case = cold.Case("a program", ("-c", _PROGRAM), tells=True, most=(4, 2))
    first, again = cold.measure(case, 2)
    assert (first.wall, again.wall) == (3, 1) and first.cpu > 0
    monkeypatch.setattr(cold, "CASES", (case, case._replace(name="another", tells=False, most=None, ratio=2.5)))
    cold.main(1)
    rows = capsys.readouterr().out.splitlines()[2:]
    assert rows[0].startswith("| a program | 3.00 s (") and rows[0].endswith("| 3.0 | 4 s, 2 s |")
    assert rows[1].startswith("| another | 0.") and rows[1].endswith(" | 2.5 |")


def test_a_program_that_fails_is_no_figure():
    with pytest.raises(RuntimeError, match="a program: status 3"):
        cold.measure(cold.Case("a program", ("-c", "raise SystemExit(3)")), 1)


def test_its_programs_can_be_read():
    assert {c.name for c in cold.CASES if c.ratio is None} == {c.name for c in cold.CASES if c.most is not None}
    assert all(ast.parse(c.command[1]) for c in cold.CASES if c.command[0] == "-c")
