"""What the docstrings of public names say about their arguments, and to which names docstrings point."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any


def sections(doc: str) -> set[str]:
    """Every name that a numpydoc section of parameters explains: ``a, b : int`` or ``*args`` at the margin."""
    found: set[str] = set()
    lines = inspect.cleandoc(doc).splitlines()
    inside = False
    for line, under in zip(lines, [*lines[1:], ""]):
        if under and set(under) == {"-"}:
            inside = line.strip() in ("Parameters", "Other Parameters", "Attributes")
        elif inside and line and not line[0].isspace() and set(line) != {"-"}:
            found |= {w.strip(" *`") for w in line.partition(" :")[0].split(",")}
    return found


def arguments(thing: Any) -> list[str]:
    """The names that a caller may give to a class or function."""
    try:
        found = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in found if p.name not in ("self", "cls")]


def check_arguments(name: str, doc: str, names: Iterable[str]) -> list[str]:
    """Complaints about arguments that a docstring with a section of parameters, or in its text, does not name."""
    told = sections(doc)
    bad = [n for n in names if n not in told and not re.search(rf"[`*]{re.escape(n)}(?!\w)", doc)]
    return [f"{name}: its docstring does not tell of {', '.join(bad)}"] if bad else []


def pointers(source: str) -> list[tuple[int, str]]:
    """(line, ``mx.a.b``) of every dotted name below ``mx`` that a docstring gives in backquotes or as a reference."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(
            node
        ):
            text = ast.get_docstring(node, clean=False) or ""
            for match in re.finditer(r"`(~?(?:mx|mxcore)(?:\.\w+)+)(?:\([^`]*\))?`", text):
                before = text[: match.start()].rsplit("\n\n", 1)[-1]
                if "MXNet 1.9.1" not in before:  # that names MXNet's
                    found.append((node.body[0].lineno + text.count("\n", 0, match.start()), match.group(1).lstrip("~")))
    return found


def check_pointers(source: str, where: str, exists: Callable[[str], bool]) -> list[str]:
    """Complaints about docstrings that point to names which do not exist."""
    return [
        f"{where}:{line} points to {name}, which does not exist" for line, name in pointers(source) if not exists(name)
    ]
