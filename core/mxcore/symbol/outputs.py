"""How MXNet counts and names the outputs of operators, where it differs from ours."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.graph import Node

__all__ = ["count", "label", "told"]

#: Operator -> how many outputs MXNet's has, those that nobody sees included, where ours has another number of them.
_COUNTS: dict[str, Callable[[Any], int]] = {
    "Pooling": lambda p: 1 + (p.pool_type == "max" and bool(p.kernel) and not str(p.layout).endswith("C")),
    "RNN": lambda p: int(p._sig.visible), "L2Normalization": lambda p: 2, "LRN": lambda p: 2, "CTCLoss": lambda p: 2,
    "_linalg_det": lambda p: 3, "_linalg_slogdet": lambda p: 4, "GridGenerator": lambda p: 2, "BilinearSampler": lambda p: 2,
    "SpatialTransformer": lambda p: 3, "Correlation": lambda p: 3, "_contrib_BatchNormWithReLU": lambda p: 4,
}
#: Operators whose outputs have names here, and numbers in MXNet.
_NUMBERED = frozenset("""
    CTCLoss _histogram _linalg_det _linalg_gelqf _linalg_slogdet _linalg_syevd _sample_multinomial _sample_unique_zipfian moments topk
""".split())
#: Operators whose only output has another name in MXNet.
_NAMED = {"make_loss": "loss"}
#: Operators whose outputs MXNet names to hooks of hybridised blocks and in names of casts; it numbers those of all others.
_TOLD = frozenset("""
    Activation BatchNorm BatchNorm_v1 BilinearSampler Concat Convolution Convolution_v1 Correlation Crop Custom Deconvolution Dropout
    FullyConnected GridGenerator GroupNorm IdentityAttachKLSparseReg InstanceNorm L2Normalization LRN LayerNorm LeakyReLU MakeLoss Pad
    Pooling Pooling_v1 RNN ROIPooling SVMOutput SequenceLast SequenceMask SequenceReverse SliceChannel SoftmaxActivation SoftmaxOutput
    SpatialTransformer SwapAxis UpSampling _contrib_BatchNormWithReLU _contrib_SyncBatchNorm _contrib_count_sketch _contrib_fft
    _contrib_hawkesll _contrib_ifft _contrib_index_array _contrib_interleaved_matmul_encdec_qk _contrib_interleaved_matmul_encdec_valatt
    _contrib_interleaved_matmul_selfatt_qk _contrib_interleaved_matmul_selfatt_valatt _rnn_param_concat col2im elemwise_add im2col
    make_loss softmax softmin
""".split())


def count(n: Node) -> int:
    """MXNet's number of outputs of a node."""
    return n.n_out if n.op is None or n.op.name not in _COUNTS else _COUNTS[n.op.name](n.params)


def label(n: Node, i: int) -> str:
    """MXNet's name of an output of an operator: ``output``, ``output1``, ``mean``."""
    if n.op.name in _NUMBERED:
        return f"output{i}" if count(n) > 1 else "output"
    return _NAMED.get(n.op.name) or str(n.params._sig.outputs[i])


def told(n: Node, i: int) -> str:
    """What MXNet tells hooks of an output, and calls casts after: its `label`, or its number."""
    return label(n, i) if n.op.name in _TOLD else str(i)
