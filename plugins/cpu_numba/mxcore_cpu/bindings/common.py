"""What all bindings share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from mxcore.plugin import Params, Spec, find_op

from ..background import GuardedKernels

__all__ = ["FLOATS", "LARGE", "cpu", "helpers", "inputs_by_name", "large", "outputs_by_name"]

_T = TypeVar("_T")

cpu = GuardedKernels("cpu")
FLOATS = "f4 f8"
#: Elements from which a kernel that passes once over its data beats NumPy.
LARGE = 1 << 14


def large(p: Params, data: Spec, *rest: Spec) -> bool:
    """Whether the first input has :data:`LARGE` elements."""
    return data.size >= LARGE


def helpers(op: str) -> Any:
    """What an operator's body shares with its kernels."""
    return find_op(op).facet("helpers")


def inputs_by_name(op: str, p: Params, ins: Sequence[_T]) -> dict[str, _T]:
    """The inputs, or their specs, that the parameters of an operator select."""
    return dict(zip(find_op(op).signature(p).inputs, ins))


def outputs_by_name(op: str, p: Params, outs: Sequence[_T]) -> dict[str, _T]:
    """The outputs that the parameters of an operator select."""
    return dict(zip(find_op(op).signature(p).outputs, outs))
