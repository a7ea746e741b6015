"""What stands in front of an array in NumPy's ``.npy`` format, read from files that anybody may have made."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from ._interrupts import let_through
from .limits import read_up_to

__all__ = ["read_header"]

#: Version -> bytes that tell the header's length, and NumPy's reader of what follows them; later versions are for
#: names of fields.
_VERSIONS = {(1, 0): (2, np.lib.format.read_array_header_1_0), (2, 0): (4, np.lib.format.read_array_header_2_0)}
#: Characters that tell of numbers of up to 64 dimensions. NumPy takes ten times as many and, for what Python cannot
#: parse, time that grows with their square: some ten seconds.
_LONGEST = 1024
#: Bytes with blanks behind them, by which some writers leave room for a longer shape.
_PADDED = 1 << 16


def read_header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read on until the bytes of the array begin: its shape, whether it is in Fortran's order, and its dtype.

    Raises
    ------
    ValueError
        if these are no such header, or a longer one than arrays of numbers have.

    Examples
    --------
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> np.save(file, np.zeros((2, 3), "float32"))
    >>> _ = file.seek(0)
    >>> read_header(file)
    ((2, 3), False, dtype('float32'))
    """
    try:
        version = np.lib.format.read_magic(stream)
        if version not in _VERSIONS:
            raise ValueError(f"version {version} of NumPy's format is for arrays of fields")
        digits, read = _VERSIONS[version]
        told = int.from_bytes(stream.read(digits), "little")
        header = read_up_to(stream, min(told, _PADDED))
        text = header.rstrip()
        if told > _PADDED or len(text) > _LONGEST:
            raise ValueError(f"its header has {told} bytes; that of an array of numbers has fewer than {_LONGEST}")
        if len(header) < told:
            raise ValueError(f"its header ends {told - len(header)} bytes early")
        shape, fortran, dtype = read(io.BytesIO(len(text).to_bytes(digits, "little") + text))
    except Exception as e:  # damaged headers raise anything
        let_through(e)
        raise ValueError(str(e) or "its header cannot be read") from e
    return shape, fortran, dtype
