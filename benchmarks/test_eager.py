"""What an eager call costs beside NumPy's."""

from __future__ import annotations

import gc
import operator

import numpy as np
import pytest

import mxcore as mx


def resident():
    """Resident memory of this process in bytes."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


@pytest.fixture
def small(ctx):
    """Two arrays of 4 x 4, of ours and of NumPy."""
    ours = [mx.nd.ones((4, 4), ctx=ctx), mx.nd.full((4, 4), 3, ctx=ctx)]
    return (*ours, *(a.asnumpy() for a in ours))


def test_add(compare, small):
    a, b, p, q = small
    add = np.add
    assert compare("a + b, 4 x 4", lambda: a + b, lambda: add(p, q), number=2000, at_most=4, against="np.add") > 0


def test_row_of_an_array_of_np(compare, ctx):
    x = mx.np.ones((8, 8), ctx=ctx)
    p = x.asnumpy()
    assert compare("x[1] of mx.np, 8 x 8", lambda: x[1], lambda: p[1], number=2000, at_most=5, against="NumPy") > 0


def test_record_and_backward(compare, small):
    x, b, p, q = small
    x.attach_grad()
    record, add = mx.autograd.record, np.add

    def ours():
        with record():
            y = (x * 2 + b).sum()
        y.backward()

    ratio = compare(
        "record + backward of (x*2+b).sum()", ours, lambda: add(p, q), number=500, at_most=60, against="np.add"
    )
    assert ratio > 0 and (x.grad.asnumpy() == 2).all()


@pytest.fixture
def faces(small):
    """The same two arrays of ``mx.nd`` and of ``mx.np``."""
    a, b = small[:2]
    return a, b, a.as_np_ndarray().copy(), b.as_np_ndarray().copy()


@pytest.mark.parametrize("sign", ["+", "*", "/", ">", "=="])
def test_operators_of_np(compare, faces, sign):
    a, b, p, q = faces
    fn = {"+": operator.add, "*": operator.mul, "/": operator.truediv, ">": operator.gt, "==": operator.eq}[sign]
    title = f"np: a {sign} b, 4 x 4"
    assert compare(title, lambda: fn(p, q), lambda: fn(a, b), number=2000, at_most=1.1, against="mx.nd") > 0


@pytest.mark.parametrize("ends", ["- x", "sum"])
def test_record_and_backward_of_np(compare, faces, ends):
    a, b, p, q = faces
    for x in (a, p):
        x.attach_grad()
    record = mx.autograd.record

    def three(x, y):
        with record():
            z = x * 2 + y
            z = z.sum() if ends == "sum" else z - x
        z.backward()

    title = f"np: record + backward of {'(x*2+b).sum()' if ends == 'sum' else 'x*2+b-x'}"
    ratio = compare(title, lambda: three(p, q), lambda: three(a, b), number=500, at_most=1.1, against="mx.nd")
    assert ratio > 0 and (p.grad.asnumpy() == a.grad.asnumpy()).all()


@pytest.mark.slow
def test_memory_of_many_steps(row, ctx):
    """100,000 steps with a learning rate that decays at every one."""
    x, weight = mx.nd.ones((4, 4), ctx=ctx), mx.nd.ones((4, 4), ctx=ctx)
    weight.attach_grad()
    rule = mx.optimizer.SGD(learning_rate=0.1, momentum=0.9)
    update = mx.optimizer.get_updater(rule)

    def steps(first, last):
        for i in range(first, last):
            rule.set_learning_rate(0.1 / (1 + i * 1e-3))
            with mx.autograd.record():
                loss = (x * weight + i * 1e-9).sum()
            loss.backward()
            update(0, weight.grad, weight)
        mx.nd.waitall()
        gc.collect()
        return resident()

    before = steps(0, 10_000)
    grown = steps(10_000, 100_000) - before
    row(
        "memory of 90,000 further eager steps", value=f"{grown / 2**20:+.2f} MiB", wanted="no growth", met=grown < 2**20
    )
    assert np.isfinite(weight.asnumpy()).all()
