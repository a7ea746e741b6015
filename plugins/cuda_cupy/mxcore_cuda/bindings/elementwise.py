"""Elementwise operators on arrays of one shape: one source for all of them, printed from what the operators mean.

Operators of one meaning (`elemwise_add`, `broadcast_add`) share a kernel. Whatever broadcasts runs over CuPy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from mxcore.plugin import Call, Fused, Op, Params, Spec, operators

from ..fused import print_expression
from ..launching import Kernel
from ..sources import Code
from .common import Array, Outs, binds

__all__ = ["MEANINGS", "source_of"]

_KERNEL = """KERNEL(256) {name}({arguments}, T* y, i64 n) {{
{numbers}    FOR_EACH(i, n) {{
{loads}        y[i] = (T)({value});
    }}
}}
EACH({name})
"""
#: Values of the parameter `scalar` that an expression may depend on.
_NUMBERS = (0.0, 0.5, 1.0, 2.0, 3.0)


def _meaning(op: Op) -> tuple[Any, int, bool] | None:
    """The expression of an operator over ``x0``, ``x1`` and ``s``, its arrays, and whether it takes a number."""
    if "expr" not in op.facets or {"reduces", "aligned", "numbers"} & op.facets.keys():
        return None
    if not op.params.keys() <= {"scalar", "is_int"}:
        return None
    number = "scalar" in op.params
    given = [op.parse({"scalar": v} if number else {}) for v in (_NUMBERS if number else _NUMBERS[:1])]
    sig, found = op.signature(given[0]), [op.facet("expr", p) for p in given]
    if sig.n_out != 1 or sig.like or None in found or any(e.tree != found[0].tree for e in found):
        return None
    names = {name: ("name", f"x{i}") for i, name in enumerate(sig.inputs)} | {"scalar": ("name", "s")}
    tree = _renamed(found[0].tree, names)
    return None if tree[0] in ("name", "num") else (tree, len(sig.inputs), number)


def _renamed(tree: Any, names: dict[str, Any]) -> Any:
    if tree[0] == "name":
        return names[tree[1]]
    return tuple(_renamed(t, names) if isinstance(t, tuple) else t for t in tree)


@cache
def _source(dtype: str) -> Code:
    return Code("elementwise.cu", source_of(dtype), dtype)


def source_of(dtype: str) -> str:
    """The text of all kernels; float16 is computed in float32, after the number was rounded as the arrays are."""
    held = "float64" if dtype == "float64" else "float32"
    text = ['#include "math.cuh"\n']
    for (tree, n, number), name in _NAMES.items():
        inputs = [f"x{i}" for i in range(n)]
        chain = Fused(inputs, [tree], held, scalars=["s"] if number else [])
        text.append(
            _KERNEL.format(
                name=name,
                arguments=", ".join([*(f"const T* p{i}" for i in range(n)), *(["double u"] if number else [])]),
                numbers="    const A s = (A)(T)(A)u;\n" if number else "",
                loads="".join(f"        const A x{i} = (A)p{i}[i];\n" for i in range(n)),
                value=print_expression(chain.steps[-1][1], {x: x for x in (*inputs, "s")}, held),
            )
        )
    return "\n".join(text)


@cache
def _kernel(name: str, dtype: Any, index: int) -> Kernel:
    return Kernel(_source(str(dtype)), name, index)


def _alike(p: Params, *ins: Spec) -> bool:
    return all(s.shape == ins[0].shape and s.dtype == ins[0].dtype for s in ins)


def _bind(op: str, name: str, n: int, number: bool) -> None:
    def short(ctx: Any, dtype: Any) -> Callable[[Any, Any], Any]:
        return _kernel(name, dtype, ctx.device_id).prepared(ctx.device, dtype, number)

    if number:

        @binds(op, when=_alike, short=short)
        def with_number(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
            a = ins[0]
            _kernel(name, a.dtype, k.ctx.device_id).each(a.size, *ins, p.scalar, outs[0], a.size)

    else:

        @binds(op, when=_alike, short=short if n == 2 else None)
        def of_arrays(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
            a = ins[0]
            _kernel(name, a.dtype, k.ctx.device_id).each(a.size, *ins, outs[0], a.size)


#: Operator -> (expression, arrays, whether it takes a number).
MEANINGS = {op.name: found for op in operators() if (found := _meaning(op)) is not None}
#: What is computed -> the name of its kernel: that of the first operator.
_NAMES: dict[Any, str] = {}
for _op, _found in MEANINGS.items():
    _bind(_op, _NAMES.setdefault(_found, f"of_{_op}"), *_found[1:])
