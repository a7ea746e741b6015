"""``mxcore plugins``: list the plugins with what they bring, or write the skeleton of a new one."""
from __future__ import annotations

import argparse
import warnings
from importlib import metadata
from pathlib import Path

from .._core import registry
from .._core.manager import manager
from ..base import MXNetWarning
from . import skeleton

_FEW = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="new", title="actions (default: list the plugins)")
    new = actions.add_parser("new", help="write an installable skeleton with its tests")
    new.add_argument("name", help="name of the plugin's module, such as my_op")
    new.add_argument("--kind", choices=skeleton.kinds(), default="op", help="what it brings (default: op)")
    new.add_argument("--dir", type=Path, default=Path("."), help="where folder NAME is made (default: here)")


def _brings(name: str) -> list[str]:
    """``operator: a, b`` for each kind of thing that a plugin registered; only the number of many."""
    return [
        f"{kind}: {', '.join(found) if len(found) <= _FEW else len(found)}"
        for kind, found in registry.owned(name).items()
    ]


def describe() -> list[str]:
    """Lines about every plugin: origin, state, hooks and what it registered, or why it failed."""
    with warnings.catch_warnings():  # what is put aside stands in the list, with its reason
        warnings.simplefilter("ignore", MXNetWarning)
        manager.load()
    lines = []
    for name, (dist, version) in sorted(manager.origin.items()):
        callers = manager.pm.get_hookcallers(manager.pm.get_plugin(name)) or []
        lines.append(f"{name}  {dist} {version}  loaded")
        lines.append(f"    hooks: {', '.join(sorted(c.name for c in callers)) or 'none'}")
        lines += [f"    {line}" for line in _brings(name)]
    for name, (dist, reason) in sorted(manager.failed.items()):
        lines.append(f"{name}  {dist}  failed: {type(reason).__name__}: {reason}")
    known = {*manager.origin, *manager.failed}
    for ep in sorted(metadata.entry_points(group="mxcore"), key=lambda e: e.name):
        if ep.name not in known:
            lines.append(f"{ep.name}  {ep.dist.name if ep.dist else ep.value}  left out by MXCORE_PLUGINS or "
                         "MXCORE_DISABLE_PLUGINS")
    return lines


def main(args: argparse.Namespace) -> int:
    """List the plugins or write a skeleton."""
    if args.action == "new":
        made = skeleton.write(args.name, args.kind, args.dir)
        print(f"wrote {made}\nnext: pip install -e '{made}' && pytest '{made}'")
    else:
        print("\n".join(describe()))
    return 0
