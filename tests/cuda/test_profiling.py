"""Times of operators are those of the device; ranges of NVTX name what is launched."""

import json
import time

import pytest

import mxcore as mx
from mxcore import gluon
from mxcore_cuda import nvtx


def profiled(tmp_path, run):
    mx.profiler.set_config(profile_imperative=True, profile_symbolic=True, filename=str(tmp_path / "p.json"))
    mx.profiler.set_state("run")
    try:
        run()
    finally:
        mx.profiler.set_state("stop")
    mx.profiler.dump()
    return [e for e in json.loads((tmp_path / "p.json").read_text())["traceEvents"] if e.get("ph") == "X"]


def test_times_are_those_of_the_device(gpus, tmp_path):
    """A stream's work takes its time when somebody waits, long after the call."""
    stream = gpus[1].device.driver.stream(1)
    x = mx.nd.ones(1000, ctx=gpus[1])
    mx.nd.sort(x).wait_to_read()

    def run():
        mx.nd.relu(x)
        stream.launch(lambda: time.sleep(0.05))  # between two operators: in the time of neither
        mx.nd.sort(x)

    events = {e["name"]: e for e in profiled(tmp_path, run)}
    assert {"relu", "sort"} <= events.keys()
    assert events["relu"]["dur"] < 40e3 and events["sort"]["dur"] < 40e3  # microseconds
    assert events["sort"]["ts"] - events["relu"]["ts"] > 45e3  # they ran when the stream got there


class Fake:
    def __init__(self):
        self.open, self.seen = [], []

    def RangePush(self, text):
        self.open.append(text)
        self.seen.append(text)

    def RangePop(self):
        self.open.pop()


@pytest.fixture
def ranges(gpus, monkeypatch):
    fake = Fake()
    monkeypatch.setattr(nvtx, "_ranges", lambda: fake)
    monkeypatch.setenv("MXCORE_NVTX", "1")
    nvtx.start()
    yield fake
    nvtx.stop()


def test_ranges_name_operators_and_nodes(gpus, ranges):
    x = mx.nd.ones((2, 3), ctx=gpus[0])
    mx.nd.softmax(x)
    assert ranges.seen[-1] == "softmax" and not ranges.open
    n = len(ranges.seen)
    mx.nd.softmax(mx.nd.ones(3))
    assert len(ranges.seen) == n  # the CPU has none
    net = gluon.nn.Dense(2, in_units=3, prefix="fc_")
    net.initialize(ctx=gpus[0])
    net.hybridize()
    net(x)
    assert any(s.startswith("FullyConnected ") for s in ranges.seen) and not ranges.open


def test_a_range_ends_where_its_operator_fails(gpus, ranges):
    with pytest.raises(IndexError):
        mx.nd.ones(3, ctx=gpus[0]).take(mx.nd.array([5], ctx=gpus[0]), mode="raise")
    assert not ranges.open


def test_there_are_none_unless_told(gpus, monkeypatch):
    monkeypatch.delenv("MXCORE_NVTX", raising=False)
    fake = Fake()
    monkeypatch.setattr(nvtx, "_ranges", lambda: fake)
    nvtx.start()
    mx.nd.ones(3, ctx=gpus[0]).softmax()
    assert fake.seen == []


@pytest.mark.libraries
def test_cupy_has_what_is_called():
    found = pytest.importorskip("cupy.cuda.nvtx")
    assert callable(found.RangePush) and callable(found.RangePop)
