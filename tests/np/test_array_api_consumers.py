"""SciPy, scikit-learn and array-api-compat take arrays of ``mx.np``: what works, and what does not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mxcore.ndarray.numpy import array_api as xp

#: What does not: name -> what is found in its place.
KNOWN = {
    "scipy": {
        "fft.fft": "mxcore has no complex numbers",
        "integrate.simpson": "numpy",  # not dispatched by SciPy: NumPy computes it on a copy
    },
    "sklearn": {
        "roc_auc_score": "diff() takes 1 positional argument"  # scikit-learn gives one by place that has a name only
    },
}


@pytest.mark.parametrize("library", KNOWN)
def test_libraries_take_arrays(library):
    version = pytest.importorskip(library).__version__
    known = {**KNOWN[library]}
    if tuple(map(int, version.split(".")[:2])) >= (1, 18):  # which dispatches it
        known.pop("integrate.simpson", None)
    env = {**os.environ, "SCIPY_ARRAY_API": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.np.consumers", library],
        cwd=Path(__file__).parents[2],
        env=env,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    wrong = {name: told for name, told in found.items() if told != "ok"}
    assert len(found) >= 20 and wrong.keys() == known.keys(), wrong
    for name, told in known.items():
        assert told in wrong[name]


def test_helpers_of_array_api_compat():
    compat = pytest.importorskip("scipy._lib.array_api_compat")
    x = xp.asarray([1.0, 2.0])
    assert compat.is_array_api_obj(x) and compat.array_namespace(x, xp.ones(1)) is xp
    assert compat.array_namespace(x, api_version="2024.12") is xp
    assert compat.device(x) == x.device and compat.to_device(x, x.device) is x and compat.size(x) == 2
    assert not (compat.is_numpy_array(x) or compat.is_torch_array(x)) and not compat.is_lazy_array(x)
    assert compat.is_writeable_array(x)
