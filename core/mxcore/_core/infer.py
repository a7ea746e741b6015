"""Shape, dtype and storage inference: rules of single operators, run and merged with what is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any, TypeGuard

import numpy as np

from .array import faces
from .errors import MXNetError, asked, describe, error, in_a_line, said
from .op import Op
from .params import Params, as_dtype

__all__ = [
    "known",
    "show",
    "merge_shape",
    "merge_dtype",
    "op_shapes",
    "op_dtypes",
    "op_stypes",
    "op_cost",
    "contradiction",
]

ShapeT = Any  # tuple of ints with -1 for unknown dimensions, or None


def known(shape: ShapeT) -> TypeGuard[tuple[int, ...]]:
    """Whether every dimension of `shape` is known: it is neither None, nor has it a -1."""
    return shape is not None and -1 not in shape


def merge_shape(a: ShapeT, b: ShapeT) -> ShapeT:
    """The shape that satisfies both `a` and `b`, unknown in part or whole; raises ValueError if none does."""
    if a is None:
        return None if b is None else tuple(b)
    if b is None or a == b:
        return tuple(a)
    if len(a) != len(b):
        raise ValueError(f"inconsistent shapes: {show(tuple(a))} and {show(tuple(b))} have different ranks")
    out = []
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y and x != -1 and y != -1:
            raise ValueError(f"inconsistent shapes: {show(tuple(a))} and {show(tuple(b))} differ in dimension {i}")
        out.append(y if x == -1 else x)
    return tuple(out)


def merge_dtype(a: Any, b: Any) -> Any:
    """The dtype that satisfies both `a` and `b`, either of which may be None; raises TypeError if they differ."""
    if a is None or b is None:
        return b if a is None else a
    if a != b:
        raise TypeError(f"inconsistent dtypes: {show(a)} and {show(b)} differ")
    return a


def _alike(merge: Callable[[Any, Any], Any], ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    one = reduce(merge, (*ins, *outs), None)
    return [one] * len(ins), [one] * len(outs)


def _apply(
    op: Op,
    p: Params,
    ins: list[Any],
    outs: list[Any] | None,
    node: str,
    rule: Callable[..., Any] | None,
    is_known: Callable[[Any], bool],
    merge: Callable[[Any, Any], Any],
    checked: Callable[[Any], Any],
) -> tuple[list[Any], list[Any]]:
    """What a rule makes of inputs and outputs; raises an error that names the operator and its inputs."""
    outs, what = [None] * op.signature(p).n_out if outs is None else outs, "shape" if is_known is known else "dtype"
    try:
        if rule is None:
            new_ins, new_outs = _alike(merge, ins, outs)
        elif rule.__code__.co_argcount == 2:  # forward only
            if not all(map(is_known, ins)):
                return ins, outs
            (new_outs,) = _lists(what, rule(p, list(ins)), False)
            new_ins = ins
        else:
            new_ins, new_outs = _lists(what, rule(p, list(ins), list(outs)), True)
        if len(new_ins) != len(ins) or len(new_outs) != len(outs):
            raise ValueError(
                f"its {what} rule gave {new_ins} for {len(ins)} input(s), {new_outs} for {len(outs)} output(s)"
            )
        return (
            [_agreed(merge, *both) for both in zip(ins, new_ins, p._sig.inputs)],
            [checked(_agreed(merge, *both)) for both in zip(outs, new_outs, p._sig.outputs)],
        )
    except Exception as e:
        plain = isinstance(e, (ValueError, TypeError, IndexError, ArithmeticError))
        if isinstance(e, MXNetError) and not plain:
            raise
        # Of others, which are no rules of mxcore's, their author wants the traceback.
        raise contradiction(op, p, ins, outs, e, node) from (None if plain else e)


def _lists(rule: str, found: Any, pair: bool) -> list[list[Any]]:
    """What a shape or dtype rule returned: a list, or a `pair` of them."""
    try:
        lists = [[*values] for values in (found if pair else [found])]
    except TypeError:
        lists = []
    shapes = [s for values in lists for s in values if s is not None] if rule == "shape" else []
    if len(lists) != 1 + pair or not all(isinstance(s, (tuple, list)) for s in shapes):
        wanted = "a pair of lists, (ins, outs)," if pair else "a list"
        raise TypeError(f"its {rule} rule returned {found!r}; {wanted} with a {rule} or None for each is needed")
    return lists


def _possible(shape: ShapeT) -> ShapeT:
    if shape and (
        not all(isinstance(d, (int, np.integer)) and d >= -1 and d.__class__ is not bool for d in shape)
        or len(shape) > 64  # NumPy's arrays have no more
        or prod(d for d in shape if d > 0) >= 2**59  # bytes are counted in an int64
    ):
        raise ValueError(f"there is no array of shape {show(shape)}")
    return shape


def _agreed(merge: Callable[[Any, Any], Any], given: Any, wanted: Any, name: str) -> Any:
    try:
        return merge(given, wanted)
    except (ValueError, TypeError) as e:
        raise type(e)(f"{name} is {show(given)} where {show(wanted)} is expected") from None


def contradiction(op: Op, p: Params, ins: Sequence[Any], outs: Sequence[Any], e: Exception, node: str) -> MXNetError:
    text, seen = said(e), ", ".join(f"{n} {show(v)}" for n, v in zip(p._sig.inputs, ins))
    for v in [v for v in ins if isinstance(v, tuple) and -1 in v]:
        text = text.replace(str(v), show(v))  # in the words of a rule
    wanted = ", ".join(show(v) for v in outs if v is not None)
    known = isinstance(e, (ValueError, TypeError, IndexError))
    kind = type(e) if known and not isinstance(e, MXNetError) else ValueError
    if not known and not isinstance(e, (ArithmeticError, MXNetError)):
        text = f"its rule failed: {in_a_line(e)}"
    return error(
        kind,
        f"operator {op.name}{node and f' of node {node!r}'}: {text}; inputs: {seen or 'none'}{asked(p)}"
        + (f"; outputs wanted: {wanted}" if wanted else ""),
    )


def show(v: Any) -> str:
    """A shape, with ``?`` for an unknown dimension, or a dtype, as errors name it."""
    return (
        "unknown"
        if v is None
        else f"({', '.join('?' if d == -1 else str(d) for d in v)}{',' * (len(v) == 1)})"
        if isinstance(v, tuple)
        else getattr(v, "name", repr(v))
    )


def op_shapes(
    op: Op, p: Params, ins: list[ShapeT], outs: list[ShapeT] | None = None, node: str = ""
) -> tuple[list[ShapeT], list[ShapeT]]:
    """Apply an operator's shape rule; raises an error that names the operator and its inputs."""
    return _apply(op, p, ins, outs, node, op.shape_rule, known, merge_shape, _possible)


def op_dtypes(
    op: Op, p: Params, ins: list[Any], outs: list[Any] | None = None, node: str = ""
) -> tuple[list[Any], list[Any]]:
    """Apply an operator's dtype rule; raises an error that names the operator, its inputs and their dtypes."""
    return _apply(
        op,
        p,
        ins,
        outs,
        node,
        op.dtype_rule,
        lambda t: t is not None,
        merge_dtype,
        lambda t: t if t is None else as_dtype(t),
    )


def op_stypes(op: Op, p: Params, ins: Sequence[str]) -> list[str]:
    """Storage types of the outputs."""
    n = op.signature(p).n_out
    if op.storage_rule is None:
        return ["default"] * n
    try:
        found = list(op.storage_rule(p, list(ins)))
        if len(found) != n or not {*found} <= {*faces}:
            raise ValueError(
                f"its storage rule returned {found}; one of {', '.join(faces)} is needed for each of {n} output(s)"
            )
        return found
    except MXNetError:
        raise
    except Exception as e:
        raise error(
            ValueError,
            f"operator {op.name}: {e if isinstance(e, ValueError) else 'its storage rule failed: ' + in_a_line(e)}; "
            f"storage types of inputs: {', '.join(ins) or 'none'}{asked(p)}",
        ) from e


def op_cost(op: Op, p: Params, ins: Sequence[Any], outs: Sequence[Any]) -> float:
    """About how many elementary steps an operator takes for inputs and outputs of such specs."""
    try:
        if op.cost_rule is not None:
            return float(op.cost_rule(p, [s.shape for s in ins], [s.shape for s in outs]))
    except Exception as e:
        raise error(
            ValueError,
            f"operator {op.name}: its cost rule failed: {in_a_line(e)}; inputs: "
            f"{describe(p._sig.inputs, ins)}{asked(p)}",
        ) from e
    return float(sum(s.size for s in (*ins, *outs) if s.shape is not None))
