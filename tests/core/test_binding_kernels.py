"""Kernels that bind their steps of programs themselves."""

import types

import numpy as np
import pytest

import mxcore as mx
from mxcore._core.call import op_context
from mxcore._core.manager import manager
from mxcore.plugin import API_VERSION, KernelSet, Spec, compute_without, find_op, hookimpl, kernel_without, op

A = np.float32([[0, -2], [3, -4]])


@pytest.fixture
def kernel(plug):
    """Let a kernel of arctan, which gives one more than that, have an attribute `binds`; see eager calls of it."""

    def register(binds):
        seen, kernels = [], KernelSet("cpu")

        def arctan(k, p, outs, data):
            seen.append(data.shape)
            np.add(np.arctan(data), 1, out=outs[0])

        arctan.binds = binds
        kernels.kernel("arctan", priority=90, out=True)(arctan)
        plug(mxcore_kernels={"cpu": kernels})
        return seen

    return register


def bound(a):
    return (mx.sym.arctan(mx.sym.Variable("a"), name="here") * 1).bind(mx.cpu(), {"a": a})


def test_a_step_is_the_call_that_it_makes(kernel):
    made = []

    def binds(k, p, ins, outs):
        made.append(ins[0].shape)
        return lambda: np.add(np.arctan(ins[0]), 2, out=outs[0])

    seen = kernel(binds)
    a = mx.nd.array(A)
    executor = bound(a)
    for _ in range(3):
        np.testing.assert_allclose(executor.forward()[0].asnumpy(), np.arctan(A) + 2, rtol=1e-6)
    a[:] = A * 2
    np.testing.assert_allclose(executor.forward()[0].asnumpy(), np.arctan(A * 2) + 2, rtol=1e-6)
    np.testing.assert_allclose(executor.forward(a=mx.nd.array(A * 3))[0].asnumpy(), np.arctan(A * 3) + 2, rtol=1e-6)
    assert made == [(2, 2)] and not seen
    np.testing.assert_allclose(mx.nd.arctan(a).asnumpy(), np.arctan(A * 3) + 1, rtol=1e-6)  # eager
    assert seen == [(2, 2)]


def test_it_need_not(kernel):
    seen = kernel(lambda k, p, ins, outs: None)
    np.testing.assert_allclose(bound(mx.nd.array(A)).forward()[0].asnumpy(), np.arctan(A) + 1, rtol=1e-6)
    assert seen == [(2, 2)]


def test_what_is_no_call(kernel):
    kernel(lambda k, p, ins, outs: 5)
    with pytest.raises(
        TypeError, match=r"operator arctan \[node 'here'.*throwaway.*its `binds`, .* made no call but 5"
    ):
        bound(mx.nd.array(A)).forward()[0].asnumpy()


def test_an_output_that_is_replaced_is_an_error(kernel):
    def binds(k, p, ins, outs):
        def call():
            outs[0] = np.arctan(ins[0])

        return call

    kernel(binds)
    executor = bound(mx.nd.array(A))
    for _ in range(2):
        with pytest.raises(TypeError, match=r"operator arctan \[node 'here'.*replaced an array of `outs`"):
            executor.forward()[0].asnumpy()


def test_an_output_that_is_replaced_later_is_an_error_too(kernel):
    runs = []

    def binds(k, p, ins, outs):
        def call():
            runs.append(1)
            np.arctan(ins[0], out=outs[0])
            if len(runs) == 3:
                outs[0] = outs[0].copy()

        return call

    kernel(binds)
    executor = bound(mx.nd.array(A))
    for i in range(5):
        if i == 2:
            with pytest.raises(TypeError, match=r"operator arctan \[node 'here'.*replaced an array of `outs`"):
                executor.forward()
            continue
        a = A * i
        np.testing.assert_allclose(executor.forward(a=mx.nd.array(a))[0].asnumpy(), np.arctan(a), rtol=1e-6)


def test_a_body_asked_for_by_a_plugin_leaves_states_that_stay(plug):
    """Bodies give None for them, which is no number to be written."""

    @op("test_binding_stays", inputs="x state", outputs="y", aux="state", mutates="state", grad=None)
    def stays(k, p, x, state):
        return x + state, None

    plug(mxcore_ops=[stays])
    x, state, out = (np.full(3, v, np.float32) for v in (1, 2, 0))
    k = op_context(mx.cpu(), True)
    compute_without("nobody", "test_binding_stays", k, stays.parse({}), [out, state], x, state)
    assert out.tolist() == [3] * 3 and state.tolist() == [2] * 3


def register(name, kernels):
    hook = hookimpl(lambda: kernels, specname="mxcore_kernels")
    manager.register(types.SimpleNamespace(API_VERSION=API_VERSION, mxcore_kernels=hook), name)


def leaving(name, priority, seen, keeps=False):
    """A kernel of sinh that leaves everything to the next one, and keeps something where it may."""
    kernels = KernelSet("cpu")

    def sinh(k, p, outs, data):
        seen.append((name, k.keep is not None))
        assert len(seen) < 20, seen
        if k.keep is not None:
            k.keep.values["mine"] = name
        compute_without(name, "sinh", k, p, outs, data)

    sinh.keeps = keeps
    kernels.kernel("sinh", priority=priority, out=True)(sinh)
    return {"cpu": kernels}


def test_kernels_that_leave_their_work_to_one_another_come_to_an_end():
    seen = []
    first, second = "leaving_first", "leaving_second"
    for name, priority in ((first, 95), (second, 90)):
        register(name, leaving(name, priority, seen))
    try:
        np.testing.assert_allclose(mx.nd.sinh(mx.nd.array(A)).asnumpy(), np.sinh(A), rtol=1e-6)
        assert seen == [(first, False), (second, False)]
    finally:
        for name in (first, second):
            manager.unregister(name)


def test_what_a_kernel_keeps_is_not_the_next_ones():
    seen = []
    for name, priority in (("leaving_first", 95), ("leaving_second", 90)):
        register(name, leaving(name, priority, seen, keeps=True))
    try:
        (mx.sym.sinh(mx.sym.Variable("a")) * 1).bind(mx.cpu(), {"a": mx.nd.array(A)}).forward()
        assert seen == [("leaving_first", True), ("leaving_second", False)]
    finally:
        for name in ("leaving_first", "leaving_second"):
            manager.unregister(name)


def test_a_kernel_that_was_asked_for_leaves_it_to_no_one_who_had_it():
    seen = []
    for name, priority in (("leaving_first", 95), ("leaving_second", 90)):
        register(name, leaving(name, priority, seen))
    try:
        p = find_op("sinh").parse({})
        found = kernel_without("leaving_second", "sinh", "cpu", p, Spec(A.shape, A.dtype))
        out, k = np.empty_like(A), op_context(mx.cpu(), False)
        found(k, p, [out], A)
        np.testing.assert_allclose(out, np.sinh(A), rtol=1e-6)
        assert seen == [("leaving_first", False)] and k.keep is None and not hasattr(k, "_left")
    finally:
        for name in ("leaving_first", "leaving_second"):
            manager.unregister(name)
