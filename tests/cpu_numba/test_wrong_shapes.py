"""Kernels trust the shape rules: what these let pass, the body over NumPy, which checks by itself, can compute."""

import math

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import dispatch, tables
from mxcore._core.call import op_context

from .test_chosen import SPARSE

#: Elements from which on all kernels take part.
MANY = 60_000


def operators():
    mx.cpu().device  # noqa: B018  the kernels come with the device
    return sorted(
        {
            o.name: o
            for o in tables.ops.items.values()
            if tables.kernels.of("cpu", o) and o.samples and not o.stateful and o.name not in {*SPARSE, "cast_storage"}
        }.items()
    )


def enlarged(arrays):
    """The arrays, and the same repeated along every axis until they are large."""
    yield arrays
    times = 1
    while times < 400 and sum(math.prod(d * times for d in a.shape) for a in arrays) < MANY:
        times = times + 1 if times < 8 else int(times * 1.3)
    yield [np.tile(a, (times,) * a.ndim) for a in arrays]


def other_shapes(shape):
    """Shapes that do not fit where one does: half or more of an axis, of length 1, of another rank."""
    if shape:
        first, last = shape[0], shape[-1]
        found = (
            (first // 2 or 1, *shape[1:]),
            (first * 2, *shape[1:]),
            (*shape[:-1], last // 2 or 1),
            (*shape[:-1], last * 3),
            (1,) * len(shape),
            shape[:-1],
            (*shape, 2),
            (1,),
        )
        yield from (s for s in found if s)  # NDArrays have at least one dimension


def uses(op):
    most = 1 << (14 if op.random else 21)  # numbers that are drawn are not compared
    for sample in op.samples[:4]:
        kwargs = dict(sample.params)
        for arrays in enlarged([np.asarray(a) for a in sample.arrays("float32")]):
            if op.variadic:
                kwargs.setdefault(op.count, len(arrays))
            for i, a in enumerate(arrays):
                for shape in other_shapes(a.shape):
                    if math.prod(shape) < most:
                        yield [*arrays[:i], np.resize(a, shape), *arrays[i + 1 :]], kwargs


def results(values):
    return [np.asarray(v) for v in (values if isinstance(values, (list, tuple)) else [values]) if v is not None]


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.parametrize("name, op", operators(), ids=lambda v: v if isinstance(v, str) else "")
def test_what_the_rules_let_pass_the_body_computes(name, op):
    k = op_context(mx.cpu(), False)
    for arrays, kwargs in uses(op):
        try:
            p = op.parse(dict(kwargs))
            given = [mx.nd.array(a, dtype=a.dtype) for a in arrays]
            found = dispatch.invoke(op, given, p)
            found = [y.asnumpy() for y in (found if isinstance(found, list) else [found]) if y is not None]
        except mx.MXNetError:  # at the call, or where a worker found out
            continue
        if p._sig.random:
            continue
        what = f"{name} {[a.shape for a in arrays]} {kwargs}"
        try:
            with np.errstate(all="ignore"):
                wanted = results(op.body(k, p, *[a.copy() for a in arrays]))
        except Exception as e:
            raise AssertionError(f"{what}: the kernel computes what the body refuses: {e}") from e
        for y, w in zip(found, wanted):
            assert y.shape == w.shape, what
            np.testing.assert_allclose(y, w, 1e-2, 1e-3, err_msg=what)
