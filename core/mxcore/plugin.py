"""Everything a plugin author imports, in one place.

A plugin is a module with functions marked :data:`hookimpl` (see :mod:`mxcore._core.hookspecs` for the hooks) and the
line ``API_VERSION = 1``, announced by an entry point of the group ``mxcore``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import builtin as _builtin  # noqa: F401  # its operators enter the registry
from ._core import tables as _tables
from ._core.call import Observer, unwatch, watch
from ._core.device import Device
from ._core.errors import MXNetError, error, explain
from ._core.graph import Graph, GraphPass, Node
from ._core.hookspecs import hookimpl
from ._core.infer import known, merge_dtype, merge_shape
from ._core.kernels import KernelSet, Spec
from ._core.manager import API_VERSION
from ._core.op import Op, op
from ._core.params import Param, Params
from ._locks import fork_safe_lock
from .composing import GraphF, Value
from .context import Context, pinning
from .declarations import declarations
from .elementwise import binary, broadcast, broadcast_shapes, scalar, unary
from .fusion import Expr, Fused, print_with
from .parameters import Any_, Bool, DType, Enum, Float, Floats, GraphParam, Int, Rest, Shape, Str
from .philox import Rng
from .rewriting import rewrite
from .stypes import CSR, HeldRows, RowSparse, merge_rows
from .testing.sample import Distinct, Ints, Sample, Values
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
    "Distinct",
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
    "Ints",
    "KernelSet",
    "MXNetError",
    "Node",
    "Observer",
    "Op",
    "Operand",
    "Operators",
    "Param",
    "Params",
    "Rest",
    "Rng",
    "HeldRows",
    "RowSparse",
    "Sample",
    "Shape",
    "Spec",
    "Str",
    "Value",
    "Values",
    "binary",
    "broadcast",
    "broadcast_shapes",
    "declarations",
    "error",
    "explain",
    "find_op",
    "fork_safe_lock",
    "hookimpl",
    "known",
    "merge_dtype",
    "merge_rows",
    "merge_shape",
    "op",
    "operators",
    "pinning",
    "print_with",
    "rewrite",
    "scalar",
    "unary",
    "unwatch",
    "watch",
]


def find_op(name: str) -> Op:
    """The operator of a name, whoever declares it: its parameters and their parser, signature, facets, samples, body.

    Parameters
    ----------
    name : str
        Any of its names. Plugins are loaded if need be, therefore a plugin asks when it runs, not when it is imported.

    Raises
    ------
    MXNetError
        (also KeyError) with near names, and with the plugins that failed to load.

    Examples
    --------
    >>> relu = find_op("relu")
    >>> relu, relu.input_names, len(relu.samples) > 0
    (<Op relu>, ('data',), True)
    >>> dense = find_op("FullyConnected")
    >>> dense.signature(dense.parse({"num_hidden": 8, "no_bias": True})).inputs
    ('data', 'weight')
    """
    return _tables.ops.get(name)


def operators() -> list[Op]:
    """All operators, by their names; one with several names stands under its first.

    Examples
    --------
    >>> {o.name for o in operators() if "reduces" in o.facets} >= {"max", "mean", "min", "sum"}
    True
    """
    return [found for name in _tables.ops.names() if (found := _tables.ops.items[name]).name == name]


def __getattr__(name: str) -> Any:
    """What few plugins need is imported when one asks for it."""
    if name == "ArrayAPINamespace":
        from .array_api import ArrayAPINamespace

        return ArrayAPINamespace
    raise AttributeError(f"module 'mxcore.plugin' has no attribute {name!r}")
