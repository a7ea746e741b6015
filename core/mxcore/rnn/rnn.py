"""Checkpoints whose weights are split by gate, so that fused and single cells read each other's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .. import symbol
from ..base import error
from ..model import load_checkpoint, save_checkpoint
from .base import BaseRNNCell

__all__ = ["do_rnn_checkpoint", "load_rnn_checkpoint", "rnn_unroll", "save_rnn_checkpoint"]


def rnn_unroll(
    cell: Any, length: int, inputs: Any = None, begin_state: Any = None, input_prefix: str = "", layout: str = "NTC"
) -> Any:
    """Unroll a cell; old, use ``cell.unroll``.

    Parameters
    ----------
    cell : BaseRNNCell
    length : int
    inputs : Symbol or list of Symbol, optional
        Variables ``<input_prefix>t0_data`` … unless told.
    begin_state : list of Symbol, optional
    input_prefix, layout : str

    Returns
    -------
    (Symbol or list of Symbol, list of Symbol)
        As ``cell.unroll``.
    """
    warnings.warn("rnn_unroll is old; call cell.unroll", DeprecationWarning, stacklevel=2)
    if inputs is None:
        inputs = [symbol.Variable(f"{input_prefix}t{i}_data") for i in range(length)]
    return cell.unroll(length, inputs, begin_state=begin_state, layout=layout)


def _cells(cells: Any) -> list[Any]:
    found = [cells] if isinstance(cells, BaseRNNCell) else cells
    if not isinstance(found, (list, tuple)) or not all(isinstance(c, BaseRNNCell) for c in found):
        raise error(TypeError, f"cells must be a cell of mx.rnn or a list of them, got {type(cells).__name__}")
    return list(found)


def save_rnn_checkpoint(
    cells: Any, prefix: str, epoch: int, symbol: Any, arg_params: dict[str, Any], aux_params: dict[str, Any]
) -> None:
    """Write a checkpoint with the weights of `cells` unpacked.

    Parameters
    ----------
    cells : BaseRNNCell or list of BaseRNNCell
    prefix : str
    epoch : int
    symbol : Symbol
    arg_params, aux_params : dict of str to NDArray
        As for ``mx.model.save_checkpoint``.

    Raises
    ------
    MXNetError
        (also ValueError) if a weight of a cell is missing.

    Examples
    --------
    >>> import mxcore as mx
    >>> cell = mx.rnn.FusedRNNCell(2, prefix="f_")
    >>> net, _ = cell.unroll(3, mx.sym.Variable("x"), layout="TNC")
    >>> arrays = {"f_parameters": mx.nd.arange(56)}
    >>> mx.rnn.save_rnn_checkpoint(cell, "memory://doc/rnn", 1, net, arrays, {})
    >>> symbol, args, auxs = mx.rnn.load_rnn_checkpoint(cell, "memory://doc/rnn", 1)
    >>> bool((args["f_parameters"] == arrays["f_parameters"]).asnumpy().all())
    True
    >>> sorted(mx.rnn.load_rnn_checkpoint(cell.unfuse(), "memory://doc/rnn", 1)[1])
    ['f_l0_h2h_bias', 'f_l0_h2h_weight', 'f_l0_i2h_bias', 'f_l0_i2h_weight']
    """
    for cell in _cells(cells):
        arg_params = cell.unpack_weights(arg_params)
    save_checkpoint(prefix, epoch, symbol, arg_params, aux_params)


def load_rnn_checkpoint(cells: Any, prefix: str, epoch: int) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Read what `save_rnn_checkpoint` wrote, with the weights packed for `cells`.

    Parameters
    ----------
    cells : BaseRNNCell or list of BaseRNNCell
        Fused or single ones, whatever wrote the checkpoint.
    prefix : str
    epoch : int

    Returns
    -------
    symbol : Symbol
    arg_params, aux_params : dict of str to NDArray

    Raises
    ------
    MXNetError
        (also FileNotFoundError) without the files; (also ValueError) if a weight of a cell is missing.
    """
    sym, arg, aux = load_checkpoint(prefix, epoch)
    for cell in _cells(cells):
        arg = cell.pack_weights(arg)
    return sym, arg, aux


def do_rnn_checkpoint(cells: Any, prefix: str, period: int = 1) -> Callable[..., None]:
    """A callback at the end of an epoch that saves every `period` epochs by `save_rnn_checkpoint`.

    Parameters
    ----------
    cells : BaseRNNCell or list of BaseRNNCell
    prefix : str
    period : int

    Returns
    -------
    callable
        For ``epoch_end_callback`` of ``fit``.
    """
    period = int(max(1, period))

    def save(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % period == 0:
            save_rnn_checkpoint(cells, prefix, iter_no + 1, sym, arg, aux)

    return save
