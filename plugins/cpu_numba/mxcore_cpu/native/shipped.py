"""Bodies that come with the package in LLVM's language: of them only machine code has to be made, without Numba.

Numba takes half a second to import, and most of a kernel's time to compile is spent before LLVM begins. What everyday
use needs (``mxcore warm``) was brought as far as that once; ``tools/make_bodies.py`` does it. A body is used if its key
says that it was made of the very source, and for the arguments, that are asked for; else Numba compiles as ever.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mxcore.plugin import let_through

from .code import binding
from .kept import digest_of

__all__ = ["ENTRY", "FILE", "find", "key_of", "packed", "parsed_body", "unpacked"]

#: System and processor that Numba wrote for.
_FOR = "linux", "x86_64"
FILE = Path(__file__).with_name("bodies.x86_64-linux")
#: What the function is called that others call.
ENTRY = "mxcore_body"


def key_of(parts: Sequence[str], stamp: str) -> str:
    """The key of a body: what it is of, for which arguments, and the stamp of its source."""
    return digest_of((*parts, stamp))


def find(parts: Sequence[str], stamp: str | None) -> bytes | None:
    """The body as LLVM's bitcode; None where none was brought.

    Parameters
    ----------
    parts : sequence of str
        Kind, names, and the words of its arguments.
    stamp : str or None
        Of its source.
    """
    if stamp is None:
        return None
    keys, bodies = _brought()
    i = keys.get(key_of(parts, stamp))
    return None if i is None else bodies[i]


@functools.cache
def _brought() -> tuple[dict[str, int], list[bytes]]:
    if os.environ.get("MXCORE_BODIES", "1").strip() == "0" or (sys.platform, platform.machine()) != _FOR:
        return {}, []
    try:
        head, bodies = unpacked(FILE.read_bytes())
        binding().parse_bitcode(bodies[0])  # an older LLVM may not read what a newer one wrote
    except (OSError, ImportError, ValueError, EOFError, RuntimeError, LookupError) as e:
        let_through(e)
        return {}, []
    return head["keys"], bodies


def packed(head: dict[str, Any], bodies: Sequence[bytes]) -> bytes:
    """The file: a digest of the rest, a line that tells `head` and sizes, and all bodies, compressed together."""
    import lzma

    line = json.dumps({**head, "sizes": [len(b) for b in bodies]}, sort_keys=True).encode()
    rest = line + b"\n" + lzma.compress(b"".join(bodies), preset=9)
    return hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def unpacked(content: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """What :func:`packed` was given; ValueError for anything else."""
    import lzma  # some Pythons come without it

    digest, _, rest = content.partition(b"\n")
    if hashlib.sha256(rest).hexdigest().encode() != digest:
        raise ValueError("the file of bodies is damaged")
    line, _, rest = rest.partition(b"\n")
    head = json.loads(line)
    whole = lzma.decompress(rest)
    bodies, at = [], 0
    for size in head["sizes"]:
        bodies.append(whole[at : at + size])
        at += size
    return head, bodies


def parsed_body(content: bytes, name: str) -> Any:
    """A body, whose entry gets a name."""
    module = binding().parse_bitcode(content)
    module.get_function(ENTRY).name = name
    return module
