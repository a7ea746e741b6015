"""Who adds up gradients and moves parameters: a KVStore, or an updater beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base import error
from ..context import Context
from ..kvstore import KVStoreBase
from ..kvstore import create as make_store
from ..kvstore.kvstore import of_one_process
from ..kvstore.steps import Exchange

__all__ = ["create_kvstore", "initialize_kvstore", "names_of_indices", "update_params", "update_params_on_kvstore"]

#: A parameter with more elements than this is not updated by a 'local' store, whose one CPU would do all the work.
_LARGE = 16 << 20


def create_kvstore(kvstore: Any, num_device: int, arg_params: Mapping[str, Any]) -> tuple[Any, bool]:
    """Make the store that a module needs, and decide whether it updates the parameters.

    Parameters
    ----------
    kvstore : str, KVStoreBase or None
        A type: with one context none is made of those that add up in one process.
    num_device : int
    arg_params : dict of str to NDArray

    Returns
    -------
    kvstore : KVStoreBase or None
    update_on_kvstore : bool
        By default yes, if there is one; ``MXNET_UPDATE_ON_KVSTORE=0`` says no.
    """
    update = os.environ.get("MXNET_UPDATE_ON_KVSTORE", "1") not in ("0", "false", "False", "")
    if isinstance(kvstore, str):
        if num_device == 1 and of_one_process(kvstore):
            return None, False
        if kvstore == "local" and max((int(np.prod(p.shape)) for p in arg_params.values()), default=0) > _LARGE:
            update = False
        kvstore = make_store(kvstore)
    elif kvstore is not None and not isinstance(kvstore, KVStoreBase):
        raise error(
            TypeError, f"kvstore must be the name of a type ('local', 'device', …), a KVStore or None, got {kvstore!r}"
        )
    if kvstore is None:
        return None, False
    return kvstore, update and bool(kvstore.is_capable(KVStoreBase.OPTIMIZER))


def initialize_kvstore(
    kvstore: Any,
    param_arrays: Sequence[Sequence[Any]],
    arg_params: Mapping[str, Any],
    param_names: Sequence[str],
    update_on_kvstore: bool,
) -> None:
    """Hand first values to a store, and from there to all contexts; keys are the names.

    Sparse parameters stay in the store; `Module.prepare` fetches rows.
    """
    for name, arrays in zip(param_names, param_arrays):
        value = arg_params[name]
        if value.stype != "default" or (not update_on_kvstore and hasattr(kvstore, "init")):
            kvstore.init(name, value)
        else:
            kvstore.broadcast(name, value, out=arrays)


def _contexts(param_arrays: Sequence[Sequence[Any]]) -> list[Context]:
    return [a.context for a in param_arrays[0]] if param_arrays else []


def _dense(arrays: Sequence[Any]) -> bool:
    return bool(arrays[0].stype == "default")


def update_params_on_kvstore(
    param_arrays: Sequence[Sequence[Any]],
    grad_arrays: Sequence[Sequence[Any]],
    kvstore: Any,
    param_names: Sequence[str],
) -> None:
    """Push gradients to the store, which updates, and pull parameters; earlier ones have priority."""
    exchange = Exchange(kvstore, _contexts(param_arrays))
    for i, (name, args, grads) in enumerate(zip(param_names, param_arrays, grad_arrays)):
        if grads[0] is None:
            continue
        if _dense(args) and _dense(grads):
            exchange.pushpull(name, grads, out=args, priority=-i)
            continue
        exchange.end()
        kvstore.push(name, grads, priority=-i)
        if _dense(args):  # rows of sparse parameters are pulled by prepare()
            kvstore.pull(name, args, priority=-i)
    exchange.end()


def update_params(
    param_arrays: Sequence[Sequence[Any]],
    grad_arrays: Sequence[Sequence[Any]],
    updater: Any,
    num_device: int,
    kvstore: Any = None,
    param_names: Sequence[str] | None = None,
    numbers: Sequence[int] | None = None,
) -> None:
    """Add up gradients over contexts if there is a store, and update each context's parameters.

    Parameters
    ----------
    param_arrays, grad_arrays : list of list of NDArray
        For each parameter one array a context; gradients may be None.
    updater : callable
        ``updater(indices, grads, weights)``; parameter i on context k has the index ``i * num_device + k``.
    num_device : int
    kvstore : KVStoreBase, optional
    param_names : list of str, optional
        The keys in the store.
    numbers : list of int, optional
        The optimizer's number of each parameter, i above, where they are not numbered in this order.
    """
    updates: list[list[tuple[int, Any, Any]]] = [[] for _ in range(num_device)]
    exchange = None if kvstore is None else Exchange(kvstore, _contexts(param_arrays))
    for i, (args, grads) in enumerate(zip(param_arrays, grad_arrays)):
        if grads[0] is None:
            continue
        if exchange is not None:
            assert param_names is not None
            name = param_names[i]
            if _dense(grads) or not hasattr(kvstore, "push"):  # stores without servers add up whatever comes
                exchange.pushpull(name, grads, priority=-i)
            else:
                exchange.end()
                kvstore.push(name, grads, priority=-i)
                kvstore.pull(name, grads, priority=-i, ignore_sparse=False)
        number = i if numbers is None else numbers[i]
        for k, (weight, grad) in enumerate(zip(args, grads)):
            updates[k].append((number * num_device + k, grad, weight))
    if exchange is not None:
        exchange.end()
    for rows in updates:
        if rows:
            indices, grads_, weights = zip(*rows)
            updater(indices, grads_, weights)


def names_of_indices(param_names: Sequence[str], num_device: int, update_on_kvstore: bool) -> dict[int, str]:
    """The name of the parameter behind each index that the optimizer sees."""
    copies = 1 if update_on_kvstore else num_device
    return {i * copies + k: name for k in range(copies) for i, name in enumerate(param_names)}
