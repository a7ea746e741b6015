"""check_numeric_gradient: right gradients pass, wrong ones do not."""

import time

import numpy as np
import pytest

import mxcore as mx

t = mx.test_utils
a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
A, B = np.array([[0.5, -1.5, 2.0]]), np.array([[1.0, 3.0, -2.0]])


class _Scaled(mx.operator.CustomOp):
    """Twice the input, with a gradient of `slope`."""

    def __init__(self, slope):
        super().__init__()
        self.slope = slope

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * self.slope)


@mx.operator.register("test_utils_scaled")
class _ScaledProp(mx.operator.CustomOpProp):
    def __init__(self, slope):
        super().__init__()
        self.slope = float(slope)

    def create_operator(self, ctx, shapes, dtypes):
        return _Scaled(self.slope)


def scaled(slope):
    return mx.sym.Custom(a, op_type="test_utils_scaled", slope=slope)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, "float64"])
def test_right_gradients(dtype):
    for sym in (a * b, mx.sym.sin(a) / (b + 9), mx.sym.broadcast_maximum(a, b), mx.sym.dot(a, b, transpose_b=True)):
        t.check_numeric_gradient(sym, [A, B], dtype=dtype)


@pytest.mark.parametrize(("dtype", "wrong"), [(np.float16, 2.5), (np.float32, 2.01), (np.float64, 2.0001)])
def test_wrong_gradients(dtype, wrong):
    t.check_numeric_gradient(scaled(2), [A], dtype=dtype)
    with pytest.raises(AssertionError, match="NUMERICAL_a=.*, BACKWARD_a="):
        t.check_numeric_gradient(scaled(wrong), [A], dtype=dtype)
    t.check_numeric_gradient(scaled(wrong), [A], dtype=dtype, rtol=0.5, atol=0.1)


def test_locations_by_name_and_chosen_nodes():
    wrong = scaled(3) + b
    t.check_numeric_gradient(wrong, {"b": B, "a": A}, grad_nodes=["b"])
    t.check_numeric_gradient(wrong, [A, B], grad_nodes={"a": "null", "b": "add"})
    for grad_nodes in (["a"], {"a": "add"}, None):
        with pytest.raises(AssertionError, match="NUMERICAL_a"):
            t.check_numeric_gradient(wrong, [A, B], grad_nodes=grad_nodes)


def test_arrays_and_devices():
    t.check_numeric_gradient(a * b, [mx.nd.array(A), B], ctx=mx.cpu(1))
    t.check_numeric_gradient(mx.sym.sparse.square(a), [mx.nd.array([[1, 2], [0, 0]]).tostype("row_sparse")])
    weights = {"a": mx.nd.array([[1, 0], [0, 0]]).tostype("csr"), "b": np.ones((2, 2))}
    t.check_numeric_gradient(mx.sym.sparse.dot(a, b), weights, grad_nodes=["b"], grad_stype_dict={"b": "row_sparse"})


def test_indices_are_left_alone():
    sym = mx.sym.Embedding(a, input_dim=4, output_dim=2, name="e")
    t.check_numeric_gradient(sym, [np.array([0, 3, 3]), np.random.rand(4, 2)], grad_nodes=["e_weight"])


def test_auxiliary_states_and_training_mode():
    sym = mx.sym.BatchNorm(a, fix_gamma=False, name="bn")
    location = {"a": np.random.RandomState(0).rand(4, 3), "bn_gamma": np.ones(3), "bn_beta": np.zeros(3)}
    aux = {"bn_moving_mean": np.zeros(3), "bn_moving_var": np.ones(3)}
    t.check_numeric_gradient(sym, location, aux)
    t.check_numeric_gradient(sym, location, [np.zeros(3), np.ones(3)])
    with pytest.raises(AssertionError):  # the gradients are those of training
        t.check_numeric_gradient(sym, location, aux, use_forward_train=False)
    with pytest.raises(ValueError, match="bn_moving_var.*missing"):
        t.check_numeric_gradient(sym, location, {"bn_moving_mean": np.zeros(3)})


def test_random_operators_draw_the_same_again():
    t.check_numeric_gradient(mx.sym.Dropout(a * a, p=0.5), [np.linspace(1, 2, 30)])


def test_outputs_of_several_kinds():
    t.check_numeric_gradient(mx.sym.Group([a * 2, b * b, mx.sym.argmax(a, axis=1)]), [A, B])
    t.check_numeric_gradient(mx.sym.Cast(a, dtype="float32") * 2, [A])  # cannot run in float64
    t.check_numeric_gradient(mx.sym.MakeLoss(a), [A], grad_nodes={"a": "null"})


def test_blocks_and_cached_ops():
    nn = mx.gluon.nn
    net = nn.HybridSequential()
    net.add(nn.Conv2D(2, 3), nn.BatchNorm(), nn.Dense(3, activation="tanh"))
    net.initialize()
    x = np.random.RandomState(1).rand(2, 1, 4, 4)
    t.check_numeric_gradient(net, [x], rtol=1e-3, atol=1e-3)
    net.hybridize()
    t.check_numeric_gradient(net, {"data": x}, grad_nodes={"data": "add"}, dtype="float64")
    t.check_numeric_gradient(mx.executor.CachedOp(a * b), [A, B])
    with pytest.raises(AssertionError, match="NUMERICAL_a"):
        t.check_numeric_gradient(mx.executor.CachedOp(scaled(3)), [A])

    class Wrong(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.Custom(x, op_type="test_utils_scaled", slope=3)

    with pytest.raises(AssertionError, match="NUMERICAL_data"):
        t.check_numeric_gradient(Wrong(), [A])
    with pytest.raises(TypeError, match="HybridBlock is needed, got function"):
        t.check_numeric_gradient(lambda x: x, [A])


@pytest.mark.parametrize(
    ("kind", "match", "keywords"),
    [
        (AssertionError, "dtype must be float16, float32, float64", {"dtype": np.int32}),
        (ValueError, r"\['b'\] missing \['c'\] unknown", {"location": {"a": A, "c": B}}),
        (ValueError, "1 arrays for 2 names", {"location": [A]}),
        (ValueError, "list or dict", {"location": A}),
        (KeyError, r"\['z'\]", {"grad_nodes": ["z"]}),
        (ValueError, "grad_nodes must be", {"grad_nodes": "a"}),
        (ValueError, "'write', 'add' or 'null', got {'a': 'wrong'}", {"grad_nodes": {"a": "wrong"}}),
    ],
)
def test_bad_arguments(kind, match, keywords):
    with pytest.raises(kind, match=match):
        t.check_numeric_gradient(**{"sym": a * b, "location": [A, B], **keywords})


def test_numeric_grad():
    values = mx.nd.array(A, dtype="float64")
    executor = mx.sym.Group([a * a, a * 100]).bind(mx.cpu(), {"a": values})
    for location in ({"a": A}, [A]):
        found = t.numeric_grad(executor, location, eps=1e-4, dtype=np.float64)
        np.testing.assert_allclose(found["a"], 2 * A, rtol=1e-7)
    np.testing.assert_array_equal(values.asnumpy(), A)
    executor = mx.sym.Cast(a, dtype="float32").bind(mx.cpu(), {"a": mx.nd.array([1, 2], dtype="int32")})
    assert t.numeric_grad(executor, [np.array([1, 2])])["a"].tolist() == [0, 0]


def test_numeric_grad_sets_auxiliary_states():
    sym = mx.sym.BatchNorm(a, name="bn", use_global_stats=True)
    args = {"a": mx.nd.ones((2, 3)), "bn_gamma": mx.nd.ones((3,)), "bn_beta": mx.nd.zeros((3,))}
    executor = sym.bind(mx.cpu(), args, aux_states=[mx.nd.zeros((3,)), mx.nd.ones((3,))])
    location = {n: v.asnumpy() for n, v in args.items()}
    slopes = [t.numeric_grad(executor, location, [np.zeros(3), np.full(3, v)], eps=1e-2)["a"][0, 0] for v in (1, 4)]
    np.testing.assert_allclose(slopes, [1, 0.5], rtol=1e-2)


def test_a_hundred_elements_take_a_moment():
    x, sym = np.random.rand(100), mx.sym.tanh(a) * b
    t.check_numeric_gradient(sym, [x, x])  # compiles
    start = time.perf_counter()
    t.check_numeric_gradient(sym, [x, x])
    assert time.perf_counter() - start < 1  # 0.03 s where it was measured
