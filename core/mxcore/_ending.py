"""The end of the process: what is pending ends first, and what finalizers ask for behind it is done at once.

The interpreter stops the engine's workers before it drops the last objects, whose finalizers may wait for an array.
"""

from __future__ import annotations

import atexit

from ._core.engine import NaiveEngine, ThreadedEnginePerDevice, engine

#: Seconds for what is pending: it may never end.
_PATIENCE = 30


@atexit.register
def _end() -> None:
    if isinstance(engine.it, ThreadedEnginePerDevice):
        engine.it.drain(_PATIENCE)
    engine.it = NaiveEngine()
