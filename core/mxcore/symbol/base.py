"""What all symbols hold: heads, which are entries of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._core.errors import error
from .._core.graph import Node
from ..ops.common.python_operators import arithmetic
from . import outputs

__all__ = ["Entry", "SymbolBase", "output_name"]

#: A node and the index of one of its outputs.
Entry = tuple[Node, int]


def output_name(e: Entry) -> str:
    """``<node>_<output>``, or the name of a variable."""
    n, i = e
    return n.name if n.op is None else f"{n.name}_{outputs.label(n, i)}"


@arithmetic
class SymbolBase:
    """One or several outputs of a graph: what composition needs to know of a symbol."""

    __slots__ = ("_heads",)
    #: What puts itself before the inputs of nodes that users make (mixed precision): (operator, parameters, entries) ->
    #: entries.
    before: Callable[..., list[Entry]] | None = None

    def __init__(self, heads: Sequence[Entry] | None) -> None:
        self._heads = list(heads or ())  # None is what MXNet's pickles give before their state

    def list_outputs(self) -> list[str]:
        """Names of the outputs: ``<node>_<output>``, or the name of a variable."""
        return [output_name(e) for e in self._heads]

    def _entry(self) -> Entry:
        """The only output."""
        if len(self._heads) != 1:
            raise error(
                ValueError,
                f"one output is needed here, this symbol has {len(self._heads)}: {self.list_outputs()}; choose one",
            )
        return self._heads[0]
