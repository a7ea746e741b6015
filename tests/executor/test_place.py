"""Groups of nodes on contexts of their own: group2ctx."""

import numpy as np
import pytest

import mxcore as mx

sym = mx.sym


def net():
    with mx.AttrScope(ctx_group="dev1"):
        x = sym.Activation(
            sym.FullyConnected(sym.Variable("data"), num_hidden=8, name="fc1"), act_type="relu", name="relu"
        )
    with mx.AttrScope(ctx_group="dev2"):
        return sym.SoftmaxOutput(sym.FullyConnected(x, num_hidden=4, name="fc2"), name="softmax")


def run(**kw):
    ex = net().simple_bind(mx.cpu(), data=(5, 6), **kw)
    r = np.random.RandomState(0)
    for n, a in ex.arg_dict.items():
        a[:] = r.randint(0, 4, a.shape) if "label" in n else r.uniform(-1, 1, a.shape)
    ex.forward(is_train=True)
    ex.backward()
    return ex


def test_placed_and_unplaced_agree():
    plain, placed = run(), run(group2ctx={"dev1": mx.cpu(1), "dev2": mx.cpu(2)})
    for a, b in zip((*plain.outputs, *plain.grad_arrays), (*placed.outputs, *placed.grad_arrays)):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_arrays_live_where_their_nodes_compute():
    ex = run(group2ctx={"dev1": mx.cpu(1), "dev2": mx.cpu(2)})
    where = {n: a.context for n, a in ex.arg_dict.items()}
    assert where["fc1_weight"] is where["data"] is mx.cpu(1) and where["fc2_weight"] is where[
        "softmax_label"
    ] is mx.cpu(2)
    assert ex.outputs[0].context is mx.cpu(2) and ex.grad_dict["fc1_bias"].context is mx.cpu(1)
    program = ex._instance(True, True)[0].program
    crossings = [
        (s.node.inputs[0][0].name, str(s.ctx))
        for s in program.steps
        if s.op is not None and s.op.name == "_CrossDeviceCopy"
    ]
    assert crossings == [("relu", "cpu(2)"), ("_backward_fc2", "cpu(1)")]


def test_a_value_crosses_once():
    with mx.AttrScope(ctx_group="a"):
        x = sym.sin(sym.Variable("x"))
    with mx.AttrScope(ctx_group="b"):
        y = sym.cos(x) * sym.sqrt(x) + x
    ex = y.simple_bind(mx.cpu(), x=(3,), group2ctx={"a": mx.cpu(1), "b": mx.cpu(0)}, grad_req="null")
    program = ex._instance(False, False)[0].program
    assert sum(s.op.name == "_CrossDeviceCopy" for s in program.steps) == 1
    ex.arg_dict["x"][:] = 1
    s = np.sin(np.float32(1))
    np.testing.assert_allclose(ex.forward()[0].asnumpy(), [np.cos(s) * np.sqrt(s) + s] * 3, rtol=1e-6)


def test_variables_without_group_may_live_on_any_context_of_the_graph():
    x, v = mx.sym.Variable("x"), mx.sym.Variable("v")
    with mx.AttrScope(ctx_group="a"):
        y = mx.sym.exp(x)
    with mx.AttrScope(ctx_group="b"):
        z = mx.sym.broadcast_mul(y, v)
    groups = {"a": mx.cpu(1), "b": mx.cpu(2)}
    for at in ({"x": mx.cpu(1), "v": mx.cpu(2)}, {"x": mx.cpu(2), "v": mx.cpu(0)}, {"x": mx.cpu(0), "v": mx.cpu(0)}):
        args, grads = ({n: f((2,), ctx=c) for n, c in at.items()} for f in (mx.nd.ones, mx.nd.zeros))
        ex = z.bind(mx.cpu(0), args, args_grad=grads, group2ctx=groups)
        out = ex.forward(is_train=True)[0]
        ex.backward(mx.nd.ones((2,), ctx=out.context))
        assert out.context == mx.cpu(2)
        for n in at:
            np.testing.assert_allclose(grads[n].asnumpy(), [np.e] * 2, rtol=1e-6)
    with pytest.raises(
        ValueError, match=r"args 'x' lives on cpu\(3\), the executor on cpu\(0\) or cpu\(1\) or cpu\(2\)"
    ):
        z.bind(mx.cpu(0), {"x": mx.nd.ones((2,), ctx=mx.cpu(3)), "v": mx.nd.ones((2,))}, group2ctx=groups)
    with pytest.raises(ValueError, match="args_grad 'x' lives on"):
        z.bind(
            mx.cpu(0),
            {n: mx.nd.ones((2,)) for n in at},
            args_grad={"x": mx.nd.ones((2,), ctx=mx.cpu(1))},
            group2ctx=groups,
        )
