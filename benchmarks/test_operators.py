"""Operators on their samples: what a call costs beside their reference bodies on the same arrays."""

from __future__ import annotations

import pytest

import mxcore as mx
from mxcore._core import tables
from mxcore._core.call import op_context

NAMES = (
    "broadcast_add",
    "sum",
    "Reshape",
    "dot",
    "FullyConnected",
    "Convolution",
    "Pooling",
    "Activation",
    "softmax",
    "LayerNorm",
    "Embedding",
    "take",
    "sgd_mom_update",
)


@pytest.mark.parametrize("name", NAMES)
def test_operator(compare, ctx, name):
    op = tables.ops.get(name)
    sample = op.samples[0]
    arrays = [mx.nd.array(a, ctx=ctx, dtype=a.dtype) for a in sample.arrays(sample.dtypes[0])]
    call = getattr(mx.nd, name)
    k, p = op_context(ctx, False), op.parser(dict(sample.params))
    datas = [a._data for a in arrays]

    def ours():
        call(*arrays, **sample.params)

    def reference():
        op.body(k, p, *datas)

    assert compare(f"{name}, sample", ours, reference, number=200, rounds=10, against="reference body") > 0
