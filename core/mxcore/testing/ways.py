"""Both ways through operators that have kernels: by the kernels, and by the reference bodies that these stand before.

A test that passes by a kernel says nothing about the body behind it, which other devices run, and so does this one for
the inputs that the kernel does not take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from .._core import tables
from .._core.errors import REFERENCE

__all__ = ["both_ways", "kernels_reached", "reference_bodies", "without_kernels_of"]


@contextmanager
def _instead(name: str, method: Callable[..., Any]) -> Iterator[None]:
    """Another method of the table of kernels, and nothing remembered of what it said before."""
    before = vars(tables.kernels).get(name)
    tables.changed()
    setattr(tables.kernels, name, method)
    try:
        yield
    finally:
        delattr(tables.kernels, name) if before is None else setattr(tables.kernels, name, before)
        tables.changed()


@contextmanager
def kernels_reached() -> Iterator[set[str]]:
    """The names of the operators for which a kernel is chosen inside, eagerly or in a program.

    Yields
    ------
    set of str
        Grows as kernels are chosen.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.testing.ways import kernels_reached
    >>> with kernels_reached() as found:
    ...     y = mx.nd.sum(mx.nd.ones((4, 4)))
    >>> found <= {"sum"}
    True
    """
    found: set[str] = set()
    resolve = tables.kernels.resolve

    def noted(op: Any, *args: Any) -> Any:
        chosen = resolve(op, *args)
        if chosen[2] != REFERENCE or hasattr(op, "bind"):
            found.add(op.name)
        return chosen

    with _instead("resolve", noted):
        yield found


@contextmanager
def reference_bodies() -> Iterator[None]:
    """Kernels are left out inside: the bodies over the device's array namespace compute, eagerly and in programs.

    So are late graph passes, which bring operators that compute several at once.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.testing.ways import kernels_reached, reference_bodies
    >>> with kernels_reached() as found, reference_bodies():
    ...     y = mx.nd.softmax(mx.nd.ones((4, 4)))
    >>> found
    set()
    """
    with _without_late_passes(), _instead("of", lambda device, op: []):
        yield


@contextmanager
def without_kernels_of(owner: str) -> Iterator[None]:
    """The kernels of one plugin, and its late graph passes, are left out inside: those of others, or bodies, compute.

    Parameters
    ----------
    owner : str
        The plugin.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.testing.ways import kernels_reached, without_kernels_of
    >>> with kernels_reached() as found, without_kernels_of("cpu_numba"):
    ...     y = mx.nd.softmax(mx.nd.ones((4, 4)))
    >>> found
    set()
    """
    of = tables.kernels.of
    with (
        _without_late_passes(owner),
        _instead("of", lambda device, op: [k for k in of(device, op) if k.owner != owner]),
    ):
        yield


@contextmanager
def _without_late_passes(owner: str | None = None) -> Iterator[None]:
    """Without the passes, of a plugin or of all, whose operators compute what those of the graph would."""
    from ..executor import passes_off

    table = tables.by_kind["graph_pass"]
    names = [n for n, brought in table.entries().items() if brought.late and owner in (None, table.owners[n])]
    with passes_off(*names) if names else nullcontext():
        yield


def both_ways(run: Callable[[], Any]) -> bool:
    """Run a test; where that chose a kernel, run it once more over the reference bodies. Returns whether it did.

    Parameters
    ----------
    run : callable
        Without arguments.

    Raises
    ------
    AssertionError
        If it fails over the reference bodies, with the names of the operators whose kernels it does well with.
    """
    with kernels_reached() as found:
        run()
    if found:
        try:
            with reference_bodies():
                run()
        except Exception as e:
            raise AssertionError(
                f"with the reference bodies in the place of the kernels of {', '.join(sorted(found))}: {e}"
            ) from e
    return bool(found)
