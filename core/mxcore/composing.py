"""Operators by name, composed into nodes: what gradient rules see in graphs, and passes that write new nodes use."""

from __future__ import annotations

from typing import Any

from ._core import tables
from ._core.binding import bind
from ._core.graph import Node
from ._core.roles import Roles

__all__ = ["MODE", "GraphF", "Value", "beside", "mode_of"]

#: The attribute of a node that runs in a mode of its own: 'True' where it is that of training.
MODE = "__train_mode__"


def mode_of(n: Node, is_train: bool) -> bool:
    """Whether a node runs in training mode, in a graph that is run in a mode."""
    own = n.attrs.get(MODE)
    return is_train if own is None else own == "True"


def beside(n: Node) -> dict[str, str]:
    """The attributes that put another node where a node is."""
    return {k: v for k, v in n.attrs.items() if k.strip("_") == "ctx_group"}


class Value:
    """An entry that composes further nodes, as gradient rules see it. Who brings arithmetic gives it operators.

    Parameters
    ----------
    entry : (Node, int)
        A node and the number of one of its outputs.
    F : GraphF
        Makes the further nodes.
    """

    __slots__ = ("entry", "F")
    __iter__ = None  # how many outputs there are is not known here, and counting up would never end

    def __init__(self, entry: tuple[Node, int], F: GraphF) -> None:
        self.entry, self.F = entry, F

    def _binary(self, elementwise: str, broadcast: str, other: Any) -> Any:
        # Shapes are unknown here; the broadcasting form covers equal shapes too.
        return getattr(self.F, broadcast)(self, other)

    def _scalar(self, op: str, scalar: float) -> Any:
        return getattr(self.F, op)(self, scalar=scalar)

    def _unary(self, op: str) -> Any:
        return getattr(self.F, op)(self)

    def __getitem__(self, i: int) -> Value:
        return Value((self.entry[0], i), self.F)


class GraphF:
    """Operators by name, composed into nodes: ``F.relu(value)`` makes a node and gives its output, or a list of them.

    Parameters
    ----------
    name : str
        Of the first node; the next ones are called ``<name>_2``, ``<name>_3``, …
    forward : Node, optional
        The node whose gradient the nodes belong to.
    like : Node, optional
        A node in whose place they come: they are computed where it is, in its mode.
    """

    def __init__(self, name: str, forward: Node | None = None, like: Node | None = None) -> None:
        self._name, self._forward, self._count = name, forward, 0
        # A gradient is computed where its forward node is.
        self._attrs = dict(like.attrs) if like is not None else {} if forward is None else beside(forward)

    @property
    def roles(self) -> Roles:
        """Operators by their role, as `Eager.roles`."""
        return Roles(self, tables.roles)

    def __getattr__(self, name: str) -> Any:
        op = tables.ops.get(name)

        def compose(*args: Any, **kwargs: Any) -> Any:
            kwargs.pop("wanted", None)  # liveness decides in a graph
            kwargs.pop("share", None)
            inputs, p = bind(op, args, kwargs, lambda x: isinstance(x, Value))
            self._count += 1
            node = Node(
                op,
                p,
                [v.entry for v in inputs],
                f"{self._name}_{self._count}" if self._count > 1 else self._name,
                dict(self._attrs),
            )
            if op.stateful and self._forward is not None:
                node.forward = self._forward
            outs = [Value((node, i), self) for i in range(p._sig.visible)]
            return outs[0] if len(outs) == 1 else outs

        return compose
