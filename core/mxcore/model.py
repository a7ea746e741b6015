"""Checkpoints: a graph as ``prefix-symbol.json`` and its arrays as ``prefix-0001.params``, as ``mxnet.model``."""
from __future__ import annotations

from collections import namedtuple
from typing import Any

from . import ndarray as nd
from . import symbol as sym
from .base import error

__all__ = ["BatchEndParam", "load_checkpoint", "load_params", "save_checkpoint"]

#: What batch-end callbacks get.
BatchEndParam = namedtuple("BatchEndParam", ["epoch", "nbatch", "eval_metric", "locals"])


def save_checkpoint(prefix: str, epoch: int, symbol: Any, arg_params: dict[str, Any], aux_params: dict[str, Any],
                    remove_amp_cast: bool = True) -> None:
    """Write ``<prefix>-symbol.json`` (unless `symbol` is None) and ``<prefix>-<epoch>.params``.

    Parameters
    ----------
    prefix : str
        Path or URL without the endings.
    epoch : int
    symbol : Symbol or None
    arg_params, aux_params : dict of str to NDArray
    """
    if symbol is not None:
        symbol.save(f"{prefix}-symbol.json", remove_amp_cast=remove_amp_cast)
    named = {f"arg:{k}": v for k, v in arg_params.items()}
    named.update({f"aux:{k}": v for k, v in aux_params.items()})
    nd.save(f"{prefix}-{epoch:04d}.params", named)


def load_params(prefix: str, epoch: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the arrays of a checkpoint: (arguments, auxiliary states)."""
    name = f"{prefix}-{epoch:04d}.params"
    loaded = nd.load(name)
    if not isinstance(loaded, dict):
        raise error(ValueError, f"{name} holds a list of arrays without names; a checkpoint holds 'arg:…' and 'aux:…'")
    parts: dict[str, dict[str, Any]] = {"arg": {}, "aux": {}}
    for key, value in loaded.items():
        kind, _, rest = key.partition(":")
        if kind not in parts or not rest:
            raise error(ValueError, f"{name}: entry {key!r} is neither 'arg:<name>' nor 'aux:<name>'")
        parts[kind][rest] = value
    return parts["arg"], parts["aux"]


def load_checkpoint(prefix: str, epoch: int) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Read a checkpoint: (symbol, arguments, auxiliary states).

    Examples
    --------
    >>> import mxcore as mx
    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    >>> mx.model.save_checkpoint("memory://doc/m", 3, net, {"fc_weight": mx.nd.ones((2, 3))}, {})
    >>> symbol, arg, aux = mx.model.load_checkpoint("memory://doc/m", 3)
    >>> symbol.list_arguments(), list(arg)
    (['data', 'fc_weight', 'fc_bias'], ['fc_weight'])
    """
    return (sym.load(f"{prefix}-symbol.json"), *load_params(prefix, epoch))
