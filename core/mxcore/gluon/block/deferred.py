"""Graphs of blocks that say in ``forward`` what they compute, with functions of ``mx.np``.

Such a block runs once on arrays, while what its operators do is noted as a graph. Arrays that it reads beside inputs
and parameters are read anew at each call, as long as they are the same arrays; what Python decides by shapes, or by the
mode, it decides anew for inputs of other shapes and in the other mode, for which there is a graph of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ... import name as naming
from ..._core import tables
from ..._core.graph import Node, variable
from ..._core.op import Op
from ..._core.state import state
from ..._core.tape import Leaf
from ..._noting import refused
from ...base import error
from ...composing import MODE
from ...symbol.compose import hint
from ..parameter import Constant, Parameter
from .structure import flatten

if TYPE_CHECKING:
    from ...ndarray import NDArray
    from ...symbol import Symbol
    from .hybrid_block import HybridBlock

__all__ = ["Outside", "Tracer", "trace_arrays", "tracing"]

#: What arrays of a graph that is being noted stand for on the tape: so no operator and no view is passed over.
_MARK = Leaf(None, "write")


def tracing() -> bool:
    """Whether this thread notes what operators do."""
    return isinstance(state.record, Tracer)


def _may_ask_for_the_mode(op: Op, p: Any) -> bool:
    """Whether an operator can do something else in training: it draws, has statistics, or runs a graph or Python."""
    return bool(p._sig.random or op.aux or op.stateful)


class Tracer:
    """Notes operators as nodes of a graph; it stands in the place of the tape (``state.record``).

    Parameters
    ----------
    params : callable
        () -> iterable of (parameter, its array on the context of the inputs), of those that are initialised.
    recording : bool
        Whether the graph is for calls that are recorded.
    """

    def __init__(self, params: Callable[[], Any], recording: bool) -> None:
        self._params = params
        #: What ``autograd.is_recording()`` tells: the block is noted for calls that are recorded, or that are not.
        self.recording = recording
        #: The mode that the graph is for; what is computed in the other one, as in ``predict_mode()``, keeps its own.
        self.train = state.train
        #: By the id of an array, or of its place on the tape, which another face of it shares.
        self._entries: dict[int, tuple[Node, int]] = {}
        #: What is known by its id.
        self._alive: list[Any] = []
        #: Name -> array, of what is neither an input nor a parameter of the block, such as parameters of other blocks.
        self.outside: dict[str, NDArray] = {}
        self.names: set[str] = set()
        #: Whether gradients stop at what is computed now, as within ``autograd.pause()``.
        self.paused = False

    def enter(self, x: NDArray, node: Node) -> NDArray:
        """An input: the array to compute with, which stands for a variable."""
        twin = x.of(type(x))
        self._note(twin, (node, 0))
        return twin  # type: ignore[no-any-return]

    def _note(self, x: Any, entry: tuple[Node, int]) -> None:
        x._entry = place = (_MARK, len(self._alive))
        self._entries[id(place)] = entry
        self._alive.append(place)

    def entry(self, x: Any) -> tuple[Node, int]:
        """Where an array comes from; one that nothing is known of is a parameter, or else a constant."""
        found = self._entries.get(id(x._entry)) or self._entries.get(id(x))
        if found is None:
            p = self._param(x)
            if p is not None:
                found = p.var()._entry()
            elif x._entry is not None and x._entry[0].flows and x._entry[0].__class__ is not Leaf:
                raise refused(
                    "an array is computed with that is neither an argument nor a variable, but has gradients,"
                )
            elif not x.size:  # which a parameter cannot hold: a length of 0 is one that it does not know yet
                found = self._made("_npi_zeros", "zeros", shape=x.shape, dtype=x.dtype)
            else:
                name = f"{'variable' if x._entry else 'constant'}{len(self.outside)}"
                self.outside[name] = x
                found = (variable(name), 0)
            self._entries[id(x)] = found
            self._alive.append(x)
        return found

    def _param(self, x: Any) -> Any:
        """The parameter whose array `x` is, by whatever face, or None."""
        for p, array in self._params():
            if array._data is x._data:
                return p
            if array._st is x._st:
                raise refused(
                    f"a part of parameter '{p.name}' is taken by what is no operator, since it has no gradient "
                    "(x[0], reshape_view …)"
                )
        return None

    def refuse_reading(self, x: Any) -> None:
        """Refuse to tell Python the values of an array that only a run of the graph has."""
        if id(x._entry) in self._entries or self._param(x) is not None:
            raise refused("the values of an array are read (asnumpy, item, float, if …)")

    def __call__(self, op: Op, p: Any, inputs: Sequence[Any], outputs: Sequence[Any], call: Any = None) -> None:
        if op.body is None and call is not None:
            raise error(
                NotImplementedError,
                f"{op.name.removeprefix('_Function_')} runs Python of its own, which no graph holds; leave the block "
                "that calls it unhybridized",
            )
        if op is tables.roles.get("other context") and p.source is not None:
            raise refused(f"an array of {p.source} is copied to another context")
        name = naming.current().get(None, hint(op.name))
        attrs = {MODE: str(state.train)} if state.train is not self.train and _may_ask_for_the_mode(op, p) else None
        node = Node(op, p, [self.entry(x) for x in inputs], name, attrs)
        for i, y in enumerate(outputs):
            if y is not None:
                self._note(y, self._stopped((node, i)) if self.paused else (node, i))

    def _stopped(self, entry: tuple[Node, int]) -> tuple[Node, int]:
        return self._made("BlockGrad", "stop_gradient", entry)

    def _made(self, op_name: str, hint: str, *inputs: tuple[Node, int], **params: Any) -> tuple[Node, int]:
        """What an operator gives that the block itself does not call."""
        from ...plugin import find_op

        op = find_op(op_name)
        return Node(op, op.parse(params), list(inputs), naming.current().get(None, hint)), 0

    def within(self, record: bool) -> Any:
        """What stands in the place of the tape within ``autograd.record()`` or ``pause()``."""
        return self if record else _Paused(self)


class _Paused(Tracer):
    """Notes operators whose results have no gradients."""

    recording = property(lambda self: False)

    def __init__(self, of: Tracer) -> None:
        self.__dict__ = of.__dict__  # one graph

    def __call__(self, *args: Any) -> None:
        self.paused = True
        try:
            super().__call__(*args)
        finally:
            self.paused = False


def trace_arrays(
    block: HybridBlock, args: Sequence[Any], names: Sequence[str]
) -> tuple[list[Symbol], Symbol, Any, dict[str, Any], list[Any]]:
    """Run a block on arrays and note its graph.

    Parameters
    ----------
    block : HybridBlock
    args : sequence
        What it is called with: nested arrays.
    names : sequence of str
        Of the inputs, in the order of `flatten`.

    Returns
    -------
    (list of Symbol, Symbol, structure of the outputs, dict of str to Parameter, list)
        Inputs, outputs as one symbol, the arrays that are not the block's by name, and the random keys that were drawn.
    """
    from ... import symbol

    leaves: list[Any] = []
    in_format = flatten(args, leaves)
    ctx = leaves[0].context

    def params() -> Any:
        for p in block.collect_params().values():
            for array in p._data or ():
                if array.context is ctx:
                    yield p, array

    tracer = Tracer(params, bool(state.record))
    inputs = [symbol.var(name).as_np_ndarray() for name in names]
    given = iter([tracer.enter(x, s._heads[0][0]) for x, s in zip(leaves, inputs)])
    was, drawn = state.record, state.drawn
    try:
        state.record, state.drawn = tracer, []
        with block.name_scope():
            out = block._run_plain(*_regrouped(given, in_format))
        keys = state.drawn
    finally:
        state.record, state.drawn = was, drawn
    found: list[Any] = []
    out_format = flatten(out, found, "output")
    if not found:
        raise error(ValueError, f"forward of {type(block).__name__} '{block.name}' returned no array")
    heads = [tracer.entry(x) for x in found]
    whole = type(inputs[0])(heads)
    used = set(whole.list_inputs())
    more: dict[str, Any] = {}
    for name, x in tracer.outside.items():
        if name in used and x.context is ctx:
            more[name] = Outside(name, x)
        elif name in used:
            more[name] = Constant(name, x)
            more[name].initialize(ctx=ctx)
    return inputs, whole, out_format, more, keys


class Outside(Parameter):
    """An array that is none of the block's parameters, as one of its graph: itself, as it may change, not a copy."""

    def __init__(self, name: str, x: NDArray) -> None:
        super().__init__(name, "null", shape=x.shape, dtype=x.dtype)
        self._data, self._ctx_list = [x], [x.context]


def _regrouped(leaves: Any, structure: Any) -> Any:
    """The arguments again, lists where they were lists or tuples."""
    if structure == -1:
        return None
    return next(leaves) if structure == 0 else [_regrouped(leaves, part) for part in structure]
