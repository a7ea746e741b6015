"""Sequences as one symbol or as a list of one symbol a step, and the way between."""

from __future__ import annotations

from typing import Any

from .. import symbol
from ..base import asserted, error

__all__ = ["normalized", "time_axis"]


def time_axis(layout: str) -> int:
    """The axis of time in a layout.

    Raises
    ------
    MXNetError
        (also ValueError) if the layout has none.
    """
    axis = layout.find("T") if isinstance(layout, str) else -1
    if axis < 0:
        raise error(ValueError, f"unroll: layout {layout!r} has no axis T; write 'NTC' or 'TNC'")
    return axis


def normalized(
    length: int | None, inputs: Any, layout: str, merge: bool | None, in_layout: str | None = None
) -> tuple[Any, int]:
    """A sequence as it is wanted.

    Parameters
    ----------
    length : int or None
        Number of steps; None where a list tells it.
    inputs : Symbol or list of Symbol
        One symbol with an axis of time, or one a step.
    layout : str
        Layout of the result.
    merge : bool or None
        True: one symbol; False: a list; None: as it came.
    in_layout : str, optional
        Layout of `inputs`, if it is another.

    Returns
    -------
    (Symbol or list of Symbol, int)
        The sequence, and the axis of time.

    Raises
    ------
    MXNetError
        (also ValueError or TypeError) if the steps are not as many as told, or `inputs` are no symbols.
    """
    axis = time_axis(layout)
    in_axis = axis if in_layout is None else time_axis(in_layout)
    if isinstance(inputs, symbol.Symbol):
        if merge is False:
            if len(inputs.list_outputs()) != 1:
                raise asserted(
                    ValueError,
                    f"unroll: inputs is a group of {len(inputs.list_outputs())} symbols; give list(inputs) for one "
                    "a step, or one symbol with an axis of time",
                )
            inputs = list(symbol.split(inputs, axis=in_axis, num_outputs=length, squeeze_axis=1))
    else:
        if not isinstance(inputs, (list, tuple)) or not all(isinstance(i, symbol.Symbol) for i in inputs):
            raise error(TypeError, f"unroll: inputs must be a Symbol or a list of them, got {_kind(inputs)}")
        if length is not None and len(inputs) != length:
            raise asserted(ValueError, f"unroll: {len(inputs)} inputs for {length} steps")
        if merge:
            inputs = symbol.Concat(*[symbol.expand_dims(i, axis=axis) for i in inputs], dim=axis)
            in_axis = axis
    if isinstance(inputs, symbol.Symbol) and axis != in_axis:
        inputs = symbol.swapaxes(inputs, dim1=axis, dim2=in_axis)
    return inputs, axis


def _kind(inputs: Any) -> str:
    if isinstance(inputs, (list, tuple)):
        return "a list with " + ", ".join(sorted({type(i).__name__ for i in inputs}))
    return type(inputs).__name__
