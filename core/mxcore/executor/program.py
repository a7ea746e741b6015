"""Lowered programs: a graph with known shapes as a flat list of calls over slots."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import dispatch, infer, registry, rng, transfer
from .._core.context import Context
from .._core.errors import raise_in_op
from .._core.gradient import STATE_BACKWARD
from .._core.graph import Node, topo
from .._core.kernels import Spec

__all__ = ["Program", "infer_all"]

Entry = tuple[Node, int]


def infer_all(heads: Sequence[Entry], shapes: dict[str, Any], dtypes: dict[str, Any], stypes: dict[str, str]) \
        -> tuple[dict[Entry, Any], dict[Entry, Any], dict[Entry, str]]:
    """Shapes, dtypes and storage types of all entries, from those of variables by name."""
    nodes = topo(heads)

    def given(values: dict[str, Any]) -> dict[Entry, Any]:
        return {(n, 0): values[n.name] for n in nodes if n.op is None and values.get(n.name) is not None}

    s = infer.infer_graph(nodes, given(shapes), "shape")
    t = infer.infer_graph(nodes, given(dtypes), "dtype")
    st: dict[Entry, str] = {}
    for n in nodes:
        if n.op is None:
            st[n, 0] = stypes.get(n.name, "default")
        else:
            for i, kind in enumerate(infer.op_stypes(n.op, n.params, [st[e] for e in n.inputs])):
                st[n, i] = kind
    return s, t, st


class _Instr:
    """One call: which slots it reads and fills, and everything else bound beforehand."""

    __slots__ = ("node", "plan", "p", "k", "ins", "outs", "mutates", "random", "state", "back", "last")

    node: Node
    plan: dispatch.Plan
    k: Any


class Program:
    """A flat program for one context.

    Parameters
    ----------
    heads : sequence of entries
        What it computes.
    variables : dict of str to int
        Name of a variable -> slot that holds its array when the program runs.
    shapes, dtypes, stypes : dict
        From :func:`infer_all`.
    ctx : Context
    is_train : bool
    before : sequence of Node
        Nodes that run in a first part (forward); the rest is the second part (backward).
    """

    def __init__(self, heads: Sequence[Entry], variables: dict[str, int], shapes: dict[Entry, Any], dtypes: dict[Entry, Any],
                 stypes: dict[Entry, str], ctx: Context, is_train: bool, before: Sequence[Node] = ()) -> None:
        self.ctx, self.heads = ctx, list(heads)
        nodes = topo(heads)
        first = {id(n) for n in before}
        ops = [n for n in nodes if n.op is not None]
        order = [n for n in ops if id(n) in first] + [n for n in ops if id(n) not in first]
        self.slot: dict[Entry, int] = {}
        for n in nodes:
            if n.op is None:
                self.slot[n, 0] = variables[n.name]
        n_slots = len(variables)
        used = {e for n in ops for e in n.inputs} | set(self.heads)
        states: dict[int, int] = {}
        self.instrs: list[_Instr] = []
        device = ctx.device
        dispatch.context_k(ctx, is_train)
        for n in order:
            op, p, sig = n.op, n.params, n.params._sig
            ins = [Spec(shapes[e] if infer.known(shapes.get(e)) else None, dtypes[e], stypes[e]) for e in n.inputs]
            c = _Instr()
            c.node, c.p, c.random = n, p, sig.random
            c.back = getattr(op, STATE_BACKWARD, None)
            c.plan = plan = dispatch.Plan()
            plan.sparse_in = op.storage_rule is None and any(s.stype != "default" for s in ins)
            plan.specs = [Spec(shapes[n, i] if infer.known(shapes.get((n, i))) else None, dtypes[n, i], stypes[n, i])
                          for i in range(sig.n_out)]
            plan.mutated, plan.n_out, plan.n_all = [ins[i] for i in sig.mutates], sig.n_out, sig.n_all
            # Shapes known only by running leave the reference, which decides nothing beforehand.
            plan.fn, plan.out = op.body, False
            if c.back is None and all(s.shape is not None for s in ins):
                specs = [Spec(s.shape, s.dtype) for s in ins] if plan.sparse_in else ins
                fn, out, _ = registry.kernels.resolve(op, device, p, specs)
                if not out or all(s.shape is not None and s.stype == "default" for s in plan.specs):
                    plan.fn, plan.out = fn, out
            wanted = tuple((n, i) in used for i in range(sig.n_out))
            c.k = dispatch.K(ctx, is_train, None if all(wanted) else wanted)
            if all(s.shape is not None for s in plan.specs):
                c.k.shapes = tuple(s.shape for s in plan.specs)
            c.ins = [self.slot[e] for e in n.inputs]
            c.outs = list(range(n_slots, n_slots + sig.n_out))
            for i, s in enumerate(c.outs):
                self.slot[n, i] = s
            n_slots += sig.n_out
            c.mutates = sig.mutates
            if op.stateful:
                states[id(n)] = c.state = n_slots
                n_slots += 1
            else:
                c.state = states.get(id(n.forward), -1) if n.forward is not None else -1
            self.instrs.append(c)
        self.n_slots, self.n_variables = n_slots, len(variables)
        self.split = sum(id(c.node) in first for c in self.instrs)
        self._liveness()
        self.head_slots = [self.slot[e] for e in self.heads]
        self.sync = any(c.node.op.stateful or c.back or any(s.shape is None or s.stype != "default" for s in c.plan.specs)
                        for c in self.instrs)
        self.work = sum(self._work(c, shapes) for c in self.instrs)

    def _work(self, c: _Instr, shapes: dict[Entry, Any]) -> float:
        op = c.node.op
        ins = [shapes.get(e) for e in c.node.inputs]
        outs = [s.shape for s in c.plan.specs]
        if any(not infer.known(s) for s in (*ins, *outs)):
            return 0.0
        if op.cost_rule is not None:
            return float(op.cost_rule(c.p, ins, outs))
        return float(sum(Spec(s, None).size for s in (*ins, *outs)))

    def _liveness(self) -> None:
        """For each instruction the slots that nobody reads later."""
        keep = set(range(self.n_variables)) | {self.slot[e] for e in self.heads}
        seen: set[int] = set(keep)
        for c in reversed(self.instrs):
            c.last = []
            for s in {*c.ins, *c.outs, *((c.state,) if c.state >= 0 else ())}:
                if s not in seen:
                    seen.add(s)
                    c.last.append(s)

    def run(self, env: list[Any], part: str = "all", record: list[Any] | None = None) -> None:
        """Run over the slots of `env` (device arrays; variables filled in), 'first', 'second' part or 'all'.

        Parameters
        ----------
        record : list, optional
            Gets (node, outputs) of each call, for monitors.
        """
        device = self.ctx.device
        if device.async_:
            device.activate(self.ctx.device_id)
        chosen = self.instrs if part == "all" else self.instrs[:self.split] if part == "first" else self.instrs[self.split:]
        for c in chosen:
            datas = [env[i] for i in c.ins]
            if c.plan.sparse_in:
                datas = dispatch.densified(c.k, datas)
            try:
                self._call(c, datas, env)
            except Exception as e:
                raise_in_op(e, c.node.op.name, c.p._sig.inputs, datas, f"node '{c.node.name}'")
            if record is not None:
                record.append((c.node, [env[s] for s in c.outs]))
            for s in c.last:
                env[s] = None

    def _call(self, c: _Instr, datas: list[Any], env: list[Any]) -> None:
        k = c.k
        if c.random:
            k = dispatch.K(self.ctx, k.is_train, k.wanted, rng.next_key(self.ctx))
            k.shapes = c.k.shapes
        if c.back is not None:
            return self._state_backward(c, k, datas, env)
        # Views may share: nobody but the program sees its slots.
        values, state = dispatch.run_kernel(c.node.op, c.plan, k, c.p, datas, None, c.node.op.view)
        if c.state >= 0:
            env[c.state] = state
        for s, v in zip(c.outs, values):
            env[s] = v
        for i, v in zip(c.mutates, values[len(c.outs):]):
            if v is not None and v is not datas[i]:
                k.device.copy(v, datas[i])

    def _state_backward(self, c: _Instr, k: Any, datas: list[Any], env: list[Any]) -> None:
        forward = c.node.forward
        assert forward is not None
        n_out = forward.n_out
        wrap = [transfer.wrap(d, self.ctx) for d in datas]
        grads = c.back.backward_rule(k, forward.params, env[c.state], wrap[:n_out], wrap[n_out:], {})
        for s, g in zip(c.outs, grads):
            env[s] = None if g is None else g._data


