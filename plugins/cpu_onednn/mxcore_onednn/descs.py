"""Descriptors: shape, dtype and layout of what primitives read and write, and the numbers of their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int64
from math import prod
from typing import Any

from .library import Library

__all__ = ["BY_ARGUMENT", "QUERY", "Desc", "dims"]

#: ``dnnl_f32`` and others, by dtype.
_CODES = {"bfloat16": 2, "float32": 3, "int32": 4, "int8": 5, "uint8": 6}
_ANY = 1  # dnnl_format_tag_any
_BLOCKS = {3: 69, 4: 102, 5: 142}  # dnnl_nCw8c, dnnl_nChw8c, dnnl_nCdhw8c
TRAINING, INFERENCE = 64, 96  # dnnl_forward_training and others
SRC, DST, WEIGHTS, BIAS, WORKSPACE, SCRATCHPAD = 1, 17, 33, 41, 64, 80
MULTIPLE_SRC = 1024
#: Statistics, and what normalized values are multiplied with and added to; they are dense vectors of float32.
MEAN, VARIANCE, SCALE, SHIFT = 49, 50, 51, 52
DIFF_SRC, DIFF_DST, DIFF_WEIGHTS, DIFF_BIAS = 129, 145, 161, 169
#: Which descriptor of a primitive an argument has.
_DESCRIBED = SRC, DIFF_SRC, WEIGHTS, DIFF_WEIGHTS, DST, DIFF_DST, WORKSPACE, SCRATCHPAD
QUERY = {arg: 129 + i for i, arg in enumerate(_DESCRIBED)}
#: Of recurrent layers: first states and last ones, and the weights of the state; their descriptors go by argument.
SRC_ITER, SRC_ITER_C, DST_ITER, DST_ITER_C, WEIGHTS_ITER = 2, 3, 18, 19, 34
BY_ARGUMENT = 255  # dnnl_query_exec_arg_md


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
        return cls.channels_last(lib, shape, dtype) if last else cls.dense(lib, shape, dtype)

    @classmethod
    def channels_last(cls, lib: Library, shape: Sequence[int], dtype: str = "float32") -> Desc:
        """Of images (n, c, *size), the channels of a place side by side."""
        n, c, *size = shape
        strides = [c * prod(size), 1, *(c * prod(size[i + 1 :]) for i in range(len(size)))]
        args = len(shape), dims(shape), _CODES[dtype], dims(strides)
        return cls(lib, lib.new("memory_desc_create_with_strides", *args))
