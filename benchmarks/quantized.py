"""LeNet over eight bits and in float32, and layers over eight bits that MXNet and mxcore run alike.

Run by an interpreter that has MXNet, it is MXNet's side of the comparison.
"""

from __future__ import annotations

import numpy as np

from .peer import serve

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


#: Case -> (shape of the data, shape of the weight, parameters); uint8, which is all that MXNet's CPUs convolve.
LAYERS = {
    "quantized_fully_connected, 64 x 1024 x 1024": ((64, 1024), (1024, 1024), {"num_hidden": 1024}),
    "quantized_conv, 8 x 64 x 56 x 56": (
        (8, 64, 56, 56),
        (64, 64, 3, 3),
        {"num_filter": 64, "kernel": (3, 3), "pad": (1, 1)},
    ),
}


def layer(mx, case):
    """A function that runs a layer over eight bits, and waits."""
    shape, weight, params = LAYERS[case]
    rs = np.random.RandomState(0)
    arrays = [
        mx.nd.array(rs.randint(0, 256, shape), dtype="uint8"),
        mx.nd.array(rs.randint(-128, 128, weight), dtype="int8"),
        *(mx.nd.array([v]) for v in (0, 1, -1, 1)),
    ]
    op = getattr(mx.nd.contrib, case.split(",")[0])

    def run():
        out = op(*arrays, no_bias=True, **params)[0]
        out.wait_to_read()
        return out

    return run


def floats(mx, case):
    """The same layer over float32."""
    shape, weight, params = LAYERS[case]
    rs = np.random.RandomState(0)
    arrays = [mx.nd.array(rs.randint(0, 128, s)) for s in (shape, weight)]
    op = mx.nd.FullyConnected if "num_hidden" in params else mx.nd.Convolution
    return lambda: op(*arrays, no_bias=True, **params).wait_to_read()


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


if __name__ == "__main__":
    import mxnet

    serve(lambda case: layer(mxnet, case))
