"""Where the library comes from, and what holds where it cannot be used."""

import ctypes.util
import functools
import logging
import os
import subprocess
import sys

import pytest

from mxcore.plugin import processors
from mxcore_onednn import library, mxcore_report

if library.library() is None:
    pytest.skip(f"oneDNN: {library.reason()}", allow_module_level=True)

PROGRAM = """
import mxcore as mx, numpy as np
from mxcore_onednn import library
x = mx.nd.array(np.arange(32).reshape(1, 2, 4, 4))
y = mx.nd.Convolution(x, mx.nd.ones((3, 2, 3, 3)), kernel=(3, 3), num_filter=3, no_bias=True)
print(y.asnumpy()[0, 0].tolist(), "|", library.library() is not None, "|", library.reason())
"""


def program(value):
    """What it prints where the variable has a value."""
    env = {**os.environ, library.VARIABLE: value}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "value, text",
    [
        ("", "True |"),
        ("1", "True |"),
        ("0", "False | MXCORE_ONEDNN is 0"),
        ("/nowhere/libdnnl.so", "False | /nowhere/libdnnl.so: "),
    ],
)
def test_the_variable_decides(value, text):
    found = program(value)
    assert found.startswith("[[234.0, 252.0], [306.0, 324.0]] | ") and text in found


def test_what_is_no_library_of_version_three(monkeypatch):
    path = ctypes.util.find_library("m")
    with pytest.raises(AttributeError, match="dnnl_"):
        library.Library(path)
    real = library.Library(library.found())
    assert real.version[0] == 3
    monkeypatch.setattr(library, "ISA_AVX2", 1 << 30)
    with pytest.raises(library.Refused, match="no AVX2"):
        library.Library(library.found())


def test_another_version_is_refused(monkeypatch):
    real, path = ctypes.CDLL, library.found()

    def older(*args):
        dll = real(*args)
        monkeypatch.setattr(dll, "dnnl_version", Two())
        return dll

    class Two:
        def __call__(self):
            return ctypes.pointer((ctypes.c_int * 3)(2, 7, 1))

    monkeypatch.setattr(ctypes, "CDLL", older)
    with pytest.raises(library.Refused, match="oneDNN 3 is needed, this is 2.7.1"):
        library.Library(path)


class _Foreign:
    """A device 'cpu' of another plugin, which says nothing of threads and BLAS."""

    def __init__(self, host):
        self.host = host


@pytest.fixture
def foreign(monkeypatch):
    """Let such a device be there, and the library be looked for again."""

    def use(host):
        monkeypatch.setattr(library, "_device", lambda: _Foreign(host))

    caches = library.threads, library.blas_core, library.library
    before = library._reason
    for cached in caches:
        monkeypatch.setattr(library, cached.__name__, functools.cache(cached.__wrapped__))
    yield use
    library._reason = before


def test_a_device_that_says_nothing_of_threads(foreign):
    foreign(host=True)
    assert library.library() is not None and library.blas_core() == ""
    assert library.threads().count() == processors()


def test_a_device_without_arrays_of_numpy(foreign, caplog):
    foreign(host=False)
    with caplog.at_level(logging.INFO, "mxcore"):
        assert library.library() is None
    assert library.reason().endswith(f"arrays of device 'cpu' of {__name__} are not NumPy's")
    assert [r.levelname for r in caplog.records] == ["INFO"]
    assert mxcore_report() == [f"oneDNN: not used, {library.reason()}"]


@pytest.mark.parametrize("value, level", [("", "INFO"), ("1", "INFO"), (None, "INFO"), ("named", "WARNING")])
def test_who_has_named_a_library_is_told_that_it_is_not_used(foreign, monkeypatch, caplog, value, level):
    if value is None:
        monkeypatch.delenv(library.VARIABLE, raising=False)
    else:
        monkeypatch.setenv(library.VARIABLE, str(library.found()) if value == "named" else value)
    monkeypatch.setattr(library, "ISA_AVX2", 1 << 30)
    with caplog.at_level(logging.INFO, "mxcore"):
        assert library.library() is None and library.library() is None
    assert [r.levelname for r in caplog.records] == [level] and "no AVX2" in caplog.text
    assert "no AVX2" in mxcore_report()[0]


@pytest.mark.parametrize("value, why", [("0", "is 0"), ("off", "is off"), ("1", "is not installed")])
def test_why_there_is_none(foreign, monkeypatch, value, why):
    monkeypatch.setenv(library.VARIABLE, value)
    monkeypatch.setattr(library, "_WHEEL", "no-such-wheel")
    assert library.library() is None and library.reason().endswith(why)
    assert mxcore_report() == [f"oneDNN: not used, {library.reason()}"]


def test_refusals_say_what_was_asked_for():
    with pytest.raises(library.Refused, match="oneDNN: memory_desc_create_with_tag: invalid arguments"):
        library.library().new("memory_desc_create_with_tag", 99, None, 3, 1)


@pytest.mark.parametrize("said, kept", [(None, library._KEPT), ("7", 7)])
def test_the_library_keeps_few_primitives_unless_told(said, kept):
    env = {k: v for k, v in os.environ.items() if not k.endswith("_PRIMITIVE_CACHE_CAPACITY")}
    env |= {} if said is None else {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": said}
    program = (
        "from ctypes import byref, c_int; from mxcore_onednn.library import library; n = c_int(); "
        "library().openmp.dnnl_get_primitive_cache_capacity(byref(n)); print(n.value)"
    )
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == str(kept), done.stderr
