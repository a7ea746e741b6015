"""Optimizers: rules that move weights against their gradients.

>>> import mxcore as mx
>>> update = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=0.5))
>>> weight, grad = mx.nd.array([1.0, 2.0]), mx.nd.array([1.0, -1.0])
>>> update(0, grad, weight)
>>> weight.asnumpy()
array([0.5, 2.5], dtype=float32)
"""

from .._reexports import reexports
from . import contrib
from .adadelta import AdaDelta
from .adagrad import AdaGrad
from .adam import Adam
from .adamax import Adamax
from .base import Optimizer
from .ccsgd import ccSGD
from .dcasgd import DCASGD
from .ftml import FTML
from .ftrl import Ftrl
from .lamb import LAMB
from .lars import LARS
from .lbsgd import LBSGD
from .nadam import Nadam
from .nag import NAG
from .rmsprop import RMSProp
from .sgd import SGD
from .sgld import SGLD
from .signum import Signum
from .test import Test
from .updater import Updater, get_updater

register = Optimizer.register
create = Optimizer.create_optimizer

__all__ = [
    "AdaDelta",
    "AdaGrad",
    "Adam",
    "Adamax",
    "DCASGD",
    "FTML",
    "Ftrl",
    "LAMB",
    "LARS",
    "LBSGD",
    "NAG",
    "NDabs",
    "Nadam",
    "Optimizer",
    "RMSProp",
    "SGD",
    "SGLD",
    "Signum",
    "Test",
    "Updater",
    "ccSGD",
    "contrib",
    "create",
    "get_updater",
    "register",
]


__getattr__ = reexports(__name__)
