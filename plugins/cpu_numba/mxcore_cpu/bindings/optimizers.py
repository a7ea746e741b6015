"""Updates of weights, one by one and many in one call."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from operator import is_not
from typing import Any

import numpy as np

from mxcore.plugin import Call, HeldRows, Params, RowSparse, Spec

from ..kernels import many, optimizer, rows
from ..typing import Array, Outs
from .common import FLOATS, cpu


def _update(name: str) -> None:
    fn, _, defaults = optimizer.UPDATES[name]
    numbers = list(defaults)

    @cpu.kernel(name, dtypes=FLOATS, when=lambda p, *specs: all(s.stype == "default" for s in specs), out=True)
    def kernel(k: Call, p: Params, outs: Outs, weight: Array, grad: Array, *states: Array) -> None:
        if outs[0] is not weight:
            np.copyto(outs[0], weight)
        given = p.__dict__
        optimizer.move(fn, [outs[0], grad, *outs[1:]], [given[n] for n in numbers])

    def standing(k: Call, p: Params, ins: Sequence[Any], outs: Sequence[Any]) -> Callable[[], None]:
        """The same weight and states again and again, which are looked at once; a gradient is of one step."""
        seen, weight = [*outs], ins[0]
        if seen[0] is not weight or not all(a is not None and a.flags.c_contiguous for a in seen):
            return lambda: kernel(k, p, outs, *ins)
        line, *states = [a.reshape(-1) for a in seen]
        values = p.__dict__

        def call() -> None:
            grad = ins[1]
            if not grad.flags.c_contiguous or ins[0] is not weight or any(map(is_not, outs, seen)):
                kernel(k, p, outs, *ins)
                return
            fn(line.size, line, grad.reshape(-1), *states, *[float(values[n]) for n in numbers])

        return call

    kernel.binds = standing  # type: ignore[attr-defined]


for _name in optimizer.UPDATES:
    # AdamW takes its scale as an array, LAMB's first phase writes no weight, AdaGrad's is for sparse gradients: their
    # bodies stay.
    if not _name.startswith(("_adamw", "lamb", "_sparse")):
        _update(_name)


#: Whether an update without a parameter that says so moves nothing but the rows of a row-sparse gradient.
_LAZY = {
    "ftrl_update": lambda weight: weight.stype == "row_sparse",
    "_sparse_adagrad_update": lambda weight: True,
    "_contrib_group_adagrad_update": lambda weight: True,
}


def _moves_rows(name: str, stype: str) -> Callable[..., bool]:
    """Whether a row-sparse gradient moves its rows of arrays of a storage type, and no others."""

    def moves(p: Params, weight: Spec, grad: Spec, *states: Spec) -> bool:
        lazy = _LAZY[name](weight) if name in _LAZY else bool(p.lazy_update)  # type: ignore[no-untyped-call]
        return lazy and grad.stype == "row_sparse" and all(s.stype == stype for s in (weight, *states))

    return moves


def _update_rows(name: str) -> None:
    numbers = rows.UPDATES[name][1]

    @cpu.kernel(name, dtypes=FLOATS, when=_moves_rows(name, "default"), out=True)
    def dense(k: Call, p: Params, outs: Outs, weight: Array, grad: RowSparse, *states: Array) -> None:
        if outs[0] is not weight:
            np.copyto(outs[0], weight)
        rows.move(name, grad, outs, [getattr(p, n) for n in numbers])

    @cpu.kernel(name, dtypes=FLOATS, when=_moves_rows(name, "row_sparse"))
    def sparse(k: Call, p: Params, weight: RowSparse, grad: RowSparse, *states: RowSparse) -> list[HeldRows]:
        old = weight, *states
        held = [x if k.replaces and isinstance(x, HeldRows) else HeldRows(k.xp, x.todense(np)) for x in old]
        rows.move(name, grad, [x.memory for x in held], [getattr(p, n) for n in numbers])
        return held


for _name in rows.UPDATES:
    _update_rows(_name)


def _of_rows(p: Params, *args: Spec) -> bool:
    return all(s.stype == "row_sparse" for s in args)


@cpu.kernel("add_n", dtypes=FLOATS, when=_of_rows, priority=1, sparse=True)
def _add_rows(k: Call, p: Params, *args: RowSparse) -> RowSparse:
    return rows.total(args)


def _lamb_direction(k: Call, p: Params, outs: Outs, weight: Array, grad: Array, mean: Array, var: Array) -> None:
    fn, _, defaults = optimizer.UPDATES["lamb_update_phase1"]
    optimizer.move(fn, [outs[0], grad, mean, var, weight], [getattr(p, n) for n in defaults])


cpu.kernel("lamb_update_phase1", dtypes=FLOATS, out=True)(_lamb_direction)


# -- many weights in one call, and weights with a master copy
# -------------------------------------------------------------
def _movable(mixed: bool, extra: int = 0) -> Callable[..., bool]:
    """Whether all arrays but the last few are such as kernels move."""

    def fits(p: Params, *specs: Spec) -> bool:
        types = [s.dtype for s in specs[: len(specs) - extra]]
        if any(s.stype != "default" for s in specs):
            return False
        if mixed:
            return (
                types[0] == np.float16 and set(types) <= {np.dtype(np.float16), np.dtype(np.float32)} and many.halves()
            )
        return types[0] in (np.float32, np.float64) and len(set(types)) == 1

    return fits


def _groups(outs: Outs, data: Sequence[Array], n: int) -> list[list[Array]]:
    """For each weight its arrays, the weight itself replaced by the output, which starts as a copy of it."""
    per = len(data) // n
    groups = []
    for i in range(n):
        old, *rest = data[i * per : (i + 1) * per]
        new = np.empty_like(old) if outs[i] is None else outs[i]
        if new is not old and new.dtype != np.float16:  # that of a weight with a master copy is written only
            np.copyto(new, old)
        groups.append([new, *rest])
    return groups


def _one_each(n: int, **rates: Any) -> None:
    for name, values in rates.items():
        if len(values) != n:
            raise ValueError(f"{name} must hold {n} numbers, got {len(values)}")


def _scaled(array: Array) -> float | None:
    """A factor on gradients given as an array; None where the step is left out."""
    scale = float(array.reshape(-1)[0]) if array.size else 0.0
    return scale if math.isfinite(scale) and scale else None


def _adamw_numbers(p: Params) -> dict[str, Any]:
    return {n: getattr(p, n) for n in ("beta1", "beta2", "epsilon", "clip_gradient")}


def _still(groups: list[list[Array]]) -> None:
    """Weights that stay; one with a master copy is that copy rounded."""
    for weight, *_, last in groups:
        if weight.dtype == np.float16:
            np.copyto(weight, last, casting="same_kind")


def _standing_many(
    kernel: Callable[..., None],
    rule: str,
    more: dict[str, Any],
    k: Call,
    p: Params,
    ins: Sequence[Any],
    outs: Sequence[Any],
) -> Callable[[], None] | None:
    """The same weights and states again and again; None where arrays are not such as can be found again."""
    n = p.num_weights
    per, seen = len(ins) // n, [*outs]
    groups = [[*ins[i * per : (i + 1) * per]] for i in range(n)]
    written = [a for weight, _, *states in groups for a in (weight, *states)]
    if {*map(id, written)} != {*map(id, seen)} or not all(a.flags.c_contiguous for group in groups for a in group):
        return None
    weights, standing = ins[::per], many.Standing(rule, groups, **more)
    values = p.__dict__

    def call() -> None:
        grads = ins[1::per]
        if any(map(is_not, outs, seen)) or any(map(is_not, ins[::per], weights)) or not standing.take(grads):
            kernel(k, p, outs, *ins)
        else:
            standing.move(values)

    return call


def _move_many(name: str, rule: str, mixed: bool, last: int, **more: Any) -> None:
    def kernel(k: Call, p: Params, outs: Outs, *data: Array) -> None:
        n = p.num_weights
        arrays = data[: len(data) - last]
        lrs: Any = data[-2] if last == 2 else p.lrs
        wds: Any = data[-1] if last == 2 else p.wds
        _one_each(n, lrs=lrs, wds=wds)
        numbers = {**p.__dict__, **more}
        common = {name: numbers[name] for name in many.RULES[rule].numbers.split()}
        many.move(rule, _groups(outs[:n], arrays, n), {"lr": lrs, "wd": wds}, **common)

    if not (mixed or last):
        kernel.binds = functools.partial(_standing_many, kernel, rule, more)  # type: ignore[attr-defined]
    cpu.kernel(name, when=_movable(mixed, last), out=True)(kernel)


def _move_one(name: str, rule: str, **more: Any) -> None:
    def kernel(k: Call, p: Params, outs: Outs, *data: Array) -> None:
        numbers = {"momentum": p.momentum, **more} if rule == "sgd_mom" else {}
        many.move(
            rule,
            _groups(outs[:1], data, 1),
            {"lr": [p.lr], "wd": [p.wd]},
            rescale_grad=p.rescale_grad,
            clip_gradient=p.clip_gradient,
            **numbers,
        )

    cpu.kernel(name, when=_movable(True), out=True)(kernel)


def _move_adamw(name: str, mixed: bool, several: bool) -> None:
    def kernel(k: Call, p: Params, outs: Outs, *data: Array) -> None:
        *arrays, factor = data
        n = p.num_weights if several else 1
        lrs, wds, etas = (p.lrs, p.wds, p.etas) if several else ([p.lr], [p.wd], [p.eta])
        _one_each(n, lrs=lrs, wds=wds, etas=etas)
        groups, scale = _groups(outs[:n], arrays, n), _scaled(factor)
        if scale is None:
            _still(groups)
        else:
            many.move("adamw", groups, {"lr": lrs, "wd": wds, "eta": etas}, rescale_grad=scale, **_adamw_numbers(p))

    cpu.kernel(name, when=_movable(mixed, 1), out=True)(kernel)


def _move_lamb(name: str, mixed: bool) -> None:
    names = "beta1 beta2 epsilon bias_correction lower_bound upper_bound rescale_grad clip_gradient".split()

    def kernel(k: Call, p: Params, outs: Outs, *data: Array) -> None:
        n = p.num_tensors
        _one_each(n, learning_rates=p.learning_rates, wds=p.wds, step_count=p.step_count)
        many.lamb(
            _groups(outs[:n], data, n), p.learning_rates, p.wds, p.step_count, **{m: getattr(p, m) for m in names}
        )

    cpu.kernel(name, when=_movable(mixed), out=True)(kernel)


for _mixed in ("", "mp_"):
    for _rule, _more in (("sgd", {}), ("sgd_mom", {"nesterov": False})):
        _move_many(f"multi_{_mixed}{_rule}_update", _rule, bool(_mixed), 0, **_more)
        _move_many(f"preloaded_multi_{_mixed}{_rule}_update", _rule, bool(_mixed), 2, **_more)
    _move_many(f"_multi_{_mixed}nag_mom_update", "sgd_mom", bool(_mixed), 0, nesterov=True)
    _move_many(f"_multi_{_mixed}adam_update", "adam", bool(_mixed), 0)
    _move_adamw(f"_{_mixed}adamw_update", bool(_mixed), several=False)
    _move_adamw(f"_multi_{_mixed}adamw_update", bool(_mixed), several=True)
    _move_lamb(f"_multi_{_mixed}lamb_update", bool(_mixed))
_move_one("mp_sgd_update", "sgd")
_move_one("mp_sgd_mom_update", "sgd_mom", nesterov=False)
_move_one("mp_nag_mom_update", "sgd_mom", nesterov=True)


@cpu.kernel("multi_sum_sq", dtypes=FLOATS, out=True)
def _multi_sum_sq(k: Call, p: Params, outs: Outs, *data: Array) -> None:
    many.sums_of_squares(data, outs[0])


@cpu.kernel("reset_arrays", out=True)
def _reset_arrays(k: Call, p: Params, outs: Outs, *data: Array) -> None:
    for a in data:
        a.fill(0)
