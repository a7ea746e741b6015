"""Recurrent networks of symbols, as ``mxnet.rnn``: cells that are unrolled in time, sentences in buckets, checkpoints.

`rnn_cell` collects the cells, `io` has the sentences, `rnn` the checkpoints.
"""
from . import io, rnn, rnn_cell
from .io import BucketSentenceIter, encode_sentences
from .rnn import do_rnn_checkpoint, load_rnn_checkpoint, rnn_unroll, save_rnn_checkpoint
from .rnn_cell import (
    BaseConvRNNCell,
    BaseRNNCell,
    BidirectionalCell,
    ConvGRUCell,
    ConvLSTMCell,
    ConvRNNCell,
    DropoutCell,
    FusedRNNCell,
    GRUCell,
    LSTMCell,
    ModifierCell,
    ResidualCell,
    RNNCell,
    RNNParams,
    SequentialRNNCell,
    ZoneoutCell,
)

__all__ = [
    "BaseConvRNNCell", "BaseRNNCell", "BidirectionalCell", "BucketSentenceIter", "ConvGRUCell", "ConvLSTMCell", "ConvRNNCell",
    "DropoutCell", "FusedRNNCell", "GRUCell", "LSTMCell", "ModifierCell", "RNNCell", "RNNParams", "ResidualCell",
    "SequentialRNNCell", "ZoneoutCell", "do_rnn_checkpoint", "encode_sentences", "io", "load_rnn_checkpoint", "rnn", "rnn_cell",
    "rnn_unroll", "save_rnn_checkpoint",
]
