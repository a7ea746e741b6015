"""mxcore: MXNet 1.x reborn as a microkernel in Python.

``import mxcore as mx`` gives MXNet's names; each is imported when it is first used.
"""

from __future__ import annotations

import os
from typing import Any

from . import _importing

__version__ = "0.1.0"

#: Public name -> module, or module and attribute. Nothing here is imported before it is asked for.
_LAZY: dict[str, str] = {
    **{
        n: "mxcore." + n
        for n in (
            "attribute autograd base callback compat context contrib engine executor executor_manager gluon image "
            "initializer io kvstore kvstore_server libinfo library log lr_scheduler metric model module monitor name "
            "ndarray onnx operator optimizer plugin profiler random recordio registry rnn rtc runtime symbol "
            "test_utils testing util visualization"
        ).split()
    },
    "nd": "mxcore.ndarray",
    "sym": "mxcore.symbol",
    "mod": "mxcore.module",
    "kv": "mxcore.kvstore",
    "init": "mxcore.initializer",
    "img": "mxcore.image",
    "mon": "mxcore.monitor",
    "viz": "mxcore.visualization",
    "rnd": "mxcore.random",
    "opt": "mxcore.optimizer",
    **{n: "mxcore.context:" + n for n in "Context cpu cpu_pinned gpu num_gpus current_context gpu_memory_info".split()},
    "NDArray": "mxcore.ndarray:NDArray",
    "Symbol": "mxcore.symbol:Symbol",
    "Executor": "mxcore.executor:Executor",
    "MXNetError": "mxcore.base:MXNetError",
    "AttrScope": "mxcore.attribute:AttrScope",
    "waitall": "mxcore.ndarray:waitall",
    **{n: "mxcore.util:" + n for n in "is_np_shape is_np_array np_shape np_array set_np_shape use_np_shape".split()},
    "log": "mxcore.log",
    "np": "mxcore.numpy",
    "npx": "mxcore.numpy_extension",
    **{n: "mxcore." + n for n in "numpy numpy_extension".split()},
}


def __getattr__(name: str) -> Any:
    if name == "__all__":  # looked up only by `from mxcore import *`
        return __dir__()
    target = _LAZY.get(name)
    if target is None:
        raise AttributeError(f"module 'mxcore' has no attribute {name!r}")
    module, _, attr = target.partition(":")
    found = _importing.load(module)
    found = getattr(found, attr) if attr else found
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(["__version__", *_LAZY])


if os.environ.get("MXNET_PROFILER_AUTOSTART", "0") not in ("", "0"):
    _importing.load("mxcore.profiler").autostart()
