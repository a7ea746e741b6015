"""Operators in Python of before `CustomOp`, and what `mx.operator` tells of all operators."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError

pytestmark = pytest.mark.filterwarnings("ignore:NumpyOp and NDArrayOp:DeprecationWarning")


class NumpySoftmax(mx.operator.NumpyOp):
    """The softmax loss of MXNet's first tutorials."""

    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], (in_shape[0][0],)], [in_shape[0]]

    def forward(self, in_data, out_data):
        x, y = in_data[0], out_data[0]
        assert type(x) is type(y) is np.ndarray
        y[:] = np.exp(x - x.max(axis=1, keepdims=True))
        y /= y.sum(axis=1, keepdims=True)

    def backward(self, out_grad, in_data, out_data, in_grad):
        dx, label = in_grad[0], in_data[1].astype(int)
        dx[:] = out_data[0]
        dx[np.arange(label.size), label] -= 1


class Twice(mx.operator.NDArrayOp):
    def forward(self, in_data, out_data):
        assert isinstance(in_data[0], mx.nd.NDArray)
        out_data[0][:] = in_data[0] * 2

    def backward(self, out_grad, in_data, out_data, in_grad):
        in_grad[0][:] = out_grad[0] * 2


@pytest.mark.parametrize("req", ["write", "add"])
def test_a_numpy_op_is_the_softmax_loss(req):
    data = mx.sym.Variable("data")
    old, new = NumpySoftmax()(data=data, name="softmax"), mx.sym.SoftmaxOutput(data, name="softmax")
    assert (
        (old.list_arguments(), old.list_outputs())
        == (new.list_arguments(), new.list_outputs())
        == (["data", "softmax_label"], ["softmax_output"])
    )
    found = []
    for net in (old, new):
        bound = net.simple_bind(mx.cpu(), grad_req=req, data=(2, 3))
        bound.arg_dict["data"][:] = mx.nd.array([[1, 2, 3], [0, 0, 1]])
        bound.arg_dict["softmax_label"][:] = mx.nd.array([0, 2])
        for _ in range(2):
            bound.forward(is_train=True)
            bound.backward()
        found.append([bound.outputs[0].asnumpy(), bound.grad_dict["data"].asnumpy()])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_an_ndarray_op_among_others():
    twice = Twice()
    x = mx.sym.Variable("x")
    with mx.name.NameManager():
        net = twice(twice.get_symbol(x) + 1, name="n")
    assert net.list_outputs() == ["n_output"] and "_ndarray0_output" in net.get_internals().list_outputs()
    bound = net.simple_bind(mx.cpu(), x=(2,))
    bound.arg_dict["x"][:] = 3
    assert bound.forward(is_train=True)[0].asnumpy().tolist() == [14, 14]
    bound.backward([mx.nd.ones(2)])
    assert bound.grad_dict["x"].asnumpy().tolist() == [4, 4]
    assert twice.declare_backward_dependency([0], [1], [2]) == [0, 1, 2]
    assert mx.operator.NDArrayOp(need_top_grad=False).declare_backward_dependency([0], [1], [2]) == [1, 2]


def test_what_an_old_operator_does_unless_told():
    class Plain(mx.operator.NumpyOp):
        pass

    bound = Plain()(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(2, 3))
    bound.arg_dict["x"][:] = 5
    assert (bound.forward(is_train=True)[0].asnumpy() == 5).all()
    bound.backward([mx.nd.zeros((2, 3))])
    assert (bound.grad_dict["x"].asnumpy() == 1).all()


def test_the_base_alone_makes_no_symbol():
    with pytest.raises(NotImplementedError, match="derive from NumpyOp, NDArrayOp or CustomOp"):
        mx.operator.PythonOp()(mx.sym.Variable("x"))


def test_errors_name_the_class_and_the_line():
    class Broken(mx.operator.NumpyOp):
        def forward(self, in_data, out_data):
            out_data[0][:] = in_data[1]

    bound = Broken()(mx.sym.Variable("x"), name="b").simple_bind(mx.cpu(), x=(2,))
    with pytest.raises(IndexError, match=r"(?s)forward of the custom operator '_native_Broken_\d+'.*test_python_op.py"):
        bound.forward()[0].asnumpy()


def test_the_old_way_is_deprecated():
    with pytest.warns(DeprecationWarning, match="use mx.operator.CustomOp"):
        Twice()


@pytest.mark.parametrize(
    "name, names, types",
    [  # as MXNet 1.9.1 tells it
        (
            "Activation",
            ["data", "act_type"],
            ["NDArray-or-Symbol", "{'relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'}, required"],
        ),
        ("Concat", ["data", "num_args", "dim"], ["NDArray-or-Symbol[]", "int, required", "int, optional, default='1'"]),
        (
            "FullyConnected",
            ["data", "weight", "bias", "num_hidden", "no_bias", "flatten"],
            ["NDArray-or-Symbol"] * 3
            + ["int, required", "boolean, optional, default=0", "boolean, optional, default=1"],
        ),
        (
            "sgd_mom_update",
            ["weight", "grad", "mom", "lr", "momentum", "wd", "rescale_grad", "clip_gradient", "lazy_update"],
            ["NDArray-or-Symbol"] * 3
            + [
                "float, required",
                "float, optional, default=0",
                "float, optional, default=0",
                "float, optional, default=1",
                "float, optional, default=-1",
                "boolean, optional, default=1",
            ],
        ),
        ("clip", ["data", "a_min", "a_max"], ["NDArray-or-Symbol", "float, required", "float, required"]),
    ],
)
def test_arguments_of_operators(name, names, types):
    assert mx.operator.get_operator_arguments(name) == (len(names), names, types)
    assert name in mx.operator.get_all_registered_operators()


def test_arguments_of_no_operator():
    with pytest.raises(MXNetError, match="FullyConected"):
        mx.operator.get_operator_arguments("FullyConected")


@pytest.mark.parametrize(
    "methods", [{"need_top_grad": False}, {"declare_backward_dependency": lambda self, dys, ins, outs: outs}], ids=list
)
def test_a_custom_loss_needs_no_gradient_from_above(methods):
    class Loss(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0])

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_data[0] * 3)

    class Prop(mx.operator.CustomOpProp):
        def __init__(self):
            super().__init__(methods.get("need_top_grad", True))

        if "declare_backward_dependency" in methods:
            declare_backward_dependency = methods["declare_backward_dependency"]

        def create_operator(self, ctx, shapes, dtypes):
            return Loss()

    mx.operator.register("t_loss")(Prop)
    bound = mx.sym.Custom(mx.sym.Variable("data"), op_type="t_loss").simple_bind(mx.cpu(), data=(2,))
    bound.arg_dict["data"][:] = 3
    bound.forward(is_train=True)
    bound.backward()
    assert bound.grad_dict["data"].asnumpy().tolist() == [9, 9]
