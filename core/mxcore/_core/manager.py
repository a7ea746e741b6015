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
from functools import partial
from importlib import import_module, metadata
from typing import Any

import pluggy

from .._forks import hold_at_fork
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


#: How many seconds a thread waits for another that loads the plugins.
PATIENCE = 300.0


#: Hooks that return a list: of what, and what enters an item.
_ONE_BY_ONE: dict[str, tuple[type, Any]] = {
    "mxcore_ops": (Op, lambda op, owner: tables.ops.add_op(checked("brought operator", owner, op), owner)),
    "mxcore_devices": (Device, tables.devices.add_device),
    "mxcore_graph_passes": (GraphPass, lambda gp, owner: tables.by_kind["graph_pass"].add(gp.name, gp, owner)),
}


class Manager:
    """Loads plugins and enters what they return in the registries."""

    def __init__(self) -> None:
        self._lock, self._loading = tables.lock, ""  # what is being loaded
        self.pm = pluggy.PluginManager("mxcore")
        self.pm.add_hookspecs(hookspecs)
        self.origin, self.left_out = plugins.origin, plugins.left_out
        self.failed, self.faulty = plugins.failed, plugins.faulty

    # -- discovery ---------------------------------------------------------------------------------------------
    def load(self) -> None:
        """Load the default and the installed plugins, once."""
        if plugins.loaded or (self._loading and self._lock._is_owned()):  # type: ignore[attr-defined]
            return
        if not self._lock.acquire(timeout=PATIENCE):
            raise error(
                RuntimeError,
                f"plugin '{self._loading}' is being loaded in another thread and does not come to an end; "
                "what a plugin does while it is imported must not wait for other threads that use mxcore",
            )
        try:
            if not plugins.loaded:
                known = self._discover()
                plugins.loaded = True
                atexit.register(self._event, "mxcore_unconfigure")
                self._event("mxcore_configure")
                # Only now: a warning may be an error, and the registries must be whole by then.
                for name, (dist, e) in self.failed.items():
                    warn(
                        f"plugin '{name}' of {dist} was not loaded: {in_a_line(e)} "
                        "(`mxcore plugins` shows all; MXCORE_DISABLE_PLUGINS leaves it out)"
                    )
                for name in sorted({*listed("MXCORE_DISABLE_PLUGINS")} - known):
                    warn(
                        f"MXCORE_DISABLE_PLUGINS leaves nothing out by '{name}': no plugin has this name"
                        f"{suggest(name, known)} (`mxcore plugins` shows all)"
                    )
        finally:
            self._loading = ""
            self._lock.release()

    def _discover(self) -> set[str]:
        """Load what is installed and wanted; gives the names of all plugins and distributions, loaded or not."""
        allowed, denied = listed("MXCORE_PLUGINS"), listed("MXCORE_DISABLE_PLUGINS")
        all_of, none_at_all = "MXCORE_PLUGINS" not in os.environ, "MXCORE_PLUGINS" in os.environ and not allowed
        installed = sorted(self._installed(), key=lambda f: (f[2] != "mxcore", f[0], f[2]))
        version = next((v for _, _, dist, v in installed if dist == "mxcore"), "?")
        found = [
            *((n, lambda m=m: import_module(m), "mxcore", version) for n, m in DEFAULT_PLUGINS.items()),
            *installed,
        ]
        for name, load, dist, version in found:
            if (
                none_at_all
                or name in denied
                or dist in denied
                or not (all_of or dist == "mxcore" or name in allowed or dist in allowed)
            ):
                self.left_out.add(name)
            else:
                self._attempt(name, load, dist, version)
        known = {w for name, _, dist, _ in found for w in (name, dist)}.union(self.failed)
        for name in sorted({*allowed} - known):
            self.failed[name] = ("MXCORE_PLUGINS", error(KeyError, f"no plugin has this name{suggest(name, known)}"))
        return known

    def _installed(self) -> list[tuple[str, Any, str, str]]:
        """(name, function that loads it, distribution, version) of every entry point of the group ``mxcore``."""

        def told(e: metadata.EntryPoint) -> tuple[str, Any, str, str]:
            return e.name, partial(_entry, e), e.dist and e.dist.name or e.value, e.dist.version if e.dist else "?"

        try:
            return [told(e) for e in metadata.entry_points(group="mxcore")]
        except Exception:  # the files of one distribution, of whatever kind, are damaged; the others are not
            found: dict[str, list[tuple[str, Any, str, str]]] = {}
            for d in metadata.distributions():
                name = str(getattr(d, "_path", d))
                try:
                    name = d.metadata["Name"] or name
                    # The first of a name is the one that Python imports.
                    found[name] = found.get(name) or [told(e) for e in d.entry_points.select(group="mxcore")]
                except Exception as e:
                    self.failed[name] = ("damaged metadata", e)
            return [entry for entries in found.values() for entry in entries]

    def _attempt(self, name: str, load: Any, dist: str, version: str) -> None:
        if self.origin.get(name) == (dist, version):
            return
        self._loading = name
        # The plugin of another distribution that has failed under this name is still to be told of.
        failed = self.failed.get(name, (f"{dist} ",))[0]
        key = f"{name} ({dist})" if name in self.origin or failed.rpartition(" ")[0] != dist else name
        self.failed.pop(key, None)
        try:
            self.register(load(), name, dist, version)
        except BaseException as e:  # such as sys.exit() at import
            self.failed[key] = (f"{dist} {version}", caught(e))
            if os.environ.get("MXCORE_STRICT_PLUGINS") == "1":
                raise caught(e) from e.__cause__

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
        with self._lock:
            if name in self.origin:
                raise error(
                    ValueError,
                    f"a plugin named '{name}' is already registered by {self.origin[name][0]}; "
                    "another name is needed, or MXCORE_DISABLE_PLUGINS with the distribution that is to be left out",
                )
            if getattr(plugin, "__file__", plugin) is None:
                raise error(
                    ImportError,
                    f"plugin '{name}' has no code: the folder {plugin.__path__[0]!r} without an __init__.py hides the "
                    "installed module; start in another folder",
                )
            spoken = getattr(plugin, "API_VERSION", None)
            if type(spoken) is not int or spoken != API_VERSION:  # "1", 1.0 and True are no versions
                says = (
                    f"speaks plugin API {spoken}"
                    if type(spoken) is int
                    else f"states API_VERSION = {spoken!r}, where an int is needed"
                    if hasattr(plugin, "API_VERSION")
                    else "states no API_VERSION"
                )
                raise error(
                    RuntimeError,
                    f"plugin '{name}' {says}; this mxcore speaks {API_VERSION} "
                    f"(set API_VERSION = {API_VERSION} in the plugin, or install a release that fits)",
                )
            self.origin[name] = (dist or name, version)
            try:
                checked("plugin", name, plugin)
                self.pm.register(plugin, name)
                self._collect(plugin, name)
            except BaseException:
                self._remove(plugin, name)
                raise
            if not dist:  # by hand, in the place of what failed
                self.failed.pop(name, None)
            tables.changed()
            if plugins.loaded:
                self._event("mxcore_configure", plugin)

    def _collect(self, plugin: Any, name: str) -> None:
        callers, hooks = self.pm.get_hookcallers(plugin) or [], [n for n in vars(hookspecs) if n.startswith("mxcore_")]
        for caller in callers:
            if not caller.has_spec():
                raise error(
                    RuntimeError, f"plugin '{name}' implements unknown hook {caller.name}{suggest(caller.name, hooks)}"
                )
        for hook in hooks:
            if hasattr(plugin, hook) and not hasattr(getattr(plugin, hook), "mxcore_impl"):
                raise error(TypeError, f"{hook} of plugin '{name}' is not marked as a hook: @hookimpl is missing")
        done = [
            (caller.name, impl.function())
            for caller in callers
            if caller.name not in ("mxcore_configure", "mxcore_unconfigure", "mxcore_report")
            for impl in caller.get_hookimpls()
            if impl.plugin is plugin
        ]
        for hook, result in done:  # once all have answered
            self._enter(hook, result, name)

    def _enter(self, hook: str, result: Any, owner: str) -> None:
        try:
            if hook in _ONE_BY_ONE:
                kind_of, add = _ONE_BY_ONE[hook]
                for item in checked("list of a hook", result):
                    if not isinstance(item, kind_of):
                        raise TypeError(f"{item!r} is no {kind_of.__name__} object")
                    add(item, owner)
            elif hook == "mxcore_kernels":
                for device, kernels in checked("kernels", owner, result).items():
                    tables.kernels.add(device, kernels, owner)
            else:
                kind = hookspecs.NAMED_HOOKS[hook]
                for key, value in checked("names of a hook", kind, result).items():
                    if not (
                        key and isinstance(key, str) and (isinstance(value, str) or callable(value) or kind == "cli")
                    ):
                        raise TypeError(f"{key!r}: {value!r} is not a name with a class or 'module:attr'")
                    # Only these two are looked up as they are written; see `mx.registry`.
                    tables.by_kind[kind].add(key if kind in ("iterator", "cli") else str.lower(key), value, owner)
        except (AttributeError, TypeError) as e:
            if isinstance(e, MXNetError):
                raise
            raise error(TypeError, f"hook {hook} of plugin '{owner}' returned {result!r}: {e}") from e

    def unregister(self, name: str) -> None:
        """Take a plugin out, with everything that it brought."""
        with self._lock:
            plugin = self.pm.get_plugin(name)
            if plugin is None:
                raise error(KeyError, f"no plugin is named {name!r}{suggest(name, self.origin)}")
            try:
                self._event("mxcore_unconfigure", plugin)
            finally:  # a warning may be an error
                self._remove(plugin, name)

    def _remove(self, plugin: Any, name: str) -> None:
        if self.pm.get_plugin(name) is not None:
            self.pm.unregister(name=name)
        self.origin.pop(name, None)
        self.faulty.pop(name, None)
        tables.drop_owner(name)

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


def _entry(point: metadata.EntryPoint) -> Any:
    if not point.pattern.match(point.value):
        raise error(ValueError, f"its entry point is {point.value!r}, where the name of a module is needed")
    return point.load()


manager = Manager()

# A child has no thread that would end what another one had begun to load: let it end first.
hold_at_fork(tables.lock)
