"""Which plugins there are, for the tables to tell of; the manager loads them and writes here."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import TypeVar

from .._importing import Turns
from .errors import error, in_a_line

__all__ = ["Plugins", "listed", "place", "plugins", "why"]

T = TypeVar("T")


class Plugins:
    """What is known of plugins."""

    def __init__(self) -> None:
        #: Whether all of them have been looked at.
        self.loaded = False
        #: Name -> (distribution, version).
        self.origin: dict[str, tuple[str, str]] = {}
        #: Name -> (distribution, error).
        self.failed: dict[str, tuple[str, BaseException]] = {}
        #: Name -> (hook, error) of plugins that are loaded, and one of whose event hooks failed.
        self.faulty: dict[str, tuple[str, Exception]] = {}
        #: Names of installed plugins that the environment switches off.
        self.left_out: set[str] = set()
        #: Who is imported now, and whose turn it is to do that; no other lock of mxcore is held over it.
        self.busy, self.turns = "", Turns()

    def load(self) -> None:
        """Have the manager load them, once. It is imported here: it needs pluggy, and who computes nothing does not."""
        if not self.loaded:
            import_module(".manager", __package__).manager.load()

    def in_turn(self, what: str, load: Callable[[], T]) -> T | None:
        """What a function gives that imports plugins or what belongs to them; see :class:`Turns`."""
        return self.turns.take(
            what,
            load,
            lambda: error(
                RuntimeError,
                f"plugin '{self.busy}' is being loaded in another thread and does not come to an end; "
                "what a plugin does while it is imported must not wait for other threads that use mxcore",
            ),
        )

    def distribution(self, owner: str) -> str:
        """The distribution that a plugin came from."""
        return self.origin.get(owner, (owner, ""))[0]


plugins = Plugins()


def why() -> str:
    """What may explain that something is missing, to end an error: plugins that failed or are left out."""
    bad = [f"plugin '{n}' failed to load: {in_a_line(e)}" for n, (_, e) in [*plugins.failed.items()]]
    bad += [f"{hook} of plugin '{n}' failed: {in_a_line(e)}" for n, (hook, e) in [*plugins.faulty.items()]]
    switches = [v for v in ("MXCORE_PLUGINS", "MXCORE_DISABLE_PLUGINS") if v in os.environ]
    if plugins.left_out:
        bad.append(f"installed but switched off by {' and '.join(switches)}: {', '.join(sorted(plugins.left_out))}")
    return "".join(f"; {b}" for b in bad)


def listed(variable: str) -> list[str]:
    """The names in a variable of the environment, separated by commas or blanks."""
    return os.environ.get(variable, "").replace(",", " ").split()


def place(owner: str, variable: str) -> int:
    """Where a variable lists a plugin, by its name or its distribution's; behind all others if it does not."""
    order = listed(variable)
    return min((order.index(n) for n in (owner, plugins.distribution(owner)) if n in order), default=len(order))
