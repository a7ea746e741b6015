"""``mxcore plugins check``: what is wrong with the plugins or what they take from each other, a line each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .. import kinds
from .._core import tables
from .._core.errors import caught, in_a_line, suggest
from .._core.manager import manager
from ..base import MXNetError, MXNetWarning
from .brought import (
    failures,
    faults,
    import_all,
    lost_kernels,
    lost_targets,
    misfits,
    misspelt,
    namespaces,
    overrides,
    reports,
    strangers,
    unknown,
    unserved,
)

__all__ = ["Finding", "findings", "summary"]

_MEND = "mend it there, or leave it out with MXCORE_DISABLE_PLUGINS"


@dataclass
class Finding:
    """One thing that is worth knowing.

    Parameters
    ----------
    wrong : bool
        Whether something does not work as its author meant it.
    who : str
        The plugin, or the variable of the environment.
    what : str
        What it is.
    to_do : str
        What to do about it.
    """

    wrong: bool
    who: str
    what: str
    to_do: str

    def __str__(self) -> str:
        return f"{'wrong' if self.wrong else 'note'}: {self.who}: {self.what}; {self.to_do}"


def findings() -> list[Finding]:
    """Import everything that plugins bring by reference, and tell what is wrong, then what is merely worth knowing."""
    with warnings.catch_warnings():  # what is told in warnings is found here, with its reason
        warnings.simplefilter("ignore", MXNetWarning)
        manager.load()
        import_all()
        reports()  # one that fails is remembered
        found = [*_failed(), *(f for name in sorted(manager.origin) for f in _looked_at(name)), *_environment()]
    return sorted(found, key=lambda f: not f.wrong)


def summary(found: Sequence[Finding]) -> str:
    """The last line: how many plugins there are, and how many findings of each kind.

    Parameters
    ----------
    found : sequence of Finding
    """
    wrong = sum(f.wrong for f in found)
    notes = len(found) - wrong
    return f"{len(manager.origin)} plugins, {wrong or 'nothing'} wrong, {notes or 'no'} note{'' if notes == 1 else 's'}"


def _failed() -> Iterator[Finding]:
    for name, text in failures():
        yield Finding(True, name, " ".join(text.split()), _MEND)


def _looked_at(owner: str) -> Iterator[Finding]:
    """What is found of a plugin, also of one whose objects raise where they are looked at."""
    try:
        yield from _of(owner)
    except BaseException as e:
        yield Finding(True, owner, f"what it brings cannot be looked at: {in_a_line(caught(e))}", _MEND)


def _of(owner: str) -> Iterator[Finding]:
    for fault in faults(owner):
        yield Finding(True, owner, fault, _MEND)
    for problem in lost_targets(owner):
        yield Finding(True, owner, problem, "correct the target, or install what it imports")
    for device, lost in lost_kernels(owner):
        names = ", ".join(f"'{n}'{suggest(n, tables.ops.items)}" for n in lost)
        yield Finding(
            True,
            owner,
            f"kernels for {device} of operators that do not exist: {names}",
            "correct the name, or install the plugin that brings the operator",
        )
    for kernel, what in misfits(owner):
        yield Finding(True, owner, f"{kernel}: {what}", "correct the kernel")
    for what in strangers(owner):
        yield Finding(True, owner, what, "give a subclass, or a function that makes such an object")
    for what in _commands(owner):
        yield Finding(True, owner, what, "give it what is missing")
    for device, lacking, library, reason in namespaces(owner):
        if reason:
            yield Finding(True, owner, f"device '{device}' cannot be used: {reason}", "correct it, or what it needs")
        if lacking:
            yield Finding(
                False,
                owner,
                f"the array namespace of device '{device}' has no {', '.join(lacking)}",
                "operators whose bodies use them fail there; docs/arrays.md lists what bodies may use",
            )
        if library:
            yield Finding(
                False,
                owner,
                f"the library of device '{device}' has no {', '.join(library)}, as the array API standard has",
                "operators that need them fail there; give functions for them to ArrayAPINamespace",
            )
    for device, name, near in misspelt(owner):
        yield Finding(False, owner, f"device '{device}' has '{name}', which nothing asks for", f"is it '{near}'?")
    for device in unserved(owner):
        yield Finding(
            False,
            owner,
            f"kernels for device '{device}', which no plugin provides here{suggest(device, tables.devices.items)}",
            "they are used where one does",
        )
    for line in overrides(owner):
        variable = (
            "MXCORE_KERNEL_ORDER (of equal priorities) or another priority"
            if line.startswith("kernels")
            else "MXCORE_PREFER"
        )
        yield Finding(False, owner, line, f"{variable} decides otherwise")


def _commands(owner: str) -> Iterator[str]:
    """Commands of an owner that lack something."""
    table = tables.by_kind["cli"]
    for name in sorted(n for n, o in table.owners.items() if o == owner and owner != "stock"):
        try:
            command = kinds.lookup("cli", name)
        except MXNetError:  # a target that cannot be imported is told as such
            continue
        if lacking := [a for a in ("help", "add_arguments", "main") if not hasattr(command, a)]:
            yield f"cli '{name}' is {command!r}, which has no {' and no '.join(lacking)}"


def _environment() -> Iterator[Finding]:
    for variable, name in unknown():
        near = suggest(name, [*manager.origin, *manager.left_out])
        yield Finding(
            False,
            variable,
            f"it names '{name}', which is neither a plugin here nor a distribution of one{near}",
            "correct the name, or take it out",
        )
    for name in sorted(manager.left_out):
        yield Finding(False, name, "left out", "MXCORE_PLUGINS or MXCORE_DISABLE_PLUGINS say so")
