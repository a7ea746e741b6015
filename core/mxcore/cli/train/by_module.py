"""Training with symbols and `Module`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import init, model, module, ndarray, symbol
from . import networks

if TYPE_CHECKING:
    import argparse

    from ...kvstore import KVStoreBase
    from ...ndarray import NDArray

__all__ = ["Learner"]


class Learner:
    """A network and what trains it, as `by_gluon.Learner`; checkpoints are those of ``mx.model``, with the symbol."""

    def __init__(
        self,
        args: argparse.Namespace,
        image_shape: tuple[int, ...],
        rule: tuple[str, dict[str, Any]],
        store: KVStoreBase,
    ) -> None:
        self.store = store
        scores = networks.make(args.network, args.num_classes)(symbol.Variable("data"))
        images = ("data", (args.batch_size, *image_shape))
        with networks.taking(args.network, image_shape):
            scores.infer_shape(**dict([images]))
        self.module = module.Module(symbol.SoftmaxOutput(scores, name="softmax"), context=args.ctx)
        self.module.bind([images], [("softmax_label", (args.batch_size,))])
        self.module.init_params(init.Xavier(magnitude=2.24))
        name, params = rule
        self.module.init_optimizer(store, name, params)

    def set_learning_rate(self, rate: float) -> None:
        """Set the learning rate of the steps that come."""
        if self.module._update_on_kvstore:  # servers have a copy of it
            self.store.set_learning_rate(rate)
        self.module._optimizer.set_learning_rate(rate)

    def step(self, batch: Any) -> tuple[NDArray, float]:
        """Learn from a batch; returns the network's outputs and the mean loss."""
        self.module.forward_backward(batch)
        self.module.update()
        shares = self.module.get_outputs()[0]
        label = batch.label[0].as_in_context(shares.context)
        return shares, -float(ndarray.log(ndarray.pick(shares, label) + 1e-12).mean().asscalar())

    def predict(self, batch: Any) -> NDArray:
        """The network's outputs for a batch."""
        self.module.forward(batch, is_train=False)
        scores: NDArray = self.module.get_outputs()[0]
        return scores

    def save(self, prefix: Any, epoch: int) -> None:
        """Write ``PREFIX-symbol.json``, ``PREFIX-EPOCH.params`` and ``PREFIX-EPOCH.states``."""
        model.save_checkpoint(str(prefix), epoch, self.module.symbol, *self.module.get_params())
        self.module.save_optimizer_states(f"{prefix}-{epoch:04d}.states", dump_optimizer=True)

    def load(self, prefix: Any, epoch: int) -> None:
        """Read what `save` wrote."""
        self.module.set_params(*model.load_params(str(prefix), epoch))
        self.module.load_optimizer_states(f"{prefix}-{epoch:04d}.states")
