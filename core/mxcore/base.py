"""Errors and small things that MXNet keeps in ``mxnet.base``."""
from ._core.errors import MXNetError, MXNetWarning, error

__all__ = ["MXNetError", "MXNetWarning", "error"]
