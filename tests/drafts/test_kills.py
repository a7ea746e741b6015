"""Writers that are killed: the old file or the new one, whole, and no draft after the next write."""

import json
import os
import random
import subprocess
import sys

import pytest

from tests.marks import slow

from . import writers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks and kills")

#: Writers that take longer than others.
LONG = ["buckets", "train", "best", "module"]


def run(*args):
    done = subprocess.run(
        [sys.executable, writers.__file__, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        env=os.environ | {"MXNET_ENGINE_TYPE": "NaiveEngine"},
    )
    assert done.returncode == 0, f"{args}\n{done.stderr[-3000:]}"
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", [*sorted({*writers.WRITERS} - {*LONG}), *slow(*LONG)])
def test_killed_at_every_step(name, tmp_path):
    found = run("steps", name, tmp_path)
    assert found["kills"] >= 10 and found["left"] > 0, found  # else nothing was tried


@pytest.mark.slow
@pytest.mark.parametrize("api", ["gluon", "module"])
def test_training_goes_on_from_the_newest_checkpoint(api, tmp_path):
    """Killed at every step of the first, second and third one; pruned ones leave nothing."""
    found = run("resume", api, tmp_path)
    assert found["kills"] > found["placed"] >= 10, found


@pytest.mark.slow
@pytest.mark.parametrize("name", writers.WRITERS)
def test_killed_at_random(name, tmp_path):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    assert run("random", name, tmp_path, seed, 25) > 0
