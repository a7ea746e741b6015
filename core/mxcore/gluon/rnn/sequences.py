"""Sequences as one array or as a list of one array a step, and the way between; arrays or symbols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import ndarray as nd
from ...base import asserted, error

if TYPE_CHECKING:
    pass

__all__ = ["as_list", "face", "formatted", "is_one", "last", "masked", "reverse", "time_axis"]


def is_one(x: Any) -> bool:
    """Whether a sequence is one array or symbol."""
    if isinstance(x, nd.NDArray):
        return True
    from ...symbol import Symbol

    return isinstance(x, Symbol)


def as_list(x: Any) -> list[Any]:
    """What an operator gave, one array or several, as a list."""
    return [x] if isinstance(x, nd.NDArray) else list(x)


def face(x: Any) -> Any:
    """`mxcore.ndarray` or `mxcore.symbol`: where the operators for a sequence are.

    Raises
    ------
    MXNetError
        (also TypeError) if it is neither.
    """
    if isinstance(x, (list, tuple)) and not x:
        raise asserted(ValueError, "unroll: inputs are an empty list; give an array or a symbol for each step")
    first = x[0] if isinstance(x, (list, tuple)) else x
    if isinstance(first, nd.NDArray):
        return nd
    if not is_one(first):
        raise error(
            TypeError, f"unroll: inputs must be an array or symbol, or a list of them, got {type(first).__name__}"
        )
    from ... import symbol

    return symbol


def time_axis(layout: str) -> int:
    """The axis of time in a layout such as ``"NTC"``."""
    axis = layout.find("T") if isinstance(layout, str) else -1
    if axis < 0 or "N" not in layout:
        raise error(
            ValueError, f"unroll: layout {layout!r} must have the axes T (time) and N (batch), as 'NTC' or 'TNC'"
        )
    return axis


def formatted(
    length: int | None, inputs: Any, layout: str, merge: bool | None, in_layout: str | None = None
) -> tuple[Any, Any, Any, Any]:
    """A sequence as it is wanted.

    Parameters
    ----------
    length : int or None
        Number of steps; None where the sequence tells it.
    inputs : NDArray, Symbol or list of them
    layout : str
        Of the result, if it is one array.
    merge : bool or None
        True: one array; False: a list; None: as it came.
    in_layout : str, optional
        Layout of `inputs`, if it is another.

    Returns
    -------
    sequence, int, module, int
        What was asked for, the axis of time, the face, and the batch size (0 for symbols).

    Raises
    ------
    MXNetError
        (also ValueError) if the steps are not as many as told.
    """
    F, axis = face(inputs), time_axis(layout)
    in_axis = axis if in_layout is None else time_axis(in_layout)
    batch = 0
    if is_one(inputs):
        if F is nd:
            batch = inputs.shape[(in_layout or layout).find("N")]
            if length is not None and length != inputs.shape[in_axis]:
                raise asserted(
                    ValueError,
                    f"unroll: inputs {inputs.shape} have {inputs.shape[in_axis]} "
                    f"steps in axis {in_axis}, length is {length}",
                )
            length = inputs.shape[in_axis]
        elif merge is False:
            if len(inputs.list_outputs()) != 1:
                raise asserted(
                    ValueError,
                    f"unroll: inputs is a group of {len(inputs.list_outputs())} symbols; "
                    "give list(inputs) for one a step",
                )
            if length is None:
                raise error(ValueError, "unroll: a symbol does not tell how many steps it has; give length")
        if merge is False:
            return as_list(F.split(inputs, axis=in_axis, num_outputs=length, squeeze_axis=True)), axis, F, batch
    else:
        if length is not None and len(inputs) != length:
            raise asserted(ValueError, f"unroll: inputs are {len(inputs)} steps, length is {length}")
        if F is nd:
            batch = inputs[0].shape[0]
        if not merge:
            return list(inputs), axis, F, batch
        inputs, in_axis = F.stack(*inputs, axis=axis), axis
    if axis != in_axis:
        inputs = F.swapaxes(inputs, dim1=axis, dim2=in_axis)
    return inputs, axis, F, batch


def masked(F: Any, sequence: Any, length: int | None, lengths: Any, axis: int, merge: bool) -> Any:
    """A sequence with zeros behind the end of each of its items.

    Parameters
    ----------
    lengths : NDArray or Symbol, (batch,)
    merge : bool
        One array, else a list.
    """
    one = sequence if is_one(sequence) else F.stack(*sequence, axis=axis)
    one = F.SequenceMask(one, sequence_length=lengths, use_sequence_length=True, axis=axis)
    return one if merge else as_list(F.split(one, num_outputs=length, axis=axis, squeeze_axis=True))


def reverse(F: Any, steps: Any, lengths: Any = None) -> Any:
    """A list of steps backwards, each item from its own end."""
    if lengths is None:
        return list(reversed(steps))
    whole = F.SequenceReverse(F.stack(*steps, axis=0), sequence_length=lengths, use_sequence_length=True)
    return as_list(F.split(whole, axis=0, num_outputs=len(steps), squeeze_axis=True))


def _reverse_sequences(sequences: Any, unroll_step: Any, valid_length: Any = None) -> Any:
    """As `reverse`, under the name by which cells written elsewhere take it; `unroll_step` is the number of steps."""
    return reverse(face(sequences), sequences, valid_length)


def last(F: Any, steps: Any, lengths: Any) -> Any:
    """Of a list of steps, each item's last one."""
    return F.SequenceLast(F.stack(*steps, axis=0), sequence_length=lengths, use_sequence_length=True, axis=0)
