"""RecordIO for mxcore: record files, image record iterators and ``mxcore im2rec``.

The format is MXNet's, and any part works without the others: `mxcore_io_rec.recordio` needs NumPy only.
"""

from __future__ import annotations

from mxcore.plugin import hookimpl

from .digits import digits_files, digits_path
from .records import make_index

__all__ = ["API_VERSION", "digits_files", "digits_path", "make_index"]

API_VERSION = 1

_IMAGES = (
    "ImageRecordInt8Iter",
    "ImageRecordIter",
    "ImageRecordIter_v1",
    "ImageRecordUInt8Iter",
    "ImageRecordUInt8Iter_v1",
)


@hookimpl
def mxcore_iterators() -> dict[str, str]:
    iterators = {name: f"{__name__}.image_iter:{name}" for name in _IMAGES}
    return iterators | {"ImageDetRecordIter": f"{__name__}.det_iter:ImageDetRecordIter"}


@hookimpl
def mxcore_cli() -> dict[str, str]:
    return {"im2rec": f"{__name__}.im2rec"}
