"""What ``import mxcore`` costs beside ``import numpy``."""

from __future__ import annotations

import subprocess
import sys
import time


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


def script_time(folder, *command):
    """Seconds that a fresh interpreter takes for a script."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *command], cwd=folder, check=True)
    return time.perf_counter() - start


def test_run(row, few, tmp_path):
    """What `mxcore run` adds to `python`, and what a program pays for MXNet's names."""
    (tmp_path / "none.py").write_text("")
    (tmp_path / "one.py").write_text("import mxnet\n")
    (tmp_path / "all.py").write_text("from mxnet.test_utils import *\n")
    run = ("-m", "mxcore", "run")
    times = {("none.py",): [], (*run, "one.py"): [], (*run, "all.py"): []}
    for _ in range(few(9)):  # in turns
        for command, taken in times.items():
            taken.append(script_time(tmp_path, *command))
    plain, one, everything = map(min, times.values())
    against = f"python {plain * 1e3:.0f} ms"
    row(
        "mxcore run: import mxnet",
        seconds=one,
        against=against,
        value=f"+{(one - plain) * 1e3:.0f} ms",
        met=one - plain <= 0.06,
    )
    row(
        "mxcore run: from mxnet.test_utils import *",
        seconds=everything,
        against=against,
        value=f"{everything:.2f} s",
        met=everything <= 0.5,
    )
    assert plain < one < everything
