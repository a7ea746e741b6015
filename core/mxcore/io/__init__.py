"""Data iterators: ``mx.io``.

Those over arrays and plain files live here; others, such as `ImageRecordIter`, come from plugins through
the hook ``mxcore_iterators`` and appear under their names.

>>> import mxcore as mx
>>> it = mx.io.NDArrayIter(mx.nd.ones((10, 2)), batch_size=4)
>>> [b.pad for b in it]
[0, 0, 2]
"""

from __future__ import annotations

from typing import Any

from .. import kinds
from .._core import tables as _tables
from ..base import MXNetError
from .csv_iter import CSVIter
from .cursor import BatchCursor
from .data_batch import DataBatch
from .data_desc import DataDesc
from .data_iter import DataIter
from .lib_svm_iter import LibSVMIter
from .mnist_iter import MNISTIter
from .mx_data_iter import MXDataIter
from .nd_array_iter import NDArrayIter
from .prefetching_iter import PrefetchingIter
from .resize_iter import ResizeIter

__all__ = [
    "BatchCursor",
    "CSVIter",
    "DataBatch",
    "DataDesc",
    "DataIter",
    "LibSVMIter",
    "MNISTIter",
    "MXDataIter",
    "NDArrayIter",
    "PrefetchingIter",
    "ResizeIter",
]


_STOCK = {name: globals()[name] for name in __all__}


def _prefer() -> None:
    """Show ours, but for those in whose place MXCORE_PREFER puts a plugin's, which is imported when it is asked for."""
    owners = _tables.by_kind["iterator"].owners
    for name, ours in _STOCK.items():
        if owners.get(name, "stock") == "stock":
            globals()[name] = ours
        else:
            globals().pop(name, None)


_tables.on_change.append(_prefer)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in kinds.names("iterator"):
        try:
            return kinds.lookup("iterator", name)
        except MXNetError:
            if name not in _STOCK:
                raise
            return _STOCK[name]  # the registry remembers why
    from .._core.errors import suggest

    known = {*__all__, *kinds.names("iterator")}
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}{suggest(name, known)}; iterators of "
        f"plugins appear once the plugin is installed (`mxcore plugins` lists them){_tables.why()}"
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *kinds.names("iterator")})
