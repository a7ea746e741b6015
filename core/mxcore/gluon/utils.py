"""Helpers of Gluon: splitting batches over devices, clipping gradients, downloading files."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ndarray as nd
from .._core.state import state
from .._core.transfer import check_writable
from .._interrupts import let_through
from .._io_files import checked, local_path, make_folder, reading
from ..base import error
from ..drafts import atomic_writer
from ..halves import is_half
from ..urls import is_folder

if TYPE_CHECKING:
    from ..context import Context
    from ..drafts import Draft
    from ..ndarray import NDArray

__all__ = [
    "HookHandle",
    "check_sha1",
    "clip_global_norm",
    "download",
    "is_np_array",
    "is_np_shape",
    "of_face",
    "of_mode",
    "replace_file",
    "shape_is_known",
    "split_and_load",
    "split_data",
]


def is_np_shape() -> bool:
    """Whether NumPy shape semantics are on in this thread: a dimension of 0 is empty, not unknown."""
    return state.np_shape


def is_np_array() -> bool:
    """Whether blocks work on `mxcore.np` arrays in this thread."""
    return bool(state.extra.get("np_array"))


def of_mode(x: Any) -> Any:
    """An array or symbol over the same memory: of ``mx.np`` where this thread's are those, else of ``mx.nd``."""
    return (x.as_np_ndarray() if is_np_array() else x.as_nd_ndarray()) if x.stype == "default" else x


def of_face(x: NDArray, like: NDArray) -> NDArray:
    """An array as one of ``mx.np`` or ``mx.nd``, whichever `like` is; the memory is the same."""
    if x.rules is like.rules or x.stype != "default":
        return x
    return x.as_nd_ndarray() if like.rules is None else x.as_np_ndarray()


def shape_is_known(shape: tuple[int, ...] | None) -> bool:
    """Whether every dimension of a shape is known.

    Parameters
    ----------
    shape : tuple of int or None
        A dimension of -1 is unknown, and one of 0 too unless NumPy shape semantics are on.

    Returns
    -------
    bool

    Examples
    --------
    >>> shape_is_known((3, 0)), shape_is_known((3, 4))
    (False, True)
    """
    if shape is None or shape == () and not is_np_shape():
        return False
    lowest = 0 if is_np_shape() else 1
    return all(d >= lowest for d in shape)


class HookHandle:
    """Handle of a registered hook; `detach` or the end of a ``with`` block takes the hook off again.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.utils.HookHandle``. The handle does not keep its block alive.

    Examples
    --------
    >>> import mxcore as mx
    >>> net = mx.gluon.nn.Flatten()
    >>> with net.register_forward_hook(lambda block, inputs, output: None):
    ...     y = net(mx.nd.ones((2, 3, 4)))
    """

    def __init__(self) -> None:
        self._hooks: weakref.ref[Any] | None = None
        self._id: int | None = None

    def attach(self, hooks_dict: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        """Put `hook` into an ordered dict of hooks; a handle serves one hook only."""
        if self._hooks is not None:
            raise error(AssertionError, "HookHandle.attach: this handle already holds a hook; make a new handle")
        self._id = id(hook)
        hooks_dict[self._id] = hook
        self._hooks = weakref.ref(hooks_dict)

    def detach(self) -> None:
        """Take the hook off. Doing it twice is harmless."""
        hooks = self._hooks() if self._hooks is not None else None
        if hooks is not None:
            hooks.pop(self._id, None)

    def __getstate__(self) -> tuple[Any, int | None]:
        return (self._hooks() if self._hooks is not None else None, self._id)

    def __setstate__(self, state: tuple[Any, int | None]) -> None:
        hooks, self._id = state
        self._hooks = None if hooks is None else weakref.ref(hooks)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.detach()


def split_data(data: NDArray, num_slice: int, batch_axis: int = 0, even_split: bool = True) -> list[NDArray]:
    """Cut an array into slices along its batch axis.

    Parameters
    ----------
    data : NDArray
        A batch.
    num_slice : int
        How many slices.
    batch_axis : int, default 0
        The axis to cut.
    even_split : bool, default True
        Insist on slices of equal size. If False, the first ones are one larger where needed.

    Returns
    -------
    list of NDArray

    Raises
    ------
    MXNetError (ValueError)
        If the batch cannot be cut evenly though `even_split` is set.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.utils.split_data``.

    Examples
    --------
    >>> import mxcore as mx
    >>> [x.shape for x in split_data(mx.nd.zeros((5, 2)), 2, even_split=False)]
    [(3, 2), (2, 2)]
    """
    if num_slice < 1:
        raise error(ValueError, f"split_data: num_slice must be 1 or more, got {num_slice}")
    size = data.shape[batch_axis]
    if even_split and size % num_slice:
        raise error(
            ValueError,
            f"split_data: data of shape {data.shape} cannot be evenly split into {num_slice} slices "
            f"along axis {batch_axis}. Use a batch size that is a multiple of {num_slice}, or set even_split=False.",
        )
    if num_slice == 1:
        return [data]
    small, larger = divmod(size, num_slice)
    cuts = [i * small + min(i, larger) for i in range(num_slice + 1)]
    if batch_axis == 0:
        return [data[begin:end] for begin, end in zip(cuts, cuts[1:])]
    return [nd.slice_axis(data, axis=batch_axis, begin=begin, end=end) for begin, end in zip(cuts, cuts[1:])]


def split_and_load(
    data: Any, ctx_list: Sequence[Context], batch_axis: int = 0, even_split: bool = True
) -> list[NDArray]:
    """Cut a batch into one slice a context and move each slice there.

    Parameters
    ----------
    data : NDArray or array_like
        A batch.
    ctx_list : list of Context
    batch_axis, even_split
        See :func:`split_data`.

    Returns
    -------
    list of NDArray

    Examples
    --------
    >>> import mxcore as mx
    >>> [x.context for x in split_and_load(mx.nd.zeros((4, 2)), [mx.cpu(0), mx.cpu(1)])]
    [cpu(0), cpu(1)]
    """
    if not ctx_list:
        raise error(ValueError, "split_and_load: ctx_list is empty; there must be a context to load the batch to")
    if not isinstance(data, nd.NDArray):
        data = of_mode(nd.array(data, ctx=ctx_list[0]))
    if len(ctx_list) == 1:
        return [data.as_in_context(ctx_list[0])]
    slices = split_data(data, len(ctx_list), batch_axis, even_split)
    return [part.as_in_context(ctx) for part, ctx in zip(slices, ctx_list)]


def clip_global_norm(arrays: Sequence[NDArray], max_norm: float, check_isfinite: bool = True) -> float | NDArray:
    """Scale arrays in place so that the L2 norm of all of them together is at most `max_norm`.

    Parameters
    ----------
    arrays : list of NDArray
        They may live on different contexts.
    max_norm : float
    check_isfinite : bool, default True
        Wait for the norm and warn if it is not finite. If False, nothing waits and the norm comes as an
        array.

    Returns
    -------
    float or NDArray
        The norm before clipping: a float, or an array of shape (1,) if `check_isfinite` is False.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.utils.clip_global_norm``.

    Examples
    --------
    >>> import mxcore as mx
    >>> x = mx.nd.array([3.0, 4.0])
    >>> clip_global_norm([x], 1.0)
    5.0
    """
    if not arrays:
        raise error(AssertionError, "clip_global_norm: arrays must hold at least one array")
    if isinstance(max_norm, (str, type(None))):
        raise error(TypeError, f"clip_global_norm: max_norm must be a number, got {max_norm!r}")
    for i, a in enumerate(arrays):
        check_writable(a, f"clip_global_norm: array {i}")  # before any is scaled
    arrays = [a.as_nd_ndarray() for a in arrays]  # whose memory is scaled
    home = arrays[0].context
    squares = [nd.sum(nd.square(_wide(a))).reshape((1,)).astype("float32").as_in_context(home) for a in arrays]
    total = nd.sqrt(nd.add_n(*squares) if len(squares) > 1 else squares[0])
    norm: float | NDArray = total
    if check_isfinite:
        norm = float(total.asscalar())
        if not math.isfinite(norm):
            warnings.warn(
                f"clip_global_norm: the norm of the arrays is {norm}; clipping leaves results undefined.",
                UserWarning,
                stacklevel=2,
            )
    scale = nd.minimum(max_norm / (total + 1e-8), nd.ones((1,), ctx=home))
    for a in arrays:
        a *= scale.astype(a.dtype).as_in_context(a.context)
    return norm


def _wide(a: NDArray) -> NDArray:
    """Half precision as float32: squares of float16 are soon out of its range."""
    return a.astype("float32") if is_half(np.dtype(a.dtype)) else a


def check_sha1(filename: str, sha1_hash: str) -> bool:
    """Whether a file has the given SHA-1 digest.

    Parameters
    ----------
    filename : str
    sha1_hash : str
        Hexadecimal digest; a prefix of at least eight digits suffices.

    Returns
    -------
    bool

    Examples
    --------
    >>> check_sha1(os.devnull, "da39a3ee5e6b4b0d3255bfef95601890afd80709")
    True
    """
    digest = hashlib.sha1()
    with reading(checked(filename, "check_sha1: filename")) as f:
        while chunk := f.read(1 << 20):
            digest.update(chunk)
    return _agrees(digest.hexdigest(), sha1_hash)


def _agrees(digest: str, expected: str) -> bool:
    """Whether a digest begins as expected, with eight digits at least."""
    return digest[: max(8, len(expected))] == expected.lower()


class Hashed:
    """Writes to a file, and keeps the SHA-1 digest of what was written."""

    def __init__(self, file: Draft) -> None:
        self.file, self.digest = file, hashlib.sha1()

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self.digest.update(data)
        self.file.write(data)


def replace_file(src: str, dst: str) -> None:
    """Move `src` over `dst` in one step: readers see the old file or the new one, never half of it."""
    os.replace(src, dst)


def _local_path(url: str) -> str | None:
    """Path behind a ``file://`` URL or a plain path, None for anything on a network."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file":
        return urllib.request.url2pathname(parts.path)
    # A single letter is a Windows drive, not a scheme.
    return url if len(parts.scheme) < 2 else None


def _fetch(url: str, out: Hashed, verify_ssl: bool) -> None:
    local = _local_path(url)
    if local is not None:
        with open(local, "rb") as source:
            shutil.copyfileobj(source, out, 1 << 20)
        return
    context = None
    if not verify_ssl and url.startswith("https"):
        import ssl

        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    request = urllib.request.Request(url, headers={"User-Agent": "mxcore"})
    with urllib.request.urlopen(request, timeout=30, context=context) as source:
        shutil.copyfileobj(source, out, 1 << 20)
        told = source.headers.get("Content-Length", "")
        # Where a connection ends early, `read` gives what came, as if that were all.
        if told.isdecimal() and int(told) != out.file.position and not getattr(source, "chunked", False):
            raise OSError(f"{out.file.position} bytes came of the {told} that were announced")


def download(
    url: str,
    path: str | None = None,
    overwrite: bool = False,
    sha1_hash: str | None = None,
    retries: int = 5,
    verify_ssl: bool = True,
) -> str:
    """Fetch a file unless it is there already.

    Parameters
    ----------
    url : str
        ``http(s)://``, ``ftp://``, ``file://`` or a local path.
    path : str, optional
        Where to put it: a file or an existing directory. By default the current directory, under the URL's
        name.
    overwrite : bool, default False
        Fetch even if the file is there.
    sha1_hash : str, optional
        Expected SHA-1 digest. A file there with another digest is fetched again.
    retries : int, default 5
        How often to try again before giving up, at least 0. Local files are tried once.
    verify_ssl : bool, default True
        Check the server's certificate.

    Returns
    -------
    str
        Path of the file.

    Raises
    ------
    MXNetError (OSError)
        If the file cannot be fetched or its digest is wrong; whatever was there before is left as it was.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.utils.download``. The file appears under its name only once
    complete.
    """
    url = checked(url, "download: url")
    name = os.path.basename(urllib.parse.urlsplit(url).path) or os.path.basename(url)
    if path is None:
        target = name
    else:
        path = local_path(checked(path, "download: path"))
        target = os.path.join(path, name) if is_folder(path) else path
    if not os.path.basename(target):
        raise error(ValueError, f"download: cannot tell a file name from {url!r}; give path=")
    if retries < 0:
        raise error(ValueError, f"download: retries must be 0 or more, got {retries}")
    if not overwrite and os.path.exists(target) and (not sha1_hash or check_sha1(target, sha1_hash)):
        return target

    make_folder(os.path.dirname(target) or os.curdir)
    tries = 1 if _local_path(url) is not None else retries + 1
    for attempt in itertools.count(1):
        try:
            with atomic_writer(target) as out:
                hashed = Hashed(out)
                _fetch(url, hashed, verify_ssl)
                if sha1_hash and not _agrees(hashed.digest.hexdigest(), sha1_hash):
                    raise OSError(f"its SHA-1 digest is not the expected {sha1_hash}")
            return target
        except (OSError, ValueError, HTTPException) as e:
            let_through(e)
            reason = repr(e) if isinstance(e, HTTPException) else getattr(e, "reason", None) or e
            # A server that answers "not found" will not change its mind.
            final = isinstance(e, urllib.error.HTTPError) and 400 <= e.code < 500
            if final or attempt == tries:
                raise error(
                    OSError,
                    f"download: could not fetch {url} to {target} after {attempt} attempt(s): {reason}. "
                    "Without a network, put the file there yourself.",
                ) from e
            time.sleep(min(0.05 * 2**attempt, 2.0))
    raise AssertionError  # the loop has no end
