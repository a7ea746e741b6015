"""``mxcore warm``: what it compiles, a later process finds."""

import os
import subprocess
import sys

import pytest

import mxcore as mx

_SAME = """
import sys
import mxcore as mx
from mxcore_cpu.native import COUNTS
net = mx.sym.load(sys.argv[1])
e = net.simple_bind(mx.cpu(), data=(64, 3, 32, 32), grad_req="write")
e.forward(is_train=True)
e.backward([e.outputs[0].ones_like()])
e.grad_arrays[0].wait_to_read()
print(COUNTS["compiled"], COUNTS["loaded"] > 0, "numba" in sys.modules)
"""


def ran(folder, *args):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MXCORE_CACHE_DIR": str(folder)}
    return subprocess.run([sys.executable, *args], env=env, capture_output=True, text=True, timeout=300)


@pytest.fixture
def graph(tmp_path):
    x = mx.sym.Variable("data")
    y = mx.sym.broadcast_mul(mx.sym.tanh(x * 2 + 1), mx.sym.Variable("scale", shape=(1, 3, 1, 1)))
    path = tmp_path / "net-symbol.json"
    mx.sym.softmax(mx.sym.Flatten(y)).save(str(path))
    return path


def test_a_saved_graph(tmp_path, graph):
    done = ran(
        tmp_path / "cache",
        "-m",
        "mxcore",
        "warm",
        str(graph)[: -len("-symbol.json")],
        "--train",
        "--shape",
        "data=64,3,32,32",
    )
    assert done.returncode == 0 and "ready after" in done.stdout, done.stderr
    again = ran(tmp_path / "cache", "-c", _SAME, str(graph))
    assert again.stdout.strip() == "0 True False", again.stderr


def test_what_is_no_model(tmp_path):
    done = ran(tmp_path, "-m", "mxcore", "warm", "resnet51")
    assert done.returncode == 1 and "resnet50_v1" in done.stderr


@pytest.mark.slow
def test_everyday_use(tmp_path):
    for _ in range(2):
        done = ran(tmp_path, "-m", "mxcore", "warm")
        assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("the kernels of everyday use: ready after ")
