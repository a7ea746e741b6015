"""Another engine for the length of a test."""

from __future__ import annotations

from .._core.engine import ENGINES, Engine, ThreadedEnginePerDevice, engine

__all__ = ["use_engine"]


def use_engine(new: Engine | str) -> Engine:
    """Exchange the engine, after draining the old one; returns the old one.

    Parameters
    ----------
    new : Engine or str
        An engine, or the name of one.

    Returns
    -------
    Engine

    Examples
    --------
    >>> old = use_engine("NaiveEngine")
    >>> type(use_engine(old)).__name__
    'NaiveEngine'
    """
    old: Engine = engine.it
    if isinstance(old, ThreadedEnginePerDevice):
        old.drain()
    engine.it = ENGINES[new]() if isinstance(new, str) else new
    return old
