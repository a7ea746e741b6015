"""Bad input to operators of layout, ranges, repetition, sequences, products, linear algebra and patches: clear errors.

All is tried on arrays and on symbols, whose errors come with inference at the latest.
"""

import numpy as np
import pytest

import mxcore as mx

from .bad_input import BOTH, check_refused, eager, first, inferred, operators

OPS = operators("elementwise shape slicing sequence linalg convolution attention")


#: operator, shapes of inputs, parameters, what the message says
SHAPES = [
    ("SwapAxis", [(2, 3)], {"dim1": 2}, "axis 2 is out of range for 2 dimensions"),
    ("SwapAxis", [(2, 3)], {"dim2": -3}, "axis -3"),
    ("squeeze", [(1, 3)], {"axis": 1}, "axis 1 has length 3"),
    ("squeeze", [(1, 3)], {"axis": (0, -2)}, "names one axis twice"),
    ("squeeze", [(1, 3)], {"axis": 2}, "axis 2"),
    ("reverse", [(2, 3)], {"axis": 2}, "axis 2"),
    ("reverse", [(2, 3)], {"axis": (1, -1)}, "twice"),
    ("depth_to_space", [(4, 2, 2)], {"block_size": 2}, "4 dimensions"),
    ("depth_to_space", [(1, 6, 2, 2)], {"block_size": 2}, "6 channels are no multiple of block_size**2 = 4"),
    ("depth_to_space", [(1, 4, 2, 2)], {"block_size": 0}, "block_size"),
    (
        "space_to_depth",
        [(1, 4, 3, 2)],
        {"block_size": 2},
        "height and width of (1, 4, 3, 2) must be multiples of block_size = 2",
    ),
    ("diag", [(2, 3)], {"k": 4}, "no diagonal k=4"),
    ("diag", [(2, 3)], {"axis1": 1, "axis2": -1}, "must differ"),
    ("diag", [(2, 3)], {"axis2": 2}, "axis 2"),
    ("_identity_with_attr_like_rhs", [(2, 3), (3, 2)], {}, "(3, 2)"),
    ("slice_axis", [(2, 3)], {"axis": 1, "begin": 2, "end": 2}, "begin=2 and end=2 select nothing"),
    ("slice_axis", [(2, 3)], {"axis": 1, "begin": 0, "end": 4}, "axis 1 of length 3"),
    ("slice_axis", [(2, 3)], {"axis": 2, "begin": 0, "end": 1}, "axis 2"),
    ("slice_like", [(2, 3), (2, 4)], {}, "less than the 4"),
    ("slice_like", [(2, 3), (2,)], {}, "different ranks"),
    ("slice_like", [(2, 3), (2, 3)], {"axes": (2,)}, "axis 2"),
    ("Crop", [(1, 1, 4, 4)], {"h_w": (5, 1)}, "does not lie in an image of 4 x 4"),
    ("Crop", [(1, 1, 4, 4)], {"h_w": (2, 2), "offset": (3, 0)}, "offset (3, 0)"),
    ("Crop", [(4, 4)], {"h_w": (2, 2)}, "4 dimensions"),
    ("Crop", [(1, 1, 4, 4)] * 3, {}, "one or two arrays, not 3"),
    ("_split_v2", [(2, 4)], {"indices": ()}, "needs indices"),
    ("_split_v2", [(2, 4)], {"indices": (0, 5)}, "axis of length 4"),
    ("_split_v2", [(2, 4)], {"indices": (0, 3, 1)}, "must rise"),
    ("_split_v2", [(2, 4)], {"indices": (0, 1), "squeeze_axis": True}, "parts of length 1"),
    ("_slice_assign", [(4, 5), (2, 2)], {"begin": (0, 0), "end": (2, 3)}, "(2, 2)"),
    ("_slice_assign", [(4, 5), (2, 2)], {"begin": (0,), "end": (2, 3)}, "different lengths"),
    ("_slice_assign_scalar", [(4,)], {"begin": (0, 0), "end": (2, 3)}, "begin (0, 0)"),
    ("repeat", [(2, 3)], {"repeats": 2, "axis": 2}, "axis 2"),
    ("repeat", [(2, 3)], {"repeats": -1}, "repeats"),
    ("repeat", [(2, 3)], {"repeats": 2**60}, "no array of shape"),
    ("tile", [(2, 3)], {"reps": (2, -1)}, "reps (2, -1)"),
    ("tile", [(2, 3)], {"reps": (2**30, 2**30)}, "no array of shape"),
    ("Pad", [(1, 1, 2, 2)], {"mode": "edge", "pad_width": (1, 1)}, "two numbers for each of the 4 dimensions"),
    ("Pad", [(1, 1, 2, 2)], {"mode": "edge", "pad_width": (0,) * 7 + (-1,)}, "negative"),
    ("Pad", [(1, 1, 2, 2)], {"mode": "reflect", "pad_width": (0,) * 7 + (2,)}, "cannot pad axis 3 of length 2"),
    ("Pad", [(1, 1, 2, 2)], {"mode": "wrap", "pad_width": (0,) * 8}, "constant, edge, reflect"),
    ("broadcast_axis", [(1, 2)], {"axis": 1, "size": 3}, "axis 1 has length 2"),
    ("broadcast_axis", [(1, 1)], {"axis": (0, 1), "size": 3}, "different lengths"),
    ("broadcast_axis", [(1, 1)], {"axis": (0, -2), "size": (3, 3)}, "twice"),
    ("broadcast_axis", [(1, 1)], {"axis": 0, "size": -1}, "size (-1,) must not be negative"),
    ("add_n", [(2, 3), (3, 2)], {}, "(3, 2)"),
    ("add_n", [(2, 3)], {"num_args": 2**40}, "num_args"),
    ("_rnn_param_concat", [(2, 3), (3, 3)], {"dim": 1}, "dimension 0"),
    ("_rnn_param_concat", [(2, 3)], {"dim": 2}, "axis 2"),
    ("SequenceMask", [(4,)], {}, "at least two dimensions"),
    ("SequenceMask", [(4, 3), (4,)], {"use_sequence_length": True}, "one length for each sequence of data (4, 3)"),
    ("SequenceMask", [(4, 3)], {"axis": 2}, "'axis' must be int between 0 and 1, got 2"),
    ("SequenceLast", [(0, 3)], {}, "has no steps"),
    ("SequenceReverse", [(4, 3), (3, 1)], {"use_sequence_length": True}, "sequence_length (3, 1)"),
    ("dot", [(2, 3), (2, 3)], {}, "3 and 2"),
    ("dot", [(3,), (3,)], {"transpose_a": True}, "vectors cannot be transposed"),
    ("dot", [(2, 3), (3, 2)], {"forward_stype": "dense"}, "csr, default, row_sparse"),
    ("batch_dot", [(2, 3), (3, 2)], {}, "three or more dimensions"),
    ("batch_dot", [(2, 2, 3), (2, 2, 3)], {}, "inner lengths 3 and 2"),
    ("khatri_rao", [(2, 3), (2, 2)], {}, "same number of columns"),
    ("khatri_rao", [(2, 3, 1), (2, 3)], {}, "matrices"),
    ("_linalg_gemm2", [(2, 3), (2, 3)], {}, "inner lengths 3 and 2"),
    ("_linalg_gemm2", [(2, 3), (1, 3, 2)], {}, "one rank"),
    ("_linalg_gemm2", [(2, 2, 3), (3, 3, 2)], {}, "dimension 0"),
    ("_linalg_gemm2", [(2, 3), (3, 2)], {"axis": -1}, "last axis holds the columns"),
    ("_linalg_gemm", [(2, 3), (3, 2), (2, 3)], {}, "C (2, 3) must have the shape of the product, (2, 2)"),
    ("_linalg_syrk", [(3,)], {}, "at least two dimensions"),
    ("_linalg_trmm", [(3, 3), (2, 3)], {}, "A @ B"),
    ("_linalg_trmm", [(3, 3), (3, 2)], {"rightside": True}, "B @ A"),
    ("_linalg_trsm", [(3, 2), (3, 2)], {}, "square"),
    ("_linalg_extractdiag", [(2, 3)], {}, "square"),
    ("_linalg_extractdiag", [(2, 2)], {"offset": -2}, "offset -2"),
    ("_linalg_makediag", [(2,)], {"offset": 2**40}, "no array of shape"),
    ("_linalg_extracttrian", [(2, 2)], {"offset": 2}, "offset 2"),
    ("_linalg_maketrian", [(4,)], {}, "4 elements fill no triangle"),
    ("_linalg_potrf", [(3,)], {}, "square"),
    ("_linalg_det", [(2, 3)], {}, "square"),
    ("_linalg_gelqf", [(3, 2)], {}, "no more rows than columns"),
    ("_linalg_syevd", [(1, 2, 3)], {}, "square"),
    ("im2col", [(1, 2, 4)], {"kernel": (2, 2)}, "2 dimensions after batch and channel"),
    ("im2col", [(1, 2, 4, 4)], {"kernel": (5, 2)}, "covers 5"),
    ("im2col", [(1, 2, 4, 4)], {"kernel": (2, 2), "stride": (0, 1)}, "stride (0, 1)"),
    ("im2col", [(1, 2, 4, 4)], {"kernel": (2, 2), "pad": (1,)}, "pad (1,)"),
    ("col2im", [(1, 4, 9)], {"output_size": (4,), "kernel": (2, 2)}, "as many dimensions as kernel"),
    ("col2im", [(1, 5, 9)], {"output_size": (4, 4), "kernel": (2, 2)}, "a multiple of the kernel's 4 elements"),
    ("col2im", [(1, 4, 8)], {"output_size": (4, 4), "kernel": (2, 2)}, "which are (1, 4, 9)"),
]


@BOTH
@pytest.mark.parametrize("name, shapes, params, words", SHAPES)
def test_shapes_and_ranges(call, name, shapes, params, words):
    if OPS[name].variadic:
        params = {OPS[name].count: len(shapes), **params}
    check_refused(call, OPS[name], [np.ones(s, np.float32) for s in shapes], params, words)


#: The gradients' own operators, whose inputs must fit each other.
SPREADS = [
    ("_diag_spread", [(2,), (3, 4)], {}, "data is (2,) where (3,) is expected"),
    ("_slice_axis_spread", [(3, 3), (3, 4)], {"axis": 1, "begin": 1, "end": 3}, "where (3, 2) is expected"),
    ("_corner_spread", [(4, 3), (3, 4)], {}, "no corner of (3, 4)"),
    (
        "_crop_spread",
        [(1, 1, 3, 3), (1, 1, 4, 4)],
        {"num_args": 1, "h_w": (2, 2)},
        "must have the shape of what Crop keeps, (1, 1, 2, 2)",
    ),
    ("_crop_again", [(1, 1, 3, 3), (1, 1, 4, 4)], {"num_args": 1, "h_w": (2, 2)}, "the shape of the first of data"),
    ("_repeat_sum", [(5,), (2, 3)], {"repeats": 2}, "where (12,) is expected"),
    ("_tile_sum", [(4, 4), (2, 3)], {"reps": (2, 1)}, "where (4, 3) is expected"),
    (
        "_backward_Pad",
        [(1, 1, 3, 3), (1, 1, 2, 2)],
        {"mode": "edge", "pad_width": (0,) * 7 + (1,)},
        "where (1, 1, 2, 3) is expected",
    ),
    ("_dot_left", [(2, 3), (3, 4), (2, 3)], {}, "dy (2, 3) must have the shape of the product, (2, 4)"),
    ("_dot_right", [(2, 3), (2, 3), (3, 4)], {}, "dy (2, 3) must have the shape of the product, (2, 4)"),
    ("_sequence_last_spread", [(3, 2), (3, 2, 2)], {}, "the shape of the last steps, (2, 2)"),
    ("_col2im_like", [(1, 4, 8), (1, 1, 4, 4)], {"kernel": (2, 2)}, "where (1, 4, 9) is expected"),
]


@BOTH
@pytest.mark.parametrize("name, shapes, params, words", SPREADS)
def test_inputs_of_gradients(call, name, shapes, params, words):
    check_refused(call, OPS[name], [np.ones(s, np.float32) for s in shapes], params, words)


FACTORS = "potrf potri inverse det slogdet sumlogdiag gelqf syevd trsm".split()


@BOTH
@pytest.mark.parametrize("name", [*FACTORS, "gemm", "gemm2", "syrk", "trmm"])
def test_dtypes_of_linear_algebra(call, name):
    op = OPS[f"_linalg_{name}"]
    arrays = [np.eye(2)] * len(op.input_names)
    for dtype in ["int32", "uint8", "bool", *(["float16"] if name in FACTORS else [])]:
        check_refused(call, op, [a.astype(dtype) for a in arrays], {}, dtype, "float32 or float64", kind=TypeError)


@BOTH
@pytest.mark.parametrize(
    "name",
    ["add_n", "dot", "batch_dot", "khatri_rao", "_slice_assign", "_linalg_gemm2", "_linalg_trsm", "_rnn_param_concat"],
)
def test_mixed_dtypes(call, name):
    op = OPS[name]
    arrays, params = first(op)
    if len(arrays) < 2:
        arrays, params = op.samples[0].arrays("float32") * 2, {**params, op.count: 2}
    check_refused(
        call, op, [arrays[0], *[a.astype("float64") for a in arrays[1:]]], params, "float32", "float64", kind=TypeError
    )


def test_no_dimensions():
    check_refused(inferred, OPS["_contrib_div_sqrt_dim"], [np.ones(())], {}, "at least one dimension")


def test_singular_and_indefinite_matrices():
    eye = np.eye(2, dtype=np.float32)
    stack = np.stack([[eye, eye, eye], [eye, 0 * eye, eye]])
    for name, low, what in (
        ("inverse", 0 * eye, "singular"),
        ("potri", 0 * eye, "singular: a factor has no zeros on its diagonal"),
        ("potrf", -eye, "not positive definite"),
    ):
        op = OPS[f"_linalg_{name}"]
        check_refused(eager, op, [low], {}, f"the matrix A is {what}", kind=ValueError)
        stack[1, 1] = low
        check_refused(eager, op, [stack], {}, f"the matrix A[1, 1] is {what}", kind=ValueError)
        if name != "inverse":
            check_refused(eager, op, [stack], {"lower": False}, f"the matrix A[1, 1] is {what}", kind=ValueError)
    assert mx.nd.linalg.trsm(mx.nd.zeros((2, 2)), mx.nd.ones((2, 1))).asnumpy().ravel().tolist()[0] == np.inf
    assert mx.nd.linalg.det(mx.nd.ones((2, 2))).asscalar() == 0


@pytest.mark.parametrize(
    "name, lengths, words",
    [
        ("SequenceLast", [0, 2], "sequence_length holds 0; a length must lie between 1 and 3"),
        ("SequenceLast", [1, 4], "holds 4"),
        ("SequenceReverse", [4, 2], "sequence_length holds 4; a length must lie between 0 and 3"),
        ("SequenceReverse", [1, -1], "holds -1"),
    ],
)
def test_lengths_of_sequences(name, lengths, words):
    for axis, shape in ((0, (3, 2)), (1, (2, 3))):
        arrays = [np.ones(shape, np.float32), np.array(lengths, np.float32)]
        check_refused(eager, OPS[name], arrays, {"use_sequence_length": True, "axis": axis}, words, kind=ValueError)
