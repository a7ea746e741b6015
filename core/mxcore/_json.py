"""JSON from files and users, and texts on their way into files: one way to read, one way to write them."""

from __future__ import annotations

import json
import re
from typing import Any

from .base import error

__all__ = ["decode", "encode"]

#: Half of a character: JSON can write it, UTF-8 cannot.
_HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


def decode(text: str | bytes, called: str) -> Any:
    """The value of a JSON text.

    Parameters
    ----------
    text : str or bytes
        Bytes are UTF-8.
    called : str
        What errors call it, the name of a file most often.

    Raises
    ------
    MXNetError
        (also ValueError) if it is no JSON, nested too deep, or holds halves of characters (``"\\ud800"``), which no
        file can hold; (also TypeError) if it is no text.

    Examples
    --------
    >>> decode('{"a": [1, true]}', "the note")
    {'a': [1, True]}
    """
    if not isinstance(text, (str, bytes, bytearray)):
        raise error(TypeError, f"{called}: JSON is read from a str, got {type(text).__name__}")
    try:
        text = text if isinstance(text, str) else text.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise error(ValueError, f"{called} is no JSON text: {e}; it must be UTF-8") from None
    try:
        found = json.loads(text, strict=False)  # MXNet writes control characters as they are
    except (ValueError, RecursionError) as e:
        raise error(ValueError, f"{called} is no JSON: {e or 'nested too deep'}") from None
    if _HALF.search(text):
        encode(json.dumps(found, ensure_ascii=False), called)
    return found


def encode(text: str, called: str) -> bytes:
    """A text in UTF-8.

    Parameters
    ----------
    text : str
    called : str
        What errors call it.

    Raises
    ------
    MXNetError
        (also ValueError) if it holds half of a character, which UTF-8 cannot write.

    Examples
    --------
    >>> encode("höhe", "a name")
    b'h\\xc3\\xb6he'
    """
    try:
        return text.encode()
    except UnicodeEncodeError as e:
        near = ascii(text[max(0, e.start - 20) : e.start + 20])
        raise error(
            ValueError, f"{called} holds half of a character at {near}, which UTF-8 cannot write; name it otherwise"
        ) from None
