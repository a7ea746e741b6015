"""Settings of TensorRT, as ``mxnet.contrib.tensorrt`` of MXNet 1.5 to 1.7, for a plugin that brings it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..base import error
from ..symbol import Symbol

__all__ = ["get_use_fp16", "init_tensorrt_params", "set_use_fp16"]

_FP16 = "MXNET_TENSORRT_USE_FP16"


def set_use_fp16(status: bool) -> None:
    """Say whether TensorRT may compute in float16; kept in the environment as ``MXNET_TENSORRT_USE_FP16``.

    Parameters
    ----------
    status : bool

    Examples
    --------
    >>> set_use_fp16(False)
    >>> get_use_fp16()
    False
    >>> set_use_fp16(True)
    """
    os.environ[_FP16] = str(int(bool(status)))


def get_use_fp16() -> bool:
    """Whether TensorRT may compute in float16: yes unless told otherwise."""
    return os.environ.get(_FP16, "1") not in ("0", "")


def init_tensorrt_params(
    sym: Any, arg_params: Mapping[str, Any], aux_params: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters left to be set when parts of a graph are TensorRT's: all, as nothing here makes such parts.

    Parameters
    ----------
    sym : Symbol
    arg_params, aux_params : dict of str to NDArray

    Returns
    -------
    arg_params, aux_params : dict
        New dicts of the same arrays.

    Raises
    ------
    MXNetError
        (also TypeError) if `sym` is no Symbol.

    Examples
    --------
    >>> import mxcore as mx
    >>> init_tensorrt_params(mx.sym.Variable("data") * 2, {}, {})
    ({}, {})
    """
    if not isinstance(sym, Symbol):
        raise error(TypeError, f"init_tensorrt_params: sym must be a Symbol, got {type(sym).__name__}")
    return dict(arg_params), dict(aux_params)
