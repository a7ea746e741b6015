"""bfloat16 by kernels of float32: as the bodies, in pieces and as a whole, and who is served."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mxcore as mx
from mxcore import autograd
from mxcore._core import infer
from mxcore._core.call import op_context
from mxcore.gluon import nn
from mxcore.plugin import Spec, find_op
from mxcore.testing.case import Case
from mxcore_onednn import halves, plan, pointwise, rooms
from mxcore_onednn.library import NoMemory
from mxcore_onednn.pointwise import narrow
from tests.cpu_onednn.support import BFLOAT16, HYPOTHESIS, bfloat16, check_rounded, numbers, reference, strided, wide
from tests.cpu_onednn.support import halves as narrow_numbers


# -- rounding -------------------------------------------------------------------------------------------------------
@HYPOTHESIS
@given(
    size=st.one_of(
        st.integers(0, 99), st.integers(0, 3).flatmap(lambda i: st.integers(-2, 2).map((16384 << i).__add__))
    ),
    seed=st.integers(0, 99),
    apart=st.booleans(),
)
def test_rounding(size, seed, apart):
    """To the nearest, of two to the even one, whatever the bits; what is not a number stays so."""
    bits = np.random.default_rng(seed).integers(0, 1 << 32, size, np.uint32)
    bits[::3] &= 0xFFFF8000  # in the middle between two
    a = bits.view(np.float32)
    a[np.abs(a) < 2e-38] = 0
    if apart and size:
        a = strided(a)
    out = np.zeros(2 * size, bfloat16())[::2] if apart else np.zeros(size, bfloat16())
    narrow(a, out)
    with np.errstate(invalid="ignore"):
        want = a.astype(bfloat16())
    np.testing.assert_array_equal(out.astype(np.float32), want.astype(np.float32))


def test_rounding_where_the_library_fails(monkeypatch):
    def fails(self, *arrays, **further):
        raise NoMemory("oneDNN: out of memory")

    (a,) = numbers(0, (40000,))
    out = np.zeros(40000, bfloat16())
    monkeypatch.setattr(plan.Plan, "run", fails)
    narrow(a, out)
    assert (out == a.astype(bfloat16())).all()


# -- as the bodies --------------------------------------------------------------------------------------------------
def inputs(case):
    """Those of a sample in bfloat16, but float32 where the operator takes nothing else beside it."""
    first = [case.host[0].dtype, *[None] * (len(case.host) - 1)]
    kinds = infer.op_dtypes(case.op, case.p, first)[0]
    return [a if t is None else a.astype(t) for a, t in zip(case.host, kinds)]


def run(name, params, ins, train=False, outs=None):
    """What is computed by pieces, and what the body gives of the same numbers in float64."""
    op, k = find_op(name), op_context(mx.cpu(), train)
    p = op.parse({**params})
    wide_ins = [a.astype(np.float64) if a.dtype.kind in "fV" else a.copy() for a in ins]
    want = op.body(k, p, *wide_ins)
    want = [*want] if isinstance(want, (list, tuple)) else [want]
    kinds = infer.op_dtypes(op, p, [a.dtype for a in ins])[1]
    outs = outs or [None if v is None else np.full(v.shape, 7, t) for v, t in zip(want, kinds)]
    mutated = [ins[i] for i in op.signature(p).mutates]
    call = halves._flat if halves.FORMS[name].flat else halves.compute
    call(name, k, p, [*outs, *mutated], *ins)
    return [*outs, *mutated], want


def check(outs, want):
    for a, b in zip(outs, want):
        if a is not None and a.dtype == np.float32:
            np.testing.assert_allclose(a, b, 1e-4, 1e-5)
        elif a is not None:
            check_rounded([a], [b])


#: Those that tests of their own are for: of gradients that need statistics, or the largest numbers.
OTHERS = {name for name, form in halves.FORMS.items() if form.again} | {"_backward_Pooling"}


@pytest.mark.parametrize("pieces", [1, 1 << 19])
@pytest.mark.parametrize("name", [name for name in halves.FORMS if name not in OTHERS])
def test_samples(monkeypatch, name, pieces):
    monkeypatch.setattr(halves, "_PIECE", pieces)
    op, form, some = find_op(name), halves.FORMS[name], 0
    for sample in op.samples:
        case = Case(op, sample, "bfloat16", mx.cpu())
        ins = inputs(case)
        served = isinstance(form.least, int) or case.p.act_type in form.least
        if served and halves._serves(form._replace(least=0), case.p, *[Spec(a.shape, a.dtype) for a in ins]):
            some += 1
            with np.errstate(all="ignore"):
                check(*run(name, case.kwargs, ins, sample.train))
    assert some


@HYPOTHESIS
@given(
    size=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(3, 9), st.integers(3, 9)),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    whole=st.booleans(),
    seed=st.integers(0, 99),
)
def test_maximum_pooling(size, kernel, stride, whole, seed):
    params = dict(kernel=kernel, stride=stride, pool_type="max")
    (x,) = narrow_numbers(seed, size)
    if whole:  # of equal numbers the first one counts
        x = np.round(x.astype(np.float32)).astype(bfloat16())
    with in_pieces(30):
        outs, want = run("Pooling", params, [x])
        check(outs, want)
        (dy,) = narrow_numbers(seed + 1, outs[0].shape)
        check(*run("_backward_Pooling", params, [dy, x, outs[0]]))


@contextlib.contextmanager
def in_pieces(size):
    before, halves._PIECE = halves._PIECE, size
    try:
        yield
    finally:
        halves._PIECE = before


ROWS = ["softmax", "log_softmax", "LayerNorm", "_backward_LayerNorm"]


@HYPOTHESIS
@given(
    name=st.sampled_from(ROWS),
    shape=st.lists(st.integers(1, 9), min_size=2, max_size=4),
    axis=st.integers(-4, 3),
    piece=st.sampled_from([1, 20, 1 << 19]),
    seed=st.integers(0, 99),
    apart=st.booleans(),
)
def test_rows(name, shape, axis, piece, seed, apart):
    axis = axis % len(shape)
    x, dy, gamma, beta = narrow_numbers(seed, shape, shape, shape[axis : axis + 1], shape[axis : axis + 1])
    stats = (np.zeros([1 if i == axis else n for i, n in enumerate(shape)], bfloat16()),) * 2
    ins = {"LayerNorm": [x, gamma, beta], "_backward_LayerNorm": [dy, x, gamma, *stats]}.get(name, [x])
    if apart:
        ins = [strided(a) for a in ins]
    params = dict(axis=axis, **({"eps": 0.1} if "Norm" in name else {}))
    with in_pieces(piece):
        outs, want = run(name, params, ins)
    if name == "_backward_LayerNorm":
        want = reference(
            name, params, *wide([dy, x, gamma]), *reference("LayerNorm", params, *wide([x, gamma, beta]))[1:]
        )
    check(outs, want)


@pytest.mark.parametrize("name, params", [("LayerNorm", {}), ("GroupNorm", {"num_groups": 2}), ("InstanceNorm", {})])
def test_rounded_statistics_do_not_reach_gradients(name, params):
    """The mean of numbers far from zero is off by as much as they differ once it has been rounded."""
    x, dy = narrow_numbers(1, (4, 6, 5), (4, 6, 5))
    x = (x.astype(np.float32) + 300).astype(bfloat16())
    size = {"LayerNorm": 5, "GroupNorm": 2, "InstanceNorm": 6}[name]
    gamma, beta = narrow_numbers(2, (size,), (size,))
    op, k = find_op(name), op_context(mx.cpu(), False)
    stats = op.body(k, op.parse({**params}), *[a.astype(np.float64) for a in (x, gamma, beta)])[1:]
    want = reference(f"_backward_{name}", params, *wide([dy, x, gamma]), *stats)
    handed = [a.astype(bfloat16()) for a in stats]
    check_rounded(run(f"_backward_{name}", params, [dy, x, gamma, *handed])[0], want)


def test_outputs_that_nobody_reads():
    x, dy, gamma = narrow_numbers(3, (6, 5), (6, 5), (5,))
    stats = [np.ones((6, 1), bfloat16())] * 2
    every = run("_backward_LayerNorm", {}, [dy, x, gamma, *stats])[0]
    for read in range(3):
        outs = [np.full_like(a, 7) if i == read else None for i, a in enumerate(every)]
        some = run("_backward_LayerNorm", {}, [dy, x, gamma, *stats], outs=outs)[0]
        np.testing.assert_array_equal(some[read].astype(np.float32), every[read].astype(np.float32))


def test_the_result_may_lie_where_the_data_does():
    (x,) = narrow_numbers(4, (300, 20))
    y = x.copy()
    run("Activation", {"act_type": "tanh"}, [y], outs=[y])
    check_rounded([y], [np.tanh(x.astype(np.float64))])


def test_a_call_in_the_midst_of_another(monkeypatch):
    """Such as that of a signal's handler: it gets memory of its own."""
    x, y = narrow_numbers(5, (64, 9), (64, 9))
    real, inner = halves._Float32.__call__, []

    def call(self, outs, ins):
        if not inner:
            inner.append(None)
            inner[0] = run("softmax", {}, [y])
        return real(self, outs, ins)

    monkeypatch.setattr(halves._Float32, "__call__", call)
    check(*run("softmax", {}, [x]))
    check(*inner[0])


def test_no_memory(monkeypatch):
    def fails(self, size):
        raise NoMemory("no memory for bytes")

    monkeypatch.setattr(rooms.Room, "at", fails)
    with pytest.raises(MemoryError, match="no memory"):
        run("softmax", {}, narrow_numbers(6, (9, 9)))


def test_much_is_left_to_the_device(monkeypatch):
    monkeypatch.setattr(halves, "MUCH", 0)
    check(*run("softmax", {}, narrow_numbers(7, (9, 9))))


# -- who is served --------------------------------------------------------------------------------------------------
def serves(name, params, *specs):
    kinds = {"f4": np.float32, "f8": np.float64, "i4": np.int32, "b": bfloat16()}
    ins = [Spec(shape, np.dtype(kinds[kind])) for shape, kind in specs]
    return halves._serves(halves.FORMS[name], find_op(name).parse({**params}), *ins)


@pytest.mark.parametrize(
    "name, params, specs, served",
    [
        ("relu", {}, [((1 << 17,), "b")], True),
        ("relu", {}, [((1 << 16,), "b")], False),
        ("relu", {}, [((1 << 17,), "f4")], False),
        ("elemwise_add", {}, [((512, 512), "b")] * 2, True),
        ("broadcast_add", {}, [((512, 512), "b"), ((512,), "b")], False),
        ("Activation", {"act_type": "tanh"}, [((1 << 13,), "b")], True),
        ("LeakyReLU", {"act_type": "gelu"}, [((1 << 10,), "b")], True),
        ("LeakyReLU", {"act_type": "leaky"}, [((1 << 20,), "b")], False),
        ("LeakyReLU", {"act_type": "prelu"}, [((1 << 20,), "b"), ((1,), "b")], False),
        ("softmax", {}, [((512, 512), "b")], True),
        ("softmax", {"use_length": True}, [((512, 512), "b"), ((512,), "i4")], False),
        ("BatchNorm", {}, [((2, 64, 64, 64), "b"), *[((64,), "f4")] * 4], True),
        ("BatchNorm", {}, [((2, 64, 64, 64), "b"), *[((64,), "f8")] * 4], False),
        ("Pooling", {"kernel": (2, 2), "pool_type": "max"}, [((2, 64, 64, 64), "b")], True),
        ("Pooling", {"kernel": (2, 2), "pool_type": "avg"}, [((2, 64, 64, 64), "b")], False),
        ("Pooling", {"kernel": (2, 2), "pool_type": "max", "layout": "NHWC"}, [((2, 64, 64, 64), "b")], False),
    ],
)
def test_who_is_served(name, params, specs, served):
    assert serves(name, params, *specs) is served


# -- networks -------------------------------------------------------------------------------------------------------
def convolving():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, padding=1, in_channels=3), nn.BatchNorm(in_channels=16), nn.Activation("relu"))
    net.add(nn.MaxPool2D(3, 2, 1), nn.Conv2D(16, 3, padding=1, in_channels=16), nn.LeakyReLU(0.2))
    net.add(nn.AvgPool2D(2, 2), nn.GlobalAvgPool2D(), nn.Dense(10, in_units=16))
    return net, (4, 3, 24, 24)


def attention(F, x):
    return F.softmax(F.batch_dot(x, x, transpose_b=True))


def attending():
    net = nn.HybridSequential()
    net.add(nn.Dense(32, in_units=16, flatten=False), nn.LayerNorm(in_channels=32), nn.GELU())
    net.add(
        nn.Dense(24, in_units=32, flatten=False),
        nn.HybridLambda(lambda F, x: F.softmax(F.batch_dot(x, x, transpose_b=True))),
    )
    net.add(nn.HybridLambda("tanh"))
    return net, (4, 20, 16)


@BFLOAT16
@pytest.mark.usefixtures("provider", "always")
@pytest.mark.parametrize("make", [convolving, attending])
def test_a_network_in_bfloat16(monkeypatch, make):
    """Eager and compiled, with gradients and without, beside float32; our kernels compute."""
    called, real = [], pointwise.run
    monkeypatch.setattr(pointwise, "run", lambda name, *args: (called.append(name), real(name, *args)))
    mx.random.seed(3)
    net, shape = make()
    net.initialize(mx.init.Xavier())
    x = mx.nd.array(numbers(6, shape)[0])

    def step(dtype):
        net.cast(dtype)
        data = x.astype(dtype)
        data.attach_grad()
        with autograd.record():
            y = net(data)
        y.backward()
        return [a.astype("float32").asnumpy() for a in (net(data), y, data.grad)]

    for hybrid in (False, True):
        net.hybridize(hybrid)
        for a, b in zip(step("bfloat16"), step("float32")):
            assert np.linalg.norm(a - b) < 0.1 * np.linalg.norm(b)
    assert called
