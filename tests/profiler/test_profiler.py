"""The profiler: what it records, what it writes, and that it leaves nothing behind."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import mxcore as mx
from mxcore import _scopes
from mxcore._core import call
from mxcore._core.state import state
from mxcore.ndarray.operators import SHORT
from mxcore.profiler import control, record
from mxcore.profiler.config import Config, config
from mxcore.profiler.record import recorder

profiler = mx.profiler


@pytest.fixture
def trace(tmp_path):
    """Run a function under the profiler; gives the events of the trace."""
    file = tmp_path / "p.json"

    def run(fn, **settings):
        profiler.set_config(filename=str(file), **settings)
        profiler.set_state("run")
        try:
            fn()
        finally:
            profiler.set_state("stop")
        profiler.dump()
        return json.loads(file.read_text())["traceEvents"]

    before = vars(config).copy()
    vars(config).update(vars(Config()))  # whatever another test has left
    yield run
    profiler.stop()
    recorder.clear()
    vars(config).update(vars(Config()) | before)


def named(events, name, ph="X"):
    return [e for e in events if e["name"] == name and e["ph"] == ph]


def bound():
    x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="fc1")
    return mx.sym.SoftmaxOutput(x, name="softmax").simple_bind(mx.cpu(), data=(4, 16))


def test_eager_calls(trace):
    a, big = mx.nd.ones((4, 4)), mx.nd.ones((300, 300))

    def work():
        for _ in range(5):
            a + a
        mx.nd.relu(big)
        big * big

    a + a
    events = trace(work)
    assert len(named(events, "elemwise_add")) == 5 and len(named(events, "elemwise_mul")) == 1
    (relu,) = named(events, "relu")
    assert relu["args"] == {"shapes": "300x300", "bytes": 360000} and relu["dur"] > 0 and relu["cat"] == "operator"
    (process,) = [e for e in events if e["name"] == "process_name" and e["pid"] == relu["pid"]]
    assert process["args"]["name"] == "cpu/0"
    thread = [e for e in events if e["name"] == "thread_name" and (e["pid"], e["tid"]) == (relu["pid"], relu["tid"])]
    assert thread[0]["args"]["name"] == threading.current_thread().name


def test_programs_name_their_nodes(trace):
    exe = bound()

    def work():
        for _ in range(3):
            exe.forward(is_train=True)
            exe.backward()

    events = trace(work)
    assert len([e for e in named(events, "FullyConnected") if e["args"]["node"] == "fc1"]) == 3
    assert len([e for e in events if e["ph"] == "X" and e["cat"] == "operator"]) > 6
    net = mx.gluon.nn.Dense(3)
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((2, 5)))
    assert len(named(trace(lambda: net(mx.nd.ones((2, 5)))), "FullyConnected")) == 1


def test_results_are_the_same_and_errors_name_their_node(trace):
    exe = bound()
    exe.arg_dict["data"][:] = 1
    exe.arg_dict["fc1_weight"][:] = mx.nd.arange(128).reshape((8, 16)) / 100
    want = exe.forward()[0].asnumpy()
    found = []
    trace(lambda: found.append(exe.forward()[0].asnumpy()))
    np.testing.assert_array_equal(found[0], want)

    @mx.operator.register("profiled_failure")
    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            class Op(mx.operator.CustomOp):
                def forward(self, is_train, req, in_data, out_data, aux):
                    raise ValueError("broken on purpose")

            return Op()

    bad = mx.sym.Custom(mx.sym.exp(mx.sym.Variable("x")), op_type="profiled_failure", name="bad").simple_bind(
        mx.cpu(), x=(2,), grad_req="null"
    )
    with pytest.raises(mx.MXNetError, match="'bad'.*broken on purpose|broken on purpose"):
        trace(lambda: bad.forward()[0].asnumpy())


def test_only_what_was_asked_for(trace):
    exe, a = bound(), mx.nd.ones((4, 4))

    def work():
        mx.nd.relu(a).asnumpy()
        exe.forward()

    off = dict(profile_symbolic=False, profile_imperative=False, profile_memory=False, profile_api=False)
    kinds = {"symbolic": {"FullyConnected"}, "imperative": {"relu"}, "api": {"asnumpy"}, "memory": {"Memory: cpu/0"}}
    known = set().union(*kinds.values())
    for kind, names in kinds.items():
        found = {e["name"] for e in trace(work, **{**off, f"profile_{kind}": True})}
        assert found & known == names, kind
    assert {e["name"] for e in trace(work, **off, profile_all=True)} >= known


def test_it_leaves_nothing_behind(trace):
    a, exe = mx.nd.ones((4, 4)), bound()
    a + a
    before = call.observers, mx.nd.NDArray.asnumpy, mx.nd.NDArray.backward
    trace(lambda: (a + a, a * 2, exe.forward(), mx.nd.tanh(a)))
    assert (call.observers, mx.nd.NDArray.asnumpy, mx.nd.NDArray.backward) == before
    assert call.observers == () and not any(t.name.startswith("mxcore-profiler") for t in threading.enumerate())
    assert not any(hasattr(short.fn, "profiled") for ways in SHORT.values() for short in ways.values())
    recorder.clear()
    a + a, a * 2, exe.forward(), mx.nd.tanh(a)
    assert not recorder.events


def test_pause_and_resume(trace):
    a = mx.nd.ones((4, 4))

    def work():
        mx.nd.relu(a)
        profiler.pause()
        mx.nd.tanh(a)
        profiler.resume()
        mx.nd.sigmoid(a)

    names = {e["name"] for e in trace(work)}
    assert {"relu", "sigmoid"} <= names and "tanh" not in names


def test_objects_of_a_program(trace):
    domain = profiler.Domain("loading")
    task, frame, event = domain.new_task("decode"), domain.new_frame("batch"), profiler.Event("rest")
    counter, marker = domain.new_counter("queue", 2), domain.new_marker("epoch")

    def work():
        for thing in (task, frame, event):
            thing.start()
            time.sleep(0.002)
            thing.stop()
        task.stop()  # was not started
        nonlocal counter
        counter.set_value(5)
        counter += 3
        counter -= 1
        counter.decrement(2)
        marker.mark("thread")
        with task:
            pass

    events = trace(work)
    assert [e["cat"] for e in named(events, "decode")] == ["loading"] * 2 and named(events, "decode")[0]["dur"] >= 2000
    assert named(events, "batch")[0]["cat"] == "loading,frame" and named(events, "rest")[0]["cat"] == "event"
    assert [e["args"]["queue"] for e in named(events, "queue", "C")] == [5, 8, 7, 5]
    assert named(events, "epoch", "i")[0]["s"] == "t"
    assert [str(o) for o in (domain, task, frame, event, counter, marker)] == [
        "loading",
        "decode",
        "batch",
        "rest",
        "queue",
        "epoch",
    ]


def test_scopes(trace):
    def work():
        with profiler.scope("encoder"), profiler.scope("layer1:"):
            mx.nd.relu(mx.nd.ones(2))
        with profiler.scope("a:"), profiler.scope("b:", append_mode=False):
            pass

    events = trace(work)
    outer, inner = named(events, "encoder:")[0], named(events, "encoder:layer1:")[0]
    relu = named(events, "relu")[0]
    assert (
        outer["ts"] <= inner["ts"] <= relu["ts"]
        and relu["ts"] + relu["dur"] <= inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    )
    assert named(events, "b:") and not named(events, "a:b:")


def test_a_scope_left_by_another_thread_is_no_part_of_what_that_one_does(trace):
    def steps():
        with profiler.scope("mine"):
            yield

    def other(steps):
        with profiler.scope("other"):
            steps.close()

    def work():
        went = steps()
        next(went)
        thread = threading.Thread(target=other, args=(went,))
        thread.start()
        thread.join()

    events = trace(work)
    assert len(named(events, "other:")) == 1 and not named(events, "mine:")
    state.extra["profiler_scope"] = state.entered = None


def test_tasks_that_take_turns_in_scopes_record_their_own(trace):
    def steps(name):
        with profiler.scope(name, append_mode=False):
            yield

    def work():
        tasks = [steps(name) for name in "ab"]
        for task in tasks:
            next(task)
        for task in tasks:
            task.close()

    events = trace(work)
    assert [len(named(events, name)) for name in ("a:", "b:")] == [1, 1]
    state.extra["profiler_scope"] = None


def test_the_name_of_a_scope_is_that_of_the_thread_and_the_block():
    shared, names = profiler.scope("b"), []

    def within(around):
        with profiler.scope(around), shared, meet:
            names.append((shared.name, str(shared)))

    class Meeting:
        def __enter__(self):
            barrier.wait(10)

        def __exit__(self, *exc):
            barrier.wait(10)

    barrier, meet = threading.Barrier(2), Meeting()
    threads = [threading.Thread(target=within, args=(name,)) for name in ("a", "c")]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(names) == [("a:b:", "a:b:"), ("c:b:", "c:b:")] and shared.name == "b:"


def test_a_scope_whose_end_is_interrupted_is_recorded_once(trace):
    def interrupted(place):
        left = [place]

        def trace_(frame, event, arg):
            if frame.f_code.co_filename not in files:
                return None
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            return trace_

        scope, old = profiler.scope("once"), sys.gettrace()
        scope.__enter__()
        try:
            sys.settrace(trace_)
            scope.__exit__()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(old)
        return left[0] <= 0

    files, places = [profiler.objects.__file__, _scopes.__file__, record.__file__], []

    def work():
        while interrupted(len(places) + 2):
            places.append(1)

    found = len(named(trace(work), "once:"))
    assert len(places) // 2 < found <= len(places) + 1 and state.entered is None


def test_tables(trace):
    a, tables = mx.nd.ones((10, 10)), []

    def work():
        for _ in range(3):
            mx.nd.relu(a)
        mx.nd.tanh(a)
        profiler.Domain("d").new_counter("c", 4)
        for sort in ("total", "avg", "min", "max", "count"):
            tables.append(profiler.dumps(sort_by=sort))
        tables.append(profiler.dumps(format="json", sort_by="count", ascending=True))
        tables.append(profiler.dumps(reset=True))
        tables.append(profiler.dumps())

    trace(work, aggregate_stats=True)
    rows = [line.split() for line in tables[4].splitlines()]
    operators = rows[rows.index(["operator"]) :]
    assert operators[2][:3] == ["Name", "Total", "Count"]
    relu = next(r for r in operators if r and r[0] == "relu")
    assert relu[1] == "3" and float(relu[2]) >= float(relu[4]) >= float(relu[5]) >= float(relu[3]) > 0
    assert operators.index(relu) < next(i for i, r in enumerate(operators) if r and r[0] == "tanh")
    found = json.loads(tables[5])
    assert found["Unit"] == {"Time": "ms", "Memory": "kB"} and found["Time"]["operator"]["relu"]["Count"] == 3
    assert found["Memory"]["operator outputs"]["relu"] == {
        "Count": 3,
        "Total": pytest.approx(1.2),
        "Min": 0.4,
        "Max": 0.4,
        "Avg": pytest.approx(0.4),
    }
    assert found["Value"]["d"]["c"]["Max"] == 4 and "Memory: cpu/0" in found["Memory"]["Device Storage"]
    assert list(found["Time"]["operator"])[-1] == "relu"  # ascending by count
    assert "relu" in tables[6] and "relu" not in tables[7]


FILES = ("mxcore/profiler/observer.py", "mxcore/profiler/control.py")


@pytest.mark.filterwarnings("ignore:unclosed file", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_an_interrupt_leaves_is_put_back_the_next_time(tmp_path, interrupted):
    """Ctrl-C while the profiler is switched on or off leaves no thread, and no method exchanged."""
    plain = mx.nd.NDArray.asnumpy
    mx.profiler.set_config(filename=str(tmp_path / "p.json"), profile_all=True, continuous_dump=True)

    def both():
        mx.profiler.set_state("run")
        mx.profiler.set_state("stop")

    places = interrupted(0, FILES, both)
    assert places > 60
    for n in range(1, places):
        interrupted(n, FILES, both)
        mx.profiler.set_state("stop")
        assert mx.nd.NDArray.asnumpy is plain and not recorder.on, n
    mx.profiler.set_config(continuous_dump=False)
    mx.profiler.set_state("run")
    mx.profiler.set_state("stop")
    mx.profiler.dumps(reset=True)
    assert mx.nd.NDArray.asnumpy is plain and not recorder.on
    deadline = time.monotonic() + 10
    while any("profiler" in t.name for t in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any("profiler" in t.name for t in threading.enumerate())


def test_a_handler_switches_the_profiler_that_it_interrupts(tmp_path, handled_anywhere):
    mx.profiler.set_config(filename=str(tmp_path / "p.json"), profile_all=True)

    def cycle():
        mx.profiler.set_state("run")
        assert mx.nd.relu(mx.nd.ones((2, 2))).asnumpy().sum() == 4
        mx.profiler.set_state("stop")
        mx.profiler.dumps(reset=True)

    assert handled_anywhere(FILES, cycle, cycle) > 60
    assert mx.profiler.state() == "stop" and not recorder.on


def test_several_threads(trace):
    def work():
        threads = [
            threading.Thread(target=lambda: [mx.nd.relu(mx.nd.ones((3, 3))) for _ in range(20)], name=f"worker{i}")
            for i in range(3)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    relus = named(trace(work), "relu")
    assert len(relus) == 60


def test_written_while_it_runs(tmp_path, trace):
    file = tmp_path / "p.json"

    def work():
        deadline = time.time() + 10
        while not file.exists() and time.time() < deadline:
            mx.nd.relu(mx.nd.ones(2))
            time.sleep(0.01)
        assert named(json.loads(file.read_text())["traceEvents"], "relu")

    trace(work, continuous_dump=True, dump_period=0.05)


def test_dump_that_is_not_the_last(tmp_path, trace):
    def work():
        mx.nd.relu(mx.nd.ones(2))
        profiler.dump(finished=False)
        assert profiler.state() == "run" and named(json.loads((tmp_path / "p.json").read_text())["traceEvents"], "relu")
        mx.nd.tanh(mx.nd.ones(2))

    assert {"relu", "tanh"} <= {e["name"] for e in trace(work)}
    assert profiler.state() == "stop" and not recorder.events


@pytest.mark.parametrize(
    "setting, words",
    [({"filename": n}, "profiler: filename must be a non-empty string") for n in (None, 5, b"x", "")]
    + [
        ({"dump_period": p}, "profiler: dump_period must be seconds above 0")
        for p in (float("nan"), float("inf"), 1e300, 0)
    ],
)
def test_settings_that_cannot_be(setting, words):
    with pytest.raises(mx.base.MXNetError, match=words):
        profiler.set_config(**setting)


def test_a_file_that_cannot_be_written_loses_nothing(tmp_path, trace):
    profiler.set_config(filename=str(tmp_path / "nowhere" / "p.json"))
    profiler.start()
    mx.nd.relu(mx.nd.ones(2))
    with pytest.raises(OSError, match="nowhere.*does not exist"):
        profiler.dump()
    profiler.set_config(filename=str(tmp_path / "p.json"))
    profiler.dump()
    assert named(json.loads((tmp_path / "p.json").read_text())["traceEvents"], "relu")


def test_old_names(tmp_path, trace):
    with pytest.warns(DeprecationWarning, match="set_config"):
        profiler.profiler_set_config(mode="all", filename=str(tmp_path / "old.json"))
    with pytest.warns(DeprecationWarning, match="set_state"):
        profiler.profiler_set_state("run")
    mx.nd.relu(mx.nd.ones(2))
    with pytest.warns(DeprecationWarning, match="dump"):
        profiler.dump_profile()
    assert named(json.loads((tmp_path / "old.json").read_text())["traceEvents"], "relu") and profiler.state() == "stop"


def test_autostart(tmp_path):
    code = "import mxcore as mx; mx.nd.relu(mx.nd.ones((2, 2)))"
    env = {**os.environ, "MXNET_PROFILER_AUTOSTART": "1"}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, check=True)
    assert named(json.loads((tmp_path / "profile.json").read_text())["traceEvents"], "relu")


BAD = {
    "setting": (lambda: profiler.set_config(profile_al=True), ValueError, "no setting 'profile_al'.*profile_all"),
    "flag": (lambda: profiler.set_config(profile_all="maybe"), ValueError, "True or False, got 'maybe'"),
    "period": (lambda: profiler.set_config(dump_period=0), ValueError, "seconds above 0, got 0"),
    "state": (lambda: profiler.set_state("pause"), ValueError, "'run' or 'stop', not 'pause'"),
    "process": (lambda: profiler.set_state("run", "scheduler"), ValueError, "'worker' or 'server'"),
    "server": (lambda: profiler.pause("server"), RuntimeError, "needs a distributed KVStore"),
    "format": (lambda: profiler.dumps(format="xml"), ValueError, "'table' or 'json', not 'xml'"),
    "order": (lambda: profiler.dumps(sort_by="name"), ValueError, "one of total, avg, min, max, count, not 'name'"),
    "reset": (lambda: profiler.dumps(reset="yes"), ValueError, "reset must be True or False, not 'yes'"),
    "direction": (lambda: profiler.dumps(ascending=2), ValueError, "ascending must be True or False, not 2"),
    "mark": (lambda: profiler.Domain("d").new_marker("m").mark("all"), ValueError, "one of process"),
    "counter": (
        lambda: profiler.Domain("d").new_counter("c").set_value("many"),
        TypeError,
        "a number is needed, got 'many'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_arguments(name):
    what, kind, text = BAD[name]
    with pytest.raises(mx.MXNetError, match=text) as e:
        what()
    assert isinstance(e.value, kind)


def test_settings_change_while_it_runs(tmp_path, trace):
    a = mx.nd.ones((4, 4))

    def work():
        mx.nd.relu(a)
        profiler.set_config(profile_all=False, profile_imperative=False, filename=str(tmp_path / "q.json"))
        mx.nd.tanh(a)
        profiler.set_config(profile_imperative=True, filename=str(tmp_path / "p.json"))
        mx.nd.sigmoid(a)
        with pytest.raises(ValueError, match="no setting"):
            profiler.set_config(profile_imperativ=False)
        mx.nd.exp(a)

    events = trace(work)
    assert [len(named(events, n)) for n in ("relu", "tanh", "sigmoid", "exp")] == [1, 0, 1, 1]


def test_continuous_dump_asked_for_late(tmp_path, trace):
    def work():
        profiler.set_config(continuous_dump=True, dump_period=0.02)
        deadline = time.time() + 10
        while not (tmp_path / "p.json").exists() and time.time() < deadline:
            time.sleep(0.01)
        assert (tmp_path / "p.json").exists()

    trace(work)


def test_a_finished_trace_is_not_replaced_by_what_was_being_written(tmp_path, trace, monkeypatch):
    real, half, order = control.write_trace, threading.Event(), []

    def slowly(*given):
        name = threading.current_thread().name
        if name == "mxcore-profiler-dump":
            half.set()
            time.sleep(0.2)
        real(*given)
        order.append(name)

    monkeypatch.setattr(control, "write_trace", slowly)
    profiler.set_config(filename=str(tmp_path / "p.json"), continuous_dump=True, dump_period=0.01)
    profiler.set_state("run")
    mx.nd.relu(mx.nd.ones(2))
    assert half.wait(10)
    mx.nd.tanh(mx.nd.ones(2))
    profiler.dump()
    time.sleep(0.1)
    assert order[-1] == threading.current_thread().name and len(order) > 1
    assert named(json.loads((tmp_path / "p.json").read_text())["traceEvents"], "tanh")


def test_runs_leave_no_thread_that_writes(tmp_path, trace):
    def writers():
        return [t for t in threading.enumerate() if t.name == "mxcore-profiler-dump"]

    profiler.set_config(filename=str(tmp_path / "p.json"), continuous_dump=True, dump_period=1000)
    for switch in (profiler.stop, lambda: profiler.set_config(continuous_dump=False)):
        profiler.set_config(continuous_dump=True)
        profiler.start()
        (thread,) = writers()
        switch()
        thread.join(10)
        assert not writers()
        profiler.stop()


def test_a_trace_that_cannot_be_written_for_a_moment_is_written_later(tmp_path, trace):
    folder, deadline = tmp_path / "away", time.monotonic() + 10
    with pytest.warns(mx.base.MXNetWarning, match="cannot write .*; it is tried again"):
        profiler.set_config(filename=str(folder / "p.json"), continuous_dump=True, dump_period=0.01)
        profiler.set_state("run")
        time.sleep(0.2)
        folder.mkdir()
        while not (folder / "p.json").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert (folder / "p.json").exists()


@pytest.mark.parametrize(
    "switch, thread",
    [("run", "memory"), ("run", "dump"), ("resume", "memory"), ("set_config", "memory"), ("set_config", "dump")],
)
def test_without_room_for_a_thread_it_is_as_before(tmp_path, trace, monkeypatch, switch, thread):
    """It says what to do, and the same call is right once there is room."""
    start, late = threading.Thread.start, switch == "set_config"

    def full(new):
        if new.name == f"mxcore-profiler-{thread}":
            raise RuntimeError("can't start new thread")
        start(new)

    def ours():
        return {t.name for t in threading.enumerate() if "profiler" in t.name}

    def shown():
        return profiler.state(), recorder.on, vars(config).copy(), len(recorder.events), ours()

    call = {
        "run": lambda: profiler.set_state("run"),
        "resume": profiler.resume,
        "set_config": lambda: profiler.set_config(profile_memory=True, continuous_dump=True),
    }[switch]
    file, deadline = str(tmp_path / "p.json"), time.monotonic() + 10
    while ours() and time.monotonic() < deadline:  # of another test
        time.sleep(0.01)
    profiler.set_config(filename=file, profile_memory=not late, continuous_dump=not late, dump_period=0.02)
    if switch != "run":
        profiler.set_state("run")
    if switch == "resume":
        profiler.pause()
    before = shown()
    with monkeypatch.context() as m:
        m.setattr(threading.Thread, "start", full)
        with pytest.raises(mx.MXNetError, match="^profiler: the thread that .* be started: .*; call set_config"):
            call()
    time.sleep(0.06)  # what had been started ends
    assert shown() == before
    mx.nd.relu(mx.nd.ones(2))
    assert (len(recorder.events) > before[3]) is late
    call()
    assert ours() == {"mxcore-profiler-memory", "mxcore-profiler-dump"} and recorder.on


def test_tables_have_the_columns_of_mxnet(trace):
    def work():
        mx.nd.relu(mx.nd.ones((2, 2)))
        with profiler.Domain("Zoo").new_task("a name longer than its column"), profiler.Domain("Ant").new_task("a"):
            pass

    lines = []
    trace(lambda: (work(), lines.extend(profiler.dumps().splitlines())))
    assert lines[:3] == ["", "Profile Statistics:", "\tNote the difference in units for different entries."]
    assert (
        "Name                          Total Count        Time (ms)    Min Time (ms)    Max Time (ms)    Avg Time (ms)"
        in lines
    )
    assert "Name                          Total Count    Min Use  (kB)    Max Use  (kB)    Avg Use  (kB)" in lines
    assert lines.index("Ant") < lines.index("Zoo") < lines.index("operator")
    assert any(line.startswith("a name longer than its column" + " " * 15 + "1 ") for line in lines)
    assert any(line.startswith("relu" + " " * 36 + "1 ") for line in lines)


def test_threads_of_the_trace_have_names(trace):
    names = {
        e["args"]["name"]
        for e in trace(lambda: mx.nd.relu(mx.nd.ones(2)), profile_memory=True)
        if e["name"] == "thread_name"
    }
    assert "MainThread" in names and not any(n.startswith("thread ") for n in names)


def test_servers_are_reached_through_the_kvstore():
    sent = []

    class Store:
        def profile_servers(self, *args):
            sent.append(args)

    profiler.set_kvstore_handle(Store())
    try:
        profiler.set_config(profile_process="server", profile_all=True)
        profiler.set_state("run", "server")
        profiler.dump(True, "server")
    finally:
        profiler.set_kvstore_handle(None)
    assert (
        sent == [("set_config", {"profile_all": True}), ("set_state", "run"), ("dump", True)]
        and profiler.state() == "stop"
    )


def test_objects_leave_nothing_behind_while_the_profiler_is_off():
    from mxcore.profiler.record import Label

    before = len(Label.by_number)
    domain = mx.profiler.Domain("growth")
    for i in range(50):
        with domain.new_task(f"task{i}"):
            domain.new_counter(f"counter{i}", i)
            domain.new_marker(f"marker{i}").mark()
        with mx.profiler.scope(f"scope{i}:"):
            pass
    assert len(Label.by_number) == before


def test_other_observers_go_on(trace):
    found, a = [], mx.nd.ones((2, 3))

    def observer(fn, name, ctx, ins, outs, node):
        return lambda *args: (found.append(name), fn(*args))[1]

    call.watch(observer)
    try:
        trace(lambda: mx.nd.softmax(a), profile_imperative=True)
        mx.nd.tanh(a)
    finally:
        call.unwatch(observer)
    assert found == ["softmax", "tanh"]


FORKED = """
import os, threading
import mxcore as mx
from mxcore.profiler import control
from tests.core.test_forks import forked
counter = mx.profiler.Domain("d").new_counter("c", 1)
def held(lock):
    taken = threading.Event()
    def hold():
        with lock:
            taken.set()
            over.wait(2)
    threading.Thread(target=hold).start()
    taken.wait()
over = threading.Event()
held(control._lock)
held(counter._lock)
def in_the_child():
    import signal
    signal.alarm(20)
    mx.profiler.set_state("run")
    counter.increment()
    mx.profiler.set_state("stop")
    return "c" in mx.profiler.dumps()
print(forked(in_the_child))
over.set()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork is POSIX's")
def test_a_forked_child_profiles_whatever_threads_of_its_parent_did():
    out = subprocess.run(
        [sys.executable, "-c", FORKED], cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=100
    )
    assert out.stdout == "True\n", out.stderr
