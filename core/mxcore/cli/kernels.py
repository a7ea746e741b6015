"""``mxcore info --kernels OP``: which kernel runs for which dtypes on each device, whose, and why it is first."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._core import tables
from .._core.device import Device
from .._core.errors import caught
from .._core.kernels import Kernel
from .._core.op import Op
from .._core.plugins import place, plugins

__all__ = ["describe"]

_ORDER = "MXCORE_KERNEL_ORDER"


def describe(name: str) -> list[str]:
    """Lines about the kernels of an operator: a part for each device that is present.

    Parameters
    ----------
    name : str
        The operator, or an alias of it.
    """
    op = tables.ops.get(name)
    alike: dict[tuple[str, ...], list[str]] = {}  # devices of one memory (cpu, cpu_pinned) say the same
    for kind in tables.devices.names():
        device = tables.devices.get(kind)
        if _present(device):
            alike.setdefault((_whose(tables.devices.owners[kind]), *_device(op, device)), []).append(kind)
    lines = [f"operator {op.name} of {_whose(tables.ops.owners[name])}"]
    for (owner, *told), kinds in alike.items():
        lines += [f"{', '.join(kinds)}, of {owner}", *(f"  {line}" for line in told)]
    return lines


def _present(device: Device) -> bool:
    try:
        return device.count() > 0
    except BaseException as e:  # a broken driver may raise anything; `mxcore info` tells
        caught(e)
        return False


def _whose(owner: str) -> str:
    dist = plugins.distribution(owner)
    return owner if dist == owner else f"{owner} ({dist})"


def _device(op: Op, device: Device) -> Iterator[str]:
    """Lines about one device: dtypes with one answer together, those that no kernel names last."""
    every = tables.kernels.of(device.type, op)
    found = every if op.sparse_body is None else [k for k in every if not k.sparse]
    named: list[np.dtype[Any]] = sorted({t for k in found for t in k.dtypes or ()}, key=lambda t: (t.kind, t.itemsize))
    groups: dict[tuple[int, ...], list[str]] = {}
    for dtype in (*named, None):
        chain = tuple(i for i, k in enumerate(found) if k.dtypes is None or dtype in k.dtypes)
        groups.setdefault(chain, []).append("all other dtypes" if dtype is None else dtype.name)
    for chain, dtypes in groups.items():
        yield f"{'all dtypes' if len(groups) == 1 else ', '.join(dtypes)}:"
        yield from (f"  {line}" for line in _chain(op, device, [found[i] for i in chain]))
    if op.sparse_body is not None:
        yield from (
            f"sparse inputs (row_sparse, csr), where `when` ({_place(k.when)}) holds: kernel of {_whose(k.owner)}, "
            f"{_place(k.fn)}"
            for k in every
            if k.sparse
        )
        yield "sparse inputs (row_sparse, csr): the sparse body of the operator, before all other kernels"
    elif op.storage_rule is None:
        yield "sparse inputs (row_sparse, csr): they are made dense first"
    else:
        yield "sparse inputs (row_sparse, csr): as above; kernels and body get them as they are"


def _chain(op: Op, device: Device, found: Sequence[Kernel]) -> Iterator[str]:
    """Who runs, in the order in which they are asked; one without a condition ends it."""
    for i, k in enumerate(found):
        out = ", writes into its outputs" if k.out else ""
        condition = f", where its `when` ({_place(k.when)}) holds" if k.when else ""
        yield f"{i + 1}. kernel of {_whose(k.owner)}, {_place(k.fn)}{out}{condition}: {_why(k, found[i + 1 :])}"
        if not k.when:
            for other in found[i + 1 :]:
                yield (
                    f"   never reached: kernel of {_whose(other.owner)}, {_place(other.fn)}, priority {other.priority}"
                )
            return
    why = f"no kernel {'fits' if found else 'is there'}"
    if op.body is None or device.xp is None:
        yield (
            f"{len(found) + 1}. an error: {why}, and "
            f"{'the operator has no body' if op.body is None else 'the device no array namespace'}"
        )
    else:
        yield f"{len(found) + 1}. reference body, {_place(op.body)}: {why}"


def _why(k: Kernel, later: Sequence[Kernel]) -> str:
    """Why a kernel goes before the next one that is asked."""
    if not later:
        return f"priority {k.priority}, and a kernel goes before the reference body"
    n = later[0]
    if n.priority != k.priority:
        return f"its priority {k.priority} is above {n.priority}"
    if n.owner == k.owner:
        return f"priority {k.priority} as the next one, and declared before it"
    if place(k.owner, _ORDER) != place(n.owner, _ORDER):
        return f"priority {k.priority} as the next one, and {_ORDER} names {k.owner} first"
    return (
        f"priority {k.priority} as the next one, and the name of {plugins.distribution(k.owner)} is before "
        f"{plugins.distribution(n.owner)} ({_ORDER} decides otherwise)"
    )


def _place(fn: Any) -> str:
    """``module:line`` of a function."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return (
        f"{fn.__module__}:{code.co_firstlineno}" if code is not None else f"{type(fn).__module__}.{type(fn).__name__}"
    )
