"""A pytest plugin with the options of the conformance kit; opt in with ``-p mxcore.testing.plugin``."""
from __future__ import annotations

from typing import Any

__all__ = ["pytest_addoption"]


def pytest_addoption(parser: Any) -> None:
    """Add ``--device``, ``--ops`` and ``--xfails-file``."""
    group = parser.getgroup("mxcore", "the conformance kit of mxcore")
    group.addoption("--device", default="cpu", help="where to run, e.g. cpu or gpu(1)")
    group.addoption("--ops", default="*", help="patterns of operator names, separated by blanks or commas")
    group.addoption("--xfails-file", default=None, help="expected failures, a line each: operator check reason")
