"""cuDNN's binding over its stand-in: results, choices, refusals, captured graphs."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd
from mxcore.base import MXNetError
from mxcore.codecache import CodeCache
from mxcore.testing.conformance import check_op
from mxcore_cuda import dnn

from .test_graphs import both_ways
from .test_training import lenet

SERVED = ["Convolution", "Deconvolution", "Convolution_v1", "_backward_Convolution", "_backward_Deconvolution"]


def forget():
    """As in a new process."""
    dnn._library.cache_clear()
    dnn._handles.cache_clear()
    dnn._plans.clear()
    dnn._broken = None


@pytest.fixture
def cudnn(gpus, monkeypatch, tmp_path):
    """The stand-in, with nothing chosen yet."""
    monkeypatch.setenv("MXCORE_CUDA_EMULATE_CUDNN", "1")
    choices = CodeCache("cudnn", list)
    choices.__dict__["folder"] = tmp_path / "choices"  # and the kernels' as ever
    monkeypatch.setattr(dnn, "CHOICES", choices)
    forget()
    yield dnn._library()
    dnn._library().mx_fail(b"", 0)
    forget()


def ways():
    """Which algorithm computes what, of all signatures so far."""
    return {key.kind.call[16:]: plan and plan.way.algorithm for (_, key), plan in dnn._plans.items()}


def step(ctx, dtype="float32", op="Convolution", shape=(2, 4, 6, 5), filters=6, kernel=(3, 3), seed=0, **params):
    """Output and gradients of a convolution on a device."""
    rs = np.random.RandomState(seed)
    n = params.get("num_group", 1)
    of = (filters, shape[1] // n) if op == "Convolution" else (shape[1], filters // n)
    params = {"kernel": kernel, "num_filter": filters, "no_bias": False, **params}
    arrays = [mx.nd.array(rs.uniform(-1, 1, s), ctx=ctx, dtype=dtype) for s in (shape, (*of, *kernel), (filters,))]
    for a in arrays:
        a.attach_grad()
    with autograd.record():
        y = getattr(mx.nd, op)(*arrays, **params)
    y.backward(mx.nd.array(rs.uniform(-1, 1, y.shape), ctx=ctx, dtype=dtype))
    return [a.asnumpy() for a in (y, *[a.grad for a in arrays])]


@pytest.mark.parametrize("name", SERVED)
def test_the_kit(cudnn, gpus, name):
    check_op(name, gpus[1])
    if name != "Convolution_v1":
        assert any(dnn._plans.values())


#: Operator, data, filters, kernel, parameters.
SHAPES = [
    ("Convolution", (2, 3, 9), 4, (3,), {"stride": (2,), "pad": (1,)}),
    ("Convolution", (2, 4, 7), 6, (2,), {"num_group": 2, "dilate": (3,)}),
    ("Convolution", (3, 4, 7, 8), 6, (3, 3), {"pad": (1, 1)}),
    ("Convolution", (2, 6, 7, 9), 9, (3, 2), {"num_group": 3, "stride": (2, 3), "pad": (2, 1), "dilate": (2, 1)}),
    ("Convolution", (2, 2, 4, 5, 6), 3, (2, 3, 1), {"stride": (1, 2, 2), "pad": (1, 0, 2)}),
    ("Deconvolution", (2, 4, 5), 6, (4,), {"num_group": 2, "stride": (2,), "pad": (1,), "adj": (1,)}),
    ("Deconvolution", (2, 3, 5, 4), 4, (3, 3), {"stride": (2, 3), "pad": (1, 0), "adj": (1, 2)}),
    ("Deconvolution", (1, 3, 3, 4, 2), 2, (2, 3, 2), {"dilate": (1, 2, 1), "num_group": 1}),
]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_it_gives_what_our_own_kernels_give(cudnn, gpus, dtype):
    bound = {"float16": 5e-3, "float32": 2e-6, "float64": 1e-14}[dtype]
    for op, shape, filters, kernel, params in SHAPES:
        case = dict(op=op, shape=shape, filters=filters, kernel=kernel, dtype=dtype, **params)
        dnn._plans.clear()
        own = step(gpus[0], cudnn_off=True, **case)
        assert not dnn._plans
        theirs = step(gpus[0], **case)
        assert len(ways()) == 3 and None not in ways().values()
        for a, b in zip(own, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=bound, atol=bound * 20)


@pytest.mark.parametrize(
    ("tune", "environment", "chosen"),
    [
        # The one that needs much workspace is expected to be the fastest; 0 of both gradients does not repeat.
        ("off", {}, (6, 4, 5)),
        ("off", {"workspace": 1}, (0, 1, 1)),
        (None, {"MXNET_CUDNN_AUTOTUNE_DEFAULT": "0", "workspace": 1}, (0, 1, 1)),
        ("off", {"MXNET_ENFORCE_DETERMINISM": "0", "workspace": 1}, (0, 0, 0)),
        ("limited_workspace", {}, (1, 4, 5)),
        (None, {"workspace": 1}, (1, 1, 1)),
        ("fastest", {"workspace": 1}, (1, 4, 5)),
        (None, {"MXNET_CUDNN_AUTOTUNE_DEFAULT": "2", "workspace": 1}, (1, 4, 5)),
    ],
)
def test_how_an_algorithm_is_chosen(cudnn, gpus, monkeypatch, tune, environment, chosen):
    """Timed, the stand-in's algorithms take as long as the numbers here say."""
    seconds = {"Forward": (3, 1, 2), "BackwardData": (9, 2, None, None, 1), "BackwardFilter": (9, 2, 3, 4, None, 1)}
    timed = []

    def told(plan, device, handle, way, *operands):
        timed.append(way)
        found = seconds[plan.key.kind.call[16:]]
        return found[way.algorithm] if way.algorithm < len(found) else 5

    monkeypatch.setattr(dnn._Plan, "seconds", told)
    more = {k: v for k, v in environment.items() if k == "workspace"}
    for name in environment.keys() - more:
        monkeypatch.setenv(name, environment[name])
    step(gpus[0], cudnn_tune=tune, pad=(1, 1), **more)
    assert tuple(ways()[kind] for kind in seconds) == chosen
    assert bool(timed) == (tune != "off" and environment.get("MXNET_CUDNN_AUTOTUNE_DEFAULT") != "0")
    timed.clear()
    forget()
    step(gpus[0], cudnn_tune=tune, pad=(1, 1), **more)  # a later process times nothing
    assert tuple(ways()[kind] for kind in seconds) == chosen and not timed


def test_timing_takes_the_fastest(cudnn, gpus):
    step(gpus[0], pad=(1, 1))
    assert all(plan.way.size >= 0 for plan in dnn._plans.values())
    plan = next(iter(dnn._plans.values()))
    device, handle = gpus[0].device, dnn._handles(0)[False]
    x, w, y = (device.full(s, 1, "float32", 0) for s in plan.key.convolution[:3])
    assert 0 < plan.seconds(device, handle, plan.way, x, w, y) < 1
    cudnn.mx_fail(b"cudnnConvolutionForward", 3000)
    assert plan.seconds(device, handle, plan.way, x, w, y) == float("inf")


def test_what_it_does_not_support_is_ours_for_good(cudnn, gpus, monkeypatch):
    own = step(gpus[0], cudnn_off=True)
    for name in (b"cudnnSetTensorNdDescriptor", b"cudnnGetConvolutionForwardAlgorithm_v7"):
        forget()
        cudnn.mx_fail(name, 3002)
        for a, b in zip(own, step(gpus[0]), strict=True):
            np.testing.assert_array_equal(a, b) if "Tensor" in str(name) else np.testing.assert_allclose(
                a, b, 1e-5, 1e-5
            )
        assert ways()["Forward"] is None
    # Found out at the launch, which is at once on a GPU.
    forget()
    cudnn.mx_fail(b"cudnnConvolutionForward", 3000)
    monkeypatch.setattr(
        type(gpus[0].device.driver), "enqueue", lambda self, stream, call: (self.synchronize(0), call())
    )
    calls = []
    monkeypatch.setattr(
        dnn._Plan, "launch", lambda self, *a, f=dnn._Plan.launch: (calls.append(self.key.kind), f(self, *a))
    )
    for _ in range(3):
        np.testing.assert_array_equal(step(gpus[0], cudnn_tune="off")[0], own[0])
    assert calls.count(dnn.FORWARD) == 1 and ways()["Forward"] is None and ways()["BackwardData"] is not None


def test_a_failure_is_named(cudnn, gpus):
    cudnn.mx_fail(b"cudnnConvolutionForward", 5000)
    with pytest.raises(
        MXNetError, match=r"cudnnConvolutionForward: CUDNN_STATUS_EXECUTION_FAILED \(5000\); said by.*MXCORE_CUDNN=0"
    ):
        step(gpus[0], cudnn_tune="off")


def test_a_broken_library_is_told_once(cudnn, gpus):
    cudnn.mx_fail(b"cudnnCreate", 1001)
    with pytest.warns(UserWarning, match=r"without cuDNN.*NOT_INITIALIZED \(1001\).*install the cuDNN 9") as told:
        first = step(gpus[0])
    assert len(told) == 1
    for a, b in zip(first, step(gpus[0], cudnn_off=True), strict=True):
        np.testing.assert_array_equal(a, b)
    assert "cuDNN 9.19.0 for convolutions, which cannot be used: cudnnCreate" in dnn.describe()


def test_what_is_told(cudnn, gpus, monkeypatch):
    assert dnn.describe() == "cuDNN 9.19.0 for convolutions"
    monkeypatch.setenv("MXCORE_CUDNN", "0")
    forget()
    assert dnn.describe().endswith("without cuDNN: MXCORE_CUDNN=0")
    monkeypatch.setenv("MXCORE_CUDNN", "1")
    monkeypatch.setenv("MXCORE_CUDA_EMULATE_CUDNN", "0")
    forget()
    assert "without cuDNN: pip install" in dnn.describe()
    step(gpus[0])
    assert not dnn._plans
    monkeypatch.setenv("MXCORE_CUDA_EMULATE_CUDNN", "1")
    forget()


def test_depthwise_and_empty_convolutions_are_ours(cudnn, gpus):
    step(gpus[0], shape=(2, 4, 5, 5), filters=8, num_group=4)
    step(gpus[0], shape=(0, 4, 5, 5))
    assert not dnn._plans


def test_few_signatures_are_remembered(cudnn, gpus, monkeypatch):
    monkeypatch.setattr(dnn, "_MOST_PLANS", 4)
    for n in range(1, 5):
        step(gpus[0], shape=(n, 4, 6, 5), cudnn_tune="off")
    assert len(dnn._plans) == 4
    assert {key.convolution.x[0] for _, key in dnn._plans} == {3, 4}


def test_graphs_hold_it(cudnn, gpus, monkeypatch):
    """Planned before or in the capture, which times nothing."""
    captured = []

    def scene():
        net, shape = lenet()
        net.initialize(mx.init.Constant(0.01), ctx=gpus[0])
        net.hybridize()
        rs, found = np.random.RandomState(0), []
        for i in range(6):
            x = mx.nd.array(rs.randn(*shape), ctx=gpus[0])
            with autograd.record():
                y = net(x)
            y.backward()
            found += [y.asnumpy(), *[p.grad().asnumpy() for p in net.collect_params().values() if p.grad_req != "null"]]
            if i == 1:
                dnn._plans.clear()
        return found

    seconds = dnn._Plan.seconds
    monkeypatch.setattr(
        dnn._Plan, "seconds", lambda *a: (captured.append(gpus[0].device.driver.capturing()), seconds(*a))[1]
    )
    both_ways(gpus, scene)
    assert captured and not any(captured)
