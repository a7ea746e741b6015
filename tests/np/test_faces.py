"""Arrays of ``mx.nd`` and of ``mx.np``: one memory, two meanings, never mixed."""

import copy
import operator
import pickle

import numpy as onp
import pytest

import mxcore as mx
from mxcore import autograd, gluon, np, npx


def _pair(values):
    legacy = mx.nd.array(values)
    return legacy, legacy.as_np_ndarray()


def test_one_memory_both_ways():
    legacy, modern = _pair([1.0, 2.0])
    assert type(modern) is np.ndarray and isinstance(modern, mx.nd.NDArray)
    assert type(modern.as_nd_ndarray()) is mx.nd.NDArray and modern.as_np_ndarray() is modern
    legacy[0] = 7
    assert modern.asnumpy().tolist() == [7.0, 2.0]


def test_gradients_cross_faces():
    legacy, modern = _pair([1.0, 2.0])
    legacy.attach_grad()
    with autograd.record():
        y = np.exp(legacy.as_np_ndarray() + 1).as_nd_ndarray() * 2
    y.backward()
    onp.testing.assert_allclose(legacy.grad.asnumpy(), 2 * onp.exp([2.0, 3.0]), rtol=1e-6)
    assert type(legacy.grad) is mx.nd.NDArray


def test_results_and_gradients_have_the_face_of_the_input():
    _, x = _pair([0.5, 1.5])
    x.attach_grad()
    assert type(x.grad) is np.ndarray
    with autograd.record():
        y = npx.relu(np.exp(x) + x)
        (g,) = autograd.grad(y, x, create_graph=True)
    assert type(y) is type(g) is np.ndarray
    g.backward()
    onp.testing.assert_allclose(x.grad.asnumpy(), onp.exp([0.5, 1.5]), rtol=1e-6)


def test_operators_of_nd_take_arrays_of_np_alone():
    legacy, modern = _pair([-1.0, 2.0])
    assert type(mx.nd.relu(modern)) is np.ndarray
    for call in (
        lambda: mx.nd.elemwise_add(modern, legacy),
        lambda: mx.nd.elemwise_add(legacy, modern),
        lambda: mx.nd.elemwise_add(lhs=legacy, rhs=modern) if False else mx.nd.concat(legacy, modern, dim=0),
        lambda: legacy + modern,
        lambda: modern + legacy,
        lambda: np.add(modern, legacy),
        lambda: npx.relu(legacy),
    ):
        with pytest.raises(TypeError, match="as_np_ndarray"):
            call()
    with pytest.raises(TypeError, match="as_np_ndarray"):
        legacy += modern


def test_functions_refuse_what_is_no_array():
    _, x = _pair([1.0])
    with pytest.raises(TypeError, match="np.array"):
        np.exp([1.0])
    with pytest.raises(TypeError, match="str"):
        np.add(x, "1")
    with pytest.raises(NotImplementedError, match="where"):
        np.exp(x, where=x)
    with pytest.raises(TypeError, match="'axes'"):
        np.exp(x, axes=1)
    assert np.add(1, 2) == 3 and np.exp(0) == 1


class _Doubled(autograd.Function):
    def forward(self, x):
        assert type(x) is np.ndarray
        return x + x

    def backward(self, dy):
        assert type(dy) is np.ndarray
        return dy + dy


def test_functions_of_users_see_the_face_they_were_called_with():
    _, x = _pair([1.0, 3.0])
    x.attach_grad()
    with autograd.record():
        y = np.exp(_Doubled()(x))
    y.backward()
    onp.testing.assert_allclose(x.grad.asnumpy(), 2 * onp.exp([2.0, 6.0]), rtol=1e-6)


def test_modules_show_the_same_functions():
    assert mx.np is np and mx.np is mx.numpy and mx.npx is mx.numpy_extension
    assert mx.nd.np.exp == np.exp and mx.nd.npx.relu == npx.relu
    x = mx.sym.var("x").as_np_ndarray()
    y = mx.sym.np.exp(x) + 1
    assert type(y) is type(mx.sym.npx.relu(y)) is type(mx.sym.relu(y)) is mx.sym.np._Symbol
    assert y.name == "add_scalar0" or y.name.startswith("add_scalar")
    assert type(y.as_nd_ndarray()) is mx.sym.Symbol
    with pytest.raises(TypeError, match="as_np_ndarray"):
        mx.sym.np.exp(mx.sym.var("x"))
    got = y.bind(mx.cpu(), {"x": mx.nd.array([0.0, 1.0])}).forward()[0]
    onp.testing.assert_allclose(got.asnumpy(), onp.exp([0, 1]) + 1, rtol=1e-6)


class _Exp(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        assert type(in_data[0]) is np.ndarray
        self.assign(out_data[0], req[0], np.exp(in_data[0]))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        assert {type(x) for x in (*out_grad, *out_data, *in_grad)} == {np.ndarray}
        self.assign(in_grad[0], req[0], np.multiply(out_grad[0], out_data[0]))


@mx.operator.register("exp_of_np")
class _ExpProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return _Exp()


@pytest.mark.parametrize("hybrid", [False, True])
def test_custom_operators_see_arrays_of_np_in_numpy_mode(numpy_mode, hybrid):
    block = mx.gluon.nn.HybridLambda(lambda F, x: F.Custom(x, op_type="exp_of_np"))
    block.hybridize(hybrid)
    _, x = _pair([0.0, 1.0])
    x.attach_grad()
    with autograd.record():
        y = block(x)
    y.backward()
    assert type(y) is np.ndarray
    onp.testing.assert_allclose(x.grad.asnumpy(), onp.exp([0.0, 1.0]), rtol=1e-6)


def test_control_flow(numpy_mode):
    x = mx.nd.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]).as_np_ndarray()
    x.attach_grad()
    with autograd.record():
        out, last = mx.nd.contrib.foreach(lambda a, s: (np.exp(a) + s, a + s), x, x[0])
        total = np.add(out, last)
    total.backward()
    assert type(out) is type(last) is type(total) is np.ndarray
    host = x.asnumpy()
    states = onp.cumsum(onp.concatenate([host[:1], host]), 0)
    onp.testing.assert_allclose(out.asnumpy(), onp.exp(host) + states[:3], rtol=1e-6)
    assert onp.isfinite(x.grad.asnumpy()).all() and (x.grad.asnumpy() > onp.exp(host)).all()


_METHODS = {
    "T": None,
    "argmax": (1,),
    "broadcast_to": ((4, 2, 3),),
    "clip": (1, 3),
    "cumsum": (1,),
    "exp": (),
    "flatten": (),
    "max": (),
    "mean": (),
    "norm": (),
    "reshape": (3, -1),
    "round": (),
    "softmax": (),
    "squeeze": (),
    "std": (0,),
    "sum": (),
    "swapaxes": (0, 1),
    "tile": ((2, 1),),
    "transpose": (1, 0),
    "var": (),
}


@pytest.mark.parametrize("name", _METHODS)
def test_methods_of_symbols_are_those_of_arrays(name, numpy_mode):
    s, args = mx.sym.var("x").as_np_ndarray(), _METHODS[name]
    x = np.array([[1.0, 5.0, -2.0], [0.5, 2.0, 3.0]])
    graph, want = (getattr(v, name) if args is None else getattr(v, name)(*args) for v in (s, x))
    assert type(graph) is mx.sym.np._Symbol
    got = graph.bind(mx.cpu(), {"x": x}).forward()[0]
    assert got.shape == want.shape and got.dtype == want.dtype
    onp.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-6)


_KEYS = [
    *(0, -1, (0, 1), (slice(None), 1), (0, slice(None), slice(None, None, -1)), None, (None, 0), (0, None, 1)),
    *((..., 0), (0, ..., 1), (..., None), (slice(1, None), ..., None, -1), (slice(None, None, 2), slice(2, 0, -1))),
    *((), ..., slice(None), slice(5, 9), (1, slice(-2, None), None), (-1, -1, -1), onp.int64(1)),
]


@pytest.mark.parametrize("key", _KEYS, ids=str)
def test_parts_of_symbols_are_those_of_arrays(key, numpy_mode):
    x = onp.arange(24, dtype="float32").reshape(2, 3, 4)
    part, want = mx.sym.var("x").as_np_ndarray()[key], x[key]
    given, grad = np.array(x), np.zeros_like(np.array(x))
    bound = part.bind(mx.cpu(), {"x": given}, args_grad={"x": grad})
    again = mx.sym.fromjson(part.tojson()).bind(mx.cpu(), {"x": given})
    for got in (bound.forward(is_train=True)[0], again.forward()[0]):
        assert got.shape == want.shape and (got.asnumpy() == want).all()
    bound.backward(mx.nd.ones(want.shape))
    where = onp.zeros_like(x)
    where[key] = 1
    assert (grad.asnumpy() == where).all()


def test_parts_that_a_graph_cannot_know():
    x = mx.sym.var("x").as_np_ndarray()
    for key in ([0, 1], 1.5, True, onp.array([0]), x > 0):
        with pytest.raises(IndexError, match=r"np\.take"):
            x[key]
    with pytest.raises(IndexError, match="one Ellipsis"):
        x[..., ...]
    for length in (len, list):
        with pytest.raises(TypeError, match="how long"):
            length(x)
    both = mx.sym.Group([x, x + 1])
    assert len(both) == len(list(both)) == 2 and both[0].name == "x"


def test_symbols_of_both_faces_do_not_meet():
    x, y = mx.sym.var("x").as_np_ndarray(), mx.sym.var("y")
    for compute in (lambda: x + y, lambda: y + x, lambda: x > y, lambda: y**x):
        with pytest.raises(TypeError, match=r"as_np_ndarray\(\)"):
            compute()


FUNCTIONS = """
np.tanh np.abs np.polyfit np.array np.reshape np.random.uniform np.linalg.norm npx.relu npx.reshape npx.random.bernoulli
npx.image.to_tensor sym.np.tanh sym.np.reshape sym.np.random.uniform sym.np.linalg.norm sym.npx.reshape
nd.relu nd.op.relu nd.contrib.box_iou nd.linalg.gemm2 nd.image.to_tensor nd.random.normal_like nd.sparse.dot
nd._internal._plus_scalar sym.relu sym.contrib.box_iou sym.linalg.gemm2 sym.random.normal_like sym.image.to_tensor
""".split()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_pickled_by_their_places(name):
    function = operator.attrgetter(name)(mx)
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy(function) == function
    if not name.endswith("npx.reshape"):  # which copy.copy takes for that of mx.np
        assert copy.copy(function) == function


def test_blocks_and_datasets_that_hold_functions():
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.act, self.sample = np.tanh, np.random.uniform

        def forward(self, x):
            return self.act(x) + self.sample(size=x.shape) * 0

    x = np.array([0.5, 1])
    assert copy.deepcopy(Net())(x).tolist() == Net()(x).tolist() == np.tanh(x).tolist()
    data = gluon.data.SimpleDataset([x]).transform(np.tanh, lazy=True)
    assert pickle.loads(pickle.dumps(data))[0].tolist() == np.tanh(x).tolist()
