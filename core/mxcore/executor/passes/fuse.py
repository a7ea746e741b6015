"""The pass that puts elementwise operators together: groups of nodes become one node each.

A group runs over one shape. It is convex (no path leaves it and comes back), lives in one place, and may end in
reductions over the same axes. What depends on values that are known only at run time stays outside. A bias that is
added behind a matrix product or convolution moves into the chain that follows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..._core import tables
from ..._core.call import OpContext
from ..._core.graph import Graph, Node, topo
from ..._core.infer import known
from ..._core.kernels import Spec
from ..._core.op import Op
from ..._values import told
from ...composing import beside
from ...fusion import Fused, Tree, layout
from ...fusion.dtypes import is_cast
from ...parameters import Float
from .mirror import MIRRORED
from .place import group_of
from .pointwise import BIAS, Part, functions_of, part_of, substitute

__all__ = ["fuse"]

Entry = tuple[Node, int]

#: More parts or operands than this make no chain faster, but slow to compile.
_MAX_PARTS, _MAX_OPERANDS = 64, 24
#: Nodes among which groups are looked for, in the order of the graph.
_WINDOW = 4096
#: Elements from which one operator alone is worth compiling, where the device has no kernel of its own and the array
#: library is slow: at reductions; at broadcasting, at comparisons (which it makes of truth values first) and at
#: functions of several steps.
_ALONE_REDUCED, _ALONE = 1 << 12, 1 << 14


def fuse(graph: Graph, device: Any, smallest: int = 0) -> Graph:
    """Replace groups of elementwise operators by one node each.

    Parameters
    ----------
    graph : Graph
        With `shapes`, `dtypes` and `stypes` of all entries. Two items of `info` matter: ``info["n_first"]``, how many
        heads belong to a first part of the program (no group mixes what they need with what only later heads need), and
        ``info["contexts"]``, id of a node -> context, where there are several (else the nodes' attribute ``ctx_group``
        tells them apart).
    device : Device
        Where it will run. Three attributes matter, if it has them: `fused_functions`, the functions of expressions for
        which its chains are fast (all), `fused_biases`, the operators whose bias had better be added by the chain
        behind them (all that have the facet `bias`), and `fused_dtypes`, the dtypes that its chains may mix (none).
    smallest : int
        Operators over fewer elements stay alone.

    Returns
    -------
    Graph
        Heads with the same meaning, and what was inferred of all its entries. The operator of a new node has an
        attribute `fused`, the :class:`mxcore.plugin.Fused`; its inputs and outputs are those of the chain, and its
        parameters are the scalars, in order. Its body runs the parts one by one.

    Examples
    --------
    >>> import numpy as np, mxcore as mx
    >>> from mxcore._core.graph import Graph
    >>> from mxcore.executor.program import infer_all
    >>> x = mx.sym.var("x")
    >>> g = Graph(mx.sym.tanh(x * x + 1)._heads)
    >>> g.shapes, g.dtypes, g.stypes = infer_all(g.heads, {"x": (2, 3)}, {"x": np.dtype("float32")}, {})
    >>> [n.op.name for n in fuse(g, mx.cpu().device).nodes if n.op]
    ['_fused']
    """
    return _Fusion(graph, device, smallest).run()


class _Fusion:
    """One run of the pass."""

    def __init__(self, graph: Graph, device: Any, smallest: int) -> None:
        self.graph, self.device, self.smallest = graph, device, smallest
        self.allowed = getattr(device, "fused_functions", None)
        self.mixed: frozenset[str] = getattr(device, "fused_dtypes", frozenset())
        self.order = graph.nodes
        n_first = graph.info.get("n_first")
        self.first = {id(n) for n in topo(graph.heads[:n_first])} if n_first is not None else set()
        self.places: dict[int, Any] = dict(graph.info.get("contexts") or {})
        self.inferred = Graph(graph.heads)
        self.inferred.shapes, self.inferred.dtypes, self.inferred.stypes = (
            dict(graph.shapes),
            dict(graph.dtypes),
            dict(graph.stypes),
        )
        #: Entry of a heavy node -> that of its bias, added behind it; the heavy node of each such node.
        self.moved: dict[Entry, Entry] = {}
        self.heavy: dict[int, Node] = {}

    def run(self) -> Graph:
        self._move_biases()
        self.parts: dict[int, Part] = {}
        for n in self.order:
            part = part_of(n, self.inferred, lambda e: self.moved.get(e, e), self.mixed)
            if (
                part is not None
                and math.prod(part.shape) >= self.smallest
                and (self.allowed is None or functions_of(part.tree) <= self.allowed)
            ):
                self.parts[id(n)] = part
        if not self.parts:
            return self.graph
        groups = self._groups()
        return self._rebuilt(groups) if groups else self.graph

    def _inputs(self, n: Node) -> Sequence[Entry]:
        return [self.moved.get(e, e) for e in n.inputs] if id(n) not in self.heavy else n.inputs

    def _place(self, n: Node) -> Any:
        """What must be equal for all nodes of a group."""
        place = self.places.get(id(n)) if self.places else group_of(n)
        return id(n) in self.first, place

    # -- biases ------------------------------------------------------------------------------------------------
    def _splits(self, op: Op) -> bool:
        """Whether the bias of an operator had better be added by a chain, as the device says."""
        wanted = getattr(self.device, "fused_biases", None)
        return "bias" in op.facets and (wanted is None or not wanted.isdisjoint((op.name, *op.aliases)))

    def _move_biases(self) -> None:
        """Split heavy nodes with a bias in two, in `order` only: whether the second one joins a chain shows later."""
        graph, order = self.graph, []
        for n in self.order:
            order.append(n)
            if n.op is None or not self._splits(n.op) or n.params.no_bias or not known(graph.shapes.get((n, 0))):
                continue
            p, at = n.params, n.params._sig.index["bias"]
            axis = n.op.facet("bias", p, len(graph.shapes[n, 0]))
            others = [*n.inputs[:at], *n.inputs[at + 1 :]]
            product = Node(
                n.op, n.op.parse({**{k: getattr(p, k) for k in n.op.params}, "no_bias": True}), others, n.name, n.attrs
            )
            bias = Node(BIAS, BIAS.parse({"axis": axis}), [(product, 0), n.inputs[at]], n.name + "_bias_add", n.attrs)
            for new in (product, bias):
                for inferred in (self.inferred.shapes, self.inferred.dtypes, self.inferred.stypes):
                    if (n, 0) in inferred:
                        inferred[new, 0] = inferred[n, 0]
                if id(n) in self.first:
                    self.first.add(id(new))
                if id(n) in self.places:
                    self.places[id(new)] = self.places[id(n)]
            self.moved[n, 0], self.heavy[id(bias)] = (bias, 0), n
            order[-1:] = [product, bias]
        self.order = order

    # -- groups ------------------------------------------------------------------------------------------------
    def _groups(self) -> list[list[Part]]:
        """Groups worth a node, each in order."""
        reach = _Reach(self.order, self._inputs)
        members: dict[int, list[Part]] = {id(n): [self.parts[id(n)]] for n in self.order if id(n) in self.parts}
        root = {k: k for k in members}

        def find(k: int) -> int:
            while root[k] != k:
                root[k] = root[root[k]]
                k = root[k]
            return k

        for n in self.order:
            part = self.parts.get(id(n))
            if part is None:
                continue
            for (m, _), shape in part.operands:
                source = self.parts.get(id(m))
                if source is None or source.reduce or shape != source.shape:
                    continue
                a, b = find(id(m)), find(id(n))
                if a != b and shape == part.shape and self._fit(members[a], members[b]) and reach.join(a, b):
                    root[b] = a
                    members[a] += members.pop(b)
        at = {id(n): i for i, n in enumerate(self.order)}
        groups = [sorted(group, key=lambda part: at[id(part.node)]) for group in members.values()]
        return [g for g in map(self._trimmed, groups) if g and self._worth(g)]

    def _fit(self, a: list[Part], b: list[Part]) -> bool:
        """Whether two groups may be one, but for paths between them."""
        x, y = a[0], b[0]
        if (
            x.dtype != y.dtype
            and not self.mixed
            or len(a) + len(b) > _MAX_PARTS
            or self._place(x.node) != self._place(y.node)
        ):
            return False
        both = [*a, *b]
        if len({part.kept for part in both if part.reduce}) > 1:
            return False
        # The result of a reduction is known when the chain has ended.
        ends = {id(part.node) for part in both if part.reduce}
        if ends and any(id(e[0]) in ends for part in both for e, _ in part.operands):
            return False
        return len({e for part in both for e, _ in part.operands} - {(part.node, 0) for part in both}) <= _MAX_OPERANDS

    def _trimmed(self, group: list[Part]) -> list[Part]:
        """Without the bias of a product that others want as well: then nothing is won by adding it here."""
        inside = {id(part.node) for part in group}
        out = {
            id(part.node)
            for part in group
            if id(part.node) in self.heavy and (len(group) == 1 or self._wanted(part.node, inside))
        }
        return [part for part in group if id(part.node) not in out]

    def _wanted(self, n: Node, inside: set[int]) -> bool:
        """Whether anybody outside a group reads the first output of a node."""
        users = self._users()
        entry = (n, 0)
        return entry in self._heads or any(id(m) not in inside for m in users.get(entry, ()))

    @functools.cached_property
    def _heads(self) -> set[Entry]:
        """What the graph is for; biases have been moved before anybody asks."""
        return {self.moved.get(e, e) for e in self.graph.heads}

    def _users(self) -> dict[Entry, list[Node]]:
        """Entry -> nodes that read its values."""
        if not hasattr(self, "_users_"):
            self._users_: dict[Entry, list[Node]] = {}
            for n in self.order:
                if n.op is not None:
                    part = self.parts.get(id(n))
                    read = (
                        [e for e, _ in part.operands]
                        if part is not None
                        else [e for i, e in enumerate(self._inputs(n)) if i not in n.params._sig.like]
                    )
                    for e in read:
                        self._users_.setdefault(e, []).append(n)
        return self._users_

    def _worth(self, group: list[Part]) -> bool:
        work = any(part.work for part in group)
        if len(group) > 1 or group[0].folded:
            return work
        part, n, inferred = group[0], group[0].node, self.inferred
        simple = (
            not part.reduce
            and (n.op.direct is not None or is_cast(part.tree))
            and part.tree[0] not in ("cmp", "and", "or", "not")
            and all(s == part.shape for _, s in part.operands)
        )
        if not work or simple or math.prod(part.shape) < (_ALONE_REDUCED if part.reduce else _ALONE):
            return False
        specs = [Spec(inferred.shapes.get(e), inferred.dtypes.get(e)) for e in n.inputs]
        if any(s.shape is None or s.dtype is None for s in specs):
            return False
        fn, _, _ = tables.kernels.resolve(n.op, self.device, n.params, specs)
        return fn is n.op.body

    # -- the new graph -----------------------------------------------------------------------------------------
    def _rebuilt(self, groups: list[list[Part]]) -> Graph:
        unit: dict[int, _Unit] = {}
        for group in groups:
            inside = {id(part.node) for part in group}
            outs = [part for part in group if self._wanted(part.node, inside)]
            made = _Unit(group, outs)
            for part in group:
                unit[id(part.node)] = made
        order = self.order
        while True:
            result, nodes = self._built(unit, order)
            # Nodes of which only the shape matters may have gone, and with them the only readers of what chains give.
            read = {e for n in result.nodes for e in n.inputs}.union(result.heads)
            spare = False
            for made in unit.values():
                node = nodes.get(id(made))
                if node is not None and any((node, i) not in read for i in range(len(made.outs))):
                    made.outs, spare = [part for i, part in enumerate(made.outs) if (node, i) in read], True
                    del nodes[id(made)]
            if not spare:
                return result
            order = [n for n in order if id(n) in nodes]

    def _built(self, unit: dict[int, _Unit], order: Sequence[Node]) -> tuple[Graph, dict[int, Node]]:
        """The graph with chains in the place of nodes, where `order` are those that may stay; and item -> its node."""
        rebuild = _Rebuild(self, unit)
        for n in order:
            if n.op is not None and id(n) not in unit:
                rebuild.reads(n)  # so that chains know all their outputs before the first one is made
        return rebuild.result(self.graph.heads), rebuild.nodes

    def _stand_in(self, e: Entry, unit: dict[int, _Unit]) -> Entry:
        """For an input of which only the shape matters: if the entry vanishes in a chain, another one like it."""
        group = unit.get(id(e[0]))
        if group is None or any(part.node is e[0] for part in group.outs):
            return e
        shape, dtype = self.inferred.shapes[e], self.inferred.dtypes[e]
        candidates: list[Entry] = [(part.node, 0) for part in group.outs] + [c for c, _ in group.inputs]
        for c in candidates:
            if self.inferred.shapes.get(c) == shape and self.inferred.dtypes.get(c) == dtype:
                return c
        part = next(part for part in group.parts if part.node is e[0])
        group.outs.append(part)
        return e


class _Rebuild:
    """One walk over the graph that puts chains in the place of their nodes; an item is a node that stays, or a chain.

    Attributes
    ----------
    nodes : dict
        Id of an item -> its node in the new graph.
    """

    def __init__(self, fusion: _Fusion, unit: dict[int, _Unit]) -> None:
        self.fusion, self.unit = fusion, unit
        # A bias that joined no chain goes back to its product.
        biases = [n for n, _ in fusion.moved.values() if id(n) not in unit]
        self.back: dict[Entry, Entry] = {(n, 0): (fusion.heavy[id(n)], 0) for n in biases}
        self.new: dict[Entry, Entry] = {}
        self.nodes: dict[int, Node] = {}
        self.made: dict[Any, Op] = {}
        self.graph = Graph([])
        self.graph.info = dict(fusion.graph.info)
        if "contexts" in self.graph.info:
            self.graph.info["contexts"] = dict(self.graph.info["contexts"])

    def resolve(self, e: Entry) -> Entry:
        """The entry that is read in the place of another."""
        e = self.fusion.moved.get(e, e)
        return self.back.get(e, e)

    def reads(self, n: Node) -> list[Entry]:
        """What a node of the new graph reads; an entry that vanishes in a chain has a stand-in for its shape."""
        like = n.params._sig.like if n.op is not None else ()
        found = map(self.resolve, n.inputs)
        return [self.resolve(self.fusion._stand_in(e, self.unit)) if i in like else e for i, e in enumerate(found)]

    def result(self, heads: Sequence[Entry]) -> Graph:
        """The new graph."""
        wanted = [self.resolve(e) for e in heads]
        seen: set[int] = set()
        stack: list[tuple[Any, Iterator[Node]]] = []

        def visit(n: Node) -> None:
            item = self.unit.get(id(n), n)
            if id(item) not in seen:
                seen.add(id(item))
                stack.append((item, self._before(item)))

        for e in wanted:
            visit(e[0])
            while stack:
                item, rest = stack[-1]
                depth = len(stack)
                for n in rest:
                    visit(n)
                    if len(stack) > depth:
                        break
                else:
                    self._finish(item)
                    stack.pop()
        self.graph.heads = [self.new[e] for e in wanted]
        return self.graph

    def _before(self, item: Any) -> Iterator[Node]:
        if isinstance(item, _Unit):
            for e, _ in item.inputs:
                yield self.resolve(e)[0]
            return
        for e in self.reads(item):
            yield e[0]
        if item.forward is not None:
            yield item.forward

    def _finish(self, item: Any) -> None:
        """Make the node of an item whose inputs have theirs."""
        if isinstance(item, _Unit):
            node, outs = item.node([self.new[self.resolve(e)] for e, _ in item.inputs], self.made)
            first, entries = item.parts[0].node, [(part.node, 0) for part in outs]
        else:
            inputs = tuple(self.new[e] for e in self.reads(item))
            forward = item.forward if item.forward is None else self.nodes[id(item.forward)]
            node = (
                item
                if inputs == item.inputs and forward is item.forward
                else Node(item.op, item.params, inputs, item.name, item.attrs, forward)
            )
            first, entries = item, [(item, i) for i in range(node.n_out)]
        self.nodes[id(item)] = node
        inferred, graph = self.fusion.inferred, self.graph
        for i, e in enumerate(entries):
            self.new[e] = (node, i)
            for mine, theirs in (
                (graph.shapes, inferred.shapes),
                (graph.dtypes, inferred.dtypes),
                (graph.stypes, inferred.stypes),
            ):
                if e in theirs:
                    mine[node, i] = theirs[e]
        if id(first) in self.fusion.places:
            graph.info["contexts"][id(node)] = self.fusion.places[id(first)]


class _Reach:
    """Which nodes are above and below which, while groups become one; sets of nodes are the bits of integers.

    Such sets of all nodes would take memory and time that grow with the square of the graph, so the order is cut into
    windows, and no group goes over a cut. Within a window nothing is lost: a path leads upwards in the order, so that
    one between two nodes of a window stays there, also when groups have become one.
    """

    def __init__(self, order: Sequence[Node], inputs: Callable[[Node], Sequence[Entry]]) -> None:
        self.bit = {id(n): i for i, n in enumerate(order)}
        self.leader = list(range(len(order)))
        n = len(order)
        self.above, self.below, self.own = [0] * n, [0] * n, [1 << i % _WINDOW for i in range(n)]
        users: list[list[int]] = [[] for _ in order]
        for i, node in enumerate(order):
            before = {self.bit[id(m)] for m, _ in inputs(node)} if node.op is not None else set()
            if node.forward is not None:
                before.add(self.bit[id(node.forward)])
            for j in before:
                if i // _WINDOW == j // _WINDOW:
                    self.above[i] |= self.above[j] | self.own[j]
                    users[j].append(i)
        for i in reversed(range(n)):
            for j in users[i]:
                self.below[i] |= self.below[j] | self.own[j]

    def _find(self, i: int) -> int:
        while self.leader[i] != i:
            self.leader[i] = self.leader[self.leader[i]]
            i = self.leader[i]
        return i

    def join(self, a: int, b: int) -> bool:
        """Make one group of two (given by the ids of nodes), unless a path between them goes over a third node."""
        i, j = self._find(self.bit[a]), self._find(self.bit[b])
        window = i // _WINDOW
        if window != j // _WINDOW:
            return False
        own = self.own[i] | self.own[j]
        if (self.below[i] & self.above[j] | self.below[j] & self.above[i]) & ~own:
            return False
        above, below = (self.above[i] | self.above[j]) & ~own, (self.below[i] | self.below[j]) & ~own
        for some, whole, mine in (
            (self.above[i] & self.above[j], above, self.below),
            (self.below[i] & self.below[j], below, self.above),
        ):
            more = own | (below if mine is self.below else above)
            rest = whole & ~some
            while rest:
                low = rest & -rest
                at = self._find(window * _WINDOW + low.bit_length() - 1)
                mine[at] |= more
                rest &= ~(low | self.own[at])
        self.leader[j] = i
        self.own[i], self.above[i], self.below[i] = own, above, below
        return True


class _Unit:
    """A group on its way to a node."""

    def __init__(self, parts: list[Part], outs: list[Part]) -> None:
        self.parts, self.outs = parts, outs
        inside = {(part.node, 0) for part in parts}
        self.inputs: list[Any] = list(
            dict.fromkeys((e, s) for part in parts for e, s in part.operands if e not in inside)
        )
        self.dtypes = {e: t for part in parts for (e, _), t in zip(part.operands, part.types)}

    def node(self, inputs: list[Entry], made: dict[Any, Op]) -> tuple[Node, list[Part]]:
        """The node over these entries, and the parts that its outputs are; `made` are the operators of chains."""
        parts, outs = self.parts, self.outs
        first, tail = parts[0], parts[-1]
        names = {key: f"a{i}" for i, key in enumerate(self.inputs)}
        value: dict[int, Tree] = {}  # node -> a name, or a constant
        steps: list[tuple[str, Tree]] = []
        known_steps: dict[Any, Tree] = {}
        types = {name: self.dtypes[e] for (e, _), name in names.items()}
        scalars: list[tuple[float, str | None, Part]] = []
        constants: dict[Any, str] = {}
        for part in parts:
            local: dict[str, Tree] = {}
            for i, (number, param) in enumerate(part.scalars):
                name = constants.get((repr(number), part.dtype)) if param is None else None
                if name is None:
                    name = f"s{len(scalars)}"
                    types[name] = part.dtype.name
                    scalars.append((number, param, part))
                    if param is None:
                        constants[repr(number), part.dtype] = name  # 0.0 is not -0.0
                local[f"s{i}"] = ("name", name)
            for i, (e, s) in enumerate(part.operands):
                local[f"x{i}"] = ("name", names[e, s]) if (e, s) in names else value[id(e[0])]
            tree = substitute(part.tree, local)
            if tree[0] not in ("name", "num"):
                known_step = known_steps.get(key := (tree, told([tree]), part.dtype))
                if known_step is None:
                    types[f"t{len(steps)}"] = part.dtype.name
                    steps.append((f"t{len(steps)}", tree))
                    known_step = known_steps[key] = ("name", steps[-1][0])
                tree = known_step
            value[id(part.node)] = tree
        ends: list[Any] = []
        for i, part in enumerate(outs):
            types[f"y{i}"] = part.dtype.name
            tree = value[id(part.node)]
            ends.append(tree[1] if tree[0] == "name" else tree)
        pattern, dims = layout(first.shape, [*(s for _, s in self.inputs), *(part.kept for part in outs)])
        chain = Fused(
            [f"a{i}" for i in range(len(inputs))],
            ends,
            _main(parts),
            scalars=[f"s{i}" for i in range(len(scalars))],
            steps=steps,
            reduce=[part.reduce for part in outs],
            pattern=pattern,
            dims=dims,
            types=types,
        )
        op = _operator(chain, parts, outs, self.inputs, scalars, made)
        attrs = beside(first.node)
        if all(MIRRORED in part.node.attrs for part in parts):
            attrs[MIRRORED] = "1"
        params = op.parse({f"s{i}": number for i, (number, _, _) in enumerate(scalars)})
        return Node(op, params, inputs, tail.node.name, attrs), outs


def _main(parts: list[Part]) -> str:
    """The dtype that a chain is said to have: that of a part of full precision."""
    return next((part.dtype.name for part in parts if part.dtype.itemsize > 2), "float32")


def _operator(
    chain: Fused, parts: list[Part], outs: list[Part], inputs: list[Any], scalars: list[Any], made: dict[Any, Op]
) -> Op:
    """The operator of a chain; its body runs the parts. Equal chains of a graph share it through `made`."""
    n = len(inputs)
    place = {e: i for i, (e, _) in reversed([*enumerate(inputs)])} | {
        (part.node, 0): n + i for i, part in enumerate(parts)
    }
    dynamic: dict[int, dict[str, str]] = {}
    for i, (_, param, part) in enumerate(scalars):
        if param is not None:
            dynamic.setdefault(id(part), {})[param] = f"s{i}"
    # Nodes stay out of it: they would keep alive the whole graph that is fused here.
    steps = [(part.recipe(), [place[e] for e, _ in part.operands], dynamic.get(id(part), {})) for part in parts]
    ends, shapes = [place[part.node, 0] for part in outs], [part.out for part in outs]
    dtypes = [part.dtype for part in outs]
    key = (
        chain.key,
        chain.dims,
        tuple((r.key, tuple(read), tuple(names.items())) for r, read, names in steps),
        tuple(ends),
        tuple(shapes),
    )
    if key in made:
        return made[key]
    alias, taken = [], set()
    for i, j in chain.inplace:
        if i not in taken and j + n not in taken:
            taken |= {i, j + n}
            alias.append(f"a{i}->o{j}")

    def body(k: Any, p: Any, *arrays: Any) -> Any:
        plain, values = OpContext(k.ctx, k.is_train), [*arrays]
        for recipe, read, names in steps:
            params = (
                recipe.params.with_dynamic({param: getattr(p, s) for param, s in names.items()})
                if names
                else recipe.params
            )
            values.append(recipe.compute(plain, params, [values[i] for i in read]))
        return tuple(values[i] for i in ends) if len(ends) > 1 else values[ends[0]]

    op = Op(
        "_fused",
        body,
        inputs=" ".join(chain.inputs),
        outputs=" ".join(f"o{j}" for j in range(len(outs))),
        alias=" ".join(alias),
        params={name: Float(dynamic=True) for name in chain.scalars},
        grad=None,
        doc=f"{chain!r}",
    )
    op.shape(lambda p, ins: list(shapes))
    op.dtype(lambda p, ins, outs: (ins, dtypes))
    work = float(math.prod(parts[0].shape) * len(steps))
    op.cost(lambda p, ins, outs: work)
    op.fused = chain  # type: ignore[attr-defined]
    op.consists = tuple(recipe.op.name for recipe, _, _ in steps)  # type: ignore[attr-defined]
    made[key] = op
    return op
