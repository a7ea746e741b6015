"""ONNX files, as ``mxnet.contrib.onnx``: its names; the translation of operators is not there."""

from __future__ import annotations

from typing import Any, NoReturn

from ..base import error
from ..onnx import export_model

__all__ = ["export_model", "get_model_metadata", "import_model", "import_to_gluon"]


def _refuse(name: str) -> NoReturn:
    raise error(
        ImportError,
        f"onnx.{name}: operators of ONNX cannot be translated here (README.md, Status). MXNet 1.9.1, "
        "in an environment of its own, reads such a file (mxnet.contrib.onnx.import_model) and saves the model "
        "(mxnet.model.save_checkpoint); load its files here, by mx.model.load_checkpoint or gluon.SymbolBlock.imports",
    )


def import_model(model_file: str) -> NoReturn:
    """Read an ONNX file as a symbol and its parameters: not there.

    Parameters
    ----------
    model_file : str

    Raises
    ------
    MXNetError
        (also ImportError) always, as MXNet does without the package onnx.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.contrib.onnx.import_model("net.onnx")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    mxcore...Error: onnx.import_model: operators of ONNX cannot be translated here...
    """
    _refuse("import_model")


def get_model_metadata(model_file: str) -> NoReturn:
    """Names and shapes of what the model in an ONNX file takes and gives: not there.

    Parameters
    ----------
    model_file : str

    Raises
    ------
    MXNetError
        (also ImportError) always.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.contrib.onnx.get_model_metadata("net.onnx")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    mxcore...Error: onnx.get_model_metadata: operators of ONNX cannot be translated here...
    """
    _refuse("get_model_metadata")


def import_to_gluon(model_file: str, ctx: Any) -> NoReturn:
    """Read an ONNX file as a block: not there.

    Parameters
    ----------
    model_file : str
    ctx : Context or list of Context
        Where the parameters shall live.

    Raises
    ------
    MXNetError
        (also ImportError) always.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.contrib.onnx.import_to_gluon("net.onnx", mx.cpu())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    mxcore...Error: onnx.import_to_gluon: operators of ONNX cannot be translated here...
    """
    _refuse("import_to_gluon")
