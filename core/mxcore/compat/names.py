"""The names that MXNet's modules show: facts about MXNet 1.9.1 (`namespace.json`), and where mxcore has the same.

An entry of the file says what a module defines (``here``), what it takes from others (``from``: module -> names,
``shown=defined`` where they differ), which modules it shows, and its ``__all__``.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import os
import sys
import threading
from types import ModuleType
from typing import Any, NamedTuple

__all__ = ["Facts", "facts", "find", "homes", "is_package", "reexports", "listed", "reason"]

#: What mxcore keeps elsewhere or under another name: MXNet's module -> {mxcore's module: names, ``shown=defined`` where
#: they differ}.
ELSEWHERE: dict[str, dict[str, str]] = {
    "_ctypes.ndarray": {"executor": "CachedOp", "ndarray": "NDArrayBase=NDArray"},
    "_ctypes.symbol": {"symbol": "SymbolBase=Symbol"},
    "autograd": {"autograd": "_RecordingStateScope=RecordingScope _parse_head=_heads"},
    "base": {
        "compat.c_helpers": "MXCallbackList c_array c_array_buf c_handle_array c_str c_str_array check_call "
        "ctypes2buffer ctypes2numpy_shared mx_float_p py_str",
        "compat.helpers": "NotSupportedForSparseNDArray _Null add_fileline_to_docstring build_param_doc c2pyerror "
        "data_dir data_dir_default error_types get_last_ffi_error register_error",
    },
    "contrib.text._constants": {"compat.helpers": "APACHE_REPO_URL=apache_repo_url UNKNOWN_IDX"},
    "engine": {"engine": "_BulkScope=bulk"},
    "error": {"compat.helpers": "InternalError"},
    "executor_manager": {"compat.helpers": "_load_data _load_general _load_label"},
    "gluon.block": {"compat.helpers": "_flatten _regroup"},
    "gluon.contrib.rnn.rnn_cell": {"compat.helpers": "tensor_types"},
    "gluon.data.dataloader": {
        "gluon.data.dataloader": "DataLoaderV1=DataLoader",
        "compat.helpers": "Queue SimpleQueue _MultiWorkerIter _as_in_context _thread_worker_fn "
        "_thread_worker_initializer _worker_fn _worker_initializer",
    },
    "gluon.data.dataset": {
        "gluon.data.dataset": "_FilteredDataset=_SampledDataset "
        "_LazyTransformDataset=_TransformedDataset "
        "_TransformFirstClosure=_First",
        "gluon.data.vision.downloaded": "_DownloadedDataset",
    },
    "gluon.loss": {"compat.helpers": "_apply_weighting _reshape_like"},
    "gluon.model_zoo.model_store": {
        "compat.helpers": "_url_format apache_repo_url",
        "gluon.model_zoo.model_store": "_model_sha1=_SHA1",
    },
    "gluon.model_zoo.vision.densenet": {
        "gluon.model_zoo.vision.densenet": "_make_dense_block=_dense_block _make_dense_layer=_dense_layer "
        "_make_transition=_transition densenet_spec=_SPEC"
    },
    "gluon.model_zoo.vision.resnet": {
        "gluon.model_zoo.vision.resnet": "resnet_block_versions=_BLOCKS resnet_net_versions=_NETWORKS resnet_spec=_SPEC"
    },
    "gluon.model_zoo.vision.vgg": {"gluon.model_zoo.vision.vgg": "vgg_spec=_SPEC"},
    "gluon.nn.basic_layers": {"gluon.nn.normalization": "_BatchNorm=BatchNorm"},
    "gluon.nn.conv_layers": {
        "gluon.nn.convolution": "_Conv",
        "gluon.nn.pooling": "_Pooling",
        "compat.helpers": "_infer_weight_shape",
    },
    "gluon.rnn.rnn_cell": {
        "gluon.rnn.containers": "_cells_begin_state _cells_state_info",
        "gluon.rnn.recurrent_cell": "_get_begin_state=states_for",
        "gluon.rnn.sequences": "_format_sequence=formatted _mask_sequence_variable_length=masked _reverse_sequences",
        "compat.helpers": "tensor_types",
    },
    "gluon.rnn.rnn_layer": {"gluon.rnn.layers": "_RNNLayer", "compat.helpers": "tensor_types"},
    "gluon.utils": {
        "gluon._repository": "_get_repo_url=repo_url",
        "compat.helpers": "_brief_print_list _get_repo_file_url _indent",
    },
    "image.image": {"image.functions": "_get_interp_method=interpolation"},
    "io.utils": {"compat.helpers": "_getdata_by_idx _has_instance _init_data _slice_along_batch_axis"},
    "misc": {"lr_scheduler": "FactorScheduler LearningRateScheduler=LRScheduler"},
    "metric": {"metric": "_create=_create_by_name"},
    "model": {
        "module.updates": "_create_kvstore=create_kvstore _initialize_kvstore=initialize_kvstore "
        "_update_params=update_params "
        "_update_params_on_kvstore=update_params_on_kvstore",
        "compat.helpers": "_create_sparse_kvstore _multiple_callbacks",
    },
    "module.executor_group": {
        "compat.helpers": "_load_data _load_general _load_label",
        "module.slicing": "_merge_multi_context=merge",
    },
    "ndarray.ndarray": {
        "ndarray.keys": "get_indexing_dispatch_code get_oshape_of_gather_nd_op indexing_key_expand_implicit_axes",
        "compat.helpers": "_GRAD_REQ_MAP _STORAGE_TYPE_CSR _STORAGE_TYPE_DEFAULT "
        "_STORAGE_TYPE_ID_TO_STR _STORAGE_TYPE_ROW_SPARSE "
        "_STORAGE_TYPE_STR_TO_ID _STORAGE_TYPE_UNDEFINED _get_broadcast_shape "
        "check_boolean_array_dimension",
    },
    "ndarray.sparse": {
        "compat.helpers": "_STORAGE_TYPE_CSR _STORAGE_TYPE_DEFAULT _STORAGE_TYPE_ROW_SPARSE _STORAGE_TYPE_STR_TO_ID "
        "_STORAGE_TYPE_UNDEFINED"
    },
    "numpy_dispatch_protocol": {
        "compat.helpers": "with_array_function_protocol=unchanged with_array_ufunc_protocol=unchanged"
    },
    "numpy_op_fallback": {"operator": "register"},
    "operator": {
        "compat.helpers": "_STORAGE_TYPE_CSR _STORAGE_TYPE_DEFAULT _STORAGE_TYPE_ID_TO_STR "
        "_STORAGE_TYPE_ROW_SPARSE "
        "_STORAGE_TYPE_STR_TO_ID _STORAGE_TYPE_UNDEFINED c_int_p"
    },
    "recordio": {"compat.helpers": "_IR_FORMAT _IR_SIZE"},
    "symbol.symbol": {"compat.helpers": "_GRAD_REQ_MAP _STORAGE_TYPE_STR_TO_ID"},
    "visualization": {"compat.helpers": "_str2tuple"},
}
#: Modules of MXNet that answer under a name that says nothing of their place.
HOMES = {
    f"{kind}.gen_{part}": f"{kind}.{part.replace('__', '_')}"
    for kind in ("ndarray", "symbol")
    for part in ("_internal", "contrib", "image", "linalg", "op", "random", "sparse")
}
for _part in (
    "_op",
    "multiarray",
    "fallback",
    "fallback_linalg",
    "function_base",
    "io",
    "stride_tricks",
    "utils",
    "arrayprint",
):
    HOMES[f"numpy.{_part}"] = "numpy"
HOMES |= {"numpy_extension._op": "numpy_extension", "numpy_extension.utils": "numpy_extension"}
HOMES |= {f"{kind}.numpy{x}._op": f"{kind}.numpy{x}" for kind in ("ndarray", "symbol") for x in ("", "_extension")}
HOMES |= {"symbol.numpy._symbol": "symbol.numpy"}
#: Modules that are doors to C and nothing else: why there are none here.
ABSENT = {
    "_cy3": "it is compiled code",
    "_ffi": "it calls into MXNet's C library",
    "cython": "it is compiled code",
    "_ctypes.space": "it tunes operators compiled with TVM",
    "space": "it tunes operators compiled with TVM",
    "torch": "it calls Torch 7 through MXNet's C library",
    "tvmop": "it is for operators compiled with TVM",
}


#: Packages that take long to import.
LARGE = {"pandas", "scipy", "sklearn"}


class Facts(NamedTuple):
    """What a module of MXNet shows."""

    #: Name -> (module that defines it, name there); modules have an empty name there.
    sources: dict[str, tuple[str, str]]
    listed: list[str] | None  #: its ``__all__``


#: What this thread is looking for.
_asked = threading.local()


@functools.cache
def _file() -> dict[str, dict[str, Any]]:
    with open(os.path.join(os.path.dirname(__file__), "namespace.json"), encoding="utf-8") as file:
        found: dict[str, dict[str, Any]] = json.load(file)
    return found


@functools.cache
def facts(module: str) -> Facts | None:
    """What ``mxnet`` or ``mxnet.x.y`` shows, or None where MXNet has no such module."""
    entry = _file().get(module)
    if entry is None:
        return None
    sources = {n: (module, n) for n in entry.get("here", "").split()}
    for source, names in entry.get("from", {}).items():
        sources.update((shown, (source, defined)) for shown, defined in _pairs(names))
    sources.update((shown, (defined, "")) for shown, defined in _pairs(entry.get("modules", "")))
    return Facts(sources, entry["all"].split() if "all" in entry else None)


def is_package(module: str) -> bool:
    """Whether MXNet has modules below this one."""
    return any(m.startswith(module + ".") for m in _file())


def reason(module: str) -> str | None:
    """Why mxcore has nothing for a module that MXNet has, or None."""
    path = module.removeprefix("mxnet.")
    return next((why for absent, why in ABSENT.items() if f"{path}.".startswith(absent + ".")), None)


@functools.cache
def homes(module: str) -> list[ModuleType]:
    """mxcore's modules that answer for one of MXNet: that of the same name, and the package around it."""
    if module == "mxnet":
        return [importlib.import_module("mxcore")]
    parent, _, last = module.rpartition(".")
    if reason(module):
        return []
    path = HOMES.get(module.removeprefix("mxnet."), module.removeprefix("mxnet."))
    around = homes(parent)[:1] if parent != "mxnet" else []
    try:
        return [importlib.import_module(f"mxcore.{path}"), *around]
    except ModuleNotFoundError as e:
        if not f"mxcore.{path}.".startswith(f"{e.name}."):
            raise  # the module is there and lacks something else
    owner = (around or homes("mxnet"))[0]
    # Among operators one would be looked for, and all of them loaded.
    found = (
        vars(owner).get(last) if owner.__name__ in ("mxcore.ndarray", "mxcore.symbol") else getattr(owner, last, None)
    )
    if isinstance(found, ModuleType) and found.__name__.startswith("mxcore"):
        return [found, *around]
    return around if facts(module) else []


def _pairs(names: str) -> list[tuple[str, str]]:
    """(shown, defined) of names in a text, ``shown=defined`` where they differ."""
    return [(shown, defined or shown) for shown, _, defined in (n.partition("=") for n in names.split())]


@functools.cache
def _elsewhere(module: str) -> dict[str, tuple[str, str]]:
    homes_ = ELSEWHERE.get(module.removeprefix("mxnet."), {})
    return {
        shown: ("mxcore." + source, defined) for source, names in homes_.items() for shown, defined in _pairs(names)
    }


def _taken(module: str, name: str) -> Any:
    """What a module of MXNet shows and mxcore's of that name does not hold: it is kept in another."""
    source, defined = _elsewhere(module).get(name) or _source(module, name)
    if source == module:
        raise AttributeError
    if not defined:
        return _module(source)
    if source.partition(".")[0] == "mxnet":
        return find(source, defined)
    return functools.reduce(getattr, defined.split("."), importlib.import_module(source))


def _module(name: str) -> ModuleType:
    """Import a module; a large one of others only when it is used, since ``import *`` asks for every name."""
    if name in sys.modules:
        return sys.modules[name]
    if name.partition(".")[0] not in LARGE or (spec := importlib.util.find_spec(name)) is None or spec.loader is None:
        return importlib.import_module(name)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _of_face(module: str, name: str) -> Any:
    """What MXNet takes from NumPy as it stands: `mx.np` has its own, which takes arguments that NumPy lacks today."""
    owner = homes(module)[0]
    if owner.__name__.startswith("mxcore.numpy") and hasattr(owner, name):
        return getattr(owner, name)
    return _taken(module, name)


def _source(module: str, name: str) -> tuple[str, str]:
    known = facts(module)
    return known.sources.get(name, (module, name)) if known else (module, name)


def find(module: str, name: str) -> Any:
    """What ``mxnet.x.y`` shows under a name.

    Raises
    ------
    AttributeError
        If mxcore has nothing for it.
    """
    known = facts(module)
    try:
        if known and known.sources.get(name, ("",))[0].partition(".")[0] == "numpy" and homes(module):
            return _of_face(module, name)
        return _taken(module, name)
    except (AttributeError, ImportError) as e:
        why = f": {e}" if str(e) else ""
    has = ", which MXNet 1.9.1 has there" if known and name in known.sources else ""
    for owner in homes(module)[: 2 if has else 1]:
        try:
            return getattr(owner, name)
        except AttributeError as e:
            why = why or str(e).partition(repr(name))[2]  # what is planned, names that are near
    raise AttributeError(f"module {module!r} (answered by mxcore) has no attribute {name!r}{has}{why}")


def listed(module: str) -> list[str]:
    """What ``from mxnet.x.y import *`` gives: MXNet's names that mxcore has; its own where MXNet has no such module."""
    known = facts(module)
    if known is None:
        owner = homes(module)[0]
        return list(getattr(owner, "__all__", None) or (n for n in dir(owner) if not n.startswith("_")))
    names = known.listed if known.listed is not None else sorted(n for n in known.sources if not n.startswith("_"))
    return [n for n in names if _has(module, n)]


def _has(module: str, name: str) -> bool:
    try:
        find(module, name)
    except AttributeError:
        return False
    return True


def reexports(module: str, name: str) -> Any:
    """What a module of mxcore shows because MXNet's module has it in its public face, though another defines it.

    Raises
    ------
    AttributeError
        If there is no such name.
    """
    ours = "mxnet" + module.removeprefix("mxcore")
    asked: set[tuple[str, str]] = _asked.__dict__.setdefault("names", set())
    if (module, name) not in asked:  # by whoever looks for it below, where the module answers for several of MXNet's
        asked.add((module, name))
        try:
            if _source(ours, name)[1]:  # modules are not part of the face
                return _taken(ours, name)
        except (AttributeError, ImportError):
            pass
        finally:
            asked.discard((module, name))
    raise AttributeError(f"module {module!r} has no attribute {name!r}")
