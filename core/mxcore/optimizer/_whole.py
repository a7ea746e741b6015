"""Whether an optimizer or scheduler that was read from a file has the attributes that its methods use."""
from __future__ import annotations

import numbers

from ..base import error
from ..lr_scheduler import LRScheduler
from ..ndarray import NDArray
from .base import Optimizer

__all__ = ["check", "check_state"]

#: Where optimizers of ours are; what those of others keep is theirs.
_OURS = "mxcore.optimizer"
#: Attributes that older versions of MXNet did not have, and what they mean there.
_LATER = {"aggregate_num": lambda: 0, "allow_np_array": lambda: False, "multi_precision": lambda: False, "param_dict": dict}
#: What tables hold.
_TABLES = {"lr_mult": numbers.Real, "wd_mult": numbers.Real, "idx2name": str, "_index_update_count": int, "_all_index_update_counts": dict}
#: What may stand where a new one has None.
_OPTIONAL = {"lr_scheduler": LRScheduler, "clip_gradient": numbers.Real, "lr": numbers.Real}


def check(obj, of="the optimizer"):
    """Complete an optimizer or scheduler of an older version; refuse one that lacks something else, or has it of another kind.

    Parameters
    ----------
    obj : Optimizer or LRScheduler
    of : str
        For errors.

    Raises
    ------
    MXNetError
        (also ValueError or TypeError) naming the attribute.
    """
    have, kind = obj.__dict__, type(obj).__name__
    if "_index_update_count" in have:  # which is one of all; MXNet before 1.5 had no others
        have.setdefault("_all_index_update_counts", {0: have["_index_update_count"]})
    for name, usual in _new(obj).__dict__.items():
        if name not in have:
            if name not in _LATER:
                raise error(ValueError, f"{of}, a {kind}, lacks {name!r}; the file is damaged")
            have[name] = _LATER[name]()
        if not _alike(name, have[name], usual):
            raise error(TypeError, f"{of}, a {kind}, has {name!r} of {type(have[name]).__name__}, where a new one has {usual!r}; the file is damaged")
    hidden = next((n for n in have if n.startswith("__") or callable(getattr(type(obj), n, None))), None)
    if hidden is not None:
        raise error(ValueError, f"{of}, a {kind}, has an attribute {hidden!r}, which would hide a method; the file is damaged")
    for name, entry in _TABLES.items():
        bad = next((v for v in have.get(name, {}).values() if not isinstance(v, entry)), None)
        if bad is not None:
            raise error(TypeError, f"{of}, a {kind}, has a {type(bad).__name__} in its table {name!r}; the file is damaged")
    if have.get("sym_info") and not _symbol_info(have["sym_info"]):
        raise error(TypeError, f"{of}, a {kind}, has 'sym_info' that is not the attributes and the argument names of a symbol; the file is damaged")
    if isinstance(have.get("lr_scheduler"), LRScheduler):
        check(have["lr_scheduler"], "the scheduler")


def _symbol_info(info):
    """Whether it is (attributes by node's name, names of arguments)."""
    if len(info) != 2 or not isinstance(info[0], dict) or not isinstance(info[1], (list, tuple)):
        return False
    return all(isinstance(a, dict) for a in info[0].values()) and all(isinstance(n, str) for n in info[1])


def check_state(optimizer, index, weight, state):
    """Refuse a state that was read for a weight, if it is not made as the optimizer makes them; of our own optimizers only.

    Parameters
    ----------
    optimizer : Optimizer
    index : int or str
        Of the weight.
    weight : NDArray
    state : object

    Raises
    ------
    MXNetError
        (also ValueError) with both forms.
    """
    if not type(optimizer).__module__.startswith(_OURS):
        return
    usual = optimizer.create_state_multi_precision(index, weight)
    if not _same_form(state, usual):
        raise error(ValueError, f"the state of parameter {index!r} was read as {_form(state)}, but {type(optimizer).__name__} keeps {_form(usual)} for "
                                f"a {weight.dtype.__name__} weight of {weight.shape}; the states are of another optimizer or network, or damaged")


def _same_form(state, usual):
    if isinstance(usual, NDArray):
        return isinstance(state, NDArray) and state.shape == usual.shape
    if isinstance(usual, (list, tuple)):
        return isinstance(state, (list, tuple)) and len(state) == len(usual) and all(map(_same_form, state, usual))
    return state is None or usual is not None


def _form(state):
    if isinstance(state, NDArray):
        return f"{state.shape}"
    if isinstance(state, (list, tuple)):
        return f"[{', '.join(map(_form, state[:8]))}{', …' if len(state) > 8 else ''}]"
    return "none" if state is None else type(state).__name__


def _new(obj):
    """One as its class makes it, with 1 for what it asks for; of the base, where that cannot be."""
    for args in ((), (1,), ([1],)):
        try:
            return type(obj)(*args)
        except Exception:
            continue
    return (Optimizer if isinstance(obj, Optimizer) else LRScheduler)()


def _alike(name, value, usual):
    if usual is None:
        return value is None or isinstance(value, _OPTIONAL.get(name, object))
    if name in _OPTIONAL and value is None:
        return True
    if isinstance(usual, numbers.Number):
        return isinstance(value, numbers.Real) and (not isinstance(usual, int) or isinstance(usual, bool) or not _counts(name) or isinstance(value, int))
    if isinstance(usual, (list, tuple)):
        return isinstance(value, (list, tuple))
    return isinstance(value, (dict, str)) and isinstance(value, str) is isinstance(usual, str) if isinstance(usual, (dict, str)) else True


def _counts(name):
    return name in ("num_update", "begin_num_update", "aggregate_num", "count")
