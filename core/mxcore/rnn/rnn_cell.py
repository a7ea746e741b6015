"""The cells in one place, as ``mxnet.rnn.rnn_cell``; each lives in a module of its own."""

from .base import BaseRNNCell
from .basic import GRUCell, LSTMCell, RNNCell
from .bidirectional import BidirectionalCell
from .conv import BaseConvRNNCell, ConvGRUCell, ConvLSTMCell, ConvRNNCell
from .dropout import DropoutCell
from .fused import FusedRNNCell
from .modifier import ModifierCell, ResidualCell, ZoneoutCell
from .params import RNNParams
from .sequential import SequentialRNNCell

__all__ = [
    "BaseConvRNNCell",
    "BaseRNNCell",
    "BidirectionalCell",
    "ConvGRUCell",
    "ConvLSTMCell",
    "ConvRNNCell",
    "DropoutCell",
    "FusedRNNCell",
    "GRUCell",
    "LSTMCell",
    "ModifierCell",
    "RNNCell",
    "RNNParams",
    "ResidualCell",
    "SequentialRNNCell",
    "ZoneoutCell",
]
