"""Callbacks and loggers: the lines are those of MXNet 1.9.1, which tools read."""

import logging
import re
import time

import numpy as np
import pytest

import mxcore as mx
from mxcore.model import BatchEndParam

callback = mx.callback


class Metric:
    """Tells what was called."""

    def __init__(self):
        self.calls = []

    def get_name_value(self):
        self.calls.append("get")
        return [("acc", 0.5), ("ce", 1.25)]

    def reset_local(self):
        self.calls.append("reset_local")


@pytest.fixture
def lines(caplog, monkeypatch):
    """Run a callback over batches, each of which takes a second; gives the lines and what the metric was asked."""
    clock = iter(np.arange(0.0, 1000.0))
    monkeypatch.setattr(time, "time", lambda: next(clock))
    logger, level = logging.getLogger(), logging.INFO

    def run(call, batches, metric=True):
        caplog.clear()
        kept = Metric() if metric else None
        with caplog.at_level(level, logger.name):
            for epoch, nbatch in batches:
                call(BatchEndParam(epoch=epoch, nbatch=nbatch, eval_metric=kept, locals=None))
        return caplog.messages, kept and kept.calls

    return run


TWO_EPOCHS = [(0, n) for n in range(6)] + [(1, n) for n in range(4)]
VALUES = "\tacc=0.500000\tce=1.250000"


def test_speedometer(lines):
    told, calls = lines(callback.Speedometer(10, 2), TWO_EPOCHS)
    assert told == [
        f"Epoch[{e}] Batch [{b}-{b + 2}]\tSpeed: 20.00 samples/sec{VALUES}" for e, b in ((0, 0), (0, 2), (1, 0))
    ]
    assert calls == ["get", "reset_local"] * 3


def test_speedometer_over_the_whole_epoch(lines):
    told, calls = lines(callback.Speedometer(10, 2, auto_reset=False), TWO_EPOCHS)
    assert told == [f"Epoch[{e}] Batch [0-{b}]\tSpeed: 20.00 samples/sec{VALUES}" for e, b in ((0, 2), (0, 4), (1, 2))]
    assert calls == ["get"] * 3


def test_speedometer_without_a_metric(lines):
    told, _ = lines(callback.Speedometer(10, 3), TWO_EPOCHS, metric=False)
    assert told == [f"Iter[{e}] Batch [3]\tSpeed: 30.00 samples/sec" for e in (0, 1)]


def test_speedometer_when_no_time_has_passed(lines, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1.0)
    told, _ = lines(callback.Speedometer(10, 1), [(0, 0), (0, 1)], metric=False)
    assert told == ["Iter[0] Batch [1]\tSpeed: inf samples/sec"]


def test_log_train_metric(lines):
    told, calls = lines(callback.log_train_metric(2, auto_reset=True), [(3, 0), (3, 1), (3, 2)])
    assert told == [f"Iter[3] Batch[{n}] Train-{v}" for n in (0, 2) for v in ("acc=0.500000", "ce=1.250000")]
    assert calls == ["get", "reset_local"] * 2
    assert lines(callback.log_train_metric(1), [(0, 0)], metric=False) == ([], None)


def test_log_validation(lines):
    assert lines(callback.LogValidationMetricsCallback(), [(2, 9)])[0] == [
        "Epoch[2] Validation-acc=0.500000",
        "Epoch[2] Validation-ce=1.250000",
    ]
    assert lines(callback.LogValidationMetricsCallback(), [(2, 9)], metric=False)[0] == []


def test_progress_bar(capsys):
    bar = callback.ProgressBar(total=4, length=20)
    for epoch in (0, 1):
        for n in range(5):
            bar(BatchEndParam(epoch=epoch, nbatch=n, eval_metric=Metric(), locals=None))
    told = capsys.readouterr().err
    assert len(re.findall(r"100%, acc=0.5, ce=1.25", told)) >= 2 and "epoch 0" in told and "epoch 1" in told
    assert bar._bar is None


def test_checkpoints(tmp_path):
    calls = []

    class Module:
        def save_checkpoint(self, *args):
            calls.append(args)

    save = callback.module_checkpoint(Module(), "m", period=2, save_optimizer_states=True)
    for epoch in range(4):
        save(epoch)
    assert calls == [("m", 2, True), ("m", 4, True)]
    save = callback.do_checkpoint(f"{tmp_path}/n", period=3)
    for epoch in range(6):
        save(epoch, mx.sym.Variable("x"), {"w": mx.nd.full((2,), epoch)}, {"s": mx.nd.ones(1)})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["n-0003.params", "n-0006.params", "n-symbol.json"]
    assert mx.model.load_checkpoint(f"{tmp_path}/n", 6)[1]["w"].asnumpy().tolist() == [5, 5]


def test_wrong_arguments():
    with pytest.raises(ValueError, match="period must be a whole number, got 'often'"):
        callback.do_checkpoint("m", "often")
    with pytest.raises(ValueError, match="total must be the number of batches"):
        callback.ProgressBar(0)
    with pytest.raises(mx.MXNetError, match="folder '/nowhere' does not exist"):
        callback.do_checkpoint("/nowhere/m")(0, mx.sym.Variable("x"), {}, {})


def test_logger(tmp_path, capsys):
    log = mx.log.get_logger("mxcore-test-colour", level=mx.log.DEBUG)
    stream = log.handlers[0]
    log.warning("three %d", 3)
    log.debug("fine")
    assert mx.log.get_logger("mxcore-test-colour") is log and log.handlers == [stream]
    told = capsys.readouterr().err.splitlines()
    here = re.escape(__file__)
    assert re.fullmatch(rf"\x1b\[31mW\d{{4}} \d\d:\d\d:\d\d \d+ {here}:test_logger:\d+\]\x1b\[0m three 3", told[0])
    assert told[1].startswith("\x1b[34mD") and told[1].endswith("\x1b[0m fine")
    log = mx.log.get_logger("mxcore-test-file", str(tmp_path / "l.log"), level=mx.log.INFO)
    log.info("one")
    log.debug("hidden")
    log.handlers[0].close()
    assert (tmp_path / "l.log").read_text() == "one\n"
    assert mx.log.get_logger() is logging.getLogger()
    with pytest.warns(DeprecationWarning, match="get_logger"):
        mx.log.getLogger("mxcore-test-old")
