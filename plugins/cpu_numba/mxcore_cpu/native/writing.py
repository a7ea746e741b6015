"""Small forms for what is written in LLVM's language."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["counting", "word"]


@contextlib.contextmanager
def counting(b: Any, at: Any, end: Any, by: Any) -> Iterator[Any]:
    """A loop while the number at a place is below `end`; its body, under this, gets the number."""
    test, body, after = (b.append_basic_block() for _ in range(3))
    b.branch(test)
    b.position_at_end(test)
    i = b.load(at)
    b.cbranch(b.icmp_signed("<", i, end), body, after)
    b.position_at_end(body)
    yield i
    b.store(b.add(i, by), at)
    b.branch(test)
    b.position_at_end(after)


def word(b: Any, address: Any, i: Any, kind: Any) -> Any:
    """The i-th number of a kind at an address."""
    return b.load(b.gep(b.inttoptr(address, kind.as_pointer()), [i]))
