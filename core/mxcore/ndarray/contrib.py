"""Contributed operators over arrays (``mx.nd.contrib``), and control flow as plain Python."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core import registry
from .._core.errors import error
from .._views import eager_function, namespace
from .updates import adamw_update, mp_adamw_update, multi_adamw_update, multi_lamb_update, multi_mp_adamw_update, multi_mp_lamb_update

__all__ = ["adamw_update", "foreach", "mp_adamw_update", "multi_adamw_update", "multi_lamb_update", "multi_mp_adamw_update",
           "multi_mp_lamb_update"]


def _flat(x: Any, what: str) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """A nested list as a flat one, and the way back."""
    if not isinstance(x, (list, tuple)):
        return [x], lambda flat: flat[0]
    parts = [_flat(v, what) for v in x]

    def back(flat: list[Any]) -> list[Any]:
        out, at = [], 0
        for items, rebuild in parts:
            out.append(rebuild(flat[at:at + len(items)]))
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
    arrays, rebuild = _flat(data, "data")
    lengths = {len(a) for a in arrays}
    if len(lengths) != 1:
        raise error(ValueError, f"foreach: all data must have one length along axis 0, got {sorted(lengths)}")
    states = init_states
    collected: list[list[Any]] = []
    outs_back: Any = None
    for t in range(lengths.pop()):
        outs, states = body(rebuild([a[t] for a in arrays]), states)
        flat, outs_back = _flat(outs, "outputs")
        collected.append(flat)
    if outs_back is None:
        return [], states
    stack = registry.ops.get("stack")
    return outs_back([stack(*step, axis=0) for step in zip(*collected)]), states


__getattr__, __dir__ = namespace(globals(), "contrib", eager_function)
