"""For which inputs a kernel is taken: nobody would miss one, for the reference bodies give the same."""

import importlib

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import tables
from mxcore._core.manager import manager
from mxcore.plugin import Spec
from mxcore.testing.case import cases
from mxcore_cpu import jit

pytestmark = pytest.mark.skipif(not jit.available(), reason="nothing is compiled here")

#: Operators whose kernels take over where arrays are larger than those of samples.
LARGE = set(
    """_mod_scalar _hypot_scalar exp expm1 log log1p tanh relu sigmoid softsign erf _backward_Activation transpose
Embedding sort argsort SwapAxis _linalg_potrf LayerNorm _backward_LayerNorm L2Normalization LeakyReLU
_backward_LeakyReLU _contrib_quantize _contrib_requantize""".split()
)
#: Those whose kernels are for sparse arrays; samples are dense.
SPARSE = set(
    """_dot_right dot elemwise_add elemwise_mul elemwise_sub _contrib_SparseEmbedding _contrib_group_adagrad_update
_sparse_adagrad_update _sparse_retain _contrib_edge_id mean norm slice take""".split()
)


def chosen(op, p, specs):
    return tables.kernels.resolve(op, mx.cpu().device, p, specs)[2]


@pytest.fixture
def alone():
    """No other plugin has kernels for the device."""
    manager.load()
    name = "cpu_onednn"
    if name not in manager.origin:
        yield
        return
    manager.unregister(name)
    yield
    manager.register(importlib.import_module("mxcore_onednn"), name)


@pytest.mark.usefixtures("alone")
def test_samples_reach_the_kernels():
    named = map(tables.ops.get, tables.ops.names())
    ops = {o.name: o for o in named if any(k.owner == "cpu_numba" for k in tables.kernels.of("cpu", o))}
    reached = {
        name
        for name, op in ops.items()
        for c in cases(op, mx.cpu())
        if chosen(op, c.p, [Spec(a.shape, a.dtype) for a in c.host]) == "cpu_numba"
    }
    left = set(ops) - reached
    assert {n for n in left if ops[n].twin_when is None} == LARGE | SPARSE
    assert all((LARGE | SPARSE) & {*ops[n].kernel_names} for n in left)  # twins of those


@pytest.mark.parametrize(
    "codes, owner",
    [
        ("f4 f4 f4 f4", "cpu_numba"),
        ("f8 f8 f8 f8", "cpu_numba"),
        ("f2 f2 f2 f2", "reference"),
        ("i4 i4 i4 i4", "reference"),
        ("f4 f4 f8 f8", "reference"),
        ("f8 f4 f8 f4", "reference"),
    ],
)
def test_updates_of_many_weights_take_one_dtype(codes, owner):
    op = tables.ops.get("multi_sgd_update")
    p = op.parse({"lrs": (0.5, 0.5), "wds": (0, 0), "num_weights": 2})
    assert chosen(op, p, [Spec((3,), np.dtype(code)) for code in codes.split()]) == owner


@pytest.mark.parametrize("nsize", [3, 5, 9])
def test_normalisation_over_an_odd_number_of_channels(nsize):
    op = tables.ops.get("LRN")
    assert chosen(op, op.parse({"nsize": nsize}), [Spec((2, 9, 3, 3), np.dtype("f4"))]) == "cpu_numba"


@pytest.mark.parametrize("code", ["f2", "f4", "f8"])
def test_suppression_in_all_floats(code):
    for name in ("box_nms", "MultiBoxDetection", "Proposal", "MultiProposal"):
        op = tables.ops.get(f"_contrib_{name}")
        assert chosen(op, op.parse({}), [Spec((1, 8, 8), np.dtype(code))] * len(op.input_names)) == "cpu_numba"
