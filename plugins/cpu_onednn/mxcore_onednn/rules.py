"""Where the library computes, and where the kernels that are compiled here do: by shape and instructions.

Measured against each other in one process, forward, data gradient and weight gradient apart, over the layers of common
networks; ``docs/onednn.md`` has the figures. Where a layer is a plain product of matrices (1x1), BLAS does that without
reorders: the library loses there, unless it has AVX-512 and BLAS has not, and reorders take less than the product. It
also loses in gradients of few channels, and with AVX-512 in groups of few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from .library import ISA_AVX512, ISA_BFLOAT16, blas_core

if TYPE_CHECKING:
    from .convolution import Geometry
    from .recurrent import Layer

__all__ = [
    "Facts",
    "folds",
    "left",
    "lies_last",
    "multiplied",
    "multiplies",
    "narrows",
    "pays",
    "pools",
    "prepares",
    "recurs",
    "travels",
    "worth",
]

#: BLAS is slow for fewer columns.
_NARROW = 64
#: With fewer channels the library's blocks are half empty; of so many, reorders of the weights take long.
_FEW, _MANY = 8, 256
#: Channels that one vector of AVX-512 holds: those of a group have to fill it.
_VECTOR = 16
#: Multiplications that take no longer than a call of the library.
_SMALL = 1 << 17
#: … of several layers; and from where, with AVX2, BLAS makes up for what is left to be done behind it.
_FOLDED, _LARGE = 1 << 18, 1 << 27
#: Sums of bfloat16 that are made before the library has been called.
_NARROWED = 1 << 14
#: Those of OpenBLAS's products that have no AVX-512, also on processors that it does not know yet.
_NARROW_CORES = {"Haswell", "Zen", "Excavator", "Steamroller", "Piledriver", "Bulldozer", "Sandybridge", "Nehalem"}
#: Images of so many elements stay in the caches between a reorder and a product.
_NEAR = 1 << 22
#: Of so few rows a product takes no longer than reorders of its weights; of so many weights for each row, AVX-512.
_FEW_ROWS, _MANY_WEIGHTS = 512, 512
#: Of fewer places transformed filters take longer than products of their tiles save: with AVX-512, and with AVX2.
_PLACES, _MANY_PLACES = 160, 512
#: … where they are kept, which are to be read: of fewer places that takes as long, smaller ones than calls.
_KEPT_PLACES, _KEPT_WORK = 180, 1 << 24
#: So much of the work decides over the layout of all images.
_GOOD_PART, _MOST = 0.3, 0.75
#: So many multiplications for each element of images take longer than these take in another layout.
_LITTLE_MOVED = 110


class Facts(NamedTuple):
    """What of a convolution decides.

    Attributes
    ----------
    taps : int
        Weights of a filter for one channel.
    channels, filters : int
        Of the data and of the output, for each group.
    groups : int
    positions, rows : int
        Of the output: of one image, of all.
    elements : int
        Of data and output.
    """

    taps: int
    channels: int
    filters: int
    groups: int
    positions: int
    rows: int
    elements: int

    @classmethod
    def of(cls, g: Geometry) -> Facts:
        positions = prod(g.dst[2:])
        return cls(
            taps=prod(g.weight[2:]),
            channels=g.weight[1],
            filters=g.weight[0] // g.groups,
            groups=g.groups,
            positions=positions,
            rows=g.dst[0] * positions,
            elements=prod(g.src) + prod(g.dst),
        )

    @property
    def deep(self) -> bool:
        """Whether each of several groups has one channel."""
        return self.channels == 1 and self.groups > 1

    @property
    def full(self) -> bool:
        """Whether groups fill vectors."""
        return self.groups == 1 or not (self.channels % _VECTOR or self.filters % _VECTOR)

    def dense(self, least: int, less: int, elements: int) -> bool:
        """Whether an element that is reordered is multiplied `least` times at least; `less`, among few `elements`."""
        times = self.channels * self.filters / (self.channels + self.filters)
        return self.taps > 1 or times >= least or times >= less and self.elements <= elements

    def light(self, rows: int) -> bool:
        """Whether reorders of a weight's gradient take little, beside many rows; of large ones, beside so many."""
        few = self.rows >= rows or self.taps * self.channels * self.filters <= 1 << 20
        return few and (self.rows >= 256 or self.taps > 1 or self.channels < 1024)


_Rule = Callable[[Facts], bool]


def _wide_forward(f: Facts) -> bool:
    return f.positions < _NARROW if f.deep else f.full and f.dense(64, 32, _NEAR)


def _wide_data(f: Facts) -> bool:
    return f.elements <= _NEAR if f.deep else f.full and f.channels >= _FEW and f.dense(24, 0, _NEAR // 2)


def _wide_weight(f: Facts) -> bool:
    if f.deep:
        return f.elements <= _NEAR and f.taps <= 9
    return f.full and f.light(_NARROW) and f.dense(24, 0, _NEAR // 2)


def _equal_forward(f: Facts) -> bool:
    return _wide_forward(f) and (f.deep or f.positions <= _NARROW or f.taps > 1 and f.channels > 1)


def _equal_data(f: Facts) -> bool:
    return _wide_data(f) and (f.deep or f.positions <= _NARROW or f.taps > 1)


def _equal_weight(f: Facts) -> bool:
    return _wide_weight(f) and (f.deep or f.light(256) and (f.taps > 1 or f.rows >= 256 and f.elements <= _NEAR // 2))


_RULES: dict[str, dict[str, _Rule]] = {
    "avx2": {
        "forward": lambda f: f.taps > 1 or f.positions < _NARROW,
        "data": lambda f: f.taps > 1 and (f.deep or f.channels >= _FEW),
        "weight": lambda f: not f.deep and f.taps > 1 and f.channels > 1 and f.channels < _MANY,
    },
    "avx512": {"forward": _wide_forward, "data": _wide_data, "weight": _wide_weight},
    "avx512, as BLAS": {"forward": _equal_forward, "data": _equal_data, "weight": _equal_weight},
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
    if g.dtype == "bfloat16":  # of which others make float32 first
        return isa & ISA_BFLOAT16 == ISA_BFLOAT16
    rules = "avx2"
    if isa & ISA_AVX512 == ISA_AVX512:
        rules = "avx512" if blas_core() in _NARROW_CORES else "avx512, as BLAS"
    return _RULES[rules][piece](Facts.of(g))


def multiplied(isa: int, piece: str, g: Geometry) -> bool:
    """Whether a convolution of one place, channels last, shall be a product of matrices as they lie.

    The library reorders the weights first, which takes longer the more of them there are beside rows; with AVX2 it has
    poor code for gradients of steps.
    """
    if prod(g.weight[2:]) > 1 or g.groups > 1 or any(g.pad):
        return False
    f = Facts.of(g)
    if isa & ISA_AVX512 == ISA_AVX512:
        return f.channels * f.filters >= _MANY_WEIGHTS * f.rows
    return f.rows < _FEW_ROWS or piece != "forward" and max(g.stride) > 1


def left(isa: int, piece: str, g: Geometry, kept: bool = False) -> bool:
    """Whether another plugin's kernel for channels last is the faster one, if there is one.

    Products of transformed tiles need 16 products where windows of 3 x 3 have 36. Unless filters are kept they are
    transformed at each call: there shall be places enough. The gradient of weights of one place is a product of
    matrices, of which the library makes less than others with AVX-512.

    Parameters
    ----------
    isa, piece, g
        As of :func:`pays`.
    kept : bool
        What is made of the weights is.
    """
    f, wide = Facts.of(g), isa & ISA_AVX512 == ISA_AVX512
    plain = {*g.stride, *g.dilate, g.groups} == {1} and g.dtype == "float32" and len(g.src) == 4
    channels = min(f.channels, f.filters)
    if not plain or f.rows < (_KEPT_PLACES if kept else _PLACES) or kept and g.work < _KEPT_WORK:
        return False
    if g.weight[2:] == (1, 1):
        narrow = blas_core() in _NARROW_CORES
        return piece == "weight" and wide and narrow and channels >= 2 * _VECTOR and not any(g.pad)
    enough = wide or kept or piece == "weight" or f.rows >= _MANY_PLACES
    return g.weight[2:] == (3, 3) and max(g.pad) <= 2 and enough and channels >= (2 if wide else 1) * _VECTOR


def travels(isa: int, piece: str, g: Geometry) -> bool:
    """Whether the library has good code for a part of a convolution with channels last, without reorders.

    Parameters
    ----------
    isa, piece, g
        As of :func:`pays`.
    """
    f, wide = Facts.of(g), isa & ISA_AVX512 == ISA_AVX512
    if f.deep:
        plain = f.filters == 1 and len(g.src) == 4
        return piece != "weight" or f.taps <= 9 and (wide or plain)
    if wide and not f.full or f.groups > 1 and min(f.channels, f.filters) < _FEW:
        return False
    return piece != "data" or f.channels >= _FEW


def prepares(convolutions: Sequence[Geometry], ours: Sequence[Geometry]) -> bool:
    """Whether layers that predict shall leave convolutions to another plugin's kernels, whose weights are kept.

    Images that other layers read have then their channels last, too, or are reordered: it shall be a good part of the
    work, and images little beside that.

    Parameters
    ----------
    convolutions : sequence of Geometry
    ours : sequence of Geometry
        Those of them for which there are such kernels, and which are `left` to these.
    """
    every, moved = sum(g.work for g in convolutions), sum(prod(g.src) + prod(g.dst) for g in convolutions)
    return sum(g.work for g in ours) > _GOOD_PART * every and every >= _LITTLE_MOVED * moved


def lies_last(isa: int, convolutions: Sequence[Geometry], prepared: bool = False) -> bool:
    """Whether layers whose images may have any layout are best off with channels last.

    With AVX-512 they are where kernels of others do much of the work (see :func:`prepares`), and where windows are
    larger than a place and channels fill vectors: there the library has better code for channels last (0.75 to 0.95 of
    the time) than for its own blocks of channels. For other layers it has none, and with several images a little worse
    one: those shall be a good part of the work, or most of it.
    """
    good = [g for g in convolutions if g.groups == 1 and prod(g.weight[2:]) > 1 and not (g.src[1] | g.dst[1]) % _VECTOR]
    enough = _GOOD_PART if all(g.src[0] == 1 for g in convolutions) else _MOST
    every = sum(g.work for g in convolutions)
    best = prepared or sum(g.work for g in good) > enough * every
    return isa & ISA_AVX512 == ISA_AVX512 and best


def recurs(isa: int, layer: Layer) -> bool:
    """Whether the library is the faster one at a recurrent layer whose weights are kept.

    With AVX2 long sequences of many samples keep BLAS busy.
    """
    if isa & ISA_AVX512 == ISA_AVX512 or layer.steps == 1 or layer.batch == 1:
        return True
    return layer.units >= 128 and layer.batch <= 8 or layer.units >= 256 and layer.batch <= 16


def multiplies(isa: int, dtype: str, rows: int, columns: int, inner: int) -> bool:
    """Whether the library is the faster one at a product of matrices, whose result has so many rows and columns.

    BLAS is the faster one at products with a vector. Of bfloat16 others make float32 first. Small products are over
    before the library has been called.
    """
    if rows * columns * inner < _SMALL:
        return False
    if dtype == "bfloat16":
        return isa & ISA_BFLOAT16 == ISA_BFLOAT16
    return isa & ISA_AVX512 == ISA_AVX512 and rows > 1 and columns >= 8


def folds(isa: int, rows: int, columns: int, inner: int) -> bool:
    """Whether a fully connected layer of float32 with a normalization in its weights is faster in the library.

    A product with a vector is BLAS's. With AVX2 large products are, too, whatever is done behind them.
    """
    work = rows * columns * inner
    return rows > 1 and work >= _FOLDED and (isa & ISA_AVX512 == ISA_AVX512 or work < _LARGE)


def worth(isa: int, dtype: str, products: int, work: int) -> bool:
    """Whether the library is the faster one at so many products of so many multiplications each.

    With AVX2 smaller ones are over before it has begun, larger ones keep BLAS busy. Of bfloat16 others make float32
    first.
    """
    if dtype == "bfloat16":
        return isa & ISA_BFLOAT16 == ISA_BFLOAT16 and products * work >= _SMALL
    return products * work >= _SMALL if isa & ISA_AVX512 == ISA_AVX512 else 1 << 15 <= work < 1 << 26


def narrows(isa: int, work: int) -> bool:
    """Whether the library is the faster one at bfloat16 that is no product, which NumPy's loops convert one by one.

    Parameters
    ----------
    isa : int
    work : int
        Elements, times what each takes beside a sum.
    """
    return isa & ISA_BFLOAT16 == ISA_BFLOAT16 and work >= _NARROWED


def pools(isa: int, kind: str, window: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether the library is the faster one at pooling: with AVX2 it has no code for channels first.

    Pairs that do not overlap have a kernel of their own here.
    """
    pairs = kind == "max" and all(n == 2 for n in (*window, *stride))
    return isa & ISA_AVX512 == ISA_AVX512 and not pairs
