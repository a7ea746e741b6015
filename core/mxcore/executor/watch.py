"""What a monitor is told: the values of a monitored program under MXNet's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .._core.graph import Node, topo
from .._core.op import Op
from ..composing import beside
from .program import Step

__all__ = ["alias_states", "backward_rows", "forward_rows", "hidden", "hook_labels", "input_labels", "probe", "probed"]

Entry = tuple[Node, int]
#: (name, slot, step) of a value.
Row = tuple[str, int, Step]

#: Probes hand a value on unchanged; the gradient of one is that of one input of one node.
probe = Op("_probe", lambda k, p, data: data, inputs="data", grad=lambda F, dy: F.roles["new array"](dy), view=True)


def hidden(heads: Sequence[Entry], shapes: Mapping[Entry, Any], stypes: Mapping[Entry, str]) -> list[Entry]:
    """Outputs that no user sees (``bn_mean``): as heads of a program they are computed although nothing reads them."""
    return [
        (n, i)
        for n in topo(heads)
        if n.op is not None and not n.op.stateful
        for i in range(n.params._sig.visible, n.params._sig.n_out)
        if shapes.get((n, i)) is not None and stypes[n, i] == "default"
    ]


def probed(heads: Sequence[Entry], dtypes: Mapping[Entry, Any], stypes: Mapping[Entry, str]) -> list[Entry]:
    """The graph with a probe before each input through which a gradient may flow.

    The gradient of an operator's input is any number of nodes, or none where it is handed on as it came; that of a
    probe is always one node, a copy.
    """
    nothing = probe.parse({})
    done: dict[int, Node] = {}
    for n in topo(heads):
        if n.op is None:
            done[id(n)] = n
            continue
        sig = n.params._sig
        labels = n.op.facets.get("labels", ())
        own = [j for j, name in enumerate(sig.inputs) if j not in sig.aux and f"-{name}" not in labels]
        inputs = []
        for j, (m, i) in enumerate(n.inputs):
            e: Entry = (done[id(m)], i)
            if j in own and stypes[m, i] == "default" and np.issubdtype(dtypes[m, i], np.floating):
                label = (
                    sig.inputs[j] if "gradients" in labels else "output" if len(own) == 1 else f"output{own.index(j)}"
                )
                e = (Node(probe, nothing, [e], f"{n.name}_backward_{label}", beside(n)), 0)
            inputs.append(e)
        done[id(n)] = Node(n.op, n.params, inputs, n.name, n.attrs)
    return [(done[id(n)], i) for n, i in heads]


def alias_states(own: dict[Node, Any], steps: Sequence[Step]) -> None:
    """Give stateful nodes of a program what nodes of the same name have in another program of the same executor."""
    nodes = [s.node for s in steps if s.head < 0 and s.op.stateful]
    names = [n.name for n in nodes]
    for n in nodes:
        if n not in own and names.count(n.name) == 1:
            twin = next((m for m in own if m.name == n.name and m.op is n.op), None)
            if twin is not None:
                own[n] = own[twin]


def input_labels(n: Node) -> Sequence[str]:
    """What MXNet calls the inputs of a node."""
    labels: Sequence[str] = n.params._sig.inputs
    return ("input0",) if [*labels] == ["data"] and "inputs" not in n.op.facets.get("labels", ()) else labels


def hook_labels(n: Node) -> list[str]:
    """What MXNet calls a node's outputs in hooks of hybridised blocks; in monitors their names are the symbols'."""
    from ..symbol.outputs import told

    return [told(n, i) for i in range(n.n_out)]


def forward_rows(steps: Sequence[Step], inputs: bool) -> Iterator[Row]:
    """Outputs of all nodes as they were computed, the hidden ones too; with `inputs` before each what it read."""
    from ..symbol.base import output_name

    for step in steps:
        if step.head >= 0 or step.op is probe:
            continue
        n = step.node
        if inputs:
            for label, slot, (m, _) in zip(input_labels(n), step.ins, n.inputs):
                source = m.inputs[0][0] if m.op is probe else m
                if source.op is None:
                    yield source.name, slot, step
                yield f"{n.name}_{label}", slot, step
        for i, slot in enumerate(step.outs):
            yield output_name((n, i)), slot, step


def backward_rows(
    heads: Sequence[Entry], first: Sequence[Step], second: Sequence[Step], wanted: Sequence[str]
) -> list[Row]:
    """Gradients of each node's inputs, and sums where a value is read several times, in MXNet's order.

    An input through which nothing flows, such as a label, beside others through which something does, has the row of
    its probe.
    """
    nodes = topo(heads)
    readers: dict[Entry, list[Node]] = {}
    for n in reversed(nodes):
        if n.op is not probe:
            for m, i in n.inputs:
                readers.setdefault(m.inputs[0] if m.op is probe else (m, i), []).append(n)
    rank = _ranks([n for n in nodes if n.op is None and n.name in wanted], readers)
    at: dict[str, tuple[int, int]] = {}
    sums: dict[str, list[int]] = {}  # with no rank: below nodes that no wanted variable reaches
    for n in nodes:
        for j, (m, _) in enumerate(n.inputs):
            if m.op is probe and n in rank:
                at[f"_backward_{m.name}"] = (rank[n], j)
        for i in range(n.n_out if n.op is not probe else 0):
            if len(readers.get((n, i), ())) > 1:
                ranks = sums.setdefault(f"_sum_grad_{n.name}" if n.op is None else f"_backward_{n.name}", [])
                if (n, i) in rank:
                    ranks.append(rank[n, i])
    summed = {s for step in second if step.head < 0 and step.op.role == "sum of gradients" for s in step.ins}
    found: list[tuple[tuple[int, int], Row]] = []
    for step in second:
        if step.head >= 0:
            continue
        name = step.node.name
        if name in at:
            found.append((at[name], (name.removeprefix("_backward_"), step.outs[0], step)))
        elif step.op.role == "sum of gradients" and step.outs[0] not in summed:
            ranks = next((sums[n] for n in (name, name.rpartition("_")[0]) if n in sums), [len(rank)])
            if ranks:
                found.append(
                    ((ranks.pop(0) if len(ranks) > 1 else ranks[0], -1), ("sum_grad_output", step.outs[0], step))
                )
    told, flowing = {row[0] for _, row in found}, {key[0] for key, _ in found}
    for step in first:
        key = at.get(f"_backward_{step.node.name}")
        if step.head < 0 and step.op is probe and key and key[0] in flowing and step.node.name not in told:
            found.append((key, (step.node.name, step.outs[0], step)))
    return [row for _, row in sorted(found, key=lambda pair: pair[0])]


def _ranks(variables: Sequence[Node], readers: Mapping[Entry, Sequence[Node]]) -> dict[Any, int]:
    """When the gradients of an entry and of a node's inputs are complete: depth first from the variables."""

    def before(x: Any) -> Iterator[Any]:
        return iter([(x, i) for i in range(x.n_out)] if isinstance(x, Node) else readers.get(x, ()))

    rank: dict[Any, int] = {}
    seen: set[Any] = set()
    for v in variables:
        stack = [((v, 0), before((v, 0)))]
        while stack:
            x, rest = stack[-1]
            child = next((c for c in rest if c not in seen), None)
            if child is None:
                rank[x] = len(rank)
                stack.pop()
            else:
                seen.add(child)
                stack.append((child, before(child)))
    return rank
