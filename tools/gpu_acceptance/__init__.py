"""The stages of tools/gpu_accept.py, and what they find."""

from __future__ import annotations

import importlib
import json
import traceback
from pathlib import Path
from typing import NamedTuple

__all__ = ["STAGES", "Finding", "Skipped", "Stage", "run_stage", "table"]


class Finding(NamedTuple):
    """One line of the report.

    Attributes
    ----------
    stage, what : str
    verdict : str
        'passed', 'failed', 'skipped', 'told' (nothing was asked of it) or 'rehearsed' (a figure of an emulation).
    figure : str
        What was measured, with its unit.
    wanted : str
    note : str
    """

    stage: str
    what: str
    verdict: str
    figure: str = ""
    wanted: str = ""
    note: str = ""


class Stage(NamedTuple):
    """What runs in one process: the function of its name in the module of the first word of that.

    Attributes
    ----------
    name : str
    takes : float
        Seconds that it took by the reports of an H100, the longest of them; what no report has is reckoned.
    about : str
    apart : bool
        It runs only where it is named.
    """

    name: str
    takes: float
    about: str
    apart: bool = False

    @property
    def limit(self) -> float:
        """Seconds after which it is ended."""
        return 15 + 1.5 * self.takes


#: What is right comes before what is fast: where time runs out, figures are missing.
STAGES = [
    Stage("environment", 8, "the GPU, its driver, and the versions of all that takes part"),
    Stage("correct kit", 146, "the conformance kit on gpu(0)"),
    Stage("correct sanitizer", 70, "kernels under memcheck and racecheck"),
    Stage("correct bfloat16", 15, "kernels over bfloat16 beside what their bodies give in float64"),
    Stage("correct random", 2, "numbers and masks are the CPU's, bit by bit"),
    Stage("correct memory", 4, "a step without memory fails, and the next one works"),
    Stage("correct graphs", 5, "programs that are replayed give what launching gives"),
    Stage("correct training", 30, "loss curves are the CPU's"),
    Stage("correct stores", 3, "keys that are pushed together, by stores device and nccl"),
    Stage("correct cudnn", 12, "cuDNN's convolutions against our own kernels"),
    Stage("correct ways", 3, "each of cuDNN's algorithms and engines, chosen or not"),
    Stage("others dlpack", 10, "memory that is shared with PyTorch and CuPy"),
    Stage("others rtc", 5, "users' kernels"),
    Stage("others profiler", 5, "times of operators, and ranges of NVTX"),
    Stage("speed memory", 7, "copies, fused chains and updates against the device's bandwidth"),
    Stage("speed matrices", 7, "products against PyTorch's"),
    Stage("speed convolution", 30, "forward and backward, own kernels and cuDNN, against PyTorch's"),
    Stage("speed step", 16, "a LeNet's step against PyTorch's"),
    Stage("speed launch", 2, "what an eager operator costs"),
    Stage("layers norms", 21, "normalization and softmax against PyTorch's"),
    Stage("layers recurrent", 24, "recurrent layers against PyTorch's, which are cuDNN's"),
    Stage("layers attention", 13, "attention of several heads against PyTorch's, which is one kernel"),
    Stage("speed freely", 19, "convolutions again, where results may differ from run to run"),
    Stage("correct library", 300, "the library's own tests with gpu(0) in the place of cpu(0)", apart=True),
]


class Skipped(Exception):
    """Raised by a stage that cannot run here; says why."""


class Report:
    """Where a stage tells what it finds; written at once."""

    def __init__(self, stage: str, file: Path, emulate: bool) -> None:
        self.stage, self.file, self.emulate = stage, file, emulate

    def tell(self, what: str, verdict: str = "told", figure: str = "", wanted: str = "", note: str = "") -> None:
        """Add a line."""
        found = Finding(self.stage, what, verdict, figure, wanted, " ".join(note.split()))
        with self.file.open("a") as f:
            f.write(json.dumps(found._asdict()) + "\n")

    def check(self, what: str, holds: bool, note: str = "") -> None:
        """Something that must hold, emulated or not."""
        self.tell(what, "passed" if holds else "failed", note=note)

    def measured(self, what: str, value: float, unit: str, wanted: str, holds: bool, note: str = "") -> None:
        """A figure; one of an emulation is worth nothing."""
        verdict = "rehearsed" if self.emulate else "passed" if holds else "failed"
        self.tell(what, verdict, f"{value:.3g} {unit}", wanted, note)


def run_stage(name: str, file: Path, emulate: bool) -> int:
    """Run a stage in this process; what it raises is what it finds."""
    report = Report(name, file, emulate)
    module, _, function = name.partition(" ")
    try:
        getattr(importlib.import_module(f"gpu_acceptance.{module}"), function or "all_of_it")(report)
    except Skipped as e:
        report.tell("all of it", "skipped", note=str(e))
    except Exception as e:
        traceback.print_exc()
        report.tell("the stage", "failed", note=f"{type(e).__name__}: {e}")
    return 0


def table(found: list[Finding], emulate: bool, commit: str) -> str:
    """The report as Markdown."""
    lines = ["# mxcore-cuda on a GPU", "", f"Commit {commit}.", ""]
    if emulate:
        lines += ["A rehearsal on emulated GPUs: no figure says anything of a real one.", ""]
    lines += ["| stage | what | verdict | figure | wanted | note |", "| --- | --- | --- | --- | --- | --- |"]
    for x in found:
        lines.append("| " + " | ".join(str(v).replace("|", "\\|") for v in x) + " |")
    verdicts = [x.verdict for x in found]
    lines += ["", ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts)) + "."]
    return "\n".join(lines) + "\n"
