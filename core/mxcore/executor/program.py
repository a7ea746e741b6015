"""Lowered programs: a graph with known shapes as a flat list of steps over slots, with its memory planned.

A slot holds one value: a variable, or an output of a node. Where it lives is decided here, once:

- *variables* and *heads* are the caller's arrays;
- *planned* slots lie in a block of memory where lifetimes that do not overlap share bytes (:mod:`.memory`);
- the result of a view operator is its input's memory in another shape, and its step vanishes;
- *loose* slots hold values whose shape or storage type is known only by running.

:class:`.instance.Instance` binds a program to arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._core import infer
from .._core.call import BoundCall, OpContext, op_context
from .._core.context import Context
from .._core.errors import MXNetError, error
from .._core.graph import Graph, Node, topo
from .._core.kernels import Spec
from ..composing import mode_of
from ..gradient import STATE_BACKWARD
from ..inference import infer_graph
from ..looking import attribute
from .draws import in_order, may_draw
from .keep import keeps
from .memory import Interval, layout
from .passes.mirror import MIRRORED

__all__ = ["Program", "Step", "infer_all", "undecided"]

Entry = tuple[Node, int]


def infer_all(
    heads: Sequence[Entry],
    shapes: dict[str, Any],
    dtypes: dict[str, Any],
    stypes: dict[str, str],
    known: tuple[dict[Entry, Any], dict[Entry, Any]] = ({}, {}),
) -> tuple[dict[Entry, Any], dict[Entry, Any], dict[Entry, str]]:
    """Shapes, dtypes and storage types of all entries, from those of variables by name.

    Shapes and dtypes of entries that are `known` already must agree with what follows from the others.
    """
    nodes = topo(heads)

    def given(values: dict[str, Any], known: dict[Entry, Any]) -> dict[Entry, Any]:
        return known | {(n, 0): values[n.name] for n in nodes if n.op is None and values.get(n.name) is not None}

    s = infer_graph(nodes, given(shapes, known[0]), "shape")
    t = infer_graph(nodes, given(dtypes, known[1]), "dtype")
    st: dict[Entry, str] = {}
    for n in nodes:
        if n.op is None:
            st[n, 0] = stypes.get(n.name, "default")
        else:
            kinds = infer.op_stypes(n.op, n.params, [st[e] for e in n.inputs])
            if any(kind != "default" for kind in kinds) and "zeros_stay" in n.op.facets:
                dtype = t.get(n.inputs[0])
                if dtype is not None and not n.op.facet("zeros_stay", n.params, np.dtype(dtype)):
                    kinds = ["default"] * len(kinds)
            st.update(((n, i), kind) for i, kind in enumerate(kinds))
    return s, t, st


def undecided(heads: Sequence[Entry], dtypes: Mapping[Entry, Any]) -> MXNetError | None:
    """The error for the first operator below heads whose dtype rule leaves open what it gives; None if all is known."""
    for n in topo(heads):
        if n.op is not None and any(dtypes.get((n, i)) is None for i in range(n.n_out)):
            seen = ", ".join(f"{name} {infer.show(dtypes.get(e))}" for name, e in zip(n.params._sig.inputs, n.inputs))
            return error(
                TypeError,
                f"operator {n.op.name} of node '{n.name}': the dtype of its output cannot be inferred from "
                f"{seen or 'no inputs'}",
            )
    return None


class Step:
    """One call: an operator, its kernel, and the slots that it reads and fills.

    Attributes
    ----------
    node, op, p
        What it computes; None for a step that only hands a value to a head.
    bound : BoundCall
        Kernel and specs, as in eager calls.
    k : OpContext
        The call context; random steps get one for each instance.
    ins, outs : list of int
        Slots.
    ctx : Context
    random : bool
        Draws a key at every run.
    view : bool
        The result is the memory of the first input.
    state : int
        Slot of the state that a stateful node makes or its backward reads; -1 for others.
    back : Op or None
        The forward operator whose `backward_rule` this step runs.
    head : int
        Index of the head that the value is handed to; -1 for operators.
    """

    __slots__ = ("node", "op", "p", "bound", "k", "ins", "outs", "ctx", "random", "view", "state", "back", "head")

    node: Node
    op: Any
    p: Any
    bound: Any
    k: Any
    ins: list[int]
    outs: list[int]
    ctx: Context
    random: bool
    view: bool
    state: int
    back: Any
    head: int

    def __repr__(self) -> str:
        what = f"head {self.head}" if self.head >= 0 else f"{self.op.name} {self.node.name}"
        return f"<Step {what}: {self.ins} -> {self.outs}>"


class Program:
    """A graph lowered for one set of shapes; holds no memory.

    Parameters
    ----------
    graph : Graph
        With shapes, dtypes and stypes filled in. ``info['contexts']`` may place nodes (by id) elsewhere than on `ctx`;
        ``info['order']`` may tell in which order the later heads are best computed, ``info['drawn']`` in which order
        nodes draw (:mod:`.draws`).
    ctx : Context
    is_train : bool
    n_first : int, optional
        So many heads are the first part (forward), the others the second (backward); all unless told.
    adds : set of int
        Heads whose value is added to what the caller's array holds.
    share : bool
        Plan memory; without it every value keeps a place of its own, for monitors.

    Attributes
    ----------
    steps : list of Step
    split : int
        Number of steps of the first part.
    sizes : dict of (Context, dtype) to int
        Elements of each block of planned memory.
    sync : bool
        It must run in the caller's thread: a step is stateful, or something is known only by running.
    draws : tuple of list
        Of each part the steps that draw a random key, in the order in which they do; a context for one that is no more.
    orderly : bool
        The steps of the first part draw in that order by themselves.
    work : tuple of float
        Estimated scalar operations of both parts.
    written : tuple of set of int
        The variables, by their slots, that steps of both parts write to.
    keeping : frozenset of int
        The variables that kernels read which keep something of them (:mod:`.keep`); none in a program with a second
        part, whose variables change at every step.
    """

    def __init__(
        self,
        graph: Graph,
        ctx: Context,
        is_train: bool,
        n_first: int | None = None,
        adds: frozenset[int] = frozenset(),
        share: bool = True,
    ) -> None:
        self.graph, self.ctx, self.is_train, self.adds, self.share = graph, ctx, is_train, adds, share
        heads = graph.heads
        n_first = len(heads) if n_first is None else n_first
        self.n_first = n_first
        before = {id(n) for n in topo(heads[:n_first])}
        order = graph.info.get("order", range(n_first, len(heads)))
        nodes = _late(topo([*heads[:n_first], *[heads[i] for i in order]]))
        ops = [n for n in nodes if n.op is not None]
        self._contexts: dict[int, Context] = graph.info.get("contexts", {})
        self.slot: dict[Entry, int] = {}
        #: Name of a variable -> its slot.
        self.variables: dict[str, int] = {}
        for n in nodes:
            if n.op is None:
                self.slot[n, 0] = self.variables.setdefault(n.name, len(self.variables))
        self.specs: list[Spec] = [Spec(None, None)] * len(self.variables)
        for n in nodes:
            if n.op is None:
                self.specs[self.slot[n, 0]] = self._spec((n, 0))
        self.n_slots = len(self.variables)
        self._used = {e for n in ops for e in n.inputs} | set(heads)
        self._states: dict[int, int] = {}
        self.steps: list[Step] = []
        waiting: dict[Entry, list[int]] = {}  # heads whose value has to be handed over, by entry
        claimed: dict[Entry, int] = {}
        for i, e in enumerate(heads):
            late = id(e[0]) in before and i >= n_first  # a gradient that forward has computed
            if e[0].op is None or e in claimed or late or i in adds or self._is_view(e[0]) or not self._spec(e).fixed:
                waiting.setdefault(e, []).append(i)
            else:
                claimed[e] = i
        for first in (True, False):
            for n in nodes:
                if n.op is None or (id(n) in before and not first):
                    self._hand_over(n, waiting, first)
                elif (id(n) in before) == first:
                    self._add(n)
                    self._hand_over(n, waiting, first)
            if first:
                self.split = len(self.steps)
        drawing = [(t, s.node) for t, s in enumerate(self.steps[: self.split]) if s.head < 0 and may_draw(s.node)]
        order_of_keys, self.orderly = in_order(drawing, graph.info.get("drawn", {}))
        later: list[int | Context] = [t for t in self.part(1) if self.steps[t].random]
        self.draws = order_of_keys, later
        #: Slot of the value of each head; slot -> head for those written straight into the caller's array.
        self.head_slots = [self.slot[e] for e in heads]
        #: Head -> the step that hands a value to it.
        self.handed = {step.head: t for t, step in enumerate(self.steps) if step.head >= 0}
        self.claimed = {self.slot[e]: i for e, i in claimed.items()}
        self.sync = any(
            s.head < 0 and (s.op.stateful or s.back is not None or not all(x.fixed for x in s.bound.specs))
            for s in self.steps
        )
        self.work = tuple(
            sum(s.bound.work for s in part if s.head < 0)
            for part in (self.steps[: self.split], self.steps[self.split :])
        )
        #: Bytes of the caller's arrays: variables and heads.
        self.given = sum(
            self.specs[s].size * self.specs[s].dtype.itemsize
            for s in (*range(len(self.variables)), *self.head_slots)
            if self.specs[s].fixed
        )
        self.written = self._written()
        self.keeping = self._keeping()
        self.sizes: dict[tuple[Context, np.dtype[Any]], int] = {}
        #: Planned slot -> (block, first element).
        self.places: dict[int, tuple[tuple[Context, Any], int]] = {}
        self._plan_memory()
        self.users: list[list[int]] = [[] for _ in range(self.n_slots)]
        for t, step in enumerate(self.steps):
            for s in {*step.ins, *step.outs}:
                self.users[s].append(t)

    # -- steps -------------------------------------------------------------------------------------------------
    def _spec(self, e: Entry) -> Spec:
        g = self.graph
        shape = g.shapes.get(e)
        return Spec(shape if infer.known(shape) else None, g.dtypes[e], g.stypes.get(e, "default"))

    def _is_view(self, n: Node) -> bool:
        if not n.op.view or n.n_out != 1 or n.op.stateful or self.context(n) is not self.context(n.inputs[0][0]):
            return False
        out, ins = self._spec((n, 0)), [*map(self._spec, n.inputs)]
        if any(spec.stype != "default" for spec in ins):
            return False  # it runs as it is called, and its value is known only then
        data = ins[0]
        # Kernels want whole, contiguous arrays: other shapes of all of it, or rows of it.
        return out.fixed and data.fixed and (out.size == data.size or out.shape[1:] == data.shape[1:])

    def context(self, n: Node) -> Context:
        """Where a node computes, or a variable lives."""
        return self._contexts.get(id(n), self.ctx)

    def _new_slots(self, specs: Sequence[Spec]) -> list[int]:
        self.specs += specs
        self.n_slots += len(specs)
        return list(range(self.n_slots - len(specs), self.n_slots))

    def _hand_over(self, n: Node, waiting: dict[Entry, list[int]], first: bool) -> None:
        """Steps that give a node's values to heads that they were not written into."""
        for i in range(n.n_out):
            for head in waiting.get((n, i), ()):
                if (head < self.n_first) != first:
                    continue
                step = Step()
                step.node, step.op, step.p, step.bound, step.k = n, None, None, None, None
                step.ins, step.outs, step.head = [self.slot[n, i]], [], head
                step.ctx, step.random, step.view, step.state, step.back = self.context(n), False, False, -1, None
                self.steps.append(step)

    def _add(self, n: Node) -> None:
        op, p, sig = n.op, n.params, n.params._sig
        ins = [self._spec(e) for e in n.inputs]
        step = Step()
        step.node, step.op, step.p, step.ctx, step.head = n, op, p, self.context(n), -1
        step.back = getattr(op, STATE_BACKWARD, None)
        step.random = sig.random and step.back is None
        step.view = self._is_view(n)
        outs = [self._spec((n, i)) for i in range(sig.n_out)]
        # The backward of a stateful operator is its rule, for which no device has a kernel.
        step.bound = BoundCall(op, p, step.ctx.device, ins, outs, step.back and op.body)
        wanted = tuple((n, i) in self._used for i in range(sig.n_out))
        is_train = mode_of(n, self.is_train)
        op_context(step.ctx, is_train)
        step.k = OpContext(step.ctx, is_train, None if all(wanted) else wanted)
        if all(s.shape is not None for s in outs):
            step.k.shapes = tuple(s.shape for s in outs)
        step.ins = [self.slot[e] for e in n.inputs]
        step.outs = self._new_slots(outs)
        self.slot.update(((n, i), s) for i, s in enumerate(step.outs))
        step.state = -1
        if op.stateful:
            step.state = self._states[id(n)] = self._new_slots([Spec(None, None)])[0]
        elif n.forward is not None:
            step.state = self._states.get(id(n.forward), -1)
        self.steps.append(step)

    # -- memory ------------------------------------------------------------------------------------------------
    def _written(self) -> tuple[set[int], set[int]]:
        first, second = (
            {step.ins[i] for step in steps if step.head < 0 for i in step.p._sig.written}
            for steps in (self.steps[: self.split], self.steps[self.split :])
        )
        return first, second

    def _keeping(self) -> frozenset[int]:
        if len(self.head_slots) > self.n_first or self.ctx.device.captures:
            return frozenset()
        found = {s for step in self.steps if step.head < 0 and keeps(step.bound.fn) for s in step.ins}
        return frozenset(found & {*self.variables.values()} - self.written[0])

    def _plan_memory(self) -> None:
        """Decide where each temporary value lies."""
        #: Of each slot the one whose memory it has: of a view that of its input.
        root = self.roots = list(range(self.n_slots))
        made: dict[int, int] = {}
        last: dict[int, int] = {}
        for t, step in enumerate(self.steps):
            shapes_only = step.p._sig.like if step.head < 0 else ()
            for j, s in enumerate(step.ins):
                if j not in shapes_only:  # of those the place may hold something else by now
                    last[root[s]] = t
            if step.view:
                root[step.outs[0]] = root[step.ins[0]]
            else:
                made.update(dict.fromkeys(step.outs, t))
        blocks: dict[tuple[Context, Any], list[Interval]] = {}
        at: dict[int, tuple[tuple[Context, Any], Interval]] = {}
        for t, step in enumerate(self.steps):
            if step.view or step.head >= 0:
                continue
            wanted = step.k.wanted
            lent: dict[str, list[int]] = {}  # output -> the inputs that it may overwrite
            if self.share and step.op.alias:
                for j, name in enumerate(step.p._sig.inputs):
                    if name in step.op.alias:
                        lent.setdefault(step.op.alias[name], []).append(j)
            for i, s in enumerate(step.outs):
                spec = self.specs[s]
                if s in self.claimed or not spec.fixed or (wanted is not None and not wanted[i]):
                    continue
                where = (step.ctx, np.dtype(spec.dtype))
                end = last.get(s, t)
                old = (
                    self._reusable(step, lent[step.p._sig.outputs[i]], i, t, root, last, at, where)
                    if lent.get(step.p._sig.outputs[i])
                    else None
                )
                if old is not None:
                    old.last = end
                    at[s] = (where, old)
                    continue
                interval = Interval(spec.size, t, end)
                blocks.setdefault(where, []).append(interval)
                at[s] = (where, interval)
        for where, intervals in blocks.items():
            self.sizes[where] = layout(intervals, self.share)
        self.places = {s: (where, interval.offset) for s, (where, interval) in at.items()}

    def _reusable(
        self,
        step: Step,
        lent: list[int],
        i: int,
        t: int,
        root: list[int],
        last: dict[int, int],
        at: dict[int, Any],
        where: Any,
    ) -> Interval | None:
        """The memory of one of the inputs that the operator lets an output overwrite, if nobody reads that later."""
        for j in lent:
            r = root[step.ins[j]]
            if (
                r not in at
                or last.get(r) != t
                or at[r][0] != where
                or self.specs[r].size != self.specs[step.outs[i]].size
            ):
                continue
            # Other inputs in the same memory must be read at the same places: whole arrays of one shape.
            others = [s for s in step.ins if root[s] == r]
            if any(self.specs[s].shape != self.specs[step.outs[i]].shape for s in others):
                continue
            interval: Interval = at[r][1]
            if interval.last == t:
                return interval
        return None

    def part(self, number: int) -> range:
        """The steps of the first part (0) or the second (1)."""
        return range(self.split, len(self.steps)) if number else range(self.split)

    @property
    def nbytes(self) -> int:
        """Bytes of planned memory, and of that which operators of plugins' passes have for themselves."""
        own = sum(int(attribute(step.op, "nbytes", 0)) for step in self.steps if step.op is not None)
        return own + sum(n * dtype.itemsize for (_, dtype), n in self.sizes.items())

    @property
    def scratch(self) -> int:
        """Bytes of memory that operators of plugins' passes need in a call, and share with all programs."""
        return max((int(attribute(step.op, "scratch", 0)) for step in self.steps if step.op is not None), default=0)


def _late(nodes: list[Node]) -> list[Node]:
    """The same nodes, the recomputed ones right before their first use."""
    order: list[Node] = []
    done: set[int] = set()
    for n in nodes:
        if MIRRORED in n.attrs:
            continue
        stack = [n]
        while stack:  # a node, below those recomputed ones that it needs first
            todo = [m for m, _ in stack[-1].inputs if MIRRORED in m.attrs and id(m) not in done]
            if todo:
                stack += todo
            else:
                m = stack.pop()
                if id(m) not in done:
                    done.add(id(m))
                    order.append(m)
    return order
