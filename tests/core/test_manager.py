"""Plugins: isolation, owners, rollback, switches."""

import importlib
import os
import re
import sys
import threading
import time
import types

import numpy as np
import pytest

import mxcore as mx
from mxcore import kinds
from mxcore._core import tables
from mxcore._core.manager import manager
from mxcore._core.plugins import plugins
from mxcore.cli.info import reports
from mxcore.cli.plugins import owned
from mxcore.plugin import (
    Device,
    Float,
    GraphF,
    GraphPass,
    KernelSet,
    MXNetError,
    Value,
    op,
    operators,
    rewrite,
    unwatch,
    watch,
)

from .conftest import make_plugin


def an_op(name="test_throwaway", value=1.0):
    @op(name, factor=Float(1.0))
    def body(k, p, data):
        """Scale data by factor."""
        return data * (p.factor * value)

    return body


def test_what_a_plugin_brings_appears_at_once_and_goes_with_it(plug):
    plug(mxcore_ops=[an_op()], mxcore_metrics={"test_metric": "json:loads"})
    assert mx.nd.test_throwaway(mx.nd.ones((2,)), factor=3).asnumpy().tolist() == [3, 3]
    assert kinds.lookup("metric", "test_metric")("1") == 1
    assert owned("throwaway") == {"operator": ["test_throwaway"], "metric": ["test_metric"]}
    manager.unregister("throwaway")
    with pytest.raises(AttributeError, match="test_throwaway"):
        mx.nd.test_throwaway  # noqa: B018
    with pytest.raises(MXNetError, match="no metric is named 'test_metric'"):
        kinds.lookup("metric", "test_metric")


def test_equal_names_name_both_owners_and_leave_nothing_behind(plug):
    plug("first", mxcore_ops=[an_op()])
    with pytest.raises(MXNetError, match=r"'test_throwaway' of second is already registered by first"):
        plug("second", mxcore_metrics={"test_metric": "json:loads"}, mxcore_ops=[an_op("test_other"), an_op()])
    assert "test_other" not in tables.ops.items and "test_metric" not in tables.by_kind["metric"].items
    assert "second" not in manager.origin
    assert mx.nd.test_throwaway(mx.nd.ones((1,))).asscalar() == 1


@pytest.mark.parametrize(
    "name, hides",
    [
        ("zeros", "nd.zeros"),
        ("NDArray", "nd.NDArray"),
        ("waitall", "nd.waitall"),
        ("random", "nd.random"),
        ("var", "sym.var"),
        ("_contrib_cond", "nd.contrib.cond"),
    ],
)
def test_an_operator_that_something_else_hides_is_refused(plug, name, hides):
    for brought in (an_op(name), op("test_throwaway", name)(lambda k, p, data: data)):
        with pytest.raises(
            ValueError, match=f"operator '{name}' of hidden: mx.{hides} is something else, behind which"
        ):
            plug("hidden", mxcore_ops=[brought])
        assert name not in tables.ops.items and "test_throwaway" not in tables.ops.items


def test_another_api_version_is_refused(plug):
    with pytest.raises(MXNetError, match="speaks plugin API 99; this mxcore speaks 1"):
        plug(api=99, mxcore_ops=[an_op()])
    with pytest.raises(MXNetError, match="states no API_VERSION; this mxcore speaks 1 .set API_VERSION = 1 in"):
        manager.register(types.SimpleNamespace(), "throwaway")
    assert "test_throwaway" not in tables.ops.items


@pytest.mark.parametrize("api", ["1", 1.0, True, None, np.int64(1), [1]], ids=repr)
def test_a_version_that_is_no_int_is_refused_as_what_it_is(api):
    told = re.escape(f"plugin 'throwaway' states API_VERSION = {api!r}, where an int is needed; this mxcore speaks 1 ")
    with pytest.raises(MXNetError, match=told):
        manager.register(types.SimpleNamespace(API_VERSION=api), "throwaway")
    assert "throwaway" not in manager.origin


def test_a_folder_that_hides_the_module_is_named(tmp_path, monkeypatch):
    (tmp_path / "hidden_plugin").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MXNetError, match=r"the folder '.*hidden_plugin' without an __init__.py hides the installed"):
        manager.register(importlib.import_module("hidden_plugin"), "hidden_plugin")
    assert "hidden_plugin" not in manager.origin


def test_a_kernel_that_takes_outs_says_so():
    with pytest.raises(
        TypeError, match="kernel of operator relu: it takes `outs`, as those do that are declared with out=True"
    ):

        @KernelSet("cpu").kernel("relu")
        def relu(k, p, outs, data): ...


def test_a_misspelt_hook_is_refused(plug):
    with pytest.raises(MXNetError, match=r"unknown hook mxcore_op, did you mean 'mxcore_ops'"):
        plug(mxcore_op=[an_op()])


@pytest.mark.parametrize(
    "hook, value, text",
    [
        ("mxcore_ops", [3], r"hook mxcore_ops of plugin 'throwaway' returned \[3\]: 3 is no Op object"),
        ("mxcore_ops", 3, "mxcore_ops of plugin"),
        ("mxcore_devices", ["cpu2"], "'cpu2' is no Device object"),
        ("mxcore_kernels", {"cpu": 7}, "neither a KernelSet nor"),
        ("mxcore_kernels", {5: KernelSet(5)}, "mxcore_kernels of throwaway: 5 is not the name of a device type"),
        ("mxcore_kernels", {"cpu": KernelSet("cpuu")}, "under 'cpu' stands a KernelSet for 'cpuu'"),
        ("mxcore_kernels", [1], "mxcore_kernels of plugin"),
        ("mxcore_optimizers", [1], "mxcore_optimizers of plugin"),
        ("mxcore_graph_passes", [1], "1 is no GraphPass object"),
    ],
)
def test_wrong_returns_are_explained(plug, hook, value, text):
    with pytest.raises(MXNetError, match=text):
        plug(**{hook: value})


def test_a_device_keeps_its_number(plug):
    class Other(Device):
        type, type_id = "test_other_cpu", 1

    with pytest.raises(MXNetError, match="uses type_id 1 of device 'cpu'"):
        plug(mxcore_devices=[Other()])

    class NotGpu(Device):
        type, type_id = "gpu", 77

    with pytest.raises(MXNetError, match="must keep type_id 2"):
        plug(mxcore_devices=[NotGpu()])


def test_kernels_win_by_priority_then_distribution(plug, monkeypatch):
    def kernels(value, priority=0):
        ks = KernelSet("cpu")

        @ks.kernel("test_throwaway", dtypes="f4", priority=priority)
        def kernel(k, p, data):
            return data * 0 + value

        return {"cpu": ks}

    plug("ops", mxcore_ops=[an_op()]) if "ops" not in manager.origin else plug("the_op", mxcore_ops=[an_op()])
    x = mx.nd.ones((1,))
    assert mx.nd.test_throwaway(x).asscalar() == 1
    plug("b", mxcore_kernels=kernels(20))
    assert mx.nd.test_throwaway(x).asscalar() == 20
    plug("a", mxcore_kernels=kernels(10))
    with pytest.warns(
        UserWarning,
        match=r"kernels of a \(dist-a\) and b \(dist-b\) for device 'cpu' have equal priority 0.*those of a are used",
    ):
        assert mx.nd.test_throwaway(x).asscalar() == 10
    assert mx.nd.test_throwaway(mx.nd.ones((1,), dtype="float64")).asscalar() == 1  # not its dtype: the reference
    plug("c", mxcore_kernels=kernels(30, priority=5))
    assert mx.nd.test_throwaway(x).asscalar() == 30
    manager.unregister("c")
    manager.unregister("a")
    for order in ("dist-b", "b", "other, b"):  # the order that the user gives says all, so nothing is warned about
        monkeypatch.setenv("MXCORE_KERNEL_ORDER", order)
        plug("a2", mxcore_kernels=kernels(10))
        assert mx.nd.test_throwaway(x).asscalar() == 20
        manager.unregister("a2")


def fortytwo(when=None):
    """A kernel for tanh that cannot be mistaken for it."""
    kernels = KernelSet("cpu")
    kernels.kernel("tanh", priority=500, when=when)(lambda k, p, data: data * 0 + 42)
    return {"cpu": kernels}


def test_compiled_blocks_follow_the_kernels_that_come_and_go(plug):
    x = mx.nd.ones((2,))
    x.attach_grad()
    net = mx.gluon.nn.HybridLambda("tanh")
    net.hybridize()
    plain = net(x).asnumpy().tolist()
    with mx.autograd.record():
        before = net(x)
    plug(mxcore_kernels=fortytwo())
    assert net(x).asnumpy().tolist() == mx.nd.tanh(x).asnumpy().tolist() == [42, 42]
    manager.unregister("throwaway")
    assert net(x).asnumpy().tolist() == mx.nd.tanh(x).asnumpy().tolist() == plain
    before.backward()  # by the program that it was recorded from
    assert x.grad.asnumpy() == pytest.approx(1 - plain[0] ** 2)


def test_compiled_blocks_follow_the_passes_that_come_and_go(plug):
    def to_sine(graph):
        return rewrite(
            graph,
            lambda node, inputs, fact: (
                [GraphF(node.name).sin(Value(inputs[0], GraphF(node.name))).entry] if node.op.name == "tanh" else None
            ),
        )

    x = mx.nd.ones((2,))
    net = mx.gluon.nn.HybridLambda("tanh")
    net.hybridize()
    plain = net(x).asnumpy().tolist()
    plug(mxcore_graph_passes=[GraphPass("test_to_sine", 1, to_sine)])
    assert net(x).asnumpy().tolist() == mx.nd.sin(x).asnumpy().tolist()
    manager.unregister("throwaway")
    assert net(x).asnumpy().tolist() == plain


def test_an_operator_that_somebody_holds_loses_its_kernels_too(plug):
    kernels = KernelSet("cpu")
    kernels.kernel("test_throwaway")(lambda k, p, data: data * 0 + 42)
    plug(mxcore_ops=[an_op()], mxcore_kernels={"cpu": kernels})
    held = mx.nd.test_throwaway
    assert held(mx.nd.ones((1,)), factor=3).asscalar() == 42
    manager.unregister("throwaway")
    assert held(mx.nd.ones((1,)), factor=3).asscalar() == 3


@pytest.mark.parametrize("name", ["simplify", "mirror", "fuse", "plan"])
def test_a_pass_named_like_a_stock_one_is_refused(plug, name):
    """Switching the one off would switch the other off."""
    with pytest.raises(MXNetError, match=f"graph pass '{name}': mxcore's own pass has this name.*choose another"):
        plug(mxcore_graph_passes=[GraphPass(name, 1, lambda graph: graph)])


@pytest.mark.parametrize("arguments", [("", 1, len), (5, 1, len), ("test_pass", "first", len), ("test_pass", 1, None)])
def test_a_pass_is_a_name_a_number_and_a_function(arguments):
    with pytest.raises(MXNetError, match="it takes a name, a number or None, a function, and names"):
        GraphPass(*arguments)


def test_a_kernel_that_cannot_tell_when_it_fits_is_named(plug):
    plug(mxcore_kernels=fortytwo(when=lambda p, data: data.nothing))
    with pytest.raises(
        MXNetError, match="operator tanh: `when` of its kernel by throwaway failed on .*: AttributeError"
    ):
        mx.nd.tanh(mx.nd.ones((2,)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("lock", [tables.lock, plugins.turns.lock], ids=["entering", "importing"])
def test_a_fork_waits_for_plugins_that_are_being_loaded(lock):
    """In the child nobody would load them to their end."""
    inside = threading.Event()

    def load():
        with lock:
            inside.set()
            time.sleep(0.2)

    thread = threading.Thread(target=load)
    thread.start()
    inside.wait()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if lock.acquire(timeout=5) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    thread.join()
    assert lock.acquire(timeout=5)
    lock.release()


def test_a_plugin_that_goes_in_a_hook_of_its_own_leaves_nothing(plug):
    def hook():
        manager.unregister("goes")
        return [an_op()]

    with pytest.raises(MXNetError, match="no plugin is named 'goes'"):
        plug("goes", mxcore_ops=hook)
    assert "test_throwaway" not in tables.ops.items and "goes" not in manager.origin
    plug("goes", mxcore_ops=lambda: [an_op()], mxcore_configure=lambda: manager.unregister("goes"))
    assert "test_throwaway" not in tables.ops.items and "goes" not in manager.origin


class Board(Device):
    type, type_id, xp = "test_board", 70009, np

    def count(self):
        return 1


def test_threads_that_a_plugin_does_not_concern_do_not_notice_when_it_comes_or_goes():
    manager.load()
    names = [f"test_throwaway{i}" for i in range(20)]
    brought = make_plugin(
        "guest",
        mxcore_ops=[an_op(name) for name in names],
        mxcore_graph_passes=[GraphPass(name, 1, lambda graph: graph) for name in names],
        mxcore_devices=[Board()],
    )
    seen, over = [], threading.Event()

    def no_such_device():
        with pytest.raises(MXNetError, match="no plugin provides device 'no_such"):
            mx.Context.devices.get("no_such_device")

    def net():
        block = mx.gluon.nn.HybridLambda("tanh")
        block.hybridize()
        block(mx.nd.ones((3,)))

    def work(call):
        while not over.is_set():
            try:
                call()
            except BaseException as e:
                seen.append(repr(e))
                return

    threads = [threading.Thread(target=work, args=(c,), daemon=True) for c in (no_such_device, net, operators)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for t in threads:
            t.start()
        end = time.monotonic() + 3
        while time.monotonic() < end:
            manager.register(brought, "guest")
            manager.unregister("guest")
    finally:
        over.set()
        sys.setswitchinterval(interval)
    for t in threads:
        t.join(30)
    assert not seen and not any(t.is_alive() for t in threads)


def gives_none(fn, *facts):
    return None


def raises(fn, *facts):
    raise ValueError("no tape")


def leaves(fn, *facts):
    sys.exit(3)


@pytest.mark.parametrize(
    "watcher, text",
    [
        (raises, "ValueError: no tape"),
        (gives_none, "TypeError: it gave None in the place of a function"),
        (leaves, "it ended with SystemExit: 3"),
        (lambda fn: fn, "positional argument"),
    ],
)
def test_a_watcher_that_fails_is_named(watcher, text):
    x, net = mx.nd.ones((2,)), mx.gluon.nn.HybridLambda("tanh")
    net.hybridize()
    net(x)
    calls = (lambda: mx.nd.relu(x).asnumpy(), lambda: (x + x).asnumpy(), lambda: net(x).asnumpy())
    watch(watcher)
    try:
        for call in calls:
            with pytest.raises(MXNetError, match=r"watches operator \w+: ") as e:
                call()
            assert f"{__name__}.{watcher.__qualname__}, which watches operator" in str(e.value) and text in str(e.value)
    finally:
        unwatch(watcher)
    assert [call().shape for call in calls] == [(2,)] * 3


def test_a_kernel_module_that_fails_leaves_the_reference(plug):
    plug("the_op", mxcore_ops=[an_op()])
    plug("broken", mxcore_kernels={"cpu": "no_such_module_at_all:kernels"})
    with pytest.warns(
        UserWarning,
        match="kernels of broken for device 'cpu' cannot be imported "
        "from 'no_such_module_at_all:kernels'.*reference bodies are used",
    ):
        assert mx.nd.test_throwaway(mx.nd.ones((1,))).asscalar() == 1


def test_events(plug):
    seen = []
    plug(
        mxcore_configure=lambda: seen.append("up"),
        mxcore_unconfigure=lambda: seen.append("down"),
        mxcore_report=lambda: ["a line of its own"],
    )
    assert seen == ["up"] and "a line of its own" in reports()
    manager.unregister("throwaway")
    assert seen == ["up", "down"]


def test_a_report_that_fails_leaves_the_others(plug):
    def ends():
        raise SystemExit(3)

    def begins():
        yield "what it could say"
        raise KeyError("more")

    for name, hook in {
        "first": lambda: ["one"],
        "ends": ends,
        "begins": begins,
        "word": lambda: "a word",
        "none": lambda: None,
        "no_list": lambda: 5,
    }.items():
        plug(name, mxcore_report=hook)
    lines = reports()
    assert {
        "one",
        "what it could say",
        "a word",
        "mxcore_report of plugin 'ends' failed: it ended with SystemExit: 3",
        "mxcore_report of plugin 'begins' failed: KeyError: 'more'",
    } <= {*lines}
    assert any(line.startswith("mxcore_report of plugin 'no_list' failed: TypeError") for line in lines)


def test_every_registration_hook_reaches_its_table(plug):
    from mxcore.plugin import GraphPass

    plug(
        mxcore_iterators={"TestIter": "json:loads"},
        mxcore_optimizers={"testopt": "json:loads"},
        mxcore_initializers={"testinit": "json:loads"},
        mxcore_lr_schedulers={"testsched": "json:loads"},
        mxcore_kvstores={"teststore": "json:loads"},
        mxcore_cli={"testcmd": "json:loads"},
        mxcore_graph_passes=[GraphPass("testpass", 150, lambda g: g)],
    )
    assert owned("throwaway") == {
        "iterator": ["TestIter"],
        "optimizer": ["testopt"],
        "initializer": ["testinit"],
        "lr_scheduler": ["testsched"],
        "kvstore": ["teststore"],
        "cli": ["testcmd"],
        "graph_pass": ["testpass"],
    }


def test_user_registration_replaces_with_a_warning():
    kinds.register("metric", "test_user_metric", int)
    with pytest.warns(UserWarning, match="metric 'test_user_metric' of user code replaces the one of user code"):
        kinds.register("metric", "test_user_metric", float)
    assert kinds.lookup("metric", "test_user_metric") is float
    tables.drop_owner(tables.USER)


@pytest.fixture
def site(folder):
    """Installed plugins: one that raises, one that is fine, one that repeats a name, one of another API."""
    good = """
        from mxcore.plugin import op, hookimpl
        API_VERSION = {api}
        @op("{op}")
        def thing(k, p, data):
            "Return data."
            return data + 1
        @hookimpl
        def mxcore_ops():
            return [thing]
    """
    folder.add("p_fine", good.format(api=1, op="site_fine"))
    folder.add("p_broken", "raise ImportError('no libmagic here')")
    folder.add("p_twice", good.format(api=1, op="tanh"))
    folder.add("p_future", good.format(api=2, op="site_future"))
    return folder


def test_one_bad_plugin_does_not_stop_the_others(site):
    done = site(
        "import mxcore as mx; print(mx.nd.site_fine(mx.nd.ones((1,))).asscalar())\n"
        "try: mx.nd.site_future\nexcept AttributeError as e: print(e)\n"
        "try: mx.gpu().device\nexcept mx.MXNetError as e: print(e)"
    )
    assert done.stdout.startswith("2.0\n"), done.stderr
    assert "p_broken' failed to load: ImportError: no libmagic here" in done.stdout
    for text in (
        "plugin 'p_broken' of p_broken 1.0 was not loaded: ImportError: no libmagic here",
        "'tanh' of p_twice is already registered by ops",
        "'p_future' speaks plugin API 2",
    ):
        assert done.stderr.count(text) == 1, done.stderr


def test_switches(site):
    code = (
        "from mxcore._core.manager import manager; manager.load(); print(sorted(n "
        "for n in manager.origin if n[:2] == 'p_'), 'ops' in manager.origin, 'cpu_numba' in manager.origin)"
    )
    quiet = {"PYTHONWARNINGS": "ignore"}
    assert site(code, MXCORE_PLUGINS="p_fine", **quiet).stdout == "['p_fine'] True True\n"
    assert site(code, MXCORE_PLUGINS="", **quiet).stdout == "[] False False\n"
    assert site(code, MXCORE_DISABLE_PLUGINS="p_fine", **quiet).stdout == "[] True True\n"
    assert site(code, MXCORE_PLUGINS="mxcore", **quiet).stdout == "[] True True\n"
    assert (
        site(code, MXCORE_PLUGINS="p_fine", MXCORE_DISABLE_PLUGINS="cpu_numba", **quiet).stdout
        == "['p_fine'] True False\n"
    )
    strict = site(code, MXCORE_STRICT_PLUGINS="1", **quiet)
    assert strict.returncode != 0 and "no libmagic here" in strict.stderr


@pytest.mark.parametrize("how", ["raise SystemExit(3)", "import sys; sys.exit('bye')", "raise GeneratorExit"])
def test_a_plugin_that_ends_the_process_does_not(site, tmp_path, how):
    (tmp_path / "p_broken.py").write_text(how)
    code = "import mxcore as mx; print(mx.nd.site_fine(mx.nd.ones((1,))).asscalar())"
    done = site(code)
    assert (done.returncode, done.stdout) == (0, "2.0\n"), done.stderr
    assert "plugin 'p_broken' of p_broken 1.0 was not loaded: it ended with" in done.stderr
    strict = site(code, MXCORE_STRICT_PLUGINS="1")
    assert strict.returncode == 1 and "MXNetRuntimeError: it ended with" in strict.stderr


def test_ctrl_c_in_a_plugin_is_the_users(site, tmp_path):
    (tmp_path / "p_broken.py").write_text("raise KeyboardInterrupt")
    assert "KeyboardInterrupt" in site("import mxcore as mx; mx.nd.ones((1,))").stderr


def test_hooks_and_kernel_modules_that_end_the_process(plug, tmp_path, monkeypatch):
    def leave():
        raise SystemExit(3)

    with pytest.raises(SystemExit):  # registering by hand is the caller's own code
        plug("hooked", mxcore_ops=leave)
    with pytest.warns(UserWarning, match="mxcore_configure of plugin 'up' failed: it ended with SystemExit"):
        plug("up", mxcore_configure=leave)
    (tmp_path / "kernels_that_leave.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    plug("the_op", mxcore_ops=[an_op()])
    plug(
        "broken",
        mxcore_kernels={"cpu": "kernels_that_leave:kernels"},
        mxcore_metrics={"leaves": "kernels_that_leave:x"},
    )
    with pytest.warns(
        UserWarning,
        match="kernels of broken for device 'cpu' cannot be imported "
        "from 'kernels_that_leave:kernels': it ended with SystemExit",
    ):
        assert mx.nd.test_throwaway(mx.nd.ones((1,))).asscalar() == 1
    with pytest.raises(
        ImportError,
        match="metric 'leaves' of plugin 'broken' cannot be imported "
        "from 'kernels_that_leave:x': it ended with SystemExit",
    ):
        kinds.lookup("metric", "leaves")


def test_the_switches_are_named_where_something_is_missing(site):
    none = site("import mxcore as mx\nmx.nd.ones((1,))", MXCORE_PLUGINS="")
    assert "installed but switched off by MXCORE_PLUGINS: cpu_numba, " in none.stderr
    typo = site("import mxcore as mx\nmx.nd.ones((1,))", MXCORE_PLUGINS="p_fin")
    assert (
        "plugin 'p_fin' of MXCORE_PLUGINS was not loaded: no plugin has this name, did you mean 'p_fine'" in typo.stderr
    )


def test_a_name_that_leaves_nothing_out_is_told_once(site):
    code = "import mxcore as mx\nfor _ in range(2): mx.nd.ones((1,))\nmx.sym.relu\nmx.nd.no_such_operator"
    done = site(code, MXCORE_DISABLE_PLUGINS="p_fin, p_future mxcor p_broken p_twice", PYTHONWARNINGS="always")
    told = [line for line in done.stderr.splitlines() if "MXNetWarning" in line]
    assert [line.partition("MXNetWarning: ")[2] for line in told] == [
        f"MXCORE_DISABLE_PLUGINS leaves nothing out by '{name}': no plugin has this name, did you mean '{near}'? "
        "(`mxcore plugins` shows all)"
        for name, near in {"mxcor": "mxcore", "p_fin": "p_fine"}.items()
    ]
    assert "p_fin'" not in done.stderr.partition("AttributeError")[2], "it is why nothing is missing"
    assert "leaves nothing" not in site("import mxcore as mx; mx.nd.ones((1,))", PYTHONWARNINGS="always").stderr


def test_the_command_tells_each_failure_once(site):
    for command in ("plugins", "info"):
        done = site(f"from mxcore import cli; cli.main(['{command}'])")
        assert "failed: ImportError: no libmagic here" in done.stdout and "no libmagic here" not in done.stderr


def test_warnings_about_plugins_point_at_the_users_line(site, tmp_path):
    (tmp_path / "user_script.py").write_text("import mxcore as mx\n\nx = mx.nd.ones((1,))\n")
    assert f"{tmp_path}/user_script.py:3: MXNetWarning: plugin 'p_broken'" in site("import user_script").stderr


def test_make_plugin_of_these_tests_is_a_plugin():
    assert make_plugin("m", 1, mxcore_report=lambda: ["x"]).mxcore_report() == ["x"]
