"""Where data sets and trained models are kept locally, and where they are published."""

from __future__ import annotations

import os

from ..base import error
from .utils import download

__all__ = ["data_dir", "fetch"]

_PUBLISHED = "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/"


def data_dir(*parts):
    """Path below ``~/.mxnet``, or below the folder in the environment variable ``MXNET_HOME``."""
    return os.path.join(os.environ.get("MXNET_HOME") or os.path.join("~", ".mxnet"), *parts)


def fetch(remote, root, sha1_hash, what):
    """Path of a published file in `root`, downloading it if it is not there.

    Parameters
    ----------
    remote : str
        Path below the place of publication, or below the URL in ``MXNET_GLUON_REPO``.
    root : str
        Local folder.
    sha1_hash : str or None
        Digest that a downloaded file must have.
    what : str
        What the file is part of, for the message.

    Raises
    ------
    MXNetError (FileNotFoundError)
        If it is not there and cannot be downloaded.
    """
    path = os.path.join(root, os.path.basename(remote))
    if os.path.exists(path):
        return path
    base = os.environ.get("MXNET_GLUON_REPO") or _PUBLISHED
    url = base + ("" if base.endswith("/") else "/") + remote
    try:
        return download(url, path, sha1_hash=sha1_hash, retries=1)
    except OSError as e:
        raise error(
            FileNotFoundError,
            f"{what}: {path} is not there and cannot be downloaded. Put the file there, or name the folder "
            f"that has it with root=. ({e})",
        ) from e
