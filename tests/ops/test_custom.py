"""Operators written in Python, beyond what the golden numbers of MXNet show."""
import numpy as np
import pytest

import mxcore as mx


def declare(name, forward, backward=None, **methods):
    """Register an operator around two functions."""
    class Worker(mx.operator.CustomOp):
        pass

    Worker.forward = forward
    if backward is not None:
        Worker.backward = backward
    made = []

    def create_operator(self, ctx, shapes, dtypes):
        made.append((shapes, dtypes))
        return Worker()

    mx.operator.register(name)(type("Prop", (mx.operator.CustomOpProp,), {"create_operator": create_operator, **methods}))
    return made


def times(n):
    """A forward that multiplies."""
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * n)

    return forward


def test_a_new_class_takes_the_place_of_an_old_one():
    for n in (1, 2):
        declare("t_again", times(n))
        assert mx.nd.Custom(mx.nd.ones((2,)), op_type="t_again").asnumpy().tolist() == [n, n]


def test_two_dtypes_pass_the_default_rule():
    declare("t_pick", lambda self, is_train, req, in_data, out_data, aux: self.assign(out_data[0], req[0], mx.nd.pick(*in_data)),
            list_arguments=lambda self: ["data", "label"], infer_shape=lambda self, s: (s, [s[0][:1]], []))
    y = mx.nd.Custom(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([1, 0], dtype="int32"), op_type="t_pick")
    assert y.asnumpy().tolist() == [2, 3] and y.dtype == np.float32


def test_create_operator_hears_of_states_too():
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] + aux[0])

    made = declare("t_state", forward, list_auxiliary_states=lambda self: ["s"], infer_shape=lambda self, s: (s, s, [[1]]))
    mx.nd.Custom(mx.nd.ones((2, 3)), mx.nd.ones((1,)), op_type="t_state")
    assert made == [([[2, 3], [1]], [np.float32, np.float32])]


def test_a_bound_operator_is_told_which_gradients_nobody_wants():
    told = []

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        told.append((list(req), mx.autograd.is_training(), mx.autograd.is_recording()))
        for i in range(2):
            self.assign(in_grad[i], req[i], out_grad[0] * (i + 2))

    declare("t_req", times(1), backward, list_arguments=lambda self: ["a", "b"])
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    ex = mx.sym.Custom(a, b, op_type="t_req").simple_bind(mx.cpu(), a=(2,), b=(2,), grad_req={"a": "null", "b": "add"})
    for _ in range(2):
        ex.forward(is_train=True)
        ex.backward(mx.nd.ones((2,)))
    assert told == [(["null", "write"], True, False)] * 2
    assert ex.grad_dict["a"] is None and ex.grad_dict["b"].asnumpy().tolist() == [6, 6]


def test_shapes_go_through_a_rule_that_needs_to_know_more():
    def infer_shape(self, shapes):
        n, c = shapes[0]  # fails for an unknown shape
        return [(n, c), (c,)], [(n,)], []

    declare("t_more", lambda self, is_train, req, in_data, out_data, aux: self.assign(out_data[0], req[0], mx.nd.dot(*in_data)),
            list_arguments=lambda self: ["data", "w"], infer_shape=infer_shape)
    s = mx.sym.Custom(mx.sym.Variable("x") * 2, op_type="t_more", name="m")
    assert s.infer_shape(x=(4, 3)) == ([(4, 3), (3,)], [(4,)], [])
    with pytest.raises(ValueError, match="to unpack"):
        s.infer_shape(x=(4, 3, 2), m_w=(3,))


def test_rules_that_count_wrongly_are_named():
    declare("t_count", times(1), infer_shape=lambda self, s: (s, [s[0], s[0]], []))
    with pytest.raises(ValueError, match=r"infer_shape of Prop returned 2 shapes of outputs, there are 1: \['output'\]"):
        mx.nd.Custom(mx.nd.ones((2,)), op_type="t_count")
    declare("t_types", times(1), infer_type=lambda self, t: ([], t, []))
    with pytest.raises(ValueError, match="infer_type of Prop returned 0 types of arguments"):
        mx.nd.Custom(mx.nd.ones((2,)), op_type="t_types")
