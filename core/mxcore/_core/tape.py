"""The tape of automatic differentiation, and the gradient plans that it shares with the graph.

A tape node holds its operator, parameters, links to its parents and what its gradient rule asked for; never one of its
own outputs, so dropping the last output frees the graph by reference count. Gradients are operators: a rule runs on
arrays here and on graph values in :mod:`mxcore._core.gradient`.
"""
from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from . import frontend, transfer  # circular, used at call time only
from .array import Array, Like, Storage
from .errors import MXNetError, MXNetWarning, error, raise_in_op
from .gradplan import GradPlan, plan_of
from .op import MISSING, Op
from .params import Params
from .state import state

__all__ = ["Leaf", "TapeNode", "record", "mark", "backward", "differentiable"]

_serial = itertools.count()
_NOTHING: Any = ((), None)


class Leaf:
    """A variable that gradients end in: its gradient array and how to write it ('write', 'add', 'null')."""

    __slots__ = ("grad", "req", "flows", "fresh")
    op = None

    def __init__(self, grad: Array | None, req: str) -> None:
        self.grad, self.req, self.flows = grad, req, req != "null"
        #: Whether a backward has written the gradient since somebody last set this to False.
        self.fresh = False


class TapeNode:
    """One recorded operator call: parents (`inputs`), what its rule asked to keep (`saved`), and, while a backward
    runs, the gradients that have arrived (`dys`)."""

    __slots__ = ("op", "params", "inputs", "saved", "versions", "specs", "serial", "k", "state", "dys")
    flows = True

    op: Op
    params: Params
    inputs: Any
    saved: Any
    versions: Any
    specs: Any
    serial: int
    k: Any
    state: Any
    dys: Any

    def __lt__(self, other: TapeNode) -> bool:
        return self.serial > other.serial  # a heap gives the latest first


def _plan_or_none(op: Op) -> GradPlan | None:
    return None if op.grad_rule is MISSING and op.backward_rule is None else plan_of(op)


def differentiable(entry: Any) -> bool:
    """Whether gradients flow through this place on the tape."""
    return bool(entry[0].flows)


def record(op: Op, p: Params, inputs: Sequence[Any], outputs: Sequence[Any], k: Any, saved_state: Any = None) -> None:
    """Write a call on the tape, if any input is on it."""
    if len(inputs) == 1:
        e = inputs[0]._entry
        if e is None or not e[0].flows:
            return
        entries = [e]
    else:
        entries = [x._entry for x in inputs]
        for e in entries:
            if e is not None and e[0].flows:
                break
        else:
            return
    node = TapeNode()
    node.op = op
    node.params = p
    node.inputs = entries
    node.serial = next(_serial)
    node.k = k
    node.state = saved_state
    node.dys = None
    plan = op.grad_plan or _plan_or_none(op)
    if plan is None:
        node.saved = None  # the error is raised if a gradient ever asks for it
    elif plan.keeps_nothing:
        node.saved = _NOTHING
    else:
        _keep(node, plan, p, inputs, outputs)
    if len(outputs) == 1:
        node.specs = None
        outputs[0]._entry = (node, 0)
    else:
        node.specs = [None if y is None else Like(y) for y in outputs]
        for i, y in enumerate(outputs):
            if y is not None:
                y._entry = (node, i)


def _keep(node: TapeNode, plan: GradPlan, p: Params, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    keep: list[Any] = []
    versions: Any = []
    held, likes = plan.keeps_inputs, plan.likes
    aux = p._sig.aux
    for i, (x, slot) in enumerate(zip(inputs, p._sig.slots)):
        if slot in held:
            keep.append(x)
            # Auxiliary states may be written in between, as by the backward of another call.
            versions.append(-1 if i in aux else x._st.version)
        else:
            keep.append(Like(x) if slot in likes else None)
            versions.append(-1)
    own = None
    if plan.keeps_outputs:
        own = {}
        for i in plan.keeps_outputs:
            j = p._sig.out_at.get(i)
            if j is not None:
                # A twin without a place on the tape: the node must not hold its own output.
                y = outputs[j]
                own[j] = y.__class__(y._data, y._st)
    node.saved = (keep, own)
    node.versions = versions if held else ()


def mark(x: Array, grad: Array | None, req: str) -> None:
    """Make `x` a variable: gradients end in it and are written to `grad`."""
    if req not in ("write", "add", "null"):
        raise error(ValueError, f"grad_req must be 'write', 'add' or 'null', got {req!r}")
    x._entry = (Leaf(grad, req), 0)


def _needed(heads: Sequence[Any], wanted: set[tuple[int, int]]) -> set[int]:
    """Ids of the nodes below the heads on a path to the wanted entries."""
    seen: dict[int, TapeNode] = {}
    stack = [e[0] for e in heads]
    while stack:
        n = stack.pop()
        if id(n) not in seen and n.op is not None:
            if n.inputs is None:
                raise _freed(n)
            seen[id(n)] = n
            stack += [e[0] for e in n.inputs if e is not None]
    need: set[int] = set()
    for n in sorted(seen.values(), key=lambda n: n.serial):
        if any(e is not None and ((id(e[0]), e[1]) in wanted or id(e[0]) in need) for e in n.inputs):
            need.add(id(n))
    return need


def _freed(n: TapeNode) -> MXNetError:
    return error(RuntimeError, f"the graph of operator {n.op.name} was freed by an earlier backward(); "
                               "pass retain_graph=True to the first one")


def backward(heads: Sequence[Array], head_grads: Sequence[Array | None] | None, *, retain_graph: bool = False,
             train_mode: bool = True, create_graph: bool = False, variables: Sequence[Array] | None = None) -> list[Any] | None:
    """Run the tape backwards from `heads`.

    Parameters
    ----------
    heads : sequence of Array
    head_grads : sequence of Array or None
        Incoming gradients; None means ones.
    retain_graph : bool
        Keep what the rules need, so that backward can run again.
    train_mode : bool
        Mode in which gradient operators run.
    create_graph : bool
        Record the gradient computation itself.
    variables : sequence of Array, optional
        Return the gradients of these instead of writing those of marked variables.

    Raises
    ------
    MXNetError
        If a head or a variable is not on the tape, or an operator on the way has no gradient.
    """
    entries = []
    for i, h in enumerate(heads):
        if h._entry is None or not h._entry[0].flows:
            raise error(RuntimeError, f"cannot differentiate head {i}: it is not in a computational graph; compute it inside "
                                      "autograd.record() from arrays with attach_grad()")
        entries.append(h._entry)
    wanted: set[tuple[int, int]] | None = None
    need: set[int] | None = None
    if variables is not None:
        for i, v in enumerate(variables):
            if v._entry is None:
                raise error(RuntimeError, f"cannot differentiate with respect to variable {i}: it is not in the graph; "
                                          "call attach_grad() on it before autograd.record()")
        wanted = {(id(v._entry[0]), v._entry[1]) for v in variables}
        need = _needed(entries, wanted)
    run = _Run(frontend.eager, wanted, need, create_graph)
    before = (state.record, state.train)
    state.record, state.train = create_graph, train_mode
    try:
        for i, h in enumerate(heads):
            g = head_grads[i] if head_grads is not None else None
            if g is None:
                g = _ones(h)
            elif tuple(g.shape) != tuple(h.shape):
                raise error(ValueError, f"head gradient {i} has shape {tuple(g.shape)}, its head {tuple(h.shape)}")
            run.arrive((entries[i],), (g,))
        done = run.all()
        if variables is None:
            state.record = False
            for leaf, g in run.leaves.items():
                _write(run.F, leaf, g)
            if run.dropped:
                _write_zeros(run)
            result: list[Any] | None = None
        else:
            result = []
            for v in variables:
                g = run.found(v)
                if any(g is c for c in (*result, *_ONES.values())):  # rules may hand on one array twice; callers may write
                    g, entry = g.dense(g._data.copy(), Storage(g._st.ctx)), g._entry
                    g._entry = entry
                result.append(g)
        if not retain_graph and not create_graph:
            for n in done:
                n.saved = n.inputs = n.state = None
    finally:
        state.record, state.train = before
        for n in run.queue:  # an error left them waiting
            n.dys = None
    return result


_ONES: dict[Any, Array] = {}


def _ones(h: Array) -> Array:
    """Ones like a head; those of one element are made once, as losses are scalars."""
    d, ctx = h._data, h._st.ctx
    key = (ctx, d.shape, d.dtype, h.dense)
    g = _ONES.get(key)
    if g is None:
        g = h.dense(ctx.device.xp.ones(d.shape, d.dtype), Storage(ctx))
        if g._data.size == 1:
            _ONES[key] = g
    return g


class _Run:
    """One backward: nodes wait in a heap, latest first, until all gradients of their outputs have arrived."""

    __slots__ = ("F", "wanted", "need", "create_graph", "queue", "leaves", "results", "dropped")

    def __init__(self, F: Any, wanted: set[tuple[int, int]] | None, need: set[int] | None, create_graph: bool) -> None:
        self.F, self.wanted, self.need, self.create_graph = F, wanted, need, create_graph
        self.queue: list[TapeNode] = []
        self.leaves: dict[Leaf, Any] = {}
        self.results: dict[tuple[int, int], Any] = {}
        #: Nodes and leaves that a rule gave no gradient to: variables found only there get zeros.
        self.dropped: list[Any] = []

    def arrive(self, entries: Sequence[Any], grads: Sequence[Any]) -> None:
        """Add gradients to the entries that they belong to."""
        for e, g in zip(entries, grads):
            if g is None or e is None:
                if e is not None and e[0].flows:
                    self.dropped.append(e[0])
                continue
            node = e[0]
            if node.op is None:
                if node.flows or self.wanted is not None:
                    leaves = self.leaves
                    leaves[node] = self.F._grad_add(leaves[node], g) if node in leaves else g
                continue
            dys = node.dys
            if dys is None:
                specs = node.specs
                node.dys = [g] if specs is None else [g if j == e[1] else None for j in range(len(specs))]
                heappush(self.queue, node)
            else:
                i = e[1]
                old = dys[i]
                dys[i] = g if old is None else self.F._grad_add(old, g)

    def all(self) -> list[TapeNode]:
        """Run until nothing waits; returns the nodes in order."""
        done, queue, need = [], self.queue, self.need
        while queue:
            n = heappop(queue)
            dys = n.dys
            n.dys = None
            if self.wanted is not None:
                for i, g in enumerate(dys):
                    if (id(n), i) in self.wanted:
                        self.results[id(n), i] = g
                if need is not None and id(n) not in need:
                    continue
            if n.inputs is None:
                raise _freed(n)
            done.append(n)
            self.arrive(n.inputs, self.step(n, dys))
        return done

    def step(self, n: TapeNode, dys: list[Any]) -> Sequence[Any]:
        """The gradients of one node's inputs."""
        op, p, F = n.op, n.params, self.F
        if n.saved is None:
            raise error(NotImplementedError, f"operator {op.name} is not differentiable: it has no gradient rule")
        keep, own = n.saved
        needs: Any = None
        if n.saved is not _NOTHING:
            for x, v in zip(keep, n.versions):
                if v >= 0 and x._st.version != v:
                    _rewritten(n, keep)
                    break
            if self.create_graph:
                # Saved values with their places on the tape, so that gradients of gradients flow through them.
                keep = [x if x is None or x.__class__ is Like else _placed(x, e) for x, e in zip(keep, n.inputs)]
                own = None if own is None else {j: _placed(y, (n, j)) for j, y in own.items()}
            if self.need is None or self.wanted is None:
                needs = [e is not None and e[0].flows for e in n.inputs]
            else:
                needs = [e is not None and ((id(e[0]), e[1]) in self.wanted or id(e[0]) in self.need) for e in n.inputs]
        try:
            if op.backward_rule is not None:
                dys = [F.zeros_like(n.specs[i]) if g is None else g for i, g in enumerate(dys)]
                found = op.backward_rule(n.k, p, n.state, dys, keep, own)
                if self.create_graph:  # a gradient of this gradient must be an error, not a zero
                    no_rule = Op(f"_backward_{op.name}", None, inputs="x*")
                    ins, outs = [*dys, *[x for x in keep if x is not None]], [g for g in found if g is not None]
                    record(no_rule, no_rule.parse({"num_args": len(ins)}), ins, outs, n.k)
                return found  # type: ignore[no-any-return]
            return (op.grad_plan or plan_of(op)).gradients(op, p, F, needs, dys, keep, own, n.specs, n.state)
        except MXNetError:
            raise
        except Exception as e:
            raise_in_op(e, op.name, p._sig.inputs, [x for x in keep if x is not None], "gradient")

    def found(self, v: Array) -> Any:
        """The gradient of a variable that was asked for."""
        node, i = v._entry
        g = self.leaves.get(node) if node.op is None else self.results.get((id(node), i))
        return self.F.zeros_like(v) if g is None else g


def _rewritten(n: TapeNode, keep: Sequence[Any]) -> None:
    names = [name for name, x, v in zip(n.params._sig.inputs, keep, n.versions) if v >= 0 and x._st.version != v]
    n.versions = [x._st.version if v >= 0 else -1 for x, v in zip(keep, n.versions)]
    warnings.warn(f"input '{names[0]}' of operator {n.op.name} was written between record and backward; its gradient uses the "
                  "new value", MXNetWarning, stacklevel=7)


def _placed(x: Any, entry: Any) -> Any:
    twin = x.__class__(x._data, x._st)
    twin._entry = entry
    return twin


def _write_zeros(run: _Run) -> None:
    """Write zeros to the variables below dropped nodes that no gradient reached, as MXNet does."""
    seen: set[int] = set()
    stack = list(run.dropped)
    while stack:
        n = stack.pop()
        if id(n) in seen:
            continue
        seen.add(id(n))
        if n.op is not None:
            stack += [e[0] for e in n.inputs or () if e is not None and e[0].flows]
        elif n not in run.leaves and n.req == "write" and n.grad is not None:
            _write(run.F, n, run.F.zeros_like(n.grad))


def _write(F: Any, leaf: Leaf, g: Any) -> None:
    grad = leaf.grad
    if grad is None:
        return
    a, b = g._st, grad._st
    if a.ctx is not b.ctx:
        raise error(ValueError, f"gradient on {a.ctx} for a variable on {b.ctx}")
    leaf.fresh = True
    x, y = g._data, grad._data
    if leaf.req == "write" and a.write is None and b.write is None and not b.reads and x.__class__ is y.__class__ and x.dtype == y.dtype:
        if g.stype == "default":
            b.ctx._device.copy(x, y)
            b.version += 1
            return
    if leaf.req == "add":
        g = F._grad_add(grad, g)
    elif x.dtype != y.dtype:
        raise error(TypeError, f"gradient {x.dtype} for a variable {y.dtype}")
    transfer.assign(grad, g)
