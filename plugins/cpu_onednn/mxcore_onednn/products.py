"""Products of many small matrices, which BLAS would be called for one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxcore.plugin import Call, Params, Spec

from .calls import PRIORITY, kernels, otherwise, run, takes
from .library import Library
from .plan import DST, SRC, WEIGHTS, Desc, Plan, plan_for

__all__ = ["products"]

Shape = tuple[int, ...]
#: Multiplications of one product for which the library is the faster one: smaller ones are over before it has begun,
#: larger ones keep BLAS busy.
_WORTH = range(1 << 15, 1 << 26)


def products(lib: Library, lhs: Shape, rhs: Shape, turned: tuple[bool, bool]) -> Plan:
    """Of two arrays (n, rows, columns), either of them `turned`, to their products."""
    descs = [Desc.dense(lib, s, order=(0, 2, 1) if t else None) for s, t in zip((lhs, rhs), turned)]
    out = _result(lhs, rhs, turned)
    descs.append(Desc.dense(lib, out))
    plan = Plan(lib, descs)
    made = lib.new(
        "matmul_primitive_desc_create", lib.engine, descs[0].handle, descs[1].handle, None, descs[2].handle, lib.attr
    )
    plan.add(made, {SRC: 0, WEIGHTS: 1, DST: 2})
    return plan.done()


def _result(lhs: Shape, rhs: Shape, turned: tuple[bool, bool]) -> Shape:
    return lhs[0], lhs[2 if turned[0] else 1], rhs[1 if turned[1] else 2]


def _plan(p: Params, lhs: Shape, rhs: Shape) -> Plan | None:
    turned = p.transpose_a, p.transpose_b
    return plan_for(
        ("products", lhs, rhs, turned), lambda lib: products(lib, lhs, rhs, turned), lhs[0] * _work(p, lhs, rhs)
    )


def _work(p: Params, lhs: Shape, rhs: Shape) -> int:
    return lhs[1] * lhs[2] * rhs[1 if p.transpose_b else 2]


def _multiplies(p: Params, lhs: Spec, rhs: Spec) -> bool:
    if not (takes([lhs, rhs]) and lhs.ndim == rhs.ndim == 3 and lhs.shape[0] > 1):
        return False
    return _work(p, lhs.shape, rhs.shape) in _WORTH and _plan(p, lhs.shape, rhs.shape) is not None


@kernels.kernel("batch_dot", when=_multiplies, priority=PRIORITY, out=True)
def _batch_dot(k: Call, p: Params, outs: Sequence[Any], lhs: Any, rhs: Any) -> None:
    run("batch_dot", _plan(p, lhs.shape, rhs.shape), [lhs, rhs], outs[:1], otherwise("batch_dot", k, p, outs, lhs, rhs))
