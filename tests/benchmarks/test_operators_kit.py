"""``pytest --benchmark`` in the folder of a plugin: its operators and kernels, on every device, in one table."""

import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

from mxcore._core.manager import manager
from mxcore.plugin import Sample, hookimpl, op
from mxcore.testing.benchmark import uses

TOYS = Path(__file__).resolve().parents[1] / "toy_plugins"
KERNELS = """
from mxcore.plugin import KernelSet, hookimpl

API_VERSION = 1
cpu = KernelSet("cpu")


@cpu.kernel("toy_op", dtypes="f4", priority=3)
def quick(k, p, data):
    return data * data * p.factor


@cpu.kernel("relu", priority=7, out=True)
def relu(k, p, outs, data):
    k.xp.maximum(data, 0, out=outs[0])


@cpu.kernel("tanh", when=lambda p, data: data.size > 10**9)
def never(k, p, data):
    return k.xp.tanh(data)


@hookimpl
def mxcore_kernels():
    return {"cpu": cpu}
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The folder of a plugin with kernels, beside the toy operator and the toy device, installed elsewhere."""
    folder = tmp_path_factory.mktemp("plugin")
    site = tmp_path_factory.mktemp("site")
    (folder / "my_kernels.py").write_text(KERNELS)
    for name, entry in (
        ("my_kernels", "[mxcore]\nmy_kernels = my_kernels\n"),
        ("toy_op", "[mxcore]\ntoy_op = toy_op\n"),
        ("toy_device", "[mxcore]\ntoy_device = toy_device\n"),
        ("entry", "[pytest11]\nmxcore.testing.plugin = mxcore.testing.plugin\n"),
    ):
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry)
        if name.startswith("toy"):
            shutil.copy(TOYS / name / f"{name}.py", site)

    def run(*args):
        args = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--benchmark", *args]
        done = subprocess.run(
            args,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{folder}"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        _, _, table = done.stdout.partition("---\n")
        rows = [
            [c.strip() for c in line.split("  ") if c.strip()]
            for line in table.partition("\n=")[0].splitlines()
            if line
        ]
        return done, {(r[0].split(",")[0], *r[1:3]): r[3:] for r in rows}

    run.folder = folder
    return run


def test_it_measures_what_the_folder_brings(here):
    done, table = here("--quick", "-rs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {*table} == {
        ("toy_op", "cpu(0)", "of my_kernels, priority 3"),
        ("toy_op", "cpu(0)", "reference body"),
        ("relu", "cpu(0)", "of my_kernels, priority 7"),
        ("relu", "cpu(0)", "reference body"),
        ("tanh", "cpu(0)", "reference body"),
    }
    took, against, ratio = table["relu", "cpu(0)", "of my_kernels, priority 7"]
    assert re.fullmatch(r"[\d.]+ .?s \.\. [\d.]+ .?s", took) and against.startswith("reference body ")
    assert re.fullmatch(r"[\d.]+ x(, slower|, faster)?", ratio)
    assert len(table["toy_op", "cpu(0)", "reference body"]) == 1, "there is nothing to compare it with"
    assert "operator tanh has no sample that <Kernel tanh of my_kernels> takes" in done.stdout


def test_operators_and_devices_can_be_chosen(here):
    done, table = here("--quick", "--ops=toy_*, sum")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {r[:2] for r in table} == {(op, d) for op in ("toy_op", "sum") for d in ("cpu(0)", "toy_device(0)")}
    assert table["toy_op", "toy_device(0)", "reference body"][1].startswith("cpu, ")
    done, table = here("--quick", "--ops=toy_op", "--device=toy_device(1)")
    assert done.returncode == 0 and [*table] == [("toy_op", "toy_device(1)", "reference body")], done.stdout


def test_operators_of_the_folder_go_first():
    """Also where the folder brings a device, on which there is every operator: a quick run may end before the last."""
    manager.load()
    last = op("zz_last", samples=[Sample((2,))])(lambda k, p, data: data)
    plugin = types.SimpleNamespace(API_VERSION=1, mxcore_ops=hookimpl(lambda: [last]))
    manager.register(plugin, "zz")
    try:
        found = [o.name for o, _, _ in uses(None, "cpu", {"zz", "cpu_numba"})]
        assert found[0] == "zz_last" and len({*found}) > 400
    finally:
        manager.unregister("zz")


def test_benchmarks_of_its_own_take_their_place(here):
    own = here.folder / "benchmarks"
    own.mkdir()
    (own / "test_own.py").write_text(
        "import mxcore as mx\n\ndef test_exp(compare, ctx):\n    x = mx.nd.ones((3,), ctx=ctx)\n"
        "    assert compare('exp', x.exp, x.abs, number=10, against='abs') > 0\n"
    )
    try:
        done, table = here("--quick", "--device=cpu")
        assert done.returncode == 0 and [k[:2] for k in table] == [("exp", "cpu(0)")], done.stdout + done.stderr
    finally:
        shutil.rmtree(own)
