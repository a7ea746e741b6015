"""Where the library computes, and where the kernels that are compiled here do: by shape and instructions.

Measured against each other in one process, forward, data gradient and weight gradient apart, over the layers of common
networks; ``docs/onednn.md`` has the figures. With AVX2 the library loses where a layer is a plain product of matrices
(1x1: BLAS does that, without reorders), and in gradients of few channels.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from .library import ISA_AVX512

if TYPE_CHECKING:
    from .convolution import Geometry

__all__ = ["Facts", "pays"]

#: BLAS is slow for fewer columns.
_NARROW = 64
#: With fewer channels the library's blocks are half empty; of so many, reorders of the weights take long.
_FEW, _MANY = 8, 256


class Facts(NamedTuple):
    """What of a convolution decides.

    Attributes
    ----------
    taps : int
        Weights of a filter for one channel.
    channels : int
        Of the data, for each group.
    deep : bool
        Whether each of several groups has one channel.
    positions : int
        Of the output.
    """

    taps: int
    channels: int
    deep: bool
    positions: int

    @classmethod
    def of(cls, g: Geometry) -> Facts:
        each = g.weight[1]
        return cls(prod(g.weight[2:]), each, each == 1 and g.groups > 1, prod(g.dst[2:]))


_Rule = Callable[[Facts], bool]
_RULES: dict[str, dict[str, _Rule]] = {
    "avx2": {
        "forward": lambda f: f.taps > 1 or f.positions < _NARROW,
        "data": lambda f: f.taps > 1 and (f.deep or f.channels >= _FEW),
        "weight": lambda f: not f.deep and f.taps > 1 and f.channels > 1 and f.channels < _MANY,
    },
    "avx512": {
        "forward": lambda f: True,
        "data": lambda f: f.deep or f.channels >= _FEW,
        "weight": lambda f: not f.deep,
    },
}


def pays(isa: int, piece: str, g: Geometry) -> bool:
    """Whether the library is the faster one.

    Parameters
    ----------
    isa : int
        The bits of its instructions.
    piece : str
        ``'forward'``, ``'data'`` or ``'weight'``, whose gradients these are.
    g : Geometry
        A transposed convolution asks for those of the one whose gradient it is.
    """
    return _RULES["avx512" if isa & ISA_AVX512 == ISA_AVX512 else "avx2"][piece](Facts.of(g))
