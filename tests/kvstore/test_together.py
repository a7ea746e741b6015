"""Many keys at once: who is given them, and what is done one by one where devices do nothing together."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.kvstore import KVStore
from mxcore.kvstore.steps import Exchange
from mxcore.kvstore.together import add_each, move_each, take_each, write_each

CONTEXTS = [mx.cpu(0), mx.cpu(1)]


class Counting(KVStore):
    """A store that likes keys together where there are several contexts, and notes what it is given."""

    def __init__(self):
        super().__init__("counting")
        self.seen = []

    def batches(self, contexts):
        return len(contexts) > 1

    def _push(self, groups, priority):
        self.seen.append((priority, [*groups]))

    def _pull(self, groups, priority, ignore_sparse):
        for key, outs in groups.items():
            for out in outs:
                out[:] = key


class Alone(Counting):
    """One whose `pushpull` is its own."""

    def pushpull(self, key, value, out=None, priority=0):
        assert not isinstance(key, list)
        super().pushpull(key, value, out, priority)


def exchanged(store, contexts):
    values = [[mx.nd.ones(2, ctx=ctx) for ctx in contexts] for _ in range(4)]
    outs = [mx.nd.zeros(2) for _ in range(4)]
    exchange = Exchange(store, contexts)
    for key in (1, 2):
        exchange.pushpull(key, values[key], out=outs[key], priority=-key)
    exchange.end()
    exchange.end()  # nothing waits
    exchange.pushpull(3, values[3], priority=-3)
    exchange.end()
    assert [a.asnumpy()[0] for a in (outs[1], outs[2], values[3][0])] == [1, 2, 3]
    return store.seen


def test_keys_wait_for_each_other_where_a_store_likes_it():
    assert exchanged(Counting(), CONTEXTS) == [(-1, [1, 2]), (-3, [3])]
    one_by_one = [(-1, [1]), (-2, [2]), (-3, [3])]
    assert exchanged(Counting(), CONTEXTS[:1]) == one_by_one
    assert exchanged(Alone(), CONTEXTS) == one_by_one


def test_who_has_a_pushpull_of_its_own_is_called_as_ever():
    class Foreign:
        seen = []

        def pushpull(self, key, value, priority=0):
            self.seen.append((key, len(value), priority))

    exchange = Exchange(Foreign(), CONTEXTS)
    for key in range(2):
        exchange.pushpull(key, [1, 2], priority=-key)
    exchange.end()
    assert Foreign.seen == [(0, 2, 0), (1, 2, -1)]


@pytest.mark.parametrize("kind", ["local", "device"])
def test_stores_of_the_cpu_get_one_key_at_a_time(kind):
    assert not mx.kv.create(kind).batches(CONTEXTS)


def test_what_devices_do_not_together_is_done_one_by_one():
    parts = [[mx.nd.full((n,), i + 1, ctx=ctx) for i, ctx in enumerate(CONTEXTS)] for n in (1, 3)]
    rows = mx.nd.sparse.row_sparse_array((np.ones((1, 2), "float32"), [1]), shape=(3, 2))
    totals = add_each([*parts, [rows, rows], parts[1][1:]], [CONTEXTS[1]] * 4)
    assert [t.stype for t in totals] == ["default", "default", "row_sparse", "default"]
    assert totals[3] is parts[1][1] and all(t.context == CONTEXTS[1] for t in totals)
    assert [t.asnumpy().sum() for t in totals] == [3, 9, 4, 6]
    outs = [mx.nd.zeros((1,)), mx.nd.zeros((3,), dtype="float16"), mx.nd.zeros((3, 2)).tostype("row_sparse")]
    write_each([*zip(totals, outs)])
    assert [o.asnumpy().sum() for o in outs] == [3, 9, 4]


@pytest.mark.parametrize("rule", ["sgd", "adam", "lamb"])
def test_updates_of_several_contexts_are_those_of_one_by_one(rule):
    found = []
    for together in (True, False):
        update = mx.optimizer.get_updater(mx.optimizer.create(rule))
        weights = [mx.nd.ones((3,), ctx=CONTEXTS[i % 2]) for i in range(6)]
        moves = [(i, w * (i + 1), w) for i, w in enumerate(weights)]
        if together:
            move_each(update, moves)
        else:
            for move in moves:
                update(*move)
        found.append([w.asnumpy() for w in weights])
    np.testing.assert_array_equal(*found)


def test_values_go_to_where_their_sums_are():
    stored = {"a": mx.nd.ones(2), "b": mx.nd.ones(2)}
    sums = [mx.nd.full(2, 3, ctx=CONTEXTS[1]) for _ in range(2)]
    take_each(stored, mx.optimizer.get_updater(mx.optimizer.create("test")), [("a", sums[:1]), ("b", [])], sums)
    assert [v.context for v in stored.values()] == [CONTEXTS[1]] * 2
    assert [v.asnumpy().tolist() for v in stored.values()] == [[4, 4]] * 2
