"""Loops over a sub-graph: some of its heads are collected, the others become its inputs at the next step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._core.errors import error
from ..._core.graph import Graph
from ..._core.params import Params
from ..._core.state import state
from ..._core.transfer import wrap
from ...typing import Call
from .steps import input_names, steps_for

__all__ = ["Loop", "Predicate", "Run", "check_places", "explained", "gradients", "output_names", "owned"]


def explained(name: str, rule: Callable[[Params], list[str]]) -> Callable[[Params], list[str]]:
    """A rule for outputs whose errors name the operator, wherever its parameters come from."""

    def outputs(p: Params) -> list[str]:
        try:
            return rule(p)
        except ValueError as e:
            raise error(ValueError, f"operator {name}: {e}") from None

    return outputs


def output_names(p: Params, graph: str, n: int) -> list[str]:
    """Outputs of an operator that holds sub-graphs; `graph` is the parameter of the one that gives them, all `n`."""
    heads = len(getattr(p, graph).heads)
    if not p.num_outputs == heads == n:
        raise ValueError(f"num_outputs is {p.num_outputs}, and {graph} gives {heads}; {n} are needed")
    return ["output"] if n == 1 else [f"output{i}" for i in range(n)]


def check_places(p: Params, graph: str, *locs: str, of: int | None = None) -> None:
    """Refuse parameters, `locs`, that do not tell for each input of a sub-graph where it comes from.

    It is one of `of` inputs of the operator; without it, the parameters together name each input of the graph once.
    """
    n = len(input_names(getattr(p, graph)))
    places = [i for name in locs for i in getattr(p, name)]
    if len(places) != n or not (sorted(places) == [*range(n)] if of is None else all(0 <= i < of for i in places)):
        what = "name each once" if of is None else f"name one of {of} arrays for each"
        raise ValueError(f"{graph} has {n} inputs; {', '.join(locs)} must {what}, got {places}")


def owned(k: Call, p: Params, make: Callable[[], Any]) -> Any:
    """What a node of a program keeps, made once; outside of programs it is made for each call."""
    if k.shapes is None:
        return make()
    found = p.__dict__.get("_owned")
    if found is None:
        found = p.__dict__["_owned"] = make()
    return found


def gradients(
    run: Run, dys: Sequence[Any], places: Sequence[int], wanted: Sequence[bool] | None, ins: Sequence[Any]
) -> list[Any]:
    """Gradients of an operator's inputs, as arrays; `places` tells each one's input of the sub-graph, or -1."""
    for x in (*dys, *ins):
        x.wait_to_read()  # what follows looks at values, in the caller's thread
    needed = [i for j, i in enumerate(places) if i >= 0 and (wanted is None or wanted[j])]
    found = run.backward(dys, needed)
    return [wrap(found[i], x._st.ctx) if i in found else None for i, x in zip(places, ins)]


def _row(x: Any, t: int, shape: tuple[int, ...]) -> Any:
    """The part of a stack that one step fills."""
    return x[t] if shape else x[t : t + 1].reshape(())


class Predicate:
    """A sub-graph that gives one number: yes or no.

    Parameters
    ----------
    graph : Graph
    label : str
        What errors call it.
    """

    def __init__(self, graph: Graph, label: str) -> None:
        self.graph, self.label = graph, label
        self._last: Any = None
        self._steps: Any = None
        self._places: list[Any] = [None]

    def __call__(self, k: Any, inputs: Sequence[Any]) -> bool:
        """Ask; raises ValueError if the answer is no single number."""
        kind = [k.ctx, k.is_train, *[(x.shape, x.dtype) for x in inputs]]
        if kind != self._last:
            self._last, self._steps, self._places = kind, steps_for(self.graph, inputs, k, None, False), [None]
        was, state.record = state.record, False
        try:
            self._places = self._steps.forward(0, inputs, self._places)
        finally:
            state.record = was
        answer = self._places[0]
        if answer.size != 1:
            raise ValueError(f"{self.label} must give one number, it gave an array of shape {tuple(answer.shape)}")
        return bool(k.device.to_host(answer).item())


class Loop:
    """One loop of one owner, with the memory of its steps.

    Parameters
    ----------
    graph : Graph
    n_out : int
        The first heads: collected along a new first axis.
    data, carried : sequence of int
        Inputs of the sub-graph that take one step's part of an array, and those that the other heads become.
    label : str
        What errors call it.
    """

    def __init__(self, graph: Graph, n_out: int, data: Sequence[int], carried: Sequence[int], label: str) -> None:
        self.graph, self.n_out, self.data, self.carried, self.label = graph, n_out, list(data), list(carried), label
        self.pairs = [(n_out + j, i) for j, i in enumerate(carried)]
        #: Training mode -> inputs whose gradients were asked for so far, by all who run the sub-graph.
        self.wrt: dict[bool, tuple[int, ...]] = graph.info.setdefault("wrt", {})
        self._kept: dict[Any, tuple[Any, _Buffers]] = {}
        self._parts: dict[Any, tuple[Any, dict[int, Any]]] = {}

    def part(self, key: Any, x: Any, t: int) -> Any:
        """What a step sees of an array, of one dimension or more: the same object for the same array."""
        found = self._parts.get(key)
        if found is None or found[0] is not x:
            found = self._parts[key] = x, {}
        view = found[1].get(t)
        if view is None:
            view = found[1][t] = x[t] if x.ndim > 1 else x[t : t + 1]
        return view

    def row(self, j: int, g: Any, t: int, shape: tuple[int, ...]) -> Any:
        """One step's part of the gradient of what was collected; likewise the same object."""
        return self.part(-1 - j, g, t) if len(shape) > 0 else g[t : t + 1].reshape(())

    def steps(self, k: Any, inputs: Sequence[Any], rows: int, wrt: tuple[int, ...] | None) -> tuple[Any, _Buffers]:
        """Steps on inputs like these and arrays for their heads; a program uses those of its last run again."""
        key = (k.ctx, k.is_train, wrt, rows, tuple([(x.shape, x.dtype) for x in inputs]))
        kept = self._kept.get(key) if k.shapes is not None else None
        if kept is not None:
            return kept[0].renew(), kept[1]
        found = steps_for(
            self.graph,
            inputs,
            k,
            wrt,
            state.record or k.is_train,
            self.pairs,
            frozenset(range(len(inputs))) - {*self.data, *self.carried} if rows > 1 else frozenset(),
        )
        made = found, _Buffers(k, found.specs, self.n_out, rows)
        if k.shapes is not None:
            for old in [o for o in self._kept if o[:2] == key[:2]]:
                del self._kept[old]
            self._kept[key] = made
        return made

    def learn(self, is_train: bool, wrt: tuple[int, ...]) -> tuple[int, ...]:
        """From now on steps keep what these gradients need too."""
        found = self.wrt[is_train] = tuple(sorted({*wrt, *self.wrt.get(is_train, ())}))
        return found


class _Buffers:
    """Where compiled steps write heads: rows of what is collected, an array for each carried head of each step."""

    def __init__(self, k: Any, specs: Any, n_out: int, rows: int) -> None:
        self.k, self.specs, self.n_out = k, specs, n_out
        self.outs = [] if specs is None else [self._new((rows, *s.shape), s.dtype) for s in specs[:n_out]]
        self._places: dict[int, list[Any]] = {}
        self._carried: dict[int, list[Any]] = {}

    def _new(self, shape: Any, dtype: Any) -> Any:
        return self.k.device.empty(shape, dtype, self.k.ctx.device_id)

    def places(self, t: int, keep: bool) -> list[Any]:
        """The arrays of step `t`; unless carried values are to be kept, every other step has the same."""
        if self.specs is None:
            return []
        found = self._places.get(t)
        if found is None:
            rows = [_row(y, t, s.shape) for y, s in zip(self.outs, self.specs)]
            i = t if keep else t % 2
            if i not in self._carried:
                self._carried[i] = [self._new(s.shape, s.dtype) for s in self.specs[self.n_out :]]
            found = self._places[t] = rows + self._carried[i]
        return found


class Run:
    """One forward of a loop, and its backward.

    Parameters
    ----------
    loop : Loop
    k : OpContext
    inputs : sequence of device arrays
        Of the sub-graph at the first step; those that are cut into parts whole.
    rows : int
        Most steps; the length of what is collected.

    Attributes
    ----------
    keys : list
        The random keys of forward, in the order in which they were drawn.
    before : dict of int to device array
        What those inputs of the operator held, at first, that forward has written to.
    """

    def __init__(self, loop: Loop, k: Any, inputs: Sequence[Any], rows: int) -> None:
        self.keys: list[Any] = []
        self.before: dict[int, Any] = {}
        self.loop, self.k, self.inputs, self.rows, self.n = loop, k, list(inputs), rows, 0
        self._shapes: list[tuple[int, ...]] = []
        self._prepare(loop.wrt.get(k.is_train))

    def _prepare(self, wrt: tuple[int, ...] | None) -> None:
        first = list(self.inputs)
        for i in self.loop.data:
            # No step, no part: a shape is all that is needed.
            first[i] = (
                self.loop.part(i, first[i], 0)
                if self.rows
                else self.k.xp.zeros(first[i].shape[1:] or (1,), first[i].dtype)
            )
        self._keep = wrt is not None
        self.steps, self._buffers = self.loop.steps(self.k, first, self.rows, wrt)

    def forward(
        self, more: Callable[[Sequence[Any]], bool], again: Sequence[Any] | None = None
    ) -> tuple[list[Any], list[Any]]:
        """Take steps while ``more(inputs)``; returns what was collected, only rows that were filled, and carried.

        `again` are the random keys of a run that is repeated.
        """
        loop, steps = self.loop, self.steps
        now, collected = list(self.inputs), []
        t = 0
        while t < self.rows and more(now):
            for i in loop.data:
                now[i] = loop.part(i, self.inputs[i], t)
            heads = steps.forward(t, list(now), self._buffers.places(t, self._keep), again or None)
            collected.append(heads[: loop.n_out])
            self._shapes = [tuple(y.shape) for y in collected[-1]]
            for head, i in loop.pairs:
                now[i] = heads[head]
            t += 1
        self.n = t
        outs = self._buffers.outs
        if steps.specs is None:
            outs = [self._stacked(j, [row[j] for row in collected]) for j in range(loop.n_out)] if collected else []
        return [y[:t] for y in outs], [now[i] for i in loop.carried]

    def _stacked(self, j: int, rows: list[Any]) -> Any:
        shapes = {tuple(y.shape) for y in rows}
        if len(shapes) > 1:
            raise error(
                ValueError,
                f"{self.loop.label}: output {j} must have one shape in all steps to be collected, "
                f"got {', '.join(map(str, sorted(shapes)))}",
            )
        return self.k.xp.stack(rows)

    def backward(self, dys: Sequence[Any], wanted: Sequence[int]) -> dict[int, Any]:
        """Gradients of the inputs `wanted` (of the sub-graph), without those that are zero.

        `dys` are arrays: for what was collected, then for what was carried; rows that no step filled do not count.
        """
        loop, k, n_out = self.loop, self.k, self.loop.n_out
        dys = [g._data for g in dys]
        # Gradients reach the steps before through what is carried.
        wrt = (
            tuple(i for i in sorted({*wanted, *loop.carried}) if self.inputs[i].dtype.kind not in "iub")
            if wanted
            else ()
        )
        if not self.steps.covers(wrt):
            keys = self.steps.keys
            self._prepare(loop.learn(k.is_train, wrt))
            left = iter(range(self.n))
            self.forward(lambda _: next(left, None) is not None, keys)
        at = {i: j for j, i in enumerate(wrt)}
        carried = list(dys[n_out:])
        found: dict[int, Any] = {}
        add, xp = k.xp.add, k.xp
        for t in reversed(range(self.n)):
            now = [loop.row(j, g, t, shape) for j, (g, shape) in enumerate(zip(dys, self._shapes))]
            grads = self.steps.backward(t, [*now, *carried], wrt)
            carried = [grads[at[i]] if i in at else None for i in loop.carried]
            for i in wanted:
                g = grads[at[i]] if i in at else None
                if g is None or i in loop.carried:
                    continue
                if i in loop.data:
                    if i not in found:
                        found[i] = xp.zeros(self.inputs[i].shape, self.inputs[i].dtype)
                    k.device.copy(g, _row(found[i], t, g.shape) if found[i].ndim > 1 else found[i][t : t + 1])
                elif i not in found:
                    found[i] = g.copy()
                else:
                    found[i] = add(found[i], g, out=found[i]) if hasattr(add, "nin") else add(found[i], g)
        if self.n:
            found.update({i: g for i, g in self.steps.finish().items() if i in wanted})
        # The steps use their arrays again, and a state that passes through untouched has the head's gradient: copies go
        # out.
        found.update({i: g.copy() for i, g in zip(loop.carried, carried) if g is not None and i in wanted})
        return found
