"""Names that MXNet's modules show although others define them: one table, looked up when such a name is asked for."""
from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

__all__ = ["BORROWED", "borrowed", "sources"]

#: Module -> {module that defines: names, written ``shown=defined`` where they differ}. Modules without a dot in front are Python's own.
BORROWED: dict[str, dict[str, str]] = {
    "attribute": {".base": "classproperty string_types with_metaclass"},
    "autograd": {"ctypes": "CFUNCTYPE POINTER cast", "threading": "Lock", ".ndarray": "NDArray", ".symbol": "Symbol", ".base": "string_types",
                 "._ctext": "MXCallbackList c_array c_array_buf c_handle_array check_call"},
    "base": {"._ctext": "MXCallbackList c_array c_array_buf c_handle_array c_str c_str_array check_call ctypes2buffer ctypes2numpy_shared "
                        "mx_float_p py_str"},
    "context": {".base": "classproperty with_metaclass", "._ctext": "check_call"},
    "contrib.autograd": {".ndarray": "NDArray zeros_like", ".base": "string_types", "._ctext": "c_array c_array_buf c_handle_array check_call"},
    "engine": {"._ctext": "check_call"},
    "executor": {".ndarray": "NDArray", "._ctext": "c_array_buf c_handle_array c_str_array check_call py_str"},
    "gluon.block": {".symbol": "Symbol load_json", ".util": "np_array np_shape"},
    "gluon.data.vision": {".gluon.data": "datasets=vision"},
    "gluon.nn": {".gluon": "basic_layers=nn conv_layers=nn"},
    "gluon.rnn": {".gluon": "rnn_cell=rnn rnn_layer=rnn", ".gluon.rnn.layers": "_RNNLayer", ".gluon.rnn.recurrent_cell": "_get_begin_state=states_for",
                  ".gluon.rnn.sequences": "_format_sequence=formatted _mask_sequence_variable_length=masked"},
    "gluon.trainer": {".kvstore": "KVStore"},
    "image": {".util": "is_np_array", ".base": "numeric_types", ".": "det=image detection=image image",
              ".image.functions": "_get_interp_method=interpolation"},
    "initializer": {".util": "is_np_array"},
    "library": {"._ctext": "check_call"},
    "model": {
        ".context": "Context cpu", ".io": "DataDesc", ".initializer": "Uniform", ".optimizer": "get_updater",
        ".executor_manager": "DataParallelExecutorManager _check_arguments", ".callback": "LogValidationMetricsCallback",
        ".module.updates": "_create_kvstore=create_kvstore _initialize_kvstore=initialize_kvstore _update_params=update_params "
                           "_update_params_on_kvstore=update_params_on_kvstore",
    },
    "name": {".base": "classproperty with_metaclass"},
    "ndarray": {".executor": "CachedOp",
                ".ndarray.keys": "get_indexing_dispatch_code get_oshape_of_gather_nd_op indexing_key_expand_implicit_axes"},
    "ndarray.random": {".base": "numeric_types", ".context": "current_context"},
    "ndarray.sparse": {".base": "integer_types numeric_types", ".context": "current_context", "._ctext": "c_array_buf check_call", "builtins": "py_sum=sum",
                       ".ndarray": "gs_retain=_internal._sparse_retain"},
    "operator": {"ctypes": "CFUNCTYPE POINTER cast pointer", "threading": "Lock", ".ndarray": "NDArray", ".util": "is_np_array",
                 "._ctext": "MXCallbackList c_array c_array_buf c_str check_call ctypes2numpy_shared py_str"},
    "optimizer": {".ndarray": "NDabs=abs", ".": "optimizer"},
    "random": {".base": "integer_types", "._ctext": "check_call"},
    "rtc": {".ndarray": "NDArray", ".base": "numeric_types string_types", "._ctext": "c_array c_array_buf c_str c_str_array check_call"},
    "symbol.contrib": {"._ctext": "check_call"},
    "symbol.random": {".base": "numeric_types"},
}  # fmt: skip


def sources(module: str) -> dict[str, tuple[str, str]]:
    """Where the names are that a module borrows: name -> (module, name there)."""
    found = {}
    for source, names in BORROWED.get(module.removeprefix("mxcore."), {}).items():
        for entry in names.split():
            shown, _, defined = entry.partition("=")
            found[shown] = source, defined or shown
    return found


def borrowed(module: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module with borrowed names.

    Parameters
    ----------
    module : str
        Its ``__name__``.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.operator.py_str(b"data")
    'data'
    """
    where = sources(module)

    def find(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        source, defined = where[name]
        found = importlib.import_module(source, "mxcore")
        for part in defined.split("."):
            found = getattr(found, part)
        return found

    return find
