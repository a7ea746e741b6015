"""Training with Gluon: blocks, `autograd`, `Trainer`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import autograd, gluon, init, ndarray
from . import networks

if TYPE_CHECKING:
    import argparse

    from ...kvstore import KVStoreBase
    from ...ndarray import NDArray

__all__ = ["Learner"]


class Learner:
    """A network and what trains it; `by_module.Learner` does the same symbolically.

    Parameters
    ----------
    args : argparse.Namespace
        The options.
    image_shape : tuple of int
        (channels, height, width).
    rule : (str, dict)
        Name and parameters of the optimizer.
    store : KVStore

    Raises
    ------
    MXNetError
        (also ValueError) if the network cannot take images of this shape.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        image_shape: tuple[int, ...],
        rule: tuple[str, dict[str, Any]],
        store: KVStoreBase,
    ) -> None:
        self.args, self.store = args, store
        # Where all workers take each step together, each updates its own copy, which is the same.
        update = False if "dist" in store.type and "async" not in store.type else None
        self.net = networks.make(args.network, args.num_classes)
        self.net.initialize(init.Xavier(magnitude=2.24), ctx=args.ctx)
        self.loss = gluon.loss.SoftmaxCrossEntropyLoss()
        with networks.taking(args.network, image_shape):  # the parameters learn their shapes from one example
            self.net(ndarray.zeros((1, *image_shape), ctx=args.ctx[0]))
        self.trainer = gluon.Trainer(
            self.net.collect_params(), rule[0], rule[1], kvstore=store, update_on_kvstore=update
        )

    def set_learning_rate(self, rate: float) -> None:
        """Set the learning rate of the steps that come."""
        self.trainer.set_learning_rate(rate)

    def step(self, batch: Any) -> tuple[NDArray, float]:
        """Learn from a batch; returns the network's outputs and the mean loss."""
        contexts, size = self.args.ctx, self.args.batch_size
        images = gluon.utils.split_and_load(batch.data[0], contexts)
        labels = gluon.utils.split_and_load(batch.label[0], contexts)
        with autograd.record():
            outputs = [self.net(x) for x in images]
            losses = [self.loss(out, y) for out, y in zip(outputs, labels)]
        autograd.backward(losses)
        self.trainer.step(size * self.store.num_workers)
        predicted = ndarray.concat(*[out.as_in_context(contexts[0]) for out in outputs], dim=0)
        return predicted, sum(float(loss.sum().asscalar()) for loss in losses) / size

    def predict(self, batch: Any) -> NDArray:
        """The network's outputs for a batch."""
        scores: NDArray = self.net(batch.data[0].as_in_context(self.args.ctx[0]))
        return scores

    def save(self, prefix: Any, epoch: int) -> None:
        """Write ``PREFIX-EPOCH.params`` and ``PREFIX-EPOCH.states``."""
        self.net.save_parameters(f"{prefix}-{epoch:04d}.params")
        self.trainer.save_states(f"{prefix}-{epoch:04d}.states")

    def load(self, prefix: Any, epoch: int) -> None:
        """Read what `save` wrote."""
        self.net.load_parameters(f"{prefix}-{epoch:04d}.params", ctx=self.args.ctx)
        self.trainer.load_states(f"{prefix}-{epoch:04d}.states")
