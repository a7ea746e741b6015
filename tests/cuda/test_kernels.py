"""Every kernel against float64 NumPy: sizes of nothing, one, odd ones, over a block; in three orders of threads.

Outputs and shared memory are full of NaN before. And a kernel from which any one barrier is deleted is found out.
"""

import inspect
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import mxcore as mx
from mxcore.plugin import LaterKey, find_op
from mxcore.testing.sample import Ints, Values
from mxcore.testing.ways import kernels_reached, reference_bodies
from mxcore_cuda import launching, sources
from mxcore_cuda.bindings import elementwise, gpu
from mxcore_cuda.dtypes import HALVES
from mxcore_cuda.emulation import compiler
from mxcore_cuda.emulation.driver import Launch

from .beside import BESIDE
from .test_random import DRAWS, drawn

BATCH = {"fix_gamma": False, "eps": 1e-3}


class State(Values):
    """A state that the operator moves."""


class Csr(Values):
    """A matrix of which some values are stored: most columns have few, one has many, and the last rows none."""

    def draw(self, rs):
        values = super().draw(rs) * (rs.uniform(size=self.shape) < 0.2)
        values[:, self.shape[1] // 2 :][:, :1] = 1
        values[len(values) * 7 // 8 :] = 0
        return values


class Regions(Values):
    """Regions of `n` images of a size, and of one that there is not; some are empty, or beside the image."""

    def __init__(self, count, n, size):
        super().__init__((count, 5), 0, 1)
        self.scale = (n + 0.9, *2 * (size * 1.2,))

    def draw(self, rs):
        corner = rs.uniform(-2, self.scale[1], (self.shape[0], 2))
        image = np.floor(rs.uniform(0, self.scale[0], (self.shape[0], 1)))
        return np.concatenate([image, corner, corner + rs.uniform(-1, self.scale[1], corner.shape)], 1)


def batch(*shape, axis=1, op="BatchNorm", **params):
    c = (shape[axis],)
    return op, [shape, c, c, State(c, -1, 1), State(c, 0, 1)], {**BATCH, "axis": axis, **params}


def rows(op, shape, n, **params):
    return op, [shape, (n,), (n,)], params


#: Updates of one weight, with parameters beside its rate and decay.
STEPS = [
    ("sgd_update", {"rescale_grad": 0.5}),
    ("sgd_mom_update", {"momentum": 0.5, "clip_gradient": 0.5}),
    ("nag_mom_update", {"momentum": 0.5}),
    ("signsgd_update", {}),
    ("signum_update", {"momentum": 0.5, "wd_lh": 0.125}),
    ("adam_update", {"epsilon": 0.0625, "clip_gradient": 0.5}),
    ("rmsprop_update", {"epsilon": 0.0625, "clip_weights": 0.75}),
    ("rmspropalex_update", {"epsilon": 0.0625}),
    ("ftrl_update", {"lamda1": 0.25}),
    ("ftml_update", {"t": 2, "epsilon": 0.0625}),
    ("_sparse_adagrad_update", {"epsilon": 0.0625}),
]
#: Those with a form for master copies.
MIXED = ("sgd_update", "sgd_mom_update", "nag_mom_update")
MANY = [(1,), (3, 1400), (0, 2), (33,)]
RATES = {"lrs": (0.25, 0.5, 1.0, 0.125), "wds": (0.125, 0.0, 0.25, 0.5)}
#: Inputs that are no states of weights, which are positive.
SIGNED = ("weight", "grad", "g", "z", "delta", "mom", "mean")


#: Operator, shapes of its inputs (of updates, those of the weights), parameters.
def embedding(count, n, width, *, low=0, high=None, dtype="int32", **params):
    data = Ints((count,), low, high or n, dtype)
    return "Embedding", [data, (n, width)], {"input_dim": n, "output_dim": width, **params}


def rnn(mode, steps, batch, inputs, units, layers=1, lengths=None, **params):
    """A network; the steps of its sequences have the dtype `lengths`."""
    rows, projected = layers * (2 if params.get("bidirectional") else 1), params.get("projection_size", 0)
    size = find_op("RNN").facet("helpers").layout(mode, inputs, units, layers, rows // layers, projected).size
    given = [(steps, batch, inputs), (size,), (rows, batch, projected or units)]
    if mode == "lstm":
        given.append((rows, batch, units))
    if lengths:
        given.append(Ints((batch,), 0, steps + 1, lengths))
        params["use_sequence_length"] = True
    return "RNN", given, {"mode": mode, "state_size": units, "num_layers": layers, "state_outputs": True, **params}


#: Operator, its inputs, parameters. Inputs given by their shape are differentiated by; `Values` are not.
CASES = [
    *[("softmax", [shape], {}) for shape in [(1, 1), (3, 33), (5, 257), (2, 1000)]],
    ("softmax", [(2, 300, 5)], {"axis": 1, "temperature": 2.0}),
    ("softmax", [(2, 8200)], {"temperature": 0.5}),
    ("softmax", [(2, 3, 300)], {"axis": 1, "temperature": 0.5}),
    ("log_softmax", [(1, 1, 64)], {"axis": 1}),
    ("log_softmax", [(3, 4, 99)], {"axis": 1}),
    ("log_softmax", [(3, 700)], {}),
    ("log_softmax", [(2, 9001)], {}),
    ("softmin", [(9, 31)], {}),
    ("SoftmaxActivation", [(2, 300, 3)], {"mode": "channel"}),
    ("SoftmaxOutput", [(5, 300), Ints((5,), 0, 3)], {"normalization": "valid", "use_ignore": True, "ignore_label": 2}),
    ("SoftmaxOutput", [(90, 3), Ints((90,), 0, 3)], {"normalization": "valid", "use_ignore": True, "ignore_label": 1}),
    *[
        ("softmax", [shape, Ints(lengths, -1, most, dtype)], {"use_length": True, **more})
        for shape, lengths, most, dtype, more in [
            ((1, 1), (1,), 2, "int32", {}),
            ((3, 9, 33), (3, 9), 40, "int8", {"temperature": 0.5}),
            ((5, 1100), (5,), 1101, "uint8", {}),
            ((7, 300, 3), (7, 3), 301, "int64", {"axis": 1}),
            ((4, 5, 99), (4, 99), 6, "int32", {"axis": 1}),
            ((2, 9000), (2,), 30000, "int64", {}),
        ]
    ],
    ("SoftmaxOutput", [(3, 5), Ints((3,), -1, 6)], {"smooth_alpha": 0.25, "normalization": "batch"}),
    ("SoftmaxOutput", [(9, 1), Ints((9,), -1, 2)], {"smooth_alpha": 0.25}),
    ("SoftmaxOutput", [(2, 3, 33), Ints((2, 3), 0, 33)], {"preserve_shape": True, "out_grad": True}),
    *[
        ("SoftmaxOutput", [shape, Ints(labels, -1, shape[1] + 1)], {"multi_output": True, **more})
        for shape, labels, more in [
            ((1, 1, 1), (1, 1), {}),
            ((2, 300, 5), (2, 5), {"out_grad": True, "grad_scale": 0.5}),
            ((2, 3, 2, 1500), (2, 2, 1500), {"normalization": "valid", "use_ignore": True, "ignore_label": 2}),
            ((3, 5, 2, 7), (3, 1, 2, 7), {"normalization": "batch", "smooth_alpha": 0.5}),
        ]
    ],
    ("SoftmaxOutput", [(9, 33), Values((9, 33), 0, 1)], {"out_grad": True, "grad_scale": 2.0}),
    *[
        ("_pick_log_softmax", [shape, Ints(index, -2, shape[-1] + 2, dtype)], more)
        for shape, index, dtype, more in [
            ((1, 1), (1,), "float32", {}),
            ((3, 9, 33), (3, 9, 1), "int32", {"keepdims": True, "scalar": -0.5}),
            ((5, 1100), (5,), "float64", {"scalar": -1.0}),
            ((3, 9000), (3,), "int64", {}),
        ]
    ],
    *[
        ("softmax_cross_entropy", [shape, Ints(shape[:1], -1, shape[1] + 1)], {})
        for shape in [(0, 3), (1, 1), (33, 17), (4100, 2), (3, 700), (2, 9000)]
    ],
    *[
        (f"{kind}RegressionOutput", [shape, Values(labels, -1, 1)], {"grad_scale": 0.5})
        for kind in ("Linear", "Logistic", "MAE")
        for shape, labels in [((0, 3), (0, 3)), ((1, 1), (1,)), ((33, 3, 7), (33, 21))]
    ],
    *[
        ("SVMOutput", [shape, Ints(shape[:-1], -1, shape[-1] + 1)], {"regularization_coefficient": 0.5, **more})
        for shape, more in [((1, 1), {}), ((90, 7), {"margin": 0.5}), ((2, 5, 33), {"use_linear": True})]
    ],
    *[
        ("FullyConnected", [(m, k), (n, k), (n,)], {"num_hidden": n})
        for m, n, k in [(1, 1, 1), (33, 40, 17), (3, 70, 5)]
    ],
    ("FullyConnected", [(4, 3, 5), (6, 5)], {"num_hidden": 6, "flatten": False, "no_bias": True}),
    ("dot", [(7, 33), (33, 5)], {}),
    ("dot", [(33, 7), (5, 33)], {"transpose_a": True, "transpose_b": True}),
    ("batch_dot", [(3, 7, 9), (3, 5, 9)], {"transpose_b": True}),
    ("_np_dot", [(7, 9), (9, 5)], {}),
    ("_npi_matmul", [(7, 9), (9, 5)], {}),
    ("_npi_matmul", [(2, 3, 7, 9), (2, 3, 9, 5)], {}),
    *[
        ("Convolution", [(n, c, *image), (f, c // g, *kernel), (f,)],
         {"kernel": kernel, "num_filter": f, "num_group": g, **more})
        for n, c, image, f, g, kernel, more in [
            (1, 1, (1,), 1, 1, (1,), {}),
            (3, 4, (17,), 6, 2, (3,), {"stride": (2,), "pad": (1,)}),
            (2, 3, (9, 8), 5, 1, (3, 2), {"stride": (2, 1), "pad": (1, 1), "dilate": (2, 1)}),
            (5, 4, (6, 7), 3, 1, (1, 1), {}),
            (2, 4, (7, 6), 8, 4, (3, 3), {"pad": (1, 1)}),
            (3, 40, (20, 3), 40, 40, (3, 3), {"pad": (1, 1)}),
            (2, 2, (4, 5, 3), 3, 1, (2, 3, 2), {"pad": (1, 0, 1)}),
            (2, 64, (7, 6), 160, 2, (3, 3), {"stride": (2, 1), "pad": (1, 1)}),
            (3, 34, (4, 8), 32, 2, (3, 3), {"pad": (1, 1)}),
        ]
    ],
    ("Deconvolution", [(2, 3, 5, 4), (3, 4, 3, 3), (4,)],
     {"kernel": (3, 3), "num_filter": 4, "stride": (2, 2), "pad": (1, 1), "adj": (1, 0), "no_bias": False}),
    *[
        ("Pooling", [shape], {"kernel": kernel, "pool_type": kind, **more})
        for shape, kernel, more in [
            ((1, 1, 1), (1,), {}),
            ((2, 3, 9, 7), (3, 2), {"stride": (2, 1), "pad": (1, 1)}),
            ((3, 2, 300), (3,), {"stride": (2,), "pooling_convention": "full"}),
            ((1, 2, 5, 4, 6), (2, 2, 3), {"pad": (1, 0, 1)}),
        ]
        for kind in ("max", "avg", "sum")
    ],
    ("Pooling", [(2, 3, 9, 7)], {"kernel": (3, 3), "pool_type": "lp", "p_value": 2}),
    batch(1, 1, 1),
    batch(4, 3, 700),
    batch(40, 2, 11, 23),
    batch(3, 5, 16, 8),
    batch(33, 24, 7, 7),
    batch(9, 48, 5, axis=1),
    batch(90, 7, 16, axis=-1),
    batch(5, 2064),
    batch(9, 2, 64, 48),
    batch(7, 5, 3, axis=-1, fix_gamma=True),
    batch(9000, 2),
    batch(5, 3, 70, use_global_stats=True),
    batch(300, 600, use_global_stats=True, fix_gamma=False),
    batch(4, 3, 70, op="_contrib_BatchNormWithReLU"),
    batch(3, 2, 8, 40, op="_contrib_BatchNormWithReLU"),
    batch(5, 24, 7, 7, op="_contrib_BatchNormWithReLU", fix_gamma=False),
    batch(7, 5, 3, axis=-1, fix_gamma=True, op="_contrib_BatchNormWithReLU"),
    rows("LayerNorm", (1, 1), 1),
    rows("LayerNorm", (5, 300), 300),
    rows("LayerNorm", (300, 33), 33),
    rows("LayerNorm", (3, 8200), 8200),
    rows("LayerNorm", (2, 5001), 5001),
    rows("InstanceNorm", (3, 4, 300), 4),
    rows("InstanceNorm", (2, 3, 100, 90), 3),
    rows("GroupNorm", (3, 6, 70), 2, num_groups=2),
    *[(f"{mp}{op}", [shape], {"lr": 0.25, "wd": 0.125, **more})
      for op, more in STEPS for mp in ("", "mp_") if not mp or op in MIXED for shape in [(1,), (3, 1400)]],
    *[(f"{'' if op.startswith('sgd') else '_'}multi_{mp}{op}", MANY, {"num_weights": 4, **RATES, **more})
      for op, more in STEPS for mp in ("", "mp_") if op != "_sparse_adagrad_update"],
    *[(f"preloaded_multi_{mp}{op}", MANY, {"num_weights": 4, "rescale_grad": 0.5})
      for op in ("sgd_update", "sgd_mom_update") for mp in ("", "mp_")],
    *[case for mp in ("", "mp_") for case in [
        (f"_{mp}adamw_update", [(2500,)], {"lr": 0.25, "wd": 0.125, "eta": 0.5}),
        (f"_multi_{mp}adamw_update", MANY, {"num_weights": 4, **RATES, "etas": (0.5, 0.25, 1.0, 2.0)}),
        (f"{mp}lamb_update_phase1", [(2500,)], {"t": 2, "wd": 0.125}),
        (f"{mp}lamb_update_phase2", [(2500,)], {"lr": 0.25, "upper_bound": 0.5}),
        (f"_multi_{mp}lamb_update", MANY, {"num_tensors": 4, "learning_rates": RATES["lrs"], "wds": RATES["wds"],
                                           "step_count": (1, 2, 3, 2), "lower_bound": 1.0}),
    ]],
    ("_contrib_group_adagrad_update", [(5, 30)], {"lr": 0.25, "rescale_grad": 0.5}),
    ("_contrib_group_adagrad_update", [(3, 700)], {"lr": 0.25, "clip_gradient": 0.5}),
    ("multi_sum_sq", MANY, {"num_arrays": 4}),
    ("reset_arrays", MANY, {"num_arrays": 4}),
    ("multi_lars", [(300,)], {"eta": 0.25, "eps": 0.5, "rescale_grad": 0.5}),
    embedding(1, 1, 1),
    embedding(9, 300, 5, low=-3, high=310, dtype="float32"),
    embedding(900, 4, 33, dtype="int64"),
    embedding(700, 3, 1, dtype="float64"),
    embedding(40, 9, 3, sparse_grad=True),
    ("take", [(7, 5), Ints((3, 2), -9, 9, "int32")], {}),
    ("take", [(2, 5, 300), Ints((4,), -9, 9, "int64")], {"axis": 1, "mode": "wrap"}),
    ("take", [(300, 3), Ints((300,), 0, 3, "uint8")], {"axis": -1}),
    ("take", [Ints((9, 4), -9, 9, "int32"), Ints((3,), 0, 9)], {}),
    ("pick", [(5, 33), Ints((5,), -40, 40, "float32")], {"mode": "wrap"}),
    ("pick", [(3, 4, 70), Ints((3, 70), -3, 7, "int32")], {"axis": 1}),
    ("batch_take", [(300, 7), Ints((300,), 0, 7, "int32")], {}),
    ("one_hot", [Ints((33, 3), -2, 12, "float32")], {"depth": 9, "on_value": 2.5, "off_value": -1}),
    ("one_hot", [Ints((40,), 0, 9, "int64")], {"depth": 9, "dtype": "int32"}),
    ("gather_nd", [(3, 4, 5), Ints((2, 400), 0, 3, "int64")], {}),
    ("gather_nd", [(3, 4), Ints((2, 6), -3, 3, "int32")], {}),
    ("scatter_nd", [(40, 3), Ints((2, 40), 0, 4, "int32")], {"shape": (4, 5, 3)}),
    ("_scatter_set_nd", [(4, 5, 3), (40, 3), Ints((2, 40), 0, 4, "int32")], {"shape": (4, 5, 3)}),
    ("sum", [(300, 200)], {}),
    ("sum", [(40_000,)], {"keepdims": True}),
    ("sum", [(5000, 7)], {"axis": 0}),
    ("mean", [(3, 5, 400)], {"axis": -1}),
    ("max", [(2, 3, 30, 20)], {"axis": (0, 1), "exclude": True}),
    ("min", [(130, 70, 3)], {"axis": (0, 2)}),
    ("_square_sum", [(400, 3)], {"axis": 0, "keepdims": True}),
    ("_np_sum", [(20, 3000)], {"axis": 1}),
    ("_npi_mean", [(3, 3000)], {}),
    ("_np_max", [(3, 300)], {"axis": (1,)}),
    ("_np_min", [(3, 300)], {"keepdims": True}),
    ("_advanced_set", [(6, 5), (400, 1), Ints((400,), -6, 6, "int64")], {"index": (("a", 0),)}),
    ("_advanced_set", [(6, 5), (7, 9), Ints((7, 1), 0, 6, "int32"), Ints((9,), 0, 5)], {"index": (("a", 0), ("a", 1))}),
    ("_backward_advanced_set", [(6, 5), Ints((400,), -6, 6, "int64")], {"index": (("a", 0),)}),
    *[rnn(mode, 1, 1, 1, 1) for mode in ("rnn_relu", "rnn_tanh", "gru", "lstm")],
    *[
        rnn(mode, 5, 3, 4, 7, 2, lengths, bidirectional=both, **more)
        for mode, more in [
            ("rnn_tanh", {"p": 0.4}),
            ("gru", {"p": 0.3}),
            ("lstm", {"lstm_state_clip_min": -0.3, "lstm_state_clip_max": 0.2, "lstm_state_clip_nan": True}),
            ("lstm", {"projection_size": 4, "p": 0.2}),
        ]
        for both, lengths in [(False, None), (True, None), (True, "float32"), (False, "int32")]
    ],
    rnn("rnn_relu", 4, 90, 3, 5, 3, "int64", state_outputs=False),
    rnn("lstm", 3, 40, 2, 9, state_outputs=False),
    *[case for length, other, b, heads, d in [(1, 1, 1, 1, 1), (5, 9, 2, 3, 7), (33, 4, 1, 2, 16)] for case in [
        ("_contrib_interleaved_matmul_selfatt_qk", [(length, b, heads * 3 * d)], {"heads": heads}),
        ("_contrib_interleaved_matmul_selfatt_valatt",
         [(length, b, heads * 3 * d), (b * heads, length, length)], {"heads": heads}),
        ("_contrib_interleaved_matmul_encdec_qk", [(length, b, heads * d), (other, b, heads * 2 * d)],
         {"heads": heads}),
        ("_contrib_interleaved_matmul_encdec_valatt",
         [(other, b, heads * 2 * d), (b * heads, length, other)], {"heads": heads}),
    ]],
    *[("dot", [Csr((rows, inner), -1, 1), (rows if ta else inner, *kept)], {"transpose_a": ta, **more})
      for rows, inner, kept, ta, more in [
          (1, 1, (1,), False, {}),
          (300, 33, (), False, {}),
          (9, 700, (3, 2), False, {}),
          (700, 9, (5,), True, {}),
          (400, 33, (), True, {"forward_stype": "default"}),
    ]],
    ("dot", [Csr((40, 33), -1, 1), (7, 33)], {"transpose_b": True}),
    ("ROIPooling", [(1, 1, 1, 1), Regions(1, 1, 1)], {"pooled_size": (1, 1), "spatial_scale": 1.0}),
    ("ROIPooling", [(2, 3, 11, 17), Regions(40, 2, 30)], {"pooled_size": (3, 5), "spatial_scale": 0.5}),
    ("CTCLoss", [(1, 1, 2), Ints((1, 1), 1, 2, "float32")], {}),
    ("CTCLoss", [(12, 5, 4), Ints((5, 5), 0, 4, "float32")], {}),
    ("CTCLoss", [(9, 4, 300), Ints((4, 7), -1, 30, "int32")], {"blank_label": "last"}),
    ("CTCLoss",
     [(90, 3, 3), Ints((3, 40), 1, 3, "float32"), Ints((3,), 60, 91, "float32"), Ints((3,), 20, 41, "float32")],
     {"use_data_lengths": True, "use_label_lengths": True}),
    ("_advanced_index", [(6, 5), Ints((300,), -6, 6, "int32")], {"index": (("a", 0), ("s", None, None, 2))}),
]  # fmt: skip


def exact(values):
    """Numbers near these that every dtype has: with the bits of bfloat16 and the exponents of float16."""
    return values.astype("float16").astype(ml_dtypes.bfloat16).astype("float16")


def updated(case, ctx, dtype):
    """Outputs of an update, or of what goes before one, and its inputs as they are then, on a device."""
    op, shapes, params = case
    rs, found, weights = np.random.RandomState(0), find_op(op), iter(shapes)
    arrays = []
    for name in found.signature(found.parse(dict(params))).inputs:
        kind = re.sub(r"_\d+$|(?<=arg)\d+$", "", name)
        if kind in ("weight", "array", "lrs", "arg") and not (kind == "lrs" and "update" in op):
            shape = next(weights)
        own = {"r1": (1,), "r2": (1,), "rescale_grad": (1,), "history": (*shape[:1], 1) if "group" in op else shape}
        many = {"lrs": (len(shapes),), "wds": (len(shapes),)} if "update" in op else {}
        ends = (-1, 1) if kind in SIGNED else (4, 5) if kind == "n" else (0.5, 1)
        x = rs.uniform(*ends, {**own, **many}.get(kind, shape)).astype("float16")
        low, single = "mp_" in op and kind in ("weight", "grad"), "mp_" in op or kind in many or kind == "rescale_grad"
        half = dtype if dtype in HALVES else "float16"
        arrays.append(mx.nd.array(x, ctx=ctx, dtype=half if low else "float32" if single else dtype))
    y = getattr(mx.nd._internal if op.startswith("_") else mx.nd, op)(*arrays, **params)
    return [a.asnumpy().astype("float64") for a in (*(y if isinstance(y, list) else [y]), *arrays)]


def updates(op):
    """Whether an operator is one of those on weights."""
    return "update" in op or op.startswith(("multi_", "reset_"))


def computed(case, ctx, dtype):
    """Outputs, gradients and moved states of a case on a device."""
    op, inputs, params = case
    if updates(op):
        return updated(case, ctx, dtype)
    rs = np.random.RandomState(0)
    single = "float32" if dtype in HALVES and "BatchNorm" in op else dtype
    arrays, wanted, moved = [], [], []
    for i, how in enumerate(inputs):
        free = isinstance(how, tuple)
        values = rs.uniform(-1, 1, how) if free else how.draw(rs)
        own = None if free else how.dtype
        a = mx.nd.array(exact(values), ctx=ctx, dtype=own or (single if i else dtype))
        if isinstance(how, Csr):
            a = a.tostype("csr")
        arrays.append(a)
        if free:
            wanted.append(a)
            a.attach_grad(stype="row_sparse" if params.get("sparse_grad") else "default")
        elif isinstance(how, State):
            moved.append(a)
    mx.random.seed(3)
    with mx.autograd.record(train_mode=True):
        y = getattr(mx.nd._internal if op.startswith("_contrib_inter") else mx.nd, op)(*arrays, **params)
    outputs = y if isinstance(y, list) else [y]
    if wanted:
        heads = [mx.nd.array(exact(rs.uniform(-1, 1, o.shape)), ctx=ctx, dtype=o.dtype) for o in outputs]
        mx.autograd.backward(outputs, heads)
    return [a.asnumpy().astype("float64") for a in (*outputs, *[a.grad for a in wanted], *moved)]


_expected = {}


def expected(i):
    """The same by the reference bodies, in float64."""
    if i not in _expected:
        with reference_bodies():
            _expected[i] = computed(CASES[i], mx.cpu(), "float64")
    return _expected[i]


def name_of(i):
    op, inputs, params = CASES[i]
    first = next((how if isinstance(how, tuple) else how.shape for how in inputs), ())
    return f"{i}-{op}-{'x'.join(map(str, first))}"


TOLERANCE = {"float16": 2e-2, "float32": 2e-5, "float64": 1e-10}
ORDERS = ("forward", "backward", "shuffled")


def compare(i, dtype):
    single = dtype == "float64" and ("mp_" in CASES[i][0] or CASES[i][0] == "multi_sum_sq")  # whatever they are given
    close(computed(CASES[i], mx.gpu(0), dtype), expected(i), "float32" if single else dtype)


def close(found, wanted, dtype):
    """All values are as near as the dtype tells them apart, by the largest of each array."""
    tolerance = {**TOLERANCE, "bfloat16": 4e-2}[dtype]  # of whose kernels `test_bfloat16` tells more
    for a, b in zip(found, wanted, strict=True):
        scale = max(np.abs(b[np.isfinite(b)]).max(initial=0), 1)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale, strict=True)


@pytest.fixture(params=ORDERS)
def order(request):
    """Each order of threads."""
    compiler.set_order(ORDERS.index(request.param))
    yield
    compiler.set_order(compiler.FORWARD)


@pytest.mark.parametrize("i", range(0, len(CASES), 6), ids=name_of)
def test_some_kernels_give_what_numpy_gives(gpus, i):
    compare(i, "float32")


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("i", range(len(CASES)), ids=name_of)
def test_kernels_give_what_numpy_gives(gpus, order, i, dtype):
    compare(i, dtype)


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", BESIDE)
def test_what_is_beside_the_cases(gpus, order, name, dtype):
    check = BESIDE[name]
    check(dtype)


def test_gradients_of_rows_do_not_depend_on_the_order_of_threads(gpus):
    found = []
    try:
        for order in range(3):
            compiler.set_order(order)
            found.append(computed(embedding(900, 4, 33), mx.gpu(0), "float32")[1])
    finally:
        compiler.set_order(compiler.FORWARD)
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


@pytest.mark.parametrize("mode", [True, False])
def test_what_was_positive_is_told_by_the_forward_pass(gpus, mode):
    """Also where gradients are those of the moving statistics."""
    rs = np.random.RandomState(0)
    values = [rs.uniform(-1, 1, s).astype("float32") for s in [(4, 3, 5), 3, 3, 3]] + [np.float32([0.5, 2, 1])]
    found = []
    for ctx in (mx.gpu(0), mx.cpu(0)):
        x, gamma, beta, *moving = (mx.nd.array(v, ctx=ctx) for v in values)
        for a in (x, gamma, beta):
            a.attach_grad()
        with mx.autograd.record():
            y = mx.nd.contrib.BatchNormWithReLU(x, gamma, beta, *moving, fix_gamma=False)
        y.backward(mx.nd.array(values[0][::-1].copy(), ctx=ctx), train_mode=mode)
        found.append([a.grad.asnumpy() for a in (x, gamma, beta)])
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("op, n", [("softmax", 32), ("softmax", 9000), ("LayerNorm", 48), ("LayerNorm", 9008)])
def test_where_rows_begin_in_memory_makes_no_difference(gpus, op, n, dtype):
    """An array that lies 16 bytes aligned is read several numbers at once, another one by one."""
    rs, found = np.random.RandomState(0), []
    values, head = (rs.uniform(-1, 1, (3, n)).astype(dtype) for _ in range(2))
    for before in (0, 1, 16):
        room = mx.nd.zeros((3 * n + before,), ctx=mx.gpu(0), dtype=dtype)
        x = room[before:].reshape((3, n))
        x[:] = mx.nd.array(values, ctx=mx.gpu(0), dtype=dtype)
        more = [mx.nd.full((n,), v, ctx=mx.gpu(0), dtype=dtype) for v in (0.75, 0.5)] if op == "LayerNorm" else []
        x.attach_grad()
        with mx.autograd.record():
            y = getattr(mx.nd, op)(x, *more)
        y.backward(mx.nd.array(head, ctx=mx.gpu(0), dtype=dtype))
        found.append((y.asnumpy(), x.grad.asnumpy()))
    assert np.abs(found[0][0]).max() > 0 and np.abs(found[0][1]).max() > 0
    for other in found[1:]:
        for a, b in zip(found[0], other):
            assert np.array_equal(a, b)


@pytest.mark.parametrize("n", [7, 300, 9000])
def test_softmax_of_what_is_masked(gpus, n):
    """-infinity has no share; a row of nothing else, or with infinity or NaN, is NaN."""
    values = np.full((5, n), -np.inf, "float32")
    values[0, n // 2 :] = np.linspace(-1, 1, n - n // 2)
    values[1, -1] = 3
    values[3], values[4] = 1, 2
    values[3, n // 2], values[4, 1] = np.inf, np.nan
    y = mx.nd.softmax(mx.nd.array(values, ctx=mx.gpu(0))).asnumpy()
    assert not y[0, : n // 2].any() and np.isclose(y[0].sum(), 1, rtol=1e-5) and y[0, -1] > y[0, n // 2] > 0
    assert y[1, -1] == 1 and not y[1, :-1].any()
    assert np.isnan(y[2:]).all()


def test_batches_where_they_begin_in_memory_make_no_difference(gpus):
    rs, found = np.random.RandomState(0), []
    values, head = (rs.uniform(-1, 1, (3, 2, 8, 4)).astype("float16") for _ in range(2))
    for before in (0, 1):
        room = mx.nd.zeros((values.size + before,), ctx=mx.gpu(0), dtype="float16")
        x = room[before:].reshape(values.shape)
        x[:] = mx.nd.array(values, ctx=mx.gpu(0), dtype="float16")
        x.attach_grad()
        scale, shift, mean, var = (mx.nd.full((2,), v, ctx=mx.gpu(0)) for v in (0.75, 0.5, 0, 1))
        with mx.autograd.record():
            y = mx.nd.BatchNorm(x, scale, shift, mean, var, fix_gamma=False)
        y.backward(mx.nd.array(head, ctx=mx.gpu(0), dtype="float16"))
        found.append([a.asnumpy() for a in (y, x.grad, mean, var)])
    for a, b in zip(*found):
        assert np.array_equal(a, b) and np.abs(a).max() > 0


@pytest.fixture
def launched(gpus, monkeypatch):
    """The names of kernels that are launched: no two sources have one of the same name."""
    found, begin = set(), Launch.__init__

    def noted(launch, function, *args):
        found.add(function.name)
        begin(launch, function, *args)

    monkeypatch.setattr(Launch, "__init__", noted)
    return found


def test_no_operator_and_no_kernel_is_left_out(gpus, launched):
    with kernels_reached() as reached:
        for case in CASES:
            computed(case, mx.gpu(0), "float32")
            if case[0] == "Convolution":  # halves go a way of their own
                computed(case, mx.gpu(0), "float16")
        for draw in DRAWS:
            drawn(draw, mx.gpu(0), "float32")
        for compared in BESIDE.values():
            compared("float32")
    device = gpus[0].device
    recorded, _ = device.capture(0, [lambda: device.rng(LaterKey(0), 0).bits(3)])
    recorded.replay([], [])([], [], [(1, 2, 3)])
    alike = {"Convolution_v1"}  # another name of the same function
    assert {kernel.op for kernel in gpu.entries} - reached <= alike
    texts = [*(sources.source(name, "float32").text for name in sources.files()), elementwise.source_of("float32")]
    assert {name for text in texts for name in sources.signatures(text, "")} - launched == set()


def barriers():
    """Every barrier of every source: (file, number)."""
    for path in sorted((*sources.FOLDER.glob("*.cu"), *sources.FOLDER.glob("*.cuh"))):
        for i in range(len(re.findall(r"__syncthreads\(\);", path.read_text()))):
            yield path.name, i


def likely(file):
    """The cases, those first whose bindings name a source."""
    wanted, homes = f'"{file.partition(".")[0]}"', {k.op: inspect.unwrap(k.fn).__globals__ for k in gpu.entries}
    texts = {op: Path(home["__file__"]).read_text() for op, home in homes.items()}
    return sorted(range(len(CASES)), key=lambda i: wanted not in texts.get(CASES[i][0], ""))


@pytest.mark.slow
@pytest.mark.parametrize("file, number", [*barriers()])
def test_a_barrier_that_is_deleted_is_found_out(gpus, monkeypatch, tmp_path, file, number):
    for path in sources.FOLDER.iterdir():
        (tmp_path / path.name).write_text(path.read_text())
    parts = (tmp_path / file).read_text().split("__syncthreads();")
    parts[number : number + 2] = ["".join(parts[number : number + 2])]
    (tmp_path / file).write_text("__syncthreads();".join(parts))
    monkeypatch.setattr(sources, "FOLDER", tmp_path)
    monkeypatch.setattr(compiler, "FOLDER", tmp_path)
    monkeypatch.setattr(compiler, "_loaded", {})
    for cached in (sources.source, launching.kernel):
        cached.cache_clear()
    try:
        for order in range(3):
            compiler.set_order(order)
            for i in likely(file):
                for dtype in ("float32", "float16"):  # some sources go other ways for halves
                    try:
                        compare(i, dtype)
                    except AssertionError:
                        return
    finally:
        compiler.set_order(compiler.FORWARD)
        for cached in (sources.source, launching.kernel):
            cached.cache_clear()
    pytest.fail("no case told")
