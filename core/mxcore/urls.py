"""URLs of files: what is one, names that are made of them, and the stores behind them.

Stores are fsspec's. A URL may be a chain: ``zip://net.params::s3://bucket/nets.zip`` is a file in an archive in a
store, ``simplecache::s3://bucket/net.params`` one that is kept on disk once it was read. Names that are made of a chain
are those of files beside the file, not beside its archive.
"""

from __future__ import annotations

import functools
import os
import re
import stat
from collections.abc import Mapping
from typing import Any, TypeAlias

from . import _importing
from ._interrupts import let_through, suppress
from .base import error

__all__ = [
    "appended",
    "archived",
    "check_file",
    "child",
    "ending",
    "facts",
    "is_folder",
    "is_url",
    "links",
    "parent",
    "store",
    "text_of",
    "uncached",
    "with_ending",
]

PathLike: TypeAlias = str | os.PathLike[str]

# Two letters at least, so that a Windows drive ("C:\\x") is a path.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://")
_LINK = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)::")

#: What holds files and is a file itself. fsspec writes one from its beginning, in its place: a writer that is killed
#: leaves half of it, and a file in it is never replaced.
_ARCHIVES = frozenset(("zip", "tar", "libarchive"))

#: Those that are searched here, by classes of their own: fsspec's take memory and time without bound.
_SEARCHED = {"tar": "mxcore-tar", "zip": "mxcore-zip"}

#: What stores tell of an object that changes when another takes its place.
_FACTS = (
    *("size", "ETag", "etag", "generation", "VersionId", "version_id", "checksum", "md5Hash", "content_md5", "ino"),
    *("LastModified", "last_modified", "mtime", "modificationTime", "last_write_time", "updated", "created"),
)

#: What fsspec calls this machine's own files.
LOCAL = frozenset(("file", "local"))

#: Stores that nothing can be written to.
_READ_ONLY = frozenset(("data", "http", "https", "git", "reference"))


def is_folder(path: PathLike) -> bool:
    """Whether there is a folder of that name; what a signal's handler raises meanwhile is no answer.

    Examples
    --------
    >>> is_folder("/")
    True
    """
    with suppress(OSError, ValueError):
        return stat.S_ISDIR(os.stat(path).st_mode)
    return False


def text_of(path: PathLike, what: str = "a file name") -> str:
    """What names a file, as a string.

    Parameters
    ----------
    path : str or os.PathLike
    what : str
        The argument, for errors.

    Raises
    ------
    MXNetError
        (also TypeError) if it is neither a string nor a path, or a path of the user's own class that fails to tell it.

    Examples
    --------
    >>> text_of("a.params")
    'a.params'
    """
    try:
        name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
    except Exception as e:  # it raises, or gives what is no text
        let_through(e)
        said = f"{type(path).__name__}, whose __fspath__ failed: {type(e).__name__}: {e}"
        raise error(TypeError, f"{what} must be a non-empty string or a path, not {said}") from e
    if not isinstance(name, str):
        raise error(TypeError, f"{what} must be a non-empty string or a path, not {type(name).__name__}: {name!r}")
    return name


def is_url(path: PathLike) -> bool:
    """Tell whether `path` names something that is opened through fsspec.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or a URL; ``file://`` URLs, which fsspec calls ``local://``, too, count as local paths.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_url("s3://bucket/a.params"), is_url("C:/a.params"), is_url("file:///a.params")
    (True, False, False)
    >>> is_url("simplecache::s3://bucket/a.params"), is_url("a::b")
    (True, False)
    """
    name = text_of(path)
    found = _SCHEME.match(name)
    if found is not None:
        return found.group(1).lower() not in LOCAL
    found = _LINK.match(name)
    return found is not None and ("://" in name or found.group(1) in _protocols())


@functools.cache
def _protocols() -> frozenset[str]:
    try:
        fsspec = _importing.load("fsspec")
    except ImportError:
        return frozenset()
    return frozenset(fsspec.available_protocols())


def links(url: str) -> list[str]:
    """The kinds of stores that a URL goes through, from the file on; a local file behind them is not named.

    Examples
    --------
    >>> links("simplecache::zip://a.rec::s3://bucket/a.zip")
    ['simplecache', 'zip', 's3']
    >>> links("zip://a.rec::a.zip")
    ['zip']
    """
    parts = url.split("::")
    kinds = [part.partition("://")[0].lower() for part in parts if "://" in part or part != parts[-1]]
    return [kind for kind in kinds if kind not in LOCAL]


def archived(url: str) -> bool:
    """Whether a URL names a file in an archive.

    Examples
    --------
    >>> archived("zip://a.rec::s3://bucket/a.zip"), archived("s3://bucket/a.zip")
    (True, False)
    """
    return not _ARCHIVES.isdisjoint(links(url))


def _parts(path: PathLike) -> tuple[str, str]:
    """A name up to the end of its file, and what follows: the archive that the file is in, if it is in one."""
    name = text_of(path)
    at = name.find("::", name.find("://") + 1) if is_url(name) and "://" in name else -1
    return (name, "") if at < 0 else (name[:at], name[at:])


def appended(path: PathLike, text: str) -> str:
    """The name of a file that begins as `path` does and goes on with `text`.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or a URL.
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> appended("zip://net::nets.zip", "-symbol.json"), appended("s3://bucket/net", "-symbol.json")
    ('zip://net-symbol.json::nets.zip', 's3://bucket/net-symbol.json')
    """
    name, archive = _parts(path)
    return name + text + archive


def ending(path: PathLike) -> str:
    """The ending of a file's name, with its dot.

    Examples
    --------
    >>> ending("zip://a.rec::b.zip")
    '.rec'
    """
    return os.path.splitext(_parts(path)[0])[1]


def with_ending(path: PathLike, ending: str) -> str:
    """The name of the file beside `path` that has another ending.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or a URL.
    ending : str

    Returns
    -------
    str

    Examples
    --------
    >>> with_ending("zip://a.rec::b.zip", ".idx"), with_ending("data/a.rec", ".idx")
    ('zip://a.idx::b.zip', 'data/a.idx')
    """
    name, archive = _parts(path)
    return os.path.splitext(name)[0] + ending + archive


def child(folder: PathLike, name: str) -> str:
    """The name of a file in a folder.

    Parameters
    ----------
    folder : str or os.PathLike
        A local path or a URL.
    name : str

    Returns
    -------
    str

    Examples
    --------
    >>> child("zip://train::b.zip", "a.rec"), child("data", "a.rec")
    ('zip://train/a.rec::b.zip', 'data/a.rec')
    """
    if not is_url(folder):
        return os.path.join(text_of(folder), name)
    place, archive = _parts(folder)
    return f"{place}{'' if place.endswith('/') else '/'}{name}{archive}"


def parent(path: PathLike) -> str:
    """The name of the folder that a file is in.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or a URL.

    Returns
    -------
    str

    Examples
    --------
    >>> parent("s3://bucket/train/a.rec"), parent("zip://a.rec::b.zip"), parent("a.rec")
    ('s3://bucket/train', 'zip://::b.zip', '.')
    """
    if not is_url(path):
        return os.path.dirname(text_of(path)) or "."
    name, archive = _parts(path)
    folder = name.rpartition("/")[0]
    return f"{folder}/{archive}" if folder.endswith(":/") else folder + archive


def store(url: str, writing: bool = False, fresh: bool = False) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the path in it.

    Parameters
    ----------
    url : str
    writing : bool
        Whether files are to be written, which archives and some stores refuse.
    fresh : bool
        Make a file system of its own, which shares no connections.

    Raises
    ------
    MXNetError
        (also ImportError) without fsspec or what the store needs, (also ValueError) for a store that nobody knows,
        (also OSError) for one that cannot be written.

    Examples
    --------
    >>> store("memory://doc/a.params")[1]
    '/doc/a.params'
    """
    kinds = links(url)
    if writing:
        _refuse_to_write(url, kinds)
    last, slashes, _ = url.rpartition("::")[2].partition("://")
    if not last or (slashes and last in _ARCHIVES):
        raise error(ValueError, f"cannot open {url!r}: it names no archive; write '{kinds[-1]}://FILE::ARCHIVE'")
    try:
        fsspec = _importing.load("fsspec")
    except ImportError:
        raise error(ImportError, f"{url!r} needs the package fsspec: pip install fsspec") from None
    options = {"skip_instance_cache": True} if fresh else {}
    around = url.partition("::")[2]
    if archived(around):  # an archive in another one is looked at before it is searched, which may unfold it
        check_file(around, *store(around))
    try:
        found: tuple[Any, str] = fsspec.core.url_to_fs(_searched(fsspec, url), **options)
        return found
    except ImportError as problem:
        raise error(ImportError, f"{url!r}: the store {kinds[0]!r} is not installed: {problem}") from problem
    except ValueError as problem:
        raise error(ValueError, f"cannot open {url!r}: {problem}") from problem
    except OSError as problem:  # such as that of an archive that is not there
        let_through(problem)
        raise error(type(problem), f"cannot open {url!r}: {problem}") from problem


def _searched(fsspec: Any, url: str) -> str:
    """The URL with the archives' kinds that are searched here."""
    if not archived(url):
        return url
    from . import _archives

    for kind in (_archives.TarFiles, _archives.ZipFiles):
        fsspec.register_implementation(kind.protocol, kind, clobber=True)
    parts = [part.partition("://") for part in url.split("::")]
    return "::".join(
        f"{_SEARCHED.get(kind.lower(), kind)}{slashes or '://'}{rest}" if slashes or i < len(parts) - 1 else kind
        for i, (kind, slashes, rest) in enumerate(parts)
    )


def check_file(url: str, fs: Any, inner: str) -> None:
    """Refuse a file in an archive that unfolds to more than ``MXCORE_MAX_UNPACKED_BYTES``; other files are taken.

    Parameters
    ----------
    url : str
    fs, inner
        Its store and the path in it, as of `store`.

    Raises
    ------
    MXNetError
        (also ValueError) if it tells of more, or is packed so that it cannot be unfolded in pieces.

    Examples
    --------
    >>> check_file("memory://doc/a.params", *store("memory://doc/a.params"))
    """
    from . import limits

    if any(kind in _ARCHIVES for kind in links(url)[:1]):
        found = fs.info(inner)
        if "compress_type" in found:
            limits.check_packing(found["compress_type"], found["name"], url)
        # What is as large as it lies there needs no limit.
        if found.get("unfolds", True):
            limits.check_unpacked(found["size"] or 0, url)


def facts(info: Mapping[str, Any]) -> tuple[Any, ...]:
    """What of a store's information tells an object from the one that takes its place.

    Examples
    --------
    >>> facts({"size": 3, "ETag": "a"}) == facts({"size": 3, "ETag": "b"})
    False
    """
    return tuple(str(info[key]) if key in info else None for key in _FACTS)


def uncached(found: Any) -> tuple[Any, list[Any]]:
    """The store behind fsspec's caches of whole files, and these: who writes to it drops what they have.

    Examples
    --------
    >>> behind, caches = uncached(store("simplecache::memory://doc/a.params")[0])
    >>> behind.protocol, len(caches)
    ('memory', 1)
    """
    from fsspec.implementations.cached import CachingFileSystem

    caches: list[Any] = []
    while isinstance(found, CachingFileSystem):
        caches.append(found)
        found = found.fs
    return found, caches


def _refuse_to_write(url: str, kinds: list[str]) -> None:
    for kind in kinds:
        if kind in _ARCHIVES:
            raise error(
                OSError,
                f"cannot write {url!r}: archives are read only here, since a file in one cannot be replaced whole; "
                f"write to a folder, and make the {kind} archive of that",
            )
        if kind in _READ_ONLY:
            raise error(OSError, f"cannot write {url!r}: the store {kind!r} is read only; write to another")
