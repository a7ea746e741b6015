"""cuDNN's binding over its stand-in: results, choices, refusals, captured graphs."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd
from mxcore.base import MXNetError
from mxcore.codecache import CodeCache
from mxcore.testing.conformance import check_op
from mxcore_cuda import cudnn as cudnn_
from mxcore_cuda import dnn
from tests.marks import slow

from .test_graphs import both_ways
from .test_training import lenet

SERVED = ["Convolution", "Deconvolution", "Convolution_v1", "_backward_Convolution", "_backward_Deconvolution"]


def forget():
    """As in a new process."""
    cudnn_.library.cache_clear()
    cudnn_.handles.cache_clear()
    dnn._told.cache_clear()
    dnn._plans.clear()
    dnn._broken = None


@pytest.fixture
def cudnn(gpus, monkeypatch, tmp_path):
    """The stand-in, with nothing chosen yet, wherever it can."""
    monkeypatch.setenv("MXCORE_CUDNN", "2")
    monkeypatch.setenv("MXCORE_CUDA_EMULATE_CUDNN", "1")
    choices = CodeCache("cudnn", list)
    choices.__dict__["folder"] = tmp_path / "choices"  # and the kernels' as ever
    monkeypatch.setattr(dnn, "CHOICES", choices)
    forget()
    yield cudnn_.library()
    cudnn_.library().mx_fail(b"", 0)
    forget()


def ways():
    """Which algorithm computes what, of all signatures so far; the name of what is none."""
    names = {kind: way for kind, _, _, way, _ in dnn.chosen()}
    return {kind: int(way[10:].split(",")[0]) if way and way[:9] == "algorithm" else way for kind, way in names.items()}


def step(ctx, dtype="float32", op="Convolution", shape=(2, 4, 6, 5), filters=6, kernel=(3, 3), poison=False, **params):
    """Output and gradients of a convolution on a device; data, weight and head have a NaN each if they are poisoned."""
    rs = np.random.RandomState(0)
    n = params.get("num_group", 1)
    of = (filters, shape[1] // n) if op == "Convolution" else (shape[1], filters // n)
    params = {"kernel": kernel, "num_filter": filters, "no_bias": False, **params}
    values = [rs.uniform(-1, 1, s) for s in (shape, (*of, *kernel), (filters,))]
    for v in values[:2] if poison else ():
        v.flat[rs.randint(v.size)] = np.nan
    arrays = [mx.nd.array(v, ctx=ctx, dtype=dtype) for v in values]
    for a in arrays:
        a.attach_grad()
    with autograd.record():
        y = getattr(mx.nd, op)(*arrays, **params)
    head = rs.uniform(-1, 1, y.shape)
    if poison:
        head.flat[rs.randint(head.size)] = np.nan
    y.backward(mx.nd.array(head, ctx=ctx, dtype=dtype))
    return [a.asnumpy() for a in (y, *[a.grad for a in arrays])]


@pytest.mark.parametrize("name", [*SERVED[:3], *slow(*SERVED[3:])])
def test_the_kit(cudnn, gpus, name):
    check_op(name, gpus[1])
    if name != "Convolution_v1":
        assert any(dnn._plans.values())


def random_cases(n, large=False, seed=0):
    """Convolutions that `step` takes: one to three dimensions, groups, strides, dilations, paddings, both ways."""
    rs = np.random.RandomState(seed)
    for i in range(n):
        axes, groups = 1 + i % 3, rs.choice([1, 1, 2, 3])
        each = rs.randint(2, 24 if large else 4, 2)
        kernel = rs.choice([1, 2, 3, 3, 4], axes)
        stride, dilate = rs.choice([1, 1, 2, 3], axes), rs.choice([1, 1, 1, 2], axes)
        extent = dilate * (kernel - 1) + 1
        if i % 8 == 0:  # what most networks have
            kernel, stride, dilate, extent = (np.full(axes, v) for v in (3, 1, 1, 3))
        pad = np.minimum(rs.randint(0, 3, axes), extent - 1)
        case = {"op": "Convolution", "kernel": kernel, "stride": stride, "dilate": dilate, "pad": pad}
        if i % 4 == 3:
            case.update(op="Deconvolution", adj=[rs.randint(0, s) for s in stride])
        room = (33 if axes < 3 else 12) if large else (9 if axes < 3 else 4)
        sizes = rs.randint(1, room, axes) + (extent if i % 4 != 3 else 2 * pad)
        case = {name: v if name == "op" else tuple(map(int, v)) for name, v in case.items()}
        shape = int(rs.randint(1, 9 if large else 4)), int(each[0] * groups), *map(int, sizes)
        yield {**case, "shape": shape, "filters": int(each[1] * groups), "num_group": int(groups)}


def far(case, ctx, dtype, poisons=(False, True)):
    """How far the provider is from our own kernels, as a part of the largest number; where only one has a NaN.

    Returns (how far, places of its NaN, places of ours, whether it gives the same again).
    """
    found, more, less, same = 0.0, 0, 0, True
    # Without padding NaN are the same: whether a factor meets the zeros beside an image is each algorithm's own.
    for poison in poisons:
        case = {**case, "pad": (0,) * len(case["pad"])} if poison else case
        own, *theirs = (step(ctx, dtype, poison=poison, cudnn_off=off, **case) for off in (True, False, False))
        for a, b, again in zip(own, *theirs, strict=True):
            same &= np.array_equal(b, again, equal_nan=True)
            more += int((np.isnan(b) & ~np.isnan(a)).sum())
            less += int((np.isnan(a) & ~np.isnan(b)).sum())
            seen = ~(np.isnan(a) | np.isnan(b))
            a, b = a[seen].astype("f8"), b[seen].astype("f8")
            found = max(found, np.max(np.abs(a - b), initial=0) / max(np.max(np.abs(a), initial=0), 1e-3))
    return found, more, less, same


#: Dtype -> how far cuDNN may be; of float16 each result is rounded once.
FAR = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-12}


@pytest.mark.parametrize("dtype", FAR)
def test_it_gives_what_our_own_kernels_give(cudnn, gpus, dtype):
    for case in random_cases(24):
        dnn._plans.clear()
        assert far(case, gpus[0], dtype) <= (FAR[dtype] / 5, 0, 0, True), case
        assert None not in ways().values() and len(ways()) == 3, case


@pytest.mark.parametrize("ours", [False, True])
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
def test_how_an_algorithm_is_chosen(cudnn, gpus, monkeypatch, tune, environment, chosen, ours):
    """Timed, the stand-in's algorithms take as long as the numbers here say, and our own kernels longer, or less."""
    monkeypatch.setenv("MXCORE_CUDNN", "1")
    seconds = {"Forward": (3, 1, 2), "BackwardData": (9, 2, None, None, 1), "BackwardFilter": (9, 2, 3, 4, None, 1)}
    timed = []

    def told(plan, device, handle, way, *operands):
        timed.append(way)
        found, number = seconds[plan.key.kind.call[16:]], int(way.name[10:].split(",")[0])
        return found[number] if number < len(found) else 5

    monkeypatch.setattr(dnn._Plan, "seconds", told)
    monkeypatch.setattr(dnn, "_seconds", lambda device, handle, run: run() or (0.5 if ours else 7))
    more = {k: v for k, v in environment.items() if k == "workspace"}
    for name in environment.keys() - more:
        monkeypatch.setenv(name, environment[name])
    step(gpus[0], cudnn_tune=tune, pad=(1, 1), **more)
    times = tune != "off" and environment.get("MXNET_CUDNN_AUTOTUNE_DEFAULT") != "0"
    if ours and times:
        chosen = None, None, None
    assert tuple(ways()[kind] for kind in seconds) == chosen
    assert bool(timed) == times
    timed.clear()
    forget()
    step(gpus[0], cudnn_tune=tune, pad=(1, 1), **more)  # a later process times nothing
    assert tuple(ways()[kind] for kind in seconds) == chosen and not timed


def test_timing_takes_the_fastest(cudnn, gpus):
    step(gpus[0], pad=(1, 1))
    assert all(plan.way.size >= 0 for plan in dnn._plans.values())
    plan = next(iter(dnn._plans.values()))
    device, handle = gpus[0].device, cudnn_.handles(0)[False]
    x, w, y = (device.full(s, 1, "float32", 0) for s in plan.key.convolution[:3])
    assert 0 < plan.seconds(device, handle, plan.way, x, w, y) < 1
    cudnn.mx_fail(b"cudnnConvolutionForward", 3000)
    assert plan.seconds(device, handle, plan.way, x, w, y) == float("inf")


def test_engines_of_the_graph_interface(cudnn, gpus, monkeypatch):
    """Those that keep to what was asked take part; here they are told to be fastest."""
    monkeypatch.setattr(dnn, "_WORTH", 0)
    timed, seconds = {}, dnn._Plan.seconds

    def told(plan, device, handle, way, *operands):
        found = seconds(plan, device, handle, way, *operands)
        timed.setdefault(plan.key.dtype, set()).add(way.name)
        return found if way.name[:6] == "engine" else 9

    monkeypatch.setattr(dnn._Plan, "seconds", told)
    for dtype in FAR:
        for case in list(random_cases(8))[:: 1 if dtype == "float32" else 3]:
            dnn._plans.clear()
            assert far(case, gpus[0], dtype) <= (FAR[dtype] / 5, 0, 0, True), case
            assert {way[:6] for way in ways().values()} == {"engine"}
    engines = {dtype: sorted(way for way in found if way[:6] == "engine") for dtype, found in timed.items()}
    assert engines == {
        # The first is not the same at every run, the second has tensor cores, which round float32.
        "float16": ["engine 41, 1", "engine 42, 2"],
        "float32": ["engine 42, 2"],
        "float64": ["engine 41, 1", "engine 42, 2"],
    }
    step(gpus[0])
    timed.clear()
    forget()
    step(gpus[0])  # in a later process
    assert not timed and {way[:6] for way in ways().values()} == {"engine"}
    monkeypatch.setenv("MXNET_ENFORCE_DETERMINISM", "0")
    monkeypatch.setenv("MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION", "1")
    forget()
    step(gpus[0])
    assert {"engine 40, 0", "engine 41, 1", "engine 42, 2"} < timed["float32"]
    # What fails leaves the algorithms.
    for name in (b"cudnnBackendSetAttribute", b"cudnnBackendFinalize", b"cudnnBackendExecute"):
        cudnn.mx_fail(name, 4000)
        step(gpus[0], shape=(3, 4, len(name), 5))
        assert not {"engine"} & {str(way)[:6] for way in ways().values()}
    cudnn.mx_fail(b"", 0)
    step(gpus[0], shape=(3, 4, 7, 5))
    assert "engine" in str(ways())
    dnn._plans.clear()
    x = mx.nd.ones((3, 4, 7, 6), ctx=gpus[0]).reshape(-1)[1 : 1 + 3 * 4 * 7 * 5].reshape((3, 4, 7, 5))
    mx.nd.Convolution(
        x, mx.nd.ones((2, 4, 3, 3), ctx=gpus[0]), kernel=(3, 3), num_filter=2, no_bias=True
    ).wait_to_read()
    assert "algorithm" in str(dnn.chosen()), "memory that is not aligned is not theirs"


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
    monkeypatch.setenv("MXCORE_CUDNN", "2")
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


@pytest.mark.parametrize("few", [0, 512])
def test_our_own_kernels_by_pieces(gpus, monkeypatch, few):
    """Some images at a time, one by one or beside each other."""
    from mxcore_cuda.bindings import convolution

    monkeypatch.setattr(convolution, "_FEW", few)
    monkeypatch.setattr(convolution, "_SUMS", 50)
    monkeypatch.setattr(convolution, "_COLUMNS", 4 * 2 * 9 * 30 * 4)  # four of the first's images
    for case in (
        {"shape": (6, 4, 6, 5), "pad": (1, 1), "num_group": 2},
        {"shape": (5, 6, 7, 4), "pad": (1, 1), "num_group": 3, "stride": (2, 1)},
        {"shape": (6, 4, 5, 3), "kernel": (1, 1), "num_group": 2},
        {"shape": (5, 4, 3, 5), "op": "Deconvolution", "stride": (1, 2), "num_group": 2},
    ):
        for a, b in zip(step(gpus[0], cudnn_off=True, **case), step(mx.cpu(), **case), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=str(case))
