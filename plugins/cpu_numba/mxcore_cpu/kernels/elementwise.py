"""Maps over elements: unary functions, activations and their gradients. One table row is one kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import math as m
from ..jit import Kernel, helper, kernel
from ..math import like, where
from ..typing import Array, Scalar
from ._arrays import flat, writable
from .columns import same

__all__ = [
    "ACTIVATIONS",
    "BINARY",
    "GRADIENTS",
    "UNARY",
    "WITH_NUMBER",
    "activation",
    "activation_backward",
    "binary",
    "dropout",
    "prelu",
    "prelu_backward",
    "unary",
]


def _map(name: str, function: Callable[..., object], arrays: int) -> Kernel:
    """Make the kernel of a scalar function of one or two elements and a parameter."""
    f = helper(function)

    def one(first: int, last: int, x: Array, y: Array, parameter: Scalar) -> None:
        x, y = x[first:last], y[first:last]  # from 0, so that no index needs a check
        p = x.dtype.type(parameter)
        if same(x, y):
            for i in range(y.size):
                y[i] = f(y[i], p)
        else:
            for i in range(y.size):
                y[i] = f(x[i], p)

    def two(first: int, last: int, a: Array, x: Array, y: Array, parameter: Scalar) -> None:
        a, x, y = a[first:last], x[first:last], y[first:last]
        p = x.dtype.type(parameter)
        if same(a, y):
            for i in range(y.size):
                y[i] = f(y[i], x[i], p)
        else:
            for i in range(y.size):
                y[i] = f(a[i], x[i], p)

    body: Callable[..., None] = one if arrays == 1 else two
    body.__name__ = body.__qualname__ = name  # which is also the name of its file in the cache
    return kernel(body, threshold=1 << 15)


#: Functions of x alone; `p` is not used.
UNARY = {
    name: _map(name, function, 1)
    for name, function in {
        "exp": lambda x, p: m.exp(x),
        "expm1": lambda x, p: m.expm1(x),
        "log": lambda x, p: m.log(x),
        "log1p": lambda x, p: m.log1p(x),
        "tanh": lambda x, p: m.tanh(x),
        "sigmoid": lambda x, p: m.sigmoid(x),
        "erf": lambda x, p: m.erf(x),
        "softrelu": lambda x, p: m.softplus(x),
        "softsign": lambda x, p: x / (like(x, 1.0) + abs(x)),
        "relu": lambda x, p: m.relu(x),
        "erfinv": lambda x, p: m.erfinv(x),
        "gamma": lambda x, p: m.gamma(x),
        "gammaln": lambda x, p: m.lgamma(x),
        "digamma": lambda x, p: m.digamma(x),
    }.items()
}

#: Functions of two elements; `p` is not used. Those of an element and a number are of the same names.
BINARY = {
    name: _map(name, function, 2)
    for name, function in {"hypot": lambda x, y, p: m.hypot(x, y), "modulo": lambda x, y, p: m.modulo(x, y)}.items()
}
WITH_NUMBER = {
    name: _map(name + "_number", function, 1)
    for name, function in {"hypot": lambda x, p: m.hypot(x, p), "modulo": lambda x, p: m.modulo(x, p)}.items()
}

_SELU_SCALE, _SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717

#: Functions of x and a slope: the types of LeakyReLU.
ACTIVATIONS = {
    name: _map("act_" + name, function, 1)
    for name, function in {
        "leaky": lambda x, p: where(x > like(x, 0.0), x, x * p),
        "elu": lambda x, p: where(x > like(x, 0.0), x, p * m.expm1_below(x)),
        "selu": lambda x, p: like(x, _SELU_SCALE) * where(x > like(x, 0.0), x, like(x, _SELU_ALPHA) * m.expm1_below(x)),
        "gelu": lambda x, p: x * m.gate(x),
    }.items()
}

#: Gradients: dy and the output y for the functions of UNARY, dy and the input x for those of ACTIVATIONS.
GRADIENTS = {
    name: _map("grad_" + name, function, 2)
    for name, function in {
        "relu": lambda dy, y, p: dy * where(y > like(y, 0.0), like(y, 1.0), y),
        "sigmoid": lambda dy, y, p: dy * y * (like(y, 1.0) - y),
        "tanh": lambda dy, y, p: dy * (like(y, 1.0) - y * y),
        "softrelu": lambda dy, y, p: -dy * m.expm1(-y),
        "softsign": lambda dy, y, p: dy * (like(y, 1.0) - abs(y)) * (like(y, 1.0) - abs(y)),
        "leaky": lambda dy, x, p: where(x > like(x, 0.0), dy, dy * p),
        "elu": lambda dy, x, p: where(x > like(x, 0.0), dy, dy * (p * m.exp_below(x))),
        "selu": lambda dy, x, p: (
            dy * like(x, _SELU_SCALE) * where(x > like(x, 0.0), like(x, 1.0), like(x, _SELU_ALPHA) * m.exp_below(x))
        ),
        "gelu": lambda dy, x, p: dy * (m.gate(x) + x * m.density(x)),
    }.items()
}


def unary(name: str, data: Array, out: Array) -> None:
    """Write a function of :data:`UNARY` of each element; `out` may be `data`.

    Examples
    --------
    >>> out = np.empty(3)
    >>> unary("relu", np.array([-1.0, 0, 2]), out)
    >>> out
    array([0., 0., 2.])
    """
    with writable(out) as (y,):
        UNARY[name](data.size, flat(data), y.reshape(-1), 0.0)


def binary(name: str, a: Array, b: Array | float, out: Array) -> None:
    """Write a function of :data:`BINARY` of two arrays of one shape, or of an array and a number."""
    with writable(out) as (y,):
        if isinstance(b, np.ndarray):
            BINARY[name](a.size, flat(a), flat(b), y.reshape(-1), 0.0)
        else:
            WITH_NUMBER[name](a.size, flat(a), y.reshape(-1), float(b))


def activation(name: str, data: Array, out: Array, slope: float = 0.25) -> None:
    """Write a function of :data:`UNARY`, or one of :data:`ACTIVATIONS` with its slope."""
    table = ACTIVATIONS if name in ACTIVATIONS else UNARY
    with writable(out) as (y,):
        table[name](data.size, flat(data), y.reshape(-1), float(slope))


def activation_backward(name: str, dy: Array, kept: Array, d_data: Array, slope: float = 0.25) -> None:
    """Write the gradient of :func:`activation`; `kept` is its input for ACTIVATIONS, else its output."""
    with writable(d_data) as (dx,):
        GRADIENTS[name](dy.size, flat(dy), flat(kept), dx.reshape(-1), float(slope))


_dropout = _map("dropout", lambda x, u, keep: where(u < keep, x / keep, like(x, 0.0)), 2)


def dropout(data: Array, uniform: Array, keep: float, out: Array) -> None:
    """Write ``data / keep`` where the uniform random number of an element is below `keep`, else 0.

    It serves backward too, with the same random numbers.
    """
    with writable(out) as (y,):
        _dropout(data.size, flat(data), flat(uniform), y.reshape(-1), float(keep))


@kernel(threshold=1 << 15)
def _prelu(first: int, last: int, channels: int, inner: int, x: Array, gamma: Array, y: Array) -> None:
    zero = x.dtype.type(0)
    for plane in range(first, last):
        g = gamma[plane % channels]
        a, b = x[plane * inner : (plane + 1) * inner], y[plane * inner : (plane + 1) * inner]
        for i in range(inner):
            b[i] = where(a[i] > zero, a[i], a[i] * g)


@kernel(threshold=1 << 15)
def _prelu_gradient(
    first: int, last: int, channels: int, inner: int, x: Array, gamma: Array, dy: Array, dx: Array, sums: Array
) -> None:
    zero = x.dtype.type(0)
    for plane in range(first, last):
        g = gamma[plane % channels]
        low, high = plane * inner, (plane + 1) * inner
        a, b, c = x[low:high], dy[low:high], dx[low:high]
        total = zero
        for i in range(inner):
            c[i] = where(a[i] > zero, b[i], b[i] * g)
            total += where(a[i] > zero, zero, a[i] * b[i])
        sums[plane] = total


def _planes(data: Array, gamma: Array) -> tuple[int, int]:
    """Return (planes, elements of each): gamma has one entry for all, or one for each channel (axis 1)."""
    inner = data.size if gamma.size == 1 else data[:1, :1].size
    return (data.size // inner if inner else 0), inner


def prelu(data: Array, gamma: Array, out: Array) -> None:
    """Write x where it is positive, else gamma * x; gamma has one element, or one for each channel (axis 1)."""
    planes, inner = _planes(data, gamma)
    with writable(out) as (y,):
        _prelu.run(_prelu.workers(data.size), planes, gamma.size, inner, flat(data), flat(gamma), y.reshape(-1))


def prelu_backward(dy: Array, data: Array, gamma: Array, d_data: Array, d_gamma: Array) -> None:
    """Write both gradients of :func:`prelu`."""
    planes, inner = _planes(data, gamma)
    sums = np.empty(planes, data.dtype)
    with writable(d_data) as (dx,):
        _prelu_gradient.run(
            _prelu_gradient.workers(data.size),
            planes,
            gamma.size,
            inner,
            flat(data),
            flat(gamma),
            flat(dy),
            dx.reshape(-1),
            sums,
        )
    d_gamma[...] = sums.reshape(-1, gamma.size).sum(axis=0).reshape(d_gamma.shape)
