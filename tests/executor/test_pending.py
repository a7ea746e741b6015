"""Values that a worker is still computing, or will read: backward waits for the one and holds up who would overwrite the other."""
import threading
import time
import warnings

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, gluon, nd
from mxcore._core import dispatch, registry, transfer
from mxcore._core.engine import engine
from mxcore.testing.case import cases
from mxcore.testing.engines import use_engine


@pytest.fixture(autouse=True)
def threaded():
    old = use_engine("ThreadedEnginePerDevice")
    yield
    use_engine(old)


@mx.operator.register("test_pending_square")
class SquareProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        class Square(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.assign(out_data[0], req[0], in_data[0] * in_data[0])

            def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])

        return Square()


class Squares(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return F.sqrt(F.square(x) + 0) * x


def hybridised():
    net = Squares()
    net.hybridize()
    return net


WAYS = {
    "eager": lambda: Squares(),
    "hybridised": hybridised,
    "custom": lambda: lambda x: nd.Custom(x, op_type="test_pending_square"),
    "foreach": lambda: lambda x: nd.contrib.foreach(lambda d, s: (d * d, s), x, nd.zeros(1))[0],
    "while_loop": lambda: lambda x: nd.contrib.while_loop(lambda i, s: i < 1, lambda i, s: (s * s, (i + 1, s)), (nd.zeros(1), x),
                                                          max_iterations=1)[0][0],
    "cond": lambda: lambda x: nd.contrib.cond(nd.ones(1), lambda: x * x, lambda: x),
}


def later(x, value):
    """Hand the engine a write to an array that does not end before the returned event is set."""
    gate, data = threading.Event(), x._data

    def write():
        assert gate.wait(60)
        if value is not None:
            data[...] = value

    engine.it.push(x.context, write, (), (x._st,), "a slow write")
    x._st.version += 1
    return gate


def recorded(way, again):
    x = nd.array([1.0, 2.0, 3.0])
    x.attach_grad()
    f = WAYS[way]()
    with autograd.record():
        y = f(x)
    if again:
        y.backward(retain_graph=True)
    return x, y


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_head_gradient_that_is_being_computed(way, again):
    x, y = recorded(way, again)
    dy = nd.zeros(y.shape)
    gate = later(dy, 1.0)
    threading.Timer(0.05, gate.set).start()
    y.backward(dy)
    np.testing.assert_allclose(x.grad.asnumpy(), [2, 4, 6], rtol=1e-6)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_an_input_that_is_written_after_backward(way, again):
    """The next batch comes into the same array while a worker still computes the gradients of this one."""
    x, y = recorded(way, again)
    dy = nd.ones(y.shape)
    gate = later(dy, None)
    threading.Timer(0.05, gate.set).start()
    y.backward(dy)
    x[:] = 50
    np.testing.assert_allclose(x.grad.asnumpy(), [2, 4, 6], rtol=1e-6)


@pytest.mark.parametrize("way", [w for w in WAYS if w != "eager"])
def test_an_input_that_is_being_written(way):
    """Backward sees a write of before it: both sides of the product, or, where the forward kept its result, one."""
    x, y = recorded(way, False)
    gate = later(x, 2.0)
    threading.Timer(0.05, gate.set).start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mx.base.MXNetWarning)
        y.backward(nd.ones(y.shape))
    gate.wait(60)
    assert x.asnumpy().tolist() == [2, 2, 2]
    if way != "hybridised":  # there, what the first part kept counts
        np.testing.assert_allclose(x.grad.asnumpy(), [4, 4, 4], rtol=1e-6)


def late(arrays):
    """Their values come a little later, from a worker; until then they hold zeros."""
    for x in arrays:
        data = x._data
        values = data.copy()
        data[...] = 0
        engine.it.push(x.context, lambda data=data, values=values: (time.sleep(0.0005), np.copyto(data, values)), (), (x._st,), "a late value")


def agree(found, wanted, case):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=str(case))


def ways_to_call():
    """A few samples of every operator that takes dense arrays and gives what can be told beforehand."""
    for op in {id(o): o for o in map(registry.ops.get, registry.ops.names())}.values():
        if not op.random:
            yield from [c for c in cases(op, mx.cpu()) if c.host][:3]


def outputs(case, arrays, share):
    found = dispatch.invoke(case.op, arrays, case.p, None, None, share)
    return [y for y in (found if isinstance(found, (list, tuple)) else [found]) if y is not None]


def test_every_operator_waits_for_what_it_reads():
    """Also view operators where they have to compute: those of gradients share memory, as `_sum_like` does if the shapes agree."""
    tried = 0
    for case in ways_to_call():
        for share in {False, case.op.view}:
            arrays = case.arrays()
            wanted = [y.asnumpy() for y in outputs(case, arrays, share)]
            arrays = case.arrays()
            late(arrays)
            agree([y.asnumpy() for y in outputs(case, arrays, share)], wanted, case)
            tried += 1
    assert tried > 1000


def gradients(case, head_grads):
    arrays = case.arrays()
    leaves = [x for x in arrays if x.dtype in (np.float32, np.float64)]
    for x in leaves:
        x.attach_grad()
    with autograd.record():
        ys = [y for y in outputs(case, arrays, False) if y._entry is not None]
    if not ys:
        return []
    dys = [nd.array(np.linspace(0.5, 1, y.size).reshape(y.shape), dtype=y.dtype) for y in ys]
    head_grads(dys)
    autograd.backward(ys, dys)
    return [x.grad.asnumpy() for x in leaves]


def test_every_gradient_waits_for_what_it_reads():
    tried = 0
    for case in ways_to_call():
        try:
            wanted = gradients(case, list)
        except mx.MXNetError:  # it has none
            continue
        if wanted:
            agree(gradients(case, late), wanted, case)
            tried += 1
    assert tried > 500


@pytest.mark.parametrize("f", [lambda x: x.reshape((-1,)), lambda x: x[1:3], lambda x: x.T, lambda x: x.flatten(), lambda x: x.expand_dims(0), lambda x: x[1]])
def test_methods_of_strided_memory_wait_for_it(f):
    """What is a view of other arrays has to be copied here."""
    memory = np.arange(24, dtype=np.float32).reshape(4, 6)[:, ::2]
    wanted = f(nd.array(memory)).asnumpy()
    x = transfer.wrap(memory, mx.cpu(), nd.NDArray)
    late([x])
    np.testing.assert_array_equal(f(x).asnumpy(), wanted)
