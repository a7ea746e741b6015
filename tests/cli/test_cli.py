"""The command ``mxcore``: its table, ``info`` and ``plugins``."""

import os
import subprocess
import sys
import types

import numpy as np
import pytest

import mxcore
from mxcore import cli
from mxcore._core import tables
from mxcore._core.manager import manager
from mxcore.base import error
from mxcore.plugin import API_VERSION, hookimpl


@pytest.fixture
def plugin():
    """A plugin with commands, and with lines for the report."""

    class Greet:
        help = "greet somebody"

        @staticmethod
        def add_arguments(parser):
            parser.add_argument("who")

        @staticmethod
        def main(args):
            if args.who == "nobody":
                raise error(ValueError, "nobody is there")
            if args.who == "ctrl-c":
                raise KeyboardInterrupt
            print(f"hello {args.who}")

    holder = types.SimpleNamespace(
        API_VERSION=API_VERSION,
        mxcore_cli=hookimpl(lambda: {"greet": Greet, "lost": "no_such_module:thing"}, specname="mxcore_cli"),
        mxcore_report=hookimpl(lambda: ["the greeter is well"], specname="mxcore_report"),
    )
    manager.load()
    manager.register(holder, "greeter", "greeter-dist", "2.5")
    yield holder
    manager.unregister("greeter")


def test_usage_and_version(capsys):
    assert cli.main(["--help"]) == 0
    usage = capsys.readouterr().out
    assert all(f"  {name} " in usage for name in cli.COMMANDS)
    assert cli.main([]) == 2
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.endswith(f"mxcore {mxcore.__version__}\n")


def test_unknown_command(capsys):
    assert cli.main(["fly"]) == 2
    assert "no command 'fly'" in capsys.readouterr().err


def test_plugin_commands(plugin, capsys):
    assert cli.main(["greet", "you"]) == 0
    assert capsys.readouterr().out == "hello you\n"
    assert cli.main(["help"]) == 0
    usage = capsys.readouterr().out
    assert "greet somebody" in usage and "cannot be loaded" in usage
    assert cli.main(["greet", "nobody"]) == 1
    assert capsys.readouterr().err == "mxcore greet: nobody is there\n"
    assert cli.main(["greet", "ctrl-c"]) == 130
    assert cli.main(["lost"]) == 1
    assert "no_such_module" in capsys.readouterr().err


def test_info(plugin, capsys, monkeypatch):
    monkeypatch.setenv("MXNET_ENGINE_TYPE", "NaiveEngine")
    monkeypatch.setenv("MXCORE_SOME_TOKEN", "hidden-value")
    monkeypatch.setitem(manager.failed, "broken", ("broken-dist", ImportError("libfoo is missing")))
    assert cli.main(["info"]) == 0
    out = capsys.readouterr().out
    assert f"mxcore  {mxcore.__version__}".split() == out.splitlines()[1].split()
    shown = ["numpy", "cpu ", "gpu ", "NaiveEngine", "greeter-dist 2.5", "greeter is well", "libfoo is"]
    assert [text for text in shown if text not in out] == []
    assert "hidden-value" not in out


def test_info_tells_why_a_device_is_missing(capsys, monkeypatch):

    class Broken:
        type_id = 77

        def count(self):
            raise OSError("the driver is too old")

    monkeypatch.setitem(tables.devices.items, "odd", Broken())
    assert cli.main(["info"]) == 0
    out = capsys.readouterr().out
    assert "the driver is too old" in out


def test_plugins_list(plugin, capsys, monkeypatch):
    monkeypatch.setitem(manager.failed, "broken", ("broken-dist", ImportError("libfoo is missing")))
    assert cli.main(["plugins"]) == 0
    out = capsys.readouterr().out
    assert "greeter  greeter-dist 2.5  loaded, 1 broken\n    hooks: mxcore_cli, mxcore_report\n" in out
    assert "\n    broken: cli 'lost', 'no_such_module:thing': " in out
    assert "\n    cli: greet, lost\n" in out
    assert "broken  broken-dist  failed: ImportError: libfoo is missing" in out
    assert "ops  mxcore " in out


def test_plugins_left_out_are_listed(capsys, monkeypatch):
    monkeypatch.setattr(manager, "left_out", ["shy"])
    assert cli.main(["plugins"]) == 0
    assert "shy  left out by MXCORE_PLUGINS" in capsys.readouterr().out


def ran(*args, **options):
    return subprocess.run(
        [sys.executable, "-m", "mxcore", *args],
        capture_output=True,
        env={**os.environ, **options.pop("env", {})},
        **options,
    )


def test_names_that_the_terminal_cannot_show(tmp_path):
    mxcore.sym.FullyConnected(mxcore.sym.Variable("data"), num_hidden=2, name="f\xe9").save(str(tmp_path / "net.json"))
    done = ran("summary", str(tmp_path / "net.json"), "--shape", "2,3", env={"PYTHONIOENCODING": "ascii:strict"})
    assert done.returncode == 0 and b"f\\xe9" in done.stdout, done.stderr


@pytest.mark.skipif(os.name == "nt", reason="pipes are POSIX")
def test_a_reader_that_leaves_early():
    here, there = os.pipe()
    os.close(here)
    with os.fdopen(there, "wb") as out:
        done = subprocess.run([sys.executable, "-m", "mxcore", "plugins"], stdout=out, stderr=subprocess.PIPE)
    assert done.returncode == 141 and done.stderr == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="of Linux")
@pytest.mark.parametrize("command", ["--version", "--help", "info"])
def test_output_that_cannot_be_written(command):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-m", "mxcore", command], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1 and done.stderr.decode() == f"mxcore {command}: No space left on device\n"


@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell")
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&- <&-"])
@pytest.mark.parametrize("command", ["plugins", "im2rec --list {0}/l {0}", "im2rec {0}/l {0}"])
def test_closed_output(command, closed, tmp_path):
    cv2 = pytest.importorskip("cv2")
    cv2.imwrite(str(tmp_path / "a.png"), np.zeros((4, 4, 3), "u1"))
    (tmp_path / "l.lst").write_text("0\t1\ta.png\n")
    line = f"'{sys.executable}' -m mxcore {command.format(tmp_path)} {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True)
    assert done.returncode == 0 and done.stderr == b""


def test_info_survives_a_device_that_cannot_count(plugin, capsys, monkeypatch):
    device = tables.devices.get("cpu")
    monkeypatch.setattr(device, "count", lambda: None)
    assert cli.main(["info"]) == 0
    assert "broken: TypeError" in capsys.readouterr().out
    monkeypatch.setattr(device, "count", lambda: sys.exit("no board"))
    assert cli.main(["info"]) == 0
    assert "broken: it ended with SystemExit: no board" in capsys.readouterr().out
