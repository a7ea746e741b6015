"""`BatchCursor`: which examples of which epoch make up a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..base import error

__all__ = ["BatchCursor"]


#: So often at most an example is in one batch.
_MOST_TIMES = 1 << 20


class BatchCursor:
    """Walk over the examples of epoch after epoch in batches of one size.

    Parameters
    ----------
    length : int or callable
        Examples in an epoch. A callable is given a number and returns how many examples are known, at least
        that number unless there are no more: a file need not be read to its end to begin.
    batch_size : int
        Examples per batch.
    round_batch : bool
        Fill the last batch with the first examples of the next epoch, which then starts behind them;
        otherwise with the first ones of the same epoch, and the next starts at its first.

    Raises
    ------
    MXNetError
        (also ValueError) if `batch_size` is not positive.

    Notes
    -----
    Behaviour matched: ``round_batch`` of MXNet 1.9.1's iterators. A `reset` before the first batch changes
    nothing but that the epoch then starts at its first example.

    Examples
    --------
    >>> cursor = BatchCursor(5, 3)
    >>> cursor.next()
    ([(0, 0, 3)], 0)
    >>> cursor.next()
    ([(0, 3, 5), (1, 0, 1)], 1)
    >>> cursor.reset(); cursor.next()
    ([(1, 1, 4)], 0)
    """

    _STATE = ("epoch", "position", "taken", "ended", "started")

    def __init__(self, length: int | Callable[[int], int], batch_size: int, round_batch: bool = True) -> None:
        if not 1 <= batch_size < 1 << 31:  # MXNet's is an int of 32 bits
            raise error(ValueError, f"batch_size must be at least 1, and less than 2**31, got {batch_size}")
        self._length = length if callable(length) else lambda upto: length
        self.batch_size, self.round_batch = batch_size, round_batch
        self.epoch = 0
        self.position = 0  # of the next example in the epoch
        self.taken = (0, 0)  # epochs and examples that the last batch has taken beyond the epoch's end
        self.ended = False
        self.started = False  # whether a batch came since the last reset

    def next(self) -> tuple[list[tuple[int, int, int]], int]:
        """Return the examples of the next batch.

        Returns
        -------
        (list of (int, int, int), int)
            Spans (epoch, first, end) of examples, and how many of them only fill the batch.

        Raises
        ------
        StopIteration
            At the end of the epoch.
        """
        if self.ended:
            raise StopIteration
        begin, size = self.position, self.batch_size
        count = min(size, self._length(begin + size) - begin)
        if count <= 0:
            self.ended = True
            raise StopIteration
        self.started = True
        self.position += count
        spans, pad = [(self.epoch, begin, begin + count)], size - count
        if pad:
            self.ended = True
            length, epoch, left = self.position, self.epoch, pad
            if pad // length > _MOST_TIMES:
                raise error(
                    ValueError,
                    f"a batch of {size} has each of the {length} example(s) {size // length} times; make batch_size "
                    "smaller",
                )
            while left:
                epoch += self.round_batch
                part = min(left, length)
                spans.append((epoch, 0, part))
                left -= part
            if self.round_batch:
                whole = part == length  # the next epoch must not begin at its end
                self.taken = (epoch - self.epoch + whole, 0 if whole else part)
        return spans, pad

    def reset(self) -> None:
        """Start the next epoch."""
        epochs, examples = self.taken
        if self.started:
            self.epoch += epochs or 1
        self.position = examples
        self.taken, self.ended, self.started = (0, 0), False, False

    def state_dict(self) -> dict[str, Any]:
        """Return the state as a dictionary of plain values."""
        return {name: getattr(self, name) for name in self._STATE}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state that `state_dict` returned, perhaps by way of a file, or raise a ValueError."""
        found: dict[str, Any] = {name: state.get(name) for name in self._STATE}
        taken = found["taken"]
        numbers = [v for name, v in found.items() if name != "taken"]
        numbers += taken if isinstance(taken, (list, tuple)) and len(taken) == 2 else [None]
        if not all(isinstance(v, int) and 0 <= v < 1 << 62 for v in numbers) or any(
            self._length(n) < n for n in (found["position"], taken[1])
        ):
            raise error(ValueError, f"this is no place of an iterator of these examples: {str(found)[:200]}")
        for name, value in found.items():
            setattr(self, name, tuple(value) if name == "taken" else value)
