"""What kernels keep of inputs that stay as they are, such as weights in a layout of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..ndarray.dlpack import OPEN

__all__ = ["Keep", "keeps", "stamps"]


class Keep:
    """What lives as long as a bound step of a program, for its kernel, which gets it as ``k.keep``.

    Parameters
    ----------
    found : mapping of int to object
        Slot -> stamp, as of the call that runs; its owner changes it.
    slots : sequence of int
        Of the inputs.

    Attributes
    ----------
    values : dict
        Whatever the kernel keeps, under names of its own.

    Examples
    --------
    >>> keep = Keep({7: ("storage", 3)}, [6, 7])
    >>> keep.stamp(0), keep.stamp(1)
    (None, ('storage', 3))
    >>> keep.memory(1)
    'storage'
    """

    __slots__ = ("values", "_found", "_slots")

    def __init__(self, found: Mapping[int, Any], slots: Sequence[int]) -> None:
        self.values: dict[str, Any] = {}
        self._found, self._slots = found, slots

    def stamp(self, i: int) -> Any:
        """What is equal, for the `i`-th input, as long as the same memory holds the same values; None: nobody knows."""
        return self._found.get(self._slots[i])

    def memory(self, i: int) -> Any:
        """What stands for the memory of the `i`-th input, whatever values it holds; None: nobody knows."""
        stamp = self._found.get(self._slots[i])
        return None if stamp is None else stamp[0]


def keeps(fn: Any) -> bool:
    """Whether a kernel wants a `Keep`: it has a true attribute of this name."""
    return bool(getattr(fn, "keeps", False))


def stamps(arrays: Iterable[tuple[int, Any]]) -> dict[int, Any]:
    """Slot -> stamp of arrays as they are now; without those into which somebody may write unseen.

    Whose memory lies open (``from_numpy``, DLPack, memory shared with other processes) counts no writes.
    """
    found = {}
    for slot, x in arrays:
        st = x._st
        if st.views < OPEN and x.stype == "default" and st.ctx.device.owns(x._data):
            found[slot] = st, st.version
    return found
