"""Dtypes in expressions: where casts stand, and which trees give the same in a wider dtype, rounded."""

from __future__ import annotations

from typing import Any

from .expr import Tree

__all__ = ["cast", "compared", "is_cast", "rounds_once", "selects"]

#: Functions whose float32 result, rounded to half precision, is the correctly rounded one.
_EXACT = frozenset("maximum minimum abs sign floor ceil trunc sqrt square".split())


def cast(tree: Tree, dtype: str) -> Tree:
    """The value of a tree in another dtype."""
    return ("cast", dtype, tree)


def is_cast(tree: Tree) -> bool:
    """Whether a tree is no more than a cast."""
    return bool(tree[0] == "cast")


def compared(tree: Tree, name: str, dtype: str) -> Tree | None:
    """The tree with the numbers that a name is compared with in its dtype; None if the name has other uses."""
    if tree[0] == "cmp" and tree[2] == ("name", name) and tree[3][0] == "num":
        return (*tree[:3], cast(tree[3], dtype))
    if tree == ("name", name):
        return None
    new: list[Any] = [tree[0]]
    for t in tree[1:]:
        found = compared(t, name, dtype) if isinstance(t, tuple) else t
        if found is None:
            return None
        new.append(found)
    return tuple(new)


def selects(tree: Tree) -> bool:
    """Whether a tree is a name, or chooses between names and numbers by comparing such: nothing is rounded."""
    return (
        tree[0] == "name"
        or tree[:2] == ("call", "where")
        and all(_plain(t) or t[0] == "cmp" and all(map(_plain, t[2:])) for t in tree[2:])
    )


def rounds_once(tree: Tree) -> bool:
    """Whether a tree is one operation whose float32 result, rounded to half precision, is that of such numbers."""
    exact = tree[0] in ("+", "-", "*", "/", "neg") or tree[0] == "call" and tree[1] in _EXACT
    return exact and all(map(_plain, [t for t in tree[1:] if isinstance(t, tuple)]))


def _plain(tree: Tree) -> bool:
    return tree[0] in ("name", "num")
