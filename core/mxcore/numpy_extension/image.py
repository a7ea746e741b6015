"""Pictures, for arrays of ``mx.np``; as ``mx.npx.image``.

Reading, augmenters and iterators are those of :mod:`mxcore.image`; operators of images are those of ``mx.nd.image``,
which give arrays of ``mx.np`` for such.
"""

from __future__ import annotations

from typing import Any

from .. import image as _image
from .._reexports import reexports
from ..ndarray import image as _operators

__all__: list[str] = []

_others = reexports(__name__)


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        for module in (_operators, _image):
            if name in dir(module):
                return getattr(module, name)
    return _others(name)


def __dir__() -> list[str]:
    return sorted({*dir(_operators), *dir(_image)})
