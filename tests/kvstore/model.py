"""What stores do, as a model in plain NumPy, and sequences of operations that a store and the model both go through.

Numbers are such that sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

import mxcore as mx
from tests.kvstore_dist.jobs import all_well, together

from .kinds import DIST, JOBS, KEEPING, LOCAL, opened

RATE, MOMENTUM, THRESHOLD = 0.5, 0.5, 1.0

#: Types of compression -> what users ask for, and what it does to an array and the error left over.
COMPRESSION: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "2bit": ({"type": "2bit", "threshold": THRESHOLD}, lambda a: np.sign(a) * THRESHOLD * (abs(a) >= THRESHOLD)),
    "fp16": ({"type": "fp16"}, lambda a: a.astype("f2").astype("f")),
    "bfloat16": ({"type": "bfloat16"}, lambda a: a.astype(ml_dtypes.bfloat16).astype("f")),
}


class Grad(NamedTuple):
    """An array that is pushed: its numbers, and the rows that it has if it is a row-sparse one."""

    numbers: Any
    rows: frozenset[int] | None = None

    def array(self, ctx: Any) -> Any:
        if self.rows is None:
            return mx.nd.array(self.numbers, ctx=ctx)
        rows = sorted(self.rows)
        return mx.nd.sparse.row_sparse_array((self.numbers[rows], rows), shape=self.numbers.shape, ctx=ctx)

    def __add__(self, other: Any) -> Grad:
        rows = None if self.rows is None or other.rows is None else self.rows | other.rows
        return Grad(self.numbers + other.numbers, rows)


def total(grads: Sequence[Grad]) -> Grad:
    first, *rest = grads
    for grad in rest:
        first = first + grad
    return first


class Model:
    """Values by key, and what moves them.

    Parameters
    ----------
    values : dict of key to ndarray
    rule : {None, 'function', 'sgd', 'momentum'}
        None: what is pushed replaces.
    compression : str or None
    each : bool
        Devices are compressed one by one, not their sum.
    """

    def __init__(self, values: dict[Any, Any], rule: str | None, compression: str | None, each: bool) -> None:
        self.values, self.rule, self.compression, self.each = dict(values), rule, compression, each
        self.rate = RATE
        self.moments: dict[Any, Any] = {}
        self.residuals: dict[Any, Any] = {}

    def sent(self, rank: int, key: Any, grads: Sequence[Grad]) -> Grad:
        """What comes of a worker's arrays."""
        if self.compression is None:
            return total(grads)
        if not self.each:
            return self._compressed((rank, key), total(grads))
        return total([self._compressed((rank, key, i), grad) for i, grad in enumerate(grads)])

    def _compressed(self, slot: Any, grad: Grad) -> Grad:
        assert self.compression is not None
        _, small = COMPRESSION[self.compression]
        numbers = grad.numbers + self.residuals.get(slot, 0)
        found = small(numbers)
        if self.compression == "2bit":
            self.residuals[slot] = numbers - found
        return Grad(found)

    def push(self, key: Any, grad: Grad) -> None:
        value = self.values[key].copy()
        rows = slice(None) if grad.rows is None else sorted(grad.rows)
        if self.rule is None:
            value = grad.numbers.copy()
        elif self.rule == "function":
            value += 2 * grad.numbers
        elif self.rule == "sgd":
            value[rows] -= np.float32(self.rate) * grad.numbers[rows]
        else:
            m = self.moments.setdefault(key, np.zeros_like(value))
            m[rows] = np.float32(MOMENTUM) * m[rows] - np.float32(self.rate) * grad.numbers[rows]
            value[rows] += m[rows]
        self.values[key] = value


def updater(rule: str | None) -> Any:
    """What a store needs for a rule: an optimizer, a function, or nothing."""
    if rule == "function":
        return _twice
    momentum = {"sgd": 0.0, "momentum": MOMENTUM}
    return None if rule is None else mx.optimizer.SGD(learning_rate=RATE, momentum=momentum[rule])


def _twice(key: Any, pushed: Any, stored: Any) -> None:
    stored += 2 * pushed


class Step(NamedTuple):
    """An operation, which all workers do."""

    what: str
    keys: list[Any]
    priority: int
    number: int


class Case(NamedTuple):
    """A store with its values, and what is done with it."""

    kind: str
    workers: int
    servers: int
    transport: str
    contexts: int
    shapes: dict[Any, Any]
    stypes: dict[Any, str]
    rule: str | None
    compression: str | None
    steps: list[Step]

    @property
    def keeping(self) -> bool:
        return self.kind in KEEPING

    def turns(self, step: Step) -> list[list[int]]:
        """Who does a step together, one group after the other."""
        every = list(range(self.workers))
        if self.kind != "dist_async" or step.what in ("barrier", "rate"):
            return [every]
        return [[0]] if step.what == "restore" else [[r] for r in every]

    def first(self, rank: int, key: Any) -> Any:
        """The value that a worker gives a key at first; that of the first worker counts."""
        return self._numbers(4711, rank, key)

    def grads(self, rank: int, step: Step, at: int) -> list[Grad]:
        """What a worker's contexts push for the key at a place of a step."""
        key = step.keys[at]
        rng = np.random.default_rng([step.number, at])
        sparse = self.compression is None and (self.stypes[key] == "row_sparse" or rng.random() < 0.3)
        found = []
        for i in range(self.contexts):
            numbers = self._numbers(step.number, rank, key, at, i)
            if sparse:
                rng = np.random.default_rng([step.number, rank, at, i])
                rows = frozenset(np.flatnonzero(rng.random(len(numbers)) < 0.5).tolist())
                numbers[[r for r in range(len(numbers)) if r not in rows]] = 0
                found.append(Grad(numbers, rows))
            else:
                found.append(Grad(numbers))
        return found

    def asked(self, rank: int, step: Step, key: Any) -> list[Any]:
        """Numbers of rows that a worker's contexts pull."""
        rng = np.random.default_rng([step.number, rank])
        return [rng.integers(0, self.shapes[key][0], rng.integers(0, 5)) for _ in range(self.contexts)]

    def _numbers(self, *seed: Any) -> Any:
        rng = np.random.default_rng([n if isinstance(n, int) else sum(map(ord, n)) for n in seed])
        quarters = rng.integers(-9, 10, self.shapes[seed[2]]).astype("f") / 4
        if self.compression in ("fp16", "bfloat16") and self.keeping:  # numbers that do not fit
            quarters += rng.integers(0, 2, quarters.shape).astype("f") / 4096
        return quarters


@st.composite
def cases(draw: Any, kind: str) -> Case:
    """Cases of a type of store."""
    keeping = kind in KEEPING
    workers = draw(st.integers(1 if keeping else 2, 3)) if kind in JOBS else 1
    compression = draw(st.sampled_from([None, None, *COMPRESSION]))
    names = draw(st.sampled_from([[0, 1, 2, 3], ["a", "b", "c", "d"]]))
    shapes = draw(st.lists(st.sampled_from([(1,), (5,), (4, 3), (6, 2, 2), (9, 5)]), min_size=1, max_size=4))
    keys = names[: len(shapes)]
    may = ["default"] if compression or not keeping else ["default", "row_sparse"]
    stypes = {k: draw(st.sampled_from(may)) for k in keys}
    rules: list[Any] = ["sgd", "momentum", "momentum"]
    if "async" not in kind or kind not in DIST:
        rules.append(None)
    if kind not in JOBS:
        rules.append("function")
    rule = draw(st.sampled_from(rules)) if keeping else None
    if compression in ("fp16", "bfloat16") and rule == "momentum":
        rule = "sgd"  # whose steps are exact with so long numbers
    verbs = ["pushpull", "barrier"]
    if keeping:
        verbs += ["push", "push", "pull", "twice"]
        if "row_sparse" in stypes.values():
            verbs.append("rows")
        if rule in ("sgd", "momentum"):
            verbs += ["rate", "restore"]
    steps = []
    for number in range(draw(st.integers(0, 10))):
        what = draw(st.sampled_from(verbs))
        some = [k for k in keys if stypes[k] == "row_sparse"] if what == "rows" else keys
        which = draw(st.lists(st.sampled_from(some), min_size=1, max_size=4, unique=True))
        steps.append(Step(what, which * 2 if what == "twice" else which, draw(st.integers(-3, 3)), number))
    servers = draw(st.integers(1, 3)) if kind in DIST else 1
    transport = draw(st.sampled_from(["auto", "tcp"])) if kind in JOBS else "auto"
    contexts = draw(st.integers(1, 3))
    return Case(kind, workers, servers, transport, contexts, dict(zip(keys, shapes)), stypes, rule, compression, steps)


class Player:
    """A worker that does what a case says."""

    def __init__(self, case: Case, store: Any, file: str) -> None:
        self.case, self.store, self.file = case, store, file
        self.contexts = [mx.cpu(i) for i in range(case.contexts)]
        #: Of each step the arrays that were filled; they are read at the end only.
        self.seen: list[list[Any]] = []

    def begin(self) -> None:
        case, store = self.case, self.store
        if case.compression is not None:
            store.set_gradient_compression(COMPRESSION[case.compression][0])
        for i, (key, stype) in enumerate(case.stypes.items()):
            value = mx.nd.array(case.first(store.rank, key)).tostype(stype)
            if stype == "default" and (i % 2 or not case.keeping):
                outs = self._empty(key)
                store.broadcast(key, value, out=outs)
                self.seen.append(outs)
            else:
                store.init(key, value)
        move = updater(case.rule)
        if case.rule == "function":
            store.set_updater(move)
        elif move is not None:
            store.set_optimizer(move)

    def _empty(self, key: Any) -> list[Any]:
        return [mx.nd.full(self.case.shapes[key], np.nan, ctx=c) for c in self.contexts]

    def do(self, step: Step) -> None:
        store, rank, priority = self.store, self.store.rank, step.priority
        one = len(step.keys) == 1 and step.number % 2

        def given(values: list[Any]) -> Any:
            return values[0] if one else values

        keys = given(step.keys)
        if step.what == "restore":  # to what was before a push
            store.barrier()
            if not rank:
                store.save_optimizer_states(self.file)
            store.barrier()
            if rank in self.case.turns(step)[0]:
                self.do(step._replace(what="push"))
            store.barrier()
            store.load_optimizer_states(self.file)
            store.barrier()
        elif step.what in ("push", "pushpull", "twice"):
            grads = [self.case.grads(rank, step, at) for at in range(len(step.keys))]
            values = [[g.array(c) for g, c in zip(some, self.contexts)] for some in grads]
            if step.what == "pushpull":
                outs = [self._empty(k) for k in step.keys]
                store.pushpull(keys, given(values), out=given(outs), priority=priority)
                self.seen.append(sum(outs, []))
            else:
                store.push(keys, given(values), priority=priority)
            for value in sum(values, []):
                value *= 0  # nobody sees it
        elif step.what == "pull":
            outs = [self._empty(k) for k in step.keys]
            store.pull(keys, out=given(outs), priority=priority)
            self.seen.append(sum(outs, []))
        elif step.what == "rows":
            for key in step.keys:
                outs = [mx.nd.sparse.zeros("row_sparse", self.case.shapes[key], ctx=c) for c in self.contexts]
                rows = [mx.nd.array(r, dtype="int64") for r in self.case.asked(rank, step, key)]
                store.row_sparse_pull(key, out=outs, row_ids=rows, priority=priority)
                self.seen.append(outs)
        elif step.what == "barrier":
            store.barrier()
        elif step.what == "rate":
            store.set_learning_rate(RATE / 2 ** (step.number % 3))


#: What all workers do together.
COLLECTIVE = ("barrier", "rate", "restore")


def play(case: Case, file: str) -> list[list[Any]]:
    """Let stores do it; for each worker what it saw. Asynchronous workers do one thing after the other."""
    with opened(case.kind, case.workers, case.servers, case.transport) as stores:
        players = [Player(case, store, file) for store in stores]
        whole = together if case.kind in JOBS else lambda some, run: [run(one) for one in some]
        all_well(whole(players, Player.begin))
        if case.kind == "dist_async":
            for array in (a for player in players for arrays in player.seen for a in arrays):
                array.wait_to_read()  # before others push
            for step in case.steps:
                if step.what in COLLECTIVE:
                    all_well(together(players, lambda p, step=step: p.do(step)))
                    continue
                for player in players:
                    player.do(step)
                    for key, shape in case.shapes.items():
                        out = mx.nd.empty(shape)
                        player.store.pull(key, out=out)
                        out.wait_to_read()
        else:
            all_well(whole(players, lambda p: [p.do(step) for step in case.steps]))
        return [[[a.asnumpy() for a in arrays] for arrays in player.seen] for player in players]


def expect(case: Case) -> list[list[Any]]:
    """What the model says that each worker sees."""
    every = range(case.workers)
    values = {k: case.first(0, k) for k in case.shapes}
    model = Model(values, case.rule, case.compression, each=case.kind in LOCAL)
    seen: list[list[Any]] = [[] for _ in every]
    for i, (key, stype) in enumerate(case.stypes.items()):
        if stype == "default" and (i % 2 or not case.keeping):
            for rank in every:
                seen[rank].append([values[key]] * case.contexts)
    for step in case.steps:
        for ranks in case.turns(step):
            if step.what in ("push", "pushpull", "twice", "restore"):
                moments = {k: m.copy() for k, m in model.moments.items()}
                for key in dict.fromkeys(step.keys):
                    places = [at for at, k in enumerate(step.keys) if k == key]
                    sent = [model.sent(r, key, sum((case.grads(r, step, at) for at in places), [])) for r in ranks]
                    model.push(key, total(sent))
                if step.what == "restore":
                    model.moments = moments
            for rank in ranks:
                if step.what in ("pull", "pushpull"):
                    seen[rank].append([model.values[k] for k in step.keys for _ in range(case.contexts)])
                elif step.what == "rows":
                    for key in step.keys:
                        rows = case.asked(rank, step, key)
                        seen[rank].append([_only(model.values[key], r) for r in rows])
        if step.what == "rate":
            model.rate = RATE / 2 ** (step.number % 3)
    return seen


def _only(value: Any, rows: Any) -> Any:
    found = np.zeros_like(value)
    found[rows] = value[rows]
    return found


def check(case: Case, file: str) -> None:
    """Compare what stores and model say."""
    for rank, (got, want) in enumerate(zip(play(case, file), expect(case), strict=True)):
        assert len(got) == len(want)
        for i, (some, others) in enumerate(zip(got, want)):
            for a, b in zip(some, others, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=f"rank {rank}, sight {i}")
