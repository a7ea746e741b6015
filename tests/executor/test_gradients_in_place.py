"""A compiled backward that is the last of its tape writes gradients where they are wanted: the same numbers."""

import contextlib
import inspect
import threading

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, gluon, nd
from mxcore.executor import cached_op
from mxcore.gluon import nn


def network(units=(5, 3), activation="tanh", seed=0):
    net = nn.HybridSequential()
    net.add(*[nn.Dense(n, activation=activation) for n in units], nn.Dense(1))
    mx.random.seed(seed)
    net.initialize(mx.init.Uniform(0.7))
    net(nd.ones((1, 4)))
    net.hybridize(static_alloc=True, static_shape=True)
    return net


def data(seed, *shape):
    return nd.array(np.random.RandomState(seed).uniform(-1, 1, shape or (6, 4)))


def grads(net):
    return [p.grad().asnumpy() for p in net.collect_params().values() if p.grad_req != "null"]


def first(net):
    return next(iter(net.collect_params().values()))


def plain(net):
    out = []
    for i in range(3):
        with autograd.record():
            y = net(data(i)) ** 2
        y.backward()
        out += grads(net)
    return out


def the_last_alone(net):
    with autograd.record():
        y = net(data(0))
    y.backward()
    return grads(net)


def head_gradient_in_a_gradient(net):
    """What is given lies where something is to be written."""
    x = data(0, 1, 4)
    bias = list(net.collect_params().values())[-1]
    bias.grad()[:] = 3
    with autograd.record():
        y = net(x)
    y.backward(bias.grad().reshape((1, 1)))
    return grads(net)


def a_gradient_as_input(net):
    w = first(net)
    plain(net)
    with autograd.record():
        y = net(w.grad()[:4, :].reshape((4, 4)) if w.shape[0] >= 4 else w.grad())
    y.backward()
    return grads(net)


def the_very_gradient_as_input(net):
    x = nd.zeros((6, 4))
    x.attach_grad()
    x.grad[:] = data(3)
    with autograd.record():
        y = net(x.grad)
        z = y + net(x) * x.grad.sum()
    z.backward()
    return [*grads(net), x.grad.asnumpy()]


def gradients_as_constants(net):
    """Rules of eager operators keep gradients as factors."""
    plain(net)
    w = first(net)
    with autograd.record():
        y = net(data(0)).sum() * w.grad().sum() + (net(data(1)) * w.grad()[0, 0]).sum() + (w.data() * w.grad()).sum()
    y.backward()
    return grads(net)


def twice(net):
    with autograd.record():
        y = net(data(0)) * net(data(1))
    y.backward()
    return grads(net)


def below_an_eager_operator(net):
    x = data(0)
    x.attach_grad()
    with autograd.record():
        y = net(nd.sin(x) * x)
    y.backward()
    return [*grads(net), x.grad.asnumpy()]


def added_up(net):
    for p in list(net.collect_params().values())[::2]:
        p.grad_req = "add"
    return plain(net)


def frozen(net):
    for p in list(net.collect_params().values())[::2]:
        p.grad_req = "null"
    return plain(net)


def views(net):
    """Somebody has a part of a gradient, and sees it move."""
    view = first(net).grad()[0:2]
    out = plain(net)
    return [*out, view.asnumpy()]


def the_same_gradient_twice(net):
    """Two variables that share one gradient: the later one stays."""
    x, y, g = data(0), data(1), nd.zeros((6, 4))
    autograd.mark_variables([x, y], [g, g], "write")
    other = nn.HybridLambda(lambda F, a, b: F.tanh(a) * F.exp(b))
    other.hybridize()
    with autograd.record():
        z = other(x, y) * net(data(2))
    z.backward()
    return [*grads(net), g.asnumpy()]


def one_variable_twice(net):
    x = data(0)
    x.attach_grad()
    other = nn.HybridLambda(lambda F, a, b: F.tanh(a) * F.exp(b))
    other.hybridize()
    with autograd.record():
        z = other(x, x)
    z.backward()
    return [x.grad.asnumpy()]


def over_numpy_memory(net):
    with mx.Context("cpu"):  # whose arrays lie in NumPy's memory
        net, x, held = network(), data(0), np.zeros((6, 4), "f4")
        g = nd.from_numpy(held, zero_copy=True)
        autograd.mark_variables([x], [g], "write")
        with autograd.record():
            z = net(x)
        z.backward()
        return [*grads(net), x.grad.asnumpy(), held.copy()]


def retained(net):
    x = data(0)
    x.attach_grad()
    with autograd.record():
        y = net(x) ** 3
    out = []
    for i in range(3):
        y.backward(retain_graph=True)
        out += [*grads(net), x.grad.asnumpy()]
        x.grad[:] = i
    return out


def asked_for_in_between(net):
    x = data(0)
    x.attach_grad()
    with autograd.record():
        y = net(x)
    y.backward(retain_graph=True)
    kept = x.grad
    (asked,) = autograd.grad(y, [x], retain_graph=True)
    kept[:] = 7
    y.backward()
    return [*grads(net), x.grad.asnumpy(), asked.asnumpy(), kept.asnumpy()]


def a_function_that_runs_the_net(net):
    class Nested(autograd.Function):
        def forward(self, x):
            self.save_for_backward(x)
            return x * 2

        def backward(self, dy):
            (x,) = self.saved_tensors
            with autograd.record():
                y = net(x)
            y.backward()
            return dy * first(net).grad().sum()

    x = data(0)
    x.attach_grad()
    with autograd.record():
        y = net(Nested()(x)) + net(x)
    y.backward()
    return [*grads(net), x.grad.asnumpy()]


def another_batch_size(net):
    out = []
    for n in (2, 6, 2, 1, 6):
        with autograd.record():
            y = net(data(n, n, 4))
        y.backward()
        out += grads(net)
    return out


def trained(net):
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
    for i in range(5):
        with autograd.record():
            y = (net(data(i)) ** 2).mean()
        y.backward()
        trainer.step(1)
    return [*grads(net), *[p.data().asnumpy() for p in net.collect_params().values()]]


def product():
    """A product of matrices: who writes over a factor of its gradients sees it."""
    net = nn.HybridLambda(lambda F, a, b: F.dot(a, b))
    net.hybridize()
    return net


def a_factor_of_its_gradient(net):
    x = data(0, 70, 70)
    x.attach_grad()
    x.grad[:] = data(1, 70, 70)
    with autograd.record():
        y = product()(x, x.grad)
    y.backward()
    return [x.grad.asnumpy()]


def another_array_over_the_same_memory(net):
    held = np.random.RandomState(1).rand(70, 70).astype("f4")
    with mx.Context("cpu"):
        x = data(0, 70, 70)
        autograd.mark_variables([x], [nd.from_numpy(held, zero_copy=True)], "write")
        with autograd.record():
            y = product()(x, nd.from_numpy(held, zero_copy=True))
        y.backward()
    return [x.grad.asnumpy()]


class Gives(autograd.Function):
    """Has a gradient that lies somewhere."""

    def __init__(self, g):
        super().__init__()
        self.g = g

    def forward(self, x):
        return x + 1

    def backward(self, dy):
        return self.g


def what_arrives_lies_there(net):
    x, b = data(0, 70, 70), data(2, 70, 70)
    x.attach_grad()
    x.grad[:] = data(1, 70, 70)
    with autograd.record():
        y = Gives(x.grad)(product()(x, b))
    y.backward()
    return [x.grad.asnumpy()]


def what_another_variable_gets_lies_there(net):
    x, v, b = data(0, 70, 70), data(3, 70, 70), data(2, 70, 70)
    x.attach_grad()
    v.attach_grad()
    x.grad[:] = data(1, 70, 70)
    with autograd.record():
        y = product()(x, b) + Gives(x.grad)(v)
    y.backward()
    return [x.grad.asnumpy(), v.grad.asnumpy()]


def the_gradient_of_another_variable(net):
    """Two variables share one gradient: that of the compiled block is written last, as it arrives last."""
    a, b, g = data(0), data(1), nd.zeros((6, 4))
    autograd.mark_variables([a, b], [g, g])
    with autograd.record():
        y = net(a).sum() + (b * 5).sum()
    y.backward()
    return [g.asnumpy()]


def added_to_itself(net):
    x, found = data(0), []
    x.attach_grad("add")
    for give in (False, True):
        x.grad[:] = 2
        with autograd.record():
            y = Gives(x.grad)(x * 1) if give else x + 1
        y.backward(*([] if give else [x.grad]))
        found.append(x.grad.asnumpy())
    np.testing.assert_array_equal(found, np.full((2, 6, 4), 4))
    return found


def two_pending(net):
    with autograd.record():
        a, b = net(data(0)), net(data(1, 3, 4))
    a.backward()
    out = grads(net)
    b.backward()
    return [*out, *grads(net)]


def an_output_that_is_not_used(net):
    both = nn.HybridLambda(lambda F, x: [F.tanh(x), F.exp(x)])
    both.hybridize()
    x = data(0)
    x.attach_grad()
    out = []
    for i in (0, 1, 1, 0):
        with autograd.record():
            y = both(x)[i] * 3
        y.backward()
        out.append(x.grad.asnumpy())
    return out


SCENES = [
    f
    for f in list(globals().values())
    if inspect.isfunction(f) and [*inspect.signature(f).parameters] == ["net"] and f not in (grads, first)
]


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("scene", SCENES, ids=lambda f: f.__name__)
def test_the_same_numbers(scene, activation, monkeypatch):
    found = scene(network(activation=activation))
    monkeypatch.setattr(cached_op, "_places", lambda *args: ())
    wanted = scene(network(activation=activation))
    assert len(found) == len(wanted) > 0
    for a, b in zip(found, wanted):
        np.testing.assert_array_equal(a, b)


def test_gradients_stay_where_they_are():
    net = network(units=(300, 200))  # large ones would be taken over otherwise
    x = data(0)
    x.attach_grad()
    before = [p.grad()._data for p in net.collect_params().values()] + [x.grad._data]
    versions = [p.grad()._st.version for p in net.collect_params().values()]
    for _ in range(3):
        with autograd.record():
            y = net(x)
        y.backward()
    after = [p.grad()._data for p in net.collect_params().values()] + [x.grad._data]
    assert all(a is b for a, b in zip(before, after))
    assert all(p.grad()._st.version > v for p, v in zip(net.collect_params().values(), versions))


def test_a_gradient_that_may_not_be_written_is_told():
    with mx.Context("cpu"):
        net = network()
        flags = first(net).grad()._data.flags
        flags.writeable = False
        with autograd.record():
            y = net(data(0))
        with pytest.raises(mx.MXNetError, match="read-only"):
            y.backward()
        flags.writeable = True


def test_a_graph_below_that_is_freed_is_told():
    net, x = network(), data(0)
    x.attach_grad()
    with autograd.record():
        h = x * 2
        z, y = h.sum(), net(h)
    z.backward()
    with pytest.raises(mx.MXNetError, match="freed by an earlier backward"):
        y.backward()


def test_python_in_a_backward_may_wait_for_who_writes_to_the_gradient():
    lock, inside = threading.Lock(), threading.Event()

    class Waits(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0])

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            inside.set()
            assert lock.acquire(timeout=30)
            lock.release()
            self.assign(in_grad[0], req[0], out_grad[0])

    @mx.operator.register("waits_for_others")
    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Waits()

    net = nn.HybridLambda(lambda F, x: F.Custom(x * 2, op_type="waits_for_others"))
    net.hybridize()
    x = data(0)
    x.attach_grad()

    def train():
        with autograd.record():
            y = net(x)
        y.backward()

    with lock:
        thread = threading.Thread(target=train, daemon=True)
        thread.start()
        assert inside.wait(30)
        x.grad[:] = 0
    thread.join(60)
    assert not thread.is_alive() and (x.grad.asnumpy() == 2).all()


def test_threads_that_differentiate_one_net_write_whole_gradients(restless):
    """Of one backward or of the other, never of both."""
    net = network(units=(64, 64))
    inputs = [data(i, 32, 4) for i in range(3)]
    possible = []
    for x in inputs:
        with autograd.record():
            y = net(x)
        y.backward()
        possible.append([g.tobytes() for g in grads(net)])
    failed, done = [], threading.Event()

    def run(x):
        with contextlib.suppress(Exception):
            while not done.is_set():
                with autograd.record():
                    y = net(x)
                y.backward()
            return
        failed.append(x)

    for _ in range(15):
        done.clear()
        threads = [threading.Thread(target=run, args=(x,)) for x in inputs]
        for t in threads:
            t.start()
        done.wait(0.05)
        done.set()
        for t in threads:
            t.join()
        for i, g in enumerate(grads(net)):
            assert g.tobytes() in [p[i] for p in possible]
    assert not failed
