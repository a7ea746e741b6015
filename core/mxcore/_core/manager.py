"""The plugin manager: discovery with isolation, owners, rollback and switches.

Stock pluggy gives up discovery at the first plugin that fails to import, and knows nothing of what a plugin brought.
Here each plugin is loaded by itself; whatever it registered before failing is taken back; the reason is remembered,
warned about once and told to whoever misses something later.

Environment
-----------
MXCORE_PLUGINS
    Allow-list of installed plugins (or distributions), separated by commas or blanks. Those that come with mxcore
    itself load in any case, unless it is empty: that means none at all, not even the stock operators.
MXCORE_DISABLE_PLUGINS
    Plugins (or distributions) to leave out, separated likewise.
MXCORE_STRICT_PLUGINS
    ``1``: a plugin that fails, or whose ``mxcore_configure`` does, raises instead of warning.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import pluggy

from .._forks import hold_at_fork
from .._importing import Unfinished, whole
from .._installed import installed
from . import hookspecs, tables
from .checks import checked
from .device import Device
from .errors import MXNetError, caught, error, in_a_line, suggest, warn
from .graph import GraphPass
from .op import Op
from .plugins import listed, plugins

__all__ = ["API_VERSION", "Manager", "manager", "DEFAULT_PLUGINS"]

#: The version of the contract between mxcore and its plugins.
API_VERSION = 1

#: Plugins inside the package, through the same hooks as everybody's: name -> module.
DEFAULT_PLUGINS = {"ops": "mxcore.ops", "stock": "mxcore._defaults"}


#: Hooks that return a list: of what, and what enters an item.
_ONE_BY_ONE: dict[str, tuple[type, Any]] = {
    "mxcore_ops": (Op, tables.ops.add_op),
    "mxcore_devices": (Device, tables.devices.add_device),
    "mxcore_graph_passes": (GraphPass, lambda gp, owner: tables.by_kind["graph_pass"].add(gp.name, gp, owner)),
}


class Manager:
    """Loads plugins and enters what they return in the registries."""

    def __init__(self) -> None:
        self.pm = pluggy.PluginManager("mxcore")
        self.pm.add_hookspecs(hookspecs)
        self.origin, self.left_out = plugins.origin, plugins.left_out
        self.failed, self.faulty = plugins.failed, plugins.faulty
        #: What is installed, once it has been looked for, and (name, distribution) of what has been tried of it.
        self._found: list[tuple[metadata.EntryPoint, str, str]] = []
        self._tried: set[tuple[str, str]] = set()

    # -- discovery ---------------------------------------------------------------------------------------------
    def load(self) -> None:
        """Load the default and the installed plugins, once."""
        plugins.in_turn("plugins", self._load)

    def _load(self) -> None:
        known = None if plugins.loaded else self._discover()
        with tables.lock:
            if known is None or plugins.loaded:
                return
            plugins.loaded = True
        atexit.register(self._event, "mxcore_unconfigure")
        self._event("mxcore_configure")
        # Only now: a warning may be an error, and the registries must be whole by then.
        for name, (dist, e) in [*self.failed.items()]:
            warn(
                f"plugin '{name}' of {dist} was not loaded: {in_a_line(e)} "
                "(`mxcore plugins` shows all; MXCORE_DISABLE_PLUGINS leaves it out)"
            )
        for name in sorted({*listed("MXCORE_DISABLE_PLUGINS")} - known):
            warn(
                f"MXCORE_DISABLE_PLUGINS leaves nothing out by '{name}': no plugin has this name"
                f"{suggest(name, known)} (`mxcore plugins` shows all)"
            )

    def _discover(self) -> set[str] | None:
        """Load what is installed and wanted; gives the names of all plugins and distributions, loaded or not.

        None where it did not come to the end: this thread, or one that waits for it, is importing one of them. That and
        those behind it are left for whoever comes later, as what a plugin gets must not depend on who was faster.
        """
        allowed, denied = listed("MXCORE_PLUGINS"), listed("MXCORE_DISABLE_PLUGINS")
        all_of, none_at_all = "MXCORE_PLUGINS" not in os.environ, "MXCORE_PLUGINS" in os.environ and not allowed
        if not self._found:
            entries = sorted(installed(self.failed), key=lambda f: (f[1] != "mxcore", f[0].name, f[1]))
            version = next((v for _, dist, v in entries if dist == "mxcore"), "?")
            self._found = [
                *((metadata.EntryPoint(n, m, "mxcore"), "mxcore", version) for n, m in DEFAULT_PLUGINS.items()),
                *entries,
            ]
        for point, dist, version in self._found:
            name = point.name
            if (
                none_at_all
                or name in denied
                or dist in denied
                or not (all_of or dist == "mxcore" or name in allowed or dist in allowed)
            ):
                self.left_out.add(name)
            elif (name, dist) not in self._tried and not self._attempt(point, dist, version):
                return None
        known = {w for point, dist, _ in self._found for w in (point.name, dist)}.union(self.failed)
        self.failed.update(
            (name, ("MXCORE_PLUGINS", error(KeyError, f"no plugin has this name{suggest(name, known)}")))
            for name in sorted({*allowed} - known)
        )
        return known

    def _attempt(self, point: metadata.EntryPoint, dist: str, version: str) -> bool:
        """Load one plugin; False where its module is being imported, see :func:`whole`."""
        name = plugins.busy = point.name
        # The plugin of another distribution that has failed under this name is still to be told of.
        failed = self.failed.get(name, (f"{dist} ",))[0]
        key = f"{name} ({dist})" if name in self.origin or failed.rpartition(" ")[0] != dist else name
        try:
            if not point.pattern.match(point.value):
                raise error(ValueError, f"its entry point is {point.value!r}, where the name of a module is needed")
            whole(point.module, lambda: self.register(whole(point.module, point.load), name, dist, version))
            self.failed.pop(key, None)
        except Unfinished:
            return False
        except BaseException as e:  # such as sys.exit() at import
            if getattr(e, "again", False):  # something was short now, see `short`: the next use tries it again
                raise
            if self.origin.get(name) != (dist, version):  # else another thread was faster
                self.failed[key] = (f"{dist} {version}", caught(e))
                if os.environ.get("MXCORE_STRICT_PLUGINS") == "1":
                    raise caught(e) from e.__cause__
        self._tried.add((name, dist))
        return True

    # -- one plugin --------------------------------------------------------------------------------------------
    def register(self, plugin: Any, name: str | None = None, dist: str = "", version: str = "") -> None:
        """Register a plugin (a module or object) under a name; what it brings appears at once.

        Raises
        ------
        MXNetError
            If it speaks another API version, misspells a hook, or brings a name that another plugin owns. Nothing of
            it remains registered then.
        """
        name = name or str(getattr(plugin, "__name__", type(plugin).__name__))
        checked("plugin", API_VERSION, [n for n in vars(hookspecs) if n.startswith("mxcore_")], name, plugin)
        marked = [(n, self.pm.parse_hookimpl_opts(plugin, n)) for n in dir(plugin)]
        fns = {o.get("specname") or n: getattr(plugin, n) for n, o in marked if o is not None}
        # Before anything is locked or entered: hooks may import and compute.
        answers = {
            h: [*found] if isinstance(found := f(), Iterator) else found
            for h, f in fns.items()
            if h in (*_ONE_BY_ONE, "mxcore_kernels", *hookspecs.NAMED_HOOKS)
        }
        checked("answers", dist or name, name, answers)
        with tables.lock:
            if name in self.origin:
                raise error(
                    ValueError,
                    f"a plugin named '{name}' is already registered by {self.origin[name][0]}; "
                    "another name is needed, or MXCORE_DISABLE_PLUGINS with the distribution that is to be left out",
                )
            self.origin[name] = (dist or name, version)
            try:
                self.pm.register(plugin, name)
                for hook, result in answers.items():
                    self._enter(hook, result, name)
            except BaseException:
                self._remove(name)
                raise
            if not dist:  # by hand, in the place of what failed
                self.failed.pop(name, None)
            tables.changed()
        if plugins.loaded:
            self._event("mxcore_configure", plugin)

    def _enter(self, hook: str, result: Any, owner: str) -> None:
        try:
            if hook in _ONE_BY_ONE:
                kind_of, add = _ONE_BY_ONE[hook]
                for item in checked("list of a hook", kind_of, result):
                    add(item, owner)
            elif hook == "mxcore_kernels":
                for device, kernels in checked("kernels", owner, result).items():
                    tables.kernels.add(device, kernels, owner)
            else:
                kind = hookspecs.NAMED_HOOKS[hook]
                for key, value in checked("names of a hook", kind, result).items():
                    # Only these two are looked up as they are written; see `mx.registry`.
                    tables.by_kind[kind].add(key if kind in ("iterator", "cli") else str.lower(key), value, owner)
        except (AttributeError, TypeError) as e:
            if isinstance(e, MXNetError):
                raise
            raise error(TypeError, f"hook {hook} of plugin '{owner}' returned {result!r}: {e}") from e

    def unregister(self, name: str) -> None:
        """Take a plugin out, with everything that it brought."""
        plugin = self.pm.get_plugin(name)
        if plugin is None:
            raise error(KeyError, f"no plugin is named {name!r}{suggest(name, self.origin)}")
        try:
            self._event("mxcore_unconfigure", plugin)
        finally:  # a warning may be an error
            with tables.lock:
                if self.pm.get_plugin(name) is plugin:
                    self._remove(name)

    def _remove(self, name: str) -> None:
        if self.pm.get_plugin(name) is not None:
            self.pm.unregister(name=name)
        tables.drop_owner(name)  # first: Ctrl-C may come, and who has a name can be taken out again
        self.origin.pop(name, None)
        self.faulty.pop(name, None)

    # -- events ------------------------------------------------------------------------------------------------
    def _event(self, hook: str, only: Any = None) -> None:
        """Call a hook of all plugins, or of one; of those that fail it is remembered, and told when all were called."""
        failed: dict[str, Exception] = {}
        for impl in getattr(self.pm.hook, hook).get_hookimpls():
            if only is None or impl.plugin is only:
                try:
                    impl.function()
                except BaseException as e:
                    failed[impl.plugin_name] = caught(e)
        self.faulty.update((name, (hook, reason)) for name, reason in failed.items())
        for name, reason in failed.items():
            if os.environ.get("MXCORE_STRICT_PLUGINS") == "1":
                raise reason
            warn(f"{hook} of plugin '{name}' failed: {in_a_line(reason)} (`mxcore plugins` shows all)")


manager = Manager()

# A child has no thread that would end what another one had begun to load: let it end first.
hold_at_fork(tables.lock)
hold_at_fork(plugins.turns.lock)  # first: whose turn it is enters something
