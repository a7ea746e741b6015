"""tools/gpu_accept.py, rehearsed; and what it says of stages that fail, hang or end their process."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mxcore_cuda.emulation import compiler

TOOL = Path(__file__).resolve().parents[2] / "tools" / "gpu_accept.py"
pytestmark = pytest.mark.slow


def report_of(folder, *args):
    """What a run finds: exit status, and the lines of its report."""
    command = [sys.executable, str(TOOL), "--out", str(folder), "--commit", "abc123", *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    found = [json.loads(line) for line in (folder / "report.jsonl").read_text().splitlines()]
    assert [found[0][key] for key in ("stage", "what", "figure")] == ["report", "commit", "abc123"]
    return done, [x for x in found[1:] if x["what"] != "time"]


@pytest.fixture
def stages(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOL.parent))
    from gpu_acceptance import STAGES

    return STAGES


@pytest.mark.skipif(compiler.available() is None, reason="emulated kernels need g++, which is not there")
def test_a_rehearsal_runs_every_stage(tmp_path, stages):
    done, found = report_of(tmp_path, "--emulate", "--budget", "1100")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {x["stage"] for x in found} == {stage.name for stage in stages}
    # No figure of an emulation passes.
    assert {x["verdict"] for x in found if x["stage"].startswith("speed")} == {"rehearsed"}
    assert "Commit abc123." in (tmp_path / "report.md").read_text()
    assert all(f"| {x['stage']} | {x['what']} |" in (tmp_path / "report.md").read_text() for x in found)


def test_one_command_is_done_in_time(stages):
    """By what the stages took; what is watched by a sanitizer is right before anything is fast."""
    together = [stage for stage in stages if not stage.apart]
    assert sum(stage.takes for stage in together) <= 0.85 * 540
    names = [stage.name for stage in together]
    assert names[:3] == ["environment", "correct kit", "correct sanitizer"]
    kinds = [name.partition(" ")[0] in ("speed", "layers") for name in names]
    assert kinds == sorted(kinds)


def test_a_report_names_its_commit(tmp_path):
    """A copy of the tool that is no checkout must be told."""
    copy = tmp_path / "tools"
    shutil.copytree(TOOL.parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    command = [sys.executable, str(copy / TOOL.name), "--out", str(tmp_path), "--only", "nothing"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 2 and "say which with --commit" in done.stderr
    done = subprocess.run([*command, "--commit", "abc123"], capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0 and "Commit abc123." in (tmp_path / "report.md").read_text()


def test_without_a_gpu_it_says_why(tmp_path):
    done, found = report_of(tmp_path, "--only", "speed launch")
    if found[0]["verdict"] == "skipped":
        assert done.returncode == 0
        assert "there is no GPU" in found[0]["note"]


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("raise ValueError('odd')", "ValueError: odd"),
        ("import os; os._exit(3)", "ended with status 3"),
        ("import time; time.sleep(600)", "not done within 3 s"),
    ],
)
def test_stages_that_fail(tmp_path, monkeypatch, body, note):
    """The findings before it stay, and those who come after it are heard."""
    (tmp_path / "planted.py").write_text(f"def stage(report):\n    report.check('first', True)\n    {body}\n")
    runner = tmp_path / "runner.py"
    runner.write_text(
        f"import sys\nsys.path[:0] = [{str(TOOL.parent)!r}, {str(tmp_path)!r}]\n"
        "import gpu_accept, gpu_acceptance, planted\n"
        "sys.modules['gpu_acceptance.planted'] = planted\n"
        "gpu_accept.__file__ = __file__\n"
        "stages = [gpu_acceptance.Stage('planted stage', -8, ''), gpu_acceptance.Stage('environment', 60, '')]\n"
        "gpu_accept.STAGES[:] = stages\n"
        "raise SystemExit(gpu_accept.main())\n"
    )
    command = [sys.executable, str(runner), "--out", str(tmp_path), "--commit", "abc123"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = [json.loads(line) for line in (tmp_path / "report.jsonl").read_text().splitlines()]
    assert [x["stage"] for x in found if x["what"] == "time"] == ["planted stage", "environment"]
    found = [x for x in found if x["what"] != "time"][1:]
    assert done.returncode == 1
    assert [x["what"] for x in found[:2]] == ["first", "the stage"]
    assert note in found[1]["note"]
    assert found[2]["stage"] == "environment"
