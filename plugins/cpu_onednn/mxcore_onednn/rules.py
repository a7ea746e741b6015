"""Where the library computes, and where the kernels that are compiled here do: by shape and instructions.

Measured against each other in one process, forward, data gradient and weight gradient apart, over the layers of common
networks; ``docs/onednn.md`` has the figures. With AVX2 the library loses where a layer is a plain product of matrices
(1x1: BLAS does that, without reorders), where it has no good primitive (data gradients with strides, or to few
channels), and where reorders take longer than the work (a filter for each channel).
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
    strided, deep : bool
        Whether windows skip places; whether each group has one channel.
    positions : int
        Of the output.
    """

    taps: int
    channels: int
    strided: bool
    deep: bool
    positions: int

    @classmethod
    def of(cls, g: Geometry) -> Facts:
        each = g.weight[1]
        strided = max(g.stride) > 1
        return cls(prod(g.weight[2:]), each, strided, each == 1 and g.groups > 1, prod(g.dst[2:]))


_Rule = Callable[[Facts], bool]
_RULES: dict[str, dict[str, _Rule]] = {
    "avx2": {
        "forward": lambda f: not f.deep and (f.taps > 1 or f.positions < _NARROW and not f.strided),
        "data": lambda f: f.deep or f.taps > 1 and not f.strided and f.channels >= _FEW,
        "weight": lambda f: (
            not f.deep and f.taps > 1 and f.channels > 1 and (f.channels < _MANY or f.positions >= _NARROW)
        ),
    },
    "avx512": {
        "forward": lambda f: not f.deep,
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
