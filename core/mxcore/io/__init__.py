"""Data iterators: ``mx.io``.

Those over arrays and plain files live here; others, such as `ImageRecordIter`, come from plugins through
the hook ``mxcore_iterators`` and appear under their names.

>>> import mxcore as mx
>>> it = mx.io.NDArrayIter(mx.nd.ones((10, 2)), batch_size=4)
>>> [b.pad for b in it]
[0, 0, 2]
"""

from __future__ import annotations

from .csv_iter import CSVIter
from .cursor import BatchCursor
from .data_batch import DataBatch
from .data_desc import DataDesc
from .data_iter import DataIter
from .mnist_iter import MNISTIter
from .mx_data_iter import MXDataIter
from .nd_array_iter import NDArrayIter
from .prefetching_iter import PrefetchingIter
from .resize_iter import ResizeIter

__all__ = ["BatchCursor", "CSVIter", "DataBatch", "DataDesc", "DataIter", "MNISTIter", "MXDataIter",
           "NDArrayIter", "PrefetchingIter", "ResizeIter"]  # fmt: skip


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .._core import registry

    if name in registry.names("iterator"):
        return registry.lookup("iterator", name)
    from .._core.errors import suggest

    known = {*__all__, *registry.names("iterator")}
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}{suggest(name, known)}; iterators of "
        "plugins appear once the plugin is installed (`mxcore plugins` lists them)"
    )


def __dir__():
    from .._core import registry

    return sorted({*globals(), *registry.names("iterator")})
