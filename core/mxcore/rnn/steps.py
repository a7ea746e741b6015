"""What the kinds of cells compute in a step, whatever their products are: matrices or convolutions.

A kind is mixed into a base that gives `_products` (the products with input and state), `_activation`, and `_axis`, the
parameters of the slicing of gates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import symbol
from ..base import error
from .base import BaseRNNCell

__all__ = ["GRUStep", "LSTMStep", "SimpleStep", "states_of"]


def states_of(cell: BaseRNNCell, states: Any) -> list[Any]:
    """The states as a list of the right length.

    Raises
    ------
    MXNetError
        (also ValueError) if there are more or fewer.
    """
    wanted = len(cell.state_info)
    found = list(states) if isinstance(states, (list, tuple)) else [states]
    if len(found) != wanted:
        raise error(
            ValueError, f"{type(cell).__name__} has {wanted} state(s), got {len(found)}; begin_state() makes them"
        )
    return found


class _Step(BaseRNNCell):
    """What a kind finds in the base that it is mixed into."""

    _products: Callable[[Any, Any, str], tuple[Any, Any]]
    _activation: Any
    _axis: Any


class SimpleStep(_Step):
    """``act(W x + R h + b)``."""

    @property
    def _gate_names(self) -> Any:
        return ("",)

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        (state,) = states_of(self, states)
        name = self._step_name()
        i2h, h2h = self._products(inputs, state, name)
        output = self._get_activation(i2h + h2h, self._activation, name=f"{name}out")
        return output, [output]


class LSTMStep(_Step):
    """Long short-term memory; the states are output and cell."""

    @property
    def state_info(self) -> list[Any]:
        return super().state_info * 2

    @property
    def _gate_names(self) -> Any:
        return ["_i", "_f", "_c", "_o"]

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        h, c = states_of(self, states)
        name = self._step_name()
        i2h, h2h = self._products(inputs, h, name)
        parts = symbol.SliceChannel(i2h + h2h, num_outputs=4, name=f"{name}slice", **self._axis)
        enter, forget = (
            symbol.Activation(parts[i], act_type="sigmoid", name=name + n) for i, n in ((0, "i"), (1, "f"))
        )
        change = self._get_activation(parts[2], self._activation, name=f"{name}c")
        leave = symbol.Activation(parts[3], act_type="sigmoid", name=f"{name}o")
        state = symbol._internal._plus(forget * c, enter * change, name=f"{name}state")
        output = symbol._internal._mul(leave, self._get_activation(state, self._activation), name=f"{name}out")
        return output, [output, state]


class GRUStep(_Step):
    """Gated recurrent unit, in cuDNN's form: the reset gate is applied after the product with the state."""

    @property
    def _gate_names(self) -> Any:
        return ["_r", "_z", "_o"]

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        (state,) = states_of(self, states)
        name = self._step_name()
        i2h, h2h = self._products(inputs, state, name)
        i_reset, i_update, i_new = symbol.SliceChannel(i2h, num_outputs=3, name=f"{name}_i2h_slice", **self._axis)
        h_reset, h_update, h_new = symbol.SliceChannel(h2h, num_outputs=3, name=f"{name}_h2h_slice", **self._axis)
        reset = symbol.Activation(i_reset + h_reset, act_type="sigmoid", name=f"{name}_r_act")
        update = symbol.Activation(i_update + h_update, act_type="sigmoid", name=f"{name}_z_act")
        new = self._get_activation(i_new + reset * h_new, self._activation, name=f"{name}_h_act")
        output = symbol._internal._plus((1.0 - update) * new, update * state, name=f"{name}out")
        return output, [output]
