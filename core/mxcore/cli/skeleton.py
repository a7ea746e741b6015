"""Skeletons of new plugins, from the folders of templates beside this module.

A template is a file whose name ends in ``.tmpl``. In its text and in its path these words are replaced, after
`$` in the text and bare in the path: ``$name`` (``my_op``, NAME in a path), ``$dist`` (``my-op``), ``$Name`` (``MyOp``)
and ``$type_id``, the number of a device (see `type_id`).
"""

from __future__ import annotations

import ast
import importlib.util
import keyword
import os
import re
import tempfile
import zlib
from pathlib import Path
from string import Template

from .._core import tables
from .._core.context import TYPE_IDS
from .._core.manager import manager
from .._io_files import explained
from ..base import error

TEMPLATES = Path(__file__).parent / "templates"

#: Names that modules, distributions and pytest all take: it takes modules called test_… for tests.
_NAME = re.compile(r"(?!test_)[a-z]([a-z0-9_]*[a-z0-9])?")


def kinds() -> list[str]:
    """The kinds of skeleton there are: one folder of templates each."""
    return sorted(p.name for p in TEMPLATES.iterdir() if p.is_dir())


def type_id(name: str) -> int:
    """The number of a new device in files: derived from its name, so that two authors hardly ever choose the same.

    >>> type_id("my_board") == type_id("my_board") > 100
    True
    """
    return 1000 + zlib.crc32(name.encode()) % 2_000_000_000


def _camel(name: str) -> str:
    return name.title().replace("_", "")


def render(name: str, kind: str) -> dict[str, str]:
    """Return path -> text of every file of a skeleton, for a plugin module of the given name."""
    words = {"name": name, "dist": name.replace("_", "-"), "Name": _camel(name), "type_id": type_id(name)}
    root = TEMPLATES / kind
    return {
        path.relative_to(root).as_posix().removesuffix(".tmpl").replace("NAME", name): Template(
            path.read_text(encoding="utf-8")
        ).substitute(words)
        for path in sorted(root.rglob("*.tmpl"))
    }


def _owner(name: str, kind: str, files: dict[str, str]) -> str | None:
    """Who would be in the way of a plugin of that name, which then would not load."""
    manager.load()
    if name in manager.origin:
        return "another plugin"
    if kind == "op" and name in tables.ops.owners:
        return f"an operator of plugin '{tables.ops.owners[name]}'"
    if kind == "device" and name in {*TYPE_IDS, *tables.devices.owners}:
        return "another device"
    table = tables.by_kind.get(kind.replace("-", "_"))
    if table is not None and (other := table.owners.get(_camel(name) if kind == "iterator" else name)):
        return f"the {kind} of plugin '{other}'"
    imported = [n for n in ast.walk(ast.parse(files[f"{name}.py"])) if isinstance(n, (ast.Import, ast.ImportFrom))]
    return (
        "something that the skeleton imports"
        if name in {a.asname or a.name for n in imported for a in n.names}
        else None
    )


def write(name: str, kind: str, folder: Path) -> Path:
    """Write the skeleton of a plugin.

    Parameters
    ----------
    name : str
        The plugin's module: lower-case letters, digits and underscores.
    kind : str
        One of `kinds`.
    folder : Path
        Where the project's folder `name` is made.

    Returns
    -------
    Path
        The project's folder.

    Raises
    ------
    MXNetError
        If the name is no module name, or one that is taken, or the folder exists or cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as d:
    ...     made = write("my_op", "op", pathlib.Path(d))
    ...     print((made / "pyproject.toml").exists())
    True
    """
    if not _NAME.fullmatch(name) or keyword.iskeyword(name) or keyword.iskeyword(name.title()):
        raise error(ValueError, f"{name!r} is no name for a plugin's module; use one like 'my_op'")
    target, files = folder / name, render(name, kind)
    with explained(str(target), "write"):
        if target.exists():
            raise error(FileExistsError, f"{target} exists already; choose another name or --dir")
    if (owner := _owner(name, kind, files)) is not None:
        raise error(ValueError, f"{owner} has the name {name!r} already; choose another name")
    found = importlib.util.find_spec(name)
    if found is not None and found.origin is not None:  # a folder without modules is none
        raise error(
            ValueError, f"there is a module {name!r} already, which the plugin's would hide; choose another name"
        )
    # Written beside and renamed: an interruption leaves no half a project behind.
    with explained(str(target), "write"):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            for path, text in files.items():
                file = Path(scratch, name, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            os.rename(Path(scratch, name), target)  # not into a project that another has made meanwhile
    return target
