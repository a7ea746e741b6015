"""Distributed programs as people have them, unchanged: they print what MXNet 1.9.1 prints with two workers."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from .running import MXCORE, lines, needs_ray

FOLDER = Path(__file__).parent / "programs"
GOLDEN: dict[str, list[str]] = json.loads((FOLDER / "golden.json").read_text())
NUMBER = re.compile(r"-?\d+\.\d+")

pytestmark = [needs_ray, pytest.mark.slow]


def printed(start: Any, name: str) -> list[str]:
    """What all workers say of themselves, sorted."""
    job = start(*MXCORE, "launch", "-n", "2", sys.executable, "-m", "mxcore", "run", str(FOLDER / f"{name}.py"))
    status, out, err = job.wait()
    assert status == 0, err
    return sorted(line for rank in (0, 1) for line in lines(out, f"[{rank}] ") if line.startswith("rank "))


@pytest.mark.parametrize("name", GOLDEN)
def test_as_on_mxnet(start: Any, name: str) -> None:
    found = printed(start, name)
    assert [NUMBER.sub("#", line) for line in found] == [NUMBER.sub("#", line) for line in GOLDEN[name]]
    for line, wanted in zip(found, GOLDEN[name]):
        numbers = [[*map(float, NUMBER.findall(text))] for text in (line, wanted)]
        assert numbers[0] == pytest.approx(numbers[1], rel=2e-3, abs=2e-3), wanted


@pytest.mark.parametrize("name", ["split_sampler", "own_store"])
def test_what_mxnet_does_not_get_through(start: Any, name: str) -> None:
    """They learn, and workers have the same weights."""
    found = printed(start, name)
    for rank in (0, 1):
        losses = [float(line.rpartition(" ")[2]) for line in lines("\n".join(found), f"rank {rank}: epoch")]
        assert len(losses) > 2 and losses[-1] < losses[0] / 2
    weights = [line.partition(": ")[2] for line in found if "weight" in line]
    assert len(set(weights)) == (1 if name == "own_store" else 0)
