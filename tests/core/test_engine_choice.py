"""MXNET_ENGINE_TYPE chooses the engine."""

import os
import subprocess
import sys

import pytest


def run(name):
    code = "from mxcore._core.engine import engine; print(type(engine.it).__name__)"
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "MXNET_ENGINE_TYPE": name}, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    "name, kind",
    [
        ("NaiveEngine", "NaiveEngine"),
        ("ThreadedEngine", "ThreadedEnginePerDevice"),
        ("ThreadedEnginePerDevice", "ThreadedEnginePerDevice"),
    ],
)
def test_the_engine_is_chosen_by_the_environment(name, kind):
    assert run(name).stdout.strip() == kind


def test_an_unknown_engine_is_an_error_that_lists_the_known():
    assert "MXNET_ENGINE_TYPE='FastEngine': use one of NaiveEngine" in run("FastEngine").stderr
