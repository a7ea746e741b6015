"""``import mxnet`` answered by mxcore: a meta-path finder maps each ``mxnet.…`` to a module of mxcore."""
from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

from ..base import error
from ..libinfo import __version__ as VERSION  # what code asks for that was written against MXNet 1.9.1 (GluonCV and GluonNLP compare it)

# Modules in which MXNet keeps what the package around them shows. Pickles and a few scripts name them; where
# mxcore has no module of that name, the package itself answers.
_INNER = {
    "contrib": "ndarray symbol",
    "contrib.amp": "amp lists loss_scaler",
    "gluon": "block parameter trainer utils",
    "gluon.contrib.cnn": "conv_layers",
    "gluon.contrib.data": "sampler text",
    "gluon.contrib.estimator": "batch_processor estimator event_handler utils",
    "gluon.contrib.nn": "basic_layers",
    "gluon.contrib.rnn": "conv_rnn_cell rnn_cell",
    "gluon.data": "dataloader dataset sampler",
    "gluon.data.vision": "datasets",
    "gluon.model_zoo.vision": "alexnet densenet inception mobilenet resnet squeezenet vgg",
    "gluon.nn": "activations basic_layers conv_layers",
    "gluon.rnn": "rnn_cell rnn_layer",
    "image": "detection image",
    "io": "io utils",
    "kvstore": "base kvstore",
    "module": "base_module bucketing_module executor_group module python_module sequential_module",
    "ndarray": "_internal ndarray op register utils",
    "ndarray.numpy": "_op",
    "ndarray.numpy_extension": "_op",
    "numpy": "multiarray utils",
    "optimizer": "contrib optimizer",
    "rnn": "io rnn rnn_cell",
    "symbol": "_internal op register symbol",
    "symbol.numpy": "_symbol",
}


class _MXNet(ModuleType):
    """The module ``mxnet``: its own version, and everything else from mxcore."""

    def __getattr__(self, name: str) -> object:
        try:
            return getattr(importlib.import_module("mxcore"), name)
        except AttributeError as e:
            raise AttributeError(f"module 'mxnet' (answered by mxcore) has no attribute {name!r}") from e

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(importlib.import_module("mxcore"))})


def top() -> ModuleType:
    """Make the module ``mxnet``."""
    module = _MXNet("mxnet", importlib.import_module("mxcore").__doc__)
    module.__version__ = VERSION  # type: ignore[attr-defined]
    module.__path__ = []  # a package, whose parts only the finder below knows
    module.__spec__ = ModuleSpec("mxnet", None, is_package=True)
    return module


def _resolve(path: str) -> ModuleType | None:
    """Find mxcore's module for ``gluon.nn``: a real one, an attribute (``nd``), or the package around it."""
    try:
        return importlib.import_module(f"mxcore.{path}")
    except ModuleNotFoundError as e:
        if not f"mxcore.{path}.".startswith(f"{e.name}."):
            raise  # the module is there and lacks something else
    parent, _, last = path.rpartition(".")
    package = _resolve(parent) if parent else importlib.import_module("mxcore")
    found = getattr(package, last, None)
    if isinstance(found, ModuleType) and found.__name__.startswith("mxcore"):
        return found
    return package if last in _INNER.get(parent, "").split() else None


class _Alias:
    """Loader that puts a ready module under a second name and leaves the module itself as it is."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import system make its empty module, which `exec_module` then replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Replace the fresh module; the import system looks into `sys.modules` again after this call."""
        sys.modules[module.__name__] = self.module


class _Finder:
    """Meta-path finder for ``mxnet`` and everything below it."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of an alias, or None for other names and for what mxcore does not have."""
        if name == "mxnet":
            return ModuleSpec(name, _Alias(top()), is_package=True)
        if not name.startswith("mxnet."):
            return None
        module = _resolve(name.removeprefix("mxnet."))
        return module and ModuleSpec(name, _Alias(module), is_package=hasattr(module, "__path__"))


def install_as_mxnet() -> None:
    """Make ``import mxnet`` in this process give mxcore.

    ``import mxnet.x.y``, ``from mxnet.x import y`` and pickles that name ``mxnet.…`` classes resolve when
    they are met, to mxcore's own modules and classes: ``mxnet.gluon is mxcore.gluon``. Only ``mxnet`` itself
    is a thin module of its own, with ``__version__ == "1.9.1"``. An installed MXNet is passed over, not
    touched. A second call changes nothing.

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
    sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]
