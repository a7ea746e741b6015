"""Places for the nodes of a graph: layers from the inputs at the bottom to the outputs on top."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["layered"]

#: How often neighbours pull nodes into order.
_SWEEPS = 8


def layered(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Give each node a layer and a place in it.

    Parameters
    ----------
    names : list of str
        Inputs before users.
    edges : list of (str, str)
        User and source.

    Returns
    -------
    list of list of str
        Layers from the bottom up; nodes in each from left to right. Edges go up, as few as a simple rule manages cross.

    Examples
    --------
    >>> layered(["x", "a", "b", "c"], [("a", "x"), ("b", "x"), ("c", "a"), ("c", "b")])
    [['x'], ['a', 'b'], ['c']]
    """
    below: dict[str, list[str]] = {n: [] for n in names}
    above: dict[str, list[str]] = {n: [] for n in names}
    for user, source in edges:
        if user in below and source in below:
            below[user].append(source)
            above[source].append(user)
    depth: dict[str, int] = {}
    for n in names:
        depth[n] = max((depth[s] + 1 for s in below[n]), default=0)
    for n in reversed(names):  # an input stands just below its first user
        if not below[n] and above[n]:
            depth[n] = min(depth[u] for u in above[n]) - 1
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for n in names:
        layers[depth[n]].append(n)
    for sweep in range(_SWEEPS):
        towards, order = (below, layers) if sweep % 2 == 0 else (above, layers[::-1])
        place = {n: i - len(layer) / 2 for layer in layers for i, n in enumerate(layer)}
        for layer in order:
            layer.sort(key=lambda n: (sum(place[m] for m in towards[n]) / len(towards[n])) if towards[n] else place[n])
            place.update((n, i - len(layer) / 2) for i, n in enumerate(layer))
    return layers
