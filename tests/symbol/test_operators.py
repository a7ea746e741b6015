"""Python's operators, methods and functions of symbols: which nodes they make, with the same numbers as arrays."""

import json

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError, NotImplementedForSymbol
from mxcore.ndarray.methods import OP_METHODS

S = mx.sym
X = np.array([[0.1, 0.7, 0.3], [0.9, 0.5, 0.2]], "float32")


def node(symbol):
    """(operator, parameters) of the node, as files hold them."""
    n = json.loads(symbol.tojson())["nodes"][-1]
    return n["op"], n.get("attrs", {})


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "%", "**", "==", "!=", ">", ">=", "<", "<="])
@pytest.mark.parametrize("form", ["a {} b", "a {} 2", "2 {} a"])
def test_pythons_operators(a, b, op, form):
    text = form.format(op)
    x, y = mx.nd.array(X), mx.nd.array(X[::-1].copy() + 1)
    s = eval(text, {"a": a, "b": b})
    got = s.eval(**{n: v for n, v in (("a", x), ("b", y)) if n in s.list_arguments()})[0]
    assert got.asnumpy().tolist() == eval(text, {"a": x, "b": y}).asnumpy().tolist()


def test_negative_and_abs(a):
    assert node(-a) == ("_mul_scalar", {"scalar": "-1.0"}) and node(abs(a)) == ("abs", {})
    assert abs(-a).eval(a=mx.nd.array([-1.5]))[0].asnumpy().tolist() == [1.5]


@pytest.mark.parametrize("other", ["x", None, [1]])
def test_other_operands_are_refused(a, other):
    with pytest.raises(TypeError, match="unsupported operand"):
        a + other


ARGUMENTS = {
    "argmax_channel": {},
    "broadcast_axes": dict(axis=0, size=4),
    "broadcast_to": dict(shape=(4, 3)),
    "clip": dict(a_min=0.2, a_max=0.6),
    "depth_to_space": dict(block_size=2),
    "space_to_depth": dict(block_size=2),
    "one_hot": dict(depth=3),
    "pad": dict(mode="constant", pad_width=(0, 0, 0, 0, 1, 1, 0, 1)),
    "repeat": dict(repeats=2),
    "slice": dict(begin=(0, 1), end=(2, 3)),
    "slice_axis": dict(axis=1, begin=0, end=2),
    "split": dict(num_outputs=3, axis=1),
    "swapaxes": dict(dim1=0, dim2=1),
    "tile": dict(reps=(2, 1)),
    "expand_dims": dict(axis=1),
    "diag": dict(k=1),
    "topk": dict(k=2),
    "flip": dict(axis=1),
    "transpose": dict(axes=(1, 0)),
    "sum": dict(axis=1),
    "norm": dict(axis=1),
}
SHAPES = {
    "broadcast_axes": (1, 3),
    "broadcast_to": (1, 3),
    "depth_to_space": (1, 4, 2, 3),
    "space_to_depth": (1, 1, 2, 4),
    "pad": (1, 1, 2, 2),
    "arccosh": "greater",
}
TWO = {"broadcast_like", "reshape_like", "slice_like", "take", "pick"}


@pytest.mark.parametrize("name", sorted(OP_METHODS))
def test_methods_compute_what_those_of_arrays_do(a, b, name):
    shape = SHAPES.get(name, X.shape)
    host = X + 1 if shape == "greater" else np.resize(X, shape).astype("float32")
    second = np.array([0, 1], "float32") if name in ("take", "pick") else X
    x, y, kw = mx.nd.array(host), mx.nd.array(second), ARGUMENTS.get(name, {})
    s = getattr(a, name)(*[b] * (name in TWO), **kw)
    want = getattr(x, name)(*[y] * (name in TWO), **kw)
    got = s.eval(a=x, **({"b": y} if name in TWO else {}))
    want = want if isinstance(want, list) else [want]
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.shape == w.shape and g.dtype == w.dtype
        np.testing.assert_allclose(g.asnumpy(), w.asnumpy(), rtol=1e-5)


@pytest.mark.parametrize(
    "make, want",
    [
        (lambda a: a.reshape((3, 2)), ("Reshape", {"shape": "(3, 2)"})),
        (lambda a: a.reshape(3, 2), ("Reshape", {"shape": "(3, 2)"})),
        (lambda a: a.reshape(shape=(0, -1), reverse=True), ("Reshape", {"shape": "(0, -1)", "reverse": "True"})),
        (lambda a: a.astype("float16"), ("Cast", {"dtype": "float16"})),
        (lambda a: a.astype(float), ("Cast", {"dtype": "float64"})),
        (lambda a: a.squeeze(), ("squeeze", {"axis": "None"})),
        (lambda a: a.expand_dims(0, inplace=True), ("expand_dims", {"axis": "0"})),
        (lambda a: a.flatten(inplace=True), ("Flatten", {})),
        (lambda a: a.diag(), ("diag", {"k": "0"})),
        (
            lambda a: a.split_v2(2),
            ("_split_v2", {"axis": "0", "indices": "[]", "sections": "2", "squeeze_axis": "False"}),
        ),
        (
            lambda a: S.split_v2(a, (1, 2), axis=1),
            ("_split_v2", {"axis": "1", "indices": "[0, 1, 2]", "sections": "0", "squeeze_axis": "False"}),
        ),
        (lambda a: S.maximum(a, 1), ("_maximum_scalar", {"scalar": "1"})),
        (lambda a: S.maximum(1, a), ("_maximum_scalar", {"scalar": "1"})),
        (lambda a: S.minimum(a, a), ("_minimum", {})),
        (lambda a: S.hypot(2, a), ("_hypot_scalar", {"scalar": "2"})),
        (lambda a: S.pow(a, 2), ("_power_scalar", {"scalar": "2"})),
        (lambda a: S.power(2, a), ("_rpower_scalar", {"scalar": "2"})),
        (lambda a: S.zeros(3), ("_zeros", {"dtype": "float32", "shape": "3"})),
        (lambda a: S.ones((2, 3), dtype="int32"), ("_ones", {"dtype": "int32", "shape": "(2, 3)"})),
        (lambda a: S.full((2,), 5), ("_full", {"dtype": "float32", "shape": "(2,)", "value": "5.0"})),
        (
            lambda a: S.arange(5),
            (
                "_arange",
                {
                    "dtype": "float32",
                    "infer_range": "False",
                    "repeat": "1",
                    "start": "5",
                    "step": "1.0",
                    "stop": "None",
                },
            ),
        ),
        (
            lambda a: S.linspace(0, 1, 5),
            ("_linspace", {"dtype": "float32", "endpoint": "True", "num": "5", "start": "0", "stop": "1"}),
        ),
        (lambda a: S.eye(3), ("_eye", {"M": "0", "N": "3", "dtype": "float32", "k": "0"})),
        (lambda a: S.histogram(a, bins=4, range=(0, 1)), ("_histogram", {"bin_cnt": "4", "range": "(0, 1)"})),
        (lambda a: S.histogram(a, bins=a), ("_histogram", {})),
        (lambda a: S.random.uniform(0, 1, shape=(2,)), ("_random_uniform", {"low": "0", "high": "1", "shape": "(2,)"})),
        (lambda a: S.random.uniform(a, a, shape=(2,)), ("_sample_uniform", {"shape": "(2,)"})),
        (lambda a: S.random.exponential(2.0), ("_random_exponential", {"lam": "0.5"})),
        (lambda a: S.random.randn(2, 3, loc=1), ("_random_normal", {"loc": "1", "scale": "1", "shape": "(2, 3)"})),
        (lambda a: S.random.randint(0, 5, shape=(2,)), ("_random_randint", {"low": "0", "high": "5", "shape": "(2,)"})),
        (lambda a: S.random.multinomial(a), ("_sample_multinomial", {"get_prob": "True", "dtype": "int32"})),
        (lambda a: S.random.shuffle(a), ("_shuffle", {})),
        (lambda a: S.random.poisson(3), ("_random_poisson", {"lam": "3"})),
        (lambda a: S.random.gamma(1, 2), ("_random_gamma", {"alpha": "1", "beta": "2"})),
        (lambda a: S.random.negative_binomial(1, 0.5), ("_random_negative_binomial", {"k": "1", "p": "0.5"})),
        (
            lambda a: S.random.generalized_negative_binomial(1, 0.5),
            ("_random_generalized_negative_binomial", {"mu": "1", "alpha": "0.5"}),
        ),
        (lambda a: S.random.normal(a, a, dtype="float64"), ("_sample_normal", {"dtype": "float64"})),
    ],
)
def test_nodes_are_mxnets(a, make, want):
    assert node(make(a)) == want


@pytest.mark.parametrize(
    "make, want",
    [
        (lambda x: S.arange(3), [0, 1, 2]),
        (lambda x: S.arange(1, 5, 2, repeat=2), [1, 1, 3, 3]),
        (lambda x: S.arange(2, step=3, infer_range=True) + x, [2, 5, 8, 11]),
        (lambda x: S.arange(2, repeat=2, infer_range=True) + x, [2, 2, 3, 3]),
        (lambda x: S.linspace(0, 1, 4, endpoint=False), [0, 0.25, 0.5, 0.75]),
        (lambda x: S.full(2, 7), [7, 7]),
        (lambda x: S.zeros((0,)) + x, [0, 0, 0, 0]),
        (lambda x: S.eye(2, 3, k=1), [[0, 1, 0], [0, 0, 1]]),
        (lambda x: S.split_v2(x, (1, 3))[1], [0, 0]),
        (lambda x: S.histogram(x, bins=2, range=(-1, 1))[0], [0, 4]),
        (lambda x: S.hypot(x + 3, 4), [5, 5, 5, 5]),
    ],
)
def test_functions_compute(a, make, want):
    s = make(a)
    got = s.eval(**({"a": mx.nd.zeros(4)} if s.list_arguments() else {}))[0]
    np.testing.assert_allclose(got.asnumpy(), want)


def test_random_symbols_draw():
    mx.random.seed(3)
    s = S.random.normal(5, 2, shape=(2000,))
    y = s.eval()[0].asnumpy()
    assert abs(y.mean() - 5) < 0.2 and abs(y.std() - 2) < 0.2 and not np.array_equal(s.eval()[0].asnumpy(), y)


def test_two_numbers_give_a_number():
    assert (S.pow(2, 3), S.maximum(2, 3), S.minimum(2, 3), S.hypot(3, 4)) == (8, 3, 2, 5.0)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda a: S.maximum("a", a), "maximum takes Symbols and numbers, got str and Symbol"),
        (lambda a: S.histogram(a), "give the range"),
        (lambda a: S.split_v2(a, 1.5), "must be an int or a tuple of ints, got 1.5"),
        (lambda a: S.random.normal(a, 1), "must be all numbers or all Symbols, got Symbol, int"),
        (lambda a: S.random.uniform("x", 1), "must be all numbers or all Symbols, got str, int"),
        (lambda a: S.arange(0, infer_range=True).eval(), "with infer_range the consumer's shape is needed"),
    ],
)
def test_wrong_arguments_are_explained(a, call, text):
    with pytest.raises(MXNetError, match=text):
        call(a)


@pytest.mark.parametrize(
    "name", ["as_in_context", "asnumpy", "asscalar", "backward", "copy", "detach", "wait_to_read", "__bool__"]
)
def test_a_symbol_has_no_numbers(a, name):
    with pytest.raises(NotImplementedForSymbol, match=f"{name}.* needs numbers, which a Symbol does not have"):
        getattr(a, name)()


def test_other_small_members(a, fc):
    assert a.as_nd_ndarray() is a and a.handle == a[0].handle != fc.handle


def test_the_text_for_people(fc):
    assert fc.debug_str() == (
        "Symbol Outputs:\n\toutput[0]=fc(0)\nVariable:data\nVariable:fc_weight\n"
        "Variable:fc_bias\n--------------------\nOp:FullyConnected, Name=fc\nInputs:\n\targ[0]=data(0) version=0\n"
        "\targ[1]=fc_weight(0) version=0\n\targ[2]=fc_bias(0) version=0\nAttrs:\n\tnum_hidden=3\n"
    )
    assert S.Variable("v").debug_str() == "Variable:v\n" and S.zeros(2).debug_str() == "AtomicFunctor  Op:_zeros\n"
