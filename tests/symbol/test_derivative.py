"""Gradients of symbols as symbols."""

import numpy as np
import pytest

import mxcore as mx

S = mx.sym


def test_head_gradients_are_arguments(a, b):
    c = a * b
    g = c.grad(wrt=["a", "b"])
    assert g.list_arguments() == ["_mul0_0_grad", "b", "a"] and len(g) == 2
    x, y, d = (mx.nd.array(v) for v in ([2.0, 3.0], [5.0, 7.0], [1.0, 10.0]))
    assert [v.asnumpy().tolist() for v in g.eval(a=x, b=y, _mul0_0_grad=d)] == [[5, 70], [2, 30]]
    assert c.grad("a").list_arguments() == ["_mul0_0_grad", "b"]


def test_each_output_has_its_own(a):
    s = S.split(a, num_outputs=2, name="s")
    g = S.Group([s[0] * 2, s[1]]).grad("a")
    assert set(g.list_arguments()) >= {"_mulscalar0_0_grad", "s_1_grad"}
    got = g.eval(
        **{
            "_mulscalar0_0_grad": mx.nd.array([[3.0]]),
            "s_1_grad": mx.nd.array([[7.0]]),
            **({"a": mx.nd.ones((1, 2))} if "a" in g.list_arguments() else {}),
        }
    )
    assert got[0].asnumpy().tolist() == [[6.0, 7.0]]


def test_gradients_of_gradients(a):
    second = S.sum(S.sin(a)).gradient("a").gradient(["a"])
    x = np.linspace(-1, 1, 5, dtype="float32")
    np.testing.assert_allclose(second.eval(a=mx.nd.array(x))[0].asnumpy(), -np.sin(x), rtol=1e-5)


def test_gradient_agrees_with_backward(fc):
    net = S.tanh(fc)
    arrays = {
        n: mx.nd.random.uniform(-1, 1, shape=s) for n, s in zip(net.list_arguments(), net.infer_shape(data=(2, 4))[0])
    }
    ex = net.bind(mx.cpu(), arrays, {n: mx.nd.zeros(v.shape) for n, v in arrays.items()})
    ex.forward(is_train=True)
    ex.backward(mx.nd.ones((2, 3)))
    got = net.gradient(net.list_arguments())
    for n, g in zip(net.list_arguments(), got.eval(**arrays)):
        np.testing.assert_allclose(g.asnumpy(), ex.grad_dict[n].asnumpy(), rtol=1e-5, err_msg=n)


def test_what_nothing_depends_on_has_gradient_zero(a, b):
    assert S.Group([a * 2, S.BlockGrad(b)]).gradient("b").eval(b=mx.nd.ones(2))[0].asnumpy().tolist() == [0, 0]


def test_unknown_arguments_are_an_error(a, b):
    with pytest.raises(ValueError, match="grad: no argument is named 'c'; there are: a, b"):
        (a * b).grad(["a", "c"])


def test_what_its_forward_keeps_in_memory_cannot_be_written(a):
    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    @mx.operator.register("derivative_twice")
    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Twice()

    g = S.Custom(a, op_type="derivative_twice", name="twice").gradient("a")
    assert g.eval(a=mx.nd.ones(2))[0].asnumpy().tolist() == [2, 2]
    with pytest.raises(ValueError, match="is the backward of 'twice'.*save the symbol before grad"):
        g.tojson()
