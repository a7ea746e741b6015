"""The library's functions of each element, and of two: as primitives, and behind others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mxcore.plugin import Params

from .descs import WEIGHTS
from .library import Library
from .plan import Tensor

__all__ = ["ADD", "DIV", "MAX", "MUL", "RELU", "SRC_1", "SUB", "SUM", "Function", "Then", "attributes", "function_of"]

#: The second one's argument.
SRC_1, _POST_OP = 2, 32768
_PER_CHANNEL = 1 << 1
RELU, TANH, _ELU, LOGISTIC, _CLIP, _GELU = 0x20, 0x21, 0x22, 0x29, 0x2E, 0x31
ADD, MUL, MAX, DIV, SUB = 0x1FFF0, 0x1FFF1, 0x1FFF2, 0x1FFF4, 0x1FFF5

#: Its number, and two numbers that it takes.
Function = tuple[int, float, float]
_ACTIVATIONS: dict[str, Function] = {"relu": (RELU, 0, 0), "sigmoid": (LOGISTIC, 0, 0), "tanh": (TANH, 0, 0)}


def function_of(op: str, p: Params) -> Function | None:
    """An elementwise layer as the library's function with its two numbers."""
    if op == "Activation":
        return _ACTIVATIONS.get(p.act_type)
    if op == "LeakyReLU":
        kinds = {"leaky": (RELU, p.slope, 0.0), "elu": (_ELU, p.slope, 0.0), "gelu": (_GELU, 0.0, 0.0)}
        return kinds.get(p.act_type)
    if op == "clip":
        return _CLIP, p.a_min, p.a_max
    return _ACTIVATIONS.get(op)


class Then(NamedTuple):
    """What is done with the result of a primitive before it is written: one of these."""

    function: Function | None = None
    #: A value for each channel: a term, or the slope of negative numbers.
    term: Tensor | None = None
    slope: Tensor | None = None


#: What is there already is added.
SUM = Then()


@contextlib.contextmanager
def attributes(lib: Library, then: Sequence[Then]) -> Iterator[tuple[int, dict[int, Tensor | None]]]:
    """Attributes of a primitive for what is done with its result, and the arguments that this needs."""
    args: dict[int, Tensor | None] = {}
    attr = lib.new("primitive_attr_create")
    ops = 0
    try:
        ops = lib.new("post_ops_create")
        lib.primitive_attr_set_scratchpad_mode(attr, 1)
        for i, (function, term, slope) in enumerate(then):
            if function is not None:
                lib.post_ops_append_eltwise(ops, *function)
            elif term is not None:
                lib.post_ops_append_binary(ops, ADD, term.desc.handle)
                args[_POST_OP * (i + 1) | SRC_1] = term
            elif slope is not None:
                lib.post_ops_append_prelu(ops, _PER_CHANNEL)
                args[_POST_OP * (i + 1) | WEIGHTS] = slope
            else:
                lib.post_ops_append_sum(ops, 1.0, 0, 0)
        lib.primitive_attr_set_post_ops(attr, ops)
        yield attr, args
    finally:
        if ops:
            lib.post_ops_destroy(ops)
        lib.primitive_attr_destroy(attr)
