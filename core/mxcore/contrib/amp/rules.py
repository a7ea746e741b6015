"""What an operator computes in: the lists, as they are or as the caller changed them, looked up by operator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, TypeGuard

import numpy as np

from ..._core import infer, tables
from ..._core.errors import MXNetError, suggest
from ..._core.params import as_dtype
from ...base import error
from ...parameters import strings
from .lists import symbol_bf16, symbol_fp16

__all__ = ["FLOAT32", "Rules", "TARGETS", "WIDEST", "is_narrowing", "lists_of", "target_of"]

TARGETS = ("float16", "bfloat16")
FLOAT32, WIDEST = np.dtype("float32"), "widest"
_FLOATS = frozenset({"float32", *TARGETS})


def target_of(where: str, dtype: Any) -> str:
    """The name of a dtype to compute in: 'float16' or 'bfloat16'.

    Parameters
    ----------
    where : str
        Whose argument it is, for errors.
    dtype : str or dtype
    """
    try:
        name: str | None = (
            None
            if dtype is None
            else as_dtype("bfloat16" if getattr(dtype, "names", None) == ("bfloat16",) else dtype).name
        )
    except (TypeError, ValueError):
        name = None
    if name is None or name not in TARGETS:
        raise error(AssertionError, f"{where}: target_dtype must be 'float16' or 'bfloat16', got {dtype!r}")
    return name


def lists_of(target: str) -> dict[str, Any]:
    """The lists for a target: 'narrow', 'either', 'float32', 'conditional', 'widest', 'losses', 'keep'."""
    if target == "float16":
        m: Any = symbol_fp16
        return dict(
            narrow=m.FP16_FUNCS,
            either=m.FP16_FP32_FUNCS,
            float32=m.FP32_FUNCS,
            conditional=m.CONDITIONAL_FP32_FUNCS,
            widest=m.WIDEST_TYPE_CASTS,
            losses=m.LOSS_OUTPUT_FUNCTIONS,
            keep=None,
        )
    m = symbol_bf16
    return dict(
        narrow=m.BF16_FUNCS,
        either=m.BF16_FP32_FUNCS,
        float32=m.FP32_FUNCS,
        conditional=m.CONDITIONAL_FP32_FUNCS,
        widest=m.WIDEST_TYPE_CASTS,
        losses=m.LOSS_OUTPUT_FUNCTIONS,
        keep=m.BF16_USE_FP32_PARAMS,
    )


def is_narrowing(dtype: Any) -> bool:
    """Whether mixed precision casts arrays of a dtype: float32, float16 and bfloat16."""
    return dtype is not None and dtype.name in _FLOATS


class Rules:
    """For each operator the dtype that it computes in.

    Parameters
    ----------
    where : str
        Whose arguments these are, for errors.
    target_dtype : str
    narrow, float32 : list of str, optional
        Operators, in the place of the lists of the target.
    conditional : list of (str, str, list of str), optional
        (operator, parameter, values), likewise.
    names : (str, str)
        What the caller's arguments `narrow` and `float32` are called.
    """

    def __init__(
        self, where: str, target_dtype: Any, narrow: Any, float32: Any, conditional: Any, names: tuple[str, str]
    ) -> None:
        self.target = target_of(where, target_dtype)
        self.dtype = as_dtype(self.target)
        given = {
            "narrow": _checked(where, names[0], narrow),
            "float32": _checked(where, names[1], float32),
            "conditional": _checked_conditions(where, conditional),
        }
        given = {key: ops for key, ops in given.items() if ops is not None}
        lists = {**lists_of(self.target), **given}
        self._kinds: dict[str, Any] = {}
        for key, kind in (("widest", WIDEST), ("float32", FLOAT32), ("narrow", self.dtype)):
            self._enter(lists[key], kind)
        self._conditions = {_canonical(n): (param, frozenset(values)) for n, param, values in lists["conditional"]}
        if given:
            said = [(name, {*map(_canonical, lists[key])}) for name, key in zip(names, ("narrow", "float32"))]
            for (a, one), (b, other) in combinations([*said, ("conditional_fp32_ops", {*self._conditions})], 2):
                if one & other:
                    raise error(
                        AssertionError,
                        f"{where}: {', '.join(sorted(one & other))} cannot be in both {a} and {b}; "
                        f"a list that is not given is that of amp.lists for {self.target}: give it, too, without them",
                    )
        self.losses = {_canonical(n) for n in lists["losses"]}
        #: (operator, key of its parameters) -> whether it refuses inputs of different dtypes.
        self._one_dtype: dict[Any, bool] = {}
        self._keep = {_canonical(n): frozenset(filter(None, inputs)) for n, inputs in (lists["keep"] or {}).items()}

    def _enter(self, names: Iterable[str], kind: Any) -> None:
        own: list[str] = []
        others: list[str] = []
        for n in names:
            c = _canonical(n)
            (own if c == n else others).append(c)
        # What is said of the operator's own name counts before what is said of its aliases.
        self._kinds.update({c: kind for c in others if c not in self._kinds})
        self._kinds.update(dict.fromkeys(own, kind))

    def of(self, op: Any, p: Any) -> Any:
        """What a call computes in: a dtype, `WIDEST`, or None for the dtype of its inputs."""
        if op.name in self._conditions:
            param, values = self._conditions[op.name]
            return (
                FLOAT32
                if strings(op, p).get(param, str(getattr(p, param, None))) in values
                else self._kinds.get(op.name)
            )
        return self._kinds.get(op.name)

    def concerns(self, op: Any) -> bool:
        """Whether calls of an operator may need casts."""
        return (
            op.name in self._kinds
            or op.name in self._conditions
            or op.name in self.losses
            or not op.variadic
            and len(op.input_slots) > 1
        )

    def of_call(self, op: Any, p: Any) -> Any:
        """As `of`, for inputs of any dtypes: what has no rule, but takes one dtype only, computes in the widest."""
        kind = self.of(op, p)
        if kind is not None or op.variadic or len(op.input_slots) < 2:
            return kind
        key = op.name, p._key
        if key not in self._one_dtype:
            places = [i for i in self.castable(op, p) if i not in p._sig.like]
            mixed = (
                [self.dtype if i == places[0] else FLOAT32 for i in range(len(p._sig.inputs))]
                if len(places) > 1
                else []
            )
            try:
                self._one_dtype[key] = bool(mixed) and not p._sig.mutates and not infer.op_dtypes(op, p, mixed)
            except MXNetError:
                self._one_dtype[key] = True
        return WIDEST if self._one_dtype[key] else None

    def is_conditional(self, op: Any) -> bool:
        """Whether what it computes in depends on a parameter."""
        return op.name in self._conditions

    def castable(self, op: Any, p: Any) -> list[int]:
        """The places of inputs that may be cast: all but states, and those that stay float32."""
        sig, keep = p._sig, self._keep.get(op.name, ())
        fixed = {*sig.aux, *sig.mutates}
        return [i for i, name in enumerate(sig.inputs) if i not in fixed and name not in keep]


def _canonical(name: str) -> str:
    found = tables.ops.find(name)
    return name if found is None else str(found.name)


def _texts(value: Any) -> TypeGuard[Sequence[str]]:
    return isinstance(value, (list, tuple)) and all(isinstance(n, str) for n in value)


def _checked(where: str, what: str, names: Any) -> Sequence[str] | None:
    if names is None:
        return None
    if not _texts(names):
        raise error(AssertionError, f"{where}: {what} must be a list of names of operators, got {names!r}")
    known = tables.ops.names()
    listed = {
        n for target in TARGETS for key in ("narrow", "either", "float32", "widest") for n in lists_of(target)[key]
    }
    for n in names:
        if tables.ops.find(n) is None and n not in listed:
            raise error(
                AssertionError, f"{where}: {what} names {n!r}, which is no operator{suggest(n, known)}{tables.why()}"
            )
    return names


def _checked_conditions(where: str, conditions: Any) -> Any:
    if conditions is None:
        return None
    what = f"{where}: conditional_fp32_ops"
    if not isinstance(conditions, (list, tuple)):
        raise error(
            AssertionError, f"{what} must be a list of (operator, parameter, list of values), got {conditions!r}"
        )
    for c in conditions:
        if not (isinstance(c, (list, tuple)) and len(c) == 3 and _texts(c[:2]) and _texts(c[2])):
            raise error(
                AssertionError,
                f"{what} must be a list of (operator, parameter, list of values), all texts; one is {c!r}",
            )
        _checked(where, "conditional_fp32_ops", c[:1])
        op = tables.ops.find(c[0])
        if op is not None and c[1] not in op.params:
            raise error(
                AssertionError,
                f"{what}: operator {c[0]} has no parameter {c[1]!r}{suggest(c[1], [*op.params])}; "
                f"it has {', '.join(op.params)}",
            )
    return conditions
