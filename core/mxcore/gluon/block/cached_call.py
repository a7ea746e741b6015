"""What runs a hybridised block: its CachedOp, and which array goes where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ... import ndarray as nd
from ...base import error
from ..parameter import parameter
from .structure import flatten, regroup

if TYPE_CHECKING:
    from ...context import Context
    from ...executor.cached_op import CachedOp
    from ...ndarray import NDArray
    from ..parameter import Parameter

__all__ = ["CachedCall", "check_contexts", "check_kinds"]


class CachedCall:
    """The graph of a block, ready to be called with what the block is called with.

    The arrays of the parameters are looked up once a context, and again after any parameter anywhere got new
    ones; between such events a call costs a list copy over the CachedOp itself, which checks what it is given.

    Parameters
    ----------
    owner : str
        Type and name of the block, for messages.
    op : CachedOp
    in_format, out_format
        Structures of inputs and outputs; see `flatten`.
    inputs : sequence of int or None
        For each leaf of the inputs its place among the arguments of `op`, None if the graph does not use it.
    params : sequence of (int, Parameter)
        Parameters with their places.
    """

    __slots__ = ("_flat", "_kept", "_n_args", "_places", "in_format", "op", "out_format", "owner", "params")

    def __init__(
        self,
        owner: str,
        op: CachedOp,
        in_format: Any,
        out_format: Any,
        inputs: Sequence[int | None],
        params: Sequence[tuple[int, Parameter]],
    ) -> None:
        self.owner, self.op, self.params = owner, op, params
        self._places = tuple(inputs)
        self.take_formats(in_format, out_format)
        self._n_args = sum(at is not None for at in self._places) + len(params)
        #: After which change of parameters they were looked up; context -> the arguments of `op`.
        self._kept: tuple[Any, dict[Context, list[Any]]] = None, {}

    def take_formats(self, in_format: Any, out_format: Any) -> None:
        """Let inputs and outputs have these structures.

        Parameters
        ----------
        in_format, out_format
            See `flatten`.
        """
        self.in_format, self.out_format = in_format, out_format
        n = len(self._places)
        #: How many arrays make up a call, if that is all it has.
        self._flat = n if _bare(in_format) == [0] * n else -1

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """Run the graph.

        Parameters
        ----------
        args : tuple
            Nested arrays, as the block was called.

        Returns
        -------
        NDArray or nested list of NDArray
        """
        leaves: Sequence[Any] = args if len(args) == self._flat else ()
        for x in leaves:
            if not isinstance(x, nd.NDArray):
                leaves = ()
                break
        if not leaves:
            leaves = self._leaves(args)
        ctx = leaves[0]._st.ctx
        now, kept = parameter.changes.last, self._kept
        if kept[0] is not now:  # what a thread is looking up that saw the old ones goes where nobody looks any more
            kept = self._kept = now, {}
        found = kept[1].get(ctx)
        given = (self._fetch(ctx, kept[1]) if found is None else found).copy()
        for at, x in zip(self._places, leaves):
            if at is not None:
                given[at] = x
            elif x._st.ctx is not ctx:
                check_contexts(leaves)
        try:
            outs = self.op.outputs(*given)
        except ValueError:
            check_contexts(leaves)  # MXNet has words of its own for that
            raise
        return outs[0] if self.out_format == 0 else regroup(iter(outs), self.out_format)

    def _fetch(self, ctx: Context, kept: dict[Context, list[Any]]) -> list[Any]:
        """The arguments on one context, with gaps for the inputs; noted in `kept`."""
        found: list[NDArray | None] = [None] * self._n_args
        for at, p in self.params:
            found[at] = p.data(ctx)
        kept[ctx] = found
        return found

    def _leaves(self, args: tuple[Any, ...]) -> list[Any]:
        """The arrays in the arguments, whose structure must be that of the call that was traced."""
        leaves: list[Any] = []
        given = flatten(args, leaves)
        check_kinds(leaves, self.owner)
        if _bare(given) != _bare(self.in_format):
            raise error(
                ValueError,
                f"The argument structure of {self.owner} does not match the cached version: it was traced with "
                f"{self.in_format} and is called with {given} (0 is an array, -1 is None). Call hybridize() "
                "again to trace it anew, or use two blocks that share their parameters.",
            )
        return leaves


def _bare(structure: Any) -> Any:
    """A structure without what may be left out: the None at its end."""
    n = len(structure)
    while n and structure[n - 1] == -1:
        n -= 1
    return structure[:n]


def check_kinds(leaves: Sequence[Any], owner: str) -> None:
    """Raise if there are both arrays and symbols."""
    arrays = sum(isinstance(x, nd.NDArray) for x in leaves)
    if 0 < arrays < len(leaves):
        raise error(
            ValueError,
            f"In HybridBlock, we do not support mixed NDArrays and Symbols types for the input of {owner}. "
            "Please check the type of the args.",
        )


def check_contexts(leaves: Sequence[NDArray]) -> None:
    """Raise if arrays live on several contexts."""
    contexts = sorted({str(x.context) for x in leaves})
    if len(contexts) > 1:
        raise error(
            ValueError,
            "Find multiple contexts in the input, After hybridized, the HybridBlock only supports one "
            f"input context. Find all contexts = {', '.join(contexts)}",
        )
