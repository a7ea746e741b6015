"""Convolutions of regions that another plugin's kernel computes, of weights that it has prepared and that are kept."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mxcore as mx
from mxcore.executor import CachedOp, passes_off
from mxcore.plugin import Spec, find_op, kernel_without
from mxcore.testing.case import Call
from mxcore_cpu.kernels import winograd
from mxcore_onednn import layers, others, rules
from mxcore_onednn.convolution import Geometry
from mxcore_onednn.library import ISA_AVX2, ISA_AVX512
from tests.cpu_onednn.support import HYPOTHESIS, check_close, forget
from tests.cpu_onednn.test_regions import PASS, bound, plan_of, regions, results
from tests.executor.training import arrays_of

pytestmark = [
    pytest.mark.usefixtures("provider", "no_plans_are_left"),
    pytest.mark.skipif(not winograd.usable(16, 16), reason="no AVX2 and FMA, or no GNU OpenMP"),
]
F = mx.sym


def geometry(n=1, channels=64, filters=64, size=14, kernel=3, pad=1, **changed):
    dst = n, filters, *((size + 2 * pad - kernel + 1,) * 2)
    shapes = (n, channels, size, size), (filters, channels, kernel, kernel), dst
    return Geometry(*shapes, (1, 1), (pad, pad), (1, 1), 1)._replace(**changed)


POINTS = geometry(channels=256, filters=256, size=28, kernel=1, pad=0)


@pytest.mark.parametrize(
    "g, left",
    [
        (geometry(size=28), True),
        (geometry(128, 16, 16, size=28), True),
        (geometry(channels=256, filters=256), True),
        (geometry(), False),  # takes no longer than calls
        (geometry(channels=512, filters=512, size=13), False),  # as long as reading what is kept
        (geometry(n=2, channels=512, filters=512, size=13), True),
        (geometry(size=28, stride=(2, 2)), False),
        (geometry(size=28, kernel=1, pad=0), False),
    ],
)
def test_which_convolutions_are_left_where_weights_are_kept(g, left):
    wide = min(g.src[1], g.dst[1]) >= 32
    assert rules.left(ISA_AVX2, "forward", g, kept=True) is left
    assert rules.left(ISA_AVX512, "forward", g, kept=True) is (left and wide)


@pytest.mark.parametrize(
    "convolutions, pays",
    [
        ([geometry(size=28)], True),
        ([geometry(size=28), POINTS], True),
        ([geometry(size=28), POINTS, POINTS], False),  # a small part
        ([geometry(size=28), geometry(channels=4, filters=4, size=448)], False),  # beside large images
    ],
)
@pytest.mark.parametrize("isa", [ISA_AVX2, ISA_AVX512])
def test_regions_leave_them_where_they_are_a_good_part_of_the_work(isa, convolutions, pays):
    ours = [g for g in convolutions if rules.left(isa, "forward", g, kept=True)]
    assert rules.prepares(convolutions, ours) is pays
    assert not rules.prepares(convolutions, [])
    assert rules.lies_last(isa, [POINTS._replace(src=(2, 256, 28, 28))], pays) is (pays and isa == ISA_AVX512)


@pytest.fixture
def every(monkeypatch):
    """Whatever can be left is, however small; and a list of what was convolved so."""
    ran, plain, convolution = [], rules.left, winograd.convolution

    def left(isa, piece, g, kept=False):
        large = g._replace(src=(1000, *g.src[1:]), dst=(1000, *g.dst[1:]))
        return plain(ISA_AVX2, piece, large, kept) if kept else plain(isa, piece, g)

    monkeypatch.setattr(layers, "left", left)
    monkeypatch.setattr(layers, "prepares", lambda convolutions, ours: True)
    monkeypatch.setattr(winograd, "convolution", lambda *args: (ran.append(args[5:]), convolution(*args)))
    forget()
    mx.executor.compile._cache.clear()
    return ran


def convolution(x, filters, name, **changed):
    return F.Convolution(x, **{"kernel": (3, 3), "pad": (1, 1), "num_filter": filters, "name": name, **changed})


def activated(x, act):
    if act in ("prelu", "leaky", "elu"):
        return F.LeakyReLU(x, act_type=act, slope=0.25, name="slope")
    return F.clip(x, 0, 6) if act == "clip" else F.Activation(x, act_type=act) if act else x


# What comes behind a convolution: a normalization, a sum with another value (which nobody else reads, or which is read
# again), an activation.
@pytest.mark.parametrize("act", ["", "relu", "leaky", "prelu", "sigmoid", "elu", "clip"])
@pytest.mark.parametrize("added", ["", "alone", "shared", "data"])
@pytest.mark.parametrize("normed, biased", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("last", [False, True])
def test_what_follows_is_taken_along(every, monkeypatch, act, added, normed, biased, last):
    monkeypatch.setattr(layers, "lies_last", lambda *args: last)
    data = F.Variable("data")
    first = F.tanh(convolution(data, 32, "first", kernel=(1, 1), pad=(0, 0)))
    other = F.tanh(convolution(first, 32, "other", kernel=(1, 1), pad=(0, 0)))
    y = convolution(first, 32, "conv", no_bias=not biased)
    if normed:
        y = F.BatchNorm(y, fix_gamma=False, eps=1e-3, name="norm")
    y = {"": lambda: y, "data": lambda: y + data}.get(added, lambda: y + other)()
    y = activated(y, act)
    symbol = F.Group([y, F.sin(other)]) if added == "shared" else y
    arrays = arrays_of(symbol, data=(2, 32, 7, 6))
    with passes_off(PASS):
        want = results(symbol, arrays)
    every.clear()
    check_close(results(symbol, arrays), want)
    if act not in ("sigmoid", "elu", "clip"):  # with these the library does it, or the convolution is alone
        [(add, low, slope)] = every
        assert add == (added != "") and low == (0 if act == "relu" else -np.inf)
        assert (slope is not None) == (act in ("leaky", "prelu"))


@pytest.mark.usefixtures("every")
@HYPOTHESIS
@given(
    n=st.integers(1, 5),
    size=st.tuples(st.integers(1, 17), st.integers(1, 17)),
    pad=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    channels=st.lists(st.sampled_from([16, 32, 48, 24]), min_size=2, max_size=4),
    acts=st.lists(st.sampled_from(["relu", "prelu", "elu"]), min_size=3, max_size=3),
    last=st.booleans(),
)
def test_chains(n, size, pad, channels, acts, last):
    y = F.Variable("data")
    for i, (filters, act) in enumerate(zip(channels[1:], acts)):
        around = tuple(max(p, 1) if s < 3 else p for p, s in zip(pad, size)) if not i else (1, 1)
        y = convolution(y, filters, f"conv{i}", pad=around)
        y = F.Activation(y, act_type=act) if act == "relu" else F.LeakyReLU(y, act_type=act, name=f"slope{i}")
    arrays = arrays_of(y, data=(n, channels[0], *size))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layers, "lies_last", lambda *args: last)
        forget()
        with passes_off(PASS):
            want = results(y, arrays)
        check_close(results(y, arrays), want)


def block():
    y = F.BatchNorm(convolution(F.Variable("data"), 48, "conv"), fix_gamma=False, name="norm")
    return F.Activation(y, act_type="relu") * 2


def test_weights_are_prepared_until_somebody_writes(every, monkeypatch):
    made, real = [], winograd.filters_into
    monkeypatch.setattr(winograd, "filters_into", lambda *a: (made.append(1), real(*a)))
    arrays = arrays_of(block(), data=(2, 32, 9, 9))
    executor = bound(block(), arrays)
    for _ in range(5):
        executor.forward(is_train=False)[0].wait_to_read()
    before = len(made)
    assert before <= 2  # programs meet their arrays twice before they keep something
    for name in ("conv_weight", "conv_bias", "norm_gamma", "norm_moving_var"):
        arrays[name][:] = arrays[name] * 1.5 + 0.1
        with passes_off(PASS):
            want = results(block(), arrays)
        check_close([executor.forward(is_train=False)[0].asnumpy()], want)
    assert len(made) == before + 4


def test_sizes_share_what_is_prepared(every, monkeypatch):
    made, real = [], winograd.filters_into
    monkeypatch.setattr(winograd, "filters_into", lambda *a: (made.append(1), real(*a)))
    net = mx.gluon.nn.Conv2D(32, 3, padding=1, in_channels=16, activation="relu")
    net.initialize()
    net.hybridize(static_alloc=True, static_shape=True)
    images = [mx.nd.random.uniform(shape=(n, 16, size, size)) for n, size in ((1, 8), (3, 8), (2, 11))]
    for _ in range(4):
        found = [net(x).asnumpy() for x in images]
    assert 1 <= len(made) <= 2 * len(images)
    before = len(made)
    net.weight.set_data(net.weight.data() * 2)
    doubled = [net(x).asnumpy() for x in images]
    assert len(made) == before + 1
    check_close(doubled, [2 * y for y in found])


def test_threads(every):
    arrays = arrays_of(block(), data=(2, 32, 9, 9))
    op, order = CachedOp(block()), block().list_inputs()
    images = [mx.nd.random.normal(shape=(n, 32, 9, 9)) for n in (1, 2, 1, 2)]
    with passes_off(PASS):
        want = [CachedOp(block())(*[{**arrays, "data": x}[n] for n in order]).asnumpy() for x in images]
    wrong = []

    def work(which):
        for _ in range(15):
            y = op(*[{**arrays, "data": images[which]}[n] for n in order]).asnumpy()
            if not np.allclose(y, want[which], rtol=1e-4, atol=1e-5):
                wrong.append(which)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong and every


def test_without_such_a_kernel_the_library_computes(every, monkeypatch):
    monkeypatch.setattr(others, "kernel_without", lambda *args: None)
    arrays = arrays_of(block(), data=(2, 32, 9, 9))
    with passes_off(PASS):
        want = results(block(), arrays)
    check_close(results(block(), arrays), want)
    (step,) = regions(block(), arrays)
    assert not every and "prepared" not in plan_of(step).codes


def test_a_kernel_in_two_parts_is_the_kernel():
    p = find_op("Convolution").parse({"layout": "NHWC", "kernel": (3, 3), "pad": (1, 0), "num_filter": 32})
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(s).astype("f4") for s in ((2, 6, 9, 16), (32, 3, 3, 16), (32,)))
    specs = [Spec(a.shape, a.dtype) for a in (x, w, b)]
    kernel = kernel_without("cpu_onednn", "Convolution", "cpu", p, *specs)
    whole, parts = np.empty((2, 6, 7, 32), "f4"), np.empty((2, 6, 7, 32), "f4")
    kernel(Call(mx.cpu().device, False), p, [whole], x, w, b)
    made = np.empty(kernel.prepared.size(p, *specs[:2]), "f4")
    kernel.prepared.make(p, w, made)
    kernel.prepared.run(p, x, made, b, parts, False, -np.inf, None)
    assert np.array_equal(whole, parts)
    kernel.prepared.run(p, x, made, b, parts, True, -1.0, np.full(32, 0.5, "f4"))
    found = np.maximum(2 * whole, -1)
    np.testing.assert_allclose(parts, np.where(found > 0, found, found / 2), rtol=1e-6)


@pytest.mark.parametrize("act", ["relu", "leaky", "prelu"])
@pytest.mark.parametrize("slope", [0.25, -0.5, 0])
def test_what_is_not_finite_goes_through_regions(every, act, slope):
    x = F.Variable("data")
    y = convolution(F.identity(x), 16, "conv", no_bias=True)
    kinds = {"relu": lambda: F.Activation(y, act_type="relu")}
    y = kinds.get(act, lambda: F.LeakyReLU(y, act_type=act, slope=slope, name="slope"))()
    arrays = arrays_of(y, data=(1, 16, 6, 6))
    if act == "prelu":
        arrays["slope_gamma"][:] = slope
    arrays["data"][0, 0, 0, 0] = np.nan
    (found,) = results(y, arrays)
    assert every and np.isnan(found[:, :, :2, :2]).all() and np.isfinite(found[:, :, 4:, 4:]).all()
    with passes_off(PASS):
        (want,) = results(y, arrays)
    check_close([found[:, :, 4:, 4:]], [want[:, :, 4:, 4:]])
