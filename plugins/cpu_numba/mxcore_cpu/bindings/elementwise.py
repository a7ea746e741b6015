"""Functions of each element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mxcore.plugin import Call, Params, Spec

from ..kernels import elementwise, many
from ..kernels._arrays import flat
from ..typing import Array, Outs
from .common import FLOATS, cpu, large


def _unary(op: str, name: str, when: Callable[..., bool] | None = large) -> None:
    @cpu.kernel(op, dtypes=FLOATS, when=when, out=True)
    def kernel(k: Call, p: Params, outs: Outs, data: Array) -> None:
        elementwise.unary(name, data, outs[0])


for _op, _name in {n: n for n in "exp expm1 log log1p tanh sigmoid erf softsign relu".split()}.items():
    _unary(_op, _name)
for _op in "erfinv gamma gammaln _digamma".split():  # many passes of NumPy
    _unary(_op, _op.lstrip("_"), None)


for _op, _name in {"_hypot": "hypot", "broadcast_hypot": "hypot", "_mod": "modulo", "broadcast_mod": "modulo"}.items():

    @cpu.kernel(_op, dtypes=FLOATS, when=lambda p, a, b: a.shape == b.shape, out=True)
    def _binary(k: Call, p: Params, outs: Outs, a: Array, b: Array, name: str = _name) -> None:
        elementwise.binary(name, a, b, outs[0])


for _op, _name in {"_hypot_scalar": "hypot", "_mod_scalar": "modulo"}.items():

    @cpu.kernel(_op, dtypes=FLOATS, when=lambda p, a: a.size >= 1 << 7, out=True)
    def _with_number(k: Call, p: Params, outs: Outs, a: Array, name: str = _name) -> None:
        elementwise.binary(name, a, p.scalar, outs[0])


#: A call of a kernel costs about what NumPy needs for so many elements: its relu and tanh are fast, its gradients take
#: several passes.
_ACTIVATION_FROM = {"relu": 1 << 12, "tanh": 1 << 12}


@cpu.kernel(
    "Activation", dtypes=FLOATS, when=lambda p, data: data.size >= _ACTIVATION_FROM.get(p.act_type, 1 << 7), out=True
)
def _activation(k: Call, p: Params, outs: Outs, data: Array) -> None:
    elementwise.activation(p.act_type, data, outs[0])


@cpu.kernel("_backward_Activation", dtypes=FLOATS, when=lambda p, dy, out: dy.size >= 1 << 8, out=True)
def _backward_activation(k: Call, p: Params, outs: Outs, dy: Array, out: Array) -> None:
    elementwise.activation_backward(p.act_type, dy, out, outs[0])


def _standing_gradient(k: Call, p: Params, ins: Sequence[Any], outs: Sequence[Any]) -> Callable[[], None]:
    """The gradient of an activation in a program, whose outputs are whole."""
    gradient = elementwise.GRADIENTS[p.act_type]

    def call() -> None:
        dy, out = ins
        gradient(dy.size, flat(dy), flat(out), outs[0].reshape(-1), 0.25)

    return call


_backward_activation.binds = _standing_gradient  # type: ignore[attr-defined]


#: The types of LeakyReLU with a loop of their own, and elements from which it pays: NumPy's maximum is fast, its erf
#: takes many passes.
_LEAKY_FROM = {"leaky": 1 << 12, "elu": 1 << 8, "selu": 1 << 8, "gelu": 1 << 4}


def _leaky(p: Params, data: Spec, *rest: Spec) -> bool:
    return p.act_type in _LEAKY_FROM and data.size >= _LEAKY_FROM[p.act_type]


@cpu.kernel("LeakyReLU", dtypes=FLOATS, when=_leaky, out=True)
def _leaky_relu(k: Call, p: Params, outs: Outs, data: Array, gamma: Array | None = None) -> None:
    elementwise.activation(p.act_type, data, outs[0], p.slope)


@cpu.kernel("_backward_LeakyReLU", dtypes=FLOATS, when=_leaky, out=True)
def _backward_leaky_relu(k: Call, p: Params, outs: Outs, dy: Array, data: Array) -> None:
    elementwise.activation_backward(p.act_type, dy, data, outs[0], p.slope)


@cpu.kernel("add_n", dtypes=FLOATS, out=True)
def _add_n(k: Call, p: Params, outs: Outs, *args: Array) -> None:
    many.total(args, outs[0])
