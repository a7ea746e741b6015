"""Names of files: whether they can be any, where they lie on this machine, and errors that tell of them.

This is what `_io_files`, which opens files, and `drafts`, which replaces them, both stand on.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

from ._interrupts import let_through
from .base import MXNetError, error
from .urls import LOCAL, PathLike, is_folder, is_url, text_of

__all__ = ["OURS", "checked", "explained", "local_path"]

#: How the names of all drafts begin.
OURS = ".mxcore-"


def checked(path: PathLike, what: str = "a file name", empty: bool = False) -> str:
    """Return what names a file as a string, or say that it cannot.

    Parameters
    ----------
    path : str or os.PathLike
    what : str
        The argument, for errors.
    empty : bool
        Whether it may be empty, as what file names begin with may.

    Returns
    -------
    str

    Raises
    ------
    MXNetError
        (also TypeError) if it is neither a string nor a path, or empty; (also ValueError) if no file can have such a
        name.

    Examples
    --------
    >>> checked("a.params")
    'a.params'
    """
    name = text_of(path, what)
    if not name and not empty:
        raise error(TypeError, f"{what} must be a non-empty string or a path, not {name!r}")
    try:
        possible = b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise error(ValueError, f"no file can have the name {ascii(name)}")
    return name


def local_path(path: PathLike) -> str:
    """Return `path` as a plain local path, ``file://`` removed and ``~`` expanded.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or a ``file://`` URL.

    Returns
    -------
    str

    Raises
    ------
    MXNetError
        (also TypeError) if `path` is not a string or a path.

    Examples
    --------
    >>> local_path("file:///data/a.params")
    '/data/a.params'
    """
    text = text_of(path)
    if is_url(text):
        raise error(ValueError, f"{text!r} is a URL; a file or folder on this machine is needed here")
    scheme, slashes, rest = text.partition("://")
    if slashes and scheme.lower() in LOCAL:
        text = rest
        if re.match(r"/[A-Za-z]:[\\/]", text):
            text = text[1:]
    return os.path.expanduser(text) if text.startswith("~") else text


@contextlib.contextmanager
def explained(name: str, verb: str, foreign: bool = False) -> Iterator[None]:
    """Turn OSErrors into library errors that keep their class and name the file.

    `foreign` turns everything into them: remote stores have errors of their own.
    """
    try:
        yield
    except MXNetError:
        raise
    except OSError as problem:
        let_through(problem)
        new = error(type(problem), f"cannot {verb} {name!r}: {_reason(name, problem)}")
        new.errno = problem.errno  # type: ignore[attr-defined]  # as the class is an OSError's, too
        try:
            raise new from _outside(problem)
        finally:
            del new  # else its traceback holds this frame, and with it all that its callers have open
    except Exception as problem:
        let_through(problem)
        if not foreign:
            raise
        kind = type(problem).__name__
        raise error(OSError, f"cannot {verb} {name!r}: {kind}: {problem}") from _outside(problem)


def _outside(problem: Exception) -> Exception:
    """A problem without the frame of the generator that it was thrown into: behind that is one which holds it."""
    tb = problem.__traceback__
    return problem.with_traceback(tb and tb.tb_next)


def _reason(name: str, problem: OSError) -> str:
    reason = problem.strerror or str(problem) or type(problem).__name__
    path = None if is_url(name) else local_path(name)
    if problem.filename not in (None, path) and OURS not in str(problem.filename):
        reason = str(problem)  # it is about another file
    if path and isinstance(problem, FileNotFoundError):
        folder = os.path.dirname(path) or "."
        if not is_folder(folder):
            return f"the folder {folder!r} does not exist"
        if not os.path.isabs(path):
            try:
                return f"{reason} (looked in {os.getcwd()!r})"
            except OSError as e:
                let_through(e)
                return f"{reason}: the folder in which this process works does not exist any more"
    return reason
