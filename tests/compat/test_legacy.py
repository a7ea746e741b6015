"""Names that newer Python and NumPy removed."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

from mxcore.compat import legacy, stdlib

SCRIPT = """
import collections, fractions, inspect, os, threading, time
import numpy as np
from mxcore.compat import legacy_names

names = legacy_names()
assert legacy_names() == [], "a second call finds nothing missing"
assert np.float is float and np.int is int and np.object is object and np.str is str
assert np.array([True]).dtype == np.bool
assert np.float_ is np.float64 and np.NaN != np.NaN and np.Inf == -np.NINF == np.inf
assert np.product([2, 3]) == 6 and np.sometrue([0, 1]) and not np.alltrue([0, 1])
assert np.asscalar(np.array([3.5])) == 3.5 and type(np.asscalar(np.array([3]))) is int
assert np.in1d([1, 5], [5]).tolist() == [False, True] and np.trapz([1, 1]) == 1
assert np.row_stack([[1], [2]]).shape == (2, 1) and np.asfarray([1], int).dtype == np.float64
assert isinstance({}, collections.Mapping) and issubclass(list, collections.Iterable)
assert callable(collections.Callable) and collections.OrderedDict
assert fractions.gcd(4, 6) == 2 and os.errno.ENOENT == 2
assert not threading.Thread().isAlive() and time.clock() <= time.clock()
assert inspect.getargspec(lambda a, b=1, *c, **d: 0) == (["a", "b"], "c", "d", (1,))
import distutils.util, distutils.version, imp, xml.etree.cElementTree as ET
assert distutils.version.LooseVersion("1.10") > distutils.version.LooseVersion("1.9.1")
assert distutils.util.strtobool("Yes") == 1 and ET.fromstring("<a/>").tag == "a"
assert imp.reload(fractions) is fractions
import base64, configparser
assert base64.encodestring(b"a") == b"YQ==\\n" and configparser.SafeConfigParser, "modules that are imported later"
print(len(names))
"""


def test_names_are_put_back_for_a_process():
    out = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert int(out.stdout) > 30


def test_existing_names_are_left_alone():
    owner = type("Owner", (), {"kept": 1})
    assert legacy._add(owner, {"kept": 2, "lost": 3}) == [f"{__name__}.Owner.lost"]
    assert owner.kept == 1 and owner.lost == 3


def test_this_process_is_untouched():
    assert "float" not in vars(np) and "Mapping" not in vars(importlib.import_module("collections"))


@pytest.mark.parametrize(
    "older, newer",
    [("1.9.1", "1.10"), ("1.5", "1.5.1"), ("2.0.rc1", "2.0.1"), ("1.5.1.post0", "1.6"), ("0.8.0", "0.8.0b1")],
)
def test_loose_versions_compare_by_part(older, newer):
    V = stdlib.LooseVersion
    assert V(older) < V(newer) and V(newer) >= V(older) and V(older) < newer and V(older) == V(older)
    assert str(V(older)) == older


def test_strict_versions():
    V = stdlib.StrictVersion
    assert V("1.2a1") < V("1.2b1") < V("1.2") == V("1.2.0") < V("1.2.1")
    with pytest.raises(ValueError, match="1.2.3.4"):
        V("1.2.3.4")


@pytest.mark.parametrize("text, value", [("y", 1), ("TRUE", 1), ("1", 1), ("off", 0), ("No", 0)])
def test_strtobool(text, value):
    assert stdlib.strtobool(text) == value


def test_strtobool_refuses_other_words():
    with pytest.raises(ValueError, match="perhaps"):
        stdlib.strtobool("perhaps")


def test_folders(tmp_path):
    made = stdlib.mkpath(str(tmp_path / "a" / "b"))
    assert made == [str(tmp_path / "a"), str(tmp_path / "a" / "b")] and stdlib.mkpath(made[1]) == []
    (tmp_path / "a" / "b" / "f").write_text("x")
    assert stdlib.copy_tree(str(tmp_path / "a"), str(tmp_path / "c")) == [str(tmp_path / "c" / "b" / "f")]
    assert (tmp_path / "c" / "b" / "f").read_text() == "x"


def test_load_source(tmp_path):
    (tmp_path / "conf.py").write_text("value = 3\n")
    module = stdlib.load_source("legacy_conf", str(tmp_path / "conf.py"))
    assert module.value == 3 and sys.modules.pop("legacy_conf") is module
    with pytest.raises(ImportError, match="conf.txt"):
        stdlib.load_source("x", str(tmp_path / "conf.txt"))


def test_getargspec_refuses_what_it_cannot_say():
    with pytest.raises(ValueError, match="signature"):
        stdlib.getargspec(lambda *, a: a)


@pytest.mark.parametrize("name", [*sorted(legacy._LOST), *sorted(legacy._MOVED)])
def test_every_lost_module_can_be_made(name):
    finder = legacy._LostModules()
    spec = finder.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    finder.exec_module(module)
    assert set(stdlib.MODULES[name]() if name in legacy._LOST else {"__doc__"}) <= set(vars(module))
    assert (spec.submodule_search_locations is not None) == (name == "distutils")


def test_other_modules_are_not_lost():
    assert legacy._LostModules().find_spec("numpy") is None and set(stdlib.MODULES) == legacy._LOST
