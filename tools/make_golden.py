#!/usr/bin/env python3
"""Ask the real MXNet 1.9.1 about the samples of the operators, and keep its numbers for the tests.

    make_golden.py [--oracle PYTHON] [--all | --modules MODULE ...] [--check]

PYTHON is an interpreter with MXNet 1.9.1 (`pip install mxnet==1.9.1 numpy==1.23.5`, Python 3.11 will do); the variable
MXCORE_ORACLE_PYTHON names it too. Asked is about the modules of operators whose samples are not those of their golden
file, unless all or some are named. `--check` says which these are, and exits with 1 if there are any. What MXNet calls
its operators (`operators.json`), how it writes their graphs (`symbols.npz`) and what it knows of these (`models.npz`)
is asked anew as well.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from mxcore.testing.catalogue import catalogue, stale
from mxcore.testing.pack import Pack

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
#: Names an interpreter that has MXNet 1.9.1; the benchmarks use it too.
VARIABLE = "MXCORE_ORACLE_PYTHON"


def answers() -> dict[str, Pack]:
    """Module of operators -> its golden file."""
    return {p.stem: Pack.load(str(p)) for p in sorted((GOLDEN / "data").glob("*.npz")) if "index" in np.load(p).files}


def ask(python: str, samples: Path, modules: list[str]) -> None:
    """Run the scripts that write golden files in MXNet's environment."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MXNET_CPU_WORKER_NTHREADS")}
    given = str(samples)
    for script, args in (
        ("make_golden", [given, *modules]),
        ("make_operator_facts", [given]),
        ("make_symbol_golden", [given]),
        ("make_model_golden", []),
        ("make_amp_golden", []),
    ):
        subprocess.run([python, str(GOLDEN / f"{script}.py"), *args], env=env, check=True)


def main() -> int:
    """Make what is stale or asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", default=os.environ.get(VARIABLE), metavar="PYTHON", help=f"by default {VARIABLE}")
    parser.add_argument("--check", action="store_true", help="only say what is stale")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="all modules")
    which.add_argument("--modules", nargs="+", default=[], metavar="MODULE", help="modules of operators, such as norm")
    options = parser.parse_args()
    asked = catalogue()
    known = list(dict.fromkeys(e["module"] for e in asked.entries))
    unknown = [m for m in options.modules if m not in known]
    if unknown:
        parser.error(f"no module of operators is named {unknown[0]!r}; modules: {', '.join(known)}")
    found = stale(asked, answers())
    for module, reasons in found.items():
        print(f"{module}: {'; '.join(reasons[:5])}{f'; and {len(reasons) - 5} more' if len(reasons) > 5 else ''}")
    if options.check:
        return int(bool(found))
    for module in found:
        if module not in known:
            (GOLDEN / "data" / f"{module}.npz").unlink()
    modules = options.modules or (known if options.all else [m for m in found if m in known])
    if not modules:
        print("the golden files of all operators fit their samples")
        return 0
    if not options.oracle:
        parser.error(f"which Python has MXNet 1.9.1? Name it with --oracle or {VARIABLE}")
    if not shutil.which(options.oracle):
        parser.error(f"cannot run {options.oracle}: is there a Python with MXNet 1.9.1?")
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder) / "samples.npz"
        asked.save(str(samples))
        ask(options.oracle, samples, modules)
    return 0


if __name__ == "__main__":
    sys.exit(main())
