"""The gradients of a graph's heads, and what the variables for the incoming gradients look like."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

from ..._core.graph import Node, topo, variable
from ...gradient import gradient

__all__ = ["VariableSpecs", "Joint", "joint"]

Entry = tuple[Node, int]
#: Shapes, dtypes and storage types of variables by name.
VariableSpecs = tuple[dict[str, Any], dict[str, Any], dict[str, str]]


class Joint(NamedTuple):
    """Gradients beside their graph.

    Attributes
    ----------
    grads : list of entries or None
        One for each variable asked for; None where nothing depends on it.
    head_grads : list of Node
        The variables that take the gradients of the heads.
    variables : tuple of dict
        Those of the graph's variables, and of `head_grads`.
    """

    grads: list[Entry | None]
    head_grads: list[Node]
    variables: VariableSpecs


def joint(
    heads: Sequence[Entry],
    variables: VariableSpecs,
    wrt: Sequence[str],
    shapes: Mapping[Entry, Any],
    dtypes: Mapping[Entry, Any],
    steps: list[tuple[Node, list[tuple[int, Entry]]]] | None = None,
    without: Container[int] = (),
) -> Joint:
    """Gradients of `heads` with respect to variables.

    Parameters
    ----------
    heads : sequence of entries
    variables : tuple of dict
        Of the variables.
    wrt : sequence of str
        Names of variables; the graph need not have them.
    shapes, dtypes : dict
        Those of the heads: they decide what their gradients look like.
    steps : list, optional
        As for `gradient`.
    without : container of int
        Heads that have no gradient. Zeros in its place would not do: rules of losses do not look at it, and where a
        derivative is infinite, zero times it is no number.
    """
    head_grads = [variable(f"_head_grad{i}") for i in range(len(heads))]
    by_name = {n.name: n for n in topo(heads) if n.op is None}
    here = [i for i, name in enumerate(wrt) if name in by_name]
    grads: list[Entry | None] = [None] * len(wrt)
    given = [i for i in range(len(heads)) if i not in without]
    found = gradient(
        [heads[i] for i in given], [(head_grads[i], 0) for i in given], [(by_name[wrt[i]], 0) for i in here], steps
    )
    for i, g in zip(here, found):
        grads[i] = g
    like = {v.name: e for v, e in zip(head_grads, heads)}
    return Joint(
        grads,
        head_grads,
        (
            {**variables[0], **{n: shapes.get(e) for n, e in like.items()}},
            {**variables[1], **{n: dtypes.get(e) for n, e in like.items()}},
            variables[2],
        ),
    )
