"""Things beside the main road, as ``mxnet.contrib``; each module is imported when it is first used."""

from __future__ import annotations

import importlib.util
from typing import Any

from .. import _importing

#: Name -> module, where it is another.
_ELSEWHERE = {
    "nd": "mxcore.ndarray.contrib",
    "ndarray": "mxcore.ndarray.contrib",
    "sym": "mxcore.symbol.contrib",
    "symbol": "mxcore.symbol.contrib",
}
_HERE = ("amp", "autograd", "io", "onnx", "quantization", "svrg_optimization", "tensorboard", "tensorrt", "text")


def __getattr__(name: str) -> Any:
    module = _ELSEWHERE.get(name, f"{__name__}.{name}" if name in _HERE else None)
    if module is None or importlib.util.find_spec(module) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _importing.load(module)


def __dir__() -> list[str]:
    return sorted([*_ELSEWHERE, *(n for n in _HERE if importlib.util.find_spec(f"{__name__}.{n}"))])
