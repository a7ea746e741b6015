"""Normalizations with fixed statistics that become part of the chain behind them."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd
from mxcore.gluon import nn


@pytest.mark.parametrize("options", [{}, {"scale": False}, {"axis": -1}], ids=str)
@pytest.mark.parametrize(
    "act", [nn.Activation("relu"), nn.LeakyReLU(0.2), nn.Activation("tanh"), nn.Swish(), nn.Flatten()]
)
def test_normalizations_with_fixed_statistics_become_part_of_chains(act, options):
    """Without a convolution in front, which would take them along."""
    net, rs = nn.HybridSequential(), np.random.RandomState(1)
    net.add(nn.BatchNorm(**options), act)
    net.initialize()
    x = mx.nd.array(rs.randn(8, 8, 50, 60) + 50)
    net(x)
    for name, p in net.collect_params().items():
        p.set_data(mx.nd.array(np.abs(rs.randn(*p.shape)) + 0.1 + 50 * ("mean" in name)))
    want = net(x).asnumpy()
    net.hybridize()
    np.testing.assert_allclose(net(x).asnumpy(), want, 1e-4, 1e-4)
    names = {n.op.name for s in net._cached_op.op._signatures.values() for n in s.compiled.program.graph.nodes if n.op}
    assert ("BatchNorm" in names) is isinstance(act, (nn.Flatten, nn.Swish))
    with autograd.record():
        trained = net(x)
    assert abs(float(trained.mean().asscalar()) - float(want.mean())) > 1e-3  # by the statistics of the batch
