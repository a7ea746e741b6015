"""Small modules of MXNet's face: the old autograd, the loader as an iterator, engine, library, libinfo, rtc."""

import importlib
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import mxcore as mx
from mxcore import gluon, nd
from mxcore._core.manager import manager
from mxcore.base import MXNetError
from mxcore.contrib import autograd
from mxcore.contrib.io import DataLoaderIter


def test_the_old_autograd():
    assert (
        autograd.set_is_training(True) is False
        and mx.autograd.is_recording()
        and autograd.set_is_training(False) is True
    )
    assert not mx.autograd.is_recording()
    x, g = nd.array([1, 2, 3]), nd.zeros(3)
    autograd.mark_variables([x], [g])
    with autograd.train_section():
        y = x * x
        with autograd.test_section():
            assert not mx.autograd.is_training() and not mx.autograd.is_recording()
        assert mx.autograd.is_training() and mx.autograd.is_recording()
    autograd.backward([y], [nd.array([1, 1, 10])])
    assert g.asnumpy().tolist() == [2, 4, 60]
    with pytest.raises(ZeroDivisionError), autograd.train_section():
        1 / 0  # noqa: B018
    assert not mx.autograd.is_training()


@pytest.mark.parametrize(
    "argnum, wanted", [(None, [[3, 4], [1, 2]]), (0, [[3, 4]]), ([1], [[1, 2]]), ([1, 0], [[1, 2], [3, 4]])]
)
def test_functions_of_gradients(argnum, wanted):
    a, b = nd.array([1, 2]), nd.array([3, 4])
    gradients, loss = autograd.grad_and_loss(lambda a, b: a * b, argnum)(a, b)
    assert [g.asnumpy().tolist() for g in gradients] == wanted and loss.asnumpy().tolist() == [3, 8]
    assert [g.asnumpy().tolist() for g in autograd.grad(lambda a, b: a * b, argnum)(a, b)] == wanted
    for call in (
        lambda: autograd.grad(lambda a: a, "a"),
        lambda: autograd.grad(lambda a: a)(3),
        lambda: autograd.compute_gradient(a),
    ):
        with pytest.raises(MXNetError):
            call()


def test_a_loader_trains_a_module():
    x = np.random.RandomState(0).randn(50, 4).astype("float32")
    data = gluon.data.ArrayDataset(nd.array(x), nd.array(x.sum(1) > 0))
    it = DataLoaderIter(gluon.data.DataLoader(data, 16), label_name="softmax_label")
    assert [tuple(d.shape) for d in it.provide_data + it.provide_label] == [(16, 4), (16,)] and it.batch_size == 16
    for _ in range(2):
        batches = list(it)
        assert [b.pad for b in batches] == [0, 0, 0, 14] and not batches[-1].data[0][2:].asnumpy().any()
        np.testing.assert_array_equal(np.concatenate([b.data[0].asnumpy() for b in batches])[:50], x)
        it.reset()
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2), name="softmax")
    module = mx.mod.Module(net)
    module.fit(it, num_epoch=30, optimizer_params={"learning_rate": 0.5})
    assert module.score(it, "acc")[0][1] > 0.9
    assert DataLoaderIter(gluon.data.DataLoader(data, 16), dtype="float64").next().data[0].dtype == np.float64
    for loader, text in (([], "no batch"), ([3], "pairs of arrays .* got int"), ([[nd.ones(2)]], "got 1 parts")):
        with pytest.raises(MXNetError, match=text):
            DataLoaderIter(loader)


def test_bulk():
    old = mx.engine.set_bulk_size(7)
    with pytest.raises(ZeroDivisionError), mx.engine.bulk(3):
        assert mx.engine.set_bulk_size(3) == 3
        1 / 0  # noqa: B018
    assert mx.engine.set_bulk_size(old) == 7
    for wrong in (-1, 1.5):
        with pytest.raises(ValueError, match="set_bulk_size"):
            mx.engine.set_bulk_size(wrong)


def test_a_plugin_file_loads(tmp_path, capsys):
    path = tmp_path / "small_plugin.py"
    path.write_text(
        "from mxcore.plugin import hookimpl, op\nAPI_VERSION = 1\n@op('small_thrice')\ndef thrice(k, p, data):\n"
        "    'Thrice.'\n    return data * 3\n@hookimpl\ndef mxcore_ops():\n    return [thrice]\n"
    )
    from mxcore._core.manager import manager

    mx.library.load(str(path))
    try:
        assert "small_plugin" in capsys.readouterr().out
        assert (
            nd.small_thrice(nd.ones(2)).asnumpy().tolist()
            == [3, 3]
            == mx.sym.small_thrice(mx.sym.var("x")).eval(x=nd.ones(2))[0].asnumpy().tolist()
        )
        with pytest.raises(ValueError, match="already registered"):
            mx.library.load(str(path), verbose=False)
    finally:
        manager.unregister("small_plugin")


SLOW_PLUGIN = """
API_VERSION = 1
import time
time.sleep(0.5)
from mxcore.plugin import hookimpl, op
@op("small_slow")
def twice(k, p, data):
    "Twice data."
    return data * 2
@hookimpl
def mxcore_ops():
    return [twice]
"""


@pytest.mark.parametrize("first", ["library.load", "import"])
def test_threads_that_load_a_plugin_file_at_once_get_a_whole_one(tmp_path, first):
    (tmp_path / "slow_ops.py").write_text(SLOW_PLUGIN)
    code = (
        "import sys, threading, time\nimport mxcore as mx\nmx.nd.ones((1,)).wait_to_read()\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\nsaid = []\n"
        "def load():\n"
        "    try:\n"
        f"        said.append(mx.library.load({str(tmp_path / 'slow_ops.py')!r}, verbose=False).__name__)\n"
        "    except Exception as e:\n"
        "        said.append('already registered' in str(e))\n"
        "def plain():\n"
        "    import slow_ops\n"
        f"ts = [threading.Thread(target=load if {first == 'library.load'} else plain), threading.Thread(target=load)]\n"
        "for t in ts:\n    t.start()\n    time.sleep(0.1)\n"
        "for t in ts:\n    t.join()\n"
        "print(mx.nd.small_slow(mx.nd.ones(1)).asscalar(), said)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.stdout == f"2.0 {['slow_ops', True] if first == 'library.load' else ['slow_ops']}\n", done


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_fork_waits_for_a_plugin_file_that_is_loaded(tmp_path):
    (tmp_path / "slow_ops.py").write_text(SLOW_PLUGIN)
    code = (
        "import os, threading, time\nimport mxcore as mx\nmx.nd.ones((1,)).wait_to_read()\n"
        f"load = lambda: mx.library.load({str(tmp_path / 'slow_ops.py')!r}, verbose=False)\n"
        "t = threading.Thread(target=load)\nt.start()\ntime.sleep(0.2)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    os._exit(int(mx.nd.small_slow(mx.nd.ones(1)).asscalar()))\n"
        "t.join()\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.stdout == "2\n", done


def test_a_plugin_file_that_loads_itself_says_so(tmp_path):
    path = tmp_path / "serpent.py"
    path.write_text("import mxcore as mx\nAPI_VERSION = 1\nmx.library.load(__file__, verbose=False)\n")
    with pytest.raises(ImportError, match="loads itself while it is imported"):
        mx.library.load(str(path), verbose=False)
    assert "serpent" not in sys.modules


def test_a_plugin_file_takes_the_place_of_no_module(tmp_path):
    """Which somebody imports later on; but it is found by its own name where that is nobody else's."""
    text = "from mxcore.plugin import API_VERSION\n"
    for name in ("colorsys", "mine_alone"):
        (tmp_path / f"{name}.py").write_text(text)
    code = (
        "import sys, mxcore as mx\nsys.path[:] = [p for p in sys.path if p]\n"
        f"for name in 'colorsys', 'mine_alone':\n"
        f"    mx.library.load({str(tmp_path)!r} + f'/{{name}}.py', verbose=False)\n"
        "import colorsys, mine_alone\nprint(colorsys.rgb_to_hsv(0, 0, 1), mine_alone.API_VERSION)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.stdout == "(0.6666666666666666, 1.0, 1) 1\n", done


OPTIMIZER = """
from __future__ import annotations
import dataclasses
import mxcore as mx
API_VERSION = 1

@dataclasses.dataclass
class Facts:
    rate: float

@mx.optimizer.register
class Gentle(mx.optimizer.SGD):
    pass
"""


@pytest.mark.parametrize("how", ["import colorsys", "import mine", "pass"])
@pytest.mark.parametrize("name", ["colorsys", "mine"])
def test_states_of_optimizers_of_a_plugin_file_are_kept(tmp_path, name, how):
    """Also where another module has its name, it lies at the end of a link, or was imported before."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / f"{name}.py").write_text(OPTIMIZER)
    (tmp_path / "link").symlink_to(folder)
    (folder / "program.py").write_text(
        f"import sys, mxcore as mx\ntry:\n    {how}\nexcept ImportError:\n    pass\n"
        f"sys.path[:] = [p for p in sys.path if 'project' not in p or {name == 'mine'}]\n"
        f"module = mx.library.load({str(tmp_path)!r} + '/link/{name}.py', verbose=False)\n"
        "update = mx.optimizer.get_updater(mx.optimizer.create('gentle'))\n"
        "update.set_states(update.get_states(True))\n"
        "print(type(update.optimizer) is module.Gentle, module.Facts(1))\n"
    )
    done = subprocess.run([sys.executable, folder / "program.py"], capture_output=True, text=True, timeout=100)
    assert done.stdout == "True Facts(rate=1)\n", done


def test_a_plugin_file_that_fails_leaves_nothing_and_is_run_anew(tmp_path):
    (tmp_path / "again").mkdir()
    for path in (tmp_path / "tried.py", tmp_path / "again" / "tried.py"):
        for text in ("API_VERSION = 1\n1 / 0", "API_VERSION = 1\nnumber = 1"):
            path.write_text(text)
            if "0" in text:
                with pytest.raises(ImportError, match="tried.py' cannot be imported: ZeroDivisionError"):
                    mx.library.load(str(path), verbose=False)
                assert not [m for m in sys.modules if m.endswith("tried")]
        assert mx.library.load(str(path), verbose=False).number == 1
        path.write_text("API_VERSION = 1\nnumber = 2")
        importlib.invalidate_caches()
        shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
        manager.unregister("tried")
        assert mx.library.load(str(path), verbose=False).number == 2 == sys.modules["tried"].number
        manager.unregister("tried")
        del sys.modules["tried"]


def test_what_is_loaded_takes_no_name_from_what_is_installed(tmp_path):
    """Also where it is the first thing that a process does with plugins."""
    (tmp_path / "first.py").write_text(
        "from mxcore.plugin import hookimpl, op\nAPI_VERSION = 1\nmine = op('relu')(lambda k, p, data: data)\n"
        "@hookimpl\ndef mxcore_ops():\n    return [mine]\n"
    )
    code = (
        "import mxcore as mx\ntry:\n    mx.library.load('first.py')\nexcept ValueError as e:\n    print(e)\n"
        "print(mx.nd.relu(mx.nd.array([-1.0])).asscalar())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert "operator 'relu' of first is already registered by ops" in done.stdout and done.stdout.endswith("\n0.0\n"), (
        done
    )


@pytest.mark.parametrize(
    "name, text, kind, match",
    [
        ("lib.so", "", ValueError, "no Python file.*C\\+\\+ code"),
        ("gone.py", None, FileNotFoundError, "there is no file"),
        ("broken.py", "1 / 0", ImportError, "broken.py' cannot be imported: ZeroDivisionError"),
        ("plain.py", "x = 1", RuntimeError, "states no API_VERSION"),
        (
            "leaves.py",
            "import sys; sys.exit(3)",
            ImportError,
            "leaves.py' cannot be imported: it ended with SystemExit: 3",
        ),
        (
            "mute.py",
            "class Mute(Exception):\n    def __str__(self): 1 / 0\nraise Mute",
            ImportError,
            "cannot be imported: Mute: its message cannot be shown",
        ),
        (
            "hook.py",
            "from mxcore.plugin import hookimpl\nAPI_VERSION = 1\n@hookimpl\ndef mxcore_ops(): 1 / 0",
            ImportError,
            "hook.py' cannot be registered: ZeroDivisionError: division by zero",
        ),
    ],
)
def test_what_cannot_be_loaded(tmp_path, name, text, kind, match):
    import sys

    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(kind, match=match) as caught:
        mx.library.load(str(path))
    assert isinstance(caught.value, MXNetError) and name.partition(".")[0] not in sys.modules


@pytest.mark.parametrize("name", ["user code", "reference", "compiled chain", "stock", "ops"])
def test_a_plugin_takes_no_name_of_what_is_no_plugin(name, tmp_path):
    """Of users' own code, which comes before all others."""
    from mxcore._core.manager import manager

    path = tmp_path / f"{name}.py"
    path.write_text(
        "from mxcore.plugin import hookimpl, op\nAPI_VERSION = 1\nmine = op('tanh')(lambda k, p, data: data * 100)\n"
        "@hookimpl\ndef mxcore_ops():\n    return [mine]\n"
    )
    with pytest.raises(ValueError, match=f"a plugin (cannot be named|named) '{name}'") as caught:
        mx.library.load(str(path), verbose=False)
    assert isinstance(caught.value, MXNetError) and manager.origin.get(name, ("mxcore",))[0] == "mxcore"
    assert nd.tanh(nd.ones(1)).asscalar() == pytest.approx(0.7615942)


def test_a_library_has_a_name():
    with pytest.raises(
        TypeError, match="library.load: path must be a non-empty string or a path, not NoneType"
    ) as caught:
        mx.library.load(None)
    assert isinstance(caught.value, MXNetError)


def test_what_needs_compiled_code_says_so():
    assert mx.libinfo.__version__ == "1.9.1" and len(mx.libinfo.find_lib_path()) == 1
    for call in (
        mx.libinfo.find_include_path,
        mx.libinfo.find_conf_path,
        lambda: mx.rtc.CudaModule("code"),
        lambda: mx.rtc.CudaKernel(0, "k", [], []),
    ):
        with pytest.raises(MXNetError, match="mxcore|CUDA|libcuda|MXCORE_CUDA"):
            call()


def test_variables_and_names_of_util(monkeypatch):
    monkeypatch.delenv("MXCORE_NO_SUCH", raising=False)
    mx.util.setenv("MXCORE_NO_SUCH", "3")
    assert mx.util.getenv("MXCORE_NO_SUCH") == "3"
    mx.util.setenv("MXCORE_NO_SUCH", None)
    assert mx.util.getenv("MXCORE_NO_SUCH") is None
    assert mx.util.set_module("a.b")(lambda: 0).__module__ == "a.b" and mx.util.set_module(None)(
        test_variables_and_names_of_util
    )
    with pytest.raises(ValueError, match="takes the context of a GPU"):
        mx.util.get_cuda_compute_capability(mx.cpu())


def test_modules_that_refuse():
    """What is not there says why, and what to use instead."""
    from mxcore.contrib import onnx

    with pytest.raises(
        ImportError, match="onnx.export_model: .*MXNet 1.9.1, in an environment of its own, makes an ONNX file of them"
    ):
        mx.onnx.export_model("net-symbol.json", "net-0000.params")
    assert onnx.export_model is mx.onnx.export_model and mx.onnx.get_operator_support() == []
    for call in (
        lambda: onnx.import_model("x"),
        lambda: onnx.get_model_metadata("x"),
        lambda: onnx.import_to_gluon("x", mx.cpu()),
    ):
        with pytest.raises(MXNetError, match="load its files here, by mx.model.load_checkpoint"):
            call()


def test_histograms_are_combined():
    old = np.array([1, 2, 3]), np.array([-3.0, -1.0, 1.0, 3.0]), 0.0, 3.0, 3.0
    counts, edges, *rest = mx.contrib.quantization.combine_histogram(old, np.array([1.0, 2.0, 9.0]), 1.0, 9.0, 9.0)
    # MXNet's numbers.
    assert counts.tolist() == [0, 0, 0, 0, 1, 2, 5, 0, 0, 0, 1] and edges[0] == -11 and rest == [0, 9, 11]
    counts, edges, *rest = mx.contrib.quantization.combine_histogram(old, np.array([-2.0, 0.5]), -2.0, 0.5, 2.0)
    assert counts.tolist() == [2, 3, 3] and edges.tolist() == [-3, -1, 1, 3] and rest == [-2, 3, 3]


def test_tensorrt_settings(monkeypatch):
    trt = mx.contrib.tensorrt
    monkeypatch.delenv("MXNET_TENSORRT_USE_FP16", raising=False)
    assert trt.get_use_fp16() is True
    for value in (False, True):
        trt.set_use_fp16(value)
        assert trt.get_use_fp16() is value
    w = nd.ones(1)
    args, aux = trt.init_tensorrt_params(mx.sym.Variable("x"), {"w": w}, {})
    assert args["w"] is w and aux == {}
    with pytest.raises(TypeError, match="sym must be a Symbol"):
        trt.init_tensorrt_params(3, {}, {})
