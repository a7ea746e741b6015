"""Contributed operators over arrays (``mx.nd.contrib``), and control flow as plain Python."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import tables
from .._core.context import current_context
from .._core.errors import error
from .._op_functions import eager_function, namespace
from . import checks
from .ndarray import NDArray
from .random import uniform
from .updates import (
    adamw_update,
    mp_adamw_update,
    multi_adamw_update,
    multi_lamb_update,
    multi_mp_adamw_update,
    multi_mp_lamb_update,
)

__all__ = [
    "adamw_update",
    "cond",
    "current_context",
    "foreach",
    "isfinite",
    "isinf",
    "isnan",
    "mp_adamw_update",
    "multi_adamw_update",
    "multi_lamb_update",
    "multi_mp_adamw_update",
    "multi_mp_lamb_update",
    "rand_zipfian",
    "uniform",
    "while_loop",
]


_FLOATS = {np.float16, np.float32, np.float64}


def flattened(x: Any, what: str) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """A nested list as a flat one, and the way back."""
    if not isinstance(x, (list, tuple)):
        return [x], lambda flat: flat[0]
    parts = [flattened(v, what) for v in x]

    def back(flat: list[Any]) -> list[Any]:
        out, at = [], 0
        for items, rebuild in parts:
            out.append(rebuild(flat[at : at + len(items)]))
            at += len(items)
        return out

    return [v for items, _ in parts for v in items], back


def foreach(body: Callable[[Any, Any], tuple[Any, Any]], data: Any, init_states: Any) -> tuple[Any, Any]:
    """Run ``body(data_t, states) -> (outputs, states)`` over the first axis of `data`.

    Parameters
    ----------
    body : callable
    data : NDArray or nested list of NDArray
        Iterated along axis 0.
    init_states : NDArray or nested list of NDArray

    Returns
    -------
    (outputs, states)
        Outputs stacked along a new first axis; the final states.

    Examples
    --------
    >>> import mxcore as mx
    >>> out, last = mx.nd.contrib.foreach(lambda x, s: (x + s, x + s), mx.nd.array([1, 2, 3]), mx.nd.zeros((1,)))
    >>> last.asscalar().item()
    6.0
    """
    checks.callables("foreach", body=body)
    parts, rebuild = _arrays(data, "foreach: data")
    _arrays(init_states, "foreach: init_states")
    lengths = {a.shape[0] if a.shape else 0 for a in parts}
    if len(lengths) != 1:
        raise error(ValueError, f"foreach: all data must have one length along axis 0, got {sorted(lengths)}")
    states = init_states
    collected: list[list[Any]] = []
    outs_back: Any = None
    for t in range(lengths.pop()):
        outs, states = checks.two("foreach: body", "(outputs, states)", body(rebuild([a[t] for a in parts]), states))
        flat, outs_back = _arrays(outs, "foreach: outputs")
        _arrays(states, "foreach: states")
        if collected and [x.shape for x in flat] != [x.shape for x in collected[0]]:
            raise error(
                ValueError,
                f"foreach: outputs of step {t} have shapes {[x.shape for x in flat]}, those of step 0 "
                f"{[x.shape for x in collected[0]]}; they must agree to be stacked",
            )
        collected.append(flat)
    if outs_back is None:
        return [], states
    stack = tables.ops.get("stack")
    return outs_back([stack(*step, axis=0) for step in zip(*collected)]), states


def iterations(max_iterations: Any) -> int:
    """The most steps of a loop, as an int."""
    if max_iterations is None:
        raise error(ValueError, "while_loop: max_iterations must be given: the length of what is stacked")
    try:
        return int(max_iterations.asscalar() if hasattr(max_iterations, "asscalar") else max_iterations)
    except (TypeError, ValueError, OverflowError):
        raise error(ValueError, f"while_loop: max_iterations must be an int, got {max_iterations!r}") from None


def loop_values(result: Any) -> tuple[Any, Any]:
    """What ``func`` of a while loop returned, as (outputs, loop variables); None stands for an empty list."""
    outs, new_vars = checks.two("while_loop: func", "(outputs, loop_vars)", result)
    return [] if outs is None else outs, [] if new_vars is None else new_vars


def _truth(x: Any, what: str) -> bool:
    """One number, yes or no."""
    if isinstance(x, NDArray):
        if x.size != 1:
            raise error(ValueError, f"{what} must be one number, got an array of shape {x.shape}")
        x = x.asscalar()
    try:
        return bool(x)
    except (TypeError, ValueError):
        raise error(ValueError, f"{what} must be true or false, got {type(x).__name__}") from None


def _arrays(x: Any, what: str) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """As `flattened`, of arrays only."""
    found, back = flattened(x, what)
    for v in found:
        if not isinstance(v, NDArray):
            raise error(TypeError, f"{what} must be NDArrays or nested lists of them, got {type(v).__name__}")
    return found, back


def while_loop(
    cond: Callable[..., Any], func: Callable[..., tuple[Any, Any]], loop_vars: Any, max_iterations: Any = None
) -> tuple[Any, Any]:
    """Run ``func(*loop_vars) -> (outputs, new loop_vars)`` while ``cond(*loop_vars)`` holds.

    Parameters
    ----------
    cond : callable
        Returns one number, or anything that is true or false.
    func : callable
    loop_vars : NDArray or nested list of NDArray
    max_iterations : int
        Most steps.

    Returns
    -------
    (outputs, loop_vars)
        Outputs stacked along a new first axis of length `max_iterations`, zeros after the last step, or [] if there was
        no step; the final loop variables.

    Raises
    ------
    MXNetError
        If `max_iterations` is missing, `cond` gives no single number, or `func` other loop variables than it was given,
        or outputs of another number or shape than before.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``nd.contrib.while_loop``; what it leaves undefined after the last step is zero.

    Examples
    --------
    >>> import mxcore as mx
    >>> square = lambda i: (i * i, [i + 1])
    >>> out, (last,) = mx.nd.contrib.while_loop(lambda i: i < 3, square, [mx.nd.array([1])], max_iterations=4)
    >>> out.asnumpy().ravel().tolist(), last.asscalar().item()
    ([1.0, 4.0, 0.0, 0.0], 3.0)
    """
    checks.callables("while_loop", cond=cond, func=func)
    most = iterations(max_iterations)
    flat, back = _arrays(loop_vars, "while_loop: loop_vars")
    if not flat:
        raise error(ValueError, "while_loop: loop_vars must hold at least one NDArray")
    rows: list[list[Any]] = []
    outs_back: Any = None
    while len(rows) < most:
        given = loop_vars if isinstance(loop_vars, (list, tuple)) else [loop_vars]
        if not _truth(cond(*given), "while_loop: what cond returns"):
            break
        outs, new_vars = loop_values(func(*given))
        row, outs_back = _arrays(outs, "while_loop: outputs")
        new, _ = _arrays(new_vars, "while_loop: loop_vars")
        if len(new) != len(flat):
            raise error(ValueError, f"while_loop: func returned {len(new)} loop variables, it was given {len(flat)}")
        if rows and [x.shape for x in row] != [x.shape for x in rows[0]]:
            raise error(
                ValueError,
                f"while_loop: outputs of step {len(rows)} have shapes {[x.shape for x in row]}, those of step 0 "
                f"{[x.shape for x in rows[0]]}; they must agree to be stacked",
            )
        rows.append(row)
        loop_vars = back(new)
    if outs_back is None:
        return [], loop_vars
    ops = tables.ops
    stacked = []
    for column in zip(*rows):
        y = ops.get("stack")(*column, axis=0)
        if len(column) < most:
            x = column[0]
            y = ops.get("Concat")(
                y, ops.get("_zeros")(shape=(most - len(column), *x.shape), dtype=x.dtype, ctx=x.context), dim=0
            )
        stacked.append(y)
    return outs_back(stacked), loop_vars


def cond(pred: Any, then_func: Callable[[], Any], else_func: Callable[[], Any]) -> Any:
    """What ``then_func()`` returns if `pred` is true, else what ``else_func()`` returns.

    Parameters
    ----------
    pred : NDArray
        One number; anything else counts as Python has it.
    then_func, else_func : callable
        Only the chosen one is called.

    Raises
    ------
    MXNetError
        If `pred` is an array of several numbers.

    Examples
    --------
    >>> import mxcore as mx
    >>> x = mx.nd.array([3])
    >>> mx.nd.contrib.cond(x > 2, lambda: x * 2, lambda: x).asscalar().item()
    6.0
    """
    checks.callables("cond", then_func=then_func, else_func=else_func)
    return then_func() if _truth(pred, "cond: pred") else else_func()


def isinf(data: Any) -> Any:
    """1 where an element is infinite, else 0, in the dtype of `data`.

    >>> import mxcore as mx
    >>> mx.nd.contrib.isinf(mx.nd.array([1, float("inf")])).asnumpy().tolist()
    [0.0, 1.0]
    """
    return _infinite(data)


def _infinite(data: Any) -> Any:
    checks.arrays("isinf", data=data)
    return data.abs() == float("inf") if data.dtype in _FLOATS else data.zeros_like()


def isfinite(data: Any) -> Any:
    """1 where an element is a finite number, else 0, in the dtype of `data`.

    >>> import mxcore as mx
    >>> mx.nd.contrib.isfinite(mx.nd.array([1, float("nan"), float("inf")])).asnumpy().tolist()
    [1.0, 0.0, 0.0]
    """
    checks.arrays("isfinite", data=data)
    return (data == data) * (1 - _infinite(data))


def isnan(data: Any) -> Any:
    """1 where an element is no number, else 0, in the dtype of `data`.

    >>> import mxcore as mx
    >>> mx.nd.contrib.isnan(mx.nd.array([1, float("nan")])).asnumpy().tolist()
    [0.0, 1.0]
    """
    checks.arrays("isnan", data=data)
    return data != data


def zipfian(
    random: Any, true_classes: Any, num_sampled: int, range_max: int, where: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """`rand_zipfian` of arrays or symbols, as `random` draws them."""
    for name, n in (("num_sampled", num_sampled), ("range_max", range_max)):
        if not isinstance(n, numbers.Integral) or n < 1:
            raise error(ValueError, f"rand_zipfian: {name} must be int >= 1, got {n!r}")
    log_range = math.log(range_max + 1)

    def expected(classes: Any) -> Any:
        cls = classes.astype("float64")
        return ((cls + 2.0) / (cls + 1.0)).log() / log_range * num_sampled

    drawn = (random.uniform(0, log_range, shape=(num_sampled,), dtype="float64", **where).exp() - 1).astype(
        "int64"
    ) % range_max
    return drawn, expected(true_classes), expected(drawn)


def rand_zipfian(true_classes: Any, num_sampled: int, range_max: int, ctx: Any = None) -> tuple[Any, Any, Any]:
    """Candidates for sampled softmax, drawn with replacement from an approximately Zipfian distribution.

    Class `c` has the probability ``(log(c + 2) - log(c + 1)) / log(range_max + 1)``: use it where classes are sorted by
    falling frequency.

    Parameters
    ----------
    true_classes : NDArray
        The classes of the batch.
    num_sampled : int
        How many to draw.
    range_max : int
        How many classes there are.
    ctx : Context, optional
        Where to draw; the context of `true_classes` unless told.

    Returns
    -------
    (samples, expected count of true_classes, expected count of samples)
        int64 of shape (num_sampled,); float64 of the shape of `true_classes`; float64 of shape (num_sampled,).

    Examples
    --------
    >>> import mxcore as mx
    >>> samples, true_count, _ = mx.nd.contrib.rand_zipfian(mx.nd.array([3]), 4, 5)
    >>> samples.dtype.__name__, samples.shape, round(true_count.asscalar().item(), 6)
    ('int64', (4,), 0.498155)
    """
    from . import random

    checks.arrays("rand_zipfian", true_classes=true_classes)
    return zipfian(random, true_classes, num_sampled, range_max, {"ctx": ctx or true_classes.context})


__getattr__, __dir__ = namespace(globals(), "contrib", eager_function)
