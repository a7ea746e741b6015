"""``mxcore warm``: what it compiles, a later process finds."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import mxcore as mx
from mxcore.cli import main, warm
from tests.marks import in_turn, slow

_SAME = """
import sys
import mxcore as mx
from mxcore_cpu.native import COUNTS
net = mx.sym.load(sys.argv[1])
e = net.simple_bind(mx.cpu(), data=(64, 3, 32, 32), grad_req="write", type_dict={"data": sys.argv[2]})
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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_saved_graph(tmp_path, graph, dtype):
    model, options = str(graph)[: -len("-symbol.json")], ("--train", "--shape", "data=64,3,32,32")
    done = ran(tmp_path / "cache", "-m", "mxcore", "warm", model, *options, "--dtype", dtype)
    assert done.returncode == 0 and f"{dtype}: ready after" in done.stdout, done.stderr
    again = ran(tmp_path / "cache", "-c", _SAME, str(graph), dtype)
    assert again.stdout.strip() == "0 True False", again.stderr


_FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))
from mxcore.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits are the system's")
def test_code_that_finds_no_room_is_a_failure(tmp_path, graph):
    done = ran(tmp_path / "cache", "-c", _FULL, "warm", str(graph), "--shape", "data=64,3,32,32", "--dtype", "float64")
    assert done.returncode == 1 and "ready" not in done.stdout
    folder = re.escape(str(tmp_path / "cache"))
    assert re.search(
        rf"mxcore warm: \d+ pieces of compiled code could not be kept in {folder}/.*: File too", done.stderr
    )
    assert done.stderr.count("each process will compile it again") == 1


@pytest.mark.parametrize("dtype", [None, "float32", "float64", "float16"])
@pytest.mark.parametrize("own", ["float32", "float16", "float64"])
def test_a_saved_graph_whose_variables_say_their_dtype(tmp_path, monkeypatch, own, dtype):
    """As exported ones do; without the option that counts."""
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(4), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dense(2))
    net.initialize()
    net.cast(own)
    net.hybridize()
    net(mx.nd.ones((2, 3), dtype=own))
    net.export(str(tmp_path / "net"))
    seen, bind = [], mx.sym.Symbol.simple_bind

    def look(*args, **kwargs):
        seen.append(bind(*args, **kwargs))
        return seen[-1]

    monkeypatch.setattr(mx.sym.Symbol, "simple_bind", look)
    options = ["--dtype", dtype] if dtype else []
    assert main(["warm", str(tmp_path / "net"), "--shape", "data=2,3", "--train", *options]) == 0
    weights = {str(np.dtype(a.dtype)) for n, a in seen[0].arg_dict.items() if "weight" in n}
    assert weights == {dtype or own}


@pytest.mark.parametrize("dtype", warm.DTYPES)
def test_what_networks_compute_in(monkeypatch, dtype):
    seen = []
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(4, 3), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dense(10))
    monkeypatch.setattr(mx.gluon.model_zoo.vision, "get_model", lambda name: net)
    step = mx.gluon.Trainer.step
    monkeypatch.setattr(mx.gluon.Trainer, "step", lambda self, n: [seen.append(self.optimizer), step(self, n)])
    monkeypatch.setenv("MXCORE_COMPILE", "wait")
    assert main(["warm", "small", "--shape", "2,3,8,8", "--train", "--dtype", dtype]) == 0
    assert {str(p.dtype) for n, p in net.collect_params().items() if "dense" in n or "conv" in n} == {dtype}
    assert len(seen) == 2 and seen[0].multi_precision is (dtype in ("float16", "bfloat16"))


def test_what_is_no_model(tmp_path):
    done = ran(tmp_path, "-m", "mxcore", "warm", "resnet51")
    assert done.returncode == 1 and "resnet50_v1" in done.stderr


@pytest.mark.parametrize("dtype", [*slow("float32"), *in_turn(*warm.DTYPES[1:])])
def test_everyday_use(tmp_path, dtype):
    for _ in range(1 + (dtype == "float32")):  # also where all is there
        done = ran(tmp_path, "-m", "mxcore", "warm", "--dtype", dtype)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"the kernels of everyday use, {dtype}: ready after ")
