"""Bodies of loops and branches, compiled: what :mod:`mxcore.ops.control` runs step by step.

Forward and backward are two programs. The first hands what the second reads to arrays of its own, one for each step;
the memory of temporary results is shared by all steps. Gradients of weights that all steps share are computed once,
after the last step, from the rows of all steps.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from .._core import dispatch, tables, transfer
from .._core.context import Context
from .._core.graph import Graph, Node, topo, variable
from .._core.kernels import Spec
from ..ops.control import hooks
from .compile import compile_graph
from .instance import Instance
from .passes.joint import joint
from .passes.settings import enabled, run_passes
from .passes.simplify import simplify
from .program import Program, infer_all

__all__ = ["Body", "CompiledSteps"]

Entry = tuple[Node, int]
#: So many steps keep their calls bound; longer loops bind again.
_BOUND = 256
#: So many compiled forms of one sub-graph are kept.
_LIMIT = 16


class Body:
    """A sub-graph lowered for inputs of certain shapes.

    Parameters
    ----------
    heads : sequence of entries
    names : sequence of str
        Inputs in their order.
    variables : tuple of dict
        Shapes, dtypes and storage types by name.
    ctx : Context
    is_train : bool
    wrt : tuple of int, optional
        Inputs whose gradients are wanted.
    shared : frozenset of int
        Inputs that are the same at every step of a loop, whose gradients add up.

    Attributes
    ----------
    forward : Program
        Its heads are those of the sub-graph, then what `backward` reads.
    backward : Program or None
        Its heads are the gradients that are not zero.
    kept : list of (str, Spec, bool)
        What `backward` reads of the forward, as its variables; False if only the shape matters.
    grads : dict of int to int
        Input -> head of `backward`.
    late : list of (Node, int, dict of int to int)
        Products of matrices over the rows of all steps: the node that computes them for one step, the first of two
        heads of `backward` that are its first inputs, and output -> input of the sub-graph.
    """

    def __init__(
        self,
        heads: Sequence[Entry],
        names: Sequence[str],
        variables: Any,
        ctx: Context,
        is_train: bool,
        wrt: tuple[int, ...] | None,
        shared: frozenset[int] = frozenset(),
    ) -> None:
        self.ctx, self.n_heads, self.wrt = ctx, len(heads), wrt
        self.backward: Program | None = None
        self.kept: list[tuple[str, Spec, bool]] = []
        self.grads: dict[int, int] = {}
        self.late: list[tuple[Node, int, dict[int, int]]] = []
        extra: list[Entry] = []
        if wrt:
            heads, extra = self._split(heads, names, variables, ctx, is_train, wrt, shared)
        self.forward = compile_graph([*heads, *extra], variables, ctx, is_train).program
        self.specs = [self.forward.specs[s] for s in self.forward.head_slots[: self.n_heads]]
        self.names = list(names)

    def _split(
        self,
        heads: Sequence[Entry],
        names: Sequence[str],
        variables: Any,
        ctx: Context,
        is_train: bool,
        wrt: tuple[int, ...],
        shared: frozenset[int],
    ) -> tuple[list[Entry], list[Entry]]:
        """Compile the backward; returns the heads and what else the forward has to hand over."""
        found, _, (shapes, dtypes, stypes) = joint(
            heads, variables, [names[i] for i in wrt], *infer_all(heads, *variables)[:2]
        )
        wanted = [i for i, e in zip(wrt, found) if e is not None]
        graph = Graph([*heads, *[e for e in found if e is not None]])
        graph.shapes, graph.dtypes, graph.stypes = infer_all(graph.heads, shapes, dtypes, stypes)
        if "simplify" in enabled():
            graph = simplify(graph)
        heads, grads = graph.heads[: len(heads)], self._postponed(wanted, graph, len(heads), shared)
        inner = {id(n) for n in topo(heads)}
        kept: dict[Entry, Node] = {}
        read: set[Entry] = set()
        done: dict[int, Node] = {}

        def outside(e: Entry, like: bool) -> Entry:
            n, i = e
            if n.op is None:
                return e
            if id(n) not in inner:
                return done[id(n)], i
            if not like:
                read.add(e)
            if e not in kept:
                kept[e] = variable(f"_kept{len(kept)}")
            return kept[e], 0

        for n in topo(grads):
            if n.op is not None and id(n) not in inner:
                like = n.params._sig.like
                done[id(n)] = Node(
                    n.op, n.params, [outside(e, i in like) for i, e in enumerate(n.inputs)], n.name, n.attrs
                )
        grads = [outside(e, False) for e in grads]
        for e, v in kept.items():
            spec = Spec(graph.shapes[e], graph.dtypes[e])
            shapes[v.name], dtypes[v.name] = spec.shape, spec.dtype
            self.kept.append((v.name, spec, e in read))
        if grads:
            self.backward = compile_graph(grads, (shapes, dtypes, stypes), ctx, is_train).program
        return list(heads), [e for e in kept if e in read]

    def _postponed(self, wanted: Sequence[int], graph: Graph, n_heads: int, shared: frozenset[int]) -> list[Entry]:
        """The heads of `backward`: gradients of `wanted`, and the sources of those that can wait for the last step."""
        late: dict[int, tuple[Node, dict[int, int]]] = {}
        grads: list[Entry] = []
        for i, (n, j) in zip(wanted, graph.heads[n_heads:]):
            if (
                i in shared
                and n.op is not None
                and _of_rows(n)
                and j > 0
                and n.inputs[2][0].op is None
                and all(len(graph.shapes[e]) == 2 for e in n.inputs)
            ):
                late.setdefault(id(n), (n, {}))[1][j] = i
            else:
                self.grads[i] = len(grads)
                grads.append((n, j))
        for n, outs in late.values():
            self.late.append((n, len(grads), outs))
            grads += n.inputs[:2]
        return grads


def _of_rows(n: Node) -> bool:
    """Whether a node is the backward of what computes each row of its output from the same row of its first input.

    From other inputs it computes as a whole: their gradients are sums over all rows.
    """
    forward = tables.ops.find(n.op.facets.get("backward_of", ""))
    return forward is not None and len(n.inputs) == 3 and bool(forward.facet("rowwise", n.params))


class CompiledSteps:
    """Runs of a compiled body, with what each keeps; methods as of :class:`mxcore.ops.control.steps.EagerSteps`.

    Attributes
    ----------
    specs : list of Spec
        Shapes and dtypes of the heads.
    """

    def __init__(self, body: Body) -> None:
        self.body, self.specs = body, body.specs
        index = {n: i for i, n in enumerate(body.names)}
        self._reads = [(slot, index[n]) for n, slot in body.forward.variables.items()]
        self._instances: tuple[list[Instance], list[Instance]] = ([], [])
        self._kept: list[list[Any]] = []  # step -> arrays for `backward`
        self._inputs: list[Sequence[Any]] = []
        self._keys: list[Any] = []
        self._shapes: list[Any] = []
        self._grads: dict[tuple[int, int], Any] = {}
        # Head of the backward -> rows of all steps, and those of each.
        self._stacks: dict[int, tuple[Any, list[Any]]] = {}
        if body.backward is not None:
            slots = body.backward.variables
            self._dys = [(slots[f"_head_grad{i}"], i) for i in range(body.n_heads) if f"_head_grad{i}" in slots]
            self._back_reads = [(slots[n], i) for n, i in index.items() if n in slots]
            self._kept_slots = [(slots[n], j) for j, (n, _, _) in enumerate(body.kept) if n in slots]
            # Arrays of which only the shape matters: one for all steps, never written.
            self._shapes = [None if read else _empty(body.ctx, spec) for _, spec, read in body.kept]

    def renew(self) -> CompiledSteps:
        """Ready for another sequence of runs; what this one kept is given up."""
        self._keys.clear()
        return self

    def covers(self, wanted: Sequence[int]) -> bool:
        """Whether the gradients of these inputs can be asked for."""
        return set(wanted) <= set(self.body.wrt or ())

    def _instance(self, part: int, t: int) -> Instance:
        made, program = self._instances[part], self.body.backward if part else self.body.forward
        i = t % _BOUND
        while len(made) <= i:
            made.append(Instance(program, made[0].blocks if made else None))  # type: ignore[arg-type]
        return made[i]

    def forward(self, t: int, inputs: Sequence[Any], places: Sequence[Any], again: Any = None) -> list[Any]:
        """Run for the `t`-th time; heads without a place are new arrays. `again` holds a first run's random keys."""
        body = self.body
        outs = [_empty(body.ctx, spec) if place is None else place for spec, place in zip(self.specs, places)]
        targets = outs
        if body.kept:
            while len(self._kept) <= t:
                self._kept.append(
                    [
                        old if old is not None else _empty(body.ctx, spec)
                        for old, (_, spec, _) in zip(self._shapes, body.kept)
                    ]
                )
            targets = [*outs, *[v for v, (_, _, read) in zip(self._kept[t], body.kept) if read]]
        if body.wrt:
            del self._inputs[t:]
            self._inputs.append(inputs)
        instance = self._instance(0, t)
        instance.bind(0, [(slot, inputs[i]) for slot, i in self._reads], enumerate(targets))
        keys = instance.keys(0) if again is None else again[t]
        if keys:
            del self._keys[t:]
            self._keys.append(keys)
        instance.run(0, keys)
        return outs

    @property
    def keys(self) -> list[Any]:
        """Random keys of the runs so far; empty if they draw none."""
        return list(self._keys)

    def backward(self, t: int, dys: Sequence[Any], wanted: Sequence[int]) -> list[Any]:
        """Gradients of the inputs `wanted` of the `t`-th run; None where they are zero, or left to `finish`.

        Runs go from the last to the first. The arrays are used again two runs later.
        """
        body = self.body
        if body.backward is None:
            return [None] * len(wanted)
        program = body.backward
        dys = [g if g is not None else self._zeros(i) for i, g in enumerate(dys)]
        instance, inputs = self._instance(1, t), self._inputs[t]
        if t == self._n - 1:
            self._make_stacks()
        grads = [
            self._stacks[h][1][t] if h in self._stacks else self._gradient(h, t % 2)
            for h in range(len(program.head_slots))
        ]
        kept = self._kept[t] if body.kept else ()
        instance.bind(
            0,
            [
                *[(slot, dys[i]) for slot, i in self._dys],
                *[(slot, inputs[i]) for slot, i in self._back_reads],
                *[(slot, kept[j]) for slot, j in self._kept_slots],
            ],
            enumerate(grads),
        )
        instance.run(0, instance.keys(0))
        return [grads[body.grads[i]] if i in body.grads else None for i in wanted]

    @property
    def _n(self) -> int:
        return len(self._inputs)

    def _make_stacks(self) -> None:
        """Room for the rows of all steps."""
        program, n = self.body.backward, self._n
        assert program is not None
        for _, first, _ in self.body.late:
            for h in (first, first + 1):
                if h not in self._stacks or len(self._stacks[h][1]) != n:
                    spec = program.specs[program.head_slots[h]]
                    whole = _empty(self.body.ctx, Spec((n, *spec.shape), spec.dtype))
                    self._stacks[h] = whole, [whole[t] for t in range(n)]

    def finish(self) -> dict[int, Any]:
        """After the backward of all steps: gradients of inputs, summed over the steps, that `backward` left out."""
        found = {}
        for n, first, outs in self.body.late:
            ctx = self.body.ctx
            rows = [
                transfer.wrap(self._stacks[h][0].reshape(-1, self._stacks[h][0].shape[-1]), ctx)
                for h in (first, first + 1)
            ]
            weight = transfer.wrap(self._inputs[0][self.body.names.index(n.inputs[2][0].name)], ctx)
            wanted = tuple(j in outs for j in range(n.n_out))
            values = dispatch.invoke(n.op, [*rows, weight], n.params, wanted=wanted)
            for j, i in outs.items():
                values[j].wait_to_read()  # the product may be with the engine
                found[i] = values[j]._data
        return found

    def _gradient(self, head: int, parity: int) -> Any:
        program = self.body.backward
        assert program is not None
        found = self._grads.get((head, parity))
        if found is None:
            found = self._grads[head, parity] = _empty(self.body.ctx, program.specs[program.head_slots[head]])
        return found

    def _zeros(self, head: int) -> Any:
        found = self._grads.get((head, -1))
        if found is None:
            spec = self.specs[head]
            found = self._grads[head, -1] = self.body.ctx.device.full(
                spec.shape, 0, spec.dtype, self.body.ctx.device_id
            )
        return found


def _empty(ctx: Context, spec: Spec) -> Any:
    return ctx.device.empty(spec.shape, spec.dtype, ctx.device_id)


_generation = 0


def _forget() -> None:
    global _generation
    _generation += 1


tables.on_change.append(_forget)


def _compile(
    graph: Graph,
    names: Sequence[str],
    inputs: Sequence[Any],
    ctx: Context,
    is_train: bool,
    wrt: tuple[int, ...] | None,
    carried: Sequence[tuple[int, int]],
    shared: frozenset[int],
) -> CompiledSteps | None:
    """Steps of a sub-graph on arrays like these; None if it has to run operator by operator."""
    bodies: OrderedDict[Any, Any] = graph.info.setdefault("bodies", OrderedDict())
    key = (ctx, is_train, wrt, tuple([(x.shape, x.dtype) for x in inputs]), shared, enabled(), _generation)
    body = bodies.get(key, False)
    if body is False:
        variables = (
            {n: tuple(x.shape) for n, x in zip(names, inputs)},
            {n: x.dtype for n, x in zip(names, inputs)},
            dict.fromkeys(names, "default"),
        )
        heads = run_passes(graph.heads, *variables[:2])
        fits = _can_be_compiled(heads, variables, [(heads[i], names[j]) for i, j in carried])
        body = bodies[key] = Body(heads, names, variables, ctx, is_train, wrt, shared) if fits else None
        while len(bodies) > _LIMIT:
            bodies.popitem(last=False)
    return None if body is None else CompiledSteps(body)


def _can_be_compiled(heads: Sequence[Entry], variables: Any, carried: Sequence[tuple[Entry, str]]) -> bool:
    """Whether nothing in it keeps a state, changes inputs, or has a shape of every step or known only by running."""
    nodes = [n for n in topo(heads) if n.op is not None]
    if any(n.op.stateful or n.forward is not None or n.params._sig.mutates for n in nodes):
        return False
    s, t, st = infer_all(heads, *variables)
    entries = [(n, i) for n in nodes for i in range(n.n_out)]
    if any(s.get(e) is None or -1 in s[e] or t.get(e) is None or st.get(e, "default") != "default" for e in entries):
        return False
    return all(s[e] == variables[0][name] and t[e] == variables[1][name] for e, name in carried)


hooks["compile"] = _compile
