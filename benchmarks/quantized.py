"""LeNet over eight bits and in float32, for the benchmarks."""

from __future__ import annotations

import numpy as np

BATCH = 64


def lenet(mx):
    """LeNet with relu, as a symbol."""
    x = mx.sym.Variable("data")
    for number, filters in (1, 20), (2, 50):
        x = mx.sym.Convolution(x, kernel=(5, 5), num_filter=filters, name=f"conv{number}")
        x = mx.sym.Activation(x, act_type="relu", name=f"relu{number}")
        x = mx.sym.Pooling(x, pool_type="max", kernel=(2, 2), stride=(2, 2), name=f"pool{number}")
    x = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=500, name="fc1"), act_type="relu")
    return mx.sym.softmax(mx.sym.FullyConnected(x, num_hidden=10, name="fc2"), name="softmax")


def runner(mx, calib_mode, batch=BATCH):
    """A function that runs LeNet over a batch and waits; in float32 if there is no mode of calibration."""
    sym, rs = lenet(mx), np.random.RandomState(0)
    shape = (batch, 1, 28, 28)
    shapes = dict(zip(sym.list_arguments(), sym.infer_shape(data=shape)[0]))
    args = {n: mx.nd.array(rs.uniform(-0.1, 0.1, s)) for n, s in shapes.items() if n != "data"}
    data = rs.uniform(0, 1, shape).astype("float32")
    if calib_mode:
        it = mx.io.NDArrayIter(data, None, batch)
        sym, args, _ = mx.contrib.quantization.quantize_model(
            sym, args, {}, label_names=None, calib_mode=calib_mode, calib_data=it
        )
    exe = sym.bind(mx.cpu(), {**args, "data": mx.nd.array(data)}, grad_req="null")

    def run():
        out = exe.forward(is_train=False)[0]
        out.wait_to_read()
        return out

    return run
