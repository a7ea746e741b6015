"""RecordIO files: ``mx.recordio``, brought by the bundled plugin ``io_rec``.

>>> import mxcore as mx
>>> with mx.recordio.MXRecordIO("memory://doc/face.rec", "w") as record:
...     record.write(mx.recordio.pack(mx.recordio.IRHeader(0, 3.0, 7, 0), b"image"))
>>> header, image = mx.recordio.unpack(mx.recordio.MXRecordIO("memory://doc/face.rec", "r").read())
>>> header.label, image
(3.0, b'image')
"""

from __future__ import annotations

from typing import Any

from . import _importing
from ._reexports import reexports

_PLUGIN = "mxcore_io_rec.recordio"

__all__ = ["IRHeader", "MXIndexedRecordIO", "MXRecordIO", "pack", "pack_img", "unpack", "unpack_img"]  # noqa: F822 (found by __getattr__)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        plugin = _importing.load(_PLUGIN)
    except ImportError as e:
        from .base import error

        raise error(ImportError, f"mxcore.recordio needs the plugin io_rec, which cannot be imported: {e}") from e
    try:
        found = getattr(plugin, name)
    except AttributeError:
        return reexports(__name__)(name)
    globals()[name] = found  # found directly from now on
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
