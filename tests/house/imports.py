"""Who may import whom, read from the syntax tree."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

# `_core` <- `ops` <- the array and graph faces <- the rest <- what stands on everything. A module may import
# its own level and those below. `base`, `context` and `plugin` are the doors to `_core`; samples are declared
# beside operators and need nothing, nor does reading and writing of files.
LEVELS = {
    "_core": 0, "_forks": 0, "_importing": 0, "_installed": 0, "_interrupts": 0, "_locks": 0, "_values": 0,
    "_workers": 0,
    "base": 1, "builtin": 1, "context": 1, "plugin": 1, "testing.sample": 1, "_io_files": 1, "_json": 1, "drafts": 1,
    "limits": 1, "urls": 1, "_current": 1, "name": 1, "attribute": 1, "_op_functions": 1, "_reexports": 1,
    "_commands": 1, "elementwise": 1, "stypes": 1, "rewriting": 1, "patterns": 1, "array_api": 1, "facets": 1,
    "fusion": 1, "philox": 1, "parameters": 1, "gradient": 1, "composing": 1, "crossing": 1, "declarations": 1,
    "typing": 1, "wellformed": 1, "layouts": 1, "twins": 1, "kinds": 1, "_noting": 1, "halves": 1,
    "looking": 1, "_heads": 1, "_ending": 1, "inference": 1, "_scopes": 1, "_archives": 1, "_npy": 1,
    "_file_names": 1, "channels_last": 1,
    "ops": 2, "np_functions": 2,
    "ndarray": 3, "symbol": 3, "executor": 3,
    "compat": 5, "cli": 5, "__main__": 5,
}  # fmt: skip
THE_REST = 4
SHORT_NAMES = {"nd": "ndarray", "sym": "symbol"}
#: Underscored names that modules may take from one another, and why.
SHARED_PRIVATE = {
    "_check_arguments": "MXNet's, of executor_manager",
    "_check_bbox_shape": "beside MXNet's functions of boxes",
    "_check_event_handlers": "MXNet's, of gluon.contrib.estimator",
    "_check_handler_metric_ref": "MXNet's, of gluon.contrib.estimator",
    "_check_metrics": "MXNet's, of gluon.contrib.estimator",
    "_cvimread": "an operator of MXNet",
    "_DownloadedDataset": "MXNet's, of gluon.data",
    "_imdecode": "an operator of MXNet",
    "_indent": "MXNet's, of gluon.utils",
    "_multi_lamb_update": "an operator of MXNet",
    "_multi_mp_lamb_update": "an operator of MXNet",
    "_onehot_encode": "an operator of MXNet",
    "_set_value": "an operator of MXNet",
    "_Symbol": "MXNet's, of symbol.numpy",
    "_suggest_metric_for_loss": "MXNet's, of gluon.contrib.estimator",
}
CORE_NEEDS = {"numpy", "pluggy", "mxcore"}


def module_name(path: Path, root: Path) -> str:
    """Import name of a file below a source root: path == import name."""
    parts = list(path.relative_to(root).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _only_for_types(tree: ast.AST) -> set[ast.AST]:
    """Nodes under ``if TYPE_CHECKING:``."""
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
    return {inner for block in blocks for stmt in block.body for inner in ast.walk(stmt)}


@cache
def imported(source: str, name: str, is_package: bool) -> list[tuple[int, str]]:
    """Every (line, absolute dotted name) that a module imports at run time, functions included."""
    return [*_imported(source, name, is_package)]


def _imported(source: str, name: str, is_package: bool) -> Iterator[tuple[int, str]]:
    tree = ast.parse(source)
    skip = _only_for_types(tree)
    package = name.split(".") if is_package else name.split(".")[:-1]
    for node in ast.walk(tree):
        if node in skip:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, a.name) for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = [*base, *(node.module.split(".") if node.module else [])]
            # `from .. import x`: x is most likely a module, and the name that decides.
            yield from ((node.lineno, ".".join([*origin, a.name])) for a in node.names)


def level(name: str) -> int:
    """Level of a module of mxcore; the package itself, a lazy face over everything, counts as the rest."""
    parts = name.split(".")[1:3]
    parts[:1] = [SHORT_NAMES.get(p, p) for p in parts[:1]]
    return LEVELS.get(".".join(parts), LEVELS.get(parts[0] if parts else "", THE_REST))


def check_core(source: str, name: str, is_package: bool = False) -> list[str]:
    """Complaints about one module of mxcore: it imports upwards, or is `_core` and needs more than it may."""
    bad = []
    for line, target in imported(source, name, is_package):
        top = target.split(".")[0]
        if level(name) == 0 and top not in sys.stdlib_module_names and top not in CORE_NEEDS:
            bad.append(f"{name}:{line} imports {target}; _core needs only stdlib, NumPy, pluggy")
        elif top == "mxcore" and target != "mxcore.__version__" and level(target) > level(name):
            bad.append(f"{name}:{line} imports {target}, which stands above it")
        elif top.startswith("mxcore_"):
            bad.append(f"{name}:{line} imports {target}; the core reaches plugins through hooks only")
    return bad


def circles(modules: dict[str, tuple[str, bool]]) -> list[list[str]]:
    """Groups of modules that import one another, in functions too; `modules`: name -> (source, is a package)."""
    needs: dict[str, set[str]] = {}
    for name, (source, is_package) in modules.items():
        found = set()
        for _, target in imported(source, name, is_package):
            while target and target not in modules:
                target = target.rpartition(".")[0]
            found.add(target)
        needs[name] = found - {"", name}
    # Tarjan's strongly connected components.
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    groups = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        path.append(name)
        for other in needs[name]:
            if other not in order:
                visit(other)
            if other in path:
                low[name] = min(low[name], low[other])
        if low[name] == order[name]:
            at = path.index(name)
            groups.append(sorted(path[at:]))
            del path[at:]

    for name in modules:
        if name not in order:
            visit(name)
    return [g for g in groups if len(g) > 1]


def check_circles(modules: dict[str, tuple[str, bool]]) -> list[str]:
    """Complaints about modules that import one another: none of `_core` may, elsewhere no more than two."""
    return [
        f"{', '.join(group)} import one another"
        for group in circles(modules)
        if len(group) > 2 or any("._core." in name for name in group)
    ]


def private_uses(
    source: str, name: str, modules: Collection[str], is_package: bool = False
) -> Iterator[tuple[int, str]]:
    """Every (line, dotted name) of an underscored name that a module takes from another of `modules`.

    It is taken by ``from x import _name`` or as ``x._name`` of the imported module. Underscored modules are no such
    names.
    """
    tree = ast.parse(source)
    package = name.split(".") if is_package else name.split(".")[:-1]
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known.update({a.asname or a.name: a.name for a in node.names})
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *(node.module.split(".") if node.module else [])])
            for a in node.names:
                target = f"{origin}.{a.name}"
                if target in modules:
                    known[a.asname or a.name] = target
                elif origin in modules and _is_private(a.name):
                    yield node.lineno, target
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_private(node.attr):
            origin = known.get(dotted(node.value), "")
            if origin in modules and origin != name and f"{origin}.{node.attr}" not in modules:
                yield node.lineno, f"{origin}.{node.attr}"


def dotted(node: ast.AST) -> str:
    """The text of a name or of attributes of one, of anything else its last attribute: `ast.unparse` is slow."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def check_private(name: str, uses: Iterable[tuple[int, str]]) -> list[str]:
    """Complaints about a module and its :func:`private_uses`: what others need has a public name."""
    return [
        f"{name}:{line} takes {target}; what another module needs has no underscore"
        for line, target in uses
        if target.rpartition(".")[2] not in SHARED_PRIVATE
    ]
