"""Monitor, beside that of the real MXNet 1.9.1."""
import json
import logging
import pathlib

import numpy as np
import pytest

import mxcore as mx

from . import cases

GOLDEN = json.loads((pathlib.Path(__file__).resolve().parent / "golden.json").read_text())


@pytest.mark.parametrize("way", cases.WAYS)
def test_reports(way):
    found = cases.reports(mx, way)
    assert [[row[:2] for row in batch] for batch in found] == [[row[:2] for row in batch] for batch in GOLDEN[way]]
    for a, b in zip(found, GOLDEN[way]):
        np.testing.assert_allclose([row[2] for row in a], [row[2] for row in b], rtol=1e-5)


def test_inputs_and_several_statistics():
    exe = cases.executor(mx)
    mon = mx.mon.Monitor(1, stat_func=lambda x: [x.max(), x.min(axis=0)], pattern="fc1", monitor_all=True)
    mon.install(exe)
    mon.tic()
    exe.forward()
    rows = {name: text for _, name, text in mon.toc()}
    assert {"fc1_weight", "fc1_bias", "fc1_output"} <= set(rows) and all(n.startswith("fc1") for n in rows)
    weight = exe.arg_dict["fc1_weight"].asnumpy()
    assert rows["fc1_weight"] == str(weight.max()) + "\t" + str(weight.min(axis=0)) + "\t"


def test_gradients_are_seen_and_what_is_between_reports_is_not():
    exe, mon = cases.executor(mx), mx.mon.Monitor(2)
    mon.install(exe)
    mon.tic()
    exe.forward(is_train=True)
    exe.backward()
    first = mon.toc()
    more = {name for _, name, _ in first} - {name for _, name, _ in GOLDEN["plain"][0]}
    assert {"_backward_fc1_weight", "_backward_fc2_data", "_backward_a1_output"} <= more
    mon.tic()
    exe.forward(is_train=True)
    assert mon.toc() == [] and exe._monitor is None


def test_toc_print_logs(caplog):
    exe, mon = cases.executor(mx), mx.mon.Monitor(1, pattern="fc2_bias")
    mon.install(exe)
    mon.tic()
    exe.forward()
    with caplog.at_level(logging.INFO):
        mon.toc_print()
    size = np.sqrt(np.mean(exe.arg_dict["fc2_bias"].asnumpy() ** 2))
    assert caplog.messages[0].startswith(f"Batch: {1:7d} {'fc2_bias':30s} {size:.4f}"[:-1]) and len(caplog.messages) == 1


def test_several_executors_and_a_module():
    a, b = cases.executor(mx), cases.executor(mx)
    mon = mx.mon.Monitor(1, pattern="softmax_output")
    mon.install(a)
    mon.tic()
    mon.install(b)
    a.forward()
    b.forward()
    assert len(mon.toc()) == 2
    data = mx.io.NDArrayIter(np.ones((4, 4), "float32"), np.zeros(4, "float32"), 2)
    mod = mx.mod.Module(a._symbol)
    watched = []
    mon = mx.mon.Monitor(1, pattern="softmax_output", stat_func=lambda x: watched.append(x.shape) or x.mean())
    mod.fit(data, num_epoch=1, monitor=mon)
    assert watched == [(2, 2)] * 2


BAD = {
    "interval": (lambda: mx.mon.Monitor(0), ValueError, "interval must be 1 or more"),
    "pattern": (lambda: mx.mon.Monitor(1, pattern="("), ValueError, "no regular expression"),
    "no executor": (lambda: mx.mon.Monitor(1).install("mod"), TypeError, "install_monitor"),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_arguments(name):
    what, kind, text = BAD[name]
    with pytest.raises(mx.MXNetError, match=text) as e:
        what()
    assert isinstance(e.value, kind)


def test_a_statistic_that_is_none():
    exe, mon = cases.executor(mx), mx.mon.Monitor(1, stat_func=lambda x: "large", pattern="data")
    mon.install(exe)
    mon.tic()
    exe.forward()
    with pytest.raises(TypeError, match="stat_func gave str for 'data'"):
        mon.toc()
