"""Graphs of blocks through backends: graph passes that plugins bring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..parameter import Parameter
from .structure import flatten

if TYPE_CHECKING:
    from ...context import Context
    from ...ndarray import NDArray
    from ...symbol import Symbol
    from . import HybridBlock

__all__ = ["partition"]


def partition(block: HybridBlock, backend: str, inputs: Sequence[Symbol], out: Symbol, args: tuple[Any, ...]) -> Symbol:
    """Send the graph of a block through its backend.

    Parameters
    ----------
    block : HybridBlock
        Its parameters are initialised.
    backend : str
    inputs : list of Symbol
    out : Symbol
    args : tuple
        What the block is called with.

    Returns
    -------
    Symbol
        The graph that came back. Arrays that the backend added to it become parameters of the block.
    """
    leaves: list[Any] = []
    flatten(args, leaves)
    ctx = leaves[0].context
    known = [*block.collect_params().values(), *block._graph_params.values()]
    arrays: dict[str | None, NDArray] = {p.name: p.data(ctx) for p in known}
    arrays.update((i.name, leaf) for i, leaf in zip(inputs, leaves))
    found: dict[str, Any] = {}
    for kind, names in (("args", out.list_arguments()), ("aux", out.list_auxiliary_states())):
        found[kind] = {name: arrays[name] for name in names if name in arrays}
    out = out.optimize_for(backend, ctx=ctx, **found, **block._backend_opts)
    for kind, names in (("args", out.list_arguments()), ("aux", out.list_auxiliary_states())):
        for name in names:
            if name not in arrays and name in found[kind]:
                block._graph_params[name] = _parameter(name, found[kind][name], kind == "aux", ctx)
    return out


def _parameter(name: str, value: NDArray, fixed: bool, ctx: Context) -> Parameter:
    new = Parameter(name, grad_req="null" if fixed else "write", shape=value.shape, dtype=value.dtype)
    new._load_init(value, ctx)
    return new
