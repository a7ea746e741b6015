"""``mxcore plugins``: list the plugins with what they bring, check them, or write the skeleton of a new one."""
from __future__ import annotations

import argparse
import importlib.util
import traceback
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from .._core import registry
from .._core.errors import caught, in_a_line
from .._core.manager import manager
from ..base import MXNetError, MXNetWarning
from . import skeleton

_FEW = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--check", action="store_true",
                        help="import everything that plugins bring as 'module:attr'; the status is 1 if a plugin or a target fails")
    actions = parser.add_subparsers(dest="action", metavar="new", title="actions (default: list the plugins)")
    new = actions.add_parser("new", help="write an installable skeleton with its tests")
    new.add_argument("name", help="name of the plugin's module, such as my_op")
    new.add_argument("--kind", choices=skeleton.kinds(), default="op", help="what it brings (default: op)")
    new.add_argument("--dir", type=Path, default=Path("."), help="where folder NAME is made (default: here)")


def _tables() -> Iterator[registry.Table]:
    yield from (registry.ops, registry.devices, *registry.tables.values())


def owned(owner: str) -> dict[str, list[str]]:
    """What an owner registered, kind by kind; kernels as their number for each device, or as the target that is still to be imported.

    Parameters
    ----------
    owner : str
        The name of a plugin.
    """
    found = {t.kind: sorted(n for n, claims in t.claims.items() if owner in claims) for t in _tables()}
    kernels = registry.kernels
    for device, table in kernels.sets.items():
        if n := sum(k.owner == owner for ks in table.values() for k in ks):
            found.setdefault("kernels", []).append(f"{n} for {device}")
    found.setdefault("kernels", []).extend(f"{target} for {d}" for d, wait in kernels.pending.items() for target, o in wait if o == owner)
    return {k: v for k, v in found.items() if v}


def targets(owner: str) -> Iterator[tuple[str, str]]:
    """(what it is, ``"module:attr"``) of everything that an owner brings by reference.

    Parameters
    ----------
    owner : str
        The name of a plugin.
    """
    for table in _tables():
        yield from ((f"{table.kind} '{n}'", c[owner]) for n, c in sorted(table.claims.items()) if isinstance(c.get(owner), str))
    for device, waiting in registry.kernels.pending.items():
        yield from ((f"kernels for device '{device}'", target) for target, o in waiting if o == owner)


def _present(target: str) -> str:
    """Why the module of a target cannot be there, or an empty text; imports at most the packages around it."""
    module = target.partition(":")[0]
    try:
        found = importlib.util.find_spec(module)
    except BaseException as e:  # what a package does when it is imported
        return in_a_line(caught(e))
    return "" if found else f"there is no module {module!r}"


def problems(owner: str) -> list[str]:
    """What is wrong with the targets of an owner, as far as it is known without importing their modules.

    Parameters
    ----------
    owner : str
        The name of a plugin.
    """
    return [f"{what}, '{target}': {reason}" for what, target in targets(owner)
            if (reason := registry.broken.get(target) or _present(target))]


def overrides(owner: str) -> list[str]:
    """Which names and kernels of others stand behind those of an owner, and which of its own behind those of others.

    Parameters
    ----------
    owner : str
        The name of a plugin.
    """
    lines = []
    for table in _tables():
        for name, claims in sorted(table.claims.items()):
            if owner in claims and len(claims) > 1:
                first = table.owners[name]
                others = ", ".join(o for o in claims if o != owner)
                lines.append(f"{table.kind} '{name}' comes before that of {others}" if first == owner
                             else f"{table.kind} '{name}' stands behind that of {first}")
    kernels = registry.kernels
    for device in kernels.sets:
        behind: dict[str, list[str]] = {}
        for op in {id(o): o for o in registry.ops.items.values()}.values():
            found = kernels.of(device, op)
            for i, k in enumerate(found):
                later = [f"{b.owner} ({b.priority})" for b in found[i + 1:] if b.owner != owner and k.overlaps(b)]
                if k.owner == owner and later:
                    behind.setdefault(f"({k.priority}) come before those of {', '.join(dict.fromkeys(later))}", []).append(op.name)
        lines += [f"kernels for {device} {how}: {', '.join(sorted(set(names)))}" for how, names in sorted(behind.items())]
    return lines


def _strange(owner: str) -> Iterator[str]:
    """Kernels of an owner that nothing will ever ask for."""
    kernels = registry.kernels
    for device in sorted({*kernels.sets, *kernels.pending}):
        table = kernels.sets.get(device, {})
        mine = {op for op, found in table.items() if any(k.owner == owner for k in found)}
        if lost := sorted(op for op in mine if registry.ops.find(op) is None):
            yield f"kernels for {device} of operators that do not exist: {', '.join(lost)}"
        if device not in registry.devices.items and (mine or owner in {o for _, o in kernels.pending.get(device, ())}):
            yield f"kernels for device '{device}', which no plugin provides here"


def _compared() -> Iterator[str]:
    """Devices for which several plugins have kernels: only there must they be imported to say whose come first."""
    kernels = registry.kernels
    for device in {*kernels.sets, *kernels.pending}:
        owners = {o for _, o in kernels.pending.get(device, ())} | {k.owner for ks in kernels.sets.get(device, {}).values() for k in ks}
        if len(owners) > 1:
            yield device


def _import_kernels(devices: Iterable[str]) -> None:
    some = registry.ops.find("_copyto")
    for device in list(devices):
        registry.kernels.of(device, some)


def _import_all() -> None:
    """Import every target; what fails is remembered."""
    _import_kernels({*registry.kernels.sets, *registry.kernels.pending})
    for kind in registry.KINDS:
        for name in registry.names(kind):
            try:
                registry.lookup(kind, name)
            except MXNetError:
                continue  # it stands in registry.broken


def failures() -> Iterator[tuple[str, str]]:
    """(plugin, distribution and reason) of every plugin that failed to load, with the line where its own code did."""
    for name, (dist, reason) in sorted(manager.failed.items()):
        frames = traceback.extract_tb(reason.__traceback__)
        where = f" [{frames[-1].filename}:{frames[-1].lineno}]" if frames and not isinstance(reason, MXNetError) else ""
        yield name, f"{dist}  failed: {in_a_line(reason)}{where}"


def describe(check: bool = False) -> tuple[list[str], bool]:
    """Lines about every plugin (origin, state, hooks, what it registered, what is wrong with it), and whether all is well.

    Parameters
    ----------
    check : bool
        Import everything that plugins bring by reference. Without it kernels are imported for those devices only that
        several plugins have kernels for.
    """
    with warnings.catch_warnings():  # what is put aside stands in the list, with its reason
        warnings.simplefilter("ignore", MXNetWarning)
        manager.load()
        _import_all() if check else _import_kernels(_compared())
        lines, well = [], not manager.failed
        for name, (dist, version) in sorted(manager.origin.items()):
            callers = manager.pm.get_hookcallers(manager.pm.get_plugin(name)) or []
            bad = problems(name)
            odd = list(_strange(name))
            well = well and not bad and not any("do not exist" in o for o in odd)
            lines.append(f"{name}  {dist} {version}  {f'loaded, {len(bad)} broken' if bad else 'loaded'}")
            lines.append(f"    hooks: {', '.join(sorted(c.name for c in callers)) or 'none'}")
            lines += [f"    {kind}: {', '.join(found) if len(found) <= _FEW else len(found)}" for kind, found in owned(name).items()]
            lines += [f"    broken: {line}" for line in bad]
            lines += [f"    {line}" for line in (*odd, *overrides(name))]
    lines += [f"{name}  {text}" for name, text in failures()]
    known = {*manager.origin, *manager.left_out, *(dist for dist, _ in manager.origin.values())}
    for variable in ("MXCORE_PREFER", "MXCORE_KERNEL_ORDER", "MXCORE_DISABLE_PLUGINS"):
        lines += [f"{variable} names '{n}', which is neither a plugin here nor a distribution of one" for n in registry.listed(variable)
                  if n not in known]
    for name in sorted(manager.left_out):
        lines.append(f"{name}  left out by MXCORE_PLUGINS or MXCORE_DISABLE_PLUGINS")
    return lines, well


def main(args: argparse.Namespace) -> int:
    """List the plugins, check them, or write a skeleton."""
    if args.action == "new":
        made = skeleton.write(args.name, args.kind, args.dir)
        print(f"wrote {made}\nnext: pip install -e '{made}' && pytest '{made}'")
        return 0
    lines, well = describe(args.check)
    print("\n".join(lines))
    return int(args.check and not well)
