"""Calls: binding of arguments, declared dtypes and shapes, out=, memory, errors."""

import re

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import tables
from mxcore.plugin import Device, Float, Int, KernelSet, MXNetError, op


@op("test_call", inputs="data weight bias[not plain]", num=Int(1), plain=Float(0.0))
def call_op(k, p, data, weight, bias=None):
    """Add up data, weight and bias, times num; plain leaves bias out."""
    return (data + weight + (0 if bias is None else bias)) * p.num


@op("test_any", inputs="head args*", scale=Int(1))
def any_op(k, p, head, *args):
    """Sum of head and args, times scale."""
    return sum(args, head) * p.scale


@pytest.fixture(autouse=True)
def ops(plug):
    plug("calls", mxcore_ops=[call_op, any_op])


def a(v):
    return mx.nd.full((2,), v)


def value(x):
    return x.asnumpy()[0]


def test_inputs_bind_by_position_and_name():
    f = mx.nd.test_call
    assert (
        value(f(a(1), a(2), a(3)))
        == 6
        == value(f(a(1), bias=a(3), weight=a(2)))
        == value(f(data=a(1), weight=a(2), bias=a(3)))
    )
    assert value(f(a(1), a(2), None, plain=1)) == 3 == value(f(a(1), a(2), plain=1))
    assert (
        value(f(a(1), a(2), a(3), 2)) == 12 == value(f(a(1), a(2), a(3), num=2))
        and value(f(a(1), a(2), plain=1, num=3)) == 9
    )
    g = mx.nd.test_any
    assert value(g(a(1), a(2), a(3))) == 6 == value(g([a(1), a(2), a(3)])) == value(g(a(1), a(2), a(3), num_args=2))
    assert value(g(a(1), scale=5)) == 5


@pytest.mark.parametrize(
    "args, kwargs, text",
    [
        ((1,), {}, "needs input 'weight'"),
        ((1, 2), {}, "needs input 'bias'"),
        ((1, 2, 3, 4), {}, "takes"),
        ((1, 2, 3), {"nmu": 1}, "did you mean 'num'"),
        ((1, 2, 3), {"data": 1}, "given twice"),
        ((1, 2, 3), {"plain": 1}, "takes 2 inputs"),
        ((1, 2), {"bias": 3, "plain": 1}, "takes no input 'bias'"),
    ],
)
def test_wrong_calls_are_explained(args, kwargs, text):
    arrays = [a(v) for v in args]
    kwargs = {k: a(v) if k in ("data", "bias") else v for k, v in kwargs.items()}
    with pytest.raises(TypeError, match=text):
        mx.nd.test_call(*arrays, **kwargs)


def test_something_else_than_an_array_is_refused():
    with pytest.raises(
        TypeError, match="operator tanh: input 'data' must be an array: an NDArray .* got numpy.ndarray"
    ):
        mx.nd.tanh(np.ones(2))
    with pytest.raises(TypeError, match="cannot be combined with list|not supported"):
        mx.nd.ones((2,)) + [1, 2]


@op("test_wrong_shape")
def wrong_shape(k, p, data):
    """Return one element too many."""
    return k.xp.concatenate([data, data])


@op("test_wrong_count", outputs="one two")
def wrong_count(k, p, data):
    """Return three values."""
    return data, data, data


@op("test_wide")
def wide(k, p, data):
    """NumPy makes float64 of it; the declaration says otherwise."""
    return k.xp.exp(data)


@op("test_itself")
def itself(k, p, data):
    """Return the input itself: memory that is not its own."""
    return data


@op("test_view_of")
def view_of(k, p, data):
    """Return a view of the input."""
    return data[::-1]


def test_what_a_body_returns_is_held_to_the_declaration(plug):
    plug("bodies", mxcore_ops=[wrong_shape, wrong_count, wide, itself, view_of])
    x = mx.nd.array([1, 2, 3])
    with pytest.raises(MXNetError, match=r"it returned shape \(6,\); \(3,\) is declared"):
        mx.nd.test_wrong_shape(x)
    with pytest.raises(MXNetError, match="it returned 3 values; 2 are declared"):
        mx.nd.test_wrong_count(x)
    assert mx.nd.test_wide(mx.nd.array([1], dtype="int32")).dtype == np.int32
    for fn in (mx.nd.test_itself, mx.nd.test_view_of):
        y = fn(x)
        y[:] = 7
        assert x.asnumpy().tolist() == [1, 2, 3]


@op("test_last", inputs="args*")
def last(k, p, *args):
    """Return the last input itself."""
    return args[-1]


@op("test_fixed")
def fixed(k, p, data):
    """Return memory that is read-only."""
    return np.broadcast_to(np.float32(5), data.shape)


@op("test_same_twice", outputs="a b")
def same_twice(k, p, data):
    """Return one array twice."""
    y = data + 0
    return y, y


@op("test_part_and_whole", outputs="a b")
def part_and_whole(k, p, data):
    """Return an array, and before it a view of it."""
    y = data + 0
    return y[:], y


def test_results_belong_to_their_taker(plug):
    plug("bodies", mxcore_ops=[last, fixed, same_twice, part_and_whole])
    inputs = [mx.nd.array([1, 2, 3]) for _ in range(4)]
    for n in range(1, 5):
        mx.nd.test_last(*inputs[:n])[:] = 7
        assert [x.asnumpy().tolist() for x in inputs] == [[1, 2, 3]] * 4
    y = mx.nd.test_fixed(inputs[0])
    y[:] = 7
    assert y.asnumpy().tolist() == [7, 7, 7]
    for fn in (mx.nd.test_same_twice, mx.nd.test_part_and_whole):
        for i in (0, 1):
            ys = fn(inputs[0])
            ys[i][:] = 7
            assert ys[i].asnumpy().tolist() == [7, 7, 7] and ys[1 - i].asnumpy().tolist() == [1, 2, 3]


class Other(np.ndarray):
    """An array that multiplies in its own way, as np.matrix does."""

    __mul__ = np.ndarray.__matmul__


@op("test_other")
def other(k, p, data):
    """Return such an array."""
    return data.copy().view(Other)


@op("test_masked")
def masked(k, p, data):
    """Return an array of which some elements do not count."""
    return np.ma.masked_array(data, data > 1)


def test_relatives_of_arrays_are_refused(plug):
    plug("bodies", mxcore_ops=[other, masked])
    for name in ("other", "masked"):
        for call in each_way(f"test_{name}", [[1, 2], [3, 4]]):
            with pytest.raises(TypeError, match=f"operator test_{name} .*it returned a (Other|MaskedArray) of"):
                call()


@pytest.fixture
def kernel(plug):
    """Give operator test_itself or test_wrong_count a kernel of the plugin 'fast'."""
    plug("bodies", mxcore_ops=[itself, wrong_count])

    def give(name, fn):
        found = KernelSet("cpu")
        found.kernel(name)(fn)
        plug("fast", mxcore_kernels={"cpu": found})

    return give


def each_way(name, data=(1, 2, 3)):
    """Calls of an operator: eager, bound."""
    x = mx.nd.array(data)
    yield lambda: getattr(mx.nd, name)(x)
    bound = getattr(mx.sym, name)(mx.sym.var("x")).bind(mx.cpu(), {"x": x})
    yield bound.forward


@pytest.mark.parametrize(
    "name, returned, text",
    [
        ("test_itself", lambda x: (x, x), "it returned 2 values; 1 are declared"),
        ("test_itself", lambda x: [], "it returned 0 values; 1 are declared"),
        ("test_wrong_count", lambda x: [x], "it returned 1 values; 2 are declared"),
        ("test_wrong_count", lambda x: (x, x, x), "it returned 3 values; 2 are declared"),
        ("test_itself", lambda x: x.nothing, "no attribute 'nothing'"),
    ],
)
def test_what_a_kernel_does_wrong_is_told_with_its_plugin(kernel, name, returned, text):
    kernel(name, lambda k, p, data: returned(data))
    for call in each_way(name):
        with pytest.raises(
            MXNetError, match=rf"operator {name} \[(node '\w+', )?kernel of fast\] with data float32 \(3,\): .*{text}"
        ):
            call()


def test_out():
    x, y = mx.nd.array([1, 2]), mx.nd.zeros((2,))
    same = mx.nd.square(x, out=y)
    assert same is y and y.asnumpy().tolist() == [1, 4]
    mx.nd.square(y, out=y)
    assert y.asnumpy().tolist() == [1, 16]
    with pytest.raises(ValueError, match=r"out has shape \(3,\), the result \(2,\)"):
        mx.nd.square(x, out=mx.nd.zeros((3,)))
    for dtype in ("float64", "int32"):  # MXNet refuses it as well; nothing is cast on the way
        with pytest.raises(TypeError, match=f"operator square: out is {dtype}, the result float32"):
            mx.nd.square(x, out=mx.nd.zeros((2,), dtype=dtype))


def test_kernels_that_write_get_memory_of_their_own(plug):
    ks = KernelSet("cpu")
    seen = []

    @ks.kernel("test_call", out=True)
    def kernel(k, p, outs, data, weight, bias=None):
        seen.append(outs[0] is data)
        outs[0][...] = 0  # an alias would destroy the input
        outs[0] += data

    plug("writers", mxcore_kernels={"cpu": ks})
    x = a(5)
    assert value(mx.nd.test_call(x, a(1), plain=1)) == 5
    mx.nd.test_call(x, a(1), plain=1, out=x)
    assert value(x) == 5 and seen == [False, False]


class Apart(Device):
    """A device over NumPy's arrays that says nothing of memory that it shares."""

    type, type_id, xp = "apart", 70_311, np

    def count(self):
        return 2

    def to_host(self, a):
        return a.copy()

    def from_host(self, a, index):
        return a.copy()


def test_contexts_do_not_mix(plug):
    plug("apart", mxcore_devices=[Apart()])
    zero, one, cpu = mx.Context("apart", 0), mx.Context("apart", 1), mx.Context("cpu", 0)
    for first, second in ((zero, one), (zero, cpu), (cpu, zero)):
        x, y = mx.nd.ones((2,), ctx=first), mx.nd.ones((2,), ctx=second)
        for call in (lambda x=x, y=y: x + y, lambda x=x, y=y: mx.nd.elemwise_add(x, y)):
            text = f"inputs live on different devices (lhs on {first}, rhs on {second}); copy one with"
            with pytest.raises(ValueError, match=re.escape(text)):
                call()
        with pytest.raises(ValueError, match="operator add_n: inputs live on different devices"):
            mx.nd.add_n(x, x, y)
        with pytest.raises(ValueError, match=re.escape(f"out is on {second}, the operator runs on {first}")):
            mx.nd.square(x, out=y)
    with pytest.raises(MXNetError, match="no plugin provides device 'gpu'; pip install mxcore-cuda"):
        mx.nd.ones((2,), ctx=mx.gpu())
    assert mx.num_gpus() == 0


def test_a_decaying_scalar_neither_grows_a_cache_nor_makes_a_plan():
    x = mx.nd.ones((4,))
    o = tables.ops.get("_mul_scalar")
    plans, parsed = len(o.bound), len(o.parser.cache)
    for i in range(3000):
        x * (1.0 / (i + 1))
        mx.nd._internal._mul_scalar(x, scalar=1.0 / (i + 2))
    assert len(o.bound) <= plans + 2 and len(o.parser.cache) <= parsed + 2


def test_help_shows_the_declaration():
    import inspect

    f = mx.nd.test_call
    assert list(inspect.signature(f).parameters)[:5] == ["data", "weight", "bias", "num", "plain"]
    assert "times num" in f.__doc__ and "num : int, default 1" in f.__doc__
    assert f.__name__ == "test_call" and "test_call" in dir(mx.nd)


@pytest.mark.parametrize("how", ["eager", "compiled"])
def test_threads_that_move_one_state(how, plug, monkeypatch):
    """Each reads it and writes it, as batch normalization's statistics: nothing is lost."""
    import threading
    import time

    def count(k, p, data, n):
        value = n.copy()
        time.sleep(0.002)
        return data * 1, value + 1

    counting = op("test_counting", inputs="data n", mutates="n", grad=None)(count)
    counting.shape(lambda p, ins: [ins[0]])
    plug(mxcore_ops=[counting])
    x, n = mx.nd.ones((2,)), mx.nd.zeros((1,))
    run = lambda: mx.nd.test_counting(x, n)  # noqa: E731
    if how == "compiled":
        from mxcore.executor import CachedOp

        compiled = CachedOp(mx.sym.test_counting(mx.sym.Variable("data"), mx.sym.Variable("n")))
        run = lambda: compiled(x, n)  # noqa: E731
    threads = [threading.Thread(target=lambda: [run() for _ in range(5)]) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert n.asscalar() == 20
