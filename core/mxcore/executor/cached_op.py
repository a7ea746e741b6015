"""The class CachedOp: a graph that is called like an operator."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import repeat
from typing import Any

from .._core import tables, tape
from .._core.array import Storage, faces, fresh
from .._core.call import op_context
from .._core.context import Context
from .._core.errors import error
from .._core.gradplan import plan_of
from .._core.graph import Graph, Node, topo
from .._core.op import Op
from .._core.params import Parser
from .._core.state import state
from .._core.transfer import apart, assign, check_writable, overlaps, wrap
from .._interrupts import suppress
from .._locks import fork_safe_lock, writing
from ..ndarray import NDArray, op, zeros
from ..ops.control.interpret import interpret
from ..ops.control.states import inner_states
from ..ops.control.unfold import unfolding
from ..parameters import Bool, Int
from .arguments import as_lowered
from .compile import compile_graph
from .keep import stamps
from .launch import launch
from .passes.settings import Settings, check_passed, run_passes
from .passes.simplify import merge_equal
from .recent import Recent
from .rooms import Room, Rooms
from .watch import hook_labels, input_labels

__all__ = ["CachedOp"]

#: What flags there are, and which values they take.
_FLAGS = Parser(
    "CachedOp",
    {
        "static_alloc": Bool(False),
        "static_shape": Bool(False),
        "inline_limit": Int(2),
        "forward_bulk_size": Int(15),
        "backward_bulk_size": Int(15),
    },
)
#: So many programs (one per shapes, dtypes, mode, wanted gradients and outputs that have some) are kept for one graph.
_LIMIT = 32
#: So many where programs of training are among them, if their graph has few nodes: some 6 KB for each. Batches of texts
#: have a hundred lengths, and making a program takes longer than a step of a small network.
_MOST, _NODES = 128, 1 << 15
#: A graph that predicts for `_LIMIT` kinds of inputs may meet others at each call, as a decoder of sequences does: what
#: predicts for further ones runs node by node, for a program takes as long to make as some ten such calls. It is
#: remembered of so many signatures, so that all calls of one have the same bits. A program that nobody has wanted in so
#: many calls with other shapes than the one before makes place.
_REMEMBERED, _OLD = 4096, 1024


class CachedOp:
    """A symbol called on arrays like an operator; hybridised blocks run through it.

    A program is compiled for each signature: shapes and dtypes of the inputs, training or not, which inputs want
    gradients, and through which outputs they come. While a recorded call waits for its backward it holds the memory of
    its program; another call takes, or makes, memory of its own.

    Parameters
    ----------
    symbol : Symbol
    flags : dict or sequence of pairs, optional
        MXNet's: ``static_alloc``, ``static_shape``, ``inline_limit``, ``forward_bulk_size``, ``backward_bulk_size``.
        Checked and kept for its sake: memory is always planned and kept.

    Raises
    ------
    MXNetError
        If a flag is unknown or no such value.
        At a call: if the number of arrays, their contexts or shapes do not fit; names node and inputs.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.executor import CachedOp
    >>> op = CachedOp(mx.sym.tanh(mx.sym.Variable("x")) * 2)
    >>> op(mx.nd.zeros((2,))).asnumpy().tolist()
    [0.0, 0.0]
    """

    #: Whether it computes arrays of ``mx.np``.
    is_np_sym = False

    def __init__(self, symbol: Any, flags: Any = ()) -> None:
        self.symbol = symbol
        self.flags = dict(flags)
        _FLAGS(dict(self.flags))
        self._passed: tuple[int, Any] | None = None
        self._walked: tuple[Any, Sequence[Node]] | None = None
        self._names = symbol.list_inputs()
        #: States of its operators, also inside of loops, where they are not listed.
        self._aux = frozenset((*symbol.list_auxiliary_states(), *inner_states(Graph(symbol._heads))))
        self._last: _Signature | None = None
        self._signatures = Recent(max(_LIMIT, min(_MOST, _NODES // max(1, len(topo(symbol._heads))))))
        #: Signature -> whether it has a program; how many were met.
        self._ways, self._met = Recent(_REMEMBERED), 0
        #: By context, mode and inputs that need gradients: which outputs had none when it was asked for last.
        self._without: dict[Any, frozenset[int]] = {}
        self._rooms: dict[Context, Rooms] = {}
        #: What is called for every output inside, and whether for inputs too.
        self._hook: tuple[Callable[[str, str, Any], None], bool] | None = None
        outputs = [f"output{i}" for i in range(len(symbol._heads))]
        core = self._op = Op(
            "_CachedOp",
            None,
            inputs="data*",
            outputs=lambda p: outputs,
            stateful=True,
            aux=lambda p: [f"arg{i}" for i, n in enumerate(self._names) if n in self._aux],
        )
        core.backward_rule, core.gives = _backward, True
        # Gradients that can be differentiated again: the graph runs node by node, recorded.
        core.replay_rule = unfolding(
            lambda p, inputs, ctx: interpret(self._heads, dict(zip(self._names, inputs)), ctx),
            lambda pending: pending.memory.again[1],
            lambda pending: pending.memory.before,
        )
        self._params = core.parse({"num_args": len(self._names)})
        _all[id(self)] = self  # first: passes may go meanwhile
        _ = self._heads  # passes that cannot take the graph say so now

    @property
    def _heads(self) -> Any:
        """The heads of the graph as the passes of plugins leave it."""
        # With when it was made: a thread that began before passes came or went may yet put its own here.
        now, found = self._signatures.cleared, self._passed
        if found is None or found[0] != now:
            found = self._passed = now, run_passes(self.symbol._heads)
        return found[1]

    def _forget(self) -> None:
        """Compile anew at the next call: passes or kernels have come or gone."""
        self._signatures.clear()  # first: neither who is making one keeps it, nor is the graph of before any one's
        self._ways.clear()
        self._passed = self._last = None
        self._without.clear()
        self._rooms.clear()

    @property
    def nbytes(self) -> int:
        """Bytes of planned memory that no call holds now."""
        return sum(rooms.nbytes for rooms in [*self._rooms.values()])

    def __call__(self, *args: Any, out: Any = None, default_ctx: Context | None = None) -> Any:
        """Compute the outputs from arrays in the order of ``symbol.list_inputs()``; recorded on the tape as one step.

        Parameters
        ----------
        *args : NDArray
        out : NDArray or sequence of NDArray, optional
            What to write the outputs to.
        default_ctx : Context, optional
            Where a graph without inputs runs; by default the current context.

        Returns
        -------
        NDArray or list of NDArray
            The only output, or a list of them; `out` if it is given.
        """
        with default_ctx or nullcontext():
            outs = self.outputs(*args)
        if out is None:
            return outs[0] if len(outs) == 1 else outs
        into = [out] if isinstance(out, NDArray) else out
        if len(into) != len(outs):
            raise error(ValueError, f"CachedOp has {len(outs)} outputs, got {len(into)} arrays as out")
        for x, y in zip(into, outs):
            op.identity(y, out=x)
        return out

    def outputs(self, *args: Any) -> list[Any]:
        """What a call gives, as a list in every case."""
        hook = self._hook  # another thread may take it away
        if hook is not None:
            return self._by_nodes(merge_equal(self._heads) if Settings.now().merge else self._heads, args, hook)
        if len(args) != len(self._names):
            raise error(
                TypeError, f"CachedOp takes {len(self._names)} arrays ({', '.join(self._names[:8])} …), got {len(args)}"
            )
        mode = state.__dict__
        needs = None
        if mode["record"]:
            entries = [x._entry for x in args]
            needs = tuple([e is not None and e[0].flows for e in entries])
            if True not in needs:
                needs = None
            elif False in [e is None or e[0].live for e in entries]:
                needs = _without_masks(needs, args)
        datas = [x._data for x in args]
        ctx = args[0]._st.ctx if args else _current()
        found = self._last
        if found is None or not found.fits(ctx, mode["train"], needs, args, datas):
            found = self._signature(ctx, mode["train"], needs, args, datas)
            if found is None:
                return self._by_nodes(self._heads, args)
        return found.call(self, args, datas)

    def _order(self, heads: Any) -> Sequence[Node]:
        """The nodes of the graph with these heads, inputs first."""
        found = self._walked
        if found is None or found[0] is not heads:
            found = self._walked = heads, topo(heads)
        return found[1]

    def _by_nodes(self, heads: Any, args: Sequence[Any], hook: Any = None) -> list[Any]:
        """The outputs by eager calls; the hook hears of all values on the way."""
        values, ctx = dict(zip(self._names, args)), args[0].context if args else None
        if hook is None:
            outs = self._apart(args, interpret(heads, values, ctx, order=self._order(heads)))
        else:
            outs = interpret(heads, values, ctx, partial(_report, *hook))
        wanted = self.symbol.array
        return [y if y.__class__ is wanted or y.stype != "default" else y.of(wanted) for y in outs]

    @staticmethod
    def _apart(args: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
        """Outputs as a program gives them: with memory that nobody else has."""
        seen, found = {*map(id, args)}, []
        for y in outs:
            own = id(y) not in seen and y.stype == "default" and y._st.ctx.device.owns(y._data)
            found.append(y if own else y.copy())
            seen.add(id(y))
        return found

    def _signature(
        self, ctx: Context, train: bool, needs: Any, args: Sequence[Any], datas: Sequence[Any]
    ) -> _Signature | None:
        """The signature that fits these arrays, compiled at first use; None if others have all programs."""
        for name, x in zip(self._names, args):
            if x._st.ctx is not ctx:
                raise error(
                    ValueError,
                    f"CachedOp: inputs live on different devices ('{self._names[0]}' on {ctx}, '{name}' on "
                    f"{x._st.ctx}); copy one with as_in_context() first",
                )
        key = (ctx, train, needs, tuple([(d.shape, d.dtype, x.stype) for d, x in zip(datas, args)]))
        self._met += 1
        if needs is None and not train and not self._has_program(key):  # it predicts
            return None
        begun = self._signatures.cleared
        found = self._found(key, self._without.get(key[:3], _NONE), args, datas)
        found.used = self._met
        last, self._last = self._last, found
        if begun != self._signatures.cleared:  # its kernels may be those of a plugin that is gone
            self._last = None
            return found
        if last is not None and last is not found:
            last.datas = [old if old is new else _GONE for old, new in zip(last.datas, datas)]
        found.datas = [*datas]
        return found

    def _has_program(self, key: tuple[Any, ...]) -> bool:
        """Whether inputs like these have a program, or get one; how they were computed once they are ever after."""
        found = self._ways.find(key, self._has_place)
        if found and (key, self._without.get(key[:3], _NONE)) not in self._signatures and not self._has_place():
            found = self._ways[key] = False  # its program had to go for others
        return bool(found)

    def _has_place(self) -> bool:
        """Whether there is place for one more program, or one that nobody has wanted for long can go."""
        with suppress(KeyError, RuntimeError):  # another thread is faster
            found = [x for x in self._signatures.items() if x[1].predicts]
            if len(found) < _LIMIT:
                return True
            where, oldest = found[0]
            if oldest.written:  # node by node others would be read as they are then
                return True
            if self._met - oldest.used > _OLD:
                del self._signatures[where]
                self._ways.pop(oldest.key, None)
                return True
        return False

    def _found(self, key: tuple[Any, ...], without: frozenset[int], args: Sequence[Any], datas: Any) -> _Signature:
        made: _Signature = self._signatures.find(
            (key, without), lambda: _Signature(self, key, without, [x.stype for x in args], datas)
        )
        return made

    def expect(
        self, signature: _Signature, without: frozenset[int], later: frozenset[int], args: Sequence[Any], datas: Any
    ) -> _Signature:
        """The signature of a call whose outputs `without` a gradient are others than thought, and will be `later`."""
        self._without[signature.key[:3]] = later
        self._last = None
        return self._found(signature.key, without, args, datas)

    @property
    def handle(self) -> int:
        """An integer that identifies the operator, for code that compares handles."""
        return id(self)

    def register_op_hook(self, callback: Callable[[str, str, Any], None] | None, monitor_all: bool = False) -> None:
        """Call ``callback(name of the output, name of the operator, array)`` for every output inside; None stops it.

        With `monitor_all` the inputs are shown too. While a hook is set the graph runs node by node.
        """
        self._hook = None if callback is None else (callback, monitor_all)


def _without_masks(needs: tuple[bool, ...], args: Sequence[Any]) -> tuple[bool, ...]:
    """Which inputs need gradients, without truth values that were compared of variables: through them come zeros."""
    found = tuple([n and (x._entry[0].live or x._data.dtype.kind != "b") for n, x in zip(needs, args)])
    return found if True in found else needs


def _report(
    callback: Callable[[str, str, Any], None],
    monitor_all: bool,
    node: Any,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
) -> None:
    if monitor_all:
        for name, x in zip(input_labels(node), inputs):
            callback(f"{node.name}_{name}", node.op.name, x.copy())
    for name, y in zip(hook_labels(node), outputs):
        callback(f"{node.name}_{name}", node.op.name, y.copy())


#: By its id; a set could not be gone through while threads make others.
_all: weakref.WeakValueDictionary[int, CachedOp] = weakref.WeakValueDictionary()


def _forget_all() -> None:
    for ref in _all.valuerefs():
        found = ref()
        if found is not None:
            found._forget()


tables.on_change.append(_forget_all)


def _current() -> Context:
    from .._core.context import current_context

    return current_context()


class _Gone:
    """Stands for an input of a call that another one, with other inputs, has followed: is like no array."""

    shape = dtype = None


def _nothing() -> None:
    return None


_GONE = _Gone()
_NONE: frozenset[int] = frozenset()


class _Signature:
    """A compiled graph for inputs of certain shapes, and its instances by the rooms in which they run.

    `key` has the context, the mode, which inputs need gradients, and what the inputs are like; outputs `without` a
    gradient have no part in the gradients of the inputs.
    """

    def __init__(
        self,
        owner: CachedOp,
        key: tuple[Any, ...],
        without: frozenset[int],
        stypes: Sequence[str],
        datas: Sequence[Any],
    ) -> None:
        names = owner._names
        ctx, train, needs, _ = key
        self.key, self.without = key, without
        #: How many its owner had met when it was wanted last.
        self.used = 0
        variables = (
            {n: tuple(d.shape) for n, d in zip(names, datas)},
            {n: d.dtype for n, d in zip(names, datas)},
            dict(zip(names, stypes)),
        )
        self.wrt = None if needs is None else [n for n, w in zip(names, needs) if w]
        self.ctx, self.train, self.needs, self.predicts = ctx, train, needs, needs is None and not train
        self.datas = list(datas)
        self.array = owner.symbol.array
        heads = owner._heads  # once: passes may come or go meanwhile
        check_passed(owner.symbol._heads, heads, *variables[:2])
        compiled = self.compiled = compile_graph(heads, variables, ctx, train, self.wrt, without=without)
        #: The outputs whose gradients make a difference.
        self.matter = () if self.wrt is None else _mattering(heads, self.wrt)
        program = self.program = compiled.program
        self.names = names
        #: (slot, input) of what the program reads.
        self.slots = [(program.variables[n], i) for i, n in enumerate(names) if n in program.variables]
        #: Those of which kernels keep something.
        self.kept = [(slot, i) for slot, i in self.slots if slot in program.keeping]
        #: Inputs that the first part writes to, and together with them the auxiliary states, which training may move.
        self.written = [i for slot, i in self.slots if slot in program.written[0]]
        self.mutated = [i for _, i in self.slots if names[i] in owner._aux or i in self.written]
        #: Those that a call does write to.
        self.moves = [i for i in self.mutated if train or i in self.written]
        #: What a call cannot be repeated with once it was written to; states that training moves are not read then.
        self.steady = [i for i in range(len(names)) if not train or i not in self.mutated]
        #: For each part the heads that are asked for, with shape and dtype of what can be made before it runs.
        self.heads = self._made(range(program.n_first)), self._made(compiled.grads)
        self.head_grads = [(program.variables[n], i) for i, n in enumerate(compiled.head_grads) if n is not None]
        #: Of each gradient the array that it may be written to at once, as far as its own kind decides it.
        self.lasting: list[Callable[[], Any]] = [_nothing] * len(self.wrt or ())
        self.memories: dict[Room, _Memory] = {}
        self.rooms = owner._rooms.setdefault(ctx, Rooms(ctx))
        self.rooms.tidy()
        self.idle = self.rooms.idle
        self.k = op_context(ctx, train)

    def _made(self, heads: Iterable[int | None]) -> list[tuple[int | None, tuple[Any, Any] | None]]:
        specs = [None if h is None else self.program.specs[self.program.head_slots[h]] for h in heads]
        return [(h, (s.shape, s.dtype) if s is not None and s.fixed else None) for h, s in zip(heads, specs)]

    def fits(self, ctx: Context, train: bool, needs: Any, args: Sequence[Any], datas: Sequence[Any]) -> bool:
        """Whether inputs are like those it was compiled for; most of them are the very same arrays."""
        if ctx is not self.ctx or train is not self.train or needs != self.needs:
            return False
        for i, (d, old) in enumerate(zip(datas, self.datas)):
            if d is not old:
                if (
                    d.shape != old.shape
                    or d.dtype != old.dtype
                    or d.__class__ is not old.__class__
                    or args[i]._st.ctx is not ctx
                ):
                    return False
                self.datas[i] = d
        return True

    def call(
        self, owner: CachedOp, args: Sequence[Any], datas: Sequence[Any], places: dict[int, Any] | None = None
    ) -> list[Any]:
        """Run the first part on new output arrays; inputs that have other `places` are read and written there."""
        given = args
        if places is not None:
            given = [places.get(i, x) for i, x in enumerate(args)]
            datas = [x._data for x in given]
        elif self.moves and (found := self._shared(args, datas)):
            return writing([args[i] for i in found], self._call_apart, owner, args, datas, found)
        try:
            room = self.idle.pop()  # not after a look at it: another thread may take the last
        except IndexError:
            room = None
        memory = self.memories.get(room)  # type: ignore[arg-type]
        if memory is None:
            memory = self._settle(room)
        memory.signature = self
        try:
            memory.reads = [x._st for x in given]
            memory.moved = [given[i] for i in self.mutated]
            memory.again, memory.datas = ([(slot, datas[i]) for slot, i in self.slots], memory.instance.keys(0)), datas
            if self.written and self.needs is not None:
                for i in self.written:
                    given[i].wait_to_read()
                memory.before = {i: datas[i].copy() for i in self.written}
            memory.stamps = stamps([(slot, given[i]) for slot, i in self.kept])
            outs = memory.run(0, *memory.again)
            if self.needs is not None:
                if len(outs) > 1:
                    memory.versions = [args[i]._st.version for i in self.steady]
                tape.record(owner._op, owner._params, args, outs, (self.k, _Pending(memory, owner)))
                return outs
            memory.leave()
        except BaseException:
            memory.room.leave()  # nobody knows its state
            raise
        self.idle.append(memory.room)
        return outs

    def _shared(self, args: Sequence[Any], datas: Sequence[Any]) -> list[int]:
        """The inputs that a call writes to and that have memory in common with others, which it may read later."""
        device, times = self.ctx.device, Counter(map(id, datas))
        if len(times) == len(datas) and apart(device, args):
            return []
        # There may be hundreds, and at each step if batches are views: `overlapping` would take a quarter of the time
        # of a small network. One that owns its memory can only meet views, and itself.
        views = {i: d for i, d in enumerate(datas) if not device.owns(d)}
        found = []
        for i in self.moves:
            near = enumerate(datas) if i in views else views.items()
            if times[id(datas[i])] > 1 or overlaps(device, datas[i], [d for j, d in near if j != i]):
                found.append(i)
        return found

    def _call_apart(
        self, owner: CachedOp, args: Sequence[Any], datas: Sequence[Any], shared: Sequence[int]
    ) -> list[Any]:
        """A call that leaves some inputs as they are until it has computed what they become."""
        for i in shared:
            self.check_writable(args[i], i)
            args[i].wait_to_read()
        places = {i: wrap(datas[i].copy(), self.ctx) for i in shared}
        outs = self.call(owner, args, datas, places)
        for i, x in places.items():
            assign(args[i], x)
        return outs

    def check_writable(self, x: Any, i: int) -> None:
        """Refuse read-only memory of an input that is written to."""
        what = "an operator in it writes to" if i in self.written else "training moves the auxiliary state"
        check_writable(x, f"{what} '{self.names[i]}'")

    def lasts(self, i: int, grad: Any) -> bool:
        """Whether a gradient is a dense array here with writable memory of its own; remembered for the next time."""
        device, data = self.ctx.device, grad._data
        if not (grad.stype == "default" and grad._st.ctx is self.ctx and device.owns(data) and device.writable(data)):
            return False
        with suppress(TypeError):  # arrays of plugins' devices need not have weak references
            self.lasting[i] = weakref.ref(data)
        return True

    def take_over(self, other: _Memory) -> _Memory:
        """Memory, in the same room, for the gradients of a call that another signature has run: it runs both parts."""
        room, other.used = other.room, True  # what the first part has left there goes
        memory = self.memories.get(room)
        if memory is None:
            memory = self.memories[room] = _Memory(self, room)
        memory.signature = self
        memory.reads, memory.moved, memory.before = other.reads, other.moved, other.before
        memory.datas, memory.stamps, memory.used = other.datas, {}, True
        assert other.again is not None
        memory.again = [(slot, other.datas[i]) for slot, i in self.slots], other.again[1]
        return memory

    def _settle(self, room: Room | None) -> _Memory:
        """Memory for a call that finds none in the room that was used last."""
        rooms = self.rooms
        if room is not None:
            rooms.idle.append(room)
        room = rooms.take(self.memories, self.program.sizes)
        found = self.memories.get(room)
        if found is None:
            try:
                found = self.memories[room] = _Memory(self, room)
            except BaseException:
                rooms.idle.append(room)
                raise
        return found


class _Memory:
    """An instance in a room, by whose `st` the engine orders its uses."""

    __slots__ = (
        "signature",
        "room",
        "st",
        "instance",
        "again",
        "datas",
        "versions",
        "before",
        "reads",
        "moved",
        "stamps",
        "used",
        "lock",
    )

    def __init__(self, signature: _Signature, room: Room) -> None:
        #: Only while it is in use: idle memory goes at once with a signature that is dropped, waits for no collector.
        self.signature = signature
        self.room, self.st = room, room.st
        self.instance = room.instance(signature)
        #: Values and keys of the first part, which is repeated where a second backward needs what the first used up.
        self.again: tuple[Any, Any] | None = None
        #: The arrays of all inputs, and, where there are several outputs, how often steady ones had been written to.
        self.datas: Sequence[Any] = ()
        self.versions: list[int] = []
        #: Input -> what it held before the first part wrote to it.
        self.before: dict[int, Any] = {}
        #: The inputs, which the second part reads too.
        self.reads: Sequence[Any] = ()
        #: Those inputs that it may write to.
        self.moved: list[Any] = []
        #: Of the inputs that kernels keep something of.
        self.stamps: dict[int, Any] = {}
        self.used = False
        #: Held by a backward: two threads may go through one graph.
        self.lock = fork_safe_lock()

    def run(
        self,
        part: int,
        values: Sequence[tuple[int, Any]],
        keys: list[Any],
        more: Sequence[Storage] = (),
        places: Sequence[Any] = (),
    ) -> list[Any]:
        """Run a part now, or in the order of the engine.

        Parameters
        ----------
        part : int
        values : sequence of (slot, device array)
        keys : list
        more : sequence of Storage
            What it reads beside the inputs.
        places : sequence of NDArray or None
            Arrays for heads to be written to.

        Returns
        -------
        list
            The heads, in their places, else in new arrays, as who gets them owns them; None for None.
        """
        s, instance = self.signature, self.instance
        ctx, heads = s.ctx, s.heads[part]
        empty, index = ctx.device.empty, ctx.device_id
        outs: list[Any] = []
        targets: list[tuple[Any, Any]] = []
        writes = [self.st]
        try:
            for (h, made), place in zip(heads, places or repeat(None)):
                y = None
                if made is not None:
                    y = place
                    if place is None or (place._data.shape, place._data.dtype) != made:
                        y = fresh(NDArray if part else s.array, empty(*made, index), ctx)
                    targets.append((h, y._data))
                    writes.append(y._st)
                outs.append(y)
        except MemoryError as e:
            raise error(
                MemoryError, f"no memory on {ctx} for the {'gradients' if part else 'outputs'} of a compiled block: {e}"
            ) from e
        train, noted = state.train if part else s.train, self.stamps  # backward has a mode of its own
        moved: list[Any] = []
        for x, i in zip(self.moved, s.mutated):
            if train or i in s.written:
                s.check_writable(x, i)
                writes.append(x._st)
                moved.append(x)

        last = self.room.last
        if last is instance:
            last = None
        else:
            self.room.last = instance

        def work(where: str) -> None:
            if last is not None:
                last.let_go({id(v) for _, v in values})
            instance.note(noted)
            instance.bind(part, values, targets, train)
            instance.run(part, keys, where)

        # The second part reads what the first has left: where that failed, so does this.
        given = s.program, part, ctx, work, [*self.reads, *more, *writes[:part]], writes, False, train
        if s.program.sync:  # users' code may run in it, which may wait for other threads
            moved = []
        if places or moved:  # no other thread that runs here writes to the same gradients or states meanwhile
            writing([*places, *moved], launch, *given)
        else:
            launch(*given)
        # Heads of unknown shape exist only once the program has run; such programs run at once.
        if len(targets) != len(heads):
            for i, (h, made) in enumerate(heads):
                value = None if h is None or made is not None else instance.loose(h)
                if value is not None:
                    stype = getattr(value, "stype", "default")
                    outs[i] = (faces[stype] if part or stype != "default" else s.array)(value, Storage(ctx))
        return outs

    def leave(self) -> None:
        """Let go of the call."""
        if self.signature.program.sync:
            self.instance.forget()
        self.again, self.reads, self.datas, self.used, self.before = None, (), (), False, {}
        del self.signature

    def backward(self, dys: Sequence[Any], places: Sequence[Any] = ()) -> list[Any]:
        """Run the second part; gradients that have a place are written there."""
        s = self.signature
        given = [(slot, as_lowered(dys[i])) for slot, i in s.head_grads]
        with self.lock:
            try:
                states: list[tuple[int, Any]] = []
                if self.used and self.again is not None:
                    values, keys = self.again
                    # Not to the first outputs, which are the caller's, nor to the states, which the first has moved.
                    first = [(slot, self.before[i].copy()) for slot, i in s.slots if i in self.before]
                    self.run(0, [*values, *first], keys)
                    states = [(slot, v) for (slot, i), (_, v) in zip(s.slots, values) if i in self.before]
                self.used = True
                grads = [*states, *((slot, g._data) for slot, g in given)]
                return self.run(1, grads, self.instance.keys(1), [g._st for _, g in given], places)
            except BaseException:
                # An interrupt may have come at any time: another instance runs both parts, should they be asked for.
                s.memories.pop(self.room, None)
                self.used, self.instance = True, self.room.instance(s)
                raise


class _Pending:
    """What the tape holds of a call: its memory, given back when nothing can ask for its gradients any more."""

    __slots__ = ("memory", "owner")

    def __init__(self, memory: _Memory, owner: CachedOp) -> None:
        self.memory, self.owner = memory, owner

    def backward(self, dys: Sequence[Any], inputs: Sequence[Any], ends: Any = None) -> list[Any]:
        """The gradients, by the signature whose outputs have those gradients that there are."""
        memory, s = self.memory, self.memory.signature
        places = () if ends is None else _places(memory, ends[0], ends[1], dys)
        without = frozenset([i for i in s.matter if dys[i] is None])
        if without == s.without:
            return memory.backward(dys, places)
        written = memory.versions != [inputs[i]._st.version for i in s.steady]
        made = [spec for _, spec in s.heads[0]]
        if written and not memory.used and not s.without and None not in made:
            # Running again would see what was written since: zeros stand for the gradients that there are not.
            return memory.backward(
                [zeros(spec[0], s.ctx, spec[1]) if g is None and spec else g for g, spec in zip(dys, made)], places
            )
        # Who writes to inputs may do it again: calls keep what all outputs need.
        right = self.owner.expect(s, without, _NONE if written else without, inputs, memory.datas)
        with memory.lock:
            mine = right.take_over(memory)
            try:
                return mine.backward(dys, places)
            finally:
                mine.leave()

    def __del__(self) -> None:
        if (memory := getattr(self, "memory", None)) is not None:  # else its making was interrupted
            room, idle = memory.room, memory.signature.idle
            memory.leave()
            idle.append(room)


def _places(memory: _Memory, entries: Sequence[Any], leaves: dict[Any, Any], dys: Sequence[Any]) -> Sequence[Any]:
    """Where the gradients of a backward's last call end, for those that may be written there at once, else None.

    Nobody else has that memory, nothing that is still read or to be written lies there, and what was there is not asked
    for.
    """
    s = memory.signature
    ends = [e[0] for e, wanted in zip(entries, s.needs or ()) if wanted]
    if s.program.sync or {*map(type, ends)} - {tape.Leaf}:
        return ()  # Python code in it may wait for other threads; the tape goes on behind it, or is freed
    grads = [leaf.grad for leaf in ends]
    busy = {*map(id, memory.reads), *[id(g._st) for g in (*dys, *leaves.values()) if g is not None]}
    busy.update([id(leaf.grad._st) for leaf in leaves if leaf.grad is not None])
    several = Counter(map(id, grads)) if len({*map(id, grads)}) < len(grads) else {}
    places: list[Any] = []
    for i, (leaf, g) in enumerate(zip(ends, grads)):
        if (
            g is not None
            and leaf.req == "write"
            and g._st.views == 0
            and id(g._st) not in busy
            and (not several or several[id(g)] == 1)
            and (g._data is s.lasting[i]() or s.lasts(i, g))
        ):
            places.append(g)
        else:
            places.append(None)
    return places


def _mattering(heads: Sequence[Any], wrt: Sequence[str]) -> tuple[int, ...]:
    """Which heads variables have gradients through, as far as the operators on the way have gradients at all."""
    names, through = {*wrt}, set()
    for n in topo(heads):
        if (n.name in names) if n.op is None else any(id(m) in through for m, _ in n.inputs):
            if n.op is None or plan_of(n.op).rule is not None or n.op.backward_rule is not None:
                through.add(id(n))
    return tuple([i for i, (n, _) in enumerate(heads) if id(n) in through])


def _backward(k: Any, p: Any, pending: _Pending, dys: Sequence[Any], inputs: Sequence[Any], outputs: Any) -> list[Any]:
    """The gradients of a recorded call."""
    grads = iter(pending.backward(dys, inputs, k._ends))
    return [next(grads) if wanted else None for wanted in pending.memory.signature.needs or ()]
