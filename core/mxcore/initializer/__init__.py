"""Initializers: how parameters get their first values.

>>> import mxcore as mx
>>> init = mx.init.Xavier(magnitude=2)
>>> init.dumps()
'["xavier", {"rnd_type": "uniform", "factor_type": "avg", "magnitude": 2}]'
"""

from math import sqrt

from .._reexports import reexports
from ..ndarray import NDArray, load
from ._load import Load
from .base import InitDesc, Initializer, alias, create, register
from .bilinear import Bilinear
from .constant import Constant, One, Zero
from .fused_rnn import FusedRNN
from .lstm_bias import LSTMBias
from .mixed import Mixed
from .normal import Normal
from .orthogonal import Orthogonal
from .uniform import Uniform
from .xavier import MSRAPrelu, Xavier

string_types = (str,)

__all__ = [
    "Bilinear",
    "Constant",
    "FusedRNN",
    "InitDesc",
    "Initializer",
    "LSTMBias",
    "Load",
    "MSRAPrelu",
    "Mixed",
    "NDArray",
    "Normal",
    "One",
    "Orthogonal",
    "Uniform",
    "Xavier",
    "Zero",
    "alias",
    "create",
    "load",
    "register",
    "sqrt",
]


__getattr__ = reexports(__name__)
