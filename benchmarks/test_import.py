"""What ``import mxcore`` costs beside ``import numpy``."""

from __future__ import annotations

import subprocess
import sys


def import_time(module):
    """Seconds that a fresh interpreter takes to import a module."""
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def test_import(row, few):
    times = {"numpy": [], "mxcore": [], "mxcore.ndarray": []}
    for _ in range(few(9)):  # in turns
        for module, taken in times.items():
            taken.append(import_time(module))
    other, mine, arrays = map(min, times.values())
    against = f"import numpy {other * 1e3:.0f} ms"
    row("import mxcore", seconds=mine, against=against, ratio=mine / other, at_most=1.4)
    row("import mxcore.ndarray", seconds=arrays, against=against, ratio=arrays / other)
    assert mine > 0
