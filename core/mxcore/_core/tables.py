"""The tables of everything that plugins bring. Each entry knows its owner; only the manager and `register` write here.

Environment
-----------
MXCORE_PREFER
    Plugins (or distributions), separated by commas or blanks: where two bring one name, the one that stands first here
    has it.
MXCORE_KERNEL_ORDER
    Likewise: whose kernels go first where priorities are equal.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from itertools import combinations
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .._importing import Unfinished, whole
from .context import HINTS, TYPE_IDS, Context, reset_devices
from .device import Device
from .errors import REFERENCE, caught, error, in_a_line, suggest, warn
from .kernels import Kernel, KernelSet, Spec, ranks
from .op import Op
from .plugins import place, plugins, why
from .roles import ROLES

if TYPE_CHECKING:
    from .params import Params

__all__ = [
    "KINDS",
    "Table",
    "ops",
    "roles",
    "devices",
    "kernels",
    "by_kind",
    "broken",
    "resolve",
    "why",
    "drop_owner",
    "changed",
    "generation",
]

#: Kinds of named things, each with its hook ``mxcore_<kind>s``.
KINDS = ("iterator", "optimizer", "metric", "initializer", "lr_scheduler", "kvstore", "graph_pass", "cli")
USER = "user code"
T = TypeVar("T")
#: Held while something is entered or goes, and never over an import: who imports may want it.
lock = threading.RLock()


class Table(Generic[T]):
    """Names of one kind. A miss loads the plugins; a name has one owner, by MXCORE_PREFER where several claim it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.items: dict[Any, T] = {}
        self.owners: dict[Any, str] = {}
        #: name -> owner -> value: all who bring a name; `items` and `owners` show the one that counts.
        self.claims: dict[Any, dict[str, T]] = {}

    def add(self, name: str, value: T, owner: str) -> None:
        """Enter `name`; equal names from two owners are an error that names both, unless a preference chooses."""
        name = str.__str__(name)  # a subclass may have ways of its own
        for other in self.claims.get(name, ()):
            if _rank(other) == _rank(owner):
                both = "" if other == owner else f"; MXCORE_PREFER={other} or MXCORE_PREFER={owner} says whose counts"
                raise error(ValueError, f"{self.kind} '{name}' of {owner} is already registered by {other}{both}")
        self.put(name, value, owner)

    def put(self, name: Any, value: T, owner: str) -> None:
        """Enter or replace what `owner` calls `name`."""
        with lock:
            self.claims.setdefault(name, {})[owner] = value
            self._settle(name)

    def _settle(self, name: Any) -> None:
        claims = self.claims[name]
        if claims:
            owner = self.owners[name] = min(claims, key=_rank)
            self.items[name] = claims[owner]
        else:
            for of_name in (self.claims, self.items, self.owners):
                of_name.pop(name, None)

    def find(self, name: str) -> T | None:
        """The entry or None, after loading plugins if needed."""
        if name not in self.items:
            plugins.load()
        return self.items.get(name)

    def get(self, name: str) -> T:
        """The entry; raises an error with near names and the plugins that failed to load."""
        found = self.find(name)
        if found is None:
            raise self._missing(name)
        return found

    def _missing(self, name: str) -> Exception:
        return error(KeyError, f"no {self.kind} is named {name!r}{suggest(name, self.items)}{why()}")

    def entries(self) -> dict[Any, T]:
        """All by their names, in this order, after loading plugins; a copy, as others may come or go."""
        plugins.load()
        return dict(sorted(dict(self.items).items()))

    def names(self) -> list[str]:
        return [*self.entries()]

    def drop(self, owner: str) -> None:
        for name in [n for n, claims in self.claims.items() if owner in claims]:
            del self.claims[name][owner]
            self._settle(name)


def _rank(owner: str) -> int:
    """Who comes first where a name is claimed twice: the user, then as MXCORE_PREFER says."""
    return -1 if owner == USER else place(owner, "MXCORE_PREFER")


class OpTable(Table[Op]):
    """Operators, under all their names."""

    def add_op(self, op: Op, owner: str) -> None:
        if op.body is None and op.direct is None and not op.stateful:
            raise error(ValueError, f"operator {op.name} of {owner} has no body")
        for name in (op.name, *op.aliases):
            self.add(name, op, owner)
        if op.role:
            roles.add(op.role, op, owner)


class RoleTable(Table[Op]):
    """Operators by their role."""

    def _missing(self, name: str) -> Exception:
        return error(KeyError, f"no operator has the role '{name}' {ROLES[name]}{why()}")


class DeviceTable(Table[Device]):
    """Device types. As a name, a number has one device: MXCORE_PREFER chooses, and the other one stands behind it."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        #: type_id -> owner -> name, as they were registered: who made a device may change it later.
        self.numbers: Table[str] = Table("type_id")

    def add_device(self, device: Device, owner: str) -> None:
        number, kept = device.type_id, TYPE_IDS.get(device.type)
        for other, name in self.numbers.claims.get(number, {}).items():
            if name != device.type and _rank(other) == _rank(owner):
                raise error(
                    ValueError,
                    f"device '{device.type}' of {owner} uses type_id {number} of device '{name}' of {other}; "
                    "files hold this number, so one of the two must take another (see mxcore.plugin.Device); "
                    f"until then MXCORE_PREFER={other} or MXCORE_PREFER={owner} says whose device is there",
                )
        if kept is not None and number != kept:
            raise error(ValueError, f"device '{device.type}' of {owner} must keep type_id {kept}")
        if not (device.type and isinstance(device.type, str)) or not (
            kept is not None or isinstance(number, int) and 100 < number < 2**31
        ):
            raise error(
                ValueError,
                f"device {device.type!r} of {owner} has type_id {number!r}; "
                "it needs a name, and a number above 100 and below 2**31",
            )
        self.add(device.type, device, owner)
        self.numbers.put(number, str.__str__(device.type), owner)
        self._arrange()

    def drop(self, owner: str) -> None:
        self.numbers.drop(owner)
        super().drop(owner)
        self._arrange()

    def _numbered(self) -> list[tuple[str, str, str]]:
        """(name of the device that has the number, name, owner) of all who bring a number."""
        return [
            (self.numbers.items.get(i, n), n, owner)
            for i, claims in dict(self.numbers.claims).items()  # copies, as plugins may come or go
            for owner, n in dict(claims).items()
        ]

    def _arrange(self) -> None:
        Context.devtype2str.update(self.numbers.items)
        for name in self.claims:
            self._settle(name)
        for first, name, owner in self._numbered():
            if name != first and self.owners.get(name) == owner:
                del self.items[name], self.owners[name]

    def _missing(self, name: str) -> Exception:
        hint = f"; {HINTS[name]}" if name in HINTS else suggest(name, self.items)
        for first, other, owner in self._numbered():
            if other == name:
                hint = f": that of {owner} has the type_id of device '{first}', which MXCORE_PREFER puts before it"
        return error(
            RuntimeError, f"no plugin provides device '{name}'{hint}; there are: {', '.join(self.names())}{why()}"
        )


def _for_sparse(op: Op, specs: Sequence[Spec]) -> bool:
    return op.sparse_body is not None and any(s.stype != "default" for s in specs)


def _is_for(k: Kernel, op: Op) -> bool:
    """Whether a kernel computes this operator: not another one that its plugin brings, or has brought, by that name."""
    meant = ops.claims.get(k.op, {}).get(k.owner, ops.items.get(k.op))
    return meant is None or meant is (op if k.op in (op.name, *op.aliases) else ops.items.get(k.op))


class KernelTable:
    """Device type -> operator name -> kernels."""

    def __init__(self) -> None:
        self.pending: dict[str, list[tuple[str, str]]] = {}
        self.sets: dict[str, dict[str, list[Kernel]]] = {}
        #: Devices that have kernels which nobody entered yet -> whether somebody has computed without these.
        self.fresh: dict[str, bool] = {}
        self._told: set[Any] = set()
        self._forget()
        on_change.append(self._forget)

    def _forget(self) -> None:
        #: (device, operator, preference of the environment) -> kernels, best first; sorting for each node of a graph
        #: shows. Who ranks some in another thread while all is forgotten has the old one.
        self._ranked: dict[Any, list[Kernel]] = {}

    def add(self, device: str, value: KernelSet | str, owner: str) -> None:
        if isinstance(value, str):
            self.pending.setdefault(device, []).append((value, owner))
        elif not isinstance(value, KernelSet):
            raise error(
                TypeError, f"hook mxcore_kernels of {owner}: {value!r} is neither a KernelSet nor 'module:attr'"
            )
        else:
            whose = f"kernels of {owner} for device '{device}'"
            try:
                found = [*value.entries]
            except Exception as e:
                raise error(TypeError, f"{whose}: their set does not tell them: {in_a_line(e)}") from e
            for k in found:
                if not (isinstance(k, Kernel) and isinstance(k.op, str) and ranks(k.priority)):
                    raise error(TypeError, f"{whose}: {k!r} is no kernel of a name with a number as priority")
            table = self.sets.setdefault(device, {})
            for k in map(copy, found):  # two plugins may bring one set, and one of them go
                k.owner = owner
                table.setdefault(k.op, []).append(k)
        self.fresh.setdefault(device, False)
        self._forget()

    def open(self, device: str) -> None:
        """Import the device's kernel modules where nobody has, and tell of kernels for operators that do not exist."""
        plugins.load()
        if device in self.fresh:
            for text in plugins.in_turn(device, partial(self._open, device)) or ():  # a warning may be an error
                warn(text)
        if device in self.fresh:  # a plugin computes while it is imported
            self.fresh[device] = True

    def _open(self, device: str) -> list[str]:
        told, failed = [], set()
        for target, owner in [*self.pending.get(device, ())] if device in self.fresh else ():
            plugins.busy, what = owner, f"kernels of {owner} for device '{device}'"
            try:
                found = whole(target.partition(":")[0], partial(resolve, target, what))
                with lock:
                    if (target, owner) in self.pending.get(device, ()):  # nobody was faster, its plugin is still there
                        self.add(device, found, owner)
                        self.pending[device].remove((target, owner))
            except Unfinished:
                continue
            # One plugin's kernels must not take the reference bodies away; what was only short now is raised.
            except (ImportError, TypeError) as e:
                broken.setdefault(target, in_a_line(e))
                failed.add((target, owner))
                told.append(f"{e}; reference bodies are used instead")
        with lock:
            if not plugins.loaded or not failed.issuperset(self.pending.get(device, ())):
                return told
            if self.fresh.pop(device, False):
                changed()
            table = self.sets.get(device, {})
            lost = {(k.owner, op) for op, found in table.items() if op not in ops.items for k in found} - self._told
            self._told |= lost
        for owner in sorted({o for o, _ in lost}):
            named = "; ".join(f"'{op}'{suggest(op, ops.items)}" for o, op in sorted(lost) if o == owner)
            told.append(f"kernels of {owner} for device '{device}' are for operators that do not exist: {named}")
        return told

    def of(self, device: str, op: Op) -> list[Kernel]:
        """Kernels of an operator, best first; imports the device's kernel modules on first use."""
        self.open(device)
        ranked, table, by_place = self._ranked, self.sets.get(device, {}), "MXCORE_KERNEL_ORDER"
        key = device, op, os.environ.get(by_place)
        if key in ranked:
            return ranked[key]
        # Distribution names decide ties, so the outcome does not depend on the order of installation.
        found = sorted(
            (k for name in op.kernel_names for k in table.get(name, ()) if _is_for(k, op)),
            key=lambda k: (-k.priority, place(k.owner, by_place), plugins.distribution(k.owner), k.owner),
        )
        for a, b in combinations(found, 2):
            pair = (device, a.owner, b.owner)
            if (
                a.overlaps(b)
                and a.owner != b.owner
                and a.priority == b.priority
                and pair not in self._told
                and place(a.owner, by_place) == place(b.owner, by_place)
            ):
                self._told.add(pair)
                one, two = (f"{k.owner} ({plugins.distribution(k.owner)})" for k in (a, b))
                warn(
                    f"kernels of {one} and {two} for device '{device}' have equal priority {a.priority}, for "
                    f"operator {op.name} first; those of {a.owner} are used where both serve "
                    "(MXCORE_KERNEL_ORDER overrules, `mxcore plugins` lists all)"
                )
        # Operators of programs go with these.
        return ranked.setdefault(key, found) if ops.items.get(str.__str__(op.name)) is op else found

    def fitting(self, op: Op, device: Device, p: Params, specs: Sequence[Spec]) -> Iterator[Kernel]:
        """The kernels that may run on inputs like these, best first."""
        sparse, own = _for_sparse(op, specs), op.twin_when is not None and not op.twin_when(p, *specs)
        mine = (k for k in self.of(device.type, op) if not own or k.op in (op.name, *op.aliases))
        return (k for k in mine if k.sparse == sparse and k.fits(p, specs))

    def best(self, op: Op, device: Device, p: Params, specs: Sequence[Spec]) -> Kernel | None:
        """The kernel for inputs like these; None where the reference body computes them, if anything does."""
        return next(self.fitting(op, device, p, specs), None)

    def resolve(self, op: Op, device: Device, p: Params, specs: Sequence[Spec]) -> tuple[Any, bool, str]:
        """(function, writes into outs, owner) for inputs like these; the reference body comes last."""
        k = self.best(op, device, p, specs)
        if k is not None:
            return k.fn, k.out, k.owner
        if _for_sparse(op, specs):
            return op.sparse_body, False, REFERENCE
        if op.body is not None and device.xp is not None:
            return op.body, False, REFERENCE
        offers = sorted({k.owner for t in dict(self.sets).values() for n in op.kernel_names for k in t.get(n, ())})
        raise error(
            NotImplementedError,
            f"operator {op.name} has no kernel for device '{device.type}'"
            f" (offered for other devices by: {', '.join(offers) or 'no plugin'})"
            + ("; it has no array namespace `xp`, over which bodies run" if device.xp is None else ""),
        )

    def drop(self, owner: str) -> None:
        for table in self.sets.values():
            table.update({name: [k for k in found if k.owner != owner] for name, found in table.items()})
        self.pending = {d: [(r, o) for r, o in v if o != owner] for d, v in self.pending.items()}
        self._told = {t for t in set(self._told) if owner not in t}
        self._forget()


#: How often that was so, or calls were forgotten: what was begun before is not to be kept.
generation = [0]
#: Called when the set of plugins changes, by whoever caches what the tables gave.
on_change: list[Callable[[], None]] = []
#: Called when what calls have bound is forgotten, also because somebody watches from now on, by whoever binds some too.
on_forget: list[Callable[[], None]] = []

ops = OpTable("operator")
roles = RoleTable("role")
devices = Context.devices = DeviceTable("device")
kernels = KernelTable()
by_kind: dict[str, Table[Any]] = {k: Table(k) for k in KINDS}
#: Targets ``"module:attr"`` that could not be imported when they were asked for, with the reason.
broken: dict[str, str] = {}


def resolve(target: str, what: str) -> Any:
    """Import ``"module:attr"``, which is `what`; a failure is remembered in :data:`broken`."""
    module, _, attr = target.partition(":")
    try:
        found = importlib.import_module(module)
        found = attrgetter(attr)(found) if attr else found
    except BaseException as e:
        broken[target] = in_a_line(caught(e))
        raise error(ImportError, f"{what} cannot be imported from '{target}': {broken[target]}") from e
    broken.pop(target, None)
    return found


def drop_owner(owner: str) -> None:
    """Remove everything that `owner` registered."""
    gone = set(ops.items.values())
    for t in (ops, roles, devices, kernels, *by_kind.values()):
        t.drop(owner)  # type: ignore[attr-defined]
    changed(gone)


def changed(gone: Iterable[Op] = ()) -> None:
    """Forget what was memoised from the tables; somebody may still hold operators that are `gone`."""
    forget_calls(gone)
    for op in {*ops.items.values(), *gone}:
        op.grad_plan = None
    reset_devices()
    for forget in on_change:
        forget()


def forget_calls(gone: Iterable[Op] = ()) -> None:
    """Forget what eager calls of operators have bound, of those in the table and of some that are `gone`."""
    generation[0] += 1
    for op in {*ops.items.values(), *gone}:
        op.bound = {}  # whoever binds in another thread has the old one
    for forget in on_forget:
        forget()
