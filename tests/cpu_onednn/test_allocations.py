"""A call of a network that predicts one image allocates nothing but what it returns and small objects."""

import tracemalloc

import pytest

import mxcore as mx
from mxcore.gluon.model_zoo import vision


@pytest.mark.parametrize("name", ["resnet18_v1", "mobilenetv2_0.25"])
def test_a_warm_call_of_one_image(name):
    net = vision.get_model(name)
    net.initialize()
    net.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.ones((1, 3, 224, 224))
    for _ in range(5):
        net(x).wait_to_read()
    tracemalloc.start()
    try:
        net(x).wait_to_read()
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        net(x).wait_to_read()
        assert tracemalloc.get_traced_memory()[1] - before < 1 << 16
    finally:
        tracemalloc.stop()
