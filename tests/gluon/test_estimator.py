"""Estimator and event handlers: against MXNet's trainings, and what those do not show."""

import io
import json
import os
import pathlib
import re
import warnings

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore.gluon import loss, nn
from mxcore.gluon.contrib import estimator as est

from .estimator_cases import learner, loader, stories

GOLDEN = json.loads((pathlib.Path(__file__).parent / "golden" / "estimator.json").read_text())
pytestmark = pytest.mark.filterwarnings("ignore:.*values of .* are taken as better")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return stories(mx, str(tmp_path_factory.mktemp("checkpoints")))


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_trainings_are_mxnets(name, found):
    # Digits in the last place may differ, and one line has MXNet's misspelling of a handler's name.
    numbers = re.compile(r"(?<=: )\d+\.\d{4}")
    want, have = GOLDEN[name], found[name]
    for key in "lines", "heard":
        told = [
            [numbers.sub("#", line).replace("Hanlder", "Handler") for line in side.get(key, [])]
            for side in (want, have)
        ]
        assert told[0] == told[1]
    for old, new in zip(want["lines"], have["lines"]):
        np.testing.assert_allclose(
            [float(n) for n in numbers.findall(new)], [float(n) for n in numbers.findall(old)], atol=2e-4
        )
    assert [v is None for v in want["values"]] == [v is None for v in have["values"]]
    np.testing.assert_allclose([v or 0 for v in have["values"]], [v or 0 for v in want["values"]], atol=1e-4)
    assert have["files"] == want["files"]


def test_symbol_and_best_checkpoint_can_be_loaded(tmp_path):
    made, _ = learner(mx)
    keep = est.CheckpointHandler(tmp_path, monitor=made.train_metrics[1], save_best=True)  # of a loss, the smallest
    made.fit(loader(mx), epochs=2, event_handlers=keep)
    assert keep.best == made.train_metrics[1].get()[1]
    other, _ = learner(mx)
    other.net.load_parameters(str(tmp_path / "model-best.params"))
    other.trainer.load_states(str(tmp_path / "model-best.states"))
    net = mx.gluon.SymbolBlock(
        mx.sym.load(str(tmp_path / "model-symbol.json")), mx.sym.var("data"), params=other.net.collect_params()
    )
    x = mx.nd.ones((2, 4))
    np.testing.assert_array_equal(net(x).asnumpy(), made.net(x).asnumpy())


def test_only_the_oldest_checkpoints_go(tmp_path):
    # MXNet removes whatever begins with the name of the oldest: with batch1, batch10 and batch11.
    made, _ = learner(mx)
    keep = est.CheckpointHandler(tmp_path, "my-best", epoch_period=None, batch_period=1, max_checkpoints=11)
    made.fit(loader(mx, batch=5), batches=13, event_handlers=keep)
    assert len(keep.saved_checkpoints) == 11
    kept = {f"{name}{ending}" for name in keep.saved_checkpoints for ending in (".params", ".states")}
    assert {*os.listdir(tmp_path)} == kept | {"my-best-symbol.json"}
    assert "my-best-epoch0batch10.params" in kept and "my-best-epoch0batch1.params" not in kept


def test_resuming_counts_the_checkpoints_that_are_there(tmp_path):
    for epochs in (3, 6):
        made, _ = learner(mx)
        keep = est.CheckpointHandler(tmp_path, "net-epoch", max_checkpoints=2, resume_from_checkpoint=True)
        made.fit(loader(mx), epochs=epochs, event_handlers=keep)
    assert sorted(f for f in os.listdir(tmp_path) if "params" in f) == [
        "net-epoch-epoch4batch24.params",
        "net-epoch-epoch5batch29.params",
    ]


@pytest.mark.parametrize("kill", [0, 1, 2])
def test_what_a_killed_run_did_not_come_to_remove_goes_later(tmp_path, monkeypatch, kill):
    removed = []

    def killed(path):
        if len(removed) == kill:
            raise KeyboardInterrupt
        removed.append(path)
        os.unlink(path)

    monkeypatch.setattr(os, "remove", killed)
    made, _ = learner(mx)
    with pytest.raises(KeyboardInterrupt):
        made.fit(loader(mx), epochs=6, event_handlers=est.CheckpointHandler(tmp_path, "net", max_checkpoints=1))
    monkeypatch.undo()
    made, _ = learner(mx)
    keep = est.CheckpointHandler(tmp_path, "net", max_checkpoints=1, resume_from_checkpoint=True)
    made.fit(loader(mx), epochs=6, event_handlers=keep)
    (name,) = keep.saved_checkpoints
    assert name.startswith("net-epoch5")
    assert {*os.listdir(tmp_path)} == {"net-symbol.json", f"{name}.params", f"{name}.states"}


def test_a_checkpoint_that_is_replaced_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    """Parameters are not of one time, and states of another."""

    def save(value):
        made, _ = learner(mx)
        made.trainer.set_learning_rate(0)
        made.fit(loader(mx), batches=1)
        for p in made.net.collect_params().values():
            p.set_data(mx.nd.full(p.shape, value))
        for mean, var in made.trainer._updaters[0].states.values():
            mean[:], var[:] = value, value
        est.CheckpointHandler(tmp_path, "net")._save_params_and_trainer(made, "net-epoch0batch1")

    save(1)
    made, _ = learner(mx)
    load, times = made.net.load_parameters, []

    def load_and_lose_it(*args, **kwargs):
        load(*args, **kwargs)
        times.append(1)
        if len(times) == 1:
            save(2)

    object.__setattr__(made.net, "load_parameters", load_and_lose_it)
    keep = est.CheckpointHandler(tmp_path, "net", resume_from_checkpoint=True)
    made.max_epoch, made.max_batch = 9, None
    keep.train_begin(made)
    assert len(times) == 2
    assert {float(p.data().asnumpy().ravel()[0]) for p in made.net.collect_params().values()} == {2}
    states = made.trainer._updaters[0].states.values()
    assert {float(a.asnumpy().ravel()[0]) for state in states for a in state} == {2}


def test_resuming_what_cannot_go_on(tmp_path):
    made, _ = learner(mx)
    made.fit(loader(mx), epochs=2, event_handlers=est.CheckpointHandler(tmp_path))
    resume = est.CheckpointHandler(tmp_path, resume_from_checkpoint=True)
    with pytest.raises(ValueError, match="model-epoch1batch10 .* has all 2 epochs"):
        made.fit(loader(mx), epochs=2, event_handlers=resume)
    with pytest.raises(AssertionError, match="give batch_period, and epoch_period=None"):
        made.fit(loader(mx), batches=2, event_handlers=resume)
    (tmp_path / "model-epoch1batch10.states").unlink()
    with pytest.raises(AssertionError, match="states does not exist"):
        made.fit(loader(mx), epochs=3, event_handlers=resume)
    made.fit(loader(mx), epochs=1)  # the estimator is as usable as before


def test_a_checkpoint_that_cannot_be_written_leaves_no_trace(tmp_path, monkeypatch):
    made, _ = learner(mx)

    def full(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(made.net, "save_parameters", full)
    with pytest.raises(OSError) as told:
        made.fit(loader(mx), epochs=1, event_handlers=est.CheckpointHandler(tmp_path))
    if hasattr(told.value, "__notes__"):
        assert told.value.__notes__ == [
            "CheckpointHandler.epoch_end raised OSError: [Errno 28] No space left on device"
        ]
    assert not [f for f in os.listdir(tmp_path) if f.endswith(".params")]
    monkeypatch.undo()
    made, _ = learner(mx)
    made.fit(loader(mx), epochs=1, event_handlers=est.CheckpointHandler(tmp_path, resume_from_checkpoint=True))


class Mine(Exception):
    """An error of the user's."""

    def __init__(self, code, text):
        super().__init__(code, text)
        self.code = code


@pytest.mark.parametrize("event", ["train_begin", "epoch_begin", "batch_begin", "batch_end", "epoch_end", "train_end"])
def test_a_handler_that_raises_is_named(event):
    base = getattr(est, event.title().replace("_", ""))
    what = [ValueError("no good")]

    def fail(self, estimator, *args, **kwargs):
        raise what[0]

    handler = type("Failing", (base,), {event: fail})()
    made, _ = learner(mx)
    with pytest.raises(ValueError, match=f"^Failing.{event} raised ValueError: no good$") as told:
        made.fit(loader(mx), epochs=1, event_handlers=handler)
    assert isinstance(told.value, MXNetError) and told.value.__cause__ is what[0]
    assert not mx.autograd.is_recording()
    what[0] = Mine(3, "stop")
    with pytest.raises(Mine) as told:
        made.fit(loader(mx), epochs=1, event_handlers=handler)
    assert told.value is what[0] and told.value.code == 3
    batches = []

    class Count(est.BatchEnd):
        def batch_end(self, estimator, *args, **kwargs):
            batches.append(kwargs["batch"])

    made.fit(loader(mx), epochs=1, event_handlers=Count())
    assert len(batches) == 5


def test_handlers_serve_in_a_second_training():
    made, _ = learner(mx)
    handlers = [est.StoppingHandler(), est.LoggingHandler(1, made.train_metrics)]
    for epochs in (1, 2):
        made.fit(loader(mx), epochs=epochs, event_handlers=handlers)
        assert handlers[0].current_epoch == epochs and handlers[0].current_batch == 5 * epochs
    assert len(handlers) == 2  # the list stays the caller's


def test_a_batch_that_stops_ends_the_epoch():
    class Second(est.EpochBegin, est.BatchEnd):
        epochs = 0

        def epoch_begin(self, estimator, *args, **kwargs):
            self.batches, self.epochs = 0, self.epochs + 1

        def batch_end(self, estimator, *args, **kwargs):
            self.batches += 1
            return self.batches == 2

    made, _ = learner(mx)
    handler = Second()
    made.fit(loader(mx), epochs=3, event_handlers=handler)
    assert (handler.epochs, handler.batches) == (3, 2)


@pytest.mark.parametrize(
    "metric, better",
    [
        (mx.metric.Loss("x"), np.less),
        (mx.metric.Perplexity(None), np.less),
        (mx.metric.RMSE(), np.less),
        (mx.metric.CustomMetric(lambda a, b: 0, "word error rate"), np.less),
        (mx.metric.F1(), np.greater),
        (mx.metric.Accuracy(), np.greater),
        (mx.metric.PearsonCorrelation(), np.greater),
    ],
)
def test_auto_knows_which_values_are_better(metric, better, tmp_path):
    with pytest.warns(UserWarning, match=f"{'smaller' if better is np.less else 'greater'} values of {metric.name} "):
        assert est.EarlyStoppingHandler(metric, min_delta=2).monitor_op is better
    with pytest.warns(RuntimeWarning, match="mode 'least' is unknown"):
        assert est.CheckpointHandler(tmp_path, monitor=metric, save_best=True, mode="least").monitor_op is better
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert est.EarlyStoppingHandler(metric, mode="min").monitor_op is np.less


def test_early_stopping_by_a_loss():
    class Worse(est.EpochEnd):
        def epoch_end(self, estimator, *args, **kwargs):
            estimator.trainer.set_learning_rate(10.0)

    made, lines = learner(mx)
    stop = est.EarlyStoppingHandler(made.train_metrics[1], min_delta=1e-3, patience=2)
    made.fit(loader(mx), epochs=50, event_handlers=[stop, Worse()])
    assert stop.stop_training and 1 < stop.stopped_epoch < 49 and stop.wait == 2
    assert (
        f"[Epoch {stop.stopped_epoch}] EarlyStoppingHandler: "
        "early stopping due to training softmaxcrossentropyloss not improving" in lines
    )
    made.fit(loader(mx), epochs=1, event_handlers=stop)
    assert stop.stopped_epoch == 0


def test_training_until_a_handler_stops_it():
    made, lines = learner(mx)
    stop = est.EarlyStoppingHandler(made.train_metrics[0], mode="max", patience=1)
    made.fit(loader(mx), epochs=np.inf, event_handlers=stop)
    assert stop.stop_training and lines[1] == "Train for inf epochs."


def test_monitors_without_a_value(tmp_path):
    made, _ = learner(mx)
    apart = mx.metric.Accuracy()
    handlers = [
        est.EarlyStoppingHandler(apart, mode="max"),
        est.CheckpointHandler(tmp_path, monitor=apart, save_best=True, mode="max"),
    ]
    with pytest.warns(RuntimeWarning, match="accuracy has no value; take one of estimator.train_metrics") as told:
        made.fit(loader(mx), epochs=1, event_handlers=handlers)
    assert len([w for w in told if issubclass(w.category, RuntimeWarning)]) == 2
    assert not (tmp_path / "model-best.params").exists()


def test_metrics_that_nobody_updates_are_refused():
    made, _ = learner(mx)
    with pytest.raises(
        ValueError,
        match="LoggingHandler has the metric 'accuracy', which the estimator does not update; .*'training accuracy'",
    ):
        made.fit(loader(mx), epochs=1, event_handlers=est.LoggingHandler(metrics=mx.metric.Accuracy()))

    class Methods(est.EpochEnd):  # in MXNet, a method whose name has "metric" in it is taken for a metric
        def update_metrics(self):
            return None

    made.fit(loader(mx), epochs=1, event_handlers=Methods())
    whole = [
        est.MetricHandler(made.train_metrics),
        est.LoggingHandler(metrics=made.train_metrics),
        est.GradientUpdateHandler(),
    ]
    made.fit(loader(mx), epochs=1, event_handlers=whole)


def test_composites_are_flat():
    both = mx.metric.CompositeEvalMetric([mx.metric.Accuracy(), mx.metric.CrossEntropy()])
    made, lines = learner(mx, train_metrics=[both], val_metrics=(mx.metric.Accuracy(),))
    made.fit(loader(mx), loader(mx), epochs=1)
    assert [m.name for m in made.train_metrics + made.val_metrics] == [
        "training accuracy",
        "training cross-entropy",
        "validation accuracy",
    ]
    assert "training cross-entropy: " in lines[-1]


def test_a_net_and_a_loss_for_validation():
    class Doubled(nn.HybridSequential):
        def forward(self, x):
            return 2 * super().forward(x)

    made, _ = learner(mx)
    twice = Doubled()
    twice.add(made.net)
    other = est.Estimator(
        made.net,
        made.loss,
        trainer=made.trainer,
        val_net=twice,
        val_loss=loss.L2Loss(),
        train_metrics=mx.metric.Loss("l"),
        batch_processor=Pair(),
    )
    other.logger.handlers.clear()
    other.evaluate(loader(mx))
    want = np.concatenate([loss.L2Loss()(twice(x), mx.nd.one_hot(y, 2)).asnumpy() for x, y in loader(mx)]).mean()
    assert other.val_metrics[0].get() == ("validation l", pytest.approx(want, rel=1e-5))


class Pair(est.BatchProcessor):
    def _get_data_and_label(self, batch, ctx, batch_axis=0):
        data, label = super()._get_data_and_label(batch, ctx, batch_axis)
        return data, [mx.nd.one_hot(y, 2) for y in label]


def test_a_subclass_with_a_loop_of_its_own():
    class Once(est.Estimator):
        def fit(self, data, handlers):
            *_, batch_end, epoch_end, train_end = self._categorize_handlers(handlers)
            data, label = self._get_data_and_label(next(iter(data)), self.context)
            return [len(batch_end), len(epoch_end), len(train_end)], [x.shape for x in data + label]

    made, _ = learner(mx, [mx.cpu(0), mx.cpu(1)])
    once = Once(made.net, made.loss, trainer=made.trainer, context=made.context)
    handlers = [est.LoggingHandler(), est.GradientUpdateHandler()]
    assert once.fit(loader(mx), handlers) == ([2, 1, 1], [(10, 4), (10, 4), (10,), (10,)])


@pytest.mark.filterwarnings("ignore:Parameter .* is already initialized")
def test_what_is_not_initialised_is():
    net = nn.HybridSequential()
    net.add(nn.Dense(2), nn.Dense(1))
    net[0].initialize(mx.init.One())
    data = mx.gluon.data.ArrayDataset(mx.nd.ones((4, 3)), mx.nd.ones((4, 1)))
    with pytest.warns(UserWarning, match="without a trainer, SGD with a learning rate of 0.001"):
        made = est.Estimator(net, loss.L1Loss(), initializer=mx.init.Constant(2))
    made.logger.handlers.clear()
    made.fit(mx.gluon.data.DataLoader(data, 4), epochs=1)
    assert net[0].weight.data().asnumpy().min() > 0.9 and net[1].weight.data().asnumpy().max() > 1.9
    assert made.context == [mx.cpu()] and [m.name for m in made.train_metrics] == ["training l1loss"]
    with pytest.warns(UserWarning, match="initialized already"):
        est.Estimator(net, loss.L1Loss(), initializer="zeros", trainer=made.trainer)


@pytest.mark.parametrize(
    "given, kind, words",
    [
        ({"loss": "l2"}, ValueError, "loss must be a gluon.loss.Loss, .* got 'l2'"),
        ({"val_loss": 1}, ValueError, "loss must be a gluon.loss.Loss"),
        ({"net": lambda x: x}, ValueError, "net must be a gluon.Block"),
        ({"val_net": 3}, ValueError, "val_net must be a gluon.Block, got 3"),
        ({"train_metrics": "acc"}, ValueError, "metrics must be an mx.metric.EvalMetric .* got 'acc'"),
        ({"train_metrics": [mx.metric.Loss(), 2]}, ValueError, "metrics must .* got 2"),
        ({"val_metrics": 7}, ValueError, "metrics must .* got 7"),
        ({"trainer": "sgd"}, ValueError, "trainer must be a gluon.Trainer, .* got 'sgd'"),
        ({"context": "cpu"}, ValueError, "context must be a Context or a list of them, .* got 'cpu'"),
        ({"context": [mx.cpu(), 0]}, ValueError, "context must be"),
        ({"context": mx.Context("nosuch", 0)}, AssertionError, r"context nosuch\(0\) is not available"),
        ({"batch_processor": object()}, ValueError, "object has no fit_batch"),
        ({"initializer": 5}, TypeError, "initializer must be a name or a .* got 5"),
    ],
)
def test_bad_arguments(given, kind, words):
    net = nn.Dense(1, in_units=1)
    if "initializer" not in given:
        net.initialize()
    with pytest.raises(kind, match=words) as told, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        est.Estimator(**{"net": net, "loss": loss.L2Loss(), **given})
    assert isinstance(told.value, MXNetError)


def test_bad_trainings():
    made, _ = learner(mx)
    data = loader(mx)
    for bad, words in [
        (((mx.nd.ones((2, 4)),), {"epochs": 1}), "train_data must be a gluon.data.DataLoader, got NDArray"),
        (((data,), {}), "give epochs or batches, and not both, got epochs=None and batches=None"),
        (((data,), {"epochs": 1, "batches": 2}), "got epochs=1 and batches=2"),
        (((data,), {"epochs": -1}), "must be whole numbers above 0, got -1"),
        (((data,), {"epochs": 1.5}), "got 1.5"),
        (((data,), {"batches": "3"}), "got '3'"),
        (((data, [1]), {"epochs": 1}), "val_data must be a gluon.data.DataLoader, got list"),
        (((data,), {"epochs": 1, "event_handlers": [print]}), "event_handlers must be an EventHandler or a list"),
        (((data,), {"epochs": 1, "event_handlers": 4}), "event_handlers must be .* got 4"),
        (((loader(mx, 0),), {"batches": 1}), "gave no batch"),
    ]:
        with pytest.raises(ValueError, match=words):
            made.fit(*bad[0], **bad[1])
    with pytest.raises(ValueError, match="evaluate: val_data must be"):
        made.evaluate([])
    alone = mx.gluon.data.DataLoader(mx.nd.ones((4, 4)), 2)
    with pytest.raises(ValueError, match=r"a batch must be data and label, got NDArray \(2, 4\)"):
        made.fit(alone, epochs=1)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: est.LoggingHandler(0), "log_interval must be 'epoch' or a number of batches above 0, got 0"),
        (lambda: est.LoggingHandler("batch"), "got 'batch'"),
        (lambda: est.MetricHandler("acc"), "metrics must be"),
        (lambda: est.CheckpointHandler("x", save_best=True), "save_best needs a metric as monitor"),
        (lambda: est.CheckpointHandler(3), "CheckpointHandler: model_dir"),
        (lambda: est.EarlyStoppingHandler("accuracy"), "monitor must be a single metric, .* got str"),
        (lambda: est.EarlyStoppingHandler(mx.metric.CompositeEvalMetric()), "got CompositeEvalMetric"),
    ],
)
def test_bad_handlers(make, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError), match=words):
        make()
    assert not os.listdir(tmp_path)


def test_a_bar_shows_epochs_and_metrics():
    out = io.StringIO()
    net = nn.Dense(2, in_units=3)
    net.initialize()
    trained = est.Estimator(
        net,
        loss.SoftmaxCrossEntropyLoss(),
        train_metrics=mx.metric.Accuracy(),
        context=mx.cpu(),
        trainer=mx.gluon.Trainer(net.collect_params(), "sgd"),
    )
    trained.logger.setLevel("WARNING")
    data = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(mx.nd.ones((6, 3)), mx.nd.zeros((6,))), 2)
    bar = est.ProgressBarHandler(trained.train_metrics, file=out, mininterval=0, ascii=True)
    for _ in range(2):  # the second training begins at epoch 0 again, and knows how long an epoch is
        trained.fit(data, epochs=2, event_handlers=[bar])
    text = out.getvalue()
    assert text.count("epoch 0") and "epoch 1: 100%" in text and "3/3" in text and "training accuracy=" in text
    assert bar.total == 3 and bar._bar is None and "epoch 2" not in text
    with pytest.raises(MXNetError, match="total must be the number of batches"):
        est.ProgressBarHandler(total=0)
