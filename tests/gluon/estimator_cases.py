"""Trainings by an estimator: run in MXNet for the golden file, and here against it."""

import importlib
import logging
import os
import re
import warnings

import numpy as np


class Lines(logging.Handler):
    """Keeps what is logged, without times."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(re.sub(r"\d+(\.\d+)?s", "#s", record.getMessage()).strip())


def loader(mx, count=100, batch=20):
    random = np.random.RandomState(0)
    data = random.randn(100, 4).astype("float32")
    dataset = mx.gluon.data.ArrayDataset(mx.nd.array(data[:count]), mx.nd.array(data.sum(1) > 0)[:count])
    return mx.gluon.data.DataLoader(dataset, batch_size=batch)


def learner(mx, context=None, hybrid=True, **kwargs):
    """An estimator of a small net with given weights, and the lines that it logs."""
    net = mx.gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(mx.gluon.nn.Dense(8, activation="relu", in_units=4), mx.gluon.nn.Dense(2, in_units=8))
    net.initialize(ctx=context or mx.cpu())
    random = np.random.RandomState(1)
    for _, p in sorted(net.collect_params().items()):
        p.set_data(mx.nd.array(random.randn(*p.shape) / 2))
    net.hybridize(hybrid)
    trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    estimator = importlib.import_module(mx.__name__ + ".gluon.contrib.estimator")
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss(prefix="softmaxcrossentropyloss0_")
    made = estimator.Estimator(net, loss, trainer=trainer, context=context, **kwargs)
    told = Lines()
    made.logger.handlers = [told]
    return made, told.lines


def recorder(estimator, heard):
    """A class of handlers that tell every event to `heard`."""

    def hear(event):
        def method(self, estimator, *args, **kwargs):
            heard.append(f"{event} {self.priority} {sorted(kwargs)}")

        return method

    kinds = {
        "train_begin": "TrainBegin",
        "train_end": "TrainEnd",
        "epoch_begin": "EpochBegin",
        "epoch_end": "EpochEnd",
        "batch_begin": "BatchBegin",
        "batch_end": "BatchEnd",
    }
    return type("Recorder", tuple(getattr(estimator, kind) for kind in kinds.values()), {e: hear(e) for e in kinds})


def stories(mx, folder):
    """What several trainings log, by name, and what they find out."""
    estimator = importlib.import_module(mx.__name__ + ".gluon.contrib.estimator")
    found = {}

    def fit(name, made, *args, **kwargs):
        learner_, lines = made
        learner_.fit(loader(mx), *args, **kwargs)
        values = [float(m.get()[1]) for m in learner_.train_metrics + learner_.val_metrics]
        found[name] = {"lines": lines, "values": [None if np.isnan(v) else round(v, 5) for v in values]}
        found[name]["files"] = sorted(os.listdir(folder))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit("epochs", learner(mx), loader(mx, 40), epochs=2)
        made = learner(mx)
        fit(
            "batches",
            made,
            loader(mx, 40),
            batches=7,
            event_handlers=estimator.LoggingHandler(2, made[0].train_metrics),
        )
        fit("contexts", learner(mx, [mx.cpu(0), mx.cpu(1)]), epochs=2)
        fit("metrics", learner(mx, train_metrics=[mx.metric.Accuracy(), mx.metric.CrossEntropy()]), epochs=1)
        made, heard = learner(mx), []
        kind = recorder(estimator, heard)
        handlers = [kind(), kind()]
        handlers[0].priority, handlers[1].priority = 5, -5000
        fit("events", made, batches=3, event_handlers=handlers)
        found["events"]["heard"] = heard
        made = learner(mx)
        fit(
            "validation",
            made,
            epochs=2,
            event_handlers=estimator.ValidationHandler(loader(mx, 20), made[0].evaluate, 2, 3),
        )
        made = learner(mx)
        monitor = made[0].val_metrics[0]
        fit(
            "early",
            made,
            loader(mx, 40),
            epochs=30,
            event_handlers=estimator.EarlyStoppingHandler(monitor, patience=2, mode="max"),
        )
        made = learner(mx)
        monitor = made[0].val_metrics[1]
        fit(
            "checkpoints",
            made,
            loader(mx, 40),
            epochs=3,
            event_handlers=estimator.CheckpointHandler(folder, "net", monitor, save_best=True, mode="min"),
        )
        resume = {"model_prefix": "net", "resume_from_checkpoint": True}
        fit("resumed", learner(mx), epochs=5, event_handlers=estimator.CheckpointHandler(folder, **resume))
        for name, batches in ("by batches", 6), ("by batches resumed", 11):
            handler = estimator.CheckpointHandler(
                folder, "steps", epoch_period=None, batch_period=2, resume_from_checkpoint=batches > 6
            )
            fit(name, learner(mx), batches=batches, event_handlers=handler)
    return found
