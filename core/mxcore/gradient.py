"""The gradient pass: a graph of outputs becomes a graph of gradients, by the same rules as the tape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._core.errors import MXNetError, error, in_rule, raise_in_op
from ._core.gradplan import plan_of
from ._core.graph import Node, topo
from ._core.op import Op
from ._core.params import Params
from .composing import GraphF, Value, beside

__all__ = ["gradient", "STATE_BACKWARD"]


def _state_backward(forward: Node) -> Op:
    """The operator that runs a stateful node's backward: inputs are dys, then its inputs; outputs the gradients."""
    op, p = forward.op, forward.params
    n_out, n_in = p._sig.n_out, len(p._sig.inputs)

    def body(k: Any, q: Params, *values: Any) -> Any:
        raise error(RuntimeError, f"_backward_{op.name} runs inside a program only")

    names = [f"d{i}" for i in range(n_out)] + [f"x{i}" for i in range(n_in)]
    back = Op(f"_backward_{op.name}", body, inputs=" ".join(names), outputs=lambda q: [f"g{i}" for i in range(n_in)])
    back.shape_rule = lambda q, ins, outs: (list(ins[:n_out]) + list(outs), list(ins[n_out:]))
    back.dtype_rule = back.shape_rule
    return back


#: Attribute of operators made by `_state_backward`: they need the state of `node.forward`.
STATE_BACKWARD = "_backward_state"


def gradient(
    heads: Sequence[tuple[Node, int]],
    head_grads: Sequence[tuple[Node, int] | None],
    wrt: Sequence[tuple[Node, int]],
    steps: list[tuple[Node, list[tuple[int, tuple[Node, int]]]]] | None = None,
) -> list[tuple[Node, int] | None]:
    """Entries of the gradients of `heads` with respect to the entries `wrt`.

    Parameters
    ----------
    heads : sequence of entries
    head_grads : sequence of entries or None
        Incoming gradients; None means ones.
    wrt : sequence of entries
    steps : list, optional
        Gets each node, last first, with the wanted gradients that its rule gave, each behind the number of its input.

    Returns
    -------
    list of entries; None where nothing depends on it.
    """
    order = topo(heads)
    targets = {(id(n), i) for n, i in wrt}
    need: set[int] = set()
    for n in order:
        if any((id(m), i) in targets or id(m) in need for m, i in n.inputs):
            need.add(id(n))
    grads: dict[tuple[int, int], list[Value]] = {}

    def add(entry: tuple[Node, int], g: Value) -> None:
        grads.setdefault((id(entry[0]), entry[1]), []).append(g)

    def total(entry: tuple[Node, int], F: GraphF) -> Value | None:
        parts = grads.get((id(entry[0]), entry[1]))
        if not parts:
            return None
        acc = parts[0]
        for g in parts[1:]:
            acc = F.roles["sum of gradients"](acc, g)
        grads[id(entry[0]), entry[1]] = [acc]
        return Value(acc.entry, F)  # what is computed of it belongs to this node, not to the one it came from

    for h, g in zip(heads, head_grads):
        F = GraphF(f"_head_grad_{h[0].name}")
        add(h, F.roles["unit gradient"](Value(h, F)) if g is None else Value(g, F))
    for n in reversed(order):
        if id(n) not in need or n.op is None:
            continue
        op, p, sig = n.op, n.params, n.params._sig
        F = GraphF(f"_backward_{n.name}", n)
        dys = [total((n, i), F) for i in range(sig.n_out)]
        if all(d is None for d in dys):
            continue
        needs = tuple((id(m), i) in targets or id(m) in need for m, i in n.inputs)
        ins = [Value(e, F) for e in n.inputs]

        outs = [Value((n, i), F) for i in range(sig.n_out)]
        plan = plan_of(op)
        if op.stateful and op.backward_rule is not None:
            back = _state_backward(n)
            setattr(back, STATE_BACKWARD, op)
            node = Node(
                back,
                back.parse({}),
                [(F.roles["zero gradient"](y) if d is None or op.loss_rule(p) else d).entry for d, y in zip(dys, outs)]
                + list(n.inputs),
                f"_backward_{n.name}",
                beside(n),  # what its forward kept is there
                n,
            )
            result: list[Any] = [Value((node, i), F) for i in range(len(n.inputs))]
        else:
            try:
                result = list(plan.gradients(p, F, needs, dys, ins, outs, outs))
                for name, g in zip(sig.inputs, result):
                    if g is not None and not isinstance(g, Value):
                        raise TypeError(
                            f"its rule returned {g!r} for input {name}; a gradient or None is needed for each input"
                        )
            except MXNetError as x:
                raise in_rule(x, op.name) from x.__cause__
            except Exception as x:
                raise_in_op(x, op.name, p, (), f"gradient of node '{n.name}'")
        if steps is not None:
            steps.append((n, [(i, g.entry) for i, g in enumerate(result) if needs[i] and g is not None]))
        for e, g, wants in zip(n.inputs, result, needs):
            if wants and g is not None:
                add(e, g)
    found: list[tuple[Node, int] | None] = []
    for e in wrt:
        value = total(e, GraphF(f"_sum_grad_{e[0].name}"))
        found.append(None if value is None else value.entry)
    return found
