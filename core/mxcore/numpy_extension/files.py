"""Arrays of ``mx.np`` in files: MXNet's own format, and NumPy's ``.npz``."""

from __future__ import annotations

import zipfile
from typing import Any

import numpy as np

from .. import _io_files
from .._core.errors import error
from ..drafts import Draft, atomic_writer
from ..ndarray import NDArray, array
from ..ndarray import files as legacy
from ..ndarray.numpy import ndarray
from ..util import np_shape

__all__ = ["load", "save"]


def _named(what: str, arr: Any) -> Any:
    """Arrays as they are saved: of ``mx.nd``, over the same memory."""
    if isinstance(arr, dict):
        return {k: _named(what, v) for k, v in arr.items()}
    if isinstance(arr, (list, tuple)):
        return [_named(what, v) for v in arr]
    if not isinstance(arr, NDArray):
        raise error(
            TypeError, f"{what}: arrays of mx.np are saved, or lists and dicts of them, got {type(arr).__name__}"
        )
    return arr.as_nd_ndarray() if isinstance(arr, ndarray) else arr


def save(file: str, arr: Any) -> None:
    """Write arrays to a file, whole or not at all.

    Parameters
    ----------
    file : str
        Path or URL. One that ends in ``.npz`` is written as NumPy's archives are, any other in MXNet's format.
    arr : ndarray, list of ndarray or dict of str to ndarray
        One array is a list of one.

    Raises
    ------
    MXNetError
        (also TypeError) for what is no array; (also OSError) where it cannot be written.

    Examples
    --------
    >>> from mxcore import np, npx
    >>> npx.save("memory://weights", {"w": np.ones(2)})
    >>> npx.load("memory://weights")
    {'w': array([1., 1.])}
    """
    found = _named("npx.save", arr)
    name = _io_files.checked(file, "npx.save: file")
    if not name.endswith(".npz"):
        with np_shape():
            legacy.save(name, found)
        return
    listed = found if isinstance(found, dict) else {f"arr_{i}": x for i, x in enumerate(_listed(found))}
    # As numpy.savez does it, which takes no stream that cannot go back.
    with atomic_writer(name) as out, zipfile.ZipFile(_Counting(out), "w") as archive:  # type: ignore[call-overload]
        for key, x in listed.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, x.asnumpy(), allow_pickle=False)


class _Counting:
    """A draft as `zipfile` wants a stream that cannot go back."""

    def __init__(self, draft: Draft) -> None:
        self._draft, self.flush = draft, draft.flush

    def write(self, data: Any) -> int:
        self._draft.write(data)
        return memoryview(data).nbytes


def _listed(x: Any) -> list[Any]:
    return x if isinstance(x, list) else [x]


def load(file: str) -> Any:
    """Read the arrays of a file that `save`, ``nd.save``, MXNet or ``numpy.savez`` wrote.

    Parameters
    ----------
    file : str
        Path or URL.

    Returns
    -------
    list of ndarray, or dict of str to ndarray
        As they were saved; of a ``.npz`` a dict.

    Raises
    ------
    MXNetError
        (also ValueError) for a damaged file, with the place.

    Examples
    --------
    >>> from mxcore import np, npx
    >>> npx.save("memory://one", np.arange(3))
    >>> npx.load("memory://one")
    [array([0., 1., 2.])]
    """
    name = _io_files.checked(file, "npx.load: file")
    if name.endswith(".npz"):
        return _read_npz(name)
    with np_shape():
        found = legacy.load(name)
    return {k: _of_np(v) for k, v in found.items()} if isinstance(found, dict) else [_of_np(v) for v in found]


def _of_np(x: NDArray) -> NDArray:
    return x.as_np_ndarray() if x.stype == "default" else x


def _read_npz(name: str) -> dict[str, Any]:
    with _io_files.reading(name) as f:
        try:
            with np.load(f, allow_pickle=False) as archive:
                return {k: array(archive[k], dtype=archive[k].dtype).as_np_ndarray() for k in archive.files}
        except MemoryError:
            raise
        except Exception as e:
            raise error(ValueError, f"{name}: it is no archive of NumPy's arrays: {e}") from e
