"""Operators on arrays of several contexts: those of the CPU are one memory, and meet; others are an error."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, gluon, nd
from mxcore._core.engine import engine
from mxcore.testing.engines import use_engine

ZERO, ONE, PINNED, SHARED = (mx.Context(*c) for c in (("cpu", 0), ("cpu", 1), ("cpu_pinned", 0), ("cpu_shared", 0)))
OTHERS = [ONE, PINNED, SHARED]


@pytest.fixture(params=["ThreadedEnginePerDevice", "NaiveEngine"])
def either_engine(request):
    old = use_engine(request.param)
    yield
    use_engine(old)


def full(ctx, value, shape=(2, 3)):
    return nd.full(shape, value, ctx=ctx)


def computes(ctx):
    """Where the results of an operator are whose first input is on a context."""
    return ONE if ctx is ONE else ZERO


#: What is computed of arrays of shape (2, 3), one of each context.
CALLS = {
    "add": lambda a, b: a + b,
    "equal": lambda a, b: a == b,
    "maximum": nd.maximum,
    "broadcast": lambda a, b: nd.broadcast_mul(a, b[:1]),
    "dot": lambda a, b: nd.dot(a, b, transpose_b=True),
    "concat": lambda a, b: nd.concat(a, b, a, dim=0),
    "stack": lambda a, b: nd.stack(a, b),
    "add_n": lambda a, b: nd.add_n(a, b, b),
    "where": lambda a, b: nd.where(a, b, b * 2),
    "take": lambda a, b: nd.take(a, b - b),
    "pick": lambda a, b: nd.pick(a, b[:, 0]),
    "Embedding": lambda a, b: nd.Embedding(a, b, 2, 3),
    "FullyConnected": lambda a, b: nd.FullyConnected(a, b, no_bias=True, num_hidden=2),
    "csr": lambda a, b: nd.sparse.dot(a.tostype("csr"), b.T),
    "row_sparse": lambda a, b: nd.sparse.add(a.tostype("row_sparse"), b.tostype("row_sparse")),
    "np": lambda a, b: (a.as_np_ndarray() * b.as_np_ndarray()).as_nd_ndarray(),
    "several": lambda a, b: nd.contrib.boolean_mask(nd.concat(a, b, dim=0), nd.array([1, 0, 1, 1], ctx=b.context)),
}


@pytest.mark.parametrize("other", OTHERS, ids=str)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_results_are_where_the_first_input_computes(call, other, either_engine):
    alone = call(full(ZERO, 1), full(ZERO, 2)).asnumpy()
    for first, second in ((ZERO, other), (other, ZERO)):
        for _ in range(2):  # the second time what was learnt of the first
            found = call(full(first, 1), full(second, 2))
            assert found.context is computes(first)
            np.testing.assert_array_equal(found.asnumpy(), alone)


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_out_may_be_elsewhere(other, either_engine):
    a = full(ZERO, 3)
    out = nd.empty((2, 2, 3), ctx=other)
    assert nd.stack(a, a, out=out) is out and out.context is other and (out.asnumpy() == 3).all()
    halves = [nd.empty((2, 1), ctx=c) for c in (other, ZERO)]
    nd.split(full(ZERO, 4, (2, 2)), 2, out=halves)
    assert [h.context for h in halves] == [other, ZERO] and all((h.asnumpy() == 4).all() for h in halves)
    b = full(other, 1)
    b += a
    a -= b
    assert (a.context, b.context) == (ZERO, other) and (a.asnumpy() == -1).all() and (b.asnumpy() == 4).all()
    with pytest.raises(ValueError, match="out has shape"):
        nd.stack(a, a, out=nd.empty((2, 3), ctx=other))


@pytest.mark.parametrize("ctx", [PINNED, SHARED], ids=str)
def test_operators_on_other_memory_of_the_cpu_give_arrays_of_the_cpu(ctx):
    a = full(ctx, 1)
    for _ in range(2):  # the second time by the short way
        assert {x.context for x in (a + a, a + 1, a * a, nd.relu(a), a.sum(), a.T, a.as_np_ndarray() * 2)} == {ZERO}
    stay = (a.copy(), a.as_np_ndarray().copy(), a[0], a.reshape((3, 2)), nd.zeros((2,), ctx=ctx), a.copyto(ctx))
    assert {x.context for x in stay} == {ctx}
    assert nd.random.uniform(shape=(2,), ctx=ctx).context is ctx


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_inputs_that_are_updated_may_be_elsewhere(other, either_engine):
    weight, momentum = full(ZERO, 2), full(other, 0)
    nd.sgd_mom_update(weight, full(other, 1), momentum, lr=0.5, momentum=0.9, out=weight)
    assert (weight.asnumpy() == 1.5).all() and (momentum.asnumpy() == -0.5).all() and momentum.context is other
    mean, var = full(ZERO, 0, (3,)), full(other, 1, (3,))
    gamma, beta = full(ZERO, 1, (3,)), full(other, 0, (3,))
    x = full(other, 2)
    x.attach_grad()
    with autograd.record():
        y = nd.BatchNorm(x, gamma, beta, mean, var, fix_gamma=False)
    y.backward()
    np.testing.assert_allclose(mean.asnumpy(), 0.2, rtol=1e-6)
    np.testing.assert_allclose(var.asnumpy(), 0.9, rtol=1e-6)


GRADIENTS = {n: CALLS[n] for n in "add maximum broadcast dot concat stack add_n where FullyConnected np".split()}


@pytest.mark.parametrize("other", OTHERS, ids=str)
@pytest.mark.parametrize("call", GRADIENTS.values(), ids=GRADIENTS)
def test_gradients_come_back_to_where_their_variables_are(call, other, either_engine):
    def gradients(first, second, head):
        a, b = full(first, 1), full(second, 2)
        a.attach_grad()
        b.attach_grad("add")
        for _ in range(2):
            with autograd.record():
                y = call(a * b, b)
                y = y * y
            y.backward(full(head, 3, y.shape))
        assert (a.grad.context, b.grad.context) == (first, second)
        return a.grad.asnumpy(), b.grad.asnumpy()

    expected = gradients(ZERO, ZERO, ZERO)
    for places in ((ZERO, other, ZERO), (other, ZERO, other), (ZERO, other, other)):
        for found, wanted in zip(gradients(*places), expected):
            np.testing.assert_array_equal(found, wanted)


def test_gradients_of_gradients_across_contexts():
    a, b = full(ZERO, 2), full(ONE, 3)
    a.attach_grad()
    b.attach_grad()
    with autograd.record():
        da, db = autograd.grad(a * b * b, [a, b], create_graph=True)
        z = (da * db).sum()
    assert (da.context, z.context) == (ZERO, ZERO)
    z.backward()
    assert (a.grad.asnumpy() == 54).all() and (b.grad.asnumpy() == 108).all()


def test_batches_from_a_loader_that_pins_meet_the_parameters():
    net = gluon.nn.Dense(2)
    net.initialize(mx.init.One(), ctx=ZERO)
    data = gluon.data.ArrayDataset(np.ones((6, 3), "float32"), np.zeros((6, 2), "float32"))
    batches = [(x.copyto(PINNED), y.copyto(PINNED)) for x, y in gluon.data.DataLoader(data, 3)]
    for x, y in batches:
        with autograd.record():
            loss = gluon.loss.L2Loss()(net(x), y)
        loss.backward()
        assert loss.context is ZERO and (loss.asnumpy() == 4.5).all()
    assert (net.weight.grad(ZERO).asnumpy() == 4.5).all()
    for ctx in (PINNED, SHARED):
        assert net.weight.data(ctx) is net.weight.data(ZERO) and net.weight.grad(ctx) is net.weight.grad(ZERO)
    with pytest.raises(RuntimeError, match=r"not initialized on context cpu\(1\)"):
        net(full(ONE, 1))
    with pytest.raises(RuntimeError, match=r"not initialized on context cpu_pinned\(1\)"):
        net.weight.data(mx.Context("cpu_pinned", 1))


class Sum(gluon.HybridBlock):
    def hybrid_forward(self, F, a, b):
        return a + b


@pytest.mark.parametrize("flags", [{}, {"static_alloc": True, "static_shape": True}])
def test_hybridised_blocks_want_one_context(flags):
    block, net = Sum(), gluon.nn.Dense(2, in_units=3)
    net.initialize(ctx=ZERO)
    assert block(full(ONE, 1), full(ZERO, 2)).context is ONE and net(full(PINNED, 1)).context is ZERO
    for b in (block, net):
        b.hybridize(**flags)
    with pytest.raises(ValueError, match="only supports one input context"):
        block(full(ZERO, 1), full(ONE, 2))
    with pytest.raises(ValueError, match=r"'data' on cpu_pinned\(0\), '\w+weight' on cpu\(0\)"):
        net(full(PINNED, 1))


@pytest.fixture
def each_on_a_worker():
    """Every operator that may goes to the worker of its context."""
    for ctx in (ZERO, ONE):
        engine.it.note(ctx)  # work overlaps where several are in use
    it, limit = engine.it, engine.it.work_limit
    it.work_limit = -1
    yield
    it.work_limit = limit


def test_work_of_one_context_waits_for_that_of_another(each_on_a_worker):
    """Chains that go from context to context and write in place, on workers of their own."""
    a, b = full(ZERO, 1, (50, 50)), full(ONE, 1, (50, 50))
    for _ in range(30):
        c = nd.dot(a, b) / 50  # on cpu(0), reads what cpu(1) writes
        b += c  # on cpu(1)
        a[:] = b - c  # reads both, writes on cpu(0)
        nd.broadcast_mul(b, nd.ones((1,), ctx=ZERO) / 2, out=b)
        nd.elemwise_add(c, a, out=c)
    x, y = np.ones((50, 50)), np.ones((50, 50))
    for _ in range(30):
        z = x @ y / 50
        y = y + z
        x = y - z
        y = y / 2
        z = z + x
    for found, wanted in ((a, x), (b, y), (c, z)):
        np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-4)


def test_what_fails_on_one_context_poisons_what_reads_it_on_another(each_on_a_worker):
    bad = nd.linalg.potrf(full(ONE, -1, (3, 3)))
    rest = full(ZERO, 1, (3, 3)) + 1
    both = nd.broadcast_add(rest, bad)
    with pytest.raises(mx.MXNetError, match="potrf"):
        both.asnumpy()
    assert (rest.asnumpy() == 2).all() and both.context is ZERO


def test_threads_on_contexts_of_their_own_share_arrays(in_threads, either_engine):
    shared = full(ONE, 2, (20, 20))
    totals = {}

    def work(i):
        total = full(mx.Context("cpu", i % 3), 0, (20, 20))
        for _ in range(40):
            total += shared
            total = total + shared * 0
        totals[i] = total

    in_threads(work, [(i,) for i in range(6)])
    assert all((t.asnumpy() == 80).all() for t in totals.values()) and len(totals) == 6
    assert {t.context for t in totals.values()} == {mx.Context("cpu", i) for i in range(3)}
