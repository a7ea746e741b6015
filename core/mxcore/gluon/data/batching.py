"""From a list of samples to a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ... import ndarray as nd
from ..._core.params import as_dtype
from ...base import error
from ..utils import of_mode

__all__ = ["default_batchify_fn", "default_mp_batchify_fn", "numpy_batchify"]


def _misfit(kinds: Iterable[Any], at: tuple[int, ...]) -> Exception:
    """The error for samples of kinds that do not fit, or that no array holds; `at` says which parts of tuples they are.

    That is the number of the element, that of its element, and so on.
    """
    where = f" (element {' of element '.join(map(str, reversed(at)))} of each)" if at else ""
    return error(
        ValueError,
        f"cannot make a batch of samples of {', '.join(sorted(map(str, kinds)))}{where}; give the DataLoader a "
        "batchify_fn that knows them, or transform them to numbers or arrays of one shape and dtype",
    )


def _check_ndarrays(samples: Sequence[Any], at: tuple[int, ...]) -> None:
    """Where one is an NDArray, `nd.stack` needs all to be, of one shape and dtype."""
    kinds = {
        ("NDArray", s.shape, np.dtype(s.dtype).name) if isinstance(s, nd.NDArray) else type(s).__name__ for s in samples
    }
    if len(kinds) > 1:
        raise _misfit(kinds, at)


def _stack(samples: Sequence[Any], at: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """One NumPy array of many samples, of a dtype that arrays can have."""
    try:
        data = np.stack(samples) if isinstance(samples[0], np.ndarray) else np.asarray(samples)
    except (ValueError, DeprecationWarning):
        data = None
    if data is None or data.dtype == object:
        shapes: set[Any] = {np.shape(s) for s in samples if isinstance(s, np.ndarray)} or {
            type(s).__name__ for s in samples
        }
        raise _misfit(shapes, at)
    try:
        as_dtype(data.dtype)
    except TypeError:
        raise _misfit({s.dtype if isinstance(s, np.ndarray) else type(s).__name__ for s in samples}, at) from None
    return data


def _by_element(data: Sequence[Any], made: Callable[[Sequence[Any], tuple[int, ...]], Any], at: Any = ()) -> Any:
    """What is `made` of samples; of tuples every element by itself."""
    if isinstance(data[0], tuple):
        return [_by_element(column, made, (*at, i)) for i, column in enumerate(zip(*data))]
    return made(data, at)


def default_batchify_fn(data: Sequence[Any]) -> Any:
    """Make a batch: stack arrays and numbers, and of tuples every element by itself.

    Parameters
    ----------
    data : list
        Samples: arrays, numbers, or tuples of them.

    Returns
    -------
    NDArray or list of NDArray
        Numbers and NumPy arrays keep their dtype.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.data.dataloader.default_batchify_fn``.

    Examples
    --------
    >>> [x.shape for x in default_batchify_fn([(1, [1, 2]), (2, [3, 4])])]
    [(2,), (2, 2)]
    """
    return _by_element(data, _in_ndarray)


def _in_ndarray(data: Sequence[Any], at: tuple[int, ...]) -> Any:
    if isinstance(data[0], nd.NDArray):
        _check_ndarrays(data, at)
        return of_mode(nd.stack(*data))
    batch = _stack(data, at)
    return of_mode(nd.array(batch, dtype=batch.dtype))


def default_mp_batchify_fn(data: Sequence[Any]) -> Any:
    """Make a batch in a worker process. The same as `default_batchify_fn`.

    The loader moves the batches of its workers by itself; MXNet needs arrays in a context of their own for
    it.
    """
    return default_batchify_fn(data)


class ToNDArray:
    """A NumPy array that becomes an NDArray on its way from the worker to the loader."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array


def numpy_batchify(data: Sequence[Any]) -> Any:
    """What `default_batchify_fn` makes, in NumPy: workers hand that over, and the loader makes NDArrays."""
    return _by_element(data, _in_numpy)


def _in_numpy(data: Sequence[Any], at: tuple[int, ...]) -> Any:
    if isinstance(data[0], nd.NDArray):
        _check_ndarrays(data, at)
        data = [d.asnumpy() for d in data]
    return ToNDArray(_stack(data, at))
