"""The events in tables, in MXNet's form: how often, how long, how much memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..base import error
from .record import Recorder

__all__ = ["Row", "aggregate", "as_json", "as_table"]


class Row:
    """Count, total, minimum and maximum of the values under one name."""

    __slots__ = ("count", "total", "min", "max")

    def __init__(self) -> None:
        self.count, self.total, self.min, self.max = 0, 0.0, float("inf"), float("-inf")

    def add(self, value: float) -> None:
        """Take in a value."""
        self.count += 1
        self.total += value
        self.min, self.max = min(self.min, value), max(self.max, value)

    @property
    def avg(self) -> float:
        """The mean."""
        return self.total / self.count


Sections = dict[str, dict[str, Row]]

_SORTS: dict[str, Callable[[Row], float]] = {
    "total": lambda r: r.total,
    "avg": lambda r: r.avg,
    "min": lambda r: r.min,
    "max": lambda r: r.max,
    "count": lambda r: r.count,
}


def aggregate(recorder: Recorder) -> dict[str, Sections]:
    """Kind ('Memory', 'Time' or 'Value') -> section -> name -> row; kilobytes and milliseconds."""
    found: dict[str, Sections] = {"Memory": {}, "Time": {}, "Value": {}}

    def add(kind: str, section: str, name: str, value: float) -> None:
        found[kind].setdefault(section, {}).setdefault(name, Row()).add(value)

    for label, begin, end, _, value in recorder.snapshot():
        if label.kind == "C":
            if label.section == "memory":
                add("Memory", "Device Storage", label.name, value / 1000)
            else:
                add("Value", label.section, label.name, value)
        elif label.kind == "X":
            add("Time", label.section, label.name, (end - begin) / 1e6)
            if label.bytes > 0:
                add("Memory", "operator outputs", label.name, label.bytes / 1000)
        else:
            add("Value", label.section, label.name, 1)
    return found


def _sorted(rows: dict[str, Row], sort_by: str, ascending: bool) -> list[tuple[str, Row]]:
    key = _SORTS[sort_by]
    return sorted(rows.items(), key=lambda pair: key(pair[1]), reverse=not ascending)


def _checked(sort_by: str) -> None:
    if sort_by not in _SORTS:
        raise error(ValueError, f"dumps: sort_by must be one of {', '.join(_SORTS)}, not {sort_by!r}")


_HEADS = {
    "Memory": ("Min Use  (kB)", "Max Use  (kB)", "Avg Use  (kB)"),
    "Value": ("Min Value", "Max Value", "Avg Value"),
    "Time": ("Time (ms)", "Min Time (ms)", "Max Time (ms)", "Avg Time (ms)"),
}


def as_table(recorder: Recorder, sort_by: str = "total", ascending: bool = False) -> str:
    """The tables as text, a section after the other, in MXNet's columns."""
    _checked(sort_by)
    lines = ["", "Profile Statistics:", "\tNote the difference in units for different entries."]
    for kind, sections in aggregate(recorder).items():
        heads = ("Total Count", *_HEADS[kind])

        def line(name: str, cells: Any, kind: str = kind) -> str:
            return f"{name:<25.60}{cells[0]:>16}" + "".join(f" {c:>16}" for c in cells[1:])

        for section, rows in sorted(sections.items()):
            lines += [section, "=================", line("Name", heads), line("----", ["-" * len(h) for h in heads])]
            for name, r in _sorted(rows, sort_by, ascending):
                values = [r.total, r.min, r.max, r.avg] if kind == "Time" else [r.min, r.max, r.avg]
                lines.append(line(name, [str(r.count), *(f"{v:.4f}" for v in values)]))
            lines.append("")
    return "\n".join(lines) + "\n"


def as_json(recorder: Recorder, sort_by: str = "total", ascending: bool = False) -> str:
    """The tables as JSON: kind -> section -> name -> ``Count``, ``Total``, ``Min``, ``Max``, ``Avg``."""
    _checked(sort_by)
    found: dict[str, Any] = {
        kind: {
            section: {
                name: {"Count": r.count, "Total": r.total, "Min": r.min, "Max": r.max, "Avg": r.avg}
                for name, r in _sorted(rows, sort_by, ascending)
            }
            for section, rows in sorted(sections.items())
        }
        for kind, sections in aggregate(recorder).items()
    }
    found["Unit"] = {"Time": "ms", "Memory": "kB"}
    return json.dumps(found, indent=4)
