"""Mixed precision for all that runs from now on: casts before operators that users call, on arrays and symbols."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ..._core import dispatch, tables
from ..._core.array import Array, Like
from ..._core.binding import bind
from ..._core.errors import warn
from ..._core.op import Op
from ..._core.state import state
from ...symbol.base import Entry, SymbolBase
from ...symbol.compose import entries
from ...symbol.symbol import Symbol
from .loss_scaler import LossScaler
from .rules import FLOAT32, WIDEST, Rules, is_narrowing, target_of

__all__ = ["STATE", "init", "is_on", "scaler", "stop"]


class _Casting:
    """Mixed precision that is switched on. What gradient rules and the backward of users' code call is not cast."""

    def __init__(self, rules: Rules) -> None:
        self.rules, self.scaler = rules, LossScaler()
        #: Whether a trainer has the scaler: the first one shares it with the output operators.
        self.scaler_taken = False
        self._cast = tables.ops.get("amp_cast")
        self._params: dict[Any, Any] = {}

    # -- arrays ------------------------------------------------------------------------------------------------
    def run(self, op: Op, args: Any, kwargs: dict[str, Any], *more: Any) -> Any:
        """In the place of `dispatch.call`."""
        if not self.rules.concerns(op) or state.in_backward:
            return dispatch.call(op, args, kwargs, *more)
        out = kwargs.pop("out", None)
        kwargs.pop("name", None)
        inputs, p = bind(op, args, kwargs, lambda x: isinstance(x, (Array, Like)))
        return self.apply(op, inputs, p, out)

    def apply(self, op: Op, inputs: Any, p: Any, out: Any = None, *more: Any) -> Any:
        """In the place of `dispatch.invoke`."""
        if not self.rules.concerns(op) or state.in_backward:
            return dispatch.invoke(op, inputs, p, out, *more)
        if op.name in self.rules.losses:
            p = op.parse(
                {
                    **{k: v for k, v in p._given.items() if v is not ...},
                    **p._scalars,
                    "grad_scale": p.grad_scale * self.scaler.loss_scale,
                }
            )
        kind = self.rules.of_call(op, p)
        if kind is None or not all(isinstance(x, Array) for x in inputs):
            return dispatch.invoke(op, inputs, p, out, *more)
        cast = self._arrays(kind, inputs, self.rules.castable(op, p))
        if cast is inputs or not isinstance(out, Array):
            return dispatch.invoke(op, cast, p, out, *more)
        result = dispatch.invoke(op, cast, p)  # ``x **= 2`` leaves x in its dtype
        if result._data.dtype == out._data.dtype:
            return dispatch.invoke(op, cast, p, out, *more)
        return dispatch.invoke(self._cast, (result,), self._cast.parse({"dtype": out._data.dtype}), out)

    def _arrays(self, kind: Any, inputs: Any, places: list[int]) -> Any:
        floats = [i for i in places if is_narrowing(inputs[i]._data.dtype)]
        if any(inputs[i].stype != "default" for i in floats):
            kind = WIDEST  # the casts know dense arrays only
        if kind is WIDEST:
            found = {inputs[i]._data.dtype for i in floats}
            kind = FLOAT32 if len(found) > 1 else None
        wrong = [
            i for i in floats if kind is not None and inputs[i]._data.dtype != kind and inputs[i].stype == "default"
        ]
        if not wrong:
            return inputs
        p = self._params.get(kind)
        if p is None:
            p = self._params[kind] = self._cast.parse({"dtype": kind.name})
        inputs = list(inputs)
        for i in wrong:
            inputs[i] = dispatch.invoke(self._cast, (inputs[i],), p)
        return inputs

    # -- symbols -----------------------------------------------------------------------------------------------
    def before(self, op: Op, p: Any, found: list[Entry]) -> list[Entry]:
        """The inputs of a new node, behind casts where it needs them."""
        if not self.rules.concerns(op):
            return found
        if op.name in self.rules.losses:
            logging.warning("%s does not support dynamic loss scaling in symbolic and hybridized execution.", op.name)
        kind, places = self.rules.of_call(op, p), self.rules.castable(op, p)
        if kind is None or not places:
            return found
        found = list(found)
        if kind is WIDEST:
            new = entries("amp_multicast", [Symbol([found[i]]) for i in places], {"num_outputs": len(places)})
            for i, e in zip(places, new):
                found[i] = e
            return found
        for i in places:
            (found[i],) = entries("amp_cast", [Symbol([found[i]])], {"dtype": kind.name})
        return found

    # -- on and off --------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Let users' calls, and symbols, go through here."""
        SymbolBase.before = self.before
        dispatch.route(self.run, self.apply)

    def stop(self) -> None:
        """Undo `start`."""
        SymbolBase.before = None
        dispatch.route()


_on: _Casting | None = None


def init(
    target_dtype: Any = "float16",
    target_precision_ops: Any = None,
    conditional_fp32_ops: Any = None,
    fp32_ops: Any = None,
) -> None:
    """Switch automatic mixed precision on, for the whole process: call it before the network is made.

    From now on, functions of ``mx.nd`` and ``mx.sym``, methods and operators of arrays and symbols, and so Gluon's
    layers, cast their float32, float16 and bfloat16 inputs to the dtype that ``amp.lists`` says. Parameters stay
    float32. Arrays of other dtypes are left alone.

    Parameters
    ----------
    target_dtype : {'float16', 'bfloat16'}
    target_precision_ops, fp32_ops : list of str, optional
        Operators that compute in the narrow dtype, and in float32, in the place of the lists.
    conditional_fp32_ops : list of (str, str, list of str), optional
        (operator, parameter, values for which it computes in float32), in the place of the list.

    Raises
    ------
    MXNetError
        (also AssertionError) for another dtype, names of no operator, an operator in two lists.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.amp.init``. A second call changes nothing and warns. What was imported by
    name before (``from mxnet.nd import dot``), and blocks that were hybridised and called before, go on as they were.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.contrib import amp
    >>> amp.init()                                                           # doctest: +SKIP
    >>> mx.nd.FullyConnected(x, weight, no_bias=True, num_hidden=8).dtype   # doctest: +SKIP
    <class 'numpy.float16'>
    """
    global _on
    target = target_of("amp.init", target_dtype)
    if _on is not None:
        warn(
            f"amp.init: mixed precision is on already, with {_on.rules.target}; "
            + ("this call changes nothing" if target == _on.rules.target else f"it stays, and {target} is not taken")
        )
        return
    rules = Rules(
        "amp.init", target, target_precision_ops, fp32_ops, conditional_fp32_ops, ("target_precision_ops", "fp32_ops")
    )
    logging.info("Using AMP")
    _on = _Casting(rules)
    _on.start()


def stop() -> None:
    """Switch mixed precision off again; for tests, and for programs that go on without it."""
    global _on
    if _on is not None:
        _on.stop()
        _on = None


def is_on() -> bool:
    """Whether mixed precision is switched on."""
    return _on is not None


def scaler() -> LossScaler:
    """The scaler of a new trainer: the first one's is that of the output operators."""
    assert _on is not None
    if _on.scaler_taken:
        return LossScaler()
    _on.scaler_taken = True
    return _on.scaler


#: What MXNet's module keeps in its globals, which attention cells of toolkits read.
STATE: dict[str, Callable[[], Any]] = {
    "_amp_initialized": is_on,
    "_amp_loss_scale_initialized": lambda: _on is not None and _on.scaler_taken,
    "_loss_scaler": lambda: None if _on is None else _on.scaler,
}
