"""``mxcore plugins``: list the plugins with what they bring, check them, or write the skeleton of a new one."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from .._core.manager import manager
from ..base import MXNetWarning
from . import skeleton
from .arguments import local_folder
from .brought import (
    compared,
    failures,
    import_all,
    import_kernels,
    lost_kernels,
    overrides,
    owned,
    problems,
    strange,
    unknown,
)
from .findings import findings, summary

_FEW = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--check",
        action="store_true",
        help="import everything that plugins bring as 'module:attr'; the status is 1 if a plugin or a target fails",
    )
    actions = parser.add_subparsers(dest="action", title="actions (default: list the plugins)")
    actions.add_parser(
        "check",
        help="what is wrong with the plugins, and whose come before whose, "
        "a line each; the status is 1 if anything is wrong",
    )
    new = actions.add_parser("new", help="write an installable skeleton with its tests")
    new.add_argument("name", help="name of the plugin's module, such as my_op")
    new.add_argument("--kind", choices=skeleton.kinds(), default="op", help="what it brings (default: op)")
    new.add_argument("--dir", type=local_folder, default=Path("."), help="where folder NAME is made (default: here)")


def describe(check: bool = False) -> tuple[list[str], bool]:
    """Lines about every plugin: origin, state, hooks, what it registered, what is wrong; and whether all is well.

    Parameters
    ----------
    check : bool
        Import everything that plugins bring by reference. Without it kernels are imported for those devices only that
        several plugins have kernels for.
    """
    with warnings.catch_warnings():  # what is put aside stands in the list, with its reason
        warnings.simplefilter("ignore", MXNetWarning)
        manager.load()
        import_all() if check else import_kernels(compared())
        lines, well = [], not manager.failed
        for name, (dist, version) in sorted(manager.origin.items()):
            callers = manager.pm.get_hookcallers(manager.pm.get_plugin(name)) or []
            bad = problems(name)
            well = well and not bad and not [*lost_kernels(name)]
            lines.append(f"{name}  {dist} {version}  {f'loaded, {len(bad)} broken' if bad else 'loaded'}")
            lines.append(f"    hooks: {', '.join(sorted(c.name for c in callers)) or 'none'}")
            lines += [
                f"    {kind}: {', '.join(found) if len(found) <= _FEW else len(found)}"
                for kind, found in owned(name).items()
            ]
            lines += [f"    broken: {line}" for line in bad]
            lines += [f"    {line}" for line in (*strange(name), *overrides(name))]
    lines += [f"{name}  {text}" for name, text in failures()]
    lines += [
        f"{variable} names '{n}', which is neither a plugin here nor a distribution of one" for variable, n in unknown()
    ]
    for name in sorted(manager.left_out):
        lines.append(f"{name}  left out by MXCORE_PLUGINS or MXCORE_DISABLE_PLUGINS")
    return lines, well


def main(args: argparse.Namespace) -> int:
    """List the plugins, check them, or write a skeleton."""
    if args.action == "new":
        made = skeleton.write(args.name, args.kind, args.dir)
        print(f"wrote {made}\nnext: pip install -e '{made}' && pytest '{made}'")
        return 0
    if args.action == "check":
        found = findings()
        print("\n".join([*map(str, found), summary(found)]))
        return int(any(f.wrong for f in found))
    lines, well = describe(args.check)
    print("\n".join(lines))
    return int(args.check and not well)
