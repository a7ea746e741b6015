"""What an executor is given, checked and put in order, and the arrays that simple_bind makes."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from .._core import infer, transfer
from .._core.array import Array, Storage
from .._core.context import Context
from .._core.errors import error, suggest
from .._core.graph import Node
from .._core.params import as_dtype
from .._interrupts import let_through
from ..ndarray import NDArray, empty
from ..ndarray import zeros as nd_zeros
from .passes.joint import joint
from .passes.place import group_context, states_at
from .program import infer_all

__all__ = [
    "as_lowered",
    "overlapping",
    "scattered",
    "from_buffer",
    "groups_of",
    "listed",
    "naming_memory",
    "requests",
    "simple_arrays",
]

#: So many missing arguments are named, each with the nearest names given.
_SHOWN = 10
_STYPES = {"0": "default", "1": "row_sparse", "2": "csr"}


def listed(
    given: Any, names: list[str], what: str, optional: bool, at: Callable[[str], Sequence[Context]]
) -> list[Any]:
    """Arrays given as a list or by name, in the order of the names.

    Parameters
    ----------
    given : list or dict of NDArray, or None
    names : list of str
    what : str
        The name of the argument, for errors.
    optional : bool
        Arrays may be missing.
    at : callable
        Name -> the contexts that the array may live on, the usual one first.
    """
    if given is None:
        given = [None] * len(names) if optional or not names else {}
    if isinstance(given, dict):
        missing = [n for n in names if n not in given]
        if missing and not optional:
            free = list(set(given).difference(names))
            near = ", ".join(repr(n) + suggest(n, free) for n in missing[:_SHOWN]) + f" … {len(missing)} in all" * (
                len(missing) > _SHOWN
            )
            raise error(ValueError, f"bind: {what} lacks {near}; given: {sorted(given)}")
        arrays = [given.get(n) for n in names]
    else:
        arrays = list(given)
        if len(arrays) != len(names):
            raise error(ValueError, f"bind: {what} has {len(arrays)} arrays, the symbol {len(names)}: {names}")
    for n, a in zip(names, arrays):
        if a is None and optional:
            continue
        if not isinstance(a, Array):
            raise error(TypeError, f"bind: {what} '{n}' must be an NDArray, got {type(a).__name__}")
        if a.context not in at(n):
            raise error(
                ValueError, f"bind: {what} '{n}' lives on {a.context}, the executor on {' or '.join(map(str, at(n)))}"
            )
    return arrays


def scattered(named: Mapping[Any, Any]) -> set[Any]:
    """The arrays whose elements do not lie one behind the other in C order, by name, as those of DLPack may."""
    dense = [(n, a._data) for n, a in named.items() if a.stype == "default"]
    return {n for n, d in dense if not getattr(getattr(d, "flags", None), "c_contiguous", True)}


def overlapping(named: Mapping[Any, Any], others: Iterable[Any]) -> set[Any]:
    """The arrays that have memory in common with one another or with other ones, by name; time grows with their number.

    Parameters
    ----------
    named : mapping to NDArray
        Gradients, which then cannot be written as they come, or what is read while gradients are written.
    others : iterable of NDArray
    """
    dense = [
        (n, a._data, a.context.device)
        for n, a in (*((None, a) for a in others), *named.items())
        if a.stype == "default"
    ]
    times = Counter(id(d) for _, d, _ in dense)
    views = [row for row in dense if not row[2].owns(row[1])]
    if not views and len(times) == len(dense):
        return set()
    found = set()
    host = sorted(((*_span(d), n) for n, d, _ in dense if isinstance(d, np.ndarray) and d.size), key=itemgetter(0))
    # Whatever meets one further left meets the one that reaches furthest from there.
    end, whose = 0, None
    for low, high, name in host:
        if low < end:
            found |= {name, whose}
        if high > end:
            end, whose = high, name
    for name, d, device in dense:
        # One that owns its memory can only meet views, and itself.
        if name is not None and not isinstance(d, np.ndarray):
            near = [e for _, e, where in (views if device.owns(d) else dense) if e is not d and where is device]
            if times[id(d)] > 1 or transfer.overlaps(device, d, near):
                found.add(name)
    return found - {None}


def _span(d: Any) -> tuple[int, int]:
    """The addresses that a NumPy array lies between."""
    first = d.__array_interface__["data"][0]
    steps = [(n - 1) * stride for n, stride in zip(d.shape, d.strides)]
    return first + sum(v for v in steps if v < 0), first + sum(v for v in steps if v > 0) + d.itemsize


def groups_of(group2ctx: Any) -> dict[str, Context]:
    """``group2ctx`` as contexts by group."""
    if not isinstance(group2ctx or {}, Mapping):
        raise error(
            TypeError,
            f"group2ctx must be a dict of group to Context, got a {type(group2ctx).__name__}; "
            "a list, one dict for each context of data parallelism, is for mx.mod.Module(group2ctxs=...)",
        )
    for g, c in (group2ctx or {}).items():
        if not isinstance(c, (Context, str)):
            raise error(
                TypeError,
                f"group2ctx: group '{g}' must have one Context, got {c!r}; lists, a context for each of data "
                "parallelism, are for mx.mod.Module(group2ctxs=...)",
            )
    return {g: Context(c) for g, c in (group2ctx or {}).items()}


def requests(grad_req: Any, names: list[str]) -> dict[str, str]:
    """Gradient requests by argument, from one for all, a list or a dict."""
    if isinstance(grad_req, str):
        reqs = dict.fromkeys(names, grad_req)
    elif isinstance(grad_req, dict):
        reqs = {n: grad_req.get(n, "null") for n in names}
    else:
        if len(grad_req) != len(names):
            raise error(ValueError, f"bind: {len(grad_req)} grad_reqs for {len(names)} arguments")
        reqs = dict(zip(names, grad_req))
    for n, r in reqs.items():
        if r not in ("write", "add", "null"):
            raise error(ValueError, f"bind: grad_req of '{n}' must be 'write', 'add' or 'null', got {r!r}")
    return reqs


def simple_arrays(
    symbol: Any,
    ctx: Context,
    reqs: Mapping[str, str],
    type_dict: Mapping[str, Any],
    shapes: Mapping[str, Any],
    groups: Mapping[str, Context],
    stype_dict: Mapping[str, str],
    shared_exec: Any,
    shared_buffer: dict[str, Any] | None,
    shared_names: Sequence[str],
) -> tuple[list[Any], list[Any], list[Any]]:
    """New arrays for arguments, gradients and auxiliary states of a symbol, or shared ones.

    Parameters
    ----------
    shared_exec : Executor or None
        Arguments in `shared_names` and auxiliary states of equal shape are its arrays, gradients included.
    shared_buffer : dict of str to NDArray, optional
        Arrays that other arguments may be views of, by name; grows where one is too small.
    """
    from ..symbol.inference import all_types, infer_heads, named, unknown_dims, variables

    heads = symbol._heads
    found = infer_heads(heads, "shape", named(heads, (), shapes, unknown_dims))
    types = all_types(heads, named(heads, (), type_dict, as_dtype))
    args_, aux_ = variables(heads)
    open_ = [n.name for n in (*args_, *aux_) if not infer.known(found.get((n, 0)))]
    if open_:
        raise error(
            ValueError,
            f"simple_bind: the shapes of {open_} cannot be inferred from "
            f"{ {k: tuple(v) for k, v in shapes.items()} }; give them too",
        )
    stypes = {
        n.name: stype_dict.get(n.name) or _STYPES.get(n.attrs.get("__storage_type__", "0"), "default") for n in args_
    }
    kinds: dict[str, str] = {}
    if any(r != "null" for r in reqs.values()):
        kinds = _grad_stypes(heads, args_, reqs, found, types, stypes)

    written = states_at(heads, ctx, groups)

    def make(n: Any, old: Any, label: str, stype: str = "default") -> Any:
        shape, dtype = found[n, 0], types[n, 0]
        where = written.get(n.name) or group_context(n, ctx, groups)
        if (
            old is not None
            and (label == "aux" or n.name in shared_names)
            and tuple(old.shape) == shape
            and old.dtype == dtype
        ):
            return old
        with naming_memory(f"{_LABELS[label]} '{n.name}'"):
            if shared_buffer is None or stype != "default" or label == "aux" or n.name in shared_names:
                return nd_zeros(shape, ctx=where, dtype=dtype, stype=stype)
            key = (label, n.name) if label == "grad" else n.name  # an input may have any name
            return from_buffer(shared_buffer, key, shape, dtype, where)

    old_args, old_grads, old_aux = (
        ({}, {}, {}) if shared_exec is None else (shared_exec.arg_dict, shared_exec.grad_dict, shared_exec.aux_dict)
    )
    args = [make(n, old_args.get(n.name), "arg", stypes[n.name]) for n in args_]
    grads = [
        None if reqs[n.name] == "null" else make(n, old_grads.get(n.name), "grad", kinds.get(n.name, "default"))
        for n in args_
    ]
    return args, grads, [make(n, old_aux.get(n.name), "aux") for n in aux_]


_LABELS = {"arg": "argument", "grad": "the gradient of", "aux": "auxiliary state"}


def as_lowered(g: Any) -> Any:
    """A head gradient as programs are lowered for it: dense, which one that comes from ``sparse.dot`` is not."""
    return g if g.stype == "default" else g.tostype("default")


@contextlib.contextmanager
def naming_memory(what: str) -> Iterator[None]:
    """Say of what an array is where there is no memory for it."""
    try:
        yield
    except MemoryError as e:
        raise error(MemoryError, f"no memory for {what}: {e}") from e


def from_buffer(
    buffer: dict[Any, Any], name: Any, shape: tuple[int, ...], dtype: Any, ctx: Context, fill: bool = True
) -> Any:
    """A view of a shared array, which is made anew if it is too small, of zeros unless `fill` is false."""
    size = int(np.prod(shape, dtype=np.int64))
    old = buffer.get(name)
    if old is None or old.size < size or old.dtype != dtype or old.context is not ctx:
        buffer[name] = old = nd_zeros(shape, ctx=ctx, dtype=dtype) if fill else empty(shape, ctx=ctx, dtype=dtype)
    if tuple(old.shape) == shape:
        return old
    return NDArray(
        old._data.reshape(-1)[:size].reshape(shape), old._st if isinstance(old._st, Storage) else Storage(ctx)
    )


def _grad_stypes(
    heads: Sequence[Any],
    args: Sequence[Node],
    reqs: Mapping[str, str],
    shapes: Any,
    types: Any,
    stypes: Mapping[str, str],
) -> dict[str, str]:
    """Storage types of the gradients, from the gradient graph."""
    wanted = [n for n, r in reqs.items() if r != "null"]
    variables = ({n.name: shapes[n, 0] for n in args}, {n.name: types[n, 0] for n in args}, dict(stypes))
    try:
        grads, _, variables = joint(heads, variables, wanted, shapes, types)
        _, _, st = infer_all([g for g in grads if g is not None], *variables)
    except Exception as e:  # an operator without gradient, or with none for such dtypes: forward still works
        let_through(e)
        return {}
    return {n: st[g] for n, g in zip(wanted, grads) if g is not None}
