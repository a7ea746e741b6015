"""Products with packed matrices: every shape and order of both factors, whatever vectors the processor has."""

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mxcore_cpu import blas, threads
from mxcore_cpu.kernels import packed, rnn
from mxcore_cpu.native import driver, products

pytestmark = pytest.mark.skipif(not packed.address(np.dtype("f4")), reason="no AVX2 and FMA, or no GNU OpenMP")
TOLERANCE = {"f4": 2e-6, "f8": 4e-15}
SIDES = st.one_of(st.integers(1, 40), st.sampled_from([47, 48, 49, 95, 96, 97, 128, 130, 257]))
DEPTHS = st.one_of(st.integers(1, 40), st.sampled_from([1023, 1024, 1025, 2050]))


@pytest.fixture(params=[512, 256])
def bits(request, monkeypatch):
    """Vectors of so many bits; where the processor has shorter ones LLVM makes two of each."""
    monkeypatch.setattr(products, "bits", lambda: request.param)
    return request.param


def numbers(shape, dtype, seed, order):
    a = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    return a if order == "C" else np.asfortranarray(a)


def check(a, b, add=False, gap=3):
    """With something behind each row of the result that must stay as it is."""
    (m, k), n = a.shape, b.shape[1]
    whole = np.full((m, n + gap), 7, a.dtype)
    packed.product(a, b, whole[:, :n], add)
    exact = a.astype("f8") @ b.astype("f8") + (7 if add else 0)
    bound = TOLERANCE[a.dtype.str[1:]] * (np.abs(a).astype("f8") @ np.abs(b).astype("f8") + 7 + np.sqrt(k))
    assert (np.abs(whole[:, :n] - exact) <= bound).all() and (whole[:, n:] == 7).all()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    m=SIDES, n=SIDES, k=DEPTHS, dtype=st.sampled_from(["f4", "f8"]), orders=st.tuples(*[st.sampled_from("CF")] * 2),
    add=st.booleans(), parts=st.integers(1, 5), seed=st.integers(0, 99), long=st.booleans(),
)  # fmt: skip
def test_every_shape(bits, monkeypatch, m, n, k, dtype, orders, add, parts, seed, long):
    monkeypatch.setattr(packed, "_LARGE", 0)
    monkeypatch.setattr(packed, "_LONG", 0 if long else 1 << 60)
    monkeypatch.setattr(threads, "count", lambda: parts)
    a, b = numbers((m, k), dtype, seed, orders[0]), numbers((k, n), dtype, seed + 1, orders[1])
    check(a, b, add)


def test_what_is_not_finite_stays_where_it_is(bits):
    a, b = numbers((9, 20), "f4", 0, "C"), numbers((20, 50), "f4", 1, "C")
    a[3, 4], b[5, 49] = np.inf, np.nan
    out = np.empty((9, 50), "f4")
    packed.product(a, b, out)
    with np.errstate(invalid="ignore"):  # some BLAS tell
        expected = a @ b
    assert np.isnan(out[:, 49]).all() and np.array_equal(np.isfinite(out), np.isfinite(expected))


def test_a_packed_matrix_is_as_long_as_is_said(bits):
    for k, n, size in ((3, 1, 4), (5, 48, 4), (7, 50, 8), (2, 97, 4)):
        dtype = np.dtype(f"f{size}")
        out = np.full(packed.packed_size(k, n, dtype) + 4, 9, dtype)
        packed.pack(np.zeros((k, n), dtype), out)
        assert (out[-4:] == 9).all() and (out[:-4] == 0).all()


def test_parts_are_dealt_by_rows_and_by_columns(bits, monkeypatch):
    seen = []
    original = ctypes.c_int64 * 13

    def frame(*words):
        seen.append(words[-1])
        return original(*words)

    monkeypatch.setattr(packed, "_FRAME", frame)
    monkeypatch.setattr(packed, "_LARGE", 0)
    monkeypatch.setattr(threads, "count", lambda: 2)
    check(numbers((100, 30), "f4", 0, "C"), numbers((30, 20), "f4", 1, "C"))
    check(numbers((20, 30), "f4", 0, "C"), numbers((30, 100), "f4", 1, "C"))
    assert seen == [False, True]


def test_threads_multiply_at_once(monkeypatch):
    monkeypatch.setattr(packed, "_LARGE", 0)
    a, b = numbers((64, 300), "f4", 0, "C"), numbers((300, 200), "f4", 1, "F")
    first = np.empty((64, 200), "f4")
    packed.product(a, b, first)
    wrong = []

    def work():
        out = np.empty_like(first)
        for _ in range(50):
            packed.product(a, b, out)
            if not np.array_equal(out, first):
                wrong.append(out.copy())

    pool = [threading.Thread(target=work) for _ in range(4)]
    for t in pool:
        t.start()
    for t in pool:
        t.join()
    assert not wrong


def test_where_it_pays(monkeypatch):
    monkeypatch.setattr(driver, "usable", lambda: True)
    for core, wide, pays in (("Haswell", 512, True), ("SkylakeX", 512, False), ("", 512, False), ("Zen", 256, False)):
        monkeypatch.setattr(blas, "core", lambda core=core: core)
        monkeypatch.setattr(products, "bits", lambda wide=wide: wide)
        packed._wider_than_blas.cache_clear()
        assert packed.pays(np.dtype("f4"), 64, 64, 64) is pays
    monkeypatch.setattr(blas, "core", lambda: "Haswell")
    monkeypatch.setattr(products, "bits", lambda: 512)
    packed._wider_than_blas.cache_clear()
    assert [
        packed.pays(np.dtype(t), *s) for t, s in (("f4", (4, 64, 640)), ("f4", (16, 16, 16)), ("f2", (64, 64, 64)))
    ] == [False] * 3
    packed._wider_than_blas.cache_clear()


def test_without_it_recurrent_layers_leave_products_to_blas(monkeypatch):
    monkeypatch.setattr(rnn, "address_packed", lambda dtype: 0)
    net = rnn.Network("gru", 4, 4, 1, 2, (((0, (12, 3)), (40, (12, 4)), None, (0, (12,)), (0, (12,))),) * 2, None)
    job = rnn._Job(net, (2, 3, 3), np.arange(200, dtype="f4"), None)
    at, back, starts = job.states_by(0, False)
    assert at == 0 and back is job.vector and starts.tolist() == [40, 40]
    at, back, starts = job.states_by(0, True)
    assert at == 0 and np.array_equal(back[:48].reshape(4, 12), job.weights(0, 1).T) and starts.tolist() == [0, 48]


def test_code_is_made_without_numba(tmp_path):
    code = (
        "import sys, numpy as np; from mxcore_cpu.kernels import packed\n"
        "a = np.ones((20, 20), 'f4'); out = np.empty((20, 20), 'f4'); packed.product(a, a, out)\n"
        "assert (out == 20).all() and 'numba' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "MXCORE_CACHE_DIR": str(tmp_path)})
    assert done.returncode == 0
