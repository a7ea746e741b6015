"""What a hybridised block or the tape hands out belongs to the taker: nothing writes to it again.

Every way is compared with plain eager execution, under reuse, nesting and threads.
"""

import itertools
import threading

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, gluon, nd
from mxcore.gluon import nn


def dense(hybrid, units=3, inputs=4):
    net = nn.HybridSequential()
    net.add(nn.Dense(units, activation="tanh", in_units=inputs), nn.Dense(1, in_units=units))
    net.initialize(mx.init.Constant(0.25))
    net.hybridize(hybrid)
    return net


def leaf(*shape, seed=0):
    x = nd.array(np.random.RandomState(seed).uniform(-1, 1, shape))
    x.attach_grad()
    return x


def gradient(net, x, scale=1.0):
    with autograd.record():
        y = (net(x) * scale).sum()
    return autograd.grad(y, x)[0]


@pytest.mark.parametrize("rows", [2, 9000])  # small gradients are copied where they are written, large ones handed over
def test_a_later_backward_leaves_earlier_gradients_alone(rows):
    net, x, z = dense(True), leaf(rows, 4), leaf(rows, 4, seed=1)
    a = gradient(net, x)
    kept = a.asnumpy()
    b = gradient(net, z, 3.0)
    np.testing.assert_array_equal(a.asnumpy(), kept)
    np.testing.assert_allclose(b.asnumpy(), gradient(dense(False), z, 3.0).asnumpy(), rtol=1e-5)
    weight = net[0].weight
    with autograd.record():
        y = net(x).sum()
    y.backward()
    first, seen = weight.grad(), weight.grad().asnumpy()
    held = first.copy()
    view = first[0:1]
    with autograd.record():
        y = (net(x) * 2).sum()
    y.backward()
    np.testing.assert_array_equal(held.asnumpy(), seen)
    # The variable's own array sees the next backward, so do views of it.
    np.testing.assert_allclose(first.asnumpy(), 2 * seen, rtol=1e-5)
    np.testing.assert_array_equal(view.asnumpy(), first.asnumpy()[0:1])


@pytest.mark.parametrize("rows", [2, 9000])
def test_writing_to_a_gradient_leaves_the_next_one_alone(rows):
    net, x = dense(True), leaf(rows, 4)
    wanted = gradient(dense(False), x).asnumpy()
    for _ in range(3):
        g = gradient(net, x)
        np.testing.assert_allclose(g.asnumpy(), wanted, rtol=1e-5)
        g[:] = 100


class Nested(autograd.Function):
    """The identity, whose backward runs (and differentiates) a block on something else before it answers."""

    def __init__(self, net, other):
        super().__init__()
        self.net, self.other = net, other

    def forward(self, x):
        return x * 1

    def backward(self, dy):
        with autograd.record():
            y = (self.net(self.other) * 100).sum()
        y.backward()
        return dy


@pytest.mark.parametrize("rows", [2, 9000])
@pytest.mark.parametrize("way", ["backward", "grad"])
def test_a_function_whose_backward_runs_the_same_block(rows, way):
    found = []
    for hybrid in (False, True):
        net, x, other = dense(hybrid), leaf(rows, 4), leaf(rows, 4, seed=1)
        with autograd.record():
            h = Nested(net, other)(x)  # reached after the block's own gradients have been handed out
            y = net(h).sum()
            y = y + (Nested(net, other)(x) * 2).sum()
        if way == "grad":
            found.append([g.asnumpy() for g in autograd.grad(y, [x, h, net[0].weight.data()])])
        else:
            y.backward()
            found.append([x.grad.asnumpy(), other.grad.asnumpy()])
    assert all(abs(a).sum() > 0 for a in found[0])
    for a, b in zip(*found):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-6)


def by_grad(net, x, scale):
    return gradient(net, x, scale)


def by_backward(net, x, scale):
    with autograd.record():
        y = (net(x) * scale).sum()
    y.backward()
    return x.grad


def test_memory_that_another_thread_takes_first():
    class Taken(list):
        """What was there when one looked, and is gone."""

        def __len__(self):
            return 1

    net, x = dense(True), leaf(5, 4, seed=0)
    first = net(x).asnumpy()
    net._cached_op.op._last.idle = Taken()
    assert (net(x).asnumpy() == first).all()


@pytest.mark.parametrize("way", [by_grad, by_backward])
def test_threads_that_differentiate_one_block(way, in_threads):
    """Each thread gets, in its own arrays, what its own calls gave."""
    net, plain = dense(True), dense(False)
    for block in (net, plain):
        block.collect_params().setattr("grad_req", "null")
    wanted = {s: way(plain, leaf(5, 4, seed=s), s + 1).asnumpy() for s in range(4)}
    wrong = []

    def work(s):
        x = leaf(5, 4, seed=s)
        for _ in range(150):
            g = way(net, x, s + 1).asnumpy()
            if not np.allclose(g, wanted[s], rtol=1e-4):
                wrong.append((s, g))

    in_threads(work, [(s,) for s in range(4)])
    assert not wrong, wrong[0]


class Keeps(autograd.Function):
    """The identity; its backward gives away an array that it keeps."""

    def __init__(self, kept):
        super().__init__()
        self.kept = kept

    def forward(self, x):
        return x * 1

    def backward(self, dy):
        return self.kept


def results_of(case, x, z, head, kept):
    with autograd.record():
        y = {
            "sum of views": lambda: x.reshape((4, 2)) + z.reshape((4, 2)),
            "head gradient": lambda: x + 0 * z,
            "kept by a function": lambda: Keeps(kept)(x) + z,
        }[case]()
    heads = head.reshape(y.shape)
    found = autograd.grad(y, [x, z], heads)
    return found, heads


@pytest.mark.parametrize("case", ["sum of views", "head gradient", "kept by a function"])
def test_gradients_share_no_memory_with_anything(case):
    x, z, head, kept = leaf(2, 4), leaf(2, 4, seed=1), nd.ones((2, 4)) * 3, nd.ones((2, 4)) * 7
    found, heads = results_of(case, x, z, head, kept)
    everything = [*found, x, z, head, heads, kept]
    values = [a.asnumpy() for a in everything]
    for i in range(len(found)):
        found[i][:] = -1
        for j, a in enumerate(everything):
            np.testing.assert_array_equal(a.asnumpy(), -1 if j <= i else values[j])


@pytest.mark.parametrize("hybrid", [False, True])
def test_results_of_a_block_share_no_memory(hybrid):
    """One value handed out twice, an input handed through, and views of a value are arrays of their own."""

    class Ways(nn.HybridSequential):
        def hybrid_forward(self, F, x):
            y = x * 2
            return y, y, x, F.reshape(y, shape=(-1,)), F.identity(x), y.reshape((-1,))

    net = Ways()
    net.hybridize(hybrid)
    x = nd.ones((2, 3))
    for _ in range(2):
        found = net(x)
        values = [a.asnumpy() for a in found]
        if hybrid:
            for i, y in enumerate(found):
                y[:] = 9
                for later, value in zip(found[i + 1 :], values[i + 1 :]):
                    np.testing.assert_array_equal(later.asnumpy(), value)
            assert x.asnumpy().tolist() == np.ones((2, 3)).tolist()


def test_a_dynamic_block_hands_out_arrays_of_their_own():
    """Values whose shape is known only by running leave the program too."""

    class Masked(nn.HybridSequential):
        def hybrid_forward(self, F, x, m):
            y = F.contrib.boolean_mask(x, m)
            return y, y.reshape((-1,)), F.identity(y)

    net = Masked()
    net.hybridize()
    x, m = nd.ones((3, 2)), nd.array([1, 0, 1])
    x.attach_grad()
    with autograd.record():
        a, b, c = net(x, m)
        total = a.sum() + b.sum() + 2 * c.sum()
    a[:] = 5
    assert b.asnumpy().tolist() == [1] * 4 and c.asnumpy().tolist() == [[1, 1]] * 2
    b[:] = 6
    assert c.asnumpy().tolist() == [[1, 1]] * 2
    (g,) = autograd.grad(total, x, retain_graph=True)
    kept = g.asnumpy()
    g[:] = 50
    (again,) = autograd.grad(total, x)
    np.testing.assert_array_equal(again.asnumpy(), kept)


class Doubles(autograd.Function):
    """The identity, whose backward writes to the gradient that it gets."""

    def forward(self, x):
        return x * 1

    def backward(self, dy):
        dy *= 2
        return dy


@mx.operator.register("test_doubles")
class DoublesProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=True)

    def create_operator(self, ctx, shapes, dtypes):
        return DoublesOp()


class DoublesOp(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        out_grad[0][:] = out_grad[0] * 2
        self.assign(in_grad[0], req[0], out_grad[0])


@pytest.mark.parametrize(
    "f", [lambda x: Doubles()(x), lambda x: nd.Custom(x, op_type="test_doubles")], ids=["Function", "Custom"]
)
def test_user_code_may_write_to_the_gradients_that_it_gets(f):
    for _ in range(2):  # what is kept for the heads of later graphs stays as it is
        x, z = leaf(1), leaf(1, seed=1)
        with autograd.record():
            y = f(x) + z  # both get the gradient of the sum
        y.backward()
        assert x.grad.asnumpy().tolist() == [2] and z.grad.asnumpy().tolist() == [1]
    x, z, head = leaf(3), leaf(3, seed=1), nd.ones((3,))
    with autograd.record():
        y = f(x) + z
    y.backward(head)
    assert head.asnumpy().tolist() == [1] * 3 and z.grad.asnumpy().tolist() == [1] * 3


@pytest.mark.parametrize("hybrid", [False, True])
def test_custom_operators_of_graphs_may_write_to_their_gradients(hybrid):
    class Both(nn.HybridSequential):
        def hybrid_forward(self, F, x):
            return F.Custom(x, op_type="test_doubles") + x * 3

    net, x = Both(), leaf(3)
    net.hybridize(hybrid)
    for _ in range(2):
        assert gradient(net, x).asnumpy().tolist() == [5] * 3


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_gradients_of_loops_stay_as_they_are(steps):
    def run(x, s, scale):
        with autograd.record():
            outs, last = nd.contrib.foreach(lambda d, h: (h * d, h * 2), x, s) if steps else (None, s * 1)
            y = last * scale if outs is None else outs.sum() * scale + last.sum()
        return autograd.grad(y, [s], retain_graph=True)[0], y

    s = leaf(2)
    x = nd.ones((max(steps, 1), 2))
    first, y = run(x, s, 1.0)
    kept = first.asnumpy()
    again = autograd.grad(y, [s], nd.ones(y.shape) * 10, retain_graph=True)[0]
    run(x, s, 5.0)
    np.testing.assert_array_equal(first.asnumpy(), kept)
    np.testing.assert_allclose(again.asnumpy(), 10 * kept, rtol=1e-6)
    first[:] = -1
    np.testing.assert_allclose(autograd.grad(y, [s])[0].asnumpy(), kept)


def test_what_a_monitor_gets_stays_as_it_is():
    e = mx.sym.tanh(mx.sym.Variable("x") * 2, name="t").simple_bind(mx.cpu(), x=(2,))
    seen = []
    e.set_monitor_callback(lambda name, array: seen.append((array, array.asnumpy())), monitor_all=True)
    for v in (0.5, -1.0):
        e.forward(is_train=True, x=nd.full((2,), v))
        e.backward(nd.ones((2,)))
    assert len(seen) >= 6
    for array, value in seen:
        np.testing.assert_array_equal(array.asnumpy(), value)


class Both(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return F.exp(x) * 2, F.sin(x)


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_second_backward_leaves_the_outputs_alone(hybrid):
    """What the first backward used up is computed again, but not into arrays that were handed out."""
    net = Both()
    net.hybridize(hybrid)
    x = leaf(3, 4)
    with autograd.record():
        y, z = net(x)
    autograd.backward([y, z], retain_graph=True)
    kept = x.grad.asnumpy()
    y[:], z[:] = 7, 5
    for _ in range(2):
        autograd.backward([y, z], retain_graph=True)
        assert (y.asnumpy() == 7).all() and (z.asnumpy() == 5).all()
        np.testing.assert_allclose(x.grad.asnumpy(), kept, rtol=1e-6)


class Hoarder(mx.operator.CustomOp):
    seen = []

    def note(self, *arrays):
        self.seen.extend((a, a.asnumpy()) for a in arrays)

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 2)
        self.note(*in_data, *out_data)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 2)
        self.note(*out_grad, *in_data, *out_data, *in_grad)


@mx.operator.register("test_hoarder")
class HoarderProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Hoarder()


@pytest.mark.parametrize("hybrid", [False, True])
def test_what_a_custom_operator_gets_stays_as_it_is(hybrid):
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.exp(F.Custom(F.sin(x), op_type="test_hoarder"))

    net = Net()
    net.hybridize(hybrid)
    Hoarder.seen.clear()
    for s in range(3):
        x = leaf(3, 4, seed=s)
        with autograd.record():
            y = net(x)
        y.backward()
        x.grad[:], y[:] = 99, 55
    assert len(Hoarder.seen) == 18
    for a, value in Hoarder.seen:
        np.testing.assert_array_equal(a.asnumpy(), value)


def test_gradients_from_memory_of_the_function():
    """`grad` does not hand out memory in which a function computes its next gradient."""
    memory = np.zeros(3, np.float32)

    class Reusing(autograd.Function):
        def forward(self, x):
            return x * 2

        def backward(self, dy):
            memory[:] = dy.asnumpy() * 2
            return nd.from_dlpack(memory)

    x = leaf(3)
    found = []
    for s in (1, 2):
        with autograd.record():
            y = Reusing()(x)
        found += autograd.grad(y, [x], [nd.ones(3) * s])
    assert [g.asnumpy().tolist() for g in found] == [[2] * 3, [4] * 3]


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_gradients_that_share_memory_add_up(shift):
    """Weights are tied by giving two arguments one gradient with 'add'."""
    a, b = nd.array([1, 2, 3, 4]), nd.array([5, 6, 7, 8])
    buffer = nd.zeros((8,))
    e = (mx.sym.var("a") * mx.sym.var("b")).bind(
        mx.cpu(), {"a": a, "b": b}, {"a": buffer[0:4], "b": buffer[shift : shift + 4]}, "add"
    )
    want = np.zeros(8)
    for _ in range(2):
        e.forward(is_train=True)
        e.backward(nd.ones((4,)))
        want[0:4] += b.asnumpy()
        want[shift : shift + 4] += a.asnumpy()
        np.testing.assert_array_equal(buffer.asnumpy(), want)


def test_auxiliary_states_over_an_argument_move_after_backward_has_read_it():
    """Training moves the statistics in backward, which still needs the argument as forward saw it."""
    a, b = mx.sym.var("a"), mx.sym.var("b")
    s = mx.sym.dot(mx.sym.tanh(mx.sym.BatchNorm(a * b, name="bn", momentum=0.5)), b)
    shapes = {"a": (4, 4), "b": (4, 4), "bn_gamma": (4,), "bn_beta": (4,)}

    def train(together):
        buffer = nd.array(np.random.RandomState(0).uniform(0.2, 1, 40))
        args = {
            n: buffer[16 * (n == "b") :][:16].reshape((4, 4)) if len(shape) == 2 else nd.ones(shape)
            for n, shape in shapes.items()
        }
        aux = {"bn_moving_mean": buffer[2:6], "bn_moving_var": buffer[20:24]}
        if not together:
            args, aux = ({n: x.copy() for n, x in part.items()} for part in (args, aux))
        grads = {n: nd.zeros(shape) for n, shape in shapes.items()}
        e = s.bind(mx.cpu(), args, grads, "write", aux)
        e.forward(is_train=True)
        e.backward(nd.ones((4, 4)))
        return [x.asnumpy() for x in (*e.outputs, *grads.values(), *aux.values())]

    for x, y in zip(train(True), train(False)):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


class Pair(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        h = F.exp(F.sin(x) * F.cos(x))
        for _ in range(4):
            h = F.dot(h, h) * 0.01
        return F.sum(h * h), F.sum(F.tanh(h))


def test_threads_that_differentiate_one_call_of_a_block(in_threads):
    """They take turns in its memory."""
    net, x, wrong = Pair(), leaf(6, 6), []
    net.hybridize()
    with autograd.record():
        heads = net(x)
    wanted = [autograd.grad(h, x, retain_graph=True)[0].asnumpy() for h in heads]

    def work(i):
        for _ in range(150):
            g = autograd.grad(heads[i], x, retain_graph=True)[0].asnumpy()
            if not np.allclose(g, wanted[i], rtol=1e-4):
                wrong.append((i, g))

    in_threads(work, [(s % 2,) for s in range(4)])
    assert not wrong, wrong[0]


def test_lists_of_an_executor_are_the_callers():
    """Another array in a list, or one less, changes nothing for the executor, and nothing is written to that array."""
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
    net = mx.sym.Group([mx.sym.FullyConnected(mx.sym.tanh(x), w, num_hidden=3, no_bias=True), mx.sym.BatchNorm(x)])
    ex = net.simple_bind(mx.cpu(), x=(2, 4))
    for a in ex.arg_arrays:
        a[:] = 0.5
    want = [y.asnumpy() for y in ex.forward(is_train=True)]
    heads = [nd.ones(y.shape) for y in ex.outputs]
    ex.backward(heads)
    grads = {n: g.asnumpy() for n, g in ex.grad_dict.items()}
    mine = nd.ones((2, 3)) * 7
    for listed in (ex.forward(is_train=True), ex.outputs, ex.arg_arrays, ex.grad_arrays, ex.aux_arrays):
        listed[0] = mine
        listed.pop()
    for given in (ex.arg_dict, ex.grad_dict, ex.aux_dict, ex.output_dict):
        given.clear()
    outs = ex.forward(is_train=True)
    ex.backward(heads)
    assert mine.asnumpy().tolist() == [[7] * 3] * 2
    for a, b in zip([*outs, *ex.outputs], [*want, *want], strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b)
    for n, g in ex.grad_dict.items():
        np.testing.assert_array_equal(g.asnumpy(), grads[n])
    assert outs[0] is ex.outputs[0]  # the arrays are those of every call


@pytest.mark.parametrize("hybrid", [False, True])
def test_lists_of_a_custom_operator_are_its_own_at_every_call(hybrid):
    class Lists(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            in_data[0] = in_data[0] * 3  # for a shorter name
            self.assign(out_data[0], req[0], in_data[0] * in_data[0])
            in_data.pop()

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            in_data[0] = in_data[0] * 18
            self.assign(in_grad[0], req[0], out_grad.pop() * in_data.pop(0))
            out_data.clear()

    @mx.operator.register("test_ownership_lists")
    class ListsProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Lists()

    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.Custom(x, op_type="test_ownership_lists")

    net, x = Net(), leaf(3)
    net.hybridize(hybrid)
    with autograd.record():
        y = net(x)
    for last in (False, True):
        y.backward(retain_graph=not last)
        np.testing.assert_allclose(x.grad.asnumpy(), 18 * x.asnumpy(), rtol=1e-6)
    np.testing.assert_allclose(y.asnumpy(), 9 * x.asnumpy() ** 2, rtol=1e-6)


def _by_executor(total, times):
    x = mx.sym.Variable("x")
    bound = (mx.sym.tanh(x) * 1 + x).bind(
        mx.cpu(), {"x": mx.nd.zeros(total.shape)}, args_grad={"x": total}, grad_req="add"
    )
    for _ in range(times):
        bound.forward(is_train=True)
        bound.backward(mx.nd.ones(total.shape))


def _by_tape(total, times, hybrid=False):
    net = mx.gluon.nn.HybridLambda(lambda F, x: F.tanh(x) + x)
    if hybrid:
        net.hybridize()
    x = mx.nd.zeros(total.shape)
    mx.autograd.mark_variables([x], [total], "add")
    for _ in range(times):
        with mx.autograd.record():
            y = net(x)
        y.backward()


def _by_hand(total, times):
    for _ in range(times):
        total += 2


_ADDERS = {
    "executor": _by_executor,
    "tape": _by_tape,
    "hybrid": lambda total, times: _by_tape(total, times, True),
    "hand": _by_hand,
}


@pytest.mark.parametrize("who", [*itertools.combinations_with_replacement(_ADDERS, 2)], ids="-".join)
def test_gradients_that_threads_add_to_one_array_are_all_there(who, restless):
    for _ in range(12):
        total = mx.nd.zeros((4,))
        threads = [threading.Thread(target=_ADDERS[name], args=(total, 60)) for name in who]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert total.asnumpy().tolist() == [240.0] * 4
