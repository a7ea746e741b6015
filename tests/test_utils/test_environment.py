"""Contexts, environment variables, retries, features, generators of random numbers."""

import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import mxcore as mx

t = mx.test_utils


def test_default_context():
    assert t.default_context() is mx.cpu(0) and t.current_context() is mx.cpu(0)
    try:
        t.set_default_context(mx.cpu(2))
        t.set_default_context("cpu")
        t.set_default_context(mx.cpu(3))
        assert t.default_context() is mx.current_context() is mx.nd.ones((1,)).context is mx.cpu(3)
        with mx.cpu(1):
            assert t.default_context() is mx.cpu(1)
            t.set_default_context(mx.cpu(4))
            assert t.default_context() is mx.cpu(1)
        assert t.default_context() is mx.cpu(4)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(mx.current_context()))
        thread.start()
        thread.join()
        assert seen == [mx.cpu(0)]
    finally:
        t.set_default_context(mx.cpu(0))
    assert mx.current_context() is mx.cpu(0)


def test_the_default_context_is_an_attribute_of_the_class():
    assert mx.Context.default_ctx is mx.cpu(0)
    with mx.cpu(1):
        assert mx.Context.default_ctx is mx.cpu(1)
    try:
        mx.Context.default_ctx = mx.cpu(2)
        assert mx.nd.ones((1,)).context is mx.Context.default_ctx is mx.cpu(2)
    finally:
        mx.Context.default_ctx = mx.cpu(0)
    assert mx.current_context() is mx.cpu(0)


def test_environment(monkeypatch):
    monkeypatch.setenv("MXCORE_T_A", "old")
    monkeypatch.delenv("MXCORE_T_B", raising=False)
    with t.environment("MXCORE_T_A", "new") as nothing:
        assert nothing is None and os.environ["MXCORE_T_A"] == t.getenv("MXCORE_T_A") == "new"
    with pytest.raises(KeyError), t.environment({"MXCORE_T_A": None, "MXCORE_T_B": "3"}):
        assert t.getenv("MXCORE_T_A") is None and t.getenv("MXCORE_T_B") == "3"
        raise KeyError
    assert t.getenv("MXCORE_T_A") == "old" and t.getenv("MXCORE_T_B") is None
    for args in ((), ("A",), ("A", "b", "c")):
        with pytest.raises(AssertionError, match="a dict, or a name and a value"), t.environment(*args):
            pass
    with pytest.raises(TypeError, match="MXCORE_T_B"), t.environment({"MXCORE_T_A": "x", "MXCORE_T_B": 3}):
        pass
    assert t.getenv("MXCORE_T_A") == "old"


def test_setenv():
    t.setenv("MXCORE_T_C", "1")
    assert os.environ["MXCORE_T_C"] == "1"
    t.setenv("MXCORE_T_C", None)
    t.setenv("MXCORE_T_C", None)
    assert t.getenv("MXCORE_T_C") is None


def test_stderr_is_discarded_for_everybody(capfd):
    os.write(2, b"before ")
    with t.discard_stderr():
        os.write(2, b"inside ")
        print("printed", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-c", "import sys; sys.stderr.write('child')"], check=True)
    os.write(2, b"after")
    seen = capfd.readouterr().err
    assert "before" in seen and "after" in seen and "inside" not in seen and "child" not in seen


def test_retry():
    tries = []

    def flaky(good):
        tries.append(1)
        assert len(tries) >= good, f"try {len(tries)}"
        return "done"

    assert t.retry(3)(flaky)(3) == "done" and len(tries) == 3
    tries.clear()
    with pytest.raises(AssertionError, match="try 2"):
        t.retry(2)(flaky)(3)
    tries.clear()

    @t.retry(5)
    def other():
        tries.append(1)
        raise ValueError("no assertion")

    with pytest.raises(ValueError):
        other()
    assert len(tries) == 1 and other.__name__ == "other"
    with pytest.raises(AssertionError, match="1 or more, got 0"):
        t.retry(0)


def test_what_is_there(monkeypatch):
    assert t.list_gpus() == list(range(mx.num_gpus()))
    assert t.has_tvm_ops() is False and t.is_op_runnable() is True
    for value, there in (("1", True), ("0", False), (None, False)):
        with t.environment("CD_JOB", value):
            assert t.is_cd_run() is there
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert t.is_aarch64_run() is True
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert t.is_aarch64_run() is False


def test_compute_capability(monkeypatch):
    with pytest.raises(ValueError, match=r"got cpu\(0\)"):
        t.get_cuda_compute_capability(mx.cpu())
    gpus = SimpleNamespace(Device=lambda i: SimpleNamespace(compute_capability=("80", "90")[i]))
    device = SimpleNamespace(xp=SimpleNamespace(cuda=gpus))
    monkeypatch.setattr(mx.Context, "device", property(lambda ctx: device))
    assert [t.get_cuda_compute_capability(mx.gpu(i)) for i in range(2)] == [80, 90]


def test_use_np():
    @t.use_np
    def shapes():
        return mx.util.is_np_shape()

    @t.use_np
    class Holder:
        number = 3

        def shapes(self):
            return mx.util.is_np_shape()

    assert shapes() is True and Holder().shapes() is True and Holder.number == 3
    assert mx.util.is_np_shape() is False


def test_names_from_elsewhere():
    assert (
        t.Context is mx.Context
        and t.Symbol is mx.sym.Symbol
        and t.array is mx.nd.array
        and t.Features is mx.runtime.Features
    )


# -- features --------------------------------------------------------------------------------------------------------
def test_features():
    features = mx.runtime.Features()
    assert mx.runtime.Features() is features is mx.runtime.Features.instance
    assert len(features) == 32 and list(features)[:2] == ["CUDA", "CUDNN"]
    assert [f.name for f in mx.runtime.feature_list()] == list(features)
    assert (
        features.is_enabled("lapack") and features["LAPACK"].enabled is True and str(features["LAPACK"]) == "✔ LAPACK"
    )
    assert not features.is_enabled("MKLDNN") and str(features["MKLDNN"]) == "✖ MKLDNN"
    with pytest.raises(RuntimeError, match="'NOPE' is unknown"):
        features.is_enabled("NOPE")


def test_features_tell_what_is_installed(monkeypatch):
    found = {f.name: f.enabled for f in mx.runtime.feature_list()}
    assert found["OPENCV"] and found["OPENMP"] and found["CUDA"] == (mx.runtime.tables.devices.find("gpu") is not None)
    monkeypatch.setattr(mx.runtime, "_installed", lambda module: False)
    monkeypatch.setattr(mx.runtime, "_blas", lambda: "mkl-sdl")
    monkeypatch.setattr(mx.runtime, "_processor", lambda: {"AVX2": True, "AVX": False})
    found = {f.name: f.enabled for f in mx.runtime.feature_list()}
    assert not found["OPENCV"] and not found["OPENMP"] and found["BLAS_MKL"] and not found["BLAS_OPEN"]
    assert found["CPU_AVX2"] and not found["CPU_AVX"] and not found["CPU_SSE"]


# -- generators of random numbers ------------------------------------------------------------------------------------
@pytest.fixture
def draw():
    return np.random.RandomState(3)


HALVES = [(0, 0.5), (0.5, 1)]


def test_generators(draw):
    ps = t.verify_generator(lambda n: draw.uniform(size=n), HALVES, [0.5, 0.5], nsamples=3000)
    assert len(ps) == 5
    t.verify_generator(lambda n: draw.randint(3, size=n), [0, 1, 2], [1 / 3] * 3, nsamples=3000, nrepeat=2)
    mx.random.seed(1)
    t.verify_generator(lambda n: mx.nd.random.uniform(shape=(n,)), HALVES, [0.5, 0.5], nsamples=3000)
    with pytest.raises(AssertionError, match=r"0 of 5 chi-square tests have p > 0.05.*obs_freq"):
        t.verify_generator(lambda n: draw.uniform(size=n) ** 2, HALVES, [0.5, 0.5], nsamples=3000)
    with pytest.raises(AssertionError, match="2 of 3|1 of 3|0 of 3"):
        t.verify_generator(
            lambda n: draw.uniform(size=n), HALVES, [0.5, 0.5], nsamples=3000, nrepeat=3, success_rate=1, alpha=0.999
        )


def test_chance_is_that_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    from mxcore.test_utils.generators import _chance

    for x in (0.0, 1e-9, 0.3, 4.0, 70.0, 900.0):
        for k in (1, 2, 3, 8, 99, 1000):
            np.testing.assert_allclose(_chance(x, k), stats.chi2.sf(x, k), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize(
    ("kind", "match", "buckets", "probs"),
    [
        (AssertionError, "0 buckets and 0", [], []),
        (AssertionError, "1 buckets and 2", [(0, 1)], [0.5, 0.5]),
        (AssertionError, "ascending order", HALVES[::-1], [0.5, 0.5]),
        (AssertionError, "ascending order", [(0, 0.6), (0.5, 1)], [0.5, 0.5]),
        (AssertionError, "different values", [1, 1], [0.5, 0.5]),
        (ValueError, "1 in all", HALVES, [0.5, 0.2]),
        (ValueError, "fall into none of the 2 buckets", [(0, 0.25), (0.5, 1)], [0.5, 0.5]),
    ],
)
def test_bad_buckets(draw, kind, match, buckets, probs):
    with pytest.raises(kind, match=match):
        t.chi_square_check(lambda n: draw.uniform(size=n), buckets, probs, nsamples=100)


def test_samples_that_are_not_what_was_asked_for(draw):
    with pytest.raises(ValueError, match="gave 99 samples when 100"):
        t.chi_square_check(lambda n: draw.uniform(size=n - 1), HALVES, [0.5, 0.5], nsamples=100)
    with pytest.raises(ValueError, match="such as 3"):
        t.chi_square_check(lambda n: np.full(n, 3), [0, 1], [0.5, 0.5], nsamples=100)
    assert t.chi_square_check(lambda n: np.arange(n) % 2, [0, 1], [1.0, 0.0], nsamples=100)[0] == 0


def test_moments(draw):
    assert t.mean_check(lambda n: draw.normal(size=n), 0, 1, 20000) is True
    assert t.mean_check(lambda n: draw.normal(size=n) + 0.1, 0, 1, 20000) is False
    assert t.var_check(lambda n: draw.normal(size=n), 1, 20000) is True
    assert t.var_check(lambda n: draw.normal(size=n) * 1.1, 1, 20000) is False


def test_the_package_is_lazy():
    code = (
        "import sys, mxcore; n = 'mxcore.test_utils' in sys.modules; mxcore.test_utils; "
        "print(n, [m for m in ('scipy', 'numba', 'cv2', 'mxcore.gluon', 'mxcore.optimizer') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False []"
