"""Learning-rate schedules against their formulas."""

import math

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore.lr_scheduler import CosineScheduler, FactorScheduler, LRScheduler, MultiFactorScheduler, PolyScheduler

UPDATES = range(60)
WARMUPS = [
    ({}, None),
    ({"warmup_steps": 6}, lambda n, top: top * n / 6),
    ({"warmup_steps": 6, "warmup_begin_lr": 0.005}, lambda n, top: 0.005 + (top - 0.005) * n / 6),
    ({"warmup_steps": 6, "warmup_begin_lr": 0.005, "warmup_mode": "constant"}, lambda n, top: 0.005),
]


def poly(n, start, power=2, end=0.0):
    t = min((n - start) / (40 - start), 1)
    return end + (0.4 - end) * (1 - t) ** power


def cosine(n, start, end=0.0):
    t = min((n - start) / (40 - start), 1)
    return end + (0.4 - end) * (1 + math.cos(math.pi * t)) / 2


SCHEDULES = {
    "factor": (FactorScheduler, {"step": 7, "factor": 0.5}, lambda n, s: 0.4 * 0.5 ** max((n - 1) // 7, 0)),
    "factor-stop": (
        FactorScheduler,
        {"step": 7, "factor": 0.1, "stop_factor_lr": 0.003},
        lambda n, start: max(0.4 * 0.1 ** max((n - 1) // 7, 0), 0.003),
    ),
    "multi": (
        MultiFactorScheduler,
        {"step": [5, 9, 30], "factor": 0.3},
        lambda n, start: 0.4 * 0.3 ** sum(n > s for s in (5, 9, 30)),
    ),
    "poly": (PolyScheduler, {"max_update": 40}, poly),
    "poly-end": (PolyScheduler, {"max_update": 40, "pwr": 1, "final_lr": 0.1}, lambda n, s: poly(n, s, 1, 0.1)),
    "cosine": (CosineScheduler, {"max_update": 40}, cosine),
    "cosine-end": (CosineScheduler, {"max_update": 40, "final_lr": 0.1}, lambda n, s: cosine(n, s, 0.1)),
}


@pytest.mark.parametrize("warmup", range(len(WARMUPS)))
@pytest.mark.parametrize("name", SCHEDULES)
def test_values(name, warmup):
    kind, arguments, formula = SCHEDULES[name]
    extra, warm = WARMUPS[warmup]
    start = extra.get("warmup_steps", 0)
    schedule = kind(base_lr=0.4, **arguments, **extra)
    expected = [warm(n, 0.4) if n < start else formula(n, start) for n in UPDATES]
    assert [schedule(n) for n in UPDATES] == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", SCHEDULES)
def test_jumps_after_loading(name):
    kind, arguments, formula = SCHEDULES[name]
    assert kind(base_lr=0.4, **arguments)(31) == pytest.approx(formula(31, 0))


@pytest.mark.parametrize("factor", [1, 0.5])
def test_a_jump_over_very_many_steps_is_no_walk(factor, caplog):
    """A file may tell of 2**62 updates."""
    caplog.set_level("INFO")
    schedule = mx.lr_scheduler.FactorScheduler(3, factor, base_lr=1.0, stop_factor_lr=1e-8)
    assert (
        schedule(2**62) == (1.0 if factor == 1 else 1e-8)
        and schedule.count == (2**62 - 1) // 3 * 3
        and len(caplog.records) < 40
    )
    schedule.step = 0
    with pytest.raises(MXNetError, match="step must be a number of at least 1"):
        schedule(2**63)


@pytest.mark.parametrize("step", [1.5, 2.0, 2.5, np.float32(3.25)])
def test_steps_need_not_be_whole(step):
    """As in MXNet: epochs times pictures over batches."""
    factor = FactorScheduler(step, 0.5, base_lr=1.0)
    several = MultiFactorScheduler([step, 2 * step], 0.5, base_lr=1.0)
    for n in range(1, 12):
        passed = math.ceil(n / step) - 1
        assert factor(n) == 0.5**passed and several(n) == 0.5 ** min(passed, 2)
    assert FactorScheduler(step, base_lr=1.0)(2**62) == 1.0


@pytest.mark.parametrize("step", [0.5, float("nan"), float("inf"), "2", True, None, -3])
def test_what_is_no_number_of_updates_is_refused(step):
    with pytest.raises(MXNetError, match="step must be a number of at least 1"):
        FactorScheduler(step)
    with pytest.raises(MXNetError, match=r"step\[1\] must be a number of at least 1"):
        MultiFactorScheduler([1, step])


def test_an_optimizer_sets_the_base_rate():
    schedule = FactorScheduler(step=2, factor=0.5, base_lr=0.3)
    rule = mx.optimizer.SGD(learning_rate=0.8, lr_scheduler=schedule)
    assert schedule.base_lr == 0.8 == rule.learning_rate
    update, weight = mx.optimizer.get_updater(rule), mx.nd.zeros(1)
    for _ in range(5):
        update(0, mx.nd.ones(1), weight)
    assert rule.learning_rate == 0.2
    assert mx.optimizer.SGD(lr_scheduler=FactorScheduler(2, base_lr=0.3)).learning_rate == 0.3


def test_create():
    assert mx.lr_scheduler.create("polyscheduler", max_update=3).max_update == 3
    with pytest.raises(MXNetError, match="cosinescheduler"):
        mx.lr_scheduler.create("cosinschedule")


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda: FactorScheduler(step=0), "step"),
        (lambda: FactorScheduler(step=1, factor=2), "factor"),
        (lambda: MultiFactorScheduler(step=[3, 3]), "increase"),
        (lambda: MultiFactorScheduler(step=[0, 3]), r"step\[0\]"),
        (lambda: MultiFactorScheduler(step=[]), "list"),
        (lambda: MultiFactorScheduler(step=[1], factor=2), "factor"),
        (lambda: PolyScheduler(max_update=0), "max_update"),
        (lambda: CosineScheduler(max_update=1.5), "max_update"),
        (lambda: LRScheduler(base_lr=0.1, warmup_begin_lr=0.2), "warmup_begin_lr"),
        (lambda: LRScheduler(warmup_steps=-1), "warmup_steps"),
        (lambda: LRScheduler(warmup_mode="slow"), "linear or constant"),
        (lambda: LRScheduler(warmup_steps=3).get_warmup_lr(3), "past the warm-up"),
        (lambda: LRScheduler()(1), "__call__"),
    ],
)
def test_errors_name_the_argument(call, word):
    with pytest.raises(MXNetError, match=word):
        call()
