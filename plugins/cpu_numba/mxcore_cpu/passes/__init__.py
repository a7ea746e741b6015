"""Graph passes: what several operators compute together on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxcore.plugin import Node, find_op

__all__ = ["DEVICES", "stand_in"]

#: The devices of the host's memory, for which the kernels and passes are.
DEVICES = ("cpu", "cpu_pinned", "cpu_shared")


def stand_in(op: str, params: dict[str, Any], inputs: Sequence[tuple[Node, int]], like: Node) -> Node:
    """A node of another operator in the place of one, whose name and attributes it has."""
    found = find_op(op)
    return Node(found, found.parse(params), inputs, like.name, like.attrs)
