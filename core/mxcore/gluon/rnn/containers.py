"""Cells of cells: one above the other, and both ways through time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...base import error
from ..block import Block
from ..block.block import _indent
from .recurrent_cell import HybridRecurrentCell, RecurrentCell, states_for
from .sequences import formatted, is_one, masked, reverse

__all__ = ["BidirectionalCell", "HybridSequentialRNNCell", "SequentialRNNCell"]


def _cells_state_info(cells: Iterable[Any], batch_size: int) -> list[Any]:
    """What states several cells have, one after another; cells written elsewhere take it from here."""
    return [info for cell in cells for info in cell.state_info(batch_size)]


def _cells_begin_state(cells: Iterable[Any], **kwargs: Any) -> list[Any]:
    """States to begin with of several cells, one after another."""
    return [state for cell in cells for state in cell.begin_state(**kwargs)]


class _Stack(RecurrentCell):
    """What both stacks have in common."""

    def add(self, cell: RecurrentCell) -> None:
        """Put a cell on top.

        Parameters
        ----------
        cell : RecurrentCell
        """
        self.register_child(cell)

    def __repr__(self) -> str:
        cells = "\n".join(f"({i}): {_indent(repr(cell))}" for i, cell in self._children.items())
        return f"{type(self).__name__}(\n{cells}\n)"

    def __getitem__(self, i: int) -> Block:
        return list(self._children.values())[i]

    def __len__(self) -> int:
        return len(self._children)

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        return _cells_state_info(self._children.values(), batch_size)

    def begin_state(self, **kwargs: Any) -> list[Any]:  # type: ignore[override]  # names only, as in MXNet
        """States to begin with, of all cells from below; see `RecurrentCell.begin_state`."""
        self._check_free()
        return _cells_begin_state(self._children.values(), **kwargs)

    def _split(self, states: Any) -> Iterator[tuple[Any, Any]]:
        """Each cell with its own states."""
        cells: list[Any] = [*self._children.values()]
        sizes = [len(cell.state_info()) for cell in cells]
        if len(states) != sum(sizes):
            raise error(
                ValueError,
                f"{type(self).__name__} '{self.name}' has {sum(sizes)} states, "
                f"got {len(states)}; begin_state() makes them",
            )
        first = 0
        for cell, size in zip(cells, sizes):
            yield cell, states[first : first + size]
            first += size

    def unroll(
        self,
        length: int | None,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, Any]:
        """Run the cells over a sequence, from below; see `RecurrentCell.unroll`."""
        self.reset()
        inputs, _, F, batch_size = formatted(length, inputs, layout, None)
        states, found = states_for(self, F, begin_state, inputs, batch_size), []
        top = len(self._children) - 1
        for i, (cell, own) in enumerate(self._split(states)):
            inputs, own = cell.unroll(
                length,
                inputs=inputs,
                begin_state=own,
                layout=layout,
                merge_outputs=merge_outputs if i == top else None,
                valid_length=valid_length,
            )
            found.extend(own)
        return inputs, found

    def _step(self, inputs: Any, states: Any) -> tuple[Any, Any]:
        found = []
        for cell, own in self._split(states):
            if isinstance(cell, BidirectionalCell):
                raise error(
                    NotImplementedError,
                    f"{type(self).__name__} '{self.name}' holds a BidirectionalCell, "
                    "which cannot be stepped; call unroll",
                )
            inputs, own = cell(inputs, own)
            found.extend(own)
        return inputs, found


class SequentialRNNCell(_Stack):
    """Cells one above the other.

    Parameters
    ----------
    prefix : str, optional
    params : ParameterDict, optional

    Examples
    --------
    >>> import mxcore as mx
    >>> stack = mx.gluon.rnn.SequentialRNNCell()
    >>> stack.add(mx.gluon.rnn.LSTMCell(4))
    >>> stack.add(mx.gluon.rnn.GRUCell(5))
    >>> stack.initialize()
    >>> output, states = stack(mx.nd.ones((2, 3)), stack.begin_state(batch_size=2))
    >>> output.shape, len(states)
    ((2, 5), 3)
    """

    def __call__(self, inputs: Any, states: Any) -> Any:
        self._counter += 1
        return self._step(inputs, states)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._step(*args, **kwargs)

    def hybrid_forward(self, *args: Any, **kwargs: Any) -> Any:
        """A stack that is not hybrid has none: `HybridSequentialRNNCell` has."""
        raise NotImplementedError("a SequentialRNNCell runs its cells; HybridSequentialRNNCell can be hybridised")


class HybridSequentialRNNCell(_Stack, HybridRecurrentCell):
    """Cells one above the other, that can be hybridised as one.

    Parameters
    ----------
    prefix : str, optional
    params : ParameterDict, optional

    Examples
    --------
    >>> import mxcore as mx
    >>> stack = mx.gluon.rnn.HybridSequentialRNNCell()
    >>> stack.add(mx.gluon.rnn.LSTMCell(4))
    >>> stack.add(mx.gluon.rnn.ResidualCell(mx.gluon.rnn.GRUCell(4)))
    >>> stack.initialize()
    >>> stack.hybridize()
    >>> stack.unroll(5, mx.nd.ones((2, 5, 3)), merge_outputs=True)[0].shape
    (2, 5, 4)
    """

    def __call__(self, inputs: Any, states: Any) -> Any:
        return super().__call__(inputs, states)

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        return self._step(inputs, states)


class BidirectionalCell(HybridRecurrentCell):
    """Two cells, one through the sequence and one from its end; their outputs are joined. It can only be unrolled.

    Parameters
    ----------
    l_cell, r_cell : RecurrentCell
        Forwards and backwards.
    output_prefix : str, default 'bi_'
        Goes before the names of outputs in graphs.

    Notes
    -----
    Schuster and Paliwal, "Bidirectional Recurrent Neural Networks" (1997). Behaviour matched: MXNet 1.9.1.

    Examples
    --------
    >>> import mxcore as mx
    >>> cell = mx.gluon.rnn.BidirectionalCell(mx.gluon.rnn.LSTMCell(4), mx.gluon.rnn.LSTMCell(4))
    >>> cell.initialize()
    >>> cell.unroll(5, mx.nd.ones((2, 5, 3)), merge_outputs=True)[0].shape
    (2, 5, 8)
    """

    def __init__(self, l_cell: RecurrentCell, r_cell: RecurrentCell, output_prefix: str = "bi_") -> None:
        super().__init__(prefix="", params=None)
        self.register_child(l_cell, "l_cell")
        self.register_child(r_cell, "r_cell")
        self._output_prefix = output_prefix

    @property
    def _cells(self) -> list[Any]:
        return list(self._children.values())

    def __call__(self, inputs: Any, states: Any) -> Any:
        raise error(
            NotImplementedError,
            "a BidirectionalCell cannot be stepped, since it needs the end of the sequence; call unroll",
        )

    def __repr__(self) -> str:
        left, right = self._cells
        return f"{type(self).__name__}(forward={left!r}, backward={right!r})"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        return _cells_state_info(self._children.values(), batch_size)

    def begin_state(self, **kwargs: Any) -> list[Any]:  # type: ignore[override]  # names only, as in MXNet
        """States to begin with, of both cells; see `RecurrentCell.begin_state`."""
        self._check_free()
        return _cells_begin_state(self._children.values(), **kwargs)

    def unroll(
        self,
        length: int | None,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, Any]:
        """Run both cells over a sequence; see `RecurrentCell.unroll`."""
        self.reset()
        steps, axis, F, batch_size = formatted(length, inputs, layout, False)
        states = states_for(self, F, begin_state, steps, batch_size)
        left, right = self._cells
        n = len(left.state_info(batch_size))
        l_outputs, l_states = left.unroll(
            length,
            inputs=steps,
            begin_state=states[:n],
            layout=layout,
            merge_outputs=merge_outputs,
            valid_length=valid_length,
        )
        r_outputs, r_states = right.unroll(
            length,
            inputs=reverse(F, steps, valid_length),
            begin_state=states[n:],
            layout=layout,
            merge_outputs=False,
            valid_length=valid_length,
        )
        r_outputs = reverse(F, r_outputs, valid_length)
        merge = is_one(l_outputs) if merge_outputs is None else merge_outputs
        l_outputs = formatted(None, l_outputs, layout, merge)[0]
        if merge:
            outputs = F.concat(l_outputs, F.stack(*r_outputs, axis=axis), dim=2, name=f"{self._output_prefix}out")
        else:
            outputs = [
                F.concat(a, b, dim=1, name=f"{self._output_prefix}t{i}")
                for i, (a, b) in enumerate(zip(l_outputs, r_outputs))
            ]
        if valid_length is not None:
            outputs = masked(F, outputs, len(steps), valid_length, axis, merge)
        return outputs, l_states + r_states
