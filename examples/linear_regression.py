"""Linear regression with a Module: find the weights behind noisy numbers, and print them.

python linear_regression.py
"""

import argparse
import logging

import numpy as np

import mxcore as mx

TRUE_WEIGHT, TRUE_BIAS = np.array([2.0, -3.4, 0.5], np.float32), 4.2


def parse_args():
    parser = argparse.ArgumentParser(description="Linear regression with a Module.")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--noise", type=float, default=0.1, help="standard deviation of what the labels are off")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    mx.random.seed(args.seed)
    np.random.seed(args.seed)

    x = np.random.normal(size=(args.samples, len(TRUE_WEIGHT))).astype(np.float32)
    y = x @ TRUE_WEIGHT + TRUE_BIAS + np.random.normal(scale=args.noise, size=args.samples).astype(np.float32)
    split = args.samples * 4 // 5
    train = mx.io.NDArrayIter(x[:split], y[:split], args.batch_size, shuffle=True, label_name="lro_label")
    val = mx.io.NDArrayIter(x[split:], y[split:], args.batch_size, label_name="lro_label")

    fc = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="fc")
    net = mx.sym.LinearRegressionOutput(fc, mx.sym.Variable("lro_label"), name="lro")

    mod = mx.mod.Module(net, label_names=["lro_label"])
    mod.fit(
        train,
        eval_data=val,
        eval_metric="mse",
        num_epoch=args.epochs,
        optimizer="sgd",
        optimizer_params={"learning_rate": args.lr},
    )

    params, _ = mod.get_params()
    print("weights", *(f"{w:.3f}" for w in params["fc_weight"].asnumpy()[0]), "truth", *TRUE_WEIGHT)
    print("bias", f"{params['fc_bias'].asscalar():.3f}", "truth", TRUE_BIAS)
    print("mse", f"{dict(mod.score(val, 'mse'))['mse']:.4f}", "noise", f"{args.noise**2:.4f}")


if __name__ == "__main__":
    main()
