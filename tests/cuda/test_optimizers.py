"""Many weights in one launch: bit for bit what one by one gives, wherever that may be, and else one by one."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import gluon
from mxcore.base import MXNetError
from mxcore_cuda.dtypes import HALVES
from mxcore_cuda.emulation.arrays import EmulatedArray
from mxcore_cuda.emulation.driver import Launch
from mxcore_cuda.emulation.streams import Stream
from mxcore_cuda.launching import kernel
from mxcore_cuda.tables import Row, tables
from tests.marks import in_turn

SHAPES = [(3, 4), (1,), (5, 1, 2), (2500,), (2, 2)] * 13  # more than fit into one table
FUSED = {
    "adam": {},
    "ftml": {},
    "ftrl": {"lamda1": 0.1},
    "nag": {"momentum": 0.9},
    "rmsprop": {"clip_weights": 2.0},
    "sgd": {"momentum": 0.9},
    "signum": {"wd_lh": 0.1},
}
RULES = [
    *FUSED.items(),
    ("nag", {}),
    ("rmsprop", {"centered": True}),
    ("sgd", {}),
    ("signum", {"momentum": 0.0}),
    ("adamax", {}),
    ("lamb", {}),
]

#: How far weights may be off that are rounded, of other dtypes than float32.
FAR = {"float16": 2e-3, "bfloat16": 1e-2}


@pytest.fixture
def launches(gpus, monkeypatch):
    """What is launched: the names of kernels, and of the functions that launch array functions."""
    found, launch = [], Stream.launch

    def counted(stream, work):
        if isinstance(work, Launch):
            found.append(work.function.name)
        elif work.__module__ == EmulatedArray.__module__:
            found.append(work.__qualname__)
        launch(stream, work)

    monkeypatch.setattr(Stream, "launch", counted)
    return found


def arrays(ctx, dtype, seed, shapes=SHAPES):
    rs = np.random.RandomState(seed)
    return [mx.nd.array(rs.uniform(-1, 1, shape), ctx=ctx, dtype=dtype) for shape in shapes]


def updater(name, params, **more):
    """An updater with a scheduler, and parameters with factors of their own."""
    rule = mx.optimizer.create(
        name,
        lr_scheduler=mx.lr_scheduler.FactorScheduler(1, 0.9, base_lr=0.05),
        param_idx2name={i: f"p{i}_{'weight' if i % 3 else 'bias'}" for i in range(len(SHAPES))},
        wd=0.01,
        rescale_grad=0.5,
        clip_gradient=0.3,
        **params,
        **more,
    )
    rule.set_lr_mult({1: 0.5, 4: 2.0})
    rule.set_wd_mult({2: 3.0})
    return mx.optimizer.get_updater(rule)


def trained(ctx, dtype, name, params, together, saved=False):
    """Weights and states after three steps."""
    update = updater(name, params, multi_precision=dtype in HALVES)
    weights = arrays(ctx, dtype, 0)
    for step in range(3):
        grads = arrays(ctx, dtype, step + 1)
        if together:
            update([*range(len(weights))], grads, weights)
        else:
            for i, (grad, weight) in enumerate(zip(grads, weights)):
                update(i, grad, weight)
        if saved and step == 1:
            other = updater(name, params, multi_precision=dtype in HALVES)
            other.set_states(update.get_states(dump_optimizer=True))
            update = other
    states = [s for i in sorted(update.states) for s in flat(update.states[i])]
    return [a.asnumpy() for a in (*weights, *states)]


def flat(state):
    if isinstance(state, (list, tuple)):
        return [a for part in state for a in flat(part)]
    return [] if state is None else [state]


def assert_same(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["float32", *in_turn(*HALVES)])
@pytest.mark.parametrize("name, params", RULES, ids=lambda v: v if isinstance(v, str) else "-".join(v))
def test_together_is_as_one_by_one(gpus, dtype, name, params):
    expected = trained(gpus[1], dtype, name, params, False)
    assert_same(trained(gpus[1], dtype, name, params, True), expected)


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
@pytest.mark.parametrize("name", FUSED)
def test_the_cpu_moves_alike(gpus, name, dtype):
    there, here = (trained(ctx, dtype, name, FUSED[name], True) for ctx in (gpus[0], mx.cpu()))
    for a, b in zip(there, here, strict=True):
        np.testing.assert_allclose(a, b, rtol=FAR.get(a.dtype.name, 2e-5), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", *in_turn("float16", "float64")])
@pytest.mark.parametrize("name", FUSED)
def test_four_at_once_is_one_by_one(gpus, name, dtype):
    """Gradients that begin in the middle of a word of memory let a kernel read each element by itself."""
    found = []
    for shift in (0, 1):
        update = updater(name, FUSED[name], multi_precision=dtype in HALVES)
        weights = arrays(gpus[0], dtype, 0)
        for step in range(2):
            grads = []
            for g in arrays(gpus[0], dtype, step + 1):
                room = mx.nd.zeros((g.size + 8,), ctx=gpus[0], dtype=dtype)
                room[shift : shift + g.size] = g.reshape(-1)
                grads.append(room[shift : shift + g.size].reshape(g.shape))
            update([*range(len(weights))], grads, weights)
        found.append([a.asnumpy() for i, w in enumerate(weights) for a in (w, *flat(update.states[i]))])
    assert_same(*found)


@pytest.mark.parametrize("name", FUSED)
def test_states_travel_in_the_middle(gpus, name):
    once = trained(gpus[0], "float16", name, FUSED[name], True)
    assert_same(trained(gpus[0], "float16", name, FUSED[name], True, saved=True), once)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", FUSED)
def test_a_hundred_weights_take_few_launches(gpus, launches, name, dtype):
    shapes = [(4, 5)] * 100
    weights, update = arrays(gpus[0], dtype, 0, shapes), updater(name, FUSED[name], multi_precision=dtype in HALVES)
    update([*range(100)], arrays(gpus[0], dtype, 1, shapes), weights)
    launches.clear()
    update([*range(100)], arrays(gpus[0], dtype, 2, shapes), weights)
    assert 1 <= len(launches) <= 4 and len({*launches}) == 1


def deep(ctx, layers=50):
    net = gluon.nn.HybridSequential()
    for _ in range(layers):
        net.add(gluon.nn.Dense(4, in_units=4))
    net.initialize(ctx=ctx)
    return net


@pytest.mark.parametrize("hybridise", [False, True])
def test_a_step_of_a_trainer_takes_few_launches(gpus, launches, hybridise):
    net = deep(gpus[0])
    if hybridise:
        net.hybridize(static_alloc=True, static_shape=True)
    trainer = gluon.Trainer(net.collect_params(), "adam")
    for _ in range(2):
        with mx.autograd.record():
            y = net(mx.nd.ones((2, 4), ctx=gpus[0]))
        y.backward()
        launches.clear()
        trainer.step(2)
    assert len(net.collect_params().keys()) == 100 and launches and len(launches) <= 4


def test_a_step_of_a_module_takes_few_launches(gpus, launches):
    data = mx.sym.var("data")
    for i in range(50):
        data = mx.sym.FullyConnected(data, num_hidden=4, name=f"fc{i}")
    module = mx.mod.Module(mx.sym.LinearRegressionOutput(data, name="out"), label_names=["out_label"], context=gpus[0])
    module.bind([("data", (2, 4))], [("out_label", (2, 4))])
    module.init_params()
    module.init_optimizer(optimizer="adam")
    for _ in range(2):
        module.forward_backward(mx.io.DataBatch([mx.nd.ones((2, 4))], [mx.nd.ones((2, 4))]))
        launches.clear()
        module.update()
    assert launches and len(launches) <= 4


def test_weights_that_share_memory_move_one_after_the_other(gpus, launches):
    def moved(together):
        whole, update = mx.nd.ones(6, ctx=gpus[0]), updater("adam", {})
        weights, grads = [whole[0:4], whole[2:6], mx.nd.ones(2, ctx=gpus[0])], arrays(gpus[0], "float32", 1, [4, 4, 2])
        if together:
            update([0, 1, 2], grads, weights)
        else:
            for i in range(3):
                update(i, grads[i], weights[i])
        return [whole.asnumpy(), weights[2].asnumpy()]

    expected = moved(False)
    launches.clear()
    assert_same(moved(True), expected)
    assert launches.count("adam") == 3


def test_weights_of_several_devices_in_one_step(gpus):
    """As a Module with groups brings them, some as views."""
    expected = None
    for places in ([mx.cpu()] * 4, [gpus[0], mx.cpu(), gpus[1], gpus[0]], [gpus[1], gpus[0], gpus[0], mx.cpu()]):
        updater = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=0.5, momentum=0.9))
        weights = [mx.nd.arange(6, ctx=ctx)[i % 2 :][:3] for i, ctx in enumerate(places)]
        grads = [mx.nd.full((3,), i, ctx=ctx) for i, ctx in enumerate(places)]
        for _ in range(2):
            updater([0, 1, 2, 3], grads, weights)
        found = [w.asnumpy() for w in weights]
        expected = expected or found
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_weight_that_comes_twice_moves_twice(gpus):
    def moved(together):
        weight, update = mx.nd.ones(3, ctx=gpus[0]), updater("sgd", {})
        grads = arrays(gpus[0], "float32", 1, [3, 3])
        if together:
            update([0, 1], grads, [weight, weight])
        else:
            update(0, grads[0], weight)
            update(1, grads[1], weight)
        return [weight.asnumpy()]

    assert_same(moved(True), moved(False))


def test_an_update_of_somebody_else_is_called_for_each_weight(gpus):
    called = []

    class Clipped(mx.optimizer.Adam):
        def update(self, index, weight, grad, state):
            super().update(index, weight, grad, state)
            called.append((index, weight.asnumpy().tolist()))
            weight[:] = 7

    weights = arrays(gpus[0], "float32", 0, [2, 3])
    mx.optimizer.get_updater(Clipped())([0, 1], arrays(gpus[0], "float32", 1, [2, 3]), weights)
    assert [index for index, _ in called] == [0, 1] and called[0][1] != [7, 7]
    assert all((w.asnumpy() == 7).all() for w in weights)


def test_an_update_that_is_put_in_its_place_is_called(gpus, monkeypatch):
    called = []
    for owner in (mx.optimizer.SGD(), mx.optimizer.Adam):
        with monkeypatch.context() as patch:
            patch.setattr(owner, "update", lambda *args: called.append(args))
            update = mx.optimizer.get_updater(owner() if isinstance(owner, type) else owner)
            update.aggregate_updates = False
            weights = arrays(gpus[0], "float32", 0, [2, 3])
            if isinstance(owner, type):
                update([0, 1], weights, weights)
    assert len(called) == 2


def test_what_does_not_fit_fails_as_one_by_one(gpus):
    def tried(together):
        weights, update = arrays(gpus[0], "float32", 0, [2, 3, 4]), updater("adam", {})
        grads = arrays(gpus[0], "float32", 1, [2, 5, 4])
        with pytest.raises(MXNetError) as caught:
            if together:
                update([0, 1, 2], grads, weights)
            else:
                for i in range(3):
                    update(i, grads[i], weights[i])
        return [w.asnumpy() for w in weights], str(caught.value).partition("\n")[0]

    (one, said), (many, also) = tried(False), tried(True)
    assert_same(many, one)
    assert said == also


def test_row_sparse_gradients_go_alone(gpus):
    weights = arrays(gpus[0], "float32", 0, [(4, 2), (3, 2), (5, 2)])
    grads = arrays(gpus[0], "float32", 1, [(4, 2), (3, 2), (5, 2)])
    expected = [w.copy() for w in weights]
    grads[1] = mx.nd.zeros((3, 2), ctx=gpus[0], stype="row_sparse")
    update, alone = updater("sgd", {}), updater("sgd", {})
    update([0, 1, 2], grads, weights)
    for i in range(3):
        alone(i, grads[i], expected[i])
    assert_same([w.asnumpy() for w in weights], [w.asnumpy() for w in expected])


def test_addresses_in_tables_are_looked_at(gpus):
    run = kernel("optimizer", "signsgd", "float32", 0)
    there, here = mx.nd.ones(4, ctx=gpus[1])._data, mx.nd.ones(4, ctx=gpus[0])._data
    [table] = tables([Row(4, (1.0, 0.5), (here, here, None)), Row(4, (1.0, 0.5), (here, there, None))])
    run.many(table, False)
    with pytest.raises(RuntimeError, match=r"signsgd: argument table, array 1 of row 1, does not point to memory of"):
        run.stream.run()
    packed = run.arguments([table.data, False])
    with pytest.raises(ValueError, match="nobody says"):
        run.launch_packed((1, 1, 1), (256, 1, 1), packed)


def test_what_was_found_of_arrays_does_not_outlive_them(gpus):
    """The arrays and numbers of each step differ in another way from those of the last, beside one after the other."""
    ctx, rs = gpus[0], np.random.RandomState(0)

    def scene(together):
        rs.seed(1)
        rule = mx.optimizer.Adam(learning_rate=0.1, param_idx2name=dict(enumerate("abcd")))
        update = mx.optimizer.get_updater(rule)
        sizes = [3, 5, 2, 7]
        weights, grads = (arrays(ctx, "float32", i, sizes) for i in range(2))
        keys = list(range(4))

        def step():
            if together:
                update(keys, grads, weights)
            else:
                for i, g, w in zip(keys, grads, weights):
                    update(i, g, w)

        for _ in range(2):
            step()
        grads[1] = mx.nd.array(rs.randn(5), ctx=ctx)  # another array
        step()
        grads[1][:] = 3
        step()
        rule.rescale_grad = 0.5
        step()
        rule.set_learning_rate(0.01)
        rule.set_lr_mult({"b": 3.0})
        step()
        rule.clip_gradient = 0.01  # a number that there was not
        step()
        rule.clip_gradient = None
        step()
        weights[2] = mx.nd.array(rs.randn(2), ctx=ctx)
        step()
        mean, _ = update.states[3]
        mean[:] = 1
        step()
        update.states[3] = mx.nd.ones(7, ctx=ctx), mx.nd.ones(7, ctx=ctx)
        step()
        shared = mx.nd.array(rs.randn(7), ctx=ctx)
        weights[1], weights[3] = shared[:5], shared
        update.states[1] = update.states[3][0][:5], update.states[3][1][:5]
        step()
        step()
        keys.reverse(), grads.reverse(), weights.reverse()
        step()
        rule.clip_gradient = 0.1
        step()
        step()
        return [a.asnumpy() for a in (*weights, *(s for i in range(4) for s in update.states[i]))]

    for a, b in zip(scene(True), scene(False), strict=True):
        np.testing.assert_array_equal(a, b)


def test_gradients_are_not_held(gpus):
    import weakref

    update = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.9))
    weights, grads = (arrays(gpus[0], "float32", i, [3, 4]) for i in range(2))
    update([0, 1], grads, weights)
    held = [weakref.ref(g._data) for g in grads]
    del grads
    mx.nd.waitall()
    assert [ref() for ref in held] == [None, None]
