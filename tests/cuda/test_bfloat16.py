"""Kernels over bfloat16: within one rounding of what bodies give of the same inputs in float64, in programs, too."""

from contextlib import contextmanager

import ml_dtypes
import numpy as np
import pytest

import mxcore as mx
from mxcore._core import tables
from mxcore._core.call import op_context
from mxcore._core.errors import REFERENCE
from mxcore.plugin import find_op
from mxcore.testing.ways import kernels_reached
from mxcore_cuda.launching import Kernel
from mxcore_cuda.sources import Code

from . import test_elementwise as elementwise
from .test_empty import given, outcome
from .test_graphs import Counted, replaying
from .test_kernels import CASES, Csr, close, computed, exact, expected, name_of
from .test_training import lenet, lstm, mlp, prepared

#: Kernels that round on their way, as in float16: states of each step, columns that are added up, moments.
ON_THE_WAY = {"RNN", "Convolution", "Deconvolution", "_multi_lamb_update"}
NORMS = ("LayerNorm", "GroupNorm", "InstanceNorm")
#: Operators whose kernels take no halves.
OTHERS = {"_square_sum"}


# -- each kernel by itself -------------------------------------------------------------------------------------------
def wide(a):
    return a.astype("float64") if isinstance(a, np.ndarray) and a.dtype.kind in "fV" else a


def wanted(op, k, p, ins):
    """What the body gives in float64; gradients of norms are not those of statistics that were rounded."""
    host, forward = op_context(mx.cpu(), k.is_train), op.name.removeprefix("_backward_")
    if forward in NORMS and forward != op.name:
        dy, data, gamma, *_ = ins
        ins = [dy, data, gamma, *find_op(forward).body(host, p, data, gamma, gamma)[1:]]
    with np.errstate(all="ignore"):
        found = op.body(host, p, *ins)
    return [*found] if isinstance(found, (list, tuple)) else [found]


@contextmanager
def watching():
    """A list of (operator, what its kernel wrote, what its body gives) for each output of all kernels that run."""
    found, resolve = [], tables.kernels.resolve

    def watched(op, fn):
        def call(k, p, outs, *ins):
            host = [wide(k.device.to_host(a)) if hasattr(a, "flags") else a for a in ins]
            fn(k, p, outs, *ins)
            both = zip(outs, wanted(op, k, p, host), strict=True)
            found.extend((op.name, k.device.to_host(a), b) for a, b in both if a is not None)

        return call

    def noted(op, device, p, specs):
        fn, out, owner = resolve(op, device, p, specs)
        return (watched(op, fn) if out and device.type == "gpu" and not p._sig.random else fn), out, owner

    tables.changed()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables.kernels, "resolve", noted)
        yield found
    tables.changed()


@pytest.fixture
def beside(gpus):
    """What kernels on the GPUs write, beside what bodies give."""
    with watching() as found:
        yield found


def rounds_before(name):
    return name.removeprefix("_backward_") in ON_THE_WAY


def roundings(name, a, b):
    """How many roundings numbers are off beyond those of float32; of the largest where a kernel rounds on its way."""
    size = np.abs(b).max(initial=0, where=np.isfinite(b))
    one = 2.0**-8 * (1 + size if rounds_before(name) else np.abs(b))
    with np.errstate(all="ignore"):
        off = np.abs(wide(a) - b) / (one * (a.dtype.itemsize == 2) + 2e-5 * (1 + size))
    return np.where((a == b) | (np.isnan(wide(a)) & np.isnan(b)), 0, np.nan_to_num(off, nan=np.inf)).max(initial=0)


def check_each(beside):
    for name, a, b in beside:
        assert roundings(name, a, np.asarray(b, "float64")) <= (2 if rounds_before(name) else 1.01), name


def check(beside, i):
    """Compare the kernels of a case; those of sparse arrays, which make their results, by the case as a whole."""
    op, inputs, _ = CASES[i]
    found, sparse = computed(CASES[i], mx.gpu(0), "bfloat16"), isinstance(inputs[0], Csr)
    check_each(beside)
    assert beside or sparse or op in OTHERS
    if sparse:
        close(found, expected(i), "bfloat16")


SOME = range(3, len(CASES), 24)


@pytest.mark.parametrize("i", SOME, ids=name_of)
def test_some_kernels(beside, i):
    check(beside, i)


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.parametrize("i", sorted({*range(len(CASES))} - {*SOME}), ids=name_of)
def test_the_other_kernels(beside, i):
    check(beside, i)


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
@pytest.mark.parametrize("i", range(0, len(CASES), 3), ids=name_of)
def test_some_without_elements(beside, i):
    for case in given(i):
        outcome(case, mx.gpu(0), "bfloat16")  # `test_empty` knows what is refused
    check_each(beside)


# -- elementwise -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("op", elementwise.OPS)
def test_elementwise_operators_are_those_of_float32_rounded_once(gpus, op):
    a, b = (exact(g.ravel()) for g in np.meshgrid(elementwise.STRANGE, elementwise.STRANGE))
    for scalar in (0.5, -2.0):
        single, half = (elementwise.run(op, gpus[1], t, [a, b, np.abs(a)], scalar) for t in ("float32", "bfloat16"))
        np.testing.assert_array_equal(half, single.astype(ml_dtypes.bfloat16).astype("float64"))


def test_indices(gpus):
    """What is no number is no class, and the first row; fractions are cut off, and what is too large is the last."""
    at = mx.nd.array([0, 2.5, -1, 200, 3e38, np.nan], ctx=gpus[1], dtype="bfloat16")
    x = mx.nd.array(np.arange(18).reshape(6, 3), ctx=gpus[1])
    with kernels_reached() as reached:
        rows, each = mx.nd.take(x, at), mx.nd.pick(x, at)
        classes = mx.nd.one_hot(at, 3, dtype="bfloat16")
    assert reached == {"take", "pick", "one_hot"}
    assert rows.asnumpy()[:, 0].tolist() == [0, 6, 0, 15, 15, 0]
    assert each.asnumpy().tolist() == [0, 5, 6, 11, 14, 15]
    assert classes.astype("float32").asnumpy().tolist() == [[1, 0, 0], [0, 0, 1], *[[0, 0, 0]] * 4]


NARROW = """#include "mx.cuh"
KERNEL(256) narrow(const float* x, T* y, i64 n) { FOR_EACH(i, n) y[i] = T(x[i]); }
EACH(narrow)
"""


def test_numbers_are_rounded_to_the_nearest(gpus):
    """Of two to the even one; what is not a number stays so, and what is too large becomes infinite."""
    bits = np.random.default_rng(0).integers(0, 1 << 32, 6000, np.uint32)
    bits[::3] &= 0xFFFF8000  # in the middle between two
    bits[:4] = 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF, 0xFF800000
    device, x = gpus[0].device, bits.view(np.float32)
    y = device.empty(x.shape, np.dtype(ml_dtypes.bfloat16), 0)
    Kernel(Code("mine.cu", NARROW, "bfloat16"), "narrow", 0).each(x.size, device.from_host(x, 0), y, x.size)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(device.to_host(y).astype("f4"), x.astype(ml_dtypes.bfloat16).astype("f4"))


class Mixed(mx.gluon.HybridBlock):
    """Sums and choices of bfloat16, and of what is made of it in float32."""

    def hybrid_forward(self, F, x, y):
        z = F.abs(x + y) * x - F.maximum(x, y)
        return F.cast(F.tanh(F.cast(z, dtype="float32")) * 0.3 + 1, dtype="bfloat16") + y


def test_a_chain_gives_the_bits_that_its_operators_give_one_by_one(gpus, monkeypatch):
    arrays = [exact(g.ravel()) for g in np.meshgrid(elementwise.STRANGE, elementwise.STRANGE)]
    x, y = (mx.nd.array(a, ctx=gpus[1], dtype="bfloat16") for a in arrays)
    net = Mixed()
    wanted = net(x, y)
    net.hybridize()
    with replaying(gpus[1].device, False):
        net(x, y)
        counted = Counted(gpus[1].device.driver, monkeypatch)
        found = net(x, y)
    assert counted.since() == (1, 0) and str(np.dtype(found.dtype)) == "bfloat16"
    np.testing.assert_array_equal(found.asnumpy().view("uint16"), wanted.asnumpy().view("uint16"))


# -- networks --------------------------------------------------------------------------------------------------------
def trained(make, ctx, dtype, hybridise):
    """The losses of some steps, and the parameters behind them."""
    net, data, label = prepared(make)
    net.cast(dtype)
    net.collect_params().reset_ctx(ctx)
    if hybridise:
        net.hybridize()
    rule = {"learning_rate": 0.05, "momentum": 0.5, "multi_precision": True}
    trainer, loss = mx.gluon.Trainer(net.collect_params(), "sgd", rule), mx.gluon.loss.SoftmaxCrossEntropyLoss()
    x, y, found = data.astype(dtype).as_in_context(ctx), label.as_in_context(ctx), []
    for _ in range(6):
        with mx.autograd.record():
            each = loss(net(x), y)
        each.backward()
        trainer.step(len(data))
        found.append(each)
    arrays = [*found, *(p.data() for p in net.collect_params().values())]
    return np.array([float(each.astype("float32").mean().asscalar()) for each in found]), [a.asnumpy() for a in arrays]


@pytest.fixture
def bodies(gpus, monkeypatch):
    """The operators that reference bodies compute on a GPU."""
    found, resolve = set(), tables.kernels.resolve

    def noted(op, device, p, specs):
        chosen = resolve(op, device, p, specs)
        if chosen[2] == REFERENCE and device.type == "gpu":
            found.add(op.name)
        return chosen

    tables.changed()
    monkeypatch.setattr(tables.kernels, "resolve", noted)
    yield found
    tables.changed()


@pytest.mark.parametrize("make", [mlp, lenet, lstm])
def test_networks_train_by_the_kernels_that_float16_has(gpus, bodies, make):
    here, there = (trained(make, ctx, "bfloat16", False)[0] for ctx in (mx.cpu(), gpus[1]))
    np.testing.assert_allclose(there, here, rtol=1e-2)
    assert there[-1] < there[0]
    mine = {*bodies}
    bodies.clear()
    trained(make, gpus[1], "float16", False)
    assert mine == bodies


@pytest.mark.parametrize("make", [mlp, lenet, lstm])
def test_programs_that_are_replayed_give_what_those_give_that_launch_each_step(gpus, monkeypatch, make):
    with replaying(gpus[1].device, False):
        _, launched = trained(make, gpus[1], "bfloat16", True)
    counted = Counted(gpus[1].device.driver, monkeypatch)
    _, replayed = trained(make, gpus[1], "bfloat16", True)
    assert counted.since()[1] > 0
    for a, b in zip(replayed, launched, strict=True):
        np.testing.assert_array_equal(a, b)
