"""Files of checkpoints: what may stand in them, and what a process that dies leaves behind."""

import errno
import os
import signal
import subprocess
import sys

import pytest

import mxcore as mx
from mxcore.cli.model import Model

from .conftest import bound, mlp, params_of

#: Saves a checkpoint again and is killed at the n-th file, when it is written but not yet in its place.
DIES = """
import os, signal, sys
import mxcore as mx
prefix, n = sys.argv[1], int(sys.argv[2])
mod = mx.mod.Module.load(prefix, 1, load_optimizer_states=True)
mod.bind([("data", (4, 5))], [("softmax_label", (4,))])
mod.init_optimizer(optimizer="adam")
mod.set_params({k: v + 1 for k, v in mod.get_params()[0].items()}, {})
replace, count = os.replace, 0
def dying(*args, **kwargs):
    global count
    count += 1
    if count == n:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(*args, **kwargs)
os.replace = dying
mod.save_checkpoint(prefix, 1, save_optimizer_states=True)
"""


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
def test_a_killed_process_leaves_files_that_load(tmp_path, at):
    prefix = str(tmp_path / "m")
    mod = bound()
    mod.init_optimizer(optimizer="adam")
    mod.save_checkpoint(prefix, 1, save_optimizer_states=True)
    done = subprocess.run([sys.executable, "-c", DIES, prefix, str(at)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    again = mx.mod.Module.load(prefix, 1, load_optimizer_states=True)
    again.bind([("data", (4, 5))], [("softmax_label", (4,))])
    again.init_optimizer(optimizer="adam")
    moved = params_of(again)["fc1_weight"] - params_of(mod)["fc1_weight"]
    assert (abs(moved - (1 if at > 3 else 0)) < 1e-6).all()  # the third renaming is that of the parameters


@pytest.mark.parametrize("read", ["load_checkpoint", "Module", "imports", "predict"])
@pytest.mark.parametrize("write", ["save_checkpoint", "Module", "export"])
def test_graph_and_parameters_are_replaced_together(tmp_path, monkeypatch, write, read):
    """The process is killed behind the renaming of the first; here its disk fails."""
    prefix = str(tmp_path / "m")

    def save(n):
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=n, name="fc")
        if write == "save_checkpoint":
            mx.model.save_checkpoint(prefix, 0, net, {"fc_weight": mx.nd.ones((n, 2)), "fc_bias": mx.nd.ones((n,))}, {})
        elif write == "Module":
            mod = mx.mod.Module(net, label_names=None)
            mod.bind([("data", (1, 2))], for_training=False)
            mod.init_params()
            mod.save_checkpoint(prefix, 0)
        else:
            block = mx.gluon.SymbolBlock(net, mx.sym.Variable("data"))
            block.initialize()
            block(mx.nd.ones((1, 2)))
            block.hybridize()
            block(mx.nd.ones((1, 2)))
            block.export(prefix)

    def found():
        """Outputs of the network."""
        if read == "load_checkpoint":
            net, arg, _ = mx.model.load_checkpoint(prefix, 0)
            return net.eval(data=mx.nd.ones((1, 2)), **arg)[0].shape[1]
        if read == "Module":
            mod = mx.mod.Module.load(prefix, 0, label_names=None)
            mod.bind([("data", (1, 2))], for_training=False)
            return mod.predict(mx.nd.ones((1, 2))).shape[1]
        if read == "imports":
            return mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")(
                mx.nd.ones((1, 2))
            ).shape[1]
        model = Model(f"{prefix}-symbol.json", f"{prefix}-0000.params")
        return model.symbol.eval(data=mx.nd.ones((1, 2)), **model.params)[0].shape[1]

    save(3)
    assert found() == 3
    replace = os.replace
    with monkeypatch.context() as m:

        def stuck(a, b):
            if str(b).endswith("-symbol.json"):
                raise OSError(errno.EIO, "no more")
            replace(a, b)

        m.setattr(os, "replace", stuck)
        with pytest.raises(OSError, match="m-symbol.json"):
            save(4)
    with monkeypatch.context() as m:
        m.setattr(os, "fsync", lambda fd: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        with pytest.raises(OSError, match="full"):
            save(5)
    assert found() == 4
    load = mx.sym.load
    with monkeypatch.context() as m:

        def late(path):
            """Somebody writes a checkpoint between the reading of the two files."""
            m.setattr(mx.sym, "load", load)
            graph = load(path)
            save(6)
            return graph

        m.setattr(mx.sym, "load", late)
        assert found() == 6
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_a_network_without_parameters_has_checkpoints(tmp_path, caplog):
    net = mx.sym.Flatten(mx.sym.Variable("data"), name="flat")
    mx.model.save_checkpoint(str(tmp_path / "m"), 1, net, {}, {})
    _, args, auxs = mx.model.load_checkpoint(str(tmp_path / "m"), 1)
    assert (args, auxs) == ({}, {}) and "is empty" in caplog.text
    mod = mx.mod.Module.load(str(tmp_path / "m"), 1, label_names=None)
    mod.bind([("data", (2, 3, 4))], for_training=False)
    assert mod.predict(mx.nd.ones((2, 3, 4))).shape == (2, 12)


def test_entries_of_other_kinds(tmp_path):
    mx.nd.save(str(tmp_path / "m-0001.params"), {"arg:w": mx.nd.ones(2), "extra:x": mx.nd.ones(1)})
    assert list(mx.model.load_params(str(tmp_path / "m"), 1)[0]) == ["w"]
    with pytest.raises(ValueError, match="'extra:x' is neither"):
        bound().load_params(str(tmp_path / "m-0001.params"))
    mx.nd.save(str(tmp_path / "m-0002.params"), {"w": mx.nd.ones(2)})
    with pytest.raises(ValueError, match="'w' is neither"):
        mx.model.load_params(str(tmp_path / "m"), 2)


def test_whole_floats_are_epochs(tmp_path):
    mx.model.save_checkpoint(str(tmp_path / "m"), 4 / 2, mlp(), {}, {})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m-0002.params", "m-symbol.json"]
