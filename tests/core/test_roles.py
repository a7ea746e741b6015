"""What the core needs by contract, not by name: roles of operators, devices, dtypes and storage types of others."""

import subprocess
import sys

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import frontend, tables
from mxcore._core.graph import variable
from mxcore._core.params import as_dtype, more_dtypes
from mxcore._core.roles import ROLES
from mxcore.composing import GraphF, Value
from mxcore.plugin import MXNetError, op


def test_every_role_has_its_operator():
    assert {role: tables.roles.get(role).name for role in ROLES} == {
        "sum of gradients": "_grad_add",
        "zero gradient": "zeros_like",
        "unit gradient": "ones_like",
        "new array": "_copy",
        "other dtype": "Cast",
        "other storage type": "cast_storage",
        "other context": "_copyto",
        "other shape": "Reshape",
    }


def test_frontends_find_them():
    x = mx.nd.array([1, 2])
    assert frontend.eager.roles["sum of gradients"](x, x).asnumpy().tolist() == [2, 4]
    F = GraphF("n")
    assert F.roles["zero gradient"](Value((variable("x"), 0), F)).entry[0].op.name == "zeros_like"


def test_a_wrong_role_is_refused_at_declaration():
    with pytest.raises(
        MXNetError, match="operator bad: no role is named 'sum of gradient', did you mean 'sum of gradients'"
    ):
        op("bad", role="sum of gradient")(lambda k, p, data: data)


def test_two_operators_of_one_role_are_an_error_that_names_both(plug):
    adds = op("test_adds", inputs="a b", role="sum of gradients")(lambda k, p, a, b: a + b)
    with pytest.raises(MXNetError, match="role 'sum of gradients' of throwaway is already registered by mxcore core"):
        plug("throwaway", mxcore_ops=[adds])
    assert tables.roles.get("sum of gradients").name == "_grad_add"


def test_a_preference_gives_a_role_to_a_plugin_and_back(plug, monkeypatch):
    calls = []
    adds = op("test_adds", inputs="a b", role="sum of gradients", grad=lambda dy: (dy, dy))(
        lambda k, p, a, b: calls.append(1) or a + b
    )
    monkeypatch.setenv("MXCORE_PREFER", "throwaway")
    plug("throwaway", mxcore_ops=[adds])
    x = mx.nd.array([3.0])
    x.attach_grad()

    def gradient():
        with mx.autograd.record():
            y = x * x
        y.backward()
        return x.grad.asscalar()

    assert gradient() == 6 and calls == [1]
    from mxcore._core.manager import manager

    manager.unregister("throwaway")
    assert gradient() == 6 and calls == [1]


def alone(code, **env):
    """Run code in an interpreter without any plugin."""
    return subprocess.run(
        [sys.executable, "-c", code], env={"MXCORE_PLUGINS": "", **env}, capture_output=True, text=True
    )


def test_a_missing_role_says_what_it_is_for():
    done = alone(
        "from mxcore._core import tables\nimport mxcore.plugin\ntry:\n    tables.roles.get('new array')\nexcept "
        "KeyError as e:\n    print(e)"
    )
    assert done.stdout.strip().startswith(
        "no operator has the role 'new array' (x), its values in memory of their own"
    ), done.stderr


def test_the_core_alone_knows_no_device():
    done = alone(
        "from mxcore._core.context import Context, TYPE_IDS, current_context\n"
        "assert not TYPE_IDS and not Context.devtype2str\ntry:\n    current_context()\n"
        "except RuntimeError as e:\n    print(e)\nwith Context('board', 2):\n    print(current_context())\n"
        "from mxcore.context import Context\nprint(current_context(), Context(2).device_type, TYPE_IDS)"
    )
    assert done.stdout.splitlines() == [
        "there is no default context: no type of device is known; compute inside of `with Context(type):`",
        "board(2)",
        "cpu(0) gpu {'cpu': 1, 'gpu': 2, 'cpu_pinned': 3, 'cpu_shared': 5}",
    ], done.stderr


def test_dtypes_of_other_libraries_come_when_they_are_asked_for(monkeypatch):
    asked = []
    monkeypatch.setitem(more_dtypes, "test_half", lambda: asked.append(1) or np.float16)
    assert not asked and as_dtype("test_half") == np.float16 and asked
    with pytest.raises(TypeError, match="unknown dtype 'test_quarter'; use one of .*bfloat16, test_half"):
        as_dtype("test_quarter")


def test_bfloat16_without_its_package_says_what_to_install():
    code = (
        "import sys\nsys.modules['ml_dtypes'] = None\n"
        "import mxcore as mx\nfor f in (lambda: mx.nd.ones((2,), dtype='bfloat16'),):\n"
        "    try:\n        f()\n    except TypeError as e:\n        print(e)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "dtype bfloat16 needs the package ml_dtypes: pip install ml_dtypes" in done.stdout, done.stderr


def test_storage_types_are_those_that_have_a_class():
    bad = op("test_odd_storage")(lambda k, p, data: data)
    bad.storage(lambda p, stypes: ["block"])
    with pytest.raises(MXNetError, match="its storage rule returned .*; one of default, row_sparse, csr is needed"):
        bad(mx.nd.ones((2,)))
