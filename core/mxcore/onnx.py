"""Models as ONNX files, as ``mxnet.onnx``: its names; the translation of operators is not there."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from .base import error

__all__ = ["export_model", "get_operator_support"]


def export_model(
    sym: Any,
    params: Any,
    in_shapes: Any = None,
    in_types: Any = np.float32,
    onnx_file_path: str = "model.onnx",
    verbose: bool = False,
    dynamic: bool = False,
    dynamic_input_shapes: Any = None,
    run_shape_inference: bool = False,
    input_type: Any = None,
    input_shape: Any = None,
) -> NoReturn:
    """Write a model as an ONNX file: not there.

    Parameters
    ----------
    sym, params
        The model: a Symbol and its parameters, or the files of both.
    in_shapes, in_types, dynamic, dynamic_input_shapes, input_type, input_shape
        What it takes.
    onnx_file_path, verbose, run_shape_inference
        What MXNet makes of it.

    Raises
    ------
    MXNetError
        (also ImportError) always, as MXNet does without the package onnx.
    """
    raise error(
        ImportError,
        "onnx.export_model: operators cannot be translated to ONNX here (README.md, Status). The files "
        "that HybridBlock.export and mx.model.save_checkpoint write are MXNet's: MXNet 1.9.1, in an environment "
        "of its own, makes an ONNX file of them (mxnet.onnx.export_model('net-symbol.json', 'net-0000.params', …))",
    )


def get_operator_support(opset_version: int | None = None) -> list[str]:
    """Names of the operators that `export_model` can translate: none.

    Parameters
    ----------
    opset_version : int, optional
        ONNX's version of operators.

    Returns
    -------
    list of str

    Examples
    --------
    >>> get_operator_support()
    []
    """
    return []
