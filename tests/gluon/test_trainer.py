"""Trainer: steps, contexts, stores, stale gradients, states."""

import gc
import pickle
import weakref

import numpy as np
import pytest

import mxcore as mx
from mxcore.gluon import Trainer, nn

CPUS = [mx.cpu(0), mx.cpu(1)]


def dense(ctx=None, **kw):
    net = nn.Dense(3, in_units=2, **kw)
    net.initialize(mx.init.One(), ctx=ctx)
    return net


def backward(net, contexts=(mx.cpu(0),)):
    with mx.autograd.record():
        losses = [net(mx.nd.ones((2, 2), ctx=c)).sum() for c in contexts]
    for loss in losses:
        loss.backward()


def weights(net):
    return [w.asnumpy() for w in net.weight.list_data()]


def test_step_divides_by_batch_size():
    net = dense()
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "rescale_grad": 2.0})
    backward(net)
    trainer.step(4)
    # Each gradient is 2, times 2, by 4, times the rate.
    np.testing.assert_allclose(weights(net)[0], np.full((3, 2), 0.9), rtol=1e-6)
    assert trainer.optimizer.rescale_grad == 0.5


def test_learning_rate():
    net = dense()
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    assert trainer.learning_rate == 0.1
    trainer.set_learning_rate(0.5)
    assert trainer.learning_rate == 0.5
    scheduler = mx.lr_scheduler.FactorScheduler(10, 0.5)
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "lr_scheduler": scheduler})
    with pytest.raises(UserWarning, match="LRScheduler"):
        trainer.set_learning_rate(0.5)


def test_multipliers_are_read_at_every_step():
    net = dense()
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    net.weight.lr_mult = 0.0
    backward(net)
    trainer.step(1)
    assert (weights(net)[0] == 1).all() and (net.bias.data().asnumpy() == -2).all()


def test_parameters_are_taken_in_order_of_names():
    net = dense()
    trainer = Trainer(net.collect_params(), "sgd")
    assert [p.name for p in trainer._params] == ["dense0_bias", "dense0_weight"]
    assert [p.name for p in Trainer([net.weight, net.bias], "sgd")._params] == ["dense0_weight", "dense0_bias"]


@pytest.mark.parametrize(
    "params, kind, text",
    [
        (3, ValueError, "list or dict of Parameters, got .*int"),
        ([3], ValueError, "list of .*int"),
        (dense().weight, ValueError, "Parameter"),
    ],
)
def test_wrong_parameters(params, kind, text):
    with pytest.raises(kind, match=text) as e:
        Trainer(params, "sgd")
    assert isinstance(e.value, mx.base.MXNetError)


@pytest.mark.parametrize("size", [0, 0.0, "4", None])
def test_batch_sizes_by_which_nothing_can_be_divided(size):
    net = dense()
    backward(net)
    trainer = Trainer(net.collect_params(), "sgd")
    for use in (trainer.step, trainer.update):
        with pytest.raises(ValueError, match="batch_size, by which .* must be a number other than 0") as e:
            use(size)
        assert isinstance(e.value, mx.base.MXNetError) and str(e.value).endswith(f"got {size!r}")


def test_optimizer_object():
    net = dense()
    with pytest.raises(AssertionError, match="optimizer_params must be None"):
        Trainer(net.collect_params(), mx.optimizer.SGD(), {"learning_rate": 1.0})
    optimizer = mx.optimizer.SGD(learning_rate=0.5)
    trainer = Trainer(net.collect_params(), optimizer)
    assert trainer.optimizer is optimizer
    backward(net)
    trainer.step(1)
    assert (weights(net)[0] == 0).all()


def test_stale_gradients():
    net, unused = dense(), dense()
    params = {**dict(net.collect_params().items()), **dict(unused.collect_params().items())}
    trainer = Trainer(params, "sgd", {"learning_rate": 1.0})
    backward(net)
    with pytest.raises(UserWarning, match=r"`dense1_bias` on context cpu\(0\).*ignore_stale_grad"):
        trainer.step(1)
    backward(net)
    trainer.step(1, ignore_stale_grad=True)
    assert (weights(net)[0] == -1).all() and (weights(unused)[0] == 1).all()
    # The step has used the gradients up.
    trainer.step(1, ignore_stale_grad=True)
    assert (weights(net)[0] == -1).all()
    with pytest.raises(UserWarning, match="dense0_bias"):
        trainer.step(1)


def test_frozen_parameters_are_left_alone():
    net = dense()
    net.bias.grad_req = "null"
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    backward(net)
    trainer.step(1)
    assert (weights(net)[0] == -1).all() and (net.bias.data().asnumpy() == 0).all()


def test_uninitialised_and_deferred():
    with pytest.raises(RuntimeError, match="dense0_bias' has not been initialized"):
        Trainer(nn.Dense(3).collect_params(), "sgd")
    net = nn.Dense(3)
    net.initialize()
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    with pytest.raises(mx.gluon.DeferredInitializationError, match="dense1_weight"):
        trainer.step(1)
    backward(net)
    trainer.step(1)
    assert (net.bias.data().asnumpy() == -2).all()


def test_contexts_must_agree():
    params = [*dense(mx.cpu(0)).collect_params().values(), *dense(mx.cpu(1)).collect_params().values()]
    with pytest.raises(AssertionError, match=r"dense1_weight is initialized on \[cpu\(1\)\]"):
        Trainer(params, "sgd")


def test_a_trainer_does_not_outlive_its_owner():
    net = dense()
    trainer = Trainer(net.collect_params(), "sgd")
    alive = weakref.ref(trainer)
    gc.disable()
    try:
        del trainer
        assert alive() is None
    finally:
        gc.enable()


# -- several contexts and stores -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["local", "device"])
@pytest.mark.parametrize("on_store", [None, True, False])
def test_gradients_of_all_contexts_add_up(kind, on_store):
    net = dense(CPUS)
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore=kind, update_on_kvstore=on_store)
    for _ in range(2):
        backward(net, CPUS)
        trainer.step(4)
    assert trainer._update_on_kvstore is (on_store is not False) and trainer._kvstore.type == kind
    for w in weights(net):
        np.testing.assert_allclose(w, np.full((3, 2), 0.0), atol=1e-6)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_several_contexts_equal_one(optimizer):
    one, two = dense(), dense(CPUS)
    config = (optimizer, {"learning_rate": 0.1})
    with_one = Trainer(one.collect_params(), *config)
    with_two = Trainer(two.collect_params(), *config, update_on_kvstore=False)
    for _ in range(3):
        backward(one)
        with_one.step(1)
        backward(two, CPUS)
        with_two.step(2)
    for w in weights(two):
        np.testing.assert_allclose(w, weights(one)[0], rtol=1e-5, atol=1e-6)


def test_no_store_for_one_context():
    net = dense()
    trainer = Trainer(net.collect_params(), "sgd", kvstore="device")
    trainer._init_kvstore()
    assert trainer._kvstore is None and not trainer._update_on_kvstore
    trainer = Trainer(net.collect_params(), "sgd", update_on_kvstore=True)  # there is none that could
    trainer._init_kvstore()
    assert trainer._kvstore is None and not trainer._update_on_kvstore


def test_store_object():
    net, store = dense(), mx.kvstore.create("local")
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore=store)
    backward(net)
    trainer.step(1)
    assert trainer._kvstore is store and trainer._update_on_kvstore is True
    assert (weights(net)[0] == 0).all()


def test_environment_decides_who_updates(monkeypatch):
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", "0")
    net = dense(CPUS)
    trainer = Trainer(net.collect_params(), "sgd", kvstore="local")
    trainer._init_kvstore()
    assert trainer._update_on_kvstore is False
    trainer = Trainer(net.collect_params(), "sgd", kvstore="local", update_on_kvstore=True)
    trainer._init_kvstore()
    assert trainer._update_on_kvstore is True


def test_allreduce_then_update():
    net = dense(CPUS)
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, update_on_kvstore=False)
    backward(net, CPUS)
    trainer.allreduce_grads()
    assert [g.asnumpy()[0, 0] for g in net.weight.list_grad()] == [4, 4]
    for g in net.weight.list_grad():
        g[:] = 1
    trainer.update(1)
    assert all((w == 0.5).all() for w in weights(net))
    on_store = Trainer(net.collect_params(), "sgd", kvstore="local", update_on_kvstore=True)
    for method in (on_store.allreduce_grads, lambda: on_store.update(1)):
        with pytest.raises(AssertionError, match="update_on_kvstore"):
            method()


def test_values_set_behind_the_store_are_kept():
    net = dense(CPUS)
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore="local", update_on_kvstore=True)
    backward(net, CPUS)
    trainer.step(4)
    net.weight.set_data(mx.nd.ones((3, 2)) * 7)
    backward(net, CPUS)
    trainer.step(4)
    for w in weights(net):
        np.testing.assert_allclose(w, np.full((3, 2), 6.5), rtol=1e-6)


def test_compression_is_passed_on():
    net, told = dense(CPUS), []
    store = mx.kvstore.create("device")

    class Watching(type(store)):
        def set_gradient_compression(self, params):
            told.append(params)

    store.__class__ = Watching
    Trainer(net.collect_params(), "sgd", kvstore=store, compression_params={"type": "2bit"})._init_kvstore()
    assert told == [{"type": "2bit"}]


@pytest.mark.parametrize("contexts, on_store", [([mx.cpu(0)], None), (CPUS, True), (CPUS, False)])
def test_states_survive(tmp_path, contexts, on_store):
    f = str(tmp_path / "trainer.states")
    config = ("sgd", {"learning_rate": 0.1, "momentum": 0.9})
    nets = [dense(contexts) for _ in range(2)]
    trainers = [Trainer(n.collect_params(), *config, kvstore="local", update_on_kvstore=on_store) for n in nets]
    for _ in range(2):
        backward(nets[0], contexts)
        trainers[0].step(4)
    trainers[0].save_states(f)
    nets[1].weight.set_data(nets[0].weight.data(contexts[0]))
    nets[1].bias.set_data(nets[0].bias.data(contexts[0]))
    trainers[1].load_states(f)
    assert trainers[1].optimizer.param_dict[0] is nets[1].bias
    for n, t in zip(nets, trainers):
        backward(n, contexts)
        t.step(4)
    for a, b in zip(weights(nets[0]), weights(nets[1])):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_counts_of_updates_survive_on_another_context(tmp_path):
    f = str(tmp_path / "trainer.states")
    net, one = dense(CPUS), dense(CPUS[1:])
    trainer = Trainer(net.collect_params(), "adam", kvstore="device")
    for _ in range(2):
        backward(net, CPUS)
        trainer.step(4)
    trainer.save_states(f)
    resumed = Trainer(one.collect_params(), "adam", kvstore="device")
    resumed.load_states(f)
    backward(one, CPUS[1:])
    resumed.step(4)
    assert resumed.optimizer._all_index_update_counts == {CPUS[1].device_id: {0: 3, 1: 3}}


def test_counts_of_updates_of_one_context_become_those_of_all(tmp_path):
    f = str(tmp_path / "trainer.states")
    one, net = dense(CPUS[:1]), dense(CPUS)
    trainer = Trainer(one.collect_params(), "adam", update_on_kvstore=False)
    for _ in range(2):
        backward(one, CPUS[:1])
        trainer.step(4)
    trainer.save_states(f)
    resumed = Trainer(net.collect_params(), "adam", kvstore="device", update_on_kvstore=False)
    resumed.load_states(f)
    for _ in range(2):
        backward(net, CPUS)
        resumed.step(4)
    assert resumed.optimizer._all_index_update_counts == {ctx.device_id: {0: 4, 1: 4} for ctx in CPUS}
    for p in net.collect_params().values():  # replicas stay alike
        np.testing.assert_array_equal(*[p.data(ctx).asnumpy() for ctx in CPUS])


@pytest.mark.parametrize(
    "contexts, wanted",
    [((0, 1), {0: 5, 1: 2}), ((1,), {1: 2}), ((1, 0, 2), {1: 2, 0: 5, 2: 5}), ((2, 3), {2: 5, 3: 5})],
)
def test_each_context_goes_on_from_its_own_count(tmp_path, contexts, wanted):
    """As in MXNet; of one that the file does not know nothing is known but what others did."""
    f = str(tmp_path / "trainer.states")
    net = dense(CPUS)
    trainer = Trainer(net.collect_params(), "adam", kvstore=None, update_on_kvstore=False)
    for step in range(5):
        backward(net, CPUS if step < 2 else CPUS[:1])
        trainer.update(4, ignore_stale_grad=True)
    assert trainer.optimizer._all_index_update_counts == {0: {0: 5, 1: 5}, 1: {0: 2, 1: 2}}
    trainer.save_states(f)
    here = [mx.cpu(i) for i in contexts]
    resumed = Trainer(dense(here).collect_params(), "adam", kvstore=None, update_on_kvstore=False)
    resumed.load_states(f)
    assert resumed.optimizer._all_index_update_counts == {i: {0: n, 1: n} for i, n in wanted.items()}


@pytest.mark.parametrize("on_store", [True, False])
def test_a_file_that_holds_no_states_is_named(tmp_path, on_store):
    f = tmp_path / "junk.states"
    f.write_bytes(b"junk")
    trainer = Trainer(dense(CPUS).collect_params(), "sgd", kvstore="local", update_on_kvstore=on_store)
    with pytest.raises(ValueError, match=r"junk\.states: these 4 bytes are no optimizer states"):
        trainer.load_states(str(f))


def test_sparse_gradients():
    net = nn.Embedding(5, 2, sparse_grad=True)
    net.initialize(mx.init.One())
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    with mx.autograd.record():
        loss = net(mx.nd.array([1, 3])).sum()
    loss.backward()
    assert net.weight.grad().stype == "row_sparse"
    trainer.step(1)
    assert net.weight.data().asnumpy()[:, 0].tolist() == [1, 0.5, 1, 0.5, 1]


def test_sparse_weights_live_in_the_store():
    net = mx.gluon.contrib.nn.SparseEmbedding(5, 2)
    net.initialize(mx.init.One())
    with pytest.raises(RuntimeError, match="no Trainer"):
        net.weight.row_sparse_data(mx.nd.array([1]))
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    for _ in range(2):
        with mx.autograd.record():
            loss = net(mx.nd.array([1, 3])).sum()
        loss.backward()
        trainer.step(1)
    rows = net.weight.row_sparse_data(mx.nd.arange(5, dtype="int64")).asnumpy()
    assert rows[:, 0].tolist() == [1, 0, 1, 0, 1]
    with pytest.raises(RuntimeError, match="row_sparse_data"):
        net.weight.data()
    with pytest.raises(RuntimeError, match="More than one"):
        Trainer(net.collect_params(), "sgd")
    with pytest.raises(ValueError, match="row_sparse weights"):
        other = mx.gluon.contrib.nn.SparseEmbedding(5, 2)
        other.initialize()
        Trainer(other.collect_params(), "sgd", update_on_kvstore=False)._init_kvstore()
    other = mx.gluon.contrib.nn.SparseEmbedding(5, 2)
    other.initialize()
    with pytest.raises(TypeError, match="rows of row_sparse parameters live in a store, but kvstore is None"):
        Trainer(other.collect_params(), "sgd", kvstore=None)._init_kvstore()


@pytest.mark.parametrize("wanted", [None, True, False])
def test_sparse_gradients_are_summed_by_a_store_and_used_by_the_trainer(wanted):
    net, contexts = nn.Embedding(5, 2, sparse_grad=True), [mx.cpu(0), mx.cpu(1)]
    net.initialize(mx.init.One(), ctx=contexts)
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, update_on_kvstore=wanted)
    with mx.autograd.record():
        losses = [net(mx.nd.array([1, 3 - i], ctx=c)).sum() for i, c in enumerate(contexts)]
    mx.autograd.backward(losses)
    trainer.step(1)
    assert trainer._kvstore is not None and trainer._update_on_kvstore is bool(wanted)
    for c in contexts:
        assert net.weight.data(c).asnumpy()[:, 0].tolist() == [1, 0, 0.5, 0.5, 1]


def test_a_parameter_on_fewer_contexts_than_others_moves_where_it_is():
    made = [mx.gluon.Parameter(name, shape=(1,), init="ones") for name in "ab"]
    for p in made:
        p.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    trainer = mx.gluon.Trainer(made, "sgd", {"learning_rate": 1.0}, kvstore=None)
    for contexts in ((0, 1), (0,)):
        made[1].reset_ctx([mx.cpu(i) for i in contexts])
        for p in made:
            for x in p.list_data():
                with mx.autograd.record():
                    y = x * 2
                y.backward()
        trainer.step(1)
    assert [x.asscalar() for p in made for x in p.list_data()] == [-3, -3, -3]


def test_a_parameter_that_comes_twice_moves_once_where_stale_gradients_are_left_out():
    p = mx.gluon.Parameter("a", shape=(1,), init="ones")
    p.initialize()
    trainer = mx.gluon.Trainer([p, p], "sgd", {"learning_rate": 1.0})
    with mx.autograd.record():
        y = p.data() * 1
    y.backward()
    trainer.step(1, ignore_stale_grad=True)
    assert p.data().asscalar() == 0


def test_replicas_take_the_states_of_one_file(tmp_path, monkeypatch):
    """A file that another process replaces meanwhile is read once."""
    from mxcore.optimizer import updater

    net = dense(CPUS)
    trainer = Trainer(net.collect_params(), "sgd", {"momentum": 0.9}, kvstore="device", update_on_kvstore=False)
    blobs = []
    for _ in range(2):
        backward(net, CPUS)
        trainer.step(1)
        trainer.save_states(str(tmp_path / "s"))
        blobs.append((tmp_path / "s").read_bytes())
    assert blobs[0] != blobs[1]
    read, whole = [], updater.read_whole

    def replaced(*args, **kwargs):
        (tmp_path / "s").write_bytes(blobs[len(read) % 2])
        read.append(args)
        return whole(*args, **kwargs)

    monkeypatch.setattr(updater, "read_whole", replaced)
    trainer.load_states(str(tmp_path / "s"))
    a, b = (u.states for u in trainer._updaters)
    assert len(read) == 1 and all(np.array_equal(a[i].asnumpy(), b[i].asnumpy()) for i in a)
    assert all(a[i] is not b[i] for i in a)


CHANGES = {
    "frozen": lambda net: setattr(net.bias, "grad_req", "null"),
    "added up": lambda net: setattr(net.weight, "grad_req", "add"),
    "initialised again": lambda net: net.initialize(mx.init.Constant(2), force_reinit=True),
    "of another type": lambda net: net.cast("float64"),
    "on another context": lambda net: net.collect_params().reset_ctx(mx.cpu(0)),
    "set": lambda net: net.weight.set_data(mx.nd.ones((3, 2)) * 5),
    "marked anew": lambda net: net.weight.data().attach_grad(),
    "nothing": lambda net: None,
}


@pytest.mark.parametrize("what", CHANGES)
def test_arrays_that_change_between_steps_are_found(what):
    """As by a trainer that has never made a step before; without momentum it would be the same."""
    found = []
    for anew in (False, True):
        net = dense()
        trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        for step in range(6):
            if step == 3:
                CHANGES[what](net)
                if anew:
                    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
            with mx.autograd.record():
                loss = (net(mx.nd.ones((2, 2), dtype=net.weight.dtype)) ** 2).sum()
            loss.backward()
            trainer.step(4, ignore_stale_grad=what == "marked anew")
        found.append([p.data().asnumpy() for p in net.collect_params().values()])
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)


def test_a_pickled_trainer_brings_no_gradients():
    net = dense()
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    backward(net)
    trainer.step(1)
    assert trainer._known is not None and pickle.loads(pickle.dumps(trainer))._known is None


def test_a_store_that_keeps_its_optimizer_to_itself_loads_states(tmp_path):
    """Of what `KVStoreBase` asks for."""

    class Own(mx.kv.KVStoreBase):
        rank, num_workers, type = 0, 1, "own"

        def __init__(self):
            self.values = {}

        def broadcast(self, key, value, out, priority=0):
            self.values[key] = value.copy()
            for a in out if isinstance(out, list) else [out]:
                a[:] = value

        def set_optimizer(self, optimizer):
            self.update = mx.optimizer.get_updater(optimizer)

        def pushpull(self, key, value, out=None, priority=0):
            self.update(key, mx.nd.add_n(*[g.as_in_context(mx.cpu(0)) for g in value]), self.values[key])
            for a in out:
                a[:] = self.values[key].as_in_context(a.context)

        def save_optimizer_states(self, fname, dump_optimizer=False):
            with open(fname, "wb") as file:
                file.write(self.update.get_states(dump_optimizer))

        def load_optimizer_states(self, fname):
            with open(fname, "rb") as file:
                self.update.set_states(file.read())

        @staticmethod
        def is_capable(capability):
            return True

    contexts = [mx.cpu(0), mx.cpu(1)]
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize(ctx=contexts)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"momentum": 0.9}, kvstore=Own())

    def step():
        with mx.autograd.record():
            losses = [net(mx.nd.ones((2, 3), ctx=c)).sum() for c in contexts]
        mx.autograd.backward(losses)
        trainer.step(4)
        return net.weight.data(contexts[0]).asnumpy()

    step()
    trainer.save_states(str(tmp_path / "t.states"))
    before = net.weight.data(contexts[0]).asnumpy()
    want = step() - before
    net.weight.set_data(mx.nd.array(before))
    trainer.load_states(str(tmp_path / "t.states"))
    [held] = [v for v in trainer._kvstore.values.values() if v.shape == before.shape]
    held[:] = mx.nd.array(before)
    np.testing.assert_allclose(step() - before, want, rtol=1e-5)


class Late(TimeoutError):
    pass


@pytest.mark.parametrize("files", ["gluon/trainer.py", "kvstore/kvstore.py"])
@pytest.mark.parametrize("update_on_kvstore", [True, False])
def test_a_deadline_amid_the_first_step_is_not_the_last(handled_anywhere, files, update_on_kvstore):
    contexts = [mx.cpu(0), mx.cpu(1)]
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(3, in_units=2), mx.gluon.nn.Dense(2, in_units=3))
    net.initialize(ctx=contexts)
    parameters = list(net.collect_params().values())

    def back():
        with mx.autograd.record():
            losses = [net(mx.nd.ones((2, 2), ctx=ctx)).sum() for ctx in contexts]
        mx.autograd.backward(losses)

    def made():
        return mx.gluon.Trainer(parameters, "sgd", {"learning_rate": 0.5}, update_on_kvstore=update_on_kvstore)

    def work():
        trainer = None
        try:
            trainer = made()
            for p in parameters:
                p.set_data(mx.nd.ones(p.shape))
            back()
            trainer.step(2)
        except Late:
            trainer = trainer or made()
            for p in parameters:
                p.set_data(mx.nd.ones(p.shape))
            back()
            trainer.step(2)
        # Each context has the same sum of gradients, over the batch of 2.
        values = [[p.data(ctx).asnumpy() for ctx in contexts] for p in parameters]
        assert all((one == other).all() for one, other in values)
        np.testing.assert_allclose(values[-1][0], 1 - 0.5 * 2 * 2 / 2)

    def late():
        raise Late

    work()
    assert handled_anywhere((files,), work, late) > 30
