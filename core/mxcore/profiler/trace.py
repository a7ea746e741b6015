"""The events as a trace for chrome://tracing, Perfetto and speedscope."""

from __future__ import annotations

import json
from typing import Any

from .._io_files import write_atomic
from .record import Recorder

__all__ = ["SCOPES", "trace", "write_trace"]

#: The shapes that an event has in the trace, by kind.
SCOPES = {"process": "p", "global": "g", "thread": "t", "task": "t", "marker": "p"}


def trace(recorder: Recorder) -> dict[str, Any]:
    """The trace as plain values: one process a device and one for Python, times in microseconds."""
    rows: list[dict[str, Any]] = []
    pids: dict[str, int] = {}
    threads: set[tuple[int, int]] = set()
    base = recorder.base
    for label, begin, end, tid, value in recorder.snapshot():
        pid = pids.setdefault(label.where, len(pids))
        threads.add((pid, tid))
        row: dict[str, Any] = {
            "name": label.name,
            "cat": label.section,
            "ph": label.kind,
            "ts": (begin - base) / 1000,
            "pid": pid,
            "tid": tid,
        }
        args = dict(label.args or {})
        if label.kind == "X":
            row["dur"] = (end - begin) / 1000
            if label.bytes > 0:
                args["bytes"] = label.bytes
        elif label.kind == "C":
            args = {label.name: value}
        else:
            row["s"] = SCOPES[value]
        if args:
            row["args"] = args
        rows.append(row)
    names: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": where}} for where, pid in pids.items()
    ]
    names += [
        {
            "ph": "M",
            "name": "thread_name",
            "pid": pid,
            "tid": tid,
            "args": {"name": recorder.thread_names.get(tid, f"thread {tid}")},
        }
        for pid, tid in sorted(threads)
    ]
    rows.sort(key=lambda r: r["ts"])
    return {"traceEvents": names + rows, "displayTimeUnit": "ms"}


def write_trace(recorder: Recorder, filename: str) -> None:
    """Write the trace to a file or URL, wholly or not at all."""
    write_atomic(filename, json.dumps(trace(recorder)).encode())
