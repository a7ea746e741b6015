"""What must be documented: hooks, operators and everything public."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def _decorators(node: ast.AST) -> set[str]:
    found = getattr(node, "decorator_list", [])
    return {ast.unparse(d.func if isinstance(d, ast.Call) else d).split(".")[-1] for d in found}


def hooks(source: str) -> dict[str, str]:
    """Name and docstring of every hook in the source of a module of hook specifications."""
    found = [n for n in ast.parse(source).body if isinstance(n, Function) and n.name.startswith("mxcore_")]
    return {n.name: ast.get_docstring(n) or "" for n in found}


def check_hooks(source: str, tests: str) -> list[str]:
    """Complaints about hooks without a contract in the docstring, or that no test names."""
    bad = []
    for name, doc in hooks(source).items():
        if len(doc.split()) < 5:
            bad.append(f"hook {name} has no contract in its docstring")
        if not re.search(rf"\b{name}\b", tests):
            bad.append(f"hook {name} is named in no test")
    return bad


def check_op(name: str, doc: str, words: Iterable[str], samples: int) -> list[str]:
    """Complaints about an operator: no samples, or inputs and parameters that its docstring does not name."""
    bad = [] if samples else [f"operator {name} has no samples"]
    if not doc.strip():
        return [*bad, f"operator {name} has no docstring"]
    missing = [w for w in words if not re.search(rf"(?<!\w){re.escape(w)}(?!\w)", doc)]
    if missing:
        bad.append(f"operator {name}: its docstring does not name {', '.join(missing)}")
    return bad


class _Classes:
    """Classes of the whole tree by name: which of their methods are documented, and their bases."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        # Two modules may each have a class of one name (a loss and a metric `Loss`): either may be the base.
        self.known: dict[str, list[tuple[list[str], dict[str, bool]]]] = {}
        for source in sources.values():
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.ClassDef):
                    bases = [ast.unparse(b).split("[")[0].split(".")[-1] for b in node.bases]
                    methods = {m.name: bool(ast.get_docstring(m)) for m in node.body if isinstance(m, Function)}
                    self.known.setdefault(node.name, []).append((bases, methods))

    def inherits_doc(self, cls: str, method: str, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a base documents the method. Bases outside the tree are taken to."""
        for base in [b for bases, _ in self.known.get(cls, []) for b in bases]:
            if base in seen or base == "object":
                continue
            if base not in self.known or any(methods.get(method) for _, methods in self.known[base]):
                return True
            if self.inherits_doc(base, method, seen | {cls}):
                return True
        return False


def _public_defs(body: list[ast.stmt], prefix: str = "") -> Iterable[tuple[str, str, ast.AST]]:
    """(qualified name, class, node) of public classes, functions and methods, and of every ``__init__``."""
    for node in body:
        if isinstance(node, (ast.If, ast.Try)):
            yield from _public_defs(node.body, prefix)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield prefix + node.name, "", node
            yield from (
                (f"{prefix}{node.name}.{m.name}", node.name, m)
                for m in node.body
                if isinstance(m, Function) and (m.name == "__init__" or not m.name.startswith("_"))
            )
        elif isinstance(node, Function) and not node.name.startswith("_"):
            yield prefix + node.name, "", node


def check_docstrings(sources: Mapping[str, str]) -> list[str]:
    """Complaints about public names without a docstring, and about docstrings on ``__init__``.

    A method that overrides a documented one needs none of its own, nor does an implementation of a hook,
    whose contract stands in the specification, nor a setter.
    """
    classes, bad = _Classes(sources), []
    for module, source in sources.items():
        tree = ast.parse(source)
        if tree.body and not ast.get_docstring(tree):
            bad.append(f"{module} has no docstring")
        for name, cls, node in _public_defs(tree.body):
            documented = bool(ast.get_docstring(node))  # type: ignore[arg-type]
            if name.endswith(".__init__"):
                if documented:
                    bad.append(f"{module}: {name} has a docstring; it belongs to the class")
                continue
            how = _decorators(node)
            excused = how & {"hookimpl", "overload", "setter", "deleter"}
            inherited = bool(cls) and classes.inherits_doc(cls, name.split(".")[-1])
            if not (documented or excused or inherited):
                bad.append(f"{module}: {name} has no docstring")
    return bad
