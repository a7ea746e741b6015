"""What plugins brought, what is wrong with it, whose comes first: what ``mxcore plugins`` and ``info`` tell."""

from __future__ import annotations

import difflib
import importlib.util
import traceback
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

from .. import kinds
from .._core import tables
from .._core.device import Device
from .._core.errors import caught, in_a_line
from .._core.manager import manager
from .._core.plugins import listed
from ..array_api import ArrayAPINamespace, contract
from ..base import MXNetError
from ..wellformed import misfit

__all__ = [
    "compared",
    "failures",
    "faults",
    "import_all",
    "import_kernels",
    "lost_kernels",
    "lost_targets",
    "misfits",
    "misspelt",
    "namespaces",
    "overrides",
    "owned",
    "problems",
    "reports",
    "strange",
    "strangers",
    "targets",
    "unknown",
    "unserved",
]


def _tables() -> Iterator[tables.Table[Any]]:
    yield tables.ops
    yield tables.devices
    yield from tables.by_kind.values()


def owned(owner: str) -> dict[str, list[str]]:
    """What an owner registered, by kind; kernels as their number for each device, or as a target to be imported.

    Parameters
    ----------
    owner : str
        The name of a plugin.
    """
    found = {t.kind: sorted(n for n, claims in t.claims.items() if owner in claims) for t in _tables()}
    kernels = tables.kernels
    for device, table in kernels.sets.items():
        if n := sum(k.owner == owner for ks in table.values() for k in ks):
            found.setdefault("kernels", []).append(f"{n} for {device}")
    found.setdefault("kernels", []).extend(
        f"{target} for {d}" for d, wait in kernels.pending.items() for target, o in wait if o == owner
    )
    return {k: v for k, v in found.items() if v}


def targets(owner: str) -> Iterator[tuple[str, str]]:
    """(what it is, ``"module:attr"``) of everything that an owner brings by reference.

    Parameters
    ----------
    owner : str
        The name of a plugin.
    """
    for table in _tables():
        yield from (
            (f"{table.kind} '{n}'", c[owner]) for n, c in sorted(table.claims.items()) if isinstance(c.get(owner), str)
        )
    for device, waiting in tables.kernels.pending.items():
        yield from ((f"kernels for device '{device}'", target) for target, o in waiting if o == owner)


def _present(target: str) -> str:
    """Why the module of a target cannot be there, or an empty text; imports at most the packages around it."""
    module = target.partition(":")[0]
    try:
        found = importlib.util.find_spec(module)
    except BaseException as e:  # what a package does when it is imported
        return in_a_line(caught(e))
    return "" if found else f"there is no module {module!r}"


def faults(owner: str) -> list[str]:
    """Which event hook of an owner failed, with the reason and the line.

    Parameters
    ----------
    owner : str
        The name of a plugin.
    """
    if owner not in manager.faulty:
        return []
    hook, reason = manager.faulty[owner]
    return [f"{hook} failed: {in_a_line(reason)}{_line(reason)}"]


def lost_targets(owner: str) -> list[str]:
    """What is wrong with the targets of an owner, as far as it is known without importing their modules.

    Parameters
    ----------
    owner : str
        The name of a plugin.
    """
    return [
        f"{what}, '{target}': {reason}"
        for what, target in targets(owner)
        if (reason := tables.broken.get(target) or _present(target))
    ]


def problems(owner: str) -> list[str]:
    """What is wrong with an owner, as far as it is known without importing its targets.

    Parameters
    ----------
    owner : str
        The name of a plugin.
    """
    return [*faults(owner), *lost_targets(owner)]


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
            if owner in claims and len(claims) > 1 and name in table.owners:
                first = table.owners[name]
                others = ", ".join(o for o in claims if o != owner)
                lines.append(
                    f"{table.kind} '{name}' comes before that of {others}"
                    if first == owner
                    else f"{table.kind} '{name}' stands behind that of {first}"
                )
    numbers = tables.devices.numbers
    for number, claims in sorted(numbers.claims.items()):
        if owner in claims and len({*claims.values()}) > 1:
            first, mine = numbers.items[number], claims[owner]
            others = ", ".join(f"'{name}' of {o}" for o, name in claims.items() if name != mine)
            lines.append(
                f"device '{mine}' has type_id {number} before {others}"
                if first == mine
                else f"device '{mine}' is not there, "
                f"for device '{first}' of {numbers.owners[number]} has its type_id {number}"
            )
    kernels = tables.kernels
    # Plugins of one distribution know of each other.
    friends = {n for n, (dist, _) in manager.origin.items() if dist == manager.origin.get(owner, ("",))[0]} | {owner}
    for device in kernels.sets:
        behind: dict[str, list[str]] = {}
        for op in {id(o): o for o in tables.ops.items.values()}.values():
            found = kernels.of(device, op)
            for i, k in enumerate(found):
                later = [
                    f"{b.owner} ({b.priority})" for b in found[i + 1 :] if b.owner not in friends and k.overlaps(b)
                ]
                if k.owner == owner and later:
                    behind.setdefault(
                        f"({k.priority}) come before those of {', '.join(dict.fromkeys(later))}", []
                    ).append(op.name)
        lines += [
            f"kernels for {device} {how}: {', '.join(sorted(set(names)))}" for how, names in sorted(behind.items())
        ]
    return lines


def lost_kernels(owner: str) -> Iterator[tuple[str, list[str]]]:
    """(device, names of operators that do not exist) of the kernels of an owner, as far as they are imported.

    Parameters
    ----------
    owner : str
        The name of a plugin.
    """
    for device, table in sorted(tables.kernels.sets.items()):
        mine = {op for op, found in table.items() if any(k.owner == owner for k in found)}
        if lost := sorted(op for op in mine if tables.ops.find(op) is None):
            yield device, lost


def misfits(owner: str) -> Iterator[tuple[str, str]]:
    """(kernel, what is wrong) of the kernels of an owner that cannot be called, or never will be, where they fit.

    Parameters
    ----------
    owner : str
        The name of a plugin.
    """
    for device, table in sorted(tables.kernels.sets.items()):
        for name, kernels in sorted(table.items()):
            mine = [k for k in kernels if k.owner == owner]
            what = f"kernel of operator {name} for {device}"
            if (op := tables.ops.find(name)) is not None:
                yield from ((what, text) for k in mine if (text := misfit(k, op)))
            for a, b in combinations(mine, 2):
                if a.priority == b.priority and a.when is None and a.overlaps(b):
                    yield what, f"another of the same priority {a.priority}, which is declared before, takes its dtypes"


def unserved(owner: str) -> list[str]:
    """Devices that an owner has kernels for and that no plugin provides here.

    Parameters
    ----------
    owner : str
        The name of a plugin.
    """
    kernels = tables.kernels
    wanted = {
        d for d, table in kernels.sets.items() if any(k.owner == owner for found in table.values() for k in found)
    }
    wanted |= {d for d, waiting in kernels.pending.items() if any(o == owner for _, o in waiting)}
    return sorted(wanted - set(tables.devices.items))


def namespaces(owner: str) -> Iterator[tuple[str, list[str], list[str], str]]:
    """(device, what its array namespace lacks, what the library under it lacks, why it cannot be used) for all there.

    Parameters
    ----------
    owner : str
        The name of a plugin.
    """
    for name, device in sorted(tables.devices.items.items()):
        if tables.devices.owners[name] != owner:
            continue
        try:
            if device.count():
                xp = device.xp
                library = xp.lacking() if isinstance(xp, ArrayAPINamespace) else []
                yield name, ["functions, for it is None"] if xp is None else contract.lacking(xp), library, ""
        except BaseException as e:  # such as a library that ends the process
            yield name, [], [], in_a_line(caught(e))


def misspelt(owner: str) -> Iterator[tuple[str, str, str]]:
    """(device, name, near name) of what an owner's devices have that is hardly different from what they may have.

    Parameters
    ----------
    owner : str
        The name of a plugin.
    """
    contract = {n for n in dir(Device) if n[0] != "_"}
    for name, device in sorted(tables.devices.items.items()):
        if tables.devices.owners[name] == owner:
            own = {n for cls in type(device).__mro__ if issubclass(cls, Device) for n in vars(cls) if n[0] != "_"}
            for n in sorted(own - contract):
                if near := difflib.get_close_matches(n, contract, 1, 0.85):
                    yield name, n, near[0]


def strange(owner: str) -> list[str]:
    """Lines about kernels of an owner that nothing will ever ask for.

    Parameters
    ----------
    owner : str
        The name of a plugin.
    """
    return [
        *(
            f"kernels for {device} of operators that do not exist: {', '.join(lost)}"
            for device, lost in lost_kernels(owner)
        ),
        *(f"kernels for device '{device}', which no plugin provides here" for device in unserved(owner)),
    ]


def unknown() -> list[tuple[str, str]]:
    """(variable, name) of what the environment says about plugins that are not here."""
    known = {*manager.origin, *manager.left_out, *(dist for dist, _ in manager.origin.values())}
    return [
        (variable, n)
        for variable in ("MXCORE_PREFER", "MXCORE_KERNEL_ORDER", "MXCORE_DISABLE_PLUGINS")
        for n in listed(variable)
        if n not in known
    ]


#: Kind of a named thing -> what its classes derive from, ``"module:attr"``.
_BASES = {
    "optimizer": "mxcore.optimizer:Optimizer",
    "metric": "mxcore.metric:EvalMetric",
    "initializer": "mxcore.initializer:Initializer",
    "lr_scheduler": "mxcore.lr_scheduler:LRScheduler",
    "iterator": "mxcore.io:DataIter",
    "kvstore": "mxcore.kvstore:KVStoreBase",
}


def strangers(owner: str) -> Iterator[str]:
    """What an owner brings as a class of some kind, and is a class of another one, as far as it is imported.

    Parameters
    ----------
    owner : str
        The name of a plugin.
    """
    for kind, target in _BASES.items():
        for name, claims in sorted(tables.by_kind[kind].claims.items()):
            found = claims.get(owner)
            if isinstance(found, type) and not issubclass(found, base := tables.resolve(target, f"base of {kind}s")):
                yield f"{kind} '{name}' is {type.__repr__(found)}, no subclass of {base.__name__}"


def compared() -> Iterator[str]:
    """Devices for which several plugins have kernels: only there must they be imported to say whose come first."""
    kernels = tables.kernels
    for device in {*kernels.sets, *kernels.pending}:
        owners = {o for _, o in kernels.pending.get(device, ())} | {
            k.owner for ks in kernels.sets.get(device, {}).values() for k in ks
        }
        if len(owners) > 1:
            yield device


def import_kernels(devices: Iterable[str]) -> None:
    """Import the kernels for some devices; what fails is remembered.

    Parameters
    ----------
    devices : iterable of str
        Types of devices.
    """
    some = tables.ops.get("_copyto")
    for device in list(devices):
        tables.kernels.of(device, some)


def import_all() -> None:
    """Import every target; what fails is remembered."""
    import_kernels({*tables.kernels.sets, *tables.kernels.pending})
    for kind in tables.KINDS:
        for name in kinds.names(kind):
            try:
                kinds.lookup(kind, name)
            except MXNetError:
                continue  # it stands in tables.broken


def reports() -> list[str]:
    """The lines of all ``mxcore_report`` hooks; of one that fails, which it is and why, which is remembered."""
    manager.load()
    lines: list[str] = []
    for impl in reversed(manager.pm.hook.mxcore_report.get_hookimpls()):
        try:
            found: Any = impl.function() or ()
            lines += [found] if isinstance(found, str) else map(str, found)
        except BaseException as e:  # it is another's code
            manager.faulty.setdefault(impl.plugin_name, ("mxcore_report", caught(e)))
            lines.append(f"mxcore_report of plugin '{impl.plugin_name}' failed: {in_a_line(caught(e))}")
    return lines


def failures() -> Iterator[tuple[str, str]]:
    """(plugin, distribution and reason) of every plugin that failed to load, with the line where its own code did."""
    for name, (dist, reason) in sorted(manager.failed.items()):
        yield name, f"{dist}  failed: {in_a_line(reason)}{_line(reason)}"


def _line(reason: BaseException) -> str:
    """`` [file:line]`` where a plugin's own code failed; of an error of ours, which says what is wrong, nothing."""
    frames = [f for f in traceback.extract_tb(reason.__traceback__) if not f.filename.startswith("<frozen")]
    return f" [{frames[-1].filename}:{frames[-1].lineno}]" if frames and not isinstance(reason, MXNetError) else ""
