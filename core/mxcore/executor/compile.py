"""From a symbol's heads to a lowered program: gradient, inference and the stock passes, in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core import tables
from .._core.context import Context
from .._core.errors import MXNetError, error
from .._core.gradplan import plan_of
from .._core.graph import Graph, Node, topo
from .._core.infer import known, merge_dtype, merge_shape, show
from .draws import order_of_draws, told_apart
from .passes.fuse import fuse
from .passes.joint import VariableSpecs, joint
from .passes.mirror import mirror
from .passes.place import context_of, group_of, place
from .passes.settings import Settings, run_late_passes
from .passes.simplify import params_key, place_key, simplify
from .program import Program, infer_all, undecided
from .recent import Recent

__all__ = ["Compiled", "VariableSpecs", "compile_graph"]

Entry = tuple[Node, int]


class Compiled:
    """A program and what its heads mean.

    Attributes
    ----------
    program : Program
    head_grads : list of str or None
        Names of the variables that take the gradients of the outputs; None for one that nothing reads.
    grads : list of int or None
        For each variable whose gradient was asked for: which head it is; None where it is zero.
    """

    __slots__ = ("program", "head_grads", "grads")

    def __init__(self, program: Program, head_grads: list[str | None], grads: list[int | None]) -> None:
        self.program, self.head_grads, self.grads = program, head_grads, grads


_LIMIT = 64
_cache = Recent(_LIMIT)
tables.on_change.append(_cache.clear)


def compile_graph(
    heads: Sequence[Entry],
    variables: VariableSpecs,
    ctx: Context,
    is_train: bool,
    wrt: Sequence[str] | None = None,
    adds: Sequence[str] = (),
    groups: Mapping[str, Context] | None = None,
    places: Mapping[str, Context] | None = None,
    monitored: bool = False,
    settings: Settings | None = None,
    without: frozenset[int] = frozenset(),
) -> Compiled:
    """Lower a graph, or find the program of an equal one.

    Parameters
    ----------
    heads : sequence of entries
    variables : tuple of dict
        Shapes, dtypes and storage types of the variables.
    ctx : Context
    is_train : bool
    wrt : sequence of str, optional
        Variables whose gradients are wanted: the program gets a second part.
    adds : sequence of str
        Those of them whose gradient is added to what its array holds.
    groups : dict of str to Context, optional
        ``group2ctx``.
    places : dict of str to Context, optional
        Variables that live elsewhere than on `ctx`.
    monitored : bool
        Every node's outputs are kept apart: no fusion, no shared memory.
    settings : Settings, optional
        The passes to run; what is set now unless told.
    without : frozenset of int
        Heads that have no gradient, if `wrt` is given.
    """
    settings = settings or Settings.now()
    if monitored:
        settings = settings._replace(passes=settings.passes - {"fuse", "plan", "simplify", "mirror"}, late=())
    key = (
        _structure(heads),
        tuple((n, s, str(t), st) for n, s, t, st in _rows(variables)),
        ctx,
        is_train,
        None if wrt is None else tuple(wrt),
        tuple(adds),
        settings,
        tuple(sorted((groups or {}).items(), key=str)),
        tuple(sorted((places or {}).items(), key=str)),
        ctx.device.fused_from,
        without,
    )
    found: Compiled = _cache.find(
        key,
        lambda: _compile(
            list(heads), variables, ctx, is_train, wrt, adds, groups or {}, places or {}, settings, monitored, without
        ),
    )
    return found


def _compile(
    heads: list[Entry],
    variables: VariableSpecs,
    ctx: Context,
    is_train: bool,
    wrt: Sequence[str] | None,
    adds: Sequence[str],
    groups: Mapping[str, Context],
    places: Mapping[str, Context],
    settings: Settings,
    monitored: bool,
    without: frozenset[int],
) -> Compiled:
    passes = settings.passes
    n_first = len(heads)
    every = list(heads)
    order: list[int] = []
    added: set[int] = set()
    head_grads: list[str] = []
    found: list[int | None] = []
    shapes, dtypes, stypes = variables
    steps: list[Any] = []
    if wrt is not None:
        known_of = infer_all(heads, *variables)[:2]
        grads, ins, (shapes, dtypes, stypes) = joint(heads, variables, wrt, *known_of, steps, without)
        places = {**places, **{v.name: context_of(n, ctx, groups, places) for v, (n, _) in zip(ins, heads)}}
        found = []
        for name, g in zip(wrt, grads):
            if g is None:
                found.append(None)
                continue
            if name in adds:
                added.add(len(every))
            found.append(len(every))
            every.append(g)
        head_grads = [v.name for v in ins]
        order = sorted(range(n_first, len(every)), key=lambda i: every[i][0].serial)
    graph = Graph(every)
    try:
        graph.shapes, graph.dtypes, graph.stypes = infer_all(every, shapes, dtypes, stypes)
    except MXNetError as e:
        if wrt is None:
            raise
        raise _with_operator(e, heads, variables, wrt) from e.__cause__  # it may be this one
    if missing := undecided(every, graph.dtypes):
        raise missing
    if wrt is not None:
        made = {n: every[i] for n, i in zip(wrt, found) if i is not None}
        _fitting(heads, variables, wrt, {n: (graph.shapes.get(e), graph.dtypes.get(e)) for n, e in made.items()})
        facts = graph.shapes, graph.dtypes
        for node, given in steps:
            # The library's own rules are checked by the conformance kit, and cheap to trust.
            read = [(i, e) for i, e in given if e in graph.shapes] if plan_of(node.op).checked else ()
            if flaw := _unlike(node, read, facts, facts):
                raise _with_operator(error(ValueError, flaw), heads, variables, wrt)
    graph = told_apart(graph, n_first)
    drawn = order_of_draws(graph, n_first, lambda n: context_of(n, ctx, groups, places))
    graph.info.update(n_first=n_first, order=order, drawn=drawn)
    if "simplify" in passes:
        graph = simplify(graph, settings.merge)
    if groups or any(c is not ctx for c in places.values()):
        # Where who binds has put the outputs, whatever computes them by now.
        homes = {i: context_of(n, ctx, groups, places) for i, (n, _) in enumerate(heads)}
        homes.update((i, places.get(name, ctx)) for name, i in zip(wrt or (), found) if i is not None)
        graph = place(graph, ctx, groups, places, homes)
    if wrt is not None and "mirror" in passes:
        graph = mirror(graph, settings.mirror_all)
    if settings.late:
        graph = run_late_passes(graph, settings.late, ctx=ctx, is_train=is_train)
    if "fuse" in passes:
        graph = fuse(graph, ctx.device, ctx.device.fused_from)
    share = "plan" in passes and not monitored
    program = Program(graph, ctx, is_train, n_first, frozenset(added), share=share)
    if program.sync and not program.orderly and (less := _with_less(settings)) is not None:
        # What draws as it runs does so in the order of the steps.
        return _compile(heads, variables, ctx, is_train, wrt, adds, groups, places, less, monitored, without)
    # Passes may have removed who read one.
    return Compiled(program, [n if n in program.variables else None for n in head_grads], found)


def _with_less(settings: Settings) -> Settings | None:
    """Without the passes that put steps into another order, then without those that leave some out; None at last."""
    if settings.late or "fuse" in settings.passes:
        return settings._replace(passes=settings.passes - {"fuse"}, late=())
    if "simplify" in settings.passes:
        return settings._replace(passes=settings.passes - {"simplify"})
    return None


def _fitting(heads: Sequence[Entry], variables: VariableSpecs, wrt: Sequence[str], found: Mapping[str, Any]) -> None:
    """Refuse gradients that are not like their variables: written there they would be repeated, or cut off.

    `found` are their shapes and dtypes, by name.
    """
    for name, (shape, dtype) in found.items():
        size, kind = variables[0].get(name), variables[1].get(name)
        if known(shape) and known(size) and tuple(shape) != tuple(size):
            has, wanted = f"shape {tuple(shape)}", str(tuple(size))
        elif dtype is not None and kind is not None and dtype != kind and kind.kind == "f":
            has, wanted = f"dtype {show(dtype)}", show(kind)
        else:
            continue
        readers = [
            f"operator {n.op.name} (input {n.params._sig.inputs[i]})"
            for n in topo(heads)
            for i, (v, _) in enumerate(n.inputs)
            if v.op is None and v.name == name
        ]
        e = error(
            ValueError,
            f"the gradient of variable '{name}' has {has}, the variable {wanted}: "
            f"the gradient rule of {' or '.join(dict.fromkeys(readers))} is wrong",
        )
        raise _with_operator(e, heads, variables, wrt)


def _rows(variables: VariableSpecs) -> list[tuple[str, Any, Any, Any]]:
    shapes, dtypes, stypes = variables
    return [(n, shapes[n], dtypes.get(n), stypes.get(n)) for n in shapes]


def _structure(heads: Sequence[Entry]) -> tuple[Any, ...]:
    """Equal for graphs that compute the same by the same names."""
    number: dict[int, int] = {}
    rows: list[Any] = []
    for n in topo(heads):
        number[id(n)] = len(rows)
        if n.op is None:
            rows.append((n.name, group_of(n)))
        else:
            rows.append(
                (n.op, params_key(n.op, n.params), n.name, place_key(n), tuple((number[id(m)], i) for m, i in n.inputs))
            )
    return (tuple(rows), tuple((number[id(n)], i) for n, i in heads))


def _with_operator(e: MXNetError, heads: Sequence[Entry], variables: VariableSpecs, wrt: Sequence[str]) -> MXNetError:
    """An error of a gradient's nodes, which names the user's operator whose gradient it is, and its inputs.

    That is the last one whose gradients cannot be, or are not like its inputs: what comes to those before it is wrong.
    """
    shapes, dtypes, _ = infer_all(heads, *variables)
    steps: list[tuple[Node, list[tuple[int, Entry]]]] = []
    given = joint(heads, variables, wrt, shapes, dtypes, steps).variables
    for node, gradients in steps:
        names = node.op.signature(node.params).inputs
        try:
            found = infer_all([g for _, g in gradients], *given)
        except MXNetError as problem:
            kind, flaw = type(problem), str(problem)
        else:
            kind, flaw = type(e), _unlike(node, gradients, (shapes, dtypes), found[:2])
        if flaw:
            inputs = ", ".join(
                f"{name} {show(dtypes.get(i))} {show(shapes.get(i))}" for name, i in zip(names, node.inputs)
            )
            hint = "; bools are no numbers to differentiate, cast them first" if "bool" in inputs else ""
            text = f"gradient of operator {node.op.name} of node '{node.name}' with {inputs}: {flaw}{hint}"
            return error(kind, text)
    return e


def _unlike(node: Node, gradients: Sequence[tuple[int, Entry]], facts: Any, found: Any) -> str:
    """Which gradient of a node is not like its input, by the shapes and dtypes of both; an empty string if all are."""
    for what, merge, before, after in zip(("shape", "dtype"), (merge_shape, merge_dtype), facts, found):
        for i, g in gradients:
            try:
                merge(before.get(node.inputs[i]), after.get(g))
            except (ValueError, TypeError):
                return (
                    f"the gradient of its input '{node.params._sig.inputs[i]}' has {what} {show(after[g])}: its "
                    f"gradient rule is wrong, or the {what} rule of an operator is"
                )
    return ""
