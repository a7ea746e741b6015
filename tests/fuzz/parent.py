"""Runs the child, stops it where it hangs, starts it again where it died, and keeps the files of what failed."""

from __future__ import annotations

import json
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Failure", "Report", "run"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Failure:
    """A case that ended in something else than a value or an error of ours."""

    name: str
    seed: str
    kind: str
    at: str
    text: str
    count: int = 1


@dataclass
class Report:
    """What came out: how often each format was read or refused a file, and what failed."""

    counts: dict[str, Counter] = field(default_factory=dict)
    failures: dict[tuple[str, str, str], Failure] = field(default_factory=dict)
    cases: int = 0

    def add(self, failure: Failure) -> bool:
        """Enter a failure; whether it is a new one."""
        key = failure.name, failure.kind, failure.at
        if key in self.failures:
            self.failures[key].count += 1
            return False
        self.failures[key] = failure
        return True


class _Child:
    def __init__(self, module: str, **given) -> None:
        self.lines: queue.Queue = queue.Queue()
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, json.dumps(given)],
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            errors="replace",
        )
        self.said: list[str] = []
        self.readers = [
            threading.Thread(target=self._pump, daemon=True),
            threading.Thread(target=self._listen, daemon=True),
        ]
        for t in self.readers:
            t.start()

    def _pump(self) -> None:
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n").split(" ", 1))
        self.lines.put(None)

    def _listen(self) -> None:
        for line in self.process.stderr:
            self.said = [*self.said[-40:], line]

    def next(self, seconds: float):
        """The next line; None if it ended; raises queue.Empty if it says nothing for so long."""
        return self.lines.get(timeout=seconds)

    def stop(self) -> int:
        self.process.kill()
        code = self.process.wait()
        for t in self.readers:
            t.join(5)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


def run(
    names: list[str],
    seed: str,
    *,
    seconds: float = 1e9,
    cases: int = sys.maxsize,
    first: int = 0,
    limit: float = 20,
    memory: int = 2**30,
    keep: Path | None = None,
    tell=print,
    module: str = "tests.fuzz.child",
) -> Report:
    """Read damaged files of formats, for so long or so many of them.

    Parameters
    ----------
    names : list of str
        Formats, taken in turn.
    seed : str
        Decides the damage, with the number of the case.
    seconds, cases
        When to stop.
    first : int
        Number of the first case.
    limit : float
        Seconds a case may take.
    memory : int
        Bytes that the process may take in all, beyond what reading sound files took.
    keep : Path, optional
        Where to put the files of failures.
    tell : callable
        Gets a text for each new failure.
    module : str
        What the process runs.
    """
    report, end, k = Report({n: Counter() for n in names}), time.monotonic() + seconds, first
    with tempfile.TemporaryDirectory(prefix="mxcore-fuzz-") as place:
        while time.monotonic() < end and report.cases < cases:
            folder = Path(tempfile.mkdtemp(dir=place))
            child = _Child(module, names=names, seed=seed, first=k, folder=str(folder), memory=memory)
            began, at, died = time.monotonic(), ("the start", ""), None
            try:
                while time.monotonic() < end and report.cases < cases:
                    line = child.next(max(120 if at[0] == "the start" else limit, 1))
                    if line is None:
                        died = "ended"
                        break
                    what, rest = line[0], line[1] if len(line) > 1 else ""
                    if what == "case":
                        name, _, case = rest.rpartition(" ")
                        at, began = (name, case), time.monotonic()
                    elif what == "end":
                        k, report.cases = k + 1, report.cases + 1
                        result, _, text = rest.partition(" ")
                        report.counts[at[0]][result] += 1
                        if result == "failed":
                            _enter(report, Failure(at[0], at[1], **json.loads(text)), folder, keep, tell)
            except queue.Empty:
                died = f"no answer for {time.monotonic() - began:.0f} s"
            code = child.stop()
            if died is None:
                break
            if died == "ended":
                died = f"the process ended: {signal.Signals(-code).name if code < 0 else f'exit {code}'}"
            _enter(
                report,
                Failure(at[0], at[1], died.split(" for ")[0], "", f"{died}\n{''.join(child.said)[-3000:]}"),
                folder,
                keep,
                tell,
            )
            if at[0] not in report.counts:
                break  # sound files are not read
            report.counts[at[0]]["failed"] += 1
            k, report.cases = k + 1, report.cases + 1
            shutil.rmtree(folder, ignore_errors=True)
    return report


def _enter(report: Report, failure: Failure, folder: Path, keep: Path | None, tell) -> None:
    if not report.add(failure):
        return
    where = ""
    if keep is not None:
        to = keep / f"{failure.name} {failure.seed}".replace("/", "-").replace(" ", "-")
        case = folder / failure.seed.rpartition("/")[2]
        shutil.copytree(case if failure.seed else folder, to, dirs_exist_ok=True)
        where = f"\nits files are in {to}"
    tell(
        f"FAILED: {failure.name}, case {failure.seed}: {failure.text.rstrip()}{where}\n"
        f"again with: python -m tests.fuzz --formats '{failure.name}' --case {failure.seed}"
    )
