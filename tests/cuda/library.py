"""A plugin of pytest's: the library's tests on emulated GPUs, or on those that there are.

::

    pytest -p tests.cuda.library tests/ndarray tests/gluon
    MXCORE_CUDA_TESTS=real pytest -p tests.cuda.library tests/ndarray tests/gluon

The default context is gpu(0), that of `Module` too, and where a test names ``mx.cpu(i)`` it gets gpu(i); real ones
begin again at 0 when they are out. Tests that cannot pass there stand in `library.txt` with their reasons: they are
expected to fail, and one that passes after all is a failure. With ``--share HEX`` a third of them is run.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace

import pytest

import mxcore as mx
import mxcore_cuda
from mxcore._core import context
from mxcore._core.manager import manager
from mxcore.gluon.parameter import parameter as parameters
from mxcore.module import module as modules
from tests.conftest import leave_to_others

#: Devices, as many as tests name.
GPUS = 8
REAL = os.environ.get("MXCORE_CUDA_TESTS") == "real"
LIST, REAL_LIST = (Path(__file__).with_name(name) for name in ("library.txt", "library_real.txt"))


def exceptions(file=LIST):
    """(test, reason) of each line; a test is a path below `tests` with ``::``, and ``*`` for anything."""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            test, _, reason = line.partition("  ")
            yield test, reason.strip()


def gpu_for(device_id=0):
    """What tests get for ``mx.cpu``."""
    return mx.gpu(device_id % mx.num_gpus() if REAL else device_id)


def pytest_configure(config):
    if not REAL:
        os.environ["MXCORE_CUDA_EMULATE"] = str(GPUS)
    manager.load()
    if "cuda" not in manager.origin:
        manager.register(mxcore_cuda, "cuda")
    context._default = mx.gpu(0)  # of all threads
    mx.cpu = gpu_for
    parameters.cpu = gpu_for
    modules._context = SimpleNamespace(cpu=gpu_for, Context=mx.Context)
    config.addinivalue_line("filterwarnings", r"ignore:Estimator. gpu\(0\) of \d+ GPUs is used:UserWarning")


def pytest_collection_modifyitems(config, items):
    leave_to_others(config, items, lambda item: True)  # the CPU has passed them all
    # Real ones are not known test by test: what cannot pass may, with more of them or other versions.
    known = [*exceptions()]
    if REAL:
        known = [(test, f"may pass: {reason}") for test, reason in (*known, *exceptions(REAL_LIST))]
    for item in items:
        name = item.nodeid.partition("tests/")[2]
        for test, reason in known:
            if fnmatchcase(name, test.replace("[", "[[]")):
                item.add_marker(pytest.mark.xfail(strict=not reason.startswith("may pass"), reason=reason))
                break
