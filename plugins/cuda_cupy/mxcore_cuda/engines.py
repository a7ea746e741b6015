"""cuDNN's graph interface: the engines for a convolution, of which its older functions know but some."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

from .cudnn import TYPES, Handle, call, library

__all__ = ["Engine", "engines"]

#: Engines that are asked for, those first that cuDNN expects to be fastest.
_MOST = 8
#: Kinds of attributes -> what their values are in C.
_HANDLE, _DATA_TYPE, _INT64, _FLOAT, _DOUBLE, _POINTER, _MODE, _HEURISTIC, _NOTE, _DESCRIPTOR = (
    0, 1, 3, 4, 5, 6, 7, 8, 11, 15,
)  # fmt: skip
_C: dict[int, Any] = {
    _HANDLE: ctypes.c_void_p,
    _DATA_TYPE: ctypes.c_int,
    _INT64: ctypes.c_int64,
    _FLOAT: ctypes.c_float,
    _DOUBLE: ctypes.c_double,
    _POINTER: ctypes.c_void_p,
    _MODE: ctypes.c_int,
    _HEURISTIC: ctypes.c_int,
    _NOTE: ctypes.c_int,
    _DESCRIPTOR: ctypes.c_void_p,
}
#: Kinds of descriptors.
_CONVOLUTION, _ENGINE, _CONFIGURATION, _HEURISTICS, _PLAN, _GRAPH, _PACK, _TENSOR = 1, 2, 3, 4, 5, 15, 16, 17
#: By the part that is computed: the descriptor of its operation, and the first of its attributes.
_OPERATIONS = {"y": (10, 700), "x": (12, 706), "w": (11, 712)}
#: The operands' attributes, after those of the scalars and the convolution.
_OPERANDS = "wxy"
_IDS = {"x": 1, "w": 2, "y": 3}
_MODE_A, _CROSS_CORRELATION = 3, 1
#: What cuDNN notes of an engine.
TENSOR_CORE, DOWN_CONVERT, REDUCED_SUMS, FFT, NONDETERMINISTIC, WINOGRAD = range(6)


class _Descriptor:
    """An object of cuDNN's, by its attributes; it keeps those that it is made of."""

    def __init__(self, kind: int) -> None:
        self.pointer, self.kept = ctypes.c_void_p(), list[_Descriptor]()
        call("cudnnBackendCreateDescriptor", kind, ctypes.byref(self.pointer))
        weakref.finalize(self, library().cudnnBackendDestroyDescriptor, self.pointer).atexit = False

    def set(self, name: int, kind: int, *values: Any) -> None:
        """Set an attribute."""
        if kind == _DESCRIPTOR:
            self.kept += values
            values = tuple(v.pointer.value for v in values)
        array = (_C[kind] * len(values))(*values)
        call("cudnnBackendSetAttribute", self.pointer, name, kind, ctypes.c_int64(len(values)), array)

    def done(self) -> _Descriptor:
        """Let cuDNN check it."""
        call("cudnnBackendFinalize", self.pointer)
        return self

    def get(self, name: int, kind: int, most: int) -> list[Any]:
        """An attribute's values, so many at most."""
        array, n = (_C[kind] * most)(), ctypes.c_int64()
        call("cudnnBackendGetAttribute", self.pointer, name, kind, ctypes.c_int64(most), ctypes.byref(n), array)
        return list(array[: min(n.value, most)])

    def parts(self, name: int, kind: int, most: int) -> list[_Descriptor]:
        """An attribute's values that are descriptors of a kind."""
        made, n = [_Descriptor(kind) for _ in range(most)], ctypes.c_int64()
        array = (ctypes.c_void_p * most)(*(d.pointer.value for d in made))
        call("cudnnBackendGetAttribute", self.pointer, name, _DESCRIPTOR, ctypes.c_int64(most), ctypes.byref(n), array)
        return made[: n.value]


class Engine:
    """An engine with its settings, for one convolution.

    Attributes
    ----------
    name : str
        The same in every process, of one version of cuDNN and one kind of GPU.
    size : int
        Bytes of its workspace, once it is prepared.
    """

    def __init__(self, configuration: _Descriptor, name: str, parts: str) -> None:
        self.name, self.size = name, 0
        self._configuration, self._ids = configuration, [_IDS[part] for part in parts]
        self._plan: _Descriptor | None = None

    def prepare(self, handle: Handle) -> None:
        """Make it ready, which may compile it."""
        plan = _Descriptor(_PLAN)
        plan.set(400, _HANDLE, handle.pointer.value)
        plan.set(401, _DESCRIPTOR, self._configuration)
        self._plan = plan.done()
        (self.size,) = plan.get(402, _INT64, 1)

    def run(self, handle: Handle, places: Sequence[int], space: int) -> None:
        """Launch it on operands at these addresses."""
        assert self._plan is not None
        pack = _Descriptor(_PACK)
        pack.set(1000, _INT64, *self._ids)
        pack.set(1001, _POINTER, *places)
        pack.set(1003, _POINTER, space)
        call("cudnnBackendExecute", handle.pointer, self._plan.pointer, pack.done().pointer)


def engines(
    parts: str,
    shapes: dict[str, tuple[tuple[int, ...], tuple[int, ...]]],
    pad: Sequence[int],
    stride: Sequence[int],
    dilate: Sequence[int],
    dtype: str,
    refused: frozenset[int],
    handle: Handle,
) -> list[Engine]:
    """What can compute a convolution, or a gradient of it.

    Parameters
    ----------
    parts : str
        ``'x'``, ``'w'`` and ``'y'`` in the order of operands; the last is computed.
    shapes : dict
        Part -> shape and strides, of two or three dimensions, channels first.
    pad, stride, dilate : sequence of int
    dtype : str
    refused : set of int
        What cuDNN must not note of one.
    handle : Handle

    Raises
    ------
    Refused
        If cuDNN knows none.
    """
    compute = TYPES["float64" if dtype == "float64" else "float32"]
    convolution = _Descriptor(_CONVOLUTION)
    convolution.set(100, _DATA_TYPE, compute)
    convolution.set(101, _MODE, _CROSS_CORRELATION)
    for name, values in ((102, dilate), (103, stride), (104, pad), (105, pad)):
        convolution.set(name, _INT64, *values)
    convolution.set(106, _INT64, len(pad))
    kind, first = _OPERATIONS[parts[-1]]
    operation = _Descriptor(kind)
    scalar = _DOUBLE if dtype == "float64" else _FLOAT
    operation.set(first, scalar, 1.0)
    operation.set(first + 1, scalar, 0.0)
    operation.set(first + 2, _DESCRIPTOR, convolution.done())
    for part, (shape, strides) in shapes.items():
        tensor = _Descriptor(_TENSOR)
        tensor.set(901, _DATA_TYPE, TYPES[dtype])
        tensor.set(902, _INT64, *shape)
        tensor.set(903, _INT64, *strides)
        tensor.set(906, _INT64, _IDS[part])
        tensor.set(900, _INT64, 16)
        operation.set(first + 3 + _OPERANDS.index(part), _DESCRIPTOR, tensor.done())
    graph = _Descriptor(_GRAPH)
    graph.set(801, _DESCRIPTOR, operation.done())
    graph.set(800, _HANDLE, handle.pointer.value)
    heuristics = _Descriptor(_HEURISTICS)
    heuristics.set(201, _DESCRIPTOR, graph.done())
    heuristics.set(200, _HEURISTIC, _MODE_A)
    found = []
    for i, configuration in enumerate(heuristics.done().parts(202, _CONFIGURATION, _MOST)):
        (engine,) = configuration.parts(300, _ENGINE, 1)
        if refused.isdisjoint(engine.get(1303, _NOTE, 16)):
            configuration.kept.append(graph)
            found.append(Engine(configuration, f"engine {engine.get(1301, _INT64, 1)[0]}, {i}", parts))
    return found
