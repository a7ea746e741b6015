"""Plans that stand: bound by steps of programs, and run with whatever stands in their lists."""

import weakref

import numpy as np
import pytest

import mxcore as mx
from mxcore.executor import CachedOp
from mxcore_onednn import plan, plans, products, rooms, standing
from mxcore_onednn.library import ISA_AVX512, Refused, library
from tests.cpu_onednn.support import check_close, numbers

pytestmark = pytest.mark.usefixtures("provider")
X, Y = (33, 70), (70, 20)


def product(lhs, rhs):
    return products._plan(lhs.shape, rhs.shape, (False, False))


@pytest.fixture
def one():
    lhs, rhs = numbers(0, X, Y)
    return standing.Standing(lambda: product(lhs, rhs), 1e9), [lhs, rhs, np.zeros((33, 20), np.float32)]


def check(arrays):
    check_close([arrays[2]], [arrays[0].astype(float) @ arrays[1].astype(float)])


def test_other_arrays(one):
    call, arrays = one
    assert call.run(arrays)
    check(arrays)
    for i, seed in enumerate((1, 2)):
        arrays[i] = numbers(seed, arrays[i].shape)[0]
        assert call.run(arrays)
        check(arrays)
    arrays[0] *= 2  # the same array, another content
    arrays[2] = np.zeros_like(arrays[2])
    assert call.run(arrays)
    check(arrays)


def test_an_array_in_the_place_of_one_that_is_gone(one):
    """Whose address, or id, it may have."""
    call, arrays = one
    for seed in range(50):
        arrays[0] = None
        arrays[0] = numbers(seed, X)[0]
        assert call.run(arrays)
        check(arrays)


def test_strided_arrays_and_those_of_another_size_are_not_taken(one):
    call, arrays = one
    assert call.run(arrays)
    dense = arrays[0]
    for other in (np.repeat(dense, 2, axis=1)[:, ::2], dense[:20], dense.astype(np.float64)):
        arrays[0] = other
        assert not call.run(arrays)
    arrays[0] = dense
    assert call.run(arrays)
    check(arrays)


def test_a_call_in_the_middle_of_another(one, monkeypatch):
    """By a signal handler, say: of the same step, or of any that uses the thread's memory."""
    call, arrays = one
    inner, seen = plan.Plan.run_bound, []

    def run_bound(self, bound):
        seen.append(call.run(arrays))
        return inner(self, bound)

    monkeypatch.setattr(plan.Plan, "run_bound", run_bound)
    assert call.run(arrays) and seen == [False]
    check(arrays)
    monkeypatch.undo()
    monkeypatch.setattr(rooms.own.room, "busy", True)
    assert not call.run(arrays)
    monkeypatch.undo()
    assert call.run(arrays)


def test_where_the_library_fails(one, monkeypatch):
    call, arrays = one
    assert call.run(arrays)

    def fail(*args):
        raise Refused("a test")

    monkeypatch.setattr(library(), "primitive_execute", fail)
    assert not call.run(arrays)
    assert not rooms.own.room.busy
    monkeypatch.undo()
    assert call.run(arrays)
    check(arrays)


@pytest.mark.parametrize("stands", [True, False])
def test_memory_in_use_outlives_what_its_thread_has(one, stands, monkeypatch):
    """At the end of the process the interpreter drops what belongs to daemon threads, while they still compute."""
    call, arrays = one
    made, execute, there = product(*arrays[:2]), library().primitive_execute, []
    monkeypatch.setattr(made, "scratch", 1000)
    monkeypatch.setattr(rooms.own, "room", rooms.Room())

    def dropped(*args):
        memory = weakref.ref(rooms.own.room.memory)
        rooms.own.room = None
        there.append(memory() is not None)
        execute(*args)

    monkeypatch.setattr(library(), "primitive_execute", dropped)
    monkeypatch.setattr(library(), "primitive_execute", dropped)
    assert call.run(arrays) if stands else made.run(*arrays) is None
    monkeypatch.undo()
    assert there == [True]
    check(arrays)


def test_no_plan():
    assert not standing.Standing(lambda: None, 0).run([np.zeros(1)])


def test_another_number_of_threads(one, monkeypatch):
    call, arrays = one
    assert call.run(arrays)
    before = call.plan
    monkeypatch.setattr(plans, "workers", lambda work=0: 1)
    monkeypatch.setattr(standing, "workers", lambda work: 1)
    arrays[2][:] = 0
    assert call.run(arrays) and call.workers == 1 == call.plan.workers
    assert before is call.plan or before.workers != 1
    check(arrays)


@pytest.mark.skipif(library().isa & ISA_AVX512 != ISA_AVX512, reason="products are left to BLAS")
@pytest.mark.parametrize("biased", [True, False])
def test_layers(biased, monkeypatch):
    """With other inputs, added gradients, and some that nobody wants; as operator by operator."""
    monkeypatch.setattr(products, "multiplies", lambda *facts: True)
    x, w, b = (mx.sym.Variable(n) for n in "xwb")
    more = [b] if biased else []
    symbol = mx.sym.tanh(mx.sym.FullyConnected(x, w, *more, num_hidden=20, no_bias=not biased))
    op, names = CachedOp(symbol), "xwb" if biased else "xw"
    shapes = dict(zip("xwb", ((3, 4, 6), (20, 24), (20,))))
    for wanted in (names, "w", "x"):
        for req in ("write", "add"):
            arrays = {n: mx.nd.array(numbers(i, shapes[n])[0]) for i, n in enumerate(names)}
            for n in wanted:
                arrays[n].attach_grad(req)

            def step(call, arrays=arrays):
                for n in wanted:
                    arrays[n].grad[:] = 1
                with mx.autograd.record():
                    y = call(*arrays.values())
                y.backward(y * 2)
                return [y.asnumpy(), *(arrays[n].grad.asnumpy() for n in wanted)]

            def plain(x, w, *b):
                return mx.nd.tanh(mx.nd.FullyConnected(x, w, *b, num_hidden=20, no_bias=not biased))

            for _ in range(3):
                check_close(step(op), step(plain))
                arrays["x"][:] = arrays["x"] * 0.5


WRITES = {
    "nobody": lambda w: None,
    "an assignment": lambda w: w.__setitem__(0, 3),
    "an optimizer": lambda w: mx.nd.sgd_update(w, mx.nd.ones(w.shape), lr=0.5, out=w),
    "another array": None,
}


def predictions(kept, monkeypatch, biased=True):
    """What a layer predicts while its weights change, with another batch between."""
    if not kept:
        monkeypatch.delattr(products._fully_connected, "binds")
    net = mx.gluon.nn.Dense(20, use_bias=biased, in_units=24)
    net.initialize()
    net.weight.set_data(mx.nd.array(numbers(1, (20, 24))[0]))
    net.hybridize(static_alloc=True, static_shape=True)
    xs, found = [mx.nd.array(a) for a in numbers(2, (5, 24), (9, 24))], []
    for write in WRITES.values():
        if write is None:
            net.weight.set_data(mx.nd.array(numbers(3, (20, 24))[0]))
        else:
            write(net.weight.data())
        for x in (xs[0], xs[0], xs[0], xs[1], xs[0]):
            y = net(x).asnumpy()
            check_close([y], [x.asnumpy().astype(float) @ net.weight.data().asnumpy().astype(float).T])
            found.append(y)
    return found


@pytest.mark.skipif(library().isa & ISA_AVX512 != ISA_AVX512, reason="products are left to BLAS")
@pytest.mark.parametrize("biased", [True, False])
def test_layers_that_predict_keep_their_weights(biased, monkeypatch):
    """In the library's layout, with the bits of the kernel that is called anew each time."""
    monkeypatch.setattr(products, "multiplies", lambda *facts: True)
    runs = []
    inner = plan.Plan.run_kept
    monkeypatch.setattr(plan.Plan, "run_kept", lambda *a: runs.append(a[-1] is not None) or inner(*a))
    standing_ones = predictions(True, monkeypatch, biased)
    assert runs.count(True) > len(standing_ones) // 2 and len(runs) == len(standing_ones)
    for a, b in zip(standing_ones, predictions(False, monkeypatch, biased), strict=True):
        assert np.array_equal(a, b)
    assert len(runs) == len(standing_ones)


@pytest.mark.skipif(library().isa & ISA_AVX512 != ISA_AVX512, reason="products are left to BLAS")
def test_a_layer_that_predicts_in_the_middle_of_itself(monkeypatch):
    """Where the thread's memory is in use the kernel itself computes."""
    monkeypatch.setattr(products, "multiplies", lambda *facts: True)
    net = mx.gluon.nn.Dense(20, in_units=24)
    net.initialize(mx.init.Normal(1))
    net.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.array(numbers(2, (5, 24))[0])
    expected = [net(x).asnumpy() for _ in range(4)][-1]
    with monkeypatch.context() as patch:
        patch.setattr(rooms.own.room, "busy", True)
        held = np.array_equal(net(x).asnumpy(), expected)
    assert held and np.array_equal(net(x).asnumpy(), expected)
    calls, inner = [], plan.Plan.run_kept

    def fail(*args):
        calls.append(args)
        raise Refused("a test")

    monkeypatch.setattr(plan.Plan, "run_kept", fail)
    assert np.array_equal(net(x).asnumpy(), expected) and calls
    monkeypatch.setattr(plan.Plan, "run_kept", inner)
    assert np.array_equal(net(x).asnumpy(), expected) and not rooms.own.room.busy
