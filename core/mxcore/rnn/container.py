"""Cells made of cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .base import BaseRNNCell

__all__ = ["Container"]


class Container(BaseRNNCell):
    """A cell over others, `_cells`: its states are theirs, one after the other, and so are its weights."""

    _cells: Sequence[BaseRNNCell] = ()

    def reset(self) -> None:
        super().reset()
        for cell in self._cells:
            cell.reset()

    @property
    def state_info(self) -> list[Any]:
        return [info for cell in self._cells for info in cell.state_info]

    def begin_state(self, **kwargs: Any) -> list[Any]:  # type: ignore[override]
        if self._modified:
            return super().begin_state(**kwargs)  # an error
        return [state for cell in self._cells for state in cell.begin_state(**kwargs)]

    def unpack_weights(self, args: dict[str, Any]) -> dict[str, Any]:
        for cell in self._cells:
            args = cell.unpack_weights(args)
        return args

    def pack_weights(self, args: dict[str, Any]) -> dict[str, Any]:
        for cell in self._cells:
            args = cell.pack_weights(args)
        return args
