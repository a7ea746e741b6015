"""The tables of everything that plugins bring. Each entry knows its owner; only the manager and `register` write here."""
from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .context import TYPE_IDS, Context, reset_devices
from .device import Device
from .errors import caught, error, suggest, warn
from .kernels import Kernel, KernelSet, Spec
from .op import Op

if TYPE_CHECKING:
    from .params import Params

__all__ = ["KINDS", "Table", "ops", "devices", "kernels", "tables", "register", "lookup", "names", "drop_owner", "changed"]

#: Kinds of named things, each with its hook ``mxcore_<kind>s``.
KINDS = ("iterator", "optimizer", "metric", "initializer", "lr_scheduler", "kvstore", "graph_pass", "cli")
USER = "user code"


def _load_plugins() -> None:
    from .manager import manager

    manager.load()


def _failures() -> str:
    from .manager import manager

    bad = [f"plugin '{n}' failed to load: {e}" for n, (_, e) in manager.failed.items()]
    bad += [f"{v} is set to '{os.environ[v]}'" for v in ("MXCORE_PLUGINS", "MXCORE_DISABLE_PLUGINS") if v in os.environ]
    return ("; " + "; ".join(bad)) if bad else ""


class Table:
    """Names of one kind. A miss loads the plugins; a name belongs to one owner."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.items: dict[str, Any] = {}
        self.owners: dict[str, str] = {}

    def add(self, name: str, value: Any, owner: str) -> None:
        """Enter `name`; equal names from two owners are an error that names both."""
        if name in self.items:
            raise error(ValueError, f"{self.kind} '{name}' of {owner} is already registered by {self.owners[name]}")
        self.items[name], self.owners[name] = value, owner

    def find(self, name: str) -> Any:
        """The entry or None, after loading plugins if needed."""
        if name not in self.items:
            _load_plugins()
        return self.items.get(name)

    def get(self, name: str) -> Any:
        """The entry; raises an error with near names and the plugins that failed to load."""
        found = self.find(name)
        if found is None:
            raise error(KeyError, f"no {self.kind} is named {name!r}{suggest(name, self.items)}{_failures()}")
        return found

    def names(self) -> list[str]:
        _load_plugins()
        return sorted(self.items)

    def drop(self, owner: str) -> None:
        for name in [n for n, o in self.owners.items() if o == owner]:
            del self.items[name], self.owners[name]


class OpTable(Table):
    """Operators, under all their names."""

    def add_op(self, op: Op, owner: str) -> None:
        if not isinstance(op, Op):
            raise error(TypeError, f"hook mxcore_ops of {owner} returned {op!r}; it must return operator declarations")
        if op.body is None and op.direct is None and not op.stateful:
            raise error(ValueError, f"operator {op.name} of {owner} has no body")
        for name in (op.name, *op.aliases):
            self.add(name, op, owner)


class DeviceTable(Table):
    """Device types."""

    def add_device(self, device: Device, owner: str) -> None:
        if not isinstance(device, Device) or not device.type:
            raise error(TypeError, f"hook mxcore_devices of {owner} returned {device!r}; it must return Device objects with a type")
        for d in self.items.values():
            if d.type_id == device.type_id:
                raise error(ValueError, f"device '{device.type}' of {owner} uses type_id {d.type_id} of device '{d.type}'")
        if TYPE_IDS.get(device.type, device.type_id) != device.type_id:
            raise error(ValueError, f"device '{device.type}' of {owner} must keep type_id {TYPE_IDS[device.type]}")
        self.add(device.type, device, owner)
        Context.devtype2str.setdefault(device.type_id, device.type)

    def get(self, name: str) -> Device:
        found = self.find(name)
        if found is None:
            hint = "; pip install mxcore-cuda" if name == "gpu" else suggest(name, self.items)
            raise error(RuntimeError, f"no plugin provides device '{name}'{hint}; there are: {', '.join(self.names())}{_failures()}")
        return found  # type: ignore[no-any-return]


class KernelTable:
    """Device type -> operator name -> kernels, best first."""

    def __init__(self) -> None:
        self.pending: dict[str, list[tuple[str, str]]] = {}
        self.sets: dict[str, dict[str, list[Kernel]]] = {}
        self.warned: set[tuple[str, ...]] = set()
        self.failed: dict[str, str] = {}

    def add(self, device: str, value: KernelSet | str, owner: str) -> None:
        if isinstance(value, str):
            self.pending.setdefault(device, []).append((value, owner))
            return
        if not isinstance(value, KernelSet):
            raise error(TypeError, f"hook mxcore_kernels of {owner}: {value!r} is neither a KernelSet nor 'module:attr'")
        table = self.sets.setdefault(device, {})
        for k in value.entries:
            k.owner = owner
            table.setdefault(k.op, []).append(k)
            self._sort(table[k.op])

    def _sort(self, entries: list[Kernel]) -> None:
        from .manager import manager

        order = [n.strip() for n in os.environ.get("MXCORE_KERNEL_ORDER", "").split(",") if n.strip()]
        # Distribution names decide ties, so the outcome does not depend on the order of installation.
        dist = {k.owner: manager.distribution(k.owner) for k in entries}
        rank = {o: (order.index(dist[o]) if dist[o] in order else len(order), dist[o]) for o in dist}
        entries.sort(key=lambda k: (-k.priority, rank[k.owner]))
        for a, b in zip(entries, entries[1:]):
            tie = (a.op, a.owner, b.owner)
            if a.owner != b.owner and a.priority == b.priority and tie not in self.warned:
                self.warned.add(tie)
                warn(f"kernels of operator {a.op} from {dist[a.owner]} and {dist[b.owner]} have equal priority "
                     f"{a.priority}; {dist[a.owner]} goes first (MXCORE_KERNEL_ORDER overrules)")

    def of(self, device: str, op: Op) -> list[Kernel]:
        """Kernels of an operator, best first; imports the device's kernel modules on first use."""
        for ref, owner in self.pending.pop(device, ()):
            try:
                self.add(device, resolve(ref), owner)
            except BaseException as e:  # one plugin's kernels must not take the reference bodies away
                self.failed[ref] = f"{type(e).__name__}: {caught(e)}"
                warn(f"kernels {ref} of {owner} for device '{device}' failed to load: {caught(e)}; reference bodies are used instead")
        table = self.sets.get(device, {})
        return [k for name in (op.name, *op.aliases) for k in table.get(name, ())]

    def resolve(self, op: Op, device: Device, p: Params, specs: Sequence[Spec]) -> tuple[Any, bool, str]:
        """(function, writes into outs, owner) for inputs like these; the reference body comes last."""
        if op.sparse_body is not None and any(s.stype != "default" for s in specs):
            return op.sparse_body, False, "reference"
        for k in self.of(device.type, op):
            if k.fits(p, specs):
                return k.fn, k.out, k.owner
        if op.body is not None and device.xp is not None:
            return op.body, False, "reference"
        offers = sorted({k.owner for t in self.sets.values() for k in t.get(op.name, ())})
        raise error(NotImplementedError, f"operator {op.name} has no kernel for device '{device.type}'"
                                         f" (offered for other devices by: {', '.join(offers) or 'no plugin'})")

    def drop(self, owner: str) -> None:
        for table in self.sets.values():
            for name in list(table):
                table[name] = [k for k in table[name] if k.owner != owner]
        self.pending = {d: [(r, o) for r, o in v if o != owner] for d, v in self.pending.items()}


#: Called when the set of plugins changes, by whoever caches what the tables gave.
on_change: list[Callable[[], None]] = []

ops = OpTable("operator")
devices = DeviceTable("device")
kernels = KernelTable()
tables: dict[str, Table] = {k: Table(k) for k in KINDS}


def resolve(value: Any) -> Any:
    """Import ``"module:attr"``; anything else is returned as it is."""
    if not isinstance(value, str):
        return value
    module, _, attr = value.partition(":")
    found: Any = importlib.import_module(module)
    for part in attr.split(".") if attr else ():
        found = getattr(found, part)
    return found


def register(kind: str, name: str, value: Any, owner: str = USER) -> None:
    """Enter a class under a name from user code (``mx.optimizer.register`` and kin).

    A second registration replaces the first with a warning, as in MXNet.
    """
    table = _table(kind)
    _load_plugins()
    if name in table.items and table.items[name] is not value:
        warn(f"{kind} '{name}' of {owner} replaces the one of {table.owners[name]}")
        del table.items[name], table.owners[name]
    if name not in table.items:
        table.add(name, value, owner)


def _table(kind: str) -> Table:
    try:
        return tables[kind]
    except KeyError:
        raise error(KeyError, f"no kind {kind!r}{suggest(kind, KINDS)}; kinds: {', '.join(KINDS)}") from None


def lookup(kind: str, name: str) -> Any:
    """The object registered under `name`, imported if it was given as ``"module:attr"``."""
    table = _table(kind)
    found = table.get(name)
    if isinstance(found, str):
        try:
            found = resolve(found)
        except (ImportError, AttributeError, SystemExit) as e:
            raise error(ImportError, f"{kind} '{name}' of {table.owners[name]} cannot be imported: {caught(e)}") from e
        table.items[name] = found
    return found


def names(kind: str) -> list[str]:
    """All names of a kind, sorted."""
    return _table(kind).names()


def owned(owner: str) -> dict[str, list[str]]:
    """What an owner registered, kind by kind; kernels as references or as their number."""
    found = {t.kind: sorted(n for n, o in t.owners.items() if o == owner) for t in (ops, devices, *tables.values())}
    n = sum(k.owner == owner for t in kernels.sets.values() for ks in t.values() for k in ks)
    found["kernels"] = [f"{n} kernels"] * bool(n) + sorted({r for v in kernels.pending.values() for r, o in v if o == owner})
    return {k: v for k, v in found.items() if v}


def drop_owner(owner: str) -> None:
    """Remove everything that `owner` registered."""
    for t in (ops, devices, kernels, *tables.values()):
        t.drop(owner)  # type: ignore[attr-defined]
    changed()


def changed() -> None:
    """Forget what was memoised from the tables."""
    for op in set(ops.items.values()):
        op.plans.clear()
        op.grad_plan = None
    reset_devices()
    for forget in on_change:
        forget()
