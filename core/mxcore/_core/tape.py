"""The tape of automatic differentiation, and the gradient plans that it shares with the graph.

A tape node holds its operator, parameters, links to its parents and what its gradient rule asked for; never one of its
own outputs, so dropping the last output frees the graph by reference count. Gradients are operators: a rule runs on
arrays here and on graph values in :mod:`mxcore._core.gradient`.
"""
from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

from . import frontend, transfer  # circular, used at call time only
from .array import Array, Like, Storage
from .errors import MXNetError, MXNetWarning, error, in_op
from .op import MISSING, RULE_WORDS, Op
from .params import Params
from .state import state

__all__ = ["Leaf", "TapeNode", "GradPlan", "record", "mark", "backward", "differentiable", "plan_of"]

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


class GradPlan:
    """A gradient rule compiled from its argument names: what to keep, and one expression that calls it.

    Attributes
    ----------
    call : callable or None
        ``(rule, F, p, needs, dys, ins, outs, state) -> gradients``; None: every gradient is zero.
    keeps_inputs, likes : frozenset of int
        Places in the declaration of inputs to keep, as arrays or by shape and dtype.
    keeps_outputs : tuple of int
    """

    __slots__ = ("rule", "call", "keeps_inputs", "keeps_outputs", "likes", "keeps_nothing", "reads_dys", "single", "flat")

    def __init__(self, op: Op) -> None:
        rule = op.grad_rule
        self.rule: Callable[..., Any] | None = None
        self.call: Any = None
        self.keeps_inputs: frozenset[int] = frozenset()
        self.likes: frozenset[int] = frozenset()
        self.keeps_outputs: tuple[int, ...] = ()
        self.reads_dys: tuple[int, ...] | None = ()
        self.keeps_nothing = True
        # With these, the result of the rule needs no reshuffling.
        self.flat = not op.variadic and not any(s.condition for s in op.input_slots)
        self.single = self.flat and len(op.input_slots) == 1
        if op.backward_rule is not None:
            self.keeps_inputs = frozenset(range(len(op.input_slots)))
            self.keeps_nothing = False
            return
        if rule is MISSING:
            raise error(NotImplementedError, f"operator {op.name} is not differentiable: it has no gradient rule")
        if rule is None:
            return
        self.rule = rule
        args = [self._source(op, n) for n in rule.__code__.co_varnames[:rule.__code__.co_argcount]]
        # One expression instead of a loop over argument kinds at every call.
        self.call = eval(f"lambda rule, F, p, needs, dys, ins, outs, state: rule({', '.join(a for a, _, _ in args)})",
                         {"_pick": _pick, "_pick_all": _pick_all, "_output": _output})
        self.keeps_inputs = frozenset(i for _, kind, i in args if kind == "in")
        self.likes = frozenset(i for _, kind, i in args if kind == "like") - self.keeps_inputs
        self.keeps_outputs = tuple(sorted({i for _, kind, i in args if kind == "out"}))
        self.keeps_nothing = not (self.keeps_inputs or self.likes or self.keeps_outputs)
        kinds = {kind for _, kind, _ in args}
        self.reads_dys = None if "dys" in kinds else tuple(sorted({i for _, kind, i in args if kind == "dy"}))

    def _source(self, op: Op, name: str) -> tuple[str, str, int]:
        """(expression for an argument of the rule, kind, index)."""
        if name in ("F", "p", "needs", "state"):
            return name, name, 0
        if name == "dy":
            return "dys[0]", "dy", 0
        if name == "dys":
            return "dys", "dys", 0
        if name == "y":
            return "outs[0]", "out", 0
        places = {n: i for i, n in enumerate(op.input_names)}
        plain = name[:-1] if name.endswith("_") and name[:-1] in RULE_WORDS else name
        kind, where = ("in", places.get(plain)) if plain in places else ("like", places.get(name[5:]) if name[:5] == "like_" else None)
        if where is not None:
            if self.flat:
                return f"ins[{where}]", kind, where
            pick = "_pick_all" if op.input_slots[where].variadic else "_pick"
            return f"{pick}(p, ins, {where})", kind, where
        word, _, rest = name.partition("_")
        outs = {} if callable(op.outputs) else {s.name: i for i, s in enumerate(op.outputs)}
        index = int(rest) if rest.isdigit() else outs.get(rest)
        if word in ("d", "out") and index is not None:
            values, kind = ("dys", "dy") if word == "d" else ("outs", "out")
            if callable(op.outputs) or any(s.condition for s in op.outputs):  # parameters may switch it off
                return f"_output(p, {values}, {index})", kind, index
            return f"{values}[{index}]", kind, index
        raise error(TypeError, f"gradient rule of operator {op.name}: '{name}' is no input, output or rule word "
                               f"({', '.join(sorted(RULE_WORDS))}, d_<output>, out_<output>, like_<input>)")

    def gradients(self, op: Op, p: Params, F: Any, needs: Any, dys: list[Any], ins: Any, outs: Any, likes: Any,
                  saved_state: Any = None) -> Sequence[Any]:
        """Run the rule; one gradient (or None) per input.

        `dys` are the incoming gradients, None where none arrived; `likes` what zeros for those are made like.
        """
        if self.call is None:
            return [None] * len(p._sig.inputs)
        if likes is not None:
            for i in range(len(dys)) if self.reads_dys is None else self.reads_dys:
                j: Any = i if self.reads_dys is None else p._sig.out_at.get(i)
                if j is not None and dys[j] is None and likes[j] is not None:  # None: never computed
                    dys[j] = F.zeros_like(likes[j])
        result = self.call(self.rule, F, p, needs, dys, ins, outs, saved_state)
        if self.single and result.__class__ is not tuple and result.__class__ is not list:
            return (result,)
        n = len(p._sig.inputs)
        if not self.flat:
            result = self._arranged(op, p, result, n)
        if len(result) != n:
            raise error(ValueError, f"gradient rule of operator {op.name} returned {len(result)} gradients for {n} inputs "
                                    f"({', '.join(p._sig.inputs)})")
        return result  # type: ignore[no-any-return]

    def _arranged(self, op: Op, p: Params, result: Any, n: int) -> list[Any]:
        """Gradients given per declared input, lists for variadic ones: those that parameters switch off are skipped."""
        declared = list(result) if isinstance(result, (list, tuple)) else [result]
        nested = any(isinstance(g, (list, tuple)) for g in declared)
        if not nested and (len(declared) == n or len(declared) != len(op.input_slots)):
            return declared
        grads: list[Any] = []
        for i, g in enumerate(declared):
            if isinstance(g, (list, tuple)):
                grads += g
            elif i in p._sig.slots:
                grads.append(g)
        return grads


def _pick(p: Params, ins: Sequence[Any], place: int) -> Any:
    """The input at a place of the declaration; None if the parameters switch it off."""
    return next((x for x, s in zip(ins, p._sig.slots) if s == place), None)


def _pick_all(p: Params, ins: Sequence[Any], place: int) -> list[Any]:
    """All items of a variadic input."""
    return [x for x, s in zip(ins, p._sig.slots) if s == place]


def _output(p: Params, values: Any, i: int) -> Any:
    """The value of a declared output, or None if the parameters switch it off."""
    j = p._sig.out_at.get(i)
    return None if j is None else values[j]


def plan_of(op: Op) -> GradPlan:
    """The compiled gradient rule of an operator."""
    plan = op.grad_plan
    if plan is None:
        plan = op.grad_plan = GradPlan(op)
    return plan  # type: ignore[no-any-return]


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
            result = None
        else:
            result = [run.found(v, create_graph) for v in variables]
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

    __slots__ = ("F", "wanted", "need", "create_graph", "queue", "leaves", "results")

    def __init__(self, F: Any, wanted: set[tuple[int, int]] | None, need: set[int] | None, create_graph: bool) -> None:
        self.F, self.wanted, self.need, self.create_graph = F, wanted, need, create_graph
        self.queue: list[TapeNode] = []
        self.leaves: dict[Leaf, Any] = {}
        self.results: dict[tuple[int, int], Any] = {}

    def arrive(self, entries: Sequence[Any], grads: Sequence[Any]) -> None:
        """Add gradients to the entries that they belong to."""
        for e, g in zip(entries, grads):
            if g is None or e is None:
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
                return op.backward_rule(n.k, p, n.state, dys, keep, own)  # type: ignore[no-any-return]
            return (op.grad_plan or plan_of(op)).gradients(op, p, F, needs, dys, keep, own, n.specs, n.state)
        except MXNetError:
            raise
        except Exception as e:
            raise in_op(e, op.name, p._sig.inputs, [x for x in keep if x is not None], "gradient") from e

    def found(self, v: Array, create_graph: bool) -> Any:
        """The gradient of a variable that was asked for."""
        node, i = v._entry
        g = self.leaves.get(node) if node.op is None else self.results.get((id(node), i))
        if g is None:
            return self.F.zeros_like(v)
        if not create_graph and any(g is c for c in _ONES.values()):
            return g.dense(g._data.copy(), Storage(g._st.ctx))  # the caller may write to it
        return g


def _rewritten(n: TapeNode, keep: Sequence[Any]) -> None:
    names = [name for name, x, v in zip(n.params._sig.inputs, keep, n.versions) if v >= 0 and x._st.version != v]
    n.versions = [x._st.version if v >= 0 else -1 for x, v in zip(keep, n.versions)]
    warnings.warn(f"input '{names[0]}' of operator {n.op.name} was written between record and backward; its gradient uses the "
                  "new value", MXNetWarning, stacklevel=7)


def _placed(x: Any, entry: Any) -> Any:
    twin = x.__class__(x._data, x._st)
    twin._entry = entry
    return twin


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
