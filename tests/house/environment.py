"""Which variables of the environment the code reads, and which ones the documentation lists."""

from __future__ import annotations

import ast
import re

#: Names that are variables wherever they stand in the code.
_OURS = re.compile(r"(MXCORE|MXNET|NUMBA|OMP|GOMP)(_[A-Z0-9]+)+|WORLD_SIZE")
_ANY = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")


def _docstrings(tree: ast.AST) -> set[int]:
    return {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}


def _of_environ(node: ast.AST) -> list[ast.AST]:
    """What a node asks of the environment: ``environ.get(X)``, ``environ[X]``, ``getenv(X)``, ``X in environ``."""
    if isinstance(node, ast.Call) and re.search(r"\bgetenv$|environ\.\w+$", ast.unparse(node.func)):
        return node.args[:1]
    if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("environ"):
        return [node.slice]
    if isinstance(node, ast.Compare) and any(ast.unparse(c).endswith("environ") for c in node.comparators):
        return [node.left]
    return []


def variables(source: str) -> set[str]:
    """The names of variables that a source asks the environment for."""
    tree = ast.parse(source)
    texts = _docstrings(tree)
    asked = {id(a) for n in ast.walk(tree) for a in _of_environ(n)}
    return {
        n.value
        for n in ast.walk(tree)
        if isinstance(n, ast.Constant)
        and isinstance(n.value, str)
        and id(n) not in texts
        and (_OURS.fullmatch(n.value) or id(n) in asked and _ANY.fullmatch(n.value))
    }


def documented(text: str) -> list[str]:
    """The variables in the first column of the tables of a page."""
    return re.findall(r"^\| `([A-Z][A-Z0-9_]*)` \|", text, re.M)


def check_environment(read: set[str], text: str) -> list[str]:
    """Complaints about variables that are read and not listed, or listed and not read, or listed twice."""
    listed = documented(text)
    return [
        *(f"{v} is read, but the page does not list it" for v in sorted(read - {*listed})),
        *(f"{v} is on the page, but nothing reads it" for v in sorted({*listed} - read)),
        *(f"{v} is on the page twice" for v in sorted({v for v in listed if listed.count(v) > 1})),
    ]
