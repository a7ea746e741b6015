"""What the tests of the plugin share."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import mxcore as mx
from mxcore._core.call import op_context
from mxcore.plugin import Spec, find_op
from mxcore_onednn import bindings, bound, plans
from mxcore_onednn.library import ISA_BFLOAT16, library

#: Operator -> the kernel that is asked first.
KERNELS = {e.op: e for e in sorted(bindings.kernels.entries, key=lambda e: e.priority)}
BFLOAT16 = pytest.mark.skipif(
    library().isa & ISA_BFLOAT16 != ISA_BFLOAT16, reason="this processor has no products of bfloat16"
)
#: Of tests over drawn shapes; their fixtures hold for every example.
HYPOTHESIS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def forget():
    """Every plan goes that nobody uses; who asks again gets a new one."""
    with plans._lock:
        # What goes with a plan is Python code, in the middle of which another thread may put one in: only then, when
        # the dictionary is whole.
        gone = list(plans._plans.values())
        plans._plans.clear()
    del gone


def numbers(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


def taken(name, params, ins):
    """Whether the kernel takes arrays."""
    return KERNELS[name].when(find_op(name).parse({**params}), *[Spec(a.shape, a.dtype) for a in ins])


def run(name, params, ins, outs):
    """Through the kernel, which has to take it; returns the wanted results."""
    assert taken(name, params, ins)
    op, k = find_op(name), op_context(mx.cpu(), False)
    KERNELS[name].fn(k, op.parse({**params}), outs, *ins)
    return reference(name, params, *ins)


def reference(name, params, *ins):
    """What the body gives, in float64."""
    op = find_op(name)
    ins = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in ins]
    found = op.body(op_context(mx.cpu(), False), op.parse({**params}), *ins)
    return found if isinstance(found, (list, tuple)) else [found]


def watch_kept(monkeypatch, name=bool):
    """Of each call of a plan from now on: whether it finds all that it can keep, by a `name` for true and false."""
    seen, run_bound = [], bound.Bound.run

    def run(self, made, arrays, kept, room):
        seen.append(name(kept is not None and kept.filled))
        run_bound(self, made, arrays, kept, room)

    monkeypatch.setattr(bound.Bound, "run", run)
    return seen


def check_close(outs, want):
    for a, b in zip(outs, want):
        if a is not None:
            size = np.abs(b).max(initial=0, where=np.isfinite(b))
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5 * (1 + size))


def bfloat16():
    return pytest.importorskip("ml_dtypes").bfloat16


def check_halves(found, want):
    """To two roundings: of the library's sum and of the body's."""
    for a, b in zip(found, want):
        if a is not None:
            assert a.dtype == bfloat16()
            a, b = a.astype(np.float32), np.asarray(b, np.float32)
            np.testing.assert_allclose(a, b, rtol=2**-7, atol=2**-9 * (1 + np.abs(b).max(initial=0)))


def check_rounded(found, want):
    """To one rounding of numbers that were computed in float32."""
    for a, b in zip(found, want):
        if a is not None:
            assert a.dtype == bfloat16()
            a, b = a.astype(np.float64), np.asarray(b, np.float64)
            size = np.abs(b).max(initial=0, where=np.isfinite(b))
            np.testing.assert_allclose(a, b, rtol=1.01 * 2**-8, atol=2e-5 * (1 + size))


def halves(seed, *shapes):
    """Numbers of bfloat16."""
    return [a.astype(bfloat16()) for a in numbers(seed, *shapes)]


def strided(a):
    """The same numbers, not side by side."""
    return np.repeat(a, 2, axis=-1)[..., ::2]


def wide(ins):
    return [a.astype(np.float32) for a in ins]


def computed(name, params, ins, outs):
    """Through the kernel, which has to take it; and what the body gives of the same numbers in float64."""
    op, k = find_op(name), op_context(mx.cpu(), False)
    assert taken(name, params, ins)
    KERNELS[name].fn(k, op.parse({**params}), outs, *ins)
    return reference(name, params, *wide(ins))
