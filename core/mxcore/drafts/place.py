"""What a draft asks of where it is written."""

from __future__ import annotations

import contextlib
from typing import Any

__all__ = ["Place"]


class Place:
    """Where a draft is written, and how it takes its target's place: by default alone, at once, with nothing left.

    Attributes
    ----------
    file : binary file object
        To write to.
    """

    file: Any
    #: Whether what waits is left to whoever reads or writes it next.
    kept = False

    @property
    def problem(self) -> OSError | None:
        """What a write has failed by, where that is noted: nothing can be done with it but to drop it."""
        return None

    def seal(self) -> None:
        """Bring what was written as far as it gets without taking its place."""
        raise NotImplementedError(f"{type(self).__name__} must define seal(self)")

    def alone(self) -> Any:
        """A with-block in which nobody else renames two files of the folder."""
        return contextlib.nullcontext()

    def tidy(self) -> None:
        """Let what waits for this name, as its writer was killed, take its place before this does."""

    def wait_for(self, other: Place) -> bool:
        """Whether it is renamed so that whoever finds `other` in its place finds it, too."""
        return False

    def placed(self) -> bool:
        """Whether it has taken its place."""
        return False

    def put(self) -> None:
        """Take the place."""
        raise NotImplementedError(f"{type(self).__name__} must define put(self)")

    def drop(self, mine: bool) -> None:
        """Leave nothing of it.

        Parameters
        ----------
        mine : bool
            Whether this process began it: else another may complete it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define drop(self, mine)")
