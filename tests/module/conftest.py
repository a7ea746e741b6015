"""Small networks and batches for all tests of modules."""

import numpy as np
import pytest

import mxcore as mx


def mlp(hidden=4, classes=3):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=hidden, name="fc1")
    net = mx.sym.Activation(net, act_type="tanh", name="act")
    net = mx.sym.FullyConnected(net, num_hidden=classes, name="fc2")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def some_batch(size=4, features=5, classes=3, seed=0):
    rs = np.random.RandomState(seed)
    return mx.io.DataBatch([mx.nd.array(rs.randn(size, features))], [mx.nd.array(rs.randint(0, classes, size))])


def bound(net=None, size=4, features=5, **kwargs):
    """A module with parameters, ready to run."""
    made = {
        k: kwargs.pop(k)
        for k in (
            "context",
            "fixed_param_names",
            "state_names",
            "group2ctxs",
            "work_load_list",
            "logger",
            "compression_params",
        )
        if k in kwargs
    }
    mod = mx.mod.Module(mlp() if net is None else net, **made)
    mod.bind([("data", (size, features))], [("softmax_label", (size,))], **kwargs)
    mx.random.seed(3)
    mod.init_params(mx.init.Uniform(0.5))
    return mod


def params_of(mod):
    args, auxs = mod.get_params()
    return {k: v.asnumpy().copy() for k, v in {**args, **auxs}.items()}


@pytest.fixture
def data_iter():
    """Twelve examples of two classes that a line parts."""
    rs = np.random.RandomState(1)
    x = rs.randn(12, 5)
    return mx.io.NDArrayIter(x, (x[:, 0] > 0).astype("float32"), 4)
