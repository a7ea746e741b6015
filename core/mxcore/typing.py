"""What bodies, kernels and gradient rules are given, for annotations.

>>> from mxcore.plugin import Array, Call, Operand, Operators, Params
>>> def body(k: Call, p: Params, data: Array) -> Array:
...     return k.xp.exp(p.scale * data)
>>> def gradient(F: Operators, p: Params, dy: Operand, y: Operand) -> Operand:
...     return p.scale * dy * y
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from ._core.context import Context
from ._core.device import Device
from .philox import Rng

__all__ = ["Array", "Call", "Operand", "Operators"]

#: In a body or kernel: an array of the device at hand, whatever its ``k.xp`` computes with.
Array: TypeAlias = Any

#: In a gradient rule: an array that users see, or a value of a graph. Both have Python's arithmetic.
Operand: TypeAlias = Any


class Call(Protocol):
    """``k``: what a body or kernel may know of its call."""

    @property
    def xp(self) -> Any:
        """The device's array namespace, with NumPy's meaning."""

    @property
    def device(self) -> Device:
        """The kind of device on which it runs."""

    @property
    def ctx(self) -> Context:
        """The one device on which it runs."""

    @property
    def is_train(self) -> bool:
        """Training mode, as captured at the call."""

    @property
    def wanted(self) -> tuple[bool, ...] | None:
        """Which outputs anyone reads; None means all."""

    @property
    def key(self) -> tuple[int, int, int] | None:
        """Seed, stream and counter of a call of a random operator; None for others."""

    @property
    def rng(self) -> Rng:
        """The random numbers of that key, each draw goes on with them; an error in other operators."""

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...] | None:
        """In a program, the shapes of the outputs (a consumer may have decided them); None in eager calls."""

    @property
    def replaces(self) -> bool:
        """Whether sparse outputs take the place of the inputs that they update, which may be moved in their memory."""

    @property
    def keep(self) -> Any:
        """What a kernel with a true attribute `keeps` may keep in a program that infers; None in all other calls."""


class Operators(Protocol):
    """``F``: operators as attributes, ``F.sum(x, axis=1)``. The same rule computes with arrays and composes graphs.

    An operator gives its output, or a list where users see several.
    """

    @property
    def roles(self) -> Mapping[str, Callable[..., Any]]:
        """Operators by what they do: ``F.roles["sum of gradients"]``."""

    def __getattr__(self, name: str) -> Callable[..., Any]: ...
