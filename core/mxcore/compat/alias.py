"""``import mxnet`` answered by mxcore: a meta-path finder makes a module for each ``mxnet.…``, with MXNet's names."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from .._core.errors import error

# What code asks for that was written against MXNet 1.9.1 (GluonCV and GluonNLP compare it).
from ..libinfo import __version__ as VERSION
from . import names

#: What a module keeps once it was asked for; other values may change where they live. Modules first: a lazy one loads
#: when more is asked of it.
_KEPT = (ModuleType, type, FunctionType, BuiltinFunctionType)


def _own(module: ModuleType) -> dict[str, Any]:
    """What a module holds itself."""
    held: dict[str, Any] = vars(ModuleType)["__dict__"].__get__(module)
    return held


def _home(module: ModuleType, name: str | None = None) -> ModuleType:
    """The module of mxcore behind a module: the one that knows the name, else the first, else an empty one."""
    owners = names.homes(module.__name__)
    return next(
        (o for o in owners if name is not None and name in vars(o)),
        owners[0] if owners else ModuleType(module.__name__),
    )


class _MXNet(ModuleType):
    """A module ``mxnet.x.y``: its names are looked up when asked for, what is written to it reaches mxcore's module."""

    __getattribute__ = object.__getattribute__  # a module's own is four times slower in a class that has `__getattr__`

    def __getattr__(self, name: str) -> Any:
        own = self.__name__
        if name == "__all__":
            value: Any = names.listed(own)
        elif name.startswith("__") and name.endswith("__"):
            value = getattr(_home(self), name)
        else:
            value = names.find(own, name)
        if isinstance(value, _KEPT):
            ModuleType.__setattr__(self, name, value)
            if type(value) is FunctionType:
                _forget_later(self, name)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # A part of the package, which the import system hangs up here: not for mxcore's module.
        if type(value) is _MXNet:
            known = names.facts(self.__name__)
            if known and known.sources.get(name, ("", ""))[1]:
                return  # a function of that name hides it, as `vision.alexnet`
        elif not name.startswith("__"):
            setattr(_home(self, name), name, value)
        ModuleType.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if name in vars(owner := _home(self, name)):
            delattr(owner, name)
        if name in _own(self):
            ModuleType.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*_own(self), *dir(_home(self)), *names.listed(self.__name__)})

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """Everything by name, for programs that pick from ``vars(mx.optimizer)``."""
        return {**{n: getattr(self, n) for n in names.listed(self.__name__)}, **_own(self)}

    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, (self.__name__,)


_kept: list[tuple[ModuleType, str]] = []


def _forget_later(module: ModuleType, name: str) -> None:
    """Keep a function only until plugins come or go, which may put another operator in its place."""
    if not _kept:
        on_change = importlib.import_module("mxcore._core.tables").on_change
        if _forget not in on_change:
            on_change.append(_forget)
    _kept.append((module, name))


def _forget() -> None:
    for module, name in _kept:
        _own(module).pop(name, None)
    _kept.clear()


#: Packages of the standard library -> parts that MXNet imports, which programs find there and do not import themselves.
_PARTS = {
    "multiprocessing": ("connection", "pool", "queues", "resource_sharer", "util"),
    "urllib": ("error", "parse", "request", "response"),
}


def _show_parts(package: ModuleType, parts: tuple[str, ...]) -> None:
    """Let a package import parts of it when they are asked for as attributes."""

    def part(name: str) -> ModuleType:
        if name in parts:
            return importlib.import_module(f"{package.__name__}.{name}")
        raise AttributeError(f"module {package.__name__!r} has no attribute {name!r}")

    vars(package).setdefault("__getattr__", part)


def top() -> ModuleType:
    """Make the module ``mxnet``."""
    for package, parts in _PARTS.items():
        _show_parts(importlib.import_module(package), parts)
    module = _MXNet("mxnet", importlib.import_module("mxcore").__doc__)
    ModuleType.__setattr__(module, "__version__", VERSION)
    module.__path__ = []  # a package, whose parts only the finder below knows
    module.__spec__ = ModuleSpec("mxnet", _Loader(), is_package=True)  # type: ignore[arg-type]  # it does not derive from Loader
    return module


class _Loader:
    """Loader of the modules below ``mxnet``."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make the module, or say why mxcore has nothing for it."""
        if spec.name == "mxnet":
            return top()
        why = names.reason(spec.name)
        if why:
            raise ModuleNotFoundError(
                f"No module named {spec.name!r}: MXNet 1.9.1 has it, mxcore does not: {why}", name=spec.name
            )
        return _MXNet(spec.name, getattr(next(iter(names.homes(spec.name)), None), "__doc__", None))

    def exec_module(self, module: ModuleType) -> None:
        """Put another module in the place of this one where MXNet shows that under a short name, as ``mxnet.nd``."""
        parent, _, last = module.__name__.rpartition(".")
        known = names.facts(parent)
        if known and names.facts(module.__name__) is None and known.sources.get(last, ("", last))[1] == "":
            sys.modules[module.__name__] = importlib.import_module(known.sources[last][0])


class _Finder:
    """Meta-path finder for ``mxnet`` and everything below it."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of an alias, or None for other names and for what mxcore does not have."""
        if name == "mxnet":
            return ModuleSpec(name, _Loader(), is_package=True)  # type: ignore[arg-type]  # it does not derive from Loader
        if not name.startswith("mxnet."):
            return None
        owners = names.homes(name)
        if not owners and names.facts(name) is None:
            return None
        is_package = names.is_package(name) or any(hasattr(o, "__path__") for o in owners[:1])
        return ModuleSpec(name, _Loader(), is_package=is_package)  # type: ignore[arg-type]  # it does not derive from Loader


def install_as_mxnet() -> None:
    """Make ``import mxnet`` in this process give mxcore.

    ``import mxnet.x.y``, ``from mxnet.x import y`` and pickles that name ``mxnet.…`` classes resolve when
    they are met: each module shows what MXNet's module of that name shows, mxcore's own classes and functions
    (``mxnet.nd.NDArray is mxcore.nd.NDArray``), also names that it merely imports (``mxnet.test_utils.np``) and
    ``import *``. What a program writes to a module (``mx.nd.relu = mine``) reaches mxcore's. ``mxnet.__version__``
    is ``"1.9.1"``. An installed MXNet is passed over, not touched. A second call changes nothing.

    Raises
    ------
    MXNetError
        If another ``mxnet`` has been imported already.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1's module names.

    Examples
    --------
    >>> from mxcore.compat import install_as_mxnet
    >>> install_as_mxnet()
    >>> import mxnet
    >>> mxnet.__version__
    '1.9.1'
    """
    if any(isinstance(f, _Finder) for f in sys.meta_path):
        return
    loaded = sys.modules.get("mxnet")
    # A module without a version is the doorway in `path/`, importing itself at this moment.
    if loaded is not None and getattr(loaded, "__version__", None):
        where = getattr(loaded, "__file__", None) or "no file"
        raise error(
            RuntimeError,
            f"install_as_mxnet: another mxnet is already imported, from {where}; call install_as_mxnet() "
            "before the first `import mxnet`",
        )
    # In front: the path finders would otherwise load second copies of our files as mxnet.…
    sys.meta_path.insert(0, _Finder())
