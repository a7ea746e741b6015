"""Row-sparse values that a store holds: moved in place, as reference bodies move others, and seen by nobody else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore.kvstore.values import add, held
from mxcore.stypes import HeldRows
from mxcore.testing.ways import reference_bodies

OPTIMIZERS = [
    lambda: mx.optimizer.SGD(learning_rate=0.5, wd=0.1),
    lambda: mx.optimizer.SGD(learning_rate=0.5, momentum=0.9, wd=0.1, clip_gradient=1.5),
    lambda: mx.optimizer.SGD(learning_rate=0.5, momentum=0.9, lazy_update=False),
    lambda: mx.optimizer.Adam(learning_rate=0.5, wd=0.1),
    lambda: mx.optimizer.Adam(learning_rate=0.5, lazy_update=False),
    lambda: mx.optimizer.Ftrl(),
    lambda: mx.optimizer.AdaGrad(),
    lambda: mx.optimizer.NAG(momentum=0.9),
]


def rows(numbers, data, shape, ctx=None):
    return mx.nd.sparse.row_sparse_array((np.asarray(data, "f"), numbers), shape=shape, ctx=ctx)


def picked(rng, shape, n, ctx=None, scale=3):
    numbers = np.sort(rng.choice(shape[0], n, replace=False))
    return rows(numbers, rng.standard_normal((n, *shape[1:])) * scale, shape, ctx)


@pytest.mark.parametrize("width", [(), (3,), (2, 5)], ids=str)
@pytest.mark.parametrize("number", range(len(OPTIMIZERS)))
def test_a_held_value_moves_as_a_plain_one(number, width):
    """In the store, beside reference bodies on a row-sparse array that nobody holds."""
    rng, shape = np.random.default_rng(number), (40, *width)
    start = mx.nd.array(rng.standard_normal(shape))
    kv = mx.kv.create("local")
    kv.init("w", start.tostype("row_sparse"))
    assert isinstance(kv._stored["w"]._data, HeldRows)
    kv.set_optimizer(OPTIMIZERS[number]())
    plain, update = start.tostype("row_sparse"), mx.optimizer.get_updater(OPTIMIZERS[number]())
    out = mx.nd.empty(shape)
    for n in (7, 0, 40, 1):
        grad = picked(rng, shape, n)
        kv.push("w", grad)
        kv.pull("w", out=out)
        with reference_bodies():
            update("w", grad, plain)
        np.testing.assert_allclose(out.asnumpy(), plain.asnumpy(), rtol=1e-5, atol=1e-5)


def test_updates_in_place_leave_what_others_have():
    """Whatever an updater keeps of a stored array, or a user of what was pulled, later updates do not change."""
    shape, kept = (6, 2), []
    kv = mx.kv.create("local")
    kv.init("w", mx.nd.ones(shape).tostype("row_sparse"))
    sgd = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=1, momentum=0.5))

    def update(key, pushed, stored):
        sgd(key, pushed, stored)
        other = mx.nd.sparse.zeros("row_sparse", shape)
        stored.copyto(other)
        taken = mx.nd.sparse.zeros("row_sparse", shape)
        taken[:] = stored
        kept.append(
            [other, taken, stored.data, stored.copy(), stored.tostype("row_sparse"), mx.nd.identity(stored)]
            + [stored.as_in_context(mx.cpu(1)), stored.tostype("default"), stored * 1, stored.retain(mx.nd.arange(6))]
        )

    kv.set_updater(update)
    pulled = [mx.nd.sparse.zeros("row_sparse", shape) for _ in range(2)]
    for step in range(3):
        kv.push("w", rows(range(6), np.ones(shape), shape))
        assert isinstance(sgd.states["w"]._data, HeldRows)  # of the stored array, the updater has taken the memory
        seen = [a.asnumpy().copy() for a in kept[-1]]
        if not step:
            kv.pull("w", out=pulled[0], ignore_sparse=False)
            kv.row_sparse_pull("w", out=pulled[1], row_ids=mx.nd.arange(6))
            first = seen, [p.asnumpy() for p in pulled], sgd.states["w"].data, sgd.states["w"].asnumpy()
    assert all((s == 0).all() for s in first[0]) and all((p == 0).all() for p in first[1])
    assert all((a.asnumpy() == 0).all() for a in kept[0]) and all((p.asnumpy() == 0).all() for p in pulled)
    assert (first[2].asnumpy() == first[3]).all()


def test_a_push_may_be_the_value_of_another_store():
    one, two = mx.kv.create("local"), mx.kv.create("local")
    w = mx.nd.ones((3, 2)).tostype("row_sparse")
    one.init("w", w)
    two.init("w", w)
    for kv in (one, two):
        kv.set_optimizer(mx.optimizer.SGD(learning_rate=1))
    one.push("w", rows([1], np.ones((1, 2)), (3, 2)))
    out = mx.nd.empty((3, 2))
    two.pull("w", out=out)
    assert (w.asnumpy() == 1).all() and (out.asnumpy() == 1).all()


def test_states_of_held_values_go_to_a_file_and_back(tmp_path):
    shape, file = (5, 2), str(tmp_path / "states")
    rng = np.random.default_rng(0)
    grads = [picked(rng, shape, 3) for _ in range(4)]

    def store():
        kv = mx.kv.create("local")
        kv.init("w", mx.nd.ones(shape).tostype("row_sparse"))
        kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.9))
        return kv

    a, b = store(), store()
    for grad in grads[:2]:
        a.push("w", grad)
    a.save_optimizer_states(file)
    b._replace([("w", a._stored["w"])])
    b.load_optimizer_states(file)
    outs = []
    for kv in (a, b):
        for grad in grads[2:]:
            kv.push("w", grad)
        outs.append(mx.nd.empty(shape))
        kv.pull("w", out=outs[-1])
    np.testing.assert_array_equal(outs[0].asnumpy(), outs[1].asnumpy())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sets(st.integers(0, 30)), min_size=2, max_size=4), st.sampled_from([(), (1,), (3,)]))
def test_sums_of_rows_are_those_of_dense_arrays(numbers, width):
    shape = (31, *width)
    rng = np.random.default_rng(len(numbers))
    arrays = [
        rows(sorted(some), rng.integers(-9, 9, (len(some), *width)), shape, mx.cpu(i)) for i, some in enumerate(numbers)
    ]
    for kernels in (True, False):
        dtype = "float32" if kernels else "float16"  # which no kernel takes
        total = add([a.astype(dtype) for a in arrays], mx.cpu(0))
        assert total.stype == "row_sparse" and total.indices.asnumpy().tolist() == sorted(set().union(*numbers))
        np.testing.assert_array_equal(total.asnumpy(), sum(a.asnumpy() for a in arrays))


@pytest.mark.parametrize("n", [20_000])
def test_many_rows(n):
    """So many that threads share them."""
    shape, rng = (n * 3, 16), np.random.default_rng(0)
    start = rng.standard_normal(shape).astype("f")
    kv = mx.kv.create("local")
    kv.init("w", mx.nd.array(start).tostype("row_sparse"))
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    grads = [picked(rng, shape, n, mx.cpu(i)) for i in range(2)]
    kv.push("w", grads)
    asked = np.sort(rng.choice(shape[0], n, replace=False))
    out = mx.nd.sparse.zeros("row_sparse", shape)
    kv.row_sparse_pull("w", out=out, row_ids=mx.nd.array(asked, dtype="int64"))
    expected = start - np.float32(0.5) * (grads[0].asnumpy() + grads[1].asnumpy())
    np.testing.assert_array_equal(out.indices.asnumpy(), asked)
    np.testing.assert_allclose(out.data.asnumpy(), expected[asked], rtol=1e-5, atol=1e-5)


def test_what_a_store_holds_is_a_copy():
    w = mx.nd.ones((3, 2)).tostype("row_sparse")
    kept = held(w, mx.cpu(0))
    kept._data.memory[:] = 7
    assert (w.asnumpy() == 1).all() and (kept.asnumpy() == 7).all()
    kept[:] = 3  # as of any other
    assert (
        (w.asnumpy() == 1).all()
        and (kept.asnumpy() == 3).all()
        and kept.dtype == np.float32
        and kept.indices.asnumpy().tolist() == [0, 1, 2]
    )


@pytest.mark.parametrize("numbers", [[0, 9], [-1, 1], [2, 1], [1, 1]])
def test_rows_that_are_none_do_not_reach_memory(numbers):
    from mxcore_cpu.kernels import rows as kernels

    grad = kernels.RowSparse((3, 2), np.array(numbers), np.ones((2, 2)))
    weight = np.zeros((3, 2))
    with pytest.raises(IndexError, match=r"rise and lie in \[0, 3\)"):
        kernels.move("sgd_update", grad, [weight], [0.5, 0.0, 1.0, -1.0])
    assert not weight.any()
