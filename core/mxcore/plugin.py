"""Everything a plugin author imports, in one place.

A plugin is a module with functions marked :data:`hookimpl` (see :mod:`mxcore._core.hookspecs` for the hooks) and the
line ``API_VERSION = 1``, announced by an entry point of the group ``mxcore``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import builtin as _builtin  # noqa: F401  # its operators enter the registry
from ._core.device import Device
from ._core.errors import MXNetError, error
from ._core.graph import Graph, GraphF, GraphPass, Node, Value
from ._core.hookspecs import hookimpl
from ._core.infer import known, merge_dtype, merge_shape
from ._core.kernels import KernelSet, Spec
from ._core.manager import API_VERSION
from ._core.op import Op, op
from ._core.params import Param, Params
from .context import Context, pinning
from .families import binary, broadcast, broadcast_shapes, declarations, scalar, unary
from .fusion import Expr, Fused, print_with
from .parameters import Any_, Bool, DType, Enum, Float, Floats, GraphParam, Int, Rest, Shape, Str
from .philox import Rng
from .rewriting import rewrite
from .stypes import CSR, RowSparse, merge_rows
from .testing.sample import Sample
from .typing import Array, Call, Operand, Operators

if TYPE_CHECKING:
    from .array_api import ArrayAPINamespace

__all__ = [
    "API_VERSION",
    "Any_",
    "Array",
    "ArrayAPINamespace",
    "Bool",
    "CSR",
    "Call",
    "Context",
    "DType",
    "Device",
    "Enum",
    "Expr",
    "Float",
    "Floats",
    "Fused",
    "Graph",
    "GraphF",
    "GraphParam",
    "GraphPass",
    "Int",
    "KernelSet",
    "MXNetError",
    "Node",
    "Op",
    "Operand",
    "Operators",
    "Param",
    "Params",
    "Rest",
    "Rng",
    "RowSparse",
    "Sample",
    "Shape",
    "Spec",
    "Str",
    "Value",
    "binary",
    "broadcast",
    "broadcast_shapes",
    "declarations",
    "error",
    "hookimpl",
    "known",
    "merge_dtype",
    "merge_rows",
    "merge_shape",
    "op",
    "pinning",
    "print_with",
    "rewrite",
    "scalar",
    "unary",
]


def __getattr__(name: str) -> Any:
    """What few plugins need is imported when one asks for it."""
    if name == "ArrayAPINamespace":
        from .array_api import ArrayAPINamespace

        return ArrayAPINamespace
    raise AttributeError(f"module 'mxcore.plugin' has no attribute {name!r}")
