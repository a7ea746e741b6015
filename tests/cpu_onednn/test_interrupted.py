"""Plans that steps of programs hold: an interrupt at any time leaves them sound."""

import contextlib

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd
from mxcore.gluon import nn
from mxcore_onednn import products, standing
from mxcore_onednn.library import library
from mxcore_onednn.plan import Plan
from mxcore_onednn.teams import Threads


def net():
    mx.random.seed(3)
    found = nn.HybridSequential()
    found.add(nn.Dense(64, activation="relu", in_units=128), nn.Dense(32, in_units=64))
    found.initialize(mx.init.Uniform(1))
    found.hybridize()
    return found


def gradients(found, x, head, interrupt=contextlib.nullcontext):
    x.attach_grad()
    with autograd.record():
        y = found(x)
    with interrupt(), contextlib.suppress(KeyboardInterrupt):
        y.backward(head, retain_graph=True)
    y.backward(head)
    return [x.grad.asnumpy(), *[p.grad().asnumpy() for p in found.collect_params().values()]]


def once(monkeypatch, owner, name, late):
    """Let a method be interrupted the first time, before it does anything or behind it."""

    @contextlib.contextmanager
    def interrupted():
        real, left = getattr(owner, name), [1]

        def method(*args):
            if left and not late:
                left.clear()
                raise KeyboardInterrupt
            result = real(*args)
            if left:
                left.clear()
                raise KeyboardInterrupt
            return result

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, method)
            yield
            assert not left, "it was not called"

    return interrupted


@pytest.mark.parametrize("late", [False, True], ids=["before", "behind"])
@pytest.mark.parametrize("what", ["bound", "ref"])
def test_an_interrupt_leaves_a_plan_that_begins_anew(monkeypatch, what, late):
    monkeypatch.setattr(products, "multiplies", lambda *facts: True)  # with AVX2 they are somebody else's
    rng = np.random.RandomState(0)
    x, heads = mx.nd.array(rng.randn(64, 128)), [mx.nd.array(rng.randn(64, 32)) for _ in range(2)]
    whole, broken = net(), net()
    owner, name = (Plan, "bound") if what == "bound" else (standing.weakref, "ref")
    for i, head in enumerate(heads * 2):
        interrupt = once(monkeypatch, owner, name, late) if i in (0, 2) else contextlib.nullcontext
        if i == 2 and what == "bound":
            interrupt = contextlib.nullcontext  # plans are bound by now
        for a, b in zip(gradients(broken, x, head, interrupt), gradients(whole, x, head), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_an_interrupt_leaves_as_many_threads_as_there_were():
    openmp = library().openmp
    before, real = openmp.omp_get_max_threads(), openmp.omp_set_num_threads

    class Interrupted:
        omp_get_max_threads = openmp.omp_get_max_threads

        def omp_set_num_threads(self, n):
            real(n)
            if n != before:
                raise KeyboardInterrupt

    class Library:
        openmp = Interrupted()

    with pytest.raises(KeyboardInterrupt), Threads(Library(), before + 1):
        pass
    assert openmp.omp_get_max_threads() == before
