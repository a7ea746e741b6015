"""Fresh processes with an empty cache of compiled code, and again with what the first of them left there.

``python -m benchmarks.cold`` prints the table of ``docs/performance.md``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

__all__ = ["CASES", "Case", "Took", "measure"]

_LENET = """
import sys
import numpy as np
import mxcore as mx
from mxcore import autograd, gluon
from mxcore.gluon import nn

dtype = sys.argv[1]
net = nn.HybridSequential()
net.add(nn.Conv2D(20, 5, activation="tanh"), nn.MaxPool2D(2, 2), nn.Conv2D(50, 5, activation="tanh"))
net.add(nn.MaxPool2D(2, 2), nn.Flatten(), nn.Dense(500, activation="tanh"), nn.Dense(10))
net.initialize(mx.init.Xavier())
net.cast(dtype)
net.hybridize()
rng = np.random.RandomState(0)
images, labels = rng.rand(1024, 1, 28, 28).astype(dtype), rng.randint(0, 10, 1024).astype("float32")
data = gluon.data.DataLoader(gluon.data.ArrayDataset(images, labels), 64, shuffle=True)
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
loss, metric = gluon.loss.SoftmaxCrossEntropyLoss(), mx.metric.Accuracy()
for x, y in data:
    with autograd.record():
        out = net(x)
        found = loss(out, y)
    found.backward()
    trainer.step(64)
    metric.update([y], [out])
print(*metric.get())
"""
_FIRST = """
import time
import mxcore as mx

net = mx.gluon.model_zoo.vision.resnet50_v1()
net.initialize(mx.init.Zero())
net.hybridize()
x = mx.nd.ones((1, 3, 224, 224))
x.wait_to_read()
start = time.perf_counter()
net(x).wait_to_read()
print(time.perf_counter() - start)
"""


class Case(NamedTuple):
    """A program of everyday use.

    Attributes
    ----------
    name : str
    command : tuple of str
        Arguments of the interpreter.
    ratio : float or None
        Wanted: cold takes at most so many times as long as warm.
    slow : bool
        Not for a quick run.
    tells : bool
        It prints the seconds that count, of all that it does.
    most : tuple of float, optional
        Wanted: seconds at most, cold and warm.
    """

    name: str
    command: tuple[str, ...]
    ratio: float | None = None
    slow: bool = False
    tells: bool = False
    most: tuple[float, float] | None = None


CASES = (
    Case("LeNet, an epoch of 1,024 images", ("-c", _LENET, "float32"), 2.5),
    Case("LeNet in float64", ("-c", _LENET, "float64"), 2.5, slow=True),
    Case("`mxcore train`", ("-m", "mxcore", "train", "--output", "out"), 1.4, slow=True),
    Case("ResNet-50, from a picture to its first result", ("-c", _FIRST), tells=True, most=(3, 0.7)),
)


class Took(NamedTuple):
    """Seconds of one process: those that count, by the clock, and of processors in all."""

    wall: float
    cpu: float


def _took(case: Case, folder: Path) -> Took:
    """What a fresh process takes; the cache of compiled code lies in a folder."""
    variables = {name: str(folder / "cache") for name in ("XDG_CACHE_HOME", "MXCORE_CACHE_DIR")}
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *case.command], cwd=folder, env=os.environ | variables, stdout=subprocess.PIPE, text=True
    )
    with process.stdout as out:  # type: ignore[union-attr]
        text = out.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{case.name}: status {process.returncode}")
    seconds = float(text) if case.tells else time.perf_counter() - start
    return Took(seconds, used.ru_utime + used.ru_stime)


def measure(case: Case, rounds: int) -> tuple[Took, Took]:
    """The best of so many processes, cold and warm in turns.

    Parameters
    ----------
    case : Case
    rounds : int
    """
    cold, warm = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for found in (cold, warm):
                found.append(_took(case, Path(folder)))
    return min(cold), min(warm)


def main(rounds: int = 3) -> None:
    """Print the table, with the seconds of processors behind those by the clock."""
    print("| program | empty cache | again | ratio | wanted |\n| --- | ---: | ---: | ---: | ---: |")
    for case in CASES:
        cold, warm = measure(case, rounds)
        wanted = str(case.ratio) if case.most is None else "{} s, {} s".format(*case.most)
        cells = (f"{took.wall:.2f} s ({took.cpu:.1f})" for took in (cold, warm))
        print(f"| {case.name} | {' | '.join(cells)} | {cold.wall / warm.wall:.1f} | {wanted} |", flush=True)


if __name__ == "__main__":
    main()
