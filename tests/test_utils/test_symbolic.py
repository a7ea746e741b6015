"""Checks of what symbols compute, against given numbers and against each other."""

import numpy as np
import pytest

import mxcore as mx

t = mx.test_utils
a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
A, B = np.array([1.0, 2.0]), np.array([3.0, 5.0])
named = mx.sym.identity(a * b, name="q")


def test_simple_forward():
    assert t.simple_forward(a + b, a=A, b=B).tolist() == [4, 7]
    first, second = t.simple_forward(mx.sym.Group([a, b]), a=A, b=B)
    assert isinstance(first, np.ndarray) and second.tolist() == [3, 5]
    dropped = t.simple_forward(mx.sym.Dropout(a, p=0.5), is_train=True, a=np.ones(100))
    assert (dropped == 0).any() and (t.simple_forward(mx.sym.Dropout(a, p=0.5), a=np.ones(100)) == 1).all()
    with pytest.raises(ValueError, match=r"\['b'\] missing"):
        t.simple_forward(a + b, a=A)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, "asnumpy"])
def test_forward(dtype):
    outputs = t.check_symbolic_forward(named, [A, B], [A * B], dtype=dtype)
    assert outputs[0].asnumpy().tolist() == [3, 10]
    t.check_symbolic_forward(named, {"b": B, "a": A}, {"q_output": A * B}, dtype=dtype)
    for expected in ([A], {"q_output": A * B * 1.01}):
        with pytest.raises(AssertionError, match="EXPECTED_q_output=.*, FORWARD_q_output="):
            t.check_symbolic_forward(named, [A, B], expected, dtype=dtype)


def test_forward_dtypes_and_storage():
    kept = t.check_symbolic_forward(named, [A.astype("f4"), mx.nd.array(B)], [A * B], dtype="asnumpy")
    assert kept[0].dtype == np.float32
    rows = mx.nd.array([[1, 2], [0, 0]]).tostype("row_sparse")
    assert (
        t.check_symbolic_forward(mx.sym.sparse.square(a), [rows], [np.array([[1, 4], [0, 0]])])[0].stype == "row_sparse"
    )
    t.check_symbolic_forward(mx.sym.sqrt(a), [-A], [np.full(2, np.nan)], equal_nan=True)
    with pytest.raises(AssertionError):
        t.check_symbolic_forward(mx.sym.sqrt(a), [-A], [np.full(2, np.nan)])


def test_forward_with_auxiliary_states():
    sym, x = mx.sym.BatchNorm(a, name="bn", eps=1e-12), np.array([[1.0, 2.0], [3.0, 4.0]])
    location = {"a": x, "bn_gamma": np.ones(2), "bn_beta": np.zeros(2)}
    t.check_symbolic_forward(sym, location, [(x - 1) / 2], aux_states=[np.ones(2), np.full(2, 4.0)])
    with pytest.raises(AssertionError):
        t.check_symbolic_forward(sym, location, [(x - 1) / 2], aux_states=[np.ones(2), np.ones(2)])
    with pytest.raises(ValueError, match="bn_moving_mean.*missing"):
        t.check_symbolic_forward(sym, location, [x])


@pytest.mark.parametrize(
    ("kind", "match", "arguments"),
    [
        (AssertionError, "dtype must be", {"dtype": np.int32}),
        (ValueError, r"\['c'\] unknown", {"location": {"a": A, "c": B}}),
        (ValueError, "1 arrays for 2 names", {"location": [A]}),
        (ValueError, "2 arrays for 1 names", {"expected": [A, B]}),
        (KeyError, r"\['z'\] unknown", {"expected": {"z": A}}),
    ],
)
def test_forward_bad_arguments(kind, match, arguments):
    with pytest.raises(kind, match=match):
        t.check_symbolic_forward(**{"sym": named, "location": [A, B], "expected": [A * B], **arguments})


@pytest.mark.parametrize("grad_req", ["write", "add", ["write", "add"], {"a": "add", "b": "write"}])
def test_backward(grad_req):
    t.check_symbolic_backward(named, [A, B], [np.ones(2)], [B, A], grad_req=grad_req)
    t.check_symbolic_backward(named, [A, B], {"q_output": 2 * np.ones(2)}, {"b": 2 * A}, grad_req=grad_req)
    with pytest.raises(AssertionError, match="EXPECTED_b=.*, BACKWARD_b="):
        t.check_symbolic_backward(named, [A, B], [np.ones(2)], [B, B], grad_req=grad_req)


def test_backward_of_what_is_not_wanted():
    # a: null, not compared with A.
    grads = t.check_symbolic_backward(named, [A, B], [np.ones(2)], [A, A], grad_req={"b": "write"})
    assert sorted(grads) == ["a", "b"] and grads["b"].asnumpy().tolist() == [1, 2]
    assert sorted(t.check_symbolic_backward(named, [A, B], [np.ones(2)], {"a": B})) == ["a"]
    assert sorted(t.check_symbolic_backward(named, [A, B], [np.ones(2)], [None, A])) == ["b"]


def test_backward_of_losses_and_sparse_gradients():
    t.check_symbolic_backward(mx.sym.MakeLoss(a), [A], None, [np.ones(2)])
    sym, location = (
        mx.sym.sparse.dot(a, b, transpose_a=True),
        {"a": mx.nd.array([[1, 0], [0, 0]]).tostype("csr"), "b": np.ones((2, 2))},
    )
    grads = t.check_symbolic_backward(
        sym,
        location,
        [mx.nd.ones((2, 2))],
        {"b": np.array([[1, 1.0], [0, 0]])},
        grad_req={"a": "null", "b": "write"},
        grad_stypes={"b": "row_sparse"},
    )
    assert grads["b"].stype == "row_sparse"


@pytest.mark.parametrize(
    ("kind", "match", "arguments"),
    [
        (KeyError, r"\['z'\] unknown", {"expected": {"z": A}}),
        (ValueError, "out_grads.*x_output", {"out_grads": {"x_output": A}}),
        (ValueError, "out_grads: 2 arrays for 1", {"out_grads": [A, A]}),
        (KeyError, r"no arguments \['z'\]", {"grad_req": {"z": "write"}}),
        (ValueError, "grad_req must be", {"grad_req": "wirte"}),
    ],
)
def test_backward_bad_arguments(kind, match, arguments):
    with pytest.raises(kind, match=match):
        t.check_symbolic_backward(
            **{"sym": named, "location": [A, B], "out_grads": [A], "expected": {"a": A * B}, **arguments}
        )


def test_speed():
    runs = []

    class Count(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            runs.append(is_train)
            self.assign(out_data[0], req[0], in_data[0])

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            runs.append("back")
            self.assign(in_grad[0], req[0], out_grad[0])

    @mx.operator.register("test_utils_count")
    class CountProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Count()

    sym = mx.sym.Custom(a, op_type="test_utils_count")
    assert t.check_speed(sym, {"a": A}, N=3) > 0 and runs.count("back") == 4
    runs.clear()
    assert t.check_speed(sym, N=3, typ="forward", a=(2, 3)) > 0 and runs == [False] * 4
    with pytest.raises(ValueError, match="'whole' or 'forward', got 'x'"):
        t.check_speed(sym, {"a": A}, typ="x")
    with pytest.raises(AssertionError, match="dict"):
        t.check_speed(sym, [A])


# -- consistency -----------------------------------------------------------------------------------------------------
fc = mx.sym.FullyConnected(a, num_hidden=3, name="fc")
off = mx.sym.FullyConnected(a * 1.1, num_hidden=3, name="fc")
WAYS = [{"ctx": mx.cpu(i), "a": (2, 4), "type_dict": {"a": d}} for i, d in enumerate(("float32", "float64", "float16"))]


@pytest.mark.parametrize("grad_req", ["write", "add", {"a": "write", "fc_bias": "add", "fc_weight": "null"}])
def test_consistency(grad_req):
    np.random.seed(0)
    found = t.check_consistency(fc, WAYS, grad_req=grad_req, scale=0.5)
    assert {"fc_output", "a", "fc_bias"} <= set(found) and all(np.dtype(v.dtype) == np.float64 for v in found.values())
    for i in (0, 2):
        syms = [fc, fc, fc]
        syms[i] = off
        with pytest.raises(
            AssertionError, match=rf"predicting: 'fc_output' of float\d\d on cpu\({i}\).*against float64 on cpu\(1\)"
        ):
            t.check_consistency(syms, WAYS, grad_req=grad_req)


def test_consistency_of_gradients():
    wrong = [mx.sym.identity(s, name="y") for s in (a * 2, mx.sym.BlockGrad(a) + a)]
    with pytest.raises(AssertionError, match="training: 'a' of"):
        t.check_consistency(wrong, WAYS[:2])
    assert sorted(t.check_consistency(wrong, WAYS[:2], grad_req="null")) == ["y_output"]


def test_consistency_with_a_ground_truth():
    params = {"a": np.arange(8.0).reshape(2, 4), "fc_weight": np.ones((3, 4)), "fc_bias": np.zeros(3)}
    truth = t.check_consistency(fc, WAYS[:2], arg_params=params)
    assert truth["fc_output"].asnumpy().tolist() == [[6] * 3, [22] * 3]
    t.check_consistency(fc, WAYS, arg_params=params, ground_truth=truth)
    t.check_consistency(fc, WAYS[:1], arg_params=params, ground_truth=truth)
    with pytest.raises(AssertionError, match="against the ground truth"):
        t.check_consistency(fc, WAYS, arg_params=params, ground_truth={**truth, "fc_bias": truth["fc_bias"] + 1})
    with pytest.raises(KeyError, match="lacks 'fc_output'"):
        t.check_consistency(fc, WAYS, arg_params=params, ground_truth={})


def test_consistency_can_print_instead(capsys):
    t.check_consistency([fc, off], WAYS[:2], raise_on_err=False)
    assert "predicting: 'fc_output'" in (text := capsys.readouterr().out) and "training: 'fc_output'" in text


def test_consistency_tolerances_and_start():
    with pytest.raises(AssertionError):
        t.check_consistency(fc, WAYS[:2], rtol=1e-14, atol=1e-14)
    assert not t.check_consistency(fc, WAYS[:2], scale=0)["fc_output"].asnumpy().any()
    uniform = t.check_consistency(mx.sym.identity(a, name="y"), WAYS[:2], use_uniform=True, scale=3.0)[
        "y_output"
    ].asnumpy()
    assert np.abs(uniform).max() <= 3
    dropped = mx.sym.Dropout(a, p=0.5)  # equal random numbers on all of them
    t.check_consistency(dropped, [{"ctx": mx.cpu(0), "a": (20, 4)}, {"ctx": mx.cpu(0), "a": (20, 4)}])


@pytest.mark.parametrize(
    ("kind", "match", "sym", "ways"),
    [
        (AssertionError, "two entries", fc, WAYS[:1]),
        (AssertionError, "3 symbols for 2 entries", [fc] * 3, WAYS[:2]),
        (AssertionError, "list_outputs", [fc, fc + 0], WAYS[:2]),
        (ValueError, r"'a' has shape \(3, 4\)", fc, [WAYS[1], {"ctx": mx.cpu(), "a": (3, 4)}]),
    ],
)
def test_consistency_bad_arguments(kind, match, sym, ways):
    with pytest.raises(kind, match=match):
        t.check_consistency(sym, ways)


def dense(prefix=None, params=None):
    net = mx.gluon.nn.HybridSequential(prefix=prefix, params=params)
    with net.name_scope():
        net.add(mx.gluon.nn.Dense(3), mx.gluon.nn.BatchNorm())
    return net


class Odd(mx.gluon.HybridBlock):
    """Differs when it is hybridised: in its output, or in its gradient only."""

    def __init__(self, forward=True, **kwargs):
        super().__init__(**kwargs)
        self.wrong_forward = forward

    def hybrid_forward(self, F, x):
        if F is mx.nd:
            return x * 2
        return x * 3 if self.wrong_forward else x + F.BlockGrad(x)


def test_hybridize_consistency():
    x = [mx.nd.array(np.random.RandomState(0).rand(5, 4))]
    t.check_gluon_hybridize_consistency(dense, x)
    t.check_gluon_hybridize_consistency(
        lambda: mx.gluon.nn.HybridLambda(lambda F, x: x * 2), x, numpy_func=lambda v: v * 2
    )
    with pytest.raises(AssertionError, match="HYBRID_output"):
        t.check_gluon_hybridize_consistency(Odd, x)
    with pytest.raises(AssertionError, match="gradient of input 0"):
        t.check_gluon_hybridize_consistency(lambda: Odd(False), x)
    t.check_gluon_hybridize_consistency(lambda: Odd(False), x, test_grad=False)
    with pytest.raises(AssertionError, match="NUMPY"):
        t.check_gluon_hybridize_consistency(
            lambda: mx.gluon.nn.HybridLambda(lambda F, x: x * 2), x, numpy_func=lambda v: v * 3
        )


def sgd(**kwargs):
    return mx.optimizer.SGD(**{"learning_rate": 0.1, "momentum": 0.9, **kwargs})


@pytest.mark.parametrize("stypes", [("default", "default"), ("row_sparse", "row_sparse"), ("default", "row_sparse")])
def test_optimizers(stypes):
    t.compare_optimizer(sgd(), sgd(), (3, 4), np.float32, *stypes)
    with pytest.raises(AssertionError):
        t.compare_optimizer(sgd(), sgd(learning_rate=0.2), (30, 4), np.float32, *stypes)


def test_optimizers_states_and_several_weights():
    t.compare_optimizer(sgd(multi_precision=True), sgd(multi_precision=True), (3, 4), np.float16, rtol=1e-2)
    t.compare_optimizer(sgd(), sgd(), [(3, 4), (2,)], "float32", ntensors=2)
    t.compare_optimizer(sgd(), sgd(), [(3, 4)], "float32")
    adam, other = (mx.optimizer.Adam(learning_rate=0.0, beta1=v) for v in (0.9, 0.5))
    with pytest.raises(AssertionError):
        t.compare_optimizer(adam, other, (3, 4), "float32")
    t.compare_optimizer(adam, other, (3, 4), "float32", compare_states=False)
    with pytest.raises(AssertionError, match="as many shapes"):
        t.compare_optimizer(sgd(), sgd(), (3, 4), "float32", ntensors=3)
    with pytest.raises(ValueError, match="g_stype must be"):
        t.compare_optimizer(sgd(), sgd(), (3, 4), "float32", g_stype="x")
