"""Every house rule can fail: each checker meets a small wrong input, and a right one."""

import subprocess

import pytest

from . import asserts, budgets, docs, faces, files, imports, names


@pytest.mark.parametrize(
    "source, name, word",
    [
        ("import scipy", "mxcore._core.op", "scipy"),
        ("def f():\n    import numba", "mxcore._core.op", "numba"),
        ("from ..ops import nn", "mxcore._core.op", "mxcore.ops"),
        ("from mxcore import nd", "mxcore.ops.nn", "mxcore.nd"),
        ("from .. import gluon", "mxcore.ndarray.x", "mxcore.gluon"),
        ("import mxcore.cli", "mxcore.gluon.block", "mxcore.cli"),
        ("import mxcore_cpu", "mxcore.gluon.block", "mxcore_cpu"),
        ("from .testing.sample import Sample\nfrom .testing import kit", "mxcore.plugin", "testing.kit"),
    ],
)
def test_upward_imports_are_found(source, name, word):
    (complaint,) = imports.check_core(source, name)
    assert word in complaint and name in complaint


@pytest.mark.parametrize(
    "source, name",
    [
        ("import numpy, pluggy, threading\nfrom .errors import error", "mxcore._core.op"),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..ops import nn", "mxcore._core.op"),
        ("from .._core.op import op\nfrom ..base import error", "mxcore.ops.nn"),
        ("from ..ndarray import NDArray\nimport cv2", "mxcore.gluon.block"),
        ("from .. import nd, __version__\nfrom ..gluon import nn", "mxcore.cli.train"),
    ],
)
def test_downward_imports_pass(source, name):
    assert imports.check_core(source, name) == []


@pytest.mark.parametrize(
    "source",
    [
        "from mxcore._core import op",
        "import mxcore._core.op",
        "from mxcore import _core",
        "import mxcore_cpu",
        "from mxcore.ops import tile",
        "def f():\n    import mxcore.facets",
        "from mxcore.io.cursor import BatchCursor",
        "from mxcore.base import _Null",
        "from mxcore.drafts import Draft",
        "import mxcore as mx\nmx.nd._op_functions",
        "import mxcore as mx\nprint(mx.executor.fuse)",
    ],
)
def test_plugins_that_reach_inside_are_found(source):
    assert len(faces.check_plugin(source, "mxcore_io_rec.reader")) == 1


def test_plugins_may_use_public_faces():
    source = (
        "from mxcore.plugin import op\nimport mxcore as mx\nfrom .x import y\nimport mxcore_io_rec.z\n"
        "from mxcore.gluon import nn\nfrom mxcore.testing.conformance import check_op\nmx.nd.random.normal(0)\n"
        "from mxcore.drafts import Draft\nprint(mx.cpu().device_type, mx.__version__)"
    )
    assert faces.check_plugin(source, "mxcore_io_rec.reader", listed=["mxcore", "mxcore.drafts"]) == []


def test_the_table_of_modules_is_read():
    assert faces.listed("| `mxcore` | x |\n| `mxcore.io` | y |\n`mxcore.no`\n| `mxcore_x` |") == ["mxcore", "mxcore.io"]


def test_circles_are_found():
    def tree(package, *names):
        around = [*names, names[0]]
        return {f"{package}.{a}": (f"def f():\n    from . import {b}", False) for a, b in zip(around, around[1:])}

    (complaint,) = imports.check_circles(tree("mxcore.x", "a", "b", "c"))
    assert "mxcore.x.a, mxcore.x.b, mxcore.x.c" in complaint
    assert imports.check_circles(tree("mxcore.x", "a", "b")) == []
    assert len(imports.check_circles(tree("mxcore._core", "a", "b"))) == 1
    straight = {"mxcore.x.a": ("from . import b\nfrom .c import d", False), "mxcore.x.b": ("from .c import d", False)}
    assert imports.check_circles({**straight, "mxcore.x.c": ("import numpy", False)}) == []


def taken(source, modules):
    return imports.check_private("mxcore.p.a", imports.private_uses(source, "mxcore.p.a", modules))


@pytest.mark.parametrize(
    "source",
    [
        "from .b import _x",
        "def f():\n    from mxcore.p.b import _x",
        "from . import b\nb._x()",
        "import mxcore.p.b as c\nc._x()",
        "import mxcore.p.b\nmxcore.p.b._x()",
    ],
)
def test_underscored_names_of_other_modules_are_found(source):
    (complaint,) = taken(source, {"mxcore.p.a", "mxcore.p.b"})
    assert "mxcore.p.a:" in complaint and "mxcore.p.b._x" in complaint


@pytest.mark.parametrize(
    "source",
    [
        "from .b import x, _set_value",
        "from . import _c\n_c.x()",
        "from .. import p\np._c.x()",
        "from .b import __doc__\nself._x = b._x",
        "from numpy import _x",
    ],
)
def test_public_names_and_underscored_modules_pass(source):
    assert taken(source, {"mxcore.p", "mxcore.p.a", "mxcore.p.b", "mxcore.p._c"}) == []


def test_code_lines_counts_code_only():
    head = '"""Doc.\n\nMore."""\n\n# note\nx = (1,\n     2)  # why\n\n'
    source = head + 'def f():\n    """Doc."""\n    return "a"\n'
    assert budgets.code_lines(source) == 3


def test_budgets_are_enforced():
    assert budgets.check_budgets({"a": 400, "b": 10}, 150) == []
    (module,) = budgets.check_budgets({"a": 401}, 1)
    assert "_core/a" in module and "401" in module
    assert len(budgets.check_budgets({str(i): 400 for i in range(8)}, 1)) == 1
    assert len(budgets.check_budgets({}, 151)) == 1


def test_hooks_need_contract_and_test():
    good = 'def mxcore_x():\n    """Return the things that it brings."""'
    assert docs.check_hooks(good, "uses mxcore_x here") == []
    assert len(docs.check_hooks(good, "uses mxcore_xy here")) == 1
    assert len(docs.check_hooks("def mxcore_x():\n    pass", "mxcore_x")) == 1


def test_operators_need_samples_and_words():
    assert docs.check_op("f", "Scale `data` by `factor`.", ["data", "factor"], 1) == []
    assert docs.check_op("f", "Scale data.", ["data", "factor"], 1) == [
        "operator f: its docstring does not name factor"
    ]
    assert len(docs.check_op("f", "", ["data"], 0)) == 2
    assert len(docs.check_op("f", "Scale data by refactoring.", ["data", "factor"], 0)) == 2


@pytest.mark.parametrize(
    "source",
    [
        "def f(): pass",
        '"""M."""\ndef f(): pass',
        '"""M."""\nclass C:\n    """C."""\n    def m(self): pass',
        '"""M."""\nclass C:\n    """C."""\n    def __init__(self):\n        """No."""',
        '"""M."""\nclass B:\n    """B."""\nclass C(B):\n    """C."""\n    def m(self): pass',
    ],
)
def test_missing_docstrings_are_found(source):
    assert docs.check_docstrings({"m": source})


def test_documented_and_inherited_names_pass():
    source = (
        '"""M."""\ndef f():\n    """F."""\ndef _g(): pass\n@mx.hookimpl\ndef mxcore_ops(): pass\n'
        'class B:\n    """B."""\n    def m(self):\n        """M."""\n'
        'class C(B):\n    """C."""\n    def __init__(self): pass\n    def m(self): pass\n'
        'class D(C):\n    """D."""\n    def m(self): pass\n    def _n(self): pass\n'
    )
    assert docs.check_docstrings({"m": source}) == []


def test_silent_tests_are_found():
    silent = "def test_a():\n    f()\ndef test_b():\n    helper()\ndef helper():\n    print(1)"
    assert [c.split()[1] for c in asserts.check_tests(silent, "t")] == ["test_a", "test_b"]


def test_tests_that_can_fail_pass():
    loud = (
        "def test_a():\n    assert f()\ndef test_b():\n    with pytest.raises(E):\n        f()\n"
        "def test_c():\n    helper()\ndef helper():\n    inner()\ndef inner():\n    assert 1\n"
        "def test_d():\n    check_consistency(x)\n"
    )
    assert asserts.check_tests(loud, "t") == []


@pytest.mark.parametrize("text", ["see https://pypi" + ".org/x", "/roo" + "t/x", "# TO" + "DO: x", "/home/" + "me/x"])
def test_forbidden_words_are_found(text):
    (complaint,) = files.check_words("fine\n" + text, "f.txt")
    assert complaint.startswith("f.txt:2 ")


def test_ordinary_words_pass():
    work = "work"
    text = f"s3://bucket/home/x pip install x; ~/{work}/x and frame/{work}/x; mastodon"
    assert files.check_words(text, "f") == []


@pytest.mark.parametrize("git", [True, False])
def test_environments_inside_are_not_read(git, tmp_path, monkeypatch):
    """Whatever they are called."""
    for name in ("a.py", "mine/pyvenv.cfg", "mine/lib/b.py", "c/d.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    if git:
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setattr(files, "ROOT", tmp_path)
    assert [str(p.relative_to(tmp_path)) for p in sorted(files.tracked())] == ["a.py", "c/d.py"]


def test_versions_must_agree():
    assert files.check_versions({"a": "1.0", "b": "1.0"}) == []
    assert files.check_versions({"a": "1.0", "b": "1.1"}) == ["b says '1.1', a says '1.0'"]


@pytest.mark.parametrize(
    "source, name",
    [
        ("op = ops.get('_grad_add')", "_grad_add"),
        ("def f(F, x):\n    return F.zeros_like(x)", "zeros_like"),
        ("g = frontend.eager._copy(g)", "_copy"),
        ("g = GraphF('n').zeros_like(v)", "zeros_like"),
        ("_CPU = Context('cpu', 0)", "cpu"),
        ("_SOME = frozenset('one _copy other'.split())", "_copy"),
    ],
)
def test_names_in_the_core_are_found(source, name):
    known = {"_grad_add", "zeros_like", "_copy", "cpu", "where"}
    (complaint,) = names.check_core_names(f'"""_copy"""\n{source}', "tape", known)
    assert repr(name) in complaint and "_core/tape" in complaint
    assert (
        names.check_core_names('def f(x):\n    """_copy"""\n    return x.zeros_like + g.roles[\'copy\']', "tape", known)
        == []
    )


@pytest.mark.parametrize(
    "source",
    [
        "if n.op.name == 'my_op':\n    pass",
        "n.op.name in _SOME",
        "if (n.op.name, j) != (x, 0):\n    pass",
        "op.name not in _SOME",
        "_SOME = {'tanh': 1}",
    ],
)
def test_names_in_passes_are_found(source):
    assert len(names.check_passes(source, "executor/fuse", {"tanh"})) == 1
    assert (
        names.check_passes("if op.facets.get('expr') or n.name == m.name:\n    pass", "executor/fuse", {"tanh"}) == []
    )
