"""`mx.rtc`: users' own kernels, launched in the order of everything else."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore_cuda import nvrtc
from mxcore_cuda.user_sources import UserCode

AXPY = r"""
extern "C" __global__ void axpy(const float *x, float *y, float alpha) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    y[i] += alpha * x[i];
}
"""
TEMPLATE = r"""
template <typename DType> __global__ void scale(DType *y, DType by, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) y[i] *= by;
}
"""
# Sums of blocks: memory of the block of a known size and of one that the launch says, barriers, shuffles, an atomic.
SUM = r"""
#include <cuda_fp16.h>
extern __shared__ float scratch[];
extern "C" {
__global__ void __launch_bounds__(128) total(const float *x, float *y, int n) {
    __shared__ float part[4];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    scratch[threadIdx.x] = i < n ? __ldg(x + i) : 0.f;
    __syncthreads();
    float v = scratch[blockDim.x - 1 - threadIdx.x];
    for (int d = 16; d; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(y, part[0] + part[1] + part[2] + part[3]);
}
__global__ void halves(const __half *x, float *y) { y[threadIdx.x] = 2 * __half2float(x[threadIdx.x]); }
}
"""
needs_nvrtc = pytest.mark.skipif(not nvrtc.available(), reason="NVRTC (nvidia-cuda-nvrtc) is not installed")


def axpy():
    return mx.rtc.CudaModule(AXPY).get_kernel("axpy", "const float *x, float *y, float alpha")


def test_a_kernel_runs_where_it_is_told_to(gpus):
    kernel = axpy()
    for ctx in gpus:
        x, y = mx.nd.arange(30, ctx=ctx), mx.nd.ones(30, ctx=ctx)
        x += 1  # what was launched before is done before
        kernel.launch([x, y, 3], ctx, (3, 1, 1), (10, 1, 1))
        z = y * 2
        np.testing.assert_array_equal(z.asnumpy(), 2 * (1 + 3 * (np.arange(30) + 1)))


@pytest.mark.parametrize("dtype, name", [("float32", "float"), ("float64", "double"), ("int8", "char")])
def test_templates_are_exported(gpus, dtype, name):
    module = mx.rtc.CudaModule(TEMPLATE, exports=["scale<float>", "scale<double>", "scale<char>"])
    kernel = module.get_kernel(f"scale<{name}>", f"{name} *, {name}, int")
    y = mx.nd.array([1, 2, 3, 4], ctx=gpus[0], dtype=dtype)
    kernel.launch((y, 5, 3), "gpu(0)", (1, 1, 1), (32, 1, 1))
    assert y.asnumpy().tolist() == [5, 10, 15, 4]


def test_threads_work_together(gpus):
    kernel = mx.rtc.CudaModule(SUM).get_kernel("total", "const float *x, float *y, int n")
    x, y = mx.nd.arange(300, ctx=gpus[0]), mx.nd.zeros(1, ctx=gpus[0])
    kernel.launch([x, y, 300], gpus[0], (3, 1, 1), (128, 1, 1), shared_mem=4 * 128)
    assert y.asscalar() == 300 * 299 / 2
    halves = mx.rtc.CudaModule(SUM).get_kernel("halves", "const __half *x, float *y")
    x, y = mx.nd.arange(3, ctx=gpus[0], dtype="float16"), mx.nd.zeros(3, ctx=gpus[0])
    halves.launch([x, y], gpus[0], (1, 1, 1), (3, 1, 1))
    assert y.asnumpy().tolist() == [0, 2, 4]


def test_options_define_macros(gpus):
    source = 'extern "C" __global__ void fill(int *x) { x[threadIdx.x] = N; }'
    kernel = mx.rtc.CudaModule(source, options=["-DN=7", "--use_fast_math", "-arch=compute_30"]).get_kernel(
        "fill", "int *"
    )
    x = mx.nd.zeros(4, ctx=gpus[0], dtype="int32")
    kernel.launch([x], gpus[0], (1, 1, 1), (4, 1, 1))
    assert x.asnumpy().tolist() == [7] * 4


def test_views_that_are_not_dense_are_read_and_written(gpus):
    x, y = mx.nd.ones((4, 3), ctx=gpus[0]), mx.nd.zeros((4, 2), ctx=gpus[0])
    part = y[:, 0:1]
    axpy().launch([x[:, 1:2], part, 2.0], gpus[0], (1, 1, 1), (4, 1, 1))
    assert part.asnumpy().ravel().tolist() == [2] * 4


@pytest.mark.parametrize(
    "args, dims, kind, said",
    [
        ("x y", (1, 1, 1), ValueError, r"CudaKernel\(axpy\) takes 3 arguments, got 2"),
        ("x h a", (1, 1, 1), TypeError, "argument 1 must be an NDArray of float32, got one of float16"),
        ("x a a", (1, 1, 1), TypeError, "argument 1 must be a dense NDArray of float32, got float"),
        ("x y x", (1, 1, 1), TypeError, "argument 2 must be a number"),
        ("x z a", (1, 1, 1), ValueError, r"argument 1 must be on gpu\(0\), it is on gpu\(1\)"),
        ("x c a", (1, 1, 1), ValueError, r"argument 1 must be on gpu\(0\), it is on cpu\(0\)"),
        ("x y a", (1, 1), ValueError, "grid_dims must be three whole numbers"),
        ("x y a", (1, 0, 1), ValueError, "grid_dims must be 1 or more each"),
        ("x y a", (1, 70000, 1), RuntimeError, "cudaErrorInvalidValue"),
    ],
)
def test_arguments_are_checked(gpus, args, dims, kind, said):
    there = {
        "x": mx.nd.ones(4, ctx=gpus[0]),
        "y": mx.nd.ones(4, ctx=gpus[0]),
        "h": mx.nd.ones(4, ctx=gpus[0], dtype="float16"),
        "z": mx.nd.ones(4, ctx=gpus[1]),
        "c": mx.nd.ones(4),
        "a": 2.0,
    }
    with pytest.raises(kind, match=said) as caught:
        axpy().launch([there[name] for name in args.split()], gpus[0], dims, (4, 1, 1))
    assert isinstance(caught.value, MXNetError)
    np.testing.assert_array_equal(there["y"].asnumpy(), 1)


def test_whole_numbers_stay_whole(gpus):
    kernel = mx.rtc.CudaModule(TEMPLATE, exports="scale<float>").get_kernel("scale<float>", "float *y, float by, int n")
    for n in (2.5, 1 << 40, float("nan")):
        with pytest.raises(ValueError, match="argument 2 must be a whole number of int32"):
            kernel.launch([mx.nd.ones(4, ctx=gpus[0]), 1, n], gpus[0], (1, 1, 1), (4, 1, 1))


@pytest.mark.parametrize(
    "signature, kind, said",
    [
        ("const float **x", ValueError, "not of the form"),
        ("const", ValueError, "not of the form"),
        ("bool *x", TypeError, "none of the types float, double"),
        ("const float *x, float *y", ValueError, "kernel axpy has 3 arguments, its signature 2"),
    ],
)
def test_signatures_are_checked(gpus, signature, kind, said):
    with pytest.raises(kind, match=said):
        mx.rtc.CudaModule(AXPY).get_kernel("axpy", signature)


def test_a_name_that_is_not_there_is_told_with_those_that_are(gpus):
    with pytest.raises(ValueError, match="no kernel 'saxpy'.*there are: axpy"):
        mx.rtc.CudaModule(AXPY).get_kernel("saxpy", "float *")
    with pytest.raises(ValueError, match="there are: none.*exports"):
        mx.rtc.CudaModule(TEMPLATE).get_kernel("scale", "float *, float, int")


def test_what_does_not_compile_is_told_with_its_line(gpus):
    with pytest.raises(MXNetError, match=r"(?s)source.cu:3:\d+: error: .*nowhere.*no inline PTX"):
        mx.rtc.CudaModule('\nextern "C" __global__ void f(int *x) {\n x[0] = nowhere; }')


def test_a_graph_is_not_written_to_while_it_is_recorded(gpus):
    x = mx.nd.ones(4, ctx=gpus[0])
    x.attach_grad()
    with mx.autograd.record():
        y = x * 2
        with pytest.raises(RuntimeError, match="inplace operations"):
            axpy().launch([x, y, 1.0], gpus[0], (1, 1, 1), (4, 1, 1))


def test_it_runs_on_gpus_only(gpus):
    with pytest.raises(ValueError, match=r"not on cpu\(0\)"):
        axpy().launch([1, 2, 3], mx.cpu(), (1, 1, 1), (1, 1, 1))


@pytest.mark.libraries
@needs_nvrtc
def test_nvrtc_compiles_what_users_write():
    binary, names = nvrtc.compile_user(UserCode(TEMPLATE, ["-lineinfo", "-std=c++14"], ["scale<float>"]), "sm_80")
    assert binary and names["scale<float>"] in binary.decode("latin-1") and names["scale<float>"].startswith("_Z")
    assert nvrtc.compile_user(UserCode(SUM, (), ()), "sm_90")[0]
    assert UserCode(SUM, (), ()).kernels == ("total", "halves")


@pytest.mark.libraries
@needs_nvrtc
def test_nvrtc_tells_lines():
    with pytest.raises(MXNetError, match=r"(?s)source.cu, sm_80: NVRTC says.*source.cu\(2\): error.*nowhere"):
        nvrtc.compile_user(UserCode('extern "C" __global__ void f(int *x) {\n x[0] = nowhere; }', (), ()), "sm_80")
