"""``mxcore plugins check``: a line for everything that is wrong, and for what one plugin takes from another."""

import types

import numpy as np
import pytest

import mxcore as mx
from mxcore import cli
from mxcore._core.manager import manager
from mxcore.array_api import contract
from mxcore.array_api.namespace import ASKED
from mxcore.plugin import ArrayAPINamespace, Device, KernelSet, op


def kernels(name, priority=0):
    ks = KernelSet("cpu")
    ks.kernel(name, priority=priority)(lambda k, p, data: data)
    return {"cpu": ks}


def check(capsys):
    """(status, lines) of the command."""
    status = cli.main(["plugins", "check"])
    return status, capsys.readouterr().out.splitlines()


def test_nothing_is_wrong_with_what_comes_with_mxcore(capsys):
    status, lines = check(capsys)
    assert status == 0 and lines == [f"{len(manager.origin)} plugins, nothing wrong, no notes"]


class Mute(type):
    """Of a class that cannot say what it is."""

    def __repr__(cls):
        raise ValueError("mute")


@pytest.mark.parametrize(
    "hooks, line",
    [
        (
            {"mxcore_metrics": {"tt": "not_there:x"}},
            "metric 'tt', 'not_there:x': ModuleNotFoundError: "
            "No module named 'not_there'; correct the target, or install what it imports",
        ),
        (
            {"mxcore_kernels": {"cpu": "not_there_either:x"}},
            "kernels for device 'cpu', 'not_there_either:x': "
            "ModuleNotFoundError: No module named 'not_there_either'; correct the target, or install what it imports",
        ),
        (
            {"mxcore_kernels": kernels("rellu")},
            "kernels for cpu of operators that do not exist: 'rellu', did you mean 'relu' or 'prelu'?; "
            "correct the name, or install the plugin that brings the operator",
        ),
        (
            {"mxcore_cli": {"ttcmd": int}},
            "cli 'ttcmd' is <class 'int'>, which has no help and no add_arguments and no main; give it what is missing",
        ),
        (
            {"mxcore_optimizers": {"ttopt": dict}},
            "optimizer 'ttopt' is <class 'dict'>, no subclass of Optimizer; give a subclass, or a function that makes "
            "such an object",
        ),
        (
            {"mxcore_kvstores": {"ttkv": "decimal:Decimal"}},
            "kvstore 'ttkv' is <class 'decimal.Decimal'>, no subclass of KVStoreBase; give a subclass, or a function "
            "that makes such an object",
        ),
        (
            {"mxcore_metrics": {"ttmute": Mute("Odd", (), {})}},
            "metric 'ttmute' is <class 'tests.core.test_findings.Odd'>, no subclass of EvalMetric; give a subclass, or "
            "a function that makes such an object",
        ),
        (
            {"mxcore_cli": {"ttmute": Mute("Odd", (), {})}},
            "what it brings cannot be looked at: ValueError: mute; mend it there, or leave it out with "
            "MXCORE_DISABLE_PLUGINS",
        ),
    ],
    ids=["target", "kernels", "operator", "command", "optimizer", "kvstore", "mute", "mute command"],
)
def test_what_is_wrong_is_told_with_what_to_do(plug, capsys, hooks, line):
    plug(**hooks)
    status, lines = check(capsys)
    assert status == 1 and lines[0].split("'relu'")[0] == f"wrong: throwaway: {line}".split("'relu'")[0]
    assert lines[0].endswith(line.rpartition("; ")[2]) and lines[1:] == [
        f"{len(manager.origin)} plugins, 1 wrong, no notes"
    ]


class Thin(Device):
    type, type_id = "thin", 990
    xp = types.SimpleNamespace(**{n: getattr(np, n) for n in contract.CONSTANTS}, add=np.add)

    def count(self):
        return 1


class Uncounted(Device):
    type, type_id, xp = "uncounted", 991, np


def test_what_the_namespace_of_a_device_lacks_is_a_note(plug, capsys):
    plug(mxcore_devices=[Thin()])
    status, lines = check(capsys)
    assert status == 0 and lines[0].startswith(
        "note: throwaway: the array namespace of device 'thin' has no arange, "
        "array, asarray, ascontiguousarray, empty, empty_like, eye, full, full_like, "
    )
    assert "more" not in lines[0] and "zeros_like" in lines[0]
    assert contract.lacking(np) == []


def test_what_a_library_lacks_is_told_at_once(plug, capsys):
    """A library with other names, as some have, and without some functions."""
    have = {
        n: getattr(np, n)
        for n in (*ASKED - {"astype", "permute_dims", "take_along_axis"}, "float32", "bool")
        if "." not in n and n not in ("cumulative_sum", "argsort")
    }
    library = types.SimpleNamespace(**have, __name__="lib", linalg=np.linalg, permute=np.permute_dims)
    xp = ArrayAPINamespace(library, {"argsort": np.argsort})
    assert (
        xp.lacking() == ["astype", "cumulative_sum", "fft.fft", "fft.ifft", "take_along_axis"]
        and ArrayAPINamespace(np).lacking() == []
    )
    plug(mxcore_devices=[type("Over", (Thin,), {"xp": xp})()])
    status, lines = check(capsys)
    assert status == 0 and lines[0] == (
        "note: throwaway: the library of device 'thin' has no astype, cumulative_sum, fft.fft, fft.ifft, "
        "take_along_axis, as the array API standard has; operators that need them fail there; give functions for them "
        "to ArrayAPINamespace"
    )
    with pytest.raises(
        NotImplementedError, match="lib has no 'astype', which the array API .* lacks: astype, cumulative"
    ):
        xp.cast(xp.zeros((2,), np.float32), np.bool_)


def test_a_device_that_cannot_be_asked_is_wrong(plug, capsys):
    plug(mxcore_devices=[Uncounted()])
    status, lines = check(capsys)
    assert status == 1 and lines[0].startswith(
        "wrong: throwaway: device 'uncounted' cannot be used: device 'uncounted' must def"
    )


def test_a_plugin_that_does_not_load_is_wrong(capsys, monkeypatch):
    monkeypatch.setitem(manager.failed, "broken", ("broken-dist 1.0", ImportError("libfoo is missing")))
    status, lines = check(capsys)
    assert status == 1
    assert lines[0] == (
        "wrong: broken: broken-dist 1.0 failed: ImportError: "
        "libfoo is missing; mend it there, or leave it out with MXCORE_DISABLE_PLUGINS"
    )


def ends():
    raise SystemExit(3)


def test_a_plugin_whose_event_hook_fails_is_wrong(plug, capsys):
    with pytest.warns(mx.base.MXNetWarning, match="mxcore_configure of plugin 'ill' failed: it ended with SystemExit"):
        plug("ill", mxcore_configure=ends, mxcore_metrics={"illness": "json:loads"})
    plug("mute", mxcore_report=lambda: 5)
    status, lines = check(capsys)
    assert status == 1 and lines[:2] == [
        "wrong: ill: mxcore_configure failed: it ended with SystemExit: 3; mend it there, or leave it out with "
        "MXCORE_DISABLE_PLUGINS",
        next(x for x in lines if x.startswith("wrong: mute: mxcore_report failed: TypeError: 'int' object")),
    ]
    assert cli.main(["plugins"]) == 0 and cli.main(["info"]) == 0
    told = capsys.readouterr().out
    assert "ill  dist-ill 1.0  loaded, 1 broken" in told and "broken: mxcore_configure failed: it ended with" in told
    assert "dist-ill 1.0, 1 broken (`mxcore plugins` tells)" in told
    with pytest.raises(AttributeError, match="mxcore_configure of plugin 'ill' failed: it ended with SystemExit: 3"):
        mx.nd.an_operator_of_ill  # noqa: B018
    assert mx.metric.create("illness", "5") == 5  # what it brings is there
    manager.unregister("ill")
    assert "ill" not in manager.faulty


def test_a_class_of_another_kind_is_refused_where_it_is_asked_for(plug):
    plug(mxcore_optimizers={"ttopt": dict}, mxcore_metrics={"ttm": dict}, mxcore_kvstores={"ttkv": dict})
    for kind, create in {"optimizer": mx.optimizer.create, "metric": mx.metric.create, "kvstore": mx.kv.create}.items():
        name = "ttkv" if kind == "kvstore" else f"tt{'m' if kind == 'metric' else 'opt'}"
        with pytest.raises(TypeError, match=f"{kind} '{name}' of plugin 'throwaway' is .*dict.*, no subclass of"):
            create(name)


def test_who_overrides_whom_is_noted_and_nothing_is_wrong(plug, capsys, monkeypatch):
    @op("relu")
    def relu(k, p, data):
        """Return data."""
        return data

    monkeypatch.setenv("MXCORE_PREFER", "mine, nobody")
    plug("mine", mxcore_ops=[relu])
    plug("greedy", mxcore_kernels={**kernels("softmax", 500), "test_nowhere": KernelSet("test_nowhere")})
    nowhere = KernelSet("test_nowhere")
    nowhere.kernel("relu")(lambda k, p, data: data)
    plug("elsewhere", mxcore_kernels={"test_nowhere": nowhere})
    status, lines = check(capsys)
    assert status == 0, lines
    assert "note: mine: operator 'relu' comes before that of ops; MXCORE_PREFER decides otherwise" in lines
    assert "note: ops: operator 'relu' stands behind that of mine; MXCORE_PREFER decides otherwise" in lines
    assert any(
        x.startswith("note: greedy: kernels for cpu (500) come before those of ")
        and "cpu_numba (" in x
        and "softmax; MXCORE_KERNEL_ORDER" in x
        for x in lines
    )
    assert (
        "note: elsewhere: kernels for device 'test_nowhere', "
        "which no plugin provides here; they are used where one does" in lines
    )
    assert (
        "note: MXCORE_PREFER: it names 'nobody', which is neither a plugin here nor a distribution of one; correct "
        "the name, or take it out" in lines
    )
    assert lines[-1].endswith(f"nothing wrong, {len(lines) - 1} notes")


def test_the_option_still_lists_everything(plug, capsys):
    plug(mxcore_metrics={"tt": "not_there:x"})
    assert cli.main(["plugins", "--check"]) == 1
    assert "loaded, 1 broken" in capsys.readouterr().out


def test_kernels_that_cannot_be_called_or_never_are(plug, capsys):
    cpu, cpuu = KernelSet("cpu"), KernelSet("cpuu")
    cpu.kernel("relu", when=lambda p: True)(lambda k, p, data: data)
    cpu.kernel("broadcast_add", out=True, when=lambda p, *specs: False)(lambda k, p, outs, lhs: None)
    cpu.kernel("tanh", dtypes="f4", priority=-1)(lambda k, p, data: data)
    cpu.kernel("tanh", dtypes="f4 f8", priority=-1)(lambda k, p, data: data)
    cpuu.kernel("relu")(lambda k, p, data: data)
    plug(mxcore_kernels={"cpu": cpu, "cpuu": cpuu})
    status, lines = check(capsys)
    assert status == 1 and lines[:3] == [
        "wrong: throwaway: kernel of operator broadcast_add for cpu: it takes (k, p, outs, lhs); "
        "(k, p, outs, lhs, rhs) is needed; correct the kernel",
        "wrong: throwaway: kernel of operator relu for cpu: its `when` takes (p); (p, data) is needed; "
        "correct the kernel",
        "wrong: throwaway: kernel of operator tanh for cpu: another of the same priority -1, which is declared before, "
        "takes its dtypes; correct the kernel",
    ]
    assert any("kernels for device 'cpuu', which no plugin provides here, did you mean 'cpu'" in line for line in lines)


def test_names_in_the_environment_are_separated_by_commas_or_blanks(capsys, monkeypatch):
    monkeypatch.setenv("MXCORE_PREFER", "cpu_nmba, other more")
    status, lines = check(capsys)
    assert status == 0 and [line.split("'")[1] for line in lines[:-1]] == ["cpu_nmba", "other", "more"]
    assert "did you mean 'cpu_numba'?" in lines[0]


class Slips(Thin):
    """A device with slips of the pen, and without an array namespace."""

    type, type_id, xp = "slips", 992, None

    def syncronize(self, index):
        """Not what is asked for."""

    def extent(self, a):
        """Its own affair."""


class Absent(Thin):
    type, type_id, xp = "absent", 993, np

    def count(self):
        return 0


def test_what_devices_have_and_nothing_asks_for(plug, capsys):
    plug(mxcore_devices=[Slips(), Absent()])
    status, lines = check(capsys)
    assert status == 0 and lines[:-1] == [
        "note: throwaway: the array namespace of device 'slips' has no functions, for it is None; operators whose "
        "bodies use them fail there; docs/arrays.md lists what bodies may use",
        "note: throwaway: device 'slips' has 'syncronize', which nothing asks for; is it 'synchronize'?",
    ]
    with pytest.raises(NotImplementedError, match="no kernel for device 'slips' .* has no array namespace `xp`"):
        mx.nd.ones((2,), ctx=mx.Context("slips"))
    with pytest.raises(ValueError, match=r"absent\(0\): device 'absent' cannot be used here: its count\(\) is 0"):
        mx.nd.ones((2,), ctx=mx.Context("absent"))
