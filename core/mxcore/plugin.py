"""Everything a plugin author imports, in one place.

A plugin is a module with functions marked :data:`hookimpl` (see :mod:`mxcore._core.hookspecs` for the hooks) and the
line ``API_VERSION = 1``, announced by an entry point of the group ``mxcore``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import copy
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from . import builtin as _builtin  # noqa: F401  # its operators enter the registry
from ._core import tables as _tables
from ._core.call import Observer, unwatch, watch
from ._core.call import eager_call as _eager_call
from ._core.call import op_context as _op_context
from ._core.device import Device
from ._core.errors import REFERENCE as _REFERENCE
from ._core.errors import MXNetError, error, explain
from ._core.graph import Graph, GraphPass, Node
from ._core.hookspecs import hookimpl
from ._core.infer import known, merge_dtype, merge_shape
from ._core.kernels import KernelSet, Spec
from ._core.manager import API_VERSION
from ._core.op import Op, op
from ._core.params import Param, Params
from ._forks import at_fork, hold_at_fork
from ._importing import load as load_module
from ._locks import fork_safe_lock, locked
from .composing import GraphF, Value
from .context import Context, pinning
from .declarations import declarations
from .elementwise import binary, broadcast, broadcast_shapes, held, scalar, unary
from .fusion import Expr, Fused, print_with
from .looking import Piece
from .looking import telling as _telling
from .parameters import Any_, Bool, DType, Enum, Float, Floats, GraphParam, Int, Rest, Shape, Str, given_params
from .patterns import Match, Pattern, fusing
from .philox import LaterKey, Rng
from .rewriting import rewrite
from .stypes import CSR, HeldRows, RowSparse, merge_rows
from .testing.sample import Distinct, Ints, Sample, Values
from .typing import Array, Call, Operand, Operators

if TYPE_CHECKING:
    from ._interrupts import Uninterrupted, let_through, suppress
    from ._workers import Alone, Clerk, Job, Latch, Promise, Uncollected, Workers, apart, begin, processors
    from .array_api import ArrayAPINamespace
    from .executor.memory import memory_layout

#: What few plugins need -> its module.
_LATE = {
    "Alone": "._workers",
    "ArrayAPINamespace": ".array_api",
    "Clerk": "._workers",
    "Job": "._workers",
    "Latch": "._workers",
    "Promise": "._workers",
    "Uncollected": "._workers",
    "Uninterrupted": "._interrupts",
    "let_through": "._interrupts",
    "suppress": "._interrupts",
    "Workers": "._workers",
    "apart": "._workers",
    "begin": "._workers",
    "processors": "._workers",
    "memory_layout": ".executor.memory",
}

__all__ = [
    "API_VERSION",
    "Alone",
    "Any_",
    "Array",
    "ArrayAPINamespace",
    "Bool",
    "CSR",
    "Call",
    "Clerk",
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
    "LaterKey",
    "MXNetError",
    "Match",
    "Node",
    "Observer",
    "Op",
    "Operand",
    "Operators",
    "Param",
    "Params",
    "Pattern",
    "Piece",
    "Prepared",
    "Rest",
    "Rng",
    "HeldRows",
    "Job",
    "Latch",
    "Promise",
    "RowSparse",
    "Sample",
    "Shape",
    "Spec",
    "Str",
    "Uncollected",
    "Uninterrupted",
    "Value",
    "Values",
    "Workers",
    "apart",
    "at_fork",
    "begin",
    "binary",
    "broadcast",
    "broadcast_shapes",
    "compute",
    "compute_without",
    "kernel_without",
    "owner_without",
    "declarations",
    "error",
    "explain",
    "find_op",
    "fork_safe_lock",
    "fusing",
    "given_params",
    "hookimpl",
    "known",
    "let_through",
    "load_module",
    "held",
    "hold_at_fork",
    "locked",
    "memory_layout",
    "merge_dtype",
    "merge_rows",
    "merge_shape",
    "op",
    "operators",
    "pinning",
    "print_with",
    "processors",
    "rewrite",
    "scalar",
    "suppress",
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


def compute_without(owner: str, op: str, k: Call, p: Params, outs: Sequence[Any], *ins: Any) -> None:
    """Compute an operator as if a plugin had no kernels: for a kernel that cannot, or only a part of it.

    Parameters
    ----------
    owner : str
        The plugin, by the name of its entry point.
    op : str
        Name of the operator.
    k, p, outs, *ins
        As a kernel with ``out=True`` gets them; an output may be None.

    Examples
    --------
    >>> import numpy as np
    >>> import mxcore as mx
    >>> from mxcore.testing.case import Call
    >>> out, k = np.empty(2, np.float32), Call(mx.cpu().device, False)
    >>> compute_without("my_plugin", "relu", k, find_op("relu").parse({}), [out], np.float32([-1, 2]))
    >>> out.tolist()
    [0.0, 2.0]
    """
    found, specs = find_op(op), [Spec(a.shape, a.dtype) for a in ins]
    left = _left(k, owner, found)
    kernel = _other_kernel(left._left, found, k.device.type, p, specs)
    if kernel is not None and kernel.out:
        _telling(kernel.owner, kernel.fn)(left, p, [*outs], *ins)
        return
    owner, fn = (_REFERENCE, found.body) if kernel is None else (kernel.owner, kernel.fn)
    values = _telling(owner, fn)(left, p, *ins)  # type: ignore[arg-type]
    for out, value in zip(outs, values if isinstance(values, (list, tuple)) else [values]):
        if out is not None and value is not None:  # a state that stays
            k.device.copy(value, out)


def kernel_without(owner: str, op: str, device: str, p: Params, *specs: Spec) -> Callable[..., None] | None:
    """The kernel that would compute an operator if a plugin had none: for a plugin that asks whether there is one.

    Parameters
    ----------
    owner : str
        The plugin, by the name of its entry point.
    op : str
        Name of the operator.
    device : str
        Device type.
    p : Params
        As a kernel gets them.
    *specs : Spec
        Shapes and dtypes of the inputs.

    Returns
    -------
    callable or None
        ``(k, p, outs, *ins)``; None where there is none that writes to given arrays: the reference body computes. Its
        attribute `prepared`, if it has one, is a :class:`Prepared`.

    Examples
    --------
    >>> p = find_op("relu").parse({})
    >>> kernel_without("cpu_numba", "relu", "cpu", p, Spec((2,), "float32")) is None
    True
    """
    found = find_op(op)
    kernel = _other_kernel({(owner, found)}, found, device, p, specs)
    if kernel is None or not kernel.out:
        return None
    fn = _telling(kernel.owner, kernel.fn)

    @wraps(fn)
    def others(k: Call, *args: Any) -> None:
        fn(_left(k, owner, found), *args)

    return others


def owner_without(owner: str, op: str, device: str, p: Params, *specs: Spec) -> str:
    """Whose kernel would compute an operator if a plugin had none; ``'reference'``: its body would.

    Parameters
    ----------
    owner, op, device, p, *specs
        As of `kernel_without`.

    Examples
    --------
    >>> owner_without("my_plugin", "relu", "cpu", find_op("relu").parse({}), Spec((2,), "float32"))
    'reference'
    """
    found = find_op(op)
    kernel = _other_kernel({(owner, found)}, found, device, p, specs)
    return _REFERENCE if kernel is None else str(kernel.owner)


def _other_kernel(left: Collection[tuple[str, Op]], op: Op, device: str, p: Params, specs: Sequence[Spec]) -> Any:
    others = (o for o in _tables.kernels.of(device, op) if (o.owner, op) not in left and not o.sparse)
    return next((o for o in others if o.fits(p, specs)), None)


def _left(k: Any, owner: str, op: Op) -> Any:
    """A call as it is left to the next kernel.

    That leaves it to none that had it before, or they would never end; and what the first one keeps is of the inputs of
    a step, which the next one need not be given.
    """
    if k.key is not None:
        _ = k.rng  # one stream for both
    left = copy(k)
    # (plugin, operator) of each kernel that has left it to the next one.
    left.keep, left._left = None, getattr(k, "_left", frozenset()) | {(owner, op)}
    return left


class Prepared(NamedTuple):
    """A convolution's kernel in two parts: what it makes of the weight may be kept for as long as that is the same.

    Whoever keeps weights, and knows what becomes of the results, asks a kernel for its attribute `prepared`.

    Attributes
    ----------
    size : callable
        ``(p, data, weight) -> int``, of two `Spec`: how many float32 numbers the weight becomes.
    make : callable
        ``(p, weight, out)``: writes these numbers.
    run : callable
        ``(p, data, made, bias, out, add, low, slope)``: convolves; `bias` may be None. Results are added to what is
        there where `add` says so, sums below the number `low` become `low`, and negative ones are multiplied by the
        `slope` of their channel, if that is not None.
    """

    size: Callable[[Params, Spec, Spec], int]
    make: Callable[[Params, Any, Any], None]
    run: Callable[..., None]


def compute(op: str, k: Call, p: Params, *ins: Any) -> list[Any]:
    """Compute an operator on arrays of a device, by the best kernel.

    Parameters
    ----------
    op : str
        Name of the operator.
    k : Call
        What a kernel got as its first argument.
    p : Params
        Of that operator.
    *ins
        Device arrays, which are not changed.

    Returns
    -------
    list
        Its outputs.

    Examples
    --------
    >>> import numpy as np
    >>> import mxcore as mx
    >>> from mxcore._core.call import op_context
    >>> relu = find_op("relu")
    >>> compute("relu", op_context(mx.cpu(), False), relu.parse({}), np.float32([-1, 2]))[0].tolist()
    [0.0, 2.0]
    """
    found = find_op(op)
    call = _eager_call(found, p, k.device, [Spec(a.shape, a.dtype) for a in ins])
    copies = [a.copy() if i in p._sig.mutates else a for i, a in enumerate(ins)]
    values: list[Any] = _telling(call.owner, call.run)(_op_context(k.ctx, k.is_train), p, copies)[0]
    return values[: call.n_out]


def operators() -> list[Op]:
    """All operators, by their names; one with several names stands under its first.

    Examples
    --------
    >>> {o.name for o in operators() if "reduces" in o.facets} >= {"max", "mean", "min", "sum"}
    True
    """
    return [found for name, found in _tables.ops.entries().items() if found.name == name]


def __getattr__(name: str) -> Any:
    """What few plugins need is imported when one asks for it."""
    if name in _LATE:
        return getattr(import_module(_LATE[name], __package__), name)
    raise AttributeError(f"module 'mxcore.plugin' has no attribute {name!r}")
