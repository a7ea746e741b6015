"""Bad input: a driver that is missing or old, indices out of range, values that are no numbers, arrays of any size.

What else may be wrong is tested with its subject: absence by choice, gpu(9), arrays of two devices and use after a fork
in `test_device`; missing libraries and caches in `test_libraries`; what does not compile in `test_sources` and
`test_rtc`, where wrong signatures are; no memory in `test_memory`; illegal addresses in `test_faults`. Empty arrays are
in `test_empty` for the operators that have kernels; the conformance kit runs all operators without rows.
"""

import ctypes
import importlib.metadata
import importlib.util

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore.plugin import Spec, find_op
from mxcore_cuda import probe
from mxcore_cuda.bindings import gpu
from mxcore_cuda.launching import Kernel
from mxcore_cuda.sources import Code


# -- the driver --------------------------------------------------------------------------------------------------------
@pytest.fixture
def machine(monkeypatch):
    """A machine with a driver of so many GPUs, or an error of its, and so many CuPys; returns what is said."""
    monkeypatch.delenv("MXCORE_CUDA_EMULATE", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    class Driver:
        def __init__(self, found):
            self.found = found

        def count(self):
            if isinstance(self.found, Exception):
                raise self.found
            return self.found

    def said(found=1, library=True, cupys=("cupy-cuda13x",)):
        def load(name):
            if not library:
                raise OSError(name)

        def distribution(name):
            if name not in cupys:
                raise importlib.metadata.PackageNotFoundError(name)

        monkeypatch.setattr(ctypes, "CDLL", load)
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: cupys or None)
        monkeypatch.setattr(importlib.metadata, "distribution", distribution)
        monkeypatch.setattr(probe, "driver", lambda: Driver(found))
        forget_again()
        return probe.count(), probe.why()

    def forget_again():
        for fn in (probe.absence, probe._counted):
            fn.cache_clear()

    yield said
    forget_again()


class Refusal(RuntimeError):
    """As CuPy raises what CUDA refuses."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


@pytest.mark.parametrize(
    "how, reason",
    [
        ({"library": False}, "there is no NVIDIA driver"),
        ({"cupys": ()}, r"there is a driver but no CuPy: pip install 'mxcore-cuda\[cuda13\]'"),
        ({"cupys": ("cupy-cuda12x", "cupy-cuda13x")}, "cupy-cuda12x and cupy-cuda13x overwrite each other: uninstall"),
        ({"found": 0}, "the driver finds no GPU"),
        (
            {"found": Refusal(35, "cudaErrorInsufficientDriver: CUDA driver version is insufficient")},
            r"cudaErrorInsufficientDriver.*; update the NVIDIA driver, or .*mxcore-cuda\[cuda12\]",
        ),
        ({"found": Refusal(999, "cudaErrorUnknown: unknown error")}, "Refusal: cudaErrorUnknown: unknown error$"),
        ({"found": ImportError("libcuda.so.1:\n broken")}, "ImportError: libcuda.so.1: broken$"),
    ],
)
def test_drivers_that_are_missing_old_or_broken(machine, how, reason):
    count, said = machine(**how)
    assert count == 0
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(said)


def test_a_driver_that_is_there(machine):
    assert machine(found=2) == (2, None)


# -- indices -----------------------------------------------------------------------------------------------------------
def test_indices_out_of_range(gpus):
    x = mx.nd.arange(12, ctx=gpus[0]).reshape((4, 3))
    for wrong in (lambda: x[4], lambda: x[:, 3], lambda: x[-5]):
        with pytest.raises(IndexError) as caught:
            wrong()
        assert isinstance(caught.value, MXNetError)
    far = mx.nd.array([7, -9], ctx=gpus[0])
    with pytest.raises(IndexError, match="take"):
        mx.nd.take(x, far, mode="raise").asnumpy()
    assert mx.nd.take(x, far).asnumpy().tolist() == [[9, 10, 11], [0, 1, 2]]  # the nearest
    assert mx.nd.take(x, far, mode="wrap").asnumpy().tolist() == [[9, 10, 11], [9, 10, 11]]
    assert mx.nd.Embedding(far, x, input_dim=4, output_dim=3).asnumpy().tolist() == [[9, 10, 11], [0, 1, 2]]
    with pytest.raises(IndexError, match="classes from 0 to 2"):
        mx.nd.CTCLoss(mx.nd.zeros((5, 1, 3), ctx=gpus[0]), mx.nd.array([[7.0, 1]], ctx=gpus[0]))


@pytest.mark.parametrize("index, place", [(np.nan, 0), (-np.inf, 0), (np.inf, 2), (1e30, 2)])
def test_indices_that_are_no_numbers_are_some_place(gpus, index, place):
    """Nothing is read or written elsewhere."""
    x, i = mx.nd.arange(6, ctx=gpus[0]).reshape((3, 2)), mx.nd.array([index], ctx=gpus[0])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.take(x, i)
    y.backward()
    assert y.asnumpy().tolist() == [[2 * place, 2 * place + 1]]
    assert x.grad.asnumpy().tolist() == [[float(row == place)] * 2 for row in range(3)]
    assert mx.nd.pick(x, mx.nd.full(3, index, ctx=gpus[0])).asnumpy().tolist() == [
        row + (place > 0) for row in (0, 2, 4)
    ]
    assert mx.nd.one_hot(i, 3).asnumpy().tolist() == [[0, 0, 0]]


# -- numbers -----------------------------------------------------------------------------------------------------------
STRANGE = np.array([[np.nan, 1, 2, 3], [np.inf, -np.inf, 0, 1], [-np.inf] * 4, [1e30, -1e30, 1e-30, -0.0]], "float32")
FUNCTIONS = {
    "softmax": lambda x: mx.nd.softmax(x),
    "log_softmax": lambda x: mx.nd.log_softmax(x),
    "SoftmaxOutput": lambda x: mx.nd.SoftmaxOutput(x, mx.nd.array([0, 1, np.nan, 9], ctx=x.context)),
    "sum": lambda x: mx.nd.sum(x, axis=1),
    "max": lambda x: mx.nd.max(x, axis=1),
    "norm": lambda x: mx.nd.norm(x, axis=1),
    "Pooling": lambda x: mx.nd.Pooling(x.reshape((1, 1, 4, 4)), kernel=(2, 2), pool_type="max"),
    "average": lambda x: mx.nd.Pooling(x.reshape((1, 1, 4, 4)), kernel=(2, 2), pool_type="avg"),
    "LayerNorm": lambda x: mx.nd.LayerNorm(x, mx.nd.ones(4, ctx=x.context), mx.nd.zeros(4, ctx=x.context)),
    "FullyConnected": lambda x: mx.nd.FullyConnected(x, mx.nd.ones((2, 4), ctx=x.context), no_bias=True, num_hidden=2),
    "clip": lambda x: mx.nd.clip(x, -1, 1),
    "relu": lambda x: mx.nd.relu(x) + mx.nd.tanh(x),
    "ROIPooling": lambda x: mx.nd.ROIPooling(
        x.reshape((1, 1, 4, 4)),
        mx.nd.array([[0, 0, 0, 3, 3], [np.nan, 0, 0, 1, 1], [0, -np.inf, 0, np.inf, 2]], ctx=x.context),
        pooled_size=(2, 2),
        spatial_scale=1.0,
    ),
    "CTCLoss": lambda x: mx.nd.CTCLoss(x.reshape((4, 1, 4)), mx.nd.array([[1, 2]], ctx=x.context)),
    "adam_update": lambda x: mx.nd.adam_update(
        mx.nd.ones((4, 4), ctx=x.context), x, *(mx.nd.zeros((4, 4), ctx=x.context) for _ in range(2)), lr=0.1
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_and_infinity_are_the_cpus(gpus, name):
    got, want = (FUNCTIONS[name](mx.nd.array(STRANGE, ctx=ctx)).asnumpy() for ctx in (gpus[0], mx.cpu()))
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("value", [-np.inf, np.nan, np.finfo("float32").min])
def test_where_there_is_no_maximum_the_first_place_takes_the_gradient(gpus, value):
    """Nobody, where that is padding."""
    found = []
    for ctx in (gpus[0], mx.cpu()):
        x = mx.nd.full((1, 1, 4, 4), value, ctx=ctx)
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.Pooling(x, kernel=(2, 2), stride=(2, 2), pad=(1, 1))
        y.backward(mx.nd.arange(1, 10, ctx=ctx).reshape((1, 1, 3, 3)))
        found.append((y.asnumpy().tolist(), x.grad.asnumpy().tolist()))
    assert found[0] == found[1]


# -- sizes -------------------------------------------------------------------------------------------------------------
LARGE = (1 << 16, 1 << 15)
#: Kernels that count in 32 bits: operator -> parameters, and inputs that are too large for it.
FEW = {
    "take": ({}, [LARGE, (3,)]),
    "Embedding": ({"input_dim": LARGE[0], "output_dim": LARGE[1]}, [(3,), LARGE]),
    "_backward_take": ({}, [(3, LARGE[1]), (3,), LARGE]),
    "pick": ({}, [LARGE, LARGE[:1]]),
    "one_hot": ({"depth": LARGE[1]}, [LARGE[:1]]),
    "Convolution": ({"kernel": (1, 1), "num_filter": 1}, [(1, 1, *LARGE), (1, 1, 1, 1), (1,)]),
    "Pooling": ({"kernel": (1, 1)}, [(1, 1, *LARGE)]),
    "ROIPooling": ({"pooled_size": (1, 1), "spatial_scale": 1.0}, [(1, 1, *LARGE), (1, 5)]),
    "dot": ({}, [("csr", (4, LARGE[0])), LARGE]),
}


@pytest.mark.parametrize("name", FEW)
def test_kernels_that_count_in_32_bits_leave_more_to_the_body(emulated, name):
    params, shapes = FEW[name]

    def fits(divisor):
        specs = []
        for s in shapes:
            stype, shape = s if s[0] == "csr" else ("default", s)
            cut = tuple(d // divisor if d in LARGE else d for d in shape)
            specs.append(Spec(cut, np.dtype("float32"), stype))
        cut = {k: v // divisor if v in LARGE else v for k, v in params.items()}
        p = find_op(name).parse(cut)
        return any(k.fits(p, specs) for k in gpu.entries if k.op == name)

    assert fits(16) and not fits(1)


REACHED = """
#include "mx.cuh"
KERNEL(256) ends(T* y, i64 n) { FOR_EACH(i, n) if (i == 0 || i > n - 3) y[i] = 7; }
EACH(ends)
"""


@pytest.mark.slow
def test_more_than_2_to_the_31_elements(gpus):
    n = 2**31 + 5
    x = mx.nd.zeros((n,), dtype="int8", ctx=gpus[0])
    Kernel(Code("mine.cu", REACHED, "int8"), "ends", 0).each(n, x._data, n)
    x[n - 4 : n - 2] = 3
    assert x[0].asscalar() == 7 and x[-5:].asnumpy().tolist() == [0, 3, 3, 7, 7]
    assert x[n - 2 :].as_in_context(gpus[1]).asnumpy().tolist() == [7, 7]


@pytest.mark.libraries
def test_a_kept_cubin_that_is_damaged_is_made_again(monkeypatch, tmp_path):
    from mxcore_cuda import nvrtc

    if not nvrtc.available():
        pytest.skip("NVRTC (nvidia-cuda-nvrtc) is not installed")
    monkeypatch.setenv("MXCORE_CACHE_DIR", str(tmp_path))
    code = Code("mine.cu", REACHED)
    whole = nvrtc.cubin(code, "sm_80")
    for path in tmp_path.rglob("*.code"):
        path.write_bytes(path.read_bytes()[:-9])
    assert nvrtc.cubin(code, "sm_80") == whole
