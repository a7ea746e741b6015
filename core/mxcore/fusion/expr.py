"""Elementwise expressions: one small Python expression, one table of functions, several printers.

An operator may state its elementwise meaning as text, e.g. ``expr="1 / (1 + exp(-x))"``. The text is parsed once, at
declaration; anything outside this grammar is refused there. Device plugins print the tree in their own language
(LLVM's language for the CPU, CUDA C in the CUDA plugin) to fuse chains of operators into one kernel.

Grammar: names (inputs, parameters), numbers, ``+ - * / % **``, unary minus, comparisons, ``a if c else b``,
``and``/``or``/``not`` and calls of the functions in :data:`FUNCTIONS`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from .._core.errors import error, suggest

__all__ = ["Expr", "FUNCTIONS", "Tree"]

#: name -> number of arguments. Each printer maps every one of them.
FUNCTIONS: dict[str, int] = dict.fromkeys(
    "exp expm1 log log2 log10 log1p sqrt rsqrt cbrt rcbrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh "
    "arccosh arctanh sigmoid erf erfinv gamma lgamma digamma floor ceil trunc rint fix abs sign square reciprocal "
    "softplus isnan isinf relu".split(),
    1,
)
FUNCTIONS.update(dict.fromkeys("maximum minimum power hypot arctan2 fmod mod floordiv".split(), 2))
FUNCTIONS["where"] = 3

_BIN = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "mod", ast.Pow: "power"}
_CMP = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}

#: A node of the tree: ("name", id) | ("num", value) | ("neg", x) | (op, a, b) | ("call", fn, args...) | ...
Tree = tuple[Any, ...]


class Expr:
    """A parsed expression.

    Parameters
    ----------
    text : str
        Python source over names, numbers, operators and the functions of :data:`FUNCTIONS`.
    allowed : iterable of str, optional
        The names that may stand in it; all unless told.

    Attributes
    ----------
    tree : tuple
        Nested tuples; the first item is the kind of node.
    names : frozenset of str
        Free names, to be bound to inputs or parameters.
    """

    __slots__ = ("text", "tree", "names")

    def __init__(self, text: str, allowed: Iterable[str] | None = None) -> None:
        self.text = text
        try:
            self.tree = self._walk(ast.parse(text, mode="eval").body)
            self.names = frozenset(_names(self.tree))
        except (SyntaxError, RecursionError, MemoryError) as e:  # the parser's own limit is a MemoryError
            raise error(ValueError, f"expr {text[:200]!r}: {getattr(e, 'msg', 'it is nested too deep')}") from None
        if allowed is not None:
            unknown = sorted(self.names - set(allowed))
            if unknown:
                raise error(ValueError, f"expr {text!r}: unknown name {unknown[0]!r}; it may use {sorted(allowed)}")

    def _walk(self, n: ast.AST) -> Tree:
        if isinstance(n, ast.Name):
            return ("name", n.id)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "p":
            return ("name", n.attr)
        if isinstance(n, ast.Constant) and isinstance(n.value, (int, float)) and not isinstance(n.value, bool):
            return ("num", n.value)
        if isinstance(n, ast.UnaryOp) and isinstance(n.op, (ast.USub, ast.UAdd)):
            return ("neg", self._walk(n.operand)) if isinstance(n.op, ast.USub) else self._walk(n.operand)
        if isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not):
            return ("not", self._walk(n.operand))
        if isinstance(n, ast.BinOp) and type(n.op) in _BIN:
            op = _BIN[type(n.op)]
            a, b = self._walk(n.left), self._walk(n.right)
            return (op, a, b) if op in "+-*/" else ("call", op, a, b)
        if isinstance(n, ast.Compare) and len(n.ops) == 1 and type(n.ops[0]) in _CMP:
            return ("cmp", _CMP[type(n.ops[0])], self._walk(n.left), self._walk(n.comparators[0]))
        if isinstance(n, ast.BoolOp):
            op = "and" if isinstance(n.op, ast.And) else "or"
            tree = self._walk(n.values[0])
            for v in n.values[1:]:
                tree = (op, tree, self._walk(v))
            return tree
        if isinstance(n, ast.IfExp):
            return ("call", "where", self._walk(n.test), self._walk(n.body), self._walk(n.orelse))
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and not n.keywords:
            fn = n.func.id
            if fn not in FUNCTIONS:
                raise error(ValueError, f"expr {self.text!r}: unknown function {fn!r}{suggest(fn, FUNCTIONS)}")
            if len(n.args) != FUNCTIONS[fn]:
                raise error(
                    ValueError, f"expr {self.text!r}: {fn} takes {FUNCTIONS[fn]} argument(s), got {len(n.args)}"
                )
            return ("call", fn, *map(self._walk, n.args))
        raise error(ValueError, f"expr {self.text!r}: {ast.unparse(n)!r} is not allowed in an expression")

    def __repr__(self) -> str:
        return f"Expr({self.text!r})"


def _names(tree: Tree) -> Iterable[str]:
    if tree[0] == "name":
        yield tree[1]
    for t in tree[1:]:
        if isinstance(t, tuple):
            yield from _names(t)
