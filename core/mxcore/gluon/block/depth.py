"""What is said where blocks are nested deeper than Python can call."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ...base import MXNetError, error

if TYPE_CHECKING:
    from . import Block

__all__ = ["explained", "too_deep"]


def too_deep(block: Block) -> MXNetError:
    """The error for a RecursionError in what a block does with the blocks inside it.

    Parameters
    ----------
    block : Block
    """
    return error(
        RecursionError,
        f"{type(block).__name__} '{block.name}': blocks are nested deeper than Python's limit of "
        f"{sys.getrecursionlimit()} calls, "
        "or one is inside itself; put them side by side in one Sequential, or raise it with sys.setrecursionlimit()",
    )


class explained:
    """A with-block that goes on into a block's children: a RecursionError inside becomes one that names the block.

    It is no decorator, as that would cost a call on every level.

    Parameters
    ----------
    block : Block
    """

    __slots__ = ("block",)

    def __init__(self, block: Block) -> None:
        self.block = block

    def __enter__(self) -> explained:
        return self

    def __exit__(self, kind: object, exc: object, trace: object) -> None:
        # One of ours comes from a block inside, which has said it. Where there is no room left to say it, a block
        # outside does.
        if isinstance(exc, RecursionError) and not isinstance(exc, MXNetError):
            raise too_deep(self.block) from None
