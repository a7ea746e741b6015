"""Shapes and types of symbols: both ways, in part, with explanations."""

import json

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError

S = mx.sym
F16, F32, F64, I8, I32 = np.float16, np.float32, np.float64, np.int8, np.int32


def test_shapes_by_position_and_by_name(fc):
    want = ([(2, 5), (3, 5), (3,)], [(2, 3)], [])
    assert fc.infer_shape((2, 5)) == fc.infer_shape(data=(2, 5)) == fc.infer_shape(data=[2, 5]) == want
    assert fc.infer_shape((2, 0), (0, 5), None) == want


def test_shapes_from_outputs_and_attributes(a, b):
    assert (S.transpose(a) + b).infer_shape(b=(4, 3))[0] == [(3, 4), (4, 3)]
    q = S.Variable("q", shape=(2, 0))
    assert (q + a).infer_shape(a=(0, 3)) == ([(2, 3), (2, 3)], [(2, 3)], [])
    assert q.infer_shape(q=(4, 3))[0] == [(4, 3)]  # what is given now goes first
    assert S.BatchNorm(a).infer_shape(a=(2, 7, 4))[2] == [(7,), (7,)]


@pytest.mark.parametrize(
    "a, b, c, more",
    [
        ((2, 3), (3, 4), (2, 4), {}),
        ((5, 3, 2), (5, 4, 3), (5, 2, 4), {"transpose_a": True, "transpose_b": True}),
        ((2, 5, 3), (3, 5, 4), (2, 5, 4), {"axis": 0}),
    ],
)
def test_shapes_of_what_is_added_to_a_product(a, b, c, more):
    v = S.Variable
    added = S.linalg.gemm(v("a"), v("b"), v("c"), **more)
    assert added.infer_shape(a=a, b=b) == ([a, b, c], [c], [])
    assert added.simple_bind(mx.cpu(), a=a, b=b).forward()[0].shape == c
    with pytest.raises(MXNetError, match="C .* must have the shape of the product"):
        added.infer_shape(a=a, b=b, c=(*c[:-1], 9))


def test_shapes_of_factors_from_either_side(a, b):
    L = S.linalg
    for f in (L.potrf, L.potri, L.inverse):
        assert (f(a) + f(b)).infer_shape(a=(2, 2)) == ([(2, 2), (2, 2)], [(2, 2)], [])
    with pytest.raises(MXNetError, match="square"):
        (L.inverse(a) + b).infer_shape(b=(2, 3))
    assert L.gemm(a, b, S.Variable("c")).infer_shape_partial(a=(2, 3), b=(3, 0)) == (
        [(2, 3), (3, 0), (2, 0)],
        [(2, 0)],
        [],
    )
    assert L.syrk(a).infer_shape_partial(a=(2, 0)) == ([(2, 0)], [(2, 2)], [])


def test_what_cannot_be_decided_is_warned_of(fc):
    with pytest.warns(
        UserWarning,
        match=r"cannot decide the shapes of data \(\), fc_weight \(\), "
        r"fc_bias \(\) \(0 is an unknown dimension\); give them too",
    ):
        assert fc.infer_shape() == (None, None, None)
    assert fc.infer_shape_partial() == ([(), (), ()], [()], [])
    with pytest.warns(UserWarning, match="cannot decide the types of data, fc_weight, fc_bias"):
        assert fc.infer_type() == (None, None, None)
    assert fc.infer_type_partial() == ([None] * 3, [None], [])


def test_zero_is_a_dimension_under_np_shape(a, b):
    with mx.util.np_shape(True):
        assert (a + b).infer_shape_partial() == ([None, None], [None], [])
        assert (a + b).infer_shape_partial(a=(-1, 3)) == ([(-1, 3)] * 2, [(-1, 3)], [])
        assert (a + b).infer_shape(a=(0, 3)) == ([(0, 3)] * 2, [(0, 3)], [])
        assert (a + b).infer_shape(a=()) == ([(), ()], [()], [])


def test_types(fc, a, b):
    assert fc.infer_type("float16") == fc.infer_type(fc_bias=F16) == ([F16] * 3, [F16], [])
    assert S.Embedding(a, input_dim=3, output_dim=2).infer_type(a="int32") == ([I32, F32], [F32], [])
    assert S.BatchNorm(a).infer_type(a="float16") == ([F16, F32, F32], [F16], [F32, F32])
    assert (S.Variable("q", dtype="int8") + a).infer_type() == ([I8, I8], [I8], [])
    assert S.Group([a + b, S.cast(b, dtype="int8")]).infer_type(a=F64) == ([F64, F64], [F64, I8], [])
    assert S.cast(a, dtype="int32").infer_type_partial() == ([None], [I32], [])


def test_contradictions_say_what_came_from_where():
    x = S.tanh(S.Variable("x"), name="bent")
    net = S.FullyConnected(x, S.Variable("w", shape=(4, 5)), num_hidden=3, name="fc")
    with pytest.raises(
        ValueError,
        match=r"operator FullyConnected of node 'fc': weight is \(4, 5\).*\(3, 7\).*inputs: data \(2, 7\), "
        r"weight \(4, 5\).*where from: data \('bent'\) follows from 'bent', weight \('w'\) is an attribute of 'w'",
    ):
        net.infer_shape(x=(2, 7))
    with pytest.raises(
        TypeError, match=r"node 'sum': inconsistent dtypes: .*where from: lhs \('x'\) was given, rhs \('y'\) was given"
    ):
        S.elemwise_add(S.Variable("x"), S.Variable("y"), name="sum").infer_type(x="float32", y="int32")
    twice = S.elemwise_add(S.transpose(S.Variable("x"), name="turned"), S.Variable("x2"), name="sum")
    with pytest.raises(ValueError, match=r"lhs \('turned'\) follows from 'turned', rhs \('x2'\) was given"):
        twice.infer_shape(x=(2, 3), x2=(2, 3))


def test_one_input_fed_twice_is_explained_too():
    x = S.Variable("x")
    with pytest.raises(MXNetError, match=r"node 'product': .*lhs \('x'\) was given"):
        S.dot(x, x, name="product").infer_shape(x=(2, 3))


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (
            lambda s: s.infer_shape(dta=(2, 3)),
            ValueError,
            "no argument is named 'dta', did you mean 'data'.*there are: data, fc_weight, fc_bias",
        ),
        (lambda s: s.infer_type(nope="int8"), ValueError, "no argument is named 'nope'"),
        (lambda s: s.infer_shape((2, 3), data=(2, 3)), ValueError, "by position or by name, not both"),
        (
            lambda s: s.infer_shape((1,), (1,), (1,), (1,)),
            ValueError,
            "4 shapes or types for 3 arguments: data, fc_weight, fc_bias",
        ),
        (lambda s: s.infer_shape(data="foo"), TypeError, "argument 'data': a shape is a tuple of ints, got 'foo'"),
        (lambda s: s.infer_shape(data=3.5), TypeError, "argument 'data': a shape is a tuple of ints, got 3.5"),
        (lambda s: s.infer_type(data="floof"), TypeError, "argument 'data': unknown dtype 'floof'"),
        (
            lambda s: s(data=S.Variable("v", __shape__="(2,")).infer_shape(),
            ValueError,
            r"variable 'v': attribute __shape__='\(2,' cannot be read",
        ),
        (
            lambda s: s(data=S.Variable("v", __dtype__="99")).infer_type(),
            ValueError,
            "variable 'v': attribute __dtype__='99' cannot be read",
        ),
    ],
)
def test_wrong_arguments_are_explained(fc, call, kind, text):
    with pytest.raises(kind, match=text) as e:
        call(fc)
    assert isinstance(e.value, MXNetError)


def test_binding_ignores_shapes_of_others(fc):
    ex = fc.simple_bind(mx.cpu(), data=(2, 5), softmax_label=(2,))
    assert ex.forward()[0].shape == (2, 3)


def test_binding_without_a_context_takes_the_current_one(fc):
    with mx.cpu(1):
        assert fc.simple_bind(data=(2, 5)).arg_dict["fc_weight"].context == mx.cpu(1)


def test_eval_takes_states_by_name_too(a):
    bn = S.BatchNorm(a, name="bn", fix_gamma=False, eps=0)
    ones = {n: mx.nd.ones(2) for n in ("bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var")}
    assert bn.eval(a=mx.nd.array([[3.0, 5.0]]), **ones)[0].asnumpy().tolist() == [[3.0, 5.0]]
    with pytest.raises(MXNetError, match="lacks 'bn_gamma', 'bn_beta'"):
        bn.eval(a=mx.nd.ones((1, 2)))


def test_two_variables_of_one_name_cannot_be_bound():
    s = S.Variable("x") + S.Variable("x")
    assert s.infer_shape(x=(2,))[0] == [(2,), (2,)]
    with pytest.raises(MXNetError, match="two arguments are named 'x'"):
        s.eval(x=mx.nd.ones(2))


def test_what_is_unknown_altogether_and_what_is_known_in_part(a, b, fc):
    c = S.Variable("c")
    for s, given, want in (
        (S.Convolution(a, kernel=(3, 3), num_filter=4), {}, ([(), (), ()], [()], [])),
        (S.BatchNorm(a), {}, ([(), (), ()], [()], [(), ()])),
        (S.where(c, a, b), {"a": (0, 3)}, ([(), (0, 3), ()], [()], [])),
        (S.where(c, a, b), {"a": (2, 3), "c": (2,)}, ([(2,), (2, 3), (2, 3)], [(2, 3)], [])),
        (S.dot(a, b), {"a": (0, 3), "b": (3, 4)}, ([(0, 3), (3, 4)], [(0, 4)], [])),
        (S.sum(a, axis=0), {"a": (0, 4)}, ([(0, 4)], [(4,)], [])),
        (S.ones(shape=[-1, 3]) + a, {}, ([(0, 3)], [(0, 3)], [])),
        (S.ones(shape=[-1, 3]) + a, {"a": (2, 0)}, ([(2, 3)], [(2, 3)], [])),
    ):
        assert s.infer_shape_partial(**given) == want
    with mx.util.np_shape():
        assert fc.infer_shape_partial() == ([None, None, None], [None], [])
        assert S.dot(a, b).infer_shape_partial(a=(-1, 3), b=(3, 4)) == ([(-1, 3), (3, 4)], [(-1, 4)], [])
        assert S.dot(a, b).infer_shape(a=(0, 3), b=(3, 4)) == ([(0, 3), (3, 4)], [(0, 4)], [])


@pytest.mark.parametrize("unknown", [-1, 0])
def test_variables_with_unknown_dimensions_are_filled_both_ways(a, unknown):
    x = S.Variable("x", shape=(128, unknown))
    assert (x + a).infer_shape(a=(128, 4)) == ([(128, 4)] * 2, [(128, 4)], [])
    assert (x + S.Variable("y", shape=(unknown, 4))).infer_shape() == ([(128, 4)] * 2, [(128, 4)], [])
    dense = S.FullyConnected(x, num_hidden=3, name="f")
    assert (
        dense.infer_shape(f_weight=(3, 5))
        == dense.infer_shape(x=(128, 5))
        == ([(128, 5), (3, 5), (3,)], [(128, 3)], [])
    )


def test_graphs_say_under_which_meaning_of_zero_they_were_made(b):
    y = S.Variable("x", shape=(128, 0)) + b
    old = y.tojson()
    assert "is_np_shape" not in old
    with mx.util.np_shape():
        new = (S.Variable("x", shape=(0, 3)) + b).tojson()
        assert json.loads(new)["attrs"] == {"is_np_shape": ["int", 1], "mxnet_version": ["int", 10901]}
        assert S.load_json(new).infer_shape() == ([(0, 3)] * 2, [(0, 3)], [])
        assert S.load_json(old).infer_shape(b=(128, 3))[1] == [(128, 3)]  # 0 was unknown there
    assert S.load_json(old).infer_shape(b=(128, 3))[1] == [(128, 3)]


def test_shapes_that_python_2_wrote():
    x = S.Variable("x", __shape__="(2L, 3L)")
    assert S.FullyConnected(x, num_hidden=4, no_bias=True, name="fc").infer_shape() == ([(2, 3), (4, 3)], [(2, 4)], [])


def test_shapes_have_no_more_dimensions_than_arrays():
    """A file of many `expand_dims` would else take quadratic time and memory."""
    x = mx.sym.Variable("x")
    for _ in range(63):
        x = mx.sym.expand_dims(x, axis=0)
    assert x.infer_shape(x=(1,))[1] == [(1,) * 64]
    with pytest.raises(mx.MXNetError, match="there is no array of shape"):
        mx.sym.expand_dims(x, axis=0).infer_shape(x=(1,))
