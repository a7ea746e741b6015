"""mxcore beside MXNet 1.9.1 and PyTorch: one interleaved run, one table of ratios.

    python -m benchmarks.peers --mxnet PYTHON --torch PYTHON --out docs/performance.md

Each framework has a process of its own, which does nothing unless it is asked; they are asked in turns, a round each,
and the fastest call of all rounds counts. All compute with as many threads. Ctrl-C prints the table so far.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from . import machine, report
from .peer import Child
from .workloads.table import WORKLOADS

#: Seconds that a framework should be at work in a round, unless one call takes longer; and calls at most.
ROUND, CALLS = 0.25, 200
NAMES = {"mxnet": "MXNet", "torch": "PyTorch"}
THREADS = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MXCORE_NUM_THREADS"
MEMORY = Path("/dev/shm")


def arguments(argv):
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="benchmarks.peers", description=__doc__.partition("\n")[0])
    parser.add_argument("--mxnet", metavar="PYTHON", help="an interpreter with MXNet 1.9.1")
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter with PyTorch")
    parser.add_argument("--only", metavar="PATTERNS", default="*", help="names of workloads, such as 'ResNet*,GEMM*'")
    parser.add_argument("--rounds", metavar="N", type=int, default=5, help="rounds of each workload (5)")
    parser.add_argument("--threads", metavar="N", type=int, default=machine.usable(), help="threads of each (all)")
    parser.add_argument("--out", metavar="FILE", type=Path, help="a page to write table and picture into")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: shows that all of it runs")
    found = parser.parse_args(argv)
    patterns = [f"*{p.strip()}*".lower() for p in found.only.split(",")]
    found.chosen = [w for w in WORKLOADS.values() if any(fnmatch.fnmatch(w.name.lower(), p) for p in patterns)]
    if found.quick:  # what differs only by size runs once
        found.chosen = [*{(w.mx, w.arguments(True, "")): w for w in reversed(found.chosen)}.values()][::-1]
    if not found.chosen:
        parser.error(f"--only {found.only} names none of: {', '.join(WORKLOADS)}")
    if found.rounds < 1 or found.threads < 1:
        parser.error("--rounds and --threads are at least 1")
    return found


class Frameworks:
    """The processes, started when they are needed.

    Parameters
    ----------
    pythons : dict
        Framework to its interpreter.
    threads : int
    """

    def __init__(self, pythons, threads):
        self.pythons, self.children = pythons, {}
        self.env = os.environ | dict.fromkeys(THREADS, str(threads))

    def ask(self, name, case, number):
        """Seconds of a case in a framework."""
        if name not in self.children:
            command = [self.pythons[name], "-m", "benchmarks.workloads", name]
            # Ctrl-C is ours alone: children end when we say so.
            self.children[name] = Child(
                command, f"is {name} installed there?", env=self.env, start_new_session=os.name == "posix"
            )
        return self.children[name].ask(case, number)

    def peak(self, name):
        """Peak of resident memory of a framework's process."""
        return self.children[name].peak()

    def drop(self, *names, now=False):
        """End processes, all unless told; the next question starts them anew."""
        for name in names or [*self.children]:
            child = self.children.pop(name)
            child.kill() if now else child.close()


def measured(work, frameworks, given, folder):
    """Lines of the table of one workload: its time and, where it is asked for, its memory."""
    line = report.Line(work.name, work.wanted)
    taking_part = [f for f in frameworks.pythons if f != "torch" or work.torch]
    case, number = [work.name, given.quick, folder], {}
    if work.memory:
        frameworks.drop()
    if work.files:
        work.files(*work.arguments(given.quick, folder))
    for _ in range(1 if given.quick else given.rounds):
        for name in [*taking_part]:
            try:
                if name not in number:
                    took = frameworks.ask(name, case, 1)
                    number[name] = 1 if given.quick else min(max(int(ROUND / took), 1), CALLS)
                took = frameworks.ask(name, case, number[name]) / work.repeated(given.quick)
            except RuntimeError as e:
                print(f"{work.name}: {e}", file=sys.stderr)
                frameworks.drop(name, now=True)
                taking_part.remove(name)
                line.values.pop(name, None)
            else:
                line.values[name] = min(took, line.values.get(name, took))
    yield line
    if work.memory:
        peaks = {name: peak for name in taking_part if (peak := frameworks.peak(name))}
        yield report.Line(f"{work.name}, peak memory", work.memory, peaks, report.gigabytes)
        frameworks.drop()


def version(python, name):
    """The version of a framework."""
    code = f"import {name}; print({name}.__version__)"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()[-1]


def main(argv=None):
    """Measure, print, and write the page. Returns an exit status: 1 if anything of ours did not run."""
    given = arguments(argv)
    pythons = {"mxcore": sys.executable} | {n: p for n in NAMES if (p := getattr(given, n))}
    versions = {name: version(python, name) for name, python in pythons.items()}
    peers = {name: f"{NAMES[name]} {versions[name].partition('+')[0]}" for name in pythons if name in NAMES}
    frameworks, lines, stopped = Frameworks(pythons, given.threads), [], False
    # Files in memory, where there is such a place: the figures are not about disks.
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        try:
            for work in given.chosen:
                for line in measured(work, frameworks, given, folder):
                    lines.append(line)
                    print(report.markdown([line], peers)[-1], flush=True)
        except KeyboardInterrupt:
            stopped = True
        finally:
            frameworks.drop(now=stopped)
    table = report.markdown(lines, peers)
    print("", *table, "" if not stopped else "\ninterrupted: this is the table so far", sep="\n")
    if given.out and not stopped:
        write(given, table, report.picture(lines, peers), versions)
    return 130 if stopped else int(any("mxcore" not in line.values for line in lines))


def write(given, table, picture, versions):
    """Write the page, and the picture beside it."""
    image = given.out.with_suffix(".svg")
    image.write_text(picture, encoding="utf-8")
    threads = f"{given.threads} each; the fastest call of {given.rounds} rounds counts"
    facts = [*machine.facts(), ("threads", threads), ("versions", ", ".join(f"{n} {v}" for n, v in versions.items()))]
    parts = ["\n".join(table), f"![Ratios]({image.name})", "\n".join(["| | |", "| --- | --- |", *_rows(facts)])]
    page = given.out.read_text(encoding="utf-8") if given.out.exists() else "# Performance\n"
    given.out.write_text(report.into(page, "\n\n".join(parts)), encoding="utf-8")


def _rows(pairs):
    return [f"| {name} | {value} |" for name, value in pairs]


if __name__ == "__main__":
    sys.exit(main())
