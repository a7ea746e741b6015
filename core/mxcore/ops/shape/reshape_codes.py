"""MXNet's reshape codes, resolved against a known or partly known shape."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index

__all__ = ["resolve_npx_shape", "resolve_shape"]


def resolve_shape(source: Sequence[int], target: Sequence[int], reverse: bool = False) -> tuple[int, ...]:
    """The shape that a reshape gives.

    Parameters
    ----------
    source : sequence of int
        -1 for an unknown dimension.
    target : sequence of int
        Lengths, or codes: 0 copies a dimension, -1 is inferred, -2 copies all that remain, -3 merges two, -4 splits one
        into the next two (of which one may be -1).
    reverse : bool
        Read all from right to left, the codes as well: the two lengths of a -4 then stand before it.

    Raises
    ------
    ValueError
        If the sizes do not agree, or a code has nothing to work on.

    Examples
    --------
    >>> resolve_shape((2, 3, 4), (-3, 0))
    (6, 4)
    >>> resolve_shape((2, 3, 4), (0, -4, -1, 3, -2))
    (2, 1, 3, 4)
    >>> resolve_shape((2, 12), (0, 4, 3, -4), reverse=True)
    (2, 4, 3)
    """
    src, codes = list(source), [index(d) for d in target]
    if reverse:
        src.reverse()
        codes.reverse()
    out = _lengths(src, codes, tuple(target))
    infer = out.index(None) if None in out else -1
    if reverse:
        out.reverse()
        infer = len(out) - 1 - infer if infer >= 0 else -1
    found = [-1 if d is None else d for d in out]
    if -1 in src:
        return tuple(found)
    total, rest = prod(source), prod(d for k, d in enumerate(found) if k != infer)
    if infer >= 0:
        if rest == 0 or total % rest:
            raise ValueError(f"an array of shape {tuple(source)} cannot be reshaped to {tuple(target)}")
        found[infer] = total // rest
    elif rest != total:
        raise ValueError(
            f"an array of shape {tuple(source)} cannot be reshaped to {tuple(target)} (size {total} to {rest})"
        )
    return tuple(found)


def _lengths(src: list[int], codes: list[int], target: tuple[int, ...]) -> list[int | None]:
    """The lengths that codes give, None for the one that the others decide."""
    out: list[int | None] = []
    i = 0
    at = iter(range(len(codes)))
    for j in at:
        d = codes[j]
        if d > 0:
            out.append(d)
        elif d == 0:
            out.append(_take(src, i, codes))
        elif d == -1:
            if None in out:
                raise ValueError(f"shape {target} has more than one -1")
            out.append(None)
        elif d == -2:
            out += src[i:]
            i = len(src)
        elif d == -3:
            a, b = _take(src, i, codes), _take(src, i + 1, codes)
            out.append(-1 if -1 in (a, b) else a * b)
            i += 1
        elif d == -4:
            if j + 2 >= len(codes):
                raise ValueError(f"code -4 in shape {target} needs two lengths behind it")
            out += _split(_take(src, i, codes), *codes[j + 1 : j + 3])
            next(at), next(at)
        else:
            raise ValueError(f"{d} is no length or code; codes are 0, -1, -2, -3, -4")
        i += d != -2
    return out


def _split(whole: int, a: int, b: int) -> list[int]:
    """The two lengths that one is split into."""
    if a == -1 and b == -1:
        raise ValueError("a split can infer one of its two lengths only")
    if whole != -1:
        if a == -1:
            a = whole // b
        if b == -1:
            b = whole // a
        if a * b != whole:
            raise ValueError(f"cannot split {whole} into {a} x {b}")
    return [a, b]


def _take(src: list[int], i: int, codes: list[int]) -> int:
    if i >= len(src):
        raise ValueError(f"shape code number {i + 1} finds no dimension: the array has {len(src)}")
    return src[i]


def resolve_npx_shape(source: Sequence[int], target: Sequence[int], reverse: bool = False) -> tuple[int, ...]:
    """The shape that ``npx.reshape`` gives.

    Parameters
    ----------
    source : sequence of int
        -1 for an unknown dimension.
    target : sequence of int
        Lengths, or codes: -1 is inferred, -2 copies a dimension, -3 drops one of length 1, -4 copies all that remain,
        -5 merges two, -6 splits one into the next two (of which one may be -1).
    reverse : bool
        Read all from right to left, the codes as well: the two lengths of a -6 then stand before it.

    Raises
    ------
    ValueError
        If the sizes do not agree, or a code has nothing to work on.

    Examples
    --------
    >>> resolve_npx_shape((2, 3, 4), (-5, -2))
    (6, 4)
    >>> resolve_npx_shape((8, 3, 4), (-6, 2, -1, -4))
    (2, 4, 3, 4)
    """
    src, codes = [*source], [index(d) for d in target]
    if reverse:
        src.reverse()
        codes.reverse()
    out = _npx_lengths(src, codes, tuple(target))
    if reverse:
        out.reverse()
    if -1 in src:
        return tuple([-1 if d is None else d for d in out])
    total, rest = prod(src), prod(d for d in out if d is not None)
    wrong = total % rest if None in out and rest else rest != total
    if wrong or None in out and not rest:
        raise ValueError(f"an array of shape {tuple(source)} cannot be reshaped to {tuple(target)}")
    return tuple([total // rest if d is None else d for d in out])


def _npx_lengths(src: list[int], codes: list[int], target: tuple[int, ...]) -> list[int | None]:
    """The lengths that the codes of ``npx.reshape`` give, None for the one that the others decide."""
    out: list[int | None] = []
    i = 0
    at = iter(range(len(codes)))
    for j in at:
        d = codes[j]
        if d >= 0:
            out.append(d)
        elif d == -1:
            if None in out:
                raise ValueError(f"newshape {target} has more than one -1")
            out.append(None)
        elif d == -2:
            out.append(_take(src, i, codes))
        elif d == -3:
            if _take(src, i, codes) not in (1, -1):
                raise ValueError(f"code -3 drops a dimension of length 1, number {i + 1} has length {src[i]}")
        elif d == -4:
            out += src[i:]
            i = len(src) - 1
        elif d == -5:
            a, b = _take(src, i, codes), _take(src, i + 1, codes)
            out.append(-1 if -1 in (a, b) else a * b)
            i += 1
        elif d == -6:
            if j + 2 >= len(codes):
                raise ValueError(f"code -6 in newshape {target} needs two lengths behind it")
            out += _split(_take(src, i, codes), *codes[j + 1 : j + 3])
            next(at), next(at)
        else:
            raise ValueError(f"{d} is no length or code; codes are -1, -2, -3, -4, -5, -6")
        i += 1
    return out
