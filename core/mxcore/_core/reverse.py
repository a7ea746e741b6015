"""Reverse mode: from heads back along the tape to the variables.

Gradients are operators: a rule runs on arrays here, and on graph values in :mod:`mxcore.gradient`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from numpy import ndarray

from .._locks import lock_of, writing
from .array import Array, Like, Storage, ruled
from .call import OpContext
from .errors import MXNetError, MXNetWarning, error, in_rule, raise_in_op
from .frontend import eager
from .gradplan import GradPlan, higher_of
from .op import Op
from .params import Params
from .state import state
from .tape import Freed, Leaf, TapeNode, record, serials
from .transfer import assign, check_writable, meets, together

__all__ = ["backward", "fitting"]


def _constant(n: Any, used: int = 0) -> Any:
    """Refuse a node that was freed after what was recorded as `used` had used it; by default any freed one."""
    if n.__class__ is Freed and n.freed > used:
        raise error(
            RuntimeError,
            f"the graph of operator {n.op.name} was freed by an earlier backward(); "
            "pass retain_graph=True to the first one",
        )


def backward(
    heads: Sequence[Array],
    head_grads: Sequence[Array | None] | None,
    *,
    retain_graph: bool = False,
    train_mode: bool = True,
    create_graph: bool = False,
    variables: Sequence[Array] | None = None,
) -> list[Any] | None:
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
        If a head or a variable is not on the tape, no head depends on a variable, or an operator on the way has no
        gradient.
    """
    entries = [h._entry for h in heads]
    for e in entries:
        if e is None or not e[0].flows:
            _constant(e and e[0])
            raise error(
                RuntimeError,
                f"cannot differentiate head {entries.index(e)}: it is not in a computational graph; compute "
                "it inside autograd.record() from arrays with attach_grad()",
            )
    grads = [*map(_ones, heads)] if head_grads is None else _head_grads(heads, head_grads)
    goal = None if variables is None else _Goal(entries, variables)
    mode, retain, direct = state.__dict__, retain_graph or create_graph, head_grads is None and variables is None
    was = mode["record"], mode["train"], mode["in_backward"]
    mode["record"], mode["train"], mode["in_backward"] = create_graph, train_mode, True
    try:
        leaves, own, dropped = _run(entries, grads, goal, create_graph, retain, direct and not create_graph)
        if goal is not None:
            return goal.gradients(leaves, own, create_graph)
        mode["record"] = False
        for leaf, g in (leaves if head_grads is None or len(leaves) == 1 else _sheltered(leaves, grads)).items():
            if g is leaf.grad and leaf.req != "add":  # it was written there
                leaf.fresh = True
            elif leaf.grad is None or leaf.grad._st.parts is not None:  # other threads may write there, too
                writing(leaf.grad, _write, leaf, g, leaf in own and leaf.req != "add")
            else:  # the same, without a call more, which shows in small steps
                with lock_of(leaf.grad._st):
                    _write(leaf, g, leaf in own and leaf.req != "add")
        if dropped:
            _write_zeros(dropped, leaves, retain)
        return None
    finally:
        mode["record"], mode["train"], mode["in_backward"] = was


def _head_grads(heads: Sequence[Array], head_grads: Sequence[Array | None]) -> list[Array]:
    found = []
    for i, (h, g) in enumerate(zip(heads, head_grads)):
        n, j = h._entry
        if g is None:
            g = _ones(h)
        elif n.plan is None or n.plan.reads(n.params, j):  # what a rule ignores may be anything, as in MXNet
            if tuple(g.shape) != tuple(h.shape):
                raise error(ValueError, f"head gradient {i} has shape {tuple(g.shape)}, its head {tuple(h.shape)}")
            g = g if g._data.dtype == h._data.dtype else eager.roles["other dtype"](g, dtype=h._data.dtype)
        found.append(ruled(g))
    return found


def _sheltered(leaves: dict[Leaf, Any], head_grads: Sequence[Array]) -> dict[Leaf, Any]:
    """Copy what still lies in the memory of head gradients, if gradients are written there, one after the other."""
    places = [leaf.grad for leaf in leaves if leaf.grad is not None]
    doomed = [g for g in head_grads if meets(g, places)]
    return {leaf: eager.roles["new array"](g) if doomed and meets(g, doomed) else g for leaf, g in leaves.items()}


_ONES: dict[Any, Array] = {}


def _ones(h: Array) -> Array:
    """Ones like a head; those of one element, as of losses, are made once, and again if a rule wrote to them."""
    d, ctx, cls = h._data, h._st.ctx, h.rules or h.dense
    key = (ctx, d.shape, d.dtype, cls)
    g = _ONES.get(key)
    if g is None or g._st.version:
        g = cls(ctx.device.full(d.shape, 1, d.dtype, ctx.device_id), Storage(ctx))
        if g._data.size == 1:
            _ONES[key] = g
    return g


class _Goal:
    """The variables that gradients are asked for, the nodes on the way to them, and what has arrived."""

    def __init__(self, heads: Sequence[Any], variables: Sequence[Array]) -> None:
        self.variables = variables
        self.wanted = {(id(v._entry[0]), v._entry[1]) for v in variables if v._entry is not None}
        self.found: dict[tuple[int, int], Any] = {}
        #: Ids of the nodes below the heads on a path to the wanted entries; of all that were met there.
        self.need, self._met = set[int](), set[int]()
        self.reach(heads)
        for i, v in enumerate(variables):
            node = v._entry and v._entry[0]
            _constant(node)
            if node is None or not node.flows or id(node) not in self._met:
                raise error(
                    RuntimeError,
                    f"cannot differentiate with respect to variable {i}: "
                    + (
                        "no head depends on it"
                        if node is not None and node.flows
                        else "it is not in the graph, or grad_req='null' keeps gradients from it; call attach_grad() "
                        "on it before autograd.record()"
                    ),
                )

    def reach(self, entries: Sequence[Any]) -> None:
        """Find out which nodes below are needed, of those that were not met so far."""
        stack, found = [e[0] for e in entries if e is not None], list[Any]()
        while stack:
            n = stack.pop()
            if id(n) in self._met:
                continue
            self._met.add(id(n))
            if n.plan is None:  # a variable, unless another thread has freed it by now, as it may at any time
                _constant(n)
                continue
            found.append(n)
            below = [e[0] for e in n.parents or _constant(n) if e is not None]
            stack += [m for m in below if m.__class__ is not Freed or _constant(m, n.serial)]
        for n in sorted(found, key=lambda n: n.serial):
            # Another thread that frees it takes the plan away.
            passes = (plan := n.plan) is None or plan.rule is not None or plan.op.backward_rule is not None
            if passes and any(map(self.needs, n.parents or _constant(n))):
                self.need.add(id(n))

    def needs(self, e: Any) -> bool:
        """Whether a gradient at this place is of use."""
        return e is not None and ((id(e[0]), e[1]) in self.wanted or id(e[0]) in self.need)

    def passes(self, n: TapeNode, dys: list[Any]) -> bool:
        """Take what was asked for; tells whether to go on below the node."""
        self.found.update({(id(n), i): g for i, g in enumerate(dys) if (id(n), i) in self.wanted})
        return id(n) in self.need

    def gradients(self, leaves: dict[Leaf, Any], own: set[Leaf], placed: bool) -> list[Any]:
        """The gradients of the variables, with their places on the tape or without; zeros where none arrived."""
        result: list[Any] = []
        for v in self.variables:
            node, i = v._entry
            g = leaves[node] if node in leaves else self.found.get((id(node), i))
            if g is None:
                g = eager.roles["zero gradient"](v)
            elif flaw := _unlike(g, v):
                raise error(ValueError, f"the gradient of a variable {flaw}; {_WHOSE}")
            elif node not in own or g.stype == "default" and not v._st.ctx.device.owns(g._data):
                # Its memory may be anybody's, and callers may write to it.
                g, entry = eager.roles["new array"](g.twin()), g._entry
                g._entry = entry if placed else None  # a head's gradient may be of a graph
            own.discard(node)
            result.append(g if v.rules is None or g.stype != "default" else g.of(v.dense))
        return result


def _run(
    entries: Sequence[Any], grads: Sequence[Any], goal: _Goal | None, create_graph: bool, retain: bool, direct: bool
) -> tuple[dict[Leaf, Any], set[Leaf], list[Any]]:
    """Carry gradients from entries to the leaves.

    Nodes wait in a heap, latest first, until all gradients of their outputs have arrived; what they kept is dropped as
    soon as they have run, so that memory shrinks on the way. Returns the gradients of the leaves, the leaves whose
    gradient nobody else has, and the nodes and leaves that a rule gave no gradient to. Where it is `direct`, no
    head's gradient was given, which might lie where others are to be written.
    """
    F = eager
    leaves: dict[Leaf, Any] = {}
    own: set[Leaf] = set()
    dropped: list[Any] = []
    queue: list[TapeNode] = []
    arrived: dict[TapeNode, list[Any]] = {}
    nothing: Any = (None, None, (), (), None)
    node, plan, dys, ins, outs = nothing  # has brought what the heads get
    while True:
        for e, g in zip(entries, grads):
            if e is None:
                continue
            n, i = e
            if g is None:
                dropped.append(_constant(n, node.serial) or n)  # rules leave out what was freed, too
            elif n.plan is None:
                if n not in leaves and n.flows:
                    leaves[n] = g
                    if (
                        (n.large or goal is not None)
                        and g is not n.grad
                        and not create_graph
                        and _made(g, plan, grads, dys, ins, outs)
                    ):
                        own.add(n)
                else:
                    _add_to_leaf(leaves, own, n, g, node)
            elif n not in arrived:
                arrived[n] = [g] if n.specs is None else [g if j == i else None for j in range(len(n.specs))]
                heappush(queue, n)
            elif n.live if goal is None else goal.needs(e):  # else nobody reads what arrives
                found = arrived[n]
                found[i] = g if found[i] is None else F.roles["sum of gradients"](found[i], g)
        if not queue:
            return leaves, own, dropped
        node = heappop(queue)
        dys = arrived.pop(node)
        if goal is not None and not goal.passes(node, dys):
            entries = ()
            continue
        ins = ()
        try:
            entries, plan = node.inputs, node.plan
            ins, outs, versions = node.saved
            if versions is not None:
                for x, v in zip(ins, versions):
                    if v >= 0 and x._st.version != v:
                        _rewritten(node)
                        break
            if create_graph or not plan.short or not node.live:
                entries, grads = _step(
                    node, F, dys, goal, create_graph, (entries, leaves) if direct and not queue else None
                )
            else:
                grads = plan.call(plan.rule, F, node.params, None, dys, ins, outs)
                if grads.__class__ is not tuple or len(grads) != plan.n_in:
                    plain = plan.single and grads.__class__ is not list and grads.__class__ is not tuple
                    grads = (grads,) if plain else plan.arranged(node.params, grads)
            if not retain:
                node.freed = next(serials)
                node.__class__ = Freed
                node.inputs = node.saved = node.call = None
        except MXNetError as e:
            raise in_rule(e, node.op.name) from e.__cause__
        except Exception as e:
            _constant(node)  # by a backward of another thread
            raise_in_op(e, node.op.name, node.params, [getattr(x, "_data", x) for x in ins], "gradient")


def _add_to_leaf(leaves: dict[Leaf, Any], own: set[Leaf], n: Leaf, g: Any, node: Any) -> None:
    """A further gradient of a leaf, or one for what takes none, or another backward has used up."""
    if n not in leaves:
        _constant(n, 0 if node is None else node.serial)
    else:
        leaves[n] = eager.roles["sum of gradients"](leaves[n], g)
        own.add(n)


def _made(
    g: Any,
    plan: GradPlan | None,
    grads: Sequence[Any],
    dys: Sequence[Any],
    ins: Sequence[Any],
    outs: dict[int, Any] | None,
) -> bool:
    """Whether a rule made a gradient for one place: alone over its buffer, not what it got, not given twice.

    Rules are written in operators and keep nothing. The backward of a stateful operator may be anybody's Python, unless
    it gives its arrays away; parts of sparse ones may be places in the memory of its program.
    """
    if plan is None or not isinstance(g, Array) or g._st.views != 0 or [h is g for h in grads].count(True) > 1:
        return False
    given, plain = (*dys, *ins, *(outs or {}).values()), plan.op.backward_rule is None
    return (
        (plain or plan.op.gives) and not any(g is x for x in given)
        if g.stype == "default"
        else plain and g._st.write is None and g._data.is_apart(g._st.ctx.device, given)
    )


def _step(
    n: TapeNode, F: Any, dys: list[Any], goal: _Goal | None, create_graph: bool, ends: Any
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Where gradients go from one node, and which, in the general case."""
    op, p, call, entries = n.op, n.params, n.call, n.inputs
    if goal is None and not n.live:
        return entries, [None] * len(entries)
    keep, own, versions = n.saved
    if create_graph:
        # Saved values with their places on the tape, so that gradients of gradients flow through them.
        keep = [x if x is None or x.__class__ is Like else _placed(x, e) for x, e in zip(keep, entries)]
        own = None if own is None else {j: _placed(y, (n, j)) for j, y in own.items()}
        if op.replay_rule is not None:
            call = op.replay_rule(n, keep)
    if call.__class__ is list:
        entries = [None if g is None else e for e, g in zip(call, dys)]
        if goal is not None:
            goal.reach(entries)
        return entries, dys
    needs, plan = tuple([e is not None and e[0].flows if goal is None else goal.needs(e) for e in entries]), n.plan
    if op.backward_rule is None:
        found = (higher_of(plan) if create_graph else plan).gradients(p, F, needs, dys, keep, own, n.specs)
    else:
        k, saved = call
        dys = [F.roles["zero gradient"](n.specs[i]) if g is None and not op.gives else g for i, g in enumerate(dys)]
        found = op.backward_rule(OpContext(k.ctx, k.is_train, needs, ends=ends), p, saved, dys, keep, own)
    if plan.checked:
        found = fitting(plan, p, found, keep, needs)
    if create_graph and op.backward_rule is not None:  # a gradient of this gradient must be an error, not a zero
        no_rule = Op(f"_backward_{op.name}", None, inputs="x*")
        ins, outs = [*dys, *[x for x in keep if x is not None]], [g for g in found if g is not None]
        record(no_rule, no_rule.parse({"num_args": len(ins)}), ins, outs)
    return entries, found


def fitting(plan: GradPlan, p: Params, found: Any, ins: Sequence[Any], needs: Sequence[bool]) -> Sequence[Any]:
    """The gradients that a rule gave, one for each input, if those that somebody needs are like their inputs."""
    grads: Sequence[Any] = plan.arranged(p, found)
    for name, g, x, wanted in zip(p._sig.inputs, grads, ins, needs):
        if wanted and g is not None and (flaw := _unlike(g, x)):
            raise error(ValueError, f"gradient rule of operator {plan.op.name}: the gradient of input '{name}' {flaw}")
    return grads


def _rewritten(n: TapeNode) -> None:
    """Warn, once, that kept inputs were written after they were recorded."""
    ins, outs, versions = n.saved
    names = [name for name, x, v in zip(n.params._sig.inputs, ins, versions) if v >= 0 and x._st.version != v]
    n.saved = ins, outs, [x._st.version if v >= 0 else -1 for x, v in zip(ins, versions)]
    warnings.warn(
        f"input '{names[0]}' of operator {n.op.name} was written between record "
        "and backward; its gradient uses the new value",
        MXNetWarning,
        stacklevel=5,
    )


def _placed(x: Any, entry: Any) -> Any:
    twin = x.__class__(x._data, x._st)
    twin._entry = entry
    return twin


def _write_zeros(dropped: Sequence[Any], leaves: dict[Leaf, Any], retain: bool) -> None:
    """Write zeros to the variables below dropped nodes that no gradient reached, and free the nodes, as MXNet does."""
    seen: set[int] = set()
    stack = [n for n in dropped if n.flows]
    while stack:
        n = stack.pop()
        if id(n) in seen:
            continue
        seen.add(id(n))
        if n.op is not None:
            stack += [e[0] for e in n.parents or () if e is not None and e[0].flows]
            if not retain:
                n.freed, n.__class__ = next(serials), Freed
                n.inputs = n.saved = n.call = None
        elif n not in leaves and n.req == "write" and n.grad is not None:
            _write(n, eager.roles["zero gradient"](n.grad))


#: Gradients are summed on their way, so the variable does not tell.
_WHOSE = "some operator's rule is wrong (mxcore.testing.conformance.check_op says whose, and for which input)"


def _unlike(g: Any, x: Any) -> str:
    """How a gradient differs from what it is the gradient of; an empty string if it does not."""
    if not isinstance(g, Array):
        return f"is {g!r}, which is no array"
    a, b, here, there = g._data, x._data, g._st.ctx, x._st.ctx
    same = (
        a.shape == b.shape and (a.dtype is b.dtype or a.dtype == b.dtype) and (here is there or together(here, there))
    )
    return (
        "" if same else f"has shape {tuple(a.shape)}, {a.dtype}, {here} instead of {tuple(b.shape)}, {b.dtype}, {there}"
    )


def _write(leaf: Leaf, g: Any, own: bool = False) -> None:
    """Write a gradient where its variable wants it; of a large one that is our `own` it takes the buffer."""
    grad = leaf.grad
    if grad is None:
        return
    leaf.fresh = True
    if flaw := _unlike(g, grad):
        raise error(ValueError, f"the gradient of a variable {flaw}; {_WHOSE}")
    a, b, x, y = g._st, grad._st, g._data, grad._data
    if leaf.req == "add":
        g = eager.roles["sum of gradients"](grad, g)
    elif a.write is None and b.write is None and not b.reads and g.stype == grad.stype == "default":
        device = b.ctx._device or b.ctx.device
        if y.__class__ is not ndarray or not y.flags.writeable:
            check_writable(grad, "a variable's gradient")
        b.version += 1  # first: an interrupt may come behind the write
        if own and leaf.large and not b.views and device.owns(x) and device.owns(y):
            grad._data = x
        else:
            if device.async_:
                device.activate(b.ctx.device_id)
            device.copy(x, y)
        return
    assign(
        grad, g if grad.stype in (g.stype, "default") else eager.roles["other storage type"](g, stype=grad.stype), own
    )
