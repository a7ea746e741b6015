"""Loggers with MXNet's format, as ``mxnet.log``."""

from __future__ import annotations

import logging
import warnings
from logging import CRITICAL, DEBUG, ERROR, INFO, NOTSET, WARNING

__all__ = ["CRITICAL", "DEBUG", "ERROR", "INFO", "NOTSET", "WARNING", "getLogger", "get_logger"]

_RED, _GREEN, _BLUE, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[34m", "\x1b[0m"


class _Formatter(logging.Formatter):
    """``I0102 12:34:56 pid file:function:line] text``, with a colour for the level."""

    def format(self, record: logging.LogRecord) -> str:
        level = record.levelno
        colour = _RED if level >= WARNING else _GREEN if level >= INFO else _BLUE
        when = self.formatTime(record, "%m%d %H:%M:%S")
        letter = record.levelname[:1] if level in (CRITICAL, ERROR, WARNING, INFO, DEBUG) else "U"
        where = f"{record.process} {record.pathname}:{record.funcName}:{record.lineno}"
        text = f"{colour}{letter}{when} {where}]{_PLAIN} {record.getMessage()}"
        return text + ("\n" + self.formatException(record.exc_info) if record.exc_info else "")


def get_logger(
    name: str | None = None, filename: str | None = None, filemode: str | None = None, level: int = WARNING
) -> logging.Logger:
    """A logger that writes to the standard error stream in colour, or plain lines to a file.

    Parameters
    ----------
    name : str, optional
        The root logger, without a handler of its own, unless told.
    filename : str, optional
        File to write to.
    filemode : str, optional
        ``'a'`` unless told.
    level : int

    Returns
    -------
    logging.Logger
        It gets its handler at the first call; later calls set nothing anew but find it.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.log.get_logger("training", level=mx.log.INFO).level == mx.log.INFO
    True
    """
    logger = logging.getLogger(name)
    if name is not None and not getattr(logger, "_init_done", None):
        logger._init_done = True  # type: ignore[attr-defined]
        handler: logging.Handler
        if filename:
            handler = logging.FileHandler(filename, filemode or "a")
        else:
            handler = logging.StreamHandler()
            handler.setFormatter(_Formatter())
        logger.addHandler(handler)
        logger.setLevel(level)
    return logger


def getLogger(
    name: str | None = None, filename: str | None = None, filemode: str | None = None, level: int = WARNING
) -> logging.Logger:
    """Old name of :func:`get_logger`."""
    warnings.warn("mx.log.getLogger is old; call mx.log.get_logger", DeprecationWarning, stacklevel=2)
    return get_logger(name, filename, filemode, level)
