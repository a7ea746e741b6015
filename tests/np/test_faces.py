"""Arrays of ``mx.nd`` and of ``mx.np``: one memory, two meanings, never mixed."""

import numpy as onp
import pytest

import mxcore as mx
from mxcore import autograd, np, npx


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
