"""Optimizers as JSON: for stores whose servers, in other processes, make the same optimizer again.

Such a text is no program: it names a registered optimizer, or a class in a module that can be imported, and says the
attributes of the object, with its schedulers.
"""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np

from .. import kinds
from ..base import MXNetError, error
from ..lr_scheduler import LRScheduler
from .base import Optimizer

__all__ = ["dump", "load"]

_KINDS: dict[str, type] = {"optimizer": Optimizer, "lr_scheduler": LRScheduler}


def dump(optimizer: Optimizer) -> str:
    """Write an optimizer as JSON.

    Parameters
    ----------
    optimizer : Optimizer
        Its attributes must be numbers, texts, lists, dictionaries, NumPy numbers and schedulers.

    Returns
    -------
    str

    Raises
    ------
    MXNetError
        (also TypeError) naming an attribute that is something else.

    Examples
    --------
    >>> import mxcore as mx
    >>> sgd = mx.optimizer.SGD(learning_rate=0.5, lr_scheduler=mx.lr_scheduler.FactorScheduler(10))
    >>> load(dump(sgd)).lr_scheduler.step
    10
    """
    return json.dumps(_encode(optimizer, type(optimizer).__name__))


def load(text: str) -> Optimizer:
    """Make the optimizer that `dump` wrote.

    Raises
    ------
    MXNetError
        (also ImportError or ValueError) if its class is not there, or the text is none of `dump`.
    """
    try:
        made = _decode(json.loads(text))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as e:
        if isinstance(e, MXNetError):
            raise
        raise error(ValueError, f"this is no optimizer as `mxcore.optimizer.config.dump` writes it: {e}") from None
    if not isinstance(made, Optimizer):
        raise error(ValueError, f"this is no optimizer but a {type(made).__name__}")
    return made


def _encode(value: Any, where: str) -> Any:
    if value is None or isinstance(value, (bool, str)) or type(value) in (int, float):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return {"numpy": value.dtype.str, "value": value.item()}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [_encode(v, f"{where}[{i}]") for i, v in enumerate(value)]}
    if isinstance(value, dict):
        return {"dict": [[_encode(k, where), _encode(v, f"{where}[{k!r}]")] for k, v in value.items()]}
    for kind, base in _KINDS.items():
        if isinstance(value, base):
            cls = type(value)
            state = value.__getstate__() if isinstance(value, Optimizer) else value.__dict__
            if isinstance(value, Optimizer):  # the factors of Gluon's parameters, which do not travel
                for name in ("lr_mult", "wd_mult"):
                    factors = {i: getattr(p, name) for i, p in value.param_dict.items()}
                    state = {**state, name: {**state[name], **factors}}
            same = {
                k: v for k, v in state.items() if not (isinstance(v, dict) and v is state.get("_index_update_count"))
            }
            return {
                kind: cls.__name__.lower(),
                "class": f"{cls.__module__}:{cls.__qualname__}",
                "state": {k: _encode(v, f"{where}.{k}") for k, v in same.items()},
            }
    raise error(
        TypeError,
        f"{where} is a {type(value).__name__}, which cannot travel to servers: attributes of an optimizer must be "
        "numbers, texts, lists, dictionaries and schedulers there",
    )


def _decode(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    for kind in _KINDS:
        if kind in value:
            cls = _find(kind, value[kind], value["class"])
            made = cls.__new__(cls)
            state = {k: _decode(v) for k, v in value["state"].items()}
            if kind == "optimizer":
                counts = state["_all_index_update_counts"]
                made.__setstate__({**state, "_index_update_count": counts.setdefault(0, {})})
            else:
                made.__dict__.update(state)
            return made
    if "numpy" in value:
        return np.dtype(value["numpy"]).type(value["value"])
    if "tuple" in value:
        return tuple(map(_decode, value["tuple"]))
    if "list" in value:
        return list(map(_decode, value["list"]))
    return {_decode(k): _decode(v) for k, v in value["dict"]}


def _find(kind: str, name: str, place: str) -> Any:
    """The class of a name: the registered one if it is the same class, else that of a module."""
    module, _, qualname = place.partition(":")
    if name in kinds.names(kind):
        cls = kinds.lookup(kind, name)
        if f"{cls.__module__}:{cls.__qualname__}" == place:
            return cls
    try:
        if module == "__main__":
            raise ImportError("it is defined in the program itself")
        cls = importlib.import_module(module)
        for attribute in qualname.split("."):
            cls = getattr(cls, attribute)
    except (ImportError, AttributeError) as e:
        raise error(
            ImportError,
            f"{kind} {qualname!r} of module {module!r} cannot be imported here: {e}; put the class into a module that "
            "the processes of servers can import, too, or update on the workers (update_on_kvstore=False)",
        ) from None
    if not (isinstance(cls, type) and issubclass(cls, _KINDS[kind])):
        raise error(ValueError, f"{place} is no {_KINDS[kind].__name__}")
    return cls
