"""The plugin manager: discovery with isolation, owners, rollback and switches.

Stock pluggy gives up discovery at the first plugin that fails to import, and knows nothing of what a plugin brought.
Here each plugin is loaded by itself; whatever it registered before failing is taken back; the reason is remembered,
warned about once and told to whoever misses something later.

Environment
-----------
MXCORE_PLUGINS
    Comma-separated allow-list of installed plugins; empty means none at all, not even the stock operators.
MXCORE_DISABLE_PLUGINS
    Comma-separated names to leave out.
MXCORE_STRICT_PLUGINS
    ``1``: a plugin that fails raises instead of warning.
"""
from __future__ import annotations

import atexit
import os
import threading
from importlib import import_module, metadata
from typing import Any

import pluggy

from . import hookspecs, registry
from .errors import MXNetError, caught, error, suggest, warn

__all__ = ["API_VERSION", "Manager", "manager", "DEFAULT_PLUGINS"]

#: The version of the contract between mxcore and its plugins.
API_VERSION = 1

#: Plugins inside the package, through the same hooks as everybody's: name -> module.
DEFAULT_PLUGINS = {"ops": "mxcore.ops", "stock": "mxcore._defaults"}


#: Hooks that return a list: what enters an item.
_ONE_BY_ONE: dict[str, Any] = {"mxcore_ops": registry.ops.add_op, "mxcore_devices": registry.devices.add_device,
                               "mxcore_graph_passes": lambda gp, owner: registry.tables["graph_pass"].add(gp.name, gp, owner)}


def _listed(variable: str) -> set[str] | None:
    text = os.environ.get(variable)
    return None if text is None else {n.strip() for n in text.split(",") if n.strip()}


class Manager:
    """Loads plugins and enters what they return in the registries."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loaded = False
        self._loading = False
        self.reset()

    def reset(self) -> None:
        self.pm = pluggy.PluginManager("mxcore")
        self.pm.add_hookspecs(hookspecs)
        #: name -> (distribution, version)
        self.origin: dict[str, tuple[str, str]] = {}
        #: name -> (distribution, error)
        self.failed: dict[str, tuple[str, BaseException]] = {}

    # -- discovery ---------------------------------------------------------------------------------------------
    def load(self) -> None:
        """Load the default and the installed plugins, once."""
        if self._loaded or (self._loading and self._lock._is_owned()):  # type: ignore[attr-defined]
            return
        with self._lock:
            if self._loaded or self._loading:
                return
            self._loading = True
            try:
                self._discover()
                self._loaded = True
            finally:
                self._loading = False
            self._event("mxcore_configure")
            atexit.register(self._event, "mxcore_unconfigure")
            # Only now: a warning may be an error, and the registries must be whole by then.
            for name, (dist, e) in self.failed.items():
                warn(f"plugin '{name}' of {dist} was not loaded: {type(e).__name__}: {e} "
                     "(`mxcore plugins` shows all; MXCORE_DISABLE_PLUGINS leaves it out)")

    def _discover(self) -> None:
        allowed, denied = _listed("MXCORE_PLUGINS"), _listed("MXCORE_DISABLE_PLUGINS") or set()
        if allowed is None or allowed:
            version = _version("mxcore")
            for name, module in DEFAULT_PLUGINS.items():
                if name not in denied:
                    self._attempt(name, lambda module=module: import_module(module), "mxcore", version)
        found = sorted(metadata.entry_points(group="mxcore"), key=lambda e: e.name)
        for name in (allowed or set()) - {*DEFAULT_PLUGINS, *(ep.name for ep in found)}:
            self.failed[name] = ("MXCORE_PLUGINS", error(KeyError, f"no plugin has this name{suggest(name, [ep.name for ep in found])}"))
        for ep in found:
            if ep.name in denied or (allowed is not None and ep.name not in allowed):
                continue
            dist = ep.dist
            self._attempt(ep.name, ep.load, dist.name if dist else ep.value, dist.version if dist else "?")

    def _attempt(self, name: str, load: Any, dist: str, version: str) -> None:
        if name in self.origin:
            return
        try:
            self.register(load(), name, dist, version)
        except BaseException as e:  # such as sys.exit() at import
            self.failed[name] = (f"{dist} {version}", caught(e))
            if os.environ.get("MXCORE_STRICT_PLUGINS") == "1":
                raise self.failed[name][1] from e.__cause__

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
                raise error(ValueError, f"a plugin named '{name}' is already registered by {self.origin[name][0]}")
            spoken = getattr(plugin, "API_VERSION", None)
            if spoken != API_VERSION:
                says = "states no API_VERSION" if spoken is None else f"speaks plugin API {spoken}"
                raise error(RuntimeError, f"plugin '{name}' {says}; this mxcore speaks {API_VERSION} "
                                          "(set API_VERSION in the plugin, or install a release that fits)")
            self.origin[name] = (dist or name, version)
            try:
                self.pm.register(plugin, name)
                self._collect(plugin, name)
            except BaseException:
                self._remove(plugin, name)
                raise
            self.failed.pop(name, None)
            registry.changed()
            if self._loaded:
                self._event("mxcore_configure", plugin)

    def _collect(self, plugin: Any, name: str) -> None:
        callers = self.pm.get_hookcallers(plugin) or []
        for caller in callers:
            if not caller.has_spec():
                near = suggest(caller.name, [n for n in vars(hookspecs) if n.startswith("mxcore_")])
                raise error(RuntimeError, f"plugin '{name}' implements unknown hook {caller.name}{near}")
        done: list[Any] = []
        for caller in callers:
            for impl in caller.get_hookimpls():
                if impl.plugin is plugin and caller.name not in ("mxcore_configure", "mxcore_unconfigure", "mxcore_report"):
                    done.append((caller.name, impl.function()))
        for hook, result in done:
            self._enter(hook, result, name)

    def _enter(self, hook: str, result: Any, owner: str) -> None:
        try:
            if hook in _ONE_BY_ONE:
                for item in result:
                    _ONE_BY_ONE[hook](item, owner)
            else:
                add = registry.kernels.add if hook == "mxcore_kernels" else registry.tables[hookspecs.NAMED_HOOKS[hook]].add
                for key, value in result.items():
                    add(key, value, owner)
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
            self._event("mxcore_unconfigure", plugin)
            self._remove(plugin, name)

    def _remove(self, plugin: Any, name: str) -> None:
        if self.pm.get_plugin(name) is not None:
            self.pm.unregister(name=name)
        self.origin.pop(name, None)
        registry.drop_owner(name)

    # -- events ------------------------------------------------------------------------------------------------
    def _event(self, hook: str, only: Any = None) -> None:
        for impl in getattr(self.pm.hook, hook).get_hookimpls():
            if only is None or impl.plugin is only:
                try:
                    impl.function()
                except BaseException as e:
                    warn(f"{hook} of plugin '{impl.plugin_name}' failed: {caught(e)}")

    # -- questions ---------------------------------------------------------------------------------------------
    def distribution(self, owner: str) -> str:
        """The distribution that a plugin came from."""
        return self.origin.get(owner, (owner, ""))[0]

    def report(self) -> list[str]:
        """The lines of all ``mxcore_report`` hooks."""
        self.load()
        return [line for lines in self.pm.hook.mxcore_report() for line in lines]


def _version(dist: str) -> str:
    try:
        return metadata.version(dist)
    except metadata.PackageNotFoundError:
        return "?"


manager = Manager()
