"""The table that `Block.summary` prints."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

from ... import ndarray as nd
from ...base import error
from .structure import arrays_in, is_symbol

if TYPE_CHECKING:
    from ..parameter import Parameter
    from . import Block

__all__ = ["summary"]

_WIDTH = 80
_ROW = "{:>20}  {:>42} {:>15}".format


def _shapes(x: Any) -> str:
    """Shapes of nested arrays as text, None and other things as they are."""
    if isinstance(x, nd.NDArray):
        return str(tuple(x.shape))
    if isinstance(x, (list, tuple)):
        return "[" + ", ".join(_shapes(item) for item in x) + "]"
    return str(x)


def _outer(x: Any) -> str:
    """As `_shapes`, without the outermost brackets."""
    return ", ".join(_shapes(item) for item in x) if isinstance(x, (list, tuple)) else _shapes(x)


def _size(parameter: Parameter) -> int:
    return math.prod(parameter.shape or ())


def summary(block: Block, inputs: tuple[Any, ...]) -> None:
    """Run a block once and print a line a layer: name, output shape, parameters.

    Containers that only pass data on get no line. Parameters used by several layers count in each, and once
    more under "Shared params".
    """
    rows, handles = [("Input", _outer(inputs), 0)], []
    seen: set[Parameter] = set()
    totals = {"total": 0, "trainable": 0, "shared": 0}

    own = threading.get_ident()

    def add_row(layer: Block, _: Any, output: Any) -> None:
        if threading.get_ident() != own:
            return  # a call of another thread, which has the hooks of the layers, too
        if any(is_symbol(y) for y in arrays_in(output, [])):
            return  # a graph is being traced, for the shapes of parameters
        count = 0
        for p in layer._reg_params.values():
            size = _size(p)
            count += size
            totals["trainable"] += size if p.grad_req != "null" else 0
            totals["shared"] += size if p in seen else 0
            seen.add(p)
        totals["total"] += count
        rows.append((f"{type(layer).__name__}-{len(rows)}", _outer(output), count))

    def watch(layer: Block) -> None:
        if getattr(layer, "_active", False):
            raise error(AssertionError, f'"{layer.name}" must not be hybridized to print summary.')
        if layer._in_summary:
            handles.append(layer.register_forward_hook(add_row))

    # A layer under two names is one layer, with one hook: `apply` meets it twice, the hook's id is the same.
    try:
        block.apply(watch)
        block(*inputs)
    finally:
        for handle in handles:
            handle.detach()

    print("-" * _WIDTH)
    print(_ROW("Layer (type)", "Output Shape", "Param #"))
    print("=" * _WIDTH)
    for row in rows:
        print(_ROW(*row))
    print("=" * _WIDTH)
    print("Parameters in forward computation graph, duplicate included")
    print(f"   Total params: {totals['total']}")
    print(f"   Trainable params: {totals['trainable']}")
    print(f"   Non-trainable params: {totals['total'] - totals['trainable']}")
    print(f"Shared params in forward computation graph: {totals['shared']}")
    print(f"Unique parameters in model: {totals['total'] - totals['shared']}")
    print("-" * _WIDTH)
