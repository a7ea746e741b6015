"""A plugin for mxcore: the optimizer 'toy_optimizer', with steps of one length and momentum."""

import mxcore as mx
from mxcore.optimizer import Optimizer
from mxcore.plugin import hookimpl

API_VERSION = 1


class ToyOptimizer(Optimizer):
    """Steps in the direction of the gradient's signs.

    Parameters
    ----------
    momentum : float
        How much of the last step stays.
    """

    def __init__(self, momentum=0.0, **kwargs):
        super().__init__(**kwargs)
        self.momentum = momentum

    def create_state(self, index, weight):
        """The last step of a weight."""
        return mx.nd.zeros(weight.shape, ctx=weight.context, dtype=weight.dtype)

    def update(self, index, weight, grad, state):
        """Change a weight and its state."""
        self._update_count(index)
        grad = grad * self.rescale_grad + self._get_wd(index) * weight
        state[:] = self.momentum * state - self._get_lr(index) * grad.sign()
        weight += state


@hookimpl
def mxcore_optimizers():
    """Bring the optimizer; "module:attr" in the place of the class would be imported when somebody asks for it."""
    return {"toy_optimizer": ToyOptimizer}
