"""From a hybrid block to its graph, and from the graph to what runs it."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._locks import fork_safe_lock
from ...base import error
from ..utils import is_np_array
from .cached_call import CachedCall
from .structure import count, flatten, regroup

if TYPE_CHECKING:
    from ...symbol import Symbol
    from ..parameter import Parameter
    from . import Block, HybridBlock

__all__ = ["Traced", "build", "first_call", "trace"]

#: Held while a first call finds out what later ones rely on: a graph, shapes, parameters that waited for their shape.
#: One for all blocks, as they share children and parameters. Who may import what plugins bring takes it by
#: `HybridBlock._alone`.
first_call = fork_safe_lock()


class Traced(NamedTuple):
    """The graph of a block.

    Attributes
    ----------
    inputs : list of Symbol
        Its input variables.
    out : Symbol
        Its outputs as one.
    in_format, out_format
        Structures of inputs and outputs; see `flatten`.
    params : dict of str to Parameter
        What it reads beside the block's own parameters: of others, or what a backend added.
    """

    inputs: list[Symbol]
    out: Symbol
    in_format: Any
    out_format: Any
    params: dict[str, Parameter]


def trace(block: HybridBlock, in_format: Any) -> Traced:
    """Compose a block's graph.

    Parameters
    ----------
    block : HybridBlock
    in_format : list
        Structure of the inputs; see `flatten`.

    Returns
    -------
    Traced
        Its inputs are called ``data`` or ``data0``, ``data1`` …
    """
    from ... import symbol

    n = count(in_format)
    inputs = [symbol.var(name) for name in input_names(n)]
    if is_np_array():
        inputs = [x.as_np_ndarray() for x in inputs]
    leaves: list[Any] = []
    out_format = flatten(block._forward_symbol(*regroup(iter(inputs), in_format)), leaves, "output")
    if not leaves:
        raise error(
            ValueError, f"hybrid_forward of {_called(block)} returned no Symbol, so there is no graph to make of it"
        )
    out = leaves[0] if len(leaves) == 1 else symbol.Group(leaves)
    twice = {name for name, times in Counter(out.list_inputs()).items() if times > 1}
    clash = sorted(twice & {i.name for i in inputs})
    if clash:
        raise error(
            ValueError,
            f"{_called(block)}: an input and a parameter are both named {clash[0]!r} in its graph; give the block a "
            "prefix, or the parameter another name",
        )
    if twice:  # graphs made apart that share parameters: one variable stands for all of that name
        first: dict[str, Symbol] = {}
        for s in out.get_internals():
            name = s.name
            if name is not None and name in twice and s.get_children() is None:
                first.setdefault(name, s)
        out = out(**first)
    return Traced(inputs, out, in_format, out_format, {})


def input_names(n: int) -> list[str]:
    """What the inputs of a graph are called."""
    return ["data"] if n == 1 else [f"data{i}" for i in range(n)]


def _called(block: Block) -> str:
    return f"{type(block).__name__} '{block.name}'"


def build(block: HybridBlock, traced: Traced, flags: dict[str, Any]) -> CachedCall:
    """Make what runs a graph.

    Parameters
    ----------
    block : HybridBlock
    traced : Traced
    flags : dict
        Of the CachedOp.

    Returns
    -------
    CachedCall

    Raises
    ------
    MXNetError (ValueError)
        If an argument of the graph is neither an input nor a parameter.
    """
    from ...executor.cached_op import CachedOp

    inputs, out = traced.inputs, traced.out
    params = dict(block.collect_params().items())
    params.update(traced.params)
    data = {symbol.name: i for i, symbol in enumerate(inputs)}
    places: list[int | None] = [None] * len(inputs)
    used = []
    for at, name in enumerate(out.list_inputs()):
        if name in data:
            places[data[name]] = at
        elif name in params:
            used.append((at, params.pop(name)))
        else:
            raise error(
                ValueError,
                f"Unknown input to HybridBlock: {name} is neither an input nor a parameter of {_called(block)}; take "
                "parameters from block.params and symbols from the arguments of hybrid_forward",
            )
    unused = [f"{i}-th" for i, at in enumerate(places) if at is None]
    if unused:
        _warn(f"The {', '.join(unused)} input to HybridBlock is not used by any computation. Is this intended?")
    if params:
        _warn(f"Parameter {', '.join(params)} is not used by any computation. Is this intended?")
    return CachedCall(_called(block), CachedOp(out, flags), traced.in_format, traced.out_format, places, used)


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=7)
