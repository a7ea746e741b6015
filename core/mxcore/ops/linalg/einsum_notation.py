"""Einstein's notation: which labels the axes of operands and result have."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .contractions import Labels

__all__ = ["labels_of"]

_DOTS = "..."


def _axes(text: str, where: str) -> list[str]:
    """The letters of one operand, and an item '...' for the axes that are broadcast."""
    before, dots, after = text.partition(_DOTS)
    for c in before + after:
        if not (c.isascii() and c.isalpha()):
            raise ValueError(f"subscripts of {where}, {text!r}: {c!r} is no letter, and ... may stand there once")
    return [*before, *([_DOTS] if dots else []), *after]


def _result(text: str | None, operands: list[list[str]]) -> list[str]:
    letters = [c for at in operands for c in at if c != _DOTS]
    if text is None:  # letters that come once, in the order of the alphabet, after what is broadcast
        once = sorted(c for c in set(letters) if letters.count(c) == 1)
        return [*([_DOTS] if any(_DOTS in at for at in operands) else []), *once]
    found = _axes(text, "the result")
    for c in found:
        if found.count(c) > 1:
            raise ValueError(f"subscripts of the result, {text!r}: {c!r} stands there twice")
        if c != _DOTS and c not in letters:
            raise ValueError(f"subscripts of the result, {text!r}: no array has an axis {c!r}")
    return found


@lru_cache(1024)
def labels_of(subscripts: str, dims: tuple[int, ...]) -> Labels:
    """The labels that subscripts give to the axes of arrays with so many dimensions each.

    Raises
    ------
    ValueError
        If they do not fit the arrays, or are no notation.
    """
    from .contractions import Labels

    left, arrow, right = subscripts.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(dims):
        raise ValueError(f"subscripts {subscripts!r} are of {len(texts)} arrays, there are {len(dims)}")
    operands = [_axes(text, f"array {i}") for i, text in enumerate(texts)]
    result = _result(right if arrow else None, operands)
    widths = []
    for i, (at, n) in enumerate(zip(operands, dims)):
        width = n - sum(c != _DOTS for c in at)
        if width < 0 or width and _DOTS not in at:
            raise ValueError(f"subscripts of array {i}, {texts[i]!r}, do not fit its {n} dimensions")
        widths.append(width)
    most = max(widths, default=0)
    if most and _DOTS not in result:
        raise ValueError(f"subscripts of the result in {subscripts!r} must have ... for the axes that are broadcast")

    def numbers(at: list[str], width: int) -> tuple[int, ...]:
        return tuple([k for c in at for k in (range(-width, 0) if c == _DOTS else (ord(c),))])

    return Labels(tuple([numbers(at, w) for at, w in zip(operands, widths)]), numbers(result, most))
