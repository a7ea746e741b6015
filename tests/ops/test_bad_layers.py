"""Layers refuse what they cannot do, when called and inferred; errors name operator, culprit, what is allowed."""

import re

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import tables

from . import bad_input
from .bad_input import eager, inferred

C3 = [(3,)] * 4

#: operator -> (shapes of inputs, parameters): a use that is right, from which the bad ones depart.
GOOD = {
    "FullyConnected": ([(3, 5), (4, 5), (4,)], {"num_hidden": 4}),
    "Convolution": ([(2, 4, 5, 6), (6, 2, 3, 2), (6,)], {"kernel": (3, 2), "num_filter": 6, "num_group": 2}),
    "Deconvolution": ([(2, 4, 5, 6), (4, 3, 3, 2)], {"kernel": (3, 2), "num_filter": 6, "num_group": 2}),
    "Pooling": ([(2, 3, 4, 4)], {"kernel": (2, 2), "pool_type": "avg"}),
    "BatchNorm": ([(2, 3, 4), *C3], {}),
    "_contrib_SyncBatchNorm": ([(2, 3, 4), *C3], {"key": "bad"}),
    "_contrib_BatchNormWithReLU": ([(2, 3, 4), *C3], {}),
    "LayerNorm": ([(2, 3), (3,), (3,)], {}),
    "GroupNorm": ([(2, 4, 3), (2,), (2,)], {"num_groups": 2}),
    "InstanceNorm": ([(2, 3, 4), (3,), (3,)], {}),
    "L2Normalization": ([(2, 3)], {}),
    "LRN": ([(2, 5, 3, 3)], {"nsize": 3}),
    "LeakyReLU": ([(2, 3)], {}),
    "Dropout": ([(2, 3)], {}),
    "softmax": ([(2, 3)], {}),
    "softmin": ([(2, 3)], {}),
    "log_softmax": ([(2, 3)], {}),
    "SoftmaxActivation": ([(2, 3)], {}),
    "SoftmaxOutput": ([(2, 3), (2,)], {}),
    "LinearRegressionOutput": ([(2, 3), (2, 3)], {}),
    "LogisticRegressionOutput": ([(2, 3), (2, 3)], {}),
    "MAERegressionOutput": ([(2, 3), (2, 3)], {}),
    "SVMOutput": ([(2, 3), (2,)], {}),
    "MakeLoss": ([(2, 3)], {}),
    "softmax_cross_entropy": ([(2, 3), (2,)], {}),
    "IdentityAttachKLSparseReg": ([(2, 3), (3,)], {}),
    "UpSampling": ([(1, 2, 2, 2), (2, 1, 4, 4)], {"scale": 2, "sample_type": "bilinear", "num_filter": 2}),
    "CTCLoss": ([(5, 2, 4), (2, 2)], {}),
}

_CONVOLUTIONS = [
    ({"kernel": ()}, "kernel .* must have 1, 2 or 3 dimensions"),
    ({"kernel": (1,) * 4}, "kernel .* must have 1, 2 or 3 dimensions"),
    ({"kernel": (3,)}, "has 4 dimensions; kernel .* needs 3"),
    ({"kernel": (0, 2)}, "kernel .* at least 1"),
    ({"kernel": (3, -2)}, "kernel .* at least 1"),
    ({"kernel": "abc"}, "'kernel' must be a tuple of ints, got 'abc'"),
    ({"kernel": (3, 2.5)}, "'kernel' must be a tuple of ints"),
    ({"kernel": None}, "'kernel' must be tuple of ints, not None"),
    ({"stride": (1,)}, "stride .* must be 2 numbers"),
    ({"stride": (0, 1)}, "stride .* at least 1"),
    ({"dilate": (0, 1)}, "dilate .* at least 1"),
    ({"pad": (-1, 0)}, "pad .* at least 0"),
    ({"pad": (1, 1, 1)}, "pad .* must be 2 numbers"),
    ({"num_filter": 0}, "'num_filter' must be int >= 1, got 0"),
    ({"num_filter": 5}, "num_filter 5 is no multiple of num_group=2"),
    ({"num_filter": 7.5}, "'num_filter' must be int >= 1, got 7.5"),
    ({"num_group": 0}, "'num_group' must be int >= 1, got 0"),
    ({"num_group": 3}, "is no multiple of num_group=3"),
    ({"layout": "NCW"}, "layout NCW does not fit kernel"),
    ({"layout": "XY"}, "'layout' must be one of NCW, NCHW"),
    ({"cudnn_tune": "slow"}, "'cudnn_tune' must be one of"),
    ({"workspace": 2.5}, "'workspace' must be int >= 0, got 2.5"),
    ({"no_bias": "perhaps"}, "'no_bias' must be True or False, got 'perhaps'"),
]

_BATCH_NORMS = [
    ({"eps": "a"}, "'eps' must be float >= 0, got 'a'"),
    ({"eps": -1}, "'eps' must be float >= 0, got -1.0"),
    ({"momentum": None}, "'momentum' must be float, not None"),
    ({"fix_gamma": None}, "'fix_gamma' must be bool, not None"),
    ({"use_global_stats": 2.5}, "'use_global_stats' must be True or False"),
    ([(2, 3, 4), *[(4,)] * 4], r"gamma is \(4,\) where \(3,\) is expected"),
    ([(2, 3, 4), (3,), (3,), (3,), (4,)], r"moving_var is \(4,\) where \(3,\) is expected"),
    ([(2, 3, 4), (3, 1), (3,), (3,), (3,)], r"gamma is \(3, 1\) where \(3,\) is expected"),
]

_AXES = [
    ({"axis": 3}, "axis 3 is out of range for 3 dimensions"),
    ({"axis": -4}, "axis -4 is out of range"),
    ({"axis": 1.5}, "'axis' must be int, got 1.5"),
]

_SOFTMAXES = [
    ({"axis": 2}, "axis 2 is out of range for 2 dimensions"),
    ({"axis": -3}, "axis -3 is out of range"),
    ({"axis": None}, "'axis' must be int, not None"),
    ({"temperature": 0}, "'temperature' must be a float other than 0, got 0.0"),
    ({"temperature": "hot"}, "'temperature' must be float, got 'hot'"),
    ({"dtype": "int32"}, "'dtype' must be one of float16, float32, float64"),
]

_REGRESSIONS = [
    ([(2, 3), (3, 2)], "one batch size"),
    ([(2, 3), (2, 2)], "as many elements"),
    ([(2, 3), (6,)], "one batch size"),
    ({"grad_scale": "x"}, "'grad_scale' must be float, got 'x'"),
]

#: operator -> rows of (shapes of inputs, or parameters, or both, what the error says).
BAD = {
    "FullyConnected": [
        ({"num_hidden": 0}, "'num_hidden' must be int >= 1, got 0"),
        ({"num_hidden": 2.5}, "'num_hidden' must be int >= 1, got 2.5"),
        ({"num_hidden": "x"}, "'num_hidden' must be int >= 1, got 'x'"),
        ({"num_hidden": None}, "'num_hidden' must be int >= 1, not None"),
        ({"no_bias": "maybe"}, "'no_bias' must be True or False, got 'maybe'"),
        ({"flatten": None}, "'flatten' must be bool, not None"),
        ({"num_hidden": 5}, r"weight is \(4, 5\) where \(5, 5\) is expected"),
        ([(3, 5), (4, 6), (4,)], r"weight is \(4, 6\) where \(4, 5\)"),
        ([(3, 5), (4, 5), (5,)], r"bias is \(5,\) where \(4,\)"),
        ([(3, 5), (4, 5, 1), (4,)], "weight is"),
        ([(3, 5), (4, 5), (4, 1)], "bias is"),
    ],
    "Convolution": [
        *_CONVOLUTIONS,
        ([(2, 4, 2, 6), (6, 2, 3, 2), (6,)], "the kernel covers 3 in spatial dimension 0, the padded data has only 2"),
        ([(2, 3, 5, 6), (6, 2, 3, 2), (6,)], "number of channels 3 is no multiple of num_group=2"),
        ([(2, 4, 5), (6, 2, 3, 2), (6,)], "data has 3 dimensions; kernel .* needs 4"),
        ([(2, 4, 5, 6), (6, 4, 3, 2), (6,)], "weight is"),
        ([(2, 4, 5, 6), (6, 2, 3, 2), (5,)], "bias is"),
        ([(2, 4, 5, 6), (6, 2, 3, 3), (6,)], "weight is"),
    ],
    "Deconvolution": [
        *_CONVOLUTIONS,
        ({"adj": (1, 0)}, "adj .* each below stride"),
        ({"adj": (1,)}, "adj .* must be 2 numbers"),
        ({"adj": (-1, 0)}, "adj .* must be"),
        ({"stride": (2, 2), "adj": (2, 0)}, "adj .* each below stride"),
        ({"target_shape": (50, 50)}, "target_shape .* is larger than"),
        ({"target_shape": (6,)}, "target_shape .* must have 2 numbers"),
        ({"target_shape": (-1, 3)}, "target_shape .* must be numbers above 0"),
        ({"target_shape": (5, 0)}, "target_shape .* must be numbers above 0"),
        ({"pad": (9, 9)}, "pad .* leaves nothing"),
        ([(2, 3, 5, 6), (4, 3, 3, 2)], "number of channels 3 is no multiple of num_group=2"),
        ([(2, 4, 5, 6), (4, 6, 3, 2)], "weight is"),
    ],
    "Pooling": [
        ({"kernel": ()}, "kernel .* must have 2 numbers"),
        ({"kernel": (2, 2, 2)}, "kernel .* must have 2 numbers"),
        ({"kernel": (0, 2)}, "kernel .* at least 1"),
        ({"kernel": (9, 9)}, "the kernel covers 9"),
        ({"stride": (0, 1)}, "stride .* at least 1"),
        ({"stride": (1,)}, "stride .* must be 2 numbers"),
        ({"pad": (2, 2)}, "pad .* must be smaller than kernel"),
        ({"pad": (-1, 0)}, "pad .* at least 0"),
        ({"pool_type": "mean"}, "'pool_type' must be one of"),
        ({"pool_type": "lp"}, "needs p_value, one of 1, 2, 3"),
        ({"p_value": 4}, "'p_value' must be int between 1 and 3, got 4"),
        ({"p_value": 0}, "'p_value' must be"),
        ({"p_value": "q"}, "'p_value' must be int between 1 and 3, got 'q'"),
        ({"pooling_convention": "half"}, "'pooling_convention' must be one of"),
        ({"layout": "NCW"}, "layout NCW does not fit data"),
        ({"layout": "Z"}, "'layout' must be one of"),
        ({"global_pool": "sure"}, "'global_pool' must be"),
        ({"count_include_pad": "x"}, "'count_include_pad' must be"),
        ([(2, 3)], r"data \(2, 3\) must have batch, channels and 1, 2 or 3"),
        ([(1,) * 6], "must have batch, channels and 1, 2 or 3 spatial dimensions"),
    ],
    "BatchNorm": [*_BATCH_NORMS, *_AXES],
    "_contrib_BatchNormWithReLU": [*_BATCH_NORMS, *_AXES],
    "_contrib_SyncBatchNorm": [
        *_BATCH_NORMS,
        ([(3,), *C3], "must have batch and channels"),
        ({"ndev": 0}, "'ndev' must be int between 1 and 1024, got 0"),
    ],
    "LayerNorm": [
        ({"axis": 2}, "axis 2 is out of range for 2 dimensions"),
        ({"axis": "q"}, "'axis' must be int, got 'q'"),
        ({"eps": None}, "'eps' must be float >= 0, not None"),
        ({"eps": -1e-5}, "'eps' must be float >= 0, got -1e-05"),
        ({"output_mean_var": "p"}, "'output_mean_var' must be True or False"),
        ([(2, 3), (2,), (3,)], r"gamma is \(2,\) where \(3,\)"),
        ([(2, 3), (3,), (3, 1)], "beta is"),
    ],
    "GroupNorm": [
        ({"num_groups": 3}, "4 channels are no multiple of num_groups=3"),
        ({"num_groups": 0}, "'num_groups' must be int >= 1, got 0"),
        ({"eps": -1}, "'eps' must be float >= 0"),
        ({"num_groups": 8}, "4 channels are no multiple of num_groups=8"),
        ([(2, 4, 3), (4,), (4,)], r"gamma is \(4,\) where \(2,\)"),
        ([(4,), (2,), (2,)], r"data \(4,\) must have batch and channels"),
    ],
    "InstanceNorm": [
        ([(2, 3), (3,), (3,)], "must have batch, channels and spatial"),
        ([(2, 3, 4), (4,), (3,)], "gamma is"),
        ({"eps": "x"}, "'eps' must be float"),
        ({"eps": -1}, "'eps' must be float >= 0"),
    ],
    "L2Normalization": [
        ({"mode": "x"}, "'mode' must be one of channel, instance, spatial"),
        ([(2,)], {"mode": "channel"}, "needs data of at least 2 dimensions"),
        ({"mode": "spatial"}, "mode spatial needs data of at least 3 dimensions"),
        ({"eps": "q"}, "'eps' must be float"),
        ({"eps": -1}, "'eps' must be float >= 0"),
    ],
    "LRN": [
        ({"nsize": 2}, "nsize must be odd, got 2"),
        ({"nsize": 0}, "'nsize' must be int >= 1"),
        ({"nsize": -3}, "'nsize' must be int >= 1, got -3"),
        ([(3,)], "needs data of at least 2 dimensions"),
        ({"alpha": None}, "'alpha' must be float, not None"),
    ],
    "LeakyReLU": [
        ({"act_type": "swish"}, "'act_type' must be one of elu, gelu"),
        ({"slope": "z"}, "'slope' must be float"),
        ([(2, 3), (2,)], {"act_type": "prelu"}, r"gamma \(2,\) must have shape \(3,\) or \(1,\)"),
        ([(2, 3), (3, 1)], {"act_type": "prelu"}, "gamma .* must have shape"),
    ],
    "Dropout": [
        ({"p": 1.5}, "'p' must be float between 0 and 1, got 1.5"),
        ({"p": -0.1}, "'p' must be float"),
        ({"p": float("nan")}, "'p' must be float .* got nan"),
        ({"mode": "never"}, "'mode' must be one of always, training"),
        ({"axes": (2,)}, r"axes \(2,\) must lie in \[0, 2\)"),
        ({"axes": (-3,)}, "axes .* must lie in"),
        ({"axes": "x"}, "'axes' must be a tuple of ints"),
    ],
    "softmax": [
        *_SOFTMAXES,
        ([(2, 3), (3,)], {"use_length": True}, r"length is \(3,\) where \(2,\)"),
        ([(2, 3), (2, 1)], {"use_length": True}, "length is"),
    ],
    "softmin": [*_SOFTMAXES, ({"use_length": True}, "use_length is for softmax")],
    "log_softmax": [*_SOFTMAXES, ({"use_length": True}, "use_length is for softmax")],
    "SoftmaxActivation": [
        ({"mode": "all"}, "'mode' must be one of channel, instance"),
        ([(3,)], {"mode": "channel"}, "mode channel needs data of more dimensions"),
    ],
    "SoftmaxOutput": [
        ([(2, 3), (3,)], r"label is \(3,\) where \(2,\)"),
        ([(2, 3), (2, 2)], "label is"),
        ([(3,), (3,)], {"multi_output": True}, "no classes on axis 1"),
        ([(2, 3, 4), (2, 3)], {"multi_output": True}, r"label \(2, 3\) must be \(2, 4\)"),
        ([(2, 3, 4), (2, 4)], {"preserve_shape": True}, "label is"),
        ({"normalization": "sum"}, "'normalization' must be one of"),
        ({"grad_scale": "x"}, "'grad_scale' must be float"),
        ({"use_ignore": "x"}, "'use_ignore' must be True or False"),
    ],
    "LinearRegressionOutput": _REGRESSIONS,
    "LogisticRegressionOutput": _REGRESSIONS,
    "MAERegressionOutput": _REGRESSIONS,
    "SVMOutput": [
        ([(2, 3), (3,)], "label is"),
        ([(2, 3), (2, 3)], "label is"),
        ({"margin": "x"}, "'margin' must be float"),
        ({"use_linear": "x"}, "'use_linear' must be"),
        ([(3,), (3,)], "label is"),
    ],
    "MakeLoss": [
        ({"normalization": "x"}, "'normalization' must be one of"),
        ({"grad_scale": None}, "'grad_scale' must be float, not None"),
    ],
    "softmax_cross_entropy": [
        ([(2, 3), (3,)], "differ in dimension 0"),
        ([(2, 3, 4), (2,)], r"data must be \(N, C\), got \(2, 3, 4\)"),
        ([(2, 3), (2, 1)], "different ranks"),
    ],
    "IdentityAttachKLSparseReg": [
        ({"sparseness_target": 1.5}, "'sparseness_target' must be float"),
        ({"momentum": -1}, "'momentum' must be float"),
        ([(2, 3), (2,)], "moving_avg is"),
        ([(3,), (3,)], "must have batch and channels"),
    ],
    "UpSampling": [
        ({"scale": 0}, "'scale' must be int >= 1, got 0"),
        ({"scale": 1.5}, "'scale' must be int >= 1, got 1.5"),
        ({"sample_type": "cubic"}, "'sample_type' must be"),
        ({"multi_input_mode": "max"}, "'multi_input_mode' must be one of concat, sum"),
        ({"num_filter": 0}, "needs num_filter, the number of channels"),
        ([(1, 2, 2, 2), (2, 1, 4, 3)], "weight is|is expected"),
        ([(1, 3, 2, 2), (2, 1, 4, 4)], "is expected"),
        *(
            ([(1, 2, 2, 2), second], {"sample_type": "nearest", **more}, says)
            for second, more, says in (
                ((1, 2, 3, 3), {}, "cannot be enlarged"),
                ((1, 2, 1, 2), {}, "one whole factor"),
                ((2, 2, 4, 4), {}, "differ in batch"),
                ((1, 1, 2, 2), {"multi_input_mode": "sum"}, "differ in channels"),
                ((2, 2, 2), {}, r"must be \(N, C, H, W\)"),
            )
        ),
    ],
    "CTCLoss": [
        ([(5, 2), (2, 2)], r"data \(time, N, C\) must have 3 dimensions"),
        ([(5, 2, 4), (2,)], r"label \(N, L\) must have 2 dimensions"),
        ([(5, 2, 4), (3, 2)], "differ in dimension 0"),
        ([(1, 2, 4), (2, 2)], "labels of length 2 are longer than the 1 time steps"),
        ({"blank_label": "middle"}, "'blank_label' must be one of first, last"),
        ([(5, 2, 4), (2, 2), (3,)], {"use_data_lengths": True}, "data_lengths is"),
        ([(5, 2, 4), (2, 2), (2, 1)], {"use_label_lengths": True}, "label_lengths is"),
    ],
}

ROWS = [
    pytest.param(
        op, *(r if len(r) == 3 else (r[0], {}, r[1]) if isinstance(r[0], list) else (None, *r)), id=f"{op}-{i}"
    )
    for op, rows in BAD.items()
    for i, r in enumerate(rows)
]


def refused(name, shapes, params, says, dtypes=None, graph=True):
    """Both ways refuse it."""
    arrays = [np.ones(s, t) for s, t in zip(shapes, dtypes or ["float32"] * len(shapes))]
    for call in (eager, inferred)[: 1 + graph]:
        with mx.util.np_shape(True):
            bad_input.check_refused(call, tables.ops.get(name), arrays, params, re.compile(f"(?s){says}"))


@pytest.mark.parametrize(("name", "shapes", "params", "says"), ROWS)
def test_refused(name, shapes, params, says):
    good, usual = GOOD[name]
    refused(name, good if shapes is None else shapes, {**usual, **params}, says)


@pytest.mark.parametrize("name", GOOD)
def test_right_use_is_right(name):
    shapes, params = GOOD[name]
    found = tables.ops.get(name)(*[mx.nd.ones(s) for s in shapes], **params)
    assert (found[0] if isinstance(found, list) else found).asnumpy().size


@pytest.mark.parametrize("name", GOOD)
def test_whole_numbers_and_bools(name):
    shapes, params = GOOD[name]
    for t in ("int32", "uint8", "bool"):
        refused(name, shapes, params, f"{t}", [t] * len(shapes))


@pytest.mark.parametrize("name", [n for n, (shapes, _) in GOOD.items() if len(shapes) > 1 and n != "CTCLoss"])
def test_mixed_dtypes(name):
    shapes, params = GOOD[name]
    refused(name, shapes, params, "float32.*float64|float64.*float32", ["float64"] + ["float32"] * (len(shapes) - 1))


@pytest.mark.parametrize("name", [n for n in GOOD if n not in ("LeakyReLU", "Dropout", "MakeLoss")])
def test_no_dimensions(name):
    shapes, params = GOOD[name]
    refused(name, [(), *shapes[1:]], params, "dimension|rank|batch|channels|classes|N, C|expected")


def test_softmax_lengths_are_whole():
    refused("softmax", [(2, 3), (2,)], {"use_length": True}, "length must be of an integer dtype, got float32")


def test_maxima_of_whole_numbers():
    x = mx.nd.array([[[1, 7, 3, 3]]], dtype="uint8")
    assert mx.nd.Pooling(x, kernel=(2,), stride=(2,)).asnumpy().tolist() == [[[7, 3]]]
    refused("Pooling", [(1, 1, 4)], {"kernel": (2,)}, "bool numbers are whole", ["bool"])
