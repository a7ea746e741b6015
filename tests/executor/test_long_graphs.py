"""Long, wide and deep graphs: work grows with their size, not with its square, and no limit of recursion shows."""

import sys

import numpy as np
import pytest

import mxcore as mx
from mxcore.executor.memory import Interval, layout
from mxcore.executor.passes import fuse, pointwise


def calls(work):
    """How many functions are called, Python's and C's: what time is spent on, without a clock."""
    count = 0

    def count_calls(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count_calls)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def linear(work, n):
    """Four times as much takes about four times as many calls; a square would take sixteen times."""
    work(n)  # what is done once only, as compiling chains
    work(4 * n)
    assert calls(lambda: work(4 * n)) < 6.5 * calls(lambda: work(n))


def train(y, shapes, **options):
    exe = y.simple_bind(mx.cpu(), **shapes, **options)
    exe.forward(is_train=True)
    exe.backward([mx.nd.ones(o.shape) for o in exe.outputs])
    return exe


def chain(n, shape=(2, 3), step=lambda y: mx.sym.softmax(y)):
    y = mx.sym.Variable("x")
    for _ in range(n):
        y = step(y)
    return train(y, {"x": shape})


def test_a_chain_that_does_not_fuse():
    linear(chain, 300)


def test_a_chain_that_fuses():
    linear(lambda n: chain(n, (32, 64), lambda y: y * 1.5), 320)


def test_a_long_chain_that_fuses_is_right_and_in_pieces():
    exe = chain(2400, (32, 64), lambda y: y * 1.0001)
    assert np.allclose(exe.grad_arrays[0].asnumpy(), 1.0001**2400, rtol=1e-3)
    _, instance = exe._instance(True, True)
    sizes = [len(step.op.fused.steps) for step in instance.program.steps if hasattr(step.op, "fused")]
    assert len(sizes) >= 37 and max(sizes) <= 64


def test_arguments_and_gradients_that_are_parts_of_one_array():
    def work(n):
        names = [f"v{i}" for i in range(n)]
        xs, dxs = mx.nd.arange(n), mx.nd.zeros(n)
        net = mx.sym.Group([mx.sym.Variable(v) * 2 for v in names])
        e = net.bind(
            mx.cpu(), {v: xs[i : i + 1] for i, v in enumerate(names)}, {v: dxs[i : i + 1] for i, v in enumerate(names)}
        )
        assert not e._overlapping_grads
        e.forward(is_train=True)
        e.backward([xs[i : i + 1] for i in range(n)])
        assert np.array_equal(dxs.asnumpy(), 2 * np.arange(n))
        e.reshape(**dict.fromkeys(names, (1,)))

    linear(work, 100)


def test_arguments_heads_and_readers():
    def arguments(n):
        names = [f"v{i}" for i in range(n)]
        train(mx.sym.add_n(*map(mx.sym.Variable, names)), dict.fromkeys(names, (2,)))

    def one_often(n):
        x = mx.sym.Variable("x")
        train(mx.sym.Group([mx.sym.softmax(x) * i for i in range(n)]), {"x": (2, 3)})

    def joined(n):
        x = mx.sym.Variable("x")
        train(mx.sym.concat(*[x] * n, dim=0), {"x": (2, 3)})
        train(mx.sym.split(x, num_outputs=n, axis=0), {"x": (n, 3)})

    for work in (arguments, one_often, joined):
        linear(work, 100)


@pytest.mark.parametrize("shape", [(2, 3), (32, 64)])
def test_a_sum_of_many_terms(shape):
    x = mx.sym.Variable("x")
    exe = train(mx.sym.add_n(*[x * i for i in range(1500)]), {"x": shape})
    assert (exe.grad_arrays[0].asnumpy() == 1500 * 1499 / 2).all()


def test_a_tape_and_its_release():
    def tape(n):
        x = mx.nd.ones((2,))
        x.attach_grad()
        with mx.autograd.record():
            y = x
            for _ in range(n):
                y = y + 1
        y.backward()
        assert x.grad.asnumpy().tolist() == [1, 1]

    linear(tape, 1000)
    x = mx.nd.ones((2,))
    x.attach_grad()
    with mx.autograd.record():
        y = x
        for _ in range(200_000):
            y = y + 1
    del y  # without recursion


def test_symbols_are_walked_without_recursion():
    y = mx.sym.Variable("x")
    for _ in range(5_000):
        y = mx.sym.softmax(y)
    again = mx.sym.load_json(y.tojson())
    assert len(again.get_internals().list_outputs()) == 5_001
    assert again.infer_shape(x=(2, 3))[1] == [(2, 3)]
    assert again.list_arguments() == ["x"]


def test_work_of_symbols_is_linear():
    def walk(n):
        y = mx.sym.Variable("x")
        for _ in range(n):
            y = mx.sym.softmax(y)
        y = mx.sym.load_json(y.tojson())
        y.infer_shape(x=(2, 3))
        y.get_internals().list_outputs()
        y.attr_dict()

    linear(walk, 500)


def test_sets_of_nodes_stay_small():
    x = mx.sym.Variable("x")
    nodes = []
    for _ in range(3 * fuse._WINDOW):
        x = x + 1
        nodes.append(x._heads[0][0])
    reach = fuse._Reach(nodes, lambda n: [e for e in n.inputs if e[0].op is not None])
    assert max(v.bit_length() for v in (*reach.above, *reach.below, *reach.own)) <= fuse._WINDOW
    at = fuse._WINDOW
    assert reach.join(id(nodes[at]), id(nodes[at + 1]))
    assert not reach.join(id(nodes[at - 1]), id(nodes[at]))  # over a cut
    assert not reach.join(id(nodes[at + 3]), id(nodes[at + 5]))  # around a third one
    assert reach.join(id(nodes[at + 1]), id(nodes[at + 2]))


def test_many_places_are_laid_out_in_order_of_time():
    n = 5000
    nested = [Interval(16, i, 2 * n - i) for i in range(n)]
    assert calls(lambda: layout(nested)) < 400 * n
    assert len({v.offset for v in nested}) == n
    rng = np.random.default_rng(0)
    some = [
        Interval(int(s), int(f), int(f + length))
        for s, f, length in zip(rng.integers(0, 300, n), rng.integers(0, 900, n), rng.integers(0, 60, n))
    ]
    total = layout(some)
    live = np.zeros((961, total // 16), bool)
    for v in some:
        place = np.s_[v.first : v.last + 1, v.offset // 16 : v.offset // 16 + -(-v.size // 16)]
        assert not live[place].any()
        live[place] = True
    assert total < 1.5 * 16 * live.sum(1).max()  # near what lives at once


def test_an_expression_that_is_nested_too_deep_is_refused():
    from mxcore.plugin import Expr

    assert Expr("x" + " + x" * 50).names == {"x"}
    for text in ("-" * 5000 + "x", "x" + " + x" * 100_000, "(" * 500 + "x" + ")" * 500):
        with pytest.raises(ValueError, match="nested"):
            Expr(text)
    assert pointwise._deep(Expr("x" + " + x" * 150).tree) and not pointwise._deep(Expr("x" + " + x" * 50).tree)
