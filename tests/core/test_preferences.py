"""Names that two plugins bring: an error that names both, or MXCORE_PREFER; kernels that come before others."""

import pytest

import mxcore as mx
from mxcore import cli, kinds
from mxcore._core import tables
from mxcore._core.context import Context
from mxcore._core.manager import manager
from mxcore.cli.brought import overrides, owned
from mxcore.plugin import Device, GraphPass, KernelSet, MXNetError, op


def board(name="test_board", number=90_001):
    """A device declaration."""
    return type("Board", (Device,), {"type": name, "type_id": number})()


def scaled(factor, name="test_shared"):
    @op(name)
    def body(k, p, data):
        """Scale data."""
        return data * factor

    return body


class One:
    """A class to register."""

    next = reset = None


class Two:
    """Another one."""


NAMED = {
    hook: ({"TestShared": One}, {"TestShared": Two})
    for hook in (
        "mxcore_iterators",
        "mxcore_optimizers",
        "mxcore_metrics",
        "mxcore_initializers",
        "mxcore_lr_schedulers",
        "mxcore_kvstores",
        "mxcore_cli",
    )
}
KINDS = {
    "mxcore_devices": ([board()], [board()]),
    "mxcore_ops": ([scaled(1)], [scaled(2)]),
    "mxcore_graph_passes": (
        [GraphPass("test_shared", None, lambda g: g)],
        [GraphPass("test_shared", None, lambda g: g)],
    ),
    **NAMED,
}


def entry(hook):
    """Owner and value of the name that both plugins bring."""
    for table in (tables.ops, tables.devices, *tables.by_kind.values()):
        for name in ("test_shared", "test_board", "testshared", "TestShared"):
            if name in table.items:
                return table.owners[name], table.items[name]
    return None


def given(hook, place):
    value = KINDS[hook][place]
    return value[0] if isinstance(value, list) else value["TestShared"]


@pytest.mark.parametrize("hook", KINDS)
def test_equal_names_are_an_error_that_names_both(plug, hook):
    plug("first", **{hook: KINDS[hook][0]})
    with pytest.raises(
        MXNetError, match="of second is already registered by first; MXCORE_PREFER=first or MXCORE_PREFER=second says"
    ):
        plug("second", **{hook: KINDS[hook][1]})
    assert entry(hook) == ("first", given(hook, 0)) and "second" not in manager.origin


@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")], ids=" ".join)
@pytest.mark.parametrize(
    "prefer, winner", [("first", "first"), ("second", "second"), ("other, dist-second, first", "second")]
)
@pytest.mark.parametrize("hook", KINDS)
def test_a_preference_chooses_whoever_comes_first(plug, monkeypatch, hook, prefer, winner, order):
    monkeypatch.setenv("MXCORE_PREFER", prefer)
    place = {"first": 0, "second": 1}
    for name in order:
        plug(name, **{hook: KINDS[hook][place[name]]})
    assert entry(hook) == (winner, given(hook, place[winner]))
    loser = ({*order} - {winner}).pop()
    assert any("stands behind that of " + winner in line for line in overrides(loser))
    assert any("comes before that of " + loser in line for line in overrides(winner))
    manager.unregister(winner)
    assert entry(hook) == (loser, given(hook, place[loser])), "what stood behind comes forward"
    manager.unregister(loser)
    assert entry(hook) is None


def test_a_preferred_plugin_that_fails_gives_the_name_back(plug, monkeypatch):
    monkeypatch.setenv("MXCORE_PREFER", "second")
    plug("first", mxcore_ops=[scaled(3)])
    x = mx.nd.ones((1,))
    with pytest.raises(MXNetError, match="is no Op object"):
        plug("second", mxcore_ops=[scaled(5), "not an operator"])
    assert mx.nd.test_shared(x).asscalar() == 3
    plug("second", mxcore_ops=[scaled(5)])
    assert mx.nd.test_shared(x).asscalar() == 5
    manager.unregister("second")
    assert mx.nd.test_shared(x).asscalar() == 3


def test_a_plugin_may_be_preferred_to_the_stock(plug, monkeypatch):
    with pytest.raises(MXNetError, match="operator 'relu' of mine is already registered by ops"):
        plug("mine", mxcore_ops=[scaled(7, "relu")])
    monkeypatch.setenv("MXCORE_PREFER", "mine")
    x = mx.nd.ones((1,))
    plug("mine", mxcore_ops=[scaled(7, "relu")])
    assert mx.nd.relu(x).asscalar() == 7
    manager.unregister("mine")
    assert mx.nd.relu(x).asscalar() == 1


def test_iterators_of_mx_io_can_be_preferred(plug, monkeypatch):
    stock = mx.io.ResizeIter
    with pytest.raises(MXNetError, match="iterator 'ResizeIter' of mine is already registered by stock"):
        plug("mine", mxcore_iterators={"ResizeIter": One})
    monkeypatch.setenv("MXCORE_PREFER", "mine")
    plug("mine", mxcore_iterators={"ResizeIter": One})
    assert mx.io.ResizeIter is One
    manager.unregister("mine")
    plug("mine", mxcore_iterators={"ResizeIter": "no_such_module:It"})
    assert mx.io.ResizeIter is stock, "one that cannot be imported takes nothing away"
    manager.unregister("mine")
    assert mx.io.ResizeIter is stock


def test_preferences_for_nobody_are_listed(monkeypatch, capsys):
    monkeypatch.setenv("MXCORE_PREFER", "ops, nobody")
    monkeypatch.setenv("MXCORE_KERNEL_ORDER", "mxcore, no-one")
    monkeypatch.setenv("MXCORE_DISABLE_PLUGINS", "nothing")
    assert cli.main(["plugins"]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if "neither a plugin here" in line]
    assert [line.split()[:3] for line in told] == [
        ["MXCORE_PREFER", "names", "'nobody',"],
        ["MXCORE_KERNEL_ORDER", "names", "'no-one',"],
        ["MXCORE_DISABLE_PLUGINS", "names", "'nothing',"],
    ]


def test_what_the_user_registers_comes_first_and_goes_alone(plug):
    plug("first", mxcore_metrics={"testshared": One})
    with pytest.warns(UserWarning, match="metric 'testshared' of user code replaces the one of first"):
        kinds.register("metric", "testshared", Two)
    assert kinds.lookup("metric", "testshared") is Two
    tables.drop_owner(tables.USER)
    assert kinds.lookup("metric", "testshared") is One


def test_commands_of_mxcore_have_their_names(plug, monkeypatch, capsys):
    class Info:
        help = "another info"
        add_arguments = staticmethod(lambda parser: None)
        main = staticmethod(lambda args: print("mine"))

    with pytest.raises(MXNetError, match="cli 'info' of mine is already registered by stock"):
        plug("mine", mxcore_cli={"info": Info})
    monkeypatch.setenv("MXCORE_PREFER", "mine")
    plug("mine", mxcore_cli={"info": Info})
    assert cli.main(["info"]) == 0 and capsys.readouterr().out == "mine\n"
    manager.unregister("mine")
    assert cli.main(["info"]) == 0 and "versions" in capsys.readouterr().out


def test_a_command_that_lacks_something_says_what(plug, capsys):
    plug("mine", mxcore_cli={"testcmd": One})
    assert cli.main(["testcmd"]) == 1
    assert "of plugin 'mine', which has no help and no add_arguments and no main" in capsys.readouterr().err


def test_equal_numbers_of_devices_name_both(plug):
    plug("first", mxcore_devices=[board("test_one", 90_002)])
    with pytest.raises(
        MXNetError,
        match="device 'test_two' of second uses type_id 90002 of device 'test_one' of first; files hold this number"
        ".*MXCORE_PREFER=first or MXCORE_PREFER=second says",
    ):
        plug("second", mxcore_devices=[board("test_two", 90_002)])
    manager.unregister("first")
    plug("second", mxcore_devices=[board("test_two", 90_002)])
    assert Context(90_002) is Context("test_two"), "a number that is free again belongs to its new device"


@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")], ids=" ".join)
def test_a_number_that_two_devices_want_goes_to_the_preferred(plug, monkeypatch, order):
    monkeypatch.setenv("MXCORE_PREFER", "dist-second")
    for owner in order:
        plug(owner, mxcore_devices=[board(f"test_{owner}", 90_003)], mxcore_ops=[scaled(2, f"test_op_{owner}")])
    assert Context(90_003) == Context("test_second") and tables.devices.owners["test_second"] == "second"
    assert "test_first" not in tables.devices.names() and tables.ops.find("test_op_first"), "it keeps the rest"
    with pytest.raises(
        MXNetError,
        match="no plugin provides device 'test_first': "
        "that of first has the type_id of device 'test_second', which MXCORE_PREFER",
    ):
        tables.devices.get("test_first")
    assert "device 'test_second' has type_id 90003 before 'test_first' of first" in overrides("second")
    assert "device 'test_first' is not there, for device 'test_second' of second has its type_id 90003" in overrides(
        "first"
    )
    manager.unregister("second")
    assert Context(90_003) == Context("test_first") and tables.devices.get("test_first").type_id == 90_003, (
        "what stood behind comes forward"
    )
    manager.unregister("first")
    assert not {"test_first", "test_second"} & {*tables.devices.claims} and 90_003 not in tables.devices.numbers.claims


def test_a_number_is_what_it_was_when_it_was_registered(plug):
    """A device that is changed later takes nothing along: the others can go, and its name and number are free again."""
    changed = board("test_first", 90_005)
    plug("first", mxcore_devices=[changed], mxcore_metrics={"TestGone": One})
    plug("second", mxcore_devices=[board("test_second", 90_006)])
    changed.type, changed.type_id = "test_other", 7
    manager.unregister("second")
    assert Context(90_005).device_type == "test_first" and tables.devices.owners["test_first"] == "first"
    assert overrides("first") == []
    manager.unregister("first")
    assert "test_first" not in tables.devices.claims and not {90_005, 90_006} & {*tables.devices.numbers.claims}
    assert "testgone" not in kinds.names("metric")
    plug("second", mxcore_devices=[board("test_second", 90_005)])
    assert Context(90_005) is Context("test_second")


@pytest.mark.parametrize("number", [0, 100, 2**31, "7", None])
def test_numbers_of_devices_have_a_range(plug, number):
    with pytest.raises(MXNetError, match="it needs a name, and a number above 100"):
        plug(mxcore_devices=[board("test_one", number)])


def test_a_name_that_is_more_than_a_text_is_taken_as_one(plug):
    class Odd(str):
        def lower(self):
            return 3

    plug(mxcore_metrics={Odd("test_odd"): One})
    assert kinds.names("metric") and kinds.lookup("metric", "test_odd") is One


def test_a_name_that_is_like_none_is_taken_as_a_text(plug):
    class Odd(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            raise RuntimeError("a name is compared")

        __ne__ = __lt__ = __eq__

    plug(
        "first",
        mxcore_devices=[board(Odd("test_odd"), 90_007)],
        mxcore_graph_passes=[GraphPass(Odd("test_odd"), None, lambda g: g)],
        mxcore_ops=[scaled(2, Odd("test_odd"))],
    )
    assert owned("first") == {"operator": ["test_odd"], "device": ["test_odd"], "graph_pass": ["test_odd"]}
    assert all(type(n) is str for table in (tables.ops, tables.devices) for n in table.claims)
    assert Context(90_007).device_type == "test_odd" and overrides("first") == []


@pytest.mark.parametrize("name", [3, "", None, ["test_one"]])
def test_a_device_has_a_name(plug, name):
    with pytest.raises(MXNetError, match="it needs a name, and a number above 100|unhashable"):
        plug(mxcore_devices=[board(name, 90_004)])


@pytest.mark.parametrize(
    "hook, create",
    [
        ("mxcore_optimizers", mx.optimizer.create),
        ("mxcore_metrics", mx.metric.create),
        ("mxcore_initializers", mx.init.create),
        ("mxcore_lr_schedulers", mx.lr_scheduler.create),
        ("mxcore_kvstores", mx.kv.create),
    ],
)
def test_names_in_capitals_are_found(plug, hook, create):
    plug(**{hook: {"TestCapital": lambda *args: 42}})
    assert create("TestCapital") == create("testcapital") == 42


@pytest.mark.parametrize("value", [{"a": 3}, {3: One}, {"": One}, {"a": None}, None, [One], 7])
@pytest.mark.parametrize("hook", ["mxcore_metrics", "mxcore_iterators"])
def test_what_is_no_name_with_a_class_is_refused(plug, hook, value):
    with pytest.raises(MXNetError, match=f"hook {hook} of plugin 'throwaway' returned"):
        plug(**{hook: value})


def kernel_set(priority, value, name="test_shared", dtypes=None):
    ks = KernelSet("cpu")

    @ks.kernel(name, priority=priority, dtypes=dtypes)
    def kernel(k, p, data):
        return data * 0 + value

    return {"cpu": ks}


def test_kernels_that_take_over_are_listed(plug, capsys):
    plug("greedy", mxcore_kernels=kernel_set(500, 9, "relu"))
    assert mx.nd.relu(mx.nd.ones((2,))).asnumpy().tolist() == [9, 9]
    lines = overrides("greedy")
    assert any(
        line.startswith("kernels for cpu (500) come before those of ")
        and "cpu_numba (" in line
        and line.endswith(": _npx_relu, relu")
        for line in lines
    ), lines
    assert cli.main(["plugins"]) == 0
    assert "kernels for cpu (500) come before those of " in capsys.readouterr().out


def test_an_alias_does_not_go_before_a_higher_priority(plug):
    @op("test_shared", "test_shared_too")
    def body(k, p, data):
        """Return data."""
        return data

    plug("the_op", mxcore_ops=[body])
    plug("low", mxcore_kernels=kernel_set(1, 1))
    plug("high", mxcore_kernels=kernel_set(2, 2, "test_shared_too"))
    assert mx.nd.test_shared(mx.nd.zeros((1,))).asscalar() == 2


def test_a_tie_is_told_once_for_two_plugins(plug):
    plug("the_ops", mxcore_ops=[scaled(1), scaled(1, "test_shared_2")])
    x = mx.nd.zeros((1,))
    for name, value in (("a", 10), ("b", 20)):
        ks = kernel_set(3, value)["cpu"]
        ks.kernel("test_shared_2", priority=3)(lambda k, p, data: data)
        plug(name, mxcore_kernels={"cpu": ks})
    with pytest.warns(
        UserWarning, match=r"kernels of a \(dist-a\) and b \(dist-b\).*operator test_shared first; those of a are used"
    ) as told:
        assert mx.nd.test_shared(x).asscalar() == 10
        mx.nd.test_shared_2(x)
        mx.nd.test_shared(mx.nd.zeros((1,), dtype="float64"))
    assert len(told) == 1
    assert any("come before those of b (3): test_shared, test_shared_2" in line for line in overrides("a"))


def test_kernels_for_other_dtypes_are_no_tie(plug):
    plug("the_op", mxcore_ops=[scaled(1)])
    plug("a", mxcore_kernels=kernel_set(3, 10, dtypes="f4"))
    plug("b", mxcore_kernels=kernel_set(3, 20, dtypes="f8"))
    assert mx.nd.test_shared(mx.nd.zeros((1,))).asscalar() == 10
    assert mx.nd.test_shared(mx.nd.zeros((1,), dtype="float64")).asscalar() == 20


def test_kernels_of_operators_that_do_not_exist_are_told(plug, capsys):
    plug("lost", mxcore_kernels=kernel_set(1, 1, "rellu"))
    with pytest.warns(
        UserWarning,
        match="kernels of lost for device 'cpu' are for operators that do not exist: 'rellu', did you mean 'relu'",
    ) as told:
        mx.nd.relu(mx.nd.ones((1,)))
        mx.nd.relu(mx.nd.ones((1,)))
    assert len(told) == 1
    assert cli.main(["plugins"]) == 0
    assert "kernels for cpu of operators that do not exist: rellu" in capsys.readouterr().out
    assert cli.main(["plugins", "--check"]) == 1


def test_targets_that_cannot_be_imported_are_broken(plug, capsys, monkeypatch, tmp_path):
    (tmp_path / "test_targets.py").write_text("value = 3\n")
    (tmp_path / "test_targets_bad.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    plug(
        mxcore_metrics={
            "tt1": "no_such_module:x",
            "tt2": "test_targets:nothing",
            "tt3": "test_targets:value",
            "tt4": "test_targets_bad:x",
        },
        mxcore_kernels={"cpu": "no_such_kernels:x"},
    )
    assert cli.main(["plugins"]) == 0
    out = capsys.readouterr().out
    assert "throwaway  dist-throwaway 1.0  loaded, 2 broken" in out
    assert (
        "broken: metric 'tt1', 'no_such_module:x': there is no module 'no_such_module'" in out
        and "'no_such_kernels:x'" in out
    )
    for name, text in {
        "tt1": "ModuleNotFoundError: No module named",
        "tt2": "AttributeError: module",
        "tt3": "it is 3, neither",
        "tt4": "ZeroDivisionError: division by zero",
    }.items():
        with pytest.raises(MXNetError, match=f"metric '{name}' of plugin 'throwaway'.*'.*:.*{text}"):
            mx.metric.create(name)
    assert cli.main(["plugins", "--check"]) == 1
    out = capsys.readouterr().out
    assert (
        "loaded, 5 broken" in out
        and "broken: metric 'tt4', 'test_targets_bad:x': ZeroDivisionError: division by zero" in out
    )
    assert cli.main(["info"]) == 0
    assert "5 broken (`mxcore plugins` tells)" in capsys.readouterr().out
    (tmp_path / "test_targets_bad.py").write_text("x = len\n")
    assert mx.metric.create("tt4", "four") == 4, "what is mended works"


@pytest.mark.parametrize("priority", [0, 5])
@pytest.mark.parametrize("with_own", [False, True])
def test_an_operator_is_computed_by_kernels_that_mean_it(plug, monkeypatch, with_own, priority):
    """Not by those of a plugin whose own operator of that name does not count; by those of one that has none."""
    monkeypatch.setenv("MXCORE_PREFER", "test_one")
    own = {"mxcore_kernels": kernel_set(0, 1)} if with_own else {}
    plug("test_one", mxcore_ops=[scaled(1)], **own)
    plug("test_two", mxcore_ops=[scaled(2)], mxcore_kernels=kernel_set(priority, 2))
    x = mx.nd.ones(3)
    assert mx.nd.test_shared(x).asnumpy().tolist() == [1, 1, 1]
    plug("test_faster", mxcore_kernels=kernel_set(9, 3))
    assert mx.nd.test_shared(x).asnumpy().tolist() == [3, 3, 3]


def test_a_program_keeps_the_operator_that_it_was_made_of(plug):
    """Another version of its plugin has kernels for its own."""

    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.test_shared(x)

    net = Net()
    net.hybridize()
    plug("test_one", mxcore_ops=[scaled(1)])
    assert net(mx.nd.ones(3)).asnumpy().tolist() == [1, 1, 1]
    manager.unregister("test_one")
    plug("test_one", mxcore_ops=[scaled(2)], mxcore_kernels=kernel_set(0, 2))
    for n in (3, 4):
        assert net(mx.nd.ones(n)).asnumpy().tolist() == [1] * n
    assert mx.nd.test_shared(mx.nd.ones(3)).asnumpy().tolist() == [2, 2, 2]
