"""Groups of nodes on contexts of their own: group2ctx."""

import itertools

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


class Scaled(mx.operator.CustomOp):
    """Its state moves in training; what backward reads of it lies where the operator is."""

    def forward(self, is_train, req, in_data, out_data, aux):
        if is_train:
            aux[0][:] = aux[0] + in_data[0]
        self.assign(out_data[0], req[0], in_data[0] * in_data[1])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * in_data[1] + out_data[0])
        self.assign(in_grad[1], req[1], out_grad[0] * in_data[0] * aux[0])


@mx.operator.register("test_place_scaled")
class ScaledProp(mx.operator.CustomOpProp):
    def list_arguments(self):
        return ["x", "y"]

    def list_auxiliary_states(self):
        return ["state"]

    def infer_shape(self, shapes):
        return shapes, shapes[:1], shapes[:1]

    def create_operator(self, ctx, shapes, dtypes):
        return Scaled()


#: Operators that keep a state for their backward, of two inputs.
STATEFUL = {
    "foreach": lambda a, b: sym.broadcast_add(
        *sym.contrib.foreach(lambda d, s: (d * s, sym.tanh(s + d)), a, sym.sum(b, axis=0))
    ),
    "while_loop": lambda a, b: sym.contrib.while_loop(
        lambda i, s: i < 2, lambda i, s: ([], (i + 1, sym.tanh(s * a + b))), (sym.zeros((1,)), a), max_iterations=3
    )[1][1],
    "cond": lambda a, b: sym.contrib.cond(sym.sum(a) > 0, lambda: a * b, lambda: a - b),
    "Custom": lambda a, b: sym.Custom(a, b, sym.Variable("state"), op_type="test_place_scaled"),
    "two after one another": lambda a, b: STATEFUL["foreach"](a, STATEFUL["Custom"](a, b)),
}


@pytest.mark.parametrize("places", [*itertools.product(range(2), repeat=3)], ids=lambda p: "".join(map(str, p)))
@pytest.mark.parametrize("make", STATEFUL.values(), ids=STATEFUL)
def test_operators_with_states_on_any_context(make, places):
    """Executor and two groups: forward and backward of a stateful operator are in one place, whatever else is where."""
    default, first, second = map(mx.cpu, places)
    x, y = sym.Variable("x"), sym.Variable("y")
    with mx.AttrScope(ctx_group="first"):
        z = sym.elemwise_mul(x, y)
    with mx.AttrScope(ctx_group="second"):
        z = make(sym.elemwise_add(z, x), y)
    net = sym.Group([sym.tanh(z), sym.square(x)])
    rs = np.random.RandomState(0)
    names = net.list_arguments()
    values = {n: rs.randn(3, 4).astype("float32") for n in [*names, *net.list_auxiliary_states()]}

    def run(default, groups, at, state_at):
        args = {n: mx.nd.array(values[n], ctx=at) for n in names}
        grads = {n: mx.nd.zeros((3, 4), ctx=at) for n in names}
        aux = {n: mx.nd.array(values[n], ctx=state_at) for n in net.list_auxiliary_states()}
        ex = net.bind(default, args, args_grad=grads, aux_states=aux, group2ctx=groups)
        found = []
        for is_train in (True, False, True):
            outs = ex.forward(is_train=is_train)
            for _ in range(2):
                ex.backward([mx.nd.array(values["x"], ctx=o.context) for o in outs])
                found += [a.asnumpy() for a in (*outs, *grads.values(), *aux.values())]
        return found

    expected = run(mx.cpu(), None, mx.cpu(), mx.cpu())
    for a, b in zip(run(default, {"first": first, "second": second}, default, second), expected):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


#: What writes to the variable 's', of shape (2, 3) or as is inferred.
WRITERS = {
    "BatchNorm": lambda x, s: sym.BatchNorm(x, *map(sym.Variable, "gb"), s, sym.Variable("v")),
    "Custom": lambda x, s: sym.Custom(x, x, s, op_type="test_place_scaled"),
    "sgd_mom_update": lambda x, s: sym.sgd_mom_update(sym.Variable("w"), x, s, lr=0.1, momentum=0.9),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_an_operator_writes_to_lives_where_it_is(name):
    """A copy would be moved in its place, and the variable never."""
    x, state = sym.Variable("x"), sym.Variable("s")
    with mx.AttrScope(ctx_group="a"):
        y = WRITERS[name](x, state)
    groups = {"a": mx.cpu(1)}
    shapes = {n: (2, 3) for n in y.list_arguments() if n in "xws"}
    ex = y.simple_bind(mx.cpu(), group2ctx=groups, grad_req="null", **shapes)
    where = {**ex.arg_dict, **ex.aux_dict}
    assert where["s"].context == mx.cpu(1) and where["x"].context == mx.cpu()
    where["x"][:] = 2
    ex.forward(is_train=True)
    if name != "BatchNorm":  # which moves its statistics in backward
        assert np.abs(where["s"].asnumpy()).sum() > 0
    away = {n: mx.nd.zeros(a.shape) if n == "s" else a for n, a in where.items()}
    with pytest.raises(ValueError, match=r"'s' lives on cpu\(0\), the executor on cpu\(1\)"):
        y.bind(
            mx.cpu(),
            {n: away[n] for n in y.list_arguments()},
            aux_states={n: away[n] for n in y.list_auxiliary_states()},
            grad_req="null",
            group2ctx=groups,
        )


def test_a_state_of_operators_on_two_contexts_is_refused():
    x, state = sym.Variable("x"), sym.Variable("s")
    for group in "ab":
        with mx.AttrScope(ctx_group=group):
            x = sym.Custom(x, x, state, op_type="test_place_scaled", name=group)
    assert x.simple_bind(mx.cpu(), x=(2, 3), group2ctx={"a": mx.cpu(1), "b": mx.cpu(1)}).aux_dict[
        "s"
    ].context == mx.cpu(1)
    with pytest.raises(ValueError, match=r"'s' is written to by 'a' on cpu\(1\) and by 'b' on cpu\(0\)"):
        x.simple_bind(mx.cpu(), x=(2, 3), group2ctx={"a": mx.cpu(1)})
