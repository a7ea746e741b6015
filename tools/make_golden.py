#!/usr/bin/env python3
"""Ask the real MXNet 1.9.1 about the samples of the operators, and keep its numbers for the tests.

    make_golden.py [--oracle PYTHON] [--all | --families FAMILY ...] [--check]

PYTHON is an interpreter with MXNet 1.9.1 (`pip install mxnet==1.9.1 numpy==1.23.5`, Python 3.11 will do); the variable
MXCORE_ORACLE_PYTHON names it too. Asked is about the families of operators whose samples are not those of their golden
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
    """Family of operators -> its golden file."""
    return {p.stem: Pack.load(str(p)) for p in sorted((GOLDEN / "data").glob("*.npz")) if "index" in np.load(p).files}


def ask(python: str, samples: Path, families: list[str]) -> None:
    """Run the scripts that write golden files in MXNet's environment."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MXNET_CPU_WORKER_NTHREADS")}
    given = str(samples)
    for script, args in (
        ("make_golden", [given, *families]),
        ("make_operator_facts", [given]),
        ("make_symbol_golden", [given]),
        ("make_model_golden", []),
        ("make_amp_golden", []),
        ("make_quantization_golden", []),
    ):
        subprocess.run([python, str(GOLDEN / f"{script}.py"), *args], env=env, check=True)


def main() -> int:
    """Make what is stale or asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", default=os.environ.get(VARIABLE), metavar="PYTHON", help=f"by default {VARIABLE}")
    parser.add_argument("--check", action="store_true", help="only say what is stale")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="all families")
    which.add_argument(
        "--families", nargs="+", default=[], metavar="FAMILY", help="families of operators, such as pooling"
    )
    options = parser.parse_args()
    asked = catalogue()
    known = list(dict.fromkeys(e["family"] for e in asked.entries))
    unknown = [f for f in options.families if f not in known]
    if unknown:
        parser.error(f"no family of operators is named {unknown[0]!r}; families: {', '.join(known)}")
    found = stale(asked, answers())
    for family, reasons in found.items():
        print(f"{family}: {'; '.join(reasons[:5])}{f'; and {len(reasons) - 5} more' if len(reasons) > 5 else ''}")
    if options.check:
        return int(bool(found))
    for family in found:
        if family not in known:
            (GOLDEN / "data" / f"{family}.npz").unlink()
    families = options.families or (known if options.all else [f for f in found if f in known])
    if not families:
        print("the golden files of all operators fit their samples")
        return 0
    if not options.oracle:
        parser.error(f"which Python has MXNet 1.9.1? Name it with --oracle or {VARIABLE}")
    if not shutil.which(options.oracle):
        parser.error(f"cannot run {options.oracle}: is there a Python with MXNet 1.9.1?")
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder) / "samples.npz"
        asked.save(str(samples))
        ask(options.oracle, samples, families)
    return 0


if __name__ == "__main__":
    sys.exit(main())
