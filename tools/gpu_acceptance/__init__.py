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
    """What runs in one process: the function of its name in the module of the first word of that, within seconds."""

    name: str
    limit: float
    about: str


STAGES = [
    Stage("environment", 30, "the GPU, its driver, and the versions of all that takes part"),
    Stage("correct kit", 200, "the conformance kit on gpu(0)"),
    Stage("correct cudnn", 60, "cuDNN's convolutions against our own kernels"),
    Stage("correct ways", 60, "each of cuDNN's algorithms and engines, chosen or not"),
    Stage("correct random", 30, "numbers and masks are the CPU's, bit by bit"),
    Stage("correct graphs", 40, "programs that are replayed give what launching gives"),
    Stage("correct memory", 40, "a step without memory fails, and the next one works"),
    Stage("correct stores", 30, "keys that are pushed together, by stores device and nccl"),
    Stage("correct training", 60, "loss curves are the CPU's"),
    Stage("speed memory", 40, "copies, fused chains and updates against the device's bandwidth"),
    Stage("speed matrices", 40, "products against PyTorch's"),
    Stage("speed convolution", 60, "forward and backward, own kernels and cuDNN, against PyTorch's"),
    Stage("speed freely", 60, "the same, where results may differ from run to run"),
    Stage("layers norms", 60, "normalization and softmax against PyTorch's"),
    Stage("layers recurrent", 60, "recurrent layers against PyTorch's, which are cuDNN's"),
    Stage("layers attention", 30, "attention of several heads against PyTorch's, which is one kernel"),
    Stage("speed step", 60, "a LeNet's step against PyTorch's"),
    Stage("speed launch", 20, "what an eager operator costs"),
    Stage("correct library", 200, "the library's own tests with gpu(0) in the place of cpu(0)"),
    Stage("correct sanitizer", 220, "kernels under memcheck and racecheck"),
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


def table(found: list[Finding], emulate: bool) -> str:
    """The report as Markdown."""
    lines = ["# mxcore-cuda on a GPU", ""]
    if emulate:
        lines += ["A rehearsal on emulated GPUs: no figure says anything of a real one.", ""]
    lines += ["| stage | what | verdict | figure | wanted | note |", "| --- | --- | --- | --- | --- | --- |"]
    for x in found:
        lines.append("| " + " | ".join(str(v).replace("|", "\\|") for v in x) + " |")
    verdicts = [x.verdict for x in found]
    lines += ["", ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts)) + "."]
    return "\n".join(lines) + "\n"
