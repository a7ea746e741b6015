"""Accept mxcore-cuda on a machine with a GPU: one command, nine minutes at most, no network.

    python tools/gpu_accept.py                 on a GPU: the report goes to benchmarks/gpu
    python tools/gpu_accept.py --emulate       a rehearsal without one: every stage runs, no figure counts
    python tools/gpu_accept.py --only speed    stages whose names begin so; "correct library" runs only so

What must be there: this checkout, installed (or the wheels that ``pip wheel --no-deps core plugins/*`` makes of it, on
the path), CuPy and NVRTC. PyTorch and compute-sanitizer are used where they are found; what needs them says so
otherwise.

A report names its commit: where this is no checkout but a copy of one, ``--commit`` says of which.

Each stage is a process of its own with a limit in seconds: one that crashes, hangs or is told to stop costs its own
figures only. What was found is written at once (``report.jsonl``), and as a table in the end (``report.md``). The exit
status is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: How many times its limit a stage may take in a rehearsal, whose kernels a busy machine may have to compile.
PATIENCE = 5
sys.path.insert(0, str(HERE))

from gpu_acceptance import STAGES, Finding, Stage, run_stage, table  # noqa: E402
from gpu_acceptance.checkout import commit  # noqa: E402


def main(argv: list[str] | None = None) -> int:
    """Run the stages, or one of them where this is its process."""
    options = parsed(argv)
    if options.stage is not None:
        return run_stage(options.stage, Path(options.out), options.emulate)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    report = out / "report.jsonl"
    found = [Finding("report", "commit", "told", options.commit)]
    report.write_text(json.dumps(found[0]._asdict()) + "\n")
    end = time.monotonic() + options.budget
    for stage in STAGES:
        if options.only and not any(stage.name.startswith(name) for name in options.only):
            continue
        start = time.monotonic()
        if stage.apart and not options.only:
            new = [Finding(stage.name, "all of it", "skipped", note=f"it has a run of its own: --only '{stage.name}'")]
        else:
            new = in_a_process(stage, end - start, options.emulate)
        new.append(Finding(stage.name, "time", "told", f"{time.monotonic() - start:.0f} s"))
        with report.open("a") as f:
            f.writelines(json.dumps(x._asdict()) + "\n" for x in new)
        for x in new:
            print(f"{x.verdict:10} {x.stage}: {x.what} {x.figure} {x.note}".rstrip(), flush=True)
        found += new
    (out / "report.md").write_text(table(found, options.emulate, options.commit))
    verdicts = [x.verdict for x in found]
    print(", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts)), f"(report in {out})")
    return int("failed" in verdicts)


def parsed(argv: list[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", default=str(HERE.parent / "benchmarks" / "gpu"), help="folder of the report")
    parser.add_argument("--budget", type=float, default=540, metavar="SECONDS", help="for all stages together (540)")
    parser.add_argument("--emulate", action="store_true", help="rehearse on emulated GPUs")
    parser.add_argument("--only", nargs="*", metavar="STAGE", help="stages whose names begin so")
    parser.add_argument("--commit", default=commit(), help="of which these files are; of a checkout it is known")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.commit is None and options.stage is None:
        parser.error("this is no checkout, and a report must name its commit: say which with --commit")
    return options


def in_a_process(stage: Stage, left: float, emulate: bool) -> list[Finding]:
    """What a stage finds within its limit; what it had found if it dies or takes too long, and that it did."""
    limit = min(stage.limit * (PATIENCE if emulate else 1), left)
    if limit < 1:
        return [Finding(stage.name, "all of it", "skipped", note="no time was left")]
    env = {**os.environ, **({"MXCORE_CUDA_EMULATE": "2"} if emulate else {})}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "found")
        command = [sys.executable, __file__, "--stage", stage.name, "--out", str(file)]
        process = subprocess.Popen(command + ["--emulate"] * emulate, env=env, start_new_session=True)
        try:
            status = process.wait(limit)
            problem = f"its process ended with status {status}" if status else ""
        except subprocess.TimeoutExpired:
            problem = f"not done within {limit:.0f} s"
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # whatever it has started
            except ProcessLookupError:
                pass
            process.wait()
        lines = file.read_text().splitlines() if file.exists() else []
    found = [Finding(**json.loads(line)) for line in lines]
    return found + [Finding(stage.name, "the stage", "failed", note=problem)] * bool(problem)


if __name__ == "__main__":
    raise SystemExit(main())
