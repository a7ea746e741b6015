"""Which operators have one over eight bits, and for which parameters: what the pass of quantisation asks for."""

from __future__ import annotations

from typing import Any

from ..._core.params import Params
from ..activation.operators import activation
from ..convolution.operators import convolution
from ..elementwise.arithmetic import ARITHMETIC
from ..fully_connected.operators import fully_connected
from ..indexing.take import embedding
from ..normalization.batch_norm import batch_norm
from ..pooling.operators import pooling
from ..recurrent.operators import rnn
from ..shape.join import concat
from ..shape.reshape import flatten

__all__: list[str] = []


def _convolution(p: Params) -> Any:
    if p.num_group != 1:
        return f"num_group is {p.num_group}, only one group is quantised"
    if len(p.kernel) not in (2, 3):
        return f"kernel {p.kernel} has {len(p.kernel)} dimensions, only 2 and 3 are quantised"
    if p.layout is not None and p.layout[1] != "C":
        return f"layout is {p.layout}, only those with channels first are quantised"
    return dict(op="_contrib_quantized_conv", always=True, int8=(1, 2), sums=True)


def _pooling(p: Params) -> Any:
    if p.pool_type not in ("max", "avg"):
        return f"pool_type is {p.pool_type}, only max and avg are quantised"
    if p.layout is not None and p.layout[1] != "C":
        return f"layout is {p.layout}, only those with channels first are quantised"
    if len(p.kernel) not in (2, 3):
        return f"kernel {p.kernel} has {len(p.kernel)} dimensions, only 2 and 3 are quantised"
    return dict(op="_contrib_quantized_pooling")


def _activation(p: Params) -> Any:
    if p.act_type != "relu":
        return f"act_type is {p.act_type}, only relu is quantised"
    return dict(op="_contrib_quantized_act")


def _concat(p: Params) -> Any:
    if p.dim <= 0:
        return f"dim is {p.dim}, only those above 0 are quantised"
    return dict(op="_contrib_quantized_concat")


def _embedding(p: Params) -> Any:
    if p.dtype.name != "float32":
        return f"dtype is {p.dtype.name}, only float32 is quantised"
    return dict(op="_contrib_quantized_embedding", floats=(0,), int8=(1,))


def _batch_norm(p: Params) -> Any:
    if p.axis != 1:
        return f"axis is {p.axis}, only 1 is quantised"
    if p.output_mean_var:
        return "output_mean_var is set, the statistics are not quantised"
    return dict(op="_contrib_quantized_batch_norm", floats=(1, 2, 3, 4))


def _rnn(p: Params) -> Any:
    if p.mode != "lstm":
        return f"mode is {p.mode}, only lstm is quantised"
    for name in ("projection_size", "lstm_state_clip_min", "lstm_state_clip_max"):
        if getattr(p, name) is not None:
            return f"{name} is {getattr(p, name)}, only none is quantised"
    if p.use_sequence_length:
        return "use_sequence_length is set, only sequences of one length are quantised"
    return dict(op="_contrib_quantized_rnn", always=True, floats=(1, 2, 3), shifted=(0,), float_output=True)


_arithmetic = {o.name: o for o in ARITHMETIC}
for _op, _rule in {
    activation: _activation,
    batch_norm: _batch_norm,
    concat: _concat,
    convolution: _convolution,
    _arithmetic["elemwise_add"]: lambda p: dict(op="_contrib_quantized_elemwise_add", sums=True),
    _arithmetic["elemwise_mul"]: lambda p: dict(op="_contrib_quantized_elemwise_mul", int8=(0, 1), sums=True),
    embedding: _embedding,
    flatten: lambda p: dict(op="_contrib_quantized_flatten"),
    fully_connected: lambda p: dict(op="_contrib_quantized_fully_connected", always=True, int8=(1, 2), sums=True),
    pooling: _pooling,
    rnn: _rnn,
}.items():
    _op.attach(quantized=_rule)
