"""Facts about the machine that a table of figures needs, and none that name it."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

#: Sets of instructions that decide about speed, as Linux calls them.
INSTRUCTIONS = ("avx2", "fma", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_bf16", "asimd", "sve", "bf16")


def facts():
    """(what, value) pairs."""
    told = {}
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            told.setdefault(name.strip(), value.strip())
    except OSError:
        pass
    flags = told.get("flags", told.get("Features", "")).split()
    return [
        ("processor", told.get("model name") or platform.processor() or platform.machine()),
        ("cores", str(usable())),
        ("instructions", ", ".join(f for f in INSTRUCTIONS if f in flags) or "not told"),
        ("system", f"{platform.system()} {platform.machine()}"),
        ("date", time.strftime("%Y-%m-%d")),
    ]


def usable():
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
