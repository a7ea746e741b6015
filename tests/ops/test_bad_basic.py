"""Bad input to elementwise operators, reductions, shapes, creation, indexing, order, storage: clear errors.

All is tried on arrays and on symbols, whose errors come with inference at the latest.
"""

import numpy as np
import pytest

from .bad_input import BOTH, check_refused, eager, operators

OPS = operators("elementwise activation reduction shape slicing creation indexing ordering sparse")


#: operator, shapes of inputs (or arrays), parameters, what the message says
SHAPES = [
    ("elemwise_add", [(2, 3), (3, 2)], {}, "(2, 3)"),
    ("_maximum", [(2, 3), (2, 3, 1)], {}, "ranks"),
    ("broadcast_add", [(2, 3), (2, 4)], {}, "(2, 4)"),
    ("broadcast_power", [(5, 2, 3), (4, 1, 3)], {}, "(4, 1, 3)"),
    ("sum", [(2, 3)], {"axis": 2}, "axis 2"),
    ("sum", [(2, 3)], {"axis": (0, -2)}, "twice"),
    ("max", [(2, 3)], {"axis": (0, -3), "exclude": True}, "axis -3"),
    ("norm", [(2, 3)], {"axis": -3}, "axis -3"),
    ("norm", [(2, 3)], {"ord": 3}, "ord"),
    ("moments", [(2, 3)], {"axes": (2,)}, "axis 2"),
    ("moments", [(2, 3)], {}, "axes"),
    ("argmax", [(2, 3)], {"axis": 2}, "axis 2"),
    ("argmax_channel", [(5,)], {}, "axis 1"),
    ("_np_cumsum", [(2, 3)], {"axis": 2}, "axis 2"),
    ("Reshape", [(2, 3)], {"shape": (4, 2)}, "(4, 2)"),
    ("Reshape", [(2, 3)], {"shape": (2,)}, "(2,)"),
    ("Reshape", [(2, 3)], {"shape": (-1, -1)}, "more than one -1"),
    ("Reshape", [(2, 3)], {"shape": (4, -1)}, "(4, -1)"),
    ("Reshape", [(2, 3)], {"shape": (0, 0, 0)}, "code number 3"),
    ("Reshape", [(2, 3)], {"shape": (-3, -3)}, "code number 3"),
    ("Reshape", [(2, 3)], {"shape": (-4, 2)}, "-4"),
    ("Reshape", [(2, 3)], {"shape": (-4, -1, -1, 3)}, "one of its two"),
    ("Reshape", [(2, 3)], {"shape": (-4, 4, 1, 3)}, "cannot split 2"),
    ("Reshape", [(2, 3)], {"shape": (-5,)}, "-5"),
    ("Reshape", [(2, 6)], {"shape": (0, -4, 2, 3), "reverse": True}, "-4"),
    ("reshape_like", [(2, 3), (4, 2)], {}, "(4, 2)"),
    ("reshape_like", [(2, 3), (3, 2)], {"lhs_begin": 3}, "lhs_begin=3"),
    ("reshape_like", [(2, 3), (3, 2)], {"rhs_begin": 2, "rhs_end": 1}, "rhs_begin=2"),
    ("slice", [(4, 5)], {"begin": (0,), "end": (1, 2)}, "different lengths"),
    ("slice", [(4,)], {"begin": (0, 0), "end": (1, 2)}, "begin (0, 0)"),
    ("slice", [(4, 5)], {"begin": (0,), "end": (4,), "step": (0,)}, "step (0,)"),
    ("slice", [(4, 5)], {"begin": (0,), "end": (4,), "step": (1, 1)}, "step (1, 1)"),
    ("Concat", [(2, 3), (3, 3)], {"dim": 1}, "dimension 0"),
    ("Concat", [(2, 3), (2, 3, 1)], {"dim": 1}, "ranks"),
    ("Concat", [(2, 3), (2, 3)], {"dim": 2}, "axis 2"),
    ("SliceChannel", [(2, 5)], {"num_outputs": 2}, "num_outputs=2"),
    ("SliceChannel", [(2, 4)], {"num_outputs": 2, "squeeze_axis": True}, "squeeze_axis"),
    ("SliceChannel", [(2, 4)], {"num_outputs": 2, "axis": 2}, "axis 2"),
    ("stack", [(2, 3), (3, 2)], {}, "dimension 0"),
    ("stack", [(2, 3), (2, 3)], {"axis": 3}, "axis 3"),
    ("transpose", [(2, 3)], {"axes": (0, 0)}, "axes (0, 0)"),
    ("transpose", [(2, 3)], {"axes": (0, 1, 2)}, "axis 2"),
    ("expand_dims", [(2, 3)], {"axis": 3}, "axis 3 is out of range for 3 dimensions of the result; use -3 to 2"),
    ("broadcast_to", [(2, 3)], {"shape": (2, 6)}, "(2, 6)"),
    ("broadcast_to", [(2, 3)], {"shape": (3,)}, "as many dimensions"),
    ("broadcast_like", [(2, 3), (2, 4)], {}, "(2, 4)"),
    ("broadcast_like", [(1, 3), (2, 3)], {"lhs_axes": (0,)}, "rhs_axes=None"),
    ("broadcast_like", [(1, 3), (2, 3)], {"lhs_axes": (0,), "rhs_axes": (0, 1)}, "rhs_axes=(0, 1)"),
    ("broadcast_like", [(1, 3), (2, 3)], {"lhs_axes": (2,), "rhs_axes": (0,)}, "axis 2"),
    ("_arange", [], {"start": 0, "stop": 3, "step": 0}, "step=0"),
    ("_arange", [], {"start": 0, "stop": float("inf")}, "stop=inf"),
    ("_contrib_arange_like", [(2, 3)], {"axis": 2}, "axis 2"),
    ("_basic_index", [(2, 3)], {"index": (0, 0, 0)}, "2 dimensions"),
    ("_basic_index", [(2, 3)], {"index": (2,)}, "index 2 is out of bounds"),
    ("take", [(2, 3), (2,)], {"axis": 2}, "axis 2"),
    ("Embedding", [(2,), (4, 3)], {"input_dim": 5, "output_dim": 3}, "weight is (4, 3) where (5, 3)"),
    ("_contrib_boolean_mask", [(2, 3), (3,)], {}, "index (3,)"),
    ("_contrib_boolean_mask", [(2, 3), (2, 1)], {}, "one dimension"),
    ("where", [(2,), (3, 2), (3, 2)], {}, "condition (2,)"),
    ("where", [(3, 2), (3, 2), (2, 3)], {}, "dimension 0"),
    ("pick", [(2, 3), (3,)], {}, "index (3,)"),
    ("pick", [(2, 3), (2,)], {"axis": 2}, "axis 2"),
    ("pick", [(2, 3), (2,)], {"axis": None}, "axis"),
    ("batch_take", [(2, 3), (3,)], {}, "indices (3,)"),
    ("batch_take", [(2, 3, 2), (2,)], {}, "matrix"),
    ("fill_element_0index", [(2, 3), (3,), (2,)], {}, "mhs (3,)"),
    ("gather_nd", [(2, 3), (3, 2)], {}, "3 coordinates"),
    ("gather_nd", [(2, 3), (2,)], {}, "indices (2,)"),
    ("scatter_nd", [(3,), (2, 2)], {"shape": (2, 3)}, "(3,)"),
    ("_scatter_set_nd", [(2, 3), (3,), (2, 2)], {"shape": (2, 3)}, "(3,)"),
    ("_ravel_multi_index", [(3, 4)], {"shape": (2, 3)}, "data (3, 4)"),
    ("_ravel_multi_index", [(3, 4)], {}, "shape"),
    ("_unravel_index", [(4,)], {}, "shape"),
    ("_contrib_index_copy", [(4, 2), (3,), (2, 2)], {}, "new_tensor (2, 2)"),
    ("_contrib_index_array", [(2, 3)], {"axes": (0, 2)}, "axis 2"),
    ("topk", [(2, 3)], {"k": 4}, "k=4"),
    ("topk", [(2, 3)], {"axis": 2}, "axis 2"),
    (
        "topk",
        [(2, 3)],
        {"dtype": "bool"},
        "'dtype' must be one of the dtypes uint8, int32, int64, float16, float32, float64; got bool",
    ),
    ("topk", [(2, 3)], {"dtype": "int8", "ret_typ": "both"}, "got int8"),
    (
        "argsort",
        [(2, 3)],
        {"dtype": "int8"},
        "'dtype' must be one of the dtypes uint8, int32, int64, float16, float32, float64; got int8",
    ),
    (
        "one_hot",
        [(3,)],
        {"depth": 2, "dtype": "bool"},
        "'dtype' must be one of the dtypes uint8, int8, int32, int64, float16, float32, float64, bfloat16; got bool",
    ),
    ("sort", [(2, 3)], {"axis": -3}, "axis -3"),
    ("argsort", [(2, 3)], {"axis": 2}, "axis 2"),
    ("_contrib_allclose", [(2, 3), (3, 2)], {}, "b (3, 2)"),
    ("_histogram", [(5,), (1,)], {}, "bins (1,)"),
    ("_histogram", [(5,), (2, 2)], {}, "bins (2, 2)"),
    ("_histogram", [(5,)], {"bin_cnt": 3}, "range"),
    ("_histogram", [(5,)], {"bin_cnt": 3, "range": (1,)}, "range"),
    ("_histogram", [(5,)], {"bin_cnt": 3, "range": (2, 1)}, "(2.0, 1.0)"),
    ("_sparse_retain", [(4, 3), (2, 2)], {}, "indices (2, 2)"),
    ("_scatter_elemwise_div", [(4, 3), (4, 2)], {}, "(4, 2)"),
    ("clip", [(2,)], {"a_min": 0}, "a_max"),
    ("clip", [(2,)], {"a_min": 5, "a_max": 1}, "a_min must not be above a_max, got 5.0 and 1.0"),
    ("clip", [(2,)], {"a_min": float("nan"), "a_max": 1}, "a_min must be a number, got nan"),
    *[
        (name, shapes, params, words)
        for name in ("max", "min", "argmax", "argmin")
        for shapes, params, words in (
            ([(2, 0)], {"axis": 1}, "data (2, 0) has no elements along axis 1 to choose from"),
            ([(0, 2)], {"axis": 0}, "axis 0"),
            ([(2, 0)], {}, "axis 1"),
            ([(0, 2)], {"axis": 0, "keepdims": True}, "axis 0"),
        )
    ],
    ("argmax_channel", [(2, 0)], {}, "data (2, 0) has no elements along axis 1"),
    ("Activation", [(2,)], {"act_type": "rectify"}, "relu"),
]


@BOTH
@pytest.mark.parametrize("name, shapes, params, words", SHAPES, ids=[f"{i}-{row[0]}" for i, row in enumerate(SHAPES)])
def test_shapes(name, shapes, params, words, call):
    arrays = [np.ones(s, np.float32) for s in shapes]
    op = OPS[name]
    if op.variadic and not op.arg_names:
        params = {**params, op.count: len(arrays)}
    check_refused(call, op, arrays, params, words)


#: operator, dtypes of inputs of shape (2, 3) (or as given), parameters, what the message says
DTYPES = [
    ("elemwise_add", ["float32", "float64"], {}, "float64"),
    ("broadcast_mul", ["int32", "float32"], {}, "int32"),
    ("_equal", ["int32", "int64"], {}, "int64"),
    ("Concat", ["float32", "float16"], {"num_args": 2}, "float16"),
    ("stack", ["uint8", "int8"], {"num_args": 2}, "int8"),
    ("where", ["float32", "float32", "float64"], {}, "float64"),
    ("fill_element_0index", [("float32", (2, 3)), ("float64", (2,)), ("float32", (2,))], {}, "float64"),
    ("_contrib_index_copy", [("float32", (4, 3)), ("int32", (2,)), ("float16", (2, 3))], {}, "float16"),
    ("Activation", ["int32"], {"act_type": "relu"}, "int32 numbers are whole"),
    ("hard_sigmoid", ["uint8"], {}, "uint8 numbers are whole"),
    ("_histogram", [("float32", (5,)), ("float64", (3,))], {}, "float64"),
]


@BOTH
@pytest.mark.parametrize("name, inputs, params, words", DTYPES, ids=[row[0] for row in DTYPES])
def test_dtypes(name, inputs, params, words, call):
    arrays = [np.ones((2, 3), t) if isinstance(t, str) else np.ones(t[1], t[0]) for t in inputs]
    check_refused(call, OPS[name], arrays, params, words, kind=TypeError)


#: What only values tell: operator, inputs, parameters, kind, what the message says
VALUES = [
    ("take", [np.ones((3, 2)), [3]], {"mode": "raise"}, IndexError, "[0, 3)"),
    ("take", [np.ones((3, 2)), [-1]], {"mode": "raise"}, IndexError, "[0, 3)"),
    ("take", [np.ones((0, 2)), [0]], {}, IndexError, "length 0"),
    ("gather_nd", [np.ones((2, 3)), [[2], [0]]], {}, IndexError, "out of bounds"),
    ("scatter_nd", [np.ones(1), [[5]]], {"shape": (4,)}, IndexError, "out of bounds"),
    ("_scatter_set_nd", [np.ones(4), np.ones(1), [[5]]], {"shape": (4,)}, IndexError, "out of bounds"),
    ("_contrib_index_copy", [np.ones((3, 1)), [3], np.ones((1, 1))], {}, IndexError, "out of bounds"),
    ("_advanced_index", [np.ones((3, 1)), [3]], {"index": (("a", 0),), "num_args": 1}, IndexError, "out of bounds"),
    ("_sparse_retain", [np.ones((3, 1)), [3]], {}, IndexError, "out of bounds"),
    ("_zeros", [], {"shape": (2, -3)}, ValueError, "(2, -3)"),
    ("_unravel_index", [[5, 6]], {"shape": (2, 3)}, IndexError, "in shape (2, 3), place 6 is out of range [0, 6)"),
    ("_unravel_index", [[-1]], {"shape": (2, 3)}, IndexError, "place -1 is out of range"),
    ("_unravel_index", [[-1]], {"shape": (-1, 3)}, IndexError, "place -1 is out of range: it must not be below 0"),
    (
        "_ravel_multi_index",
        [[[0], [3]]],
        {"shape": (2, 3)},
        IndexError,
        "on axis 1 of shape (2, 3), coordinate 3 is out of range [0, 3)",
    ),
    ("_ravel_multi_index", [[[2], [0]]], {"shape": (2, 3)}, IndexError, "on axis 0 of shape (2, 3), coordinate 2"),
    ("_ravel_multi_index", [[[-1], [0]]], {"shape": (-1, 3)}, IndexError, "coordinate -1"),
    ("_arange", [], {"start": 1, "infer_range": True}, ValueError, "infer_range"),
    ("one_hot", [[0, 1]], {"depth": 2, "on_value": float("nan"), "dtype": "int32"}, ValueError, "on_value=nan"),
    ("cast_storage", [np.ones((2, 3, 4))], {"stype": "csr"}, ValueError, "3 dimensions"),
]


@pytest.mark.parametrize(
    "name, inputs, params, kind, words", VALUES, ids=[f"{i}-{row[0]}" for i, row in enumerate(VALUES)]
)
def test_values(name, inputs, params, kind, words):
    arrays = [np.asarray(a, np.int64 if isinstance(a, list) else np.float32) for a in inputs]
    check_refused(eager, OPS[name], arrays, params, words, kind=kind)
