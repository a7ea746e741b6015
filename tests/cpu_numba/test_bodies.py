"""Bodies that come with the package: Numba is not asked for them, and they compute what Numba's would."""

import json
import os
import platform
import re
import subprocess
import sys

import pytest

from mxcore_cpu.native import shipped

pytestmark = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64") or not (3, 10) <= sys.version_info[:2] <= (3, 13),
    reason="bodies are there for Linux on x86-64, and CPython 3.10 to 3.13",
)

EVERYDAY = """
import argparse, os, sys
from mxcore.cli import warm
from mxcore_onednn import library
if (lib := library.library()) is not None:  # what it is left is the processor's affair
    lib.isa = getattr(library, os.environ["ISA"])
warm.main(argparse.Namespace(model=None, shape=(), train=True, dtype="float32"))
from mxcore_cpu.native import COUNTS
print("numba" in sys.modules, COUNTS["compiled"])
"""

BITS = """
import hashlib
import numpy as np
import mxcore as mx
from mxcore import autograd, gluon
from mxcore.gluon import nn, rnn
rng = np.random.RandomState(0)
found = hashlib.sha256()
net = nn.HybridSequential()
net.add(nn.Conv2D(8, 3), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(), nn.Flatten(), nn.Dense(16))
net.add(nn.LayerNorm(), nn.Activation("tanh"), nn.Dense(10))
layer = rnn.LSTM(7, 2)
mx.random.seed(1)
for part, shape in ((net, (6, 3, 14, 14)), (layer, (5, 6, 7))):
    part.initialize(mx.init.Uniform(0.3))
    trainer = gluon.Trainer(part.collect_params(), "adam")
    x, loss = mx.nd.array(rng.randn(*shape)), gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(2):
        with autograd.record():
            y = part(x)
            l = loss(y.reshape((y.shape[0], -1)), mx.nd.arange(y.shape[0]))
        l.backward()
        trainer.step(6)
        found.update(y.asnumpy().tobytes() + l.asnumpy().tobytes())
    for p in part.collect_params().values():
        found.update(p.data().asnumpy().tobytes())
from mxcore_cpu.native import COUNTS
import sys
print(found.hexdigest(), "numba" in sys.modules)
"""


def run(program, folder, **env):
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "MXCORE_CACHE_DIR": str(folder), **env},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A copy of the file in its place."""
    copy = tmp_path / "bodies"
    copy.write_bytes(shipped.FILE.read_bytes())
    monkeypatch.setattr(shipped, "FILE", copy)
    shipped._brought.cache_clear()
    yield copy
    shipped._brought.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["ISA_AVX2", "ISA_AVX512"])
def test_everyday_use_asks_numba_for_nothing(tmp_path, isa):
    *_, numba, compiled = run(EVERYDAY, tmp_path, ISA=isa)
    assert numba == "False", (
        "kernels have changed since: run `python tools/make_bodies.py`, then --add by other Pythons"
    )
    assert int(compiled) > 20


@pytest.mark.slow
def test_bits_are_those_of_what_numba_makes(tmp_path):
    (brought, without), (made, loaded) = (run(BITS, tmp_path / n, MXCORE_BODIES=n) for n in "10")
    assert (without, loaded) == ("False", "True")
    assert brought == made


def test_how_wide_vectors_are_is_left_to_the_processor():
    """A body that was vectorised on one machine would add up in that one's order on all others."""
    head, bodies = shipped.unpacked(shipped.FILE.read_bytes())
    labels = [json.loads(label) for label in head["labels"]]
    loops = [
        i for i, label in enumerate(labels) if label[1].rpartition(".")[2] in ("batch_norm", "elementwise", "softmax")
    ]
    assert len(loops) > 10
    for i in loops:
        assert not re.search(r"<\d+ x (float|double)>", str(shipped.parsed_body(bodies[i], "body"))), labels[i]


def test_other_sources_and_arguments_have_other_keys(file):
    head, bodies = shipped.unpacked(file.read_bytes())
    label = json.loads(head["labels"][0])
    key = next(key for key, i in head["keys"].items() if i == 0)
    assert shipped.key_of(label, "another source") != key
    assert shipped.find(label, "another source") is None and shipped.find(label, None) is None
    assert shipped.key_of([*label[:-1], label[-1] + "x"], "s") != shipped.key_of(label, "s")
    assert len(bodies) == len(head["labels"]) > 20


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b"",
        lambda b: b[:1000],
        lambda b: b.partition(b"\n")[2],
        lambda b: b[:-1],
        lambda b: b.replace(b'"sizes": [', b'"sizes": [1, '),
    ],
    ids=["empty", "cut", "no digest", "short", "other sizes"],
)
def test_a_damaged_file_is_as_none(file, damage):
    file.write_bytes(damage(file.read_bytes()))
    assert shipped._brought() == ({}, [])


def test_it_can_be_done_without(file, monkeypatch):
    monkeypatch.setenv("MXCORE_BODIES", "0")
    assert shipped._brought() == ({}, [])


def test_a_file_holds_what_it_was_given():
    bodies = [b"", b"abc", b"\n" * 100]
    head, found = shipped.unpacked(shipped.packed({"keys": {"k": 1}}, bodies))
    assert found == bodies and head["keys"] == {"k": 1}
