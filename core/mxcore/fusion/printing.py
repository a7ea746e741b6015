"""Expression trees as text of any language."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .expr import Tree

__all__ = ["print_with"]


def print_with(
    tree: Tree,
    name: Callable[[str], str],
    call: Callable[[str, list[str]], str],
    number: Callable[[float], str] = repr,
    words: Mapping[str, str] | None = None,
    cast: Callable[[str, str], str] = "{1}".format,
) -> str:
    """Print a tree with a language's names, calls, numbers and words for and/or/not.

    Parameters
    ----------
    tree : tuple
        Of an :class:`Expr`, or a step of a :class:`Fused`.
    name : callable
        A name -> its text.
    call : callable
        A function of the expression language and the texts of its arguments -> the text of the call.
    number : callable
        A number -> its text.
    words : mapping
        The language's ``'and'``, ``'or'`` and ``'not'``; Python's unless told.
    cast : callable
        The name of a dtype and a text -> the text of the value in that dtype; the numbers in it are Python's. Nothing
        unless told.
    """
    w = words or {"and": "and", "or": "or", "not": "not "}

    def go(t: Tree) -> str:
        kind = t[0]
        if kind == "name":
            return name(t[1])
        if kind == "num":
            return number(t[1])
        if kind == "neg":
            return f"(-{go(t[1])})"
        if kind == "cast":
            return cast(t[1], repr(t[2][1]) if t[2][0] == "num" else go(t[2]))
        if kind == "not":
            return f"({w['not']}{go(t[1])})"
        if kind in ("+", "-", "*", "/"):
            return f"({go(t[1])} {kind} {go(t[2])})"
        if kind == "cmp":
            return f"({go(t[2])} {t[1]} {go(t[3])})"
        if kind in ("and", "or"):
            return f"({go(t[1])} {w[kind]} {go(t[2])})"
        return call(t[1], [go(x) for x in t[2:]])

    return go(tree)
