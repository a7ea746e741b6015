"""A custom operator at the end of a network: softmax and its cross-entropy in NumPy, with its own backward.

python custom_operator.py
"""

import argparse
import logging

import numpy as np
from mlp_module import digits

import mxcore as mx


class NumpySoftmax(mx.operator.CustomOp):
    """Forward is softmax; backward the gradient of the cross-entropy, whatever comes from above."""

    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        y = np.exp(x - x.max(axis=1, keepdims=True))
        y /= y.sum(axis=1, keepdims=True)
        self.assign(out_data[0], req[0], mx.nd.array(y))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        dx = out_data[0].asnumpy()
        label = in_data[1].asnumpy().astype(int)
        dx[np.arange(len(label)), label] -= 1
        self.assign(in_grad[0], req[0], mx.nd.array(dx))


@mx.operator.register("numpy_softmax")
class NumpySoftmaxProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["data", "label"]

    def list_outputs(self):
        return ["output"]

    def infer_shape(self, in_shape):
        data = in_shape[0]
        return [data, [data[0]]], [data], []

    def create_operator(self, ctx, shapes, dtypes):
        return NumpySoftmax()


def mlp(loss):
    """Two layers and a loss: a function of the scores, with an input 'softmax_label'."""
    fc1 = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=128, name="fc1")
    act1 = mx.sym.Activation(fc1, act_type="relu", name="relu1")
    return loss(mx.sym.FullyConnected(act1, num_hidden=10, name="fc2"))


def parse_args():
    parser = argparse.ArgumentParser(description="A softmax loss as a custom operator.")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.03)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    train, test = digits("train"), digits("test")
    losses = {
        "numpy_softmax": lambda scores: mx.sym.Custom(
            scores, mx.sym.Variable("softmax_label"), op_type="numpy_softmax", name="softmax"
        ),
        "SoftmaxOutput": lambda scores: mx.sym.SoftmaxOutput(scores, name="softmax"),
    }
    outputs = {}
    for name, loss in losses.items():  # the same start and the same order of images for both
        mx.random.seed(args.seed)
        np.random.seed(args.seed)
        mod = mx.mod.Module(mlp(loss))
        mod.fit(
            mx.io.NDArrayIter(*train, args.batch_size, shuffle=True),
            num_epoch=args.epochs,
            initializer=mx.init.Xavier(),
            optimizer="sgd",
            optimizer_params={"learning_rate": args.lr, "momentum": 0.9},
        )
        val = mx.io.NDArrayIter(*test, args.batch_size)
        print(f"{name} accuracy {dict(mod.score(val, 'acc'))['accuracy']:.4f}")
        outputs[name] = mod.predict(val).asnumpy()
    print(f"largest difference {np.abs(np.subtract(*outputs.values())).max():.2e}")


if __name__ == "__main__":
    main()
