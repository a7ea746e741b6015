"""What mxcore is measured on beside MXNet 1.9.1 and PyTorch: a table, an entry each, a module a family.

An entry names two functions: ``mx(mx, *arguments)`` is MXNet's side and ours, the same lines with ``mx`` bound to one
or the other; ``torch(torch, *arguments)`` says the same in PyTorch. Both return a function that does the work once and
waits for it. Nothing here imports a framework, so that the interpreter of each can read it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Workload"]


@dataclass(frozen=True)
class Workload:
    """A line of the table of peers.

    Parameters
    ----------
    name : str
        What is done.
    wanted : float
        Our time by that of the faster peer, at most.
    mx, torch : callable
        ``(framework, *arguments)`` to a function that does it once and waits. None: PyTorch has nothing alike.
    full, quick : tuple
        Arguments of a measurement, and of a trial whether it runs at all.
    loops : int
        How often the function does it in one call, which is then the last of its arguments.
    folder : bool
        Whether the functions take, before the arguments, a folder for files.
    files : callable, optional
        ``(folder, *arguments)`` writes the files that are read, by our side.
    memory : float, optional
        What is wanted of the peak of resident memory, which is measured then, in processes that do nothing else.
    """

    name: str
    wanted: float
    mx: Callable[..., Callable[[], Any]]
    torch: Callable[..., Callable[[], Any]] | None = None
    full: tuple[Any, ...] = ()
    quick: tuple[Any, ...] | None = None
    loops: int = 1
    folder: bool = False
    files: Callable[..., None] | None = None
    memory: float | None = None

    def repeated(self, quick: bool) -> int:
        """How often the function does it in one call."""
        return min(self.loops, 10) if quick else self.loops

    def arguments(self, quick: bool, folder: str) -> tuple[Any, ...]:
        """What the functions take behind the framework."""
        chosen = self.full if self.quick is None or not quick else self.quick
        before = (folder,) if self.folder else ()
        return (*before, *chosen, *([self.repeated(quick)] if self.loops > 1 else ()))
