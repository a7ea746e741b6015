"""The plugin, also where its entry point is not installed; nothing here runs without the library."""

import pytest

import mxcore
import mxcore_onednn
from mxcore._core.manager import manager
from mxcore_onednn import (
    convolutions,
    library,
    normalization,
    pointwise,
    products,
    recurrent,
    response,
    softmax,
    windows,
)

if library.library() is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def provider():
    """The plugin is loaded; its kernels go before others."""
    manager.load()
    known = "cpu_onednn" in manager.origin
    if not known:
        manager.register(mxcore_onednn, "cpu_onednn")
    yield
    if not known:
        manager.unregister("cpu_onednn")


@pytest.fixture
def no_plans_are_left():
    """What a test lets plans do is not found by the next one."""
    from tests.cpu_onednn.support import forget

    yield
    mxcore.nd.waitall()
    forget()


@pytest.fixture
def always(monkeypatch):
    """The library computes whatever it can, fast or not."""
    monkeypatch.setattr(convolutions, "pays", lambda isa, piece, g: True)
    monkeypatch.setattr(recurrent, "recurs", lambda isa, layer: True)
    monkeypatch.setattr(products, "multiplies", lambda isa, dtype, *facts: dtype == "float32")
    monkeypatch.setattr(products, "worth", lambda isa, *facts: True)
    monkeypatch.setattr(windows, "pools", lambda isa, kind, window, stride: True)
    monkeypatch.setattr(recurrent, "_FEW_STEPS", 0)
    for module in (normalization, pointwise, response, softmax, windows):
        monkeypatch.setattr(module, "narrows", lambda isa, work: True)
