"""Plans: what the library does for one operator and one set of shapes, prepared once and run with any arrays.

Arrays are dense, as NumPy has them; primitives want layouts of their own, in blocks of channels. A plan puts reorders
where they differ. All that lies between lives in memory of the calling thread, which plans share, for they run to their
end: primitives allocate nothing. What a plan has made of inputs that stay as they are, weights in another layout, it
can leave out the next time (:class:`Kept`).
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from ctypes import c_float, c_int, c_int64, c_void_p
from functools import partial
from math import prod
from typing import Any, NamedTuple
from weakref import WeakSet, WeakValueDictionary

import numpy as np

from mxcore.plugin import at_fork, hold_at_fork, memory_layout

from .library import Library, NoMemory, Refused, library, threads

__all__ = ["MUCH", "Desc", "Kept", "LargeRoom", "Plan", "Room", "Tensor", "plan_for"]

Array = np.ndarray[Any, Any]

#: ``dnnl_f32`` and others, by dtype.
_CODES = {"bfloat16": 2, "float32": 3, "int32": 4, "int8": 5, "uint8": 6}
_ANY = 1  # dnnl_format_tag_any
_BLOCKS = {3: 69, 4: 102, 5: 142}  # dnnl_nCw8c, dnnl_nChw8c, dnnl_nCdhw8c
TRAINING, INFERENCE = 64, 96  # dnnl_forward_training and others
SRC, DST, WEIGHTS, BIAS, WORKSPACE, SCRATCHPAD = 1, 17, 33, 41, 64, 80
MULTIPLE_SRC = 1024
DIFF_SRC, DIFF_DST, DIFF_WEIGHTS, DIFF_BIAS = 129, 145, 161, 169
#: Which descriptor of a primitive an argument has.
_QUERIED = SRC, DIFF_SRC, WEIGHTS, DIFF_WEIGHTS, DST, DIFF_DST, WORKSPACE, SCRATCHPAD
_QUERY = {arg: 129 + i for i, arg in enumerate(_QUERIED)}
#: Of recurrent layers: first states and last ones, and the weights of the state; their descriptors go by argument.
SRC_ITER, SRC_ITER_C, DST_ITER, DST_ITER_C, WEIGHTS_ITER = 2, 3, 18, 19, 34
_BY_ARGUMENT = 255  # dnnl_query_exec_arg_md
_IMPLEMENTATION = 8  # dnnl_query_impl_info_str
_ALIGNED = 64
#: What lies between begins at multiples of this many bytes times those that `memory_layout` aligns to.
_UNIT = 4
#: Places of a function's vectors that are known at once.
_KNOWN = 8


class _Arg(ctypes.Structure):
    _fields_ = [("arg", c_int), ("memory", c_void_p)]


def dims(values: Sequence[int]) -> Any:
    """Numbers as the library takes dimensions."""
    return (c_int64 * 12)(*values)


class Desc:
    """Shape, dtype and layout of a tensor.

    Parameters
    ----------
    lib : Library
    handle : int
        Owned from now on.
    """

    __slots__ = ("lib", "handle", "size")

    def __init__(self, lib: Library, handle: int) -> None:
        self.lib, self.handle = lib, handle
        self.size: int = lib.memory_desc_get_size(handle)

    def __del__(self) -> None:
        self.lib.memory_desc_destroy(self.handle)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Desc) and bool(self.lib.memory_desc_equal(self.handle, other.handle))

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def dense(
        cls, lib: Library, shape: Sequence[int], dtype: str = "float32", order: Sequence[int] | None = None
    ) -> Desc:
        """Of an array in C order; `order` tells its axes, if the library names them in another order."""
        strides, n = [1] * len(shape), len(shape)
        for i in range(n - 2, -1, -1):
            strides[i] = strides[i + 1] * shape[i + 1]
        axes = range(n) if order is None else order
        args = n, dims([shape[a] for a in axes]), _CODES[dtype], dims([strides[a] for a in axes])
        return cls(lib, lib.new("memory_desc_create_with_strides", *args))

    @classmethod
    def any(cls, lib: Library, shape: Sequence[int], dtype: str = "float32") -> Desc:
        """In the layout that a primitive likes best."""
        return cls(lib, lib.new("memory_desc_create_with_tag", len(shape), dims(shape), _CODES[dtype], _ANY))

    @classmethod
    def blocks(cls, lib: Library, shape: Sequence[int]) -> Desc:
        """Of images (n, c, *size), eight channels side by side."""
        return cls(
            lib, lib.new("memory_desc_create_with_tag", len(shape), dims(shape), _CODES["float32"], _BLOCKS[len(shape)])
        )

    @classmethod
    def image(cls, lib: Library, shape: Sequence[int], last: bool, dtype: str = "float32") -> Desc:
        """Of an array of images (n, c, *size), of which the library has the channels second, wherever they lie."""
        return cls.channels_last(lib, shape) if last else cls.dense(lib, shape, dtype)

    @classmethod
    def channels_last(cls, lib: Library, shape: Sequence[int]) -> Desc:
        """Of images (n, c, *size), the channels of a place side by side."""
        n, c, *size = shape
        strides = [c * prod(size), 1, *(c * prod(size[i + 1 :]) for i in range(len(size)))]
        args = len(shape), dims(shape), _CODES["float32"], dims(strides)
        return cls(lib, lib.new("memory_desc_create_with_strides", *args))


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
    parts : list of _Part
        What can be kept together.
    """

    steady: frozenset[int] = frozenset()
    unread: frozenset[int] = frozenset()
    parts: list[_Part] = []

    def __init__(self, lib: Library, arrays: Sequence[Desc], steady: Collection[int] = ()) -> None:
        self.lib = lib
        self.tensors = [Tensor(d, i, True, frozenset([i]) if i in steady else None) for i, d in enumerate(arrays)]
        self.arrays = self.tensors[:]
        self.steps: list[_Step] = []
        self.keeps: dict[int, frozenset[int]] = {}
        self._recipes: dict[int, Any] = {t.index: t.index for t in self.arrays}
        self._reordered: dict[int, list[Tensor]] = {}
        self._idle: list[_Bound] = []
        self._owned: list[int] = []
        self._late: list[_Step] = []
        self.scratch = 0
        #: Names of the code for each primitive but reorders, and of functions.
        self.codes: list[str] = []
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
            handle = self.lib.primitive_desc_query_md(desc, _BY_ARGUMENT, arg)
        elif arg in _QUERY:
            handle = self.lib.primitive_desc_query_md(desc, _QUERY[arg], 0)
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

    def _parts(self, read: Collection[int]) -> list[_Part]:
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
            parts.append(_Part(arrays, numbers, tensors, recipe, descs))
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
            bound = _Bound(self)
        self._run(bound, arrays, kept, room)
        self._idle.append(bound)

    def run_kept(self, bound: _Bound, arrays: Sequence[Array], kept: Kept | None) -> None:
        """Do it, as `run`, with memory objects of the caller's."""
        self._run(bound, arrays, kept, None)

    def _run(self, bound: _Bound, arrays: Sequence[Array], kept: Kept | None, room: LargeRoom | None) -> None:
        if _alone and self.workers > 1:
            raise Refused("a forked child has one thread, this was made for more")
        lender: Room = _own.room if room is None or self.scratch < MUCH else room
        with Threads(self.lib, self.workers), lender.lent() as place:
            bound.run(self, arrays, kept, place)

    def bound(self) -> _Bound:
        """Memory objects for whoever runs it often."""
        return _Bound(self)

    def run_bound(self, bound: _Bound) -> bool:
        """Do it with arrays that have their places already; False if the thread's memory is in use."""
        room = _own.room
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


class _Part(NamedTuple):
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


class _Copy(NamedTuple):
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
    memory: list[Array]


class _Settled(NamedTuple):
    """All that a plan can keep, as long as the stamps are these: the steps that are done, and what they have made."""

    stamps: Mapping[int, Any]
    done: frozenset[int]
    held: list[tuple[_Part, _Copy]]


#: Of calls that keep nothing.
_NOTHING = _Settled({}, frozenset(), [])


class _Shelf:
    """Where the last copy of what is made of arrays stands, for all plans that make the same of them."""

    __slots__ = ("key", "descs", "copy", "__weakref__")

    def __init__(self, key: Any, descs: list[Desc]) -> None:
        self.key, self.descs = key, descs
        self.copy: _Copy | None = None


#: By recipe and arrays, and numbered where layouts differ. They go with those who keep something there.
_shelves: WeakValueDictionary[Any, _Shelf] = WeakValueDictionary()


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
        self._settled: _Settled | None = None

    @property
    def settled(self) -> _Settled | None:
        """All of it, if it is of the inputs as they are: that is while its owner leaves the same object as `stamps`."""
        found = self._settled
        return found if found is not None and found.stamps is self.stamps else None

    def settle(self, held: list[tuple[_Part, _Copy]]) -> _Settled:
        """Note that all of it is there."""
        self._settled = _Settled(self.stamps, frozenset(self.plan.keeps), held)
        return self._settled

    def known(self, part: _Part) -> list[Any] | None:
        """The stamps of a part's arrays; None if one may change unseen."""
        found = [self.stamps[a] for a in part.arrays]
        return None if None in found else found

    @property
    def filled(self) -> bool:
        """Whether all of it is there, and of the inputs as they are."""
        return all(self.copy(i) is not None for i in range(len(self.plan.parts)))

    def copy(self, number: int) -> _Copy | None:
        """What there is of a part, made of its arrays as they are."""
        shelf = self._shelf(number)
        found = None if shelf is None else shelf.copy
        return found if found is not None and found.stamps == self.known(self.plan.parts[number]) else None

    def begin(self, number: int) -> _Copy | None:
        """Memory for a part that is made anew, if it can be kept; what was made of the arrays before is let go."""
        part, shelf = self.plan.parts[number], self._shelf(number)
        stamps = self.known(part)
        if shelf is None or stamps is None:
            return None
        shelf.copy = None
        try:
            made = [_aligned(t.desc.size) for t in part.tensors]
        except NoMemory:
            return None
        return _Copy(stamps, [at for _, at in made], [memory for memory, _ in made])

    def end(self, number: int, copy: _Copy) -> None:
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


class _Bound:
    """A plan's memory objects, for one call at a time."""

    __slots__ = ("lib", "stream", "memories", "places", "between", "calls", "live", "base", "settled")

    def __init__(self, plan: Plan) -> None:
        lib = self.lib = plan.lib
        self.memories: list[int] = []
        #: Where each memory lies; in programs arrays stay where they are.
        self.places = [0] * len(plan.tensors)
        self.between = [t.offset for t in plan.tensors if not t.array]
        self.stream = lib.new("stream_create", lib.engine, 1)
        for t in plan.tensors:
            self.memories.append(lib.new("memory_create", t.desc.handle, lib.engine, None))
        self.calls: list[tuple[Any, ...]] = []
        for step in plan.steps:
            packed = (_Arg * len(step.args))(*[_Arg(arg, self.memories[t.index]) for arg, t in step.args])
            self.calls.append((step.primitive, self.stream, len(step.args), ctypes.cast(packed, c_void_p), packed))
        #: The arrays that are read or written where all that can be kept is.
        self.live = [i for i in range(len(plan.arrays)) if i not in plan.unread]
        self.base = 0
        #: What was kept at the last call, if that was all that can be.
        self.settled: _Settled | None = None

    def run(self, plan: Plan, arrays: Sequence[Array], kept: Kept | None, room: Room) -> None:
        """Do it: where nothing but some arrays has moved since the last call, in a few steps of Python's."""
        base, settled = room.at(plan.scratch), _NOTHING if kept is None else kept.settled
        if settled is None or settled is not self.settled or base != self.base:
            self._anew(plan, arrays, kept, base)
            return
        places = self.places
        for i in range(len(arrays)) if kept is None else self.live:
            place = self._address(plan, arrays, i)
            if place != places[i]:
                self.lib.memory_set_data_handle(self.memories[i], place)
                places[i] = place
        self._execute(plan, arrays, settled.done)

    @staticmethod
    def _address(plan: Plan, arrays: Sequence[Array], i: int) -> int:
        a = arrays[i]
        if a.nbytes != plan.arrays[i].desc.size:
            raise Refused(f"an array of {a.shape} {a.dtype} is not what this was made for")
        return int(a.__array_interface__["data"][0])

    def _anew(self, plan: Plan, arrays: Sequence[Array], kept: Kept | None, base: int) -> None:
        done: set[int] = set()
        held: list[tuple[_Part, _Copy]] = []
        fresh: list[tuple[int, _Copy]] = []
        for i, part in enumerate(plan.parts) if kept is not None else ():
            copy = kept.copy(i)  # type: ignore[union-attr]
            if copy is not None:
                done.update(part.steps)
            elif (copy := kept.begin(i)) is not None:  # type: ignore[union-attr]
                fresh.append((i, copy))
            if copy is not None:
                held.append((part, copy))
        places = self.places.copy()
        # What nobody reads now may lie anywhere.
        for i in self.live if len(done) == len(plan.keeps) else range(len(arrays)):
            places[i] = self._address(plan, arrays, i)
        places[len(arrays) :] = [base + offset for offset in self.between]
        for part, copy in held:
            for t, place in zip(part.tensors, copy.places):
                places[t.index] = place
        for i, place in enumerate(places):
            if place != self.places[i]:
                self.place(i, place)
        self._execute(plan, arrays, done)
        for i, copy in fresh:
            kept.end(i, copy)  # type: ignore[union-attr]
        self.base, self.settled = base, _NOTHING if kept is None else None
        if kept is not None and len(held) == len(plan.parts):
            self.settled = kept.settle(held)

    def place(self, i: int, address: int) -> None:
        """Let a tensor lie somewhere."""
        self.lib.memory_set_data_handle(self.memories[i], address)
        self.places[i] = address

    def move(self, first: int, base: int) -> None:
        """Let what lies between, of tensors from the `first` on, lie in memory that begins here."""
        if base != self.base:
            for i, offset in enumerate(self.between, first):
                self.place(i, base + offset)
            self.base = base

    def _execute(self, plan: Plan, arrays: Sequence[Array], done: Collection[int]) -> None:
        execute, places = self.lib.primitive_execute, self.places
        for i, (primitive, stream, count, args, _) in enumerate(self.calls):
            if i in done:
                continue
            if primitive:
                execute(primitive, stream, count, args)
            else:
                step = plan.steps[i]
                try:
                    step.function([places[t.index] for _, t in step.args], [arrays[a] for a in step.arrays])  # type: ignore[misc]
                except MemoryError as e:
                    raise NoMemory(f"no memory for a step of a plan: {e}") from e

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # there was no memory for one, or an interrupt came
            for memory in self.memories:
                self.lib.memory_destroy(memory)
            self.lib.stream_destroy(self.stream)


def _aligned(size: int) -> tuple[np.ndarray[Any, Any], int]:
    """So many bytes, and where they begin."""
    try:
        memory = np.empty(size + _ALIGNED, np.uint8)
    except MemoryError as e:
        raise NoMemory(f"no memory for {size} bytes: {e}") from e
    address = memory.ctypes.data
    return memory, address + -address % _ALIGNED


class Room:
    """Memory for what lies between, for one call at a time."""

    memory: Array | None = None
    place = 0
    busy = False

    @contextlib.contextmanager
    def lent(self) -> Iterator[Room]:
        """For a call; one in the middle of another, by a signal handler or a finalizer, gets one of its own."""
        room = Room() if self.busy else self
        room.busy = True
        try:
            yield room
        finally:
            room.busy = False

    def at(self, size: int) -> int:
        """Where so many bytes begin; what lies there stays until the next call."""
        if self.memory is None or self.memory.nbytes < size + _ALIGNED:
            self.memory = None  # before others are asked for
            self.memory, self.place = _aligned(size)
        return self.place


class LargeRoom(Room):
    """A room of which there is one for all calls that do not run at the same time.

    It stays as long as one of those who have had it.
    """

    _all: WeakSet[Room] = WeakSet()
    _mine: Room | None = None

    @contextlib.contextmanager
    def lent(self) -> Iterator[Room]:
        with _lock:
            room = self._mine
            if room is None or room.busy:
                room = self._mine = next((r for r in self._all if not r.busy), None) or Room()
                self._all.add(room)
            room.busy = True
        try:
            yield room
        finally:
            room.busy = False


class _Own(threading.local):
    """A thread's room for all its plans.

    Whoever uses it holds the room itself: what belongs to daemon threads is dropped at the end of the process, while
    they still compute.
    """

    def __init__(self) -> None:
        self.room = Room()


_own = _Own()
#: A plan that needs more bytes gets a room that goes with its users, if any: what a thread has stays for good.
MUCH = 1 << 24


# -- one for each operator and set of shapes ------------------------------------------------------------------------
_LIMIT = 512
#: Less work than this is done before another thread has heard of it.
_LITTLE = 1 << 18
_plans: OrderedDict[Any, Plan | Refused] = OrderedDict()
#: Of the dictionary; and of who makes a plan, which takes long for many layers. A signal handler may come in between.
_lock, _making = threading.RLock(), threading.RLock()
_alone = False  # in a forked child, where the library's threads are not


def _in_child() -> None:
    global _alone
    _alone = True


at_fork(after_in_child=_in_child)
# Nobody makes a plan while the process is forked: the library's own locks are free in the child. The last comes first.
hold_at_fork(_lock)
hold_at_fork(_making)


def workers(work: float = _LITTLE) -> int:
    """How many threads the library may use in the calling thread for so many multiplications."""
    return 1 if _alone or work < _LITTLE else threads().count()


def plan_for(
    key: tuple[Any, ...], make: Callable[[Library], Plan], work: float, refused: list[Refused] | None = None
) -> Plan | None:
    """The plan of an operator and its shapes, made once for each number of threads; None if the library refuses it.

    Where there is no memory it is tried again at the next call.

    Parameters
    ----------
    key : tuple
        Operator, shapes, parameters.
    make : callable
        ``(library) -> Plan``, which may raise `Refused`.
    work : float
        Multiplications: a little is done by one thread.
    refused : list, optional
        Gets what `make` has raised.
    """
    key = (workers(work), *key)
    found = _known(key)
    lib = library() if found is None else None
    if lib is not None:
        with _making:
            found = _known(key)
            if found is None:
                try:
                    with Threads(lib, key[0]):
                        found = make(lib)
                except NoMemory:
                    return None
                except Refused as e:
                    found = e.with_traceback(None)  # which holds what was made so far
                with _lock:
                    _plans[key] = found
                    if len(_plans) > _LIMIT:
                        _plans.popitem(last=False)
    if isinstance(found, Refused) and refused is not None:
        refused.append(found)
    return found if isinstance(found, Plan) else None


def _known(key: Any) -> Plan | Refused | None:
    with _lock:
        if key not in _plans:
            return None
        _plans.move_to_end(key)
        return _plans[key]


class Threads:
    """``with Threads(lib, n)``: OpenMP takes so many threads for what the calling thread starts."""

    __slots__ = ("lib", "n", "before")

    def __init__(self, lib: Library, n: int) -> None:
        self.lib, self.n = lib, n

    def __enter__(self) -> None:
        self.before = self.lib.openmp.omp_get_max_threads()
        if self.before != self.n:
            try:
                self.lib.openmp.omp_set_num_threads(self.n)
            except BaseException:  # an interrupt behind it
                self.__exit__()
                raise

    def __exit__(self, *exc: object) -> None:
        if self.before != self.n:
            self.lib.openmp.omp_set_num_threads(self.before)
