"""Convolutions of oneDNN against the reference bodies: shapes, steps, groups, layouts of arrays, threads, children."""

import os
import threading

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import mxcore as mx
from mxcore._core.call import op_context
from mxcore.plugin import Spec, find_op
from mxcore_cpu import threads
from mxcore_onednn import calls, plan, teams
from mxcore_onednn.library import Refused, library
from tests.cpu_onednn.support import (
    BFLOAT16,
    HYPOTHESIS,
    KERNELS,
    bfloat16,
    check_close,
    check_halves,
    computed,
    numbers,
    run,
    taken,
)


@st.composite
def convolutions(draw):
    """A name, parameters and shapes of inputs."""
    n = draw(st.integers(1, 3))
    groups = draw(st.sampled_from([1, 1, 1, 2, 4]))
    each = draw(st.sampled_from([1, 3, 8, 16])), draw(st.sampled_from([1, 2, 5, 16]))
    channels, filters = groups * each[0], groups * each[1]
    kernel = tuple(draw(st.integers(1, 5)) for _ in range(n))
    stride = tuple(draw(st.integers(1, 4)) for _ in range(n))
    dilate = tuple(draw(st.integers(1, 3)) for _ in range(n))
    pad = tuple(draw(st.sampled_from([0, 0, 1, 2, 3, 7])) for _ in range(n))  # also beyond the kernel
    transposed = draw(st.booleans())
    low = [1 if transposed else max(1, d * (k - 1) + 1 - 2 * p) for k, d, p in zip(kernel, dilate, pad)]
    size = tuple(m + draw(st.integers(0, 6)) for m in low)
    params = dict(kernel=kernel, stride=stride, dilate=dilate, pad=pad, num_group=groups, num_filter=filters)
    params["no_bias"] = draw(st.booleans())
    batch = draw(st.integers(1, 3))
    if transposed:
        params["adj"] = tuple(draw(st.integers(0, s - 1)) for s in stride)
        out = [
            (m - 1) * s + d * (k - 1) + 1 - 2 * p + a
            for m, s, d, k, p, a in zip(size, stride, dilate, kernel, pad, params["adj"])
        ]
        weight = channels, each[1], *kernel
        params["num_filter"] = filters
        name = "Deconvolution"
    else:
        out = [(m + 2 * p - d * (k - 1) - 1) // s + 1 for m, s, d, k, p in zip(size, stride, dilate, kernel, pad)]
        weight, name = (filters, each[0], *kernel), "Convolution"
    if min(out) < 1:
        params["pad"] = (0,) * n
        return draw(convolutions())
    data, result = (batch, channels, *size), (batch, filters, *out)
    return name, params, data, weight, result


@HYPOTHESIS
@given(case=convolutions(), seed=st.integers(0, 99), wanted=st.tuples(*[st.booleans()] * 3))
@pytest.mark.usefixtures("always")
def test_as_the_reference(case, seed, wanted):
    name, params, data, weight, result = case
    x, w, b, dy = numbers(seed, data, weight, result[1:2], result)
    y = np.full(result, np.nan, np.float32)
    check_close([y], run(name, params, [x, w] if params["no_bias"] else [x, w, b], [y]))
    shapes = [data, weight] if params["no_bias"] else [data, weight, result[1:2]]
    outs = [np.full(s, np.nan, np.float32) if want else None for s, want in zip(shapes, wanted)]
    check_close(outs, run(f"_backward_{name}", params, [dy, x, w], outs))


#: The gradient of its weights is wrong by oneDNN 3.2's code for AMX.
_AMX = (
    "Convolution",
    {"kernel": (2,), "stride": (2,), "dilate": (1,), "pad": (1,), "num_group": 1, "num_filter": 1, "no_bias": False},
    *((1, 1, 1), (1, 1, 2), (1, 1, 1)),
)


@BFLOAT16
@HYPOTHESIS
@given(case=convolutions(), seed=st.integers(0, 99), wanted=st.tuples(*[st.booleans()] * 3))
@example(_AMX, 1, (False, True, False))
@pytest.mark.usefixtures("always")
def test_bfloat16(case, seed, wanted):
    name, params, data, weight, result = case
    t = bfloat16()
    x, w, b, dy = (a.astype(t) for a in numbers(seed, data, weight, result[1:2], result))
    ins = [x, w] if params["no_bias"] else [x, w, b]
    if taken(name, params, ins):  # the library has no code for some of them
        y = np.full(result, np.nan, t)
        check_halves([y], computed(name, params, ins, [y]))
    outs = [np.full(a.shape, np.nan, t) if want else None for a, want in zip(ins, wanted)]
    check_halves(outs, computed(f"_backward_{name}", params, [dy, x, w], outs))


@BFLOAT16
@pytest.mark.usefixtures("provider")
def test_layers_in_bfloat16():
    """Eager and compiled, beside float32."""
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(16, 3, in_channels=8), mx.gluon.nn.Conv2DTranspose(8, 2, strides=2, in_channels=16))
    net.initialize(mx.init.Normal(0.2))
    x = mx.nd.array(numbers(6, (4, 8, 9, 9))[0])

    def step(dtype):
        net.cast(dtype)
        with mx.autograd.record():
            y = net(x.astype(dtype))
        y.backward()
        found = [y, *(p.grad() for p in net.collect_params().values())]
        return [a.astype("float32").asnumpy() for a in found]

    for hybrid in (False, True):
        net.hybridize(hybrid)
        for a, b in zip(step("bfloat16"), step("float32")):
            np.testing.assert_allclose(a, b, rtol=0.05, atol=0.02 * np.abs(b).max())


@pytest.mark.usefixtures("always")
def test_arrays_of_any_layout():
    """Strided and read-only inputs, strided outputs."""
    params = dict(kernel=(3, 3), pad=(1, 1), num_filter=8)
    x, w, b, dy = numbers(0, (2, 5, 6, 16), (8, 16, 3, 3), (8,), (2, 8, 5, 6))
    x, w = x.transpose(0, 3, 1, 2), w[:, :, ::-1]
    w.flags.writeable = False
    y = np.zeros((2, 8, 5, 12), np.float32)[..., ::2]
    check_close([y], run("Convolution", params, [x, w, b], [y]))
    outs = [np.zeros((2, 5, 6, 16), np.float32).transpose(0, 3, 1, 2), np.zeros((8, 16, 3, 3), np.float32), None]
    check_close(outs, run("_backward_Convolution", params, [dy, x, w], outs))


@pytest.mark.parametrize("params, specs", [({"layout": "NHWC"}, "f4 f4"), ({}, "f8 f8"), ({}, "f2 f2")])
def test_what_is_left_to_others(params, specs):
    p = find_op("Convolution").parse({"kernel": (3, 3), "num_filter": 4, "no_bias": True, **params})
    shapes = (2, 4, 5, 5), (4, 4, 3, 3)
    assert not KERNELS["Convolution"].when(p, *[Spec(s, np.dtype(t)) for s, t in zip(shapes, specs.split())])
    assert not KERNELS["Convolution"].when(p, Spec((0, 4, 5, 5), np.dtype("f4")), Spec(shapes[1], np.dtype("f4")))


def test_where_the_library_fails_the_body_computes(monkeypatch, caplog):
    def fails(self, *arrays, **further):
        raise Refused("oneDNN: primitive_execute: out of memory")

    monkeypatch.setattr(plan.Plan, "run", fails)
    monkeypatch.setattr(calls, "_told", set())
    params = dict(kernel=(2, 2), num_filter=3)
    x, w, b, dy = numbers(1, (1, 2, 4, 4), (3, 2, 2, 2), (3,), (1, 3, 3, 3))
    for _ in range(2):
        y = np.empty((1, 3, 3, 3), np.float32)
        check_close([y], run("Convolution", params, [x, w, b], [y]))
    outs = [None, np.empty_like(w), np.empty_like(b)]
    check_close(outs, run("_backward_Convolution", params, [dy, x, w], outs))
    told = [r.getMessage() for r in caplog.records]
    assert len(told) == 2 and "operator Convolution runs without oneDNN: " in told[0] and "out of memory" in told[0]


def test_threads_share_plans(restless):
    params = dict(kernel=(3, 3), pad=(1, 1), num_filter=16)
    wrong = []

    def work(seed):
        x, w, b = numbers(seed, (2, 16, 9, 9), (16, 16, 3, 3), (16,))
        y = np.empty((2, 16, 9, 9), np.float32)
        want = run("Convolution", params, [x, w, b], [y])
        op, k = find_op("Convolution"), op_context(mx.cpu(), False)
        for _ in range(50):
            y[:] = np.nan
            KERNELS["Convolution"].fn(k, op.parse(params), [y], x, w, b)
            if np.abs(y - want[0]).max() > 1e-3:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_no_use_for_threads(monkeypatch):
    """Those of its parent are not there: the child computes alone, also what the parent has made a plan for."""
    monkeypatch.setattr(threads, "count", lambda: 3)
    params = dict(kernel=(3, 3), pad=(1, 1), num_filter=32)
    x, w, b = numbers(0, (4, 32, 12, 12), (32, 32, 3, 3), (32,))
    y = np.empty((4, 32, 12, 12), np.float32)
    want = run("Convolution", params, [x, w, b], [y])
    pid = os.fork()
    if not pid:
        try:
            y[:] = np.nan
            run("Convolution", params, [x, w, b], [y])
            os._exit(0 if np.abs(y - want[0]).max() < 1e-3 and teams.workers() == 1 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert teams.workers() == 3


def test_the_number_of_threads_of_others_stays():
    openmp = library().openmp
    before = openmp.omp_get_max_threads()
    openmp.omp_set_num_threads(7)
    try:
        x, w = numbers(0, (2, 4, 5, 5), (4, 4, 3, 3))
        run(
            "Convolution", dict(kernel=(3, 3), num_filter=4, no_bias=True), [x, w], [np.empty((2, 4, 3, 3), np.float32)]
        )
        assert openmp.omp_get_max_threads() == 7
    finally:
        openmp.omp_set_num_threads(before)
