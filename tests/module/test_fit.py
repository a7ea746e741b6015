"""fit, score and predict."""

import logging
import threading
import time
from collections import Counter

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetWarning

from .conftest import bound, mlp, params_of, some_batch


def test_fit_calls_back_as_mxnet_does(data_iter, caplog):
    caplog.set_level(logging.INFO)
    told = []

    def batch_end(p):
        told.append((type(p).__name__, p.epoch, p.nbatch, p.eval_metric.get()[0], p.locals["data_batch"].data[0].shape))
        assert p.locals["self"] is mod and p.locals["train_data"] is data_iter

    def epoch_end(epoch, symbol, args, auxs):
        told.append((epoch, symbol is mod.symbol, sorted(args), auxs))

    evals = []
    mod = mx.mod.Module(mlp())
    mod.fit(
        data_iter,
        eval_data=data_iter,
        begin_epoch=2,
        num_epoch=4,
        batch_end_callback=[batch_end],
        epoch_end_callback=epoch_end,
        eval_end_callback=lambda p: evals.append(("end", p.epoch, p.nbatch)),
        eval_batch_end_callback=lambda p: evals.append(("batch", p.epoch, p.nbatch)),
    )
    names = ["fc1_bias", "fc1_weight", "fc2_bias", "fc2_weight"]
    assert told == [
        row
        for e in (2, 3)
        for row in [("BatchEndParams", e, n, "accuracy", (4, 5)) for n in range(3)] + [(e, True, names, {})]
    ]
    assert evals == [row for e in (2, 3) for row in [("batch", e, 0), ("batch", e, 1), ("batch", e, 2), ("end", e, 3)]]
    lines = Counter(r.getMessage().split("=")[0] for r in caplog.records)
    assert all(
        lines[f"Epoch[{e}] {what}"] == 1
        for e in (2, 3)
        for what in ("Train-accuracy", "Time cost", "Validation-accuracy")
    )


def test_fit_learns_and_goes_on(data_iter):
    mod = mx.mod.Module(mlp(classes=2))
    mod.fit(
        data_iter,
        num_epoch=40,
        optimizer="adam",
        optimizer_params={"learning_rate": 0.1},
        initializer=mx.init.Xavier(),
        eval_metric=["acc", "ce"],
        validation_metric="acc",
        eval_data=data_iter,
    )
    assert dict(mod.score(data_iter, "acc"))["accuracy"] == 1.0
    before = params_of(mod)
    mod.fit(data_iter, num_epoch=1)
    assert any((before[k] != v).any() for k, v in params_of(mod).items())
    with pytest.warns(MXNetWarning, match="already initialized"):
        mod.fit(data_iter, num_epoch=1, arg_params=mod.get_params()[0])
    mod.fit(
        data_iter,
        num_epoch=1,
        arg_params={k: mx.nd.zeros(v.shape) for k, v in before.items()},
        force_init=True,
        force_rebind=True,
        optimizer_params={"learning_rate": 0.0},
    )
    assert params_of(mod)["fc1_weight"].max() < 0.2


def test_fit_says_what_is_wrong_with_its_arguments(data_iter):
    mod = mx.mod.Module(mlp())
    with pytest.raises(AssertionError, match="num_epoch"):
        mod.fit(data_iter)

    class Empty(mx.io.DataIter):
        provide_data, provide_label = data_iter.provide_data, data_iter.provide_label

        def next(self):
            raise StopIteration

    with pytest.raises(ValueError, match=r"no batch for epoch 0, nor after reset\(\)"):
        mod.fit(Empty(), num_epoch=1)
    net = mlp()
    two = mx.mod.Module(mx.sym.Group([net, mx.sym.BlockGrad(net.get_internals()["fc1_output"], name="more")]))
    with pytest.raises(ValueError, match="metric 'accuracy' cannot compare labels.*more_output"):
        two.fit(data_iter, num_epoch=1)
    unlabelled = mx.io.NDArrayIter(np.ones((4, 5)), batch_size=4)
    with pytest.warns(MXNetWarning, match="softmax_label"), pytest.raises(ValueError, match="labels {}"):
        mx.mod.Module(mlp()).fit(unlabelled, num_epoch=1)


def test_metrics_compare_labels_with_outputs_on_other_contexts_of_the_cpu():
    sums, seen = mx.metric.CustomMetric(lambda label, pred: 0.0), []
    sums.update = lambda labels, preds: seen.append((labels[0] + preds[0][:, 0]).shape)
    contexts = [mx.Context("cpu", 0), mx.Context("cpu", 1)]
    arrays = mx.nd.ones((12, 5), ctx=contexts[0]), mx.nd.zeros((12,), ctx=contexts[0])
    with contexts[0]:
        batches = mx.io.NDArrayIter(*arrays, batch_size=4)
    mx.mod.Module(mlp(), context=contexts).fit(batches, eval_metric=sums, num_epoch=1)
    assert seen == [(2,)] * 6

    def fails(labels, preds):
        raise ValueError("not these")

    sums.update = fails
    with pytest.raises(ValueError, match="not these.*label_names$"):  # contexts are no reason
        mx.mod.Module(mlp(), context=contexts).fit(batches, eval_metric=sums, num_epoch=1)


@pytest.mark.parametrize(
    "where", ["batch_end_callback", "epoch_end_callback", "eval_end_callback", "eval_batch_end_callback"]
)
def test_a_callback_that_raises_leaves_training_usable(data_iter, where):
    class Stop(Exception):
        pass

    def stop(*args):
        raise Stop

    mod = mx.mod.Module(mlp(classes=2))
    options = dict(optimizer_params={"learning_rate": 0.5, "momentum": 0.9}, initializer=mx.init.Xavier())
    with pytest.raises(Stop):
        mod.fit(data_iter, eval_data=data_iter, num_epoch=2, **{where: stop}, **options)
    stopped = params_of(mod)
    twin = mx.mod.Module(mlp(classes=2))
    twin.bind(data_iter.provide_data, data_iter.provide_label)
    twin.set_params(*mod.get_params())
    data_iter.reset()
    assert mod.score(data_iter, "ce") == twin.score(data_iter, "ce")
    data_iter.reset()
    mod.fit(data_iter, num_epoch=30)
    assert any((stopped[k] != v).any() for k, v in params_of(mod).items())
    assert dict(mod.score(data_iter, "acc"))["accuracy"] >= 0.9


def test_score_counts_batches(data_iter):
    mod = bound()
    seen = []
    mod.score(
        data_iter,
        "acc",
        num_batch=2,
        epoch=7,
        batch_end_callback=lambda p: seen.append((p.epoch, p.nbatch)),
        score_end_callback=[lambda p: seen.append((p.nbatch, p.locals["self"] is mod))],
    )
    assert seen == [(7, 0), (7, 1), (2, True)]
    metric = mx.metric.Accuracy()
    mod.score(data_iter, metric)
    assert metric.num_inst == 12
    # Global figures count although a callback resets the local ones.
    found = dict(mod.score(data_iter, "acc", batch_end_callback=lambda p: p.eval_metric.reset_local()))
    assert found["accuracy"] == metric.get()[1]


def test_predict_in_all_forms():
    rs = np.random.RandomState(0)
    x = rs.randn(7, 5).astype("float32")
    it = mx.io.NDArrayIter(x, np.zeros(7), 4)
    mod = bound()
    whole = mod.predict(it)
    assert whole.shape == (7, 3)
    np.testing.assert_allclose(mod.predict(x).asnumpy(), whole.asnumpy(), rtol=1e-5)
    np.testing.assert_allclose(mod.predict(mx.nd.array(x)).asnumpy(), whole.asnumpy(), rtol=1e-5)
    batches = mod.predict(it, merge_batches=False)
    assert [b[0].shape for b in batches] == [(4, 3), (3, 3)]
    assert (np.concatenate([b[0].asnumpy() for b in batches]) == whole.asnumpy()).all()
    assert [o.shape for o in mod.predict(it, always_output_list=True)] == [(7, 3)]
    assert mod.predict(it, num_batch=1).shape == (4, 3) and mod.predict(it, num_batch=0) == []
    it.reset()
    it.next()
    assert mod.predict(it, reset=False).shape == (3, 3)
    found = [(n, outs[0].shape, batch.pad) for outs, n, batch in mod.iter_predict(it)]
    assert found == [(0, (4, 3), 0), (1, (3, 3), 1)]
    with pytest.raises(ValueError, match="got list"):
        mod.predict([1])


def test_predict_refuses_to_merge_different_outputs():
    class Odd(mx.mod.Module):
        def get_outputs(self, merge_multi_context=True):
            self.calls = getattr(self, "calls", 0) + 1
            return super().get_outputs(merge_multi_context) * self.calls

    mod = Odd(mlp())
    mod.bind([("data", (4, 5))], [("softmax_label", (4,))])
    mod.init_params()
    with pytest.raises(ValueError, match=r"\[1, 2\] outputs"):
        mod.predict(mx.io.NDArrayIter(np.ones((8, 5)), np.ones(8), 4))


def test_batches_may_come_cut_for_the_contexts():
    one, two = bound(), bound(context=[mx.cpu(0), mx.cpu(1)])
    whole, parts = (
        some_batch(),
        [mx.io.DataBatch([some_batch().data[0][s]], [some_batch().label[0][s]]) for s in (slice(0, 2), slice(2, 4))],
    )
    metrics = [mx.metric.CrossEntropy(), mx.metric.CrossEntropy()]
    one.forward_backward(whole)
    one.update_metric(metrics[0], whole.label)
    two.forward_backward(parts)
    two.update_metric(metrics[1], [p.label for p in parts], pre_sliced=True)
    np.testing.assert_allclose(one.get_outputs()[0].asnumpy(), two.get_outputs()[0].asnumpy(), rtol=1e-6)
    assert abs(metrics[0].get()[1] - metrics[1].get()[1]) < 1e-6
    with pytest.raises(ValueError, match="1 batches for 2 contexts"):
        two.forward(parts[:1])


def test_a_base_module_names_what_is_not_defined():
    base = mx.mod.BaseModule()
    for call in (
        lambda: base.data_names,
        lambda: base.bind([]),
        base.get_params,
        lambda: base.forward(None),
        base.backward,
        base.update,
    ):
        with pytest.raises(NotImplementedError, match="BaseModule does not define"):
            call()
    assert base.symbol is None


@pytest.mark.parametrize("how", ["iterator", "array", "FeedForward"])
def test_threads_share_a_module_to_predict(how, monkeypatch):
    """A batch goes through as a whole."""
    data = np.random.RandomState(0).uniform(-1, 1, (2, 4, 5)).astype("float32")
    if how == "FeedForward":
        with pytest.warns(DeprecationWarning):
            model = mx.model.FeedForward(mlp(), arg_params=bound().get_params()[0])
        place, name = mx.executor.Executor, "forward"
    else:
        model = bound()
        place, name = mx.mod.Module, "get_outputs"

    def predict(x):
        x = mx.nd.array(x)
        return np.array(
            model.predict(x if how == "array" else mx.io.NDArrayIter(x, batch_size=4)).asnumpy()
            if how != "FeedForward"
            else model.predict(mx.io.NDArrayIter(x, batch_size=4))
        )

    wanted, found, others = [predict(x) for x in data], {}, []
    real = getattr(place, name)

    def disturbed(self, *args, **kwargs):
        outputs = real(self, *args, **kwargs)
        if not others:
            others.append(threading.Thread(target=lambda: found.update(other=predict(data[1]))))
            others[0].start()
            time.sleep(0.1)
        return outputs

    monkeypatch.setattr(place, name, disturbed)
    np.testing.assert_allclose(predict(data[0]), wanted[0], rtol=1e-5)
    others[0].join()
    np.testing.assert_allclose(found["other"], wanted[1], rtol=1e-5)


@pytest.mark.parametrize("other", ["predict", "score", "get_params"])
def test_a_thread_that_looks_leaves_training_alone(other):
    X, Y = np.random.RandomState(0).uniform(-1, 1, (24, 5)), np.arange(24) % 3

    def data():
        return mx.io.NDArrayIter(X, Y, 8)

    def trained(disturb):
        mod, over = bound(size=8), threading.Event()

        def look():
            while not over.is_set():
                mod.get_params() if other == "get_params" else mod.predict(data()) if other == "predict" else mod.score(
                    data(), "acc"
                )

        thread = threading.Thread(target=look)
        if disturb:
            thread.start()
        try:
            mod.fit(data(), num_epoch=15, optimizer="adam", optimizer_params={"learning_rate": 0.01})
        finally:
            over.set()
        if disturb:
            thread.join()
        return mod.get_params()[0]

    alone, watched = trained(False), trained(True)
    for name, value in alone.items():
        np.testing.assert_allclose(watched[name].asnumpy(), value.asnumpy(), rtol=1e-5, err_msg=name)


def test_modules_that_share_memory_take_turns():
    large = bound()
    small = mx.mod.Module(mlp())
    small.bind([("data", (2, 5))], [("softmax_label", (2,))], shared_module=large)
    done = threading.Event()
    with large._object_lock:
        other = threading.Thread(target=lambda: (small.predict(mx.nd.ones((2, 5))), done.set()))
        other.start()
        assert not done.wait(0.3)
    other.join()
    assert done.is_set()


@pytest.mark.parametrize(
    "change",
    {
        "reshape": lambda mod, _: mod.reshape([("data", (2, 5))], [("softmax_label", (2,))]),
        "bind": lambda mod, _: mod.bind([("data", (2, 5))], [("softmax_label", (2,))], force_rebind=True),
        "set_params": lambda mod, _: mod.set_params(*mod.get_params()),
        "load_params": lambda mod, folder: mod.load_params(f"{folder}/m-0000.params"),
        "save_checkpoint": lambda mod, folder: mod.save_checkpoint(f"{folder}/n", 0, True),
        "init_optimizer": lambda mod, _: mod.init_optimizer(force_init=True),
        "load_optimizer_states": lambda mod, folder: mod.load_optimizer_states(f"{folder}/m-0000.states"),
        "forward": lambda mod, _: mod.forward(some_batch(), is_train=False),
        "update": lambda mod, _: mod.update(),
    }.items(),
    ids=lambda named: named[0],
)
def test_what_changes_a_module_waits_for_its_batch(change, tmp_path):
    """Another thread's batch, whose outputs would be those of the new shape, or of no network at all."""
    mod, done = bound(), threading.Event()
    mod.init_optimizer()
    mod.forward_backward(some_batch())
    mod.save_checkpoint(f"{tmp_path}/m", 0, True)
    with mod._object_lock:
        other = threading.Thread(target=lambda: (change[1](mod, tmp_path), done.set()))
        other.start()
        assert not done.wait(0.1)
    other.join()
    assert done.is_set()
