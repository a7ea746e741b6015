"""The graph IR: nodes over entries, shared by symbols, the tape's gradients and lowered programs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from .checks import checked
from .errors import error
from .kernels import ranks
from .op import Op
from .params import Params

__all__ = ["Node", "Graph", "topo", "GraphPass", "STOCK_PASSES", "variable"]


class Node:
    """One node: a variable (``op is None``) or an operator over entries.

    Attributes
    ----------
    op : Op or None
    params : Params or None
    inputs : tuple of (Node, int)
        Entries: a node and the index of one of its outputs.
    name : str
    attrs : dict of str
        Attributes beside the operator's parameters: ``ctx_group``, ``__lr_mult__``, …
    serial : int
        Counts the nodes as they are made.
    forward : Node or None
        For a node that belongs to the gradient of a stateful node: that node, whose state it gets.
    made_by : str
        The graph pass of a plugin that made it, for errors.
    """

    __slots__ = ("op", "params", "inputs", "name", "attrs", "forward", "made_by", "serial", "__weakref__")
    _serial = itertools.count()

    def __init__(
        self,
        op: Op | None,
        params: Params | None,
        inputs: Sequence[tuple[Node, int]],
        name: str,
        attrs: dict[str, str] | None = None,
        forward: Node | None = None,
    ) -> None:
        self.op: Any = op
        self.params: Any = params
        self.inputs = tuple(inputs)
        self.name = name
        self.attrs = attrs or {}
        self.forward = forward
        self.made_by = ""
        self.serial = next(Node._serial)

    @property
    def n_out(self) -> int:
        return 1 if self.op is None else int(self.params._sig.n_out)

    def __repr__(self) -> str:
        return f"<{'Variable' if self.op is None else self.op.name} {self.name}>"


def variable(name: str, **attrs: str) -> Node:
    """A variable node."""
    return Node(None, None, (), name, dict(attrs))


def topo(entries: Iterable[tuple[Node, int]]) -> list[Node]:
    """Nodes below the entries, inputs first, in MXNet's order (depth first, inputs from left to right)."""
    order: list[Node] = []
    met, listed = set[Node](), set[Node]()
    for head, _ in entries:
        stack = [head]
        while stack:
            node = stack[-1]
            if node not in met:
                met.add(node)
                stack += () if node.forward is None else (node.forward,)
                stack += [m for m, _ in node.inputs[::-1] if m not in met]
                continue
            stack.pop()  # all below it is listed; it may have been put there several times
            if node not in listed:
                listed.add(node)
                order.append(node)
    return order


class Graph:
    """Heads over nodes, with what passes found out.

    Attributes
    ----------
    heads : list of (Node, int)
    shapes, dtypes, stypes : dict
        Entry -> value, filled by the inference passes.
    info : dict
        Whatever passes want to tell later ones.
    """

    def __init__(self, heads: Sequence[tuple[Node, int]]) -> None:
        self.heads = list(heads)
        self.shapes: dict[Any, Any] = {}
        self.dtypes: dict[Any, Any] = {}
        self.stypes: dict[Any, str] = {}
        self.info: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<Graph of {len(self.nodes)} nodes>"

    @property
    def nodes(self) -> list[Node]:
        """All nodes, inputs first."""
        return topo(self.heads)

    def variables(self) -> list[Node]:
        """Variable nodes in order of first use."""
        return [n for n in self.nodes if n.op is None]


#: The passes of the executor, in their order -> what they do. They are switched off by their names, so no other pass
#: may have them.
STOCK_PASSES: dict[str, str] = {
    "simplify": "operators that change nothing vanish; equal ones are computed once",
    "mirror": "results are computed again in backward instead of being kept "
    "(MXNET_BACKWARD_DO_MIRROR, force_mirroring)",
    "fuse": "chains of elementwise operators become one kernel",
    "plan": "results share memory where their lifetimes allow it",
}


class GraphPass:
    """A named graph pass.

    Parameters
    ----------
    name : str
    order : int or None
        Passes run over every graph that is bound, by ascending order. One with None runs only where it is asked for by
        name (``Symbol.optimize_for``, ``hybridize(backend=...)``).
    fn : callable
        Graph -> Graph.
    late : bool
        It runs over the graph of a program, after `simplify` and `mirror` and before `fuse`. Shapes, dtypes and storage
        types of all entries are known; so is, in `info`, where the program runs (``ctx``), whether in training mode
        (``is_train``), how many heads are outputs (``n_first``: the others are gradients), and which nodes run
        elsewhere (``contexts``: id of the node -> context).
    operators : collection of str
        Names of operators: a graph without any of them stays as it is, and nobody asks. Binding takes less time so.

    Raises
    ------
    MXNetError
        If the name is that of a stock pass, or an argument is of another kind.
    """

    def __init__(
        self,
        name: str,
        order: int | None,
        fn: Callable[[Graph], Graph],
        late: bool = False,
        operators: Collection[str] = (),
    ) -> None:
        if not (name and isinstance(name, str) and (order is None or ranks(order)) and callable(fn)) or isinstance(
            operators, str
        ):
            raise error(
                TypeError,
                f"GraphPass({name!r}, {order!r}, {fn!r}, operators={operators!r}): it takes a name, a number or None, "
                "a function, and names of operators",
            )
        if name in STOCK_PASSES:
            raise error(
                ValueError,
                f"graph pass '{name}': mxcore's own pass has this name "
                f"(as {', '.join(STOCK_PASSES)} have), by which it is switched off; choose another one",
            )
        self.name, self.order, self.fn, self.late, self.operators = name, order, fn, late, frozenset(operators or ())
        checked("graph pass", self)
