"""Gluon: networks as Python objects, run eagerly or hybridised.

The parts of a network are `Block`s that own `Parameter`s; `nn` has the layers, `loss` the losses, `data` the
datasets and loaders, `model_zoo` whole networks, and `Trainer` applies an optimizer to the parameters.

>>> import mxcore as mx
>>> net = mx.gluon.nn.Dense(2, in_units=3)
>>> net.initialize()
>>> net(mx.nd.ones((1, 3))).shape
(1, 2)
"""

from __future__ import annotations

from typing import Any

from .. import _importing
from . import block, parameter, trainer, utils
from .block import Block, HybridBlock, SymbolBlock
from .parameter import Constant, DeferredInitializationError, Parameter, ParameterDict, tensor_types
from .trainer import Trainer

#: Loaded when first asked for: a script that only trains needs none of the rest.
_LAZY = ("contrib", "data", "loss", "model_zoo", "nn", "rnn")

__all__ = [
    "Block",
    "Constant",
    "DeferredInitializationError",
    "HybridBlock",
    "Parameter",
    "ParameterDict",
    "SymbolBlock",
    "Trainer",
    "block",
    "parameter",
    "tensor_types",
    "trainer",
    "utils",
    *_LAZY,
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return _importing.load(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
