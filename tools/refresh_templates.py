#!/usr/bin/env python3
"""Make the templates of `mxcore plugins new` from the toy plugins of the tests.

    refresh_templates.py

The toys are real projects that the tests install; each becomes the template folder of its kind, with its own
names replaced by placeholders. Run it after a change to a toy; a test tells when it was forgotten.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from mxcore.cli.skeleton import type_id

ROOT = Path(__file__).resolve().parent.parent
TOYS = ROOT / "tests" / "toy_plugins"
TEMPLATES = ROOT / "core" / "mxcore" / "cli" / "templates"


def to_template(text: str, name: str) -> str:
    """Replace the names of a toy by placeholders."""
    text = text.replace("$", "$$")
    for word, place in (
        (name, "name"),
        (name.replace("_", "-"), "dist"),
        (name.title().replace("_", ""), "Name"),
        (str(type_id(name)), "type_id"),
    ):
        text = text.replace(word, f"${{{place}}}")
    return text


def kind_of(toy: Path) -> str:
    """The kind of plugin that a toy is of: ``graph-pass`` for toy_graph_pass."""
    return toy.name.removeprefix("toy_").replace("_", "-")


def project_files(toy: Path) -> list[Path]:
    """Files of a project that are written by hand."""
    generated = {"__pycache__", ".pytest_cache", "build", "dist"}
    found = (p for p in sorted(toy.rglob("*")) if p.is_file() and not generated & set(p.parts))
    return [p for p in found if ".egg-info" not in str(p)]


def main() -> None:
    """Write the templates of every toy."""
    for toy in sorted(p for p in TOYS.glob("toy_*") if (p / "pyproject.toml").exists()):
        target = TEMPLATES / kind_of(toy)
        shutil.rmtree(target, ignore_errors=True)
        for path in project_files(toy):
            relative = path.relative_to(toy).as_posix().replace(toy.name, "NAME")
            file = target / (relative + ".tmpl")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(to_template(path.read_text(encoding="utf-8"), toy.name), encoding="utf-8")
        print(f"{toy.name} -> {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
