"""Quantisation to int8, as ``mxnet.contrib.quantization``: names and histograms, but no operators."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ..base import error
from ..context import cpu

__all__ = [
    "calib_graph",
    "combine_histogram",
    "quantize_graph",
    "quantize_model",
    "quantize_model_mkldnn",
    "quantize_net",
    "quantize_net_v2",
]

_CPU = cpu()


def _refuse(name: str) -> NoReturn:
    raise error(
        NotImplementedError,
        f"{name}: there are no operators for int8 here (README.md, Status), so nothing can be quantised. For half "
        "the memory use float16 or bfloat16: mx.contrib.amp.convert_model, or amp.convert_hybrid_block for Gluon",
    )


def combine_histogram(
    old_hist: tuple[Any, Any, float, float, float], arr: Any, new_min: float, new_max: float, new_th: float
) -> tuple[np.ndarray, np.ndarray, float, float, float]:
    """Count an array into a histogram symmetric around zero, which grows by whole bins where numbers lie outside.

    Parameters
    ----------
    old_hist : tuple
        (counts, edges, minimum, maximum, threshold) so far: the bins reach from minus the threshold to the threshold.
    arr : numpy.ndarray
    new_min, new_max, new_th : float
        Minimum, maximum and largest magnitude of `arr`.

    Returns
    -------
    tuple
        Like `old_hist`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.quantization.combine_histogram``.

    Examples
    --------
    >>> import numpy as np
    >>> old = (np.array([1, 2, 3]), np.array([-3, -1, 1, 3]), 0.0, 3.0, 3.0)
    >>> counts, edges, *rest = combine_histogram(old, np.array([1.0, 2.0, 4.0]), 1, 4, 4)
    >>> counts.tolist(), edges.tolist(), rest
    ([0, 1, 2, 5, 1], [-5.0, -3.0, -1.0, 1.0, 3.0, 5.0], [0.0, 4, 5.0])
    """
    hist, _, old_min, old_max, old_th = old_hist
    more = 0
    if new_th > old_th:
        step = 2 * old_th / len(hist)
        more = int((new_th - old_th) // step + 1)
        old_th = old_th + more * step
    counts, edges = np.histogram(arr, bins=len(hist) + 2 * more, range=(-old_th, old_th))
    counts[more : len(counts) - more] += np.asarray(hist)
    return counts, edges, min(old_min, new_min), max(old_max, new_max), old_th


def quantize_model(
    sym: Any,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any],
    data_names: Sequence[str] = ("data",),
    label_names: Sequence[str] = ("softmax_label",),
    ctx: Any = _CPU,
    excluded_sym_names: Any = None,
    excluded_op_names: Any = None,
    calib_mode: str = "entropy",
    calib_data: Any = None,
    num_calib_examples: Any = None,
    quantized_dtype: str = "int8",
    quantize_mode: str = "smart",
    quantize_granularity: str = "tensor-wise",
    logger: Any = None,
) -> NoReturn:
    """Quantise a model: not there; see `mxcore.contrib.amp` for smaller models.

    Parameters
    ----------
    sym, arg_params, aux_params
        The model.
    data_names, label_names, ctx, excluded_sym_names, excluded_op_names, calib_mode, calib_data, num_calib_examples
        What MXNet calibrates with.
    quantized_dtype, quantize_mode, quantize_granularity, logger
        What MXNet makes of it.

    Raises
    ------
    MXNetError
        (also NotImplementedError) always.
    """
    _refuse("quantize_model")


def quantize_model_mkldnn(
    sym: Any,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any],
    data_names: Sequence[str] = ("data",),
    label_names: Sequence[str] = ("softmax_label",),
    ctx: Any = _CPU,
    excluded_sym_names: Any = None,
    excluded_op_names: Any = None,
    calib_mode: str = "entropy",
    calib_data: Any = None,
    num_calib_examples: Any = None,
    quantized_dtype: str = "int8",
    quantize_mode: str = "smart",
    quantize_granularity: str = "tensor-wise",
    logger: Any = None,
) -> NoReturn:
    """Quantise a model for oneDNN: not there.

    Parameters
    ----------
    sym, arg_params, aux_params, data_names, label_names, ctx, excluded_sym_names, excluded_op_names, calib_mode,
    calib_data, num_calib_examples
        As for `quantize_model`.
    quantized_dtype, quantize_mode, quantize_granularity, logger
        As for `quantize_model`.

    Raises
    ------
    MXNetError
        (also NotImplementedError) always.
    """
    _refuse("quantize_model_mkldnn")


def quantize_graph(
    sym: Any,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any],
    ctx: Any = _CPU,
    excluded_sym_names: Any = None,
    excluded_op_names: Any = None,
    calib_mode: str = "entropy",
    quantized_dtype: str = "int8",
    quantize_mode: str = "full",
    quantize_granularity: str = "tensor-wise",
    LayerOutputCollector: Any = None,
    logger: Any = None,
) -> NoReturn:
    """Quantise a graph that is calibrated later: not there.

    Parameters
    ----------
    sym, arg_params, aux_params, ctx, excluded_sym_names, excluded_op_names, calib_mode, quantized_dtype, quantize_mode,
    quantize_granularity, logger
        As for `quantize_model`.
    LayerOutputCollector
        What sees the outputs of layers.

    Raises
    ------
    MXNetError
        (also NotImplementedError) always.
    """
    _refuse("quantize_graph")


def calib_graph(
    qsym: Any,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any],
    collector: Any,
    calib_mode: str = "entropy",
    quantized_dtype: str = "int8",
    logger: Any = logging,
) -> NoReturn:
    """Calibrate a quantised graph: not there.

    Parameters
    ----------
    qsym
        What `quantize_graph` would have made.
    arg_params, aux_params, calib_mode, quantized_dtype, logger
        As for `quantize_model`.
    collector
        What has seen the outputs of layers.

    Raises
    ------
    MXNetError
        (also NotImplementedError) always.
    """
    _refuse("calib_graph")


def quantize_net_v2(
    network: Any,
    quantized_dtype: str = "auto",
    quantize_mode: str = "full",
    quantize_granularity: str = "tensor-wise",
    exclude_layers: Any = None,
    exclude_layers_match: Any = None,
    exclude_operators: Any = None,
    calib_data: Any = None,
    data_shapes: Any = None,
    calib_mode: str = "none",
    num_calib_examples: Any = None,
    ctx: Any = _CPU,
    LayerOutputCollector: Any = None,
    logger: Any = None,
) -> NoReturn:
    """Quantise a block of Gluon: not there.

    Parameters
    ----------
    network
        The block.
    quantized_dtype, quantize_mode, quantize_granularity, calib_mode, calib_data, num_calib_examples, ctx,
    LayerOutputCollector, logger
        As for `quantize_model` and `quantize_graph`.
    exclude_layers, exclude_layers_match, exclude_operators, data_shapes
        What stays as it is, and what the block takes.

    Raises
    ------
    MXNetError
        (also NotImplementedError) always.
    """
    _refuse("quantize_net_v2")


def quantize_net(
    network: Any,
    quantized_dtype: str = "auto",
    quantize_mode: str = "full",
    exclude_layers: Any = None,
    exclude_layers_match: Any = None,
    exclude_operators: Any = None,
    calib_data: Any = None,
    data_shapes: Any = None,
    calib_mode: str = "none",
    num_calib_examples: Any = None,
    ctx: Any = _CPU,
    logger: Any = None,
) -> NoReturn:
    """Quantise a block of Gluon: not there.

    Parameters
    ----------
    network, quantized_dtype, quantize_mode, exclude_layers, exclude_layers_match, exclude_operators, calib_data,
    data_shapes, calib_mode
        As for `quantize_net_v2`.
    num_calib_examples, ctx, logger
        As for `quantize_net_v2`.

    Raises
    ------
    MXNetError
        (also NotImplementedError) always.
    """
    _refuse("quantize_net")
