"""Weights that move together again and again: the way that is bound once gives what each by itself gives."""

import copy
import gc
import itertools
import pickle
import threading
import weakref

import numpy as np
import pytest

import mxcore as mx
from mxcore._core.manager import manager
from mxcore.optimizer import _standing as standing
from mxcore.optimizer._standing import Standing
from mxcore.plugin import KernelSet, hookimpl

RULES = [
    ("sgd", {}),
    ("sgd", {"momentum": 0.9}),
    ("nag", {"momentum": 0.9}),
    ("adam", {}),
    ("rmsprop", {"centered": True}),
    ("ftml", {}),
    ("ftrl", {}),
    ("signum", {}),
]
SHAPES = [(3, 4), (7,), (1, 2, 5), (70, 500)]


def pairs(seed, dtype="float32", shapes=SHAPES):
    """Weights, and gradients of three steps."""
    rng = np.random.RandomState(seed)
    return (
        [rng.randn(*s).astype(dtype) for s in shapes],
        [[rng.randn(*s).astype(dtype) for s in shapes] for _ in range(3)],
    )


def alone(rule, settings, weights, steps, before=lambda rule, i: None, mults=None):
    """What each weight by itself becomes: one call for one weight never binds several."""
    rule = mx.optimizer.create(rule, **settings)
    if mults:
        rule.set_lr_mult(mults)
    update = mx.optimizer.get_updater(rule)
    weights = [mx.nd.array(w, dtype=w.dtype) for w in weights]
    for i, grads in enumerate(steps):
        before(rule, i)
        for j, (w, g) in enumerate(zip(weights, grads)):
            update(j, mx.nd.array(g, dtype=g.dtype), w)
    return [w.asnumpy() for w in weights], [[s.asnumpy() for s in flat(update.states[j])] for j in range(len(weights))]


def flat(state):
    """The arrays of a state."""
    if state is None:
        return []
    return [a for s in state for a in flat(s)] if isinstance(state, (tuple, list)) else [state]


def together(rule, settings, weights, steps, before=lambda rule, i: None, mults=None, reuse=False):
    """The same in calls for all; tells how often the way that was bound served."""
    rule = mx.optimizer.create(rule, **settings)
    if mults:
        rule.set_lr_mult(mults)
    update = mx.optimizer.get_updater(rule)
    weights = [mx.nd.array(w, dtype=w.dtype) for w in weights]
    held = [mx.nd.zeros(w.shape, dtype=w.dtype) for w in weights]
    for i, grads in enumerate(steps):
        before(rule, i)
        new = [mx.nd.array(g, dtype=g.dtype) for g in grads]
        if reuse:
            for a, b in zip(held, new):
                b.copyto(a)
            new = held
        update([*range(len(weights))], new, weights)
    found = [w.asnumpy() for w in weights], [[s.asnumpy() for s in flat(update.states[j])] for j in range(len(weights))]
    return found, update


def equal(a, b):
    for x, y in zip(itertools.chain(a[0], *a[1]), itertools.chain(b[0], *b[1]), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.fixture
def served(monkeypatch):
    """How often it served, and how often not."""
    found = []
    real = Standing.step

    def step(self, *args):
        found.append(real(self, *args))
        return found[-1]

    monkeypatch.setattr(Standing, "step", step)
    return found


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize(
    ("rule", "settings"), [*RULES, ("sgd", {"momentum": 0.9, "wd": 0.1, "clip_gradient": 0.5, "rescale_grad": 0.25})]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_at_once_is_one_by_one(rule, settings, dtype, reuse):
    weights, steps = pairs(0, dtype)
    equal(together(rule, settings, weights, steps, reuse=reuse)[0], alone(rule, settings, weights, steps))


@pytest.mark.parametrize("rule", ["sgd", "nag"])
def test_weights_with_master_copies(rule, served):
    weights, steps = pairs(1, "float16")
    settings = {"momentum": 0.9, "multi_precision": True}
    equal(together(rule, settings, weights, steps)[0], alone(rule, settings, weights, steps))
    assert served == [True, True]


def test_it_serves_from_the_second_step_on(served):
    weights, steps = pairs(2)
    together("sgd", {"momentum": 0.9}, weights, steps)
    assert served == [True, True]


@pytest.mark.parametrize("rule", ["sgd", "adam", "ftml"])
def test_numbers_that_change(rule, served):
    """Rates, decay, scales, by weight too, and rates that are no floats."""

    def before(rule, i):
        rule.lr = [0.3, np.float32(0.1), 1][i]
        rule.wd = 0.01 * i
        rule.rescale_grad = 1 / (i + 1)

    weights, steps = pairs(3)
    mults = {0: 0.5, 2: 2.0}
    equal(together(rule, {}, weights, steps, before, mults)[0], alone(rule, {}, weights, steps, before, mults))
    assert served == [True, True]


@pytest.mark.parametrize("number", ["lr", "wd"])
def test_one_number_that_changes_and_comes_back(number, served):
    def before(rule, i):
        setattr(rule, number, [0.25, 0.25, 0.125, 0.125, 0.25][i])

    weights, steps = pairs(3)
    steps = [*steps, *steps][:5]
    settings = {"learning_rate": 0.5, "wd": 0.5, "momentum": 0.5}
    equal(together("sgd", settings, weights, steps, before)[0], alone("sgd", settings, weights, steps, before))
    assert served == [True] * 4


def test_a_schedule_goes_by_updates(served):
    weights, steps = pairs(4)
    settings = lambda: {"lr_scheduler": mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=0.3), "learning_rate": 0.3}  # noqa: E731
    equal(together("sgd", settings(), weights, steps)[0], alone("sgd", settings(), weights, steps))
    assert True in served


def test_counts_that_differ_go_one_by_one(served):
    """A weight that has moved more often has a correction of its own."""
    weights, steps = pairs(5)
    update = mx.optimizer.get_updater(mx.optimizer.create("adam"))
    other = mx.optimizer.get_updater(mx.optimizer.create("adam"))
    a, b = ([mx.nd.array(w) for w in weights] for _ in range(2))
    for i, grads in enumerate(steps * 2):
        new = [mx.nd.array(g) for g in grads]
        if i == 3:
            update(1, new[1], a[1])
            other(1, new[1], b[1])
        update([*range(len(a))], new, a)
        for j, g in enumerate(new):
            other(j, g, b[j])
    for x, y in zip(a, b):
        np.testing.assert_array_equal(x.asnumpy(), y.asnumpy())
    assert served == [True, True, False, False, False]


def changed(what):
    """Two updaters over the same steps, one of all at once, one by one; `what` happens to both before the third."""
    weights, steps = pairs(6)
    ways = []
    for several in (True, False):
        update = mx.optimizer.get_updater(mx.optimizer.create("sgd", momentum=0.9))
        arrays = [mx.nd.array(w) for w in weights]
        for i, grads in enumerate(steps * 2):
            new = [mx.nd.array(g) for g in grads]
            if i == 3:
                what(update, arrays, new)
            if several:
                update([*range(len(arrays))], new, arrays)
            else:
                for j, g in enumerate(new):
                    update(j, g, arrays[j])
        ways.append([w.asnumpy() for w in arrays])
    for x, y in zip(*ways):
        np.testing.assert_array_equal(x, y)


def other_states(update, arrays, new):
    update.set_states(update.get_states())


def other_state(update, arrays, new):
    update.states[1] = mx.nd.ones(arrays[1].shape)


def other_weight(update, arrays, new):
    arrays[0] = mx.nd.ones(arrays[0].shape)


def written_weight(update, arrays, new):
    arrays[0][:] = 3


def pending_weight(update, arrays, new):
    for _ in range(20):
        arrays[3] += 1


def view_as_gradient(update, arrays, new):
    new[0] = mx.nd.ones((5, 3, 4))[2]


def transposed_gradient(update, arrays, new):
    new[0] = mx.nd.arange(12).reshape((4, 3)).T


def weight_as_gradient(update, arrays, new):
    new[0] = arrays[0]


def sparse_gradient(update, arrays, new):
    new[0] = mx.nd.ones(arrays[0].shape).tostype("row_sparse")


def other_optimizer(update, arrays, new):
    update.optimizer = mx.optimizer.create("sgd", momentum=0.9, learning_rate=0.5)


def other_method(update, arrays, new):
    update.optimizer._get_lr = lambda index: 0.25
    update.optimizer._get_lrs = lambda indices: [0.25 for _ in indices]


@pytest.mark.parametrize(
    "what",
    [
        *(other_states, other_state, other_weight, written_weight, pending_weight, view_as_gradient),
        *(transposed_gradient, weight_as_gradient, sparse_gradient, other_optimizer, other_method),
    ],
)
def test_what_changes_between_steps(what):
    changed(what)


def test_a_gradient_of_another_shape_is_refused(served):
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd", momentum=0.9))
    weights = [mx.nd.ones((3,)), mx.nd.ones((4,))]
    for _ in range(3):
        update([0, 1], [mx.nd.ones((3,)), mx.nd.ones((4,))], weights)
    with pytest.raises(mx.MXNetError, match="sgd_mom_update"):
        update([0, 1], [mx.nd.ones((3,)), mx.nd.ones((5,))], weights)
    assert served == [True, True, False]


def test_weights_that_became_read_only_are_refused():
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd", momentum=0.9))
    memory = np.ones(4, "float32")
    weights = [mx.nd.ones((3,)), mx.nd.from_numpy(memory, zero_copy=True)]
    grads = [mx.nd.ones((3,)), mx.nd.ones((4,))]
    memory.flags.writeable = True
    for _ in range(3):
        update([0, 1], grads, weights)
    before = [w.asnumpy() for w in weights]
    weights[1]._data.flags.writeable = False
    with pytest.raises(mx.MXNetError, match="parameter 1"):
        update([0, 1], grads, weights)
    for w, old in zip(weights, before):
        np.testing.assert_array_equal(w.asnumpy(), old)


def test_dropped_weights_give_their_memory_back():
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd"))
    weights = [mx.nd.ones((30,)), mx.nd.ones((40,))]
    for _ in range(3):
        update([0, 1], [mx.nd.ones((30,)), mx.nd.ones((40,))], weights)
    watched = [weakref.ref(w._data) for w in weights]
    del weights
    gc.collect()
    assert [ref() for ref in watched] == [None, None]


def test_gradients_of_a_step_are_not_kept():
    update = mx.optimizer.get_updater(mx.optimizer.create("adam"))
    weights = [mx.nd.ones((30,)), mx.nd.ones((40,))]
    for _ in range(3):
        grads = [mx.nd.ones((30,)), mx.nd.ones((40,))]
        update([0, 1], grads, weights)
    watched = [weakref.ref(g._data) for g in grads]
    del grads
    assert [ref() for ref in watched] == [None, None]


def test_threads_that_move_the_same_weights():
    """Each step of each thread counts once, whichever way it takes."""
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=1.0))
    weights = [mx.nd.zeros((1000,)), mx.nd.zeros((40, 1000))]

    def work():
        for _ in range(50):
            update([0, 1], [-mx.nd.ones((1000,)), -mx.nd.ones((40, 1000))], weights)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for w in weights:
        assert w.asnumpy().min() == w.asnumpy().max() == 200


@pytest.mark.parametrize("name", ["adam", "adadelta", "nadam"])
def test_threads_that_share_an_updater_of_one_weight(name, in_threads):
    def moved(threads):
        update, w, g = mx.optimizer.get_updater(mx.optimizer.create(name)), mx.nd.zeros(3), mx.nd.ones(3)

        def work():
            for _ in range(120 // threads):
                update(0, g, w)

        in_threads(work, [()] * threads)
        assert update.optimizer._index_update_count == {0: 120}
        return w.asnumpy()

    np.testing.assert_allclose(moved(4), moved(1), rtol=1e-6)


def test_two_updaters_of_the_same_weights_in_threads():
    weights = [mx.nd.zeros((1000,)), mx.nd.zeros((40, 1000))]

    def work(order):
        update = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=1.0))
        mine = [weights[i] for i in order]
        for _ in range(50):
            update([*order], [-mx.nd.ones(w.shape) for w in mine], mine)

    threads = [threading.Thread(target=work, args=(order,)) for order in ((0, 1), (1, 0))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for w in weights:
        assert w.asnumpy().min() == w.asnumpy().max() == 100


def test_while_a_profiler_watches_each_step_is_told():
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd", momentum=0.9))
    weights, grads = ([mx.nd.ones((3,)), mx.nd.ones((4,))] for _ in range(2))
    for _ in range(3):
        update([0, 1], grads, weights)
    mx.profiler.set_config(profile_all=True, aggregate_stats=True, filename="unused.json")
    mx.profiler.start()
    update([0, 1], grads, weights)
    mx.profiler.stop()
    mx.profiler.set_config(profile_all=False, aggregate_stats=False, filename="profile.json")
    assert "sgd_mom_update" in mx.profiler.dumps(reset=True)


def test_lists_that_never_come_again_are_not_kept_for_ever():
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd"))
    for n in range(2, 200):
        update([*range(n)], [mx.nd.ones((1,))] * n, [mx.nd.ones((1,)) for _ in range(n)])
    assert len(update._standing) <= 64


def test_another_optimizer_moves_by_its_own_rule():
    """Also over states that both have, or none of them."""
    for first, second, settings in (
        ("sgd", mx.optimizer.Signum(momentum=0.0, learning_rate=0.1), {"learning_rate": 0.5}),
        ("sgd", mx.optimizer.NAG(momentum=0.9, learning_rate=0.5), {"momentum": 0.9, "learning_rate": 0.5}),
    ):
        found = []
        for several in (True, False):
            update = mx.optimizer.get_updater(mx.optimizer.create(first, **settings))
            weights, grads = ([mx.nd.ones((3,)), mx.nd.ones((4,))] for _ in range(2))
            for step in range(4):
                if step == 2:
                    update.optimizer = second
                    second._index_update_count.clear()
                for part in [[0, 1]] if several else [[0], [1]]:
                    update(part, [grads[i] for i in part], [weights[i] for i in part])
            found.append([w.asnumpy() for w in weights])
        equal((found[0], []), (found[1], []))


@pytest.mark.parametrize(
    ("name", "value"), [("rescale_grad", "1/8"), ("rescale_grad", None), ("clip_gradient", "abc"), ("epsilon", None)]
)
def test_a_number_that_is_refused_is_refused_every_time(name, value):
    rule = "adam" if name == "epsilon" else "sgd"
    update = mx.optimizer.get_updater(mx.optimizer.create(rule))
    weights, grads = ([mx.nd.ones((3,)), mx.nd.ones((4,))] for _ in range(2))
    for _ in range(2):
        update([0, 1], grads, weights)
    before, good = weights[0].asnumpy(), getattr(update.optimizer, name)
    setattr(update.optimizer, name, value)
    for _ in range(3):
        with pytest.raises(TypeError, match=name):
            update([0, 1], grads, weights)
        np.testing.assert_array_equal(weights[0].asnumpy(), before)
    setattr(update.optimizer, name, good)
    update([0, 1], grads, weights)
    assert (weights[0].asnumpy() < before).all()


def test_states_that_were_dropped_are_made_anew():
    found = []
    for several in (True, False):
        update = mx.optimizer.get_updater(mx.optimizer.create("sgd"))
        weights, grads = ([mx.nd.ones((3,)), mx.nd.ones((4,))] for _ in range(2))
        for step in range(5):
            if step == 2:
                update.optimizer.momentum = 0.9
                update.states.clear()
            for part in [[0, 1]] if several else [[0], [1]]:
                update(part, [grads[i] for i in part], [weights[i] for i in part])
        found.append(([w.asnumpy() for w in weights], [[update.states[i].asnumpy()] for i in range(2)]))
    equal(*found)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda u: pickle.loads(pickle.dumps(u))], ids=["copied", "pickled"])
@pytest.mark.parametrize("settings", [{}, {"momentum": 0.9}])
def test_copies_have_nothing_bound(how, settings):
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd", **settings))
    weights, grads = ([mx.nd.ones((3,)), mx.nd.ones((4,))] for _ in range(2))
    for _ in range(3):
        update([0, 1], grads, weights)
    other, again = how(update), [w.copy() for w in weights]
    other([0, 1], grads, again)
    update([0, 1], grads, weights)
    for a, b in zip(again, weights):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_kernels_that_come_and_go_are_taken():
    class Plugin:
        API_VERSION = 1

    kernels = KernelSet("cpu")

    @kernels.kernel("sgd_update", dtypes="f4", out=True, priority=1000)
    def far(k, p, outs, weight, grad):
        outs[0][...] = weight - 100

    Plugin.mxcore_kernels = staticmethod(hookimpl(lambda: {"cpu": kernels}))
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=1.0))
    weights, grads = ([mx.nd.zeros((3,)), mx.nd.zeros((4,))] for _ in range(2))

    def steps():
        before = weights[0].asnumpy()[0]
        for _ in range(3):
            update([0, 1], grads, weights)
        return weights[0].asnumpy()[0] - before

    assert steps() == 0
    manager.register(Plugin, "far_away")
    try:
        assert steps() == -300
    finally:
        manager.unregister("far_away")
    assert steps() == 0


def test_an_interrupt_holds_no_lock(monkeypatch):
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd"))
    weights, grads = ([mx.nd.ones((3,)), mx.nd.ones((4,))] for _ in range(2))
    for _ in range(2):
        update([0, 1], grads, weights)
    monkeypatch.setattr(mx.optimizer.SGD, "_rate", lambda self, lr, t: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        update([0, 1], grads, weights)
    monkeypatch.undo()
    thread = threading.Thread(target=update, args=([0, 1], grads, weights), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


def test_an_interrupt_among_numbers_leaves_none_behind(monkeypatch):
    """Of several calls some have the numbers of the step that did not happen: the next step gives all their own."""
    found = []
    for interrupted in (True, False):
        update = mx.optimizer.get_updater(mx.optimizer.create("signum", learning_rate=1.0))
        weights, grads = ([mx.nd.ones((n,)) for n in (3, 4, 5)] for _ in range(2))
        for _ in range(2):
            update([0, 1, 2], grads, weights)
        if interrupted:
            real, count = standing._Call.renumber, itertools.count()

            def renumber(self, numbers, real=real, count=count):
                real(self, numbers)
                if next(count) == 1:
                    raise KeyboardInterrupt

            with monkeypatch.context() as patch:
                patch.setattr(standing._Call, "renumber", renumber)
                update.optimizer.rescale_grad = 2.0
                with pytest.raises(KeyboardInterrupt):
                    update([0, 1, 2], grads, weights)
            update.optimizer.rescale_grad = 1.0
        update([0, 1, 2], grads, weights)
        found.append(([w.asnumpy() for w in weights], []))
    equal(*found)


@pytest.mark.parametrize("name", ["rescale_grad", "momentum"])
def test_numbers_that_change_where_they_lie(name):
    found = []
    for several in (True, False):
        number = np.array(0.5)
        update = mx.optimizer.get_updater(mx.optimizer.create("sgd", **{"momentum": 0.9, name: number}))
        weights, grads = ([mx.nd.ones((3,)), mx.nd.ones((4,))] for _ in range(2))
        for step in range(4):
            number[...] = 0.5 + 0.25 * (step > 1)
            for part in [[0, 1]] if several else [[0], [1]]:
                update(part, [grads[i] for i in part], [weights[i] for i in part])
        found.append(([w.asnumpy() for w in weights], []))
    equal(*found)


def test_a_rate_that_is_an_array_of_one():
    found = []
    for several in (True, False):
        update = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=np.array([0.5])))
        weights, grads = ([mx.nd.ones((3,)), mx.nd.ones((4,))] for _ in range(2))
        for _ in range(3):
            for part in [[0, 1]] if several else [[0], [1]]:
                update(part, [grads[i] for i in part], [weights[i] for i in part])
        found.append(([w.asnumpy() for w in weights], []))
    equal(*found)


def test_a_state_without_a_mark_is_used():
    """An interrupt may come between the two."""
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd", momentum=0.9))
    weight, grad = mx.nd.ones((3,)), mx.nd.ones((3,))
    update(0, grad, weight)
    del update.states_synced[0]
    update(0, grad, weight)
    np.testing.assert_allclose(weight.asnumpy(), 1 - 0.01 - 0.019, rtol=1e-6)


def test_a_parameter_that_lags_behind_has_the_rate_of_its_group():
    """MXNet counts the weights of a group before it asks for their rates."""
    schedule = mx.lr_scheduler.FactorScheduler(step=1, factor=0.1, base_lr=1.0)
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd", lr_scheduler=schedule))
    weights, grads = ([mx.nd.zeros((3,)), mx.nd.zeros((4,))], [mx.nd.ones((3,)), mx.nd.ones((4,))])
    update(1, grads[1], weights[1])
    update([0, 1], grads, weights)
    np.testing.assert_allclose(weights[0].asnumpy(), -0.1, rtol=1e-6)
    np.testing.assert_allclose(weights[1].asnumpy(), -1.1, rtol=1e-6)


@pytest.mark.parametrize(("rule", "calls"), [("sgd", 1), ("nag", 1), ("adam", 1), ("signum", 4)])
def test_weights_move_in_one_call_where_a_kernel_for_many_is_ready(rule, calls):
    weights, steps = pairs(3)
    rule = mx.optimizer.create(rule, learning_rate=0.1)
    update = mx.optimizer.get_updater(rule)
    cpu = mx.Context("cpu")  # others have queues
    weights = [mx.nd.array(w, ctx=cpu) for w in weights]
    for grads in steps:
        update([*range(len(weights))], [mx.nd.array(g, ctx=cpu) for g in grads], weights)
    [found] = update._standing.values()
    assert len(found.calls) == calls
    assert sorted(i for call in found.calls for i in call.places) == [*range(len(weights))]
    assert all(not call.many or call.owner == "cpu_numba" for call in found.calls)


def test_weights_of_several_types_and_rates_move_in_their_groups(served):
    weights, steps = pairs(5)
    weights = [w.astype(t) for w, t in zip(weights, ("float32", "float64", "float32", "float64"))]
    steps = [[g.astype(w.dtype) for w, g in zip(weights, grads)] for grads in steps]
    settings, mults = {"momentum": 0.9, "learning_rate": 0.2}, {0: 0.5, 3: 2.0}
    found, _ = together("sgd", settings, weights, steps, mults=mults)
    equal(alone("sgd", settings, weights, steps, mults=mults), found)
    assert served[-1]


def test_a_gradient_in_whose_memory_a_weight_lies():
    """Weights that move together read gradients as they are, also where another weight has moved by then."""
    n, found = 100_000, []
    for together_ in (False, True):
        whole = mx.nd.array(np.random.RandomState(0).randn(2 * n))
        weights = [whole[:n], mx.nd.zeros((2 * n,))]
        update = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.5))
        for grads in [[mx.nd.ones((n,)), mx.nd.ones((2 * n,))]] * 3 + [[mx.nd.ones((n,)), whole]]:
            if together_:
                update([0, 1], grads, weights)
            else:
                for i in (0, 1):
                    update(i, grads[i], weights[i])
        found.append([w.asnumpy() for w in weights])
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("made", [lambda *args: 7, lambda *args: 1 / 0], ids=["no call", "raises"])
@pytest.mark.parametrize("name", ["sgd_update", "multi_sgd_update"])
def test_a_kernel_whose_binds_fails_is_named_and_called_as_ever(name, made):
    """The step has been made by then."""
    kernels = KernelSet("cpu")

    def moves(k, p, outs, *arrays):
        for out, w, g in zip(outs, arrays[::2], arrays[1::2]):
            out[...] = w - g

    moves.binds = made
    for op in ("sgd_update", "multi_sgd_update"):
        kernels.kernel(op, dtypes="f4", out=True, priority=1000)(moves if op == name else lambda *args: moves(*args))

    class Plugin:
        API_VERSION = 1
        mxcore_kernels = staticmethod(hookimpl(lambda: {"cpu": kernels}))

    cpu = mx.Context("cpu")
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=1.0))
    weights, grads = ([f((n,), ctx=cpu) for n in (3, 4)] for f in (mx.nd.zeros, mx.nd.ones))
    manager.register(Plugin, "breaks")
    try:
        with pytest.warns(mx.base.MXNetWarning, match=rf"operator {name}: what the kernel of breaks .* it is called"):
            update([0, 1], grads, weights)
        update([0, 1], grads, weights)
    finally:
        manager.unregister("breaks")
    assert [w.asnumpy().tolist() for w in weights] == [[-2.0] * 3, [-2.0] * 4]
