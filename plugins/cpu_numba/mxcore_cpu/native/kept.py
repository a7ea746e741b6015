"""Objects in the cache."""

from __future__ import annotations

import collections
import hashlib
import itertools
from collections.abc import Callable, Iterable

from .. import background
from ..cache import CODE
from .code import Object, identity

__all__ = ["COUNTS", "digest_of", "kept", "name_of", "unkept"]

#: How often this process has "loaded" and "compiled".
COUNTS: collections.Counter[str] = collections.Counter()
_serial = itertools.count()


def name_of(kind: str, parts: Iterable[str]) -> str:
    """A name for code that no other code has: what it depends on beside the sources of this plugin."""
    return f"{kind}_{digest_of(parts, identity())}"


def digest_of(parts: Iterable[str], before: str = "") -> str:
    """A digest of some texts, and of what comes before them."""
    digest = hashlib.sha256(before.encode())
    for part in parts:
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()[:32]


def kept(parts: Iterable[str], kind: str, make: Callable[[str], Object | None], quick: bool = True) -> Object | None:
    """The object of this name, from the cache, or made and put there; None where it cannot be made.

    What is not `quick` to make raises :class:`.background.NotCompiled` where nobody waits for it.
    """
    name = name_of(kind, parts)
    stored = _stored(name)
    if stored is not None:
        return stored
    if not quick:
        background.require()
    with CODE.making(name):
        stored = _stored(name)  # another process may have made it meanwhile
        if stored is not None:
            return stored
        found = make(name)
        COUNTS["compiled"] += 1
        if found is not None:
            CODE.save(name + ".code", found.packed())
        return found


def _stored(name: str) -> Object | None:
    content = CODE.load(name + ".code")
    found = None if content is None else Object.unpacked(content)
    if found is None or found.entry != name:
        return None
    COUNTS["loaded"] += 1
    return found


def unkept(parts: Iterable[str], kind: str, make: Callable[[str], Object | None]) -> Object | None:
    """The same for code that may be another one the next time: it has a name of its own, and is not kept."""
    COUNTS["compiled"] += 1
    return make(name_of(kind, [*parts, f"unkept {next(_serial)}"]))
