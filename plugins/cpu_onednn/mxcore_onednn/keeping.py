"""What plans make of inputs that stay as they are, such as weights in another layout, and need not make again."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from mxcore.plugin import hold_at_fork

from .descs import Desc
from .library import NoMemory
from .rooms import aligned

if TYPE_CHECKING:
    from .plan import Plan, Tensor

__all__ = ["NOTHING", "Copy", "Kept", "Part", "Settled", "held"]


class Part(NamedTuple):
    """What a plan makes of some arrays, and can keep of them.

    Attributes
    ----------
    arrays, steps : list of int
    tensors : list of Tensor
        What is read by further steps.
    recipe : hashable
        With `descs` equal for parts that make the same of the same arrays.
    descs : list of Desc
        Of the arrays and of the tensors.
    """

    arrays: list[int]
    steps: list[int]
    tensors: list[Tensor]
    recipe: Any
    descs: list[Desc]


class Copy(NamedTuple):
    """What was made of arrays: nobody writes to it any more.

    Attributes
    ----------
    stamps : list
        Of the arrays at that time.
    places : list of int
        Of the part's tensors.
    """

    stamps: list[Any]
    places: list[int]
    memory: list[np.ndarray[Any, Any]]


class Settled(NamedTuple):
    """All that a plan can keep, as long as the stamps are these: the steps that are done, and what they have made."""

    stamps: Mapping[int, Any]
    done: frozenset[int]
    held: list[tuple[Part, Copy]]


#: Of calls that keep nothing.
NOTHING = Settled({}, frozenset(), [])


class _Shelf:
    """Where the last copy of what is made of arrays stands, for all plans that make the same of them."""

    __slots__ = ("key", "descs", "copy", "__weakref__")

    def __init__(self, key: Any, descs: list[Desc]) -> None:
        self.key, self.descs = key, descs
        self.copy: Copy | None = None


#: By recipe and arrays, and numbered where layouts differ. They go with those who keep something there.
_shelves: WeakValueDictionary[Any, _Shelf] = WeakValueDictionary()
#: Of the dictionary. A signal handler may come in between.
_lock = threading.RLock()
hold_at_fork(_lock)


class Kept:
    """What a plan makes of inputs that stay as they are, for as long as they do.

    Plans that make the same of the same arrays share it, such as those of one layer for several sizes of images.

    Parameters
    ----------
    plan : Plan
    stamps : mapping of int to object, optional
        Array -> what is equal as long as it stays as it is; None: it may change unseen. Its owner changes it.

    Attributes
    ----------
    stamps : mapping of int to object
        Array -> its stamp at this call.
    memories : mapping of int to object
        Array -> what stands for its memory, whatever is there.
    """

    __slots__ = ("plan", "stamps", "memories", "_shelves", "_settled")

    def __init__(self, plan: Plan, stamps: Mapping[int, Any] | None = None) -> None:
        self.plan = plan
        self.stamps: Mapping[int, Any] = stamps or {}
        #: Else nobody shares it.
        self.memories: Mapping[int, Any] = dict.fromkeys(plan.steady, object())
        self._shelves: list[_Shelf | None] = [None] * len(plan.parts)
        self._settled: Settled | None = None

    @property
    def settled(self) -> Settled | None:
        """All of it, if it is of the inputs as they are: that is while its owner leaves the same object as `stamps`."""
        found = self._settled
        return found if found is not None and found.stamps is self.stamps else None

    def settle(self, held: list[tuple[Part, Copy]]) -> Settled:
        """Note that all of it is there."""
        self._settled = Settled(self.stamps, frozenset(self.plan.keeps), held)
        return self._settled

    def known(self, part: Part) -> list[Any] | None:
        """The stamps of a part's arrays; None if one may change unseen."""
        found = [self.stamps[a] for a in part.arrays]
        return None if None in found else found

    @property
    def filled(self) -> bool:
        """Whether all of it is there, and of the inputs as they are."""
        return all(self.copy(i) is not None for i in range(len(self.plan.parts)))

    def copy(self, number: int) -> Copy | None:
        """What there is of a part, made of its arrays as they are."""
        shelf = self._shelf(number)
        found = None if shelf is None else shelf.copy
        return found if found is not None and found.stamps == self.known(self.plan.parts[number]) else None

    def begin(self, number: int) -> Copy | None:
        """Memory for a part that is made anew, if it can be kept; what was made of the arrays before is let go."""
        part, shelf = self.plan.parts[number], self._shelf(number)
        stamps = self.known(part)
        if shelf is None or stamps is None:
            return None
        shelf.copy = None
        try:
            made = [aligned(t.desc.size) for t in part.tensors]
        except NoMemory:
            return None
        return Copy(stamps, [at for _, at in made], [memory for memory, _ in made])

    def end(self, number: int, copy: Copy) -> None:
        """It is made."""
        shelf = self._shelves[number]
        assert shelf is not None
        shelf.copy = copy

    def _shelf(self, number: int) -> _Shelf | None:
        part = self.plan.parts[number]
        if self.known(part) is None:
            return None
        key = part.recipe, tuple(self.memories[a] for a in part.arrays)
        shelf = self._shelves[number]
        if shelf is None or shelf.key != key:
            with _lock:
                for i in itertools.count():
                    shelf = _shelves.get((i, key))
                    if shelf is None:
                        shelf = _shelves[i, key] = _Shelf(key, part.descs)
                    if shelf.descs == part.descs:
                        break
            self._shelves[number] = shelf
        return shelf


def held() -> int:
    """Bytes of all that is kept."""
    with _lock:
        shelves = [*_shelves.values()]
    return sum(m.nbytes for shelf in shelves if (copy := shelf.copy) is not None for m in copy.memory)
