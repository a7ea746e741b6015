"""Functions of mx.nd, mx.sym and mx.random that are more than one operator, or none: what they say of bad input."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError

from .bad_input import refusal

nd, sym = mx.nd, mx.sym
X = nd.ones((3, 2))
S = sym.Variable("s")
_DEVICES = "there are: cpu, cpu_pinned, cpu_shared"
_NO_DTYPE = "parameter 'dtype' must be a dtype: unknown dtype 'zz'; use one of bool, float16, float32"
_ADAMW = dict(lrs=(0.1,), wds=(0.1,), etas=(1.0,))


def one(*args):
    """A function that returns one value where two are wanted."""
    return args[0]


#: call, kind, words of the message
CALLS = [
    (lambda: nd.eye(-2), ValueError, "operator _eye: parameter 'N' must be int >= 0, got -2"),
    (lambda: nd.eye("a"), TypeError, "operator _eye: parameter 'N' must be int >= 0, got 'a'"),
    (lambda: nd.linspace(0, 1, -3), ValueError, "operator _linspace: parameter 'num' must be int >= 0, got -3"),
    (lambda: nd.linspace(0, 1, 2.5), TypeError, "operator _linspace: parameter 'num' must be int >= 0, got 2.5"),
    (lambda: nd.linspace("a", 1, 3), TypeError, "operator _linspace: parameter 'start' must be float, got 'a'"),
    (lambda: nd.arange("a"), TypeError, "operator _arange: parameter 'stop' must be float, got 'a'"),
    (lambda: nd.full(2, "a"), TypeError, "operator _full: parameter 'value' must be float, got 'a'"),
    (lambda: nd.full((2, -3), 1), ValueError, "operator _full: there is no array of shape (2, -3)"),
    (lambda: nd.zeros((2, "a")), TypeError, "operator _zeros: parameter 'shape' must be a tuple of ints, got (2, 'a')"),
    (
        lambda: nd.zeros(2, ctx="foo"),
        RuntimeError,
        "operator _zeros: parameter 'ctx' must be a context such as 'cpu(0)', got 'foo'",
    ),
    (lambda: nd.zeros(2, ctx="foo"), RuntimeError, _DEVICES),
    (lambda: nd.zeros(2, ctx=mx.Context("foo")), RuntimeError, _DEVICES),
    (lambda: nd.zeros(2, ctx=3), RuntimeError, "operator _zeros: parameter 'ctx'"),
    (lambda: nd.array(2, ctx=3), RuntimeError, "operator array: parameter 'ctx'"),
    (lambda: nd.empty(2, ctx="foo"), RuntimeError, "operator empty: parameter 'ctx'"),
    (lambda: nd.random.randn(2, ctx=3), RuntimeError, "_random_normal"),
    (lambda: nd.empty((2, -1)), ValueError, "operator empty: parameter 'shape' (2, -1)"),
    (lambda: nd.empty("a"), TypeError, "empty: parameter 'shape'"),
    *[
        (call, TypeError, _NO_DTYPE)
        for call in (
            lambda: nd.ones(2, dtype="zz"),
            lambda: nd.empty(2, dtype="zz"),
            lambda: nd.array(2, dtype="zz"),
            lambda: nd.array(X, dtype="zz"),
            lambda: nd.full(2, 1, dtype="zz"),
            lambda: nd.arange(3, dtype="zz"),
            lambda: nd.eye(3, dtype="zz"),
            lambda: nd.linspace(0, 1, 2, dtype="zz"),
            lambda: X.astype("zz"),
            lambda: nd.Cast(X, dtype="zz"),
            lambda: nd.random.uniform(dtype="zz"),
            lambda: sym.zeros(2, dtype="zz"),
        )
    ],
    (lambda: nd.concat(), TypeError, "operator Concat needs at least one input (data)"),
    (lambda: nd.concatenate([]), TypeError, "Concat needs at least one"),
    (lambda: nd.concatenate(3), TypeError, "concatenate: arrays must be a list of NDArrays, got int"),
    (lambda: nd.concat(3), TypeError, "input 'data' must be an array"),
    (lambda: nd.stack(), TypeError, "operator stack needs at least one input (data)"),
    (lambda: nd.stack(axis=1), TypeError, "stack needs at least one"),
    (
        lambda: sym.Concat(),
        ValueError,
        "operator Concat: parameter 'num_args' must be int between 1 and 1048576, got 0",
    ),
    (
        lambda: nd.tile(X, reps=(10**8, 10**8)),
        MemoryError,
        "operator tile with data float32 (3, 2); parameters: reps=(100000000, 100000000): ",
    ),
    (
        lambda: nd.image.normalize(nd.ones((3, 2, 2)), mean=0, std=(1, 0, 1)),
        ValueError,
        "operator _image_normalize: std must not hold 0, got (1.0, 0.0, 1.0)",
    ),
    (
        lambda: nd.multi_sum_sq(X, num_arrays=20),
        TypeError,
        "needs input 'array_1' (array_0, array_1, array_2, array_3, array_4, array_5, array_6, array_7, … 20 in all)",
    ),
    (
        lambda: nd.CTCLoss(nd.ones((3, 2, 4)), nd.array([[9, 1], [1, 2]])),
        IndexError,
        "labels from 1 to 9 are given, there are classes from 0 to 3",
    ),
    (lambda: nd.random.multinomial(3), TypeError, "operator _sample_multinomial: input 'data' must be an array"),
    (lambda: nd.relu(3), TypeError, "operator relu: input 'data' must be an array"),
    (lambda: sym.relu(3), TypeError, "operator relu: input 'data' must be an array"),
    (lambda: nd.Dropout(X, 2.0), ValueError, "operator Dropout: parameter 'p' must be float between 0 and 1, got 2.0"),
    (lambda: nd.sum(X, share=True), TypeError, "operator sum has no parameter 'share'"),
    (lambda: nd.sum(X, wanted=(True,)), TypeError, "'wanted'"),
    (
        lambda: nd.moveaxis(X, "a", 1),
        TypeError,
        "operator moveaxis: parameter 'source' must be a tuple of ints, got 'a'",
    ),
    (
        lambda: nd.split_v2(X, "a"),
        TypeError,
        "operator split_v2: parameter 'indices_or_sections' must be a tuple of ints, got 'a'",
    ),
    (
        lambda: nd.split_v2(X, 0),
        ValueError,
        "operator split_v2: parameter 'indices_or_sections' must be int >= 1 or indices, got 0",
    ),
    (lambda: nd.split_v2(X, 2), ValueError, "operator split_v2: axis 0 has length 3, not a multiple of 2"),
    (lambda: nd.split_v2(3, 2), TypeError, "operator split_v2: input 'ary' must be an array"),
    *[
        (
            lambda n=n: nd.split(nd.ones((2, 4)), 2, out=[nd.zeros((2, 2))] * n),
            ValueError,
            f"SliceChannel: {n} arrays given as out, it has 2 outputs",
        )
        for n in (1, 3)
    ],
    *[
        (lambda s=s: mx.random.seed(s), TypeError, f"random.seed: seed_state must be an int, got {s!r}")
        for s in (1.5, 2.0, "3", None)
    ],
    (
        lambda: nd.clip(X, float("nan"), 1),
        ValueError,
        "operator clip: a_min must be a number, got nan; use -inf and inf for no bound",
    ),
    (lambda: nd.clip(X, 0, float("nan")), ValueError, "operator clip: a_max must be a number, got nan"),
    (lambda: nd.histogram([1]), TypeError, "operator histogram: input 'a' must be an array"),
    (lambda: nd.from_numpy([1]), TypeError, "from_numpy: a NumPy array"),
    (lambda: nd.onehot_encode(X, 3), TypeError, "operator onehot_encode: input 'out' must be an array"),
    (lambda: nd.contrib.isnan(3), TypeError, "operator isnan: input 'data' must be an array"),
    (lambda: nd.contrib.isfinite([1]), TypeError, "isfinite: input 'data'"),
    (lambda: nd.to_dlpack_for_read(3), TypeError, "input 'data' must be an array"),
    (lambda: X.as_in_context(3), TypeError, "needs a Context such as mx.cpu(0), got 3"),
    *[
        (
            lambda shape=shape: X.reshape(shape),
            TypeError,
            "reshape of an array of shape (3, 2): a tuple of ints is needed, got",
        )
        for shape in (6.5, None, "6", {3: 2})
    ],
    (lambda: X.broadcast_like(3), TypeError, "broadcast_like: other must be an NDArray, got int"),
    (
        lambda: nd.sparse.zeros("csr", (2, "a")),
        TypeError,
        "operator zeros: parameter 'shape' must be a tuple of ints, got (2, 'a')",
    ),
    (lambda: nd.sparse.zeros("csr", (2, 2), ctx="foo"), RuntimeError, "operator csr_matrix: parameter 'ctx'"),
    (lambda: nd.sparse.csr_matrix(3), ValueError, "csr_matrix: a matrix is needed, got shape"),
    (lambda: nd.sparse.row_sparse_array("a"), TypeError, "an array of numbers is needed, got str"),
    (
        lambda: sym.Variable("x", shape=(2, "a")),
        TypeError,
        "Variable: parameter 'shape' must be a tuple of ints, got (2, 'a')",
    ),
    (lambda: nd.random.randint(3), TypeError, "operator _random_randint: parameter 'high' must be int, not None"),
    (lambda: mx.random.randint(3), TypeError, "operator _random_randint: parameter 'high' must be int, not None"),
    (lambda: sym.random.randint(3), TypeError, "operator _random_randint: parameter 'high' must be int, not None"),
    *[
        (call, ValueError, "random.exponential: scale must be above 0, got 0")
        for call in (
            lambda: nd.random.exponential(0),
            lambda: sym.random.exponential(0),
            lambda: mx.random.exponential(0),
        )
    ],
    (
        lambda: nd.random.exponential("a"),
        TypeError,
        "random.exponential: scale must be a number, an NDArray or a Symbol, got str",
    ),
    *[(call, TypeError, "random.randn: a shape is needed") for call in (nd.random.randn, sym.random.randn)],
    (lambda: nd.random.uniform(out=3), TypeError, "operator _random_uniform: input 'out' must be an array"),
    (lambda: nd.random.normal(X, X, X), MXNetError, "parameter 'shape'"),
    (lambda: nd.contrib.rand_zipfian(X, 0, 5), ValueError, "rand_zipfian: num_sampled must be int >= 1, got 0"),
    (lambda: nd.contrib.rand_zipfian(X, 2, 2.5), ValueError, "rand_zipfian: range_max must be int >= 1, got 2.5"),
    (
        lambda: nd.contrib.multi_adamw_update([], [], [], [], 1.0, **_ADAMW),
        TypeError,
        "lists of one NDArray or more, got none",
    ),
    (
        lambda: nd.contrib.multi_adamw_update(X, X, X, X, 1.0, **_ADAMW),
        TypeError,
        "lists of one NDArray or more, got NDArray",
    ),
    (
        lambda: nd.contrib.adamw_update(X, X, X, X, "a", 0.1, 1.0),
        TypeError,
        "adamw_update: rescale_grad must be a number or an NDArray, got 'a'",
    ),
    (
        lambda: nd._internal._set_value("a", out=X),
        TypeError,
        "operator _set_value: parameter 'src' must be float, got 'a'",
    ),
    (lambda: nd._internal._cvimread(3), TypeError, "operator _cvimread: parameter 'filename' must be a path, got int"),
    (lambda: sym.Group(3), TypeError, "Group takes a list of one or more Symbols, got int"),
    (lambda: sym.full(2, "a"), TypeError, "_full: parameter 'value'"),
    (
        lambda: nd.contrib.foreach(lambda x, s: x, X, nd.ones(2)),
        ValueError,
        "foreach: body must return (outputs, states), got NDArray",
    ),
    (
        lambda: nd.contrib.foreach(lambda x, s: (x, s, s), X, nd.ones(2)),
        ValueError,
        "foreach: body must return (outputs, states), got 3 values",
    ),
    (
        lambda: nd.contrib.foreach(lambda x, s: (x, 3), X, nd.ones(2)),
        TypeError,
        "foreach: states must be NDArrays or nested lists of them, got int",
    ),
    (
        lambda: nd.contrib.foreach(lambda x, s: (x[: int(s.asscalar())], s + 1), X, nd.ones(1)),
        ValueError,
        "foreach: outputs of step 1 have shapes [(2,)]",
    ),
    (
        lambda: nd.contrib.foreach(lambda x, s: (x, s), 3, X),
        TypeError,
        "foreach: data must be NDArrays or nested lists of them, got int",
    ),
    (
        lambda: nd.contrib.foreach(lambda x, s: (x, s), X, 3),
        TypeError,
        "foreach: init_states must be NDArrays or nested lists of them, got int",
    ),
    (
        lambda: sym.contrib.foreach(lambda x, s: x + s, S, sym.Variable("i")),
        ValueError,
        "foreach: body must return (outputs, states), got Symbol",
    ),
    (lambda: nd.contrib.while_loop(one, lambda x: [x], X, 3), ValueError, "while_loop: "),
    *[
        (call, TypeError, words)
        for library, data in ((nd, X), (sym, S))
        for call, words in (
            (lambda m=library, x=data: m.contrib.foreach(3, x, x), "foreach: body must be a function, got int"),
            (
                lambda m=library, x=data: m.contrib.while_loop(1, one, x, 3),
                "while_loop: cond must be a function, got int",
            ),
            (
                lambda m=library, x=data: m.contrib.while_loop(one, 2, x, 3),
                "while_loop: func must be a function, got int",
            ),
            (lambda m=library, x=data: m.contrib.cond(x, 1, one), "cond: then_func must be a function, got int"),
            (lambda m=library, x=data: m.contrib.cond(x, one, 2), "cond: else_func must be a function, got int"),
        )
    ],
]


@pytest.mark.parametrize("call, kind, words", CALLS, ids=[f"{i}" for i in range(len(CALLS))])
def test_refused(call, kind, words):
    text = refusal(call, kind)
    assert words in text


def test_whole_numbers_within_endless_bounds():
    inf = float("inf")
    x = nd.array([-3, 0, 5], dtype="int32")
    for bounds, expected in (((0, inf), [0, 0, 5]), ((-inf, 2), [-3, 0, 2]), ((-inf, inf), [-3, 0, 5])):
        assert nd.clip(x, *bounds).asnumpy().tolist() == expected


def test_unknown_dimensions_are_shown_as_such():
    y = sym.broadcast_to(sym.Variable("x", shape=(0, 2, 3)), shape=(0, 4, 3))
    assert "dimension 1 of (?, 2, 3) cannot be broadcast to" in refusal(y.infer_shape)
    y = sym.SoftmaxOutput(sym.Variable("x", shape=(3, 0, 4)), sym.Variable("label", shape=(2, 4)))
    assert "(3, ?, 4)" in refusal(y.infer_shape)


def test_what_a_shape_rule_says_is_headed_by_no_other_fault():
    assert refusal(lambda: nd.sum(X, axis=2)).startswith(
        "operator sum: axis 2 is out of range for 2 dimensions; use -2 to 1; inputs: data (3, 2); parameters: axis=2"
    )
    assert "operator elemwise_add: inconsistent shapes: (3, 2) and (2,)" in refusal(
        lambda: nd.elemwise_add(X, nd.ones(2))
    )


def test_a_custom_operator_may_have_parameters_of_any_name():
    given = []

    class Prop(mx.operator.CustomOpProp):
        def __init__(self, share, wanted="no"):
            super().__init__()
            given.append((share, wanted))

        def create_operator(self, ctx, shapes, dtypes):
            return Twice()

    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

    mx.operator.register("t_share")(Prop)
    y = nd.Custom(X, op_type="t_share", share=3, wanted="yes")
    assert (y.asnumpy() == 2).all() and given[-1] == ("3", "yes")
    s = sym.Custom(S, op_type="t_share", share=4)
    assert np.array_equal(s.eval(s=X)[0].asnumpy(), y.asnumpy()) and given[-1] == ("4", "no")
