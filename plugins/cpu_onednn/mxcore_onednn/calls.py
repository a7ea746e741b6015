"""Calls of plans by kernels: which arrays the library gets, and what computes where it cannot."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mxcore.plugin import Call, Graph, KernelSet, Node, Op, Params, Spec, compute_without, known

from .keeping import Kept
from .library import Refused
from .plan import Plan
from .rooms import LargeRoom

__all__ = [
    "MOST",
    "PRIORITY",
    "alike",
    "binding",
    "dtype_name",
    "floats",
    "graph_operator",
    "is_dense",
    "keeping",
    "kept",
    "kernels",
    "otherwise",
    "run",
    "shaped",
    "takes",
]

Shape = tuple[int, ...]
kernels = KernelSet("cpu")
#: Above that of kernels that are compiled here.
PRIORITY = 10
#: Arrays with more elements are left to others: offsets in the library's code may be of 32 bits.
MOST = (1 << 31) - 1
_log = logging.getLogger("mxcore")
_told: set[str] = set()


def takes(specs: Sequence[Spec], dtypes: str = "float32") -> bool:
    """Whether arrays are such as the library gets here: dense, of one of the dtypes, neither empty nor huge."""
    return all(s.stype == "default" and dtype_name(s.dtype) in dtypes.split() and 0 < s.size <= MOST for s in specs)


@functools.lru_cache(64)
def dtype_name(dtype: Any) -> str:
    """The name of a dtype, which NumPy makes anew whenever it is asked for."""
    return str(np.dtype(dtype).name)


def floats(graph: Graph, entries: Iterable[tuple[Node, int]]) -> bool:
    """Whether entries of a graph are dense arrays of float32, of known shapes."""
    return all(
        known(graph.shapes.get(e)) and graph.dtypes.get(e) == np.float32 and graph.stypes.get(e, "default") == "default"
        for e in entries
    )


def alike(*specs: Spec) -> str:
    """The dtype of arrays that the library takes, all of one dtype; empty if it does not."""
    dtype: str = dtype_name(specs[0].dtype)
    return dtype if dtype in ("float32", "bfloat16") and takes(specs, dtype) else ""


def is_dense(a: Any) -> bool:
    """Whether the library can take an array as it is."""
    return bool(a.flags.c_contiguous and a.flags.aligned)


def run(
    name: str,
    plan: Plan | None,
    ins: Sequence[Any],
    outs: Sequence[Any],
    other: Callable[[], None],
    kept: Kept | None = None,
    room: LargeRoom | None = None,
) -> bool:
    """Run a plan or, where the library cannot, another kernel; that is logged once for an operator.

    Tells whether it was the library.

    Parameters
    ----------
    name : str
        Of the operator.
    plan : Plan or None
        None if the library has refused to make one.
    ins, outs : sequence of ndarray
        Of any strides.
    other : callable
        Writes the same outputs.
    kept : Kept, optional
    room : LargeRoom, optional
    """
    try:
        if plan is None:
            raise Refused("it has no code for some shapes, or had no memory for its plan")
        places = [o if is_dense(o) else np.empty(o.shape, o.dtype) for o in outs]
        unread = plan.unread if kept is not None and kept.settled is not None else ()
        given = [a if i in unread or is_dense(a) else np.array(a, order="C") for i, a in enumerate(ins)]
        plan.run(*given, *places, kept=kept, room=room)
        for o, place in zip(outs, places):
            if o is not place:
                o[...] = place
        return True
    except Refused as e:
        if name not in _told:
            _told.add(name)
            _log.warning("operator %s runs without oneDNN: %s", name, e)
        other()
        return False


@contextlib.contextmanager
def shaped(out: Any, shape: Sequence[int]) -> Iterator[Any]:
    """An output of any strides, as a dense one of another shape that may be written within."""
    if out.flags.c_contiguous:
        yield out.reshape(shape)
        return
    place = np.empty(shape, out.dtype)
    yield place
    out[...] = place.reshape(out.shape)


def otherwise(name: str, k: Call, p: Params, outs: Sequence[Any], *ins: Any) -> Callable[[], None]:
    """A call of the kernel that is the best one beside the library's; outputs may be None."""
    return lambda: compute_without("cpu_onednn", name, k, p, outs, *ins)


def kept(k: Call, plan: Plan | None) -> Kept | None:
    """What the plan has kept of its inputs; nothing before one of them has stayed as it is from call to call."""
    if k.keep is None or plan is None or not plan.keeps:
        return None
    values = k.keep.values
    stamps = {a: k.keep.stamp(a) for a in plan.steady}
    found: Kept | None = values.get("kept")
    if found is not None and found.plan is plan and found.stamps == stamps:
        return found
    if found is None or found.plan is not plan:
        before, values["stamps"] = values.get("stamps", {}), stamps
        if not any(stamp is not None and before.get(a) == stamp for a, stamp in stamps.items()):
            return None
        found = values["kept"] = Kept(plan)
    found.stamps, found.memories = stamps, {a: k.keep.memory(a) for a in stamps}
    return found


def graph_operator(
    name: str,
    body: Callable[..., Any],
    bind: Callable[..., Callable[[], None]],
    inputs: Sequence[str],
    shapes: tuple[Sequence[Shape], Sequence[Shape]],
    flops: float,
    doc: str,
    consists: Sequence[str],
) -> Op:
    """An operator that a graph pass makes for one place of a program.

    Parameters
    ----------
    name : str
        No call by it is possible: what the operator computes is in no parameter.
    body : callable
    bind : callable
        ``(call, parameters, inputs, outputs) -> a call of a step``.
    inputs : sequence of str
    shapes : pair of sequences
        Of the inputs, and of the outputs.
    flops : float
        Operations of its products.
    doc : str
    consists : sequence of str
        What it computes, in words.
    """
    ins, outs = shapes
    names = " ".join(f"o{i}" for i in range(len(outs)))
    op = Op(name, body, inputs=" ".join(inputs), outputs=names, grad=None, doc=doc)
    op.shape(lambda p, _ins, _outs: ([*ins], [*outs]))
    op.attach(flops=lambda p, ins, outs: flops)
    op.bind, op.owner, op.consists = bind, "cpu_onednn", tuple(consists)  # type: ignore[attr-defined]
    return op


def binding(bind: Callable[..., Callable[[], None] | None]) -> Callable[[Any], Any]:
    """A kernel of which steps of programs are bound by a function, where that gives a call."""

    def mark(kernel: Any) -> Any:
        kernel.binds = bind
        return kernel

    return mark


def keeping(kernel: Callable[..., None]) -> Callable[..., None]:
    """A kernel that keeps something of its inputs, where a program tells it that they stay."""
    kernel.keeps = True  # type: ignore[attr-defined]
    return kernel
