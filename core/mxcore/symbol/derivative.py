"""Gradients of symbols as symbols."""

from __future__ import annotations

from collections.abc import Sequence

from .._core.errors import error, suggest
from .._core.graph import variable
from ..composing import GraphF, Value
from ..gradient import gradient
from .base import Entry
from .inference import variables

__all__ = ["gradients"]


def gradients(heads: Sequence[Entry], wrt: str | Sequence[str], head_arguments: bool) -> list[Entry]:
    """The gradients of `heads` with respect to arguments named in `wrt`.

    With `head_arguments` the incoming gradients are new arguments ``<node>_<index of the output>_grad``, else ones.
    """
    names = [wrt] if isinstance(wrt, str) else list(wrt)
    found = {n.name: (n, 0) for n in variables(heads)[0]}
    for name in names:
        if name not in found:
            raise error(
                ValueError, f"grad: no argument is named {name!r}{suggest(name, found)}; there are: {', '.join(found)}"
            )
    targets = [found[n] for n in names]
    incoming = [(variable(f"{n.name}_{i}_grad"), 0) for n, i in heads] if head_arguments else [None] * len(heads)
    return [
        (GraphF(f"_zero_grad_{name}").zeros_like(Value(e, GraphF(name))).entry if g is None else g)
        for name, e, g in zip(names, targets, gradient(heads, incoming, targets))
    ]
