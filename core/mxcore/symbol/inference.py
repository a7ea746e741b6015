"""Shapes and dtypes of symbols from those of some arguments, in both directions."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from .._core import infer
from .._core.errors import MXNetError, error, suggest
from .._core.graph import Node, topo
from .._core.params import as_dtype, literal
from .._core.state import state
from ..inference import infer_graph
from .base import Entry

__all__ = [
    "TYPE_CODES",
    "dtype_of",
    "all_types",
    "infer_heads",
    "infer_shapes",
    "infer_types",
    "named",
    "noted",
    "unknown_dims",
    "variables",
]

#: MXNet's numbers of dtypes in attributes.
TYPE_CODES = {
    0: "float32",
    1: "float64",
    2: "float16",
    3: "uint8",
    4: "int32",
    5: "int8",
    6: "int64",
    7: "bool",
    12: "bfloat16",
}

Values = dict[Any, Any]


def variables(heads: Sequence[Entry]) -> tuple[list[Node], list[Node]]:
    """(arguments, auxiliary states) in order of first use."""
    nodes = topo(heads)
    written = {
        n.inputs[i][0].name
        for n in nodes
        if n.op is not None
        for i in (*n.params._sig.aux, *n.params._sig.mutates)
        if n.inputs[i][0].op is None
    }
    found = [n for n in nodes if n.op is None]
    return [n for n in found if n.name not in written], [n for n in found if n.name in written]


# -- what users give -----------------------------------------------------------------------------------------------
def unknown_dims(shape: Any) -> tuple[int, ...] | None:
    """A shape as users give it, with -1 for unknown dimensions, None if all is unknown."""
    if isinstance(shape, numbers.Integral):
        shape = (shape,)
    if isinstance(shape, str):
        raise error(TypeError, f"a shape is a tuple of ints, got {shape!r}")
    try:
        dims = tuple(int(d) for d in shape)
    except (TypeError, ValueError, OverflowError):
        raise error(TypeError, f"a shape is a tuple of ints, got {shape!r}") from None
    if state.np_shape:
        return dims
    return tuple(-1 if d == 0 else d for d in dims) or None


def named(
    heads: Sequence[Entry],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    convert: Callable[[Any], Any],
    strict: bool = False,
) -> dict[str, Any]:
    """Name of an argument -> what was given for it; names that do not exist are an error if `strict`, else ignored."""
    arguments, aux = ([n.name for n in part] for part in variables(heads))
    if args and kwargs:
        raise error(ValueError, "give shapes or types by position or by name, not both")
    if len(args) > len(arguments):
        raise error(ValueError, f"{len(args)} shapes or types for {len(arguments)} arguments: {', '.join(arguments)}")
    found, known = {}, {*arguments, *aux}
    for k, v in zip(arguments, args) if args else kwargs.items():
        if k not in known:
            if strict:
                near = suggest(k, [*arguments, *aux])
                raise error(ValueError, f"no argument is named {k!r}{near}; there are: {', '.join([*arguments, *aux])}")
        elif v is not None:
            try:
                found[k] = convert(v)
            except (TypeError, ValueError) as e:
                raise error(type(e), f"argument '{k}': {e}") from None
    return found


def dtype_of(text: str) -> Any:
    """The dtype that ``__dtype__`` of a variable says: MXNet's number, or the name of one that has none."""
    return as_dtype(TYPE_CODES[int(text)] if text.isdigit() else text)


def noted(n: Node, what: str) -> Any:
    """The shape or dtype (`what`) that an attribute of a variable says; None if it has none.

    Raises
    ------
    MXNetError
        (also ValueError) if that cannot be read.
    """
    key = "__shape__" if what == "shape" else "__dtype__"
    text = n.attrs.get(key)
    if text is None:
        return None
    try:
        return (
            unknown_dims(literal(text.replace("L", "")))  # of Python 2
            if what == "shape"
            else dtype_of(text)
        )
    except (KeyError, TypeError, ValueError) as e:
        raise error(ValueError, f"variable '{n.name}': attribute {key}={text[:200]!r} cannot be read: {e}") from None


# -- the fixpoint --------------------------------------------------------------------------------------------------
def infer_heads(heads: Sequence[Entry], what: str, given: Mapping[str, Any]) -> Values:
    """Entry -> shape (-1 for unknown dimensions) or dtype (`what`), as far as known.

    Raises
    ------
    MXNetError
        If some contradict each other; names the node, its inputs, and where each of them was known from.
    """
    nodes = topo(heads)
    known: Values = {}
    for n in nodes:
        if n.op is None:
            value = given[n.name] if n.name in given else noted(n, what)
            if value is not None:
                known[n, 0] = value
    try:
        return infer_graph(nodes, known, what)
    except MXNetError as e:
        _explain(e, nodes, known, what, given)


def _explain(e: MXNetError, nodes: Sequence[Node], known: Values, what: str, given: Mapping[str, Any]) -> NoReturn:
    """Raise an inference's error again with the origins of what the failing node saw, found step by step."""
    rule, merge = (infer.op_shapes, infer.merge_shape) if what == "shape" else (infer.op_dtypes, infer.merge_dtype)
    value = dict(known)
    origin = {k: "was given" if k[0].name in given else f"is an attribute of '{k[0].name}'" for k in known}
    work = [n for n in nodes if n.op is not None]
    while True:
        before = dict(value)
        for n in (*work, *reversed(work)):
            outs = [(n, i) for i in range(n.n_out)]
            seen = (*n.inputs, *outs)
            try:
                new = rule(n.op, n.params, [value.get(k) for k in n.inputs], [value.get(k) for k in outs], n.name)
                for k, v in zip(seen, (*new[0], *new[1])):
                    if v is not None and (value.get(k) is None or value[k] != v):
                        value[k] = merge(value.get(k), v)
                        origin[k] = f"follows from '{n.name}'"
            except (ValueError, TypeError, IndexError):
                _raise_with_origins(e, n, outs, origin)
        if value == before:
            raise e


def _raise_with_origins(e: MXNetError, n: Node, outs: Sequence[Entry], origin: Mapping[Entry, str]) -> NoReturn:
    labels = (*n.params._sig.inputs, *n.params._sig.outputs)
    parts = []
    for label, (m, i) in zip(labels, (*n.inputs, *outs)):
        if (m, i) in origin:
            parts.append(f"{label} {f'({m.name!r}) ' if m is not n else ''}{origin[m, i]}")
    raise error(type(e), f"{e}; where from: {', '.join(parts)}" if parts else str(e)) from None


def _warn_open(what: str, open_: Sequence[str]) -> None:
    if open_:
        note = " (0 is an unknown dimension)" if what == "shapes" and not state.np_shape else ""
        warnings.warn(f"cannot decide the {what} of {', '.join(open_)}{note}; give them too", UserWarning, stacklevel=4)


def infer_shapes(heads: Sequence[Entry], args: Sequence[Any], kwargs: Mapping[str, Any], partial: bool) -> Any:
    """Shapes of (arguments, outputs, auxiliary states) as users see them."""
    value = infer_heads(heads, "shape", named(heads, args, kwargs, unknown_dims, strict=True))
    arguments, aux = variables(heads)
    parts = [(n, 0) for n in arguments], list(heads), [(n, 0) for n in aux]

    def show(e: Entry) -> Any:
        s = value.get(e)
        if state.np_shape:
            return s
        return () if s is None else tuple(0 if d == -1 else d for d in s)

    found = tuple([show(e) for e in part] for part in parts)
    if not partial and not all(infer.known(value.get(e)) for part in parts for e in part):
        _warn_open(
            "shapes", [f"{n.name} {show((n, 0))}" for n in (*arguments, *aux) if not infer.known(value.get((n, 0)))]
        )
        return None, None, None
    return found


def infer_types(heads: Sequence[Entry], args: Sequence[Any], kwargs: Mapping[str, Any], partial: bool) -> Any:
    """NumPy types of (arguments, outputs, auxiliary states), None where unknown."""
    value = infer_heads(heads, "dtype", named(heads, args, kwargs, as_dtype, strict=True))
    arguments, aux = variables(heads)
    parts = [(n, 0) for n in arguments], list(heads), [(n, 0) for n in aux]
    found = tuple([None if value.get(e) is None else value[e].type for e in part] for part in parts)
    if not partial and any(t is None for part in found for t in part):
        _warn_open("types", [n.name for n in (*arguments, *aux) if value.get((n, 0)) is None])
        return None, None, None
    return found


def all_types(heads: Sequence[Entry], given: Mapping[str, Any]) -> Values:
    """Dtypes of all entries; variables that nothing decides become float32, one after the other."""
    nodes = topo(heads)
    value = infer_heads(heads, "dtype", given)
    for n in nodes:
        if n.op is None and value.get((n, 0)) is None:
            value[n, 0] = np.dtype(np.float32)
            value = infer_graph(nodes, value, "dtype")
    return value
