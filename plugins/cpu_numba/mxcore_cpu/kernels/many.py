"""Optimizer updates of many weights in one call, and of weights with a master copy.

The weights are cut into blocks, which are dealt to the threads whatever weight they belong to. A kernel finds its
arrays in a table of addresses: one source serves any number of weights. Each block is moved by the very rule of
:mod:`.optimizer`; where weight and gradient are float16, the gradient of a block is widened first, the rule moves the
master copy, and that is narrowed to the weight.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Mapping, Sequence
from operator import is_not
from typing import Any, NamedTuple

import numpy as np

from ..jit import REORDER, Kernel, helper, intrinsic, kernel
from ..typing import Array, Scalar
from . import optimizer
from ._arrays import flat, writable

__all__ = ["RULES", "Standing", "halves", "lamb", "move", "sums_of_squares", "total"]

_BLOCK = 1 << 13  # elements: the gradient of a block stays in the cache between being widened and used


@functools.cache
def halves() -> bool:
    """Tell whether this processor converts float16, which LLVM would otherwise leave to a library that is not there."""
    import llvmlite.binding as llvm

    return "aarch64" in llvm.get_default_triple() or bool(llvm.get_host_cpu_features().get("f16c"))


@intrinsic
def _at(typingctx: Any, address: Any, at: Any, n: Any, like: Any) -> Any:
    """Return the n elements from the at-th on at an address, as an array like `like`."""
    from numba import types

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from numba.np.arrayobj import make_array, populate_array

        kind = signature.return_type
        out, real = make_array(kind)(context, builder), context.get_data_type(kind.dtype)
        size = context.get_constant(types.intp, context.get_abi_sizeof(real))
        data = builder.gep(builder.inttoptr(args[0], real.as_pointer()), [args[1]])
        populate_array(out, data=data, shape=[args[2]], strides=[size], itemsize=size, meminfo=None)
        return out._getvalue()

    return like(types.int64, types.int64, types.int64, like), codegen


@intrinsic
def _cast(typingctx: Any, x: Any, like: Any) -> Any:
    """Return x in the type of `like`; a uint16 stands for the float16 of its bits."""
    from numba import types

    half = types.uint16

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        source, target = signature.args
        if source == target:
            return args[0]
        if source == half:
            return builder.fpext(builder.bitcast(args[0], ir.HalfType()), context.get_value_type(target))
        return builder.bitcast(builder.fptrunc(args[0], ir.HalfType()), context.get_value_type(half))

    return like(x, like), codegen


@helper(inline=False)
def _convert(x: Array, y: Array) -> None:
    for i in range(y.size):
        y[i] = _cast(x[i], y[i])


@helper
def _gradient(address: int, at: int, n: int, mixed: bool, low: Array, held: Array) -> Any:
    """Return the block of a gradient: itself, or widened."""
    if not mixed:
        return _at(address, at, n, held)
    g = held[:n]
    _convert(_at(address, at, n, low), g)
    return g


@helper
def _block(item: int, t: int, starts: Array, table: Array) -> tuple[int, int, int]:
    """Return the weight, from the t-th on, that a block belongs to, where the block begins, and its elements."""
    while item >= starts[t + 1]:
        t += 1
    at = (item - starts[t]) * _BLOCK
    return t, at, min(_BLOCK, table[t, 0] - at)


_sgd, _sgd_mom, _nag_mom, _adam, _adamw, _direction = (
    helper(k.function, inline=False)
    for k in (
        *(optimizer.sgd, optimizer.sgd_mom, optimizer.nag_mom),
        *(optimizer.adam, optimizer.adamw, optimizer.lamb_phase1),
    )
)

# A row of `table`: number of elements, addresses of gradient, master (or weight), states, weight. A row of `rates`:
# what differs from weight to weight.


@kernel(threshold=1)
def _sgd_all(
    first: int,
    last: int,
    starts: Array,
    table: Array,
    rates: Array,
    mixed: bool,
    low: Array,
    real: Array,
    rescale: Scalar,
    clip: Scalar,
) -> None:
    held, t = np.empty(_BLOCK, real.dtype), 0
    for item in range(first, last):
        t, at, n = _block(item, t, starts, table)
        w = _at(table[t, 2], at, n, real)
        _sgd(0, n, w, _gradient(table[t, 1], at, n, mixed, low, held), rates[t, 0], rates[t, 1], rescale, clip)
        if mixed:
            _convert(w, _at(table[t, 3], at, n, low))


@kernel(threshold=1)
def _momentum_all(
    first: int,
    last: int,
    starts: Array,
    table: Array,
    rates: Array,
    mixed: bool,
    low: Array,
    real: Array,
    nesterov: bool,
    momentum: Scalar,
    rescale: Scalar,
    clip: Scalar,
) -> None:
    held, t = np.empty(_BLOCK, real.dtype), 0
    for item in range(first, last):
        t, at, n = _block(item, t, starts, table)
        w, g, m = (
            _at(table[t, 2], at, n, real),
            _gradient(table[t, 1], at, n, mixed, low, held),
            _at(table[t, 3], at, n, real),
        )
        if nesterov:
            _nag_mom(0, n, w, g, m, rates[t, 0], momentum, rates[t, 1], rescale, clip)
        else:
            _sgd_mom(0, n, w, g, m, rates[t, 0], momentum, rates[t, 1], rescale, clip)
        if mixed:
            _convert(w, _at(table[t, 4], at, n, low))


@kernel(threshold=1)
def _adam_all(
    first: int,
    last: int,
    starts: Array,
    table: Array,
    rates: Array,
    mixed: bool,
    low: Array,
    real: Array,
    beta1: Scalar,
    beta2: Scalar,
    epsilon: Scalar,
    rescale: Scalar,
    clip: Scalar,
) -> None:
    """Adam, and AdamW where there is a third rate."""
    held, t = np.empty(_BLOCK, real.dtype), 0
    for item in range(first, last):
        t, at, n = _block(item, t, starts, table)
        w, g = _at(table[t, 2], at, n, real), _gradient(table[t, 1], at, n, mixed, low, held)
        mean, var, lr, wd = _at(table[t, 3], at, n, real), _at(table[t, 4], at, n, real), rates[t, 0], rates[t, 1]
        if rates.shape[1] > 2:
            _adamw(0, n, w, g, mean, var, lr, beta1, beta2, epsilon, wd, rates[t, 2], rescale, clip)
        else:
            _adam(0, n, w, g, mean, var, lr, beta1, beta2, epsilon, wd, rescale, clip)
        if mixed:
            _convert(w, _at(table[t, 5], at, n, low))


@helper(fastmath=REORDER, inline=False)
def _square(x: Array) -> Scalar:
    total = x.dtype.type(0)
    for i in range(x.size):
        total += x[i] * x[i]
    return total


@kernel(threshold=1)
def _squares(first: int, last: int, starts: Array, table: Array, real: Array, sums: Array) -> None:
    """The sum of squares of each block."""
    t = 0
    for item in range(first, last):
        t, at, n = _block(item, t, starts, table)
        sums[item] = _square(_at(table[t, 1], at, n, real))


@kernel(threshold=1)
def _lamb_directions(
    first: int,
    last: int,
    starts: Array,
    table: Array,
    rates: Array,
    mixed: bool,
    low: Array,
    steps: Array,
    sums: Array,
    beta1: Scalar,
    beta2: Scalar,
    epsilon: Scalar,
    corrected: bool,
    rescale: Scalar,
    clip: Scalar,
) -> None:
    """Directions of all blocks, one after the other, and the sums of squares of weight and direction of each."""
    held, t = np.empty(_BLOCK, steps.dtype), 0
    for item in range(first, last):
        t, at, n = _block(item, t, starts, table)
        w, g = _at(table[t, 2], at, n, steps), _gradient(table[t, 1], at, n, mixed, low, held)
        step = steps[item * _BLOCK : item * _BLOCK + n]
        _direction(
            0,
            n,
            step,
            g,
            _at(table[t, 3], at, n, steps),
            _at(table[t, 4], at, n, steps),
            w,
            beta1,
            beta2,
            epsilon,
            rates[t, 2],
            corrected,
            rates[t, 1],
            rescale,
            clip,
        )
        sums[item, 0], sums[item, 1] = _square(w), _square(step)


@kernel(threshold=1)
def _lamb_moves(
    first: int, last: int, starts: Array, table: Array, rates: Array, mixed: bool, low: Array, steps: Array
) -> None:
    t = 0
    for item in range(first, last):
        t, at, n = _block(item, t, starts, table)
        w, step, rate = (
            _at(table[t, 2], at, n, steps),
            steps[item * _BLOCK : item * _BLOCK + n],
            steps.dtype.type(rates[t, 0]),
        )
        for i in range(n):
            w[i] -= rate * step[i]
        if mixed:
            _convert(w, _at(table[t, 5], at, n, low))


class Rule(NamedTuple):
    """A kernel, what of its rates differ from weight to weight, and the numbers that are common to all."""

    kernel: Kernel
    rates: str
    numbers: str


#: Rule -> what computes it.
RULES = {
    "sgd": Rule(_sgd_all, "lr wd", "rescale_grad clip_gradient"),
    "sgd_mom": Rule(_momentum_all, "lr wd", "nesterov momentum rescale_grad clip_gradient"),
    "adam": Rule(_adam_all, "lr wd", "beta1 beta2 epsilon rescale_grad clip_gradient"),
    "adamw": Rule(_adam_all, "lr wd eta", "beta1 beta2 epsilon rescale_grad clip_gradient"),
}


class _Job:
    """The arrays of some weights as kernels want them; copies of scattered ones are written back at the end."""

    def __init__(self, groups: Sequence[Sequence[Array]]) -> None:
        self.mixed = groups[0][0].dtype == np.float16
        self.back: list[tuple[Array, Array]] = []
        self.held = []
        rows = []
        for weight, grad, *states in groups:
            # With a master copy, which is the last state, the weight is what is written in the end.
            master, states = (states[-1], [*states[:-1], weight]) if self.mixed else (weight, states)
            arrays = [
                grad if grad.flags.c_contiguous else np.ascontiguousarray(grad),
                self._dense(master),
                *map(self._dense, states),
            ]
            self.held += arrays
            rows.append([weight.size, *[a.__array_interface__["data"][0] for a in arrays]])
        self.table = np.array(rows, np.int64)
        self.starts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum((self.table[:, 0] + _BLOCK - 1) // _BLOCK, out=self.starts[1:])
        self.blocks, self.work = int(self.starts[-1]), int(self.table[:, 0].sum())
        self.real = np.dtype(np.float32) if self.mixed else groups[0][0].dtype
        self.low = np.empty(0, np.uint16 if self.mixed else self.real)

    def _dense(self, a: Array) -> Array:
        if a.flags.c_contiguous:
            return a
        copy = np.ascontiguousarray(a)
        self.back.append((a, copy))
        return copy

    def run(self, kernel: Kernel, rates: Array, *numbers: object) -> None:
        workers = min(self.blocks, _LEAST.workers(self.work))
        kernel.run(workers, self.blocks, self.starts, self.table, rates, self.mixed, self.low, *numbers)

    def finish(self) -> None:
        for a, copy in self.back:
            a[...] = copy


_LEAST = optimizer.sgd  # knows how much work is worth a second thread


def move(rule: str, groups: Sequence[Sequence[Array]], rates: Mapping[str, Sequence[float]], **numbers: float) -> None:
    """Move many weights by one rule.

    Parameters
    ----------
    rule : str
        A key of :data:`RULES`.
    groups : sequence of sequences of ndarray
        For each weight: itself, its gradient, its states and, if it is float16 (as all are then), a float32 master
        copy. All but the gradient are written; with a master copy the weight is not read.
    rates : dict
        For each name in ``RULES[rule].rates`` a number for each weight.
    **numbers : float
        Those of ``RULES[rule].numbers``.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``multi_sgd_update`` and kin, with ``out`` the weights.

    Examples
    --------
    >>> a, b = np.array([1.0]), np.array([2.0, 3.0])
    >>> groups, lists = [(a, np.ones(1)), (b, np.ones(2))], {"lr": [0.5, 1.0], "wd": [0.0, 0.0]}
    >>> move("sgd", groups, lists, rescale_grad=1.0, clip_gradient=-1.0)
    >>> a, b
    (array([0.5]), array([1., 2.]))
    """
    kernel, names, common = RULES[rule]
    job = _Job(groups)
    table = np.array([rates[n][: len(groups)] for n in names.split()], np.float64).T.copy()
    job.run(kernel, table, np.empty(0, job.real), *[float(numbers[n]) for n in common.split()])
    job.finish()


def _gone() -> None:
    """Stands for a gradient that is no longer there."""


class Standing:
    """Weights that one rule moves again and again, with the same states: all but gradients and rates stays.

    Parameters
    ----------
    rule : str
        A key of :data:`RULES`.
    groups : sequence of sequences of ndarray
        As for :func:`move`, of float32 or float64, contiguous.
    **more : float
        Numbers of the rule that stay, too.

    Examples
    --------
    >>> w, g = np.array([1.0]), np.ones(1)
    >>> standing = Standing("sgd", [(w, g)])
    >>> standing.take([g])
    True
    >>> standing.move({"lrs": (0.5,), "wds": (0.0,), "rescale_grad": 1.0, "clip_gradient": -1.0})
    >>> w
    array([0.5])
    """

    def __init__(self, rule: str, groups: Sequence[Sequence[Array]], **more: float) -> None:
        self._more = more
        self._kernel, names, common = RULES[rule]
        self._names, self._common = [f"{n}s" for n in names.split()], common.split()
        job = self._job = _Job(groups)
        self._dtype, self._sizes = job.real, [weight.size for weight, *_ in groups]
        self._none = np.empty(0, job.real)
        #: Gradients come and go: each is known as long as somebody has it.
        self._grads: list[Any] = [weakref.ref(grad) for _, grad, *_ in groups]
        self._rates: list[Any] = []
        self._table = np.empty((len(groups), len(self._names)))
        job.held = [a for _, *arrays in groups for a in arrays[1:]] + [weight for weight, *_ in groups]

    def take(self, grads: Sequence[Array]) -> bool:
        """Take gradients, one for each weight; False where one is not of the weight's kind."""
        table = self._job.table
        for i, (grad, ref) in enumerate(zip(grads, self._grads)):
            if ref() is not grad:
                if grad.dtype != self._dtype or grad.size != self._sizes[i] or not grad.flags.c_contiguous:
                    return False
                self._grads[i] = _gone  # an interrupt may come before the last line
                table[i, 1] = grad.__array_interface__["data"][0]
                self._grads[i] = weakref.ref(grad)
        return True

    def move(self, numbers: Mapping[str, Any]) -> None:
        """Move the weights by the gradients that were taken; the numbers are those of an operator for many."""
        rates = [numbers[n] for n in self._names]
        if any(map(is_not, rates, self._rates)) or not self._rates:
            for column, each in zip(self._table.T, rates):
                column[:] = each[: len(column)]
            self._rates = rates
        common = [float(self._more[n] if n in self._more else numbers[n]) for n in self._common]
        self._job.run(self._kernel, self._table, self._none, *common)


def lamb(
    groups: Sequence[Sequence[Array]],
    lrs: Sequence[float],
    wds: Sequence[float],
    steps: Sequence[int],
    *,
    beta1: float,
    beta2: float,
    epsilon: float,
    bias_correction: bool,
    lower_bound: float,
    upper_bound: float,
    rescale_grad: float,
    clip_gradient: float,
) -> None:
    """Move many weights by LAMB: directions first, then each weight along its own, by the ratio of their norms.

    Parameters
    ----------
    groups
        As for :func:`move`, with the states mean and var.
    lrs, wds, steps : sequence
        Learning rate, weight decay and number of the step, from 1, of each weight.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_multi_lamb_update`` and ``_multi_mp_lamb_update``.
    """
    job, n = _Job(groups), len(groups)
    rates = np.array([lrs[:n], wds[:n], steps[:n]], np.float64).T.copy()
    blocks = job.blocks
    if not blocks:
        return
    ways, sums = np.empty(blocks * _BLOCK, job.real), np.zeros((blocks + 1, 2))
    job.run(
        _lamb_directions,
        rates,
        ways,
        sums,
        float(beta1),
        float(beta2),
        float(epsilon),
        float(bias_correction),
        float(rescale_grad),
        float(clip_gradient),
    )
    weight, way = np.sqrt(np.add.reduceat(sums, job.starts[:-1], axis=0)).T
    if lower_bound >= 0:
        weight = np.maximum(weight, lower_bound)
    if upper_bound >= 0:
        weight = np.minimum(weight, upper_bound)
    rates[:, 0] *= np.divide(weight, way, out=np.ones(n), where=(weight != 0) & (way != 0))
    job.run(_lamb_moves, rates, ways)
    job.finish()


def sums_of_squares(arrays: Sequence[Array], out: Array) -> None:
    """Write the sum of squares of each array, all of one dtype.

    Examples
    --------
    >>> out = np.empty(2)
    >>> sums_of_squares([np.ones(3), np.full(2, 2.0)], out)
    >>> out
    array([3., 8.])
    """
    held = [np.ascontiguousarray(a) for a in arrays]
    table = np.array([[a.size, a.__array_interface__["data"][0]] for a in held], np.int64)
    starts = np.zeros(len(held) + 1, np.int64)
    np.cumsum((table[:, 0] + _BLOCK - 1) // _BLOCK, out=starts[1:])
    blocks = int(starts[-1])
    sums = np.zeros(blocks + 1)
    _squares.run(
        min(blocks, _LEAST.workers(int(table[:, 0].sum()))), blocks, starts, table, np.empty(0, held[0].dtype), sums
    )
    out[...] = np.where(table[:, 0] > 0, np.add.reduceat(sums, starts[:-1]), 0)


@kernel(threshold=1 << 18)
def _total(first: int, last: int, y: Array, addresses: Array) -> None:
    """Elements from `first` to `last` of a sum; a block of it stays in the cache while the terms are added to it."""
    for at in range(first, last, _BLOCK):
        n = min(_BLOCK, last - at)
        s, a, b = y[at : at + n], _at(addresses[0], at, n, y), _at(addresses[1], at, n, y)
        for i in range(n):
            s[i] = a[i] + b[i]
        for t in range(2, addresses.size):
            a = _at(addresses[t], at, n, y)
            for i in range(n):
                s[i] += a[i]


#: NumPy adds fewer elements in less time than a kernel is called.
_TOTAL_FROM = 1 << 14


def total(arrays: Sequence[Array], out: Array) -> None:
    """Write the sum of arrays of one shape and dtype, added from the first to the last, in one pass.

    Examples
    --------
    >>> out = np.empty(2)
    >>> total([np.ones(2), np.full(2, 2.0), np.full(2, 4.0)], out)
    >>> out
    array([7., 7.])
    """
    if len(arrays) == 1:
        np.copyto(out, arrays[0])
    elif out.size < _TOTAL_FROM:
        np.add(arrays[0], arrays[1], out=out)
        for a in arrays[2:]:
            out += a
    else:
        held = [flat(a) for a in arrays]
        with writable(out) as (y,):
            _total(y.size, y.reshape(-1), np.array([a.ctypes.data for a in held], np.int64))
