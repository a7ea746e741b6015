"""The tape of automatic differentiation, and the gradient plans that it shares with the graph.

A tape node holds its operator, parameters, links to its parents and what its gradient rule asked for; never one of its
own outputs, so dropping the last output frees the graph by reference count. Gradients are operators: a rule runs on
arrays here and on graph values in :mod:`mxcore._core.gradient`.
"""
from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

from . import dispatch, frontend  # circular, used at call time only
from .array import Array, Like, Storage
from .errors import MXNetError, MXNetWarning, error, in_op
from .op import MISSING, RULE_WORDS, Op
from .params import Params
from .state import state

__all__ = ["Leaf", "TapeNode", "GradPlan", "record", "mark", "backward", "differentiable", "plan_of"]

_serial = itertools.count()
_by_serial = operator.attrgetter("serial")
_NOTHING: Any = ((), None)


class Leaf:
    """A variable that gradients end in: its gradient array and how to write it ('write', 'add', 'null')."""

    __slots__ = ("grad", "req")
    op = None

    def __init__(self, grad: Array | None, req: str) -> None:
        self.grad, self.req = grad, req


class TapeNode:
    """One recorded operator call."""

    __slots__ = ("op", "params", "inputs", "saved", "versions", "specs", "serial", "k", "state")

    op: Op
    params: Params
    inputs: Any
    saved: Any
    specs: Any


class GradPlan:
    """A gradient rule compiled from its argument names: what to keep, and how to call it.

    Attributes
    ----------
    rule : callable or None
        None: every gradient is zero.
    args : list of (kind, index)
        kind is one of 'F', 'p', 'needs', 'state', 'dy' (index of the output), 'dys' (all of them), 'in', 'like', 'out'.
        An index of an input is its place in the declaration (a variadic gives the list of its items).
    """

    __slots__ = ("rule", "args", "keeps_inputs", "keeps_outputs", "likes", "keeps_nothing")

    def __init__(self, op: Op) -> None:
        rule = op.grad_rule
        self.rule: Callable[..., Any] | None = None
        self.args: list[tuple[str, Any]] = []
        if op.stateful and op.backward_rule is not None:
            self.keeps_inputs = frozenset(range(len(op.input_slots)))
            self.keeps_outputs, self.likes, self.keeps_nothing = (), frozenset(), False
            return
        if rule is MISSING:
            raise error(NotImplementedError, f"operator {op.name} is not differentiable: it has no gradient rule")
        self.rule = rule
        names = rule.__code__.co_varnames[:rule.__code__.co_argcount] if rule is not None else ()
        places = {n: i for i, n in enumerate(op.input_names)}
        outs = None if callable(op.outputs) else {s.name: i for i, s in enumerate(op.outputs)}
        for n in names:
            plain = n[:-1] if n.endswith("_") and n[:-1] in RULE_WORDS else n
            if n in ("F", "p", "needs", "state"):
                self.args.append((n, None))
            elif n == "dy":
                self.args.append(("dy", 0))
            elif n == "dys":
                self.args.append(("dys", None))
            elif n == "y":
                self.args.append(("out", 0))
            elif plain in places:
                self.args.append(("in", places[plain]))
            elif n.startswith("like_") and n[5:] in places:
                self.args.append(("like", places[n[5:]]))
            elif n.startswith(("d_", "out_")) and outs is not None and n.split("_", 1)[1] in outs:
                self.args.append(("dy" if n[1] == "_" else "out", outs[n.split("_", 1)[1]]))
            elif n.startswith(("d_", "out_")) and n.split("_", 1)[1].isdigit():
                self.args.append(("dy" if n[1] == "_" else "out", int(n.split("_", 1)[1])))
            else:
                raise error(TypeError, f"gradient rule of operator {op.name}: '{n}' is no input, output or rule word "
                                       f"({', '.join(sorted(RULE_WORDS))}, d_<output>, out_<output>, like_<input>)")
        self.keeps_inputs = frozenset(i for k, i in self.args if k == "in")
        self.likes = frozenset(i for k, i in self.args if k == "like") - self.keeps_inputs
        self.keeps_outputs = tuple(sorted({i for k, i in self.args if k == "out"}))
        self.keeps_nothing = not (self.keeps_inputs or self.likes or self.keeps_outputs)

    def call(self, op: Op, p: Params, F: Any, needs: Sequence[bool], dys: list[Any], inputs: Sequence[Any],
             outputs: Any, likes: Any, saved_state: Any = None) -> Sequence[Any]:
        """Run the rule; returns one gradient (or None) per input.

        `dys` are the incoming gradients, None where none arrived; `likes` what zeros for those are made like;
        `inputs` and ``outputs[i]`` the kept values.
        """
        sig = p._sig
        if self.rule is None:
            return [None] * len(sig.inputs)
        args: list[Any] = []
        for kind, i in self.args:
            if kind == "dy":
                if i >= len(dys):  # an output that the parameters switch off
                    args.append(None)
                    continue
                g = dys[i]
                if g is None:
                    g = dys[i] = F.zeros_like(likes[i])
                args.append(g)
            elif kind == "in" or kind == "like":
                at = sig.slots
                if op.variadic and op.input_slots[i].variadic:
                    args.append([inputs[j] for j, s in enumerate(at) if s == i])
                elif len(at) > i and at[i] == i:
                    args.append(inputs[i])
                else:  # inputs before it are switched off
                    args.append(next((inputs[j] for j, s in enumerate(at) if s == i), None))
            elif kind == "F":
                args.append(F)
            elif kind == "p":
                args.append(p)
            elif kind == "out":
                args.append(outputs[i] if i < len(sig.outputs) else None)
            elif kind == "needs":
                args.append(needs)
            elif kind == "dys":
                args.append([F.zeros_like(likes[j]) if g is None else g for j, g in enumerate(dys)])
            else:
                args.append(saved_state)
        result = self.rule(*args)
        grads: list[Any] = []
        if len(sig.inputs) == 1 and not isinstance(result, (list, tuple)):
            return [result]
        if len(result) == len(sig.inputs) and not op.variadic:
            return result  # type: ignore[no-any-return]
        # One gradient per declared input; those that the parameters switch off are skipped, lists are flattened.
        declared = list(result)
        if len(declared) == len(op.input_slots) and len(declared) != len(sig.inputs) or self._nested(declared):
            for i, g in enumerate(declared):
                if isinstance(g, (list, tuple)):
                    grads += g
                elif i in sig.slots:
                    grads.append(g)
        else:
            grads = declared
        if len(grads) != len(sig.inputs):
            raise error(ValueError, f"gradient rule of operator {op.name} returned {len(grads)} gradients for "
                                    f"{len(sig.inputs)} inputs ({', '.join(sig.inputs)})")
        return grads

    @staticmethod
    def _nested(values: list[Any]) -> bool:
        return any(isinstance(v, (list, tuple)) for v in values)


def plan_of(op: Op) -> GradPlan:
    """The compiled gradient rule of an operator."""
    plan = op.grad_plan
    if plan is None:
        plan = op.grad_plan = GradPlan(op)
    return plan  # type: ignore[no-any-return]


def differentiable(entry: Any) -> bool:
    """Whether gradients flow through this place on the tape."""
    node = entry[0]
    return node.op is not None or node.req != "null"


def record(op: Op, p: Params, inputs: Sequence[Any], outputs: Sequence[Any], k: Any, saved_state: Any = None) -> None:
    """Write a call on the tape, if any input is on it."""
    entries = []
    flows = False
    for x in inputs:
        e = x._entry
        entries.append(e)
        if e is not None and not flows:
            flows = e[0].op is not None or e[0].req != "null"
    if not flows:
        return
    node = TapeNode()
    node.op = op
    node.params = p
    node.inputs = entries
    node.serial = next(_serial)
    node.k = k
    node.state = saved_state
    plan = op.grad_plan
    if plan is None:
        # Without a rule the error is raised if a gradient ever asks for it.
        plan = None if op.grad_rule is MISSING and op.backward_rule is None else plan_of(op)
    if plan is None:
        node.saved = None
    elif plan.keeps_nothing:
        node.saved = _NOTHING
    else:
        _keep(node, plan, p, inputs, outputs)
    if len(outputs) > 1:
        node.specs = [None if y is None else Like(y) for y in outputs]
        for i, y in enumerate(outputs):
            if y is not None:
                y._entry = (node, i)
    else:
        node.specs = None
        outputs[0]._entry = (node, 0)


def _keep(node: TapeNode, plan: GradPlan, p: Params, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    keep: list[Any] = []
    versions: Any = []
    held, likes = plan.keeps_inputs, plan.likes
    for x, slot in zip(inputs, p._sig.slots):
        if slot in held:
            keep.append(x)
            versions.append(x._st.version)
        else:
            keep.append(Like(x) if slot in likes else None)
            versions.append(0)
    own = None
    if plan.keeps_outputs:
        own = {}
        for j in plan.keeps_outputs:
            if j >= len(outputs):  # switched off by the parameters
                continue
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


def _order(heads: Sequence[Any]) -> list[TapeNode]:
    """Nodes reachable from the entries, latest first."""
    seen: set[int] = set()
    stack = [e[0] for e in heads]
    found = []
    while stack:
        n = stack.pop()
        if id(n) in seen or n.op is None:
            continue
        seen.add(id(n))
        if n.inputs is None:
            raise error(RuntimeError, f"the graph of operator {n.op.name} was freed by an earlier backward(); "
                                      "pass retain_graph=True to the first one")
        found.append(n)
        for e in n.inputs:
            if e is not None and id(e[0]) not in seen:
                stack.append(e[0])
    if len(found) > 1:
        found.sort(key=_by_serial, reverse=True)
    return found


def _needed(order: list[TapeNode], wanted: set[tuple[int, int]]) -> set[int]:
    """Ids of the nodes on a path to the wanted entries."""
    need: set[int] = set()
    for n in reversed(order):
        if any(e is not None and ((id(e[0]), e[1]) in wanted or id(e[0]) in need) for e in n.inputs):
            need.add(id(n))
    return need


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
        if h._entry is None or not differentiable(h._entry):
            raise error(RuntimeError, f"cannot differentiate head {i}: it is not in a computational graph; compute it inside "
                                      "autograd.record() from arrays with attach_grad()")
        entries.append(h._entry)
    wanted: set[tuple[int, int]] | None = None
    if variables is not None:
        for i, v in enumerate(variables):
            if v._entry is None:
                raise error(RuntimeError, f"cannot differentiate with respect to variable {i}: it is not in the graph; "
                                          "call attach_grad() on it before autograd.record()")
        wanted = {(id(v._entry[0]), v._entry[1]) for v in variables}
    F = frontend.eager
    before = (state.record, state.train)
    state.record, state.train = create_graph, train_mode
    try:
        grads: dict[int, list[Any]] = {}
        leaves: dict[int, Leaf] = {}
        queue: list[Any] = []
        for i, (h, e) in enumerate(zip(heads, entries)):
            g = head_grads[i] if head_grads is not None else None
            if g is None:
                g = _ones(h)
            elif tuple(g.shape) != tuple(h.shape):
                raise error(ValueError, f"head gradient {i} has shape {tuple(g.shape)}, its head {tuple(h.shape)}")
            _arrive(F, grads, leaves, queue, e, g)
        need = None if wanted is None else _needed(_order(entries), wanted)
        done = []
        while queue:
            n = heappop(queue)[2]
            done.append(n)
            _step(F, n, grads, leaves, queue, need, wanted, create_graph)
        if variables is None:
            for at, leaf in leaves.items():
                _write(F, leaf, grads[at][0])
            result = None
        else:
            result = []
            for v in variables:
                dys = grads.get(id(v._entry[0]))
                g = None if dys is None else dys[v._entry[1]]
                if g is None:
                    g = F.zeros_like(v)
                elif not create_graph and any(g is c for c in _ONES.values()):
                    g = g.dense(g._data.copy(), Storage(g._st.ctx))  # the caller may write to it
                result.append(g)
        if not retain_graph and not create_graph:
            for n in done:
                n.saved = n.inputs = n.state = None
    finally:
        state.record, state.train = before
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


def _arrive(F: Any, grads: dict[int, list[Any]], leaves: dict[int, Leaf], queue: list[Any], entry: Any, g: Any) -> None:
    """Add a gradient to an entry; its node is queued when the first one arrives."""
    node, i = entry
    at = id(node)
    dys = grads.get(at)
    if dys is None:
        if node.op is None:
            leaves[at] = node
            grads[at] = [g]
        else:
            specs = node.specs
            dys = grads[at] = [None] if specs is None else [None] * len(specs)
            dys[i] = g
            heappush(queue, (-node.serial, at, node))
    else:
        old = dys[i]
        dys[i] = g if old is None else F._grad_add(old, g)


def _step(F: Any, n: TapeNode, grads: dict[int, list[Any]], leaves: dict[int, Leaf], queue: list[Any],
          need: set[int] | None, wanted: set[tuple[int, int]] | None, create_graph: bool) -> None:
    at = id(n)
    op, p, entries = n.op, n.params, n.inputs
    if wanted is None or need is None:
        if entries is None:
            raise error(RuntimeError, f"the graph of operator {op.name} was freed by an earlier backward(); "
                                      "pass retain_graph=True to the first one")
        dys = grads.pop(at)
        needs: Any = [e is not None and (e[0].op is not None or e[0].req != "null") for e in entries]
    else:
        if at not in need:
            return
        dys = list(grads[at])
        needs = [e is not None and ((id(e[0]), e[1]) in wanted or id(e[0]) in need) for e in entries]
    if n.saved is None:
        raise error(NotImplementedError, f"operator {op.name} is not differentiable: it has no gradient rule")
    keep, own = n.saved
    if n.saved is not _NOTHING:
        if n.versions:
            for x, v in zip(keep, n.versions):
                if v is not None and x.__class__ is not Like and x is not None and x._st.version != v:
                    _rewritten(n, keep)
                    break
        if create_graph:
            # Saved values with their places on the tape, so that gradients of gradients flow through them.
            keep = [x if x is None or x.__class__ is Like else _placed(x, e) for x, e in zip(keep, entries)]
            own = None if own is None else {j: _placed(y, (n, j)) for j, y in own.items()}
    plan = op.grad_plan or plan_of(op)
    try:
        if op.backward_rule is not None:
            dys = [F.zeros_like(n.specs[i]) if g is None else g for i, g in enumerate(dys)]
            result: Any = op.backward_rule(n.k, p, n.state, dys, keep, own)
        else:
            result = plan.call(op, p, F, needs, dys, keep, own, n.specs, n.state)
    except MXNetError:
        raise
    except Exception as e:
        raise in_op(e, op.name, p._sig.inputs, [x for x in keep if x is not None], "gradient") from e
    for e, g, wants in zip(entries, result, needs):
        if wants and g is not None:
            _arrive(F, grads, leaves, queue, e, g)


def _rewritten(n: TapeNode, keep: Sequence[Any]) -> None:
    names = [name for name, x, v in zip(n.params._sig.inputs, keep, n.versions)
             if x is not None and x.__class__ is not Like and x._st.version != v]
    n.versions = [0 if x is None or x.__class__ is Like else x._st.version for x in keep]
    warnings.warn(f"input '{names[0]}' of operator {n.op.name} was written between record and backward; its gradient uses the "
                  "new value", MXNetWarning, stacklevel=6)


def _placed(x: Any, entry: Any) -> Any:
    twin = x.__class__(x._data, x._st)
    twin._entry = entry
    return twin


def _write(F: Any, leaf: Leaf, g: Any) -> None:
    grad = leaf.grad
    if grad is None or leaf.req == "null":
        return
    if g._st.ctx is not grad._st.ctx:
        raise error(ValueError, f"gradient on {g._st.ctx} for a variable on {grad._st.ctx}")
    if leaf.req == "write":
        a, b = g._st, grad._st
        if a.write is None and b.write is None and not b.reads and g.stype == grad.stype == "default" and \
                grad._data.dtype == g._data.dtype:
            b.ctx.device.copy(g._data, grad._data)
            b.version += 1
            return
    was, state.record = state.record, False
    try:
        if leaf.req == "add":
            g = F._grad_add(grad, g)
        elif grad._data.dtype != g._data.dtype:
            raise error(TypeError, f"gradient {g._data.dtype} for a variable {grad._data.dtype}")
        dispatch.assign(grad, g)
    finally:
        state.record = was


