"""What the namespace says of itself: devices, dtypes, capabilities."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ...._core import tables
from ...._core.context import Context, current_context
from ...._core.errors import error
from . import data_types
from .arguments import default_dtype, kind_of, place

__all__ = ["Info"]

_NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()


class Info:
    """What the namespace of the standard says of itself, as ``__array_namespace_info__()`` gives it.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> info = xp.__array_namespace_info__()
    >>> info.default_dtypes()["real floating"]
    dtype('float32')
    >>> info.dtypes(kind="unsigned integer")["uint8"]
    dtype('uint8')
    """

    def capabilities(self) -> dict[str, Any]:
        """What arrays can do: index by truth values, have shapes that depend on values, so many dimensions.

        Returns
        -------
        dict
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Context:
        """Where new arrays are: the current context.

        Returns
        -------
        Context
        """
        return current_context()

    def devices(self) -> list[Context]:
        """The contexts that there are.

        Returns
        -------
        list of Context
        """
        found = [current_context()]
        for name in tables.devices.names():
            count = tables.devices.get(name).count()
            # Memory of the host goes by as many indices as one likes.
            found += [
                ctx for i in range(1 if count == sys.maxsize else count) if (ctx := Context(name, i)) not in found
            ]
        return found

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of new arrays where none is asked for; of complex numbers there is none.

        Parameters
        ----------
        device : Context, optional
            Has no effect: all have the same.

        Returns
        -------
        dict
        """
        place("default_dtypes", device)
        whole = default_dtype("i")
        return {"real floating": default_dtype("f"), "integral": whole, "indexing": whole}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype[Any]]:
        """The dtypes that arrays have, by name.

        Parameters
        ----------
        device : Context, optional
            Those of the device; the current context unless told.
        kind : str or tuple of str, optional
            Only of these kinds, as `isdtype` knows them.

        Returns
        -------
        dict
        """
        ctx = place("dtypes", device) or current_context()
        wanted = None if kind is None else kind if isinstance(kind, tuple) else (kind,)
        if wanted is not None and not set(wanted) <= data_types.KINDS.keys():
            known = ", ".join(map(repr, data_types.KINDS))
            raise error(ValueError, f"dtypes: kind must be of {known}, or a tuple of these, got {kind!r}")
        there = ctx.device.dtypes
        found = {name: getattr(data_types, name) for name in _NAMES}
        return {
            name: t
            for name, t in found.items()
            if (wanted is None or any(kind_of(t) in data_types.KINDS[k] for k in wanted))
            and (there is None or t in there)
        }
