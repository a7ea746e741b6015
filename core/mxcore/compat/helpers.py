"""Private helpers of MXNet's modules with a plain meaning, for toolkits that import them; nothing of mxcore uses them.

`names.ELSEWHERE` says which module of MXNet shows which.
"""

from __future__ import annotations

import ctypes
import inspect
import io
import multiprocessing
import os
import pickle
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from .. import ndarray as nd
from .. import symbol as sym
from ..base import MXNetError, error
from ..context import cpu_pinned
from ..gluon import _repository
from ..gluon.block.structure import flatten, regroup
from ..gluon.parameter.parameter_dict import brief
from ..io.nd_array_iter import named_sources
from ..kvstore.base import KVStoreBase
from ..module import slicing
from ..module.updates import create_kvstore

# -- mxnet.base, mxnet.error ------------------------------------------------------------------------------------------


class InternalError(MXNetError):
    """What MXNet raises for its own mistakes."""


class NotSupportedForSparseNDArray(MXNetError):
    """A function that dense arrays have and sparse ones have not."""

    def __init__(self, function: Callable[..., Any], alias: str | None, *args: Any) -> None:
        name = function.__name__ + (f" (namely operator {alias!r})" if alias else "")
        super().__init__(
            f"Function {name} with arguments {[type(a).__name__ for a in args]} is not supported for sparse arrays"
        )


_Null = None  # what is not given
error_types: dict[str, type] = {
    e.__name__: e for e in (InternalError, ValueError, TypeError, AttributeError, IndexError, NotImplementedError)
}


def register_error(func_name: Any = None, cls: type | None = None) -> Any:
    """Enter an error's class: ``register_error("MyError", MyError)``, or as a decorator with or without a name."""
    if isinstance(func_name, type):
        cls, func_name = func_name, func_name.__name__

    def enter(kind: type) -> type:
        error_types[func_name or kind.__name__] = kind
        return kind

    return enter if cls is None else enter(cls)


def c2pyerror(err_msg: str) -> tuple[str, str | None]:
    """The text of an error of MXNet's C library and the name of its type, which stands before a colon."""
    head, *trace = err_msg.split("\n")
    kind = re.match(r"([A-Za-z_]\w*)(?=: )", head)
    lines = [line for line in trace if line.strip().startswith("[bt]")]
    text = "\n".join(["Traceback (most recent call last):", *reversed(lines), head]) if lines else err_msg
    return text, kind.group(1) if kind else None


def get_last_ffi_error() -> MXNetError:
    """The last error of MXNet's C library, of which there is none here."""
    return MXNetError("no call of a C library has failed")


def add_fileline_to_docstring(module: Any, incursive: bool = True) -> None:
    """Document where a module's functions and classes, and with `incursive` their methods, are defined."""
    kinds = [found for found in vars(module).values() if inspect.isclass(found) and found.__module__ == module.__name__]
    methods = (
        [method for kind in kinds for method in vars(kind).values() if inspect.isfunction(method)] if incursive else []
    )
    for found in [*vars(module).values(), *methods]:
        if getattr(found, "__module__", None) != module.__name__ or not getattr(found, "__doc__", None):
            continue
        try:
            where, line = inspect.getsourcefile(found), inspect.getsourcelines(found)[1]
        except (OSError, TypeError):
            continue  # it was not read from a file
        if "\n\nFrom:" not in found.__doc__:
            found.__doc__ += f"\n\nFrom:{where}:{line}"


def build_param_doc(
    arg_names: Sequence[str], arg_types: Sequence[str], arg_descs: Sequence[str], remove_dup: bool = True
) -> str:
    """A numpydoc section of parameters."""
    lines, seen = ["Parameters", "----------"], set()
    for name, kind, text in zip(arg_names, arg_types, arg_descs):
        if name in seen and remove_dup or name == "num_args":
            continue
        seen.add(name)
        lines += [f"{name} : {kind}", *([f"    {text}"] if text else [])]
    return "\n".join(lines) + "\n"


def data_dir_default() -> str:
    """The folder for data and models where no variable names one."""
    return os.path.join(os.path.expanduser("~"), ".mxnet")


def data_dir() -> str:
    """The folder for data and models."""
    return os.path.expanduser(_repository.data_dir())


# -- mxnet.gluon ------------------------------------------------------------------------------------------------------

tensor_types = (sym.Symbol, nd.NDArray)
apache_repo_url = _repository.APACHE_URL
_url_format = "{repo_url}gluon/models/{file_name}.zip"


def _flatten(args: Any, inout_str: str) -> tuple[list[Any], Any]:
    """The arrays of nested lists, and the structure that `_regroup` puts them back into."""
    leaves: list[Any] = []
    structure = flatten(args, leaves, inout_str)
    return ([None], -1) if structure == -1 else (leaves, structure)


def _regroup(args: list[Any], fmt: Any) -> Any:
    """Nested lists again."""
    return regroup(iter(args), fmt)


def _indent(s_: str, numSpaces: int) -> str:
    """A text whose lines are indented, the first one excepted."""
    return s_.replace("\n", "\n" + " " * numSpaces)


def _brief_print_list(lst: Iterable[Any], limit: int = 7) -> str:
    """The items in quotes; of long lists the two ends."""
    names = [*lst]
    return brief(names, limit) if names else ""


def _get_repo_file_url(namespace: str, filename: str) -> str:
    """Where a file is published."""
    return f"{_repository.repo_url()}{namespace}/{filename}"


def _apply_weighting(F: Any, loss: Any, weight: float | None = None, sample_weight: Any = None) -> Any:
    """A loss times its weights."""
    if sample_weight is not None:
        loss = F.broadcast_mul(loss, sample_weight)
    if weight is not None:
        if not isinstance(weight, (float, int, np.generic)):
            raise error(AssertionError, f"weight must be a number, got {weight!r}")
        loss = loss * weight
    return loss


def _reshape_like(F: Any, x: Any, y: Any) -> Any:
    """`x` in the shape of `y`."""
    return F.reshape_like(x, y)


def _infer_weight_shape(op_name: str, data_shape: Sequence[int], kwargs: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """Shapes of the inputs of a convolution whose data has a shape."""
    made = getattr(sym, op_name)(sym.var("data", shape=tuple(data_shape)), **kwargs)
    found: list[tuple[int, ...]] = made.infer_shape_partial()[0]
    return found


# -- mxnet.gluon.data.dataloader --------------------------------------------------------------------------------------

Queue, SimpleQueue = multiprocessing.Queue, multiprocessing.SimpleQueue  # arrays travel pickled, as everything does
_worker_dataset: Any = None


def _worker_initializer(dataset: Any, active_shape: Any = None, active_array: Any = None) -> None:
    """Give a worker its data set."""
    global _worker_dataset
    _worker_dataset = dataset


def _thread_worker_initializer(active_shape: Any = None, active_array: Any = None) -> None:
    """Nothing to prepare in a thread."""


def _worker_fn(samples: Sequence[int], batchify_fn: Callable[[list[Any]], Any], dataset: Any = None) -> bytes:
    """Make a batch in a worker process; it travels pickled."""
    data = _worker_dataset if dataset is None else dataset
    out = io.BytesIO()
    ForkingPickler(out, pickle.HIGHEST_PROTOCOL).dump(batchify_fn([data[i] for i in samples]))
    return out.getvalue()


def _thread_worker_fn(samples: Sequence[int], batchify_fn: Callable[[list[Any]], Any], dataset: Any) -> Any:
    """Make a batch in a thread."""
    return batchify_fn([dataset[i] for i in samples])


def _as_in_context(data: Any, ctx: Any) -> Any:
    """Arrays in nested lists, on a context."""
    if isinstance(data, nd.NDArray):
        return data.as_in_context(ctx)
    return [_as_in_context(d, ctx) for d in data] if isinstance(data, (list, tuple)) else data


class _MultiWorkerIter:
    """Batches in order, from a pool that makes `prefetch` of them ahead.

    Loaders of toolkits derive from it: they send work in a `_push_next` of their own, and read and write what it keeps,
    which is therefore called as in MXNet.
    """

    def __init__(
        self,
        worker_pool: Any,
        batchify_fn: Any,
        batch_sampler: Iterable[Any],
        pin_memory: bool = False,
        pin_device_id: int = 0,
        worker_fn: Any = _worker_fn,
        prefetch: int = 0,
        dataset: Any = None,
        data_loader: Any = None,
        timeout: float = 120,
    ) -> None:
        self._worker_pool, self._worker_fn, self._batchify_fn, self._dataset = (
            worker_pool,
            worker_fn,
            batchify_fn,
            dataset,
        )
        self._batch_sampler, self._iter = batch_sampler, iter(batch_sampler)
        self._pin_memory, self._pin_device_id = pin_memory, pin_device_id
        self._data_loader, self._timeout = data_loader, timeout  # the loader owns the pool: it must live as long
        #: Number of a batch -> what gives it, once; how many were sent, and how many of them handed out.
        self._data_buffer: dict[int, Any] = {}
        self._sent_idx = self._rcvd_idx = 0
        for _ in range(prefetch):
            self._push_next()

    def _push_next(self) -> None:
        """Send the samples of another batch to the workers, if there is one left."""
        samples = next(self._iter, None)
        if samples is not None:
            call = (samples, self._batchify_fn, self._dataset)
            self._data_buffer[self._sent_idx] = self._worker_pool.apply_async(self._worker_fn, call)
            self._sent_idx += 1

    def __len__(self) -> int:
        return len(self._batch_sampler)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._push_next()
        if self._rcvd_idx == self._sent_idx:
            raise StopIteration
        try:
            batch = self._data_buffer.pop(self._rcvd_idx).get(self._timeout)
        except multiprocessing.TimeoutError:
            raise
        except Exception:
            self._worker_pool.terminate()
            raise
        self._rcvd_idx += 1
        batch = pickle.loads(batch) if isinstance(batch, bytes) else batch
        return _as_in_context(batch, cpu_pinned(self._pin_device_id)) if self._pin_memory else batch

    def next(self) -> Any:
        """The next batch."""
        return self.__next__()


# -- mxnet.model, mxnet.module, mxnet.executor_manager ----------------------------------------------------------------


def _create_sparse_kvstore(kvstore: Any) -> tuple[KVStoreBase, bool]:
    """The store for row_sparse weights, which always updates there."""
    made, _ = create_kvstore(kvstore, 2, {})
    if made is None:
        raise error(TypeError, "Cannot create a store for row_sparse weights from None")
    return made, True


def _multiple_callbacks(callbacks: Any, *args: Any, **kwargs: Any) -> None:
    """Call one function or several; None is none."""
    for call in callbacks if isinstance(callbacks, list) else [callbacks]:
        if call:
            call(*args, **kwargs)


def _load_general(data: Sequence[Any], targets: Sequence[Any], major_axis: Sequence[int] | None = None) -> None:
    """Copy arrays to where executors read them: for each one array, or (rows, array) a context."""
    parts = [[(slice(None), t)] if isinstance(t, nd.NDArray) else t for t in targets]
    slicing.load(data, parts, major_axis or [0] * len(parts), [f"data{i}" for i in range(len(parts))])


def _load_data(batch: Any, targets: Sequence[Any], major_axis: Sequence[int] | None = None) -> None:
    """Copy the data of a batch."""
    _load_general(batch.data, targets, major_axis)


def _load_label(batch: Any, targets: Sequence[Any], major_axis: Sequence[int] | None = None) -> None:
    """Copy the labels of a batch."""
    _load_general(batch.label, targets, major_axis)


# -- mxnet.io, mxnet.ndarray, mxnet.operator, mxnet.recordio, mxnet.visualization -------------------------------------

UNKNOWN_IDX = 0
_IR_FORMAT = "IfQQ"  # of the header of an image record: flag, label, id, id2
_IR_SIZE = struct.calcsize(_IR_FORMAT)
c_int_p = ctypes.POINTER(ctypes.c_int)
_GRAD_REQ_MAP = {"null": 0, "write": 1, "add": 3}
_STORAGE_TYPE_STR_TO_ID = {"undefined": -1, "default": 0, "row_sparse": 1, "csr": 2}
_STORAGE_TYPE_ID_TO_STR = {n: s for s, n in _STORAGE_TYPE_STR_TO_ID.items()}
_STORAGE_TYPE_UNDEFINED, _STORAGE_TYPE_DEFAULT, _STORAGE_TYPE_ROW_SPARSE, _STORAGE_TYPE_CSR = (
    _STORAGE_TYPE_STR_TO_ID.values()
)


def _init_data(data: Any, allow_empty: bool, default_name: str) -> list[tuple[str, Any]]:
    """Arrays with names, from one, a list or a dictionary."""
    named = named_sources(data, "label" if allow_empty else "data", default_name)
    return [(name, nd.array(a) if isinstance(a, np.ndarray) else a) for name, a in named]


def _has_instance(data: Iterable[tuple[str, Any]], dtype: Any) -> bool:
    """Whether one of named arrays is of a type."""
    return any(isinstance(a, dtype) for _, a in data)


def _getdata_by_idx(data: Iterable[tuple[str, Any]], idx: Any) -> list[tuple[str, Any]]:
    """Named arrays with the rows of some positions."""
    return [
        (name, nd.array(a.asnumpy()[idx] if isinstance(a, nd.NDArray) else a[idx], dtype=a.dtype)) for name, a in data
    ]


def _slice_along_batch_axis(data: Any, s: slice, batch_axis: int) -> Any:
    """Rows of an array."""
    return slicing.cut(data, batch_axis, s)


def check_boolean_array_dimension(array_shape: Sequence[int], axis: int, bool_shape: Sequence[int]) -> None:
    """Whether a mask fits the axes of an array that it selects from."""
    for i, size in enumerate(bool_shape):
        if array_shape[axis + i] != size:
            raise error(
                IndexError,
                f"boolean index did not match indexed array along axis {axis + i}; size is {array_shape[axis + i]} "
                f"but corresponding boolean size is {size}",
            )


def _get_broadcast_shape(shape1: Sequence[int], shape2: Sequence[int]) -> tuple[int, ...]:
    """The shape that two shapes broadcast to."""
    return np.broadcast_shapes(tuple(shape1), tuple(shape2))


def _str2tuple(string: str) -> list[str]:
    """The numbers in a text."""
    return re.findall(r"\d+", string)


def unchanged(function: Any) -> Any:
    """What was a decorator for versions of NumPy that have no protocols for arrays of others: the function itself."""
    return function
