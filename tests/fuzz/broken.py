"""Readers that do what the kit must find, in the place of the formats."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from . import child, formats
from .formats import Format


def _fault() -> None:
    raise KeyError("raw")


def _hang() -> None:
    time.sleep(1000)


def _crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _hungry() -> None:
    bytearray(1 << 40)


def _format(misdeed: Callable[[], None]) -> Format:
    def read(folder: Path) -> None:
        if (folder / "a").read_bytes() != b"sound":
            misdeed()

    return Format(lambda: [{"a": b"sound"}], read)


BROKEN = {"fault": _format(_fault), "hang": _format(_hang), "crash": _format(_crash), "hungry": _format(_hungry)}

if __name__ == "__main__":
    formats.FORMATS.update(BROKEN)
    given = json.loads(sys.argv[1])
    child.serve(given["names"], given["seed"], given["first"], Path(given["folder"]), given["memory"])
