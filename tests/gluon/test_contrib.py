"""Contributed layers."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.gluon import nn
from mxcore.gluon.contrib import nn as cnn


@pytest.mark.parametrize("kind", [cnn.Concurrent, cnn.HybridConcurrent])
def test_concurrent(kind):
    both = kind(axis=1)
    both.add(cnn.Identity(), nn.HybridLambda(lambda F, x: 2 * x))
    assert both(mx.nd.ones((1, 2))).asnumpy().tolist() == [[1, 1, 2, 2]]
    both.hybridize() if kind is cnn.HybridConcurrent else None
    assert both(mx.nd.ones((1, 2))).shape == (1, 4) and both.prefix.startswith(kind.__name__.lower())


def shuffled(x, factors):
    """Pixel shuffle, element by element."""
    n = len(factors)
    channels = x.shape[1] // int(np.prod(factors))
    out = np.empty((x.shape[0], channels, *(s * f for s, f in zip(x.shape[2:], factors))), x.dtype)
    for index in np.ndindex(out.shape):
        inner = [p % f for p, f in zip(index[2:], factors)]
        channel = index[1]
        for i, f in zip(inner, factors):
            channel = channel * f + i
        out[index] = x[(index[0], channel, *(index[2 + k] // factors[k] for k in range(n)))]
    return out


@pytest.mark.parametrize(
    "kind, factor, factors, shape, text",
    [
        ("PixelShuffle1D", 3, (3,), (2, 6, 4), "PixelShuffle1D(3)"),
        ("PixelShuffle2D", 2, (2, 2), (2, 8, 4, 3), "PixelShuffle2D((2, 2))"),
        ("PixelShuffle2D", (2, 3), (2, 3), (1, 12, 3, 5), "PixelShuffle2D((2, 3))"),
        ("PixelShuffle3D", (2, 3, 2), (2, 3, 2), (1, 12, 2, 1, 2), "PixelShuffle3D((2, 3, 2))"),
    ],
)
def test_pixel_shuffle(kind, factor, factors, shape, text):
    layer = getattr(cnn, kind)(factor)
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    assert repr(layer) == text
    assert (layer(mx.nd.array(x)).asnumpy() == shuffled(x, factors)).all()
    with pytest.raises(ValueError, match="factor must be"):
        getattr(cnn, kind)((1,) * 5)


def test_sparse_embedding():
    layer = cnn.SparseEmbedding(3, 4)
    assert repr(layer) == "SparseEmbedding(3 -> 4, float32)" and layer.weight.stype == "row_sparse"


@pytest.mark.parametrize("hybrid", [False, True])
def test_sync_batch_norm(hybrid):
    contexts = [mx.cpu(0), mx.cpu(1)]
    layer = cnn.SyncBatchNorm(num_devices=2, momentum=0.5)
    assert f"ndev=2, key={layer.prefix!r}" in repr(layer) and layer.prefix.startswith("syncbatchnorm")
    layer.initialize(ctx=contexts)
    if hybrid:
        layer.hybridize()
    data = [np.full((2, 3), v, np.float32) + np.eye(2, 3, dtype=np.float32) for v in (0, 10)]
    with mx.autograd.record():
        outs = [layer(mx.nd.array(x, ctx=c)) for x, c in zip(data, contexts)]
    for y in outs:
        y.backward()
    both, x = np.concatenate([y.asnumpy() for y in outs]), np.concatenate(data)
    np.testing.assert_allclose(both, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), rtol=1e-4, atol=1e-5)
    for c in contexts:
        np.testing.assert_allclose(layer.running_mean.data(c).asnumpy(), x.mean(0) / 2, rtol=1e-5)
    assert cnn.SyncBatchNorm()._kwargs["ndev"] == max(mx.num_gpus(), 1)
