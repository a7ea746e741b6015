"""Graphs of blocks through backends: graph passes that plugins bring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..parameter import Parameter
from .structure import flatten

if TYPE_CHECKING:
    from ...context import Context
    from ...ndarray import NDArray
    from . import HybridBlock
    from .tracing import Traced

__all__ = ["partition"]


def partition(block: HybridBlock, backend: str, traced: Traced, args: tuple[Any, ...]) -> Traced:
    """Send the graph of a block through its backend.

    Parameters
    ----------
    block : HybridBlock
        Its parameters are initialised.
    backend : str
    traced : Traced
        Its graph.
    args : tuple
        What the block is called with.

    Returns
    -------
    Traced
        The graph that came back. Arrays that the backend added to it are parameters of the graph.
    """
    out, added = traced.out, dict(traced.params)
    leaves: list[Any] = []
    flatten(args, leaves)
    ctx = leaves[0].context
    known = [*block.collect_params().values(), *added.values()]
    arrays: dict[str | None, NDArray] = {p.name: p.data(ctx) for p in known}
    arrays.update((i.name, leaf) for i, leaf in zip(traced.inputs, leaves))
    found: dict[str, Any] = {}
    for kind, names in (("args", out.list_arguments()), ("aux", out.list_auxiliary_states())):
        found[kind] = {name: arrays[name] for name in names if name in arrays}
    out = out.optimize_for(backend, ctx=ctx, **found, **block._backend_opts)
    for kind, names in (("args", out.list_arguments()), ("aux", out.list_auxiliary_states())):
        for name in names:
            if name not in arrays and name in found[kind]:
                added[name] = _parameter(name, found[kind][name], kind == "aux", ctx)
    return traced._replace(out=out, params=added)


def _parameter(name: str, value: NDArray, fixed: bool, ctx: Context) -> Parameter:
    new = Parameter(name, grad_req="null" if fixed else "write", shape=value.shape, dtype=value.dtype)
    new._load_init(value, ctx)
    return new
