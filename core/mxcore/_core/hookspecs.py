"""The hooks of mxcore. Each docstring is the contract.

Registration hooks take no argument and return inert declarations; the manager enters them in the registries under the
plugin's name and takes them out again when the plugin goes or fails. Plugins are modules (or objects) with functions
decorated by ``mxcore.plugin.hookimpl`` and an attribute ``API_VERSION``.
"""

# A specification is its docstring: no body returns anything.
# mypy: disable-error-code="empty-body"
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from .device import Device
    from .kernels import KernelSet
    from .op import Op

hookspec = pluggy.HookspecMarker("mxcore")
hookimpl = pluggy.HookimplMarker("mxcore")

#: hook -> kind of table, for hooks that return name -> class or ``"module:attr"``.
NAMED_HOOKS = {
    "mxcore_iterators": "iterator",
    "mxcore_optimizers": "optimizer",
    "mxcore_metrics": "metric",
    "mxcore_cli": "cli",
    "mxcore_initializers": "initializer",
    "mxcore_lr_schedulers": "lr_scheduler",
    "mxcore_kvstores": "kvstore",
}


@hookspec
def mxcore_devices() -> Iterable[Device]:
    """Return device objects (:class:`mxcore.plugin.Device`). It must not touch a driver: `count()` may.

    Two devices with one name, or with one `type_id`, are an error that names both plugins.
    """


@hookspec
def mxcore_ops() -> Iterable[Op]:
    """Return operator declarations, e.g. ``declarations(my_module)``."""


@hookspec
def mxcore_kernels() -> Mapping[str, KernelSet | str]:
    """Return device type -> :class:`mxcore.plugin.KernelSet`, or ``"module:attr"`` of one.

    A string is imported when that device first runs an operator, so that heavy compilers stay out of the import. A set
    may serve several devices. Kernels for operators that do not exist are told of with a warning then.
    """


@hookspec
def mxcore_iterators() -> Mapping[str, Any]:
    """Return data iterators: name in ``mx.io``, as it is written -> class or ``"module:attr"``."""


@hookspec
def mxcore_optimizers() -> Mapping[str, Any]:
    """Return optimizers: name for ``mx.optimizer.create`` (lower case) -> class or ``"module:attr"``."""


@hookspec
def mxcore_metrics() -> Mapping[str, Any]:
    """Return metrics: name for ``mx.metric.create`` (lower case) -> class or ``"module:attr"``."""


@hookspec
def mxcore_initializers() -> Mapping[str, Any]:
    """Return initializers: name for ``mx.init.create`` (lower case) -> class or ``"module:attr"``."""


@hookspec
def mxcore_lr_schedulers() -> Mapping[str, Any]:
    """Return learning-rate schedulers: name -> class or ``"module:attr"``."""


@hookspec
def mxcore_kvstores() -> Mapping[str, Any]:
    """Return KVStores: type name for ``mx.kv.create`` (``'local'``) -> class or ``"module:attr"``."""


@hookspec
def mxcore_graph_passes() -> Iterable[Any]:
    """Return graph passes (:class:`mxcore.plugin.GraphPass`): a name, an order and a function Graph -> Graph.

    A pass without order (None) is run by name only.
    """


@hookspec
def mxcore_cli() -> Mapping[str, Any]:
    """Return sub-commands of ``mxcore``: name -> object or ``"module:attr"``.

    The object has ``help`` (one line), ``add_arguments(parser)`` and ``main(args) -> int``.
    """


@hookspec
def mxcore_configure() -> None:
    """Called once after all plugins are loaded (for a plugin that comes later: after it was).

    If it fails, what the plugin brings remains, and the reason is told as that of a plugin that does not load.
    """


@hookspec
def mxcore_unconfigure() -> None:
    """Called when the process ends, or when the plugin is unregistered."""


@hookspec
def mxcore_report() -> list[str]:
    """Return lines for ``mxcore info``."""
