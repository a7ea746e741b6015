"""What goes on inside a network: outputs of hidden layers with `get_internals` and `Group`, statistics with a Monitor.

python intermediate_outputs.py
"""

import argparse
import logging

import numpy as np
from mlp_module import digits, mlp

import mxcore as mx


def train(args):
    """A trained network as a Module; while it trains, a Monitor logs the range of weights every 50 batches."""

    def spread(x):
        return mx.nd.max(x) - mx.nd.min(x)

    mod = mx.mod.Module(mlp())
    mod.fit(
        mx.io.NDArrayIter(*digits("train"), args.batch_size, shuffle=True),
        num_epoch=args.epochs,
        initializer=mx.init.Xavier(),
        optimizer="sgd",
        optimizer_params={"learning_rate": 0.03, "momentum": 0.9},
        monitor=mx.mon.Monitor(50, stat_func=spread, pattern=".*weight", sort=True),
    )
    return mod


def parse_args():
    parser = argparse.ArgumentParser(description="Outputs of hidden layers, and a Monitor.")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    mx.random.seed(args.seed)
    np.random.seed(args.seed)
    mod = train(args)
    arg_params, aux_params = mod.get_params()

    # A network that shows two hidden layers beside its answer; the parameters are those of the trained one.
    internals = mod.symbol.get_internals()
    print("internals", *internals.list_outputs())
    group = mx.sym.Group([internals["relu2_output"], internals["fc3_output"], mod.symbol])
    test = mx.io.NDArrayIter(*digits("test"), args.batch_size)
    shown = mx.mod.Module(group)
    shown.bind(test.provide_data, test.provide_label, for_training=False)
    shown.set_params(arg_params, aux_params)
    hidden, scores, answer = (a.asnumpy() for a in shown.predict(test))
    for name, shape in shown.output_shapes:
        print(name, shape)
    print(f"hidden units that are zero {np.mean(hidden == 0):.2f}")

    # The hidden layers lead to the answer.
    again = hidden @ arg_params["fc3_weight"].asnumpy().T + arg_params["fc3_bias"].asnumpy()
    print(f"scores differ by {np.abs(again - scores).max():.1e}")
    exp = np.exp(scores - scores.max(axis=1, keepdims=True))
    print(f"answers differ by {np.abs(exp / exp.sum(axis=1, keepdims=True) - answer).max():.1e}")
    print(f"accuracy {np.mean(answer.argmax(axis=1) == test.label[0][1].asnumpy()):.4f}")

    # A feature extractor needs no loss, and so no label.
    features = mx.mod.Module(internals["relu2_output"], label_names=None)
    features.bind(test.provide_data, for_training=False)
    features.set_params(arg_params, aux_params, allow_extra=True)
    print(f"features differ by {np.abs(features.predict(test).asnumpy() - hidden).max():.1e}")

    # One batch under a Monitor: the default statistic is the norm over the root of the size.
    monitor = mx.mon.Monitor(1, pattern="relu2_output|fc3_output")
    mod.install_monitor(monitor)
    test.reset()
    monitor.tic()
    mod.forward(test.next(), is_train=False)
    for _, name, value in monitor.toc():
        print("monitor", name, value)
    print(f"expected relu2_output {np.sqrt(np.mean(hidden[: args.batch_size] ** 2)):.6f}")


if __name__ == "__main__":
    main()
