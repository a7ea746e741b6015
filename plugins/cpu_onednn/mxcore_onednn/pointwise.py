"""bfloat16 element by element: casts, sums and products, and activations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from math import prod
from typing import Any

import numpy as np

from mxcore.plugin import Call, Params, Spec

from .calls import PRIORITY, alike, is_dense, kernels, otherwise, run
from .descs import DIFF_DST, DIFF_SRC, DST, INFERENCE, SRC, TRAINING, Desc
from .functions import ADD, DIV, LOGISTIC, MAX, MUL, RELU, SRC_1, SUB, TANH, Function, function_of
from .library import Library, Refused, library
from .plan import Plan
from .plans import plan_for
from .rules import narrows

__all__ = ["narrow"]

Shape = tuple[int, ...]
_BFLOAT16 = "bfloat16"


def _plain(n: int, function: Function, lib: Library) -> Plan:
    desc = Desc.dense(lib, (n,), _BFLOAT16)
    plan = Plan(lib, [desc, Desc.dense(lib, (n,), _BFLOAT16)])
    algorithm, *numbers = function
    made = lib.new(
        "eltwise_forward_primitive_desc_create",
        *(lib.engine, INFERENCE, algorithm, desc.handle, desc.handle, *numbers, lib.attr),
    )
    plan.add(made, {SRC: 0, DST: 1})
    return plan.done()


def _sloped(n: int, function: Function, argument: int, lib: Library) -> Plan:
    """Of the gradient that comes in, and of the function's result or data, to that of the data."""
    descs = [Desc.dense(lib, (n,), _BFLOAT16) for _ in range(3)]
    dy, data, dx = (d.handle for d in descs)
    plan = Plan(lib, descs)
    algorithm, *numbers = function
    # What the forward primitive computes is another matter.
    forward = lib.new(
        "eltwise_forward_primitive_desc_create", lib.engine, TRAINING, algorithm, data, data, *numbers, lib.attr
    )
    with lib.hinting(forward) as hint:
        made = lib.new(
            "eltwise_backward_primitive_desc_create", lib.engine, algorithm, dx, dy, data, *numbers, hint, lib.attr
        )
    plan.add(made, {DIFF_DST: 0, argument: 1, DIFF_SRC: 2})
    return plan.done()


def _paired(lhs: Shape, rhs: Shape, algorithm: int, second: str, lib: Library) -> Plan:
    """Of two arrays of one rank, of which the second one, of that dtype, may be repeated."""
    kinds = (_BFLOAT16, second, _BFLOAT16)
    descs = [Desc.dense(lib, shape, kind) for shape, kind in zip((lhs, rhs, lhs), kinds)]
    plan = Plan(lib, descs)
    made = lib.new("binary_primitive_desc_create", lib.engine, algorithm, *(d.handle for d in descs), lib.attr)
    plan.add(made, {SRC: 0, SRC_1: 1, DST: 2})
    return plan.done()


def _rounding(n: int, lib: Library) -> Plan:
    plan = Plan(lib, [Desc.dense(lib, (n,)), Desc.dense(lib, (n,), _BFLOAT16)])
    plan.deliver(*plan.arrays)
    return plan.done()


# -- of any size, by a few plans ------------------------------------------------------------------------------------
#: The elements of such a plan: the most, and the fewest that are worth a call.
_MOST, _LEAST = 1 << 18, 1 << 14


def _in_parts(name: str, make: Callable[[int, Library], Plan], first: Sequence[Any], data: Any, out: Any) -> bool:
    """Whether it is done, part by part, from the `first` elements of some arrays and from data.

    The last two parts overlap: what is computed of results must be the same again, for these may lie where the data do.
    """
    n = data.size
    if n < _LEAST:
        return False
    size = min(1 << n.bit_length() - 1, _MOST)
    plan = plan_for((name, size), partial(make, size), 4 * size)
    if plan is None:
        return False
    place = out if is_dense(out) else np.empty(out.shape, out.dtype)
    given, made = (data if is_dense(data) else np.array(data, order="C")).reshape(-1), place.reshape(-1)
    try:
        for at in (*range(0, n - size, size), n - size):
            plan.run(*(a[:size] for a in first), given[at : at + size], made[at : at + size])
    except Refused:
        return False
    if place is not out:
        out[...] = place
    return True


def narrow(values: Any, out: Any) -> None:
    """Round float32 to bfloat16: to the nearest, of two to the even one; numbers below 1e-38 may become 0."""
    if not _in_parts("rounded", _rounding, (), values, out):
        with np.errstate(all="ignore"):
            np.copyto(out, values, casting="unsafe")


@cache
def _zeros(dtype: Any) -> Any:
    return np.zeros(_MOST, dtype)


def _larger(n: int, lib: Library) -> Plan:
    return _paired((n,), (n,), MAX, _BFLOAT16, lib)


# -- activations ----------------------------------------------------------------------------------------------------
#: Function -> what an element takes beside a sum: for some the bodies have many passes, for `leaky` fast ones.
_TAKES = {TANH: 4, LOGISTIC: 4, RELU: 1 / 8}


def _serves(specs: Sequence[Spec], takes: float = 1) -> bool:
    lib = library()
    return alike(*specs) == _BFLOAT16 and lib is not None and narrows(lib.isa, int(takes * max(s.size for s in specs)))


def _function_plan(n: int, function: Function) -> Plan | None:
    return plan_for((_BFLOAT16, n, function), lambda lib: _plain(n, function, lib), 8 * n)


def _activates(name: str, p: Params, data: Spec, *slopes: Spec) -> bool:
    found = function_of(name, p)
    # The library's gelu of infinity is no number.
    if found is None or slopes or getattr(p, "act_type", "") == "gelu":
        return False
    if _is_relu(found):  # a slope of 0 is another matter: it makes no number of infinity
        return name != "LeakyReLU" and _serves([data])
    return _serves([data], _TAKES.get(found[0], 1)) and _function_plan(data.size, found) is not None


def _is_relu(function: Function) -> bool:
    """Whether the library would make 0 of what is no number; where it compares the two, it takes the latter."""
    return function[:2] == (RELU, 0)


def _activate(name: str, k: Call, p: Params, outs: Sequence[Any], data: Any) -> None:
    function, other = function_of(name, p), otherwise(name, k, p, outs, data)
    assert function is not None
    if not _is_relu(function):
        run(name, _function_plan(data.size, function), [data], outs[:1], other)
    elif not _in_parts("larger", _larger, (_zeros(data.dtype),), data, outs[0]):
        other()


for _name in ("Activation", "LeakyReLU", "relu", "sigmoid", "tanh"):
    kernels.kernel(_name, when=partial(_activates, _name), priority=PRIORITY, out=True)(partial(_activate, _name))


#: Functions whose slopes follow from the result, or else from the data -> what the library calls them then. That of elu
#: loses what is no number.
_SLOPES = {"Activation": (DST, {TANH: 0x101, LOGISTIC: 0x104}), "LeakyReLU": (SRC, {RELU: RELU})}


def _slope_plan(name: str, p: Params, n: int) -> Plan | None:
    function, (argument, slopes) = function_of(name, p), _SLOPES[name]
    # The library's gradient of relu is 0 where that has handed on what is no number.
    if function is None or function[0] not in slopes or _is_relu(function):
        return None
    function = slopes[function[0]], *function[1:]
    return plan_for((_BFLOAT16, n, function, argument), lambda lib: _sloped(n, function, argument, lib), 8 * n)


def _differentiates(name: str, p: Params, dy: Spec, data: Spec) -> bool:
    return _serves([dy, data]) and _slope_plan(name, p, data.size) is not None


def _differentiate(name: str, k: Call, p: Params, outs: Sequence[Any], dy: Any, data: Any) -> None:
    backward = f"_backward_{name}"
    other = otherwise(backward, k, p, outs, dy, data)
    run(backward, _slope_plan(name, p, data.size), [dy, data], outs[:1], other)


for _name in _SLOPES:
    kernels.kernel(f"_backward_{_name}", when=partial(_differentiates, _name), priority=PRIORITY, out=True)(
        partial(_differentiate, _name)
    )


# -- sums and products ----------------------------------------------------------------------------------------------
def _pair(algorithm: int, lhs: Shape, rhs: Shape) -> tuple[Shape, Shape, bool] | None:
    """Two shapes of which the second one is repeated along the first, if need be in turned order; None: not so."""
    if lhs == rhs:
        return (prod(lhs),), (prod(lhs),), False
    turned = prod(lhs) < prod(rhs)
    if turned:
        lhs, rhs = rhs, lhs
    rhs = (1,) * (len(lhs) - len(rhs)) + rhs
    if turned and algorithm not in (ADD, MUL) or len(lhs) != len(rhs):
        return None
    return (lhs, rhs, turned) if all(b in (1, a) for a, b in zip(lhs, rhs)) else None


def _pair_plan(algorithm: int, lhs: Shape, rhs: Shape, second: str = _BFLOAT16) -> Plan | None:
    return plan_for(
        (_BFLOAT16, algorithm, lhs, rhs, second), lambda lib: _paired(lhs, rhs, algorithm, second, lib), 4 * prod(lhs)
    )


def _adds(algorithm: int, p: Params, lhs: Spec, rhs: Spec) -> bool:
    found = _pair(algorithm, lhs.shape, rhs.shape) if _serves([lhs, rhs]) else None
    return found is not None and _pair_plan(algorithm, *found[:2]) is not None


def _add(name: str, algorithm: int, k: Call, p: Params, outs: Sequence[Any], lhs: Any, rhs: Any) -> None:
    found = _pair(algorithm, lhs.shape, rhs.shape)
    assert found is not None
    ins = [rhs, lhs] if found[2] else [lhs, rhs]
    run(name, _pair_plan(algorithm, *found[:2]), ins, outs[:1], otherwise(name, k, p, outs, lhs, rhs))


_NAMES = {"add": ADD, "sub": SUB, "mul": MUL, "div": DIV}
_PAIRED = {f"{how}_{name}": f for how in ("elemwise", "broadcast") for name, f in _NAMES.items()}
for _name, _algorithm in {**_PAIRED, "_grad_add": ADD}.items():
    kernels.kernel(_name, when=partial(_adds, _algorithm), priority=PRIORITY, out=True)(
        partial(_add, _name, _algorithm)
    )


# -- with a number --------------------------------------------------------------------------------------------------
def _adds_number(algorithm: int, p: Params, data: Spec) -> bool:
    return _serves([data]) and _pair_plan(algorithm, (data.size,), (1,), "float32") is not None


def _add_number(name: str, algorithm: int, k: Call, p: Params, outs: Sequence[Any], data: Any) -> None:
    # An array, for the number may be another one at each call, and plans are for all. The result alone is rounded.
    with np.errstate(all="ignore"):
        number = np.full(1, p.scalar, np.float32)
    plan = _pair_plan(algorithm, (data.size,), (1,), "float32")
    run(name, plan, [data, number], outs[:1], otherwise(name, k, p, outs, data))


for _name, _algorithm in {"plus": ADD, "minus": SUB, "mul": MUL, "div": DIV}.items():
    _name = f"_{_name}_scalar"
    kernels.kernel(_name, when=partial(_adds_number, _algorithm), priority=PRIORITY, out=True)(
        partial(_add_number, _name, _algorithm)
    )
