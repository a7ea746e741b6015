"""``import mxnet`` answered by mxcore."""

import importlib
import importlib.util
import pickle
import subprocess
import sys
import types

import pytest

import mxcore
from mxcore.base import MXNetError
from mxcore.compat import alias, install_as_mxnet
from mxcore.gluon.block.seen import as_seen_by


@pytest.fixture
def clean():
    """Take every trace of ``mxnet`` out again."""

    def drop():
        sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, alias._Finder)]
        for name in [n for n in sys.modules if n.split(".")[0] == "mxnet"]:
            del sys.modules[name]

    drop()
    yield
    drop()


@pytest.fixture
def mxnet(clean):
    install_as_mxnet()
    return importlib.import_module("mxnet")


def test_top_module_says_its_version_and_delegates(mxnet):
    assert mxnet.__version__ == "1.9.1" != mxcore.__version__
    assert mxnet.nd.NDArray is mxcore.nd.NDArray and mxnet.cpu(0) is mxcore.cpu(0)
    assert "nd" in dir(mxnet)
    with pytest.raises(AttributeError, match="mxnet.*no_such_thing"):
        _ = mxnet.no_such_thing


def test_every_form_of_import_gives_the_same_objects(mxnet):
    import mxnet.base as base
    import mxnet.ndarray
    from mxnet import nd
    from mxnet.base import MXNetError as error_class
    from mxnet.ndarray import NDArray

    assert base is mxnet.base is sys.modules["mxnet.base"] and base.MXNetError is mxcore.base.MXNetError
    assert nd is mxnet.ndarray is mxnet.nd and NDArray is mxcore.nd.NDArray
    assert error_class is MXNetError


def test_parts_of_packages_that_mxnet_imports_are_there():
    code = (
        "import mxcore.compat as c, sys; c.install_as_mxnet(); import mxnet, multiprocessing, urllib\n"
        "assert 'multiprocessing.pool' not in sys.modules  # which would take its time\n"
        "assert multiprocessing.pool.ThreadPool and multiprocessing.connection and urllib.request.urlopen\n"
        "assert not hasattr(multiprocessing, 'dummies')"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True).returncode == 0


def test_short_names_are_modules_too(mxnet):
    assert importlib.import_module("mxnet.nd") is mxnet.ndarray


@pytest.mark.parametrize(
    "package, name",
    [
        ("gluon.data.vision", "datasets"),
        ("gluon.nn", "basic_layers"),
        ("gluon.nn", "conv_layers"),
        ("gluon.rnn", "rnn_cell"),
        ("gluon.rnn", "rnn_layer"),
        ("image", "detection"),
        ("image", "image"),
        ("optimizer", "optimizer"),
    ],
)
def test_inner_modules_are_imported_from_their_package(mxnet, package, name):
    found = {}
    exec(f"from mxnet.{package} import {name}", found)
    assert found[name] is importlib.import_module(f"mxnet.{package}.{name}")


def test_mxcore_modules_keep_their_own_identity(mxnet):
    importlib.import_module("mxnet.base")
    assert mxcore.base.__name__ == mxcore.base.__spec__.name == "mxcore.base"
    assert importlib.reload(importlib.import_module("mxcore.compat.stdlib")).__name__ == "mxcore.compat.stdlib"


@pytest.mark.parametrize("kind", ["block", "function", "cell", "transform"])
def test_blocks_of_the_program_get_its_own_modules(mxnet, kind):
    mx, seen = importlib.import_module("mxnet"), []

    def asks(self, F, x, *args):
        seen.append(("nd",) * (F is mx.nd) + ("sym",) * (F is mx.sym))
        return (F.relu(x), []) if kind == "cell" else F.relu(x)

    gluon, x = mx.gluon, mx.nd.ones((1, 2, 3))
    if kind == "function":
        block = gluon.nn.HybridLambda(lambda F, x: asks(None, F, x))
    elif kind == "cell":
        cell = type(
            "Mine",
            (gluon.rnn.HybridRecurrentCell,),
            {"hybrid_forward": asks, "state_info": lambda self, n=0: [], "_alias": lambda self: "mine"},
        )()
        cell(x[0], [])
        cell(mx.sym.var("x"), [])
        assert seen == [("nd",), ("sym",)]
        return
    else:
        base = gluon.HybridBlock if kind == "block" else mxcore.gluon.data.vision.transforms.base.ImageHybridBlock
        block = type("Mine", (base,), {"hybrid_forward": asks})()
    block(x)
    block(mx.sym.var("x"))
    block.hybridize()
    block(x)
    assert seen == [("nd",), ("sym",), ("sym",)]
    assert as_seen_by(mxcore.gluon.nn.Dense, mxcore.nd) is mxcore.nd


def test_presence_can_be_asked(mxnet):
    assert importlib.util.find_spec("mxnet") is not None
    assert importlib.util.find_spec("mxnet.base") is not None
    assert importlib.util.find_spec("mxnet.no_such_module") is None


@pytest.mark.parametrize("name", ["mxnet.no_such_module", "mxnet.base.deeper", "mxnet.no.such"])
def test_missing_modules_are_import_errors(mxnet, name):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(name)


def test_foreign_modules_are_not_lent(mxnet):
    # mxcore.base may import sys; that does not make `mxnet.base.sys` a module.
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("mxnet._core.errors.sys")


def test_what_is_written_to_a_module_reaches_mxcores(mxnet, monkeypatch):
    import mxnet.gluon.utils

    def mine(x):
        return x

    with monkeypatch.context() as patch:
        patch.setattr(mxnet.gluon.utils, "download", mine)
        assert mxcore.gluon.utils.download is mine is mxnet.gluon.utils.download
    assert mxcore.gluon.utils.download is mxnet.gluon.utils.download is not mine
    mxnet.nd.mine = mine
    assert mxcore.nd.mine is mine is mxnet.nd.mine
    del mxnet.nd.mine
    assert not hasattr(mxcore.nd, "mine") and not hasattr(mxnet.nd, "mine")


def test_parts_of_a_package_do_not_reach_mxcore(mxnet):
    importlib.import_module("mxnet.gluon.nn.basic_layers")
    assert mxnet.gluon.nn.basic_layers.Dense is mxcore.gluon.nn.Dense
    assert "basic_layers" not in vars(mxcore.gluon.nn) and mxcore.gluon.nn.__name__ == "mxcore.gluon.nn"


def test_cells_of_toolkits_begin_where_their_inputs_are(mxnet):
    from mxnet.gluon.rnn.rnn_cell import _get_begin_state

    x = mxcore.nd.ones((2, 3), ctx=mxcore.cpu(1))
    states = _get_begin_state(mxcore.gluon.rnn.LSTMCell(4), mxnet.nd, None, [x], 2)
    assert [s.context for s in states] == [mxcore.cpu(1)] * 2


def test_functions_hide_parts_of_their_name(mxnet):
    importlib.import_module("mxnet.gluon.model_zoo.vision.alexnet")
    assert mxnet.gluon.model_zoo.vision.alexnet is mxcore.gluon.model_zoo.vision.alexnet
    assert callable(mxnet.gluon.model_zoo.vision.alexnet)


def test_modules_show_what_they_hold(mxnet):
    assert {"SGD", "Adam", "create"} <= set(vars(mxnet.optimizer)) and vars(mxnet.optimizer)[
        "SGD"
    ] is mxcore.optimizer.SGD
    assert {"SGD", "NDabs"} <= set(dir(mxnet.optimizer))
    assert mxnet.gluon.nn.__doc__ == mxcore.gluon.nn.__doc__ and mxnet.gluon.nn.__file__ == mxcore.gluon.nn.__file__
    assert importlib.reload(mxnet.gluon.nn).Dense is mxcore.gluon.nn.Dense
    assert pickle.loads(pickle.dumps(mxnet.gluon.nn)) is mxnet.gluon.nn


def test_plugins_that_come_later_replace_operators(mxnet):
    from mxcore._core import tables

    before = mxnet.nd.relu
    assert mxnet.nd.relu is before and "relu" in alias._own(mxnet.nd)
    tables.changed()
    assert "relu" not in alias._own(mxnet.nd)
    assert mxnet.nd.relu(mxnet.nd.ones(1)).asscalar() == 1


def test_missing_dependency_of_a_module_is_told_as_such(mxnet, monkeypatch, tmp_path):
    (tmp_path / "needy.py").write_text("import no_such_dependency\n")
    monkeypatch.setattr(mxcore, "__path__", [*mxcore.__path__, str(tmp_path)])
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        importlib.import_module("mxnet.needy")


def test_pickles_of_mxnet_that_hold_contexts_say_what_to_do(mxnet):
    """MXNet makes an empty Context first, and gives it its attributes after."""
    made = b"cmxnet.context\nContext\n)\x81}(S'device_typeid'\nI1\nS'device_id'\nI0\nS'_old_ctx'\nNub."
    with pytest.raises(mxcore.MXNetError, match="MXNet's pickles: save .params there"):
        pickle.loads(made)


def test_pickles_that_name_mxnet_load(mxnet):
    text = pickle.dumps(mxcore.cpu(1), protocol=0)
    old = text.replace(type(mxcore.cpu(1)).__module__.encode(), b"mxnet.context")
    assert b"mxnet.context" in old
    assert pickle.loads(old) is mxcore.cpu(1)


def test_second_call_changes_nothing(mxnet):
    before = list(sys.meta_path)
    install_as_mxnet()
    assert sys.meta_path == before and importlib.import_module("mxnet") is mxnet


def test_another_mxnet_already_imported_is_an_error(clean, monkeypatch):
    other = types.ModuleType("mxnet")
    other.__version__, other.__file__ = "1.7.0", "elsewhere/mxnet/__init__.py"
    monkeypatch.setitem(sys.modules, "mxnet", other)
    with pytest.raises(MXNetError, match="elsewhere.*before the first"):
        install_as_mxnet()


def test_nothing_is_loaded_before_it_is_asked_for():
    code = (
        "import sys; from mxcore.compat import install_as_mxnet; install_as_mxnet(); import mxnet as mx; "
        "print([m for m in sys.modules if m.startswith(('mxcore.gluon', 'mxcore.ndarray', 'numba'))])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
