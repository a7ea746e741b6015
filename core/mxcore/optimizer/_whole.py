"""Whether an optimizer or scheduler that was read from a file has the attributes that its methods use."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from .._interrupts import let_through
from ..base import error, plain
from ..lr_scheduler import LRScheduler
from ..ndarray import NDArray
from .base import Optimizer

__all__ = ["check", "check_fits", "check_state"]

#: Attributes that older versions of MXNet did not have, and what they mean there.
_LATER: dict[str, Callable[[], Any]] = {
    "aggregate_num": lambda: 0,
    "allow_np_array": lambda: False,
    "multi_precision": lambda: False,
    "param_dict": dict,
}
#: What may stand where a new one has None.
_OPTIONAL = {"lr_scheduler": LRScheduler} | dict.fromkeys(
    ("clip_gradient", "clip_weights", "lower_bound", "lr", "upper_bound"), numbers.Real
)
#: The longest integer, in bits: floats hold it, and what is computed with it stays short.
_LONGEST = 63


def check(obj: Any, of: str = "the optimizer") -> None:
    """Complete an optimizer or scheduler of an older version; refuse one that lacks or mistypes anything else.

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
                if isinstance(obj, LRScheduler) and not _is_ours(obj):
                    continue  # its __init__ need not call ours
                raise error(ValueError, f"{of}, a {kind}, lacks {name!r}; the file is damaged")
            have[name] = _LATER[name]()
        if isinstance(usual, numbers.Number) or name in _OPTIONAL or not isinstance(have[name], (NDArray, np.ndarray)):
            have[name] = _as_python(have[name])
        if not _alike(name, have[name], usual):
            raise error(
                TypeError,
                f"{of}, a {kind}, has {name!r} of {type(have[name]).__name__}, "
                f"where a new one has {usual!r}; the file is damaged",
            )
        if isinstance(usual, float) and isinstance(have[name], int):
            have[name] = float(have[name])  # powers of integers have as many digits as the exponent says
    hidden = next((n for n in have if n.startswith("__") or callable(getattr(type(obj), n, None))), None)
    if hidden is not None:
        raise error(
            ValueError, f"{of}, a {kind}, has an attribute {hidden!r}, which would hide a method; the file is damaged"
        )
    if have.get("lr", 0) is None and have.get("lr_scheduler") is None:
        raise error(ValueError, f"{of}, a {kind}, has neither 'lr' nor 'lr_scheduler'; the file is damaged")
    if (lr := have.get("lr")) is not None and lr != lr:
        raise error(ValueError, f"{of}, a {kind}, has the learning rate {lr}; the file is damaged")
    for name, sound in _TABLES.items():
        table = have.get(name, {})
        bad = [v for v in table.values() if not sound(v)] if isinstance(table, dict) else [table]
        if bad:
            raise error(
                TypeError,
                f"{of}, a {kind}, has a {type(bad[0]).__name__} in its table {name!r} "
                "that cannot be there; the file is damaged",
            )
    if have.get("sym_info") and not _symbol_info(have["sym_info"]):
        raise error(
            TypeError,
            f"{of}, a {kind}, has 'sym_info' that is not the attributes "
            "and the argument names of a symbol; the file is damaged",
        )
    if isinstance(have.get("lr_scheduler"), LRScheduler):
        check(have["lr_scheduler"], "the scheduler")


def _as_python(value: Any) -> Any:
    """NumPy's numbers, and arrays of one, as Python's; a table stays the object that others may hold."""
    if isinstance(value, (NDArray, np.ndarray)) and value.size == 1 and np.dtype(value.dtype).kind in "biuf":
        return value.item() if isinstance(value, np.ndarray) else value.asscalar().item()
    return value if isinstance(value, dict) else plain(value)


def _symbol_info(info: Any) -> bool:
    """Whether it is (attributes by node's name, names of arguments)."""
    if len(info) != 2 or not isinstance(info[0], dict) or not isinstance(info[1], (list, tuple)):
        return False
    return all(isinstance(a, dict) for a in info[0].values()) and all(isinstance(n, str) for n in info[1])


def check_state(optimizer: Optimizer, index: Any, weight: NDArray, state: Any) -> None:
    """Refuse a state read for a weight that is not as the optimizer, if it is our own, makes them.

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
    if not _is_ours(optimizer):
        return
    usual = optimizer.create_state_multi_precision(index, weight)
    if not _same_form(state, usual):
        raise error(
            ValueError,
            f"the state of parameter {index!r} was read as {_form(state)}, but "
            f"{type(optimizer).__name__} keeps {_form(usual)} for a {weight.dtype.__name__} weight of {weight.shape}; "
            "the states are of another optimizer or network, or damaged",
        )


def check_fits(optimizer: Optimizer, index: Any, weight: NDArray, state: Any) -> None:
    """Refuse a state that is not of the dtypes that the optimizer, if it is our own, makes for a weight.

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
        (also TypeError) with both forms.
    """
    if not _is_ours(optimizer):
        return
    try:
        usual = _dtypes(optimizer.create_state_multi_precision(index, weight))
    except Exception as e:  # what has failed before says more
        let_through(e)
        return
    made = _dtypes(state)
    if made != usual:
        raise error(
            TypeError,
            f"the state of parameter {index!r} holds {', '.join(made) or 'no numbers'}, but {type(optimizer).__name__} "
            f"keeps {', '.join(usual) or 'none'} for its weight, which is {weight.dtype.__name__} now; after cast() "
            "make a new Trainer or Updater (in a Module: init_optimizer with force_init=True)",
        )


def _dtypes(state: Any) -> list[str]:
    if isinstance(state, NDArray):
        return [state.dtype.__name__]
    return [name for part in state for name in _dtypes(part)] if isinstance(state, (list, tuple)) else []


def _same_form(state: Any, usual: Any) -> bool:
    if isinstance(usual, NDArray):
        return isinstance(state, NDArray) and state.shape == usual.shape
    if isinstance(usual, (list, tuple)):
        return isinstance(state, (list, tuple)) and len(state) == len(usual) and all(map(_same_form, state, usual))
    return state is None or usual is not None


def _form(state: Any) -> str:
    if isinstance(state, NDArray):
        return f"{state.shape}"
    if isinstance(state, (list, tuple)):
        return f"[{', '.join(map(_form, state[:8]))}{', …' if len(state) > 8 else ''}]"
    return "none" if state is None else type(state).__name__


def _new(obj: Any) -> Any:
    """One as its class makes it, with 1 for what it asks for; of the base, where that cannot be, or it is not ours."""
    for args in ((), (1,), ([1],)) if _is_ours(obj) else ():
        try:
            return type(obj)(*args)
        except Exception as e:
            let_through(e)
            continue
    return (Optimizer if isinstance(obj, Optimizer) else LRScheduler)()


def _is_ours(obj: Any) -> bool:
    """Whether a class is of this package; what those of others keep is theirs."""
    return type(obj).__module__.partition(".")[0] == "mxcore"


def _alike(name: str, value: Any, usual: Any) -> bool:
    if usual is None:
        return value is None or isinstance(value, _OPTIONAL.get(name, object))
    if name in _OPTIONAL and value is None:
        return True
    if isinstance(usual, numbers.Number):
        if name in _COUNTS:
            return _COUNTS[name](value)
        return _number(value) and (name != "aggregate_num" or isinstance(value, int))
    if isinstance(usual, (list, tuple)):
        return isinstance(value, (list, tuple)) and (name != "step" or all(map(_updates, value)))
    return (
        isinstance(value, (dict, str)) and isinstance(value, str) is isinstance(usual, str)
        if isinstance(usual, (dict, str))
        else True
    )


def _number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not (isinstance(value, int) and value.bit_length() > _LONGEST)


def _count(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and 0 <= int(value) < 1 << _LONGEST


def _updates(value: Any) -> bool:
    return isinstance(value, numbers.Real) and (value == 0 or 1 <= value < 1 << _LONGEST)  # type: ignore[operator]


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _counts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_count, value.values()))


#: Numbers of what has happened so far.
_COUNTS = dict.fromkeys(("num_update", "begin_num_update", "cur_step_ind"), _count) | dict.fromkeys(
    ("count", "step"), _updates
)
#: What tables hold.
_TABLES = {
    "lr_mult": _number,
    "wd_mult": _number,
    "idx2name": _text,
    "_index_update_count": _count,
    "_all_index_update_counts": _counts,
}
