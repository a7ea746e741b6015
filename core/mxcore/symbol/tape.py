"""The recorded computation of an array as a symbol."""

from __future__ import annotations

from typing import Any

from .._core.array import Array
from .._core.errors import error
from .._core.graph import Node, variable
from .symbol import Symbol

__all__ = ["from_tape"]


def from_tape(x: Any) -> Symbol:
    """The graph that the tape holds for an array; variables are named ``var0``, ``var1`` …"""
    if not isinstance(x, Array):
        raise error(TypeError, f"get_symbol: x must be an NDArray, got {type(x).__name__}")
    if x._entry is None:
        raise error(ValueError, "get_symbol: the array is not in a recorded graph")
    done: dict[int, Node] = {}
    stack = [x._entry[0]]
    count = 0
    while stack:
        n = stack[-1]
        if id(n) in done:
            stack.pop()
            continue
        if n.plan is None and len(stack) == 1 and n.op is not None:
            raise error(RuntimeError, "get_symbol: the graph was freed by backward()")
        entries = n.inputs if n.plan is not None else ()  # what was freed is a constant to the graphs that use it
        todo = [e[0] for e in entries if e is not None and id(e[0]) not in done]
        if todo:
            stack += reversed(todo)
            continue
        stack.pop()
        if n.plan is None:
            done[id(n)] = variable(f"var{count}")
            count += 1
        else:
            inputs = []
            for e in entries:
                if e is None:
                    inputs.append((variable(f"var{count}"), 0))
                    count += 1
                else:
                    inputs.append((done[id(e[0])], e[1]))
            done[id(n)] = Node(n.op, n.params, inputs, f"{n.op.name.lower()}{len(done)}")
    node, i = x._entry
    return Symbol([(done[id(node)], i)])
