"""``python -m benchmarks.peers`` with mxcore alone, at small sizes, and what it makes of figures."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import machine, report
from benchmarks.workloads.table import WORKLOADS

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "benchmarks.peers"]
PEERS = {"mxnet": "MXNet 1.9.1", "torch": "PyTorch"}


def rows(text):
    """Cells of the rows of the last table in a text."""
    table = text.rpartition("| work |")[2].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table if line.startswith("|")]


@pytest.mark.slow
def test_every_kind_of_workload_runs_and_the_page_keeps_its_words(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\nBefore.\n\n{report.BEGIN}\nold\n{report.END}\n\nAfter.\n")
    done = subprocess.run([*COMMAND, "--quick", "--out", page], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = rows(done.stdout)
    assert {w.mx for w in WORKLOADS.values()} == {WORKLOADS[r[0]].mx for r in found if r[0] in WORKLOADS}
    assert all(r[1] != "–" for r in found)
    text = page.read_text()
    assert text.startswith("# Title\n\nBefore.\n") and text.endswith("\n\nAfter.\n") and "old" not in text
    assert all(row[0] in text for row in found)
    assert ElementTree.parse(page.with_suffix(".svg")).getroot().tag.endswith("svg")


def test_a_peer_that_fails_leaves_a_dash_and_the_rest_goes_on(tmp_path):
    (tmp_path / "mxnet.py").write_text("from mxcore import *\nfrom mxcore import nd, autograd\n__version__ = '1'\n")
    (tmp_path / "torch.py").write_text("__version__ = '2+cpu'\n")
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    peers = ["--mxnet", sys.executable, "--torch", sys.executable]
    done = subprocess.run(
        [*COMMAND, "--quick", "--only", "eager*", *peers], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0 and "ended without an answer" in done.stderr
    ((name, ours, mxnet, torch, ratio, none, wanted, met),) = rows(done.stdout)
    assert "–" not in (ours, mxnet, ratio) and (torch, none) == ("–", "–") and met in ("yes", "no")


def test_an_interrupt_shows_the_table_so_far():
    with subprocess.Popen(
        [*COMMAND, "--only", "eager*,Embed*"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        first = process.stdout.readline()
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == 130 and "table so far" in rest
    assert first.startswith("| eager add 4×4") and rows(rest)[0][0] == "eager add 4×4"


def test_a_pattern_that_names_nothing_tells_what_there_is():
    done = subprocess.run([*COMMAND, "--only", "nothing"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "GEMM 1024" in done.stderr


LINE = report.Line("work", 0.8, {"mxcore": 2.0, "mxnet": 4.0, "torch": 2.5})


def test_the_faster_peer_decides():
    assert LINE.ratio("mxnet") == 0.5 and LINE.ratio("torch") == LINE.worst == 0.8
    assert report.Line("alone", 1, {"mxcore": 1.0}).worst is None
    assert report.Line("equal", 1, {"mxcore": 1.0, "mxnet": 1.0}).worst == 1


@pytest.mark.parametrize("wanted, met", [(0.8, "yes"), (0.79, "no")])
def test_a_row(wanted, met):
    line = report.Line("work", wanted, LINE.values)
    assert report.markdown([line], PEERS)[-1] == f"| work | 2 s | 4 s | 2.5 s | 0.50 | 0.80 | {wanted:g} | {met} |"
    memory = report.Line("memory", 1, {"mxcore": 3 << 29}, report.gigabytes)
    assert report.markdown([memory], PEERS)[-1] == "| memory | 1.50 GiB | – | – | – | – | 1 |  |"


def test_bars_end_where_the_ratios_are():
    bars = [
        r for r in ElementTree.fromstring(report.picture([LINE], PEERS)).iter() if len(r) and r.tag.endswith("rect")
    ]
    one = report.LEFT + report.WIDTH * 5 / 7  # of eight marks, each twice the one before
    ends = [(float(r.get("x")), float(r.get("x")) + float(r.get("width"))) for r in bars]
    assert ends[0] == pytest.approx((one - report.WIDTH / 7, one), abs=0.2)
    assert ends[1][0] > ends[0][0] and ends[1][1] == pytest.approx(one, abs=0.2)


def test_facts_do_not_name_the_machine():
    told = dict(machine.facts())
    assert os.uname().nodename not in str(told) and told["cores"] == str(machine.usable())
