"""The microkernel alone: no plugin at all, then one toy device and one toy operator."""

import os
import subprocess
import sys
from pathlib import Path

TOYS = Path(__file__).parent.parent / "toy_plugins"

PROGRAM = r"""
import sys
import numpy as np
from mxcore._core import tables
from mxcore._core.manager import manager
from mxcore.plugin import Device, op, hookimpl, Float

manager.load()
assert sorted(tables.ops.items) == ["_copyto", "_grad_add", "ones_like", "zeros_like"], sorted(tables.ops.items)
assert not tables.devices.items and not manager.origin and not manager.failed
assert "mxcore.ops" not in sys.modules and "mxcore.ndarray" not in sys.modules

import toy_device
import types

@op("scale", factor=Float(), grad=lambda F, p, dy: F.scale(dy, factor=p.factor))
def scale(k, p, data):
    "Multiply data by factor."
    return data * p.factor

plugin = types.ModuleType("scaling")
plugin.API_VERSION = 1
@hookimpl
def mxcore_ops():
    return [scale]
plugin.mxcore_ops = mxcore_ops
manager.register(toy_device, "toy_device")
manager.register(plugin, "scaling")

from mxcore._core import reverse, tape, transfer
from mxcore._core.array import Array
from mxcore._core.context import Context
from mxcore.gradient import gradient
from mxcore._core.graph import Graph, variable
from mxcore.composing import GraphF, Value
from mxcore._core.state import state
ctx = Context("toy_device", 1)
put = lambda v: transfer.wrap(ctx.device.from_host(np.asarray(v, "float32"), 1), ctx)
x, g = put([1, 2]), put([0, 0])
tape.mark(x, g, "write")
state.record = True
y = scale(scale(x, factor=3), factor=2)
z = tables.ops.get("_grad_add")(y, x)
state.record = False
reverse.backward([z], None)
assert z.asnumpy().tolist() == [7, 14] and g.asnumpy().tolist() == [7, 7], (z.asnumpy(), g.asnumpy())

v = variable("x")
F = GraphF("n")
out = F.scale(F.scale(Value((v, 0), F), factor=3), factor=2)
grads = gradient([out.entry], [None], [(v, 0)])
assert grads[0] is not None and len(Graph([out.entry]).nodes) == 3
manager.unregister("scaling")
manager.unregister("toy_device")
assert "scale" not in tables.ops.items and not tables.devices.items
print("fine")
"""


def test_it_boots_without_any_plugin_and_grows_by_two():
    env = {**os.environ, "MXCORE_PLUGINS": "", "PYTHONPATH": str(TOYS / "toy_device")}
    done = subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], env=env, capture_output=True, text=True)
    assert done.stdout.strip() == "fine", done.stderr


def test_importing_mxcore_loads_nothing_heavy():
    code = (
        "import sys, mxcore; heavy = {'numba', 'cv2', "
        "'cupy', 'ray', 'matplotlib', 'pluggy', 'numpy', 'mxcore_cpu'} & set(sys.modules);assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
