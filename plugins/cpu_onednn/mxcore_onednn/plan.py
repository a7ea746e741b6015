"""Plans: what the library does for one operator and one set of shapes, prepared once and run with any arrays.

Arrays are dense, as NumPy has them; primitives want layouts of their own, in blocks of channels. A plan puts reorders
where they differ. All that lies between lives in memory of the calling thread, which plans share, for they run to their
end: a call allocates nothing. What a plan has reordered of an input that stays as it is, it can leave out the next time
(:class:`Kept`).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_int, c_int64, c_void_p
from typing import Any

import numpy as np

from .library import Library, NoMemory, Refused, library, threads

__all__ = ["Desc", "Kept", "Plan", "Tensor", "plan_for"]

#: ``dnnl_f32`` and others, by dtype.
_CODES = {"bfloat16": 2, "float32": 3, "int32": 4, "int8": 5, "uint8": 6}
_ANY = 1  # dnnl_format_tag_any
_BLOCKS = {3: 69, 4: 102, 5: 142}  # dnnl_nCw8c, dnnl_nChw8c, dnnl_nCdhw8c
SRC, DST, WEIGHTS, BIAS, SCRATCHPAD = 1, 17, 33, 41, 80
DIFF_SRC, DIFF_DST, DIFF_WEIGHTS, DIFF_BIAS = 129, 145, 161, 169
#: Which descriptor of a primitive an argument has.
_QUERY = {SRC: 129, DIFF_SRC: 130, WEIGHTS: 131, DIFF_WEIGHTS: 132, DST: 133, DIFF_DST: 134, SCRATCHPAD: 136}
#: Of recurrent layers: first states and last ones, and the weights of the state; their descriptors go by argument.
SRC_ITER, SRC_ITER_C, DST_ITER, DST_ITER_C, WEIGHTS_ITER = 2, 3, 18, 19, 34
_BY_ARGUMENT = 255  # dnnl_query_exec_arg_md
_IMPLEMENTATION = 8  # dnnl_query_impl_info_str
_ALIGNED = 64


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


#: A primitive, and its arguments.
_Step = tuple[int, "list[tuple[int, Tensor]]"]


class Tensor:
    """A place for a value: an array of who calls, or some memory of the thread's."""

    __slots__ = ("desc", "array", "offset", "index")

    def __init__(self, desc: Desc, array: int | None) -> None:
        self.desc, self.array = desc, array
        self.offset = self.index = 0


class Plan:
    """Primitives in their order, over arrays and what lies between.

    Parameters
    ----------
    lib : Library
    arrays : sequence of Desc
        Of the arrays that :meth:`run` gets.
    """

    def __init__(self, lib: Library, arrays: Sequence[Desc]) -> None:
        self.lib = lib
        self.tensors = [Tensor(d, i) for i, d in enumerate(arrays)]
        self.arrays = self.tensors[:]
        self.steps: list[_Step] = []
        #: Array -> the tensors that it is reordered to, with the steps that do so.
        self.ordered: dict[int, list[tuple[Tensor, int]]] = {}
        self._idle: list[_Bound] = []
        self._owned: list[int] = []
        self._late: list[_Step] = []
        self.scratch = 0
        #: Names of the library's code for each primitive.
        self.codes: list[str] = []
        self.workers: int = lib.openmp.omp_get_max_threads()  # as `plan_for` has set it

    # -- make ------------------------------------------------------------------------------------------------------
    def add(self, desc: int, args: Mapping[int, int | Tensor], reference: bool = False) -> None:
        """Run a primitive: argument -> number of the array, or what lies between primitives.

        Arrays in another layout are reordered, before or after.

        With `reference` it may be what the library calls its reference.
        """
        lib = self.lib
        try:
            code = ctypes.c_char_p()
            lib.primitive_desc_query(desc, _IMPLEMENTATION, 0, ctypes.byref(code))
            if not reference and b"ref" in (code.value or b"ref"):
                raise Refused("oneDNN: it has no code but its reference for this")
            self.codes.append((code.value or b"").decode())
            bound = []
            for arg, of in args.items():
                wanted = self._queried(desc, arg)
                writes = arg in (DST, DIFF_SRC, DIFF_WEIGHTS, DIFF_BIAS)
                bound.append((arg, self._place(self.arrays[of] if isinstance(of, int) else of, wanted, writes)))
            scratch = self._queried(desc, SCRATCHPAD)
            if scratch is not None and scratch.size:
                bound.append((SCRATCHPAD, self.between(scratch)))
            primitive = lib.new("primitive_create", desc)
        finally:
            lib.primitive_desc_destroy(desc)
        self._owned.append(primitive)
        self.steps.append((primitive, bound))

    def _queried(self, desc: int, arg: int) -> Desc | None:
        if arg == WEIGHTS_ITER:
            handle = self.lib.primitive_desc_query_md(desc, _BY_ARGUMENT, arg)
        elif arg in _QUERY:
            handle = self.lib.primitive_desc_query_md(desc, _QUERY[arg], 0)
        else:
            return None
        return Desc(self.lib, self.lib.new("memory_desc_clone", handle)) if handle else None

    def between(self, desc: Desc) -> Tensor:
        """Memory of the thread's."""
        tensor = Tensor(desc, None)
        tensor.offset, tensor.index = self.scratch, len(self.tensors)
        self.scratch += -(-desc.size // _ALIGNED) * _ALIGNED
        self.tensors.append(tensor)
        return tensor

    def _place(self, array: Tensor, wanted: Desc | None, writes: bool) -> Tensor:
        if wanted is None or wanted == array.desc:
            return array
        if writes:
            made = self.between(wanted)
            self._late.append(self._reorder(made, array))
            return made
        assert array.array is not None
        known = self.ordered.setdefault(array.array, [])
        for tensor, _ in known:
            if tensor.desc == wanted:
                return tensor
        tensor = self.between(wanted)
        known.append((tensor, len(self.steps)))
        self.steps.append(self._reorder(array, tensor))
        return tensor

    def _reorder(self, source: Tensor, target: Tensor) -> _Step:
        lib = self.lib
        desc = lib.new(
            "reorder_primitive_desc_create", source.desc.handle, lib.engine, target.desc.handle, lib.engine, lib.attr
        )
        try:
            scratch = self._queried(desc, SCRATCHPAD)
            args = [(SRC, source), (DST, target)]
            if scratch is not None and scratch.size:
                args.append((SCRATCHPAD, self.between(scratch)))
            primitive = lib.new("primitive_create", desc)
        finally:
            lib.primitive_desc_destroy(desc)
        self._owned.append(primitive)
        return primitive, args

    def move(self, source: Tensor, desc: Desc, array: int) -> None:
        """Reorder what lies between to an array, read as if it were of another dtype of the same size."""
        read = Tensor(desc, None)
        read.offset, read.index = source.offset, len(self.tensors)
        self.tensors.append(read)
        self.steps.append(self._reorder(read, self.arrays[array]))

    def done(self) -> Plan:
        """No more primitives; the results are put in order."""
        self.steps += self._late
        for i, tensor in enumerate(self.tensors):
            tensor.index = i
        return self

    # -- run -------------------------------------------------------------------------------------------------------
    def run(self, *arrays: np.ndarray[Any, Any], kept: Kept | None = None) -> None:
        """Do it, with arrays in C order of the shapes and dtypes that it was made for.

        Parameters
        ----------
        *arrays : ndarray
        kept : Kept, optional
            Of this plan: what it holds is not reordered again, unless it holds nothing yet.

        Raises
        ------
        Refused
            If the library fails, or has no memory.
        """
        try:
            bound = self._idle.pop()
        except IndexError:
            bound = _Bound(self)
        with Threads(self.lib, self.workers):
            bound.run(self, arrays, kept)
        self._idle.append(bound)

    def __del__(self) -> None:
        for primitive in self._owned:
            self.lib.primitive_destroy(primitive)


class Kept:
    """What a plan makes of some of its inputs, for as long as these stay as they are.

    Parameters
    ----------
    plan : Plan
    *arrays : int
        Which of its arrays.
    """

    __slots__ = ("plan", "places", "steps", "memory", "filled")

    def __init__(self, plan: Plan, *arrays: int) -> None:
        found = [made for array in arrays for made in plan.ordered.get(array, ())]
        self.plan = plan
        self.memory = [_aligned(t.desc.size) for t, _ in found]
        #: Tensor -> address.
        self.places = {t.index: place for (t, _), (_, place) in zip(found, self.memory)}
        self.steps = frozenset(step for _, step in found)
        self.filled = False


class _Bound:
    """A plan's memory objects, for one call at a time."""

    __slots__ = ("lib", "stream", "memories", "places", "offsets", "calls")

    def __init__(self, plan: Plan) -> None:
        lib = self.lib = plan.lib
        self.memories: list[int] = []
        #: Where each memory lies; in programs arrays stay where they are.
        self.places = [0] * len(plan.tensors)
        self.offsets = [(i, t.offset) for i, t in enumerate(plan.tensors) if t.array is None]
        self.stream = lib.new("stream_create", lib.engine, 1)
        for t in plan.tensors:
            self.memories.append(lib.new("memory_create", t.desc.handle, lib.engine, None))
        self.calls = []
        for primitive, args in plan.steps:
            packed = (_Arg * len(args))(*[_Arg(arg, self.memories[t.index]) for arg, t in args])
            self.calls.append((primitive, self.stream, len(args), ctypes.cast(packed, c_void_p), packed))

    def run(self, plan: Plan, arrays: Sequence[np.ndarray[Any, Any]], kept: Kept | None) -> None:
        places = [a.__array_interface__["data"][0] for a in arrays]
        base, execute = _arena(plan.scratch), self.lib.primitive_execute
        places += [base + offset for _, offset in self.offsets]
        done: frozenset[int] = frozenset()
        if kept is not None:
            for index, place in kept.places.items():
                places[index] = place
            if kept.filled:
                done = kept.steps
        if places != self.places:
            for i, (place, before) in enumerate(zip(places, self.places)):
                if place != before:
                    self.lib.memory_set_data_handle(self.memories[i], place)
            self.places = places
        for i, (primitive, stream, count, args, _) in enumerate(self.calls):
            if i not in done:
                execute(primitive, stream, count, args)
        if kept is not None:
            kept.filled = True

    def __del__(self) -> None:
        for memory in self.memories:
            self.lib.memory_destroy(memory)
        with contextlib.suppress(AttributeError):  # there was no memory for one
            self.lib.stream_destroy(self.stream)


class _Scratch(threading.local):
    memory: np.ndarray[Any, Any] | None = None
    place = 0


_scratch = _Scratch()


def _aligned(size: int) -> tuple[np.ndarray[Any, Any], int]:
    """So many bytes, and where they begin."""
    try:
        memory = np.empty(size + _ALIGNED, np.uint8)
    except MemoryError as e:
        raise NoMemory(f"no memory for {size} bytes: {e}") from e
    address = memory.ctypes.data
    return memory, address + -address % _ALIGNED


def _arena(size: int) -> int:
    """Where so many bytes of this thread begin; they are used until the next call."""
    memory = _scratch.memory
    if memory is None or memory.nbytes < size + _ALIGNED:
        memory = _scratch.memory = None  # before others are asked for
        _scratch.memory, _scratch.place = _aligned(size)
    return _scratch.place


# -- one for each operator and set of shapes ------------------------------------------------------------------------
_LIMIT = 512
#: Less work than this is done before another thread has heard of it.
_LITTLE = 1 << 18
_plans: OrderedDict[Any, Plan | None] = OrderedDict()
_lock = threading.Lock()
_alone = False  # in a forked child, where the library's threads are not


def _in_child() -> None:
    global _alone
    _alone = True
    _lock.release()


if hasattr(os, "register_at_fork"):
    # Nobody makes a plan while the process is forked: the library's own locks are free in the child.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_in_child)


def workers(work: float = _LITTLE) -> int:
    """How many threads the library may use in the calling thread for so many multiplications."""
    return 1 if _alone or work < _LITTLE else threads().count()


def plan_for(key: tuple[Any, ...], make: Callable[[Library], Plan], work: float) -> Plan | None:
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
    """
    key = (workers(work), *key)
    with _lock:
        if key in _plans:
            _plans.move_to_end(key)
            return _plans[key]
    lib = library()
    if lib is None:
        return None
    with _lock, Threads(lib, key[0]):
        try:
            plan = make(lib)
        except NoMemory:
            return None
        except Refused:
            plan = None
        _plans[key] = plan
        if len(_plans) > _LIMIT:
            _plans.popitem(last=False)
    return plan


class Threads:
    """``with Threads(lib, n)``: OpenMP takes so many threads for what the calling thread starts."""

    __slots__ = ("lib", "n", "before")

    def __init__(self, lib: Library, n: int) -> None:
        self.lib, self.n = lib, n

    def __enter__(self) -> None:
        self.before = self.lib.openmp.omp_get_max_threads()
        if self.before != self.n:
            self.lib.openmp.omp_set_num_threads(self.n)

    def __exit__(self, *exc: object) -> None:
        if self.before != self.n:
            self.lib.openmp.omp_set_num_threads(self.before)
