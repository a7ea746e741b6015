"""A run of training: its parts, its epochs, and what it has to say meanwhile."""

from __future__ import annotations

import itertools
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import lr_scheduler, metric, optimizer, random
from ...base import error
from ...contrib.events import EventWriter
from . import by_gluon, by_module, checkpoint, networks
from .data import Data
from .options import FURTHER, RATES
from .workers import Workers

if TYPE_CHECKING:
    import argparse


__all__ = ["Run"]

#: What does the learning, by `--api`.
LEARNERS: dict[str, type[by_gluon.Learner] | type[by_module.Learner]] = {
    "gluon": by_gluon.Learner,
    "module": by_module.Learner,
}


class Run:
    """Everything that trains: data, learner, schedule, and the history of epochs.

    Parameters
    ----------
    args : argparse.Namespace
        The options.

    Attributes
    ----------
    epoch : int
        How many epochs are done.
    history : list of dict
        One entry for each, with ``epoch``, ``loss``, ``train_accuracy``, ``test_accuracy`` (if there is a test
        file) and ``samples_per_s``.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.epoch = args, 0
        self.history: list[dict[str, Any]] = []
        if args.batch_size % len(args.ctx):
            raise error(
                ValueError, f"--batch-size {args.batch_size} cannot be divided evenly over {len(args.ctx)} contexts"
            )
        for ctx in args.ctx:
            ctx.device  # noqa: B018  a device that is not there is an error here, not in the middle
        random.seed(args.seed)
        self.shape = args.data_shape or networks.image_shape(args.network)
        self.workers = Workers(args.kvstore)
        rule, store = self._optimizer(), self.workers.store
        self.learner: by_gluon.Learner | by_module.Learner = LEARNERS[args.api](args, self.shape, rule, store)
        self.data = Data(args, self.shape, self.workers.rank, self.workers.number)
        self.schedule = lr_scheduler.CosineScheduler(args.epochs, base_lr=self.rate, final_lr=self.rate / 100)
        first = self.workers.first
        #: Of workers in step, the first one speaks for all.
        self.speaks = first or not self.workers.in_step
        self.board = EventWriter(args.tensorboard) if args.tensorboard is not None and first else None

    def _optimizer(self) -> tuple[str, dict[str, Any]]:
        """Name and parameters of the optimizer; sets `rate`, the learning rate to begin with."""
        name = self.args.optimizer.lower()
        params = {"wd": self.args.wd, **FURTHER.get(name, {})}
        self.rate = self.args.lr or RATES.get(name) or optimizer.create(name, **params).learning_rate
        return name, {**params, "learning_rate": self.rate}

    def resume(self) -> None:
        """Take over the last checkpoint, if that was asked for, or the launcher has started a failed job again."""
        again = os.environ.get("MXCORE_RESTART", "0") != "0"
        if not (self.args.resume or again):
            return
        # Of workers that are not in step, one that failed is started again while the others are at work.
        if checkpoint.load(self, alone=again and not self.workers.in_step):
            if self.speaks:
                print(f"going on after epoch {self.epoch} of {checkpoint.path(self, '.params')}")
        elif not again:
            raise error(
                FileNotFoundError,
                f"--resume: there is no checkpoint of {self.args.network!r} in "
                f"{self.args.output!r}; leave --resume out, or give its folder with --output",
            )

    def close(self) -> None:
        """Close the files."""
        self.data.close()
        if self.board is not None:
            self.board.close()

    # -- training ----------------------------------------------------------------------------------------------------

    def train(self) -> None:
        """Train until `--epochs` are done, with a checkpoint after each."""
        checkpoint.folder(self.args.output)
        while self.epoch < self.args.epochs:
            # So that a resumed run draws what the uninterrupted one would have.
            random.seed(self.args.seed + self.epoch + 1)
            entry = self._one_epoch()
            self.epoch += 1
            self.history.append(entry)
            self._show(entry)
            if self.workers.first:
                checkpoint.save(self)

    def _show(self, entry: dict[str, Any]) -> None:
        """Tell TensorBoard of an epoch."""
        if self.board is not None:
            for name, value in {**entry, "learning_rate": self.rate}.items():
                if name != "epoch":
                    self.board.add_scalar(name, value, entry["epoch"])

    def _one_epoch(self) -> dict[str, Any]:
        start, seen, total = time.perf_counter(), 0.0, 0.0
        accuracy = metric.Accuracy()
        self.rate = self.schedule(self.epoch)
        self.learner.set_learning_rate(self.rate)
        with self._bar() as bar:
            self.data.train.reset()
            for batch in itertools.islice(self.data.train, self.data.steps):
                count = self.args.batch_size - batch.pad
                self._check(batch)
                outputs, loss = self.learner.step(batch)
                accuracy.update([batch.label[0][:count]], [outputs[:count]])
                seen += count
                total += loss * count
                bar.set_postfix_str(_told(_shares(seen, total, accuracy.sum_metric)), refresh=False)
                bar.update(count)
            seen, *sums = self.workers.total(seen, total, accuracy.sum_metric)
            entry = {"epoch": self.epoch + 1, **_shares(seen, *sums)}
            entry["samples_per_s"] = rate = seen / (time.perf_counter() - start)
            if self.data.test is not None:
                entry["test_accuracy"] = self.test()
            bar.set_postfix_str(_told(entry))
            terminal = not bar.disable
        if self.speaks and not terminal:
            print(f"epoch {entry['epoch']}/{self.args.epochs}: {_told(entry)}, {rate:.0f} samples/s", flush=True)
        return entry

    def _bar(self) -> Any:
        from tqdm import tqdm

        return tqdm(
            total=self.data.count,
            desc=f"epoch {self.epoch + 1:2}/{self.args.epochs}",
            unit=" samples",
            disable=None if sys.stderr and self.speaks else True,
            dynamic_ncols=True,
        )

    def _check(self, batch: Any) -> None:
        label = batch.label[0]
        if label.ndim != 1:
            raise error(ValueError, f"a classifier needs one label for each image, the records have {label.shape[1]}")
        values = label.asnumpy()
        wrong = np.flatnonzero(~((values >= 0) & (values < self.args.num_classes)))  # NaN is no class either
        if wrong.size:
            record = "" if batch.index is None else f"record {batch.index[wrong[0]]}: "
            most = self.args.num_classes - 1
            raise error(
                ValueError, f"{record}label {values[wrong[0]]:g} is none of 0 to {most}; is --num-classes right?"
            )

    def test(self) -> float:
        """Return the accuracy on the held-out images."""
        accuracy = metric.Accuracy()
        self.data.test.reset()
        for batch in self.data.test:
            count = self.args.batch_size - batch.pad
            accuracy.update([batch.label[0][:count]], [self.learner.predict(batch)[:count]])
        return float(accuracy.get()[1])


def _shares(seen: float, loss: float, right: float) -> dict[str, Any]:
    return {"loss": loss / seen, "train_accuracy": right / seen}


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _told(entry: dict[str, Any]) -> str:
    """Loss and accuracies of an epoch in words."""
    text = f"loss {entry['loss']:.4f}, accuracy {_percent(entry['train_accuracy'])}"
    return text + (f", test {_percent(entry['test_accuracy'])}" if "test_accuracy" in entry else "")
