"""Plans: what the library does for one operator and one set of shapes, prepared once and run with any arrays.

Arrays are dense, as NumPy has them; primitives want layouts of their own, in blocks of channels. A plan puts reorders
where they differ. All that lies between lives in memory of the calling thread, which plans share, for they run to their
end: primitives allocate nothing. What a plan has made of inputs that stay as they are, weights in another layout, it
can leave out the next time (:class:`~mxcore_onednn.keeping.Kept`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Mapping, Sequence
from ctypes import c_float
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from mxcore.plugin import memory_layout

from .bound import Bound
from .descs import (
    BY_ARGUMENT,
    DIFF_BIAS,
    DIFF_SRC,
    DIFF_WEIGHTS,
    DST,
    MULTIPLE_SRC,
    QUERY,
    SCRATCHPAD,
    SRC,
    WEIGHTS_ITER,
    Desc,
)
from .keeping import Kept, Part
from .library import Library, Refused
from .rooms import MUCH, LargeRoom, Room, own
from .teams import Threads, alone

__all__ = ["Plan", "Tensor"]

Array = np.ndarray[Any, Any]

_IMPLEMENTATION = 8  # dnnl_query_impl_info_str
#: What lies between begins at multiples of this many bytes times those that `memory_layout` aligns to.
_UNIT = 4
#: Places of a function's vectors that are known at once.
_KNOWN = 8


class Tensor:
    """A place for a value: an array of who calls, or some memory of the thread's.

    Attributes
    ----------
    desc : Desc
    index : int
        Of the plan's tensors; those of its arrays come first.
    array : bool
    sources : frozenset of int or None
        The arrays of which alone it is made, if all of these may be kept something of; else None.
    place : int
        Of the tensor in whose memory it lies: of itself, unless it is another one's read differently.
    """

    __slots__ = ("desc", "index", "array", "sources", "place", "offset")

    def __init__(self, desc: Desc, index: int, array: bool, sources: frozenset[int] | None = None) -> None:
        self.desc, self.index, self.array, self.sources, self.offset = desc, index, array, sources, 0
        self.place = index


class _Step(NamedTuple):
    """A primitive with its arguments, or a function: ``function(where these lie, the values of arrays)``."""

    primitive: int
    args: list[tuple[int, Tensor]]
    function: Callable[..., None] | None = None
    arrays: tuple[int, ...] = ()

    @property
    def made(self) -> list[Tensor]:
        """What it writes, of a step that reorders or makes something."""
        return [t for arg, t in self.args if arg == DST]


class Plan:
    """Primitives in their order, over arrays and what lies between.

    Parameters
    ----------
    lib : Library
    arrays : sequence of Desc
        Of the arrays that :meth:`run` gets.
    steady : collection of int
        Those of them, such as weights, that may stay as they are from call to call.

    Attributes
    ----------
    keeps : dict of int to frozenset of int
        Step whose results can be kept -> the arrays of which it makes them.
    steady : frozenset of int
        All these arrays.
    unread : frozenset of int
        Those of them that nobody reads where all is kept.
    parts : list of Part
        What can be kept together.
    ends : int
        From which step on results are only put where they belong.
    """

    steady: frozenset[int] = frozenset()
    unread: frozenset[int] = frozenset()
    parts: list[Part] = []
    ends = 0
    #: Who wants to know whenever a step is done: gets its number, and first of all -1.
    tick: Callable[[int], None] | None = None

    def __init__(self, lib: Library, arrays: Sequence[Desc], steady: Collection[int] = ()) -> None:
        self.lib = lib
        self.tensors = [Tensor(d, i, True, frozenset([i]) if i in steady else None) for i, d in enumerate(arrays)]
        self.arrays = self.tensors[:]
        self.steps: list[_Step] = []
        self.keeps: dict[int, frozenset[int]] = {}
        self._recipes: dict[int, Any] = {t.index: t.index for t in self.arrays}
        self._reordered: dict[int, list[Tensor]] = {}
        self._idle: list[Bound] = []
        self._owned: list[int] = []
        self._late: list[_Step] = []
        self.scratch = 0
        #: Names of the code for each primitive but reorders, and of functions.
        self.codes: list[str] = []
        #: First step, numbers of layers and owner of each group that is computed together, if who makes it notes them.
        self.groups: list[tuple[int, tuple[int, ...], str]] = []
        self.workers: int = lib.openmp.omp_get_max_threads()  # as `plan_for` has set it

    # -- make ------------------------------------------------------------------------------------------------------
    def add(self, desc: int, args: Mapping[int, int | Tensor | None], reference: bool = False) -> dict[int, Tensor]:
        """Run a primitive.

        Parameters
        ----------
        desc : int
            Its descriptor, owned from now on.
        args : mapping
            Argument -> number of an array, or a tensor, which are reordered before or after if they have another
            layout; or None, for a result that shall lie between, as the primitive likes it.
        reference : bool
            It may be what the library calls its reference.

        Returns
        -------
        dict of int to Tensor
            Argument -> what the primitive reads or writes itself.

        Raises
        ------
        Refused
            If the library has only its reference for it.
        """
        lib = self.lib
        try:
            code = self.code(desc)
            if not reference and b"ref" in code:
                raise Refused("oneDNN: it has no code but its reference for this")
            self.codes.append(code.decode())
            bound = {}
            for arg, value in args.items():
                wanted = self._queried(desc, arg)
                if value is None:
                    if wanted is None:
                        raise Refused(f"oneDNN: it does not tell the layout of argument {arg}")
                    bound[arg] = self.between(wanted)
                    continue
                tensor = self.arrays[value] if isinstance(value, int) else value
                writes = arg in (DST, DIFF_SRC, DIFF_WEIGHTS, DIFF_BIAS)
                bound[arg] = self._place(tensor, wanted, writes)
            primitive = self._primitive(desc, bound)
        finally:
            lib.primitive_desc_destroy(desc)
        self.steps.append(primitive)
        return bound

    def code(self, desc: int) -> bytes:
        """The name of the library's code for a primitive."""
        code = ctypes.c_char_p()
        self.lib.primitive_desc_query(desc, _IMPLEMENTATION, 0, ctypes.byref(code))
        return code.value or b"ref"

    def _primitive(self, desc: int, bound: Mapping[int, Tensor]) -> _Step:
        args = [*bound.items()]
        scratch = self._queried(desc, SCRATCHPAD)
        if scratch is not None and scratch.size:
            args.append((SCRATCHPAD, self.between(scratch)))
        primitive = self.lib.new("primitive_create", desc)
        self._owned.append(primitive)
        return _Step(primitive, args)

    def _queried(self, desc: int, arg: int) -> Desc | None:
        if arg == WEIGHTS_ITER:
            handle = self.lib.primitive_desc_query_md(desc, BY_ARGUMENT, arg)
        elif arg in QUERY:
            handle = self.lib.primitive_desc_query_md(desc, QUERY[arg], 0)
        else:
            return None
        return Desc(self.lib, self.lib.new("memory_desc_clone", handle)) if handle else None

    def between(self, desc: Desc, sources: frozenset[int] | None = None) -> Tensor:
        """Memory for what lies between."""
        tensor = Tensor(desc, len(self.tensors), False, sources)
        self.tensors.append(tensor)
        return tensor

    def make(self, make: Callable[..., None], arrays: Sequence[int], shapes: Sequence[Sequence[int]]) -> list[Tensor]:
        """Let a function make float32 tensors: ``make(*their arrays, *the arrays of these numbers)``."""
        known = [self.arrays[i].sources for i in arrays]
        sources = None if None in known else frozenset().union(*known)  # type: ignore[arg-type]
        made = [self.between(Desc.dense(self.lib, shape), sources) for shape in shapes]
        recipe = _named(make), tuple(arrays), tuple(map(tuple, shapes))
        self._recipes.update((t.index, (i, recipe)) for i, t in enumerate(made))
        if sources:
            self.keeps[len(self.steps)] = sources
        self.steps.append(_Step(0, [(DST, t) for t in made], _into(make, shapes), tuple(arrays)))
        return made

    def call(self, code: str, function: Callable[..., None], reads: Sequence[Tensor], out: Tensor) -> None:
        """Let a function compute a float32 tensor of others: ``function(*their numbers, its numbers)``, in vectors."""
        self.codes.append(code)
        args = [*((MULTIPLE_SRC + i, t) for i, t in enumerate(reads)), (DST, out)]
        self.steps.append(_Step(0, args, _over(function, [t.desc.size // 4 for _, t in args])))

    def _place(self, tensor: Tensor, wanted: Desc | None, writes: bool) -> Tensor:
        if wanted is None or wanted == tensor.desc:
            return tensor
        if writes:
            made = self.between(wanted)
            self._late.append(self._reorder(made, tensor))
            return made
        return self.reordered(tensor, wanted)

    def laid(self, tensor: Tensor, wanted: Desc) -> Tensor:
        """A tensor in a layout: itself, if that is its own."""
        return self._place(tensor, wanted, writes=False)

    def reordered(self, tensor: Tensor, wanted: Desc, anew: bool = False) -> Tensor:
        """A tensor in another layout, or, `anew`, in memory of its own, whatever the layout."""
        known = self._reordered.setdefault(tensor.index, [])
        found = None if anew else next((t for t in known if t.desc == wanted), None)
        if found is None:
            found = self.between(wanted, tensor.sources)
            self._recipes[found.index] = ("reordered", self._recipes.get(tensor.index))
            if tensor.sources and not anew:
                self.keeps[len(self.steps)] = tensor.sources
            self.steps.append(self._reorder(tensor, found))
            if not anew:
                known.append(found)
        return found

    def result_over(self, desc: int, tensor: Tensor, free: bool) -> Tensor:
        """Where a primitive that adds its result to what is there finds a tensor: itself if it is `free`, or a copy."""
        wanted = self._queried(desc, DST)
        if wanted is None:
            raise Refused("oneDNN: it does not tell the layout of a result")
        return self.over(wanted, tensor, free)

    def over(self, wanted: Desc, tensor: Tensor, free: bool) -> Tensor:
        """A tensor in a layout, that may be written over."""
        if not free or tensor.desc != wanted:
            return self.reordered(tensor, wanted, anew=True)
        self._reordered.pop(tensor.index, None)  # it becomes another value
        return tensor

    def move(self, source: Tensor, desc: Desc, array: int) -> None:
        """Reorder what lies between to an array, read as if it were of another dtype of the same size."""
        read = self.between(desc)
        read.place = source.index
        self.steps.append(self._reorder(read, self.arrays[array]))

    def deliver(self, tensor: Tensor, array: Tensor) -> None:
        """Let the value be in an array at the end."""
        if tensor is not array:
            self._late.append(self._reorder(tensor, array))

    def _reorder(self, source: Tensor, target: Tensor) -> _Step:
        lib = self.lib
        desc = lib.new(
            "reorder_primitive_desc_create", source.desc.handle, lib.engine, target.desc.handle, lib.engine, lib.attr
        )
        try:
            return self._primitive(desc, {SRC: source, DST: target})
        finally:
            lib.primitive_desc_destroy(desc)

    def done(self) -> Plan:
        """No more primitives; the results are put in order, and memory is laid out."""
        self.ends = len(self.steps)
        self.steps += self._late
        lives: dict[int, list[int]] = {}
        for i, step in enumerate(self.steps):
            for _, tensor in step.args:
                if not tensor.array:
                    lives.setdefault(tensor.place, [i, i])[1] = i
        sizes = {i: -(-self.tensors[i].desc.size // _UNIT) for i in lives}
        offsets, total = memory_layout((sizes[i], first, last) for i, (first, last) in lives.items())
        for i, offset in zip(lives, offsets):
            self.tensors[i].offset = offset * _UNIT
        for tensor in self.tensors:
            tensor.offset = self.tensors[tensor.place].offset
        self.scratch = total * _UNIT
        self.steady = frozenset().union(*self.keeps.values())
        # What is read only to make something else that is kept goes with the call.
        read = {t.index for i, step in enumerate(self.steps) if i not in self.keeps for _, t in step.args}
        self.unread, self.parts = self.steady - read, self._parts(read)
        return self

    def _parts(self, read: Collection[int]) -> list[Part]:
        """What can be kept of the tensors that further steps `read`, by the arrays that it is made of."""
        steps: dict[frozenset[int], list[int]] = {}
        for i, sources in self.keeps.items():
            steps.setdefault(sources, []).append(i)
        parts = []
        for sources, numbers in steps.items():
            arrays = sorted(sources)
            tensors = [t for i in numbers for t in self.steps[i].made if t.index in read]
            recipe = tuple(arrays), tuple(self._recipes[t.index] for t in tensors)
            descs = [self.arrays[a].desc for a in arrays] + [t.desc for t in tensors]
            parts.append(Part(arrays, numbers, tensors, recipe, descs))
        return parts

    # -- run -------------------------------------------------------------------------------------------------------
    def run(self, *arrays: Array, kept: Kept | None = None, room: LargeRoom | None = None) -> None:
        """Do it, with arrays in C order of the shapes and dtypes that it was made for.

        Parameters
        ----------
        *arrays : ndarray
        kept : Kept, optional
            Of this plan: what it holds is not made again.
        room : LargeRoom, optional
            For what lies between, if it is much; else it lies in memory of the thread's.

        Raises
        ------
        Refused
            If the library fails, has no memory, or was asked for arrays of other sizes.
        """
        if kept is not None and kept.plan is not self:  # the number of threads has changed meanwhile
            kept = None
        try:
            bound = self._idle.pop()
        except IndexError:
            bound = Bound(self)
        self._run(bound, arrays, kept, room)
        self._idle.append(bound)

    def run_kept(self, bound: Bound, arrays: Sequence[Array], kept: Kept | None) -> None:
        """Do it, as `run`, with memory objects of the caller's."""
        self._run(bound, arrays, kept, None)

    def _run(self, bound: Bound, arrays: Sequence[Array], kept: Kept | None, room: LargeRoom | None) -> None:
        if alone() and self.workers > 1:
            raise Refused("a forked child has one thread, this was made for more")
        lender: Room = own.room if room is None or self.scratch < MUCH else room
        with Threads(self.lib, self.workers), lender.lent() as place:
            bound.run(self, arrays, kept, place)

    def bound(self) -> Bound:
        """Memory objects for whoever runs it often."""
        return Bound(self)

    def run_bound(self, bound: Bound) -> bool:
        """Do it with arrays that have their places already; False if the thread's memory is in use."""
        room = own.room
        if room.busy:
            return False
        lib, n = self.lib, self.workers
        before = lib.openmp.omp_get_max_threads()
        room.busy = True
        try:
            if self.scratch:
                bound.move(len(self.arrays), room.at(self.scratch))
            if before != n:
                lib.openmp.omp_set_num_threads(n)
            for primitive, stream, count, args, _ in bound.calls:
                lib.primitive_execute(primitive, stream, count, args)
        finally:
            if before != n:
                lib.openmp.omp_set_num_threads(before)
            room.busy = False
        return True

    def __del__(self) -> None:
        for primitive in self._owned:
            self.lib.primitive_destroy(primitive)


def _into(make: Callable[..., None], shapes: Sequence[Sequence[int]]) -> Callable[..., None]:
    """The function over addresses of memory in the place of the arrays that it fills."""

    def shaped(*vectors: Array) -> None:
        outs = [out.reshape(shape) for out, shape in zip(vectors, shapes)]
        make(*outs, *vectors[len(outs) :])

    return _over(shaped, [prod(shape) for shape in shapes])


def _over(function: Callable[..., None], sizes: Sequence[int]) -> Callable[..., None]:
    """The function over addresses of memory in the place of its first vectors; these are the same again and again."""
    kinds = [c_float * size for size in sizes]
    known: dict[tuple[int, ...], list[Array]] = {}

    def call(places: Sequence[int], arrays: Sequence[Array]) -> None:
        key = tuple(places)
        vectors = known.get(key)
        if vectors is None:
            if len(known) >= _KNOWN:
                known.clear()
            vectors = [np.ctypeslib.as_array(kind.from_address(at)) for kind, at in zip(kinds, places)]
            known[key] = vectors
        function(*vectors, *arrays)

    return call


def _named(make: Callable[..., None]) -> Any:
    """Equal for functions that do the same."""
    return (make.func, make.args, *make.keywords.items()) if isinstance(make, partial) else make
