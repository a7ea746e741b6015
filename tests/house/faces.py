"""What plugins may import of mxcore: what `mx` shows, and the modules that docs/plugins.md lists."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from collections.abc import Collection, Iterator
from types import ModuleType

from .imports import imported


def listed(page: str) -> list[str]:
    """The modules in the first column of the tables of a page."""
    return re.findall(r"^\| `(mxcore(?:\.\w+)*)` \|", page, re.M)


def _shows(module: ModuleType, name: str) -> bool:
    names = getattr(module, "__all__", None)
    if names is not None:
        return name in names
    if name.startswith("_"):
        return False
    return name in vars(module) or importlib.util.find_spec(f"{module.__name__}.{name}") is not None


def is_public(target: str, listed: Collection[str]) -> bool:
    """Whether a dotted name is `mxcore` or a listed module, or is reached from one by names that each module shows."""
    parts = target.split(".")
    start = next((n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in listed), 1)
    found = importlib.import_module(".".join(parts[:start]))
    for part in parts[start:]:
        if not isinstance(found, ModuleType):
            return True  # attributes of a class or an object
        if not _shows(found, part):
            return False
        found = getattr(found, part, None) or importlib.import_module(f"{found.__name__}.{part}")
    return True


def reached(source: str, name: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Every (line, dotted name) of other packages that a module imports, or gets as ``mx.a.b`` of mxcore."""
    yield from imported(source, name, is_package)
    nodes = [*ast.walk(ast.parse(source))]
    mx = {a.asname or a.name for n in nodes if isinstance(n, ast.Import) for a in n.names if a.name == "mxcore"}
    for node in nodes:
        chain, inner = [], node
        while isinstance(inner, ast.Attribute):
            chain, inner = [inner.attr, *chain], inner.value
        if chain and isinstance(inner, ast.Name) and inner.id in mx:
            yield node.lineno, ".".join(["mxcore", *chain])


def check_plugin(source: str, name: str, is_package: bool = False, listed: Collection[str] = ("mxcore",)) -> list[str]:
    """Complaints about one module of a plugin: it reaches into the core's inside or into another plugin."""
    bad = []
    own = name.split(".")[0]
    for line, target in sorted({*reached(source, name, is_package)}):
        top = target.split(".")[0]
        if top == "mxcore" and not is_public(target, listed):
            bad.append(f"{name}:{line} reaches {target}; plugins use mxcore.plugin, and what docs/plugins.md lists")
        elif top.startswith("mxcore_") and top != own:
            bad.append(f"{name}:{line} imports {target}, another plugin")
    return bad
