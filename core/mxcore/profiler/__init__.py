"""Which operator takes how long and how much memory, as ``mxnet.profiler``.

    mx.profiler.set_config(profile_all=True, filename="profile.json")
    mx.profiler.set_state("run")
    ...
    print(mx.profiler.dumps())      # tables
    mx.profiler.dump()              # a trace for Perfetto or chrome://tracing

`observer` watches calls while the profiler runs, so it costs nothing while it does not; `record` holds the events,
`trace` and `tables` show them, `objects` are what a program adds of its own.
"""

from typing import Any

from .._reexports import reexports
from . import control
from .control import (
    autostart,
    dump,
    dump_profile,
    dumps,
    pause,
    profiler_set_config,
    profiler_set_state,
    resume,
    set_config,
    set_kvstore_handle,
    set_state,
    start,
    state,
    stop,
)
from .objects import Counter, Domain, Event, Frame, Marker, Task, scope

__all__ = [
    "Counter",
    "Domain",
    "Event",
    "Frame",
    "Marker",
    "Task",
    "autostart",
    "dump",
    "dump_profile",
    "dumps",
    "pause",
    "profiler_kvstore_handle",
    "profiler_set_config",
    "profiler_set_state",
    "resume",
    "scope",
    "set_config",
    "set_kvstore_handle",
    "set_state",
    "start",
    "state",
    "stop",
]


def __getattr__(name: str) -> Any:
    if name == "profiler_kvstore_handle":  # as it is now
        return control.profiler_kvstore_handle
    return reexports(__name__)(name)
