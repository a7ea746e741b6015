"""Updates of weights: of one or of many, with and without master copies, by one kernel for each rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from mxcore.plugin import Call, Params, Spec

from ..dtypes import HALVES, name_of
from ..tables import Columns, Row, Table, tables
from .common import Array, Outs, binds, kernel_for, wide

Rates = tuple[float, ...]


def _plain(p: Params, lr: float, wd: float) -> Rates:
    return lr, wd


class Rule(NamedTuple):
    """How an operator's parameters reach its kernel."""

    kernel: str
    #: Parameters that all weights have in common, in the order of the kernel's arguments.
    common: str
    #: The numbers of a weight, of its learning rate and decay.
    rates: Callable[[Params, float, float], Rates] = _plain
    #: Whether its learning rate and decay may be in the device's memory.
    preloads: bool = False


_USUAL = "rescale_grad clip_gradient"
_MOMENTS = "beta1 beta2 epsilon"
#: Update of one weight -> its rule.
RULES = {
    "sgd_update": Rule("sgd", _USUAL, preloads=True),
    "sgd_mom_update": Rule("sgd_mom", f"momentum {_USUAL}", preloads=True),
    "nag_mom_update": Rule("nag_mom", f"momentum {_USUAL}"),
    "signsgd_update": Rule("signsgd", "", lambda p, lr, wd: (1 - lr * wd, lr)),
    "signum_update": Rule("signum", f"momentum {_USUAL}", lambda p, lr, wd: (1 - lr * p.wd_lh, lr, wd)),
    "adam_update": Rule("adam", f"{_MOMENTS} {_USUAL}"),
    "rmsprop_update": Rule("rmsprop", f"gamma1 epsilon {_USUAL} clip_weights"),
    "rmspropalex_update": Rule("rmspropalex", f"gamma1 gamma2 epsilon {_USUAL} clip_weights"),
    "ftrl_update": Rule("ftrl", f"lamda1 beta {_USUAL}"),
    "ftml_update": Rule(
        "ftml", f"{_MOMENTS} rescale_grad clip_grad", lambda p, lr, wd: ((1 - p.beta1**p.t) / lr, 1 - p.beta2**p.t, wd)
    ),
    "_sparse_adagrad_update": Rule("adagrad", f"epsilon {_USUAL}"),
}
_ADAMW = f"{_MOMENTS} clip_gradient"


def _movable(mixed: bool, last: int = 0) -> Callable[..., bool]:
    """Whether all arrays but the last few are such as kernels move: alike, or behind float32 copies."""

    def fits(p: Params, *specs: Spec) -> bool:
        own, *others = (name_of(s.dtype) for s in specs[: len(specs) - last])
        if any(s.stype != "default" for s in specs):
            return False
        return own in HALVES and {*others} <= {own, "float32"} if mixed else {*others} <= {own}

    return fits


def _rows(k: Call, outs: Outs, ins: Sequence[Array], numbers: Sequence[Rates], mixed: bool, *more: Any) -> list[Row]:
    """A row for each weight: what moves, its gradient, what is behind a master copy, its states, and its of `more`."""
    n = len(numbers)
    per, kept = len(ins) // n, (len(outs) - n) // n
    rows = []
    for i in range(n):
        weight, grad, out = ins[i * per], ins[i * per + 1], outs[i]
        states, low = outs[n + i * kept : n + (i + 1) * kept], None
        if out is None:
            out = k.device.empty(weight.shape, weight.dtype, k.ctx.device_id)
        if mixed:
            *states, moving = states
            low = out
        else:
            moving = out
            if out is not weight:
                k.device.copy(weight, out)
        rows.append(Row(weight.size, numbers[i], (moving, grad, low, *states, *(m[i] for m in more))))
    return rows


def _launch(k: Call, name: str, dtype: Any, rows: Sequence[Row], *values: Any) -> None:
    run = kernel_for(k, "optimizer", name, dtype)
    for table in tables(rows):
        run.many(table, *values)


def _given(p: Params, names: str) -> list[Any]:
    return [getattr(p, n) for n in names.split()]


def _one_each(n: int, **rates: Any) -> None:
    for name, values in rates.items():
        if len(values) != n:
            raise ValueError(f"{name} must hold {n} numbers, got {len(values)}")


# -- rules by table ----------------------------------------------------------------------------------------------------
def _move(k: Call, p: Params, rule: Rule, outs: Outs, ins: Sequence[Array], rates: Any, mixed: bool, *at: Any) -> None:
    if rule.preloads and not at:
        at = ([None] * len(rates),) * 2
    numbers = [rule.rates(p, lr, wd) for lr, wd in rates]
    rows = _rows(k, outs, ins, numbers, mixed, *at)
    _launch(k, rule.kernel, ins[1].dtype, rows, mixed, *_given(p, rule.common))


def _bind_one(name: str, rule: Rule, mixed: bool) -> None:
    @binds(name, when=_movable(mixed))
    def kernel(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
        _move(k, p, rule, outs, ins, [(p.lr, p.wd)], mixed)


def _standing(rule: Rule, mixed: bool) -> Callable[..., Callable[[], None]]:
    def bind(k: Call, p: Params, ins: list[Array], outs: Outs) -> Callable[[], None]:
        n = p.num_weights
        per, kept = len(ins) // n, (len(outs) - n) // n
        run = kernel_for(k, "optimizer", rule.kernel, ins[1].dtype)
        more = [None] * (2 * rule.preloads)
        numbers = len(rule.rates(p, 1.0, 0.0))
        columns = Columns([a.size for a in ins[::per]], numbers, 2 + 1 + kept - mixed + len(more))

        def call() -> None:
            _one_each(n, lrs=p.lrs, wds=p.wds)
            weights, moving = outs[:n], [outs[n + j :: kept] for j in range(kept)]
            if not mixed:
                if not all(map(is_, weights, ins[::per])):
                    _move(k, p, rule, outs, ins, [*zip(p.lrs, p.wds)], mixed)
                    return
                arrays = [weights, ins[1::per], None, *moving, *more]
            else:
                *states, masters = moving
                arrays = [masters, ins[1::per], weights, *states, *more]
            rates = [p.lrs, p.wds] if rule.rates is _plain else [*zip(*map(rule.rates, repeat(p), p.lrs, p.wds))]
            values = _given(p, rule.common)
            for table in columns.tables(rates, arrays):
                run.many(table, mixed, *values)

        return call

    return bind


def _bind_many(name: str, rule: Rule, mixed: bool) -> None:
    @binds(name, when=_movable(mixed), standing=_standing(rule, mixed))
    def kernel(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
        _one_each(p.num_weights, lrs=p.lrs, wds=p.wds)
        _move(k, p, rule, outs, ins, [*zip(p.lrs, p.wds)], mixed)


def _bind_preloaded(name: str, rule: Rule, mixed: bool) -> None:
    @binds(name, when=_movable(mixed, 2))
    def kernel(k: Call, p: Params, outs: Outs, *data: Array) -> None:
        *ins, lrs, wds = data
        n = p.num_weights
        _one_each(n, lrs=lrs, wds=wds)
        at = kernel_for(k, "optimizer", rule.kernel, ins[1].dtype).at
        places = ([at(a, i) for i in range(n)] for a in (lrs, wds))
        _move(k, p, rule, outs, ins, [(0.0, 0.0)] * n, mixed, *places)


def _bind_adamw(name: str, mixed: bool, several: bool) -> None:
    @binds(name, when=_movable(mixed, 1))
    def kernel(k: Call, p: Params, outs: Outs, *data: Array) -> None:
        *ins, scale = data
        n, lrs, wds, etas = (p.num_weights, p.lrs, p.wds, p.etas) if several else (1, [p.lr], [p.wd], [p.eta])
        _one_each(n, lrs=lrs, wds=wds, etas=etas)
        rows = _rows(k, outs, ins, [*zip(lrs, wds, etas)], mixed)
        _launch(k, "adamw", ins[1].dtype, rows, mixed, *_given(p, _ADAMW), scale)


# -- LAMB --------------------------------------------------------------------------------------------------------------
def _corrections(p: Params, t: int) -> Rates:
    return (1 - p.beta1**t, 1 - p.beta2**t) if p.bias_correction else (1.0, 1.0)


def _bind_lamb(mixed: bool) -> None:
    mp = "mp_" * mixed

    @binds(f"{mp}lamb_update_phase1", when=_movable(mixed))
    def direction(k: Call, p: Params, outs: Outs, weight: Array, grad: Array, *states: Array) -> None:
        moving = states[-1] if mixed else weight
        out = k.device.empty(moving.shape, moving.dtype, k.ctx.device_id) if outs[0] is None else outs[0]
        row = Row(grad.size, (0.0, p.wd, *_corrections(p, p.t)), (moving, grad, None, *outs[1:3], out))
        _launch(k, "lamb_direction", grad.dtype, [row], mixed, *_given(p, f"{_MOMENTS} {_USUAL}"))

    @binds(f"{mp}lamb_update_phase2", when=_movable(mixed))
    def step(k: Call, p: Params, outs: Outs, weight: Array, g: Array, r1: Array, r2: Array, *copy: Array) -> None:
        rows = _rows(k, outs, [weight, g], [(p.lr,)], mixed)
        rows = [r._replace(arrays=(r.arrays[0], None, r.arrays[2], g)) for r in rows]
        _launch(k, "lamb_scaled", weight.dtype, rows, mixed, p.lower_bound, p.upper_bound, r1, r2)

    @binds(f"_multi_{mp}lamb_update", when=_movable(mixed))
    def many(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
        n, dtype = p.num_tensors, ins[1].dtype
        _one_each(n, learning_rates=p.learning_rates, wds=p.wds, step_count=p.step_count)
        rates = [(lr, wd, *_corrections(p, t)) for lr, wd, t in zip(p.learning_rates, p.wds, p.step_count)]
        moments, run = (kernel_for(k, "optimizer", name, dtype) for name in ("lamb_moments", "lamb_step"))
        for table in tables(_rows(k, outs, ins, rates, mixed)):
            sums = _sums(k, dtype, 2 * table.blocks)
            moments.many(table, mixed, *_given(p, f"{_MOMENTS} {_USUAL}"), sums)
            totals = _sums(k, dtype, 2 * table.rows)
            _add_up(k, dtype, table, sums, totals, 2)
            run.many(table, mixed, p.epsilon, p.lower_bound, p.upper_bound, totals)


def _sums(k: Call, dtype: Any, n: int) -> Array:
    return k.device.empty((n,), wide(dtype), k.ctx.device_id)


def _add_up(k: Call, dtype: Any, table: Table, sums: Array, totals: Any, kinds: int = 1) -> None:
    """Add up what the blocks of each row have found."""
    kernel_for(k, "optimizer", "add_up", dtype).many(table, table.blocks, sums, totals, grid=(table.rows, kinds, 1))


for _mixed in (False, True):
    _mp = "mp_" * _mixed
    for _name, _rule in RULES.items():
        if not _mixed or _name in ("sgd_update", "sgd_mom_update", "nag_mom_update"):
            _bind_one(f"{_mp}{_name}", _rule, _mixed)
        if _rule.preloads:
            _bind_preloaded(f"preloaded_multi_{_mp}{_name}", _rule, _mixed)
        if _name != "_sparse_adagrad_update":
            _bind_many(f"{'' if _rule.preloads else '_'}multi_{_mp}{_name}", _rule, _mixed)
    _bind_adamw(f"_{_mp}adamw_update", _mixed, several=False)
    _bind_adamw(f"_multi_{_mp}adamw_update", _mixed, several=True)
    _bind_lamb(_mixed)


# -- rows, LARS, zeros -------------------------------------------------------------------------------------------------
def _with_rows(p: Params, weight: Spec, *rest: Spec) -> bool:
    """Whether rows have something: the mean of nothing is NaN, which the body says."""
    return _movable(False)(p, weight, *rest) and 0 not in weight.shape[1:]


@binds("_contrib_group_adagrad_update", when=_with_rows)
def _group_adagrad(k: Call, p: Params, outs: Outs, weight: Array, grad: Array, history: Array) -> None:
    if outs[0] is not weight:
        k.device.copy(weight, outs[0])
    rows, n = len(weight), weight.size // max(len(weight), 1)
    run = kernel_for(k, "optimizer", "group_adagrad", weight.dtype)
    run.rows(rows if n else 0, n, outs[0], grad, outs[1], rows, n, *_given(p, f"lr epsilon {_USUAL}"))


@binds("multi_sum_sq", when=_movable(False))
def _multi_sum_sq(k: Call, p: Params, outs: Outs, *data: Array) -> None:
    dtype, first = data[0].dtype, 0
    squares = kernel_for(k, "optimizer", "squares", dtype)
    totals = outs[0] if dtype != np.float64 else _sums(k, dtype, len(data))
    for table in tables([Row(a.size, (0.0,), (None, a, None)) for a in data]):
        sums = _sums(k, dtype, table.blocks)
        squares.many(table, sums)
        _add_up(k, dtype, table, sums, squares.at(totals, first))
        first += table.rows
    if totals is not outs[0]:
        k.device.copy(totals, outs[0])


@binds("multi_lars")
def _multi_lars(k: Call, p: Params, outs: Outs, lrs: Array, weights: Array, grads: Array, wds: Array) -> None:
    run = kernel_for(k, "optimizer", "lars", lrs.dtype)
    run.each(lrs.size, lrs, weights, grads, wds, outs[0], lrs.size, *_given(p, "eta eps rescale_grad"))


@binds("reset_arrays", when=_movable(False))
def _reset_arrays(k: Call, p: Params, outs: Outs, *data: Array) -> None:
    _launch(k, "clear", outs[0].dtype, [Row(a.size, (), (a, None, None)) for a in outs])
