"""Names of operators and devices where nobody may know any: in the microkernel and in the passes of the executor."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator


def _prose(tree: ast.AST) -> set[int]:
    """Ids of the constants that are documentation."""
    return {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}


def _frontend(node: ast.expr) -> bool:
    """Whether an expression is an eager or a graph frontend, by its name: ``F``, ``eager``, ``GraphF(…)``."""
    if isinstance(node, ast.Call):
        node = node.func
        return isinstance(node, ast.Name) and node.id == "GraphF"
    return (
        isinstance(node, ast.Name)
        and node.id in ("F", "eager")
        or isinstance(node, ast.Attribute)
        and node.attr == "eager"
    )


def known_names(source: str, names: Collection[str]) -> Iterator[tuple[int, str]]:
    """(line, name) where a module writes one of `names` as a text, or takes it from a frontend."""
    tree = ast.parse(source)
    prose = _prose(tree)
    lists = {
        id(n.func.value)
        for n in ast.walk(tree)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "split"
    }
    for n in ast.walk(tree):
        if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in prose:
            yield from ((n.lineno, w) for w in (n.value.split() if id(n) in lists else [n.value]) if w in names)
        elif isinstance(n, ast.Attribute) and n.attr in names and _frontend(n.value):
            yield n.lineno, n.attr


def check_core_names(source: str, module: str, names: Collection[str]) -> list[str]:
    """Complaints about a module of the microkernel that knows an operator or a device by name."""
    return [
        f"_core/{module}:{line} knows '{name}'; the core asks for roles and facets"
        for line, name in known_names(source, names)
    ]


def check_passes(source: str, module: str, names: Collection[str]) -> list[str]:
    """Complaints about a pass that compares the name of an operator, or looks operators up in tables of names."""
    bad = []
    tree = ast.parse(source)
    for n in ast.walk(tree):
        if isinstance(n, ast.Compare):
            for side in (n.left, *n.comparators):
                for part in side.elts if isinstance(side, ast.Tuple) else [side]:
                    if (
                        isinstance(part, ast.Attribute)
                        and part.attr == "name"
                        and ast.unparse(part.value).split(".")[-1].endswith("op")
                    ):
                        bad.append(
                            f"{module}:{n.lineno} compares the name of an operator; "
                            "operators tell passes what they are by facets"
                        )
    bad += [
        f"{module}:{line} knows '{name}'; operators tell passes what they are by facets"
        for line, name in known_names(source, names)
    ]
    return bad
